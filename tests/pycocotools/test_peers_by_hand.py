"""The names of hotcoco and ultrafast-pycocotools without these packages: every name and number, by their rules."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import shape_workloads as made
from workloads import make_coco

from detmap.pycocotools import coco, faster, peers

BOXES = make_coco(31, images=8, categories=4, crowds=0.1)
POSES = made.ample(made.pose_workload)


def evaluated(data, kind, caps=None, **options):
    truth = peers.COCO(copy.deepcopy(data[0]), verbose=False)
    evaluation = peers.COCOeval(
        truth, truth.load_res(copy.deepcopy(data[1])), kind, print_function=lambda _: None, **options
    )
    if caps:
        evaluation.params.maxDets = caps
    evaluation.run()
    return evaluation


OF_BOXES = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]
OF_POSES = ["AP", "AP50", "AP75", "APm", "APl", "AR", "AR50", "AR75", "ARm", "ARl"]


def test_hotcocos_names():
    for data, kind, names in ((BOXES, "bbox", OF_BOXES), (POSES, "keypoints", OF_POSES)):
        found = evaluated(data, kind)
        assert found.metric_keys() == names
        plain = dict(zip(names, found.stats.tolist(), strict=True))
        assert list(found.get_results().items()) == sorted(plain.items())
        assert found.get_results("val") == {f"val/{name}": value for name, value in plain.items()}
        rows = [row for row in found.per_category_stats().values() if row["AP"] == row["AP"]]
        assert rows
        with_classes = plain | {f"AP/{row['name']}": row["AP"] for row in rows}
        assert list(found.get_results(per_class=True).items()) == sorted(with_classes.items())


def test_ultrafasts_names():
    found = evaluated(BOXES, "bbox", [2, 5, 100])
    stats = found.stats.tolist()
    assert found.stats_as_dict == {
        "AP": stats[0], "AP_all": stats[0], "AP_50": stats[1], "AP50": stats[1], "AP_75": stats[2], "AP75": stats[2],
        "AP_small": stats[3], "APs": stats[3], "AP_medium": stats[4], "APm": stats[4], "AP_large": stats[5], "APl": stats[5],
        "AR_2": stats[6], "AR@2": stats[6], "AR_5": stats[7], "AR@5": stats[7], "AR_100": stats[8], "AR@100": stats[8],
        "AR_small": stats[9], "AR_medium": stats[10], "AR_large": stats[11],
    }  # fmt: skip
    assert list(found.stats_as_dict)[:3] == ["AP", "AP_all", "AP_50"]
    poses = evaluated(POSES, "keypoints")
    stats = poses.stats.tolist()
    assert poses.stats_as_dict == {
        "AP": stats[0], "AP_all": stats[0], "AP_50": stats[1], "AP50": stats[1], "AP_75": stats[2], "AP75": stats[2],
        "AP_medium": stats[3], "APm": stats[3], "AP_large": stats[4], "APl": stats[4], "AR": stats[5], "AR_50": stats[6],
        "AR@50": stats[6], "AR_75": stats[7], "AR@75": stats[7], "AR_medium": stats[8], "AR_large": stats[9],
    }  # fmt: skip


def mean(values):
    values = values[values > -1]
    return float(values.mean()) if values.size else float("nan")


@pytest.mark.parametrize("use_cats", [1, 0])
def test_numbers_of_each_category(use_cats):
    found = evaluated(BOXES, "bbox")
    if not use_cats:
        found.params.useCats = 0
        found.run()
    names = {one["id"]: one["name"] for one in BOXES[0]["categories"]}
    categories = sorted(names) if use_cats else [-1]
    thresholds = found.params.iouThrs
    for options, area, cap in (({}, 0, 2), ({"area": "medium"}, 2, 2), ({"area": "small", "max_dets": 10}, 1, 1)):
        rows = found.per_category_stats(**options)
        assert list(rows) == categories
        for k, category in enumerate(categories):
            precision, recall = found.eval["precision"][:, :, k, area, cap], found.eval["recall"][:, k, area, cap]
            wanted = {
                "name": names.get(category, "-1"), "AP": mean(precision),
                "AP_50": mean(precision[np.flatnonzero(thresholds == 0.5)]),
                "AP_75": mean(precision[np.flatnonzero(np.abs(thresholds - 0.75) < 1e-9)]), "AR": mean(recall),
            }  # fmt: skip
            assert repr(rows[category]) == repr(wanted)
    unnamed = copy.deepcopy(BOXES)
    for one in unnamed[0]["categories"]:
        del one["name"]
    first = sorted(names)[0]
    assert evaluated(unnamed, "bbox").per_category_stats()[first]["name"] == str(first)
    for wrong in ({"area": "huge"}, {"max_dets": 7}):
        with pytest.raises(ValueError, match=r"is not in list$"):
            found.per_category_stats(**wrong)
    with pytest.raises(Exception, match=r"^Please run accumulate\(\) first$"):
        peers.COCOeval(found.cocoGt, found.cocoDt, "bbox").per_category_stats()


def test_options_change_what_is_evaluated():
    plain = evaluated(POSES, "keypoints")
    sigmas = evaluated(POSES, "keypoints", kpt_oks_sigmas=[0.5] * 17)
    assert sigmas.params.kpt_oks_sigmas.tolist() == [0.5] * 17
    assert sigmas.stats[0] > plain.stats[0]
    areas = evaluated(POSES, "keypoints", use_area=False)
    assert areas.stats.tolist() != plain.stats.tolist()
    assert (plain.use_area, areas.use_area, plain.store_eval_imgs) == (True, False, False)
    masks = made.ample(made.mask_workload)
    narrow, wide = (evaluated(masks, "boundary", boundary_dilation_ratio=ratio) for ratio in (0.02, 0.2))
    assert evaluated(masks, "boundary").stats.tolist() == narrow.stats.tolist() != wide.stats.tolist()
    theirs = faster.COCO(copy.deepcopy(masks[0]))
    other = faster.COCOeval_faster(theirs, theirs.loadRes(copy.deepcopy(masks[1])), "boundary")
    other.run()
    assert narrow.stats.tolist() == other.stats.tolist()
    truth, results = plain.cocoGt, plain.cocoDt
    named = peers.COCOeval(coco_gt=truth, coco_dt=results, iou_type="keypoints")
    assert (named.cocoGt, named.cocoDt, named.params.iouType) == (truth, results, "keypoints")
    assert peers.COCOeval(truth, results).params.iouType == "segm"
    assert peers.Params("boundary").iouType == "boundary"
    assert peers.Params("bbox", iou_type="keypoints").maxDets == [20]


def test_data_sets(tmp_path, capsys):
    quiet, loud = (peers.COCO(copy.deepcopy(BOXES[0]), verbose=one) for one in (False, True))
    assert capsys.readouterr().out == "creating index...\nindex created!\n"
    assert quiet.getAnnIds() == loud.getAnnIds()
    for wrong in (5, 1.5, [], True):
        with pytest.raises(TypeError, match=r"^a data set is a path or a dict, not a \w+$"):
            peers.COCO(wrong)
    empty = peers.COCO(verbose=False)
    assert (empty.getImgIds(), empty.getAnnIds(), empty.getCatIds()) == ([], [], [])
    image = BOXES[0]["images"][0]["id"]
    own = [one["id"] for one in BOXES[0]["annotations"] if one["image_id"] == image]
    assert quiet.get_ann_ids([image]) == quiet.getAnnIds([image]) == own
    small = [one["id"] for one in BOXES[0]["annotations"] if one["image_id"] == image and 0 < one["area"] < 900]
    assert quiet.get_ann_ids(image, area_rng=[0, 900]) == small
    crowds = [one["id"] for one in BOXES[0]["annotations"] if one["iscrowd"]]
    assert quiet.get_ann_ids(iscrowd=1) == crowds
    results = tmp_path / "results.json"
    results.write_text(json.dumps(BOXES[1]))
    for given in (results, str(results), copy.deepcopy(BOXES[1])):
        found = quiet.load_res(given, derive_segmentation=True)
        assert isinstance(found, coco.COCO)
        assert found.verbose is False
        assert len(found.getAnnIds()) == len(BOXES[1])
