"""labelme's JSON, a file per image: rectangles by two opposite corners, polygons, circles by centre and rim point."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import msgspec

from detmap.data.tables import GroundTruth
from detmap.errors import InputError
from detmap.formats.tools.collected import Collected
from detmap.reading.opening import Held
from detmap.reading.options import Reading
from detmap.reading.sources import members, name_of, read_bytes
from detmap.reading.typed_json import decoded
from detmap.shapes.kinds import BOXES

#: Number of corners of the polygon that approximates a circle for masks.
_CORNERS = 64


#: Values of ``shape_type`` with four corners: rotated boxes, and rectangles as written by later tools of labelme's
#: family.
_TURNED = ("rotation", "oriented_rectangle", "rectangle")


class _Shape(msgspec.Struct, gc=False):
    label: str
    points: list[tuple[float, float]]
    shape_type: str | None = None


class _Document(msgspec.Struct, gc=False):
    shapes: list[_Shape]
    imagePath: str = ""
    imageHeight: float | None = None
    imageWidth: float | None = None


def read_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read a folder or archive of files, or a single file. Lines and points have no area and are left out."""
    name = name_of(source, "ground truth")
    found = Collected(name, "xywh")
    for file, data, place in _files(source, name):
        document = decoded(data, _Document, place)
        path = document.imagePath.replace("\\", "/").rpartition("/")[2] or file
        if path in found.sizes:
            raise InputError("is the image of two files", source=place, field="imagePath", value=path)
        image = found.image(path, file, int(document.imageHeight or 0), int(document.imageWidth or 0))
        for k, shape in enumerate(document.shapes):
            if reading.iou_type == BOXES and shape.shape_type == "rectangle" and len(shape.points) == 2:
                (x, y), (a, b) = shape.points
                found.add(f"{file} shape {k}", image, shape.label, (min(x, a), min(y, b), abs(a - x), abs(b - y)))
                continue
            outline = _outline(shape, place, f"shape {k}")
            if outline is None:
                found.count("unread_records")
                continue
            box = [min(outline[0::2]), min(outline[1::2]), max(outline[0::2]), max(outline[1::2])]
            if shape.shape_type == "circle":
                (x, y), rim = shape.points
                radius = math.dist((x, y), rim)
                box = [x - radius, y - radius, x + radius, y + radius]
            sides = (box[0], box[1], box[2] - box[0], box[3] - box[1])
            found.add(f"{file} shape {k}", image, shape.label, sides, outline=outline)
    return found.ground_truth(reading)


def _files(source: Any, name: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the name and the bytes of each file, and its path for messages."""
    if isinstance(source, Held):
        yield name, bytes(source), name
        return
    if os.path.isdir(source):
        yield from members(source, ".json", "ground truth")
        return
    data, place = read_bytes(source, "ground truth")
    yield os.path.basename(os.fspath(source)), bytes(data), place


def _outline(shape: _Shape, source: str, place: str) -> list[float] | None:
    """Return the outline of a shape; None for a line or a point. Raises `InputError` for missing points."""
    kind, points = shape.shape_type or "polygon", shape.points
    if kind in _TURNED and len(points) == 4:  # already given by four corners
        kind = "polygon"
    if kind not in ("rectangle", "polygon", "circle", "mask"):
        return None
    wanted = 3 if kind == "polygon" else 2
    if len(points) < wanted or (kind != "polygon" and len(points) != 2):
        problem = f"a {kind} has {len(points)} points where {wanted} are expected"
        raise InputError(problem, source=source, record=place, field="points")
    if kind == "polygon":
        return [value for point in points for value in point]
    (x, y), (a, b) = points
    if kind == "circle":
        radius, steps = math.dist((x, y), (a, b)), (2 * math.pi * i / _CORNERS for i in range(_CORNERS))
        return [value for t in steps for value in (x + radius * math.cos(t), y + radius * math.sin(t))]
    left, right, top, bottom = min(x, a), max(x, a), min(y, b), max(y, b)
    return [left, top, right, top, right, bottom, left, bottom]
