#!/usr/bin/env python
"""Measures detmap against the peers that are installed (extra ``bench``): time, memory, and that all agree on AP.

Every program runs in a process of its own and they take turns (A B C A B C …), so that what disturbs the machine disturbs
all; medians are shown, and ratios to detmap. ``ROWS`` says what is measured: a later row is one more entry. The programs
stand in bench_programs.py, the workloads in bench_workloads.py.

    scripts/bench.py                  every row, but for peers that take minutes
    scripts/bench.py --quick          small inputs: does it run at all
    scripts/bench.py --only dense     the rows whose name begins so; or: scripts/bench.py masks keypoints boundary
    scripts/bench.py --all            the slow peers too, once each
    scripts/bench.py --write NAME …   put the table of some rows, or of all, into docs/benchmarks.md
    scripts/bench.py --threads 1,2,4  where it uses several threads, by stage (bench_threads.py): files500k masks keypoints
    scripts/bench.py --against COMMIT detmap against itself: is any row slower than in that commit (bench_commits.py)

detmap runs with kernels compiled ahead of time, as users of a wheel have them: scripts/build-kernels makes them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import bench_chart
import bench_programs
import numpy as np
from bench_programs import FAST, LAUNCHER, OURS, PEERS, ROOT, SLOW, Worker
from bench_workloads import dense, detector, write_batch, write_case, write_files

from detmap.installation import install_command

# ------------------------------------------------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class Options:
    quick: bool
    slow: bool
    peers: tuple[str, ...]
    folder: Path


@dataclass
class Line:
    """A line of the table: a value for each program that was measured."""

    title: str
    values: dict[str, float]
    unit: str  # a key of UNITS
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Row:
    """Something to measure: `measure(options)` returns the lines of the table."""

    name: str
    measure: Callable[[Options], list[Line]]


UNITS: dict[str, Callable[[float], str]] = {
    "seconds": lambda v: f"{v:.2f} s" if v >= 1 else f"{1000 * v:.3g} ms" if v < 0.1 else f"{1000 * v:.0f} ms",
    "bytes": lambda v: f"{v / 1e9:.1f} GB" if v >= 1e9 else f"{v / 1e6:.0f} MB" if v >= 1e6 else f"{v / 1e3:.0f} kB",
}


def in_memory(
    title: str,
    make: Callable[[bool], dict[str, np.ndarray]],
    options: Options,
    *,
    max_dets: list[int],
    repeats: int,
    once: tuple[str, ...] = (),
    slow: tuple[str, ...] = SLOW,
) -> list[Line]:
    """Evaluate and accumulate what is loaded already: time, memory added, and memory per detection.

    Peers in `once` run once and by themselves; those in `slow` only with ``--all``.
    """
    folder = options.folder / title.replace("/", " ")
    detections = write_case(folder, make(options.quick))
    turns = [[p for p in (OURS, *options.peers) if p not in (*once, *slow)]]
    turns += [[p] for p in options.peers if p in once or (p in slow and options.slow)]
    seconds: dict[str, float] = {}
    answers: dict[str, dict[str, float]] = {}
    for programs in turns:
        workers = [Worker(program, folder) for program in programs]
        for worker in workers:
            print(f"  {worker.package} loads", file=sys.stderr)
            worker.ask("load")
        times: dict[str, list[float]] = {program: [] for program in programs}
        if OURS in programs:
            for worker in workers:
                worker.ask("run", max_dets)  # kernels, pages and caches warm up
            for _ in range(2 if options.quick else repeats):
                for worker in workers:
                    times[worker.package].append(worker.ask("run", max_dets)["seconds"])
        for worker in workers:
            answer = answers[worker.package] = worker.ask("memory", max_dets)
            times[worker.package] = times[worker.package] or [answer["seconds"]]
            worker.close()
        for program, values in times.items():
            seconds[program] = statistics.median(values)
            spread = f"{min(values):.3f} … {max(values):.3f} s of {len(values)}"
            print(f"  {program}: {seconds[program]:.3f} s ({spread}), {answers[program]}", file=sys.stderr)
    values = [answer["AP"] for answer in answers.values()]
    disagreement = max(values) - min(values)
    note = f"AP {answers[OURS]['AP']:.6f}, all agree within {disagreement:.1g}"
    if disagreement > 1e-6:
        note = f"AP DIFFERS by {disagreement:.2g}: " + ", ".join(f"{p} {a['AP']:.6f}" for p, a in answers.items())
    per_detection = answers[OURS]["beyond"] / detections
    return [
        Line(title, seconds, "seconds", [note]),
        Line(
            "… memory added",
            {program: answer["added"] for program, answer in answers.items()},
            "bytes",
            [f"{detections:,} detections; detmap adds {per_detection:.0f} bytes each beyond the result's arrays"],
        ),
    ]


def from_files(images: int, options: Options, *, repeats: int) -> list[Line]:
    """From files to the twelve numbers, in warm processes; then as whole processes, whose peak memory is all there is."""
    folder, title = write_files(options.folder / f"files{images}", images, options.quick)
    programs = [OURS, *(p for p in (*FAST, "vernier") if p == "vernier" or p in options.peers)]
    programs = [p for p in programs if p == OURS or importlib.util.find_spec(p.replace("-", "_"))]
    workers = [Worker(program, folder) for program in programs]
    answers: dict[str, list[dict[str, float]]] = {program: [] for program in programs}
    for turn in range(1 + (2 if options.quick else repeats)):
        for worker in workers:
            answer = worker.ask("files")
            if turn:
                answers[worker.package].append(answer)
    for worker in workers:
        worker.close()
    seconds = {p: statistics.median(a["seconds"] for a in rows) for p, rows in answers.items()}
    values = [rows[0]["AP"] for rows in answers.values()]
    note = f"AP {values[0]:.6f}, all agree within {max(values) - min(values):.1g}"

    whole: dict[str, list[tuple[float, float]]] = {program: [] for program in programs}
    for turn in range(1 + (2 if options.quick else repeats)):
        for program in programs:
            if program == OURS:
                command = ["-m", "detmap", "eval", str(folder / "ground_truth.json"), str(folder / "detections.json")]
            else:
                command = [bench_programs.__file__, "--whole", program, str(folder)]
            launch = [sys.executable, "-c", LAUNCHER, sys.executable, *command]
            elapsed, peak = json.loads(subprocess.run(launch, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
            if turn:
                whole[program].append((elapsed, peak))
    for program in programs:
        print(f"  {program}: {seconds[program]:.3f} s, whole {whole[program]}", file=sys.stderr)
    return [
        Line(f"{title}: from files to the numbers", seconds, "seconds", [note]),
        Line("… a whole process", {p: statistics.median(t for t, _ in rows) for p, rows in whole.items()}, "seconds"),
        Line("… its peak memory", {p: statistics.median(m for _, m in rows) for p, rows in whole.items()}, "bytes"),
    ]


def growth(options: Options) -> list[Line]:
    """`detmap eval` as a process, with ten times the images and detections from line to line."""
    lines = []
    for images in (100, 1000) if options.quick else (100, 1000, 10_000, 100_000):
        folder, title = write_files(options.folder / f"growth{images}", images, False)
        command = ["-m", "detmap", "eval", str(folder / "ground_truth.json"), str(folder / "detections.json")]
        launch = [sys.executable, "-c", LAUNCHER, sys.executable, *command]
        runs = [json.loads(subprocess.check_output(launch, cwd=ROOT)) for _ in range(3 if images > 10_000 else 7)]
        print(f"  {title}: {runs}", file=sys.stderr)
        elapsed, peak = map(statistics.median, zip(*runs, strict=True))
        lines += [
            Line(f"`detmap eval`, {title}", {OURS: elapsed}, "seconds"),
            Line("… its peak memory", {OURS: peak}, "bytes"),
        ]
    return lines


def fixture(title: str, options: Options, *, empty_cache: bool, repeats: int) -> list[Line]:
    """``detmap eval`` on the COCO fixture, from the shell's point of view."""
    command = [sys.executable, "-m", "detmap", "eval"]
    command += [f"fixtures/coco/{name}.json" for name in ("ground_truth", "detections")]
    times = []
    with tempfile.TemporaryDirectory() as warm:
        for turn in range(1 + (1 if options.quick else repeats)):
            with tempfile.TemporaryDirectory() as cold:
                environment = {**os.environ, "NUMBA_CACHE_DIR": cold if empty_cache else warm, "DETMAP_KERNELS": "jit"}
                start = time.perf_counter()
                subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
                if turn or options.quick:  # the first fills the caches of files, and of kernels where they are kept
                    times.append(time.perf_counter() - start)
    print(f"  {[round(value, 2) for value in times]}", file=sys.stderr)
    return [Line(title, {OURS: statistics.median(times)}, "seconds")]


def many_files(title: str, files: int, options: Options) -> list[Line]:
    """Read and score files one after the other against ground truth that is read once: `detmap.batch`, loops over peers."""
    folder = options.folder / "batch"
    paths = write_batch(folder, detector(5000, 100, 80, options.quick), 3 if options.quick else files)
    programs = [p for p in (OURS, *options.peers) if p in (OURS, *FAST)]
    workers = [Worker(program, folder) for program in programs]
    for worker in workers:
        worker.ask("load")
        worker.ask("score_files", paths[:1])
    answers: dict[str, list[dict[str, float]]] = {program: [] for program in programs}
    for _ in range(1 if options.quick else 3):
        for worker in workers:
            answers[worker.package].append(worker.ask("score_files", paths))
            print(f"  {worker.package}: {answers[worker.package][-1]}", file=sys.stderr)
    for worker in workers:
        worker.close()
    seconds = {program: statistics.median(a["seconds"] for a in given) for program, given in answers.items()}
    added = {program: statistics.median(a["added"] for a in given) for program, given in answers.items()}
    return [Line(title, seconds, "seconds"), Line("… memory added", added, "bytes")]


def leaderboards(counts: tuple[int, ...], options: Options) -> list[Line]:
    """`detmap batch` of many files of 5,000 detections, as a process: a leaderboard, and one with nothing left to do.

    Beyond 1,000 files the same ones come again under other names; 10,000 are tried with ``--all``.
    """
    folder, counts = options.folder / "leaderboards", (10,) if options.quick else counts
    counts = counts if options.slow else tuple(count for count in counts if count < 10_000)
    paths = write_batch(folder, detector(50, 100, 80, False), min(max(counts), 1000))
    for i in range(len(paths), max(counts)):
        paths.append(str(folder / f"{i}.json"))
        os.link(paths[i % 1000], paths[i])
    lines = []
    for count in counts:
        (folder / "models.csv").write_text("\n".join(["path", *paths[:count]]) + "\n")
        command = ["batch", str(folder / "ground_truth.json"), str(folder / "models.csv"), "--quiet"]
        command += ["--out", str(folder / f"board{count}")]
        for what, more in ((f"`detmap batch`, {count:,} files × 5,000 detections", []), ("… `--resume`", ["--resume"])):
            runs = []
            for _ in range(1 if options.quick or count > 1000 else 3):
                launch = [sys.executable, "-c", LAUNCHER, sys.executable, "-m", "detmap", *command, *more]
                before = os.times()
                said = subprocess.run(launch, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1]
                after = os.times()
                processor = sum(after[2:4]) - sum(before[2:4])
                runs.append((processor, *json.loads(said)))
            print(f"  {count} {more}: {runs}", file=sys.stderr)
            processor, elapsed, peak = map(statistics.median, zip(*runs, strict=True))
            lines += [
                Line(
                    what, {OURS: elapsed}, "seconds", [f"{1000 * processor / count:.1f} ms of processor time per file"]
                ),
                Line("… its peak memory", {OURS: peak}, "bytes"),
            ]
    return lines


def resampled(title: str, command: str, replicates: int, options: Options) -> list[Line]:
    """Replicates or permutations of metrics and of every category, of what is loaded already."""
    folder = options.folder / "bootstrap"
    write_case(folder, detector(5000, 100, 80, options.quick))
    worker = Worker(OURS, folder)
    worker.ask("load")
    worker.ask(command, 200)
    times = [worker.ask(command, replicates)["seconds"] for _ in range(1 if options.quick else 3)]
    worker.close()
    print(f"  {[round(value, 2) for value in times]}", file=sys.stderr)
    return [Line(title, {OURS: statistics.median(times)}, "seconds")]


def rankings(name: str, options: Options) -> list[Line]:
    """Retrieval, against what the title names; see bench_retrieval.py, which can be run by itself."""
    import bench_retrieval

    if options.quick:
        return []
    rows = [bench_retrieval.interleaved(case) for case in getattr(bench_retrieval, name)()]
    return [
        Line(row["benchmark"], {OURS: row["ours (s)"], "the peer of the title": row["peer (s)"]}, "seconds")
        for row in rows
    ]


def explanations(options: Options) -> list[Line]:
    """Why numbers differ; see bench_explain.py, which can be run by itself. No other program does this."""
    import bench_explain

    return [
        line
        for title, row in bench_explain.rows(options.quick).items()
        for line in (
            Line(title, {OURS: row.seconds}, "seconds"),
            Line("… its processor time", {OURS: row.processor}, "seconds"),
            Line("… memory added", {OURS: row.added}, "bytes"),
        )
    ]


def diagnoses(options: Options) -> list[Line]:
    """What goes wrong, and the report; see bench_diagnosis.py, which can be run by itself, also against tidecv."""
    import bench_diagnosis

    return [Line(title, {OURS: seconds}, "seconds") for title, seconds in bench_diagnosis.rows(options.quick).items()]


def shapes(kind: str, options: Options) -> list[Line]:
    """Masks, poses, boundaries from files; see bench_shapes.py, which describes the workloads and can be run by itself."""
    import bench_shapes

    found = bench_shapes.rows(kind, options.folder, options.quick)
    values = [one["AP"] for one in found.values()]
    note = f"AP {values[0]:.6f}, all agree within {max(values) - min(values):.1g}"
    if max(values) - min(values) > 1e-6:
        note = f"AP DIFFERS by {max(values) - min(values):.2g}"
    return [
        Line(
            f"{bench_shapes.title(options.folder / kind)}: from files to the numbers",
            {p: one["seconds"] for p, one in found.items()},
            "seconds",
            [note],
        ),
        Line("… peak memory above numpy", {p: one["memory"] for p, one in found.items()}, "bytes"),
    ]


#: What is measured, in the order of the table.
ROWS = [
    Row(
        "coco80",
        partial(
            in_memory,
            "5,000 images × 100 detections × 80 categories",
            partial(detector, 5000, 100, 80),
            max_dets=[1, 10, 100],
            repeats=9,
            once=SLOW,
            slow=(),
        ),
    ),
    Row(
        "coco365",
        partial(
            in_memory,
            "20,000 images × 100 detections × 365 categories",
            partial(detector, 20_000, 100, 365),
            max_dets=[1, 10, 100],
            repeats=7,
        ),
    ),
    Row(
        "dense",
        partial(
            in_memory,
            "40 crowded images: 3,000 objects, 5,000 detections each",
            dense,
            max_dets=[1, 10, 10_000],
            repeats=7,
            once=FAST,
        ),
    ),
    Row("files500k", partial(from_files, 5000, repeats=7)),
    Row("files2m", partial(from_files, 20_000, repeats=5)),
    *(Row(kind, partial(shapes, kind)) for kind in ("masks", "keypoints", "boundary")),
    *(Row(name, partial(rankings, name)) for name in ("distances", "features", "runs", "files", "codes", "samples")),
    Row("batch", partial(many_files, "20 files × 500,000 detections, one ground truth", 20)),
    Row("growth", growth),
    Row("leaderboards", partial(leaderboards, (10, 100, 1000, 10_000))),
    Row("bootstrap", partial(resampled, "1,000 bootstrap replicates over 500,000 detections", "bootstrap", 1000)),
    Row("permutations", partial(resampled, "5,000 permutations of two models with 500,000 each", "permute", 5000)),
    Row("explain", explanations),
    Row("diagnose", diagnoses),
    Row("cold", partial(fixture, "`detmap eval` on the fixture, first run ever", empty_cache=True, repeats=3)),
    Row("warm", partial(fixture, "`detmap eval` on the fixture, any later run", empty_cache=False, repeats=7)),
]

# --------------------------------------------------------------------------------------------------------------- telling


def table(lines: list[Line], peers: tuple[str, ...]) -> str:
    """The lines as Markdown, with the machine and the versions below."""
    measured = list(dict.fromkeys(program for line in lines for program in line.values))
    programs = [OURS, *(p for p in (*peers, *measured) if p in measured and p != OURS)]
    programs = list(dict.fromkeys(programs))
    rows = [["", *programs], ["---", *["---:"] * len(programs)]]
    for line in lines:
        cells = [line.title]
        for program in programs:
            if program not in line.values:
                cells.append("")
                continue
            text, ratio = UNITS[line.unit](line.values[program]), line.values[program] / line.values[OURS]
            cells.append(
                text if program == OURS else f"{text} ({ratio:.1f}×)" if ratio < 100 else f"{text} ({ratio:,.0f}×)"
            )
        rows.append(cells)
    versions = ", ".join(f"{name} {version(name)}" for name in (*programs[1:], "numpy", "numba") if version(name))
    machine = f"{processor()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, {versions}"
    return "\n".join(["| " + " | ".join(row) + " |" for row in rows] + ["", f"Measured on {machine}."])


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def write(text: str, path: Path = ROOT / "docs/benchmarks.md", name: str = "bench") -> None:
    """Replace what stands between the two markers."""
    before, begin, rest = path.read_text().partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not (begin and end):
        raise SystemExit(f"{path} has no <!-- {name} --> … <!-- /{name} -->")
    path.write_text(f"{before}{begin}{text}\n{end}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("rows", nargs="*", metavar="NAME", help="as --only")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="small inputs, few runs")
    sizes.add_argument("--write", action="store_true", help="put the table, of these rows, into docs/benchmarks.md")
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"of {', '.join(row.name for row in ROWS)}")
    parser.add_argument("--all", action="store_true", help="the peers that take minutes too")
    parser.add_argument("--threads", metavar="LIST", help="numbers of threads, such as 1,2,4: seconds by stage")
    parser.add_argument("--against", metavar="COMMIT", help="compare with a commit; a row that is slower fails")
    parser.add_argument(
        "--pairs", type=int, default=15, metavar="N", help="runs of each side with --against; default: 15"
    )
    parser.add_argument("--samples", metavar="FILE", help="keep the raw samples of --against")
    arguments = parser.parse_args()
    arguments.only = [*(arguments.only or ()), *arguments.rows] or None
    if arguments.against:
        import bench_commits

        sys.exit(bench_commits.against(arguments.against, arguments.only, arguments.pairs, arguments.samples))
    os.environ.setdefault("DETMAP_KERNELS", "ahead")
    if arguments.threads:
        import bench_threads

        threads = [int(one) for one in arguments.threads.split(",")]
        names = arguments.only or ["files500k", "masks", "keypoints"]
        with tempfile.TemporaryDirectory() as folder:
            text = bench_threads.report(Path(folder), names, threads, arguments.quick)
        print(text)
        if arguments.write:
            write(text, name="threads")
        return
    rows = [row for row in ROWS if not arguments.only or any(row.name.startswith(name) for name in arguments.only)]
    if not rows:
        parser.error("no such row")
    peers = tuple(peer for peer in PEERS if version(peer))
    for peer in set(PEERS) - set(peers):
        print(f"{peer} is not installed: {install_command('bench')}", file=sys.stderr)
    # The peers' modules were compiled when they were installed; so are ours, wherever that is not switched off.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            print(row.name, file=sys.stderr)
            lines += row.measure(Options(arguments.quick, arguments.all, peers, Path(folder)))
    text = table(lines, (*peers, *(["vernier"] if version("vernier") else [])))
    if arguments.quick:
        print("Small inputs: these figures say only that everything runs.\n")
    print(text)
    for line in lines:
        for note in line.notes:
            print(f"{line.title}: {note}")
    if arguments.write:
        write(text)
        bench_chart.draw()
    if any("DIFFERS" in note for line in lines for note in line.notes):
        sys.exit("not all agree on AP")


if __name__ == "__main__":
    main()
