"""Convert, measure and unite masks that are stored as runs, without validation. `detmap.masks` validates masks; the
drop-in for pycocotools uses unchecked masks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import bitmaps, polygons, readonly
from detmap.kernels import masks as kernels
from detmap.system import parallel

A = TypeVar("A", bound=NDArray[Any])

#: Maximum of run lengths and of their sums, which are 32-bit integers.
WORD = 2**32 - 1

#: Maximum number of points at which polygons cross the centres of columns: a constant, and an addition for each
#: polygon. A point takes 8 bytes.
_MAX_CROSSINGS, _MORE_CROSSINGS = 2**26, 2**10

#: Maximum number of run ends allocated at once, unless a single mask needs more.
_MOST_ROOM = 1 << 24

#: Minimum number of bytes of runs for which several threads are used.
_SMALL = 1 << 16


def freeze(array: A) -> A:
    """Make a new array read-only and return it, because kernels are compiled for read-only arrays."""
    array.flags.writeable = False
    return array


class Runs(NamedTuple):
    """Masks in the form that `detmap.kernels.masks` describes, with `ends` of type uint32, and `spans` of type int64
    and shape (n, 4). Read-only.
    """

    ends: NDArray[np.uint32]
    spans: NDArray[np.int64]

    @classmethod
    def empty(cls, count: int) -> Runs:
        """Return `count` masks of size [0, 0] without runs."""
        return cls(freeze(np.empty(0, np.uint32)), freeze(np.zeros((count, 4), np.int64)))

    @classmethod
    def of_lengths(cls, lengths: Sequence[NDArray[Any]], sizes: Any) -> Runs:
        """Return masks from an array of unsigned run lengths per mask. The sums of run lengths wrap at 32 bits."""
        spans = np.empty((len(lengths), 4), np.int64)
        counts = np.array([array.size for array in lengths], np.int64)
        spans[:, 1] = np.cumsum(counts)
        spans[:, 0] = spans[:, 1] - counts
        spans[:, 2:] = np.reshape(sizes, (-1, 2)) if len(lengths) else 0
        total = np.cumsum(np.concatenate([*lengths, np.empty(0, np.uint32)]).astype(np.uint64))
        before = np.concatenate([np.zeros(1, np.uint64), total])[spans[:, 0]]
        ends = (total - np.repeat(before, counts)) & np.uint64(WORD)
        return cls(freeze(ends.astype(np.uint32)), freeze(spans))

    def merged(self, groups: NDArray[np.int64], both: bool, threads: int | None = 1) -> Runs:
        """Return the union of each group of masks or, if `both` is true, the intersection. Group *g* has the masks
        ``groups[g]:groups[g + 1]``.

        No group may be empty. If the run lengths of a group's masks have different sums, ``spans[g, 1]`` of the result
        is -1.
        """
        counts = self.spans[:, 1] - self.spans[:, 0]
        room = np.add.reduceat(counts, groups[:-1]) + 1
        spans = self.spans[groups[:-1]]
        spans[:, 0] = np.cumsum(room) - room
        ends = np.empty(int(room.sum()), np.uint32)

        def task(begin: int, end: int) -> None:
            kernels.merge_groups(self.ends, self.spans, groups, both, begin, end, ends, spans)

        over(task, len(spans), self.ends.nbytes, threads)
        return Runs(freeze(ends), freeze(spans))


T = TypeVar("T")


def over(task: Callable[[int, int], T], count: int, cost: int, threads: int | None) -> list[T]:
    """Call ``task(begin, end)`` for parts of ``[0, count)``. Several threads are used if the `cost`, in bytes, is large
    enough.
    """
    if threads == 1 or cost < _SMALL:
        return [task(0, count)]
    return parallel.run(task, parallel.even(count, threads), threads)


def runs_of_text(
    text: bytes, sizes: Any, count: int, starts: NDArray[np.int64] | None = None, threads: int | None = 1
) -> tuple[Runs, int]:
    """Return the masks of the NUL-terminated strings in `text`, and the index of the first truncated string (-1 if
    there is none). If the `starts` of the strings are given, several threads read the strings.
    """
    characters = np.frombuffer(text, np.uint8)
    ends = np.empty(characters.size, np.uint32)
    spans = np.empty((count, 4), np.int64)
    spans[:, 2:] = sizes

    def task(begin: int, end: int) -> int:
        at = int(starts[begin]) if begin and starts is not None else 0
        return kernels.decode_strings(characters, at, begin, end, ends, spans)

    bad = over(task, count, ends.nbytes, 1 if starts is None else threads)
    return Runs(freeze(ends), freeze(spans)), next((record for record in bad if record >= 0), -1)


def strings_of_runs(runs: Runs) -> list[bytes]:
    """Return the compressed string of each mask."""
    spans = runs.spans
    out = np.empty(7 * int((spans[:, 1] - spans[:, 0]).sum()), np.uint8)
    stops = np.empty(len(spans), np.int64)
    kernels.encode_strings(runs.ends, spans, 0, len(spans), 0, out, stops)
    cuts = [0, *stops.tolist()]
    text = out[: cuts[-1]].tobytes()
    return [text[cuts[i] : cuts[i + 1]] for i in range(len(spans))]


def measure(runs: Runs, threads: int | None = 1) -> tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.bool_]]:
    """Return areas, boxes (x, y, width, height), and flags of masks whose run ends ascend strictly."""
    count = len(runs.spans)
    areas, boxes, regular = np.empty(count, np.uint32), np.empty((count, 4)), np.empty(count, np.bool_)

    def task(begin: int, end: int) -> None:
        kernels.measure_runs(runs.ends, runs.spans, begin, end, areas, boxes, regular)

    over(task, count, runs.ends.nbytes, threads)
    return freeze(areas), freeze(boxes), freeze(regular)


def written(
    write: Callable[[int, int, NDArray[np.uint32], NDArray[np.int64]], int],
    spans: NDArray[np.int64],
    room: int,
    cost: int,
    threads: int | None,
) -> Runs:
    """Return the masks that a kernel writes; there must be at least one. The kernel ``write(begin, end, ends, spans)``
    writes a range of masks, as `detmap.kernels.bitmaps.runs_of_bitmaps` does. If the array `ends` is too short for all
    masks, the kernel is called again for the remaining masks. `spans`, shape (n, 4), holds the heights and widths of
    the masks; the kernel fills in the other columns. `room` is the expected number of runs of a mask; see `over` for
    `cost`.
    """

    def task(begin: int, end: int) -> list[tuple[int, int, NDArray[np.uint32]]]:
        found, size = [], room * (end - begin)
        while True:
            out = np.empty(size, np.uint32)
            done = write(begin, end, out, spans)
            if done > begin:
                found.append((begin, done, out[: int(spans[done - 1, 1])]))
            if done == end:
                return found
            needed = int(spans[done, 1])
            begin, size = done, max(2 * size, needed, min(needed * (end - done), _MOST_ROOM))

    parts, used = [one for block in over(task, len(spans), cost, threads) for one in block], 0
    for begin, end, ends in parts:
        spans[begin:end, :2] += used
        used += ends.size
    return Runs(freeze(np.concatenate([ends for *_, ends in parts])), freeze(spans))


def runs_of_bitmaps(pixels: NDArray[np.uint8], threads: int | None = 1) -> Runs:
    """Return the masks of a read-only, non-empty array of bitmaps, shape (n, height, width); foreground is non-zero."""
    count, height, width = pixels.shape
    spans = np.empty((count, 4), np.int64)
    spans[:, 2:] = height, width
    return written(partial(bitmaps.runs_of_bitmaps, pixels), spans, 4 * width, pixels.size, threads)


def runs_of_polygons(
    points: NDArray[np.float64],
    vertices: Any,
    sizes: Any,
    threads: int | None = 1,
    *,
    starts: NDArray[np.int64] | None = None,
    before: NDArray[np.uint32] | None = None,
) -> tuple[Runs, int, str]:
    """Return the mask of each polygon. If a polygon cannot be drawn, return its index and the reason. `points` (x, y)
    are the vertices of all polygons, `vertices` the number of vertices of each polygon, and `sizes` the heights and
    widths of the images. If `starts` is given, polygon *i* begins at ``points[starts[i]]``, else directly after the
    previous polygon. If `before` is given, it holds run ends of other masks, and the new ends are appended.
    """
    number = np.asarray(vertices, np.int64)
    count = len(number)
    given = np.empty((count, 4), np.int64)
    given[:, 0] = np.cumsum(number) - number if starts is None else starts
    given[:, 1] = given[:, 0] + number
    given[:, 2:] = sizes
    points, given, crossings = readonly(points, np.float64), freeze(given), np.empty(count, np.int64)
    large = (given[:, 2:] > WORD).any(axis=1) | (given[:, 2].astype(float) * given[:, 3] > WORD)
    if large.any():
        return Runs.empty(0), int(np.flatnonzero(large)[0]), "the image has 2**32 pixels or more"
    task = lambda begin, end: polygons.count_crossings(points, given, begin, end, crossings)  # noqa: E731
    over(task, count, points.nbytes, threads)
    if count and crossings.min() < 0:
        problem = "a coordinate of the polygon is no number, or too far away to be drawn"
        return Runs.empty(0), int(np.flatnonzero(crossings < 0)[0]), problem
    beyond = np.flatnonzero(np.cumsum(crossings) > _MAX_CROSSINGS + _MORE_CROSSINGS * np.arange(1, count + 1))
    if beyond.size:
        return Runs.empty(0), int(beyond[0]), "the polygons' outlines cross too many columns"
    spans = given.copy()
    first = np.empty(0, np.uint32) if before is None else before
    spans[:, 1] = np.cumsum(crossings + 1) + first.size
    spans[:, 0] = spans[:, 1] - crossings - 1
    ends = np.empty(first.size + int(crossings.sum()) + count, np.uint32)
    ends[: first.size] = first
    over(lambda begin, end: polygons.draw_polygons(points, given, begin, end, ends, spans), count, ends.nbytes, threads)
    return Runs(freeze(ends), freeze(spans)), -1, ""


def lengths_of_runs(runs: Runs, first: int, stop: int) -> NDArray[np.int64]:
    """Return the lengths of the runs of a mask, which end at ``ends[first:stop]``."""
    ends = runs.ends[first:stop].astype(np.int64)
    lengths: NDArray[np.int64] = np.diff(ends, prepend=np.int64(0))
    return lengths & WORD


def joined(parts: Iterable[tuple[Runs, list[int]]], count: int) -> Runs:
    """Combine several parts of a column of masks, each given with the row numbers of its masks."""
    ends, spans, used = [np.empty(0, np.uint32)], np.empty((count, 4), np.int64), 0
    for runs, rows in parts:
        spans[rows] = runs.spans + np.array([used, used, 0, 0])
        ends.append(runs.ends)
        used += runs.ends.size
    return Runs(freeze(np.concatenate(ends)), freeze(spans))
