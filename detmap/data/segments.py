"""Panoptic files: the segments of every image, and a label map that assigns pixels to segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError, shorten
from detmap.kernels import png, readonly

#: Largest id of a segment in an array; a PNG file holds ids below 2 ** 24.
LARGEST = 2**32 - 1


class LabelMap(NamedTuple):
    """A label map of `shape` (H, W), run-length encoded row by row. All pixels of run *i* have the id ``ids[i]``; the
    run ends before pixel ``ends[i]``.

    The id 0 is VOID. Both arrays are uint32.
    """

    ends: NDArray[np.uint32]
    ids: NDArray[np.uint32]
    shape: tuple[int, int]

    @classmethod
    def of(cls, given: Any, name: str) -> LabelMap:
        """Return the label map of an array. Errors refer to the array as `name`. The array has integer ids, shape (H,
        W), or uint8 colours, shape (H, W, 3) or (H, W, 4), which stand for the ids R + 256 G + 65536 B.
        """
        try:
            array = np.asarray(given)
        except ValueError:
            raise InputError("is no label map: its rows differ in length", source=name) from None
        if array.ndim == 3 and array.shape[2] in (3, 4) and array.dtype == np.uint8:
            colour = array.astype(np.uint32)
            array = colour[..., 0] | (colour[..., 1] << 8) | (colour[..., 2] << 16)
        elif array.ndim != 2 or array.dtype.kind not in "iu":
            raise InputError(
                "is no label map",
                source=name,
                value=f"{array.ndim}-d {array.dtype}",
                remedy="give integers of shape (H, W), or colours of type uint8 and shape (H, W, 3)",
            )
        elif array.dtype != np.uint32 and array.size and (int(array.min()) < 0 or int(array.max()) > LARGEST):
            worst = int(array.min()) if array.min() < 0 else int(array.max())
            raise InputError(f"ids of segments lie from 0 to {LARGEST}", source=name, value=worst)
        if not 0 < array.size < 2**31:
            raise InputError("has a size that cannot be", source=name, value=" x ".join(map(str, array.shape[::-1])))
        out = png.Runs(np.empty(array.size, np.uint32), np.empty(array.size, np.uint32))
        number = png.runs(readonly(np.ascontiguousarray(array).reshape(-1), np.uint32), out)
        return cls(out.ends[:number].copy(), out.values[:number].copy(), (int(array.shape[0]), int(array.shape[1])))

    def pixels(self) -> NDArray[np.uint32]:
        """Return the ids of all pixels, shape (H, W)."""
        sizes = np.diff(self.ends.astype(np.int64), prepend=np.int64(0)).astype(np.int64)
        return np.repeat(self.ids, sizes).reshape(self.shape)


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
    label_maps : callable
        ``label_maps(images)`` reads the files of some images. It returns a function without parameters that decodes the
        files, mostly without the GIL. This function returns each image's `LabelMap` and its name for messages.
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
    label_maps: Callable[[Sequence[int]], Callable[[], list[tuple[LabelMap, str]]]]
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
