"""Scan large, plain CSV files of detections. The library parser reads other files, such as files with quotes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import readonly, scanning
from detmap.kernels.cells import MOST_CELLS
from detmap.reading.documents import Document, NotUnderstood
from detmap.reading.lists import Layout, scan_list
from detmap.reading.scanned_columns import Fields, Table, distinct_strings


def scan(
    data: Any,
    begin: int,
    delimiter: str,
    roles: Sequence[str | None],
    texts: Sequence[str],
    integers: Sequence[str],
) -> dict[str, Any] | None:
    """Scan lines of cells from position `begin` on. Return the columns by role, without those whose role is None.

    Columns of the roles in `texts` are returned as distinct strings and a code for each row. Columns of the roles in
    `integers` are returned as int64 if all their cells are integers, otherwise as text. All other columns are float64.
    Return None if a line has quotes, a different number of cells, blanks around text, non-finite numbers, or invalid UTF-8.
    """
    if len(roles) > MOST_CELLS or len(data) - begin < 2 or not _is_text(data):
        return None
    names = [role for role in roles if role is not None]
    cells = readonly([-1 if role is None else names.index(role) for role in roles], np.int64)
    for kind in (scanning.INTEGER, scanning.ID):  # most ids are integers, so try them before text
        kinds = {
            name: ((kind if name in integers else scanning.ID if name in texts else scanning.NUMBERS), 1)
            for name in names
        }
        fields = Fields(b"1" * (len(roles) + len(names)), **kinds)
        with suppress(NotUnderstood):
            document = Document(data, None, b"\n")
            table, _ = scan_list(document, begin, Layout(fields, tokens=cells, delimiter=ord(delimiter)))
            return {name: _column(table, name, kinds[name][0]) for name in names}
    return None


def _column(table: Table, name: str, kind: int) -> Any:
    """Return a column of numbers, or the distinct strings of a text column and the code of each row."""
    if kind == scanning.NUMBERS:
        return table.numbers(name)
    if kind == scanning.INTEGER:
        return table.columns[name][:, 0].view(np.int64)
    codes, distinct = distinct_strings(table.texts, table.columns[name][:, 0])
    strings = [one.decode() for one in distinct]
    if any(one != one.strip() for one in strings):
        raise NotUnderstood
    return strings, codes


def _is_text(data: Any) -> bool:
    """Return whether data is UTF-8."""
    whole: NDArray[np.uint8] = np.frombuffer(data, np.uint8)
    if not whole.size or whole.max() < 128:
        return True
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
