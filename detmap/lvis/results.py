"""`LVISResults`: results on a data set, cut at the caps of lvis-api."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any

from detmap.lvis.lvis import LVIS
from detmap.pycocotools import mask as mask_utils


class LVISResults(LVIS):
    """Results on a data set.

    Parameters
    ----------
    lvis_gt : LVIS or str
        The data set, or its file.
    results : str or list of dict
        A JSON file of records, or the records; ``id``, ``area``, ``bbox`` and ``segmentation`` are added to them. The
        first record decides whether all hold boxes or masks.
    max_dets : int
        The cap on the detections of an image, of all categories together; -1 is none.
    max_dets_per_cat : int
        The cap on the detections of a category on all images, after that on images; -1 is none. The 2021 challenge and
        "fixed AP" have 10,000, and no cap on images.
    max_dets_per_im : int, optional
        Alias of `max_dets` in the challenge's branch.

    Raises
    ------
    IndexError
        Where there are no results.
    AssertionError
        For anything but a list, or images that the data set lacks.
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
    """Return the `most` best records of each value of a field; groups that are cut, or with `every` all groups, are
    sorted.
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
