"""Limits on the resources of input, and the environment variables that change them; SECURITY.md lists them."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from detmap.errors import OptionError, shorten

_SIZE = r"(?i)([0-9]{1,18})([KMGT]?)(iB|B)?"


class Limit(NamedTuple):
    """A limit in bytes: the environment variable that changes it, and the default."""

    variable: str
    default: int

    def value(self) -> int:
        """Return the limit; raise `OptionError` if the environment variable does not hold a size."""
        given = os.environ.get(self.variable, "")
        return size(given, self.variable) if given else self.default

    def advice(self) -> str:
        """Return advice for an error message: how to change this limit."""
        return f"the environment variable {self.variable} sets another limit"


#: Maximum size of input from a pipe, a device or standard input. On machines with less than 16 GiB of memory, the
#: default is a quarter of the memory.
STREAM = Limit("DETMAP_MOST_STREAMED", 4 << 30)

#: Maximum size of a compressed file after decompression. Larger files are accepted if they grow at most 200-fold.
INFLATED = Limit("DETMAP_MOST_INFLATED", 256 << 20)

#: Maximum size of an array of string ids that is mostly padding, which happens if one id is much longer than the rest.
IDS = Limit("DETMAP_MOST_ID_BYTES", 64 << 20)

#: Maximum size of the list of overlapping pairs of detections and objects for one image and category.
PAIRS = Limit("DETMAP_MOST_PAIR_BYTES", 1 << 30)


def size(text: str, what: str) -> int:
    """Return a number of bytes from text such as 1000000, 512M or 4GiB, with powers of 1,024."""
    match = re.fullmatch(_SIZE, text.strip())
    value = int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ") if match else 0
    if not value:
        raise OptionError(f"{what} must be a size above 0, such as 512M or 4G, not {shorten(text)}")
    return value
