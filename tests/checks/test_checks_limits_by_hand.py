"""Limits of sizes, scores and numbers, lines and grids of coordinates, copies and defaults, in numbers written out."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_boxes_by_hand import facts_of, side, told
from test_checks_limits import side as bare_side

import detmap
from detmap.checks import anchors, copies, coverage, crops, defaults, limits, objects_left_over
from detmap.checks.evidence import evidence_of
from detmap.checks.inputs import side_of
from detmap.checks.rates import Part, tail

SEEDS = range(8)


# ---------------------------------------------------------------------------------------------------------- sizes and scores


@pytest.mark.parametrize("seed", range(60))
def test_an_edge_is_where_objects_go_on_and_detections_do_not(seed):
    rng = np.random.default_rng(seed)
    least = int(rng.choice([0, 1, 50, 100]))
    found = np.concatenate([[least], least + rng.integers(0, 16, rng.integers(8, 16)), rng.integers(120, 140, 20)])
    beyond = rng.integers(3, 60)
    objects = np.concatenate(
        [np.full(beyond, 0.98 * least), least * rng.uniform(0.5, 0.98, 50), rng.integers(90, 140, 60)]
    )
    found, objects = found.astype(float), objects.astype(float)
    out = [one for one in objects.tolist() if one < 0.98 * least]
    first = [one for one in found.tolist() if one < 1.15 * least]
    second = [one for one in found.tolist() if 1.15 * least <= one < 1.15**2 * least]
    beside = [one for one in objects.tolist() if least <= one < 1.15**2 * least]
    said = least > 0 and len(out) >= 10 and len(first) >= 12 and 2 * len(first) >= len(second)
    rate = min((len(first) + len(second)) / max(len(beside), 1), len(found) / len(objects))
    assert limits.edge_below(found, objects) == (least if said and 0.3 * rate * len(out) >= 14 else None)


def sizes_of(found, objects, label=None, true_label=None, classes=1, apart=()):
    """What is said of widths of detections and of objects, all 10 pixels high, on images of an unknown size."""
    boxes, given = (np.c_[np.zeros((len(one), 2)), one, np.full(len(one), 10.0)] for one in (found, objects))
    truth = bare_side(given, np.arange(len(given)), np.full((len(given), 2), np.inf))
    own = bare_side(boxes, np.arange(len(boxes)), np.full((len(boxes), 2), np.inf))
    truth.reach, truth.whole = np.zeros(len(given)), np.isin(np.arange(len(given)), apart)
    labels = np.zeros(len(given), int) if true_label is None else true_label
    truth.table = SimpleNamespace(categories=SimpleNamespace(codes=labels))
    truth.records = lambda rows: {"records": rows.tolist()}
    evidence = SimpleNamespace(
        detections=np.arange(len(boxes)), found=own, truth=truth, objects=np.arange(len(given)), classes=classes,
        label=np.zeros(len(boxes), int) if label is None else label,
    )  # fmt: skip
    missing = []
    facts = SimpleNamespace(
        missing=lambda rows, count: missing.append((rows.tolist(), count)),
        unreported=lambda image, label: np.ones(image.size, bool),
    )
    made = [
        (one.code, one.count, one.says.rpartition(", a limit as it seems: ")[2], one.records)
        for one in limits._sizes(facts, evidence)
    ]
    assert [len(rows) for rows, _ in missing] == [count for _, count, *_ in made]
    assert {count for _, count in missing} <= {len(given)}
    return made


def test_limits_of_all_detections(monkeypatch):
    """Below and above; an object at the limit is within it, and one that another limit tells is not told again."""
    monkeypatch.setattr(limits.strays, "strays", lambda side: None)
    found = np.concatenate([np.linspace(20, 22, 120), np.linspace(60, 100, 120), np.linspace(178, 200, 120)])
    small, large = np.full(90, 5.0), np.full(80, 900.0)
    made = sizes_of(found, np.concatenate([small, found]))
    assert [one[1:3] for one in made] == [(90, "area below 200")]
    assert made[0][3] == tuple(range(10))
    made = sizes_of(found, np.concatenate([found, large]))
    assert [one[1:3] for one in made] == [(80, "area above 2,000")]
    assert made[0][3] == tuple(range(360, 370))
    both = sizes_of(found, np.concatenate([small, found, large]))
    assert [one[1:3] for one in both] == [(90, "area below 200"), (80, "area above 2,000")]
    left_out = sizes_of(found, np.concatenate([small, found]), apart=range(5))
    assert [one[1] for one in left_out] == [85]


def test_limits_of_a_category(monkeypatch):
    """Of 20 objects or more, and not where all detections have a limit."""
    monkeypatch.setattr(limits.strays, "strays", lambda side: None)
    wide = np.concatenate([np.linspace(20, 22, 100), np.linspace(60, 100, 40), np.linspace(178, 200, 100)])
    for at, (narrow, says) in enumerate(((5.0, "below 200"), (900.0, "above 2,000"))):
        everywhere = np.concatenate([np.geomspace(1, 2000, 400), np.geomspace(1, 2000, 400)])
        objects = np.concatenate([np.full(60, narrow), wide, everywhere])
        labels = np.repeat([1, 0], [60 + wide.size, 800])
        made = sizes_of(
            np.concatenate([wide, everywhere]), objects, np.repeat([1, 0], [wide.size, 800]), labels, classes=2
        )
        assert [one[1:3] for one in made] == [(60, f"category dog, area {says}")], at


def score_cuts(own, others, classes=2, labels=None):
    """What is said of scores of a category, beside those of others."""
    scores = np.concatenate([own, others])
    label = np.repeat([0, 1], [len(own), len(others)]) if labels is None else labels
    evidence = SimpleNamespace(
        classes=classes, scores=scores, detections=np.arange(scores.size), label=label, truth=bare_side(),
        found=SimpleNamespace(records=lambda rows: {"records": rows.tolist()}),
    )  # fmt: skip
    return [(one.count, one.says.rpartition(": ")[2], one.records[:2]) for one in limits._score_cuts(evidence)]


def test_scores_of_a_category_that_end_at_a_minimum():
    """A tenth of the others' scores are below; six of its own are next to it, and half as many as in the next band."""
    low, high = np.linspace(0.01, 0.3, 400), np.linspace(0.6, 0.99, 400)
    own = np.concatenate([np.full(6, 0.4), np.full(54, 0.9)])
    assert score_cuts(own, np.r_[low, high])[0] == (60, "cat 0.4", (0, 1))
    assert score_cuts(own[1:], np.r_[low, high]) == []
    assert score_cuts(np.r_[own, np.full(12, 0.5)], np.r_[low, high]) != []
    assert score_cuts(np.r_[own, np.full(13, 0.5)], np.r_[low, high]) == []
    assert score_cuts(own[:19], np.r_[low, low, low, high]) == []  # 20 are enough
    assert score_cuts(own[:20], np.r_[low, low, low, high]) != []
    many = np.r_[own, np.full(900, 0.9)]
    assert score_cuts(many, np.r_[low[:45], high[:360], high[:45]]) != []  # 45 of 450
    assert score_cuts(many, np.r_[low[:44], high[:360], high[:46]]) == []
    assert score_cuts(own, np.r_[low, high], classes=1) == []
    assert score_cuts(np.full(46, 0.01), np.r_[low, high]) == []
    every = np.r_[own, own]
    assert score_cuts(every[:60], every[60:]) == []


@pytest.mark.parametrize(("held", "said"), [(47, True), (46, False)])
def test_scores_that_are_expected_below_a_minimum(held, said):
    """Half of the others' are below: 0.3 of as many are 14."""
    own = np.r_[np.full(10, 0.4), np.full(held - 10, 0.9)]
    assert bool(score_cuts(own, np.r_[np.linspace(0.01, 0.3, 300), np.linspace(0.6, 0.9, 300)])) is said


def test_minima_of_half_of_the_categories():
    """One of two, or two of four, as names of two; not two of three."""
    own = np.r_[np.full(10, 0.4), np.full(60, 0.9)]
    rest = np.r_[np.linspace(0.01, 0.39, 250), np.linspace(0.5, 0.99, 50)]
    two = np.repeat([0, 1, 2, 3], [70, 70, 300, 300])
    made = score_cuts(np.r_[own, own], np.r_[rest, rest], 4, two)
    assert made == [(140, "cat 0.4, dog 0.4", (0, 1))]
    three = np.repeat([0, 1, 2], [70, 70, 600])
    assert score_cuts(np.r_[own, own], np.r_[rest, rest], 4, three) == []


@pytest.mark.parametrize(
    ("classes", "hits", "extra", "said"),
    [(4, 57, 0, True), (4, 58, 0, False), (4, 40, 1, False), (2, 26, 0, True), (2, 27, 0, False), (1, 0, 0, False)],
)
def test_detections_of_the_categories_of_their_image_alone(classes, hits, extra, said):
    """Three for each of 40 images, of the category of its object: 0.3 of those that find none, but for a share, are 14."""
    image = np.arange(40)
    cells = image * classes + image % classes
    own = np.append(np.repeat(cells, 3), [cells[0] + 1] * extra)
    evidence = SimpleNamespace(
        classes=classes, object_cell=cells, cell=own, detections=np.arange(own.size), object_image=image,
        hit=np.arange(200) < hits,
    )  # fmt: skip
    made = [(one.count, one.says.rpartition(": ")[2]) for one in limits._of_labels(evidence)]
    assert made == ([(120, f"{120 - hits} of them find no object")] if said else [])


@pytest.mark.parametrize(
    ("lost", "total", "few", "others", "said"),
    [(30, 100, 0, 100, True), (14, 100, 0, 100, False), (10, 20, 0, 100, True), (9, 20, 0, 100, False),
     (30, 100, 20, 100, False), (45, 100, 20, 100, True), (18, 100, 1, 100, True), (16, 100, 1, 100, False)],
)  # fmt: skip
def test_objects_that_are_lost_beside_one_that_is_found(lost, total, few, others, said):
    none = np.concatenate([np.arange(total) < lost, np.arange(others) < few])
    over = np.arange(total + others) < total
    evidence = SimpleNamespace(
        beside_found=lambda limit: (over.copy(), ~over), among_objects=np.full(over.size, 0.5),
        objects=np.arange(over.size)[::-1], matched=(None, np.where(none, -np.inf, 0.5)),
        truth=SimpleNamespace(records=lambda rows: {"records": rows.tolist()}),
    )  # fmt: skip
    made = list(limits._strict(evidence, 0.301))
    assert bool(made) is said
    if said:
        assert made[0].says.partition(": ")[2] == (
            f"by more than 0.32, and detections by 0.30 at most; {lost / total:.0%} of {total} objects that overlap a found "
            f"one so far, and {few / others:.0%} of others on an image with a found one"
        )
        assert made[0].records == tuple(sorted(over.size - 1 - row for row in range(lost)))[:10]
        evidence.among_objects = np.where(np.arange(over.size) < 2, 0.85, 0.8499)
        again = [one.count for one in limits._strict(evidence, 0.301)]
        assert again == ([lost - 2] if lost >= 30 else [])  # two are one object that is labelled twice


# ----------------------------------------------------------------------------------------------------------- edges of boxes


EDGES = ("left edge", "top edge", "right edge", "bottom edge")


@pytest.mark.parametrize("seed", SEEDS)
def test_edges_of_boxes_by_loops(seed):
    rng = np.random.default_rng(seed)
    boxes = np.c_[rng.integers(0, 20, (50, 2)), rng.integers(1, 20, (50, 2))] * 1.0
    boxes[::7, 3] = boxes[::7, 2] + rng.choice([0, 0.019, 0.021], 8)
    sizes = rng.integers(24, 40, (50, 2)).astype(float)
    one, rows = bare_side(boxes, np.arange(50), sizes), rng.permutation(50)[:40]
    for n, name in enumerate(EDGES):
        for by in ("", "side", "other side"):
            expected = []
            for row in rows:
                at = boxes[row, n % 2] + (boxes[row, 2 + n % 2] if n > 1 else 0)
                of = sizes[row, n % 2] if by != "other side" else sizes[row, 1 - n % 2]
                near = at <= 2 or at >= sizes[row, n % 2] - 2
                expected.append(None if near else np.round(at / of, 4) if by else np.round(at, 3))
            what = f"{name} / {by}" if by else name
            made = [None if np.isnan(value) else value for value in limits._at(one, rows, what).tolist()]
            assert made == expected
            value = next(each for each in expected if each is not None)
            assert limits.touching(one, rows, [(what, value)]).tolist() == [each == value for each in expected]
            crossed = []
            for row in rows:
                axis = n % 2
                at = value * ((sizes[row, 1 - axis] if by == "other side" else sizes[row, axis]) if by else 1)
                crossed.append(bool(boxes[row, axis] + 2 < at < boxes[row, axis] + boxes[row, 2 + axis] - 2))
            assert limits.crossing(one, rows, [(what, value)]).tolist() == crossed
    assert limits.touching(one, rows, [("left edge", 5.0), ("top edge", 7.0)]).tolist() == [
        (boxes[row, 0] == 5 and sizes[row, 0] - 2 > 5) or (boxes[row, 1] == 7 and sizes[row, 1] - 2 > 7) for row in rows
    ]
    within = [
        all(boxes[row, n] > 2 and boxes[row, n] + boxes[row, 2 + n] < sizes[row, n] - 2 for n in (0, 1)) for row in rows
    ]
    equal = [inner and abs(boxes[row, 2] - boxes[row, 3]) < 0.02 for inner, row in zip(within, rows, strict=True)]
    assert limits.not_at_edges(one, rows).tolist() == within
    assert limits.equal_sides(one, rows).tolist() == equal
    assert limits.share_of_squares(one, rows) == sum(equal) / sum(within)
    assert limits.share_of_squares(one, rows[:0]) == 0.0
    for step in (1, 2, 3, 5):
        steps, grid = [], []
        for row in rows:
            corners = [boxes[row, 0], boxes[row, 1], boxes[row, 0] + boxes[row, 2], boxes[row, 1] + boxes[row, 3]]
            inner = sum(2 < at < sizes[row, n % 2] - 2 for n, at in enumerate(corners))
            steps.append(all(abs(at / step - round(at / step)) < 1e-6 for at in corners))
            grid.append(steps[-1] and inner >= 2)
        assert limits._at_steps(one, rows, step).tolist() == steps
        assert limits._on_grid(one, rows, step).tolist() == grid


@pytest.mark.parametrize(("left", "expected"), [(10, 10), (2, -np.inf), (2.5, 2.5)])
def test_windows_of_images_by_hand(left, expected):
    """Twenty boxes end at each edge of a window of images of 100 x 100, and none reaches beyond."""
    truth = side([[left, 20, 30, 40]] * 20, size=(100, 100))
    made = crops.windows(truth, np.ones(20, bool))
    assert made.edges.tolist() == [[expected, 20, left + 30, 60]] * 20
    assert made.images.all()
    assert made.touched(truth).all()
    assert not made.exceeded(truth).any()
    assert not made.squares


def test_windows_are_found_for_each_size_of_image():
    boxes = np.array([[10.0, 20, 30, 40]] * 20 + [[5, 6, 7, 8]] * 20)
    truth = side(boxes, size=(100, 60))
    truth.sizes = np.repeat([[100.0, 90], [50, 70]], 20, axis=0)
    made = crops.windows(truth, np.ones(40, bool))
    assert made.edges.tolist() == [[10, 20, 40, 60]] * 20 + [[5, 6, 12, 14]] * 20
    some = crops.windows(truth, np.arange(40) < 20)
    assert some.images.tolist() == [True] * 20 + [False] * 20
    assert crops.windows(truth, np.zeros(40, bool)) is None
    truth.aside[:20] = True
    assert crops.windows(truth, np.ones(40, bool)).images.tolist() == [False] * 20 + [True] * 20
    truth.sizes[3] = np.inf
    truth.aside[:] = False
    assert crops.windows(truth, np.ones(40, bool)) is None


def test_what_reaches_beyond_a_window_or_ends_at_it():
    edges = np.array([[10.0, 20, 40, 60], [-np.inf, -np.inf, 40, np.inf]])
    made = crops.Windows(edges, False)
    given = [[10, 20, 30, 40], [9.98, 30, 5, 5], [9.5, 30, 5, 5], [8.9, 30, 5, 5], [15, 18.9, 5, 5], [15, 25, 26.1, 5],
             [15, 25, 5, 36.1], [15, 25, 26, 36], [0, 0, 40, 40], [0, 0, 41.1, 90], [10.01, 25, 5, 5]]  # fmt: skip
    image = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0]
    truth = side(given, image=image, crowd=np.arange(11) == 3)
    touched = [True, False, False, False, False, False, False, False, True, False, True]
    assert made.touched(truth).tolist() == touched
    beyond = [False, False, False, True, True, True, True, False, False, True, False]
    assert made.exceeded(truth).tolist() == beyond
    assert made.says(truth) == "on 2 images no detection reaches beyond the outermost of these, but 4 of 10 objects do"
    square = crops.Windows(edges, True)
    says = "those of the central square; on 2 images no detection reaches beyond it, but 4 of 10 objects do"
    assert square.says(truth) == says
    truth.image = np.where(np.arange(11) == 0, -1, truth.image)
    assert not made.touched(truth)[0]


# -------------------------------------------------------------------------------------------------------------------- copies


@pytest.mark.parametrize("seed", SEEDS)
def test_boxes_that_are_copied_from_objects(seed):
    """Equal, or rounded as the object is in its sides or its far corner, and cut off at the edges of the image."""
    rng = np.random.default_rng(seed)
    decimals = rng.integers(0, 3, 60)
    objects = np.array([np.round([*rng.uniform(0, 40, 2), *rng.uniform(0.5, 300, 2)], n) for n in decimals])
    boxes = objects + rng.choice([0, 1e-7, 0.004, 0.04, 0.4, 0.6], (60, 4)) * rng.choice([-1, 1], (60, 4))
    sizes = np.tile([200.0, 100.0], (60, 1))
    for size in (sizes, np.full((60, 2), np.inf)):
        same, exact, unsure = copies.copies_of(boxes, objects, size)
        for at, (box, of) in enumerate(zip(boxes.tolist(), objects.tolist(), strict=True)):
            step = min(10.0**-n for n in range(6) if all(abs(v - round(v, n)) <= 1e-9 for v in of))
            step = max(10.0**-n for n in range(6) if all(abs(v - round(v, n)) <= 1e-9 for v in of)) or step

            def fits(box, of=of, step=step):
                corner = all(abs(box[n] - of[n]) <= step / 2 + 1e-6 for n in (0, 1))
                return corner and all(
                    min(abs(box[2 + n] - of[2 + n]), abs(box[n] + box[2 + n] - of[n] - of[2 + n])) <= step / 2 + 1e-6
                    for n in (0, 1)
                )

            near = [max(box[n], 0) for n in (0, 1)]
            far = [min(box[n] + box[2 + n], float(size[at][n])) for n in (0, 1)]
            cut = [*near, far[0] - near[0], far[1] - near[1]]
            equal = all(abs(box[n] - of[n]) <= 1e-6 for n in range(4))
            fit = fits(box) or (np.isfinite(size[at]).all() and fits(cut))
            large = min(of[2:]) >= 100 * step
            assert bool(exact[at]) is equal
            assert bool(same[at]) is bool(equal or (fit and large))
            assert bool(unsure[at]) is bool(fit and not large and not equal)


# ----------------------------------------------------------------------------------------------------- numbers of detections


@pytest.mark.parametrize("seed", SEEDS)
def test_the_longest_run_of_flags(seed):
    flags = np.random.default_rng(seed).random(30) < 0.6
    runs = "".join("x" if flag else " " for flag in flags).split()
    assert coverage.longest(flags) == max(map(len, runs), default=0)
    assert coverage.longest(flags & False) == 0
    assert coverage.longest(flags | True) == 30


@pytest.mark.parametrize("seed", range(40))
def test_a_limit_of_the_number_of_records(seed):
    rng = np.random.default_rng(seed)
    near = int(rng.integers(1, 4))
    cap = int(rng.integers(4, 14))
    counts = np.minimum(rng.negative_binomial(3, 0.25, 200), cap if seed % 2 else 99)
    if seed % 3 == 0:
        counts = np.append(counts, np.full(int(rng.integers(10, 60)), int(rng.integers(4, 12))))
    held = {n: int((counts == n).sum()) for n in range(-3, 120)}
    most = int(counts.max())
    expected = None
    if most >= max(near, 2):
        below = max(held[most - n] for n in range(1, near + 1))
        some = sum(held[n] for n in range(1, 120))
        if held[most] > 3 and tail(held[most], 1.5 * below + 1) < 1e-3 and held[most] >= 0.01 * some:
            expected = most, ""
        else:
            for limit in range(5, most - 1):
                beside = max(held[limit + n] for n in (-2, -1, 1, 2))
                if held[limit] >= max(5, 2 * beside) and tail(held[limit], beside + 1.0) < 1e-6:
                    word = "image" if beside == 1 else "images"
                    expected = limit, f"; of one or two more or fewer detections there are at most {beside} {word}"
                    break
    assert coverage.limit_of(counts, "detection", near) == expected


def test_either_side_of_limits_of_numbers():
    assert coverage.limit_of(np.array([2, 2, 2, 2, 2, 2, 2, 2]), "x", 1) == (2, "")
    assert coverage.limit_of(np.array([1] * 50), "x", 1) is None
    assert coverage.limit_of(np.array([2] * 50), "x", 3) is None
    assert coverage.limit_of(np.array([3] * 50), "x", 3) == (3, "")
    assert coverage.limit_of(np.array([9] * 4), "x", 1) is None  # once in 50 cases
    assert coverage.limit_of(np.array([9] * 6), "x", 1) == (9, "")
    assert coverage.limit_of(np.array([9] * 5), "x", 1) is None
    assert coverage.limit_of(np.array([], int), "x", 1) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_the_probability_of_no_detection(seed):
    """By steps from the mean and the variance of those that have one; few images with one detection bound it."""
    rng = np.random.default_rng(seed)
    counts = rng.negative_binomial(rng.uniform(0.5, 5), 0.3 + 0.05 * seed, 300)
    counts = counts[counts > 0]
    mean, second = counts.mean(), counts.var() + counts.mean() ** 2
    none = 0.0
    for _ in range(50):
        whole = mean * (1 - none)
        spread = second * (1 - none) - whole**2
        made = (whole / spread) ** (whole**2 / (spread - whole)) if spread > whole * (1 + 1e-9) else math.exp(-whole)
        if abs(made - none) < 1e-9:
            break
        none = min(made, 0.9)
    bound = 2 * (counts == 1).mean() + 1 / counts.size
    assert coverage.chance_of_none(counts) == pytest.approx(min(none, bound) if mean > 3 else none, abs=1e-12)
    assert coverage.chance_of_none(counts[:0]) == 0.0
    assert coverage.chance_of_none(np.full(9, 2)) == pytest.approx(0.2032, abs=1e-3)  # no spread: that of Poisson


@pytest.mark.parametrize(
    ("truth", "found", "refused", "unknown", "schema", "said"),
    [(0, 3, 0, 0, False, ["no_objects"]), (0, 3, 1, 0, False, []), (0, 3, 0, 0, True, []),
     (3, 0, 0, 0, False, ["no_detections"]), (3, 0, 1, 0, False, []), (3, 0, 0, 1, False, []),
     (0, 0, 0, 0, False, ["no_objects", "no_detections"]),
     (3, None, 0, 0, False, []), (3, 3, 0, 0, False, [])],
)  # fmt: skip
def test_files_without_a_record(truth, found, refused, unknown, schema, said):
    class Records(SimpleNamespace):
        def __len__(self):
            return self.count

    one = Records(count=truth, refused=[1] * refused, on=SimpleNamespace(images=SimpleNamespace(ids=np.arange(7))))
    other = None if found is None else Records(count=found, refused=[1] * refused, unknown=unknown)
    facts = SimpleNamespace(truth=one, found=other, schema=schema)
    assert [(made.code, made.count) for made in coverage._nothing(facts)] == [(code, 7) for code in said]
    one.on.images.ids = np.arange(0)
    assert [(made.code, made.count) for made in coverage._nothing(facts)] == [("no_images", 0)]


# -------------------------------------------------------------------------------------------------- anchors and left objects


@pytest.mark.parametrize("step", [128, 64, 32, 16, 8, 4])
def test_centres_on_a_grid(step):
    """All but one of a hundred have the same offset; a wider grid is found first."""
    rng = np.random.default_rng(step)
    centre = rng.integers(0, 9, (200, 2)) * step + np.array([1.5, 2.25])
    centre[0] += step  # of both parities, so that no wider grid fits
    sides = rng.integers(10, 40, (200, 2))
    for off, said in ((2, step), (3, 0)):
        moved = centre.copy()
        moved[:off, 1] += 0.7
        boxes = np.c_[moved - sides / 2, sides]
        one = SimpleNamespace(boxes=boxes)
        assert anchors._grid(one, np.arange(200)) == said
    assert anchors._grid(SimpleNamespace(boxes=np.c_[rng.uniform(0, 900, (200, 2)), sides]), np.arange(200)) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_sizes_of_boxes_that_are_far_more_frequent_than_those_near_them(seed):
    rng = np.random.default_rng(seed)
    width, height = rng.choice([100, 110, 124, 126, 130, 160, 400], (2, 600), p=[0.3, 0.3, 0.03, 0.03, 0.04, 0.1, 0.2])
    keys = width.astype(np.int64) << 32 | height
    held = {}
    for key in zip(width.tolist(), height.tolist(), strict=True):
        held[key] = held.get(key, 0) + 1
    expected = []
    for (w, h), count in sorted(held.items()):
        near = [n for (u, v), n in held.items() if max(w / u, u / w) <= 1.25 and max(h / v, v / h) <= 1.25]
        if count >= 20 and count * max(len(near) - 1, 1) >= 5 * (sum(near) - count):
            expected.append(w << 32 | h)
    assert anchors.frequent(None, keys, np.arange(600)).tolist() == expected
    assert expected or seed in (5, 7)
    assert anchors.frequent(None, keys, np.arange(0)).tolist() == []


def test_keys_of_boxes():
    """In steps; boxes without a side, crowds, and those that other findings explain have none."""
    given = [[0, 0, 10, 20], [0, 0, 0, 20], [0, 0, 10.5, 20], [0, 0, 3e6, 20], *[[0, 0, 5, 6]] * 3]
    truth = side(given, crowd=np.arange(7) == 4)
    truth.constant[5] = truth.aside[6] = True
    step = anchors.STEP
    sides = [(10, 20), None, (10.5, 20), (3e6, 20), None, None, None]
    expected = [-1 if one is None else round(min(one[0], 1 << 20) / step) << 32 | round(one[1] / step) for one in sides]
    assert anchors._keys(truth).tolist() == expected
    truth.image = np.array([-1, 0, 0, 0, 0, 0, 0])
    assert anchors._keys(truth)[0] == -1


@pytest.mark.parametrize("seed", SEEDS)
def test_objects_that_an_image_some_places_before_also_has(seed):
    """Cut off at the edges of the image, where its size is known; by loops over all pairs."""
    rng = np.random.default_rng(seed)
    count = 60
    boxes = np.c_[rng.integers(0, 3, (count, 2)) * 10, rng.integers(1, 3, (count, 2)) * 10].astype(float)
    boxes += rng.choice([0, 0.02, 0.03], (count, 4), p=[0.6, 0.3, 0.1])
    image, label = rng.integers(0, 8, count), rng.integers(1, 3, count)
    truth = side(boxes, image=image, label=label, count=8, size=(35, 33))
    good, place = rng.random(count) < 0.8, rng.permutation(8)
    for step in (1, -1, 2):
        expected = set()
        for own in range(count):
            for other in range(count):
                if not (good[own] and good[other]) or label[own] != label[other]:
                    continue
                at = place[image[own]] - step
                if not 0 <= at < 8 or place[image[other]] != at or place[image[own]] < step:
                    continue
                x, y, w, h = boxes[other]
                cut = [x, y, min(x + w, 35) - x, min(y + h, 33) - y]
                if all(abs(a - b) <= 0.02 for a, b in zip(cut, boxes[own], strict=True)):
                    expected.add((own, other))
        own, other = objects_left_over._at(truth, place, step, good)
        assert set(zip(own.tolist(), other.tolist(), strict=True)) == expected
        assert own.size == len(expected)
    boxes = np.array([[-3.0, 5, 20, 40], [1, 2, 3, 4]])
    assert objects_left_over._cut(boxes, np.array([[10.0, 30], [np.inf, 30]])).tolist() == [
        [0, 5, 10, 25],
        [1, 2, 3, 4],
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_objects_that_another_image_also_has(seed):
    rng = np.random.default_rng(seed)
    boxes = rng.integers(1, 3, (40, 4)).astype(float)
    image, label = rng.integers(0, 5, 40), rng.integers(1, 3, 40)
    truth = side(boxes, image=image, label=label, count=5)
    rows = np.flatnonzero(rng.random(40) < 0.8)
    expected = set()
    for key in {(*box, of) for box, of in zip(boxes.tolist(), label.tolist(), strict=True)}:
        own = sorted((row for row in rows if (*boxes[row], label[row]) == key), key=lambda row: (image[row], row))
        expected |= {(a, b) for a, b in itertools.pairwise(own) if image[a] != image[b]}
    pairs = objects_left_over._equal(truth, rows)
    assert set(zip(*pairs.tolist(), strict=True)) == expected
    assert pairs.shape == (2, len(expected))


def test_objects_that_detections_of_their_category_find():
    """By half of both; one more pixel is too much, and a detection of another category or image finds none."""
    truth = side(
        [[0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 10], [20, 0, 10, 10]], image=[0, 1, 2, 0], label=[1, 1, 2, 1]
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1, 2, 3, 1, 9, 1], category_ids=[1, 1, 1, 2, 1, 7], scores=[1] * 6,
        boxes=[[0, 0, 10, 5], [0, 0, 10, 4.9], [0, 0, 10, 10], [20, 0, 10, 10], [0, 0, 10, 10], [20, 0, 10, 10]],
    )  # fmt: skip
    facts = facts_of(truth, side_of(found, truth.table))
    label = evidence_of(truth, facts.found).label
    hit = objects_left_over._hit(facts, label, np.array([3, 0, 1, 2, 0]))
    assert hit.tolist() == [False, True, False, False, True]


# ------------------------------------------------------------------------------------------------------------------ defaults


def default(
    gone=10, total=10, of_others=0, kinds=(4, 3, 3), frames=1.0, right=(0, 50, 50, 50), looked_at=True, part=None
):
    """What is said of images of a default category: each with one object, on a number of which another is detected."""
    classes = 4
    label, other = [0] * total, []
    for at, count in enumerate(kinds):
        other += [at + 1] * count
    other = other[:gone] + [0] * (total - gone)
    for of, count in enumerate(right):
        label += [of] * count
        other += [of] * count
    label += [2] * of_others
    other += [3] * of_others
    count = len(label)
    truth = bare_side(count=count)
    evidence = SimpleNamespace(
        classes=classes, object_label=np.array(label), object_image=np.arange(count), images=count,
        taken_for=(np.array(other), np.arange(count)), sure_rank=np.zeros(count), frames=frames, truth=truth,
        sure_looked_at=np.full(count, looked_at),
    )  # fmt: skip
    facts = facts_of(truth, part=part)
    return [(one.count, one.says) for one in defaults.check(facts, evidence)], facts


def test_images_of_a_default_category():
    [(count, says)], facts = default()
    assert count == 10
    assert says.endswith(
        "category cat, on 10 of 10 images whose objects are all of it, where at least half of the detections on them are "
        "others; of such images of other categories 0 of 150; the detections are of 3 categories, most often dog (4), cow "
        "(3), emu (3)"
    )
    assert facts.causes == {("ground_truth", "default_category")}
    (there, none), (every, one) = facts.parts
    assert (np.flatnonzero(there).tolist(), none, every.all(), one) == (list(range(10)), None, True, 0)
    there = np.arange(160) < 4
    [(_, says)], _ = default(part=Part(there, "images 1 to 4", there))
    assert says.endswith("; 4 of these images are among images 1 to 4")


@pytest.mark.parametrize(
    ("given", "said"),
    [({"gone": 9, "total": 9}, 0), ({"kinds": (5, 5)}, 0), ({"kinds": (10, 1, 1), "gone": 12, "total": 12}, 0),
     ({"kinds": (8, 1, 1)}, 0), ({"kinds": (5, 4, 1)}, 1), ({"frames": 3.0}, 0), ({"frames": 1.4}, 1),
     ({"of_others": 60}, 0), ({"looked_at": False}, 1), ({"gone": 10, "total": 80}, 1), ({"right": (0, 99, 1, 0)}, 0)],
)  # fmt: skip
def test_either_side_of_a_default_category(given, said):
    made, _ = default(**given)
    assert len(made) == said
    if given.get("looked_at") is False:
        assert "at least 10" in made[0][1]


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_that_two_distributions_have_in_common(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 9, (2, 5))
    expected = sum(min(a / one.sum(), b / other.sum()) for a, b in zip(one, other, strict=True))
    assert defaults._overlap(one, other) == pytest.approx(expected, rel=1e-12)
    assert defaults._overlap(one, 0 * other) == 0.0
    assert defaults._overlap(one, 7 * one) == pytest.approx(1)


@pytest.mark.parametrize(("held", "said"), [([101, 100, 3], 1), ([100, 100], None), ([150, 0, 102], 52)])
def test_objects_beyond_the_cap_of_the_protocol(held, said):
    """Those of an image and category from the 101st on; crowds do not count."""
    image = np.repeat(np.arange(len(held)), held)
    crowd = np.zeros(image.size + 200, bool)
    crowd[-200:] = True
    image = np.append(image, np.zeros(200, int))
    truth = side(np.tile([0.0, 0, 5, 5], (image.size, 1)), image=image, crowd=crowd, count=4)
    facts = SimpleNamespace(schema=False, truth=truth)
    over = [at + 1 for at, count in enumerate(held) if count > 100]
    words = f"on {len(over)} image{'s' * (len(over) > 1)}, up to {max(held)} of one category"
    expected = [] if said is None else [("objects_beyond_cap", said, words, tuple(over))]
    assert told(limits._objects_beyond(facts)) == expected
    facts.schema = True
    assert told(limits._objects_beyond(facts)) == []


def test_objects_that_are_not_compared(monkeypatch):
    """Those that cover the whole image, reach beyond it by more than 2 pixels, or are strays."""
    truth = side(
        [[0, 0, 100, 60], [50, 10, 52, 10], [50, 10, 52.1, 10], [-2, 10, 9, 9], [-2.1, 10, 9, 9], [9, 9, 9, 9]]
    )
    evidence = SimpleNamespace(truth=truth)
    monkeypatch.setattr(limits.strays, "strays", lambda side: None)
    assert limits.apart(evidence).tolist() == [True, False, True, False, True, False]
    monkeypatch.setattr(limits.strays, "strays", lambda side: (None, np.arange(6) == 5))
    assert limits.apart(evidence).tolist() == [True, False, True, False, True, True]


@pytest.mark.parametrize(
    ("empty", "together", "inside", "outside", "said"),
    [(10, 5, 3, 3, True), (10, 4, 3, 3, False), (60, 5, 3, 3, False)],
)
def test_empty_images_in_a_row_are_lost(empty, together, inside, outside, said):
    """Five of ten of 200, where as many anywhere are expected: runs of five are there once in 16,000 cases."""
    counts = np.tile([1, 1, 1, 2], 50)
    at = np.r_[np.arange(together) + 20, np.arange(empty - together) * 2 + 60]
    counts[at] = 0
    objects = np.where(counts == 0, inside, outside)
    why = coverage._lost(SimpleNamespace(schema=True), objects, counts, np.ones(200, bool))
    runs = 200 * (empty / 200) ** together
    words = f"{together} of them follow one another in the order of ids; {runs:.1g} such runs would be expected"
    assert (runs < 1e-4 and together >= 5) is said
    assert why == (words if said else "")
