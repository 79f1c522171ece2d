"""The drop-in and its relatives on what is given otherwise than usual: iterators, nothing, lengths, changed records."""

import copy
import json
import os
from pathlib import Path

import numpy as np
import pytest
from pycocotools import mask as original_mask
from pycocotools.coco import COCO as OriginalCOCO
from pycocotools.cocoeval import COCOeval as OriginalCOCOeval

from detmap.pycocotools import mask, peers
from detmap.pycocotools.coco import COCO
from detmap.pycocotools.cocoeval import COCOeval
from detmap.pycocotools.faster import COCOeval_faster
from detmap.pycocotools.faster_coco import COCO as FasterCOCO

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "coco"
TRUTH, FOUND = str(FOLDER / "ground_truth.json"), str(FOLDER / "detections.json")
RLE = original_mask.encode(np.asfortranarray(np.eye(6, dtype=np.uint8)))
BOTH = [(OriginalCOCO, OriginalCOCOeval), (COCO, COCOeval)]


def evaluated(data, results, of=COCOeval, kind="bbox"):
    made = of(data, results, kind)
    made.evaluate()
    made.accumulate()
    return made


def outcome(task):
    """What a task returns, or the type of what it raises."""
    try:
        return task()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("dt", [[], [RLE]])
@pytest.mark.parametrize("gt", [[], [RLE], [RLE, RLE]])
@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("boxes", [False, True])
def test_crowds_as_many_as_objects_where_a_side_is_empty_too(dt, gt, count, boxes):
    if boxes:
        dt, gt = ([[1, 1, 2, 2]] * len(side) for side in (dt, gt))
    ours, theirs = (outcome(lambda of=of: of.iou(dt, gt, [0] * count)) for of in (mask, original_mask))
    assert ours is theirs if isinstance(theirs, type) else np.array_equal(ours, theirs)


@pytest.mark.parametrize("seed", range(60))
def test_poses_of_another_number_of_points_than_sigmas(seed):
    rng = np.random.default_rng(seed)
    sigmas = np.full(int(rng.choice([17, 17, 1, 2])), 0.05)

    def pose():
        points = rng.integers(10, 30, (int(rng.choice([1, 1, 2, 17])), 3))
        points[:, 2] = rng.choice([0, 0, 1, 2], len(points))
        return points.ravel().tolist()

    box = {"bbox": [0, 0, 50, 50], "area": 2500, "iscrowd": 0, "category_id": 1, "image_id": 1}
    gts = [{**box, "id": 1 + i, "num_keypoints": int(rng.integers(2)), "keypoints": pose()} for i in range(2)]
    dts = [{"image_id": 1, "category_id": 1, "score": 0.5, "keypoints": gts[0]["keypoints"]}]

    def precision(of, evaluation):
        data = of()
        images, categories = [{"id": 1, "width": 99, "height": 99}], [{"id": 1, "name": "person"}]
        data.dataset = {"images": images, "categories": categories, "annotations": copy.deepcopy(gts)}
        data.createIndex()
        made = evaluation(data, data.loadRes(copy.deepcopy(dts)), "keypoints")
        made.params.kpt_oks_sigmas = sigmas
        made.evaluate()
        made.accumulate()
        return made.eval["precision"].tobytes()

    theirs, ours = (outcome(lambda pair=pair: precision(*pair)) for pair in BOTH)
    assert ours == theirs


@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_an_evaluation_that_fails_while_it_prepares_leaves_what_the_last_one_found(kind):
    people, left = FOLDER.parent / "people", []
    for of, evaluation in BOTH:
        data = of(str(people / "ground_truth.json"))
        made = evaluated(data, data.loadRes(str(people / "masks.json")), evaluation, kind)
        made.cocoDt = None
        with pytest.raises(AttributeError):
            made.evaluate()
        found = [one["dtMatches"].tobytes() for one in made.evalImgs if one is not None]
        left.append((found, len(made.ious), made.eval["precision"].tobytes()))
    assert left[0] == left[1]
    assert len(left[0][0]) > 0


@pytest.mark.parametrize("field", ["bbox", "score"])
def test_an_evaluation_that_fails_while_it_compares_has_what_pycocotools_has(field):
    left = []
    for of, evaluation in BOTH:
        data = of(TRUTH)
        results = data.loadRes(FOUND)
        made = evaluated(data, results, evaluation)
        list(results.anns.values())[3].pop(field)
        with pytest.raises(KeyError):
            made.evaluate()
        left.append((len(made.evalImgs), made.eval, len(made._gts), len(made._dts)))
    assert left[0] == left[1]
    assert made.ious == {}


def test_records_that_change_after_an_evaluation_are_said():
    data = COCO(TRUTH)
    results = data.loadRes(FOUND)
    made = evaluated(data, results)
    for ann in results.anns.values():
        ann["bbox"] = [0, 0, 1, 1]
    with pytest.warns(UserWarning, match=r"records were changed after evaluate\(\)"):
        images = made.evalImgs
    assert made.evalImgs is images  # and once


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
@pytest.mark.parametrize("categories", [0, 1])
def test_records_that_stay_as_they_are_are_no_warning(kind, categories):
    people = FOLDER.parent / "people"
    data = COCO(str(people / "ground_truth.json"))
    results = data.loadRes(str(people / ("poses.json" if kind == "keypoints" else "masks.json")))
    made = COCOeval(data, results, kind)
    made.params.useCats = categories
    made.evaluate()
    made.accumulate()
    assert len(made.evalImgs) > 0


# ------------------------------------------------------------------------------------------------------------ relatives

RELATIVES = [(FasterCOCO, COCOeval_faster), (peers.COCO, peers.COCOeval)]
ITERATORS = [iter, lambda values: (one for one in values), lambda values: filter(lambda one: True, values)]


def stats(data, results, of):
    made = evaluated(data, results, of)
    made.summarize()
    return np.array(made.stats).tobytes()


@pytest.mark.parametrize(("of", "evaluation"), RELATIVES)
@pytest.mark.parametrize("part", ["annotations", "images", "categories"])
@pytest.mark.parametrize("once", ITERATORS)
@pytest.mark.parametrize("given", [False, True])
def test_records_that_can_be_gone_over_once(of, evaluation, part, once, given):
    """Of 839 annotations none was left."""
    document = json.loads(Path(TRUTH).read_text())
    expected = stats(of(TRUTH), of(TRUTH).loadRes(FOUND), evaluation)
    document[part] = once(document[part])
    data = of(document) if given else of()
    if not given:
        data.dataset = document
        data.createIndex()
    assert len(data.anns) == 444
    assert stats(data, data.loadRes(FOUND), evaluation) == expected


@pytest.mark.parametrize(("of", "evaluation"), RELATIVES)
@pytest.mark.parametrize("once", ITERATORS)
def test_ids_that_can_be_gone_over_once(of, evaluation, once):
    data = of(TRUTH)
    images, categories, anns = list(data.imgs)[:3], list(data.cats)[:2], list(data.anns)[:3]
    for method, ids in (
        (data.getAnnIds, images),
        (data.getImgIds, images),
        *([] if of is FasterCOCO else [(data.loadImgs, images), (data.loadCats, categories), (data.loadAnns, anns)]),
    ):
        assert method(once(ids)) == method(ids)
        assert len(method(ids)) > 0
    assert data.getCatIds(catIds=once(categories)) == categories
    made, expected = (evaluation(data, data.loadRes(FOUND), "bbox") for _ in range(2))
    made.params.imgIds, expected.params.imgIds = once(images), images
    made.params.catIds, expected.params.catIds = once(categories), categories
    for one in (made, expected):
        one.evaluate()
        one.accumulate()
    assert made.eval["precision"].tobytes() == expected.eval["precision"].tobytes()
    assert (made.eval["precision"] > 0).any()


def test_nothing_in_a_peers_data_set(tmp_path):
    data = peers.COCO(TRUTH)
    path = tmp_path / "none.json"
    path.write_text("[]")
    for results in (data.load_res([]), data.load_res(str(path)), data.loadRes([])):
        assert results.get_ann_ids() == []
        assert evaluated(data, results, peers.COCOeval).eval["precision"].max() == 0
    for empty in (peers.COCO(), peers.COCO({})):
        assert (empty.get_ann_ids(), empty.get_img_ids(), empty.get_cat_ids(), empty.load_anns([])) == ([], [], [], [])
        assert len(empty.load_res([]).anns) == 0
        assert evaluated(empty, empty, peers.COCOeval).eval["precision"].size == 0


def test_a_descriptor_stays_open():
    descriptor = os.open(TRUTH, os.O_RDONLY)
    try:
        for given in (descriptor, True, 1.5, [1]):
            with pytest.raises(TypeError, match="a data set is a path or a dict"):
                peers.COCO(given)
        os.fstat(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.bool_])
def test_a_peers_encode_takes_masks_of_any_order(shape, dtype):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    expected = original_mask.encode(np.asfortranarray(array, np.uint8))
    wide = np.zeros([2 * side for side in shape], dtype)[tuple(slice(None, None, 2) for _ in shape)]
    wide[:] = array
    for given in (np.ascontiguousarray(array), np.asfortranarray(array), wide):
        assert peers.mask.encode(given) == expected
    with pytest.raises(ValueError, match="Fortran"):
        mask.encode(np.ascontiguousarray(array))
