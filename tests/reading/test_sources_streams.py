"""Where bytes come from: pipes, standard input, and streams without an end."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
from source_files import TRUTH, XML, encoded, needs_fifo, packed, piped, results, standard_input, write

import detmap
from detmap.cli import main
from detmap.errors import InputError, OptionError
from detmap.formats import files
from detmap.reading import opening


@needs_fifo
@pytest.mark.parametrize("packing", [bytes, gzip.compress])
def test_both_sides_from_pipes(tmp_path, capsys, packing):
    truth, found = packing(encoded(TRUTH)), packing(encoded(results(40)))
    with piped(tmp_path / "gt", truth) as gt, piped(tmp_path / "dt", found) as dt:
        assert main(["eval", str(gt), str(dt), "--format", "json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["AP"] == 1


@needs_fifo
@pytest.mark.compiled
def test_a_batch_and_a_comparison_read_pipes_once(tmp_path, capsys):
    gt = str(write(tmp_path / "gt.json", encoded(TRUTH)))
    other = str(write(tmp_path / "other.json", encoded(results(40, 13))))
    with piped(tmp_path / "dt", encoded(results(40))) as dt:
        assert main(["batch", gt, str(dt), other, "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert json.loads((tmp_path / "out" / "results" / "dt.json").read_bytes())["metrics"]["AP"] == 1
    with piped(tmp_path / "again", encoded(results(40))) as dt:
        assert main(["compare", gt, str(dt), other, "--bootstrap", "200", "--quiet"]) == 0
    with piped(tmp_path / "shard", encoded(results(40))) as dt:
        assert main(["eval", gt, str(dt), "--sharded", "--quiet"]) == 0
    capsys.readouterr()


@needs_fifo
def test_judgements_from_a_pipe_serve_several_runs(tmp_path, capsys):
    runs = [str(write(tmp_path / f"{i}.run", b"q 0 d 1 1 t\nq 0 e 2 %d t\n" % (2 * i))) for i in range(2)]
    with piped(tmp_path / "qrels", b"q 0 d 1\n") as qrels:
        assert main(["trec", str(qrels), *runs, "--metrics", "map", "--format", "csv"]) == 0
    assert "map,1" in capsys.readouterr().out.lower()


@needs_fifo
def test_shells_substitute_processes(tmp_path):
    gt = write(tmp_path / "gt.json", encoded(TRUTH))
    dt = write(tmp_path / "dt.json.gz", gzip.compress(encoded(results(40))))
    command = f"'{sys.executable}' -m detmap eval '{gt}' <(gzip -dc '{dt}') --format json --quiet"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["AP"] == 1


def test_standard_input(tmp_path, capsys, monkeypatch):
    gt, dt = write(tmp_path / "gt.json", encoded(TRUTH)), write(tmp_path / "dt.json", encoded(results(40)))
    lines = b"\n".join(map(encoded, results(40)))
    for arguments, data in (
        (["eval", "-", str(dt)], encoded(TRUTH)),
        (["eval", str(gt), "-"], encoded(results(40))),
        (["eval", str(gt), "-"], lines),
        (["batch", str(gt), "-", str(dt)], gzip.compress(encoded(results(40)))),
    ):
        standard_input(monkeypatch, data)
        assert main([*arguments, "--format", "csv", "--quiet"]) == 0
        assert "error" not in capsys.readouterr().err
    with dt.open() as file, monkeypatch.context() as patch:  # detmap batch gt.json - < dt.json
        patch.setattr(sys, "stdin", file)
        assert main(["batch", str(gt), "-", "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert '"AP": 1.0' in next((tmp_path / "out" / "results").glob("*.json")).read_text()


def test_arrays_from_standard_input(tmp_path, capsys, monkeypatch):
    arrays = io.BytesIO()
    np.savez(arrays, distances=[[0.1, 0.2]], query_ids=[1], gallery_ids=[1, 2])
    standard_input(monkeypatch, arrays.getvalue())
    assert main(["reid", "-", "--convention", "market1501", "--format", "csv"]) in (0, 2)
    codes = io.BytesIO()
    ones = np.ones((2, 8), np.int8)
    np.savez(codes, query_codes=ones, gallery_codes=ones, query_labels=[1, 2], gallery_labels=[1, 2])
    standard_input(monkeypatch, codes.getvalue())
    assert main(["hashing", "-", "--format", "csv"]) == 0
    standard_input(monkeypatch, b"no")
    assert main(["hashing", "-"]) == 2
    assert main(["hashing", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_a_tar_archive_from_standard_input(capsys, monkeypatch):
    standard_input(monkeypatch, packed({"1.xml": XML}))
    assert len(files.read_ground_truth("-")) == 1
    standard_input(monkeypatch, gzip.compress(packed({"comp4_det_test_cat.txt": "1 .5 1 2 3 5\n"})))
    assert len(files.read_detections("-", detmap.read_voc({"1.xml": XML}))) == 1


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input: is closed"):
        detmap.read_coco("-")


@needs_fifo
def test_what_can_be_read_once_is_given_once(tmp_path, capsys):
    gt = str(write(tmp_path / "gt.json", encoded(TRUTH)))
    assert main(["eval", "-", "-"]) == 2
    assert "standard input (-) is given twice" in capsys.readouterr().err
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OptionError, match="pipe is given twice, and can be read only once"):
        files.once([gt, gt, None, tmp_path / "none", tmp_path / "pipe", str(tmp_path / "pipe")])
    assert main(["batch", gt, "-", "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "workers of --scheduler cannot read standard input" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="the system has no /dev/zero")
def test_a_stream_without_an_end_is_bounded(monkeypatch):
    with pytest.raises(
        InputError, match=r"/dev/zero: goes on after 1 MiB, the most that is read from a device; write it"
    ):
        files.read_detections("/dev/zero", detmap.read_coco(encoded(TRUTH)))
    monkeypatch.setenv("DETMAP_MOST_STREAMED", "8M")
    with open("/dev/zero", "rb") as zeros, subprocess.Popen(["cat"], stdin=zeros, stdout=subprocess.PIPE) as endless:
        with pytest.raises(
            InputError, match=r"goes on after 8 MiB, the most .*, or the environment variable DETMAP_MOST_S"
        ):
            detmap.read_coco(f"/dev/fd/{endless.stdout.fileno()}")
        endless.kill()
    monkeypatch.setenv("DETMAP_MOST_STREAMED", "a lot")
    with pytest.raises(
        OptionError, match="DETMAP_MOST_STREAMED must be a size above 0, such as 512M or 4G, not 'a lot'"
    ):
        opening.most_streamed()
    monkeypatch.delenv("DETMAP_MOST_STREAMED")
    assert opening.most_streamed() <= 4 << 30
    monkeypatch.delattr(os, "sysconf")
    assert opening.most_streamed() == 4 << 30


def test_what_is_no_file(tmp_path):
    with pytest.raises(InputError, match="is a folder; give a file"):
        detmap.read_coco(tmp_path)
    with pytest.raises(InputError, match="cannot be read: embedded null"):
        detmap.read_coco("a\0b")
    if hasattr(socket, "AF_UNIX"):
        with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(tmp_path):
            one.bind("s")
            with pytest.raises(InputError, match="is a socket"):
                detmap.read_coco("s")
    if os.path.exists("/proc/self/status"):  # a file that says it is empty
        with pytest.raises(InputError, match="is not valid JSON"):
            detmap.read_coco("/proc/self/status")
