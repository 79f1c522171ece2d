"""Ground truth and detections from a path, whichever of the detection formats it holds."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import Literal

from detmap.errors import InputError, OptionError
from detmap.formats import _source, coco, registry, voc  # noqa: F401 - coco and voc register themselves
from detmap.formats._open import STANDARD_INPUT, Held, changed
from detmap.formats.registry import Path, Reading
from detmap.shapes.boxes import InvalidBoxes
from detmap.tables import Detections, GroundTruth, MissingClasses

#: What `held` returns: a path, or the bytes of what can be read only once.
Source = Path | Held


def words(role: registry.Role) -> str:
    """Return what help calls the files and folders of a role."""
    return ", or ".join(one.words[role == "detections"] or one.name for one in registry.able(role))


def is_one_of_detections(path: Path) -> bool:
    """Return whether a file or folder is, as a whole, the detections of one model.

    Of a file the name says so, of a folder what is in it.
    """
    if os.path.isdir(path):
        return registry.recognise(path, "detections") is not None
    return os.fspath(path).endswith(registry.suffixes())


def held(path: Path) -> Path | Held:
    """Return a path, or what it holds where it can be read only once: a pipe, a device, standard input (``-``).

    Raises
    ------
    InputError
        Where a stream cannot be read.
    """
    return _source.held(path)


def once(paths: Iterable[Path | None]) -> None:
    """Make sure that what can be read only once is given once.

    Raises
    ------
    OptionError
        Where standard input, or one pipe, is given twice.
    """
    seen: set[object] = set()
    for path in paths:
        key = None if path is None else _stream(path)
        if key in seen:
            what = "standard input (-)" if path == STANDARD_INPUT else os.fspath(str(path))
            raise OptionError(f"{what} is given twice, and can be read only once: write it to a file")
        if key is not None:
            seen.add(key)


def readable_again(path: Path) -> bool:
    """Return whether a path can be read more than once: a stream cannot."""
    return _stream(path) is None


def _stream(path: Path) -> object:
    """Return what tells a stream (a pipe, a device, standard input) from others; None of files and folders."""
    if path == STANDARD_INPUT:
        return STANDARD_INPUT
    try:
        state = os.stat(path)
    except (OSError, ValueError):  # whoever reads it will say so
        return None
    return None if stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode) else (state.st_dev, state.st_ino)


def fingerprint(source: Path | Held) -> str:
    """Return the hash of a file, or of the names and contents of the files of detections in a folder.

    Raises
    ------
    InputError
        Where there is no such file, or it cannot be read.
    """
    return _source.fingerprint(source, _members(source))


def _members(source: Path | Held) -> str:
    """Return how the names of the files in a folder of detections end."""
    folder = not isinstance(source, Held) and os.path.isdir(source)
    return registry.find(source, "detections").members if folder else ""


class Unchanged:
    """A context in which a file, or a folder's result files, must not change: they are read more than once in it."""

    def __init__(self, source: Path | Held) -> None:
        self._source = source
        self._before = self._stamp()

    def _stamp(self) -> object:
        return None if isinstance(self._source, Held) else _source.stamp(self._source, _members(self._source))

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if (kind is None or issubclass(kind, InputError)) and self._stamp() != self._before:
            raise changed(str(self._source)) from None


def read_ground_truth(
    path: Path, image_set: Path | None = None, *, invalid_boxes: InvalidBoxes = "error", iou_type: str = "bbox"
) -> GroundTruth:
    """Read ground truth of any format; `image_set` is a file that lists the images, where the format takes one.

    Raises
    ------
    InputError
        As the reader of the format does, and where the format has no field for the kind of shape.
    OptionError
        For an image set that the format does not take.
    """
    source = held(path)
    found = registry.find(source, "ground_truth")
    registry.check_kind(found, iou_type, _source.name_of(source, "ground truth"))
    assert found.read_ground_truth is not None
    return found.read_ground_truth(source, Reading(image_set=image_set, invalid_boxes=invalid_boxes, iou_type=iou_type))


def read_detections(
    path: Path | Held,
    ground_truth: GroundTruth,
    unknown_images: Literal["error", "ignore"] = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
    iou_type: str = "bbox",
) -> Detections:
    """Read detections of any format.

    `missing_classes` concerns formats with a file per class; others do not say which classes they are about.

    Raises
    ------
    InputError
        As the reader of the format does, and where the format has no field for the kind of shape.
    """
    source = path if isinstance(path, Held) else held(path)
    found = registry.find(source, "detections")
    registry.check_kind(found, iou_type, _source.name_of(source, "detections"))
    assert found.read_detections is not None
    reading = Reading(
        unknown_images=unknown_images,
        invalid_boxes=invalid_boxes,
        missing_classes=missing_classes,
        iou_type=iou_type,
    )
    return found.read_detections(source, ground_truth, reading)


def read_small(path: Path) -> bytes:
    """Return the bytes of a file of settings.

    Raises
    ------
    InputError
        Where it cannot be read, or is no such file for its size.
    """
    with _source.Opened(path, os.fspath(path)) as opened:
        if len(opened) > 1 << 20:
            raise InputError("is larger than 1 MiB, which no such file is", source=opened.name)
        return bytes(opened.whole())
