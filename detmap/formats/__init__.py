"""Files of ground truth, detections and rankings: a file or folder per format, and a registry of those of detections."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from detmap.formats.registry import FORMATS, LOST, Format, Given, Reading, Writing
from detmap.reading.sources import read_bytes

__all__ = ["FORMATS", "LOST", "Format", "Given", "Reading", "Writing", "read_bytes"]


def __getattr__(name: str) -> Any:
    if name == "interop":  # which needs no import of its own
        return import_module("detmap.formats.interop")
    raise AttributeError(f"module 'detmap.formats' has no attribute {name!r}")
