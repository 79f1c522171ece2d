"""faster_coco_eval's classes: pycocotools' classes with further arguments and metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from detmap.errors import InputError
from detmap.masks import Masks
from detmap.pycocotools import cocoeval, fast, faster_metrics
from detmap.pycocotools._names import PARAMS, also_snake_case, other_name
from detmap.pycocotools.faster_coco import COCO, signed

__all__ = ["COCO", "COCOeval", "COCOeval_faster", "Params"]

_log = logging.getLogger(__name__)
#: Row of a summary: precision (1) or recall (0), IoU threshold, area range, and cap.
_Row = tuple[int, float | None, str, int]
#: Suffixes of AR at COCO's caps, as in ``AR_second`` for 10 detections. At other caps, the suffix is the cap.
_CAPS = {1: "all", 10: "second", 100: "third"}
_CROWD = "keypoints_crowd"
_KINDS = ("segm", "bbox", cocoeval.BOUNDARY, "keypoints", _CROWD)
#: Defaults of fields that a record may lack.
_DEFAULTS = {"iscrowd": 0, "area": 0, "num_keypoints": 0}


class Params(cocoeval.Params):
    """Parameters of an evaluation; see `detmap.pycocotools.cocoeval.Params`.

    Parameters
    ----------
    iouType : {"segm", "bbox", "boundary", "keypoints", "keypoints_crowd"}
        The geometry whose overlap is measured.
    kpt_sigmas : sequence of float, optional
        Standard deviation of annotators for each keypoint, relative to object size; by default COCO's sigmas.
    ranges : mapping of str to [float, float], optional
        Minimum and maximum area by name; by default COCO's small, medium and large.
    """

    def __init__(
        self,
        iouType: str = "segm",
        kpt_sigmas: Sequence[float] | None = None,
        ranges: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        if iouType not in _KINDS:
            raise TypeError(f"iouType must be one of {', '.join(_KINDS)}")
        self.iouType = iouType
        if "keypoints" in iouType:
            self.setKpParams()
            if kpt_sigmas is not None:
                self.kpt_oks_sigmas = np.array(kpt_sigmas)
        else:
            self.setDetParams()
            if ranges is not None:
                self.areaRngLbl = ["all", *ranges]
                self.areaRng = [self.areaRng[0], *map(list, ranges.values())]
        self.compute_rle = iouType in ("segm", cocoeval.BOUNDARY)
        self.compute_boundary = iouType == cocoeval.BOUNDARY
        self.imgCountLbl = ["r", "c", "f"]

    @property
    def useSegm(self) -> Any:
        """1 if masks are evaluated, else 0; deprecated in favour of `iouType`."""
        return int(self.iouType == "segm")

    @useSegm.setter
    def useSegm(self, value: Any) -> None:
        _log.warning("useSegm is deprecated: set iouType")
        self.iouType = "segm" if value == 1 else "bbox"


also_snake_case(Params, [*PARAMS, "imgCountLbl"])


class COCOeval_faster(cocoeval.COCOeval):
    """The evaluation of results against a data set; the numbers are also available by name.

    Parameters
    ----------
    cocoGt, cocoDt
        As for `detmap.pycocotools.cocoeval.COCOeval`.
    iouType : {"segm", "bbox", "keypoints", "keypoints_crowd", "boundary"}
        The geometry whose overlap is measured.
    ranges : dict of str to [float, float], optional
        Minimum and maximum area by name; by default COCO's small, medium and large.
    print_function : callable of str
        Receives progress messages and the lines of the summary; by default a logger.
    extra_calc : bool
        Whether `accumulate` marks each annotation as matched or not; see `math_matches`.
    kpt_oks_sigmas : sequence of float, optional
        Standard deviation of annotators for each keypoint, relative to object size; by default COCO's sigmas.
    use_area : bool
        If False, keypoint similarity uses 0.53 times the area of an object's box instead of ``area``, as CrowdPose does.
    lvis_style : bool
        Whether LVIS's lists of categories are used; not supported for keypoints. Detections of a category that annotators
        did not look for on the image are left out. Unmatched detections are ignored if the category is not exhaustively
        annotated on the image. Caps and other rules are COCO's. For LVIS's numbers, use `detmap.lvis` or
        ``protocol="lvis"``.
    boundary_dilation_ratio : float
        Width of a boundary, inwards from the contour, as a share of the image's diagonal.
    separate_eval, boundary_cpu_count, rle_iou_max_workers
        As in faster_coco_eval; these change no number.

    Attributes
    ----------
    all_stats : ndarray of float64
        The numbers that `summarize` prints: ``stats``; for boxes and masks also recall at overlaps of 0.5 and 0.75; with
        `extra_calc` also mIoU and mAUC.
    matched : bool
        Whether `accumulate` has marked the annotations.

    Raises
    ------
    InputError
        From `evaluate`, if a score is NaN. faster_coco_eval raises a ValueError; pycocotools ranks NaN last.
    """

    _unique = staticmethod(cocoeval.unique_of_any)
    _poses = ("keypoints", _CROWD)
    _refusal = ValueError
    _told: Callable[[str], object] = staticmethod(_log.info)

    def __init__(
        self,
        cocoGt: Any = None,
        cocoDt: Any = None,
        iouType: str = "segm",
        ranges: Mapping[str, Sequence[float]] | None = None,
        print_function: Callable[[str], object] | None = None,
        extra_calc: bool = False,
        kpt_oks_sigmas: Sequence[float] | None = None,
        use_area: bool | None = True,
        lvis_style: bool = False,
        separate_eval: bool = False,
        boundary_dilation_ratio: float = 0.02,
        boundary_cpu_count: int = 1,
        rle_iou_max_workers: int = 8,
    ) -> None:
        if type(rle_iou_max_workers) is not int or rle_iou_max_workers < 1:
            raise ValueError("rle_iou_max_workers must be a positive integer")
        if lvis_style and iouType == "keypoints":
            _log.warning("lvis_style is not supported for keypoints")
            lvis_style = False
        self.print_function: Callable[[str], object] = self._told if print_function is None else print_function
        self.extra_calc, self.matched, self.lvis_style = extra_calc, False, lvis_style
        self.use_area, self.separate_eval = use_area, separate_eval
        self.boundary_dilation_ratio, self.boundary_cpu_count = boundary_dilation_ratio, boundary_cpu_count
        self.rle_iou_max_workers = rle_iou_max_workers
        self._made_with = (kpt_oks_sigmas, ranges)
        super().__init__(cocoGt, cocoDt, iouType)
        if cocoGt is not None and iouType == "keypoints":
            self.params.catIds = sorted(cocoGt.catToImgs)
        for data in (cocoGt, cocoDt):
            if data is not None and self.print_function == print:
                data.print_function = print

    def __getattr__(self, name: str) -> Any:
        if name in ("all_stats", "stats_as_dict", "extended_metrics"):
            raise AttributeError(f"Please run summarize() first: there is no {name} yet")
        return super().__getattr__(name)

    @property
    def eval(self) -> dict[str, Any]:
        """The output of `accumulate`, computed on first access if necessary, unless ``separate_eval`` is set."""
        if not self._found and self._paramsEval and not self.separate_eval:
            with self._silently():
                self._accumulate()
        return self._found

    @eval.setter
    def eval(self, value: dict[str, Any]) -> None:
        self._found = value

    def _say(self, text: str) -> None:
        self.print_function(text)

    @contextmanager
    def _silently(self) -> Iterator[None]:
        said, self.print_function = self.print_function, lambda text: None
        try:
            yield
        finally:
            self.print_function = said

    def _new_params(self, kind: str) -> cocoeval.Params:
        return Params(kind, *self._made_with)

    def _records(self, data: Any, filters: Mapping[str, Any]) -> list[Any]:
        """Return copies of the records, with defaults for missing fields."""
        return [{**_DEFAULTS, **record} for record in super()._records(data, filters)]

    def _federated(self) -> fast.Federated | None:
        if not self.lvis_style:
            return None
        images = [self.cocoGt.imgs[image] for image in self.params.imgIds]
        fields = ("neg_category_ids", "not_exhaustive_category_ids")
        return fast.Federated(*({image["id"]: image.get(field, []) for image in images} for field in fields))

    @property
    def freq_groups(self) -> list[list[int]]:
        """The indices into ``params.catIds`` of the categories in each group of ``imgCountLbl``."""
        labels: list[str] = vars(self.params)["imgCountLbl"]
        groups: list[list[int]] = [[] for _ in labels]
        for place, category in enumerate(self.cocoGt.loadCats(self.params.catIds)):
            groups[labels.index(category["frequency"])].append(place)
        return groups

    def _compared(self, image: Any, category: Any) -> bool:
        """Return whether a cell (image and category) has both detections and ground truth."""
        return all(cocoeval._cell(self.params, side, image, category) for side in (self._gts, self._dts))

    def _check_kind(self) -> None:
        if self.params.iouType not in _KINDS:
            raise ValueError(f"p.iouType must be one of {', '.join(_KINDS)}, not {self.params.iouType}")

    def evaluate(self) -> None:
        """Match the detections of every image with the image's ground truth."""
        self._check_kind()
        super().evaluate()

    def _add_boundaries(self, data: Any, anns: list[Any]) -> None:
        """Add the boundary of each mask as ``boundary`` to the annotation, and to its record in the data set."""
        masks = Masks.from_rle([ann["segmentation"] for ann in anns], source="segmentation")
        made = masks.boundary(self.boundary_dilation_ratio).to_rle()
        for ann, boundary in zip(anns, made, strict=True):
            ann[cocoeval.BOUNDARY] = {"size": boundary["size"], "counts": boundary["counts"].encode()}
            data.anns[ann["id"]][cocoeval.BOUNDARY] = ann[cocoeval.BOUNDARY]

    def _evaluate_images(self) -> None:
        super()._evaluate_images()
        # The fast path does not handle NaN scores. faster_coco_eval refuses every evaluated detection whose score is
        # NaN.
        for (image, category), found in self._dts.items():
            for d in found:
                score = d.get("score")
                if score != score and image in self.params.imgIds and category in self.params.catIds:
                    self.evalImgs, self._paramsEval = [], {}  # no matches are left for `accumulate`
                    raise InputError(
                        "Detection scores must not be NaN",
                        source="results",
                        record=f"id {d['id']} on image {image}",
                        field="score",
                        value=float(score),
                        remedy="leave out the record: NaN has no place in a ranking",
                    )

    #: Alias of `evalImgs`. Training code reads and assigns it to evaluate batch by batch.
    _evalImgs_cpp = other_name("evalImgs")

    def accumulate(self, p: Any = None) -> None:
        """Compute precision and recall from the matches, store both in ``eval``, and mark annotations if `extra_calc`.

        Raises
        ------
        AssertionError
            If ``separate_eval`` is set, and `evaluate` was not called. Without ``separate_eval`` the call does nothing.
        """
        self.matched = False
        if not self._paramsEval:
            assert not self.separate_eval, "evaluate() comes before accumulate()"
            return
        self._accumulate(p)
        if self.extra_calc:
            self.math_matches()
            self.matched = True

    def _accumulate(self, p: Any = None) -> None:
        p = self.params if p is None else p
        categories = p.catIds
        super().accumulate(p)
        p.catIds = categories  # without useCats pycocotools sets catIds to [-1], and cannot evaluate again
        self._found = faster_metrics.Accumulated(self._found, self)

    def math_matches(self) -> None:
        """Write the matches into the annotations.

        A detection that is matched at any threshold gets ``tp``, ``gt_id`` and ``iou``, any other detection ``fp``. A
        matched object gets ``dt_id``, any other object ``fn``.
        """
        faster_metrics.mark(self.cocoGt.anns, self.cocoDt.anns, self.eval["matched"])

    def compute_mIoU(self) -> float:
        """Return the mean overlap of all matches.

        Raises
        ------
        RuntimeError
            If `accumulate` was not called.
        """
        matched = self.eval.get("matched")
        if matched is None:
            raise RuntimeError("Matching comes first: call evaluate() and accumulate()")
        return sum(matched.values()) / len(matched) if matched else 0.0

    def compute_mAUC(self) -> float:
        """Return the mean area under the curves of all categories and area ranges, at the first IoU threshold.

        Raises
        ------
        RuntimeError
            If `accumulate` was not called.
        """
        if "counts" not in self.eval or "precision" not in self.eval:
            raise RuntimeError("Accumulation comes first: call evaluate() and accumulate()")
        _, _, categories, areas, _ = self.eval["counts"]
        curves = [self.eval["precision"][0, :, k, a, :].ravel() for k in range(categories) for a in range(areas)]
        found = [self.calc_auc(self.params.recThrs, curve) for curve in curves]
        defined = [value for value in found if value != -1]
        return sum(defined) / len(defined) if defined else 0.0

    @staticmethod
    def calc_auc(recall_list: Any, precision_list: Any, method: str = "c++") -> float:
        """Return the area under the envelope of a precision-recall curve.

        Parameters
        ----------
        recall_list, precision_list : array_like of float
            Recall and precision at each point of the curve.
        method : {"c++", "py"}
            "c++" sums in extended precision and rounds to 15 decimals; "py" sums in double precision.
        """
        return faster_metrics.area_under(recall_list, precision_list, extended=method == "c++")

    @property
    def extended_metrics(self) -> dict[str, Any]:
        """The metrics of each class, with precision and recall at the score threshold with the best mean F1.

        ``class_map`` is a list of dicts with ``class``, ``map@50:95``, ``map@50``, ``precision`` and ``recall``. The
        list has a dict for each class with defined metrics, then a dict for "all". ``map`` is AP50; ``precision`` and
        ``recall`` are means over classes.
        """
        return faster_metrics.extended(self)

    def _rows(self) -> list[tuple[str, _Row | None]]:
        """Return the name and the row of each number in `summarize`. A number without a row is 0 and is not printed."""
        p = self.params
        most, areas = p.maxDets[-1], [] if p.iouType == _CROWD else p.areaRngLbl[1:]
        rows: list[tuple[str, _Row | None]] = []
        for ap, kind in ((1, "AP"), (0, "AR")):
            whole: list[tuple[str, _Row]] = [(f"{kind}_all", (ap, None, "all", most))]
            by_overlap: list[tuple[str, _Row]] = [(f"{kind}_{t * 100:.0f}", (ap, t, "all", most)) for t in (0.5, 0.75)]
            by_area: list[tuple[str, _Row]] = [(f"{kind}_{area}", (ap, None, area, most)) for area in areas]
            if ap or p.iouType in self._poses:
                rows += whole + by_overlap + by_area
            else:
                named = self.lvis_style or list(p.maxDets) == list(_CAPS)
                names = [*_CAPS.values(), *map(str, p.maxDets[3:])] if named else list(map(str, p.maxDets))
                caps: list[_Row | None] = [(0, None, "all", cap) for cap in p.maxDets]
                caps += [None] * (len(names) - len(caps))
                rows += [(f"AR_{name}", row) for name, row in zip(names, caps, strict=True)]
                rows += by_area + by_overlap
        return rows

    def summarize(self) -> None:
        """Print the numbers and store them in ``all_stats``; ``stats`` gets only the numbers that pycocotools prints too."""
        if not self.eval:
            raise Exception("Please run accumulate() first")
        self._check_kind()
        self._whose = "catIds=all" if self.lvis_style else ""
        rows = self._rows()
        values = [self._summarize(*row) if row is not None else 0.0 for _, row in rows]
        if self.lvis_style:
            values += self._summarize_groups()
        if self.params.iouType == _CROWD:
            values += self._summarize_crowds()
        self.all_stats = np.array(values)
        poses = self.params.iouType in self._poses
        self.stats = self.all_stats if poses else self.all_stats[: -5 if self.lvis_style else -2]
        if self.matched:
            self.all_stats = np.append(self.all_stats, [self.compute_mIoU(), self.compute_mAUC()])

    def _summarize_groups(self) -> list[float]:
        """Print and return the AP of rare, common and frequent categories."""
        values, p = [], self.params
        for label, places in zip(vars(p)["imgCountLbl"], self.freq_groups, strict=True):
            self._whose = f"catIds={label:>3s}"
            values.append(self._summarize(1, None, "all", p.maxDets[-1], places))
        return values

    def _summarize_crowds(self) -> list[float]:
        """Print and return the AP of easy, medium and hard images, by crowd index."""
        p = self.params
        thresholds, cap = f"{p.iouThrs[0]:0.2f}:{p.iouThrs[-1]:0.2f}", p.maxDets[-1]
        values = self.get_type_result(0.2, 0.8)
        for name, value in zip(("easy", "medium", "hard"), values, strict=True):
            self._say(
                f" {'Average Precision':<18} (AP) @[ IoU={thresholds:<9} | type={name:>6s} | maxDets={cap:>3d} ]"
                f" = {value:0.3f}"
            )
        return values

    def get_type_result(self, first: float = 0.01, second: float = 0.85) -> list[float]:
        """Evaluate easy, medium and hard images, and return the AP of each.

        Parameters
        ----------
        first, second : float
            Bounds of ``crowdIndex``: easy images are below `first`, medium images below `second`.

        Notes ----- AP is the mean of all values of ``precision`` in the first area range, including -1 for categories
        without positives, rounded to four decimals. As in faster_coco_eval, ``params`` and ``eval`` then hold the
        values of the hard images.
        """
        out = []
        with self._silently():
            for images in self.split(self.cocoGt.annotation_file, first, second):
                self.params.imgIds = images
                self.evaluate()
                self.accumulate()
                out.append(round(float(np.mean(self.eval["precision"][:, :, :, 0, :])), 4))
        return out

    def split(self, gt_file: Any, first: float = 0.01, second: float = 0.85) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the ids of the easy, medium and hard images of a data set's file; see `get_type_result`."""
        split: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        for image in COCO.load_json(gt_file, use_deepcopy=True)["images"]:
            index = image["crowdIndex"]
            split[0 if index < first else 1 if index < second else 2].append(image["id"])
        return split

    def run(self) -> None:
        """Call `evaluate`, `accumulate` and `summarize`."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    @property
    def stats_as_dict(self) -> dict[str, float]:
        """The numbers that `summarize` prints, by name: AP_all, AP_50, AP_75, AP_small and so on."""
        self._check_kind()
        values = self.all_stats
        names = [name for name, _ in self._rows()]
        names += ["APr", "APc", "APf"] if self.lvis_style else []
        if self.params.iouType == _CROWD:
            names += ["AP_easy", "AP_medium", "AP_hard"]
        if self.matched:
            names += ["mIoU", f"mAUC_{int(self.params.iouThrs[0] * 100)}"]
        return dict(zip(names, map(float, values), strict=True))

    def __str__(self) -> str:
        self.summarize()
        return repr(self)

    def __repr__(self) -> str:
        return signed(self, "")


class COCOeval(COCOeval_faster):
    """A `COCOeval_faster` that by default prints its output, as pycocotools does."""

    _told = staticmethod(print)
