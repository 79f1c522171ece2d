"""CSV without quotes is split at once: tables and errors are those of the library parser and of `decimal`."""

from __future__ import annotations

import numpy as np
import pytest
from legs import examples
from support import same_bits

from detmap.choices import decimal
from detmap.errors import DetmapError
from detmap.formats.delimited import read as delimited
from detmap.reading.opening import Held

CELLS = ["1", "2.5", " 3 ", "a b", "", "é", "-0.0", "a\x0bb", "\x85", "'", " "]
ODD = ['"a"', '"a,b"', '"a\nb"', 'a"b', "x" * 140_000, "\0", "\r", "a\r\nb"]
BREAKS = ["\n", "\n", "\r\n", "\r", "\n\n", "\n \n", "\n,,\n"]
NUMBERS = ["1", "2.5", " 3 ", "-0.0", "+1", "1e5", "007", ".5", "0.1234567890123456789", "1e-320", "9" * 30]
WRONG = ["", "inf", "nan", "1_0", "١", "x", "1e999", "0x1", "1 2", "9" * 400]


def outcome(text, columns):
    try:
        return delimited.read_table(Held.of(text.encode(), "a.csv"), columns, "ground truth")
    except DetmapError as error:
        return str(error)


def drawn(rng, odd):
    """A file of rows with mostly three cells."""
    breaks = BREAKS if odd else BREAKS[: 1 + int(rng.integers(3))]
    rows = [["image", "x", "y"]] if rng.random() < 0.8 else []
    for _ in range(rng.integers(0, 6)):
        width = 3 if rng.random() > odd else int(rng.integers(0, 5))
        cells = CELLS + ODD if rng.random() < odd else CELLS
        rows.append([cells[i] for i in rng.integers(0, len(cells), width)])
    text = "".join(",".join(row) + breaks[rng.integers(len(breaks))] for row in rows)
    return ("\ufeff" * int(rng.random() < 0.2)) + (text if rng.random() < 0.5 else text.rstrip("\r\n"))


@pytest.mark.parametrize("columns", [None, ["image", "x", "y"], ["image", "x"], {"x1": "x"}, ["image", "z"]])
def test_cells_are_those_of_the_library_parser(columns, monkeypatch):
    rng = np.random.default_rng(9)
    real, seen = delimited._plain_cells, set()
    for turn in range(examples(600)):
        text = drawn(rng, (0.0, 0.1)[turn % 2])
        monkeypatch.setattr(delimited, "_plain_cells", real)
        mine, plain = outcome(text, columns), real(text.removeprefix("\ufeff"), ",")
        monkeypatch.setattr(delimited, "_plain_cells", lambda *_: None)
        assert mine == outcome(text, columns), text
        seen.add((type(mine), plain is not None))
    assert len(seen) >= 2


def test_numbers_of_columns_are_those_that_decimal_gives(monkeypatch):
    rng = np.random.default_rng(10)
    for turn in range(examples(400)):
        words = NUMBERS if turn % 2 else NUMBERS + WRONG
        table = delimited.Table(
            {"x": [words[i] for i in rng.integers(0, len(words), rng.integers(1, 9))]}, [*range(9)], "a"
        )
        found = []
        for many in (1, 1 << 60):
            monkeypatch.setattr(delimited, "_MANY", many)
            try:
                found.append(table.numbers("x"))
            except DetmapError as error:
                found.append(str(error))
        if isinstance(found[0], str):
            assert found[0] == found[1]
        else:
            assert same_bits(found[0], found[1])
            assert same_bits(found[0], np.array([decimal(cell) for cell in table.columns["x"]]))
