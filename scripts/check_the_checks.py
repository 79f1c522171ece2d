"""Plants defects in clean data, seed by seed, and prints recall and precision.

Small data sets of ``tests/planting/`` are reported per code; larger scenes (crowded, sparse, one class, poses, masks) per
defect and severity, and per code, severity and kind of scene.

python scripts/check_the_checks.py [SEEDS [FIRST]] [--kinds KIND …] [--defects NAME …] [--jobs N] [--write]

``--defects`` plants these alone, in scenes: names are those of functions of ``tests/planting/scene_*.py`` and ``shaped.py``.
``--write`` puts the table of scenes into docs/check.md.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import re
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import planting  # noqa: E402

import detmap  # noqa: E402
from detmap.errors import many  # noqa: E402
from detmap.results import to_markdown, to_text  # noqa: E402

#: Shares of the images, of the objects of a class or of the detections that a defect of a scene concerns.
SEVERITIES = (0.02, 0.1, 0.5, 1.0)


def codes_of(data, folder):
    """What is found in a data set, and not only noted."""
    paths = [Path(folder) / name for name in ("truth.json", "found.json", "train.json")]
    for path, content in zip(paths, (data.truth, data.found, data.train), strict=True):
        path.write_text(json.dumps(content))
    found = None if data.found is None else paths[1]
    return set(detmap.check(paths[0], found, train=paths[2] if data.train else None).codes)


#: The table in docs/check.md, between two comments.
_TABLE = re.compile(r"(?<=<!-- recall -->\n).*?(?=<!-- /recall -->)", re.DOTALL)


class Tally:
    """How often each code was planted, found, and found wrongly; and what went wrong, each with its seed."""

    def __init__(self):
        self.planted, self.hit, self.wrong, self.right = Counter(), Counter(), Counter(), Counter()
        self.misses = []
        #: How often each code was planted and found at a severity in a kind of scene.
        self.cells: dict[tuple[str, float, str], list[int]] = {}

    def add_cell(self, code, share, kind, named):
        """Count a defect of a scene by code, severity and kind."""
        cell = self.cells.setdefault((code, share, kind), [0, 0])
        cell[0] += named
        cell[1] += 1

    def merge(self, other):
        """Add the counts of another tally."""
        for name in ("planted", "hit", "wrong", "right"):
            getattr(self, name).update(getattr(other, name))
        self.misses += other.misses
        for key, (named, planted) in other.cells.items():
            cell = self.cells.setdefault(key, [0, 0])
            cell[0] += named
            cell[1] += planted

    def table(self, kinds):
        """Return a row for each code: how many were found of those planted, by severity and kind of scene, and precision."""
        codes = sorted({code for code, _, _ in self.cells} | {*self.right, *self.wrong})
        rows = []
        for code in codes:
            row = {"code": f"`{code}`"}
            for share in SEVERITIES:
                cells = [self.cells.get((code, share, kind)) for kind in kinds]
                row[f"{share:.0%}"] = ", ".join("–" if one is None else f"{one[0]}/{one[1]}" for one in cells)
                if not any(cells):
                    row[f"{share:.0%}"] = ""
            right, wrong = self.right[code], self.wrong[code]
            row["findings, right"] = f"{right} of {right + wrong}" if right + wrong else ""
            rows.append(row)
        return rows

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


def scenes(seeds, folder, kinds, jobs, defects=()):
    """Return the tally of the scenes, by defect and severity; of `defects` alone if there are some."""
    tally = Tally()
    tasks = [
        (seed, kind, number, folder)
        for seed in seeds
        for kind in kinds
        for number in range(-1, len(_defects(kind)))
        if number < 0 or not defects or _defects(kind)[number].name in defects
    ]
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        for one in map(_planted, tasks) if pool is None else pool.map(_planted, tasks, chunksize=8):
            print("\n".join(one.misses), end="\n" if one.misses else "", flush=True)
            tally.merge(one)
    return tally


def _defects(kind):
    """Return the defects that are planted in a kind of scene."""
    if kind in planting.SHAPED_KINDS:
        return [one for of, one in planting.SHAPED_DEFECTS if of == kind]
    return planting.SCENE_DEFECTS


@functools.lru_cache(maxsize=1)
def _clean(seed, kind, folder):
    """Return a scene without a defect, a folder for its files, and the codes that are found in it."""
    made = planting.shaped(seed, kind) if kind in planting.SHAPED_KINDS else planting.scene(seed, kind)
    own = Path(tempfile.mkdtemp(dir=folder))
    return made, own, codes_of(made.data(), own)


def _planted(task):
    """Return the tally of a defect, by its number, in one kind of scene for one seed; -1 is the clean scene."""
    seed, kind, number, folder = task
    clean, own, usual = _clean(seed, kind, folder)
    tally = Tally()
    if number < 0:
        tally.clean(f"seed {seed}, clean {kind}", usual)
        return tally
    one = _defects(kind)[number]
    for share in SEVERITIES if clean.classes >= one.classes else ():
        if one.least <= share <= one.most:
            scene = copy.deepcopy(clean)
            one.plant(np.random.default_rng([seed, 1]), scene, share)
            found = codes_of(scene.data(), own)
            where = f"seed {seed}, {kind}, {share:.0%}, {one.name}"
            tally.add(where, one.codes, one.also | usual, found, f"{share:4.0%} {one.name}")
            column = "shaped" if kind in planting.SHAPED_KINDS else kind
            tally.add_cell(one.code, share, column, bool(found & one.codes))
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=5)
    parser.add_argument("first", nargs="?", type=int, default=0)
    every = [*planting.KINDS, *planting.SHAPED_KINDS]
    parser.add_argument("--kinds", nargs="+", choices=every, default=every, help="kinds of scene")
    names = sorted({one.name for kind in every for one in _defects(kind)})
    parser.add_argument(
        "--defects", nargs="+", choices=names, metavar="NAME", default=[], help="these alone, in scenes"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes for the scenes")
    parser.add_argument("--write", action="store_true", help="put the table of scenes into docs/check.md")
    options = parser.parse_args()
    if options.write and options.defects:
        parser.error("--write needs all defects")
    seeds = range(options.first, options.first + options.seeds)
    with tempfile.TemporaryDirectory() as folder:
        for title, make in (
            ("scenes", functools.partial(scenes, kinds=options.kinds, jobs=options.jobs, defects=options.defects)),
            *([] if options.defects else [("small data sets", small)]),
        ):
            tally = make(seeds, folder)
            if make is small:
                print("\n".join(tally.misses))
            hits, planted = sum(tally.hit.values()), sum(tally.planted.values())
            right, wrong = sum(tally.right.values()), sum(tally.wrong.values())
            named = f"{hits:,} of {planted:,} defects named, {wrong} of {right + wrong:,} findings wrong"
            said = f"{title}, {many(options.seeds, 'seed')}: {named}"
            print(f"\n{said}\n")
            print(to_text(tally.recall()), to_text(tally.precision()), sep="\n\n", flush=True)
            if options.write and make is not small:
                made = to_markdown(
                    tally.table([*(kind for kind in planting.KINDS if kind in options.kinds), "shaped"]), markup=True
                )
                page = ROOT / "docs" / "check.md"
                text = f"{said[0].upper()}{said[1:]}.\n\n{made}\n".replace("\\", r"\\")
                page.write_text(_TABLE.sub(text, page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
