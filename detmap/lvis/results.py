"""`LVISResults`: detections on a data set, limited per image and per category as in lvis-api."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any

from detmap.lvis.lvis import LVIS
from detmap.pycocotools import mask as mask_utils


class LVISResults(LVIS):
    """Detections on a data set.

    Parameters
    ----------
    lvis_gt : LVIS or str
        The data set, or the path of its JSON file.
    results : str or list of dict
        The path of a JSON file of records, or the records. Each record gets ``id``, ``area``, ``bbox`` and
        ``segmentation``. The first record decides whether all records are read as boxes or as masks.
    max_dets : int
        Maximum number of detections per image, over all categories; -1 for no maximum.
    max_dets_per_cat : int
        Maximum number of detections per category, over all images, applied after `max_dets`; -1 for no maximum. The
        2021 challenge and "fixed AP" use 10,000, and no maximum per image.
    max_dets_per_im : int, optional
        Alias of `max_dets` in lvis-api's branch for the 2021 challenge.

    Raises
    ------
    IndexError
        If there are no results.
    AssertionError
        If the results are not a list, or are on images that the data set lacks.
    """

    def __init__(
        self,
        lvis_gt: Any,
        results: Any,
        max_dets: int = 300,
        max_dets_per_cat: int = -1,
        max_dets_per_im: int | None = None,
    ) -> None:
        self.logger = logging.getLogger(__name__)
        if isinstance(lvis_gt, LVIS):
            self.dataset = dict(lvis_gt.dataset)
        elif isinstance(lvis_gt, str):
            self.dataset = self._load_json(lvis_gt)
        else:
            raise TypeError(f"lvis_gt must be an LVIS or the path of a file, not {lvis_gt!r}")
        anns = self._load_json(results) if isinstance(results, str) else results
        assert isinstance(anns, list), "results must be a list of records"
        self.max_dets_per_im = max_dets if max_dets_per_im is None else max_dets_per_im
        self.max_dets_per_cat = max_dets_per_cat
        if self.max_dets_per_im >= 0:
            anns = self.limit_dets_per_image(anns, self.max_dets_per_im)
        if self.max_dets_per_cat >= 0:
            anns = self.limit_dets_per_cat(anns, self.max_dets_per_cat)
        if "bbox" in anns[0]:
            for number, ann in enumerate(anns, 1):
                x, y, width, height = ann["bbox"]
                right, bottom = x + width, y + height
                ann.setdefault("segmentation", [[x, y, x, bottom, right, bottom, right, y]])
                ann["area"] = width * height
                ann["id"] = number
        elif "segmentation" in anns[0]:
            shapes = [ann["segmentation"] for ann in anns]
            areas, boxes = mask_utils.area(shapes), mask_utils.toBbox(shapes)
            for number, (ann, area, box) in enumerate(zip(anns, areas, boxes, strict=True), 1):
                ann["area"] = area
                ann.setdefault("bbox", box)
                ann["id"] = number
        self.dataset["annotations"] = anns
        self._create_index()
        strange = {ann["image_id"] for ann in anns} - self.imgs.keys()
        assert not strange, f"results are on {len(strange)} images that the data set does not have"

    def limit_dets_per_image(self, anns: Any, max_dets: int) -> list[Any]:
        """Return the best detections of each image; images are in order of first appearance."""
        return _limited(anns, "image_id", max_dets, every=False)

    def limit_dets_per_cat(self, anns: Any, max_dets: int) -> list[Any]:
        """Return the best detections of each category; categories are in order of first appearance."""
        return _limited(anns, "category_id", max_dets, every=True)

    def get_top_results(self, img_id: Any, score_thrs: float) -> list[Any]:
        """Return the detections of an image whose scores are above a threshold."""
        return [ann for ann in self.load_anns(self.get_ann_ids(img_ids=[img_id])) if ann["score"] > score_thrs]


def _limited(anns: Any, field: str, most: int, *, every: bool) -> list[Any]:
    """Group records by the value of a field and return the `most` best records of each group.

    A group is sorted by score if it has more than `most` records, or if `every` is true.
    """
    groups = defaultdict(list)
    for ann in anns:
        groups[ann[field]].append(ann)
    out = []
    for group in groups.values():
        if every or len(group) > most:
            group = sorted(group, key=lambda ann: ann["score"], reverse=True)[:most]
        out += group
    return out
