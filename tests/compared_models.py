"""Three models compared on the same images, and what tests of statistics ask of tallies and workloads."""

from __future__ import annotations

import large_workloads
import numpy as np
import pytest
from support import tables_of_arrays

import detmap
from detmap.statistics import reweighting


def all_columns(tally):
    return reweighting.Reweighted(
        tally, reweighting.metric_names(tally.protocol), reweighting.category_metrics(tally.protocol)
    )


def naive_params(params):
    return {name: value for name, value in params.items() if name not in ("image_ids", "category_ids")}


@pytest.fixture(scope="module")
def models():
    """Three results on the same images: a detector, the same with most good detections demoted, and a slight variant."""
    arrays = large_workloads.detector_like(120, 20, 4, 3)
    rng = np.random.default_rng(0)
    worse = {**arrays, "dt_scores": np.where(rng.random(2400) < 0.5, 0.001, arrays["dt_scores"])}
    alike = {**arrays, "dt_scores": arrays["dt_scores"] + rng.normal(0, 0.002, 2400)}
    return {
        name: detmap.evaluate(*tables_of_arrays(one)) for name, one in (("bad", worse), ("one", arrays), ("two", alike))
    }


@pytest.fixture(scope="module")
def compared(models):
    return detmap.compare(models, 200, 1)
