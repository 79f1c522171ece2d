"""CreateML's JSON: images with boxes by their centre and size, in pixels."""

from __future__ import annotations

import msgspec

from detmap.data.tables import GroundTruth
from detmap.formats.tools.collected import Collected
from detmap.reading.options import Reading
from detmap.reading.sources import Source
from detmap.reading.typed_json import read_json


class _Box(msgspec.Struct, gc=False):
    x: float
    y: float
    width: float
    height: float


class _Object(msgspec.Struct, gc=False):
    label: str
    coordinates: _Box


class _Image(msgspec.Struct, gc=False):
    image: str = ""
    imagefilename: str = ""
    annotations: list[_Object] = []
    annotation: list[_Object] = []


def read_ground_truth(source: Source, reading: Reading) -> GroundTruth:
    """Read images and their objects."""
    images, name = read_json(source, list[_Image], "ground truth")
    found = Collected(name, "cxcywh")
    for i, one in enumerate(images):
        image = found.image(one.image or one.imagefilename, f"image {i}")
        for k, thing in enumerate(one.annotations or one.annotation):
            box = thing.coordinates
            found.add(f"image {i} annotation {k}", image, thing.label, (box.x, box.y, box.width, box.height))
    return found.ground_truth(reading)
