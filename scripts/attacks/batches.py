"""`detmap batch` as a person runs it: folders of good and bad files with hostile names, and files that change meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.documents import ANYTHING, damage, expected
from attacks.scenes import scene

NAMES = [
    "a",
    "=1+1",
    "<script>alert(1)</script>",
    "[x](javascript:y)",
    "é\u202e",
    "a b",
    "-rf",
    "![i](http://x/y.png)",
    "nul",
    "%s",
]


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """A folder of predictions, one of them perhaps cut while it is read."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    (work / "runs").mkdir(parents=True)
    truth, results = scene(rng)
    (work / "truth.json").write_text(json.dumps(truth))
    good: dict[str, bool] = {}
    for name in rng.choice(NAMES, int(rng.integers(1, 6)), replace=False):
        data = json.dumps(results).encode()
        fine = rng.random() < 0.6
        if not fine:
            data = damage(rng, data)
        path = work / "runs" / f"{str(name).replace('/', '∕')}.json"
        path.write_bytes(data)
        must = expected(truth, data, False, results)
        good[path.name] = fine
        if must.value is None:
            good[path.name] = False
    for name in (b"\xff.json", b"two\nlines.json", b"gone.json", b"folder.json"):
        path = work / "runs" / os.fsdecode(name)
        if rng.random() < 0.2 and name == b"gone.json":
            path.symlink_to("nowhere")
            good[path.name] = False
        elif rng.random() < 0.2 and name == b"folder.json":
            path.mkdir()
        elif rng.random() < 0.2:
            path.write_text(json.dumps(results))
    piped = bool(rng.random() < 0.1)
    if piped:
        os.mkfifo(work / "runs" / "pipe.json")
    if any(one["category_id"] is None for one in results):
        return Attack("batch", lambda: ANYTHING, Must(value=ANYTHING))
    race = rng.random() < 0.3
    if race:
        large = json.dumps(results * max(200_000 // max(len(results), 1), 1) if results else []).encode()
        (work / "runs" / "race.json").write_bytes(large)
    moment = float(rng.random()) * 1.5

    def run() -> Any:
        out = work / "board"
        command = [sys.executable, "-m", "detmap", "batch", "truth.json", "runs", "--out", str(out), "--format", "json"]
        process = subprocess.Popen(
            command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings()
        )
        if race:
            threading.Thread(target=spoil, args=(work / "runs" / "race.json", moment), daemon=True).start()
        said, complained = process.communicate(timeout=100)
        text = complained.decode(errors="replace")
        if piped:
            refused = process.returncode == 2 and text.count("\n") == 1 and "pipe.json" in text
            return "fine" if refused else f"a pipe: exit code {process.returncode}: {text[-500:]}"
        if process.returncode not in (0, 3):
            return f"exit code {process.returncode}: {text[-500:]}"
        if "Traceback" in text:
            return text[-500:]
        rows = {os.path.basename(row["source"]): row for row in json.loads(said)["models"]}
        lost = sorted(set(good) - set(rows))
        if lost:
            return f"no row for {lost}"
        bad = [name for name, fine in good.items() if fine and rows[name]["error"]]
        if bad:
            return f"{bad[0]} has an error: {rows[bad[0]]['error']}"
        page = out / "leaderboard.html"
        if page.exists() and "<script>alert" in page.read_text():
            return "a file's name is live in the page"
        left = [path.name for path in (out / "results").iterdir() if path.suffix == ".tmp"]
        return left or "fine"

    return Attack(f"batch {good} race={race} at {moment:.3f}", run, Must(value="fine"))


def spoil(path: Path, moment: float) -> None:
    time.sleep(moment)
    os.truncate(path, int(path.stat().st_size * moment / 2))


def surroundings() -> dict[str, str]:
    """The environment in which the package of this checkout is run from any folder."""
    root = Path(__file__).resolve().parent.parent.parent
    return {**os.environ, "PYTHONPATH": str(root), "PYTHONWARNINGS": "error::RuntimeWarning"}
