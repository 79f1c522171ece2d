"""What is said of defects of small data sets, word for word, and the distributions of some of them."""

from __future__ import annotations

import pytest
from said import cells, said, sections

CELLS = cells()
SAID = sections()


@pytest.mark.parametrize("name", [name for name in CELLS if name.startswith("small ")])
def test_what_is_said_of_a_defect_of_small_data(name):
    assert said(*CELLS[name]) == SAID[name]
