"""Segments of time: ActivityNet's and THUMOS14's rules against naive twins, on their files and on real expectations."""

from __future__ import annotations

import json
from pathlib import Path

import naive_temporal
import numpy as np
import pytest
import temporal_scenes
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_result, examples, same_bits

import detmap
from detmap.detection.protocols import PRESETS

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "temporal"
SEEDS = range(examples(12))


def written(folder, truth, results):
    paths = folder / "truth.json", folder / "found.json"
    paths[0].write_text(json.dumps({"version": "1.3", "taxonomy": [], "database": truth}))
    paths[1].write_text(json.dumps({"version": "1.3", "results": results, "external_data": {}}))
    return paths


def of_classes(result):
    return {name: result.average_precision[:, k, 0, 0].tolist() for k, (_, name) in enumerate(result.categories)}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("whole", [False, True])
def test_activitynet(seed, whole, tmp_path):
    """AP of every class at every threshold, and both means, to the last bit; with ties, segments without length, and
    detections in videos of other subsets and of none.
    """
    truth, results = temporal_scenes.scene(seed, videos=10, unknown=True, whole=whole)
    result = detmap.evaluate(*written(tmp_path, truth, results), "activitynet")
    thresholds = np.linspace(0.5, 0.95, 10)
    labels, table = naive_temporal.activitynet(truth, results, thresholds)
    assert [name for _, name in result.categories] == labels
    assert same_bits(list(of_classes(result).values()), table.T)
    assert same_bits([result[f"AP{100 * one:.6g}"] for one in thresholds], table.mean(axis=1))
    assert same_bits(result["mAP"], table.mean(axis=1).mean())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["thumos14", "thumos14-11"])
@pytest.mark.parametrize("decimals", [4, 1])
def test_thumos(seed, name, decimals, tmp_path):
    """AP of every class at every threshold to the last bit, without equal scores and with many."""
    objects, ambiguous, found = temporal_scenes.thumos(seed, decimals)
    assert {one[3] for one in objects} == {7, 26}
    temporal_scenes.write_thumos(tmp_path, objects, ambiguous, found)
    result = detmap.evaluate(tmp_path / "annotation", tmp_path / "found.txt", name)
    thresholds = [tenths / 10 for tenths in range(1, 8)]
    table = [naive_temporal.thumos(objects, ambiguous, found, (7, 26), one, name != "thumos14") for one in thresholds]
    assert [key for key, _ in result.categories] == [7, 26]
    assert same_bits(list(of_classes(result).values()), np.array(table).T)


@pytest.mark.real_data
@pytest.mark.skipif(not DATA.exists(), reason="real data is not there: ../shared/data")
def test_expected_values():
    expected = json.loads((DATA / "expected.json").read_text())
    own = expected["anet"]["stable_sort_reversed"]
    result = detmap.evaluate(DATA / "anet_gt.json", DATA / "anet_pred.json", "activitynet")
    assert of_classes(result) == own["ap"]
    assert same_bits([result[f"AP{100 * one:.6g}"] for one in own["tiou"]], own["mAP"])
    assert same_bits(result["mAP"], own["average_mAP"])
    files = DATA / "thumos" / "annotation", DATA / "thumos" / "detections.txt"
    rules = {"thumos14": "updated_kit", "thumos14-11": "original_kit_11_points", "activitynet": "activitynet_rule"}
    for protocol, rule in rules.items():
        own = expected["thumos"][rule]
        result = detmap.evaluate(*files, protocol, iou_thresholds=expected["thumos"]["tiou"])
        assert {**of_classes(result), "mAP": own["mAP"]} == own
        assert same_bits([result[f"AP{100 * one:.6g}"] for one in expected["thumos"]["tiou"]], own["mAP"])


times = st.integers(0, 40).map(float)
segments = st.lists(st.tuples(times, times).map(sorted), max_size=12)


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(segments, segments, st.data())
def test_laws(objects, found, data):
    """A shift and a change of the unit of time by powers of two change nothing, nor does the split of the videos."""
    place = st.integers(0, 3)
    videos = [[data.draw(place) for _ in rows] for rows in (objects, found)]
    scores = [data.draw(st.sampled_from([0.25, 0.5, 0.75])) for _ in found]
    for name in ("activitynet", "thumos14", "thumos14-11"):

        def tables(change, rows=slice(None)):
            both = [np.array(change(np.array(one, float).reshape(-1, 2))) for one in (objects, found)]
            common = {"categories": [1], "images": range(4)}
            truth = detmap.GroundTruth.from_arrays(
                image_ids=videos[0], category_ids=[1] * len(objects), segments=both[0], **common
            )
            return truth, detmap.Detections.from_arrays(
                image_ids=videos[1], category_ids=[1] * len(found), segments=both[1], scores=scores
            )

        whole = detmap.evaluate(*tables(lambda ends: ends), name)
        for change in (lambda ends: ends + 64.0, lambda ends: ends / 8, lambda ends: ends * 1024):
            assert same_bits(list(detmap.evaluate(*tables(change), name).values()), list(whole.values()))
        parts = [detmap.match(*tables(lambda ends: ends), name, image_ids=part) for part in ([0, 2], [1], [3])]
        assert_same_result(detmap.DetectionResult(parts[2].merge(parts[0], parts[1])), whole)


def test_a_second_best_object_is_matched():
    """The example of a detection that takes the second best object, which VOC's rule would not."""
    truth = detmap.GroundTruth.from_arrays(image_ids=["v"] * 2, category_ids=[1, 1], segments=[[0, 10], [1, 10]])
    found = detmap.Detections.from_arrays(
        image_ids=["v"] * 2, category_ids=[1, 1], segments=[[0, 10], [0, 10]], scores=[0.9, 0.8]
    )
    assert detmap.evaluate(truth, found, "activitynet")["AP50"] == 1.0
    assert detmap.evaluate(truth, found, "activitynet", matching="best")["AP50"] == 0.5


def test_objects_choose_under_thumos():
    """The better placed detection is the hit, not the more confident one; one that touches an ambiguous segment is none."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=["v"] * 2, category_ids=[1, 1], segments=[[0, 10], [30, 40]], crowd=[0, 1]
    )
    found = detmap.Detections.from_arrays(
        image_ids=["v"] * 3, category_ids=[1] * 3, segments=[[0, 9], [0, 10], [39, 90]], scores=[0.9, 0.8, 0.95]
    )
    matches = detmap.match_pairs(truth, found, "thumos14", iou=0.5)
    assert dict(zip(matches.detection.tolist(), matches.outcome.tolist(), strict=True)) == {0: 0, 1: 1, 2: 2}
    assert detmap.evaluate(truth, found, "thumos14")["AP50"] == 0.5


@pytest.mark.parametrize(
    ("truth", "found", "expected"),
    [
        ({"database": {"v": {"subset": "training"}}}, {}, "no videos of the subset 'validation', only of: 'training'"),
        ({"database": []}, {}, "database: expected `object`"),
        (
            {"database": {"v": {"subset": "validation", "annotations": [{"label": "a", "segment": [2]}]}}},
            {},
            "v', annotations[0], field 'segment'",
        ),
        (
            {"database": {"v": {"subset": "validation", "annotations": [{"label": "a", "segment": [2, 1]}]}}},
            {},
            "lies before",
        ),
        (
            None,
            {"results": {"v": [{"label": "a", "segment": [1, 2]}]}},
            "v', record 0: object missing required field `score`",
        ),
        (None, {"results": {"v": [{"label": "a", "segment": [1, 1e400], "score": 1}]}}, "JSON"),
        (None, {"results": {"v": [{"label": "a", "segment": [1, "2"], "score": 1}]}}, "expected `float`, got `str`"),
    ],
)
def test_bad_json(truth, found, expected, tmp_path):
    good = {"v": {"subset": "validation", "annotations": [{"label": "a", "segment": [0, 1]}]}}
    paths = tmp_path / "truth.json", tmp_path / "found.json"
    paths[0].write_text(json.dumps({"database": good} if truth is None else truth))
    paths[1].write_text(json.dumps(found or {"results": {}}).replace("Infinity", "1e400"))
    with pytest.raises(detmap.InputError) as error:
        detmap.evaluate(*paths, PRESETS["activitynet"])
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("v 1 2 7", "line 3: has 4 fields where 5 are expected"),
        ("v 1 x 7 0.5", "must be a finite number"),
        ("v 1 2 7.5 0.5", "must be the number of a class"),
        ("v 3 2 7 0.5", "line 3, field 'segments': the end lies before the start"),
    ],
)
def test_bad_lines(line, expected, tmp_path):
    objects = [("v", 0.0, 1.0, 7), ("v", 0.0, 1.0, 26)]
    temporal_scenes.write_thumos(tmp_path, objects, [], [("v", 0.0, 1.0, 7, 0.5)] * 2)  # most lines are right
    with (tmp_path / "found.txt").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(detmap.InputError, match=expected):
        detmap.evaluate(tmp_path / "annotation", tmp_path / "found.txt", "thumos14", iou_thresholds=[0.5])
