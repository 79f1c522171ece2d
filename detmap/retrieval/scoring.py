"""Evaluate metrics on blocks of rankings, and combine the values into a result."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import columns, plots
from detmap.data.ids import locate
from detmap.data.notices import describe
from detmap.errors import InputError, OptionError, shorten
from detmap.hits import Curve, Hits
from detmap.kernels import curves, ties
from detmap.results import Result, fragment
from detmap.retrieval.conventions import Convention
from detmap.retrieval.measures import average_precision, band
from detmap.retrieval.metrics import parse, parse_rate
from detmap.retrieval.ranked import MEAN, Aggregate, Ranked, Request

#: Maximum number of hits that are kept with the result.
KEPT_HITS = 1 << 21

#: Recalls of the points of mean precision-recall curves.
_RECALLS = np.linspace(0, 1, 101)


def table(values: Any, source: str) -> NDArray[Any]:
    """Return `values` as an array; raise `InputError` for rows of different lengths, and for masked elements."""
    return columns.regular(values, source)


def numeric(values: Any, source: str, *, booleans: bool = False) -> NDArray[Any]:
    """Return real numbers as an array of the type given; see `detmap.columns.numbers` for errors."""
    try:
        dtype = columns.array(values).dtype
    except TypeError:
        raise InputError("is no array: are its rows of one length?", source=source) from None
    return columns.numbers(
        values, source=source, booleans=booleans, dtype=dtype if dtype.kind in "fiub" else np.float64
    )


def flat(values: Any, source: str) -> NDArray[Any]:
    """Return `values` as a flat array; strings stored as objects (pandas) become an array of strings."""
    array = table(values, source)
    if array.ndim != 1:
        raise InputError("expected a flat array", source=source, value=f"{array.ndim}-d {array.dtype}")
    if array.dtype.kind in "OT" and array.size and all(isinstance(value, str) for value in array.tolist()):
        return array.astype(np.str_)
    return array


def labels(values: Any, count: int | None, name: str) -> NDArray[Any]:
    """Return ids of `count` rows (None: any number) as integers or strings; booleans become 0 and 1."""
    if isinstance(values, np.ndarray) and values.dtype == np.bool_:
        values = values.astype(np.int64)
    array = columns.identifiers(values, source=name)
    if count is not None and array.size != count:
        raise InputError(f"{array.size} values for {count} rows", source=name)
    return array


def numeric_table(values: Any, source: str, *, booleans: bool = False) -> NDArray[Any]:
    """Return a matrix of numbers of the type given."""
    array = numeric(values, source, booleans=booleans)
    if array.ndim != 2:
        raise InputError("expected a matrix of numbers", source=source, value=f"{array.ndim}-d {array.dtype}")
    return array


def int64(array: NDArray[Any], source: str) -> NDArray[np.int64]:
    """Return integers as int64; raise `InputError` for integers beyond int64."""
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError("is beyond the range of int64", source=source, value=int(array.max()))
    return array.astype(np.int64, copy=False)


def graded(array: NDArray[Any], source: str) -> NDArray[np.int64]:
    """Return grades as int64; raise `InputError` for a grade beyond 2 ** 31."""
    if array.size and not (float(array.min()) >= -(2.0**31) and float(array.max()) <= 2.0**31):
        raise InputError("a grade must be from -2 ** 31 to 2 ** 31", source=source)
    return array.astype(np.int64)


def stored(grades: NDArray[Any], source: str) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return an integer code for each grade, and the distinct grades that the codes stand for (`Ranked.scale`). If all
    grades are whole numbers, return the grades themselves and None.
    """
    if grades.dtype.kind != "f" or bool(np.all(grades == np.trunc(grades))):
        return graded(grades, source), None
    scale = np.unique(grades[grades > 0]).astype(np.float64)
    return np.where(grades > 0, np.searchsorted(scale, grades) + 1, np.where(grades < 0, -1, 0)), scale


def check_level(level: Any) -> float:
    """Return the lowest relevant grade; raise `OptionError` if it is invalid."""
    given = float(level) if isinstance(level, Real) and not isinstance(level, bool) else float("nan")
    if not -(2.0**31) <= given <= 2.0**31:
        raise OptionError(f"level must be a number from -2 ** 31 to 2 ** 31, not {shorten(level)}")
    return given


class RankingResult(Result):
    """Means over queries by metric name, read-only.

    ``result["nDCG@10"]`` and ``result["ndcg_cut_10"]`` are the same number: a name is looked up in any spelling in which
    the metric can be requested.

    Attributes
    ----------
    convention : Convention
        The decisions under which the values were computed.
    query_ids : ndarray, shape (q,)
        The queries that were evaluated, in the order of the input.
    per_query : mapping of str to ndarray of float64, shape (q,)
        The metric values of each query; NaN for a query that is left out of the mean.
    queries : dict of str to int
        Numbers of queries that were ``scored``, ``empty`` (without relevant items), ``missing`` (from the run) and
        ``extra`` (in the run, not judged). Under conventions such as ``hashnet``, AP is undefined for queries without
        hits up to AP's depth; ``without hits`` is the number of these queries.
    junk : int
        Number of (query, item) pairs removed from the rankings.
    cmc : ndarray of float64, shape (k,), or None
        Element *i* is CMC at rank ``i + 1``, under the convention; None if CMC was not requested.
    hits : Hits or None
        The ranks of the relevant items (ties in index order); None if there are more than 2**21 hits.
    notices : mapping of str to int
        Number of occurrences of each notice, by code; `detmap.data.notices.NOTICES` has the sentences.
    """

    def __init__(
        self,
        values: dict[str, float],
        per_query: dict[str, NDArray[np.float64]],
        query_ids: NDArray[Any],
        convention: Convention,
        queries: dict[str, int],
        junk: int,
        cmc: NDArray[np.float64] | None,
        hits: Hits | None,
        radius: NDArray[np.float64] | None,
        notices: Mapping[str, int] | None = None,
        curve: NDArray[np.float64] | None = None,
    ) -> None:
        for array in (*per_query.values(), query_ids, cmc, radius):
            if array is not None:
                array.setflags(write=False)
        unusual = {f"{kind}_queries": queries[kind] for kind in ("missing", "extra", "empty")}
        super().__init__(values, {**unusual, **(notices or {})})
        self.per_query: Mapping[str, NDArray[np.float64]] = _ByName(per_query, convention)
        self.query_ids = query_ids
        self.convention = convention
        self.queries = queries
        self.junk = junk
        self.cmc = cmc
        self.hits = hits
        self._radius = radius
        self._curve = curve

    def _meant(self, name: str) -> str | None:
        try:
            rate = parse_rate(name)
            found = parse(name, self.convention).name if rate is None else f"TPR@FPR={rate:g}"
        except OptionError:
            return None
        return found if found in self._metrics else None

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value:.4f}" for name, value in self._metrics.items())
        return f"RankingResult({inside}; {self.convention.describe()})"

    def __str__(self) -> str:
        width = max(map(len, self._metrics), default=0)
        lines = [f"{name:<{width}}  {value:.4f}" for name, value in self._metrics.items()]
        return "\n".join([*lines, f"[{self.describe()}]", *describe(self.notices)])

    def _repr_html_(self) -> str:
        return fragment(f"RankingResult: {self.describe()}", self._tables(), describe(self.notices))

    def describe(self) -> str:
        """Return the decisions and the numbers of queries in one line."""
        counts = ", ".join(f"{count} {kind}" for kind, count in self.queries.items() if count or kind == "scored")
        junk = f"; {self.junk:,} junk item{'s' if self.junk > 1 else ''} left out" if self.junk else ""
        return f"{self.convention.describe()}; queries: {counts}{junk}"

    def add(self, metrics: Mapping[str, float]) -> None:
        """Add metrics that are not means over queries."""
        self._metrics.update(metrics)

    def _kept(self) -> Hits:
        if self.hits is None:
            raise OptionError(
                f"curves and tie bands are kept for evaluations of up to {KEPT_HITS} hits; the mean curve of larger ones "
                "is with keep_curve=True"
            )
        return self.hits

    @property
    def tie_band(self) -> tuple[float, float]:
        """The minimum and maximum mean AP (by the convention's rule) over all orders of tied items."""
        return self.tie_band_at(None)

    def tie_band_at(self, depth: int | None) -> tuple[float, float]:
        """Return `tie_band` for AP at `depth` (None: for AP without a depth)."""
        low, high = self.tie_bands(depth).T
        return _mean(low, self.convention), _mean(high, self.convention)

    def tie_bands(self, depth: int | None = None) -> NDArray[np.float64]:
        """Return for each query the minimum and maximum AP over all orders of tied items, shape (q, 2)."""
        hits = self._kept()
        if self.convention.interpolation not in ("step", "trapezoid"):
            raise OptionError(f"the tie band is defined for step and trapezoid AP, not {self.convention.interpolation}")
        if not hits.tied.size and hits.ranks.size:
            request = parse("AP" if depth is None else f"AP@{depth}")
            values = _empty(average_precision(Ranked(hits, self.convention), request), hits, self.convention)
            return np.stack([values, values], axis=1)
        bands = band(hits, self.convention, depth)
        return np.stack([_empty(column, hits, self.convention) for column in bands.T], axis=1)

    @property
    def radius_precision(self) -> NDArray[np.float64]:
        """Mean precision within each Hamming radius 0 .. bits: element *r* is ``P(radius=r)``.

        A query without items within the radius counts as 0. A query without relevant items counts as the convention says.
        """
        if self._radius is None:
            raise OptionError("precision by radius is for hash codes")
        return self._radius[:, 0]

    @property
    def radius_recall(self) -> NDArray[np.float64]:
        """Mean recall within each Hamming radius 0 .. bits: element *r* is ``R(radius=r)``."""
        if self._radius is None:
            raise OptionError("recall by radius is for hash codes")
        return self._radius[:, 1]

    def interpolated_precision(self, recalls: ArrayLike) -> NDArray[np.float64]:
        """Return the interpolated precision at the given recalls, averaged over queries, shape (r,). Interpolated
        precision is the maximum precision at the recall or a higher recall.
        """
        hits = self._kept().break_ties(self.convention.ties)
        precision, _ = hits.interpolate(recalls)
        return np.asarray(precision[hits.positives > 0].mean(axis=0))

    def rows(self) -> list[dict[str, Any]]:
        """Return a record per query: the query's id and metric values."""
        columns = [self.query_ids.tolist(), *(values.tolist() for values in self.per_query.values())]
        names = ["query", *self.per_query]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def summary(self) -> list[dict[str, Any]]:
        """Return a record per metric: its name, its value, and the name of the convention, which `describe` explains."""
        return [
            {
                "metric": name,
                "value": int(value) if name.startswith("num_") and value.is_integer() else value,
                "convention": self.convention.name,
            }
            for name, value in self.items()
        ]

    def curve(self, query: int) -> Curve:
        """Return precision and recall at every rank of a query; `query` is the index in `query_ids`."""
        hits = self._kept().break_ties(self.convention.ties)
        flags = np.zeros(int(hits.items[query]), np.bool_)
        flags[hits.ranks[hits.starts[query] : hits.starts[query + 1]] - 1] = True
        return Curve.from_flags(flags, np.empty(0), int(hits.positives[query]))

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as plain dicts, lists, strings and numbers (NaN for undefined values)."""
        return {
            "metrics": dict(self),
            "convention": self.convention.name,
            "decisions": self.convention.describe(),
            "queries": dict(self.queries),
            "junk": self.junk,
            "notices": dict(self.notices),
            "cmc": self.cmc,
            "per_query": self.rows(),
        }

    def line(self, label: str | None = None) -> plots.Line:
        """Return the mean interpolated curve, to be drawn beside the curves of other results."""
        precision = self.interpolated_precision(_RECALLS) if self._curve is None else self._curve
        return plots.Line(label or self.convention.name, _RECALLS, None, precision, self._numbers())

    def _numbers(self) -> str:
        """Return the metric values for a curve's legend."""
        name = "mAP" if "mAP" in self._metrics else next(iter(self._metrics))
        told = f"{name} {self._metrics[name]:.4f}"
        cmc = self._matched()
        if cmc is None or not cmc.size:
            return told
        first, fifth = (f"{cmc[min(rank, cmc.size) - 1]:.4f}" for rank in (1, 5))
        return f"{told}\nCMC@1 {first}, @5 {fifth}"

    def _matched(self) -> NDArray[np.float64] | None:
        """Return CMC. If CMC was not requested, compute it from the hits; None if impossible."""
        if self.cmc is not None or self.hits is None or self.convention.cmc not in (None, "market"):
            return self.cmc
        counted = self.queries["scored"] + self.queries.get("without hits", 0)
        if not counted:
            return None
        found = np.cumsum(_cmc_counts(Ranked(self.hits, self.convention)))
        return np.asarray((found + self.queries["empty"] * (self.convention.empty == "one")) / counted)

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, kind: str = "auto", queries: Sequence[int] | None = None
    ) -> Any:
        """Draw CMC beside the precision-recall curve, or only one of the two (``kind="cmc"`` or ``"pr"``).

        By default, every available curve is drawn. If hits are kept, both are available. Otherwise CMC is available if it
        was evaluated, and the precision-recall curve if ``keep_curve=True`` was given.

        Parameters
        ----------
        path : path, optional
            File to which the picture is written, as .svg, .pdf or .png.
        queries : sequence of int, optional
            Indices into `query_ids`: draw the raw and interpolated curves of these queries instead of the mean curve.

        Returns
        -------
        matplotlib.figure.Figure
        """
        if kind not in ("auto", "cmc", "pr"):
            raise OptionError(f"kind must be auto, cmc or pr, not {kind!r}")
        if queries is not None and kind != "cmc":
            found = [(str(self.query_ids[q]), self.curve(q)) for q in queries]
            return plots.precision_recall(
                [plots.Line(name, c.recall, c.precision, c.interpolated) for name, c in found], path=path
            )
        if kind == "pr":
            return plots.precision_recall([self.line()], path=path)
        if kind == "cmc":
            if self.cmc is None:
                raise OptionError("CMC was not evaluated")
            return plots.cmc({self.convention.name: self.cmc}, path=path, numbers=[self._numbers()])
        return plot_rankings({self.convention.name: self}, path)


def plot_rankings(results: Mapping[str, RankingResult], path: str | os.PathLike[str] | None = None) -> Any:
    """Draw CMC beside the precision-recall curves of named results; the legend has metric values. If `path` is given,
    the picture is written to that file, as .svg, .pdf or .png. Raises `OptionError` if there is nothing to draw.
    """
    curves = {name: cmc for name, one in results.items() if (cmc := one._matched()) is not None}
    curves = curves if len(curves) == len(results) else {}
    drawable = all(one.hits is not None or one._curve is not None for one in results.values())
    if not curves and not drawable:
        next(iter(results.values()))._kept()  # raises the error that hits were not kept
    lines = [one.line(name) for name, one in results.items()] if drawable else []
    return plots.cmc_and_precision(curves, lines, path=path)


def by_query(results: Mapping[str, RankingResult], metric: str) -> tuple[NDArray[Any], dict[str, NDArray[np.float64]]]:
    """Return all queries of the results, shape (q,), and the values of `metric` by name of the result; NaN if the
    result lacks the query. `metric` must be in `per_query` of every result.
    """
    queries = np.unique(np.concatenate([one.query_ids for one in results.values()]))
    columns = {}
    for name, one in results.items():
        columns[name] = np.full(queries.size, np.nan)
        columns[name][locate(one.query_ids, queries)] = one.per_query[metric]
    return queries, columns


class _ByName(Mapping[str, NDArray[np.float64]]):
    """Values per query, with lookup by any spelling of a metric."""

    def __init__(self, arrays: dict[str, NDArray[np.float64]], convention: Convention) -> None:
        self._arrays, self._convention = arrays, convention

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        if name in self._arrays:
            return self._arrays[name]
        try:
            return self._arrays[parse(name, self._convention).key]
        except (OptionError, KeyError):
            raise KeyError(f"{shorten(name)} was not evaluated; there are: {', '.join(self._arrays)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def _empty(
    values: NDArray[np.float64], hits: Hits, convention: Convention, aggregate: Aggregate = MEAN
) -> NDArray[np.float64]:
    """Replace the values of queries without relevant items by the value that the convention defines."""
    # Some values exist even without relevant items, such as judged@k. The convention ``zero`` keeps these values.
    if aggregate.counts:
        return values
    if convention.empty != "skip":  # AP is NaN if it is divided by the number of hits up to k, and there are none
        values = np.where(np.isnan(values), aggregate.scale(0.0), values)
    if convention.empty == "zero":
        return values
    return np.where(hits.positives > 0, values, aggregate.scale(1.0) if convention.empty == "one" else np.nan)


def _mean(values: NDArray[np.float64], convention: Convention, aggregate: Aggregate = MEAN) -> float:
    """Return a metric over all queries: the mean, or another `aggregate`."""
    kept = values if convention.empty == "nan" else values[~np.isnan(values)]
    if aggregate.counts:
        return aggregate.combine(kept)
    if not kept.size or np.isnan(kept).any():
        return float("nan")
    number = aggregate.combine(kept)
    return round(number, convention.digits) if convention.digits is not None else number


def score(
    blocks: Iterable[Ranked],
    query_ids: NDArray[Any],
    requests: Sequence[Request],
    convention: Convention,
    *,
    missing: int = 0,
    extra: int = 0,
    junk: int = 0,
    reason: str = "",
    complete: bool = True,
    lenient: bool = False,
    keep_curve: bool = False,
    notices: Mapping[str, int] | None = None,
) -> RankingResult:
    """Evaluate the metrics on each block and combine the queries. If `complete` is false, the blocks hold only the hits
    up to the metrics' depth, and the result keeps no hits. If no query has a relevant item, an error names the likely
    `reason`, unless `lenient` is true. If `keep_curve` is true, the mean curve is kept even if there are too many hits
    to keep. `notices` are notices about the input; the result adds notices about missing, extra and empty queries.
    """
    columns: dict[str, list[NDArray[np.float64]]] = {request.key: [] for request in requests}
    kept: list[Hits] | None = [] if complete else None
    empty = count = stored = 0
    with_cmc = any(request.metric.name == "CMC" for request in requests)
    cmc_sum = np.zeros(0)
    radius_sum: NDArray[np.float64] | None = None
    curve, positive, highest = np.zeros(_RECALLS.size), 0, 1.0
    for ranked in blocks:
        none = ranked.raw.positives <= 0
        if convention.empty == "error" and none.any():
            query = query_ids[count + int(np.argmax(none))]
            raise InputError("no relevant items, and empty='error'", source="queries", record=f"query {query}")
        empty, highest = empty + int(none.sum()), max(highest, ranked.highest)
        count += len(ranked.raw)
        for request in requests:
            values, at = request.values(ranked), ranked.at(request.level)
            columns[request.key].append(_empty(values, at.raw, convention, request.metric.aggregate))
        if with_cmc:
            cmc_sum = _add(cmc_sum, _cmc_counts(ranked))
        if ranked.radius is not None:
            part = _radius_sums(ranked, convention)
            radius_sum = part if radius_sum is None else radius_sum + part
        if keep_curve:
            some = ranked.raw.positives > 0
            curve += ranked.hits.interpolate(_RECALLS)[0][some].sum(axis=0)
            positive += int(some.sum())
        stored += ranked.raw.ranks.size
        kept = None if kept is None or stored > KEPT_HITS else [*kept, ranked.raw]
    if empty == count and not lenient:
        raise InputError("no query has a relevant item" + (f": {reason}" if reason else ""), source="queries")
    per_query = {key: np.concatenate([np.empty(0), *parts]) for key, parts in columns.items()}
    means = {r.name: _mean(per_query[r.key], convention, r.metric.aggregate) for r in requests}
    counted = count if convention.empty in ("zero", "one") else count - empty
    queries = {"scored": counted, "empty": empty, "missing": missing, "extra": extra}
    if convention.empty == "skip":  # AP may also be undefined for queries without hits up to its depth
        without = [np.isnan(per_query[r.key]) for r in requests if r.metric.name == "AP"]
        hitless = int(np.count_nonzero(np.any(without, axis=0))) - empty if without else 0
        if hitless:
            queries = {**queries, "scored": counted - hitless, "without hits": hitless}
    if radius_sum is not None:
        radius_sum /= count if convention.empty == "nan" else counted
        for request in requests:  # replace by the exact mean, because a sum by blocks may differ in the last bit
            named = _RADII.get(request.metric.name)
            if named is not None and any(option.startswith("radius") for option in request.options):
                radius_sum[min(int(request.number("radius", 0)), len(radius_sum) - 1), named] = means[request.name]
    if any(r.metric.name == "ERR" and not r.options for r in requests):
        notices = {**(notices or {}), f"highest_grade:{highest:g}": 1}
    cmc = None
    if with_cmc:
        cmc = np.cumsum(cmc_sum)
        if convention.empty == "one":
            cmc = cmc + empty
        cmc = cmc / counted if counted else np.full(cmc.size, np.nan)
    return RankingResult(
        means,
        per_query,
        query_ids,
        convention,
        queries,
        junk,
        cmc,
        None if kept is None else _join(kept),
        radius_sum,
        notices,
        curve / positive if keep_curve and kept is None and positive else None,
    )


def _add(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    out = np.zeros(max(a.size, b.size))
    out[: a.size] += a
    out[: b.size] += b
    return out


def _cmc_counts(ranked: Ranked) -> NDArray[np.float64]:
    """Return the contribution of each rank to CMC, summed over the block's queries; element *i* is for rank ``i + 1``."""
    hits = ranked.hits
    out = np.zeros(int(hits.items.max(initial=0)))
    if ranked.shots is not None:
        rows = ranked.shots[hits.positives > 0]
        return np.asarray(np.diff(rows, axis=1, prepend=0.0).sum(axis=0))
    if ranked.convention.cmc == "allshots":
        curves.all_shots(hits.starts, hits.ranks, out)
    elif ranked.expected:
        ties.expected_first_places(hits.starts, hits.ahead, hits.tied, out)
    else:
        first = hits.first()
        out += np.bincount(first[first > 0] - 1, minlength=out.size)
    return out


#: Column of each metric in the result of `_radius_sums`.
_RADII = {"P": 0, "R": 1}


def _radius_sums(ranked: Ranked, convention: Convention) -> NDArray[np.float64]:
    """Return precision and recall within each radius, summed over queries. Queries without relevant items count as the
    convention says.
    """
    assert ranked.radius is not None
    items, relevant = ranked.radius[..., 0], ranked.radius[..., 1]
    found = ranked.raw.positives[:, None]
    values = np.zeros((*items.shape, 2))
    np.divide(relevant, items, out=values[..., 0], where=items > 0)
    np.divide(relevant, found, out=values[..., 1], where=found > 0)
    none = ranked.raw.positives <= 0
    if convention.empty == "skip":
        values = values[~none]
    elif convention.empty != "zero":
        values[none] = 1.0 if convention.empty == "one" else np.nan
    return np.asarray(values.sum(axis=0))


def _join(parts: list[Hits]) -> Hits:
    """Return the concatenated rankings of all parts."""
    if not parts:
        none = np.empty(0, np.int64)
        return Hits(np.zeros(1, np.int64), none, none, none)
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([part.counts for part in parts])
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("ranks", "positives", "items", "grades", "ahead", "tied")
    }
    return Hits(starts=np.concatenate(([0], np.cumsum(counts))), **columns)
