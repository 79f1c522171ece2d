"""A small file of every format and role, with most of what such files can hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import open_images_scenes
import test_nuscenes_files
import test_open_images_files
import test_tools
import track_scenes

import detmap


class Sample(NamedTuple):
    """Files by name, the path among them that is read, and how it is read."""

    files: dict[str, str | bytes]
    path: str
    role: str
    format: str
    #: The name of the ground truth in `TRUTHS`.
    truth: str
    options: Mapping[str, Any]
    #: Options that are tried besides, each with a value.
    tried: Sequence[tuple[str, Any]]
    #: Whether `detmap check` reads the format's files when they are refused.
    salvages: bool
    #: What reads the files of a folder, where it is no format.
    call: Callable[[Path], Any] | None = None


def _truth(images, categories, *, names=None, files=None, sizes=((100, 200),), **more):
    table = detmap.GroundTruth.from_arrays(
        image_ids=images[:1],
        category_ids=categories[:1],
        **{"boxes": [[0, 0, 9, 9]], **more},
        images=images,
        categories=categories,
        category_names=names,
        image_sizes=list(sizes) * len(images),
    )
    if files is None:
        return table
    return detmap.data.frames.with_image_names(table, files)


#: Ground truth for detections.
TRUTHS = {
    "": None,
    "words": _truth(["a", "b", "c"], ["car", "dog"]),
    "files": _truth(["a.jpg", "b.jpg"], ["car", "dog"]),
    "numbers": _truth([1, 2, 7], [1, 5], names={1: "car", 5: "dog"}, files={1: "x/a.jpg", 2: "b.jpg", 7: "c.png"}),
    "frames": _truth(["S/000001", "S/000002"], ["pedestrian"]),
    "tracked": _truth(["0000/000000", "0000/000002"], ["car", "van"]),
    "faces": _truth(["E/a.jpg", "E/b.jpg"], ["face"]),
    "labels": _truth(["01", "ab"], ["/m/0", "/m/1"]),
    "videos": _truth(["v1", "v2"], [1, 3], names={1: "Dive", 3: "Run"}, boxes=None, segments=[[0.0, 1.0]]),
}


def _dumped(value):
    """JSON with a line for each record."""
    text = json.dumps(value)
    return text.replace("}, {", "},\n{").replace("[{", "[\n{").replace("]}, ", "]},\n").replace('], "', '],\n"') + "\n"


_CODE = {"size": [20, 30], "counts": [60, 5, 15, 5, 515]}
_MASK = np.pad(np.ones((5, 9), bool), ((3, 12), (4, 17)))


def _coco(**more):
    images = [
        {"id": 7, "file_name": "x/a.jpg", "height": 20, "width": 30},
        {"id": 2, "file_name": "b.jpg", "height": 40, "width": 50, **more.pop("image", {})},
        {"id": 3},
    ]
    own = [
        {"id": 4, "image_id": 7, "category_id": 5, "bbox": [1.5, 2, 10, 4], "area": 37.25, "iscrowd": 0},
        {"id": 5, "image_id": 2, "category_id": 1, "bbox": [0, 0, 3, 4], "area": 12, "iscrowd": 1, "ignore": 1},
        {"id": 0, "image_id": 7, "category_id": 1, "bbox": [4, 4, 8, 9], "area": 72, "iscrowd": 0},
    ]
    for record, extra in zip(own, more.pop("annotations", []), strict=False):
        record |= extra
    categories = [{"id": 5, "name": "dog"}, {"id": 1, "name": "car", **more.pop("category", {})}]
    return {"info": {"year": 2020}, "images": images, "categories": categories, "annotations": own, **more}


_RESULTS = [
    {"image_id": 7, "category_id": 5, "bbox": [1, 2, 10, 4], "score": 0.875},
    {"image_id": 2, "category_id": 1, "bbox": [0, 0, 3.5, 4], "score": 0.5},
    {"image_id": 7, "category_id": 1, "bbox": [4, 4, 8, 0], "score": -1.25e-3},
]

_OF_RECORDS = [
    ("invalid_boxes", "miss"),
    ("invalid_boxes", "drop"),
    ("class_map", {"car": "vehicle", "dog": "vehicle"}),
    ("class_map", {"car": ""}),
    ("class_map", {1: 5, "nothing": "x"}),
    ("image_sizes", "64x32"),
    ("image_sizes", {"a": (5, 6), "b.jpg": (7, 8)}),
    ("classes", ["car", "dog"]),
    ("columns", "image=a"),
    ("box_format", "xyxy"),
    ("iou_type", "segm"),
    ("iou_type", "keypoints"),
    ("iou_type", "rotated"),
    ("iou_type", "temporal"),
]
_OF_TRUTH = [
    *_OF_RECORDS,
    ("image_facts", False),
    ("fields", ["occluded", "truncated"]),
    ("image_set", ["a", "b"]),
    ("image_set", ["a", "nowhere"]),
    ("images", "a"),
    ("images", ["b.jpg"]),
    ("images", [2, 3]),
    ("categories", ["car"]),
    ("categories", "dog,1"),
    ("clusters", {"a": 1, "b": 1, "c": 2}),
    ("clusters", {7: "x", 2: "y", 3: "x"}),
    ("clusters", "video_id"),
]
_OF_FOUND = [*_OF_RECORDS, ("unknown_images", "ignore"), ("missing_classes", "skip"), ("missing_classes", "error")]

SAMPLES: dict[str, Sample] = {}


def _add(name, role, format, files, path="", truth="", salvages=False, **options):
    tried = _OF_TRUTH if role == "ground_truth" else _OF_FOUND
    if any((one.role, one.format) == (role, format) for one in SAMPLES.values()):
        tried = [one for one in tried if one[0] == "iou_type"]
    SAMPLES[name] = Sample(files, path or next(iter(files)), role, format, truth, options, tried, salvages)


# ------------------------------------------------------------------------------------------------------------------ COCO

_add("coco", "ground_truth", "coco", {"a.json": _dumped(_coco(image={"video_id": 3}))}, salvages=True)
_add("coco-found", "detections", "coco", {"a.json": _dumped(_RESULTS)}, truth="numbers", salvages=True)
_add("coco-within", "detections", "coco", {"a.json": _dumped({"info": {}, "annotations": _RESULTS[:2]})}, salvages=True)
_add(
    "coco-lines",
    "detections",
    "coco",
    {"a.jsonl": "".join(json.dumps({**one, "image_id": "ab"[k % 2]}) + "\n" for k, one in enumerate(_RESULTS))},
    truth="numbers",
    salvages=True,
)
_POLYGON = [[1.5, 2, 11.5, 2, 11.5, 6.25, 1.5, 6]]
_SHAPES = [{"segmentation": _POLYGON}, {"segmentation": _CODE}, {"segmentation": track_scenes.code(_MASK)}]
_add(
    "coco-masks",
    "ground_truth",
    "coco",
    {"a.json": _dumped(_coco(annotations=_SHAPES))},
    salvages=True,
    iou_type="segm",
)
_add(
    "coco-masks-found",
    "detections",
    "coco",
    {"a.json": _dumped([{**one, **more} for one, more in zip(_RESULTS, _SHAPES, strict=True)])},
    truth="numbers",
    salvages=True,
    iou_type="segm",
)
_POSES = [{"keypoints": [3, 4, 2, 0, 0, 0, 9, 5, 1], "num_keypoints": 2}] * 2
_POSES += [{"keypoints": [3.5, 4, 2, 1, 1, 2, 9, 5, 0], "num_keypoints": 2}]
_add(
    "coco-poses",
    "ground_truth",
    "coco",
    {"a.json": _dumped(_coco(annotations=_POSES, category={"skeleton": [[1, 2], [2, 3]]}))},
    salvages=True,
    iou_type="keypoints",
)
_add(
    "coco-poses-found",
    "detections",
    "coco",
    {"a.json": _dumped([{k: v for k, v in {**one, **_POSES[2]}.items() if k != "bbox"} for one in _RESULTS])},
    truth="numbers",
    salvages=True,
    iou_type="keypoints",
)
_LISTS = {"neg_category_ids": [1], "not_exhaustive_category_ids": [5, 1], "pos_category_ids": [], "crowdIndex": 0.25}
_FIELDS = [
    {"occluded": 1, "attributes": {"truncated": 0.5}, "is_group_of": 1},
    {"occluded": True, "truncated": 2},
    {"truncated": None, "foot_valid": 1},
]
_add(
    "coco-lvis",
    "ground_truth",
    "coco",
    {"a.json": _dumped(_coco(image=_LISTS, annotations=_FIELDS, category={"frequency": "r"}))},
    salvages=True,
    fields=["occluded", "attributes.truncated"],
)

# ------------------------------------------------------------------------------------------------------------- text files

_XML = """<annotation>
 <folder>x</folder>
 <filename>{name}.jpg</filename>
 <size><width>200</width><height>100</height><depth>3</depth></size>
 <object>
  <name>car</name><truncated>0</truncated><difficult>1</difficult>
  <bndbox><xmin>10</xmin><ymin>20.5</ymin><xmax>110</xmax><ymax>90</ymax></bndbox>
 </object>
 <object>
  <name>dog</name>
  <part><name>tail</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>
  <bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>
 </object>
</annotation>
"""
_add(
    "voc",
    "ground_truth",
    "voc",
    {"xml/b.xml": _XML.format(name="b"), "xml/a.xml": "<annotation><filename>z</filename></annotation>\n"},
    "xml",
)
_add(
    "voc-found",
    "detections",
    "voc",
    {
        "r/comp4_det_test_car.txt": "b 0.5 10 20 110 90.5\na 0.25 1 2 3 4\n\nb 0.125 1 1 2 2\n",
        "r/comp4_det_test_dog.txt": "a 1e-3 0 0 9 9\n",
        "r/notes.txt": "not read\n",
    },
    "r",
    truth="words",
)
_YOLO = "path: .\ntrain: images/train\nval: images/val\nnames:\n  0: car\n  1: dog\n"
_SIZES = {"image_sizes": {"a": (100, 200), "b": (50, 64), "c": (10, 10)}}
_add(
    "yolo",
    "ground_truth",
    "yolo",
    {"labels/a.txt": "0 0.5 0.5 0.25 0.5\n1 0.1 0.2 0.1 0.2\n", "labels/b.txt": "1 0.25 0.25 0.5 0.5\n\n"},
    "labels",
    salvages=True,
    **_SIZES,
)
_add(
    "yolo-set",
    "ground_truth",
    "yolo",
    {
        "data.yaml": _YOLO,
        "labels/val/a.txt": "0 0.5 0.5 0.25 0.5\n1 0.1 0.2 0.1 0.2 0.3 0.5\n",
        "labels/val/c.txt": "",
        "labels/train/b.txt": "1 0.25 0.25 0.5 0.5\n",
        "images/val/a.jpg": b"",
        "images/val/c.jpg": b"",
        "images/train/b.jpg": b"",
    },
    "data.yaml",
    salvages=True,
    **_SIZES,
)
_add(
    "yolo-outlines",
    "ground_truth",
    "yolo",
    {"labels/a.txt": "0 0.1 0.1 0.5 0.1 0.5 0.75 0.1 0.5\n1 0.25 0.25 0.5 0.5 0.75 0.25\n"},
    "labels",
    salvages=True,
    **_SIZES,
    iou_type="segm",
)
_add(
    "yolo-poses",
    "ground_truth",
    "yolo",
    {
        "data.yaml": _YOLO + "kpt_shape: [2, 3]\nnc: 2\n",
        "labels/val/a.txt": "0 0.5 0.5 0.25 0.5 0.5 0.5 2 0 0 0\n1 0.1 0.2 0.1 0.2 0.1 0.1 1 0.2 0.2 2\n",
        "images/val/a.jpg": b"",
    },
    "data.yaml",
    salvages=True,
    **_SIZES,
    iou_type="keypoints",
)
_add(
    "yolo-found",
    "detections",
    "yolo",
    {"r/a.txt": "0 0.5 0.5 0.25 0.5 0.75\n1 0.1 0.2 0.1 0.2 0.5\n", "r/b.txt": "1 0.25 0.25 0.5 0.5 1e-3\n"},
    "r",
    truth="numbers",
    salvages=True,
    classes=["car", "dog"],
)
_add(
    "text",
    "ground_truth",
    "text",
    {"r/a.txt": "car 1 2 30 40.5\ndog 5 5 9 9 difficult\n", "r/b.txt": ""},
    "r",
    salvages=True,
)
_add(
    "text-found",
    "detections",
    "text",
    {"r/a.txt": "car 0.5 1 2 30 40\ndog 0.25 5 5 9 9\n", "r/b.txt": "dog 0.125 1 1 2 2\n"},
    "r",
    truth="words",
    salvages=True,
)
_KITTI = "Car 0.5 1 -1.5 10 20 30.5 40 1.5 1.6 4 -4.5 1.8 13 -2.1"
_ANYWHERE = "DontCare -1 -1 -10 1 2 3 4 -1 -1 -1 -1000 -1000 -1000 -10"
_add(
    "kitti",
    "ground_truth",
    "kitti",
    {"r/000000.txt": f"{_KITTI}\nVan{_KITTI[3:]}\n{_ANYWHERE}\n", "r/000001.txt": f"{_KITTI}\n"},
    "r",
    salvages=True,
)
_add(
    "kitti-space",
    "ground_truth",
    "kitti",
    {"r/000000.txt": f"{_KITTI}\n{_ANYWHERE}\n"},
    "r",
    salvages=True,
    iou_type="box3d",
)
_add(
    "kitti-found",
    "detections",
    "kitti",
    {"r/a.txt": f"{_KITTI} 0.5\ndog{_KITTI[3:]} 0.25\n", "r/b.txt": ""},
    "r",
    truth="words",
    salvages=True,
)
_DOTA = "imagesource:GoogleEarth\ngsd:0.5\n10 10 30 10 30 20 10 20 car 0\n3 1 5 3 3 5 1 3 dog 2\n1 1 2 1 2 2 1 2 dog\n"
_add("dota", "ground_truth", "dota", {"l/a.txt": _DOTA, "l/b.txt": ""}, "l", iou_type="rotated")
_TASK = {
    "r/Task1_car.txt": "a 0.5 10 10 30 10 30 20 10 20\nb 0.25 3 1 5 3 3 5 1 3\n",
    "r/Task1_dog.txt": "b 0.125 3 1 5 3 3 5 1 3\n",
    "r/notes.txt": "x\n",
}
_add("dota-found", "detections", "dota", _TASK, "r", truth="words", iou_type="rotated")
_add("dota-upright", "detections", "dota", {"Task2_car.txt": "a 0.5 10 10 30 20\nb 0.25 3 1 5 3\n"}, truth="words")

# -------------------------------------------------------------------------------------------------------------------- CSV

_add(
    "csv",
    "ground_truth",
    "csv",
    {
        "a.csv": "image_id,image,category_id,category,x,y,width,height,area,iscrowd,difficult,occluded,truncated\n"
        '1,a.jpg,5,dog,1,2,10,20.5,7,1,0,1,0.5\n2,"b.jpg",1,car,5,5,10,10,100,false,true,,3\n7,c.jpg,,,,,,,,,,,\n'
    },
)
_add(
    "csv-corners",
    "ground_truth",
    "csv",
    {
        "a.csv": "filename;width;height;class;xmin;ymin;xmax;ymax;IsGroupOf\na.jpg;200;100;car;10;20;110;90;1\n"
        "b.jpg;64;50;dog;1;2;3;4;0\na.jpg;200;100;dog;0;0;1;1;0\n"
    },
)
_add(
    "csv-lists",
    "ground_truth",
    "csv",
    {"a.tsv": 'image\tlabel\tbbox\na\tcar\t"[1, 2, 3, 4]"\nb\tdog\t"[5, 6, 7, 8]"\n'},
)
_add("csv-classless", "ground_truth", "csv", {"a.csv": "image,cx,cy,width,height\na,10,20,6,8\nb,5,5,2,2\nc,,,,\n"})
_add(
    "csv-found",
    "detections",
    "csv",
    {"a.csv": "image_id,category_id,score,x,y,width,height\n7,5,0.9,0,0,10,20\n2,1,0.5,1,1,2,2\n1,1,0.25,3,3,4,4.5\n"},
    truth="numbers",
)
_add(
    "csv-named",
    "detections",
    "csv",
    {"a.csv": "file_name,label,conf,left,top,right,bottom\na.jpg,car,0.9,0,0,10,20\nx/b.jpg,dog,0.5,1,1,2,2\n"},
    truth="numbers",
)
_add(
    "csv-untitled",
    "detections",
    "csv",
    {"a.csv": "a,x,car,0.9,0,0,10,20\nb,y,dog,0.5,1,1,2,2\n"},
    truth="words",
    columns="image,-,category,score,x1,y1,x2,y2",
)

# ----------------------------------------------------------------------------------------------------------- Open Images

_OBJECTS, _SCORED, _LISTED, _, _ = open_images_scenes.scene(1, images=3, categories=2, strings=True, many=3)


def _open_images(masks, absent):
    objects, scored, listed, *_ = open_images_scenes.scene(
        2, images=3, categories=2, strings=True, many=3, masks=masks, absent=absent
    )
    made = {}

    class Folder:
        def __truediv__(self, name):
            return type("File", (), {"write_text": lambda own, text: made.update({name: text})})()

    test_open_images_files.write(Folder(), objects, scored, listed, masks)
    return made


for _suffix, _masks, _absent in (("", False, 0.0), ("-masks", True, 0.0), ("-absent", True, 0.5)):
    for _name, _text in _open_images(_masks, _absent).items():
        if _name == "labels.csv" or (_absent and _name != "boxes.csv"):
            continue
        _role = "ground_truth" if _name == "boxes.csv" else "detections"
        _rows = "".join(_text.splitlines(keepends=True)[:6])
        _more = {"iou_type": "segm"} if _masks else {}
        _add(f"openimages-{_name[:-4]}{_suffix}", _role, "openimages", {"a.csv": _rows}, **_more)

# ---------------------------------------------------------------------------------------------------- benchmarks of videos

_VIDEOS = {
    "v1": {
        "subset": "validation",
        "annotations": [{"segment": [1.5, 3], "label": "Run"}, {"segment": [4, 9], "label": "Dive"}],
    },
    "v2": {"subset": "validation", "annotations": []},
    "v3": {"subset": "training", "annotations": [{"segment": [0, 1], "label": "Jump"}]},
}
_add(
    "activitynet",
    "ground_truth",
    "activitynet",
    {"a.json": _dumped({"version": "VERSION 1.3", "taxonomy": [], "database": _VIDEOS})},
    iou_type="temporal",
)
_SEGMENTS = {
    "v1": [{"label": "Run", "segment": [1, 3], "score": 0.5}, {"label": "Dive", "segment": [4, 8.5], "score": 0.25}],
    "v9": [{"label": "New", "segment": [0, 1], "score": 0.125}],
}
_add(
    "activitynet-found",
    "detections",
    "activitynet",
    {"a.json": _dumped({"version": "VERSION 1.3", "results": _SEGMENTS, "external_data": {}})},
    truth="videos",
    iou_type="temporal",
)
_add(
    "thumos14",
    "ground_truth",
    "thumos14",
    {
        "r/Dive_test.txt": "v1 1.5 3\nv2 4 9\n",
        "r/Run_test.txt": "v1 0 1\n",
        "r/Ambiguous_test.txt": "v2 5 6\n",
        "r/detclasslist.txt": "7 Dive\n9 Run\n",
    },
    "r",
    iou_type="temporal",
)
_add(
    "thumos14-found",
    "detections",
    "thumos14",
    {"a.txt": "v1 1.5 3 1 0.5\nv2 4 9 3 0.25\nv2 4 9 1 1e-3\n"},
    truth="videos",
    iou_type="temporal",
)


def _ytvis():
    document, results = track_scenes.scene(3, videos=2)
    codes = [one["segmentations"] for one in document["annotations"]]
    assert any(codes)
    return document, results


_TRACKED, _TRACKS = _ytvis()
_add("ytvis", "ground_truth", "ytvis", {"a.json": _dumped(_TRACKED)}, iou_type="tracks")
_add("ytvis-found", "detections", "ytvis", {"a.json": _dumped(_TRACKS[:3])}, iou_type="tracks")

_BOX = {"translation": [1.5, 2, 0.5], "size": [2, 4, 1.5], "rotation": [1, 0, 0, 0], "velocity": [0.5, -1]}
_BOX |= {"detection_name": "car", "attribute_name": "vehicle.moving"}
_STILL = {**_BOX, "velocity": None, "detection_name": "barrier", "attribute_name": ""}
_add(
    "nuscenes",
    "ground_truth",
    "nuscenes",
    {
        "a.json": _dumped(
            {
                "samples": [
                    {
                        "token": "s1",
                        "ego": [1, 2, 0],
                        "boxes": [{**_BOX, "num_pts": 3}, {**_STILL, "num_pts": 0}],
                        "racks": [{key: _BOX[key] for key in ("translation", "size", "rotation")}],
                    },
                    {"token": "s0", "boxes": []},
                ]
            }
        )
    },
    iou_type="centre-distance",
)
_add(
    "nuscenes-found",
    "detections",
    "nuscenes",
    {
        "a.json": _dumped(
            {
                "meta": {"use_camera": False},
                "results": {
                    "s1": [
                        {**_BOX, "sample_token": "s1", "detection_score": 0.5},
                        {**_STILL, "sample_token": "s1", "detection_score": 0.25},
                    ],
                    "s2": [],
                },
            }
        )
    },
    iou_type="centre-distance",
)


def _tables():
    import moving_scenes

    samples, _ = moving_scenes.scene(7, samples=3)
    for one in samples["samples"]:
        one["boxes"] = one["boxes"][:1]
    made = {}

    class Folder:
        def mkdir(self):
            pass

        def __truediv__(self, name):
            return type("File", (), {"write_text": lambda own, text: made.update({f"v1.0-mine/{name}": text})})()

    test_nuscenes_files.tables_of(samples["samples"], Folder(), np.random.default_rng(1))
    return {name: _dumped(json.loads(text)) for name, text in made.items()}


_add("nuscenes-tables", "ground_truth", "nuscenes", _tables(), "v1.0-mine", iou_type="centre-distance")

# ------------------------------------------------------------------------------------------------------------------- tools

_OBJECT, _SEEN = test_tools.OBJECTS, test_tools.FOUND
_add("bdd100k", "ground_truth", "bdd100k", {"a.json": _dumped(test_tools.bdd(_OBJECT, scored=False))})
_add(
    "bdd100k-frames",
    "ground_truth",
    "bdd100k",
    {"a.json": _dumped({"frames": test_tools.bdd(_OBJECT[:1], scored=False)})},
)
_add("bdd100k-found", "detections", "bdd100k", {"a.json": _dumped(test_tools.bdd(_SEEN, scored=True))}, truth="files")
_add("createml", "ground_truth", "createml", {"a.json": _dumped(test_tools.createml(_OBJECT))})
_add("darknet-found", "detections", "darknet", {"a.json": _dumped(test_tools.darknet(_SEEN))}, truth="files")
_SHAPED = test_tools.labelme("a.jpg", _OBJECT[:2])
_SHAPED["shapes"] += [
    {"label": "x", "points": [[50, 50], [53, 54]], "shape_type": "circle"},
    {"label": "y", "points": [[3, 1], [5, 3], [3, 5.5]], "shape_type": "polygon", "group_id": None},
]
_add(
    "labelme",
    "ground_truth",
    "labelme",
    {"l/a.json": _dumped(_SHAPED), "l/b.json": _dumped(test_tools.labelme("b.jpg", []))},
    "l",
)
_add("labelme-masks", "ground_truth", "labelme", {"a.json": _dumped(_SHAPED)}, iou_type="segm")
_CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations><version>1.1</version>
<image id="0" name="a.jpg" width="64" height="48">
<box label="car" occluded="0" xtl="1" ytl="2" xbr="30" ybr="40.5" z_order="0"></box>
{more}</image>
<image id="1" name="b.jpg" width="64" height="48">
</image>
</annotations>
"""
_TURNED = """<box label="dog" xtl="20" ytl="10" xbr="30" ybr="16" rotation="90.0"/>
<polygon label="dog" points="10,20;11,20;6.5,22"/>
<ellipse label="x" cx="10" cy="10" rx="3" ry="4"/>
<mask label="y" rle="2, 4, 2" left="3" top="4" width="4" height="2"/>
<polyline label="dog" points="1,2;3,4"/>
"""
_add(
    "cvat", "ground_truth", "cvat", {"a.xml": _CVAT.format(more='<box label="dog" xtl="0" ytl="0" xbr="1" ybr="1"/>\n')}
)
_add("cvat-turned", "ground_truth", "cvat", {"a.xml": _CVAT.format(more=_TURNED)})
_ALONE = _TURNED.partition("\n")[0] + "\n"
_add("cvat-rotated", "ground_truth", "cvat", {"a.xml": _CVAT.format(more=_ALONE)}, iou_type="rotated")
_add("cvat-masks", "ground_truth", "cvat", {"a.xml": _CVAT.format(more=_TURNED)}, iou_type="segm")
_VIA = test_tools.via(_OBJECT, 2)
_VIA["a.jpg99"]["regions"] += [
    {"shape_attributes": {"name": "circle", "cx": 9, "cy": 8, "r": 2}, "region_attributes": {"label": "x"}},
    {
        "shape_attributes": {"name": "ellipse", "cx": 9, "cy": 8, "rx": 2, "ry": 3.5},
        "region_attributes": {"label": "x"},
    },
    {"shape_attributes": {"name": "point", "cx": 9, "cy": 8}, "region_attributes": {"label": {"x": True, "y": False}}},
    {
        "shape_attributes": {"name": "polygon", "all_points_x": [1, 5, 3], "all_points_y": [1, 2, 9]},
        "region_attributes": {"label": {"x": True, "y": False}},
    },
]
_add("via", "ground_truth", "via", {"a.json": _dumped(_VIA)})
_add("via-project", "ground_truth", "via", {"a.json": _dumped(test_tools.via(_OBJECT[:1], 0))})
_add("via-csv", "ground_truth", "via", {"a.csv": test_tools.via_csv(_OBJECT[:2]).replace("\r\n", "\n")})
_INFO = "[Sequence]\nname=x\nseqLength=3\nimWidth=1920\nimHeight=1080\n"
_add("mot", "ground_truth", "mot", {"S/gt/gt.txt": test_tools.TRACKS, "S/seqinfo.ini": _INFO}, "S")
_add(
    "mot-found",
    "detections",
    "mot",
    {"mine.txt": "1,-1,90,50,10,24,-0.5,-1,-1,-1\n2,-1,1,1,50,50,2.25\n"},
    truth="frames",
)
_add("kitti_tracking", "ground_truth", "kitti_tracking", {"l/0000.txt": test_tools.TRACKED, "l/0001.txt": ""}, "l")
_RESULT = "".join(f"{line} 0.75\n" for line in test_tools.TRACKED.splitlines()[1:])
_add("kitti_tracking-found", "detections", "kitti_tracking", {"l/0000.txt": _RESULT}, "l", truth="tracked")
_FACES = (
    "0--P/a.jpg\n2\n300 200 40 50 2 0 0 0 2 0 \n50 60 8 9 0 0 0 1 0 0 \n0--P/b.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \n"
    "1--Q/c.jpg\n1\n1 2 3 4 0 0 0 0 0 0\n"
)
_add("wider_face", "ground_truth", "wider_face", {"a.txt": _FACES})
_add(
    "wider_face-found",
    "detections",
    "wider_face",
    {"r/E/a.txt": "a\n2\n301.5 199.5 41 49.5 0.998\n10 20 30 40 0.05\n", "r/E/b.txt": "b.jpg\n0\n"},
    "r",
    truth="faces",
)
_add(
    "kaggle-boxes",
    "detections",
    "kaggle",
    {"a.csv": "image_id,PredictionString\na,1.0 0 0 50 50 0.5 801 240 60 30\nb,\n"},
    truth="words",
)
_add(
    "kaggle-classes",
    "detections",
    "kaggle",
    {"a.csv": "image_id,PredictionString\na,car 0.9 70 14 160 180\nb,dog 1 0 0 1 1 car 0.5 1 2 3 4\n"},
    truth="words",
)
