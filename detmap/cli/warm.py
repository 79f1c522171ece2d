"""The command warm: compile every kernel now, so that nobody waits for it later."""

from __future__ import annotations

import argparse
from typing import Any


def add_commands(commands: Any) -> None:
    """Add warm."""
    warm = commands.add_parser(
        "warm",
        help="compile all kernels ahead of time",
        description="Compile every kernel in parallel processes and keep them on disk, so that no later run compiles: "
        "for images of containers and shared folders of clusters. NUMBA_CACHE_DIR names another folder.",
    )
    warm.set_defaults(run=_warm)
    warm.add_argument(
        "--cpu",
        metavar="NAME",
        help="compile for this processor, as LLVM names it, or 'generic' for any; default: the one of this machine",
    )
    warm.add_argument("--quiet", action="store_true", help="no notes or progress on stderr")


def _warm(options: argparse.Namespace) -> None:
    from detmap.cli.compiling import warm

    warm(options)
