"""The programs that bench.py measures, detmap and its peers, each inside a process of its own: time and memory.

bench.py starts this file as a process:

    scripts/bench_programs.py --worker PROGRAM FOLDER    answers commands until its input ends
    scripts/bench_programs.py --whole PROGRAM FOLDER     from files to the numbers, once
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# The package of this checkout, or of the one that bench_commits.py compares it with.
sys.path[:0] = [os.environ.get("DETMAP_TREE", str(ROOT)), str(ROOT / "tests"), str(ROOT / "scripts")]

OURS = "detmap"
FAST = ("hotcoco", "ultrafast-pycocotools")
SLOW = ("faster-coco-eval", "pycocotools")
PEERS = (*FAST, *SLOW)


class Detmap:
    """The library itself, tables in memory."""

    def load(self, folder: Path) -> None:
        import detmap

        self.detmap = detmap
        self.truth = detmap.read_coco(folder / "ground_truth.json")
        rows = np.load(folder / "detections.npy")
        self.found = detmap.Detections.from_arrays(
            image_ids=rows[:, 0].astype(np.int64),
            category_ids=rows[:, 6].astype(np.int64),
            boxes=rows[:, 1:5],
            scores=rows[:, 5],
        )

    def run(self, max_dets: list[int]) -> Callable[[], tuple[float, int]]:
        result = self.detmap.evaluate(self.truth, self.found, max_dets=max_dets)
        arrays = (result.precision, result.scores, result.recall, result.average_precision)
        return lambda: (result["AP"], sum(array.nbytes for array in arrays))

    def from_files(self, folder: Path) -> Callable[[], tuple[float, int]]:
        import detmap

        truth = detmap.read_coco(folder / "ground_truth.json")
        result = detmap.evaluate(truth, detmap.read_coco_results(folder / "detections.json", truth))
        value = dict(result)["AP"]
        return lambda: (value, 0)

    def score_files(self, paths: list[str]) -> list[float]:
        from detmap import batch

        found = {one.entry.path: one["AP"] for one in batch.score(self.truth, paths)}
        return [found[path] for path in paths]

    def bootstrap(self, replicates: int) -> list[float]:
        from detmap import statistics as stats

        result = self.detmap.evaluate(self.truth, self.found)
        return stats.bootstrap(result, replicates, 0).interval()[0].tolist()

    def permute(self, permutations: int) -> list[float]:
        from detmap import statistics as stats

        found = self.found
        moved = found.boxes + np.random.default_rng(5).normal(0, 1, found.boxes.shape) * [1, 1, 0, 0]
        other = self.detmap.Detections.from_arrays(
            image_ids=found.images.values[found.images.codes],
            category_ids=found.categories.values[found.categories.codes],
            boxes=moved,
            scores=found.scores,
        )
        tallies = [self.detmap.evaluate(self.truth, one).tally for one in (found, other)]
        return stats.permute(*tallies, permutations, 0, categories=True).p_values().tolist()


class Vernier:
    """vernier, which takes files whole and has no arrays to hand out."""

    def from_files(self, folder: Path) -> Callable[[], tuple[float, int]]:
        from vernier.instance import Evaluator

        files = [(folder / f"{name}.json").read_bytes() for name in ("ground_truth", "detections")]
        value = Evaluator(parity_mode="strict").evaluate(*files).stats[0]
        return lambda: (value, 0)


class Cocolike:
    """Any of those that look like pycocotools."""

    def __init__(self, package: str) -> None:
        self.package = package

    def load(self, folder: Path, results: str = "detections.npy") -> None:
        if self.package == "hotcoco":
            from hotcoco import COCO, COCOeval
        elif self.package == "ultrafast-pycocotools":
            from ultrafast_pycocotools import COCO, COCOeval
        elif self.package == "faster-coco-eval":
            from faster_coco_eval import COCO
            from faster_coco_eval import COCOeval_faster as COCOeval
        else:
            from pycocotools.coco import COCO
            from pycocotools.cocoeval import COCOeval
        self.evaluator = COCOeval
        self.truth = COCO(str(folder / "ground_truth.json"))
        file = folder / results
        self.found = self.truth.loadRes(np.load(file) if file.suffix == ".npy" else str(file))

    def from_files(self, folder: Path) -> Callable[[], tuple[float, int]]:
        self.load(folder, "detections.json")
        describe = self.run([1, 10, 100])
        self.evaluation.summarize()
        value = describe()[0]
        del self.truth, self.found, self.evaluation
        return lambda: (value, 0)

    def run(self, max_dets: list[int]) -> Callable[[], tuple[float, int]]:
        evaluation = self.evaluation = self.evaluator(self.truth, self.found, "bbox")
        evaluation.params.maxDets = max_dets
        evaluation.evaluate()
        evaluation.accumulate()

        def describe() -> tuple[float, int]:
            arrays = {name: np.asarray(evaluation.eval[name]) for name in ("precision", "scores", "recall")}
            values = arrays["precision"][..., 0, -1]
            return float(np.mean(values[values > -1])), sum(array.nbytes for array in arrays.values())

        return describe

    def score_files(self, paths: list[str]) -> list[float]:
        return [self.score_file(path) for path in paths]

    def score_file(self, path: str) -> float:
        evaluation = self.evaluator(self.truth, self.truth.loadRes(path), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        return float(evaluation.stats[0])


def program_of(package: str) -> Any:
    return Detmap() if package == OURS else Vernier() if package == "vernier" else Cocolike(package)


def memory(name: str) -> int:
    """Bytes of a line of /proc/self/status: VmRSS now, VmHWM at most since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def peak_of(task: Callable[[], Callable[[], tuple[float, int]]]) -> dict[str, float]:
    """Run a task: its seconds, its AP, and the bytes that it adds at its peak (and beyond its result's arrays)."""
    gc.collect()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)  # else it would reuse what loading left behind, unseen
    Path("/proc/self/clear_refs").write_text("5")  # reset the high-water mark
    before = memory("VmRSS")
    start = time.perf_counter()
    describe = task()
    seconds, added = time.perf_counter() - start, memory("VmHWM") - before
    average_precision, arrays = describe()
    return {"seconds": seconds, "AP": average_precision, "added": added, "beyond": added - arrays}


def work(package: str, folder: str) -> None:
    """Answer commands, a line of JSON each: load, run, memory, score_files, bootstrap, permute."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the peers print
    program = program_of(package)
    for line in sys.stdin:
        command, options = json.loads(line)
        answer: dict[str, float] = {}
        start = time.perf_counter()
        if command == "load":
            program.load(Path(folder))
            answer = {"seconds": time.perf_counter() - start}
        elif command == "run":
            describe = program.run(options)
            answer = {"seconds": time.perf_counter() - start, "AP": describe()[0]}
        elif command == "files":
            describe = program.from_files(Path(folder))
            answer = {"seconds": time.perf_counter() - start, "AP": describe()[0]}
        elif command == "memory":
            answer = peak_of(partial(program.run, options))
        elif command in ("score_files", "bootstrap", "permute"):
            answer = peak_of(lambda: partial(lambda values: (values[0], 0), getattr(program, command)(options)))  # noqa: B023
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """A program in a process of its own."""

    def __init__(self, package: str, folder: Path) -> None:
        self.package = package
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", package, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, command: str, options: object = None) -> dict[str, float]:
        self.process.stdin.write(json.dumps([command, options]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.package} ended with exit code {self.process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


# Linux counts what a process was before it became another program: a small one has to start what is measured.
LAUNCHER = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(json.dumps([time.perf_counter() - start, used.ru_maxrss * 1024]))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def main() -> None:
    what, program, folder = sys.argv[1:]
    if what == "--worker":
        work(program, folder)
    elif what == "--whole":
        program_of(program).from_files(Path(folder))
    else:
        sys.exit("run scripts/bench.py")


if __name__ == "__main__":
    main()
