#!/usr/bin/env python
"""Simulations of the bootstrap: how often its interval holds the true AP, and how often `compare` errs on equal models.

The data come from a population whose AP is known exactly. An image holds a Poisson number of objects; a detector finds each
with a probability that differs from image to image (images are easy or hard for every detector) and has mean ``found``, and
gives it a score whose survival function is u; false detections come at a mean rate per image, with survival u ** gamma. In
the limit recall is ``found * u`` and precision ``1 / (1 + false / (objects * found) * u ** (gamma - 1))``, which only falls.

    scripts/simulate_coverage.py                      everything: some minutes
    scripts/simulate_coverage.py --simulations 200    a glance
"""

from __future__ import annotations

import argparse
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import detmap
from detmap import statistics
from detmap.protocols import resolve

PROTOCOL = resolve("coco", iou_thresholds=0.5, max_dets=[100], area_ranges={"all": (0, 1e10)})
OBJECTS, FOUND, FALSE, GAMMA = 3.0, 0.7, 4.0, 3.0


def true_ap() -> float:
    u = np.linspace(0, 1, 101) / FOUND
    return float(np.where(u <= 1, 1 / (1 + FALSE / (OBJECTS * FOUND) * np.minimum(u, 1) ** (GAMMA - 1)), 0).mean())


def world(rng: np.random.Generator, images: int) -> tuple[np.ndarray, np.ndarray]:
    """How many objects each image holds, and how easily each of its objects is found."""
    return rng.poisson(OBJECTS, images), rng.beta(7 * FOUND, 7 * (1 - FOUND), images)


def model(rng: np.random.Generator, counts: np.ndarray, ease: np.ndarray) -> detmap.Tally:
    """A detector's tally on these images."""
    image = np.repeat(np.arange(counts.size), counts)
    place = np.arange(image.size) - np.repeat(np.cumsum(counts) - counts, counts)
    objects = np.stack(
        [20.0 * place, np.zeros(image.size), np.full(image.size, 10.0), np.full(image.size, 10.0)], axis=1
    )
    hit = rng.random(image.size) < ease[image]
    false = np.repeat(np.arange(counts.size), rng.poisson(FALSE * rng.gamma(2, 0.5, counts.size)))
    wrong = np.tile([0.0, 500.0, 10.0, 10.0], (false.size, 1))
    truth = detmap.GroundTruth.from_arrays(
        image_ids=image,
        category_ids=np.zeros(image.size, int),
        boxes=objects,
        images=np.arange(counts.size),
        categories=[0],
    )
    found = detmap.Detections.from_arrays(
        image_ids=np.concatenate((image[hit], false)),
        category_ids=np.zeros(int(hit.sum()) + false.size, int),
        boxes=np.concatenate((objects[hit], wrong)),
        scores=1 - np.concatenate((rng.random(int(hit.sum())), rng.random(false.size) ** (1 / GAMMA))),
    )
    return detmap.match(truth, found, PROTOCOL, threads=1)


def coverage(seed: int, images: int, replicates: int) -> tuple[float, bool, bool]:
    """One data set: its AP, and whether the percentile and the BCa interval hold the truth."""
    rng = np.random.default_rng((1, images, seed))
    bca = statistics.bootstrap(model(rng, *world(rng, images)), replicates, seed, bca=True, threads=1)
    names = ("metrics", "estimate", "replicates", "support", "seed", "categories")
    plain = statistics.Bootstrap(**{name: getattr(bca, name) for name in names}, jackknife=bca.jackknife[:0])
    truth = true_ap()
    held = [bool(low <= truth <= high) for low, high in (plain.interval()[0], bca.interval()[0])]
    return float(bca.estimate[0]), held[0], held[1]


def false_positive(seed: int, images: int, replicates: int) -> tuple[bool, bool]:
    """Two equal models on the same images: whether the test, and the interval, say that they differ."""
    rng = np.random.default_rng((2, images, seed))
    counts, ease = world(rng, images)
    tallies = {name: model(rng, counts, ease) for name in "ab"}
    (only,) = statistics.compare(tallies, replicates, seed, threads=1).differences
    return only.p <= 0.05, not only.low <= 0 <= only.high


def share(flags: list[bool]) -> str:
    p = sum(flags) / len(flags)
    return f"{100 * p:.2f} % ± {196 * math.sqrt(p * (1 - p) / len(flags)):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=2000, help="data sets whose interval is looked at")
    parser.add_argument("--pairs", type=int, default=4000, help="pairs of equal models")
    parser.add_argument("--images", type=int, nargs="+", default=[50, 200], help="images of a data set")
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print(f"true AP {true_ap():.4f}, {options.replicates} replicates")
    with ProcessPoolExecutor(options.workers) as pool:
        for images in options.images:
            task = partial(coverage, images=images, replicates=options.replicates)
            values, plain, bca = zip(*pool.map(task, range(options.simulations), chunksize=20), strict=True)
            print(f"{images} images, {options.simulations} data sets: mean AP {np.mean(values):.4f}", flush=True)
            print(f"  coverage of the 95 % interval: percentile {share(plain)}, BCa {share(bca)}", flush=True)
            task = partial(false_positive, images=images, replicates=options.replicates)
            test, interval = zip(*pool.map(task, range(options.pairs), chunksize=20), strict=True)
            print(f"{images} images, {options.pairs} pairs of equal models", flush=True)
            print(f"  false positives at 5 %: test {share(test)}, interval {share(interval)}", flush=True)


if __name__ == "__main__":
    main()
