#!/usr/bin/env python
"""Writes the texts of `fixtures/kept` anew, after a change of results that is meant.

scripts/keep.py               all of them
scripts/keep.py statistics    those whose name holds this text
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    import_module("conftest")  # tests find each other by it
    for path in sorted((ROOT / "tests").rglob("test_kept_*.py")):
        if not sys.argv[1:] or any(text in path.stem for text in sys.argv[1:]):
            kept = import_module(path.stem).KEPT
            kept.write()
            print(f"{kept.path.relative_to(ROOT)}: {len(kept.cells)} cells, {kept.path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
