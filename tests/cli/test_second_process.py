"""A second process compiles kernels of an evaluation from the last on, and nothing depends on it."""

from __future__ import annotations

import base64
import io
import os
import pickle
import subprocess
import sys
import threading
import time

import pytest
from growth import circles_kernels
from kernel_caches import ROOT, compiled, tricks
from kernel_caches import environment as environment

from detmap.cli import second_process
from detmap.detection.protocols import PRESETS
from detmap.kernels import KERNELS, elsewhere

COCO = [str(ROOT / "fixtures/coco" / name) for name in ("ground_truth.json", "detections.json")]


class Other:
    """Stands for the other process: `lines` are what it says, each when it is released."""

    def __init__(self, monkeypatch, lines):
        self.written = io.StringIO()
        reader, self.writer = os.pipe()
        self.stdin, self.stdout = self.written, os.fdopen(reader)
        self.lines = iter(lines)
        self.killed = False
        monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: self)
        monkeypatch.setattr("detmap.system.parallel.cores", lambda: 2)

    def say(self, count=1):
        for _ in range(count):
            os.write(self.writer, (next(self.lines) + "\n").encode())

    def kill(self):
        self.killed = True

    def wait(self):
        if self.writer is not None:
            os.close(self.writer)
            self.writer = None


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_kernel_that_the_other_process_compiles_is_waited_for(monkeypatch):
    other = Other(monkeypatch, ["begin a.last", "end a.last", "begin a.middle", "end a.middle"])
    made = second_process.SecondProcess(PRESETS["coco"])
    assert not made.has_compiled("a.first"), "this process has to compile it"
    protocol, told = other.written.getvalue().split()
    assert pickle.loads(base64.b64decode(protocol)) == PRESETS["coco"]
    assert told == "a.first"
    other.say(3)
    until(lambda: made._at == "a.middle")
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(made.has_compiled("a.middle")))
    waiting.start()
    time.sleep(0.05)
    assert waiting.is_alive()
    other.say()
    waiting.join(60)
    assert answers == [True]
    assert made.has_compiled("a.last")
    assert other.written.getvalue().split()[1:] == ["a.first"]
    made.end()
    assert other.killed
    until(lambda: other.stdout.closed)


def test_where_the_other_process_dies_this_one_compiles(monkeypatch):
    other = Other(monkeypatch, ["begin a.last"])
    made = second_process.SecondProcess(PRESETS["coco"])
    made.has_compiled("a.first")
    other.say()
    until(lambda: made._at == "a.last")
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(made.has_compiled("a.last")))
    waiting.start()
    other.wait()
    waiting.join(60)
    assert answers == [False]
    made.end()
    until(lambda: other.stdout.closed)


def test_a_process_that_stops_answering_is_given_up(monkeypatch):
    other = Other(monkeypatch, ["begin a.last"])
    monkeypatch.setattr(second_process, "_LONGEST", 0.05)
    made = second_process.SecondProcess(PRESETS["coco"])
    made.has_compiled("a.first")
    other.say()
    until(lambda: made._at == "a.last")
    assert not made.has_compiled("a.last")
    assert other.killed
    until(lambda: other.stdout.closed)


def test_a_fork_does_not_wait_for_what_it_cannot_hear(monkeypatch):
    other = Other(monkeypatch, ["begin a.last"])
    made = second_process.SecondProcess(PRESETS["coco"])
    made.has_compiled("a.first")
    other.say()
    until(lambda: made._at == "a.last")
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        assert not made.has_compiled("a.last")
    made.end()
    until(lambda: other.stdout.closed)


def test_no_other_process_on_one_core_or_where_none_can_start(monkeypatch):
    def refused(*_, **__):
        raise OSError("out of processes")

    monkeypatch.setattr(subprocess, "Popen", refused)
    for cores in (1, 2):
        monkeypatch.setattr("detmap.system.parallel.cores", lambda cores=cores: cores)
        made = second_process.SecondProcess(PRESETS["coco"])
        assert not made.has_compiled("a.first")
        assert made._process is None
        made.end()


def test_it_is_asked_within_the_context_alone():
    with second_process.second_process(PRESETS["coco"]):
        assert len(elsewhere.ASKED) == 1
    assert elsewhere.ASKED == []


@compiled
def test_calls_are_those_of_the_task_in_order_and_compile_nothing():
    """All kernels are in their modules afterwards; those of plug-ins, which tests have imported, all the time."""
    kernels, overlaps = list(KERNELS), circles_kernels.overlaps

    def named():
        return [getattr(sys.modules[one.__module__], one.__name__) for one in kernels]

    def task():
        assert circles_kernels.overlaps is overlaps
        second_process._evaluate(PRESETS["coco"])

    assert overlaps in kernels
    before = named()
    found = second_process.calls(task)
    labels = [function._cache.label for function, _ in found]
    assert labels.index("sorting.group_by") < labels.index("overlap.box_candidates") < labels.index("matching.match")
    assert labels[-1] == "curves.interpolate"
    assert named() == before


@compiled
@tricks
@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["coco", pytest.param("voc2007", marks=pytest.mark.long)])
def test_the_other_process_compiles_what_an_evaluation_calls(protocol, environment, tmp_path):
    """All of it, if nothing is taken from it; then nothing is left to compile."""
    settings = {**environment, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    command = [sys.executable, "-c", "from detmap.cli import second_process; second_process.run()"]
    given = base64.b64encode(pickle.dumps(PRESETS[protocol])).decode() + "\n"
    with subprocess.Popen(command, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(given)
        process.stdin.flush()
        said = process.stdout.read().split()
    assert said[-1] == "sorting.group_by"
    words = [sys.executable, "-m", "detmap", "eval", *COCO, "--protocol", protocol]
    done = subprocess.run(words, env=settings, capture_output=True, text=True, check=True)
    assert "compiling" not in done.stderr
