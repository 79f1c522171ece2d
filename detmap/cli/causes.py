"""What makes AP nearly 0: looked for only where it is, among ids, classes and boxes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from detmap.cli.output import say

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol
    from detmap.formats.inputs import Input

#: Below this value the first metric of a result may come from a mistake in the files.
_NEARLY_NONE = 0.1

#: Maximum number of files of a batch that are looked at.
_LOOKED_AT = 3


def is_nearly_none(result: Mapping[str, float]) -> bool:
    """Return whether the first metric of a result is nearly 0."""
    return bool(next(iter(result.values()), 1.0) < _NEARLY_NONE)


def tell_causes(
    options: argparse.Namespace, protocol: Protocol, ground_truth: Any, found: Iterable[tuple[str, Input]]
) -> None:
    """Say in a line for each of some inputs of detections, by name, why little is found, where a check tells."""
    from detmap.errors import DetmapError
    from detmap.formats.inputs import is_stream
    from detmap.shapes import find

    if options.quiet or find(protocol.iou_type).falls:
        return
    for name, one in list(found)[:_LOOKED_AT]:
        if is_stream(one.path):
            continue
        try:
            said = _cause(ground_truth, one.detections(ground_truth))
        except DetmapError:  # what is wrong was said when it was scored
            continue
        if said:
            say(f"note: {name}{': ' if name else ''}{said}")


def _cause(ground_truth: Any, detections: Any) -> str:
    """Return the first error about ids, classes and boxes in one line; empty where there is none."""
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
