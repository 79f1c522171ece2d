"""Evaluation cards of several files: the output of ``--card`` of ``detmap batch`` and ``detmap compare``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from detmap.cli.cards import Scored, Truth, counts_of, files_of, found_of, manifests_of, truth_of
from detmap.cli.inputs import reading_of
from detmap.errors import OptionError


def check_card(options: argparse.Namespace) -> None:
    """Refuse a card that would reveal numbers hidden by --hide or --discreet. Also refuse standard input, because a
    card has hashes of files.
    """
    if not options.card:
        return
    if "-" in (options.ground_truth, *options.predictions):
        raise OptionError("--card needs files, as it holds their hashes: write standard input (-) to one")
    if getattr(options, "hide", None) or getattr(options, "discreet", False):
        raise OptionError("--card holds every number: it goes with neither --hide nor --discreet")


def batch_card(
    options: argparse.Namespace, protocol: Any, truth: Truth, entries: Sequence[Any], outcomes: Sequence[Any]
) -> Scored:
    """Return the content of a card of many files. It has all metrics of each file, and a hash of its per-category
    metrics.
    """
    from detmap.shapes import find

    place = {entry.path: at for at, entry in enumerate(entries)}  # outcomes are in arbitrary order
    done = sorted(outcomes, key=lambda one: place[one.entry.path])
    scored = [one for one in done if not one.error]
    numbers = {f"{one.entry.name}: {name}": value for one in scored for name, value in one.items()}
    notices = {f"{one.entry.name}: {code}": count for one in scored for code, count in one.notices.items()}
    arrays = {}
    if find(protocol.iou_type).same_bits:
        arrays = {f"{one.entry.name}: categories": _digest(one.rows()) for one in scored}
    counts = {"files": len(done), "files with errors": len(done) - len(scored)}
    return _scored("batch", options, protocol, truth, [one.entry for one in done], counts, numbers, notices, arrays)


def compare_card(options: argparse.Namespace, protocol: Any, truth: Truth, entries: Any, made: Any) -> Scored:
    """Return the content of a card of a comparison: all models, and differences with intervals and p-values."""
    document = made.to_dict()
    numbers = {
        f"{row['model']}: {name}": float(row[name])
        for row in document["models"]
        for name in (made.metric, "low", "high")
    }
    for row in (*document["differences"], *document["categories"]):
        of = "" if row["category"] is None else f" {row['category']}"
        for name in ("difference", "low", "high", "p", "adjusted"):
            numbers[f"{row['first']} to {row['second']}{of}: {name}"] = float(row[name])
    notices = {f"{name}: {code}": count for name, found in made.notices.items() for code, count in found.items()}
    return _scored("compare", options, protocol, truth, entries, {"files": len(entries)}, numbers, notices, {})


def _scored(
    command: str,
    options: argparse.Namespace,
    protocol: Any,
    truth: Truth,
    entries: Sequence[Any],
    counts: Mapping[str, int],
    numbers: Mapping[str, float],
    notices: Mapping[str, int],
    arrays: Mapping[str, str],
) -> Scored:
    from detmap.cards import Numbers

    reading = reading_of(options, "detections", protocol.iou_type)
    inputs = [
        truth_of(truth),
        *manifests_of(options.predictions),
        *(found_of(entry.input(reading)) for entry in entries),
        *files_of(options, command),
    ]
    return Scored(Numbers(protocol, numbers, notices, arrays), inputs, {**counts, **counts_of(truth.table)})


def _digest(rows: Any) -> str:
    """Return the hash of rows of plain values, written as JSON with exact floats."""
    import hashlib

    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
