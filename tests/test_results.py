"""Results: names, per-category records, curves, counts, and the forms in which they leave."""

import json
import math
import pickle
import re
from pathlib import Path

import naive
import numpy as np
import pytest

import detmap
from detmap import results
from detmap.errors import InputError, MissingDependencyError, OptionError
from detmap.installation import install_command

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


@pytest.fixture(scope="module")
def tables():
    truth = detmap.read_coco(FIXTURES / "coco/ground_truth.json")
    return truth, detmap.read_coco_results(FIXTURES / "coco/detections.json", truth)


@pytest.fixture(scope="module")
def result(tables):
    return detmap.evaluate(*tables)


def test_a_result_is_a_read_only_mapping(result):
    names = "AP AP50 AP75 AP_small AP_medium AP_large AR_1 AR_10 AR_100 AR_small AR_medium AR_large"
    assert list(result) == names.split()
    assert len(result) == 12
    assert result["AP"] == result.AP
    assert "AP 0.4181" in repr(result)
    with pytest.raises(TypeError):
        result["AP"] = 1
    with pytest.raises(AttributeError, match="no attribute or metric 'AP99'"):
        _ = result.AP99
    with pytest.raises(ValueError, match="read-only"):
        result.precision[0] = 0
    expected = json.loads((FIXTURES / "coco/expected.json").read_text())["metrics"]
    assert dict(result) == expected


def test_names_follow_caps_and_areas(tables):
    result = detmap.evaluate(*tables, area_ranges={"whole": (0, 1e10), "tiny": (0, 400)}, max_dets=[500, 7])
    assert list(result) == ["AP", "AP50", "AP75", "AP_tiny", "AR_7", "AR_500", "AR_tiny"]
    assert not math.isnan(result.AP)
    assert "AR" in detmap.evaluate(*tables, max_dets=[None])


def test_shapes_and_means(result):
    assert result.precision.shape == (10, 101, 8, 4, 3)
    assert result.scores.shape == (10, 101, 8, 4, 3)
    assert result.recall.shape == (10, 8, 4, 3)
    for k, record in enumerate(result.per_category):
        assert record["AP"] == np.mean(result.precision[:, :, k, 0, 2])
        assert record["AP50"] == np.mean(result.precision[0, :, k, 0, 2])


def test_per_category_counts_and_best_f1_against_naive(result):
    for k, record in enumerate(result.per_category):
        rows = result.tally.category == k
        for t in (0, 5, 9):
            hit, ignored = (result.tally.bit(words, 0, t)[rows] for words in (result.tally.hit, result.tally.ignored))
            scores = result.tally.scores[rows]
            tp, fp, fn = naive.counts(scores, hit, ignored, record["positives"])
            assert (record["true_positives"][t], record["false_positives"][t], record["false_negatives"][t]) == (
                tp,
                fp,
                fn,
            )
            cut = float(np.median(scores))
            counted = result.counts(iou=result.protocol.iou_thresholds[t], score=cut)
            expected = naive.counts(scores, hit, ignored, record["positives"], cut)
            assert (counted.true_positives[k], counted.false_positives[k], counted.false_negatives[k]) == expected
            if t == 0:
                best = naive.best_f1(scores, hit, ignored, record["positives"])
                mine = tuple(record["best_f1"][name] for name in ("score", "f1", "precision", "recall"))
                assert mine == best


def test_curve(result):
    person = result.curve("person")
    k = [name for _, name in result.categories].index("person")
    assert np.array_equal(result.curve(result.categories[k][0]).precision, person.precision)
    assert np.all(np.diff(person.recall) >= 0)
    assert np.all(np.diff(person.scores) <= 0)
    assert np.all(np.diff(person.interpolated) <= 0)
    assert person.recall[-1] == result.recall[0, k, 0, 2]
    for r, value in zip(result.protocol.recall_thresholds, result.precision[0, :, k, 0, 2], strict=True):
        at = np.searchsorted(person.recall, r)
        assert value == (person.interpolated[at] if at < person.recall.size else 0)
    with pytest.raises(OptionError, match="category 'zebra' was not evaluated"):
        result.curve("zebra")
    with pytest.raises(OptionError, match=r"IoU 0\.42 was not evaluated"):
        result.curve("person", 0.42)


def test_json_frame_and_rows(result):
    document = json.loads(result.to_json())
    assert document["metrics"]["AP"] == result.AP
    assert set(document) == {"protocol", "metrics", "per_category", "notices"}
    frame = result.to_frame()
    assert list(frame["category"]) == [name for _, name in result.categories]
    assert frame["AP"].tolist() == [record["AP"] for record in result.per_category]
    assert {"TP@0.5", "FP@0.95", "best_f1", "best_f1_score"} < set(frame.columns)


def test_frame_without_pandas(result, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=re.escape(install_command("frames"))):
        result.to_frame()


def test_empty_and_undefined(tables):
    truth, found = tables
    nothing = detmap.Detections.from_arrays(image_ids=[], category_ids=[], boxes=[], scores=[])
    result = detmap.evaluate(truth, nothing)
    assert set(result.values()) == {0.0}
    assert result.notices["no_detections"] == 1
    assert math.isnan(result.per_category[0]["best_f1"]["f1"])
    bare = detmap.GroundTruth.from_arrays(
        image_ids=[], category_ids=[], boxes=[], images=truth.images.values, categories=[1, 2]
    )
    result = detmap.evaluate(bare, found)
    assert all(math.isnan(value) for value in result.values())
    assert result.notices["empty_categories"] == 2
    assert json.loads(result.to_json())["metrics"]["AP"] is None
    assert result.per_category[0]["positives"] == 0
    assert detmap.evaluate(bare, nothing, "voc2012").notices["empty_categories"] == 2


def test_swapped_and_foreign_arguments(tables):
    truth, found = tables
    with pytest.raises(InputError, match="swapped"):
        detmap.evaluate(found, truth)
    with pytest.raises(InputError, match="expected Detections, not set"):
        detmap.evaluate(truth, {1})
    with pytest.raises(InputError, match="image_ids"):
        detmap.evaluate(truth, found, image_ids=[10**9])
    with pytest.raises(OptionError, match=r"unknown protocol 'voc'; did you mean 'voc2007'.* voc2007, voc2012"):
        detmap.evaluate(truth, found, "voc")
    with pytest.raises(OptionError, match="threads"):
        detmap.evaluate(truth, found, threads=0)


def test_text_forms():
    rows = [{"name": "a|b", "value": 0.5}, {"name": "line\nbreak", "value": float("nan")}]
    assert results.to_text(rows) == "name          value\na|b          0.5000\nline\\nbreak       –"
    assert results.to_markdown(rows).splitlines()[2] == "| a\\|b | 0.5000 |"
    assert results.to_csv(rows) == "name,value\na|b,0.5\nline\\nbreak,\n"
    assert results.to_text([]) == results.to_markdown([]) == results.to_csv([]) == ""
    assert results.without_nan({"a": [np.float64("inf"), np.int64(3), np.array([1.5, np.nan])]}) == {
        "a": [None, 3, [1.5, None]]
    }


def test_what_the_caller_does_to_an_array_later_changes_nothing():
    boxes, scores = np.array([[0.0, 0, 5, 5]]), np.array([0.5])
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=boxes, scores=scores)
    boxes[:], scores[:] = np.nan, np.nan
    assert found.boxes.tolist() == [[0, 0, 5, 5]]
    assert found.scores.tolist() == [0.5]


def test_pickles_are_read_only_and_equal(tables, result):
    truth, found, tally = pickle.loads(pickle.dumps((*tables, result.tally)))
    for column in (truth.boxes, truth.images.codes, found.scores, tally.hit, detmap.Hits.from_ranks([[1]]).ranks):
        assert not column.flags.writeable
    assert dict(detmap.evaluate(truth, found)) == dict(result) == dict(detmap.DetectionResult(tally))
    error = pickle.loads(pickle.dumps(MissingDependencyError("a", "b", "c")))
    assert str(error) == f"c needs a: {install_command('b')}"


def test_curves_within_smaller_caps_are_made_when_asked_for(tables):
    """Metrics need none of them, and those within the largest cap are the same either way."""
    for protocol in ("coco", "voc2007"):
        result = detmap.evaluate(*tables, protocol)
        assert result.rows()
        assert result.summary()
        assert "_scored" not in vars(result)
        assert np.array_equal(result._largest.precision[..., 0], result.precision[..., -1], equal_nan=True)
        largest = result._largest.average_precision
        assert np.array_equal(largest[..., 0], result.average_precision[..., -1], equal_nan=True)
        assert ("_scored" in vars(result)) == (len(result.protocol.max_dets) > 1)  # of one cap they are there already
        assert result.scores.shape == result.precision.shape
        assert "_scored" in vars(result)
        assert np.array_equal(result._scored.precision, result.precision, equal_nan=True)
        copied = pickle.loads(pickle.dumps(result))
        assert np.array_equal(copied.precision, result.precision, equal_nan=True)
        assert not copied.precision.flags.writeable
        assert np.array_equal(copied.mean_precision(), result.mean_precision())


def test_a_property_that_fails_says_why(result):
    """Not that there is no such attribute, nor metric."""
    broken = pickle.loads(pickle.dumps(result))
    del broken._threads
    vars(broken).pop("_scored", None)
    with pytest.raises(AttributeError, match="'_threads'"):
        _ = broken.scores


def test_names_never_collide(tables):
    with pytest.raises(OptionError, match="an area range cannot be called '10'"):
        detmap.evaluate(*tables, area_ranges={"all": (0, 1e10), "10": (0, 100)})
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 1], category_ids=[1, 2], boxes=[[0, 0, 9, 9]] * 2, category_names={1: "cat", 2: "cat"}
    )
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 9, 9]], scores=[1])
    result = detmap.evaluate(truth, found, "voc2012")
    assert dict(result) == {"mAP": 0.5, "AP_cat_1": 1.0, "AP_cat_2": 0.0}


def test_a_computed_threshold_is_found(tables):
    result = detmap.evaluate(*tables, iou_thresholds="0.05:0.95:0.05")
    assert 0.5 not in result.protocol.iou_thresholds
    assert result.AP50 == detmap.evaluate(*tables).AP50


def test_categories_of_another_kind_are_refused(tables):
    truth, found = tables
    words = detmap.Detections.from_arrays(
        image_ids=found.images.values[found.images.codes],
        category_ids=found.categories.codes.astype(str),
        boxes=found.boxes,
        scores=found.scores,
    )
    with pytest.raises(InputError, match="category ids such as '0' never match the ground truth's, such as 1"):
        detmap.evaluate(truth, words)


def test_hits_are_checked():
    with pytest.raises(InputError, match="'starts': must ascend"):
        detmap.Hits(np.array([0, 10**7]), np.array([1]), np.array([10**7]), np.array([1]))
    with pytest.raises(InputError, match="'items': 2 values where 1 belong"):
        detmap.Hits(np.array([0, 1]), np.array([1]), np.array([1]), np.array([1, 2]))
    with pytest.raises(OptionError, match="a recall is NaN"):
        detmap.Hits.from_ranks([[1]]).interpolate([math.nan])
