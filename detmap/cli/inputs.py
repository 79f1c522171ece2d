"""The files that the options of a command name: what is read once is given once, and what is read is not written over."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import Any

#: Options that name files to read, one or several.
_READ = (
    "ground_truth",
    "detections",
    "predictions",
    "paths",
    "train",
    "schema",
    "image_set",
    "classes",
    "class_map",
    "image_sizes",
    "attributes",
    "splits",
    "clusters",
    "decision_sigmas",
    "qrels",
    "runs",
    "file",
    "gallery",
    "verified",
    "inputs",
)

#: Options that name files to write.
_WRITTEN = ("out", "card", "plot", "arrays")


def read_by(options: argparse.Namespace, *, apart: str = "") -> list[str]:
    """Return the paths that the options name and that are read, but for those of the option `apart`."""
    found: list[str] = []
    for name in _READ:
        given = None if name == apart else getattr(options, name, None)
        found += [given] if isinstance(given, str) else list(given or ())
    return found


def check_files(options: argparse.Namespace) -> None:
    """Refuse what cannot be read as often as it is given, and to write over what is read.

    A folder to write into is left to the command, which knows what it writes there.

    Raises
    ------
    OptionError
        Names the first such file.
    """
    read = read_by(options)
    if not read:
        return
    from detmap.formats.files import check_outputs, once

    once(read)
    given = [getattr(options, name, None) for name in _WRITTEN]
    written = [path for path in given if isinstance(path, str) and not os.path.isdir(path)]
    if written:
        check_outputs(written, read)


def check_options(options: argparse.Namespace, ground_truth: Iterable[str], detections: Iterable[str]) -> None:
    """Refuse an option of reading that concerns none of the files: it would be ignored.

    Raises
    ------
    OptionError
        Names the option.
    """
    from detmap.formats.files import check_concerning

    truths: list[Any] = [(path, "ground_truth", options.gt_format) for path in ground_truth]
    found: list[Any] = [(path, "detections", options.dt_format) for path in detections]
    both = {"classes": options.classes}
    check_concerning([*truths, *found], both, {"classes": "--classes"})
    of_truth = {"image_set": options.image_set, "columns": options.gt_columns, "box_format": options.gt_box_format}
    flags = {"image_set": "--image-set", "columns": "--gt-columns", "box_format": "--gt-box-format"}
    check_concerning(truths, of_truth, flags)
    of_found = {"columns": options.columns, "box_format": options.box_format}
    check_concerning(found, of_found, {"columns": "--columns", "box_format": "--box-format"})
