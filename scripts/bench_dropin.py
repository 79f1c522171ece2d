#!/usr/bin/env python3
"""Time and memory of the drop-in and its rivals on lists of dicts in memory: 5,000 images of 100 detections.

    python scripts/bench_dropin.py [ROUNDS]

Every run has a process of its own, warmed up on a small data set; rounds are interleaved. Memory is the most that was
resident beyond what was there before the evaluation, taken in a round of its own, and the most of the whole process.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RIVALS = {
    "detmap": ("detmap.pycocotools.coco", "detmap.pycocotools.cocoeval"),
    "ultrafast-pycocotools": ("ultrafast_pycocotools.coco", "ultrafast_pycocotools.cocoeval"),
    "hotcoco": ("hotcoco", "hotcoco"),
}


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def measure(name: str, watched: bool) -> dict[str, float]:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    large_workloads = importlib.import_module("large_workloads")
    small, big = ((20, 20, 5, 1), (5000, 100, 80, 0))
    coco, cocoeval = (importlib.import_module(module) for module in RIVALS[name])

    def run(dataset: object, results: object) -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            start = time.perf_counter()
            if name == "hotcoco":
                truth = coco.COCO(dataset)
            else:
                truth = coco.COCO()
                truth.dataset = dataset
                truth.createIndex()
            evaluation = cocoeval.COCOeval(truth, truth.loadRes(results), "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
            return time.perf_counter() - start

    run(*large_workloads.to_coco(large_workloads.detector_like(*small)))
    data = large_workloads.to_coco(large_workloads.detector_like(*big))
    before, most, done = resident(), [resident()], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            most[0] = max(most[0], resident())

    watcher = threading.Thread(target=watch)
    if watched:
        watcher.start()
    cpu = time.process_time()
    seconds = run(*data)
    cpu = time.process_time() - cpu
    done.set()
    whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "cpu": cpu, "peak": most[0] - before, "whole": whole}


def main() -> None:
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], sys.argv[2] == "memory")))
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in RIVALS}
    memory = {}
    for number in range(rounds + 1):
        for name in RIVALS:
            what = "time" if number else "memory"
            made = subprocess.run([sys.executable, __file__, name, what], capture_output=True, text=True, check=True)
            if number:
                runs[name].append(json.loads(made.stdout))
            else:
                memory[name] = json.loads(made.stdout)
    for name, own in runs.items():
        wall, cpu = (statistics.median(run[key] for run in own) for key in ("seconds", "cpu"))
        least = min(run["seconds"] for run in own)
        print(
            f"{name:22} median {wall:.3f} s, least {least:.3f} s, processor {cpu:.3f} s; "
            f"peak +{memory[name]['peak']:.0f} MB, whole process {memory[name]['whole']:.0f} MB"
        )


if __name__ == "__main__":
    main()
