"""Helpers shared by the scanners of JSON records (`records`), TREC lines (`lines`) and delimited text (`cells`).

Scanners raise no exceptions. A kernel stops with a status at any input that it does not support, and its caller passes
the document to a parser with precise errors. Skipped values are validated, too, so an accepted document is strictly
valid, except for the contents of lists that are read later.

A column is a range of 64-bit words in one flat array, so that one code path serves integers, floats and byte spans; a
float is written as its bit pattern.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from detmap.kernels import helper

# The type of a field. REPEATED (an id that often equals the id on the line before) is only used for TREC lines, INTEGER
# only for TREC lines and delimited text. For SPAN and LISTS the column holds the begin and end of the value in the
# document. The contents of LISTS are checked later, when the lists are read. QUOTED and PASSED are not types of
# columns: they mark a string id and an unread value.
ID, NUMBERS, FLAG, SPAN, REPEATED, INTEGER, QUOTED, PASSED, LISTS = range(9)
# Types whose columns are stored separately, because they are freed once ids are looked up or lists are read.
APART = (ID, REPEATED, LISTS)
# Why a kernel stopped. STOPPED: a record begins at or after `stop`. CLOSED: the list has ended. FAILED: the input is
# not supported. FULL: `doubts` has no room, so the caller must parse the numbers in it and call again.
STOPPED, CLOSED, FAILED, FULL = range(4)
# The slots of `state`. Four slots have a bit per field. EVER: some record has the field. ALWAYS: every record has the
# field. INTEGERS: some value is an integer. STRINGS: some value is a string. LONGER: number of lines with more tokens
# than fields. NOTED: number of values of the first record. UNREAD: for each key that is not a field, the bit
# `records._key_bit` is set. COMMENTS: number of comment lines.
STATUS, POSITION, FIRST, ROW, LIMIT, EVER, ALWAYS, INTEGERS, STRINGS, DOUBTS, LONGER, NOTED, UNREAD, COMMENTS = range(
    14
)
STATE_SIZE = 14
# Maximum number of numbers in a record.
MOST_NUMBERS = 8


class Columns(NamedTuple):
    """Output of scanning records.

    Attributes
    ----------
    places : (fields, 3) int64
        For each field its type, its number of words per record, and the start of its column: in `ids` for types in
        `APART`, else in `words`.
    ids, words : uint64
        Out: the columns; the columns in `ids` are freed earlier.
    doubts : (k, 3) int64
        Out: for each number that the caller must parse: its index in `words`, its first byte and its end.
    """

    places: Any
    ids: Any
    words: Any
    doubts: Any


@helper
def _leave_lines(places: Any, state: Any, status: int, i: int, row: int, doubtful: int) -> None:
    """Record why and where a scan of lines stops. As every line has all fields and ids are read as strings, the bits of
    `EVER` and `STRINGS` do not depend on the lines.
    """
    state[STATUS], state[POSITION], state[ROW], state[DOUBTS] = status, i, row, doubtful
    state[EVER] = (1 << len(places)) - 1
    for field in range(len(places)):
        if places[field, 0] == ID or places[field, 0] == REPEATED:
            state[STRINGS] |= 1 << field
