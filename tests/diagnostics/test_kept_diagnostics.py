"""All parts of diagnoses, with every option, on boxes, masks and poses, are the text that is kept."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import pytest
from kept import Kept, said
from kept_scenes import PROTOCOLS, boxes, tables
from test_presets import tables as tables_of
from test_presets import workload

import detmap
from detmap.diagnostics import PARTS

KEPT = Kept("diagnostics", digits=12)


@functools.cache
def scene(images=10):
    """Boxes of three classes with errors of every kind, on images whose sizes are known."""
    truth, found = workload(11, images=images)
    objects, detections = tables_of(truth, found, images=images)
    sizes = np.tile([[240, 280], [260, 260]], (images // 2, 1))
    return dataclasses.replace(objects, images=dataclasses.replace(objects.images, sizes=sizes)), detections


@functools.cache
def diagnosis(protocol="coco", **options):
    return detmap.diagnose(*scene(), protocol, **options)


def part(name, given=(), **options):
    made = diagnosis(**dict(given)).part(name, **options)
    return {
        **({} if given else {"text": str(made)}),
        "settings": said(made.settings, 12),
        "metrics": said(dict(made), 12),
        "notes": list(made.notes),
        "document": said(made.to_dict(), 12),
        "tables": {name: said(made.rows(name), 12) for name in made.tables},
        "rows": said(made.rows(), 12),
        "html": said(made._repr_html_()),
    }


def whole(*found, **options):
    made = detmap.diagnose(*found, **options)
    return {
        "repr": repr(made),
        "html": said(made._repr_html_()),
        "parts": {
            name: said({"rows": one.rows(), "metrics": dict(one), "document": one.to_dict()}, 12)
            for name, one in ((name, made.part(name)) for name in PARTS)
        },
        "document": said({key: value for key, value in made.to_dict().items() if key != "parts"}, 12),
        "rows": said(made.rows(), 12),
    }


def empty(truth, found):
    """Diagnoses where objects, detections or both are missing."""
    objects, detections = scene()
    rows = np.arange(0)
    return whole(objects.take(rows) if truth else objects, detections.take(rows) if found else detections)


#: Options of parts.
OPTIONS = {
    "tide": [{}, {"rules": "tidecv"}],
    "confusion": [{}, *({"match": match} for match in ("ultralytics", "supervision")), {"score": 0.2, "iou": 0.3}],
    "calibration": [{}, {"bins": 3, "tau": 0.5, "la_bins": 4, "position_bins": 2}],
    "lrp": [{}, {"iou": 0.7}, {"area": "medium"}],
    "operating_points": [{}, {"precision": 0.3, "recall": [0.2, 0.99]}],
    "slices": [
        {},
        {"by": "crowding"},
        {"by": ["position", "area"], "ranges": {"area": {"tiny": (0, 900), "rest": (900, math.inf)}}},
        {"attributes": {"weather": ["sun", "rain", "", "sun", "snow"] * 2}},
    ],
    "images": [{}, {"most": 2}],
    "suspects": [{}, {"most": 1}, {"duplicate": 0.5}],
    "cuts": [{}, {"scores": (0.2,), "caps": (2, 3)}],
}
GIVEN = {
    "plain": {},
    "voc2012 at 0.7": {"protocol": "voc2012", "iou": 0.7},
    "score 0.3, no categories": {"score": 0.3, "use_categories": False},
    "drawn": {"replicates": 200, "seed": 1},
    "ultralytics, strict": {"protocol": "ultralytics", "strict": True},
}

for _name in PARTS:
    for _options in OPTIONS.get(_name, [{}]):
        for _given, _more in GIVEN.items():
            if _name in OPTIONS and ("area" not in _options or "protocol" not in _more):
                KEPT.add(f"{_name} {_options}, {_given}", part, _name, tuple(_more.items()), **_options)
for _name in ("nuscenes", "kitti", "coco-segm", "crowdpose", "ytvis", "activitynet", "dota", "openimages", "lvis"):
    KEPT.add(
        f"protocol {_name}", lambda name: whole(tables(name)[0], tables(name)[1][0], protocol=PROTOCOLS[name]), _name
    )
for _seed in range(3):
    KEPT.add(f"boxes {_seed}", lambda seed: whole(*boxes(seed)), _seed)
for _truth, _found in ((True, False), (False, True), (True, True)):
    KEPT.add(f"without objects {_truth}, without detections {_found}", empty, _truth, _found)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
