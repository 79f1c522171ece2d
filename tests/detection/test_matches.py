"""Rows of matches: their outcomes are the tally's bits, and every column is the naive twin's."""

from __future__ import annotations

import dataclasses
import operator
import pickle

import large_workloads
import naive
import numpy as np
import pytest
import workloads
from hypothesis import given, settings
from hypothesis import strategies as st
from support import detections_of, examples, ground_truth_of, options_of, tables_of_arrays

import detmap
from detmap.detection.matches import Matches, match_pairs
from detmap.detection.protocols import PRESETS, resolve
from detmap.errors import InputError, OptionError

PRESET = st.sampled_from(["coco", "voc2007", "voc2012"])
COLUMNS = [f.name for f in dataclasses.fields(Matches)][5:-1]


def decided(params, name):
    options = options_of(params)
    names = ("iou_thresholds", "recall_thresholds", "area_ranges", "max_dets", "use_categories")
    selection = {key: options[key] for key in ("image_ids", "category_ids")}
    return resolve(name, **{key: options[key] for key in names}), selection


def assert_law(truth, found, protocol, selection):
    """At every threshold and area range: outcomes are the tally's bits, and missed objects its false negatives."""
    tally = detmap.match(truth, found, protocol, **selection)
    rows = np.lexsort((tally.rank, tally.category, tally.image))
    category_of = {key: k for k, (key, _) in enumerate(tally.categories)}
    keys = truth.categories.values[truth.categories.codes].tolist()
    for a, (area, _, _) in enumerate(protocol.area_ranges):
        for t, iou in enumerate(protocol.iou_thresholds):
            matches = match_pairs(truth, found, protocol, iou=iou, area=area, **selection)
            hit, ignored = (tally.bit(words, a, t)[rows] for words in (tally.hit, tally.ignored))
            assert not (hit & ignored).any()
            assert matches.outcome.tolist() == np.where(hit, detmap.HIT, 2 * ignored).tolist()
            for name in ("image", "category"):
                assert np.array_equal(getattr(matches, name), getattr(tally, name)[rows])
            assert np.array_equal(matches.score, tally.scores[rows])
            missed = [category_of.get(keys[row], 0) for row in matches.missed]
            counts = np.bincount(np.array(missed, int), minlength=len(tally.categories))
            assert counts.tolist() == (tally.positives[:, a] - tally.hit_counts[:, a, t]).tolist()


@settings(max_examples=examples(60))
@given(workloads.coco_workloads(unsorted_thresholds=True), PRESET)
def test_outcomes_equal_the_bits_of_the_tally(workload, name):
    dataset, results, params = workload
    protocol, selection = decided(params, name)
    assert_law(ground_truth_of(dataset), detections_of(results), protocol, selection)


@settings(max_examples=examples(60))
@given(workloads.tiny_coco_workloads(), PRESET, st.booleans(), st.booleans(), st.sampled_from([(), ("crowd",)]))
def test_outcomes_equal_the_bits_under_protocols_of_ones_own(workload, name, strict, crowd_overlap, ignore):
    dataset, results, params = workload
    protocol, selection = decided(params, name)
    crowd_overlap = crowd_overlap and bool(ignore)  # a crowd that counts can be found twice
    protocol = dataclasses.replace(protocol, strict=strict, crowd_overlap=crowd_overlap, ignore=ignore)
    assert_law(ground_truth_of(dataset), detections_of(results), protocol, selection)


def twin(truth, found, protocol, selection, iou, area, floor):
    """Every row of `Matches` as a tuple, and the missed objects, in plain Python.

    `truth` and `found` are lists of dicts. Rows are in no particular order.
    """
    low, high = {name: ends for name, *ends in protocol.area_ranges}[area]
    cap, voc = protocol.max_dets[-1], protocol.matching == "best"
    images, categories = selection
    truth = [{**row, "row": g} for g, row in enumerate(truth)]
    found = [{**row, "row": d} for d, row in enumerate(found)]
    rows, missed = [], []
    for image in images:
        here = [
            [r for r in side if r["image_id"] == image and r["category_id"] in categories] for side in (truth, found)
        ]
        here = [sorted(side, key=lambda r: r["category_id"]) for side in here]  # as COCO joins the classes of an image
        kind = operator.itemgetter("category_id") if protocol.use_categories else (lambda r: None)
        for row in here[0]:
            skip = bool(row["iscrowd"]) and "crowd" in protocol.ignore
            row["counts"] = not skip and low <= row["area"] <= high
        for category in sorted({kind(r) for side in here for r in side}, key=str):
            gts = [r for r in here[0] if kind(r) == category]
            dts = [r for r in here[1] if kind(r) == category]
            dts = [dts[i] for i in naive.by_score([r["score"] for r in dts])][:cap]
            crowd = [bool(r["iscrowd"]) and protocol.crowd_overlap for r in gts]
            ious = overlaps(dts, gts, crowd, protocol)
            skip = [not r["counts"] for r in gts]
            if voc:
                chosen = voc_cell(ious, skip, iou)
            else:
                matched, _ = naive.coco_match_cell(ious, [r["score"] for r in dts], skip, crowd, [iou])
                chosen = matched[0].tolist()
            for d, (row, g) in enumerate(zip(dts, chosen, strict=True)):
                size = row["bbox"][2] * row["bbox"][3]
                alone = detmap.MISS if low <= size <= high else detmap.IGNORED
                outcome = alone if g < 0 else detmap.IGNORED if skip[g] else detmap.HIT
                best = [(-1, -1.0, None)] * 2
                counting = [r for r in here[0] if r["counts"]]
                wide = overlaps(
                    [row], counting, [bool(r["iscrowd"]) and protocol.crowd_overlap for r in counting], protocol
                )
                for r, value in zip(counting, wide[0], strict=True):
                    which = int(kind(r) != category)
                    if value >= floor and (value > best[which][1] or (value == best[which][1] and not voc)):
                        best[which] = (r["row"], value, kind(r))
                rows.append(
                    (row["row"], image, category, row["score"], outcome)
                    + ((-1, None) if g < 0 else (gts[g]["row"], ious[d][g]))
                    + tuple(x for at, value, _ in best for x in (at, None if at < 0 else value))
                    + (best[1][2],)
                )
            hit = {g for g in chosen if g >= 0}
            missed += [r["row"] for g, r in enumerate(gts) if r["counts"] and g not in hit]
    return rows, sorted(missed)


def overlaps(dts, gts, crowd, protocol):
    corners = [np.array([r["bbox"] for r in side], float).reshape(-1, 4) for side in (dts, gts)]
    if not protocol.inclusive_pixels:
        return naive.box_iou(*corners, crowd)
    # The far corner is the last pixel inside; x + w - 1 as the library takes it, its area w * h.
    (dx, dy, dw, dh), (gx, gy, gw, gh) = corners[0].T[:, :, None], corners[1].T[:, None, :]
    width = np.minimum(dx + dw - 1.0, gx + gw - 1.0) - np.maximum(dx, gx) + 1.0
    height = np.minimum(dy + dh - 1.0, gy + gh - 1.0) - np.maximum(dy, gy) + 1.0
    inter = np.maximum(width, 0.0) * np.maximum(height, 0.0)
    return np.divide(inter, dw * dh + gw * gh - inter, out=np.zeros_like(inter), where=inter > 0)


def voc_cell(ious, skip, iou):
    """VOC's rule in one cell: each looks at its best object, the first among equals."""
    chosen, taken = [], set()
    for row in ious:
        g = int(np.argmax(row)) if len(row) else -1
        if g < 0 or row[g] < iou or (g in taken and not skip[g]):
            chosen.append(-1)
            continue
        taken.add(g)
        chosen.append(g)
    return chosen


@settings(max_examples=examples(150))
@given(workloads.coco_workloads(), PRESET, st.sampled_from([0.05, 0.3, 0.5, 0.75, 1.0]), st.data())
def test_every_column_equals_the_twin(workload, name, iou, data):
    dataset, results, params = workload
    protocol, selection = decided(params, name)
    area = data.draw(st.sampled_from([name for name, _, _ in protocol.area_ranges]))
    floor = data.draw(st.sampled_from([0.1, 0.02, 0.5, 1.0]))
    truth, found = ground_truth_of(dataset), detections_of(results)
    matches = match_pairs(truth, found, protocol, iou=iou, area=area, across_categories=True, floor=floor, **selection)
    categories = [item["id"] for item in dataset["categories"]]
    listed = [row for row in dataset["annotations"] if row["category_id"] in set(categories)]
    images = [item["id"] for item in dataset["images"]] if selection["image_ids"] is None else selection["image_ids"]
    if selection["category_ids"] is not None:
        categories = selection["category_ids"]
    expected, missed = twin(listed, results, protocol, (set(images), set(categories)), iou, area, floor)

    def none(overlaps):
        return [None if np.isnan(value) else value for value in overlaps.tolist()]

    keys = [key for key, _ in matches.categories] + [None]
    rows = zip(
        matches.detection.tolist(), matches.image_ids[matches.image].tolist(),
        [keys[k] for k in matches.category], matches.score.tolist(), matches.outcome.tolist(),
        matches.ground_truth.tolist(), none(matches.overlap), matches.same.tolist(), none(matches.same_overlap),
        matches.other.tolist(), none(matches.other_overlap), [keys[k] for k in matches.other_category],
        strict=True,
    )  # fmt: skip
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert matches.missed.tolist() == missed


def test_rows_stand_by_image_category_and_score_and_do_not_depend_on_threads():
    truth, found = tables_of_arrays(large_workloads.detector_like(12, 60, 4, seed=3))
    one, other = (match_pairs(truth, found, across_categories=True, threads=n) for n in (1, 3))
    for name in COLUMNS:
        a, b = getattr(one, name), getattr(other, name)
        if a is None:  # no object stands for a group
            assert b is None
            continue
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), name
        assert not a.flags.writeable
    assert len(one) == one.score.size > 0
    assert np.array_equal(np.lexsort((-one.score, one.category, one.image)), np.arange(len(one)))
    again = pickle.loads(pickle.dumps(one))
    assert np.array_equal(again.outcome, one.outcome)
    assert not again.outcome.flags.writeable


def example():
    """A hit, a duplicate, a wrong class, one too small to count, and one on nothing; one object is missed."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 1, 1], category_ids=[1, 2, 1], boxes=[[0, 0, 10, 10], [50, 50, 40, 40], [80, 0, 9, 9]]
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1] * 5,
        category_ids=[1, 1, 1, 2, 3],
        boxes=[[0, 0, 10, 9], [0, 0, 10, 10], [50, 50, 40, 36], [200, 0, 5, 5], [0, 0, 1, 1]],
        scores=[0.9, 0.8, 0.7, 0.6, 0.5],
    )
    return truth, found


def test_by_hand():
    matches = match_pairs(*example(), across_categories=True)
    assert matches.detection.tolist() == [0, 1, 2, 3]  # the last one's category is not evaluated
    assert matches.outcome.tolist() == [detmap.HIT, detmap.MISS, detmap.MISS, detmap.MISS]
    assert matches.ground_truth.tolist() == [0, -1, -1, -1]
    assert matches.overlap[0] == 0.9
    assert np.isnan(matches.overlap[1:]).all()
    assert matches.same.tolist() == [0, 0, -1, -1]
    assert matches.same_overlap[:2].tolist() == [0.9, 1.0]
    assert matches.other.tolist() == [-1, -1, 1, -1]
    assert matches.other_overlap[2] == 0.9
    assert matches.other_category.tolist() == [-1, -1, 1, -1]
    assert matches.missed.tolist() == [1, 2]
    assert repr(matches) == "<Matches (bbox): 4 detections, 1 hits, 0 ignored, 2 objects missed>"
    assert matches.notices == {"unknown_category": 1}
    medium = match_pairs(*example(), area="medium")
    assert medium.outcome.tolist() == [detmap.IGNORED, detmap.IGNORED, detmap.MISS, detmap.IGNORED]
    assert medium.ground_truth.tolist() == [0, -1, -1, -1]
    assert medium.missed.tolist() == [1]
    assert medium.same is medium.other is medium.other_category is None


@pytest.mark.parametrize("first", ["real", "ignored"])
def test_a_real_object_is_preferred_to_one_that_is_ignored(first):
    """Though it overlaps less, and whichever comes first; at a threshold that it misses the ignored one is taken."""
    boxes, areas = [[0.0, 0, 10, 6], [0.0, 0, 10, 9]], [60.0, 5000.0]
    order = [0, 1] if first == "real" else [1, 0]
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 1], category_ids=[1, 1], boxes=[boxes[i] for i in order], areas=[areas[i] for i in order]
    )
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0.0, 0, 10, 10]], scores=[0.9])
    for iou, outcome, taken in ((0.5, detmap.HIT, 0), (0.6, detmap.HIT, 0), (0.7, detmap.IGNORED, 1)):
        matches = match_pairs(truth, found, iou=iou, area="small")
        assert matches.outcome.tolist() == [outcome]
        assert matches.ground_truth.tolist() == [order.index(taken)]


def test_detections_beyond_the_cap_have_no_row():
    protocol = dataclasses.replace(PRESETS["coco"], max_dets=(1,))
    matches = match_pairs(*example(), protocol)
    assert matches.detection.tolist() == [0, 3]


def test_without_detections_every_object_that_counts_is_missed():
    truth, found = example()
    nothing = detmap.Detections.from_arrays(image_ids=[], category_ids=[], boxes=np.empty((0, 4)), scores=[])
    matches = match_pairs(truth, nothing, across_categories=True)
    assert (len(matches), matches.missed.tolist()) == (0, [0, 1, 2])
    empty = detmap.GroundTruth.from_arrays(
        image_ids=[], category_ids=[], boxes=np.empty((0, 4)), images=[1], categories=[1, 2, 3]
    )
    matches = match_pairs(empty, found, across_categories=True)
    assert (matches.outcome.tolist(), matches.missed.size, set(matches.same.tolist())) == ([0] * 5, 0, {-1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iou": float("nan")}, "iou must be one finite number, not nan"),
        ({"iou": [0.5]}, r"iou must be one finite number, not \[0.5\]"),
        ({"floor": 0}, "floor must be above 0 and at most 1, not 0"),
        ({"area": "tiny"}, "no area range is called 'tiny'; these are: all, small, medium, large"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(OptionError, match=message):
        match_pairs(*example(), **options)


def test_swapped_arguments():
    truth, found = example()
    with pytest.raises(InputError, match="swapped"):
        match_pairs(found, truth)
