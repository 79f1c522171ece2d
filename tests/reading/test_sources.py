"""Where bytes come from: files that change while they are read."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
import threading

import pytest
from source_files import TRUTH, UNCOMPILED, XML, encoded, large, packed, results, write

import detmap
from detmap import batch
from detmap.errors import InputError
from detmap.formats.inputs import Input
from detmap.reading import opening, sources


def truncate(path):
    os.truncate(path, 4096)


def empty(path):
    os.truncate(path, 0)


def rewrite(path):
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data.replace(b"20, 20]", b"20, 21]"))


def append(path):
    with path.open("ab") as file:
        file.write(b" ")


@pytest.mark.skipif(UNCOMPILED, reason="a large file takes too long")
@pytest.mark.parametrize("moment", [1, 2, 3, 5])
@pytest.mark.parametrize("change", [truncate, empty, rewrite, append])
def test_a_file_that_changes_between_two_reads_is_an_error(tmp_path, monkeypatch, change, moment):
    path = write(tmp_path / "dt.json", large())
    read, calls, lock = opening.File.read_into, [], threading.Lock()

    def read_into(self, out, place):
        with lock:
            calls.append(place)
            if len(calls) == moment:
                change(path)
        read(self, out, place)

    monkeypatch.setattr(opening.File, "read_into", read_into)
    with pytest.raises(InputError, match=r"dt\.json: changed while it was read; wait until"):
        detmap.read_coco_results(path)


def test_a_small_file_that_changes_is_an_error(tmp_path, monkeypatch):
    for name, data, reader in (
        ("dt.json", encoded(results(3)), detmap.read_coco_results),
        ("dt.json.gz", gzip.compress(encoded(results(300))), detmap.read_coco_results),
        ("a.tar", packed({"1.xml": XML}), detmap.read_voc),
    ):
        path = write(tmp_path / name, data)
        with monkeypatch.context() as patch:
            stamp, calls = opening.File._stamp, []

            def changing(self, stamp=stamp, calls=calls, path=path, **options):
                if calls:
                    append(path)
                calls.append(self)
                return stamp(self)

            patch.setattr(opening.File, "_settled", changing)
            patch.setattr(opening.File, "_stamp", changing)
            with pytest.raises(InputError, match="changed while it was read"):
                reader(path)


def test_a_change_within_the_tick_of_the_clock_is_seen(tmp_path):
    """Two writes within a few milliseconds can leave a file with the same time: reading waits until that is over."""
    path = write(tmp_path / "a", b"a" * 100)
    file = opening.open_path(path)
    path.write_bytes(b"b" * 100)
    assert bytes(file.read()) == b"b" * 100
    with pytest.raises(InputError, match="changed"):
        file.__exit__(None, None, None)


def test_a_file_that_is_replaced_is_read_as_it_was(tmp_path):
    path = write(tmp_path / "a", b"old")
    write(tmp_path / "b", b"new!")
    with opening.open_path(path) as file:
        os.replace(tmp_path / "b", path)
        assert bytes(file.read()) == b"old"


def test_a_folder_that_changes_is_an_error(tmp_path):
    for i in range(3):
        write(tmp_path / f"{i}.xml", XML.encode())
    found = sources.members(tmp_path, ".xml", "annotations")
    next(found)
    write(tmp_path / "0.xml", XML.encode() + b" ")
    with pytest.raises(InputError, match="changed while it was read"):
        list(found)


def test_without_positional_reads_the_bytes_are_the_same(tmp_path, monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(os, "preadv", raising=False)
    data = random.Random(1).randbytes(9 << 20)
    with opening.open_path(write(tmp_path / "a", data)) as file:
        assert bytes(file.read()) == data


def test_a_batch_gives_the_row_of_a_file_that_changed_between_hash_and_reading(tmp_path, monkeypatch):
    write(tmp_path / "gt.json", encoded(TRUTH))
    path, other = write(tmp_path / "a.json", encoded(results(40))), write(tmp_path / "b.json", encoded(results(40)))
    read = Input.detections

    def changing(self, *given, **options):
        if str(self.path) == str(path):
            path.write_bytes(encoded(results(40, 11)))
        return read(self, *given, **options)

    monkeypatch.setattr(Input, "detections", changing)
    found = {one.entry.name: one for one in batch.score(tmp_path / "gt.json", [path, other], out=tmp_path / "out")}
    assert "changed while it was read" in found["a"].error
    assert found["b"].error is None


RACE = """
import os, random, sys, threading
from detmap import batch
folder, seed = sys.argv[1], int(sys.argv[2])
names = [os.path.join(folder, n) for n in ("a.json", "b.json")]
contents = [open(os.path.join(folder, n), "rb").read() for n in ("one", "two")]
generator = random.Random(seed)
stop = threading.Event()
def disturb():
    while not stop.wait(generator.random() * 0.03):
        path = names[0]
        if generator.random() < 0.5:
            os.truncate(path, generator.randrange(len(contents[0])))
            stop.wait(generator.random() * 0.01)
        with open(path, "wb") as file:
            file.write(generator.choice(contents))
thread = threading.Thread(target=disturb)
thread.start()
for _ in range(20):
    for one in batch.score(os.path.join(folder, "gt.json"), names):
        print(one.entry.name, one.error or repr(one["AP"]), flush=True)
stop.set()
thread.join()
"""


@pytest.mark.slow
@pytest.mark.skipif(UNCOMPILED, reason="a large file takes too long")
def test_truncations_at_random_moments_of_a_batch(tmp_path):
    """Each row is right for one of the two contents, or an error; the other file's row is always right."""
    write(tmp_path / "gt.json", encoded(TRUTH))
    for name, x in (("one", 10.0), ("two", 11.0)):
        write(tmp_path / name, large(x))
    for name in ("a.json", "b.json"):
        write(tmp_path / name, large())
    done = subprocess.run(
        [sys.executable, "-c", RACE, tmp_path, "7"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    right = [
        repr(detmap.evaluate(detmap.read_coco(tmp_path / "gt.json"), detmap.read_coco_results(tmp_path / name))["AP"])
        for name in ("one", "two")
    ]
    assert right[0] != right[1]
    rows = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert len(rows) == 40
    for name, outcome in rows:
        assert outcome in (right if name == "a" else right[:1]) or (name == "a" and "a.json" in outcome), outcome
