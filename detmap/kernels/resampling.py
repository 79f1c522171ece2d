"""Tallies reweighted: the hits of a data set in which every image occurs as often as it was drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

Array = NDArray[Any]


class Events(NamedTuple):
    """The detections that count, in ranking order.

    Those of class *c* are ``images[class_starts[c]:class_starts[c + 1]]``. An element of 0 or more is the image of a
    detection that is a miss at every threshold. A negative one is ``~j`` for run *j*: the detections of one score on image
    ``run_images[j]``, whose bits are the rows ``run_starts[j]:run_starts[j + 1]`` of `hit` and `ignored`.
    """

    class_starts: Array
    images: Array
    run_images: Array
    run_starts: Array
    hit: Array
    ignored: Array


@kernel
def collect_hits(
    events: Events,
    weights: Array,
    thresholds: int,
    out_starts: Array,
    out_ranks: Array,
    out_items: Array,
) -> None:
    """Write the hits of ranking ``class * T + threshold``, where image *i* occurs ``weights[i]`` times.

    Copies of a miss are only counted; those of a run follow each other whole, as those of an image would. `out_starts` comes
    with room for as many hits as each ranking can have and leaves with where they are.
    """
    found, skipped = np.empty(thresholds, np.int64), np.empty(thresholds, np.int64)
    written = 0
    for c in range(events.class_starts.shape[0] - 1):
        counted = 0
        found[:] = 0
        skipped[:] = 0
        first = c * thresholds
        for e in range(events.class_starts[c], events.class_starts[c + 1]):
            image = events.images[e]
            if image >= 0:
                counted += weights[image]
                continue
            run = ~image
            for _ in range(weights[events.run_images[run]]):
                for d in range(events.run_starts[run], events.run_starts[run + 1]):
                    counted += 1
                    for t in range(thresholds):
                        word, bit = t >> 6, np.uint64(t & 63)
                        if (events.ignored[d, word] >> bit) & np.uint64(1):
                            skipped[t] += 1
                        elif (events.hit[d, word] >> bit) & np.uint64(1):
                            out_ranks[out_starts[first + t] + found[t]] = counted - skipped[t]
                            found[t] += 1
        for t in range(thresholds):  # close the gaps: what is written never overtakes what is read
            start = out_starts[first + t]
            out_starts[first + t] = written
            for j in range(found[t]):
                out_ranks[written] = out_ranks[start + j]
                written += 1
            out_items[first + t] = counted - skipped[t]
    out_starts[out_starts.shape[0] - 1] = written
