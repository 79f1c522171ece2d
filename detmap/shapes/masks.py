"""Columns of masks, with the IoU of masks ("segm"), and the boundary IoU ("boundary")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from detmap import masks as library
from detmap.errors import InputError
from detmap.kernels import Frozen, mask_pairs, readonly
from detmap.kernels import segmentations as kernels
from detmap.kernels.texts import LENGTH_BITS
from detmap.shapes.boxes import Boxes, over_rows, seem_shares
from detmap.shapes.kinds import Drawing, Kind, Pairs, Place
from detmap.shapes.left_strings import AT_A_TIME, IN_FILE, LeftStrings
from detmap.shapes.reading import Regions, Rows, Scratch, Store, resolved
from detmap.system import parallel

if TYPE_CHECKING:
    from detmap.data.tables import Detections, GroundTruth
    from detmap.detection.protocols import Protocol
    from detmap.reading.opening import File

#: Detections are scattered in the file if more than one in `_SCATTERED` follows a detection of another image. Strings
#: of scattered detections are loaded at once.
_SCATTERED = 8

#: Maximum number of polygons drawn at a time, which bounds memory.
_POLYGONS = 1 << 11


@dataclass(frozen=True, eq=False)
class MaskColumn(Frozen):
    """The masks of a table as runs, or as compressed strings that are unpacked lazily; a `detmap.shapes.Column`."""

    #: The masks as read-only arrays.
    held: mask_pairs.Masks
    #: Normalised corners, shape (n, 4), of the boxes of objects that have a box but no mask; NaN for other objects. None
    #: if there are no such objects.
    shares: NDArray[np.float64] | None = None
    #: Strings that are still in their file, at positions from `IN_FILE` on; None if all are in memory.
    left: LeftStrings | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, with all strings in memory."""
        return dict(self.loaded().__dict__)

    @classmethod
    def of(cls, masks: library.Masks) -> MaskColumn:
        """Return a column from `detmap.masks.Masks`."""
        runs = masks.arrays()
        return cls.of_runs(library.Runs(runs["ends"], runs["spans"]))

    @classmethod
    def of_runs(cls, runs: library.Runs, threads: int | None = None) -> MaskColumn:
        """Return a column of valid runs."""
        areas, boxes, regular = library.measure(runs, threads)
        boxes = np.where(areas[:, None] > 0, boxes, 0.0)
        return cls.made(np.empty(0, np.uint8), runs.ends, runs.spans, areas, boxes, regular)

    @classmethod
    def made(cls, text: Any, ends: Any, spans: Any, areas: Any, boxes: Any, regular: Any) -> MaskColumn:
        """Return a column from the arrays of `detmap.kernels.mask_pairs.Masks`."""
        return cls(
            mask_pairs.Masks(
                readonly(text, np.uint8),
                readonly(ends, np.uint32),
                readonly(spans, np.int64),
                readonly(areas, np.float64),
                readonly(boxes, np.float64),
                readonly(regular, np.bool_),
            )
        )

    def __len__(self) -> int:
        """Return the number of masks."""
        return len(self.held.spans)

    def take(self, rows: NDArray[Any]) -> MaskColumn:
        """Return some of the masks, without copying the runs."""
        held = self.held
        made = self.made(held.text, held.ends, held.spans[rows], held.areas[rows], held.boxes[rows], held.regular[rows])
        shares = None if self.shares is None else readonly(self.shares[rows], np.float64)
        return made if shares is None and self.left is None else replace(made, shares=shares, left=self.left)

    def bounds(self) -> Boxes:
        """Return the box around each mask; zeros for empty masks."""
        return Boxes(self.held.boxes, sizes=True)

    def areas(self) -> NDArray[np.float64]:
        """Return the number of pixels of each mask, shape (n,)."""
        return self.held.areas

    def sizes(self) -> NDArray[np.int64]:
        """Return height and width of each mask's image, shape (n, 2)."""
        return self.held.spans[:, 2:]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return by name the concatenated runs of all masks, the stop of each mask's runs, and the image sizes."""
        held = self.unpacked().held
        counts = held.spans[:, 1] - held.spans[:, 0]
        stops = np.cumsum(counts)
        places = np.repeat(held.spans[:, 0] - (stops - counts), counts) + np.arange(int(counts.sum()))
        shares = {} if self.shares is None else {"shares": self.shares}
        return {"ends": held.ends[places], "stops": stops, "sizes": held.spans[:, 2:], **shares}

    def masks(self) -> library.Masks:
        """Return the masks as `detmap.masks.Masks`."""
        held = self.unpacked().held
        return library.Masks(library.Runs(held.ends, held.spans))

    def loaded(self) -> MaskColumn:
        """Return the column with all strings in memory."""
        if self.left is None:
            return self
        text, spans = self.left.appended(self.held.text, self.held.spans)
        held = self.held._replace(text=readonly(text, np.uint8), spans=readonly(spans, np.int64))
        return replace(self, held=held, left=None)

    def unpacked(self, threads: int | None = None) -> MaskColumn:
        """Return the column with runs in place of strings."""
        held = self.loaded().held
        if not (held.spans[:, 1] < 0).any():
            return self
        stops = np.where(held.spans[:, 1] < 0, ~held.spans[:, 1], held.spans[:, 1])
        room = stops - held.spans[:, 0]
        spans = held.spans.copy()
        spans[:, 0] = np.cumsum(room) - room
        ends = np.empty(int(room.sum()), np.uint32)
        rows = readonly(np.arange(len(spans)), np.int64)

        def task(begin: int, end: int) -> None:
            mask_pairs.unpack(held, rows, begin, end, ends, spans)

        if threads == 1:
            task(0, len(spans))
        else:
            parallel.run(task, parallel.even(len(spans), threads if ends.nbytes > 1 << 16 else 1), threads)
        made = self.made(np.empty(0, np.uint8), ends, spans, held.areas, held.boxes, held.regular)
        return made if self.shares is None else replace(made, shares=self.shares)


def join(columns: Sequence[MaskColumn]) -> MaskColumn:
    """Return the concatenation of several columns."""
    held = [column.unpacked().held for column in columns]
    before = np.cumsum([0, *(one.ends.size for one in held)])
    spans = [one.spans + np.array([start, start, 0, 0]) for one, start in zip(held, before, strict=False)]
    made = MaskColumn.made(
        np.empty(0, np.uint8),
        *(
            np.concatenate([*parts, empty])
            for parts, empty in (
                ([one.ends for one in held], np.empty(0, np.uint32)),
                (spans, np.empty((0, 4), np.int64)),
                ([one.areas for one in held], np.empty(0)),
                ([one.boxes for one in held], np.empty((0, 4))),
                ([one.regular for one in held], np.empty(0, np.bool_)),
            )
        ),
    )
    if all(column.shares is None for column in columns):
        return made
    shares = [np.full((len(one), 4), np.nan) if one.shares is None else one.shares for one in columns]
    return replace(made, shares=readonly(np.concatenate(shares), np.float64))


def records(column: MaskColumn) -> list[dict[str, Any]]:
    """Return the field of COCO's record for each mask: a compressed string, and height and width of the image."""
    return [{"segmentation": code} for code in column.masks().to_rle()]


def given(values: Any, source: str) -> MaskColumn:
    """Return a column from a user's argument: `Masks`, bitmaps (n, height, width), or run-length codes."""
    if isinstance(values, MaskColumn):
        return values
    if isinstance(values, library.Masks):
        return MaskColumn.of(values)
    if isinstance(values, list | tuple) and all(isinstance(value, Mapping) for value in values):
        return MaskColumn.of(library.Masks.from_rle(values, source=source))
    if isinstance(values, list | tuple) and values and hasattr(values[0], "shape"):
        columns: Iterable[Any] = (library.Masks.from_bitmaps(value[None], source=source) for value in values)
        return join([MaskColumn.of(masks) for masks in columns])
    return MaskColumn.of(library.Masks.from_bitmaps(values, source=source))


# --------------------------------------------------------------------------------------------------------- COCO's records

#: Description and remedy of each problem of a segmentation.
PROBLEMS = {
    kernels.NEITHER: ("must be polygons, or an object with size and counts", None),
    kernels.INCOMPLETE: ("a mask must be an object with size and counts", None),
    kernels.TWICE: ("has size or counts twice", "keep the one that is meant"),
    kernels.BAD_SIZE: ("size must be two positive integers, height and width, of less than 2**32 pixels", None),
    kernels.BAD_COUNTS: ("counts must be a string, or a list of integers of 0 or more", None),
    kernels.FOREIGN: ("counts has a character outside '0' to 'o'", "was the string damaged?"),
    kernels.CUT: ("counts ends within a number", "was the string cut off?"),
    kernels.UNFILLED: ("the runs do not add up to the image's pixels", "counts and size must be of the same image"),
    kernels.NO_OUTLINE: ("has no polygon", "leave out the record, or give it a mask"),
    kernels.BAD_OUTLINE: ("a polygon must be a list of numbers x, y, x, y and so on", None),
    kernels.SHORT: ("the first polygon has fewer than three points", "give each point as x, y"),
}


#: The columns of `detmap.kernels.segmentations.Segments` with a row per record.
_BY_ROW: dict[str, tuple[tuple[int, ...], DTypeLike]] = {
    "kinds": ((), np.int8),
    "spans": ((4,), np.int64),
    "areas": ((), np.float64),
    "boxes": ((4,), np.float64),
    "regular": ((), np.bool_),
}


class _Part(NamedTuple):
    """The segmentations of some records. `odd` is the number of polygons with fewer than three points, or with an odd
    number of coordinates.

    `chunk` and `drawing` are the numbers of the chunks of memory that hold the strings and the coordinates. The
    coordinates begin at `begin`. `row` is the first row of the part in the final columns; -1 if the part has separate
    columns.
    """

    segments: kernels.Segments
    odd: int
    chunk: int
    drawing: int
    begin: int
    row: int


#: Minimum number of records for the notice that polygons seem to be normalised.
_FEWEST_SHARES = 3
#: Maximum number of polygons sampled for that notice.
_LOOKED_AT = 1024
#: Maximum number of bytes read at a time if strings may stay in the file. Kernels cannot store the length of a longer
#: string.
_LONGEST = 1 << LENGTH_BITS - 1


class MaskReader:
    """A `detmap.shapes.Reader` of the field ``segmentation``."""

    def __init__(self, size: int, document: NDArray[np.uint8] | None = None) -> None:
        """Make room for the strings of a document of `size` bytes. `document` is a buffer whose first `size`
        bytes are the document, or None. Strings without escapes are used in this buffer, without a copy.
        """
        self._within = document is not None
        self._text = Regions(np.uint8, size, document)
        self._points = Store(np.uint64, size)
        self._scratch = Scratch()
        self._rows = Rows(_BY_ROW)
        self._left: LeftStrings | None = None

    def scored_once(self, file: File | None) -> None:
        """Leave the strings in the file. The column reads the strings later, from a separate file handle."""
        if file is not None:
            self._left = LeftStrings(file.duplicate())

    def read(self, data: NDArray[np.uint8], base: int, spans: NDArray[np.int64]) -> _Part | None:
        """Read JSON values; return None if a value is invalid."""
        return self._read(data, spans, self._rows.apart(len(spans)), -1)

    def read_at(
        self,
        data: NDArray[np.uint8],
        spans: NDArray[np.int64],
        row: int,
        capacity: int,
        base: int = 0,
        buffer: NDArray[np.uint8] | None = None,
    ) -> _Part | None:
        """Read as `read` does, but write to the final columns from `row` on. These columns have `capacity` rows.

        `data` are the bytes of a file from position `base`; `buffer` begins with `data` and is at least twice as long.
        """
        own = self._rows.at(row, len(spans), capacity)
        if self._left is None or buffer is None or len(data) > _LONGEST:
            return self._read(data, spans, own, row)
        return self._read(data, spans, own, row, base, buffer)

    def _read(
        self,
        data: NDArray[np.uint8],
        spans: NDArray[np.int64],
        rows: dict[str, NDArray[Any]],
        row: int,
        base: int = 0,
        buffer: NDArray[np.uint8] | None = None,
    ) -> _Part | None:
        size = int((spans[:, 1] - spans[:, 0]).sum())
        room = size // 2 + 1
        state = np.zeros(kernels.STATE_SIZE, np.int64)
        if buffer is None:
            text, begin, chunk = self._text.take(size + 8)
            state[kernels.TEXT], state[kernels.WITHIN] = begin, self._within and chunk == 0
        else:
            text, chunk = buffer, 0
            state[kernels.TEXT], state[kernels.WITHIN], state[kernels.LEFT] = len(data), True, base + IN_FILE
        out = kernels.Segments(
            **rows,
            text=text,
            ends=self._scratch.take(room, np.uint32),
            vertices=self._scratch.take(room, np.int64),
            points=self._scratch.take(room, np.uint64),
        )
        resolved(kernels.read_segmentations, data, spans, state, (out,), out.points)
        if (out.kinds == kernels.NO_JSON).any():
            return None
        if buffer is None:
            self._text.keep(int(state[kernels.TEXT]))
        count = int(state[kernels.POINTS])
        points, start, drawing = self._points.take(count, size)
        points[start : start + count] = out.points[:count]
        trimmed: dict[str, Any] = {
            "ends": out.ends[: state[kernels.ENDS]].copy(),
            "vertices": out.vertices[: state[kernels.POLYGONS]].copy(),
            "text": np.empty(0, np.uint8),
            "points": np.empty(0, np.uint64),
        }
        return _Part(out._replace(**trimmed), int(state[kernels.ODD]), chunk, drawing, start, row)

    def column(self, parts: Sequence[_Part], place: Place) -> tuple[MaskColumn, dict[str, int]]:
        """Combine the parts."""
        text, bases = self._text.whole()
        for part in parts:
            if bases[part.chunk]:  # ends of strings are stored inverted (~)
                packed = (part.segments.kinds == kernels.PACKED) & (part.segments.spans[:, 0] < IN_FILE)
                part.segments.spans[packed, :2] += bases[part.chunk] * np.array([1, -1])
        segments = [part.segments for part in parts]
        odd = sum(part.odd for part in parts)
        sizes_of = [(len(one.kinds), one.ends.size, one.vertices.size) for one in segments]
        empty = {"ends": np.empty(0, np.uint32), "vertices": np.empty(0, np.int64)}
        coordinates, drawings = self._points.whole()
        begins = [
            drawings[part.drawing] + part.begin + np.cumsum(part.segments.vertices) - part.segments.vertices
            for part in parts
        ]
        begins.append(np.empty(0, np.int64))
        made: dict[str, Any] = {
            "text": text,
            "points": coordinates,
            **self._rows.joined([(part.row, part.segments._asdict()) for part in parts]),
            **{name: np.concatenate([*(getattr(one, name) for one in segments), empty[name]]) for name in empty},
        }
        whole = kernels.Segments(**made)
        segments.clear()
        first = 0
        before = {kernels.LISTED: 0, kernels.OUTLINES: 0}
        for count, ends, outlines in sizes_of:  # converts positions within a part to positions in `whole`
            rows = slice(first, first + count)
            first = rows.stop
            for kind, start in before.items():
                if start:
                    whole.spans[rows, :2] += np.where(whole.kinds[rows] == kind, start, 0)[:, None]
            before[kernels.LISTED] += ends
            before[kernels.OUTLINES] += outlines
        boxed = _check(whole, place)
        points = whole.points.view(np.float64).reshape(-1, 2)
        vertices, starts = whole.vertices // 2, np.concatenate(begins) // 2
        drawn = int(np.count_nonzero(whole.kinds == kernels.OUTLINES))
        shares = drawn if drawn >= _FEWEST_SHARES and _seem_shares(points, starts, vertices) else 0
        whole.spans[boxed, 0] = len(vertices) + np.arange(boxed.size)
        whole.spans[boxed, 1] = whole.spans[boxed, 0] + 1
        whole.kinds[boxed] = kernels.OUTLINES
        if place.boxes is not None and boxed.size:
            starts = np.concatenate([starts, len(points) + 4 * np.arange(boxed.size)])
            points = np.concatenate([points, _corners(place.boxes[boxed])])
            vertices = np.concatenate([vertices, np.full(boxed.size, 4)])
        column = _assembled(whole, _Polygons(points, starts, vertices), place)
        if self._left is not None:
            column = replace(column, left=self._left)
        other = 0
        if place.sizes is not None:
            other = _differing(place.sizes, column.sizes())
        notices = {"odd_polygons": odd, "box_masks": int(boxed.size), "mask_sizes": other}
        return column, {**notices, "normalised_polygons": shares}


def _seem_shares(points: NDArray[np.float64], starts: NDArray[np.int64], vertices: NDArray[np.int64]) -> bool:
    """Return whether polygons seem to be normalised, judging by two points of each polygon in a subset."""
    some = slice(None, None, 1 + len(starts) // _LOOKED_AT)
    first = starts[some]
    across = np.minimum(first + vertices[some] // 2, len(points) - 1)
    return seem_shares(np.concatenate([points[first], points[across]], axis=1))


def _check(whole: kernels.Segments, place: Place) -> NDArray[np.int64]:
    """Return the rows of records without a segmentation, for which boxes are used instead."""
    kinds = whole.kinds
    if (kinds < 0).any():
        row = int(np.argmax(kinds < 0))
        problem, remedy = PROBLEMS[int(kinds[row])]
        raise InputError(problem, source=place.source, record=place.record(row), field="segmentation", remedy=remedy)
    absent = np.flatnonzero(kinds == kernels.ABSENT)
    boxes = place.boxes
    unboxed = absent if boxes is None or place.kind else absent[np.isnan(boxes[absent, 0])]
    if absent.size and (unboxed.size or absent.size == kinds.size):
        all_of_them = absent.size == kinds.size
        row = int((unboxed if unboxed.size else absent)[0])
        held = " It holds boxes: iou_type='bbox' (--iou-type bbox) scores those" if boxes is not None else ""
        raise InputError(
            "no record has masks." + held if all_of_them else "is missing",
            source=place.source,
            record=None if all_of_them else place.record(row),
            field="segmentation",
            remedy=None if all_of_them else "masks are scored: each record needs its own",
        )
    return absent


def _differing(given: NDArray[np.int64], own: NDArray[np.int64]) -> int:
    """Return the number of masks whose size differs from the known size of their image."""

    def count(begin: int, end: int) -> int:
        (height, width), (tall, wide) = given[begin:end].T, own[begin:end].T
        differ = (height != tall) | (width != wide)
        return int(np.count_nonzero(differ & (height > 0) & (width > 0))) if differ.any() else 0

    return sum(over_rows(count, len(given)))


def _corners(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the polygons of four points that pycocotools draws for boxes."""
    x, y, width, height = boxes.T
    right, bottom = x + width, y + height
    return np.stack([x, y, x, bottom, right, bottom, right, y], axis=1).reshape(-1, 2)


class _Polygons(NamedTuple):
    """The concatenated points (x, y) of polygons, the index of each polygon's first point, and the numbers of points."""

    points: NDArray[np.float64]
    starts: NDArray[np.int64]
    vertices: NDArray[np.int64]


def _assembled(whole: kernels.Segments, polygons: _Polygons, place: Place) -> MaskColumn:
    """Return the column of all masks, given as strings, lists of runs, or polygons to be drawn."""
    spans, areas, boxes, regular = whole.spans, whole.areas, whole.boxes, whole.regular
    rows = np.flatnonzero(whole.kinds == kernels.OUTLINES)
    rows = rows[np.argsort(whole.spans[rows, 0], kind="stable")]  # in the order of their polygons
    drawn = _drawn(spans[rows], polygons, rows, place, whole.ends) if rows.size else library.Runs(whole.ends, spans[:0])
    listed = np.flatnonzero(whole.kinds == kernels.LISTED)
    spans[rows] = drawn.spans
    ends = drawn.ends
    others = np.concatenate([listed, rows])
    if others.size:
        runs = library.Runs(readonly(ends, np.uint32), readonly(spans[others], np.int64))
        areas[others], boxes[others], regular[others] = library.measure(runs, None)
        empty = others[areas[others] == 0]
        boxes[empty] = 0.0
    return MaskColumn.made(
        whole.text if (whole.kinds == kernels.PACKED).any() else np.empty(0, np.uint8),
        ends,
        spans,
        areas,
        boxes,
        regular,
    )


def _drawn(
    groups: NDArray[np.int64],
    polygons: _Polygons,
    rows: NDArray[np.int64],
    place: Place,
    before: NDArray[np.uint32],
) -> library.Runs:
    """Draw the masks of the records `rows`, and append the ends of their runs to `before`. Mask *i* is the union of the
    polygons ``groups[i, 0]`` to ``groups[i, 1]`` (exclusive). Raises `InputError` for a polygon that cannot be drawn,
    or for an image of unknown size.
    """
    points, starts, vertices = polygons
    sizes = np.zeros((rows.size, 2), np.int64) if place.sizes is None else place.sizes[rows]
    unknown = ~(sizes > 0).all(axis=1)
    if unknown.any():
        row = int(rows[np.argmax(unknown)])
        raise InputError(
            "polygons need the height and width of their image, and those are not known",
            source=place.source,
            record=place.record(row),
            field="segmentation",
            remedy="give the images of the ground truth height and width"
            if place.kind or place.sizes is not None
            else "read the ground truth first, and give it to the reader of results",
        )
    number = groups[:, 1] - groups[:, 0]
    if rows.size == vertices.size:  # one polygon per mask: draw all masks at once, after `before`
        runs, _, problem = library.runs_of_polygons(points, vertices, sizes, None, starts=starts, before=before)
        if not problem:
            return runs
    cuts = np.searchsorted(np.cumsum(number), np.arange(_POLYGONS, int(number.sum()), _POLYGONS))
    bounds = np.unique(np.concatenate([[0], cuts + 1, [rows.size]]))

    def draw(begin: int, end: int) -> library.Runs:
        first, stop = int(groups[begin, 0]), int(groups[end - 1, 1])
        owners = np.repeat(np.arange(begin, end), number[begin:end])
        runs, bad, problem = library.runs_of_polygons(
            points, vertices[first:stop], sizes[owners], 1, starts=starts[first:stop]
        )
        if problem:
            row = int(rows[owners[bad]])
            raise InputError(problem, source=place.source, record=place.record(row), field="segmentation")
        if stop - first > end - begin:
            merged = readonly(np.cumsum([0, *number[begin:end]]), np.int64)
            runs = runs.merged(merged, False)
        spans = runs.spans.copy()
        return library.Runs(runs.ends, spans)

    blocks = [(int(begin), int(end)) for begin, end in pairwise(bounds)]
    made = parallel.run(draw, blocks)
    used = before.size
    for runs in made:
        runs.spans[:, :2] += used
        used += runs.ends.size
    ends = np.concatenate([before, *(runs.ends for runs in made)])
    return library.Runs(ends, np.concatenate([runs.spans for runs in made]))


# --------------------------------------------------------------------------------------------------------------- overlap


def _prepare(
    detections: Detections, ground_truth: GroundTruth, protocol: Protocol
) -> tuple[MaskColumn, MaskColumn, dict[str, int]]:
    """Unpack the masks of the ground truth, because each mask is compared with many detections."""
    found, truth = detections.shape("segm"), ground_truth.shape("segm")
    assert isinstance(found, MaskColumn)
    assert isinstance(truth, MaskColumn)
    if found.left is not None and _scattered(detections.images.codes, len(detections.images.ids)):
        found = found.loaded()
    return found, truth.unpacked(), {}


def _scattered(images: NDArray[np.int32], count: int) -> bool:
    """Return whether detections of one image are so scattered in the file that every string would be read
    separately.
    """
    return int(np.count_nonzero(np.diff(images))) - count > len(images) // _SCATTERED


def _covered(column: MaskColumn) -> NDArray[np.float64]:
    """Return the areas; NaN for irregular masks, because their areas do not bound overlaps."""
    areas, regular = column.held.areas, column.held.regular
    return areas if regular.all() else np.where(regular, areas, np.nan)


def _absent(column: MaskColumn) -> tuple[NDArray[np.bool_], NDArray[np.float64] | None]:
    """Return a boolean array, true for empty masks, and the boxes that replace empty masks."""
    return column.held.areas == 0, column.shares


def _refine(detections: MaskColumn, ground_truth: MaskColumn, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write the overlap of masks."""
    if detections.left is not None:
        _refine_left(detections, detections.left, ground_truth, pairs, out)
        return
    rows = pairs.detections, pairs.ground_truth, pairs.crowd
    mask_pairs.mask_overlaps(detections.held, ground_truth.held, *rows, parallel.stop_flag(), out)


def _refine_left(
    detections: MaskColumn, left: LeftStrings, ground_truth: MaskColumn, pairs: Pairs, out: NDArray[np.float64]
) -> None:
    """Write the overlap of masks if some strings are still in a file; these strings are read from the file."""
    held, stop = detections.held, parallel.stop_flag()
    in_file = held.spans[pairs.detections, 0] >= IN_FILE

    def write(masks: mask_pairs.Masks, rows: NDArray[np.int64], at: NDArray[np.int64]) -> None:
        found = np.empty(len(at))
        truth, crowd = readonly(pairs.ground_truth[at], np.int64), readonly(pairs.crowd[at], np.bool_)
        mask_pairs.mask_overlaps(masks, ground_truth.held, readonly(rows, np.int64), truth, crowd, stop, found)
        out[at] = found

    at = np.flatnonzero(~in_file)
    write(held, pairs.detections[at], at)
    at = np.flatnonzero(in_file)
    first = np.flatnonzero(np.diff(pairs.detections[at], prepend=-1))  # the first pair of each detection
    for begin in range(0, len(first), AT_A_TIME):
        if stop[0]:
            return
        some = at[first[begin] : first[begin + AT_A_TIME] if begin + AT_A_TIME < len(first) else len(at)]
        rows = pairs.detections[at[first[begin : begin + AT_A_TIME]]]
        text, spans = left.read(held.spans[rows])
        few = detections.take(rows).held._replace(text=text, spans=spans)
        write(few, np.cumsum(np.diff(pairs.detections[some], prepend=-1) != 0) - 1, some)


@dataclass(frozen=True)
class _Contours:
    """Masks, and the width of their boundaries (`dilation`) as a share of the image's diagonal."""

    column: MaskColumn
    dilation: float

    def boundaries(self, rows: NDArray[np.int64]) -> MaskColumn:
        runs = self.column.take(rows).unpacked(1).held
        masks = library.Masks(library.Runs(runs.ends, runs.spans)).boundary(self.dilation, threads=1)
        found = masks.arrays()
        return MaskColumn.of_runs(library.Runs(found["ends"], found["spans"]), 1)


def _prepare_boundary(
    detections: Detections, ground_truth: GroundTruth, protocol: Protocol
) -> tuple[_Contours, _Contours, dict[str, int]]:
    """Return the masks of both tables, with the protocol's width of boundaries."""
    found, truth, notices = _prepare(detections, ground_truth, protocol)
    return _Contours(found, protocol.dilation), _Contours(truth, protocol.dilation), notices


def _refine_boundary(detections: _Contours, ground_truth: _Contours, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write the overlap of the masks or of their boundaries, whichever is smaller; for crowds, write the overlap of the
    masks. Boundaries are computed only if the masks overlap by at least ``pairs.lowest``.
    """
    _refine(detections.column, ground_truth.column, pairs, out)
    enough = np.flatnonzero((out >= pairs.lowest) & (out > 0) & ~pairs.crowd)
    if not enough.size or parallel.stop_flag()[0]:
        return
    rows, left = np.unique(pairs.detections[enough], return_inverse=True)
    objects, right = np.unique(pairs.ground_truth[enough], return_inverse=True)
    # pairs of one detection remain consecutive
    few = Pairs(
        readonly(left.reshape(-1), np.int64),
        readonly(right.reshape(-1), np.int64),
        readonly(pairs.crowd[enough], np.bool_),
        pairs.lowest,
    )
    along = np.empty(enough.size)
    _refine(detections.boundaries(rows), ground_truth.boundaries(objects), few, along)
    out[enough] = np.minimum(out[enough], along)


def _draw(column: MaskColumn) -> list[Drawing]:
    """Return the outlines of masks along the edges of their pixels."""
    none = np.empty((0, 2))
    polygons = column.masks().to_polygons()
    return [Drawing([np.array(one, np.float64).reshape(-1, 2) for one in made], none) for made in polygons]


def _sample() -> list[dict[str, Any]]:
    """Return masks in the three notations of COCO."""
    square = {"size": [6, 7], "counts": "742000a0"}
    polygons = [[1, 1, 4, 1, 4, 5, 1, 5], [0, 0, 3, 0, 3, 3]]
    return [{"segmentation": one} for one in (square, {"size": [6, 7], "counts": [8, 4, 30]}, polygons)]


#: Maps the description of a problem to its code in `detmap.checks.CODES`.
_REFUSED = {
    PROBLEMS[kind][0]: code
    for code, kinds in {
        "broken_runs": (kernels.INCOMPLETE, kernels.TWICE, kernels.BAD_COUNTS, kernels.FOREIGN, kernels.CUT),
        "mismatched_runs": (kernels.BAD_SIZE, kernels.UNFILLED),
        "missing_shapes": (kernels.NO_OUTLINE,),
    }.items()
    for kind in kinds
}

KIND = Kind(
    name="segm",
    column=MaskColumn,
    field="segmentation",
    propose="threshold",
    covered=_covered,
    prepare=_prepare,
    refine=_refine,
    absent=_absent,
    reader=MaskReader,
    refused={**_REFUSED, "": "bad_polygons"},
    argument="masks",
    given=given,
    join=join,
    records=records,
    sample=_sample,
    draw=_draw,
    image_sizes=MaskColumn.sizes,
)

#: Masks compared by boundary IoU (Cheng et al., 2021).
BOUNDARY = replace(KIND, name="boundary", stored="segm", prepare=_prepare_boundary, refine=_refine_boundary)
