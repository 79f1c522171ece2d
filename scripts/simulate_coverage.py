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

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import detmap
from detmap.protocols import resolve

PROTOCOL = resolve("coco")


@dataclass(frozen=True)
class World:
    """How images, objects and detectors come about.

    Of the detectors: `skill` and `noise` are means of the quality of a box and of false detections per object of a class;
    `shared` is how much two models have in common, from 0 (only the images) to 1.
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
    "near-zero": World(images=50, found=0.06, quality=0.6, false=20, gamma=1.2),
    "near-zero-20": World(images=20, found=0.06, quality=0.6, false=20, gamma=1.2),
    "near-zero-300": World(images=300, found=0.06, quality=0.6, false=20, gamma=1.2),
    "ties": World(classes=4, images=100, decimals=1),
    "empty-images": World(classes=4, images=150, empty=0.6),
    "uneven": World(classes=4, images=100, spread=1.0),
    "alike": World(classes=8, images=100, shared=0.97),
    "one-class-differs": World(classes=8, images=100, objects=5, worse=0),
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
