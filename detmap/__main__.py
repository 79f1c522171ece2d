"""The command line as a process of its own: ``detmap``, and ``python -m detmap``."""

import gc
import os
import sys

import detmap
from detmap import installation
from detmap.system import interrupts

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


def _share_freed_memory() -> None:
    """Let threads use what others have freed: glibc keeps it apart for each thread, 5 % of the memory of `eval`."""
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
        if mallopt is not None:
            mallopt(_ARENA_MAX, 1)


def _import_numpy_alone() -> None:
    """Import numpy without the threads of its BLAS, whose start takes as much processor time as half the import."""
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        return
    os.environ[name] = "1"
    import numpy  # noqa: F401

    del os.environ[name]  # which child processes would inherit


def run() -> int:
    """Run the command line and return its exit code."""
    try:
        _share_freed_memory()  # ahead of the first thread
        interrupts.watch()
    except KeyboardInterrupt:
        interrupts.end()
    # What numba imports is a hundred thousand objects, never garbage. By default they are looked through time and again
    # while they come, and more than once when the process ends: a fifth of all that half a million detections take.
    # What detmap makes itself leaves no circles that would wait for it.
    gc.set_threshold(300_000)
    if not hasattr(detmap, "_HOMES"):  # another package's detmap/__init__.py has replaced that of this package
        problem = (
            installation.find_foreign() or f"{detmap.__file__} is not {installation.DISTRIBUTION}'s: install it again"
        )
        print(f"detmap: error: {problem}", file=sys.stderr)
        return 2
    from detmap.cli import has_use_of_blas_threads, main

    if not has_use_of_blas_threads(sys.argv[1:]):
        _import_numpy_alone()
    code = main()
    gc.freeze()
    interrupts.leave()
    return code


if __name__ == "__main__":
    raise SystemExit(run())
