"""Ids: which there are, which of them each record has, and where some lie among others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import columns
from detmap.errors import InputError
from detmap.kernels import readonly
from detmap.shapes.boxes import extremes, over_rows


class Ids(NamedTuple):
    """Distinct ids and, for every record, which one it has.

    ``values`` (k,) ascends and is int64 or a string dtype; ``codes`` (n,) is int32.
    """

    values: NDArray[Any]
    codes: NDArray[np.int32]


def index_ids(ids: ArrayLike | Ids, *, source: str, field: str) -> Ids:
    """Find the distinct ids, in ascending order, and the index of each record's.

    Of `Ids` the values may come in any order, each once and all in use.

    Raises
    ------
    InputError
        Where the ids are not all integers or all strings.
    """
    if isinstance(ids, Ids):
        ascending = np.argsort(ids.values, kind="stable")
        place = np.empty(ascending.size, np.int32)
        place[ascending] = np.arange(ascending.size)
        return Ids(readonly(ids.values[ascending], ids.values.dtype), readonly(place[ids.codes], np.int32))
    values = columns.identifiers(ids, source=source, field=field)
    if not values.size:
        return Ids(readonly((), np.int64), readonly((), np.int32))
    if values.dtype.kind == "i":
        low, high = map(int, extremes(values))
        if high - low < 8 * values.size + 1_000_000:  # ids are mostly dense: look them up rather than sort
            seen, codes = np.zeros(high - low + 1, np.bool_), np.empty(values.size, np.int32)

            def see(begin: int, end: int) -> None:
                seen[values[begin:end] - low] = True

            def look_up(begin: int, end: int) -> None:
                codes[begin:end] = place[values[begin:end] - low]

            over_rows(see, values.size)
            place = np.cumsum(seen, dtype=np.int32) - np.int32(1)
            over_rows(look_up, values.size)
            return Ids(readonly(np.flatnonzero(seen) + low, np.int64), readonly(codes, np.int32))
    distinct, index = np.unique(values, return_inverse=True)
    return Ids(readonly(distinct, distinct.dtype), readonly(index.reshape(-1), np.int32))


def index_among(
    ids: ArrayLike | Ids, listed: ArrayLike | Ids | None, source: str, field: str, plural: str
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Index `ids` among `listed`, or among themselves."""
    own = index_ids(ids, source=source, field=field)
    if listed is None:
        return own
    known = index_ids(listed, source=source, field=plural).values
    place = locate(own.values, known)
    if (place < 0).any():
        missing = int(np.argmax(place < 0))
        raise InputError(
            f"is not among the {plural}",
            source=source,
            record=int(np.argmax(own.codes == missing)),
            field=field,
            value=own.values[missing].item(),
            remedy=f"list it under {plural} or leave out the record",
        )
    return known, readonly(place.astype(np.int32)[own.codes], np.int32)


def used(ids: Ids, rows: NDArray[Any]) -> Ids:
    """Return the ids of some records, those that none of them has left out."""
    codes = ids.codes[rows]
    seen = np.zeros(ids.values.size, np.bool_)
    seen[codes] = True
    place = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    values = ids.values[seen]
    if not values.size:
        return Ids(readonly((), np.int64), readonly((), np.int32))
    return Ids(readonly(values, values.dtype), readonly(place[codes], np.int32))


def coded(strings: Sequence[str]) -> Ids:
    """Return the distinct strings and each one's code: an array of them all would be as wide as the widest."""
    places: dict[str, int] = {}
    codes = [places.setdefault(value, len(places)) for value in strings]
    return Ids(np.array(list(places), str), np.array(codes, np.int32))


def locate(ids: NDArray[Any], within: NDArray[Any]) -> NDArray[np.int64]:
    """Return the position of each of `ids` in the ascending array `within`, -1 where it is not there."""
    if not within.size or not ids.size or (ids.dtype.kind == "i") != (within.dtype.kind == "i"):
        return np.full(ids.size, -1, np.int64)
    place = np.minimum(np.searchsorted(within, ids), within.size - 1)
    return np.where(within[place] == ids, place, -1)


def select(ids: Sequence[Any] | ArrayLike, known: NDArray[Any], what: str) -> NDArray[np.bool_]:
    """Return which of `known` the `ids` ask for.

    Raises
    ------
    InputError
        Where one of them is not known.
    """
    if not isinstance(ids, np.ndarray | Ids):
        ids = list(ids)  # type: ignore[arg-type]  # sets and iterators too
    wanted = index_ids(ids, source="evaluate", field=what).values
    place = locate(wanted, known)
    if (place < 0).any():
        raise InputError(
            "is not in the ground truth", source="evaluate", field=what, value=wanted[int(np.argmax(place < 0))].item()
        )
    mask = np.zeros(known.size, np.bool_)
    mask[place] = True
    return mask
