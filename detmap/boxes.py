"""Alias of `detmap.shapes.boxes`, where boxes live, for modules that import it from here."""

from __future__ import annotations

from detmap.shapes.boxes import INVALID_BOXES, BoxFormat, InvalidBoxes, areas, check_option, inverted, negative

__all__ = ["INVALID_BOXES", "BoxFormat", "InvalidBoxes", "areas", "check_option", "inverted", "negative"]
