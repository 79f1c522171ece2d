"""Decisions of benchmarks of poses: groups of images by how crowded they are, parts of skeletons, which poses count.

Each decision is declared here; `detmap.detection.protocols.Protocol` has a field for each. Groups of images are carried out
where a result is made of a tally, all others in `detmap.detection.preparation`.
"""

from __future__ import annotations

import math
from typing import Any

from detmap.choices import decimal
from detmap.decisions import Flag, decision

_SINCE = "0.2"


def _plain_groups(groups: Any) -> tuple[tuple[str, float], ...]:
    pairs = groups.items() if hasattr(groups, "items") else groups
    return tuple((str(name), float(below)) for name, below in pairs)


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


def _read_groups(text: str) -> tuple[tuple[str, float], ...]:
    if text == "none":
        return ()
    try:
        pairs = [part.split(":") for part in text.split(",")]
        return tuple((name, decimal(below)) for name, below in pairs)
    except ValueError:
        raise ValueError(f"must be NAME:BELOW with commas between, as easy:0.2,hard:1e10, not {text!r}") from None


CROWD_GROUPS = decision(
    "Groups of images whose AP is a metric too, by CrowdPose's `crowdIndex`: a name, and the index below which images are in "
    "the group and in none before it. Each group is ranked by itself; images whose index is not known are in none.",
    "names",
    plain=_plain_groups,
    wrong=_wrong_groups,
    words=_say_groups,
    phrase=lambda protocol: f"groups of images {_say_groups(protocol.crowd_groups)}",
    flag=Flag(
        name="--crowd-groups",
        metavar="LIST",
        help="groups of images by crowdIndex whose AP is reported, each with the index below which it ends: "
        "easy:0.2,medium:0.8,hard:1e10, or none",
        read=_read_groups,
    ),
    since=_SINCE,
)

CROWD_MEANS = decision(
    'AP of the groups of images: "defined" is the mean over categories with objects there; "published" is CrowdPose\'s own '
    "number, in which a category without objects counts as -1, rounded to four decimals. The former then stands beside it, as "
    "AP_easy_defined.",
    "names",
    allowed=("defined", "published"),
    phrase=lambda protocol: f"AP of groups of images {protocol.crowd_means}",
    flag=Flag(
        name="--crowd-means",
        help="AP of groups of images: of categories with objects there (default), or as CrowdPose publishes it: -1 for "
        "categories without, rounded to four decimals",
    ),
    since=_SINCE,
)
