"""Decisions of pose benchmarks: groups of images by crowd index, parts of skeletons, and which poses count.

Each decision is declared here; `detmap.detection.protocols.Protocol` has a field for each. Groups of images are
implemented in `detmap.detection.result`, all other decisions in `detmap.detection.preparation`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from detmap.choices import decimal, parse_pairs, plain_pairs, whole
from detmap.decisions import Flag, decision

_decision = partial(decision, since="0.2")

#: Sigmas of CrowdPose's keypoints, from the left shoulder to the neck, in thousandths.
CROWDPOSE = (79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89, 79, 79)

_FACE = (
    42, 43, 44, 43, 40, 35, 31, 25, 20, 23, 29, 32, 37, 38, 43, 41, 45, 13, 12, 11, 11, 12, 12, 11, 11,
    13, 15, 9, 7, 7, 7, 12, 9, 8, 16, 10, 17, 11, 9, 11, 9, 7, 13, 8, 11, 12, 10, 34, 8, 8, 9, 8, 8, 7,
    10, 8, 9, 9, 9, 7, 7, 8, 11, 8, 8, 8, 10, 8,
)  # fmt: skip
_HAND = (29, 22, 35, 37, 47, 26, 25, 24, 35, 18, 24, 22, 26, 17, 21, 21, 32, 20, 19, 22, 31)

#: Sigmas of the parts of COCO-WholeBody.
WHOLE_BODY = {
    "body": (26, 25, 25, 35, 35, 79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89),
    "foot": (68, 66, 66, 92, 94, 94),
    "face": _FACE,
    "lefthand": _HAND,
    "righthand": _HAND,
}


def tenths(thousandths: Iterable[int]) -> tuple[float, ...]:
    """Convert sigmas from thousandths. Dividing in two steps gives the same rounding as in pycocotools."""
    return tuple(sigma / 100 / 10.0 for sigma in thousandths)


def _wrong_groups(groups: tuple[tuple[str, float], ...]) -> str | None:
    stops = [below for _, below in groups]
    if not all(map(math.isfinite, stops)) or stops != sorted(set(stops)):
        return f"crowd_groups must be names with crowd indices that ascend, not {groups!r}"
    names = [name for name, _ in groups]
    if len(set(names)) < len(names) or any(not name or name.isdigit() for name in names):
        return f"groups of images must have names of their own, not {', '.join(map(repr, names))}"
    return None


def _say_groups(groups: tuple[tuple[str, float], ...]) -> str:
    return "/".join(f"{name}<{below:g}" for name, below in groups) or "none"


CROWD_GROUPS = _decision(
    "Groups of images whose AP is a metric too, by CrowdPose's `crowdIndex`: pairs of a name and an exclusive upper "
    "bound of the index. An image belongs to the first group whose bound is above its index; images without an index "
    "belong to no group. Each group is ranked separately.",
    "names",
    plain=partial(plain_pairs, float),
    wrong=_wrong_groups,
    words=_say_groups,
    phrase=lambda protocol: f"groups of images {_say_groups(protocol.crowd_groups)}",
    flag=Flag(
        name="--crowd-groups",
        metavar="LIST",
        help="groups of images by crowdIndex whose AP is reported, each with the index below which it ends: "
        "easy:0.2,medium:0.8,hard:1e10, or none",
        read=partial(parse_pairs, decimal, ":", "NAME:BELOW with commas between, as easy:0.2,hard:1e10"),
    ),
)

CROWD_MEANS = _decision(
    'AP of the groups of images: "defined" is the mean over categories with objects there; "published" is CrowdPose\'s own '
    "number, in which a category without objects counts as -1, rounded to four decimals. The former then stands beside it, "
    "as AP_easy_defined.",
    "names",
    allowed=("defined", "published"),
    phrase=lambda protocol: f"AP of groups of images {protocol.crowd_means}",
    flag=Flag(
        name="--crowd-means",
        help="AP of groups of images: of categories with objects there (default), or as CrowdPose publishes it: -1 for "
        "categories without, rounded to four decimals",
    ),
)


def _plain_points(points: Any) -> Any:
    return None if points is None else tuple(int(one) if isinstance(one, np.integer) else one for one in points)


def _wrong_points(points: Any) -> str | None:
    good = points is None or (
        len(points) == 2 and all(type(one) is int for one in points) and 0 <= points[0] < points[1] < 1 << 31
    )
    return None if good else f"points must be the first point and the one behind the last, or None, not {points!r}"


def _read_points(text: str) -> tuple[int, int]:
    try:
        first, stop = map(whole, text.split(":"))
        return first, stop
    except ValueError:
        raise ValueError(f"must be FIRST:STOP, as 17:23, not {text!r}") from None


POINTS = _decision(
    "For poses: the range (first, stop) of the points that are compared, counted from 0 and without stop, such as one "
    "part of a body. `sigmas` then has one value for each of these points. None: all points.",
    "matching",
    plain=_plain_points,
    wrong=_wrong_points,
    words=lambda points: "all" if points is None else f"{points[0]}:{points[1]}",
    phrase=lambda protocol: f"points {protocol.points[0]}:{protocol.points[1]}",
    flag=Flag(
        name="--points",
        metavar="FIRST:STOP",
        help="keypoints: compare these points alone, counted from 0, without STOP; --sigmas are of these",
        read=_read_points,
    ),
)

LABELLED = _decision(
    "For poses: the number of labelled points of an object, from the field `num_keypoints`, or counted as the compared "
    "points with v above 0. Objects without labelled points are ignored.",
    "matching",
    allowed=("field", "points"),
    phrase=lambda protocol: f"labelled points by {protocol.labelled}",
    flag=Flag(
        name="--labelled",
        help="keypoints: labelled points of an object by num_keypoints (field, default), or points whose v is above 0",
    ),
)

UNSEEN = _decision(
    "For poses: detections in which no compared point has a v above 0: scored like any other, or dropped before any cap, "
    "as in COCO-WholeBody's scripts.",
    "matching",
    "ranking",
    allowed=("scored", "dropped"),
    phrase=lambda protocol: f"poses without visible points {protocol.unseen}",
    flag=Flag(
        name="--unseen", help="keypoints: detections in which no point has v above 0: scored (default), or dropped"
    ),
)

SCORE_FIELD = _decision(
    "Which score ranks detections: `score`, or a column of `Detections.more_scores`, such as `foot_score`. Detections "
    "without a value there are ranked by `score`.",
    "matching",
    "ranking",
    wrong=lambda name: None if isinstance(name, str) and name else f"score_field must be a name, not {name!r}",
    phrase=lambda protocol: f"ranked by {protocol.score_field}",
    flag=Flag(
        name="--score-field", metavar="NAME", help="the score that ranks detections, as foot_score; default: score"
    ),
    reads=True,
)

VALID_FLAG = _decision(
    "A flag in `GroundTruth.part_flags`, such as COCO-WholeBody's `foot_valid`; objects on which it is not set are "
    "ignored. (COCO-WholeBody's own scripts do not read it.) Empty: no flag is read.",
    "matching",
    wrong=lambda name: None if isinstance(name, str) else f"valid_flag must be a name, not {name!r}",
    words=lambda name: name or "none",
    phrase=lambda protocol: f"ignored without {protocol.valid_flag}",
    flag=Flag(
        name="--valid-flag", metavar="NAME", help="ignore objects whose flag of this name is false, as foot_valid"
    ),
)
