"""Checks of files before scoring: `check`, and the codes of its findings."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from detmap.checks import (
    across,
    anchors,
    boxes,
    categories,
    coverage,
    cut_sizes,
    data_statistics,
    image_ids,
    labels,
    leakage,
    limits,
    merged,
    objects_left_over,
    parts,
    parts_of_objects,
    piles,
    policies,
    poses,
    repeats,
    row_lost,
    scores,
    shapes,
    single_category,
    sizes,
    squared,
    trained_on,
    two_names,
    uneven,
)
from detmap.checks.codes import CODES, SEVERITIES, Code
from detmap.checks.context import Facts
from detmap.checks.data_statistics import Figure
from detmap.checks.findings import Finding, found
from detmap.checks.inputs import Side, as_file, read_found, read_schema, read_truth, side_of
from detmap.checks.report import Report, ordered
from detmap.checks.runs import check_run
from detmap.data.mismatches import check_pair
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.given import Found, Truth
from detmap.errors import InputError, OptionError, many
from detmap.formats.class_maps import class_map_of
from detmap.formats.inputs import Input, check_concerns, check_taken
from detmap.reading.opening import STANDARD_INPUT, Held
from detmap.reading.options import ROLES, Reading, Role, SidesOptions, check_names, flags, of_role, takes_options
from detmap.shapes import find

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["CODES", "SEVERITIES", "Code", "Figure", "Finding", "check", "check_run"]

#: Modules of checks, in the order in which they run, because a finding can suppress later findings that it explains.
_THEMES = (
    repeats,
    objects_left_over,
    single_category,
    image_ids,
    merged,
    leakage,
    anchors,
    boxes,
    piles,
    labels,
    shapes,
    scores,
    coverage,
    poses,
    trained_on,
    cut_sizes,
    row_lost,
    two_names,
    squared,
    parts_of_objects,
    parts,
    limits,
    categories,
    across,
    sizes,
    policies,
    uneven,
)


@takes_options(*SidesOptions.__annotations__)
def check(
    ground_truth: Truth,
    detections: Found | None = None,
    *,
    train: Truth | None = None,
    schema: bool = False,
    iou_type: str | None = None,
    **options: Unpack[SidesOptions],
) -> Report:
    """Check ground truth, and optionally detections, for defects that make metrics wrong.

    Parameters
    ----------
    ground_truth : GroundTruth, path, or mapping
        A table, a file or folder in any supported format, or COCO's dictionary as returned by ``json.load``. Invalid
        records of a file or a dictionary are reported as findings, too.
    detections : Detections, path, or sequence of mappings, optional
        A table, a file or folder, or COCO's list of results.
    train : GroundTruth, path, or mapping, optional
        Ground truth of the training set, which should share no image with `ground_truth`.
    schema : bool
        Check only the ground truth's images and categories, not its objects.
    iou_type : str, optional
        Geometry to check besides boxes ("segm", "keypoints"); by default every kind of geometry that all records have.
    **options

    Returns
    -------
    Report
        The findings, and the distributions (`figures`) of the data.

    Raises
    ------
    InputError
        If the ground truth cannot be read at all, or a file of detections does not exist.
    OptionError
        If options are unknown or contradict each other.
    """
    check_names(options, SidesOptions.__annotations__, "detmap.check")
    of_truth, of_found = (
        of_role(options, role, invalid_boxes="miss", image_facts=role == "ground_truth") for role in ROLES
    )
    if of_found.class_map is not None:
        of_found = replace(of_found, class_map=class_map_of(of_found.class_map))
    given = _input(ground_truth, "ground_truth", of_truth), _input(detections, "detections", of_found)
    before = None if train is None else _input(train, "ground_truth", replace(of_truth, image_set=None))
    read = [one for one in (*given, before) if isinstance(one, Input)]
    check_concerns({name: one.roles for name, one in flags().items() if options.get(name) is not None}, read)
    check_taken([one for one in read if one is not before])
    if iou_type is not None:
        find(iou_type)
    if schema and (detections is None or train is not None):
        raise OptionError("a schema says what detections can be about: give them, and nothing else")
    truth = _truth(given[0], iou_type, schema)
    other = None if train is None else _truth(before, iou_type, False)
    refused = None
    side = None
    if detections is not None:
        assert isinstance(truth.table, GroundTruth)
        if isinstance(given[1], Input):
            try:
                side = read_found(given[1], truth.table, iou_type)
            except InputError as error:
                path = given[1].path
                if not isinstance(path, Held) and path != STANDARD_INPUT and not os.access(path, os.R_OK):
                    raise  # without a readable file there is nothing to check
                refused = found("unreadable_detections", 1, "file", more=str(error))
        else:
            check_pair(truth.table, given[1])
            side = side_of(given[1], truth.table)
    return _report(Facts(truth, side, schema, other), [] if refused is None else [refused])


def _input(given: Any, role: Role, reading: Reading) -> Any:
    """Wrap a path, or COCO's dictionary or list, in an `Input`; return any other value unchanged."""
    given = as_file(given, role)
    return Input(given, role, reading) if isinstance(given, str | os.PathLike | Held) else given


def _truth(given: Any, iou_type: str | None, schema: bool) -> Side:
    if isinstance(given, Input):
        return read_schema(given) if schema else read_truth(given, iou_type)
    if isinstance(given, Detections):
        raise InputError("the arguments are swapped", remedy="give the ground truth first, then the detections")
    if not isinstance(given, GroundTruth):
        raise InputError(
            f"expected GroundTruth or a path, not {type(given).__name__}", remedy="detmap.read makes one of a file"
        )
    return side_of(given.take(np.zeros(0, np.int64)) if schema else given)


def _report(facts: Facts, findings: list[Finding]) -> Report:
    for theme in _THEMES:
        findings.extend(theme.check(facts))
    findings = labels.explained(facts, coverage.explained(facts, findings))
    said = [one.worded(facts.kind) for one in ordered(findings)]
    return Report(_subject(facts), tuple(said), tuple(data_statistics.make(facts)))


def _subject(facts: Facts) -> str:
    parts = [] if facts.schema else [many(len(facts.truth), "object")]
    if facts.found is not None:
        parts.append(many(len(facts.found), "detection"))
    on = facts.truth.on
    return (
        f"{', '.join(parts)}, {many(on.images.ids.size, facts.kind.scene)}, {many(on.categories.ids.size, 'category')}"
    )
