"""The metrics of a protocol and their names."""

from __future__ import annotations

from collections import Counter
from typing import Any

from detmap.detection.protocols import UNLIMITED, Protocol
from detmap.shapes import find

#: Kind, IoU threshold, area range, cap and category that a metric is the mean over; None is all.
Row = tuple[str, float | None, int, int, int | None]


def metric_table(protocol: Protocol, categories: tuple[tuple[Any, str], ...]) -> list[tuple[str, Row]]:
    """Return the metrics of a protocol, each with a distinct name and with what it is the mean over."""
    last = len(protocol.max_dets) - 1
    areas = [(f"_{name}" if a else "", a) for a, (name, _, _) in enumerate(protocol.area_ranges)]
    if protocol.per_class_metrics:
        return [
            *((f"mAP{suffix}", ("AP", None, a, last, None)) for suffix, a in areas),
            *((f"AP_{name}", ("AP", None, 0, last, k)) for k, name in enumerate(distinct_names(categories))),
        ]
    caps = [(f"AR_{cap}" if cap < UNLIMITED else "AR", m) for m, cap in enumerate(protocol.max_dets)]
    return [
        ("AP", ("AP", None, 0, last, None)),
        ("AP50", ("AP", 0.5, 0, last, None)),
        ("AP75", ("AP", 0.75, 0, last, None)),
        *((f"AP{suffix}", ("AP", None, a, last, None)) for suffix, a in areas[1:]),
        *((name, ("AR", None, 0, m, None)) for name, m in caps),
        *((f"AR{100 * iou:.0f}", ("AR", iou, 0, last, None)) for iou in find(protocol.iou_type).recalls),
        *((f"AR{suffix}", ("AR", None, a, last, None)) for suffix, a in areas[1:]),
    ]


def distinct_names(categories: tuple[tuple[Any, str], ...]) -> list[str]:
    """Return a name for every category that no other has.

    A name that one category has is kept. Where several share one, ``_`` and the id is added to each, once more as long as
    that is taken too: of ``a`` (1), ``a`` (2) and ``a_1`` (3) the first becomes ``a_1_1``, since ``a_1`` keeps its name.
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
