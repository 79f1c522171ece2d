"""What a metric is under every named protocol, and which of its rules moves it most."""

from __future__ import annotations

import math
from dataclasses import dataclass

from detmap.data.tables import Detections, GroundTruth
from detmap.decisions import differing
from detmap.detection.protocols import PRESETS, AnyProtocol, Protocol
from detmap.detection.scored_kinds import readable
from detmap.errors import InputError, OptionError
from detmap.explanations.replay import Replay, decided, moved_to, players, said, trimmed
from detmap.shapes.kinds import BOXES


@dataclass(frozen=True, kw_only=True)
class Under:
    """A metric under a named protocol.

    Attributes
    ----------
    name : str
        The protocol's.
    value, difference : float
        The metric, and by how much it exceeds that under the protocol that all are compared with.
    rules : int
        In how many rules the two differ; those that make sense together only count as one.
    reason : str
        The rule that moves the metric most if it alone is changed, and what it becomes; empty where none moves it, or where
        reasons were not asked for.
    alone : float
        By how much that rule moves it; NaN where there is no reason.
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
    """Evaluate a metric under every named protocol that compares boxes and has it.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        What is scored.
    protocol : str or Protocol
        The rules that the others are compared with, as for `detmap.explain`.
    metric : str
        As for `detmap.explain`.
    reasons : bool
        Whether also each rule in which a protocol differs is changed alone, which takes several times as long.
    threads : int, optional
        One per processor by default.

    Returns
    -------
    list of Under
        The largest value first, without protocols that decide everything alike; none where `protocol` compares other
        shapes than boxes.

    Raises
    ------
    OptionError
        For an unknown protocol or metric.
    InputError
        Where there is nothing to find.
    """
    base = trimmed(decided(protocol, None, ground_truth, detections), metric)
    if base.iou_type != BOXES:
        return []
    replay = Replay(ground_truth, detections, metric, threads)
    own = replay.value(base).value
    found = []
    for name, one in readable(PRESETS, ground_truth).items():
        try:
            other = trimmed(one, metric)
            if other.iou_type != BOXES or not differing(other, base):
                continue
            value = replay.value(other).value
        except (OptionError, InputError):  # it has no such metric, or nothing to find
            continue
        reason, alone = _reason(replay, base, other, own) if reasons else ("", math.nan)
        rules = len(players(base, other))
        found.append(Under(name=name, value=value, difference=value - own, rules=rules, reason=reason, alone=alone))
    return sorted(found, key=lambda one: (-one.value, one.name))


def _reason(replay: Replay, base: Protocol, other: Protocol, own: float) -> tuple[str, float]:
    """Return the rule that moves the metric most if it alone is changed, and by how much."""
    best, most = "", 0.0
    for label, names in players(base, other):
        try:
            moved = replay.value(moved_to(base, other, names)).value - own
        except InputError:  # nothing is left to find
            continue
        if abs(moved) > abs(most):
            best, most = f"{label}: {said(other, names)}", moved
    return best, most if best else math.nan
