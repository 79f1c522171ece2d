"""Commands that are interrupted at random moments: inputs, the interrupt, and what must hold afterwards.

``attack(seed, folder)`` interrupts one random command at one random moment and returns what was wrong.
"""

from __future__ import annotations

import functools
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from legs import LEG

# The moment counts from here on: what the interpreter and the package's import do before is Python's affair.
PROGRAM = """
import os, sys
from detmap.system import interrupts
interrupts.watch()
os.write(int(sys.argv.pop(1)), b"!")
os.close(int(os.environ.pop("READY")))
from detmap.__main__ import run
raise SystemExit(run())
"""


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code, what it said, and how long it took since the interrupt or the start."""

    code: int
    out: str
    err: str
    seconds: float
    left: bool  # a process of it


def boxes(rng, count, size=300.0):
    """Boxes as x, y, width, height within a square."""
    return np.round(
        np.concatenate([rng.random((count, 2)) * size, 5 + rng.random((count, 2)) * 60], axis=1), 2
    ).tolist()


def write_detection(folder, images=60, objects=2000, detections=6000, files=4, equal=0):
    """COCO files; with `equal` one image with so many equal boxes on both sides."""
    rng = np.random.default_rng(7)
    folder.mkdir(exist_ok=True)
    if equal:
        images = 1
    given = [[0, 0, 10, 10]] * equal or boxes(rng, objects)
    truth = {
        "images": [{"id": i, "width": 400, "height": 400} for i in range(images)],
        "categories": [{"id": c, "name": f"c{c}"} for c in range(1 if equal else 5)],
        "annotations": [
            {
                "id": k + 1,
                "image_id": k % images,
                "category_id": 0 if equal else k % 5,
                "bbox": box,
                "area": box[2] * box[3],
                "iscrowd": 0,
            }
            for k, box in enumerate(given)
        ],
    }
    (folder / "truth.json").write_text(json.dumps(truth))
    for n in range(files):
        found = given if equal else boxes(rng, detections)
        rows = [
            {
                "image_id": k % images,
                "category_id": 0 if equal else int(rng.integers(5)),
                "bbox": box,
                "score": float(rng.random()),
            }
            for k, box in enumerate(found)
        ]
        (folder / f"found{n}.json").write_text(json.dumps(rows))
        for part in range(2):
            half = [row for row in rows if row["image_id"] % 2 == part]
            (folder / f"shard{n}-{part}.json").write_text(json.dumps(half))


def write_rankings(folder, queries=150, items=2000):
    """A TREC run and its judgements, features and codes."""
    rng = np.random.default_rng(8)
    folder.mkdir(exist_ok=True)
    (folder / "qrels").write_text("".join(f"q{q} 0 d{d} 1\n" for q in range(queries) for d in range(0, 400, 9)))
    for name in ("run0", "run1"):
        scores = rng.random((queries, 400)).round(3)
        lines = [f"q{q} Q0 d{d} 0 {scores[q, d]} t\n" for q in range(queries) for d in range(400)]
        (folder / name).write_text("".join(lines))
    np.savez(
        folder / "reid.npz",
        query_features=rng.random((queries, 64)),
        gallery_features=rng.random((items, 64)),
        query_ids=np.arange(queries) % 50,
        gallery_ids=np.arange(items) % 50,
    )
    np.savez(
        folder / "codes.npz",
        query_codes=rng.integers(0, 2, (queries, 64), np.uint8),
        gallery_codes=rng.integers(0, 2, (items * 4, 64), np.uint8),
        query_labels=np.arange(queries) % 50,
        gallery_labels=np.arange(items * 4) % 50,
    )


def commands(folder):
    """Write the inputs and return every command by name; ``OUT`` stands for what it writes."""
    write_detection(folder / "coco")
    write_detection(folder / "equal", files=1, equal=1500)
    write_rankings(folder / "rankings")
    coco, equal, rankings = (str(folder / name) for name in ("coco", "equal", "rankings"))
    truth = f"{coco}/truth.json"
    return {
        "eval": ["eval", truth, f"{coco}/found0.json", "--per-class", "--out", "OUT"],
        "equal": ["eval", f"{equal}/truth.json", f"{equal}/found0.json", "--max-dets", "1000000", "--out", "OUT"],
        "sharded": ["eval", truth, f"{coco}/shard0-*.json", "--sharded", "--out", "OUT"],
        "bootstrap": ["eval", truth, f"{coco}/found1.json", "--bootstrap", "200", "--out", "OUT"],
        "batch": ["batch", truth, *(f"{coco}/found{n}.json" for n in range(2)), "--bootstrap", "200", "--out", "OUT"],
        "compare": [
            "compare",
            truth,
            *(f"{coco}/found{n}.json" for n in range(2)),
            "--bootstrap",
            "200",
            "--out",
            "OUT",
        ],
        "trec": ["trec", f"{rankings}/qrels", f"{rankings}/run0", f"{rankings}/run1", "--compare", "--out", "OUT"],
        "reid": ["reid", f"{rankings}/reid.npz", "--convention", "cuhk03", "--out", "OUT"],
        "hashing": ["hashing", f"{rankings}/codes.npz", "--out", "OUT"],
    }


def run(arguments, moment=None, again=(), environment=None, limit=120.0):
    """Run a command; with a `moment` interrupt it so many seconds after it began, and `again` as many seconds later."""
    ready, tell = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tell), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=[tell],
        start_new_session=True,
        env={**os.environ, "READY": str(tell), **(environment or {})},
    )
    os.close(tell)
    try:
        if select.select([ready], [], [], limit)[0]:
            os.read(ready, 1)
        began = time.monotonic()
        for pause in () if moment is None else (moment, *again):
            time.sleep(pause)
            if pause == moment:
                began = time.monotonic()
            process.send_signal(signal.SIGINT)  # does nothing to one that has ended
        out, err = process.communicate(timeout=limit)
        seconds = time.monotonic() - began
        try:
            os.killpg(process.pid, 0)
            left = True
        except ProcessLookupError:
            left = False
        return Outcome(process.returncode, out, err, seconds, left)
    finally:
        os.close(ready)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def placed(arguments, out):
    """Return the command with `out` as what it writes."""
    return [str(out) if argument == "OUT" else argument for argument in arguments]


def problems(outcome, out, whole, limit):
    """Return what is wrong with an interrupted command that wrote to `out`; `whole` is what an undisturbed one wrote."""
    wrong = []
    finished = outcome.code == 0  # before the interrupt came
    if not finished and outcome.code != 130:
        wrong.append(f"exit code {outcome.code}")
    said = [line for line in outcome.err.splitlines() if not line.startswith("detmap: note: ")]
    if said != ([] if finished else ["detmap: interrupted"]):
        wrong.append(f"stderr {outcome.err!r}")
    if outcome.seconds > limit:
        wrong.append(f"ended after {outcome.seconds:.2f} s")
    if outcome.left:
        wrong.append("a process is left")
    files = [out] if out.is_file() else sorted(path for path in out.glob("**/*") if path.is_file())
    files += list(out.parent.glob(".detmap-*"))
    for path in files:
        if path.name.startswith(".detmap-"):
            wrong.append(f"{path.name} is left")
        elif path.suffix == ".json":
            try:
                document = json.loads(path.read_bytes())
            except ValueError:
                wrong.append(f"{path.name} is half written")
            else:
                if path == out and document != whole:
                    wrong.append(f"{path.name} is another")
    return wrong


prepared = functools.cache(commands)


@functools.cache
def undisturbed(name, folder):
    """Return how long a command takes, once its kernels are compiled, and what it writes."""
    out = folder / "whole" / (name if name == "batch" else f"{name}.json")
    out.parent.mkdir(exist_ok=True)
    outcome = run(placed(prepared(folder)[name], out), limit=600)
    assert outcome.code == 0, (name, outcome)
    if LEG != "ahead" and outcome.seconds > 4:
        outcome = run(placed(prepared(folder)[name], out))
    return outcome.seconds, None if name == "batch" else json.loads(out.read_bytes())


def attack_command(name, rng, folder, limit=0.5):
    """Interrupt a command at a random moment, one time in three more than once; return what is wrong."""
    seconds, whole = undisturbed(name, folder)
    moment = rng.uniform(0, seconds)
    again = [rng.uniform(0, 0.05) for _ in range(rng.choice((0, 0, 3)))]
    place = folder / f"out-{name}-{rng.getrandbits(40)}"
    place.mkdir()
    out = place / (name if name == "batch" else f"{name}.json")
    outcome = run(placed(prepared(folder)[name], out), moment, again)
    return [f"{name} after {moment:.3f} s of {seconds:.3f} s: {text}" for text in problems(outcome, out, whole, limit)]


def attack(seed, folder, limit=0.5):
    """Interrupt a random command at a random moment; return what is wrong: nothing, one hopes."""
    rng = random.Random(seed)
    return attack_command(rng.choice(sorted(prepared(Path(folder)))), rng, Path(folder), limit)
