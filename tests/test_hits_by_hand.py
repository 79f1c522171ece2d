"""Every function of hits by hand, or against plain lists: selections, ties, interpolations for detectors, and curves."""

from __future__ import annotations

import numpy as np
import pytest

import detmap
from detmap import hits as module
from detmap.errors import InputError, OptionError
from detmap.hits import Curve, Hits, average_precision, bends, best_f1, precision_recall_curve, sampled_mean


def drawn(seed, count=6):
    rng = np.random.default_rng(seed)
    rows = [sorted((rng.permutation(12)[: rng.integers(0, 6)] + 1).tolist()) for _ in range(count)]
    positives = [len(row) + int(rng.integers(0, 3)) for row in rows]
    items = [12 + int(rng.integers(0, 4)) for _ in rows]
    return rows, positives, items, Hits.from_ranks(rows, positives, items)


@pytest.mark.parametrize("seed", range(4))
def test_selections_are_those_of_lists(seed):
    rows, positives, items, hits = drawn(seed)
    assert len(hits) == len(rows)
    assert hits.counts.tolist() == [len(row) for row in rows]
    assert hits.first().tolist() == [row[0] if row else 0 for row in rows]
    assert hits.last().tolist() == [row[-1] if row else 0 for row in rows]
    for depth in (0, 1, 5, 12, [0, 3, 12, 1, 7, 6]):
        of = depth if isinstance(depth, list) else [depth] * len(rows)
        kept = [[rank for rank in row if rank <= most] for row, most in zip(rows, of, strict=True)]
        assert hits.within(depth).tolist() == [len(row) for row in kept]
        cut = hits.cut(depth, positives)
        assert cut.ranks.tolist() == [rank for row in kept for rank in row]
        assert cut.starts.tolist() == [0, *np.cumsum([len(row) for row in kept]).tolist()]
        assert cut.items.tolist() == items
    odd = hits.select(hits.ranks % 2 == 1, np.array(positives) + 1)
    assert odd.ranks.tolist() == [rank for row in rows for rank in row if rank % 2]
    assert odd.positives.tolist() == [n + 1 for n in positives]
    with np.errstate(invalid="ignore"):
        wanted = np.divide([len(row) for row in rows], positives)
    assert np.array_equal(hits.recall(), np.where(np.array(positives) > 0, wanted, np.nan), equal_nan=True)


def test_columns_of_hits_are_selected_together():
    hits = Hits(
        np.array([0, 2, 3]), np.array([1, 3, 2]), np.array([2, 1]), np.array([5, 5]), scores=np.array([0.9, 0.5, 0.7]),
        first_scores=np.array([0.9, 0.8]), grades=np.array([1, 2, 3]), ahead=np.array([0, 1, 1]), tied=np.array([1, 3, 1]),
    )  # fmt: skip
    kept = hits.select(np.array([False, True, True]), [1, 1])
    for name, values in {
        "starts": [0, 1, 2], "ranks": [3, 2], "scores": [0.5, 0.7], "grades": [2, 3], "ahead": [1, 1], "tied": [3, 1],
        "first_scores": [0.9, 0.8], "items": [5, 5], "positives": [1, 1],
    }.items():  # fmt: skip
        assert getattr(kept, name).tolist() == values
    assert kept.break_ties("reversed").ranks.tolist() == [3, 2]
    assert hits.break_ties("collapsed").ranks.tolist() == [1, 4, 2]
    assert hits.break_ties("collapsed").grades.tolist() == [1, 2, 3]
    assert hits.break_ties("best").ranks.tolist() == [1, 2, 2]
    assert hits.break_ties("worst").ranks.tolist() == [1, 4, 2]
    for rule in ("index", "docid", "docid-ascending", "expected"):
        assert hits.break_ties(rule) is hits
    plain = Hits.from_ranks([[1, 3]], [2])
    assert plain.break_ties("docid") is plain
    for rule in ("best", "expected", "reversed"):
        with pytest.raises(OptionError) as caught:
            plain.break_ties(rule)
        assert (
            str(caught.value) == f"ties={rule!r} needs scores: the tied items of a ranking as it stands are not known"
        )
    none = Hits.from_ranks([[]], [2])
    assert none.break_ties("best") is none
    assert none.break_ties("expected") is none
    with pytest.raises(OptionError, match=r"^unknown tie rule 'first'"):
        none.break_ties("first")


GOOD = {"starts": [0, 1, 3], "ranks": [1, 1, 2], "positives": [1, 2], "items": [3, 4]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"starts": [0, 3]}, "hits: field 'starts': must ascend from 0 to the number of hits"),
        ({"starts": [1, 1, 3]}, "hits: field 'starts': must ascend from 0 to the number of hits"),
        ({"starts": [0, 1, 2]}, "hits: field 'starts': must ascend from 0 to the number of hits"),
        ({"starts": [0, 1, 4]}, "hits: field 'starts': must ascend from 0 to the number of hits"),
        ({"starts": [0, 4, 3]}, "hits: field 'starts': must ascend from 0 to the number of hits"),
        ({"items": [3]}, "hits: field 'items': 1 values where 2 belong"),
        ({"items": []}, "hits: field 'items': 0 values where 2 belong"),
        ({"first_scores": [0.5]}, "hits: field 'first_scores': 1 values where 2 belong"),
        ({"scores": [0.5]}, "hits: field 'scores': 1 values where 3 belong"),
        ({"grades": [1, 2]}, "hits: field 'grades': 2 values where 3 belong"),
        ({"ahead": [1, 2, 3, 4]}, "hits: field 'ahead': 4 values where 3 belong"),
        ({"tied": [1]}, "hits: field 'tied': 1 values where 3 belong"),
        ({"positives": [1, 1]}, "hits: ranking 1: more hits than positives"),
        ({"positives": [0, 2]}, "hits: ranking 0: more hits than positives"),
    ],
)
def test_columns_that_do_not_belong_together(change, says):
    Hits(**{name: np.array(value) for name, value in GOOD.items()})
    with pytest.raises(InputError) as caught:
        Hits(**{name: np.array(value) for name, value in {**GOOD, **change}.items()})
    assert str(caught.value) == says


def test_where_a_curve_can_bend():
    places, found = bends(np.array([0, 3, 4]), 9)
    assert places.tolist() == [0, 2, 3, 3, 4, 8]
    assert found.tolist() == [1, 1, 2, 2, 3, 3]
    places, found = bends(np.array([1]), 2)
    assert (places.tolist(), found.tolist()) == ([0, 1, 1], [0, 1, 1])


def clipped(relevance, positives, epsilon=0.0):
    """nuScenes' rule: precision between items by straight lines, from recall 0.11 on, above 0.1."""
    true = np.cumsum(relevance)
    precision, recall = true / (np.arange(1, len(relevance) + 1) + epsilon), true / float(positives)
    read = np.interp(np.linspace(0, 1, 101), recall, precision, right=0)[11:] - 0.1
    return float(np.mean(np.where(read < 0, 0.0, read))) / (1.0 - 0.1)


def linear(relevance, positives, tail):
    """Ultralytics' rule: trapezoids over 101 recalls, read from lines between the points of the envelope."""
    true = np.cumsum(relevance)
    precision, recall = true / np.arange(1, len(relevance) + 1), true / positives
    ends = ([1.0], [0.0]) if tail else ([recall[-1], 1.0], [0.0, 0.0])
    recalls, values = np.concatenate([[0.0], recall, ends[0]]), np.concatenate([[1.0], precision, ends[1]])
    envelope = np.flip(np.maximum.accumulate(np.flip(values)))
    grid = np.linspace(0, 1, 101)
    read = np.interp(grid, recalls, envelope)
    return float((np.diff(grid) * (read[1:] + read[:-1]) / 2.0).sum())


@pytest.mark.parametrize("seed", range(6))
def test_interpolations_of_detectors(seed):
    rng = np.random.default_rng(seed)
    relevance = (rng.random(30) < rng.choice([0.1, 0.5, 0.9])).astype(int)
    relevance[rng.integers(0, 30)] = 1
    positives = int(relevance.sum()) + int(rng.integers(0, 4))

    def made(interpolation, **more):
        return average_precision(relevance, positives=positives, interpolation=interpolation, **more)

    assert made("101-clipped") == clipped(relevance, positives)
    assert made("101-clipped", epsilon=0.5) == clipped(relevance, positives, 0.5)
    for name, tail in (("101-linear", False), ("101-linear-tail", True)):
        assert made(name) == pytest.approx(linear(relevance, positives, tail), rel=1e-14)
    envelope = np.maximum.accumulate((np.cumsum(relevance) / np.arange(1, 31))[::-1])[::-1]
    recall = np.cumsum(relevance) / positives
    grid = [k * 0.1 if k <= 5 else 1 - (10 - k) * 0.1 for k in range(11)]
    total = 0.0
    for value in grid:
        reached = np.flatnonzero(recall >= value)
        total += (envelope[reached[0]] if reached.size else 0.0) / 11
    assert made("11-point-matlab") == total


def test_rankings_without_hits_or_positives():
    hits = Hits.from_ranks([[], [], [1]], [0, 2, 1], [3, 3, 3])
    for name in ("101-clipped", "101-linear", "101-linear-tail", "11-point-matlab", "sampled-40", "all-point-pairwise"):
        made = hits.average_precision(name)
        assert np.isnan(made[0])
        assert made[1] == 0.0
        assert made[2] > 0 or name == "sampled-40"
    with pytest.raises(OptionError, match=r"^unknown interpolation 'other'"):
        hits.average_precision("other")
    with pytest.raises(OptionError, match=r"^a recall is NaN$"):
        hits.interpolate([0.5, np.nan])


def test_kittis_means():
    values = np.arange(82.0).reshape(2, 41)
    assert sampled_mean(values, "sampled-40").tolist() == [sum(range(1, 41)) / 40, sum(range(42, 82)) / 40]
    assert sampled_mean(values, "sampled-11").tolist() == [sum(range(0, 41, 4)) / 11, sum(range(41, 82, 4)) / 11]
    assert sampled_mean(values[0], "sampled-40") == 20.5


def test_few_rankings_are_one_block():
    hits = Hits.from_ranks([[1]] * 65)
    assert module.blocks(hits.__class__.from_ranks([[1]] * 64), 4) == [(0, 64)]
    assert len(module.blocks(hits, 4)) == 16
    many = Hits.from_ranks([np.arange(1, (1 << 16) + 1), [1]])
    assert len(module.blocks(many, 4)) == 2
    assert module.blocks(Hits.from_ranks([np.arange(1, (1 << 16) + 1), []]), 4) == [(0, 2)]


RELEVANCE = "ranking: field 'relevance': "


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (([[1]],), f"{RELEVANCE}expected a flat sequence of relevances"),
        ((["1"],), f"{RELEVANCE}expected a flat sequence of relevances"),
        (([1.0, np.nan],), f"{RELEVANCE}a relevance is NaN"),
        (([1, 0], [0.5]), "ranking: field 'scores': 1 scores for 2 items"),
        (([1, 0], [0.5, np.nan]), "ranking: field 'scores': a score is NaN"),
    ],
)
def test_rankings_that_are_refused(given, says):
    for function in (average_precision, precision_recall_curve):
        with pytest.raises(InputError) as caught:
            function(*given)
        assert str(caught.value) == says


@pytest.mark.parametrize("positives", [1, 1.5, "2", True, -1])
def test_positives_that_are_refused(positives):
    with pytest.raises(InputError) as caught:
        average_precision([1, 1], positives=positives)
    says = "must be an integer of at least 2, the number of relevant items in the ranking"
    assert str(caught.value) == f"ranking: field 'positives': {says} (got {positives!r})"
    assert average_precision([1, 1], positives=2) == 1.0
    assert average_precision([1, 1], positives=np.int8(4)) == 0.5


def test_curves_by_hand():
    curve = precision_recall_curve([0, 1, 2.5, -1, 0.5], [0.1, 0.9, 0.5, 0.9, 0.3], positives=4, epsilon=0.5)
    assert curve.scores.tolist() == [0.9, 0.9, 0.5, 0.3, 0.1]
    assert curve.precision.tolist() == [1 / 1.5, 1 / 2.5, 2 / 3.5, 3 / 4.5, 3 / 5.5]
    assert curve.recall.tolist() == [0.25, 0.25, 0.5, 0.75, 0.75]
    assert curve.interpolated.tolist() == [1 / 1.5, 3 / 4.5, 3 / 4.5, 3 / 4.5, 3 / 5.5]
    plain = precision_recall_curve([1, 0, 1])
    assert plain.scores.size == 0
    assert plain.recall.tolist() == [0.5, 0.5, 1.0]
    none = precision_recall_curve([0, 0])
    assert np.isnan(none.recall).all()
    assert none.precision.tolist() == [0, 0]
    empty = precision_recall_curve([], positives=3)
    assert empty.precision.size == empty.interpolated.size == empty.recall.size == 0


def test_the_best_f1_by_hand():
    curve = precision_recall_curve([1, 0, 1, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], positives=4)
    assert curve.best_f1(4) == {"f1": 0.75, "score": 0.6, "precision": 0.75, "recall": 0.75}
    for curve, positives in ((precision_recall_curve([0, 0], [0.9, 0.8]), 0), (precision_recall_curve([], []), 2)):
        assert all(np.isnan(value) for value in curve.best_f1(positives).values())
    one = precision_recall_curve([1], [0.4], positives=3).best_f1(3)
    assert one == {"f1": 0.5, "score": 0.4, "precision": 1.0, "recall": 1 / 3}
    bits = np.array([[1], [2], [3], [0]], np.uint64)
    none = np.zeros_like(bits)
    scores = np.array([0.9, 0.8, 0.7, 0.6])
    for bit, wanted in ((0, [(0.8, 0.7, 2 / 3, 1.0)]), (1, [(0.8, 0.7, 2 / 3, 1.0)])):
        found = best_f1([0, 4], scores, bits, none, bit, [2])
        assert [tuple(row.values()) for row in found] == [pytest.approx(one, rel=1e-15) for one in wanted]
    ignored = best_f1([0, 4], scores, bits, np.array([[2], [0], [0], [0]], np.uint64), 1, [2])
    assert ignored == [{"f1": 1.0, "score": 0.7, "precision": 1.0, "recall": 1.0}]
    assert isinstance(Curve.from_flags(np.array([True]), scores[:1], 1), Curve)
    assert detmap.average_precision is average_precision
