"""All that is said of intervals, comparisons and tests, under every option, is the text that is kept.

Figures have 12 digits, because logarithms and gamma functions of other systems differ in the last bits.
"""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
import pytest
from kept import Kept, said
from kept_scenes import PROTOCOLS, tables
from test_presets import tables as tables_of
from test_presets import workload

import detmap
from detmap import statistics
from detmap.hits import SAMPLED
from detmap.statistics import bootstrap_queries, compare_queries, intervals, permutation, queries, tests

KEPT = Kept("statistics", digits=12)


@functools.cache
def results(name="coco", images=14):
    """Three models on the same images: of the second, scores are others, and of the third, boxes of a class are lost."""
    truth, found = workload(4, images=images)
    rng = np.random.default_rng(4)
    other = [(i, c, box, float(np.clip(s + rng.normal(0, 0.3), 0.01, 1))) for i, c, box, s in found]
    lost = [row for row in found if row[1] != 2 or rng.random() < 0.2]
    ground_truth, first = tables_of(truth, found, images=images)
    every = {
        "one": first,
        **{key: tables_of(truth, of, images=images)[1] for key, of in (("other", other), ("lost", lost))},
    }
    return {key: detmap.evaluate(ground_truth, table, name) for key, table in every.items()}


def intervals_of(name, method, level=0.95, clusters=None):
    made = statistics.bootstrap(results(name)["one"], 200, 3, method=method, clusters=clusters)
    return {
        **made.to_dict(level),
        "near": said(made.near, 12),
        "balance": said([made.balance_of(at) for at in range(len(made.estimate))], 12),
        "standard_error": said(made.standard_error(), 12),
        "replicates": said(made.replicates, 12),
        "jackknife": said(made.jackknife, 12),
    }


def of_result(name, method, level):
    truth, (one, _) = tables(name)
    result = detmap.evaluate(truth, one, PROTOCOLS[name], bootstrap=200, method=method, level=level)
    return {
        "repr": repr(result.intervals),
        "summary": result.summary(),
        "class_summary": result.class_summary(),
        "rows": said(result.rows(), 12),
        "sentences": result.intervals.sentences(categories=True),
        "document": said(result.intervals.to_dict(), 12),
    }


def compared(models, **options):
    made = detmap.compare(models, 200, 5, **options)
    return {
        "text": str(made),
        "document": made.to_dict(),
        "html": said(made._repr_html_(), 12),
        "alpha": made.alpha,
        "could": [made.could_tell(family) for family in made.families],
        "tests": [
            {
                "pair": said(pair),
                "p": said(one.p_values(), 12),
                "interval": said(one.interval(), 12),
                "extreme": said(one.extreme),
                "permutations": said(one.permutations),
                "exact": said(one.exact),
                "support": said(one.support),
                "differences": said(one.differences, 12),
            }
            for pair, one in made.permutations.items()
        ],
    }


CLUSTERS = [0, 0, 1, 1, 1, 2, 3, 4, 5, 5, 6, 7, 8, 8]

for _name, _method in product(("coco", "voc2007", "ultralytics"), intervals.METHODS):
    KEPT.add(f"intervals {_name} {_method}", intervals_of, _name, _method)
KEPT.add("intervals of level 0.5", intervals_of, "coco", "t", 0.5)
for _method in intervals.METHODS:
    KEPT.add(f"intervals of clusters {_method}", intervals_of, "coco", _method, clusters=CLUSTERS)
for _name, _method, _level in (
    ("coco", "t", 0.95), ("kitti", "bca", 0.9), ("nuscenes", "t", 0.8), ("lvis", "percentile", 0.95),
    ("openimages", "t", 0.99),
    ("ytvis", "bca", 0.95), ("activitynet", "t", 0.95), ("crowdpose", "t", 0.95), ("voc2012", "bca", 0.95),
):  # fmt: skip
    KEPT.add(f"result {_name} {_method} {_level}", of_result, _name, _method, _level)

for _count in (2, 3):
    KEPT.add(
        f"comparison of {_count}",
        lambda count: compared(dict(list(results().items())[:count]), permutations=300),
        _count,
    )
for _name in ("voc2007", "cartucho"):
    KEPT.add(f"comparison {_name}", lambda name: compared(results(name), permutations=250), _name)
for _correction in tests.CORRECTIONS:
    KEPT.add(
        f"comparison with {_correction}",
        lambda correction: compared(results(), permutations=250, correction=correction, level=0.9, metric="AP50"),
        _correction,
    )
for _method in intervals.METHODS:
    KEPT.add(f"comparison {_method}", lambda method: compared(results(), permutations=250, method=method), _method)
KEPT.add("comparison of clusters", lambda: compared(results(), permutations=250, clusters=CLUSTERS))


def compared_under(name):
    """Two models compared under rules with groups of classes or images, and with errors of true positives."""
    truth, (one, other) = tables(name)
    made = detmap.compare(truth, {"one": one, "other": other}, PROTOCOLS[name], replicates=200, permutations=250)
    return {"text": str(made), "document": said(made.to_dict(), 12)}


for _name in ("crowdpose", "lvis", "nuscenes", "kitti"):
    KEPT.add(f"comparison under {_name}", compared_under, _name)


def p_values(name, metric, permutations, **decisions):
    """The p-values of a metric, with which `permute` agrees to the bit."""
    truth, found = tables(name)
    one, other = (detmap.match(truth, table, PROTOCOLS[name], **decisions) for table in found)
    return [permutation.p_value(one, other, permutations, seed, metric) for seed in (0, 5)]


for _name, _metric, _options in (
    ("coco", "AP", {}), ("coco", "AP50", {}), ("coco", "AP_small", {}), ("coco", "AR_10", {}), ("lvis", "AP", {}),
    ("lvis", "APr", {}), ("coco", "AP", {"empty_classes": "zero"}), ("coco", "AP", {"iou_thresholds": (0.3,)}),
    ("coco", "AP", {"interpolation": "all-point", "recall_thresholds": (0.0,)}), ("coco", "AP", {"max_dets": (1,)}),
):  # fmt: skip
    for _permutations in (0, 1, 100, 300):
        KEPT.add(
            f"p of {_name} {_metric} {_options} {_permutations}", p_values, _name, _metric, _permutations, **_options
        )


def drawn(name, **decisions):
    """Intervals of all columns under rules of which few tools decide."""
    truth, (one, _) = tables(name)
    made = statistics.bootstrap(detmap.match(truth, one, PROTOCOLS[name], **decisions), 200, 1)
    return {"document": said(made.to_dict(), 12), "replicates": said(made.replicates, 12)}


for _name, _options in (
    *(("coco", {"interpolation": name, "max_dets": (3,)}) for name in SAMPLED), ("lvis", {"groups": ("r", "f")}),
    ("lvis", {"pooled": True, "groups": ("c",)}), ("coco", {"use_categories": False}), ("coco", {"max_per_category": 9}),
):  # fmt: skip
    KEPT.add(f"intervals of {_name} {_options}", drawn, _name, **_options)
KEPT.add("comparison of few images", lambda: compared(results(images=5)))


def queries_of(size, tied):
    rng = np.random.default_rng(size)
    values = {name: rng.random(size) ** power for name, power in (("one", 1), ("two", 1.1), ("three", 2.5))}
    return {name: np.round(one, 1) for name, one in values.items()} if tied else values


def of_queries(size, tied, method, correction):
    made = compare_queries(
        queries_of(size, tied), tests.TESTS, replicates=200, seed=2, method=method, correction=correction, level=0.9
    )
    return {
        "rows": [said(one, 12) for one in made],
        "disagrees": said([one.disagrees(alpha) for one in made for alpha in (0.05, 0.5)]),
    }


def interval_of_queries(size, method):
    values = {**queries_of(size, False), "none": np.zeros(size), "all": np.ones(size)}
    return bootstrap_queries(values, 200, 1, method=method, limits={"two": (0.0, 2.0)}).to_dict()


for _size, _tied in ((2, False), (5, True), (12, False), (30, True)):
    for _method, _correction in zip(intervals.METHODS, (*tests.CORRECTIONS, "holm"), strict=False):
        KEPT.add(f"queries {_size} {_tied} {_method} {_correction}", of_queries, _size, _tied, _method, _correction)
    for _method in intervals.METHODS:
        KEPT.add(f"intervals of queries {_size} {_tied} {_method}", interval_of_queries, _size, _method)
for _numbers in ([3], [3, 4], [4, 5, 6], [30, 2], [6] * 12):
    for _correction in tests.CORRECTIONS:
        KEPT.add(f"too few of {_numbers} {_correction}", queries.too_few_queries, _numbers, _correction)
KEPT.add(
    "permutations needed",
    lambda: [permutation.permutations_needed(size, alpha) for size in (1, 2, 3, 45) for alpha in (0.05, 0.1, 0.5)],
)
KEPT.add(
    "testable",
    lambda: said(
        [permutation.testable(images, alpha, pairs) for images in ([0, 3, 6, 9, 40], [5], []) for alpha in (0.05, 0.2)
         for pairs in (1, 3)]
    ),
)  # fmt: skip


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
