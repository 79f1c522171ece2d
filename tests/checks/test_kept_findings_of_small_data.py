"""What is said of defects of small data sets, word for word, and the distributions of some of them."""

from __future__ import annotations

import pytest
from kept import Kept
from said import cells, said

KEPT = Kept("findings-of-small-data", digits=12)

for _name, _cell in cells().items():
    if _name.startswith("small "):
        KEPT.add(_name, said, *_cell)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_said_of_a_defect_of_small_data(name):
    KEPT.holds(name)
