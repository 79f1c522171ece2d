"""Callbacks that are asked, before a kernel is compiled, whether another process has compiled it meanwhile."""

from __future__ import annotations

from collections.abc import Callable

ASKED: list[Callable[[str], bool]] = []
