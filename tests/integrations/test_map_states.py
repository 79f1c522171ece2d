"""The state of a mean average precision of torchmetrics' kind, scored as `COCOeval` scores the same records."""

from __future__ import annotations

from functools import partial

import fake_packages
import numpy as np
import pytest
from fake_packages import tensor

from detmap.integrations.map_states import Settings, States, scores_of
from detmap.pycocotools import mask
from detmap.pycocotools.coco import COCO
from detmap.pycocotools.cocoeval import COCOeval

IOUS, RECALLS = np.linspace(0.5, 0.95, 10).tolist(), np.linspace(0.0, 1.0, 101).tolist()


@pytest.fixture(autouse=True)
def _torch(monkeypatch):
    fake_packages.stand_in("torchmetrics", monkeypatch)


def drawn(seed, *, boxes=True, masks=False, images=8, classes=4):
    """A state: some images lack objects, detections or both; areas are absent, 0, negative or others than their shape's."""
    rng = np.random.default_rng(seed)
    state = States(*([] for _ in States._fields))
    for _ in range(images):
        true, found = rng.integers(0, 5) * (rng.random() < 0.8), rng.integers(0, 9) * (rng.random() < 0.8)
        own = np.concatenate([rng.integers(0, 60, (true, 2)), rng.integers(4, 70, (true, 2))], 1).astype(np.float32)
        labels = rng.integers(0, classes, true)
        near = rng.integers(0, max(true, 1), found) if true else np.zeros(found, int)
        moved = own[near] + rng.integers(-2, 3, (found, 4)) if true else np.full((found, 4), 9)
        moved[:, 2:] = np.maximum(moved[:, 2:], 1)
        state.groundtruth_labels.append(tensor(labels))
        state.detection_labels.append(tensor(labels[near] if true else rng.integers(0, classes, found)))
        if boxes:
            state.groundtruth_box.append(tensor(own if true else np.empty(0, np.float32)))
            state.detection_box.append(tensor(moved.astype(np.float32) if found else np.empty((0, 4), np.float32)))
        if masks:
            for shapes, into in ((own, state.groundtruth_mask), (moved, state.detection_mask)):
                drawn_shapes = mask.frPyObjects(np.array(shapes, float).reshape(-1, 4), 130, 140)
                into.append(tuple((one["size"], one["counts"]) for one in drawn_shapes))
        state.detection_scores.append(tensor(rng.integers(1, 6, found) / 8))
        state.groundtruth_crowds.append(tensor(rng.random(true) < 0.2).astype(np.int64))
        state.groundtruth_area.append(tensor(rng.choice([0.0, 0.0, 500.0, 5000.0, 20000.0], true)))
    return state


def settings(kinds=("bbox",), average="macro", caps=(1, 10, 100), ious=IOUS, recalls=RECALLS, by_class=False):
    return Settings(kinds, average, ious, recalls, caps, by_class)


def records(state, kind, one_class, scored):
    """The annotations and results of a state, in COCO's form."""
    truth, found = [], []
    for name, out in (("groundtruth", truth), ("detection", found)):
        for image, labels in enumerate(getattr(state, f"{name}_labels")):
            for row, label in enumerate(labels.tolist()):
                one = {"image_id": image, "category_id": 0 if one_class else label, "id": len(out) + 1, "iscrowd": 0}
                if getattr(state, f"{name}_box"):
                    one["bbox"] = getattr(state, f"{name}_box")[image][row].tolist()
                    one["area"] = one["bbox"][2] * one["bbox"][3]
                if getattr(state, f"{name}_mask"):
                    size, counts = getattr(state, f"{name}_mask")[image][row]
                    one["segmentation"] = {"size": size, "counts": counts}
                    one["area"] = float(mask.area([one["segmentation"]])[0])
                if name == "detection":
                    one["score"] = float(state.detection_scores[image][row])
                    if kind == "segm":
                        one.pop("bbox", None)
                else:
                    one["iscrowd"] = int(state.groundtruth_crowds[image][row])
                    one["area"] = float(state.groundtruth_area[image][row]) or one["area"]
                if image in scored:
                    out.append(one)
    return truth, found


def mean(values):
    values = values[values > -1]
    return float(np.mean(values)) if values.size else -1.0


def expected(state, kind, given, classes, one_class):
    """The twelve numbers, and AP and AR of each class."""
    counts = [list(map(len, labels)) for labels in (state.groundtruth_labels, state.detection_labels)]
    every = range(len(counts[0]))
    scored = [i for i in every if state.groundtruth_box or counts[0][i]]
    truth, found = records(state, kind, one_class, scored)
    data = COCO()
    data.dataset = {
        "images": [{"id": i, "height": 130, "width": 140} for i in scored], "annotations": truth,
        "categories": [{"id": one} for one in ([0] if one_class else classes)],
    }  # fmt: skip
    data.createIndex()
    results = COCO()
    results.dataset = {**data.dataset, "annotations": found}
    results.createIndex()
    made = COCOeval(data, results, kind)
    made.params.iouThrs, made.params.recThrs = np.array(given.iou_thresholds), np.array(given.rec_thresholds)
    made.params.maxDets = sorted(set(given.max_detection_thresholds))
    made.evaluate()
    made.accumulate()
    precision, recall = made.eval["precision"], made.eval["recall"]
    stats = [mean(precision[..., 0, -1])]
    stats += [mean(precision[np.array(given.iou_thresholds) == iou][..., 0, -1]) for iou in (0.5, 0.75)]
    stats += [mean(precision[..., a, -1]) for a in (1, 2, 3)]
    stats += [mean(recall[..., 0, made.params.maxDets.index(cap)]) for cap in given.max_detection_thresholds]
    stats += [mean(recall[..., a, -1]) for a in (1, 2, 3)]
    of_class = range(precision.shape[2])
    return stats, [mean(precision[:, :, k, 0, -1]) for k in of_class], [mean(recall[:, k, 0, -1]) for k in of_class]


def assert_same(state, given):
    found, classes = scores_of(state, given)
    sides = (*state.groundtruth_labels, *state.detection_labels)
    assert classes == sorted({one for labels in sides for one in labels.tolist()})
    assert list(found) == list(given.iou_type)
    micro = given.average == "micro"
    for kind in given.iou_type:
        stats = expected(state, kind, given, classes, micro)[0]
        assert found[kind].stats == stats
        if not given.class_metrics:
            assert found[kind].ap is None
            assert found[kind].ar is None
            continue
        _, ap, ar = expected(state, kind, given, classes, False)
        assert found[kind].ap.tolist() == pytest.approx(ap, rel=1e-15)
        assert found[kind].ar.tolist() == pytest.approx(ar, rel=1e-15)
    return found


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("kinds", [("bbox",), ("segm",), ("bbox", "segm"), ("segm", "bbox")], ids="+".join)
def test_every_kind(kinds, average, by_class):
    for seed in range(2):
        state = drawn(seed, boxes="bbox" in kinds, masks="segm" in kinds)
        found = assert_same(state, settings(kinds, average, by_class=by_class))
        assert all(0 < one.stats[0] < 1 for one in found.values())


def test_caps_and_thresholds():
    given = partial(settings, ious=[0.75, 0.5, 0.3], recalls=[0.0, 0.2, 0.9], by_class=True)
    for caps in ((1, 2, 3), (3, 1, 2), (2, 2, 2)):
        assert_same(drawn(5), given(caps=caps))


def tenfold(value):
    """The mean of ten equal values, which may differ from them in the last bit."""
    return float(np.mean([value] * 10))


def test_crowds_areas_and_what_lies_beside_an_object():
    """Four objects of one class by hand: of a negative area, a crowd, of another area than its box, and an empty box."""
    none = tensor(np.empty((0, 4), np.float32))
    boxes = tensor([[0, 0, 10, 10], [20, 0, 10, 10], [40, 0, 10, 10], [60, 0, 0, 10]], np.float32)
    state = States(
        detection_box=[boxes[:3], none], detection_mask=[], detection_scores=[tensor([0.9, 0.8, 0.7]), tensor([])],
        detection_labels=[tensor([3, 3, 3]), tensor([])], groundtruth_box=[boxes, none], groundtruth_mask=[],
        groundtruth_labels=[tensor([3, 3, 3, 3]), tensor([])],
        groundtruth_crowds=[tensor([0, 1, 0, 0]), tensor([])],
        groundtruth_area=[tensor([0.0, 0.0, 1e5, 0.0]), tensor([])],
    )  # fmt: skip
    found, classes = scores_of(state, settings(by_class=True))
    assert classes == [3]
    stats = found["bbox"].stats
    # Of three objects that count, two are found: the empty box is small, and so is the first one; the third is large.
    assert stats[6:] == [tenfold(1 / 3), tenfold(2 / 3), tenfold(2 / 3), 0.5, -1.0, 1.0]
    assert stats[:3] == [67 / 101] * 3
    assert found["bbox"].ar.tolist() == [tenfold(2 / 3)]
    negative = state._replace(
        groundtruth_box=[tensor([[0, 0, -10, 10], [20, 0, 10, 10], [40, 0, 10, 10], [60, 0, 0, 10]], np.float32), none],
        groundtruth_area=[tensor([0.0, 0.0, 0.0, 0.0]), tensor([])],
    )
    assert scores_of(negative, settings())[0]["bbox"].stats[6:9] == [0.0, 0.5, 0.5]


def test_no_images_no_objects_and_no_detections():
    empty = States(*([] for _ in States._fields))
    assert scores_of(empty, settings(("bbox", "segm"))) == ({"bbox": None, "segm": None}, [])
    state = drawn(3, boxes=False, masks=True, images=6)
    none = [tensor([]) for _ in range(6)]
    nothing = {"mask": [()] * 6, "labels": none}
    found = state._replace(**{f"detection_{name}": one for name, one in nothing.items()}, detection_scores=none)
    assert scores_of(found, settings(("segm",)))[0] == {"segm": None}
    true = {"groundtruth_crowds": none, "groundtruth_area": none}
    true |= {f"groundtruth_{name}": one for name, one in nothing.items()}
    assert scores_of(state._replace(**true), settings(("segm",)))[0] == {"segm": None}
    boxes = drawn(3, images=6)
    flat = [tensor(np.empty((0, 4), np.float32))] * 6
    found = boxes._replace(detection_box=flat, detection_labels=none, detection_scores=none)
    stats = scores_of(found, settings(by_class=True))[0]["bbox"].stats
    assert set(stats[:2] + stats[6:9]) == {0.0}
    true = boxes._replace(groundtruth_box=flat, groundtruth_labels=none, groundtruth_crowds=none, groundtruth_area=none)
    scores = scores_of(true, settings(by_class=True))[0]["bbox"]
    assert set(scores.stats) == {-1.0}
    assert {*scores.ap.tolist(), *scores.ar.tolist()} == {-1.0}
