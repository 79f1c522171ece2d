"""The scanner by blocks and threads: columns do not depend on them, and memory stays small."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scanner import UNCOMPILED, InWindows, check_ground_truth, check_results, same
from scanner_documents import RESULT, document

from detmap.reading import documents, lists, opening, scanner


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
    monkeypatch.setattr(documents, "BLOCK", block)
    assert same(scanner.scan_results(data, threads), whole)
    lines = b"\n".join(json.dumps(row, ensure_ascii=False).encode() for row in json.loads(data))
    columns = check_results(lines, lines=True, threads=threads)
    assert columns is not None
    assert same(columns[:4], whole[:4])
    for end in range(len(data) - 300, len(data), 97 if UNCOMPILED else 23):
        assert scanner.scan_results(data[:end], threads) is None


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
    monkeypatch.setattr(documents, "BLOCK", block)
    assert same(scanner.scan_ground_truth(data, threads), whole)


def test_guesses_are_right_where_records_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    data = document(*[RESULT] * 40)
    blocks = []
    scan = lists.Layout.scan
    monkeypatch.setattr(lists.Layout, "scan", lambda self, *rest: (blocks.append(rest[1]), scan(self, *rest))[1])
    monkeypatch.setattr(documents, "BLOCK", 500)
    assert scanner.scan_results(data, 2) is not None
    assert len(blocks) == len(set(blocks)) == len(data) // 500  # no block was scanned twice
    for hostile in (RESULT.replace(b"}", b',"x":"{\\"image_id\\""}'), RESULT.replace(b"}", b',"x":[{"image_id": 1}]}')):
        blocks.clear()
        assert check_results(document(*[hostile] * 40), threads=2) is not None


def test_more_records_than_the_first_block_lets_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [RESULT.replace(b"}", b', "x": "%s"}' % (b"y" * 400))] * (5 if UNCOMPILED else 10)
    data = document(*long, *[RESULT] * (60 if UNCOMPILED else 200))
    whole = check_results(data)
    exact = []
    make = lists.List.__init__
    monkeypatch.setattr(
        lists.List,
        "__init__",
        lambda self, *rest, exact_=exact, **more: (exact_.append(more["exact"]), make(self, *rest, **more))[1],
    )
    monkeypatch.setattr(documents, "BLOCK", 1000)
    for threads in (1, 2, 4):
        assert same(check_results(data, threads=threads), whole)
    assert exact == [False, True] * 6


@pytest.mark.compiled
def test_a_list_that_goes_on_behind_a_block_without_its_first_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the list is taken to be over until it turns out not to be; also where more records follow than expected."""
    wide = RESULT.replace(b"}", b', "x": "%s"}' % (b"y" * 3000))
    slim, long = [RESULT] * 25, [RESULT.replace(b"}", b', "x": "%s"}' % (b"y" * 400))] * 5
    exact = []
    make = lists.List.__init__

    def noted(self: Any, *rest: Any, **more: Any) -> None:
        exact.append(more["exact"])
        make(self, *rest, **more)

    monkeypatch.setattr(lists.List, "__init__", noted)
    for records, tries in (([*slim, wide, *slim], [False]), ([*long, wide, *slim * 2], [False, True])):
        data = document(*records)
        monkeypatch.setattr(documents, "BLOCK", 1 << 20)
        whole = scanner.scan_results(data, 1)
        assert whole is not None
        monkeypatch.setattr(documents, "BLOCK", 1000)
        for threads in (1, 2, 4):
            exact.clear()
            assert same(check_results(data, threads=threads), whole)
            assert exact == tries * 2


@pytest.mark.slow
@pytest.mark.compiled
def test_a_window_may_end_between_a_comma_and_white_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where its block ends there: the next block begins with a record."""
    data = (
        b'{"info": {"year": [2014]}, "images": [{"id": 1, "width": 5}, {"file_name": "a", "id": 2}], "annotations": '
        b'[{"image_id": "1", "category_id": "3", "NaN": "x", "area": 1e-3}], "licenses": [], "categories": '
        b'[{"supercategory": "x", "id": 3, "name": "cat"}]}'
    )
    monkeypatch.setattr(documents, "BLOCK", 16)
    whole = check_ground_truth(data)
    assert whole is not None
    for window in range(8, len(data)):
        for margin in (1, 6, 39):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(documents, "WINDOW", window)
                patch.setattr(documents, "MARGIN", margin)
                patch.setattr(documents, "GROWTH", 2)
                assert same(scanner.scan_ground_truth(InWindows(data), 1), whole), (window, margin)


def test_what_follows_a_list_is_not_counted_as_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of the longest list are looked at once, wherever the short ones stand."""
    truth = {
        "images": [{"id": 1}],
        "annotations": [{"image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4], "area": 12}] * 100,
        "categories": [{"id": 3, "name": "c"}],
    }
    looked_at = []
    survey = documents.Document.survey

    def noted(self: Any, data: Any, begin: int, end: int) -> Any:
        looked_at.append(end - begin)
        return survey(self, data, begin, end)

    monkeypatch.setattr(documents.Document, "survey", noted)
    monkeypatch.setattr(documents, "BLOCK", 500)
    for names in (("images", "categories", "annotations"), ("annotations", "images", "categories")):
        data = json.dumps({name: truth[name] for name in names}).encode()
        looked_at.clear()
        assert scanner.scan_ground_truth(data, 1) is not None
        assert sum(looked_at) < 1.5 * len(data)


HOSTILE_PIECES = (b"{", b'{"image_id":', b'[{"x":[', b"[", b'"', b"\n", b"#", b"a 0 b 0 1 c", b"\n{")


@pytest.mark.compiled
@pytest.mark.parametrize("piece", HOSTILE_PIECES)
def test_hostile_documents_take_little_memory(piece: bytes) -> None:
    data = b"[" + piece * (10**3 if UNCOMPILED else 10**6)
    for scan in (scanner.scan_results, scanner.scan_ground_truth, scanner.scan_run, scanner.scan_qrels):
        scan(data[:100], 1)  # compiling takes memory, too
        tracemalloc.start()
        scan(data, 1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * len(data) + 10**6


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, "file"])
def test_any_buffer(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BLOCK", 8192)
    data = varied_results(20) + b" " * 30_000
    (tmp_path / "results.json").write_bytes(data)
    if kind == "file":
        opened = opening.open_path(tmp_path / "results.json")
        assert isinstance(opened, opening.File)
        with opened as file:
            columns = scanner.scan_results(file, 2)
    else:
        columns = scanner.scan_results(kind(data), 2)
    assert same(columns, scanner.scan_results(data, 1))


def test_an_empty_document() -> None:
    assert scanner.scan_results(b"", 1) is None
    assert scanner.scan_results(b"", 1, lines=True) is not None
