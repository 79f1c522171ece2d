"""Rotated boxes: overlaps against exact fractions, laws of geometry, bounds, and what tables take."""

from __future__ import annotations

import dataclasses
import math
import pickle

import legs
import naive
import naive_rotated as twin
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_result, examples, same_bits

import detmap
from detmap.detection.arrangement import Arrangement
from detmap.detection.protocols import PRESETS, resolve
from detmap.kernels import overlap, readonly
from detmap.kernels.rotated import LEAST_AREA
from detmap.shapes import Pairs, find
from detmap.shapes.rotated import Rotated

KINDS = ("rotated", "probiou")
seeds = st.integers(0, 2**32 - 1)
many = settings(deadline=None, max_examples=examples(200))


def overlaps(one, other, kind="rotated", crowd=False, lowest=0.0):
    """The overlap of each pair of rows."""
    count = len(one)
    tables = [
        made.from_arrays(image_ids=np.zeros(count, int), category_ids=np.zeros(count, int), rotated=rows, **more)
        for made, rows, more in (
            (detmap.Detections, one, {"scores": np.zeros(count)}),
            (detmap.GroundTruth, other, {}),
        )
    ]
    found = find(kind)
    sides = [table.shape(kind) for table in tables]
    if found.prepare is not None:
        *sides, _ = found.prepare(*tables, resolve("coco", iou_type=kind))
    rows, out = readonly(np.arange(count), np.int64), np.full(count, 7.0)
    found.refine(*sides, Pairs(rows, rows, readonly(np.full(count, crowd), np.bool_), lowest), out)
    return out


# ------------------------------------------------------------------------------------------------------------- exactness


def test_overlaps_are_the_floats_nearest_to_the_exact_ones():
    """Far from the origin, thin, tiny, touching, concave and crossing outlines too; 100,000 pairs with DETMAP_TESTS=full."""
    count = 100_000 if legs.FULL and legs.LEG == "compiled" else examples(2_000)
    one, other = twin.pairs(5, count)
    for crowd in (False, True):
        made = overlaps(one, other, crowd=crowd)
        part = slice(None) if not crowd else slice(0, count // 10)
        pairs = zip(one[part].tolist(), other[part].tolist(), made[part].tolist(), strict=True)
        wrong = [
            (a, b, value)
            for a, b, value in pairs
            if abs(float(twin.exact_overlap(a, b, crowd)) - value) > math.ulp(value) / 2
        ]
        assert wrong == []


def test_equal_boxes_overlap_by_exactly_1_and_touching_ones_by_exactly_0():
    rng = np.random.default_rng(3)
    one = np.array([twin.rectangle(*rng.uniform(1, 1e6, 4), angle) for angle in rng.uniform(-9, 9, examples(2000))])
    turned = np.roll(one.reshape(-1, 4, 2), 1, axis=1)
    assert (overlaps(one, one) == 1).all()
    assert (overlaps(one, turned) == 1).all()
    assert (overlaps(one, turned[:, ::-1]) == 1).all()
    steps = rng.integers(-99, 99, (len(one), 3, 2)).astype(float)
    corner, along = steps[:, 0] * 1e5, steps[:, 1]
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    box = np.concatenate([corner, corner + along, corner + along + across, corner + across], axis=1)
    for beside in (along, across, along + across, along - across):
        assert (overlaps(box, box + np.tile(beside, 4)) == 0).all()


def test_shapes_without_an_area_overlap_nothing():
    line, point = [0, 0, 4, 0, 4, 0, 0, 0], [1, 1] * 4
    box, bow = [0, 0, 4, 0, 4, 4, 0, 4], [0, 0, 4, 4, 4, 0, 0, 4]
    least = math.sqrt(LEAST_AREA)
    tiny = [0, 0, least / 2, 0, least / 2, least / 2, 0, least / 2]
    some = [line, point, bow, tiny]
    assert overlaps(some, [box] * 4).tolist() == [0] * 4
    assert overlaps(some, some).tolist() == [0] * 4


@many
@given(seeds, st.integers(0, 3), st.booleans(), st.integers(-60, 60), st.sampled_from([1, 2, 3]))
def test_laws(seed, first, backwards, power, quarter):
    """Exchange, another first corner or direction, quarter turns and scales change no bit; rotation and shift little."""
    one, other = twin.pairs(seed, 22)
    ordinary = (np.arange(22) % 11 < 6) | (np.arange(22) % 11 > 8)
    made = overlaps(one, other)
    assert ((made >= 0) & (made <= 1)).all()
    assert same_bits(overlaps(other, one), made)
    corners = np.roll(one.reshape(-1, 4, 2), first, axis=1)
    # Signed parts of outlines that are not convex are added in another order: their overlap is as near to the exact one.
    assert same_bits(overlaps(corners[:, ::-1] if backwards else corners, other), made)

    def turned(rows):
        points = rows.reshape(-1, 4, 2)
        for _ in range(quarter):
            points = np.stack([-points[:, :, 1], points[:, :, 0]], axis=2)
        return points

    assert same_bits(overlaps(turned(one), turned(other)), made)
    kept = np.arange(22) % 11 != 6  # whose sizes use up the range of a float
    assert same_bits(overlaps((one * 2.0**power)[kept], (other * 2.0**power)[kept]), made[kept])
    angle = seed % 997 / 100
    rotation = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    both = [(rows.reshape(-1, 4, 2) @ rotation + 0.25).reshape(-1, 8) for rows in (one[::11], other[::11])]
    assert np.allclose(overlaps(*both), made[::11], atol=1e-11)
    assert ordinary.any()


def test_known_overlaps():
    square = [0, 0, 2, 0, 2, 2, 0, 2]
    diamond = [1, -1, 3, 1, 1, 3, -1, 1]
    dart = [0, 0, 4, 0, 4, 4, 3, 1]  # concave
    assert overlaps([square], [diamond]).tolist() == [4 / 8]
    assert overlaps([square], [[1, 0, 3, 0, 3, 2, 1, 2]]).tolist() == [2 / 6]
    assert overlaps([square], [square], crowd=True).tolist() == [1]
    assert overlaps([square], [[1, 0, 3, 0, 3, 2, 1, 2]], crowd=True).tolist() == [0.5]
    assert overlaps([dart], [dart]).tolist() == [1]
    assert float(twin.exact_overlap(dart, square)) == overlaps([dart], [square])[0]
    five = [[5, 6, 4, 2, math.pi / 2]]
    assert overlaps(five, [[5, 6, 2, 4, 0]])[0] == pytest.approx(1, abs=1e-15)
    assert overlaps([[0, 0, 4, 2, 0.3]], [[0, 0, 4, 2, 0.3 + math.pi]])[0] == pytest.approx(1, abs=1e-15)


# ---------------------------------------------------------------------------------------------------------------- bounds


def proposed(one, other, kind, lowest):
    """The pairs that are candidates, and the overlap of every pair."""
    tables = (
        detmap.GroundTruth.from_arrays(image_ids=[1] * len(other), category_ids=[1] * len(other), rotated=other),
        detmap.Detections.from_arrays(
            image_ids=[1] * len(one), category_ids=[1] * len(one), rotated=one, scores=np.arange(len(one))[::-1]
        ),
    )
    arranged = Arrangement.of(*tables, resolve("coco", iou_type=kind, iou_thresholds=[lowest]))
    found = arranged.candidates(arranged.cells, lowest, 0, 1)
    out = set()
    for d, (first, last) in enumerate(zip(found.first, found.last, strict=True)):
        out |= {(d, int(found.ground_truth[i])) for i in range(first, last) if found.iou[i] >= lowest}
    return out


@pytest.mark.compiled
@pytest.mark.parametrize("kind", KINDS)
@many
@given(seeds, st.sampled_from([0.05, 0.3, 0.5, 0.9]), st.booleans())
def test_bounds_never_rule_out_a_pair_that_overlaps_enough(kind, seed, lowest, ordinary):
    rng = np.random.default_rng(seed)
    one, other = twin.pairs(seed, 22)
    if ordinary:  # pairs that lie at the limit more often
        one = np.array([twin.rectangle(*rng.uniform(0, 60, 2), *rng.uniform(3, 60, 2), rng.uniform(0, 7)) for _ in one])
        other = one + rng.normal(0, 9, 2).tolist() * 4
    elif kind == "probiou":
        sizes = np.abs(one).max(axis=1) + np.abs(other).max(axis=1)
        one, other = one[sizes < 1e70], other[sizes < 1e70]
    d, g = (part.reshape(-1) for part in np.indices((len(one), len(other))))
    every = overlaps(one[d], other[g], kind)
    expected = {(int(a), int(b)) for a, b, value in zip(d, g, every, strict=True) if value >= lowest}
    assert proposed(one, other, kind, lowest) == expected


@many
@given(seeds, st.sampled_from([1e-9, 0.1, 0.5, 0.75, 1.0]))
def test_what_is_rejected_by_bounds_alone_is_too_little(seed, lowest):
    one, other = twin.pairs(seed, 44)
    exact, quick = overlaps(one, other), overlaps(one, other, lowest=lowest)
    assert ((quick == exact) | ((quick == 0) & (exact < lowest))).all()


def test_boxes_that_touch_along_a_side_are_candidates_of_nothing():
    """Of boxes far away the sweep is as exact as the overlap."""
    far = 2.0**40
    one = [[far, far, far + 1, far, far + 1, far + 1, far, far + 1]]
    cells = overlap.Cells(*(readonly([n], np.int64) for n in (0, 1, 0, 1)))
    made = [
        Rotated.from_corners(rows).bounds().placed(readonly([0], np.int32), 0.0) for rows in (one, np.array(one) + 1)
    ]
    found = overlap.candidates(cells, *made, readonly([0], np.bool_), 1e-300, 0, 1)
    assert found.last.tolist() == [0]


# --------------------------------------------------------------------------------------------------------------- probIoU


def test_gaussians_overlap_as_in_their_formula():
    rng = np.random.default_rng(1)
    count = examples(1000)
    one = np.array(
        [twin.rectangle(*rng.uniform(0, 50, 2), *rng.uniform(1, 60, 2), t) for t in rng.uniform(-4, 4, count)]
    )
    other = np.array(
        [twin.rectangle(*rng.uniform(0, 50, 2), *rng.uniform(1, 60, 2), t) for t in rng.uniform(-4, 4, count)]
    )
    expected = [twin.probable_overlap(a, b) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    assert np.allclose(overlaps(one, other, "probiou"), expected, rtol=0, atol=1e-9)
    assert overlaps(one, one, "probiou").min() > 0.999


def test_a_quadrilateral_counts_as_the_least_rectangle_around_it():
    """As OpenCV's minAreaRect fits it."""
    rng = np.random.default_rng(2)
    quads = rng.uniform(0, 30, (examples(300), 8))
    for quad in quads.reshape(-1, 4, 2):
        areas = []
        for angle in np.arange(0, math.pi / 2, 1e-3):
            turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            areas.append(np.prod(np.ptp(quad @ turn, axis=0)))
        gaussians = _sides(quad)
        assert min(areas) * 0.99 < 12 * math.sqrt(max(gaussians, 0)) <= min(areas) * (1 + 1e-9)


def _sides(quad):
    """The product of the variances along both sides of the rectangle that a quadrilateral counts as."""
    from detmap.shapes.rotated import _gaussians

    return np.prod(_gaussians(Rotated.from_corners(quad[None])).variances[0])


# ---------------------------------------------------------------------------------------------------------------- tables


def test_five_numbers_and_corners_say_the_same():
    rng = np.random.default_rng(4)
    five = np.concatenate([rng.uniform(0, 99, (40, 4)), rng.uniform(-9, 9, (40, 1))], axis=1)
    expected = np.array([twin.rectangle(*row) for row in five.tolist()])
    made = Rotated.from_angles(five)
    assert np.allclose(made.corners, expected, rtol=0, atol=1e-12)
    degrees = np.concatenate([five[:, :4], np.degrees(five[:, 4:])], axis=1)
    assert np.allclose(Rotated.from_angles(degrees, degrees=True).corners, expected, rtol=0, atol=1e-11)
    other = np.concatenate([five[:, :4], -five[:, 4:]], axis=1)
    assert np.allclose(Rotated.from_angles(other, clockwise=False).corners, expected, rtol=0, atol=1e-12)
    right = Rotated.from_angles([[5, 6, 4, 2, angle] for angle in (0, 90, 180, 270, -90, 450)], degrees=True)
    assert sorted(map(tuple, right.corners[1].reshape(4, 2).tolist())) == [(4, 4), (4, 8), (6, 4), (6, 8)]
    assert same_bits(right.corners[[4, 5]], right.corners[[3, 1]])
    assert right.areas().tolist() == [8] * 6
    assert Rotated.from_angles([[0, 0, 2, 2, math.pi / 6]]).corners[0, 1] < -1  # y of the first corner rises first


def test_columns_are_tables_of_corners():
    rows = np.array([twin.rectangle(9, 8, 7, 6, 5), twin.rectangle(1, 2, 3, 4, 5)])
    column = Rotated.from_corners(rows)
    assert same_bits(column.arrays()["corners"], rows)
    assert same_bits(
        column.bounds().table, np.concatenate([rows.reshape(-1, 4, 2).min(1), rows.reshape(-1, 4, 2).max(1)], 1)
    )
    assert column.areas() == pytest.approx([42, 12])
    again = pickle.loads(pickle.dumps(column))
    assert not again.corners.flags.writeable
    assert same_bits(again.take(np.array([1])).corners, rows[1:])
    kind = find("rotated")
    assert same_bits(kind.join([column, column.take(np.array([], int))]).corners, rows)
    assert same_bits(kind.draw(column)[0].outlines[0], rows[0].reshape(4, 2))
    assert len(kind.given(np.empty((0, 5)), "")) == len(kind.given([], "")) == 0
    truth = detmap.GroundTruth.from_arrays(image_ids=[1, 1], category_ids=[1, 1], rotated=column)
    assert truth.kinds == ("rotated",)
    assert same_bits(truth.areas, column.areas())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[0, 0, 1, 1]], r"field 'rotated': shape \(1, 4\) where n x 8 or n x 4 x 2"),
        ([[0, 0, 1, 1, math.nan]], "record 0, field 'rotated': a rotated box must be finite numbers of at most 1e"),
        ([[0, 0, 1, 1, 0], [0, 0, -1, 1, 0]], "record 1, field 'rotated': width and height must not be negative"),
        ([[1e151, 0, 1, 1, 0, 0, 0, 0]], "record 0, field 'rotated': a rotated box must be finite"),
        ([["a"] * 8], "field 'rotated'"),
    ],
)
def test_what_is_wrong_is_said(given, message):
    with pytest.raises(detmap.InputError, match=message):
        detmap.GroundTruth.from_arrays(image_ids=range(len(given)), category_ids=[1] * len(given), rotated=given)


def test_boxes_alone_are_no_rotated_boxes():
    truth = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]])
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]], scores=[1])
    with pytest.raises(
        detmap.InputError, match="no shapes of the kind 'rotated' here, only: bbox; give them as rotated"
    ):
        detmap.evaluate(truth, found, "dota")


# -------------------------------------------------------------------------------------------------------------- matching


def scene(seed, images=4, categories=2):
    """Objects and detections: (image, category, row of eight, crowd or score), some detections near objects."""
    rng = np.random.default_rng(seed)
    truth, found = [], []
    for image in range(images):
        for _ in range(rng.integers(1, 7)):
            row = [*rng.uniform(0, 60, 2), *rng.uniform(4, 30, 2), rng.uniform(-4, 4)]
            category = int(rng.integers(1, categories + 1))
            truth.append((image, category, twin.rectangle(*row), rng.random() < 0.15))
            for _ in range(rng.integers(0, 4)):
                near = np.array(row) + rng.normal(0, [2, 2, 1, 1, 0.2])
                near[2:4] = np.abs(near[2:4])
                found.append((image, category, twin.rectangle(*near), round(rng.random(), 1)))
    return truth, found


def tables(truth, found):
    def columns(rows):
        return {
            "image_ids": [r[0] for r in rows],
            "category_ids": [r[1] for r in rows],
            "rotated": [r[2] for r in rows],
        }

    objects = detmap.GroundTruth.from_arrays(
        **columns(truth), crowd=[r[3] for r in truth], images=range(4), categories=[1, 2]
    )
    return objects, detmap.Detections.from_arrays(**columns(found), scores=[r[3] for r in found])


@pytest.mark.parametrize("seed", range(examples(25)))
def test_matching_is_that_of_the_twin(seed):
    truth, found = scene(seed)
    objects, detections = tables(truth, found)
    result = detmap.evaluate(objects, detections, area_ranges={"all": (0, 1e10)}, max_dets=[100])
    assert result.protocol.iou_type == "rotated"
    for place, category in enumerate((1, 2)):
        scores, hits, ignores, positives = [], [], [], 0
        for image in range(4):
            gts = [one for one in truth if one[:2] == (image, category)]
            dts = [one for one in found if one[:2] == (image, category)]
            dts = [dts[i] for i in naive.by_score([one[3] for one in dts])]
            crowd = [one[3] for one in gts]
            ious = [[float(twin.exact_overlap(d[2], g[2], g[3])) for g in gts] for d in dts]
            ious = np.array(ious, float).reshape(len(dts), len(gts))
            matched, ignored = naive.coco_match_cell(ious, [d[3] for d in dts], crowd, crowd, naive.IOU_THRESHOLDS)
            scores += [d[3] for d in dts]
            hits += list(((matched >= 0) & ~ignored).T)
            ignores += list(ignored.T)
            positives += len(gts) - sum(crowd)
        if positives:
            order = naive.by_score(scores)
            hit, ignored = (np.array([rows[i] for i in order], bool).reshape(-1, 10).T for rows in (hits, ignores))
            sorted_scores = np.array([scores[i] for i in order], float)
            for t in range(10):
                curve, *_ = naive._coco_curve(sorted_scores, hit[t], ignored[t], positives, naive.RECALL_THRESHOLDS)
                assert same_bits(result.precision[t, :, place, 0, 0], curve)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", ["coco", "dota", "dota-area"])
def test_the_evaluator_equals_evaluate(kind, protocol):
    protocol = dataclasses.replace(PRESETS[protocol], iou_type=kind)
    truth, found = scene(8)
    found = [(*one, place) for place, one in enumerate(found)]
    objects, detections = tables(truth, found)
    whole = detmap.evaluate(objects, detections, protocol)
    first, second = (detmap.Evaluator(protocol, categories=[1, 2]) for _ in range(2))
    for image in range(4):
        dts, gts = ([one for one in rows if one[0] == image] for rows in (found, truth))
        prediction = {
            "rotated": [one[2] for one in dts],
            "scores": [one[3] for one in dts],
            "labels": [one[1] for one in dts],
        }
        target = {
            "rotated": [one[2] for one in gts],
            "labels": [one[1] for one in gts],
            "iscrowd": [one[3] for one in gts],
        }
        (first, second)[image % 2].update(prediction, target, image_ids=image)
    merged = first.merge(pickle.loads(pickle.dumps(second)))
    assert_same_result(merged.compute(), whole)
    assert_same_result(detmap.Evaluator.from_bytes(merged.to_bytes(), protocol).compute(), whole)
