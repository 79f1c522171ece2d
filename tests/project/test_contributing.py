"""The recipes of CONTRIBUTING.md, tried: patches that newcomers wrote with nothing else in hand still apply and pass.

A patch begins with what it does, and with a line ``Test:`` that says what pytest is given.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATCHES = sorted((ROOT / "tests" / "patches").glob("*.patch"))


def named_in(patch):
    """What pytest is given, from the message of a patch."""
    (line,) = re.findall(r"^Test: (.+)$", patch.read_text(encoding="utf-8"), re.M)
    return shlex.split(line)


def tree(folder):
    """A copy of what tests need, compiled kernels included."""
    for name in ("detmap", "tests", "fixtures", "scripts", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(".*", "_build", "patches"))
    for path in ROOT.glob("*.*"):
        if path.is_file() and path.suffix in (".toml", ".md"):
            shutil.copy(path, folder)
    return folder


def test_there_is_a_patch_for_each_recipe():
    names = {path.stem for path in PATCHES}
    assert names >= {"metric", "protocol", "decision", "format", "diagnosis", "kernel"}  # a shape: growth/spans.py


@pytest.mark.slow
@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_what_a_newcomer_made_by_a_recipe_applies_and_passes(patch, tmp_path):
    copied = tree(tmp_path)
    subprocess.run(["git", "apply", str(patch)], cwd=copied, check=True, capture_output=True)
    changed = "b/detmap/kernels/" in patch.read_text(encoding="utf-8")  # all would be compiled anew
    environment = {**os.environ, "NUMBA_DISABLE_JIT": str(int(changed)), "PYTHONPATH": str(copied)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:cov", *named_in(patch)]
    run = subprocess.run(command, cwd=copied, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stdout[-3000:]
    assert " passed" in run.stdout
