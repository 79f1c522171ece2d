"""Evaluation cards on the command line: the option ``--card`` and the content of cards."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from detmap.cli.help import add_option

if TYPE_CHECKING:
    from detmap.cards import Numbers
    from detmap.data.tables import GroundTruth
    from detmap.formats.inputs import Input
    from detmap.results import Result

#: Options that affect no metric: paths, display, intervals, speed.
_APART = frozenset(
    (
        *("run", "ground_truth", "detections", "predictions", "qrels", "runs", "file", "plugin", "compare", "tests"),
        *("card", "out", "plot", "arrays", "format", "wide", "quiet", "rows", "rank_by", "hide", "publish", "discreet"),
        *("bootstrap", "bootstrap_needed", "interval", "seed", "confidence", "permutations", "correction", "clusters"),
        *("scheduler", "threads", "fail_fast", "resume", "limit_seconds", "limit_memory"),
        *("fail_under", "max_drop", "against", "unless_chance", "junit", "gate_summary"),
    )
)

#: Options in `_APART` that affect intervals or other numbers on a command's card, but no metric.
_DECIDES = {
    "compare": frozenset(["bootstrap", "interval", "seed", "confidence", "permutations", "correction", "clusters"]),
    "report": frozenset(["clusters"]),
}


def files() -> dict[str, str]:
    """Map each option that names an input file to the flag of `detmap verify` for this file."""
    from detmap.reading.options import flags

    read = {dest: one.flag.name for dest, one in flags().items() if one.option.is_path}
    last = {"clusters": read.pop("clusters"), "gallery": "--gallery"}
    return {**read, "decision_sigmas": "--sigmas", "splits": "--splits", **last}


#: Roles of files on cards by option, for options whose name is not the role.
ROLES = {"decision_sigmas": "sigmas"}


class Scored(NamedTuple):
    """The outcome of a command, with its result, the entries of its inputs on a card, and the counts of records."""

    result: Result | Numbers
    inputs: list[dict[str, str]]
    counts: dict[str, int]


class Truth(NamedTuple):
    """Ground truth, and the paths of the files opened to read it, without files that other options name."""

    input: Input
    table: Any
    opened: set[str]


class Scorer(NamedTuple):
    """How `detmap verify` repeats a command. `roles` are the roles of the command's inputs on a card, and `score` runs
    the command with given options. If `many` is true, the command takes any number of inputs in the last role.
    """

    roles: tuple[str, ...]
    score: Callable[[argparse.Namespace], Scored]
    many: bool = False


def add_card(parser: argparse.ArgumentParser) -> None:
    """Add the option that writes a card."""
    add_option(
        parser,
        "--card FILE",
        "write an evaluation card, which `detmap verify` checks: hashes of the inputs, every decision, all numbers",
    )


def input_of(role: str, path: str, source: Any, table: Any = None, opened: Iterable[str] = ()) -> dict[str, str]:
    """Return the card's entry for an input, see `detmap.cards.input_of`."""
    from detmap import cards

    return cards.input_of(role, path, source, table, opened)


def truth_of(truth: Truth) -> dict[str, str]:
    """Return the card's entry for ground truth."""
    return input_of("ground_truth", str(truth.input.path), truth.input.source, truth.table, truth.opened)


def counts_of(truth: GroundTruth) -> dict[str, int]:
    """Return the numbers of objects, images and categories for a card."""
    images, categories = truth.images.ids, truth.categories.ids
    return {"objects": len(truth), "images": int(images.size), "categories": int(categories.size)}


def found_of(found: Input, table: Any = None) -> dict[str, str]:
    """Return the card's entry for detections, with a hash of other files that affect the reading of detections."""
    return input_of("detections", str(found.path), found.source, table, found.beside())


def manifests_of(predictions: Sequence[str]) -> list[dict[str, str]]:
    """Return the card's entries for the manifests among the given paths."""
    from detmap.batch.finding import is_manifest

    return [input_of("manifest", path, path) for path in predictions if is_manifest(path)]


def files_of(options: argparse.Namespace, command: str) -> list[dict[str, str]]:
    """Return the card's entries for the files named by options that affect the command's numbers."""

    apart = apart_of(command)
    given = {name: getattr(options, name, None) for name in files() if name not in apart}
    return [
        input_of(ROLES.get(name, name), path, path) for name, path in given.items() if path and os.path.exists(path)
    ]


def paths_of(options: argparse.Namespace) -> list[str]:
    """Return the paths of input files that options name."""
    return [path for path in (getattr(options, name, None) for name in files()) if isinstance(path, str)]


def apart_of(command: str) -> frozenset[str]:
    """Return the options that do not affect the numbers of a command."""
    return _APART - _DECIDES.get(command, frozenset())


def made_of(command: str, scored: Scored, options: argparse.Namespace) -> dict[str, Any]:
    """Return the card of a command's outcome."""
    from detmap import cards

    # A flag that was not given has the value False or, if it sets a decision of the protocol, None.
    given = {
        name: value
        for name, value in sorted(vars(options).items())
        if name not in apart_of(command) and value is not None and (value is not False or name.startswith("decision_"))
    }
    return cards.make(command, scored.result, scored.inputs, given, scored.counts)


def write_card(command: str, scored: Scored, options: argparse.Namespace) -> None:
    """Write the requested card."""
    from detmap import cards
    from detmap.system.whole_files import write

    write(options.card, cards.to_json(made_of(command, scored, options)))
