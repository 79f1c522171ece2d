"""The laws of the tally, and independence: of threads, of blocks, of how images were split, of the order of records."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import time
import warnings

import large_workloads
import naive
import numpy as np
import pytest
import workloads
from hypothesis import given, settings
from hypothesis import strategies as st
from support import (
    assert_same_result,
    detections_of,
    evaluate,
    examples,
    ground_truth_of,
    options_of,
    same_bits,
    tables_of_arrays,
)

import detmap
from detmap.detection import precisions, tally
from detmap.detection.protocols import resolve
from detmap.system import parallel

COLUMNS = ("category", "image", "rank", "order", "scores", "hit", "ignored")


def protocol_of(params, name="coco"):
    options = options_of(params)
    names = ("iou_thresholds", "recall_thresholds", "area_ranges", "max_dets", "use_categories")
    return resolve(name, **{key: options[key] for key in names})


def assert_same_tally(one, other):
    """Every column in ranking order, the positives, and every number that is made of them."""
    one, other = one.in_ranking_order(), other.in_ranking_order()
    assert one.protocol == other.protocol
    assert one.categories == other.categories
    assert one.image_ids.tolist() == other.image_ids.tolist()
    for name in COLUMNS:
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype, name
        assert a.shape == b.shape, name
        assert same_bits(a, b) if name == "scores" else np.array_equal(a, b), name
    assert np.array_equal(one.positives, other.positives)
    results = detmap.DetectionResult(one), detmap.DetectionResult(other)
    assert_same_result(*results)
    assert repr(results[0].per_category) == repr(results[1].per_category)


def split_tables(dataset, results, parts):
    """One pair of data set and results for every list of image ids: what a worker of its own would see."""
    for part in parts:
        mine = set(part)
        yield (
            {
                **dataset,
                "images": [item for item in dataset["images"] if item["id"] in mine],
                "annotations": [row for row in dataset["annotations"] if row["image_id"] in mine],
            },
            [row for row in results if row["image_id"] in mine],
        )


@st.composite
def split_workloads(draw):
    """A workload of all images and categories, and its images dealt to up to four parts in any order, some empty."""
    dataset, results, params = draw(workloads.coco_workloads(unsorted_thresholds=True))
    params = {**params, "image_ids": None, "category_ids": None}
    images = [item["id"] for item in dataset["images"]]
    parts = [[] for _ in range(draw(st.integers(1, 4)))]
    for image in images:
        parts[draw(st.integers(0, len(parts) - 1))].append(image)
    return dataset, results, params, parts


@settings(max_examples=examples(150))
@given(split_workloads(), st.randoms(use_true_random=False), st.sampled_from(["coco", "voc2007", "voc2012"]))
def test_any_split_merged_in_any_order(workload, random, name):
    dataset, results, params, parts = workload
    protocol = protocol_of(params, name)
    truth, found = ground_truth_of(dataset), detections_of(results)
    whole = detmap.match(truth, found, protocol)
    if name == "coco":  # every part from tables of its own
        pieces = [
            detmap.match(ground_truth_of(part), detections_of(rows), protocol)
            for part, rows in split_tables(dataset, results, parts)
        ]
    else:  # ties go by the place in the file, so that the file must be one
        pieces = [detmap.match(truth, found, protocol, image_ids=part) for part in parts]
    random.shuffle(pieces)
    assert_same_tally(functools.reduce(lambda a, b: a.merge(b), pieces), whole)
    assert_same_tally(pieces[0].merge(*pieces[1:]), whole)
    # a tree of merges instead of a chain
    while len(pieces) > 1:
        at = random.randrange(len(pieces) - 1)
        pieces[at : at + 2] = [pieces[at].merge(pieces[at + 1])]
    assert_same_tally(pieces[0], whole)


@settings(max_examples=examples(100))
@given(workloads.coco_workloads(unsorted_thresholds=True))
def test_laws(workload):
    dataset, results, params = workload
    images = [item["id"] for item in dataset["images"]]
    protocol = protocol_of(params)
    a, b, c = (
        detmap.match(ground_truth_of(part), detections_of(rows), protocol)
        for part, rows in split_tables(dataset, results, (images[::3], images[1::3], images[2::3]))
    )
    empty = detmap.Tally.empty(protocol, a.categories)
    assert_same_tally(empty.merge(a), a)
    assert_same_tally(a.merge(empty), a)
    assert_same_tally(empty.merge(empty), empty)
    assert_same_tally(a.merge(b), b.merge(a))
    assert_same_tally(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert_same_tally(a.merge(b, c), c.merge(a, b))


def test_the_notices_of_the_parts_add_up():
    dataset, results = workloads.make_coco(2, images=4, zero_sized=True, unknown_categories=True)
    images = [item["id"] for item in dataset["images"]]
    whole = detmap.match(ground_truth_of(dataset), detections_of(results))
    pieces = [
        detmap.match(ground_truth_of(part), detections_of(rows))
        for part, rows in split_tables(dataset, results, (images[:2], images[2:]))
    ]
    assert whole.notices["zero_sized_boxes"]
    assert whole.notices["unknown_category"]
    assert dict(pieces[0].merge(pieces[1]).notices) == dict(whole.notices)


def test_an_empty_tally_has_a_result():
    protocol = protocol_of({})
    result = detmap.DetectionResult(detmap.Tally.empty(protocol, ((1, "one"), (2, "two"))))
    assert np.isnan(list(result.values())).all()
    assert result.precision.shape == (10, 101, 2, 4, 3)
    assert [row["positives"] for row in result.per_category] == [0, 0]


def test_what_cannot_be_merged():
    dataset, results = workloads.make_coco(1, images=4)
    images = [item["id"] for item in dataset["images"]]
    truth, found = ground_truth_of(dataset), detections_of(results)
    one = detmap.match(truth, found, image_ids=images[:2])
    with pytest.raises(detmap.StateError, match="is in two tallies"):
        one.merge(detmap.match(truth, found, image_ids=images[1:]))
    with pytest.raises(detmap.StateError, match="different protocols"):
        one.merge(detmap.match(truth, found, resolve("coco", max_dets=7), image_ids=images[2:]))
    first = truth.categories.values.tolist()[:1]
    with pytest.raises(detmap.StateError, match="different categories"):
        one.merge(detmap.match(truth, found, image_ids=images[2:], category_ids=first))
    named = detmap.GroundTruth.from_arrays(
        image_ids=["a"],
        category_ids=truth.categories.values[:1],
        boxes=[[0, 0, 1, 1]],
        categories=truth.categories.values,
    )
    nothing = detmap.Detections.from_arrays(image_ids=[], category_ids=[], boxes=[], scores=[])
    with pytest.raises(detmap.StateError, match="integers in one tally and strings in another"):
        one.merge(detmap.match(named, nothing))


# --------------------------------------------------------------------------------------------------- threads and blocks


def several_workloads():
    yield workloads.make_coco(3, images=9, categories=4, crowded_cell=True, over_100=True)
    yield workloads.make_coco(4, images=3, categories=1, scores="all equal", crowded_cell=True)
    yield large_workloads.to_coco(large_workloads.dense_scene(2, 30, 40, 1, canvas=200.0))


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
@pytest.mark.parametrize("blocks", [1, 5, 10**9])
@pytest.mark.parametrize("pieces", ["each by itself", "all at once", "as they are"])
def test_any_block_size(monkeypatch, protocol, blocks, pieces):
    data = [(ground_truth_of(dataset), detections_of(results)) for dataset, results in several_workloads()]
    expected = [detmap.evaluate(*tables, protocol, threads=1) for tables in data]
    cuts = []
    split = parallel.split

    def other_split(costs, limit):
        runs = split(costs, limit)
        if pieces != "as they are" and runs:
            stop = runs[-1][1]
            runs = [(i, i + 1) for i in range(stop)] if pieces == "each by itself" else [(0, stop)]
        cuts.append(len(runs))
        return runs

    monkeypatch.setattr(precisions, "_BLOCKS", blocks)
    monkeypatch.setattr(precisions, "_LEAST", 1.0)  # otherwise these few rankings are one block
    monkeypatch.setattr(parallel, "split", other_split)
    if pieces == "each by itself":
        monkeypatch.setattr(parallel, "even", lambda count, threads: [(i, i + 1) for i in range(count)])
    for tables, result in zip(data, expected, strict=True):
        assert_same_result(detmap.evaluate(*tables, protocol, threads=2), result)
    assert max(cuts) > 1 if pieces == "each by itself" else cuts


@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012"])
@pytest.mark.parametrize("threads", [1, 2, 7, None])
def test_any_number_of_threads(threads, protocol):
    for dataset, results in several_workloads():
        truth, found = ground_truth_of(dataset), detections_of(results)
        result = detmap.evaluate(truth, found, protocol, threads=threads)
        assert_same_result(result, detmap.evaluate(truth, found, protocol, threads=1))
        assert_same_tally(result.tally, detmap.match(truth, found, protocol, threads=1))


@pytest.mark.compiled
def test_any_number_of_threads_at_size():
    truth, found = tables_of_arrays(large_workloads.detector_like(1500, 60, 30, 1))
    expected = detmap.evaluate(truth, found, threads=1)
    for threads in (2, 7, None):
        assert_same_result(detmap.evaluate(truth, found, threads=threads), expected)


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2"])
def test_threads_must_be_a_number(threads):
    dataset, results = workloads.make_coco(0)
    with pytest.raises(detmap.OptionError, match="threads must be a positive integer"):
        evaluate(dataset, results, threads=threads)


def test_blocks_run_in_order_and_within_one_another():
    assert parallel.run(lambda a, b: (a, b), [(i, i + 1) for i in range(50)], 7) == [(i, i + 1) for i in range(50)]

    def nested(a, b):
        return parallel.thread_count(None), parallel.run(lambda c, d: c, [(0, 1), (1, 2)], 4)

    assert parallel.run(nested, [(0, 1), (1, 2)], 2) == [(1, [0, 1])] * 2
    assert parallel.thread_count(3) == 3


def test_a_forked_process_starts_threads_of_its_own():
    parallel.run(lambda a, b: a, [(0, 1), (1, 2)], 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python says that forking beside threads is a risk
        child = os.fork()
    if not child:
        os._exit(parallel.run(lambda a, b: a, [(0, 1), (1, 2)], 2) != [0, 1])
    deadline = time.monotonic() + 60
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    assert ended[1] == 0


def test_nothing_goes_on_after_an_error():
    running = []

    def fail_or_last(begin, end):
        if not begin:
            raise ValueError("at once")
        running.append(begin)
        time.sleep(0.05)
        running.remove(begin)

    with pytest.raises(ValueError, match="at once"):
        parallel.run(fail_or_last, [(i, i + 1) for i in range(9)], 2)
    assert not running


def test_an_error_in_a_block_is_raised():
    def fail(begin, end):
        raise ValueError(f"block {begin}")

    with pytest.raises(ValueError, match="block 0"):
        parallel.run(fail, [(0, 1), (1, 2), (2, 3)], 2)


@settings(max_examples=examples(200))
@given(st.lists(st.floats(0, 100), max_size=40), st.floats(0, 500), st.integers(1, 9))
def test_blocks_cover_everything_once(costs, limit, threads):
    for blocks in (parallel.split(costs, limit), parallel.even(len(costs), threads)):
        assert [i for begin, end in blocks for i in range(begin, end)] == list(range(len(costs)))
        assert all(begin < end for begin, end in blocks)


@settings(max_examples=examples(200))
@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 9))
def test_groups_are_cut_into_runs_of_about_equal_size(sizes, threads):
    starts = np.cumsum([0, *sizes])
    blocks = parallel.cut(starts, threads)
    assert [g for begin, end in blocks for g in range(begin, end)] == list(range(len(sizes)))
    most = max((end - begin for begin, end in parallel.even(sum(sizes), threads)), default=0)
    assert all(starts[end] - starts[begin] < most + 10 for begin, end in blocks)


def test_blocks_are_about_as_large_as_asked_for():
    for blocks in (parallel.split([1.0] * 1000, 100), parallel.even(1000, 2)):
        assert 7 <= len(blocks) <= 12
        assert all(80 <= end - begin <= 130 for begin, end in blocks[1:-1])
    assert parallel.split([100.0, 1.0, 1.0, 100.0], 50) == [(0, 1), (1, 4)]  # a run ends with what fills it
    assert parallel.split([1.0] * 10, 5) == [(0, 5), (5, 10)]
    assert parallel.split([], 5) == []


# ---------------------------------------------------------------------------------------------------- order of records


def interleaved(records, key, random):
    """The records in another order that keeps the order of those with one key."""
    queues = {}
    for record in records:
        queues.setdefault(key(record), []).append(record)
    turns = [k for k, queue in queues.items() for _ in queue]
    random.shuffle(turns)
    streams = {k: iter(queue) for k, queue in queues.items()}
    return [next(streams[k]) for k in turns]


@settings(max_examples=examples(120))
@given(workloads.coco_workloads(unsorted_thresholds=True), st.randoms(use_true_random=False))
def test_order_of_records_by_coco(workload, random):
    """Only the order within an image and category is part of the data: it decides between equals."""
    dataset, results, params = workload
    expected = evaluate(dataset, results, params)

    def cell(row):
        # without categories a cell is an image, and its records stand category by category anyway
        return row["image_id"], row["category_id"]

    shuffled = {
        "images": random.sample(dataset["images"], len(dataset["images"])),
        "categories": random.sample(dataset["categories"], len(dataset["categories"])),
        "annotations": interleaved(dataset["annotations"], cell, random),
    }
    assert_same_result(evaluate(shuffled, interleaved(results, cell, random), params), expected)


@settings(max_examples=examples(80))
@given(workloads.coco_workloads(), st.randoms(use_true_random=False), st.sampled_from(["voc2007", "voc2012"]))
def test_order_of_records_by_voc(workload, random, protocol):
    """Within a class the order of the file decides between equals; classes may stand in any order."""
    dataset, results, _ = workload
    expected = detmap.evaluate(ground_truth_of(dataset), detections_of(results), protocol)
    shuffled = {
        "images": random.sample(dataset["images"], len(dataset["images"])),
        "categories": random.sample(dataset["categories"], len(dataset["categories"])),
        "annotations": interleaved(dataset["annotations"], lambda row: (row["image_id"], row["category_id"]), random),
    }
    other = interleaved(results, lambda row: row["category_id"], random)
    assert_same_result(detmap.evaluate(ground_truth_of(shuffled), detections_of(other), protocol), expected)


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
def test_any_order_where_nothing_is_equal(protocol):
    arrays = large_workloads.detector_like(12, 30, 4, 3)
    rng = np.random.default_rng(8)
    arrays["dt_scores"] = rng.permutation(len(arrays["dt_scores"])) / 1000.0
    expected = detmap.evaluate(*tables_of_arrays(arrays), protocol)
    assert expected[next(iter(expected))] > 0
    for _ in range(5):
        other = dict(arrays)
        for prefix in ("gt", "dt"):
            order = rng.permutation(len(arrays[f"{prefix}_image_ids"]))
            other |= {name: column[order] for name, column in arrays.items() if name.startswith(prefix)}
        other |= {name: rng.permutation(arrays[name]) for name in ("image_ids", "category_ids")}
        assert_same_result(detmap.evaluate(*tables_of_arrays(other), protocol), expected)


def test_equals_are_taken_in_the_documented_order():
    """COCO: by image id, then input order; VOC: input order alone."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 2], category_ids=[1, 1], boxes=[[0, 0, 10, 10]] * 2, images=[1, 2]
    )
    found = detmap.Detections.from_arrays(
        image_ids=[2, 1, 1],
        category_ids=[1, 1, 1],
        boxes=[[0, 0, 10, 10], [50, 50, 10, 10], [0, 0, 10, 10]],
        scores=[0.5, 0.5, 0.5],
    )
    coco = detmap.match(truth, found, "coco")
    assert (coco.image.tolist(), coco.rank.tolist()) == ([0, 0, 1], [0, 1, 0])
    voc = detmap.match(truth, found, "voc2012")
    assert (voc.image.tolist(), voc.order.tolist()) == ([1, 0, 0], [0, 1, 2])


@pytest.mark.parametrize("protocol", ["coco", "voc2012"])
def test_ids_may_be_strings(protocol):
    dataset, results = workloads.make_coco(6, images=6, crowded_cell=True)
    expected = detmap.evaluate(ground_truth_of(dataset), detections_of(results), protocol)

    def named(row):
        changed = dict(row)
        for key in ("image_id", "category_id", "id"):
            if key in row and (key != "id" or "bbox" not in row):
                changed[key] = f"{row[key]:08d}"
        return changed

    other = {name: [named(row) for row in rows] for name, rows in dataset.items()}
    result = detmap.evaluate(ground_truth_of(other), detections_of([named(r) for r in results]), protocol)
    for name in ("precision", "recall", "scores", "average_precision"):
        assert same_bits(getattr(result, name), getattr(expected, name))
    assert result.categories[0][0] == f"{expected.categories[0][0]:08d}"


# ------------------------------------------------------------------------------------------------- what a tally can tell


@settings(max_examples=examples(60))
@given(workloads.coco_workloads(), st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.8]))
def test_counts_and_best_scores_against_the_twin(workload, score):
    """TP, FP and FN at a threshold and score, and the score of the best F1, of every class."""
    dataset, results, params = workload
    result = evaluate(dataset, results, params)
    p = result.protocol
    listed_images = [item["id"] for item in dataset["images"]]
    listed = sorted(item["id"] for item in dataset["categories"])
    _, low, high = p.area_ranges[0]
    rankings = naive.coco_rankings(
        listed_images if params["image_ids"] is None else params["image_ids"],
        listed if params["category_ids"] is None else params["category_ids"],
        dataset["annotations"],
        results,
        p.iou_thresholds,
        (low, high),
        p.max_dets[-1],
        p.use_categories,
    )
    chosen = p.iou_thresholds.index(0.5) if 0.5 in p.iou_thresholds else 0
    for t, threshold in enumerate(p.iou_thresholds):
        counted = result.counts(iou=threshold, score=score)
        for k, ranking in enumerate(rankings):
            row = result.per_category[k]
            got = counted.true_positives[k], counted.false_positives[k], counted.false_negatives[k]
            if ranking is None:
                assert got == (0, 0, 0)
                continue
            arguments = ranking["scores"], ranking["hit"][t], ranking["ignored"][t], ranking["positives"]
            assert got == naive.counts(*arguments, score)
            names = ("true_positives", "false_positives", "false_negatives")
            assert tuple(row[name][t] for name in names) == naive.counts(*arguments)
            assert (row["positives"], row["detections"]) == (ranking["positives"], len(ranking["scores"]))
            if t == chosen:
                best = row["best_f1"]
                twin = naive.best_f1(*arguments)
                assert same_bits([best[name] for name in ("score", "f1", "precision", "recall")], twin)


def test_the_curve_of_a_category():
    dataset, results = workloads.make_coco(3, images=6, scores="tenths", crowded_cell=True)
    result = evaluate(dataset, results)
    listed = sorted(item["id"] for item in dataset["categories"])
    rankings = naive.coco_rankings(
        [item["id"] for item in dataset["images"]], listed, dataset["annotations"], results, [0.5, 0.75], (0, 1e10), 100
    )
    seen = 0
    for (category, name), ranking in zip(result.categories, rankings, strict=True):
        for t, threshold in enumerate((0.5, 0.75)):
            curve = result.curve(category, iou=threshold)
            assert same_bits(result.curve(name, iou=threshold).precision, curve.precision)
            if ranking is None or not ranking["positives"]:
                continue
            counted = [i for i in range(len(ranking["scores"])) if not ranking["ignored"][t, i]]
            relevance = [bool(ranking["hit"][t, i]) for i in counted]
            precision, recall = naive.precision_recall(relevance, ranking["positives"], 2.0**-52)
            assert same_bits(curve.precision, precision)
            assert same_bits(curve.recall, recall)
            assert same_bits(curve.scores, [ranking["scores"][i] for i in counted])
            assert same_bits(curve.interpolated, [max(precision[i:]) for i in range(len(precision))])
            seen += len(relevance)
    assert seen > 50
    with pytest.raises(detmap.OptionError, match="was not evaluated"):
        result.curve("no such class")
    with pytest.raises(detmap.OptionError, match="was not evaluated"):
        result.counts(iou=0.123, score=0)


def test_arrays_cannot_be_written_to():
    dataset, results = workloads.make_coco(1)
    result = evaluate(dataset, results)
    arrays = [getattr(result, name) for name in ("precision", "recall", "scores", "average_precision")]
    arrays += [getattr(result.tally, name) for name in (*COLUMNS, "image_ids", "positive_counts")]
    assert not any(array.flags.writeable for array in arrays)


def test_every_pair_of_parts():
    """Each of the 2^4 ways to give four images to two parts, by hand rather than by chance."""
    dataset, results = workloads.make_coco(8, images=4, crowded_cell=True, scores="tenths")
    images = [item["id"] for item in dataset["images"]]
    truth, found = ground_truth_of(dataset), detections_of(results)
    whole = detmap.match(truth, found)
    for chosen in itertools.product([True, False], repeat=4):
        parts = (
            [image for image, mine in zip(images, chosen, strict=True) if mine],
            [image for image, mine in zip(images, chosen, strict=True) if not mine],
        )
        one, other = (detmap.match(truth, found, image_ids=part) for part in parts)
        assert_same_tally(one.merge(other), whole)


def test_tallies_of_separate_files_merge_the_same_either_way():
    """Positions in two files coincide: then the image decides."""
    tallies = []
    for image, corner in ((1, 0.0), (2, 50.0)):
        truth = detmap.GroundTruth.from_arrays(image_ids=[image], category_ids=["cat"], boxes=[[0, 0, 9, 9]])
        found = detmap.Detections.from_arrays(
            image_ids=[image], category_ids=["cat"], boxes=[[corner, 0, 9, 9]], scores=[0.5]
        )
        tallies.append(detmap.match(truth, found, "voc2012"))
    one, other = tallies
    assert_same_tally(one.merge(other), other.merge(one))
    assert detmap.DetectionResult(one.merge(other))["mAP"] == 0.5


# ------------------------------------------------------------------------------------------- columns, specified once


def test_every_array_of_a_tally_is_specified_and_ranking_moves_those_of_detections():
    import dataclasses

    from detmap.kernels import sorting

    arrays = {field.name for field in dataclasses.fields(tally.Tally) if "NDArray" in str(field.type)} - {
        "image_ids",
        "clusters",
        "crowd_index",
    }
    assert {column.name for column in tally.COLUMNS} == arrays
    moved = {column.name for column in tally.COLUMNS if column.per == "detection"}
    assert moved == {"category", "errors", *sorting.Rows._fields, *tally.STEPS}


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
def test_columns_have_the_shapes_and_types_that_are_specified(protocol):
    dataset, results = workloads.make_coco(4, images=6)
    truth, found = ground_truth_of(dataset), detections_of(results)
    empty = tally.Tally.empty(resolve(protocol), ())
    for made in (detmap.match(truth, found, protocol), empty):
        rows = {"detection": len(made), "pair": made.positive_image.size}
        for column in tally.COLUMNS:
            values = getattr(made, column.name)
            assert values.shape == column.shape(made.protocol, rows[column.per]), column.name
            assert values.dtype == column.native(), column.name
            assert not values.flags.writeable


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
def test_parts_of_a_tally_are_tallies_of_the_parts(protocol):
    """By images, by categories, and as one of more categories."""
    dataset, results = workloads.make_coco(4, images=6)
    truth, found = ground_truth_of(dataset), detections_of(results)
    whole = detmap.match(truth, found, protocol)
    images, categories = np.arange(whole.image_ids.size) % 2 == 0, np.arange(len(whole.categories)) != 1
    one = detmap.match(truth, found, protocol, image_ids=whole.image_ids[images])
    assert_same_tally(whole.on_images(images), one)
    some = [identity for (identity, _), kept in zip(whole.categories, categories, strict=True) if kept]
    few = detmap.match(truth, found, protocol, category_ids=some)
    assert_same_tally(whole.of_categories(categories), few)
    again = few.among(whole.categories)
    assert again.categories == whole.categories
    assert np.array_equal(again.positives[categories], few.positives)
    assert not again.positives[~categories].any()
    assert_same_tally(again.of_categories(categories), few)
    assert whole.among(whole.categories) is whole
