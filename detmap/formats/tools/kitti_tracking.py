"""KITTI's labels and results of tracking: a file per sequence, with a line per object and frame.

A line is ``frame track type truncated occluded alpha x1 y1 x2 y2 h w l x y z rotation_y``, in results followed by a
score. Only the 2D boxes are read. Types are case-insensitive. Regions ``DontCare`` become crowds of every class. The
images of a sequence are the frames from 0 to the last frame with a line.
"""

from __future__ import annotations

import os
import re
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Strings
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.file_names import over_classes, renamed
from detmap.formats.tools.collected import Collected
from detmap.reading.lines import Lines, read_lines
from detmap.reading.options import Reading
from detmap.reading.sources import members, name_of, read_bytes

_EVERYWHERE = "dontcare"

#: Maximum number of frames of a sequence.
_FRAMES = 10_000_000

_LINE = "a line is: frame track type truncated occluded alpha x1 y1 x2 y2 h w l x y z rotation_y (and a score)"


class _Parsed(NamedTuple):
    """The lines of files, with the image, the type and the numbers of each line. The numbers are frame, track, and all
    numbers after the type.
    """

    lines: Lines
    images: list[str]
    labels: Strings
    numbers: NDArray[np.float64]

    def place(self, rows: NDArray[np.int64], at: int) -> str:
        """Return the name of a record's line for messages."""
        row = int(rows[at])
        return f"{self.lines.names[self.lines.files[row]]} line {self.lines.numbers[row]}"


def read_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read the objects of all sequences, with their truncation and occlusion."""
    found = Collected(name_of(source, "ground truth"), "xyxy")
    parsed = _parsed(source, "ground truth", 17, found)
    rows, labels, crowd = over_classes(parsed.labels, [_EVERYWHERE])
    images = [parsed.images[row] for row in rows.tolist()]
    classes = labels.ids.tolist()
    called = [classes[code] for code in labels.codes.tolist()]
    found.extend(partial(parsed.place, rows), images, called, parsed.numbers[rows, 5:9], crowd=crowd)
    fields = {"truncation": parsed.numbers[rows, 2], "occlusion": parsed.numbers[rows, 3]}
    return found.ground_truth(reading, fields)


def read_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read the results of all sequences."""
    found = Collected(name_of(source, "detections"), "xyxy")
    parsed = _parsed(source, "detections", 18, found)
    place = partial(parsed.place, np.arange(len(parsed.lines)))
    called = [parsed.labels.values[code] for code in parsed.labels.codes.tolist()]
    found.extend(place, parsed.images, called, parsed.numbers[:, 5:9], scores=parsed.numbers[:, 16])
    return found.detections(ground_truth, reading)


def _parsed(source: Any, what: str, width: int, found: Collected) -> _Parsed:
    """Parse the lines of a folder, archive or file; raise `InputError` for an invalid line."""
    if isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith(".txt") and os.path.isfile(source):
        data, name = read_bytes(source, what)
        held = [(os.path.basename(os.fspath(source)), bytes(data), name)]
    else:
        held = list(members(source, ".txt", what))
    lines = read_lines((data, place) for _, data, place in held)
    lines.check_counts(width, f"where {width} are expected", _LINE)
    numbers = lines.table([0, 1, *range(3, width)])
    frames = numbers[:, 0]
    wrong = (frames != np.floor(frames)) | (frames < 0) | (frames > _FRAMES)
    lines.refuse(wrong, "the frame must be a whole number of 0 or more", 0)
    labels = renamed(lines.strings(2, "replace"), str.lower)
    stems = [re.sub(r"(?i)\.txt$", "", name.rpartition("/")[2]) for name, _, _ in held]
    for file, sequence in enumerate(stems):
        own = frames[lines.files == file]
        if own.size > 0 and own.max() >= 100 * own.size + 10_000:
            raise InputError("is beyond any number of frames", source=lines.names[file], value=int(own.max()))
        for frame in range(int(own.max(initial=-1)) + 1):
            found.image(f"{sequence}/{frame:06d}", lines.names[file])
    images = [
        f"{stems[file]}/{int(frame):06d}" for file, frame in zip(lines.files.tolist(), frames.tolist(), strict=True)
    ]
    return _Parsed(lines, images, labels, numbers)
