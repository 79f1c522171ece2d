"""What other libraries hand over, as small stand-ins with the layout of the real classes; those are tried in tests/torch."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import detmap
from detmap.errors import InputError, OptionError
from detmap.formats.interop import from_supervision, from_torchvision, from_ultralytics

NAMES = {0: "cat", 1: "dog"}
BOXES = [[0, 0, 8, 8], [10, 10, 30, 20]]


@pytest.fixture
def truth():
    """Two images; categories are not numbered as the models number their classes."""
    table = detmap.GroundTruth.from_arrays(
        image_ids=[7, 7, 9],
        category_ids=[18, 17, 17],
        boxes=[*BOXES, [1, 1, 5, 5]],
        box_format="xyxy",
        images=[7, 9],
        categories=[17, 18],
        category_names={17: "dog", 18: "cat"},
    )
    return replace(table, images=replace(table.images, names=("a.jpg", "b.jpg")))


class Tensor:
    """What a tensor on another device does: it has to come over first."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.dtype, self.shape = self._values.dtype, self._values.shape

    def __len__(self):
        return len(self._values)

    def detach(self):
        return self

    def cpu(self):
        return self._values


def result(path, boxes, classes, scores, **more):
    """As `ultralytics.engine.results.Results`."""
    held = SimpleNamespace(
        xyxy=Tensor(np.reshape(np.array(boxes, np.float32), (-1, 4))),
        cls=Tensor(np.array(classes, np.float32)),
        conf=Tensor(np.array(scores, np.float32)),
    )
    given = {"masks": None, "keypoints": None, "obb": None, "probs": None, **more}
    return SimpleNamespace(path=path, orig_shape=(40, 60), names=NAMES, boxes=held, **given)


def results():
    return [result("/data/a.jpg", BOXES, [0, 1], [0.5, 0.25]), result("/data/b.jpg", [], [], [])]


def test_ultralytics_results_find_the_ground_truths_images_and_categories(truth):
    found = from_ultralytics(results(), ground_truth=truth)
    assert found.images.ids.tolist() == [7]
    assert found.categories.ids[found.categories.codes].tolist() == [18, 17]
    assert found.boxes.tolist() == BOXES
    assert found.scores.tolist() == [0.5, 0.25]
    assert detmap.evaluate(truth, found)["AP50"] > 0.5
    plain = from_ultralytics(iter(results()))
    assert plain.images.ids.tolist() == ["a"]
    assert plain.categories.ids[plain.categories.codes].tolist() == [0, 1]
    assert from_ultralytics(results()[0], image_ids=[3]).images.ids.tolist() == [3]
    assert len(from_ultralytics([])) == 0
    assert detmap.formats.interop.from_ultralytics is from_ultralytics
    assert not hasattr(detmap.formats, "nothing")


def test_ultralytics_oriented_boxes_masks_and_keypoints():
    one = results()[0]
    turned = replace_of(one, boxes=None, obb=one.boxes)
    assert from_ultralytics([turned]).boxes.tolist() == BOXES
    bitmaps = np.zeros((2, 40, 60), np.float32)
    bitmaps[0, 2:6, 1:5] = 1
    masked = replace_of(one, masks=SimpleNamespace(data=Tensor(bitmaps), xy=[]))
    found = from_ultralytics([masked, results()[1]], iou_type="segm")
    assert found.shapes["segm"].areas().tolist() == [16, 0]
    outlines = [np.array([[1, 2], [5, 2], [5, 6], [1, 6]], np.float32), np.empty((0, 2), np.float32)]
    for order in (1, -1):  # an outline of nothing is a mask of nothing, wherever it stands
        small = replace_of(one, masks=SimpleNamespace(data=Tensor(bitmaps[:, ::2, ::2]), xy=outlines[::order]))
        assert from_ultralytics([small], iou_type="segm").shapes["segm"].areas().tolist() == [16, 0][::order]
    for size, last in ((3, [0.5, 0.5]), (2, [1, 1])):
        points = np.full((2, 4, size), 0.5, np.float32)
        posed = replace_of(one, keypoints=SimpleNamespace(data=Tensor(points)))
        found = from_ultralytics([posed, results()[1]], iou_type="keypoints")
        assert found.shapes["keypoints"].arrays()["values"].reshape(2, 4, 3)[:, 0, 2].tolist() == last


def replace_of(namespace, **change):
    return SimpleNamespace(**{**vars(namespace), **change})


def test_ultralytics_results_that_are_none(truth):
    with pytest.raises(InputError, match="expected Ultralytics' Results"):
        from_ultralytics(3)
    with pytest.raises(InputError, match="has no path"):
        from_ultralytics([SimpleNamespace()])
    with pytest.raises(InputError, match=r"image /data/a\.jpg: there are no boxes"):
        from_ultralytics([replace_of(results()[0], boxes=None)])
    with pytest.raises(InputError, match="there are no masks; score the boxes"):
        from_ultralytics(results(), iou_type="segm")
    with pytest.raises(InputError, match="there are no keypoints; score the boxes"):
        from_ultralytics(results(), iou_type="keypoints")
    with pytest.raises(InputError, match="image a: is there twice"):
        from_ultralytics([results()[0], results()[0]])
    with pytest.raises(InputError, match="3 image_ids for 2 images"):
        from_ultralytics(results(), image_ids=[1, 2, 3])
    with pytest.raises(OptionError, match="unknown iou_type"):
        from_ultralytics(results(), iou_type="ellipses")
    stranger = [*results(), result("/data/c.jpg", BOXES, [0, 1], [1, 1])]
    with pytest.raises(InputError, match=r"is not an image of the ground truth \(got '/data/c.jpg'\)"):
        from_ultralytics(stranger, ground_truth=truth)
    found = from_ultralytics(stranger, ground_truth=truth, unknown_images="ignore")
    assert (len(found), found.notices["unknown_image"]) == (2, 2)


class Supervised:
    """As `supervision.Detections`."""

    def __init__(self, xyxy, class_id=None, confidence=None, mask=None, names=None):
        self.xyxy, self.mask = np.reshape(np.array(xyxy, np.float32), (-1, 4)), mask
        self.class_id = None if class_id is None else np.array(class_id, int)
        self.confidence = None if confidence is None else np.array(confidence, np.float32)
        self.tracker_id, self.metadata = None, {}
        self.data = {} if names is None else {"class_name": np.array(names)}


def test_supervisions_detections(truth):
    one = Supervised(BOXES, [0, 1], [0.5, 0.25], names=["cat", "dog"])
    for given, more in (
        ({"images/a.jpg": one, "images/b.jpg": Supervised([])}, {}),
        ([one, Supervised([])], {"image_ids": [7, 9]}),
        (one, {"image_ids": [7]}),
        ([Supervised(BOXES, [0, 1], [0.5, 0.25])], {"image_ids": ["a.jpg"], "classes": ["cat", "dog"]}),
    ):
        found = from_supervision(given, ground_truth=truth, **more)
        assert found.images.ids.tolist() == [7]
        assert found.categories.ids[found.categories.codes].tolist() == [18, 17]
        assert found.scores.tolist() == [0.5, 0.25]
    dataset = SimpleNamespace(
        classes=["cat", "dog"], annotations={"a.jpg": Supervised(BOXES, [0, 1]), "b.jpg": Supervised([])}
    )
    table = from_supervision(dataset, role="ground_truth")
    assert table.images.ids.tolist() == ["a.jpg", "b.jpg"]
    assert table.category_names == ("cat", "dog")
    assert table.boxes.tolist() == BOXES
    masks = np.zeros((2, 40, 60), bool)
    masks[0, :2, :3] = True
    found = from_supervision({"a": Supervised(BOXES, [0, 1], [1, 1], masks), "b": Supervised([])}, iou_type="segm")
    assert found.shapes["segm"].areas().tolist() == [6, 0]


@pytest.mark.parametrize(
    ("given", "more", "problem"),
    [
        ([Supervised(BOXES, [0, 1], [1, 1])], {}, "0 image_ids for 1 images"),
        ({"a": Supervised(BOXES, None, [1, 1])}, {}, "image a: there are no classes; set class_id"),
        ({"a": Supervised(BOXES, [0, 1])}, {}, "there are no scores; set confidence"),
        ({"a": Supervised(BOXES, [0], [1, 1])}, {}, "1 category_ids for 2 boxes"),
        ({"a": Supervised(BOXES, [0, 1], [1, 1])}, {"iou_type": "segm"}, "there are no masks"),
        ({"a": Supervised(BOXES, [0, 1], [1, 1])}, {"iou_type": "keypoints"}, "have no keypoints"),
        ({"a": Supervised(BOXES, [0, 0], [1, 1], names=["x", "y"])}, {}, "the class 0 has two names"),
        ({"a": "boxes"}, {}, "expected supervision's Detections"),
        ({"a": Supervised(BOXES, [0, 1], [1, 1])}, {"classes": 3}, "must be a list of names|not iterable"),
        ({1.5: Supervised(BOXES, [0, 1], [1, 1])}, {}, "must be an integer or a string"),
    ],
)
def test_supervisions_detections_that_are_none(given, more, problem):
    with pytest.raises((InputError, TypeError), match=problem):
        from_supervision(given, **more)
    with pytest.raises(OptionError, match="unknown role 'both'"):
        from_supervision({}, role="both")


def output(**more):
    """As torchvision's models return it."""
    given = {
        "boxes": np.array(BOXES, np.float32),
        "labels": np.array([1, 2]),
        "scores": np.array([0.5, 0.25], np.float32),
    }
    return {**{name: Tensor(value) for name, value in {**given, **more}.items()}}


def test_torchvisions_outputs_and_targets(truth):
    names = ["__background__", "cat", "dog"]
    found = from_torchvision([output()], image_ids=[7], ground_truth=truth, classes=names)
    assert found.categories.ids[found.categories.codes].tolist() == [18, 17]
    target = {**output(image_id=[7], area=[64.0, 200.0], iscrowd=[0, 1])}
    table = from_torchvision([target], role="ground_truth", classes=names)
    assert table.images.ids.tolist() == [7]
    assert table.areas.tolist() == [64, 200]
    assert table.crowd.tolist() == [False, True]
    assert table.category_names == ("__background__", "cat", "dog")
    masks = np.zeros((2, 1, 40, 60), np.float32)
    masks[0, 0, :2, :3] = 0.75
    masks[1, 0, :2, :3] = 0.5
    empty = output(boxes=np.empty((0, 4)), labels=[], scores=[], masks=np.empty((0, 1, 40, 60), np.float32))
    found = from_torchvision([output(masks=masks), empty], image_ids=["a", "b"], iou_type="segm")
    assert found.shapes["segm"].areas().tolist() == [6, 0]
    points = np.ones((2, 5, 3), np.float32)
    found = from_torchvision(output(keypoints=points), image_ids=["a"], iou_type="keypoints")
    assert len(found.shapes["keypoints"]) == 2


@pytest.mark.parametrize(("form", "box"), [("XYWH", [2, 4, 6, 8]), ("CXCYWH", [5, 8, 6, 8]), ("XYXY", [2, 4, 8, 12])])
def test_torchvisions_boxes_say_their_format(form, box):
    """As `torchvision.tv_tensors.BoundingBoxes` does, by an enumeration."""
    boxes = np.array([box], float).view(Formatted)
    boxes.format = SimpleNamespace(value=form)
    one = {"boxes": boxes, "labels": np.array([1]), "scores": np.array([1.0])}
    assert from_torchvision([one], image_ids=[1]).boxes.tolist() == [[2, 4, 8, 12]]
    boxes.format = SimpleNamespace(value="XYWHR")
    with pytest.raises(InputError, match=r"boxes of this format are not read \(got 'XYWHR'\)"):
        from_torchvision([one], image_ids=[1])


class Formatted(np.ndarray):
    """An array that may say more than numbers."""


@pytest.mark.parametrize(
    ("given", "more", "problem"),
    [
        ([output()], {}, "record 0: no image_id says which image it is; give image_ids"),
        ([{"boxes": []}], {"image_ids": [1]}, "image 1: there are no labels; it has: boxes"),
        ([output(image_id=[1, 2])], {}, "image_id is not one number"),
        ([3], {}, "expected a mapping for each image"),
        ([output(), output()], {"image_ids": [1, 1]}, "image 1: is there twice"),
        ([output(labels=[1])], {"image_ids": [1]}, "1 category_ids for 2 boxes"),
        ([output()], {"image_ids": [1], "iou_type": "segm"}, "there are no masks"),
    ],
)
def test_torchvisions_outputs_that_are_none(given, more, problem):
    with pytest.raises(InputError, match=problem):
        from_torchvision(given, **more)


@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_masks_than_of_boxes_is_refused(count):
    output = {"image_id": 7, "boxes": np.array(BOXES), "labels": [1, 2], "scores": [0.5, 0.25]}
    with pytest.raises(InputError, match=f"image 7: {count} masks for 2 boxes"):
        from_torchvision([{**output, "masks": np.ones((count, 4, 4), bool)}], iou_type="segm")
