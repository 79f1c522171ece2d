"""Charts as plain geometry: curves and bars over the unit square, and heat tables. Templates draw them as SVG."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.results import printable

#: Position of the unit square in a drawing of 360 by 300 units.
LEFT, TOP, WIDTH, HEIGHT = 44.0, 12.0, 306.0, 240.0

#: Default grid lines of a plot.
_TENTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

#: Maximum number of models drawn in different colours.
_APART = 6

#: Maximum number of columns of a heat table that fits half the width of a page.
_HALF = 12


@dataclass(frozen=True)
class Plot:
    """Curves and bars over the unit square."""

    #: Title, and labels of the axes.
    title: str
    x: str
    y: str
    #: A sentence that describes the plot, for screen readers.
    says: str
    #: Each line has ``label``, ``path`` (SVG) and ``style``. A style is "main", "thin", "ideal", "band" (an `area`,
    #: which is not in the legend), or one from `styles`.
    lines: list[dict[str, str]] = field(default_factory=list)
    #: Each bar has ``x``, ``y``, ``width``, ``height`` and ``label``.
    bars: list[dict[str, Any]] = field(default_factory=list)
    #: What a thin line shows, such as a "class", if readers can select a line; else empty.
    choose: str = ""
    #: If readers can select a variant of the lines, `variants_are` says what varies, such as the IoU threshold.
    #: `variants` are the names of the variants, and `variant` is the one drawn first. Each line then has ``levels``
    #: (the `heights` of all its variants) and ``labels`` (the tab-separated labels of its variants).
    variants_are: str = ""
    variants: list[str] = field(default_factory=list)
    variant: str = ""
    #: Grid positions in the drawing, with their labels.
    x_ticks: list[tuple[str, str]] = field(default_factory=lambda: across(_TENTHS, [f"{at:g}" for at in _TENTHS]))
    y_ticks: list[tuple[str, str]] = field(default_factory=lambda: up(_TENTHS, [f"{at:g}" for at in _TENTHS]))
    kind: str = "plot"


def across(places: Sequence[float], labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return ticks of the x-axis at positions from 0 to 1."""
    return [(f"{LEFT + WIDTH * at:.1f}", label) for at, label in zip(places, labels, strict=True)]


def up(places: Sequence[float], labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return ticks of the y-axis at positions from 0 to 1."""
    return [(f"{TOP + HEIGHT * (1 - at):.1f}", label) for at, label in zip(places, labels, strict=True)]


def styles(count: int) -> list[str]:
    """Return line styles for `count` models: distinct colours and strokes for the first `_APART`, then "thin"."""
    return ["main"] if count == 1 else [f"c{i}" if i < _APART else "thin" for i in range(count)]


def line(label: str, x: NDArray[np.float64], y: NDArray[np.float64], style: str) -> dict[str, str]:
    """Return a curve through points of the unit square, with gaps at NaN."""
    parts, drawn = [], False
    for a, b in zip((LEFT + WIDTH * x).tolist(), (TOP + HEIGHT * (1 - y)).tolist(), strict=True):
        if a != a or b != b:
            drawn = False
            continue
        parts.append(f"{'L' if drawn else 'M'}{a:.1f} {b:.1f}")
        drawn = True
    return {"label": printable(label), "path": "".join(parts), "style": style, "levels": ""}


def heights(values: NDArray[np.float64]) -> str:
    """Encode each height from 0 to 1 as one character from U+0100 to U+01F0."""
    return "".join(map(chr, (256 + np.rint(values.clip(0, 1) * HEIGHT)).astype(int).tolist()))


def area(x: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], style: str) -> dict[str, str]:
    """Return the area between two curves of the unit square, with gaps at NaN, in the colour of a line style."""
    kept = np.flatnonzero(~(np.isnan(low) | np.isnan(high)))
    runs = np.split(kept, np.flatnonzero(np.diff(kept) > 1) + 1) if kept.size else []
    parts = []
    for rows in runs:
        ring = [*zip(x[rows], high[rows], strict=True), *zip(x[rows][::-1], low[rows][::-1], strict=True)]
        parts.append("M" + "L".join(f"{LEFT + WIDTH * a:.1f} {TOP + HEIGHT * (1 - b):.1f}" for a, b in ring) + "Z")
    return {"label": "", "path": "".join(parts), "style": f"band {style}", "levels": ""}


def bar(label: str, low: float, high: float, value: float) -> dict[str, Any]:
    """Return a bar on the x-axis, given in coordinates of the unit square."""
    return {
        "label": printable(label),
        "x": f"{LEFT + WIDTH * low + 1:.1f}",
        "y": f"{TOP + HEIGHT * (1 - value):.1f}",
        "width": f"{max(WIDTH * (high - low) - 2, 1):.1f}",
        "height": f"{HEIGHT * value:.1f}",
    }


@dataclass(frozen=True)
class Heat:
    """A table whose cells are shaded by their share of the row's sum."""

    #: Title, and meaning of rows and columns.
    title: str
    rows_are: str
    columns_are: str
    #: Names of the columns.
    columns: list[str]
    #: Each row has a name and cells. A cell has ``shown`` (its text), ``shade`` (its darkness, 0 to 9), ``same``
    #: (whether it is on the diagonal), ``query`` (selects linked pictures) and ``title`` (names example images).
    #: ``query`` and ``title`` may be empty.
    rows: list[tuple[str, list[dict[str, Any]]]]
    #: A sentence below the table.
    note: str = ""
    #: Whether the table is too wide for half of a page.
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
    """Return a confusion matrix as a heat table; its last row and column are background.

    Cells in `pictured`, such as "3-7" for row 3 and column 7, link to pictures; `examples` maps cells to names of
    images. With more than `most` classes only the most confused classes are shown; all other classes share one row and
    one column.
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
