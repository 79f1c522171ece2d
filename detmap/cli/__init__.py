"""The command line: options in, tables and files out. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

from detmap import __version__
from detmap.cli import detection, rankings, warm
from detmap.cli.output import say
from detmap.errors import DetmapError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 for input or options that cannot be used, 3 for a part of it."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character gets its name
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, warnings.showwarning, getattr(options, "quiet", False))
            code: int | None = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except DetmapError as error:
        say(f"error: {error}")
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        say(f"error: cannot write the output: {error.strerror or error}")
        return 2
    except MemoryError:
        say("error: out of memory")
        return 2
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    return code or 0


def _show_warning(others: Any, quiet: bool, message: Any, category: type[Warning], *place: Any) -> None:
    """Say a warning of detmap in one line; one of another package is shown as Python does."""
    if not category.__module__.startswith("detmap."):
        others(message, category, *place)
    elif not quiet:
        say(f"note: {message}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="detmap",
        description="Score ranked predictions: mean average precision, equal to the reference to the last bit.",
    )
    parser.add_argument("--version", action="version", version=f"detmap {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    detection.add_commands(commands)
    rankings.add_commands(commands)
    warm.add_commands(commands)
    return parser
