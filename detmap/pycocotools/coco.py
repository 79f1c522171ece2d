"""`COCO`: a data set or a set of results in memory, with pycocotools' indices."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import os
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Ids, index_ids
from detmap.errors import shorten
from detmap.pycocotools import mask as maskUtils


def _isArrayLike(obj: Any) -> bool:
    return hasattr(obj, "__iter__") and hasattr(obj, "__len__")


def _listed(ids: Any) -> Any:
    return ids if _isArrayLike(ids) else [ids]


def _members(ids: Any) -> Any:
    """Return ids as a set, for fast look-ups, or unchanged if they cannot be hashed."""
    if isinstance(ids, str | bytes):
        return ids
    try:
        return set(ids)
    except TypeError:
        return ids


def _load_json(path: Any) -> Any:
    with open(path, "rb") as file:
        data = file.read()
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return json.loads(data.decode())  # json accepts NaN, and raises the same errors as in pycocotools


@dataclass(frozen=True)
class Results:
    """Records given to `loadRes`; derived fields and indices are computed lazily.

    ``held`` is "bbox", "segm" or "keypoints". As in pycocotools, the first record decides it for all records.
    """

    dataset: dict[str, Any]
    records: list[Any]
    images: Ids
    held: str


_DERIVED = ("dataset", "anns", "imgToAnns", "catToImgs")


class COCO:
    """A data set, or results on one.

    Parameters
    ----------
    annotation_file : str, optional
        A JSON file in COCO's format. Without a file the object is empty: set ``dataset`` and call `createIndex`.

    Attributes
    ----------
    dataset : dict
        Content of the file.
    anns, cats, imgs : dict
        Records by id; of records with the same id, the last one.
    imgToAnns : defaultdict of list
        Annotation records by image id.
    catToImgs : defaultdict of list
        Image ids by category id, one for each annotation of the category.

    Notes
    -----
    As in pycocotools, `loadRes` adds ``id``, ``area``, ``iscrowd``, ``bbox`` and ``segmentation`` to the records, but
    only when an attribute or method of the returned object first reads the annotations. Most evaluations never read them.
    A record that lacks a field, or has an invalid box, raises an error at that time.
    """

    _takes_no_results = False  # whether `loadRes` accepts an empty list, for which pycocotools raises an IndexError

    dataset: dict[str, Any]
    anns: dict[Any, Any]
    imgToAnns: defaultdict[Any, list[Any]]
    catToImgs: defaultdict[Any, list[Any]]

    def __init__(self, annotation_file: Any = None) -> None:
        self.dataset, self.anns = {}, {}
        self.cats: dict[Any, Any] = {}
        self.imgs: dict[Any, Any] = {}
        self.imgToAnns, self.catToImgs = defaultdict(list), defaultdict(list)
        if annotation_file is not None:
            self._say("loading annotations into memory...")
            tic = time.time()
            dataset = _load_json(annotation_file)
            assert type(dataset) is dict, f"annotations must be a JSON object, not a {type(dataset).__name__}"
            self._say(f"Done (t={time.time() - tic:0.2f}s)")
            self.dataset = dataset
            self.createIndex()

    def __getattr__(self, name: str) -> Any:
        if name in _DERIVED and "_results" in self.__dict__:
            self._derive()
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _derive(self) -> None:
        """Add derived fields to the records of `loadRes`, and index the records."""
        results: Results = self.__dict__["_results"]
        _extend(results.held, results.records)
        del self.__dict__["_results"]
        dataset = {**results.dataset, "annotations": results.records}
        # Attributes that were assigned since `loadRes` are kept.
        for name, value in zip(("dataset", *_INDICES), (dataset, *_index(dataset)), strict=True):
            self.__dict__.setdefault(name, value)

    def _say(self, text: Any) -> None:
        print(text)

    def _empty(self) -> COCO:
        return COCO()

    def createIndex(self) -> None:
        """Rebuild the indices of ``dataset``."""
        self._say("creating index...")
        made = _index(self.dataset)
        self._say("index created!")
        self.__dict__.pop("_results", None)
        for name, value in zip(_INDICES, made, strict=True):
            setattr(self, name, value)

    def info(self) -> None:
        """Print the data set's ``info``."""
        for key, value in self.dataset["info"].items():
            self._say(f"{key}: {value}")

    def getAnnIds(self, imgIds: Any = (), catIds: Any = (), areaRng: Any = (), iscrowd: Any = None) -> list[Any]:
        """Return the ids of the annotations that pass all filters; empty filters are ignored.

        Parameters
        ----------
        imgIds, catIds : id or sequence of ids
            The images, which determine the order of the result, and the categories.
        areaRng : (float, float)
            Exclusive bounds of the area.
        iscrowd : bool, optional
            Required value of ``iscrowd``.
        """
        imgIds, catIds = _listed(imgIds), _listed(catIds)
        if len(imgIds):
            known = self.imgToAnns
            anns = list(itertools.chain.from_iterable(known[i] for i in imgIds if i in known))
        else:
            anns = self.dataset["annotations"]
        if len(catIds):
            wanted = _members(catIds)
            anns = [ann for ann in anns if ann["category_id"] in wanted]
        if len(areaRng):
            anns = [ann for ann in anns if areaRng[0] < ann["area"] < areaRng[1]]
        if iscrowd is not None:
            anns = [ann for ann in anns if ann["iscrowd"] == iscrowd]
        return [ann["id"] for ann in anns]

    def getCatIds(self, catNms: Any = (), supNms: Any = (), catIds: Any = ()) -> list[Any]:
        """Return the ids of the categories with given names, supercategories and ids; empty filters are ignored."""
        cats = self.dataset["categories"]
        for field, wanted in (("name", catNms), ("supercategory", supNms), ("id", catIds)):
            listed = _listed(wanted)
            if len(listed):
                cats = [cat for cat in cats if cat[field] in listed]
        return [cat["id"] for cat in cats]

    def getImgIds(self, imgIds: Any = (), catIds: Any = ()) -> list[Any]:
        """Return the ids of the images in `imgIds` (by default all) that have every category in `catIds`."""
        imgIds, catIds = _listed(imgIds), _listed(catIds)
        if len(imgIds) == len(catIds) == 0:
            return list(self.imgs.keys())
        ids = set(imgIds)
        for i, category in enumerate(catIds):
            if i == 0 and not ids:
                ids = set(self.catToImgs[category])
            else:
                ids &= set(self.catToImgs[category])
        return list(ids)

    def loadAnns(self, ids: Any = ()) -> Any:
        """Return the annotations with the given ids; for a single id, a list of one annotation."""
        return _look_up(self.anns, ids)

    def loadCats(self, ids: Any = ()) -> Any:
        """Return the categories with the given ids; for a single id, a list of one category."""
        return _look_up(self.cats, ids)

    def loadImgs(self, ids: Any = ()) -> Any:
        """Return the images with the given ids; for a single id, a list of one image."""
        return _look_up(self.imgs, ids)

    def loadRes(self, resFile: Any) -> COCO:
        """Return results on this data set.

        Parameters
        ----------
        resFile : str, list of dict, or ndarray of shape (n, 7)
            A JSON file, a list of records, or rows of image id, x, y, width, height, score, category id. The first record
            decides the kind of all records: captions, boxes, masks or keypoints.

        Raises
        ------
        AssertionError
            If the records are not a list, or an image is not in this data set.
        IndexError
            If there are no results.
        """
        dataset: dict[str, Any] = {
            "info": copy.deepcopy(self.dataset.get("info", {})),
            "images": list(self.dataset["images"]),
        }
        self._say("Loading and preparing results...")
        tic = time.time()
        if type(resFile) is str:
            anns = _load_json(resFile)
        elif type(resFile) is np.ndarray:
            anns = self.loadNumpyAnnotations(resFile)
        else:
            anns = resFile
        assert type(anns) is list, "results must be a list of records"
        if not anns and self._takes_no_results:
            res = self._empty()
            none: dict[str, Any] = {"categories": copy.deepcopy(self.dataset.get("categories", [])), "annotations": []}
            res.dataset = {**dataset, **none}
            res.createIndex()
            return res
        image_ids = [ann["image_id"] for ann in anns]
        images = _index_of(image_ids)
        named = set(image_ids if images is None else images.ids.tolist())
        known = set(self.getImgIds())
        if not named <= known:
            record = next(i for i, image in enumerate(image_ids) if image not in known)
            raise AssertionError(
                f"results: record {record} is on image {shorten(image_ids[record])}, which the data set does not have"
                f" (as {len(named - known)} of the results' {len(named)} images)"
            )
        first, held = anns[0], None
        if "caption" in first:
            dataset["images"] = [img for img in dataset["images"] if img["id"] in named]
            for number, ann in enumerate(anns, 1):
                ann["id"] = number
        else:
            if "bbox" in first and first["bbox"] != []:
                held = "bbox"
            elif "segmentation" in first:
                held = "segm"
            elif "keypoints" in first:
                held = "keypoints"
            if held is not None:
                dataset["categories"] = copy.deepcopy(self.dataset["categories"])
                if images is None:
                    _extend(held, anns)
        self._say(f"DONE (t={time.time() - tic:0.2f}s)")
        res = self._empty()
        if held is not None and images is not None:
            self._say("creating index...")
            index = dict(zip(_INDICES, _index(dataset), strict=True))
            res.imgs, res.cats = index["imgs"], index["cats"]
            for name in _DERIVED:
                del res.__dict__[name]
            res.__dict__["_results"] = Results(dataset, anns, images, held)
            self._say("index created!")
        else:
            res.dataset = {**dataset, "annotations": anns}
            res.createIndex()
        return res

    def loadNumpyAnnotations(self, data: Any) -> list[dict[str, Any]]:
        """Return rows of image id, x, y, width, height, score and category id as records."""
        self._say("Converting ndarray to lists...")
        assert type(data) is np.ndarray
        self._say(data.shape)
        assert data.shape[1] == 7
        records = []
        for i, (image, x, y, width, height, score, category) in enumerate(data):
            if i % 1_000_000 == 0:
                self._say(f"{i}/{data.shape[0]}")
            box = [x, y, width, height]
            records.append({"image_id": int(image), "bbox": box, "score": score, "category_id": int(category)})
        return records

    def annToRLE(self, ann: dict[str, Any]) -> Any:
        """Return an annotation's ``segmentation`` (polygons or a mask) as a run-length mask."""
        image = self.imgs[ann["image_id"]]
        height, width = image["height"], image["width"]
        segmentation = ann["segmentation"]
        if type(segmentation) is list:
            return maskUtils.merge(maskUtils.frPyObjects(segmentation, height, width))
        if type(segmentation["counts"]) is list:
            return maskUtils.frPyObjects(segmentation, height, width)
        return segmentation

    def annToMask(self, ann: dict[str, Any]) -> Any:
        """Return an annotation's mask as an array of 0 and 1, shape (height, width)."""
        return maskUtils.decode(self.annToRLE(ann))

    def download(self, tarDir: Any = None, imgIds: Any = ()) -> Any:
        """Download images (by default all) from ``coco_url`` into a folder; existing files are kept."""
        from urllib.request import urlretrieve

        if tarDir is None:
            self._say("Please specify target directory")
            return -1
        images = self.loadImgs(imgIds) if len(imgIds) else list(self.imgs.values())
        os.makedirs(tarDir, exist_ok=True)
        for i, image in enumerate(images):
            tic = time.time()
            path = os.path.join(tarDir, image["file_name"])
            if not os.path.exists(path):
                urlretrieve(image["coco_url"], path)
            self._say(f"downloaded {i}/{len(images)} images (t={time.time() - tic:0.1f}s)")
        return None

    def showAnns(self, anns: Any, draw_bbox: bool = False) -> Any:
        """Draw polygons, masks, keypoints and, with `draw_bbox`, boxes on the current matplotlib axes; print captions."""
        if len(anns) == 0:
            return 0
        if "segmentation" in anns[0] or "keypoints" in anns[0]:
            self._draw(anns, draw_bbox)
        elif "caption" in anns[0]:
            for ann in anns:
                self._say(ann["caption"])
        else:
            raise Exception("datasetType not supported: annotations have neither masks, keypoints nor captions")
        return None

    def _draw(self, anns: Any, draw_bbox: bool) -> None:
        import matplotlib.pyplot as plt
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Polygon

        rng = np.random.default_rng()
        axes = plt.gca()
        axes.set_autoscale_on(False)
        shapes, colors = [], []
        for ann in anns:
            color = rng.uniform(0.4, 1.0, 3)
            outlines: list[Any] = []
            segmentation = ann.get("segmentation", [])
            if type(segmentation) is list:
                outlines += [np.array(polygon).reshape(-1, 2) for polygon in segmentation]
            else:
                inside = self.annToMask(ann)
                tint = np.array([2.0, 166.0, 101.0]) / 255 if ann["iscrowd"] else rng.random(3)
                axes.imshow(np.dstack([np.broadcast_to(tint, (*inside.shape, 3)), inside * 0.5]))
            if type(ann.get("keypoints")) is list:
                x, y, seen = np.array(ann["keypoints"]).reshape(-1, 3).T
                for bone in np.array(self.loadCats(ann["category_id"])[0]["skeleton"]) - 1:
                    if (seen[bone] > 0).all():
                        axes.plot(x[bone], y[bone], linewidth=3, color=color)
                for least, edge in ((0, "k"), (1, color)):
                    at = seen > least
                    axes.plot(x[at], y[at], "o", markersize=8, color=color, markeredgecolor=edge, markeredgewidth=2)
            if draw_bbox:
                left, top, width, height = ann["bbox"]
                right, bottom = left + width, top + height
                outlines.append(np.array([[left, top], [left, bottom], [right, bottom], [right, top]]))
            shapes += [Polygon(outline) for outline in outlines]
            colors += [color] * len(outlines)
        axes.add_collection(PatchCollection(shapes, facecolor=colors, linewidths=0, alpha=0.4))
        axes.add_collection(PatchCollection(shapes, facecolor="none", edgecolors=colors, linewidths=2))


_INDICES = ("anns", "imgToAnns", "catToImgs", "imgs", "cats")


def with_lists(dataset: dict[str, Any]) -> dict[str, Any]:
    """Return a data set with iterators replaced by lists, and empty lists for missing keys."""
    lists = {name: dataset.get(name, []) for name in ("images", "annotations", "categories")}
    if all(name in dataset and hasattr(records, "__len__") for name, records in lists.items()):
        return dataset
    return {**dataset, **{name: _once_more(records) for name, records in lists.items()}}


def _once_more(values: Any) -> Any:
    """Return a list of an iterator's items; other values unchanged."""
    return list(values) if isinstance(values, Iterator) else values


def taking_iterators(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method to accept iterators in place of lists."""

    @functools.wraps(method)
    def taken(self: Any, *given: Any, **named: Any) -> Any:
        return method(self, *map(_once_more, given), **{name: _once_more(value) for name, value in named.items()})

    return taken


def _index(dataset: dict[str, Any]) -> tuple[Any, ...]:
    anns: dict[Any, Any] = {}
    by_image: defaultdict[Any, list[Any]] = defaultdict(list)
    images_of: defaultdict[Any, list[Any]] = defaultdict(list)
    for ann in dataset.get("annotations", ()):
        by_image[ann["image_id"]].append(ann)
        anns[ann["id"]] = ann
    imgs = {img["id"]: img for img in dataset.get("images", ())}
    cats = {cat["id"]: cat for cat in dataset.get("categories", ())}
    if "categories" in dataset:
        for ann in dataset.get("annotations", ()):
            images_of[ann["category_id"]].append(ann["image_id"])
    return anns, by_image, images_of, imgs, cats


def _look_up(records: dict[Any, Any], ids: Any) -> Any:
    if _isArrayLike(ids):
        return [records[i] for i in ids]
    return [records[ids]] if type(ids) is int else None


def integers(values: list[Any]) -> NDArray[np.int64]:
    """Return a list of integers as an array of int64, three times as fast as numpy, which infers the type.

    Raises
    ------
    struct.error
        If a value is not an integer, or exceeds 64 bits.
    """
    array: NDArray[np.int64] = np.frombuffer(struct.pack(f"{len(values)}q", *values), np.int64)
    return array


def _index_of(ids: list[Any]) -> Ids | None:
    """Return an index of the image ids; None unless all ids are integers or all are strings."""
    try:
        return index_ids(integers(ids), source="results", field="image_id")
    except struct.error:
        return index_ids(ids, source="results", field="image_id") if set(map(type, ids)) == {str} else None


def _extend(held: str, records: list[Any]) -> None:
    """Add to records the fields that pycocotools' `loadRes` adds; `held` is the kind of the records."""
    extend = {"bbox": _extend_box, "segm": _extend_mask, "keypoints": _extend_keypoints}[held]
    if held == "segm" and _extend_masks(records):
        return
    for number, ann in enumerate(records, 1):
        extend(number, ann)


def _extend_masks(records: list[Any]) -> bool:
    """Add the fields of `_extend_mask` to all records at once; return False if a record has no compressed mask."""
    try:
        masks = [ann["segmentation"] for ann in records]
        areas, boxes = maskUtils.area(masks), maskUtils.toBbox(masks)
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError):
        return False
    for number, (ann, area, box) in enumerate(zip(records, areas, boxes, strict=True), 1):
        ann["area"] = area
        if "bbox" not in ann:
            ann["bbox"] = box.copy()
        ann["id"] = number
        ann["iscrowd"] = 0
    return True


def _extend_box(number: int, ann: dict[str, Any]) -> None:
    box = ann["bbox"]
    left, right, top, bottom = box[0], box[0] + box[2], box[1], box[1] + box[3]
    if "segmentation" not in ann:
        ann["segmentation"] = [[left, top, left, bottom, right, bottom, right, top]]
    ann["area"] = box[2] * box[3]
    ann["id"] = number
    ann["iscrowd"] = 0


def _extend_mask(number: int, ann: dict[str, Any]) -> None:
    ann["area"] = maskUtils.area(ann["segmentation"])
    if "bbox" not in ann:
        ann["bbox"] = maskUtils.toBbox(ann["segmentation"])
    ann["id"] = number
    ann["iscrowd"] = 0


def _extend_keypoints(number: int, ann: dict[str, Any]) -> None:
    x, y = ann["keypoints"][0::3], ann["keypoints"][1::3]
    left, right, top, bottom = np.min(x), np.max(x), np.min(y), np.max(y)
    ann["area"] = (right - left) * (bottom - top)
    ann["id"] = number
    ann["bbox"] = [left, top, right - left, bottom - top]
