"""Saved states and pickles of evaluators and tallies; damaged and hostile ones."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from streamed import IMAGE, NAN, WORKLOAD, by_image, evaluator_of, feed
from support import assert_same_result, evaluate, examples
from workloads import coco_workloads

import detmap
from detmap import Evaluator, InputError, StateError, Tally

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
