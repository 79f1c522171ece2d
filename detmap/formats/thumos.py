"""THUMOS14's text files: a folder with a file of time segments for each class, and a single file of detections.

A line of ``Diving_test.txt`` is ``video start end``, in seconds. Segments of the class Ambiguous become crowds of every
class, so that detections in them are ignored. ``detclasslist.txt`` has lines ``number class``. A line of detections is
``video start end number confidence``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import coded
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.file_names import (
    category_names,
    check_scores,
    lost_facts,
    lost_ids,
    shapes_lost,
    unused,
    write_folder,
)
from detmap.formats.registry import Format, Given, Writing
from detmap.plugins import register
from detmap.reading.lines import LONGEST, Lines, is_number, read_lines
from detmap.reading.options import Path, Reading, Role
from detmap.reading.sources import compressed, members, name_of, read_bytes
from detmap.shapes.kinds import TEMPORAL, TEMPORAL_SPAN
from detmap.system.whole_files import write

_CLASSES = "detclasslist.txt"
_FILE = re.compile(r"(?P<label>.+?)_(?P<subset>test|val)\.txt")
_AMBIGUOUS = "Ambiguous"

_TRUTH = "a line is: video start end"
_FOUND = "a line is: video start end class-number confidence"


def read_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read a folder or archive with the annotations of one subset and, optionally, a list of classes."""
    name = name_of(source, "ground truth")
    files: dict[str, tuple[bytes, str]] = {}
    subsets = set()
    numbers: dict[str, int] = {}
    for file, data, place in members(source, ".txt", "ground truth"):
        if file == _CLASSES:
            numbers = _class_numbers(data, place)
        elif (match := _FILE.fullmatch(file)) is not None and not file.startswith("."):
            files[match["label"]] = data, place
            subsets.add(match["subset"])
    if len(subsets) != 1:
        problem = "holds files of two subsets" if subsets else "holds no files of classes"
        raise InputError(problem, source=name, remedy="a file per class is called CLASS_test.txt, or CLASS_val.txt")
    labels = [label for label in sorted(files) if label != _AMBIGUOUS]
    free = iter(range(1 + max(numbers.values(), default=0), 2 + max(numbers.values(), default=0) + len(labels)))
    ids = [numbers[label] if label in numbers else next(free) for label in labels]
    lines = read_lines([files[label] for label in (*labels, *files.keys() & {_AMBIGUOUS})])
    videos = _videos(lines, 3, _TRUTH)
    ends = lines.floats(skip=1)[0].reshape(-1, 2)
    of, crowd = np.array(lines.files, np.int64), np.array(lines.files, np.int64) == len(labels)
    # An ambiguous segment becomes one crowd for each class.
    rows = np.concatenate([np.flatnonzero(~crowd), np.repeat(np.flatnonzero(crowd), len(ids))])
    own = np.concatenate([of[~crowd], np.tile(np.arange(len(ids)), int(crowd.sum()))])
    with lines.named(rows):
        return GroundTruth.from_arrays(
            image_ids=coded([videos[row] for row in rows.tolist()], name, "video"),
            category_ids=np.array(ids, np.int64)[own],
            segments=ends[rows],
            crowd=crowd[rows],
            categories=np.array(ids, np.int64),
            category_names=dict(zip(ids, labels, strict=True)),
            source=name,
        )


def read_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read a file of detections. Detections in videos that the ground truth lacks are kept by default. The protocol
    decides whether such detections are scored.
    """
    data, name = read_bytes(source, "detections")
    lines = read_lines([(bytes(data), name)])
    videos = [one.removesuffix(".mp4") for one in _videos(lines, 5, _FOUND)]
    numbers = lines.floats(skip=1)[0].reshape(-1, 4)
    codes = numbers[:, 2]
    lines.refuse((codes != np.floor(codes)) | (np.abs(codes) >= 2**31), "must be the number of a class", 3)
    rows = np.arange(len(videos))
    if ground_truth is not None and reading.unknown_images == "ignore":
        known = set(ground_truth.images.ids.tolist())
        rows = np.flatnonzero([one in known for one in videos])
    dropped = len(videos) - rows.size
    with lines.named(rows):
        return Detections.from_arrays(
            image_ids=coded([videos[row] for row in rows.tolist()], name, "video"),
            category_ids=codes[rows].astype(np.int64),
            scores=numbers[rows, 3],
            segments=numbers[rows, :2],
            notices={"unknown_image": dropped} if dropped else {},
            source=name,
        )


def _class_numbers(data: bytes, place: str) -> dict[str, int]:
    """Return the number of each class."""
    lines = read_lines([(data, place)])
    made: dict[str, int] = {}
    for row, words in enumerate(lines.fields):
        if len(words) != 2 or not words[0].isdigit() or len(words[0]) > 9:
            raise lines.error(row, "is not a number and the name of its class")
        label, number = words[1].decode("utf-8", "replace"), int(words[0])
        if made.setdefault(label, number) != number or list(made.values()).count(number) > 1:
            raise lines.error(row, "is a second number of its class, or a second class of its number")
    return made


def _videos(lines: Lines, width: int, form: str) -> list[str]:
    """Return the first word of each line; raise `InputError` for a line without `width` words."""
    made = []
    for row, words in enumerate(lines.fields):
        if len(words) != width:
            raise lines.error(row, f"has {len(words)} fields where {width} are expected", remedy=form)
        try:
            made.append(words[0].decode())
        except UnicodeDecodeError:
            raise lines.error(row, "is not text in UTF-8") from None
    return made


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a file per class, and a list of class numbers; crowds of every class are written as ambiguous segments."""
    names, numbers = category_names(table, table), _numbers(table)
    for name in names:
        if (
            len(name.split()) != 1
            or not name.isprintable()
            or "/" in name
            or name.startswith(".")
            or name == _AMBIGUOUS
        ):
            raise InputError(
                "cannot be the name of a file of a class",
                source=table.source,
                value=name,
                remedy="rename the class: --class-map",
            )
    videos, ends = _words(table), table.shape(TEMPORAL).arrays()["ends"].tolist()
    images, codes = table.images.codes.tolist(), table.categories.codes.tolist()
    lines = [f"{videos[image]} {begin!r} {end!r}\n" for image, (begin, end) in zip(images, ends, strict=True)]
    ambiguous, whole = _ambiguous(table, lines)
    texts: dict[str, list[str]] = {name: [] for name in names}
    for row, line in enumerate(lines):
        if not whole[row]:
            texts[names[codes[row]]].append(line)
    files = {f"{name}_test.txt": "".join(own) for name, own in texts.items()}
    files |= {f"{_AMBIGUOUS}_test.txt": "".join(ambiguous)} if ambiguous else {}
    files[_CLASSES] = "".join(f"{number} {name}\n" for number, name in zip(numbers, names, strict=True))
    write_folder(path, {name: text.encode for name, text in files.items()})
    lost = lost_facts(table, table.shapes[TEMPORAL].areas())
    return {
        **lost,
        "crowd": lost["crowd"] - int(whole.sum()),
        "shapes": shapes_lost(table, (TEMPORAL,)),
        "image_ids": lost_ids(table.images.ids, videos),
        "empty_images": unused(table.images.codes, table.images.ids.size),
        "category_ids": sum(one != other for one, other in zip(table.categories.ids.tolist(), numbers, strict=True)),
    }


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a line per detection. If category ids are not integers, classes are numbered as in the ground truth's file."""
    check_scores(table)
    truth, ids = writing.ground_truth, table.categories.ids.tolist()
    if table.categories.ids.dtype.kind == "i":
        numbers = _numbers(table)
    elif truth is None:
        remedy = "give the ground truth (--ground-truth), whose classes are numbered"
        raise InputError("has names for classes, and the format numbers", source=table.source, remedy=remedy)
    else:
        of = dict(zip(truth.categories.ids.tolist(), _numbers(truth), strict=True))
        missing = next((one for one in ids if one not in of), None)
        if missing is not None:
            raise InputError("is no class of the ground truth", source=table.source, value=missing)
        numbers = [of[one] for one in ids]
    videos, ends = _words(table), table.shape(TEMPORAL).arrays()["ends"].tolist()
    columns = table.images.codes.tolist(), ends, table.categories.codes.tolist(), table.scores.tolist()
    text = "".join(
        f"{videos[image]} {begin!r} {end!r} {numbers[code]} {score!r}\n"
        for image, (begin, end), code, score in zip(*columns, strict=True)
    )
    name = os.fspath(path)
    write(name, compressed(text.encode(), name))
    return {
        "shapes": shapes_lost(table, (TEMPORAL,)),
        "image_ids": lost_ids(table.images.ids, videos),
        "category_ids": sum(one != other for one, other in zip(ids, numbers, strict=True)),
    }


def _numbers(table: GroundTruth | Detections) -> list[int]:
    """Return the number of each category: its id, or its rank from 1 if ids are not integers."""
    ids: list[Any] = table.categories.ids.tolist()
    if table.categories.ids.dtype.kind != "i":
        return list(range(1, len(ids) + 1))
    wrong = next((one for one in ids if not 0 <= one < 10**9), None)
    if wrong is not None:
        raise InputError("cannot be the number of a class, of at most nine digits", source=table.source, value=wrong)
    return ids


def _words(table: GroundTruth | Detections) -> list[str]:
    """Return the names of videos, each of which must be one word."""
    names = list(map(str, table.images.ids.tolist()))
    for name in names:
        good = len(name.split()) == 1 and name == name.strip() and name.isprintable() and not name.endswith(".mp4")
        if not good or len(name.encode()) > LONGEST:
            raise InputError("cannot be the name of a video in these lines", source=table.source, value=name)
    return names


def _ambiguous(table: GroundTruth, lines: Sequence[str]) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the lines of ambiguous segments, and a mask of the crowds that these lines stand for. A segment is ambiguous
    if every class has the same number of crowds with this video, start and end.
    """
    whole = np.zeros(len(table), np.bool_)
    alike: dict[str, list[int]] = {}
    for row in np.flatnonzero(table.crowd).tolist():
        alike.setdefault(lines[row], []).append(row)
    ambiguous: list[str] = []
    for line, rows in alike.items():
        counts = np.bincount(table.categories.codes[rows], minlength=table.categories.ids.size)
        if (counts == counts[0]).all():
            whole[rows] = True
            ambiguous += [line] * int(counts[0])
    return ambiguous, whole


def _sniff(given: Given) -> bool:
    """Recognise ground truth by file names, detections by lines with two times and a class number."""
    if given.role == "ground_truth":
        named = [one for one in given.names if _FILE.fullmatch(one)]
        lines = given.lines("", (_CLASSES,))
        return bool(named) and all(len(words) == 3 and all(map(is_number, words[1:])) for words in lines)
    # VOC's results have "_det_" in their file names.
    lines = [] if given.is_folder or given.is_archive or "_det_" in given.name else given.lines("")
    fits = [len(words) == 5 and words[3].isdigit() and all(map(is_number, words[1:])) for words in lines]
    return 2 * sum(fits) > len(fits) and not any(is_number(words[0]) for words in lines)


def _tell(given: Given) -> Role:
    return "ground_truth" if given.is_folder or given.is_archive else "detections"


FORMAT = register(
    Format(
        name="thumos14",
        takes=(),
        suffixes=(),
        sniff=_sniff,
        tell=_tell,
        read_ground_truth=read_ground_truth,
        read_detections=read_detections,
        write_ground_truth=write_ground_truth,
        write_detections=write_detections,
        holds=(TEMPORAL, TEMPORAL_SPAN),
        protocol="thumos14",
        words=("THUMOS14's folder of CLASS_test.txt", "THUMOS14's text of detections"),
    )
)
