"""The formats of ground truth and detections: one row each, which readers, batch and help ask.

A new format is one file: its readers, and a `Format` that is given to `detmap.register`.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from detmap.errors import InputError
from detmap.formats._open import Held
from detmap.plugins import Registry, load_installed
from detmap.shapes.boxes import InvalidBoxes
from detmap.tables import Detections, GroundTruth, MissingClasses

Path = str | os.PathLike[str]

#: What a file is read for.
Role = Literal["ground_truth", "detections"]

_HEAD = 4096


class Given:
    """What there is to read, as a sniff looks at it.

    Parameters
    ----------
    source : path or Held
        A path, or what a stream held.
    role : {"ground_truth", "detections"}
        What it is to be read for.
    """

    def __init__(self, source: Path | Held, role: Role) -> None:
        self.role = role
        self._source = source

    @cached_property
    def name(self) -> str:
        """The name of the file or folder, without those of the folders around it; of a stream nothing."""
        return "" if isinstance(self._source, Held) else os.path.basename(os.path.abspath(self._source))

    @cached_property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return not isinstance(self._source, Held) and os.path.isdir(self._source)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of what lies directly in a folder, sorted; of anything else none."""
        if not self.is_folder or isinstance(self._source, Held):
            return ()
        with suppress(OSError):  # whoever reads it will say so
            return tuple(sorted(map(os.fsdecode, os.listdir(self._source))))
        return ()

    @cached_property
    def head(self) -> bytes:
        """The first bytes of a file or stream, at most 4096, decompressed where it is gzip; of anything else none."""
        if isinstance(self._source, Held):
            return bytes(self._source[:_HEAD])
        with suppress(OSError, ValueError, zlib.error):
            if stat.S_ISREG(os.stat(self._source).st_mode):
                with open(self._source, "rb") as file:
                    data = file.read(_HEAD)
                return zlib.decompressobj(31).decompress(data, _HEAD) if data[:2] == b"\x1f\x8b" else data
        return b""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What callers decide about reading; a format leaves aside what does not concern it.

    Attributes
    ----------
    image_set : path, or None
        A file that lists the images of the ground truth that count.
    unknown_images : {"error", "ignore"}
        What becomes of detections on images that the ground truth does not have.
    invalid_boxes : {"error", "miss", "drop"}
        What becomes of boxes of negative width or height.
    missing_classes : {"zero", "error", "skip"}
        What becomes of classes without a file of detections, where these come a file per class.
    iou_type : str
        The kind of shape that is scored.
    """

    image_set: Path | None = None
    unknown_images: Literal["error", "ignore"] = "error"
    invalid_boxes: InvalidBoxes = "error"
    missing_classes: MissingClasses = "zero"
    iou_type: str = "bbox"


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of files, or of folders of files.

    Attributes
    ----------
    name : str
        What it is called.
    suffixes : tuple of str
        How the names of its files of detections end: ``detmap batch`` takes these from a folder.
    sniff : callable
        ``sniff(given)`` returns whether what is `Given` is of this format. Plug-ins are asked first, the last of them first.
    read_ground_truth : callable, or None
        ``read_ground_truth(source, reading)`` returns a `GroundTruth`. The source is a path, or the bytes of a stream.
    read_detections : callable, or None
        ``read_detections(source, ground_truth, reading)`` returns `Detections`.
    write_ground_truth, write_detections : callable, or None
        ``write(table, path)`` writes a table.
    holds : tuple of str, or None
        The kinds of shape that it has fields for, by their `iou_type`. None: its readers say what they cannot read.
    words : tuple of str
        What help calls a source of ground truth and one of detections.
    members : str
        How the names of the files in a folder of detections end.
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Callable[[Given], bool]
    read_ground_truth: Callable[[Any, Reading], GroundTruth] | None = None
    read_detections: Callable[[Any, GroundTruth, Reading], Detections] | None = None
    write_ground_truth: Callable[[GroundTruth, Path], None] | None = None
    write_detections: Callable[[Detections, Path], None] | None = None
    holds: tuple[str, ...] | None = ("bbox",)
    words: tuple[str, str] = ("", "")
    members: str = ""


#: Every format by name.
FORMATS = Registry(Format, "format")

#: The formats whose readers say what is wrong with a file, or a folder, that no format recognises.
_OTHERWISE = {False: "coco", True: "voc"}


def able(role: Role) -> list[Format]:
    """Return the formats that can be read for a role: those that detmap brings first, then plug-ins as they came."""
    found = [one for one in FORMATS.values() if getattr(one, f"read_{role}") is not None]
    return sorted(found, key=lambda one: not FORMATS.is_shipped(one.name))


def recognise(source: Path | Held, role: Role) -> Format | None:
    """Return the format of what there is to read; None where no format recognises it."""
    given = Given(source, role)

    def asked(formats: Iterable[Format]) -> Format | None:
        return next((one for one in formats if one.sniff(given)), None)

    found = asked(reversed(able(role)))
    if found is None and load_installed():
        found = asked(reversed(able(role)))
    return found


def find(source: Path | Held, role: Role) -> Format:
    """Return the format of what there is to read, or the one whose reader says best why it cannot be read."""
    found = recognise(source, role)
    return FORMATS[_OTHERWISE[Given(source, role).is_folder]] if found is None else found


def check_kind(found: Format, iou_type: str, source: str) -> None:
    """Refuse a format that has no field for a kind of shape.

    Raises
    ------
    InputError
        Says what it has.
    """
    if found.holds is not None and iou_type not in found.holds:
        raise InputError(
            f"a file of the format {found.name} holds {', '.join(found.holds)}, not {iou_type}",
            source=source,
            remedy="choose another kind of shape (iou_type, --iou-type), or another format",
        )


def suffixes() -> tuple[str, ...]:
    """Return how the names of files of detections end."""
    return tuple(dict.fromkeys(suffix for one in able("detections") for suffix in one.suffixes))
