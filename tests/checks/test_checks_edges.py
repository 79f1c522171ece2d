"""`detmap check` at the edges: files without records, and what a check loads and reads."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import planting
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples

import detmap
from detmap.checks import CODES, agreement, check
from detmap.checks.counts import Counts
from detmap.cli import main
from detmap.formats.coco.inspection import kinds_in
from detmap.shapes import KINDS, fields

ROOT = Path(__file__).resolve().parents[2]

TRUTH = {
    "images": [{"id": i, "width": 640, "height": 480} for i in (1, 2, 3)],
    "categories": [{"id": 1, "name": "cat"}],
    "annotations": [
        {"id": i, "image_id": i, "category_id": 1, "bbox": [10.0 * i, 20.0, 50.0, 40.0], "area": 2000.0, "iscrowd": 0}
        for i in (1, 2, 3)
    ],
}
FOUND = [
    {"image_id": i, "category_id": 1, "bbox": [10.0 * i, 21.0, 50.0, 40.0], "score": 0.5 + i / 10} for i in (1, 2, 3)
]


def written(folder, **contents):
    """The paths of some documents."""
    paths = []
    for name, content in contents.items():
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(content if isinstance(content, str) else json.dumps(content))
    return paths


# -------------------------------------------------------------------------------------------------------------- nothing


def codes(folder, truth, found=None, **options):
    paths = written(folder, truth=truth, **({} if found is None else {"found": found}))
    return set(check(*paths, **options).codes)


def test_a_side_without_a_record_is_a_finding(tmp_path):
    """Each is an error; where records are there, and were left aside, that is said in its place."""
    assert codes(tmp_path, TRUTH, []) == {"no_detections"}
    assert codes(tmp_path, {**TRUTH, "annotations": []}) == {"no_objects"}
    assert codes(tmp_path, {**TRUTH, "annotations": []}, FOUND) == {"no_objects"}
    assert codes(tmp_path, {**TRUTH, "annotations": []}, []) == {"no_objects", "no_detections"}
    assert codes(tmp_path, {"images": [], "annotations": [], "categories": []}) == {"no_images"}
    assert codes(tmp_path, {**TRUTH, "images": [], "annotations": []}, FOUND) >= {"no_images", "unknown_images"}
    assert codes(tmp_path, TRUTH, [{**one, "image_id": 99} for one in FOUND]) == {"unknown_images"}
    assert codes(tmp_path, TRUTH, [{**one, "score": None} for one in FOUND]) == {"bad_values"}
    assert {CODES[code].severity for code in ("no_images", "no_objects", "no_detections")} == {"error"}


def test_a_schema_says_that_there_is_no_detection_and_nothing_of_objects(tmp_path):
    for listed in (TRUTH["annotations"], []):
        assert codes(tmp_path, {**TRUTH, "annotations": listed}, [], schema=True) == {"no_detections"}


def test_other_formats_without_a_record_are_said_to_have_none(tmp_path, capsys):
    """A header alone, an empty folder of predictions, and crowds alone are read; nothing is found on them."""
    (truth,) = written(tmp_path, truth=TRUTH)
    table = tmp_path / "found.csv"
    table.write_text("image_id,category_id,score,x,y,width,height\n")
    assert main(["check", str(truth), str(table)]) == 1
    assert "There is no detection on any of 3 images (no_detections)" in capsys.readouterr().out
    crowds = [{**one, "iscrowd": 1} for one in TRUTH["annotations"]]
    assert "no_objects" not in codes(tmp_path, {**TRUTH, "annotations": crowds}, FOUND)


def test_a_table_without_a_finding_has_a_header(tmp_path, capsys):
    """Whoever reads it by the names of its columns finds them."""
    many = [{**one, "id": i, "bbox": [float(10 * i), 20.0, 50.0, 40.0]} for i, one in enumerate(TRUTH["annotations"])]
    (truth,) = written(tmp_path, truth={**TRUTH, "annotations": many})
    assert main(["check", str(truth), "--format", "csv"]) == 0
    assert capsys.readouterr().out == "severity,code,count,says,effect,remedy,records\n"


# -------------------------------------------------------------------------------------------------- what is loaded and read


def test_the_fields_of_kinds_are_known_ahead_of_loading_them():
    ours = {name: KINDS[name] for name in KINDS if KINDS.is_shipped(name)}
    named = {kind: field for field, kind in fields().items() if kind in ours}
    assert named == {name: kind.field for name, kind in ours.items() if kind.reader is not None and not kind.stored}


def test_a_check_of_boxes_loads_nothing_of_masks_and_of_rankings(tmp_path):
    truth, found = written(tmp_path, truth=TRUTH, found=FOUND)
    code = (
        f"import sys\nfrom detmap.cli import main\nmain(['check', {str(truth)!r}, {str(found)!r}])\n"
        "parts = ('masks', 'polygons', 'keypoints', 'diagnostics', 'explanations', 'statistics', 'trec')\n"
        "print([name for name in sys.modules if name.startswith('detmap') and set(parts) & set(name.split('.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.parametrize("piece", [1 << 20, 40])
@pytest.mark.parametrize("key", ["segmentation", "keypoints", "\\u0073egmentation", "se\\u0067mentation"])
def test_a_shape_is_seen_wherever_it_stands_and_however_its_key_is_written(tmp_path, monkeypatch, piece, key):
    """Also behind a megabyte of boxes, in a file, in bytes, and with a letter escaped."""
    from detmap.reading.sources import Opened

    whole = Opened.pieces
    monkeypatch.setattr(Opened, "pieces", lambda self: whole(self, piece))
    text = json.dumps([*FOUND, {**FOUND[0], "KEY": [1, 2, 2]}]).replace("KEY", key)
    kind = "keypoints" if key == "keypoints" else "segm"
    path = tmp_path / "found.json"
    path.write_text(text)
    for source in (path, text.encode(), b"\xef\xbb\xbf" + text.encode()):
        assert {name: count for name, count in kinds_in(source).items() if count} == {"": 4, kind: 1}
    path.write_text(json.dumps(FOUND))
    assert kinds_in(path) == kinds_in(json.dumps(FOUND).encode()) == {}


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(1, 6), st.integers(0, 40))
def test_counts_are_those_of_a_table_that_is_written_out(seed, height, width, count):
    """Kept are those alone that are not 0: two vocabularies of 20,000 classes would take gigabytes."""
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(0, max(n, 1), count if height else 0) for n in (height, width))
    whole = np.zeros((height, width), np.int64)
    np.add.at(whole, (rows, columns), 1)
    counts = Counts(rows, columns, (height, width))
    assert (counts.shape, counts.total) == (whole.shape, whole.sum())
    assert counts.of_rows.tolist() == whole.sum(axis=1).tolist()
    assert counts.of_columns.tolist() == whole.sum(axis=0).tolist()
    assert counts.best.tolist() == whole.argmax(axis=1).tolist()
    places = np.indices(whole.shape).reshape(2, -1)
    assert counts.at(*places).tolist() == whole.ravel().tolist()
    assert counts.at(places[0], np.full(places.shape[1], -1)).tolist() == [0] * whole.size


def test_twenty_thousand_classes_take_little_memory():
    """Not a table of all classes of detections by all of objects, which is 3 GB."""
    rng = np.random.default_rng(5)
    boxes = rng.uniform(10, 90, (20_000, 4))
    images, classes = np.arange(20_000) // 20, np.arange(20_000)
    truth = detmap.GroundTruth.from_arrays(image_ids=images, category_ids=classes, boxes=boxes)
    found = detmap.Detections.from_arrays(
        image_ids=images, category_ids=classes + 20_000, boxes=boxes, scores=rng.random(20_000)
    )
    tracemalloc.start()
    try:
        report = check(truth, found)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "unknown_categories" in report.codes
    assert most < 1 << 28


def test_a_few_records_without_a_mask_do_not_make_all_others_unreadable(tmp_path):
    """Results that have masks and no boxes: those without a mask are counted, and the others are looked at."""
    data = planting.make(5, "", "", "masks", lambda rng, data: None)
    for place, one in enumerate(data.found):
        del one["bbox"]
        if place < 3:
            del one["segmentation"]
    for name, content in (("truth", data.truth), ("found", data.found)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    report = check(tmp_path / "truth.json", tmp_path / "found.json")
    [missing] = [one for one in report.findings if one.code == "missing_shapes"]
    assert missing.says == "3 detections without the mask or the pose that others have"
    assert "bad_values" not in report.codes


def ranked(labelled, others):
    """Detections on labelled objects, and so many of higher scores where nothing is labelled."""
    at = [
        {"image_id": i // 4 + 1, "category_id": 1, "bbox": [150.0 * (i % 4), 20.0, 50.0, 40.0]} for i in range(labelled)
    ]
    truth = {
        **TRUTH,
        "images": [{"id": i, "width": 640, "height": 480} for i in range(1, labelled // 4 + 2)],
        "annotations": [{**one, "id": i, "area": 2000.0, "iscrowd": 0} for i, one in enumerate(at, 1)],
    }
    found = [{**one, "score": 0.3 + 0.4 * i / labelled} for i, one in enumerate(at)]
    for i in range(others):
        box = [150.0 * (i // 250), 300.0, 50.0, 40.0]
        found.append({"image_id": i % 250 + 1, "category_id": 1, "bbox": box, "score": 0.8 + 0.1 * i / others})
    return truth, found


def test_some_confident_detections_on_objects_that_nobody_labelled_turn_no_ranking_round(tmp_path):
    assert "inverted_scores" not in codes(tmp_path, *ranked(1000, 50))
    assert "inverted_scores" not in codes(tmp_path, *ranked(1000, 450))
    assert "inverted_scores" in codes(tmp_path, *ranked(1000, 600))
    assert "near 0" not in repr(CODES["inverted_scores"])  # 1,000 of 1,600 are right


def test_a_crowded_image_is_looked_at_in_part(tmp_path, monkeypatch):
    """Five thousand detections on an image with 3,000 objects are 15 million pairs, which would take gigabytes."""
    rng, pairs = np.random.default_rng(1), []
    boxes = np.concatenate([rng.uniform(0, 400, (200, 2)), rng.uniform(20, 60, (200, 2))], axis=1).tolist()
    truth = {
        **TRUTH,
        "annotations": [
            {"id": i, "image_id": 1, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            for i, box in enumerate(boxes[:100], 1)
        ],
    }
    found = [{"image_id": 1, "category_id": 1, "bbox": box, "score": rng.random()} for box in boxes]
    of_rows = agreement.overlaps
    monkeypatch.setattr(agreement, "overlaps", lambda one, other: pairs.append(len(one)) or of_rows(one, other))
    monkeypatch.setattr(agreement, "_PAIRS", 5_000)
    codes(tmp_path, truth, found)
    assert 4_000 <= max(pairs) <= 5_000
