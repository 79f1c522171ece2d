#!/usr/bin/env python3
"""What it costs to install a wheel and to get the first number, beside the evaluators written in Rust.

    scripts/bench_install.py WHEEL [--write]

Each program is installed into an empty environment of its own: the size of its wheel, and what its installation adds on
disk besides numpy, bytecode included. Then each scores the fixture in a process of its own, by turns: the processor time
of the first process and the median of later ones, and their peak memory. ``--write`` puts the table into README.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FILES = [str(ROOT / "fixtures" / "coco" / f"{name}.json") for name in ("ground_truth", "detections")]

#: Scores the fixture with a module that looks like pycocotools.
_COCOLIKE = """
import sys
from {0} import COCO, COCOeval
truth = COCO(sys.argv[1])
evaluation = COCOeval(truth, truth.loadRes(sys.argv[2]), "bbox")
evaluation.evaluate()
evaluation.accumulate()
evaluation.summarize()
"""

#: Other evaluators, and how each scores two files.
PEERS = {
    "hotcoco": _COCOLIKE.format("hotcoco"),
    "ultrafast-pycocotools": _COCOLIKE.format("ultrafast_pycocotools"),
}

_TABLE = re.compile(r"(?<=<!-- install -->\n).*?(?=<!-- /install -->)", re.S)


class Spent(NamedTuple):
    """Processor time in seconds and peak memory in bytes of a process."""

    seconds: float
    memory: int


class Installed:
    """A program in an environment of its own."""

    def __init__(self, name: str, requirement: str, folder: Path, command: Sequence[str]) -> None:
        self.name, self.folder = name, folder
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self._pip("install", "numpy")
        before = self._size()
        self._pip("install", requirement)
        self.added = self._size() - before
        wheels = folder / "wheels"
        self._pip("download", "--no-deps", "--dest", str(wheels), requirement)
        (self.wheel,) = (one.stat().st_size for one in wheels.iterdir())
        self.version = re.search(r"^[^-]+-([^-]+)", next(wheels.iterdir()).name)[1]
        self.command = [str(folder / "bin" / command[0]), *command[1:]]

    def _pip(self, *arguments: str) -> None:
        pip = [self.folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
        subprocess.run(pip, check=True)

    def _size(self) -> int:
        (home,) = self.folder.glob("lib/python*/site-packages")
        return sum(one.stat().st_size for one in home.rglob("*") if one.is_file())

    def run(self) -> Spent:
        """Run the command once, away from the checkout."""
        process = subprocess.Popen(self.command, cwd=self.folder, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{self.name} ended with {process.returncode}: {self.command}")
        return Spent(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def measure(programs: Sequence[Installed], rounds: int) -> dict[str, list[Spent]]:
    """Run every program in every round, the first of which is the first run after installation."""
    spent: dict[str, list[Spent]] = {one.name: [] for one in programs}
    for number in range(rounds + 1):
        for one in programs[number % len(programs) :] + programs[: number % len(programs)]:
            spent[one.name].append(one.run())
    return spent


def table(programs: Sequence[Installed], spent: dict[str, list[Spent]]) -> str:
    """Return the table in Markdown."""
    (runs, *_) = spent.values()
    later = {name: statistics.median(one.seconds for one in runs[1:]) for name, runs in spent.items()}
    memory = {name: statistics.median(one.memory for one in runs[1:]) for name, runs in spent.items()}
    rows = {
        "wheel": {one.name: f"{one.wheel / 1e6:.1f} MB" for one in programs},
        "installed, besides numpy": {one.name: f"{one.added / 1e6:.1f} MB" for one in programs},
        "the fixture in a process, first run": {
            name: f"{1e3 * runs[0].seconds:.0f} ms" for name, runs in spent.items()
        },
        "… any later run": {name: f"{1e3 * value:.0f} ms" for name, value in later.items()},
        "… its peak memory": {name: f"{value / 1e6:.0f} MB" for name, value in memory.items()},
    }
    names = [one.name for one in programs]
    lines = [f"|  | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    lines += [f"| {title} | {' | '.join(row[name] for name in names)} |" for title, row in rows.items()]
    versions = ", ".join(
        f"{name.strip('`').removeprefix('import ')} {one.version}" for name, one in zip(names, programs, strict=True)
    )
    about = (
        f"Processor time, medians of {len(runs) - 1} interleaved runs, Python {platform.python_version()}, {versions}."
    )
    return "\n".join([*lines, "", about, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        programs = [Installed("detmap", str(options.wheel.resolve()), Path(work, "detmap"), ["detmap", "eval", *FILES])]
        programs += [
            Installed(name, name, Path(work, name), ["python", "-c", text, *FILES]) for name, text in PEERS.items()
        ]
        bare = Installed("`import numpy`", "numpy", Path(work, "numpy"), ["python", "-c", "import numpy"])
        made = table([*programs, bare], measure([*programs, bare], options.rounds))
    print(made, end="")
    if options.write:
        page = ROOT / "README.md"
        page.write_text(_TABLE.sub(made.replace("\\", "\\\\"), page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
