"""Files are written whole, beside others' files, and what killed processes left is removed; nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from detmap.batch.scoring import make_folder
from detmap.cli import main
from detmap.errors import OptionError
from detmap.system import whole_files

COCO = Path(__file__).resolve().parents[2] / "fixtures" / "coco"
TRUTH, FOUND = COCO / "ground_truth.json", COCO / "detections.json"

OURS, OTHERS = whole_files._machine(), "00000000"


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
    whole_files.write(str(folder / "out.json"), b"new")


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
from detmap.system.whole_files import write_atomically
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
    whole_files.write_atomically(tmp_path / "model.json", b"ours")
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    assert (tmp_path / "model.json").read_bytes() == b"ours"


def test_a_file_may_have_the_longest_name_there_is(tmp_path):
    path = tmp_path / ("x" * 255)
    whole_files.write_atomically(path, b"all")
    assert path.read_bytes() == b"all"


def test_where_the_system_does_not_say_whether_a_process_runs_its_file_is_given_up_after_a_day(
    tmp_path, monkeypatch, ended
):
    monkeypatch.setattr(sys, "platform", "win32")
    young, old = unfinished(tmp_path, ended), unfinished(tmp_path, ended, number=1, age=90000)
    whole_files.remove_unfinished(tmp_path)
    assert (young.exists(), old.exists()) == (True, False)


def test_no_folder_and_no_leave_to_look_are_no_error(tmp_path):
    whole_files.remove_unfinished(tmp_path / "none")


# ------------------------------------------------------------------------------------------------------- several at once


def failing(monkeypatch, where, name, at):
    """Let a function fail as on a full disk, the `at`-th time that it is called."""
    calls, original = [], getattr(where, name)

    def fail(*arguments, **options):
        calls.append(arguments)
        if len(calls) == at:
            if name == "write_bytes":
                original(arguments[0], arguments[1][:1])
            raise OSError(28, "No space left on device")
        return original(*arguments, **options)

    monkeypatch.setattr(where, name, fail)
    return calls


@pytest.mark.parametrize("there", [(), ("a", "b", "c"), ("b",), ("a", "c")], ids=str)
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(("where", "name"), [(Path, "write_bytes"), (os, "replace")])
def test_of_files_that_belong_together_all_are_replaced_or_none(tmp_path, monkeypatch, where, name, at, there):
    for one in there:
        (tmp_path / one).write_bytes(b"old")
    files = {tmp_path / one: b"new " * 1000 for one in "abc"}
    with monkeypatch.context() as patched:
        failing(patched, where, name, at)
        with pytest.raises(OptionError, match=r"cannot write .*: No space left on device"):
            whole_files.write_together(files)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == dict.fromkeys(there, b"old")
    whole_files.write_together(files)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == dict.fromkeys("abc", b"new " * 1000)


def test_a_file_system_without_links(tmp_path, monkeypatch):
    for one in "ab":
        (tmp_path / one).write_bytes(b"old")
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(1, "no links")))
    failing(monkeypatch, os, "replace", 2)
    with pytest.raises(OptionError, match="No space left"):
        whole_files.write_together({tmp_path / one: b"new" for one in "ab"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old", "b": b"old"}


@pytest.mark.parametrize("at", range(1, 6))
def test_a_board_is_replaced_as_a_whole(tmp_path, monkeypatch, at):
    """A disk that was full left the table of one evaluation beside the page of another."""
    arguments = ["batch", str(TRUTH), str(FOUND), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(arguments) == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("leaderboard.*")}
    assert len(before) == 5
    with monkeypatch.context() as patched:
        # One file of results and the index of what was seen are written before the board.
        failing(patched, Path, "write_bytes", 2 + at)
        assert main([*arguments, "--rank-by", "AP50"]) == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*board.*")} == before
    assert [path.name for path in (tmp_path / "out").rglob(".detmap-*")] == []
    assert main([*arguments, "--rank-by", "AP50"]) == 0
    assert (tmp_path / "out" / "leaderboard.json").read_bytes() != before["leaderboard.json"]
