"""What tests of the cache of kernels share: processes with a cache of their own, and which leg they need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from detmap.kernels import _numba

ROOT = Path(__file__).parents[1]
compiled = pytest.mark.compiled
tricks = pytest.mark.skipif(_numba.is_plain(), reason="numba's own cache is in use")


@pytest.fixture
def environment(tmp_path):
    """What a process needs that imports the modules in `tmp_path`, with numba's own folders."""
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "DETMAP_PLAIN_NUMBA")}
    return {**kept, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": str(tmp_path / "home")}


def said(program, environment, **more):
    """What a process prints that runs `program`."""
    arguments = [sys.executable, "-c", program]
    here = environment["PYTHONPATH"].split(os.pathsep)[0]
    run = subprocess.run(arguments, env={**environment, **more}, capture_output=True, text=True, check=False, cwd=here)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()
