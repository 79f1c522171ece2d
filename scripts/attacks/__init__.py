"""Attacks on detmap, a file per family; see scripts/attack.py.

Every family is a function ``attack(rng, folder) -> Attack``. What it hands to detmap it makes by itself, and what must come
out it works out by itself or with the naive twins of the tests: nothing here calls a reader, a table or a kernel of detmap
but as the thing that is attacked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Must:
    """What must happen: `value` must come out, bit for bit; or an error of detmap where `refuse`; both: either will do."""

    value: Any = None
    refuse: bool = False


REFUSE = Must(refuse=True)


@dataclass(frozen=True)
class Attack:
    """One attack.

    Attributes
    ----------
    what : str
        It in words, for the report.
    run : callable
        Returns floats, lists of them, or strings.
    must : Must
        What it must come to.
    size : int
        Bytes of input, which memory is bounded by; 0 where it is not looked at.
    most : int
        Bytes that it may add to memory even if it is refused; 0 where it is not looked at.
    """

    what: str
    run: Callable[[], Any]
    must: Must
    size: int = 0
    most: int = 0
