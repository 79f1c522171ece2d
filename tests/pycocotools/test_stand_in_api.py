"""The stand-in for faster_coco_eval against the original: its names, its numbers beyond AP, what it writes, its errors."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import shape_workloads as made
from dropin import REAL, assert_same, compare, load
from hypothesis import given, settings
from support import examples
from workloads import REAL_DATA, make_coco, needs_real_data

from detmap.pycocotools import faster

theirs = pytest.importorskip("faster_coco_eval")
BOTH = (theirs, faster)
DATA = make_coco(31, images=11, categories=5, crowds=0.15, over_100=True)


def silent(text):
    """Say nothing."""


def evaluated(api, data, kind="bbox", *, params=(), **options):
    truth = api.COCO(copy.deepcopy(data[0]), print_function=silent)
    found = truth.loadRes(copy.deepcopy(data[1]))
    evaluation = api.COCOeval_faster(truth, found, kind, **{"print_function": silent, **options})
    vars(evaluation.params).update(dict(params))
    evaluation.run()
    return evaluation


def outcome(client, api):
    """What `client(api)` returns, or the type of what it raises."""
    try:
        return client(api)
    except Exception as error:
        return type(error)


def same(client):
    """Demand the same of both, and return it."""
    expected, found = (outcome(client, api) for api in BOTH)
    assert found == expected
    return found


# ------------------------------------------------------------------------------------------------------------ CrowdPose

#: How far annotators disagree on CrowdPose's 14 points.
SIGMAS = np.array([0.79, 0.79, 0.72, 0.72, 0.62, 0.62, 1.07, 1.07, 0.87, 0.87, 0.89, 0.89, 0.79, 0.79]) / 10.0
CROWDS = {
    "example": ("example_crowdpose_val", "example_crowdpose_preds"),
    "val_500": ("crowdpose_val_500", "synthetic_results_500"),
}
ARRAYS = ("precision", "recall", "scores")


@needs_real_data
@pytest.mark.compiled
@pytest.mark.parametrize("name", CROWDS)
def test_crowded_poses_equal_the_original_and_crowdposetools(name):
    """Every array, number and printed line, of all images and of the hard ones."""
    truth, results = (REAL_DATA / "crowdpose" / f"{file}.json" for file in CROWDS[name])
    shown = []
    for api in BOTH:
        lines = []
        annotations = api.COCO(str(truth), print_function=silent)
        evaluation = api.COCOeval_faster(
            annotations,
            annotations.loadRes(str(results)),
            "keypoints_crowd",
            kpt_oks_sigmas=SIGMAS,
            use_area=False,
            print_function=lines.append,
        )
        evaluation.evaluate()
        evaluation.accumulate()
        first = {name: np.array(evaluation.eval[name]) for name in ARRAYS}
        evaluation.summarize()
        last = {name: np.array(evaluation.eval[name]) for name in ARRAYS}
        printed = [line for line in lines if "@[" in line]
        numbers = evaluation.stats_as_dict
        shown.append((first, last, evaluation.stats, numbers, printed, list(map(int, evaluation.params.imgIds))))
    assert_same(shown[1], shown[0])
    expected = json.loads((REAL_DATA / "crowdpose" / "expected.json").read_text())[name]
    assert list(shown[1][2]) == expected["stats"][:3] + expected["stats"][5:]
    assert len(shown[1][5]) == expected["imgIds_after"]


@needs_real_data
@pytest.mark.compiled
@pytest.mark.parametrize("name", CROWDS)
def test_arrays_of_crowded_poses_equal_crowdposetools_by_its_areas(name):
    """Whose ranges look at the same share of the box, where faster_coco_eval takes annotations without area for small."""
    truth, results = (json.loads((REAL_DATA / "crowdpose" / f"{file}.json").read_text()) for file in CROWDS[name])
    for annotation in truth["annotations"]:
        annotation["area"] = annotation["bbox"][2] * annotation["bbox"][3] * 0.53
    annotations = faster.COCO(truth)
    evaluation = faster.COCOeval_faster(
        annotations, annotations.loadRes(results), "keypoints", kpt_oks_sigmas=SIGMAS, print_function=silent
    )
    evaluation.evaluate()
    evaluation.accumulate()
    expected = json.loads((REAL_DATA / "crowdpose" / "expected.json").read_text())[name]
    array = np.ascontiguousarray(evaluation.eval["precision"], "<f8")
    assert hashlib.sha256(array.tobytes()).hexdigest() == expected["precision_sha256"]


def test_areas_by_boxes():
    data = next(
        (dataset, results)
        for dataset, results in map(made.pose_workload, range(50))
        if len(dataset["annotations"]) > 4 and len(results) > 9
    )
    found, expected = (dict(evaluated(api, data, "keypoints", use_area=False).eval) for api in (faster, theirs))
    for name in ARRAYS:
        assert np.allclose(found[name], expected[name], rtol=1e-12, atol=0), name


# ------------------------------------------------------------------------------------------------- numbers beyond AP


@settings(max_examples=examples(40), deadline=None)
@given(made.seeds())
def test_matches_and_numbers_of_classes(seed):
    """Who matched whom, the marks on annotations, mIoU, mAUC, and the numbers of each class."""
    data = make_coco(seed % 10_000, images=5, categories=3, crowds=0.2)
    if not data[1] or not data[0]["annotations"]:
        return
    found, expected = (evaluated(api, data, extra_calc=True) for api in (faster, theirs))
    assert found.eval["matched"] == expected.eval["matched"]
    pairs = {tuple(map(int, pair.split("_"))): overlap for pair, overlap in found.eval["matched"].items()}
    for side in ("cocoGt", "cocoDt"):
        ours, original = (getattr(one, side).anns for one in (found, expected))
        for identity, annotation in original.items():
            own = ours[identity]
            for mark in ("tp", "fp", "fn"):
                assert own.get(mark) == annotation.get(mark), (identity, mark)
            # Of several partners, one for each threshold, the original keeps any.
            assert "dt_id" not in own or (own["dt_id"], identity) in pairs
            assert "gt_id" not in own or pairs[identity, own["gt_id"]] == own["iou"]
    assert found.matched is expected.matched is True
    assert found.stats_as_dict == pytest.approx(expected.stats_as_dict, rel=1e-12)
    ours, original = found.extended_metrics, expected.extended_metrics
    assert [list(row) for row in ours["class_map"]] == [list(row) for row in original["class_map"]]
    for one, other in zip([*ours["class_map"], ours], [*original["class_map"], original], strict=True):
        for name in set(other) - {"class_map"}:
            exact = name in ("class", "precision", "recall")
            assert one[name] == (other[name] if exact else pytest.approx(other[name], rel=1e-12)), name


def test_matches_of_masks_and_without_classes():
    data = made.mask_workload(3)
    for options in ({}, {"params": {"useCats": 0}}):
        found, expected = (evaluated(api, data, "segm", **options) for api in (faster, theirs))
        assert found.eval["matched"] == expected.eval["matched"]
        assert expected.eval["matched"]
        assert found.compute_mIoU() == pytest.approx(expected.compute_mIoU(), rel=1e-13)
        assert found.compute_mAUC() == pytest.approx(expected.compute_mAUC(), rel=1e-13)


@pytest.mark.parametrize("kind", ["bbox", "segm", "boundary", "keypoints"])
def test_nothing_is_made_that_nobody_asks_for(kind):
    """The stand-in evaluates everything at once; its numbers are the original's, and so is what is made later."""
    data = DATA if kind == "bbox" else made.ample(made.pose_workload if kind == "keypoints" else made.mask_workload)
    evaluation = evaluated(faster, data, kind)
    assert "evalImgs" not in vars(evaluation)
    assert "anns" not in vars(evaluation.cocoDt)
    if kind != "boundary":  # the original rounds the distance in another way
        expected = evaluated(theirs, data, kind)
        assert list(evaluation.all_stats) == pytest.approx(list(expected.all_stats), rel=1e-12)
        assert evaluation.eval["matched"] == expected.eval["matched"]
    again = faster.COCOeval_faster(evaluation.cocoGt, evaluation.cocoDt, kind, print_function=silent)
    again.evaluate()
    assert again.evalImgs == again._evalImgs_cpp
    again.accumulate()
    for name in ARRAYS:
        assert np.array_equal(again.eval[name], evaluation.eval[name])


def test_nothing_is_matched_until_somebody_asks():
    evaluation = evaluated(faster, DATA)
    assert "evalImgs" not in vars(evaluation)
    assert "matched" in evaluation.eval
    assert evaluation.eval.get("nothing") is None
    copied = pickle.loads(pickle.dumps(evaluation.eval))
    assert copied["matched"] == evaluation.eval["matched"] == evaluated(theirs, DATA).eval["matched"]
    with pytest.raises(KeyError):
        evaluation.eval["nothing"]


def test_numbers_of_classes_need_a_threshold():
    for api in BOTH:
        evaluation = evaluated(api, DATA, params={"iouThrs": np.array([0.6, 0.75])})
        with pytest.raises(ValueError, match=r"0\.50"):
            evaluation.extended_metrics  # noqa: B018


def test_areas_under_curves():
    rng = np.random.default_rng(1)
    for _ in range(100):
        recall, precision = np.sort(rng.random(30).round(1)), rng.random(30)
        for method in ("c++", "py"):
            found, expected = (api.COCOeval_faster.calc_auc(recall, precision, method=method) for api in BOTH)
            assert found == expected


def test_metrics_of_no_match():
    far = DATA[0], [{**one, "bbox": [1e4, 1e4, 9, 9]} for one in DATA[1]]
    for name in ("compute_mIoU", "compute_mAUC"):
        assert same(lambda api, name=name: getattr(evaluated(api, far), name)()) == 0


def test_metrics_too_early():
    for name in ("compute_mIoU", "compute_mAUC"):
        same(lambda api, name=name: getattr(api.COCOeval_faster(print_function=silent), name)())


# ------------------------------------------------------------------------------------------------------------- names


def test_names_and_errors_of_data_sets(tmp_path):
    dataset = copy.deepcopy(DATA[0])
    for i, category in enumerate(dataset["categories"]):
        category["supercategory"] = f"kind {i % 2}"
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(dataset))
    images, categories = ([item["id"] for item in dataset[kind]] for kind in ("images", "categories"))
    calls = [
        ("get_ann_ids", {}),
        ("get_ann_ids", {"img_ids": images[:1], "cat_ids": categories[:2], "area_rng": [0, 500], "iscrowd": False}),
        ("getAnnIds", {"imgIds": images[0]}),
        ("get_cat_ids", {"cat_names": ["class 1"], "sup_names": ["kind 0"], "cat_ids": categories}),
        ("getCatIds", {"catNms": ["class 1"]}),
        ("get_img_ids", {"img_ids": images[:2], "cat_ids": categories[0]}),
        *((f"load_{kind}", {}) for kind in ("anns", "cats", "imgs")),
        *((f"load{kind}", {}) for kind in ("Anns", "Cats", "Imgs")),
        *(("loadAnns", {"ids": ids}) for ids in (1, [1, 2], np.array([1]), [np.int64(2)], "1", ["1"], True, 1.0, (1,))),
        ("load_imgs", {"ids": images[0]}),
        ("dump", {"output_file": str(tmp_path / "copy.json")}),
    ]
    for name, arguments in calls:
        found = same(lambda api, name=name, arguments=arguments: getattr(api.COCO(str(path)), name)(**arguments))
        assert found is not AttributeError
    assert faster.COCO(tmp_path / "copy.json").dataset["annotations"] == dataset["annotations"]
    same(lambda api: {name: value for name, value in api.COCO(dataset) if name != "info"})
    same(lambda api: {**api.COCO(str(path)).to_dict(separate_fn=True), "info": None})
    same(lambda api: api.COCO.load_json(path))
    same(lambda api: api.COCO.load_json({"a": [1]}, use_deepcopy=True))
    for source in (1, 1.5, (), [], "missing.json"):
        assert issubclass(same(lambda api, source=source: api.COCO(source)), Exception)
        same(lambda api, source=source: api.COCO(str(path)).loadRes(source).dataset["annotations"])

    def maps(api):
        data = api.COCO(str(path))
        data.img_ann_map, data.cat_img_map = {1: []}, {2: [3]}
        return data.imgToAnns, data.catToImgs, data.img_ann_map, data.cat_img_map

    same(maps)


def test_names_of_params():
    def client(api):
        params = sys.modules[api.COCOeval_faster.__mro__[1].__module__].Params if api is theirs else api.Params
        out = []
        for kind in ("bbox", "segm", "boundary", "keypoints", "keypoints_crowd"):
            p = params(iouType=kind, kpt_sigmas=[0.1, 0.2], ranges={"tiny": [0, 9], "huge": [9, 1e10]})
            names = ("iou_type", "img_ids", "cat_ids", "max_dets", "area_rng", "area_rng_lbl", "use_cats", "useSegm")
            out.append(
                {name: getattr(p, name) for name in (*names, "compute_rle", "compute_boundary", "img_count_lbl")}
            )
            out.append([p.iou_thrs.tolist(), p.rec_thrs.tolist(), list(getattr(p, "kpt_oks_sigmas", ()))])
        p.useSegm = 0
        return out, p.iouType

    same(client)
    for kind in ("circle", "", None):
        same(lambda api, kind=kind: vars(api.COCOeval_faster(iouType=kind, print_function=silent)))
    assert repr(faster.COCO()).startswith("COCO(annotation_file) # __author__='")
    assert repr(faster.COCOeval_faster()).startswith("COCOeval_faster() # __author__='")


def test_types_of_errors():
    for workers in (True, 0, -1, 1.5, "2"):
        assert same(lambda api, n=workers: api.COCOeval_faster(rle_iou_max_workers=n)) is ValueError

    def changed(api):
        evaluation = evaluated(api, DATA)
        evaluation.params.iouType = "circle"
        return [
            outcome(lambda _, name=name: getattr(evaluation, name)(), api)
            for name in ("evaluate", "summarize", "compute_mIoU")
        ][:2]

    assert same(changed) == [ValueError, ValueError]


def test_overlaps_are_asked_for_only_where_there_are_both():
    data = make_coco(3, images=6, categories=3)

    def client(api):
        asked = []

        class Counting(api.COCOeval_faster):
            def computeIoU(self, imgId, catId):
                asked.append((imgId, catId))
                return super().computeIoU(imgId, catId)

        truth = api.COCO(copy.deepcopy(data[0]))
        evaluation = Counting(truth, truth.loadRes(copy.deepcopy(data[1])), "bbox", print_function=silent)
        evaluation.evaluate()
        return sorted(asked), sorted(evaluation.ious)

    assert len(same(client)[0]) < 18


# ---------------------------------------------------------------------------------------------------------- records


def test_records_stay_as_they_are():
    """Neither the index nor an evaluation writes what a record lacks, and lacking it is as in the original."""
    dataset, results = copy.deepcopy(DATA)
    for annotation in dataset["annotations"][::2]:
        del annotation["iscrowd"], annotation["area"]
    before = copy.deepcopy(dataset)
    for api in BOTH:
        api.COCO(dataset)
    assert dataset == before
    found, expected = (evaluated(api, (dataset, results)) for api in (faster, theirs))
    assert list(found.stats) == pytest.approx(list(expected.stats), rel=1e-12)
    assert [list(one) for one in found.cocoGt.dataset["annotations"]] == [list(one) for one in dataset["annotations"]]


def test_polygons_stay_polygons():
    dataset, results = made.mask_workload(4, "all")
    found, expected = (evaluated(api, (dataset, results), "segm") for api in (faster, theirs))
    for name in ARRAYS:
        assert np.allclose(found.eval[name], expected.eval[name], rtol=1e-12, atol=0)
    for one, other in zip(found.cocoGt.dataset["annotations"], dataset["annotations"], strict=True):
        assert one["segmentation"] == other["segmentation"]


def test_an_annotation_of_id_0_is_warned_of():
    dataset = copy.deepcopy(DATA[0])
    dataset["annotations"][0]["id"] = 0
    for api in BOTH:
        with pytest.warns(UserWarning, match="id 0"):
            api.COCO(dataset)


# ----------------------------------------------------------------------------------------------------- pycocotools


def test_accumulate_what_was_not_evaluated():
    """Caps and categories that nobody evaluated: -1 everywhere, as in pycocotools."""
    known = [category["id"] for category in DATA[0]["categories"]]
    for change in (
        {"maxDets": [7]},
        {"maxDets": [], "catIds": known * 2},
        {"maxDets": [7], "catIds": [999] * 9 + known},
        {"catIds": [999]},
        {"maxDets": [7, 8], "catIds": [999, 1000], "areaRng": [[1, 2]]},
    ):

        def client(api, change=change):
            evaluation = api.COCOeval(*load(api, *DATA), "bbox")
            evaluation.evaluate()
            p = copy.deepcopy(evaluation.params)
            vars(p).update(copy.deepcopy(change))
            evaluation.accumulate(p)
            return evaluation.eval

        value = compare(client)
        assert (value["precision"] == -1).all()


def test_a_result_on_an_unknown_image_names_it():
    results = [*copy.deepcopy(DATA[1][:3]), {**DATA[1][0], "image_id": 424242}]
    truth = faster.COCO(copy.deepcopy(DATA[0]))
    with pytest.raises(AssertionError, match=r"record 3 is on image 424242, .* \(as 1 of the results'"):
        truth.loadRes(results)
    assert outcome(lambda api: load(REAL, DATA[0]).loadRes(results), REAL) is AssertionError


# ------------------------------------------------------------------------------------------------------------- patch

CHECK = """
import sys
import faster_coco_eval
from faster_coco_eval.core import cocoeval as base, faster_eval_api
sys.path[:0] = ["tests"]
from workloads import make_coco
import detmap

before = dict(vars(faster_eval_api)), dict(vars(base)), dict(vars(faster_coco_eval.core.coco))


def ours():
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval
    data = make_coco(31, images=5, categories=3)
    truth = COCO(data[0])
    evaluation = COCOeval(truth, truth.loadRes(data[1]), "bbox", extra_calc=True)
    evaluation.evaluate()
    evaluation.accumulate()
    assert evaluation.matched
    return {one.__module__.split(".")[0] for one in (COCO, COCOeval, faster_coco_eval.cocoeval.COCOeval, base.Params)}


{steps}
after = dict(vars(faster_eval_api)), dict(vars(base)), dict(vars(faster_coco_eval.core.coco))
assert before == after
assert sys.modules["pycocotools.coco"].__name__ == {left!r}
"""
STEPS = {
    "before": (
        "faster_coco_eval.init_as_pycocotools()\nwith detmap.patch_pycocotools():\n    assert ours() == {'detmap'}",
        "faster_coco_eval.core.coco",
    ),
    "inside": (
        "with detmap.patch_pycocotools():\n    faster_coco_eval.init_as_pycocotools()\n    assert ours() == {'detmap'}",
        "faster_coco_eval.core.coco",
    ),
    "inside, where pycocotools is not installed": (
        "sys.modules['pycocotools'] = None\nwith detmap.patch_pycocotools():\n"
        "    faster_coco_eval.init_as_pycocotools()\n    assert ours() == {'detmap'}",
        "faster_coco_eval.core.coco",
    ),
}


@pytest.mark.parametrize("when", STEPS)
def test_the_original_under_the_name_of_pycocotools(when):
    """`init_as_pycocotools` before and within the patch; all that was replaced comes back."""
    steps, left = STEPS[when]
    code = CHECK.replace("{steps}", steps).replace("{left!r}", repr(left))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_areas_of_boxes_are_no_slow_path(kind, monkeypatch):
    """`use_area=False` made every image by itself; the numbers are still those of that."""
    seed = next(seed for seed in range(50) if len(made.pose_workload(seed)[0]["annotations"]) > 4)
    workload = {
        "bbox": lambda: make_coco(3, negative=False, zero_sized=False),
        "segm": lambda: made.mask_workload(seed),
        "keypoints": lambda: made.pose_workload(seed),
    }[kind]()
    shown = []
    for whole in (True, False):
        with monkeypatch.context() as patch:
            if whole:
                patch.setattr(faster.COCOeval_faster, "_evaluate_images", None)
            else:
                patch.setattr(faster.COCOeval_faster, "_evaluate_whole", lambda self: False)
            found = evaluated(faster, workload, kind, use_area=False)
        shown.append(({name: found.eval[name] for name in ARRAYS}, found.ious, found.stats))
    assert_same(shown[0], shown[1])


# --------------------------------------------------------------------------------------- what comes without accumulate


def test_an_evaluation_has_its_numbers_before_it_is_accumulated():
    """The original accumulates in `evaluate`, and only with ``separate_eval`` not before it is asked to."""

    def client(api, **options):
        truth = api.COCO(copy.deepcopy(DATA[0]))
        evaluation = api.COCOeval_faster(
            truth, truth.loadRes(copy.deepcopy(DATA[1])), "bbox", print_function=silent, **options
        )
        evaluation.evaluate()
        return evaluation

    found, expected = map(client, (faster, theirs))
    assert np.allclose(found.eval["precision"], expected.eval["precision"], rtol=1e-12, atol=0)
    assert found.compute_mIoU() == pytest.approx(expected.compute_mIoU(), rel=1e-12)
    for one in (found, expected):
        one.summarize()
    assert found.stats_as_dict == pytest.approx(expected.stats_as_dict, rel=1e-12)
    assert same(lambda api: client(api, separate_eval=True).eval) == {}
    assert same(lambda api: client(api, separate_eval=True).summarize()) is Exception


def test_steps_out_of_order_are_as_in_the_original():
    def begun(api, **options):
        return api.COCOeval_faster(iouType="bbox", print_function=silent, **options)

    assert same(lambda api: (begun(api).accumulate(), begun(api).eval)) == (None, {})
    assert same(lambda api: begun(api, separate_eval=True).accumulate()) is AssertionError
    assert not same(lambda api: hasattr(begun(api), "stats_as_dict"))
    with pytest.raises(AttributeError, match=r"Please run summarize\(\) first"):
        begun(faster).stats_as_dict  # noqa: B018


def test_everything_that_was_found_is_listed():
    """`matched` was left out where all items were gone through, as it is made late."""
    found, expected = (evaluated(api, DATA).eval for api in (faster, theirs))
    assert sorted(found) == sorted(expected)
    for listed in (dict(found), {**found}, dict(found.items()), dict(zip(found, found.values(), strict=True))):
        assert listed["matched"] == expected["matched"]
    assert len(found) == len(expected) == len(found.keys())


def test_without_classes_a_second_run_gives_the_same():
    def client(api):
        evaluation = evaluated(api, DATA, params={"useCats": 0})
        once, known = evaluation.stats_as_dict, list(map(int, evaluation.params.catIds))
        evaluation.run()
        assert evaluation.stats_as_dict == once
        return known

    assert same(client) == sorted(category["id"] for category in DATA[0]["categories"])


def test_filters_of_annotations():
    """An image that is named twice counts once, and a range of areas that is none is no filter."""
    image = DATA[0]["annotations"][0]["image_id"]
    for arguments in ({"img_ids": [image, image]}, {"area_rng": [5]}, {"area_rng": [5, 6, 7]}, {"area_rng": [5, 900]}):
        assert same(lambda api, given=arguments: sorted(api.COCO(copy.deepcopy(DATA[0])).get_ann_ids(**given)))


def test_the_class_of_the_name_of_pycocotools_prints(capsys):
    """It took the logger of `COCOeval_faster`, and printed nothing."""
    truth = faster.COCO(copy.deepcopy(DATA[0]))
    evaluation = faster.COCOeval(truth, truth.loadRes(copy.deepcopy(DATA[1])), "bbox")
    assert evaluation.print_function is print
    evaluation.run()
    assert capsys.readouterr().out.count("@[ IoU=") == 14


# ---------------------------------------------------------------------------------------------------------- its extra


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
@pytest.mark.parametrize("options", [{}, {"iou_tresh": 0.5, "min_score": 0.3, "recall_count": 10}, {"useCats": True}])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_curves_and_confusion_matrix_of_the_original_on_the_stand_in(kind, options):
    """Its module `extra` makes the same of the stand-in's matches as of its own."""
    from faster_coco_eval.extra import Curves, PreviewResults

    from detmap import patch_pycocotools

    data = make_coco(5, images=4, categories=3, crowds=0)  # of several partners of a crowd the original keeps any
    if kind != "bbox":
        data = made.ample(made.pose_workload if kind == "keypoints" else made.mask_workload)

    def client():
        truth = theirs.COCO(copy.deepcopy(data[0]), print_function=silent)
        given = {"cocoGt": truth, "cocoDt": truth.loadRes(copy.deepcopy(data[1])), "iouType": kind, **options}
        shown = Curves(**given)
        curves = [
            (one["name"], one["category_id"], one["auc"], one["precision_list"], one["scores"])
            for one in shown.build_curve("class")
        ]
        matrix = PreviewResults(**given).compute_confusion_matrix()
        return curves, matrix, dict(shown.fp_image_ann_map), dict(shown.fn_image_ann_map), type(shown.cocoEval)

    expected = client()
    with patch_pycocotools():
        found = client()
    assert (found[4], expected[4]) == (faster.COCOeval_faster, theirs.COCOeval_faster)
    assert found[2:4] == expected[2:4]
    assert np.array_equal(found[1], expected[1])
    assert found[1].any()
    assert len(found[0]) == len(expected[0]) > 0
    for ours, original in zip(found[0], expected[0], strict=True):
        assert ours[:3] == original[:3]
        assert np.allclose(ours[3], original[3], rtol=1e-12, atol=0)
        assert np.array_equal(ours[4], original[4])
