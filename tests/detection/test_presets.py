"""The protocols of other tools against naive twins that are written from each tool's own rules."""

from __future__ import annotations

import dataclasses
import math

import naive
import naive_tools
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples, same_bits

import detmap
from detmap.decisions import apart
from detmap.detection import preparation
from detmap.detection.protocols import COCO, PRESETS, USERS

SEEDS = range(examples(12))


def workload(seed, *, images=6, categories=3, sizes=False):
    """Random boxes without ties: objects, some crowds and difficult ones; near, double and stray detections."""
    rng = np.random.default_rng(seed)
    truth, found = [], []
    for image in range(images):
        for _ in range(rng.integers(0, 9)):
            corner, size = rng.uniform(0, 200, 2), rng.uniform(4, 90, 2)
            box, category = np.concatenate((corner, corner + size)), int(rng.integers(1, categories + 1))
            truth.append((image, category, tuple(box.tolist()), rng.random() < 0.12, rng.random() < 0.15))
            for _ in range(rng.integers(0, 4)):
                near = box + rng.normal(0, 0.09, 4) * np.tile(size, 2)
                near[2:] = np.maximum(near[2:], near[:2] + 1)
                of = category if rng.random() < 0.85 else int(rng.integers(1, categories + 1))
                found.append((image, of, tuple(near.tolist()), float(rng.random() ** 3)))
        for _ in range(rng.integers(0, 4)):
            corner = rng.uniform(0, 200, 2)
            box = np.concatenate((corner, corner + rng.uniform(2, 60, 2)))
            found.append((image, int(rng.integers(1, categories + 1)), tuple(box.tolist()), float(rng.random() ** 3)))
    if sizes:  # whole pixels, so that corners and sizes say the very same
        truth = [(i, c, tuple(map(round, box)), *rest) for i, c, box, *rest in truth]
        found = [(i, c, tuple(map(round, box)), s) for i, c, box, s in found]
    return truth, found


def tables(truth, found, *, images=6, categories=3, sizes=False):
    def given(rows):
        boxes = np.array([row[2] for row in rows], float).reshape(-1, 4)
        if sizes:
            boxes[:, 2:] -= boxes[:, :2]
        shown = {"boxes": boxes, "box_format": "xywh" if sizes else "xyxy"}
        return {"image_ids": [row[0] for row in rows], "category_ids": [row[1] for row in rows], **shown}

    objects = detmap.GroundTruth.from_arrays(
        **given(truth),
        crowd=[row[3] for row in truth],
        difficult=[row[4] for row in truth],
        images=list(range(images)),
        categories=list(range(1, categories + 1)),
    )
    return objects, detmap.Detections.from_arrays(**given(found), scores=[row[3] for row in found])


def of_classes(result):
    return {key: result.average_precision[:, k, 0, -1].tolist() for k, (key, _) in enumerate(result.categories)}


@pytest.mark.parametrize("name", ["ultralytics", "ultralytics-8.3"])
@pytest.mark.parametrize("seed", SEEDS)
def test_ultralytics(name, seed):
    """The AP of every class at every threshold, to the last bit; also with few detections per image."""
    truth, found = workload(seed, images=8)
    for cap in (300, 5):
        expected = naive_tools.ultralytics(truth, found, since_2026=name == "ultralytics", cut=0.001, cap=cap)
        result = detmap.evaluate(*tables(truth, found, images=8), dataclasses.replace(PRESETS[name], max_per_image=cap))
        made = of_classes(result)
        for category, values in expected.items():
            assert same_bits(made[category], values), (category, made[category], values)
        assert all(math.isnan(value) for key in set(made) - set(expected) for value in made[key])
        assert result["AP"] == pytest.approx(np.mean(list(expected.values())), abs=1e-15)


def test_a_perfect_detector_is_not_perfect_for_ultralytics():
    """At recall 1 the curve is read behind its drop: 0.995, as its users know."""
    box = [[10.0, 10.0, 50.0, 50.0]]
    truth = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=box)
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=box, scores=[0.9])
    for name in ("ultralytics", "ultralytics-8.3"):
        assert detmap.evaluate(truth, found, name)["AP"] == pytest.approx(0.995)


ranks = st.lists(st.booleans(), max_size=40)


@settings(max_examples=examples(300))
@given(ranks, st.integers(0, 9), st.booleans())
def test_straight_lines_between_any_points(flags, missed, tail):
    """The hits alone say what the whole curve does, every miss of it included."""
    positives = sum(flags) + missed
    hits = detmap.Hits.from_ranks([np.flatnonzero(flags) + 1], [positives], [len(flags)])
    made = hits.average_precision("101-linear-tail" if tail else "101-linear")[0]
    expected = naive_tools._linear_ap(flags, positives, not tail) if positives else math.nan
    assert same_bits(made, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_torchmetrics_and_supervision(seed):
    """COCO's rules on what tensors hold: single precision, and areas of boxes, or the annotations'.

    torchmetrics has thresholds and recalls of single precision too.
    """
    truth, found = workload(seed)
    objects, detections = tables(truth, found)
    areas = [area * 0.7 for area in objects.areas.tolist()]
    objects = dataclasses.replace(objects, areas=np.array(areas))
    ids = list(range(6)), [1, 2, 3]
    for name, given_areas in (("torchmetrics", None), ("supervision", areas)):
        grid = naive_tools.tensor_grid() if name == "torchmetrics" else {}
        expected = naive_tools.coco_of_tensors(truth, found, *ids, given_areas, **grid)
        expected[expected < 0] = np.nan
        assert same_bits(detmap.evaluate(objects, detections, name).precision, expected), name


VOC_LIKE = {
    "padilla": {"pixel": True, "difficult": False, "crowd": False},
    "cartucho": {"pixel": True, "difficult": True, "crowd": False},
    "mmeval-voc": {"pixel": False, "difficult": True, "crowd": True},
}


@pytest.mark.parametrize("sizes", [False, True])
@pytest.mark.parametrize("name", VOC_LIKE)
@pytest.mark.parametrize("seed", SEEDS)
def test_tools_with_vocs_rule(name, seed, sizes):
    """AP of every class, to the last bit, whether boxes are given by corners or by sizes."""
    truth, found = workload(seed, sizes=sizes)
    expected = naive_tools.voc(truth, found, threshold=0.5, **VOC_LIKE[name])
    result = detmap.evaluate(*tables(truth, found, sizes=sizes), name)
    made = of_classes(result)
    assert same_bits([made[key][0] for key in expected], list(expected.values()))


@pytest.mark.parametrize("seed", SEEDS)
def test_detectron2(seed):
    """Ten thresholds, ``>``, eleven points, scores with three decimals and boxes with one."""
    truth, found = workload(seed)
    made = of_classes(detmap.evaluate(*tables(truth, found), "detectron2-voc"))
    for at, percent in enumerate(range(50, 100, 5)):
        rule = {"threshold": percent / 100, "strict": True, "pixel": True, "difficult": True, "crowd": False}
        expected = naive_tools.voc(truth, found, **rule, eleven=True, written=True)
        assert same_bits([made[key][at] for key in expected], list(expected.values()))


# -------------------------------------------------------------------------------------------- decisions that lie in files


def rounding(decimals):
    near = st.integers(-(10**6), 10**6).map(lambda k: (k + 0.5) / 10**decimals)
    return st.lists(st.one_of(near, st.floats(-1e5, 1e5)), min_size=1, max_size=20)


@settings(max_examples=examples(200))
@given(st.integers(0, 6).flatmap(lambda d: st.tuples(st.just(d), rounding(d))))
def test_numbers_are_rounded_as_they_are_written(given):
    decimals, values = given
    made = preparation.rounded(np.array(values), decimals).tolist()
    assert made == [float(f"{value:.{decimals}f}") for value in values]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_out_might_as_well_not_be_there(seed):
    truth, found = workload(seed)
    objects, detections = tables(truth, found)
    ways = {
        "min_score": (0.2, truth, [row for row in found if row[3] >= 0.2]),
        "left_out": (("crowd",), [row for row in truth if not row[3]], found),
        "scored_images": ("detected", [row for row in truth if row[0] in {image for image, *_ in found}], found),
        "max_per_image": (3, truth, [row for row in found if sum(o[0] == row[0] and o[3] > row[3] for o in found) < 3]),
        "max_per_category": (
            4,
            truth,
            [row for row in found if sum(o[1] == row[1] and o[3] > row[3] for o in found) < 4],
        ),
        "box_decimals": (0, truth, [(i, c, tuple(map(round, b)), s) for i, c, b, s in found]),
        "score_decimals": (1, truth, [(i, c, b, round(s, 1)) for i, c, b, s in found]),
        "box_offset": (1.0, truth, [(i, c, tuple(side + 1.0 for side in b), s) for i, c, b, s in found]),
    }
    for decision, (value, kept, seen) in ways.items():
        one = detmap.evaluate(objects, detections, dataclasses.replace(COCO, **{decision: value}))
        other = detmap.evaluate(*tables(kept, seen))
        assert same_bits(one.precision, other.precision), decision
        assert same_bits(one.recall, other.recall), decision


def test_rows_of_matches_are_those_of_the_table():
    """What is left out keeps its place: matches name the rows that were given."""
    truth, found = workload(1)
    objects, detections = tables(truth, found)
    kept = np.flatnonzero(detections.scores >= 0.2)
    cut = detmap.match_pairs(objects, detections, dataclasses.replace(COCO, min_score=0.2))
    alone = detmap.match_pairs(objects, detections.take(kept))
    assert np.array_equal(np.sort(cut.detection), kept)
    assert np.array_equal(cut.detection, kept[alone.detection])
    assert np.array_equal(cut.outcome, alone.outcome)


@pytest.mark.parametrize("name", USERS)
def test_a_saved_tally_of_a_tool(name):
    tally = detmap.match(*tables(*workload(3)), name)
    again = detmap.Tally.from_bytes(tally.to_bytes())
    assert again.protocol == tally.protocol == PRESETS[name]
    assert same_bits(list(detmap.DetectionResult(again).values()), list(detmap.DetectionResult(tally).values()))


@pytest.mark.parametrize("name", ["ultralytics", "ultralytics-8.3"])
def test_statistics_of_tools_equal_images_really_copied_and_exchanged(name):
    """Also where the curve ends at the last detection, which stands behind the last hit."""
    from detmap import statistics
    from detmap.statistics.bootstrap import replicated

    def ap(truth, found, images):
        return detmap.evaluate(*tables(truth, found, images=images), name)["AP"]

    truth, found = workload(3, images=8)
    other = [(image, category, box, score**0.5) for image, category, box, score in workload(3, images=8)[1][::2]]
    one, two = (detmap.match(*tables(truth, rows, images=8), name) for rows in (found, other))
    made = replicated(one, 3, 5)
    for r in range(3):
        new = np.repeat(np.arange(8), statistics.drawn(8, 5, r))
        copied = [
            [(i, *row[1:]) for i, old in enumerate(new) for row in rows if row[0] == old] for rows in (truth, found)
        ]
        assert made.replicates[r, 0] == ap(*copied, new.size)
    made = statistics.permute(one, two, 3, 5)
    for r in range(3):
        swaps = statistics.exchanged(8, 5, r)
        sides = [
            [row for row in found if swaps[row[0]] == s] + [row for row in other if swaps[row[0]] != s] for s in (0, 1)
        ]
        assert made.differences[r, 0] == ap(truth, sides[1], 8) - ap(truth, sides[0], 8)


@pytest.mark.parametrize(
    ("decision", "value", "says"),
    [
        ("min_score", math.nan, "min_score must be a finite number or None"),
        ("max_per_image", 0, "max_per_image must be a positive integer or None"),
        ("box_decimals", 1.5, "decimals must be an integer from 0 to 15 or None"),
        ("box_offset", math.inf, "box_offset must be a number of pixels"),
        ("left_out", ("occluded",), "left_out must be one of crowd, difficult"),
        ("numbers", "float16", "numbers must be one of float64, float32"),
    ],
)
def test_decisions_that_cannot_be(decision, value, says):
    with pytest.raises(detmap.OptionError, match=says):
        dataclasses.replace(COCO, **{decision: value})


def test_boxes_are_not_rounded_where_other_shapes_are_compared():
    masks = np.ones((1, 4, 4), np.uint8)
    truth = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], masks=masks)
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], masks=masks, scores=[1.0])
    single = detmap.evaluate(truth, found, dataclasses.replace(COCO, numbers="float32"), iou_type="segm")
    assert single["AP"] == detmap.evaluate(truth, found, iou_type="segm")["AP"] > 0
    with pytest.raises(detmap.OptionError, match="segm compares other shapes"):
        detmap.evaluate(truth, found, dataclasses.replace(COCO, box_decimals=0), iou_type="segm")


def test_what_a_tool_decides_otherwise_is_said():
    assert apart(PRESETS["supervision"], COCO) == "boxes and scores in single precision"
    assert apart(COCO, COCO) == "nothing"
    assert "recall 0:1:0.01 in single precision" in apart(PRESETS["torchmetrics"], COCO)
    assert "IoU 0.5:0.95:0.05 in single precision" in apart(PRESETS["torchmetrics"], COCO)
    assert "matching best, inclusive pixels, all-point AP" in apart(PRESETS["padilla"], COCO)
    assert naive.VOC_RECALL_GRID.tolist() == list(PRESETS["detectron2-voc"].recall_thresholds)
