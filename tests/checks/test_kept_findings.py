"""What is said of planted defects, word for word and with all figures and records."""

from __future__ import annotations

import pytest
from kept import Kept
from said import cells, said

KEPT = Kept("findings", digits=12)

for _name, _cell in cells().items():
    if not _name.startswith("small "):
        KEPT.add(_name, said, *_cell)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_said_of_a_defect(name):
    KEPT.holds(name)
