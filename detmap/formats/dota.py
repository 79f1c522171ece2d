"""DOTA's text files: labels in a folder ``labelTxt`` with a file per image, and results in files ``Task1_{class}.txt``.

A line of labels is ``x1 y1 x2 y2 x3 y3 x4 y4 class difficult``, with corners in pixels. If the last word is missing, the
object is not difficult. Some files begin with the lines ``imagesource:…`` and ``gsd:…``. A line of results is ``image score
x1 y1 … x4 y4``. The horizontal boxes of ``Task2_{class}.txt`` have two corners.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from os.path import basename, isdir
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.benchmarks import ROTATED_BOXES
from detmap.data.ids import OF_ONE_DATA_SET
from detmap.data.mismatches import classes_without_results
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.file_names import (
    by_image,
    category_names,
    corners,
    lost_areas,
    lost_by_names,
    lost_sizes,
    recoded,
    resolve_categories,
    resolve_images,
    shapes_lost,
    stems_of,
    write_folder,
)
from detmap.formats.registry import Format, Given, Writing
from detmap.formats.voc.read import among_image_set
from detmap.formats.voc.write import check_names, digits, write_results
from detmap.plugins import register
from detmap.reading.lines import Lines, is_number, read_lines
from detmap.reading.options import Path, Reading
from detmap.reading.sources import members, name_of, read_bytes
from detmap.shapes import find
from detmap.shapes.kinds import BOXES, PROBIOU, ROTATED

_RESULTS = re.compile(r"Task[12]_(?P<name>.+)\.txt")

#: Minimum size in bytes of results that are read by `detmap.reading.cells.scan`.
_WORTH_SCANNING = 1 << 17

#: Prefixes of header lines, which hold no objects.
_HEADERS = (b"imagesource:", b"gsd:")

_LABEL = "a line is: x1 y1 x2 y2 x3 y3 x4 y4 class difficult"
_RESULT = "a line is: image score x1 y1 x2 y2 x3 y3 x4 y4 (of Task2: image score x1 y1 x2 y2)"


def read_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read a folder or archive of labels, optionally only of the images of an image set."""
    name = name_of(source, "ground truth")
    files = {file[: -len(".txt")]: (data, place) for file, data, place in members(source, ".txt", "ground truth")}
    files = among_image_set(files, reading, name)
    images = list(files)
    lines = read_lines(files.values())
    codes, words = lines.words(0)
    lines = lines.take(np.flatnonzero(~np.array([_is_header([word]) for word in words], np.bool_)[codes]))
    difficult = _difficult(lines)
    quads = lines.table(range(8))
    classes = lines.strings(8)
    with lines.named():
        return GroundTruth.from_arrays(
            image_ids=recoded(images, lines.files),
            category_ids=recoded(classes.values, classes.codes),
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
    classes = list(files)
    found = _scanned(files) or _split(read_lines(files.values()))
    ids = list(found.images)
    if ground_truth is not None:
        ids = resolve_images(ids, ground_truth, "ignore", name)
    known = np.array([one is not None for one in ids], np.bool_)[found.codes]
    rows = np.arange(len(known)) if known.all() else np.flatnonzero(known)
    if len(rows) < len(known) and reading.unknown_images == "error":
        row = int(np.argmin(known))
        problem, image = "is not an image of the ground truth", found.images[found.codes[row]]
        raise read_lines(files.values()).error(row, problem, image, OF_ONE_DATA_SET)
    own = classes if ground_truth is None else resolve_categories(classes, ground_truth)
    corners_given = found.numbers[rows, 1:]
    upright = corners_given.shape[1] == 4
    if upright and reading.iou_type != BOXES:
        raise InputError("holds upright boxes, as Task2 asks for", source=name, remedy="give the results of Task1")
    try:
        shapes: dict[str, Any] = {"boxes": corners_given, "box_format": "xyxy", "invalid_boxes": reading.invalid_boxes}
        shapes = shapes if upright else _shapes(corners_given, reading, name)
        notices = {**shapes.pop("notices", {}), "unread_files": unread, "unknown_image": len(known) - len(rows)}
        made = Detections.from_arrays(
            image_ids=recoded(ids, found.codes[rows]),
            category_ids=recoded(own, found.files[rows]),
            scores=found.numbers[rows, 0],
            **shapes,
            notices=notices,
            source=name,
        )
    except InputError:
        with read_lines(files.values()).named(rows):
            raise
    made = replace(made, classes=tuple(classes), missing_classes=reading.missing_classes)
    if ground_truth is not None:
        classes_without_results(ground_truth, made)  # raises an error if missing classes are not allowed
    return made


def _result_files(source: Any) -> Any:
    if isinstance(source, str | PathLike) and _RESULTS.fullmatch(basename(fspath(source))) and not isdir(source):
        data, name = read_bytes(source, "detections")
        return [(basename(name), bytes(data), name)]
    return members(source, ".txt", "detections")


def _is_header(words: list[bytes]) -> bool:
    return words[0].lower().startswith(_HEADERS)


def _difficult(lines: Lines) -> NDArray[np.bool_]:
    """Return the flag at the end of each label, false if there is none."""
    flagged = np.flatnonzero(lines.counts == 10)
    codes, words = lines.take(flagged).words(9)
    wrong = (lines.counts < 9) | (lines.counts > 10)
    wrong[flagged] = np.array([not word.isdigit() for word in words], np.bool_)[codes]
    if wrong.any():
        row = int(np.argmax(wrong))
        count = int(lines.counts[row])
        if count == 10:
            lines.refuse(wrong, "difficult must be a whole number, 0 for objects that are not", 9)
        raise lines.error(row, f"has {count} fields where 9 or 10 are expected", remedy=_LABEL)
    difficult = np.zeros(len(lines), np.bool_)
    difficult[flagged] = np.array([int(word) > 0 for word in words], np.bool_)[codes]
    return difficult


class _Found(NamedTuple):
    """Lines of results. `codes` are indices into `images`, `files` are indices of files, and each row of `numbers` is a
    score followed by corners.
    """

    images: list[str]
    codes: NDArray[Any]
    files: NDArray[np.int64]
    numbers: NDArray[np.float64]


def _scanned(files: Mapping[str, tuple[bytes, str]]) -> _Found | None:
    """Read large files with `detmap.reading.cells.scan`; return None if this fails, or if the files are small."""
    contents = [data for data, _ in files.values()]
    if sum(map(len, contents)) < _WORTH_SCANNING:
        return None
    from detmap.reading import cells

    roles = ["image", *map(str, range(9))]
    images: dict[str, int] = {}
    codes, numbers, counts = [], [], []
    for data in contents:
        found = None if b"#" in data else cells.scan(data, 0, " ", roles, roles[:1], ()) if data else {}
        if found is None:
            return None
        counts.append(len(found["0"]) if found else 0)
        if found:
            strings, own = found["image"]
            codes.append(np.array([images.setdefault(one, len(images)) for one in strings], np.int64)[own])
            numbers.append(np.stack([found[role] for role in roles[1:]], axis=1))
    of_file = np.repeat(np.arange(len(contents)), counts)
    return _Found(list(images), np.concatenate(codes), of_file, np.concatenate(numbers))


def _split(lines: Lines) -> _Found:
    """Read results word by word; raise `InputError` for an invalid line."""
    width = 4 if len(lines) and lines.counts[0] == 6 else 8
    lines.check_counts(2 + width, f"where {2 + width} are expected", _RESULT)
    codes, images = lines.strings(0)
    return _Found(images, codes, lines.files, lines.table(range(1, 2 + width)))


def _shapes(quads: NDArray[np.float64], reading: Reading, name: str) -> dict[str, Any]:
    """Return rotated boxes or, if `iou_type` is "bbox", the boxes around them, as arguments of ``from_arrays``."""
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
    column = table.shapes.get(ROTATED)
    areas = lost_areas(table) if column is None else int(np.count_nonzero(table.areas != column.areas()))
    return {
        "crowd": int(table.crowd.sum()),
        "areas": areas,
        **lost,
        **lost_by_names(table, names, stems),
        "image_sizes": lost_sizes(table),
    }


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a file ``Task1_{class}.txt`` per class, with ground truth also for classes without detections."""
    quads, lost = _quads(table)
    return {**lost, **write_results(table, path, writing, "Task1_{}.txt", quads)}


def _quads(table: GroundTruth | Detections) -> tuple[NDArray[np.float64], dict[str, int]]:
    """Return the corners of the rotated boxes or, if there are none, of the upright boxes. Also count what the format
    cannot hold.
    """
    column = table.shapes.get(ROTATED)
    lost = {"shapes": shapes_lost(table, (ROTATED,))}
    if column is not None:
        return column.arrays()["corners"], lost
    boxes, rounded = corners(table)
    sizes = len(table) if table.box_sizes else 0
    return boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]], {**lost, "rounded_boxes": rounded, "sizes": sizes}


def _kinds_in(source: Any) -> dict[str, int]:
    """Return the number of lines with rotated boxes, and the number of all lines. The boxes of DOTA's task 2 are upright."""
    lines = read_lines((data, place) for _, data, place in _result_files(source))
    counts = [len(words) for words in lines.fields if not _is_header(words)]
    return {ROTATED: sum(count != 6 for count in counts), "": len(counts)}


def _sniff(given: Given) -> bool:
    """Recognise results by name, and labels by a header or by eight numbers and a class."""
    if given.role == "detections":
        return any(map(_RESULTS.fullmatch, given.names if given.is_folder or given.is_archive else [given.name]))
    if not (given.is_folder or given.is_archive) or any(map(_RESULTS.fullmatch, given.names)):
        return False
    lines = given.lines("")
    fits = [_is_header(words) or _is_label(words) for words in lines]
    return bool(fits) and 2 * sum(fits) > len(fits)


def _is_label(words: list[bytes]) -> bool:
    return 9 <= len(words) <= 10 and not is_number(words[8]) and all(map(is_number, words[:8]))


FORMAT = register(
    Format(
        name="dota",
        takes=("image_set", "missing_classes"),
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
