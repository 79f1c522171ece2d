#!/usr/bin/env python
"""Compares this checkout with another commit: is anything slower, or larger in memory?

Both run the same tasks on the same data, each in a process of its own, and take turns (A B, B A, A B, …), so that what
disturbs the machine disturbs both. A row shows the median of the paired ratios, here / there, and its 95 % interval, which
assumes nothing about the distribution (order statistics). A row fails where the lower bound is above 1.03; for memory,
where besides more than 3 MB are added. Memory is measured in processes of their own, whose large arrays always come from
the system: by default the C library moves them into its heap after a while, and how much of that is free already when a
run begins is chance, a quarter more or less.

    scripts/bench.py --against COMMIT                       every task, 15 pairs
    scripts/bench.py --against COMMIT --only coco files     those whose name begins so
    scripts/bench.py --against COMMIT --samples FILE.json   keep the raw samples
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _trees import ROOT, checkout, environment

#: What a row may be slower, and the bytes that it may add, before it fails.
SLOWER, LARGER = 1.03, 3_000_000
UNCOMMITTED = "this checkout"
#: Arrays of more bytes than this come from the system where memory is measured, in so many runs.
FROM_SYSTEM, MEMORY_RUNS = 1 << 17, 7

Task = Callable[[], object]

# ---------------------------------------------------------------------------------------- tasks, inside their processes


def tables(folder: Path) -> tuple[Any, Any]:
    """Both tables of a workload that `bench_workloads.write_case` has written."""
    import detmap

    rows = np.load(folder / "detections.npy")
    found = detmap.Detections.from_arrays(
        image_ids=rows[:, 0].astype(np.int64),
        category_ids=rows[:, 6].astype(np.int64),
        boxes=rows[:, 1:5],
        scores=rows[:, 5],
    )
    return detmap.read_coco(folder / "ground_truth.json"), found


def in_memory(folder: Path, max_dets: list[int]) -> Task:
    import detmap

    truth, found = tables(folder)
    return lambda: detmap.evaluate(truth, found, max_dets=max_dets)["AP"]


def bootstrap(folder: Path) -> Task:
    import detmap
    from detmap import statistics

    result = detmap.evaluate(*tables(folder))
    return lambda: len(statistics.bootstrap(result, 1000, 0).interval())


def permutations(folder: Path) -> Task:
    import detmap
    from detmap import statistics

    truth, found = tables(folder)
    order = np.random.default_rng(5).permutation(found.scores.size)  # a second model: the same boxes, other scores
    other = detmap.Detections.from_arrays(
        image_ids=found.images.values[found.images.codes],
        category_ids=found.categories.values[found.categories.codes],
        boxes=found.boxes,
        scores=(found.scores + found.scores[order]) / 2,
    )
    one, two = (detmap.evaluate(truth, made).tally for made in (found, other))
    return lambda: len(statistics.permute(one, two, 5000, 0, categories=True).p_values())


def from_files(folder: Path) -> Task:
    import detmap

    def run() -> float:
        truth = detmap.read_coco(folder / "ground_truth.json")
        return float(detmap.evaluate(truth, detmap.read_coco_results(folder / "detections.json", truth))["AP"])

    return run


def batch(folder: Path) -> Task:
    import detmap
    from detmap import batch

    truth, paths = detmap.read_coco(folder / "ground_truth.json"), sorted(map(str, folder.glob("[0-9]*.json")))
    return lambda: sorted(one["AP"] for one in batch.score(truth, paths))


def dropin(folder: Path) -> Task:
    import contextlib
    import io

    from detmap.pycocotools.coco import COCO
    from detmap.pycocotools.cocoeval import COCOeval

    dataset, results = (json.loads((folder / f"{name}.json").read_text()) for name in ("ground_truth", "detections"))

    def run() -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            truth = COCO()
            truth.dataset = dataset
            truth.createIndex()
            evaluation = COCOeval(truth, truth.loadRes([dict(one) for one in results]), "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        return float(evaluation.stats[0])

    return run


def evaluator(folder: Path) -> Task:
    """A training loop's evaluator: an update per image, then the metrics."""
    import detmap

    truth, found = tables(folder)
    corners = [np.concatenate([b[:, :2], b[:, :2] + b[:, 2:]], axis=1) for b in (truth.boxes, found.boxes)]
    updates = []
    for image in range(len(truth.images.values)):
        own, objects = (np.flatnonzero(table.images.codes == image) for table in (found, truth))
        prediction = {
            "boxes": corners[1][own],
            "scores": found.scores[own],
            "labels": found.categories.values[found.categories.codes[own]],
        }
        target = {
            "boxes": corners[0][objects],
            "labels": truth.categories.values[truth.categories.codes[objects]],
        }
        updates.append((prediction, target))

    def run() -> float:
        one = detmap.Evaluator()
        for i, (prediction, target) in enumerate(updates):
            one.update([prediction], [target], image_ids=[i])
        return float(one.compute()["AP"])

    return run


def ranking(folder: Path, name: str, case: int) -> Task:
    import bench_retrieval

    ours = getattr(bench_retrieval, name)()[case].ours

    def run() -> object:
        value = ours()
        return dict(value) if isinstance(value, dict) or hasattr(value, "keys") else value

    return run


# ------------------------------------------------------------------------------------------------- tasks, as a person sees


def case(make: Callable[[], dict[str, np.ndarray]], folder: Path) -> None:
    from bench_workloads import write_case

    write_case(folder, make())


def files(images: int, folder: Path) -> None:
    from bench_workloads import write_files

    write_files(folder, images, False)


def many(folder: Path) -> None:
    from bench_workloads import detector, write_batch

    write_batch(folder, detector(5000, 100, 80, False), 20)


def nothing(folder: Path) -> None:
    folder.mkdir()


@dataclass(frozen=True)
class Row:
    """What is compared: `prepare` writes the data; `load` is called in a warm process, or `command` is a process each."""

    prepare: Callable[[Path], None] = nothing
    load: Callable[[Path], Task] | None = None
    command: tuple[str, ...] = ()
    cold: bool = False
    pairs: int | None = None


def detector_case(images: int, categories: int) -> Callable[[Path], None]:
    from bench_workloads import detector

    return partial(case, partial(detector, images, 100, categories, False))


def dense_case(folder: Path) -> None:
    from bench_workloads import dense

    case(partial(dense, False), folder)


FIXTURE = tuple(str(ROOT / "fixtures" / "coco" / f"{name}.json") for name in ("ground_truth", "detections"))
GIVEN = ("{folder}/ground_truth.json", "{folder}/detections.json")


def rows() -> dict[str, Row]:
    return {
        "coco80": Row(detector_case(5000, 80), partial(in_memory, max_dets=[1, 10, 100])),
        "coco365": Row(detector_case(20_000, 365), partial(in_memory, max_dets=[1, 10, 100])),
        "dense": Row(dense_case, partial(in_memory, max_dets=[1, 10, 10_000])),
        "files500k": Row(partial(files, 5000), from_files),
        "files500k whole": Row(partial(files, 5000), command=("eval", *GIVEN)),
        "files2m": Row(partial(files, 20_000), from_files),
        "files2m whole": Row(partial(files, 20_000), command=("eval", *GIVEN)),
        "batch": Row(many, batch, pairs=9),
        "bootstrap": Row(detector_case(5000, 80), bootstrap),
        "permutations": Row(detector_case(5000, 80), permutations, pairs=5),
        "dropin": Row(partial(files, 5000), dropin),
        "evaluator": Row(detector_case(1000, 80), evaluator),
        "distances": Row(load=partial(ranking, name="distances", case=0)),
        "features": Row(load=partial(ranking, name="features", case=0)),
        "runs": Row(load=partial(ranking, name="runs", case=0)),
        "runs dicts": Row(load=partial(ranking, name="runs", case=1)),
        "trec files": Row(load=partial(ranking, name="files", case=0)),
        "codes 100 top": Row(load=partial(ranking, name="codes", case=0)),
        "codes 100": Row(load=partial(ranking, name="codes", case=1)),
        "codes 10": Row(load=partial(ranking, name="codes", case=3)),
        "samples": Row(load=partial(ranking, name="samples", case=0)),
        "warm": Row(command=("eval", *FIXTURE)),
        "cold": Row(command=("eval", *FIXTURE), cold=True, pairs=5),
    }


# ---------------------------------------------------------------------------------------------------------------- workers


def work(name: str, folder: str) -> None:
    """Answer every line of the input with seconds, bytes added and the value of one run."""
    from bench_programs import peak_of

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    load = rows()[name].load
    assert load is not None
    task = load(Path(folder))
    for _ in sys.stdin:
        values: list[object] = []

        def run(values: list[object] = values) -> Callable[[], tuple[float, int]]:
            values.append(task())
            return lambda: (0.0, 0)

        answer = peak_of(run)
        print(json.dumps([answer["seconds"], answer["added"], repr(values[0])]), file=answers, flush=True)


class Lost(Exception):
    """A process has ended before it answered: the commit may not know what the row does."""


class Warm:
    """A process that repeats a task; `steady` where it measures memory."""

    def __init__(self, tree: Path, name: str, folder: Path, steady: bool = False) -> None:
        command = [sys.executable, str(ROOT / "scripts" / "bench_commits.py"), "--worker", name, str(folder)]
        given = environment(tree) | ({"MALLOC_MMAP_THRESHOLD_": str(FROM_SYSTEM)} if steady else {})
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=given)

    def run(self) -> tuple[float, float, str]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise Lost(f"exit code {self.process.wait()}")
        seconds, added, value = json.loads(line)
        return seconds, added, value

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


class Whole:
    """A command, as a process of its own every time; with `cold`, from an empty cache of kernels."""

    def __init__(self, tree: Path, command: tuple[str, ...], folder: Path, cold: bool) -> None:
        from bench_programs import LAUNCHER

        words = [word.format(folder=folder) for word in command]
        self.command = [sys.executable, "-c", LAUNCHER, sys.executable, "-m", "detmap", *words]
        self.tree, self.cold = tree, cold

    def run(self) -> tuple[float, float, str]:
        with tempfile.TemporaryDirectory() as empty:
            given = environment(self.tree)
            if self.cold:
                given["NUMBA_CACHE_DIR"] = empty
            done = subprocess.run(self.command, cwd=self.tree, env=given, stdout=subprocess.PIPE, check=True)
        seconds, peak = json.loads(done.stdout)
        return seconds, peak, ""

    def close(self) -> None:
        pass


# -------------------------------------------------------------------------------------------------------------- comparing


def interval(values: list[float]) -> tuple[float, float, float]:
    """The median and a 95 % interval of it, from the order statistics; of fewer than six values the extremes."""
    ordered, n = sorted(values), len(values)
    below, rank = 0.0, 0  # P(at most `rank` of n values lie below the median)
    while rank < n // 2 and (below := below + math.comb(n, rank) / 2**n) <= 0.025:
        rank += 1
    rank = max(rank - 1, 0)
    return float(np.median(ordered)), ordered[rank], ordered[n - 1 - rank]


@dataclass
class Compared:
    """The samples of one row: seconds and bytes, here and there, and whether it fails."""

    name: str
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"here": [], "there": []})
    bytes: dict[str, list[float]] = field(default_factory=lambda: {"here": [], "there": []})

    def ratios(self, what: dict[str, list[float]]) -> list[float]:
        return [here / max(there, 1e-9) for here, there in zip(what["here"], what["there"], strict=True)]

    def failures(self) -> list[str]:
        found = []
        if interval(self.ratios(self.seconds))[1] > SLOWER:
            found.append("slower")
        more = np.median(self.bytes["here"]) - np.median(self.bytes["there"])
        if more > LARGER and interval(self.ratios(self.bytes))[1] > SLOWER:
            found.append("larger")
        return found

    def line(self) -> str:
        cells = [self.name]
        for what, unit in ((self.seconds, 1e3), (self.bytes, 1e-6)):
            middle, low, high = interval(self.ratios(what))
            here, there = (np.median(what[side]) * unit for side in ("here", "there"))
            cells += [f"{there:.4g}", f"{here:.4g}", f"{middle:.3f}", f"{low:.3f} … {high:.3f}"]
        return "| " + " | ".join([*cells, ", ".join(self.failures()) or "ok"]) + " |"


def turns(programs: dict[str, Warm | Whole], before: int, count: int) -> Iterator[tuple[str, float, float, str]]:
    """Run every program so many times, in turn, and yield its side, seconds, bytes and value.

    The first runs, `before` of each program, compile and warm; they do not count.
    """
    try:
        for turn in range(-before, count):
            for side in sorted(programs, reverse=bool(turn % 2)):
                seconds, added, value = programs[side].run()
                if turn >= 0:
                    yield side, seconds, added, value
    finally:
        for program in programs.values():
            program.close()


def compare(name: str, row: Row, trees: dict[str, Path], folder: Path, pairs: int) -> Compared:
    """Run a row's task in turn here and there."""
    compared, values = Compared(name), set()
    count = row.pairs or pairs
    programs: dict[str, Warm | Whole]
    if row.load:
        programs = {side: Warm(tree, name, folder) for side, tree in trees.items()}
    else:
        programs = {side: Whole(tree, row.command, folder, row.cold) for side, tree in trees.items()}
    for side, seconds, added, value in turns(programs, 2 if row.load else 1, count):
        compared.seconds[side].append(seconds)
        values.add(value)
        if not row.load:
            compared.bytes[side].append(added)
    if row.load:
        programs = {side: Warm(tree, name, folder, steady=True) for side, tree in trees.items()}
        for side, _, added, value in turns(programs, 2, min(count, MEMORY_RUNS)):
            compared.bytes[side].append(added)
            values.add(value)
    if len(values) > 1:
        print(f"  {name}: the values are not the same: {values}", file=sys.stderr)
    return compared


def against(commit: str, only: list[str] | None, pairs: int, samples: str | None) -> int:
    """Compare every chosen row and print a table; return 1 where one fails."""
    chosen = {name: row for name, row in rows().items() if not only or any(name.startswith(one) for one in only)}
    print("| row | ms there | ms here | ratio | 95 % | MB there | MB here | ratio | 95 % | |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    done = []
    with checkout(commit) as there, tempfile.TemporaryDirectory() as made:
        prepared: dict[str, Path] = {}
        for name, row in chosen.items():
            key = name.split()[0] if row.prepare is not nothing else "nothing"
            if key not in prepared:
                prepared[key] = Path(made) / key
                row.prepare(prepared[key])
            start = time.perf_counter()
            try:
                done.append(compare(name, row, {"here": ROOT, "there": there}, prepared[key], pairs))
            except Lost as lost:
                print(f"| {name} | does not run at both commits: {lost} |" + " |" * 8, flush=True)
                continue
            print(done[-1].line(), flush=True)
            print(f"  {name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
            if samples:
                raw = {one.name: {"seconds": one.seconds, "bytes": one.bytes} for one in done}
                Path(samples).write_text(json.dumps(raw, indent=1))
    failed = [one.name for one in done if one.failures()]
    print(
        f"\n{len(done)} rows against {commit}, {pairs} pairs: "
        + (f"FAILED: {', '.join(failed)}" if failed else "none fails")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]
    if sys.argv[1:2] != ["--worker"]:
        sys.exit("run scripts/bench.py --against COMMIT")
    work(*sys.argv[2:])
