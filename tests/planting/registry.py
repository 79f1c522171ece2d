"""The list of defects, how one is registered and planted, and what most of them ask of a data set."""

from __future__ import annotations

import copy

import numpy as np

from planting.data import clean

#: Every defect: the code that is to be found, a name, what else is true then, the kind of data, and what plants it.
DEFECTS = []


def plants(code, *also, kind="boxes"):
    """Register a defect."""

    def register(function):
        DEFECTS.append((code, function.__name__, frozenset(also), kind, function))
        return function

    return register


def make(seed, code, name, kind, function):
    """A data set with the defect."""
    del code, name
    data = copy.deepcopy(clean(seed, kind))
    function(np.random.default_rng([seed, 1]), data)
    return data


def _some(rng, records, low=0.05, high=1.0, least=12):
    """A random share of records, log-uniform between two bounds."""
    share = float(np.exp(rng.uniform(np.log(low), np.log(high))))
    count = min(max(int(share * len(records)), least), len(records))
    return [records[i] for i in rng.choice(len(records), count, replace=False)]


def _objects(data):
    return [one for one in data.truth["annotations"] if not one["iscrowd"]]


def _sizes(data):
    return {one["id"]: (one["width"], one["height"]) for one in data.truth["images"]}


_ONE_CLASS = ("categories_without_detections",)
_NO_IMAGE = ("images_without_detections", "missing_shard", *_ONE_CLASS)
