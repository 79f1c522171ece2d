"""Evaluation cards on the command line: the option that writes one, and the command verify, which checks one."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from detmap.cli.options import Command, add_format, add_plugins
from detmap.cli.output import during, print_tables, say
from detmap.errors import DetmapError, InputError, OptionError

if TYPE_CHECKING:
    from detmap.cards import Numbers
    from detmap.results import Result

#: Options that decide no number: where things are, what is shown, how fast.
_APART = frozenset(
    [
        "run",
        "ground_truth",
        "detections",
        "qrels",
        "runs",
        "file",
        "card",
        "bootstrap",
        "bootstrap_needed",
        "interval",
        "seed",
        "confidence",
        "scheduler",
        "threads",
        "format",
        "quiet",
        "rows",
        "out",
        "plot",
        "arrays",
        "plugin",
        "compare",
        "tests",
        "predictions",
        "rank_by",
        "fail_fast",
        "resume",
        "hide",
        "publish",
        "limit_seconds",
        "limit_memory",
        "discreet",
        "permutations",
        "correction",
        "clusters",
    ]
)

#: Of these, what decides numbers of a command all the same.
_DECIDES = {
    "compare": frozenset(["bootstrap", "interval", "seed", "confidence", "permutations", "correction", "clusters"]),
    "report": frozenset(["clusters"]),
}

#: Options that name a file, which is an input of its own; their flags on `detmap verify`.
_FILES = {
    "image_set": "--image-set",
    "classes": "--classes",
    "class_map": "--class-map",
    "image_sizes": "--image-sizes",
    "decision_sigmas": "--sigmas",
    "splits": "--splits",
    "clusters": "--clusters",
    "gallery": "--gallery",
}

#: What such a file is called on a card, where that is not the name of its option.
_ROLES = {"decision_sigmas": "sigmas"}


class Scored(NamedTuple):
    """What a command scored: its result, its inputs as a card names them, and how many of what there were."""

    result: Result | Numbers
    inputs: list[dict[str, str]]
    counts: dict[str, int]


class Truth(NamedTuple):
    """Ground truth, and the paths of the files that were opened to read it, but for those that options name."""

    table: Any
    opened: set[str]


class Scorer(NamedTuple):
    """How a command scores again: the roles of its inputs, and what scores the inputs that its options name.

    `many`: there may be several inputs of the last role.
    """

    roles: tuple[str, ...]
    score: Callable[[argparse.Namespace], Scored]
    many: bool = False


def add_card(parser: argparse.ArgumentParser) -> None:
    """Add the option that writes a card."""
    parser.add_argument(
        "--card",
        metavar="FILE",
        help="write an evaluation card, which `detmap verify` checks: hashes of the inputs, every decision, all numbers",
    )


def input_of(role: str, path: str, source: Any, table: Any = None, opened: Iterable[str] = ()) -> dict[str, str]:
    """Return an input as a card names it.

    `source` is its path, or the bytes of what could be read only once; `opened` are the files that were read for it.
    """
    from detmap import cards

    made = {"role": role, "name": "standard input" if path == "-" else os.path.basename(str(path).rstrip("/")) or "/"}
    made["sha256"] = cards.file_digest(source)
    if beside := cards.beside_digest(source, opened):
        made["beside"] = beside
    return made if table is None else {**made, "content": cards.table_digest(table)}


def inputs_of(role: str, paths: Sequence[str], format: str | None) -> list[dict[str, str]]:
    """Return files of detections as a card names them, with what lies beside them and decides how they are read."""
    from detmap.formats.files import beside

    return [input_of(role, path, path, opened=beside(path, format)) for path in paths]


def manifests_of(predictions: Sequence[str]) -> list[dict[str, str]]:
    """Return the lists of files among what was given, as inputs of their own."""
    from detmap.batch.finding import is_manifest

    return [input_of("manifest", path, path) for path in predictions if is_manifest(path)]


def files_of(options: argparse.Namespace, command: str) -> list[dict[str, str]]:
    """Return the files that options name and that decide numbers of a command, as inputs."""
    import os

    apart = apart_of(command)
    given = {name: getattr(options, name, None) for name in _FILES if name not in apart}
    return [
        input_of(_ROLES.get(name, name), path, path) for name, path in given.items() if path and os.path.exists(path)
    ]


def paths_of(options: argparse.Namespace) -> list[str]:
    """Return the paths that options of reading name."""
    return [path for path in (getattr(options, name, None) for name in _FILES) if isinstance(path, str)]


def apart_of(command: str) -> frozenset[str]:
    """Return the options of a command that decide no number."""
    return _APART - _DECIDES.get(command, frozenset())


def made_of(command: str, scored: Scored, options: argparse.Namespace) -> dict[str, Any]:
    """Return the card of what a command scored."""
    from detmap import cards

    # A flag that was not given is False, but where it is a decision, which is None then.
    given = {
        name: value
        for name, value in sorted(vars(options).items())
        if name not in apart_of(command) and value is not None and (value is not False or name.startswith("decision_"))
    }
    return cards.make(command, scored.result, scored.inputs, given, scored.counts)


def write_card(command: str, scored: Scored, options: argparse.Namespace) -> None:
    """Write the card that was asked for."""
    from detmap import cards
    from detmap.system.whole_files import write

    write(options.card, cards.to_json(made_of(command, scored, options)))


_EPILOG = """\
examples:
  detmap eval gt.json dt.json --card card.json
  detmap verify card.json gt.json dt.json
  detmap verify card.json qrels.txt run.txt

exit code: 0 if every number has the same bits, 1 if something differs (it is listed), 2 if the card cannot be read
"""


def _fill(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Score again what an evaluation card is about, and compare: the inputs, every decision, the counts and all numbers, "
        "bit by bit."
    )
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run=_verify)
    parser.add_argument("verified", metavar="CARD", help="the file that --card wrote")
    parser.add_argument(
        "inputs", metavar="INPUT", nargs="+", help="the inputs of the command that made it, in its order: GT DETECTIONS"
    )
    for name, flag in _FILES.items():
        role = _ROLES.get(name, name).replace("_", " ")
        parser.add_argument(flag, dest=name, metavar="FILE", help=f"where the card's {role} lies now")
    parser.add_argument("--threads", type=int, metavar="N", help="number of threads; default: one per processor")
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
    """Return the card of the same evaluation, made now; where the inputs are others that cannot be scored, what differs."""
    from detmap import cards
    from detmap.cli import batch_cards, detection, retrieval

    commands = {**detection.COMMANDS, **retrieval.COMMANDS}
    scorers: dict[str, Scorer] = {**detection.SCORERS, **retrieval.SCORERS, **batch_cards.SCORERS}
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
    for name in _FILES:
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
    for name in _FILES:  # where such a file lies is not what it says
        if name in card["options"]:
            again["options"][name] = card["options"][name]
    return again


def _now(command: str, scorer: Scorer, given: argparse.Namespace, paths: Sequence[str]) -> list[dict[str, str]]:
    """Return the inputs that there are now, as far as they can be read, where what is in them cannot be scored."""
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
    """Return files as inputs, those that cannot be read without a hash; none where that is true of all."""
    found = []
    for path in paths:
        try:
            found.append(input_of(role, path, path))
        except DetmapError:
            found.append({"role": role, "name": str(path)})
    return found if any("sha256" in one for one in found) else []


def _number_of(card: Mapping[str, Any], role: str) -> int:
    return sum(one.get("role") == role for one in card["inputs"])


def _find_files(card: Mapping[str, Any], given: argparse.Namespace) -> None:
    """Refuse a card whose further inputs lie elsewhere now, and say which option finds them."""
    import os

    for name, flag in _FILES.items():
        role, path = _ROLES.get(name, name), getattr(given, name, None)
        if path and _number_of(card, role) and not os.path.exists(path):
            raise InputError(
                f"was made with a file of {role.replace('_', ' ')} that is not there: {path}",
                source=given.card,
                remedy=f"give {flag} FILE, where it lies now",
            )


def _read(action: argparse.Action, value: Any) -> Any:
    """Return what an option was given as, by what the card says; None where it cannot have been given so."""
    if action.nargs == 0:  # a flag
        return value if type(value) is type(action.const) and value == action.const else None
    if isinstance(action, argparse._AppendAction):
        return value if isinstance(value, list) and all(isinstance(one, str) for one in value) else None
    if action.type is float and isinstance(value, str):  # floats stand on cards as text
        from detmap.choices import decimal

        try:
            return decimal(value)
        except ValueError:
            return None
    return value if type(value) is (int if action.type is int else str) else None


COMMANDS = {"verify": Command("check an evaluation card: the same inputs, decisions, bits", _fill)}
