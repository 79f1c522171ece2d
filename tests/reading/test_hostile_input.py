"""Input that scripts/attack.py and its relatives found: each is refused in one line, or means what it says."""

import io
import json
import os
import warnings
import zipfile

import numpy as np
import pytest

import detmap
from detmap.cli import main
from detmap.errors import InputError, OptionError, StateError
from detmap.reading import documents
from detmap.retrieval import evaluate_distances, evaluate_run

BOX = [1.0, 2.0, 30.0, 40.0]
RECORD = {"image_id": 1, "category_id": 1, "bbox": BOX, "score": 0.5}
OBJECT = {"id": 1, "image_id": 1, "category_id": 1, "bbox": BOX, "area": 1200, "iscrowd": 0}
TRUTH = {"images": [{"id": 1}], "categories": [{"id": 1, "name": "a"}], "annotations": [OBJECT]}
XML = (
    "<annotation><object><name>cat</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>5</ymax></bndbox>"
    "</object></annotation>"
)


def refused(error, call, *parts):
    """The call raises the error, in one printable line with these parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error) as caught:
            call()
    text = str(caught.value)
    assert text.isprintable()
    assert all(part in text for part in parts), text


# JSON


@pytest.mark.parametrize("key", ["annotations", "annot\\u0061tions"])
def test_a_list_of_results_that_is_there_twice_is_refused_however_it_is_written(key):
    data = f'{{"annotations": [{json.dumps(RECORD)}], "{key}": []}}'
    refused(InputError, lambda: detmap.read_coco_results(data.encode()), "field 'annotations': is there twice")


@pytest.mark.parametrize("key", ["images", "annotations", "categories", "categorie\\u0073"])
def test_a_list_of_ground_truth_that_is_there_twice_is_refused(key):
    data = f'{{"{key}": [], {json.dumps(TRUTH)[1:]}'
    refused(InputError, lambda: detmap.read_coco(data.encode()), "is there twice")


def test_keys_that_repeat_further_inside_are_of_no_interest_whatever_else_is_there():
    data = b'{"annotations": [%b], "more": {"annotations": %b}}' % (json.dumps(RECORD).encode(), b"1" * 5000)
    assert len(detmap.read_coco_results(data)) == 1


SPOILT = [b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xf0\x9f\x98"]


@pytest.mark.parametrize("spoilt", SPOILT)
@pytest.mark.parametrize("pad", [0, pytest.param(1 << 21, marks=pytest.mark.compiled)], ids=["small", "large"])
@pytest.mark.parametrize("iou_type", ["bbox", "segm"])
@pytest.mark.parametrize("place", ["info", "key", "record", "end"])
def test_json_is_utf8_where_no_column_reads_too(spoilt, pad, iou_type, place):
    blanks = b" " * pad + "é".encode()
    more = {"info": b'"info": {"x": "%b"},', "key": b'"%b": 1,'}.get(place, b'"x": 1,').replace(b"%b", spoilt)
    text = json.dumps({**TRUTH, "annotations": [{**OBJECT, "segmentation": []}]}).encode()
    data = b'{\n"pad": "%b",' % blanks + more + text[1:]
    if place == "record":
        data = data.replace(b'"image_id"', b'"note": "%b", "image_id"' % spoilt, 1)
    if place == "end":
        data += b"\n" + spoilt
    says = f"is not UTF-8 at byte {data.index(spoilt):,}, in line {data[: data.index(spoilt)].count(10) + 1}"
    refused(InputError, lambda: detmap.read_coco(data, iou_type=iou_type), says)
    if place == "record":
        found = json.dumps([RECORD]).encode().replace(b"{", b'{"note": "%b",' % (blanks + spoilt), 1)
        refused(InputError, lambda: detmap.read_coco_results(found), "is not UTF-8 at byte")


def test_where_a_document_is_not_utf8_whatever_its_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    for _ in range(300):
        monkeypatch.setattr(documents, "BLOCK", int(rng.integers(1, 40)))
        data = bytearray(("aé日😀" * int(rng.integers(0, 20))).encode() + b"x" * int(rng.integers(0, 30)))
        if data and rng.random() < 0.7:
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        try:
            expected, _ = -1, bytes(data).decode()
        except UnicodeDecodeError as error:
            expected = error.start
        assert documents.misplaced(memoryview(data)) == expected


@pytest.mark.parametrize("field", ["iscrowd", "ignore"])
@pytest.mark.parametrize("value", [2, -1, 0.5])
def test_flags_of_json_are_0_or_1(field, value):
    data = json.dumps({**TRUTH, "annotations": [{**OBJECT, field: value}]}).encode()
    refused(InputError, lambda: detmap.read_coco(data), f"annotation 0, field '{field}': is neither 0 nor 1")


# Open files and mappings


class Reader:
    """An open file of which `read` gives, or raises, anything."""

    name = "a\nfile"

    def __init__(self, content):
        self.content = content

    def read(self):
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


@pytest.mark.parametrize(
    "content",
    [None, 5, [1], OSError("no"), ValueError("closed"), EOFError("cut"), "\ud800"],
    ids=["None", "a number", "a list", "OSError", "ValueError", "EOFError", "a surrogate"],
)
def test_open_files_that_give_no_text(content):
    refused(InputError, lambda: detmap.read_coco(Reader(content)), "a\\nfile: ")


def test_bytes_that_python_escaped_are_read_as_bytes():
    text = io.StringIO("1 Q0 a\udcff 1 0.5 t\n")
    assert evaluate_run(b"1 0 a\xff 1\n", text, ["map"])["mAP"] == 1


@pytest.mark.parametrize("value", [None, 7, [300]])
def test_mappings_of_files_hold_text_or_bytes(value):
    refused(InputError, lambda: detmap.read_voc({"i.xml": value}), "annotations[i.xml]: holds a")


# VOC


@pytest.mark.parametrize("field", ["name", "xmin"])
def test_an_element_within_a_field_is_refused_rather_than_half_of_its_text_read(field):
    data = XML.replace(f"<{field}>", f"<{field}>1<b/>")
    refused(InputError, lambda: detmap.read_voc({"i.xml": data}), f"field '{field}': holds an element")


def test_an_encoding_that_warns_is_refused():
    data = b'<?xml version="1.0" encoding="unicode_escape"?>' + XML.encode()
    refused(InputError, lambda: detmap.read_voc({"i.xml": data}), "is not valid XML")


@pytest.mark.parametrize("wanted", [5, [None], [["i"]], ["i", 1]])
def test_an_image_set_that_is_none(wanted):
    refused(InputError, lambda: detmap.read_voc({"i.xml": XML}, wanted), "image_set: expected")


# Arrays


class Stranger:
    """What another library calls an array, and fails to hand over."""

    def __init__(self, error):
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error


class Capsule:
    """The same by the other protocol."""

    def __dlpack__(self, **options):
        raise BufferError("on another\ndevice")

    def __dlpack_device__(self):
        return (2, 0)


STRANGERS = [Stranger(KeyError("no")), Stranger(ZeroDivisionError("a\nb")), Capsule()]


@pytest.mark.parametrize("stranger", STRANGERS, ids=["KeyError", "ZeroDivisionError", "BufferError"])
@pytest.mark.parametrize("column", ["image_ids", "boxes", "scores"])
def test_arrays_that_cannot_be_handed_over(stranger, column):
    columns = {"image_ids": [1], "category_ids": [1], "boxes": [BOX], "scores": [0.5], column: stranger}
    refused(InputError, lambda: detmap.Detections.from_arrays(**columns), "detections: field ")


@pytest.mark.parametrize("stranger", STRANGERS, ids=["KeyError", "ZeroDivisionError", "BufferError"])
def test_rankings_of_arrays_that_cannot_be_handed_over(stranger):
    refused(InputError, lambda: evaluate_distances(stranger, [1], [1]))
    refused(InputError, lambda: detmap.retrieval.evaluate_codes(stranger, [[1]], [1], [1]))
    refused(InputError, lambda: detmap.average_precision_score(stranger, [1.0]))


def test_masked_elements_of_lists_of_codes_and_labels():
    given = {"query_codes": [[0, 1]], "gallery_codes": [[0, 1]], "query_labels": [1], "gallery_labels": [1]}
    for name in given:
        changed = {**given, name: [np.ma.masked]}
        refused(InputError, lambda changed=changed: detmap.retrieval.evaluate_codes(**changed), "masked")


@pytest.mark.parametrize("boxes", [[[1, np.ma.masked, 30, 40]], [(1, 2, 30, np.ma.masked)]])
def test_masked_corners_within_lists(boxes):
    image = {"boxes": boxes, "scores": [0.5], "labels": [1]}
    refused(InputError, lambda: detmap.Evaluator().update([image], [image]), "predictions: image 0, field 'boxes")


def test_ids_in_half_precision():
    ids = np.array([1, 2, 2048], np.float16)
    table = detmap.Detections.from_arrays(image_ids=ids, category_ids=ids, boxes=[BOX] * 3, scores=[0.5] * 3)
    assert table.images.values.tolist() == [1, 2, 2048]


@pytest.mark.parametrize("names", [["cat"], np.array(["cat", "dog"]), "cat", 5])
def test_category_names_are_a_mapping(names):
    columns = {"image_ids": [1], "category_ids": [1], "boxes": [BOX]}
    refused(InputError, lambda: detmap.GroundTruth.from_arrays(**columns, category_names=names), "must be a mapping")


# Options and evaluators


def test_masked_thresholds():
    columns = {"image_ids": [1], "category_ids": [1], "boxes": [BOX]}
    truth, found = (
        detmap.GroundTruth.from_arrays(**columns),
        detmap.Detections.from_arrays(**columns, scores=[0.5]),
    )
    hidden = np.ma.masked_array([0.5, 0.6], [False, True])
    refused(OptionError, lambda: detmap.evaluate(truth, found, iou_thresholds=hidden), "masked")


@pytest.mark.parametrize("batch", [None, 5, (image for image in ())], ids=["None", "a number", "a generator"])
def test_updates_that_are_no_sequences(batch):
    refused(InputError, lambda: detmap.Evaluator().update(batch, []), "field 'predictions': expected a sequence")
    refused(InputError, lambda: detmap.Evaluator().update([], batch), "field 'targets': expected a sequence")


@pytest.mark.parametrize("box_format", ["xyxy", "xywh", "cxcywh"])
@pytest.mark.parametrize("far", [1e200, 1e308, np.inf])
@pytest.mark.parametrize("side", ["predictions", "targets"])
def test_an_update_with_a_box_that_is_too_far_leaves_the_evaluator_as_it_was(side, far, box_format):
    evaluator = detmap.Evaluator(box_format=box_format)
    image = {"boxes": np.array([BOX]), "scores": [0.5], "labels": [1]}
    evaluator.update([image], [image])
    before = evaluator.to_bytes()
    batch = {"predictions": [image], "targets": [image]}
    batch[side] = [{**image, "boxes": np.array([[-far, 0.0, far, far]])}]
    refused(InputError, lambda: evaluator.update(**batch), f"{side}: image 0", "boxes[0]")
    assert evaluator.to_bytes() == before
    assert evaluator.compute()["AP"] > 0.99


def test_boxes_that_are_too_far_are_dropped_with_those_that_are_infinite():
    evaluator = detmap.Evaluator(invalid_boxes="drop")
    boxes = np.array([BOX, [0.0, 0.0, 1e200, 1e200]])
    image = {"boxes": boxes, "scores": [0.5, 0.9], "labels": [1, 1]}
    evaluator.update([image], [image])
    result = evaluator.compute()
    assert result["AP"] > 0.99
    assert result.notices["dropped_boxes"] == 2


@pytest.mark.parametrize("other", [None, 5, "evaluator"])
def test_only_evaluators_are_merged_into_evaluators(other):
    refused(StateError, lambda: detmap.Evaluator().merge(other), "only an Evaluator")


# Rankings


def test_time_spans_are_no_scores_of_a_run():
    qrels = {"1": {"a": 1}}
    for scores in ({"a": np.timedelta64(5)}, {"a": 0.5, "b": np.timedelta64(5, "s")}):
        refused(InputError, lambda scores=scores: evaluate_run(qrels, {"1": scores}, ["map"]), "time spans")


def test_the_junk_identity_is_compared_as_text_with_ids_that_are_text():
    distances, gallery = [[0.1, 0.2, 0.3]], ["-1", "7", "8"]
    assert evaluate_distances(distances, ["7"], gallery, metrics=["CMC@1"])["CMC@1"] == 1
    assert evaluate_distances(distances, ["7"], gallery, metrics=["CMC@1"], junk_id=None)["CMC@1"] == 0


# .npz files


def npz(folder, **members):
    """A file of which each member is an array, or the bytes of what should be one."""
    good = {
        "query_features": np.ones((1, 2)),
        "gallery_features": np.ones((1, 2)),
        "query_ids": [1],
        "gallery_ids": [1],
    }
    path = folder / "features.npz"
    with zipfile.ZipFile(path, "w") as file:
        for name, value in (good | members).items():
            data = io.BytesIO()
            if isinstance(value, bytes):
                data.write(value)
            else:
                np.save(data, np.asarray(value))
            file.writestr(f"{name}.npy", data.getvalue())
    return str(path)


def header(text):
    return b"\x93NUMPY\1\0" + (len(text) + 1).to_bytes(2, "little") + text + b"\n"


@pytest.mark.parametrize(
    "member",
    [
        header(b"{'descr': '<f8', 'fortran_order': False, 'shape': ((((, }"),
        header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1L, 2L), }") + bytes(16),
        header(b"{'descr': '<f8', 'fortran_order': False, 'shape': " + b"(" * 9000 + b")" * 9000 + b"}"),
        header(b"{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1, 2)}") + bytes(16),
        header(b"{'descr': 'zz', 'fortran_order': False, 'shape': (1, 2)}") + bytes(16),
        b"\x93NUMPY\2\0\xff\xff\xff\x7f",
    ],
    ids=["unclosed", "of Python 2", "deep", "objects", "no type", "long"],
)
def test_a_damaged_array_of_an_npz_file_is_refused_in_one_line(member, tmp_path, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["reid", npz(tmp_path, query_features=member)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_npz_file_with_two_arrays_of_one_name_is_refused(tmp_path, capsys):
    path = npz(tmp_path)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("query_ids", b"")
    assert main(["reid", path]) == 2
    assert "two arrays of one name" in capsys.readouterr().err


# Batches


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("given", ["runs", "runs/*.json"])
def test_a_pipe_that_lies_in_a_folder_of_predictions_is_refused_before_anybody_waits_for_it(
    given, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/a.json").write_text(json.dumps([RECORD]))
    os.mkfifo(tmp_path / "runs/pipe.json")
    assert main(["batch", "truth.json", given, "--out", "board"]) == 2
    assert "'runs/pipe.json' is neither a file nor a folder" in capsys.readouterr().err


def test_a_file_whose_name_is_not_utf_8_has_its_row_in_every_form_of_the_leaderboard(tmp_path, monkeypatch, capsys):
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    (tmp_path / "runs").mkdir()
    try:
        (tmp_path / "runs" / os.fsdecode(b"a\xff.json")).write_text(json.dumps([RECORD]))
    except OSError:
        pytest.skip("the system has no such names")
    assert main(["batch", "truth.json", "runs", "--out", "board"]) == 0
    assert pq.read_table("board/leaderboard.parquet").column("model").to_pylist() == ["a\\udcff"]
    for form in ("csv", "json", "md", "html"):
        assert b"udcff" in (tmp_path / f"board/leaderboard.{form}").read_bytes()
