"""Calls of the functions of masks: sizes at the limits, copies, and the messages of what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from detmap.errors import InputError
from detmap.pycocotools import _mask, mask
from detmap.pycocotools._mask import RLEs, _siz


def square(x=1, y=1, side=2, height=4, width=5):
    return mask.frPyObjects(np.array([[x, y, side, side]], float), height, width)[0]


def test_sizes_as_c_takes_them():
    for given, wanted in (
        (0, 0),
        (3, 3),
        (2**63 - 1, 2**63 - 1),
        (3.7, 3),
        (np.float64(2.9), 2),
        (np.int8(5), 5),
        (True, 1),
    ):
        assert _siz(given) == wanted
        assert type(_siz(given)) is int
    for wrong in ("3", b"3", None):
        with pytest.raises(TypeError, match=r"^an integer is required$"):
            _siz(wrong)
    with pytest.raises(TypeError):
        _siz([3])
    for negative in (-1, np.int64(-1), -1.5):
        with pytest.raises(OverflowError, match=r"^a size cannot be negative, as -1 is$"):
            _siz(negative)
    assert _siz(-0.5) == 0
    for large in (2**63, np.uint64(2**63), 2.0**63):
        with pytest.raises(OverflowError, match=r"^a size must be below 2\*\*63, not 9223372036854775808$"):
            _siz(large)


def test_buffers_of_bitmaps():
    made = _mask.Masks(2, 3, 4)
    whole = np.asarray(made)
    assert whole.shape == (2, 3, 4)
    assert whole.dtype == np.uint8
    assert whole.flags.f_contiguous
    assert not whole.any()
    copy, own = made.__array__(), made.__array__(copy=False)
    assert own is made.__array__(copy=False)
    assert not np.shares_memory(copy, own)
    assert not np.shares_memory(made.__array__(copy=True), own)
    assert made.__array__(np.float64).dtype == np.float64
    assert (RLEs(3).n, RLEs().n) == (3, 0)
    codes = [square(), square(0, 0)]
    decoded = _mask._frString(codes)
    assert decoded.n == 2
    assert _mask._toString(decoded) == codes
    assert _mask._toString(_mask._frString([])) == []
    with pytest.raises(TypeError):
        _mask._frString(iter(codes))


def test_strings_of_counts():
    code = square()
    text = {**code, "counts": code["counts"].decode()}
    behind = {**code, "counts": code["counts"] + b"\0rest"}
    for given in ([code], [text], [behind], [code, text], [text, text], [code, behind], [code, code]):
        assert mask.area(given).tolist() == [4] * len(given)
        assert mask.toBbox(given).tolist() == [[1, 1, 2, 2]] * len(given)
        assert mask.decode(given).sum() == 4 * len(given)
        assert mask.merge(given) == code
    for wrong in ([1, 2], None, 5):
        for given in ([{**code, "counts": wrong}], [code, {**code, "counts": wrong}]):
            with pytest.raises(
                TypeError, match=r"^counts must be bytes or str, not \w+; frPyObjects takes lists of counts$"
            ):
                mask.area(given)
    cut = {**code, "counts": code["counts"][:-1] + b"\x50"}
    for call in (mask.area, mask.toBbox, mask.decode, mask.merge):
        with pytest.raises(InputError) as caught:
            call([code, cut])
        assert str(caught.value) == "record 1, field 'counts': the string ends within a number; is it cut off?"


def test_sizes_of_several_masks():
    small, large = square(), square(height=6, width=7)
    assert mask.merge([small, large]) == mask.merge([]) == {"size": [0, 0], "counts": b""}
    assert mask.merge([small, {**small, "size": (4, 5)}]) == small
    assert mask.merge([small, square(2, 1)], intersect=1) == mask.merge([small, square(2, 1)], intersect=True)
    assert mask.area(mask.merge([small, square(2, 1)], intersect=1)) == 2
    assert mask.area(mask.merge([small, square(2, 1)], intersect=0)) == 6
    for wrong in ("1", b"1", None):
        with pytest.raises(TypeError, match=r"^an integer is required$"):
            mask.merge([small], intersect=wrong)
    assert mask.iou([small], [large], [0]).tolist() == [[-1.0]]
    assert mask.iou([small, square(2, 1)], [small], [0]).tolist() == [[1.0], [2 / 6]]
    assert mask.iou([small, square(2, 1)], [small], [1]).tolist() == [[1.0], [0.5]]
    assert mask.iou([], [small], [0]) == mask.iou([small], [], []) == mask.iou([], [], []) == []
    unlike = mask.frPyObjects({"size": [4, 5], "counts": [6, 2]}, 4, 5)
    with pytest.raises(InputError) as caught:
        mask.iou([small, small], [small, unlike], [0, 0])
    says = "field 'counts': the runs of detection 0 and ground truth 1 do not add up to the same"
    assert str(caught.value) == says
    with pytest.raises(InputError, match=r"^field 'counts': the runs of the masks do not add up to the same$"):
        mask.merge([small, unlike])
    with pytest.raises(InputError, match=r"^record 1, field 'counts': a mask without runs cannot be merged$"):
        mask.merge([small, {"size": [4, 5], "counts": b""}])
    with pytest.raises(InputError, match=r"^there are no masks to decode$"):
        mask.decode([])


BOXES = [[0, 0, 4, 4], [2, 0, 4, 4]]


def test_overlaps_of_boxes():
    for found in (BOXES, np.array(BOXES), [np.array(one) for one in BOXES], np.array(BOXES, np.float32)):
        made = mask.iou(found, BOXES, [0, 1])
        assert made.tolist() == [[1, 0.5], [8 / 24, 1]]
        assert made.flags.f_contiguous
    three = np.zeros((2, 3))
    with pytest.raises(Exception, match=r"^an array must be of boxes, shape \(n, 4\)$"):
        mask.iou(three, BOXES, [0, 0])
    with pytest.raises(Exception, match=r"^expected a list or an array of boxes, or a list of run-length masks$"):
        mask.iou(tuple(BOXES), BOXES, [0, 0])
    for odd in ([[0, 0, 1]], [(0, 0, 1, 1)], [square(), BOXES[0]]):
        with pytest.raises(Exception, match=r"^expected boxes of four numbers each, or run-length masks$"):
            mask.iou(odd, BOXES, [0, 0])
    with pytest.raises(
        Exception, match=r"^detections and ground truth must be of one kind, boxes or run-length masks$"
    ):
        mask.iou([square()], BOXES, [0, 0])
    for crowd in ([0], [0, 0, 0]):
        with pytest.raises(AssertionError, match=r"^iscrowd must have the length of gt$"):
            mask.iou(BOXES, BOXES, crowd)
    with pytest.raises(ValueError, match=r"^iscrowd has 2 dimensions where 1 was expected$"):
        mask.iou(BOXES, BOXES, [[0, 0]])


def test_what_is_drawn_and_what_is_not():
    bitmap = np.zeros((4, 5, 1), np.uint8, order="F")
    bitmap[1:3, 1:3] = 1
    code = square()
    assert mask.encode(bitmap) == [code]
    assert mask.encode(bitmap.astype(bool, order="F")) == [code]
    assert mask.encode(bitmap[..., 0]) == code
    for wrong, says in (
        (bitmap.astype(int, order="F"), "mask must be of dtype uint8 or bool, not int64"),
        (np.zeros((2, 2, 2, 2), np.uint8, order="F"), "mask has 4 dimensions where 3 were expected"),
        (np.ascontiguousarray(np.tile(bitmap, 2)), "mask is not Fortran contiguous; numpy.asfortranarray makes it so"),
    ):
        with pytest.raises(ValueError, match=f"^{says}$"):
            _mask.encode(wrong)
    with pytest.raises(TypeError, match=r"^mask must be a numpy.ndarray, not list$"):
        _mask.encode([])
    polygon = [1, 1, 1, 3, 3, 3, 3, 1]
    assert mask.frPyObjects([polygon], 4, 5) == [code]
    assert mask.frPyObjects([[*polygon, 7]], 4, 5) == [code]
    assert mask.frPyObjects([np.array(polygon), polygon], 4.9, 5) == [code, code]
    assert _mask.frPoly([polygon, [*polygon, 9]], 4, 5) == [code, code]
    assert mask.frPyObjects(np.array([[1.0, 1, 2, 2, 9]]), 4, 5)
    lists = {"size": [4, 5], "counts": [6, 2, 2, 2, 8]}
    assert mask.frPyObjects([lists, lists], 9, 9) == [mask.frPyObjects(lists, 9, 9)] * 2
    assert mask.frPyObjects(lists, 9, 9)["size"] == [4, 5]
    assert mask.frPyObjects({**lists, "counts": [6.9, 2, 2, 2, 8]}, 9, 9) == mask.frPyObjects(lists, 9, 9)
    for odd in ("text", [[1, 2]], {"size": [1, 1]}, {"counts": []}, [{"size": [1, 1]}], 5):
        with pytest.raises(Exception, match=r"^expected polygons, boxes or uncompressed run-length masks$"):
            mask.frPyObjects(odd, 4, 5)
    with pytest.raises(TypeError, match=r"^boxes must be a numpy.ndarray, not list$"):
        mask.frPyObjects([[1, 1, 2, 2]], 4, 5)
    with pytest.raises(ValueError, match=r"^boxes must be of dtype float64 and two dimensions, not int64 and 2$"):
        mask.frPyObjects(np.array([[1, 1, 2, 2]]), 4, 5)
    with pytest.raises(InputError, match=r"^field 'bbox': a box has four numbers, not 3$"):
        mask.frPyObjects(np.zeros((1, 3)), 4, 5)
    with pytest.raises(ValueError, match=r"^a polygon has 2 dimensions where 1 was expected$"):
        mask.frPyObjects([[1, 2, 3, 4, 5, 6], [[1, 2]]], 4, 5)
    with pytest.raises(ValueError, match=r"^counts has 2 dimensions where 1 was expected$"):
        mask.frPyObjects({"size": [4, 5], "counts": [[1]]}, 4, 5)


def test_runs_that_do_not_fill_their_image():
    """As in pycocotools each mask begins where the one before has ended."""
    short = {"size": [2, 2], "counts": [1, 2]}
    made = mask.decode(mask.frPyObjects([short, short], 2, 2))
    assert made.reshape(-1, order="F").tolist() == [0, 1, 1, 0, 1, 1, 0, 0]
    long = {"size": [2, 2], "counts": [1, 2, 9]}
    with pytest.raises(ValueError, match=r"^the runs of a mask are longer than its image$"):
        mask.decode(mask.frPyObjects([long], 2, 2))


def test_strings_of_any_length_are_written(monkeypatch):
    """The buffer grows for one long mask, and for many."""
    rng = np.random.default_rng(0)
    noise = np.asfortranarray(rng.random((120, 90, 7)) < 0.5)
    wanted = mask.encode(noise)
    assert np.array_equal(mask.decode(wanted), noise)
    for room in ((0, 1), (1, 0), (1 << 12, 1 << 10)):
        monkeypatch.setattr(_mask, "_ROOM", room[0])
        monkeypatch.setattr(_mask, "_ROOM_EACH", room[1])
        for most in (0, 1 << 26):
            monkeypatch.setattr(_mask, "_MOST_ROOM", most)
            assert mask.encode(noise) == wanted
            assert mask.encode(noise[..., :0]) == []


def test_f1_is_the_same_whatever_number_of_scores_is_looked_at_at_once(monkeypatch):
    from workloads import make_coco

    from detmap.pycocotools import faster, faster_metrics

    dataset, results = make_coco(2, images=6, categories=3, crowds=0.2)

    def numbers():
        truth = faster.COCO(dataset, use_deepcopy=True)
        made = faster.COCOeval(
            truth, truth.loadRes([dict(one) for one in results]), "bbox", print_function=lambda _: None
        )
        made.run()
        return made.extended_metrics

    whole = numbers()
    assert whole["class_map"]
    for size in (1, 2, 7):
        monkeypatch.setattr(faster_metrics, "_SCORES", size)
        assert str(numbers()) == str(whole)


@pytest.mark.parametrize("own_area", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_similarities_are_the_same_either_way(seed, own_area, monkeypatch):
    """On the kernels, and point by point, for objects with labelled points and without."""
    from types import SimpleNamespace

    from detmap.pycocotools import cocoeval

    rng = np.random.default_rng(seed)

    def pose(labelled):
        points = rng.integers(-40, 80, 12).astype(float)
        points[2::3] = rng.integers(1, 3, 4) * (rng.random(4) < 0.6) if labelled else 0
        return points.tolist()

    gts = [
        {"keypoints": pose(n % 2), "bbox": rng.integers(1, 40, 4).tolist(), "area": float(rng.integers(50, 900))}
        for n in range(4)
    ]
    dts = [{"keypoints": pose(True), "score": float(rng.integers(0, 3))} for _ in range(6)]
    p = SimpleNamespace(kpt_oks_sigmas=np.array([0.5, 1.0, 2.0, 3.0]), maxDets=[5])
    cells = {(1, 1): gts}, {(1, 1): dts}
    quick = cocoeval._cell_oks(p, *cells, 1, 1, own_area)
    assert quick.shape == (5, 4)
    monkeypatch.setattr(cocoeval, "_quick_oks", lambda *given: None)
    slow = cocoeval._cell_oks(p, *cells, 1, 1, own_area)
    assert quick.tobytes() == slow.tobytes()
    best = sorted(dts, key=lambda one: -one["score"])[:5]
    for i, one in enumerate(best):
        for j, gt in enumerate(gts):
            found, true, (x, y, w, h) = (
                np.reshape(one["keypoints"], (4, 3)),
                np.reshape(gt["keypoints"], (4, 3)),
                gt["bbox"],
            )
            seen = true[:, 2] > 0
            if seen.any():
                away = ((found - true)[:, :2] ** 2).sum(axis=1)[seen]
            else:
                dx = np.maximum(0, x - w - found[:, 0]) + np.maximum(0, found[:, 0] - x - 2 * w)
                dy = np.maximum(0, y - h - found[:, 1]) + np.maximum(0, found[:, 1] - y - 2 * h)
                away, seen = dx**2 + dy**2, np.ones(4, bool)
            area = gt["area"] if own_area else w * h * 0.53
            likely = np.exp(-away / (2 * p.kpt_oks_sigmas[seen]) ** 2 / 2 / (area + np.spacing(1))).mean()
            assert slow[i, j] == pytest.approx(likely, rel=1e-12)
    assert len(cocoeval._cell_oks(p, {(1, 1): []}, cells[1], 1, 1)) == 0
    short = [{**dts[0], "keypoints": [1.0, 2.0, 2.0]}]
    with pytest.raises(ValueError, match=r"^a pose of 1 points where there are 4 sigmas$"):
        cocoeval._cell_oks(p, {(1, 1): gts[:1]}, {(1, 1): short}, 1, 1)
