"""Results that lie in a list within an object are read like the list."""

from __future__ import annotations

import io
import json
import random
import sys
import tarfile

import numpy as np
import pytest
from source_files import TRUTH, UNCOMPILED, encoded, results, same, write

import detmap
from detmap.cli import main
from detmap.errors import InputError
from detmap.kernels import readonly, texts


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
                patch.setattr("detmap.formats.coco.records._decode_object", None)
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
