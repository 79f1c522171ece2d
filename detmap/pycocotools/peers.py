"""The drop-in with the additional names of hotcoco and ultrafast-pycocotools.

Users of hotcoco and ultrafast-pycocotools change one line: ``from detmap.pycocotools.peers import COCO, COCOeval, Params,
mask``. Numbers and printed text are as in pycocotools. In addition to pycocotools' names, these are available:

* ``COCO``: accepts a dict or any path, and ``verbose=False``; ``get_ann_ids``, ``get_cat_ids``, ``get_img_ids``,
  ``load_anns``, ``load_cats``, ``load_imgs``, ``load_res``, ``ann_to_rle``, ``ann_to_mask``, ``create_index``; the
  argument ``derive_segmentation`` of ``loadRes``.
* ``COCOeval``: ``coco_gt``, ``coco_dt``, ``iou_type`` (also "boundary"), ``kpt_oks_sigmas``, ``use_area``,
  ``boundary_dilation_ratio``, ``print_function``, ``store_eval_imgs``; ``run``, ``eval_imgs``, ``get_results``,
  ``metric_keys``, ``stats_as_dict``, ``per_category_stats``.
* ``Params``: ``iou_type``, ``img_ids``, ``cat_ids``, ``iou_thrs``, ``rec_thrs``, ``max_dets``, ``area_rng``,
  ``area_rng_lbl``, ``use_cats``.
* ``mask``: ``to_bbox``, ``fr_py_objects``.
* ``init_as_pycocotools()``, which is `detmap.patch_pycocotools`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from detmap.pycocotools import coco, cocoeval, faster
from detmap.pycocotools import peers_mask as mask
from detmap.pycocotools._names import PARAMS, also_called_in_snake_case, also_snake_case
from detmap.pycocotools.faster_metrics import mean_of_defined
from detmap.pycocotools.patch import patch_pycocotools as init_as_pycocotools

__all__ = ["COCO", "COCOeval", "Params", "init_as_pycocotools", "mask"]


class COCO(coco.COCO):
    """A data set, or results on one.

    Parameters
    ----------
    annotation_file : path or dict, optional
        A JSON file in COCO's format, or the parsed content of such a file.
    verbose : bool
        Whether messages are printed, as in pycocotools.
    """

    _takes_no_results = True

    def __init__(self, annotation_file: Any = None, *, verbose: bool = True) -> None:
        self.verbose = verbose
        # Integers are refused, because open() would take an integer for a file descriptor, and close the descriptor.
        if not isinstance(annotation_file, str | bytes | os.PathLike | dict | None):
            raise TypeError(f"a data set is a path or a dict, not a {type(annotation_file).__name__}")
        if annotation_file is None or isinstance(annotation_file, dict):
            super().__init__(None)
        else:
            super().__init__(os.fspath(annotation_file))
        if isinstance(annotation_file, dict):
            self.dataset = annotation_file
            self.createIndex()
        elif annotation_file is None:
            self.dataset = coco.with_lists({})

    def createIndex(self) -> None:
        """Rebuild the indices of ``dataset``."""
        self.dataset = coco.with_lists(self.dataset)
        super().createIndex()

    def _say(self, text: Any) -> None:
        if self.verbose:
            print(text)

    def _empty(self) -> COCO:
        return COCO(verbose=self.verbose)

    def loadRes(self, resFile: Any, *, derive_segmentation: bool = False) -> coco.COCO:
        """Return results on this data set, see `detmap.pycocotools.coco.COCO.loadRes`.

        `derive_segmentation` is ignored, because polygons of boxes are computed when they are first read.
        """
        return super().loadRes(os.fspath(resFile) if isinstance(resFile, os.PathLike) else resFile)

    def get_ann_ids(self, img_ids: Any = (), cat_ids: Any = (), area_rng: Any = None, iscrowd: Any = None) -> list[Any]:
        """Alias of `getAnnIds`."""
        return self.getAnnIds(img_ids, cat_ids, () if area_rng is None else area_rng, iscrowd)


for _name in ("getAnnIds", "getCatIds", "getImgIds", "loadAnns", "loadCats", "loadImgs"):
    setattr(COCO, _name, coco.taking_iterators(getattr(coco.COCO, _name)))
_METHODS = (
    "getCatIds",
    "getImgIds",
    "loadAnns",
    "loadCats",
    "loadImgs",
    "loadRes",
    "annToRLE",
    "annToMask",
    "createIndex",
)
also_called_in_snake_case(COCO, _METHODS, resFile="res")


class Params(cocoeval.Params):
    """Parameters of an evaluation; see `detmap.pycocotools.cocoeval.Params`.

    Parameters
    ----------
    iouType : {"segm", "bbox", "boundary", "keypoints"}
        The geometry whose overlap is measured.
    iou_type : str, optional
        Alias of `iouType`.
    """

    def __init__(self, iouType: str = "segm", *, iou_type: str | None = None) -> None:
        kind = iouType if iou_type is None else iou_type
        super().__init__("segm" if kind == cocoeval.BOUNDARY else kind)
        self.iouType = kind


also_snake_case(Params, PARAMS)

_RANGES = {"small": "s", "medium": "m", "large": "l"}


class COCOeval(cocoeval.COCOeval):
    """The evaluation of results against a data set; see `detmap.pycocotools.cocoeval.COCOeval`.

    Parameters
    ----------
    cocoGt, cocoDt, iouType
        As for `detmap.pycocotools.cocoeval.COCOeval`; ``coco_gt``, ``coco_dt`` and ``iou_type`` are aliases.
    kpt_oks_sigmas : sequence of float, optional
        Standard deviation of annotators for each keypoint, relative to object size; by default COCO's sigmas.
    use_area : bool
        If False, keypoint similarity uses 0.53 times the area of an object's box instead of ``area``.
    boundary_dilation_ratio : float
        Width of a boundary, inwards from the contour, as a share of the image's diagonal.
    print_function : callable of str
        Receives each message that pycocotools would print.
    store_eval_imgs : bool
        Ignored: ``evalImgs`` is computed lazily.
    """

    _unique = staticmethod(cocoeval.unique_of_any)
    _add_boundaries = faster.COCOeval_faster._add_boundaries
    run = faster.COCOeval_faster.run

    def __init__(
        self,
        cocoGt: Any = None,
        cocoDt: Any = None,
        iouType: str = "segm",
        *,
        coco_gt: Any = None,
        coco_dt: Any = None,
        iou_type: str | None = None,
        kpt_oks_sigmas: Sequence[float] | None = None,
        use_area: bool = True,
        boundary_dilation_ratio: float = 0.02,
        print_function: Callable[[str], object] = print,
        store_eval_imgs: bool = False,
    ) -> None:
        self.print_function, self.store_eval_imgs = print_function, store_eval_imgs
        self.use_area, self.boundary_dilation_ratio = use_area, boundary_dilation_ratio
        super().__init__(
            cocoGt if coco_gt is None else coco_gt,
            cocoDt if coco_dt is None else coco_dt,
            iouType if iou_type is None else iou_type,
        )
        if kpt_oks_sigmas is not None:
            self.params.kpt_oks_sigmas = np.asarray(kpt_oks_sigmas, np.float64)

    def _say(self, text: str) -> None:
        self.print_function(text)

    def _new_params(self, kind: str) -> cocoeval.Params:
        return Params(kind)

    def metric_keys(self) -> list[str]:
        """Return hotcoco's names for the elements of ``stats``: AP, AP50, AP75, APs and so on."""
        if self.params.iouType == "keypoints":
            return [f"{kind}{rest}" for kind in ("AP", "AR") for rest in ("", "50", "75", "m", "l")]
        areas = [f"{kind}{letter}" for kind in ("AP", "AR") for letter in _RANGES.values()]
        return ["AP", "AP50", "AP75", *areas[:3], "AR1", "AR10", "AR100", *areas[3:]]

    def get_results(self, prefix: str | None = None, per_class: bool = False) -> dict[str, float]:
        """Return the numbers of `summarize` by the names in `metric_keys`; empty if `summarize` was not called.

        Parameters
        ----------
        prefix : str, optional
            Prefix of each name, followed by a slash.
        per_class : bool
            Whether the AP of each class with ground truth is added, as ``AP/{name}``.
        """
        out = dict(zip(self.metric_keys(), map(float, self.stats), strict=False))
        if per_class and out:
            found = self.per_category_stats()
            out |= {f"AP/{row['name']}": row["AP"] for row in found.values() if row["AP"] == row["AP"]}
        return {f"{prefix}/{name}" if prefix else name: out[name] for name in sorted(out)}

    @property
    def stats_as_dict(self) -> dict[str, float]:
        """The numbers of `summarize` by ultrafast-pycocotools' names; AP_50 and AP50 are both included."""
        out: dict[str, float] = {}
        poses, caps = self.params.iouType == "keypoints", list(self.params.maxDets)
        at = iter([*caps, *caps[-1:] * 3])
        for key, value in zip(self.metric_keys(), map(float, self.stats), strict=False):
            kind, rest = key[:2], key[2:]
            area = next((name for name, letter in _RANGES.items() if letter == rest), "")
            if kind == "AR" and rest.isdigit():
                rest = rest if poses else str(next(at))
                out |= {f"AR_{rest}": value, f"AR@{rest}": value}
            else:
                out["_".join(filter(None, (kind, area or rest)))] = value
                if kind == "AP":
                    out[key if rest else "AP_all"] = value
        return out

    def per_category_stats(self, area: str = "all", max_dets: int | None = None) -> dict[int, dict[str, Any]]:
        """Return ``name``, ``AP``, ``AP_50``, ``AP_75`` and ``AR`` of each category; NaN without ground truth.

        Parameters
        ----------
        area : str
            One of ``params.areaRngLbl``.
        max_dets : int, optional
            One of ``params.maxDets``; by default the last one.
        """
        if not self.eval:
            raise Exception("Please run accumulate() first")
        p = self.params
        a, m = p.areaRngLbl.index(area), p.maxDets.index(p.maxDets[-1] if max_dets is None else max_dets)
        names = {cat["id"]: cat.get("name", str(cat["id"])) for cat in self.cocoGt.cats.values()} if p.useCats else {}
        out = {}
        for k, category in enumerate(p.catIds if p.useCats else [-1]):
            precision, recall = self.eval["precision"][:, :, k, a, m], self.eval["recall"][:, k, a, m]
            row: dict[str, Any] = {"name": names.get(category, str(category)), "AP": mean_of_defined(precision)}
            row |= {f"AP_{t * 100:.0f}": mean_of_defined(precision[np.isclose(p.iouThrs, t)]) for t in (0.5, 0.75)}
            out[int(category)] = {**row, "AR": mean_of_defined(recall)}
        return out


also_snake_case(COCOeval, ["cocoGt", "cocoDt", "evalImgs"])
