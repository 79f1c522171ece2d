"""Match segments of predictions with those of the ground truth, image by image, on threads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.segments import LabelMap, SegmentedImages
from detmap.errors import InputError, shorten
from detmap.kernels import panoptic as kernels
from detmap.kernels import readonly
from detmap.kernels.png import Runs
from detmap.panoptic.rules import Rules
from detmap.panoptic.tally import ImageTally, PanopticTally
from detmap.system import parallel
from detmap.system.limits import PAIRS


def match(truth: SegmentedImages, found: SegmentedImages, rules: Rules, threads: int | None = None) -> PanopticTally:
    """Return the tally of predictions on the images of the ground truth.

    Raises
    ------
    InputError
        For an image without predictions, label maps of different sizes, a predicted segment that is only in the label map
        or only in the JSON, or a predicted category that the ground truth lacks.
    """
    assert truth.classes is not None
    rows = {image: at for at, image in enumerate(found.image_ids)}
    for image in truth.image_ids:
        if image not in rows:
            raise InputError("there is no prediction for it", source=found.source, record=f"image {shorten(image)}")
    codes = {category: at for at, category in enumerate(truth.classes.ids)}
    of_truth = np.array([codes.get(one, -1) for one in truth.category_ids], np.int32)
    of_found = np.array([codes.get(one, -1) for one in found.category_ids], np.int32)
    images: list[ImageTally | None] = [None] * len(truth.image_ids)
    odd = np.zeros((len(images), 2), np.int64)

    def work(begin: int, end: int) -> None:
        for at in range(begin, end):
            images[at] = _match_image(truth, found, at, rows[truth.image_ids[at]], of_truth, of_found, odd[at])

    parallel.run(work, parallel.even(len(images), threads), threads, apart=True)
    extra = len(found.image_ids) - len(images)
    notices = Counter({**found.notices, "unread_predictions": extra})
    notices.update(truth.notices)
    notices["unlisted_categories"] = int((of_truth < 0).sum())
    notices["wrong_areas"], notices["unlisted_pixels"] = (int(one) for one in odd.sum(axis=0))
    made = [one for one in images if one is not None]
    counted = {code: count for code, count in notices.items() if count}
    tally = PanopticTally.of_images(truth.classes, truth.image_ids, made, rules, counted)
    return replace(tally, clusters=truth.clusters)


def _match_image(
    truth: SegmentedImages,
    found: SegmentedImages,
    image: int,
    other: int,
    of_truth: NDArray[np.int32],
    of_found: NDArray[np.int32],
    odd: NDArray[np.int64],
) -> ImageTally:
    """Match the segments of one image. `odd` receives the number of segments whose area in the JSON is wrong, and 1 if
    any pixel's id is unlisted.
    """
    own = slice(int(truth.starts[image]), int(truth.starts[image + 1]))
    theirs = slice(int(found.starts[other]), int(found.starts[other + 1]))
    ids, other_ids = truth.ids[own], found.ids[theirs]
    order, other_order = np.argsort(ids), np.argsort(other_ids)
    ids, other_ids = ids[order], other_ids[other_order]
    place = f"image {shorten(truth.image_ids[image])}"
    if (ids.size + 2) * (other_ids.size + 1) * 8 > PAIRS.value():
        raise InputError(
            f"{ids.size:,} times {other_ids.size:,} segments take more memory than the limit",
            source=truth.source,
            record=place,
            remedy=PAIRS.advice(),
        )
    (first, name), (second, other_name) = truth.label_map(image), found.label_map(other)
    if first.shape != second.shape:
        raise InputError(
            f"has {_size(second)} pixels, and the ground truth {_size(first)}",
            source=other_name,
            remedy=f"see {shorten(name, 100)[1:-1]}",
        )
    counts = np.zeros((ids.size + 2, other_ids.size + 1), np.int64)
    unlisted = kernels.count_pairs(
        _runs(first), _runs(second), readonly(ids, np.uint32), readonly(other_ids, np.uint32), parallel.stop_flag(),
        counts,
    )  # fmt: skip
    if unlisted >= 0:
        raise InputError(
            f"holds segment {int(second.ids[unlisted])}, which the JSON does not list for the image",
            source=other_name,
            remedy=f"list it in segments_info of {shorten(found.source, 100)[1:-1]}, or make its pixels 0",
        )
    areas, held = counts[:, 1:].sum(axis=0), counts[1:-1].sum(axis=1)
    categories, other_categories = of_truth[own][order], of_found[theirs][other_order]
    _check_found(found, other_ids, areas, other_categories, theirs, other_order, place)
    listed = truth.areas[own][order]
    known = ~np.isnan(listed)
    odd[0] = np.count_nonzero(listed[known] != held[known])
    odd[1] = int(counts[-1].sum() > 0)
    crowd = truth.crowd[own][order]
    last = np.zeros(ids.size, np.bool_)
    of_crowd = {int(category): at for category, at in zip(categories[np.argsort(order)], np.argsort(order), strict=True)
                if crowd[at]}  # fmt: skip
    last[list(of_crowd.values())] = True
    room = max(ids.size * other_ids.size, 1)
    out = kernels.Outcome(
        np.empty(ids.size, np.uint8), np.zeros(other_ids.size, np.uint8), np.empty(room, np.int64),
        np.empty(room, np.int64), np.empty(room, np.float64),
    )  # fmt: skip
    segments = kernels.Segments(
        readonly(categories, np.int32), readonly(np.where(known, listed, held), np.float64), readonly(crowd, np.bool_),
        readonly(last, np.bool_),
    )  # fmt: skip
    number = kernels.match(
        readonly(counts, np.int64), segments, readonly(other_categories, np.int32), readonly(areas, np.int64), out
    )
    if number < 0:
        raise InputError(
            f"segment {int(ids[-1 - number])} has an area that its pixels do not fit",
            source=truth.source,
            record=place,
            field="area",
            value=float(listed[-1 - number]),
            remedy=f"it has {int(held[-1 - number])} pixels",
        )
    counted = categories >= 0
    return ImageTally(
        categories[out.first[:number]],
        out.iou[:number].copy(),
        other_categories[out.found == kernels.MISSED],
        categories[(out.truth == kernels.MISSED) & counted],
        categories[~crowd & counted],
    )


def _check_found(
    found: SegmentedImages,
    ids: NDArray[np.int64],
    areas: NDArray[np.int64],
    categories: NDArray[np.int32],
    rows: slice,
    order: NDArray[np.int64],
    place: str,
) -> None:
    """Raise `InputError` if a predicted segment has no pixels or an unknown category."""
    for bad, problem in ((areas == 0, "has no pixels in the label map"), (categories < 0, "")):
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            category: Any = found.category_ids[rows.start + int(order[at])]
            problem = problem or f"has category {shorten(category)}, which the ground truth does not list"
            raise InputError(f"segment {int(ids[at])} {problem}", source=found.source, record=place)


def _runs(made: LabelMap) -> Runs:
    return Runs(readonly(made.ends, np.uint32), readonly(made.ids, np.uint32))


def _size(made: LabelMap) -> str:
    return f"{made.shape[1]} x {made.shape[0]}"
