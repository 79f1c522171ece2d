"""A document in memory and in a file gives the same bytes; JSON is walked record by record; bytes that are no UTF-8."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from detmap.reading import documents, record_walk
from detmap.reading.documents import Document, NotUnderstood, misplaced, unquoted
from detmap.reading.opening import open_path


@pytest.fixture(params=["memory", "file"])
def opened(request, tmp_path):
    files = []

    def make(data, **more):
        if request.param == "memory":
            return Document(data, 1, **more)
        path = tmp_path / f"data{len(files)}"
        path.write_bytes(data)
        files.append(open_path(path))
        return Document(files[-1], 1, **more)

    yield make
    for file in files:
        file.close()


@pytest.mark.parametrize("data", [b"0123456789", b"01234567", b"abc", b"x" * 5000 + b"needle" + b"y" * 70000])
def test_slices_searches_and_beginnings(data, opened):
    document = opened(data)
    size = max(len(data), 8)
    assert document.size == len(data) + 8 * (len(data) < 8)
    for begin in (0, 1, 5, len(data) - 2, len(data)):
        for end in (begin, begin + 1, begin + 3, len(data), len(data) + 5):
            if begin <= min(end, size):
                assert document.slice(begin, end) == (data + b"\n" * 8 * (len(data) < 8))[begin:end]
        text = data[begin : begin + 2]
        assert document.begins(begin, text)
        assert not document.begins(begin, text + b"#")
    for pattern in (b"needle", b"[0-9]3", b"y", b"absent", b"c"):
        for begin, end in ((0, len(data)), (1, len(data)), (3, len(data) - 1), (5000, 10**6), (4990, 5003), (7, 7)):
            found = re.compile(pattern).search(data, begin, min(end, len(data)))
            at = document.find(re.compile(pattern), begin, end)
            assert at == (-1 if found is None else found.start()), (pattern, begin, end)


def test_blanks_are_skipped(opened):
    for blanks in (0, 1, 63, 64, 65, 70000):
        data = b"[" + b" \n\t\r"[: 1 + blanks % 4] * 0 + b" " * blanks + b"]" + b" " * 10
        document = opened(data)
        assert document.after_blanks(1) == 1 + blanks
        assert document.after_blanks(0) == 0
        assert document.after_blanks(2 + blanks) == len(data)
    document = opened(b"\n\t\r 1       ")
    assert document.after_blanks(0) == 4


@pytest.mark.parametrize("length", [3, 200, 70_000, 300_000])
def test_values_are_skipped(length, opened):
    for value in (json.dumps("x" * length), json.dumps({"a": [1] * (length // 3)}), "1" * min(length, 200)):
        data = (value + ", 5         ").encode()
        assert opened(data).skip(0) == len(value)
        assert opened(b" " * 9 + data).skip(9) == 9 + len(value)
    with pytest.raises(NotUnderstood):
        opened(b'"' + b"x" * length).skip(0)
    with pytest.raises(NotUnderstood):
        opened(b'"\xff' + b"x" * length + b'"').skip(0)


def test_marks_are_counted(opened):
    data = b'[{"a": {"b": 1}}, {"a": 2}, {"c": "{"}]   '
    for inner, count in ((False, 3), (True, 4)):
        document = opened(data, inner=inner)
        base, window = document.window(0, len(data))
        assert base == 0
        marks, plain = document.survey(window, 0, len(data))
        assert (marks >= count - (not inner), plain) == (True, True)
        _, plain = opened(data.replace(b"c", b"\xc3\xa4"), inner=inner).survey(window, 0, len(data))
        assert plain
    lines = opened(b"one\ntwo\nthree\n    ", mark=b"\n")
    _, window = lines.window(0, lines.size)
    assert lines.survey(window, 0, lines.size) == (3, True)
    assert lines.survey(window, 0, 7) == (1, True)
    foreign = opened("äne\ntwo\n    ".encode(), mark=b"\n")
    _, window = foreign.window(0, foreign.size)
    assert foreign.survey(window, 0, foreign.size) == (2, False)
    foreign.check(window, 1, 5)  # lines may have any encoding
    with pytest.raises(NotUnderstood):
        opened("äne 12345".encode()).check(window, 1, 5)


@pytest.mark.parametrize("block", [1, 2, 3, 5, 1 << 20])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain",
        "ä".encode(),
        "aä€😀z".encode() * 3,
        b"ab\xff",
        b"\xff",
        b"ab\xc3",
        b"ab\xe2\x82",
        b"a\xc3\xa4\xa4b",
        b"\xf0\x9f\x98",
        b"abc\xf0\x9f\x98x",
        b"\xed\xa0\x80",
        b"aaaa\x80",
        b"\xc3\xa4\xc3",
    ],
)
def test_the_first_byte_that_is_no_utf_8(data, block, monkeypatch):
    monkeypatch.setattr(documents, "BLOCK", block)
    try:
        data.decode()
        wanted = -1
    except UnicodeDecodeError as error:
        wanted = error.start
    assert misplaced(data) == wanted
    assert misplaced(memoryview(data)) == wanted


def test_strings_of_json():
    assert unquoted(b"a\xc3\xa4") == "aä"
    assert unquoted(rb"a\u00e4\n\"") == 'aä\n"'


DOCUMENTS = [
    "[]", "[1, 2.5, null, true]", ' [ {"a": [1, {"b": []}]} , "x" ]  ', '{"a": [{"b": 1}, {}], "c": {"d": [1]}, "e": "f"}',
    "{}", '{"a": 1}', "5", '"text"', "null", '{"\\u0061": [1]}', '[[1, 2], [3]]', '{ "a" : [ ] , "b" : 2 }',
]  # fmt: skip


def plain(value):
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, record_walk._Records) else value


@pytest.mark.parametrize("large", [1, 1 << 20])
@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_document_is_walked_as_it_is_parsed(text, large, monkeypatch):
    monkeypatch.setattr(record_walk, "_LARGE", large)
    assert plain(record_walk.walked(text.encode(), False)) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    ["[1 2]", "[1,", "[", '{"a" 1}', '{"a": 1', '{a: 1}', '{"a": 1, "b"}', "{,}", '{"a": 1 "b": 2}', "x",
     '{"a": [1 2]}', '[{"a"}]'],
)  # fmt: skip
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r".*"):
        plain(record_walk.walked(text.encode(), False))


def test_records_are_a_sequence():
    records = record_walk.walked(b'[{"a": 1}, 5, {"a": 2}]', False)
    assert (len(records), records[0], records[1], records[2]) == (3, {"a": 1}, 5, {"a": 2})
    with pytest.raises(IndexError):
        records[3]
    assert repr(records) == "a long list"
    assert bool(records)
    assert not record_walk.walked(b"[ ]", False)
    lines = record_walk.walked(b'{"a": 1}\n\n  \n[5]\r\n7', True)
    assert list(lines) == [{"a": 1}, [5], 7]
    assert len(lines) == 3


def test_documents_that_are_crowded_or_hold_a_long_list():
    size = 1 << 20
    few = b'{"a": "' + b"x" * size + b'"}'
    assert not record_walk.crowded(few)
    assert not record_walk.crowded(b"{}" * (size // 2 - 1))
    assert record_walk.crowded(b"{}" * (size // 2))
    for mark in (b"{", b"["):
        count = size // 12
        assert not record_walk.crowded(mark * count + b" " * (size - count))
        assert record_walk.crowded(mark * (count + 1) + b" " * (size - count - 1))
    long = b"[" + b"1," * 32768
    fill = b" " * size
    for text, held, value in (
        (fill + long + b"1]", True, False), (fill + long[:-2] + b"]", False, False), (long + b"1]", False, False),
        (fill + b'{"bbox":  ' + long + b"1]}", True, True), (fill + b'{"image_id" : ' + long + b"1]}", True, True),
        (fill + b'{"counts": ' + long + b"1]}", True, False), (fill + b'{"num_keypoints":' + long + b"1]}", True, True),
        (fill + b'{"bbox": ' + long[:-2] + b"]}", False, False), (b'{"bbox": ' + long + b"1]}", False, False),
        (fill + b'{"bbox": [[' + long[1:] + b"1]]}", True, False),
    ):  # fmt: skip
        assert record_walk.holds_long_list(text) is held
        assert record_walk.holds_long_value(text) is value


def test_strings_are_kept_together(opened, monkeypatch):
    from detmap.kernels.texts import LENGTH_BITS
    from detmap.reading.scanned_columns import distinct_strings, located

    data = b"one two one three        "
    document = opened(data)
    words = located(np.array([0, 4, 8, 12]), np.array([3, 7, 11, 17]))
    if document.file is None:
        assert document.texts().tobytes() == data
    else:
        assert document.texts().tobytes() == b"\0" * 8
        _, window = document.window(0, len(data))
        document.keep(window, words)
        document.keep(window, located(np.array([4]), np.array([7])))
    codes, distinct = distinct_strings(document.texts(), words)
    assert (codes.tolist(), distinct) == ([0, 1, 0, 2], [b"one", b"two", b"three"])
    assert (words & np.uint64((1 << LENGTH_BITS) - 1)).tolist() == [3, 3, 3, 5]
