"""YouTube-VIS' JSON, which OVIS shares: objects with a mask per frame of a video, and detections of such objects.

Ground truth is ``{"videos": [{"id", "width", "height", "length"}], "categories": [...], "annotations": [{"id",
"video_id", "category_id", "iscrowd", "segmentations": [code, polygons or null for each frame], "areas": [...]}]}``.
Results are ``[{"video_id", "category_id", "score", "segmentations": [...]}]``. Videos take the place of images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import locate
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, relocated
from detmap.formats.file_names import check_scores, images_as_given, lost_names, shapes_lost, write_json
from detmap.formats.registry import Format, Given, Writing, packed
from detmap.kernels import _ahead, readonly
from detmap.kernels.values import list_elements
from detmap.plugins import register
from detmap.reading.opening import File
from detmap.reading.options import Path, Reading, Role
from detmap.reading.scanner import TrackColumns, scan_tracks
from detmap.reading.sources import Opened
from detmap.reading.typed_json import decoded
from detmap.shapes import Place, Reader, find
from detmap.shapes.kinds import MASKS, TRACKS
from detmap.shapes.reading import powers
from detmap.shapes.tracks import Tracks
from detmap.system import parallel

#: Number of bytes of segmentations read at a time, chosen to fit into the processor's cache.
_BLOCK = 1 << 20

#: Assumed minimum length of a segmentation in bytes, for sizing a buffer; shorter segmentations may require a second
#: pass.
_SHORTEST = 32

#: Minimum size of results in bytes for the scanner. Kernels compiled ahead of time load without delay. Loading other
#: kernels from numba's cache does not pay off for small files.
_WORTH_SCANNING = 1 << 20 if _ahead.chosen().object is None else 0

_REMEDY = {
    "ground truth": 'ground truth is {"videos": [...], "categories": [...], "annotations": [{"video_id", "category_id", '
    '"iscrowd", "segmentations", "areas"}]}',
    "detections": 'results are [{"video_id", "category_id", "score", "segmentations"}]',
}


#: Integers of 64 bits, the type of columns.
_Integer = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _Video(msgspec.Struct):
    id: _Integer
    width: _Integer = 0
    height: _Integer = 0


class _Category(msgspec.Struct):
    id: _Integer
    name: str = ""


class _Track(msgspec.Struct):
    video_id: _Integer
    category_id: _Integer
    segmentations: msgspec.Raw


class _Annotation(_Track):
    iscrowd: int
    areas: list[float | None]
    id: int = 1


class _Result(_Track):
    score: float


class _Document(msgspec.Struct):
    videos: list[_Video]
    categories: list[_Category]
    annotations: list[_Annotation]


class _Frames(msgspec.Struct):
    """The fields that describe the frames of a video."""

    id: _Integer
    length: Any = 0
    file_names: Any = None


class _Areas(msgspec.Struct):
    """The areas of an annotation, and the elements of its segmentations."""

    video_id: _Integer
    segmentations: list[msgspec.Raw]
    areas: list[float | None]


class _Unkept(msgspec.Struct):
    videos: list[_Frames]
    annotations: list[_Areas]


def read_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read annotations; the area of a track is the mean of its nonzero areas in the file."""
    given = _bytes(source, "ground truth")
    document = decoded(given.data.data, _Document, given.name, remedy=_REMEDY["ground truth"])
    videos, rows = document.videos, document.annotations
    sizes = [(one.height, one.width) for one in videos]
    own = {one.id: size for one, size in zip(videos, sizes, strict=True)}
    sizes_of_rows = np.array([own.get(row.video_id, (0, 0)) for row in rows], np.int64)
    return GroundTruth.from_arrays(
        image_ids=np.array([row.video_id for row in rows], np.int64),
        category_ids=np.array([row.category_id for row in rows], np.int64),
        images=np.array([one.id for one in videos], np.int64),
        image_sizes=np.array(sizes, np.int64).reshape(-1, 2),
        categories=np.array([one.id for one in document.categories], np.int64),
        category_names={one.id: one.name or str(one.id) for one in document.categories},
        areas=np.array([_mean_area(row.areas) for row in rows]),
        crowd=[row.iscrowd for row in rows],
        zero_ids=[row.id == 0 for row in rows],
        **_tracks(given, _places(given.data, rows), sizes_of_rows, "annotation "),
        source=given.name,
    )


def read_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read results."""
    given = _bytes(source, "detections")
    found = scan_tracks(given.data.data) if given.data.size >= _WORTH_SCANNING else None
    if found is not None:
        try:
            return _detections(given, found, ground_truth, reading)
        except InputError:  # the scanner may have misread the text after an invalid list
            pass
    rows = decoded(given.data.data, list[_Result], given.name, remedy=_REMEDY["detections"])
    found = TrackColumns(
        np.array([row.video_id for row in rows], np.int64),
        np.array([row.category_id for row in rows], np.int64),
        np.array([row.score for row in rows], np.float64),
        _places(given.data, rows),
    )
    return _detections(given, found, ground_truth, reading)


def _detections(given: _Bytes, found: TrackColumns, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Return a table of records."""
    sizes = np.zeros((len(found.score), 2), np.int64)
    if ground_truth is not None and ground_truth.images.sizes is not None:
        known = np.concatenate([ground_truth.images.sizes, np.zeros((1, 2), np.int64)])
        sizes = known[locate(found.video_id, ground_truth.images.ids)]
    made = Detections.from_arrays(
        image_ids=found.video_id,
        category_ids=found.category_id,
        scores=found.score,
        **_tracks(given, found.segmentations, sizes, ""),
        source=given.name,
    )
    return made if ground_truth is None else made.on_images_of(ground_truth, reading.unknown_images)


class _Bytes(NamedTuple):
    """A document. `whole` is a larger buffer that begins with `data` and has room for unescaped masks."""

    data: NDArray[np.uint8]
    name: str
    whole: NDArray[np.uint8] | None


def _bytes(source: Any, what: str) -> _Bytes:
    """Return the bytes of a file."""
    with Opened(source, what) as opened:
        whole = None
        if isinstance(opened.data, File) and what == "detections":
            # The reader of masks writes unescaped strings behind the document. Unwritten memory costs nothing.
            whole = opened.data.read_before(opened.data.size + _BLOCK)
        data = opened.whole() if whole is None else whole[: len(opened)].data
    return _Bytes(readonly(np.frombuffer(data, np.uint8), np.uint8), opened.name, whole)


def _mean_area(areas: Sequence[float | None]) -> float:
    """Return the mean of the given areas other than 0; 0 if there are none."""
    seen = [area for area in areas if area]
    return sum(seen) / len(seen) if seen else 0.0


def _tracks(given: _Bytes, lists: NDArray[np.int64], sizes: NDArray[np.int64], kind: str) -> dict[str, Any]:
    """Return the tracks of records, and notices, as arguments of ``from_arrays``; masks stay compressed."""
    data, name, _ = given
    other = np.flatnonzero(data[lists[:, 0]] != ord("["))
    if other.size:
        record = f"{kind or 'record '}{other[0]}"
        problem = "must be a list with a segmentation, or null, for each frame"
        raise InputError(problem, source=name, record=record, field="segmentations")
    taken = np.cumsum(lists[:, 1] - lists[:, 0])
    cuts = np.searchsorted(taken, np.arange(_BLOCK, taken[-1] if taken.size else 0, _BLOCK)) + 1
    blocks = list(pairwise(np.unique([0, *cuts, len(lists)]).tolist()))
    read = _read(given, lists, blocks, exact=False) or _read(given, lists, blocks, exact=True)
    if read is None:
        raise InputError("has a segmentation that is no JSON", source=name)
    reader, parts, present, lengths = read
    track = np.repeat(np.arange(len(lists)), lengths)[present]

    def place(record: int) -> tuple[str, str]:
        row = int(track[record])
        frame = int(np.flatnonzero(present)[record] - lengths[:row].sum())
        return name, f"{kind or 'record '}{row}, frame {frame}"

    with relocated(place):
        column, notices = reader.column(parts, Place(name, "", sizes[track], None, {}))
    made = find(TRACKS).column.of(column, present, lengths)
    return {"shapes": {TRACKS: made}, "notices": {code: count for code, count in notices.items() if count}}


def _places(data: NDArray[np.uint8], rows: Sequence[_Track]) -> NDArray[np.int64]:
    """Return begin and end of each record's segmentations in the document."""
    start = data.__array_interface__["data"][0]
    views = [np.frombuffer(row.segmentations, np.uint8) for row in rows]
    begins = np.array([one.__array_interface__["data"][0] - start for one in views], np.int64)
    places = np.stack([begins, begins + np.array([one.size for one in views], np.int64)], axis=1)
    assert ((places >= 0) & (places <= data.size)).all()
    return places


class _Read(NamedTuple):
    """The masks of all lists. `parts` is what `reader` returned, `present` says for each frame whether it has a mask, and
    `lengths` are the numbers of frames of the lists.
    """

    reader: Reader
    parts: list[Any]
    present: NDArray[np.bool_]
    lengths: NDArray[np.int64]


def _read(given: _Bytes, lists: NDArray[np.int64], blocks: list[tuple[int, int]], *, exact: bool) -> _Read | None:
    """Read the masks of all lists, block by block; None if a list is invalid JSON. If `exact` is false, the check
    is faster, but some valid lists fail it.
    """
    data = given.data
    lengths = np.empty(len(lists), np.int64)
    found = parallel.run(lambda begin, end: _elements(data, lists[begin:end], exact, lengths[begin:end]), blocks)
    elements = [one for one in found if one is not None]
    if len(elements) < len(found):
        return None
    present = np.concatenate([np.empty(0, np.bool_), *(data[one[:, 0]] != ord("n") for one in elements)])
    before = np.cumsum([0, *(len(one) for one in elements)])
    masks = np.concatenate([[0], np.cumsum(present)])[before]
    make = find(MASKS).reader
    assert make is not None
    reader: Any = make(data.size, given.whole)

    def read(block: int, _: int) -> Any:
        spans = elements[block][present[before[block] : before[block + 1]]]
        return reader.read_at(data, readonly(spans, np.int64), int(masks[block]), int(masks[-1]))

    parts = parallel.run(read, [(block, block + 1) for block in range(len(elements))])
    return None if any(part is None for part in parts) else _Read(reader, parts, present, lengths)


def _elements(
    data: NDArray[np.uint8], lists: NDArray[np.int64], exact: bool, out_lengths: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Return begin and end of the elements of all lists, and write the number of elements of each list to
    `out_lengths`; None for invalid JSON.
    """
    lists = readonly(lists, np.int64)
    count, room = 0, int((lists[:, 1] - lists[:, 0]).sum()) // _SHORTEST + 1
    while True:
        spans = np.empty((max(room, count), 2), np.int64)
        count = list_elements(data, lists, exact, powers(), spans, out_lengths)
        if count <= len(spans):
            return spans[:count].copy() if count >= 0 else None


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write annotations; masks are written as compressed codes."""
    column, videos, categories = _written(table)
    codes, areas = _segmentations(column), table.areas.tolist()
    lengths = np.zeros(len(videos), np.int64)
    np.maximum.at(lengths, table.images.codes, column.lengths)
    sizes = np.zeros((len(videos), 2), np.int64) if table.images.sizes is None else table.images.sizes
    document = {
        "videos": [
            {
                "id": videos[code],
                "height": int(sizes[code, 0]),
                "width": int(sizes[code, 1]),
                "length": int(lengths[code]),
                "file_names": [],
            }
            for code in images_as_given(table)
        ],
        "categories": [{"id": one, "name": name} for one, name in zip(categories, table.category_names, strict=True)],
        "annotations": [
            {
                "id": row + 1,
                "video_id": videos[video],
                "category_id": categories[category],
                "iscrowd": int(crowd),
                "segmentations": codes[row],
                # The reader takes the mean of the areas that are not null.
                "areas": [areas[row], *[None] * max(len(codes[row]) - 1, 0)],
            }
            for row, (video, category, crowd) in enumerate(
                zip(table.images.codes.tolist(), table.categories.codes.tolist(), table.crowd.tolist(), strict=True)
            )
        ],
    }
    write_json(path, document, table.source)
    return {
        "difficult": int(table.difficult.sum()),
        "image_names": lost_names(table),
        "shapes": shapes_lost(table, (TRACKS,)),
    }


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write results."""
    check_scores(table)
    column, videos, categories = _written(table)
    columns = table.images.codes.tolist(), table.categories.codes.tolist(), table.scores.tolist()
    records = [
        {"video_id": videos[video], "category_id": categories[category], "score": score, "segmentations": codes}
        for video, category, score, codes in zip(*columns, _segmentations(column), strict=True)
    ]
    write_json(path, records, table.source)
    areas = column.areas() if table.areas is None else table.areas
    differing = ~np.isnan(areas) & (areas != column.areas())
    return {"areas": int(np.count_nonzero(differing)), "shapes": shapes_lost(table, (TRACKS,))}


def _written(table: GroundTruth | Detections) -> tuple[Tracks, list[int], list[int]]:
    """Return the tracks, and the ids of videos and categories, which must be integers in this format."""
    for what, ids in (("video", table.images.ids), ("category", table.categories.ids)):
        if ids.size and ids.dtype.kind != "i":
            problem = f"must be an integer, as YouTube-VIS has ids of a {what}"
            raise InputError(problem, source=table.source, field=f"{what}_id", value=ids[0].item())
    column = table.shape(TRACKS)
    assert isinstance(column, Tracks)
    return column, table.images.ids.tolist(), table.categories.ids.tolist()


def _segmentations(column: Tracks) -> list[list[Any]]:
    """Return a run-length code, or None, for each frame of each track."""
    held = column.arrays()
    counts = held["counts"]
    before = np.cumsum(counts) - counts
    masks = np.arange(int(counts.sum())) + np.repeat(column.spans[:, 0] - before, counts)
    codes = column.masks.take(masks).masks().to_rle()
    out: list[list[Any]] = [[None] * length for length in column.lengths.tolist()]
    track = np.repeat(np.arange(len(column)), counts)
    for row, frame, code in zip(track.tolist(), held["frames"].tolist(), codes, strict=True):
        out[row][frame] = code
    return out


def _unkept(source: Any) -> dict[str, int]:
    """Count the videos that lose the names of their frames, or frames after the end of all tracks. Also count the
    annotations with several areas, because only the mean area is kept.
    """
    given = _bytes(source, "ground truth")
    document = decoded(given.data.data, _Unkept, given.name, remedy=_REMEDY["ground truth"])
    longest: dict[int, int] = {}
    for row in document.annotations:
        longest[row.video_id] = max(longest.get(row.video_id, 0), len(row.segmentations))
    videos = [
        one
        for one in document.videos
        if one.file_names or (isinstance(one.length, int) and one.length > longest.get(one.id, 0))
    ]
    several = [row for row in document.annotations if sum(area is not None for area in row.areas) > 1]
    return {"frames": len(videos), "frame_areas": len(several)}


def _sniff(given: Given) -> bool:
    """Recognise JSON with videos or segmentations. Files whose records have an ``image_id`` are COCO's."""
    if given.is_folder or b'"image_id"' in given.head:
        return False
    start = {"ground_truth": b"{", "detections": b"["}[given.role]
    field = {"ground_truth": b'"file_names"', "detections": b'"video_id"'}[given.role]
    return given.head.lstrip()[:1] == start and (field in given.head or b'"segmentations"' in given.head)


def _tell(given: Given) -> Role:
    return "detections" if given.head.lstrip()[:1] == b"[" else "ground_truth"


FORMAT = register(
    Format(
        name="ytvis",
        takes=(),
        suffixes=packed(".json"),
        sniff=_sniff,
        tell=_tell,
        read_ground_truth=read_ground_truth,
        read_detections=read_detections,
        write_ground_truth=write_ground_truth,
        write_detections=write_detections,
        holds=(TRACKS,),
        unkept=_unkept,
        protocol="ytvis",
        words=("YouTube-VIS' JSON", "YouTube-VIS' JSON of results"),
    )
)
