"""Label maps: which pixels belong to which segment, as runs of equal pixels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError
from detmap.kernels import png, readonly

#: Largest id of a segment in an array; a PNG file holds ids below 2 ** 24.
LARGEST = 2**32 - 1


class LabelMap(NamedTuple):
    """A label map of `shape` (H, W): run *i* of its pixels, row by row, has the id ``ids[i]`` and ends at ``ends[i]``.

    The id 0 is VOID. Both arrays are uint32.
    """

    ends: NDArray[np.uint32]
    ids: NDArray[np.uint32]
    shape: tuple[int, int]

    @classmethod
    def of(cls, given: Any, name: str) -> LabelMap:
        """Return the runs of an array.

        Parameters
        ----------
        given : array_like
            Ids, integers of shape (H, W); or colours, uint8 of shape (H, W, 3) or (H, W, 4), whose ids are R + 256 G +
            65536 B.
        name : str
            Name for messages.

        Raises
        ------
        InputError
            For another array, or an id that no segment can have.
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
