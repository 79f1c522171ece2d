"""Charts of a page as plain geometry: curves and bars over the unit square, and heat tables. Templates draw them as SVG."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.results import printable

#: Where the unit square lies in a drawing of 360 by 300 units.
LEFT, TOP, WIDTH, HEIGHT = 44.0, 12.0, 306.0, 240.0

#: Where the grid of a plot has lines, unless it is said otherwise.
_TENTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

#: Number of models with a colour of their own.
_APART = 6

#: A heat table with more columns has a page's width.
_HALF = 12


@dataclass(frozen=True)
class Plot:
    """Curves and bars over the unit square."""

    #: `title`, `x`, `y`: what it shows, and what the axes are.
    title: str
    x: str
    y: str
    #: The same in a sentence, for those who do not see it.
    says: str
    #: Of each ``label``, ``path`` (SVG) and ``style``: "main", "thin", "ideal", "band" (an `area`, which no legend
    #: names), or that of a model (`styles`).
    lines: list[dict[str, str]] = field(default_factory=list)
    #: Of each ``x``, ``y``, ``width``, ``height`` and ``label``.
    bars: list[dict[str, Any]] = field(default_factory=list)
    #: What the thin lines are, where one of them can be chosen from a list.
    choose: str = ""
    #: `variants_are`, `variants`, `variant`: what can be chosen besides, its names, and the name of what is drawn. Lines
    #: then have ``levels``, their heights in each variant (`heights`), and ``labels``, a label for each, between tabs.
    variants_are: str = ""
    variants: list[str] = field(default_factory=list)
    variant: str = ""
    #: `x_ticks` and `y_ticks`: where in the drawing the grid has lines, and what is said there.
    x_ticks: list[tuple[str, str]] = field(default_factory=lambda: across(_TENTHS, [f"{at:g}" for at in _TENTHS]))
    y_ticks: list[tuple[str, str]] = field(default_factory=lambda: up(_TENTHS, [f"{at:g}" for at in _TENTHS]))
    kind: str = "plot"


def across(places: Sequence[float], labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return ticks of the x-axis at places from 0 to 1."""
    return [(f"{LEFT + WIDTH * at:.1f}", label) for at, label in zip(places, labels, strict=True)]


def up(places: Sequence[float], labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return ticks of the y-axis at places from 0 to 1."""
    return [(f"{TOP + HEIGHT * (1 - at):.1f}", label) for at, label in zip(places, labels, strict=True)]


def styles(count: int) -> list[str]:
    """Return the styles of the lines of so many models: colours and strokes that can be told apart, as far as there are."""
    return ["main"] if count == 1 else [f"c{i}" if i < _APART else "thin" for i in range(count)]


def line(label: str, x: NDArray[np.float64], y: NDArray[np.float64], style: str) -> dict[str, str]:
    """Return a curve through points of the unit square; there is a gap where one is NaN."""
    parts, drawn = [], False
    for a, b in zip((LEFT + WIDTH * x).tolist(), (TOP + HEIGHT * (1 - y)).tolist(), strict=True):
        if a != a or b != b:
            drawn = False
            continue
        parts.append(f"{'L' if drawn else 'M'}{a:.1f} {b:.1f}")
        drawn = True
    return {"label": printable(label), "path": "".join(parts), "style": style, "levels": ""}


def heights(values: NDArray[np.float64]) -> str:
    """Return heights from 0 to 1 as text, a letter each: U+0100 is 0 and U+01F0 is 1, a step a unit of the drawing."""
    return "".join(map(chr, (256 + np.rint(values.clip(0, 1) * HEIGHT)).astype(int).tolist()))


def area(x: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], style: str) -> dict[str, str]:
    """Return what lies between two curves of the unit square, in the colour of a line of that style.

    Where an end is NaN there is nothing.
    """
    kept = np.flatnonzero(~(np.isnan(low) | np.isnan(high)))
    runs = np.split(kept, np.flatnonzero(np.diff(kept) > 1) + 1) if kept.size else []
    parts = []
    for rows in runs:
        ring = [*zip(x[rows], high[rows], strict=True), *zip(x[rows][::-1], low[rows][::-1], strict=True)]
        parts.append("M" + "L".join(f"{LEFT + WIDTH * a:.1f} {TOP + HEIGHT * (1 - b):.1f}" for a, b in ring) + "Z")
    return {"label": "", "path": "".join(parts), "style": f"band {style}", "levels": ""}


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
    """A table whose cells are the darker, the larger their share of a row."""

    #: `title`, `rows_are`, `columns_are`: what it shows, and what rows and columns are.
    title: str
    rows_are: str
    columns_are: str
    #: Their names.
    columns: list[str]
    #: The name of each row, and of its cells ``shown``, ``shade`` (0 to 9), ``same`` (whether it is on the diagonal), and
    #: ``query`` and ``title``: which pictures it leads to, and which images are examples, "" for none.
    rows: list[tuple[str, list[dict[str, Any]]]]
    #: A sentence below it.
    note: str = ""
    #: Whether it is too wide for half of a page.
    broad: bool = False
    kind: str = "heat"


def heat(
    title: str,
    names: Sequence[str],
    matrix: NDArray[np.int64],
    most: int = 24,
    pictured: Container[str] = (),
    examples: Mapping[str, str] | None = None,
) -> Heat:
    """Return a confusion matrix, whose last row and column are background, as a heat table.

    Cells that are `pictured`, by the numbers of row and column as "3-7", lead to pictures; `examples` name images of others.
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
    codes = [*chosen.tolist(), *([None] if rest else []), size]
    for i, (_, cells) in zip(codes, rows, strict=True):
        for j, one in zip(codes, cells, strict=True):
            cell = f"{i}-{j}" if one["shown"] and i != j else ""
            one |= {"query": f"cell={cell}" if cell in pictured else "", "title": (examples or {}).get(cell, "")}
    note = f"The {most} of {size:,} classes that are confused most; the others are taken together." if rest else ""
    return Heat(title, "object", "found as", [*labels, "not found"], rows, note, count > _HALF)
