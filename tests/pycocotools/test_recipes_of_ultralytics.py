"""How Ultralytics and training loops call faster_coco_eval, with the stand-in in its place."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from dropin import REAL, assert_same, load
from dropin_workloads import DATA


def validated(api, truth, results, *, iouType="bbox", params=None, **options):
    """Evaluate as Ultralytics' validator does; return the evaluation and what it said last."""
    said = []
    annotations = api.COCO(truth, print_function=said.append)
    evaluation = api.COCOeval_faster(
        annotations, annotations.loadRes(results), iouType=iouType, print_function=said.append, **options
    )
    vars(evaluation.params).update(params or {})
    evaluation.run()
    return evaluation, [line for line in said if "@[" in line]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"params": {"maxDets": [1, 10, 500]}},
        {"params": {"imgIds": [image["id"] for image in DATA[0]["images"]][::2]}},
        {"params": {"maxDets": [7], "iouThrs": np.array([0.5, 0.6])}},
        {"ranges": {"tiny": [0, 400.0], "rest": [400.0, 1e10]}},
        {"iouType": "segm"},
        {"iouType": "keypoints"},
        {"iouType": "keypoints", "kpt_oks_sigmas": [0.1] * 17},
    ],
    ids=str,
)
@pytest.mark.parametrize("from_files", [False, True])
def test_the_stand_in_for_faster_coco_eval(tmp_path, how, from_files, capsys):
    from dropin_workloads import with_keypoints, with_masks

    from detmap.pycocotools import faster

    theirs = pytest.importorskip("faster_coco_eval")
    data = {"segm": with_masks, "keypoints": with_keypoints}.get(how.get("iouType", "bbox"), lambda: DATA)()
    written = [
        json.dumps(content, default=bytes.decode) for content in data
    ]  # run lengths are bytes, and text in files
    if from_files:
        data = [tmp_path / "truth.json", tmp_path / "results.json"]
        for path, text in zip(data, written, strict=True):
            path.write_text(text)
    else:
        data = [json.loads(text) for text in written]
    expected, lines = validated(theirs, *copy.deepcopy(data), **how)
    found, own_lines = validated(faster, *copy.deepcopy(data), **how)
    assert own_lines == lines
    assert set(found.stats_as_dict) == set(expected.stats_as_dict)
    # Its precision lacks the reference's tiny addend, and its means are taken in another order.
    assert found.stats_as_dict == pytest.approx(expected.stats_as_dict, rel=1e-13)
    assert list(found.stats_as_dict) == list(expected.stats_as_dict)
    assert len(found.stats) == len(expected.stats)
    assert capsys.readouterr().out == ""
    reference = REAL.COCOeval(*load(REAL, *(json.loads(text) for text in written)), how.get("iouType", "bbox"))
    vars(reference.params).update(copy.deepcopy(vars(found.params)))
    reference.evaluate()
    reference.accumulate()
    for name in ("precision", "recall", "scores"):
        assert_same(found.eval[name], reference.eval[name])


def test_the_stand_in_takes_no_results_and_few():
    from detmap.pycocotools import faster

    truth, results = copy.deepcopy(DATA)
    evaluation, lines = validated(faster, truth, [])
    assert len(lines) == 14
    assert evaluation.stats_as_dict["AP_all"] == 0
    annotations = faster.COCO(truth, use_deepcopy=True)
    best = annotations.loadRes(results, min_score=0.5)
    assert [a["score"] for a in best.dataset["annotations"]] == [r["score"] for r in results if r["score"] >= 0.5]
    assert results == DATA[1]
    assert annotations.loadRes(results, min_score=2.0).dataset["annotations"] == []


def test_the_stand_in_leaves_boxes_as_they_are():
    """It is as fast as the drop-in: nothing is made of the results that nobody looks at."""
    from detmap.pycocotools import faster

    truth, results = copy.deepcopy(DATA)
    validated(faster, truth, results)
    assert results == DATA[1]


def test_the_stand_in_refuses_what_it_lacks():
    from detmap.pycocotools import faster

    annotations = faster.COCO(copy.deepcopy(DATA[0]))
    with pytest.raises(TypeError, match="unexpected keyword argument 'lvis'"):
        faster.COCOeval_faster(annotations, iouType="bbox", lvis=True)
    evaluation = faster.COCOeval_faster(annotations, annotations.loadRes([]), "bbox", rle_iou_max_workers=2)
    for early in (evaluation.summarize, lambda: evaluation.stats_as_dict):
        with pytest.raises(Exception, match=r"Please run \w+\(\) first"):
            early()


def custom(truth, results):
    """A data set as tools for labelling write it: without areas and crowds, with image ids that are strings of digits."""
    for image in truth["images"]:
        image["id"] = str(image["id"])
    for annotation in truth["annotations"]:
        annotation["image_id"] = str(annotation["image_id"])
        del annotation["area"], annotation["iscrowd"]
    return truth, results


def test_the_stand_in_on_a_custom_data_set():
    from detmap.pycocotools import faster

    theirs = pytest.importorskip("faster_coco_eval")
    expected, lines = validated(theirs, *custom(*copy.deepcopy(DATA)))
    found, own_lines = validated(faster, *custom(*copy.deepcopy(DATA)))
    assert own_lines == lines
    assert found.stats_as_dict == pytest.approx(expected.stats_as_dict, rel=1e-13)


def test_the_stand_in_by_its_other_names():
    from detmap.pycocotools import faster

    theirs = pytest.importorskip("faster_coco_eval")
    ours, real = (api.COCO(copy.deepcopy(DATA[0])) for api in (faster, theirs))
    image, category = DATA[0]["images"][0]["id"], DATA[0]["categories"][1]["id"]
    for name, arguments in {
        "get_ann_ids": (
            [None],
            [image],
            [[image]],
            [None, [category]],
            [None, None, [0, 1000]],
            [None, None, None, True],
        ),
        "get_cat_ids": ([None], [None, None, category]),
        "get_img_ids": ([None], [np.int64(image)], [None, category]),
        "load_anns": ([None], [DATA[0]["annotations"][0]["id"]]),
        "load_cats": ([None], [np.int64(category)], [[category]]),
        "load_imgs": ([None], [np.int64(image)], [[image]]),
    }.items():
        for given in arguments:
            assert sorted(map(str, getattr(ours, name)(*given))) == sorted(map(str, getattr(real, name)(*given)))
    assert {i: anns for i, anns in ours.img_ann_map.items() if anns} == dict(
        theirs.COCO(copy.deepcopy(DATA[0])).img_ann_map
    )
    assert ours.cat_img_map == real.cat_img_map
    evaluation = faster.COCOeval_faster(ours, ours.loadRes(copy.deepcopy(DATA[1])), "bbox")
    evaluation.evaluate()
    assert str(evaluation) == repr(evaluation)  # sums up what was not accumulated
    assert evaluation.stats[0] > 0


def in_batches(api):
    """Evaluate image by image as training loops do (D-FINE, DEIM): what was matched is taken out, joined and put back."""
    truth, results = copy.deepcopy(DATA)
    annotations = api.COCO(truth)
    ids, parts = [image["id"] for image in truth["images"]], []
    evaluation = api.COCOeval_faster(annotations, iouType="bbox", print_function=lambda _: None, separate_eval=True)
    p = evaluation.params
    areas, categories = len(p.areaRng), len(p.catIds)
    for image in ids:
        own = [r for r in results if r["image_id"] == image]
        evaluation.cocoDt = annotations.loadRes(own) if own else api.COCO()
        evaluation.params.imgIds = [image]
        evaluation.evaluate()
        parts.append(np.asarray(evaluation._evalImgs_cpp, object).reshape(categories, areas, 1))
    order = np.argsort(ids)
    evaluation._evalImgs_cpp = np.concatenate(parts, 2)[..., order].ravel().tolist()
    evaluation.params.imgIds = np.array(ids)[order].tolist()
    evaluation._paramsEval = copy.deepcopy(evaluation.params)
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats_as_dict


def test_the_stand_in_in_batches():
    from detmap.pycocotools import faster

    theirs = pytest.importorskip("faster_coco_eval")
    found = in_batches(faster)
    assert found == pytest.approx(in_batches(theirs), rel=1e-13)
    assert found == validated(faster, *copy.deepcopy(DATA))[0].stats_as_dict
