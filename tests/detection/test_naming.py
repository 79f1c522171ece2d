"""Metrics have names of their own, whatever classes are called."""

from __future__ import annotations

import pytest

import detmap
from detmap.detection.metric_names import distinct_names


def result_of(names, **options):
    """One object per class, found in all classes of even id."""
    ids = list(names)
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1] * len(ids), category_ids=ids, boxes=[[0, 0, 9, 9]] * len(ids), category_names=names
    )
    even = [key for key in ids if key % 2 == 0]
    found = detmap.Detections.from_arrays(
        image_ids=[1] * len(even), category_ids=even, boxes=[[0, 0, 9, 9]] * len(even), scores=[0.5] * len(even)
    )
    return detmap.evaluate(truth, found, "voc2012", **options)


@pytest.mark.parametrize(
    ("categories", "expected"),
    [
        (((1, "a"), (2, "b")), ["a", "b"]),
        (((1, "a"), (2, "a"), (3, "b")), ["a_1", "a_2", "b"]),
        (((1, "a"), (2, "a"), (3, "a_1")), ["a_1_1", "a_2", "a_1"]),
        (((1, "a"), (2, "a"), (3, "a_1"), (4, "a_1_1")), ["a_1_1_1", "a_2", "a_1", "a_1_1"]),
        (((1, "a_1"), (2, "a_1"), (11, "a"), (12, "a")), ["a_1_1", "a_1_2", "a_11", "a_12"]),
        ((("1_1", "a"), ("x", "a"), ("1", "a_1"), ("y", "a_1")), ["a_1_1", "a_x", "a_1_1_1", "a_1_y"]),
    ],
)
def test_names_of_classes_are_distinct(categories, expected):
    assert distinct_names(categories) == expected


def test_no_metric_vanishes_where_names_collide():
    result = result_of({0: "a", 1: "a", 2: "a_1", 3: "a_0"})
    assert list(result) == ["mAP", "AP_a_0_0", "AP_a_1_1", "AP_a_1", "AP_a_0"]
    assert list(result.values()) == [0.5, 1.0, 0.0, 1.0, 0.0]
    assert [row["metric"] for row in result.summary()] == ["mAP", "a_0_0", "a_1_1", "a_1", "a_0"]


def test_a_class_that_is_called_like_a_metric():
    result = result_of({1: "mAP", 2: "AP50", 3: "AP"})
    assert dict(result) == {"mAP": pytest.approx(1 / 3), "AP_mAP": 0.0, "AP_AP50": 1.0, "AP_AP": 0.0}
    assert [row["metric"] for row in result.summary()] == ["mAP", "AP_mAP", "AP50", "AP"]


def test_every_class_has_its_interval(tmp_path, capsys):
    """The command line finds the interval of a class by its name."""
    from types import SimpleNamespace

    from detmap.cli.output import show
    from detmap.statistics.result_intervals import add_intervals

    result = result_of({0: "a", 1: "a", 2: "a_1"})
    options = SimpleNamespace(rows=False, confidence=0.95, format="csv")
    add_intervals(result, 200, 0, "t", 0.95, None)
    show(result, options, "")
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["metric", "value", "low", "high", "bias", "images"]
    assert [row[0] for row in rows[1:]] == ["mAP", "AP_a_0", "AP_a_1_1", "AP_a_1"]
    assert [float(row[1]) for row in rows[2:]] == [1.0, 0.0, 1.0]
    assert len({row[-1] for row in rows[2:]}) == 1  # as many images hold each of them
