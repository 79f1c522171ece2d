"""Strings within a document: numbering, lookup, ranking, and copying before the document is freed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.words import ALL, BYTE, HIGHS, NOTHING, U1, U24, U32, _load, _lowest_bit

# A string is stored in a word: the position of its first byte, then its length in the lower bits.
LENGTH_BITS = 24
LENGTHS = np.uint64((1 << LENGTH_BITS) - 1)
ABSENT = ALL
MIXER = np.uint64(0x9E3779B97F4A7C15)


@kernel
def kept_size(words: Any) -> int:
    """Return the number of bytes that `keep` copies."""
    size = NOTHING
    if len(words) > 0 and words[0] != ABSENT:
        size = words[0] & LENGTHS
    for row in range(1, len(words)):  # iterations are independent, so several run at once
        word = words[np.uint64(row)]
        own = (word != ABSENT) & (word != words[np.uint64(row) - U1])
        size += word & LENGTHS if own else NOTHING
    return int(np.int64(size))


@innermost
def _copy_eight(data: Any, place: Any, kept: Any, end: Any) -> None:
    """Copy eight bytes, reading all before writing any, so that compilers emit one load and one store."""
    one, two = np.uint64(1), np.uint64(2)
    place, end, four = np.uint64(place), np.uint64(end), np.uint64(4)
    a, b, c, d = data[place], data[place + one], data[place + two], data[place + two + one]
    e, f, g, h = data[place + four], data[place + four + one], data[place + four + two], data[place + four + two + one]
    kept[end], kept[end + one], kept[end + two], kept[end + two + one] = a, b, c, d
    end += four
    kept[end], kept[end + one], kept[end + two], kept[end + two + one] = e, f, g, h


@kernel
def keep(data: Any, words: Any, kept: Any, offset: int) -> None:
    """Copy strings consecutively, and update their locations. Consecutive rows with the same word share a copy.

    Parameters
    ----------
    data : (n,) uint8
        The buffer that holds the strings.
    words : (rows,) uint64
        In and out: position and length of each string; all bits are set for a row without a string.
    kept : (`kept_size(words)`,) uint8
        Out: the strings.
    offset : int
        The position assigned to the first byte of `kept`.
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
                    _copy_eight(data, place + k, kept, end + k)  # surplus bytes are overwritten by the next string
                    k += 8
                else:
                    kept[end + k] = data[place + k]
                    k += 1
            last, copied = word, np.uint64((offset + end) << LENGTH_BITS | length)
            end += length
        words[row] = copied


@kernel
def split(data: Any, size: int, longest: int, words: Any) -> int:
    """Locate strings between zero bytes.

    Parameters
    ----------
    data : (n,) uint8
        The strings, at least eight bytes, of which the first `size` count.
    size, longest : int
        Number of bytes, and maximum length of a string.
    words : (rows,) uint64
        Out: position and length of each string; strings beyond the number of rows are only counted.

    Returns
    -------
    int
        Number of strings; or -1 minus the row of the first string that is too long.
    """
    begin, count = 0, 0
    for i in range(0, size + 1, 8):  # + 1, because the zero byte at `size` ends the last string
        word = _load(data, i)
        zeros = ~((word & ~HIGHS) + ~HIGHS | word | ~HIGHS)
        while zeros != NOTHING:
            end = min(i + (_lowest_bit(zeros) >> 3), size)
            if end - begin > longest:
                return -1 - count
            if count < len(words):
                words[count] = np.uint64(begin << LENGTH_BITS | end - begin)
            count += 1
            begin = end + 1
            if end == size:
                return count
            zeros &= zeros - U1
    return count


@helper
def _hash(data: Any, word: Any, seed: Any) -> Any:
    """Hash the string that `word` locates; a random seed prevents crafted collisions."""
    begin = np.int64(word) >> LENGTH_BITS
    length = np.int64(word & LENGTHS)
    value = (seed ^ np.uint64(length)) * MIXER
    for k in range(0, length, 8):
        part = _load(data, begin + k)
        if length - k < 8:
            part &= ALL >> np.uint64(64 - 8 * (length - k))
        value = (value ^ part) * MIXER
        value ^= value >> U32
    value *= MIXER  # mix again, because strings that differ in their last bytes still differ in few bits
    return value ^ value >> U32


@helper
def _same(data: Any, word: Any, others: Any, other: Any) -> Any:
    """Return whether a string of `data` and a string of `others` have the same bytes."""
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
        Out: position and length of each distinct string where it first appeared.

    Returns
    -------
    int
        Number of distinct strings.
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
        The buffer that holds the strings, at least eight bytes.
    words : (n,) uint64
        Position and length of each string.
    starts : (groups + 1,) int64
        Where in `words` each group starts, and the last group ends.
    """

    data: Any
    words: Any
    starts: Any


@kernel
def find_strings(searched: Grouped, sought: Grouped, begin: int, stop: int, seed: Any, found: Any) -> int:
    """Find, group by group, the strings of one buffer (`sought`) among the strings of another (`searched`), which are
    distinct within a group.

    Parameters
    ----------
    searched, sought : Grouped
        The strings to search in, and the strings to look for, with the same number of groups.
    begin, stop : int
        The groups to work on.
    seed : uint64
        Seed of the hash; the outcome does not depend on it.
    found : (n,) int64
        Out: for each sought string its index among the strings of its group, -1 if absent.

    Returns
    -------
    int
        -1, or the first row of ``searched.words`` that repeats a string of its group, where the search stops.
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
def _higher(data: Any, word: Any, others: Any, other: Any) -> Any:
    """Return whether a string of `data` is greater than a string of `others`, compared as bytes."""
    place, other_place = np.int64(word) >> LENGTH_BITS, np.int64(other) >> LENGTH_BITS
    length, other_length = np.int64(word & LENGTHS), np.int64(other & LENGTHS)
    shorter = min(length, other_length)
    for k in range(0, shorter, 8):
        part, other_part = _load(data, place + k), _load(others, other_place + k)
        if shorter - k < 8:
            rest = ALL >> np.uint64(64 - 8 * (shorter - k))
            part, other_part = part & rest, other_part & rest
        if part != other_part:
            shift = np.uint64(_lowest_bit(part ^ other_part) & -8)  # position of the first byte that differs
            return (part >> shift) & BYTE > (other_part >> shift) & BYTE
    return length > other_length


@helper
def _ahead(data: Any, score: float, word: Any, other_score: float, other_word: Any) -> Any:
    """Return whether a row ranks ahead of another: by higher score, then by greater string."""
    tied = np.uint64(score == other_score)  # if scores differ, `_higher` compares two empty strings
    return (score > other_score) | _higher(data, tied * word, data, tied * other_word)


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
        Where in `rows` each group starts, and the last group ends.
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
        while width < end - first:  # merge sort; neighbouring parts in order are left alone
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


class Tied(NamedTuple):
    """Strings in groups, as in `Grouped`, with scores. The distinct scores of a group are numbered from 1, and
    ``numbers`` has the number of each string's score.
    """

    data: Any
    words: Any
    starts: Any
    numbers: Any


@kernel
def count_before(listed: Tied, sought: Tied, descending: bool, before: Any) -> None:
    """For each sought string, count the strings of its group that have the same score and come before it.

    Parameters
    ----------
    listed, sought : Tied
        All strings, and the strings to count for, with the same number of groups.
    descending : bool
        If true, strings with equal scores are ordered by descending bytes, else as in `listed`.
    before : (n,) int64
        Out: the count for each string of `sought`.
    """
    words, numbers = listed.words, listed.numbers
    most = 0
    for row in range(len(numbers)):
        most = max(most, numbers[row])
    ends, rows = np.zeros(most + 1, np.int64), np.empty(len(words), np.int64)
    for group in range(len(listed.starts) - 1):
        first, last = listed.starts[group], listed.starts[group + 1]
        highest = 0
        for row in range(first, last):  # sort the rows of the group by the number of the score
            ends[numbers[row]] += 1
            highest = max(highest, numbers[row])
        for number in range(highest, 0, -1):
            last -= ends[number]
            ends[number] = last
        for row in range(first, listed.starts[group + 1]):
            rows[ends[numbers[row]]] = row
            ends[numbers[row]] += 1
        for k in range(sought.starts[group], sought.starts[group + 1]):
            word, count = sought.words[k], 0
            begin = ends[sought.numbers[k] - 1] if sought.numbers[k] > 1 else first
            for at in range(begin, ends[sought.numbers[k]]):
                if descending:
                    count += _higher(listed.data, words[rows[at]], sought.data, word)
                elif _same(listed.data, words[rows[at]], sought.data, word):
                    break
                else:
                    count += 1
            before[k] = count
        for number in range(highest + 1):
            ends[number] = 0
