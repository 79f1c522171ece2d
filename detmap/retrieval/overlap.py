"""Similarity of two rankings, independent of relevance."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import InputError, OptionError, is_integer, shorten
from detmap.retrieval.neighbors import of_search
from detmap.retrieval.scoring import numeric_table


def rank_biased_overlap(
    first: Iterable[Hashable], second: Iterable[Hashable], p: float = 0.9, *, extrapolate: bool = True
) -> float:
    """Return the rank-biased overlap of two rankings (Webber, Moffat and Zobel, 2010).

    Parameters
    ----------
    first, second : iterable of hashable
        Distinct ids, best first. The rankings may differ in length.
    p : float
        The probability that a reader continues to the next rank, above 0 and below 1.
    extrapolate : bool
        Whether the agreement at the end is extrapolated (equation 32 of the paper). Otherwise the sum stops at the end of
        the shorter ranking, and is less than 1 even for equal rankings.

    Returns
    -------
    float
        From 0 (no common id) to 1. The overlap is 1 if both rankings are empty, and 0 if only one is.

    Raises
    ------
    InputError
        If a ranking holds an id twice.
    """
    if not isinstance(p, float | int) or not 0 < p < 1:
        raise OptionError(f"p must be above 0 and below 1, not {p!r}")
    longer, shorter = sorted((_distinct(first, "first"), _distinct(second, "second")), key=len, reverse=True)
    if not shorter:
        return float(not longer)
    seen: tuple[set[Any], set[Any]] = set(), set()
    common = at_end = 0
    total, weight = 0.0, 1.0
    for depth, item in enumerate(longer, 1):
        other = shorter[depth - 1] if depth <= len(shorter) else None
        inside = depth <= len(shorter)
        common += item in seen[1]
        seen[0].add(item)
        if inside:
            common += other in seen[0]
            seen[1].add(other)
            at_end = common
        elif not extrapolate:
            break
        beyond = 0.0 if inside else at_end * (depth - len(shorter)) / (len(shorter) * depth)
        total += (common / depth + beyond) * weight
        weight *= p
    total *= 1 - p
    if not extrapolate:
        return total
    return total + ((common - at_end) / len(longer) + at_end / len(shorter)) * weight


def _distinct(ranking: Iterable[Hashable], source: str) -> list[Hashable]:
    """Return the ids of a ranking; raise `InputError` for a repeated id."""
    ids = list(ranking)
    seen: set[Hashable] = set()
    for rank, one in enumerate(ids, 1):
        if one in seen:
            raise InputError("an id is there twice", source=source, record=f"rank {rank}", value=one)
        seen.add(one)
    return ids


def neighbor_recall(
    found: ArrayLike | tuple[ArrayLike, ArrayLike], exact: ArrayLike | tuple[ArrayLike, ArrayLike], k: int | None = None
) -> float:
    """Return the recall of an approximate index: the share of the exact *k* nearest neighbours that it found.

    If both arguments have distances, an item as near as the last exact neighbour also counts as found, because the
    choice among ties is arbitrary.

    Parameters
    ----------
    found, exact : array_like of int, shape (q, at least k), or tuple of indices and distances
        The neighbours, best first, from the index and from an exhaustive search; -1 stands for no neighbour. A tuple may
        hold indices and distances in either order, as for `evaluate_neighbors`. Distances may ascend, or descend as
        inner products do.
    k : int, optional
        Number of neighbours compared; by default the number of neighbours in `exact`.

    Returns
    -------
    float
        The mean over queries, from 0 to 1; NaN if there are no queries.

    Raises
    ------
    InputError
        If the numbers of queries differ, there are fewer than `k` exact neighbours, or an item is repeated.
    """
    (items, near), (wanted, bound) = (_searched(side, name) for side, name in ((found, "found"), (exact, "exact")))
    k = wanted.shape[1] if k is None else k
    if not is_integer(k) or k < 1:
        raise OptionError(f"k must be a positive integer, not {shorten(k)}")
    if len(items) != len(wanted) or k > wanted.shape[1]:
        shapes = f"{items.shape} and {wanted.shape}"
        raise InputError(f"expected {k} exact neighbours of the same queries, not {shapes}", source="exact")
    if not len(items):
        return float("nan")
    items, wanted = items[:, :k], wanted[:, :k]
    for side, name in ((items, "found"), (wanted, "exact")):
        row = np.sort(side, axis=1)
        twice = (row[:, 1:] == row[:, :-1]) & (row[:, 1:] >= 0)
        if twice.any():
            raise InputError("an item is there twice", source=name, record=int(np.argmax(twice.any(axis=1))))
    counted = np.array([np.isin(*pair) for pair in zip(items, wanted, strict=True)])
    if near is not None and bound is not None:
        ends, descending = bound[:, k - 1 : k], bool((bound[:, 0] > bound[:, k - 1]).any())
        counted |= near[:, :k] >= ends if descending else near[:, :k] <= ends
    return float((counted & (items >= 0)).sum(axis=1).mean() / k)


def _searched(side: Any, name: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the neighbours of a search, and their distances (None if not given)."""
    indices, distances = of_search(side, None)
    items = numeric_table(indices, name)
    if items.dtype.kind not in "iu":
        raise InputError("neighbours are places, which are integers", source=name, value=str(items.dtype))
    measured = None if distances is None else numeric_table(distances, name)
    if measured is not None and measured.shape != items.shape:
        raise InputError(f"distances of shape {measured.shape} for {items.shape} neighbours", source=name)
    return items, measured
