"""Decisions of federated data sets such as LVIS, where not every category was looked for on every image.

Each decision is declared here; `detmap.detection.protocols.Protocol` has a field for each, and `Arrangement` calls the
functions that implement the decisions. The rules are lvis-api's. The lists of categories for each image are described in
`detmap.data.federated`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.choices import parse_names
from detmap.data.federated import FREQUENCIES, among
from detmap.data.tables import Detections, GroundTruth
from detmap.decisions import YES_OR_NO, Flag, decision
from detmap.detection.group_boxes import FIELDS
from detmap.shapes import find

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol

_decision = partial(decision, since="0.2")

JUDGED = _decision(
    "Which detections are scored: all, or only those of categories that were looked for on their image. These are the "
    "categories with objects, with a verified label (Open Images), or in `neg_category_ids` (LVIS).",
    "matching",
    allowed=("all", "verified"),
    phrase=lambda protocol: "categories that were looked for",
    flag=Flag(
        name="--judged",
        help="score all detections (default), or only those of categories that were looked for on their image: with "
        "objects, with verified labels, or in neg_category_ids",
    ),
    group="federated",
)

NOT_EXHAUSTIVE = _decision(
    "Unmatched detections of a category in the image's `not_exhaustive_category_ids` (LVIS): false positives, or ignored "
    "because not all objects of the category are annotated.",
    "matching",
    allowed=("wrong", "ignored"),
    phrase=lambda protocol: f"not exhaustive categories {protocol.not_exhaustive}",
    flag=Flag(
        name="--not-exhaustive",
        help="unmatched detections of categories in the image's not_exhaustive_category_ids: wrong (default), or ignored",
    ),
    group="federated",
)

WITHOUT_AREA = _decision(
    "Objects and detections without a positive area. scored: like any other. dropped: removed, as in lvis-api. "
    "undetected: only detections whose width or height is not positive are removed, and the objects still have to be "
    "found, as in TensorFlow's Object Detection API.",
    "matching",
    allowed=("scored", "dropped", "undetected"),
    phrase=lambda protocol: f"shapes without area {protocol.without_area}",
    flag=Flag(
        name="--without-area",
        help="objects and detections without a positive area: scored (default), dropped, or undetected (only the "
        "detections are dropped)",
    ),
)

GROUPS = _decision(
    "Groups of categories whose mean AP is a metric too, by how frequent LVIS calls them: r (rare) gives APr, c (common) "
    "APc, f (frequent) APf.",
    "names",
    allowed=FREQUENCIES,
    plain=tuple,
    words=lambda groups: "/".join(groups) or "none",
    phrase=lambda protocol: f"groups of categories {'/'.join(protocol.groups)}",
    flag=Flag(
        name="--groups",
        metavar="LIST",
        help="groups of categories whose mean AP is reported: r,c,f, or none",
        read=parse_names,
    ),
)

POOLED = _decision(
    "Whether AP_pooled is a metric too: the AP of one ranking of the detections of all categories, with equal scores "
    "ordered by image and then category. AP_pooled_r and so on pool the categories of one of the `groups`.",
    "names",
    allowed=YES_OR_NO,
    phrase=lambda protocol: "pooled AP",
    flag=Flag(name="--pooled", value=True, help="report AP_pooled too: the AP of one ranking of all categories"),
)

#: The fields of an image with lists of categories.
LISTS = ("neg_category_ids", "not_exhaustive_category_ids")

#: The default of each decision, and the JSON fields that every other value needs.
_FIELDS = {
    "judged": ("all", ("neg_category_ids", "pos_category_ids")),
    "not_exhaustive": ("wrong", ("not_exhaustive_category_ids",)),
    "groups": ((), ("frequency",)),
    "group_of": ("object", FIELDS),
    "crowd_groups": ((), ("crowdIndex",)),
}


def fields_read(protocol: Protocol) -> list[str]:
    """Return the names of the JSON fields that the protocol reads. `frequency` is included if LVIS's lists are read."""
    read = [field for name, (default, own) in _FIELDS.items() if getattr(protocol, name) != default for field in own]
    read += find(protocol.iou_type).lists
    return list(dict.fromkeys([*read, *(["frequency"] if {*LISTS} & {*read} else [])]))


def missing_fields(ground_truth: GroundTruth, protocol: Protocol, images: NDArray[np.bool_]) -> dict[str, int]:
    """For each field that the protocol reads, count the selected images that lack it. For a field of objects, count the
    objects.
    """
    lists = dict(
        zip(LISTS, ((ground_truth.negatives, ground_truth.present), (ground_truth.not_exhaustive,)), strict=True)
    )
    made = {}
    for field in fields_read(protocol):
        missing = images
        for own in lists.get(field, ()):
            missing = missing if own is None else missing & ~own.listed
        if field in lists:
            made[f"missing_{field}"] = int(missing.sum())
    if protocol.crowd_groups:
        index = ground_truth.images.crowd_index
        made["missing_crowdIndex"] = int(images.sum() if index is None else (images & np.isnan(index)).sum())
    if protocol.class_ranges:
        around = ground_truth.images.surroundings
        made["missing_ego"] = int(images.sum() if around is None else (images & np.isnan(around.places[:, 0])).sum())
    if protocol.valid_flag and protocol.valid_flag not in ground_truth.part_flags:
        made["missing_valid_flag"] = int(images[ground_truth.images.codes].sum())
    return made


def areas_of(table: Detections | GroundTruth, kind: str, own: bool) -> NDArray[np.float64]:
    """Return the areas that are compared with area ranges. These are the areas of the geometries or, if `own` is true
    and the table has areas, the areas in the table.
    """
    if isinstance(table, GroundTruth):
        return table.areas if own else np.asarray(table.shape(kind).areas())
    if not own or table.areas is None:
        return np.asarray(table.shape(kind).areas())
    unknown = np.isnan(table.areas)
    return np.where(unknown, table.shape(kind).areas(), table.areas) if unknown.any() else table.areas


def without_area(table: Detections | GroundTruth, protocol: Protocol) -> NDArray[np.bool_] | None:
    """Return a mask of the rows that the decision `without_area` drops, shape (n,); None if no row is dropped."""
    if protocol.without_area == "scored":
        return None
    if protocol.without_area == "undetected":
        if isinstance(table, GroundTruth):
            return None
        bounds = table.shape(protocol.iou_type).bounds()
        sides = bounds.table[:, 2:] if bounds.sizes else bounds.table[:, 2:] - bounds.table[:, :2]
        flat: NDArray[np.bool_] = ~np.asarray((sides > 0).all(axis=1))
        return flat if flat.any() else None
    rule = protocol.object_areas if isinstance(table, GroundTruth) else protocol.result_areas
    flags = ~(areas_of(table, protocol.iou_type, rule == "own") > 0)
    return flags if flags.any() else None


def either(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Return the union of two optional columns of flags; None if both are None."""
    if one is None or other is None:
        return one if other is None else other
    return one | other


class Judgement:
    """Two masks of detections, shape (n,); None in place of a mask without a set flag. `unjudged` flags detections of
    categories that annotators did not look for on the image. `lenient` flags detections of categories whose objects on
    the image are not all labelled; these detections are ignored if unmatched.

    `images` and `categories` are the detections' indices among the images and categories of the ground truth, -1 for a
    category that the ground truth lacks. A `left_out` object is no evidence that annotators looked for its category.
    """

    unjudged: NDArray[np.bool_] | None = None
    lenient: NDArray[np.bool_] | None = None

    def __init__(
        self,
        ground_truth: GroundTruth,
        protocol: Protocol,
        left_out: NDArray[np.bool_] | None,
        images: NDArray[Any],
        categories: NDArray[Any],
    ) -> None:
        count = ground_truth.categories.ids.size
        if protocol.judged == "verified":
            rows: Any = slice(None) if left_out is None else ~left_out
            given = [(ground_truth.images.codes[rows], ground_truth.categories.codes[rows])]
            given += [
                (lists.images, lists.categories)
                for lists in (ground_truth.negatives, ground_truth.present)
                if lists is not None
            ]
            pairs = np.concatenate([one for one, _ in given]), np.concatenate([other for _, other in given])
            known = among(pairs, (images, categories), (ground_truth.images.ids.size, count))
            unjudged = ~known & (categories >= 0)
            self.unjudged = unjudged if unjudged.any() else None
        if protocol.not_exhaustive == "ignored" and ground_truth.not_exhaustive is not None:
            lenient = ground_truth.not_exhaustive.holds(images, categories, count)
            self.lenient = lenient if lenient.any() else None
