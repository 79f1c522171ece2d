"""Decisions of an evaluation of panoptic segmentation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from detmap import decisions
from detmap.decisions import Flag, decision
from detmap.errors import is_integer, shorten


def _wrong_parts(parts: Any) -> str | None:
    return None if is_integer(parts) and parts >= 1 else f"parts must be an integer of at least 1, not {shorten(parts)}"


@decisions.documented
@dataclass(frozen=True)
class Rules:
    """The decisions in computing panoptic quality from matched segments. Frozen."""

    name: str = field(default="panoptic", metadata=decision("What the rules are called."))
    parts: int = field(
        default=1,
        metadata=decision(
            "Number of parts into which the images are split, in their order; the IoUs of each part are summed first, and "
            "then the parts. It changes the last bits alone. panopticapi takes one part per core of the machine, hotcoco "
            "and vernier one per image.",
            "mean",
            wrong=_wrong_parts,
            phrase=lambda rules: f"sums in {rules.parts} part{'s' if rules.parts > 1 else ''}",
            always=True,
            flag=Flag(
                name="--parts",
                metavar="N",
                read=int,
                help="sum in N parts, as panopticapi does on N cores: the last bits follow from it; default: 1",
            ),
        ),
    )

    def __post_init__(self) -> None:
        decisions.settle(self)

    def describe(self) -> str:
        """Return the decisions as one line of text, for display next to a score."""
        return decisions.describe(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all decisions by name."""
        return decisions.written(self)
