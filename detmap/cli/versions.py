"""The option ``--version`` prints one line; with ``--verbose`` also the installed packages and folders."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import detmap
from detmap.installation import DISTRIBUTION, find_foreign

#: Packages that detmap requires, and packages that its extras add.
REQUIRED = ("numpy", "msgspec")
OPTIONAL = (
    "numba", "llvmlite", "pandas", "matplotlib", "jinja2", "pillow", "pyarrow", "pyyaml", "zstandard", "distributed"
)  # fmt: skip


class Version(argparse.Action):
    """Prints the version and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, verbose: bool, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)
        self._verbose = verbose

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print the version and exit."""
        print("\n".join(_verbose() if self._verbose else [f"detmap {detmap.__version__}"]))
        parser.exit()


def _verbose() -> list[str]:
    """Return lines on installed versions, extras, and the folder of compiled kernels."""
    import platform
    from pathlib import Path

    absent = [name for name in OPTIONAL if not _version(name)]
    foreign = find_foreign()
    return [
        f"detmap {detmap.__version__} in {Path(detmap.__file__).parent}",
        f"distribution: {DISTRIBUTION} {_version(DISTRIBUTION) or 'is not installed'}",
        f"Python {platform.python_version()} ({sys.executable}), {platform.platform()}",
        *(f"{name} {_version(name)}" for name in (*REQUIRED, *OPTIONAL) if name not in absent),
        *([f"not installed: {', '.join(absent)}, which extras add"] if absent else []),
        *_kernels(),
        *([f"note: {foreign}"] if foreign else []),
    ]


def _kernels() -> list[str]:
    """Return lines on the source of kernels, and the cache of kernels that numba compiles."""
    from detmap.kernels import _ahead

    lines = [f"kernels: {_ahead.in_use()}"]
    if not _ahead.has_numba():
        return lines
    from detmap.kernels import _numba

    try:
        kept = str(_numba.writable_folder())
    except OSError as error:
        kept = f"cannot be kept in {error.filename}: {error.strerror}"
    return [*lines, f"compiled kernels: {kept}"]


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
