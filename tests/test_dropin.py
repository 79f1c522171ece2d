"""The drop-in against pycocotools: everything either shows, over made-up data and over the ways in which it is used."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pycocotools.coco
import pytest
from dropin import BOTH, OURS, REAL, assert_same, compare, load, outcome, set_params, shown
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples
from workloads import coco_workloads, make_coco, tiny_coco_workloads

from detmap.kernels import assignment

# ----------------------------------------------------------------------------------------------------- equality of all

QUIRKS = [
    {},
    {"zero_ids": True},
    {"duplicate_ids": True, "stray_images": True},
    {"zero_ids": True, "duplicate_ids": True, "stray_images": True},
]


def whole(evaluation):
    """Whether the drop-in evaluated everything at once."""
    return "_snapshot" in vars(evaluation)


def evaluated(api, workload, *, inside=True):
    dataset, results, params = workload
    evaluation = api.COCOeval(*load(api, dataset, results), "bbox")
    set_params(evaluation.params, params)
    evaluation.evaluate()
    evaluation.accumulate()
    if len(evaluation.params.maxDets) > 2:
        evaluation.summarize()
    return shown(evaluation, inside=inside)


@pytest.mark.parametrize("quirks", QUIRKS, ids=lambda quirks: ", ".join(quirks) or "none")
def test_everything_is_equal(quirks):
    @settings(max_examples=examples(260))
    @given(coco_workloads(unsorted_thresholds=True, **quirks))
    def check(workload):
        assert isinstance(compare(lambda api: evaluated(api, workload)), dict)

    check()


@settings(max_examples=examples(200))
@given(tiny_coco_workloads(unsorted_thresholds=True))
def test_everything_is_equal_on_a_few_boxes(workload):
    assert isinstance(compare(lambda api: evaluated(api, workload)), dict)


@settings(max_examples=examples(100))
@given(coco_workloads(unsorted_thresholds=True), st.data())
def test_accumulate_under_other_params(workload, data):
    dataset, results, params = workload
    everything = {
        "imgIds": sorted(item["id"] for item in dataset["images"]),
        "catIds": sorted(item["id"] for item in dataset["categories"]),
        "areaRng": [[0, 1e10], [0, 1024], [1024, 9216], [5, 6]],
        "maxDets": [1, 5, 10, 100],
    }
    changes = {
        name: data.draw(st.none() | st.lists(st.sampled_from(values), min_size=1, max_size=4, unique_by=str))
        for name, values in everything.items()
    }
    changes["recThrs"] = data.draw(st.none() | st.just(np.linspace(0, 1, 5)))
    changes["useCats"] = data.draw(st.sampled_from([None, None, 0, 1]))
    read = data.draw(st.booleans())
    given_own = data.draw(st.booleans())

    def client(api):
        evaluation = api.COCOeval(*load(api, dataset, results), "bbox")
        set_params(evaluation.params, params)
        evaluation.params.maxDets = [1, 5, 100]
        evaluation.evaluate()
        if read:
            assert len(evaluation.evalImgs) > 0
        p = copy.deepcopy(evaluation.params) if given_own else evaluation.params
        for name, value in changes.items():
            if value is not None:
                setattr(p, name, value)
        evaluation.accumulate(p if given_own else None)
        return shown(evaluation)

    compare(client)


# ----------------------------------------------------------------------------------------------------------- habits

PLAIN = make_coco(7, images=6, categories=4, crowds=0.2, over_100=True)
QUIRKY = make_coco(8, images=6, categories=4, crowds=0.2, zero_ids=True, duplicate_ids=True, stray_images=True)


def run(evaluation):
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation


def without_detections(api, data):
    truth, found = load(api, *data)
    evaluation = api.COCOeval(truth, iouType="bbox")
    assert evaluation.cocoDt is None
    evaluation.cocoDt = found
    return shown(run(evaluation))


def with_nothing(api, data):
    truth, found = load(api, *data)
    evaluation = api.COCOeval(iouType="bbox")
    before = {name: getattr(evaluation, name) for name in ("evalImgs", "eval", "_gts", "_dts", "ious", "stats")}
    evaluation.cocoGt, evaluation.cocoDt = truth, found
    evaluation.params.imgIds, evaluation.params.catIds = truth.getImgIds(), truth.getCatIds()
    return before, shown(run(evaluation))


def masks_by_default(api, data):
    return vars(api.COCOeval().params), vars(api.COCOeval(None, None, "keypoints").params)


def no_detections_at_all(api, data):
    return shown(run(api.COCOeval(load(api, data[0]), api.COCO(), "bbox")))


def deep_copied_between_steps(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    first = copy.deepcopy(evaluation)
    first.evaluate()
    second = copy.deepcopy(first)
    second.accumulate()
    third = copy.deepcopy(second)
    third.summarize()
    return shown(third), shown(run(evaluation))


def pickled_between_steps(api, data):
    evaluation = pickle.loads(pickle.dumps(api.COCOeval(*load(api, *data), "bbox")))
    evaluation.evaluate()
    evaluation = pickle.loads(pickle.dumps(evaluation))
    evaluation.accumulate()
    evaluation = pickle.loads(pickle.dumps(evaluation))
    evaluation.summarize()
    return shown(evaluation)


def params_edited_in_place(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    p = evaluation.params
    p.imgIds.pop()
    p.imgIds.reverse()
    p.imgIds.append(p.imgIds[0])
    p.catIds[:] = p.catIds[::-1] + p.catIds[:1]
    p.maxDets[:] = [100, 1, 10]
    p.areaRng[1][1] = 900
    p.areaRng.append([5, 50])
    p.areaRngLbl.append("tiny")
    p.iouThrs[0] = 0.4
    return shown(run(evaluation))


def evaluated_twice(api, data):
    evaluation = run(api.COCOeval(*load(api, *data), "bbox"))
    first = evaluation.evalImgs
    evaluation.params.imgIds = evaluation.params.imgIds[:3]
    evaluation.params.useCats = 0
    run(evaluation)
    return first, shown(evaluation)


def categories_left_out_twice(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.params.useCats = 0
    run(evaluation)
    first = copy.deepcopy(evaluation.eval)
    return first, shown(run(evaluation))


def repeated_categories_without_use(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.params.useCats = 0
    evaluation.params.catIds = evaluation.params.catIds[::-1] + evaluation.params.catIds[:2]
    return shown(run(evaluation))


def use_categories_is_two(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.params.useCats = 2
    return shown(run(evaluation))


def segm_flag_of_old(api, data):
    evaluation = api.COCOeval(*load(api, *data))
    evaluation.params.useSegm = 0
    return shown(run(evaluation))


def listed_thresholds(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.params.iouThrs = [0.5, 0.75]
    evaluation.params.recThrs = [0.0, 0.5, 1.0]
    return shown(run(evaluation))


def repeated_params(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.params.maxDets = [100, 10, 10, 100]
    evaluation.params.iouThrs = np.array([0.5, 0.5, 0.75])
    evaluation.params.areaRng = [[0, 1e10], [0, 1e10], [50, 10]]
    evaluation.params.areaRngLbl = ["all", "small", "medium"]
    return shown(run(evaluation))


def subset_of_caps(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.evaluate()
    evaluation.params.maxDets = [10, 100]
    evaluation.accumulate()
    return shown(evaluation)


def empty_selections(api, data):
    out = []
    for name in ("imgIds", "catIds"):
        evaluation = api.COCOeval(*load(api, *data), "bbox")
        setattr(evaluation.params, name, [])
        out.append(shown(run(evaluation)))
    return out


def unknown_selections(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.params.imgIds += [123456]
    evaluation.params.catIds += [654321]
    return shown(run(evaluation))


def ious_read_first(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.evaluate()
    ious = dict(evaluation.ious)
    evaluation.accumulate()
    evaluation.summarize()
    return ious, shown(evaluation)


def inside_assigned_before_it_is_made(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.evaluate()
    evaluation.ious = {"mine": 1}
    images = evaluation.evalImgs
    evaluation.accumulate()
    return images, evaluation.ious, evaluation.eval


def evaluated_by_another_and_assigned(api, data):
    truth, found = load(api, *data)
    first = api.COCOeval(truth, found, "bbox")
    first.evaluate()
    second = api.COCOeval(truth, iouType="bbox")
    second.evalImgs = first.evalImgs
    second.params.imgIds = list(np.unique(second.params.imgIds))
    second._paramsEval = copy.deepcopy(second.params)
    second.accumulate()
    second.summarize()
    return second.eval, second.stats


def assigned_in_the_middle(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.evaluate()
    evaluation.evalImgs = [None] * len(evaluation.evalImgs)
    evaluation.accumulate()
    return evaluation.eval


def edited_in_the_middle(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.evaluate()
    for image in evaluation.evalImgs:
        if image:
            image["dtScores"] = [score / 2 for score in image["dtScores"]]
            image["dtIgnore"][0] = True
    evaluation.accumulate()
    return evaluation.eval


def steps_taken_by_hand(api, data):
    """What DETR's own copy of `evaluate` does."""
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    p = evaluation.params
    p.imgIds, p.catIds, p.maxDets = list(np.unique(p.imgIds)), list(np.unique(p.catIds)), sorted(p.maxDets)
    evaluation.params = p
    evaluation._prepare()
    evaluation.ious = {(i, c): evaluation.computeIoU(i, c) for i in p.imgIds for c in p.catIds}
    images = [
        evaluation.evaluateImg(i, c, area, p.maxDets[-1]) for c in p.catIds for area in p.areaRng for i in p.imgIds
    ]
    images = np.asarray(images).reshape(len(p.catIds), len(p.areaRng), len(p.imgIds))
    evaluation._paramsEval = copy.deepcopy(p)
    evaluation.evalImgs = list(images.flatten())
    evaluation.accumulate()
    evaluation.summarize()
    return shown(evaluation)


def one_image_after_another(api, data):
    """`evaluateImg` called from outside after `evaluate`, with caps and ranges of its own."""
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    evaluation.evaluate()
    p = evaluation.params
    return [
        (evaluation.computeIoU(i, c), evaluation.evaluateImg(i, c, [10, 2000], cap))
        for i in p.imgIds
        for c in p.catIds
        for cap in (1, 3, 100)
    ]


def prepared_again(api, data):
    evaluation = run(api.COCOeval(*load(api, *data), "bbox"))
    evaluation.params.catIds = evaluation.params.catIds[:1]
    evaluation._prepare()
    return shown(evaluation)


def evaluate_img_overridden(api, data):
    class Strict(api.COCOeval):
        def evaluateImg(self, imgId, catId, aRng, maxDet):
            found = super().evaluateImg(imgId, catId, aRng, maxDet)
            if found is not None:
                found["dtIgnore"] = found["dtIgnore"] | (np.array(found["dtScores"]) < 0.3)
            return found

    return shown(run(Strict(*load(api, *data), "bbox")))


def overlap_overridden(api, data):
    class Halved(api.COCOeval):
        def computeIoU(self, imgId, catId):
            ious = super().computeIoU(imgId, catId)
            return ious if len(ious) == 0 else ious / 2 + 0.25

    return shown(run(Halved(*load(api, *data), "bbox")))


def prepare_overridden(api, data):
    class Uncrowded(api.COCOeval):
        def _prepare(self):
            super()._prepare()
            for records in self._gts.values():
                for record in records:
                    record["ignore"] = record["area"] < 200

    return shown(run(Uncrowded(*load(api, *data), "bbox")))


def summary_overridden(api, data):
    class Brief(api.COCOeval):
        def summarize(self):
            self.stats = [self.eval["precision"].mean(), len(self.evalImgs)]

    return shown(run(Brief(*load(api, *data), "bbox")))


def method_set_on_the_object(api, data):
    evaluation = api.COCOeval(*load(api, *data), "bbox")
    own = evaluation.evaluateImg
    evaluation.evaluateImg = lambda *args: own(*args) if args[1] != evaluation.params.catIds[0] else None
    return run(evaluation).eval


def data_set_overridden(api, data):
    class Renamed(api.COCO):
        def getAnnIds(self, *args, **kwargs):
            return super().getAnnIds(*args, **kwargs)[1:]

    truth = Renamed()
    truth.dataset = copy.deepcopy(data[0])
    truth.createIndex()
    found = truth.loadRes(copy.deepcopy(data[1]))
    return type(found) is api.COCO, shown(run(api.COCOeval(truth, found, "bbox")))


def detections_as_a_data_set(api, data):
    """Results that were never given to `loadRes`: ids, areas and crowds are what the records say."""
    out = []
    for change in ({}, {"id": 0}, {"id": -1}, {"area": 5.0}, {"iscrowd": 1}):
        found = api.COCO()
        records = [{**r, "id": i, "area": r["bbox"][2] * r["bbox"][3]} for i, r in enumerate(data[1], 1)]
        for record in records[::3]:
            record |= change
        found.dataset = {**data[0], "annotations": records}
        found.createIndex()
        out.append(shown(run(api.COCOeval(load(api, data[0]), found, "bbox"))))
    return out


def results_changed_after_loading(api, data):
    truth, found = load(api, *data)
    for number, record in enumerate(found.dataset["annotations"]):
        record["score"] = (number * 7) % 11 / 10
        record["bbox"] = [*record["bbox"][:3], record["bbox"][3] + 1]
    first = run(api.COCOeval(truth, found, "bbox")).eval
    own = copy.deepcopy(data[1])
    found = truth.loadRes(own)
    for record in own:
        record["score"] = 1 - record["score"]
    return first, shown(run(api.COCOeval(truth, found, "bbox")))


def results_filtered_after_loading(api, data):
    truth, found = load(api, *data)
    found.dataset["annotations"] = [r for r in found.dataset["annotations"] if r["score"] > 0.4]
    found.createIndex()
    return shown(run(api.COCOeval(truth, found, "bbox")))


def printed_whole(api, data):
    evaluation = run(api.COCOeval(*load(api, *data), "bbox"))
    return str(evaluation)


HABITS = [
    without_detections,
    with_nothing,
    masks_by_default,
    no_detections_at_all,
    deep_copied_between_steps,
    pickled_between_steps,
    params_edited_in_place,
    evaluated_twice,
    categories_left_out_twice,
    repeated_categories_without_use,
    use_categories_is_two,
    segm_flag_of_old,
    listed_thresholds,
    repeated_params,
    subset_of_caps,
    empty_selections,
    unknown_selections,
    ious_read_first,
    inside_assigned_before_it_is_made,
    evaluated_by_another_and_assigned,
    assigned_in_the_middle,
    edited_in_the_middle,
    steps_taken_by_hand,
    one_image_after_another,
    prepared_again,
    evaluate_img_overridden,
    overlap_overridden,
    prepare_overridden,
    summary_overridden,
    method_set_on_the_object,
    data_set_overridden,
    detections_as_a_data_set,
    results_changed_after_loading,
    results_filtered_after_loading,
    printed_whole,
]


@pytest.mark.parametrize("data", [PLAIN, QUIRKY], ids=["plain", "quirky"])
@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.__name__)
def test_habits(habit, data):
    compare(lambda api: habit(api, data))


# ------------------------------------------------------------------------------------------------------ odd records


def odd(**changes):
    """A data set of three objects and four detections with some records changed: name "gt" or "dt" to index to fields."""
    box = [10.0, 10.0, 20.0, 20.0]
    gts = [{"id": i, "image_id": 1, "category_id": 1, "bbox": box, "area": 400.0, "iscrowd": 0} for i in (1, 2, 3)]
    gts[2] |= {"image_id": 2, "iscrowd": 1}
    dts = [
        {"image_id": i, "category_id": 1, "bbox": box, "score": s} for i, s in ((1, 0.9), (1, 0.8), (2, 0.7), (2, 0.9))
    ]
    for records, change in ((gts, changes.get("gt", {})), (dts, changes.get("dt", {}))):
        for i, fields in change.items():
            records[i] = {k: v for k, v in {**records[i], **fields}.items() if v is not ...}
    images = [{"id": 1, "height": 60, "width": 60}, {"id": 2, "height": 60, "width": 60}]
    return {"images": images, "annotations": gts, "categories": [{"id": 1, "name": "a"}]}, dts


NAN, INF = float("nan"), float("inf")
ODD = {
    "no iscrowd": {"gt": {0: {"iscrowd": ...}}},
    "no area": {"gt": {0: {"area": ...}}},
    "no bbox": {"gt": {0: {"bbox": ...}}},
    "no id": {"gt": {0: {"id": ...}}},
    "no image": {"gt": {0: {"image_id": ...}}},
    "no category": {"gt": {0: {"category_id": ...}}},
    "iscrowd 2": {"gt": {0: {"iscrowd": 2}}},
    "iscrowd true": {"gt": {0: {"iscrowd": True}}},
    "iscrowd a half": {"gt": {0: {"iscrowd": 0.5}}},
    "iscrowd none": {"gt": {0: {"iscrowd": None}}},
    "iscrowd 300": {"gt": {0: {"iscrowd": 300}}},
    "id a word": {"gt": {0: {"id": "a"}}},
    "ids are digits": {"gt": {0: {"id": "17"}, 1: {"id": "18"}}},
    "id a fraction": {"gt": {0: {"id": 1.5}}},
    "id none": {"gt": {0: {"id": None}}},
    "id negative": {"gt": {0: {"id": -4}}},
    "id beyond 64 bits": {"gt": {0: {"id": 2**70}}},
    "area nan": {"gt": {0: {"area": NAN}}},
    "area infinite": {"gt": {0: {"area": INF}}},
    "area negative": {"gt": {0: {"area": -3}}},
    "area a word": {"gt": {0: {"area": "big"}}},
    "gt box nan": {"gt": {0: {"bbox": [10, 10, NAN, 20]}}},
    "gt box infinite": {"gt": {0: {"bbox": [10, 10, INF, INF]}}},
    "gt box negative": {"gt": {0: {"bbox": [30, 30, -20, -20]}}},
    "gt box a tuple": {"gt": {0: {"bbox": (10, 10, 20, 20)}}},
    "gt box an array": {"gt": {0: {"bbox": np.array([10, 10, 20, 20])}}},
    "gt box of three": {"gt": {0: {"bbox": [1, 2, 3]}}},
    "boxes that vanish": {"gt": {0: {"bbox": [1, 1, 1e-200, 1e-200]}}, "dt": {0: {"bbox": [1, 1, 1e-200, 1e-200]}}},
    "boxes that overflow": {"gt": {0: {"bbox": [1, 1, 1e200, 1e200]}}, "dt": {0: {"bbox": [1, 1, 1e200, 1e200]}}},
    "score nan": {"dt": {1: {"score": NAN}}},
    "score infinite": {"dt": {1: {"score": INF}, 0: {"score": -INF}}},
    "score missing": {"dt": {1: {"score": ...}}},
    "score a word": {"dt": {1: {"score": "high"}}},
    "score none": {"dt": {1: {"score": None}}},
    "scores integers": {"dt": {i: {"score": i} for i in range(4)}},
    "scores true": {"dt": {i: {"score": True} for i in range(4)}},
    "scores single precision": {"dt": {i: {"score": np.float32(0.1 * i)} for i in range(4)}},
    "scores unsigned": {"dt": {i: {"score": np.uint8(i)} for i in range(4)}},
    "scores huge": {"dt": {i: {"score": 2**60 + i} for i in range(4)}},
    "dt box nan": {"dt": {0: {"bbox": [10, 10, NAN, 20]}}},
    "dt box infinite": {"dt": {0: {"bbox": [10, 10, INF, INF]}}},
    "dt box negative": {"dt": {0: {"bbox": [30, 30, -20, -20]}}},
    "dt box a tuple": {"dt": {2: {"bbox": (10, 10, 20, 20)}}},
    "dt box an array": {"dt": {0: {"bbox": np.array([10.0, 10, 20, 20])}}},
    "dt box single precision": {"dt": {0: {"bbox": [10, 10, np.float32(0.1), np.float32(10240)]}}},
    "dt box integers": {"dt": {0: {"bbox": [10, 10, 20, 20]}}},
    "dt box huge integers": {"dt": {0: {"bbox": [10, 10, 2**40 + 1, 2**40 + 1]}}},
    "dt box of three": {"dt": {1: {"bbox": [1, 2, 3]}}},
    "dt box of five": {"dt": {1: {"bbox": [1, 2, 3, 4, 5]}}},
    "dt box of words": {"dt": {1: {"bbox": ["a", "b", "c", "d"]}}},
    "first dt box empty": {"dt": {0: {"bbox": []}}},
    "later dt box empty": {"dt": {1: {"bbox": []}}},
    "dt box missing": {"dt": {1: {"bbox": ...}}},
    "dt category missing": {"dt": {1: {"category_id": ...}}},
    "dt category unknown": {"dt": {1: {"category_id": 5}}},
    "dt category a word": {"dt": {1: {"category_id": "1"}}},
    "dt image unknown": {"dt": {1: {"image_id": 5}}},
    "dt image a fraction": {"dt": {1: {"image_id": 1.0}}},
    "dt image numpy": {"dt": {1: {"image_id": np.int64(1)}}},
    "dt image true": {"dt": {1: {"image_id": True}}},
    "dt image missing": {"dt": {1: {"image_id": ...}}},
}


#: Refused when the results are evaluated; by pycocotools when they are loaded.
LATE = {"dt box missing", "dt box of three", "dt box of words", "later dt box empty", "dt category missing"}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_odd_records(name):
    data = odd(**ODD[name])
    compare(lambda api: shown(run(api.COCOeval(*load(api, *data), "bbox"))), text=name not in LATE)


def test_ids_that_are_strings():
    dataset, results = copy.deepcopy(PLAIN)
    for record in [*dataset["annotations"], *results]:
        record["image_id"] = f"image {record['image_id']}"
        record["category_id"] = f"category {record['category_id']}"
    for kind in ("images", "categories"):
        for record in dataset[kind]:
            record["id"] = f"{'image' if kind == 'images' else 'category'} {record['id']}"
    value = compare(lambda api: shown(run(api.COCOeval(*load(api, dataset, results), "bbox"))))
    assert isinstance(value, dict)


# -------------------------------------------------------------------------------------------------------- laziness


def test_nothing_is_made_that_nobody_asks_for():
    truth, found = load(OURS, *PLAIN)
    evaluation = OURS.COCOeval(truth, found, "bbox")
    run(evaluation)
    assert whole(evaluation)
    assert not {"evalImgs", "ious", "_gts", "_dts"} & set(vars(evaluation))
    assert "anns" not in vars(found)
    assert evaluation.evalImgs[0] is None or isinstance(evaluation.evalImgs[0], dict)
    assert not whole(evaluation)
    assert "anns" in vars(found)


def test_quirks_take_the_faithful_path():
    for data, expected in ((PLAIN, True), (QUIRKY, False)):
        evaluation = OURS.COCOeval(*load(OURS, *data), "bbox")
        evaluation.evaluate()
        assert whole(evaluation) is expected


def test_results_are_extended_when_they_are_read():
    compare(lambda api: load(api, *PLAIN)[1].dataset)
    compare(lambda api: load(api, *PLAIN)[1].loadAnns([3, 5]))

    def callers_own(api):
        own = copy.deepcopy(PLAIN[1])
        truth = load(api, PLAIN[0])
        found = truth.loadRes(own)
        return found.getAnnIds(), own, copy.deepcopy(truth.loadRes(own)).imgToAnns

    compare(callers_own)


def test_the_real_one_is_not_imported_for_boxes():
    code = """
import sys
sys.path[:0] = ["tests"]
from workloads import make_coco
from detmap.pycocotools.coco import COCO
from detmap.pycocotools.cocoeval import COCOeval
dataset, results = make_coco(3)
truth = COCO()
truth.dataset = dataset
truth.createIndex()
evaluation = COCOeval(truth, truth.loadRes(results), "bbox")
evaluation.evaluate()
evaluation.accumulate()
evaluation.summarize()
assert evaluation.evalImgs
assert "pycocotools" not in sys.modules and not [m for m in sys.modules if m.startswith("pycocotools.")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


# ------------------------------------------------------------------------------------------------------------- COCO


def test_data_set_methods(tmp_path):
    dataset, results = copy.deepcopy(QUIRKY)
    for i, category in enumerate(dataset["categories"]):
        category["supercategory"] = f"kind {i % 2}"
    dataset["info"] = {"year": 2017, "about": "boxes"}
    path, results_path = tmp_path / "gt.json", tmp_path / "dt.json"
    path.write_text(json.dumps(dataset))
    results_path.write_text(json.dumps(results))
    images = [item["id"] for item in dataset["images"]]
    categories = [item["id"] for item in dataset["categories"]]
    calls = [
        ("info",),
        ("getAnnIds",),
        ("getAnnIds", images[:2]),
        ("getAnnIds", images[0], categories[0]),
        ("getAnnIds", [], categories[:2]),
        ("getAnnIds", np.array(images[1:4]), np.array(categories)),
        ("getAnnIds", [], [], [100, 1024]),
        ("getAnnIds", [], [], [], False),
        ("getAnnIds", images, [], (0, 1e5), True),
        ("getAnnIds", [424242]),
        ("getAnnIds", images, "class"),
        ("getAnnIds", images, [categories]),
        ("getCatIds",),
        ("getCatIds", "class 1"),
        ("getCatIds", ["class 1", "class 8"], ["kind 0"]),
        ("getCatIds", [], "kind 1", categories[1:]),
        ("getCatIds", [], [], categories[0]),
        ("getImgIds",),
        ("getImgIds", images[:3]),
        ("getImgIds", [], categories[:2]),
        ("getImgIds", images, categories[0]),
        ("loadAnns",),
        ("loadAnns", [0]),
        ("loadAnns", 0),
        ("loadAnns", [424242]),
        ("loadCats", categories),
        ("loadCats", categories[0]),
        ("loadImgs", images[::-1]),
        ("loadImgs", np.int64(images[0])),
        ("showAnns", []),
        ("showAnns", [{"caption": "a cat"}]),
        ("showAnns", [{"what": 1}]),
        ("download",),
    ]
    for name, *args in calls:
        compare(lambda api, name=name, args=args: getattr(api.COCO(str(path)), name)(*args))
    for source in (str(results_path), results, [], "missing.json", 5, tuple(results), None):
        compare(lambda api, source=source: api.COCO(str(path)).loadRes(copy.deepcopy(source)).dataset)
    for name in ("dataset", "anns", "cats", "imgs", "imgToAnns", "catToImgs"):
        compare(lambda api, name=name: getattr(api.COCO(str(path)), name))
        compare(lambda api, name=name: getattr(api.COCO(str(path)).loadRes(copy.deepcopy(results)), name))
        compare(lambda api, name=name: getattr(api.COCO(), name))
    compare(lambda api: api.COCO("missing.json"))
    for text in ("[]", "{", '{"images": [{"id": NaN}]}', "\ufeff{}", '{"images": [{"id": 123456789012345678901}]}'):
        path.write_text(text)
        compare(lambda api: api.COCO(str(path)).imgs)


def test_results_from_an_array():
    rows = np.array([[r["image_id"], *r["bbox"], r["score"], r["category_id"]] for r in PLAIN[1]])
    for data in (rows, rows.astype(np.float32), rows[:, :6], rows[:0]):
        compare(lambda api, data=data: load(api, PLAIN[0]).loadRes(data).anns)
        compare(lambda api, data=data: shown(run(api.COCOeval(*[t := load(api, PLAIN[0]), t.loadRes(data)], "bbox"))))


def test_captions_are_results_too():
    results = [{"image_id": item["id"], "caption": "…"} for item in PLAIN[0]["images"][:2]]
    compare(lambda api: load(api, PLAIN[0]).loadRes(copy.deepcopy(results)).dataset)


def test_download(tmp_path, monkeypatch):
    fetched = []

    def urlretrieve(url, path):
        fetched.append(url)
        with open(path, "w") as file:
            file.write(url)

    monkeypatch.setattr("urllib.request.urlretrieve", urlretrieve)
    monkeypatch.setattr(pycocotools.coco, "urlretrieve", urlretrieve)
    dataset = copy.deepcopy(PLAIN[0])
    for item in dataset["images"]:
        item["coco_url"] = f"http://example.org/{item['file_name']}"
    names = [item["id"] for item in dataset["images"]]

    def client(api):
        folder = tmp_path / api.name
        truth = load(api, dataset)
        truth.download(str(folder), names[:2])
        truth.download(str(folder))
        every = list(fetched)
        fetched.clear()
        return every, sorted(path.name for path in folder.iterdir())

    compare(client)


def test_copies_of_waiting_results():
    for copied in (copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))):
        compare(lambda api, copied=copied: copied(load(api, *PLAIN)[1]).anns)

        def evaluate_copies(api, copied=copied):
            return shown(run(api.COCOeval(*map(copied, load(api, *PLAIN)), "bbox")))

        compare(evaluate_copies)


def test_drawing(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setattr(matplotlib, "rcParams", matplotlib.rcParams.copy())
    matplotlib.use("Agg")
    from matplotlib import pyplot

    truth = load(OURS, *with_masks())
    truth[0].cats[1]["skeleton"] = [[1, 2]]
    annotations = [
        *truth[0].dataset["annotations"],
        {"image_id": 3, "category_id": 1, "bbox": [1, 2, 3, 4], "keypoints": [1, 2, 2, 5, 6, 1]},
    ]
    figure = pyplot.figure()
    truth[0].showAnns(annotations, draw_bbox=True)
    assert len(figure.axes[0].collections) == 2
    assert len(figure.axes[0].lines) == 3
    pyplot.close(figure)


# --------------------------------------------------------------------------------------------- masks and keypoints


def with_masks():
    """Polygons and run lengths as ground truth, run lengths and boxes as results."""
    dataset, results = make_coco(11, images=3, categories=2, negative=False, zero_sized=False)
    dataset["categories"][0]["id"] = 1

    def polygon(box):
        x, y, w, h = (float(v) for v in box)
        return [[x, y, x, y + h, x + w, y + h, x + w, y]]

    for record in dataset["annotations"]:
        record["bbox"] = [float(v) for v in record["bbox"]]
        record["segmentation"] = polygon(record["bbox"])
        if record["iscrowd"]:
            start = record["id"] * 50
            record["segmentation"] = {"size": [150, 150], "counts": [start, 900, 150 * 150 - 900 - start]}
    for record in results:
        x, y, w, h = (int(v) for v in record.pop("bbox"))
        mask = np.zeros((150, 150), np.uint8, order="F")
        mask[max(y, 0) : y + h, max(x, 0) : x + w] = 1
        record["segmentation"] = REAL.mask.encode(mask)
    return dataset, results


def test_masks_are_evaluated_alike():
    dataset, results = with_masks()
    value = compare(lambda api: shown(run(api.COCOeval(*load(api, dataset, results)))))
    assert isinstance(value, dict)
    compare(lambda api: load(api, dataset, results)[1].anns)
    compare(lambda api: [load(api, dataset).annToMask(ann) for ann in dataset["annotations"]])
    boxed = [{**r, "bbox": [1.0, 2.0, 30.0, 20.0]} for r in results]
    compare(lambda api: shown(run(api.COCOeval(*load(api, dataset, boxed), "segm"))))
    compare(lambda api: shown(run(api.COCOeval(*load(api, dataset, make_coco(11, negative=False)[1][:0]), "segm"))))


def with_keypoints(*, number=17, labelled=True):
    rng = np.random.default_rng(5)
    dataset, results = make_coco(12, images=4, categories=1)
    for record in dataset["annotations"]:
        x, y, w, h = record["bbox"]
        seen = rng.integers(0, 3, number)
        points = np.stack([rng.uniform(x, x + w + 1, number), rng.uniform(y, y + h + 1, number), seen], axis=1)
        points[seen == 0] = 0
        record["keypoints"] = points.ravel().tolist()
        if labelled:
            record["num_keypoints"] = int((seen > 0).sum()) if rng.random() < 0.9 else 0
    spare = list(dataset["annotations"])
    spare[0] |= {"keypoints": [0] * 3 * number}
    for record in results:
        del record["bbox"]
        base = np.array(spare[rng.integers(len(spare))]["keypoints"]).reshape(-1, 3)
        record["keypoints"] = (base + rng.normal(0, 3, base.shape) * [1, 1, 0]).ravel().tolist()
    return dataset, results


def test_keypoints():
    value = compare(lambda api: shown(run(api.COCOeval(*load(api, *with_keypoints()), "keypoints"))))
    assert isinstance(value, dict)
    assert (value["stats"] > 0).any()
    compare(lambda api: load(api, *with_keypoints())[1].anns)
    compare(lambda api: shown(run(api.COCOeval(*load(api, *with_keypoints(labelled=False)), "keypoints"))))

    def without_categories(api):
        evaluation = api.COCOeval(*load(api, *with_keypoints()), "keypoints")
        evaluation.params.useCats = 0
        return shown(run(evaluation))

    compare(without_categories)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # in pycocotools, with numpy 2
def test_mask_functions():
    box, other = [[0, 0, 10, 10], [1.5, 1, 5, 5.0]], [[3, 3, 9, 9]]
    rle = REAL.mask.encode(np.eye(6, dtype=np.uint8, order="F"))
    stack = np.asfortranarray(np.random.default_rng(0).integers(0, 2, (5, 4, 3)).astype(np.uint8))
    iou = [
        (box, other, [0]),
        (box, other, [1]),
        (np.array(box), other, [0]),
        ([np.array([0, 0, 1, 2])], [np.array([0, 0, 1, 2], np.float32)], np.array([0])),
        ([], box, [0, 0]),
        (box, [], []),
        (box, [(0, 0, 1, 1)], [0]),
        (box, box, [0]),
        (box, box, [300, 0]),
        (box, box, [0.5, 0]),
        (box, box, [[0, 1]]),
        ([[0, 0, -1, -2]], [[0, 0, -1, -2]], [0]),
        ([[0, 0, NAN, 2]], [[0, 0, 1, 2]], [0]),
        ([[NAN, 0, 1, 2]], [[0, 0, 1, 2]], [0]),
        ([["a", 0, 1, 2]], [[0, 0, 1, 2]], [0]),
        ([[0, 0, 1]], [[0, 0, 1, 2]], [0]),
        ((1,), box, [0, 0]),
        (np.zeros((3, 3)), box, [0, 0]),
        ([rle], [rle, rle], [0, 1]),
        ([rle], box, [0, 0]),
    ]
    calls = [
        *(("iou", *args) for args in iou),
        ("encode", np.eye(6, dtype=np.uint8, order="F")),
        ("encode", stack),
        ("decode", rle),
        ("decode", [rle, rle]),
        ("area", rle),
        ("area", [rle]),
        ("toBbox", rle),
        ("toBbox", [rle]),
        ("merge", [rle, rle]),
        ("merge", [rle, rle], 1),
        ("frPyObjects", [[0.0, 0, 0, 5, 5, 5]], 8, 8),
    ]
    for name, *args in calls:
        compare(lambda api, name=name, args=args: getattr(api.mask, name)(*args))


def test_masks_need_no_pycocotools(monkeypatch):
    for name in ("pycocotools", "pycocotools.mask", "pycocotools._mask"):
        monkeypatch.setitem(sys.modules, name, None)
    evaluation = OURS.COCOeval(*load(OURS, *with_masks()))
    evaluation.evaluate()
    assert any(item is not None for item in evaluation.evalImgs)


# ---------------------------------------------------------------------------------------------------------- refusals


def test_exceptions_are_of_the_same_type():
    def accumulate_first(api):
        api.COCOeval(load(api, PLAIN[0]), iouType="bbox").accumulate()

    def nothing_at_all(api):
        api.COCOeval().accumulate()

    def summarize_first(api):
        api.COCOeval(load(api, PLAIN[0]), iouType="bbox").summarize()

    def two_caps(api):
        evaluation = api.COCOeval(*load(api, *PLAIN), "bbox")
        evaluation.params.maxDets = [1, 100]
        run(evaluation)

    def evaluate_without_detections(api):
        api.COCOeval(load(api, PLAIN[0]), iouType="bbox").evaluate()

    def unknown_type(api):
        api.COCOeval(iouType="circle")

    def type_changed(api):
        evaluation = api.COCOeval(*load(api, *PLAIN), "bbox")
        evaluation.params.iouType = "circle"
        evaluation.evaluate()

    def no_type(api):
        api.COCOeval(iouType="")

    def shorter_thresholds(api):
        evaluation = api.COCOeval(*load(api, *PLAIN), "bbox")
        evaluation.evaluate()
        evaluation.params.iouThrs = evaluation.params.iouThrs[:2]
        evaluation.accumulate()

    def longer_thresholds(api):
        evaluation = api.COCOeval(*load(api, *PLAIN), "bbox")
        evaluation.evaluate()
        evaluation.params.iouThrs = np.linspace(0, 1, 12)
        evaluation.accumulate()
        return evaluation.eval

    def no_caps(api):
        evaluation = api.COCOeval(*load(api, *PLAIN), "bbox")
        evaluation.params.maxDets = []
        evaluation.evaluate()

    def image_never_evaluated(api):
        evaluation = api.COCOeval(*load(api, *PLAIN), "bbox")
        evaluation.evaluate()
        return evaluation.evaluateImg(987654, 1, [0, 1e10], 100), evaluation.computeIoU(987654, 1)

    def no_such_attribute(api):
        evaluation = run(api.COCOeval(*load(api, *PLAIN), "bbox"))
        return hasattr(evaluation, "precision"), hasattr(evaluation.cocoDt, "precision"), evaluation.precision

    for client in (
        accumulate_first, nothing_at_all, summarize_first, two_caps, evaluate_without_detections, unknown_type,
        type_changed, no_type, shorter_thresholds, longer_thresholds, no_caps, image_never_evaluated, no_such_attribute,
    ):  # fmt: skip
        compare(client)


def test_params():
    for kind in ("segm", "bbox", "keypoints"):
        compare(lambda api, kind=kind: vars(api.Params(kind)))
    compare(lambda api: vars(api.Params()))
    compare(lambda api: api.Params("circle"))


@pytest.mark.compiled
def test_kernels_have_one_signature():
    for data in (PLAIN, QUIRKY):
        evaluated(OURS, (*data, None))
    assert [len(kernel.signatures) for kernel in (assignment.assign, assignment.box_ious)] == [1, 1]


def test_comparison_notices_a_difference():
    """The tests above can fail: a bit, a type, a shape, a letter."""
    assert outcome(lambda api: print("a (t=1.2s)"), REAL) == (None, "a (t)\n")
    for one, other in ((1.0, np.nextafter(1, 2)), (1, 1.0), ([1], (1,)), (np.zeros(1), np.zeros((1, 1)))):
        with pytest.raises(AssertionError):
            assert_same(one, other)
    with pytest.raises(AssertionError):
        compare(lambda api: api is OURS)
    with pytest.raises(AssertionError):
        compare(lambda api: print(api.name))
    assert len(BOTH) == 2
