"""What the stand-in for faster_coco_eval does where the original differs from pycocotools."""

from __future__ import annotations

import copy
import math

import pytest

from detmap.errors import InputError
from detmap.pycocotools import faster

NAN = math.nan


def evaluated(api, scores, *, kind="bbox", options=(), params=(), **fields):
    """Evaluate one object and detections of these scores; `fields` replace those of the last detection."""
    box = {"bbox": [0.0, 0.0, 9.0, 9.0]} if kind == "bbox" else {"segmentation": [[0, 0, 9, 0, 9, 9, 0, 9]]}
    truth = {
        "images": [{"id": i, "width": 20, "height": 20} for i in (1, 2)],
        "categories": [{"id": k, "name": f"class {k}"} for k in (1, 2)],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "area": 81.0, "iscrowd": 0, **box}],
    }
    if kind == "segm":
        from pycocotools import mask

        [run_lengths] = mask.frPyObjects(box["segmentation"], 20, 20)
        box = {"segmentation": run_lengths}
    found = [{"image_id": 1, "category_id": 1, "score": score, **box} for score in scores]
    found[-1].update(fields)
    annotations = api.COCO(truth, print_function=lambda text: None)
    evaluation = api.COCOeval_faster(
        annotations, annotations.loadRes(copy.deepcopy(found)), kind, print_function=lambda text: None, **dict(options)
    )
    vars(evaluation.params).update(dict(params))
    evaluation.run()
    return list(evaluation.stats)


NOT_NUMBERS = {
    "alone": {"scores": [NAN]},
    "last": {"scores": [0.9, NAN]},
    "first": {"scores": [NAN, 0.9, 0.8]},
    "of a class without objects": {"scores": [0.9, NAN], "category_id": 2},
    "on an image without objects": {"scores": [0.9, NAN], "image_id": 2},
    "beyond the cap": {"scores": [0.9, 0.8, NAN], "params": {"maxDets": [1, 1, 1]}},
    "without classes": {"scores": [0.9, NAN], "category_id": 2, "params": {"useCats": 0}},
    "in two steps": {"scores": [0.9, NAN], "options": {"separate_eval": True}},
    "of a mask": {"scores": [0.9, NAN], "kind": "segm"},
}


@pytest.mark.parametrize("case", NOT_NUMBERS)
def test_a_score_that_is_no_number_is_refused_as_in_the_original(case):
    """The stand-in took pycocotools' answer, AP 1.0 where the only detection has no score."""
    theirs = pytest.importorskip("faster_coco_eval")
    with pytest.raises(ValueError, match="must not be NaN"):
        evaluated(theirs, **NOT_NUMBERS[case])
    with pytest.raises(InputError, match=r"id \d on image \d, field 'score': Detection scores must not be NaN"):
        evaluated(faster, **NOT_NUMBERS[case])


@pytest.mark.parametrize(
    "case", [{"image_id": 2, "params": {"imgIds": [1]}}, {"category_id": 2, "params": {"catIds": [1]}}]
)
def test_a_score_that_nobody_looks_at_does_not_matter(case):
    theirs = pytest.importorskip("faster_coco_eval")
    found, expected = (evaluated(api, [0.9, NAN], **case) for api in (faster, theirs))
    assert found == pytest.approx(expected, rel=1e-13)


def test_nothing_can_be_made_of_what_was_refused():
    truth = {
        "images": [{"id": 1, "width": 9, "height": 9}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "area": 4.0, "iscrowd": 0, "bbox": [0, 0, 2, 2]}],
    }
    annotations = faster.COCO(truth)
    results = annotations.loadRes([{"image_id": 1, "category_id": 1, "score": NAN, "bbox": [0, 0, 2, 2]}])
    evaluation = faster.COCOeval_faster(annotations, results, "bbox")
    with pytest.raises(InputError):
        evaluation.evaluate()
    with pytest.raises(Exception, match="Please run"):
        evaluation.summarize()
