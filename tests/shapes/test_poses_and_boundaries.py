"""What is quick about poses and boundaries is right too: plain lists of numbers, bounds of likeness, deep pixels as bits."""

from __future__ import annotations

import json
import math
import threading

import naive_masks as naive
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import examples, same_bits

import detmap
from detmap.formats.inputs import Input
from detmap.kernels import keypoints, number_lists, readonly
from detmap.kernels.segmentations import STATE_SIZE
from detmap.kernels.words import survey
from detmap.masks import Masks
from detmap.reading.options import Reading
from detmap.shapes.keypoints import Keypoints, _reach, _Truth, rows_of
from detmap.shapes.reading import Regions, Rows, resolved

seeds = st.integers(0, 2**32 - 1)


# ----------------------------------------------------------------------------------------------------- lists of numbers

numbers = st.one_of(
    st.integers(-99, 10**9).map(str),
    st.integers(0, 99_999_999).map(lambda n: f"{n // 1000}.{n % 1000:03}"),
    st.integers(0, 999).map(lambda n: f"{n // 10}.{n % 10}"),
    st.floats(-1e6, 1e6).map(repr),
    st.sampled_from(["0", "0.0", "-0.0", "1.0", "0.5", "9999999", "12345678", "1e3", "1.5E-3", "123.4567", "0.12345"]),
)
plain = st.integers(0, 999_999).map(lambda n: f"{n // 1000}.{n % 1000}")
blanks = st.sampled_from(["", "", " ", " ", "  ", "\n", "\t "])


def listed(texts, behind=b" " * 64):
    """Read lists of numbers as the reader of keypoints does: the numbers of each, None where it holds anything else."""
    data = b"\x00".join(text.encode() for text in texts) + b"\x00" + behind
    stops = np.cumsum([len(text.encode()) + 1 for text in texts])
    spans = np.stack([np.concatenate([[0], stops[:-1]]), stops - 1], axis=1)
    starts, ends, state = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64), np.zeros(STATE_SIZE, np.int64)
    room = len(data) // 2 + len(texts)
    values = np.empty(room + 1, np.uint64)
    values[room] = 12345
    out = (starts, ends, values[:room])
    resolved(number_lists.read_numbers, np.frombuffer(data, np.uint8), spans, state, out, values)
    assert values[room] == 12345
    floats = values.view(np.float64)
    return [
        None if stop < 0 else floats[start:stop].tolist()
        for start, stop in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.lists(st.tuples(numbers, blanks, blanks), min_size=1, max_size=9), min_size=1, max_size=4),
    st.sampled_from([b" " * 8, b" " * 64]),
)
@example([[("1.5", "", " "), ("2.25", "", ""), ("3", "", " "), ("4", "", "")] * 4], b" " * 64)
@example([[("1.5", "", " "), ("2.25", "", "  "), ("3", "", " "), ("4.125", "", "\n ")] * 4], b" " * 64)
def test_lists_of_numbers_however_they_are_written(records, behind):
    """To the bit as Python reads them, with any white space, near the end of the document and far from it."""
    texts = ["[" + ",".join(f"{after}{text}{before}" for text, before, after in row) + "]" for row in records]
    expected = [[float(value) for value in json.loads(text)] for text in texts]
    assert list(map(str, listed(texts, behind))) == list(map(str, expected))


@settings(max_examples=examples(300), deadline=None)
@given(
    st.integers(1, 7).flatmap(
        lambda size: st.lists(
            st.one_of(
                st.lists(numbers, min_size=size, max_size=size),
                st.lists(plain, min_size=size, max_size=size),
                st.lists(numbers, max_size=9),
            ),
            min_size=1,
            max_size=12,
        )
    ),
    st.sampled_from([", ", ",", ",  ", " , "]),
    st.sampled_from([b" " * 8, b" " * 64]),
)
@example([["1.5"] * 9, ["2.5"], ["3.5"], ["4.5"] * 9, ["5.5"] * 9, ["6.5"] * 9, ["7.5"], ["8.5"] * 9], ", ", b" " * 64)
@example(
    [["1.0", "9.0", "0.0", "0.05", "1.01", "10.0", "7"], ["2.0", "0.0", "1.5", "0.0", "1.0", "1.0", "2.0"]] * 3,
    ",",
    b" " * 64,
)
@example(
    [["1.0", "9.0", "0.0", "0.05", "1.01", "10.0", "7"], ["2.0", "0.0", "1.5", "0.0", "1.0", "1.0", "2.0"]] * 3,
    ", ",
    b" " * 64,
)
def test_lists_of_one_length_are_read_side_by_side(rows, comma, behind):
    """And others too: what is read of one is not written over another."""
    texts = ["[" + comma.join(row) + "]" for row in rows]
    expected = [[float(value) for value in json.loads(text)] for text in texts]
    assert list(map(str, listed(texts, behind))) == list(map(str, expected))


WRONG = [
    "01.5",
    "1.",
    ".5",
    "1..5",
    "1.5.2",
    "1 2",
    "+1",
    "--1",
    "1e",
    "0x1",
    "1.5,",
    ",1",
    "00",
    "1.5 .2",
    "[1]",
    '"1"',
    "nan",
    "/.0",
    ":.0",
    "1.0.",
]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("comma", [",", ", "])
def test_what_is_no_number_is_found_among_plain_ones(wrong, comma):
    for place in range(4):
        row = ["12.5", "3", "1.0"]
        row.insert(place, wrong)
        text = "[" + comma.join(row) + "]"
        good = "[" + comma.join(["7.25", "8", "2.5", "1"]) + "]"
        right = [7.25, 8.0, 2.5, 1.0]
        assert listed([good, text, good, good, text]) == [right, None, right, right, None]
        assert listed([good, good, text, good, good]) == [right, right, None, right, right]


@settings(max_examples=examples(100), deadline=None)
@given(st.text(alphabet="{: a1é", max_size=400), st.integers(0, 8), st.booleans())
def test_a_survey_counts_marks_that_are_not_behind_a_colon(text, begin, inner):
    data = text.encode() * 2 + b"{" * 20
    end = len(data) - begin
    part = data[begin:end]
    count = part.count(b"{")
    if inner:
        count -= sum(part[k] == 123 and (part[k - 1] == 58 or part[k - 2 : k] == b": ") for k in range(2, len(part)))
    found = survey(readonly(np.frombuffer(data, np.uint8), np.uint8), begin, end, 123, inner)
    assert found == (count if part.isascii() else -1 - count)


# ----------------------------------------------------------------------------------------------------------- likeness


def corners_of(boxes):
    table = boxes.table
    return np.concatenate([table[:, :2], table[:, :2] + table[:, 2:]], axis=1) if boxes.sizes else table


@settings(max_examples=examples(200), deadline=None)
@given(
    seeds,
    st.sampled_from([1, 3, 17]),
    st.sampled_from([0.02, 0.3, 0.5, 0.95, 1.0]),
    st.sampled_from([1, 1e-9, 1e9, 1e17]),
)
def test_poses_as_like_as_that_lie_within_reach(seed, points, lowest, scale):
    """No pair that is like enough is left out: poses in one place, far away, objects without visible points."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(-30, 30, (4, 3 * points)).round(int(rng.integers(0, 3)))
    found = truth + rng.normal(0, rng.choice([0.0, 0.5, 5.0]), (4, 3 * points))
    truth[:, 2::3] = rng.integers(0, 3, (4, points)) * (rng.random((4, 1)) < 0.7)
    if rng.random() < 0.3:  # all points in one place
        found[:] = found[:, :1]
    boxes, areas = rng.uniform(-5, 20, (4, 4)), rng.choice([0.0, 9.5, 400.0], 4)
    found, truth, boxes, areas = found * scale, truth * np.tile([scale, scale, 1], points), boxes * scale, areas * scale
    sigmas = rng.uniform(0.03, 0.2, points)
    objects = keypoints.Objects(
        *(readonly(one, np.float64) for one in (boxes, areas, (sigmas * 2) ** 2)), readonly([0] * 4, np.int64)
    )
    reached = _reach(Keypoints.of(rows_of(found)), _Truth(rows_of(truth), objects), lowest)
    near, far = map(corners_of, reached)
    for d in range(4):
        for g in range(4):
            like = naive.likeness(found[d].tolist(), truth[g].tolist(), boxes[g].tolist(), areas[g], sigmas)
            if like >= lowest:
                gap = np.maximum(near[d, :2], far[g, :2]) - np.minimum(near[d, 2:], far[g, 2:])
                assert (gap <= 0).all()


def test_rows_that_are_apart_are_joined_column_by_column(monkeypatch):
    """Under their names and in their order, whichever column is joined first."""

    def backwards(task, blocks):
        return [task(*block) for block in reversed(blocks)][::-1]

    monkeypatch.setattr("detmap.shapes.reading.parallel.run", backwards)
    rows = Rows({"one": ((), np.int64), "four": ((4,), np.float64)})
    parts = [rows.at(0, 2, 5), rows.apart(1), rows.at(2, 2, 5)]
    for number, part in enumerate(parts):
        part["one"][:], part["four"][:] = number, -number
    made = rows.joined([(0, parts[0]), (-1, parts[1]), (2, parts[2])])
    assert {name: column[..., None].reshape(5, -1)[:, 0].tolist() for name, column in made.items()} == {
        "one": [0, 0, 1, 2, 2],
        "four": [0, 0, -1, -2, -2],
    }
    assert [*made] == ["one", "four"]
    placed = rows.joined([(0, parts[0]), (2, parts[2])])
    assert all(np.shares_memory(placed[name], parts[0][name]) for name in made)


def test_a_file_of_a_few_bytes_has_memory_for_no_numbers():
    """Of records without a list of numbers nothing is taken."""
    region = Regions(np.uint64, 0)
    values, begin, chunk = region.take(0)
    region.keep(begin)
    assert values[begin:begin].size == 0
    assert region.whole()[1][chunk] == 0


def meet(found, truth, box, sigmas, lowest):
    """Whether a pose is within reach of an object of area 100, and how alike they are."""
    objects = keypoints.Objects(
        *(readonly(one, np.float64) for one in ([box], [100], (np.array(sigmas) * 2) ** 2)), readonly([0], np.int64)
    )
    reached = _reach(
        Keypoints.of(rows_of(np.array([found], float))), _Truth(rows_of(np.array([truth], float)), objects), lowest
    )
    near, far = (corners_of(side)[0] for side in reached)
    like = naive.likeness(np.float64(found).tolist(), np.float64(truth).tolist(), box, 100, np.array(sigmas))
    return bool((np.maximum(near[:2], far[:2]) <= np.minimum(near[2:], far[2:])).all()), like


def test_without_visible_points_a_box_as_long_again_on_both_sides_is_within_reach():
    for place in (-10, 20):
        assert meet([place, place, 2], [0, 0, 0], [0, 0, 10, 10], [0.05], 1.0) == (True, 1.0)
    assert meet([21.5, 20, 2], [0, 0, 0], [0, 0, 10, 10], [0.05], 0.9)[0] is False


@pytest.mark.parametrize("sigmas", [[0.5, 0.001], [0.001, 0.5]])
def test_the_point_that_may_be_farthest_says_how_far_an_object_reaches(sigmas):
    near, like = meet([5, 0, 2] * 2, [0, 0, 2] * 2, [0, 0, 1, 1], sigmas, 0.4)
    assert near
    assert 0.4 < like < 0.5


def test_boxes_around_poses_are_copied_only_where_rounding_may_exclude_a_point():
    objects = keypoints.Objects(
        *(readonly(one, np.float64) for one in ([[0, 0, 9, 9]], [100], [0.01, 0.01])), readonly([0], np.int64)
    )
    for numbers, same in (
        ([1, 2, 2, 5, 7, 2], True),
        ([1, 2, 2, 1, 7, 2], False),  # no width, as a pixel does not widen a box given by its size
        ([1, 2, 2, 5, 1e7, 2], False),
    ):
        column = Keypoints.of(rows_of(np.array([numbers], float)))
        near, _ = _reach(column, _Truth(rows_of(np.zeros((1, 6))), objects), 0.5)
        assert (near.table is column.boxes) == same
        low, high = np.reshape(numbers, (2, 3))[:, :2].min(axis=0), np.reshape(numbers, (2, 3))[:, :2].max(axis=0)
        assert (corners_of(near)[0, :2] <= low).all()
        assert (corners_of(near)[0, 2:] >= high).all()


def test_nothing_is_out_of_reach_where_any_likeness_counts():
    assert _reach(None, None, 0.0) is None
    assert _reach(None, None, -math.inf) is None


@pytest.fixture
def posed(tmp_path, monkeypatch):
    """Ground truth and a function that writes results; both are scanned in several windows."""
    rng = np.random.default_rng(4)
    truth = [rng.uniform(0, 90, 51).round(1).tolist() for _ in range(4)]
    annotation = {"category_id": 1, "num_keypoints": 17, "area": 900.0, "iscrowd": 0, "bbox": [0, 0, 90, 90]}
    document = {
        "images": [{"id": i + 1} for i in range(4)],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [
            {**annotation, "image_id": i + 1, "id": i + 1, "keypoints": one} for i, one in enumerate(truth)
        ],
    }
    (tmp_path / "truth.json").write_text(json.dumps(document))
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", 0)
    monkeypatch.setattr("detmap.reading.documents.BLOCK", 1_500)

    def write(change=None):
        near = [np.round(one + rng.normal(0, 3, 51), 2).tolist() for one in truth for _ in range(4)]
        results = [{"image_id": i // 4 + 1, "category_id": 1, "keypoints": one} for i, one in enumerate(near)]
        if change:
            change(results[11])
        path = tmp_path / "results.json"
        path.write_text(json.dumps([{**one, "score": rng.random()} for one in results]))
        return str(tmp_path / "truth.json"), str(path), near

    return write


def once(path, truth):
    return Input(path, "detections", Reading(iou_type="keypoints")).detections(truth, once=True)


def test_poses_that_are_scored_once_keep_points_without_flags(posed):
    truth_path, path, written = posed()
    truth = detmap.read_coco(truth_path, iou_type="keypoints")
    whole, short = detmap.read_coco_results(path, truth, iou_type="keypoints"), once(path, truth)
    column = short.shape("keypoints")
    values, starts, stops, width = column.poses
    assert width == 2
    rows = np.arange(len(written))[::-1]
    for own, order in ((column, rows[::-1]), (column.take(rows), rows)):
        _, starts, stops, _ = own.poses
        kept = [values[start:stop].reshape(-1, 2).tolist() for start, stop in zip(starts, stops, strict=True)]
        assert kept == [np.reshape(written[row], (-1, 3))[:, :2].tolist() for row in order]
    assert column.sizes().tolist() == [51] * len(written)
    assert np.array_equal(column.boxes, whole.shape("keypoints").boxes)
    expected = detmap.evaluate(truth, whole, iou_type="keypoints")
    assert 0 < expected["AP"] < 1
    for result in (
        detmap.evaluate(truth, short, iou_type="keypoints"),
        detmap.evaluate(truth_path, path, iou_type="keypoints"),
    ):
        assert all(same_bits(getattr(result, name), getattr(expected, name)) for name in ("precision", "scores"))
    with pytest.raises(AssertionError, match="v was not read"):
        column.arrays()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda one: one["keypoints"].pop(), "three for each point; there are 50"),
        (lambda one: one["keypoints"].clear(), "three for each point; there are 0"),
        (lambda one: one["keypoints"].append("2"), "must be numbers"),
        (lambda one: one.update(keypoints={}), "must be numbers"),
        (lambda one: one.pop("keypoints"), "is missing"),
        (lambda one: one["keypoints"].__setitem__(50, 1e300), "too far away"),
    ],
)
def test_poses_that_are_scored_once_are_refused_alike(posed, change, problem):
    truth_path, path, _ = posed(change)
    truth = detmap.read_coco(truth_path, iou_type="keypoints")
    said = []
    for read in (lambda: detmap.read_coco_results(path, truth, iou_type="keypoints"), lambda: once(path, truth)):
        with pytest.raises(detmap.InputError, match=f"record 11.*{problem}") as caught:
            read()
        said.append(str(caught.value))
    assert said[0] == said[1]


# ---------------------------------------------------------------------------------------------------------- boundaries


def near_the_contour(mask, distance):
    """The pixels of a bitmap within a distance of background or the edge: sums over squares, from a table of sums."""
    height, width = mask.shape
    side = 2 * distance + 1
    sums = np.zeros((height + side, width + side), np.int64)
    sums[distance + 1 : distance + 1 + height, distance + 1 : distance + 1 + width] = mask
    sums = sums.cumsum(0).cumsum(1)
    inside = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    return mask & (inside < side * side)


@settings(max_examples=examples(150), deadline=None)
@given(seeds, st.integers(1, 300), st.integers(1, 60), st.sampled_from([0.001, 0.01, 0.02, 0.1, 0.7]))
def test_boundaries_of_tall_masks(seed, height, width, dilation):
    """Columns of several words, with holes, several runs, and rows that the mask does not begin at."""
    rng = np.random.default_rng(seed)
    mask = np.zeros((height, width), bool)
    for _ in range(int(rng.integers(1, 4))):
        top, left = rng.integers(0, height), rng.integers(0, width)
        mask[top : top + rng.integers(1, height + 1), left : left + rng.integers(1, width + 1)] ^= True
    for _ in range(int(rng.choice([0, 1, 9]))):
        mask[rng.integers(0, height), rng.integers(0, width)] ^= True
    distance = max(round(dilation * math.sqrt(height * height + width * width)), 1)
    found = Masks.from_bitmaps(np.stack([mask, np.zeros_like(mask), ~mask])).boundary(dilation)
    expected = [near_the_contour(one, distance) for one in (mask, np.zeros_like(mask), ~mask)]
    assert np.array_equal(found.to_bitmaps(), np.stack(expected))
    assert Masks.from_rle(found.to_rle()).to_rle() == Masks.from_bitmaps(np.stack(expected)).to_rle() == found.to_rle()


@pytest.mark.compiled
def test_boundaries_of_wide_masks_are_found_part_by_part():
    """A mask whose columns do not fit into what is worked on at a time."""
    rng = np.random.default_rng(3)
    mask = np.zeros((200, 900), bool)
    mask[5:190, 3:890] = True
    mask[rng.integers(0, 200, 20), rng.integers(0, 900, 20)] = False
    mask = np.concatenate([mask, mask], axis=1)
    mask = np.concatenate([mask] * 10, axis=1)  # 4 words of 18,000 columns
    found = Masks.from_bitmaps(mask[None]).boundary(1e-4).to_bitmaps()[0]
    assert np.array_equal(found, near_the_contour(mask, round(1e-4 * math.hypot(*mask.shape))))


def test_a_box_of_negative_width_keeps_no_pose_away():
    """Its area, of which likeness is made, is negative too: every pose is as like as the rule makes it."""
    point = [12.0, 12.0, 2.0]
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1],
        category_ids=[1],
        boxes=[[10, 10, -5, 20]],
        areas=[100.0],
        keypoints=[[point] * 17],
        invalid_boxes="miss",
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1], category_ids=[1], scores=[0.5], keypoints=[[[500.0, 500.0, 2.0]] * 17]
    )
    result = detmap.evaluate(truth, found, "coco", iou_type="keypoints", oks_area="bbox*0.53, ranges by area")
    assert result["AP"] == pytest.approx(1)


def test_no_masks_have_no_boundaries():
    masks = Masks.from_bitmaps(np.random.default_rng(0).random((8, 300, 300)) < 0.5)
    assert len(masks.take(np.zeros(8, bool)).boundary()) == 0


@pytest.mark.parametrize("cores", [2, 8, 64])
def test_memory_for_numbers_grows_little_with_processors(cores, monkeypatch):
    """Each thread has a region; together they are not much more than the document may need, in one piece."""
    monkeypatch.setattr("detmap.system.parallel.cores", lambda: cores)
    size = 1 << 22
    regions, begun = Regions(np.uint64, size), threading.Barrier(cores)

    def read():
        begun.wait()
        values, begin, _ = regions.take(1000)
        values[begin] = 7
        regions.keep(begin + 1)

    threads = [threading.Thread(target=read) for _ in range(cores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values, bases = regions.whole()
    assert len(bases) == 2
    assert values.size <= size + 2000 * cores
    assert np.count_nonzero(values == 7) >= cores


@pytest.mark.parametrize("name", ["keypoints", "segmentation"])
def test_a_record_may_have_more_doubtful_numbers_than_there_is_room_for(name, monkeypatch, tmp_path):
    """Numbers of over 19 digits are left to ``float()``, a list of them at a time, which grows for a record of many."""
    monkeypatch.setattr("detmap.shapes.reading._DOUBTS", 4)
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", 0)
    digits = "12345678901234567890"
    numbers = [f"{x}.{digits}" for x in (1, 2, 9, 3, 8, 30)]
    listed = "[" + ",".join(numbers) + "]"
    shape = listed if name == "keypoints" else f"[{listed}]"
    results = ",".join(f'{{"image_id": 1, "category_id": 1, "score": 0.5, "{name}": {shape}}}' for _ in range(3))
    (tmp_path / "results.json").write_text(f"[{results}]")
    kind = "keypoints" if name == "keypoints" else "segm"
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 9, 9], "area": 81, "iscrowd": 0}
    annotation |= {"keypoints": [1, 2, 2, 3, 4, 2], "num_keypoints": 2, "segmentation": [[1, 1, 9, 1, 9, 9]]}
    images, categories = [{"id": 1, "height": 48, "width": 64}], [{"id": 1, "name": "c"}]
    truth = detmap.read_coco({"images": images, "annotations": [annotation], "categories": categories}, iou_type=kind)
    read = detmap.read_coco_results(tmp_path / "results.json", truth, iou_type=kind).shape(kind).arrays()
    expected = detmap.read_coco_results(json.loads(f"[{results}]"), truth, iou_type=kind).shape(kind).arrays()
    assert all(np.array_equal(read[field], expected[field]) for field in expected if field != "text")
