"""Jitted loops over raw arrays, nothing else.

Rules that every kernel keeps:

* Arrays go in read-only (`readonly`) and come out through writable arguments, one dtype per column, so that each kernel
  compiles once.
* A kernel returns nothing or a number. What has a size that is not known before goes to `out` too: where `out` is full the
  kernel stops, and says how far it came and how much room the next item needs. numba makes tuples with Python's help, and
  where a signal handler raises meanwhile (Ctrl-C) the process would end in a segmentation fault.
* A kernel works on a block ``[begin, end)`` at a time, and blocks write disjoint outputs.

Kernels call kernels and helpers of any file here: the cache knows the sources of all (`_numba`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from detmap.kernels import _ahead

F = TypeVar("F", bound=Callable[..., Any])


#: Every kernel of this process, as `kernel` returned it.
KERNELS: list[Callable[..., Any]] = []

#: The object with kernels that were compiled ahead of time; None where numba compiles all of them.
_OBJECT = _ahead.chosen().object


def _made(function: Callable[..., Any], compile: Callable[[], Any], *object: _ahead.Object | None) -> Any:
    """Return what numba makes of a function, now or, where kernels are compiled already, when something asks for it."""
    if _OBJECT is None and _ahead.has_numba():
        return compile()
    return _ahead.StandIn(function, compile, *object)


def kernel(function: F) -> F:
    """Compile `function` on its first call, or take it from an object that was compiled ahead of time.

    No GIL, C-like division; what is compiled is cached on disk under the digest of its sources.
    """

    def compile() -> Any:
        from detmap.kernels import _numba

        # Kernels are never called from C; numba would spend a tenth of the compile time on the wrapper for that.
        lean = _numba.known_options(no_cfunc_wrapper=True) | _numba.without_garbage_collection()
        return _numba.cached(function, lambda function, **options: _numba.njit(**lean, **options)(function))

    own = function.__module__.startswith(f"{__name__}.")
    compiled = _made(function, compile, _OBJECT if own else None)
    KERNELS.append(compiled)
    return cast(F, compiled)


def helper(function: F) -> F:
    """Compile what only kernels call, and what neither allocates nor returns an array.

    A kernel's arrays live until it returns, yet numba counts the references of its helpers too, with atomic instructions
    that all threads share, wherever not every path uses an array to its end: 41 places for 16 in the scanner of records.
    ``_nrt=False`` leaves them out; numba can then make no wrapper for Python, and a call from there ends the process.
    """
    return _helped(function)


def innermost(function: F) -> F:
    """Compile a helper into every place that calls it; for what a kernel calls for each value, where a call costs."""
    return _helped(function, forceinline=True)


def _helped(function: F, **options: bool) -> F:
    def compile() -> Any:
        from detmap.kernels import _numba

        lean = _numba.known_options(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
        return _numba.njit(**lean, **_numba.without_garbage_collection())(function)

    return cast(F, _made(function, compile))


def compiled_before(function: Callable[..., Any]) -> bool:
    """Return whether an earlier process has left `function`, a kernel, compiled on disk."""
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
    """A class of read-only columns, which leave a pickle read-only again: for others a kernel would be compiled anew."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: _freeze(value) for name, value in state.items()})


def readonly(array: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return `array` as a read-only C-contiguous view (or copy, where needed) of `dtype`.

    numba compiles a kernel anew for a writable and a read-only array; with every input passed through here there is
    one signature.
    """
    view: NDArray[Any] = np.ascontiguousarray(array, dtype=dtype).view()
    view.setflags(write=False)
    return view


#: A flag that is never set, for kernels that would stop early where one is.
NEVER = readonly([0], np.uint8)

#: Bytes from which on numpy asks the system for large pages.
_LARGE = 1 << 22

#: Memory of more bytes than this always comes from the system by itself, and goes back to it at once (glibc).
_BY_ITSELF = 1 << 25


def allocate(*columns: tuple[int | tuple[int, ...], DTypeLike]) -> list[NDArray[Any]]:
    """Return a new array of every shape and dtype: for columns that live together.

    Where one is too small for large pages they lie in one piece of memory, at multiples of 64 bytes: the system hands out
    small pages one by one as each is first written to, which takes longer than writing them. Large ones lie by themselves,
    where they fit into what others have left.
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
    """Return a new array for what is soon no longer needed: its memory goes back to the system then.

    What is smaller the allocator may keep, where only the thread that asked for it finds it again. So a large array is a
    part of one that is larger; what is never written to takes no memory.
    """
    count, size = int(np.prod(shape)), np.dtype(dtype).itemsize
    room = max(count, _BY_ITSELF // size + 1) if count * size >= _LARGE else count
    return np.empty(room, dtype)[:count].reshape(shape)
