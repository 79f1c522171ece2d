"""faster_coco_eval's `COCO`: pycocotools' class with further arguments and methods."""

from __future__ import annotations

import copy
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import detmap
from detmap.pycocotools import coco
from detmap.pycocotools._names import also_called_in_snake_case, other_name

_log = logging.getLogger(__name__)


def signed(thing: object, arguments: str) -> str:
    """Return the repr of an object, with author and version as in faster_coco_eval."""
    return (
        f"{type(thing).__name__}({arguments}) # __author__='The detmap developers'; __version__='{detmap.__version__}';"
    )


class COCO(coco.COCO):
    """A data set, or results on one; output goes to `print_function`.

    Parameters
    ----------
    annotation_file : path, dict, optional
        A JSON file in COCO's format, or the parsed content of such a file.
    use_deepcopy : bool
        Whether records in a dict, and records given to `loadRes`, are copied, so that the given records stay unchanged.
    print_function : callable of str
        Receives progress messages; by default a logger.

    Notes
    -----
    As in faster_coco_eval, image ids become integers. Missing ``iscrowd``, ``num_keypoints`` and ``area`` of an
    annotation count as 0; the record is not changed.
    """

    _takes_no_results = True
    img_ann_map, cat_img_map = other_name("imgToAnns"), other_name("catToImgs")

    def __init__(
        self,
        annotation_file: Any = None,
        use_deepcopy: bool = False,
        print_function: Callable[[str], object] = _log.debug,
    ) -> None:
        self.print_function, self.use_deepcopy = print_function, use_deepcopy
        self.annotation_file = annotation_file
        super().__init__()
        if annotation_file is not None:
            self._say("loading annotations into memory...")
            if not isinstance(annotation_file, str | os.PathLike | dict | list):
                raise TypeError(f"type {type(annotation_file)} is not supported")
            dataset = self.load_json(annotation_file, use_deepcopy)
            assert type(dataset) is dict, f"annotations must be a JSON object, not a {type(dataset).__name__}"
            self.dataset = dataset
            self.createIndex()

    def _say(self, text: Any) -> None:
        self.print_function(str(text))

    def _empty(self) -> COCO:
        return COCO(use_deepcopy=self.use_deepcopy, print_function=self.print_function)

    @staticmethod
    def load_json(json_file: Any, use_deepcopy: bool | None = False) -> Any:
        """Return the content of a JSON file, or a copy of any other value: a deep copy with `use_deepcopy`, else shallow."""
        if isinstance(json_file, str | os.PathLike):
            return coco._load_json(json_file)
        return copy.deepcopy(json_file) if use_deepcopy else json_file.copy()

    def createIndex(self) -> None:
        """Rebuild the indices of ``dataset``."""
        self.dataset.update({name: list(value) for name, value in self.dataset.items() if isinstance(value, Iterator)})
        _make_integers(self.dataset.get("images", ()), "id")
        _make_integers(self.dataset.get("annotations", ()), "image_id")
        super().createIndex()
        if 0 in self.anns:
            warnings.warn(
                "an annotation has the id 0: a detection matched with it counts as unmatched; number annotations from 1",
                UserWarning,
                stacklevel=3,
            )

    def loadRes(self, resFile: Any, min_score: float = 0.0) -> coco.COCO:
        """Return results on this data set; unlike in pycocotools, the results may be empty.

        Parameters
        ----------
        resFile : path, list of dict, or ndarray of shape (n, 7)
            As for `detmap.pycocotools.coco.COCO.loadRes`.
        min_score : float
            Minimum score; records with a lower score are left out.
        """
        if isinstance(resFile, np.ndarray):
            anns: Any = self.loadNumpyAnnotations(resFile)
        elif isinstance(resFile, str | os.PathLike | dict | list):
            anns = self.load_json(resFile, self.use_deepcopy)
        else:
            raise TypeError(f"type {type(resFile)} is not supported")
        if min_score and isinstance(anns, list):
            anns = [ann for ann in anns if ann.get("score", 1) >= min_score]
        return super().loadRes(anns)

    def getAnnIds(self, imgIds: Any = None, catIds: Any = None, areaRng: Any = None, iscrowd: Any = None) -> list[Any]:
        """Return the ids of the annotations that pass all filters; None and empty filters are ignored."""
        between = _listed(areaRng)
        images = dict.fromkeys(_listed(imgIds))  # a repeated image counts once, unlike in pycocotools
        ids = super().getAnnIds(list(images), _listed(catIds), between if len(between) == 2 else [])
        if iscrowd is None:
            return ids
        return [i for i in ids if int(self.anns[i].get("iscrowd", 0)) == int(iscrowd)]

    def getCatIds(self, catNms: Any = None, supNms: Any = None, catIds: Any = None) -> list[Any]:
        """Return the ids of the categories that pass all filters; None and empty filters are ignored."""
        filters = {"name": _listed(catNms), "supercategory": _listed(supNms), "id": _listed(catIds)}
        if isinstance(catNms, str):
            filters["name"] = [catNms]
        if isinstance(supNms, str):
            filters["supercategory"] = [supNms]
        used = {field: wanted for field, wanted in filters.items() if len(wanted)}
        cats = self.dataset["categories"]
        return [cat["id"] for cat in cats if all(cat.get(field) in wanted for field, wanted in used.items())]

    def getImgIds(self, imgIds: Any = None, catIds: Any = None) -> list[Any]:
        """Return the ids of the images that pass both filters; None and empty filters are ignored."""
        return super().getImgIds(_listed(imgIds), _listed(catIds))

    def loadAnns(self, ids: Any = None) -> list[Any]:
        """Return a list of the annotations with the given id or ids."""
        return [self.anns[i] for i in _integers(ids)]

    def loadCats(self, ids: Any = None) -> list[Any]:
        """Return a list of the categories with the given id or ids."""
        return [self.cats[i] for i in _integers(ids)]

    def loadImgs(self, ids: Any = None) -> list[Any]:
        """Return a list of the images with the given id or ids."""
        return [self.imgs[i] for i in _integers(ids)]

    def to_dict(self, separate_fn: bool = False) -> dict[str, Any]:
        """Return the data set as one dict.

        Parameters
        ----------
        separate_fn : bool
            Whether unmatched annotations, marked ``fn``, get separate categories named ``…_fn``.
        """
        cats = [dict(cat) for cat in self.cats.values()]
        anns = [dict(ann) for ann in self.anns.values()]
        if separate_fn:
            highest = max(cat["id"] for cat in cats)
            cats += [{**cat, "id": cat["id"] + highest, "name": f"{cat['name']}_fn"} for cat in cats]
            for ann in anns:
                if ann.get("fn"):
                    ann["category_id"] += highest
        return {
            "info": {"description": "Created from detmap"},
            "images": list(self.imgs.values()),
            "annotations": anns,
            "categories": cats,
        }

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Iterate over the items of `to_dict`."""
        yield from self.to_dict().items()

    def dump(self, output_file: Any) -> None:
        """Write the data set to a JSON file."""
        with open(output_file, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file, ensure_ascii=False, indent=4)

    def __repr__(self) -> str:
        return signed(self, "annotation_file")


also_called_in_snake_case(COCO, ("getAnnIds", "getImgIds"))
also_called_in_snake_case(COCO, ("loadAnns", "loadCats", "loadImgs"), defaults=False)
also_called_in_snake_case(COCO, ("getCatIds",), catNms="cat_names", supNms="sup_names")


def _listed(ids: Any) -> Any:
    return [] if ids is None else ids if coco._isArrayLike(ids) else list(ids) if hasattr(ids, "__iter__") else [ids]


def _integers(ids: Any) -> list[Any]:
    """Return one id, or several, as a list; raise TypeError unless all ids are integers."""
    listed = [] if ids is None else [ids] if isinstance(ids, str | bytes) or not coco._isArrayLike(ids) else list(ids)
    for kind in set(map(type, listed)):
        if kind is bool or not issubclass(kind, int | np.integer):
            raise TypeError("ids must be an int or an iterable of ints")
    return listed


def _make_integers(records: Any, name: str) -> None:
    for record in records:
        if type(record[name]) is not int:
            record[name] = int(record[name])
