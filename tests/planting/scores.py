"""Defects of scores: their range, their digits and their direction."""

from __future__ import annotations

import numpy as np

from planting.registry import _NO_IMAGE, _some, plants


@plants("constant_scores")
def scores_all_alike(rng, data):
    value = float(rng.choice([0.0, 0.5, 1.0]))
    for one in data.found:
        one["score"] = value


@plants("logit_scores")
def scores_ahead_of_the_sigmoid(rng, data):
    shift = float(rng.uniform(-0.5, 0.5))
    for one in data.found:
        p = min(max(one["score"], 1e-6), 1 - 1e-6)
        one["score"] = float(np.log(p / (1 - p)) + shift)


@plants("percentage_scores")
def scores_in_percent(rng, data):
    for one in data.found:
        one["score"] *= 100 if rng is not None else 0


@plants("mixed_scores", "score_cut")
def scores_in_percent_in_part(rng, data):
    for one in _some(rng, data.found, 0.1, 0.7):
        one["score"] *= 100


@plants("quantised_scores", "score_cut")
def scores_of_few_digits(rng, data):
    digits = int(rng.integers(1, 3))
    for one in data.found:
        one["score"] = round(one["score"], digits)


@plants("score_cut", *_NO_IMAGE)
def scores_above_a_threshold(rng, data):
    least = float(rng.uniform(0.3, 0.75))
    data.found = [one for one in data.found if one["score"] >= least]


@plants("inverted_scores")
def scores_that_are_distances(rng, data):
    least = float(rng.uniform(0.0, 0.2))
    for one in data.found:
        one["score"] = 1.0 - (1 - least) * one["score"]
