"""What detmap compare shows with --under: whether the order of models survives other rules."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from detmap.cli.output import print_notes, print_tables
from detmap.writing import write

#: So many of the changes that turn an order round are shown.
_SHOWN = 8


def add_explanations(parser: argparse.ArgumentParser) -> None:
    """Add the options that ask why models differ, and whether their order stands."""
    parser.add_argument(
        "--under",
        choices=("all",),
        help="all: does the order of the models survive other conventions, caps, thresholds, orders of equal scores, "
        "draws of images, and labels?",
    )


def show_survival(options: argparse.Namespace, protocol: Any, ground_truth: Any, models: Mapping[str, Any]) -> None:
    """Say whether the order of the models survives."""
    from detmap.explanations import survives

    made = survives(
        ground_truth,
        models,
        protocol,
        metric=options.metric or "AP",
        replicates=options.bootstrap,
        seed=options.seed,
        level=options.confidence,
        threads=options.threads,
    )
    tables: list[list[dict[str, Any]]] = []
    for claim in made.claims:
        tables.append(made.table(claim))
        tables.append(
            [
                {
                    "not so with": one.name,
                    "changes": one.changes,
                    claim.first: one.shown(claim.first),
                    claim.second: one.shown(claim.second),
                }
                for one in claim.against[:_SHOWN]
            ]
        )
    values = ", ".join(f"{name} {value:.4f}" for name, value in made.values.items())
    document = made.to_dict()
    _finish(options, document, tables, f"{made.metric} under {made.protocol.name}: {values}", made.sentences())


def _finish(
    options: argparse.Namespace, document: Any, tables: list[list[dict[str, Any]]], title: str, sentences: list[str]
) -> None:
    if options.out:
        from detmap.results import without_nan

        write(options.out, (json.dumps(without_nan(document), indent=2) + "\n").encode())
    print_tables(tables, options, title, document, tables[0])
    print_notes(sentences, options)
