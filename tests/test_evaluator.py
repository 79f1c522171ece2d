"""The streaming evaluator against one evaluation of everything; saved states, damaged and hostile ones."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_result, detections_of, evaluate, examples, ground_truth_of, options_of
from workloads import coco_workloads, make_coco

import detmap
from detmap import Evaluator, InputError, OptionError, StateError, Tally

WORKLOAD = make_coco(21, images=9, categories=4, crowds=0.2)


def by_image(dataset, results):
    """Image id to what `update` takes: prediction and target."""
    images = {}
    for item in dataset["images"]:
        gts = [a for a in dataset["annotations"] if a["image_id"] == item["id"]]
        dts = [r for r in results if r["image_id"] == item["id"]]
        prediction = {
            "boxes": np.array([r["bbox"] for r in dts], float).reshape(-1, 4),
            "scores": np.array([r["score"] for r in dts], float),
            "labels": np.array([r["category_id"] for r in dts], int),
        }
        target = {
            "boxes": np.array([a["bbox"] for a in gts], float).reshape(-1, 4),
            "labels": np.array([a["category_id"] for a in gts], int),
            "area": np.array([a["area"] for a in gts], float),
            "iscrowd": np.array([a["iscrowd"] for a in gts], int),
        }
        images[item["id"]] = prediction, target
    return images


def evaluator_of(dataset, params=None, **more):
    options = {k: v for k, v in options_of(params).items() if k not in ("image_ids", "category_ids")}
    more.setdefault("categories", [item["id"] for item in dataset["categories"]])
    return Evaluator(**{"box_format": "xywh", **options, **more})


def feed(evaluator, images, ids, sizes=(3,)):
    """Update with `ids` in this order, in batches of `sizes` in turn."""
    at, turn = 0, 0
    while at < len(ids):
        batch = ids[at : at + sizes[turn % len(sizes)]]
        evaluator.update([images[i][0] for i in batch], [images[i][1] for i in batch], image_ids=batch)
        at, turn = at + len(batch), turn + 1
    return evaluator


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
    for seed in range(20):
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


# ------------------------------------------------------------------------------------------------------------- input

IMAGE = {"boxes": [[0.0, 0, 10, 10], [5, 5, 20, 30]], "scores": [0.9, 0.1], "labels": [1, 2]}
TARGET = {"boxes": [[0.0, 0, 10, 11]], "labels": [1]}


class Tensor:
    """What detmap knows of a tensor on some device."""

    def __init__(self, values):
        self.values, self.dtype, self.calls = np.array(values), "torch.float32", []

    def detach(self):
        self.calls.append("detach")
        return self

    def cpu(self):
        self.calls.append("cpu")
        return self

    def __array__(self, dtype=None, copy=None):
        assert self.calls == ["detach", "cpu"]
        return self.values


class Capsule:
    """What speaks DLPack and nothing else."""

    def __init__(self, values):
        self.values = np.array(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


@pytest.mark.parametrize("kind", [list, np.array, Tensor, Capsule])
def test_anything_like_an_array(kind):
    plain, other = Evaluator(), Evaluator()
    plain.update(IMAGE, TARGET, 7)
    other.update({k: kind(v) for k, v in IMAGE.items()}, {k: kind(v) for k, v in TARGET.items()}, kind([7]))
    assert other.to_bytes() == plain.to_bytes()


def test_arrays_may_be_filled_anew():
    boxes, scores, labels = np.array(IMAGE["boxes"]), np.array(IMAGE["scores"]), np.array(IMAGE["labels"])
    plain, other = Evaluator(), Evaluator()
    plain.update(IMAGE, TARGET)
    other.update({"boxes": boxes, "scores": scores, "labels": labels}, TARGET)
    boxes[:] = scores[:] = labels[:] = 0
    assert other.to_bytes() == plain.to_bytes()


NAN = float("nan")
REFUSED = {
    "no boxes": ({**IMAGE, "boxes": None}, TARGET),
    "no scores": ({k: v for k, v in IMAGE.items() if k != "scores"}, TARGET),
    "no labels": (IMAGE, {"boxes": TARGET["boxes"]}),
    "no mapping": (5, TARGET),
    "boxes of three": ({**IMAGE, "boxes": [[1, 2, 3]] * 2}, TARGET),
    "ragged boxes": ({**IMAGE, "boxes": [[1, 2, 3, 4], [1, 2]]}, TARGET),
    "words for boxes": ({**IMAGE, "boxes": [["a"] * 4] * 2}, TARGET),
    "nan box": ({**IMAGE, "boxes": [[0, 0, NAN, 1]] * 2}, TARGET),
    "infinite box": (IMAGE, {"boxes": [[0, 0, 1, float("inf")]], "labels": [1]}),
    "inside out": ({**IMAGE, "boxes": [[9, 9, 1, 1]] * 2}, TARGET),
    "nan score": ({**IMAGE, "scores": [0.5, NAN]}, TARGET),
    "too few scores": ({**IMAGE, "scores": [0.5]}, TARGET),
    "scores of two dimensions": ({**IMAGE, "scores": [[0.5, 0.1]]}, TARGET),
    "complex scores": ({**IMAGE, "scores": [1j, 1]}, TARGET),
    "too few labels": ({**IMAGE, "labels": [1]}, TARGET),
    "fractional labels": ({**IMAGE, "labels": [1.5, 2.0]}, TARGET),
    "label beyond 64 bits": ({**IMAGE, "labels": np.array([2**64 - 1, 1], np.uint64)}, TARGET),
    "labels of two kinds": ({**IMAGE, "labels": ["a", "b"]}, TARGET),
    "negative area": (IMAGE, {**TARGET, "area": [-1.0]}),
    "nan area": (IMAGE, {**TARGET, "area": [NAN]}),
    "infinite area": (IMAGE, {**TARGET, "area": [float("inf")]}),
    "too many crowds": (IMAGE, {**TARGET, "iscrowd": [0, 1]}),
    "words for crowds": (IMAGE, {**TARGET, "iscrowd": ["no"]}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_and_nothing_taken_in(name):
    evaluator = Evaluator()
    evaluator.update([IMAGE], [TARGET], image_ids=[1])
    before = evaluator.to_bytes()
    prediction, target = REFUSED[name]
    with pytest.raises(InputError) as raised:
        evaluator.update([IMAGE, prediction], [TARGET, target], image_ids=[2, 3])
    assert "\n" not in str(raised.value)
    assert len(evaluator) == 1
    assert evaluator.to_bytes() == before


@pytest.mark.parametrize(
    ("predictions", "targets", "ids"),
    [
        ([IMAGE], [], None),
        ([IMAGE], TARGET, None),
        ([IMAGE], [TARGET], [1, 2]),
        ([IMAGE], [TARGET], [1.5]),
        ([IMAGE], [TARGET], 4),
        ([IMAGE], [TARGET], ["a"]),
        ([IMAGE, IMAGE], [TARGET, TARGET], [5, "a"]),
        ([IMAGE, IMAGE], [TARGET, TARGET], [5, 5]),
        ([IMAGE], [TARGET], [7]),
        ([IMAGE], [TARGET], None),
        ([IMAGE], [TARGET], np.array([2**64 - 1], np.uint64)),
    ],
)
def test_refused_ids(predictions, targets, ids):
    evaluator = Evaluator()
    evaluator.update(IMAGE, TARGET, 7)
    with pytest.raises(InputError):
        evaluator.update(predictions, targets, image_ids=ids)
    assert len(evaluator) == 1


def test_labels_that_are_not_among_the_categories():
    evaluator = Evaluator(categories=[1])
    evaluator.update(IMAGE, TARGET)
    assert evaluator.compute().notices["unknown_category"] == 1
    with pytest.raises(InputError, match="categories"):
        evaluator.update(IMAGE, {**TARGET, "labels": [2]})
    found_out = Evaluator()
    found_out.update(IMAGE, TARGET)
    assert found_out.compute().notices["unknown_category"] == 1


def test_empty_sides():
    evaluator = Evaluator()
    nothing = {"boxes": [], "scores": [], "labels": []}
    evaluator.update(nothing, {"boxes": np.empty((0, 4)), "labels": np.empty(0)})
    evaluator.update(nothing, {"boxes": [[0, 0, 1, 1]], "labels": ["cat"]})
    evaluator.update({"boxes": [[0, 0, 1, 1]], "scores": [1], "labels": ["dog"]}, {"boxes": [], "labels": []})
    result = evaluator.compute()
    assert result["AP"] == 0
    assert [name for _, name in result.categories] == ["cat"]
    assert len(Evaluator.from_bytes(evaluator.to_bytes())) == 3


def test_options():
    for wrong in ({"box_format": "yxyx"}, {"duplicates": "last"}, {"protocol": "kitti"}, {"iou_thresholds": "a"}):
        with pytest.raises(OptionError):
            Evaluator(**wrong)
    with pytest.raises(InputError):
        Evaluator(categories=[1.5])
    evaluator = Evaluator(max_dets=[1, 10, 500], iou_thresholds=0.5)
    assert evaluator.protocol.max_dets == (1, 10, 500)
    assert "0 images under coco" in repr(evaluator)


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


# ------------------------------------------------------------------------------------------------------------ states


def state():
    return feed(evaluator_of(WORKLOAD[0]), by_image(*WORKLOAD), [item["id"] for item in WORKLOAD[0]["images"]])


def resealed(data, change):
    """A state whose header `change` has edited, with the digest that belongs to it: what a forger would send."""
    start = 16
    (length,) = struct.unpack("<Q", data[8:start])
    header = json.loads(data[start : start + length])
    payload = data[start + length : -32]
    changed = change(header, payload)
    if changed is not None:
        payload = changed
    text = json.dumps(header).encode()
    body = data[:8] + struct.pack("<Q", len(text)) + text + payload
    return body + hashlib.blake2b(body, digest_size=32).digest()


def test_states_go_round():
    evaluator = state()
    expected = evaluator.compute()
    for copied in (
        Evaluator.from_bytes(evaluator.to_bytes()),
        Evaluator.from_bytes(bytearray(evaluator.to_bytes()), evaluator.protocol),
        pickle.loads(pickle.dumps(evaluator)),
        copy.deepcopy(evaluator),
    ):
        assert_same_result(copied.compute(), expected)
        assert copied.to_bytes() == evaluator.to_bytes()
        assert copied.compute().notices == expected.notices
        with pytest.raises(InputError):
            copied.update(IMAGE, {"boxes": [], "labels": []}, evaluator.compute().tally.image_ids[0])
    other = evaluator_of(WORKLOAD[0])
    other.load_state_dict(evaluator.state_dict())
    assert_same_result(other.compute(), expected)
    tally = expected.tally
    assert Tally.from_bytes(tally.to_bytes(), tally.protocol).to_bytes() == tally.to_bytes()


@settings(max_examples=examples(60))
@given(coco_workloads())
def test_tallies_go_round(workload):
    dataset, results, params = workload
    tally = evaluate(dataset, results, params).tally
    copied = Tally.from_bytes(tally.to_bytes())
    assert (copied.protocol, copied.categories, copied.notices) == (tally.protocol, tally.categories, tally.notices)
    assert copied.to_bytes() == tally.to_bytes()
    assert_same_result(detmap.DetectionResult(copied), detmap.DetectionResult(tally))


def test_strange_protocols_go_round():
    for options in (
        {"protocol": "voc2007"},
        {"area_ranges": {"all": (0, float("inf")), "é\n": (1, 2)}, "max_dets": [1, None]},
        {"use_categories": False, "categories": ["a", "b"]},
        {"categories": {2**60: "big", -5: ""}},
        {"iou_thresholds": np.linspace(0, 1, 33).tolist()},
    ):
        evaluator = Evaluator(**options)
        label = next(iter(options.get("categories", [3])))
        target = {"boxes": [[0, 0, 4, 4]], "labels": [label]}
        evaluator.update({**target, "scores": [0.5]}, target, "an image")
        copied = Evaluator.from_bytes(evaluator.to_bytes())
        assert copied.protocol == evaluator.protocol
        assert copied.to_bytes() == evaluator.to_bytes()
        copied.update({**target, "scores": [0.5]}, target, "another image")
        assert len(copied.compute().tally) == 2
        assert Evaluator.from_bytes(Evaluator(**options).to_bytes()).to_bytes() == Evaluator(**options).to_bytes()


@pytest.mark.parametrize("kind", [Evaluator, Tally])
def test_ten_thousand_flips(kind):
    data = state().to_bytes() if kind is Evaluator else state().compute().tally.to_bytes()
    rng = random.Random(5)
    for _ in range(10_000):
        damaged = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 2, 20])):
            damaged[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        if damaged != data:
            with pytest.raises(StateError):
                kind.from_bytes(bytes(damaged))


def test_cut_short_and_foreign():
    data = state().to_bytes()
    for length in range(0, len(data), 7):
        with pytest.raises(StateError):
            Evaluator.from_bytes(data[:length])
    for foreign in (data + b"\0", b"", pickle.dumps({}), b"{}", None, "state", 5, state().compute().tally.to_bytes()):
        with pytest.raises(StateError) as raised:
            Evaluator.from_bytes(foreign)
        assert "\n" not in str(raised.value)
    with pytest.raises(StateError, match="evaluator"):
        Tally.from_bytes(data)


def test_foreign_protocols_and_categories():
    evaluator = state()
    for other in (evaluator_of(WORKLOAD[0], max_dets=[5]), Evaluator(categories=[1]), Evaluator()):
        before = other.to_bytes()
        with pytest.raises(StateError):
            other.load_state_dict(evaluator.state_dict())
        assert other.to_bytes() == before
    for wrong in ({}, {"state": b""}, None, {"state": "x"}):
        with pytest.raises(StateError):
            evaluator.load_state_dict(wrong)
    with pytest.raises(StateError, match="protocol"):
        Evaluator.from_bytes(evaluator.to_bytes(), Evaluator("voc2007").protocol)
    with pytest.raises(StateError, match="version"):
        Evaluator.from_bytes(resealed(evaluator.to_bytes(), lambda header, payload: header.update(version=2)))


def set_in(*path):
    """A change of a header: the last of `path` becomes the value at the others."""

    def change(header, payload):
        inner = header
        for key in path[:-2]:
            inner = inner[key]
        inner[path[-2]] = path[-1]

    return change


def set_column(name, index, value):
    """A change of one value of a column of `FORGED`."""

    def change(header, payload):
        images, detections, pairs = header["rows"]
        sizes = {"image_ids": ("<i8", images), "category": ("<i4", detections), "image": ("<i4", detections)}
        sizes |= {"rank": ("<i4", detections), "order": ("<i8", 0), "scores": ("<f8", detections)}
        sizes |= {"hit": ("<u8", detections), "ignored": ("<u8", detections), "positive_category": ("<i4", pairs)}
        sizes |= {"positive_image": ("<i4", pairs), "positive_counts": ("<i4", 4 * pairs)}
        at = 0
        for column, (dtype, count) in sizes.items():
            width = int(dtype[2])
            if column == name:
                values = np.frombuffer(payload[at : at + width * count], dtype).copy()
                values[index] = value
                return payload[:at] + values.tobytes() + payload[at + width * count :]
            at += width * count
        raise KeyError(name)

    return change


FORGED = {
    "rows beyond all memory": set_in("rows", [2**62, 2**62, 2**62]),
    "negative rows": set_in("rows", [9, -1, 2]),
    "fewer rows": set_in("rows", 1, 3),
    "no rows": lambda header, payload: header.pop("rows") and None,
    "more than known": set_in("extra", 1),
    "another kind": set_in("kind", "ranking"),
    "a number for a kind": set_in("kind", 5),
    "words for categories": set_in("categories", "abc"),
    "fewer categories": lambda header, payload: header["categories"].clear(),
    "repeated categories": lambda header, payload: header["categories"].__setitem__(0, header["categories"][1]),
    "image ids as words": set_in("image_ids", ["a"]),
    "no protocol": set_in("protocol", {}),
    "no thresholds": set_in("protocol", "iou_thresholds", []),
    "more thresholds": set_in("protocol", "iou_thresholds", np.linspace(0, 1, 500).tolist()),
    "too many rankings": lambda header, payload: header["protocol"].update(
        recall_thresholds=np.linspace(0, 1, 3000).tolist(),
        max_dets=list(range(1, 3001)),
    ),
    "nan threshold": set_in("protocol", "iou_thresholds", [NAN] * 10),
    "unknown matching": set_in("protocol", "matching", "greedy"),
    "unknown field of a protocol": set_in("protocol", "surprise", 1),
    "deep protocol": set_in("protocol", "name", json.loads("[" * 500 + "]" * 500)),
    "negative notices": set_in("notices", "unknown_category", -1),
    "category out of range": set_column("category", -1, 99),
    "negative category": set_column("category", 0, -1),
    "image out of range": set_column("image", 0, 10**6),
    "negative rank": set_column("rank", 0, -1),
    "rank beyond the cap": set_column("rank", 0, 100),
    "nan score": set_column("scores", 0, NAN),
    "unsorted scores": set_column("scores", 1, 1e9),
    "unsorted categories": set_column("category", 0, 3),
    "image ids that repeat": set_column("image_ids", 1, -(2**62)),
    "positive of no image": set_column("positive_image", 0, 50),
    "positive of no category": set_column("positive_category", 0, -2),
    "negative positives": set_column("positive_counts", 0, -1),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_tallies(name):
    data = state().compute().tally.to_bytes()
    assert Tally.from_bytes(resealed(data, lambda header, payload: None)).image_ids.size == 9
    forged = resealed(data, FORGED[name])
    with pytest.raises(StateError) as raised:
        Tally.from_bytes(forged)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "change",
    [
        set_in("numbered", True),
        set_in("numbered", None),
        set_in("numbered", 5),
        set_in("box_format", "yxyx"),
        set_in("duplicates", "last"),
        set_in("categories", [[1, "a"]]),
        set_in("categories", [[1, "a"], ["b", "c"]]),
        lambda header, payload: payload[:-1],
        lambda header, payload: b"",
    ],
)
def test_forged_evaluators(change):
    data = state().to_bytes()
    assert len(Evaluator.from_bytes(resealed(data, lambda header, payload: None))) == 9
    with pytest.raises(StateError):
        Evaluator.from_bytes(resealed(data, change))


def test_headers_that_are_none():
    data = state().to_bytes()
    magic = data[:8]
    for text, length in (
        (b"[]", 2),
        (b"{", 1),
        (b"[" * 200_000, 200_000),
        (b"{}", 2**63),
        (b"1" * 5000, 5000),
        (b"\xff", 1),
    ):
        body = magic + struct.pack("<Q", length) + text
        with pytest.raises(StateError):
            Evaluator.from_bytes(body + hashlib.blake2b(body, digest_size=32).digest())


def test_forged_at_random():
    """Bytes turned over and the digest made anew: refused, or a tally that computes without a crash."""
    data = state().compute().tally.to_bytes()
    rng = random.Random(6)
    refused = 0
    for _ in range(examples(1500)):
        body = bytearray(data[:-32])
        for _ in range(rng.choice([1, 1, 3])):
            body[rng.randrange(16, len(body))] ^= 1 << rng.randrange(8)
        forged = bytes(body) + hashlib.blake2b(body, digest_size=32).digest()
        try:
            tally = Tally.from_bytes(forged)
        except StateError:
            refused += 1
            continue
        detmap.DetectionResult(tally)
    assert refused > 0


# --------------------------------------------------------------------------------------------------------------- pickles


class Named(detmap.Evaluator):
    """A class of somebody's own, which cannot be called as the original."""

    def __init__(self, name, extra=None):
        super().__init__("coco", categories=[1, 2], threads=2)
        self.name, self.extra = name, extra


def test_a_pickle_keeps_threads_class_and_what_was_added():
    plain = detmap.Evaluator(categories=[1], threads=3)
    own = Named("mine", extra=[1])
    image = {"boxes": [[0, 0, 9, 9]], "scores": [0.8], "labels": [1]}, {"boxes": [[0, 0, 10, 10]], "labels": [1]}
    for evaluator in (plain, own):
        evaluator.update([image[0]], [image[1]], image_ids=[7])
        for again in (pickle.loads(pickle.dumps(evaluator)), copy.deepcopy(evaluator), copy.copy(evaluator)):
            assert type(again) is type(evaluator)
            assert again.threads == evaluator.threads
            assert again.compute()["AP"] == evaluator.compute()["AP"]
            assert len(again) == 1
            again.update([image[0]], [image[1]], image_ids=[8])
            assert (len(again), len(evaluator)) == (2, 1)
    assert vars(pickle.loads(pickle.dumps(own)))["extra"] == [1]

    def gather(states, mine):
        states[:] = [mine, Evaluator.to_bytes(detmap.Evaluator("coco", categories=[1, 2]))]

    merged = own.sync(gather, 2)
    assert (type(merged), merged.name, merged.threads, len(merged)) == (Named, "mine", 2, 1)


class Word(str):
    """As ids of other libraries come."""


@pytest.mark.parametrize("given", ["\0", Word("a\0")])
def test_an_id_that_ends_in_a_null_character_is_refused(given):
    """numpy drops it, so that it became another id."""
    evaluator = detmap.Evaluator()
    image = {"boxes": [], "scores": [], "labels": []}, {"boxes": [], "labels": []}
    for ids in ([given], given):
        with pytest.raises(InputError, match="holds a null character"):
            evaluator.update(*image, image_ids=ids)
    with pytest.raises(InputError, match="holds a null character"):
        detmap.Evaluator(categories=[given, "b"])
    with pytest.raises(InputError, match="record 1, field 'image_id': an id holds a null character"):
        detmap.Detections.from_arrays(image_ids=["b", given], category_ids=[1, 1], boxes=np.ones((2, 4)), scores=[1, 1])
