"""The scanner on documents that are drawn at random: results, lines and ground truth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanner import check_ground_truth, check_results
from scanner_documents import HOSTILE_BYTES

from detmap.reading import documents

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


@pytest.mark.slow
@given(written(RESULTS), st.sampled_from([8, 64, 1000, 1 << 22]), st.sampled_from([1, 2, 3]))
def test_any_results(data: bytes, block: int, threads: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "BLOCK", block)
        check_results(data, threads=threads)


@given(
    st.lists(written(RESULTS.filter(bool).map(lambda rows: rows[0])), max_size=5),
    st.sampled_from([8, 64, 1 << 22]),
    st.sampled_from([b"\n", b"\r\n", b"\n \n"]),
)
def test_any_json_lines(lines: list[bytes], block: int, end: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "BLOCK", block)
        check_results(end.join(lines) + end, lines=True)
        check_results(end.join(lines), lines=True, threads=2)


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
        patch.setattr(documents, "BLOCK", block)
        check_ground_truth(data, threads)
