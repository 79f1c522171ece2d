"""faster_coco_eval's two classes on the drop-in: what they have beyond pycocotools and frameworks use (Ultralytics)."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from detmap.errors import OptionError, shorten
from detmap.pycocotools import coco, cocoeval

_log = logging.getLogger(__name__)
#: Precision (1) or recall (0), IoU threshold, area range, cap.
_Row = tuple[int, float | None, str, int]
#: The names of recall at COCO's caps; at others it is named by the cap.
_CAPS = {1: "all", 10: "second", 100: "third"}


class COCO(coco.COCO):
    """A data set, or results on one; says what it does to a function.

    Parameters
    ----------
    annotation_file : path, dict, optional
        A JSON file in COCO's format, or what one holds.
    use_deepcopy : bool
        Leave a dict, and records given to `loadRes`, as they are.
    print_function : callable of str
        Told what goes on; by default a logger.
    """

    def __init__(
        self,
        annotation_file: Any = None,
        use_deepcopy: bool = False,
        print_function: Callable[[str], object] = _log.debug,
    ) -> None:
        self.print_function, self.use_deepcopy = print_function, use_deepcopy
        held = isinstance(annotation_file, dict)
        super().__init__(None if held else annotation_file)
        if held:
            self.dataset = copy.deepcopy(annotation_file) if use_deepcopy else annotation_file
            self.createIndex()

    def _say(self, text: Any) -> None:
        self.print_function(str(text))

    def _empty(self) -> COCO:
        return COCO(use_deepcopy=self.use_deepcopy, print_function=self.print_function)

    def loadRes(self, resFile: Any, min_score: float = 0.0) -> coco.COCO:
        """Return results on this data set: a JSON file, its records, or rows; there may be none.

        Parameters
        ----------
        resFile : path, list of dict, or ndarray of shape (n, 7)
            As for `detmap.pycocotools.coco.COCO.loadRes`.
        min_score : float
            The lowest score to take.
        """
        anns = coco._load_json(resFile) if isinstance(resFile, str | os.PathLike) else resFile
        if isinstance(anns, np.ndarray):
            anns = self.loadNumpyAnnotations(anns)
        elif anns is resFile and self.use_deepcopy:
            anns = copy.deepcopy(anns)
        if min_score and isinstance(anns, list):
            anns = [ann for ann in anns if ann.get("score", 1) >= min_score]
        if anns != []:
            return super().loadRes(anns)
        results = self._empty()
        results.dataset = {**{name: self.dataset.get(name, []) for name in ("images", "categories")}, "annotations": []}
        results.createIndex()
        return results


class COCOeval_faster(cocoeval.COCOeval):
    """The evaluation of results against a data set; says what it does to a function, and names its numbers.

    Parameters
    ----------
    cocoGt, cocoDt, iouType
        As for `detmap.pycocotools.cocoeval.COCOeval`.
    ranges : dict of str to [float, float], optional
        Least and largest area by name, instead of COCO's three.
    print_function : callable of str
        Told what goes on, and the summary's lines; by default a logger.
    kpt_oks_sigmas : sequence of float, optional
        How far annotators disagree on each keypoint, instead of COCO's.
    **options
        What else the original takes may be given as it is there by default.

    Attributes
    ----------
    all_stats : ndarray of float64
        What `summarize` prints: the numbers in ``stats``, and for boxes and masks recall at overlaps of 0.5 and 0.75.

    Raises
    ------
    OptionError
        For one of `options` that asks for more: federated annotations (``lvis_style``), for one.
    """

    def __init__(
        self,
        cocoGt: Any = None,
        cocoDt: Any = None,
        iouType: str = "segm",
        ranges: Mapping[str, Sequence[float]] | None = None,
        print_function: Callable[[str], object] = _log.info,
        extra_calc: bool = False,
        kpt_oks_sigmas: Sequence[float] | None = None,
        **options: Any,
    ) -> None:
        for name, value in {"extra_calc": extra_calc, **options}.items():
            if name in _DEFAULTS and value != _DEFAULTS[name]:
                raise OptionError(
                    f"detmap's stand-in for faster_coco_eval has no {name}={shorten(value)}: "
                    "evaluate this one outside of detmap.patch_pycocotools()"
                )
            if name not in _DEFAULTS and name not in _ABOUT_SPEED:
                raise TypeError(f"COCOeval_faster() got an unexpected keyword argument {name!r}")
        self.print_function = print_function
        super().__init__(cocoGt, cocoDt, iouType)
        self.all_stats: Any = []
        if ranges is not None:
            self.params.areaRngLbl = ["all", *ranges]
            self.params.areaRng = [self.params.areaRng[0], *map(list, ranges.values())]
        if kpt_oks_sigmas is not None:
            self.params.kpt_oks_sigmas = np.array(kpt_oks_sigmas)

    def _say(self, text: str) -> None:
        self.print_function(text)

    def _rows(self) -> dict[str, _Row]:
        """Return what `summarize` prints, by name."""
        p = self.params
        most, areas = p.maxDets[-1], p.areaRngLbl[1:]
        rows: dict[str, _Row] = {}
        for ap, kind in ((1, "AP"), (0, "AR")):
            whole: dict[str, _Row] = {f"{kind}_all": (ap, None, "all", most)}
            by_overlap: dict[str, _Row] = {f"{kind}_{t * 100:.0f}": (ap, t, "all", most) for t in (0.5, 0.75)}
            by_area: dict[str, _Row] = {f"{kind}_{area}": (ap, None, area, most) for area in areas}
            if ap or p.iouType == "keypoints":
                rows |= whole | by_overlap | by_area
            else:
                names = _CAPS if list(p.maxDets) == list(_CAPS) else {cap: str(cap) for cap in p.maxDets}
                rows |= {f"AR_{names[cap]}": (0, None, "all", cap) for cap in p.maxDets}
                rows |= by_area | by_overlap
        return rows

    def summarize(self) -> None:
        """Print the numbers and put them into ``all_stats``, and those that pycocotools has into ``stats``."""
        if not self.eval:
            raise Exception("Please run accumulate() first")
        self.all_stats = np.array([self._summarize(*row) for row in self._rows().values()])
        self.stats = self.all_stats if self.params.iouType == "keypoints" else self.all_stats[:-2]

    def run(self) -> None:
        """Evaluate, accumulate and summarize."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    @property
    def stats_as_dict(self) -> dict[str, float]:
        """The numbers of `summarize` by name: AP_all, AP_50, AP_75, AP_small and so on."""
        return dict(zip(self._rows(), map(float, self.all_stats), strict=True))


#: Options of the original that change what is measured, as they are by default, and those that do not.
_DEFAULTS = {"extra_calc": False, "use_area": True, "lvis_style": False, "separate_eval": False}
_ABOUT_SPEED = {"boundary_dilation_ratio", "boundary_cpu_count", "rle_iou_max_workers"}
