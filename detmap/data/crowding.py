"""CrowdPose's ``crowdIndex`` of images: the share of the labelled points in a box that belong to other persons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.choices import is_number
from detmap.errors import InputError
from detmap.kernels import readonly


def crowd_index_of(value: Any, source: str, record: str) -> float:
    """Return a crowd index as a number; raise `InputError` for anything but a finite number."""
    number = value.item() if isinstance(value, np.generic) else value
    if not is_number(number) or not abs(number) <= 1e300:
        raise InputError("must be a finite number", source=source, record=record, field="crowdIndex", value=value)
    return float(number)


def crowd_index_column(
    given: Mapping[Any, float] | None, images: NDArray[Any], source: str
) -> NDArray[np.float64] | None:
    """Return the crowd index of each image, shape (i,), NaN if unknown; None if all are unknown."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        problem = f"must be a mapping of image id to number, not {type(given).__name__}"
        raise InputError(problem, source=source, field="crowdIndex")
    known = {image: row for row, image in enumerate(images.tolist())}
    column = np.full(images.size, math.nan)
    for image, value in given.items():
        if image not in known:
            problem = "the image is not among the images"
            raise InputError(problem, source=source, record=f"image {image!r}", field="crowdIndex")
        column[known[image]] = crowd_index_of(value, source, f"image {image!r}")
    return readonly(column, np.float64) if given else None
