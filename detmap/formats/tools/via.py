"""VGG Image Annotator's JSON and CSV of versions 1 and 2: images with regions, in pixels.

The class of a region is a user-defined attribute: the only attribute, or the attribute called label, class, name, type
or category.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from detmap.data.tables import GroundTruth
from detmap.errors import InputError
from detmap.formats.delimited.read import UNNAMED
from detmap.formats.tools.collected import Collected
from detmap.reading.options import Reading
from detmap.reading.sources import Source, read_bytes
from detmap.reading.typed_json import decoded

_CLASS = ("label", "class", "name", "type", "category")


class _Shape(msgspec.Struct, gc=False):
    name: str = ""
    x: float | None = None
    y: float | None = None
    width: float | None = None
    height: float | None = None
    cx: float | None = None
    cy: float | None = None
    r: float | None = None
    rx: float | None = None
    ry: float | None = None
    all_points_x: list[float] = []
    all_points_y: list[float] = []


class _Region(msgspec.Struct, gc=False):
    shape_attributes: _Shape
    region_attributes: dict[str, Any] = {}


class _File(msgspec.Struct, gc=False):
    filename: str
    regions: list[_Region] | dict[str, _Region] = []


class _Project(msgspec.Struct, gc=False):
    images: dict[str, _File] = msgspec.field(name="_via_img_metadata")


def read_ground_truth(source: Source, reading: Reading) -> GroundTruth:
    """Read the images and regions of a project, or of exported annotations."""
    data, name = read_bytes(source, "ground truth")
    found = Collected(name, "xywh")
    read = _of_json if bytes(data[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" else _of_csv
    image = ""
    for place, file, region in read(bytes(data), name):
        if file != image or not image:
            image = found.image(file, place)
        if region is not None:
            _add(found, place, image, region)
    return found.ground_truth(reading)


def _of_json(data: bytes, name: str) -> Iterator[tuple[str, str, _Region | None]]:
    """Yield tuples of a name for messages, an image, and a region, which is None for an image without regions."""
    if b'"_via_img_metadata"' in data:
        images = decoded(data, _Project, name).images
    else:
        images = decoded(data, dict[str, _File], name)
    for key, one in images.items():
        regions = list(one.regions.values()) if isinstance(one.regions, dict) else one.regions
        yield from ((f"image {key!r} region {k}", one.filename, region) for k, region in enumerate(regions))
        if not regions:
            yield f"image {key!r}", one.filename, None


def _of_csv(data: bytes, name: str) -> Iterator[tuple[str, str, _Region | None]]:
    """Yield the regions of a CSV file, as `_of_json` does. The cells of attributes hold JSON."""
    try:
        text = data.decode("utf-8-sig").removeprefix("#")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"is not CSV in UTF-8: {error}", source=name) from None
    for number, row in enumerate(rows, 2):
        place, cell = f"line {number}", row.get("region_shape_attributes") or "{}"
        region = None
        if cell.strip() != "{}":
            shape = decoded(cell.encode(), _Shape, name, place)
            region = _Region(
                shape, decoded((row.get("region_attributes") or "{}").encode(), dict[str, Any], name, place)
            )
        yield place, row.get("filename") or "", region


def _add(found: Collected, place: str, image: str, region: _Region) -> None:
    """Add a region; lines and points have no area and are left out."""
    shape = region.shape_attributes
    label = _class_of(region.region_attributes, found.source, place)

    def numbers(*fields: str) -> list[float]:
        values = [getattr(shape, field) for field in fields]
        if None in values:
            field = fields[values.index(None)]
            raise InputError("is missing", source=found.source, record=place, field=field)
        return values

    if shape.name == "rect":
        box: Any = (shape.x, shape.y, shape.width, shape.height)
        found.add(place, image, label, numbers("x", "y", "width", "height") if None in box else box)
    elif shape.name in ("circle", "ellipse"):
        x, y, *radii = numbers("cx", "cy", *(["r"] if shape.name == "circle" else ["rx", "ry"]))
        across, down = radii[0], radii[-1]
        found.add(place, image, label, (x - across, y - down, 2 * across, 2 * down))
    elif shape.name == "polygon":
        if len(shape.all_points_x) != len(shape.all_points_y) or len(shape.all_points_x) < 3:
            problem = f"has {len(shape.all_points_x)} and {len(shape.all_points_y)} coordinates of points"
            raise InputError(problem, source=found.source, record=place, field="all_points_x")
        points = zip(shape.all_points_x, shape.all_points_y, strict=True)
        found.add(place, image, label, outline=[value for point in points for value in point])
    else:
        found.count("unread_records")


def _class_of(attributes: Mapping[str, Any], source: str, place: str) -> str:
    """Return the class from the attributes: an attribute with a text, or with a mapping that has one true choice."""
    key = next((one for one in _CLASS if one in attributes), None)
    if key is None and len(attributes) > 1:
        names = ", ".join(map(repr, list(attributes)[:8]))
        raise InputError(
            f"which attribute is the class is not clear: there are {names}",
            source=source,
            record=place,
            remedy=f"call it one of: {', '.join(_CLASS)}",
        )
    value = attributes[key] if key is not None else next(iter(attributes.values()), UNNAMED)
    if isinstance(value, dict):
        chosen = [name for name, on in value.items() if on is True]
        value = chosen[0] if len(chosen) == 1 else None
    if not isinstance(value, str):
        raise InputError("is not one class", source=source, record=place, field=key, value=value)
    return value
