"""Suppression that differs between images, or is not there across categories: limits, on both sides."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import side

from detmap.checks import across, parts
from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence
from detmap.checks.rates import Division, Grouping


def of_bands(below, above=0, beyond=8, lower=0):
    """Whether images whose largest overlaps lie within these bands are suppressed across categories at 0.5."""
    values = [0.1, 0.47, 0.52, 0.57, 0.62, 0.67, 0.72, 0.8]
    made = across.threshold_of(np.repeat(values, [lower, below, *[above] * 5, beyond]))
    assert made is None or made == (0.5, above, 4 * above + beyond)
    return made is not None


def test_either_side_of_images_that_are_suppressed_across_categories():
    assert of_bands(12)
    assert not of_bands(11)  # up to three may be expected where none is seen
    assert of_bands(1000, above=435, beyond=100)
    assert not of_bands(1000, above=465, beyond=100)  # half as many exceed the threshold
    assert of_bands(12, lower=140)
    assert not of_bands(12, lower=141)  # hardly any exceeds it by more
    assert not of_bands(12, beyond=7)
    for value, said in ((0.149, None), (0.151, 0.2), (0.699, 0.7), (0.7, None)):
        assert (across.threshold_of(np.repeat([value, 0.8], 12)) or (None,))[0] == said
    for at in range(11):  # thresholds are multiples of 0.05
        assert across.threshold_of(np.repeat([0.19 + 0.05 * at, 0.8], 12))[0] == pytest.approx(0.2 + 0.05 * at)


def test_boxes_that_were_changed_after_suppression_say_nothing_of_it(monkeypatch):
    largest = np.repeat([0.47, 0.8], 12)
    monkeypatch.setattr(across, "largest_overlaps", lambda evidence: (np.stack([largest] * 2), np.zeros((2, 24), bool)))
    found = SimpleNamespace(constant=np.zeros(1, bool), image=np.arange(48) // 2)
    evidence = SimpleNamespace(
        objects=np.ones(1), detections=np.arange(48), classes=1, images=24, truth=side(count=24), found=found, frames=1.0,
        division=Division(np.arange(24), [], []),
    )  # fmt: skip
    for code, said in (
        ("sizes_cut", ["uneven_suppression"]), *((code, []) for code in across.RESHAPED)
    ):  # fmt: skip
        facts = Facts(side(), parts=[], causes={("detections", code)})
        facts.evidence = evidence
        assert [one.code for one in across.check(facts)] == said
    found.constant[0] = True
    facts.causes = set()
    assert list(across.check(facts)) == []


def test_boxes_of_several_categories_are_one_box():
    """Of the twenty best detections of an image: those of one category, and equal boxes, are left out."""
    boxes = np.array([[0.0, 0, 100, 100], [0, 0, 80, 100], [0, 0, 99.5, 100], [300, 0, 10, 10], [300, 0, 6, 10]])
    labels = np.array([0, 0, 1, 2, 3])
    image = np.repeat([0, 2], [5, 22])
    more = np.c_[40.0 * np.arange(22), np.zeros(22), np.full((22, 2), 10)]
    more[20:] = [[0, 0, 10, 9], [0, 0, 9, 10]]  # beyond the best
    evidence = SimpleNamespace(
        images=3, found=SimpleNamespace(image=image, boxes=np.concatenate([boxes, more])), detections=np.arange(27),
        by_score=np.arange(27), label=np.concatenate([labels, np.arange(22) % 4]),
    )  # fmt: skip
    (own, different), equal = across.largest_overlaps(evidence)
    assert own == pytest.approx([0.8, 0, 0])
    assert different == pytest.approx([80 / 99.5, 0, 0])
    assert equal.tolist() == [[False] * 3, [True, False, False]]
    evidence.by_score = np.roll(np.arange(27), 2)
    (own, different), _ = across.largest_overlaps(evidence)
    assert own == pytest.approx([0.8, 0, 0.9])
    assert different == pytest.approx([80 / 99.5, 0, 0.9])
    evidence.by_score = np.r_[np.arange(24), 25, 24, 26]  # the twentieth lies on the first
    (own, different), _ = across.largest_overlaps(evidence)
    assert own == pytest.approx([0.8, 0, 0.9])
    assert different == pytest.approx([80 / 99.5, 0, 0])


def in_a_part(exceed=0, others=80, equal=0, single=0, known=400):
    """What is said of 100 images of 400 with overlaps below 0.5, but for some that exceed it, have equal boxes, or have one
    detection; of each 100 others so many exceed it. Those behind the first `known` images have another finding.
    """
    largest = np.where(np.arange(400) % 100 < np.repeat([exceed, others, others, others], 100), 0.8, 0.47)
    same = (np.arange(400) >= 90) & (np.arange(400) < 90 + equal)
    held = np.where((np.arange(400) >= 80) & (np.arange(400) < 80 + single), 1, 2)
    image = np.repeat(np.arange(400), held)
    groups = [Grouping("{}", np.arange(400) // 100, ["part one", "two", "three", "four"])]
    evidence = SimpleNamespace(
        images=400, found=SimpleNamespace(image=image), detections=np.arange(image.size), frames=1.0,
        division=Division(np.arange(400), [], groups), truth=side(count=400),
    )  # fmt: skip
    facts = Facts(None)
    largest = np.where(same, 1.0, largest)
    made = across._strict(facts, evidence, (0.5, 0, 320), largest, np.arange(400) < known, "detections")
    assert len(facts.parts) == ("part one" in made.says)
    return made.count, made.says.partition(": ")[2]


def test_images_of_a_part_that_are_suppressed_more_strictly_are_named_alone():
    """Images of one detection, and of other findings, show nothing; one of 20 images may exceed the threshold, as those of
    equal boxes do.
    """
    says = "part one: of the 20 best no two detections overlap by 0.5 or more on {} of {} images there with several, "
    assert in_a_part() == (100, says.format(100, 100) + "elsewhere on 60 of 300")
    assert in_a_part(single=5) == (95, says.format(95, 95) + "elsewhere on 60 of 300")
    assert in_a_part(exceed=5) == (95, says.format(95, 100) + "elsewhere on 60 of 300")
    assert in_a_part(equal=5) == (95, says.format(95, 100) + "elsewhere on 60 of 300")
    assert in_a_part(known=300) == (100, says.format(100, 100) + "elsewhere on 40 of 200")
    assert "part one" not in in_a_part(others=5, known=200)[1]  # elsewhere overlaps are no larger
    count, more = in_a_part(exceed=6)
    assert (count, more) == (154, "the largest overlap of two detections lies just below 0.5; 0 images exceed it by less "
                                  "than 0.05, and 320 by more")  # fmt: skip


def single(none, one=10, two=10, inside=0, outside=0):
    """What is said of images of eight boxes, on so many of which none, one or two have a second category; or of four
    parts, in which one box has, but for some images inside and outside of the first.
    """
    more = np.repeat([0, 1, 2], [none, one, two])
    if inside or outside:
        more = (np.arange(400) % 100 >= np.repeat([inside, outside, outside, outside], 100)).astype(int)
    image = np.repeat(np.arange(more.size), 8 + more)
    order = np.concatenate([np.arange(8 + count) for count in more])
    boxes = np.c_[20.0 * (order % 8), 0 * order, np.full((image.size, 2), 10)]
    found = SimpleNamespace(image=image, columns=boxes.T)
    groups = [Grouping("{}", np.arange(more.size) // 100, ["one", "two", "three", "four"])] if inside else []
    evidence = SimpleNamespace(
        images=more.size, found=found, detections=np.arange(image.size), label=order, classes=16, frames=1.0,
        division=Division(np.arange(more.size), [], groups), truth=side(count=more.size),
    )  # fmt: skip
    return [made.count for made in across._single(Facts(None), evidence, np.ones(more.size, bool))]


def test_either_side_of_images_whose_boxes_have_one_category():
    """By 10 images of one second category and 10 of two at most 10 have none; twice as many are by chance."""
    assert single(38) == [38]
    assert single(36) == []
    assert single(200, one=11, two=10) == []  # there are ever more images of fewer
    assert single(8, one=1, two=100) == [8]
    assert single(7, one=1, two=100) == []
    assert single(0, inside=80, outside=32) == [80]
    assert single(0, inside=79, outside=31) == []
    assert single(0, inside=80, outside=33) == []


@pytest.mark.parametrize("seed", range(6))
def test_boxes_of_two_categories_are_counted_by_loops(monkeypatch, seed):
    """Of images with many boxes those are counted on which no box stands under two categories."""
    rng = np.random.default_rng(seed)
    image = np.sort(rng.integers(0, 30, 300))
    boxes, label = rng.integers(0, 3, (300, 4)).astype(float), rng.integers(0, 3, 300)
    told, known = [], rng.random(30) < 0.9
    evidence = SimpleNamespace(
        images=30, found=SimpleNamespace(image=image, columns=boxes.T), detections=np.arange(300), label=label, classes=3,
        frames=1.0, division=SimpleNamespace(unlike=lambda *given, repeats: told.append(given[:2])), truth=side(count=30),
    )  # fmt: skip
    monkeypatch.setattr(across, "FEWEST", 0)
    list(across._single(Facts(None), evidence, known))
    held = {at: {} for at in np.flatnonzero(known) if (image == at).any()}
    for at, box, of in zip(image.tolist(), boxes.tolist(), label.tolist(), strict=True):
        if at in held:
            held[at].setdefault(tuple(box), set()).add(of)
    counts = {at: len(of) for at, of in held.items()}
    many = [at for at in held if counts[at] >= np.median(list(counts.values()))]
    bad = [all(len(labels) < 2 for labels in held[at].values()) for at in many]
    assert any(bad)
    assert [(one.tolist(), other.tolist()) for one, other in told] == [(many, bad)]


def in_one_place(iou=0.8, ratio=0.8, label=1):
    """How many of two confident detections lie in one place with these categories and scores."""
    boxes = np.array([[0.0, 0, 100, 100], [0, 0, 100 * iou, 100], [200, 0, 10, 10]])
    evidence = SimpleNamespace(
        found=SimpleNamespace(image=np.zeros(3, int), boxes=boxes), sure=np.arange(3), label=np.array([0, label, 2]),
        scores=np.array([0.9, 0.9 * ratio, 0.9]),
    )  # fmt: skip
    return int(Evidence.doubled.func(evidence).sum())


def test_either_side_of_detections_of_two_categories_in_one_place():
    assert in_one_place() == 2
    assert in_one_place(label=0) == 0
    assert in_one_place(iou=0.751) == 2
    assert in_one_place(iou=0.749) == 0
    assert in_one_place(ratio=0.701) == 2
    assert in_one_place(ratio=0.699) == 0


def all_doubled(count, meant=0):
    """What is said of 1,000 confident detections, so many of which lie in the place of one of another category, and of 1,000
    objects of which so many do.
    """
    twins = np.where(np.arange(1000) < meant, 0.76, 0.0)
    evidence = SimpleNamespace(
        found=SimpleNamespace(image=np.arange(1000)), sure=np.arange(1000), label=np.zeros(1000, int), classes=2,
        images=1000, between_any=(twins, twins), doubled=np.arange(1000) < count, truth=side(),
    )  # fmt: skip
    facts = Facts(None)
    made = list(parts._all_doubled(facts, evidence, parts._doubled(evidence)))
    assert len(facts.parts) == len(made)
    return [one.count for one in made]


def test_either_side_of_all_detections_under_two_categories():
    assert all_doubled(250) == [250]
    assert all_doubled(249) == []
    assert all_doubled(250, meant=19) == [250]
    assert all_doubled(250, meant=20) == []  # objects of two categories lie in one place, too
