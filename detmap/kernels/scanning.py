"""Bytes -> columns: what the scanners of strict JSON records (`records`) and of TREC lines (`lines`) share.

Nothing here or there raises about a document. A kernel stops with a status where it meets something that it does not
understand, and its caller hands the document to a parser that explains. What it does accept is valid to the letter, also
in values that are skipped.

A column is a run of 64-bit words in one flat array, so that integers, floats and byte spans take one path; a float is
written as its bit pattern.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from detmap.kernels import helper

# What a field holds; REPEATED, an id that the line before often has too, and INTEGER only in lines. Of a SPAN and of LISTS
# the place of the value is kept; the contents of LISTS are checked by their reader. QUOTED and PASSED are used for records
# alike: a string that is an id, and a value that is not read.
ID, NUMBERS, FLAG, SPAN, REPEATED, INTEGER, QUOTED, PASSED, LISTS = range(9)
# Those whose columns lie apart from the others: they are looked up, or their values read, and then no longer needed.
APART = (ID, REPEATED, LISTS)
# Why a kernel stopped: at a record that begins at or after `stop`; after the list; at something not understood; with
# the list of doubts full (empty it and call again).
STOPPED, CLOSED, FAILED, FULL = range(4)
# The slots of `state`. EVER, ALWAYS, INTEGERS, STRINGS: a bit per field: some record, every record has it, and as what.
# LONGER: how many lines have more tokens than there are fields for. NOTED: how many values of a record were noted. UNREAD: a
# bit of `key_bit` for each key of a record that is no field. COMMENTS: how many lines were passed as comments.
STATUS, POSITION, FIRST, ROW, LIMIT, EVER, ALWAYS, INTEGERS, STRINGS, DOUBTS, LONGER, NOTED, UNREAD, COMMENTS = range(
    14
)
STATE_SIZE = 14
# No kind of record has more numbers than this.
MOST_NUMBERS = 8


class Columns(NamedTuple):
    """What records are scanned into.

    Attributes
    ----------
    places : (fields, 3) int64
        Per field what it holds, the number of words that a record has of it, and where its column begins: in `ids` where it
        is of those that lie `APART`, else in `words`.
    ids, words : uint64
        Out: the columns, those of ids apart because they are needed for less long.
    doubts : (k, 3) int64
        Out: numbers left to the caller: where in `words`, first byte, end.
    """

    places: Any
    ids: Any
    words: Any
    doubts: Any


@helper
def _leave_lines(places: Any, state: Any, status: int, i: int, row: int, doubtful: int) -> None:
    """Write down why and where a scan of lines stops. Every line has every column, and its ids are strings."""
    state[STATUS], state[POSITION], state[ROW], state[DOUBTS] = status, i, row, doubtful
    state[EVER] = (1 << len(places)) - 1
    for field in range(len(places)):
        if places[field, 0] == ID or places[field, 0] == REPEATED:
            state[STRINGS] |= 1 << field
