"""The index of what was seen: `--resume` reads no file that is as it was, and any other again."""

from __future__ import annotations

import json
import os
import time

import pytest
from batches import TRUTH, Forgetful, contents, counting, variants, write
from batches import truth as truth

from detmap import batch
from detmap.batch import saving, seen
from detmap.formats.inputs import Input

pytestmark = pytest.mark.compiled


@pytest.fixture
def hashed(monkeypatch):
    """Names of the files whose content is read for its hash, as all are that are not left unread."""
    read, original = [], Input.fingerprint
    monkeypatch.setattr(
        Input, "fingerprint", lambda found: read.append(os.path.basename(found.path)) or original(found)
    )
    return read


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Files that were just written count as old."""
    monkeypatch.setattr(seen, "_SETTLED", 0)
    time.sleep(0.02)


def stamps_of(path):
    with Input(path, "detections").unchanged() as stamps:
        return stamps


def state(path, stamps=None, shared="options"):
    return seen.state(path, stamps or stamps_of(path), time.time_ns(), shared)


@pytest.fixture
def scored(tmp_path, hashed):
    """Three files that were scored, a call that scores them again and returns what it has read, and the index."""
    paths = variants(tmp_path / "runs", 3, keep=0.1)

    def again(**more):
        hashed.clear()
        time.sleep(0.02)  # dates are those of the kernel's last tick
        found = list(batch.score(TRUTH, [tmp_path / "runs"], out=tmp_path / "out", resume=True, **more))
        assert not [one.error for one in found if one.error]
        return sorted(hashed)

    assert again() == [path.name for path in paths]
    return paths, again, tmp_path / "out/results" / seen.NAME


def test_an_unchanged_file_is_not_read(scored, tmp_path):
    _, again, index = scored
    before, state = contents(tmp_path / "out"), index.stat()
    assert again() == []
    assert again(threads=1) == []
    assert contents(tmp_path / "out") == before
    assert (index.stat().st_mtime_ns, index.stat().st_ino) == (state.st_mtime_ns, state.st_ino)


def test_a_touched_file_is_read_once_and_not_scored(scored, monkeypatch):
    paths, again, _ = scored
    os.utime(paths[1])
    read = counting(monkeypatch)
    assert again() == [paths[1].name]
    assert again() == []
    assert read == []


@pytest.mark.parametrize("place", ["rewritten", "replaced", "longer"])
def test_a_file_with_its_old_date_is_read_again(scored, tmp_path, place):
    """Rewritten in place with its size; replaced by another file of its size; replaced by a longer one."""
    paths, again, _ = scored
    result = tmp_path / "out/results" / paths[1].name
    state, data, before = paths[1].stat(), paths[1].read_bytes(), json.loads(result.read_text())
    at = data.index(b'"score": 0.') + len(b'"score": 0.')
    other = data[:at] + (b"1" if data[at : at + 1] != b"1" else b"2") + data[at + 1 :]
    assert len(other) == len(data)
    target = paths[1] if place == "rewritten" else tmp_path / "new"
    target.write_bytes(other + b" " * (place == "longer"))
    target.replace(paths[1])
    os.utime(paths[1], ns=(state.st_atime_ns, state.st_mtime_ns))
    assert paths[1].stat().st_mtime_ns == state.st_mtime_ns
    assert (paths[1].stat().st_ino == state.st_ino) == (place == "rewritten")
    assert again() == [paths[1].name]
    assert json.loads(result.read_text())["content"] != before["content"]
    assert again() == []


@pytest.mark.parametrize("field", range(4))
def test_inode_size_and_both_dates_count(tmp_path, field):
    """The date of a file's state changes with any other; each alone is enough."""
    (path,) = variants(tmp_path, 1)
    time.sleep(0.02)
    (stamp,) = stamps_of(path)
    assert (before := state(path))
    assert state(path) == before
    assert state(path, [(*stamp[:field], stamp[field] - 1, *stamp[field + 1 :])]) != before


def test_another_path_or_other_options_are_another_state(tmp_path, monkeypatch):
    (path,) = variants(tmp_path, 1)
    os.link(path, tmp_path / "other.json")
    time.sleep(0.02)
    states = [state(path), state(path, shared="other"), state(tmp_path / "other.json")]
    assert len(set(states)) == 3
    assert "" not in states
    monkeypatch.chdir(tmp_path)
    assert state(path.name) == states[0]


def test_a_file_that_was_written_to_just_now_is_read_again(scored, monkeypatch):
    """Within the resolution of its dates it may be rewritten without a sign."""
    paths, again, _ = scored
    monkeypatch.setattr(seen, "_SETTLED", 3600 * 10**9)
    assert again() == [path.name for path in paths]
    monkeypatch.setattr(seen, "_SETTLED", 0)
    assert again() == [path.name for path in paths]
    assert again() == []


@pytest.mark.parametrize("change", [{"max_dets": (1, 10)}, {"unknown_images": "ignore"}, {"replicates": 200}])
def test_other_options_read_all_again(scored, change):
    paths, again, _ = scored
    names = [path.name for path in paths]
    assert again(**change) == names
    assert again(**change) == []
    assert again() == names


def test_other_ground_truth_reads_all_again(scored, tmp_path, hashed):
    paths, _, _ = scored
    other = json.loads(TRUTH.read_text())
    other["annotations"][0]["bbox"][0] += 1
    truth = write(tmp_path, "truth.json", json.dumps(other))
    hashed.clear()
    list(batch.score(truth, paths, out=tmp_path / "out", resume=True))
    assert sorted(hashed) == [path.name for path in paths]


def test_a_result_that_is_damaged_or_replaced_is_made_again(scored, tmp_path):
    paths, again, _ = scored
    results = [tmp_path / "out/results" / path.name for path in paths]
    expected = contents(tmp_path / "out")
    results[0].write_bytes(b"{")
    results[1].write_bytes(results[2].read_bytes())
    assert again() == [path.name for path in paths[:2]]
    assert contents(tmp_path / "out") == expected


def test_an_interrupted_run_keeps_what_it_has_seen(tmp_path, hashed, truth):
    paths = variants(tmp_path / "runs", 4, keep=0.1)
    time.sleep(0.02)
    arguments = {"out": tmp_path / "out", "threads": 1, "resume": True}
    half = batch.score(truth, paths, **arguments)
    first = [next(half).entry.name for _ in range(2)]
    half.close()
    hashed.clear()
    whole = batch.score(truth, paths, **arguments)
    assert next(whole)
    whole.close()  # before the others are looked at: what an earlier run has seen of them is kept
    list(batch.score(truth, paths, **arguments))
    assert not {f"{name}.json" for name in first} & set(hashed)
    hashed.clear()
    assert len(list(batch.score(truth, paths, **arguments))) == 4
    assert hashed == []


def _cut(data):
    return data[: len(data) // 2]


def _hostile(files):
    return lambda data: saving.sealed({"files": files})


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        lambda data: b"",
        lambda data: data.replace(b'"model-000.json"', b'"model-001.json"', 1),
        lambda data: b"[" * 100_000,
        _hostile(None),
        _hostile([]),
        _hostile({"model-000.json": None, "model-001.json": "ab", "model-002.json": ["a"]}),
        _hostile({"model-000.json": [[], {}], "model-001.json": ["", ""], "model-002.json": [None, None]}),
        lambda data: saving.sealed({"files": [json.loads(data)["files"]]}),
    ],
)
def test_a_damaged_index_is_ignored_and_made_again(scored, tmp_path, damage):
    paths, again, index = scored
    expected, whole = contents(tmp_path / "out"), index.read_bytes()
    index.write_bytes(damage(whole))
    assert again() == [path.name for path in paths]
    assert contents(tmp_path / "out") == expected
    assert index.read_bytes() == whole
    assert again() == []


def test_an_index_says_no_key_that_is_no_result_s(scored):
    paths, again, index = scored
    files = json.loads(index.read_bytes())["files"]
    index.write_bytes(saving.sealed({"files": {name: [state, "0" * 64] for name, (state, _) in files.items()}}))
    assert again() == [path.name for path in paths]


def test_a_large_index_is_not_read(scored, monkeypatch):
    paths, again, index = scored
    monkeypatch.setattr(seen, "_LARGEST", index.stat().st_size - 1)
    assert again() == [path.name for path in paths]
    monkeypatch.setattr(seen, "_LARGEST", index.stat().st_size)
    assert again() == []


def test_an_index_that_is_no_file_stops_nothing(scored):
    paths, again, index = scored
    index.unlink()
    index.mkdir()
    assert again() == [path.name for path in paths]
    index.rmdir()
    os.mkfifo(index)
    assert again() == [path.name for path in paths]


def test_a_file_that_cannot_be_scored_is_tried_again(tmp_path, hashed):
    (path,) = variants(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:-1])
    for _ in range(2):
        time.sleep(0.02)
        (one,) = batch.score(TRUTH, [path], out=tmp_path / "out", resume=True)
        assert one.error
    assert hashed == [path.name] * 2


def test_workers_of_executors_and_processes_with_limits_look_too(tmp_path, monkeypatch):
    paths = variants(tmp_path / "runs", 3, keep=0.1)
    time.sleep(0.02)
    arguments = {"out": tmp_path / "out", "resume": True}
    first = {one.entry.name: one.document for one in batch.score(TRUTH, paths, **arguments)}
    monkeypatch.setattr(Input, "fingerprint", lambda found: 1 / 0)
    for more in ({"executor": Forgetful()}, {"limits": batch.Limits(seconds=60), "threads": 1}):
        assert {one.entry.name: one.document for one in batch.score(TRUTH, paths, **arguments, **more)} == first


def test_a_folder_of_results_counts_each_file(tmp_path, hashed):
    folder = tmp_path / "run"
    folder.mkdir()
    home = TRUTH.parent.parent / "voc"
    for path in (home / "results").glob("*.txt"):
        (folder / path.name).write_bytes(path.read_bytes())
    time.sleep(0.02)
    arguments = {"out": tmp_path / "out", "resume": True, "protocol": "voc2012"}
    truth = home / "Annotations"
    assert not next(iter(batch.score(truth, [folder], **arguments))).error
    for changed in (False, True, False):
        hashed.clear()
        if changed:
            os.utime(min(folder.iterdir()))
            time.sleep(0.02)
        list(batch.score(truth, [folder], **arguments))
        assert hashed == ["run"] * changed
