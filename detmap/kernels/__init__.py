"""Jitted loops over raw arrays, nothing else.

Rules that every kernel keeps: arrays go in read-only (`readonly`) and come out through writable arguments, one dtype per
column, so that each kernel compiles once; what a kernel returns is nothing, a number or an array, never a tuple, which numba
makes with Python's help: where a signal handler raises meanwhile (Ctrl-C) the process would end in a segmentation fault; a
block ``[begin, end)`` is worked on at a time and blocks write disjoint
outputs; a kernel calls only kernels of its own file, because numba's cache does not see a change in another file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numba.core.caching
import numpy as np
from numpy.typing import DTypeLike, NDArray

F = TypeVar("F", bound=Callable[..., Any])


_njit: Any = partial(numba.njit, nogil=True, error_model="numpy", no_cfunc_wrapper=True)


def kernel(function: F) -> F:
    """Compile `function` on its first call: no GIL, cached on disk, C-like division."""
    compiled: Any = _njit()(function)
    if compiled is function:  # numba is told not to compile
        return function
    # Neither the package's folder nor the user's cache folder can be written to: then it is compiled in every process.
    with suppress(RuntimeError):
        if hasattr(compiled, "_cache"):
            compiled._cache = _Cache(function)  # type: ignore[no-untyped-call]
        else:
            compiled.enable_caching()
    return cast(F, compiled)


def helper(function: F, **options: Any) -> F:
    """Compile what only kernels of the same file call, and what neither allocates nor returns an array.

    An array that a kernel has is there until it returns. numba would still count the references that its helpers hold, one
    atomic instruction for each, wherever not all paths of a helper use an array to their end; `_nrt`, its own option for
    code without a run-time, turns that off. There is no wrapper for Python either: a call from there ends the process.
    """
    return cast(F, _njit(_nrt=False, no_cpython_wrapper=True, **options)(function))


def innermost(function: F) -> F:
    """Compile a helper into every place that calls it; for what a kernel calls for each value, where a call costs."""
    return helper(function, forceinline=True)


class _Kept(numba.core.caching.CompileResultCacheImpl):
    """What is kept of a compiled kernel: all but the environments of numba's own functions.

    An environment is where a function finds its constant objects at run time; numba's own have none. Loading one imports
    its module, and the module of array functions, which `np.empty` names, takes longer to import than all kernels to load.
    """

    def reduce(self, data: Any) -> tuple[Any, ...]:
        """Return what `data`, a compilation's result, is made from again."""
        *kept, environments = super().reduce(data)  # type: ignore[no-untyped-call]
        return (*kept, [e for e in environments if e.consts or not e.globals["__name__"].startswith("numba.")])


class _Cache(numba.core.caching.FunctionCache):
    """numba's cache on disk, which loads a kernel without setting up what only compiling one needs.

    That takes longer than all that a small evaluation does. The compiler sets it up itself where a kernel is not there.
    The names are numba's own affair, the same from 0.60 to 0.68; where one of them is gone its cache is used as it is.
    """

    _impl_class = _Kept

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what an earlier process has left, or None."""
        try:
            guard, load = self._guard_against_spurious_io_errors, self._load_overload
            _name_runtime()
        except (AttributeError, ImportError):
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        with guard():
            return load(sig, target_context)  # type: ignore[no-untyped-call]


@cache
def _name_runtime() -> None:
    """Tell the linker where numba's functions are that kernels allocate memory with."""
    from llvmlite import binding
    from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def compiled_before(function: Callable[..., Any]) -> bool:
    """Return whether an earlier process has left `function`, a kernel, compiled on disk."""
    stats = getattr(function, "stats", None)
    if stats is None or not stats.cache_path:  # not compiled at all, or never kept
        return stats is None
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}-*.nbi"
    return any(Path(stats.cache_path).glob(name))


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

#: From so many bytes on numpy asks the system for large pages.
_LARGE = 1 << 22


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
