"""Decisions on boxes that stand for groups of objects, as in Open Images, and on the order of equal scores.

The rules come from TensorFlow's Object Detection API. A detection that matches no single object is assigned to the
group that covers the largest share of the detection's area, if this share reaches the threshold. A group is found once,
by its best detection; other detections assigned to the group count neither as hits nor as misses.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import GroundTruth
from detmap.decisions import Flag, decision
from detmap.kernels import matching

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol

_decision = partial(decision, since="0.2")

GROUP_OF = _decision(
    "How a box around a group of objects (Open Images' `IsGroupOf`) is scored. object: like any object. found: by the "
    "best detection that hits no single object and has at least the threshold's share of its own area inside the box; "
    "further detections of this kind are ignored. ignored: the box and all detections of this kind are ignored.",
    "matching",
    allowed=("object", "found", "ignored"),
    phrase=lambda protocol: f"groups {protocol.group_of}",
    flag=Flag(
        name="--group-of",
        help="box around a group of objects: scored as an object (default); found by the best detection inside, while "
        "further ones are ignored; or ignored with all detections inside",
    ),
    group="federated",
)

WITHOUT_SHAPE = _decision(
    "Objects with a box but without the shape that is scored, such as a mask. unmatched: no detection can find them. "
    "boxed: likewise, but a detection that matches nothing else is ignored if the box around its shape matches theirs.",
    "matching",
    allowed=("unmatched", "boxed"),
    phrase=lambda protocol: f"objects without a shape {protocol.without_shape}",
    flag=Flag(
        name="--without-shape",
        help="objects with a box but without the shape that is scored, such as a mask: unmatched (default), or boxed "
        "(detections that match nothing else are ignored if their box matches)",
    ),
    group="federated",
)

#: Names of the flag of groups (`group_of`), and of Open Images' flags that do not affect scores.
FIELDS = ("IsGroupOf", "isgroupof", "is_group_of", "IsDepiction", "IsInside")


def groups_of(ground_truth: GroundTruth, protocol: Protocol) -> NDArray[np.bool_] | None:
    """Return a mask of the objects that count as groups rather than single objects; None if there are none."""
    return None if protocol.group_of == "object" else ground_truth.group_of


def settle(words: matching.Words, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Turn detections that found a group into hits, and return a mask of them. `matching.match` marks such detections
    both as hits and as ignored. A group whose best score is 0 or less is not found, because TensorFlow's program
    initialises the best score of each group with 0.
    """
    found = words.hit & words.ignored
    rows = found.any(axis=1)
    good = (scores > 0)[:, None]
    words.hit[...] &= ~np.where(good, 0, found)
    words.ignored[...] &= ~np.where(good, found, 0)
    return np.asarray(rows & good[:, 0])


def tie_order(protocol: Protocol, side: Any, found_groups: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Sort detections by the protocol's rule for equal scores within an image and category. Return their positions, or
    None if the order does not change.

    Under "reversed", detections that found a group rank first among equal scores. If ties remain, earlier rows rank
    first.
    """
    if protocol.ties != "reversed":
        return None
    return np.lexsort((side.order, ~found_groups, -side.scores, side.category, side.image))
