"""ActivityNet's JSON: time segments in videos, and detections of such segments.

Ground truth is ``{"database": {video: {"subset": …, "annotations": [{"segment": [start, end], "label": …}]}}}``.
Results are ``{"results": {video: [{"label": …, "segment": [start, end], "score": …}]}}``. Times are in seconds. Videos
take the place of images. Categories are the labels of the subset, in the order in which they first appear.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.data.ids import Ids, coded
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, relocated, shorten
from detmap.formats.file_names import (
    by_image,
    category_names,
    check_scores,
    grouped_by_image,
    images_as_given,
    lost_facts,
    lost_ids,
    recoded,
    shapes_lost,
    write_json,
)
from detmap.formats.registry import Format, Given, Writing, packed
from detmap.plugins import register
from detmap.reading.options import Path, Reading, Role
from detmap.reading.sources import Buffer, read_bytes, unmarked
from detmap.reading.typed_json import UNREADABLE, decoded
from detmap.shapes.kinds import TEMPORAL, TEMPORAL_SPAN

#: The subset that ActivityNet's own program scores by default.
SUBSET = "validation"

_Segment = tuple[float, float]


class _Annotation(msgspec.Struct):
    """The fields that objects and detections share."""

    label: str
    segment: _Segment


class _Found(_Annotation):
    """A detection."""

    score: float


class _Video(msgspec.Struct):
    """A video of the ground truth file."""

    subset: str = ""
    annotations: list[_Annotation] = []


class _Database(msgspec.Struct):
    """A ground truth file."""

    database: dict[str, _Video]


class _Results(msgspec.Struct):
    """A results file."""

    results: dict[str, list[_Found]]


_TYPES: dict[str, Any] = {"ground truth": _Database, "detections": _Results}
_REMEDY = {
    "ground truth": 'ground truth is {"database": {video: {"subset": "validation", "annotations": '
    '[{"segment": [start, end], "label": name}]}}}',
    "detections": 'results are {"results": {video: [{"label": name, "segment": [start, end], "score": number}]}}',
}

#: First keys of a file of ground truth, and of a file of results.
_TRUTH = re.compile(rb'\s*\{\s*("version"\s*:\s*"[^"]*"\s*,\s*)?"(database|taxonomy)"\s*:')
_FOUND = re.compile(rb'\s*\{\s*("version"\s*:\s*"[^"]*"\s*,\s*)?"(results|external_data)"\s*:')


def read_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read the videos of a subset."""
    database, name = _decoded(source, "ground truth")
    subset = SUBSET if reading.image_set is None else str(reading.image_set)
    videos = {video: one for video, one in database.database.items() if one.subset == subset}
    if not videos:
        known = ", ".join(map(shorten, sorted({one.subset for one in database.database.values()})[:10]))
        raise InputError(
            f"has no videos of the subset {subset!r}, only of: {known or 'none'}",
            source=name,
            remedy="name another one: image_set=... (--image-set)",
        )
    rows = list(chain.from_iterable(one.annotations for one in videos.values()))
    labels = dict.fromkeys(row.label for row in rows)
    place = {label: number for number, label in enumerate(labels, 1)}
    with _named(videos.items(), name):
        return GroundTruth.from_arrays(
            image_ids=_videos({video: len(one.annotations) for video, one in videos.items()}, name),
            category_ids=np.array([place[row.label] for row in rows], np.int64),
            segments=_segments(rows),
            images=coded(list(videos), name, "video"),
            categories=list(place.values()) or None,
            category_names={number: label for label, number in place.items()},
            source=name,
        )


def read_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read results. Detections in videos that the ground truth lacks are kept by default. The protocol decides whether
    such detections are scored.
    """
    results, name = _decoded(source, "detections")
    found = results.results
    known = None if ground_truth is None else set(ground_truth.images.ids.tolist())
    if known is not None and reading.unknown_images == "ignore":
        found = {video: rows for video, rows in found.items() if video in known}
    dropped = sum(map(len, results.results.values())) - sum(map(len, found.values()))
    rows = list(chain.from_iterable(found.values()))
    labels = {label: number for number, label in enumerate(dict.fromkeys(row.label for row in rows))}
    codes = np.array([labels[row.label] for row in rows], np.int32)
    ids = list(labels) if ground_truth is None else _categories(labels, ground_truth)
    with _named(found.items(), name):
        return Detections.from_arrays(
            image_ids=_videos({video: len(own) for video, own in found.items()}, name),
            category_ids=recoded(ids, codes),
            scores=np.array([row.score for row in rows], np.float64),
            segments=_segments(rows),
            notices={"unknown_image": dropped} if dropped else {},
            source=name,
        )


def _decoded(source: Any, what: str) -> tuple[Any, str]:
    """Return the decoded content of a file, and the file's name."""
    data, name = read_bytes(source, what)
    try:
        return decoded(data, _TYPES[what], name, remedy=_REMEDY[what]), name
    except InputError:
        _check_videos(data, what, name)
        raise


def _check_videos(data: Buffer, what: str, name: str) -> None:
    """Raise an error that names the first invalid video, which the decoder's own error does not name."""
    top = _TYPES[what].__struct_fields__[0]
    of: Any = list[_Found] if what == "detections" else _Video
    with suppress(*UNREADABLE):
        document = msgspec.json.decode(unmarked(data), type=dict[str, msgspec.Raw])
        for video, held in msgspec.json.decode(document.get(top, b"{}"), type=dict[str, msgspec.Raw]).items():
            decoded(bytes(held), of, name, f"video {shorten(video)}", _REMEDY[what])


def _videos(counts: Mapping[str, int], source: str) -> Ids:
    """Return the video of each row. Rows are ordered by video, and `counts` holds the number of rows of each video."""
    ids = columns.texts([video for video, count in counts.items() if count], source=source, field="video")
    lengths = [count for count in counts.values() if count]
    return Ids(ids, np.repeat(np.arange(len(lengths), dtype=np.int32), lengths))


def _segments(rows: Sequence[_Annotation]) -> NDArray[np.float64]:
    """Return the start and end of each row's segment, shape (n, 2)."""
    return np.array([row.segment for row in rows], np.float64).reshape(-1, 2)


def _categories(labels: Iterable[str], ground_truth: GroundTruth) -> list[Any]:
    """Return the category id of each label. Labels that the ground truth lacks get unused ids."""
    by_name = dict(zip(ground_truth.categories.names, ground_truth.categories.ids.tolist(), strict=True))
    if ground_truth.categories.ids.dtype.kind != "i":
        return [by_name.get(label, label) for label in labels]
    free = itertools.count(int(ground_truth.categories.ids.max(initial=0)) + 1)
    return [by_name[label] if label in by_name else next(free) for label in labels]


def _named(videos: Iterable[tuple[str, Any]], source: str) -> AbstractContextManager[None]:
    """Return a context that adds the video, and the index within the video, to errors about a record."""

    def place(record: int) -> tuple[str, int | str]:
        for video, held in videos:
            count = len(held if isinstance(held, list) else held.annotations)
            if record < count:
                return source, f"video {shorten(video)}, {record}"
            record -= count
        return source, record

    return relocated(place)


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write all videos as members of the subset that is scored by default."""
    rows, names, lost = _written(table, table)
    held = by_image(table)
    videos = list(map(str, table.images.ids.tolist()))
    order = images_as_given(table)
    database = {
        videos[code]: {"subset": SUBSET, "annotations": [rows[row] for row in held[code].tolist()]} for code in order
    }
    write_json(path, {"version": _VERSION, "taxonomy": [], "database": database}, table.source)
    written = table.categories.codes[np.concatenate([np.empty(0, np.int64), *(held[code] for code in order)])]
    seen = list(dict.fromkeys(written.tolist()))
    numbers = {code: number for number, code in enumerate(seen, 1)}
    column = table.shapes[TEMPORAL]
    return {
        **lost,
        **lost_facts(table, column.areas()),
        "empty_categories": len(names) - len(seen),
        "category_ids": sum(one != numbers.get(code) for code, one in enumerate(table.categories.ids.tolist())),
        "category_order": sum(one != other for one, other in zip(seen, sorted(seen), strict=True)),
    }


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write results, with category names from the ground truth."""
    check_scores(table)
    rows, names, lost = _written(table, writing.ground_truth)
    videos, scores = list(map(str, table.images.ids.tolist())), table.scores.tolist()
    held, moved = grouped_by_image(table)
    results = {
        videos[table.images.codes[own[0]]]: [{**rows[row], "score": scores[row]} for row in own.tolist()]
        for own in held
    }
    write_json(path, {"version": _VERSION, "results": results, "external_data": {}}, table.source)
    return {**lost, "category_ids": lost_ids(table.categories.ids, names), "order": moved}


#: The version that ActivityNet's own files name.
_VERSION = "VERSION 1.3"


def _written(
    table: GroundTruth | Detections, truth: GroundTruth | None
) -> tuple[list[dict[str, Any]], list[str], dict[str, int]]:
    """Return the label and segment of each row, and the labels of all categories. Also count what the format cannot
    hold.
    """
    names = category_names(table, truth)
    ends = table.shape(TEMPORAL).arrays()["ends"].tolist()
    rows = [
        {"label": names[code], "segment": segment}
        for code, segment in zip(table.categories.codes.tolist(), ends, strict=True)
    ]
    return (
        rows,
        names,
        {
            "shapes": shapes_lost(table, (TEMPORAL,)),
            "image_ids": lost_ids(table.images.ids, list(map(str, table.images.ids.tolist()))),
        },
    )


def _sniff(given: Given) -> bool:
    """Recognise files by their first keys."""
    if given.is_folder:
        return False
    if given.role == "ground_truth":
        return _TRUTH.match(given.head) is not None
    fields = (b'"segment"', b'"version"', b'"external_data"')  # nuScenes' results have the same first key
    return _FOUND.match(given.head) is not None and any(field in given.head for field in fields)


def _tell(given: Given) -> Role:
    return "detections" if _FOUND.match(given.head) else "ground_truth"


FORMAT = register(
    Format(
        name="activitynet",
        takes=("image_set",),
        suffixes=packed(".json"),
        sniff=_sniff,
        tell=_tell,
        read_ground_truth=read_ground_truth,
        read_detections=read_detections,
        write_ground_truth=write_ground_truth,
        write_detections=write_detections,
        holds=(TEMPORAL, TEMPORAL_SPAN),
        protocol="activitynet",
        needs_images=True,
        words=("ActivityNet's JSON", "ActivityNet's JSON of results"),
    )
)
