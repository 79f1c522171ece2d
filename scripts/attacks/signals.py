"""Ctrl-C at any moment of any command: exit code 130 and one line, or the command was done; nobody is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.batches import surroundings

#: Seconds within which an interrupt takes effect: kernels may have to be compiled, and the machine may be busy.
PROMPT = 5.0


def prepare(folder: Path) -> None:
    """Write inputs that keep every command busy for a moment."""
    if (folder / "ready").exists():
        return
    rng = np.random.default_rng(1)
    box = [10.0, 10.0, 50.0, 50.0]
    images = [{"id": i} for i in range(1, 301)]
    objects = [
        {"id": i + 1, "image_id": i % 300 + 1, "category_id": i % 5 + 1, "bbox": box, "area": 2500.0, "iscrowd": 0}
        for i in range(3000)
    ]
    equal = [
        {"id": i + 1, "image_id": 1, "category_id": 1, "bbox": box, "area": 2500.0, "iscrowd": 0} for i in range(6000)
    ]
    categories = [{"id": c, "name": f"c{c}"} for c in range(1, 6)]
    for name, listed in (("truth", objects), ("equal", equal)):
        document = {"images": images, "annotations": listed, "categories": categories}
        (folder / f"{name}.json").write_text(json.dumps(document))
    found = [
        {"image_id": int(i), "category_id": int(c), "bbox": box, "score": float(s)}
        for i, c, s in zip(rng.integers(1, 301, 200_000), rng.integers(1, 6, 200_000), rng.random(200_000), strict=True)
    ]
    for name in ("one", "two"):
        (folder / f"{name}.json").write_text(json.dumps(found))
    many = [{"image_id": 1, "category_id": 1, "bbox": box, "score": float(s)} for s in rng.random(6000)]
    (folder / "many.json").write_text(json.dumps(many))
    lines = [f"{q} Q0 d{d} 1 {s} t" for q in range(400) for d, s in enumerate(rng.random(300).tolist())]
    (folder / "run.txt").write_text("\n".join(lines) + "\n")
    (folder / "qrels.txt").write_text("".join(f"{q} 0 d{d} 1\n" for q in range(400) for d in range(0, 300, 7)))
    np.savez(
        folder / "reid.npz",
        query_features=rng.standard_normal((500, 256), dtype=np.float32),
        gallery_features=rng.standard_normal((20_000, 256), dtype=np.float32),
        query_ids=rng.integers(0, 100, 500),
        gallery_ids=rng.integers(0, 100, 20_000),
    )
    np.savez(
        folder / "codes.npz",
        query_codes=rng.integers(0, 2, (300, 64)).astype(np.uint8),
        gallery_codes=rng.integers(0, 2, (50_000, 64)).astype(np.uint8),
        query_labels=rng.integers(0, 10, 300),
        gallery_labels=rng.integers(0, 10, 50_000),
    )
    (folder / "ready").touch()


COMMANDS = [
    "eval truth.json one.json --out out.json",
    "eval equal.json many.json --max-dets 1000000",
    "eval truth.json one.json --bootstrap 2000",
    "eval truth.json one.json two.json --sharded",
    "batch truth.json one.json two.json --out board",
    "compare truth.json one.json two.json",
    "trec qrels.txt run.txt --out trec.json",
    "reid reid.npz",
    "hashing codes.npz",
]


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """One command, interrupted at a moment between its start and its end."""
    prepare(folder)
    command = COMMANDS[int(rng.integers(len(COMMANDS)))].replace("one.json two.json --sharded", "'on*.json' --sharded")
    words = [word.strip("'") for word in command.split()]
    moment = 0.35 + float(rng.random()) ** 2 * 3
    twice = rng.random() < 0.2

    def run() -> Any:
        given = {**surroundings(), "PYTHONPROFILEIMPORTTIME": ""}
        process = subprocess.Popen(
            [sys.executable, "-m", "detmap", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=given,
            start_new_session=True,
        )
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        began = time.monotonic()
        if twice:
            time.sleep(0.02)
            process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=100)
        took, text = time.monotonic() - began, complained.decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("compiling", "note:"))]
        if alive(process.pid):
            return "a child is left"
        if process.returncode == 130:
            if took > PROMPT:
                return f"took {took:.1f} s"
            return "fine" if len(lines) <= 1 and "Traceback" not in text else text[-600:]
        if process.returncode == 0:
            return "fine"
        # Before main() runs Python itself answers, in its own way.
        early = process.returncode == -signal.SIGINT or (process.returncode == 1 and "KeyboardInterrupt" in text)
        if early and "cli/__init__.py" not in text:
            return "fine"
        return f"exit code {process.returncode}: {text[-600:]}"

    return Attack(f"{command} interrupted after {moment:.3f} s{' twice' if twice else ''}", run, Must(value="fine"))


def alive(session: int) -> bool:
    """Whether a process of that session is still there."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                os.kill(int(entry.name), signal.SIGKILL)
                return True
    return False
