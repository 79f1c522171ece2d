"""What readers of shapes share: powers of ten, and numbers that only ``float()`` decides."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import readonly, scanning
from detmap.kernels import segmentations as kernels

#: So many doubtful numbers are handed to float() at a time.
_DOUBTS = 1 << 10

# What float() reads beyond decimal numbers (inf, nan, 1_000) is not plain.
_DECIMAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@functools.cache
def powers() -> NDArray[np.uint64]:
    """The powers that the kernels look up: 10**0 ... 10**19, then the leading 128 bits of every 5**q as two words."""
    words = [10**n for n in range(scanning.POWERS_OF_FIVE)]
    for q in range(scanning.LOWEST_POWER, scanning.HIGHEST_POWER + 1):
        power = 5 ** abs(q)
        if q < 0:  # the reciprocal; rounded up as long as the power itself has fewer than 64 bits
            power = (1 << (127 + power.bit_length())) // power + (q >= -27)
        power = power << 128 >> power.bit_length()
        words += [power >> 64, power & (1 << 64) - 1]
    return readonly(words, np.uint64)


def decimal(text: bytes) -> float:
    """Return the number that a text spells; infinity where it is not a number."""
    return float(text) if _DECIMAL.fullmatch(text) else math.inf


def resolved(
    kernel: Callable[..., None],
    data: NDArray[np.uint8],
    spans: NDArray[np.int64],
    state: NDArray[np.int64],
    out: tuple[Any, ...],
    numbers: NDArray[np.uint64],
) -> None:
    """Call a kernel that reads records until it has read all, and let ``float()`` read the `numbers` that it left."""
    doubts = np.empty((_DOUBTS, 3), np.int64)
    floats = numbers.view(np.float64)
    data, spans = readonly(data, np.uint8), readonly(spans, np.int64)
    with np.errstate(over="ignore"):  # uncompiled, words that wrap around warn
        while True:
            state[kernels.DOUBTS] = 0
            kernel(data, spans, powers(), doubts, state, *out)
            for at, begin, end in doubts[: state[kernels.DOUBTS]].tolist():
                floats[at] = decimal(data[begin:end].tobytes())
            if state[kernels.ROW] == len(spans):
                return
