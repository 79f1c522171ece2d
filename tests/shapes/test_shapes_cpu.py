"""OKS with and without AVX-512, which changes numpy's exponential: equal to pycocotools in both processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import contextlib, copy, hashlib, io, json
import numpy as np
import shape_workloads as made
import detmap
from detmap.pycocotools.coco import COCO
from detmap.pycocotools.cocoeval import COCOeval

def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()

control = digest(np.exp(-np.linspace(0, 30, 100_001)))
cells, unequal, overlaps = 0, 0, []
for seed in range(30):
    dataset, results = made.pose_workload(seed)
    if not results:
        continue
    reference = made.pycocotools_reference(dataset, results, "keypoints")
    truth = detmap.read_coco(dataset, iou_type="keypoints")
    result = detmap.evaluate(truth, detmap.read_coco_results(results, truth, iou_type="keypoints"), iou_type="keypoints")
    for name in ("precision", "recall", "scores"):
        array = getattr(result, name)
        unequal += digest(np.where(np.isnan(array), -1.0, array)) != digest(reference[name])
    with contextlib.redirect_stdout(io.StringIO()):
        both = COCO()
        both.dataset = copy.deepcopy(dataset)
        both.createIndex()
        evaluation = COCOeval(both, both.loadRes(copy.deepcopy(results)), "keypoints")
        evaluation.evaluate()
    for cell, expected in reference["ious"].items():
        cells += 1
        unequal += not np.array_equal(evaluation.ious[cell], expected)
        overlaps.append(np.ravel(expected))
print(json.dumps([control, cells, unequal, digest(np.concatenate(overlaps))]))
"""


@pytest.mark.slow
@pytest.mark.compiled
def test_oks_equals_pycocotools_with_and_without_avx512():
    from numpy._core import _multiarray_umath as umath

    wide = [f for f in umath.__cpu_dispatch__ if f.startswith(("AVX512", "X86_V4")) and umath.__cpu_features__.get(f)]
    outcomes = []
    for extra in ({}, {"NPY_DISABLE_CPU_FEATURES": " ".join(wide)}):
        paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": paths, **extra},
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        outcomes.append(json.loads(done.stdout.splitlines()[-1]))
    (control, cells, unequal, overlaps), (other_control, other_cells, other_unequal, other_overlaps) = outcomes
    assert cells == other_cells > 30
    assert unequal == other_unequal == 0
    if control == other_control:
        pytest.skip("numpy's exp is the same here with and without AVX-512")
    assert overlaps != other_overlaps  # the numbers do depend on it, and ours follow
