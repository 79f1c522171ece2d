"""The command warm: compile every kernel now instead of at first use."""

from __future__ import annotations

import argparse

from detmap.cli.help import add_option
from detmap.cli.options import Command


def _fill(parser: argparse.ArgumentParser) -> None:
    add_option(
        parser,
        "--cpu NAME",
        "compile for this processor, as LLVM names it, or 'generic' for any; default: the one of this machine",
    )
    add_option(parser, "--verbose", "list the processor time that each kernel took to compile")
    add_option(parser, "--quiet", "no notes or progress on stderr")


def _warm(options: argparse.Namespace) -> None:
    from detmap.cli.compiling import warm

    warm(options)


COMMANDS = {
    "warm": Command(
        "compile all kernels ahead of time",
        _fill,
        _warm,
        "Compile every kernel in parallel processes and keep them on disk, so that no later run has to compile: useful in "
        "images of containers and in the shared folder of a cluster. NUMBA_CACHE_DIR=FOLDER chooses the folder.",
        extensible=False,
        computes=False,
    ),
}
