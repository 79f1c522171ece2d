"""What the stand-in for faster_coco_eval does where the original differs from pycocotools."""

from __future__ import annotations

import copy
import math

import lvis_scenes
import numpy as np
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


@pytest.mark.parametrize("caps", [[300], [1, 10, 100], [1, 5, 20, 300]])
@pytest.mark.parametrize("seed", range(5))
def test_lvis_style_is_the_original_s(seed, caps):
    """COCO's rules with LVIS's two lists: the arrays, the printed lines, and from evalImgs too."""
    theirs = pytest.importorskip("faster_coco_eval")
    document, results = lvis_scenes.scene(seed, crowded=0, fields=1.0)
    for one in document["annotations"]:
        one.setdefault("iscrowd", 0)
    for image in document["images"][:2]:
        del image["neg_category_ids"]

    def run(api, inside=False):
        said = []
        truth = api.COCO(copy.deepcopy(document), print_function=lambda text: None)
        found = truth.loadRes(copy.deepcopy(results))
        made = api.COCOeval_faster(truth, found, "bbox", lvis_style=True, print_function=said.append)
        made.params.maxDets = caps
        made.evaluate()
        if inside:
            assert made.evalImgs  # which is made image by image
        made.accumulate()
        made.summarize()
        return made, [line for line in said if "IoU=" in line]

    expected, lines = run(theirs)
    for inside in (False, True):
        made, said = run(faster, inside)
        for name in ("precision", "recall"):
            # The original rounds the sum of true and false positives once more.
            assert np.allclose(made.eval[name], expected.eval[name], rtol=1e-12, atol=0)
        assert sorted(said) == sorted(lines)  # the original says AP of groups in between
        assert made.stats_as_dict == pytest.approx(expected.stats_as_dict, rel=1e-12)
        assert list(made.stats) == pytest.approx(list(expected.stats), rel=1e-12)
        assert list(made.all_stats) == pytest.approx(list(expected.all_stats), rel=1e-12)
        assert made.freq_groups == expected.freq_groups


def test_lvis_style_is_not_of_keypoints():
    assert not faster.COCOeval_faster(iouType="keypoints", lvis_style=True).lvis_style
    truth = faster.COCO({"images": [], "annotations": [], "categories": [{"id": 1}]}, print_function=str)
    evaluation = faster.COCOeval_faster(truth, lvis_style=True)
    with pytest.raises(KeyError, match="frequency"):
        _ = evaluation.freq_groups
