"""Tables written as YOLO's labels and read again: boxes, masks and poses, and what cannot be held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from legs import examples
from shape_workloads import mask_workload, pose_workload
from support import assert_same_result, same_bits
from test_round_trips import law, through

import detmap
from detmap.errors import InputError
from detmap.formats import registry
from detmap.formats.yolo.outlines import outlines
from detmap.masks import Masks


def test_labels_hold_boxes_but_for_their_last_digits(tmp_path_factory):
    """Shares times sizes are the boxes again, to a few units in the last place of the image's size."""

    @law(files=True, sizes=True)
    def holds(world):
        truth, found = world
        folder = tmp_path_factory.mktemp("yolo")
        again, lost = through(truth, folder / "set", format="yolo")
        if len(truth):
            far = np.abs(again.boxes - truth.boxes[np.argsort(order_of(truth, again), kind="stable")])
            assert far.max() <= 1e-12 * max(truth.boxes.max(), truth.image_sizes.max())
        assert lost.get("crowd", 0) == truth.crowd.sum()
        assert lost.get("difficult", 0) == truth.difficult.sum()
        assert again.category_names == truth.category_names
        assert sorted(again.image_sizes.tolist()) == sorted(truth.image_sizes.tolist())
        if not len(found):
            return
        detmap.write(found, folder / "found", format="yolo", ground_truth=truth)
        results = detmap.read(folder / "found", "detections", ground_truth=again)
        assert sorted(results.scores.tolist()) == sorted(found.scores.tolist())

    holds()


def order_of(truth, again):
    """For each object the place of its image in the second table, whose ids are the names of files."""
    place = {name: i for i, name in enumerate(again.images.values.tolist())}
    return np.array([place[str(truth.images.values[code])] for code in truth.images.codes])


def test_boxes_that_divide_evenly_keep_every_bit(tmp_path):
    """Sizes that are powers of two: nothing is rounded, and results are the same."""
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 5, 60)
    boxes = np.concatenate([rng.integers(0, 300, (60, 2)), rng.integers(1, 200, (60, 2))], axis=1)
    truth = detmap.GroundTruth.from_arrays(
        image_ids=np.array([f"i{i}" for i in ids[:30]]),
        category_ids=rng.integers(0, 2, 30),
        boxes=boxes[:30],
        images=[f"i{i}" for i in range(5)],
        categories=[0, 1],
        category_names={0: "no", 1: 'a "dog": {x}'},
        image_sizes=[[512, 1024]] * 5,
    )
    found = detmap.Detections.from_arrays(
        image_ids=np.array([f"i{i}" for i in ids]),
        category_ids=rng.integers(0, 2, 60),
        boxes=boxes,
        scores=rng.random(60),
    )
    again, lost = through(truth, tmp_path / "set", format="yolo")
    assert {*lost} <= {"order"}
    assert again.category_names == truth.category_names
    assert {*detmap.write(found, tmp_path / "found", format="yolo", ground_truth=truth)} <= {"order"}
    results = detmap.read(tmp_path / "found", "detections", ground_truth=again)
    order = np.argsort(found.images.codes, kind="stable")
    assert same_bits(results.boxes, found.boxes[order])
    assert same_bits(results.scores, found.scores[order])
    assert_same_result(detmap.evaluate(again, results), detmap.evaluate(truth, found))


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), side=st.integers(1, 12), share=st.sampled_from([0.1, 0.5, 0.9]))
def test_an_outline_is_drawn_as_the_same_mask_again(seed, side, share):
    """Also with holes, in parts, and where pixels touch at a corner."""
    rng = np.random.default_rng(seed)
    pixels = rng.random((3, side, side + 3)) < share
    pixels = pixels[pixels.any(axis=(1, 2))]
    if not len(pixels):
        return
    masks = Masks.from_bitmaps(pixels)
    drawn = Masks.from_polygons([[one] for one in outlines(masks)], (side, side + 3))
    assert np.array_equal(drawn.to_bitmaps(), pixels)


@pytest.mark.parametrize(("kind", "make"), [("segm", mask_workload), ("keypoints", pose_workload)])
def test_masks_and_poses_score_the_same_when_they_were_written(kind, make, tmp_path):
    dataset, results = make(4)[:2]
    for image in dataset["images"]:
        image.update({"height": image.get("height", 512), "width": image.get("width", 512)})
    truth = detmap.read_coco(dataset, iou_type=kind)
    truth = replace(truth, crowd=detmap.kernels.readonly(np.zeros(len(truth)), np.bool_))
    found = detmap.read_coco_results(results, truth, iou_type=kind)
    keep = found.shapes[kind].areas() > 0
    found = found.take(keep) if kind == "segm" else found
    again, lost = through(truth, tmp_path / "set", format="yolo", iou_type=kind)
    assert "masks" not in lost
    assert "shapes" not in lost
    more = detmap.write(found, tmp_path / "found", format="yolo", ground_truth=truth)
    assert "masks" not in more
    settings_of = tmp_path / "set/data.yaml"
    back = detmap.read(tmp_path / "found", "detections", ground_truth=again, iou_type=kind, classes=settings_of)
    assert sorted(back.scores.tolist()) == sorted(found.scores.tolist())
    if kind == "segm":
        in_order = found.take(np.argsort(found.images.codes, kind="stable"))
        codes = [table.shapes["segm"].masks().to_rle() for table in (in_order, back)]
        assert codes[0] == codes[1]


def test_what_yolo_cannot_hold_is_counted_or_refused(tmp_path):
    given = {"image_ids": ["a"], "category_ids": [4], "boxes": [[0, 0, 8, 8]]}
    truth = detmap.GroundTruth.from_arrays(**given, areas=[5], crowd=[True], image_sizes=[[16, 16]], images=["a"])
    lost = detmap.write(truth, tmp_path / "set", format="yolo")
    assert lost == {"crowd": 1, "areas": 1, "category_ids": 1}
    assert any("are crowds" in text for text in registry.describe_lost(lost))
    found = detmap.Detections.from_arrays(**given, scores=[1])
    with pytest.raises(InputError, match=r"give the ground truth \(ground_truth=\.\.\., --ground-truth\)"):
        detmap.write(found, tmp_path / "found", format="yolo")
    with pytest.raises(InputError, match="size of the image is not known"):
        detmap.write(replace(truth, images=replace(truth.images, sizes=None)), tmp_path / "other", format="yolo")
    other = detmap.Detections.from_arrays(**{**given, "category_ids": [5]}, scores=[1])
    with pytest.raises(InputError, match="is not a category of the ground truth"):
        detmap.write(other, tmp_path / "found", format="yolo", ground_truth=truth)
    two = detmap.GroundTruth.from_arrays(
        **{**given, "image_ids": ["b"]}, image_sizes=[[16, 16], [16, 16]], images=["a", "b"]
    )
    for missing in ("0", "aa", "c"):  # before, between and after the images of the ground truth
        other = detmap.Detections.from_arrays(**{**given, "image_ids": [missing]}, scores=[1])
        with pytest.raises(InputError, match=rf"size of the image is not known.*\(got '{missing}'\)"):
            detmap.write(other, tmp_path / "found", format="yolo", ground_truth=two)
    named = replace(truth, categories=replace(truth.categories, names=("a\x07b",)))
    with pytest.raises(InputError, match=r"cannot be written as a name in data\.yaml"):
        detmap.write(named, tmp_path / "other", format="yolo")
    assert not (tmp_path / "other").exists()
