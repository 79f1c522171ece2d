"""Columns of poses, and COCO's object keypoint similarity (OKS)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from detmap import columns
from detmap.errors import InputError
from detmap.kernels import Frozen, number_lists, readonly, segmentations
from detmap.kernels import keypoints as kernels
from detmap.shapes.boxes import FARTHEST, Boxes, extremes, over_rows
from detmap.shapes.kinds import SHIPPED_LISTS, WHOLE_BODIES, Drawing, Kind, Pairs, Place, Points
from detmap.shapes.reading import Regions, Rows, resolved
from detmap.system import parallel

if TYPE_CHECKING:
    from detmap.data.tables import Detections, GroundTruth
    from detmap.detection.protocols import Protocol

#: Sigmas of COCO's 17 points, in thousandths of the square root of the object's area.
_HUNDREDTHS = (26, 25, 25, 35, 35, 79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89)
SIGMAS: NDArray[np.float64] = np.array([n / 100 for n in _HUNDREDTHS]) / 10.0

#: Number of pairs computed at a time.
_PAIRS = 1 << 13

#: Number of pixels by which boxes of `_reach` are enlarged. Maximum coordinate for which this exceeds all rounding
#: errors.
_SLACK, _NEAR = 1e-3, 1e6


@dataclass(frozen=True, eq=False)
class Keypoints(Frozen):
    """The poses of a table, a `detmap.shapes.Column`."""

    #: Read-only points x, y, v, with begin and stop of each pose. If detections are read for a single evaluation, v is
    #: left out, because the similarity ignores it.
    poses: kernels.Poses
    #: Number of labelled points of each object, from ``num_keypoints``; shape (n,).
    labelled: NDArray[np.int64]
    #: x, y, width, height of the box around all points, including points at (0, 0); shape (n, 4).
    boxes: NDArray[np.float64]

    @classmethod
    def of(cls, poses: kernels.Poses, labelled: Any = None) -> Keypoints:
        """Return a column; by default points with v above 0 count as labelled."""
        count = len(poses.starts)
        boxes, visible = np.empty((count, 4)), np.empty(count, np.int64)
        over_rows(lambda begin, end: kernels.extents(poses, begin, end, boxes, visible), count)
        return cls(poses, readonly(visible if labelled is None else labelled, np.int64), readonly(boxes, np.float64))

    def __len__(self) -> int:
        """Return the number of poses."""
        return len(self.labelled)

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of values of each pose, three times the number of its points, shape (n,)."""
        sizes = self.poses.stops - self.poses.starts
        return sizes if self.poses.width == 3 else sizes // self.poses.width * 3

    def values(self) -> NDArray[np.float64]:
        """Return the concatenated numbers x, y, v of all poses; `poses` holds the begin and stop of each pose."""
        assert self.poses.width == 3, "v was not read, because the detections are scored once"
        return self.poses.values

    def take(self, rows: NDArray[Any]) -> Keypoints:
        """Return some of the poses, without copying the points."""
        starts, stops = (readonly(column[rows], np.int64) for column in (self.poses.starts, self.poses.stops))
        poses = self.poses._replace(starts=starts, stops=stops)
        return Keypoints(poses, readonly(self.labelled[rows], np.int64), readonly(self.boxes[rows], np.float64))

    def bounds(self) -> Boxes:
        """Return the boxes around all points."""
        return Boxes(self.boxes, sizes=True)

    def areas(self) -> NDArray[np.float64]:
        """Return the areas of the boxes around all points, which pycocotools uses for results without a box."""
        return self.boxes[:, 2] * self.boxes[:, 3]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return by name the concatenated x, y, v of all poses, the starts of the poses, and the numbers of labelled
        points.
        """
        sizes = self.sizes()
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.poses.starts - starts[:-1], sizes) + np.arange(int(starts[-1]))
        return {"values": self.values()[places], "starts": starts, "labelled": self.labelled}


def poses_of(values: Any, starts: Any, stops: Any, width: int = 3) -> kernels.Poses:
    """Return poses. Pose *i* has the numbers ``values[starts[i]:stops[i]]``, and each point has `width` numbers."""
    return kernels.Poses(readonly(values, np.float64), readonly(starts, np.int64), readonly(stops, np.int64), width)


def rows_of(table: NDArray[Any]) -> kernels.Poses:
    """Return the rows of a table as poses."""
    ends = np.arange(len(table) + 1) * table.shape[1]
    return poses_of(table.reshape(-1), ends[:-1], ends[1:])


def join(given_columns: Sequence[Keypoints]) -> Keypoints:
    """Return the concatenation of several columns."""
    held = [column.poses for column in given_columns]
    before = np.cumsum([0, *(poses.values.size for poses in held)])
    starts, stops = (
        np.concatenate([*(getattr(poses, name) + at for poses, at in zip(held, before, strict=False)), np.empty(0)])
        for name in ("starts", "stops")
    )
    values = np.concatenate([*(column.values() for column in given_columns), np.empty(0)])
    labelled = np.concatenate([*(column.labelled for column in given_columns), np.empty(0, np.int64)])
    return Keypoints.of(poses_of(values, starts, stops), labelled)


def extended(given_columns: Sequence[Keypoints]) -> Keypoints:
    """Concatenate the points of several columns row by row. The numbers of labelled points are taken from the first
    column.
    """
    sizes = np.stack([column.sizes() for column in given_columns], axis=1)
    stops = np.cumsum(sizes).reshape(sizes.shape)
    values = np.empty(int(sizes.sum()))
    for at, column in enumerate(given_columns):
        values[_places(stops[:, at] - sizes[:, at], sizes[:, at])] = column.values()[
            _places(column.poses.starts, sizes[:, at])
        ]
    starts = stops[:, 0] - sizes[:, 0]
    return Keypoints.of(poses_of(values, starts, starts + sizes.sum(axis=1)), given_columns[0].labelled)


def _places(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenation of the ranges ``starts[i], …, starts[i] + sizes[i] - 1``."""
    return np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))


def part(column: Keypoints, points: tuple[int, int] | None, counted: bool, source: str) -> Keypoints:
    """Return poses restricted to a range of points (all if `points` is None). If `counted` is true, the numbers of labelled
    points are recomputed as the numbers of points with v above 0.

    Raises
    ------
    InputError
        For a pose that has fewer points than the range needs.
    """
    labelled = None if counted else column.labelled
    if points is None:
        return Keypoints.of(column.poses, labelled)
    first, stop = points
    short = column.sizes() < 3 * stop
    if short.any():
        row = int(np.argmax(short))
        raise InputError(
            f"{int(column.sizes()[row]) // 3} keypoints where points {first + 1} to {stop} are compared",
            source=source,
            record=row,
            field="keypoints",
            remedy="give all points of the skeleton, or choose a protocol that compares other ones",
        )
    values, starts, _, width = column.poses
    return Keypoints.of(poses_of(values, starts + width * first, starts + width * stop, width), labelled)


def records(column: Keypoints) -> list[dict[str, Any]]:
    """Return the fields of COCO's record for each pose."""
    values, (_, starts, stops, _) = column.values(), column.poses  # values between poses may be uninitialised
    rows = zip(starts.tolist(), stops.tolist(), column.labelled.tolist(), strict=True)
    return [{"keypoints": values[start:stop].tolist(), "num_keypoints": labelled} for start, stop, labelled in rows]


def given(values: Any, source: str) -> Keypoints:
    """Return a column from a user's argument, an array (n, k, 3) or (n, 3k) of x, y and visibility."""
    if isinstance(values, Keypoints):
        return values
    points = columns.numbers(values, source=source, field="keypoints")
    count = len(points) if points.ndim else 0
    size = points.size // count if count else 0
    shaped = points.ndim == 2 or (points.ndim == 3 and points.shape[2] == 3)
    if not shaped or size % 3:
        problem = f"shape {points.shape} where n x k x 3 was expected: x, y and visibility of each point"
        if points.size or not points.ndim:
            raise InputError(problem, source=source, field="keypoints")
    flat = points.reshape(count, size)
    bad = ~(np.abs(flat) <= FARTHEST).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError("a keypoint must be finite numbers", source=source, record=row, field="keypoints")
    return Keypoints.of(rows_of(flat.copy()))


# --------------------------------------------------------------------------------------------------------- COCO's records


#: Arrays with a row per record: begin and stop of the record's numbers, box, and number of visible points. Without a
#: valid list of numbers, the stop is `_WRONG` or `_ABSENT`.
_BY_ROW: dict[str, tuple[tuple[int, ...], DTypeLike]] = {
    "starts": ((), np.int64),
    "stops": ((), np.int64),
    "boxes": ((4,), np.float64),
    "visible": ((), np.int64),
}
_WRONG, _ABSENT = -1, -2


class _Part(NamedTuple):
    """The poses of some records. `rows` holds the columns `_BY_ROW`, and `chunk` is the number of the memory chunk with
    the points.

    `row` is the first row of the part in the final columns; -1 if the part has separate columns. `good` says whether
    all records are valid. The visibility flags v are kept in a part with an invalid record.
    """

    rows: dict[str, NDArray[Any]]
    row: int
    chunk: int
    good: bool


class KeypointReader:
    """A `detmap.shapes.Reader` of the field ``keypoints``, or of another field with a list of points."""

    def __init__(self, size: int, field: str = "keypoints") -> None:
        self._field = field
        # A number takes at least two bytes, a digit and a separator or bracket; a list has one more bracket.
        self._values = Regions(np.uint64, size // 2 + 1)
        self._rows = Rows(_BY_ROW)
        self._width = 3

    def scored_once(self, file: Any) -> None:
        """Keep only x and y of detections, because the similarity does not use v of detections."""
        self._width = 2

    def read(self, data: NDArray[np.uint8], base: int, spans: NDArray[np.int64]) -> _Part:
        """Read JSON values."""
        return self._read(data, spans, self._rows.apart(len(spans)), -1)

    def read_at(
        self,
        data: NDArray[np.uint8],
        spans: NDArray[np.int64],
        row: int,
        capacity: int,
        base: int,
        buffer: NDArray[np.uint8] | None,
    ) -> _Part:
        """Read as `read` does, but write to the final columns from `row` on. These columns have `capacity` rows."""
        return self._read(data, spans, self._rows.at(row, len(spans), capacity), row)

    def _read(
        self, data: NDArray[np.uint8], spans: NDArray[np.int64], rows: dict[str, NDArray[Any]], row: int
    ) -> _Part:
        count, starts, stops = len(spans), rows["starts"], rows["stops"]
        most = int((spans[:, 1] - spans[:, 0]).sum()) // 2 + count
        values, begin, chunk = self._values.take(most)
        state = np.zeros(segmentations.STATE_SIZE, np.int64)
        state[segmentations.POINTS] = begin
        resolved(number_lists.read_numbers, data, spans, state, (starts, stops, values[: begin + most]), values)
        end = int(state[segmentations.POINTS])
        # Measure the points now, while they are still in the processor's cache.
        poses = poses_of(values.view(np.float64), starts, stops)
        farthest = float(kernels.extents(poses, 0, count, rows["boxes"], rows["visible"]))
        stops[spans[:, 0] < 0] = _ABSENT
        good = farthest <= FARTHEST and not _bad(stops - starts).any()
        if good and self._width == 2:
            end = int(kernels.drop_flags(values, starts, stops))
        self._values.keep(end)
        return _Part(rows, row, chunk, good)

    def column(self, parts: Sequence[_Part], place: Place) -> tuple[Keypoints, dict[str, int]]:
        """Combine the parts."""
        words, bases = self._values.whole()
        for part in parts:
            if bases[part.chunk]:
                part.rows["starts"][:] += bases[part.chunk]
                part.rows["stops"][part.rows["stops"] >= 0] += bases[part.chunk]
        starts, stops, boxes, visible = self._rows.joined([(part.row, part.rows) for part in parts]).values()
        poses = poses_of(words.view(np.float64), starts, stops, self._width)
        if not all(part.good for part in parts):
            doubtful = np.repeat([not part.good for part in parts], [len(part.rows["starts"]) for part in parts])
            raise self._problem(poses, doubtful, place)
        notices = {}
        labelled = place.fields.get("num_keypoints")
        if labelled is None and place.kind:
            notices["missing_num_keypoints"] = len(starts)
        if place.kind:  # boxes may be used for areas, and for objects without labelled points
            missing = len(starts) if place.boxes is None else int(np.count_nonzero(np.isnan(place.boxes[:, 0])))
            notices["missing_bbox"] = missing
        counted = visible if labelled is None else labelled
        return Keypoints(poses, readonly(counted, np.int64), readonly(boxes, np.float64)), notices

    def _problem(self, poses: kernels.Poses, doubtful: NDArray[np.bool_], place: Place) -> InputError:
        """Return the error about the first invalid record, which is in the mask `doubtful`."""
        values, starts, stops, _ = poses
        there, sizes = stops != _ABSENT, stops - starts
        where = {"source": place.source, "field": self._field}
        if not there.any():
            held = ". It holds boxes: iou_type='bbox' (--iou-type bbox) scores those" if place.boxes is not None else ""
            return InputError(f"no record has {self._field}" + held, **where)
        bad = np.flatnonzero(doubtful & _bad(sizes))
        if not bad.size:
            rows = np.flatnonzero(doubtful).tolist()
            row = next(row for row in rows if not (np.abs(values[starts[row] : stops[row]]) <= FARTHEST).all())
            return InputError("a coordinate is too far away", record=place.record(row), **where)
        row = int(bad[0])
        problem = "must be numbers x, y, v, x, y, v and so on"
        if not there[row]:
            problem = "is missing"
        elif stops[row] != _WRONG:
            problem += f", three for each point; there are {sizes[row]}"
        remedy = f"{self._field} are scored: each record needs its own"
        return InputError(problem, record=place.record(row), remedy=remedy, **where)


def _bad(sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the lengths that are no positive multiple of 3, such as negative lengths of records without a list of
    numbers.
    """
    return np.asarray((sizes <= 0) | (sizes % 3 != 0))


# --------------------------------------------------------------------------------------------------------------- overlap


class _Truth(NamedTuple):
    poses: kernels.Poses
    objects: kernels.Objects


def _areas(ground_truth: GroundTruth, protocol: Protocol) -> NDArray[np.float64] | None:
    """Return the areas of boxes times 0.53 if the protocol uses these areas for OKS, else None."""
    if protocol.oks_area == "area":
        if ground_truth.notices.get("missing_area"):
            raise InputError(
                "has annotations without area, by which keypoint similarity is measured",
                source=ground_truth.source,
                field="area",
                remedy="oks_area='bbox*0.53' (--oks-area 'bbox*0.53') takes that share of the box",
            )
        return None
    sizes = _boxes(ground_truth)[:, 2:]
    return readonly(sizes[:, 0] * sizes[:, 1] * 0.53, np.float64)


def _range_areas(ground_truth: GroundTruth, protocol: Protocol) -> NDArray[np.float64] | None:
    """Return the areas that are compared with area ranges; None for the areas of the annotations."""
    return None if protocol.oks_area == "bbox*0.53, ranges by area" else _areas(ground_truth, protocol)


def _boxes(ground_truth: GroundTruth) -> NDArray[np.float64]:
    """Return the objects' boxes as x, y, width, height."""
    boxes = ground_truth.shapes["bbox"]
    assert isinstance(boxes, Boxes)
    if boxes.sizes:
        return boxes.table
    return readonly(np.concatenate([boxes.table[:, :2], boxes.table[:, 2:] - boxes.table[:, :2]], axis=1), np.float64)


#: Named protocols for poses that do not have COCO's 17 points, by number of points.
PROTOCOLS = {14: "crowdpose", 133: "wholebody"}


def _sigmas(ground_truth: GroundTruth, protocol: Protocol) -> tuple[list[NDArray[np.float64]], NDArray[np.int64]]:
    """Return the distinct arrays of sigmas, and the index of each category's array; -1 for a category without
    sigmas.
    """
    codes = ground_truth.categories.values
    if protocol.sigmas is None:
        return [SIGMAS], np.zeros(codes.size, np.int64)
    if not isinstance(protocol.sigmas[0], tuple):
        return [np.array(protocol.sigmas, np.float64)], np.zeros(codes.size, np.int64)
    place = {str(key): i for i, (key, _) in enumerate(protocol.sigmas)}
    names = zip(codes.tolist(), ground_truth.category_names, strict=True)
    which = [place.get(str(code), place.get(name, -1)) for code, name in names]
    return [np.array(numbers, np.float64) for _, numbers in protocol.sigmas], np.array(which, np.int64)


def _prepare(
    detections: Detections, ground_truth: GroundTruth, protocol: Protocol
) -> tuple[Keypoints, _Truth, dict[str, int]]:
    """Give each object its variances. Raise `InputError` if a pose has more or fewer points than there are sigmas."""
    found, truth = detections.shape("keypoints"), ground_truth.shape("keypoints")
    assert isinstance(found, Keypoints)
    assert isinstance(truth, Keypoints)
    sigmas, of_category = _sigmas(ground_truth, protocol)
    numbers = np.array([0, *map(len, sigmas)])  # the first element is for categories without sigmas
    own = of_category[ground_truth.categories.codes]
    wrong = truth.sizes() != 3 * numbers[own + 1]
    if wrong.any():
        row = int(np.argmax(wrong))
        points, code = int(truth.sizes()[row]) // 3, ground_truth.categories.codes[row]
        problem = f"{points} keypoints where sigmas are of {numbers[own[row] + 1]}"
        if own[row] < 0:
            problem = f"there are no sigmas of the category {ground_truth.category_names[code]!r}"
        raise InputError(
            problem,
            source=ground_truth.source,
            record=row,
            field="keypoints",
            remedy=(f"--protocol {PROTOCOLS[points]} has those of {points}; " if points in PROTOCOLS else "")
            + "give as many sigmas as there are points: sigmas=[...] (--sigmas FILE), or of each category its own",
        )
    # detections of categories that the ground truth lacks are not compared
    known = {code: i for i, code in enumerate(ground_truth.categories.values.tolist())}
    place = np.array([known.get(code, -1) for code in detections.categories.values.tolist()] or [0], np.int64)
    category = place[detections.categories.codes]
    expected = 3 * numbers[np.append(of_category, -1)[category] + 1]
    wrong = (found.sizes() != expected) & (category >= 0) & (expected > 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = f"{int(found.sizes()[row]) // 3} keypoints where there are {expected[row] // 3}"
        raise InputError(problem, source=detections.source, record=row, field="keypoints")
    variances = np.concatenate([(one * 2) ** 2 for one in sigmas])
    first = np.concatenate([[0], np.cumsum(numbers[1:])])[own]
    areas = _areas(ground_truth, protocol)
    objects = kernels.Objects(
        _boxes(ground_truth),
        ground_truth.areas if areas is None else areas,
        readonly(variances, np.float64),
        readonly(first, np.int64),
    )
    return found, _Truth(truth.poses, objects), {}


def _reach(detections: Keypoints, ground_truth: _Truth, lowest: float) -> tuple[Boxes, Boxes] | None:
    """Return boxes around detected poses, and boxes around objects. The similarity is a mean of exponentials, one per
    point, so it reaches `lowest` only if an exponential does. The box of an object contains all points whose
    exponential is at least `lowest`. Return None if every pair may reach `lowest`. This is also the case for boxes of
    negative width or height: their areas are negative, and exponents then positive.
    """
    if lowest <= 0:
        return None
    poses, objects = ground_truth
    if (objects.areas < 0).any():
        return None
    limit = max(-math.log(lowest), 0.0) + 1e-6
    truth = np.empty((len(poses.starts), 4))
    rows = parallel.even(len(truth), None if len(truth) > _PAIRS else 1)
    parallel.run(lambda begin, end: kernels.reaches(poses, objects, limit, begin, end, truth), rows)
    truth += [-_SLACK, -_SLACK, _SLACK, _SLACK]
    return _around(detections.boxes), Boxes(readonly(truth, np.float64), sizes=False)


def _around(boxes: NDArray[np.float64]) -> Boxes:
    """Return boxes that contain all points in spite of rounding errors below `_SLACK`. If all boxes are wider than
    `_SLACK` and near the origin, no enlargement is needed, and the boxes are not copied.
    """
    if len(boxes):
        (least, greatest), (narrowest, _) = extremes(boxes), extremes(boxes[:, 2:])
        if narrowest > _SLACK and max(-least, greatest) < _NEAR:
            return Boxes(boxes, sizes=True)
    found = np.empty((len(boxes), 4))
    over_rows(lambda begin, end: kernels.corners(boxes, begin, end, found), len(found))
    return Boxes(readonly(found, np.float64), sizes=False)


def _refine(detections: Keypoints, ground_truth: _Truth, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write similarities."""
    poses, objects = ground_truth
    count = len(out)
    if not count:
        return
    longest = int((poses.stops - poses.starts)[pairs.ground_truth].max()) // 3
    likely = kernels.Likely(pairs.detections, pairs.ground_truth, pairs.lowest)
    terms, stops = np.empty(longest * min(count, _PAIRS)), np.empty(min(count, _PAIRS), np.int64)
    for begin in range(0, count, _PAIRS):
        end = min(begin + _PAIRS, count)
        if parallel.stop_flag()[0]:
            return
        kernels.exponents(detections.poses, poses, objects, likely, begin, end, kernels.Terms(terms, stops))
        ours = stops[: end - begin]
        used = terms[: ours[-1]]
        with np.errstate(over="ignore"):  # exponents are positive for negative areas
            np.exp(used, out=used)
        kernels.means(used, ours, out[begin:end])
        if longest > 128:  # numpy uses pairwise summation for more than 128 numbers
            edges = [0, *ours.tolist()]
            for i in np.flatnonzero(np.isnan(out[begin:end])).tolist():
                own = used[edges[i] : edges[i + 1]]
                out[begin + i] = np.sum(own) / own.size


def _ignored(column: Keypoints) -> NDArray[np.bool_]:
    """Mask of the objects without a labelled point, shape (n,)."""
    return np.equal(column.labelled, 0)


def _draw(column: Keypoints) -> list[Drawing]:
    """Return the points of each pose with v above 0, or all points if no point of the pose has v above 0."""
    values, (_, starts, stops, _) = column.values(), column.poses
    rows = [values[start:stop].reshape(-1, 3) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
    return [Drawing([], row[(row[:, 2] > 0) | ~(row[:, 2] > 0).any(), :2]) for row in rows]


def _points(column: Keypoints) -> Points:
    """Return the points of all poses."""
    counts = column.sizes() // 3
    first = np.cumsum(counts) - counts
    owner = np.repeat(np.arange(counts.size), counts)
    at = column.poses.starts.astype(np.int64)[owner] + 3 * (np.arange(owner.size) - first[owner])
    values = column.values()
    return Points(counts, np.stack([values[at], values[at + 1]], axis=1), values[at + 2], column.labelled)


def _sample() -> list[dict[str, Any]]:
    """Return some poses of 17 points."""
    return [{"keypoints": [float(i + k) for k in range(51)], "num_keypoints": 17} for i in range(3)]


KIND = Kind(
    name="keypoints",
    column=Keypoints,
    field="keypoints",
    propose="all",
    prepare=_prepare,
    refine=_refine,
    reach=_reach,
    ignored=_ignored,
    areas=_range_areas,
    reader=KeypointReader,
    sized=False,
    counts=("num_keypoints",),
    refused={"": "bad_keypoints"},
    argument="keypoints",
    given=given,
    join=join,
    records=records,
    sample=_sample,
    draw=_draw,
    points=_points,
    same_bits=False,  # similarities use numpy's exp, which differs between processors
    decisions={
        "area_ranges": (("all", 0.0, 1e10), ("medium", 1024.0, 9216.0), ("large", 9216.0, 1e10)),
        "max_dets": (20,),
    },
    recalls=(0.5, 0.75),
    part=part,
)

#: Fields of COCO-WholeBody's records that hold lists of points, with the number of points of each list.
LISTS = dict(zip(("keypoints", *SHIPPED_LISTS[WHOLE_BODIES]), (17, 6, 68, 21, 21), strict=True))


def whole_body_records(column: Keypoints) -> list[dict[str, Any]]:
    """Return COCO-WholeBody's fields of each pose. If a pose does not have 133 points, ``keypoints`` holds all points of
    the pose.
    """
    made = records(column)
    ends = np.cumsum([*LISTS.values()]).tolist()
    for record in made:
        values = record["keypoints"]
        if len(values) == 3 * ends[-1]:
            for (name, count), end in zip(LISTS.items(), ends, strict=True):
                record[name] = values[3 * (end - count) : 3 * end]
    return made


#: Poses of COCO-WholeBody: 133 points in five lists, each with a separate score.
WHOLE_BODY = replace(
    KIND,
    name=WHOLE_BODIES,
    stored="keypoints",
    lists=LISTS,
    scores=("foot_score", "face_score", "lefthand_score", "righthand_score", "wholebody_score"),
    flags=("foot_valid", "face_valid", "lefthand_valid", "righthand_valid"),
    extended=extended,
    records=whole_body_records,
    sample=None,
)
