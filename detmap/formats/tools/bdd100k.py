"""BDD100K's and Scalabel's JSON: frames with labels, whose boxes include their last pixel.

The width of a box is ``x2 - x1 + 1``, even if coordinates are fractional, as in Scalabel's own conversion to COCO.
Labels without ``box2d``, such as lanes, are left out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from detmap.data.tables import Detections, GroundTruth
from detmap.formats.tools.collected import Collected
from detmap.reading.options import Reading
from detmap.reading.sources import Source
from detmap.reading.typed_json import read_json


class _Box(msgspec.Struct, gc=False):
    x1: float
    y1: float
    x2: float
    y2: float


class _Label(msgspec.Struct, gc=False):
    category: str
    box2d: _Box | None = None
    score: float | None = None
    attributes: Any = None


class _Frame(msgspec.Struct, gc=False):
    name: str
    labels: list[_Label] | None = None


class _Frames(msgspec.Struct, gc=False):
    frames: list[_Frame]


#: A list of frames, or an object with such a list.
_Document: Any = list[_Frame] | _Frames


def _collected(source: Source, what: str) -> Collected:
    document, name = read_json(source, _Document, what)
    found = Collected(name, "xywh")
    for i, frame in enumerate(document.frames if isinstance(document, _Frames) else document):
        image = found.image(frame.name, f"frame {i}")
        for k, label in enumerate(frame.labels or ()):
            if label.box2d is None:
                found.count("unread_records")
                continue
            box = label.box2d
            sides = box.x1, box.y1, box.x2 - box.x1 + 1, box.y2 - box.y1 + 1
            marks = label.attributes if isinstance(label.attributes, dict) else {}
            crowd = marks.get("crowd") is True or marks.get("ignored") is True
            found.add(f"frame {i} label {k}", image, label.category, sides, score=label.score, crowd=crowd)
    return found


def read_ground_truth(source: Source, reading: Reading) -> GroundTruth:
    """Read frames; labels with ``crowd`` or ``ignored`` are crowds."""
    return _collected(source, "ground truth").ground_truth(reading)


def read_detections(source: Source, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read frames whose labels have scores."""
    return _collected(source, "detections").detections(ground_truth, reading)
