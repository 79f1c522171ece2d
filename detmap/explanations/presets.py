"""A metric under every named protocol, and the decision that changes the metric most."""

from __future__ import annotations

import math
from dataclasses import dataclass

from detmap.data.tables import Detections, GroundTruth
from detmap.detection.protocols import AnyProtocol, Protocol
from detmap.errors import InputError
from detmap.explanations.replay import Replay, decided, moved_to, players, said, trimmed
from detmap.explanations.survival import other_conventions
from detmap.shapes.kinds import BOXES


@dataclass(frozen=True, kw_only=True)
class Under:
    """A metric under a named protocol.

    Attributes
    ----------
    name : str
        The name of the protocol.
    value, difference : float
        The metric, and its difference from the metric under the reference protocol.
    rules : int
        Number of decisions that differ from the reference protocol; a group of decisions counts as one.
    reason : str
        The decision that changes the metric most if it alone is changed, with its value. Empty if no decision changes
        the metric, or if reasons were not requested.
    alone : float
        The change of the metric if only this decision is changed; NaN without a reason.
    """

    name: str
    value: float
    difference: float
    rules: int
    reason: str = ""
    alone: float = math.nan


def under_presets(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: AnyProtocol = "coco",
    *,
    metric: str = "AP",
    reasons: bool = True,
    threads: int | None = None,
) -> list[Under]:
    """Evaluate a metric under every named protocol that matches boxes and has this metric.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        The tables to score.
    protocol : str or Protocol
        The reference protocol, as for `detmap.explain`.
    metric : str
        As for `detmap.explain`.
    reasons : bool
        Whether to evaluate the effect of each differing decision alone, which takes several times as long.
    threads : int, optional
        One per processor by default.

    Returns
    -------
    list of Under
        In descending order of the value, without protocols equal to `protocol`; empty if `protocol` does not match
        boxes.

    Raises
    ------
    OptionError
        For an unknown protocol or metric.
    InputError
        If there are no positives.
    """
    base = trimmed(decided(protocol, None, ground_truth, detections), metric)
    if base.iou_type != BOXES:
        return []
    replay = Replay(ground_truth, detections, metric, threads)
    own = replay.value(base).value
    found = []
    for _, name, rules, other in other_conventions(base, metric, ground_truth):
        try:
            value = replay.value(other).value
        except InputError:  # there are no positives
            continue
        reason, alone = _reason(replay, base, other, own) if reasons else ("", math.nan)
        found.append(Under(name=name, value=value, difference=value - own, rules=rules, reason=reason, alone=alone))
    return sorted(found, key=lambda one: (-one.value, one.name))


def _reason(replay: Replay, base: Protocol, other: Protocol, own: float) -> tuple[str, float]:
    """Return the decision that changes the metric most if it alone is changed, and the change of the metric."""
    best, most = "", 0.0
    for label, names in players(base, other):
        try:
            moved = replay.value(moved_to(base, other, names)).value - own
        except InputError:  # no positives are left
            continue
        if abs(moved) > abs(most):
            best, most = f"{label}: {said(other, names)}", moved
    return best, most if best else math.nan
