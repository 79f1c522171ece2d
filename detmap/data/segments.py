"""Panoptic files: the segments of every image, and a label map that assigns pixels to segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.label_maps import LARGEST, LabelMap
from detmap.errors import InputError, shorten


class Classes(NamedTuple):
    """The K categories in the order of the file: ``ids``, ``names``, and whether each is a thing (``things``) or stuff."""

    ids: tuple[Any, ...]
    names: tuple[str, ...]
    things: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SegmentedImages:
    """The segments of some images. Image *i* has the rows ``starts[i]:starts[i + 1]`` of the columns, in file order.

    Attributes
    ----------
    source : str
        Name for messages.
    image_ids : tuple of int or str
        The images, in the order of the file.
    starts : ndarray of int64, shape (i + 1,)
        The first row of each image.
    ids : ndarray of int64, shape (s,)
        The ids of the segments, distinct within an image.
    category_ids : tuple
        The category id of each segment.
    areas : ndarray of float64, shape (s,)
        Areas in pixels as given in the file; NaN if not given.
    crowd : ndarray of bool, shape (s,)
        Whether each segment is a crowd region.
    label_map : callable
        ``label_map(i)`` returns the `LabelMap` of image *i*, and its name for messages.
    classes : Classes or None
        The categories; None if the file lists none, as for predictions.
    notices : dict of str to int
        The number of occurrences of each kind of unusual input, by code.
    clusters : ndarray of int64 or str, shape (i,), or None
        The cluster of each image; None if images are independent.
    """

    source: str
    image_ids: tuple[Any, ...]
    starts: NDArray[np.int64]
    ids: NDArray[np.int64]
    category_ids: tuple[Any, ...]
    areas: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    label_map: Callable[[int], tuple[LabelMap, str]]
    classes: Classes | None = None
    notices: dict[str, int] = field(default_factory=dict)
    clusters: NDArray[Any] | None = None


def check_id(value: int, source: str, image: Any, largest: int = LARGEST) -> None:
    """Refuse an id that no segment can have."""
    if not 0 < value <= largest:
        raise InputError(
            "is no id of a segment",
            source=source,
            record=f"image {shorten(image)}",
            field="id",
            value=value,
            remedy=f"ids lie from 1 to {largest}, and 0 is VOID",
        )
