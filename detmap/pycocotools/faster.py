"""faster_coco_eval's two classes on the drop-in: what they have beyond pycocotools and frameworks use (Ultralytics)."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from detmap.errors import InputError, OptionError, shorten
from detmap.masks import Masks
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
        Leave the records of a dict, and those given to `loadRes`, as they are.
    print_function : callable of str
        Told what goes on; by default a logger.

    Notes
    -----
    As in the original, image ids become integers, an annotation without ``iscrowd`` is no crowd, one without
    ``num_keypoints`` has none, and one without ``area`` has an area of 0: it is small.
    """

    def __init__(
        self,
        annotation_file: Any = None,
        use_deepcopy: bool = False,
        print_function: Callable[[str], object] = _log.debug,
    ) -> None:
        self.print_function, self.use_deepcopy = print_function, use_deepcopy
        self.annotation_file = annotation_file
        held = isinstance(annotation_file, dict)
        super().__init__(None if held else annotation_file)
        if held:
            self.dataset = copy.deepcopy(annotation_file) if use_deepcopy else dict(annotation_file)
            self.createIndex()

    def _say(self, text: Any) -> None:
        self.print_function(str(text))

    def _empty(self) -> COCO:
        return COCO(use_deepcopy=self.use_deepcopy, print_function=self.print_function)

    def createIndex(self) -> None:
        """Make the indices of ``dataset`` anew."""
        _make_integers(self.dataset.get("images", ()), "id")
        annotations = self.dataset.get("annotations", ())
        _make_integers(annotations, "image_id")
        for annotation in annotations:
            for name in ("iscrowd", "area", *(("num_keypoints",) if "keypoints" in annotation else ())):
                annotation.setdefault(name, 0)
        super().createIndex()

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
        results.dataset = {
            "info": copy.deepcopy(self.dataset.get("info", {})),
            "images": list(self.dataset["images"]),
            "categories": copy.deepcopy(self.dataset.get("categories", [])),
            "annotations": [],
        }
        results.createIndex()
        return results

    def getAnnIds(self, imgIds: Any = None, catIds: Any = None, areaRng: Any = None, iscrowd: Any = None) -> list[Any]:
        """Return the ids of the annotations that pass all filters; None and an empty one let all pass."""
        return super().getAnnIds(_listed(imgIds), _listed(catIds), _listed(areaRng), iscrowd)

    def getCatIds(self, catNms: Any = None, supNms: Any = None, catIds: Any = None) -> list[Any]:
        """Return the ids of the categories that pass all filters; None and an empty one let all pass."""
        return super().getCatIds(_listed(catNms), _listed(supNms), _listed(catIds))

    def getImgIds(self, imgIds: Any = None, catIds: Any = None) -> list[Any]:
        """Return the ids of the images that pass both filters; None and an empty one let all pass."""
        return super().getImgIds(_listed(imgIds), _listed(catIds))

    def loadAnns(self, ids: Any = None) -> list[Any]:
        """Return the annotations of an id, or of some."""
        return list(super().loadAnns(_listed(ids)))

    def loadCats(self, ids: Any = None) -> list[Any]:
        """Return the categories of an id, or of some."""
        return list(super().loadCats(_listed(ids)))

    def loadImgs(self, ids: Any = None) -> list[Any]:
        """Return the images of an id, or of some."""
        return list(super().loadImgs(_listed(ids)))

    get_ann_ids, get_cat_ids, get_img_ids = getAnnIds, getCatIds, getImgIds
    load_anns, load_cats, load_imgs = loadAnns, loadCats, loadImgs

    @property
    def img_ann_map(self) -> Any:
        """`imgToAnns` by its other name."""
        return self.imgToAnns

    @property
    def cat_img_map(self) -> Any:
        """`catToImgs` by its other name."""
        return self.catToImgs


def _listed(ids: Any) -> Any:
    return [] if ids is None else ids if hasattr(ids, "__iter__") else [ids]


def _make_integers(records: Any, name: str) -> None:
    for record in records:
        if type(record[name]) is not int:
            record[name] = int(record[name])


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
    InputError
        From `evaluate`, for a score that is NaN, as the original's ValueError; pycocotools ranks it last.
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
        for name, value in {"iouType": iouType, "extra_calc": extra_calc, **options}.items():
            if name not in _KNOWN:
                raise TypeError(f"COCOeval_faster() got an unexpected keyword argument {name!r}")
            known = _KNOWN[name]
            if known is not None and value not in known:
                raise OptionError(
                    f"detmap's stand-in for faster_coco_eval has no {name}={shorten(value)}: "
                    "evaluate this one outside of detmap.patch_pycocotools()"
                )
        self.print_function = print_function
        self.boundary_dilation_ratio = options.get("boundary_dilation_ratio", 0.02)
        super().__init__(cocoGt, cocoDt, iouType)
        if iouType == "keypoints":
            if kpt_oks_sigmas is not None:
                self.params.kpt_oks_sigmas = np.array(kpt_oks_sigmas)
        elif ranges is not None:
            self.params.areaRngLbl = ["all", *ranges]
            self.params.areaRng = [self.params.areaRng[0], *map(list, ranges.values())]

    def _say(self, text: str) -> None:
        self.print_function(text)

    def _new_params(self, kind: str) -> cocoeval.Params:
        params = super()._new_params("segm" if kind == cocoeval.BOUNDARY else kind)
        params.iouType = kind
        return params

    def _add_boundaries(self, anns: list[Any]) -> None:
        """Write the boundary of each mask beside it, as ``boundary``."""
        masks = Masks.from_rle([ann["segmentation"] for ann in anns], source="segmentation")
        made = masks.boundary(self.boundary_dilation_ratio).to_rle()
        for ann, boundary in zip(anns, made, strict=True):
            ann[cocoeval.BOUNDARY] = {"size": boundary["size"], "counts": boundary["counts"].encode()}

    def _evaluate_images(self) -> None:
        super()._evaluate_images()
        # The fast path leaves NaN to this one; the original refuses it in every cell that is evaluated.
        for (image, category), found in self._dts.items():
            for d in found:
                score = d.get("score")
                if score != score and image in self.params.imgIds and category in self.params.catIds:
                    self.evalImgs, self._paramsEval = [], {}  # so that nothing can be made of it
                    raise InputError(
                        "detection scores must not be NaN",
                        source="results",
                        record=f"id {d['id']} on image {image}",
                        field="score",
                        value=float(score),
                        remedy="leave out the record: NaN has no place in a ranking",
                    )

    @property
    def _evalImgs_cpp(self) -> Any:
        """`evalImgs` by the name that evaluators of batches read and assign."""
        return self.evalImgs

    @_evalImgs_cpp.setter
    def _evalImgs_cpp(self, evaluated: Any) -> None:
        self.evalImgs = evaluated

    def _rows(self) -> list[tuple[str, _Row]]:
        """Return the names of what `summarize` prints, and what it is."""
        p = self.params
        most, areas = p.maxDets[-1], p.areaRngLbl[1:]
        rows: list[tuple[str, _Row]] = []
        for ap, kind in ((1, "AP"), (0, "AR")):
            whole: list[tuple[str, _Row]] = [(f"{kind}_all", (ap, None, "all", most))]
            by_overlap: list[tuple[str, _Row]] = [(f"{kind}_{t * 100:.0f}", (ap, t, "all", most)) for t in (0.5, 0.75)]
            by_area: list[tuple[str, _Row]] = [(f"{kind}_{area}", (ap, None, area, most)) for area in areas]
            if ap or p.iouType == "keypoints":
                rows += whole + by_overlap + by_area
            else:
                names = _CAPS if list(p.maxDets) == list(_CAPS) else {cap: str(cap) for cap in p.maxDets}
                rows += [(f"AR_{names[cap]}", (0, None, "all", cap)) for cap in p.maxDets]
                rows += by_area + by_overlap
        return rows

    def summarize(self) -> None:
        """Print the numbers and put them into ``all_stats``, and those that pycocotools has into ``stats``."""
        if not self.eval and self._paramsEval:  # evaluated, but not accumulated
            self.accumulate()
        if not self.eval:
            raise Exception("Please run accumulate() first")
        self.all_stats = np.array([self._summarize(*row) for _, row in self._rows()])
        self.stats = self.all_stats if self.params.iouType == "keypoints" else self.all_stats[:-2]

    def run(self) -> None:
        """Evaluate, accumulate and summarize."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    @property
    def stats_as_dict(self) -> dict[str, float]:
        """The numbers of `summarize` by name: AP_all, AP_50, AP_75, AP_small and so on."""
        if "all_stats" not in self.__dict__:
            raise Exception("Please run summarize() first")
        return dict(zip((name for name, _ in self._rows()), map(float, self.all_stats), strict=True))

    def __str__(self) -> str:
        self.summarize()
        return repr(self)


#: Options of the original: the values that mean the same here, or None for what changes no number.
_KNOWN: dict[str, tuple[Any, ...] | None] = {
    "iouType": ("bbox", "segm", "keypoints", "boundary"),
    "extra_calc": (False,),
    "use_area": (True,),
    "lvis_style": (False,),
    "separate_eval": None,
    **dict.fromkeys(("boundary_dilation_ratio", "boundary_cpu_count", "rle_iou_max_workers")),
}
