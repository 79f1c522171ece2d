"""What the streaming evaluator takes: anything like an array; and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from streamed import IMAGE, NAN, TARGET

from detmap import Evaluator, InputError, OptionError


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
    for wrong in ({"box_format": "yxyx"}, {"duplicates": "last"}, {"protocol": "cityscapes"}, {"iou_thresholds": "a"}):
        with pytest.raises(OptionError):
            Evaluator(**wrong)
    with pytest.raises(InputError):
        Evaluator(categories=[1.5])
    evaluator = Evaluator(max_dets=[1, 10, 500], iou_thresholds=0.5)
    assert evaluator.protocol.max_dets == (1, 10, 500)
    assert "0 images under coco" in repr(evaluator)
