"""Darknet's ``-out result.json``: images with objects, as normalised centre and size."""

from __future__ import annotations

import re

import msgspec

from detmap.data.tables import Detections, GroundTruth
from detmap.formats.tools.collected import Collected
from detmap.reading.options import Reading
from detmap.reading.sources import Source, read_bytes
from detmap.reading.typed_json import decoded

#: Matches file names, in which darknet does not escape the backslashes of Windows paths.
_BACKSLASH = re.compile(rb'(?<=")filename":\s*"([^"\n]*)"')


class _Box(msgspec.Struct, gc=False):
    center_x: float
    center_y: float
    width: float
    height: float


class _Object(msgspec.Struct, gc=False):
    class_id: int
    relative_coordinates: _Box
    confidence: float
    name: str = ""


class _Image(msgspec.Struct, gc=False):
    filename: str
    objects: list[_Object]


def read_detections(source: Source, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read images and detections; a class without a name is called by its number."""
    data, name = read_bytes(source, "detections")
    plain = bytes(data)
    if b"\\" in plain:
        plain = _BACKSLASH.sub(lambda match: match[0].replace(b"\\", b"/"), plain)
    images = decoded(plain, list[_Image], name)
    found = Collected(name, "cxcywh", shares=True)
    for i, one in enumerate(images):
        image = found.image(one.filename, f"image {i}")
        for k, thing in enumerate(one.objects):
            box = thing.relative_coordinates
            sides = box.center_x, box.center_y, box.width, box.height
            label = thing.name or str(thing.class_id)
            found.add(f"image {i} object {k}", image, label, sides, score=thing.confidence)
    return found.detections(ground_truth, reading)
