"""`detmap.masks` and the drop-in's mask functions: equal to pycocotools and to naive twins, and clear about bad input."""

from __future__ import annotations

import hashlib
import json
import warnings

import naive_masks as naive
import numba
import numpy as np
import pycocotools._mask
import pycocotools.mask
import pytest
from dropin import assert_same
from support import examples
from workloads import REAL_DATA

import detmap
import detmap.pycocotools._mask
import detmap.pycocotools.mask as ours
from detmap.errors import InputError, OptionError
from detmap.masks import Masks, iou

theirs = pycocotools.mask
SLOW = numba.config.DISABLE_JIT


def same(name, *args):
    """Demand that a function returns what pycocotools' does, types and bits; return it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its own, for numpy 2
        expected = getattr(theirs, name)(*args)
    value = getattr(ours, name)(*args)
    assert_same(value, expected, name)
    return value


def bitmap(rng, height, width):
    """Noise, thin noise, or a few rectangles one in another; also empty and full."""
    kind = rng.integers(0, 4)
    if kind == 0:
        return rng.random((height, width)) < rng.choice([0, 0.5, 1])
    if kind == 1:
        return rng.random((height, width)) < rng.random() ** 3
    out = np.zeros((height, width), bool)
    for _ in range(rng.integers(1, 4)):
        top, left = rng.integers(0, height), rng.integers(0, width)
        out[top : top + rng.integers(1, height + 1), left : left + rng.integers(1, width + 1)] ^= True
    return out


def stacks(count, seed, most=30):
    """Random stacks of bitmaps, `count` bitmaps in all, in Fortran's order."""
    rng = np.random.default_rng(seed)
    while count > 0:
        height, width, n = (*rng.integers(1, most, 2).tolist(), int(rng.integers(1, 6)))
        yield rng, np.asfortranarray(np.stack([bitmap(rng, height, width) for _ in range(n)], -1).astype(np.uint8))
        count -= n


def uncompressed(rng, height, width, cuts=9):
    """Run lengths that fill the image, empty ones among them."""
    at = np.sort(rng.integers(0, height * width + 1, rng.integers(0, cuts)))
    return {"size": [height, width], "counts": np.diff(at, prepend=0, append=height * width).tolist()}


# ------------------------------------------------------------------------------------------------------------ pycocotools


def test_every_function_on_random_masks():
    """10,000 masks in full: encode, decode, area, toBbox, iou with crowds, merge of all, also by intersection."""
    for rng, stack in stacks(200 if SLOW else examples(10_000), 1):
        rles = same("encode", stack)
        same("encode", stack[:, :, 0].astype(bool))
        for name in ("decode", "area", "toBbox"):
            same(name, rles)
            same(name, rles[0])
        split = int(rng.integers(0, len(rles) + 1))
        same("iou", rles[:split], rles[split:], rng.integers(0, 2, len(rles) - split).tolist())
        same("merge", rles)
        same("merge", rles, 1)
        text = [{**rle, "counts": rle["counts"].decode()} for rle in rles]
        assert ours.area(text).tolist() == ours.area(rles).tolist()


@pytest.mark.parametrize(
    ("size", "lengths", "string"),
    [
        ([4, 7], [1, 2, 3, 4, 5, 6, 7], b"1232222"),
        ([4, 7], [7, 6, 5, 4, 3, 2, 1], b"765NNNN"),
        ([1000, 1001], [0, 1_000_000, 5], b"0Pb`n05"),
        ([5, 5], [25], b"i0"),
        ([4, 4], [15, 1], b"?1"),
        ([4, 4], [16], b"`0"),
        ([9, 9], [40, 1, 1, 24, 15], b"X111g0>"),
    ],
)
def test_strings_by_hand(size, lengths, string):
    """Lengths from the fourth on are differences to the last but one, in groups of five bits; 15 takes one, 16 two."""
    (made,) = same("frPyObjects", [{"size": size, "counts": lengths}], *size)
    assert made["counts"] == string
    assert naive.lengths_of(string.decode()) == lengths
    if sum(lengths) == size[0] * size[1]:
        assert Masks.from_rle([{"size": size, "counts": string}]).to_rle()[0]["counts"] == string.decode()


def test_masks_with_empty_runs():
    """Their walk ends early where both masks have an empty run at once: so does ours."""
    rng = np.random.default_rng(2)
    for _ in range(examples(500)):
        height, width = rng.integers(5, 20, 2).tolist()
        rles = same("frPyObjects", [uncompressed(rng, height, width) for _ in range(4)], height, width)
        same("iou", rles, rles, [0, 1, 0, 1])
        for pair in (rles[:2], rles[2:]):
            same("merge", pair)
            same("merge", pair, 1)
        for name in ("area", "toBbox", "decode"):
            same(name, rles)
        masks = Masks.from_rle(rles)  # nothing of that in ours: as the pixels say
        bitmaps = np.moveaxis(ours.decode(rles), -1, 0).astype(bool)
        assert np.array_equal(masks.merge().to_bitmaps()[0], bitmaps.any(axis=0))
        assert np.array_equal(masks.merge(intersect=True).to_bitmaps()[0], bitmaps.all(axis=0))


def random_polygon(rng):
    points = rng.normal(20, rng.choice([3, 15, 40, 300, 3000]), (rng.integers(1, 9), 2))
    kind = rng.integers(0, 5)
    if kind < 3:
        points = np.round(points * (1, 2, 10)[kind]) / (1, 2, 10)[kind]
    if rng.random() < 0.2:
        points[rng.integers(len(points))] = points[0]
    if rng.random() < 0.1:
        points[:, rng.integers(2)] = points[0, 0]
    return points


def test_polygons_are_drawn_alike():
    """4,000 polygons in full: few points, outside the image, far, repeated and collinear vertices; and through the twin."""
    rng = np.random.default_rng(3)
    for i in range(100 if SLOW else examples(4000)):
        height, width = rng.integers(1, 40, 2).tolist()
        points = random_polygon(rng)
        polygon = points.ravel().tolist()
        expected = pycocotools._mask.frPoly([polygon], height, width)
        assert detmap.pycocotools._mask.frPoly([polygon], height, width) == expected
        if len(points) >= 3:
            assert (
                Masks.from_polygons([[points]], (height, width)).to_rle()[0]["counts"].encode() == expected[0]["counts"]
            )
        if i % 50 == 0:
            found = naive.pixels_of(naive.lengths_of(expected[0]["counts"].decode()), height)
            assert found == naive.polygon(points.tolist(), height, width)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_polygons_on_a_grid_are_drawn_alike(steps):
    """Vertices on the centres of columns, and edges that meet them at whole steps: what is compared is equal there."""
    rng = np.random.default_rng(13)
    for _ in range(30 if SLOW else 1000):
        height, width = rng.integers(4, 16, 2).tolist()
        points = rng.integers(0, 14 * steps, (rng.integers(3, 7), 2)) / steps
        same("frPyObjects", [points.ravel().tolist()], height, width)


def test_polygons_around_the_exact_range_are_drawn_alike():
    """Where steep edges begin to be walked step by step: at 2**20 fifths of a pixel."""
    rng = np.random.default_rng(11)
    edge = 2**20 / 5
    polygons = [(edge + rng.normal(0, 3, (5, 2))).ravel().tolist() for _ in range(3 if SLOW else 20)]
    for polygon in polygons:
        same("frPyObjects", [polygon], 3, int(edge) + 5)
        same(
            "frPyObjects", [polygon[::-1], [v - edge if k % 2 else v for k, v in enumerate(polygon)]], 5, int(edge) + 5
        )


def test_many_crossings_of_one_column():
    """A zigzag between two columns: 20,000 crossings that come in no order."""
    count = 200 if SLOW else 20_000
    rows = np.random.default_rng(12).permutation(count) % 1_000
    zigzag = np.column_stack([np.arange(count) % 2, rows]).ravel().tolist()
    same("frPyObjects", [zigzag], 1_000, 3)


@pytest.mark.slow
@pytest.mark.compiled
def test_huge_polygons_are_drawn_alike():
    rng = np.random.default_rng(4)
    for scale in (1e4, 1e5, 1e6):
        polygons = [(rng.normal(0, scale, 2 * n)).tolist() for n in (3, 4, 7)]
        same("frPyObjects", polygons, 480, 640)


def test_objects_of_every_spelling():
    rng = np.random.default_rng(5)
    polygons = [random_polygon(rng).ravel().tolist() for _ in range(9)]
    first = [0, 0, 0, 5, 5, 5.0]
    same("frPyObjects", [first, *polygons, [1, 1, 2, 2], [], [1.5]], 9, 8)
    same("frPyObjects", [[*first, 3], tuple(first), np.array(first)], 9.5, np.int64(8))
    same("frPyObjects", [["1", "2", "3", "9", "9", "9"]], 9, 8)
    for boxes in (rng.uniform(-5, 30, (6, 4)), np.zeros((0, 4)), np.asfortranarray(rng.uniform(0, 9, (6, 4)))):
        same("frPyObjects", boxes, 9, 8)
    same("frPyObjects", {"size": [2, 3], "counts": [1.7, 2, 3]}, 9, 8)
    same("frPyObjects", [{"size": [2, 3], "counts": []}], 9, 8)
    same("encode", np.zeros((0, 4, 2), np.uint8))
    same("encode", np.asfortranarray(np.arange(60, dtype=np.uint8).reshape(5, 4, 3) % 7 // 2))  # not only 0 and 1
    same("encode", np.zeros(3, np.uint8))
    same("merge", [])
    rle = {"size": [5, 5], "counts": b"04"}
    for size in ([5.7, 5], (5, 5), np.array([5, 5]), [True, 5]):
        for name in ("area", "toBbox"):
            same(name, {"size": size, "counts": "04"})
        same("merge", [{"size": size, "counts": b"04\0zz"}])
    for counts in ("", "04", b"05000", b"~~~", b"T1T1T1"):
        same("area", {"size": [5, 5], "counts": counts})
        same("toBbox", [{"size": [5, 5], "counts": counts}])
    same("iou", [rle], [{**rle, "size": [4, 5]}], [0])
    same("merge", [rle, {**rle, "size": [4, 5]}])
    same("decode", [{"size": [2, 3], "counts": b"08"}, {"size": [2, 3], "counts": b"04"}])  # one runs into the next
    hidden = detmap.pycocotools._mask
    assert hidden._toString(hidden._frString([rle])) == [rle]
    assert hidden._frString([rle]).n == 1
    assert hidden._toString(hidden.RLEs(2)) == [{"size": [0, 0], "counts": b""}] * 2
    assert np.array(hidden.Masks(2, 3, 1)).shape == (2, 3, 1)


RLE = {"size": [2, 3], "counts": b"123"}


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("area", ({"size": ["5", 5], "counts": b"0"},)),
        ("area", ({"size": [-1, 5], "counts": b"0"},)),
        ("area", ({"size": [2**70, 5], "counts": b"0"},)),
        ("area", ({"size": [5], "counts": b"0"},)),
        ("area", ({"size": [2, 3]},)),
        ("area", ({"counts": b"0"},)),
        ("area", ({"size": [2, 3], "counts": [0, 4]},)),
        ("area", (None,)),
        ("toBbox", ({"size": [2, 3], "counts": None},)),
        ("decode", ({"size": [2, 3], "counts": b"34"},)),
        ("merge", (RLE,)),
        ("merge", (iter([RLE]),)),
        ("merge", ([RLE, RLE], "a")),
        ("encode", (np.zeros((3, 4), np.uint8),)),
        ("encode", (np.zeros((3, 4), np.int64, order="F"),)),
        ("encode", ([[1]],)),
        ("iou", ([RLE], [RLE, RLE], [0])),
        ("iou", ((RLE,), [RLE], [0])),
        ("iou", ([RLE, [1, 2, 3, 4]], [RLE], [0])),
        ("iou", ([RLE], [[1, 2, 3, 4]], [0])),
        ("iou", ([{"size": [2, 3]}], [RLE], [0])),
        ("frPyObjects", ([[1, 2, 3, 4]], 5, 5)),
        ("frPyObjects", ([[1, 2, 3]], 5, 5)),
        ("frPyObjects", ([], 5, 5)),
        ("frPyObjects", ("abc", 5, 5)),
        ("frPyObjects", ([[1, 2, 3, 4, 5, "x"]], 5, 5)),
        ("frPyObjects", ([[[1, 2]] * 5], 5, 5)),
        ("frPyObjects", ([[1, 2, 3, 4, 5, 6]], "5", 5)),
        ("frPyObjects", ([[1, 2, 3, 4, 5, 6]], -5, 5)),
        ("frPyObjects", (np.array([[1, 1, 2, 3]]), 5, 5)),
        ("frPyObjects", (np.array([1.0, 1, 2, 3]), 5, 5)),
        ("frPyObjects", ({"size": [2, 3], "counts": [1, -2]}, 5, 5)),
        ("frPyObjects", ({"size": [2, 3], "counts": "04"}, 5, 5)),
    ],
)
def test_errors_are_those_of_pycocotools(name, args):
    if name == "merge" and not isinstance(args[0], list | dict):
        args = (iter([RLE]),)
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever it raises
        getattr(theirs, name)(*args)
    with pytest.raises(expected.type) as found:
        getattr(ours, name)(*args)
    assert found.type is expected.type or issubclass(found.type, expected.type)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("iou", ([{"size": [5, 5], "counts": b"04"}], [{"size": [5, 5], "counts": b"0i0"}], [0])),  # it would never end
        ("merge", ([{"size": [5, 5], "counts": b"04"}, {"size": [5, 5], "counts": b"05"}],)),
        ("merge", ([{"size": [5, 5], "counts": b""}] * 2,)),  # and here it reads what is not the mask's
        ("area", ({"size": [5, 5], "counts": b"0Q"},)),
        ("toBbox", ({"size": [0, 5], "counts": b"04"},)),
        ("decode", ([],)),
        ("frPyObjects", ([[0, 0, 5, 5, 5, float("nan")]], 5, 5)),
        ("frPyObjects", ([[0, 0, 5, 5, None, 4]], 5, 5)),
        ("frPyObjects", ([[0, 0, 1e12, 5, 5, 4]], 5, 5)),
        ("frPyObjects", (np.array([[0, 0, np.inf, 5]]), 5, 5)),
        ("frPyObjects", (np.zeros((2, 3)), 5, 5)),
        ("frPyObjects", ([[0, 0, 5, 5, 5, 4]], 10**9, 10**9)),
    ],
)
def test_what_has_no_answer_is_an_error(name, args):
    with pytest.raises(InputError):
        getattr(ours, name)(*args)


# -------------------------------------------------------------------------------------------------------- detmap.masks


def test_masks_and_naive_twins():
    """Every way in, out, and between masks, on bitmaps of which each pixel is looked at."""
    for rng, stack in stacks(60 if SLOW else 600, 6, most=14):
        bitmaps = np.moveaxis(stack, -1, 0) * rng.integers(1, 256, dtype=np.uint8)
        height, width = bitmaps.shape[1:]
        lengths = [naive.runs_of(item.tolist()) for item in bitmaps]
        pixels = [naive.pixels_of(item, height) for item in lengths]
        strings = [naive.string_of(item) for item in lengths]
        records = [{"size": [height, width], "counts": text} for text in strings]
        masks = Masks.from_bitmaps(bitmaps)
        assert masks.to_rle() == records == Masks.from_rle(records).to_rle()
        mixed = [{**r, "counts": naive.lengths_of(r["counts"])} if i % 2 else r for i, r in enumerate(records)]
        assert Masks.from_rle(mixed).to_rle() == records
        assert np.array_equal(masks.to_bitmaps(), bitmaps != 0)
        assert masks.areas().tolist() == list(map(len, pixels))
        assert masks.boxes().tolist() == [naive.coded_box(item, height) for item in lengths]
        crowd = rng.integers(0, 2, len(masks)).astype(bool)
        expected = [[naive.iou(a, b, c) for b, c in zip(pixels, crowd, strict=True)] for a in pixels]
        assert iou(masks, masks, crowd).tolist() == expected
        assert naive.pixels_of(naive.lengths_of(masks.merge().to_rle()[0]["counts"]), height) == set.union(*pixels)
        for dilation in (0.02, 0.12):
            found = masks.boundary(dilation).to_rle()
            near = [naive.boundary(item, height, width, dilation) for item in pixels]
            assert [naive.pixels_of(naive.lengths_of(item["counts"]), height) for item in found] == near
            assert Masks.from_rle(found).to_rle() == found


def test_polygons_of_a_mask_are_united():
    rng = np.random.default_rng(7)
    shapes = [[rng.uniform(-5, 25, 2 * rng.integers(3, 8)).tolist() for _ in range(n)] for n in (1, 3, 2, 1)]
    expected = [
        pycocotools.mask.merge(pycocotools.mask.frPyObjects(item, 19, 17))["counts"].decode() for item in shapes
    ]
    masks = Masks.from_polygons(shapes, (19, 17))
    assert [item["counts"] for item in masks.to_rle()] == expected
    arrays = [[np.reshape(outline, (-1, 2)) for outline in item] for item in shapes]
    assert Masks.from_polygons(arrays, [[19, 17]] * 4).to_rle() == masks.to_rle()


def test_a_column():
    masks = Masks.from_polygons([[[1, 1, 3, 1, 3, 3, 1, 3]], [[0, 0, 2, 0, 2, 1, 0, 1]]], size=(4, 5))
    assert len(masks) == 2
    assert repr(masks) == "<Masks: 2>"
    assert masks.sizes.tolist() == [[4, 5]] * 2
    assert masks.bounds().tolist() == [[1, 1, 3, 3], [0, 0, 2, 1]]
    assert masks.take([1]).areas().tolist() == [2]
    assert masks.take([False, True]).to_rle() == masks.to_rle()[1:]
    assert sorted(masks.arrays()) == ["ends", "spans"]
    assert detmap.masks.Masks is Masks
    empty = Masks.from_rle([])
    assert (len(empty), empty.to_rle(), empty.to_bitmaps().shape) == (0, [], (0, 0, 0))
    assert Masks.from_bitmaps(np.zeros((0, 4, 5), bool)).areas().tolist() == []
    assert iou(empty, masks).shape == (0, 2)
    assert iou(masks, masks).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert len(Masks.from_polygons([], (4, 5))) == 0


@pytest.mark.compiled
def test_threads_change_nothing():
    rng = np.random.default_rng(8)
    bitmaps = rng.random((40, 60, 50)) < 0.4
    one, two = (Masks.from_bitmaps(bitmaps, threads=n) for n in (1, 2))
    assert one.to_rle() == two.to_rle() == Masks.from_rle(one.to_rle(), threads=2).to_rle()
    assert np.array_equal(iou(one, one, threads=1), iou(two, two, threads=2))
    assert one.boundary(threads=1).to_rle() == two.boundary(threads=2).to_rle()


GOOD = {"size": [5, 5], "counts": "0i0"}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            {"size": [5, 5], "counts": "04"},
            "record 1, field 'counts': the runs add up to 4 pixels, the image has 5 x 5 = 25",
        ),
        ({"size": [5, 5], "counts": [1, 2, 3]}, "record 1, field 'counts': the runs add up to 6"),
        ({"size": [5, 5], "counts": ""}, "record 1, field 'counts': the runs add up to 0"),
        ({"size": [5, 5], "counts": "0iP"}, "record 1, field 'counts': counts ends within a number"),
        ({"size": [5, 5], "counts": "0i~0"}, "record 1, field 'counts': .*outside '0' to 'o', at position 2"),
        ({"size": [5, 5], "counts": b"0i\x000"}, "record 1, field 'counts': .*position 2"),
        ({"size": [5, 5], "counts": "0é0"}, "record 1, field 'counts': .*position 1"),
        ({"size": [5, 5], "counts": "0O4"}, "record 1, field 'counts': the runs add up to"),
        ({"size": [5, 5], "counts": [30, -5]}, "record 1, field 'counts': a run is negative"),
        ({"size": [5, 5], "counts": [1.5, 2]}, "record 1, field 'counts': counts must be"),
        ({"size": [5, 5], "counts": [[1], [2, 3]]}, "record 1, field 'counts': counts must be"),
        ({"size": [5, 5], "counts": None}, "record 1, field 'counts': counts must be"),
        ({"size": [10**9, 10**9], "counts": "0"}, "record 1, field 'size': size must be"),
        ({"size": [0, 5], "counts": "0"}, "record 1, field 'size': size must be"),
        ({"size": [-5, -5], "counts": "0i0"}, "record 1, field 'size': size must be"),
        ({"size": [2**70, 5], "counts": "0i0"}, "record 1, field 'size': size must be"),
        ({"size": [5.5, 5], "counts": "0i0"}, "record 1, field 'size': size must be"),
        ({"size": None, "counts": "0i0"}, "record 1, field 'size': size must be"),
        ({"size": [5], "counts": "0i0"}, "record 1, field 'size': size must be"),
        ({"counts": "0i0"}, "record 1, field 'size': a mask must be"),
        ("0i0", "record 1, field 'size': a mask must be"),
    ],
)
def test_bad_run_lengths_name_the_record(record, message):
    with pytest.raises(InputError, match=f"^results: {message}"):
        Masks.from_rle([GOOD, record], source="results")


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([], "a mask without polygons"),
        ([[1, 1, 2, 2]], "at least 6, not 4"),
        ([[1, 1, 2, 2, 3, 3, 4]], "an even number .* not 7"),
        ([[1, 1, 2, 2, 3, float("nan")]], "no number, or too far"),
        ([[1, 1, 2, 2, 3, 1e12]], "no number, or too far"),
        ([[1, 1, 2, 2, 3, "x"]], "must be numbers"),
        ([[1, 1, 2, 2, 3, None]], "must be numbers"),
        ([3], "must be numbers|even number"),
    ],
)
def test_bad_polygons_name_the_record(mask, message):
    good = [[0, 0, 5, 5, 5, 4]]
    with pytest.raises(InputError, match=f"^masks: record 1, field 'segmentation': .*({message})"):
        Masks.from_polygons([good, mask], (5, 5))
    with pytest.raises(InputError, match="record 0, field 'size'"):
        Masks.from_polygons([good], [[10**9, 10**9]])
    with pytest.raises(InputError, match=r"2 sizes for 1 masks|size must be"):
        Masks.from_polygons([good], [[5, 5], [5, 5]])


def test_other_bad_input():
    masks = Masks.from_rle([GOOD, {"size": [2, 3], "counts": "06"}])
    for call in (masks.merge, masks.to_bitmaps, lambda: iou(masks, masks), Masks.from_rle([]).merge):
        with pytest.raises(InputError):
            call()
    for bitmaps in (np.zeros((2, 3)), np.zeros((2, 3, 4)), np.zeros((2, 0, 4), bool), [[1], [1, 2]]):
        with pytest.raises(InputError):
            Masks.from_bitmaps(bitmaps)
    with pytest.raises(InputError, match="masked"):
        Masks.from_bitmaps(np.ma.array(np.zeros((1, 2, 2), bool), mask=np.ones((1, 2, 2))))
    with pytest.raises(InputError, match="crowd"):
        iou(masks.take([0]), masks.take([0]), [0, 1])
    with pytest.raises(OptionError, match="dilation"):
        masks.boundary(0)


def test_a_polygon_that_crosses_too_often_is_refused():
    zigzag = np.stack([np.arange(3000) % 2 * 1e5, np.arange(3000)], axis=1)
    with pytest.raises(InputError, match=r"record 0, field 'segmentation': .*cross"):
        Masks.from_polygons([[zigzag]], (3000, 100_000))


@pytest.mark.compiled
def test_a_million_runs_of_one_pixel():
    masks = Masks.from_rle([{"size": [1000, 1000], "counts": "1" + "11" + "0" * 999_997}])
    assert masks.areas().tolist() == [500_000]
    assert iou(masks, masks).tolist() == [[1.0]]
    assert masks.merge().to_rle() == masks.to_rle()


# ---------------------------------------------------------------------------------------------------------- real masks


@pytest.mark.real_data
@pytest.mark.compiled
@pytest.mark.skipif(not REAL_DATA.exists(), reason="no real data")
def test_real_objects():
    """Polygons and masks of 839 COCO objects as pycocotools drew them: area, box and string."""
    truth = json.loads((REAL_DATA / "coco/instances_val2014_100.json").read_text())
    sizes = {image["id"]: [image["height"], image["width"]] for image in truth["images"]}
    expected = {
        row[0]: row[1:] for row in json.loads((REAL_DATA / "segm_val2014_100/expected_gt_rle.json").read_text())
    }
    anns = {ann["id"]: ann for ann in truth["annotations"] if ann["id"] in expected}
    assert len(anns) == len(expected) == 839
    drawn = [ann for ann in anns.values() if isinstance(ann["segmentation"], list)]
    coded = [ann for ann in anns.values() if not isinstance(ann["segmentation"], list)]
    columns = [
        (drawn, Masks.from_polygons([ann["segmentation"] for ann in drawn], [sizes[ann["image_id"]] for ann in drawn])),
        (coded, Masks.from_rle([ann["segmentation"] for ann in coded])),
    ]
    for records, masks in columns:
        rows = zip(records, masks.areas().tolist(), masks.boxes().tolist(), masks.to_rle(), strict=True)
        for ann, area, box, rle in rows:
            assert [area, *box, rle["counts"]] == expected[ann["id"]]


@pytest.mark.real_data
@pytest.mark.compiled
@pytest.mark.skipif(not REAL_DATA.exists(), reason="no real data")
def test_real_masks():
    """2,766 YOLACT masks: areas, boxes, and every overlap within an image, plain and over crowds."""
    expected = json.loads((REAL_DATA / "rle_yolact/expected.json").read_text())["images"]
    images = json.loads((REAL_DATA / "rle_yolact/yolact_im700.json").read_text())["images"]
    assert len(images) == len(expected) == 100
    for image, found in zip(expected, images, strict=True):
        assert found["image_id"] == image["image_id"]
        rles = [row["mask"] for row in found["dets"]]
        assert len(rles) == image["n"]
        masks = Masks.from_rle(rles)
        assert masks.areas().tolist() == ours.area(rles).tolist() == image["area"]
        assert masks.boxes().tolist() == ours.toBbox(rles).tolist() == image["bbox"]
        for crowd in (0, 1):
            matrix = same("iou", rles, rles, [crowd] * len(rles))
            assert np.array_equal(iou(masks, masks, [crowd] * len(rles)), matrix)
            digest = hashlib.sha256(np.ascontiguousarray(matrix).tobytes()).hexdigest()
            assert digest == image["iou_crowd_sha256" if crowd else "iou_sha256"]
        assert ours.area(same("merge", rles)) == image["union_of_all_area"]
