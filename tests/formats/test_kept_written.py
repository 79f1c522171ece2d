"""What is written of small tables in every format is what is kept of it."""

from __future__ import annotations

import kept
import pytest

pytest.importorskip(
    "pyarrow", minversion="20", reason="could not import 'pyarrow' of a version that reads missing lists of one size"
)

from written import TABLES, lines_of

from detmap.reading import opening


def test_every_table_is_kept():
    assert sorted(path.stem for path in (kept.FOLDER / "written").iterdir()) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_what_is_written_of_a_table(name, monkeypatch):
    monkeypatch.setattr(opening, "_TICK", 0)  # no file changes here while it is read
    kept.same(f"written/{name}", lines_of(name))
