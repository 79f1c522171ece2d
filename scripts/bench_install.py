#!/usr/bin/env python3
"""What it costs to install a wheel and to get numbers from whole processes, beside the evaluators written in Rust.

    scripts/bench_install.py WHEEL [--write] [--folder FOLDER]

Each program is installed into an empty environment of its own: the size of its wheel, and what its installation adds on
disk besides numpy, bytecode included. Then each scores the fixture and larger files in processes of its own, by turns:
the time, the processor time and the peak memory, medians, for the fixture the first process too. ``--write`` puts the table
into docs/benchmarks.md. ``--folder`` keeps environments and workloads for the next time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

#: Scores the fixture with a module that looks like pycocotools.
_COCOLIKE = """
import sys
from {0} import COCO, COCOeval
truth = COCO(sys.argv[1])
evaluation = COCOeval(truth, truth.loadRes(sys.argv[2]), sys.argv[4])
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


class Task(NamedTuple):
    """What is scored: files in a folder of this name, of which `write` makes those that are not there, with shapes."""

    title: str
    name: str
    write: Callable[[Path], object]
    shape: str = "bbox"


def _boxes(images: int, folder: Path) -> None:
    from bench_workloads import write_files

    write_files(folder, images, False)


def _masks(images: int, folder: Path) -> None:
    from bench_shapes import write_masks

    write_masks(folder, images, 99)


TASKS = (
    Task("50,000 boxes", "boxes50k", partial(_boxes, 500)),
    Task("500,000 boxes", "boxes500k", partial(_boxes, 5000)),
    Task("49,500 masks", "masks", partial(_masks, 500), "segm"),
)


class Spent(NamedTuple):
    """Time and processor time in seconds, and peak memory in bytes, of a process."""

    seconds: float
    processor: float
    memory: int

    def time(self) -> str:
        """Return both times as the table shows them."""
        return f"{_said(self.seconds)} ({_said(self.processor)})"


def _said(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.0f} ms"


class Installed:
    """A program in an environment of its own; `command` is followed by two files, ``--iou-type`` and a kind of shape."""

    def __init__(self, name: str, requirement: str, folder: Path, command: Sequence[str]) -> None:
        self.name, self.folder, self.requirement = name, folder, requirement
        kept = folder / "installed.json"
        wheel = Path(requirement)
        stamp = hashlib.sha256(wheel.read_bytes()).hexdigest() if wheel.is_file() else requirement
        if not kept.exists() or json.loads(kept.read_text())[0] != stamp:
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            kept.write_text(json.dumps([stamp, *self._install()]))
        _, self.wheel, self.added, self.version = json.loads(kept.read_text())
        self.command = [str(folder / "bin" / command[0]), *command[1:]]

    def _install(self) -> tuple[int, int, str]:
        self._pip("install", "numpy")
        before = self._size()
        self._pip("install", self.requirement)
        added = self._size() - before
        wheels = self.folder / "wheels"
        self._pip("download", "--no-deps", "--dest", str(wheels), self.requirement)
        (wheel,) = wheels.iterdir()
        return wheel.stat().st_size, added, re.search(r"^[^-]+-([^-]+)", wheel.name)[1]

    def _pip(self, *arguments: str) -> None:
        pip = [self.folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
        subprocess.run(pip, check=True)

    def _size(self) -> int:
        (home,) = self.folder.glob("lib/python*/site-packages")
        return sum(one.stat().st_size for one in home.rglob("*") if one.is_file())

    def run(self, files: Path, shape: str) -> Spent:
        """Score the files in a folder once, away from the checkout."""
        paths = [str(files / f"{name}.json") for name in ("ground_truth", "detections")]
        started = time.perf_counter()
        # Linux counts what a process was before it became another program: this small one starts it.
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", _LAUNCHER, *self.command, *paths, "--iou-type", shape],
            cwd=self.folder,
            stdout=subprocess.PIPE,
        )
        said = process.communicate()[0]
        seconds = time.perf_counter() - started
        if process.returncode:
            raise SystemExit(f"{self.name} ended with {process.returncode}: {self.command} {paths} {shape}")
        elapsed, processor, memory = json.loads(said)
        assert elapsed <= seconds
        return Spent(elapsed, processor, memory)


#: Runs a command and prints its time, its processor time and its peak memory.
_LAUNCHER = """
import json, os, sys, time
started = time.perf_counter()
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, 1, 0)])
_, status, usage = os.wait4(process, 0)
print(json.dumps([time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]))
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def measure(programs: Sequence[Installed], files: Path, shape: str, rounds: int) -> dict[str, list[Spent]]:
    """Run every program in every round, by turns; the first round warms up."""
    spent: dict[str, list[Spent]] = {one.name: [] for one in programs}
    for number in range(rounds + 1):
        for one in programs[number % len(programs) :] + programs[: number % len(programs)]:
            spent[one.name].append(one.run(files, shape))
    return spent


def median(runs: Sequence[Spent]) -> Spent:
    """Return the medians of every column."""
    return Spent(*(statistics.median(column) for column in zip(*runs, strict=True)))


def table(programs: Sequence[Installed], folder: Path, rounds: int) -> str:
    """Measure, and return the table in Markdown."""
    names = [one.name for one in programs]
    rows = {
        "wheel": {one.name: f"{one.wheel / 1e6:.1f} MB" for one in programs},
        "installed, besides numpy": {one.name: f"{one.added / 1e6:.1f} MB" for one in programs},
    }
    fixture = measure(programs, ROOT / "fixtures" / "coco", "bbox", rounds)
    rows["the fixture in a process, first run"] = {name: runs[0].time() for name, runs in fixture.items()}
    for title, runs in [("… any later run", fixture), *_larger(programs[:-1], folder, rounds)]:
        medians = {name: median(one[1:]) for name, one in runs.items()}
        rows[title] = {name: one.time() for name, one in medians.items()}
        memory = {name: f"{one.memory / 1e6:.0f} MB" for name, one in medians.items()}
        rows[f"{title}: peak memory" if title[0] != "…" else "… its peak memory"] = memory
    lines = [f"|  | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    lines += [f"| {title} | {' | '.join(row.get(name, '') for name in names)} |" for title, row in rows.items()]
    versions = ", ".join(
        f"{name.strip('`').removeprefix('import ')} {one.version}" for name, one in zip(names, programs, strict=True)
    )
    about = (
        f"Whole processes, from files to the numbers: time, in brackets processor time; medians of {rounds} interleaved runs"
        f" on {os.cpu_count()} cores, Python {platform.python_version()}, {versions}."
    )
    return "\n".join([*lines, "", about, ""])


def _larger(programs: Sequence[Installed], folder: Path, rounds: int) -> list[tuple[str, dict[str, list[Spent]]]]:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]
    found = []
    for task in TASKS:
        files = folder / task.name
        if not (files / "detections.json").exists():
            task.write(files)
        found.append((task.title, measure(programs, files, task.shape, rounds)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", type=Path, help="where environments and workloads are kept; default: nowhere")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) if options.folder is None else options.folder.resolve()
        folder.mkdir(exist_ok=True)
        programs = [Installed("detmap", str(options.wheel.resolve()), folder / "detmap", ["detmap", "eval"])]
        programs += [Installed(name, name, folder / name, ["python", "-c", text]) for name, text in PEERS.items()]
        bare = Installed("`import numpy`", "numpy", folder / "numpy", ["python", "-c", "import numpy"])
        made = table([*programs, bare], folder, options.rounds)
    print(made, end="")
    if options.write:
        page = ROOT / "docs/benchmarks.md"
        page.write_text(_TABLE.sub(made.replace("\\", "\\\\"), page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
