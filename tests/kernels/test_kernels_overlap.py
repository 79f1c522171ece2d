"""Kernels of overlaps: which boxes meet, found by every way, against naive twins."""

from __future__ import annotations

import itertools

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_inputs import boxes_of, cells_of, xywh
from support import examples, same_bits

from detmap.kernels import overlap, readonly


def candidates_of(found, truth, crowd, lowest, *, sizes=True, pixel=0.0):
    """The kernel on cells given as lists of boxes: for each detection of each cell the pairs (object, overlap)."""
    cells = cells_of([len(cell) for cell in found], [len(cell) for cell in truth])
    flat = [np.array([box for cell in side for box in cell], float).reshape(-1, 4) for side in (found, truth)]
    out = overlap.candidates(
        cells,
        boxes_of(flat[0], sizes, pixel),
        boxes_of(flat[1], sizes, pixel),
        readonly(crowd, np.bool_),
        lowest,
        0,
        len(found),
    )
    return [
        sorted(zip(out.ground_truth[a:b].tolist(), out.iou[a:b].tolist(), strict=True))
        for a, b in zip(out.first.tolist(), out.last.tolist(), strict=True)
    ]


def expected_candidates(found, truth, crowd, lowest, *, sizes=True, pixel=0.0):
    rows, at = [], 0
    for detections, objects in zip(found, truth, strict=True):
        flags = crowd[at : at + len(objects)]
        at += len(objects)
        if not len(detections):
            continue
        ious = naive.box_iou(detections, objects, flags) if sizes else naive.voc_iou(detections, objects, bool(pixel))
        rows += [[(g, float(value)) for g, value in enumerate(row) if value >= lowest] for row in ious]
    return rows


@settings(max_examples=examples(300))
@given(
    st.lists(st.tuples(st.lists(xywh, max_size=5), st.lists(xywh, max_size=5)), max_size=3),
    st.sampled_from([0.5, 0.05, 1e-9, 0.0, -1.0]),
    st.data(),
)
def test_box_candidates(cells, lowest, data):
    found, truth = [cell[0] for cell in cells], [cell[1] for cell in cells]
    count = sum(map(len, truth))
    crowd = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    assert candidates_of(found, truth, crowd, lowest) == expected_candidates(found, truth, crowd, lowest)


@pytest.mark.parametrize("lowest", [0.5, 0.3, 1e-6, 0.0])
@pytest.mark.parametrize(("objects", "detections"), [(8, 64), (8, 63), (7, 100), (40, 60), (100, 30)])
@pytest.mark.parametrize("grid", [True, False])
def test_swept_cells(objects, detections, lowest, grid):
    """With many equal edges, and without."""
    rng = np.random.default_rng(objects)

    def boxes(n):
        if grid:
            return np.concatenate([rng.integers(0, 6, (n, 2)) * 4, rng.choice([0, 4, 8, 12], (n, 2))], axis=1)
        return np.concatenate([rng.random((n, 2)) * 20, 4 + rng.random((n, 2)) * 9], axis=1)

    found, truth = [boxes(detections), boxes(3)], [boxes(objects), boxes(2)]
    crowd = rng.random(objects + 2) < 0.2
    got = candidates_of(found, truth, crowd, lowest)
    assert got == expected_candidates(found, truth, crowd, lowest)
    assert any(got) if lowest == 0.5 else max(map(len, got)) > 1


@pytest.mark.parametrize("pixel", [0.0, 1.0])
def test_candidates_of_corners(pixel):
    rng = np.random.default_rng(3)

    def boxes(n):
        near = rng.integers(0, 30, (n, 2))
        return np.concatenate([near, near + rng.integers(1, 9, (n, 2))], axis=1)

    found, truth = [boxes(80), boxes(3)], [boxes(20), boxes(4)]
    crowd = np.zeros(24, bool)
    for lowest in (0.5, 0.1, 1e-9, 0.0):
        keywords = {"sizes": False, "pixel": pixel}
        assert candidates_of(found, truth, crowd, lowest, **keywords) == expected_candidates(
            found, truth, crowd, lowest, **keywords
        )


def test_pixels_that_touch_only_when_inclusive():
    """Boxes side by side, 1 to 3 and 3 to 5: they share the column 3 if the last pixel is inside. Swept and not."""
    sides = [[1, 1, 3, 3], [3, 1, 5, 3]]
    for copies, (one, other) in itertools.product((1, 30), (sides, sides[::-1])):
        found, truth = [[one] * copies], [[other] * copies]
        for pixel, expected in ((1.0, 3 / 15), (0.0, None)):
            rows = candidates_of(found, truth, [False] * copies, 1e-9, sizes=False, pixel=pixel)
            assert rows == [[(g, expected) for g in range(copies)] if expected else []] * copies


@settings(max_examples=examples(100))
@given(st.lists(xywh, max_size=8), st.booleans())
def test_box_areas(table, sizes):
    boxes = [[x, y, w, h] if sizes else [x, y, x + w, y + h] for x, y, w, h in table]
    out = np.empty(len(boxes))
    overlap.box_areas(boxes_of(boxes, sizes, 0.0 if sizes else 1.0), 0, len(boxes), out)
    expected = [b[2] * b[3] if sizes else (b[2] - b[0] + 1.0) * (b[3] - b[1] + 1.0) for b in boxes]
    assert same_bits(out, np.array(expected, float))
