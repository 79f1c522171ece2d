"""Challenges: splits of the images, limits of every file, messages that tell nothing of the ground truth."""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from batches import FIXTURES, TRUTH, contents, counting, run, variants, write

import detmap
from detmap import batch
from detmap.batch import limited_process
from detmap.batch.discretion import withheld
from detmap.cli import detection
from detmap.errors import InputError, OptionError
from detmap.results import without_nan

pytestmark = pytest.mark.compiled

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system has no /proc")


@pytest.fixture(scope="module")
def truth():
    return detmap.read_coco(TRUTH)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return variants(tmp_path_factory.mktemp("runs"), 3)


@pytest.fixture(scope="module")
def names(truth):
    return {image: "private" if image % 3 else "public" for image in truth.images.ids.tolist()}


@pytest.fixture(scope="module")
def listed(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("splits") / "splits.csv"
    path.write_text("image,split\n" + "".join(f"{image},{split}\n" for image, split in names.items()))
    return path


# --------------------------------------------------------------------------------------------------------------- splits


def test_a_split_scores_as_its_images_alone(truth, files, names, listed):
    """The same bits as an evaluation of just these images; and of all images as without splits."""
    (found,) = batch.score(truth, files[:1], splits=listed, replicates=200)
    (whole,) = batch.score(truth, files[:1], replicates=200)
    detections = detmap.read_coco_results(files[0], truth)
    assert found.splits == ["private", "public"]
    assert {name: found[name] for name in whole} == dict(whole)
    for split in found.splits:
        images = [image for image, name in names.items() if name == split]
        expected = detmap.evaluate(truth, detections, image_ids=images)
        made = detmap.statistics.bootstrap(expected, 200).to_dict()
        for name, value in expected.items():
            assert found[f"{split}:{name}"] == value
            assert list(found.interval(f"{split}:{name}")) == made["intervals"][name]
        assert found.rows(split) == without_nan(expected.per_category)


def test_forms_of_splits(tmp_path, truth, names, listed):
    expected = batch.Splits.read(listed, truth)
    as_json = write(tmp_path, "splits.json", json.dumps({str(image): split for image, split in names.items()}))
    for source in (as_json, names, str(listed)):
        assert batch.Splits.read(source, truth).to_list() == expected.to_list()
    words = detmap.GroundTruth.from_arrays(image_ids=["a", "7"], category_ids=[1, 1], boxes=[[0, 0, 1, 1]] * 2)
    assert batch.Splits.read(write(tmp_path, "w.csv", "split,image_id\nx,7\ny,a\n"), words).names == ("x", "y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("picture,split\n1,a\n", "splits.csv: has no columns image and split; a CSV file has"),
        ("image,split\n1,a\n1,b\n", "line 3, field 'image': is given twice .got 1."),
        ("image,split\n99999999,a\n", "line 2, field 'image': is not an image of the ground truth; leave out"),
        ("image,split\n" + "9" * 30 + ",a\n", "line 2, field 'image': is not an image"),
        ("image,split\nx,a\n", "line 2, field 'image': is not an image"),
        ("image,split\n0_1,a\n", "line 2, field 'image': is not an image"),
        ("image,split\n+1,a\n", "line 2, field 'image': is not an image"),
        ("image,split\n1,\n", "line 2, field 'split': is no name of a split"),
        ("image,split\n1\n", "line 2, field 'split': is no name of a split"),
        ("image,split\n1,AP50\n", "is no name of a split: .* not beginning as a metric"),
        ("image,split\n1,a:b\n", "is no name of a split"),
        ("image,split\n1,\x1b[31m\n", "is no name of a split"),
        (
            "image,split\n1,a\n",
            r"59 of 60 images of the ground truth are in no split, the first of them \d+; give every",
        ),
        ('{"1": 3}', "image '1', field 'split': is no name of a split"),
        ('{"1": "a"', "is neither a CSV file nor JSON of splits"),
        ("[" * 100_000, "has no columns"),
        ('{"a":' * 100_000, "is neither a CSV file nor JSON of splits"),
        ("\xff\xfe", "has no columns"),
        ('image,split\n"1', "is neither a CSV file"),
    ],
)
def test_bad_splits_are_one_line(tmp_path, capsys, truth, text, message):
    ids = truth.images.ids.tolist()
    path = write(tmp_path, "splits.csv", text.replace("\n1,", f"\n{ids[0]},").replace('"1"', f'"{ids[0]}"'))
    message = message.replace("got 1", f"got {ids[0]}").replace("'1'", f"'{ids[0]}'")
    code, _, err = run(capsys, "batch", TRUTH, FIXTURES / "detections.json", "--splits", path)
    assert code == 2
    assert "Traceback" not in err
    assert err.count("\n") == 1
    with pytest.raises(InputError, match=message):
        batch.Splits.read(path, truth)


def test_too_many_splits(truth):
    with pytest.raises(InputError, match="has 101 splits, and 100 are the most"):
        batch.Splits.read({image: f"s{i}" for i, image in enumerate([*truth.images.ids.tolist()] * 2)}, truth) if (
            len(truth.images.ids) > 100
        ) else batch.Splits.read({f"{' ' * i}{truth.images.ids[0]}": f"s{i}" for i in range(101)}, truth)


def test_the_board_is_ranked_by_a_split_and_hides_another(tmp_path, capsys, files, listed):
    arguments = ["batch", TRUTH, *files, "--splits", listed]
    code, out, err = run(capsys, *arguments, "--out", tmp_path / "all", "--rank-by", "public:AP50")
    assert (code, err) == (0, "")
    assert out.splitlines()[2].split() == ["rank", "model", "AP50", "private:AP50", "public:AP50"]
    rows = list(csv.DictReader((tmp_path / "all/leaderboard.csv").read_text().splitlines()))
    assert [float(row["public:AP50"]) for row in rows] == sorted(
        (float(row["public:AP50"]) for row in rows), reverse=True
    )
    document = json.loads((tmp_path / "all/leaderboard.json").read_text())
    assert document["splits"] == ["private", "public"]
    code, out, _ = run(capsys, *arguments, "--hide", "private", "--out", tmp_path / "public")
    assert code == 0
    assert out.splitlines()[2].split() == ["rank", "model", "public:AP"]
    private = {
        str(value) for one in document["models"] for name, value in one["metrics"].items() if "public" not in name
    }
    private -= {str(value) for one in document["models"] for name, value in one["metrics"].items() if "public" in name}
    assert len(private) > 20
    for path, data in contents(tmp_path / "public", "leaderboard.*").items():
        assert b"private" not in data, path
        assert not any(value.encode() in data for value in private), path
    for kind in ("csv", "json", "markdown"):
        _, out, _ = run(capsys, *arguments, "--hide", "private", "--format", kind)
        assert "private" not in out
        assert '"AP"' not in out
    kept = json.loads((tmp_path / "public/results/model-000.json").read_text())
    assert list(kept["splits"]) == ["private", "public"]  # for the organisers


def test_hiding_costs_no_new_score(tmp_path, capsys, monkeypatch, files, listed):
    arguments = ["batch", TRUTH, *files, "--splits", listed, "--out", tmp_path]
    assert run(capsys, *arguments, "--hide", "private")[0] == 0
    read = counting(monkeypatch)
    code, out, _ = run(capsys, *arguments, "--resume", "--rank-by", "private:AP")
    assert (code, read) == (0, [])
    assert "private:AP" in out
    other = write(tmp_path, "other.csv", listed.read_text().replace("public", "open"))
    assert run(capsys, *arguments[:-4], "--splits", other, "--out", tmp_path, "--resume")[0] == 0
    assert len(read) == 3


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--hide", "private", "--rank-by", "private:AP"], "cannot rank by 'private:AP'; one of: public:AP,"),
        (["--hide", "private", "--rank-by", "AP"], "cannot rank by 'AP'; one of: public:AP,"),
        (["--hide", "secret"], "no split 'secret' to hide; one of: private, public"),
        (["--hide", "private", "--hide", "public"], "all splits are hidden"),
    ],
)
def test_what_cannot_be_hidden(capsys, files, listed, more, message):
    code, _, err = run(capsys, "batch", TRUTH, files[0], "--splits", listed, *more)
    assert code == 2
    assert message in err


def test_hide_needs_splits(capsys, files):
    code, _, err = run(capsys, "batch", TRUTH, files[0], "--hide", "private")
    assert code == 2
    assert "--hide needs --splits FILE" in err


@pytest.mark.slow
def test_groups_and_intervals_of_a_split_are_those_of_its_images(truth, capsys, files, names, listed):
    images = [image for image, split in names.items() if split == "private"]
    tallies = {
        path.stem: detmap.match(truth, detmap.read_coco_results(path, truth), image_ids=images) for path in files
    }
    compared = detmap.compare(tallies, 200, 0, permutations=300)
    arguments = ["--splits", listed, "--rank-by", "private:AP", "--bootstrap", 200, "--permutations", 300]
    code, out, _ = run(capsys, "batch", TRUTH, *files, *arguments, "--format", "json")
    assert code == 0
    document = json.loads(out)
    assert {one["model"]: one["group"] for one in document["models"]} == compared.groups
    assert {(p["first"], p["second"]): p["p"] for p in document["tests"]["pairs"]} == {
        (one.first, one.second): one.p for one in compared.differences
    }
    assert all(one["intervals"]["private:AP"] != one["intervals"]["public:AP"] for one in document["models"])
    assert "by private:AP" in run(capsys, "batch", TRUTH, *files, *arguments)[1]


# --------------------------------------------------------------------------------------------------------------- limits


def test_within_limits_the_bits_are_the_same(tmp_path, capsys, files):
    arguments = ["batch", TRUTH, *files[:1]]
    assert run(capsys, *arguments, "--out", tmp_path / "a")[0] == 0
    limits = ["--limit-seconds", 300, *(["--limit-memory", "2G"] if os.path.exists("/proc/self/status") else [])]
    code, _, err = run(capsys, *arguments, *limits, "--out", tmp_path / "b")
    assert code == 0, err
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_many_files_are_scored_by_a_process_per_thread(tmp_path, capsys, files, monkeypatch):
    """Threads wait for each other's Python, which takes most of the time that small files take."""
    lacking = tmp_path / "lacking.json"
    arguments = ["batch", TRUTH, *files[:2], lacking, "--threads", 2]
    expected = run(capsys, *arguments, "--out", tmp_path / "a")
    assert expected[0] == 3
    started, original = [], limited_process.subprocess.Popen
    monkeypatch.setattr(
        limited_process.subprocess, "Popen", lambda *a, **k: started.append(original(*a, **k)) or started[-1]
    )
    monkeypatch.setattr(detection, "_MANY", 3)
    assert run(capsys, *arguments, "--out", tmp_path / "b") == expected
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert len(started) == 2
    options = {"scheduler": None, "threads": 2, "resume": False}
    entries = batch.find([*files[:2], lacking])
    assert detection._deserve_processes(argparse.Namespace(**options), entries)
    for other in ({"threads": 1}, {"scheduler": "tcp://one:8786"}, {"resume": True}):
        assert not detection._deserve_processes(argparse.Namespace(**options | other), entries)
    assert not detection._deserve_processes(argparse.Namespace(**options), entries[1:])
    assert not detection._deserve_processes(argparse.Namespace(**options), [*entries, batch.Entry("it", "-")])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process is not forked")
def test_without_a_limit_the_process_that_is_ready_scores_itself():
    try:
        ready, again, of_its_own = (
            limited_process.run(limits, int, os.getpid, (), ())
            for limits in (batch.Limits(), batch.Limits(), batch.Limits(seconds=100))
        )
    finally:
        limited_process.close()
    assert ready == again != of_its_own


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process is not forked")
def test_files_within_limits_share_a_process_that_is_ready(files, truth, monkeypatch):
    """Each file took the time of loading everything; nothing is left of the process."""
    started, original = [], limited_process.subprocess.Popen

    def note(*arguments, **options):
        started.append(original(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(limited_process.subprocess, "Popen", note)
    found = list(batch.score(truth, files, limits=batch.Limits(seconds=300), threads=1))
    assert [one.error for one in found] == [None] * len(files)
    assert len(files) > 1
    assert len(started) == 1
    assert started[0].wait(60) is not None


PLUGIN = """
import time
from detmap.formats.inputs import Input
read = Input.detections
def slow(found, *rest, **options):
    source = found.path
    if "slow" in str(source):
        time.sleep(60)
    if "large" in str(source):
        kept = [bytes(1 << 20) + b"x" for _ in range(4000)]
    if "crash" in str(source):
        import os
        os._exit(7)
    if "odd" in str(source):
        class Odd(Exception):
            pass
        raise Odd("no two processes know this class")
    print("what somebody prints")
    return read(found, *rest, **options)
Input.detections = slow
"""


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize(
    ("option", "value", "errors"),
    [
        (
            "--limit-seconds",
            4,
            {
                "slow": "stopped: it reached the limit of 4 seconds (--limit-seconds)",
                "crash": "its process ended without a result (code 7)",
                "good": None,
            },
        ),
        # Without a limit of time: a busy system takes seconds to hand out this much memory.
        (
            "--limit-memory",
            "400M",
            {
                "large": "stopped: it reached the limit of 400 MiB of memory (--limit-memory)",
                "odd": "Odd: 'no two processes know this class'",
                "good": None,
            },
        ),
    ],
)
def test_the_row_says_which_limit_was_reached(tmp_path, capsys, monkeypatch, option, value, errors):
    """The others are scored; nothing of the process is left."""
    from detmap import plugins

    write(tmp_path, "mischief_of_tests.py", PLUGIN)
    monkeypatch.setattr(plugins, "loaded", lambda: (str(tmp_path / "mischief_of_tests.py"),))
    data = (FIXTURES / "detections.json").read_bytes()
    for name in errors:
        write(tmp_path, f"runs/{name}.json", data)
    arguments = ["batch", TRUTH, tmp_path / "runs", option, value, "--threads", 2]
    code, out, _ = run(capsys, *arguments, "--format", "json", "--out", tmp_path / "out")
    assert code == 3
    assert {one["model"]: one["error"] for one in json.loads(out)["models"]} == errors


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--limit-seconds", 0, "must be a number of seconds above 0"),
        ("--limit-seconds", "nan", "must be a number of seconds above 0"),
        ("--limit-memory", "much", "--limit-memory must be a size above 0, such as 512M or 4G, not 'much'"),
        ("--limit-memory", "0G", "--limit-memory must be a size above 0"),
        ("--limit-memory", "4000", "--limit-memory 4000 is 4,000 bytes, less than scoring any file takes"),
    ],
)
def test_limits_that_are_none(capsys, files, option, value, message):
    code, _, err = run(capsys, "batch", TRUTH, files[0], option, value)
    assert code == 2
    assert message in err


def hold(size):
    kept = np.ones(size, np.uint8)
    time.sleep(0.5)
    return kept.size


@needs_proc
def test_memory_counts_from_what_a_process_has_when_its_task_begins():
    """A fork begins with fewer pages of libraries than the process that it is a fork of."""
    limits = batch.Limits(memory=10 << 20)
    try:
        assert limited_process.run(limits, int, hold, (), (1 << 20,)) == 1 << 20
        with pytest.raises(limited_process.LimitError, match="10 MiB of memory"):
            limited_process.run(limits, int, hold, (), (20 << 20,))
    finally:
        limited_process.close()


class TwoWordsError(Exception):
    """It is pickled, and cannot be made again."""

    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def refuse():
    raise TwoWordsError("not", "today")


def test_an_error_that_cannot_be_made_again_keeps_its_words():
    try:
        with pytest.raises(detmap.DetmapError, match="TwoWordsError: 'not today'"):
            limited_process.run(batch.Limits(seconds=100), int, refuse, (), ())
    finally:
        limited_process.close()


@needs_proc
def test_nothing_outlives_the_process_that_asked():
    """Limits are held by that process: without it a file that never ends would be scored for ever."""
    program = (
        "from detmap.batch import limited_process as one\n"
        "one.run(one.Limits(seconds=100), int, eval, (), (\"__import__('time').sleep(100)\",))"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        until = time.monotonic() + 60
        while len(found := descendants(process.pid)) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        assert len(found) == 2  # what serves it, and the fork
    finally:
        process.terminate()
        process.wait()
    until = time.monotonic() + 10
    while any(map(alive, found)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(alive, found))


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def descendants(process):
    try:
        own = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [*own, *(deeper for one in own for deeper in descendants(one))]


@pytest.mark.parametrize("kind", [np.str_, type("Text", (str,), {})], ids=["numpy", "subclass"])
def test_names_that_are_other_kinds_of_strings(truth, files, kind):
    (found,) = batch.score(truth, [batch.Entry(kind("m"), kind(files[0]))])
    assert (found.document["name"], found.document["source"]) == ("m", str(files[0]))


def test_limits_and_streams(truth, monkeypatch):
    with pytest.raises(OptionError, match="cannot come from standard input"):
        batch.score(truth, ["-"], limits=batch.Limits(seconds=3))
    with pytest.raises(OptionError, match="a number of bytes above 0"):
        batch.Limits(memory=-1)
    monkeypatch.setattr(limited_process, "_resident", lambda process: 0)
    with pytest.raises(OptionError, match="does not tell how much memory"):
        batch.Limits(memory=1 << 30)


def test_sizes():
    from detmap.system import limits

    assert [limits.size(text, "it") for text in ("1", "2K", "3m", "4GiB", " 1TB ")] == [
        1,
        2048,
        3 << 20,
        4 << 30,
        1 << 40,
    ]
    assert [limited_process._shown(size) for size in (1 << 30, 3 << 20, 1024, 1000)] == [
        "1 GiB",
        "3 MiB",
        "1 KiB",
        "1000 bytes",
    ]


# ------------------------------------------------------------------------------------------------------------- discretion


def changed(**fields):
    records = json.loads((FIXTURES / "detections.json").read_text())
    return json.dumps([{**records[0], **fields}, *records[1:]])


TELLING = {  # each message names something of the ground truth
    "image": changed(image_id=5),
    "words": json.dumps([{**one, "image_id": "5"} for one in json.loads((FIXTURES / "detections.json").read_text())]),
    "category": json.dumps(
        [{**one, "category_id": "x"} for one in json.loads((FIXTURES / "detections.json").read_text())]
    ),
}
PLAIN = {
    "cut": '[{"image_id": 1',
    "score": changed(score="high"),
    "box": changed(bbox=[0, 0, -1, 5]),
    "lacking": "[{}]",
}


def test_messages_tell_nothing_of_the_ground_truth(tmp_path, capsys):
    """What comes of the file alone is said; all else is for the organisers."""
    for name, text in {**TELLING, **PLAIN, "good": changed(category_id=99)}.items():
        write(tmp_path, f"runs/{name}.json", text)
    code, plain, _ = run(capsys, "batch", TRUTH, tmp_path / "runs", "--format", "json")
    assert code == 3
    full = {one["model"]: one["error"] for one in json.loads(plain)["models"]}
    arguments = ["batch", TRUTH, tmp_path / "runs", "--discreet", "--out", tmp_path / "out"]
    code, out, err = run(capsys, *arguments, "--format", "json")
    assert code == 3
    said = {one["model"]: one["error"] for one in json.loads(out)["models"]}
    for name in TELLING:
        assert said[name] != full[name]
        assert said[name].endswith("in a format of this task, with the ids that it gives to images and categories?")
        assert "ground truth have" not in said[name]
        assert json.loads((tmp_path / f"out/results/{name}.json").read_text())["error_in_full"] == full[name]
    assert len({said[name].partition(": ")[2] for name in TELLING}) == 1
    for name in PLAIN:
        assert said[name] == full[name]
    assert [one["notices"] for one in json.loads(out)["models"] if not one["error"]] == [{}]
    shown = run(capsys, *arguments)
    for text in (
        err,
        *shown[1:],
        *(data.decode(errors="replace") for data in contents(tmp_path / "out", "*.*").values()),
    ):
        assert not any(full[name] in text for name in TELLING)
        assert "does not have" not in text
        assert "without ground truth" not in text


@pytest.mark.slow
@pytest.mark.parametrize("few", [False, True])
def test_tests_and_intervals_tell_no_number_of_images(tmp_path, capsys, files, few):
    """The sentence about groups told how many images have objects, and so did the reason for no interval."""
    truth = json.loads(TRUTH.read_text())
    if few:
        held = {one["image_id"] for one in truth["annotations"][:4]}
        truth["images"] = [one for one in truth["images"] if one["id"] in held]
        truth["annotations"] = [one for one in truth["annotations"] if one["image_id"] in held]
    path = write(tmp_path, "truth.json", json.dumps(truth))
    runs = tmp_path / "runs"
    for source in files:
        own = [one for one in json.loads(source.read_text()) if not few or one["image_id"] in held]
        write(runs, source.name, json.dumps(own))
    with_objects = len({one["image_id"] for one in truth["annotations"]})
    arguments = ["batch", path, runs, "--bootstrap", "200", "--permutations", "200"]
    said = []
    for more in ([], ["--discreet"]):
        code, out, err = run(capsys, *arguments, *more, "--out", tmp_path / f"out{len(more)}")
        assert code == 0
        code, document, _ = run(capsys, *arguments, *more, "--format", "json", "--quiet")
        boards = contents(tmp_path / f"out{len(more)}", "leaderboard.*")
        pages = [data.decode(errors="replace") for name, data in boards.items() if "parquet" not in str(name)]
        said.append("\n".join([out, err, document, *pages]))
        assert ("images" in json.loads(document)["tests"]) is not bool(more)
    told = f": {with_objects}, and it takes" if few else f"{with_objects} images with something to find"
    assert told in said[0]
    assert told not in said[1]
    assert "images with something to find" not in said[1]
    assert ("no interval of AP" in said[1]) is few


def test_discretion_about_errors_that_nobody_foresaw(monkeypatch, truth, files, tmp_path):
    from detmap.formats.inputs import Input

    def fail(*_, **options):
        raise KeyError("a secret of the ground truth")

    monkeypatch.setattr(Input, "detections", fail)
    (found,) = batch.score(truth, files[:1], discreet=True, out=tmp_path)
    assert "secret" not in found.error
    assert "secret" in found.document["error_in_full"]
    said = withheld(InputError("x"), "x", "path", lambda: fail())
    assert "secret" not in str(said)
    assert said.__reduce__()[1] == (said.said, "x")


@needs_proc
def test_discretion_about_limits(truth, files, tmp_path):
    (found,) = batch.score(truth, files[:1], discreet=True, limits=batch.Limits(seconds=1e-9, memory=1 << 40))
    assert found.error == "stopped: it reached the limit of 1e-09 seconds (--limit-seconds)"
