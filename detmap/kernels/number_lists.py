"""Lists of numbers, as COCO's records have keypoints, as JSON -> columns.

The bytes are valid JSON, for the scanner of records has passed over them, but for what stands between brackets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.numbers import _plain_numbers
from detmap.kernels.segmentations import DOUBTS, POINTS, ROW, _after_number, _coordinate
from detmap.kernels.words import COMMA, MOST_OF_A_BYTE, _blank, _byte

Array = NDArray[Any]


@kernel
def most_numbers(data: Any, places: Array) -> int:
    """Return how many numbers there can be in lists of numbers, of the places of `read_numbers`: one more than commas."""
    count = 0
    for row in range(len(places)):
        begin, end = places[row, 0], places[row, 1]
        if begin < 0 or data[begin] != 91:
            continue
        count += 1
        for start in range(begin, end, MOST_OF_A_BYTE):
            commas = np.uint8(0)
            for k in range(min(end - start, MOST_OF_A_BYTE)):
                commas = np.uint8(commas + (data[np.uint64(start + k)] == COMMA))
            count += np.int64(commas)
    return count


@kernel
def read_numbers(
    data: Any, places: Array, powers: Any, doubts: Array, state: Array, starts: Array, stops: Array, values: Array
) -> None:
    """Read lists of numbers of records from ``state[ROW]`` on, until the list of doubts is full.

    Parameters are those of `detmap.kernels.segmentations.read_segmentations`, but for ``starts`` and ``stops`` (n,) int64:
    where in `values` (uint64, the bits of doubles) each record's begin and end; and ``state[POINTS]``, where the next values
    go. A record without a list has none; one whose list holds anything else than numbers stops at -1.
    """
    while state[ROW] < len(places):
        row, at, kept = state[ROW], state[POINTS], state[DOUBTS]
        starts[row] = at
        i = places[row, 0]
        wrong = False
        if i >= 0 and _byte(data, i) != 110:
            wrong = _byte(data, i) != 91
            i = _blank(data, i + 1, False)
            more = _byte(data, i) != 93
            while not wrong and more:
                i, at = _plain_numbers(data, i, powers, values, at)
                bits, end, certain = _coordinate(data, i, powers)
                if end < 0:
                    wrong = True
                    break
                if not certain:
                    if state[DOUBTS] == len(doubts):
                        state[DOUBTS] = kept
                        if kept:
                            return
                        wrong = True
                        break
                    doubts[state[DOUBTS], 0] = at
                    doubts[state[DOUBTS], 1] = i
                    doubts[state[DOUBTS], 2] = end
                    state[DOUBTS] += 1
                values[at] = bits
                at += 1
                i, more = _after_number(data, end)
                wrong = i < 0
        stops[row] = -1 if wrong else at
        if not wrong:
            state[POINTS] = at
        state[ROW] = row + 1
