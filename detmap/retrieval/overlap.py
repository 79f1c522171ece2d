"""How alike two rankings are, whatever is relevant."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from detmap.errors import InputError, OptionError


def rank_biased_overlap(
    first: Iterable[Hashable], second: Iterable[Hashable], p: float = 0.9, *, extrapolate: bool = True
) -> float:
    """Return the rank-biased overlap of two rankings: Webber, Moffat and Zobel (2010).

    Parameters
    ----------
    first, second : iterable of hashable
        Ids, best first, each once in a ranking. They may be of different lengths.
    p : float
        The probability that a reader goes on to the next rank, above 0 and below 1.
    extrapolate : bool
        Whether the agreement at the end is taken to go on (their equation 32). Otherwise nothing is known beyond the end of
        the shorter ranking, and the sum over its ranks is less than 1 for equal rankings too.

    Returns
    -------
    float
        From 0, nothing in common, to 1. Of two empty rankings 1, of one empty ranking 0.

    Raises
    ------
    InputError
        For an id that a ranking has twice.
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
    """Return the ids of a ranking, or refuse one that is repeated."""
    ids = list(ranking)
    seen: set[Hashable] = set()
    for rank, one in enumerate(ids, 1):
        if one in seen:
            raise InputError("an id is there twice", source=source, record=f"rank {rank}", value=one)
        seen.add(one)
    return ids
