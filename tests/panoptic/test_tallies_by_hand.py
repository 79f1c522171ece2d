"""A tally of segments by hand: counts, sums in parts, weights, means, and what is merged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from detmap.data.segments import Classes
from detmap.errors import OptionError
from detmap.panoptic.rules import Rules
from detmap.panoptic.tally import METRICS, PanopticTally, Sums

CLASSES = Classes((7, 3, 9), ("cat", "sky", "dog"), np.array([True, False, True]))


def tally(ids=(1, 2, 3), parts=1, **more):
    """Two matches of cats, one of sky; a false dog; a missed cat; on three images."""
    matched = np.array([0, 1, 1]), np.array([0, 0, 1])
    false, missed = (np.array([2]), np.array([2])), (np.array([2]), np.array([0]))
    objects = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 0])
    made = PanopticTally.of_segments(
        CLASSES,
        ids,
        (matched, false, missed, objects),
        np.array([0.75, 0.5, 0.625]),
        Rules(parts=parts),
        {"wrong_areas": 2},
    )
    return replace(made, **more)


def test_counts_and_sums():
    made = tally()
    assert made.categories == ((7, "cat"), (3, "sky"), (9, "dog"))
    assert repr(made) == "<PanopticTally: 3 images, 3 matched segments>"
    assert made.counts().tolist() == [[2, 0, 1, 3], [1, 0, 0, 1], [0, 1, 0, 0]]
    assert made.objects().tolist() == [[0, 0, 1], [0, 1, 1], [1, 1, 1], [0, 2, 1]]
    for parts in (1, 2, 3, 8):
        sums = tally(parts=parts).sums()
        assert sums.iou.tolist() == [1.25, 0.625, 0]
        assert (sums.tp.tolist(), sums.fp.tolist(), sums.fn.tolist()) == ([2, 1, 0], [0, 0, 1], [1, 0, 0])
    weighted = made.weighted(np.array([2, 1, 3]))
    assert weighted.iou.tolist() == [2.0, 0.625, 0]
    assert (weighted.tp.tolist(), weighted.fp.tolist(), weighted.fn.tolist()) == ([3, 1, 0], [0, 0, 3], [3, 0, 0])
    assert made.in_ranking_order() is made


def test_sums_in_parts_are_rounded_part_by_part():
    """Of five images, three are in the first of two parts."""
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.7])
    matched = np.arange(5), np.zeros(5, int)
    none = np.empty(0, int), np.empty(0, int)
    for parts, wanted in (
        (1, (((0.1 + 0.2) + 0.3) + 0.4) + 0.7), (2, ((0.1 + 0.2) + 0.3) + (0.4 + 0.7)),
        (3, ((0.1 + 0.2) + (0.3 + 0.4)) + 0.7), (4, (((0.1 + 0.2) + 0.3) + 0.4) + 0.7),
    ):  # fmt: skip
        made = PanopticTally.of_segments(
            CLASSES, range(5), (matched, none, none, matched), values, Rules(parts=parts), {}
        )
        assert made.sums().iou[0] == wanted
    empty = PanopticTally.of_segments(CLASSES, (), (none,) * 4, np.empty(0), Rules(), {})
    assert empty.sums().iou.tolist() == [0, 0, 0]
    assert empty.image_ids.dtype == np.int64


def test_qualities_and_means():
    sums = Sums(*(np.array(one, float) for one in ([1.5, 0, 0, 0.5], [2, 0, 0, 1], [1, 0, 2, 0], [1, 0, 0, 1])))
    made = sums.qualities()
    assert np.array_equal(made[0], [0.5, np.nan, 0, 0.5 / 1.5], equal_nan=True)
    assert np.array_equal(made[1], [0.75, np.nan, 0, 0.5], equal_nan=True)
    assert np.array_equal(made[2], [2 / 3, np.nan, 0, 1 / 1.5], equal_nan=True)
    means = dict(zip(METRICS, sums.means(np.array([True, True, False, False])).tolist(), strict=True))
    assert means == {
        "PQ": (0.5 + 0.5 / 1.5) / 3, "SQ": 1.25 / 3, "RQ": (2 / 3 + 1 / 1.5) / 3, "PQ_things": 0.5, "SQ_things": 0.75,
        "RQ_things": 2 / 3, "PQ_stuff": 0.5 / 1.5 / 2, "SQ_stuff": 0.25, "RQ_stuff": 1 / 1.5 / 2,
    }  # fmt: skip
    assert np.isnan(sums.means(np.zeros(4, bool))[3:6]).all()


def test_tallies_are_merged():
    whole = tally().merge(tally((4, 5, 6), notices={"wrong_areas": 3, "unread_predictions": 1}), tally((7, 8, 9)))
    assert whole.image_ids.tolist() == list(range(1, 10))
    assert whole.match_image.tolist() == [0, 1, 1, 3, 4, 4, 6, 7, 7]
    assert whole.match_category.tolist() == [0, 0, 1] * 3
    assert whole.match_iou.tolist() == [0.75, 0.5, 0.625] * 3
    assert whole.cell_image.tolist() == [0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 7, 7, 8, 8]
    assert whole.counts().tolist() == [[6, 0, 3, 9], [3, 0, 0, 3], [0, 3, 0, 0]]
    assert whole.notices == {"wrong_areas": 7, "unread_predictions": 1}
    assert whole.clusters is None
    assert (whole.match_image.dtype, whole.cell_image.dtype) == (np.int32, np.int32)
    own = tally(clusters=np.array([1, 1, 2])).merge(tally((4, 5, 6), clusters=np.array([3, 3, 3])))
    assert own.clusters.tolist() == [1, 1, 2, 3, 3, 3]
    stuff = CLASSES._replace(things=np.array([True, True, True]))
    other = CLASSES._replace(ids=(7, 3, 8))
    for wrong, says in (
        (tally((4, 5, 6), classes=stuff), "only tallies of the same categories and rules can be merged"),
        (tally((4, 5, 6), classes=other), "only tallies of the same categories and rules can be merged"),
        (tally((4, 5, 6), parts=2), "only tallies of the same categories and rules can be merged"),
        (tally((4, 5, 3)), "image 3 is in two of the tallies"),
        (tally((4, 5, 6), clusters=np.array([1, 1, 1])), "only some of the tallies have clusters"),
    ):
        with pytest.raises(OptionError) as caught:
            tally().merge(wrong)
        assert str(caught.value) == says
