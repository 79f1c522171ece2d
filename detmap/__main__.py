"""The command line as a process of its own: ``detmap``, and ``python -m detmap``."""

import gc

from detmap import interrupts


def run() -> int:
    """Run the command line and return its exit code."""
    try:
        interrupts.watch()
    except KeyboardInterrupt:
        interrupts.end()
    # What numba imports is a hundred thousand objects, never garbage. By default they are looked through time and again
    # while they come, and more than once when the process ends: a fifth of all that half a million detections take.
    # What detmap makes itself leaves no circles that would wait for it.
    gc.set_threshold(300_000)
    from detmap.cli import main

    code = main()
    gc.freeze()
    interrupts.leave()
    return code


if __name__ == "__main__":
    raise SystemExit(run())
