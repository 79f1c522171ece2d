"""Checkouts of other commits, for scripts that compare this one with them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Unpack the files of a commit into a folder that goes when the context is left."""
    with tempfile.TemporaryDirectory(prefix="detmap-") as folder:
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        yield Path(folder)


def environment(tree: Path) -> dict[str, str]:
    """The environment in which ``import detmap`` takes the package of `tree`, with kernels compiled and kept there."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, "PYTHONPATH": str(tree), "DETMAP_TREE": str(tree), "SOURCE_DATE_EPOCH": "1767225600"}
