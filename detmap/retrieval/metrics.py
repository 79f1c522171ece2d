"""The metric table of rankings: every number is a row here, a function of the hits and of the convention."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from detmap import parallel
from detmap.errors import InputError, OptionError
from detmap.hits import INTERPOLATIONS, Hits
from detmap.kernels import curves, readonly
from detmap.retrieval.conventions import Convention, Normalizer

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Ranked:
    """A block of rankings: what an entry hands to the metrics.

    Attributes
    ----------
    raw : Hits
        The relevant items, tied ones in the order of the items (or of document ids), with the bounds of their tied groups
        where scores are known.
    convention : Convention
        What to read from it.
    pool : Hits or None
        Every judged document that was ranked, with its grade (negative: in the pool but not judged); None where there are
        no judgements.
    negatives : ndarray of int64, shape (q,), or None
        How many documents are judged not relevant, ranked or not.
    ideal_starts, ideal : ndarray of int64, shapes (q + 1,), (g,), or None
        The grades above 0 of all judged documents, descending per query; None where all are 1.
    level : int
        The lowest grade that counts as relevant.
    highest : int
        The highest grade of the judgements.
    shots : ndarray of float64, shape (q, k), or None
        For the CMC variants that draw or merge identities: the chance that the match is found within 1 .. k.
    radius : ndarray of int64, shape (q, bits + 1, 2), or None
        For hash codes: how many items, and how many relevant ones, are within each Hamming radius.
    """

    raw: Hits
    convention: Convention
    pool: Hits | None = None
    negatives: NDArray[np.int64] | None = None
    ideal_starts: NDArray[np.int64] | None = None
    ideal: NDArray[np.int64] | None = None
    level: int = 1
    highest: int = 1
    shots: Values | None = None
    radius: NDArray[np.int64] | None = None

    @cached_property
    def hits(self) -> Hits:
        """The relevant items at the ranks of the convention's tie rule."""
        return self.raw.break_ties(self.convention.ties)

    @cached_property
    def gained(self) -> Hits:
        """The items with a gain (a grade above 0) at the ranks of the convention's tie rule."""
        if self.pool is None:
            return self.hits
        wanted = self.pool.select(self.pool.grades > 0, self.pool.positives)
        return wanted.break_ties(self.convention.ties)

    @property
    def expected(self) -> bool:
        """Whether the mean over all orders of the tied items is asked for."""
        return self.convention.ties == "expected"

    def judged(self, metric: str) -> Hits:
        """Return the pool for a metric that counts judged documents, or say why there is none."""
        if self.pool is None:
            raise OptionError(f"{metric} needs judgements of documents that are not relevant; this entry has none")
        if self.convention.ties not in ("index", "docid"):
            raise OptionError(f"{metric} is defined for ties='index' and 'docid', not {self.convention.ties!r}")
        return self.pool


@dataclass(frozen=True)
class Request:
    """One metric as asked for: ``nDCG(exp)@10`` is the row nDCG, options ("exp",), depth 10."""

    metric: Metric
    options: tuple[str, ...] = ()
    depth: float | None = None

    def _decorate(self, name: str) -> str:
        options = f"({','.join(self.options)})" if self.options else ""
        depth = ""
        if self.depth is not None:
            depth = f"@{int(self.depth)}" if self.depth.is_integer() else f"@{self.depth!r}"
        return f"{name}{options}{depth}"

    @property
    def key(self) -> str:
        """The name of the values per query."""
        return self._decorate(self.metric.name)

    @property
    def name(self) -> str:
        """The name of the mean."""
        return self._decorate(self.metric.mean_name or self.metric.name)

    @property
    def cut(self) -> int:
        """The depth as a rank; beyond every rank without one."""
        return int(self.depth) if self.depth is not None else np.iinfo(np.int64).max

    def number(self, name: str, default: float) -> float:
        """Return the option ``name=value``, or its default; other options are refused."""
        for option in self.options:
            found = re.fullmatch(rf"{name}=([0-9.]+)", option)
            if not found:
                raise OptionError(f"{self.metric.name} takes the option {name}=number, not {option!r}")
            try:
                default = float(found[1])
            except ValueError:
                raise OptionError(f"{self.metric.name}: {option!r} holds no number") from None
        return default

    def flag(self, name: str) -> bool:
        """Return whether the option is there; other options are refused."""
        for option in self.options:
            if option != name:
                raise OptionError(f"{self.metric.name} takes the option {name}, not {option!r}")
        return bool(self.options)


@dataclass(frozen=True)
class Metric:
    """A row of the table.

    Attributes
    ----------
    name, mean_name : str
        What the values per query are called, and their mean (the same if empty).
    compute : callable
        ``compute(ranked, request)`` returns the values per query, shape (q,).
    formula : str
        What is computed, with its source.
    aliases : tuple of str
        Other names, lower case: trec_eval's and the literature's.
    depth : {"never", "may", "must"}
        Whether the name takes ``@depth``.
    expected : bool
        Whether there is a closed form for ties="expected".
    aggregate : {"mean", "geometric", "sum"}
        How the queries' values become one number; ``geometric`` takes the values for logarithms.
    options : bool
        Whether the name takes options in parentheses.
    """

    name: str
    compute: Callable[[Ranked, Request], Values]
    formula: str
    mean_name: str = ""
    aliases: tuple[str, ...] = ()
    depth: Literal["never", "may", "must"] = "may"
    expected: bool = False
    aggregate: Literal["mean", "geometric", "sum"] = "mean"
    options: bool = False


def _ratio(part: Any, whole: Any) -> Values:
    """Return part / whole, 0 where whole is 0."""
    whole = np.asarray(whole, dtype=np.float64)
    out = np.zeros(np.broadcast_shapes(np.shape(part), whole.shape))
    np.divide(part, whole, out=out, where=whole != 0)
    return out


def _blocks(ranked: Ranked) -> list[tuple[int, int]]:
    return parallel.even(len(ranked.raw), None if len(ranked.raw) > 64 else 1)


def average_precision(ranked: Ranked, request: Request) -> Values:
    """AP under the convention's rules, or those named in the request's options."""
    convention = ranked.convention
    rule, divisor = str(convention.interpolation), str(convention.normalizer)
    for option in request.options:
        if option in INTERPOLATIONS:
            rule = option
        elif option in get_args(Normalizer):
            divisor = option
        else:
            names = ", ".join((*INTERPOLATIONS, *get_args(Normalizer)))
            raise OptionError(f"AP takes the options {names}, not {option!r}")
    hits = ranked.hits
    if request.depth is not None:
        depth = np.full(len(hits), request.cut, np.int64)
    elif convention.depth == "positives":
        depth = hits.positives
    else:
        depth = np.full(len(hits), np.iinfo(np.int64).max, np.int64)
    positives = np.minimum(hits.positives, depth) if divisor == "smaller" else hits.positives
    known = ("step", "trapezoid") if ranked.expected else tuple(r for r in INTERPOLATIONS if r != "trapezoid-hits")
    if convention.ties in ("expected", "collapsed") and rule not in known:
        raise OptionError(f"ties={convention.ties!r} is defined for AP by {', '.join(known)}, not by {rule!r}")
    # An envelope reads collapsed ranks rightly: the last hit of a tied group has the largest precision of the group.
    if convention.ties in ("expected", "collapsed") and rule in ("step", "trapezoid") and hits.tied.size:
        out = np.empty(len(hits))
        trapezoid = rule == "trapezoid"
        if convention.ties == "expected":
            depth, positives = readonly(depth, np.int64), readonly(positives, np.int64)
            parallel.run(
                lambda b, e: curves.expected_average_precision(
                    hits.starts, hits.ahead, hits.tied, positives, depth, trapezoid, divisor == "hits", b, e, out
                ),
                _blocks(ranked),
            )
            return out
        cut = hits.cut(depth, hits.within(depth) if divisor == "hits" else positives)
        curves.collapsed_average_precision(cut.starts, cut.ahead, cut.tied, cut.positives, trapezoid, 0, len(cut), out)
        return out
    if request.depth is not None or convention.depth:
        hits = hits.cut(depth, hits.within(depth) if divisor == "hits" else positives)
    elif divisor == "hits":
        hits = replace(hits, positives=hits.counts)
    return hits.average_precision(rule)  # type: ignore[arg-type]  # `rule` is one of INTERPOLATIONS


def band(hits: Hits, convention: Convention, depth: int | None) -> NDArray[np.float64]:
    """Return the lowest and the highest AP at `depth` over all orders of the tied items, shape (q, 2)."""
    end = np.full(len(hits), np.iinfo(np.int64).max if depth is None else depth, np.int64)
    if depth is None and convention.depth == "positives":
        end = hits.positives
    found = np.minimum(hits.positives, end) if convention.normalizer == "smaller" else hits.positives
    out = np.empty((len(hits), 2))
    trapezoid, by_hits = convention.interpolation == "trapezoid", convention.normalizer == "hits"
    curves.tie_band(
        hits.starts,
        hits.ahead,
        hits.tied,
        readonly(found, np.int64),
        readonly(end, np.int64),
        trapezoid,
        by_hits,
        0,
        len(hits),
        out,
    )
    return out


def _within(ranked: Ranked, depth: Any) -> Values:
    """Return the number of hits within `depth` (one, or one per query); its mean over the orders under ``expected``."""
    hits = ranked.hits
    if not ranked.expected:
        return hits.within(depth).astype(np.float64)
    out = np.empty(len(hits))
    each = np.broadcast_to(np.asarray(depth, dtype=np.int64), (len(hits),))
    curves.expected_within(hits.starts, hits.ahead, hits.tied, readonly(each, np.int64), out)
    return out


def _radius(ranked: Ranked, request: Request, whole: str) -> Values | None:
    """Return precision or recall within a Hamming radius, where ``radius=r`` is asked for."""
    radius = request.number("radius", -1.0)
    if radius < 0:
        return None
    if ranked.radius is None or request.depth is not None:
        raise OptionError(f"{request.key}: a radius is for hash codes, without a depth")
    counts = ranked.radius[:, min(int(radius), ranked.radius.shape[1] - 1)]
    return _ratio(counts[:, 1], counts[:, 0] if whole == "items" else ranked.raw.positives)


def _precision(ranked: Ranked, request: Request) -> Values:
    near = _radius(ranked, request, "items")
    if near is not None:
        return near
    return _ratio(_within(ranked, request.cut), request.depth if request.depth else ranked.hits.items)


def _recall(ranked: Ranked, request: Request) -> Values:
    near = _radius(ranked, request, "positives")
    if near is not None:
        return near
    return _ratio(_within(ranked, request.cut), ranked.hits.positives)


def _capped_recall(ranked: Ranked, request: Request) -> Values:
    return _ratio(_within(ranked, request.cut), np.minimum(ranked.hits.positives, request.cut))


def _precision_to_last(ranked: Ranked, request: Request) -> Values:
    depth = np.minimum(ranked.hits.last(), request.cut)
    return _ratio(ranked.hits.within(depth), depth)


def _f1(ranked: Ranked, request: Request) -> Values:
    p, r = _precision(ranked, request), _recall(ranked, request)
    return _ratio(2 * p * r, p + r)


def _r_precision(ranked: Ranked, request: Request) -> Values:
    return _ratio(_within(ranked, ranked.hits.positives), ranked.hits.positives)


def _first(ranked: Ranked, request: Request, reciprocal: bool) -> Values:
    if ranked.expected:
        out = np.empty(len(ranked.hits))
        hits = ranked.hits
        curves.expected_first(hits.starts, hits.ahead, hits.tied, request.cut, reciprocal, out)
        return out
    first = ranked.hits.first()
    found = (first > 0) & (first <= request.cut)
    return _ratio(found, first) if reciprocal else found.astype(np.float64)


def _reciprocal_rank(ranked: Ranked, request: Request) -> Values:
    return _first(ranked, request, True)


def _success(ranked: Ranked, request: Request) -> Values:
    return _first(ranked, request, False)


def _cmc(ranked: Ranked, request: Request) -> Values:
    if ranked.convention.cmc == "market":
        return _first(ranked, request, False)
    if ranked.convention.cmc == "allshots":
        if ranked.expected:
            raise OptionError("CMC allshots has no closed form for ties='expected'")
        hits = ranked.hits
        place = hits.ranks - (np.arange(hits.ranks.size) - np.repeat(hits.starts[:-1], hits.counts))
        inside = np.concatenate(([0], np.cumsum(place <= request.cut)))
        return _ratio(inside[hits.starts[1:]] - inside[hits.starts[:-1]], hits.counts)
    if ranked.shots is None:
        raise OptionError(f"CMC {ranked.convention.cmc} needs distances to galleries with identities")
    if ranked.convention.ties not in ("index", "docid"):
        raise OptionError(f"CMC {ranked.convention.cmc} is defined for ties='index', not {ranked.convention.ties!r}")
    return np.asarray(ranked.shots[:, min(request.cut, ranked.shots.shape[1]) - 1])


def _inverse_negative_penalty(ranked: Ranked, request: Request) -> Values:
    hits = ranked.hits
    complete = (hits.counts == hits.positives) & (hits.positives > 0)
    if ranked.expected:
        inverse = np.empty(len(hits))
        curves.expected_inverse_last(hits.starts, hits.ahead, hits.tied, inverse)
        return np.where(complete, hits.positives * inverse, 0.0)
    return _ratio(np.where(complete, hits.positives, 0), hits.last())


def _ideal(ranked: Ranked) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return starts, ranks and grades of the best ranking of everything that has a gain."""
    if ranked.ideal_starts is not None and ranked.ideal is not None:
        starts, grades = ranked.ideal_starts, ranked.ideal
    else:
        starts = np.concatenate(([0], np.cumsum(ranked.raw.positives)))
        grades = np.ones(int(starts[-1]), np.int64)
    ranks = np.arange(1, grades.size + 1) - np.repeat(starts[:-1], np.diff(starts))
    return readonly(starts, np.int64), readonly(ranks, np.int64), grades


#: The highest grade whose exponential gains can be added without overflow.
_HIGHEST_POWER = 1000


def _gains(grades: NDArray[Any], exponential: bool) -> NDArray[Any]:
    if exponential and grades.size and grades.max() > _HIGHEST_POWER:
        raise InputError(
            f"exponential gains are for grades up to {_HIGHEST_POWER}", source="grades", value=grades.max()
        )
    return readonly(np.exp2(grades) - 1 if exponential else grades, np.float64)


def _dcg(ranked: Ranked, request: Request) -> Values:
    hits = ranked.gained
    grades = hits.grades if hits.grades.size else np.ones(hits.ranks.size)
    out = np.empty(len(hits))
    gains = _gains(grades, request.flag("exp"))
    ahead, tied = (hits.ahead, hits.tied) if ranked.expected else (hits.ranks, hits.ranks)
    curves.gained(hits.starts, hits.ranks, gains, ahead, tied, request.cut, ranked.expected, out)
    return out


def _ndcg(ranked: Ranked, request: Request) -> Values:
    starts, ranks, grades = _ideal(ranked)
    best = np.empty(len(ranked.raw))
    curves.gained(starts, ranks, _gains(grades, request.flag("exp")), ranks, ranks, request.cut, False, best)
    return _ratio(_dcg(ranked, request), best)


def _expected_reciprocal_rank(ranked: Ranked, request: Request) -> Values:
    hits = ranked.gained
    grades = hits.grades if hits.grades.size else np.ones(hits.ranks.size)
    least = max(ranked.highest, 1)
    highest = request.number("max", float(least))
    if not least <= highest <= _HIGHEST_POWER:
        raise OptionError(f"ERR: max must be from {least}, the highest grade, to {_HIGHEST_POWER}, not {highest:g}")
    stops = readonly((np.exp2(grades) - 1) / np.exp2(highest), np.float64)
    out = np.empty(len(hits))
    curves.cascade(hits.starts, hits.ranks, stops, request.cut, out)
    return out


def _rank_biased(ranked: Ranked, request: Request) -> Values:
    hits = ranked.gained
    grades = (hits.grades if hits.grades.size else np.ones(hits.ranks.size)).astype(np.float64)
    if ranked.convention.relative_rbp and ranked.ideal is not None and ranked.ideal_starts is not None:
        highest = np.ones(len(hits))
        some = np.diff(ranked.ideal_starts) > 0
        highest[some] = ranked.ideal[ranked.ideal_starts[:-1][some]]
        grades = grades / np.repeat(highest, hits.counts)
    out = np.empty(len(hits))
    p = request.number("p", 0.9)
    if not 0 < p < 1:
        raise OptionError(f"RBP: p must be above 0 and below 1, not {p:g}")
    curves.persistent(hits.starts, hits.ranks, readonly(grades, np.float64), p, request.cut, out)
    return out


def _bpref(ranked: Ranked, request: Request) -> Values:
    pool = ranked.judged("bpref")
    out = np.empty(len(pool))
    negatives = readonly(ranked.negatives, np.int64)
    curves.preferences(pool.starts, pool.grades, ranked.level, ranked.raw.positives, negatives, out)
    return out


def _inferred(ranked: Ranked, request: Request) -> Values:
    pool = ranked.judged("infAP")
    out = np.empty(len(pool))
    curves.inferred(pool.starts, pool.ranks, pool.grades, ranked.level, ranked.raw.positives, out)
    return out


def _judged(ranked: Ranked, request: Request) -> Values:
    pool = ranked.judged("judged")
    return _ratio(pool.within(request.cut), np.minimum(pool.items, request.cut))


def _geometric(ranked: Ranked, request: Request) -> Values:
    values = average_precision(ranked, request)
    return np.log(np.maximum(np.where(np.isnan(values), 0.0, values), 1e-5))


def _at_recalls(ranked: Ranked, recalls: Any) -> Values:
    product = np.multiply.outer(ranked.hits.positives, np.asarray(recalls, dtype=np.float64))
    if ranked.convention.recall_cutoffs == "ceiling":
        wanted = np.trunc(product + 0.9)
    else:
        wanted = np.floor(product) + (product - np.floor(product) >= 0.5)
    out = np.empty(wanted.shape)
    curves.interpolate_counts(ranked.hits.starts, ranked.hits.ranks, readonly(wanted, np.int64), out)
    return out


def _interpolated(ranked: Ranked, request: Request) -> Values:
    return _at_recalls(ranked, [request.depth])[:, 0]


def _eleven_points(ranked: Ranked, request: Request) -> Values:
    columns = _at_recalls(ranked, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    total = np.zeros(len(ranked.raw))
    for column in columns.T[::-1]:  # trec_eval adds from recall 1 downwards: the order is part of the last bit
        total += column
    return np.asarray(total / columns.shape[1])


METRICS = (
    Metric(
        "AP",
        average_precision,
        "average precision, as the convention has it; options: an interpolation, a normalizer",
        mean_name="mAP",
        aliases=("ap", "map", "map_cut", "average_precision"),
        expected=True,
        options=True,
    ),
    Metric(
        "P",
        _precision,
        "hits up to k / k; (radius=r): relevant share of the items within Hamming distance r",
        aliases=("p", "precision", "set_p"),
        expected=True,
        options=True,
    ),
    Metric(
        "R",
        _recall,
        "hits up to k / relevant items; (radius=r): of those within Hamming distance r",
        aliases=("r", "recall", "set_recall"),
        expected=True,
        options=True,
    ),
    Metric("R_cap", _capped_recall, "hits up to k / min(relevant items, k) (BEIR)", aliases=("r_cap",), depth="must"),
    Metric(
        "mP",
        _precision_to_last,
        "precision at min(k, rank of the last hit) (revisitop)",
        aliases=("mp",),
        depth="must",
    ),
    Metric("F1", _f1, "harmonic mean of P@k and R@k", aliases=("f1", "set_f")),
    Metric(
        "R-prec",
        _r_precision,
        "precision at rank R, the number of relevant items",
        aliases=("rprec", "r-prec", "r-precision", "r_precision"),
        depth="never",
    ),
    Metric(
        "RR",
        _reciprocal_rank,
        "1 / rank of the first hit",
        mean_name="MRR",
        aliases=("rr", "mrr", "recip_rank", "reciprocal_rank"),
        expected=True,
    ),
    Metric(
        "success",
        _success,
        "whether there is a hit up to k",
        aliases=("success", "hit_rate", "hit"),
        depth="must",
    ),
    Metric(
        "CMC",
        _cmc,
        "cumulative match characteristic at rank k, as the convention has it",
        aliases=("cmc", "rank"),
        depth="must",
        expected=True,
    ),
    Metric(
        "INP",
        _inverse_negative_penalty,
        "relevant items / rank of the last of them; 0 if not all are ranked (Ye et al., 2021)",
        mean_name="mINP",
        aliases=("inp", "minp"),
        depth="never",
        expected=True,
    ),
    Metric(
        "nDCG",
        _ndcg,
        "sum of gain / log2(rank + 1) over that of the best ranking; gain = grade, (exp): 2 ** grade - 1",
        aliases=("ndcg", "ndcg_cut"),
        expected=True,
        options=True,
    ),
    Metric(
        "DCG",
        _dcg,
        "sum of gain / log2(rank + 1)",
        aliases=("dcg",),
        options=True,
    ),
    Metric(
        "ERR",
        _expected_reciprocal_rank,
        "expected reciprocal rank; chance to stop (2 ** grade - 1) / 2 ** max, max the highest grade or (max=..)",
        aliases=("err",),
        options=True,
    ),
    Metric(
        "RBP",
        _rank_biased,
        "(1 - p) * sum of gain * p ** (rank - 1), p = 0.9 or (p=..); gain: grade / the query's highest",
        aliases=("rbp",),
        options=True,
    ),
    Metric("bpref", _bpref, "binary preference (Buckley and Voorhees, 2004)", aliases=("bpref",), depth="never"),
    Metric("infAP", _inferred, "inferred AP (Yilmaz and Aslam, 2006)", aliases=("infap",), depth="never"),
    Metric("judged", _judged, "share of judged documents among the first k", aliases=("judged",), depth="must"),
    Metric(
        "GMAP",
        _geometric,
        "geometric mean of AP, at least 0.00001 each; per query its logarithm",
        aliases=("gmap", "gm_map"),
        depth="never",
        aggregate="geometric",
    ),
    Metric(
        "iprec",
        _interpolated,
        "largest precision at recall r or more; which hit that is: the convention's recall_cutoffs",
        aliases=("iprec", "iprec_at_recall"),
        depth="must",
    ),
    Metric(
        "11pt",
        _eleven_points,
        "mean of iprec at recalls 0, 0.1 .. 1",
        aliases=("11pt", "11pt_avg", "11-pt_avg"),
        depth="never",
    ),
    Metric(
        "num_ret",
        lambda ranked, request: ranked.raw.items.astype(np.float64),
        "items ranked",
        aliases=("num_ret",),
        depth="never",
        aggregate="sum",
    ),
    Metric(
        "num_rel",
        lambda ranked, request: ranked.raw.positives.astype(np.float64),
        "relevant items",
        aliases=("num_rel",),
        depth="never",
        aggregate="sum",
    ),
    Metric(
        "num_rel_ret",
        lambda ranked, request: ranked.raw.counts.astype(np.float64),
        "relevant items ranked",
        aliases=("num_rel_ret",),
        depth="never",
        aggregate="sum",
    ),
)

#: The deepest rank that a metric can be asked for: further ones are not exact in double precision.
DEEPEST = 1 << 53

_BY_ALIAS = {alias: metric for metric in METRICS for alias in metric.aliases}


def parse(name: str) -> Request:
    """Read a metric's name: ours (``nDCG@10``, ``RBP(p=0.8)``) or trec_eval's (``ndcg_cut_10``).

    Raises
    ------
    OptionError
        For an unknown name, or a depth that it does not take.
    """
    if not isinstance(name, str):
        raise OptionError(f"a metric is named by a string, not {type(name).__name__}")
    text = name.strip()
    metric, depth = _BY_ALIAS.get(text.lower()), None
    options: tuple[str, ...] = ()
    if metric is None:
        found = re.fullmatch(r"([^()@]+?)(?:\(([^()]*)\))?(?:[@._-]([0-9.]+))?(?:\(([^()]*)\))?", text)
        metric = _BY_ALIAS.get(found[1].lower()) if found else None
        if found and metric:
            given = found[2] or found[4]
            options = tuple(sorted(o.strip() for o in given.split(","))) if given else ()
            depth = found[3]
    if metric is None:
        known = ", ".join(m.mean_name or m.name for m in METRICS)
        raise OptionError(f"unknown metric {name!r}; one of: {known}, with @depth where it takes one")
    value = None
    if depth is not None:
        try:
            value = float(depth)
        except ValueError:
            value = -1.0
        whole = metric.name != "iprec"
        if (whole and (value < 1 or value != int(value))) or (not whole and not 0 <= value <= 1):
            wanted = "a positive integer" if whole else "a recall from 0 to 1"
            raise OptionError(f"{name!r}: the depth must be {wanted}")
        if value > DEEPEST:
            raise OptionError(f"{name!r}: the depth must be at most 2 ** 53")
    if metric.depth == "never" and depth is not None:
        raise OptionError(f"{metric.name} takes no depth: {name!r}")
    if metric.depth == "must" and depth is None:
        raise OptionError(f"{metric.name} needs a depth, as in {metric.name}@10")
    if options and not metric.options:
        raise OptionError(f"{metric.name} takes no options: {name!r}")
    return Request(metric, options, value)


def listed(names: Iterable[str] | str) -> list[str]:
    """Return metrics' names as a list, or say that there are none."""
    if not isinstance(names, Iterable):
        raise OptionError(f"metrics must be names, not {type(names).__name__}")
    found = [names] if isinstance(names, str) else list(names)
    if not found:
        raise OptionError("no metric is named")
    return found


def parse_rate(name: object) -> float | None:
    """Return the rate of ``TPR@FPR=rate``; None for other names.

    Raises
    ------
    OptionError
        For a rate that is not from 0 to 1.
    """
    if not isinstance(name, str) or not name.replace(" ", "").upper().startswith("TPR@FPR="):
        return None
    try:
        rate = float(name.partition("=")[2])
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise OptionError(f"{name!r}: the rate must be from 0 to 1, as in TPR@FPR=0.001")
    return rate


def parse_all(names: Iterable[str] | str, convention: Convention) -> list[Request]:
    """Read metrics' names, once each, and refuse what the convention has no value for."""
    requests: dict[str, Request] = {}
    for name in listed(names):
        request = parse(name)
        if convention.ties == "expected" and not request.metric.expected:
            able = ", ".join(m.name for m in METRICS if m.expected)
            raise OptionError(f"{request.key} has no closed form for ties='expected'; these have: {able}")
        requests.setdefault(request.key, request)
    return list(requests.values())
