"""Files compressed by zstd: read and written wherever gzip is, within bounds, and named where nothing reads them."""

from __future__ import annotations

import json
import re
import sys

import pytest
from workloads import make_coco

import detmap
from detmap.cli import main
from detmap.errors import InputError, MissingDependencyError
from detmap.formats import read_bytes
from detmap.installation import install_command
from detmap.reading import sources, zstd
from detmap.retrieval import evaluate_run

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 14) and pytest.importorskip("zstandard") is None, reason="nothing reads zstd here"
)


def pack(data):
    return zstd.compress(data)


def test_every_text_format_is_read_and_written(tmp_path, capsys, monkeypatch):
    """By the name, by the content whatever the name, and from standard input."""
    monkeypatch.chdir(tmp_path)
    dataset, results = make_coco(4, images=4, unknown_categories=False)
    truth = detmap.read_coco(dataset)
    found = detmap.read_coco_results(results, truth)
    detmap.write(truth, "truth.json.zst")
    for name in ("found.json.zst", "found.jsonl.zst", "found.csv.zst", "found.tsv.zst"):
        detmap.write(found, name)
        assert (tmp_path / name).read_bytes()[:4] == zstd.MAGIC
        assert main(["eval", "truth.json.zst", name, "--quiet", "--format", "json"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert made["metrics"] == json.loads(detmap.evaluate(truth, found).to_json())["metrics"]
    (tmp_path / "plain").write_bytes((tmp_path / "found.json.zst").read_bytes())
    assert len(detmap.read("plain", "detections", ground_truth=truth)) == len(found)
    (tmp_path / "qrels").write_bytes(pack(b"1 0 a 1\n1 0 b 0\n"))
    (tmp_path / "run").write_bytes(pack(b"1 Q0 a 1 0.5 x\n1 Q0 b 2 0.25 x\n"))
    assert evaluate_run("qrels", "run")["mAP"] == 1
    (tmp_path / "qrels.csv").write_bytes(pack(b"query-id,corpus-id,score\n1,a,1\n1,b,0\n"))
    assert evaluate_run("qrels.csv", "run")["mAP"] == 1


def test_several_frames_are_one_content():
    data = pack(b"a" * 300_000) + pack(b"") + pack(b"b")
    assert read_bytes(data, "x")[0] == b"a" * 300_000 + b"b"
    assert sources.head(sources.Held.of(data, "x")) == data[:4096]


def test_what_is_damaged_is_refused():
    data = pack(json.dumps(list(range(20_000))).encode())
    for cut in (4, 5, 9, len(data) // 2, len(data) - 1):
        with pytest.raises(InputError, match="damaged zstd data"):
            read_bytes(data[:cut], "x")
    for tail in (b"x", b"\0" * 9):
        with pytest.raises(InputError, match="damaged zstd data: something else follows"):
            read_bytes(data + tail, "x")
    for place in range(4, len(data), 97):
        spoilt = bytearray(data)
        spoilt[place] ^= 1
        with pytest.raises(InputError, match="damaged zstd data"):
            read_bytes(bytes(spoilt), "x")


def test_bombs_are_bounded(monkeypatch, tmp_path):
    monkeypatch.setenv("DETMAP_MOST_INFLATED", "1M")
    data = pack(b"\0" * (64 << 20))
    assert len(data) < 10_000
    with pytest.raises(InputError, match=r"grows beyond . MiB when decompressed"):
        read_bytes(data, "x")
    (tmp_path / "x.json.zst").write_bytes(data)
    with pytest.raises(InputError, match=r"grows beyond . MiB when decompressed"):
        detmap.read(tmp_path / "x.json.zst", "detections")


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    data = pack(b"[]")
    (tmp_path / "x.json.zst").write_bytes(data)
    for name in ("compression", "compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=rf"needs zstandard: {re.escape(install_command('zstd'))}"):
        detmap.read(tmp_path / "x.json.zst", "detections")
    with pytest.raises(MissingDependencyError, match=r"needs zstandard"):
        zstd.compress(b"")
