"""Ctrl-C, and any signal handler that raises: whatever is computed ends, nothing is half done, and the next call is right.

``DETMAP_INTERRUPTS=20`` interrupts every command at so many moments.
"""

from __future__ import annotations

import ast
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import interrupts
import numpy as np
import pytest
from support import assert_same_result

import detmap
from detmap import cli
from detmap.detection.precisions import Rankings
from detmap.errors import OptionError
from detmap.system import interrupts as command
from detmap.system import parallel, whole_files

MOMENTS = int(os.environ.get("DETMAP_INTERRUPTS", "1"))
GUARD = 20.0  # seconds; a hang guard: 0.5 s is what an idle machine takes at most

posix = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals as POSIX has them")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("interrupts")


@pytest.mark.slow
@posix
@pytest.mark.compiled
@pytest.mark.parametrize(
    "name", ["eval", "equal", "sharded", "bootstrap", "batch", "compare", "trec", "reid", "hashing"]
)
def test_an_interrupted_command_ends_with_130_and_one_line_and_leaves_nothing_half_done(name, folder):
    rng = random.Random(f"{name} {MOMENTS}")
    for _ in range(MOMENTS):
        assert interrupts.attack_command(name, rng, folder, GUARD) == []


@posix
@pytest.mark.compiled
@pytest.mark.jit
def test_an_interrupt_while_kernels_are_compiled(tmp_path):
    interrupts.write_detection(tmp_path, images=2, objects=4, detections=4, files=1)
    arguments = ["eval", str(tmp_path / "truth.json"), str(tmp_path / "found0.json"), "--quiet"]
    outcome = interrupts.run(arguments, 2.5, environment={"NUMBA_CACHE_DIR": str(tmp_path / "cache")})
    assert (outcome.code, outcome.err) == (130, "detmap: interrupted\n")
    assert outcome.seconds < GUARD


def test_no_kernel_returns_a_tuple():
    """numba makes a tuple with Python's help, and takes no notice where a signal handler raises in there."""
    allowed = {"None", "int", "float", "bool", "Array"}
    found = 0
    for path in (Path(detmap.__file__).parent / "kernels").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and "kernel" in [ast.unparse(d) for d in node.decorator_list]:
                assert node.returns is not None, node.name
                assert ast.unparse(node.returns) in allowed, node.name
                found += 1
    assert found > 40


@pytest.mark.compiled
@pytest.mark.jit
def test_no_compiled_kernel_returns_a_tuple(folder):
    """What numba has inferred, of all kernels that this process has loaded so far."""
    from numba.core import types

    evaluate(300)
    loaded = 0
    for name, module in list(sys.modules.items()):
        if name.startswith("detmap.kernels."):
            for function in vars(module).values():
                for made in getattr(function, "overloads", {}).values():
                    if not function.targetoptions.get("no_cpython_wrapper"):
                        assert not isinstance(made.signature.return_type, types.BaseTuple), function
                        loaded += 1
    assert loaded > 10


def tables(equal):
    """So many equal boxes on both sides of one image, and a few more images."""
    rng = np.random.default_rng(3)
    rows = np.concatenate([np.tile([0.0, 0, 10, 10], (equal, 1)), rng.random((400, 4)) * 20 + 1])
    image = np.concatenate([np.zeros(equal, int), rng.integers(1, 9, 400)])
    given = {"image_ids": image, "category_ids": np.zeros(rows.shape[0], int), "boxes": rows}
    return detmap.GroundTruth.from_arrays(**given), detmap.Detections.from_arrays(**given, scores=rng.random(len(rows)))


def evaluate(equal, threads=None):
    return detmap.evaluate(*tables(equal), max_dets=[1, 10, 1_000_000], threads=threads)


#: Where no signal handler may raise: coverage's tracer would keep its lock for ever, and Python reports an exception in
#: hypothesis' callback of the garbage collector, or in one of a weak reference, without raising it.
UNINTERRUPTED = (
    f"{os.sep}coverage{os.sep}",
    f"{os.sep}hypothesis{os.sep}",
    f"{os.sep}weakref.py",
    f"{os.sep}_weakrefset.py",
)


class Alarm(Exception):
    """What a signal handler raises, as that of a test's time limit does."""


@pytest.fixture
def alarm():
    """Give a function that makes a signal handler raise after so many seconds."""

    def ring(_, frame):
        for _ in range(8):
            if frame is not None and any(name in frame.f_code.co_filename for name in UNINTERRUPTED):
                signal.setitimer(signal.ITIMER_REAL, 1e-3)
                return
            frame = frame and frame.f_back
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@posix
@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 2])
def test_a_handler_that_raises_at_any_moment_leaves_the_library_in_order(threads, alarm):
    expected = evaluate(900, threads)
    began = time.monotonic()
    evaluate(900, threads)
    seconds = time.monotonic() - began
    rng = random.Random(threads)
    raised = 0
    for _ in range(8 * MOMENTS):
        try:
            alarm(rng.uniform(1e-4, seconds))
            evaluate(900, threads)
            alarm(0)
        except Alarm:
            raised += 1
    assert raised
    assert_same_result(evaluate(900, threads), expected)


@posix
@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 2])
def test_one_large_cell_is_left_at_once(threads, alarm):
    """Half a minute of work, all in one cell."""
    truth, found = tables(20_000)
    detmap.evaluate(*tables(50), threads=threads)
    alarm(0.5)
    began = time.monotonic()
    with pytest.raises(Alarm):
        detmap.evaluate(truth, found, max_dets=[1_000_000], threads=threads)
    assert time.monotonic() - began < GUARD
    assert_same_result(evaluate(50, threads), evaluate(50, 2))


@posix
def test_an_interrupt_in_this_process_is_a_keyboard_interrupt_and_main_returns_130(capsys, monkeypatch):
    """Called as a function `main` installs no handler."""
    before = signal.getsignal(signal.SIGINT)

    def interrupted(*_, **__):
        assert signal.getsignal(signal.SIGINT) is before
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("detmap.formats.inputs.Input.ground_truth", interrupted)
    assert cli.main(["eval", "a", "b"]) == 130
    assert capsys.readouterr().err == "detmap: interrupted\n"


def test_what_is_called_off_ends_its_running_blocks():
    """Blocks that run see the flag, those that wait do not begin, and nobody gets half a result."""
    begun, seen = [], []

    def task(begin, end):
        begun.append(begin)
        if begin == 0:
            raise ValueError("an end")
        deadline = time.monotonic() + GUARD
        while not parallel.stop_flag()[0] and time.monotonic() < deadline:
            time.sleep(0.001)
        seen.append(int(parallel.stop_flag()[0]))

    with pytest.raises(ValueError, match="an end"):
        parallel.run(task, [(i, i + 1) for i in range(9)], 2)
    assert 0 not in seen
    assert len(begun) <= 4
    assert not parallel.stop_flag()[0]


def test_a_pool_that_is_left_early_stops_what_it_runs():
    running, ended = threading.Event(), []

    def block(begin, end):
        running.set()
        time.sleep(0.01)

    def task():
        try:
            parallel.run(block, [(i, i + 1) for i in range(100_000)], 1)
        except parallel.Stopped:
            ended.append(True)
            raise

    def leave_early():
        with parallel.executor(1, 1) as pool:
            pool.submit(task)
            assert running.wait(GUARD)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leave_early()
    deadline = time.monotonic() + GUARD
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended


def test_a_block_is_cut_into_steps():
    assert list(parallel.steps(2, 9, 10, 30)) == [(2, 5), (5, 8), (8, 9)]
    assert list(parallel.steps(2, 4, 100, 30)) == [(2, 3), (3, 4)]
    assert list(parallel.steps(3, 3, 0, 1)) == []


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    path.write_text("old")
    path.chmod(0o640)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            whole_files.write(str(path), b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]
    assert path.read_text() == "old"
    link = tmp_path / "link.json"
    link.symlink_to(path)
    whole_files.write(str(link), b"new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    whole_files.write(os.devnull, b"nothing")
    with pytest.raises(OptionError, match=r"^cannot write .*: Is a directory$"):
        whole_files.write(str(tmp_path), b"")
    with pytest.raises(OptionError, match=r"^cannot write .*: No such file or directory$"):
        whole_files.write(str(tmp_path / "none" / "x"), b"")


def test_what_is_to_be_done_before_the_end(monkeypatch, tmp_path):
    """The end itself, but for the exit: in another process it is what the commands above are tested for."""
    done = []
    monkeypatch.setattr(command, "_ending", [])
    monkeypatch.setattr(whole_files, "_over", [])
    monkeypatch.setattr(whole_files, "_lock", threading.Lock())
    half = tmp_path / ".half.tmp"
    half.write_text("ha")
    monkeypatch.setattr(whole_files, "_unfinished", [half])
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr(os, "write", lambda *what: done.append(what))
    monkeypatch.setattr(os, "_exit", done.append)
    assert not command.ending()
    with command.before_end(lambda: done.append("first")), command.before_end(lambda: 1 // 0), whole_files._lock:
        command.end()
    assert done == ["first", (2, b"detmap: interrupted\n"), 130]
    assert command.ending()
    assert not half.exists()


@pytest.mark.compiled
def test_many_thresholds_are_one_pass():
    """As many rankings as thresholds, in a few blocks; of the bits of a threshold only its own word is looked at."""
    truth, found = tables(0)
    few = [0.5, 0.75]
    expected = detmap.evaluate(truth, found, iou_thresholds=few, max_dets=[1, 100])
    many = sorted({*few, *np.linspace(0.3, 0.95, 1000).round(6).tolist()})
    result = detmap.evaluate(truth, found, iou_thresholds=many, max_dets=[1, 100])
    at = [many.index(iou) for iou in few]
    assert np.array_equal(result.precision[at], expected.precision, equal_nan=True)
    assert np.array_equal(result.scores[at], expected.scores, equal_nan=True)
    assert np.array_equal(result.recall[at], expected.recall, equal_nan=True)
    given = {"image_ids": [1, 1], "category_ids": [1, 1], "boxes": np.array([[0.0, 0, 9, 9], [20, 20, 9, 9]])}
    pair = detmap.GroundTruth.from_arrays(**given), detmap.Detections.from_arrays(**given, scores=[0.9, 0.8])
    tally = detmap.evaluate(*pair, iou_thresholds=many).tally
    assert len(Rankings(tally, tally.protocol.max_dets).blocks()) <= 20


FORK = """
import os, random, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import detmap

def work():
    given = dict(image_ids=[1, 1], category_ids=[1, 1], boxes=np.array([[0, 0, 10, 10.0], [20, 20, 10, 10]]))
    truth, found = detmap.GroundTruth.from_arrays(**given), detmap.Detections.from_arrays(**given, scores=[0.9, 0.8])
    return detmap.evaluate(truth, found, threads=2)["AP"]

thread = threading.Thread(target=work)
thread.start()
random.seed(int(sys.argv[1]))
time.sleep(random.random() * 0.6)
children = []
for _ in range(4):
    child = os.fork()
    if not child:
        signal.alarm(40)
        os._exit(work() != 1)
    children.append(child)
    time.sleep(random.random() * 0.05)
thread.join()
raise SystemExit(any(os.waitpid(child, 0)[1] for child in children))
"""


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("seed", sorted({*range(2 * MOMENTS), 31}))  # 31 forks while the first modules are imported
def test_a_fork_while_another_thread_loads_kernels(seed):
    subprocess.run([sys.executable, "-c", FORK, str(seed)], check=True, timeout=120)
