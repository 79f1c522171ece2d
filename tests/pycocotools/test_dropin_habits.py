"""The drop-in against pycocotools over the ways in which evaluations are used."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from dropin import compare, load, shown
from dropin_workloads import PLAIN, QUIRKY, run


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
