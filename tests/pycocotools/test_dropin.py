"""The drop-in against pycocotools: everything either shows on made-up data, and what either refuses."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pytest
from dropin import BOTH, OURS, REAL, assert_same, compare, load, outcome, set_params, shown
from dropin_workloads import PLAIN, QUIRKS, QUIRKY, evaluated, run, whole, with_keypoints, with_masks
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples
from workloads import coco_workloads, tiny_coco_workloads

from detmap.kernels import assignment

# ----------------------------------------------------------------------------------------------------- equality of all


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("workload", "kind", "waits"),
    [(lambda: PLAIN, "bbox", True), (with_masks, "segm", True), (with_keypoints, "keypoints", True),
     (with_masks, "bbox", False), (with_keypoints, "bbox", False), (with_keypoints, "segm", False),
     (with_masks, "keypoints", False)],
)  # fmt: skip
def test_results_wait_where_their_kind_is_evaluated(workload, kind, waits):
    """The fields that `loadRes` derives are computed where another kind of shape reads them, and then alone."""
    data = workload()
    compare(lambda api: shown(run(api.COCOeval(*load(api, *data), kind))))
    truth, found = load(OURS, *data)
    outcome(lambda api: run(api.COCOeval(truth, found, kind)), OURS)
    assert ("anns" not in vars(found)) is waits


def several_kinds():
    """Masks, and poses that reach far beyond them and nearly agree."""
    dataset, results = with_masks()
    rng = np.random.default_rng(3)
    pose = np.concatenate([[[0, 0], [140, 140]], rng.uniform(0, 140, (15, 2))])
    for record in [*dataset["annotations"], *results]:
        points = pose + rng.uniform(0, 3, pose.shape)
        record |= {"keypoints": np.column_stack([points, np.full(17, 2)]).ravel().tolist(), "num_keypoints": 17}
    return dataset, results


@pytest.mark.parametrize("kind", ["segm", "keypoints"])
def test_of_results_with_masks_and_poses_the_areas_are_those_of_masks(kind):
    data = several_kinds()
    value = compare(lambda api: shown(run(api.COCOeval(*load(api, *data), kind))))
    assert value["stats"][0] > 0


def test_masks_that_poses_get_after_they_are_loaded_leave_their_areas():
    dataset, results = several_kinds()
    masks = [record.pop("segmentation") for record in results]

    def client(api):
        own, truth = copy.deepcopy(results), load(api, dataset)
        found = truth.loadRes(own)
        for record, mask in zip(own, masks, strict=True):
            record["segmentation"] = mask
        return shown(run(api.COCOeval(truth, found, "segm")))

    assert compare(client)["stats"][0] > 0


def test_masks_of_results_are_compressed():
    """pycocotools refuses others in `loadRes`; here what reads them does."""
    dataset, results = with_masks()
    results[-1]["segmentation"] = {"size": [150, 150], "counts": [0, 900, 150 * 150 - 900]}
    assert compare(lambda api: shown(run(api.COCOeval(*load(api, dataset, results), "segm"))), text=False) is TypeError


def test_odd_values_take_the_faithful_path():
    odd = copy.deepcopy(PLAIN)
    odd[0]["annotations"][0]["iscrowd"] = 2
    for data, expected in ((PLAIN, True), (QUIRKY, True), (odd, False)):
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
@pytest.mark.jit
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
