"""The scanner against json and float(): every document is read alike, or left to the library parser."""

from __future__ import annotations

import gzip
import json
import math
import random
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import naive_scanning as naive
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from legs import FULL

from detmap.formats import _documents, _lists, _open, _scan, _tables
from detmap.kernels import readonly, scanning
from detmap.kernels import records as record_kernels
from detmap.kernels.lines import scan_lines
from detmap.kernels.texts import LENGTH_BITS, Grouped, factorise, find_strings, rank_rows
from detmap.kernels.values import skip_value
from detmap.kernels.words import survey
from detmap.shapes.reading import powers

RESULT = (
    b'{"image_id": 42, "category_id": 18, "bbox": [258.1499938964844, 41.290000915527344, 0, -2.5e1],'
    b' "score": 0.23600000143051147}'
)
UNCOMPILED = bool(numba.config.DISABLE_JIT)


def listed(ids: _tables.Ids | None, rows: int) -> list[Any]:
    if ids is None:
        return [None] * rows
    if isinstance(ids, _tables.Strings):
        assert ids.codes.dtype == np.int32
        assert len(set(ids.values)) == len(ids.values)
        return [ids.values[code] for code in ids.codes.tolist()]
    assert ids.dtype == np.int64
    return ids.tolist()


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def check_column(data: bytes, rows: list[dict[str, Any]], name: str, column: Any) -> None:
    """Compare a column of the scanner with the records that the naive twin read."""
    present = [name in row for row in rows]
    if column is None:
        assert not any(present), name
    elif name in ("segmentation", "keypoints"):
        assert column.dtype == np.int64
        assert column.shape == (len(rows), 2)
        for row, (begin, end) in zip(rows, column.tolist(), strict=True):
            assert (naive.parse(data[begin:end]) == row[name]) if name in row else (begin, end) == (-1, -1)
            assert begin == -1 or not data[begin:end][:1].isspace()
    elif name in ("iscrowd", "ignore"):
        assert column.tolist() == [row.get(name, -1) for row in rows]
    elif name in ("bbox", "area", "score"):
        assert column.dtype == np.float64
        assert column.shape == ((len(rows), 4) if name == "bbox" else (len(rows),))
        for row, value in zip(rows, column.tolist(), strict=True):
            if name not in row:
                assert np.isnan(value).all()
            elif name == "bbox":
                assert list(map(bits, value)) == list(map(bits, row[name]))
            else:
                assert bits(value) == bits(row[name])
    else:
        assert listed(column, len(rows)) == [row.get(name) for row in rows]


class InWindows(_open.File):
    """Bytes that the scanner reads like a file, by windows."""

    def __init__(self, data: bytes) -> None:
        self.content, self.size = data, len(data)

    def read_into(self, out: Any, place: int) -> None:
        memoryview(out)[:] = self.content[place : place + len(out)]


def check_windows(scan: Any, data: bytes, columns: Any) -> None:
    """A file is read as its bytes are, whatever its windows: they cut it at places that the content decides."""
    number = zlib.crc32(data)
    sizes = {"WINDOW": 8 + number % 200, "MARGIN": 1 + number % 39, "GROWTH": 2, "MOST_MARGIN": 1 << 24}
    with pytest.MonkeyPatch.context() as patch:
        if len(data) < 1 << 16:
            for name, value in sizes.items():
                patch.setattr(_documents, name, value)
        assert same(scan(InWindows(data)), columns), (sizes, data)


def check_results(data: bytes, lines: bool = False, threads: int = 1) -> _scan.ResultColumns | None:
    """Scan results: they are read as the naive twin reads them, and are understood unless they are unusual."""
    rows = naive.results(data, lines)
    columns = _scan.scan_results(data, threads, lines=lines)
    check_windows(lambda file: _scan.scan_results(file, threads, lines=lines), data, columns)
    if rows is None:
        assert columns is None, data
    elif columns is None:
        assert b"\\" in data, data  # lone surrogates, and keys with escapes
    else:
        assert len(columns.score) == len(rows)
        for name in naive.RESULT:
            check_column(data, rows, name, getattr(columns, name))
    return columns


def check_ground_truth(data: bytes, threads: int = 1) -> _scan.GroundTruthColumns | None:
    """Scan ground truth: it is read as the naive twin reads it, and is understood unless it is unusual."""
    tables = naive.ground_truth(data)
    columns = _scan.scan_ground_truth(data, threads)
    check_windows(lambda file: _scan.scan_ground_truth(file, threads), data, columns)
    if tables is None:
        assert columns is None, data
    elif columns is None:
        assert b"\\" in data, data  # lone surrogates, and keys with escapes
    else:
        assert listed(columns.images, 0) == [row["id"] for row in tables["images"]]
        assert listed(columns.categories, 0) == [row["id"] for row in tables["categories"]]
        assert columns.names == [row["name"] for row in tables["categories"]]
        assert len(columns.image_id) == len(tables["annotations"]) or isinstance(columns.image_id, _tables.Strings)
        for name in naive.ANNOTATION:
            check_column(data, tables["annotations"], name, getattr(columns, name))
    return columns


def document(*records: bytes) -> bytes:
    return b"[" + b", ".join(records) + b"]"


def same(one: Any, other: Any) -> bool:
    """Whether two sets of columns are equal to the bit."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return type(one) is type(other) and one == other


# Documents -----------------------------------------------------------------------------------------------------------

ALIKE = [
    b'{"image_id": "a", "category_id": %d, "bbox": [0.5, 1234.5, 3, 1e%d], "score": 1.25, "x": {"y": [null]}}',
    b'{"score":-%d.5,"image_id":-%d,"segmentation":{"size":[1,2],"counts":"a"},"category_id":12345678}',
]
PLAIN = [
    *(document(*[record % (k, 7 * k) for k in range(5)]) for record in ALIKE),
    b"[]",
    b" [ ] \n",
    document(RESULT),
    document(RESULT, RESULT),
    b"\t\r\n " + document(RESULT).replace(b" ", b" \n\t\r ") + b"\n\n",
    document(RESULT).replace(b" ", b""),
    b'[{"score": 1, "bbox": [1, 2, 3, 4], "category_id": -7, "image_id": 0}]',
    b'[{"score":-0,"bbox":[-0,-0.0,0e0,-0E-5],"category_id":-0,"image_id":9223372036854775807}]',
    b'[{"score":1E+2,"bbox":[1e2,1.5e+2,1.5E-2,0.1e-1],"category_id":1,"image_id":-9223372036854775808}]',
    b'[{"image_id":"a","category_id":"b","bbox":[1,2,3,4],"score":1},{"image_id":"","category_id":"b","bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":"\\u0061","category_id":1,"bbox":[1,2,3,4],"score":1},{"image_id":"a","category_id":1,"bbox":[1,2,3,4],"score":1}]',
    '[{"image_id":"é€😀","category_id":1,"bbox":[1,2,3,4],"score":1}]'.encode(),
    b'[{"image_id":"\\ud83d\\uDE00\\n\\t\\"\\\\\\/\\b\\f\\r","category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"id":[{"a":{"b":[[],{},[{}]]}},null,true,false,"x",-1.5e300,""],"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"":1,"image":2,"image_id2":3,"bbo":[],"scor":{},"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"":2}]',
    b'[{"image_id":1,"category_id":1,"segmentation":{"size":[2,3],"counts":"a}{\\"]"},"score":1}]',
    b'[{"image_id":1,"category_id":1,"keypoints":[1,2,2],"score":1},{"image_id":1,"category_id":1,"segmentation":[[1,2]],"score":1},'
    b'{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"segmentation":null}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"long":"' + b"x" * 1000 + b'"}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"deep":' + b"[" * 64 + b"]" * 64 + b"}]",
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"deep":' + b'{"a":[' * 32 + b"1e5" + b"]}" * 32 + b"}]",
]
NOT_PLAIN = [
    *b'| |x|{}|null|1|"a"|[|]|[,]|[{}]|[[]]|[1]|[null]|\xef\xbb\xbf[]|[]x|[][]|[]\x00|[]\x0c|[]\xc2\xa0'.split(b"|"),
    document(RESULT)[:-1] + b",]",
    document(RESULT)[:-1],
    document(RESULT) + b"]",
    document(RESULT) + b",",
    document(RESULT, b"null"),
    document(RESULT, b"{}"),
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"deep":' + b"[" * 65 + b"]" * 65 + b"}]",
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"deep":' + b"[" * 100_000 + b"}]",
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"deep":' + b'{"a":' * 100_000 + b"}]",
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1},{"image_id":"1","category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":1,"category_id":1,"score":1},{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":1,"category_id":1,"score":1}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":' + b"9" * 400 + b"}]",
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1' + b"0" * 309 + b"}]",
    b'[{"image_id":1,"category_id":1,"score":1},{"image_id":1,"category_id":1,"segmentation":[],"score":1}]',
]
# A record's field, and values that make it not plain.
FIELDS = {
    "image_id": (
        "1.0¦1e0¦9223372036854775808¦-9223372036854775809¦true¦null¦[1]¦{}¦01¦+1¦-¦0x1¦11111111111111111110¦"
        '99999999999999999999999¦"\\x"¦"\\u12"¦"\\u12g4"¦"\t"¦"\n"¦"¦"a¦"\\"¦1.¦1-'
    ),
    "bbox": (
        '1¦null¦[]¦[1,2,3]¦[1,2,3,4,5]¦[1,2,3,4,]¦[,1,2,3]¦["1",2,3,4]¦[1,2,3,null]¦[1,2,3,true]¦[[1],2,3,4]¦'
        "[1 2,3,4]¦[1,2,3,4¦{1,2,3,4}¦[1,2,3,4}¦[1,2,3,4:¦[1,2,3,NaN]¦[1,2,3,1e400]¦[1,2,3,-Infinity]¦(1,2,3,4)"
    ),
    "score": (
        'NaN¦Infinity¦-Infinity¦1e999¦-1e309¦null¦"1"¦[1]¦01¦-01¦00¦+1¦.5¦5.¦1.e5¦1e¦1e+¦1E-¦-¦--1¦1..2¦1.2.3¦'
        "1e5.5¦1e5e5¦0x10¦1_000¦1,5¦1;¦1f¦inf¦nan¦1\x00¦١¦1 2¦- 1¦1 .5¦1.7976931348623159e308¦"
        "1e99999999999999999999999"
    ),
    "id": (
        'tru¦True¦nul¦nulll¦fals¦falsee¦truefalse¦[1,]¦[,]¦[1 2]¦{,}¦{"a"}¦{"a":}¦{"a":1,}¦{"a" 1}¦{1:2}¦'
        '{null:1}¦{"a":1 "b":2}¦[1}¦{"a":1]¦[¦{¦¦01¦[01]¦-¦[-]¦1.¦[1.]¦.5¦1e¦[1e+]¦NaN¦[NaN]¦Infinity¦'
        '[-Infinity]¦\'a\'¦"\\a"¦"\\u"¦"\\u123"¦"\\uXYZW"¦"\x1f"¦"\x00"¦/**/1¦1//¦[1]]¦}¦undefined¦"a" "b"¦'
        '["a"¦["a" "b"]¦"\\¦"\\u00¦\x0b1¦1\x0c¦\ufeff1'
    ),
}
ESCAPED = [
    b'[{"image\\u005fid":1,"category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":1,"image\\u005fid":2,"category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"x":"\\ud800"}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"x":"\\udc00"}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"x":"\\ud800\\ud800"}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"x":"\\ud800\\n"}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"x":"\\ud800dc00"}]',
    b'[{"image_id":"\\ud800","category_id":1,"bbox":[1,2,3,4],"score":1}]',
]


@pytest.mark.parametrize("data", PLAIN)
def test_plain_documents_are_understood(data: bytes) -> None:
    assert check_results(data) is not None


@pytest.mark.parametrize("data", NOT_PLAIN, ids=lambda data: repr(data[:40]))
def test_other_documents_are_not(data: bytes) -> None:
    assert check_results(data) is None


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in FIELDS.items() for value in values.split("¦")]
)
def test_hostile_values(field: str, value: str) -> None:
    record = {"id": "1", "image_id": "1", "category_id": "1", "bbox": "[1,2,3,4]", "score": "1"}
    for order in (1, -1):  # the value in the middle, and as the document's last
        texts = []
        for values in (record, {**record, field: value}):
            texts.append(",".join(f'"{key}":{item}' for key, item in list(values.items())[::order]))
        plain, hostile = texts
        assert check_results(f"[{{{hostile}}}]".encode()) is None
        alike = ",".join(f"{{{text}}}" for text in (plain, hostile, plain, plain))
        assert check_results(f"[{alike}]".encode()) is None


@pytest.mark.parametrize("field", ["image_id", "category_id", "score", "bbox", "segmentation", "keypoints"])
def test_a_repeated_field_is_not_plain(field: str) -> None:
    record = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 1, "segmentation": [], "keypoints": []}
    text = json.dumps(record)[:-1]
    assert check_results(f"[{text}}}]".encode()) is not None
    assert check_results(f'[{text}, "{field}": {record[field]}}}]'.encode()) is None


@pytest.mark.parametrize("data", ESCAPED)
def test_unusual_escapes_are_left_to_the_parser(data: bytes) -> None:
    assert _scan.scan_results(data, 1) is None


def test_truncated_at_every_byte() -> None:
    data = document(
        RESULT, b'{"segmentation":{"counts":"\\u00e9\xc3\xa9"},"image_id":1,"category_id":1,"score":1.25e-3}'
    )
    assert check_results(data) is not None
    for end in range(len(data)):
        assert check_results(data[:end]) is None


HOSTILE_BYTES = b'\x00\x1f "\\,:[]{}0-.eE\x7f\x80\xbf\xc2\xf0\xff'


def test_every_byte_replaced_left_out_and_doubled() -> None:
    data = document(
        b'{"image_id":"a\\n","category_id":-1,"bbox":[0.5,1e5,3,10],"score":1.25,"x":{"y":[null,"\xc3\xa9"]}}'
    )
    step = 17 if UNCOMPILED else 1 if FULL else 3
    for place in range(0, len(data), step):
        for byte in HOSTILE_BYTES:
            check_results(data[:place] + bytes([byte]) + data[place + 1 :])
            check_results(data[:place] + bytes([byte]) + data[place:])
        check_results(data[:place] + data[place + 1 :])


@pytest.mark.parametrize("record", ALIKE)
@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.compiled
def test_every_byte_of_a_record_among_others_like_it(record: bytes, lines: bool) -> None:
    records = [record % (k, 7 * k) for k in range(1, 5)]
    separator = b"\n" if lines else b", "
    data = separator.join(records) if lines else document(*records)
    assert check_results(data, lines) is not None
    begin = data.index(records[1])
    for place in range(begin - 2, begin + len(records[1]) + 2, 1 if FULL and not UNCOMPILED else 5):
        for byte in HOSTILE_BYTES:
            check_results(data[:place] + bytes([byte]) + data[place + 1 :], lines)
            check_results(data[:place] + bytes([byte]) + data[place:], lines)
        check_results(data[:place] + data[place + 1 :], lines)
    for end in range(begin, len(data) - 1):
        columns = check_results(data[:end], lines)
        assert columns is None or (lines and data[end - 1 : end + 1].strip() in (b"}", b"{"))  # a whole number of lines


def test_records_that_are_not_like_the_first_one() -> None:
    """A few of them; more in a row than are compared; and a first one that none is compared with, or like."""
    shapes = {
        "first": '{"image_id": %d, "category_id": 1, "bbox": [1.5, 2.25, 3.5, 4.0], "score": 0.5}',
        "other": '{"category_id": 1, "image_id": %d, "score": 0.25, "bbox": [1.5, 2.25, 3.5, 4.0], "x": 1}',
        "late": '{"image_id": %d, "category_id": 1, "bbox": [1.5, 2.25, 3.5, 4.0], "score": 0.5, "keypoints": [1]}',
        "many": '{"image_id": %d, "score": 1, "category_id": 1, ' + '"x": 1, ' * 30 + '"bbox": [1, 2, 3, 4]}',
        "far": '{"image_id": %d, "score": 1, "category_id": 1, ' + " " * 40 + '"bbox": [1, 2, 3, 4]}',
        # As many values as there is room for, and one more; as many bytes between them, and one more.
        "most": '{"image_id": %d, "score": 1, "category_id": 1, ' + '"x": 1, ' * 17 + '"bbox": [1, 2, 3, 4]}',
        "more": '{"image_id": %d, "score": 1, "category_id": 1, ' + '"x": 1, ' * 18 + '"bbox": [1, 2, 3, 4]}',
        "near": '{"image_id": %d, "score": 1, "category_id": 1,' + " " * 22 + '"bbox": [1, 2, 3, 4]}',
        "next": '{"image_id": %d, "score": 1, "category_id": 1,' + " " * 23 + '"bbox": [1, 2, 3, 4]}',
    }
    for names in (
        ["first"] * 9,
        [
            "first",
            *["other", "first"] * 5,
            *["other"] * (record_kernels.MOST_MISSES + 5),
            *["first"] * 5,
            *["late", "first"] * 5,
        ],
        ["late", "first", "first", "late", "first", "first"],
        *([name, name, "first", name, name] for name in ("many", "far", "most", "more", "near", "next")),
    ):
        records = [(shapes[name] % k).encode() for k, name in enumerate(names)]
        assert check_results(document(*records)) is not None
        assert check_results(b"\n".join(records), lines=True) is not None


def test_a_field_that_the_first_record_does_not_have() -> None:
    """Once a record has it, those that are like the first one again lack it."""
    plain = '{"id": 7, "image_id": 1, "category_id": 3, "bbox": [1.5, 2, 3, 4]%s}'
    for extra in (', "area": 5.5', ', "iscrowd": 1', ', "segmentation": [[1, 2]]'):
        annotations = ", ".join(plain % (extra if k == 2 else "") for k in range(6))
        assert check_ground_truth(TRUTH % annotations.encode()) is not None


@pytest.mark.compiled
def test_the_longest_id() -> None:
    record = b'{"image_id": "%b", "category_id": 1, "bbox": [1.5, 2, 3, 4], "score": 0.5}'
    longest = b"x" * ((1 << LENGTH_BITS) - 1)
    columns = _scan.scan_results(document(*(record % name for name in (b"a", longest, b"b", b"c"))), 1)
    assert columns is not None
    assert listed(columns.image_id, 4) == ["a", longest.decode(), "b", "c"]
    assert _scan.scan_results(document(*(record % name for name in (b"a", longest + b"x", b"b", b"c"))), 1) is None


@pytest.mark.skipif(not UNCOMPILED, reason="counts calls that kernels make")
def test_records_are_read_by_their_likeness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else would show it: one that is alike is not scanned key by key."""
    scanned = []
    note = record_kernels._note
    monkeypatch.setattr(record_kernels, "_note", lambda *value: (scanned.append(value), note(*value))[1])
    assert _scan.scan_results(document(*[RESULT.replace(b"42", b"%d" % k) for k in range(40)]), 1) is not None
    assert len(scanned) <= 7 * 2  # the first one, and the last one because the document ends there


INVALID_UTF8 = (
    b"\x80|\xbf|\xc0\x80|\xc1\xbf|\xc2|\xe0\x80\x80|\xe0\x9f\xbf|\xed\xa0\x80|\xed\xbf\xbf|\xe2\x82|\xf0\x80\x80\x80|"
    b"\xf0\x8f\xbf\xbf|\xf4\x90\x80\x80|\xf5\x80\x80\x80|\xff|\xfe|\xf8\x88\x80\x80\x80|\x80\x80\x80\x80\x80|\xc3\xa9\xa9|\xf0\x9f\x98"
).split(b"|")


@pytest.mark.parametrize("block", [1, 2, 3, 5, 8, 1 << 22])
def test_invalid_utf8_everywhere(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_documents, "BLOCK", block)
    tail = b'","category_id":1,"bbox":[1,2,3,4],"score":1}]'
    for text in INVALID_UTF8[:: 5 if UNCOMPILED else 1]:
        for head in (b'[{"image_id":"', b'[{"image_id":"a","x":"', b'[{"image_id":"a","'):
            assert check_results(head + text + tail) is None
        assert check_results(b'[{"image_id":"a","x' + text + b'":"' + tail) is None
        truth = b'{"' + text + b'":0,"images":[],"annotations":[],"categories":[]}'
        assert check_ground_truth(truth) is None
    assert check_results(b'[{"image_id":"' + "é€😀߿ࠀ￿𐀀􏿿".encode() + tail) is not None


# Numbers -------------------------------------------------------------------------------------------------------------

HARD = [
    "0",
    "-0",
    "0.0",
    "-0.0",
    "0e5",
    "0e-5",
    "0e999999999999",
    "-0e-99999999999",
    "1",
    "-1",
    "0.1",
    "0.2",
    "0.3",
    "1e22",
    "1e23",
    "8.5e22",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9007199254740995",
    "9007199254740997",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "9999999999999999999",
    "10000000000000000000",
    "99999999999999999999",
    "123456789012345678901234567890",
    "2.2250738585072011e-308",
    "2.2250738585072012e-308",
    "2.2250738585072014e-308",
    "2.225073858507201e-308",
    "4.9406564584124654e-324",
    "5e-324",
    "3e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "2.4703282292062329e-324",
    "1e-324",
    "1e-400",
    "1e-99999",
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "17976931348623157e292",
    "6.631236846766476e-316",
    "3.2378839133029012895883524125015321748630094900144e-319",
    "7.0420557077594588669468784357561207962098443483187940792729600000e+59",
    "1.00000000000000011102230246251565404236316680908203125",
    "1.00000000000000011102230246251565404236316680908203124",
    "1.00000000000000011102230246251565404236316680908203126",
    "1.00000000000000033306690738754696212708950042724609375",
    "9007199254740993.0",
    "9007199254740992.5",
    "4503599627370496.5",
    "4503599627370497.5",
    "4503599627370498.5",
    "0.500000000000000166533453693773481063544750213623046875",
    "8.98846567431158e307",
    "1.8446744073709551616e19",
    "3.518437208883201171875e13",
    "62.5364939768271845828",
    "8.10109172351e-10",
    "1.50000000000000011102230246251565",
    "104110013277974872254e-225",
    "123456789012345678e-5",
    "5708990770823839207320493820740630171355185152e-2",
    "1448997445238699",
    "8440.9e-1",
    "3.08984926168550152811e-32",
    "0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
    "6.9294956446009195e15",
    "3.7455744005952583e15",
    "2.2250738585072019e-308",
    "1.0e-308",
    "1e308",
    "1.e0x",
    "9.5367431640625e-7",
    "0.00012345678901234567",
    "2.109808898695963e16",
    "4.940656e-318",
    "1.18575755e-316",
    "2.989102097996e-312",
    "9.0608011534336e15",
    "4.708356024711512e18",
    "9.409340012568248e18",
    "1.2345e-310",
    "7.2057594037927933e16",
    "1.0000000000000002e0",
    "1.0000000000000001e0",
    "2e-1074",
    "30000000000000000000e-1",
    "123e34",
    "5e-20",
    "2.5e-1",
    "1e0",
    "0.1e1",
    "10.0",
    "100",
    "1000000",
    "12345678",
    "123456789",
    "1234567890123456",
    "12345678901234567",
    "123456789012345678",
    "1234567890123456789",
    "12345678901234567890",
    "0.1234567",
    "0.12345678",
    "0.123456789",
    "0.1234567890123456",
    "0.12345678901234567",
    "0.0000000000000001234567890123456789",
]
HARD.remove("1.e0x")


def check_numbers(texts: list[str]) -> None:
    """Every number is read as float() reads it, as a score and as a coordinate."""
    texts = texts + ["1"] * (-len(texts) % 5)
    record = b'{"image_id":1,"category_id":1,"bbox":[%b,%b ,%b, %b],"score":%b}'
    raw = [text.encode() for text in texts]
    data = document(*[record % tuple(raw[k : k + 5]) for k in range(0, len(raw), 5)])
    columns = _scan.scan_results(data, 1)
    assert columns is not None
    assert columns.bbox is not None
    values = np.concatenate([columns.bbox, columns.score[:, None]], axis=1).ravel()
    expected = np.array([float(text) for text in texts])
    wrong = np.flatnonzero(values.view(np.int64) != expected.view(np.int64))
    assert not len(wrong), [(texts[k], values[k], expected[k]) for k in wrong[:5]]


def test_hard_numbers() -> None:
    check_numbers(HARD + ["-" + text for text in HARD if not text.startswith("-")])


def test_long_numbers() -> None:
    texts = ["9" * n for n in (*range(1, 40), 300)] + ["0." + "9" * n for n in (*range(1, 40), 400, 5000)]
    texts += ["0." + "0" * n + "17" for n in (*range(1, 40), 320, 400)] + ["1" + "0" * n for n in (*range(1, 40), 308)]
    texts += [f"{'9' * n}.{('876543219' * 3)[:m]}" for n in range(1, 9) for m in range(1, 26)]
    texts += ["1" * n + "." + "1" * n for n in range(1, 40)] + [f"1{'0' * n}e-{n}" for n in (*range(1, 40), 400)]
    texts += ["0." + "0" * n + f"1e{n}" for n in (*range(1, 40), 400)] + [
        "1" + "0" * 30 + "e-0000000000000000000000030",
        "1e+000000000000000000001",
    ]
    check_numbers(texts)


def test_powers_of_ten_and_two() -> None:
    step = 13 if UNCOMPILED else 1
    texts = [
        f"{m}e{q}"
        for q in range(-345, 309, step)
        for m in (1, 9, 7205759403792794, 9007199254740993, 1234567890123456789)
        if m * 10.0**q < 1e308
    ]
    check_numbers(texts)
    for exponent in range(-1074, 1024, 31 * step):
        exact = f"{math.ldexp(1.0, exponent):.1100f}".rstrip("0") if exponent < 0 else f"{2**exponent}."
        check_numbers([exact + "0", exact + "1", repr(math.ldexp(1.0, exponent)), f"{math.ldexp(1.0, exponent):.17e}"])


def test_halfway_between_two_doubles() -> None:
    generator = random.Random(5)
    texts = []
    for _ in range(20 if UNCOMPILED else 2000):
        mantissa = generator.randrange(2**52, 2**53) * 2 + 1  # 54 bits: exactly between two doubles
        scale = generator.randrange(0, 10)
        half = mantissa << scale
        texts += [str(half), str(half - 1), str(half + 1), f"{half}.0", f"{half}e0"]
        below = mantissa * 5**scale  # the same, divided by a power of two
        digits = str(below).rjust(scale + 1, "0")
        texts += [f"{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}0", f"{below}e-{scale}"]
    check_numbers(texts)


def test_random_bit_patterns() -> None:
    count = 200 if UNCOMPILED else 100_000
    generator = np.random.default_rng(7)
    values = generator.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
    values = values[np.isfinite(values)]
    check_numbers([repr(value) for value in values.tolist()])
    check_numbers([f"{value:.17g}" for value in values.tolist()])
    check_numbers([f"{value:.{k % 19}e}" for k, value in enumerate((values / 2).tolist())])
    widened = generator.random(count, dtype=np.float32).astype(np.float64)
    check_numbers([repr(value) for value in (widened * 1000).tolist()])
    check_numbers([repr(value) for value in (widened**8).tolist()])
    check_numbers([f"{value:.{k % 25}f}" for k, value in enumerate((widened * 1000).tolist())])
    singles = generator.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    check_numbers([repr(value) for value in singles[np.isfinite(singles)].astype(np.float64).tolist()])


@given(
    st.lists(
        st.from_regex(r"\A-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?\Z"), min_size=1, max_size=20
    )
)
def test_any_number(texts: list[str]) -> None:
    check_numbers(texts)


# Documents made by hypothesis ----------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
NUMBER = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
BOX = st.lists(NUMBER, min_size=4, max_size=4)
INTEGER, TEXT = st.integers(-(2**63), 2**63 - 1), st.text(max_size=6)


@st.composite
def records(draw: st.DrawFn, required: dict[str, Any], optional: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {
        name: draw(st.sampled_from([INTEGER, TEXT])) for name, kind in {**required, **optional}.items() if kind is None
    }
    rows: list[dict[str, Any]] = []
    alike = draw(st.booleans())
    for _ in range(draw(st.integers(0, 6 if alike else 4))):
        if alike and rows and draw(st.integers(0, 9)):
            known = {name: kinds.get(name, kind) for name, kind in {**required, **optional}.items()}
            rows.append({name: draw(known.get(name, JSON)) for name in rows[0]})
            continue
        row = {name: draw(kinds.get(name, kind)) for name, kind in required.items()}
        row |= {name: draw(kinds.get(name, kind)) for name, kind in optional.items() if draw(st.booleans())}
        row |= draw(st.dictionaries(st.text(max_size=12), JSON, max_size=2))
        if draw(st.integers(0, 9)) == 0:
            row[draw(st.sampled_from([*required, *optional]))] = draw(JSON)
        rows.append(dict(draw(st.permutations(list(row.items())))))
    return rows


RESULTS = records(
    {"image_id": None, "category_id": None, "score": NUMBER, "bbox": BOX}, {"segmentation": JSON, "keypoints": JSON}
)


@st.composite
def written(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> bytes:
    """Write values as JSON in one style or another, and spoil a few of them."""
    text = json.dumps(
        draw(values),
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 0, 2])),
        separators=draw(st.sampled_from([None, (",", ":"), (" ,\t", "\r:\n")])),
    )
    data = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 3)) == 0:
        place, removed = draw(st.integers(0, len(data))), draw(st.integers(0, 3))
        inserted = draw(st.binary(max_size=2) | st.sampled_from([bytes([byte]) for byte in HOSTILE_BYTES]))
        data = data[:place] + inserted + data[place + removed :]
    return data


@given(written(RESULTS), st.sampled_from([8, 64, 1000, 1 << 22]), st.sampled_from([1, 2, 3]))
def test_any_results(data: bytes, block: int, threads: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_documents, "BLOCK", block)
        check_results(data, threads=threads)


@given(
    st.lists(written(RESULTS.filter(bool).map(lambda rows: rows[0])), max_size=5),
    st.sampled_from([8, 64, 1 << 22]),
    st.sampled_from([b"\n", b"\r\n", b"\n \n"]),
)
def test_any_json_lines(lines: list[bytes], block: int, end: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_documents, "BLOCK", block)
        check_results(end.join(lines) + end, lines=True)
        check_results(end.join(lines), lines=True, threads=2)


ANNOTATION = (
    b'{"id": 7, "image_id": 1, "category_id": 3, "bbox": [1.5, 2, 3, 4], "area": 12.25, "iscrowd": 0, "ignore": 1,'
    b' "segmentation": [[1, 2.5, 3]], "keypoints": [1, 2, 2], "num_keypoints": 1}'
)
TRUTH = (
    b'{"info": {"year": [2014]}, "images": [{"id": 1, "width": 5}, {"file_name": "a", "id": 2}], "annotations": [%b],'
    b' "licenses": [], "categories": [{"supercategory": "x", "id": 3, "name": "cat"}]}'
)


PLAIN_TRUTHS = [
    TRUTH % ANNOTATION,
    TRUTH % b"",
    TRUTH % (ANNOTATION + b"," + ANNOTATION),
    TRUTH % b", ".join([ANNOTATION] * 5),
    TRUTH % b'{"image_id": 1, "category_id": 3}',
    TRUTH
    % b'{"image_id":1,"category_id":3},{"image_id":1,"category_id":3,"iscrowd":true,"ignore":false,"bbox":[1,2,3,4]}',
    TRUTH % b'{"image_id": "1", "category_id": "3", "id": "x", "area": 1e-3}',
    b'{"images":[],"annotations":[],"categories":[]}',
    b' {"im\\u0061ges" : [ ] , "annotations":[],"categories":[],"":{}}\n',
    b'{"categories":[{"name":"a","id":1},{"name":"a","id":2},{"name":"\\u0061","id":3}],"annotations":[],"images":[]}',
    '{"categories":[{"name":"é😀","id":"ü"}],"annotations":[],"images":[{"id":"ß"}],"é":"😀"}'.encode(),
    b'{"a":1,"a":2,"images":[],"annotations":[],"categories":[]}',
]


@pytest.mark.parametrize("data", PLAIN_TRUTHS)
def test_plain_ground_truth_is_understood(data: bytes) -> None:
    assert check_ground_truth(data) is not None


@pytest.mark.parametrize("data", PLAIN_TRUTHS)
@pytest.mark.compiled
def test_no_beginning_of_ground_truth_is_understood(data: bytes) -> None:
    for end in range(len(data.rstrip())):
        assert check_ground_truth(data[:end]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"{",
        b"}",
        b"{,}",
        b'{"images":[],"annotations":[]}',
        b'{"images":[],"annotations":[],"categories":[],}',
        b'{"images":[],"annotations":[],"categories":[]}}',
        b'{"images":[],"annotations":[],"categories":[]},',
        b'{"images":[],"images":[],"annotations":[],"categories":[]}',
        b'{"images":[],"annotations":null,"categories":[]}',
        b'{"images":[],"annotations":{},"categories":[]}',
        b'{"images":[] "annotations":[],"categories":[]}',
        b'{"images":[],"annotations" [],"categories":[]}',
        b'{"images":[],"annotations":[],categories:[]}',
        b'{"images":[],"annotations":[],"categories":[],"x":tru}',
        b'{"images":[],"annotations":[],"categories":[],"x":"\xff"}',
        b'{"images":[],"annotations":[],"categories":[],"\\ud800":1}',
        b'{"images":[],"annotations":[],"categories":[],"x":' + b"[" * 65 + b"]" * 65 + b"}",
        b'{"images":[{}],"annotations":[],"categories":[]}',
        b'{"images":[{"id":null}],"annotations":[],"categories":[]}',
        b'{"images":[{"id":1},{"id":"1"}],"annotations":[],"categories":[]}',
        b'{"images":[],"annotations":[],"categories":[{"id":1}]}',
        b'{"images":[],"annotations":[],"categories":[{"id":1,"name":1}]}',
        b'{"images":[],"annotations":[],"categories":[{"id":1,"name":null}]}',
        TRUTH % b'{"category_id": 3}',
        TRUTH % b'{"image_id": 3}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "id": 1},{"image_id": 1, "category_id": 3}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "iscrowd": 2}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "iscrowd": 1.0}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "iscrowd": "1"}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "iscrowd": null}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "ignore": 01}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "ignore": -0}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "ignore": truee}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "area": null}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "num_keypoints": "1"}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "num_keypoints": 1.0}',
    ],
)
def test_other_ground_truth_is_not(data: bytes) -> None:
    assert check_ground_truth(data) is None


FLAG = st.sampled_from([0, 1, True, False])
ANNOTATIONS = records(
    {"image_id": None, "category_id": None},
    {"bbox": BOX, "area": NUMBER, "iscrowd": FLAG, "ignore": FLAG, "segmentation": JSON, "keypoints": JSON},
)
IMAGES, CATEGORIES = (
    records({"id": None}, {"file_name": TEXT}),
    records({"id": None, "name": TEXT}, {"supercategory": TEXT}),
)


@given(
    written(
        st.fixed_dictionaries(
            {"images": IMAGES, "annotations": ANNOTATIONS, "categories": CATEGORIES}, optional={"info": JSON}
        )
        .flatmap(lambda truth: st.permutations(list(truth.items())))
        .map(dict)
    ),
    st.sampled_from([8, 64, 1000, 1 << 22]),
    st.sampled_from([1, 2]),
)
def test_any_ground_truth(data: bytes, block: int, threads: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_documents, "BLOCK", block)
        check_ground_truth(data, threads)


# Blocks and threads --------------------------------------------------------------------------------------------------


def varied_results(count: int) -> bytes:
    """Make results whose strings and nested values look like records."""
    generator = random.Random(3)
    rows = []
    for k in range(count):
        row: dict[str, Any] = {
            "image_id": generator.randrange(50),
            "category_id": k % 7,
            "bbox": [generator.random() for _ in range(4)],
        }
        row["score"] = generator.choice([generator.random(), 1, float(np.float32(generator.random()))])
        if k % 3 == 0:
            row["note"] = generator.choice(
                ['{"image_id": 1, "category_id": 2', "]", '"}, {"image_id": 3', "é" * 9, "}, {"]
            )
        if k % 5 == 0:
            row["nested"] = [{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 5}] * generator.randrange(
                4
            )
        if k % 11 == 0:
            row["segmentation"] = {"size": [1, 2], "counts": "}{{{["}
        rows.append(row)
    return json.dumps(rows, ensure_ascii=False).encode()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("block", [8, 50, 100, 257, 4096])
def test_columns_do_not_depend_on_blocks_and_threads(block: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = varied_results(13 if UNCOMPILED else 300)
    whole = check_results(data)
    assert whole is not None
    monkeypatch.setattr(_documents, "BLOCK", block)
    assert same(_scan.scan_results(data, threads), whole)
    lines = b"\n".join(json.dumps(row, ensure_ascii=False).encode() for row in json.loads(data))
    columns = check_results(lines, lines=True, threads=threads)
    assert columns is not None
    assert same(columns[:4], whole[:4])
    for end in range(len(data) - 300, len(data), 97 if UNCOMPILED else 23):
        assert _scan.scan_results(data[:end], threads) is None


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("block", [8, 57, 300, 4096])
@pytest.mark.parametrize("first", ["id", "name"])
def test_ground_truth_does_not_depend_on_blocks_and_threads(
    first: str, block: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 10 if UNCOMPILED else 100
    truth: dict[str, Any] = {
        "images": [{first: k, "id": k} for k in range(count)],
        "info": {"images": [{first: 1, "id": 2}]},
        "annotations": [
            {
                "id": k,
                "image_id": k % 9,
                "category_id": 1,
                "area": k / 7,
                "parts": [{"id": 1, "image_id": 2, "category_id": 3}] * (k % 3),
            }
            for k in range(count)
        ],
        "categories": [{"id": k, "name": '{"id": é' * (k % 4)} for k in range(count)],
    }
    data = json.dumps(truth, ensure_ascii=False).encode()
    whole = check_ground_truth(data)
    assert whole is not None
    monkeypatch.setattr(_documents, "BLOCK", block)
    assert same(_scan.scan_ground_truth(data, threads), whole)


def test_guesses_are_right_where_records_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    data = document(*[RESULT] * 40)
    blocks = []
    scan = _lists.Layout.scan
    monkeypatch.setattr(_lists.Layout, "scan", lambda self, *rest: (blocks.append(rest[1]), scan(self, *rest))[1])
    monkeypatch.setattr(_documents, "BLOCK", 500)
    assert _scan.scan_results(data, 2) is not None
    assert len(blocks) == len(set(blocks)) == len(data) // 500  # no block was scanned twice
    for hostile in (RESULT.replace(b"}", b',"x":"{\\"image_id\\""}'), RESULT.replace(b"}", b',"x":[{"image_id": 1}]}')):
        blocks.clear()
        assert check_results(document(*[hostile] * 40), threads=2) is not None


def test_more_records_than_the_first_block_lets_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [RESULT.replace(b"}", b', "x": "%s"}' % (b"y" * 400))] * (5 if UNCOMPILED else 10)
    data = document(*long, *[RESULT] * (60 if UNCOMPILED else 200))
    whole = check_results(data)
    exact = []
    make = _lists.List.__init__
    monkeypatch.setattr(
        _lists.List,
        "__init__",
        lambda self, *rest, exact_=exact, **more: (exact_.append(more["exact"]), make(self, *rest, **more))[1],
    )
    monkeypatch.setattr(_documents, "BLOCK", 1000)
    for threads in (1, 2, 4):
        assert same(check_results(data, threads=threads), whole)
    assert exact == [False, True] * 6


def test_a_list_that_goes_on_behind_a_block_without_its_first_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the list is taken to be over until it turns out not to be; also where more records follow than expected."""
    wide = RESULT.replace(b"}", b', "x": "%s"}' % (b"y" * 3000))
    slim, long = [RESULT] * 25, [RESULT.replace(b"}", b', "x": "%s"}' % (b"y" * 400))] * 5
    exact = []
    make = _lists.List.__init__

    def noted(self: Any, *rest: Any, **more: Any) -> None:
        exact.append(more["exact"])
        make(self, *rest, **more)

    monkeypatch.setattr(_lists.List, "__init__", noted)
    for records, tries in (([*slim, wide, *slim], [False]), ([*long, wide, *slim * 2], [False, True])):
        data = document(*records)
        monkeypatch.setattr(_documents, "BLOCK", 1 << 20)
        whole = _scan.scan_results(data, 1)
        assert whole is not None
        monkeypatch.setattr(_documents, "BLOCK", 1000)
        for threads in (1, 2, 4):
            exact.clear()
            assert same(check_results(data, threads=threads), whole)
            assert exact == tries * 2


def test_a_window_may_end_between_a_comma_and_white_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where its block ends there: the next block begins with a record."""
    data = (
        b'{"info": {"year": [2014]}, "images": [{"id": 1, "width": 5}, {"file_name": "a", "id": 2}], "annotations": '
        b'[{"image_id": "1", "category_id": "3", "NaN": "x", "area": 1e-3}], "licenses": [], "categories": '
        b'[{"supercategory": "x", "id": 3, "name": "cat"}]}'
    )
    monkeypatch.setattr(_documents, "BLOCK", 16)
    whole = check_ground_truth(data)
    assert whole is not None
    for window in range(8, len(data)):
        for margin in (1, 6, 39):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(_documents, "WINDOW", window)
                patch.setattr(_documents, "MARGIN", margin)
                patch.setattr(_documents, "GROWTH", 2)
                assert same(_scan.scan_ground_truth(InWindows(data), 1), whole), (window, margin)


def test_what_follows_a_list_is_not_counted_as_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of the longest list are looked at once, wherever the short ones stand."""
    truth = {
        "images": [{"id": 1}],
        "annotations": [{"image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4], "area": 12}] * 100,
        "categories": [{"id": 3, "name": "c"}],
    }
    looked_at = []
    survey = _documents.Document.survey

    def noted(self: Any, data: Any, begin: int, end: int) -> Any:
        looked_at.append(end - begin)
        return survey(self, data, begin, end)

    monkeypatch.setattr(_documents.Document, "survey", noted)
    monkeypatch.setattr(_documents, "BLOCK", 500)
    for names in (("images", "categories", "annotations"), ("annotations", "images", "categories")):
        data = json.dumps({name: truth[name] for name in names}).encode()
        looked_at.clear()
        assert _scan.scan_ground_truth(data, 1) is not None
        assert sum(looked_at) < 1.5 * len(data)


HOSTILE_PIECES = (b"{", b'{"image_id":', b'[{"x":[', b"[", b'"', b"\n", b"#", b"a 0 b 0 1 c", b"\n{")


@pytest.mark.parametrize("piece", HOSTILE_PIECES)
def test_hostile_documents_take_little_memory(piece: bytes) -> None:
    data = b"[" + piece * (10**3 if UNCOMPILED else 10**6)
    for scan in (_scan.scan_results, _scan.scan_ground_truth, _scan.scan_run, _scan.scan_qrels):
        scan(data[:100], 1)  # compiling takes memory, too
        tracemalloc.start()
        scan(data, 1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * len(data) + 10**6


def test_numbers_for_float_do_not_depend_on_how_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    data = document(*[RESULT.replace(b"42", b"%d" % k).replace(b"41.29", b"41." + b"%d" % k * 30) for k in range(40)])
    whole = check_results(data)
    assert whole is not None
    monkeypatch.setattr(_lists, "DOUBTS", scanning.MOST_NUMBERS)
    monkeypatch.setattr(_documents, "BLOCK", 500)
    assert same(_scan.scan_results(data, 2), whole)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, "file"])
def test_any_buffer(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_documents, "BLOCK", 8192)
    data = varied_results(20) + b" " * 30_000
    (tmp_path / "results.json").write_bytes(data)
    if kind == "file":
        opened = _open.open_path(tmp_path / "results.json")
        assert isinstance(opened, _open.File)
        with opened as file:
            columns = _scan.scan_results(file, 2)
    else:
        columns = _scan.scan_results(kind(data), 2)
    assert same(columns, _scan.scan_results(data, 1))


def test_an_empty_document() -> None:
    assert _scan.scan_results(b"", 1) is None
    assert _scan.scan_results(b"", 1, lines=True) is not None


# TREC ----------------------------------------------------------------------------------------------------------------


def document_ids(columns: _scan.RunColumns | _scan.QrelsColumns) -> list[bytes]:
    whole = columns.data.tobytes()
    pairs = [divmod(word, 1 << LENGTH_BITS) for word in columns.document.tolist()]
    return [whole[begin : begin + length] for begin, length in pairs]


def query_ids(columns: _scan.RunColumns | _scan.QrelsColumns) -> list[bytes]:
    assert columns.query.dtype == np.int32
    assert list(dict.fromkeys(columns.query.tolist())) == list(range(len(columns.queries)))
    return [columns.queries[code] for code in columns.query.tolist()]


def check_run(data: bytes, threads: int = 1) -> _scan.RunColumns | None:
    rows = naive.run(data)
    columns = _scan.scan_run(data, threads)
    assert (rows is None) == (columns is None), data
    if rows is not None and columns is not None:
        assert query_ids(columns) == [row[0] for row in rows]
        assert document_ids(columns) == [row[1] for row in rows]
        assert list(map(bits, columns.score.tolist())) == [bits(row[2]) for row in rows]
        assert columns.longer == sum(row[3] for row in rows)
    check_windows(lambda file: meaning_of(_scan.scan_run(file, threads)), data, meaning_of(columns))
    return columns


def meaning_of(columns: _scan.RunColumns | _scan.QrelsColumns | None) -> Any:
    """All columns of lines but for where the ids lie in memory."""
    return columns and (
        query_ids(columns),
        document_ids(columns),
        *map(bytes, columns[3:4]),
        columns.queries,
        *columns[5:],
    )


def check_qrels(data: bytes, threads: int = 1) -> _scan.QrelsColumns | None:
    rows = naive.qrels(data)
    columns = _scan.scan_qrels(data, threads)
    assert (rows is None) == (columns is None), data
    if rows is not None and columns is not None:
        assert query_ids(columns) == [row[0] for row in rows]
        assert document_ids(columns) == [row[1] for row in rows]
        assert columns.relevance.tolist() == [row[2] for row in rows]
    check_windows(lambda file: meaning_of(_scan.scan_qrels(file, threads)), data, meaning_of(columns))
    return columns


RUN = b"q1 Q0 doc-1 1 2.5 tag\nq1\tQ0\tdoc-22222222222 2  -1e-3 tag\nq2 Q0 d\xc3\xa9 1 17 t\nq1 Q0 # 3 0.30000001192092896 t"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\n \n\t\r\n# comment\n  # another\r\n#",
        RUN,
        RUN + b"\n",
        RUN.replace(b"\n", b"\r\n"),
        RUN.replace(b"\n", b" more 1e5 #\n\n"),
        RUN.replace(b"tag", b"tag\t "),
        b"\n".join(b"a 0 b 0 %b c" % text.encode() for text in HARD),
        b"\n".join(
            b"a 0 b 0 %b c" % text for text in [b"+1", b".5", b"5.", b"-.5e3", b"007", b"+00.10E+01", b"1" * 50]
        ),
        b"q" * 100 + b" 0 " + b"d" * 1000 + b" 0 1 t\n" + b"q" * 99 + b"r 0 " + b"d" * 1000 + b" 0 1 t\n",
        b"\xff\xfe 0 \x80 0 1 \xff",
    ],
)
def test_plain_runs(data: bytes) -> None:
    assert check_run(data) is not None


def test_a_run_with_four_words_after_the_name_is_not_plain() -> None:
    assert check_run(RUN + b" one two three") is not None
    assert check_run(RUN + b" one two three four") is None


BAD_SCORES = "nan|inf|-inf|NaN|Infinity|1_0|0x10|1e|1e+|-|+|.|e5|1e999|-1e999|1,5|1..2|1.5f|\u0661"


@pytest.mark.parametrize("score", BAD_SCORES.split("|"))
def test_scores_that_are_not_plain(score: str) -> None:
    assert check_run(b"a 0 b 0 1 c\na 0 b 0 " + score.encode() + b" c\n") is None


QRELS = b"q1 0 d1 1\nq1\tQ0  d2\t-2 \r\n\n# c\nq2 0 d1 9223372036854775807"


def test_a_byte_order_mark_ahead_of_lines_is_passed_and_another_is_part_of_an_id() -> None:
    columns = check_run(b"\xef\xbb\xbf" + RUN)
    assert columns is not None
    assert columns.queries == [b"q1", b"q2"]
    again = check_run(b"\xef\xbb\xbf\xef\xbb\xbf" + RUN)
    assert again is not None
    assert again.queries[0] == b"\xef\xbb\xbfq1"


def test_plain_qrels() -> None:
    assert check_qrels(QRELS) is not None
    assert check_qrels(b"") is not None
    for relevance in (b"1.0", b"01", b"+1", b"9223372036854775808", b"x", b"1 1", b"", b"-", b"1_0"):
        assert check_qrels(b"q 0 d " + relevance) is None


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("block", [1, 8, 33, 1 << 22])
def test_every_byte_of_a_run_replaced_and_cut(block: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_documents, "BLOCK", block)
    for place in range(0, len(RUN) + 1, 11 if UNCOMPILED or threads > 1 else 1):
        check_run(RUN[:place], threads)
        check_qrels(QRELS[:place], threads)
        for byte in b"\x00\t\n\x0b\x0c\r\x1f #1.e-\x7f\x80\xff":
            check_run(RUN[:place] + bytes([byte]) + RUN[place + 1 :], threads)
            check_qrels(QRELS[:place] + bytes([byte]) + QRELS[place + 1 :], threads)


TOKEN = st.sampled_from(
    [b"a", b"b", b"ab", b"abcdefgh", b"abcdefghi", b"abcdefghj", b"\xff", b"#", b"1", b"-2.5e3", b".5"]
) | st.binary(min_size=1, max_size=3)
BLANK = st.sampled_from([b" ", b"\t", b"  ", b" \t "])


@st.composite
def token_lines(draw: st.DrawFn) -> bytes:
    lines = []
    for _ in range(draw(st.integers(0, 5))):
        tokens = draw(st.lists(TOKEN, min_size=4, max_size=10))
        if len(tokens) > 5:
            tokens[4] = draw(st.floats(allow_nan=False).map(lambda value: repr(value).encode()) | st.just(tokens[4]))
        elif len(tokens) == 4:
            tokens[3] = draw(st.integers(-(2**65), 2**65).map(lambda value: str(value).encode()) | st.just(tokens[3]))
        lines.append(b"".join(token + draw(BLANK) for token in tokens)[: -1 if draw(st.booleans()) else None])
    return draw(st.sampled_from([b"\n", b"\r\n", b"\n\n"])).join(lines) + draw(
        st.sampled_from([b"", b"\n", b"\r", b" "])
    )


@given(token_lines(), st.sampled_from([1, 8, 20, 1 << 22]), st.sampled_from([1, 2]))
def test_any_lines(data: bytes, block: int, threads: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_documents, "BLOCK", block)
        check_run(data, threads)
        check_qrels(data, threads)


def random_run(
    count: int, queries: int, documents: int, scores: int, seed: int, contiguous: bool
) -> tuple[bytes, bytes]:
    """Make a run and judgements with many ties, and document ids that begin alike."""
    generator = random.Random(seed)
    names = [b"document-" * generator.randrange(3) + b"%d" % generator.randrange(10**6) for _ in range(documents)]
    names = sorted({*names, *(name[: len(name) // 2 + 1] for name in names), *(name + b"0" for name in names)})
    pairs = sorted({(generator.randrange(queries), generator.choice(names)) for _ in range(count)})
    judged = sorted({(generator.randrange(queries + 2), generator.choice(names)) for _ in range(count // 2)})
    if not contiguous:
        generator.shuffle(pairs)
        generator.shuffle(judged)
    run = b"\n".join(b"%d Q0 %b 0 %d t" % (query, name, generator.randrange(scores)) for query, name in pairs)
    return run, b"\n".join(b"%d 0 %b %d" % (query, name, generator.randrange(3)) for query, name in judged)


def grouped(columns: _scan.RunColumns | _scan.QrelsColumns, queries: list[bytes]) -> tuple[Any, Any, Any]:
    """Return the rows query by query, the words that locate their documents, and where each of `queries` starts."""
    codes = np.array([queries.index(query) for query in query_ids(columns)], np.int64)
    rows = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(queries)))])
    return rows, readonly(columns.document[rows], np.uint64), readonly(starts, np.int64)


def found_strings(own: Any, starts: Any, others: Any, other_starts: Any, step: int) -> tuple[list[int], list[int]]:
    """Call the kernel for `step` groups at a time."""
    found = np.full(len(others[1]), -2, np.int64)
    both = Grouped(*own, starts), Grouped(*others, other_starts)
    with np.errstate(over="ignore"):
        repeated = [
            find_strings(*both, k, min(k + step, len(starts) - 1), np.uint64(step), found)
            for k in range(0, len(starts) - 1, step)
        ]
    return found.tolist(), repeated


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("scores", [1, 5, 10**6])
@pytest.mark.parametrize("count", [1, 2, 60, 600, 5000])
def test_documents_are_found_and_ranked(
    count: int, scores: int, contiguous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = min(count, 200) if UNCOMPILED else count
    run_data, qrels_data = random_run(count, 7, 2 * count, scores, count, contiguous)
    run, qrels = check_run(run_data), check_qrels(qrels_data)
    assert run is not None
    assert qrels is not None
    queries = list(dict.fromkeys([*run.queries, *qrels.queries]))
    rows, words, starts = grouped(run, queries)
    judged_rows, judged_words, judged_starts = grouped(qrels, queries)

    ranked = np.arange(len(rows), dtype=np.int32)
    score = readonly(run.score[rows], np.float64)
    for query in range(len(queries)):
        rank_rows(run.data, words, score, starts, query, query + 1, ranked)
    ids = document_ids(run)
    naively = sorted(range(len(rows)), key=lambda k: (score[k], ids[rows[k]]), reverse=True)
    group = np.repeat(np.arange(len(queries)), np.diff(starts))
    assert ranked.tolist() == sorted(naively, key=lambda k: group[k])

    place: dict[tuple[int, bytes], int] = {}
    for k, row in enumerate(rows.tolist()):
        place[int(group[k]), ids[row]] = k - int(starts[group[k]])
    judged_ids, judged_group = document_ids(qrels), np.repeat(np.arange(len(queries)), np.diff(judged_starts))
    wanted = [
        place.get((int(query), judged_ids[row]), -1) for query, row in zip(judged_group, judged_rows, strict=True)
    ]
    for step in (1, 3, len(queries)):
        found, repeated = found_strings((run.data, words), starts, (qrels.data, judged_words), judged_starts, step)
        assert found == wanted
        assert set(repeated) == {-1}
    monkeypatch.setattr(_documents, "BLOCK", 64)
    for threads in (1, 2, 3):
        assert same(_scan.scan_run(run_data, threads), run)


def test_repeated_documents_are_found() -> None:
    run = _scan.scan_run(b"q 0 a 0 1 t\np 0 a 0 1 t\nq 0 b 0 1 t\nx 0 d 0 1 t\nx 0 c 0 1 t\nx 0 d 0 1 t\n")
    assert run is not None
    _, words, starts = grouped(run, run.queries)
    none = readonly([], np.uint64), readonly(np.zeros(4), np.int64)
    assert found_strings((run.data, words), starts, (run.data, none[0]), none[1], 3) == ([], [5])
    assert found_strings((run.data, words), starts, (run.data, none[0]), none[1], 1) == ([], [-1, -1, 5])


# Kernels -------------------------------------------------------------------------------------------------------------


@pytest.mark.compiled
@pytest.mark.skipif(UNCOMPILED, reason="kernels are not compiled")
def test_one_signature_per_kernel() -> None:
    for kernel in (survey, skip_value, record_kernels.scan_records, scan_lines, factorise, find_strings, rank_rows):
        assert len(kernel.signatures) <= 1, kernel.py_func.__name__


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["instances_val2014_fakebbox100_results", "instances_val2014_fakesegm100_results"])
def test_real_results(name: str, real_data: Path) -> None:
    assert check_results((real_data / "coco" / f"{name}.json").read_bytes()) is not None


@pytest.mark.real_data
@pytest.mark.parametrize(
    "name", ["coco/instances_val2014_100", "coco/instances_val2017_COCO-MINI", "voc2007/pascal_test2007"]
)
@pytest.mark.compiled
def test_real_ground_truth(name: str, real_data: Path) -> None:
    assert check_ground_truth((real_data / f"{name}.json").read_bytes()) is not None


@pytest.mark.real_data
@pytest.mark.compiled
def test_real_runs(real_data: Path) -> None:
    folder = real_data / "trec"
    for name in ("results.test", "results.trunc"):
        assert check_run((folder / name).read_bytes()) is not None
    assert check_run(gzip.decompress((folder / "results.comment.test.gz").read_bytes())) is not None
    for name in ("qrels.test", "qrels.rel_level", "qrels.comment.test"):
        assert check_qrels((folder / name).read_bytes()) is not None


@pytest.fixture
def real_data() -> Path:
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("../shared/data is absent")
    return folder


def test_a_string_is_compared_to_its_end_and_no_further() -> None:
    data = readonly(np.frombuffer(b"abcX abcY abd ", np.uint8), np.uint8)
    words = readonly([at << LENGTH_BITS | 3 for at in (0, 5, 10)], np.uint64)
    codes, firsts = np.empty(3, np.int32), np.empty(3, np.uint64)
    assert factorise(data, words, np.uint64(1), codes, firsts) == 2
    assert codes.tolist() == [0, 0, 1]


def test_a_block_of_lines_does_not_look_at_the_row_before_it() -> None:
    """Another thread writes that one, perhaps later; within the block a repeated id has the place of the first."""
    ids, state = np.empty(4, np.uint64), np.zeros(scanning.STATE_SIZE, np.int64)
    ids[0] = 3 << LENGTH_BITS | 2
    state[scanning.FIRST] = state[scanning.ROW] = 1
    state[scanning.LIMIT] = 4
    data, tokens = readonly(np.frombuffer(b"aa\naa\nbb\n", np.uint8), np.uint8), readonly([0], np.int64)
    places = readonly([[scanning.REPEATED, 1, 0]], np.int64)
    nothing, doubts = np.empty(0, np.uint64), np.empty((8, 3), np.int64)
    scan_lines(data, 9, tokens, False, powers(), scanning.Columns(places, ids, nothing, doubts), state)
    assert [(int(word) >> LENGTH_BITS, int(word) & 255) for word in ids[1:]] == [(0, 2), (0, 2), (6, 2)]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (rb'"\ud7ff"', 8),
        (rb'"\ue000"', 8),
        (rb'"\udc00"', -1),
        (rb'"\ud800\udc00"', 14),
        (rb'"\udbff\udfff"', 14),
        (rb'"\ud800\ud800"', -1),
        (rb'"\ud800\ue000"', -1),
        (rb'"\ud800 \udc00"', -1),
    ],
)
def test_halves_of_a_pair_come_in_pairs(text: bytes, end: int) -> None:
    data = readonly(np.frombuffer(text, np.uint8), np.uint8)
    assert skip_value(data, 0, False, powers()) == end
