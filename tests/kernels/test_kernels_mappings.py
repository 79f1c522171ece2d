"""Mappings in MessagePack: what is read, and where reading stops."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from detmap.kernels import readonly
from detmap.kernels.mappings import read_mappings
from detmap.kernels.texts import LENGTH_BITS, LENGTHS

pack = msgspec.msgpack.Encoder().encode


def read(mappings, sizes=None):
    """Read mappings; return how many rows were read, and the strings and the floats of these."""
    data = readonly(np.frombuffer(b"".join(map(pack, mappings)) + bytes(8), np.uint8), np.uint8)
    starts = readonly(np.cumsum([0, *(map(len, mappings) if sizes is None else sizes)]), np.int64)
    numbers, words = np.empty(starts[-1]), np.empty(starts[-1], np.uint64)
    rows = read_mappings(data, starts, numbers.view(np.uint64), words)
    places = [(int(word) >> LENGTH_BITS, int(word & LENGTHS)) for word in words[:rows]]
    return rows, [data[i : i + size].tobytes() for i, size in places], numbers[:rows].tobytes()


def wanted(mappings):
    rows = [row for one in mappings for row in one.items()]
    return len(rows), [key.encode() for key, _ in rows], np.array([value for _, value in rows], float).tobytes()


@pytest.mark.parametrize("sizes", [(), (0,), (0, 0, 3), (1, 15, 16, 0, 17), (65535, 2), (65536, 2)])
def test_keys_and_values_of_any_number_of_rows(sizes):
    rng = np.random.default_rng(len(sizes))
    specials = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7976931348623157e308]
    mappings = [
        {f"{q}-{d}": specials[d] if d < len(specials) else float(rng.normal()) for d in range(size)}
        for q, size in enumerate(sizes)
    ]
    assert read(mappings) == wanted(mappings)


def test_keys_of_any_length():
    lengths = [*range(70), 254, 255, 256, 257, 65534, 65535]
    mappings = [{"é" * (size // 2) + "x" * (size % 2): size / 7} for size in lengths]
    mappings.append({f"{size:x>{size}}" if size else "": -size / 7 for size in lengths})
    assert read(mappings) == wanted(mappings)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 31, 32, 40])
def test_a_zero_byte_in_any_place_ends_reading(size):
    for place in range(size):
        key = "\x80" * place + "\0" + "\x01" * (size - 1 - place)
        assert read([{"a": 1.0}, {"b": 2.0, key: 3.0}, {"c": 4.0}]) == wanted([{"a": 1.0, "b": 2.0}])


@pytest.mark.parametrize("bad", [{"b": 1}, {"b": None}, {"b": True}, {1: 1.0}, {b"b": 1.0}, {"b" * 65536: 1.0}])
def test_other_types_end_reading(bad):
    assert read([{"a": 1.0}, bad, {"c": 4.0}]) == wanted([{"a": 1.0}])


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 3, 1), (1, 0, 1)])
def test_another_number_of_rows_ends_reading(sizes):
    assert read([{"a": 1.0}, {"b": 2.0, "c": 3.0}, {"d": 4.0}], sizes) == wanted([{"a": 1.0}])


def test_what_is_no_mapping_ends_reading():
    assert read([[]], [0]) == (0, [], b"")
    assert read([{"a": 1.0}, [1.0]], [1, 1]) == wanted([{"a": 1.0}])
