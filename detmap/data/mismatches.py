"""Mismatches of ground truth and detections: classes without results, boxes in other units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, shorten
from detmap.shapes.kinds import BOXES


def classes_without_results(
    ground_truth: GroundTruth, detections: Detections, selected: NDArray[np.bool_] | None = None
) -> dict[Any, str]:
    """Return id and name of every `selected` class with objects but without a result file. Empty unless results have a
    file per class.
    """
    if detections.classes is None:
        return {}
    values, names = ground_truth.categories.ids, ground_truth.categories.names
    has_objects = np.zeros(values.size, np.bool_)
    has_objects[ground_truth.categories.codes] = True
    if selected is not None:
        has_objects &= selected
    # files are named by class name or id, depending on how detections are read
    called = {str(value): value for value in values.tolist()} | dict(zip(names, values.tolist(), strict=True))
    there = {called.get(one) for one in detections.classes}
    rows = zip(values.tolist(), names, has_objects.tolist(), strict=True)
    missing = {value: name for value, name, needed in rows if needed and value not in there}
    if missing and detections.missing_classes == "error":
        shown = ", ".join(shorten(name)[1:-1] for name in list(missing.values())[:10])
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        which = (
            "1 class of the ground truth has"
            if len(missing) == 1
            else f"{len(missing)} classes of the ground truth have"
        )
        raise InputError(
            f"{which} no result file: {shown}{more}",
            source=detections.source,
            remedy="write one for each, empty if nothing was found; missing_classes='zero' (--missing-classes zero) "
            "scores them as 0, 'skip' leaves them out",
        )
    return missing


def notices_of_classes(missing: dict[Any, str], detections: Detections) -> dict[str, int]:
    """Return a notice for each class without results, with its name."""
    code = "skipped_classes" if detections.missing_classes == "skip" else "missing_classes"
    return {f"{code}:{name}": 1 for name in missing.values()}


#: Minimum number of objects for the notice ``shares_of_images``; fewer objects may be tiny boxes in pixels.
_FEWEST_SHARES = 3


def notices_of_units(ground_truth: GroundTruth, detections: Detections) -> dict[str, int]:
    """Return a notice if the boxes of one table, or of both, seem to be normalised. If only one table seems normalised,
    the median area of the other table's boxes must exceed 1, as in pixels.
    """
    if not (len(detections) and len(ground_truth)):
        return {}
    if detections.within_unit and ground_truth.within_unit:
        return {"shares_of_images": len(ground_truth)} if len(ground_truth) >= _FEWEST_SHARES else {}
    if not (detections.within_unit or ground_truth.within_unit):
        return {}
    if detections.within_unit:
        return {"normalised_detections": len(detections)} if _in_pixels(ground_truth) else {}
    return {"normalised_ground_truth": len(detections)} if _in_pixels(detections) else {}


def _in_pixels(table: GroundTruth | Detections) -> bool:
    return bool(np.median(table.shapes[BOXES].areas()) > 1)


def _remedy(value: object, kind: str) -> str:
    """Return advice on building a table from another type."""
    if hasattr(value, "getAnnIds"):
        return "give the dictionary of a pycocotools.COCO: coco.dataset, and of results coco.dataset['annotations']"
    if hasattr(value, "__arrow_c_stream__") or (hasattr(value, "columns") and hasattr(value, "dtypes")):
        return f"build one of a data frame: detmap.{kind}.from_frame(frame)"
    return f"read or build one first: detmap.read(path), detmap.{kind}.from_arrays(...)"


def check_pair(ground_truth: object, detections: object) -> None:
    """Refuse anything but a `GroundTruth` and `Detections`, in that order."""
    of_results = isinstance(ground_truth, Detections | list | tuple)
    if of_results and isinstance(detections, GroundTruth | Mapping):
        raise InputError("the arguments are swapped", remedy="give the ground truth first, then the detections")
    for value, kind in ((ground_truth, GroundTruth), (detections, Detections)):
        if not isinstance(value, kind):
            raise InputError(
                f"expected {kind.__name__}, not {type(value).__name__}",
                remedy=_remedy(value, kind.__name__),
            )
