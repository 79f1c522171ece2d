"""Either side of each limit of the checks that find a part of the images, in numbers written out."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from test_checks_limits import codes, side
from test_checks_policies import evidence_of

from detmap.checks import exchanges, limits, parts, uneven
from detmap.checks.context import Facts
from detmap.checks.rates import Division, Grouping, Order, Part

# ------------------------------------------------------------------------------------------------------- flagged images


def concentrated(inside, outside, part=100, rest=900):
    """Whether a part holds the flagged images, if so many of its images and of the others are flagged."""
    there = np.arange(part + rest) < part
    facts = Facts(None)
    facts.division = SimpleNamespace(unlike=lambda *given, left: Part(there, "", there))
    flags = np.where(there, np.arange(part + rest) < inside, np.arange(part + rest) < part + outside)
    return facts.concentrated(flags, np.ones(there.size, bool)) is not None


def test_either_side_of_a_part_that_holds_flagged_images():
    assert concentrated(15, 0)
    assert not concentrated(14, 0)  # less than 0.15 of the part
    assert concentrated(40, 60)
    assert not concentrated(40, 61)  # two fifths of all that are flagged
    assert concentrated(40, 20, rest=200)
    assert not concentrated(39, 20, rest=200)  # four times the share of the others
    assert concentrated(450, 0, part=900, rest=100)
    assert not concentrated(450, 0, part=901, rest=99)  # nearly all images are no part


@pytest.mark.parametrize(("count", "said"), [(6, True), (5, False)])
def test_either_side_of_a_few_flagged_images_side_by_side(count, said):
    """A part that leaves seven tenths of its images without a flag makes each flag weigh less than one that leaves fewer."""
    place = np.arange(1000)
    facts = Facts(None)
    facts.division = Division(place, [Order("ids", place)], [])
    flags = (place >= 500) & (place < 500 + count)
    assert (facts.concentrated(flags, np.ones(1000, bool)) is not None) is said


# ---------------------------------------------------------------------------------------------- scores that do not rank


def listed(inside, outside, each=6):
    """Whether a part is listed by score: of 100 images of `each` detections there and elsewhere, so many are."""
    at = np.arange(200)
    falling = np.where(at < 100, at < inside, at - 100 < outside)
    values = np.where(falling[:, None], np.arange(each, 0, -1), [*range(each - 1), each + 1]).ravel()
    image = np.repeat(at, each)
    found = SimpleNamespace(image=image)
    evidence = SimpleNamespace(detections=np.arange(image.size), found=found, scores=values / 10, images=200)
    return uneven._listed(evidence, at < 100)


def test_either_side_of_a_part_that_is_listed_by_score():
    assert listed(90, 50)
    assert not listed(89, 50)
    assert not listed(90, 51)
    assert not listed(100, 0, each=5)  # too few for their order to say something


def ahead_by(parts, others):
    """Scores of images with one true and one false positive: of 60 images they are 1 / (2 `parts`) of all ranks apart, and
    above these of 300 others 1 / (2 `others`).
    """
    out = []
    for images, of in ((60, parts), (300, others)):
        place, by = np.arange(2 * images), images // of
        low = place[(place // by) % 2 == 0]
        out.append([low + by, low])
    inside, outside = np.array(out[0]), np.array(out[1]) + 120
    return np.concatenate([inside, outside], axis=1).ravel()  # true positives of all images, then false ones


@pytest.mark.parametrize(
    ("parts", "others", "is_listed", "said"),
    [
        (5, 1, False, True),  # 0.1 and 0.42
        (4, 1, False, False),  # 0.125
        (3, 1, True, True),  # 0.17
        (2, 1, True, False),  # 0.25
        (10, 4, False, True),  # 0.05, which says little anywhere, and 0.1
        (6, 4, False, False),  # 0.083
    ],
)
def test_either_side_of_a_part_in_which_scores_rank_less(monkeypatch, parts, others, is_listed, said):
    image = np.tile(np.arange(360), 2)
    there = np.arange(360) < 60
    monkeypatch.setattr(uneven, "_part", lambda *given: [(Part(there, "images 0 to 59", there), False)])
    monkeypatch.setattr(uneven, "_listed", lambda *given: is_listed)
    found = type("Found", (), {"image": image, "__len__": lambda self: image.size, "records": lambda self, rows: {}})()
    evidence = SimpleNamespace(
        detections=np.arange(720), finders=(np.arange(360), None), scores=ahead_by(parts, others) / 720, images=360,
        frames=1.0, found=found, truth=side(count=360), division=None,
    )  # fmt: skip
    evidence.by_score = np.argsort(-evidence.scores, kind="stable")
    made = list(uneven.ranking(Facts(None), evidence))
    assert codes(made) == ["scores_rank_nothing"] * said
    assert all(one.count == 60 and one.says.endswith("score") is is_listed for one in made)


# ------------------------------------------------------------------------------------------------------------ exchanges


def exchanged(monkeypatch, steps, images=100):
    """What is said of detections, one on each image, that fit objects of other images at some distances."""
    monkeypatch.setattr(
        exchanges, "fits", lambda *given: (np.arange(len(steps)), [np.array(one, int) for one in steps])
    )
    found = SimpleNamespace(image=np.arange(images), records=lambda rows: {})
    evidence = SimpleNamespace(images=images, truth=side(count=images), found=found)
    return [one.says.partition(": ")[2] for one in exchanges.exchanged(evidence, np.ones(images, bool))]


@pytest.mark.parametrize(
    ("fit", "step", "count", "said"),
    [(20, 9, 400, True), (19, 9, 100, False), (20, 8, 400, False), (-20, -9, 400, True), (25, 9, 500, True),
     (24, 9, 500, False)],
)  # fmt: skip
def test_either_side_of_the_detections_that_fit_another_part(monkeypatch, fit, step, count, said):
    """20 detections, and one in twenty, nine images away."""
    steps = [[step] if at >= 30 and at - 30 < abs(fit) else [] for at in range(count)]
    assert bool(exchanged(monkeypatch, steps, count)) is said


@pytest.mark.parametrize(("between", "last"), [(11, 41), (12, 29)])
def test_either_side_of_the_end_of_an_exchanged_part(monkeypatch, between, last):
    """30 detections fit, and one more behind others that do not."""
    steps = [[40]] * 30 + [[]] * between + [[40]] + [[]] * (69 - between)
    (said,) = exchanged(monkeypatch, steps)
    assert said.startswith(f"images 0 to {last} hold those of 40 to {last + 40}, ")


@pytest.mark.parametrize(("others", "said"), [(1570, True), (1580, False)])
def test_either_side_of_a_distance_that_fits_by_chance(monkeypatch, others, said):
    """At one distance 40 of 100 detections fit, and so many at all others, each of which is as likely."""
    steps = [{30} if at < 40 else set() for at in range(100)]
    for at, image in np.random.default_rng(0).permutation(np.indices((100, 100)).reshape(2, -1).T)[:others].tolist():
        steps[at].add(image - at)
    assert bool(exchanged(monkeypatch, [sorted(one) for one in steps])) is said


def test_distances_that_all_fit_alike_are_no_exchange(monkeypatch):
    assert exchanged(monkeypatch, [list(range(-99, 100))] * 100) == []


def test_at_most_eight_parts_are_exchanged(monkeypatch):
    steps = [[20 + at // 20] for at in range(180)]
    (said,) = exchanged(monkeypatch, steps, 300)
    assert said.count("hold those of") == 8


@pytest.mark.parametrize(("height", "fits"), [(75, True), (74, False)])
def test_either_side_of_a_detection_that_fits_an_object_of_another_image(height, fits):
    evidence = evidence_of([(0, 0, 0, 50, 100), (1, 60, 0, 30, 20)], [(1, 0, 0, 50, height), (0, 60, 50, 9, 9)], 2)
    image, steps = exchanges.fits(evidence, np.arange(2) == 1)
    assert (image.tolist(), [one.tolist() for one in steps]) == ([1], [[-1] if fits else []])


# -------------------------------------------------------------------------------------------- categories and kinds in a part


@pytest.mark.parametrize(("labels", "said"), [(3, [None]), (2, [0, 1])])
def test_either_side_of_the_categories_with_one_part(labels, said):
    """All objects of some categories are undetected on 20 of 100 images."""
    image, label = np.repeat(np.arange(100), 4), np.tile(np.arange(4), 100)
    bad = (image < 20) & (label < labels)
    units = parts.Units(image, label, bad, 0.1 + 0 * image, bad.astype(int), np.ones(400, int))
    there = np.arange(100) < 20
    division = SimpleNamespace(unlike=lambda image, *given: Part(there, "", there[image]))
    evidence = SimpleNamespace(classes=4, detections=np.arange(4), label=np.arange(4), division=division, frames=1.0)
    made = list(parts._unlike(Facts(None), evidence, parts.RESPONSES[4], units))
    assert [of for _, of in made] == said
    assert parts.RESPONSES[4].code == "undetected"


def mapped(wrong, true):
    """What is said of objects of some categories that are detected as others, in a part with all of them."""
    label = np.array(true)
    truth = side()
    truth.on.categories.names = [f"c{at}" for at in range(40)]
    evidence = SimpleNamespace(
        truth=truth, taken_for=(np.array(wrong), 0 * label), object_label=label, object_image=0 * label, classes=40
    )
    return parts._says_mapping(evidence, Part(np.ones(1, bool), "", np.ones(1, bool)))


@pytest.mark.parametrize(("others", "said"), [(10, True), (11, False)])
def test_either_side_of_what_categories_on_others_explain(others, said):
    """Ten objects of one category are detected as another, and others as many categories."""
    made = mapped([1] * 10 + [3 + at // 2 for at in range(others)], [0] * 10 + [2] * others)
    assert made == "; confident detections lie there: c1 on c0 (10 of 10)" * said


def test_at_most_ten_categories_on_others_are_named():
    for count, more in ((10, ""), (11, " and 1 more")):
        made = mapped(np.repeat(1 + np.arange(count), 5), np.repeat(np.arange(count), 5))
        assert made.count(" on ") == 10
        assert made.endswith(f" on c9 (5 of 5){more}")


@pytest.mark.parametrize(("objects", "others", "said"), [(20, 20, True), (21, 20, False), (20, 21, False)])
def test_either_side_of_a_kind_of_objects_that_labels_leave_out(monkeypatch, objects, others, said):
    """Of 100 objects of a part so many are of a kind, elsewhere 40; of its 40 detections of this kind all lie on nothing,
    of 40 others so many.
    """
    place = np.arange(100)
    image = np.repeat([0, 1], 100)
    kind = np.concatenate([place < objects, place < 40])
    sure = np.repeat([True, False], 40)  # the kinds of detections, all on the first image
    masks = iter([{"kind": kind}, {"kind": np.tile(sure, 2)}])
    monkeypatch.setattr(parts, "of_kinds", lambda *given: next(masks))
    monkeypatch.setattr(parts, "_stands_out", lambda *given: True)
    monkeypatch.setattr(parts, "_said", lambda *given: [])
    there = np.arange(2) < 1
    every = np.arange(160)
    alone = (every < 40) | (every >= 40) & (every < 40 + others)
    evidence = SimpleNamespace(
        object_box=np.ones((200, 4)), objects=np.arange(200), object_image=image, truth=side(image_sizes=np.ones((200, 2))),
        found=side(np.ones((160, 4)), 0 * every, np.ones((160, 2))), sure=every, label=0 * every, alone=alone, images=2,
        sure_rank=every / 160, sure_looked_at=there | True, classes=1, frames=1.0,
        division=SimpleNamespace(unlike=lambda image, *given: Part(there, "", there[image])),
    )  # fmt: skip
    facts = Facts(None)
    assert list(parts._of_kinds(facts, evidence)) == []
    assert len(facts.parts) == said


def of_limit_of_part(reached=48, alone=29, others=10, fewer=10, others_fewer=10, over=0):
    """Whether a limit of three objects is named: of the first 100 images so many have three, and the others two or, if they
    are over, four; of 300 others 200 have four, 40 three and 60 two. Each image has ten confident detections, of which these
    shares, in percent, lie on nothing: on images of three in the part and elsewhere, and on those of others.
    """
    own = np.repeat([3, 4, 2], [reached, over, 100 - reached - over])
    others_of = np.tile([4, 4, 3, 4, 4, 2, 4, 2, 4, 4, 2, 4, 3, 4, 4], 20)
    held = np.r_[np.random.default_rng(0).permutation(own), others_of]
    part = np.arange(400) < 100
    rates = np.where(held == 3, np.where(part, alone, others), np.where(part, fewer, others_fewer))
    image = np.repeat(np.arange(400), 10)
    flags = np.zeros(4000, bool)
    for way in (True, False):
        for number in (2, 3, 4):
            rows = np.flatnonzero((part == way)[image] & (held == number)[image])
            flags[rows[: round(rows.size * rates[image[rows[0]]] / 100) if rows.size else 0]] = True
    truth = side(count=400)
    truth.image, truth.crowd = np.repeat(np.arange(400), held), np.zeros(held.sum(), bool)
    evidence = SimpleNamespace(
        truth=truth, images=400, found=SimpleNamespace(image=image), sure=np.arange(4000), alone=flags,
        sure_looked_at=np.ones(400, bool), frames=1.0,
        division=Division(np.arange(400), [Order("ids", np.arange(400))], []),
    )  # fmt: skip
    facts = SimpleNamespace(parts=[])
    made = list(parts._capped(facts, evidence))
    assert [(one.count, images.sum()) for one, (images, _) in zip(made, facts.parts, strict=True)] == [
        (np.count_nonzero(held[:100] == 3),) * 2 for _ in made
    ]
    for one in made:
        (above,), (beyond,) = (re.findall(f"{where} on (.*?)%", one.says) for where in ("objects are", "elsewhere"))
        assert (above, beyond) == (f"{over}", "67")  # of 300 others 200 have four
        at = (part & (held == 3))[image], (~part & (held == 3))[image]
        shares = [parts.share(int(flags[which].sum()), int(which.sum())) for which in at]
        assert one.says.endswith(
            f" of 100 images there, elsewhere on 67%; {shares[0]} of the confident detections on images at the limit, and "
            f"{shares[1]} on others with as many objects"
        )
        assert ": 3; images 0 to 99, in the order of ids: more" in one.says
    return bool(made)


def test_either_side_of_a_limit_of_objects_of_a_part():
    assert of_limit_of_part(reached=48)  # 0.6 of the 80% of others that have three or more
    assert not of_limit_of_part(reached=47)
    usual = 1.2 * 41 / 402  # of ten in a hundred on others, and 1.2 times as many may be
    least = next(count for count in range(480) if stats.poisson.sf(count - 1, 480 * usual + 1) < 1e-3)
    assert of_limit_of_part(alone=100 * least / 480)
    assert not of_limit_of_part(alone=100 * (least - 1) / 480)
    assert not of_limit_of_part(fewer=20)  # labels are missing on images of fewer objects, too
    assert of_limit_of_part(fewer=20, others_fewer=20)
    assert of_limit_of_part(over=1)  # one of 100 images has more
    assert not of_limit_of_part(over=2)


def test_either_side_of_limits_of_objects_that_are_searched():
    def searched(held, place=None):
        order = Order("ids", np.arange(len(held)) if place is None else place)
        evidence = SimpleNamespace(division=Division(np.arange(len(held)), [order], []))
        return list(parts._limits_of_parts(evidence, np.arange(len(held)), np.array(held)))

    for limit, said in ((20, [20]), (21, [])):
        assert searched([*[limit] * 40, *[limit + 1] * 40]) == said
    for over, said in ((100, [1]), (99, [])):  # one of 20 images has more
        assert searched([*[1] * (2000 - over), *[2] * over]) == said
    for together, said in ((10, [1]), (9, [])):  # half of the images: 0.5 ^ 10 is about one in a thousand
        assert searched([*[1] * together, *[2] * together, *[1, 2] * 200]) == said
    codes = np.arange(40) % 4
    evidence = SimpleNamespace(division=Division(np.arange(40), [], [Grouping("{}", codes, list("abcd"))]))
    assert list(parts._limits_of_parts(evidence, np.arange(40), np.where(codes < 2, 1, 2))) == [1]
    assert list(parts._limits_of_parts(evidence, np.arange(36), np.where(codes < 2, 1, 2)[:36])) == []


def test_boxes_cut_at_a_line_are_those_of_the_part(monkeypatch):
    """All but two of the boxes with an edge at 416.5 are in images 1 and 2."""
    image = np.array([0, 0, 1, 1, 1, 2, 2, 3, -1])
    boxes = np.tile([400.0, 10, 16.5, 10], (9, 1))
    boxes[[0, 3, 7], 2] = 20.0
    there = np.isin(np.arange(4), [1, 2])
    given = []

    def gathered(flags, known):
        given.append((flags.tolist(), known.tolist()))
        return Part(there, "images 1 to 2", there)

    facts = SimpleNamespace(truth=side(count=4), gathered=gathered, says_part=lambda part: part.says)
    monkeypatch.setattr(limits.crops, "windows", lambda *given: None)
    made = limits.at_lines(facts, side(boxes, image, np.full((9, 2), 640.0), count=4), [("right edge", 416.5)])
    assert given == [([True, True, True, False], [True] * 4)]
    assert made.count == 4
    assert "right edge = 416.5; images 1 to 2" in made.says


def within(monkeypatch, fitting, others=0, alone=0, outside=0, count=200, to=None):
    """What is said of a part of 100 of some images. `fitting` images have (fitting, all) confident detections, of which the
    first fit the next image of the part but one, `others` have two that fit nothing, `alone` have one that does, and
    `outside` images have two that fit an image outside of the part. With `to`, the n-th image fits the image ``to[n]``.
    """
    image, steps = [], []
    for at, (fit, every) in enumerate(fitting):
        image += [at] * every
        steps += [[2 if to is None else to[at] - at]] * fit + [[]] * (every - fit)
    at = len(fitting)
    for number, step in ((others, []), (alone, [2]), (outside, [100])):
        for _ in range(number):
            held = 1 if number == alone and step == [2] else 2
            image += [at] * held
            steps += [step] * held
            at += 1
    monkeypatch.setattr(exchanges, "fits", lambda *given: (np.array(image), [np.array(one, int) for one in steps]))
    truth = side(count=count)
    truth.on.images.ids = np.arange(1, count + 1)
    evidence = SimpleNamespace(images=count, truth=truth)
    return exchanges.says_within(evidence, Part(np.arange(count) < 100, "", None))


def test_either_side_of_detections_that_fit_other_images_of_their_part(monkeypatch):
    """Ten images are not chance, at one that is expected: nine are once in 900,000 times."""
    said = "; on {} of {} images with two or more confident detections, these fit another image of the part better than"
    said += " all others"
    assert within(monkeypatch, [(2, 2)] * 10, others=5) == said.format(10, 15)
    assert within(monkeypatch, [(2, 2)] * 9, others=5) == ""
    assert within(monkeypatch, [(2, 2)] * 9, alone=1) == ""  # one detection fits an image anywhere
    assert within(monkeypatch, [(2, 2)] * 9 + [(1, 2)]) == ""
    assert within(monkeypatch, [(3, 5)] * 10) == said.format(10, 10)  # six of ten
    assert within(monkeypatch, [(3, 5)] * 9 + [(10, 17)]) == ""
    assert within(monkeypatch, [(2, 2)] * 24, outside=3) == said.format(
        24, 27
    )  # two times three, and one, are expected
    assert within(monkeypatch, [(2, 2)] * 24, outside=4) == ""
    assert within(monkeypatch, [(2, 2)] * 20, count=100) == ""  # no image is outside


@pytest.mark.parametrize(("moved", "said"), [(8, True), (9, False)])
def test_either_side_of_an_order_that_explains_images_of_a_part(monkeypatch, moved, said):
    """Of 20 images whose detections lie on another image of the part, 12 or 11 lie on the image of their place in the order
    of ids as text.
    """
    as_text = sorted(range(100), key=lambda at: str(at + 1))
    to = [as_text[at] for at in range(100)]
    own = [at for at in range(100) if to[at] != at][:20]
    place = {at: to[at] for at in own}
    for at in own[:moved]:
        place[at] = (to[at] + 3) % 100 if (to[at] + 3) % 100 != at else (to[at] + 4) % 100
    fitting = [(2, 2) if at in place else (0, 0) for at in range(100)]
    made = within(monkeypatch, fitting, to=[place.get(at, at) for at in range(100)])
    assert made.startswith("; on 20 of 20 images")
    assert ("hold the detections of each other" in made) is said


@pytest.mark.parametrize(("ends", "whole"), [(12, True), (13, False)])
def test_either_side_of_the_ends_of_a_part_of_which_ids_are_text(ends, whole):
    """The part is found but for some images at either end."""
    ids, part = np.arange(1, 201), np.arange(30, 150)
    as_text = np.array(sorted(part.tolist(), key=lambda at: str(at + 1)))
    pairs = np.stack([part, as_text], axis=1)
    pairs = pairs[((pairs >= 30 + 13) & (pairs < 150 - 13)).all(axis=1)]
    for own in (part[ends:], part[:-ends]):
        made = exchanges._as_text(ids, pairs, own)
        assert (made == ((31, 150), len(pairs), True)) is whole
        assert (made[1] == len(pairs)) is whole
