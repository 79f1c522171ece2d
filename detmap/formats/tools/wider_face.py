"""WIDER FACE: ground truth in one file, and predictions in a folder per event, with a file per image.

A block is the path of an image, the number of faces, and a line per face. In ground truth, a line is ``x y w h`` and six
attributes. The fourth attribute, ``invalid``, marks faces that are not scored. In predictions, a line is ``x y w h score``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.tools.collected import Collected
from detmap.reading.lines import Lines, read_lines
from detmap.reading.options import Reading
from detmap.reading.sources import Source, members, name_of, read_bytes

_FACE = "face"


def read_ground_truth(source: Source, reading: Reading) -> GroundTruth:
    """Read the list of faces; ``invalid`` faces are crowds."""
    data, name = read_bytes(source, "ground truth")
    found = Collected(name, "xywh")
    lines = read_lines([(bytes(data), name)])
    images: list[str] = []
    rows: list[int] = []
    for image, own in _blocks(lines, empty_line=True):
        images += repeat(found.image(image, name), len(own))
        rows += own
    faces = lines.take(rows)
    numbers = _numbers(faces, 10, "x y w h blur expression illumination invalid occlusion pose")
    labels = [_FACE] * len(rows)
    found.extend(lambda row: f"line {faces.numbers[row]}", images, labels, numbers[:, :4], crowd=numbers[:, 7] == 1)
    return found.ground_truth(reading)


def _numbers(lines: Lines, width: int, says: str) -> NDArray[np.float64]:
    """Return the numbers of lines, shape (n, width); raise `InputError` for an invalid line."""
    lines.check_counts(width, f"where {width} are expected", f"a line is: {says}")
    return lines.table(range(width))


def read_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read a folder with a folder per event, or a single event's folder."""
    name = name_of(source, "detections")
    found = Collected(name, "xywh")
    for event, files in _events(source):
        lines = read_lines(files)
        images: list[str] = []
        rows: list[int] = []
        for image, own in _blocks(lines, empty_line=False):
            called = found.image(f"{event}/{image}" if event and "/" not in image else image, name)
            images += repeat(called, len(own))
            rows += own
        faces = lines.take(rows)
        numbers = _numbers(faces, 5, "x y w h score")
        labels = [_FACE] * len(rows)
        found.extend(partial(_place, faces), images, labels, numbers[:, :4], scores=numbers[:, 4])
    return found.detections(ground_truth, reading)


def _place(lines: Lines, row: int) -> str:
    """Return the name of a line for messages."""
    return f"{os.path.basename(lines.names[lines.files[row]])} line {lines.numbers[row]}"


def _events(source: Any) -> Iterator[tuple[str, list[tuple[bytes, str]]]]:
    """Yield the name of each event, and its files."""
    if not isinstance(source, str | os.PathLike) or not os.path.isdir(source):
        raise InputError("is no folder of events", source=name_of(source, "detections"))
    names = sorted(os.listdir(source))
    inside = [one for one in names if os.path.isdir(os.path.join(source, one))]
    for event in inside or [""]:
        held = members(os.path.join(source, event), ".txt", "detections")
        yield event or os.path.basename(os.path.abspath(source)), [(data, place) for _, data, place in held]


def _blocks(lines: Lines, *, empty_line: bool) -> Iterator[tuple[str, range]]:
    """Yield the image and the range of lines of each block. If `empty_line` is true, a line of zeros after an image
    without faces is skipped.
    """
    row = 0
    while row < len(lines.fields):
        words = lines.fields[row]
        image = b" ".join(words).decode("utf-8", "replace")
        counted = lines.fields[row + 1] if row + 1 < len(lines.fields) else []
        if len(counted) != 1 or not counted[0].isdigit() or len(counted[0]) > 9:
            at = min(row + 1, len(lines.fields) - 1)
            raise lines.error(at, "must be the number of lines that follow", remedy="a block is: image, number, lines")
        count = int(counted[0])
        end = row + 2 + count
        if end > len(lines.fields):
            problem = f"says that {count} lines follow, and there are {len(lines.fields) - row - 2}"
            raise InputError(problem, source=lines.names[lines.files[row]], record=f"line {lines.numbers[row + 1]}")
        yield image, range(row + 2, end)
        zeros = empty_line and count == 0 and end < len(lines.fields) and set(lines.fields[end]) == {b"0"}
        row = end + (1 if zeros and len(lines.fields[end]) > 1 else 0)
