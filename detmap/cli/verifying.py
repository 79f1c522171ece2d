"""The command verify, which repeats the evaluation of a card and compares the results."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from detmap.cli import detection, panoptic, retrieval
from detmap.cli.batch_cards import batch_card, compare_card
from detmap.cli.cards import ROLES, Scored, Scorer, apart_of, files, files_of, input_of, made_of, manifests_of
from detmap.cli.help import add_option
from detmap.cli.options import Command, add_format, add_plugins
from detmap.cli.output import during, print_tables, say
from detmap.errors import DetmapError, InputError, OptionError

_EPILOG = """\
examples:
  detmap eval gt.json dt.json --card card.json
  detmap verify card.json gt.json dt.json
  detmap verify card.json qrels.txt run.txt

exit code: 0 if every number has the same bits, 1 if something differs (it is listed), 2 if the card cannot be read
"""


def _fill(parser: argparse.ArgumentParser) -> None:
    add_option(parser, "verified CARD", "the file that --card wrote")
    add_option(parser, "inputs INPUT", "the inputs of the command that made it, in its order: GT DETECTIONS", nargs="+")
    for name, flag in files().items():
        role = ROLES.get(name, name).replace("_", " ")
        parser.add_argument(flag, dest=name, metavar="FILE", help=f"where the card's {role} lies now")
    add_option(parser, "--threads N", "number of threads; default: one per processor")
    add_format(parser)


def _verify(options: argparse.Namespace) -> int:
    from detmap import cards

    card = cards.read(options.verified)
    again = during(options, "evaluating again", _again, card, options)
    if isinstance(again, list):
        differences, others = again, []
    else:
        differences, others = cards.compare(card, again), cards.other_versions(card, again)
    rows = [{"part": one.part, "of": one.what, "card": one.card, "found": one.found} for one in differences]
    numbers = len(card["numbers"])
    verdict = f"{len(rows)} differences" if rows else f"the same bits in all {numbers} numbers, and every decision"
    document = {"verified": not rows, "differences": rows, "versions": [one._asdict() for one in others]}
    print_tables(
        [rows], options, f"{options.verified}: {verdict if len(rows) != 1 else '1 difference'}", document, rows
    )
    if others and not options.quiet:
        said = ", ".join(f"{one.what} {one.card} (here {one.found})" for one in others)
        say(f"note: the card was made with {said}" + ("" if rows else ": the numbers are the same"))
    return 1 if rows else 0


def _again(card: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any] | list[Any]:
    """Return a new card of the same evaluation. If the inputs have changed and cannot be scored, return their
    differences.
    """
    from detmap import cards

    commands = {**detection.COMMANDS, **panoptic.COMMANDS, **retrieval.COMMANDS}
    scorers: dict[str, Scorer] = {**detection.SCORERS, **panoptic.SCORERS, **retrieval.SCORERS, **SCORERS}
    command = card["command"]
    if command not in scorers:
        raise InputError(f"is a card of a command that is not verified: {command!r}", source=options.verified)
    parser = argparse.ArgumentParser(prog="detmap verify", exit_on_error=False)
    add_plugins(parser)
    commands[command].fill(parser)
    roles, many = scorers[command].roles, scorers[command].many
    if len(options.inputs) < len(roles) or (len(options.inputs) > len(roles) and not many):
        number = f"{len(roles)} inputs{' or more' if many else ''}"
        raise OptionError(f"a card of detmap {command} needs {number}: {' '.join(roles)}")
    given = parser.parse_args(list(options.inputs))
    actions = {action.dest: action for action in parser._actions if action.dest not in apart_of(command)}
    kept = {}
    for name, value in card["options"].items():
        kept[name] = _read(actions[name], value) if name in actions else None
        if kept[name] is None:
            problem = "is no option, or no value of one, that this version knows"
            raise InputError(problem, source=options.verified, field=name, value=value)
    vars(given).update(kept, quiet=True, card=options.verified, threads=options.threads)
    for name in files():
        if getattr(options, name):
            setattr(given, name, getattr(options, name))
    _find_files(card, given)
    try:
        again = made_of(command, scorers[command].score(given), given)
    except DetmapError as error:
        now = _now(command, scorers[command], given, options.inputs)
        known = {one["role"] for one in now}
        wrong = cards.other_inputs([one for one in card["inputs"] if one.get("role") in known], now, ("sha256",))
        if not wrong:
            raise
        return [*wrong, cards.Difference("evaluation", "", "was scored", str(error))]
    for name in files():  # a card does not state the paths of these files
        if name in card["options"]:
            again["options"][name] = card["options"][name]
    return again


def _now(command: str, scorer: Scorer, given: argparse.Namespace, paths: Sequence[str]) -> list[dict[str, str]]:
    """Return the card entries of the readable inputs, if they cannot be scored."""
    from detmap.batch import find

    found: list[dict[str, str]] = []
    for at, role in enumerate(scorer.roles):
        own = list(paths[at:] if at + 1 == len(scorer.roles) else paths[at : at + 1])
        with contextlib.suppress(DetmapError):
            if role == "predictions" or (role == "detections" and given.sharded):
                found += manifests_of(own)
                role, own = "detections", [entry.path for entry in find(own)]
            found += _readable(role, [path for path in own if path != "-"])
    with contextlib.suppress(DetmapError):
        found += files_of(given, command)
    return found


def _readable(role: str, paths: Sequence[str]) -> list[dict[str, str]]:
    """Return card entries of files. The entry of an unreadable file has no hash; if all files are unreadable, there are
    no entries.
    """
    found = []
    for path in paths:
        try:
            found.append(input_of(role, path, path))
        except DetmapError:
            found.append({"role": role, "name": str(path)})
    return found if any("sha256" in one for one in found) else []


def _find_files(card: Mapping[str, Any], given: argparse.Namespace) -> None:
    """Refuse a card if a file named by its options is missing. The error names the option for the new path."""

    for name, flag in files().items():
        role, path = ROLES.get(name, name), getattr(given, name, None)
        if path and any(one.get("role") == role for one in card["inputs"]) and not os.path.exists(path):
            raise InputError(
                f"was made with a file of {role.replace('_', ' ')} that is not there: {path}",
                source=given.card,
                remedy=f"give {flag} FILE, where it lies now",
            )


def _read(action: argparse.Action, value: Any) -> Any:
    """Return the value of an option from its text on a card; None if the text is invalid."""
    if action.nargs == 0:  # a flag
        return value if type(value) is type(action.const) and value == action.const else None
    if isinstance(action, argparse._AppendAction):
        return value if isinstance(value, list) and all(isinstance(one, str) for one in value) else None
    if action.type is float and isinstance(value, str):  # cards hold floats as text
        from detmap.choices import decimal

        try:
            return decimal(value)
        except ValueError:
            return None
    return value if type(value) is (int if action.type is int else str) else None


def _score_batch(options: argparse.Namespace) -> Scored:
    from detmap import batch
    from detmap.cli.challenges import challenge_of
    from detmap.cli.options import protocol_of

    protocol = protocol_of(options)
    entries, reading, truth = detection.read_several(options, protocol)
    done = batch.score(
        truth.table,
        entries,
        protocol,
        reading=reading,
        splits=challenge_of(options, truth.table)["splits"],
        threads=options.threads,
    )
    return batch_card(options, protocol, truth, entries, list(done))


def _score_compare(options: argparse.Namespace) -> Scored:
    from detmap.cli.options import protocol_of

    protocol = protocol_of(options)
    entries, reading, truth = detection.read_several(options, protocol)
    made = detection.compare_entries(options, protocol, truth.table, entries, reading)
    return compare_card(options, protocol, truth, entries, made)


#: Commands on several files that `detmap verify` can repeat.
SCORERS = {
    "batch": Scorer(("ground_truth", "predictions"), _score_batch, many=True),
    "compare": Scorer(("ground_truth", "predictions"), _score_compare, many=True),
}

COMMANDS = {
    "verify": Command(
        "check an evaluation card: the same inputs, decisions, bits",
        _fill,
        _verify,
        "Score again what an evaluation card is about, and compare: the inputs, every decision, the counts and all numbers, "
        "bit by bit.",
        _EPILOG,
        multiplies=True,
    ),
}
