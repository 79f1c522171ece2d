"""Cumulative match characteristic (CMC) of ranked identities. An identity is represented by one randomly drawn item, or
by all its items.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.ranking import Distances, Lists

Array = NDArray[Any]

# CMC variants: one random item per identity; the expectation over such draws; all items of an identity merged.
DRAW, EXPECT, MERGE = 0, 1, 2


@helper
def _scramble(x: Any) -> Any:
    """Return the finaliser of splitmix64, a hash. A random draw is a hash of seed, query, draw number and identity, so
    that it does not depend on the order of work.
    """
    z = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Identities(NamedTuple):
    """The identity of each item (``people``) and of each query (``own``), as numbers below ``total``."""

    people: Array
    own: Array
    total: int


class Drawing(NamedTuple):
    """The ``rule`` (DRAW, EXPECT or MERGE), the number of ``draws``, and the ``seed``. Seed and query number determine
    a draw; the first query has the number ``first_query``.
    """

    rule: int
    draws: int
    seed: int
    first_query: int


class Room(NamedTuple):
    """Buffers of `shots`. For each item: whether it is ``skipped``. For each identity: its number of items (``size``),
    the number of its items before a given item (``ahead``), and the item drawn (``chosen``). ``chances[r]`` is the
    probability that *r* identities are ahead of the match, not counting identities that are ahead in every draw.
    """

    skipped: Array
    size: Array
    ahead: Array
    chosen: Array
    chances: Array


@helper
def _draw(row: Array, q: int, identities: Identities, drawing: Drawing, room: Room, out: Array) -> None:
    """Add the CMC of query `q` to `out` for every draw."""
    people, size, ahead, chosen = identities.people, room.size, room.ahead, room.chosen
    own, n = identities.own[q], row.size
    size[:] = 0
    for i in range(n):
        size[people[i]] += 1 - room.skipped[i]
    for d in range(drawing.draws):
        ahead[:] = 0
        for p in range(identities.total):
            if size[p]:
                name = _scramble(np.uint64(drawing.seed) ^ _scramble(np.uint64(drawing.first_query + q)))
                name = _scramble(_scramble(name ^ np.uint64(d)) ^ np.uint64(p))
                chosen[p] = np.int64(name % np.uint64(size[p]))
        match = 0
        for i in range(n):  # find the item that was chosen for each identity
            if not room.skipped[i]:
                p = people[i]
                if ahead[p] == chosen[p]:
                    chosen[p] = n + i
                    if p == own:
                        match = i
                ahead[p] += 1
        rank = 0
        for p in range(identities.total):
            if size[p] and p != own:
                i = chosen[p] - n
                if row[i] < row[match] or (row[i] == row[match] and i < match):
                    rank += 1
        for r in range(rank, out.size):
            out[r] += 1.0


@helper
def _expect(row: Array, match: int, own: int, identities: Identities, merge: bool, room: Room) -> int:
    """Return how many identities are ahead of `match` in every draw. Write to ``room.chances`` the probabilities that
    0, 1, 2, … further identities are ahead. With `merge`, an identity is certainly ahead if any item of the identity is
    ahead.
    """
    people, size, ahead, chances, k = identities.people, room.size, room.ahead, room.chances, room.chances.size
    size[:] = 0
    ahead[:] = 0
    for i in range(row.size):
        if not room.skipped[i]:
            size[people[i]] += 1
            if row[i] < row[match] or (row[i] == row[match] and i < match):
                ahead[people[i]] += 1
    chances[:] = 0.0
    chances[0] = 1.0
    certain = 0
    for p in range(identities.total):
        if p == own or ahead[p] == 0:
            continue
        if merge or ahead[p] == size[p]:
            certain += 1
            continue
        share = ahead[p] / size[p]
        for r in range(k - 1, 0, -1):
            chances[r] = chances[r] * (1.0 - share) + chances[r - 1] * share
        chances[0] *= 1.0 - share
    return certain


@kernel
def shots(
    distances: Distances,
    relevant: Lists,
    junk: Lists,
    identities: Identities,
    drawing: Drawing,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Write CMC at ranks 1 .. k of queries ``[begin, end)`` where identities, not items, are ranked.

    DRAW takes one random item of each identity, many times. EXPECT is the expectation over all draws. The probability
    that an identity is ahead of a match is the share of its items that are ahead. Identities are independent. MERGE
    counts the identities with an item ahead of the first match. Ties are in index order.
    """
    n, k, merge, people = identities.people.size, out.shape[1], drawing.rule == MERGE, identities.total
    room = Room(
        np.zeros(n, np.uint8),
        np.zeros(people, np.int64),
        np.zeros(people, np.int64),
        np.empty(people, np.int64),
        np.empty(k),
    )
    for q in range(begin, end):
        row = distances.values[distances.rows[q - distances.first] : distances.rows[q - distances.first + 1]]
        matches = relevant.items[relevant.starts[q] : relevant.starts[q + 1]]
        out[q] = 0.0
        if matches.size == 0:
            continue
        for t in range(junk.starts[q], junk.starts[q + 1]):
            room.skipped[junk.items[t]] = 1
        if drawing.rule == DRAW:
            _draw(row, q, identities, drawing, room, out[q])
            out[q] /= drawing.draws
        for t in range(0 if drawing.rule == DRAW else 1 if merge else matches.size):
            match = matches[t]
            for u in range(matches.size if merge else 0):
                i = matches[u]
                if row[i] < row[match] or (row[i] == row[match] and i < match):
                    match = i
            certain = _expect(row, match, identities.own[q], identities, merge, room)
            total = 0.0
            for r in range(certain, k):
                total += room.chances[r - certain]
                out[q, r] += total if merge else total / matches.size
        for t in range(junk.starts[q], junk.starts[q + 1]):
            room.skipped[junk.items[t]] = 0
