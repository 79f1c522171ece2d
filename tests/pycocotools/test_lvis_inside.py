"""What is inside of `detmap.lvis.LVISEval`: matches, pointers and overlaps against a naive twin, messages and odd calls."""

from __future__ import annotations

import copy
import json
import logging
import urllib.request

import lvis_scenes
import naive_lvis
import numpy as np
import pytest

from detmap.lvis import LVIS, LVISEval, LVISResults
from detmap.lvis.eval import Params

AREAS = [[0.0, 1e5**2], [0.0, 32**2], [32**2, 96**2], [96**2, 1e5**2]]
NARROW = [[0, 1e10], [0, 900], [900, 1e4], [5e3, 1e10]]


def data_set(document, tmp_path):
    (tmp_path / "truth.json").write_text(json.dumps(document))
    return LVIS(str(tmp_path / "truth.json"))


def assert_same(found, expected):
    """Of entries, or of pointers, all fields."""
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert np.array_equal(found[name], value), name


@pytest.mark.parametrize("kind", [{"strings": True}, {"categories": 2, "images": 1}, {"images": 4, "crowded": 1}])
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("use_cats", [1, 0])
def test_every_field_of_every_image(use_cats, some, kind, tmp_path):
    document, results = lvis_scenes.scene(len(kind), **{"crowded": 0, **kind})
    made = LVISEval(data_set(document, tmp_path), copy.deepcopy(results), "bbox")
    p = made.params
    if some:
        p.img_ids, p.cat_ids = p.img_ids[1:] or p.img_ids, p.cat_ids[::-1] + p.cat_ids[:use_cats]
        p.iou_thrs, p.area_rng = np.array([0.5, 0.75]), NARROW
    p.use_cats = use_cats
    assert made.eval_imgs == []
    del made.eval_imgs
    made.evaluate()
    made.accumulate()
    kept = naive_lvis.kept([{**one, "number": n} for n, one in enumerate(results)])
    records = [{**one, "id": n} for n, one in enumerate(kept, 1)]
    cells, pointers, overlaps = naive_lvis.inside(
        document, records, p.iou_thrs, NARROW if some else AREAS, sorted(p.img_ids), p.cat_ids, use_cats=bool(use_cats)
    )
    assert len(made.eval_imgs) == len(cells)
    for found, expected in zip(made.eval_imgs, cells, strict=True):
        assert_same(found, expected)
    found = made.eval["dt_pointers"]
    assert len(found) == len(pointers)
    assert list(found) == list(pointers)
    for k, by_area in pointers.items():
        assert found[k].keys() == by_area.keys()
        for a, expected in by_area.items():
            assert_same(found[k][a], expected)
    for k in (-1, len(pointers), "0"):
        with pytest.raises(KeyError):
            found[k]
    for (image, category), expected in overlaps.items():
        assert np.array_equal(made.compute_iou(image, category), expected)


def square(x, y, side):
    return {"bbox": [x, y, side, side], "segmentation": [[x, y, x, y + side, x + side, y + side, x + side, y]]}


def document(*objects):
    return {
        "images": [{"id": 1, "width": 40, "height": 30, "neg_category_ids": [], "not_exhaustive_category_ids": []}],
        "annotations": [
            {"id": n, "image_id": 1, "category_id": 1, "area": float(one["bbox"][2] ** 2), **one}
            for n, one in enumerate(objects, 1)
        ],
        "categories": [{"id": 1, "name": "one", "frequency": "f"}],
    }


@pytest.mark.parametrize("iou_type", ["bbox", "segm"])
def test_overlaps_of_masks_and_boxes(iou_type, tmp_path):
    """Of a square of 10 x 10 with one that lies half on it, and with one of its quarters."""
    truth = data_set(document(square(0, 0, 10), square(20, 0, 10)), tmp_path)
    records = [
        {"image_id": 1, "category_id": 1, "score": s, "bbox": b}
        for s, b in ((0.5, [0, 5, 10, 10]), (0.9, [20, 0, 5, 5]))
    ]
    made = LVISEval(truth, records, iou_type)
    made.evaluate()
    assert made.compute_iou(1, 1).tolist() == [[0.0, 0.25], [50 / 150, 0.0]]
    assert made.compute_iou(1, 2) == []
    made.accumulate()
    assert made.eval["dt_pointers"][0][0]["dt_ids"].tolist() == [2, 1]
    assert made.eval["params"] is made.params
    assert made.eval["counts"] == [10, 101, 1, 4]


def test_boundaries_and_their_dilation(tmp_path):
    """A boundary of 1 and of 2 pixels of a square of 10 x 10, of which a detection lacks the middle."""
    ring = square(0, 0, 10)
    middle = [4, 4, 4, 6, 6, 6, 6, 4]
    truth = data_set(document(ring), tmp_path)
    inner = {"size": [30, 40], "counts": truth.ann_to_rle({"image_id": 1, **ring})["counts"]}
    records = [{"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": inner}]
    assert int(truth.ann_to_mask({"image_id": 1, "segmentation": [middle]}).sum()) == 4
    for dilation in (0.02, 0.04):
        made = LVISEval(truth, copy.deepcopy(records), "boundary", dilation_ratio=dilation)
        made.run()
        assert made.dilation_ratio == dilation
        assert made._made.protocol.dilation == dilation
        assert made.compute_iou(1, 1).tolist() == [[1.0]]
        assert made.eval["recall"][:, 0, 0].tolist() == [1.0] * 10


def test_what_is_logged_where_a_step_is_missing(tmp_path, caplog):
    scene, results = lvis_scenes.scene(0, crowded=0)
    made = LVISEval(data_set(scene, tmp_path), results, "bbox")
    with caplog.at_level(logging.INFO):
        made.accumulate()
        assert made.get_results() == {}
        assert made.eval == {}
        with pytest.raises(AssertionError, match=r"^evaluate\(\) comes before compute_iou\(\)$"):
            made.compute_iou(1, 1)
        made.evaluate()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["Please run evaluate first.", "results is empty. Call run().", "Evaluate annotation type *bbox*"]
    made.accumulate()
    made.summarize()
    caplog.clear()
    assert made.get_results() is made.results
    assert not caplog.records


@pytest.mark.parametrize(
    ("image", "category", "text"), [(300, -1, "300"), (-1, 10, "10/cat"), (5, 10, "5/im,10/cat"), (0, 0, "0/im,0/cat")]
)
def test_the_names_of_caps(image, category, text, tmp_path, capsys):
    scene, results = lvis_scenes.scene(0, crowded=0)
    made = LVISEval(data_set(scene, tmp_path), results, "bbox")
    made.params.max_dets, made.params.max_dets_per_cat = image, category
    made.run()
    names = ["AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf"]
    names += [f"{name}@{text}" for name in ("AR", "ARs", "ARm", "ARl")]
    assert list(made.results) == names
    made.print_results()
    places = ["0.50:0.95 | area=   all", "0.50      | area=   all", "0.75      | area=   all"]
    places += [f"0.50:0.95 | area=     {area}" for area in "sml"] + ["0.50:0.95 | area=   all"] * 4
    places += [f"0.50:0.95 | area=     {area}" for area in "sml"]
    groups = ["all"] * 6 + ["  r", "  c", "  f"] + ["all"] * 4
    titles = ["Average Precision  (AP)"] * 9 + ["Average Recall     (AR)"] * 4
    assert capsys.readouterr().out.splitlines() == [
        f" {title} @[ IoU={place} | maxDets={text:>3s} catIds={group}] = {value:0.3f}"
        for title, place, group, value in zip(titles, places, groups, made.results.values(), strict=True)
    ]


def test_caps_of_results(tmp_path):
    truth = data_set(document(square(0, 0, 10)), tmp_path)
    scores = [0.3, 0.9, 0.5, 0.9]
    records = [{"image_id": 1, "category_id": 1, "score": s, "bbox": [n, 0, 4, 2]} for n, s in enumerate(scores)]

    def left(**caps):
        found = LVISResults(truth, copy.deepcopy(records), **caps)
        assert [one["id"] for one in found.dataset["annotations"]] == list(range(1, len(found.anns) + 1))
        return [one["bbox"][0] for one in found.dataset["annotations"]], found.max_dets_per_im, found.max_dets_per_cat

    assert left() == ([0, 1, 2, 3], 300, -1)
    assert left(max_dets=4) == ([0, 1, 2, 3], 4, -1)
    assert left(max_dets=3) == ([1, 3, 2], 3, -1)
    assert left(max_dets=3, max_dets_per_im=1) == ([1], 1, -1)
    assert left(max_dets=-1, max_dets_per_cat=4) == ([1, 3, 2, 0], -1, 4)
    assert left(max_dets_per_cat=2) == ([1, 3], 300, 2)
    with pytest.raises(IndexError):
        left(max_dets=0)
    with pytest.raises(IndexError):
        left(max_dets_per_cat=0)
    first = LVISResults(truth, copy.deepcopy(records)).dataset["annotations"][1]
    outline = [[1, 0, 1, 2, 5, 2, 5, 0]]
    assert first == {**records[1], "segmentation": outline, "area": 8, "id": 2}
    with pytest.raises(
        AssertionError, match=r"^mode='challenge2021' needs results with max_dets=-1 and max_dets_per_cat"
    ):
        LVISEval(truth, LVISResults(truth, records), mode="challenge2021")
    made = LVISEval(truth, copy.deepcopy(records), mode="challenge2021")
    assert (made.params.iou_type, made.params.max_dets, made.params.max_dets_per_cat) == ("boundary", -1, 10_000)
    assert (made.lvis_dt.max_dets_per_im, made.lvis_dt.max_dets_per_cat) == (-1, 10_000)


def test_results_that_are_masks(tmp_path):
    truth = data_set(document(square(0, 0, 10)), tmp_path)
    mask = truth.ann_to_rle({"image_id": 1, **square(3, 4, 5)})
    given = [{"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": mask} for _ in range(2)]
    found = LVISResults(truth, given).dataset["annotations"]
    assert [(one["id"], int(one["area"]), one["bbox"].tolist()) for one in found] == [
        (1, 25, [3.0, 4.0, 5.0, 5.0]),
        (2, 25, [3.0, 4.0, 5.0, 5.0]),
    ]


def test_annotations_by_area(tmp_path):
    truth = data_set(
        document(square(0, 0, 1), square(0, 0, 2), square(0, 0, 3), {**square(0, 0, 1), "area": 0.0}), tmp_path
    )
    assert truth.get_ann_ids(cat_ids=[1]) == [1, 2, 3]
    assert truth.get_ann_ids(cat_ids=[1], area_rng=(1, 9)) == [2]
    assert truth.get_ann_ids(cat_ids=[2]) == []
    assert truth.get_ann_ids() == [1, 2, 3, 4]
    assert truth.get_ann_ids(img_ids=[1, 1], cat_ids=[1]) == [1, 2, 3, 1, 2, 3]
    with pytest.raises(TypeError):
        truth.get_ann_ids(area_rng=(1, 9))
    assert (
        LVISResults(truth, [{"image_id": 1, "category_id": 1, "score": 0.5, "bbox": [0, 0, 1, 1]}]).get_top_results(
            1, 0.5
        )
        == []
    )


def test_images_are_downloaded_once(tmp_path, monkeypatch):
    scene = document(square(0, 0, 1))
    scene["images"] = [{**scene["images"][0], "id": n, "coco_url": f"http://nowhere/a/{n}.jpg"} for n in (1, 2, 3)]
    scene["annotations"] = []
    truth, asked = data_set(scene, tmp_path), []
    monkeypatch.setattr(urllib.request, "urlretrieve", lambda url, path: asked.append((url, path)))
    folder = tmp_path / "new" / "images"
    truth.download(str(folder), [2])
    (folder / "1.jpg").write_text("there")
    truth.download(str(folder))
    assert asked == [(f"http://nowhere/a/{n}.jpg", str(folder / f"{n}.jpg")) for n in (2, 2, 3)]


def test_no_objects_and_no_detections(tmp_path):
    """The results' only record is of another category, and no object is left."""
    scene = {**document(square(0, 0, 4)), "annotations": []}
    truth = data_set(
        {**scene, "categories": [*scene["categories"], {"id": 2, "name": "two", "frequency": "r"}]}, tmp_path
    )
    made = LVISEval(truth, [{"image_id": 1, "category_id": 2, "score": 0.5, "bbox": [0, 0, 1, 1]}], "bbox")
    made.params.cat_ids = [1]
    made.run()
    assert made.eval_imgs == [None] * 4
    assert {*made.results.values()} == {-1}
    made.params.cat_ids = [2]
    made.evaluate()
    assert made.eval_imgs == [None] * 4  # the category was not looked for


def test_the_defaults_of_params():
    p = Params("bbox")
    assert vars(p) | {"iou_thrs": 0, "rec_thrs": 0} == {
        "img_ids": [], "cat_ids": [], "iou_thrs": 0, "rec_thrs": 0, "max_dets": 300, "max_dets_per_cat": -1,
        "area_rng": [[0, 10**10], [0, 1024], [1024, 9216], [9216, 10**10]], "use_cats": 1, "iou_type": "bbox",
        "area_rng_lbl": ["all", "small", "medium", "large"], "img_count_lbl": ["r", "c", "f"],
    }  # fmt: skip
    assert np.array_equal(p.iou_thrs, np.linspace(0.5, 0.95, 10))
    assert np.array_equal(p.rec_thrs, np.linspace(0, 1, 101))
