"""Files that hold no boxes are described in one line: what they are, what they lack, what to do."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

import detmap
import detmap.panoptic
import detmap.retrieval
from detmap.errors import InputError


def archive(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in members.items():
            file.writestr(name.replace("__", "/"), data)
    return out.getvalue()


def saved(save, *arrays, **named):
    out = io.BytesIO()
    save(out, *arrays, **named)
    return out.getvalue()


HEADER = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'

#: What is given, under which name, and what the line says.
GIVEN = {
    "is an image; images themselves are not read": ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(20)),
    "is an image; images": ("a.json", b"\xff\xd8\xff\xe0" + bytes(20)),
    "is an image": ("a.webp", b"RIFF\x10\0\0\0WEBPVP8 "),
    "is a PDF": ("a.pdf", b"%PDF-1.7\n"),
    "is an array of numpy; write CSV with the columns": ("a.npy", saved(np.save, np.zeros(3))),
    "holds the numpy arrays boxes and scores": ("a.npz", saved(np.savez, boxes=np.zeros(3), scores=np.zeros(3))),
    "is a pickle of Python, which is not loaded": ("a.pkl", pickle.dumps({"boxes": []})),
    "holds weights of a model, no predictions": ("a.bin", archive(**{"archive__data.pkl": b""})),
    "holds weights of a model": ("a.weights", len(HEADER).to_bytes(8, "little") + HEADER + bytes(8)),
    "holds weights of a model, no": ("a.onnx", b"\x08\x08\x12\x07pytorch"),
    "is a workbook of Excel; save the sheet as CSV": ("a.xlsx", archive(xl__workbook=b"")),
    "is a zip archive that holds one and two; unpack it": ("a.zip", archive(one=b"[]", two=b"")),
    "is a zip archive that holds a, b, c and 1 more": ("a.zip", archive(a=b"", b=b"", c=b"", d=b"")),
    "is a zip archive; unpack it": ("a.zip", archive(one=b"[]")[:-9]),
    "is text in UTF-16; write it again in UTF-8": ("a.json", "[]".encode("utf-16")),
    "is a page of HTML; was it downloaded": ("a.json", b"\n<!DOCTYPE html><html></html>"),
    "is a page of HTML": ("a", b"<html><body>404</body></html>"),
    "is HDF5": ("a.mat", b"\x89HDF\r\n\x1a\n"),
    "is compressed by bzip2 or xz; unpack it": ("a.json.bz2", b"BZh91AY"),
    "fetch it with git lfs pull": ("a.json", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
    "is binary data of no known form": ("a.dat", b"ab\0\1\2"),
    "the first of which is '2024-01-01 INFO epoch 1'": ("a.log", b"2024-01-01 INFO epoch 1\n"),
}


@pytest.mark.parametrize("role", ["ground_truth", "detections"])
@pytest.mark.parametrize("says", GIVEN)
def test_files_without_boxes_are_described(says, role, tmp_path):
    name, data = GIVEN[says]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError) as caught:
        detmap.read(tmp_path / name, role)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_could_be_another_encoding_are_no_reason_to_fail():
    """A length of eight bytes before JSON looks like UTF-32."""
    for read in (detmap.read_coco_results, detmap.read_coco):
        with pytest.raises(InputError, match="holds weights"):
            read(len(HEADER).to_bytes(8, "little") + HEADER)


RECORD = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}

#: JSON of other forms.
FORMS = {
    "an object with boxes and scores; lists by image or by column are not read": {
        "boxes": [[1, 2, 3, 4]],
        "scores": [1],
    },
    "an object with found; its list 'found' may be meant": {"found": [RECORD]},
    "an object with a, b, c, d, e, f and 2 more": dict.fromkeys("abcdefgh", 1),
    "record 0: must be an object, not a list; a result file is": [[1, 2, 3, 4]],
    "field 'image_id': is missing; the record has file and box": [{"file": "a.jpg", "box": [1, 2, 3, 4]}],
    "comes close to the format createml but lacks annotations": [{"image": "a.jpg", "boxes": []}],
    "field 'category_id': is missing; the record has image_id, bbox and score": [
        {name: RECORD[name] for name in ("image_id", "bbox", "score")}
    ],
}


@pytest.mark.parametrize("says", FORMS)
def test_json_of_another_form_is_described(says, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(FORMS[says]))
    with pytest.raises(InputError) as caught:
        detmap.read(tmp_path / "a.json", "detections")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (
            {"tasks": []},
            "field 'images': is missing; ground truth has images, annotations and categories; there is tasks",
        ),
        ([{"id": 1, "data": {}}], "but a list of objects with id and data; ground truth has images"),
    ],
)
def test_ground_truth_of_another_form_is_described(document, says, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=says):
        detmap.read(tmp_path / "a.json", "ground_truth")


def test_other_readers_describe_such_files_too(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    for read in (
        lambda path: detmap.retrieval.evaluate_run(path, {"q": {"a": 1}}),
        lambda path: detmap.panoptic.evaluate(path, path),
        lambda path: detmap.read(path, "ground_truth", format="bdd100k"),
        detmap.read,
        lambda path: detmap.convert(path, tmp_path / "b.csv"),
    ):
        with pytest.raises(InputError, match="is an image"):
            read(tmp_path / "a.png")


def test_an_empty_folder_is_said_to_be_one(tmp_path):
    for role in ("ground_truth", "detections"):
        with pytest.raises(InputError, match="is an empty folder"):
            detmap.read(tmp_path, role)
