"""Threads that share an evaluator: nothing is lost, nothing counts twice, nobody waits for ever."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time

import numpy as np
import pytest
from streamed import by_image, evaluator_of, feed
from support import assert_same_result
from workloads import make_coco

import detmap
from detmap import Evaluator, InputError, StateError
from detmap.detection import evaluator as module

DATASET, RESULTS = make_coco(4, images=40, categories=3)
IMAGES = by_image(DATASET, RESULTS)
IDS = sorted(IMAGES)
WHOLE = feed(evaluator_of(DATASET), IMAGES, IDS).compute()


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Match every few images, and let threads take turns all the time."""
    monkeypatch.setattr(module, "_IMAGES", 3)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*tasks):
    """Run tasks at the same time; what one of them raises is raised here, and none may hang."""
    raised = []
    barrier = threading.Barrier(len(tasks))

    def run(task):
        barrier.wait(60)
        try:
            task()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if raised:
        raise raised[0]


def updates(evaluator, ids, pause=0.0, **options):
    def task():
        for identity in ids:
            time.sleep(pause)
            evaluator.update(*IMAGES[identity], **({"image_ids": identity} if options.get("named", True) else {}))

    return task


@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize("threads", [2, 4])
def test_threads_that_update_one_evaluator(turn, threads):
    """Four updating threads ended in "image 0 is in two tallies"."""
    shared = evaluator_of(DATASET, threads=1)
    together(*(updates(shared, IDS[i::threads]) for i in range(threads)))
    assert_same_result(shared.compute(), WHOLE)


@pytest.mark.parametrize("turn", range(5))
def test_threads_that_update_without_image_ids(turn):
    """Every image gets a number of its own."""
    shared = evaluator_of(DATASET, threads=1)
    together(*(updates(shared, IDS[i::4], named=False) for i in range(4)))
    result = shared.compute()
    assert len(shared) == len(IDS)
    assert result.tally.image_ids.tolist() == list(range(len(IDS)))
    assert len(result.tally) == len(WHOLE.tally)
    assert np.array_equal(result.tally.positives, WHOLE.tally.positives)


def readings(evaluator, done):
    def compute():
        seen = 0
        while not done.is_set():
            result = evaluator.compute()
            assert seen <= result.tally.image_ids.size <= len(evaluator)
            seen = result.tally.image_ids.size

    def save():
        while not done.is_set():
            for other in (
                pickle.loads(pickle.dumps(evaluator)),
                copy.deepcopy(evaluator),
                Evaluator.from_bytes(evaluator.state_dict()["state"]),
                evaluator.sync(lambda states, own: states.__setitem__(slice(None), [own]), 1),
            ):
                assert other.compute().tally.image_ids.size == len(other) <= len(evaluator)
                repr(evaluator)

    return {"compute": compute, "save": save}


@pytest.mark.parametrize("what", ["compute", "save"])
@pytest.mark.parametrize("turn", range(5))
def test_reading_beside_updating(turn, what, monkeypatch):
    """`compute` beside `update` lost images in 29 of 30 runs."""
    monkeypatch.setattr(module, "_IMAGES", 512)  # only who reads matches
    shared, done = evaluator_of(DATASET, threads=1), threading.Event()

    def update():
        try:
            updates(shared, IDS, pause=0.001)()
        finally:
            done.set()

    together(update, readings(shared, done)[what])
    assert_same_result(shared.compute(), WHOLE)


def test_reset_and_load_beside_updating():
    """What is seen is all of one moment: a state, or nothing, and the images after it."""
    saved = feed(evaluator_of(DATASET), IMAGES, IDS).state_dict()
    shared, done = evaluator_of(DATASET, duplicates="first", threads=1), threading.Event()

    def update():
        try:
            for _ in range(3):
                updates(shared, IDS)()
        finally:
            done.set()

    def replace():
        while not done.is_set():
            shared.reset()
            shared.load_state_dict(saved)
            assert shared.compute().tally.image_ids.size <= len(IDS)

    together(update, replace)
    updates(shared, IDS)()
    assert_same_result(shared.compute(), WHOLE)


@pytest.mark.parametrize("turn", range(10))
def test_two_evaluators_that_merge_each_other_at_once(turn):
    """No thread holds one lock while it waits for the other."""
    one, other = (feed(evaluator_of(DATASET, duplicates="first", threads=1), IMAGES, IDS[i::2]) for i in (0, 1))
    together(lambda: one.merge(other), lambda: other.merge(one), updates(one, IDS), updates(other, IDS))
    for evaluator in (one, other):
        assert_same_result(evaluator.compute(), WHOLE)


def test_merging_beside_updating():
    shared = evaluator_of(DATASET, threads=1)
    parts = [feed(evaluator_of(DATASET), IMAGES, IDS[i::4]) for i in (0, 1)]
    together(*(lambda part=part: shared.merge(part) for part in parts), *(updates(shared, IDS[i::4]) for i in (2, 3)))
    assert_same_result(shared.compute(), WHOLE)


def test_an_evaluator_merged_with_itself():
    """Its images are known; without image ids they are taken for others, which follow the own."""
    evaluator = feed(evaluator_of(DATASET), IMAGES, IDS)
    with pytest.raises(StateError, match="was seen by both"):
        evaluator.merge(evaluator)
    assert_same_result(evaluator.compute(), WHOLE)
    first = feed(evaluator_of(DATASET, duplicates="first"), IMAGES, IDS)
    assert_same_result(first.merge(first).compute(), WHOLE)
    numbered = evaluator_of(DATASET)
    updates(numbered, IDS[:5], named=False)()
    assert len(numbered.merge(numbered)) == 10
    assert numbered.compute().tally.image_ids.tolist() == list(range(10))


def test_an_update_within_an_update():
    """A signal's handler, or a list that computes while it is read, runs in the thread that holds the lock."""
    shared = evaluator_of(DATASET, threads=1)
    updates(shared, IDS[:4])()

    class Curious(dict):
        def __getitem__(self, name):
            assert shared.compute().tally.image_ids.size == 4
            return dict.__getitem__(self, name)

    prediction, target = IMAGES[IDS[4]]
    together(lambda: shared.update(Curious(prediction), target, image_ids=IDS[4]))
    updates(shared, IDS[5:])()
    assert_same_result(shared.compute(), WHOLE)


class Tensor:
    """What is used of a tensor on a device: it becomes an array only where it has been brought to the host."""

    def __init__(self, *values, shape=(1,), host=False):
        self.array, self.host = np.array(values).reshape(shape), host
        self.dtype = f"torch.{self.array.dtype}"

    def detach(self):
        return self

    def cpu(self):
        return Tensor(*self.array.ravel().tolist(), shape=self.array.shape, host=True)

    def __array__(self, *_, **__):
        if not self.host:
            raise TypeError("can't convert a tensor of cuda:0 to numpy")
        return self.array


def scored(ids, given):
    evaluator = evaluator_of(DATASET)
    evaluator.update([IMAGES[i][0] for i in ids], [IMAGES[i][1] for i in ids], image_ids=given)
    return evaluator.compute()


ONE_EACH = {
    "tensors of one element": lambda ids: [Tensor(i) for i in ids],
    "tensors without axes": lambda ids: tuple(Tensor(i, shape=()) for i in ids),
    "arrays of one element": lambda ids: [np.array([i]) for i in ids],
    "arrays without axes": lambda ids: [np.array(i) for i in ids],
    "numpy's integers": lambda ids: [np.int32(i) for i in ids],
    "a tensor of rows of one": lambda ids: Tensor(*ids, shape=(-1, 1)),
    "some of each": lambda ids: [ids[0], Tensor(ids[1]), np.array([ids[2]])],
}


@pytest.mark.parametrize("how", ONE_EACH)
def test_image_ids_of_one_element_each(how):
    """Older torchvision references put `torch.tensor([7])` into a target's "image_id"."""
    expected = scored(IDS[:3], IDS[:3])
    found = scored(IDS[:3], ONE_EACH[how](IDS[:3]))
    assert_same_result(found, expected)
    assert found.tally.image_ids.tolist() == expected.tally.image_ids.tolist()


def test_words_of_one_element_each():
    found = scored(IDS[:2], [np.array(["b"]), np.str_("a")])
    assert found.tally.image_ids.tolist() == ["a", "b"]
    assert type(found.tally.image_ids.tolist()[0]) is str


@pytest.mark.parametrize(
    "given",
    [
        [Tensor(1, 2, shape=2), 3],
        [np.array([1.0]), 2],
        [np.array([True]), 2],
        [True, 2],
        [np.array(["a"]), 2],
        [np.array([]), 2],
        [np.array([2**64 - 1], np.uint64), 2],
        [np.array([b"a"]), np.array([b"b"])],
        [np.array(["2020-01-01"], "M8[ns]"), 2],
        [None, 2],
        np.zeros((2, 2), int),
    ],
)
def test_image_ids_that_are_none(given):
    with pytest.raises(InputError, match="image_ids"):
        scored(IDS[:2], given)


def test_one_image_alone():
    for given in (Tensor(7), np.array([7]), np.array(7), [Tensor(7)]):
        evaluator = evaluator_of(DATASET)
        evaluator.update(*IMAGES[IDS[0]], image_ids=given)
        assert evaluator.compute().tally.image_ids.tolist() == [7]


def test_the_result_is_of_one_evaluation():
    """What all others here are compared with is itself that of one call."""
    from support import evaluate

    assert_same_result(WHOLE, evaluate(DATASET, RESULTS))
    assert isinstance(WHOLE, detmap.DetectionResult)
