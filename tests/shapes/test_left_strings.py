"""Masks whose strings stay in their file until they are compared: the same bits, and an error where the file changes."""

import gc
import gzip
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from support import same_bits

import detmap
from detmap.formats.inputs import Input
from detmap.masks import Masks
from detmap.reading.options import Reading
from detmap.shapes import left_strings
from detmap.shapes.left_strings import IN_FILE

SIZE = 40, 50


def drawn(rng, count):
    """Masks of noise within a box: strings of one and more characters a number, with and without backslashes."""
    bitmaps = np.zeros((count, *SIZE), bool)
    for one in bitmaps:
        top, left = rng.integers(0, 20, 2)
        height, width = rng.integers(1, 20, 2)
        one[top : top + height, left : left + width] = rng.random((height, width)) < rng.choice([0.5, 1.0])
    return Masks.from_bitmaps(bitmaps).to_rle()


@pytest.fixture(params=["by image", "in any order"])
def paths(request, tmp_path, monkeypatch):
    """Ground truth and results of 6 images with 10 objects and 40 detections each, read in several windows."""
    rng = np.random.default_rng(3)
    shapes = drawn(rng, 6 * 50)
    truth, results = [], []
    for i, shape in enumerate(shapes):
        record = {"image_id": i // 50 + 1, "category_id": int(rng.integers(1, 4)), "segmentation": shape}
        if i % 50 < 10:
            truth.append({**record, "id": i + 1, "area": 9.0, "iscrowd": int(i % 50 == 0), "bbox": [0, 0, 3, 3]})
        else:
            results.append({**record, "score": round(rng.random(), 2)})
    for i in range(0, len(results), 3):  # some are right
        results[i] |= {name: truth[i // 4][name] for name in ("category_id", "segmentation")}
    if request.param != "by image":
        results = [results[i] for i in rng.permutation(len(results))]
    document = {
        "images": [{"id": i + 1, "height": SIZE[0], "width": SIZE[1]} for i in range(6)],
        "categories": [{"id": i + 1, "name": f"c{i}"} for i in range(3)],
        "annotations": truth,
    }
    files = {"truth": document, "results": results}
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", 0)
    monkeypatch.setattr("detmap.reading.documents.BLOCK", 20_000)
    monkeypatch.setattr("detmap.shapes.masks.AT_A_TIME", 16)
    monkeypatch.setattr(left_strings, "AT_A_TIME", 16)
    monkeypatch.setattr(left_strings, "_GAP", 200)
    return str(tmp_path / "truth.json"), str(tmp_path / "results.json")


def once(path, truth, iou_type="segm"):
    """Detections that are scored once."""
    return Input(path, "detections", Reading(iou_type=iou_type)).detections(truth, once=True)


def escaped(path):
    """Whether the string of each detection is written with escapes."""
    return ["\\" in record["segmentation"]["counts"] for record in json.loads(Path(path).read_text())]


def metrics(truth, found):
    return np.array(list(dict(detmap.evaluate(truth, found, iou_type="segm")).values()))


@pytest.mark.parametrize("kind", ["segm", "boundary"])
def test_files_give_the_bits_of_tables(paths, kind):
    truth = detmap.read_coco(paths[0], iou_type=kind)
    expected = detmap.evaluate(truth, detmap.read_coco_results(paths[1], truth, iou_type=kind), iou_type=kind)
    assert expected["AP"] > 0
    found = once(paths[1], truth, kind).shape(kind)
    assert (found.held.spans[:, 0] >= IN_FILE).all()
    assert 0.1 < np.mean(escaped(paths[1])) < 0.9
    for threads in (1, 3):
        result = detmap.evaluate(*paths, iou_type=kind, threads=threads)
        for name in ("precision", "recall", "scores"):
            assert same_bits(getattr(result, name), getattr(expected, name)), name


def test_a_column_gives_all_that_one_in_memory_gives(paths):
    truth = detmap.read_coco(paths[0], iou_type="segm")
    expected, own = detmap.read_coco_results(paths[1], truth, iou_type="segm").shape("segm"), once(paths[1], truth)
    own = own.shape("segm")
    assert own.left is not None
    assert expected.left is None
    row = escaped(paths[1]).index(True)
    rows = np.array([200, row, row, 150])
    for one, other in ((own, expected), (own.take(rows), expected.take(rows)), (own.loaded(), expected)):
        assert one.masks().to_rle() == other.masks().to_rle()
        assert all(same_bits(one.arrays()[name], other.arrays()[name]) for name in ("ends", "stops", "sizes"))
        assert same_bits(one.held.boxes, other.held.boxes)
        assert same_bits(one.areas(), other.areas())
    copied = pickle.loads(pickle.dumps(own))
    assert copied.left is None
    assert copied.masks().to_rle() == expected.masks().to_rle()


def test_a_file_that_changes_before_it_is_read_again_is_an_error(paths):
    truth = detmap.read_coco(paths[0], iou_type="segm")
    found = once(paths[1], truth)
    with open(paths[1], "r+b") as file:
        content = file.read()
        file.seek(0)
        file.write(content.replace(b'"score": 0.', b'"score": 1.', 1))
    with pytest.raises(detmap.InputError, match=r"results\.json: changed while it was read"):
        detmap.evaluate(truth, found, iou_type="segm")
    with pytest.raises(detmap.InputError, match="changed while it was read"):
        found.shape("segm").masks()


@pytest.mark.skipif(os.name == "nt", reason="open files cannot be removed there")
def test_a_file_that_is_removed_or_replaced_is_still_there(paths):
    truth = detmap.read_coco(paths[0], iou_type="segm")
    expected = metrics(*paths)
    found = once(paths[1], truth)
    with open(f"{paths[1]}.new", "w") as file:
        file.write("[]")
    os.replace(f"{paths[1]}.new", paths[1])
    assert same_bits(metrics(truth, found), expected)


def test_what_is_no_plain_file_is_kept_in_memory(paths, tmp_path):
    truth = detmap.read_coco(paths[0], iou_type="segm")
    with open(paths[1], "rb") as file:
        (tmp_path / "packed.json.gz").write_bytes(gzip.compress(file.read()))
    packed = once(str(tmp_path / "packed.json.gz"), truth)
    assert packed.shape("segm").left is None
    assert same_bits(metrics(truth, packed), metrics(*paths))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are listed in /proc")
def test_the_file_is_closed_with_the_column(paths):
    def descriptors():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    detmap.evaluate(*paths, iou_type="segm")
    before = descriptors()
    found = once(paths[1], detmap.read_coco(paths[0], iou_type="segm"))
    assert descriptors() == before + 1
    del found
    assert descriptors() == before
