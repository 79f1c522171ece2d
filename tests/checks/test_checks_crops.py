"""Detections of a crop of each image: numbers counted again, and either side of each limit."""

from __future__ import annotations

import copy
import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_parts import scene, within

from detmap.checks import check, crops


def cropped(window, kind="crowded", first=0, last=None):
    """A scene whose detections on some images, in the order of ids, are cut at a window, given by a function of width and
    height, and the finding.
    """
    data = copy.deepcopy(scene(0, kind)).data()
    size = {one["id"]: (one["width"], one["height"]) for one in data.truth["images"]}
    there, kept = set(sorted(size)[first:last]), []
    for d in data.found:
        x, y, w, h = d["bbox"]
        left, top, right, bottom = window(*size[d["image_id"]])
        box = [max(x, left), max(y, top), min(x + w, right), min(y + h, bottom)]
        if d["image_id"] in there and (min(box[2] - box[0], box[3] - box[1]) < 4):
            continue
        if d["image_id"] in there and box != [x, y, x + w, y + h]:
            d["bbox"] = [round(box[0], 3), round(box[1], 3), round(box[2] - box[0], 3), round(box[3] - box[1], 3)]
        kept.append(d)
    data.found = kept
    return data, size, {one.code: one for one in check(data.truth, kept).findings}.get("cut_boxes")


def square(width, height):
    side = min(width, height)
    return (width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2


def ends(box):
    return box[0], box[1], box[0] + box[2], box[1] + box[3]


@pytest.mark.parametrize(("first", "last"), [(0, None), (100, 260)])
@pytest.mark.parametrize("kind", ["crowded", "one class"])
def test_the_central_square_is_counted_again(kind, first, last):
    data, size, one = cropped(square, kind, first, last)
    rest = one.says.partition("objects do")[2]
    assert rest or last is None
    there = within(rest) if rest else lambda image: True
    beyond = set()
    touched = 0
    for d in data.found:
        window, image = square(*size[d["image_id"]]), size[d["image_id"]]
        box = ends(d["bbox"])
        if any(b < a - 1 for a, b in zip(window[:2], box[:2], strict=True)):
            beyond.add(d["image_id"])
        if any(b > a + 1 for a, b in zip(window[2:], box[2:], strict=True)):
            beyond.add(d["image_id"])
        inner = [(a, b) for a, b, edge in zip(window, box, (0, 0, *image), strict=True) if abs(a - edge) > 2]
        touched += there(d["image_id"]) and any(abs(a - b) <= 0.01 for a, b in inner)
    held = {d["image_id"] for d in data.found}
    images = {one for one, (w, h) in size.items() if there(one) and abs(w - h) > 4 and one in held - beyond}
    objects = [(o, square(*size[o["image_id"]])) for o in data.truth["annotations"] if o["image_id"] in images]
    reach = sum(
        any(b < a - 1 for a, b in zip(window[:2], ends(o["bbox"])[:2], strict=True))
        or any(b > a + 1 for a, b in zip(window[2:], ends(o["bbox"])[2:], strict=True))
        for o, window in objects
    )
    assert f": those of the central square; on {len(images):,} images no detection" in one.says
    assert f"reaches beyond it, but {reach:,} of {len(objects):,} objects do" in one.says
    assert touched <= one.count <= 1.01 * touched  # a few have an edge at the same coordinate on images of other sizes


def test_another_window_is_told_as_well():
    data, size, one = cropped(lambda w, h: (0.1 * w, 0, 0.9 * w, h))
    assert "left edge" in one.says
    images = int(re.search(r"on ([\d,]+) images no detection reaches beyond the outermost of these", one.says)[1])
    assert images <= len(size)
    reach, total = map(int, re.search(r"but ([\d,]+) of ([\d,]+) objects do", one.says.replace(",", "")).groups())
    objects = [o["bbox"] + [size[o["image_id"]][0]] for o in data.truth["annotations"]]
    assert total <= len(objects)
    assert reach <= sum(x < 0.1 * width - 1 or x + w > 0.9 * width + 1 for x, _, w, _, width in objects)


def test_tiles_have_no_window():
    """Boxes end at the middle, and others begin there."""
    data = copy.deepcopy(scene(0, "crowded")).data()
    size = {one["id"]: one["width"] for one in data.truth["images"]}
    for d in data.found:
        x, y, w, h = d["bbox"]
        middle = size[d["image_id"]] / 2
        if x < middle - 4 and x + w > middle + 4:
            d["bbox"] = [x, y, middle - x, h]
    one = {one.code: one for one in check(data.truth, data.found).findings}["cut_boxes"]
    assert "no detection reaches beyond" not in one.says


def side(boxes, image, size):
    boxes = np.array(boxes, float)
    return SimpleNamespace(
        columns=boxes.T, image=np.array(image), sizes=np.array(size, float), sized=np.ones(len(boxes), bool),
        aside=np.zeros(len(boxes), bool),
    )  # fmt: skip


def edge(at, near, distinct=True, least=40.0):
    return crops._edge(
        np.array([least] * at + [least + 1 + 0.1 * (one if distinct else 0) for one in range(near)] + [99.0])
    )


def test_either_side_of_the_boxes_at_an_edge_of_the_window():
    assert edge(10, 0) == 40
    assert edge(9, 0) == 0  # nine beside one that is expected, by chance once in 900,000
    assert edge(25, 40) == 40  # each of the others at a coordinate of its own
    assert edge(25, 40, distinct=False) == 0
    assert edge(10, 0, least=2.1) == 2.1
    assert edge(10, 0, least=2.0) == 0


def windows(squares, others):
    """The windows of ten images of each of some sizes, cut at the central square or at another window."""
    boxes, image, size = [], [], []
    for at in range(squares + others):
        width = 400 + 20 * at
        left = (width - 300) / 2 if at < squares else (width - 300) / 2 - 5
        for one in range(10):
            boxes += [[left, 0, 40, 300], [left + 300 - 20, 10, 20, 30]]
            image += [10 * at + one] * 2
            size += [[width, 300]] * 2
    made = crops.windows(side(boxes, image, size), np.ones(10 * (squares + others), bool))
    return made.squares, int(made.images.sum())


def test_either_side_of_the_windows_that_are_squares():
    assert windows(10, 0) == (True, 100)
    assert windows(9, 1) == (True, 90)  # boxes of the others reach beyond the square
    assert windows(8, 1) == (False, 90)
