"""KITTI's rules, under which objects choose their detections. A first matching finds the scores at which precision is
read. Matching is then repeated at each of these scores. Each class has its own thresholds and neighbouring classes.

The source is the benchmark's program, the devkit of KITTI's object detection, with 40 recall points since October 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.choices import decimal, parse_pairs, plain_pairs
from detmap.data.tables import Detections, GroundTruth
from detmap.decisions import YES_OR_NO, Flag, decision
from detmap.hits import SAMPLES
from detmap.kernels import overlap, readonly
from detmap.shapes.kinds import BEV, BOX3D, BOXES

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol

_decision = partial(decision, since="0.2")

#: The value of `Protocol.matching` for KITTI's rules.
BY_OBJECTS = "by-object-twice"


def _wrong_thresholds(given: tuple[tuple[str, float], ...]) -> str | None:
    names = [name.casefold() for name, _ in given]
    if len(set(names)) < len(names):
        return "class_thresholds name a class twice"
    bad = next((value for _, value in given if not 0 <= value <= 1), None)
    return None if bad is None else f"class_thresholds must be from 0 to 1, not {bad!r}"


CLASS_THRESHOLDS = _decision(
    "The IoU threshold at which the AP of each class is taken, such as KITTI's ``{'car': 0.7}``; names are compared "
    "without case. A class whose threshold is not among `iou_thresholds` gets the mean over all of them. Classes that "
    "are not listed have no AP, unless nothing that is listed occurs.",
    "mean",
    plain=partial(plain_pairs, float),
    wrong=_wrong_thresholds,
    words=lambda pairs: ",".join(f"{name}:{value:g}" for name, value in pairs) or "none",
    phrase=lambda protocol: (
        "IoU by class " + "/".join(f"{name} {value:g}" for name, value in protocol.class_thresholds)
    ),
    flag=Flag(
        name="--class-thresholds",
        metavar="LIST",
        help="IoU threshold at which the AP of each class is taken, as car:0.7,cyclist:0.5 (other classes then have no "
        "AP), or none",
        read=partial(parse_pairs, decimal, ":", "CLASS:IOU with commas between, as car:0.7,cyclist:0.5"),
    ),
)


NEIGHBOURS = _decision(
    'For each class, a similar class whose objects are ignored when this class is scored, such as KITTI\'s ``{"car": '
    '"van"}``; names are compared without case.',
    "matching",
    plain=partial(plain_pairs, str),
    words=lambda pairs: ",".join(map(":".join, pairs)) or "none",
    phrase=lambda protocol: f"neighbours {'/'.join(map(':'.join, protocol.neighbours))}",
    flag=Flag(
        name="--neighbours",
        metavar="LIST",
        help="a similar class for each class, whose objects are ignored when this is scored: "
        "car:van,pedestrian:person_sitting, or none",
        read=partial(parse_pairs, str.strip, ":", "CLASS:OTHER with commas between, as car:van"),
    ),
)

ABSORBING = _decision(
    'With ``matching="by-object-twice"``: whether a detection whose own size is outside a level can still match an '
    "object of the level, which then counts neither as found nor as missed; as in KITTI, detections of every class can.",
    "matching",
    allowed=YES_OR_NO,
    phrase=lambda protocol: "small detections absorb",
    flag=Flag(
        name="--absorbing",
        value=True,
        help="detections whose size is outside a level can match an object of any class in the level, as in KITTI",
    ),
)

CLASS_LEVELS = _decision(
    "Whether the metrics are KITTI's: for each class of `class_thresholds` and each level, AP in percent (``car_easy``) "
    "and, if angles are known, the orientation similarity (``car_aos_easy``).",
    "names",
    allowed=YES_OR_NO,
    phrase=lambda protocol: "percent per class and level",
)


def _protocols() -> list[dict[str, Any]]:
    """Return the decisions of KITTI's protocols, and of OpenPCDet's variants of these protocols."""
    limits = (("easy", 0, 0.15, 40), ("moderate", 1, 0.3, 25), ("hard", 2, 0.5, 25))
    levels = tuple(
        (name, f"occlusion<={occlusion},truncation<={truncation},object.height>{height},detection.height>={height}")
        for name, occlusion, truncation, height in limits
    )
    shared: dict[str, Any] = {
        "recall_thresholds": tuple(k / (SAMPLES - 1) for k in range(SAMPLES)),
        "matching": BY_OBJECTS,
        "strict": True,
        "epsilon": 0.0,
        "levels": levels,
        "neighbours": (("car", "van"), ("pedestrian", "person_sitting")),
        "absorbing": True,
        "class_levels": True,
    }
    own = {"iou_thresholds": (0.5, 0.7), "class_thresholds": (("car", 0.7), ("pedestrian", 0.5), ("cyclist", 0.5))}
    loose = {"iou_thresholds": (0.25, 0.5), "class_thresholds": (("car", 0.5), ("pedestrian", 0.25), ("cyclist", 0.25))}
    made: list[dict[str, Any]] = []
    for suffix, kind in (("", BOXES), ("-bev", BEV), ("-3d", BOX3D)):
        # 40 points since October 2019, 11 before.
        for points, rule in (("", "sampled-40"), ("-r11", "sampled-11")):
            name = f"kitti{suffix}{points}"
            made.append({**shared, **own, "name": name, "iou_type": kind, "interpolation": rule})
        if suffix:
            # Python ports of KITTI's program, such as in OpenPCDet and MMDetection3D, drop don't-care regions for boxes
            # in space. These ports also print AP at lower thresholds than KITTI's. For boxes in the image they agree
            # with KITTI.
            copied = {**shared, "iou_type": kind, "interpolation": "sampled-40", "left_out": ("crowd",)}
            made.append({**copied, **own, "name": f"openpcdet{suffix}"})
            made.append({**copied, **loose, "name": f"openpcdet{suffix}-loose"})
    return made


KITTI = _protocols()


def chosen_thresholds(protocol: Protocol, categories: Sequence[tuple[Any, str]]) -> NDArray[np.bool_]:
    """Return a mask, shape (T, K), of the IoU thresholds over which each category's AP is averaged; see
    `Protocol.class_thresholds`.
    """
    thresholds, of = protocol.iou_thresholds, {name.casefold(): value for name, value in protocol.class_thresholds}
    named = any(name.casefold() in of for _, name in categories)
    evaluated = set(thresholds) & set(of.values()) if named else ()
    out = np.ones((len(thresholds), len(categories)), np.bool_)
    for k, (_, name) in enumerate(categories if evaluated else ()):
        own = of.get(name.casefold())
        if own is None or own in thresholds:
            out[:, k] = [one == own for one in thresholds]
    return out


class Repeated(NamedTuple):
    """Columns of all objects, including the copies that `with_neighbours` adds. `neighbour` flags the copies."""

    rows: NDArray[np.int64]
    category: NDArray[np.int32]
    image: NDArray[np.int32]
    neighbour: NDArray[np.bool_]


def with_neighbours(
    truth: GroundTruth, protocol: Protocol, category: NDArray[np.int32], image: NDArray[np.int32]
) -> Repeated | None:
    """Copy each object of a neighbouring class, such as a van, into the categories that ignore this class, such as
    cars. Return None if nothing is copied. `category` and `image` have one value per row of the table, -1 if the row is
    not scored.
    """
    names = [name.casefold() for name in truth.categories.names]
    parts = []
    for name, other in protocol.neighbours if protocol.use_categories else ():
        wanted = {code for code, own in enumerate(names) if own == name.casefold()}
        given = [code for code, own in enumerate(names) if own == other.casefold()]
        rows = np.flatnonzero(np.isin(truth.categories.codes, given) & (image >= 0) & ~truth.crowd)
        for code in wanted:
            own = category[truth.categories.codes == code]
            place = own.max(initial=-1)
            if rows.size and place >= 0:
                parts.append((rows, np.full(rows.size, place, np.int32)))
    if not parts:
        return None
    every = np.arange(len(truth))
    rows = np.concatenate([every, *(own for own, _ in parts)])
    order = np.argsort(rows, kind="stable")
    made = np.concatenate([category, *(own for _, own in parts)])
    return Repeated(rows[order], made[order], image[rows[order]], np.arange(rows.size)[order] >= every.size)


def absorbers(
    cells: overlap.Cells,
    image_of_cells: NDArray[np.int32],
    category_of_cells: NDArray[np.int32],
    small: NDArray[np.bool_],
    image: NDArray[np.int32],
    category: NDArray[np.int32],
) -> tuple[NDArray[np.int32], overlap.Cells]:
    """Find the detections that can be matched to objects of other categories; the mask `small` flags them.

    Return the table rows of these detections, grouped by the pairs of image and category in `cells`, and the start and
    stop of each pair's rows. `small`, `image` and `category` have one value per row of the table.
    """
    rows = np.flatnonzero(small & (image >= 0))
    rows = rows[np.argsort(image[rows], kind="stable")]
    begins, ends = (np.searchsorted(image[rows], image_of_cells, side=side) for side in ("left", "right"))
    counts = ends - begins
    cell = np.repeat(np.arange(counts.size), counts)
    taken = rows[np.arange(cell.size) - np.repeat(np.cumsum(counts) - counts, counts) + begins[cell]]
    kept = category[taken] != category_of_cells[cell]
    stops = np.cumsum(np.bincount(cell[kept], minlength=counts.size))
    starts = np.concatenate(([0], stops[:-1])) if counts.size else stops
    runs = cells._replace(detection_starts=readonly(starts, np.int64), detection_stops=readonly(stops, np.int64))
    return readonly(taken[kept], np.int32), runs


def angles_of(table: GroundTruth | Detections, kind: str) -> NDArray[np.float64] | None:
    """Return the angles of a table's rows for the similarity of orientation; None if angles are unknown."""
    for column in table.shapes.values():
        angles = getattr(column, "angles", None)
        if angles is not None:
            found: NDArray[np.float64] = angles(kind)
            return found
    return None
