"""WIDER FACE: a file of all faces, and predictions in a file per image within folders of events.

A block is the path of an image, how many faces there are, and a line for each: ``x y w h`` and, of faces, six
attributes of which the fourth, ``invalid``, marks what is not scored, or, of predictions, the score.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.tools.collected import Collected
from detmap.reading.lines import Lines, read_lines
from detmap.reading.options import Reading
from detmap.reading.sources import Source, members, name_of, read_bytes

_FACE = "face"


def read_ground_truth(source: Source, reading: Reading) -> GroundTruth:
    """Read the list of faces; those that are ``invalid`` are crowds."""
    data, name = read_bytes(source, "ground truth")
    found = Collected(name, "xywh")
    lines = read_lines([(bytes(data), name)])
    for image, rows in _blocks(lines, empty_line=True):
        found.image(image, name)
        for row in rows:
            words = lines.fields[row]
            if len(words) != 10:
                remedy = "a line is: x y w h blur expression illumination invalid occlusion pose"
                raise lines.error(row, f"has {len(words)} fields where 10 are expected", remedy=remedy)
            numbers = lines.take([row]).floats()[0].tolist()
            found.add(f"line {lines.numbers[row]}", image, _FACE, numbers[:4], crowd=numbers[7] == 1)
    return found.ground_truth(reading)


def read_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read a folder that holds a folder per event, or one of these."""
    name = name_of(source, "detections")
    found = Collected(name, "xywh")
    for event, files in _events(source):
        lines = read_lines(files)
        for image, rows in _blocks(lines, empty_line=False):
            called = found.image(f"{event}/{image}" if event and "/" not in image else image, name)
            for row in rows:
                words = lines.fields[row]
                if len(words) != 5:
                    problem = f"has {len(words)} fields where 5 are expected"
                    raise lines.error(row, problem, remedy="a line is: x y w h score")
                numbers = lines.take([row]).floats()[0].tolist()
                place = f"{os.path.basename(lines.names[lines.files[row]])} line {lines.numbers[row]}"
                found.add(place, called, _FACE, numbers[:4], score=numbers[4])
    return found.detections(ground_truth, reading)


def _events(source: Any) -> Iterator[tuple[str, list[tuple[bytes, str]]]]:
    """Yield the name of each event, and its files."""
    names = sorted(os.listdir(source))
    inside = [one for one in names if os.path.isdir(os.path.join(source, one))]
    for event in inside or [""]:
        held = members(os.path.join(source, event), ".txt", "detections")
        yield event or os.path.basename(os.path.abspath(source)), [(data, place) for _, data, place in held]


def _blocks(lines: Lines, *, empty_line: bool) -> Iterator[tuple[str, range]]:
    """Yield the image of each block, and the places of its lines; with `empty_line` a block of none has a line of zeros."""
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
