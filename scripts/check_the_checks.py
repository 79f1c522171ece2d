"""Plants every defect of ``tests/planting/`` in clean data, seed by seed, and prints recall and precision per code.

python scripts/check_the_checks.py [SEEDS [FIRST]]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import planting  # noqa: E402

import detmap  # noqa: E402
from detmap.results import to_text  # noqa: E402


def codes_of(data, folder):
    """What is found in a data set, and not only noted."""
    paths = [Path(folder) / name for name in ("truth.json", "found.json", "train.json")]
    for path, content in zip(paths, (data.truth, data.found, data.train), strict=True):
        path.write_text(json.dumps(content))
    found = None if data.found is None else paths[1]
    return set(detmap.check(paths[0], found, train=paths[2] if data.train else None).codes)


def measure(seeds):
    """Return a row per code, and what was missed or found wrongly, each with its seed."""
    planted, hit, wrong, seen = Counter(), Counter(), Counter(), Counter()
    misses, clean = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            for kind in ("boxes", "masks", "poses"):
                clean[seed, kind] = codes_of(planting.clean(seed, kind), folder)
                for code in clean[seed, kind]:
                    wrong[code] += 1
                    misses.append((seed, f"clean {kind}", f"found {code}"))
            for code, name, also, kind, function in planting.DEFECTS:
                found = codes_of(planting.make(seed, code, name, kind, function), folder)
                planted[code] += 1
                hit[code] += code in found
                if code not in found:
                    misses.append((seed, name, f"missed {code}, found {sorted(found)}"))
                for other in found - {code} - also - clean[seed, kind]:
                    wrong[other] += 1
                    misses.append((seed, name, f"found {other}"))
                for other in found & (also | {code}):
                    seen[other] += 1
    rows = [
        {
            "code": code,
            "planted": planted[code],
            "found": hit[code],
            "recall": hit[code] / planted[code] if planted[code] else float("nan"),
            "wrong": wrong[code],
            "precision": seen[code] / (seen[code] + wrong[code]) if seen[code] + wrong[code] else float("nan"),
        }
        for code in sorted({*planted, *wrong})
    ]
    return rows, misses


def main():
    count, first = (int(word) for word in (*sys.argv[1:3], *("5", "0")[len(sys.argv) - 1 :]))
    rows, misses = measure(range(first, first + count))
    for seed, name, text in misses:
        print(f"seed {seed}, {name}: {text}")
    defects, codes = len(planting.DEFECTS), len({one[0] for one in planting.DEFECTS})
    print(f"\n{defects} defects of {codes} codes, {count} seeds\n\n{to_text(rows)}")


if __name__ == "__main__":
    main()
