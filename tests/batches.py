"""Files for tests of many files, how `detmap batch` is run on them, and what it wrote."""

from __future__ import annotations

import concurrent.futures
import functools
import gzip
import json
import random
import re
from pathlib import Path

import pytest

import detmap
from detmap import batch, cli
from detmap.batch import seen, workers
from detmap.formats.inputs import Input

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures" / "coco"
TRUTH = FIXTURES / "ground_truth.json"


def variants(folder, count, keep=0.5):
    """Files of detections with noise on their scores; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"model-{i:03d}.json" for i in range(count)]
    for i, path in enumerate(paths):
        path.write_text(_noisy(i, keep))
    return paths


@functools.cache
def _noisy(i, keep):
    records, rng = json.loads((FIXTURES / "detections.json").read_text()), random.Random(f"0 {i}")
    noisy = [{**row, "score": round(row["score"] + rng.gauss(0, 0.1 * i), 3)} for row in records]
    return json.dumps([row for row in noisy if rng.random() < keep])


@pytest.fixture(scope="module", autouse=True)
def few_permutations():
    """Fewer than are drawn by default; how many a number of models takes is tested in test_statistics_permutations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("detmap.statistics.comparison.permutations_needed", lambda hypotheses, alpha: 1000)
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return variants(tmp_path_factory.mktemp("runs"), 5)


@pytest.fixture(scope="module")
def truth():
    return detmap.read_coco(TRUTH)


def run(capsys, *arguments):
    try:
        code = cli.main(list(map(str, arguments)))
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


def contents(folder, pattern="**/*"):
    """What lies in a folder, by path, but for what was seen of files; the page without the minute that it was made in."""
    return {
        str(path.relative_to(folder)): re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC", b"", path.read_bytes())
        for path in Path(folder).glob(pattern)
        if path.is_file() and path.name not in ("leaderboard.parquet", seen.NAME)
    }


def write(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def broken_files(folder):
    """Twenty files that cannot be scored, each for a reason of its own."""
    good = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}

    def record(**changes):
        return json.dumps([good, {**good, **changes}])

    whole = (FIXTURES / "detections.json").read_bytes()
    texts = {
        "empty": "",
        "blank": " \n",
        "cut": whole[: len(whole) // 2],
        "not json": "image_id,score\n1,0.5\n",
        "binary": bytes(range(256)) * 20,
        "object": "{}",
        "number": "42",
        "swapped": TRUTH.read_bytes(),
        "no score": json.dumps([{k: v for k, v in good.items() if k != "score"}]),
        "nan": record(score=float("nan")),
        "text score": record(score="high"),
        "short box": record(bbox=[1, 2, 3]),
        "negative": record(bbox=[1, 2, -3, 4]),
        "infinite": record(bbox=[1, 2, 3, float("inf")]),
        "stray image": record(image_id=987654321),
        "mixed ids": record(image_id="one"),
        "nested": "[" * 100_000,
        "bad gzip.gz": gzip.compress(whole)[:1000],
        "surrogate": b'[{"image_id": "\xff\xfe"}]',
    }
    paths = [
        write(folder, f"{name}.json" if not name.endswith(".gz") else "bad gzip.json.gz", text)
        for name, text in texts.items()
    ]
    return [*paths, folder / "missing.json"]


def counting(monkeypatch):
    """Count the files that are really read."""
    read, original = [], Input.detections

    def count(found, *rest, **options):
        read.append(Path(found.path).name)
        return original(found, *rest, **options)

    monkeypatch.setattr(Input, "detections", count)
    return read


def results(out):
    return sum(1 for path in (out / "results").glob("*.json")) if (out / "results").is_dir() else 0


def outcome(name, **metrics):
    return batch.FileResult(batch.Entry(name, name), {"metrics": metrics, "protocol": {}, "per_category": []})


class Forgetful(concurrent.futures.Executor):
    """Runs a task at once, in one of three workers by turns; arguments are pickled as if they were sent."""

    _max_workers = 3

    def __init__(self):
        self.workers, self.turn, self.sent = [workers._kept.__class__() for _ in range(3)], 0, 0

    def submit(self, task, *arguments):
        import pickle

        self.sent += arguments[2] is not None
        task, arguments = pickle.loads(pickle.dumps((task, arguments)))
        workers._kept, self.turn = self.workers[self.turn % 3], self.turn + 1
        future = concurrent.futures.Future()
        try:
            future.set_result(task(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


def cut(records, parts, seed):
    """Deal the images of records to parts, whole."""
    rng = random.Random(seed)
    part = {}
    out = [[] for _ in range(parts)]
    for row in records:
        out[part.setdefault(row["image_id"], rng.randrange(parts))].append(row)
    return out


def shards_of_fixture(folder, parts=3):
    shards = cut(json.loads((FIXTURES / "detections.json").read_text()), parts, 5)
    return [write(folder, f"part-{i}.json", json.dumps(shard)) for i, shard in enumerate(shards)]
