#!/usr/bin/env python
"""Simulations of the intervals and tests: how often an interval holds what it is for, and how often equal models differ.

A world says how images and detectors come about; data sets are drawn from it. An image is easy or hard for every detector,
and holds objects of classes that are common or rare. A detector finds an object with a probability that depends on both; it
places its box more or less well, which decides up to which IoU threshold the detection is a hit. False detections come at a
rate per image. Tallies are made directly: matching is not what is in question here.

    scripts/simulate_coverage.py                        every world: hours
    scripts/simulate_coverage.py --simulations 50 --worlds one-class
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import detmap
from detmap import statistics
from detmap.protocols import resolve

PROTOCOL = resolve("coco")


@dataclass(frozen=True)
class World:
    """How images, objects and detectors come about.

    A detector finds an object with probability `found` on average. Of two models `shared` says how much luck they have in
    common, from 0 (only the images) to 1.
    """

    classes: int = 1
    images: int = 50
    objects: float = 3.0  # per image
    empty: float = 0.0  # share of images without objects
    tail: float = 0.0  # class c is as common as (c + 1) ** -tail
    found: float = 0.7
    quality: float = 0.75  # mean IoU of a detection that finds something
    false: float = 4.0  # false detections per image
    gamma: float = 3.0  # the larger, the lower the scores of false detections
    spread: float = 7.0  # the smaller, the more images differ in difficulty
    shared: float = 0.5
    decimals: int | None = None  # of the scores: few make ties
    scale: float = 1.0  # the second model's scores are those of the first to this power
    worse: int | None = None  # a class at which the second model is worse: it finds half of what it would


WORLDS = {
    "one-class": World(),
    "one-class-200": World(images=200),
    "one-class-20": World(images=20),
    "one-class-1000": World(images=1000),
    "eight-classes": World(classes=8, images=200, objects=5, tail=0.5, false=8),
    "twenty-classes": World(classes=20, images=200, objects=6, tail=1, false=12),
    "twenty-classes-1000": World(classes=20, images=1000, objects=6, tail=1, false=12),
    "twenty-classes-20": World(classes=20, images=20, objects=6, tail=1, false=12),
    "near-one": World(images=100, found=0.999, quality=0.985, false=0.05, gamma=12, spread=200),
    "near-one-500": World(images=500, found=0.999, quality=0.985, false=0.05, gamma=12, spread=200),
    "near-zero": World(images=50, found=0.15, quality=0.65, false=20, gamma=1.2),
    "near-zero-20": World(images=20, found=0.15, quality=0.65, false=20, gamma=1.2),
    "near-zero-300": World(images=300, found=0.15, quality=0.65, false=20, gamma=1.2),
    "ties": World(classes=4, images=100, decimals=1),
    "empty-images": World(classes=4, images=150, empty=0.6),
    "uneven": World(classes=4, images=100, spread=1.0),
    "alike": World(classes=8, images=100, shared=0.97),
    "one-class-differs": World(classes=8, images=100, objects=5, worse=0),
    "one-class-differs-20": World(classes=8, images=20, objects=5, worse=0),
    "scales": World(classes=4, images=100, scale=0.3),
    "long-tail": World(classes=400, images=1000, objects=7, tail=1, false=15),
}


@dataclass(frozen=True)
class Scene:
    """Images and their objects: of each object its image, class, size (1 to 3) and how easily anybody finds it."""

    world: World
    image: np.ndarray
    category: np.ndarray
    size: np.ndarray
    ease: np.ndarray
    hard: np.ndarray


def scene(world: World, rng: np.random.Generator) -> Scene:
    counts = rng.poisson(world.objects, world.images) * (rng.random(world.images) >= world.empty)
    image = np.repeat(np.arange(world.images), counts)
    common = np.arange(1.0, world.classes + 1) ** -world.tail
    category = np.searchsorted(np.cumsum(common / common.sum()), rng.random(image.size)).clip(max=world.classes - 1)
    hard = rng.beta(world.spread * world.found, world.spread * (1 - world.found), world.images)
    return Scene(world, image, category, rng.integers(1, 4, image.size), rng.random(image.size), hard)


def detect(one: Scene, rng: np.random.Generator, second: bool = False) -> detmap.Tally:
    """A detector's tally of a scene; detectors share the ease of objects and the difficulty of images, not their luck."""
    world = one.world
    objects = one.image.size
    own = rng.random(objects) >= world.shared
    luck = np.where(own, rng.random(objects), one.ease)
    chance = one.hard[one.image]
    if second and world.worse is not None:
        chance = np.where(one.category == world.worse, chance / 2, chance)
    hit = luck < chance
    concentration = 12.0
    quality = rng.beta(concentration * world.quality, concentration * (1 - world.quality), int(hit.sum()))
    sure = 1 - rng.random(quality.size) * (1.2 - quality).clip(0.05, 1)
    false = np.repeat(np.arange(world.images), rng.poisson(world.false * rng.gamma(2, 0.5, world.images)))
    common = np.arange(1.0, world.classes + 1) ** -world.tail
    wrong = np.searchsorted(np.cumsum(common / common.sum()), rng.random(false.size)).clip(max=world.classes - 1)
    scores = np.concatenate((sure, 1 - rng.random(false.size) ** (1 / world.gamma)))
    if second:
        scores = scores**world.scale
    if world.decimals is not None:
        scores = np.round(scores, world.decimals)
    return tally_of(
        one,
        np.concatenate((one.image[hit], false)),
        np.concatenate((one.category[hit], wrong)),
        np.concatenate((one.size[hit], rng.integers(1, 4, false.size))),
        scores,
        np.concatenate((quality, np.zeros(false.size))),
    )


def tally_of(
    one: Scene, image: np.ndarray, category: np.ndarray, size: np.ndarray, scores: np.ndarray, quality: np.ndarray
) -> detmap.Tally:
    """The tally of detections with these best overlaps: hits at thresholds up to them, ignored in ranges of other sizes."""
    thresholds, areas = np.array(PROTOCOL.iou_thresholds), len(PROTOCOL.area_ranges)
    order = np.lexsort((-scores, category, image))
    image, category, size, scores, quality = (column[order] for column in (image, category, size, scores, quality))
    starts = np.flatnonzero(np.r_[True, (image[1:] != image[:-1]) | (category[1:] != category[:-1])][: image.size])
    rank = np.arange(image.size) - np.repeat(starts, np.diff(np.r_[starts, image.size]))
    bits = ((quality[:, None] >= thresholds) << np.arange(thresholds.size)).sum(axis=1).astype(np.uint64)
    full = np.uint64(2**thresholds.size - 1)
    hit, ignored = bits.copy(), np.zeros(image.size, np.uint64)
    for a in range(1, areas):
        inside, shift = size == a, np.uint64(a * thresholds.size)
        hit |= np.where(inside, bits << shift, np.uint64(0))
        ignored |= np.where(inside, np.uint64(0), full << shift)
    pairs, which = np.unique(one.category * one.world.images + one.image, return_inverse=True)
    counts = np.stack(
        [np.bincount(which[(one.size == a) | (a == 0)], minlength=pairs.size) for a in range(areas)], axis=1
    )

    def column(values: np.ndarray, dtype: Any) -> np.ndarray:
        made = np.ascontiguousarray(values, dtype)
        made.setflags(write=False)
        return made

    return detmap.Tally(
        protocol=PROTOCOL,
        categories=tuple((k, f"c{k}") for k in range(one.world.classes)),
        image_ids=column(np.arange(one.world.images), np.int64),
        category=column(category, np.int32),
        image=column(image, np.int32),
        rank=column(rank, np.int32),
        order=column(np.empty(0), np.int64),
        scores=column(scores, np.float64),
        hit=column(hit[:, None], np.uint64),
        ignored=column(ignored[:, None], np.uint64),
        positive_category=column(pairs // one.world.images, np.int32),
        positive_image=column(pairs % one.world.images, np.int32),
        positive_counts=column(counts, np.int32),
    ).in_ranking_order(1)


def coverage(name: str, replicates: int, seeds: range) -> list[tuple[np.ndarray, ...]]:
    """Of some data sets of a world: every metric's value, interval, and images with something to find; then differences."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng((1, seed))
        one = scene(WORLDS[name], rng)
        first, second = (statistics.bootstrap(detect(one, rng, i == 1), replicates, seed, threads=1) for i in range(2))
        change = second - first
        found.append((first.estimate, first.interval(), change.estimate, change.interval(), first.support))
    return found


def equal_models(name: str, permutations: int | None, seeds: range) -> list[tuple[bool, bool, float, float]]:
    """Of some data sets of a world, scored by two models: what is called different.

    Overall; any category (but for one at which they do differ); the share of categories tested; and whether the category at
    which they differ is called, NaN where they do not.
    """
    world, found = WORLDS[name], []
    for seed in seeds:
        rng = np.random.default_rng((2, seed))
        one = scene(world, rng)
        first, second = detect(one, rng), detect(one, rng, second=True)
        held = np.bincount(first.positive_category, minlength=world.classes)
        tested, _ = statistics.testable(held, 0.05, 1)
        count = permutations or statistics.permutations_needed(max(int(tested.sum()), 1), 0.05)
        made = statistics.permute(first, second, count, seed, "AP", categories=True, threads=1)
        p = np.where(tested, made.p_values()[made.category_columns("AP")], np.nan)
        called = statistics.holm(p) <= 0.05
        differs = math.nan if world.worse is None else float(called[world.worse])
        others = np.arange(world.classes) != world.worse if world.worse is not None else slice(None)
        overall = made.p_value("AP") <= 0.05 if world.worse is None else math.nan
        found.append((overall, bool(called[others].any()), float(tested.mean()), differs))
    return found


def power(name: str, permutations: int, seeds: range) -> list[tuple[bool, bool]]:
    """Whether this test and a plain one find that a model is worse at its one class."""
    world, found = replace(WORLDS[name], worse=0, shared=0.9), []
    for seed in seeds:
        rng = np.random.default_rng((3, seed))
        one = scene(world, rng)
        first, second = detect(one, rng), detect(replace(one, hard=one.hard * 0.94), rng)
        p = statistics.permute(first, second, permutations, seed, "AP", threads=1).p_value("AP")
        found.append((p <= 0.05, plain_test(first, second, permutations, rng) <= 0.05))
    return found


def plain_test(first: detmap.Tally, second: detmap.Tally, permutations: int, rng: np.random.Generator) -> float:
    """The p-value of a permutation test that exchanges detections for real: lists by image, sorted and scored each time."""

    def by_image(tally: detmap.Tally) -> list[np.ndarray]:
        rows = np.column_stack((tally.scores, tally.hit[:, 0] & np.uint64(1023)))
        return [rows[tally.image == i] for i in range(tally.image_ids.size)]

    ours, theirs = by_image(first), by_image(second)
    positives = int(first.positive_counts[:, 0].sum())

    def ap(images: Iterable[np.ndarray]) -> float:
        rows = np.concatenate(list(images))
        bits = rows[np.argsort(-rows[:, 0], kind="stable"), 1].astype(int)
        hit = (bits[:, None] >> np.arange(10)) & 1
        hits = hit.cumsum(axis=0)
        precision = np.maximum.accumulate((hits / np.arange(1, len(rows) + 1)[:, None])[::-1])[::-1]
        total = 0.0
        for t in range(10):
            at = np.searchsorted(hits[:, t] / positives, np.linspace(0, 1, 101))
            total += precision[at[at < len(rows)], t].sum() / 101
        return total / 10

    def difference(swap: np.ndarray) -> float:
        sides = zip(ours, theirs, swap, strict=True)
        mixed = [(b, a) if s else (a, b) for a, b, s in sides]
        return abs(ap(b for _, b in mixed) - ap(a for a, _ in mixed))

    observed = difference(np.zeros(len(ours), bool))
    extreme = sum(difference(rng.random(len(ours)) < 0.5) >= observed - 1e-12 for _ in range(permutations))
    return (1 + extreme) / (1 + permutations)


def share(flags: Iterable[float]) -> str:
    """A share in per cent with its simulation error (95 %), and out of how many where some have none."""
    values = np.array(list(flags), float)
    values = values[~np.isnan(values)]
    if not values.size:
        return "–"
    p = float(values.mean())
    return f"{100 * p:.1f} ± {196 * math.sqrt(max(p * (1 - p), 0.25 / values.size) / values.size):.1f}"


def held(values: np.ndarray, ends: np.ndarray, given: np.ndarray | bool = True) -> str:
    """How often intervals hold what a column is on average over the data sets, and how often there are any."""
    truth = np.nanmean(values, axis=0)
    shown = ~np.isnan(ends[..., 0]) & given
    inside = (ends[..., 0] <= truth) & (truth <= ends[..., 1])
    many = np.broadcast_to(given, shown.shape).sum()
    if not shown.any():
        return "none shown"
    rest = "" if shown.sum() == many else f" ({100 * shown.sum() / many:.0f} % shown)"
    # Categories of a data set are nearly independent: the error of the share is taken as if they were.
    return share(inside[shown]) + rest


def report_coverage(name: str, found: list[tuple[np.ndarray, ...]]) -> list[str]:
    value, ends, change, change_ends, images = (np.stack(column) for column in zip(*found, strict=True))
    names = [*statistics.metric_names(PROTOCOL)]
    lines = [
        f"| {name} | {metric} | {np.nanmean(value[:, at]):.4f} | {held(value[:, at], ends[:, at])} | "
        f"{held(change[:, at], change_ends[:, at])} |"
        for at, metric in enumerate(names)
    ]
    k = WORLDS[name].classes
    start = len(names)
    for low, high in ((10, 15), (15, 25), (25, 50), (50, 100), (100, 10**9)) if k > 1 else ():
        columns = slice(start, start + k)
        given = (images[:, columns] >= low) & (images[:, columns] < high)
        if given.sum() >= 200:
            label = (
                f"AP of classes on {low} to {high - 1} images" if high < 10**9 else f"AP of classes on {low} or more"
            )
            lines.append(
                f"| {name} | {label} | {np.nanmean(value[:, columns][given]):.4f} | "
                f"{held(value[:, columns], ends[:, columns], given)} | "
                f"{held(change[:, columns], change_ends[:, columns], given)} |"
            )
    return lines


def in_pieces(pool: ProcessPoolExecutor | None, task: Callable[[range], list[Any]], count: int) -> list[Any]:
    pieces = [range(at, min(at + 10, count)) for at in range(0, count, 10)]
    return [row for rows in (map if pool is None else pool.map)(task, pieces) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", choices=tuple(WORLDS), default=list(WORLDS), metavar="NAME")
    parser.add_argument("--parts", nargs="+", choices=("coverage", "equal", "power"), default=["coverage", "equal"])
    parser.add_argument("--simulations", type=int, default=2000, help="data sets of each world")
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--permutations", type=int, help="default: 1000, or as many as the hypotheses ask for")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    pool = ProcessPoolExecutor(options.workers) if options.workers > 1 else None
    for name in options.worlds:
        print(f"\n{name}: {WORLDS[name]}, {options.simulations} data sets", flush=True)
        begin = time.perf_counter()
        if "coverage" in options.parts:
            found = in_pieces(pool, partial(coverage, name, options.replicates), options.simulations)
            print(
                "| world | metric | mean | interval holds it | that of a difference |\n| --- | --- | --- | --- | --- |"
            )
            print("\n".join(report_coverage(name, found)), flush=True)
        if "equal" in options.parts:
            count = options.permutations or (None if WORLDS[name].classes > 25 else 1000)
            overall, any_category, tested, differs = zip(
                *in_pieces(pool, partial(equal_models, name, count), options.simulations), strict=True
            )
            print(
                f"| {name} | called different though equal: overall {share(overall)} | any category {share(any_category)} | "
                f"categories tested {100 * np.mean(tested):.0f} % | the one that differs {share(differs)} |",
                flush=True,
            )
        if "power" in options.parts:
            both = in_pieces(pool, partial(power, name, options.permutations or 1000), options.simulations)
            ours, plain = (share(column) for column in zip(*both, strict=True))
            print(f"| {name} | power: this test {ours} | a plain one {plain} |", flush=True)
        print(f"{time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
