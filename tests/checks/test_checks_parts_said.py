"""Responses of parts, computed again for each record, and what is said of a part, word for word."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import side, units

from detmap.checks import parts
from detmap.checks.context import Facts
from detmap.checks.findings import found
from detmap.checks.rates import Division, Order, Part

NAMES = tuple("abcdefghijklmnop")


def truth_of(count=100, ids=None, rows=None, codes=None):
    made = side(count=count)
    made.on.categories.names = NAMES
    made.table = SimpleNamespace(
        categories=SimpleNamespace(ids=np.arange(16) if ids is None else np.array(ids), codes=codes)
    )
    made.rows = rows
    return made


def part_of(images, count=100, says="the part"):
    there = np.isin(np.arange(count), images)
    return Part(there, says, there)


# ----------------------------------------------------------------------------------------------------------- responses


def scene(seed=0):
    """Evidence with drawn flags: 6 images, 3 categories, 40 objects, 50 confident detections of 60."""
    rng = np.random.default_rng(seed)
    found = SimpleNamespace(
        image=rng.integers(-1, 6, 60), aside=rng.random(60) < 0.1,
        boxes=np.c_[np.zeros((60, 2)), rng.choice([1, 3, 8, 20, 90.0], (60, 2))],
    )  # fmt: skip
    known = np.flatnonzero(found.image >= 0)
    sure = known[: known.size - 5]
    return SimpleNamespace(
        classes=3, images=6, found=found, sure=sure, label=rng.integers(0, 3, 60), sure_rank=rng.random(sure.size),
        sure_looked_at=rng.random(6) < 0.8, alone=rng.random(sure.size) < 0.6, twins=rng.random(sure.size) < 0.5,
        doubled=rng.random(sure.size) < 0.5, object_image=np.sort(rng.integers(0, 6, 40)),
        object_label=rng.integers(0, 3, 40), held=rng.integers(0, 2, 40), seen=rng.random(40) < 0.8,
        aside=rng.random(40) < 0.1, hit=rng.random(40) < 0.5, band=rng.integers(0, 3, 40),
        taken_for=(rng.integers(-1, 3, 40), None), between_any=(None, np.zeros(0)),
    )  # fmt: skip


def told(made):
    return {
        (image, label): (count, total, bool(bad))
        for image, label, bad, count, total in zip(made.image, made.label, made.bad, made.some, made.total, strict=True)
    }


def wanted(rows, every):
    """By image and category, of rows of image, category and flag: how many flags are set, and whether all, or half."""
    out = {}
    for image, label, flag in rows:
        count, total, _ = out.get((image, label), (0, 0, False))
        out[image, label] = count + bool(flag), total + 1, False
    return {
        key: (count, total, count == total if every else 2 * count >= total) for key, (count, total, _) in out.items()
    }


@pytest.mark.parametrize("seed", range(4))
def test_the_units_of_each_response(seed):
    one = scene(seed)
    objects = [*zip(one.object_image.tolist(), one.object_label.tolist(), range(40), strict=True)]
    sure = [(int(one.found.image[row]), int(one.label[row]), at, int(row)) for at, row in enumerate(one.sure)]
    with_detections = {int(image) for image, aside in zip(one.found.image, one.found.aside, strict=True) if not aside}
    compared = [of for of in objects if one.seen[of[2]] and one.held[of[2]] and not one.aside[of[2]]]
    looked_at = [of for of in sure if one.sure_looked_at[of[0]]]

    def rank_in_size(at, row):
        """The rank among the detections of as large boxes of the category."""

        def key(row):
            w, h = one.found.boxes[row, 2:]
            return one.label[row], min(max(int(np.log2(max(w * h, 1)) / 2), 0), 11)

        same = [one.sure_rank[n] for n, other in enumerate(one.sure) if key(other) == key(row)]
        return (sum(rank < one.sure_rank[at] for rank in same) + 0.5) / len(same)

    other = one.taken_for[0]
    expected = {
        parts._undetected: ([(i, c, not one.held[at]) for i, c, at in objects if i in with_detections], True),
        parts._misplaced: ([(i, c, not one.hit[at]) for i, c, at in compared], True),
        parts._half_missed: ([(i, c, not one.hit[at]) for i, c, at in compared], False),
        parts._unlabelled: ([(i, c, one.alone[at]) for i, c, at, _ in looked_at if one.sure_rank[at] < 0.5], True),
        parts._unlabelled_of_sizes: (
            [(i, c, one.alone[at]) for i, c, at, row in looked_at if rank_in_size(at, row) < 0.5], False
        ),
        parts._relabelled: (
            [(i, c, other[at] >= 0 and other[at] != c) for i, c, at in objects if one.sure_looked_at[i]], False
        ),
        parts._unsuppressed: ([(i, c, one.twins[at]) for i, c, at, _ in sure], False),
    }  # fmt: skip
    for response, (rows, every) in expected.items():
        assert told(response(one)) == wanted(rows, every), response
    assert {of.make for of in parts.RESPONSES} == {*expected, parts._doubled}
    none, flags = ([(i, c, flag and one.doubled[at]) for i, c, at, _ in sure] for flag in (False, True))
    for across, rows in (
        (np.zeros(0), none), (np.repeat([0.75, 0.7499], [1, 49]), none), (np.repeat([0.75, 0.7499], [1, 50]), flags),
    ):  # fmt: skip
        one.between_any = None, across
        assert told(parts._doubled(one)) == wanted(rows, False)


def test_chances_of_missed_objects():
    """Those of all objects of an image and category together, by category and size, but not less than their mean."""
    one = scene(5)
    made = parts._misplaced(one)
    where = one.seen & (one.held > 0) & ~one.aside
    chance = parts.explained(~one.hit[where], (one.object_label[where], 3), (one.band[where], 12))
    of = {}
    for image, label, value in zip(one.object_image[where], one.object_label[where], chance, strict=True):
        of[image, label] = of.get((image, label), 1) * value
    usual = parts.rates(made.bad, made.label, 3)
    assert made.chance.tolist() == pytest.approx(
        [max(of[key], usual[key[1]]) for key in zip(made.image, made.label, strict=True)]
    )


def test_the_order_of_responses():
    assert [(one.code, one.unit, one.every, one.stands_out, one.of_records) for one in parts.RESPONSES] == [
        ("unsuppressed_across", "detection", False, (0.6, 3), False), ("relabelled", "object", False, (0.4, 2.5), False),
        ("misplaced", "object", True, (0.4, 2.5), False), ("misplaced", "object", False, (0.6, 3), False),
        ("undetected", "object", True, (0.4, 2.5), False), ("unlabelled", "detection", True, (0.4, 2.5), False),
        ("unlabelled", "detection", False, (0.4, 5), True), ("unsuppressed", "detection", False, (0.4, 2.5), False),
    ]  # fmt: skip


# --------------------------------------------------------------------------------------------------- which parts are said


def added(*rows):
    """The parts that stay of rows of images, code, label, and codes of findings."""
    said = []
    for images, code, label, codes in rows:
        findings = [SimpleNamespace(code=one) for one in codes]
        parts._add(said, parts._PartFindings(code, label, part_of(images), findings))
    return [np.flatnonzero(one.part.images).tolist() for one in said]


def test_the_wider_of_two_parts_stays():
    small, large, aside = range(10), range(20), range(5, 15)
    assert added((small, "x", None, ["x"]), (large, "x", None, ["x"])) == [[*large]]
    assert added((large, "x", None, ["x"]), (small, "x", None, ["x"])) == [[*large]]
    assert added((small, "x", None, ["y"]), (large, "x", None, ["x"])) == [[*small]]
    assert added((small, "x", None, ["x", "drawn_otherwise"]), (large, "x", None, ["x"])) == [[*large]]
    assert added((small, "x", 1, ["x"]), (large, "x", None, ["x"])) == [[*small], [*large]]
    assert added((small, "x", 1, ["x"]), (large, "y", 1, ["x"])) == [[*small], [*large]]
    assert added((small, "x", 1, ["x"]), (aside, "x", 1, ["x"])) == [[*small]]
    assert added((small, "x", 1, ["x"]), (range(6, 16), "x", 1, ["x"])) == [[*small], [*range(6, 16)]]
    assert added((small, "x", 1, ["x"]), (range(5, 25), "x", 1, ["x"])) == [[*range(5, 25)]]


def unlike(monkeypatch, code, parts_of, classes=4, counted=True, stands=True, reported=(), last=None):
    """Which parts are told; those of whole images and of each category as they are given, and how each was asked for."""
    response = next(one for one in parts.RESPONSES if one.code == code)
    rng = np.random.default_rng(0)
    image, label = np.repeat(np.arange(40), classes), np.tile(np.arange(classes), 40)
    some = rng.integers(0, 2, image.size)
    if last is not None:
        some[label == classes - 1] = np.isin(np.arange(40), last)
    given = parts.Units(image, label, some > 0, np.full(image.size, 0.2), some, some + 1)
    asked = []

    def of(images, bad, chance, looks=1.0, repeats=1.0):
        asked.append((images.size, int(bad.sum()), looks, repeats))
        one = parts_of[len(asked) - 1]
        return None if one is None else Part(np.isin(np.arange(40), one), "x", np.isin(images, one))

    evidence = SimpleNamespace(
        division=SimpleNamespace(unlike=of), frames=1.5, classes=classes, label=np.arange(classes if counted else 1),
        detections=np.arange(classes if counted else 1),
    )  # fmt: skip
    monkeypatch.setattr(parts, "_stands_out", lambda *them: stands)
    facts = Facts(None)
    facts.parts += reported
    made = [(np.flatnonzero(one.images).tolist(), of) for one, of in parts._unlike(facts, evidence, response, given)]
    return made, asked, some.reshape(40, classes)


def test_parts_of_all_categories_and_of_each(monkeypatch):
    whole, own = range(10), range(20, 30)
    made, asked, some = unlike(monkeypatch, "relabelled", [whole, None, own, None, range(30, 40)])
    assert made == [([*whole], None), ([*own], 1), ([*range(30, 40)], 3)]
    left = some[10:]
    assert asked == [(40, int((2 * some.sum(1) >= (some + 1).sum(1)).sum()), 1.0, 1.0)] + [
        (30, int(left[:, at].sum()), 4, 1.5) for at in range(4)
    ]
    assert unlike(monkeypatch, "unsuppressed_across", [whole])[0] == [([*whole], None)]
    assert unlike(monkeypatch, "unsuppressed_across", [whole])[1][0][2:] == (1.0, 1.5)
    assert unlike(monkeypatch, "relabelled", [whole], classes=1)[0] == [([*whole], None)]
    assert unlike(monkeypatch, "relabelled", [whole, *[own] * 4], stands=False)[0] == []
    made, asked, some = unlike(monkeypatch, "undetected", [own, None, None, own])
    assert made == [([*own], 0), ([*own], 3)]
    assert asked == [(40, int(some[:, at].sum()), 4, 1.5) for at in range(4)]
    assert unlike(monkeypatch, "undetected", [own], counted=False)[0] == [([*own], 0)]
    assert unlike(monkeypatch, "undetected", [own], classes=1)[0] == [([*own], 0)]
    reported = [(np.arange(40) >= 3, 1), (np.arange(40) >= 8, 2), (np.arange(40) < 2, None)]
    _, asked, some = unlike(monkeypatch, "undetected", [None] * 4, reported=reported)
    some[:2] = some[3:, 1] = some[8:, 2] = 0
    assert asked == [
        (size, int(some[:, at].sum()), 4, 1.5) for at, size in enumerate([38, 1, 6, 38]) if some[:, at].sum() >= 5
    ]


def test_categories_of_few_bad_images_beside_those_of_a_part_are_not_asked_for(monkeypatch):
    for last, count in ((range(14), 4), (range(13), 3)):  # beside the first ten images four or three are bad
        for more in ((), (39,)):
            _, asked, _ = unlike(monkeypatch, "relabelled", [range(10), *[None] * 4], last=[*last, *more])
            assert len(asked) == (5 if count + len(more) >= 5 else 4)


def test_parts_of_several_categories_that_are_one(monkeypatch):
    own, wide = range(10, 20), range(8, 22)
    assert unlike(monkeypatch, "undetected", [own, None, own, wide])[0] == [([*wide], None)]
    assert unlike(monkeypatch, "undetected", [own, None, None, wide])[0] == [([*own], 0), ([*wide], 3)]
    assert len(unlike(monkeypatch, "undetected", [own, None, range(18, 24), wide])[0]) == 3


# -------------------------------------------------------------------------------------------------- what is said of a part


def taken(label, other, images=100, ids=None, rows=None, codes=None):
    """Evidence of an object on each image, and of the category as which each is detected."""
    count = len(label)
    return SimpleNamespace(
        truth=truth_of(images, ids, rows, codes), taken_for=(np.array(other), np.arange(count)[::-1]), classes=16,
        object_image=np.arange(count), object_label=np.array(label), sure=100 + np.arange(count),
        found=SimpleNamespace(records=lambda rows: {"records": rows.tolist()}), objects=np.arange(count),
    )  # fmt: skip


def test_the_category_as_which_others_are_detected():
    evidence = taken([0] * 9 + [1], [0, 1, 2, 2, -1, 1, 1, 3, 1, 0])
    assert parts._says_other(evidence, part_of(range(9)), 0) == "; 4 of them for b"
    assert parts._says_other(evidence, part_of(range(5)), 0) == "; 2 of them for c"
    assert parts._says_other(evidence, part_of(range(9, 10)), 1) == "; 1 of them for a"


def test_which_categories_are_exchanged_in_a_part():
    label, other = [0] * 5 + [1] * 5 + [2] * 5, [1] * 5 + [0] * 5 + [2] * 5
    says = "; confident detections lie there: a on b (5 of 5), b on a (5 of 5)"
    assert parts._says_mapping(taken(label, other), part_of(range(15))) == says
    assert (
        parts._says_mapping(taken(label, other), part_of(range(5)))
        == "; confident detections lie there: b on a (5 of 5)"
    )
    assert parts._says_mapping(taken(label, other), part_of(range(4))) == ""
    last = taken([1] * 6, [0] * 6)
    assert parts._says_mapping(last, part_of(range(6))) == "; confident detections lie there: a on b (6 of 6)"
    more = taken([0] * 5 + [1] * 5, [1] * 5 + [-1, 5, 6, 7, 8])
    assert parts._says_mapping(more, part_of(range(9))) == "; confident detections lie there: b on a (5 of 5)"
    more = taken([0] * 5 + [1] * 6, [1] * 5 + [3, 4, 5, 6, 7, 8])
    assert parts._says_mapping(more, part_of(range(11))) == ""


def test_categories_of_the_next_row():
    codes = np.arange(40) % 16
    next_row = "each has the category of the next row: {} of them are taken for that of the row before"
    previous = "each has the category of the previous row: {} of them are taken for that of the row after"
    for step, words in ((-1, next_row), (1, previous)):
        for rows in (None, np.arange(40) * 1, np.arange(40)[::-1]):
            place = np.arange(40) if rows is None else rows
            meant = np.array(
                [codes[np.flatnonzero(place == one + step)[0]] if 0 <= one + step < 40 else -1 for one in place]
            )
            evidence = taken(codes, meant, rows=rows, codes=codes)
            evidence.truth = type("Truth", (), {**vars(evidence.truth), "__len__": lambda self: 40})()
            for count in (9, 10, 11):
                inside = [at for at in range(40) if meant[at] >= 0][:count]
                made = parts._says_rows(evidence, part_of(inside))
                assert made == ("; " + words.format(count) if count >= 10 else "")
    meant = np.append(-1, codes[:-1])
    meant[1:8] = (meant[1:8] + 5) % 16
    evidence = taken(codes, meant, codes=codes)
    evidence.truth = type("Truth", (), {**vars(evidence.truth), "__len__": lambda self: 40})()
    assert parts._says_rows(evidence, part_of(range(1, 19))).startswith(
        "; each has the category of the next row: 11 of"
    )
    assert parts._says_rows(evidence, part_of(range(1, 18))) == ""  # 10 of 17


def test_category_ids_that_are_off_by_one_in_a_part():
    first = parts._mapped(taken([1] * 10, [0] * 10), part_of(range(12)), None)
    assert (first.count, first.records) == (10, tuple(range(100, 110)))
    for shift, sign in ((1, "-"), (-1, "+")):
        other = np.array([*[5 + shift] * 8, 5 + 3 * shift, 5 + 3 * shift, 5, -1])
        made = parts._mapped(taken([5] * 12, other), part_of(range(12)), None)
        assert (made.code, made.count, made.records) == ("category_ids_shifted", 10, tuple(range(102, 112)))
        assert made.says.endswith(f": the part; each {sign} 1 is the one that is meant, unless the objects' are off")
        assert parts._mapped(taken([5] * 12, other), part_of(range(12)), 5) is None
        assert parts._mapped(taken([5] * 12, other), part_of(range(9)), None) is None
        assert parts._mapped(taken([5] * 12, other, ids=list(NAMES)), part_of(range(12)), None) is None
        other[7] = 5 + 2 * shift
        assert parts._mapped(taken([5] * 12, other), part_of(range(12)), None) is None


def said(code, part, label=None, whole=True):
    """What is said of bad records of categories 0 and 1 on each of 100 images, half of them, or a third, in turn."""
    response = next(one for one in parts.RESPONSES if one.code == code)
    image, category = np.repeat(np.arange(100), 2), np.tile([0, 1], 100)
    some = np.where(category == 0, 1, image % 3 == 0).astype(int)
    given = parts.Units(image, category, some > 0, some / 2, some, 1 + category)
    evidence = SimpleNamespace(truth=truth_of(), looked_at=np.full(9, whole), sure_looked_at=np.ones(9, bool))
    (made,) = parts._said(Facts(None), evidence, response, given, part, label)
    return made.count, made.unit, made.says, made.records


def test_what_is_said_of_a_part():
    part = part_of(range(10, 40))
    count, unit, says, records = said("undetected", part)
    assert (count, unit, records) == (40, "object", tuple(range(10, 20)))
    assert says.endswith(": the part: 44% of 90 there; elsewhere 45%")
    count, unit, says, records = said("undetected", part, 1)
    assert (count, records) == (10, (12, 15, 18, 21, 24, 27, 30, 33, 36, 39))
    assert says.endswith(": category b, the part: 17% of 60 there; elsewhere 17%")
    assert said("undetected", part, 0)[2].endswith(": category a, the part: 100% of 30 there; elsewhere 100%")
    assert said("undetected", part_of(range(100)), 0)[2].endswith(": category a, the part: 100% of 100 there")
    assert said("undetected", part, whole=False)[2].startswith("at least 40 objects ")
    assert said("unsuppressed", part)[1] == "detection"


def test_detections_of_all_images_that_are_doubled():
    evidence = SimpleNamespace(images=30, truth=side(count=30))
    for some, total, told_ in ((10, 40, True), (9, 36, False), (9, 30, False), (10, 41, False), (25, 100, True)):
        facts = Facts(None)
        counts = np.zeros(30, int)
        counts[5], counts[3] = some - 1, 1
        given = units(counts, np.r_[total, np.zeros(29, int)])
        made = list(parts._all_doubled(facts, evidence, given))
        assert bool(made) is told_
        if told_:
            assert made[0].says.endswith(f": {some / total:.0%} of the confident detections")
            assert (made[0].count, made[0].records) == (some, (3, 5))
            assert facts.parts[0][0].all()
            assert facts.parts[0][1] is None


def test_detections_on_nothing_of_images():
    evidence = SimpleNamespace(
        found=SimpleNamespace(image=np.array([0, 0, 1, 2, 2, 2, 3])), sure=np.array([0, 2, 3, 4, 5, 6]),
        sure_looked_at=np.array([True, True, True, False]), alone=np.array([1, 0, 1, 1, 0, 1], bool),
    )  # fmt: skip
    one, other = np.array([True, False, False, True]), np.array([False, True, True, False])
    assert parts._alone_on(evidence, one, other) == [(1, 1), (2, 4)]


@pytest.mark.parametrize(("count", "rest", "times", "more"), [
    (6, (0, 998), 1.0, True), (5, (0, 998), 1.0, False), (20, (9, 98), 1.0, False), (24, (9, 98), 1.0, True),
    (24, (9, 98), 2.0, False),
])  # fmt: skip
def test_either_side_of_a_larger_share(count, rest, times, more):
    """Of 100, where 1 in 1,000 or 1 in 10 is usual."""
    assert parts._more((count, 100), rest, times) is more


def capped(monkeypatch, own=(40, 50), rest=(10, 100), limit=(6, "; so")):
    """What is said of images of 1 to 6 objects, a crowd besides, of which those of 6 reach the limit."""
    held = np.r_[np.repeat(np.arange(1, 7), 10), 6, 6]
    image = np.repeat(np.arange(62), held)
    crowd = np.zeros(image.size + 1, bool)
    crowd[-1] = True
    evidence = SimpleNamespace(truth=side(count=62), images=62)
    evidence.truth.image, evidence.truth.crowd = np.r_[image, 3], crowd
    asked = []
    monkeypatch.setattr(parts, "limit_of", lambda *given: asked.append((given[0].tolist(), *given[1:])) or limit)
    monkeypatch.setattr(parts, "_alone_on", lambda one, *masks: asked.extend(masks) or [own, rest])
    monkeypatch.setattr(parts, "_capped_part", lambda *given: ["a part"])
    facts = Facts(None)
    made = list(parts._capped(facts, evidence))
    assert asked[0] == (held.tolist(), "object", 1)
    if limit:
        assert np.flatnonzero(asked[1]).tolist() == np.flatnonzero(held == 6).tolist()
        assert np.flatnonzero(asked[2]).tolist() == np.flatnonzero((held >= 3) & (held < 6)).tolist()
    return made, facts.parts


def test_images_at_a_limit_of_objects(monkeypatch):
    (made,), ((images, of),) = capped(monkeypatch)
    assert (made.code, made.count, made.records, of) == ("objects_capped", 12, tuple(range(50, 60)), None)
    assert images.sum() == 12
    assert made.says.endswith(
        ": 6; so; 80% of the confident detections there, and 10% on others with at least half as many objects"
    )
    assert capped(monkeypatch, own=(6, 50))[0] == ["a part"]
    assert capped(monkeypatch, limit=None)[0] == ["a part"]


def test_what_explains_a_part(monkeypatch):
    """Ids first, then boxes, of which a tenth of the detections on nothing gain."""
    gains = {
        name: SimpleNamespace(code="scaled_boxes", role=role, gained=np.array([5, 3, 4])[:count], more=more)
        for name, role, count, more in (("a", "detections", 3, "so"), ("few", "detections", 2, "so"),
                                        ("truth", "ground_truth", 3, "so"), ("b", "detections", 3, ""))
    }  # fmt: skip
    corrected = []
    for images, boxes, says in (
        ("a", "b", "so; the part, 9"), (None, "a", "so; the part, 9"), ("few", "b", "the part, 9"),
        ("truth", "truth", None), ("few", None, None),
    ):  # fmt: skip
        one = SimpleNamespace(of_images=gains.get(images), of_boxes=gains.get(boxes), astray=np.arange(30))
        monkeypatch.setattr(
            parts, "Agreement", lambda *given, one=one, **more: corrected.append((given[2].sum(), more)) or one
        )
        facts = SimpleNamespace(
            agreement=SimpleNamespace(truth=1, found=side(), corrected=7),
            causes=set(),
            says_part=lambda part: "the part, 9",
        )
        facts.agreement.found.records = lambda rows: {"records": rows.tolist()}
        made = parts._explained(facts, part_of(range(9)), None)
        assert (made is None) is (says is None)
        if made is not None:
            assert made.says.endswith(f": {says}")
            assert (made.count, made.records) == (3, (3, 4, 5))
            assert facts.causes == {("detections", "scaled_boxes")}
    assert corrected == [(9, {"corrected": 7})] * 5


def test_the_limits_of_objects_that_are_searched():
    """No image of a range, or of a group, has more: of ranges and groups so long that this is no chance."""
    rng = np.random.default_rng(0)
    for seed in range(12):
        held = rng.integers(1, 8, 80)
        start, stop = np.sort(rng.choice(80, 2, replace=False))
        held[start:stop] = np.minimum(held[start:stop], rng.integers(1, 6))
        codes = np.where(rng.random(100) < 0.3, rng.integers(0, 3, 100), -1)
        image = np.sort(rng.choice(100, 80, replace=False))
        if seed % 2:
            held[codes[image] == 0] = np.minimum(held[codes[image] == 0], 2)
        orders = [Order("a", np.arange(100)), Order("b", np.arange(100) * 37 % 100)]
        division = Division(np.arange(100), orders, [SimpleNamespace(codes=codes, names=["x", "y", "z", "none"])])
        expected = []
        for limit in range(1, 21):
            rate = max(np.mean(held <= limit), 0.02)
            if rate > 0.95:
                break
            runs = []
            for one in orders:
                row = held[np.argsort(one.place[image], kind="stable")] <= limit
                runs.append(max(len(part) for part in "".join("x" if good else " " for good in row).split(" ")))
            runs += [
                np.sum(codes[image] == code)
                for code in range(3) if (held[codes[image] == code] <= limit).all() and (codes[image] == code).any()
            ]  # fmt: skip
            if max(runs) >= np.log(1000) / -np.log(rate):
                expected.append(limit)
        assert list(parts._limits_of_parts(SimpleNamespace(division=division), image, held)) == expected


def left_out(monkeypatch, counts):
    """Which kind of objects is named, and what else is said: of ten objects of the part, and of 100 others, so many are of
    each kind; all detections of the part lie on nothing, if they are of one of the kinds.
    """
    image = np.repeat([0, 1], [10, 100])
    objects = {
        f"of kind {at}": np.r_[np.arange(10) < few, np.arange(100) < usual] for at, (few, usual) in enumerate(counts)
    }
    sure = np.arange(40)
    kind = np.arange(40) % 2 == 0
    evidence = SimpleNamespace(
        object_box=np.ones((110, 4)), truth=truth_of(2), objects=np.arange(110), sure=sure, object_image=image,
        found=SimpleNamespace(boxes=np.ones((40, 4)), sizes=np.ones((40, 2)), image=np.arange(40) // 20),
        label=np.zeros(40, int), sure_rank=np.arange(40) / 40, sure_looked_at=np.ones(2, bool), classes=1, frames=1.5,
        alone=kind & (np.arange(40) < 20),
    )  # fmt: skip
    evidence.truth.sizes = np.ones((110, 2))
    asked = []

    def unlike(images, bad, chance, looks, repeats):
        asked.append((looks, repeats))
        return Part(np.array([True, False]), "the part", images == 0)

    evidence.division = SimpleNamespace(unlike=unlike)
    made = iter([objects, dict.fromkeys(objects, kind)])
    monkeypatch.setattr(parts, "of_kinds", lambda *given: next(made))
    monkeypatch.setattr(parts, "_stands_out", lambda *given: True)
    monkeypatch.setattr(
        parts,
        "_said",
        lambda facts, evidence, response, units, part, label: [found(response.code, 3, "detection", more="so")],
    )
    facts = Facts(None)
    (one,) = list(parts._of_kinds(facts, evidence)) or [None]
    assert len(facts.parts) == (one is not None)
    assert asked == [(len(counts), 1.5)] * len(counts)
    return None if one is None else one.says.partition(": ")[2]


def test_the_kind_of_objects_that_is_left_out_most(monkeypatch):
    """One more of each is counted, so that few of few say little."""
    says = "detections of kind {}, so; of the objects there {} are such, elsewhere {}"
    assert left_out(monkeypatch, [(0, 5), (1, 20)]) == says.format(1, "10%", "20%")
    assert left_out(monkeypatch, [(1, 20), (0, 5)]) == says.format(0, "10%", "20%")
    assert left_out(monkeypatch, [(0, 12), (1, 20)]) == says.format(0, "0%", "12%")
    assert left_out(monkeypatch, [(0, 10), (0, 10)]) == says.format(0, "0%", "10%")
    assert left_out(monkeypatch, [(2, 39), (1, 20)]) == says.format(1, "10%", "20%")
    assert left_out(monkeypatch, [(2, 39), (2, 39)]) is None
