"""Ground truth and detections from a path, whichever of the detection formats it holds."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from typing import Literal

from detmap.errors import InputError, OptionError
from detmap.formats import _source
from detmap.formats._open import STANDARD_INPUT, Held, changed
from detmap.formats.coco import read_coco, read_coco_results
from detmap.formats.voc import class_of, read_voc, read_voc_results
from detmap.shapes.boxes import InvalidBoxes
from detmap.tables import Detections, GroundTruth, MissingClasses

_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_LISTS = tuple(ending + packed for ending in (".json", ".jsonl", ".ndjson") for packed in ("", ".gz"))

#: How files of predictions end.
SUFFIXES = (*_LISTS, *_ARCHIVES)


Path = str | os.PathLike[str]

#: What `held` returns: a path, or the bytes of what can be read only once.
Source = Path | Held

_VOC_RESULTS = re.compile(r"comp.*_det_.*\.txt", re.IGNORECASE)


def is_voc(source: Path | Held) -> bool:
    """Return whether what there is to read is VOC's: a folder, an archive, or the results of one class."""
    if isinstance(source, Held):
        return source[257:262] == b"ustar"  # a stream's name says nothing
    path = os.fspath(source)
    return os.path.isdir(path) or path.endswith(_ARCHIVES) or class_of(path) is not None


def holds_voc_results(folder: str) -> bool:
    """Return whether a folder holds VOC's detections, a file per class."""
    return any(map(_VOC_RESULTS.fullmatch, os.listdir(folder)))


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
    """Return the hash of a file, or of the names and contents of VOC's result files in a folder.

    Raises
    ------
    InputError
        Where there is no such file, or it cannot be read.
    """
    return _source.fingerprint(source, ".txt")


class Unchanged:
    """A context in which a file, or a folder's result files, must not change: they are read more than once in it."""

    def __init__(self, source: Path | Held) -> None:
        self._source = source
        self._before = self._stamp()

    def _stamp(self) -> object:
        return None if isinstance(self._source, Held) else _source.stamp(self._source, ".txt")

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if (kind is None or issubclass(kind, InputError)) and self._stamp() != self._before:
            raise changed(str(self._source)) from None


def read_ground_truth(
    path: Path, image_set: Path | None = None, *, invalid_boxes: InvalidBoxes = "error", iou_type: str = "bbox"
) -> GroundTruth:
    """Read COCO's JSON, or a folder or archive of VOC's XML with, optionally, a file that lists the images.

    Raises
    ------
    InputError
        As the reader of the format does.
    OptionError
        For an image set with COCO's JSON.
    """
    source = held(path)
    if is_voc(source):
        _only_boxes(source, iou_type)
        return read_voc(source, image_set, invalid_boxes=invalid_boxes)
    if image_set:
        raise OptionError("--image-set goes with VOC's XML")
    return read_coco(source, iou_type=iou_type, invalid_boxes=invalid_boxes)


def _only_boxes(source: Path | Held, iou_type: str) -> None:
    """Refuse to look for other shapes in VOC's files.

    Raises
    ------
    InputError
        Says what they hold.
    """
    if iou_type != "bbox":
        name = _source.name_of(source, "the stream")
        raise InputError(
            f"VOC's files hold boxes, and nothing for iou_type={iou_type!r}", source=name, remedy="give COCO's JSON"
        )


def read_detections(
    path: Path | Held,
    ground_truth: GroundTruth,
    unknown_images: Literal["error", "ignore"] = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
    iou_type: str = "bbox",
) -> Detections:
    """Read COCO's list of results, or a folder or archive of VOC's ``comp4_det_*_{class}.txt``, or one of these.

    `missing_classes` concerns VOC's only: COCO's list does not say which classes it is about.

    Raises
    ------
    InputError
        As the reader of the format does.
    """
    source = path if isinstance(path, Held) else held(path)
    if not is_voc(source):
        return read_coco_results(
            source, ground_truth, iou_type=iou_type, unknown_images=unknown_images, invalid_boxes=invalid_boxes
        )
    _only_boxes(source, iou_type)
    return read_voc_results(
        source,
        ground_truth,
        unknown_images=unknown_images,
        invalid_boxes=invalid_boxes,
        missing_classes=missing_classes,
    )


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
