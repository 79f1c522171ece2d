"""MOTChallenge: a folder per sequence with ``gt/gt.txt`` or ``det/det.txt``, or one such file. A line is a box in a
frame.

Frames and coordinates count from 1 in files; coordinates in tables count from 0. In ground truth, a line with flag 1 is
an object of its class. A line with flag 0 and a class of people, such as static persons, becomes a crowd of the class
pedestrian. Other lines with flag 0 are left out.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.tools.collected import Collected
from detmap.reading.lines import Lines, read_lines
from detmap.reading.options import Reading
from detmap.reading.sources import name_of, read_bytes

#: Names of the classes 1 to 13 of MOT16, MOT17 and MOT20.
CLASSES = (
    "pedestrian",
    "person_on_vehicle",
    "car",
    "bicycle",
    "motorbike",
    "non_motorised_vehicle",
    "static_person",
    "distractor",
    "occluder",
    "occluder_on_ground",
    "occluder_full",
    "reflection",
    "crowd",
)

#: Numbers of classes of people; lines of these classes with flag 0 become crowds.
_PEOPLE = (1, 2, 7, 8, 12, 13)

#: Maximum number of frames of a sequence.
_FRAMES = 10_000_000

_LINE = "a line is: frame,id,left,top,width,height,score (of ground truth: flag,class,visibility)"


class _Sequence(NamedTuple):
    """A sequence. The number of frames, height and width are read from ``seqinfo.ini``; 0 if unknown."""

    name: str
    path: Any
    frames: int = 0
    height: int = 0
    width: int = 0


def read_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read the objects of all sequences."""
    found = Collected(name_of(source, "ground truth"), "xywh")
    for one in _sequences(source, "gt"):
        lines = _lines(one.path, "ground truth")
        for frame in range(1, one.frames + 1):
            found.image(f"{one.name}/{frame:06d}", one.name, one.height, one.width)
        numbers, images = _rows(found, one, lines)
        of_nine = np.isnan(numbers[:, 9]) & ~np.isnan(numbers[:, 8])
        label = np.where(of_nine, numbers[:, 7], 1.0)
        lines.refuse((label != np.floor(label)) | (label < 0), "the class must be a whole number", 7)
        flag = numbers[:, 6] != 0
        kept = np.flatnonzero(flag | np.isin(label, _PEOPLE))
        labels = [
            _called(int(value)) if counts else CLASSES[0] for value, counts in zip(label[kept], flag[kept], strict=True)
        ]
        place = partial(_place, one.name, lines.take(kept.tolist()))
        found.extend(place, [images[row] for row in kept.tolist()], labels, numbers[kept, 2:6], crowd=~flag[kept])
        if len(kept) < len(images):
            found.notices["unread_records"] = found.notices.get("unread_records", 0) + len(images) - len(kept)
    return found.ground_truth(reading)


def _called(label: int) -> str:
    """Return the name of a class, or its number."""
    return CLASSES[label - 1] if 1 <= label <= len(CLASSES) else str(label)


def _place(name: str, lines: Lines, row: int) -> str:
    """Return the name of a line for messages."""
    return f"{name} line {lines.numbers[row]}"


def read_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read all sequences. If detections and ground truth have one sequence each, the two names may differ."""
    found = Collected(name_of(source, "detections"), "xywh")
    sequences = list(_sequences(source, "det"))
    known = [] if ground_truth is None else [str(one) for one in ground_truth.images.ids.tolist()]
    theirs = {one.rpartition("/")[0] for one in known}
    if len(sequences) == len(theirs) == 1:
        sequences = [sequences[0]._replace(name=theirs.pop())]
    for one in sequences:
        lines = _lines(one.path, "detections")
        numbers, images = _rows(found, one, lines)
        labels = [CLASSES[0]] * len(images)
        found.extend(partial(_place, one.name, lines), images, labels, numbers[:, 2:6], scores=numbers[:, 6])
    return found.detections(ground_truth, reading)


def _rows(found: Collected, one: _Sequence, lines: Lines) -> tuple[NDArray[np.float64], list[str]]:
    """Return the numbers of lines, shape (n, 10), and the image of each line. Coordinates count from 0, and missing
    numbers at the end of a line are NaN. Raises `InputError` for an invalid line.
    """
    values, edges = lines.floats()
    counts = np.diff(edges)
    bad = (counts < 7) | (counts > 10)
    if bad.any():
        row = int(np.argmax(bad))
        raise lines.error(row, f"has {counts[row]} fields where 7 to 10 are expected", remedy=_LINE)
    numbers = np.full((len(counts), 10), np.nan)
    at = np.repeat(np.arange(len(counts)), counts)
    numbers[at, np.arange(len(values)) - edges[:-1][at]] = values
    frames = numbers[:, 0]
    wrong = (frames != np.floor(frames)) | (frames < 1) | (frames > _FRAMES)
    lines.refuse(wrong, "the frame must be a whole number of 1 or more", 0)
    if one.frames:
        lines.refuse(frames > one.frames, f"the frame is beyond the {one.frames} that seqinfo.ini says", 0)
    numbers[:, 2:4] -= 1
    distinct, first, codes = np.unique(frames, return_index=True, return_inverse=True)
    called = [""] * len(distinct)
    for code in np.argsort(first).tolist():
        place = f"{one.name} line {lines.numbers[first[code]]}"
        called[code] = found.image(f"{one.name}/{int(distinct[code]):06d}", place, one.height, one.width)
    return numbers, [called[code] for code in codes.tolist()]


def _lines(path: Any, what: str) -> Lines:
    data, name = read_bytes(path, what)
    return read_lines([(bytes(data).replace(b",", b" "), name)])


def _sequences(source: Any, side: str) -> Iterator[_Sequence]:
    """Yield the sequences in a folder. The source may also be the folder or the file of a single sequence."""
    if not isinstance(source, str | os.PathLike):
        yield _Sequence("sequence", source)
        return
    path = os.path.abspath(source)
    if not os.path.isdir(path):
        name, folder = os.path.basename(path), os.path.dirname(path)
        inside = os.path.basename(folder) == side and name == f"{side}.txt"
        yield _described(os.path.dirname(folder), path) if inside else _Sequence(name.partition(".")[0], source)
        return
    if os.path.basename(path) == side and os.path.isfile(os.path.join(path, f"{side}.txt")):
        path = os.path.dirname(path)
    own = os.path.join(path, side, f"{side}.txt")
    if os.path.isfile(own):
        yield _described(path, own)
        return
    count = 0
    for name in sorted(os.listdir(path)):
        inner = os.path.join(path, name, side, f"{side}.txt")
        if os.path.isfile(inner):
            count += 1
            yield _described(os.path.join(path, name), inner)
    if not count:
        raise InputError(f"holds no sequence with {side}/{side}.txt", source=os.fspath(source))


def _described(folder: str, path: str) -> _Sequence:
    """Return a sequence with the facts of its seqinfo.ini; raise `InputError` if that file is damaged."""
    found = _Sequence(os.path.basename(folder), path)
    place = os.path.join(folder, "seqinfo.ini")
    if not os.path.isfile(place):
        return found
    data, name = read_bytes(place, "seqinfo.ini")
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(bytes(data).decode("utf-8-sig"))
        told = [parser.get("Sequence", key, fallback="0") for key in ("seqLength", "imHeight", "imWidth")]
        frames, height, width = (int(one) for one in told)
    except (configparser.Error, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"is not a description of a sequence: {first}", source=name) from None
    if not 0 <= frames <= _FRAMES:
        raise InputError("is no number of frames", source=name, field="seqLength", value=frames)
    return found._replace(frames=frames, height=height, width=width)
