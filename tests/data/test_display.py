"""Tables in a notebook and at the prompt: counts, first rows, rows by their numbers; and the two names of categories."""

import numpy as np
import pytest
from support import assert_same_result

import detmap
from detmap.errors import InputError, OptionError

BOXES = np.arange(48.0).reshape(12, 4)
IDS = np.arange(12) // 2
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def truth():
    return detmap.GroundTruth.from_arrays(image_ids=IDS, category_ids=IDS % 2, boxes=BOXES, category_names={0: HOSTILE})


@pytest.fixture
def found():
    names = np.array([HOSTILE, "b"])[IDS % 2]
    scores = np.linspace(0, 1, 12)
    corners = np.concatenate([BOXES[:, :2], BOXES[:, :2] + BOXES[:, 2:]], axis=1)
    return detmap.Detections.from_arrays(image_ids=IDS, labels=names, boxes=corners, scores=scores, box_format="xyxy")


def test_a_row_is_a_mapping_and_several_are_a_table(truth, found):
    assert truth[1] == {
        "image_id": 0,
        "category_id": 0,
        "category": HOSTILE,
        "bbox": [4.0, 5.0, 6.0, 7.0],
        "area": 42.0,
        "crowd": False,
        "difficult": False,
    }
    last = {"image_id": 5, "category_id": "b", "bbox_xyxy": [44.0, 45.0, 90.0, 92.0], "score": 1.0}
    assert found[-1] == found[np.int64(11)] == last
    assert [list(map(type, row.values())) for row in found] == [[int, str, list, float]] * 12
    for rows in (slice(2, 5), [2, 3, 4], np.arange(12) // 3 == 1):
        wanted = np.arange(12)[rows]
        assert (found[rows].scores == found.scores[wanted]).all()
        assert isinstance(truth[rows], detmap.GroundTruth)
        assert len(truth[rows]) == wanted.size
    assert found[-1:][0] == last
    for row in (12, -13):
        with pytest.raises(IndexError, match="the table has 12"):
            found[row]
    for row in ("boxes", True):
        with pytest.raises(InputError, match=r"indexed by rows, not by .*; columns are attributes: .*, boxes, scores"):
            found[row]


def test_a_notebook_shows_counts_and_the_first_rows_as_text(truth, found):
    for table, cells in ((truth, 10), (found, 7)):
        shown = table._repr_html_()
        assert shown.startswith(f'<div class="detmap"><p><strong>{repr(table)[1:-1]}</strong>')
        assert "<caption>the first 10 of 12</caption>" in shown
        assert shown.count("<td") == 10 * cells
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown
        assert "<caption" not in table[:10]._repr_html_()
        assert "<table" not in table[:0]._repr_html_()
    assert "2 detections" not in found._repr_html_()
    assert "12 on 6 images" in found._repr_html_()
    flat = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 0, 5]], scores=[1])
    assert "1 box of no width or height" in flat._repr_html_()


def test_labels_is_another_name_of_category_ids(truth, found):
    given = {"image_ids": IDS, "boxes": BOXES}
    other = detmap.GroundTruth.from_arrays(**given, labels=IDS % 2, category_names={0: HOSTILE})
    assert list(other) == list(truth)
    frame = truth.to_frame()
    assert list(detmap.GroundTruth.from_frame(frame, labels=1 - IDS % 2).categories.codes) == list(1 - IDS % 2)
    numbered = detmap.Detections.from_arrays(**given, labels=IDS % 2, scores=np.ones(12))
    for call in (detmap.evaluate, detmap.match_pairs, detmap.match):
        one, both = call(truth, numbered, category_ids=[1]), call(truth, numbered, labels=[1])
        assert repr(one) == repr(both)
        assert repr(one) != repr(call(truth, numbered))
        with pytest.raises(OptionError, match="two names for the same"):
            call(truth, numbered, category_ids=[1], labels=[1])
    for make, more in ((detmap.GroundTruth, {}), (detmap.Detections, {"scores": np.ones(12)})):
        with pytest.raises(OptionError, match="category_ids and labels are two names for the same: give one of them"):
            make.from_arrays(**given, **more, category_ids=IDS, labels=IDS)
        with pytest.raises(InputError, match=r"'category_ids': are missing; give category_ids=\.\.\."):
            make.from_arrays(**given, **more)


def test_updates_take_both_names_of_categories():
    results = []
    for name in ("labels", "category_ids"):
        evaluator = detmap.Evaluator()
        evaluator.update({"boxes": BOXES + 1, "scores": np.ones(12), name: IDS}, {"boxes": BOXES + 1, name: IDS})
        results.append(evaluator.compute())
    assert_same_result(*results)
    assert results[0]["AP50"] == 1
    with pytest.raises(OptionError, match="give one of them"):
        evaluator.update({"boxes": [], "scores": [], "labels": [], "category_ids": []}, {"boxes": [], "labels": []})
    with pytest.raises(InputError, match="there is no 'labels'"):
        evaluator.update({"boxes": [], "scores": []}, {"boxes": [], "labels": []})
