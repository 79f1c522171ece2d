"""Who is asked ahead of compiling a kernel, by its label, whether another process has compiled it meanwhile."""

from __future__ import annotations

from collections.abc import Callable

ASKED: list[Callable[[str], bool]] = []
