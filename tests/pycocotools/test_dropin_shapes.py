"""The drop-in against pycocotools where masks and poses are evaluated: everything either shows, and what it writes."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace

import numpy as np
import pytest
import shape_workloads as made
from dropin import BOTH, OURS, assert_same, compare, load, outcome, shown
from dropin_workloads import run, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples
from test_dropin_habits import HABITS, segm_flag_of_old
from workloads import REAL_DATA, needs_real_data

# ------------------------------------------------------------------------------------------------------ any workload


def evaluated(api, workload, kind, params=(), *, inside=True):
    evaluation = api.COCOeval(*load(api, *workload), kind)
    vars(evaluation.params).update(copy.deepcopy(dict(params)))
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return shown(evaluation, inside=inside)


@st.composite
def changes(draw, dataset, kind):
    """Params other than the defaults."""
    images = [image["id"] for image in dataset["images"]]
    categories = [category["id"] for category in dataset["categories"]]
    caps = [20] if kind == "keypoints" else [1, 10, 100]
    out = {
        "imgIds": draw(st.none() | st.lists(st.sampled_from([*images, 999]), min_size=1, unique=True)),
        "catIds": draw(st.none() | st.lists(st.sampled_from([*categories, 99]), min_size=1, unique=True)),
        "useCats": draw(st.sampled_from([1, 1, 0])),
        "maxDets": draw(st.sampled_from([caps, [1, 2, 3], [2, 4, 20, 30]])),
        "iouThrs": draw(st.none() | st.just(np.array([0.0, 0.5, 0.5, 0.1])) | st.just(np.array([0.75, 0.3, 1.0]))),
        "areaRng": draw(st.none() | st.just([[0, 1e10], [0, 20], [20, 1024], [1024, 1e10]])),
    }
    return {name: value for name, value in out.items() if value is not None}


@settings(max_examples=examples(150), deadline=None)
@given(made.seeds(), st.sampled_from(["none", "all"]), st.data())
def test_masks_are_evaluated_as_by_pycocotools(seed, boxes, data):
    dataset, results = made.mask_workload(seed, boxes)
    params = data.draw(changes(dataset, "segm"))
    compare(lambda api: evaluated(api, (dataset, results), "segm", params))


@settings(max_examples=examples(150), deadline=None)
@given(made.seeds(), st.sampled_from([1, 8, 17]), st.booleans(), st.data())
def test_poses_are_evaluated_as_by_pycocotools(seed, points, boxes, data):
    dataset, results = made.pose_workload(seed, points, boxes)
    params = data.draw(changes(dataset, "keypoints"))
    params["kpt_oks_sigmas"] = np.random.default_rng(seed).uniform(0.02, 0.2, points)
    compare(lambda api: evaluated(api, (dataset, results), "keypoints", params))


# -------------------------------------------------------------------------------------------------------------- habits


def apis_of(kind):
    """Both, whose evaluations are of this kind whatever is asked for."""
    out = []
    for api in BOTH:

        def start(self, cocoGt=None, cocoDt=None, iouType="segm", *, base=api.COCOeval):
            base.__init__(self, cocoGt, cocoDt, kind)

        name = f"{api.name}_{kind}"
        globals()[name] = type(name, (api.COCOeval,), {"__init__": start, "__module__": __name__})
        out.append(SimpleNamespace(**{**vars(api), "COCOeval": globals()[name]}))
    return out


APIS = {kind: apis_of(kind) for kind in ("segm", "keypoints")}


DATA = {
    "masks": ("segm", made.ample(made.mask_workload)),
    "masks with boxes": ("segm", made.ample(lambda seed: made.mask_workload(seed, "all"))),
    "poses": ("keypoints", made.ample(made.pose_workload)),
    "poses with boxes": ("keypoints", made.ample(lambda seed: made.pose_workload(seed, boxes=True))),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(
    "habit", [habit for habit in HABITS if habit is not segm_flag_of_old], ids=lambda h: h.__name__
)
def test_habits(habit, name):
    """The ways in which evaluations are used, as in test_dropin_habits, with masks and poses."""
    kind, data = DATA[name]
    if habit.__name__ == "detections_as_a_data_set" and "boxes" not in name:
        data = data[0], [{**result, "bbox": [1.0, 2.0, 3.0, 4.0]} for result in data[1]]
    (expected, expected_text), (value, text) = (outcome(lambda api: habit(api, data), api) for api in APIS[kind])
    if isinstance(expected, type) and habit.__name__ == "one_image_after_another":
        assert value is expected  # computeIoU is not for poses
    else:
        assert_same(value, expected)
    assert text == expected_text


@pytest.mark.parametrize("name", DATA)
def test_nothing_is_made_that_nobody_asks_for(name):
    kind, data = DATA[name]
    if name == "masks with boxes":  # all with a mask, so that none is to be drawn
        dataset, results = DATA["masks"][1]
        data = dataset, [{**result, "bbox": [1.0, 2.0, 3.0, 4.0]} for result in results]
    truth, found = load(OURS, *data)
    evaluation = run(OURS.COCOeval(truth, found, kind))
    assert whole(evaluation)
    assert not {"evalImgs", "ious", "_gts", "_dts"} & set(vars(evaluation))
    assert "anns" not in vars(found)
    assert [cell for cell in evaluation.evalImgs if cell is not None]
    assert not whole(evaluation)
    assert "anns" in vars(found)


@pytest.mark.parametrize("name", DATA)
def test_the_callers_records_are_written_to_alike(name):
    """By an evaluation alone: nobody has read the data set's annotations."""
    kind, (dataset, results) = DATA[name]

    def client(api):
        own, given_results = copy.deepcopy(dataset), copy.deepcopy(results)
        truth = api.COCO()
        truth.dataset = own
        truth.createIndex()
        found = truth.loadRes(given_results)
        run(api.COCOeval(truth, found, kind))
        return own, found.dataset, given_results

    compare(client)


def test_masks_of_the_real_data_set_class():
    """Data sets may be pycocotools' own, as where only the evaluation was replaced."""
    kind, data = DATA["masks with boxes"]

    def client(api):
        return shown(run(api.COCOeval(*load(BOTH[0], *data), kind)))

    compare(client)


def test_a_data_set_that_makes_masks_of_its_own():
    _, data = DATA["masks with boxes"]

    def client(api):
        class Full(api.COCO):
            def annToRLE(self, ann):
                image = self.imgs[ann["image_id"]]
                return api.mask.encode(np.ones((image["height"], image["width"]), np.uint8, order="F"))

        truth = Full()
        truth.dataset = copy.deepcopy(data[0])
        truth.createIndex()
        return shown(run(api.COCOeval(truth, truth.loadRes(copy.deepcopy(data[1])), "segm")))

    compare(client)


def test_poses_after_boxes_and_masks_after_boxes():
    """One object of results serves several evaluations, before and after its records were looked at."""
    for name, kinds in (("masks with boxes", ("bbox", "segm", "bbox")), ("poses with boxes", ("keypoints", "bbox"))):
        _, data = DATA[name]

        def client(api, kinds=kinds, data=data):
            truth, found = load(api, *data)
            return [shown(run(api.COCOeval(truth, found, kind)), inside=inside) for inside in (0, 1) for kind in kinds]

        compare(client)


# --------------------------------------------------------------------------------------------------------- odd records


SQUARE = made.compressed(np.pad(np.ones((5, 5), bool), ((1, 4), (1, 4))))


def small(kind, gt=(), dt=(), image=()):
    """Two objects and three detections; `gt` and `dt` change fields of the first (... leaves one out)."""
    square = [[1, 1, 6, 1, 6, 6, 1, 6]]
    pose = [v for k in range(17) for v in (k, 2 * k, 2)]
    shape = {"segmentation": square} if kind == "segm" else {"keypoints": pose, "num_keypoints": 17}
    found = {"segmentation": SQUARE} if kind == "segm" else {"keypoints": pose}
    one = {"image_id": 1, "category_id": 1}
    gts = [{"id": i, **one, "bbox": [1, 1, 5, 5], "area": 25.0, "iscrowd": 0, **shape} for i in (1, 2)]
    dts = [{**one, **found, "score": score} for score in (0.9, 0.8, 0.7)]
    for record, fields in ((gts[0], gt), (dts[1], dt)):
        record.update(fields)
    images = [{"id": 1, "height": 10, "width": 10, **dict(image)}]
    dataset = {"images": images, "categories": [{"id": 1, "name": "a"}], "annotations": gts}
    for record in (*gts, *dts, *images):
        for key in [key for key, value in record.items() if value is ...]:
            del record[key]
    return dataset, dts


EMPTY = {"size": [10, 10], "counts": ""}
ODD = {
    "no mask in the ground truth": ("segm", {"gt": {"segmentation": ...}}),
    "an empty list": ("segm", {"gt": {"segmentation": []}}),
    "a list of an empty list": ("segm", {"gt": {"segmentation": [[]]}}),
    "a polygon of four numbers": ("segm", {"gt": {"segmentation": [[1, 1, 5, 5]]}}),
    "a polygon of five numbers": ("segm", {"gt": {"segmentation": [[1, 1, 5, 5, 1]]}}),
    "a later polygon of four": ("segm", {"gt": {"segmentation": [[1, 1, 5, 5, 1, 5], [2, 2, 3, 3]]}}),
    "an odd number at the end": ("segm", {"gt": {"segmentation": [[1, 1, 5, 5, 1, 5, 2]]}}),
    "points as pairs": ("segm", {"gt": {"segmentation": [[[1, 1], [5, 5], [1, 5], [2, 2], [3, 3], [4, 1]]]}}),
    "numbers as words": ("segm", {"gt": {"segmentation": [["1", "1", "5", "5", "1", "5"]]}}),
    "words": ("segm", {"gt": {"segmentation": [["a", "1", "5", "5", "1", "5"]]}}),
    "an array of polygons": ("segm", {"gt": {"segmentation": [np.array([1, 1, 5, 5, 1, 5])]}}),
    "counts as a list": ("segm", {"gt": {"segmentation": {"size": [10, 10], "counts": [10, 30, 60]}}}),
    "fractions as counts": ("segm", {"gt": {"segmentation": {"size": [10, 10], "counts": [10.0, 30.0, 60.0]}}}),
    "another size": ("segm", {"gt": {"segmentation": {"size": [5, 20], "counts": [10, 30, 60]}}}),
    "no runs": ("segm", {"gt": {"segmentation": EMPTY}}),
    "no runs in a result": ("segm", {"dt": {"segmentation": EMPTY}}),
    "no counts": ("segm", {"gt": {"segmentation": {"size": [10, 10]}}}),
    "no size": ("segm", {"gt": {"segmentation": {"counts": "52203"}}}),
    "a word for a mask": ("segm", {"gt": {"segmentation": "mask"}}),
    "polygons in a result": ("segm", {"dt": {"segmentation": [[1, 1, 5, 5, 1, 5]]}}),
    "a list of counts in a result": ("segm", {"dt": {"segmentation": {"size": [10, 10], "counts": [10, 30, 60]}}}),
    "no mask in a result": ("segm", {"dt": {"segmentation": ...}}),
    "a later result with a box": ("segm", {"dt": {"bbox": [1, 1, 50, 50]}}),
    "bytes": ("segm", {"dt": {"segmentation": {"size": [10, 10], "counts": SQUARE["counts"].encode()}}}),
    "no height": ("segm", {"image": {"height": ...}}),
    "a height of zero": ("segm", {"image": {"height": 0}}),
    "no area": ("segm", {"gt": {"area": ...}}),
    "no iscrowd": ("segm", {"gt": {"iscrowd": ...}}),
    "iscrowd 2": ("segm", {"gt": {"iscrowd": 2}}),
    "id 0": ("segm", {"gt": {"id": 0}}),
    "a score that is none": ("segm", {"dt": {"score": np.nan}}),
    "an unsigned score": ("segm", {"dt": {"score": np.uint8(3)}}),
    "no num_keypoints": ("keypoints", {"gt": {"num_keypoints": ...}}),
    "num_keypoints 0": ("keypoints", {"gt": {"num_keypoints": 0}}),
    "num_keypoints none": ("keypoints", {"gt": {"num_keypoints": None}}),
    "no keypoints": ("keypoints", {"gt": {"keypoints": ...}}),
    "fewer keypoints": ("keypoints", {"gt": {"keypoints": [1, 2, 2] * 16}}),
    "fewer keypoints in a result": ("keypoints", {"dt": {"keypoints": [1, 2, 2] * 16}}),
    "no keypoints in a result": ("keypoints", {"dt": {"keypoints": ...}}),
    "keypoints as words": ("keypoints", {"dt": {"keypoints": ["a"] * 51}}),
    "keypoints as an array": ("keypoints", {"dt": {"keypoints": np.arange(51.0)}}),
    "keypoints in single precision": ("keypoints", {"dt": {"keypoints": np.arange(51, dtype=np.float32) / 3}}),
    "huge keypoints": ("keypoints", {"dt": {"keypoints": [2**40 + k for k in range(51)]}}),
    "nan keypoints": ("keypoints", {"dt": {"keypoints": [np.nan] * 51}}),
    "none visible": ("keypoints", {"gt": {"keypoints": [1, 2, 0] * 17}}),
    "no box": ("keypoints", {"gt": {"bbox": ...}}),
    "a box of three": ("keypoints", {"gt": {"bbox": [1, 2, 3]}}),
    "area 0": ("keypoints", {"gt": {"area": 0}}),
    "a negative area": ("keypoints", {"gt": {"area": -3.0}}),
    "an area that is none": ("keypoints", {"gt": {"area": np.nan}}),
    "a crowd": ("keypoints", {"gt": {"iscrowd": 1}}),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_odd_records(name):
    kind, changed = ODD[name]
    data = small(kind, **changed)
    results = [outcome(lambda api: shown(run(api.COCOeval(*load(api, *data), kind))), api) for api in BOTH]
    (expected, expected_text), (value, text) = results
    if isinstance(expected, type) and not isinstance(value, type):
        raise AssertionError(f"pycocotools raises {expected.__name__}")
    assert_same(value, expected)
    assert isinstance(expected, type) or text == expected_text  # results are looked at later than by pycocotools


@pytest.mark.parametrize(
    "sigmas",
    [
        [0.1] * 17,
        np.full(16, 0.1),
        np.full(17, 0.1, np.float32),
        np.zeros(17),
        np.full((1, 17), 0.1),
        None,
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_odd_sigmas(sigmas):
    compare(lambda api: evaluated(api, small("keypoints"), "keypoints", {"kpt_oks_sigmas": sigmas}))


# ----------------------------------------------------------------------------------------------------------- real data

REAL_SETS = {
    "segm_val2014_100": (
        "segm", "coco/instances_val2014_100.json", "coco/instances_val2014_fakesegm100_results.json",
    ),
    "segm_mini": ("segm", "coco/instances_val2017_COCO-MINI.json", "segm_mini/synthetic_segm_results.json"),
    "keypoints_mini": (
        "keypoints",
        "keypoints_mini/person_keypoints_val2017_COCO-MINI.json",
        "keypoints_mini/synthetic_keypoints_results.json",
    ),
    "keypoints_fce": ("keypoints", "keypoints_fce/gt_dataset.json", "keypoints_fce/dt_dataset.json"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.compiled
@needs_real_data
@pytest.mark.parametrize("name", REAL_SETS)
@pytest.mark.parametrize("use_categories", [1, 0])
def test_real_data(name, use_categories):
    kind, truth, results = REAL_SETS[name]
    workload = [json.loads((REAL_DATA / path).read_text()) for path in (truth, results)]
    value = compare(lambda api: evaluated(api, workload, kind, {"useCats": use_categories}))
    if use_categories:
        expected = json.loads((REAL_DATA / name / "expected.json").read_text())
        assert list(value["stats"]) == expected["segm" if kind == "segm" else "default"]["stats"]
