#!/usr/bin/env python
"""Reading detections from CSV, Parquet and YOLO's folders beside pyarrow's readers, and `detmap check`: time and memory.

The workload is made with a fixed seed: 2,000,000 detections on 5,000 images, and a folder of 5,000 files of 20 detections;
to check there are 35,000 objects and 500,000 detections in COCO's JSON. Time is that of the processor.
Every measurement is a process of its own with one thread, which reads once to warm up; the programs go by turns.

    scripts/bench_formats.py              medians of 5 turns
    scripts/bench_formats.py --turns 1 --quick
    scripts/bench_formats.py --rows       100,000 rows of each text format, each side; the limit is half a second
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import format_rows  # noqa: E402

PROGRAMS = ("csv", "csv by pyarrow", "parquet", "parquet by pyarrow", "yolo", "check")


def make(folder: Path, count: int, images: int) -> None:
    """Write the files."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    import detmap

    rng = np.random.default_rng(0)
    boxes = np.round(np.c_[rng.random((count, 2)) * [600, 400], 1 + rng.random((count, 2)) * 100], 2)
    columns = {"image_id": np.sort(rng.integers(1, images + 1, count)), "category_id": rng.integers(1, 81, count)}
    columns["score"] = np.round(rng.random(count), 4)
    sides = dict(zip(("x", "y", "width", "height"), map(np.ascontiguousarray, boxes.T), strict=True))
    pyarrow.csv.write_csv(pa.table({**columns, **sides}), folder / "csv.csv")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(boxes.ravel()), 4)
    pyarrow.parquet.write_table(pa.table({**columns, "bbox": lists}), folder / "parquet.parquet")
    names = np.array([f"image{i:05d}" for i in range(images)])
    truth = detmap.GroundTruth.from_arrays(
        image_ids=names[:1], category_ids=[0], boxes=[[0, 0, 1, 1]], images=names, categories=list(range(81)),
        image_sizes=[[512, 1024]] * images,
    )  # fmt: skip
    found = detmap.Detections.from_arrays(
        image_ids=np.repeat(names, 20), category_ids=rng.integers(0, 80, 20 * images), boxes=boxes[: 20 * images],
        scores=columns["score"][: 20 * images],
    )  # fmt: skip
    detmap.write(truth, folder / "truth.json")
    make_checked(folder, images, count // 4)
    detmap.write(found, folder / "yolo", format="yolo", ground_truth=truth)


def make_checked(folder: Path, images: int, count: int) -> None:
    """Write ground truth of 7 objects an image, and detections of which half lie on an object."""
    import detmap

    rng = np.random.default_rng(1)
    number = 7 * images
    at, to = np.sort(rng.integers(0, images, number)), rng.integers(0, number, count)
    boxes = np.c_[rng.random((number, 2)) * [540, 380], 10 + rng.random((number, 2)) * 90]
    classes = rng.integers(1, 81, number)
    truth = detmap.GroundTruth.from_arrays(
        image_ids=at, category_ids=classes, boxes=boxes, images=range(images), categories=range(1, 81),
        image_sizes=[[480, 640]] * images,
    )  # fmt: skip
    moved = (
        np.where(rng.random(count) < 0.5, 0.08, 3.0)[:, None]
        * rng.normal(0, 1, (count, 4))
        * boxes[to][:, [2, 3, 2, 3]]
    )
    near = np.abs(boxes[to] + moved)
    found = detmap.Detections.from_arrays(
        image_ids=at[to], category_ids=classes[to], boxes=near, scores=rng.random(count) * np.exp(-np.abs(moved[:, 0]) / 50),
    )  # fmt: skip
    detmap.write(truth, folder / "objects.json")
    detmap.write(found, folder / "found.json")


def read(program: str, folder: Path) -> Any:
    """Return what reads once."""
    import detmap

    if ":" in program:
        return read_rows(*program.split(":"), folder)
    if program == "check":
        return lambda: detmap.check(folder / "objects.json", folder / "found.json")
    kind, _, other = program.partition(" by ")
    if other:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet

        pa.set_cpu_count(1)
        if kind == "csv":
            options = pyarrow.csv.ReadOptions(use_threads=False)
            return lambda: pyarrow.csv.read_csv(folder / "csv.csv", options)
        return lambda: pyarrow.parquet.read_table(folder / "parquet.parquet", use_threads=False)
    if kind == "yolo":
        truth = detmap.read(folder / "truth.json", "ground_truth")
        return lambda: detmap.read(folder / "yolo", "detections", ground_truth=truth)
    return lambda: detmap.read(folder / f"{kind}.{kind}", "detections")


def read_rows(name: str, role: str, folder: Path) -> Any:
    """Return what reads one side of a text format once."""
    import detmap

    path = folder / name / str(format_rows.SIDES[name][role == "detections"])
    truth = None
    if name in ("yolo", "darknet"):  # whose boxes are shares of images
        images = sorted(one.stem for one in (folder / "text" / "truth").iterdir())
        truth = detmap.GroundTruth.from_arrays(
            image_ids=images[:1], category_ids=["class00"], boxes=[[0, 0, 1, 1]], images=images,
            categories=[f"class{k:02d}" for k in range(20)], image_sizes=[[1000, 1000]] * len(images),
        )  # fmt: skip
    return lambda: detmap.read(path, role, ground_truth=truth)


def measure(program: str, folder: Path) -> dict[str, float]:
    from detmap.system import parallel

    work = read(program, folder)
    with parallel.limited(1):
        work()
        start = time.process_time()
        work()
        seconds = time.process_time() - start
    return {"seconds": seconds, "MiB": peak()}


def peak() -> float:
    """Return the largest size that this process had, in MiB: `ru_maxrss` would count that of its parent."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rows", action="store_true", help="100,000 rows of each text format instead")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the workload")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], Path(options.measure[1]))))
        return
    sides = [
        f"{name}:{role}"
        for name, files in format_rows.SIDES.items()
        for role, file in zip(("ground_truth", "detections"), files, strict=True)
        if file is not None
    ]
    programs = sides if options.rows else PROGRAMS
    found: dict[str, list[dict[str, float]]] = {program: [] for program in programs}
    with tempfile.TemporaryDirectory() as folder:
        if options.rows:
            format_rows.make(Path(folder), 1_000 if options.quick else 100_000)
        else:
            make(Path(folder), *((20_000, 50) if options.quick else (2_000_000, 5_000)))
        for _ in range(options.turns):
            for program in programs:
                command = [sys.executable, __file__, "--measure", program, folder]
                found[program].append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    print(f"{'reading':28}{'seconds':>10}{'MiB':>8}")
    for program, runs in found.items():
        seconds, memory = (statistics.median(run[name] for run in runs) for name in ("seconds", "MiB"))
        print(f"{program:28}{seconds:>10.3f}{memory:>8.0f}")


if __name__ == "__main__":
    main()
