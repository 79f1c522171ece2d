"""`LVISEval` and `Params`: lvis-api's evaluation, computed by detmap."""

from __future__ import annotations

import datetime
import logging
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.detection.evaluate import match
from detmap.detection.matches import IGNORED, Matches, match_pairs
from detmap.detection.precisions import Curves, recalls
from detmap.detection.protocols import LVIS as PRESET
from detmap.detection.protocols import Protocol
from detmap.detection.tally import Tally
from detmap.lvis.lvis import LVIS
from detmap.lvis.results import LVISResults
from detmap.plugins import PluginName
from detmap.pycocotools import mask as mask_utils
from detmap.pycocotools.records import Segmentations
from detmap.shapes import Column

_KINDS = ("bbox", "segm", "boundary")


class Params:
    """Parameters of an evaluation.

    Parameters
    ----------
    iou_type : {"segm", "bbox", "boundary"}
        The regions whose overlap is measured: masks, boxes, or boundary regions.
    """

    def __init__(self, iou_type: str) -> None:
        self.img_ids: Any = []
        self.cat_ids: Any = []
        self.iou_thrs: Any = np.linspace(0.5, 0.95, 10)
        self.rec_thrs: Any = np.linspace(0.0, 1.0, 101)
        self.max_dets = 300
        self.max_dets_per_cat = -1
        self.area_rng: Any = [[0.0, 1e5**2], [0.0, 32**2], [32**2, 96**2], [96**2, 1e5**2]]
        self.area_rng_lbl = ["all", "small", "medium", "large"]
        self.use_cats = 1
        self.img_count_lbl = ["r", "c", "f"]
        self.iou_type = iou_type


class LVISEval:
    """The evaluation of results against a data set.

    Parameters
    ----------
    lvis_gt : LVIS or str
        The data set, or the path of its JSON file.
    lvis_dt : LVISResults, str or list of dict
        The results, the path of their JSON file, or a list of records.
    iou_type : {"segm", "bbox", "boundary"}
        The regions whose overlap is measured: masks, boxes, or boundary regions.
    mode : {"default", "challenge2021"}
        ``"challenge2021"`` uses boundary IoU, and at most 10,000 detections per category instead of 300 per image, as
        in the branch of the 2021 challenge.
    dilation_ratio : float
        The width of a boundary region, as a share of the image's diagonal.
    max_cpu_num : int
        Ignored.

    Attributes
    ----------
    params : Params
        The parameters, which may be changed before `evaluate`.
    eval : dict
        ``precision`` (T, R, K, A), ``recall`` (T, K, A), ``dt_pointers``, ``counts``, ``params`` and ``date``.
    results : OrderedDict
        The thirteen metrics that `summarize` computes.
    eval_imgs : list of dict or None
        The matches for each category, area range and image, in this order; computed lazily.

    Notes ----- All numbers equal lvis-api's numbers, ``precision`` and ``recall`` to the last bit, except after a
    second `evaluate`, in which lvis-api scores the records of the first evaluation again.
    """

    def __init__(
        self,
        lvis_gt: Any,
        lvis_dt: Any,
        iou_type: str = "segm",
        mode: str = "default",
        dilation_ratio: float = 0.02,
        max_cpu_num: int = 80,
    ) -> None:
        self.logger = logging.getLogger(__name__)
        if mode not in ("default", "challenge2021"):
            raise ValueError(f"mode must be 'default' or 'challenge2021', not {mode!r}")
        challenge = mode == "challenge2021"
        iou_type = "boundary" if challenge else iou_type
        if iou_type not in _KINDS:
            raise ValueError(f"iou_type must be one of {', '.join(_KINDS)}, not {iou_type!r}")
        if isinstance(lvis_gt, LVIS):
            self.lvis_gt = lvis_gt
        elif isinstance(lvis_gt, str):
            self.lvis_gt = LVIS(lvis_gt)
        else:
            raise TypeError(f"lvis_gt must be an LVIS or the path of a file, not {lvis_gt!r}")
        caps = {"max_dets": -1, "max_dets_per_cat": 10_000} if challenge else {}
        if isinstance(lvis_dt, LVISResults):
            self.lvis_dt = lvis_dt
            own = (lvis_dt.max_dets_per_im, lvis_dt.max_dets_per_cat)
            assert not challenge or own == (-1, 10_000), (
                f"mode='challenge2021' needs results with max_dets=-1 and max_dets_per_cat=10000, not {own}"
            )
        elif isinstance(lvis_dt, str | list):
            self.lvis_dt = LVISResults(self.lvis_gt, lvis_dt, **caps)
        else:
            raise TypeError(f"lvis_dt must be an LVISResults, records, or the path of a file, not {lvis_dt!r}")
        self.dilation_ratio = dilation_ratio
        self.params = Params(iou_type)
        if challenge:
            self.params.max_dets, self.params.max_dets_per_cat = caps["max_dets"], caps["max_dets_per_cat"]
        self.params.img_ids = sorted(self.lvis_gt.get_img_ids())
        self.params.cat_ids = sorted(self.lvis_gt.get_cat_ids())
        self.eval: dict[str, Any] = {}
        self.results: OrderedDict[str, Any] = OrderedDict()
        self.freq_groups: list[list[int]] = []
        self._made: _Evaluation | None = None

    def run(self) -> None:
        """Evaluate, accumulate and summarize."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    def evaluate(self) -> None:
        """Match the detections of every image with its ground truth.

        Raises
        ------
        KeyError
            For an image without ``neg_category_ids`` or ``not_exhaustive_category_ids``, or a category without
            ``frequency``.
        """
        p = self.params
        p.img_ids = list(np.unique(p.img_ids))
        self.logger.info("Evaluate annotation type *%s*", p.iou_type)
        self.freq_groups = self._prepare_freq_group()
        self._made = _Evaluation(self.lvis_gt, self.lvis_dt, p, self.dilation_ratio)
        self.__dict__.pop("eval_imgs", None)

    def _prepare_freq_group(self) -> list[list[int]]:
        """Return for each frequency group the indices of its categories in ``params.cat_ids``."""
        labels = self.params.img_count_lbl
        groups: list[list[int]] = [[] for _ in labels]
        for place, category in enumerate(self.lvis_gt.load_cats(self.params.cat_ids)):
            groups[labels.index(category["frequency"])].append(place)
        return groups

    @cached_property
    def eval_imgs(self) -> list[Any]:
        """The matches for each category, area range and image, in this order; None without objects and detections."""
        return [] if self._made is None else self._made.images()

    def compute_iou(self, img_id: Any, cat_id: Any) -> Any:
        """Return the overlaps of an image's detections (best score first) with its objects of a category, shape (d, g)."""
        assert self._made is not None, "evaluate() comes before compute_iou()"
        return self._made.overlaps(img_id, cat_id)

    def accumulate(self) -> None:
        """Compute precision and recall from the matches, and store the arrays in ``eval``."""
        if self._made is None:
            self.logger.warning("Please run evaluate first.")
            return
        precision, recall = self._made.arrays()
        self.eval = {
            "params": self.params,
            "counts": [*precision.shape],
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            "precision": precision,
            "recall": recall,
            "dt_pointers": _Pointers(self._made),
        }

    def _summarize(
        self, summary_type: str, iou_thr: float | None = None, area_rng: str = "all", freq_group_idx: int | None = None
    ) -> Any:
        """Return the mean of the selected values that are defined; -1 if there are none."""
        areas = [place for place, name in enumerate(self.params.area_rng_lbl) if name == area_rng]
        values = self.eval["precision" if summary_type == "ap" else "recall"]
        if iou_thr is not None:
            values = values[np.where(iou_thr == self.params.iou_thrs)[0]]
        if summary_type == "ap" and freq_group_idx is not None:
            values = values[:, :, self.freq_groups[freq_group_idx]]
        values = values[..., areas]
        defined = values[values > -1]
        return np.mean(defined) if len(defined) else -1

    def summarize(self) -> None:
        """Compute the thirteen metrics, and store them in ``results``.

        Raises
        ------
        RuntimeError
            If `accumulate` was not called.
        """
        if not self.eval:
            raise RuntimeError("Please run accumulate() first.")
        made = self.results
        made["AP"] = self._summarize("ap")
        made["AP50"] = self._summarize("ap", iou_thr=0.50)
        made["AP75"] = self._summarize("ap", iou_thr=0.75)
        for area in ("small", "medium", "large"):
            made[f"AP{area[0]}"] = self._summarize("ap", area_rng=area)
        for group, name in enumerate("rcf"):
            made[f"AP{name}"] = self._summarize("ap", freq_group_idx=group)
        caps = self._caps()
        made[f"AR@{caps}"] = self._summarize("ar")
        for area in ("small", "medium", "large"):
            made[f"AR{area[0]}@{caps}"] = self._summarize("ar", area_rng=area)

    def _caps(self) -> str:
        """Return the maximum numbers of detections, as text for the names of metrics."""
        image, category = self.params.max_dets, self.params.max_dets_per_cat
        if category < 0:
            return str(image)
        return f"{category}/cat" if image < 0 else f"{image}/im,{category}/cat"

    def print_results(self) -> None:
        """Print the thirteen metrics."""
        p = self.params
        for key, value in self.results.items():
            title, kind = ("Average Precision", "(AP)") if "AP" in key else ("Average Recall", "(AR)")
            detail = key[2:3]
            iou = f"{int(key[2:]) / 100:0.2f}" if detail.isdigit() else f"{p.iou_thrs[0]:0.2f}:{p.iou_thrs[-1]:0.2f}"
            area = detail if detail in ("s", "m", "l") else "all"
            group = detail if detail in ("r", "c", "f") else "all"
            print(
                f" {title:<18} {kind} @[ IoU={iou:<9} | area={area:>6s} | maxDets={self._caps():>3s} catIds={group:>3s}] = "
                f"{value:0.3f}"
            )

    def get_results(self) -> OrderedDict[str, Any]:
        """Return ``results``."""
        if not self.results:
            self.logger.warning("results is empty. Call run().")
        return self.results


class _Evaluation:
    """The tables of an evaluation, and the matches between the tables."""

    def __init__(self, lvis_gt: LVIS, lvis_dt: LVISResults, p: Params, dilation: float) -> None:
        self.areas = [tuple(one) for one in p.area_rng]
        self.cat_ids, self.img_ids, self.thresholds = list(p.cat_ids), list(p.img_ids), len(p.iou_thrs)
        self.use_cats, self.kind = bool(p.use_cats), PluginName(p.iou_type)
        gts, dts = (
            data.load_anns(data.get_ann_ids(img_ids=p.img_ids, cat_ids=p.cat_ids)) for data in (lvis_gt, lvis_dt)
        )
        for gt in gts:
            gt.setdefault("ignore", 0)
        # The index of a category in `cat_ids` is its id in the tables, because it orders equal scores without categories.
        self.place = {category: k for k, category in enumerate(dict.fromkeys(self.cat_ids))}
        if not self.use_cats:  # lvis-api sorts the records of an image by category
            gts, dts = (sorted(records, key=lambda one: self.place[one["category_id"]]) for records in (gts, dts))
        self.gts, self.dts = gts, dts
        lists: dict[str, Any] = {
            field: {
                image["id"]: [self.place[one] for one in image[field] if one in self.place]
                for image in lvis_gt.load_imgs(p.img_ids)
            }
            for field in ("neg_category_ids", "not_exhaustive_category_ids")
        }
        self.truth = GroundTruth.from_arrays(
            **self._columns(gts, lvis_gt),
            areas=[float(gt["area"]) for gt in gts],
            difficult=[bool(gt["ignore"]) for gt in gts],
            zero_ids=[gt["id"] == 0 for gt in gts],
            images=self.img_ids,
            categories=range(len(self.place)),
            **lists,
        )
        self.found = Detections.from_arrays(
            **self._columns(dts, lvis_dt),
            areas=[float(dt["area"]) for dt in dts],
            scores=np.array([dt["score"] for dt in dts], np.float64),
        )
        self.protocol: Protocol = replace(
            PRESET,
            name="lvis-api",
            iou_type=self.kind,
            iou_thresholds=tuple(np.asarray(p.iou_thrs, np.float64).tolist()),
            recall_thresholds=tuple(np.asarray(p.rec_thrs, np.float64).tolist()),
            area_ranges=tuple((f"range {a}", float(low), float(high)) for a, (low, high) in enumerate(self.areas)),
            use_categories=self.use_cats,
            id_zero="missed",
            max_per_image=None,  # `LVISResults` has already applied the maximum
            without_area="scored",  # `get_ann_ids` has already left out records without area
            groups=(),
            dilation=dilation,
        )
        tally = match(self.truth, self.found, self.protocol, iou_type=self.kind)
        self.tally: Tally = tally.in_ranking_order()
        self.places = [self.place[one] for one in self.cat_ids] if self.use_cats else [0]

    def _columns(self, records: list[Any], data: LVIS) -> dict[str, Any]:
        """Return the columns that tables of ground truth and detections share."""
        columns: dict[str, Any] = {
            "image_ids": [one["image_id"] for one in records],
            "category_ids": [self.place[one["category_id"]] for one in records],
            "invalid_boxes": "miss",
        }
        if self.kind == "bbox":
            boxes = np.array([one["bbox"] for one in records], np.float64).reshape(-1, 4)
            return {**columns, "boxes": boxes}
        masks = Segmentations(records, data)
        masks.write()
        shapes: dict[str, Column] = {"segm": masks.column(None)}
        return {**columns, "shapes": shapes}

    def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return precision (T, R, K, A) and recall (T, K, A); -1 for categories without ground truth."""
        curves = Curves.of(self.tally, self.protocol.max_dets, False, None)
        precision = curves.precision[..., 0][:, :, self.places]
        recall = recalls(self.tally)[..., 0][:, self.places]
        return tuple(np.where(np.isnan(one), -1.0, one) for one in (precision, recall))  # type: ignore[return-value]

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The row in the table of detections for each row of the tally."""
        found = self._matches(0, 0)
        order = np.lexsort((self.tally.rank, self.tally.category, self.tally.image))
        rows = np.empty(len(self.tally), np.int64)
        rows[order] = found.detection
        return rows

    def _matches(self, area: int, threshold: int) -> Matches:
        name, iou = self.protocol.area_ranges[area][0], self.protocol.iou_thresholds[threshold]
        return match_pairs(self.truth, self.found, self.protocol, iou=iou, area=name, iou_type=self.kind)

    def pointers(self, k: int, a: int) -> dict[str, Any]:
        """Return a category's detections by descending score, with flags of true and false positives."""
        place, tally = self.places[k], self.tally
        if not tally.positives[place, a]:
            return {}
        some = slice(*tally.class_starts[place : place + 2].tolist())
        flags = {
            name: np.stack([tally.bit(words[some], a, t) for t in range(self.thresholds)])
            for name, words in (("hit", tally.hit), ("ignored", tally.ignored))
        }
        ids = np.array([self.dts[row]["id"] for row in self.rows[some]])
        return {"dt_ids": ids, "tps": flags["hit"], "fps": ~flags["hit"] & ~flags["ignored"]}

    def _cells(self) -> tuple[dict[Any, list[int]], dict[Any, list[int]]]:
        """Return the rows of objects, and of detections in the order of matching, for each pair of image and category."""
        gts, dts = defaultdict(list), defaultdict(list)
        for row, gt in enumerate(self.gts):
            gts[gt["image_id"], gt["category_id"] if self.use_cats else -1].append(row)
        for row in self._matches(0, 0).detection.tolist():
            dt = self.dts[row]
            dts[dt["image_id"], dt["category_id"] if self.use_cats else -1].append(row)
        return gts, dts

    def overlaps(self, image: Any, category: Any) -> Any:
        """Return the value of `LVISEval.compute_iou`."""
        gts, dts = self._cells()
        cell = image, category if self.use_cats else -1
        field = "bbox" if self.kind == "bbox" else "segmentation"
        of_gt, of_dt = ([data[row][field] for row in rows[cell]] for data, rows in ((self.gts, gts), (self.dts, dts)))
        return mask_utils.iou(of_dt, of_gt, [0] * len(of_gt))

    def images(self) -> list[Any]:
        """Return the value of `LVISEval.eval_imgs`."""
        gts, dts = self._cells()
        by_area = [self._of_area(a, gts, dts) for a in range(len(self.areas))]
        return [
            made.get((image, category))
            for category in (self.cat_ids if self.use_cats else [-1])
            for made in by_area
            for image in self.img_ids
        ]

    def _of_area(self, a: int, gts: dict[Any, list[int]], dts: dict[Any, list[int]]) -> dict[Any, Any]:
        """Return the matches in an area range by (image, category)."""
        (low, high), ids = self.areas[a], np.array([gt["id"] for gt in self.gts])
        found_ids = np.array([dt["id"] for dt in self.dts])
        matched = np.zeros((self.thresholds, len(self.dts)))
        taken, ignored = np.zeros((self.thresholds, len(self.gts))), np.zeros(matched.shape, np.bool_)
        for t in range(self.thresholds):
            made = self._matches(a, t)
            hit = made.ground_truth >= 0
            matched[t, made.detection[hit]] = ids[made.ground_truth[hit]]
            taken[t, made.ground_truth[hit]] = found_ids[made.detection[hit]]
            ignored[t, made.detection] = made.outcome == IGNORED
        out = {}
        for cell in {**gts, **dts}:
            own = {
                row: int(bool(self.gts[row]["ignore"]) or not low <= self.gts[row]["area"] <= high) for row in gts[cell]
            }
            truth, found = sorted(own, key=lambda row: own[row]), dts[cell]
            out[cell] = {
                "image_id": cell[0],
                "category_id": cell[1],
                "area_rng": list(self.areas[a]),
                "dt_ids": [self.dts[row]["id"] for row in found],
                "gt_ids": [self.gts[row]["id"] for row in truth],
                "dt_matches": matched[:, found],
                "gt_matches": taken[:, truth],
                "dt_scores": [self.dts[row]["score"] for row in found],
                "gt_ignore": np.array([own[row] for row in truth]),
                "dt_ignore": ignored[:, found],
            }
        return out


class _Pointers(Mapping[int, Any]):
    """lvis-api's ``dt_pointers``, computed when read."""

    def __init__(self, made: _Evaluation) -> None:
        self._made = made

    def __getitem__(self, k: int) -> dict[int, dict[str, Any]]:
        if k not in range(len(self)):
            raise KeyError(k)
        return {a: self._made.pointers(k, a) for a in range(len(self._made.areas))}

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self._made.places)
