"""DOTA's text files: ``labelTxt``, a file per image, and results ``Task1_{class}.txt``, a file per class.

A line of labels is ``x1 y1 x2 y2 x3 y3 x4 y4 class difficult``, corners in pixels; without its last word it is not difficult.
Files begin with the lines ``imagesource:…`` and ``gsd:…``, or do not. A line of results is ``image score x1 y1 … x4 y4``. The
horizontal boxes of ``Task2_{class}.txt`` have two corners.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from os.path import basename, isdir
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.benchmarks import ROTATED_BOXES
from detmap.data.ids import coded
from detmap.data.mismatches import classes_without_results
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.file_names import (
    by_image,
    category_names,
    corners,
    lost_areas,
    lost_ids,
    resolve_categories,
    resolve_images,
    shapes_lost,
    stems_of,
    write_folder,
)
from detmap.formats.registry import Format, Given, Writing
from detmap.formats.voc.read import image_set_of
from detmap.formats.voc.write import check_names, digits
from detmap.plugins import register
from detmap.reading.lines import Lines, read_lines
from detmap.reading.options import Path, Reading
from detmap.reading.sources import members, name_of, read_bytes
from detmap.shapes import find
from detmap.shapes.kinds import BOXES, PROBIOU, ROTATED

_RESULTS = re.compile(r"Task[12]_(?P<name>.+)\.txt")

#: Beginnings of lines that are no objects.
_HEADERS = (b"imagesource:", b"gsd:")

_LABEL = "a line is: x1 y1 x2 y2 x3 y3 x4 y4 class difficult"
_RESULT = "a line is: image score x1 y1 x2 y2 x3 y3 x4 y4 (of Task2: image score x1 y1 x2 y2)"


def read_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read a folder, or an archive, of labels; of the images of an image set alone where there is one."""
    wanted = None if reading.image_set is None else image_set_of(reading.image_set)
    name = name_of(source, "ground truth")
    files = {file[: -len(".txt")]: (data, place) for file, data, place in members(source, ".txt", "ground truth")}
    if wanted is not None:
        missing = sorted(wanted - files.keys())
        if missing:
            raise InputError(f"{len(missing)} images of the image set have no labels", source=name, value=missing[0])
        files = {image: held for image, held in files.items() if image in wanted}
    images = list(files)
    lines = read_lines(files.values())
    lines = lines.take([row for row, words in enumerate(lines.fields) if not _is_header(words)])
    difficult = np.zeros(len(lines.fields), np.bool_)
    for row, words in enumerate(lines.fields):
        if not 9 <= len(words) <= 10:
            raise lines.error(row, f"has {len(words)} fields where 9 or 10 are expected", remedy=_LABEL)
        if len(words) == 10:
            if not words[9].isdigit():
                raise lines.error(row, "difficult must be a whole number, 0 for objects that are not", words[9])
            difficult[row] = int(words[9]) > 0
    quads = _numbers(lines, slice(0, 8))
    with lines.named():
        return GroundTruth.from_arrays(
            image_ids=coded([images[file] for file in lines.files]),
            category_ids=coded([_text(lines, row, 8) for row in range(len(lines.fields))]),
            **_shapes(quads, reading, name),
            difficult=difficult,
            images=np.array(images, str),
            source=name,
        )


def read_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read a folder or an archive of results, or the file of one class."""
    name = name_of(source, "detections")
    files: dict[str, tuple[bytes, str]] = {}
    unread = 0
    for file, data, place in _result_files(source):
        match = _RESULTS.fullmatch(file)
        if match is None:
            unread += 1
        elif match["name"] in files:
            remedy = "keep the results of one task in the folder"
            raise InputError(f"is a second file for class {match['name']}", source=place, remedy=remedy)
        else:
            files[match["name"]] = data, place
    if not files:
        raise InputError("the file's name does not say its class", source=name, remedy="call it Task1_{class}.txt")
    classes, lines = list(files), read_lines(files.values())
    width = 4 if lines.fields and len(lines.fields[0]) == 6 else 8
    for row, words in enumerate(lines.fields):
        if len(words) != 2 + width:
            raise lines.error(row, f"has {len(words)} fields where {2 + width} are expected", remedy=_RESULT)
    ids, kept = _images(lines, ground_truth, reading, name)
    dropped = len(ids) - len(kept)
    lines = lines.take(kept)
    own = classes if ground_truth is None else resolve_categories(classes, ground_truth)
    if width == 4 and reading.iou_type != BOXES:
        raise InputError("holds upright boxes, as Task2 asks for", source=name, remedy="give the results of Task1")
    with lines.named():
        if width == 4:
            shapes = {
                "boxes": _numbers(lines, slice(2, 6), 4),
                "box_format": "xyxy",
                "invalid_boxes": reading.invalid_boxes,
            }
        else:
            shapes = _shapes(_numbers(lines, slice(2, 10)), reading, name)
        notices = {**shapes.pop("notices", {}), "unread_files": unread, "unknown_image": dropped}
        made = Detections.from_arrays(
            image_ids=_ids([ids[row] for row in kept]),
            category_ids=_ids([own[file] for file in lines.files]),
            scores=_numbers(lines, slice(1, 2), 1)[:, 0],
            **shapes,
            notices=notices,
            source=name,
        )
    made = replace(made, classes=tuple(classes), missing_classes=reading.missing_classes)
    if ground_truth is not None:
        classes_without_results(ground_truth, made)  # where they are an error it comes here, not after the matching
    return made


def _result_files(source: Any) -> Any:
    if isinstance(source, str | PathLike) and _RESULTS.fullmatch(basename(fspath(source))) and not isdir(source):
        data, name = read_bytes(source, "detections")
        return [(basename(name), bytes(data), name)]
    return members(source, ".txt", "detections")


def _is_header(words: list[bytes]) -> bool:
    return words[0].lower().startswith(_HEADERS)


def _numbers(lines: Lines, columns: slice, width: int = 8) -> NDArray[np.float64]:
    """Return some words of each line as numbers."""
    values, _ = lines._replace(fields=[words[columns] for words in lines.fields]).floats()
    return values.reshape(-1, width)


def _text(lines: Lines, row: int, place: int) -> str:
    try:
        return lines.fields[row][place].decode()
    except UnicodeDecodeError:
        raise lines.error(row, "is not text in UTF-8") from None


def _ids(values: list[Any]) -> Any:
    return coded(values) if not values or isinstance(values[0], str) else np.array(values, np.int64)


def _images(lines: Lines, ground_truth: GroundTruth | None, reading: Reading, name: str) -> tuple[list[Any], list[int]]:
    """Return the id of each line's image, and the lines on images of the ground truth.

    Raises
    ------
    InputError
        For another image, unless these are to be dropped.
    """
    names = [_text(lines, row, 0) for row in range(len(lines.fields))]
    if ground_truth is None:
        return names, list(range(len(names)))
    distinct = list(dict.fromkeys(names))
    known = dict(zip(distinct, resolve_images(distinct, ground_truth, "ignore", name), strict=True))
    ids = [known[one] for one in names]
    if reading.unknown_images == "error" and None in ids:
        row = ids.index(None)
        raise lines.error(
            row,
            "is not an image of the ground truth",
            names[row],
            "are both of one data set? Such detections are dropped with unknown_images='ignore' (--unknown-images ignore)",
        )
    return ids, [row for row, one in enumerate(ids) if one is not None]


def _shapes(quads: NDArray[np.float64], reading: Reading, name: str) -> dict[str, Any]:
    """Return what tables are made of: rotated boxes, or those around them, which a notice says."""
    given = find(ROTATED).given
    assert given is not None
    column = given(quads, name)
    if reading.iou_type != BOXES:
        return {"shapes": {ROTATED: column}}
    notices = {ROTATED_BOXES: 1} if len(quads) else {}
    return {"boxes": column.bounds().table, "box_format": "xyxy", "notices": notices}


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a file per image."""
    stems, names = stems_of(table, None), category_names(table, None)
    check_names(names, table.source, words=True)
    quads, lost = _quads(table)
    numbers, codes, difficult = quads.tolist(), table.categories.codes.tolist(), table.difficult.tolist()

    def content(rows: list[int]) -> bytes:
        lines = (f"{' '.join(map(digits, numbers[row]))} {names[codes[row]]} {int(difficult[row])}\n" for row in rows)
        return "".join(lines).encode()

    files = {f"{one}.txt": partial(content, rows.tolist()) for one, rows in zip(stems, by_image(table), strict=True)}
    write_folder(path, files)
    used = np.bincount(table.categories.codes, minlength=len(names))
    column = table.shapes.get(ROTATED)
    areas = lost_areas(table) if column is None else int(np.count_nonzero(table.areas != column.areas()))
    return {
        "crowd": int(table.crowd.sum()),
        "areas": areas,
        **lost,
        "empty_categories": int(np.count_nonzero(used == 0)),
        "category_ids": lost_ids(table.categories.values, names),
        "image_ids": lost_ids(table.images.values, stems),
        "image_sizes": 0 if table.images.sizes is None else int(table.images.sizes.all(axis=1).sum()),
    }


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write ``Task1_{class}.txt``, with ground truth also for classes without any."""
    truth = writing.ground_truth
    stems, names = stems_of(table, truth), category_names(table, truth)
    known = [] if truth is None else category_names(truth, None)
    check_names([*names, *known], table.source, file=True)
    check_names(stems, table.source, words=True)
    infinite = ~np.isfinite(table.scores)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError("a score must be finite", source=table.source, record=row, value=float(table.scores[row]))
    quads, lost = _quads(table)
    images, scores, numbers = table.images.codes.tolist(), table.scores.tolist(), quads.tolist()

    def content(rows: list[int]) -> bytes:
        return "".join(f"{stems[images[i]]} {' '.join(map(digits, (scores[i], *numbers[i])))}\n" for i in rows).encode()

    codes = table.categories.codes
    rows = {name: np.flatnonzero(codes == code).tolist() for code, name in enumerate(names)}
    everything: dict[str, list[int]] = {**{name: [] for name in known}, **rows}
    write_folder(path, {f"Task1_{name}.txt": partial(content, own) for name, own in everything.items()})
    return {
        **lost,
        "category_ids": lost_ids(table.categories.values, names),
        "image_ids": lost_ids(table.images.values, stems),
    }


def _quads(table: GroundTruth | Detections) -> tuple[NDArray[np.float64], dict[str, int]]:
    """Return the corners of rotated boxes, or of boxes where there are none, and what is lost."""
    column = table.shapes.get(ROTATED)
    lost = {"shapes": shapes_lost(table, (ROTATED,))}
    if column is not None:
        return column.arrays()["corners"], lost
    boxes, rounded = corners(table)
    return boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]], {**lost, "rounded_boxes": rounded}


def _kinds_in(source: Any) -> dict[str, int]:
    """Return how many lines are rotated boxes, which all are but those of Task2."""
    lines = read_lines((data, place) for _, data, place in _result_files(source))
    counts = [len(words) for words in lines.fields if not _is_header(words)]
    return {ROTATED: sum(count != 6 for count in counts), "": len(counts)}


def _sniff(given: Given) -> bool:
    """Results go by their names; labels have a header, or eight numbers and a class."""
    if given.role == "detections":
        return any(map(_RESULTS.fullmatch, given.names if given.is_folder else [given.name]))
    if not given.is_folder or any(map(_RESULTS.fullmatch, given.names)):
        return False
    lines = given.lines("")
    fits = [_is_header(words) or _is_label(words) for words in lines]
    return bool(fits) and 2 * sum(fits) > len(fits)


def _is_label(words: list[bytes]) -> bool:
    if not 9 <= len(words) <= 10 or _is_number(words[8]):
        return False
    return all(map(_is_number, words[:8]))


def _is_number(word: bytes) -> bool:
    with suppress(ValueError):
        return np.isfinite(float(word)) and b"_" not in word
    return False


FORMAT = register(
    Format(
        name="dota",
        takes=("image_set",),
        suffixes=(),
        sniff=_sniff,
        read_ground_truth=read_ground_truth,
        read_detections=read_detections,
        write_ground_truth=write_ground_truth,
        write_detections=write_detections,
        holds=(BOXES, ROTATED, PROBIOU),
        words=("DOTA's folder labelTxt", "DOTA's Task1_{class}.txt: a folder, archive or one file"),
        needs_images=True,
        members=".txt",
        kinds_in=_kinds_in,
    )
)
