"""What is read of files that options name, of rankings and of segments, also altered, is what is kept of it."""

from __future__ import annotations

import kept
import pytest
from altered import ALL, check, names_of


def test_every_sample_is_kept():
    assert sorted(path.stem for path in (kept.FOLDER / "formats").iterdir()) == sorted(ALL)


@pytest.mark.parametrize("name", names_of("options"))
def test_what_is_read(name, monkeypatch):
    check(name, monkeypatch)
