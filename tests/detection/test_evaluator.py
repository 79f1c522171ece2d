"""The streaming evaluator against one evaluation of everything; merging and synchronising."""

from __future__ import annotations

import copy
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamed import IMAGE, TARGET, WORKLOAD, by_image, evaluator_of, feed
from support import assert_same_result, detections_of, evaluate, examples, ground_truth_of, options_of
from workloads import coco_workloads, make_coco

import detmap
from detmap import Evaluator, InputError, OptionError, StateError

# ---------------------------------------------------------------------------------------------------------- equality


@settings(max_examples=examples(150))
@given(coco_workloads(), st.data())
def test_any_split_over_any_processes_gives_the_same_bits(workload, data):
    dataset, results, params = workload
    dataset["annotations"] = [
        a for a in dataset["annotations"] if a["category_id"] in {item["id"] for item in dataset["categories"]}
    ]
    params["image_ids"] = params["category_ids"] = None
    expected = evaluate(dataset, results, params)
    images = by_image(dataset, results)
    ids = data.draw(st.permutations(list(images)))
    processes = data.draw(st.integers(1, 4))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    parts = []
    for rank in range(processes):
        own = ids[rank::processes]
        own += ids[: (-len(ids) % processes) if len(own) < -(-len(ids) // processes) else 0]  # a sampler that pads
        part = feed(evaluator_of(dataset, params, duplicates="first"), images, own, sizes)
        if data.draw(st.booleans()):
            part = Evaluator.from_bytes(part.to_bytes())
        parts.append(part)
    parts = data.draw(st.permutations(parts))
    merged = evaluator_of(dataset, params, duplicates="first")
    for part in parts:
        merged.merge(part)
    assert_same_result(merged.compute(), expected)
    assert [key for key, _ in merged.compute().categories] == [key for key, _ in expected.categories]
    once = feed(evaluator_of(dataset, params), images, sorted(ids))
    one, other = (replace(e.compute().tally, notices={}).to_bytes() for e in (merged, once))
    assert one == other


@settings(max_examples=examples(60))
@given(coco_workloads(), st.data())
def test_categories_are_found_out(workload, data):
    dataset, results, params = workload
    params["image_ids"] = params["category_ids"] = None
    params["use_categories"] = True
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[a["image_id"] for a in dataset["annotations"]],
        category_ids=[a["category_id"] for a in dataset["annotations"]],
        boxes=np.array([a["bbox"] for a in dataset["annotations"]], float).reshape(-1, 4),
        areas=[a["area"] for a in dataset["annotations"]],
        crowd=[bool(a["iscrowd"]) for a in dataset["annotations"]],
        images=[item["id"] for item in dataset["images"]],
    )
    expected = detmap.evaluate(truth, detections_of(results), **options_of(params))
    images = by_image(dataset, results)
    ids = data.draw(st.permutations(list(images)))
    halves = [feed(evaluator_of(dataset, params, categories=None), images, part) for part in (ids[::2], ids[1::2])]
    result = halves[1].merge(halves[0]).compute()
    assert_same_result(result, expected)
    assert result.categories == expected.categories


@pytest.mark.parametrize("protocol", ["voc2007", "voc2012"])
def test_file_order_is_the_order_of_images(protocol):
    for seed in range(examples(100)):
        dataset, results = make_coco(seed, images=6, scores="tenths", negative=False)
        dataset["annotations"].sort(key=lambda record: record["image_id"])
        results.sort(key=lambda record: record["image_id"])
        expected = detmap.evaluate(ground_truth_of(dataset), detections_of(results), protocol)
        images = by_image(dataset, results)
        ids = list(images)
        random.Random(seed).shuffle(ids)
        parts = [feed(evaluator_of(dataset, protocol=protocol), images, ids[part::3], (2,)) for part in range(3)]
        merged = parts[2].merge(parts[0])
        merged = Evaluator.from_bytes(merged.to_bytes()).merge(parts[1])
        assert_same_result(merged.compute(), expected)


def test_images_without_ids_are_numbered():
    dataset, results = copy.deepcopy(WORKLOAD)
    images = by_image(dataset, results)
    number = {item["id"]: i for i, item in enumerate(dataset["images"])}
    for record in [*dataset["annotations"], *results]:
        record["image_id"] = number[record["image_id"]]
    for item in dataset["images"]:
        item["id"] = number[item["id"]]
    expected = evaluate(dataset, results)
    pairs = list(images.values())
    whole, first, second = (evaluator_of(dataset) for _ in range(3))
    for pair in pairs:
        whole.update(*pair)
    assert_same_result(whole.compute(), expected)
    first.update(*zip(*pairs[:4], strict=True))
    second.update(*zip(*pairs[4:], strict=True))
    assert first.merge(second).to_bytes() == whole.to_bytes()
    assert len(first) == len(pairs)


@pytest.mark.parametrize("box_format", ["xyxy", "cxcywh"])
def test_box_formats(box_format):
    rng = np.random.default_rng(3)
    near, size = rng.uniform(0, 50, (60, 2)), rng.uniform(5, 40, (60, 2))
    boxes = np.concatenate([near, near + size if box_format == "xyxy" else size], axis=1).astype(np.float32)
    image, label, score = rng.integers(0, 6, 60), rng.integers(0, 2, 60), rng.random(60, np.float32)
    found_boxes = boxes + rng.normal(0, 1, boxes.shape).astype(np.float32)
    columns = {"image_ids": image, "category_ids": label, "box_format": box_format}
    truth = detmap.GroundTruth.from_arrays(boxes=boxes, images=range(6), **columns)
    expected = detmap.evaluate(truth, detmap.Detections.from_arrays(boxes=found_boxes, scores=score, **columns))
    evaluator = Evaluator(box_format=box_format)
    for i in range(6):
        own = image == i
        prediction = {"boxes": found_boxes[own], "scores": score[own], "labels": label[own]}
        evaluator.update(prediction, {"boxes": boxes[own], "labels": label[own]}, i)
    assert_same_result(evaluator.compute(), expected)


def test_areas_may_be_given_for_some_images():
    boxes, labels = [[0.0, 0, 40, 40]], [1]
    prediction = {"boxes": boxes, "labels": labels, "scores": [0.5]}
    evaluator = Evaluator(categories={1: "cat"})
    evaluator.update(prediction, {"boxes": boxes, "labels": labels, "area": [10.0]})
    evaluator.update(prediction, {"boxes": boxes, "labels": labels})
    result = evaluator.compute()
    assert result.categories == ((1, "cat"),)
    assert result.tally.positives.tolist() == [[2, 1, 1, 0]]


def test_computing_is_not_the_end():
    dataset, results = WORKLOAD
    images = by_image(dataset, results)
    ids = list(images)
    evaluator = evaluator_of(dataset)
    assert np.isnan(evaluator.compute()["AP"])
    for at in range(0, len(ids), 2):
        feed(evaluator, images, ids[at : at + 2])
        evaluator.compute()
    assert_same_result(evaluator.compute(), evaluate(dataset, results))
    evaluator.reset()
    assert len(evaluator) == 0
    assert feed(evaluator, images, ids).to_bytes() == feed(evaluator_of(dataset), images, ids).to_bytes()


def test_a_tally_is_kept_and_not_the_boxes():
    evaluator = Evaluator()
    image = {"boxes": [[0, 0, 5, 5]], "scores": [0.5], "labels": [1]}, {"boxes": [[0, 0, 5, 5]], "labels": [1]}
    for _ in range(2000):
        evaluator.update(*image)
        assert len(evaluator._waiting) < 512
    assert evaluator.compute()["AP"] == pytest.approx(1)


# --------------------------------------------------------------------------------------------------- merge and sync


def test_an_image_seen_twice():
    strict, lenient = Evaluator(), Evaluator(duplicates="first")
    for evaluator in (strict, lenient):
        evaluator.update(IMAGE, TARGET, 7)
    before = lenient.to_bytes()
    lenient.update([IMAGE], [{"boxes": [], "labels": []}], image_ids=[7])
    assert lenient.to_bytes() == before
    with pytest.raises(InputError, match="duplicates='first'"):
        strict.update(IMAGE, TARGET, 7)
    with pytest.raises(StateError, match="7"):
        strict.merge(lenient)
    assert strict.compute()["AP"] == lenient.compute()["AP"]


def test_what_cannot_be_merged():
    def seen(ids=None, image=IMAGE, target=TARGET, **options):
        evaluator = Evaluator(**options)
        evaluator.update(image, target, ids)
        return evaluator

    words = {**IMAGE, "labels": ["a", "b"]}, {**TARGET, "labels": ["a"]}
    pairs = [
        (seen(1), seen(2, max_dets=5)),
        (seen(1), seen(2, categories=[1, 2])),
        (seen(1), seen()),
        (seen(), seen(1)),
        (seen(1), seen("one")),
        (seen(1), seen(2, *words)),
    ]
    for one, other in pairs:
        before = one.to_bytes(), other.to_bytes()
        with pytest.raises(StateError):
            one.merge(other)
        assert (one.to_bytes(), other.to_bytes()) == before


def test_merging_with_nothing():
    evaluator = Evaluator()
    evaluator.update(IMAGE, TARGET, 7)
    before = evaluator.to_bytes()
    assert evaluator.merge(Evaluator()).to_bytes() == before
    assert Evaluator().merge(evaluator).to_bytes() == before
    assert evaluator.to_bytes() == before


def test_sync():
    dataset, results = WORKLOAD
    images = by_image(dataset, results)
    ids = list(images)
    parts = [feed(evaluator_of(dataset, duplicates="first"), images, ids[rank::4] + ids[:1]) for rank in range(4)]
    states = [part.to_bytes() for part in parts]
    for rank, part in enumerate(parts):

        def all_gather_object(out, own, rank=rank):
            assert own == states[rank]
            out[:] = states

        merged = part.sync(all_gather_object, world_size=4)
        assert_same_result(merged.compute(), evaluate(dataset, results))
        assert part.to_bytes() == states[rank]
    with pytest.raises(OptionError, match="world_size"):
        parts[0].sync(all_gather_object)
