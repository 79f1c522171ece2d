"""Match predicted segments with ground-truth segments, a few images at a time, on several threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from detmap.data.segments import LabelMap, SegmentedImages
from detmap.errors import InputError, shorten
from detmap.kernels import panoptic as kernels
from detmap.kernels import readonly
from detmap.kernels.png import Runs
from detmap.panoptic.rules import Rules
from detmap.panoptic.tally import PanopticTally
from detmap.system import parallel
from detmap.system.limits import PAIRS

#: Maximum number of images, and of pairs of segments, that a thread matches at once. Larger numbers take more memory.
#: With smaller numbers, threads wait for each other more often.
_IMAGES, _PAIRS = 16, 1 << 20


def match(truth: SegmentedImages, found: SegmentedImages, rules: Rules, threads: int | None = None) -> PanopticTally:
    """Return the tally of predictions on the images of the ground truth.

    Raises
    ------
    InputError
        For an image without predictions, label maps of different sizes, a predicted segment that is only in the label map
        or only in the JSON, or a predicted category that the ground truth lacks.
    """
    assert truth.classes is not None
    places = {image: at for at, image in enumerate(found.image_ids)}
    for image in truth.image_ids:
        if image not in places:
            raise InputError("there is no prediction for it", source=found.source, record=f"image {shorten(image)}")
    codes = {category: at for at, category in enumerate(truth.classes.ids)}
    number = len(truth.image_ids)
    own = _Side.of(truth, np.arange(number), codes)
    theirs = _Side.of(found, np.array([places[image] for image in truth.image_ids], np.int64), codes)
    images = _Images(own, theirs)
    size = max(1, min(_IMAGES, number // (4 * parallel.thread_count(threads))))
    blocks = parallel.split(1 / size + images.pairs / _PAIRS, 1)
    made = parallel.run(images.match, blocks, threads, apart=True)
    rows = np.concatenate([np.empty(0, np.int64), *(row for row, _ in made)])
    iou = np.concatenate([np.empty(0), *(iou for _, iou in made)])
    notices = Counter({**found.notices, "unread_predictions": len(found.image_ids) - number})
    notices.update(truth.notices)
    notices["unlisted_categories"] = int((own.segments.category < 0).sum())
    notices["wrong_areas"], notices["unlisted_pixels"] = (int(one) for one in images.odd.sum(axis=0))
    listed = own.segments.category >= 0
    missed, objects = (images.truth == kernels.MISSED) & listed, ~own.segments.crowd & listed
    tally = PanopticTally.of_segments(
        truth.classes,
        truth.image_ids,
        (own.cells(rows), theirs.cells(images.found == kernels.MISSED), own.cells(missed), own.cells(objects)),
        iou,
        rules,
        {code: count for code, count in notices.items() if count},
    )
    return replace(tally, clusters=truth.clusters)


@dataclass(frozen=True)
class _Side:
    """The segments of one file, ground truth or predictions, on the images of the ground truth.

    ``places`` holds the index of each image in the file. ``image`` holds the index of each segment's image in the
    ground truth, and ``rows`` the index of each segment in the file.
    """

    file: SegmentedImages
    places: NDArray[np.int64]
    segments: kernels.Segments
    image: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, file: SegmentedImages, places: NDArray[np.int64], codes: dict[Any, int]) -> _Side:
        begins, sizes = file.starts[:-1][places], np.diff(file.starts)[places]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        image = np.repeat(np.arange(places.size), sizes)
        rows = np.arange(image.size) + np.repeat(begins - starts[:-1], sizes)
        rows = rows[np.lexsort((file.ids[rows], image))]
        category = np.array([codes.get(one, -1) for one in file.category_ids], np.int32)[rows]
        crowd = file.crowd[rows]
        last = np.zeros(rows.size, np.bool_)
        regions = np.flatnonzero(crowd)
        regions = regions[np.argsort(-rows[regions])]
        _, latest = np.unique(image[regions] * (len(codes) + 1) + category[regions], return_index=True)
        last[regions[latest]] = True
        segments = kernels.Segments(
            readonly(starts, np.int64), readonly(file.ids[rows], np.uint32), readonly(category, np.int32),
            readonly(file.areas[rows], np.float64), readonly(crowd, np.bool_), readonly(last, np.bool_),
        )  # fmt: skip
        return cls(file, places, segments, image, rows)

    def cells(self, chosen: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the images and the categories of some segments."""
        return self.image[chosen], self.segments.category[chosen]


class _Images:
    """Matches segments, a block of images at a time, and holds the outcome of each segment."""

    def __init__(self, own: _Side, theirs: _Side) -> None:
        self.own, self.theirs = own, theirs
        objects, predictions = np.diff(own.segments.starts), np.diff(theirs.segments.starts)
        #: The number of segment pairs per image.
        self.pairs = objects * predictions
        #: The number of entries of each image's table of shared pixels.
        self.room = (objects + 2) * (predictions + 1)
        if (self.room * 8 > PAIRS.value()).any():
            image = int(np.flatnonzero(self.room * 8 > PAIRS.value())[0])
            raise InputError(
                f"{objects[image]:,} times {predictions[image]:,} segments take more memory than the limit",
                source=own.file.source,
                record=self._place(image),
                remedy=PAIRS.advice(),
            )
        self.truth = np.zeros(own.rows.size, np.uint8)
        self.found = np.zeros(theirs.rows.size, np.uint8)
        self.odd = np.zeros((objects.size, 2), np.int64)
        self._reading = threading.Lock()

    def match(self, begin: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Match the images ``[begin, end)``; return the ground-truth row and the IoU of each matched pair."""
        # Reading consists of short system calls. Two threads that read at the same time would pass the GIL to each
        # other at each call, and take 3 % longer.
        with self._reading:
            held = [side.file.label_maps(side.places[begin:end].tolist()) for side in (self.own, self.theirs)]
        maps, found_maps = (decode() for decode in held)
        for (first, name), (second, other_name) in zip(maps, found_maps, strict=True):
            if first.shape != second.shape:
                raise InputError(
                    f"has {_size(second)} pixels, and the ground truth {_size(first)}",
                    source=other_name,
                    remedy=f"see {shorten(name, 100)[1:-1]}",
                )
        room = int(self.pairs[begin:end].sum())
        out = kernels.Outcome(
            self.truth, self.found, self.odd, np.empty(room, np.int64), np.empty(room), np.zeros(4, np.int64),
            np.empty(int(self.room[begin:end].max()), np.int64),
            np.empty(int(np.diff(self.theirs.segments.starts)[begin:end].max()), np.int64),
        )  # fmt: skip
        number = kernels.match(
            _joined(maps), _joined(found_maps), self.own.segments, self.theirs.segments, begin, end, parallel.stop_flag(),
            out,
        )  # fmt: skip
        if number < 0:
            self._refuse(out.problem.tolist(), found_maps[int(out.problem[1]) - begin][1])
        return out.pairs[:number].copy(), out.iou[:number].copy()

    def _refuse(self, problem: list[int], name: str) -> NoReturn:
        """Raise `InputError` for the kernel's `Outcome.problem`; `name` is the name of the predicted label map."""
        kind, image, segment, pixels = problem
        if kind == kernels.UNLISTED:
            raise InputError(
                f"holds segment {segment}, which the JSON does not list for the image",
                source=name,
                remedy=f"list it in segments_info of {shorten(self.theirs.file.source, 100)[1:-1]}, or make its pixels 0",
            )
        side = self.own if kind == kernels.IMPOSSIBLE else self.theirs
        what = f"segment {side.segments.ids[segment]}"
        if kind == kernels.IMPOSSIBLE:
            raise InputError(
                f"{what} has an area that its pixels do not fit",
                source=side.file.source,
                record=self._place(image),
                field="area",
                value=float(side.segments.area[segment]),
                remedy=f"it has {pixels} pixels",
            )
        category: Any = side.file.category_ids[int(side.rows[segment])]
        why = f"has category {shorten(category)}, which the ground truth does not list"
        why = "has no pixels in the label map" if kind == kernels.EMPTY else why
        raise InputError(f"{what} {why}", source=side.file.source, record=self._place(image))

    def _place(self, image: int) -> str:
        return f"image {shorten(self.own.file.image_ids[image])}"


def _joined(maps: Sequence[tuple[LabelMap, str]]) -> kernels.LabelMaps:
    """Concatenate label maps."""
    starts = np.cumsum([0, *(one.ids.size for one, _ in maps)], dtype=np.int64)
    runs = Runs(*(readonly(np.concatenate(column), np.uint32) for column in
                  ([one.ends for one, _ in maps], [one.ids for one, _ in maps])))  # fmt: skip
    return kernels.LabelMaps(readonly(starts, np.int64), runs)


def _size(made: LabelMap) -> str:
    return f"{made.shape[1]} x {made.shape[0]}"
