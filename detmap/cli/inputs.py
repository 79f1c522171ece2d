"""Checks of the files that a command's options name. A stream may be given only once, and no output may overwrite an
input.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from detmap.errors import OptionError, shorten

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol
    from detmap.formats.inputs import Input
    from detmap.reading.options import Reading, Role

#: Arguments and options that name input files. Reading options, which may name files too, are added by `read_by`.
_READ = (
    *("ground_truth", "detections", "predictions", "paths", "train", "schema", "qrels", "runs", "file", "gallery"),
    *("attributes", "splits", "decision_sigmas", "verified", "against", "inputs"),
)

#: Options that name output files.
_WRITTEN = ("out", "card", "plot", "arrays", "junit", "gate_summary")


def read_by(options: argparse.Namespace, *, apart: str = "") -> list[str]:
    """Return the input paths that the options name, except the paths of the option `apart`."""
    from detmap.reading.options import flags

    found: list[str] = []
    for name in (*_READ, *(dest for dest, one in flags().items() if one.option.is_path)):
        given = None if name == apart else getattr(options, name, None)
        found += [given] if isinstance(given, str) else list(given or ())
    return found


def check_files(options: argparse.Namespace) -> None:
    """Refuse, before scoring, streams given twice, and outputs that overwrite inputs or cannot be written."""
    _check_written(options)
    read = read_by(options)
    if not read:
        return
    from detmap.formats.files import check_outputs, once

    once(read)
    given = [getattr(options, name, None) for name in _WRITTEN]
    written = [path for path in given if isinstance(path, str) and not os.path.isdir(path)]
    if written:
        check_outputs(written, read)


def _check_written(options: argparse.Namespace) -> None:
    """Refuse output files in missing folders, and plots that cannot be drawn."""
    for name in _WRITTEN:
        path = getattr(options, name, None)
        folder = os.path.dirname(path) if isinstance(path, str) else ""
        if folder and not os.path.isdir(folder) and not hasattr(options, "resume"):  # batch creates its folder
            raise OptionError(f"cannot write {shorten(path, 300)}: there is no folder {shorten(folder, 300)}")
    if getattr(options, "plot", None) and isinstance(options.plot, str):
        from detmap.plots import check_drawable

        check_drawable(options.plot)


def reading_of(options: argparse.Namespace, role: Role, iou_type: str) -> Reading:
    """Return how to read ground truth or detections, depending on `role`."""
    from detmap.reading.options import of_role

    return of_role(vars(options), role, iou_type=iou_type)


def truth_of(options: argparse.Namespace, iou_type: str, found: Iterable[Input], *protocols: Protocol) -> Input:
    """Return the input of ground truth that the options name, set to read all fields that the protocols need. Raise an
    error for reading options that apply to no input.
    """
    from dataclasses import replace

    from detmap.detection.ranges import needs
    from detmap.formats.inputs import Input, check_taken

    reading = reading_of(options, "ground_truth", iou_type)
    for protocol in protocols:
        more = needs(protocol)
        reading = replace(reading, **{**more, "fields": (*reading.fields, *more.get("fields", ()))})
    made = Input(options.ground_truth, "ground_truth", reading)
    check_taken([made, *found])
    return made


def found_of(options: argparse.Namespace, iou_type: str) -> Input:
    """Return the single input of detections that the options name."""
    from detmap.formats.inputs import Input

    return Input(options.detections, "detections", reading_of(options, "detections", iou_type))
