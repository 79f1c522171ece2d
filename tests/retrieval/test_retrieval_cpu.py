"""The same bits with and without the vector instructions of numpy and of the compiler, where scores are tied."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import numpy as np
from detmap.retrieval import average_precision_score, evaluate_codes, evaluate_distances, evaluate_run
rng = np.random.default_rng(0)
ids = rng.integers(0, 9, 40), rng.integers(0, 9, 500), rng.integers(0, 3, 40), rng.integers(0, 3, 500)
distances = rng.integers(0, 12, (40, 500)).astype(np.float32)
for ties in ("index", "reversed", "collapsed", "expected", "best", "worst"):
    result = evaluate_distances(distances, *ids, ties=ties)
    print(ties, {k: v.tobytes().hex() for k, v in result.per_query.items()}, result.cmc.tobytes().hex())
    codes = rng.integers(0, 2, (9, 8)), rng.integers(0, 2, (300, 8)), ids[0][:9], ids[1][:300]
    print(evaluate_codes(*codes, ties=ties, metrics=["AP@20", "nDCG@20"]).per_query["AP@20"].tobytes().hex())
run = np.repeat(np.arange(20), 100), np.tile(np.arange(100), 20), rng.integers(0, 5, 2000)
qrels = np.repeat(np.arange(20), 30), np.tile(np.arange(0, 90, 3), 20), rng.integers(0, 4, 600)
print({k: v.tobytes().hex() for k, v in evaluate_run(qrels, run).per_query.items()})
print(average_precision_score(rng.integers(0, 2, 30000), rng.integers(0, 50, 30000) / 7).hex())
"""


@pytest.mark.slow
@pytest.mark.compiled
def test_cpu_features_change_no_bit(tmp_path):
    from numpy._core import _multiarray_umath as umath

    optional = [f for f in umath.__cpu_dispatch__ if umath.__cpu_features__.get(f)]
    if not optional:
        pytest.skip("numpy has no optional CPU features here")
    plain = {"PYTHONPATH": str(ROOT)}
    bare = {"NPY_DISABLE_CPU_FEATURES": " ".join(optional), "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    outputs = []
    for extra in (plain, {**plain, **bare, "NUMBA_CACHE_DIR": str(tmp_path)}):
        environment = {**os.environ, **extra}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        outputs.append(done.stdout)
    assert len(outputs[0]) > 10_000
    assert outputs[0] == outputs[1]
