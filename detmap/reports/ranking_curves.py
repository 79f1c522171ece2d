"""Curves of a report on rankings: recall and precision by rank, with intervals over queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.reports import charts
from detmap.reports.blocks import Section, Text
from detmap.reports.charts import Plot, area, line
from detmap.results import printable
from detmap.retrieval.scoring import KEPT_HITS
from detmap.statistics.distributions import t_quantile

if TYPE_CHECKING:
    from detmap.reports.rankings import Model
    from detmap.retrieval import RankingResult

Values = NDArray[np.float64]

#: Recalls at which precision is averaged over queries, and maximum rank in curves by rank.
_RECALLS = np.linspace(0, 1, 51)
_DEEPEST = 1000

#: Ranks labelled on a logarithmic axis.
_NAMED = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

#: Text in place of curves that cannot be drawn.
_UNKEPT = f"Curves are drawn where all ranks are scored, of up to {KEPT_HITS:,} hits."

#: Minimum number of queries for the interval of a curve.
FEWEST = 10


def curves(models: Sequence[Model], level: float) -> Section:
    """Return the curves of all models in shared plots: CMC, precision and recall by rank, precision by recall."""
    given = [Curves.of(model.result) for model in models]
    kept = [one for one in given if one is not None]
    deepest = max((one.deepest for one in kept), default=1)
    names = [printable(model.name) for model in models]
    style = charts.styles(len(models))
    if len(models) == 1:
        names, style = ["mean over the queries"], ["main"]
    drawn = list(zip(names, style, given, models, strict=True))
    blocks: list[Any] = [_found_by_rank(drawn, deepest, level)]
    for title, of in (("Precision by rank", "precision"), ("Recall by rank", "recall")):
        by_rank = [
            (name, one_style, one.ranks, getattr(one, of)) for name, one_style, one, _ in drawn if one is not None
        ]
        if by_rank:
            says = f"{of.capitalize()} among the first items, the mean over the queries that have relevant items."
            blocks.append(_ranked_plot(title, of, says, by_rank, deepest, level))
    if kept:
        lines, bands = [], []
        for name, one_style, one, _ in drawn:
            if one is not None:
                mean, low, high = band(one.at_recalls, level)
                bands.append(area(_RECALLS, low, high, one_style))
                lines.append(line(name, _RECALLS, mean, one_style))
        says = "The largest precision at each recall or more, the mean over the queries that have relevant items."
        blocks.append(_plot("Precision by recall", "recall", "precision", says, lines, bands, level))
    if len(kept) < len(given):
        blocks.append(Text(_UNKEPT))
    return Section("curves", "Curves", "How much is found by which rank.", [("", blocks)])


_Drawn = Sequence[tuple[str, str, "Curves | None", "Model"]]

#: A curve: name, style, ranks, and the value of each query at each rank.
_Ranked = tuple[str, str, NDArray[np.int64], Values]


def _found_by_rank(drawn: _Drawn, deepest: int, level: float) -> Plot | Text:
    """Return a plot of CMC, the share of queries with a hit up to each rank."""
    plain = [
        (name, style, one.ranks, one.first) for name, style, one, model in drawn if one is not None and _is_plain(model)
    ]
    if len(plain) == len(drawn):
        says = "The share of the queries with relevant items whose first one stands at this rank or above."
        return _ranked_plot("CMC: something is found by rank", "queries", says, plain, deepest, level)
    longest = max((model.result.cmc.size for _, _, _, model in drawn if model.result.cmc is not None), default=1)
    deepest = min(max(longest, 2), _DEEPEST)
    lines = []
    for name, style, _, model in drawn:
        if model.result.cmc is not None:
            values = model.result.cmc[:deepest]
            lines.append(line(name, _place(np.arange(1, values.size + 1), deepest), values, style))
    if not lines:
        return Text("CMC was not evaluated.")
    says = f"CMC as the convention {drawn[0][3].result.convention.name} has it."
    return Plot("CMC", "rank", "queries", printable(says), lines, x_ticks=_rank_ticks(deepest))


def _is_plain(model: Model) -> bool:
    """Return whether CMC counts queries by the rank of their first relevant item."""
    convention = model.result.convention
    return convention.cmc in (None, "market") and convention.ties != "expected"


@dataclass(frozen=True)
class Curves:
    """Values of the q queries with relevant items. `first` (whether there is a hit), `precision` and `recall` have shape
    (q, ranks): a column for each of `ranks`. `at_recalls`, shape (q, recalls), is the precision at `_RECALLS`.
    """

    ranks: NDArray[np.int64]
    first: Values
    precision: Values
    recall: Values
    at_recalls: Values
    deepest: int

    @classmethod
    def of(cls, result: RankingResult) -> Curves | None:
        """Return the curves of a result; None if its hits were not kept."""
        if result.hits is None:
            return None
        hits = result.hits.break_ties(result.convention.ties)
        some = hits.positives > 0
        deepest = max(min(int(hits.items.max(initial=1)), _DEEPEST), 2)
        ranks = ranks_drawn(deepest)
        within = np.stack([hits.within(int(rank)) for rank in ranks], axis=1)[some].astype(np.float64)
        precision, _ = hits.interpolate(_RECALLS)
        first = (within > 0).astype(np.float64)
        return cls(ranks, first, within / ranks, within / hits.positives[some][:, None], precision[some], deepest)


def ranks_drawn(deepest: int) -> NDArray[np.int64]:
    """Return the ranks at which curves are drawn: all ranks up to 20, then ranks evenly spaced on a logarithmic scale."""
    return np.unique(np.rint(np.concatenate((np.arange(1, 21), np.geomspace(1, 1000, 73)))).clip(1, deepest)).astype(
        np.int64
    )


def _place(ranks: NDArray[Any], deepest: int) -> Values:
    """Return the positions of ranks on a logarithmic axis from 0 to 1."""
    return np.asarray(np.log(ranks) / math.log(deepest))


def _rank_ticks(deepest: int) -> list[tuple[str, str]]:
    named = [rank for rank in _NAMED if rank <= deepest]
    return charts.across(_place(np.array(named), deepest).tolist(), [f"{rank:,}" for rank in named])


def band(values: Values, level: float) -> tuple[Values, Values, Values]:
    """Return each column's mean over queries and the ends of its interval by Student's t, NaN with fewer than `FEWEST`
    queries.
    """
    count = len(values)
    mean = values.mean(axis=0) if count else np.full(values.shape[1], np.nan)
    if count < FEWEST:
        none = np.full(mean.size, np.nan)
        return mean, none, none
    half = t_quantile(0.5 + level / 2, count - 1) * values.std(axis=0, ddof=1) / math.sqrt(count)
    return mean, np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)


def _ranked_plot(title: str, y: str, says: str, drawn: Sequence[_Ranked], deepest: int, level: float) -> Plot:
    """Return a plot of curves by rank with intervals; each curve is given by its ranks and its values per query."""
    lines, bands = [], []
    for name, style, ranks, values in drawn:
        mean, low, high = band(values, level)
        x = _place(ranks, deepest)
        bands.append(area(x, low, high, style))
        lines.append(line(name, x, mean, style))
    return _plot(title, "rank", y, says, lines, bands, level, x_ticks=_rank_ticks(deepest))


def _plot(title: str, x: str, y: str, says: str, lines: list[Any], bands: list[Any], level: float, **more: Any) -> Plot:
    """Return a plot of curves, drawn over the bands of their intervals."""
    bands = [one for one in bands if one["path"]]
    thin = any(one["style"] == "thin" for one in lines)
    if bands and not thin:
        says += f" Shaded: {level * 100:g} % intervals by Student's t."
    return Plot(title, x, y, says, [*bands, *lines], choose="model" if thin else "", **more)
