"""CVAT's XML 1.1 for images: boxes, which may be rotated, and polygons, in pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from xml.parsers import expat

import numpy as np

from detmap.choices import decimal
from detmap.data.tables import GroundTruth
from detmap.errors import InputError
from detmap.formats.tools.collected import Collected
from detmap.reading.options import Reading
from detmap.reading.sources import Source, read_bytes
from detmap.shapes.kinds import BOXES

_DEEPEST = 64

#: Number of corners of the polygon that approximates an ellipse for masks.
_CORNERS = 64

#: Spellings of an angle of 0.
_UPRIGHT = ("0", "0.0", "0.00")
_SIDES = ("xtl", "ytl", "xbr", "ybr")

#: Elements of an image that are not always read. A notice counts unread elements.
_UNREAD = ("polyline", "points", "mask", "ellipse", "skeleton", "cuboid")


def read_ground_truth(source: Source, reading: Reading) -> GroundTruth:
    """Read images with boxes and polygons; for `iou_type` "bbox" rotated boxes become the boxes around them."""
    data, name = read_bytes(source, "ground truth")
    plain = _plain_boxes(bytes(data), name)
    if plain is not None:
        return plain.ground_truth(reading)
    found = Collected(name, "xyxy")
    depth = 0
    image = ""

    def refuse(*_: object) -> None:
        raise InputError("declares a document type, which CVAT never does", source=name)

    def start(tag: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth, image
        depth += 1
        if depth > _DEEPEST:
            raise InputError("is nested too deeply", source=name)
        place = f"line {parser.CurrentLineNumber}"
        if depth == 1 and tag != "annotations":
            problem = f"is not CVAT's XML: its root is {tag[:40]!r}, not 'annotations'"
            raise InputError(problem, source=name)
        if depth == 2 and tag == "track":
            remedy = "export the task as CVAT for images 1.1, or as COCO"
            raise InputError("holds tracks of a video", source=name, record=place, remedy=remedy)
        if depth == 2 and tag == "image":
            height, width = (_side(attributes.get(side, "")) for side in ("height", "width"))
            image = found.image(attributes.get("name", ""), place, height, width)
        elif depth == 3 and image and tag in ("box", "polygon"):
            outline = _box(attributes, name, place) if tag == "box" else _points(attributes, name, place)
            rotated = tag == "polygon" or attributes.get("rotation", "0") not in _UPRIGHT
            box = () if rotated else (outline[0], outline[1], outline[4], outline[5])
            if tag == "box" and rotated and reading.iou_type == BOXES:
                found.count("turned_boxes")
            found.add(place, image, attributes.get("label", ""), box, outline=outline)
        elif depth == 3 and image and tag == "ellipse" and attributes.get("rotation", "0") in _UPRIGHT:
            x, y, across, down = (
                _number(attributes.get(one, ""), name, place, one) for one in ("cx", "cy", "rx", "ry")
            )
            turns = (2 * math.pi * i / _CORNERS for i in range(_CORNERS))
            outline = [value for t in turns for value in (x + across * math.cos(t), y + down * math.sin(t))]
            box = (x - across, y - down, x + across, y + down)
            found.add(place, image, attributes.get("label", ""), box, outline=outline)
        elif depth == 3 and image and tag == "mask" and reading.iou_type == BOXES:
            fields = ("left", "top", "width", "height")
            x, y, across, down = (_number(attributes.get(one, ""), name, place, one) for one in fields)
            found.add(place, image, attributes.get("label", ""), (x, y, x + across, y + down))
        elif depth == 3 and image and tag in _UNREAD:
            found.count("unread_records")

    def end(tag: str) -> None:
        nonlocal depth, image
        depth -= 1
        image = "" if depth == 1 else image

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(bytes(data), True)
    except InputError:
        raise
    except (expat.ExpatError, LookupError, ValueError, Warning) as error:
        raise InputError(f"is not valid XML: {error}", source=name, remedy="is the file complete?") from None
    return found.ground_truth(reading)


def _plain_boxes(data: bytes, source: str) -> Collected | None:
    """Read plain XML whose shapes are upright boxes with usual values; return None for any other file."""
    from detmap.reading.markup import Elements  # imports the scanner

    elements = Elements([data])
    roots = elements.roots("annotations")
    images = elements.inside("image", roots)
    boxes = elements.inside("box", images)
    others = (elements.inside(tag, images) for tag in ("polygon", *_UNREAD))
    if not roots.size or elements.inside("track", roots).size or any(rows.size for rows in others):
        return None
    fields = [elements.attribute(name, boxes) for name in ("label", *_SIDES)]
    turns = elements.attribute("rotation", boxes)
    called = elements.attribute("name", images)
    if any((rows < 0).any() for rows in (*fields, called)):
        return None
    read = [elements.numbers(rows) for rows in fields[1:]]
    upright = {*elements.strings(turns[turns >= 0]).values} <= {*_UPRIGHT}
    if not upright or not all(good.all() for _, good in read):
        return None
    found = Collected(source, "xyxy")
    heights, widths = (elements.attribute(side, images).tolist() for side in ("height", "width"))
    names = []
    labels = elements.strings(fields[0])
    try:
        for name, height, width in zip(map(elements.text, called.tolist()), heights, widths, strict=True):
            sides = [_side("" if row < 0 else elements.text(row)) for row in (height, width)]
            names.append(found.image(name, "", *sides))
        for label in labels.values:
            found.check_class(label, "")
    except InputError:
        return None
    owners = np.searchsorted(images, elements.parents[boxes])
    found.extend(
        lambda row: f"line {elements.line(int(boxes[row]))}",
        [names[owner] for owner in owners.tolist()],
        [labels.values[code] for code in labels.codes.tolist()],
        np.stack([values for values, _ in read], axis=1),
    )
    return found


def _side(text: str) -> int:
    """Return the width or height of an image, 0 if it is unknown."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def _number(text: str, source: str, place: str, field: str) -> float:
    try:
        value = decimal(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError("must be a finite number", source=source, record=place, field=field, value=text)
    return value


def _box(attributes: Mapping[str, str], source: str, place: str) -> list[float]:
    """Return the corners of a box, rotated about its centre by the attribute ``rotation``, in degrees clockwise on the
    screen.
    """
    words = [attributes.get(side, "") for side in _SIDES]
    text = "".join(words)
    try:
        left, top, right, bottom = map(float, words)
        good = text.isascii() and "_" not in text and math.isfinite(left + top + right + bottom)
    except ValueError:
        good = False
    if not good:
        left, top, right, bottom = (
            _number(word, source, place, side) for word, side in zip(words, _SIDES, strict=True)
        )
    turn = _number(attributes["rotation"], source, place, "rotation") if "rotation" in attributes else 0.0
    corners = [left, top, right, top, right, bottom, left, bottom]
    if turn == 0:
        return corners
    x, y = (left + right) / 2, (top + bottom) / 2
    cosine, sine = _exact(math.cos, turn), _exact(math.sin, turn)
    turned = []
    for a, b in zip(corners[0::2], corners[1::2], strict=True):
        turned += [x + (a - x) * cosine - (b - y) * sine, y + (a - x) * sine + (b - y) * cosine]
    return turned


def _exact(of: object, degrees: float) -> float:
    """Return the cosine or sine of an angle in degrees, exact for quarter turns."""
    quarter = (1.0, 0.0, -1.0, 0.0) if of is math.cos else (0.0, 1.0, 0.0, -1.0)
    if degrees % 90 == 0:
        return quarter[int(degrees // 90) % 4]
    return math.cos(math.radians(degrees)) if of is math.cos else math.sin(math.radians(degrees))


def _points(attributes: Mapping[str, str], source: str, place: str) -> list[float]:
    """Return the corners of a polygon, written as x,y;x,y."""
    pairs = [pair.split(",") for pair in attributes.get("points", "").split(";")]
    if len(pairs) < 3 or any(len(pair) != 2 for pair in pairs):
        value = attributes.get("points", "")
        raise InputError(
            "must be three or more points x,y;x,y", source=source, record=place, field="points", value=value
        )
    return [_number(one, source, place, "points") for pair in pairs for one in pair]
