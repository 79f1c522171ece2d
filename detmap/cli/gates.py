"""Gates: conditions on metrics that decide the exit code of a command, for continuous integration."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from detmap.cli.help import add_option
from detmap.cli.output import say
from detmap.errors import InputError, OptionError, UnknownMetricError, shorten
from detmap.system.whole_files import write

#: Exit code of a command whose result fails a gate.
FAILED = 4

#: Maps a command to the command that makes cards for its baselines.
_MADE_BY = {"eval": "eval", "compare": "eval", "trec": "trec", "pq": "pq"}

#: Maps a model and a metric to the two-sided p-value of the difference from the baseline, or to the reason why there is
#: no p-value.
PValue = Callable[[str, str], "float | str"]


class Gate(NamedTuple):
    """A condition on a metric: the metric is at least `limit`, or drops by at most `limit`."""

    flag: str
    metric: str
    limit: float

    def __str__(self) -> str:
        """Return the option that defines the gate."""
        return f"{self.flag} {self.metric}={self.limit:g}"


class Verdict(NamedTuple):
    """The outcome of a gate for one model, with an explanation."""

    gate: Gate
    model: str
    passed: bool
    says: str

    @property
    def line(self) -> str:
        """The verdict in one line."""
        return f"gate {'passed' if self.passed else 'failed'}: {self.model}{': ' if self.model else ''}{self.says}"


class Gates:
    """The gates that the options of a command define; `card` is the baseline's card, None without ``--against``."""

    def __init__(self, options: argparse.Namespace, command: str) -> None:
        self._options, self._command = options, command
        self.demands = [Gate("--fail-under", *_demand("--fail-under", text)) for text in options.fail_under]
        drops = [Gate("--max-drop", *_demand("--max-drop", text)) for text in options.max_drop]
        self.demands += drops
        for gate in drops:
            if gate.limit < 0:
                raise OptionError(f"{gate}: the largest drop is 0 or more")
        for flag, given in (("--against", options.against), ("--unless-chance", options.unless_chance)):
            if given and not drops:
                raise OptionError(f"{flag} needs --max-drop METRIC=VALUE")
        for flag, given in (("--junit", options.junit), ("--gate-summary", options.gate_summary)):
            if given and not self.demands:
                raise OptionError(f"{flag} needs a gate: --fail-under METRIC=VALUE, or --max-drop")
        if drops and not options.against and command != "compare":
            raise OptionError("--max-drop needs --against CARD, which --card of an earlier run wrote")
        self.card: dict[str, Any] | None = None
        if options.against:
            from detmap import cards

            self.card = cards.read(options.against)
            made_by = _MADE_BY[command]
            if self.card["command"] != made_by:
                raise InputError(
                    f"is a card of detmap {shorten(self.card['command'])[1:-1]}",
                    source=options.against,
                    remedy=f"give one of detmap {made_by}",
                )

    def __bool__(self) -> bool:
        return bool(self.demands)

    def check_names(self, known: Sequence[str], meant: Callable[[str], object]) -> None:
        """Refuse gates on unknown metrics before scoring. `known` are the names of metrics; `meant` tells whether
        another text is a spelling of a metric.
        """
        for gate in self.demands:
            if gate.metric not in known and not meant(gate.metric):
                raise UnknownMetricError(gate.metric, known)

    def check_same(self, rules: Any, inputs: Sequence[Mapping[str, str]]) -> None:
        """Refuse a card with other rules or other ground truth. The first of `inputs` is the entry of the ground truth."""
        if self.card is None:
            return
        from detmap import cards

        different = cards.incomparable(self.card, rules, inputs[0])
        if different:
            said = "; ".join(f"{one.part} {one.what}: {one.card} there, {one.found} here" for one in different[:3])
            raise InputError(
                f"cannot be compared with: {said}",
                source=self._options.against,
                remedy="make the card again, by these rules and on this ground truth",
            )

    def find_input(self, role: str) -> str:
        """Return the path of the file with the name and hash that the card states for an input. Raise `LookupError` if
        there is none.
        """
        from detmap.cards import file_digest

        assert self.card is not None
        own = [one for one in self.card["inputs"] if one.get("role") == role]
        if len(own) != 1:
            raise LookupError(f"the baseline was scored from {len(own)} files")
        name = str(own[0].get("name"))
        given = [self._options.against, *_models(self._options)]
        folders = dict.fromkeys([*(os.path.dirname(path) or os.curdir for path in given), os.curdir])
        for folder in folders:
            path = os.path.join(folder, os.path.basename(name))
            if os.path.exists(path) and file_digest(path) == own[0].get("sha256"):
                return path
        raise LookupError(f"{shorten(name)}, which the card was made from, is in none of {', '.join(folders)}")

    def holds(self, metric: str, value: float) -> bool:
        """Return whether the card has exactly this value of a metric."""
        assert self.card is not None
        return bool(self.card["numbers"].get(metric, {}).get("hex") == float(value).hex())

    def judge(
        self,
        models: Mapping[str, Mapping[str, float]],
        p_value: PValue,
        name_of: Callable[[str], str] = str,
        level: float = 0.95,
    ) -> int:
        """Print whether each model passes each gate, write the requested files, and return the exit code. Without a
        card the first model is the baseline. With ``--unless-chance``, `p_value` is called for drops that exceed their
        limits. `name_of` returns the canonical name of a metric, or raises OptionError.
        """
        if not self.demands:
            return 0
        gates = [gate._replace(metric=name_of(gate.metric)) for gate in self.demands]
        first = next(iter(models))
        verdicts = []
        for model, values in models.items():
            shown = model if len(models) > 1 else ""
            for gate in gates:
                if gate.flag == "--fail-under":
                    verdicts.append(_at_least(gate, shown, values[gate.metric]))
                elif self.card is not None or model != first:
                    name, value = self._baseline(gate.metric, first, models[first])
                    verdicts.append(self._drop(gate, shown, values[gate.metric], name, value, model, p_value, level))
        self._tell(verdicts)
        return 0 if all(one.passed for one in verdicts) else FAILED

    def _baseline(self, metric: str, first: str, values: Mapping[str, float]) -> tuple[str, float]:
        """Return the name of the baseline, and the baseline's value of a metric."""
        if self.card is None:
            return first, values[metric]
        source = self._options.against
        try:
            return os.path.basename(source), float.fromhex(self.card["numbers"][metric]["hex"])
        except (KeyError, ValueError, OverflowError):
            raise InputError(f"holds no number of {metric}", source=source, remedy="make the card with it") from None

    def _drop(
        self,
        gate: Gate,
        shown: str,
        value: float,
        name: str,
        before: float,
        model: str,
        p_value: PValue,
        level: float,
    ) -> Verdict:
        if math.isnan(value) or math.isnan(before):
            which = "" if math.isnan(value) else f" in {name}"
            return Verdict(gate, shown, False, f"{gate.metric} is undefined{which}")
        from decimal import Decimal

        # Computed with decimals, because with floats 0.5 - 0.49 is above 0.01.
        drop = Decimal(repr(float(before))) - Decimal(repr(float(value)))
        limit = Decimal(repr(gate.limit))
        now, then = _told_apart(value, before)
        size = f"{abs(drop):.2g}"
        if drop > limit >= Decimal(size):
            size = str(drop)
        moved = f"{size} {'below' if drop > 0 else 'above'} {then}" if drop else "the same as"
        says = f"{gate.metric} {now} is {moved}{' of' if drop else ''} {name}"
        if drop <= limit:
            return Verdict(gate, shown, True, says)
        says += f", and {gate.limit:g} is allowed"
        if not self._options.unless_chance:
            return Verdict(gate, shown, False, says)
        p = p_value(model, gate.metric)
        if isinstance(p, str):
            return Verdict(gate, shown, False, f"{says}; whether it could be chance is not known: {p}")
        if math.isnan(p):
            return Verdict(gate, shown, False, f"{says}; there is too little data to test whether it is chance")
        from detmap.statistics.bootstrap import alpha_of

        chance = p > alpha_of(level)
        says += f"; p = {p:.2g}: {'it could be chance' if chance else 'it is hardly chance'}"
        return Verdict(gate, shown, chance, says)

    def _tell(self, verdicts: Iterable[Verdict]) -> None:
        verdicts = list(verdicts)
        for one in verdicts:
            if not (one.passed and self._options.quiet):
                say(one.line)
        if self._options.junit:
            write(self._options.junit, _junit(self._command, verdicts))
        if self._options.gate_summary:
            write(self._options.gate_summary, _summary(verdicts).encode())


def add_gates(parser: argparse.ArgumentParser, command: str = "eval") -> None:
    """Add the options of gates to a command."""
    group = parser.add_argument_group("gates", f"demands on the result; exit code {FAILED} where one is not met")
    add_option(
        group,
        "--fail-under METRIC=VALUE",
        "the metric must be at least VALUE, as AP=0.42; may be repeated",
        action="append",
    )
    baseline = "the first file, or the card" if command == "compare" else "the card"
    add_option(
        group,
        "--max-drop METRIC=VALUE",
        f"the metric must not be lower by more than VALUE than in {baseline}, as AP=0.005; may be repeated",
        action="append",
    )
    made_by = _MADE_BY[command]
    add_option(group, "--against CARD", f"the baseline: a card that detmap {made_by} --card wrote")
    add_option(
        group,
        "--unless-chance",
        "allow a larger drop if a paired test does not find it significant at 1 - LEVEL; with --against this needs the "
        "baseline's file, beside the card or the models or in the current folder",
    )
    add_option(group, "--junit FILE", "write the verdicts as XML, as JUnit does")
    add_option(group, "--gate-summary FILE", "write the verdicts as a table in Markdown")


def _demand(flag: str, text: str) -> tuple[str, float]:
    """Return the metric and the value of ``METRIC=VALUE``; the name of a metric may contain an equals sign."""
    from detmap.choices import decimal

    metric, equals, value = text.rpartition("=")
    try:
        limit = decimal(value)
    except ValueError:
        limit = math.nan
    if not metric.strip() or not equals or not math.isfinite(limit):
        raise OptionError(f"{flag} {shorten(text)}: write METRIC=VALUE, as AP=0.42")
    return metric.strip(), limit


def _models(options: argparse.Namespace) -> list[str]:
    """Return the paths of a command's models."""
    given = getattr(options, "runs", None) or getattr(options, "predictions", None) or [options.detections]
    return [path for path in given if path != "-"]


def _at_least(gate: Gate, model: str, value: float) -> Verdict:
    if math.isnan(value):
        return Verdict(gate, model, False, f"{gate.metric} is undefined")
    now, limit = _told_apart(value, gate.limit)
    return Verdict(
        gate,
        model,
        value >= gate.limit,
        f"{gate.metric} {now} is {'below' if value < gate.limit else 'at least'} {limit}",
    )


def _told_apart(value: float, other: float) -> tuple[str, str]:
    """Return two numbers with four decimals, or with all digits if four decimals do not distinguish them."""
    if value == other or f"{value:.4f}" != f"{other:.4f}":
        return f"{value:.4f}", f"{other:.4f}"
    return repr(float(value)), repr(float(other))


def _junit(command: str, verdicts: list[Verdict]) -> bytes:
    """Return the verdicts as JUnit's XML: a test case per gate and model."""
    from xml.etree import ElementTree

    from detmap.results import printable

    failures = sum(not one.passed for one in verdicts)
    suite = {"name": f"detmap {command}", "tests": str(len(verdicts)), "failures": str(failures), "errors": "0"}
    root = ElementTree.Element("testsuite", suite)
    for one in verdicts:
        name = f"{one.gate} {one.model}".strip()
        case = ElementTree.SubElement(root, "testcase", {"classname": f"detmap.{command}", "name": printable(name)})
        if not one.passed:
            ElementTree.SubElement(case, "failure", {"message": printable(one.says)})
    made: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _summary(verdicts: list[Verdict]) -> str:
    """Return the verdicts as a table in Markdown."""
    from detmap.results import to_markdown

    several = any(one.model for one in verdicts)
    rows = [
        {
            "": "passed" if one.passed else "failed",
            "gate": str(one.gate),
            **({"model": one.model} if several else {}),
            "result": one.says,
        }
        for one in verdicts
    ]
    return to_markdown(rows) + "\n"
