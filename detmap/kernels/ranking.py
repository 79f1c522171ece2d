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


@kernel
def rank_relevant(
    values: Array,
    rows: Array,
    first_row: int,
    starts: Array,
    relevant: Array,
    junk_starts: Array,
    junk: Array,
    begin: int,
    end: int,
    out_ranks: Array,
    out_ahead: Array,
    out_tied: Array,
    out_which: Array,
    out_items: Array,
) -> int:
    """Rank the relevant items of queries ``[begin, end)``; return the first query with a NaN distance, or -1.

    The distances of query *q* are ``values[rows[q - first_row]:rows[q - first_row + 1]]``; its relevant items are
    ``relevant[starts[q]:starts[q + 1]]``, ascending, and ``junk[junk_starts[q]:junk_starts[q + 1]]`` are taken out of the
    ranking. The outputs are in order of rank: ``out_which`` says which element of `relevant` each is. ``out_items[q]`` is
    the number of items ranked.
    """
    most = 0
    for q in range(begin, end):
        most = max(most, starts[q + 1] - starts[q])
    found, steps = np.empty(most), np.empty(most)
    order, scratch = np.empty(most, np.int64), np.empty(most, np.int64)
    group, turn = np.empty(most + 1, np.int64), np.empty(most, np.int64)
    nearer, equal = np.empty(most, np.int64), np.empty(most, np.int64)
    before = np.empty(most, np.int64)
    for q in range(begin, end):
        row = values[rows[q - first_row] : rows[q - first_row + 1]]
        n, first, m = row.size, starts[q], starts[q + 1] - starts[q]
        out_items[q] = n - (junk_starts[q + 1] - junk_starts[q])
        for j in range(m):
            found[j] = row[relevant[first + j]]
            order[j] = j
        _sort_by_value(found, order[:m], scratch)
        groups = 0
        for j in range(m):
            x = found[order[j]]
            if groups == 0 or x != steps[groups - 1]:
                steps[groups], group[groups], turn[groups] = x, j, j
                nearer[groups] = equal[groups] = 0
                groups += 1
        group[groups] = m
        last = steps[groups - 1] if groups else -np.inf
        bad = 0
        for i in range(n):
            bad += row[i] != row[i]
        if bad:
            return q
        if groups <= FEW:
            _count(row, steps, groups, nearer, equal)
            for g in range(groups - 1, 0, -1):
                nearer[g] -= nearer[g - 1] + equal[g - 1]
            for g in range(groups):
                if equal[g] == 1:
                    before[group[g]] = 0
                    continue
                x, j, met = steps[g], group[g], 0
                for i in range(relevant[first + order[group[g + 1] - 1]] + 1):
                    if row[i] == x:
                        if relevant[first + order[j]] == i:
                            before[j] = met
                            j += 1
                        met += 1
        else:
            for i in range(n):
                x = row[i]
                if x > last:
                    continue
                g = _place(steps, groups, x)
                if steps[g] != x:
                    nearer[g] += 1
                    continue
                j = turn[g]
                if j < group[g + 1] and relevant[first + order[j]] == i:
                    before[j] = equal[g]
                    turn[g] = j + 1
                equal[g] += 1
        for t in range(junk_starts[q], junk_starts[q + 1]):
            x = row[junk[t]]
            if x > last:
                continue
            g = _place(steps, groups, x)
            if steps[g] != x:
                nearer[g] -= 1
                continue
            equal[g] -= 1
            for j in range(group[g], group[g + 1]):
                if relevant[first + order[j]] > junk[t]:
                    before[j] -= 1
        ahead = 0
        for g in range(groups):
            ahead += nearer[g]
            for j in range(group[g], group[g + 1]):
                out_ahead[first + j] = ahead
                out_tied[first + j] = equal[g]
                out_which[first + j] = first + order[j]
                out_ranks[first + j] = ahead + before[j] + 1
            ahead += equal[g]
    return -1


# CMC variants that draw one item of each identity, take the mean over all draws, or merge the items of an identity.
DRAW, EXPECT, MERGE = 0, 1, 2


@helper
def _scramble(x: Any) -> Any:
    """Return the finaliser of splitmix64: a hash, so that a draw depends on its name and not on the order of work."""
    z = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def shots(
    distances: Array,
    first_row: int,
    starts: Array,
    relevant: Array,
    junk_starts: Array,
    junk: Array,
    people: Array,
    own: Array,
    persons: int,
    rule: int,
    draws: int,
    seed: int,
    first_query: int,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Write CMC at ranks 1 .. k of queries ``[begin, end)`` where identities, not items, are ranked.

    ``people[i]`` is the identity of item *i*, a number below `persons`, and ``own[q]`` that of the query. DRAW takes one
    random item of each identity, `draws` times; EXPECT is the mean over all draws: the number of other identities ahead of
    a match is a sum of independent chances, each the share of that identity's items that are ahead; MERGE counts the
    identities with an item ahead of the first match. Equal distances are in index order.
    """
    n, k = distances.shape[1], out.shape[1]
    skipped = np.zeros(n, np.uint8)
    size, ahead = np.zeros(persons, np.int64), np.zeros(persons, np.int64)
    chosen = np.empty(persons, np.int64)
    chances = np.empty(k)
    for q in range(begin, end):
        row = distances[q - first_row]
        out[q] = 0.0
        first, stop = starts[q], starts[q + 1]
        if first == stop:
            continue
        for t in range(junk_starts[q], junk_starts[q + 1]):
            skipped[junk[t]] = 1
        if rule == DRAW:
            size[:] = 0
            for i in range(n):
                size[people[i]] += 1 - skipped[i]
            for d in range(draws):
                ahead[:] = 0
                for p in range(persons):
                    if size[p]:
                        name = _scramble(np.uint64(seed) ^ _scramble(np.uint64(first_query + q)))
                        name = _scramble(_scramble(name ^ np.uint64(d)) ^ np.uint64(p))
                        chosen[p] = np.int64(name % np.uint64(size[p]))
                match = 0
                for i in range(n):  # the chosen one of an identity is the one that its count reaches
                    if not skipped[i]:
                        p = people[i]
                        if ahead[p] == chosen[p]:
                            chosen[p] = n + i
                            if p == own[q]:
                                match = i
                        ahead[p] += 1
                rank = 0
                for p in range(persons):
                    if size[p] and p != own[q]:
                        i = chosen[p] - n
                        if row[i] < row[match] or (row[i] == row[match] and i < match):
                            rank += 1
                for r in range(rank, k):
                    out[q, r] += 1.0
            out[q] /= draws
        else:
            for t in range(first, stop):
                match = relevant[t]
                if rule == MERGE:
                    for u in range(first, stop):
                        i = relevant[u]
                        if row[i] < row[match] or (row[i] == row[match] and i < match):
                            match = i
                size[:] = 0
                ahead[:] = 0
                for i in range(n):
                    if not skipped[i]:
                        size[people[i]] += 1
                        if row[i] < row[match] or (row[i] == row[match] and i < match):
                            ahead[people[i]] += 1
                chances[:] = 0.0
                chances[0] = 1.0
                certain = 0
                for p in range(persons):
                    if p == own[q] or ahead[p] == 0:
                        continue
                    if rule == MERGE or ahead[p] == size[p]:
                        certain += 1
                        continue
                    share = ahead[p] / size[p]
                    for r in range(k - 1, 0, -1):
                        chances[r] = chances[r] * (1.0 - share) + chances[r - 1] * share
                    chances[0] *= 1.0 - share
                total = 0.0
                for r in range(certain, k):
                    total += chances[r - certain]
                    out[q, r] += total if rule == MERGE else total / (stop - first)
                if rule == MERGE:
                    break
        for t in range(junk_starts[q], junk_starts[q + 1]):
            skipped[junk[t]] = 0


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


#: Items that are measured at a time; queries that share them while they are in the cache; and items among which those of
#: one distance are counted by comparing all of them.
TILE, GROUP, STRIP = 4096, 8, 64
_PLACES = np.arange(STRIP, dtype=np.uint8)  # compared as bytes: numba would count a loop in words

#: Relevant items are many where they are more than one in so many.
MANY = 14

#: The distances of codes of up to so many words are bytes; if there are fewer items than this what is noted of one, a count
#: and a distance, has four bytes.
NARROW, FEWER = 3, 1 << 24


class Relevant(NamedTuple):
    """Which items are relevant to a query.

    Where each item has one label, the items of a label follow each other in `items`, ascending: those of query *q* are
    ``items[spans[q, 0]:spans[q, 1]]``. Where `items` is empty labels are compared: `labels` is flat, as many words per item
    as a row of `wanted` has, and an item is relevant where its word equals the query's, or with `several` where they share
    a bit.
    """

    items: Array
    spans: Array
    labels: Array
    wanted: Array
    several: bool


@helper
def _list_relevant(relevant: Relevant, q: int, low: int, high: int, out: Array) -> int:
    """Write which of the items ``[low, high)`` are relevant to a query, counted from `low` on; return how many are."""
    count, wanted = 0, relevant.wanted[q]
    for i in range(low, high):
        out[np.uint64(count)] = i - low
        count += _shares(relevant.labels, i, wanted, relevant.several)
    return count


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
def _alike(strip: Array, d: Any, stop: int) -> Any:
    """Return how many of the distances before `stop` of a strip are `d`: a loop that the compiler turns into vectors."""
    count, end = np.uint8(0), np.uint8(stop)
    for i in range(STRIP):
        count = np.uint8(count + np.uint8((strip[i] == d) & (_PLACES[i] < end)))
    return np.int64(count)


@helper
def _stream_few(near: Array, size: int, relevant: Array, first: int, shift: int, count: Array, seen: Array) -> int:
    """Count measured items by distance, and note of each relevant one how many came before it at its distance.

    The items are numbered from `first` on, and `relevant` are those that are relevant, ascending, from here on; return how
    many of them there were. ``count[d]`` is the number of items at distance *d*, shifted left, plus *d*; ``seen[j]`` is what
    it was at the *j*-th relevant item. `near` has room for a strip more than `size`.
    """
    found = 0
    for low in range(0, size, STRIP):
        high = min(low + STRIP, size)
        strip = near[low : low + STRIP]
        while found < relevant.size and relevant[np.uint64(found)] < first + high:
            at = relevant[np.uint64(found)] - first
            d = near[np.uint64(at)]
            seen[np.uint64(found)] = count[d] + (_alike(strip, d, at - low) << shift)
            found += 1
        for i in range(low, high):
            count[near[np.uint64(i)]] += 1 << shift
    return found


@helper
def _stream_many(
    near: Array, size: int, relevant: Array, first: int, shift: int, flags: Array, count: Array, seen: Array
) -> Any:
    """Do as `_stream_few`, in less time where many items are relevant: every item is noted, and where it is not relevant
    the next is noted in its place. `flags` is room for one of each item."""
    for i in range(size):
        flags[i] = 0
    for j in range(relevant.size):
        if relevant[np.uint64(j)] >= first + size:
            break
        flags[np.uint64(relevant[np.uint64(j)] - first)] = 1
    found = np.uint64(0)
    for i in range(size):
        d = near[np.uint64(i)]
        seen[found] = count[d]
        count[d] += 1 << shift
        found += np.uint64(flags[np.uint64(i)])
    return np.int64(found)


@helper
def _rank_tile(
    codes: Array, query: Array, own: int, near: Array, relevant: Array, first: int, flags: Array, count: Array,
    met: Array, seen: Array,
) -> Any:  # fmt: skip
    """Measure and count the items of a tile, see `_stream_few`, and in `met` the relevant ones by distance.

    The item that is left out is farther than any distance.
    """
    _measure(codes, query, near)
    size, shift, some = codes.size // query.size, 8 * near.itemsize, codes.size // query.size // MANY
    if 0 <= own < size:
        near[np.uint64(own)] = count.size - 1
    if some < relevant.size and relevant[some] < first + size:
        found = _stream_many(near, size, relevant, first, shift, flags, count, seen)
    else:
        found = _stream_few(near, size, relevant, first, shift, count, seen)
    for j in range(found):
        met[np.uint64(seen[np.uint64(j)] & ((1 << shift) - 1))] += 1
    return found


@helper
def _rank_group(
    codes: Array, queries: Array, relevant: Relevant, own: Array, begin: int, end: int, near: Array, listed: Array,
    flags: Array, counts: Array, met: Array, seen: Array, found: Array,
) -> None:  # fmt: skip
    """Count the items, and note the relevant ones, of queries ``[begin, end)``, a row of the last four for each."""
    width, items, spans = queries.shape[1], relevant.items, relevant.spans
    for row in range(end - begin):
        found[row] = 0
        for d in range(counts.shape[1]):
            counts[row, d], met[row, d] = d, 0
    for low in range(0, codes.size // width, TILE):  # a tile of the gallery stays in the cache for all of the queries
        high = min(low + TILE, codes.size // width)
        tile = codes[low * width : high * width]
        for q in range(begin, end):
            row = q - begin
            if items.size:
                these, first = items[spans[q, 0] + found[row] : spans[q, 1]], low
            else:
                these, first = listed[: _list_relevant(relevant, q, low, high, listed)], 0
            found[row] += _rank_tile(
                tile, queries[q], own[q] - low, near, these, first, flags, counts[row], met[row], seen[row, found[row] :]
            )  # fmt: skip


@helper
def _write_hits(
    hits: Array, shift: int, count: Array, met: Array, first: int, depth: int, ahead: Array, out_ranks: Array,
    out_ahead: Array, out_tied: Array, out_radius: Array,
) -> int:  # fmt: skip
    """Write what was noted of a query's relevant items in order of rank, from `first` on; return how many are written."""
    total, kept, relevant, mask = 0, 0, 0, (1 << shift) - 1
    for d in range(out_radius.shape[0]):
        ahead[d] = total
        total += np.int64(count[d]) >> shift
        relevant += met[d]
        out_radius[d, 0] = total
        out_radius[d, 1] = relevant
        size, met[d] = met[d], first + kept  # from here on the place of the next
        if ahead[d] < depth:
            kept += size
    ahead[out_radius.shape[0]] = depth
    for j in range(hits.size):
        hit = np.int64(hits[np.uint64(j)])
        d = np.uint64(hit & mask)
        if ahead[d] < depth:
            at = np.uint64(met[d])
            out_ranks[at] = ahead[d] + (hit >> shift) + 1
            if out_ahead.size:
                out_ahead[at] = ahead[d]
                out_tied[at] = np.int64(count[d]) >> shift
            met[d] += 1
    return kept


@kernel
def rank_codes(
    codes: Array,
    queries: Array,
    relevant: Relevant,
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

    `codes` is flat, as many words per item as a row of `queries` has. Item ``own[q]`` is left out (the number of items:
    none). Ties are in index order: an item's place among the equally distant is how many of them have streamed by.
    Hits are written from ``starts[q]`` on, as many as ``out_counts[q]`` says: those whose tied group begins within `depth`.
    Where `out_ahead` and `out_tied` are empty the ranks alone are written. ``out_radius[q, r]`` is how many items, and how
    many relevant ones, are within distance *r*.
    """
    # The last bucket is of the item that is left out, which may be relevant, and behind the last that is another is noted.
    buckets, most = out_radius.shape[1] + 1, 2
    for q in range(begin, end):
        most = max(most, starts[q + 1] - starts[q] + 2)
    groups = -(-(end - begin) // max(1, min(GROUP, (1 << 20) // most)))
    together = -(-(end - begin) // max(1, groups))  # groups of about one size
    small = queries.shape[1] <= NARROW and codes.size // queries.shape[1] < FEWER
    few, many = (together, 0) if small else (0, together)
    narrow, wide = np.zeros(TILE + STRIP, np.uint8), np.zeros(TILE + STRIP, np.uint16)
    narrow_counts, wide_counts = np.empty((few, buckets), np.uint32), np.empty((many, buckets), np.int64)
    narrow_seen, wide_seen = np.empty((few, most), np.uint32), np.empty((many, most), np.int64)
    listed, flags, found = np.empty(TILE + 1, np.int32), np.empty(TILE, np.uint8), np.empty(together, np.int64)
    met, ahead = np.empty((together, buckets), np.int64), np.empty(buckets, np.int64)
    for group in range(begin, end, together):
        last = min(group + together, end)
        if small:
            _rank_group(
                codes, queries, relevant, own, group, last, narrow, listed, flags, narrow_counts, met, narrow_seen, found
            )  # fmt: skip
        else:
            _rank_group(
                codes, queries, relevant, own, group, last, wide, listed, flags, wide_counts, met, wide_seen, found
            )  # fmt: skip
        for row in range(last - group):
            q = group + row
            if small:
                out_counts[q] = _write_hits(
                    narrow_seen[row, : found[row]], 8, narrow_counts[row], met[row], starts[q], depth, ahead, out_ranks,
                    out_ahead, out_tied, out_radius[q],
                )  # fmt: skip
            else:
                out_counts[q] = _write_hits(
                    wide_seen[row, : found[row]], 16, wide_counts[row], met[row], starts[q], depth, ahead, out_ranks,
                    out_ahead, out_tied, out_radius[q],
                )  # fmt: skip


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
    values: Array,
    rows: Array,
    first_row: int,
    junk_starts: Array,
    junk: Array,
    steps: Array,
    begin: int,
    end: int,
    between: Array,
    equal: Array,
) -> None:
    """Count the distances of queries ``[begin, end)`` in the intervals of ascending `steps`, junk left out.

    Adds to ``between[g]`` those below ``steps[g]`` and above the step before (the last element: above all), and to
    ``equal[g]`` those equal to it. Rows and junk as in `rank_relevant`.
    """
    for q in range(begin, end):
        row = values[rows[q - first_row] : rows[q - first_row + 1]]
        for i in range(row.size + junk_starts[q + 1] - junk_starts[q]):
            one = 1
            at = i
            if i >= row.size:
                one, at = -1, junk[junk_starts[q] + i - row.size]
            g = _place(steps, steps.size, row[at])
            if g < steps.size and steps[g] == row[at]:
                equal[g] += one
            else:
                between[g] += one
