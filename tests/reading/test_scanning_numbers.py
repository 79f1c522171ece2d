"""The scanner against float(): every number is read with the same bits."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from legs import examples
from scanner import UNCOMPILED, check_results, same
from scanner_documents import HARD, RESULT, document

import detmap
from detmap.formats.coco import read as coco
from detmap.kernels import scanning
from detmap.reading import documents, lists, scanner


def check_numbers(texts: list[str]) -> None:
    """Every number is read as float() reads it, but for the integer -0, as a score and as a coordinate."""
    texts = texts + ["1"] * (-len(texts) % 5)
    record = b'{"image_id":1,"category_id":1,"bbox":[%b,%b ,%b, %b],"score":%b}'
    raw = [text.encode() for text in texts]
    data = document(*[record % tuple(raw[k : k + 5]) for k in range(0, len(raw), 5)])
    columns = scanner.scan_results(data, 1)
    assert columns is not None
    assert columns.bbox is not None
    values = np.concatenate([columns.bbox, columns.score[:, None]], axis=1).ravel()
    expected = np.array([0.0 if text == "-0" else float(text) for text in texts])
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


ZEROS = ["-0", "-0.0", "-0e0", "-0E-3", "-0.0e1", "-0.00000000000000000000000000", "0", "0.0"]


def test_a_zero_has_the_sign_that_json_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """-0 is an integer, which has no sign, and -0.0 is a float; as `json` reads them, and whatever reads the file."""
    expected = np.array([float(json.loads(text)) for text in ZEROS])
    assert np.signbit(expected).tolist() == [False, True, True, True, True, True, False, False]
    result = '{"image_id":1,"category_id":1,"bbox":[%s,%s,2,2],"score":%s,"keypoints":[%s,%s,2,0,%s,2]}'
    truth = '{"id":%d,"image_id":1,"category_id":1,"bbox":[%s, 1,2,2],"area":%s,"iscrowd":0,"num_keypoints":2,'
    truth += '"keypoints":[%s,%s,2, %s,0,2]}'
    for worth_scanning in (1 << 20, 0):
        monkeypatch.setattr(coco, "_WORTH_SCANNING", worth_scanning)
        found = ",\n".join(result % ((text,) * 6) for text in ZEROS)
        objects = ",\n".join(truth % (row, *(text,) * 5) for row, text in enumerate(ZEROS, 1))
        source = f"[{found}]".encode()
        whole = f'{{"images":[{{"id":1}}],"categories":[{{"id":1}}],"annotations":[{objects}]}}'.encode()
        for iou_type in ("bbox", "keypoints"):
            results = detmap.read_coco_results(source, iou_type=iou_type)
            annotations = detmap.read_coco(whole, iou_type=iou_type)
            columns = [results.scores, results.boxes[:, 0], results.boxes[:, 1]]
            columns += [annotations.boxes[:, 0], annotations.areas]
            if iou_type == "keypoints":
                for table, places in ((results, (0, 1, 4)), (annotations, (0, 1, 3))):
                    poses = table.shapes["keypoints"].poses
                    columns += [poses.values[poses.starts + place] for place in places]
            for column in columns:
                assert column.tobytes() == expected.tobytes()


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
    count = 200 if UNCOMPILED else examples(100_000)
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


def test_numbers_for_float_do_not_depend_on_how_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    data = document(*[RESULT.replace(b"42", b"%d" % k).replace(b"41.29", b"41." + b"%d" % k * 30) for k in range(40)])
    whole = check_results(data)
    assert whole is not None
    monkeypatch.setattr(lists, "DOUBTS", scanning.MOST_NUMBERS)
    monkeypatch.setattr(documents, "BLOCK", 500)
    assert same(scanner.scan_results(data, 2), whole)
