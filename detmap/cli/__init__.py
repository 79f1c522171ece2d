"""The command line. Each command imports the heavy modules that it needs when it runs."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Any

from detmap.cli.help import Parser, add_option
from detmap.cli.inputs import check_files
from detmap.cli.options import Command, add_plugins
from detmap.cli.output import compiling_told, say
from detmap.cli.versions import Version
from detmap.errors import DetmapError

#: The module of every command, in the order of the list of commands in help.
_HOMES = {
    "eval": "detection",
    "batch": "detection",
    "compare": "detection",
    "protocols": "detection",
    "diagnose": "diagnosing",
    "report": "reporting",
    "explain": "explaining",
    "verify": "verifying",
    "convert": "converting",
    "check": "checking",
    "pq": "panoptic",
    "trec": "retrieval",
    "reid": "retrieval",
    "hashing": "retrieval",
    "conventions": "retrieval",
    "warm": "warm",
}


def command(name: str) -> Command:
    """Return a command, importing its module."""
    found: Command = import_module(f"detmap.cli.{_HOMES[name]}").COMMANDS[name]
    return found


def has_use_of_blas_threads(arguments: Sequence[str]) -> bool:
    """Return whether the chosen command may multiply large matrices; True if no command is chosen."""
    chosen = _chosen(arguments)
    return chosen not in _HOMES or command(chosen).multiplies


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 for success, 1 for findings of check, 2 for invalid input or
    options, 3 if part of the input failed, 4 for a failed gate.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escapes characters that the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, warnings.showwarning, "--quiet" in given)
            parser = _parser(given)
            chosen = _chosen(given)
            if chosen in _HOMES:
                parser.asked = f"{parser.prog} {chosen}"
            options = parser.parse_args(command(chosen).settle(given) if chosen in _HOMES else given)
            if not hasattr(options, "run"):
                parser.print_help()
                return 2
            check_files(options)
            told = compiling_told(getattr(options, "quiet", False)) if command(chosen).computes else nullcontext()
            with told:
                code: int | None = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except DetmapError as error:
        say(f"error: {error}")
        return 2
    except BrokenPipeError:  # the reader closed the pipe
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
    """Print a warning of detmap on one line; show warnings of other packages by calling `others`."""
    if not category.__module__.startswith("detmap."):
        others(message, category, *place)
    elif not quiet:
        say(f"note: {message}")


def _parser(given: Sequence[str] = ()) -> Parser:
    """Return the parser. Only the command in `given` gets its options, because adding options imports modules."""
    parser = Parser(
        prog="detmap",
        description="Score ranked predictions: mean average precision, equal to the reference to the last bit.",
    )
    verbose = "--verbose" in given
    parser.add_argument("--version", action=Version, verbose=verbose, help="print the version and exit")
    add_option(parser, "--verbose", "with --version: what is installed, and where")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    chosen = _chosen(given)
    for name in _needed(given):
        one = command(name)
        made = commands.add_parser(name, help=one.help)
        if name == chosen:
            if one.extensible:
                _load_plugins(given)
                add_plugins(made)
            one.add_to(made, given)
    return parser


def _needed(given: Sequence[str]) -> Sequence[str]:
    """Return the commands to import. If no command is chosen, help lists all commands, and --version needs no command."""
    chosen = _chosen(given)
    if chosen in _HOMES and given[0] == chosen:
        return (chosen,)
    return () if "--version" in given and not chosen else tuple(_HOMES)


def _chosen(given: Sequence[str]) -> str:
    """Return the command named on the command line; "" if there is none."""
    return next((word for word in given if not word.startswith("-")), "")


def _load_plugins(given: Sequence[str]) -> None:
    """Load the installed plug-ins and the plug-ins named on the command line; plug-ins may add options."""
    from detmap import plugins

    first = Parser(prog="detmap", add_help=False, allow_abbrev=False)
    add_plugins(first)
    plugins.load_installed()
    plugins.load(first.parse_known_args(list(given))[0].plugin)
