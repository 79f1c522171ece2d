"""What hostile input takes: a small multiple of it, or it is refused with the name of the limit."""

from __future__ import annotations

import functools
import gzip
import json
import re
import tracemalloc
import weakref

import numpy as np
import pytest
from batches import run, write

import detmap
from detmap import results
from detmap.columns import texts
from detmap.data.ids import coded
from detmap.detection import evaluate as detection
from detmap.detection import pair_limits
from detmap.detection.given import Owned
from detmap.errors import InputError, OptionError
from detmap.reading import record_walk
from detmap.reading.sources import compressed
from detmap.system import limits

MB = 1 << 20


def peak(task):
    """Return the outcome of a task and the most bytes that Python and numpy held meanwhile."""
    tracemalloc.start()
    try:
        outcome = task()
        return outcome, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


RECORD = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.5}


@functools.cache
def bombs():
    """Documents of about 2 MB whose records take 24 times as much."""
    empty = b"{}," * 700_000 + b"{}"
    good = json.dumps(RECORD).encode()
    truth = b'{"categories": [{"id": 1}], "images": [' + empty + b'], "annotations": []}'
    return {
        "a list": (b"[" + empty + b"]", "record 0, field 'image_id': is missing", "x.json"),
        "after a good one": (b"[" + good + b"," + empty + b"]", "record 1, field 'image_id': is missing", "x.json"),
        "of lists": (b"[" + empty.replace(b"{}", b"[]") + b"]", "record 0: must be an object, not a list", "x.json"),
        "an object": (b'{"predictions": [' + empty + b"]}", "record 0, field 'image_id': is missing", "x.json"),
        "lines": (empty.replace(b",", b"\n"), "record 0, field 'image_id': is missing", "x.jsonl"),
        "ground truth": (truth, "image 0, field 'id': is missing", "x.json"),
        "cut": (b"[" + good + b"," + b"[" * 2 * MB, "is not valid JSON|nested too deeply", "x.json"),
    }


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "iou_type", "packed"),
    [  # every pair of values of two of them
        (name, iou_type, (place + (iou_type == "segm")) % 2 == 1)
        for place, name in enumerate(bombs())
        for iou_type in ("bbox", "segm")
    ],
)
def test_documents_of_empty_objects(tmp_path, name, iou_type, packed):
    """25 KB of gzip took 772 MB."""
    data, message, called = bombs()[name]
    path = write(tmp_path, called + ".gz" * packed, gzip.compress(data) if packed else data)
    read = detmap.read_coco if name == "ground truth" else detmap.read_coco_results

    def refused():
        with pytest.raises(InputError, match=message) as caught:
            read(path, iou_type=iou_type)
        return str(caught.value)

    refused()  # what is loaded the first time is no part of it
    said, taken = peak(refused)
    assert "\n" not in said
    assert taken < 8 * len(data) + 8 * MB


@pytest.mark.compiled
def test_what_is_large_and_in_order_is_read_as_before(tmp_path):
    records = [{**RECORD, "image_id": i} for i in range(20_000)]
    path = write(tmp_path, "x.json", json.dumps(records))
    assert len(detmap.read_coco_results(path)) == 20_000
    assert not record_walk.crowded(path.read_bytes())
    odd = json.dumps([{**RECORD, "segmentation": "", "other": [[]] * 300_000}]).encode()
    assert len(detmap.read_coco_results(odd)) == 1
    with pytest.raises(InputError, match="is not valid JSON"):
        detmap.read_coco_results(odd.replace(b"[[]", b"[NaN, []", 1))
    with pytest.raises(InputError, match="holds more lists and objects than such a file can have"):
        detmap.read_coco_results(odd.replace(b'"score"', b'"score": 0.1, "score"', 1), iou_type="segm")


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("iou_type", "field", "item", "lines"),
    [  # every pair of values of two of them
        ("bbox", "bbox", b"1.5,", False),
        ("segm", "bbox", b'"a",', True),
        ("bbox", "bbox", b"7,", True),
        ("segm", "image_id", b"1.5,", True),
        ("bbox", "image_id", b'"a",', False),
        ("segm", "image_id", b"7,", False),
        ("bbox", "score", b"1.5,", True),
        ("segm", "score", b'"a",', False),
        ("segm", "score", b"7,", True),
    ],
)
def test_a_long_list_where_one_value_belongs(tmp_path, iou_type, field, item, lines):
    """It was decoded as a whole: 16 times its size, half a minute for 50 million numbers."""
    record = json.dumps({**RECORD, field: "?"}).encode().replace(b'"?"', b"[%b1]" % (item * 2_000_000))
    data = record + b"\n" if lines else b"[%b]" % record
    path = write(tmp_path, "x.jsonl" if lines else "x.json", data)

    def refused():
        with pytest.raises(InputError, match=f"record 0, field '{field}'") as caught:
            detmap.read_coco_results(path, iou_type=iou_type)
        return str(caught.value)

    refused()
    said, taken = peak(refused)
    assert "\n" not in said
    assert taken < 5 * len(data)


@pytest.mark.compiled
def test_a_long_list_that_is_not_read_hides_no_error_and_is_none(tmp_path):
    data = json.dumps([{**RECORD, "other": [1.5] * 500_000}, {**RECORD, "score": "x"}]).encode()
    with pytest.raises(InputError, match="record 1, field 'score': must be a number, not a string"):
        detmap.read_coco_results(data)
    assert len(detmap.read_coco_results(data.replace(b'"x"', b"0.5"))) == 2
    with pytest.raises(InputError, match="is not valid JSON"):
        detmap.read_coco_results(data.replace(b'"x"', b'0.5, "more": NaN'))


@pytest.mark.parametrize("packed", ["gz", "zst"])
@pytest.mark.parametrize("piped", [False, True], ids=["file", "bytes"])
def test_what_is_decompressed_is_held_once(tmp_path, monkeypatch, packed, piped):
    """Pieces that were joined in the end took twice the limit."""
    monkeypatch.setenv("DETMAP_MOST_INFLATED", "64M")
    data = compressed(b"[" + b" " * (80 * MB), f"x.{packed}")
    source = data if piped else write(tmp_path, f"x.json.{packed}", data)

    def refused():
        with pytest.raises(InputError, match="grows beyond 64 MiB when decompressed"):
            detmap.read_coco_results(source)

    refused()
    assert peak(refused)[1] < 1.3 * 64 * MB


def test_walking_a_document():
    data = b' { "a" : [ {"b": [1]} , 2 ] , "c" : "d" , "e": [] } '
    found = record_walk.walked(data, False)
    assert {key: list(value) if key in "ae" else value for key, value in found.items()} == {
        "a": [{"b": [1]}, 2],
        "c": "d",
        "e": [],
    }
    assert (found["a"][1], len(found["a"]), bool(found["a"]), bool(found["e"])) == (2, 2, True, False)
    with pytest.raises(IndexError):
        found["a"][2]
    assert list(record_walk.walked(b"[1, [2], 3]     ", False)) == [1, [2], 3]
    assert list(record_walk.walked(b"1\n\n[2]\n", True)) == [1, [2]]
    assert record_walk.walked(b"   12345   ", False) == 12345
    for bad in (b'{"a": [1}         ', b'{"a" 1}           ', b"{1: 2}            ", b'{"a": tru}         '):
        with pytest.raises(ValueError, match=r"JSON|Expecting"):
            record_walk.walked(bad, False)
    with pytest.raises(ValueError, match=r"JSON|Expecting"):
        list(record_walk.walked(b"[1, tru]          ", False))


# ------------------------------------------------------------------------------------------------------------------- ids


def test_one_long_id_among_many_is_refused_with_the_name_of_the_limit(monkeypatch):
    """One of 256 characters among 300,000 took 1.3 GB."""
    ids = [f"{i:06d}" for i in range(30_000)] + ["x" * 256]
    assert limits.IDS.default < 4 * 256 * 300_000
    monkeypatch.setenv("DETMAP_MOST_ID_BYTES", "8M")

    def refused():
        with pytest.raises(
            InputError, match=r"an id has 256 characters, where 30,001 have 6 on average: .* 29 MiB"
        ) as caught:
            detmap.Detections.from_arrays(
                image_ids=ids, category_ids=[1] * len(ids), boxes=np.zeros((len(ids), 4)), scores=np.zeros(len(ids))
            )
        return str(caught.value)

    said, taken = peak(refused)
    assert said.endswith("shorten it, or the environment variable DETMAP_MOST_ID_BYTES sets another limit")
    assert "field 'image_id'" in said
    assert taken < 16 * MB
    with pytest.raises(InputError, match="DETMAP_MOST_ID_BYTES"):
        detmap.Detections.from_arrays(
            image_ids=np.array(ids, object),
            category_ids=[1] * len(ids),
            boxes=np.zeros((len(ids), 4)),
            scores=np.zeros(len(ids)),
        )
    monkeypatch.setenv("DETMAP_MOST_ID_BYTES", "1G")
    assert texts(["a", "b" * 100]).tolist() == ["a", "b" * 100]
    monkeypatch.setenv("DETMAP_MOST_ID_BYTES", "10")
    assert texts(["a", "b" * 9]).tolist() == ["a", "b" * 9]  # a small multiple of what is there
    with pytest.raises(InputError, match="an id has 99 characters"):
        texts(["a"] * 50 + ["b" * 99])


@pytest.mark.compiled
def test_one_long_id_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("DETMAP_MOST_ID_BYTES", "1M")
    records = [{**RECORD, "image_id": f"{i}"} for i in range(20_000)]
    records[7]["image_id"] = "x" * 250
    with pytest.raises(InputError, match=r"x\.json: field 'image_id': an id has 250 characters"):
        detmap.read_coco_results(write(tmp_path, "x.json", json.dumps(records)))
    images = [{"id": record["image_id"]} for record in records]
    truth = json.dumps({"images": images, "categories": [{"id": 1, "name": "a"}], "annotations": []})
    with pytest.raises(InputError, match=r"y\.json: field 'id': an id has 250 characters"):
        detmap.read_coco(write(tmp_path, "y.json", truth))
    lines = [f"{record['image_id']},a,0,0,1,1,0.5" for record in records]
    table = write(tmp_path, "z.csv", "\n".join(["image,category,x1,y1,x2,y2,score", *lines]))
    with pytest.raises(InputError, match=r"z\.csv: field 'image_id': an id has 250 characters"):
        detmap.read(table, "detections")


def test_long_names_that_many_rows_share_are_kept_once():
    """A name of 3 MB for 300 rows took 3.7 GB."""
    name = "x" * (3 * MB)
    build = lambda: detmap.GroundTruth.from_arrays(  # noqa: E731
        image_ids=[1] * 300, category_ids=[name] * 300, boxes=np.ones((300, 4))
    )
    made, taken = peak(build)
    assert made.categories.names == (name,)
    assert taken < 16 * len(name) + 4 * MB
    assert coded([name] * 3).ids.tolist() == [name]


def test_tables_of_long_names_are_not_padded_with_them(capsys, tmp_path):
    name = "\N{GREEK SMALL LETTER ALPHA}" * MB
    rows = [{"category": name if i == 7 else f"c{i}", "AP": 0.5, name: 1} for i in range(300)]
    text, taken = peak(lambda: results.to_text(rows))
    assert taken < 16 * MB
    assert max(map(len, text.splitlines())) < 1100
    assert "α…" in text
    assert results.shown("x" * 500) == "x" * 500
    assert len(results.shown("x" * 501)) == 500


# ----------------------------------------------------------------------------------------------------------------- pairs


def equal_boxes(count):
    same = {"image_ids": np.ones(count, int), "category_ids": np.ones(count, int), "boxes": np.ones((count, 4))}
    return detmap.GroundTruth.from_arrays(**same), detmap.Detections.from_arrays(**same, scores=np.arange(count))


@pytest.mark.slow
@pytest.mark.compiled
def test_equal_boxes_squared_are_refused_with_the_name_of_the_limit(monkeypatch):
    """12,000 on either side took 2.4 GB."""
    truth, found = equal_boxes(12_000)
    monkeypatch.setenv("DETMAP_MOST_PAIR_BYTES", "96M")

    def refused():
        with pytest.raises(
            InputError, match="12,000 detections and 12,000 objects of one image and category"
        ) as caught:
            detmap.evaluate(truth, found, "voc2012")
        return str(caught.value)

    refused()
    said, taken = peak(refused)
    assert said.endswith("or the environment variable DETMAP_MOST_PAIR_BYTES sets another limit")
    assert "which take more than 96 MiB" in said
    assert taken < 400 * MB
    assert limits.PAIRS.default < 12 * 12_000**2


@pytest.mark.compiled
@pytest.mark.parametrize("protocol", ["coco", "voc2012"])
def test_a_cell_that_is_looked_at_in_parts_gives_the_same(monkeypatch, protocol):
    rng = np.random.default_rng(0)
    count = 400
    columns = {
        "image_ids": rng.integers(1, 3, count),
        "category_ids": rng.integers(1, 3, count),
        "boxes": rng.uniform(1, 60, (count, 4)),
    }
    truth = detmap.GroundTruth.from_arrays(**columns, crowd=rng.random(count) < 0.1)
    found = detmap.Detections.from_arrays(**{**columns, "boxes": columns["boxes"] + 1}, scores=rng.random(count))
    made = detmap.detection.protocols.resolve(protocol, max_dets=[None])
    expected = detmap.match(truth, found, made)
    parts = []
    joined = pair_limits._joined
    monkeypatch.setattr(pair_limits, "_joined", lambda given: parts.append(len(given)) or joined(given))
    monkeypatch.setenv("DETMAP_MOST_PAIR_BYTES", "30000")
    again = detmap.match(truth, found, made)
    assert sum(parts) > 8
    for name in ("hit", "ignored", "category", "image", "rank", "scores"):
        assert np.array_equal(getattr(again, name), getattr(expected, name))


@pytest.mark.parametrize(("given", "taken"), [("360", True), ("359", False)])
def test_either_side_of_the_pairs_of_a_cell(monkeypatch, given, taken):
    """Three detections overlap each of ten objects: 30 pairs of 12 bytes."""
    boxes = np.c_[np.arange(10) * 20.0, np.zeros(10), np.full((10, 2), 10.0)]
    truth = detmap.GroundTruth.from_arrays(image_ids=np.ones(10, int), category_ids=np.ones(10, int), boxes=boxes)
    found = detmap.Detections.from_arrays(
        image_ids=np.ones(30, int), category_ids=np.ones(30, int), boxes=np.tile(boxes, (3, 1)), scores=np.ones(30)
    )
    monkeypatch.setenv("DETMAP_MOST_PAIR_BYTES", given)
    if taken:
        assert detmap.evaluate(truth, found, "coco")["AR_100"] == 1
    else:
        with pytest.raises(
            InputError, match="30 detections and 10 objects of one image and category overlap in more than 29"
        ):
            detmap.match(truth, found, "coco")


# ------------------------------------------------------------------------------------------------------------ the limits


@pytest.mark.parametrize("command", ["reid", "hashing"])
def test_arrays_grow_no_more_than_other_compressed_files(command, capsys, tmp_path, monkeypatch):
    """Three megabytes of zeros were unpacked to 3.2 GB."""
    path = tmp_path / "x.npz"
    arrays = {"distances": np.zeros((900, 900)), "query_codes": np.zeros((900, 900))}
    np.savez_compressed(path, query_ids=np.arange(900) % 7, gallery_ids=np.arange(900) % 7, **arrays)
    monkeypatch.setenv("DETMAP_MOST_INFLATED", "8M")
    code, _, err = run(capsys, command, path)
    assert code == 2
    assert err.count("\n") == 1
    assert "decompresses to far more than its size, beyond 8 MiB" in err
    assert "DETMAP_MOST_INFLATED sets another limit" in err
    monkeypatch.setenv("DETMAP_MOST_INFLATED", "1G")
    assert run(capsys, "reid", path)[0] == 0


def test_every_limit_is_documented_once():
    from pathlib import Path

    root = Path(detmap.__file__).parent.parent
    text = (root / "SECURITY.md").read_text()
    for limit in (limits.STREAM, limits.INFLATED, limits.IDS, limits.PAIRS):
        (default,) = re.findall(rf"^\| `{limit.variable}` \|.*\| (\d+ [MG]iB)[^|]*\|$", text, re.MULTILINE)
        assert limit.default == limits.size(default.replace(" ", ""), "default")
        assert text.count(limit.variable) == 1


def test_limits_that_are_no_sizes(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("DETMAP_MOST_INFLATED", "-1")
    with pytest.raises(OptionError, match="DETMAP_MOST_INFLATED must be a size above 0"):
        detmap.read_coco_results(gzip.compress(b"[]"))
    path = write(tmp_path, "x.json.gz", gzip.compress(b"[]"))
    code, _, err = run(capsys, "eval", path, path)
    assert code == 2
    assert err.count("\n") == 1


def test_curves_are_made_when_the_tally_in_the_order_of_images_is_gone(monkeypatch):
    """Both tallies and the curves together were the peak of the memory of `evaluate`."""
    matched, made = [], []
    match, begin = detection._match, detection.DetectionResult.__init__

    def noted(*given):
        tally = match(*given)
        matched.append(weakref.ref(tally))
        return tally

    def watched(self, tally, **options):
        made.append(matched[-1]() is None)
        begin(self, tally, **options)

    monkeypatch.setattr(detection, "_match", noted)
    monkeypatch.setattr(detection.DetectionResult, "__init__", watched)
    box = np.array([[0.0, 0.0, 5.0, 5.0]])
    truth = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=box)
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=box, scores=[0.5])
    detmap.evaluate(truth, found)
    assert made == [True]


@pytest.mark.parametrize("given", ["handed over", "read"])
def test_detections_are_gone_ahead_of_the_ranking(given, monkeypatch, tmp_path):
    """Whoever hands them over, or gives a path, does not pay for them and for the ranking at a time."""
    rank, seen, left = detection.Tally.in_ranking_order, [], []
    prepare = detection.Arrangement.of.__func__

    def arranged(cls, truth, found, *more):
        seen.append(weakref.ref(found))
        return prepare(cls, truth, found, *more)

    def ranked(self, *more, **options):
        left.append(seen[-1]() is None)
        return rank(self, *more, **options)

    monkeypatch.setattr(detection.Arrangement, "of", classmethod(arranged))
    monkeypatch.setattr(detection.Tally, "in_ranking_order", ranked)
    truth = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 5, 5]])

    def made():
        return detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 5, 5]], scores=[0.5])

    if given == "handed over":
        held = Owned(made())
        detmap.evaluate(truth, held)
        with pytest.raises(IndexError):
            held.take()
    else:
        detmap.evaluate(truth, write(tmp_path, "found.json", json.dumps([RECORD]).encode()))
    assert left
    assert all(left)
    left.clear()
    kept = made()
    detmap.evaluate(truth, kept)
    assert not any(left)
    assert len(kept) == 1
