"""Intervals of metrics, made anew from the text of docs/statistics.md alone: from the data set to both ends."""

import math

import naive_statistics
import numpy as np
import pytest
from executed import ROOT
from support import evaluate

import detmap
from detmap import statistics

pytest.importorskip("scipy.stats", reason="its quantiles are the reference")

THRESHOLDS = (0.5, 0.75)
PARAMS = {"iou_thresholds": THRESHOLDS, "max_dets": (100,)}


def scene(seed, images, detections):
    """Objects of two classes, the second on few images; a detector that finds most of them, more or less well."""
    rng = np.random.default_rng(seed)
    annotations, results = [], []
    for image in range(1, images + 1):
        for place in range(rng.integers(0, 4)):
            category = 1 if rng.random() < 0.8 else 2
            side = float(rng.integers(12, 60))
            box = [100.0 * place, 0.0, side, side]
            of = {"id": len(annotations) + 1, "image_id": image, "category_id": category}
            annotations.append({**of, "bbox": box, "area": side**2, "iscrowd": 0})
            if rng.random() < 0.8:
                moved = [box[0] + side * rng.uniform(0, 0.3), *box[1:]]
                results.append(
                    {"image_id": image, "category_id": category, "bbox": moved, "score": rng.random() ** 0.5}
                )
        for _ in range(rng.poisson(detections)):
            box = [100.0 * rng.integers(0, 4), 50.0, 30.0, 30.0]
            category = int(rng.integers(1, 3))
            results.append({"image_id": image, "category_id": category, "bbox": box, "score": rng.random()})
    dataset = {
        "images": [{"id": image} for image in range(1, images + 1)],
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        "annotations": annotations,
    }
    return dataset, results


def rules(made, thresholds, classes):
    """Of every column, in their order, how far from 0 and from 1 it must be."""
    count = {"AP50": 1, "AP75": 1}
    of_all = [naive_statistics.nearest(name[:2], count.get(name, thresholds), classes) for name in made.metrics]
    of_class = [
        naive_statistics.nearest("AP", count.get(name, thresholds), 1)
        for name in made.by_category
        for _ in made.categories
    ]
    return [*of_all, *of_class]


def assert_same(made, level, thresholds, classes, values=None):
    """The ends are those of the page; `values` are the metrics of the data, of replicates, and without each image."""
    estimate, replicates, jackknife = values or (made.estimate, made.replicates, made.jackknife)
    ends = made.interval(level)
    shown = opened = 0
    for column, (least, last) in enumerate(rules(made, thresholds, classes)):
        expected = naive_statistics.interval(
            estimate[column],
            [row[column] for row in replicates],
            [row[column] for row in jackknife],
            int(made.support[column]),
            level,
            least,
            last,
        )
        if expected is None:
            assert np.isnan(ends[column]).all()
            assert made.reasons()[column]
        else:
            assert ends[column] == pytest.approx(expected, rel=1e-12, abs=0)
            shown += 1
            opened += ends[column, 0] == 0 or ends[column, 1] == 1
    return shown, opened


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(("seed", "images", "detections", "fewest"), [(0, 16, 0.5, 5), (1, 18, 2.0, 5)])
def test_from_the_data_set_to_the_ends(seed, images, detections, fewest, monkeypatch):
    """Images are really drawn, duplicated and left out, scored by the naive twin, and the interval is by the formulas."""
    monkeypatch.setattr("detmap.statistics.draws.FEWEST_REPLICATES", 50)
    dataset, results = scene(seed, images, detections)
    made = statistics.bootstrap(evaluate(dataset, results, PARAMS), 50, 7)
    values = naive_statistics.resampled(dataset, results, PARAMS, 50, 7)
    assert made.estimate.tolist() == pytest.approx(values[0], rel=1e-12, nan_ok=True)
    shown, _ = assert_same(made, 0.95, len(THRESHOLDS), 2, values)
    assert shown >= fewest
    assert 0 < shown < made.estimate.size  # and some have none


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("thresholds", [None, (0.9,), (0.95,), (0.3,)])
def test_every_metric_and_class_of_the_example(thresholds):
    """Also at IoU 0.9 and more, where ends are open and many metrics have no interval."""
    truth = detmap.read_coco(ROOT / "fixtures/coco/ground_truth.json")
    found = detmap.read_coco_results(ROOT / "fixtures/coco/detections.json", truth)
    more = {} if thresholds is None else {"iou_thresholds": thresholds}
    made = statistics.bootstrap(detmap.evaluate(truth, found, **more), 200)
    for level in (0.5, 0.9, 0.95, 0.999):
        shown, opened = assert_same(made, level, 10 if thresholds is None else 1, 8)
        assert shown >= 10
        if level >= 0.95 and thresholds in ((0.9,), (0.95,)):
            assert opened


@pytest.mark.compiled
def test_groups_of_images_are_those_of_the_page():
    """More than 200 images: those at places of equal remainder are left out together."""
    dataset, results = scene(2, 203, 1.0)
    made = statistics.bootstrap(evaluate(dataset, results, PARAMS), 200)
    assert len(made.jackknife) == 200
    for group in (0, 2, 3, 199):
        counts = [int(place % 200 != group) for place in range(203)]
        expected = naive_statistics.coco_metrics(*naive_statistics.duplicated(dataset, results, counts), PARAMS)
        assert made.jackknife[group].tolist() == pytest.approx(expected, rel=1e-12, nan_ok=True)
    assert assert_same(made, 0.95, len(THRESHOLDS), 2)[0] >= 10
    assert not math.isnan(made.interval()[0, 0])
