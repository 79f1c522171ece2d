"""Readers: what they take, what they return, and the one clear line for what they refuse."""

import gc
import gzip
import io
import json
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.errors import InputError, OptionError
from detmap.formats.coco import read as coco
from detmap.reading.sources import Opened

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TRUTH, FOUND = FIXTURES / "coco/ground_truth.json", FIXTURES / "coco/detections.json"
RECORD = {"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.5}
DOCUMENT = {
    "images": [{"id": 1}, {"id": 2}],
    "categories": [{"id": 2, "name": "cat"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}],
}
XML = (
    "<annotation><object><name>cat</name><difficult>1</difficult><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax>"
    "<ymax>5</ymax></bndbox><part><name>tail</name><bndbox><xmin>0</xmin><ymin>0</ymin><xmax>9</xmax><ymax>9</ymax>"
    "</bndbox></part></object></annotation>"
)


def same(a, b):
    return all(
        np.array_equal(x, y)
        for x, y in (
            (a.boxes, b.boxes),
            (a.images.values[a.images.codes], b.images.values[b.images.codes]),
            (a.categories.values[a.categories.codes], b.categories.values[b.categories.codes]),
        )
    )


def encoded(value):
    return json.dumps(value).encode()


@pytest.mark.parametrize("path", [TRUTH, FOUND])
def test_every_kind_of_source_gives_the_same_table(path, tmp_path):
    read = detmap.read_coco if path == TRUTH else detmap.read_coco_results
    data = path.read_bytes()
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(data))
    reference = read(path)
    parsed = json.loads(data)
    if path == TRUTH:
        assert np.array_equal(reference.areas, [a["area"] for a in parsed["annotations"]])
        assert np.array_equal(reference.crowd, [a["iscrowd"] for a in parsed["annotations"]])
        assert np.array_equal(reference.boxes, [a["bbox"] for a in parsed["annotations"]])
    else:
        assert np.array_equal(reference.scores, [r["score"] for r in parsed])
        assert np.array_equal(reference.boxes, [r["bbox"] for r in parsed])
    with path.open("rb") as raw, path.open() as text:
        sources = (str(path), data, bytearray(data), memoryview(data), raw, text, packed, io.BytesIO(data), parsed)
        for source in sources:
            assert same(read(source), reference)


@pytest.fixture
def _scan_everything(monkeypatch):
    monkeypatch.setattr(coco, "_WORTH_SCANNING", 0)


@pytest.mark.usefixtures("_scan_everything")
def test_the_scanner_reads_the_same_tables(monkeypatch):
    def unusual(document):
        extra = {**DOCUMENT["annotations"][0], "iscrowd": 1, "ignore": 1}
        document["annotations"] += [extra, {**extra, "id": 0}, {**extra, "id": 5}]
        document["annotations"][0].pop("iscrowd")

    words = json.loads(changed(unusual).decode().replace('"image_id": 1', '"image_id": "a"'))
    words["images"] = [{"id": "b"}, {"id": "a"}]
    strings = [{**RECORD, "image_id": image} for image in "baab"]
    for document in (TRUTH.read_bytes(), changed(unusual), encoded(words)):
        scanned = detmap.read_coco(document)
        with monkeypatch.context() as patch:
            patch.setattr(coco, "_WORTH_SCANNING", 1 << 60)
            decoded = detmap.read_coco(document)
        assert same(scanned, decoded)
        assert scanned.notices == decoded.notices
        assert scanned.category_names == decoded.category_names
        for name in ("areas", "crowd", "difficult"):
            assert np.array_equal(getattr(scanned, name), getattr(decoded, name))
        assert np.array_equal(scanned.images.values, decoded.images.values)
    for document in (FOUND.read_bytes(), encoded(strings), encoded([RECORD] * 3), b"[]"):
        scanned = detmap.read_coco_results(document)
        with monkeypatch.context() as patch:
            patch.setattr(coco, "_WORTH_SCANNING", 1 << 60)
            decoded = detmap.read_coco_results(document)
        assert same(scanned, decoded)
        assert np.array_equal(scanned.scores, decoded.scores)


def test_json_lines(tmp_path, monkeypatch):
    records = json.loads(FOUND.read_bytes())
    reference = detmap.read_coco_results(records)
    text = "\n".join(map(json.dumps, records)).encode()
    for name, data in (("a.jsonl", text), ("a.ndjson.gz", gzip.compress(text))):
        path = tmp_path / name
        path.write_bytes(data)
        for least in (0, 1 << 60):
            monkeypatch.setattr(coco, "_WORTH_SCANNING", least)
            assert same(detmap.read_coco_results(path), reference)
    path.write_bytes(text + b'\n{"image_id": 1}')
    with pytest.raises(InputError, match=f"record {len(records)}, field 'category_id': is missing"):
        detmap.read_coco_results(path)


@pytest.mark.usefixtures("_scan_everything")
def test_the_scanner_refuses_what_the_decoder_refuses(tmp_path):
    for message, data in {**REFUSED_RESULTS, **REFUSED_TRUTH}.items():
        read = detmap.read_coco_results if message in REFUSED_RESULTS else detmap.read_coco
        with pytest.raises(InputError) as caught:
            read(data)
        assert message in str(caught.value)


def test_results_may_hold_numpy_values():
    record = {"image_id": np.int64(1), "category_id": np.int32(2), "bbox": np.arange(4.0), "score": np.float32(0.5)}
    found = detmap.read_coco_results([record])
    assert found.boxes.tolist() == [[0, 1, 2, 3]]
    assert found.scores.tolist() == [0.5]


def test_string_ids_and_ids_beyond_32_bits():
    big = [{**RECORD, "image_id": 2**62}, {**RECORD, "image_id": -5}]
    assert detmap.read_coco_results(encoded(big)).images.values.tolist() == [-5, 2**62]
    words = [{**RECORD, "image_id": "b"}, {**RECORD, "image_id": "a"}]
    assert detmap.read_coco_results(encoded(words)).images.values.tolist() == ["a", "b"]


def test_numbers_are_read_as_float_reads_them():
    texts = [
        "0.1",
        "1e-320",
        "123456789012345678901234567890",
        "2.2250738585072011e-308",
        "0.3000000000000000444",
        "-0.0",
    ]
    data = ('[{"image_id":1,"category_id":2,"bbox":[%s,0,1,1],"score":%s}]').replace("%s", "{}")
    for text in texts:
        found = detmap.read_coco_results(data.replace("{}", text).encode())
        assert found.boxes[0, 0] == float(text)
        assert found.scores[0] == float(text)


def broken(change):
    record = json.loads(json.dumps(RECORD))
    change(record)
    return json.dumps([RECORD, record]).encode()  # json writes NaN, as people's programs do


REFUSED_RESULTS = {
    "is empty": b" ",
    "is not valid JSON": b"hello",
    "truncated": encoded([RECORD])[:-10],
    "is not a list of detections but an object": b"{}",
    "is ground truth where detections were expected; are the arguments swapped": encoded(DOCUMENT),
    "record 1: must be an object, not a number": encoded([RECORD, 3]),
    "record 1, field 'score': is missing": broken(lambda r: r.pop("score")),
    "record 1, field 'bbox': is missing": broken(lambda r: r.pop("bbox")),
    "record 1, field 'image_id': is missing": broken(lambda r: r.pop("image_id")),
    "record 1, field 'bbox': has 3 numbers where 4 are expected (got [1, 2, 3])": broken(lambda r: r["bbox"].pop()),
    "record 1, field 'bbox': must be a list of 4 numbers, not a string": broken(lambda r: r.update(bbox="1,2,3,4")),
    "record 1, field 'bbox': must be a finite number": broken(lambda r: r.update(bbox=[1, 2, 3, float("nan")])),
    "record 1, field 'bbox': must be a finite number (got [1, 2, 3, inf])": broken(
        lambda r: r.update(bbox=[1, 2, 3, float("inf")])
    ),
    "record 1, field 'bbox': must be a number, not null": broken(lambda r: r.update(bbox=[1, 2, 3, None])),
    "record 1, field 'bbox': width and height must not be negative": broken(lambda r: r.update(bbox=[1, 2, 3, -4])),
    "record 1, field 'score': must be a finite number (got nan)": broken(lambda r: r.update(score=float("nan"))),
    "record 1, field 'score': must be a number, not a string (got '0.5')": broken(lambda r: r.update(score="0.5")),
    "record 1, field 'image_id': must be an integer or a string (got 1.5)": broken(lambda r: r.update(image_id=1.5)),
    "record 1, field 'image_id': must be an integer or a string (got True)": broken(lambda r: r.update(image_id=True)),
    "record 1, field 'image_id': ids must be all integers or all strings": broken(lambda r: r.update(image_id="1")),
    "record 1, field 'image_id': is beyond 64 bits": broken(lambda r: r.update(image_id=2**70)),
    "an id must have at most 256 characters": broken(lambda r: r.update(image_id="x" * 5000)).replace(
        b'"image_id": 1,', b'"image_id": "1",'
    ),
    "nested too deeply": b"[" * 200_000 + b"]" * 200_000,
    "NaN, Infinity and text that is not UTF-8 are not JSON": broken(lambda r: r.update(other=float("nan"))),
    "damaged gzip data": gzip.compress(encoded([RECORD]))[:10] + b"garbage, not deflate",
    "damaged gzip data: Compressed file ended": gzip.compress(encoded([RECORD]))[:-12],
}


@pytest.mark.parametrize("message", REFUSED_RESULTS)
def test_refused_results(message, tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(REFUSED_RESULTS[message])
    with pytest.raises(InputError) as caught:
        detmap.read_coco_results(path)
    text = str(caught.value)
    assert message in text
    assert text.startswith(str(path))
    assert "\n" not in text
    assert len(text) < 600


@pytest.mark.parametrize("cut", range(len(encoded([RECORD]))))
def test_no_truncation_is_accepted(cut):
    with pytest.raises(InputError):
        detmap.read_coco_results(encoded([RECORD])[:cut])


def changed(change):
    document = json.loads(json.dumps(DOCUMENT))
    change(document)
    return json.dumps(document).encode()


REFUSED_TRUTH = {
    "is a list of detections where ground truth was expected; are the arguments swapped": encoded([RECORD]),
    "is not COCO ground truth but a list": b"[]",
    "field 'images': is missing": changed(lambda d: d.pop("images")),
    "field 'annotations': must be a list, not an object": changed(lambda d: d.update(annotations={})),
    "annotation 0, field 'area': is missing": changed(lambda d: d["annotations"][0].pop("area")),
    "annotation 0, field 'area': must be a finite number": changed(
        lambda d: d["annotations"][0].update(area=float("nan"))
    ),
    "field 'area': an area must be a finite number of 0 or more": changed(
        lambda d: d["annotations"][0].update(area=-1)
    ),
    "annotation 0, field 'iscrowd': must not be a string": changed(lambda d: d["annotations"][0].update(iscrowd="no")),
    "record 0, field 'image_id': is not among the images (got 7)": changed(
        lambda d: d["annotations"][0].update(image_id=7)
    ),
    "field 'category_id': is not among the categories": changed(lambda d: d["annotations"][0].update(category_id=7)),
    "category 0, field 'name': must not be a number": changed(lambda d: d["categories"][0].update(name=3)),
    "image 1, field 'id': is missing": changed(lambda d: d["images"][1].pop("id")),
}


@pytest.mark.parametrize("message", REFUSED_TRUTH)
def test_refused_ground_truth(message):
    with pytest.raises(InputError) as caught:
        detmap.read_coco(REFUSED_TRUTH[message])
    assert message in str(caught.value)
    assert str(caught.value).startswith("ground truth: ")


def test_what_is_accepted_is_counted():
    def unusual(document):
        extra = {**DOCUMENT["annotations"][0], "bbox": [1, 2, 0, 4]}
        document["annotations"] += [extra, {**extra, "id": 0}]
        document["annotations"][0].pop("iscrowd")

    truth = detmap.read_coco(changed(unusual))
    assert truth.notices == {
        "missing_iscrowd": 1,
        "duplicate_annotation_ids": 1,
        "zero_id": 1,
        "zero_sized_boxes": 2,
    }
    found = detmap.read_coco_results(
        encoded([RECORD, {**RECORD, "category_id": 99}, {**RECORD, "image_id": 5}]), truth, unknown_images="ignore"
    )
    result = detmap.evaluate(truth, found)
    assert len(found) == 2
    assert result.notices["unknown_image"] == 1
    assert result.notices["unknown_category"] == 1
    assert result.notices["zero_id"] == 1


@pytest.mark.usefixtures("_scan_everything")
def test_long_annotation_ids_take_no_more_memory_than_they_have():
    """A column of strings as wide as the widest would take 4 bytes times that for each."""
    rows = [{**DOCUMENT["annotations"][0], "id": f"a{i % 498}"} for i in range(500)]
    rows[0]["id"] = "x" * 30_000
    data = encoded({**DOCUMENT, "annotations": rows})
    tracemalloc.start()
    try:
        truth = detmap.read_coco(data)
        assert tracemalloc.get_traced_memory()[1] < 50 * len(data)
    finally:
        tracemalloc.stop()
    assert truth.notices["duplicate_annotation_ids"] == 1


def test_unknown_images_are_refused_unless_told_otherwise():
    truth = detmap.read_coco(DOCUMENT)
    with pytest.raises(InputError, match=r"record 1, field 'image_id': is not an image of the ground truth \(got 9\)"):
        detmap.read_coco_results([RECORD, {**RECORD, "image_id": 9}], truth)
    with pytest.raises(InputError, match="expected GroundTruth, not str"):
        detmap.read_coco_results([RECORD], "gt.json")
    with pytest.raises(OptionError, match="unknown_images must be one of error, ignore, not"):
        detmap.read_coco_results([{**RECORD, "image_id": 9}], truth, unknown_images="drop")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        detmap.read_coco(tmp_path / "none.json")
    with pytest.raises(InputError, match="is a folder"):
        detmap.read_coco(tmp_path)
    with pytest.raises(InputError, match="cannot read a int"):
        detmap.read_coco(3)


def test_gzip_bombs_are_bounded(monkeypatch):
    monkeypatch.setenv("DETMAP_MOST_INFLATED", "1M")
    with pytest.raises(
        InputError, match=r"grows beyond 6 MiB .*, or the environment variable DETMAP_MOST_INFLATED sets"
    ):
        detmap.read_coco_results(gzip.compress(b" " * (32 << 20)))


def test_gzip_of_several_members():
    data = encoded([RECORD])
    assert len(detmap.read_coco_results(gzip.compress(data[:20]) + gzip.compress(data[20:]))) == 1


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo("folder/" + name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def test_voc_sources(tmp_path):
    folder = FIXTURES / "voc"
    truth, found = detmap.read_voc(folder / "Annotations"), detmap.read_voc_results(folder / "results")
    xml = {p.name: p.read_text() for p in (folder / "Annotations").iterdir()}
    text = {p.name: p.read_text() for p in (folder / "results").iterdir()}
    packed = tmp_path / "a.tar.gz"
    packed.write_bytes(archive(xml))
    for source in (xml, packed, packed.read_bytes(), io.BytesIO(packed.read_bytes())):
        assert same(detmap.read_voc(source), truth)
    assert same(detmap.read_voc_results(text), found)
    assert same(detmap.read_voc_results(archive(text)), found)
    wanted = truth.images.values[:7].tolist()
    part = detmap.read_voc(folder / "Annotations", wanted)
    assert part.images.values.tolist() == wanted
    (tmp_path / "set.txt").write_text("".join(f"{i}  1\n" for i in wanted))
    assert same(detmap.read_voc(folder / "Annotations", tmp_path / "set.txt"), part)
    kept = detmap.read_voc_results(folder / "results", part, unknown_images="ignore")
    assert 0 < len(kept) < len(found)


def test_what_a_folder_must_not_hold_twice():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("train/1.xml", "._1.xml", "val/1.xml"):
            info = tarfile.TarInfo(name)
            info.size = len(XML)
            tar.addfile(info, io.BytesIO(XML.encode()))
    with pytest.raises(InputError, match=r"two files of one name: 'train/1\.xml' and 'val/1\.xml'"):
        detmap.read_voc(packed.getvalue())
    line = "a .5 1 2 3 4"
    with pytest.raises(InputError, match="is a second file for class cat, after comp3_det_test_cat"):
        detmap.read_voc_results({"comp3_det_test_cat.txt": line, "comp4_det_val_cat.txt": line})


def test_a_byte_order_mark_is_no_harm():
    assert len(detmap.read_coco_results(b"\xef\xbb\xbf" + encoded([RECORD]))) == 1


@pytest.mark.parametrize("ids", [["1", 2], [True, 2], ["a", "a\0"], [[1], [2, 3]], [1.5, 2]])
def test_ids_that_are_not_of_one_kind(ids):
    with pytest.raises(InputError):
        detmap.Detections.from_arrays(image_ids=ids, category_ids=[1, 1], boxes=[[0, 0, 1, 1]] * 2, scores=[1, 1])


def test_voc_objects_and_their_parts():
    truth = detmap.read_voc({"a.xml": XML})
    assert truth.boxes.tolist() == [[1, 2, 3, 5]]
    assert truth.areas.tolist() == [6]  # which are 12 pixels, where a protocol has these inclusive
    assert truth.difficult.tolist() == [True]
    assert truth.category_names == ("cat",)


REFUSED_XML = {
    "declares a document type or entities": '<!DOCTYPE a [<!ENTITY b "c">]><annotation>&b;</annotation>',
    "is not valid XML": XML[:-5],
    "object 0, field 'xmax': must be a finite number (got 'nan')": XML.replace("<xmax>3<", "<xmax>nan<"),
    "object 0, field 'ymax': is missing": XML.replace("<ymax>5</ymax>", ""),
    "object 0, field 'name': is missing": XML.replace("<name>cat</name>", ""),
    "the far corner lies before the near one": XML.replace("<xmax>3<", "<xmax>0<"),
    "field 'difficult': must be 0 or 1 (got 'yes')": XML.replace("<difficult>1<", "<difficult>yes<"),
    "nested too deeply": "<annotation>" * 100 + "</annotation>" * 100,
    "field 'html': is not a VOC annotation": "<html></html>",
    "is not valid XML: 'hex' is not a text encoding": '<?xml version="1.0" encoding="hex"?><annotation/>',
    "field 'name': is longer than 256 characters": XML.replace(">cat<", ">" + "c" * 300 + "<"),
}


@pytest.mark.parametrize("message", REFUSED_XML)
def test_refused_xml(message):
    with pytest.raises(InputError) as caught:
        detmap.read_voc({"000001.xml": REFUSED_XML[message]})
    assert message in str(caught.value)
    assert "000001.xml" in str(caught.value)


REFUSED_LINES = {
    "line 2: has 5 fields where 6 are expected": "a 0.5 1 2 3 4\na 0.5 1 2 3\n",
    "line 1, field 'score': must be a finite number (got b'nan')": "a nan 1 2 3 4\n",
    "line 3, field 'xmin': must be a finite number (got b'x')": "a .5 1 2 3 4\n\na .5 x 2 3 4",
    "line 1: the far corner lies before the near one": "a .5 5 2 3 4",
    "line 1: has a field of absurd length or content": "a" * 10_000 + " .5 1 2 3 4",
}


@pytest.mark.parametrize("message", REFUSED_LINES)
def test_refused_voc_lines(message):
    with pytest.raises(InputError) as caught:
        detmap.read_voc_results({"comp4_det_test_cat.txt": REFUSED_LINES[message]})
    assert message.replace("b'", "'") in str(caught.value).replace("b'", "'")


def test_refused_voc_places(tmp_path):
    with pytest.raises(InputError, match="does not say its class"):
        detmap.read_voc_results({"cat.txt": "a .5 1 2 3 4"})
    with pytest.raises(InputError, match=r"holds no file that ends in \.xml"):
        detmap.read_voc(tmp_path)
    with pytest.raises(InputError, match="neither a folder nor a tar archive"):
        detmap.read_voc(b"not a tar")
    with pytest.raises(InputError, match=r"no name ends in \.xml"):
        detmap.read_voc({})
    with pytest.raises(InputError, match="2 images of the image set have no annotation"):
        detmap.read_voc({"a.xml": XML}, ["a", "b", "c"])
    with pytest.raises(InputError, match="no such file"):
        detmap.read_voc({"a.xml": XML}, tmp_path / "none.txt")


def test_an_image_without_objects_counts_and_empty_results_are_fine():
    truth = detmap.read_voc({"a.xml": XML, "b.xml": "<annotation></annotation>"})
    assert truth.images.values.tolist() == ["a", "b"]
    found = detmap.read_voc_results({"comp4_det_test_cat.txt": ""})
    result = detmap.evaluate(truth, found, "voc2007")
    assert np.isnan(result["mAP"])  # the only object is difficult
    assert result.notices["no_detections"] == 1


def test_a_file_that_cannot_be_read_leaves_nothing_behind(tmp_path):
    """Of files with errors, a batch may meet thousands; the command line hardly ever looks for circles of garbage."""
    truth = detmap.read_coco(json.dumps({"images": [{"id": 1}], "annotations": [], "categories": [{"id": 1}]}).encode())
    good = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}
    spoiled = [
        json.dumps([good] * 3 + bad)
        for bad in ([{"image_id": 1}], [{**good, "score": None}], [{**good, "image_id": 2}])
    ]
    spoiled += [json.dumps([good] * 3)[:-9], "", "[[", json.dumps([{**good, "x": float("nan")}])]
    paths = [tmp_path / f"{i}.json" for i in range(len(spoiled))]
    for path, text in zip(paths, spoiled, strict=True):
        path.write_text(text)
    for again in (False, True):  # the first time round things are imported
        gc.collect()
        gc.freeze()  # what the other tests hold is not gone over, as in tests/conftest.py
        for path in paths:
            gc.disable()
            try:
                with pytest.raises(InputError):
                    detmap.read_coco_results(path, truth)
                assert not again or gc.collect() == 0, path.read_text()
            finally:
                gc.enable()


@pytest.mark.parametrize("worth", [0, 1 << 40], ids=["scanner", "parser"])
def test_a_record_that_goes_on_in_the_next_line_is_refused(worth, monkeypatch, tmp_path):
    """JSON Lines have one record a line: half of one may belong to another."""
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", worth)
    path = tmp_path / "a.jsonl"
    for text in (
        '{"image_id":1,"category_id":\n1,"bbox":[0,0,1,1],"score":0.5}\n\n',
        '{"image_id":1,"category_id":1,"bbox":[0,0,1,1],"score":0.5}\n{"image_id":1,"category_id":1,\n"bbox":[0,0,1,1],"score":1}',
    ):
        path.write_text(text)
        with pytest.raises(InputError, match="a record goes on in the next line"):
            detmap.read_coco_results(path)
        path.write_text(text.replace(":\n", ":").replace(",\n", ","))
        assert len(detmap.read_coco_results(path)) in (1, 2)


def test_names_and_sizes_of_images_are_those_of_the_list_of_images_alone(tmp_path, monkeypatch):
    """Of a file that is scanned nothing else is decoded; the outcome is the parser's, with a mark of the byte order too."""
    images = [
        {"id": 9, "file_name": "a.jpg", "height": 4, "width": 5.0, "neg_category_ids": [1], "crowdIndex": 0.5},
        {"id": 3, "file_name": 7, "height": 0, "width": 5},
        {"id": 5, "height": 2**40, "width": 5, "not_exhaustive_category_ids": []},
    ]
    box = {"image_id": 9, "category_id": 1, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": 0}
    document = {
        "images": images,
        "annotations": [{**box, "id": k, "note": '"images": [', "is_group_of": k} for k in (0, 1)],
        "categories": [{"id": 1, "name": "c", "frequency": "r"}],
    }
    found = []
    for mark, worth in ((b"", 0), (b"", 1 << 60), (b"\xef\xbb\xbf", 1 << 60)):
        monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", worth)
        path = tmp_path / "truth.json"
        path.write_bytes(mark + json.dumps(document).encode())
        found.append(detmap.read(path, "ground_truth"))
    for table in found:
        assert table.images.values.tolist() == [3, 5, 9]
        assert table.images.names == ("", "", "a.jpg")
        assert table.images.sizes.tolist() == [[0, 0], [0, 0], [4, 5]]
        assert table.group_of.tolist() == [False, True]
        assert table.negatives.by_image(table.images.ids, table.categories.ids) == {9: [1]}
        assert table.not_exhaustive.listed.tolist() == [False, True, False]
        assert table.images.crowd_index[2] == 0.5
        assert table.categories.frequencies == ("r",)
        assert {code for code in table.notices if code.startswith("foreign_fields:")} == {
            "foreign_fields:neg_category_ids (LVIS)",
            "foreign_fields:not_exhaustive_category_ids (LVIS)",
            "foreign_fields:frequency (LVIS)",
            "foreign_fields:crowdIndex (CrowdPose)",
            "foreign_fields:is_group_of (Open Images)",
        }


def test_a_file_that_is_scanned_is_not_read_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", 0)
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(DOCUMENT | {"images": [{"id": 1, "file_name": "a", "neg_category_ids": [1]}]}))
    monkeypatch.setattr(Opened, "whole", lambda opened: pytest.fail("read as a whole"))
    assert detmap.read(path, "ground_truth").images.names == ("a",)
