"""Checks of the scanner: what it reads is compared with its naive twin, column by column, however it is cut."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import naive_scanning as naive
import numba
import numpy as np
import pytest

from detmap.kernels.texts import LENGTH_BITS
from detmap.reading import documents, opening, scanned_columns, scanner

UNCOMPILED = bool(numba.config.DISABLE_JIT)


def listed(ids: scanned_columns.Ids | None, rows: int) -> list[Any]:
    if ids is None:
        return [None] * rows
    if isinstance(ids, scanned_columns.Strings):
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


def column_of(columns: Any, name: str) -> Any:
    """The column of a field: kinds of shape keep theirs together."""
    kept = {**columns.shapes, **getattr(columns, "counts", {})}
    return kept[name] if name in kept else getattr(columns, name)


class InWindows(opening.File):
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
                patch.setattr(documents, name, value)
        assert same(scan(InWindows(data)), columns), (sizes, data)


def check_results(data: bytes, lines: bool = False, threads: int = 1) -> scanner.ResultColumns | None:
    """Scan results: they are read as the naive twin reads them, and are understood unless they are unusual."""
    rows = naive.results(data, lines)
    columns = scanner.scan_results(data, threads, lines=lines)
    check_windows(lambda file: scanner.scan_results(file, threads, lines=lines), data, columns)
    if rows is None:
        assert columns is None, data
    elif columns is None:
        assert b"\\" in data, data  # lone surrogates, and keys with escapes
    else:
        assert len(columns.score) == len(rows)
        for name in naive.RESULT:
            check_column(data, rows, name, column_of(columns, name))
    return columns


def check_ground_truth(data: bytes, threads: int = 1) -> scanner.GroundTruthColumns | None:
    """Scan ground truth: it is read as the naive twin reads it, and is understood unless it is unusual."""
    tables = naive.ground_truth(data)
    columns = scanner.scan_ground_truth(data, threads)
    check_windows(lambda file: scanner.scan_ground_truth(file, threads), data, columns)
    if tables is None:
        assert columns is None, data
    elif columns is None:
        assert b"\\" in data, data  # lone surrogates, and keys with escapes
    else:
        assert listed(columns.images, 0) == [row["id"] for row in tables["images"]]
        assert listed(columns.categories, 0) == [row["id"] for row in tables["categories"]]
        assert columns.names == [row["name"] for row in tables["categories"]]
        assert len(columns.image_id) == len(tables["annotations"]) or isinstance(
            columns.image_id, scanned_columns.Strings
        )
        for name in naive.ANNOTATION:
            check_column(data, tables["annotations"], name, column_of(columns, name))
    return columns


def same(one: Any, other: Any) -> bool:
    """Whether two sets of columns are equal to the bit."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray):
        return (
            other is not None
            and one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == other.tobytes()
        )
    return type(one) is type(other) and one == other


def document_ids(columns: scanner.RunColumns | scanner.QrelsColumns) -> list[bytes]:
    whole = columns.data.tobytes()
    pairs = [divmod(word, 1 << LENGTH_BITS) for word in columns.document.tolist()]
    return [whole[begin : begin + length] for begin, length in pairs]


def query_ids(columns: scanner.RunColumns | scanner.QrelsColumns) -> list[bytes]:
    assert columns.query.dtype == np.int32
    assert list(dict.fromkeys(columns.query.tolist())) == list(range(len(columns.queries)))
    return [columns.queries[code] for code in columns.query.tolist()]


def check_run(data: bytes, threads: int = 1) -> scanner.RunColumns | None:
    expected = naive.run(data)
    columns = scanner.scan_run(data, threads)
    assert (expected is None) == (columns is None), data
    if expected is not None and columns is not None:
        rows, comments = expected
        assert columns.comments == comments
        assert query_ids(columns) == [row[0] for row in rows]
        assert document_ids(columns) == [row[1] for row in rows]
        assert list(map(bits, columns.score.tolist())) == [bits(row[2]) for row in rows]
        assert columns.longer == sum(row[3] for row in rows)
    check_windows(lambda file: meaning_of(scanner.scan_run(file, threads)), data, meaning_of(columns))
    return columns


def meaning_of(columns: scanner.RunColumns | scanner.QrelsColumns | None) -> Any:
    """All columns of lines but for where the ids lie in memory."""
    return columns and (
        query_ids(columns),
        document_ids(columns),
        *map(bytes, columns[3:4]),
        columns.queries,
        *columns[5:],
    )


def check_qrels(data: bytes, threads: int = 1) -> scanner.QrelsColumns | None:
    expected = naive.qrels(data)
    columns = scanner.scan_qrels(data, threads)
    assert (expected is None) == (columns is None), data
    if expected is not None and columns is not None:
        rows, comments = expected
        assert columns.comments == comments
        assert query_ids(columns) == [row[0] for row in rows]
        assert document_ids(columns) == [row[1] for row in rows]
        assert columns.relevance.tolist() == [row[2] for row in rows]
    check_windows(lambda file: meaning_of(scanner.scan_qrels(file, threads)), data, meaning_of(columns))
    return columns
