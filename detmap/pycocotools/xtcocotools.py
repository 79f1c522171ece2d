"""The drop-in by the names of xtcocotools: ``from detmap.pycocotools.xtcocotools import COCO, COCOeval``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from detmap.pycocotools import faster
from detmap.pycocotools.faster_coco import COCO as COCO
from detmap.shapes.keypoints import LISTS

__all__ = ["COCO", "COCOeval"]

_CROWD, _WHOLE = "keypoints_crowd", "keypoints_wholebody"


class COCOeval(faster.COCOeval):
    """The evaluation of poses, of parts of whole bodies, and of boxes and masks.

    Parameters
    ----------
    cocoGt, cocoDt
        As for `detmap.pycocotools.cocoeval.COCOeval`.
    iouType : str
        "bbox", "segm", "keypoints_crowd", "keypoints_wholebody", or "keypoints_" and "body", "foot", "face", "lefthand" or
        "righthand". As in the original, any other name that contains "keypoints" means the body.
    sigmas : sequence of float, optional
        How far annotators disagree on each point; by default COCO's 17 numbers, which fit the body alone.
    use_area : bool
        False: similarity takes 0.53 of the area of an object's box, as CrowdPose has it.

    Notes
    -----
    Results without a point whose v is above 0 are left out, as in the original, also for CrowdPose; the protocol
    ``crowdpose`` keeps them, as CrowdPose's own evaluation does. `params.iouType` of a part is "keypoints".
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
        """Evaluate everything at once if records are used unchanged."""
        return not self._lists and super()._evaluate_whole()

    def _records(self, data: Any, filters: Mapping[str, Any]) -> list[Any]:
        """Return copies of the records; poses have the points and the score of the part."""
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
    """Return the lists of a part's points, none if no poses are compared, and the field of its score."""
    if "keypoints" not in kind:
        return (), "score"
    if kind == _WHOLE:
        return tuple(LISTS), "wholebody_score"
    part = kind.removeprefix("keypoints_")
    if f"{part}_kpts" in LISTS:
        return (f"{part}_kpts",), f"{part}_score"
    return ("keypoints",), "score"
