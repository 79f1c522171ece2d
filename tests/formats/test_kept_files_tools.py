"""What is read of files of annotation tools, and of the same with one thing altered, is what is kept of it."""

from __future__ import annotations

import pytest
from altered import check, names_of


@pytest.mark.parametrize("name", names_of("tools"))
def test_what_is_read(name, monkeypatch):
    check(name, monkeypatch)
