"""What is read of small files of every format, and of the same files with one thing altered, is what is kept of it."""

from __future__ import annotations

import pytest
from altered import KEPT, lines_of
from more_samples import ALL

from detmap.reading import opening


def test_every_sample_is_kept():
    assert sorted(path.stem for path in KEPT.glob("*.txt")) == sorted(ALL)


@pytest.mark.parametrize("name", ALL)
def test_what_is_read_of_altered_files(name, monkeypatch):
    monkeypatch.setattr(opening, "_TICK", 0)  # no file changes here while it is read
    assert lines_of(name) == (KEPT / f"{name}.txt").read_text("utf-8").split("\n")[:-1]
