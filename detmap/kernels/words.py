"""Process a document's bytes eight at a time, as little-endian 64-bit words."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import helper, innermost, kernel

U1, U7, U8, U16, U24, U32, U40, U48, U52, U56, U63 = (np.uint64(n) for n in (1, 7, 8, 16, 24, 32, 40, 48, 52, 56, 63))
U2, U3, U4, U5, U6 = (np.uint64(n) for n in (2, 3, 4, 5, 6))
NOTHING = np.uint64(0)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
LOW32 = np.uint64(0xFFFFFFFF)
ONES = np.uint64(0x0101010101010101)
HIGHS = np.uint64(0x8080808080808080)
ABOVE_SPACES = np.uint64(0x2121212121212121)
FROM_BRACES = np.uint64(0x0505050505050505)  # added to a byte, sets the highest bit for "{" and above
BYTE = np.uint64(0xFF)
FIVE_BYTES = np.uint64(0xFFFFFFFFFF)
COLON, SPACE, COMMA = (np.uint8(ord(c)) for c in ": ,")
# Number of bytes that one step of `survey` searches for marks.
AT_ONCE = 128


@innermost
def _word(data: Any, i: int) -> Any:
    """Return the eight bytes from `i` on, the first byte lowest."""
    j = np.uint64(i)  # with unsigned indices the eight loads become one
    return (
        np.uint64(data[j])
        | np.uint64(data[j + U1]) << U8
        | np.uint64(data[j + U2]) << U16
        | np.uint64(data[j + U3]) << U24
        | np.uint64(data[j + U4]) << U32
        | np.uint64(data[j + U5]) << U40
        | np.uint64(data[j + U6]) << U48
        | np.uint64(data[j + U7]) << U56
    )


@helper
def _load(data: Any, i: int) -> Any:
    """Return the eight bytes from `i` on, the first byte lowest; zeros past the end. `data` holds at least eight bytes."""
    shift = NOTHING
    if i + 8 > len(data):
        if i >= len(data):
            return NOTHING
        shift = np.uint64(8 * (i + 8 - len(data)))
        i = len(data) - 8
    return _word(data, i) >> shift


@helper
def _byte(data: Any, i: int) -> Any:
    """Return the byte at `i`; past the end 0, which is not valid anywhere in a document."""
    if i >= len(data):
        return 0
    return np.int64(data[np.uint64(i)])


@helper
def _lowest_bit(word: Any) -> Any:
    """Return the index of the lowest bit set; 64 if there is none."""
    below = (word - U1) & ~word
    count = 0
    while below != NOTHING:  # LLVM compiles this loop to one instruction
        below &= below - U1
        count += 1
    return count


@helper
def _before(flags: Any) -> Any:
    """Return the number of bytes below the lowest byte that has a bit set; 8 if no bit is set."""
    return _lowest_bit(flags) >> 3


@kernel
def survey(data: Any, begin: int, end: int, mark: int, inner: bool) -> int:
    """Return the number of bytes of ``data[begin:end]`` that equal `mark`; -1 minus that number if any byte is not
    ASCII. With `inner`, a mark after a colon, or after a colon and a space, does not count, because a value begins there.
    """
    count, joined, wanted = 0, np.uint8(0), np.uint8(mark)
    # A count of up to `AT_ONCE` fits into a byte, which lets the compiler vectorise the loop.
    head = min(begin + 2, end)
    middle = head + (end - head) // AT_ONCE * AT_ONCE
    for start in range(head, middle, AT_ONCE):
        marks = np.uint8(0)
        if inner:
            for k in range(AT_ONCE):
                i = np.uint64(start) + np.uint64(k)
                c, before = data[i], data[i - U1]
                behind_colon = (before == COLON) | ((before == SPACE) & (data[i - U2] == COLON))
                marks = np.uint8(marks + np.uint8((c == wanted) & (not behind_colon)))
                joined = np.uint8(joined | c)
        else:
            for k in range(AT_ONCE):
                c = data[np.uint64(start) + np.uint64(k)]
                marks = np.uint8(marks + np.uint8(c == wanted))
                joined = np.uint8(joined | c)
        count += np.int64(marks)
    for part in range(2):  # the first two bytes, then the bytes at the end
        for i in range(middle if part else begin, end if part else head):
            c = data[np.uint64(i)]
            behind_colon = part and (data[i - 1] == COLON or (data[i - 1] == SPACE and data[i - 2] == COLON))
            count += c == wanted and not (inner and behind_colon)
            joined = np.uint8(joined | c)
    return ~count if joined >= np.uint8(128) else count


@helper
def _blank(data: Any, i: int, lines: bool) -> int:
    """Return the first position from `i` on that is not white space. With `lines` (one record per line), a line feed
    does not count as white space.
    """
    while True:
        c = _byte(data, i)
        if c > 32 or not (c == 32 or c == 9 or c == 13 or (c == 10 and not lines)):
            return i
        i += 1


@helper
def _token_end(data: Any, i: int) -> int:
    """Return the first position from `i` on of a blank or a control character, or the end."""
    while True:
        word = _load(data, i)
        n = _before((word - ABOVE_SPACES) & ~word & HIGHS)
        i += n
        if n < 8:
            return i


@helper
def _next_line(data: Any, i: int) -> int:
    """Return the start of the next line if a line or the document ends at `i`, else -1."""
    c = _byte(data, i)
    if c == 13:
        i += 1
        c = _byte(data, i)
    return i + 1 if c == 10 or i >= len(data) else -1


@helper
def _tab_or_space(data: Any, i: int) -> int:
    """Return the first position from `i` on that is neither a space nor a tabulator."""
    while _byte(data, i) == 32 or _byte(data, i) == 9:
        i += 1
    return i
