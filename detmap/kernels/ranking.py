"""Where do the relevant items fall? Kernels that rank the few relevant items of a query without sorting the gallery.

A query's relevant items are sorted by distance; the gallery streams by once, and every item is counted in the interval
between two of them that it falls in. That gives for each relevant item how many items are strictly nearer (`ahead`), how
many are as near (`tied`, itself included), and how many of these come earlier in the gallery, hence its rank with ties in
index order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.sorting import longest_group

Array = NDArray[Any]

#: Up to so many distinct distances of relevant items, a vectorised count for each is faster than a search for every item.
FEW = 256


@helper
def _sort_by_value(values: Array, order: Array, scratch: Array) -> None:
    """Sort `order`, positions in `values`, by value; equal values keep their order (bottom-up merge sort)."""
    n = order.size
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if i < middle and (j >= high or values[order[i]] <= values[order[j]]):
                    scratch[k] = order[i]
                    i += 1
                else:
                    scratch[k] = order[j]
                    j += 1
        for k in range(n):
            order[k] = scratch[k]
        width *= 2


@helper
def _place(steps: Array, count: int, x: float) -> int:
    """Return how many of the first `count` ascending `steps` are below `x`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if steps[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _count(row: Array, steps: Array, groups: int, below: Array, equal: Array) -> None:
    """Count the values of `row` below and equal to each step: plain loops, which the compiler turns into vectors."""
    for low in range(0, row.size, 16384):
        part = row[low : low + 16384]
        for g in range(groups):
            step, a, b = steps[g], 0, 0
            for i in range(part.size):
                a += part[i] < step
                b += part[i] == step
            below[g] += a
            equal[g] += b


class Distances(NamedTuple):
    """The distances of queries from number ``first`` on: those of query *q* are ``values[rows[i]:rows[i + 1]]`` with
    ``i = q - first``.
    """

    values: Array
    rows: Array
    first: int


class Lists(NamedTuple):
    """Items of each query: those of query *q* are ``items[starts[q]:starts[q + 1]]``, ascending."""

    starts: Array
    items: Array


class Places(NamedTuple):
    """Where relevant items fall, by query and rank: the ``ranks``, how many items are ``ahead`` of the tied group of each,
    how many ``tied``, and ``which`` element of the list of relevant items each is. By query: how many ``items`` were ranked.
    """

    ranks: Array
    ahead: Array
    tied: Array
    which: Array
    items: Array


class Groups(NamedTuple):
    """The distinct distances of a query's relevant items, the ``steps``, ascending; step *g* has the relevant items
    ``bounds[g]:bounds[g + 1]`` of those in order of distance. All items counted: ``nearer`` than the step but not than the
    step before, and ``equal`` to it. By relevant item in order of distance: how many equal ones are ``before`` it. ``turn``
    is the relevant item of the step that the gallery reaches next.
    """

    steps: Array
    bounds: Array
    turn: Array
    nearer: Array
    equal: Array
    before: Array


@helper
def _group(found: Array, order: Array, groups: Groups) -> int:
    """Write the steps of the distances `found`, of which `order` is the order, and reset the counts; return how many."""
    count = 0
    for j in range(order.size):
        x = found[order[j]]
        if count == 0 or x != groups.steps[count - 1]:
            groups.steps[count], groups.bounds[count], groups.turn[count] = x, j, j
            groups.nearer[count] = groups.equal[count] = 0
            count += 1
    groups.bounds[count] = order.size
    return count


@helper
def _count_for_each(row: Array, mine: Array, order: Array, count: int, groups: Groups) -> None:
    """Count a row of distances step by step: `mine` are the relevant items, `order` theirs by distance."""
    steps, bounds, nearer, equal, before = groups.steps, groups.bounds, groups.nearer, groups.equal, groups.before
    _count(row, steps, count, nearer, equal)
    for g in range(count - 1, 0, -1):
        nearer[g] -= nearer[g - 1] + equal[g - 1]
    for g in range(count):
        if equal[g] == 1:
            before[bounds[g]] = 0
            continue
        x, j, met = steps[g], bounds[g], 0
        for i in range(mine[order[bounds[g + 1] - 1]] + 1):
            if row[i] == x:
                if mine[order[j]] == i:
                    before[j] = met
                    j += 1
                met += 1


@helper
def _search_for_each(row: Array, mine: Array, order: Array, count: int, groups: Groups) -> None:
    """Count a row of distances item by item, as `_count_for_each` does."""
    steps, turn, equal = groups.steps, groups.turn, groups.equal
    for i in range(row.size):
        x = row[i]
        if x > steps[count - 1]:
            continue
        g = _place(steps, count, x)
        if steps[g] != x:
            groups.nearer[g] += 1
            continue
        j = turn[g]
        if j < groups.bounds[g + 1] and mine[order[j]] == i:
            groups.before[j] = equal[g]
            turn[g] = j + 1
        equal[g] += 1


@helper
def _take_out(row: Array, junk: Array, mine: Array, order: Array, count: int, groups: Groups) -> None:
    """Take junk out of what was counted."""
    last = groups.steps[count - 1] if count else -np.inf
    for t in range(junk.size):
        x = row[junk[t]]
        if x > last:
            continue
        g = _place(groups.steps, count, x)
        if groups.steps[g] != x:
            groups.nearer[g] -= 1
            continue
        groups.equal[g] -= 1
        for j in range(groups.bounds[g], groups.bounds[g + 1]):
            if mine[order[j]] > junk[t]:
                groups.before[j] -= 1


@kernel
def rank_relevant(distances: Distances, relevant: Lists, junk: Lists, begin: int, end: int, out: Places) -> int:
    """Rank the relevant items of queries ``[begin, end)``; return the first query with a NaN distance, or -1.

    The `junk` of a query is taken out of its ranking.
    """
    most = longest_group(relevant.starts, begin, end)
    found, orders, scratch = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    groups = Groups(
        np.empty(most),
        np.empty(most + 1, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    for q in range(begin, end):
        row = distances.values[distances.rows[q - distances.first] : distances.rows[q - distances.first + 1]]
        first = relevant.starts[q]
        mine, left = relevant.items[first : relevant.starts[q + 1]], junk.items[junk.starts[q] : junk.starts[q + 1]]
        order = orders[: mine.size]
        out.items[q] = row.size - left.size
        for j in range(mine.size):
            found[j] = row[mine[j]]
            order[j] = j
        _sort_by_value(found, order, scratch)
        count = _group(found, order, groups)
        bad = 0
        for i in range(row.size):
            bad += row[i] != row[i]
        if bad:
            return q
        if count <= FEW:
            _count_for_each(row, mine, order, count, groups)
        else:
            _search_for_each(row, mine, order, count, groups)
        _take_out(row, left, mine, order, count, groups)
        ahead = 0
        for g in range(count):
            ahead += groups.nearer[g]
            for j in range(groups.bounds[g], groups.bounds[g + 1]):
                out.ahead[first + j] = ahead
                out.tied[first + j] = groups.equal[g]
                out.which[first + j] = first + order[j]
                out.ranks[first + j] = ahead + groups.before[j] + 1
            ahead += groups.equal[g]
    return -1


@helper
def _bits(x: Any) -> Any:
    """Return the number of bits set: the idiom that compilers turn into one instruction."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@helper
def _hamming(codes: Array, i: int, query: Array) -> Any:
    total = np.uint64(0)
    for w in range(query.size):
        total += _bits(codes[i * query.size + w] ^ query[w])
    return total


@helper
def _shares(labels: Array, i: int, wanted: Array, several: bool) -> Any:
    """Return 1 where item *i* has the label of the query, or with `several` one of its labels; else 0."""
    if not several:
        return np.int64(labels[i] == wanted[0])
    common = np.uint64(0)
    for w in range(wanted.size):
        common |= labels[i * wanted.size + w] & wanted[w]
    return np.int64(common != np.uint64(0))


@kernel
def count_shared(labels: Array, wanted: Array, several: bool, begin: int, end: int, out: Array) -> None:
    """Count the items that share a label with queries ``[begin, end)``; labels as in `rank_codes`."""
    for q in range(begin, end):
        total = 0
        for i in range(labels.size // wanted.shape[1]):
            total += _shares(labels, i, wanted[q], several)
        out[q] = total


#: Items that are measured at a time, and queries that share them while they are in the cache.
TILE, GROUP = 4096, 8


@helper
def _measure(codes: Array, query: Array, out: Array) -> None:
    """Write the Hamming distance of each item: for codes of a word a loop that the compiler turns into vectors."""
    if query.size == 1:
        word = query[0]
        for i in range(codes.size):
            out[i] = _bits(codes[i] ^ word)
    else:
        for i in range(codes.size // query.size):
            out[i] = _hamming(codes, i, query)


@helper
def _relate(labels: Array, wanted: Array, several: bool, out: Array) -> None:
    """Write whether each item is relevant; labels as in `rank_codes`."""
    if wanted.size == 1 and not several:
        name = wanted[0]
        for i in range(labels.size):
            out[i] = labels[i] == name
    else:
        for i in range(labels.size // wanted.size):
            out[i] = _shares(labels, i, wanted, several)


@helper
def _same(labels: Array, name: Any, out: Array) -> None:
    """Write whether each item has the label, a byte: many times as fast as words, of which few fit into a vector."""
    for i in range(labels.size):
        out[i] = labels[i] == name


@helper
def _stream(near: Array, good: Array, count: Array, seen: Array) -> Any:
    """Count measured items by distance, and note of each relevant one how many came before it at its distance.

    ``seen[j]`` of the *j*-th relevant item is that number, shifted left by 16 bits, plus its distance; an item that is not
    relevant is noted too, and overwritten by the next. Return how many relevant items there are.
    """
    found = 0
    for i in range(near.size):
        d = near[i]
        before = count[d]
        seen[found] = (before << 16) | np.int64(d)
        count[d] = before + 1
        found += np.int64(good[i])
    return found


@kernel
def rank_codes(
    codes: Array,
    queries: Array,
    labels: Array,
    wanted: Array,
    several: bool,
    small: bool,
    own: Array,
    starts: Array,
    depth: int,
    begin: int,
    end: int,
    out_ranks: Array,
    out_ahead: Array,
    out_tied: Array,
    out_counts: Array,
    out_radius: Array,
) -> None:
    """Rank the items that are relevant to queries ``[begin, end)`` by Hamming distance, with counting buckets.

    `codes` and `labels` are flat, as many words per item as a row of `queries` and `wanted` has. An item is relevant where
    its label word equals the query's, or with `several` where they share a bit; with `small` the gallery's labels are bytes,
    eight to a word. Item ``own[q]`` is left out (the number
    of items: none). Ties are in index order: an item's place among the equally distant is how many of them have streamed by.
    Hits are written from ``starts[q]`` on, as many as ``out_counts[q]`` says: those whose tied group begins within `depth`.
    Where `out_ahead` and `out_tied` are empty the ranks alone are written. ``out_radius[q, r]`` is how many items, and how
    many relevant ones, are within distance *r*.
    """
    width, words, buckets, most = queries.shape[1], wanted.shape[1], out_radius.shape[1], 0
    n, narrow = codes.size // width, labels.view(np.uint8)
    for q in range(begin, end):
        most = max(most, starts[q + 1] - starts[q])
    together = max(1, min(end - begin, GROUP, (1 << 20) // (most + 1)))
    found, seen = np.empty(together, np.int64), np.empty((together, most + 1), np.int64)
    counts, ahead, place = (
        np.empty((together, buckets), np.int64),
        np.empty(buckets, np.int64),
        np.empty(buckets, np.int64),
    )
    near, good = np.empty(TILE, np.uint16), np.empty(TILE, np.uint8)
    for group in range(begin, end, together):
        last = min(group + together, end)
        found[:], counts[:] = 0, 0
        for low in range(0, n, TILE):  # a tile of the gallery stays in the cache for all queries of the group
            high = min(low + TILE, n)
            tile, size = codes[low * width : high * width], high - low
            for q in range(group, last):
                _measure(tile, queries[q], near)
                if small:
                    _same(narrow[low:high], np.uint8(wanted[q, 0]), good)
                else:
                    _relate(labels[low * words : high * words], wanted[q], several, good)
                row, mine = q - group, max(0, min(own[q] - low, size))  # the own item is left out
                found[row] += _stream(near[:mine], good[:mine], counts[row], seen[row, found[row] :])
                mine += own[q] >= low
                found[row] += _stream(near[mine:size], good[mine:size], counts[row], seen[row, found[row] :])
        for q in range(group, last):
            count, hits = counts[q - group], seen[q - group, : found[q - group]]
            total = 0
            for d in range(buckets):
                ahead[d] = total
                total += count[d]
                place[d] = 0
            for j in range(hits.size):
                place[hits[j] & 0xFFFF] += 1
            kept, relevant = 0, 0
            for d in range(buckets):
                relevant += place[d]
                out_radius[q, d, 0] = ahead[d] + count[d]
                out_radius[q, d, 1] = relevant
                size, place[d] = place[d], starts[q] + kept
                if ahead[d] < depth:
                    kept += size
            out_counts[q] = kept
            for j in range(hits.size):
                d = hits[j] & 0xFFFF
                if ahead[d] < depth:
                    out_ranks[place[d]] = ahead[d] + (hits[j] >> 16) + 1
                    if out_ahead.size:
                        out_ahead[place[d]] = ahead[d]
                        out_tied[place[d]] = count[d]
                    place[d] += 1


@kernel
def rank_samples(positive: Array, negative: Array, out_ahead: Array, out_tied: Array) -> None:
    """Rank the positive samples among all, by descending score; both inputs are ascending."""
    j = 0
    hits, wrong = positive.size, negative.size
    below, upto = wrong, wrong  # negatives below, and not above, the score
    while j < hits:
        x = positive[hits - 1 - j]
        stop = j + 1
        while stop < hits and positive[hits - 1 - stop] == x:
            stop += 1
        while upto > 0 and negative[upto - 1] > x:
            upto -= 1
        below = upto
        while below > 0 and negative[below - 1] == x:
            below -= 1
        for i in range(j, stop):
            out_ahead[i] = j + wrong - upto
            out_tied[i] = stop - j + upto - below
        j = stop
        upto = below


@kernel
def tally_intervals(
    distances: Distances, junk: Lists, steps: Array, begin: int, end: int, between: Array, equal: Array
) -> None:
    """Count the distances of queries ``[begin, end)`` in the intervals of ascending `steps`, junk left out.

    Adds to ``between[g]`` those below ``steps[g]`` and above the step before (the last element: above all), and to
    ``equal[g]`` those equal to it.
    """
    for q in range(begin, end):
        row = distances.values[distances.rows[q - distances.first] : distances.rows[q - distances.first + 1]]
        for i in range(row.size + junk.starts[q + 1] - junk.starts[q]):
            one = 1
            at = i
            if i >= row.size:
                one, at = -1, junk.items[junk.starts[q] + i - row.size]
            g = _place(steps, steps.size, row[at])
            if g < steps.size and steps[g] == row[at]:
                equal[g] += one
            else:
                between[g] += one
