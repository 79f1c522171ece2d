"""What kernels are given in tests: boxes, cells of them, and rows of bits."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from detmap.kernels import overlap, readonly


def boxes_of(table, sizes, pixel):
    table = np.asarray(table, float).reshape(-1, 4)
    return overlap.Boxes(readonly(table, np.float64), readonly(np.arange(len(table)), np.int32), sizes, pixel)


def cells_of(detections, ground_truth):
    """Cells of so many detections and objects each."""
    bounds = [np.cumsum([0, *counts]) for counts in (detections, ground_truth)]
    columns = (bounds[0][:-1], bounds[0][1:], bounds[1][:-1], bounds[1][1:])
    return overlap.Cells(*(readonly(column, np.int64) for column in columns))


coordinate = st.integers(-2, 12) | st.floats(-2, 12, width=32)
size = st.integers(0, 6) | st.floats(0, 6, width=32)
xywh = st.tuples(coordinate, coordinate, size, size)


def words(bits):
    """Bits (n, b) packed into rows of 64-bit words."""
    out = np.zeros((len(bits), -(-bits.shape[1] // 64)), np.uint64)
    for (row, bit), value in np.ndenumerate(bits):
        out[row, bit // 64] |= np.uint64(int(value) << (bit % 64))
    return out
