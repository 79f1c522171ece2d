"""Limits on what input may take, and the environment variables that change them; SECURITY.md lists them."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from detmap.errors import OptionError, shorten

_SIZE = r"(?i)([0-9]{1,18})([KMGT]?)(iB|B)?"


class Limit(NamedTuple):
    """A limit in bytes: the environment variable that changes it, and what it is otherwise."""

    variable: str
    default: int

    def value(self) -> int:
        """Return the limit; raises `OptionError` where the variable is set to something else than a size."""
        given = os.environ.get(self.variable, "")
        return size(given, self.variable) if given else self.default

    def advice(self) -> str:
        """Return the remedy of a message about this limit."""
        return f"the environment variable {self.variable} sets another limit"


#: What may be read from a pipe, a device or standard input; less where the machine has less than four times as much memory.
STREAM = Limit("DETMAP_MOST_STREAMED", 4 << 30)

#: What a compressed file may grow to, however small it is; a larger one may grow 200 times.
INFLATED = Limit("DETMAP_MOST_INFLATED", 256 << 20)

#: What a table of string ids may take that one long id makes much larger than its text.
IDS = Limit("DETMAP_MOST_ID_BYTES", 64 << 20)

#: What the overlapping pairs of one image and category may take.
PAIRS = Limit("DETMAP_MOST_PAIR_BYTES", 1 << 30)


def size(text: str, what: str) -> int:
    """Return a number of bytes that is written as 1000000, 512M or 4GiB: factors are powers of 1,024."""
    match = re.fullmatch(_SIZE, text.strip())
    value = int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ") if match else 0
    if not value:
        raise OptionError(f"{what} must be a size above 0, such as 512M or 4G, not {shorten(text)}")
    return value
