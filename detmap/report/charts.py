"""Charts of a page as plain geometry: curves and bars over the unit square, and heat tables. Templates draw them as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.results import printable

#: Where the unit square lies in a drawing of 360 by 300 units.
LEFT, TOP, WIDTH, HEIGHT = 44.0, 12.0, 306.0, 240.0

#: A heat table with more columns has a page's width.
_HALF = 12


@dataclass(frozen=True)
class Plot:
    """Curves and bars over the unit square.

    Attributes
    ----------
    title, x, y : str
        What it shows, and what the axes are.
    says : str
        The same in a sentence, for those who do not see it.
    lines : list of dict
        Of each ``label``, ``path`` (SVG) and ``style`` ("main", "thin" or "ideal").
    bars : list of dict
        Of each ``x``, ``y``, ``width``, ``height`` and ``label``.
    choose : str
        What the thin lines are, where one of them can be chosen from a list.
    """

    title: str
    x: str
    y: str
    says: str
    lines: list[dict[str, str]] = field(default_factory=list)
    bars: list[dict[str, Any]] = field(default_factory=list)
    choose: str = ""
    kind: str = "plot"


def line(label: str, x: NDArray[np.float64], y: NDArray[np.float64], style: str) -> dict[str, str]:
    """Return a curve through points of the unit square; there is a gap where one is NaN."""
    parts, drawn = [], False
    for a, b in zip((LEFT + WIDTH * x).tolist(), (TOP + HEIGHT * (1 - y)).tolist(), strict=True):
        if a != a or b != b:
            drawn = False
            continue
        parts.append(f"{'L' if drawn else 'M'}{a:.1f} {b:.1f}")
        drawn = True
    return {"label": printable(label), "path": "".join(parts), "style": style}


def bar(label: str, low: float, high: float, value: float) -> dict[str, Any]:
    """Return a bar from the x-axis up, all in the unit square."""
    return {
        "label": printable(label),
        "x": f"{LEFT + WIDTH * low + 1:.1f}",
        "y": f"{TOP + HEIGHT * (1 - value):.1f}",
        "width": f"{max(WIDTH * (high - low) - 2, 1):.1f}",
        "height": f"{HEIGHT * value:.1f}",
    }


@dataclass(frozen=True)
class Heat:
    """A table whose cells are the darker, the larger their share of a row.

    Attributes
    ----------
    title, rows_are, columns_are : str
        What it shows, and what rows and columns are.
    columns : list of str
        Their names.
    rows : list of (str, list of dict)
        The name of each row, and of its cells ``shown``, ``shade`` (0 to 9) and ``same`` (whether it is on the diagonal).
    note : str
        A sentence below it.
    broad : bool
        Whether it is too wide for half of a page.
    """

    title: str
    rows_are: str
    columns_are: str
    columns: list[str]
    rows: list[tuple[str, list[dict[str, Any]]]]
    note: str = ""
    broad: bool = False
    kind: str = "heat"


def heat(title: str, names: Sequence[str], matrix: NDArray[np.int64], most: int = 24) -> Heat:
    """Return a confusion matrix, whose last row and column are background, as a heat table.

    Of more than `most` classes those that are confused most are shown; the others together are a row and a column.
    """
    size = len(names)
    inner = matrix[:size, :size]
    wrong = inner.sum(axis=0) + inner.sum(axis=1) - 2 * np.diag(inner)
    chosen = np.arange(size)
    rest = 0
    if size > most:
        chosen = np.sort(np.argsort(-wrong, kind="stable")[:most])
        rest = size - most
    group = np.full(size + 1, chosen.size)
    group[chosen] = np.arange(chosen.size)
    group[size] = chosen.size + bool(rest)
    count = chosen.size + bool(rest) + 1
    small = np.zeros((count, count), np.int64)
    np.add.at(small, (group[:, None], group[None, :]), matrix)
    labels = [printable(names[k]) for k in chosen.tolist()]
    labels += [f"{rest:,} others"] if rest else []
    total = np.maximum(small.sum(axis=1), 1)
    shade = np.where(small > 0, np.clip(np.ceil(9 * small / total[:, None]), 1, 9), 0).astype(int)
    rows = [
        (
            name,
            [
                {"shown": f"{n:,}" if n else "", "shade": depth, "same": i == j}
                for j, (n, depth) in enumerate(zip(small[i].tolist(), shade[i].tolist(), strict=True))
            ],
        )
        for i, name in enumerate([*labels, "nothing"])
    ]
    note = f"The {most} of {size:,} classes that are confused most; the others are taken together." if rest else ""
    return Heat(title, "object", "found as", [*labels, "not found"], rows, note, count > _HALF)
