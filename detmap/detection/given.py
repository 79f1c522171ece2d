"""What is scored, from what people have: tables, paths, or COCO's JSON as ``json.load`` gives it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from detmap.data.mismatches import check_pair
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.protocols import PRESETS, Protocol

#: Ground truth: a table, the path of a file or folder of any format, or COCO's dictionary.
Truth = GroundTruth | str | os.PathLike[str] | Mapping[str, Any]

#: Detections: a table, the path of a file or folder of any format, or COCO's list of results.
Found = Detections | str | os.PathLike[str] | Sequence[Mapping[str, Any]]


def tables_of(
    ground_truth: Truth, detections: Found, protocol: str | Protocol, iou_type: str | None
) -> tuple[GroundTruth, Detections]:
    """Return tables of ground truth and detections; files and dictionaries are read for the kind of shape that is scored.

    Raises
    ------
    InputError
        For anything else, for swapped arguments, and as readers do.
    """
    if isinstance(ground_truth, GroundTruth) and isinstance(detections, Detections):
        return ground_truth, detections
    kind = iou_type
    if kind is None:
        tables = [one for one in (ground_truth, detections) if isinstance(one, GroundTruth | Detections)]
        decided = protocol if isinstance(protocol, Protocol) else PRESETS.find(protocol)
        kind = tables[0].kinds[0] if tables and len(tables[0].kinds) == 1 else decided.iou_type
    truth, found = _truth(ground_truth, kind), detections
    if isinstance(truth, GroundTruth):
        found = _found(detections, truth, kind)
    check_pair(truth, found)
    assert isinstance(truth, GroundTruth)
    assert isinstance(found, Detections)
    return truth, found


def _truth(given: Truth, kind: str) -> Truth:
    """Read ground truth; what cannot be read is returned as it is."""
    if isinstance(given, str | os.PathLike):
        from detmap.formats.files import read_ground_truth

        return read_ground_truth(given, iou_type=kind, image_facts=True)
    if isinstance(given, Mapping):
        from detmap.formats.coco.read import read_coco

        return read_coco(given, iou_type=kind)
    return given


def _found(given: Found, truth: GroundTruth, kind: str) -> Found:
    """Read detections; what cannot be read is returned as it is."""
    if isinstance(given, str | os.PathLike):
        from detmap.formats.files import read_detections

        return read_detections(given, truth, iou_type=kind)
    if isinstance(given, list | tuple | Mapping):
        from detmap.formats.coco.read import read_coco_results

        return read_coco_results(given, truth, iou_type=kind)
    return given
