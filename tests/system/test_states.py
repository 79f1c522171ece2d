"""A saved state says only what a tally can say, whoever sealed it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import detections_of, examples, ground_truth_of
from workloads import make_coco

import detmap
from detmap import Evaluator
from detmap.detection.protocols import resolve
from detmap.detection.tally import Tally
from detmap.errors import InputError, StateError
from detmap.hits import Hits
from detmap.kernels import readonly
from detmap.statistics import bootstrap

WORKLOAD = make_coco(3, images=6, categories=3)


def tally_of(protocol="coco", **options):
    truth, found = ground_truth_of(WORKLOAD[0]), detections_of(WORKLOAD[1])
    return detmap.match(truth, found, resolve(protocol, **options))


def changed(tally, name, change):
    column = np.array(getattr(tally, name))
    change(column)
    return replace(tally, **{name: readonly(column, column.dtype)})


def every_bit(tally):
    """All detections hits everywhere: recall was 18."""
    bits = np.uint64((1 << 40) - 1)
    hit, ignored = np.full_like(tally.hit, bits), np.zeros_like(tally.ignored)
    return replace(tally, hit=readonly(hit, np.uint64), ignored=readonly(ignored, np.uint64))


def one_hit_more(tally):
    """In one image a hit more than positives, though none too many over all images."""
    hit = tally.bit(tally.hit, 0, 0)
    for row in np.flatnonzero(~hit & ~tally.bit(tally.ignored, 0, 0)):
        k, i = tally.category[row], tally.image[row]
        pair = (tally.positive_category == k) & (tally.positive_image == i)
        full = tally.positive_counts[pair, 0].sum() == hit[(tally.category == k) & (tally.image == i)].sum()
        if full and tally.positives[k, 0] > tally.hit_counts[k, 0, 0]:
            return changed(tally, "hit", lambda hit, row=row: hit.__setitem__((row, 0), hit[row, 0] | np.uint64(1)))
    raise AssertionError("no such row")


def both(tally):
    row = int(np.flatnonzero(tally.hit[:, 0])[0])
    return changed(tally, "ignored", lambda ignored: ignored.__setitem__((row, 0), tally.hit[row, 0]))


def unranked(tally):
    """Two detections of one cell change their ranks."""
    cells = tally.image.astype(int) * 100 + tally.category
    first, second = next(np.flatnonzero(cells == cell)[:2] for cell in cells if np.count_nonzero(cells == cell) > 1)

    def swap(rank):
        rank[[first, second]] = rank[[second, first]]

    return changed(tally, "rank", swap)


FORGED = {
    "more hits than positives": every_bit,
    "more hits than positives in one image": one_hit_more,
    "a bit of no threshold, hit": lambda tally: changed(tally, "hit", lambda c: c.__setitem__((0, 0), 1 << 40)),
    "a bit of no threshold, ignored": lambda tally: changed(tally, "ignored", lambda c: c.__setitem__((0, 0), 1 << 63)),
    "a detection that is a hit and ignored at once": both,
    "ranks that are not those of the scores": unranked,
    "ranks that are not those of the scores, one twice": lambda tally: changed(
        tally, "rank", lambda rank: rank.__setitem__(int(np.argmax(rank)), 0)
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_resealed_tally_that_no_matching_makes_is_refused(name):
    tally = tally_of()
    assert Tally.from_bytes(tally.to_bytes()).to_bytes() == tally.to_bytes()
    forged = FORGED[name](tally).to_bytes()
    with pytest.raises(StateError, match="^not a tally: " + name.partition(",")[0].partition(" in one image")[0]):
        Tally.from_bytes(forged)


@pytest.mark.parametrize("name", FORGED)
def test_an_evaluator_does_not_take_such_a_tally_either(name):
    tally = tally_of()
    evaluator = Evaluator(categories=dict(tally.categories), iou_type="bbox")
    evaluator._take(tally, False)
    assert len(Evaluator.from_bytes(evaluator.to_bytes())) == 6
    evaluator._tally = FORGED[name](tally)
    with pytest.raises(StateError):
        Evaluator.from_bytes(evaluator.to_bytes())
    with pytest.raises(StateError):
        Evaluator(categories=dict(tally.categories)).load_state_dict(evaluator.state_dict())


PAIRS = ("positive_category", "positive_image", "positive_counts")


def test_pairs_that_repeat_are_refused():
    tally = tally_of()
    pairs = {name: np.concatenate([getattr(tally, name)[:1], getattr(tally, name)]) for name in PAIRS}
    forged = replace(tally, **{name: readonly(column, column.dtype) for name, column in pairs.items()})
    with pytest.raises(StateError, match="pairs with ground truth that do not ascend"):
        Tally.from_bytes(forged.to_bytes())


@pytest.mark.parametrize(
    "categories",
    [((1, "a"), ("2", "b"), (3, "c")), ((None, "a"), (2, "b"), (3, "c")), ((1, "a"), (None, "b"), (3, "c"))],
)
def test_categories_of_two_kinds_are_refused(categories):
    with pytest.raises(StateError, match="neither all integers nor all strings"):
        Tally.from_bytes(replace(tally_of(), categories=categories).to_bytes())


def test_places_in_the_file_are_checked():
    tally = tally_of("voc2012")
    negative = changed(tally, "order", lambda order: np.subtract(order, 10**6, out=order))
    with pytest.raises(StateError, match="a negative place in the file"):
        Tally.from_bytes(negative.to_bytes())
    evaluator = Evaluator("voc2012", categories=dict(tally.categories))
    evaluator._take(tally, False)  # whose places are not by image
    with pytest.raises(StateError, match="not in the order of their images"):
        Evaluator.from_bytes(evaluator.to_bytes())


@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 10**6),
    protocol=st.sampled_from(["coco", "voc2007", "voc2012"]),
    thresholds=st.sampled_from(
        [None, [0.5], np.linspace(0.01, 0.99, 64).tolist(), np.linspace(0.01, 0.99, 70).tolist()]
    ),
    caps=st.sampled_from([None, [1], [2, 5], [None]]),
    use_categories=st.booleans(),
)
def test_every_tally_there_is_passes_the_checks(seed, protocol, thresholds, caps, use_categories):
    dataset, results = make_coco(seed, images=5, categories=3)
    decided = resolve(protocol, iou_thresholds=thresholds, max_dets=caps, use_categories=use_categories)
    truth, found = ground_truth_of(dataset), detections_of(results)
    whole = detmap.match(truth, found, decided)
    images = whole.image_ids
    parts = [detmap.match(truth, found, decided, image_ids=images[i::2]) for i in (0, 1)]
    for tally in (whole, *parts, parts[0].merge(parts[1])):
        again = Tally.from_bytes(tally.to_bytes())
        assert again.to_bytes() == tally.to_bytes()
    bootstrap(Tally.from_bytes(whole.to_bytes()), 200)


def test_bits_turned_over_never_give_a_recall_above_one(monkeypatch):
    """What loads scores, and draws, within bounds."""
    monkeypatch.setattr("detmap.statistics.draws.FEWEST_REPLICATES", 1)
    tally = tally_of()
    rng = np.random.default_rng(5)
    loaded = 0
    for _ in range(examples(400)):
        forged = tally
        for name in rng.choice(["hit", "ignored", "rank", "positive_counts", "positive_image"], 2):
            column = np.array(getattr(forged, name))
            row = rng.integers(len(column))
            column[row] = column[row] ^ column.dtype.type(
                1 << int(rng.integers(0, 40 if column.dtype.itemsize == 8 else 3))
            )
            forged = replace(forged, **{name: readonly(column, column.dtype)})
        try:
            again = Tally.from_bytes(forged.to_bytes())
        except StateError:
            continue
        loaded += 1
        result = detmap.DetectionResult(again)
        assert not (result.recall > 1).any()
        made = bootstrap(again, 3)
        assert not (made.replicates > 1).any()
    assert loaded


def test_hits_are_never_more_than_positives():
    """However they are made: recall would be above 1."""
    with pytest.raises(InputError, match="hits: ranking 1: more hits than positives"):
        Hits(np.array([0, 1, 3]), np.array([1, 1, 2]), np.array([1, 1]), np.array([3, 3]))
    with pytest.raises(InputError, match="hits: ranking 0: more hits than positives"):
        Hits.from_ranks([[1, 2]], [1])
    with pytest.raises(InputError, match="more hits than positives"):
        Hits.from_ranks([[1, 2]]).cut(5, [1])
    with pytest.raises(InputError, match="more hits than positives"):
        Hits(np.array([0, 0]), np.empty(0, int), np.array([-1]), np.array([0]))
