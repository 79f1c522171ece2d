"""The rankings that metrics are computed from, and the definition of a metric."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from detmap.errors import OptionError
from detmap.hits import Hits
from detmap.retrieval.conventions import Convention
from detmap.retrieval.pools import Pool

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Ranked:
    """A block of rankings, as an entry point passes it to the metrics.

    Attributes
    ----------
    raw : Hits
        The relevant items, tied ones in the order of the items (or of document ids), with the bounds of their tied groups
        where scores are known.
    convention : Convention
        What to read from it.
    pool : Pool or None
        Every judged document that was ranked; None where there are no judgements.
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
    pool: Pool | None = None
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
        return self.pool.hits(1).break_ties(self.convention.ties)

    @property
    def expected(self) -> bool:
        """Whether the mean over all orders of the tied items is asked for."""
        return self.convention.ties == "expected"

    def judged(self, metric: str) -> Pool:
        """Return the pool for a metric that counts judged documents, or raise an error that says why there is none."""
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
        """The depth as a rank; without a depth a number beyond every rank."""
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
