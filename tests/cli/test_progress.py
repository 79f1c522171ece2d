"""What a terminal shows while a command takes long, and that nothing is shown elsewhere."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
COCO = [ROOT / "fixtures/coco" / name for name in ("ground_truth.json", "detections.json")]

#: Runs the command with what it calls slowed down, so that it takes a second in any case.
SLOWLY = """
import sys, time, importlib
from detmap import cli
module, name = sys.argv[1].rsplit(".", 1)
module = importlib.import_module(module)
task = getattr(module, name)
def slowly(*arguments, **more):
    until = time.monotonic() + 1.4
    while time.monotonic() < until:
        time.sleep(0.02)
    return task(*arguments, **more)
setattr(module, name, slowly)
sys.exit(cli.main(sys.argv[2:]))
"""


def shown(slow, *words, terminal=True):
    """Return the exit code and what stood on stderr, which is a terminal or is not."""
    command = [sys.executable, "-c", SLOWLY, slow, *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120"}
    if not terminal:
        done = subprocess.run(command, capture_output=True, env=environment, timeout=300, check=False)
        return done.returncode, done.stderr.decode()
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    return process.wait(300), said.decode()


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "qrels").write_text("".join(f"q{q} 0 d{d} {(q + d) % 3 == 0:d}\n" for q in range(5) for d in range(9)))
    name = "[red]run[nothing\x1b"
    (tmp_path / name).write_text("".join(f"q{q} Q0 d{d} 1 {rng.random()} x\n" for q in range(5) for d in range(9)))
    records = json.loads(COCO[1].read_text())
    (tmp_path / "other.json").write_text(json.dumps(records[::2]))
    return tmp_path, tmp_path / name


@pytest.mark.slow
@pytest.mark.compiled
def test_a_terminal_shows_what_is_being_done(files):
    folder, run = files
    cases = {
        "replaying rules": ("detmap.explanations.explain", "explain", *COCO, "--from", "voc2012"),
        "scoring under other rules": (
            *("detmap.explanations.survives", "compare", *COCO, folder / "other.json", "--under", "all"),
            *("--bootstrap", 200),
        ),
        "evaluating": ("detmap.retrieval.evaluate_run", "trec", folder / "qrels", run),
    }
    for text, words in cases.items():
        code, said = shown(*words)
        assert (code, text in said) == (0, True), (words, said)
        assert "Traceback" not in said


@pytest.mark.compiled
def test_elsewhere_nothing_is_shown(files):
    folder, run = files
    words = ("detmap.retrieval.evaluate_run", "trec", folder / "qrels", run)
    assert shown(*words, terminal=False) == (0, "")
