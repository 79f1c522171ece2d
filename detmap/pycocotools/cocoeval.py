"""`COCOeval` and `Params`: pycocotools' evaluation on detmap's kernels. A cell is a pair of image and category."""

from __future__ import annotations

import copy
import datetime
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import keypoints as oks
from detmap.kernels import readonly
from detmap.kernels.assignment import assign
from detmap.pycocotools import fast
from detmap.pycocotools import mask as maskUtils
from detmap.pycocotools._curves import accumulate
from detmap.shapes.keypoints import rows_of

_INSIDE = ("_gts", "_dts", "ious", "evalImgs")
LENIENT = "lvis_mark"  # name of the field that marks a detection as ignored if unmatched
_BOX, _MASK, _KEYPOINTS = "bbox", "segm", "keypoints"
BOUNDARY = "boundary"  # supported only by subclasses of `COCOeval`


class COCOeval:
    """The evaluation of results against a data set.

    Parameters
    ----------
    cocoGt, cocoDt : COCO, optional
        The data set and the results; both may also be set later.
    iouType : {"segm", "bbox", "keypoints"}
        The geometry whose overlap is measured: masks, boxes or keypoints.

    Attributes
    ----------
    params : Params
        The parameters; may be changed in place or replaced before `evaluate`.
    evalImgs : list of dict or None
        The matches by category, area range and image, in this order; may be assigned.
    eval : dict
        ``precision`` and ``scores`` (T, R, K, A, M), ``recall`` (T, K, A, M), ``counts``, ``params`` and ``date``.
    stats : ndarray of float64
        The twelve numbers (keypoints: ten) that `summarize` prints.
    ious : dict
        Overlaps by (image, category): an array of shape (d, g), or an empty list.

    Notes ----- Usually all images are evaluated at once on detmap's kernels. Then ``evalImgs``, ``ious``, ``_gts`` and
    ``_dts`` are computed from the records when one of these attributes is first read. Images are evaluated one by one,
    as in pycocotools and with the same numbers, in three cases: if a method is overridden, if ``evalImgs`` was read or
    assigned, or if ids, boxes, masks, keypoints or params are unusual.
    """

    evalImgs: Any
    ious: Any
    _gts: Any
    _dts: Any
    _poses: tuple[str, ...] = (_KEYPOINTS,)
    _refusal: type[Exception] = Exception  # raised for an unknown iouType

    def __init__(self, cocoGt: Any = None, cocoDt: Any = None, iouType: str = _MASK) -> None:
        if not iouType:
            self._say("iouType not specified. use default iouType segm")
        self.cocoGt = cocoGt
        self.cocoDt = cocoDt
        self.evalImgs = defaultdict(list)
        self.eval: dict[str, Any] = {}
        self._gts = defaultdict(list)
        self._dts = defaultdict(list)
        self.params = self._new_params(iouType)
        self._paramsEval: Any = {}
        self.stats: Any = []
        self.ious = {}
        if cocoGt is not None:
            self.params.imgIds = sorted(cocoGt.getImgIds())
            self.params.catIds = sorted(cocoGt.getCatIds())

    def __getattr__(self, name: str) -> Any:
        if name in _INSIDE and "_snapshot" in self.__dict__:
            self._open()
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        if "_snapshot" in self.__dict__:
            self._open()
        return self.__dict__

    def _open(self) -> None:
        """Compute the attributes ``_gts``, ``_dts``, ``ious`` and ``evalImgs``, which `evaluate` does not set if it
        evaluates all images at once. Attributes assigned after `evaluate` are kept.
        """
        snapshot: fast.Snapshot = self.__dict__["_snapshot"]
        p = snapshot.params
        found = snapshot.dts()
        if p.iouType == BOUNDARY:
            self._add_boundaries(snapshot.results, found)
        gts, dts = _by_cell(snapshot.gts), _by_cell(self._judged(snapshot.gts, found))
        cells = [(image, category) for image in p.imgIds for category in (p.catIds if p.useCats else [-1])]
        overlap = partial(_cell_oks, own_area=self._own_area()) if p.iouType == _KEYPOINTS else _cell_ious
        ious = {cell: overlap(p, gts, dts, *cell) for cell in cells}
        made = (gts, dts, ious, _evaluate_cells(p, gts, dts, ious))
        del self.__dict__["_snapshot"]
        for name, value in zip(_INSIDE, made, strict=True):
            self.__dict__.setdefault(name, value)
        if self.__dict__["evalImgs"] is made[-1] and not snapshot.agrees(made[-1]):
            warnings.warn(
                "records were changed after evaluate(): evalImgs is made from them as they are now, and contradicts eval;"
                " call evaluate() again, or read evalImgs before you change them",
                UserWarning,
                stacklevel=3,
            )

    @staticmethod
    def _unique(ids: Any) -> list[Any]:
        return list(np.unique(ids))

    def _say(self, text: str) -> None:
        print(text)

    def _new_params(self, kind: str) -> Params:
        return Params(iouType=kind)

    def _records(self, data: Any, filters: Mapping[str, Any]) -> list[Any]:
        """Return the annotations of a data set that pass the filters of `getAnnIds`."""
        records: list[Any] = data.loadAnns(data.getAnnIds(**filters))
        return records

    def _compared(self, image: Any, category: Any) -> bool:
        """Return whether the overlaps for an image and category are computed; otherwise ``ious`` has an empty list."""
        return True

    def _whole(self) -> bool:
        """Return whether all images may be evaluated at once, because no step of `evaluate` is overridden."""
        return all(
            getattr(type(self), name, None) is method and name not in self.__dict__ for name, method in _STEPS.items()
        )

    def _prepare(self) -> None:
        """Collect the annotations selected by the params, by image and category; set ``ignore`` on the ground truth."""
        p = self.params
        filters = {"imgIds": p.imgIds, "catIds": p.catIds} if p.useCats else {"imgIds": p.imgIds}
        gts, dts = self._records(self.cocoGt, filters), self._records(self.cocoDt, filters)
        if p.iouType in (_MASK, BOUNDARY):
            for anns, coco in ((gts, self.cocoGt), (dts, self.cocoDt)):
                for ann in anns:
                    ann["segmentation"] = coco.annToRLE(ann)
                if p.iouType == BOUNDARY:
                    self._add_boundaries(coco, anns)
        for gt in gts:
            gt["ignore"] = gt.get("iscrowd", False)
            if p.iouType in self._poses:
                gt["ignore"] = gt["num_keypoints"] == 0 or gt["ignore"]
        self._gts, self._dts = _by_cell(gts), _by_cell(self._judged(gts, dts))
        self.evalImgs = defaultdict(list)
        self.eval = {}

    def _federated(self) -> fast.Federated | None:
        """Return LVIS's lists of categories per image; None if the evaluation does not use such lists."""
        return None

    def _judged(self, gts: list[Any], dts: list[Any]) -> list[Any]:
        """Return the detections whose category is annotated, or verified to be absent, on their image. Mark detections
        whose category is not exhaustively annotated on the image; marked detections are ignored if unmatched.
        """
        federated = self._federated()
        if federated is None:
            return dts
        there = {(gt["image_id"], gt["category_id"]) for gt in gts}
        kept = []
        for dt in dts:
            image, category = dt["image_id"], dt["category_id"]
            if (image, category) in there or category in federated.negatives.get(image, ()):
                dt[LENIENT] = category in federated.not_exhaustive.get(image, ())
                kept.append(dt)
        return kept

    def _add_boundaries(self, data: Any, anns: list[Any]) -> None:
        """Add the masks' boundaries to the annotations, in subclasses that compare boundaries."""

    def evaluate(self) -> None:
        """Match the detections of every image with the image's ground truth."""
        tic = time.time()
        self._say("Running per image evaluation...")
        p = self.params
        if vars(p).get("useSegm") is not None:
            p.iouType = _MASK if p.useSegm == 1 else _BOX
            self._say(f"useSegm (deprecated) is not None. Running {p.iouType} evaluation")
        self._say(f"Evaluate annotation type *{p.iouType}*")
        p.imgIds = self._unique(p.imgIds)
        if p.useCats:
            p.catIds = self._unique(p.catIds)
        p.maxDets = sorted(p.maxDets)
        self.params = p
        if not self._evaluate_whole():
            self._evaluate_images()
        self._say(f"DONE (t={time.time() - tic:0.2f}s).")

    def _evaluate_whole(self) -> bool:
        if self.params.iouType not in fast.KINDS or not self._whole():
            return False
        frozen = copy.deepcopy(self.params, {id(identity): identity for identity in self.params.imgIds})
        dilation = getattr(self, "boundary_dilation_ratio", None)
        try:
            data = self.cocoGt, self.cocoDt
            how = dilation, self._own_area(), self._federated()
            snapshot = fast.take(self.params, data, self._records, frozen, *how)
        except fast.UNUSUAL:
            return False  # evaluation image by image gives the same result or error as pycocotools
        if self.params.iouType == BOUNDARY:
            self._add_boundaries(self.cocoGt, snapshot.gts)
        for name in _INSIDE:
            self.__dict__.pop(name, None)
        self.__dict__["_snapshot"] = snapshot
        self.eval = {}
        self._paramsEval = frozen
        return True

    def _evaluate_images(self) -> None:
        p = self.params
        self._prepare()  # if this raises, evalImgs and other attributes are unchanged
        if self.__dict__.pop("_snapshot", None):
            self.ious = {}
        categories = p.catIds if p.useCats else [-1]
        if p.iouType in (_MASK, _BOX, BOUNDARY):
            overlap = self.computeIoU
        elif p.iouType in self._poses:
            overlap = self.computeOks
        self.ious = {
            (image, category): overlap(image, category) if self._compared(image, category) else []
            for image in p.imgIds
            for category in categories
        }
        if self._whole():
            self.evalImgs = _evaluate_cells(p, self._gts, self._dts, self.ious)
        else:
            self.evalImgs = [
                self.evaluateImg(image, category, area_range, p.maxDets[-1])
                for category in categories
                for area_range in p.areaRng
                for image in p.imgIds
            ]
        self._paramsEval = copy.deepcopy(self.params)

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        """Return the overlaps of detections (best score first) and objects of a category in an image, shape (d, g)."""
        return _cell_ious(self.params, self._gts, self._dts, imgId, catId, self._refusal)

    def computeOks(self, imgId: Any, catId: Any) -> Any:
        """Return the keypoint similarities of detections (best score first) and objects of a category in an image."""
        return _cell_oks(self.params, self._gts, self._dts, imgId, catId, self._own_area())

    def _own_area(self) -> bool:
        """Return whether keypoint similarity uses an object's ``area`` rather than a share of its box's area."""
        return bool(getattr(self, "use_area", True))

    def evaluateImg(self, imgId: Any, catId: Any, aRng: Any, maxDet: Any) -> Any:
        """Return the matches of one image, category and area range; None if there are no detections and no ground truth."""
        return _evaluate_cell(self.params, self._gts, self._dts, self.ious, imgId, catId, [aRng], maxDet)[0]

    def accumulate(self, p: Any = None) -> None:
        """Compute precision and recall from the matches, and store both in ``eval``.

        Parameters
        ----------
        p : Params, optional
            Parameters that select among the evaluated images, categories and area ranges; by default ``params``.
        """
        self._say("Accumulating evaluation results...")
        tic = time.time()
        whole: fast.Snapshot | None = self.__dict__.get("_snapshot")
        if "evalImgs" in self.__dict__ or (whole is not None and self._paramsEval is not whole.params):
            whole = None
        if whole is None and not self.evalImgs:
            self._say("Please run evaluate() first")
        if p is None:
            p = self.params
        p.catIds = p.catIds if p.useCats == 1 else [-1]
        arrays = whole.accumulate(p) if whole is not None else None
        if arrays is None:
            arrays = accumulate(p, self._paramsEval, self.evalImgs)
        self.eval = {
            "params": p,
            "counts": [len(p.iouThrs), len(p.recThrs), arrays["recall"].shape[1], len(p.areaRng), len(p.maxDets)],
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            **arrays,
        }
        self._say(f"DONE (t={time.time() - tic:0.2f}s).")

    def summarize(self) -> None:
        """Print the twelve numbers (keypoints: ten) and store them in ``stats``."""
        if not self.eval:
            raise Exception("Please run accumulate() first")
        rows = _KEYPOINT_ROWS if self.params.iouType == _KEYPOINTS else _BOX_ROWS
        stats = np.zeros(len(rows))
        for i, (precision, threshold, area, cap) in enumerate(rows):
            stats[i] = self._summarize(precision, threshold, area, cap if cap > 2 else self.params.maxDets[cap])
        self.stats = stats

    #: Text after ``maxDets`` in each line of the summary.
    _whose = ""

    def _summarize(
        self, ap: int = 1, iouThr: Any = None, areaRng: str = "all", maxDets: int = 100, places: Any = None
    ) -> Any:
        """Print and return the mean of the defined values, or -1 if there are none; `places` selects categories by index."""
        p = self.params
        areas = [i for i, label in enumerate(p.areaRngLbl) if label == areaRng]
        caps = [i for i, cap in enumerate(p.maxDets) if cap == maxDets]
        values = self.eval["precision" if ap == 1 else "recall"]
        if iouThr is not None:
            values = values[np.where(iouThr == p.iouThrs)[0]]
        if places is not None:
            values = values[:, :, places]
        values = values[..., areas, caps]
        defined = values[values > -1]
        mean = np.mean(defined) if len(defined) else -1
        name, short = ("Average Precision", "(AP)") if ap == 1 else ("Average Recall", "(AR)")
        overlap = f"{p.iouThrs[0]:0.2f}:{p.iouThrs[-1]:0.2f}" if iouThr is None else f"{iouThr:0.2f}"
        self._say(
            f" {name:<18} {short} @[ IoU={overlap:<9} | area={areaRng:>6s} | maxDets={maxDets:>3d} {self._whose}]"
            f" = {mean:0.3f}"
        )
        return mean

    def __str__(self) -> str:
        self.summarize()
        return None  # type: ignore[return-value]  # pycocotools prints, and then raises TypeError


def unique_of_any(ids: Any) -> list[Any]:
    """Return distinct ids in ascending order; unlike in pycocotools, `ids` may be an iterator."""
    return list(np.unique(list(ids) if isinstance(ids, Iterator) else ids))


_STEPS = {name: getattr(COCOeval, name) for name in ("_prepare", "computeIoU", "computeOks", "evaluateImg")}


#: Minimum and maximum area by name, in square pixels.
_AREAS = {"all": (0, 1e5**2), "small": (0, 32**2), "medium": (32**2, 96**2), "large": (96**2, 1e5**2)}


class Params:
    """Parameters of an evaluation.

    Parameters
    ----------
    iouType : {"segm", "bbox", "keypoints"}
        The geometry whose overlap is measured: masks, boxes or keypoints.

    Attributes
    ----------
    imgIds, catIds : list
        The images and categories; empty for all.
    iouThrs, recThrs : ndarray of float64
        Overlap and recall thresholds.
    areaRng : list of [float, float]
        Minimum and maximum area, inclusive; ``areaRngLbl`` holds the names of the ranges.
    maxDets : list of int
        Maximum numbers of detections per image and category.
    useCats : {0, 1}
        0 merges all categories.
    """

    def __init__(self, iouType: str = _MASK) -> None:
        if iouType in (_MASK, _BOX):
            self.setDetParams()
        elif iouType == _KEYPOINTS:
            self.setKpParams()
        else:
            raise Exception("iouType not supported")
        self.iouType = iouType
        self.useSegm: Any = None  # deprecated: sets iouType if it is not None

    def setDetParams(self) -> None:
        """Set the defaults for boxes and masks."""
        self._set([1, 10, 100], ["all", "small", "medium", "large"])

    def setKpParams(self) -> None:
        """Set the defaults for keypoints."""
        self._set([20], ["all", "medium", "large"])
        limbs = [0.26, 0.25, 0.25, 0.35, 0.35, 0.79, 0.79, 0.72, 0.72, 0.62, 0.62, 1.07, 1.07, 0.87, 0.87, 0.89, 0.89]
        self.kpt_oks_sigmas = np.array(limbs) / 10.0

    def _set(self, caps: list[int], areas: list[str]) -> None:
        self.imgIds: Any = []
        self.catIds: Any = []
        self.iouThrs: Any = np.linspace(0.5, 0.95, 10)
        self.recThrs: Any = np.linspace(0.0, 1.0, 101)
        self.maxDets: Any = caps
        self.areaRng: Any = [list(_AREAS[name]) for name in areas]
        self.areaRngLbl: Any = areas
        self.useCats: Any = 1


#: Rows of `summarize`: precision (1) or recall (0), IoU threshold, area range, and a cap. A cap below 3 is an index into
#: ``maxDets``.
_BOX_ROWS: list[tuple[int, float | None, str, int]] = [
    (1, None, "all", 100),
    (1, 0.5, "all", 2),
    (1, 0.75, "all", 2),
    *((1, None, area, 2) for area in ("small", "medium", "large")),
    *((0, None, "all", cap) for cap in (0, 1, 2)),
    *((0, None, area, 2) for area in ("small", "medium", "large")),
]
_KEYPOINT_ROWS = [
    (ap, threshold, area, 20)
    for ap in (1, 0)
    for threshold, area in ((None, "all"), (0.5, "all"), (0.75, "all"), (None, "medium"), (None, "large"))
]


def _by_cell(records: list[Any]) -> defaultdict[Any, list[Any]]:
    cells: defaultdict[Any, list[Any]] = defaultdict(list)
    for record in records:
        cells[record["image_id"], record["category_id"]].append(record)
    return cells


def _cell(p: Any, cells: Any, image: Any, category: Any) -> list[Any]:
    """Return the records of an image and category. Without `useCats`, return the image's records of all categories."""
    if p.useCats:
        records: list[Any] = cells[image, category]
        return records
    return [record for each in p.catIds for record in cells[image, each]]


def _best_first(dts: list[Any], cap: Any) -> list[Any]:
    scores = [-d["score"] for d in dts]
    if len(scores) < 2:
        return dts[0:cap]
    return [dts[i] for i in np.array(scores).argsort(kind="stable")[0:cap].tolist()]


def _cell_ious(p: Any, gts: Any, dts: Any, image: Any, category: Any, refusal: type[Exception] = Exception) -> Any:
    gt, dt = _cell(p, gts, image, category), _cell(p, dts, image, category)
    if not gt and not dt:
        return []
    cap = p.maxDets[-1]
    dt = _best_first(dt, cap if len(dt) > cap else None)
    if p.iouType not in (_MASK, _BOX, BOUNDARY):
        raise refusal("unknown iouType for iou computation")
    shape = "bbox" if p.iouType == _BOX else "segmentation"
    crowd = [int(g["iscrowd"]) for g in gt]
    ious = maskUtils.iou([d[shape] for d in dt], [g[shape] for g in gt], crowd)
    if p.iouType == BOUNDARY and len(ious):
        along = maskUtils.iou([d[BOUNDARY] for d in dt], [g[BOUNDARY] for g in gt], crowd)
        ious = np.where(np.array(crowd, np.bool_), ious, np.minimum(ious, along))
    return ious


def _oks_area(gt: Any, own: Any) -> Any:
    """Return the object's ``area`` if `own`, else 0.53 times its box's area (CrowdPose)."""
    return gt["area"] if own else gt["bbox"][3] * gt["bbox"][2] * 0.53


def _cell_oks(p: Any, gts: Any, dts: Any, image: Any, category: Any, own_area: Any = True) -> Any:
    gt, cap = gts[image, category], p.maxDets[-1]
    dt = dts[image, category]
    dt = _best_first(dt, cap if len(dt) > cap else None)
    if not gt or not dt:
        return []
    sigmas = p.kpt_oks_sigmas
    variances = (sigmas * 2) ** 2
    points = [np.array(d["keypoints"]) for d in dt]
    quick = _quick_oks(variances, points, gt, own_area)
    if quick is not None:
        return quick
    out = np.zeros((len(dt), len(gt)))
    for j, g in enumerate(gt):
        own = np.array(g["keypoints"])
        visible = own[2::3] > 0
        box = g["bbox"]
        left, top, width, height = box[0], box[1], box[2], box[3]
        for i, found in enumerate(points):
            x, y = found[0::3], found[1::3]
            if visible.any():
                dx, dy = x - own[0::3], y - own[1::3]
            else:  # distance from the box, enlarged by its width and height on every side
                none = np.zeros(len(sigmas))
                if x.shape != none.shape or y.shape != none.shape:  # a single point would be broadcast
                    raise ValueError(f"a pose of {len(x)} points where there are {len(sigmas)} sigmas")
                dx = np.maximum(none, (left - width) - x) + np.maximum(none, x - (left + width * 2))
                dy = np.maximum(none, (top - height) - y) + np.maximum(none, y - (top + height * 2))
            e = (dx**2 + dy**2) / variances / (_oks_area(g, own_area) + np.spacing(1)) / 2
            if visible.any():
                e = e[visible]
            out[i, j] = np.sum(np.exp(-e)) / e.shape[0]
    return out


def _quick_oks(variances: Any, points: list[Any], gt: list[Any], own_area: Any) -> Any:
    """Return the keypoint similarities of an image and category; None for unusual input, which `_cell_oks` handles."""
    # Input is unusual if pycocotools raises an error for it, or if the numbers are neither float64 nor int64.
    size = 3 * variances.size
    listed = points + [np.array(g["keypoints"]) for g in gt]
    plain = all(one.shape == (size,) and one.dtype in (np.float64, np.int64) for one in listed)
    given = [[*g["bbox"], _oks_area(g, own_area)] for g in gt]
    numbers = all(len(row) == 5 and all(type(value) in (int, float) for value in row) for row in given)
    if not (plain and numbers and variances.ndim == 1 and 0 < variances.size <= 128 and variances.dtype == np.float64):
        return None
    columns = np.array(given, np.float64)
    if (np.abs(columns) >= 2**52).any() or any((np.abs(one) >= 2**25).any() for one in listed):
        return None  # pycocotools computes with integers, which may be more exact
    found, truth = (rows_of(np.stack(rows).astype(np.float64)) for rows in (points, listed[len(points) :]))
    objects = oks.Objects(
        readonly(columns[:, :4], np.float64),
        readonly(columns[:, 4], np.float64),
        readonly(variances, np.float64),
        readonly(np.zeros(len(gt)), np.int64),
    )
    left, right = (readonly(axis.ravel(), np.int64) for axis in np.indices((len(points), len(gt))))
    terms, stops = np.empty(left.size * variances.size), np.empty(left.size, np.int64)
    oks.exponents(found, truth, objects, oks.Likely(left, right, -1.0), 0, left.size, oks.Terms(terms, stops))
    used = terms[: stops[-1]]
    out = np.empty(left.size)
    oks.means(np.exp(used), stops, out)
    return out.reshape(len(points), len(gt))


def _evaluate_cells(p: Any, gts: Any, dts: Any, ious: Any) -> list[Any]:
    """Return the matches by category, area range and image, in the order of ``evalImgs``."""
    out: list[Any] = []
    for category in p.catIds if p.useCats else [-1]:
        made = [_evaluate_cell(p, gts, dts, ious, image, category, p.areaRng, p.maxDets[-1]) for image in p.imgIds]
        for a in range(len(p.areaRng)):
            out.extend(cell[a] for cell in made)
    return out


def _evaluate_cell(
    p: Any, gts: Any, dts: Any, ious: Any, image: Any, category: Any, area_ranges: Any, cap: Any
) -> list[Any]:
    """Return the matches of one image and category for each area range."""
    gt, dt = _cell(p, gts, image, category), _cell(p, dts, image, category)
    if not gt and not dt:
        return [None] * len(area_ranges)
    found = _best_first(dt, cap)
    T, D, G = len(p.iouThrs), len(found), len(gt)
    overlaps: Any = ious[image, category] if G and D else ()
    detection_ids, scores = [d["id"] for d in found], [d["score"] for d in found]
    if len(overlaps):
        if len(overlaps) < D:
            raise IndexError(f"overlaps of {len(overlaps)} detections where there are {D}")
        crowd = np.array([int(g["iscrowd"]) for g in gt], np.bool_)
        keeps = readonly([_above_zero(identity) for identity in detection_ids], np.bool_)
        thresholds = readonly(p.iouThrs, np.float64)
    out = []
    for area_range in area_ranges:
        low, high = area_range[0], area_range[1]
        for g in gt:
            g["_ignore"] = 1 if g["ignore"] or g["area"] < low or g["area"] > high else 0
        order = sorted(range(G), key=lambda i: gt[i]["_ignore"])
        truth = [gt[i] for i in order]
        ignored = np.array([g["_ignore"] for g in truth])
        matched, taken = np.zeros((T, D)), np.zeros((T, G))
        outside = np.array([d["area"] < low or d["area"] > high or d.get(LENIENT, False) for d in found], np.bool_)
        if len(overlaps):
            chosen, taker = np.empty((T, D), np.int64), np.empty((T, G), np.int64)
            sorted_overlaps = readonly(overlaps[:, order][:D], np.float64)
            skip, free = readonly(ignored, np.bool_), readonly(crowd[order], np.bool_)
            assign(sorted_overlaps, skip, free, keeps, thresholds, chosen, taker)
            _write_ids(matched, chosen, truth)
            _write_ids(taken, taker, found)
            ignore = ((chosen >= 0) & skip[chosen]) | ((matched == 0) & outside)
        else:
            ignore = np.repeat(outside[None], T, axis=0)
        out.append(
            {
                "image_id": image,
                "category_id": category,
                "aRng": area_range,
                "maxDet": cap,
                "dtIds": detection_ids.copy(),
                "gtIds": [g["id"] for g in truth],
                "dtMatches": matched,
                "gtMatches": taken,
                "dtScores": scores.copy(),
                "gtIgnore": ignored,
                "dtIgnore": ignore,
            }
        )
    return out


def _above_zero(identity: Any) -> bool:
    try:
        return float(identity) > 0
    except (TypeError, ValueError):
        return False  # no matter, because `_write_ids` raises for this id


def _write_ids(out: NDArray[np.float64], places: NDArray[np.int64], records: list[Any]) -> None:
    """Write the ids of ``records[places]`` to `out`, except where a place is negative."""
    for t, i in zip(*np.nonzero(places >= 0), strict=True):
        out[t, i] = records[places[t, i]]["id"]
