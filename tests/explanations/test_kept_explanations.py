"""All that explanations, searches, contrasts and claims say of small tables is the text that is kept."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from kept import Kept, said
from kept_scenes import PROTOCOLS, boxes, tables
from test_explain_rankings import sample
from test_kept_parts import crowded
from test_presets import tables as tables_of
from test_presets import workload

import detmap
from detmap.explanations import (
    Variant,
    contrast,
    explain_run,
    rankings_survive,
    survives,
    under_presets,
)
from detmap.explanations.orders import orders, values_under
from detmap.explanations.replay import Replay, parse, trimmed
from detmap.retrieval import CONVENTIONS, evaluate_run

KEPT = Kept("explanations", digits=12)


@functools.cache
def models(seed=4, images=8):
    """Ground truth and three models: of the second and third, scores differ, and boxes are lost."""
    truth, found = workload(seed, images=images)
    rng = np.random.default_rng(seed)
    made = {"one": [(i, c, box, round(s, 1)) for i, c, box, s in {(row[0], row[1]): row for row in found}.values()]}
    for name, noise, kept in (("two", 0.1, 0.9), ("three", 0.3, 0.6)):
        made[name] = [
            (i, c, box, float(np.clip(s + rng.normal(0, noise), 0.01, 1)))
            for i, c, box, s in found
            if rng.random() < kept
        ]
    objects = tables_of(truth, found, images=images)[0]
    return objects, {name: tables_of(truth, one, images=images)[1] for name, one in made.items()}


def explained(found, source, target, metric="AP", **options):
    made = detmap.explain(*found, source, target, metric, **options)
    return {"heading": made.heading, "sentences": made.sentences(), "document": made.to_dict()}


def search(made):
    document = made.to_dict()
    return {
        "verdict": made.verdict,
        "sentences": made.sentences(),
        "rows": [said(row, 12) for row in made.rows()],
        "named": said(made.named_rows(), 12),
        "document": {name: said(value, 12) for name, value in document.items() if name != "sentences"},
    }


def searched(value, metric):
    objects, found = models(images=3)
    return search(detmap.find_value(objects, found["one"], value, metric, most=4))


def survived(made):
    return {
        "sentences": made.sentences(),
        "tables": [made.table(claim) for claim in made.claims],
        "document": {name: said(value, 12) for name, value in made.to_dict().items() if name != "sentences"},
        "html": said(getattr(made, "_repr_html_", str)()),
    }


def contrasted(protocol, metric="AP", names=("first", "second"), **options):
    objects, found = models(images=12)
    made = contrast(
        objects, found["two"], found["three"], protocol, metric=metric, names=names, replicates=200, **options
    )
    return {
        "sentences": made.sentences(),
        "difference": made.difference,
        "tables": {split: made.table(split) for split in made.splits},
        "most": [said(made.table(split, 1), 12) for split in made.splits],
        "document": said(made.to_dict(), 12),
    }


def replayed(found, protocol, metric="AP"):
    """Values, bands, positives, notices and outcomes of a protocol."""
    rules = trimmed(parse(protocol), metric)
    looked = Replay(*found, metric)
    value = looked.value(rules)
    made = {"value": said(value), "band": looked.band(rules), "positives": said(looked.positives(rules))}
    outcomes = [said(one) for one in looked.outcomes(rules, rules.iou_thresholds[0])]
    return {**made, "matchings": looked.matchings, "notices": said(looked.notices), "outcomes": outcomes}


def pair():
    objects, found = models()
    return objects, found["one"]


def strictly(name):
    """AP under a protocol, and under it with strict thresholds, or with others for a strict one."""
    truth, (one, _) = tables(name)
    source = PROTOCOLS[name]
    return explained((truth, one), source, replace(source, strict=not source.strict, name="other"))


PAIRS = [
    ("coco", "voc2007"), ("ultralytics", "coco"), ("torchmetrics", "supervision"), ("padilla", "mmeval-voc"),
    ("coco", "coco+min_score=0.3+max_dets=3"), ("voc2012", "cartucho"), ("coco", "coco"), ("coco", "coco+strict=yes"),
]  # fmt: skip
for _source, _target in PAIRS:
    KEPT.add(
        f"{_source} to {_target}", lambda source, target: explained(pair(), source, target, orders=4), _source, _target
    )
for _metric in ("AP50", "AP_small", "AP75"):
    KEPT.add(f"{_metric} of coco", lambda metric: explained(pair(), "coco", "coco+matching=best", metric), _metric)
for _name in ("nuscenes", "kitti", "crowdpose", "ytvis", "activitynet", "lvis", "coco-segm"):
    KEPT.add(f"{_name} to its strict rules", strictly, _name)
for _seed in range(2):
    KEPT.add(f"boxes {_seed} to voc2012", lambda seed: explained(boxes(seed), "coco", "voc2012"), _seed)
for _name in (
    "coco", "voc2007", "voc2012", "ultralytics", "padilla", "coco+scored_images=detected", "coco+use_categories=no",
    "coco+min_score=0.4", "coco+max_per_image=3", "coco+interpolation=step", "lvis", "torchmetrics",
):  # fmt: skip
    KEPT.add(f"values of {_name}", lambda name: replayed(pair(), name), _name)
for _name in (
    "coco+max_dets=2", "coco+max_per_image=4", "voc2012+max_per_image=4", "coco+matching=best", "coco+strict=yes",
    "coco+ties=file", "voc2012+min_score=0.4", "ultralytics+max_per_image=6", "coco+inclusive_pixels=yes",
    "coco+ignore=none", "coco+left_out=crowd",
    "coco+matching=by-object", "coco+box_decimals=0", "coco+score_decimals=1", "coco+id_zero=missed", "supervision",
):  # fmt: skip
    for _seed in (0, 1):
        KEPT.add(
            f"values of {_name} among the crowded {_seed}",
            lambda name, seed: replayed(crowded(seed), name),
            _name,
            _seed,
        )
for _first, _second in (("0.6", "0.75"), ("0.5", "0.6"), ("0.6", "0.5"), ("0.3:0.4:0.1", "0.35")):
    KEPT.add(
        f"thresholds {_first} and {_second}",
        lambda *pair: explained(crowded(1), *(f"coco+iou_thresholds={one}" for one in pair)),
        _first,
        _second,
    )
for _metric in ("nothing", "AP51", "class-1", "1", "", "AR_100"):
    KEPT.add(
        f"search of the metric {_metric!r}",
        lambda metric: search(detmap.find_value(*pair(), {metric: "0.5"}, most=1)),
        _metric,
    )
KEPT.add("under presets", lambda: [said(one, 12) for one in under_presets(*pair())])
KEPT.add(
    "under presets, AP50 of voc",
    lambda: [said(one, 12) for one in under_presets(*pair(), "voc2012", metric="AP50", reasons=False)],
)
for _value, _metric in (({"AP": "0.2", "AP50": "0.4"}, "AP"),):
    KEPT.add(f"search of {_value} {_metric}", searched, _value, _metric)
KEPT.add("survival", lambda: survived(survives(*models(images=6), replicates=200)))
KEPT.add(
    "survival of AP50 under voc2012",
    lambda: survived(survives(*models(images=6), "voc2012", metric="AP50", replicates=200, level=0.8)),
)
for _protocol, _metric in (
    ("coco", "AP"),
    ("coco", "AP50"),
    ("voc2007", "mAP"),
    ("coco+use_categories=no", "AP"),
):
    KEPT.add(f"contrast {_protocol} {_metric}", contrasted, _protocol, _metric)


def contrasted_images(names):
    """A contrast whose images have names, or of which all images but one have."""
    objects, found = models(images=12)
    objects = replace(objects, images=replace(objects.images, names=names))
    made = contrast(objects, found["two"], found["three"], replicates=200)
    return {"sentences": made.sentences(), "images": said(made.table("images"), 12)}


for _names in (tuple(f"{at}.jpg" for at in range(12)), ("", *(f"{at}.jpg" for at in range(11))), ()):
    KEPT.add(f"contrast of images {_names[:2]}", contrasted_images, _names)
KEPT.add("contrast with names", contrasted, "coco", names=("old", "new"), level=0.5, seed=3)


def ordered():
    objects, found = models()
    values = {name: values_under(objects, one, PROTOCOLS["coco"]) for name, one in found.items()}
    best = sorted(values, key=lambda name: -values[name]["value"])
    return {"values": said(values, 12), "orders": orders({name: values[name] for name in best})}


KEPT.add("orders", ordered)

QRELS, RUN = sample(3, queries=6)


def ranked(convention, run=RUN):
    return evaluate_run(QRELS, run, ["mAP", "ndcg"], convention)


def other():
    return {query: {name: -score for name, score in row.items()} for query, row in RUN.items()}


for _name in [name for name, one in CONVENTIONS.items() if not one.together]:
    KEPT.add(
        f"rankings, detmap to {_name}", lambda name: explain_run(QRELS, RUN, "detmap", name, orders=4).to_dict(), _name
    )


def survived_rankings(variants, fewer, metric):
    """Two systems, of which one may lack a query, and other rankings of both."""
    some = {query: row for at, (query, row) in enumerate(RUN.items()) if at != 3} if fewer else RUN
    second = {query: {name: round(score**3, 2) for name, score in row.items()} for query, row in some.items()}
    systems = {"one": ranked, "other": lambda one: ranked(one, second)}
    reversed_ones = {"one": lambda one: ranked(one, other()), "other": ranked}
    return survived(
        rankings_survive(
            systems, metric=metric, run=True, replicates=200, level=0.9,
            variants=[Variant("depth", "depth 5", reversed_ones)] if variants else (),
        )
    )  # fmt: skip


for _variants, _fewer, _metric in ((False, False, "mAP"), (True, True, "mAP"), (True, False, "ndcg")):
    KEPT.add(f"survival of rankings {_variants} {_fewer} {_metric}", survived_rankings, _variants, _fewer, _metric)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
