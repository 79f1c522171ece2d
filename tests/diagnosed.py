"""What is diagnosed in tests, and how two answers are compared."""

from __future__ import annotations

import dataclasses
import json

import large_workloads
import numpy as np
import pytest
import workloads
from hypothesis import strategies as st
from support import detections_of, ground_truth_of, tables_of_arrays
from workloads import REAL_DATA

import detmap

ERRORS = ("Cls", "Loc", "Both", "Dupe", "Bkg")
PRESET = st.sampled_from(["coco", "voc2007", "voc2012"])
VAL, MINI = "coco/instances_val2014_100.json", "coco/instances_val2017_COCO-MINI.json"
BOXES, MASKS = "coco/instances_val2014_fakebbox100_results.json", "coco/instances_val2014_fakesegm100_results.json"
SYNTHETIC = "segm_mini/synthetic_segm_results.json"


def read(truth, found, kind="bbox"):
    paths = [REAL_DATA / name for name in (truth, found)]
    for path in paths:
        if not path.exists():
            pytest.skip(f"{path} is not here")
    ground_truth = detmap.read(paths[0], "ground_truth", iou_type=kind)
    return ground_truth, detmap.read(paths[1], "detections", ground_truth=ground_truth, iou_type=kind)


def expected(folder):
    path = REAL_DATA / folder / "expected.json"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def tables():
    """A made-up detector's output: a few hundred detections of four classes."""
    return tables_of_arrays(large_workloads.detector_like(12, 60, 4, seed=3))


def made(truth, found, **options):
    return detmap.diagnose(truth, found, **options)


@st.composite
def small(draw):
    dataset, results, _ = draw(workloads.coco_workloads())
    return ground_truth_of(dataset), detections_of(results)


def same(a, b, tolerance=1e-12):
    assert a == pytest.approx(b, abs=tolerance, nan_ok=True)


def sized(truth, size):
    images = dataclasses.replace(truth.images, sizes=np.full((truth.images.ids.size, 2), size))
    return dataclasses.replace(truth, images=images)
