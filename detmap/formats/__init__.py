"""Files and folders of ground truth, detections and rankings: one file per format, and a registry of those of detections."""

from __future__ import annotations

from detmap.formats._source import read_bytes
from detmap.formats.registry import FORMATS, LOST, Format, Given, Reading, Writing

__all__ = ["FORMATS", "LOST", "Format", "Given", "Reading", "Writing", "read_bytes"]
