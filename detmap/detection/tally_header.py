"""The header of a saved tally, whose types msgspec checks."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """The header of a saved tally, before its columns. `rows` holds the numbers of images, of detections, and of pairs
    of image and category with objects.
    """

    protocol: dict[str, Any]
    categories: list[tuple[int | str | None, str]]
    image_ids: list[str] | None
    rows: tuple[int, int, int]
    notices: dict[str, int]
    clusters: list[int | str] | None = None
    frequencies: list[Literal["r", "c", "f", ""]] | None = None
    crowd_index: list[float | None] | None = None
