"""The names that hotcoco and ultrafast-pycocotools have beside pycocotools': what they give is what these give."""

from __future__ import annotations

import contextlib
import copy
import io
import sys

import numpy as np
import pytest
import shape_workloads as made
from dropin import REAL, load
from workloads import make_coco

from detmap.pycocotools import peers

DATA = make_coco(31, images=8, categories=4, crowds=0.1)


def peer(name):
    """The package, which only benchmarks need."""
    return pytest.importorskip(name)


def loaded(api, data=DATA):
    truth = api.COCO(copy.deepcopy(data[0]))
    return truth, truth.loadRes(copy.deepcopy(data[1]))


def evaluated(api, data=DATA, kind="bbox", **options):
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = api.COCOeval(*loaded(api, data), kind, **options)
        evaluation.run()
    return evaluation


def expected_stats(data, kind):
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = REAL.COCOeval(*load(REAL, *data), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats


WORKLOADS = {"bbox": DATA, "segm": made.ample(made.mask_workload), "keypoints": made.ample(made.pose_workload)}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_numbers_are_pycocotools(kind):
    found, expected = evaluated(peers, WORKLOADS[kind], kind), expected_stats(WORKLOADS[kind], kind).tolist()
    assert found.stats.tolist() == expected
    assert [found.get_results()[name] for name in found.metric_keys()] == expected
    assert [found.stats_as_dict[name] for name in ("AP", "AP_50", "AP_75")] == expected[:3]
    assert (
        found.stats_as_dict["AR_large" if kind != "keypoints" else "AR"] == expected[-1 if kind != "keypoints" else 5]
    )
    by_class = [row["AP"] for row in found.per_category_stats().values()]
    assert np.nanmean(by_class) == pytest.approx(expected[0], rel=1e-12)
    assert len(found.get_results(prefix="val", per_class=True)) == len(expected) + np.isfinite(by_class).sum()


@pytest.mark.parametrize("kind", WORKLOADS)
def test_numbers_by_hotcocos_names(kind, capsys):
    found = evaluated(peers, WORKLOADS[kind], kind)
    theirs = evaluated(peer("hotcoco"), WORKLOADS[kind], kind)
    assert found.metric_keys() == theirs.metric_keys()
    for options in ({}, {"prefix": "val"}, {"prefix": "val", "per_class": True}, {"per_class": True}):
        ours, original = found.get_results(**options), theirs.get_results(**options)
        assert list(ours) == list(original)
        assert list(ours.values()) == pytest.approx(list(original.values()), rel=1e-12, nan_ok=True)
    assert found.coco_gt is found.cocoGt
    assert found.coco_dt is found.cocoDt
    assert found.eval_imgs is found.evalImgs


@pytest.mark.parametrize("kind", WORKLOADS)
def test_numbers_by_ultrafasts_names(kind):
    found, theirs = (evaluated(api, WORKLOADS[kind], kind) for api in (peers, peer("ultrafast_pycocotools")))
    assert found.stats_as_dict == theirs.stats_as_dict
    for options in ({}, {"area": "medium", "max_dets": found.params.maxDets[0]}):
        ours, original = found.per_category_stats(**options), theirs.per_category_stats(**options)
        assert repr(ours) == repr(original)


def test_options_of_evaluations(capsys):
    said = []
    poses = WORKLOADS["keypoints"]
    options = {"kpt_oks_sigmas": [0.07] * 17, "use_area": False, "print_function": said.append, "store_eval_imgs": True}
    found, theirs = (evaluated(api, poses, "keypoints", **options) for api in (peers, peer("ultrafast_pycocotools")))
    assert list(found.stats) == list(theirs.stats)
    assert said
    assert capsys.readouterr().out == ""
    masks = WORKLOADS["segm"]
    found, theirs = (
        evaluated(api, masks, "boundary", boundary_dilation_ratio=0.05)
        for api in (peers, peer("ultrafast_pycocotools"))
    )
    assert list(found.stats) == list(theirs.stats)
    truth, results = loaded(peers)
    evaluation = peers.COCOeval(coco_gt=truth, coco_dt=results, iou_type="bbox", print_function=said.append)
    assert evaluation.get_results() == {}
    evaluation.params.max_dets = [1, 5, 100]
    evaluation.params.iou_thrs = np.array([0.5])
    evaluation.run()
    assert (evaluation.params.maxDets, evaluation.eval["precision"].shape[0]) == ([1, 5, 100], 1)
    with pytest.raises(Exception, match="Please run"):
        peers.COCOeval(truth, results, "bbox").per_category_stats()


def test_names_of_data_sets(tmp_path, capsys):
    hotcoco = peer("hotcoco")
    dataset = copy.deepcopy(DATA[0])
    for category in dataset["categories"]:
        category["supercategory"] = "thing"
    images, categories = ([item["id"] for item in dataset[kind]] for kind in ("images", "categories"))
    ours, theirs = (api.COCO(copy.deepcopy(dataset)) for api in (peers, hotcoco))
    calls = [
        ("get_ann_ids", {"img_ids": images[:2]}),
        ("get_ann_ids", {"img_ids": images[0], "cat_ids": categories[:2], "area_rng": [0, 900], "iscrowd": False}),
        ("get_cat_ids", {"cat_nms": ["class 1"]}),
        ("get_cat_ids", {"sup_nms": "thing", "cat_ids": categories[1:]}),
        ("get_img_ids", {"cat_ids": categories[:1]}),
    ]
    for name, arguments in calls:
        found, expected = (getattr(api, name)(**arguments) for api in (ours, theirs))
        assert sorted(found) == sorted(expected), name
    for name, ids in (("load_anns", ours.getAnnIds()[:2]), ("load_cats", categories[0]), ("load_imgs", images[:1])):
        assert [item["id"] for item in getattr(ours, name)(ids)] == [item["id"] for item in getattr(theirs, name)(ids)]
    masks, results = WORKLOADS["segm"]
    truth = peers.COCO(masks, verbose=False)
    annotation = truth.load_anns(1)[0]
    assert truth.ann_to_rle(annotation) == truth.annToRLE(annotation)
    assert np.array_equal(truth.ann_to_mask(annotation), truth.annToMask(annotation))
    capsys.readouterr()
    truth.create_index()
    assert len(truth.load_res(copy.deepcopy(results)).anns) == len(results)
    assert capsys.readouterr().out == ""


def test_params_and_the_patch():
    params = peers.Params(iou_type="boundary")
    assert (params.iou_type, params.area_rng_lbl) == ("boundary", ["all", "small", "medium", "large"])
    assert peers.Params().iouType == "segm"
    before = sys.modules["pycocotools.coco"].COCO
    with peers.init_as_pycocotools():
        assert sys.modules["pycocotools.coco"].COCO is not before
    assert sys.modules["pycocotools.coco"].COCO is before


def test_names_of_masks():
    hotcoco = peer("hotcoco")
    run_lengths = peers.mask.fr_py_objects([[1, 1, 8, 1, 8, 8, 1, 8]], 10, 10)
    assert run_lengths == peers.mask.frPyObjects([[1, 1, 8, 1, 8, 8, 1, 8]], 10, 10)
    assert peers.mask.to_bbox(run_lengths).tolist() == np.reshape(hotcoco.mask.to_bbox(run_lengths), (1, 4)).tolist()
    assert peers.mask.area(run_lengths).tolist() == [49]
