"""The kernels of masks, polygons, outlines and poses against naive twins that share no code with them."""

from __future__ import annotations

import json
from functools import partial

import naive_masks as naive
import numpy as np
import pycocotools.mask as theirs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import examples

import detmap
import detmap.pycocotools.mask as ours
from detmap.errors import InputError
from detmap.kernels import bitmaps, boundaries, keypoints, mask_pairs, outlines, overlap, readonly
from detmap.masks import Masks
from detmap.shapes.keypoints import rows_of
from detmap.shapes.masks import MaskColumn

sides = st.integers(1, 12)
seeds = st.integers(0, 2**32 - 1)


def bitmap(seed, height, width):
    """Noise of any density: regions within holes within regions, and what touches at corners alone."""
    rng = np.random.default_rng(seed)
    return rng.random((height, width)) < rng.choice([0.05, 0.3, 0.5, 0.7, 0.95])


def pixels(mask):
    """A bitmap as a set of (row, column)."""
    return set(map(tuple, np.argwhere(mask).tolist()))


# --------------------------------------------------------------------------------------------------------------- bitmaps


@settings(max_examples=examples(300), deadline=None)
@given(seeds, sides, st.integers(1, 21), st.integers(1, 4), st.booleans())
def test_bitmaps_of_any_width_become_runs(seed, height, width, count, turned):
    """As the twin that looks at one pixel after the other; any number but 0 is foreground, in any order of memory."""
    rng = np.random.default_rng(seed)
    bitmaps = np.stack([bitmap(seed + k, height, width) for k in range(count)])
    bitmaps = bitmaps * rng.integers(1, 256, bitmaps.shape, np.uint8) if seed % 2 else bitmaps
    expected = [naive.string_of(naive.runs_of(one.tolist())) for one in bitmaps]
    given_ = np.asfortranarray(bitmaps) if turned else bitmaps
    assert [record["counts"] for record in Masks.from_bitmaps(given_).to_rle()] == expected


@pytest.mark.parametrize("density", [0.5, 0.001])
def test_room_is_made_for_runs_and_strings(density):
    """Of masks with far more runs than are expected, between such that have few."""
    rng = np.random.default_rng(1)
    side = 20 if detmap.kernels._numba._config.DISABLE_JIT else 120
    bitmaps = rng.random((5, side, side + 1)) < np.array([0, density, 0.001, density, 1])[:, None, None]
    stack = np.asfortranarray(np.moveaxis(bitmaps, 0, -1).astype(np.uint8))
    expected = theirs.encode(stack)
    assert ours.encode(stack) == expected
    assert [one["counts"].encode() for one in Masks.from_bitmaps(bitmaps, threads=1).to_rle()] == [
        one["counts"] for one in expected
    ]
    lengths = [{"size": [side, side + 1], "counts": naive.lengths_of(one["counts"].decode())} for one in expected]
    assert ours.frPyObjects(lengths, side, side + 1) == expected


def in_steps(write, count, room, most):
    """The runs that a kernel writes to `room` ends at a time, or to as many as it asks for, and how many calls it takes."""
    found, begin, calls = [], 0, 0
    while begin < count:
        out, spans = np.full(room + 8, 77, np.uint32), np.full((count, 4), -1)
        done = write(begin, count, out[:room], spans)
        assert (out[room:] == 77).all()
        assert (spans[:, 2:] == -1).all()
        assert begin <= done <= count
        found += [out[first:stop].tolist() for first, stop in spans[begin:done, :2].tolist()]
        if done < count:
            assert (spans[done + 1 :] == -1).all()
            left = room - (int(spans[done - 1, 1]) if done > begin else 0)
            assert left < spans[done, 1] <= most
            room = max(room, int(spans[done, 1]))
        begin, calls = done, calls + 1
        assert calls < 10 * most * count
    return found, calls


@settings(max_examples=examples(60), deadline=None)
@given(seeds, sides, st.integers(1, 21), st.integers(1, 4))
def test_runs_stop_where_their_room_is_full(seed, height, width, count):
    """Kernels of bitmaps and boundaries say which mask comes next and what it needs, and write nothing behind the room."""
    masks = Masks.from_bitmaps(np.stack([bitmap(seed + k, height, width) for k in range(count)]))
    bits, distances = readonly(masks.to_bitmaps(), np.bool_).view(np.uint8), readonly(np.full(count, 1), np.int64)
    runs, most = masks._runs, 4 * height * width + 8
    for write, expected in (
        (partial(bitmaps.runs_of_bitmaps, bits), masks),
        (partial(boundaries.boundary_runs, runs.ends, runs.spans, distances), masks.boundary(1e-9)),
    ):
        lists = [expected._runs.ends[first:stop].tolist() for first, stop in expected._runs.spans[:, :2].tolist()]
        assert in_steps(write, count, most * count, most) == (lists, 1)
        for room in {0, 1, 2, len(lists[0]), most}:
            assert in_steps(write, count, room, most)[0] == lists


@settings(max_examples=examples(60), deadline=None)
@given(seeds, sides, sides)
def test_an_outline_is_written_where_there_is_room_for_it(seed, height, width):
    masks = Masks.from_bitmaps(bitmap(seed, height, width)[None])
    (first, stop), ends = masks._runs.spans[0, :2].tolist(), masks._regular().ends
    none = np.empty((0, 2), np.int64)
    needed = -outlines.trace(ends, first, stop, height, none)
    if needed == 0:
        assert masks.to_polygons() == [[]]
        return
    out = np.full((needed + 1, 2), 77)
    assert outlines.trace(ends, first, stop, height, out[: needed - 1]) == -needed
    assert (out == 77).all()
    rows = outlines.trace(ends, first, stop, height, out[:needed])
    assert 0 < rows <= needed
    assert (out[rows:] == 77).all()
    assert [xy for xy in out[:rows].tolist() if xy[0] >= 0] == [
        list(xy) for polygon in masks.to_polygons()[0] for xy in zip(polygon[::2], polygon[1::2], strict=True)
    ]


def test_bitmaps_anywhere_in_memory_are_encoded():
    """Also where they do not begin at a multiple of eight bytes."""
    memory = np.zeros(400, np.uint8)
    memory[150:260] = 1
    for start in range(9):
        stack = memory[start : start + 360].reshape((15, 24, 1), order="F")
        assert ours.encode(stack) == theirs.encode(stack)


def test_a_zigzag_needs_more_room_than_is_made_at_first():
    zigzag = [value for k in range(400) for value in (60 * (k % 2), k / 4)]
    for given_ in ([zigzag], [[0, 0, 5, 5, 0, 5], zigzag, [3, 3, 9, 9, 3, 9]]):
        assert ours.frPyObjects(given_, 100, 60) == theirs.frPyObjects(given_, 100, 60)
    heights = np.random.default_rng(2).integers(0, 900, 1800).tolist()  # few crossings, many characters
    spikes = [value for x, y in enumerate(heights) for value in (x, y)] + [1800, 1000, 0, 1000]
    assert ours.frPyObjects([spikes], 1000, 1800) == theirs.frPyObjects([spikes], 1000, 1800)


# --------------------------------------------------------------------------------------------------------------- strings


@settings(max_examples=examples(1000), deadline=None)
@example(b"oooooooo3", 5, 5)
@example(b"1QQQQQQQ41PPPPPPPPP1", 5, 5)
@given(st.binary(min_size=1, max_size=12), sides, sides)
def test_any_string_is_read_as_pycocotools_reads_it(counts, height, width):
    """Foreign characters, numbers of more than 32 bits, sums that wrap around, a NUL within."""
    read = counts.partition(b"\0")[0]
    if read and (read[-1] - 48) & 32:
        with pytest.raises(InputError, match="within a number"):  # the original reads on behind the string
            ours.area({"size": [height, width], "counts": counts})
        return
    record = {"size": [height, width], "counts": counts}
    for name in ("area", "toBbox"):
        assert np.array_equal(getattr(ours, name)([record] * 2), getattr(theirs, name)([record] * 2)), name
    assert ours.merge([record]) == theirs.merge([record])


def test_masks_without_pixels_may_have_no_height():
    """And run lengths may wrap around at 32 bits."""
    for size in ([0, 5], [5, 0], [0, 0]):
        for counts in (b"", b"0", b"00"):
            assert np.array_equal(
                ours.toBbox([{"size": size, "counts": counts}]), theirs.toBbox([{"size": size, "counts": counts}])
            )
    lengths = [{"size": [5, 5], "counts": [2**32 - 3, 7, 2**32 - 1, 2**32 - 2, 9]}]
    assert ours.frPyObjects(lengths, 5, 5) == theirs.frPyObjects(lengths, 5, 5)


@settings(max_examples=examples(300), deadline=None)
@given(seeds, sides, sides, st.integers(2, 5))
def test_merged_strings_are_sets_of_pixels(seed, height, width, count):
    masks = [bitmap(seed + k, height, width) for k in range(count)]
    records = [
        {"size": [height, width], "counts": naive.string_of(naive.runs_of(mask.tolist())).encode()} for mask in masks
    ]
    for intersect, expected in ((0, set.union(*map(pixels, masks))), (1, set.intersection(*map(pixels, masks)))):
        merged = ours.merge(records, intersect)["counts"].decode()
        assert merged == theirs.merge(records, intersect)["counts"].decode()
        assert naive.pixels_of(naive.lengths_of(merged), height) == expected
        text = [{**record, "counts": record["counts"].decode()} for record in records]
        assert ours.merge(text, intersect)["counts"].decode() == merged


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.lists(st.integers(0, 24), max_size=6, unique=True), min_size=2, max_size=5), st.booleans())
def test_masks_of_few_runs_are_merged_run_by_run(turns, intersect):
    """In an image of far more words than there are runs; many runs begin where others end."""
    lengths = [np.diff([0, *(128 * turn for turn in sorted(one)), 3200]).tolist() for one in turns]
    records = ours.frPyObjects([{"size": [64, 50], "counts": one} for one in lengths], 64, 50)
    assert ours.merge(records, intersect) == theirs.merge(records, intersect)


# -------------------------------------------------------------------------------------------------------------- outlines


@settings(max_examples=examples(400), deadline=None)
@given(seeds, sides, sides)
def test_outlines_draw_their_mask_again(seed, height, width):
    """By us, by pycocotools and by the twin; each polygon is one region, with its holes."""
    mask = bitmap(seed, height, width)
    masks = Masks.from_bitmaps(mask[None])
    (polygons,) = masks.to_polygons()
    assert sorted(map(len, naive.regions(pixels(mask)))) == sorted(
        len(naive.united([one], height, width)) for one in polygons
    )
    if not polygons:
        assert not mask.any()
        return
    assert Masks.from_polygons([polygons], (height, width)).to_rle() == masks.to_rle()
    merged = theirs.merge(theirs.frPyObjects(polygons, height, width))
    assert merged["counts"].decode() == masks.to_rle()[0]["counts"]
    assert naive.united(polygons, height, width) == pixels(mask)
    assert all(len(one) >= 8 and type(value) is int for one in polygons for value in one)


def test_outlines_by_hand():
    """Clockwise along the edges of pixels; corners alone do not connect; a line leads to a hole and back."""
    bitmaps = np.zeros((4, 4, 5), bool)
    bitmaps[0, 1:3, 1:4] = True
    bitmaps[1, 0, 0] = bitmaps[1, 1, 1] = True
    bitmaps[2, :3, :3] = True
    bitmaps[2, 1, 1] = False
    assert Masks.from_bitmaps(bitmaps).to_polygons() == [
        [[4, 1, 4, 3, 1, 3, 1, 1]],
        [[1, 0, 1, 1, 0, 1, 0, 0], [2, 1, 2, 2, 1, 2, 1, 1]],
        [[1, 0, 1, 2, 2, 2, 2, 1, 1, 1, 1, 0, 3, 0, 3, 3, 0, 3, 0, 0]],
        [],
    ]
    bent = np.ones((1, 5, 5), bool)  # the segment above the lower part of this hole ends in the hole
    bent[0, 1, 2:4] = bent[0, 2, 3] = bent[0, 3, 1:4] = False
    (polygons,) = Masks.from_bitmaps(bent).to_polygons()
    assert len(polygons) == 1
    assert naive.united(polygons, 5, 5) == pixels(bent[0])
    empty_runs = Masks.from_rle([{"size": [4, 5], "counts": [5, 1, 0, 1, 13, 0, 0]}])
    assert empty_runs.boxes().tolist() == [[1, 1, 1, 2]]
    assert empty_runs.to_polygons() == [[[2, 1, 2, 3, 1, 3, 1, 1]]]
    assert Masks.from_rle([]).to_polygons() == []


# ----------------------------------------------------------------------------------------------------------------- pairs


def packed(bitmaps):
    """A column of masks that are still strings."""
    column = MaskColumn.of(Masks.from_bitmaps(bitmaps)).held
    texts = [naive.string_of(naive.runs_of(one.tolist())).encode() for one in bitmaps]
    starts = np.cumsum([0, *(len(text) + 1 for text in texts)])
    spans = column.spans.copy()
    spans[:, 0], spans[:, 1] = starts[:-1], ~(starts[1:] - 1)
    text = readonly(np.frombuffer(b"".join(text + b"\0" for text in texts), np.uint8), np.uint8)
    return column._replace(text=text, ends=readonly([], np.uint32), spans=readonly(spans, np.int64))


def band(seed, height, width):
    """A run in each of many consecutive columns, whose ends wander; a few columns have a second run, none, or all pixels."""
    rng = np.random.default_rng(seed)
    wander = rng.choice([1, 4, 20])
    edges = rng.uniform(0, height, 2) + np.cumsum(rng.integers(-wander, wander + 1, (width, 2)), axis=0)
    top, bottom = np.sort(np.clip(edges, 0, height - 1).astype(int)).T
    rows = np.arange(height)[:, None]
    made = (rows >= top) & (rows <= bottom)
    odd = rng.random(width) < rng.choice([0.0, 0.03, 0.2])
    made[:, odd] = rng.random((height, int(odd.sum()))) < rng.choice([0.0, 0.3, 1.0])
    made[:, : rng.integers(0, width)] &= rng.random() < 0.7
    return made


@settings(max_examples=examples(200), deadline=None)
@given(seeds, sides, sides, st.booleans())
def test_overlaps_of_pairs_are_those_of_sets_of_pixels(seed, height, width, strings):
    """From strings and from runs."""
    check_pairs(np.stack([bitmap(seed + k, height, width) for k in range(6)]), seed, strings)


@settings(max_examples=examples(200), deadline=None)
@given(seeds, st.integers(1, 70), st.integers(10, 60), st.booleans())
def test_overlaps_of_wide_masks_are_those_of_sets_of_pixels(seed, height, width, strings):
    """Of masks with so many runs that several are read and compared at once."""
    check_pairs(np.stack([band(seed + k, height, width) for k in range(6)]), seed, strings)


def check_pairs(bitmaps, seed, strings):
    """The overlaps of the first three of six bitmaps with the others, and the runs of the first three."""
    rng = np.random.default_rng(seed)
    bitmaps[5] = bitmaps[0]
    height, width = bitmaps.shape[1:]
    truth = MaskColumn.of(Masks.from_bitmaps(bitmaps[3:])).held
    found = packed(bitmaps[:3]) if strings else MaskColumn.of(Masks.from_bitmaps(bitmaps[:3])).held
    left, right = (readonly(one, np.int64) for one in (np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)))
    crowd, out = readonly(rng.random(9) < 0.3, np.bool_), np.empty(9)
    mask_pairs.mask_overlaps(found, truth, left, right, crowd, readonly([0], np.uint8), out)
    sets = list(map(pixels, bitmaps))
    for k, value in enumerate(out.tolist()):
        assert value == naive.iou(sets[k // 3], sets[3 + k % 3], bool(crowd[k]))
    ends, spans = np.empty(3 * height * width + 9, np.uint32), np.zeros((3, 4), np.int64)
    spans[:, 0] = np.arange(3) * (height * width + 3)
    mask_pairs.unpack(found, readonly(np.arange(3), np.int64), 0, 3, ends, spans)
    for one, (first, stop) in zip(bitmaps[:3], spans[:, :2].tolist(), strict=True):
        assert np.diff(ends[first:stop].astype(int), prepend=0).tolist() == naive.runs_of(one.tolist())


@settings(max_examples=examples(200), deadline=None)
@given(seeds, sides, sides, st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_pairs_are_left_out_where_areas_are_too_small_for_the_lowest_overlap(seed, height, width, lowest):
    """Proposed is what may overlap enough by boxes and areas; all that touches where an area is not known."""
    rng = np.random.default_rng(seed)
    columns = [MaskColumn.of(Masks.from_bitmaps(np.stack([bitmap(seed + k, height, width) for k in ks]))).held
               for ks in (range(3), range(2, 5))]  # fmt: skip
    areas = [np.where(rng.random(3) < 0.2, np.nan, column.areas) for column in columns]
    order, crowd = readonly(range(3), np.int32), readonly(rng.random(3) < 0.3, np.bool_)
    sides_ = (overlap.Boxes(c.boxes, order, True, 0.0, readonly(a, np.float64))
              for c, a in zip(columns, areas, strict=True))  # fmt: skip
    cells = overlap.Cells(*(readonly([at], np.int64) for at in (0, 3, 0, 3)))
    found = overlap.candidates(cells, *sides_, crowd, lowest, 0, 1)
    for d, g in np.ndindex(3, 3):
        (x, y, w, h), (p, q, v, k) = columns[0].boxes[d].tolist(), columns[1].boxes[g].tolist()
        touch = max(min(x + w, p + v) - max(x, p), 0) * max(min(y + h, q + k) - max(y, q), 0)
        own, theirs = float(areas[0][d]), float(areas[1][g])
        shared = min(touch, own, theirs)
        expected = touch > 0 or lowest == 0
        if touch and own == own and theirs == theirs:
            expected = shared / (own if crowd[g] else own + theirs - shared) >= lowest
        assert (g in found.ground_truth[found.first[d] : found.last[d]]) == expected


def test_masks_with_empty_runs_match_whatever_their_areas_are():
    """pycocotools stops walking at empty runs: 3 of 5 pixels of both then, though few of the larger mask are shared."""
    lengths = [2, 3, 0, 0, 15], [0, 5, 0, 15]
    truth, found = (Masks.from_rle([{"size": [4, 5], "counts": one}]) for one in lengths)
    given = {"image_ids": [1], "category_ids": [1]}
    tables = (
        detmap.GroundTruth.from_arrays(**given, masks=truth),
        detmap.Detections.from_arrays(**given, masks=found, scores=[1.0]),
    )
    codes = [theirs.frPyObjects({"size": [4, 5], "counts": one}, 4, 5) for one in lengths]
    assert theirs.iou(codes[1:], codes[:1], [0]) == 0.6
    result = detmap.evaluate(*tables, iou_type="segm", iou_thresholds=[0.6, 0.65])
    assert result.tally.hit_counts[0, 0].tolist() == [1, 0]


# ----------------------------------------------------------------------------------------------------------------- files


def spelled(rng, mask):
    """A segmentation in one of COCO's spellings, as text, with white space and escapes here and there, and as an object."""
    height, width = mask.shape
    lengths, blank = naive.runs_of(mask.tolist()), rng.choice(["", " ", "\n\t"])
    kind = rng.integers(0, 3)
    if kind == 0:
        outlines = []
        for _ in range(rng.integers(1, 4)):
            outlines.append(np.round(rng.uniform(-3, 14, 2 * rng.integers(3, 7)), int(rng.integers(0, 4))).tolist())
        outlines[-1] += [1.5] * int(rng.integers(0, 2))
        return json.dumps(outlines, separators=("," + blank, ": ")), outlines
    size = f'"size"{blank}:[{height},{blank}{width}]'
    if kind == 1:
        value = {"size": [height, width], "counts": lengths}
        return f'{{{blank}"counts":{json.dumps(lengths)},{blank}{size}}}', value
    counts = naive.string_of(lengths)
    escaped = "".join(f"\\u{ord(c):04x}" if rng.random() < 0.1 else json.dumps(c)[1:-1] for c in counts)
    return f'{{{size},{blank}"other":[1,{{}}],"counts":"{escaped}"{blank}}}', {
        "size": [height, width],
        "counts": counts,
    }


@settings(max_examples=examples(200), deadline=None)
@given(seeds, sides, sides, st.integers(1, 5))
def test_segmentations_of_a_file_are_those_of_the_twin(tmp_path_factory, seed, height, width, count):
    """Compressed, lists of runs, polygons: area, box and every pixel."""
    rng = np.random.default_rng(seed)
    both = [spelled(rng, bitmap(seed + k, height, width)) for k in range(count)]
    records = ",\n".join(f'{{"image_id":1,"category_id":1,"score":0.5,"segmentation":{text}}}' for text, _ in both)
    path = tmp_path_factory.mktemp("file") / "file.json"
    path.write_text(f"[{records}]")
    image = {"id": 1, "height": height, "width": width}
    truth = {"images": [image], "categories": [{"id": 1, "name": "a"}], "annotations": []}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("detmap.formats.coco.read._WORTH_SCANNING", 0)
        table = detmap.read_coco_results(path, detmap.read_coco(truth, iou_type="segm"), iou_type="segm")
    column = table.shapes["segm"]
    expected = [naive.segmentation(value, height, width) for _, value in both]
    assert column.areas().tolist() == [area for _, area, _ in expected]
    assert column.held.boxes.tolist() == [box for _, _, box in expected]
    assert [pixels(mask) for mask in column.masks().to_bitmaps()] == [region for region, _, _ in expected]


@pytest.mark.parametrize("spelling", [r"\\1", r"\u005c1", r"\u005C\u0031"])
def test_a_backslash_is_a_character_of_strings(spelling, tmp_path, monkeypatch):
    r"""The string ``\1`` is 44 pixels of background; in JSON a backslash is two, or six characters."""
    assert naive.lengths_of("\\1") == [44]
    path = tmp_path / "file.json"
    record = f'{{"image_id":1,"category_id":1,"score":0.5,"segmentation":{{"size":[4,11],"counts":"{spelling}"}}}}'
    path.write_text(f"[{record}]")
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", 0)
    column = detmap.read_coco_results(path, iou_type="segm").shapes["segm"]
    assert column.masks().to_rle() == [{"size": [4, 11], "counts": "\\1"}]


# ----------------------------------------------------------------------------------------------------------------- poses


@settings(max_examples=examples(300), deadline=None)
@given(
    seeds, st.sampled_from([1, 2, 7, 8, 9, 15, 16, 17, 40, 128, 129]), st.sampled_from([-1.0, 0.0, 0.04, 0.3, 0.5, 1.0])
)
def test_likeness_of_poses_is_that_of_the_twin(seed, points, lowest):
    """To the bit where it reaches `lowest`: visible points or all, areas of 0, a kernel on each side of the exponential."""
    rng = np.random.default_rng(seed)
    found, truth = (rng.uniform(0, 30, (2, 3 * points)).round(int(rng.integers(0, 3))) for _ in range(2))
    found[0] = np.where(rng.random(3 * points) < 0.6, truth[0] + rng.normal(0, 0.3, 3 * points).round(1), found[0])
    truth[:, 2::3] = rng.integers(0, 3, (2, points)) * (rng.random((2, 1)) < 0.7)
    boxes, areas = rng.uniform(1, 20, (2, 4)), rng.choice([0.0, 9.5, 400.0], 2)
    sigmas = rng.uniform(0.03, 0.2, points)
    poses = [rows_of(one.reshape(2, 3 * points)) for one in (found, truth)]
    objects = keypoints.Objects(
        *(readonly(one, np.float64) for one in (boxes, areas, (sigmas * 2) ** 2)), readonly([0, 0], np.int64)
    )
    left, right = readonly([0, 0, 1, 1], np.int64), readonly([0, 1, 0, 1], np.int64)
    terms, stops, out = np.empty(4 * points), np.empty(4, np.int64), np.empty(4)
    pairs = keypoints.Likely(left, right, lowest)
    keypoints.exponents(*poses, objects, pairs, 0, 4, keypoints.Terms(terms, stops))
    keypoints.means(np.exp(terms[: stops[-1]]), stops, out)
    for k in range(4):
        d, g = int(left[k]), int(right[k])
        expected = naive.likeness(found[d].tolist(), truth[g].tolist(), boxes[g].tolist(), areas[g], sigmas)
        kept = int(stops[k] - (stops[k - 1] if k else 0))
        if kept > 128:
            assert np.isnan(out[k])
        else:
            assert out[k] == expected if kept or expected >= lowest else out[k] < lowest


@settings(max_examples=examples(100), deadline=None)
@given(seeds, st.integers(1, 9))
def test_extents_of_poses(seed, points):
    rng = np.random.default_rng(seed)
    values = rng.uniform(-9, 9, (3, points, 3)).round(1)
    values[..., 2] = rng.integers(-1, 3, (3, points))
    poses = rows_of(values.reshape(3, 3 * points))
    boxes, labelled = np.empty((3, 4)), np.empty(3, np.int64)
    keypoints.extents(poses, 0, 3, boxes, labelled)
    low, high = values[..., :2].min(axis=1), values[..., :2].max(axis=1)
    assert np.array_equal(boxes, np.concatenate([low, high - low], axis=1))
    assert labelled.tolist() == (values[..., 2] > 0).sum(axis=1).tolist()
