#!/usr/bin/env python
"""Simulations of the intervals and tests: how often an interval holds what it is for, and how often equal models differ.

A world says how images and detectors come about; data sets are drawn from it. An image is easy or hard for every detector,
and holds objects of classes that are common or rare. A detector finds an object with a probability that depends on both; it
places its box more or less well, which decides up to which IoU threshold the detection is a hit. False detections come at a
rate per image. Tallies are made directly: matching is not what is in question here.

    scripts/simulate_coverage.py --keep found           every world: an hour or two of processor time, which may be stopped
    scripts/simulate_coverage.py --simulations 50 --worlds one-class

Intervals are made of 200 replicates, the fewest that are allowed: more make them a little more alike. AP is tested with 199
permutations, with which a test has its level as exactly as with more; its power is a little less.
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
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import detmap
from detmap import statistics
from detmap.detection.protocols import resolve
from detmap.kernels import readonly

PROTOCOL = resolve("coco")

METRICS = statistics.metric_names(PROTOCOL)

#: What is found of one data set.
Row = np.ndarray


@dataclass(frozen=True)
class World:
    """How images, objects and detectors come about.

    With `frames` there are `images` videos. A video is made as an image is, and each of its objects, and of its
    detections, is in nine of ten of its frames, with nearly the same score and overlap.

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
    frames: tuple[int, ...] = ()  # images become videos, each with one of these numbers of frames
    told: bool = True  # whether it is known which video a frame is of


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
    "one-class-worse": World(worse=0),
    "one-class-differs": World(classes=8, images=100, objects=5, worse=0),
    "one-class-differs-20": World(classes=8, images=20, objects=5, worse=0),
    "scales": World(classes=4, images=100, scale=0.3),
    "long-tail": World(classes=400, images=1000, objects=7, tail=1, false=15),
    "videos-5x20": World(images=5, objects=6, frames=(20,)),
    "videos-10x20": World(images=10, objects=6, frames=(20,)),
    "videos-20x10": World(images=20, objects=6, frames=(10,)),
    "videos-40x5": World(images=40, objects=6, frames=(5,)),
    "videos-5-unequal": World(images=5, objects=6, frames=(5, 10, 20, 40)),
    "videos-10-unequal": World(images=10, objects=6, frames=(5, 10, 20, 40)),
    "videos-5x20-eight": World(classes=8, images=5, objects=12, tail=0.5, false=8, frames=(20,)),
    "videos-10x20-eight": World(classes=8, images=10, objects=12, tail=0.5, false=8, frames=(20,)),
    "videos-20x10-eight": World(classes=8, images=20, objects=12, tail=0.5, false=8, frames=(10,)),
    "videos-10-unequal-eight": World(classes=8, images=10, objects=12, tail=0.5, false=8, frames=(5, 10, 20, 40)),
    "videos-5x20-untold": World(images=5, objects=6, frames=(20,), told=False),
    "videos-10x20-untold": World(images=10, objects=6, frames=(20,), told=False),
    "videos-10x20-eight-untold": World(classes=8, images=10, objects=12, tail=0.5, false=8, frames=(20,), told=False),
}

#: Probability that an object, or a detection, of a video is in a frame of it.
STEADY = 0.9


@dataclass(frozen=True)
class Scene:
    """Images and their objects: of each object its image, class, size (1 to 3) and how easily anybody finds it."""

    world: World
    image: np.ndarray
    category: np.ndarray
    size: np.ndarray
    ease: np.ndarray
    hard: np.ndarray
    videos: Scene | None = None  # of frames: the videos, as if each were one image
    video: np.ndarray | None = None  # and of each image which video it is a frame of
    seen: np.ndarray | None = None  # and of each object which one of the videos' it is


def frames(videos: Scene, rng: np.random.Generator) -> Scene:
    """The frames of videos, in most of which each object of a video is."""
    video = np.repeat(np.arange(videos.world.images), rng.choice(videos.world.frames, videos.world.images))
    image, seen = each_frame(video, videos.image, rng)
    world = replace(videos.world, images=video.size, frames=())
    of_object = (column[seen] for column in (videos.category, videos.size, videos.ease))
    return Scene(world, image, *of_object, videos.hard[video], videos, video, seen)


def each_frame(video: np.ndarray, of: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Of things in videos the frames that they are in, and which thing it is in each."""
    begin = np.searchsorted(video, of)
    lengths = np.searchsorted(video, of, side="right") - begin
    thing = np.repeat(np.arange(of.size), lengths)
    place = np.arange(thing.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    there = rng.random(thing.size) < STEADY
    return (begin[thing] + place)[there], thing[there]


def scene(world: World, rng: np.random.Generator) -> Scene:
    counts = rng.poisson(world.objects, world.images) * (rng.random(world.images) >= world.empty)
    image = np.repeat(np.arange(world.images), counts)
    common = np.arange(1.0, world.classes + 1) ** -world.tail
    category = np.searchsorted(np.cumsum(common / common.sum()), rng.random(image.size)).clip(max=world.classes - 1)
    hard = rng.beta(world.spread * world.found, world.spread * (1 - world.found), world.images)
    made = Scene(world, image, category, rng.integers(1, 4, image.size), rng.random(image.size), hard)
    return frames(made, rng) if world.frames else made


def detect(one: Scene, rng: np.random.Generator, second: bool = False) -> detmap.Tally:
    """A detector's tally of a scene; detectors share the ease of objects and the difficulty of images, not their luck."""
    if one.videos is None:
        _, *columns = found_in(one, rng, second)
        return tally_of(one, *columns)
    objects, videos, category, size, scores, quality = found_in(one.videos, rng, second)
    of_object = np.full(one.videos.image.size, -1)
    of_object[objects] = np.arange(objects.size)
    hits = np.flatnonzero((of_object[one.seen] >= 0) & (rng.random(one.seen.size) < STEADY))
    image, wrong = each_frame(one.video, videos[objects.size :], rng)
    which = np.concatenate((of_object[one.seen[hits]], objects.size + wrong))
    scores = (scores[which] + rng.normal(0, 0.03, which.size)).clip(0, 1)
    quality = (quality[which] + rng.normal(0, 0.03, which.size)).clip(0, 1) * (which < objects.size)
    image = np.concatenate((one.image[hits], image))
    made = tally_of(one, image, category[which], size[which], scores, quality)
    return replace(made, clusters=one.video) if one.world.told else made


def found_in(one: Scene, rng: np.random.Generator, second: bool) -> tuple[np.ndarray, ...]:
    """Objects that are found; and image, class, size, score and quality of these detections, and then of false ones."""
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
    return (
        np.flatnonzero(hit),
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
        errors=column(np.empty((0, 0)), np.float64),
        positive_category=column(pairs // one.world.images, np.int32),
        positive_image=column(pairs % one.world.images, np.int32),
        positive_counts=column(counts, np.int32),
    ).in_ranking_order(1)


def coverage(name: str, replicates: int, seeds: range) -> list[Row]:
    """Of some data sets of a world: every metric's value, low and high, and the images with something to find."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng((1, seed))
        made = statistics.bootstrap(detect(scene(WORLDS[name], rng), rng), replicates, seed, threads=1)
        found.append(np.column_stack((made.estimate, made.interval(), made.support)))
    return found


def equal_models(name: str, permutations: int, seeds: range) -> list[Row]:
    """Of some data sets of a world, scored by two models: what is called different, and the intervals of differences.

    A row: AP's difference, low and high, and whether it is called; whether any category is called (but for one at which they
    do differ); the share of categories tested; and of the category at which they differ the difference, low and high, and
    whether it is called, NaN where there is none.
    """
    world, found = WORLDS[name], []
    for seed in seeds:
        rng = np.random.default_rng((2, seed))
        one = scene(world, rng)
        first, second = detect(one, rng), detect(one, rng, second=True)
        made = statistics.permute(first, second, permutations, seed, "AP", threads=1)
        row = [made.estimate[0], *made.interval()[0], made.p_value("AP") <= 0.05]
        differs = [math.nan] * 4
        if world.classes == 1:
            tested, _ = statistics.testable(made.support, 0.05, 1)
            row += [row[3] if world.worse is None else math.nan, tested[0]]
        else:
            held = statistics.support(first, (), ("AP",))
            tested, _ = statistics.testable(held, 0.05, 1)
            p, at = by_category(first, second, seed, tested, stops=world.worse is None)
            called = statistics.holm(p) <= 0.05
            if world.worse is not None:
                differs = [*at[world.worse], float(called[world.worse])]
                called[world.worse] = False
            row += [called.any(), tested.mean()]
        found.append(np.array([*row, *differs], float))
    return found


def by_category(
    first: detmap.Tally, second: detmap.Tally, seed: int, tested: np.ndarray, stops: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return each tested category's p-value, and its difference, low and high; NaN for the others.

    With m categories that are tested, 40 m - 1 permutations, the fewest by default but for a lower bound: two of them may
    differ more than the data where Holm's first step rejects. With `stops` they are drawn in pieces, and no more where so
    many have differed more, in every category, that all those that remain could not have any of them called.
    """
    p, at = np.full(tested.size, np.nan), np.full((tested.size, 3), np.nan)
    classes = np.flatnonzero(tested)
    if not classes.size:
        return p, at
    count = 40 * classes.size - 1
    pieces = np.diff([0, *(count // 10, 4 * count // 10)[: 2 * stops], count]).tolist()
    ours, theirs = only(first, classes), only(second, classes)
    extreme = drawn = 0
    for place, piece in enumerate(pieces):
        made = statistics.permute(ours, theirs, piece, 2**32 * place + seed, "AP", categories=True, threads=1)
        columns = made.category_columns("AP")
        extreme, drawn = extreme + made.extreme[columns], drawn + piece
        p[classes] = np.where(made.exact[columns], made.p_values()[columns], (extreme + 1) / (drawn + 1))
        if (np.where(made.exact[columns], np.inf, extreme) >= 2).all():
            break
    at[classes] = np.column_stack((made.estimate, made.interval()))[columns]
    return p, at


def only(tally: detmap.Tally, classes: np.ndarray) -> detmap.Tally:
    """Return what a tally holds of some classes: those that are not tested take most of the time where there are 400."""
    rows, pairs = np.isin(tally.category, classes), np.isin(tally.positive_category, classes)
    some = tally.take(rows, pairs)
    number = np.zeros(len(tally.categories), np.int32)
    number[classes] = np.arange(classes.size)
    return replace(
        some,
        categories=tuple(tally.categories[k] for k in classes),
        category=readonly(number[some.category], np.int32),
        positive_category=readonly(number[some.positive_category], np.int32),
    )


def power(name: str, permutations: int, seeds: range) -> list[Row]:
    """Whether this test and a plain one find that a model is worse at its one class."""
    world, found = replace(WORLDS[name], worse=0, shared=0.9), []
    for seed in seeds:
        rng = np.random.default_rng((3, seed))
        one = scene(world, rng)
        first, second = detect(one, rng), detect(replace(one, hard=one.hard * 0.8), rng)
        p = statistics.permute(first, second, permutations, seed, "AP", threads=1).p_value("AP")
        found.append(np.array([p <= 0.05, plain_test(first, second, permutations, rng) <= 0.05], float))
    return found


def plain_test(first: detmap.Tally, second: detmap.Tally, permutations: int, rng: np.random.Generator) -> float:
    """The p-value of a permutation test that exchanges detections for real: lists by image, sorted and scored each time."""
    ours, theirs = plain_lists(first), plain_lists(second)
    objects = np.bincount(first.positive_category, first.positive_counts[:, 0])

    def difference(swap: np.ndarray) -> float:
        sides = zip(ours, theirs, swap, strict=True)
        mixed = [(b, a) if s else (a, b) for a, b, s in sides]
        return abs(plain_ap([b for _, b in mixed], objects) - plain_ap([a for a, _ in mixed], objects))

    observed = difference(np.zeros(len(ours), bool))
    extreme = sum(difference(rng.random(len(ours)) < 0.5) >= observed - 1e-12 for _ in range(permutations))
    return (1 + extreme) / (1 + permutations)


def plain_lists(tally: detmap.Tally) -> list[np.ndarray]:
    """The detections of each image: score, thresholds up to which it is a hit (as bits), and class."""
    rows = np.column_stack((tally.scores, tally.hit[:, 0] & np.uint64(1023), tally.category))
    return [rows[tally.image == i] for i in range(tally.image_ids.size)]


def plain_ap(images: list[np.ndarray], objects: np.ndarray) -> float:
    """AP as a textbook has it: the mean over the classes, ten thresholds and 101 recalls."""
    rows = np.concatenate(images)
    held = np.flatnonzero(objects)
    total = 0.0
    for k in held:
        own = rows[rows[:, 2] == k]
        bits = own[np.argsort(-own[:, 0], kind="stable"), 1].astype(int)
        hits = ((bits[:, None] >> np.arange(10)) & 1).cumsum(axis=0)
        precision = np.maximum.accumulate((hits / np.arange(1, len(own) + 1)[:, None])[::-1])[::-1]
        for t in range(10):
            at = np.searchsorted(hits[:, t] / objects[k], np.linspace(0, 1, 101))
            total += precision[at[at < len(own)], t].sum() / 101
    return total / 10 / held.size


def share(flags: Iterable[float]) -> str:
    """A share in per cent with its simulation error (95 %), and out of how many where some have none."""
    values = np.array(list(flags), float)
    values = values[~np.isnan(values)]
    if not values.size:
        return "–"
    p = float(values.mean())
    return f"{100 * p:.1f} ± {196 * math.sqrt(max(p * (1 - p), 0.25 / values.size) / values.size):.1f}"


def more(flags: np.ndarray, others: np.ndarray) -> str:
    """How much more often one of two holds than the other on the same data sets, in points, with its error (95 %).

    Only the data sets in which they disagree say something about it, as in McNemar's test.
    """
    difference = flags - others
    variance = max(float(difference.var()), 0.5 / difference.size)
    return f"{100 * difference.mean():+.1f} ± {196 * math.sqrt(variance / difference.size):.1f}"


def held(values: np.ndarray, ends: np.ndarray, given: np.ndarray | bool = True, truth: float | None = None) -> str:
    """How often intervals hold the truth, by default the mean over the data sets; where some have none, how often any."""
    truth = np.nanmean(values, axis=0) if truth is None else truth
    shown = ~np.isnan(ends[..., 0]) & given
    inside = (ends[..., 0] <= truth) & (truth <= ends[..., 1])
    many = np.broadcast_to(given, shown.shape).sum()
    if not shown.any():
        return "–" if not many else "none shown"
    if shown.sum() > 0.995 * many:
        return f"{100 * inside[shown].mean():.1f}"
    few = f"({100 * shown.sum() / many:.0f} % shown)"
    if shown.sum() < 20:
        return f"{inside[shown].sum()} of {shown.sum()} {few}"
    # Categories of a data set are nearly independent: the error of the share is taken as if they were.
    return f"{share(inside[shown])} {few}"


def report_coverage(name: str, found: list[Row]) -> list[str]:
    rows = np.stack(found)
    cells = [held(rows[:, at, 0], rows[:, at, 1:3]) for at in range(len(METRICS))]
    return [f"| {name} | {' | '.join(cells)} |"]


#: Classes by the number of images that hold them.
IMAGES = ((10, 15), (15, 25), (25, 50), (50, 100), (100, 10**9))


def report_classes(name: str, found: list[Row]) -> list[str]:
    k = WORLDS[name].classes
    if k == 1:
        return []
    rows = np.stack(found)[:, len(METRICS) : len(METRICS) + k]
    given = [(rows[..., 3] >= low) & (rows[..., 3] < high) for low, high in IMAGES]
    cells = [held(rows[..., 0], rows[..., 1:3], some if some.sum() >= 200 else np.False_) for some in given]
    return [f"| {name} | {' | '.join(cells)} |"]


def report_equal(name: str, found: list[Row]) -> list[str]:
    rows = np.stack(found)
    overall = share(rows[:, 3]) if WORLDS[name].worse is None else "they differ"
    line = (
        f"| {name} | {overall} | {share(rows[:, 4])} | {100 * rows[:, 5].mean():.0f} % | "
        f"{rows[:, 0].mean():+.4f} | {held(rows[:, 0], rows[:, 1:3], truth=0.0 if WORLDS[name].worse is None else None)} |"
    )
    if np.isnan(rows[:, 6:]).all():
        return [line]
    return [
        line,
        f"| {name}, the class that differs | {share(rows[:, 9])} | | | {np.nanmean(rows[:, 6]):+.4f} | "
        f"{held(rows[:, 6], rows[:, 7:9])} |",
    ]


def report_power(name: str, found: list[Row]) -> list[str]:
    rows = np.stack(found)
    return [f"| {name} | {share(rows[:, 0])} | {share(rows[:, 1])} | {more(rows[:, 0], rows[:, 1])} |"]


class Part(NamedTuple):
    """What is simulated, under which name it is kept, how it is told, and the head of its table."""

    task: Callable[..., list[Row]]
    kept: str
    report: Callable[[str, list[Row]], list[str]]
    head: tuple[str, ...]


_RANGES = [f"{low} to {high - 1} images" if high < 10**9 else f"{low} or more" for low, high in IMAGES]
PARTS = {
    "coverage": Part(coverage, "coverage", report_coverage, ("world", *METRICS)),
    "classes": Part(coverage, "coverage", report_classes, ("AP of classes on", *_RANGES)),
    "equal": Part(
        equal_models,
        "equal",
        report_equal,
        ("world", "called different", "any category", "categories tested", "difference of AP", "interval holds it"),
    ),
    "power": Part(power, "power", report_power, ("world", "power of this test", "of a plain one", "difference")),
}


def simulate(
    task: Callable[[range], list[Row]], count: int, kept: Path | None, pool: ProcessPoolExecutor | None
) -> list[Row]:
    """Return the rows of so many data sets, of which some are kept in a file; what is new is kept there too, bit by bit."""
    rows = list(np.load(kept)) if kept is not None and kept.exists() else []
    at = len(rows)
    while at < count:
        stop = min(at + 100, count)
        pieces = [range(begin, min(begin + 10, stop)) for begin in range(at, stop, 10)]
        rows += [row for found in (map if pool is None else pool.map)(task, pieces) for row in found]
        at = stop
        if kept is not None:
            half = kept.with_suffix(".part.npy")
            np.save(half, np.stack(rows))
            half.replace(kept)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", choices=tuple(WORLDS), default=list(WORLDS), metavar="NAME")
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=["coverage", "classes", "equal"])
    parser.add_argument("--simulations", type=int, default=2000, help="data sets of each world; 0: tell what is kept")
    parser.add_argument("--replicates", type=int, default=200, help="the fewest that are allowed by default")
    parser.add_argument(
        "--permutations", type=int, default=199, help="of AP; those of categories follow from their number"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="go on with what is there, and keep what is found")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    pool = ProcessPoolExecutor(options.workers) if options.workers > 1 else None
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    for part in options.parts:
        task, name_kept, report, head = PARTS[part]
        print(f"\n| {' | '.join((*head, 'data sets'))} |\n|{' --- |' * (len(head) + 1)}", flush=True)
        many = options.replicates if task is coverage else options.permutations
        for name in options.worlds:
            begin = time.process_time()
            kept = options.keep and options.keep / f"{name}.{name_kept}.npy"
            rows = simulate(partial(task, name, many), options.simulations, kept, pool)
            if rows:
                print("".join(f"{line} {len(rows)} |\n" for line in report(name, rows)), end="", flush=True)
                print(f"{name}, {part}: {time.process_time() - begin:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
