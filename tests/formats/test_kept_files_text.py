"""What is read of text files of VOC, YOLO, KITTI and DOTA, and of the same with one thing altered, is what is kept of it."""

from __future__ import annotations

import pytest
from altered import check, names_of


@pytest.mark.parametrize("name", names_of("text"))
def test_what_is_read(name, monkeypatch):
    check(name, monkeypatch)
