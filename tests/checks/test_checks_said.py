"""What is said of planted defects, word for word and with all figures and records."""

from __future__ import annotations

import pytest
from said import cells, said, sections

CELLS = cells()
SAID = sections()


def test_all_cells_are_kept():
    assert list(SAID) == list(CELLS)


@pytest.mark.parametrize("name", [name for name in CELLS if not name.startswith("small ")])
def test_what_is_said_of_a_defect(name):
    assert said(*CELLS[name]) == SAID[name]
