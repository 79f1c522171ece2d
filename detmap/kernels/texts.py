"""Strings that lie in a document: numbered, found, ranked, and kept when the bytes that they lie among are not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.words import ALL, NOTHING, U1, U24, U32, _byte, _load

# A string is a word: its first byte's position, then its length in the lower bits.
LENGTH_BITS = 24
LENGTHS = np.uint64((1 << LENGTH_BITS) - 1)
ABSENT = ALL
MIXER = np.uint64(0x9E3779B97F4A7C15)


@kernel
def kept_size(words: Any) -> int:
    """Return how many bytes `keep` copies."""
    size = NOTHING
    if len(words) > 0 and words[0] != ABSENT:
        size = words[0] & LENGTHS
    for row in range(1, len(words)):  # no row needs what the one before made: several are looked at at once
        word = words[np.uint64(row)]
        own = (word != ABSENT) & (word != words[np.uint64(row) - U1])
        size += word & LENGTHS if own else NOTHING
    return int(np.int64(size))


@innermost
def _copy_eight(data: Any, place: Any, kept: Any, end: Any) -> None:
    """Copy eight bytes: all are read before any is written, so that a compiler makes one load and one store of them."""
    one, two = np.uint64(1), np.uint64(2)
    place, end, four = np.uint64(place), np.uint64(end), np.uint64(4)
    a, b, c, d = data[place], data[place + one], data[place + two], data[place + two + one]
    e, f, g, h = data[place + four], data[place + four + one], data[place + four + two], data[place + four + two + one]
    kept[end], kept[end + one], kept[end + two], kept[end + two + one] = a, b, c, d
    end += four
    kept[end], kept[end + one], kept[end + two], kept[end + two + one] = e, f, g, h


@kernel
def keep(data: Any, words: Any, kept: Any, offset: int) -> None:
    """Copy strings one after the other, and say where they are now. Rows in succession of one word share their copy.

    Parameters
    ----------
    data : (n,) uint8
        Where they lie.
    words : (rows,) uint64
        In and out: position and length of each; all bits are set where a row has none.
    kept : (`kept_size(words)`,) uint8
        Out: the strings.
    offset : int
        What is counted as the position of the first byte of `kept`.
    """
    end, last, copied = 0, ABSENT, ABSENT
    for row in range(len(words)):
        word = words[row]
        if word == ABSENT:
            last = ABSENT
            continue
        if word != last:
            place = np.int64(word) >> LENGTH_BITS
            length = np.int64(word & LENGTHS)
            k = 0
            while k < length:
                if place + k + 8 <= len(data) and end + k + 8 <= len(kept):
                    _copy_eight(data, place + k, kept, end + k)  # what is too much the next string overwrites
                    k += 8
                else:
                    kept[end + k] = data[place + k]
                    k += 1
            last, copied = word, np.uint64((offset + end) << LENGTH_BITS | length)
            end += length
        words[row] = copied


@helper
def _hash(data: Any, word: Any, seed: Any) -> Any:
    """Hash the string that `word` locates; the seed keeps a document from choosing its collisions."""
    begin = np.int64(word) >> LENGTH_BITS
    length = np.int64(word & LENGTHS)
    value = (seed ^ np.uint64(length)) * MIXER
    for k in range(0, length, 8):
        part = _load(data, begin + k)
        if length - k < 8:
            part &= ALL >> np.uint64(64 - 8 * (length - k))
        value = (value ^ part) * MIXER
        value ^= value >> U32
    value *= MIXER  # strings that differ in their last bytes differ in few bits as yet
    return value ^ value >> U32


@helper
def _same(data: Any, word: Any, others: Any, other: Any) -> Any:
    """Whether a string of `data` and a string of `others` have the same bytes."""
    begin = np.int64(word) >> LENGTH_BITS
    place = np.int64(other) >> LENGTH_BITS
    length = np.int64(word & LENGTHS)
    if length != np.int64(other & LENGTHS):
        return False
    for k in range(0, length, 8):
        difference = _load(data, begin + k) ^ _load(others, place + k)
        if length - k < 8:
            difference <<= np.uint64(64 - 8 * (length - k))
        if difference != NOTHING:
            return False
    return True


@kernel
def factorise(data: Any, words: Any, seed: Any, codes: Any, firsts: Any) -> int:
    """Number the distinct strings in the order of their first appearance.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    words : (rows,) uint64
        The strings: position and length.
    seed : uint64
        Seed of the hash; the outcome does not depend on it.
    codes : (rows,) int32
        Out: the number of each row's string.
    firsts : (rows,) uint64
        Out: where each distinct string appeared first.

    Returns
    -------
    int
        How many distinct strings there are.
    """
    table = np.full(1 << 10, -1, np.int32)
    hashes = np.zeros(len(table), np.uint64)
    count = 0
    for row in range(len(words)):
        word = words[row]
        if row > 0 and (word == words[row - 1] or _same(data, word, data, words[row - 1])):
            codes[row] = codes[row - 1]
            continue
        value = _hash(data, word, seed)
        slot = np.int64(value >> U24) & (len(table) - 1)
        while table[slot] >= 0 and (hashes[slot] != value or not _same(data, word, data, firsts[table[slot]])):
            slot = (slot + 1) & (len(table) - 1)
        if table[slot] < 0:
            table[slot] = count
            hashes[slot] = value
            firsts[count] = word
            codes[row] = count
            count += 1
            if 2 * count > len(table):
                old, old_hashes = table, hashes
                table = np.full(4 * len(old), -1, np.int32)
                hashes = np.zeros(len(table), np.uint64)
                for k in range(len(old)):
                    if old[k] >= 0:
                        slot = np.int64(old_hashes[k] >> U24) & (len(table) - 1)
                        while table[slot] >= 0:
                            slot = (slot + 1) & (len(table) - 1)
                        table[slot] = old[k]
                        hashes[slot] = old_hashes[k]
        else:
            codes[row] = table[slot]
    return count


class Grouped(NamedTuple):
    """Strings in groups.

    Attributes
    ----------
    data : (n,) uint8
        The buffer that they lie in, at least eight bytes.
    words : (n,) uint64
        Position and length of each.
    starts : (groups + 1,) int64
        Where in `words` each group starts, and the last one ends.
    """

    data: Any
    words: Any
    starts: Any


@kernel
def find_strings(searched: Grouped, sought: Grouped, begin: int, stop: int, seed: Any, found: Any) -> int:
    """Find, group by group, strings of one buffer among the strings of another, which repeats none within a group.

    Parameters
    ----------
    searched, sought : Grouped
        The strings that are searched, and those that are looked for among them, in as many groups.
    begin, stop : int
        The groups to work on.
    seed : uint64
        Seed of the hash; the outcome does not depend on it.
    found : (n,) int64
        Out: for each string that is looked for its place among the strings of its group, -1 where it is not there.

    Returns
    -------
    int
        -1, or the first row of ``searched.words`` whose string its group had before; from that group on nothing is sought.
    """
    data, words, starts = searched.data, searched.words, searched.starts
    wanted_data, wanted, wanted_starts = sought.data, sought.words, sought.starts
    table = np.empty(1 << 6, np.int32)
    hashes = np.empty(1 << 6, np.uint64)
    for group in range(begin, stop):
        first, end = starts[group], starts[group + 1]
        size = 1 << 6
        while size < 2 * (end - first):
            size *= 2
        if size > len(table):
            table = np.empty(size, np.int32)
            hashes = np.empty(size, np.uint64)
        for slot in range(size):
            table[slot] = -1
        for row in range(first, end):
            value = _hash(data, words[row], seed)
            slot = np.int64(value >> U24) & (size - 1)
            while table[slot] >= 0:
                if hashes[slot] == value and _same(data, words[row], data, words[first + table[slot]]):
                    return row
                slot = (slot + 1) & (size - 1)
            table[slot] = row - first
            hashes[slot] = value
        for k in range(wanted_starts[group], wanted_starts[group + 1]):
            value = _hash(wanted_data, wanted[k], seed)
            slot = np.int64(value >> U24) & (size - 1)
            found[k] = -1
            while table[slot] >= 0:
                if hashes[slot] == value and _same(wanted_data, wanted[k], data, words[first + table[slot]]):
                    found[k] = table[slot]
                    break
                slot = (slot + 1) & (size - 1)
    return -1


@helper
def _ahead(data: Any, score: float, word: Any, other_score: float, other_word: Any) -> Any:
    """Whether a row ranks ahead of another one: by the higher score, then by the higher string."""
    tied = np.int64(score == other_score)  # without a tie, empty strings at 0 are compared
    place, other_place = tied * (np.int64(word) >> LENGTH_BITS), tied * (np.int64(other_word) >> LENGTH_BITS)
    length = tied * np.int64(word & LENGTHS)
    other_length = tied * np.int64(other_word & LENGTHS)
    shorter = min(length, other_length)
    k = 0
    while k + 8 <= shorter and _load(data, place + k) == _load(data, other_place + k):
        k += 8
    while k < shorter and _byte(data, place + k) == _byte(data, other_place + k):
        k += 1
    higher = (k == other_length) | (_byte(data, place + k) > _byte(data, other_place + k))
    return (score > other_score) | ((k < length) & higher)


@kernel
def rank_rows(data: Any, words: Any, scores: Any, starts: Any, begin: int, stop: int, rows: Any) -> None:
    """Order the rows of each group by descending score, rows of equal score by descending string, as bytes.

    Parameters
    ----------
    data : (n,) uint8
        The buffer, at least eight bytes.
    words : (n,) uint64
        The strings: position and length.
    scores : (n,) float64
        The scores, none of them NaN.
    starts : (groups + 1,) int64
        Where in `rows` each group starts, and the last one ends.
    begin, stop : int
        The groups to work on.
    rows : (n,) int32
        In and out: the rows, group by group.
    """
    longest = 0
    for group in range(begin, stop):
        longest = max(longest, starts[group + 1] - starts[group])
    spare = np.empty(longest, np.int32)
    for group in range(begin, stop):
        first, end = starts[group], starts[group + 1]
        width = 1
        while width < end - first:  # merge neighbours; most runs come in order, and then nothing moves
            for left in range(first, end - width, 2 * width):
                middle = left + width
                right = min(middle + width, end)
                one, other = rows[middle], rows[middle - 1]
                if not _ahead(data, scores[one], words[one], scores[other], words[other]):
                    continue
                for k in range(width):
                    spare[k] = rows[left + k]
                a, b = 0, middle
                for k in range(left, right):
                    if a == width:
                        break
                    other = spare[a]
                    one = rows[b] if b < right else other
                    if _ahead(data, scores[one], words[one], scores[other], words[other]):
                        rows[k] = one
                        b += 1
                    else:
                        rows[k] = other
                        a += 1
            width *= 2
