"""What to know before believing a number: `check`, which looks at files ahead of scoring, and the codes that it can find."""

from __future__ import annotations

import os

from detmap.checks import boxes, coverage, data_statistics, image_ids, labels, scores, shapes
from detmap.checks.codes import CODES, SEVERITIES, Code
from detmap.checks.context import Facts
from detmap.checks.data_statistics import Figure
from detmap.checks.findings import Finding, found, many
from detmap.checks.inputs import Options, Side, read_found, read_schema, read_truth, side_of
from detmap.checks.report import Report, ordered
from detmap.checks.runs import check_run
from detmap.data.mismatches import check_pair
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError
from detmap.formats.class_maps import ClassMap, class_map_of
from detmap.formats.registry import Path
from detmap.reading.opening import STANDARD_INPUT
from detmap.shapes import find

__all__ = ["CODES", "SEVERITIES", "Code", "Figure", "Finding", "check", "check_run"]

#: The themes, those first that explain what others would find.
_THEMES = (image_ids, boxes, labels, shapes, scores, coverage)


def check(
    ground_truth: GroundTruth | Path,
    detections: Detections | Path | None = None,
    *,
    train: GroundTruth | Path | None = None,
    schema: bool = False,
    gt_format: str | None = None,
    dt_format: str | None = None,
    iou_type: str | None = None,
    image_set: Path | None = None,
    image_sizes: object = None,
    classes: object = None,
    gt_columns: object = None,
    columns: object = None,
    gt_box_format: str | None = None,
    box_format: str | None = None,
    class_map: ClassMap | None = None,
) -> Report:
    """Look at ground truth, and at detections of it, for what makes numbers wrong.

    Parameters
    ----------
    ground_truth : GroundTruth or path
        A table, or a file or folder of any format. Of a file also what reading refuses is reported.
    detections : Detections or path, optional
        Likewise.
    train : GroundTruth or path, optional
        Another ground truth, which should share no image with the first.
    schema : bool
        Look at the ground truth's images and categories alone, and say nothing of what is on them.
    gt_format, dt_format : str, optional
        The names of the formats; by default content and names of the files say them.
    iou_type : str, optional
        Which shapes to look at besides boxes; by default all that every record has.
    image_set, image_sizes, classes, gt_columns, columns, gt_box_format, box_format, class_map
        As in `detmap.read`, for the side that they concern; `class_map` is of the detections.

    Returns
    -------
    Report
        With `findings` and `figures`.

    Raises
    ------
    InputError
        Where the ground truth cannot be read at all, or no file of detections is there to be read.
    OptionError
        For options that cannot be carried out.
    """
    options = Options(
        gt_format,
        dt_format,
        iou_type,
        image_set,
        image_sizes,
        classes,
        gt_columns,
        columns,
        gt_box_format,
        box_format,
        None if class_map is None else class_map_of(class_map),
    )
    if iou_type is not None:
        find(iou_type)
    if schema and (detections is None or train is not None):
        raise OptionError("a schema says what detections can be about: give them, and nothing else")
    truth = _truth(ground_truth, options, schema)
    other = None if train is None else _truth(train, options._replace(image_set=None), False)
    refused = None
    side = None
    if detections is not None:
        assert isinstance(truth.table, GroundTruth)
        if isinstance(detections, str | os.PathLike):
            try:
                side = read_found(detections, truth.table, options)
            except InputError as error:
                if detections != STANDARD_INPUT and not os.access(detections, os.R_OK):
                    raise  # nothing is there to be checked
                refused = found("unreadable_detections", 1, "file", more=str(error))
        else:
            check_pair(truth.table, detections)
            side = side_of(detections, truth.table)
    return _report(Facts(truth, side, schema, other), [] if refused is None else [refused])


def _truth(given: GroundTruth | Path, options: Options, schema: bool) -> Side:
    if isinstance(given, str | os.PathLike):
        return read_schema(given, options) if schema else read_truth(given, options)
    if isinstance(given, Detections):
        raise InputError("the arguments are swapped", remedy="give the ground truth first, then the detections")
    if not isinstance(given, GroundTruth):
        raise InputError(
            f"expected GroundTruth or a path, not {type(given).__name__}", remedy="detmap.read makes one of a file"
        )
    return side_of(given.take([]) if schema else given)


def _report(facts: Facts, findings: list[Finding]) -> Report:
    for theme in _THEMES:
        findings.extend(theme.check(facts))
    return Report(_subject(facts), ordered(findings), tuple(data_statistics.make(facts)))


def _subject(facts: Facts) -> str:
    parts = [] if facts.schema else [many(len(facts.truth), "object")]
    if facts.found is not None:
        parts.append(many(len(facts.found), "detection"))
    on = facts.truth.on
    return f"{', '.join(parts)}, {many(on.images.ids.size, 'image')}, {many(on.categories.ids.size, 'category')}"
