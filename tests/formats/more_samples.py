"""Small files that are no data sets by themselves: what options name, rankings, and segments of pixels."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
from samples import SAMPLES, TRUTHS, Sample, _dumped

import detmap
from detmap.errors import InputError
from detmap.formats import trec
from detmap.formats.coco.panoptic import content_of, read_panoptic
from detmap.formats.interop import from_supervision, from_torchvision, from_ultralytics
from detmap.formats.ranking_tables import other_layout

MORE: dict[str, Sample] = {}


def _add(name, files, call):
    MORE[name] = Sample(files, next(iter(files)), "", "", "", {}, (), False, call)


def _world(**more):
    """Ground truth with lists of categories, limbs and frequencies."""
    table = detmap.GroundTruth.from_arrays(
        image_ids=[1, 1, 2, 3],
        category_ids=[5, 6, 5, 8],
        boxes=[[0, 0, 8, 9], [1, 1, 2, 2], [3, 4, 5, 6], [0, 0, 1, 1]],
        images=[1, 2, 3, 12],
        categories=[5, 6, 7, 8],
        category_names={5: "cat", 6: "dog", 7: "hen", 8: "5"},
        frequencies={5: "r", 8: "f"},
        neg_category_ids={1: [5, 7], 2: [6], 3: []},
        not_exhaustive_category_ids={1: [7, 8], 12: [5, 6]},
        pos_category_ids={3: [5, 8]},
        **more,
    )
    return detmap.data.frames.with_image_names(table, {1: "x/a.jpg", 2: "b.jpg", 3: "c_1.png", 12: "c_2.png"})


def _written(folder):
    """The path of a file of that ground truth, beside the sample's own."""
    path = folder.parent / f"{folder.name}-truth.json"
    if not path.exists():
        detmap.write(_world(), path)
    return path


def _with(option, **more):
    return lambda folder: detmap.read(_written(folder), "ground_truth", **{option: folder / "a.csv"}, **more)


def _found_with(option):
    def read(folder):
        results = [{"image_id": 1, "category_id": k, "bbox": [0, 0, 8, 9], "score": 0.5} for k in (5, 6, 8, 9)]
        path = folder.parent / f"{folder.name}-found.json"
        path.write_text(_dumped(results))
        truth = detmap.read(_written(folder), "ground_truth")
        return detmap.read(path, "detections", ground_truth=truth, **{option: folder / "a.csv"})

    return read


_MAP = {"a.csv": "from,to\ndog,cat\nhen,\n8,animal\n"}
_add("class_map", _MAP, _with("class_map"))
_add("class_map-found", _MAP, _found_with("class_map"))
_add("class_map-json", {"a.csv": '{"cat": "dog",\n "hen": null,\n "8": 9}\n'}, _with("class_map"))
_add(
    "image_sizes", {"a.csv": "name,width,height\na.jpg,64,48\nb,10,20\n\nc_1.png;7;8\nc_2,9,9\n"}, _with("image_sizes")
)
_add("clusters", {"a.csv": "image,cluster\n1,x\nb.jpg,y\n003,x\n12,z\n"}, _with("clusters"))
_add("clusters-json", {"a.csv": '{"1": 5,\n "2": 6,\n "c_1.png": 5,\n "12": 7}\n'}, _with("clusters"))
_add("images", {"a.csv": "1\nb.jpg\nc_1\n"}, _with("images"))
_add("categories", {"a.csv": "cat\n6\n"}, _with("categories"))

_LABELLED = """ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf
0a,/m/1,0.1,0.5,0.25,0.75,0
0a,/m/2,0,1,0,1,1
0b,/m/3,0.1,0.2,0.1,0.2,0
"""


def _open_images(option, **more):
    def read(folder):
        path = folder.parent / f"{folder.name}-boxes.csv"
        path.write_text(_LABELLED)
        labels = folder.parent / f"{folder.name}-labels.csv"
        labels.write_text("ImageID,Source,LabelName,Confidence\n0a,verification,/m/3,1\n0c,verification,/m/1,0\n")
        return detmap.read(path, "ground_truth", **{"image_labels": labels, option: folder / "a.csv", **more})

    return read


_add(
    "image_labels",
    {"a.csv": "ImageID,Source,LabelName,Confidence\n0a,v,/m/3,1\n0c,v,/m/1,0\n"},
    _open_images("image_labels"),
)
_TREE = {
    "LabelName": "/m/0",
    "Subcategory": [{"LabelName": "/m/1"}, {"LabelName": "/m/2", "Subcategory": [{"LabelName": "/m/3"}]}],
}
_TREE["Subcategory"][0]["Part"] = [{"LabelName": "/m/4"}]
_add("hierarchy", {"a.csv": _dumped(_TREE)}, _open_images("hierarchy"))
_add("descriptions", {"a.csv": "/m/1,Cat\n/m/2,Dog and bone\n/m/3,Hen\n"}, _open_images("classes"))


def _yolo(folder):
    inner = folder.parent / f"{folder.name}-labels"
    inner.mkdir(exist_ok=True)
    (inner / "a.txt").write_text("0 0.5 0.5 0.25 0.5\n1 0.1 0.2 0.1 0.2\n")
    return detmap.read(inner, "ground_truth", format="yolo", classes=next(folder.glob("a.*")), image_sizes="64x32")


_add("classes", {"a.yaml": "names:\n  0: cat\n  1: dog\nnc: 2\n"}, _yolo)
_add("classes-listed", {"a.txt": "cat\ndog\n"}, _yolo)
_add("classes-within", {"a.yaml": "train: x\nnames: [cat, 'dog']  # two\nkpt_shape: [17, 3]\n"}, _yolo)


def _image_set(folder):
    return detmap.read_voc(
        {"a.xml": "<annotation/>", "b.xml": "<annotation/>", "c.xml": "<annotation/>"}, folder / "a.txt"
    )


_add("image_set", {"a.txt": "a\nb 1\n\n"}, _image_set)


def _panoptic(predictions):
    maps = {1: np.array([[0, 3], [3, 9]]), 2: np.array([[9, 9], [9, 0]])}

    def read(folder):
        found = read_panoptic(folder / "a.json", maps, predictions=predictions)
        held = {name: value for name, value in vars(found).items() if name != "label_maps"}
        return {**held, "content": content_of(found)}

    return read


_SEGMENTS = {
    "annotations": [
        {
            "image_id": 1,
            "file_name": "1.png",
            "segments_info": [
                {"id": 3, "category_id": 7, "area": 2, "iscrowd": 0},
                {"id": 9, "category_id": 2, "area": 1.5, "iscrowd": 1},
            ],
        },
        {"image_id": 2, "file_name": "2.png", "segments_info": [{"id": 9, "category_id": 7, "area": 3}]},
    ],
    "categories": [{"id": 7, "name": "cat", "isthing": 1}, {"id": 2, "isthing": 0}],
}
_add("panoptic", {"a.json": _dumped(_SEGMENTS)}, _panoptic(False))
_add("panoptic-found", {"a.json": _dumped({"annotations": _SEGMENTS["annotations"]})}, _panoptic(True))


def _lines(read, kind):
    def made(folder):
        path = next(iter(folder.glob("a.*")), folder / "a.txt")
        held = other_layout(path, kind)
        if held is not None:
            return {"layout": held if isinstance(held, dict) else held._asdict()}
        held = read(path)
        parts = {**held._asdict(), "documents": held.documents.tolist(), "lengths": held.documents.lengths()}
        return parts if kind == "qrels" else {**parts, "called": trec.run_name(path)}

    return made


_QRELS, _RUN = _lines(trec.read_qrels, "qrels"), _lines(trec.read_run, "run")
_add("qrels", {"a.txt": "1 0 d1 1\n1 0 d2 0\n# a comment\n#2 0 d1 2\n\n3 0 d1 -1\n"}, _QRELS)
_add("run", {"a.txt": "1 Q0 d1 1 0.5 mine\n1 Q0 d2 2 0.25 mine and more\n# a comment\n2 Q0 d1 1 -3e-5 mine\n"}, _RUN)
_add("qrels-csv", {"a.tsv": "query-id\tcorpus-id\tscore\n1\td1\t1\n2\td2\t0\n"}, _QRELS)
_add("run-csv", {"a.csv": 'q_id,doc_id,score,note\n1,d1,0.5,x\n2,"d,2",1e-3,\n'}, _RUN)
_add("run-json", {"a.json": '{"1": {"d1": 0.5, "d2": 2},\n "2": {"d1": -1}}\n'}, _RUN)

# What other libraries hand over, written as JSON.


def _given(folder):
    try:
        return json.loads((folder / "a.json").read_text("utf-8-sig"))
    except ValueError:
        raise InputError("is not valid JSON", source="a.json") from None


def _torchvision(**more):
    return lambda folder: from_torchvision(_given(folder), **more)


_BITMAPS = [[[[0, 1, 1], [0, 1, 0]]], [[[1, 1, 1], [0, 0, 0.5]]]]
_OUTPUTS = [
    {"image_id": 7, "boxes": [[1, 2, 5, 8], [0, 0, 3, 3]], "labels": [1, 2], "scores": [0.5, 0.25], "masks": _BITMAPS},
    {"image_id": 2, "boxes": [], "labels": [], "scores": [], "masks": []},
]
_NAMED = ["background", "car", "dog"]
_add("torchvision", {"a.json": _dumped(_OUTPUTS)}, _torchvision())
_add("torchvision-named", {"a.json": _dumped(_OUTPUTS)}, _torchvision(ground_truth=TRUTHS["numbers"], classes=_NAMED))
_add("torchvision-masks", {"a.json": _dumped(_OUTPUTS[:1])}, _torchvision(iou_type="segm"))
_TARGETS = [
    {
        "image_id": [7],
        "boxes": [[1, 2, 5, 8]],
        "labels": [1],
        "area": [20],
        "iscrowd": [1],
        "keypoints": [[[1, 2, 1], [3, 4, 0]]],
    },
    {
        "image_id": [2],
        "boxes": [[1, 1, 2, 2]],
        "labels": [2],
        "area": [1],
        "iscrowd": [0],
        "keypoints": [[[1, 2, 1], [3, 4, 2]]],
    },
]
_add("torchvision-targets", {"a.json": _dumped(_TARGETS)}, _torchvision(role="ground_truth", classes=_NAMED))
_add("torchvision-poses", {"a.json": _dumped(_TARGETS)}, _torchvision(role="ground_truth", iou_type="keypoints"))


def _named(thing):
    """JSON's objects as objects with attributes; lists of numbers as arrays."""
    if isinstance(thing, dict):
        return SimpleNamespace(
            **{key: value if key in ("names", "data", "classes") else _named(value) for key, value in thing.items()}
        )
    if isinstance(thing, list) and not any(isinstance(one, dict) for one in thing):
        try:
            return np.array(thing, float)
        except (TypeError, ValueError):
            return thing
    return [_named(one) for one in thing] if isinstance(thing, list) else thing


def _ultralytics(**more):
    def read(folder):
        given = _given(folder)
        try:
            return from_ultralytics([_named(one) for one in given] if isinstance(given, list) else given, **more)
        except AttributeError as error:
            raise InputError(f"is of another type: {error}", source="a.json") from None

    return read


_RESULTS = [
    {
        "path": "/x/a.jpg",
        "orig_shape": [4, 6],
        "names": {"0": "car", "1": "dog"},
        "boxes": {"xyxy": [[1, 0, 3, 4], [0, 0, 2, 2]], "cls": [0, 1], "conf": [0.5, 0.25]},
        "masks": {"xy": [[[1, 0], [3, 0], [3, 4]], [[0, 0], [2, 0]]], "bits": [[[1, 0], [0, 1]], [[0, 0], [0, 0]]]},
        "keypoints": {"points": [[[1, 2], [3, 4]], [[0, 0], [1, 1]]]},
    },
    {"path": "/x/b.jpg", "orig_shape": [4, 6], "names": {"0": "car"}, "boxes": {"xyxy": [], "cls": [], "conf": []}},
]
_add("ultralytics", {"a.json": _dumped(_RESULTS)}, _ultralytics())
_add("ultralytics-named", {"a.json": _dumped(_RESULTS)}, _ultralytics(ground_truth=TRUTHS["numbers"]))
_add(
    "ultralytics-ignored",
    {"a.json": _dumped(_RESULTS)},
    _ultralytics(ground_truth=TRUTHS["words"], unknown_images="ignore"),
)


def _supervision(**more):
    def read(folder):
        given = _given(folder)
        images = {key: _named(one) for key, one in given.items()} if isinstance(given, dict) else given
        try:
            for one in images.values() if more.get("iou_type") == "segm" else ():
                one.mask = None if one.mask is None else np.array(one.mask, bool)
            return from_supervision(images, **more)
        except (AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"is of another type: {error}", source="a.json") from None

    return read


_SEEN = {
    "a.jpg": {
        "xyxy": [[1, 0, 3, 4], [0, 0, 2, 2]],
        "class_id": [0, 1],
        "confidence": [0.5, 0.25],
        "mask": [[[0, 1, 1], [0, 1, 0]], [[1, 1, 1], [0, 0, 0]]],
        "data": {"class_name": ["car", "dog"]},
    },
    "b.jpg": {"xyxy": [], "class_id": None, "confidence": None, "mask": None, "data": {}},
}
_add("supervision", {"a.json": _dumped(_SEEN)}, _supervision())
_add("supervision-truth", {"a.json": _dumped(_SEEN)}, _supervision(role="ground_truth", classes=["car", "dog", "hen"]))
_add("supervision-named", {"a.json": _dumped(_SEEN)}, _supervision(ground_truth=TRUTHS["numbers"]))
_add("supervision-masks", {"a.json": _dumped(_SEEN)}, _supervision(iou_type="segm"))

ALL = {**SAMPLES, **MORE}
