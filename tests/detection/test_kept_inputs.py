"""Objects of id 0, packed tallies, merged tallies and inputs in every form: what comes of them is the text that is kept."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from kept import Kept, said, told
from kept_scenes import PROTOCOLS, tables
from workloads import make_coco

import detmap
from detmap.detection import given
from detmap.detection.packed import PackedTally, ShardedTally
from detmap.detection.protocols import PRESETS

#: Figures have 12 digits, because the boxes that are made up differ in the last bits between processors.
KEPT = Kept("inputs", digits=12)
said = functools.partial(said, digits=12)


@functools.cache
def documents():
    """COCO's JSON of ground truth and results."""
    dataset, results = make_coco(3, images=4, categories=2)[:2]
    return json.loads(json.dumps(dataset, default=float)), json.loads(json.dumps(results, default=float))


def zero(row, parts=1, **options):
    """What is said where the annotation of a row has the id 0."""
    dataset, results = copy.deepcopy(documents())
    for one in dataset["annotations"]:
        one["id"] = int(one["id"]) + 1
    dataset["annotations"][row]["id"] = 0
    truth = detmap.read_coco(dataset)
    found = detmap.read_coco_results(results, truth)
    made = detmap.match(truth, found, **options)
    images = truth.images.ids
    if parts > 1:
        shares = [detmap.match(truth, found, image_ids=images[at::parts].tolist(), **options) for at in range(parts)]
        made = shares[1].merge(shares[0], *shares[2:])
    result = detmap.DetectionResult(made)
    matches = detmap.match_pairs(truth, found, **options)
    columns = ("detection", "outcome", "ground_truth", "overlap", "missed")
    return {
        "metrics": said(dict(result)),
        "classes": said(result.per_category),
        "notices": said(dict(result.notices)),
        "described": result.described_notices(),
        "tally": hashlib.sha256(made.to_bytes()).hexdigest()[:16],
        **{name: said(getattr(matches, name)) for name in columns},
    }


for _row in (0, 3, 5, 9):
    for _how in ("found", "missed"):
        KEPT.add(f"id 0 of row {_row}, {_how}", zero, _row, id_zero=_how)
        KEPT.add(f"id 0 of row {_row} in parts, {_how}", zero, _row, 2, id_zero=_how)
KEPT.add("id 0, one class", zero, 3, use_categories=False)
for _protocol in ("voc2007", "ultralytics", "supervision"):
    KEPT.add(f"id 0, {_protocol}", zero, 3, protocol=_protocol, id_zero="missed")


def packed(name):
    """Columns of a packed tally, and the result of shards by images."""
    truth, (one, _) = tables(name)
    protocol, side = PROTOCOLS[name], np.arange(truth.images.ids.size) % 3
    parts = [detmap.match(truth, one, protocol, image_ids=truth.images.ids[side == at].tolist()) for at in range(3)]
    packs = [PackedTally.of(part) for part in parts]
    merged = parts[0].merge(*parts[1:])
    sharded = ShardedTally(packs, [0] * 3, merged.notices)
    return {
        "columns": [said(pack.columns_of(0, len(pack.starts) - 1)) for pack in packs],
        "of some": said(packs[0].columns_of(1, min(2, len(packs[0].starts) - 1))),
        "whole": said(PackedTally.of(sharded.whole()).columns),
        "metrics": said(dict(detmap.DetectionResult(sharded))),
        "order": said(merged.tie_order()),
        "repr": [repr(part) for part in parts],
    }


for _name in (
    "coco",
    "lvis",
    "openimages",
    "nuscenes",
    "kitti",
    "crowdpose",
    "voc2007",
    "supervision",
    "dota",
    "ytvis",
):
    KEPT.add(f"packed {_name}", packed, _name)


def named(value):
    return {name: type(one).__name__ for name, one in given.by_name(value).items()}


ONE = [{"image_id": 1}]
TABLE = detmap.Detections.from_arrays(image_ids=[], category_ids=[], boxes=np.empty((0, 4)), scores=[])
for _value in (
    "a/b.json", ["a/b.json"], ["a/b.json", "c/b.json"], ["a/b.json", "a/b.json"], [ONE, ONE], ONE, [],
    {"x": "a.json", 3: ONE}, {"annotations": ONE}, {"predictions": []}, {"annotations": "a.json"},
    [{"annotations": ONE}, ONE],
    [{"annotations": "a"}], ("a.json", ONE, "b.json"), {"predictions": [ONE]}, [[]],
):  # fmt: skip
    KEPT.add(f"models {_value!r}", named, _value)
KEPT.add("models of tables", lambda: named([TABLE, "a.json", TABLE]))
KEPT.add("model of a table", lambda: named(TABLE))


def scored(truth, found, score=detmap.evaluate, **options):
    """A result of documents, tables or files, and the errors of what is none of these."""
    with tempfile.TemporaryDirectory() as folder:
        dataset, results = documents()
        paths = Path(folder, "truth.json"), Path(folder, "found.json")
        for path, content in zip(paths, (dataset, results), strict=True):
            path.write_text(json.dumps(content))
        table = detmap.read_coco(dataset)
        forms = {
            "path": paths, "text": tuple(map(str, paths)), "document": (dataset, results),
            "table": (table, detmap.read_coco_results(results, table)), "wrapped": ({**dataset}, {"annotations": results}),
            "number": (5, 5), "list of paths": (dataset, [str(paths[1])]), "list of tables": (dataset, [TABLE]),
            "nothing": ({}, []), "none": (None, None), "swapped": (results, dataset),
        }  # fmt: skip
        try:
            made = score(forms[truth][0], forms[found][1], **options)
        except detmap.DetmapError as error:
            return f"{type(error).__name__}: {told(error)}".replace(folder, "")
    return said(dict(made)) if isinstance(made, detmap.DetectionResult) else repr(made)


for _truth, _found in (
    ("path", "path"), ("text", "document"), ("document", "wrapped"), ("table", "path"), ("document", "table"),
    ("number", "path"), ("path", "number"), ("none", "path"), ("path", "none"), ("document", "list of paths"),
    ("table", "list of tables"),
    ("swapped", "swapped"), ("nothing", "document"), ("document", "nothing"), ("table", "table"),
):  # fmt: skip
    KEPT.add(f"evaluate {_truth}, {_found}", scored, _truth, _found)
    KEPT.add(f"match_pairs {_truth}, {_found}", scored, _truth, _found, score=detmap.match_pairs)
for _options in (
    {"protocol": "auto"}, {"protocol": "other"}, {"protocol": "voc2007"}, {"iou_type": "segm"}, {"iou_type": "other"},
    {"protocol": "auto", "iou_type": "bbox"}, {"levels": {"hard": "occlusion>1"}}, {"levels": {"hard": "difficult>0"}},
    {"iou_thresholds": [0.5]}, {"iou_thresholds": 0.5}, {"iou_thresholds": []}, {"iou_thresholds": "0.5:0.6:0.05"},
    {"max_dets": 3}, {"max_dets": [3, 2]}, {"max_dets": []}, {"max_dets": 0}, {"recall_thresholds": [0.5, 2]},
    {"bootstrap": 199}, {"bootstrap": 200, "level": 1.0}, {"bootstrap": 200, "method": "other"}, {"threads": 0},
    {"threads": 2},
):  # fmt: skip
    KEPT.add(f"evaluate with {_options}", lambda options: scored("document", "document", **options), _options)
for _options in (
    {"iou": 0.0}, {"iou": 0.1}, {"iou": 1.0}, {"iou": 1.1}, {"iou": "a"}, {"area": "huge"}, {"area": "small"},
    {"floor": 0.0}, {"floor": 0.7}, {"floor": 1.1}, {"across_categories": True}, {"across_categories": True, "floor": 0.5},
):  # fmt: skip
    KEPT.add(
        f"match_pairs with {_options}",
        lambda options: scored("document", "document", score=detmap.match_pairs, **options),
        _options,
    )


def across(name, floor):
    truth, (one, _) = tables(name)
    made = detmap.match_pairs(
        truth, one, PROTOCOLS[name], across_categories=True, floor=floor, iou=PROTOCOLS[name].iou_thresholds[0]
    )
    names = ("same", "same_overlap", "other", "other_overlap", "other_category")
    return {column: said(getattr(made, column)) for column in names}


for _name in ("coco", "nuscenes", "coco-segm", "crowdpose", "dota"):
    for _floor in (0.1, 0.5):
        KEPT.add(f"across categories {_name} {_floor}", across, _name, _floor)


def merged(options, other):
    """Merging of tallies that fit each other, or do not."""
    truth, (one, _) = tables("coco")
    images = truth.images.ids
    parts = [
        detmap.match(truth, one, image_ids=images[: images.size // 2].tolist()),
        detmap.match(truth, one, image_ids=images[images.size // 2 + other :].tolist(), **options),
    ]
    made = parts[0].merge(parts[1])
    return {"repr": repr(made), "bytes": hashlib.sha256(made.to_bytes()).hexdigest()[:16]}


for _options, _other in (
    ({}, 0),
    ({}, -1),
    ({"strict": True}, 0),
    ({"category_ids": [1, 2]}, 0),
    ({"max_dets": (1, 10)}, 0),
):
    KEPT.add(f"merged {_options} {_other}", merged, _options, _other)
KEPT.add("merged with a number", lambda: repr(detmap.match(*_pair()).merge(5)))
KEPT.add("merged with nothing", lambda: repr(detmap.match(*_pair()).merge()))
KEPT.add(
    "empty ones merged",
    lambda: repr(detmap.Tally.empty(PRESETS["coco"], ()).merge(detmap.Tally.empty(PRESETS["coco"], ()))),
)


def _pair():
    truth, (one, _) = tables("coco")
    return truth, one


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
