"""A text file per image, a line per record: ``class [score] a b c d``, in pixels.

Cartucho's tools write two corners, left, top, right, bottom, and the word ``difficult`` behind what need not be found.
Padilla's take these or near corner and size. Which of the two it is follows from the numbers unless the caller says it, and
is noted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import coded
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError
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
from detmap.formats.registry import Format, Given, Path, Reading, Writing
from detmap.formats.yolo import read as yolo
from detmap.formats.yolo.folders import NO_LABELS, check_names, labels_among
from detmap.plugins import register
from detmap.reading.lines import Lines, read_lines
from detmap.reading.sources import members, name_of
from detmap.shapes.boxes import seem_shares

_DIFFICULT = b"difficult"

#: Where a smaller share of boxes would be inverted as corners, these may be wrong, and are no proof of sizes.
_FEW = 0.05


def _files(source: Any, what: str) -> dict[str, tuple[bytes, str]]:
    return labels_among(members(source, ".txt", what))


def _parse(lines: Lines, scored: bool) -> tuple[list[str], NDArray[np.float64], NDArray[np.bool_]]:
    """Return classes, numbers, and which lines are marked as difficult.

    Raises
    ------
    InputError
        For a line of another form.
    """
    width = 6 if scored else 5
    difficult = np.zeros(len(lines.fields), np.bool_)
    for row, words in enumerate(lines.fields):
        if not scored and len(words) == width + 1 and words[-1] == _DIFFICULT:
            difficult[row] = True
            words.pop()
        if len(words) != width:
            form = "class score a b c d" if scored else "class a b c d, or that and difficult"
            raise lines.error(row, f"has {len(words)} fields where {width} are expected", remedy=f"a line is: {form}")
    values, _ = lines.floats(skip=1)
    try:
        names = [words[0].decode() for words in lines.fields]
    except UnicodeDecodeError:
        raise InputError("is not a text file in UTF-8", source=lines.names[0]) from None
    table = values.reshape(-1, width - 1)
    boxes = table[:, -4:]
    if seem_shares(boxes):  # whose order is YOLO's mostly
        raise lines.error(
            int(np.argmax((boxes % 1 != 0).any(axis=1))),
            "boxes lie within about 0 to 1, as shares of an image do: pixels are expected",
            remedy="lines of class, centre x, centre y, width, height, and a score behind them, are YOLO's format",
        )
    return names, table, difficult


def _form(lines: Lines, boxes: NDArray[np.float64], given: str | None) -> tuple[str, dict[str, int]]:
    """Return whether boxes are two corners or corner and size, and the notice that says so where nobody did.

    Raises
    ------
    InputError
        Where few boxes contradict corners, so that either may be meant.
    """
    if given is not None:
        if given not in ("xyxy", "xywh"):
            raise OptionError(f"box_format of lines of text must be 'xyxy' or 'xywh', not {given!r}")
        return given, {}
    inverted = (boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1])
    count = int(np.count_nonzero(inverted))
    if 0 < count < _FEW * len(boxes):  # of sizes far more are smaller than where their box begins
        raise lines.error(
            int(np.argmax(inverted)),
            f"is one of {count:,} boxes of {len(boxes):,} that are inverted as left, top, right, bottom: these can be "
            "corners, some of them wrong, or left, top, width, height",
            remedy="say which: box_format='xyxy' or 'xywh' (--box-format; of ground truth --gt-box-format)",
        )
    form = "xywh" if count else "xyxy"
    return form, {f"boxes_read_as_{form}": len(boxes)} if len(boxes) else {}


def read_text_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read a folder or archive of text files; see the module. Every file is an image."""
    files = _files(source, "ground truth")
    stems = sorted(files)
    lines = read_lines(files[one] for one in stems)
    names, table, difficult = _parse(lines, scored=False)
    form, notices = _form(lines, table, reading.box_format)
    return GroundTruth.from_arrays(
        image_ids=coded([stems[i] for i in lines.files]),
        category_ids=coded(names),
        boxes=table,
        box_format=form,  # type: ignore[arg-type]
        difficult=difficult,
        images=np.array(stems, str),
        invalid_boxes=reading.invalid_boxes,
        notices=notices,
        source=name_of(source, "ground truth"),
    )


def read_text_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read a folder or archive of text files with scores; see the module."""
    files = _files(source, "detections")
    stems = sorted(files)
    name = name_of(source, "detections")
    ids: list[Any] = list(stems)
    if ground_truth is not None:
        ids = resolve_images(stems, ground_truth, reading.unknown_images, name)
    kept = [i for i, one in enumerate(ids) if one is not None]
    dropped = len(read_lines(files[stems[i]] for i, one in enumerate(ids) if one is None).fields)
    lines = read_lines(files[stems[i]] for i in kept)
    names, table, _ = _parse(lines, scored=True)
    form, notices = _form(lines, table[:, 1:], reading.box_format)
    categories: list[Any] = names
    if ground_truth is not None:
        distinct = list(dict.fromkeys(names))
        found = dict(zip(distinct, resolve_categories(distinct, ground_truth), strict=True))
        categories = [found[one] for one in names]
    images = [ids[kept[i]] for i in lines.files]
    return Detections.from_arrays(
        image_ids=_ids(images),
        category_ids=_ids(categories),
        boxes=table[:, 1:],
        box_format=form,  # type: ignore[arg-type]
        scores=table[:, 0],
        invalid_boxes=reading.invalid_boxes,
        notices={**notices, **({"unknown_image": dropped} if dropped else {})},
        source=name,
    )


def _ids(values: list[Any]) -> Any:
    return coded(values) if values and isinstance(values[0], str) else np.array(values, np.int64)


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a file per image, each line class, left, top, right, bottom, and ``difficult`` where it is."""
    stems, names = stems_of(table, None), category_names(table, None)
    boxes, rounded = _checked(table, names)
    numbers, difficult = boxes.tolist(), table.difficult.tolist()
    labels = [names[code] for code in table.categories.codes.tolist()]

    def content(rows: list[int]) -> bytes:
        mark = {True: f" {_DIFFICULT.decode()}", False: ""}
        lines = (f"{labels[row]} {' '.join(map(repr, numbers[row]))}{mark[difficult[row]]}\n" for row in rows)
        return "".join(lines).encode()

    of_image = by_image(table)
    check_names(stems, of_image, table.source)
    write_folder(path, {f"{name}.txt": partial(content, of_image[i].tolist()) for i, name in enumerate(stems)})
    used = np.bincount(table.categories.codes, minlength=len(names))
    return {
        "crowd": int(table.crowd.sum()),
        "areas": lost_areas(table),
        "rounded_boxes": rounded,
        "shapes": shapes_lost(table, ()),
        "empty_categories": int(np.count_nonzero(used == 0)),
        "category_ids": lost_ids(table.categories.values, names),
        "image_ids": lost_ids(table.images.values, stems),
        "image_sizes": 0 if table.images.sizes is None else int(table.images.sizes.all(axis=1).sum()),
    }


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a file per image, each line class, score, left, top, right, bottom."""
    truth = writing.ground_truth
    stems, names = stems_of(table, truth), category_names(table, truth)
    boxes, rounded = _checked(table, names)
    numbers = np.concatenate([table.scores[:, None], boxes], axis=1).tolist()
    labels = [names[code] for code in table.categories.codes.tolist()]

    def content(rows: list[int]) -> bytes:
        return "".join(f"{labels[row]} {' '.join(map(repr, numbers[row]))}\n" for row in rows).encode()

    of_image = by_image(table)
    write_folder(path, {f"{name}.txt": partial(content, of_image[i].tolist()) for i, name in enumerate(stems)})
    return {
        "rounded_boxes": rounded,
        "shapes": shapes_lost(table, ()),
        "category_ids": lost_ids(table.categories.values, names),
        "image_ids": lost_ids(table.images.values, stems),
    }


def _checked(table: GroundTruth | Detections, names: list[str]) -> tuple[NDArray[np.float64], int]:
    """Return the corners of boxes, and how many change, where names and scores can be written.

    Raises
    ------
    InputError
        Names what cannot.
    """
    for name in names:
        if len(name.split()) != 1 or name != name.strip() or not name.isprintable() or len(name.encode()) > 256:
            raise InputError("a class of these lines must be one word", source=table.source, value=name)
    if isinstance(table, Detections) and not np.isfinite(table.scores).all():
        row = int(np.argmin(np.isfinite(table.scores)))
        raise InputError("a score must be finite", source=table.source, record=row, value=float(table.scores[row]))
    return corners(table)


def _sniff(given: Given) -> bool:
    """Folders of text whose lines are a word and four or five numbers, which YOLO's cannot be."""
    if not given.is_folder or any(name.lower().endswith(".xml") for name in given.names):
        return False
    scored = given.role == "detections"
    lines = given.lines("", NO_LABELS)
    if not lines or yolo.fits(lines, scored):
        return False
    for words in lines:
        own = words[:-1] if not scored and words[-1] == _DIFFICULT else words
        if len(own) != 5 + scored:
            return False
        try:
            list(map(float, own[1:]))
        except ValueError:
            return False
    return not any(os.path.basename(name).startswith("comp") and "_det_" in name for name in given.names)


FORMAT = register(
    Format(
        name="text",
        takes=("box_format",),
        suffixes=(),
        sniff=_sniff,
        read_ground_truth=read_text_ground_truth,
        read_detections=read_text_detections,
        write_ground_truth=write_ground_truth,
        write_detections=write_detections,
        words=(
            "a folder of text files of lines class left top right bottom",
            "a folder of text files of lines class score left top right bottom",
        ),
        members=".txt",
        needs_images=True,
    )
)
