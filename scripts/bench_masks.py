#!/usr/bin/env python
"""The drop-in's mask functions and pycocotools' C on the same masks of 480 x 640, by turns, in processor time.

Each function gets a batch of 100 masks and one mask alone: outlines as those of `bench_shapes.py`, and these with one pixel
in a hundred turned over. `merge` of one mask copies it; `iou` of one compares it with itself. The last rows are
`Evaluator.update` with 100 bitmaps (n, height, width) as predictions, against pycocotools' encoding of the same bitmaps
once they are in its order, and with the turning that this takes; wall time, as detmap has threads.

    scripts/bench_masks.py               medians of 21 turns
    scripts/bench_masks.py --turns 5     fewer
    scripts/bench_masks.py area merge    some functions; "update" are the last rows
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [os.environ.get("DETMAP_TREE", str(ROOT)), str(ROOT / "scripts")]

HEIGHT, WIDTH, COUNT = 480, 640, 100
NAMES = ("encode", "decode", "area", "toBbox", "iou", "merge", "frPyObjects")


def calls(
    module: Any, polygons: list[Any], bitmaps: np.ndarray
) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """What is measured of a module: by function, the call with a batch and the one with a single mask."""
    rles = module.encode(bitmaps)
    one, alone, first = rles[0], np.asfortranarray(bitmaps[:, :, 0]), polygons[:1]
    return {
        "encode": (lambda: module.encode(bitmaps), lambda: module.encode(alone)),
        "decode": (lambda: module.decode(rles), lambda: module.decode(one)),
        "area": (lambda: module.area(rles), lambda: module.area(one)),
        "toBbox": (lambda: module.toBbox(rles), lambda: module.toBbox(one)),
        "iou": (lambda: module.iou(rles, rles, [0] * len(rles)), lambda: module.iou([one], [one], [0])),
        "merge": (lambda: module.merge(rles), lambda: module.merge([one])),
        "frPyObjects": (
            lambda: module.frPyObjects(polygons, HEIGHT, WIDTH),
            lambda: module.frPyObjects(first, HEIGHT, WIDTH),
        ),
    }


def updates(theirs: Any, bitmaps: np.ndarray) -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """An evaluator's update, and pycocotools' encoding of bitmaps in its order, and with the turning."""
    import detmap

    given = np.ascontiguousarray(np.moveaxis(bitmaps, -1, 0)).astype(bool)
    truth = {"masks": given[:1], "labels": [1]}
    found = {"masks": given, "scores": np.ones(COUNT), "labels": np.ones(COUNT, int)}

    def update() -> None:
        detmap.Evaluator(iou_type="segm").update(found, truth)

    return [
        ("in order", update, lambda: theirs.encode(bitmaps)),
        ("turned", update, lambda: theirs.encode(np.asfortranarray(given.transpose(1, 2, 0)))),
    ]


def compared(ours: Callable[[], Any], theirs: Callable[[], Any], turns: int, clock: Callable[[], float]) -> list[float]:
    """Median seconds of both, measured by turns, each turn long enough for the clock."""
    times: list[list[float]] = [[], []]
    repeats = []
    for call in (ours, theirs):
        call()
        start = clock()
        call()
        repeats.append(max(1, int(0.005 / max(clock() - start, 1e-7))))
    for _ in range(turns):
        for call, repeat, found in zip((ours, theirs), repeats, times, strict=True):
            start = clock()
            for _ in range(repeat):
                call()
            found.append((clock() - start) / repeat)
    return [statistics.median(found) for found in times]


def show(name: str, what: str, seconds: list[float]) -> None:
    ours, theirs = seconds
    print(f"{name:12} {what:22} {theirs * 1e6:10.1f} us {ours * 1e6:10.1f} us {theirs / ours:7.2f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}, update; default: all")
    parser.add_argument("--turns", type=int, default=21)
    options = parser.parse_args()
    import pycocotools.mask as theirs
    from bench_shapes import outlines

    import detmap.pycocotools.mask as ours

    rng = np.random.default_rng(1)
    sides = rng.uniform(20, [300, 300], (COUNT, 2))
    polygons = outlines(np.concatenate([rng.uniform(0, [WIDTH, HEIGHT] - sides), sides], axis=1), 2)
    plain = theirs.decode(theirs.frPyObjects(polygons, HEIGHT, WIDTH))
    noisy = np.asfortranarray(plain ^ (rng.random(plain.shape) < 0.01).astype(np.uint8))
    print(f"{'':12} {'':22} {'pycocotools':>13} {'detmap':>13}   ratio")
    for kind, bitmaps in (("outlines", plain), ("noisy", noisy)):
        both = [calls(module, polygons, bitmaps) for module in (ours, theirs)]
        for name in options.names or NAMES:
            if name in NAMES and not (name == "frPyObjects" and kind == "noisy"):
                for k, what in enumerate(("100", "one")):
                    show(
                        name,
                        f"{kind}, {what}",
                        compared(both[0][name][k], both[1][name][k], options.turns, time.process_time),
                    )
        if not options.names or "update" in options.names:
            for what, update, encode in updates(theirs, bitmaps):
                show("update", f"{kind}, {what}", compared(update, encode, options.turns, time.perf_counter))


if __name__ == "__main__":
    main()
