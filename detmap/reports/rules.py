"""Sections on other rules: AP under other conventions, and whether the order of models holds under other rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from detmap.reports.blocks import Lead, Section, Text
from detmap.reports.tables import sentence, table
from detmap.results import printable

if TYPE_CHECKING:
    from detmap.explanations.presets import Under
    from detmap.explanations.survival import Survival

#: Maximum number of pairs of models, and of rule changes that reverse the order of a pair.
_PAIRS, _CHANGES = 6, 20

_UNDER = "What other tools and benchmarks would make of the same files."
_SURVIVES = "Whether one model stays above the other under other rules, on other data, without suspicious labels."


def under_others(name: str, own: str, value: float, found: Sequence[Under]) -> Section:
    """Return a section on AP under other named protocols. `own` is the report's protocol, and `value` its AP."""
    blocks: list[Any] = [Text("No other protocol compares these shapes.")]
    if found:
        reasons = any(one.reason for one in found)
        rows: list[dict[str, Any]] = [{"protocol": f"{own} (this page)", "AP": value, "difference": 0.0, "rules": 0}]
        rows += [
            {"protocol": one.name, "AP": one.value, "difference": one.difference, "rules": one.rules} for one in found
        ]
        if reasons:
            for row, moves, by in zip(
                rows, ["", *(one.reason for one in found)], [float("nan"), *(one.alone for one in found)], strict=True
            ):
                row |= {"moves it most": moves, "alone by": by}
        note = "rules: how many of them are different"
        if reasons:
            note += "; moves it most: the one that changes AP most if it alone is changed"
        else:
            note += "; which of them moves AP is not looked for in so many detections: detmap explain does that"
        blocks = [table("AP under other conventions", rows, bars={"AP": 1.0}, note=note)]
    return Section("conventions", "Under other conventions", _UNDER, [(printable(name), blocks)])


def survival(made: Survival | str) -> Section:
    """Return a section on whether the order of models holds under other rules, or on why this was not tested."""
    blocks: list[Any] = []
    if isinstance(made, str):
        blocks.append(Text(printable(made)))
    else:
        told = [sentence(one) for one in made.sentences()]
        count = len(made.claims)
        blocks += [Lead(one) for one in told[: min(count, _PAIRS)]]
        for claim in made.claims[:_PAIRS]:
            pair = f"{claim.first} and {claim.second}"
            blocks.append(table(f"Which of {pair} is above", made.table(claim)))
            against = [
                {
                    "with": one.name,
                    "kind": one.kind,
                    f"{made.metric} {claim.first}": one.shown(claim.first),
                    f"{made.metric} {claim.second}": one.shown(claim.second),
                }
                for one in claim.against[:_CHANGES]
            ]
            if against:
                blocks.append(table(f"What ends the order of {pair}, least changes first", against))
        blocks += [Text(one) for one in told[count:]]
    return Section("survival", "Does it survive", _SURVIVES, [("", blocks)])
