"""Files are written whole, beside others' files, and what killed processes left is removed; nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from detmap import writing
from detmap.batch.scoring import make_folder

OURS, OTHERS = writing._machine(), "00000000"


def unfinished(folder, process, *, machine=OURS, number=0, age=0.0):
    """A file as a process leaves it that is killed while it writes."""
    path = folder / f".detmap-{machine}-{process}-{number:016x}.tmp"
    path.write_bytes(b"ha")
    os.utime(path, (time.time() - age,) * 2)
    return path


@pytest.fixture
def ended():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def running():
    """The number of another process that runs."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate()


def of_folder(folder):
    make_folder(folder)


def of_file(folder):
    writing.write(str(folder / "out.json"), b"new")


@pytest.mark.parametrize("how", [of_folder, of_file])
def test_only_what_killed_processes_left_is_removed(tmp_path, ended, running, how):
    """Files of others stay, whatever their names end in, and so does what another process is writing."""
    names = (
        ".notes.tmp",
        ".model.json.tmp",
        ".detmap.tmp",
        "detmap-1-1-0.tmp",
        f".detmap-{OURS}-{ended}-0.tmp",
        ".tmp",
    )
    stay = [tmp_path / name for name in names]
    for path in stay:
        path.write_bytes(b"mine")
    stay += [unfinished(tmp_path, process) for process in (running, os.getpid())]
    stay.append(unfinished(tmp_path, ended, machine=OTHERS, age=3600))
    folder = tmp_path / f".detmap-{OURS}-{ended}-{'f' * 16}.tmp"
    folder.mkdir()
    left = [unfinished(tmp_path, ended, number=1), unfinished(tmp_path, running, number=1, age=90000)]
    left.append(unfinished(tmp_path, ended, machine=OTHERS, number=1, age=90000))
    how(tmp_path)
    assert [path.name for path in stay if not path.exists()] == []
    assert [path.name for path in left if path.exists()] == []
    assert folder.is_dir()


MEANWHILE = """
import sys
from pathlib import Path
from detmap.batch.scoring import make_folder
from detmap.writing import write_atomically
write_atomically(make_folder(Path(sys.argv[1])) / "model.json", b"theirs")
"""


def test_two_processes_may_write_into_one_folder(tmp_path, monkeypatch):
    """While one has a file half written, another cleans the folder up and writes the same file: the last one has it."""
    replace = os.replace

    def late(source, target):
        assert Path(source).read_bytes() == b"ours"
        monkeypatch.setattr(os, "replace", replace)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", MEANWHILE, str(tmp_path)], check=True, env=environment)
        assert (tmp_path / "model.json").read_bytes() == b"theirs"
        replace(source, target)

    monkeypatch.setattr(os, "replace", late)
    writing.write_atomically(tmp_path / "model.json", b"ours")
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    assert (tmp_path / "model.json").read_bytes() == b"ours"


def test_a_file_may_have_the_longest_name_there_is(tmp_path):
    path = tmp_path / ("x" * 255)
    writing.write_atomically(path, b"all")
    assert path.read_bytes() == b"all"


def test_where_the_system_does_not_say_whether_a_process_runs_its_file_is_given_up_after_a_day(
    tmp_path, monkeypatch, ended
):
    monkeypatch.setattr(sys, "platform", "win32")
    young, old = unfinished(tmp_path, ended), unfinished(tmp_path, ended, number=1, age=90000)
    writing.remove_unfinished(tmp_path)
    assert (young.exists(), old.exists()) == (True, False)


def test_no_folder_and_no_leave_to_look_are_no_error(tmp_path):
    writing.remove_unfinished(tmp_path / "none")
