"""Columns of every kind by hand: what is made of them, what lies around them, and what is refused."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from detmap.errors import InputError, OptionError
from detmap.shapes import boxes, boxes3d, keypoints, masks, moving, segments, tracks
from detmap.shapes.boxes import Boxes, check, seem_shares
from detmap.shapes.boxes3d import Boxes3D
from detmap.shapes.keypoints import Keypoints
from detmap.shapes.kinds import KINDS, Pairs, Surroundings
from detmap.shapes.moving import MovingBoxes
from detmap.shapes.reading import Regions, Rows, Scratch, Store, decimal
from detmap.shapes.rotated import Rotated
from detmap.shapes.segments import Segments


def said(error):
    return str(error.value)


# -------------------------------------------------------------------------------------------------------------- boxes

GOOD = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 0.0, 1.0]]


def checked(given, box_format="xywh", rule="error"):
    return check(np.array(given, np.float64).reshape(-1, 4), box_format, rule, "s")


def test_formats_of_boxes():
    for box_format, table, sizes, flat in (
        ("xywh", GOOD, True, 1),
        ("xyxy", [[1, 2, 3, 4], [5, 6, 5, 9], [5, 6, 7, 6], [5, 6, 5, 6]], False, 3),
        ("cxcywh", [[-0.5, 0, 3, 4], [5, 5.5, 0, 1]], True, 1),
    ):
        given = GOOD if box_format != "xyxy" else table
        made = checked(given, box_format)
        assert made.boxes.table.tolist() == table
        assert made.boxes.sizes is sizes
        assert made.kept is None
        assert made.notices == {"zero_sized_boxes": flat}
    empty = checked([])
    assert (len(empty.boxes), empty.within_unit, empty.notices) == (0, False, {"zero_sized_boxes": 0})
    with pytest.raises(OptionError, match=r"^box_format must be one of xywh, xyxy, cxcywh, not 'xy'"):
        checked(GOOD, "xy")
    with pytest.raises(OptionError, match=r"^invalid_boxes must be one of error, miss, drop, not 'no'"):
        checked(GOOD, rule="no")


MANY_BAD = [[0, 0, 1, 1], [0, 0, -1, 1], [0, 0, 1, -1], [np.nan, 0, 1, 1], [0, 0, np.inf, -1], [0, 0, 1, 0]]


def test_boxes_that_are_dropped_or_match_nothing():
    made = checked(MANY_BAD, rule="drop")
    assert made.kept.tolist() == [True, False, False, False, False, True]
    assert made.boxes.table.tolist() == [MANY_BAD[0], MANY_BAD[5]]
    assert made.notices == {"dropped_boxes": 4, "zero_sized_boxes": 1}
    infinite = checked([MANY_BAD[0], MANY_BAD[3]], rule="drop")
    assert (infinite.kept.tolist(), infinite.notices) == ([True, False], {"dropped_boxes": 1, "zero_sized_boxes": 0})
    negative = checked(MANY_BAD[:3], rule="drop")
    assert (negative.kept.tolist(), negative.notices) == (
        [True, False, False],
        {"dropped_boxes": 2, "zero_sized_boxes": 0},
    )
    missed = checked(MANY_BAD[:3], rule="miss")
    assert missed.kept is None
    assert missed.notices == {"missed_boxes": 2, "zero_sized_boxes": 0}
    assert missed.boxes.notices() == {"missed_boxes": 2, "zero_sized_boxes": 0}
    corners = checked([[0, 0, 1, 1], [2, 0, 1, 1], [0, 2, 1, 1], [1, 1, 1, 2]], "xyxy", "miss")
    assert corners.notices == {"missed_boxes": 2, "zero_sized_boxes": 1}
    assert corners.boxes.notices() == {"missed_boxes": 2, "zero_sized_boxes": 1}
    assert checked([[0, 0, 0, 0]], "xyxy", "drop").kept is None
    assert checked([[0, 0, 0, 0]], "xywh", "drop").kept is None


REMEDY = "invalid_boxes='miss' lets such boxes match nothing, 'drop' leaves them out (--invalid-boxes)"
FINITE = "leave out the record or repair the box; invalid_boxes='drop' (--invalid-boxes drop) leaves out all such"
SIZES = "is it x1, y1, x2, y2? COCO's files hold sizes; box_format='xyxy' (--box-format xyxy) "
SIZES += "where the format has a choice. "
CORNERS = "is it x, y, width, height? That is box_format='xywh' (--box-format xywh) where the format has a choice. "


@pytest.mark.parametrize(
    ("given", "box_format", "says"),
    [
        ([[0, 0, -1, 1]], "xywh", "record 0, field 'bbox': width and height must not be negative, in 1 of 1 boxes (got "
         f"[0.0, 0.0, -1.0, 1.0]); {SIZES}Otherwise {REMEDY}"),
        ([[0, 0, 1, 1], [0, 0, 1, -1], [0, 0, -1, 1]], "cxcywh", "record 1, field 'bbox': width and height must not be "
         f"negative, here and in 1 more of 3 boxes (got [0.0, 0.0, 1.0, -1.0]); {SIZES}Otherwise {REMEDY}"),
        ([[0, 5, 1, 1]], "xyxy", "record 0, field 'bbox': the far corner lies before the near one, in 1 of 1 boxes (got "
         f"[0.0, 5.0, 1.0, 1.0]); {CORNERS}Otherwise {REMEDY}"),
        ([[0, 0, 1, 1], [0, 0, np.nan, 1]], "xywh", "record 1, field 'bbox': a box must be four finite numbers (got "
         f"[0.0, 0.0, nan, 1.0]); {FINITE}"),
        ([[0, 0, 2e150, 1]], "xywh", "record 0, field 'bbox': a box must be four finite numbers of at most 1e+150 (got "
         f"[0.0, 0.0, 2e+150, 1.0]); {FINITE}"),
        ([[-2e150, 0, 1, 1]], "xyxy", "record 0, field 'bbox': a box must be four finite numbers of at most 1e+150 (got "
         f"[-2e+150, 0.0, 1.0, 1.0]); {FINITE}"),
    ],
)  # fmt: skip
def test_boxes_that_are_refused(given, box_format, says):
    for rule in ("error", "miss") if "finite" in says else ("error",):
        with pytest.raises(InputError) as caught:
            checked(given, box_format, rule)
        assert said(caught) == f"s: {says}"


def test_the_largest_coordinate():
    assert len(checked([[-1e150, 1e150, 1e150, 0]]).boxes) == 1
    column = Boxes(np.array([[-1e150, 0, 1e150, 1.0]]), sizes=False)
    assert np.isfinite(column.areas()).all()
    line = boxes.inverted(np.array([0.0, 0, -1, 1]), 1, 2, None, source="s")
    assert (
        str(line)
        == f"s: the far corner lies before the near one, in 1 of 2 boxes (got [0.0, 0.0, -1.0, 1.0]); {REMEDY}"
    )


def test_areas_of_boxes():
    table = np.array([[0, 0, 3, 4], [1, 1, -2, 3], [1, 1, 3, -1], [2, 2, 2, 2.0]])
    assert Boxes(table, sizes=True).areas().tolist() == [12, 0, 0, 4]
    assert Boxes(table, sizes=False).areas().tolist() == [12, 0, 0, 0]
    assert Boxes(table, sizes=False).areas(1.0).tolist() == [20, 0, 0, 1]
    assert Boxes(table, sizes=True).areas(1.0).tolist() == [12, 0, 0, 4]
    assert Boxes(table, sizes=True).take(np.array([3, 0])).table.tolist() == [table[3].tolist(), table[0].tolist()]


@pytest.mark.parametrize(
    ("given", "shares"),
    [
        ([], False), ([[0, 0, 1, 1]], False), ([[0.1, 0, 1, 1]], True), ([[-0.5, 0, 1.5, 1]], True),
        ([[-0.51, 0, 1, 0.5]], False), ([[0, 0, 1.51, 0.5]], False),
        ([[0.5] * 4] * 9 + [[9] * 4], True), ([[0.5] * 4] * 8 + [[9.5] * 4] * 2, False),
        ([[1.0] * 4] * 9 + [[9.5] * 4], False), ([[1.0] * 4] * 8 + [[0.5] * 4] + [[9] * 4], True),
    ],
)  # fmt: skip
def test_boxes_that_seem_to_be_shares(given, shares):
    assert seem_shares(np.array(given, float).reshape(-1, 4)) is shares


def test_every_second_box_of_many_is_looked_at():
    many = np.full((1024, 4), 0.5)
    many[1::2] = 9
    assert seem_shares(many)
    assert not seem_shares(many[:1023])
    assert not seem_shares(np.concatenate([many, many]))
    assert boxes.extremes(np.array([3, -1, 2])) == (-1, 3)
    assert np.isnan(boxes.extremes(np.array([3, np.nan]))).all()


# --------------------------------------------------------------------------------------------------- segments of time


def pairs(*rows, crowd=(), lowest=0.0):
    left, right = np.ascontiguousarray(np.array(rows).T)
    return Pairs(left, right, np.array([n in crowd for n in range(len(rows))]), lowest)


def test_segments():
    found, true = Segments.of([[0, 4], [2, 2], [5, 9]]), Segments.of([[2, 6], [2, 2], [4, 5.0]])
    every = pairs(*((d, g) for d in range(3) for g in range(3)), crowd=(0, 2, 6))
    out = np.empty(9)
    segments._refine(found, true, every, out)
    assert out.tolist() == [2 / 4, 0.0, 0.0, 0.0, 1.0, 0.0, 1 / 4, 0.0, 0.0]
    segments._refine_span(found, true, every, out)
    assert out.tolist() == [2 / 4, 0.0, 0.0, 0.0, 0.0, 0.0, 1 / 4, 0.0, 0.0]
    plain = pairs((0, 0), (2, 0))
    for refine in (segments._refine, segments._refine_span):
        refine(found, true, plain, out[:2])
        assert out[:2].tolist() == [2 / 6, 1 / 7]
    assert found.areas().tolist() == [4, 0, 4]
    assert found.bounds().table.tolist() == [[0, 0, 4, 1], [2, 0, 2, 1], [5, 0, 9, 1]]
    assert found.bounds().sizes is False
    assert found.take(np.array([2, 0])).ends.tolist() == [[5, 9], [0, 4]]
    assert segments._join([found, true]).ends.tolist() == [*found.ends.tolist(), *true.ends.tolist()]
    assert len(segments._join([])) == len(Segments.of([])) == 0
    assert segments._given(found, "s") is found


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([1, 2], "s: field 'segments': shape (2,) where n x 2 (start, end) was expected"),
        ([[1, 2, 3]], "s: field 'segments': shape (1, 3) where n x 2 (start, end) was expected"),
        (5, "s: field 'segments': shape () where n x 2 (start, end) was expected"),
        ([[0, 1], [2, 1]], "s: record 1, field 'segments': the end lies before the start (got [2.0, 1.0])"),
        ([[0, np.inf]], "s: record 0, field 'segments': start and end must be finite numbers of at most 1e+150 (got "
         "[0.0, inf])"),
        ([[2e150, 1]], "s: record 0, field 'segments': start and end must be finite numbers of at most 1e+150 (got "
         "[2e+150, 1.0])"),
    ],
)  # fmt: skip
def test_what_is_no_segment(given, says):
    with pytest.raises(InputError) as caught:
        Segments.of(given, "s")
    assert said(caught) == says
    assert Segments.of([[-1e150, 1e150]]).areas().tolist() == [2e150]


# ------------------------------------------------------------------------------------------------------------- tracks

SQUARE = {"size": [4, 5], "counts": [5, 2, 2, 2, 9]}  # 2 x 2 pixels at (1, 1)
BAR = {"size": [4, 5], "counts": [8, 3, 9]}  # 3 pixels at (2, 0)


def test_tracks():
    column = tracks._given([[SQUARE, None, BAR], [None], [], [BAR]], "s")
    assert column.spans.tolist() == [[0, 2], [2, 2], [2, 2], [2, 3]]
    assert column.frames.tolist() == [0, 2, 0]
    assert column.lengths.tolist() == [3, 1, 0, 1]
    assert column.areas().tolist() == [3.5, 0, 0, 3]
    assert column.bounds().table.tolist() == [[1, 0, 2, 3], [0, 0, 0, 0], [0, 0, 0, 0], [2, 0, 1, 3]]
    arrays = column.take(np.array([3, 0])).arrays()
    assert {name: value.tolist() for name, value in arrays.items()} == {
        "ends": [8, 11, 20, 5, 7, 9, 11, 20, 8, 11, 20], "stops": [3, 8, 11], "sizes": [[4, 5]] * 3,
        "frames": [0, 0, 2], "counts": [1, 2], "lengths": [1, 3],
    }  # fmt: skip
    twice = tracks._join([column, column])
    assert twice.spans.tolist() == [[0, 2], [2, 2], [2, 2], [2, 3], [3, 5], [5, 5], [5, 5], [5, 6]]
    assert twice.frames.tolist() == [0, 2, 0] * 2
    assert twice.lengths.tolist() == [3, 1, 0, 1] * 2
    assert len(tracks._join([])) == 0
    again = tracks._given(column, "s")
    assert again is column
    for bad in ([5], [[5]], ["ab"], [[SQUARE], [None, "x"]]):
        with pytest.raises(InputError) as caught:
            tracks._given(bad, "s")
        says = "field 'tracks': a track must be a list with a run-length code, or None, for each frame"
        assert said(caught) == f"s: record {len(bad) - 1}, {says}"


# ----------------------------------------------------------------------------------------------------- boxes in space


def test_boxes_in_space():
    rows = [[2, 4, 6, 10, 0, 20, 0], [2, -4, -6, 10, 1, 20, 0]]
    column = Boxes3D.of(rows)
    assert column.ground.corners.tolist() == [[13, 22, 13, 18, 7, 18, 7, 22], [7, 18, 7, 22, 13, 22, 13, 18]]
    assert column.areas().tolist() == [24, 24]
    assert column.bounds().table.tolist() == [[7, 18, 13, 22]] * 2
    assert np.isnan(column.angles("bbox")).all()
    seen = Boxes3D.of([[1, 1, 1, 0, 0, 0, 0.5, 0.25]])
    assert (seen.angles("bbox").tolist(), seen.angles("bev").tolist()) == ([0.25], [0.5])
    angles = boxes3d.seen(np.array([0.5, -1]))["box3d"]
    assert angles.table.tolist() == [[0] * 7 + [0.5], [0] * 7 + [-1]]
    out = np.empty(4)
    every = pairs((0, 0), (0, 1), (1, 0), (1, 1), crowd=(1,))
    boxes3d._volume(column, column, every, out)
    # Both stand upwards from y = 0 and y = 1, two metres high, and share one metre.
    assert out.tolist() == [1, 1 / 2, 1 / 3, 1]
    boxes3d._ground(column, column, every, out)
    assert out.tolist() == [1, 1, 1, 1]
    above = Boxes3D.of([[2, 4, 6, 10, -2, 20, 0]])
    boxes3d._volume(column, above, pairs((0, 0)), out[:1])
    assert out[0] == 0
    absent = Boxes3D.of([[-1, -1, -1, -1000, -1000, -1000, -10], [0, 0, 0, 0, 0, 0, 0], [0, 0.1, 0, 0, 0, 0, 0]])
    assert boxes3d._absent(absent)[0].tolist() == [True, True, False]
    assert boxes3d._absent(absent)[1] is None
    joined = boxes3d._join([seen, column])
    assert joined.table[:, 3].tolist() == [0, 10, 10]
    assert len(boxes3d._join([])) == len(Boxes3D.of([])) == 0
    (drawing, _) = boxes3d._draw(column)
    assert drawing.outlines[0].tolist() == [[13, 22], [13, 18], [7, 18], [7, 22]]
    assert drawing.points.shape == (0, 2)


BOX3D = [2.0, 4.0, 6.0, 0.0, 0.0, 0.0, 0.0]
SHAPED3D = "n x 7 (h, w, l, x, y, z, rotation) or n x 8 (and alpha) was expected"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([1, 2], f"s: field 'boxes3d': shape (2,) where {SHAPED3D}"),
        ([[1] * 6], f"s: field 'boxes3d': shape (1, 6) where {SHAPED3D}"),
        ([[1] * 9], f"s: field 'boxes3d': shape (1, 9) where {SHAPED3D}"),
        (
            [BOX3D, [2, -4, *BOX3D[2:]]],
            "s: record 1, field 'boxes3d': width and length must not be negative, unless both are",
        ),
        (
            [[2, 4, -6, *BOX3D[3:]]],
            "s: record 0, field 'boxes3d': width and length must not be negative, unless both are",
        ),
        (
            [[*BOX3D[:6], np.nan]],
            "s: record 0, field 'boxes3d': a box in space must be finite numbers of at most 1e+150",
        ),
        (
            [[*BOX3D[:6], 2e150]],
            "s: record 0, field 'boxes3d': a box in space must be finite numbers of at most 1e+150",
        ),
        ([[*BOX3D, np.inf]], "s: record 0, field 'boxes3d': a box in space must be finite numbers of at most 1e+150"),
    ],
)
def test_what_is_no_box_in_space(given, says):
    with pytest.raises(InputError) as caught:
        Boxes3D.of(given, "s")
    assert said(caught).partition(" (got ")[0] == says.partition(" (got ")[0]
    assert np.isnan(Boxes3D.of([[*BOX3D, np.nan]]).table[0, 7])


# ------------------------------------------------------------------------------------------------------- moving boxes

AHEAD, LEFT, BACK, HALF_LEFT = (
    [1, 0, 0, 0],
    [0.5**0.5, 0, 0, 0.5**0.5],
    [0, 0, 0, 1],
    [0.9238795325112867, 0, 0, 0.3826834323650898],
)


def moved(centres, sizes, turns, **more):
    return MovingBoxes.from_arrays(centres, sizes, turns, **more)


def test_moving_boxes():
    column = moved([[1, 2, 3], [4, 6, 0]], [[6, 8, 1], [2, 4, 1]], [AHEAD, [0, 0, 0, 7]])
    assert column.areas().tolist() == [48, 8]
    reach = np.hypot(2, 4) / 2
    assert column.bounds().table.tolist() == [[-4, -3, 6, 7], [4 - reach, 6 - reach, 4 + reach, 6 + reach]]
    assert column.yaws().tolist() == [0, np.pi]
    assert np.isnan(column.velocities).all()
    assert column.attributes.tolist() == [-1, -1]
    assert column.unseen.tolist() == [False, False]
    first, second = moving._draw(column)
    assert first.outlines[0].tolist() == [[5, 5], [5, -1], [-3, -1], [-3, 5]]
    assert second.outlines[0] == pytest.approx(np.array([[2, 5], [2, 7], [6, 7], [6, 5]]))
    turned = moved([[0, 0, 0]] * 4, [[1, 1, 1]] * 4, [AHEAD, LEFT, BACK, HALF_LEFT])
    assert turned.yaws() == pytest.approx([0, np.pi / 2, np.pi, np.pi / 4])
    out = np.empty(3)
    moving._refine(column, column, pairs((0, 0), (0, 1), (1, 0)), out)
    assert out.tolist() == [0, -5, -5]
    near, same = moving._reach(column, column, -5.0)
    assert (near.table[:, 2:] - near.table[:, :2] >= 5).all()
    assert (near.table[:, 2:] - near.table[:, :2] <= 5.001).all()
    assert near.table.tolist() == same.table.tolist()
    assert (near.table[0, :2] <= [-1.5, -0.5]).all()
    none = moving._reach(column, column, 3.0)[0].table
    assert (none[:, 2:] - none[:, :2] < 1e-4).all()
    given = np.concatenate([column.centres, column.sizes, column.rotations, np.ones((2, 2))], axis=1)
    taken = moving._join([moving._given(given, "s"), moving._given(column, "s")])
    assert taken.centres.tolist() == column.centres.tolist() * 2
    assert taken.velocities[:2].tolist() == [[1, 1], [1, 1]]
    assert {name: value.dtype for name, value in taken.arrays().items()} == {
        name: value.dtype for name, value in column.arrays().items()
    }
    assert len(moving._given([], "s")) == len(moving._join([])) == 0


def test_errors_of_moving_boxes():
    true = moved(
        [[0, 0, 0]] * 5, [[2, 4, 1]] * 5, [AHEAD, AHEAD, BACK, HALF_LEFT, AHEAD],
        velocities=[[1, 1], [0, 0], [np.nan, 0], [3, 4], [0, 0]], attributes=[2, -1, 3, 3, 0],
    )  # fmt: skip
    found = moved(
        [[3, 4, 9], [0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]], [[2, 4, 1], [4, 2, 1], [2, 4, 2], [1, 2, 1], [2, 4, 1]],
        [LEFT, BACK, AHEAD, AHEAD, LEFT], velocities=[[1, 1], [3, 4], [0, 0], [0, 0], [0, 1]],
        attributes=[2, 2, 3, 1, -1],
    )  # fmt: skip
    rows = np.arange(5)
    made = moving._errors(found, true, rows, rows, np.array([False, True, False, False, True]))
    assert made[:, 0].tolist() == [5, 0, 0, 1, 0]
    assert made[:, 1].tolist() == [0, 1 - 4 / 12, 1 - 8 / 16, 1 - 2 / 8, 0]
    assert made[:, 2] == pytest.approx([np.pi / 2, 0, np.pi, np.pi / 4, np.pi / 2])
    assert made[:, 3].tolist()[:2] + made[:, 3].tolist()[3:] == [0, 5, 5, 1]
    assert np.isnan(made[2, 3])
    assert np.isnan(made[1, 4])
    assert made[[0, 2, 3, 4], 4].tolist() == [0, 0, 1, 1]
    crossed = moving._errors(found, true, np.array([1]), np.array([3]), np.array([False]))
    assert crossed[0, 2] == pytest.approx(np.pi * 3 / 4)


class Rules:
    """As much of a protocol as decides what is left out."""

    def __init__(self, left_out=(), class_ranges=()):
        self.left_out, self.class_ranges = left_out, class_ranges


def test_moving_boxes_that_are_left_out():
    column = moved(
        [[3, 4, 0], [3, 4, 0], [0, 1, 0], [0, 1, 5], [103, 0, 0], [3, 4, 0]], [[1, 1, 1]] * 6, [AHEAD] * 6,
        unseen=[0, 0, 0, 0, 0, 1],
    )  # fmt: skip
    images = np.array([0, 0, 0, 0, 1, 2], np.int32)
    classes = np.array(["car", "bicycle", "bicycle", "bicycle", "car", "bus"])
    around = Surroundings(
        places=np.array([[0, 0], [100, 0], [np.nan, np.nan]]), rack_images=np.array([0, 1]),
        rack_centres=np.array([[0.0, 0, 0], [3, 4, 0]]), rack_sizes=np.array([[4.0, 2, 2], [9, 9, 9]]),
        rack_rotations=np.array([AHEAD, AHEAD], float),
    )  # fmt: skip

    def left(*rules, surroundings=around):
        return moving._left_out(column, images, classes, surroundings, Rules(*rules)).tolist()

    assert left() == [False] * 6
    assert left(("unseen",)) == [False] * 5 + [True]
    assert left(("unseen",), surroundings=None) == [False] * 5 + [True]
    assert left(("racked",), surroundings=None) == [False] * 6
    # The rack is 4 metres wide along y and 2 along x; the bicycle at (0, 1, 5) is above it.
    assert left(("racked",)) == [False, False, True, False, False, False]
    assert left((), (("car", 5.0), ("bus", 1.0))) == [True, False, False, False, False, False]
    assert left((), (("car", 5.1), ("bicycle", 1.0))) == [False, True, True, True, False, False]
    assert left((), (("car", 3.0),)) == [True, False, False, False, True, False]


def test_points_in_a_rack_that_is_turned():
    half = np.sqrt(0.5)
    for rotation, inside, outside in (
        (AHEAD, [(0.5, 0, 0), (0, 1, 0), (0, -1, 1.5)], [(0.51, 0, 0), (0, 1.01, 0), (0, 0, 1.51)]),
        ([half, 0, 0, half], [(0.99, 0, 0), (0, 0.49, 0)], [(0, 0.51, 0), (1.01, 0, 0)]),
        ([half, half, 0, 0], [(0, 1.49, 0), (0.5, 0, 0.99)], [(0, 1.51, 0), (0, 0, 1.01)]),
        ([half, 0, half, 0], [(1.49, 0, 0.49), (0, 0.99, 0)], [(0, 0, 0.51), (1.51, 0, 0), (0, 1.01, 0)]),
    ):
        around = Surroundings(
            places=np.zeros((1, 2)), rack_images=np.array([0]), rack_centres=np.array([[7.0, 8, 9]]),
            rack_sizes=np.array([[2.0, 1, 3]]), rack_rotations=np.array([rotation]),
        )  # fmt: skip
        for point in inside:
            assert moving._in_rack(np.array([7.0, 8, 9]) + point, around, 0)
            assert not moving._in_rack(np.array([7.0, 8, 9]) + point, around, 1)
        for point in outside:
            assert not moving._in_rack(np.array([7.0, 8, 9]) + point, around, 0)


MOVING = {"centres": [[0, 0, 0]] * 2, "sizes": [[1, 1, 1]] * 2, "rotations": [AHEAD] * 2}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"centres": [[0, 0]] * 2}, "s: field 'translation': shape (2, 2) where n x 3 was expected"),
        ({"centres": [0, 0, 0]}, "s: field 'translation': shape (3,) where n x 3 was expected"),
        ({"sizes": [[1, 1, 1]]}, "s: field 'size': 1 rows for 2 boxes"),
        ({"rotations": [AHEAD] * 3}, "s: field 'rotation': 3 rows for 2 boxes"),
        ({"velocities": [[0, 0]]}, "s: field 'velocity': 1 rows for 2 boxes"),
        ({"attributes": [1]}, "s: field 'attributes, unseen': must have one value for each of 2 boxes"),
        ({"unseen": [[True, True]]}, "s: field 'attributes, unseen': must have one value for each of 2 boxes"),
        ({"sizes": [[1, 1, 1], [1, 0, 1]]}, "s: record 1, field 'size': width, length and height must be above 0 (got "
         "[1.0, 0.0, 1.0])"),
        ({"rotations": [AHEAD, [0, 0, 0, 1e-101]]}, "s: record 1, field 'rotation': a quaternion must have a length (got "
         "[0.0, 0.0, 0.0, 1e-101])"),
        ({"centres": [[0, 0, 0], [0, 2e150, 0]]}, "s: record 1, field 'translation': must be finite numbers of at most "
         "1e+150 (got [0.0, 2e+150, 0.0])"),
        ({"centres": [[0, 0, 0], [0, np.nan, 0]]}, "s: record 1, field 'translation': must be finite numbers of at most "
         "1e+150 (got [0.0, nan, 0.0])"),
        ({"velocities": [[np.nan, np.inf], [0, 0]]}, "s: record 0, field 'velocity': must be finite numbers of at most "
         "1e+150 (got [nan, inf])"),
    ],
)  # fmt: skip
def test_what_is_no_moving_box(change, says):
    with pytest.raises(InputError) as caught:
        MovingBoxes.from_arrays(**{**MOVING, **change}, source="s")
    assert said(caught) == says


def test_rows_of_moving_boxes_have_twelve_numbers():
    for bad in (np.zeros((2, 11)), np.zeros(12)):
        with pytest.raises(InputError) as caught:
            moving._given(bad, "s")
        says = f"shape {bad.shape} where n x 12 (translation, size, rotation w x y z, velocity) was expected"
        assert said(caught) == f"s: field 'moving': {says}"
    assert len(MovingBoxes.from_arrays(**{**MOVING, "rotations": [[0, 0, 0, 1e-100]] * 2})) == 2


# -------------------------------------------------------------------------------------------------------------- poses


def poses(*rows, labelled=None):
    made = keypoints.given(np.array(rows, np.float64), "s")
    return made if labelled is None else Keypoints.of(made.poses, labelled)


ONE, TWO = [1, 2, 2, 5, 9, 0, 3, 3, 1], [0, 0, 0, 4, 0, 0, 0, 4, 0]


def test_poses():
    column = poses(ONE, TWO)
    assert column.labelled.tolist() == [2, 0]
    assert column.boxes.tolist() == [[1, 2, 4, 7], [0, 0, 4, 4]]
    assert column.areas().tolist() == [28, 16]
    assert column.sizes().tolist() == [9, 9]
    assert keypoints.records(column) == [
        {"keypoints": ONE, "num_keypoints": 2}, {"keypoints": TWO, "num_keypoints": 0}
    ]  # fmt: skip
    assert keypoints._ignored(column).tolist() == [False, True]
    drawn = keypoints._draw(column)
    assert [one.points.tolist() for one in drawn] == [[[1, 2], [3, 3]], [[0, 0], [4, 0], [0, 4]]]
    points = keypoints._points(column.take(np.array([1, 0])))
    assert points.counts.tolist() == [3, 3]
    assert points.places.tolist() == [[0, 0], [4, 0], [0, 4], [1, 2], [5, 9], [3, 3]]
    assert points.flags.tolist() == [0, 0, 0, 2, 0, 1]
    assert points.labelled.tolist() == [0, 2]
    arrays = column.take(np.array([1, 0, 1])).arrays()
    assert arrays["values"].tolist() == TWO + ONE + TWO
    assert arrays["starts"].tolist() == [0, 9, 18, 27]
    assert arrays["labelled"].tolist() == [0, 2, 0]


def test_parts_of_poses_and_poses_of_parts():
    column = poses(ONE, TWO, labelled=[7, 8])
    some = keypoints.part(column, (1, 3), True, "s")
    assert [one["keypoints"] for one in keypoints.records(some)] == [ONE[3:], TWO[3:]]
    assert some.labelled.tolist() == [1, 0]
    assert keypoints.part(column, (0, 1), False, "s").labelled.tolist() == [7, 8]
    assert keypoints.part(column, None, True, "s").labelled.tolist() == [2, 0]
    assert keypoints.part(column, None, False, "s").labelled.tolist() == [7, 8]
    assert len(keypoints.part(column, (0, 3), False, "s")) == 2
    with pytest.raises(InputError) as caught:
        keypoints.part(column, (2, 4), False, "s")
    says = "s: record 0, field 'keypoints': 3 keypoints where points 3 to 4 are compared; give all points of the skeleton, "
    assert said(caught) == says + "or choose a protocol that compares other ones"
    both = keypoints.extended([column, poses(ONE[:3], TWO[3:6])])
    assert [one["keypoints"] for one in keypoints.records(both)] == [ONE + ONE[:3], TWO + TWO[3:6]]
    assert both.labelled.tolist() == [7, 8]
    turned = keypoints.extended([column.take(np.array([1, 0])), poses(ONE[:3], TWO[3:6])])
    assert [one["keypoints"] for one in keypoints.records(turned)] == [TWO + ONE[:3], ONE + TWO[3:6]]
    joined = keypoints.join([column.take(np.array([1])), poses(ONE[:3]), column])
    assert [one["keypoints"] for one in keypoints.records(joined)] == [TWO, ONE[:3], ONE, TWO]
    assert joined.labelled.tolist() == [8, 1, 7, 8]
    assert len(keypoints.join([])) == 0


def test_records_of_whole_bodies():
    row = np.arange(399.0)
    (made,) = keypoints.whole_body_records(poses(row))
    assert list(made) == ["keypoints", "num_keypoints", "foot_kpts", "face_kpts", "lefthand_kpts", "righthand_kpts"]
    lists = [made[name] for name in list(made) if name != "num_keypoints"]
    assert [len(one) // 3 for one in lists] == [17, 6, 68, 21, 21]
    assert [value for one in lists for value in one] == row.tolist()
    (short,) = keypoints.whole_body_records(poses(row[:51]))
    assert list(short) == ["keypoints", "num_keypoints"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (5, "s: field 'keypoints': shape () where n x k x 3 was expected: x, y and visibility of each point"),
        ([1, 2, 3], "s: field 'keypoints': shape (3,) where n x k x 3 was expected: x, y and visibility of each point"),
        (
            [[1, 2]],
            "s: field 'keypoints': shape (1, 2) where n x k x 3 was expected: x, y and visibility of each point",
        ),
        (
            [[[1, 2]]],
            "s: field 'keypoints': shape (1, 1, 2) where n x k x 3 was expected: x, y and visibility of each point",
        ),
        ([[1, 2, 3], [1, np.nan, 3]], "s: record 1, field 'keypoints': a keypoint must be finite numbers"),
        ([[1, 2, 3], [1, 2e150, 3]], "s: record 1, field 'keypoints': a keypoint must be finite numbers"),
    ],
)
def test_what_is_no_pose(given, says):
    with pytest.raises(InputError) as caught:
        keypoints.given(given, "s")
    assert said(caught) == says


def test_shapes_of_arrays_of_poses():
    for given, count, size in (
        (np.zeros((2, 3, 3)), 2, 9), (np.zeros((2, 6)), 2, 6), ([], 0, 0), (np.zeros((0, 17, 3)), 0, 0),
        (np.zeros((0, 5)), 0, 0), (np.full((1, 3), 1e150), 1, 3),
    ):  # fmt: skip
        made = keypoints.given(given, "s")
        assert len(made) == count
        assert made.sizes().tolist() == [size] * count


# --------------------------------------------------------------------------------------------------- masks and memory


def test_columns_of_masks():
    column = masks.given([SQUARE, BAR, {"size": [4, 5], "counts": [20]}], "s")
    assert column.areas().tolist() == [4, 3, 0]
    assert column.bounds().table.tolist() == [[1, 1, 2, 2], [2, 0, 1, 3], [0, 0, 0, 0]]
    assert column.sizes().tolist() == [[4, 5]] * 3
    arrays = {name: value.tolist() for name, value in column.take(np.array([2, 0])).arrays().items()}
    assert arrays == {"ends": [20, 5, 7, 9, 11, 20], "stops": [1, 6], "sizes": [[4, 5]] * 2}
    joined = masks.join([column.take(np.array([1])), column])
    assert joined.areas().tolist() == [3, 4, 3, 0]
    assert masks.records(joined) == [masks.records(column)[row] for row in (1, 0, 1, 2)]
    assert len(masks.join([])) == 0
    assert masks._absent(column)[0].tolist() == [False, False, True]
    bitmap = np.zeros((4, 5), bool)
    bitmap[1:3, 1:3] = True
    for given in (bitmap[None], [bitmap], [bitmap.astype(np.uint8)], column.take(np.array([0])).masks()):
        assert masks.records(masks.given(given, "s")) == masks.records(column)[:1]
    assert masks.given(column, "s") is column
    drawing = masks._draw(column)
    assert [[one.tolist() for one in each.outlines] for each in drawing] == [
        [[[3, 1], [3, 3], [1, 3], [1, 1]]], [[[3, 0], [3, 3], [2, 3], [2, 0]]], []
    ]  # fmt: skip
    given = np.array([[4, 5], [0, 5], [4, 0], [5, 4], [4, 6], [3, 5]])
    assert masks._differing(given, np.tile([4, 5], (6, 1))) == 3
    assert masks._corners(np.array([[1, 2, 3, 4.0]])).tolist() == [[1, 2], [1, 6], [4, 6], [4, 2]]


@pytest.mark.parametrize(
    ("images", "count", "scattered"),
    [
        ([0, 0, 1, 1, 2, 2], 3, False),
        ([0, 1, 0, 1, 0, 1], 2, True),
        ([0, 1, 0, 1], 4, False),
        ([0] * 9, 1, False),
        ([0, 1, 0] + [0] * 5, 1, False),
        ([0, 1, 0, 1] + [1] * 4, 1, True),
        ([0, 1, 0, 1] + [1] * 12, 1, False),
    ],
)
def test_detections_that_are_scattered_in_a_file(images, count, scattered):
    assert masks._scattered(np.array(images, np.int32), count) is scattered


def test_numbers_that_kernels_leave():
    for text, number in ((b"1.5", 1.5), (b"-.5e3", -500.0), (b"+7.", 7.0), (b"1e400", np.inf)):
        assert decimal(text) == number
    for text in (b"inf", b"nan", b"1_0", b" 1", b"1.5.", b"e5", b"", b"--1"):
        assert decimal(text) == np.inf


def test_memory_of_threads():
    scratch = Scratch()
    first = scratch.take(5, np.int64)
    assert first.size == 5
    assert scratch.take(3, np.int64).base is first.base is not None or scratch.take(3, np.int64).size == 3
    assert np.shares_memory(scratch.take(5, np.int64), first)
    assert not np.shares_memory(scratch.take(6, np.int64), first)
    assert scratch.take(2, np.uint8).dtype == np.uint8
    store = Store(np.int64, 100)
    parts = []
    for count, read in ((10, 20), (0, 0), (500, 30), (7, 50)):
        chunk, begin, number = store.take(count, read)
        chunk[begin : begin + count] = np.arange(count) + 1000 * len(parts)
        parts.append((count, begin, number))
    whole, bases = store.whole()
    for n, (count, begin, number) in enumerate(parts):
        at = int(bases[number]) + begin
        assert whole[at : at + count].tolist() == (np.arange(count) + 1000 * n).tolist()
    assert whole.size == 517
    assert Store(np.int64, 5).whole()[0].tolist() == []


def test_regions_of_threads():
    regions, seen = Regions(np.int64, 64), {}

    def fill(name):
        for n in range(3):
            chunk, begin, number = regions.take(4)
            chunk[begin : begin + 3] = name * 10 + n
            regions.keep(begin + 3)
            seen.setdefault(name, []).append((number, begin))

    for name in range(3):
        thread = threading.Thread(target=fill, args=(name,))
        thread.start()
        thread.join()
    whole, bases = regions.whole()
    for name, places in seen.items():
        for n, (number, begin) in enumerate(places):
            at = int(bases[number]) + begin
            assert whole[at : at + 3].tolist() == [name * 10 + n] * 3
    document = np.arange(40)
    within = Regions(np.int64, 16, document)
    chunk, begin, number = within.take(4)
    assert (chunk is document, begin, number) == (True, 16, 0)
    assert Regions(np.int64, 0).take(0)[1:] == (0, 0)


def test_rows_of_parts():
    kinds = {"a": ((), np.int64), "b": ((2,), np.float64)}

    def filled(made, begin):
        made["a"][:] = np.arange(len(made["a"])) + begin
        made["b"][:] = made["a"][:, None] * [1, 10]
        return made

    rows = Rows(kinds)
    parts = [(0, filled(rows.at(0, 2, 5), 0)), (2, filled(rows.at(2, 3, 5), 2))]
    whole = rows.joined(parts)
    assert whole["a"].tolist() == [0, 1, 2, 3, 4]
    assert whole["b"].tolist() == [[n, 10 * n] for n in range(5)]
    assert np.shares_memory(whole["a"], parts[0][1]["a"])
    own = [*parts, (-1, filled(rows.apart(2), 5))]
    assert rows.joined(own)["a"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert rows.joined(own[::-1])["a"].tolist() == [5, 6, 2, 3, 4, 0, 1]
    assert rows.joined([])["a"].tolist() == []
    assert rows.joined(parts[:1])["b"].tolist() == [[0, 0], [1, 10]]


# -------------------------------------------------------------------------------------------------------------- words


def test_words_of_kinds():
    videos, samples = KINDS["temporal"], KINDS["centre-distance"]
    sentence = "An image, images and an image: 1 image (--image-set), an image's, image.png, Images."
    assert KINDS["bbox"].worded(sentence) == sentence
    assert videos.worded(sentence) == (
        "A video, videos and a video: 1 video (--image-set), a video's, image.png, Videos."
    )
    assert samples.worded("An image of 2 images.") == "A sample of 2 samples."
    assert KINDS["bbox"].a_scene == "an image"
    assert (videos.a_scene, samples.a_scene) == ("a video", "a sample")
    assert KINDS["bbox"].at(0.5) == "IoU 0.5"
    assert KINDS["bbox"].at(0.5, 0.95) == "IoU 0.5 to 0.95"
    assert videos.at(0.5) == "IoU 0.5"
    assert samples.at(2) == "centre-distance 2 m"
    assert samples.at(0.5, 4) == "centre-distance 0.5 to 4 m"
    assert KINDS["probiou"].column_name == "rotated"
    assert KINDS["rotated"].column_name == "rotated"


def test_the_largest_coordinates_of_every_kind():
    """1e150 is the last that is accepted."""
    most = 1e150
    assert len(Rotated.from_corners([[most, -most] * 4])) == 1
    assert len(Rotated.from_angles([[most, -most, most, 0, most]])) == 1
    assert len(Boxes3D.of([[most, 1, 1, 0, -most, 0, most]])) == 1
    assert len(moved([[most, -most, 0]], [[most] * 3], [[most, 0, 0, 0]], velocities=[[most, -most]])) == 1
    assert len(Segments.of([[-most, most]])) == 1
    assert len(poses([most, -most, most])) == 1
    assert boxes.finite(np.array([[most, -most, most, most], [np.nextafter(most, np.inf), 0, 0, 0]])).tolist() == [
        True,
        False,
    ]


def test_the_largest_image_of_masks():
    word = 2**32 - 1
    for size in ([1, word], [word, 1], [65535, 65537]):
        made = masks.given([{"size": size, "counts": [word]}], "s")
        assert made.sizes().tolist() == [size]
    for size in ([1, word + 1], [word + 1, 1], [65536, 65536], [2, word], [0, 5], [5, -1], [5], [5, 5, 5], 5, [1.0, 2]):
        with pytest.raises(InputError) as caught:
            masks.given([{"size": size, "counts": [5]}], "s")
        problem = "size must be two positive integers, height and width, of less than 2**32 pixels"
        assert said(caught) == f"s: record 0, field 'size': {problem} (got {size})"
    for counts, value in (([-1, 2], "-1"), ([0, word + 1], str(word + 1))):
        with pytest.raises(InputError) as caught:
            masks.given([{"size": [1, 5], "counts": counts}], "s")
        assert said(caught) == f"s: record 0, field 'counts': a run is negative or too long (got {value})"
