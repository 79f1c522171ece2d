"""The entry point of the commands ``detmap`` and ``python -m detmap``."""

import gc
import os
import sys

import detmap
from detmap import installation
from detmap.system import interrupts

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


def _share_freed_memory() -> None:
    """Let threads share freed memory. By default, glibc keeps freed memory per thread, which costs `eval` 5 % more
    memory.
    """
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have no mallopt
        if mallopt is not None:
            mallopt(_ARENA_MAX, 1)


def _import_numpy_alone() -> None:
    """Import numpy without starting BLAS threads, which takes half the processor time of the import."""
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        return
    os.environ[name] = "1"
    import numpy  # noqa: F401

    del os.environ[name]  # otherwise child processes would inherit the variable


def run() -> int:
    """Run the command line and return its exit code."""
    try:
        _share_freed_memory()  # before the first thread starts
        interrupts.watch()
    except KeyboardInterrupt:
        interrupts.end()
    # Importing numba creates a hundred thousand objects that never become garbage. With the default thresholds the
    # collector scans these objects repeatedly, also at exit, which takes a fifth of the run time for half a million
    # detections. detmap itself creates no long-lived reference cycles.
    gc.set_threshold(300_000)
    if not hasattr(detmap, "_HOMES"):  # another package has overwritten detmap/__init__.py
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
