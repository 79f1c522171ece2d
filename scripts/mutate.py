#!/usr/bin/env python
"""Changes one line at a time and runs the tests that should notice: comparisons, ties, epsilons, indices.

A mutant that no test kills is a test that is missing. Kernels run interpreted, in copies of this checkout. A test that has
not ended in time has killed nothing, except a mutant that is marked as endless.

    scripts/mutate.py                   all of them, on all processors
    scripts/mutate.py --only _envelope  those whose file, function, line or tests hold this text
    scripts/mutate.py --list            what there is
    scripts/mutate.py --random 60 --seed 0 --folders detmap/checks detmap/statistics --records build/mutants
                                        60 drawn at random outside of the kernels, each with the tests that carry its line
                                        out; which do is kept in the folder of --records, and learnt again of files of
                                        tests that change. Needs the object of scripts/build-kernels

A mutant is written as: file and function; the line, which must stand there once; what it becomes; tests that kill it; and
True where it makes an endless loop.
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutants import MUTANTS
from mutants.drawn import draw

ROOT = Path(__file__).resolve().parent.parent
#: Seconds that the tests of a mutant may take.
LIMIT = 600.0
#: And those of one that is marked as endless, which without a change take a few seconds.
ENDLESS = 120.0
PYTEST = [
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "-x",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "--tb=line",
    "--hypothesis-profile=mutants",
]


@functools.cache
def functions(text: str) -> dict[str, list[range]]:
    """Return by name the lines, numbered from 0, of the functions of a file."""
    found: dict[str, list[range]] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(range(node.lineno - 1, node.end_lineno or 0))
    return found


def code(line: str) -> str:
    """Return a line without its indent and its comment."""
    return line.partition("  # ")[0].strip()


@dataclass(frozen=True)
class Mutant:
    """One changed line: `old`, without its comment, becomes `new` in a function of a file of detmap/kernels."""

    where: str  # file.function
    old: str
    new: str
    tests: str  # separated by blanks: `hits` is test_hits.py somewhere in tests/, `hits::best_f1` its test_best_f1
    endless: bool = False  # it makes an endless loop, which only the clock can tell

    @property
    def path(self) -> str:
        return f"detmap/kernels/{self.where.split('.')[0]}.py"

    def __str__(self) -> str:
        return f"{self.where}: {self.old}  ->  {self.new}"

    def applied(self, text: str) -> str:
        """Return the text of the file with the change; an error where the line is not there, or more than once."""
        name, lines = self.where.split(".")[1], text.split("\n")
        found = functions(text).get(name, [])
        if len(found) != 1:
            raise SystemExit(f"{self.path} has {len(found)} functions {name!r}")
        places = [i for i in found[0] if code(lines[i]) == self.old]
        if len(places) != 1:
            raise SystemExit(f"{self.path}: {name} has {len(places)} lines {self.old!r}; it must have one")
        (place,) = places
        indent = len(lines[place]) - len(lines[place].lstrip())
        lines[place] = " " * indent + self.new
        return "\n".join(lines)

    def names(self) -> list[str]:
        """Return the tests as pytest takes them."""
        named = (name.partition("::") for name in self.tests.split())
        return [f"{_test_file(file)}::test_{test}" if test else _test_file(file) for file, _, test in named]


def _test_file(name: str) -> str:
    """Return the path of ``test_{name}.py``, which is somewhere in tests/."""
    (path,) = (ROOT / "tests").rglob(f"test_{name}.py")
    return path.relative_to(ROOT).as_posix()


def copied(folder: Path) -> Path:
    """Return a copy of what tests need of this checkout."""
    for name in ("detmap", "tests", "fixtures", "scripts", "docs", ".github"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for path in (ROOT / "pyproject.toml", *ROOT.glob("*.md")):
        shutil.copy(path, folder / path.name)
    return folder


def put(path: Path, text: str, turn: int) -> None:
    """Write a file with a time that no other text of it has had: Python keeps bytecode by the file's second and size."""
    path.write_text(text, "utf-8")
    os.utime(path, (turn, turn))


def outcome(command: list[str], tree: Path, limit: float, **variables: str) -> tuple[str, str]:
    """Return "killed" where a test fails, "survived" where all pass, "no end" where time is up, "no test ran" where none
    could run, and the end of what was printed.
    """
    environment = {**os.environ, **variables, "PYTHONPATH": str(tree)}
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return "no end", ""
    printed = f"{run.stdout[-2000:]}{run.stderr[-500:]}"
    last = (run.stdout.strip().splitlines() or [""])[-1]
    if run.returncode == 0 and " passed" in last:
        return "survived", printed
    if run.returncode == 1 and " failed" in last:
        return "killed", printed
    return "no test ran", printed


def drawn(options: argparse.Namespace) -> int:
    """Try mutants that are drawn at random."""
    from mutants.forked import SECONDS, Trial  # it loads what tests load

    chosen = [one for one in draw(ROOT, options.folders, options.random, options.seed) if options.only in str(one)]
    os.environ |= {"DETMAP_KERNELS": "ahead", "DETMAP_TESTS": "ci", "OPENBLAS_NUM_THREADS": "1"}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory(prefix="detmap-mutants-") as name:
        folder = Path(name)
        trees = [copied(folder / str(job)) for job in range(options.jobs)]
        if (ROOT.parent / "shared").is_dir():  # data that tests read beside the checkout
            (folder / "shared").symlink_to(ROOT.parent / "shared")
        trial = Trial(ROOT, options.records or folder / "records", options.tests, trees, options.seconds or SECONDS)
        for one, result in trial.of(chosen):
            counts["/".join(Path(one.path).parts[:2])][result.partition(" (")[0]] += 1
            print(f"{result}: {one}", flush=True)
    for place, count in sorted(counts.items()):
        print(f"{place}: {count['killed']} of {count.total()} killed")
    killed = sum(count["killed"] for count in counts.values())
    print(f"{killed} of {len(chosen)} mutants killed, drawn with seed {options.seed}")
    return 0  # survivors may be equivalent


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants that hold this text")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="default: all processors")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="draw N mutants outside of the kernels")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument(
        "--folders", nargs="+", default=["detmap"], metavar="DIR", help="folders or files that they are drawn from"
    )
    parser.add_argument(
        "--tests", nargs="+", default=["tests"], metavar="DIR", help="tests that are to kill drawn mutants"
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="of the tests that a drawn mutant is tried with")
    parser.add_argument("--records", type=Path, metavar="DIR", help="keep there which tests carry out which line")
    options = parser.parse_args()
    if options.random:
        return drawn(options)
    chosen = [one for one in (Mutant(*row) for row in MUTANTS) if options.only in f"{one} {one.tests}"]
    if not chosen:
        raise SystemExit(f"no mutant holds {options.only!r}")
    if len({str(one) for one in chosen}) != len(chosen):
        raise SystemExit("a mutant is there twice")
    original = {one.path: (ROOT / one.path).read_text("utf-8") for one in chosen}
    changed = {one: one.applied(original[one.path]) for one in chosen}  # all lines are there
    if options.list:
        print(*(f"{one}\n    {one.tests}" for one in chosen), sep="\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="detmap-mutants-") as folder:
        trees: queue.Queue[Path] = queue.Queue()
        for job in range(options.jobs):
            trees.put(copied(Path(folder, str(job))))

        def tried(turn: int, one: Mutant) -> str:
            tree = trees.get()
            try:
                put(tree / one.path, changed[one], 2 * turn)
                limit = ENDLESS if one.endless else LIMIT
                word, printed = outcome([*PYTEST, *one.names()], tree, limit, NUMBA_DISABLE_JIT="1")
                if word == "no test ran":
                    return f"{word}: {printed}"
                return "killed (by the clock)" if one.endless and word == "no end" else word
            finally:
                put(tree / one.path, original[one.path], 2 * turn + 1)
                trees.put(tree)

        def unchanged() -> str:
            tree = trees.get()
            try:
                every = sorted({name for one in chosen for name in one.names()})
                word, printed = outcome([*PYTEST, *every], tree, 10 * LIMIT, NUMBA_DISABLE_JIT="1")
                return word if word == "survived" else f"{word}: {printed}"
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(options.jobs) as pool:
            results = [(one, pool.submit(tried, turn, one)) for turn, one in enumerate(chosen, 1)]
            sane = pool.submit(unchanged)
            killed = 0
            for one, result in results:
                killed += result.result().startswith("killed")
                print(f"{result.result():9} {one}", flush=True)
            broken = sane.result() != "survived"
            if broken:
                print(f"without a change all must pass: {sane.result()}")
    print(f"{killed} of {len(chosen)} mutants killed")
    return int(broken or killed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
