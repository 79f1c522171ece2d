"""Files and folders of ground truth, detections and rankings: one file per format, and a registry of those of detections."""

from __future__ import annotations

from detmap.formats._source import read_bytes
from detmap.formats.registry import FORMATS, Format, Given, Reading

__all__ = ["FORMATS", "Format", "Given", "Reading", "read_bytes"]
