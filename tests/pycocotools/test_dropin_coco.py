"""The drop-in's COCO and mask against those of pycocotools: methods, results, drawing, masks and keypoints."""

from __future__ import annotations

import copy
import json
import pickle
import sys

import numpy as np
import pycocotools.coco
import pytest
from dropin import OURS, REAL, compare, load, shown
from dropin_workloads import NAN, PLAIN, QUIRKY, run, with_keypoints, with_masks
from workloads import make_coco

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


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # in pycocotools, with numpy 2
def test_masks_are_evaluated_alike():
    dataset, results = with_masks()
    value = compare(lambda api: shown(run(api.COCOeval(*load(api, dataset, results)))))
    assert isinstance(value, dict)
    compare(lambda api: load(api, dataset, results)[1].anns)
    compare(lambda api: [load(api, dataset).annToMask(ann) for ann in dataset["annotations"]])
    boxed = [{**r, "bbox": [1.0, 2.0, 30.0, 20.0]} for r in results]
    compare(lambda api: shown(run(api.COCOeval(*load(api, dataset, boxed), "segm"))))
    compare(lambda api: shown(run(api.COCOeval(*load(api, dataset, make_coco(11, negative=False)[1][:0]), "segm"))))


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
