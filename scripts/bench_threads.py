"""Where detmap uses several threads, by stage: bench.py --threads 1,2,4 measures it, or computes it from blocks.

A stage is serial work and blocks, which threads share. The work of each stage is split as for a number of threads, but one
thread runs the blocks one after the other, and the processor time of each is measured. Blocks are assigned in order to the
thread that is free first; a stage takes as long as the thread that ends last, and its serial work. That excludes costs that
threads cause each other (memory, Python's lock), and needs neither a quiet machine nor many cores. Where there are as many
processors as threads, seconds of the clock are measured as well.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_programs import ROOT

STAGES = ("read the ground truth", "read the detections", "match", "metrics")
KINDS = {"files500k": "bbox", "files2m": "bbox", "masks": "segm", "keypoints": "keypoints", "boundary": "boundary"}


def stages(folder: Path, kind: str) -> list[Callable[[], None]]:
    """What is measured: each reads or scores what those before it have left."""
    import detmap

    kept: dict[str, Any] = {}

    def read_truth() -> None:
        kept["truth"] = detmap.read_coco(folder / "ground_truth.json", iou_type=kind)

    def read_found() -> None:
        kept["found"] = detmap.read_coco_results(folder / "detections.json", kept["truth"], iou_type=kind)

    def match() -> None:
        kept["tally"] = detmap.match(kept["truth"], kept.pop("found"), iou_type=kind)

    def metrics() -> None:
        _ = detmap.DetectionResult(kept.pop("tally"))["AP"]

    return [read_truth, read_found, match, metrics]


def longest(costs: list[float], threads: int) -> float:
    """Return when the last of some threads ends that take tasks of these costs in order."""
    ends = [0.0] * threads
    for cost in costs:
        first = ends.index(min(ends))
        ends[first] += cost
    return max(ends)


def computed(folder: Path, kind: str, threads: int) -> list[float]:
    """Return the seconds of each stage with a number of threads, by the processor time of its blocks."""
    from detmap.system import parallel

    saved, inside = [0.0], [False]

    def run(task: Any, blocks: Any, limit: int | None = None, *, apart: bool = False) -> list[Any]:
        results, costs, nested = [], [], inside[0]
        inside[0] = True
        for begin, end in blocks:
            before = time.thread_time()
            results.append(task(begin, end))
            costs.append(time.thread_time() - before)
        inside[0] = nested
        if not nested:  # a call from within a task stays in its thread
            saved[0] += sum(costs) - longest(costs, max(1, min(parallel.thread_count(limit), len(blocks))))
        return results

    parallel.run, parallel.cores = run, lambda: threads  # type: ignore[assignment]
    found = []
    for stage in stages(folder, kind):
        saved[0], before = 0.0, time.thread_time()
        stage()
        found.append(time.thread_time() - before - saved[0])
    return found


def measured(folder: Path, kind: str, threads: int) -> list[float]:
    """Return the seconds of each stage by the clock, on so many processors."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    found = []
    for stage in stages(folder, kind):
        before = time.perf_counter()
        stage()
        found.append(time.perf_counter() - before)
    return found


def rows(folder: Path, kind: str, threads: list[int], repeats: int) -> list[list[str]]:
    """Return the rows of a table: stage, then for each number of threads seconds as computed, and as measured."""
    taken: dict[tuple[str, int], list[list[float]]] = {}
    available = len(os.sched_getaffinity(0))
    for _ in range(repeats):
        for count in threads:
            for how in ("computed", "measured") if count <= available else ("computed",):
                words = [sys.executable, __file__, how, str(folder), kind, str(count)]
                answer = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
                taken.setdefault((how, count), []).append(json.loads(answer))
    made = {way: [statistics.median(one) for one in zip(*runs, strict=True)] for way, runs in taken.items()}
    for seconds in made.values():
        seconds.append(sum(seconds))
    table = []
    for k, stage in enumerate((*STAGES, "all")):
        cells = []
        for count in threads:
            text, ratio = milliseconds(made["computed", count][k]), made["computed", threads[0]][k]
            text += "" if count == threads[0] else f" ({ratio / made['computed', count][k]:.1f}×)"
            cells.append(
                text + (f", {milliseconds(made['measured', count][k])}" if ("measured", count) in made else "")
            )
        table.append([stage, *cells])
    return table


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def report(folder: Path, names: list[str], threads: list[int], quick: bool) -> str:
    """Return the table of some workloads as Markdown."""
    import bench_shapes
    from bench_workloads import write_files

    lines = [["", *(f"{count} thread{'s' * (count > 1)}" for count in threads)], ["---", *["---:"] * len(threads)]]
    for name in names:
        if KINDS[name] == "bbox":
            place, title = write_files(folder / name, 20_000 if name == "files2m" else 5000, quick)
        else:
            place = folder / name
            bench_shapes.write_workload(name, place, quick)
            title = bench_shapes.title(place)
        lines += [[f"**{title}**", *[""] * len(threads)], *rows(place, KINDS[name], threads, 1 if quick else 5)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    way, path, shape, number = sys.argv[1:]
    call = {"computed": computed, "measured": measured}[way]
    call(Path(path), shape, int(number))  # afterwards all that is needed is imported
    print(json.dumps(call(Path(path), shape, int(number))))
