"""Rank the few relevant items of a query without sorting the gallery.

A query's relevant items are sorted by distance; in one pass over the gallery every item is counted in its interval
between two of these distances. The counts give for each relevant item the number of items that are strictly nearer
(`ahead`) or equally near (`tied`, including itself), and the number of equally near items that come earlier in the
gallery. These three numbers give the item's rank, with ties in index order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.sorting import _longest_group

Array = NDArray[Any]

#: Maximum number of distinct distances of relevant items for which one vectorised counting pass per distance is fastest.
FEW = 24

#: The lookup table has `SLOTS` slots per distinct distance, but at most `MOST_SLOTS`. `TOGETHER` distances are looked
#: up at a time. Up to `SHORT` candidates are compared one by one.
SLOTS, MOST_SLOTS, TOGETHER, SHORT = 8, 1 << 15, 2048, 4


@helper
def _sort_by_value(values: Array, order: Array, scratch: Array) -> None:
    """Sort `order`, indices into `values`, by value, stably (bottom-up merge sort)."""
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
    """For each of the `steps`, count the values of `row` that are below the step, and the values that equal it. The
    compiler vectorises these plain loops.
    """
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
    """The distances for the queries numbered ``first`` and above: query *q* has ``values[rows[i]:rows[i + 1]]`` with
    ``i = q - first``.
    """

    values: Array
    rows: Array
    first: int


class Lists(NamedTuple):
    """Items of each query: query *q* has the items ``items[starts[q]:starts[q + 1]]``, ascending."""

    starts: Array
    items: Array


class Places(NamedTuple):
    """Ranks of relevant items, by query and rank. For each relevant item: its rank (``ranks``), the number of items
    ``ahead`` of its tied group, the number of items in that group (``tied``), and its index in the list of relevant
    items (``which``). For each query: the number of ranked ``items``.
    """

    ranks: Array
    ahead: Array
    tied: Array
    which: Array
    items: Array


class Groups(NamedTuple):
    """The ``steps`` are the distinct distances of a query's relevant items, ascending; step *g* has the relevant items
    ``bounds[g]:bounds[g + 1]`` in order of distance. For each step: the number of items between the previous step and
    this step (``nearer``), the number of items at the step (``equal``), and, during a pass over the gallery, the step's
    next relevant item (``turn``). For each relevant item, in order of distance: the number of items at its step that
    come ``before`` it.
    """

    steps: Array
    bounds: Array
    turn: Array
    nearer: Array
    equal: Array
    before: Array


@helper
def _group(found: Array, order: Array, groups: Groups) -> int:
    """Write the steps of the distances `found`, sorted by `order`, and reset the counts; return the number of steps."""
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
    """Count a row of distances, one pass per step; `mine` are the relevant items, which `order` sorts by distance."""
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


class Table(NamedTuple):
    """A lookup table for the place of a distance among ascending steps. The range of the steps is cut into slots of
    equal width, with one more slot for larger distances. The steps in slot *b* are ``starts[b]:starts[b + 1]``. `slots`
    holds the slots of `TOGETHER` distances.
    """

    starts: Array
    slots: Array


@helper
def _slot(x: Any, lowest: Any, scale: Any, most: Any) -> Any:
    """Return the slot of a distance. Slots ascend with distances, because rounding preserves order."""
    return np.int32(min(max((x - lowest) * scale, 0.0), most))


@helper
def _fill(table: Table, steps: Array, count: int) -> Any:
    """Fill the table for the first `count` steps; return the slots per unit of distance, 0 if the table cannot be used."""
    size = min(SLOTS * count, MOST_SLOTS)
    starts, lowest, scale = table.starts, steps[0], (size - 0.5) / (steps[count - 1] - steps[0])
    if not (scale > 0 and scale < np.inf):  # a step is infinite, or all steps are too close together
        return 0.0
    for b in range(size + 2):
        starts[b] = 0
    for g in range(count):
        starts[_slot(steps[g], lowest, scale, size) + 1] += 1
    for b in range(size + 1):
        starts[b + 1] += starts[b]
    return scale


@helper
def _search_for_each(row: Array, mine: Array, order: Array, count: int, groups: Groups, table: Table) -> None:
    """Count as `_count_for_each` does, in a single pass that looks up the step of each distance."""
    steps, turn, equal, nearer = groups.steps, groups.turn, groups.equal, groups.nearer
    scale, lowest, size = _fill(table, steps, count), steps[0], min(SLOTS * count, MOST_SLOTS)
    for first in range(0, row.size, TOGETHER):
        part = row[first : first + TOGETHER]
        if scale > 0:
            for i in range(part.size):
                table.slots[i] = _slot(np.float64(part[i]), lowest, scale, size)
        for i in range(part.size):
            x = part[i]
            low, high = 0, count
            if scale > 0:
                b = np.uint64(table.slots[i])
                low, high = table.starts[b], table.starts[b + np.uint64(1)]
            if high - low > SHORT:
                low += _place(steps[low:high], high - low, x)
            else:
                while low < high and steps[low] < x:
                    low += 1
            if low == count:
                continue
            if steps[low] != x:
                nearer[low] += 1
                continue
            j = turn[low]
            if j < groups.bounds[low + 1] and mine[order[j]] == first + i:
                groups.before[j] = equal[low]
                turn[low] = j + 1
            equal[low] += 1


@helper
def _take_out(row: Array, junk: Array, mine: Array, order: Array, count: int, groups: Groups) -> None:
    """Remove junk from the counts."""
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

    The `junk` of a query is removed from its ranking.
    """
    most = _longest_group(relevant.starts, begin, end)
    found, orders, scratch = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    groups = Groups(
        np.empty(most),
        np.empty(most + 1, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    many = most > FEW
    table = Table(
        np.empty(min(SLOTS * most, MOST_SLOTS) + 2 if many else 0, np.int32),
        np.empty(TOGETHER if many else 0, np.int32),
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
            _search_for_each(row, mine, order, count, groups, table)
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
def _number(row: Array, groups: Groups, count: int, numbers: Array) -> None:
    """Number the values that equal one of the first `count` steps: ``g + 1`` for step *g*. Values that occur once
    are not numbered.
    """
    if count <= FEW:
        for g in range(count):
            if groups.equal[g] > 1:
                step, number = groups.steps[g], np.int32(g + 1)
                for i in range(row.size):
                    numbers[i] = number if row[i] == step else numbers[i]
        return
    for i in range(row.size):
        g = _place(groups.steps, count, row[i])
        if g < count and groups.steps[g] == row[i] and groups.equal[g] > 1:
            numbers[i] = g + 1


@kernel
def count_nearer(
    values: Array, rows: Array, own: Array, starts: Array, ahead: Array, tied: Array, numbers: Array, mine: Array
) -> None:
    """For each relevant item, given by its distance only, count the items of its query that are nearer or equally near.

    Query *q* has the distances ``values[rows[q]:rows[q + 1]]``; its relevant items have the distances
    ``own[starts[q]:starts[q + 1]]``. The distinct distances of the relevant items are numbered within their query,
    ascending from 1; `mine` receives the number of each relevant item's distance. `numbers`, initially 0, has an
    element for each item. If several items are at a numbered distance, they receive its number.
    """
    most = _longest_group(starts, 0, starts.size - 1)
    orders, scratch = np.empty(most, np.int64), np.empty(most, np.int64)
    groups = Groups(
        np.empty(most),
        np.empty(most + 1, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    for q in range(starts.size - 1):
        row, wanted, first = values[rows[q] : rows[q + 1]], own[starts[q] : starts[q + 1]], starts[q]
        order, shared = orders[: wanted.size], False
        for j in range(wanted.size):
            order[j] = j
        _sort_by_value(wanted, order, scratch)
        count = _group(wanted, order, groups)
        if count <= FEW:
            _count(row, groups.steps, count, groups.nearer, groups.equal)
        else:
            for i in range(row.size):
                g = _place(groups.steps, count, row[i])
                if g < count and groups.steps[g] == row[i]:
                    groups.equal[g] += 1
                elif g < count:
                    groups.nearer[g] += 1
            for g in range(1, count):
                groups.nearer[g] += groups.nearer[g - 1] + groups.equal[g - 1]
        for g in range(count):
            shared |= groups.equal[g] > 1
            for j in range(groups.bounds[g], groups.bounds[g + 1]):
                ahead[first + order[j]] = groups.nearer[g]
                tied[first + order[j]] = groups.equal[g]
                mine[first + order[j]] = g + 1
        if shared:
            _number(row, groups, count, numbers[rows[q] : rows[q + 1]])


@helper
def _bits(x: Any) -> Any:
    """Return the number of bits set, with an idiom that compilers turn into one instruction."""
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
    """Return 1 if item *i* has the label of the query or, with `several`, shares a label with it; else 0."""
    if not several:
        return np.int64(labels[i] == wanted[0])
    common = np.uint64(0)
    for w in range(wanted.size):
        common |= labels[i * wanted.size + w] & wanted[w]
    return np.int64(common != np.uint64(0))


@kernel
def count_shared(labels: Array, wanted: Array, several: bool, begin: int, end: int, out: Array) -> None:
    """Count the items that share a label with queries ``[begin, end)``; labels as in `Relevant`."""
    for q in range(begin, end):
        total = 0
        for i in range(labels.size // wanted.shape[1]):
            total += _shares(labels, i, wanted[q], several)
        out[q] = total


#: Items are measured in tiles of `TILE` items. `GROUP` queries use a tile while it is cached. Within strips of `STRIP`
#: items, equal distances are counted by comparing every pair.
TILE, GROUP, STRIP = 4096, 8, 64
_PLACES = np.arange(STRIP, dtype=np.uint8)  # indices as bytes, because indices of loops have 64 bits in numba

#: Ratio of items to relevant items below which `_stream_many` is used.
MANY = 14

#: Codes of at most `NARROW` words have distances that fit into bytes. If there are fewer than `FEWER` items, a count
#: and a distance together fit into four bytes.
NARROW, FEWER = 3, 1 << 24


class Relevant(NamedTuple):
    """The relevant items of queries. If each item has one label, query *q* has the relevant items ``items[spans[q,
    0]:spans[q, 1]]``, ascending. If `items` is empty, labels are compared. `labels` is flat, with as many words per
    item as a row of `wanted`. An item is relevant if its word equals the query's word, or with `several` if its words
    share a bit with the query's words.
    """

    items: Array
    spans: Array
    labels: Array
    wanted: Array
    several: bool


@helper
def _list_relevant(relevant: Relevant, q: int, low: int, high: int, out: Array) -> int:
    """Write the indices, relative to `low`, of the items ``[low, high)`` that are relevant to a query; return the number
    of these items.
    """
    count, wanted = 0, relevant.wanted[q]
    for i in range(low, high):
        out[np.uint64(count)] = i - low
        count += _shares(relevant.labels, i, wanted, relevant.several)
    return count


@helper
def _measure(codes: Array, query: Array, out: Array) -> None:
    """Write the Hamming distance of each item; for codes of one word the loop is vectorised."""
    if query.size == 1:
        word = query[0]
        for i in range(codes.size):
            out[i] = _bits(codes[i] ^ word)
    else:
        for i in range(codes.size // query.size):
            out[i] = _hamming(codes, i, query)


@helper
def _alike(strip: Array, d: Any, stop: int) -> Any:
    """Return how many of the distances before `stop` in a strip equal `d`, in a vectorised loop."""
    count, end = np.uint8(0), np.uint8(stop)
    for i in range(STRIP):
        count = np.uint8(count + np.uint8((strip[i] == d) & (_PLACES[i] < end)))
    return np.int64(count)


@helper
def _stream_few(near: Array, size: int, relevant: Array, first: int, shift: int, count: Array, seen: Array) -> int:
    """Count the items at each distance, and record for each relevant item how many items at its distance came before it.

    `near` holds the distances of `size` items, numbered from `first` on, and has room for one strip more. `relevant` are
    the numbers of the next relevant items, ascending. ``count[d]`` is the number of items at distance *d*, shifted left
    by `shift`, plus *d*. ``seen[j]`` is the value that ``count[d]`` has before the *j*-th relevant item is counted, where
    *d* is the distance of that item. Returns the number of relevant items that were met.
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
    """Count as `_stream_few` does, faster if many items are relevant: every item is recorded in `seen`, and overwritten
    by the next item if it is not relevant. `flags` has room for one flag per item.
    """
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


class Coded(NamedTuple):
    """The codes of the items (`codes`, flat) and of the `queries`; all codes have the same number of words. For each
    query, `own` is the item that is left out of its ranking, or the number of items if no item is left out.
    """

    codes: Array
    queries: Array
    own: Array


class Room(NamedTuple):
    """Buffers for a tile of items. `near` is for their distances, with room for one strip more. `listed` is for the
    indices of relevant items, and `flags` for a flag per item, 1 if the item is relevant.
    """

    near: Array
    listed: Array
    flags: Array


class Noted(NamedTuple):
    """Records of a group of queries, one row per query. `counts` and `seen` are as in `_stream_few`. `met` is the
    number of relevant items at each distance, and `found` the number of relevant items so far.
    """

    counts: Array
    met: Array
    seen: Array
    found: Array


class RankedCodes(NamedTuple):
    """The hits of each query in order of rank: their `ranks`, the number of items `ahead` of each hit's tied group, and
    the number of items in that group (`tied`); `ahead` and `tied` may be empty. For each query: the number of hits
    written (`counts`), and the numbers of items and of relevant items within each distance (`radius`, shape (q, r, 2)).
    """

    ranks: Array
    ahead: Array
    tied: Array
    counts: Array
    radius: Array


@helper
def _rank_tile(
    codes: Array, query: Array, own: int, room: Room, relevant: Array, first: int, noted: Noted, row: int
) -> None:
    """Measure and count the items of a tile (see `_stream_few`), and count its relevant items by distance in `met`. The
    query's own item gets a distance that is larger than all others.
    """
    near, count, met, seen = room.near, noted.counts[row], noted.met[row], noted.seen[row, noted.found[row] :]
    _measure(codes, query, near)
    size, shift, some = codes.size // query.size, 8 * near.itemsize, codes.size // query.size // MANY
    if 0 <= own < size:
        near[np.uint64(own)] = count.size - 1
    if some < relevant.size and relevant[some] < first + size:
        found = _stream_many(near, size, relevant, first, shift, room.flags, count, seen)
    else:
        found = _stream_few(near, size, relevant, first, shift, count, seen)
    for j in range(found):
        met[np.uint64(seen[np.uint64(j)] & ((1 << shift) - 1))] += 1
    noted.found[row] += found


@helper
def _rank_group(coded: Coded, relevant: Relevant, begin: int, end: int, room: Room, noted: Noted) -> None:
    """Count the items, and record the relevant items, for each of the queries ``[begin, end)``."""
    codes, queries, items, spans = coded.codes, coded.queries, relevant.items, relevant.spans
    width = queries.shape[1]
    for row in range(end - begin):
        noted.found[row] = 0
        for d in range(noted.counts.shape[1]):
            noted.counts[row, d], noted.met[row, d] = d, 0
    for low in range(0, codes.size // width, TILE):  # a tile of the gallery stays in the cache for all queries
        high = min(low + TILE, codes.size // width)
        tile = codes[low * width : high * width]
        for q in range(begin, end):
            row = q - begin
            if items.size:
                these, first = items[spans[q, 0] + noted.found[row] : spans[q, 1]], low
            else:
                these, first = room.listed[: _list_relevant(relevant, q, low, high, room.listed)], 0
            _rank_tile(tile, queries[q], coded.own[q] - low, room, these, first, noted, row)


@helper
def _write_hits(
    noted: Noted, row: int, shift: int, first: int, depth: int, ahead: Array, out: RankedCodes, q: int
) -> None:
    """Write the recorded relevant items of query *q* in order of rank, from `first` on."""
    hits, count, met = noted.seen[row, : noted.found[row]], noted.counts[row], noted.met[row]
    total, kept, relevant, mask = 0, 0, 0, (1 << shift) - 1
    buckets = out.radius.shape[1]
    for d in range(buckets):
        ahead[d] = total
        total += np.int64(count[d]) >> shift
        relevant += met[d]
        out.radius[q, d, 0] = total
        out.radius[q, d, 1] = relevant
        size, met[d] = met[d], first + kept  # from here on `met[d]` is the place of the next hit at distance d
        if ahead[d] < depth:
            kept += size
    ahead[buckets] = depth
    for j in range(hits.size):
        hit = np.int64(hits[np.uint64(j)])
        d = np.uint64(hit & mask)
        if ahead[d] < depth:
            at = np.uint64(met[d])
            out.ranks[at] = ahead[d] + (hit >> shift) + 1
            if out.ahead.size:
                out.ahead[at] = ahead[d]
                out.tied[at] = np.int64(count[d]) >> shift
            met[d] += 1
    out.counts[q] = kept


@kernel
def rank_codes(
    coded: Coded, relevant: Relevant, starts: Array, depth: int, begin: int, end: int, out: RankedCodes
) -> None:
    """Rank the items that are relevant to queries ``[begin, end)`` by Hamming distance, with counting buckets.

    Ties are in index order. The hits whose tied group begins within `depth` are written from ``starts[q]`` on;
    ``out.counts[q]`` is their number. If `out.ahead` and `out.tied` are empty, only ranks are written.
    """
    # The last bucket is for the query's own item, which may be relevant. The buffer for hits has one more place, to
    # which `_stream_many` writes items that are not relevant.
    width, buckets, most = coded.queries.shape[1], out.radius.shape[1] + 1, 2
    for q in range(begin, end):
        most = max(most, starts[q + 1] - starts[q] + 2)
    groups = -(-(end - begin) // max(1, min(GROUP, (1 << 20) // most)))
    together = -(-(end - begin) // max(1, groups))  # groups of about equal size
    small = width <= NARROW and coded.codes.size // width < FEWER
    few, many = (together, 0) if small else (0, together)
    listed, flags, found = np.empty(TILE + 1, np.int32), np.empty(TILE, np.uint8), np.empty(together, np.int64)
    met, ahead = np.empty((together, buckets), np.int64), np.empty(buckets, np.int64)
    narrow_room = Room(np.zeros(TILE + STRIP, np.uint8), listed, flags)
    wide_room = Room(np.zeros(TILE + STRIP, np.uint16), listed, flags)
    narrow = Noted(np.empty((few, buckets), np.uint32), met, np.empty((few, most), np.uint32), found)
    wide = Noted(np.empty((many, buckets), np.int64), met, np.empty((many, most), np.int64), found)
    for group in range(begin, end, together):
        last = min(group + together, end)
        if small:
            _rank_group(coded, relevant, group, last, narrow_room, narrow)
        else:
            _rank_group(coded, relevant, group, last, wide_room, wide)
        for q in range(group, last):
            if small:
                _write_hits(narrow, q - group, 8, starts[q], depth, ahead, out, q)
            else:
                _write_hits(wide, q - group, 16, starts[q], depth, ahead, out, q)


@kernel
def rank_samples(positive: Array, negative: Array, out_ahead: Array, out_tied: Array) -> None:
    """Rank the positive samples among all samples, by descending score. The inputs are the scores of the positive and of
    the negative samples, both ascending.
    """
    j = 0
    hits, wrong = positive.size, negative.size
    below, upto = wrong, wrong  # numbers of negatives with a score below x, and with a score of at most x
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
    """Count the distances of queries ``[begin, end)``, except distances of junk, in the intervals of ascending `steps`.

    Adds to ``between[g]`` the number of distances between ``steps[g - 1]`` and ``steps[g]``, and to ``equal[g]`` the
    number of distances equal to ``steps[g]``. The last element of `between` counts distances above all steps.
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
