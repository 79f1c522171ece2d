"""`detmap.lvis` against a naive twin, the published numbers, and lvis-api itself where it is installed."""

from __future__ import annotations

import copy
import hashlib
import json
import sys
import types

import lvis_scenes
import naive_lvis
import numpy as np
import pytest
from support import examples, same_bits
from workloads import REAL_DATA

from detmap.lvis import LVIS, LVISEval, LVISResults


def data_set(document, tmp_path):
    (tmp_path / "truth.json").write_text(json.dumps(document))
    return LVIS(str(tmp_path / "truth.json"))


def original(monkeypatch):
    """The package, whose release says `numpy.float`; its drawing of pictures is left aside."""
    monkeypatch.setattr(np, "float", float, raising=False)
    for name in ("cv2", "lvis.vis"):
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(LVISVis=None))
    return pytest.importorskip("lvis")


@pytest.mark.parametrize("kind", [{}, {"strings": True}, {"crowded": 0, "categories": 12}])
@pytest.mark.parametrize("seed", range(examples(10)))
def test_every_bit_and_every_name(seed, kind, tmp_path):
    document, results = lvis_scenes.scene(seed, **kind)
    document["annotations"][0]["id"] = 0
    made = LVISEval(data_set(document, tmp_path), copy.deepcopy(results), "bbox")
    made.run()
    precision, recall, numbers, _ = naive_lvis.evaluate(document, results, missed=(0,))
    assert same_bits(made.eval["precision"], precision)
    assert same_bits(made.eval["recall"], recall)
    assert list(made.get_results().items()) == list(numbers.items())


@pytest.mark.parametrize("seed", range(examples(5)))
def test_caps_of_categories_and_fixed_ap(seed, tmp_path):
    document, results = lvis_scenes.scene(seed)
    truth = data_set(document, tmp_path)
    found = LVISResults(truth, copy.deepcopy(results), max_dets=-1, max_dets_per_cat=9)
    made = LVISEval(truth, found, "bbox")
    made.params.max_dets, made.params.max_dets_per_cat = -1, 9
    made.run()
    precision, _, numbers, _ = naive_lvis.evaluate(document, results, per_image=None, per_category=9)
    assert same_bits(made.eval["precision"], precision)
    assert list(made.results.values()) == list(numbers.values())
    assert list(made.results)[-4:] == ["AR@9/cat", "ARs@9/cat", "ARm@9/cat", "ARl@9/cat"]
    both = LVISResults(truth, copy.deepcopy(results), max_dets_per_im=20, max_dets_per_cat=5)
    assert max(len(both.img_ann_map[one]) for one in both.imgs) <= 20
    assert max(map(len, both.cat_img_map.values())) <= 5


@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated")
@pytest.mark.parametrize("kind", [{}, {"strings": True}, {"categories": 3, "crowded": 2}])
@pytest.mark.parametrize("seed", range(examples(5)))
def test_what_is_inside_is_what_lvis_api_has(seed, kind, tmp_path, monkeypatch):
    """Also for some of the images, categories in another order, and other thresholds and areas."""
    lvis = original(monkeypatch)
    document, results = lvis_scenes.scene(seed, **kind)
    ours = LVISEval(data_set(document, tmp_path), copy.deepcopy(results), "bbox")
    truth = lvis.LVIS(str(tmp_path / "truth.json"))
    theirs = lvis.LVISEval(truth, lvis.LVISResults(truth, copy.deepcopy(results)), "bbox")
    for one in (ours, theirs):
        if seed % 2:
            one.params.img_ids = one.params.img_ids[1:]
            one.params.cat_ids = one.params.cat_ids[::-1] + one.params.cat_ids[:1]
            one.params.iou_thrs = np.array([0.5, 0.75])
            one.params.area_rng = [[0, 1e10], [0, 900], [900, 1e4], [5e3, 1e10]]
        one.run()
    assert same_bits(ours.eval["precision"], theirs.eval["precision"])
    assert same_bits(ours.eval["recall"], theirs.eval["recall"])
    assert ours.eval["counts"] == theirs.eval["counts"]
    assert ours.results == theirs.results
    assert ours.freq_groups == theirs.freq_groups
    pointers = theirs.eval["dt_pointers"]
    assert list(ours.eval["dt_pointers"]) == list(pointers)
    for k, by_area in pointers.items():
        for a, expected in by_area.items():
            made = ours.eval["dt_pointers"][k][a]
            assert made.keys() == expected.keys()
            assert all(np.array_equal(made[name], expected[name]) for name in made)
    assert len(ours.eval_imgs) == len(theirs.eval_imgs)
    for made, expected in zip(ours.eval_imgs, theirs.eval_imgs, strict=True):
        assert (made is None) == (expected is None)
        for name, value in (expected or {}).items():
            assert np.array_equal(made[name], value), name
    image, category = document["annotations"][0]["image_id"], document["annotations"][0]["category_id"]
    if image in ours.params.img_ids:
        assert np.array_equal(ours.compute_iou(image, category), theirs.ious[image, category])


def test_the_printed_summary(tmp_path, capsys):
    document, results = lvis_scenes.scene(0)
    made = LVISEval(data_set(document, tmp_path), results, "bbox")
    with pytest.raises(RuntimeError, match="accumulate"):
        made.summarize()
    made.run()
    made.print_results()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 13
    shown = made.results["AP"], made.results["APr"], made.results["ARs@300"]
    assert lines[0] == (
        f" Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=300 catIds=all] = {shown[0]:0.3f}"
    )
    assert lines[6].endswith(f"area=   all | maxDets=300 catIds=  r] = {shown[1]:0.3f}")
    assert lines[10].startswith(" Average Recall     (AR) @[ IoU=0.50:0.95 | area=     s | maxDets=300 catIds=all]")


@pytest.mark.parametrize("iou_type", ["segm", "bbox"])
def test_a_hundred_real_images(iou_type):
    folder = REAL_DATA / "lvis_val_100"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    expected = json.loads((folder / "expected.json").read_text())[iou_type]
    made = LVISEval(str(folder / "lvis_val_100.json"), str(folder / "synthetic_segm_results.json"), iou_type)
    made.run()
    assert made.results == expected["results"]
    assert list(made.results) == list(expected["results"])
    for name in ("precision", "recall"):
        whole = np.ascontiguousarray(made.eval[name]).tobytes()
        assert hashlib.sha256(whole).hexdigest() == expected[f"{name}_sha256"]


def test_boundaries_as_in_the_challenge():
    folder = REAL_DATA / "lvis_val_100"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    files = str(folder / "lvis_val_100.json"), str(folder / "synthetic_segm_results.json")
    made = LVISEval(*files, mode="challenge2021")
    made.run()
    segm = LVISEval(*files)
    segm.run()
    assert list(made.results)[9] == "AR@10000/cat"
    assert 0 < made.results["AP"] < segm.results["AP"]
    with pytest.raises(AssertionError, match="max_dets_per_cat=10000"):
        LVISEval(files[0], LVISResults(*files), mode="challenge2021")


def test_lists_without_which_lvis_api_does_nothing(tmp_path):
    for section, field in (
        ("images", "neg_category_ids"),
        ("images", "not_exhaustive_category_ids"),
        ("categories", "frequency"),
    ):
        document, results = lvis_scenes.scene(0)
        del document[section][0][field]
        made = LVISEval(data_set(document, tmp_path), results, "bbox")
        with pytest.raises(KeyError, match=field):
            made.evaluate()


def test_what_is_refused(tmp_path):
    document, results = lvis_scenes.scene(0)
    truth = data_set(document, tmp_path)
    with pytest.raises(IndexError):
        LVISResults(truth, [])
    with pytest.raises(AssertionError, match="1 images that the data set does not have"):
        LVISResults(truth, [{**results[0], "image_id": 99}])
    with pytest.raises(AssertionError, match="list of records"):
        LVISResults(truth, {"annotations": results})
    with pytest.raises(ValueError, match="iou_type"):
        LVISEval(truth, results, "keypoints")
    with pytest.raises(ValueError, match="mode"):
        LVISEval(truth, results, "bbox", mode="challenge2020")
    for given in (3, None):
        with pytest.raises(TypeError, match="lvis_gt"):
            LVISEval(given, results)
        with pytest.raises(TypeError, match="lvis_dt"):
            LVISEval(truth, given)
        with pytest.raises(TypeError, match="lvis_gt"):
            LVISResults(given, results)


def test_ids_that_are_floats_and_no_categories(tmp_path):
    """lvis-api looks ids up in dicts, where 2.0 is 2."""
    document, results = lvis_scenes.scene(3)
    precision, _, numbers, _ = naive_lvis.evaluate(document, copy.deepcopy(results))
    for one in (*document["annotations"], *results):
        one["category_id"] = float(one["category_id"])
    for one in document["images"]:
        one["neg_category_ids"] = [*map(float, one["neg_category_ids"])]
    made = LVISEval(data_set(document, tmp_path), copy.deepcopy(results), "bbox")
    made.run()
    assert same_bits(made.eval["precision"], precision)
    assert made.results == numbers
    none = LVISEval(data_set({**document, "categories": []}, tmp_path), results, "bbox")
    none.run()
    assert none.eval["precision"].shape == (10, 101, 0, 4)
    assert {*none.results.values()} == {-1}


def test_a_data_set(tmp_path):
    document, results = lvis_scenes.scene(2)
    truth = data_set(document, tmp_path)
    found = LVISResults(truth, results)
    assert truth.get_img_ids() == [one["id"] for one in document["images"]]
    assert truth.get_cat_ids() == [one["id"] for one in document["categories"]]
    assert len(truth.get_ann_ids()) == len(document["annotations"])
    image = document["images"][0]["id"]
    own = [one["id"] for one in document["annotations"] if one["image_id"] == image]
    assert truth.get_ann_ids(img_ids=[image]) == own
    assert len(truth.get_ann_ids(cat_ids=truth.get_cat_ids())) == sum(
        one["area"] > 0 for one in document["annotations"]
    )
    assert truth.load_imgs([image]) == [document["images"][0]]
    assert truth.load_cats(None) == document["categories"]
    assert len(truth.load_anns()) == len(document["annotations"])
    assert all(one["score"] > 0.5 for one in found.get_top_results(1, 0.5))
    assert [one["id"] for one in found.load_anns()] == list(range(1, len(found.anns) + 1))
    ann = {"image_id": image, "segmentation": [[0, 0, 0, 10, 10, 10, 10, 0]]}
    assert truth.ann_to_mask(ann).sum() == 100
    assert truth.ann_to_rle({**ann, "segmentation": {"size": [400, 400], "counts": [160000]}})["size"] == [400, 400]


def test_without_classes_all_are_one(tmp_path):
    """As in lvis-api's repository; its summary fails there, where groups of classes are."""
    document, results = lvis_scenes.scene(1, crowded=0)
    made = LVISEval(data_set(document, tmp_path), results, "bbox")
    made.params.use_cats = 0
    made.evaluate()
    made.accumulate()
    assert made.eval["precision"].shape == (10, 101, 1, 4)
    assert made.eval["precision"].max() > 0
