"""The report on one ranking system or several: curves, worst queries, and the effect of ties."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DetmapError, OptionError, many
from detmap.reports import charts
from detmap.reports.blocks import (
    DIFFERENCES,
    Apart,
    Card,
    Section,
    Text,
    difference_row,
    differences,
    found_by_check,
    mark_doubts,
    metric_row,
    page,
    side_by_side,
    summary,
)
from detmap.reports.charts import Plot, bar
from detmap.reports.ranking_curves import FEWEST, band, curves
from detmap.reports.tables import sentence, table
from detmap.results import cell, printable
from detmap.retrieval.conventions import CONVENTIONS
from detmap.retrieval.metrics import parse
from detmap.retrieval.ranked import MEAN
from detmap.retrieval.runs import evaluate_run, read_tables
from detmap.retrieval.scoring import by_query
from detmap.statistics import compare_queries
from detmap.statistics.bootstrap import alpha_of
from detmap.statistics.queries import too_few_queries

if TYPE_CHECKING:
    from detmap.checks.report import Report
    from detmap.reports.documents import Documents
    from detmap.retrieval import RankingResult
    from detmap.statistics import Bootstrap, QueryComparison

Values = NDArray[np.float64]

#: Prefixes of the metrics listed at the top of the page, right after the leading metric.
_FIRST = ("nDCG@10", "CMC@1", "MRR", "P@10", "R@", "mAP")

#: Maximum number of metrics at the top of the page.
_METRICS = 16

#: Minimum difference of mean AP that four decimals always show.
_LITTLE = 1e-4

#: Number of bars of a distribution, and maximum number of queries listed.
_BARS, _WORST = 10, 100

#: Number of the worst queries whose documents are listed.
_SHOWN = 50

#: Upper bounds of groups of queries by number of relevant items.
_SIZES = (1, 3, 10, 30, 100)


#: Maximum number of ranked items of a run for which AP under other conventions is computed.
ITEMS = 1_000_000


@dataclass
class Model:
    """A system of a report on rankings.

    Attributes
    ----------
    name : str
        Name on the page.
    result : RankingResult
        Metrics of the system.
    bootstrap : Bootstrap, optional
        Intervals of the means over queries, as computed by `intervals`.
    checked : Report or str, optional
        Report of a check of the files, or the reason why the files were not checked.
    under : mapping of str to float
        Mean AP under every named convention that applies.
    documents : callable, optional
        Function that returns the `detmap.reports.documents.Documents` of given queries.
    """

    name: str
    result: RankingResult
    bootstrap: Bootstrap | None = None
    checked: Report | str | None = None
    under: Mapping[str, float] = field(default_factory=dict)
    documents: Callable[[Sequence[str]], Mapping[str, Documents]] | None = None

    @cached_property
    def metrics(self) -> dict[str, str]:
        """Names of the metrics that are means over queries, mapped to the names of their per-query values."""
        found = {}
        for name, key in zip(self.result, self.result.per_query, strict=False):
            values = self.result.per_query[key]
            known = values[~np.isnan(values)]
            if parse(key).metric.aggregate is MEAN and known.size and known.min() >= 0 and known.max() <= 1:
                found[name] = key
        if not found:
            raise OptionError("the report shows metrics that are means over queries, from 0 to 1: ask for one, as mAP")
        return found

    @cached_property
    def metric(self) -> str:
        """The metric that the page shows first: mean AP if evaluated, else the first of `metrics`."""
        return next((name for name, key in self.metrics.items() if key.startswith("AP")), next(iter(self.metrics)))

    @property
    def depth(self) -> int | None:
        """The cutoff rank if `metric` is AP, such as 100 for AP@100; None for AP over all ranks, and for other
        metrics.
        """
        found = parse(self.metrics[self.metric])
        return found.cut if found.metric.name == "AP" and found.depth is not None else None

    @property
    def values(self) -> Values:
        """The values of `metric` per query."""
        return self.result.per_query[self.metrics[self.metric]]


def under_conventions(qrels: Any, run: Any, result: RankingResult, rules: dict[str, Any]) -> dict[str, float]:
    """Return mean AP of a run under every named convention that applies; empty for runs of more than `ITEMS` items."""
    if result.hits is None or int(result.hits.items.sum()) > ITEMS:
        return {}
    tables, found = read_tables(qrels, run), {}
    given = {name: rules[name] for name in ("level", "depth", "judged_only")}
    for name, convention in CONVENTIONS.items():
        try:
            found[name] = evaluate_run(*tables, ["mAP"], convention, **given)["mAP"]
        except DetmapError:  # the convention needs data that a run does not have
            continue
    return found


def intervals(result: RankingResult, replicates: int, seed: int, method: Any) -> Bootstrap:
    """Return intervals of all metrics that are means over queries."""
    from detmap.statistics import bootstrap_queries

    columns = Model("", result).metrics
    return bootstrap_queries(
        {name: result.per_query[key] for name, key in columns.items()},
        replicates,
        seed,
        method=method,
        limits={name: (0.0, 1.0) for name, key in columns.items() if parse(key).metric.bounded},
    )


def html(
    models: Sequence[Model],
    inputs: Sequence[Mapping[str, str]],
    made: datetime,
    *,
    replicates: int = 0,
    seed: int = 0,
    level: float = 0.95,
) -> str:
    """Return the report on rankings as one self-contained HTML page (extra ``report``).

    Parameters
    ----------
    models : sequence of Model
        One or more systems, scored under the same convention. Each must have a metric that is a mean over queries.
    inputs : sequence of mapping
        ``role``, ``name`` and ``sha256`` of each file.
    made : datetime
        Time of the report.
    replicates, seed : int
        Number of resamplings for the paired comparison of models (0: none), and their seed.
    level : float
        The level of the intervals; a pair differs significantly if its corrected p-value is at most ``1 - level``.

    Raises
    ------
    OptionError
        If no metric is a mean over queries with values from 0 to 1.
    MissingDependencyError
        Without jinja2.
    """
    sections = [*_metrics(models, level), curves(models, level)]
    if len(models) > 1 and replicates:
        sections.insert(0, _compared(models, replicates, seed, level))
    if any(model.under for model in models):
        sections.append(_conventions(models))
    sections += side_by_side([_own(model, level) for model in models])
    return page(
        [model.name for model in models],
        summaries=[_summary(model, level, *lacks) for model, lacks in zip(models, _lacking(models), strict=True)],
        metrics=_first_metrics(models, level),
        brief=f"{models[0].result.convention.name} · {many(models[0].result.queries['scored'], 'query')} scored",
        inputs=inputs,
        facts=_facts(models[0].result),
        counts=[(printable(model.name), _counts(model.result)) for model in models],
        counted="Queries",
        notices={model.name: model.result.described_notices() for model in models},
        sections=sections,
        made=made,
    )


def _facts(result: RankingResult) -> list[tuple[str, str]]:
    return [("Convention", printable(result.convention.describe())), ("AP", printable(result.convention.formula))]


def _counts(result: RankingResult) -> str:
    counts = [many(count, f"query {kind}") for kind, count in result.queries.items() if count or kind == "scored"]
    if result.hits is not None:
        hits = result.hits
        counts.append(f"{int(hits.positives.sum()):,} relevant items, of which {hits.ranks.size:,} are ranked")
    if result.junk:
        counts.append(f"{result.junk:,} junk item{'s' if result.junk > 1 else ''} left out")
    return ", ".join(counts)


# ------------------------------------------------------------------------------------------------------- the first screen


def _lacking(models: Sequence[Model]) -> list[tuple[int, int]]:
    """Return two numbers for each model: the queries that only other models have, and the queries of all models."""
    key = models[0].metrics[models[0].metric]
    if any(key not in model.result.per_query for model in models):
        return [(0, 0)] * len(models)
    _, columns = by_query({str(at): model.result for at, model in enumerate(models)}, key)
    known = np.array([~np.isnan(columns[str(at)]) for at in range(len(models))])
    some = known.any(axis=0)
    return [(int((some & ~own).sum()), int(some.sum())) for own in known]


def _summary(model: Model, level: float, lacks: int, total: int) -> dict[str, Any]:
    value, (low, high), why = model.result[model.metric], (math.nan, math.nan), "no interval was asked for"
    if model.bootstrap is not None:
        low, high = _ends(model, level)[model.metric]
        why = "no interval: " + (model.bootstrap.reasons()[model.bootstrap.columns[model.metric]] or "too few queries")
    cards = [_worst_card(model), _ties_card(model)]
    shown = (model.name, model.metric, cell(value), (low, high), why, level)
    mark = (
        f"Mean over {total - lacks:,} of {total:,} queries: this model lacks {lacks:,}, so that its numbers "
        "cannot be compared with those of the others."
    )
    about = ""
    if model.bootstrap is not None and not math.isnan(low):
        about = sentence(model.bootstrap.sentence(level=level).removeprefix("low, high: "))
    return summary(*shown, about=about, cards=cards, mark=mark if lacks else "")


def _first_metrics(models: Sequence[Model], level: float) -> list[dict[str, Any]]:
    """Return the metrics of all models for the top of the page, the leading metric first. All are means over
    queries.
    """
    first = models[0]
    names = [first.metric, *(name for name in first.metrics if name != first.metric)]
    names.sort(key=lambda name: (name != first.metric, *(not name.startswith(begins) for begins in _FIRST)))
    ends = [_ends(model, level) for model in models]
    none = math.nan, math.nan
    return [
        metric_row(
            name,
            "mean over queries",
            [float(model.result[name]) if name in model.result else math.nan for model in models],
            [own.get(name, none) for own in ends],
        )
        for name in names[:_METRICS]
    ]


def _ends(model: Model, level: float) -> dict[str, tuple[float, float]]:
    """Return the interval of every metric; its ends are NaN if the interval is undefined."""
    if model.bootstrap is None:
        return dict.fromkeys(model.metrics, (math.nan, math.nan))
    ends = model.bootstrap.interval(level)
    return {name: (float(ends[at, 0]), float(ends[at, 1])) for name, at in model.bootstrap.columns.items()}


def _worst_card(model: Model) -> Card:
    """Return a card on the share of the total loss (1 minus the metric) that is due to the worst queries."""
    values, key = model.values, model.metrics[model.metric]
    known = np.sort(values[~np.isnan(values)])
    lost = 1 - known
    count = max(math.ceil(known.size / 10), 1)
    title = "Where it is lost"
    if not lost.sum() > 0:
        return Card(title, f"Nowhere: {key} is 1 for every query.")
    share = float(lost[:count].sum() / lost.sum())
    zero = int((known == 0).sum())
    said = (
        f"The worst tenth of the queries ({count:,} of {known.size:,}, {key} {known[count - 1]:.3f} or less) holds "
        f"{share:.0%} of what is missing to {model.metric} 1; "
    )
    said += f"{zero:,} have {key} 0. " if zero else "none has 0. "
    said += f"Half of all have {np.median(known):.3f} or more."
    legend = (("fill", "lost by the other queries"), ("gain", "by the worst tenth"))
    return Card(title, printable(said), round(100 * (1 - share), 2), round(100 * share, 2), legend)


def _ties_card(model: Model) -> Card:
    """Return a card on the effect of the order of tied items."""
    title = "What ties could change"
    try:
        low, high = model.result.tie_band_at(model.depth)
    except OptionError as error:
        return Card(title, printable(f"This cannot be told: {error}."))
    if math.isnan(low) or high - low < 1e-12:
        return Card(title, "Nothing: mean AP is the same in every order of items of equal score.")
    if high - low < _LITTLE:
        return Card(title, f"Next to nothing: all orders of items of equal score are within {_LITTLE:g} of mean AP.")
    said = (
        f"Mean AP lies between {low:.4f} and {high:.4f}, by the order of items of equal score. The number above is that "
        f"of the rule {model.result.convention.ties}."
    )
    legend = (("fill", "in the worst order"), ("gain", "up to the best"))
    return Card(title, printable(said), round(100 * low, 2), round(100 * (high - low), 2), legend)


# --------------------------------------------------------------------------------------------------- of all models at once


def _metrics(models: Sequence[Model], level: float) -> list[Section]:
    """Return a section with the metrics of every model; no section if the top of the page shows all metrics."""
    ends = [_ends(model, level) for model in models]
    several = len(models) > 1
    names = dict.fromkeys(name for model in models for name in model.result)
    means: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for name in names:
        row: dict[str, Any] = {"metric": name}
        is_mean = any(name in model.metrics for model in models)
        for model, own in zip(models, ends, strict=True):
            of = f"{model.name}: " if several else ""
            value = float(model.result[name]) if name in model.result else math.nan
            row[f"{of}value"] = int(value) if not is_mean and value.is_integer() else value
            if is_mean and model.bootstrap is not None:
                row[f"{of}low"], row[f"{of}high"] = own.get(name, (math.nan, math.nan))
        (means if is_mean else others).append(row)
    all_above = len(means) <= _METRICS  # whether the top of the page shows all means
    of_bootstraps = (model.bootstrap.sentence(level=level) for model in models if model.bootstrap is not None)
    note = "" if all_above else next(of_bootstraps, "")
    bars = {f"{model.name}: value" if several else "value": 1.0 for model in models}
    if any(lacks for lacks, _ in _lacking(models)):
        note = "Means are of each model's own queries, which are not the same for all" + (f"; {note}" if note else "")
    blocks: list[Any] = [Text(sentence(note))] if note else []
    blocks = blocks if all_above else [table("Means over queries", means, bars=bars, note=note)]
    blocks += [table("Other numbers", others)] if others else []
    return [Section("metrics", "Metrics", "All that was evaluated.", [("", blocks)])] if blocks else []


def _apart(one: QueryComparison, columns: Mapping[str, Values]) -> Apart:
    """Return a comparison for display, with the number of shared queries if one model lacks queries of the other."""
    known = [~np.isnan(columns[name]) for name in (one.first, one.second)]
    both = known[0] & known[1]
    means = float(columns[one.first][both].mean()), float(columns[one.second][both].mean())
    alone = bool(np.any(known[0] != known[1]))
    common = f" on the {one.queries:,} queries that both have" if alone else ""
    return Apart(*one[:5], one.adjusted["randomisation"], common, means)


def _compared(models: Sequence[Model], replicates: int, seed: int, level: float) -> Section:
    """Return a section on the paired differences of models, and on the queries that change most between the first two."""
    metric = models[0].metric
    key = models[0].metrics[metric]
    for model in models:
        if key not in model.result.per_query:
            raise OptionError(f"{model.name} has no {key} to compare by")
    queries, columns = by_query({model.name: model.result for model in models}, key)
    method = "t" if models[0].bootstrap is None else models[0].bootstrap.method
    found = compare_queries(columns, replicates=replicates, seed=seed, level=level, method=method)
    apart = [_apart(one, columns) for one in found]
    rows = [
        difference_row(
            one,
            {"mean of from": told.means[0], "mean of to": told.means[1]} if any(a.common for a in apart) else {},
            {"queries": one.queries},
            one.p["randomisation"],
            one.adjusted["randomisation"],
        )
        for one, told in zip(found, apart, strict=True)
    ]
    doubtful = [one.disagrees(alpha_of(level)) for one in found]
    mark_doubts(rows, doubtful)
    few = too_few_queries((one.queries for one in found), level=level)
    if few:
        apart = [one._replace(p=math.nan) for one in apart]
    blocks = differences(metric, level, alpha_of(level), "queries", apart, rows)
    first, second = (columns[model.name] for model in models[:2])
    change = second - first
    # The column names start with the metric, so that a model named "query" does not replace the column of queries.
    one_column, other_column = (f"{key} {model.name}" for model in models[:2])
    order = [at for at in np.argsort(-np.abs(change), kind="stable").tolist() if abs(change[at]) > 0][:_WORST]
    moved = [
        {
            "query": str(queries[at]),
            one_column: float(first[at]),
            other_column: float(second[at]),
            "difference": float(change[at]),
        }
        for at in order
    ]
    up, down = int((change > 0).sum()), int((change < 0).sum())
    note = f"{key} rises from {models[0].name} to {models[1].name} for {many(up, 'query')} and falls for {down:,}"
    bars: dict[str, float | None] = {one_column: 1.0, other_column: 1.0}
    blocks.append(table("Queries that move most", moved, bars=bars, note=note))
    blocks.append(
        Text(
            "p is that of a randomisation test: would they differ as much if it were chance which gave which value? "
            f"Corrected: by Holm's rule, over {many(len(found), 'pair')}. low, high: interval of "
            "the mean difference over all queries that might be asked like these, not corrected. Queries are taken as "
            "independent of each other."
            + (" Where interval and p disagree, trust p: the interval is an approximation." if any(doubtful) else "")
        )
    )
    blocks += [Text(sentence(few))] if few else []
    return Section("differences", "Differences", DIFFERENCES, [("", blocks)])


def _conventions(models: Sequence[Model]) -> Section:
    """Return a section on mean AP under other conventions, and on the number of conventions that reverse the order of
    the first two models.
    """
    several = len(models) > 1
    own = models[0].result.convention.name
    names = [f"mAP {model.name}" if several else "mAP" for model in models]
    rows, turned = [], 0
    for name in dict.fromkeys(name for model in models for name in model.under):
        values = [model.under.get(name, math.nan) for model in models]
        decides = CONVENTIONS[name].describe().partition(": ")[2]
        rows.append({"convention": name, **dict(zip(names, values, strict=True)), "decides": decides})
        if several:
            turned += (values[0] - values[1]) * (
                models[0].under.get(own, math.nan) - models[1].under.get(own, math.nan)
            ) < 0
    note = ""
    if several and own in models[0].under:
        note = f"The order of {models[0].name} and {models[1].name} turns round under {turned:,} of them"
    lead = "What other codebases would make of the same rankings."
    made = table("Mean AP under every convention", rows, bars=dict.fromkeys(names, 1.0), note=note)
    return Section("conventions", "Under other conventions", lead, [("", [made])])


# --------------------------------------------------------------------------------------------------------- of each model


def _own(model: Model, level: float) -> list[Section]:
    """Return the sections of one model."""
    told = (
        ("queries", "Queries", "How different the queries are.", _distribution(model, level)),
        ("worst", "Worst queries", "Where to look first.", _worst(model)),
        ("ties", "Ties", "How much the order of items of equal score decides.", _ties(model)),
    )
    made = [Section(anchor, title, lead, [(printable(model.name), blocks)]) for anchor, title, lead, blocks in told]
    if model.checked is not None:
        made.append(found_by_check(model.name, model.checked))
    return made


def _distribution(model: Model, level: float) -> list[Any]:
    """Return the distribution of the metric, the quantiles of all metrics, and the mean by number of relevant items."""
    values, key = model.values, model.metrics[model.metric]
    known = values[~np.isnan(values)]
    counts, edges = np.histogram(known, bins=_BARS, range=(0, 1))
    top = max(int(counts.max()), 1)
    bars = [
        bar(f"{key} {low:.1f} to {high:.1f}: {count:,} queries", low, high, count / top)
        for low, high, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
        if count
    ]
    says = f"{known.size:,} queries by their {key}: half of them have {np.median(known):.3f} or more."
    step = max(math.ceil(top / 5), 1)
    marks = list(range(0, top + 1, step))
    y_ticks = charts.up([at / top for at in marks], [f"{at:,}" for at in marks])
    rows = []
    for name, of in model.metrics.items():
        column = model.result.per_query[of]
        column = column[~np.isnan(column)]
        least, quarter, middle, three, most = np.quantile(column, (0, 0.25, 0.5, 0.75, 1)).tolist()
        rows.append(
            {
                "metric": name,
                "mean": float(model.result[name]),
                "least": least,
                "quarter": quarter,
                "median": middle,
                "three quarters": three,
                "most": most,
                "queries at 0": int((column == 0).sum()),
                "queries at 1": int((column == 1).sum()),
            }
        )
    blocks: list[Any] = [
        Plot(f"{key} of the queries", key, "queries", says, [], bars, y_ticks=y_ticks),
        table("Quantiles over queries", rows, bars={"mean": 1.0}),
    ]
    return [*blocks, *_by_size(model, level)]


def _by_size(model: Model, level: float) -> list[Any]:
    """Return the mean of the metric by the number of relevant items."""
    hits, values, key = model.result.hits, model.values, model.metrics[model.metric]
    if hits is None:
        return []
    rows, low = [], 1
    for high in (*_SIZES, None):
        here = (hits.positives >= low) & ~np.isnan(values)
        if high is not None:
            here &= hits.positives <= high
        if here.any():
            found = values[here]
            name = f"more than {low - 1}" if high is None else f"{low}" if high == low else f"{low} to {high}"
            _, (bottom,), (top,) = band(found[:, None], level)
            within = hits.counts[here] / hits.positives[here]
            rows.append(
                {
                    "relevant items": name,
                    "queries": int(here.sum()),
                    f"mean {key}": float(found.mean()),
                    "low": float(bottom),
                    "high": float(top),
                    "share ranked": float(within.mean()),
                }
            )
        low = low if high is None else high + 1
    note = f"low, high: {level * 100:g} % intervals by Student's t, where there are {FEWEST} queries or more"
    return [table("By number of relevant items", rows, bars={f"mean {key}": 1.0}, note=note)]


def _worst(model: Model) -> list[Any]:
    """Return the queries with the lowest values."""
    values, key = model.values, model.metrics[model.metric]
    order = [at for at in np.argsort(values, kind="stable").tolist() if not math.isnan(values[at])]
    hits = model.result.hits
    first = last = None
    if hits is not None:
        broken = hits.break_ties(model.result.convention.ties)
        first, last = broken.first(), broken.last()
    others = [(name, of) for name, of in model.metrics.items() if of != key][:3]
    rows = []
    for at in order[:_WORST]:
        row: dict[str, Any] = {"query": str(model.result.query_ids[at]), key: float(values[at])}
        if hits is not None and first is not None and last is not None:
            row["relevant"], row["found"] = int(hits.positives[at]), int(hits.counts[at])
            row["ranked"] = int(hits.items[at])
            row["first at"] = float(first[at]) if first[at] > 0 else math.nan
            row["last at"] = float(last[at]) if last[at] > 0 else math.nan
        rows.append({**row, **{name: float(model.result.per_query[of][at]) for name, of in others}})
    for row in rows:
        for name in ("first at", "last at"):
            if name in row and row[name] == row[name]:
                row[name] = int(row[name])
    note = "found: relevant items that are ranked; first at, last at: the ranks of the first and the last of them"
    made = table("Queries with the lowest values", rows, bars={key: 1.0}, note=note if hits is not None else "")
    more = len(order) - len(rows)
    return [*_documents(model, rows, key), made, *([Text(f"{more:,} queries more are better.")] if more > 0 else [])]


def _documents(model: Model, rows: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    """Return a table of the worst queries with their first relevant, first irrelevant, and missed relevant documents."""
    hits = model.result.hits
    if model.documents is None or hits is None or int(hits.items.sum()) > ITEMS:
        return []
    found = model.documents([row["query"] for row in rows[:_SHOWN]])
    told = [
        {"query": row["query"], key: row[key], **found[row["query"]].row()} for row in rows if row["query"] in found
    ]
    note = "first misses: documents that are not relevant, or not judged; not found: relevant documents without a rank"
    return [table("What the worst queries found", told, bars={key: 1.0}, note=note)] if told else []


def _ties(model: Model) -> list[Any]:
    """Return the range of mean AP over all orders of tied items, and a table of the queries with the widest ranges."""
    result = model.result
    try:
        bands = result.tie_bands(model.depth)
        low, high = result.tie_band_at(model.depth)
    except OptionError as error:
        return [Text(printable(f"This cannot be told: {error}."))]
    width = np.nan_to_num(bands[:, 1] - bands[:, 0])
    moved = np.flatnonzero(width > 1e-12)
    if not moved.size:
        return [Text("AP of every query is the same in every order of items of equal score.")]
    order = moved[np.argsort(-width[moved], kind="stable")][:_WORST]
    said = (
        f"The order of items of equal score decides AP of {moved.size:,} of {len(bands):,} queries; mean AP lies between "
        f"{low:.4f} and {high:.4f}"
    )
    hits = result.hits
    if hits is not None and hits.tied.size:
        said += f"; {float((hits.tied > 1).mean()):.1%} of the relevant items that are ranked share their score"
    rows = [
        {"query": str(result.query_ids[at]), "lowest AP": float(bands[at, 0]), "highest AP": float(bands[at, 1]),
         "between": float(width[at])}
        for at in order.tolist()
    ]  # fmt: skip
    return [Text(sentence(said)), table("Queries that ties decide most", rows, bars={"between": None})]
