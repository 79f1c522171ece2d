"""Plants defects in clean data, seed by seed, and prints recall and precision.

Small data sets of ``tests/planting/`` are reported per code, larger scenes (crowded, sparse, one class) per defect and
severity.

python scripts/check_the_checks.py [SEEDS [FIRST]]
"""

from __future__ import annotations

import copy
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import planting  # noqa: E402

import detmap  # noqa: E402
from detmap.results import to_text  # noqa: E402

#: Shares of the images, of the objects of a class or of the detections that a defect of a scene concerns.
SEVERITIES = (0.02, 0.1, 0.5, 1.0)


def codes_of(data, folder):
    """What is found in a data set, and not only noted."""
    paths = [Path(folder) / name for name in ("truth.json", "found.json", "train.json")]
    for path, content in zip(paths, (data.truth, data.found, data.train), strict=True):
        path.write_text(json.dumps(content))
    found = None if data.found is None else paths[1]
    return set(detmap.check(paths[0], found, train=paths[2] if data.train else None).codes)


class Tally:
    """How often each code was planted, found, and found wrongly; and what went wrong, each with its seed."""

    def __init__(self):
        self.planted, self.hit, self.wrong, self.right = Counter(), Counter(), Counter(), Counter()
        self.misses = []

    def add(self, where, wanted, also, found, key):
        """Count a data set with a defect of some codes, any of which names it; `key` is what recall is reported by."""
        self.planted[key] += 1
        self.hit[key] += bool(found & wanted)
        if not found & wanted:
            self.misses.append(f"{where}: missed {' or '.join(sorted(wanted))}, found {sorted(found)}")
        for code in found:
            (self.right if code in wanted | also else self.wrong)[code] += 1
            if code not in wanted | also:
                self.misses.append(f"{where}: found {code}")

    def clean(self, where, found):
        """Count a clean data set."""
        for code in found:
            self.wrong[code] += 1
            self.misses.append(f"{where}: found {code}")

    def recall(self):
        """Return a row for each key."""
        return [
            {"planted": key, "times": count, "found": self.hit[key], "recall": self.hit[key] / count}
            for key, count in sorted(self.planted.items())
        ]

    def precision(self):
        """Return a row for each code."""
        return [
            {
                "code": code,
                "right": self.right[code],
                "wrong": self.wrong[code],
                "precision": self.right[code] / (self.right[code] + self.wrong[code]),
            }
            for code in sorted({*self.right, *self.wrong})
        ]


def small(seeds, folder):
    """Return the tally of the small data sets, by code."""
    tally = Tally()
    for seed in seeds:
        clean = {}
        for kind in ("boxes", "masks", "poses"):
            clean[kind] = codes_of(planting.clean(seed, kind), folder)
            tally.clean(f"seed {seed}, clean {kind}", clean[kind])
        for code, name, also, kind, function in planting.DEFECTS:
            found = codes_of(planting.make(seed, code, name, kind, function), folder)
            tally.add(f"seed {seed}, {name}", {code}, also | clean[kind], found, code)
    return tally


def scenes(seeds, folder):
    """Return the tally of the scenes, by defect and severity."""
    tally = Tally()
    for seed in seeds:
        for kind in planting.KINDS:
            clean = planting.scene(seed, kind)
            usual = codes_of(clean.data(), folder)
            tally.clean(f"seed {seed}, clean {kind}", usual)
            for one in planting.SCENE_DEFECTS:
                for share in SEVERITIES if clean.classes >= one.classes else ():
                    if one.least <= share <= one.most:
                        scene = copy.deepcopy(clean)
                        one.plant(np.random.default_rng([seed, 1]), scene, share)
                        found = codes_of(scene.data(), folder)
                        where = f"seed {seed}, {kind}, {share:.0%}, {one.name}"
                        tally.add(where, one.codes, one.also | usual, found, f"{share:4.0%} {one.name}")
    return tally


def main():
    count, first = (int(word) for word in (*sys.argv[1:3], *("5", "0")[len(sys.argv) - 1 :]))
    seeds = range(first, first + count)
    with tempfile.TemporaryDirectory() as folder:
        for title, make in (("scenes", scenes), ("small data sets", small)):
            tally = make(seeds, folder)
            print("\n".join(tally.misses))
            hits, planted = sum(tally.hit.values()), sum(tally.planted.values())
            right, wrong = sum(tally.right.values()), sum(tally.wrong.values())
            print(
                f"\n{title}, {count} seeds: {hits} of {planted} defects named, {wrong} of {right + wrong} findings wrong\n"
            )
            print(to_text(tally.recall()), to_text(tally.precision()), sep="\n\n")


if __name__ == "__main__":
    main()
