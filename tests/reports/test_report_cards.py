"""The cards of a page's first screen: their sentences, and how long their bars are."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from diagnosed import tables as tables
from support import detections_of, ground_truth_of

import detmap
from detmap import retrieval
from detmap.reports import diagnosis, panoptic, rankings

# ------------------------------------------------------------------------------------------------------------ rankings


def worst_card(values):
    """The card of queries with these AP, of which one is undefined."""
    return rankings._worst_card(
        SimpleNamespace(values=np.array([math.nan, *values]), metrics={"mAP": "AP"}, metric="mAP")
    )


def test_the_share_of_the_worst_tenth():
    card = worst_card([1.0] * 9 + [0.0] * 2 + [0.5] * 10)
    assert card.text == (
        "The worst tenth of the queries (3 of 21, AP 0.500 or less) holds 36% of what is missing to mAP 1; 2 have AP 0. "
        "Half of all have 0.500 or more."
    )
    assert (card.filled, card.gain) == (64.29, 35.71)  # 2.5 of 7 are lost by these
    assert card.legend == (("fill", "lost by the other queries"), ("gain", "by the worst tenth"))


@pytest.mark.parametrize(("queries", "worst"), [(1, 1), (10, 1), (11, 2), (20, 2), (21, 3)])
def test_a_tenth_is_at_least_one_query(queries, worst):
    card = worst_card([0.75] * queries)
    assert f"({worst} of {queries}, AP 0.750 or less) holds {worst / queries:.0%} " in card.text
    assert "; none has 0. Half" in card.text
    assert card.gain == round(100 * worst / queries, 2)
    assert worst_card([1.0] * queries).text == "Nowhere: AP is 1 for every query."


@pytest.mark.parametrize(
    ("low", "high", "said", "bar"),
    [(0.25, 0.875, "Mean AP lies between 0.2500 and 0.8750, by the order of items of equal score.", (25.0, 62.5)),
     (1 / 3, 1.0, "Mean AP lies between 0.3333 and 1.0000, ", (33.33, 66.67)),
     (0.0, 1e-4, "Mean AP lies between 0.0000 and 0.0001, ", (0.0, 0.01)),
     (0.0, 0.99e-4, "Next to nothing: all orders of items of equal score are within 0.0001 of mean AP.", (0, 0)),
     (0.5, 0.50009, "Next to nothing: ", (0, 0)), (0.0, 1e-12, "Next to nothing: ", (0, 0)),
     (0.0, 0.99e-12, "Nothing: ", (0, 0)),
     (0.5, 0.5, "Nothing: ", (0, 0)),
     (math.nan, math.nan, "Nothing: ", (0, 0))],
)  # fmt: skip
def test_what_ties_could_change(low, high, said, bar):
    result = SimpleNamespace(tie_band_at={7: (low, high)}.get, convention=retrieval.CONVENTIONS["detmap"])
    card = rankings._ties_card(SimpleNamespace(result=result, depth=7))
    assert card.text.startswith(said)
    assert ("The number above is that of the rule index." in card.text) is bool(card.legend) is any(bar)
    assert (card.filled, card.gain) == bar


# ----------------------------------------------------------------------------------------------------------- detections


def test_what_costs_most(tables):
    """The errors in the order of what they cost, each beside the largest; the long bar is AP, and what would be added."""
    made = detmap.diagnose(*tables)
    tide, card = made.part("tide"), diagnosis._costs(made)
    rows = sorted(tide.rows(), key=lambda row: -row["dAP"])
    assert rows[0]["dAP"] > rows[1]["dAP"] > 0
    assert [bar.name.partition(",")[0] for bar in card.bars] == [row["error"] for row in rows]
    assert [bar.share for bar in card.bars] == [round(100 * row["dAP"] / rows[0]["dAP"], 1) for row in rows]
    assert [bar.shown for bar in card.bars] == [f"+{row['dAP']:.4f}" for row in rows]
    assert [bar.query for bar in card.bars] == [f"error={row['error']}" if row["count"] else "" for row in rows]
    assert (card.filled, card.gain) == (round(100 * tide["AP"], 2), round(100 * rows[0]["dAP"], 2))
    assert f"would be {tide['AP'] + rows[0]['dAP']:.4f} instead of {tide['AP']:.4f}." in card.text


def rows_of(*costs, ap, meaning="is odd"):
    """A diagnosis of which two kinds of errors cost so much."""
    errors = zip(["Cls", "Loc"], costs, strict=True)
    rows = [{"error": error, "meaning": meaning, "count": 1, "dAP": cost} for error, cost in errors]

    class Tide(dict):
        def rows(self):
            return rows

    return SimpleNamespace(part=lambda name: Tide(AP=ap), at="IoU 0.50")


def test_a_gain_ends_where_ap_is_1():
    card = diagnosis._costs(rows_of(0.5, -0.25, ap=0.75))
    assert (card.filled, card.gain) == (75.0, 25.0)
    assert [bar.share for bar in card.bars] == [100.0, 0.0]
    thirds = diagnosis._costs(rows_of(1 / 3, 1 / 9, ap=2 / 3))
    assert (thirds.filled, thirds.gain, thirds.bars[1].share) == (66.67, 33.33, 33.3)


@pytest.mark.parametrize(("meaning", "said"), [("is odd", "a detection that is odd"), ("an object", "an object")])
def test_what_an_error_means(meaning, said):
    assert diagnosis._costs(rows_of(0.5, 0.0, ap=0.5, meaning=meaning)).text.startswith(f"Cls costs most: {said}. ")


@pytest.mark.parametrize(
    ("cost", "ap", "said"),
    [(1.1e-9, 0.5, "Cls costs most: "), (1e-9, 0.5, "No kind of error costs any AP by itself."),
     (1e-9, 1 - 1e-10, "No error costs any AP."), (1e-9, 1.0, "No error costs any AP."),
     (1e-9, 1 - 1e-9, "No kind of error "), (1e-9, 1 - 2e-9, "No kind of error "),
     (0.5, math.nan, "Nothing can be said of errors: "),
     (0.0, math.nan, "Nothing can be said of errors: ")],
)  # fmt: skip
def test_what_costs_nothing(cost, ap, said):
    assert diagnosis._costs(rows_of(cost, 0.0, ap=ap)).text.startswith(said)


@pytest.mark.parametrize(("classes", "listed"), [(6, 0), (7, 6), (8, 6)])
def test_classes_are_listed_where_there_are_more_than_a_card_holds(classes, listed):
    """All objects are found, but for one of class 0; classes 0 and 2 have three, all others two."""
    boxes = [(k, [200.0 * k + 60 * n, 0.0, 50.0, 50.0]) for k in range(classes) for n in range(2 + (k in (0, 2)))]
    truth = ground_truth_of(
        {
            "images": [{"id": 1, "width": 9000, "height": 100}],
            "categories": [{"id": k, "name": f"c{k}"} for k in range(classes)],
            "annotations": [
                {"id": at + 1, "image_id": 1, "category_id": k, "bbox": box, "area": 2500.0, "iscrowd": 0}
                for at, (k, box) in enumerate(boxes)
            ],
        }
    )
    found = detections_of([{"image_id": 1, "category_id": k, "bbox": box, "score": 0.9} for k, box in boxes[1:]])
    model = SimpleNamespace(diagnosis=detmap.diagnose(truth, found), result=detmap.evaluate(truth, found))
    cards = diagnosis._worst_classes(model)
    assert len(cards) == bool(listed)
    for card in cards:
        assert card.text.startswith(f"The lowest AP of {classes} classes, ")
        assert [bar.query for bar in card.bars] == [f"class={k}" for k in (0, 2, 1, 3, 4, 5)]
        assert [bar.name for bar in card.bars] == list("021345")
        assert [bar.share for bar in card.bars] == [66.3, *[100.0] * 5]
        assert [bar.shown for bar in card.bars] == ["0.6634", *["1.0000"] * 5]


def test_bars_of_cuts_are_what_they_leave(tables):
    made = detmap.diagnose(*tables)
    card = diagnosis._threshold(SimpleNamespace(diagnosis=made, options={}))
    points = [one for one in made.part("operating_points").rows() if one["point"].startswith(("best", "precision"))]
    points = [one for one in points if not math.isnan(one["score"])]
    assert len(points) > 1
    assert [bar.share for bar in card.bars] == [round(100 * one["recall"], 1) for one in points]
    assert [bar.shown for bar in card.bars] == [f"{one['recall']:.4f}" for one in points]
    best = made.part("operating_points").rows()[0]
    assert card.text.startswith(f"Keep detections of score {best['score']:.3f} or more")
    assert f" with precision {best['precision']:.3f} and recall {best['recall']:.3f} at " in card.text
    assert [bar.name for bar in card.bars] == [f"{one['point']}: from {one['score']:.3f}" for one in points]


# ------------------------------------------------------------------------------------------------------------- panoptic


def test_what_better_outlines_would_give():
    card = panoptic._outlines_card({"PQ": 0.25, "RQ": 0.625})
    assert (card.filled, card.gain) == (25.0, 37.5)
    thirds = panoptic._outlines_card({"PQ": 1 / 3, "RQ": 1.0})
    assert (thirds.filled, thirds.gain) == (33.33, 66.67)
    assert "PQ would be 0.6250, which is RQ, " in card.text
    assert "The other 0.3750 are lost " in card.text
    assert panoptic._outlines_card({"PQ": math.nan, "RQ": math.nan}).text.startswith("Nothing can be said: ")


def test_segments_that_are_missed_and_false():
    card = panoptic._segments_card(SimpleNamespace(counts=np.array([[2, 3, 4, 9], [1, 1, 1, 9]])))
    assert card.text == "3 of 8 segments are matched (37.5%). Of 7 predicted segments 4 are false."
    assert (card.filled, card.gain) == (37.5, 62.5)
    assert panoptic._segments_card(SimpleNamespace(counts=np.array([[2, 0, 2, 9]]))).filled == 50.0
    thirds = panoptic._segments_card(SimpleNamespace(counts=np.array([[1, 0, 2, 9]])))
    assert (thirds.filled, thirds.gain) == (33.33, 66.67)
    none = panoptic._segments_card(SimpleNamespace(counts=np.array([[0, 3, 0, 9]])))
    assert (none.text, none.legend) == ("The ground truth has no segments.", ())
