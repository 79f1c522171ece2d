"""What is read of parts of bodies, archives and tables of Arrow, and of the same with one thing altered, is what is kept."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from altered import check, names_of


@pytest.mark.parametrize("name", names_of("packed"))
def test_what_is_read(name, monkeypatch):
    check(name, monkeypatch)
