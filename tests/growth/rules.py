"""Protocols of the kind of shape of circles.py; they are made while it is registered, on import."""

import dataclasses

from detmap.detection.protocols import PRESETS

AREAS = (("all", 0.0, 1e10), ("small", 0.0, 900.0), ("large", 900.0, 1e10))
ON_COCO = dataclasses.replace(PRESETS["coco"], iou_type="circle")
PROTOCOL = dataclasses.replace(PRESETS["coco"], name="circles", iou_type="circle", area_ranges=AREAS, max_dets=(5, 40))
