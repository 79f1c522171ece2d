"""The metrics of a protocol and their names. A cap is a maximum number of detections, such as 100 in ``AR_100``."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from detmap.detection.protocols import UNLIMITED, Protocol
from detmap.detection.true_positives import names_of
from detmap.shapes import find

#: A metric: kind, IoU threshold, index of the area range, index of the cap, and category. The category is an index, or
#: the letter of a frequency group. None as threshold or category means all thresholds or categories. "AP" and "AR" are
#: means over thresholds and categories, and "pooled" is the AP of several categories in one ranking. "group" is the AP
#: on a group of images, and "published" is the same AP computed as in CrowdPose's program; in place of the category,
#: both have the name of the group. Other kinds are nuScenes' errors of true positives, "score" (nuScenes' detection
#: score), and the kinds in `OF_CLASS`.
Row = tuple[str, float | None, int, int, int | str | None]


#: The kinds of metrics over a group of images.
OF_IMAGES = ("group", "published")

#: The two kinds of metrics that each class in `Protocol.class_thresholds` has: AP and similarity of orientation, both
#: in percent. They have the name of the class in place of the category.
OF_CLASS = ("percent", "orientation")


def metric_table(protocol: Protocol, categories: tuple[tuple[Any, str], ...]) -> list[tuple[str, Row]]:
    """Return the metrics of a protocol: a distinct name and a `Row` for each."""
    last = len(protocol.max_dets) - 1
    areas = [(f"_{name}" if a else "", a) for a, name in enumerate(protocol.range_names)]
    pooled: list[tuple[str, Row]] = []
    if protocol.pooled:
        pooled.append(("AP_pooled", ("pooled", None, 0, last, None)))
        pooled += [(f"AP_pooled_{group}", ("pooled", None, 0, last, group)) for group in protocol.groups]
    kind = "published" if protocol.crowd_means == "published" else "group"
    crowds: list[tuple[str, Row]] = [(f"AP_{name}", (kind, None, 0, last, name)) for name, _ in protocol.crowd_groups]
    if kind == "published":
        crowds += [(f"AP_{name}_defined", ("group", None, 0, last, name)) for name, _ in protocol.crowd_groups]
    if protocol.class_levels:
        start = min(1, len(areas) - 1)  # skip the range of all objects, which KITTI lacks
        # "moderate" first, because KITTI's leaderboards rank by it
        levels = sorted(list(enumerate(protocol.range_names))[start:], key=lambda one: one[1] != "moderate")
        return [
            (f"{name.lower()}{middle}_{level}", (kind, None, a, last, name))
            for middle, kind in zip(("", "_orientation"), OF_CLASS, strict=True)
            for name, _ in protocol.class_thresholds
            for a, level in levels
        ]
    if protocol.per_class_metrics:
        each = protocol.iou_thresholds if protocol.threshold_metrics else ()
        errors = names_of(protocol)
        classes = list(enumerate(distinct_names(categories)))
        return [
            *((f"mAP{suffix}", ("AP", None, a, last, None)) for suffix, a in areas),
            *((f"AP{100 * iou:.6g}", ("AP", iou, 0, last, None)) for iou in each),
            *([("NDS", ("score", None, 0, last, None))] if errors else []),
            *((f"m{name}", (name, None, 0, last, None)) for name in errors),
            *((f"mAP{group}", ("AP", None, 0, last, group)) for group in protocol.groups),
            *((f"m{name}", row) for name, row in crowds),
            *pooled,
            *((f"AP_{name}", ("AP", None, 0, last, k)) for k, name in classes),
            *(
                (f"AP_{name}_{iou:g}", ("AP", iou, 0, last, k))
                for k, name in classes
                for iou in (protocol.iou_thresholds if errors else ())
            ),
            *((f"{error}_{name}", (error, None, 0, last, k)) for error in errors for k, name in classes),
        ]
    most = most_of_all(protocol)
    whole = "AR" if most is None else f"AR_{most}"
    caps = [(f"AR_{cap}" if cap < UNLIMITED else whole, m) for m, cap in enumerate(protocol.max_dets)]
    return [
        ("AP", ("AP", None, 0, last, None)),
        ("AP50", ("AP", 0.5, 0, last, None)),
        ("AP75", ("AP", 0.75, 0, last, None)),
        *((f"AP{suffix}", ("AP", None, a, last, None)) for suffix, a in areas[1:]),
        *((f"AP{group}", ("AP", None, 0, last, group)) for group in protocol.groups),
        *crowds,
        *((name, ("AR", None, 0, m, None)) for name, m in caps),
        *((f"AR{100 * iou:.0f}", ("AR", iou, 0, last, None)) for iou in find(protocol.iou_type).recalls),
        *((f"AR{suffix}", ("AR", None, a, last, None)) for suffix, a in areas[1:]),
        *pooled,
    ]


def most_of_all(protocol: Protocol) -> int | None:
    """Return the cap in the names of AR, such as 300 in lvis-api's AR@300: the cap per image or, without one, the cap
    per category. Return None if the names have no cap.
    """
    if protocol.max_dets[-1] < UNLIMITED or not protocol.groups:
        return None
    return protocol.max_per_image or protocol.max_per_category


#: The quantity that each of nuScenes' errors measures.
_OF_ERRORS = {
    "ATE": "translation in m",
    "ASE": "scale, 1 - IoU",
    "AOE": "orientation in rad",
    "AVE": "velocity in m/s",
    "AAE": "wrong attributes",
}

#: Words for LVIS's groups of classes.
_FREQUENT = {"r": "rare", "c": "common", "f": "frequent"}


def scope(row: Row, protocol: Protocol) -> str:
    """Describe which thresholds, objects and cap a metric of `metric_table` covers or, for an error of true positives,
    the measured quantity.
    """
    kind, iou, area, cap, category = row
    measured = find(protocol.iou_type)
    if kind in measured.errors:
        at = measured.at(protocol.error_threshold or 0.0).removeprefix(f"{measured.name} ")
        return f"{_OF_ERRORS.get(kind, '')}, matches at {at}, less is better".removeprefix(", ")
    if kind not in ("AP", "AR", "pooled"):
        return ""
    ious = protocol.iou_thresholds if iou is None else (iou,)
    said = [measured.at(ious[0], round(ious[-1], 9) if len(ious) > 1 else None)]
    if area:
        limits = protocol.area_ranges[area][1:] if area < len(protocol.area_ranges) else ()
        said.append(_limits(protocol.range_names[area], *limits))
    if isinstance(category, str):
        said.append(f"{_FREQUENT.get(category, category)} classes")
    if protocol.max_dets[cap] < UNLIMITED and kind == "AR":
        said.append(f"{protocol.max_dets[cap]:,} {find(protocol.iou_type).a_scene}")
    return " · ".join(said)


def _limits(name: str, low: float = 0.0, high: float = 1e10, of: str = "area") -> str:
    """Describe the objects of a range: "small, area to 32²"."""
    share = "%" * of.endswith("%")
    ends = [f"{_root(end)}{share}" if of == "area" else f"{end:g}{share}" for end in (low, high)]
    if low <= 0 and high >= 1e10:
        return name
    limits = f"to {ends[1]}" if low <= 0 else f"from {ends[0]}" if high >= 1e10 else f"{ends[0]} to {ends[1]}"
    return f"{name}, {of.removesuffix('%')} {limits}"


def _root(area: float) -> str:
    """Return an area as a square if its root is an integer."""
    side = round(max(area, 0.0) ** 0.5)
    return f"{side}²" if side * side == area and side > 1 else f"{area:g}"


def distinct_names(categories: tuple[tuple[Any, str], ...]) -> list[str]:
    """Return a distinct name for every category. Unique names are kept. A shared name gets ``_`` and the category's id
    as a suffix, repeatedly until it is unique. For example, ``a`` (id 1), ``a`` (id 2) and ``a_1`` (id 3) become
    ``a_1_1``, ``a_2`` and ``a_1``.
    """
    count = Counter(name for _, name in categories)
    taken = {name for name, times in count.items() if times == 1}
    names = []
    for key, name in categories:
        if count[name] > 1:
            name = f"{name}_{key}"
            while name in taken:
                name = f"{name}_{key}"
            taken.add(name)
        names.append(name)
    return names


#: Other tools' spellings of the means over all classes: ``mAP``, ``map_50``, ``AP@0.5``, ``mAP50-95``, ``APs``, ``AR@100``.
_SPELLING = (
    r"(?:m|mean[ _])?(?P<kind>ap|ar)"
    r"(?:[ _@-]?\[?(?P<low>0?\.\d+|\d{2})(?:(?P<range>[:_-](?:0?\.\d+:)?)(?P<high>0?\.\d+|\d{2}))?\]?|[ _@-]?(?P<cap>\d+))?"
    r"(?:[ _@-]?(?P<area>[a-z]+))?"
)


def find_metric(name: str, protocol: Protocol, table: list[tuple[str, Row]]) -> str | None:
    """Return the metric in `table` that another tool calls `name`, such as ``AP@0.5`` or ``AR@100``; None if unclear."""
    whole = most_of_all(protocol)
    if whole is not None and name.upper().startswith("AR"):  # such as lvis-api's ARs@300
        name = name.removesuffix(f"@{whole}")
    match = re.fullmatch(_SPELLING, name, re.IGNORECASE)
    if match is None:
        return None
    kind, low, high, area = match["kind"].upper(), match["low"], match["high"], match["area"]
    cap = match["cap"]
    if kind == "AR" and low is not None and high is None and "." not in low:
        low, cap = None, low
    if cap is not None and (kind == "AP" or area is not None or int(cap) not in protocol.max_dets):
        return None
    ends = [float(one) if "." in one else int(one) / 100 for one in (low, high) if one is not None]
    iou = None
    if len(ends) == 1:
        t = protocol.find_threshold(ends[0])
        if t is None:
            return None
        iou = protocol.iou_thresholds[t] if len(protocol.iou_thresholds) > 1 else None
    elif len(ends) == 2:
        thresholds = protocol.iou_thresholds
        if [protocol.find_threshold(one) for one in ends] != [0, len(thresholds) - 1] or len(thresholds) < 3:
            return None
    a = 0
    if area is not None:
        named = [a for a, one in enumerate(protocol.range_names) if area.lower() in (one, one[:1])]
        if len(named) != 1:
            return None
        (a,) = named
    m = len(protocol.max_dets) - 1 if cap is None else protocol.max_dets.index(int(cap))
    wanted = (kind, a, m, None)
    for found, (of, at, *rest) in table:
        same = at is None if iou is None else at is not None and abs(at - iou) < 1e-9
        if same and (of, *rest) == wanted:
            return found
    return None
