#!/usr/bin/env python
"""Attacks detmap: hostile and unusual input of every kind, with what must come of it worked out apart.

Every family runs in a process of its own, so that a crash, a hang or a leak is seen and counted like a wrong number. Cases
follow from the seed: a failure says how to repeat it.

    scripts/attack.py                                  ten minutes, every family
    scripts/attack.py --minutes 2 --seed 7 --only json trec
    scripts/attack.py --only json --seed 7 --case 123  one case again, with everything that it says
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import math
import os
import queue
import resource
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]

from attacks import (  # noqa: E402
    Attack,
    arrays,
    batches,
    blocks,
    bombs,
    checks,
    clusters,
    commands,
    documents,
    evaluators,
    galleries,
    kinds,
    kitti,
    lines,
    nuscenes,
    open_images,
    panoptic,
    rotated,
    signals,
    states,
    tables,
    texts,
    tools,
    videos,
    voc,
    writers,
    zeros,
)

FAMILIES = {
    "json": documents.attack,
    "blocks": blocks.attack,
    "bombs": bombs.attack,
    "trec": lines.attack,
    "voc": voc.attack,
    "texts": texts.attack,
    "tools": tools.attack,
    "open_images": open_images.attack,
    "panoptic": panoptic.attack,
    "tables": tables.attack,
    "checks": checks.attack,
    "clusters": clusters.attack,
    "arrays": arrays.attack,
    "kinds": kinds.attack,
    "rotated": rotated.attack,
    "nuscenes": nuscenes.attack,
    "videos": videos.attack,
    "kitti": kitti.attack,
    "galleries": galleries.attack,
    "states": states.attack,
    "writers": writers.attack,
    "evaluator": evaluators.attack,
    "commands": commands.attack,
    "batch": batches.attack,
    "zeros": zeros.attack,
    "signals": signals.attack,
}
#: Seconds after which a case hangs; bytes that one may add beyond a multiple of its input.
PATIENCE, SPARE, FACTOR = 120, 300 << 20, 60


def judge(attack: Attack) -> tuple[str, str]:
    """Run an attack and return its outcome (number, refused or FAILED) and what there is to say."""
    from detmap.errors import DetmapError

    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("error")
            value = attack.run()
    except DetmapError as error:
        text = str(error)
        if "\n" in text or not text.isprintable() or len(text) > 2000:
            return "FAILED", f"the message is not one printable line: {text!r}"
        added = resident("VmHWM") - before
        if attack.most and added > attack.most:
            return "FAILED", f"{added >> 20} MB before it is refused; at most {attack.most >> 20} MB"
        if not attack.must.refuse:
            return "FAILED", f"refused: {text}; must be {attack.must.value}"
        return "refused", text
    except Exception:
        return "FAILED", traceback.format_exc()
    added = resident("VmHWM") - before
    if attack.size and added > SPARE + FACTOR * attack.size:
        return "FAILED", f"{added >> 20} MB for {attack.size:,} bytes of input"
    if attack.must.value is None:
        return "FAILED", f"took what must be refused, and says {value}"
    if attack.must.value is documents.ANYTHING or same(value, attack.must.value):
        return "number", ""
    return "FAILED", f"says {value}; must be {attack.must.value}"


def same(one: Any, other: Any) -> bool:
    """Whether two values have the same bits; all NaN are one."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float | np.floating) and isinstance(other, float | np.floating):
        return one == other or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def resident(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def made(family: str, seed: int, case: int, folder: Path) -> Attack:
    """The attack of a number: nothing of it depends on those before."""
    rng = np.random.default_rng([seed, case, *family.encode()])
    return FAMILIES[family](rng, folder)


def work(family: str, seed: int, first: int) -> None:
    """Attack without end, and write a line of JSON before and after each case."""
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    answers = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryDirectory() as folder:
        for case in itertools.count(first):
            print(json.dumps([case]), file=answers, flush=True)
            attack = made(family, seed, case, Path(folder))
            outcome, text = judge(attack)
            detail = f"{attack.what}\n    {text}" if outcome == "FAILED" else ""
            print(json.dumps([case, outcome, detail]), file=answers, flush=True)


class Worker:
    """A process that attacks; another takes its place when it crashes or hangs."""

    def __init__(self, family: str, seed: int) -> None:
        self.family, self.seed, self.case = family, seed, 0
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.start()

    def start(self) -> None:
        command = [sys.executable, __file__, "--worker", self.family, str(self.seed), str(self.case)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self.listen, args=(self.process, self.lines), daemon=True).start()

    @staticmethod
    def listen(process: subprocess.Popen[bytes], lines: queue.Queue[bytes]) -> None:
        """Put every line of a process into a queue, and an empty one at its end."""
        assert process.stdout
        while line := process.stdout.readline():
            lines.put(line)
        lines.put(b"")

    def fail(self, detail: str) -> None:
        self.counts["FAILED"] += 1
        again = f"scripts/attack.py --only {self.family} --seed {self.seed} --case {self.case}"
        self.failures.append(f"{again}\n    {detail}")
        print(self.failures[-1], file=sys.stderr, flush=True)

    def run(self, seconds: float) -> None:
        """Let it attack for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                line = self.lines.get(timeout=PATIENCE)
            except queue.Empty:
                self.process.kill()
                line = None
            if not line:
                said = self.process.stderr.read().decode(errors="replace")[-2000:] if self.process.stderr else ""
                code = self.process.wait()
                self.fail(
                    f"hangs: nothing for {PATIENCE} s" if line is None else f"ended with exit code {code}: {said}"
                )
                self.case += 1
                self.start()
                continue
            case, *rest = json.loads(line)
            self.case = case
            if rest:
                outcome, detail = rest
                if outcome == "FAILED":
                    self.fail(detail)
                else:
                    self.counts[outcome] += 1
                self.case += 1
        self.process.kill()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(FAMILIES), default=list(FAMILIES), metavar="FAMILY")
    parser.add_argument("--case", type=int, help="one case of one family")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        family, seed, first = options.worker
        work(family, int(seed), int(first))
        return
    if options.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            attack = made(options.only[0], options.seed, options.case, Path(folder))
            print(attack.what, attack.must, *judge(attack), sep="\n")
        return
    workers = []
    for family in options.only:
        workers.append(Worker(family, options.seed))
        workers[-1].run(60 * options.minutes / len(options.only))
    print(f"{'family':12}{'cases':>10}{'numbers':>10}{'refused':>10}{'failed':>10}")
    for worker in workers:
        numbers, refused, failed = (worker.counts[key] for key in ("number", "refused", "FAILED"))
        print(f"{worker.family:12}{numbers + refused + failed:>10,}{numbers:>10,}{refused:>10,}{failed:>10,}")
    sys.exit(any(worker.failures for worker in workers))


if __name__ == "__main__":
    main()
