"""The rankings that metrics are computed from, and the definition of a metric."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from detmap.errors import OptionError, shorten
from detmap.hits import Hits, TieRule, counted
from detmap.retrieval.conventions import Convention
from detmap.retrieval.pools import Pool

Values = NDArray[np.float64]


#: Tie rules that give every item a distinct rank, by index or document id.
BY_PLACE = ("index", "docid", "docid-ascending")

#: The order of a run's documents: a rule for ties, and whether scores are compared in single precision.
Order = tuple[TieRule, bool]


@dataclass(frozen=True)
class Ranked:
    """A block of rankings, the input of metrics."""

    #: The relevant items. Ties are ranked by item index or document id. If scores are known, the hits also tell which
    #: items are tied.
    raw: Hits
    #: The decisions under which metrics are computed.
    convention: Convention
    #: Every judged document that was ranked; None without judgements.
    pool: Pool | None = None
    #: For each query, the number of documents judged not relevant, ranked or not, shape (q,).
    negatives: NDArray[np.int64] | None = None
    #: ``ideal``, shape (g,), holds the grades above 0 of all judged documents, in descending order within each query.
    #: ``ideal_starts``, shape (q + 1,), holds the bounds of the queries. Both are None if every relevant item has grade
    #: 1.
    ideal_starts: NDArray[np.int64] | None = None
    ideal: NDArray[np.int64] | None = None
    #: The lowest grade that counts as relevant.
    level: int = 1
    #: The highest grade of the judgements.
    highest: float = 1
    #: The distinct grades above 0, ascending, shape (d,), if grades are fractions; else None. A stored grade *c* above
    #: 0 stands for the grade ``scale[c - 1]``.
    scale: Values | None = None
    #: The probability of a match up to each rank, shape (q, k), for the CMC of CUHK03 and SYSU-MM01.
    shots: Values | None = None
    #: The numbers of items, and of relevant items, within each Hamming radius, shape (q, bits + 1, 2); only for hash
    #: codes.
    radius: NDArray[np.int64] | None = None
    #: The ranked documents that are judged for at least one query, if a metric needs them.
    anywhere: Pool | None = None
    #: The same rankings in other orders, for the metrics that need them.
    others: Mapping[Order, Ranked] = field(default_factory=dict)

    @cached_property
    def hits(self) -> Hits:
        """The relevant items, ranked by the convention's tie rule."""
        return self.raw.break_ties(self.convention.ties)

    @cached_property
    def gained(self) -> Hits:
        """The items with a gain (a grade above 0), ranked by the convention's tie rule."""
        if self.pool is None:
            return self.hits
        return self.pool.hits(1).break_ties(self.convention.ties)

    @property
    def expected(self) -> bool:
        """Whether the expectation over all orders of tied items is requested."""
        return self.convention.ties == "expected"

    @property
    def gains(self) -> Values:
        """The grades of the items in `gained`; all 1 if relevance is not graded."""
        hits = self.gained
        return self.graded(hits.grades) if hits.grades.size else np.ones(hits.ranks.size)

    def graded(self, stored: NDArray[np.int64]) -> Values:
        """Convert stored grades to grades; see `scale`."""
        if self.scale is None:
            return stored.astype(np.float64)
        return np.append(0.0, self.scale)[np.maximum(stored, 0)]

    def at(self, level: float | None) -> Ranked:
        """Return the rankings with `level` as the lowest relevant grade (None: unchanged)."""
        if level is None:
            return self
        if self.pool is None or self.ideal is None or self.ideal_starts is None or self.negatives is None:
            raise OptionError(f"rel={level:g} needs grades; this entry has none")
        stored = stored_level(level, self.scale)
        if stored == self.level:
            return self
        found = counted(self.ideal_starts, self.ideal >= stored)
        negatives = self.negatives + self.raw.positives - found
        return replace(self, raw=self.pool.hits(stored, found), negatives=negatives, level=stored)

    def ordered(self, request: Request) -> Ranked:
        """Return the rankings in the order that a requested metric needs."""
        if request.order is None:
            return self
        if request.order not in self.others:
            raise OptionError(f"{request.name} orders documents by a rule of its own, which evaluate_run knows")
        return self.others[request.order]

    def judged(self, metric: str) -> Pool:
        """Return the pool for a metric of judged documents. Raise `OptionError` if there is no pool, or if tied
        documents share ranks.
        """
        if self.pool is None:
            raise OptionError(f"{metric} needs judgements of documents that are not relevant; this entry has none")
        if self.convention.ties not in BY_PLACE:
            allowed = " or ".join(map(repr, BY_PLACE))
            raise OptionError(f"{metric} is defined for ties={allowed}, not {self.convention.ties!r}")
        return self.pool


def stored_level(level: float, scale: Values | None) -> int:
    """Return the lowest stored grade that stands for a grade of at least `level`; see `Ranked.scale`."""
    return math.ceil(level) if scale is None or level <= 0 else int(np.searchsorted(scale, level)) + 1


@dataclass(frozen=True)
class Request:
    """A requested metric: ``nDCG(exp)@10`` is the metric nDCG with options ("exp",) and depth 10.

    ``AP(rel=2)@100`` is the metric AP with depth 100 and level 2: only items of grade 2 or higher count as relevant. If
    the convention reproduces several programs, `order` is the order of documents, and `digits` the rounding, in the
    program that computes this metric.
    """

    metric: Metric
    options: tuple[str, ...] = ()
    depth: float | None = None
    level: float | None = None
    order: Order | None = None
    digits: int | None = None

    def values(self, ranked: Ranked) -> Values:
        """Return the value of each query."""
        found = self.metric.compute(ranked.ordered(self).at(self.level), self)
        return found if self.digits is None else np.array([round(value, self.digits) for value in found.tolist()])

    def _decorate(self, name: str) -> str:
        given = (*self.options, *(() if self.level is None else (f"rel={self.level:g}",)))
        options = f"({','.join(given)})" if given else ""
        depth = ""
        if self.depth is not None:
            depth = f"@{int(self.depth)}" if self.depth.is_integer() else f"@{self.depth!r}"
        return f"{name}{options}{depth}"

    @property
    def key(self) -> str:
        """The metric's name for values per query."""
        return self._decorate(self.metric.name)

    @property
    def name(self) -> str:
        """The metric's name for the mean over queries."""
        return self._decorate(self.metric.mean_name or self.metric.name)

    @property
    def cut(self) -> int:
        """The depth as a rank, or a number above every rank if there is no depth."""
        return int(self.depth) if self.depth is not None else np.iinfo(np.int64).max

    def numbers(self, **defaults: float) -> list[float]:
        """Return the values of the options in `defaults`, in that order; raise `OptionError` for other options."""
        found = dict(defaults)
        for option in self.options:
            name, equals, text = option.partition("=")
            if name not in found or not equals or not re.fullmatch(r"-?[0-9.]+", text):
                known = ", ".join(f"{name}=number" for name in defaults)
                raise OptionError(f"{self.metric.name} takes the option {known}, not {shorten(option)}")
            try:
                found[name] = float(text)
            except ValueError:
                raise OptionError(f"{self.metric.name}: {shorten(option)} holds no number") from None
        return list(found.values())

    def number(self, name: str, default: float) -> float:
        """Return the value of the option `name`, or the default; raise `OptionError` for other options."""
        return self.numbers(**{name: default})[0]

    def flag(self, name: str) -> bool:
        """Return whether the option is given; raise `OptionError` for other options."""
        for option in self.options:
            if option != name:
                raise OptionError(f"{self.metric.name} takes the option {name}, not {shorten(option)}")
        return bool(self.options)


@dataclass(frozen=True)
class Aggregate:
    """How the values of queries are combined into one number."""

    #: ``combine(values)`` returns the number; `values` is not empty and has no NaN.
    combine: Callable[[Values], float]
    #: A convention may count a query without relevant items as 0 or 1. This function converts 0 and 1 to the scale of
    #: the values, such as logarithms.
    scale: Callable[[float], float] = float
    #: Whether values are counts, which are defined even for queries without relevant items.
    counts: bool = False


#: Minimum value of a query in a geometric mean.
LEAST = 1e-5


def _mean(values: Values) -> float:
    return float(np.mean(values))


def _exponential_of_mean(values: Values) -> float:
    return float(np.exp(np.sum(values) / values.size))


def _logarithm(value: float) -> float:
    return math.log(max(value, LEAST))


def _total(values: Values) -> float:
    return float(values.sum())


MEAN = Aggregate(_mean)
#: Geometric mean of values that are given as logarithms.
GEOMETRIC = Aggregate(_exponential_of_mean, _logarithm)
TOTAL = Aggregate(_total, counts=True)


@dataclass(frozen=True)
class Metric:
    """A row of the metric table.

    Attributes
    ----------
    name, mean_name : str
        Name of the values per query, and name of their mean (if empty, the same name).
    compute : callable
        ``compute(ranked, request)`` returns the values per query, shape (q,).
    formula : str
        Formula with its source.
    aliases : tuple of str
        All names in lower case: both names, and the given aliases from trec_eval and the literature.
    depth : {"never", "may", "must"}
        Whether the name takes ``@depth``.
    expected : bool
        Whether there is a closed form for ties="expected".
    aggregate : Aggregate
        How the queries' values become one number.
    options : bool
        Whether the name takes options in parentheses, besides ``rel``.
    at : {"rank", "recall", "multiple"}
        What ``@depth`` means: a rank, a recall from 0 to 1, or a multiple of the number of relevant items.
    parameter : str
        The option set by a number after the name, as in trec_eval's ``set_F.0.5``.
    default : str
        The default option, which the full name includes.
    ambiguous : str
        The option that a number after a dot, a hyphen or an underscore may mean, as in ranx's ``rbp.95``.
    levels : bool
        Whether the name takes ``rel=grade``, the lowest grade that counts as relevant.
    graded : bool
        Whether the metric reads the grades of the ideal ranking.
    reads : {"ranking", "relevant", "set"}
        The input of the metric if its name has no rank: the whole ranking, the ranks up to the number of relevant items
        (or a multiple of this number), or the retrieved items as a set.
    bounded : bool
        Whether the values per query lie between 0 and 1.
    """

    name: str
    compute: Callable[[Ranked, Request], Values]
    formula: str
    mean_name: str = ""
    aliases: tuple[str, ...] = ()
    depth: Literal["never", "may", "must"] = "may"
    expected: bool = False
    aggregate: Aggregate = MEAN
    options: bool = False
    at: Literal["rank", "recall", "multiple"] = "rank"
    parameter: str = ""
    default: str = ""
    ambiguous: str = ""
    levels: bool = True
    graded: bool = False
    reads: Literal["ranking", "relevant", "set"] = "ranking"
    bounded: bool = True

    def __post_init__(self) -> None:
        own = (self.name.lower(), self.mean_name.lower()) if self.mean_name else (self.name.lower(),)
        object.__setattr__(self, "aliases", tuple(dict.fromkeys((*own, *self.aliases))))
