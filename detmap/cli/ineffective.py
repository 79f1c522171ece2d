"""Refuse options that have no effect on scoring, because other options or the protocol make them irrelevant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from detmap.errors import OptionError

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol


def check_effective(given: Iterable[str], protocol: Protocol) -> None:
    """Refuse flags of decisions that the protocol ignores, and IoU thresholds above 1.

    Also refuse an --iou-type that is a distance, unless the thresholds are given, because the protocol's thresholds are
    IoUs.
    """
    from detmap.decisions import decisions_of
    from detmap.detection.protocols import PRESETS, Protocol
    from detmap.shapes import find

    names = set(given)
    kind = find(protocol.iou_type)
    found = PRESETS.find(protocol.name) if protocol.name in PRESETS else None
    own = kind if found is None else find(found.iou_type)
    if kind.falls and not own.falls and "iou_thresholds" not in names:
        apart = ", ".join(name for name, one in PRESETS.items() if one.iou_type == kind.name)
        raise OptionError(
            f"--iou-type {kind.name} is a distance, and the thresholds of {protocol.name} are of IoU: give --protocol "
            f"{apart or 'NAME'}, or --iou-thresholds"
        )
    high = next((one for one in protocol.iou_thresholds if one > 1), None)
    if high is not None and not kind.falls:
        meant = f"; did you mean {high / 100:g}?" if high <= 100 else ""
        raise OptionError(f"--iou-thresholds {high:g}: an IoU is at most 1{meant}")
    declared = decisions_of(Protocol)
    for name in names & _NEEDS.keys():
        works, why = _NEEDS[name]
        flag = declared[name].flag
        if flag is not None and not works(protocol):
            raise OptionError(f"{flag.name} has no effect under {protocol.title}: it is about {why}")


def _has_errors(protocol: Protocol) -> bool:
    from detmap.shapes import find

    return bool(find(protocol.iou_type).errors)


def _has_points(protocol: Protocol) -> bool:
    from detmap.shapes import find

    return find(protocol.iou_type).points is not None


def _is_rematched(protocol: Protocol) -> bool:
    from detmap.detection.tally import rematched

    return rematched(protocol)


def _table() -> Mapping[str, tuple[Callable[[Any], bool], str]]:
    errors = (_has_errors, "boxes in space, as of --protocol nuscenes")
    points = (_has_points, "poses, as of --iou-type keypoints")
    anew = (_is_rematched, "matching anew at each score, as of --protocol kitti")
    return {
        **dict.fromkeys(("error_threshold", "error_rules", "class_ranges"), errors),
        **dict.fromkeys(("sigmas", "oks_area", "points", "labelled", "unseen", "score_field", "valid_flag"), points),
        **dict.fromkeys(("class_thresholds", "neighbours", "absorbing", "class_levels"), anew),
        "crowd_means": (lambda protocol: bool(protocol.crowd_groups), "groups of images (--crowd-groups)"),
    }


_NEEDS = _table()
