"""Likely causes of an AP near 0: wrong ids, classes or boxes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from detmap.cli.output import say

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol
    from detmap.formats.inputs import Input

#: Value of the first metric below which a mistake in the files is likely.
_NEARLY_NONE = 0.1

#: Maximum number of files of a batch that are checked.
_LOOKED_AT = 3


def is_nearly_none(result: Mapping[str, float]) -> bool:
    """Return whether the first metric of a result is nearly 0."""
    return bool(next(iter(result.values()), 1.0) < _NEARLY_NONE)


def tell_causes(
    options: argparse.Namespace, protocol: Protocol, ground_truth: Any, found: Iterable[tuple[str, Input]]
) -> None:
    """For each named input of detections, print the likely cause of its low score, if a check finds one."""
    from detmap.errors import DetmapError
    from detmap.formats.inputs import is_stream
    from detmap.shapes import find

    if options.quiet or find(protocol.iou_type).falls:
        return
    for name, one in list(found)[:_LOOKED_AT]:
        if is_stream(one.path):
            continue
        try:
            said = find(protocol.iou_type).worded(_cause(ground_truth, one.detections(ground_truth)))
        except DetmapError:  # the error was printed when the file was scored
            continue
        if said:
            say(f"note: {name}{': ' if name else ''}{said}")


def _cause(ground_truth: Any, detections: Any) -> str:
    """Return the first error about ids, classes and boxes as one line; "" if there is no error."""
    from detmap.checks import boxes, image_ids, labels
    from detmap.checks.context import Facts
    from detmap.checks.inputs import side_of
    from detmap.checks.report import ordered

    facts = Facts(side_of(ground_truth), side_of(detections, ground_truth))
    findings = [one for theme in (image_ids, boxes, labels) for one in theme.check(facts)]
    worst = next((one for one in ordered(findings) if one.severity == "error"), None)
    if worst is None:
        return ""
    return f"little is found: {worst.says[:1].lower()}{worst.says[1:]}. {worst.remedy} `detmap check` says more"
