"""Documents that are written with a seal: the bytes of Python's own encoder, and every damage is seen."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from detmap.batch import saving
from detmap.results import without_nan

TEXTS = ["", "a", "é", "\U0001f600", "\udcff", 'a "quoted" one', "\\", '\\"', "[1, {2}]", "a,\n b: \u2028", "\x00\x1f"]
NUMBERS = [0, -1, 2**70, 0.1, -0.0, 1e300, 5e-324, True, False, None]


def anything(rng, depth, texts):
    kind = rng.randrange(4 if depth else 2)
    if kind == 0:
        return rng.choice(NUMBERS)
    if kind == 1:
        return rng.choice(texts)
    inside = [anything(rng, depth - 1, texts) for _ in range(rng.randrange(4))]
    return inside if kind == 2 else {f"{rng.choice(texts)}{i}": value for i, value in enumerate(inside)}


def expected(document):
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


@pytest.mark.parametrize("texts", [TEXTS, [one for one in TEXTS if '"' not in one]], ids=["any", "no quotation marks"])
def test_documents_are_written_as_pythons_encoder_writes_them(texts):
    rng = random.Random(0)
    documents = [anything(rng, 5, texts) for _ in range(2000)]
    assert sum(len(expected(one)) > 100 for one in documents) > 100
    for document in documents:
        assert saving.encoded(document) == expected(document)
        given = {"it": (document, np.float64("nan")), "array": np.arange(2), 7: -np.inf}
        for one in ({"it": document}, {"it": (document, float("inf"))}, given):
            assert repr(saving.plain(one)) == repr(without_nan(one))


@pytest.mark.parametrize("power", range(-12, 24))
def test_numbers_are_written_as_pythons_encoder_writes_them(power):
    """By themselves, because one that msgspec writes otherwise leaves a whole document to Python's encoder."""
    rng = random.Random(power)
    for _ in range(200):
        value = rng.choice([rng.random, lambda: round(rng.random(), 2), lambda: 1.0])() * 10.0**power
        for one in (value, -value, float(int(value)), int(value)):
            for document in (one, [one], [0, one, 0], {"a": one}, {"a": {"b": [[one], None]}}):
                assert saving.encoded(document) == expected(document)


def test_undefined_values_are_null_on_a_leaderboard():
    assert saving.encoded({"a": [float("nan"), float("inf")]}) == expected({"a": [None, None]})


def test_a_sealed_document_is_the_document_and_a_seal(tmp_path):
    document = {"name": "a", "metrics": {"AP": 0.5}, "empty": {}, "list": []}
    data = saving.sealed(document)
    seal = json.loads(data)["seal"]
    assert data == expected({**document, "seal": seal})
    path = tmp_path / "one.json"
    path.write_bytes(data)
    assert saving.unsealed(path) == document


def test_no_byte_of_a_sealed_document_can_be_changed(tmp_path):
    path = tmp_path / "one.json"
    data = saving.sealed({"name": "a", "seal of": 1, "AP": 0.5})
    for place in range(len(data)):
        for changed in (data[:place], data[:place] + data[place + 1 :], data[:place] + b"0" + data[place + 1 :]):
            path.write_bytes(changed)
            assert saving.unsealed(path) is None or changed == data
