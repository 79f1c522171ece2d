"""A protocol from outside of the package: boxes may lie beside their objects a little, and file order breaks ties."""

from __future__ import annotations

from dataclasses import replace

import detmap

LENIENT = detmap.register(
    replace(
        detmap.PRESETS["coco"],
        name="lenient",
        iou_thresholds=(0.3, 0.5),
        area_ranges=(("all", 0.0, 1e10), ("tiny", 0.0, 256.0)),
        max_dets=(20,),
        ties="file",
        interpolation="all-point",
    )
)
