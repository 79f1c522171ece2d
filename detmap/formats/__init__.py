"""Files of ground truth, detections and rankings: a module or package per format, and the registry of detection
formats."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from detmap.formats.registry import FORMATS, LOST, Format, Given, Writing
from detmap.reading.options import Reading
from detmap.reading.sources import read_bytes

if TYPE_CHECKING:
    from detmap.formats.line_files import line_format as line_format

__all__ = ["FORMATS", "LOST", "Format", "Given", "Reading", "Writing", "line_format", "read_bytes"]


def __getattr__(name: str) -> Any:
    if name == "interop":  # loaded as a submodule
        return import_module("detmap.formats.interop")
    if name == "line_format":
        import_module("detmap.formats.files")  # built-in formats come first
        return import_module("detmap.formats.line_files").line_format
    raise AttributeError(f"module 'detmap.formats' has no attribute {name!r}")
