#!/usr/bin/env python
"""Measures `detmap eval --sharded` against the same detections in one file: processor time, peak memory, and equal bits.

The workload is written as it is measured and deleted afterwards: about 90 bytes of JSON a detection. Scores have six
digits, so that many are tied across shards; a fifth of the detections are of one category.

    scripts/bench_shards.py                              the table of growth: 10,000 to 10,000,000 detections in 20 shards
    scripts/bench_shards.py 100000000:200 --no-whole     100,000,000 detections in 200 shards, without the whole file
    scripts/bench_shards.py 10000000:200 --limit 2.5     within 2.5 GB of addresses, as `ulimit -v` counts them
    scripts/bench_shards.py 1000000:20 --turns 5         medians of five turns, whole and shards one after the other
    scripts/bench_shards.py 1000000:20 --scheduler tcp://…   on a Dask cluster; times are those of the client alone
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent

GROWTH = ("10000:20", "100000:20", "1000000:20", "10000000:20")

#: Detections and objects of an image, and the number of categories.
DETECTIONS, OBJECTS, CATEGORIES = 500, 10, 80

#: The id of the first image, of the first object, and of the first category: all ids of a kind have as many digits.
FIRST_IMAGE, FIRST_OBJECT, FIRST_CATEGORY = 1_000_000, 10_000_000, 10


class Scene(NamedTuple):
    """Rows on images: boxes in tenths of pixels, (n, 4)."""

    images: np.ndarray
    categories: np.ndarray
    boxes: np.ndarray
    scores: np.ndarray


def objects_of(first: int, images: int) -> Scene:
    """Make the objects of images `first` and on: the same whichever images are asked for together."""
    made = [np.random.default_rng(seed).random((OBJECTS, 5)) for seed in range(first, first + images)]
    uniform = np.concatenate(made)
    count = len(uniform)
    categories = np.where(uniform[:, 4] < 0.2, 0, (uniform[:, 4] * 1000).astype(int) % CATEGORIES)
    boxes = np.empty((count, 4), np.int64)
    boxes[:, :2] = 1100 + uniform[:, :2] * 8000
    boxes[:, 2:] = 120 + uniform[:, 2:4] * 850
    return Scene(np.repeat(np.arange(first, first + images), OBJECTS), categories, boxes, np.empty(0))


def detections_of(first: int, images: int) -> Scene:
    """Make the detections of images: some near an object, most of them nowhere, by descending score in an image."""
    truth, rng = objects_of(first, images), np.random.default_rng(first)
    count = images * DETECTIONS
    near = rng.integers(0, OBJECTS, count) + np.repeat(np.arange(images), DETECTIONS) * OBJECTS
    scores = -np.sort(-(rng.random((images, DETECTIONS)) ** 2), axis=1).ravel()
    astray = rng.random(count) > scores
    boxes = truth.boxes[near] + rng.normal(0, 25, (count, 4)).astype(np.int64)
    boxes[astray] = truth.boxes[rng.permutation(near)][astray]
    boxes[:, :2], boxes[:, 2:] = np.clip(boxes[:, :2], 1000, 9899), np.clip(boxes[:, 2:], 100, 999)
    categories = np.where(rng.random(count) < 0.1, rng.integers(0, CATEGORIES, count), truth.categories[near])
    return Scene(truth.images[near], categories, boxes, scores)


def digits(out: np.ndarray, column: int, width: int, values: np.ndarray) -> None:
    """Write numbers with `width` digits into rows of text."""
    for place in range(width):
        out[:, column + width - 1 - place] = values // 10**place % 10 + ord("0")


def lines(form: str, columns: dict[str, np.ndarray]) -> bytes:
    """Return a row of text for every row of `columns`; their fields are runs of their letters in `form`."""
    count = len(next(iter(columns.values())))
    out = np.tile(np.frombuffer(form.encode(), np.uint8), (count, 1))
    for letter, values in columns.items():
        digits(out, form.index(letter), form.count(letter), values)
    text = out.tobytes()
    return text[:-2]  # without the last comma


def by_digits(boxes: np.ndarray) -> dict[str, np.ndarray]:
    """Return the whole and the tenth pixels of boxes."""
    whole = dict(zip("XYWH", (boxes // 10).T, strict=True))
    return whole | dict(zip("PQRS", (boxes % 10).T, strict=True))


BOX = '"bbox":[XXX.P,YYY.Q,WW.R,HH.S]'


def write_truth(path: Path, images: int) -> None:
    """Write the ground truth of images, some at a time."""
    names = ",".join(f'{{"id":{FIRST_CATEGORY + k},"name":"class {k}"}}' for k in range(CATEGORIES))
    with path.open("wb") as file:
        file.write(f'{{"categories":[{names}],"images":['.encode())
        form = '{"id":IIIIIII,"width":1000,"height":1000},\n'
        file.write(lines(form, {"I": FIRST_IMAGE + np.arange(images)}))
        file.write(b'],"annotations":[')
        for first in range(0, images, 10_000):
            truth = objects_of(first, min(10_000, images - first))
            columns = {
                "N": FIRST_OBJECT + first * OBJECTS + np.arange(len(truth.images)),
                "I": FIRST_IMAGE + truth.images,
                "K": FIRST_CATEGORY + truth.categories,
                "A": truth.boxes[:, 2] * truth.boxes[:, 3] // 100,
                **by_digits(truth.boxes),
            }
            form = '{"id":NNNNNNNN,"image_id":IIIIIII,"category_id":KK,' + BOX + ',"area":0.AAAAe4,"iscrowd":0},\n'
            file.write((b",\n" if first else b"") + lines(form, columns))
        file.write(b"]}")


def write_shards(folder: Path, detections: int, shards: int, whole: bool) -> None:
    """Write shards of equally many images, and one file with all of them where it is wanted."""
    images = detections // DETECTIONS
    cuts = [images * i // shards for i in range(shards + 1)]
    (folder / "shards").mkdir()
    together = (folder / "whole.json").open("wb") if whole else None
    form = '{"image_id":IIIIIII,"category_id":KK,' + BOX + ',"score":0.ZZZZZZ},\n'
    for i in range(shards):
        found = detections_of(cuts[i], cuts[i + 1] - cuts[i])
        columns = {
            "I": FIRST_IMAGE + found.images,
            "K": FIRST_CATEGORY + found.categories,
            "Z": (found.scores * 1e6).astype(np.int64),
            **by_digits(found.boxes),
        }
        text = lines(form, columns)
        (folder / "shards" / f"{i:04d}.json").write_bytes(b"[" + text + b"]")
        if together is not None:
            together.write((b",\n" if i else b"[") + text)
    if together is not None:
        together.write(b"]")
        together.close()


class Cost(NamedTuple):
    """Processor and wall time in seconds, peak memory in bytes, and a hash of metrics and arrays."""

    processor: float
    wall: float
    peak: int
    content: str


def measure(folder: Path, given: list[str], limit: float, extra: list[str]) -> Cost:
    """Run the command in a process of its own."""
    arrays = folder / "arrays.npz"
    words = [sys.executable, "-m", "detmap", "eval", str(folder / "ground_truth.json"), *given, *extra]
    words += ["--format", "json", "--quiet", *([] if "--no-arrays" in extra else ["--arrays", str(arrays)])]
    words = [word for word in words if word != "--no-arrays"]

    def bound() -> None:
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (int(limit * 1e9),) * 2)

    environment = {**os.environ, "PYTHONPATH": os.environ.get("DETMAP_TREE", str(ROOT))}
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(words, stdout=said, env=environment, preexec_fn=bound)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        content = hashlib.sha256(said.read())
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with exit code {process.returncode}")
    if arrays.exists():
        with np.load(arrays) as loaded:
            for name in sorted(loaded):
                content.update(np.ascontiguousarray(loaded[name]).tobytes())
        arrays.unlink()
    cost = used.ru_utime + used.ru_stime
    return Cost(cost, time.perf_counter() - begin, used.ru_maxrss * 1024, content.hexdigest()[:12])


def row(title: str, detections: int, shards: str, costs: list[Cost]) -> None:
    """Print a line of the table: medians."""
    median = {name: statistics.median(getattr(one, name) for one in costs) for name in ("processor", "wall", "peak")}
    each = f"{median['peak'] / detections:8.1f}" if detections >= 1_000_000 else "        "
    numbers = f"{median['processor']:9.2f} {median['wall']:8.2f} {median['peak'] / 1e6:9,.0f}"
    print(f"{title:8} {detections:>12,} {shards:>7} {numbers} {each}  {costs[0].content}", flush=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(GROWTH), help="DETECTIONS:SHARDS")
    parser.add_argument("--no-whole", action="store_true", help="do not score the same in one file")
    parser.add_argument("--limit", type=float, default=0.0, help="limit of the address space in GB; default: none")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--folder", help="where files are written; default: the folder for temporary ones")
    parser.add_argument("--scheduler", help="address of a Dask scheduler, which shards are sent to")
    parser.add_argument("--extra", default="", help="more options of detmap eval, as '--threads 1 --no-arrays'")
    options = parser.parse_args(argv)
    extra = options.extra.split()
    print(f"{'':8} {'detections':>12} {'shards':>7} {'CPU s':>9} {'wall s':>8} {'peak MB':>9} {'B each':>8}  bits")
    for case in options.cases:
        detections, shards = map(int, case.split(":"))
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = Path(name)
            write_truth(folder / "ground_truth.json", detections // DETECTIONS)
            write_shards(folder, detections, shards, not options.no_whole)
            given = {"sharded": [str(folder / "shards"), "--sharded"]}
            given["sharded"] += ["--scheduler", options.scheduler] if options.scheduler else []
            if not options.no_whole:
                given["whole"] = [str(folder / "whole.json")]
            costs: dict[str, list[Cost]] = {title: [] for title in given}
            for _ in range(options.turns):
                for title, words in given.items():
                    costs[title].append(measure(folder, words, options.limit, extra))
            for title, own in costs.items():
                row(title, detections, str(shards) if title == "sharded" else "", own)
            found: set[Any] = {one.content for own in costs.values() for one in own}
            if len(found) > 1:
                print("the bits differ", flush=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
