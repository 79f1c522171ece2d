"""Random numbers: one stream for every combination of seed, replicate and purpose. No two streams overlap."""

from __future__ import annotations

import threading
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from detmap.errors import OptionError, check_integer, is_integer

#: Purposes of streams; the streams for different purposes are independent, even with the same seed.
BOOTSTRAP, PERMUTATION, QUERIES = range(3)

#: Minimum number of replicates for an interval; with fewer replicates, its ends depend on a handful of draws.
FEWEST_REPLICATES = 200

#: Default number of replicates.
REPLICATES = 1000


def stream(seed: int, replicate: int, use: int) -> np.random.Generator:
    """Return the stream of a seed, a replicate and a purpose.

    The generator is the counter-based Philox (J. Salmon, M. Moraes, R. Dror and D. Shaw, Parallel random numbers: as
    easy as 1, 2, 3, 2011). Seed and replicate are the two halves of the key, and `use` is the highest word of the
    counter. Therefore two different streams never overlap.
    """
    key, counter = np.array([seed, replicate], np.uint64), np.array([0, 0, 0, use], np.uint64)
    return np.random.Generator(np.random.Philox(counter=counter, key=key))


class _Streams(threading.local):
    """One generator per thread, reset for each stream, because making a generator takes several times longer."""

    def __init__(self) -> None:
        self._generator = stream(0, 0, 0)
        self._start = self._generator.bit_generator.state

    def __call__(self, seed: int, replicate: int, use: int) -> np.random.Generator:
        """Return the generator of `stream`; the next call in this thread resets it."""
        start = self._start["state"]
        start["key"][:] = seed, replicate
        start["counter"][3] = use
        self._generator.bit_generator.state = self._start
        return self._generator


_stream = _Streams()


def drawn(size: int, seed: int, replicate: int) -> NDArray[np.int32]:
    """Return how often each of `size` images (or queries) is drawn in one bootstrap replicate, shape (size,).

    The draws only depend on the arguments, so replicate *r* is the same for every model and on every machine.
    """
    draws = _stream(seed, replicate, BOOTSTRAP).integers(0, size, size) if size else ()
    return np.bincount(np.asarray(draws, np.int64), minlength=size).astype(np.int32)


def exchanged(size: int, seed: int, replicate: int) -> NDArray[np.uint8]:
    """Return for each image whether a permutation exchanges it, shape (size,). The values 1 and 0 are equally probable."""
    words = _stream(seed, replicate, PERMUTATION).bit_generator.random_raw(-(-size // 64))
    return np.unpackbits(np.asarray(words, "<u8").view(np.uint8), count=size)


#: Maximum number of images for which exchanges are cached, to be reused for the next pair of models. The cache takes at
#: most 32 MB.
_KEPT = 8192


def exchanges(size: int, seed: int, begin: int, end: int) -> NDArray[np.uint8]:
    """Return the flags of `exchanged` for the permutations ``[begin, end)``, shape (end - begin, size)."""
    make = _exchanges if size <= _KEPT else _exchanges.__wrapped__
    return np.unpackbits(make(size, seed, begin, end), axis=1, count=size)


@lru_cache(maxsize=32)
def _exchanges(size: int, seed: int, begin: int, end: int) -> NDArray[np.uint8]:
    return np.stack([np.packbits(exchanged(size, seed, r)) for r in range(begin, end)])


def check_seed(seed: int) -> None:
    """Raise `OptionError` for a seed that is out of range."""
    check_integer("seed", seed, 0)
    if seed >= 2**64:
        raise OptionError(f"seed must be an integer from 0 to 2**64 - 1, not {seed!r}")


def check_replicates(replicates: int) -> None:
    """Raise `OptionError` for a number of replicates that is too small for an interval."""
    if is_integer(replicates) and replicates < FEWEST_REPLICATES:
        many = "1 replicate is" if replicates == 1 else f"{replicates} replicates are"
        raise OptionError(f"{many} too few for an interval; draw at least {FEWEST_REPLICATES} (1000 are usual)")
    check_integer("replicates", replicates, FEWEST_REPLICATES)
