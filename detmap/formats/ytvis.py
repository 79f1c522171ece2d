"""YouTube-VIS' JSON, which OVIS shares: masks for each frame of videos, and detections of them.

Ground truth is ``{"videos": [{"id", "width", "height", "length"}], "categories": [...], "annotations": [{"id",
"video_id", "category_id", "iscrowd", "segmentations": [code, polygons or null for each frame], "areas": [...]}]}``, results
are ``[{"video_id", "category_id", "score", "segmentations": [...]}]``. A video is an image.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import locate
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.coco.shapes import read_texts
from detmap.formats.registry import Format, Given, packed
from detmap.plugins import register
from detmap.reading.options import Reading, Role
from detmap.reading.sources import read_bytes
from detmap.shapes import Place, find
from detmap.shapes.kinds import MASKS, TRACKS


class _Video(msgspec.Struct):
    id: int
    width: int = 0
    height: int = 0


class _Category(msgspec.Struct):
    id: int
    name: str = ""


class _Track(msgspec.Struct):
    video_id: int
    category_id: int
    segmentations: list[msgspec.Raw]


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


def read_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read annotations; areas are the means of those of the file that are not 0."""
    document, name = _decoded(source, "ground truth", _Document)
    videos, rows = document.videos, document.annotations
    sizes = [(one.height, one.width) for one in videos]
    own = {one.id: size for one, size in zip(videos, sizes, strict=True)}
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
        **_tracks(rows, np.array([own.get(row.video_id, (0, 0)) for row in rows], np.int64), name, "annotation "),
        source=name,
    )


def read_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read results."""
    rows, name = _decoded(source, "detections", list[_Result])
    videos = np.array([row.video_id for row in rows], np.int64)
    sizes = np.zeros((len(rows), 2), np.int64)
    if ground_truth is not None and ground_truth.images.sizes is not None:
        known = np.concatenate([ground_truth.images.sizes, np.zeros((1, 2), np.int64)])
        sizes = known[locate(videos, ground_truth.images.ids)]
    made = Detections.from_arrays(
        image_ids=videos,
        category_ids=np.array([row.category_id for row in rows], np.int64),
        scores=np.array([row.score for row in rows], np.float64),
        **_tracks(rows, sizes, name, ""),
        source=name,
    )
    return made if ground_truth is None else made.on_images_of(ground_truth, reading.unknown_images)


def _decoded(source: Any, what: str, kind: Any) -> tuple[Any, str]:
    """Return a parsed file and its name."""
    data, name = read_bytes(source, what)
    try:
        return msgspec.json.decode(data, type=kind), name
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at ")
        place = re.search(r"\$(?:\.(\w+))?\[(\d+)\](?:\.(\w+))?", path)
        of, number, field = place.groups() if place else (None, None, None)
        record = None if number is None else f"{(of or 'record').removesuffix('s')} {number}"
        raise InputError(problem, source=name, record=record, field=field) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"is not JSON: {error}", source=name) from None


def _mean_area(areas: Sequence[float | None]) -> float:
    """Return the mean of the areas that are given and not 0; 0 where none is."""
    seen = [area for area in areas if area]
    return sum(seen) / len(seen) if seen else 0.0


def _tracks(rows: Sequence[_Track], sizes: NDArray[np.int64], name: str, kind: str) -> dict[str, Any]:
    """Return the tracks of records and what is unusual in them; masks stay compressed."""
    texts = [[bytes(one) for one in row.segmentations] for row in rows]
    present = [np.flatnonzero([text != b"null" for text in own]) for own in texts]
    counts = [len(own) for own in present]
    masks = find(MASKS)
    assert masks.reader is not None
    reader, parts = read_texts(masks.reader, [text for own in texts for text in own if text != b"null"])
    if None in parts:
        raise InputError("has a segmentation that is no JSON", source=name)
    try:
        column, notices = reader.column(parts, Place(name, "", np.repeat(sizes, counts, axis=0), None, {}))
    except InputError as error:
        if not isinstance(error.record, int):
            raise
        row = int(np.searchsorted(np.cumsum(counts), error.record, side="right"))
        frame = int(present[row][error.record - sum(counts[:row])])
        raise error.elsewhere(name, f"{kind or 'record '}{row}, frame {frame}") from None
    made = find(TRACKS).column.of(column, present, [len(own) for own in texts])
    return {"shapes": {TRACKS: made}, "notices": {code: count for code, count in notices.items() if count}}


def _sniff(given: Given) -> bool:
    """Lists of files of videos, or of segmentations; files of frames, whose records have an image_id, are COCO's."""
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
        holds=(TRACKS,),
        protocol="ytvis",
        words=("YouTube-VIS' JSON", "YouTube-VIS' JSON of results"),
    )
)
