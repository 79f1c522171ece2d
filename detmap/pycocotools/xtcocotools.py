"""The drop-in with the names of xtcocotools: ``from detmap.pycocotools.xtcocotools import COCO, COCOeval``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from detmap.pycocotools import faster
from detmap.pycocotools.faster_coco import COCO as COCO
from detmap.shapes.keypoints import LISTS

__all__ = ["COCO", "COCOeval"]

_CROWD, _WHOLE = "keypoints_crowd", "keypoints_wholebody"


class COCOeval(faster.COCOeval):
    """The evaluation of poses, of body parts of whole-body poses, and of boxes and masks.

    Parameters
    ----------
    cocoGt, cocoDt
        As for `detmap.pycocotools.cocoeval.COCOeval`.
    iouType : str
        "bbox", "segm", "keypoints_crowd", "keypoints_wholebody", or "keypoints_" followed by "body", "foot", "face",
        "lefthand" or "righthand". As in xtcocotools, any other name that contains "keypoints" means the body.
    sigmas : sequence of float, optional
        Standard deviation of annotators for each point, relative to object size; by default COCO's 17 sigmas, which fit
        only the body.
    use_area : bool
        If False, keypoint similarity uses 0.53 times the area of an object's box instead of ``area``, as CrowdPose does.

    Notes ----- As in xtcocotools, results without a point with v above 0 are left out, also for CrowdPose. The protocol
    ``crowdpose`` keeps such results, as CrowdPose's own evaluation does. For a body part, `params.iouType` is
    "keypoints".
    """

    def __init__(
        self,
        cocoGt: Any = None,
        cocoDt: Any = None,
        iouType: str = "keypoints",
        sigmas: Sequence[float] | None = None,
        use_area: bool = True,
    ) -> None:
        self._is_crowd = iouType == _CROWD
        self._lists, self._score_key = _part_of(iouType)
        kind = "keypoints" if self._lists and not self._is_crowd else iouType
        super().__init__(cocoGt, cocoDt, kind, kpt_oks_sigmas=sigmas, use_area=use_area)
        if cocoGt is not None:
            self.params.catIds = sorted(cocoGt.getCatIds())

    def _evaluate_whole(self) -> bool:
        """Return False for poses, because `_records` changes their records. Otherwise evaluate all images at once."""
        return not self._lists and super()._evaluate_whole()

    def _records(self, data: Any, filters: Mapping[str, Any]) -> list[Any]:
        """Return copies of the records, in which a pose has the points and the score of the evaluated body part."""
        records = super()._records(data, filters)
        if not self._lists:
            return records
        kept = []
        for record in records:
            points = [value for name in self._lists for value in record[name]]
            labelled = sum(v > 0 for v in points[2::3])
            if data is self.cocoDt:
                if labelled:
                    kept.append({**record, "keypoints": points, "score": record.get(self._score_key, record["score"])})
            else:
                own = record["num_keypoints"] if self._is_crowd else labelled
                kept.append({**record, "keypoints": points, "num_keypoints": own})
        return kept


def _part_of(kind: str) -> tuple[tuple[str, ...], str]:
    """Return the fields of a body part's points (empty for boxes and masks), and the field of its score."""
    if "keypoints" not in kind:
        return (), "score"
    if kind == _WHOLE:
        return tuple(LISTS), "wholebody_score"
    part = kind.removeprefix("keypoints_")
    if f"{part}_kpts" in LISTS:
        return (f"{part}_kpts",), f"{part}_score"
    return ("keypoints",), "score"
