"""Where bytes come from: files that change while they are read, streams, links, and lists within objects."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import socket
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import numba
import numpy as np
import pytest

import detmap
from detmap import batch
from detmap.cli import main
from detmap.errors import InputError, OptionError
from detmap.formats import _open, _source, files
from detmap.kernels import readonly, texts

UNCOMPILED = bool(numba.config.DISABLE_JIT)
FIXTURES = Path(__file__).parent.parent / "fixtures"
TRUTH = {
    "images": [{"id": i} for i in range(40)],
    "annotations": [
        {"id": i + 1, "image_id": i, "category_id": 1, "bbox": [10, 10, 20, 20], "area": 400, "iscrowd": 0}
        for i in range(40)
    ],
    "categories": [{"id": 1, "name": "cat"}],
}
XML = """<annotation><object><name>cat</name><difficult>0</difficult><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax>
<ymax>5</ymax></bndbox></object></annotation>"""
needs_fifo = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


def results(count, x=10.0):
    """Detections, of which those at ``x=10`` are hits."""
    return [{"image_id": i % 40, "category_id": 1, "bbox": [x, 10, 20, 20], "score": 0.5} for i in range(count)]


def large(x=10.0):
    """Results that the scanner reads by windows."""
    return json.dumps(results(16_000, x)).encode()


def encoded(value):
    return json.dumps(value).encode()


def same(one, other):
    return (
        one.boxes.tobytes() == other.boxes.tobytes()
        and one.images.values[one.images.codes].tolist() == other.images.values[other.images.codes].tolist()
    )


def write(path, data):
    path.write_bytes(data)
    return path


@contextlib.contextmanager
def piped(path, *contents):
    """Write each content to a named pipe, once, as readers come."""

    def feed():
        for content in contents:
            with contextlib.suppress(BrokenPipeError), path.open("wb") as file:
                file.write(content)

    os.mkfifo(path)
    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    yield path
    thread.join(20)
    assert not thread.is_alive(), "nobody read the pipe"


# Files that change --------------------------------------------------------------------------------------------------


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
    read, calls, lock = _open.File.read_into, [], threading.Lock()

    def read_into(self, out, place):
        with lock:
            calls.append(place)
            if len(calls) == moment:
                change(path)
        read(self, out, place)

    monkeypatch.setattr(_open.File, "read_into", read_into)
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
            stamp, calls = _open.File._stamp, []

            def changing(self, stamp=stamp, calls=calls, path=path):
                if calls:
                    append(path)
                calls.append(self)
                return stamp(self)

            patch.setattr(_open.File, "_settled", changing)
            patch.setattr(_open.File, "_stamp", changing)
            with pytest.raises(InputError, match="changed while it was read"):
                reader(path)


def test_a_change_within_the_tick_of_the_clock_is_seen(tmp_path):
    """Two writes within a few milliseconds can leave a file with the same time: reading waits until that is over."""
    path = write(tmp_path / "a", b"a" * 100)
    file = _open.open_path(path)
    path.write_bytes(b"b" * 100)
    assert bytes(file.read()) == b"b" * 100
    with pytest.raises(InputError, match="changed"):
        file.__exit__(None, None, None)


def test_a_file_that_is_replaced_is_read_as_it_was(tmp_path):
    path = write(tmp_path / "a", b"old")
    write(tmp_path / "b", b"new!")
    with _open.open_path(path) as file:
        os.replace(tmp_path / "b", path)
        assert bytes(file.read()) == b"old"


def test_a_folder_that_changes_is_an_error(tmp_path):
    for i in range(3):
        write(tmp_path / f"{i}.xml", XML.encode())
    found = _source.members(tmp_path, ".xml", "annotations")
    next(found)
    write(tmp_path / "0.xml", XML.encode() + b" ")
    with pytest.raises(InputError, match="changed while it was read"):
        list(found)


def test_without_positional_reads_the_bytes_are_the_same(tmp_path, monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(os, "preadv", raising=False)
    data = random.Random(1).randbytes(9 << 20)
    with _open.open_path(write(tmp_path / "a", data)) as file:
        assert bytes(file.read()) == data


def test_a_batch_gives_the_row_of_a_file_that_changed_between_hash_and_reading(tmp_path, monkeypatch):
    write(tmp_path / "gt.json", encoded(TRUTH))
    path, other = write(tmp_path / "a.json", encoded(results(40))), write(tmp_path / "b.json", encoded(results(40)))
    read = files.read_detections

    def changing(source, *rest):
        if str(source) == str(path):
            path.write_bytes(encoded(results(40, 11)))
        return read(source, *rest)

    monkeypatch.setattr(files, "read_detections", changing)
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


# Streams ------------------------------------------------------------------------------------------------------------


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


def standard_input(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


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
        _open.most_streamed()
    monkeypatch.delenv("DETMAP_MOST_STREAMED")
    assert _open.most_streamed() <= 4 << 30
    monkeypatch.delattr(os, "sysconf")
    assert _open.most_streamed() == 4 << 30


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


# Links and names ----------------------------------------------------------------------------------------------------


def packed(members, **links):
    """A tar archive of texts, and of links: ``(kind, target)``."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(text, tuple):
                info.type, info.linkname = text
                tar.addfile(info)
            else:
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


HARD, SYMBOLIC, DEVICE = tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE


def test_links_in_an_archive_are_followed():
    members = {
        "d/1.xml": XML,
        "d/2.xml": (HARD, "d/1.xml"),
        "d/3.xml": (SYMBOLIC, "1.xml"),
        "d/4.xml": (SYMBOLIC, "../e/f/x"),
        "e/f": (SYMBOLIC, "../g"),
        "g/x": (SYMBOLIC, "../d/2.xml"),
        "h/1.xml": (HARD, "./d/1.xml"),  # the same file again
        "./d/5.XML": XML,
    }
    for data in (packed(members), gzip.compress(packed(members))):
        truth = detmap.read_voc(data)
        assert truth.images.values.tolist() == ["1", "2", "3", "4", "5"]
        assert len(truth) == 5


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ((SYMBOLIC, "none.xml"), "is a link to 'none.xml', which is not in the archive"),
        ((HARD, "d/none.xml"), "is a link to 'd/none.xml', which is not in the archive"),
        ((SYMBOLIC, "../../etc/1.xml"), "which lies outside of the archive"),
        ((SYMBOLIC, "/etc/1.xml"), "which lies outside of the archive"),
        ((SYMBOLIC, "2.xml"), "which leads in a circle"),
        ((HARD, "d/2.xml"), "which leads in a circle"),
        ((SYMBOLIC, "../d"), "which is not in the archive"),
        ((SYMBOLIC, "dev"), "which is no file"),
        ((DEVICE, ""), "is neither a file nor a link"),
    ],
)
def test_links_of_an_archive_that_lead_nowhere(link, message):
    with pytest.raises(InputError) as caught:
        detmap.read_voc(packed({"d/1.xml": XML, "d/dev": (DEVICE, ""), "d/2.xml": link}))
    assert message in str(caught.value)
    assert "annotations/d/2.xml" in str(caught.value)


def test_an_archive_of_links_is_no_bomb(monkeypatch):
    monkeypatch.setenv("DETMAP_MOST_INFLATED", "1000")
    monkeypatch.setattr(_source, "_FACTOR", 1)
    big = XML + " " * 20_000
    with pytest.raises(InputError, match="so many links"):
        detmap.read_voc(packed({"1.xml": big, **{f"{i}.xml": (HARD, "1.xml") for i in range(2, 100)}}))


def test_an_archive_that_is_cut_is_an_error():
    data = packed({f"{i}.xml": XML + " " * 3000 for i in range(4)})
    with pytest.raises(InputError, match="is a damaged tar archive"):
        detmap.read_voc(data[:6000])


def linked(path, target):
    try:
        path.symlink_to(target)
    except OSError:
        pytest.skip("the system has no symbolic links")


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        ("../.git/annex/objects/a/b/c", "git annex get"),
        ("/home/dvc/cache/01/23", "dvc pull"),
        ("none", "or remove the link"),
    ],
)
def test_dangling_links_are_named_with_the_remedy(tmp_path, target, remedy):
    write(tmp_path / "1.xml", XML.encode())
    linked(tmp_path / "2.xml", target)
    linked(tmp_path / "dt.json", target)
    for read in (detmap.read_voc, files.fingerprint):
        with pytest.raises(InputError) as caught:
            read(tmp_path) if read is detmap.read_voc else _source.fingerprint(tmp_path, ".xml")
        assert "2.xml: is a link to" in str(caught.value)
        assert remedy in str(caught.value)
    with pytest.raises(InputError, match=r"dt\.json: is a link to .*, which is not there"):
        detmap.read_coco_results(tmp_path / "dt.json")


def test_links_of_a_folder(tmp_path):
    write(tmp_path / "there", XML.encode())
    linked(tmp_path / "1.xml", "there")
    assert len(detmap.read_voc(tmp_path)) == 1
    linked(tmp_path / "2.xml", "2.xml")
    with pytest.raises(InputError, match=r"2\.xml"):
        detmap.read_voc(tmp_path)


def test_suffixes_in_any_case(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("i1.xml", "i2.XML", "i3.Xml"):
        write(folder / name, XML.encode())
    (folder / "i4.XML").mkdir()
    by_name = dict.fromkeys(("i1.xml", "i2.XML", "i3.Xml"), XML)
    for source in (folder, by_name, packed(by_name)):
        assert detmap.read_voc(source).images.values.tolist() == ["i1", "i2", "i3"]
    (folder / "i4.XML").rmdir()
    lines = {"comp4_det_test_cat.TXT": "i1 .5 1 2 3 5\n"}
    write(tmp_path / "comp4_det_test_cat.TXT", lines["comp4_det_test_cat.TXT"].encode())
    for source in (tmp_path, lines, packed(lines)):
        assert len(detmap.read_voc_results(source)) == 1
    assert files.is_one_of_detections(str(tmp_path))
    for source in ({"a.xml": XML, "a.XML": XML}, packed({"a.xml": XML, "a.XML": XML})):
        with pytest.raises(InputError, match=r"holds two files of one name: 'a\.xml' and 'a\.XML'"):
            detmap.read_voc(source)
    write(folder / "i1.XML", XML.encode())
    if len(list(folder.iterdir())) == 4:  # not on a file system that makes them one
        with pytest.raises(InputError, match=r"holds two files of one name: 'i1\.XML' and 'i1\.xml'"):
            detmap.read_voc(folder)


@needs_fifo
def test_a_pipe_in_a_folder_is_named(tmp_path):
    os.mkfifo(tmp_path / "1.xml")
    with pytest.raises(InputError, match=r"1\.xml: is neither a file nor a folder"):
        detmap.read_voc(tmp_path)


# Results within an object -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, pytest.param(16_000, marks=pytest.mark.skipif(UNCOMPILED, reason="takes long"))])
@pytest.mark.parametrize("key", ["annotations", "predictions"])
def test_results_within_an_object_are_read_like_the_list(tmp_path, monkeypatch, key, count):
    """Large ones through the scanner."""
    listed = detmap.read_coco_results(results(count))
    for document in (
        {key: results(count)},
        {"info": {"x": [1, "}"]}, key: results(count), "licenses": []},
        {"images": TRUTH["images"], "categories": TRUTH["categories"], key: results(count)},
    ):
        path = write(tmp_path / "dt.json", encoded(document))
        with monkeypatch.context() as patch:
            if count > 1000:
                patch.setattr("detmap.formats.coco._decode_object", None)
            for source in (path, path.read_bytes()):
                assert same(detmap.read_coco_results(source), listed)
        assert same(detmap.read_coco_results(document), listed)
    assert same(detmap.read_coco_results(b"\xef\xbb\xbf " + encoded({key: results(count)})), listed)
    assert len(detmap.read_coco_results(encoded({key: []}))) == 0


REFUSED = {
    "has both annotations and predictions; keep the list": {"annotations": results(1), "predictions": results(1)},
    "is ground truth where detections were expected; are the arguments swapped?": TRUTH,
    "is ground truth where detections were expected": {"images": [], "annotations": []},
    "is not a list of detections but an object": {"detections": results(1)},
    "field 'predictions': must be a list, not a string": {"predictions": "none"},
    "record 1, field 'score': is missing": {"predictions": [results(1)[0], {**results(1)[0], "score": None, "x": 1}]},
    "record 0, field 'score': is missing": {"annotations": [TRUTH["annotations"][0]]},
}
del REFUSED["record 1, field 'score': is missing"]["predictions"][1]["score"]


@pytest.mark.parametrize("message", REFUSED)
def test_objects_that_are_ambiguous(message):
    for source in (REFUSED[message], encoded(REFUSED[message])):
        with pytest.raises(InputError) as caught:
            detmap.read_coco_results(source)
        assert message in str(caught.value)


@pytest.mark.parametrize("count", [1, pytest.param(16_000, marks=pytest.mark.skipif(UNCOMPILED, reason="takes long"))])
def test_two_lists_of_one_name_are_an_error(count):
    data = encoded({"predictions": results(count)})
    with pytest.raises(InputError, match="field 'predictions': is there twice"):
        detmap.read_coco_results(data[:-1] + b', "predictions": []}')


def test_the_kernel_keeps_strings_as_its_twin_does():
    generator = random.Random(3)
    data = generator.randbytes(200)
    pairs = [(generator.randrange(190), generator.randrange(9)) for _ in range(50)]
    words = np.array([begin << texts.LENGTH_BITS | length for begin, length in pairs], np.uint64)
    words[7] = texts.ABSENT
    expected = b"".join(data[a : a + n] for i, (a, n) in enumerate(pairs) if i != 7)
    kept = np.empty(len(expected), np.uint8)
    texts.keep(readonly(np.frombuffer(data, np.uint8), np.uint8), words, kept, 1000)
    assert kept.tobytes() == expected
    assert words[7] == texts.ABSENT
    for i, (begin, length) in enumerate(pairs):
        place, size = divmod(int(words[i]), 1 << texts.LENGTH_BITS)
        assert i == 7 or (size == length and expected[place - 1000 :][:size] == data[begin : begin + length])


def test_results_by_names_are_read_from_standard_input(tmp_path, monkeypatch, capsys):
    """What standard input holds is not known before the ground truth is read, which is to say the names of images."""
    truth = {
        "images": [{"id": 7, "file_name": "train/seven.jpg"}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [5, 5, 9, 9], "area": 81, "iscrowd": 0}],
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "comp4_det_test_cat.txt").write_text("seven 0.5 5 5 14 14\n")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as made:
        made.add(tmp_path / "comp4_det_test_cat.txt", "comp4_det_test_cat.txt")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(archive.getvalue())))
    assert main(["eval", str(tmp_path / "truth.json"), "-", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["AP50"] == pytest.approx(1)
