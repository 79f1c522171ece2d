"""Statistics of the checked tables, with small plots: objects and detections per image, sizes, aspects, scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.context import Facts
from detmap.checks.inputs import Side

#: Number of bars in a plot.
BARS = 16

#: Maximum magnitude of plotted values, because differences between larger values could be infinite.
_FARTHEST = 1e100

_BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Figure:
    """The distribution of a quantity.

    Attributes
    ----------
    name : str
        Name of the quantity.
    count : int
        Number of values.
    low, quarter, median, three_quarters, high : float
        Minimum, quartiles, and maximum.
    edges : tuple of float
        Edges of the bars of the plot.
    bars : tuple of int
        Number of values in each bar.
    """

    name: str
    count: int
    low: float
    quarter: float
    median: float
    three_quarters: float
    high: float
    edges: tuple[float, ...]
    bars: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as plain values."""
        return {**vars(self), "edges": list(self.edges), "bars": list(self.bars)}

    def row(self) -> dict[str, str]:
        """Return the figure as a table row."""
        numbers = {"least": self.low, "quarter": self.quarter, "median": self.median}
        numbers |= {"three quarters": self.three_quarters, "most": self.high}
        shown = {name: number(value) for name, value in numbers.items()}
        return {"": self.name, **shown, "distribution": self.plot()}

    def plot(self) -> str:
        """Return the plot as one line of characters; empty bars are blanks."""
        most = max(self.bars, default=0)
        if not most:
            return ""
        return "".join(
            " " if not n else _BLOCKS[min(int(n / most * len(_BLOCKS)), len(_BLOCKS) - 1)] for n in self.bars
        )


def number(value: float) -> str:
    """Return a number as text with three significant digits; whole numbers have no fraction."""
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.0f}" if 100 <= abs(value) < 1e9 else f"{value:.3g}"


def make(facts: Facts) -> list[Figure]:
    """Return the distributions of the checked tables."""
    return [made for one in facts.sides for made in _of_side(facts, one) if made is not None]


def _of_side(facts: Facts, side: Side) -> Iterator[Figure | None]:
    if not len(side):
        return
    what = side.unit + "s"
    counts = np.bincount(side.image[side.image >= 0], minlength=facts.truth.on.images.ids.size)
    yield figure_of(f"{what} per {facts.kind.scene}", counts.astype(np.float64))
    width, height = side.columns[2:] if side.sized.all() else side.columns[2:, side.sized]
    yield figure_of(f"size of {what}, root of the area", np.sqrt(width * height), log=True)
    yield figure_of(f"aspect of {what}, width / height", width / height, log=True)
    if side is facts.found:
        yield figure_of("scores", facts.detections.scores)


def figure_of(name: str, values: NDArray[Any], *, log: bool = False) -> Figure | None:
    """Return the distribution of the finite values, None if there are none; with `log`, the edges of the bars are
    spaced logarithmically.
    """
    values = np.sort(values)  # NaN comes last
    values = values[np.searchsorted(values, -np.inf, "right") : np.searchsorted(values, np.inf)]
    if not values.size or max(-values[0], values[-1]) > _FARTHEST:
        return None
    place = np.array([0.25, 0.5, 0.75]) * (values.size - 1)
    below, above = values[np.floor(place).astype(np.int64)], values[np.ceil(place).astype(np.int64)]
    quarter, median, three_quarters = (below + (above - below) * (place % 1)).tolist()
    low, high = float(values[0]), float(values[-1])
    if not log and low == np.floor(low) and high - low < BARS and (values == np.floor(values)).all():
        edges = np.arange(low - 0.5, high + 1)
    elif low == high:
        edges = np.array([low, low + 1.0])
    elif log and low > 0:
        edges = np.geomspace(low, high, BARS + 1)
    else:
        edges = np.linspace(low, high, BARS + 1)
    bars = np.diff(np.searchsorted(values, edges[1:-1]), prepend=0, append=values.size)
    return Figure(
        name, int(values.size), low, quarter, median, three_quarters, high, tuple(edges.tolist()), tuple(bars.tolist())
    )
