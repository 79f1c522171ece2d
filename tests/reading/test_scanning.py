"""The scanner against json: documents of results, spoiled byte by byte, are read alike or left to the parser."""

from __future__ import annotations

import json

import numpy as np
import pytest
from legs import FULL
from scanner import UNCOMPILED, check_ground_truth, check_results, listed
from scanner_documents import ALIKE, ESCAPED, HOSTILE_BYTES, NOT_PLAIN, PLAIN, RESULT, document

from detmap.kernels import readonly
from detmap.kernels import records as record_kernels
from detmap.kernels.texts import LENGTH_BITS
from detmap.kernels.values import skip_value
from detmap.reading import documents, scanner
from detmap.shapes.reading import powers

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
    assert scanner.scan_results(data, 1) is None


def test_truncated_at_every_byte() -> None:
    data = document(
        RESULT, b'{"segmentation":{"counts":"\\u00e9\xc3\xa9"},"image_id":1,"category_id":1,"score":1.25e-3}'
    )
    assert check_results(data) is not None
    for end in range(len(data)):
        assert check_results(data[:end]) is None


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


@pytest.mark.compiled
def test_the_longest_id() -> None:
    record = b'{"image_id": "%b", "category_id": 1, "bbox": [1.5, 2, 3, 4], "score": 0.5}'
    longest = b"x" * ((1 << LENGTH_BITS) - 1)
    columns = scanner.scan_results(document(*(record % name for name in (b"a", longest, b"b", b"c"))), 1)
    assert columns is not None
    assert listed(columns.image_id, 4) == ["a", longest.decode(), "b", "c"]
    assert scanner.scan_results(document(*(record % name for name in (b"a", longest + b"x", b"b", b"c"))), 1) is None


@pytest.mark.skipif(not UNCOMPILED, reason="counts calls that kernels make")
def test_records_are_read_by_their_likeness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else would show it: one that is alike is not scanned key by key."""
    scanned = []
    note = record_kernels._note
    monkeypatch.setattr(record_kernels, "_note", lambda *value: (scanned.append(value), note(*value))[1])
    assert scanner.scan_results(document(*[RESULT.replace(b"42", b"%d" % k) for k in range(40)]), 1) is not None
    assert len(scanned) <= 7 * 2  # the first one, and the last one because the document ends there


INVALID_UTF8 = (
    b"\x80|\xbf|\xc0\x80|\xc1\xbf|\xc2|\xe0\x80\x80|\xe0\x9f\xbf|\xed\xa0\x80|\xed\xbf\xbf|\xe2\x82|\xf0\x80\x80\x80|"
    b"\xf0\x8f\xbf\xbf|\xf4\x90\x80\x80|\xf5\x80\x80\x80|\xff|\xfe|\xf8\x88\x80\x80\x80|\x80\x80\x80\x80\x80|\xc3\xa9\xa9|\xf0\x9f\x98"
).split(b"|")


@pytest.mark.parametrize("block", [1, 2, 3, 5, 8, 1 << 22])
def test_invalid_utf8_everywhere(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BLOCK", block)
    tail = b'","category_id":1,"bbox":[1,2,3,4],"score":1}]'
    for text in INVALID_UTF8[:: 5 if UNCOMPILED else 1]:
        for head in (b'[{"image_id":"', b'[{"image_id":"a","x":"', b'[{"image_id":"a","'):
            assert check_results(head + text + tail) is None
        assert check_results(b'[{"image_id":"a","x' + text + b'":"' + tail) is None
        truth = b'{"' + text + b'":0,"images":[],"annotations":[],"categories":[]}'
        assert check_ground_truth(truth) is None
    assert check_results(b'[{"image_id":"' + "é€😀߿ࠀ￿𐀀􏿿".encode() + tail) is not None


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
