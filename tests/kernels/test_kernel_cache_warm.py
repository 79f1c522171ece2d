"""The cache of compiled kernels, filled ahead by `detmap warm`."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from kernel_caches import ROOT, compiled, tricks
from kernel_caches import environment as environment

import detmap.kernels
from detmap.cli import compiling, main
from detmap.kernels import KERNELS, _numba


def _all_kernels():
    for module in pkgutil.iter_modules(detmap.kernels.__path__):
        importlib.import_module(f"detmap.kernels.{module.name}")
    home = detmap.kernels.__name__ + "."
    return [function for function in KERNELS if function.__module__.startswith(home)]


@compiled
@tricks
def test_warm_compiles_every_kernel_and_nothing_is_compiled_later(tmp_path, environment):
    """After `detmap warm` each kernel has a file, and files small and large of every command add none."""
    warm = subprocess.run(
        [sys.executable, "-m", "detmap", "warm"], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert warm.stderr == ""
    count, _, folder = warm.stdout.partition("\n")
    home = Path(folder.strip())
    kernels = _all_kernels()
    assert home == Path(kernels[0]._cache.cache_path)
    assert [function for function in kernels if not _numba.is_kept(function)] == [], "add it to cli/workload.py"
    assert int(count.split()[0]) >= 40
    copied = tmp_path / "kept" / _numba._folder_name(Path(detmap.kernels.__file__).parent)
    shutil.copytree(home, copied, ignore=shutil.ignore_patterns("*.pyc", "*.nbi", "*.tmp"))
    before = sorted(path.name for path in copied.iterdir())
    for arguments in _commands(tmp_path):
        run = subprocess.run(
            [sys.executable, "-m", "detmap", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            env={**environment, "NUMBA_CACHE_DIR": str(tmp_path / "kept")},
        )
        assert (run.returncode, run.stderr) == (0, ""), arguments
        new = {path.name for path in copied.iterdir()} - set(before)
        assert not new, f"{arguments[0]} compiled {new}"


def _commands(folder):
    """Every command on files of its own: below and above the size from which files are scanned."""
    draw = np.random.default_rng(3)
    fixtures = ROOT / "fixtures" / "coco"
    coco = (fixtures / "ground_truth.json", fixtures / "detections.json")
    yield ("eval", *coco, "--per-class")
    yield ("eval", *coco, "--bootstrap", "200", "--interval", "bca", "--protocol", "voc2007")
    shutil.copy(coco[1], folder / "other.json")
    yield ("compare", coco[0], coco[1], folder / "other.json", "--bootstrap", "200")
    results = json.loads(coco[1].read_bytes())
    (folder / "large.json").write_text(json.dumps(results * (1 + (1 << 20) // coco[1].stat().st_size)))
    truth = json.loads(coco[0].read_bytes())
    truth["annotations"] = [{**row, "note": "x" * 5000} for row in truth["annotations"]]
    (folder / "truth.json").write_text(json.dumps(truth))
    yield ("eval", folder / "truth.json", folder / "large.json")
    for lines in (20, 40_000):
        with open(folder / f"{lines}.run", "w") as run, open(folder / f"{lines}.qrels", "w") as qrels:
            for i in range(lines):
                run.write(f"q{i % 10} Q0 document{i} {i} {draw.random()} x\n")
                qrels.write(f"q{i % 10} 0 document{i} {i % 3}\n")
        yield ("trec", folder / f"{lines}.qrels", folder / f"{lines}.run", "--per-query")
    ids, cameras = draw.integers(0, 3, 30), draw.integers(0, 2, 30)
    labels = {"query_ids": ids[:9], "gallery_ids": ids, "query_cameras": cameras[:9], "gallery_cameras": cameras}
    features = draw.random((30, 8), np.float32)
    np.savez(folder / "features.npz", query_features=features[:9], gallery_features=features, **labels)
    np.savez(folder / "distances.npz", distances=draw.random((9, 30), np.float32), **labels)
    for convention in ("reid", "cuhk03", "torchmetrics"):
        yield ("reid", folder / "features.npz", "--convention", convention)
        yield ("reid", folder / "distances.npz", "--convention", convention)
    codes = draw.integers(0, 2, (30, 16))
    np.savez(folder / "codes.npz", query_codes=codes[:9], gallery_codes=codes, query_labels=ids[:9], gallery_labels=ids)
    yield ("hashing", folder / "codes.npz")


@pytest.mark.skipif(os.name == "nt", reason="sends the signal of a terminal to a group of processes")
@pytest.mark.parametrize("seconds", [1.5, 6.0])
def test_an_interrupt_ends_warm_and_its_processes(tmp_path, environment, seconds):
    """While it surveys, and while it compiles."""
    arguments = [sys.executable, "-m", "detmap", "warm"]
    settings = {**environment, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(arguments, env=settings, **pipes) as run:
        time.sleep(seconds)
        os.killpg(run.pid, signal.SIGINT)
        assert run.communicate(timeout=60) == ("", "detmap: interrupted\n")
        assert run.returncode == 130
    for _ in range(100):
        try:
            os.killpg(run.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a process is left")
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.endswith(".nbc")]


def test_what_warm_runs_calls_every_kernel_with_one_combination_of_types():
    """The survey, in a process of its own; kernels that only other kernels call are compiled along with those."""
    program = (
        "import json; from detmap.cli import compiling; folder, tasks = compiling._survey('generic'); "
        "print(json.dumps([folder, [task[:2] for task in tasks]]))"
    )
    survey = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    folder, tasks = json.loads(survey.stdout)
    names = [tuple(task) for task in tasks]
    assert len(names) == len(set(names)) > 40
    missing = {(function.__module__, function.__name__) for function in _all_kernels()} - set(names)
    assert sorted(name for _, name in missing if not name.startswith("_")) == [], "add them to cli/workload.py"
    assert Path(folder).is_dir()


@pytest.mark.jit
def test_warm_lists_what_each_kernel_took(monkeypatch, capsys):
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)  # the command would, for good
    made = "/kept", [("m", "a", ()), ("m", "b", ())], {"m.a": 0.5, "m.b": 1.25}
    monkeypatch.setattr(compiling, "compile_all", lambda *_: made)
    assert main(["warm", "--verbose"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("2 kernels, 2 of them compiled now, in ")
    assert lines == ["    1.25 s  m.b", "    0.50 s  m.a", "/kept"]
    assert main(["warm"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["/kept"]


def test_warm_refuses_a_processor_that_does_not_exist_and_a_folder_that_cannot_be_written(tmp_path, environment):
    (tmp_path / "file").touch()
    for arguments, more, line in (
        (["--cpu", "pentium99"], {}, "--cpu 'pentium99': LLVM knows no such processor"),
        ([], {"NUMBA_CACHE_DIR": str(tmp_path / "file" / "x")}, "compiled kernels cannot be kept in "),
    ):
        run = subprocess.run(
            [sys.executable, "-m", "detmap", "warm", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**environment, **more},
        )
        assert (run.returncode, run.stdout) == (2, "")
        assert run.stderr.startswith(f"detmap: error: {line}")
        assert run.stderr.count("\n") == 1
