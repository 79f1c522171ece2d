"""`LVIS`: a data set in memory, with lvis-api's indices."""

from __future__ import annotations

import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from detmap.pycocotools import mask as mask_utils


class LVIS:
    """A data set in LVIS's JSON.

    Parameters
    ----------
    annotation_path : str
        The path of the JSON file.

    Attributes
    ----------
    dataset : dict
        The content of the file.
    anns, cats, imgs : dict
        Records by id; of records with the same id, the last one.
    img_ann_map : defaultdict of list
        The annotation records of each image, by image id.
    cat_img_map : defaultdict of list
        The image id of each annotation of a category, by category id.
    """

    dataset: dict[str, Any]

    def __init__(self, annotation_path: str) -> None:
        self.logger = logging.getLogger(__name__)
        self.logger.info("Loading annotations.")
        self.dataset = self._load_json(annotation_path)
        assert type(self.dataset) is dict, f"annotations must be a JSON object, not a {type(self.dataset).__name__}"
        self._create_index()

    def _load_json(self, path: Any) -> Any:
        with open(path) as file:
            return json.load(file)

    def _create_index(self) -> None:
        """Rebuild the indices of ``dataset``."""
        self.img_ann_map: defaultdict[Any, list[Any]] = defaultdict(list)
        self.cat_img_map: defaultdict[Any, list[Any]] = defaultdict(list)
        self.anns: dict[Any, Any] = {}
        for ann in self.dataset["annotations"]:
            self.img_ann_map[ann["image_id"]].append(ann)
            self.cat_img_map[ann["category_id"]].append(ann["image_id"])
            self.anns[ann["id"]] = ann
        self.imgs: dict[Any, Any] = {img["id"]: img for img in self.dataset["images"]}
        self.cats: dict[Any, Any] = {cat["id"]: cat for cat in self.dataset["categories"]}
        self.logger.info("Index created.")

    def get_ann_ids(self, img_ids: Any = None, cat_ids: Any = None, area_rng: Any = None) -> list[Any]:
        """Return the ids of the annotations on some images and of some categories; None selects all.

        Parameters
        ----------
        img_ids, cat_ids : sequence of ids, optional
            The images and the categories. The annotation ids are returned in the order of `img_ids`.
        area_rng : (float, float), optional
            Exclusive bounds of the area; by default 0 and infinity if `cat_ids` are given, else none.

        Raises
        ------
        TypeError
            If `area_rng` is given without `cat_ids`, as in lvis-api.
        """
        anns: Iterable[Any] = self.dataset["annotations"]
        if img_ids is not None:
            anns = [ann for image in img_ids for ann in self.img_ann_map[image]]
        if cat_ids is None and area_rng is None:
            return [ann["id"] for ann in anns]
        wanted = set(cat_ids)
        low, high = (0, float("inf")) if area_rng is None else area_rng
        return [ann["id"] for ann in anns if ann["category_id"] in wanted and low < ann["area"] < high]

    def get_cat_ids(self) -> list[Any]:
        """Return the ids of all categories."""
        return list(self.cats)

    def get_img_ids(self) -> list[Any]:
        """Return the ids of all images."""
        return list(self.imgs)

    def load_anns(self, ids: Any = None) -> list[Any]:
        """Return the annotations with the given ids; by default all."""
        return self._load_helper(self.anns, ids)

    def load_cats(self, ids: Any) -> list[Any]:
        """Return the categories with the given ids; by default all."""
        return self._load_helper(self.cats, ids)

    def load_imgs(self, ids: Any) -> list[Any]:
        """Return the images with the given ids; by default all."""
        return self._load_helper(self.imgs, ids)

    def _load_helper(self, known: dict[Any, Any], ids: Any) -> list[Any]:
        return list(known.values()) if ids is None else [known[one] for one in ids]

    def download(self, save_dir: str, img_ids: Any = None) -> None:
        """Download images (by default all) from their ``coco_url`` into a folder; existing files are kept."""
        from urllib.request import urlretrieve

        os.makedirs(save_dir, exist_ok=True)
        for img in self.load_imgs(img_ids):
            path = os.path.join(save_dir, img["coco_url"].split("/")[-1])
            if not os.path.exists(path):
                urlretrieve(img["coco_url"], path)

    def ann_to_rle(self, ann: Any) -> Any:
        """Return the run-length mask of an annotation's polygons or mask."""
        image, shape = self.imgs[ann["image_id"]], ann["segmentation"]
        if isinstance(shape, list):
            return mask_utils.merge(mask_utils.frPyObjects(shape, image["height"], image["width"]))
        if isinstance(shape["counts"], list):
            return mask_utils.frPyObjects(shape, image["height"], image["width"])
        return shape

    #: pycocotools' name, by which `Segmentations` calls the method.
    annToRLE = ann_to_rle

    def ann_to_mask(self, ann: Any) -> Any:
        """Return an annotation's mask as an array of 0 and 1, shape (height, width)."""
        return mask_utils.decode(self.ann_to_rle(ann))
