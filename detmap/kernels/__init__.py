"""Jitted loops over raw arrays, nothing else.

Rules for every kernel:

* Input arrays are read-only (see `readonly`) and output arrays are writable arguments. A column has one dtype, so that
  each kernel compiles once.
* A kernel returns nothing or a number. Output of unknown size is written to an argument, too: when this argument is
  full, the kernel stops and reports how far it came and how much room the next item needs. A kernel returns no tuple,
  because numba builds tuples through Python's API, and the process crashes if a signal handler (Ctrl-C) raises then.
* A kernel works on a block ``[begin, end)`` at a time, and blocks write disjoint outputs.

A kernel may call kernels and helpers of any file of this package, because the cache key covers the sources of all files
(`_numba`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from detmap.kernels import _ahead

F = TypeVar("F", bound=Callable[..., Any])


#: All kernels of this process, as returned by `kernel`.
KERNELS: list[Callable[..., Any]] = []

#: The object of kernels compiled ahead of time; None if numba compiles all of them.
_OBJECT = _ahead.chosen().object


def _made(function: Callable[..., Any], compile: Callable[[], Any], *object: _ahead.Object | None) -> Any:
    """Return a `StandIn` if an object of compiled kernels exists or numba is missing, else numba's compiled function."""
    if _OBJECT is None and _ahead.has_numba():
        return compile()
    return _ahead.StandIn(function, compile, *object)


def kernel(function: F) -> F:
    """Compile `function` on its first call, or take it from an object that was compiled ahead of time.

    Kernels release the GIL. A float divided by zero gives infinity or NaN, and no error. Compiled code is cached on
    disk, under the digest of its sources.
    """

    def compile() -> Any:
        from detmap.kernels import _numba

        # C code never calls kernels. A wrapper for C would take a tenth of the compile time.
        lean = _numba.known_options(no_cfunc_wrapper=True) | _numba.without_garbage_collection()
        return _numba.cached(function, lambda function, **options: _numba.njit(**lean, **options)(function))

    own = function.__module__.startswith(f"{__name__}.")
    compiled = _made(function, compile, _OBJECT if own else None)
    KERNELS.append(compiled)
    return cast(F, compiled)


def helper(function: F) -> F:
    """Compile a function that only kernels call, and that neither allocates nor returns an array.

    A kernel's arrays live until the kernel returns, so helpers need no reference counting. By default numba counts the
    references to a helper's arrays by atomic operations, which are slow with several threads. ``_nrt=False`` removes
    the counting; numba then cannot make a wrapper for Python, and a call from Python crashes.
    """
    return _helped(function)


def innermost(function: F) -> F:
    """Compile a helper inline into every caller, because calls would dominate the time of helpers that run once per
    value.
    """
    return _helped(function, forceinline=True)


def _helped(function: F, **options: bool) -> F:
    def compile() -> Any:
        from detmap.kernels import _numba

        lean = _numba.known_options(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
        return _numba.njit(**lean, **_numba.without_garbage_collection())(function)

    return cast(F, _made(function, compile))


def compiled_before(function: Callable[..., Any]) -> bool:
    """Return whether the kernel `function` is in the cache on disk."""
    if not hasattr(function, "stats"):
        return True
    from detmap.kernels import _numba

    return _numba.is_kept(function)


def _freeze(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return readonly(value, value.dtype)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_freeze, value))
    return value


class Frozen:
    """Base class of columns whose arrays stay read-only after unpickling, because kernels would be compiled again for
    writable arrays.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: _freeze(value) for name, value in state.items()})


def readonly(array: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return `array` as a read-only C-contiguous view (or copy, where needed) of `dtype`.

    numba compiles separate versions for writable and read-only arrays; all arrays that this function returns have the
    read-only signature.
    """
    view: NDArray[Any] = np.ascontiguousarray(array, dtype=dtype).view()
    view.setflags(write=False)
    return view


#: A stop flag that is never set.
NEVER = readonly([0], np.uint8)

#: Minimum size in bytes for which numpy requests huge pages.
_LARGE = 1 << 22

#: Size in bytes above which glibc maps an allocation separately, and unmaps the allocation as soon as it is freed.
_BY_ITSELF = 1 << 25


def allocate(*columns: tuple[int | tuple[int, ...], DTypeLike]) -> list[NDArray[Any]]:
    """Return a new array for each shape and dtype. The arrays should be freed together, because they may share memory.

    If any array is too small for huge pages, all arrays share one block of memory, and each array begins at a multiple
    of 64 bytes. Small pages are faulted in one by one, which takes longer than writing to the pages. If all arrays are
    large, they are allocated separately, so that they can reuse freed memory.
    """
    sizes = [int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in columns]
    if all(size >= _LARGE or not size for size in sizes):
        return [np.empty(shape, dtype) for shape, dtype in columns]
    starts = list(accumulate((-(-size // 64) * 64 for size in sizes), initial=0))
    whole = np.empty(starts[-1], np.uint8)
    return [
        whole[start : start + size].view(dtype).reshape(shape)
        for start, size, (shape, dtype) in zip(starts, sizes, columns, strict=False)
    ]


def passing(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return a new short-lived array whose memory returns to the system when freed. The allocator may keep blocks of
    less than `_BY_ITSELF` bytes for the thread that allocated them. A large array is therefore a slice of a block of
    more than `_BY_ITSELF` bytes; the unwritten rest of the block takes no memory.
    """
    count, size = int(np.prod(shape)), np.dtype(dtype).itemsize
    room = max(count, _BY_ITSELF // size + 1) if count * size >= _LARGE else count
    return np.empty(room, dtype)[:count].reshape(shape)
