"""Samples of many queries in flat columns, as torchmetrics' retrieval metrics take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.errors import InputError, StateError
from detmap.kernels import Frozen, readonly
from detmap.retrieval.ranked import Request
from detmap.retrieval.runs import Rules, ranked_run
from detmap.retrieval.scoring import RankingResult

#: The columns of a saved state, in order, with their dtypes.
_KINDS = {"queries": np.int64, "scores": np.float64, "grades": np.float64}


@dataclass(frozen=True, eq=False)
class FlatSamples(Frozen):
    """Samples in the order of their arrival."""

    #: The query of each sample, shape (n,).
    queries: NDArray[np.int64]
    #: The score and the relevance of each sample, shape (n,).
    scores: NDArray[np.float64]
    grades: NDArray[np.float64]

    @classmethod
    def read(cls, preds: Any, target: Any, indexes: Any) -> FlatSamples:
        """Return a checked batch; arrays of any shape are flattened."""
        scores = columns.numbers(preds, source="preds")
        grades = columns.numbers(target, source="target", booleans=True)
        queries = np.asarray(columns.array(indexes))
        if not scores.shape == grades.shape == queries.shape:
            shapes = f"{scores.shape}, {grades.shape} and {queries.shape}"
            raise InputError(f"preds, target and indexes must be of one shape, not {shapes}", source="update")
        if queries.size and queries.dtype.kind not in "iu":
            raise InputError("must be integers", source="indexes", value=queries.dtype.name)
        for name, values, wrong in (
            ("preds", scores, np.isnan(scores)),
            ("target", grades, ~(np.abs(grades) <= 2.0**31)),
        ):
            if wrong.any():
                row = int(np.argmax(wrong))
                limits = "a score is NaN" if name == "preds" else "a grade must be from -2 ** 31 to 2 ** 31"
                raise InputError(limits, source=name, record=row, value=float(values.ravel()[row]))
        return cls.of([queries, scores, grades])

    @classmethod
    def of(cls, given: Sequence[NDArray[Any]]) -> FlatSamples:
        """Return samples from columns, flattened."""
        return cls(*(readonly(one.ravel(), kind) for one, kind in zip(given, _KINDS.values(), strict=True)))

    @classmethod
    def join(cls, parts: Sequence[FlatSamples]) -> FlatSamples:
        """Return the concatenated samples of all `parts`."""
        return cls.of([np.concatenate(each) for each in zip(*(part.columns.values() for part in parts), strict=True)])

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns, in the order of a saved state."""
        return {name: getattr(self, name) for name in _KINDS}

    def layout(self) -> list[tuple[str, int]]:
        """Return the columns' names and sizes as in a saved state."""
        return [(name, self.queries.size) for name in _KINDS]

    @classmethod
    def restore(cls, layout: Sequence[tuple[str, int]], payload: memoryview) -> FlatSamples:
        """Return the samples of a saved state."""
        size = len(payload) // (8 * len(_KINDS))
        if [tuple(one) for one in layout] != [(name, size) for name in _KINDS] or len(payload) % (8 * len(_KINDS)):
            raise StateError("not an evaluator: its columns are not of the size that it says")
        return cls.of(
            [
                np.frombuffer(payload, np.dtype(kind).newbyteorder("<"), size, 8 * size * at)
                for at, kind in enumerate(_KINDS.values())
            ]
        )

    def score(self, rules: Rules, requests: Sequence[Request]) -> RankingResult:
        """Rank the samples of each query, in ascending order of queries, and evaluate metrics."""
        order = np.argsort(self.queries, kind="stable")
        queries, number = self.queries[order], np.arange(order.size)
        qrels, run = ((queries, number, values[order]) for values in (self.grades, self.scores))
        return ranked_run(qrels, run, rules, requests).score(requests)
