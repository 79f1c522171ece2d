"""Equal scores with hits ahead of misses, as THUMOS14's first kit ranks them: one order for all thresholds, in tallies that
are merged, packed, saved, drawn anew and exchanged, in batches, diagnoses and explanations.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import naive_temporal
import numpy as np
import pytest
import temporal_scenes
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_result, examples, same_bits

import detmap
from detmap import batch, statistics
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.matches import HIT, IGNORED
from detmap.detection.packed import PackedTally, ShardedTally
from detmap.detection.protocols import PRESETS
from detmap.diagnostics._ranking import Ranking
from detmap.errors import StateError
from detmap.statistics.bootstrap import replicated
from detmap.statistics.resampled import PairedDetections

NAME = "thumos14-11"
THRESHOLDS = [tenths / 10 for tenths in range(1, 8)]
CLASSES = (7, 26)
SEEDS = range(100, 100 + examples(12))


def tables(objects, ambiguous, found):
    """Tables of the lines of files; ambiguous segments are crowds of every class."""
    videos = sorted({one[0] for one in (*objects, *ambiguous, *found)})
    sought = [(*one, 0) for one in objects] + [(*one[:3], label, 1) for one in ambiguous for label in CLASSES]
    truth = GroundTruth.from_arrays(
        image_ids=[one[0] for one in sought],
        category_ids=[one[3] for one in sought],
        segments=np.array([one[1:3] for one in sought], float).reshape(-1, 2),
        crowd=[one[4] for one in sought],
        images=videos,
        categories=CLASSES,
    )
    given = Detections.from_arrays(
        image_ids=[one[0] for one in found],
        category_ids=[one[3] for one in found],
        segments=np.array([one[1:3] for one in found], float).reshape(-1, 2),
        scores=[one[4] for one in found],
    )
    return truth, given


@cache
def scene(seed, videos=8):
    """Lines with scores of one decimal; each video has an object, so that all are drawn."""
    objects, ambiguous, found = temporal_scenes.thumos(seed, 1, videos)
    names = [f"video_test_{n:07d}" for n in range(videos)]
    objects += [(name, 80.0, 84.0, 7) for name in names]
    return objects, ambiguous, [one for one in found if one[0] in names]


def naive(objects, ambiguous, found):
    """AP by class and threshold."""
    rows = [naive_temporal.thumos(objects, ambiguous, found, CLASSES, at, eleven=True) for at in THRESHOLDS]
    return np.array(rows).T


def mean(table):
    return np.array([row.mean() for row in table.T]).mean()


def of_classes(result):
    return result.average_precision[:, :, 0, 0].T


@pytest.mark.parametrize("seed", SEEDS)
def test_the_twin(seed):
    lines = scene(seed)
    result = detmap.evaluate(*tables(*lines), NAME)
    assert same_bits(of_classes(result), naive(*lines))
    assert same_bits(result["mAP"], mean(naive(*lines)))


def test_the_order_matters():
    """In these scenes another order of equal scores gives another number."""
    assert any(
        detmap.evaluate(*tables(*scene(seed)), NAME)["mAP"]
        != detmap.evaluate(*tables(*scene(seed)), NAME, ties="image")["mAP"]
        for seed in SEEDS
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_merged_packed_and_saved(seed, monkeypatch):
    truth, found = tables(*scene(seed))
    whole = detmap.match(truth, found, NAME)
    ids = truth.images.ids
    parts = [detmap.match(truth, found, NAME, image_ids=ids[n::3]) for n in (2, 0, 1)]
    merged = parts[0].merge(*parts[1:])
    assert replace(merged, notices=whole.notices).to_bytes() == whole.to_bytes()  # notices are about a whole table
    assert detmap.Tally.from_bytes(whole.to_bytes()).to_bytes() == whole.to_bytes()
    monkeypatch.setattr("detmap.detection.packed.TOGETHER", 1)  # a category at a time
    packed = ShardedTally([PackedTally.of(part) for part in parts], [0, 0, 0], dict(whole.notices))
    assert packed.whole().to_bytes() == whole.to_bytes()
    assert_same_result(detmap.DetectionResult(packed), detmap.DetectionResult(whole))


def test_a_saved_tally_with_misses_first_is_refused():
    lines = [("v", 0.0, 4.0, 7)], [], [("v", 0.0, 4.0, 7, 0.5), ("v", 50.0, 54.0, 7, 0.5)]
    tally = detmap.match(*tables(*lines), NAME).in_ranking_order()
    assert tally.times_hit().tolist() == [7, 0]
    wrong = replace(tally, hit=tally.hit[::-1].copy())
    with pytest.raises(StateError, match="misses ahead of hits"):
        detmap.Tally.from_bytes(wrong.to_bytes())


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_and_exchanged(seed):
    """A replicate equals videos that are there as often as they were drawn, an exchange equals exchanged lines."""
    objects, ambiguous, found = scene(seed)
    truth, given = tables(objects, ambiguous, found)
    result = detmap.evaluate(truth, given, NAME)
    made = replicated(result, 4, seed)
    names = truth.images.ids.tolist()
    at = made.columns["mAP"]
    for r in range(4):
        counts = statistics.drawn(len(names), seed, r)
        copies = [(name, f"{name}-{copy}") for name, count in zip(names, counts, strict=True) for copy in range(count)]
        drawn = [
            [(new, *one[1:]) for old, new in copies for one in lines if one[0] == old]
            for lines in (objects, ambiguous, found)
        ]
        if {one[3] for one in drawn[0]} == set(CLASSES):
            assert same_bits(made.replicates[r, at], mean(naive(*drawn)))

    rng = np.random.default_rng(seed)
    other = [(*one[:4], float(rng.integers(0, 11) / 10)) for one in found if rng.random() < 0.9]
    tally = detmap.match(*tables(objects, ambiguous, other), NAME, image_ids=names)
    paired = PairedDetections(detmap.match(truth, given, NAME), tally, "mAP", False, None)
    swaps = rng.integers(0, 2, (5, len(names))).astype(np.uint8)
    values = paired.differences(5, lambda r: swaps[r], None)
    for r in range(5):
        swapped = dict(zip(names, swaps[r].tolist(), strict=True))
        first, second = (
            [one for lines, which in ((found, side), (other, 1 - side)) for one in lines if swapped[one[0]] == which]
            for side in (0, 1)
        )
        expected = mean(naive(objects, ambiguous, second)) - mean(naive(objects, ambiguous, first))
        assert same_bits(values[r, 0], expected)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", SEEDS)
def test_batches_comparisons_and_explanations(seed, tmp_path):
    lines = scene(seed)
    temporal_scenes.write_thumos(tmp_path, *lines)
    files = tmp_path / "annotation", tmp_path / "found.txt"
    expected = mean(naive(*lines))
    assert same_bits(detmap.evaluate(*files, NAME)["mAP"], expected)
    (scored,) = batch.score(files[0], [files[1]], NAME)
    assert same_bits(scored["mAP"], expected)
    sharded = batch.evaluate_shards(files[0], [files[1]], NAME)
    assert same_bits(sharded["mAP"], expected)
    fewer = [one for one in lines[2] if one[4] >= 0.4]
    tables_of = {"a": lines[2], "b": fewer}
    results = {model: detmap.evaluate(*tables(*lines[:2], own), NAME) for model, own in tables_of.items()}
    compared = detmap.compare(results, 200, permutations=9)
    some = mean(naive(*lines[:2], fewer))
    (made,) = compared.differences
    of = {"a": expected, "b": some}
    assert made.difference == pytest.approx(of[made.second] - of[made.first], abs=1e-12)
    made = detmap.explain(*files, "thumos14", NAME, metric="AP50")
    assert same_bits(made.target_value, naive(*lines)[:, 4].mean())


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(THRESHOLDS[1:]), st.data())
def test_diagnoses(seed, iou, data):
    """The ranking of a diagnosis has AP of scoring, and changed outcomes stand where hits and misses of their score do."""
    truth, found = tables(*scene(seed % 50))
    diagnosis = detmap.diagnose(truth, found, NAME, iou=iou)
    ranking = Ranking.of(diagnosis.matches, diagnosis.ranking.positives)
    result = detmap.evaluate(truth, found, NAME, iou_thresholds=[iou])
    assert same_bits(ranking.ap, result.average_precision[0, :, 0, 0])
    outcome = ranking.outcome.copy()
    for place in data.draw(st.lists(st.integers(0, max(len(outcome) - 1, 0)), max_size=6)):
        if outcome[place] != HIT:
            outcome[place] = IGNORED
    for k, (begin, end) in enumerate(zip(ranking.starts[:-1], ranking.starts[1:], strict=True)):
        rows = [
            (-score, what != HIT)
            for score, what in zip(ranking.scores[begin:end], outcome[begin:end], strict=True)
            if what != IGNORED
        ]
        flags = [not miss for _, miss in sorted(rows)]
        assert same_bits(ranking.ap_of(outcome)[k], naive_temporal.eleven_points(flags, ranking.positives[k]))


def test_a_mended_miss_becomes_a_hit_of_its_score():
    """Of equal scores the duplicate is left out and the badly placed detection counts as a hit, ahead of the stray one."""
    objects = [("a", 0.0, 10.0, 7), ("b", 0.0, 10.0, 7), ("c", 0.0, 10.0, 26)]
    found = [("a", 50.0, 60.0, 7, 0.5), ("b", 7.0, 17.0, 7, 0.5), ("c", 0.0, 10.0, 26, 0.5)]
    diagnosis = detmap.diagnose(*tables(objects, [], found), NAME, iou=0.5)
    tide = diagnosis.tide()
    assert tide["AP"] == pytest.approx(0.5)
    # Class 7: one hit at rank 1, of two objects, so six of eleven points are 1.
    assert tide["AP"] + tide["dAP_Loc"] == pytest.approx((6 / 11 + 1) / 2)


def test_nested_hits():
    """Hits at a threshold are hits at all lower ones, on which one order for all thresholds rests."""
    for seed in SEEDS:
        hit = detmap.match(*tables(*scene(seed)), NAME).hit[:, 0]
        assert (hit & (hit + np.uint64(1)) == 0).all()


def test_other_rules_rank_by_the_number_of_thresholds():
    """Under every other rule too equal scores are ranked by one order, whatever it finds."""
    truth, found = tables(*scene(3))
    for name in ("activitynet", "thumos14"):
        tally = detmap.match(truth, found, replace(PRESETS[name], name="other", ties="hits-first")).in_ranking_order()
        times, same = tally.times_hit(), (np.diff(tally.scores) == 0) & (np.diff(tally.category) == 0)
        assert same.any()
        assert (np.diff(times)[same] <= 0).all()
