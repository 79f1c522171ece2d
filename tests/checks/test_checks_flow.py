"""Which comparisons follow one another, and what findings and causes leave out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from detmap.checks import parts, policies, poses, repeats, sizes, uneven
from detmap.checks.rates import Part


def one(code):
    return SimpleNamespace(code=code)


def facts_of(causes=(), listed=(), **more):
    """Facts with five objects and detections."""
    causes = set(causes)
    evidence = SimpleNamespace(
        objects=np.arange(5), detections=np.arange(5), found=SimpleNamespace(posed=None), images=4,
        finders=(np.arange(20), np.arange(20)), copies=SimpleNamespace(same=np.zeros(20, bool)), classes=2,
    )  # fmt: skip
    facts = SimpleNamespace(
        evidence=evidence, causes=causes, parts=list(listed), agreement=None,
        caused=lambda role, *codes: any((role, code) in causes for code in codes),
    )  # fmt: skip
    for name, value in more.items():
        setattr(facts, name, value)
    return facts


def nothing(module, facts):
    """Whether a check says nothing without objects or detections that can be compared."""
    whole, empty = facts.evidence, np.arange(0)
    out = []
    for evidence in (None, SimpleNamespace(**{**vars(whole), "objects": empty}),
                     SimpleNamespace(**{**vars(whole), "detections": empty})):  # fmt: skip
        facts.evidence = evidence
        out += list(module.check(facts))
    facts.evidence = whole
    return out == []


# ---------------------------------------------------------------------------------------------------------------- parts


def part_flow(monkeypatch, facts=None, unlike=(), scattered=(), listing=(), faint=False):
    """What is said, and what is called, where some responses differ in a part, or on images anywhere."""
    called = []
    facts = facts or facts_of()
    image = np.arange(4)

    def stub(name, value):
        def of(*given):
            called.append(name)
            if name in listing:
                facts.parts.append(name)
            return iter([value]) if value else iter([])

        return of

    for module, name in ((policies, "whole_images"), (parts.defaults, "check"), (parts, "_capped"), (uneven, "differing"),
                         (uneven, "ranking"), (parts, "_of_kinds"), (parts, "_all_doubled")):  # fmt: skip
        monkeypatch.setattr(module, name, stub(name.strip("_"), name.strip("_")))

    def made(code):
        def make(evidence):
            called.append(code)
            return SimpleNamespace(image=image, code=code)

        return make

    codes = ("unsuppressed_across", "relabelled", "unlabelled", "unlabelled", "unsuppressed")
    monkeypatch.setattr(parts, "RESPONSES", tuple(parts.Response(code, "object", made(code)) for code in codes))
    there = Part(image < 2, "images 0 to 1", image < 2)
    monkeypatch.setattr(
        parts, "_unlike", lambda facts, evidence, response, units: [(there, 7)] if response.code in unlike else []
    )
    monkeypatch.setattr(
        parts, "_scattered", lambda facts, evidence, code, units: image > 2 if code in scattered else None
    )

    def told(facts, evidence, response, units, part, label):
        assert units.code == response.code
        yield f"{response.code}: {part.says}, {label}, {part.units.tolist()}"

    monkeypatch.setattr(parts, "_said", told)
    monkeypatch.setattr(parts, "_of_gain", lambda facts, gain, *rows: (gain, *rows))
    if faint:
        gains = [SimpleNamespace(gained=np.arange(count)) for count in (3, 9, 5)]
        facts.agreement = SimpleNamespace(faint=gains)
        facts.rows_of = lambda gain: ("rows", gain.gained.size)
    return list(parts.check(facts)), called, facts


BEFORE = ["whole_images", "check", "capped", "differing"]


def test_all_comparisons_of_parts_follow(monkeypatch):
    made, called, facts = part_flow(monkeypatch)
    assert called == [
        *BEFORE, "unsuppressed_across", "all_doubled", "relabelled", "ranking", "of_kinds", "unlabelled", "ranking",
        "unlabelled", "unsuppressed",
    ]  # fmt: skip
    assert made == [*BEFORE, "all_doubled", "ranking", "of_kinds", "ranking"]
    assert facts.causes == set()
    assert nothing(parts, facts)
    facts.agreement = SimpleNamespace(faint=[])
    assert part_flow(monkeypatch, facts)[0] == made


def test_parts_that_explain_what_follows(monkeypatch):
    made, called, facts = part_flow(monkeypatch, unlike=["unsuppressed_across"])
    assert called == [
        *BEFORE,
        "unsuppressed_across",
        "relabelled",
        "of_kinds",
        "unlabelled",
        "unlabelled",
        "unsuppressed",
    ]
    assert made == [*BEFORE, "of_kinds", "unsuppressed_across: images 0 to 1, 7, [True, True, False, False]"]
    assert facts.causes == {("detections", "unsuppressed_across")}
    ((images, label),) = facts.parts
    assert (images.tolist(), label) == ([True, True, False, False], 7)
    made, called, facts = part_flow(monkeypatch, scattered=["relabelled"])
    assert made == [
        *BEFORE,
        "all_doubled",
        "of_kinds",
        "relabelled: 1 image anywhere, None, [False, False, False, True]",
    ]
    assert facts.causes == set()
    ((images, label),) = facts.parts
    assert (images.tolist(), label) == ([False, False, False, True], None)
    _, _, facts = part_flow(monkeypatch, unlike=["unsuppressed"], scattered=["unsuppressed"])
    assert facts.causes == {("detections", "unsuppressed")}
    assert len(facts.parts) == 2
    assert part_flow(monkeypatch, listing=["ranking"])[1].count("ranking") == 1


def test_what_hardly_any_detection_gains_by(monkeypatch):
    """A hypothesis that few records bear out is named if nothing else is: that of most records."""
    made, _, _ = part_flow(monkeypatch, faint=True)
    gain, *rows = made[-1]
    assert (gain.gained.size, rows) == (9, ["rows", 9])
    assert not isinstance(part_flow(monkeypatch, faint=True, unlike=["relabelled"])[0][-1], tuple)


# --------------------------------------------------------------------------------------------------------------- uneven


def uneven_flow(monkeypatch, facts):
    called = []
    for name in ("_scores", "_boxes", "_counts"):

        def of(*given, name=name):
            called.append((name, [one.size for one in given if isinstance(one, np.ndarray)]))
            return iter([name])

        monkeypatch.setattr(uneven, name, of)
    made = list(uneven.check(facts))
    assert made == [name for name, _ in called]
    return called


def test_which_comparisons_of_uneven_parts_follow(monkeypatch):
    every = [("_scores", [20, 20, 20]), ("_boxes", [20, 20]), ("_counts", [])]
    assert uneven_flow(monkeypatch, facts_of()) == every
    for role, code, left in (
        ("detections", "cut_boxes", "_boxes"), ("detections", "square_boxes", "_boxes"),
        ("ground_truth", "square_boxes", "_boxes"), ("ground_truth", "cut_boxes", ""),
        ("detections", "sizes_cut", "_counts"),
    ):  # fmt: skip
        assert uneven_flow(monkeypatch, facts_of([(role, code)])) == [one for one in every if one[0] != left]
    assert uneven_flow(monkeypatch, facts_of(listed=["a part"])) == []
    assert nothing(uneven, facts_of())
    facts = facts_of()
    facts.evidence.found.posed = 1
    assert [name for name, _ in uneven_flow(monkeypatch, facts)] == ["_scores", "_counts"]
    facts = facts_of()
    facts.evidence.finders = np.arange(19), np.arange(19)
    assert [name for name, _ in uneven_flow(monkeypatch, facts)] == ["_counts"]
    facts = facts_of([("detections", "copied_boxes")])
    facts.evidence.finders, facts.evidence.copies.same = (np.arange(25), np.arange(25)), np.arange(25) < 5
    assert uneven_flow(monkeypatch, facts) == [("_scores", [20, 20, 25]), ("_boxes", [20, 20]), ("_counts", [])]


@pytest.mark.parametrize("apart", [[], ["a category"]])
@pytest.mark.parametrize("which", [None, "first", "second"])
def test_which_comparisons_of_scores_follow(monkeypatch, apart, which):
    """Categories, then parts by detections that find objects and by others, then images."""
    own = np.array([0.1, 0.5, 0.9])
    evidence = SimpleNamespace(scores=own, object_label=np.array([0, 0, 1]), object_image=np.arange(3), images=3)
    none, asked = SimpleNamespace(words="none"), []
    monkeypatch.setattr(uneven, "_of_categories", lambda *given: apart)
    monkeypatch.setattr(uneven, "_of_others", lambda evidence, rows: none)
    monkeypatch.setattr(
        uneven, "_between", lambda evidence, rank, image, scores: [("between", rank.tolist(), image.tolist())]
    )

    def of(evidence, one, other):
        asked.append((one.words, other.words))
        return (
            {"{many} that find objects,": "first", "none": "second"}[one.words]
            if which and ((which == "first") == (one.words != "none"))
            else None
        )

    monkeypatch.setattr(uneven, "_of_part", of)
    rows = np.array([2, 0, 1])
    made = list(uneven._scores(evidence, rows, np.array([1, 2, 0]), rows))
    rest = [] if apart else [("between", [0.75, 0.5, 0.25], [1, 2, 0])]
    assert made == [*apart, *([which] if which else rest)]
    both = [("{many} that find objects,", "none"), ("none", "{many} that find objects,")]
    assert asked == (both[:1] if which == "first" else both)
    monkeypatch.setattr(uneven, "_of_others", lambda evidence, rows: None)
    monkeypatch.setattr(uneven, "_of_part", lambda evidence, one, other: None)
    assert list(uneven._scores(evidence, rows, np.array([1, 2, 0]), rows)) == [*apart, *rest]


# ----------------------------------------------------------------------------------------------- policies, sizes, poses


def test_which_comparisons_of_drawing_follow(monkeypatch):
    for name in ("_groups", "_anywhere"):
        monkeypatch.setattr(policies, name, lambda *given, name=name: [name])
    assert list(policies.check(facts_of())) == ["_groups", "_anywhere"]
    for code in ("cut_boxes", "sizes_cut", "score_gap", "strict_suppression"):
        assert list(policies.check(facts_of([("detections", code)]))) == ["_anywhere"]
        assert list(policies.check(facts_of([("ground_truth", code)]))) == ["_groups", "_anywhere"]
    facts = facts_of()
    facts.evidence.found.posed = 1
    assert list(policies.check(facts)) == ["_groups"]
    assert nothing(policies, facts_of())


def test_which_comparisons_of_sizes_follow(monkeypatch):
    for name in ("_tiny", "_missed", "_regions"):
        monkeypatch.setattr(sizes, name, lambda *given, name=name: [name])
    assert list(sizes.check(facts_of())) == ["_tiny", "_missed", "_regions"]
    assert list(sizes.check(facts_of([("detections", "sizes_cut")]))) == ["_tiny", "_regions"]
    monkeypatch.setattr(sizes, "_tiny", lambda facts: [])
    assert nothing(sizes, facts_of())


@pytest.mark.parametrize(("swapped", "away", "asked"), [(0, 5, True), (0, 4, False), (3, 5, True)])
def test_which_comparisons_of_poses_follow(monkeypatch, swapped, away, asked):
    """Points that lie in another order are not looked for elsewhere; the order is told by points that differ."""
    count = 12
    at = np.arange(count)
    far = np.where((at >= swapped) & (at < swapped + away), 0.251, 0.25)
    far[:swapped] = 9
    made = SimpleNamespace(rows=at, own=None, distances=lambda own: np.tile(far[:, None], (1, 3)))
    monkeypatch.setattr(poses, "_contradictions", lambda side: ["contradictions"])
    monkeypatch.setattr(poses, "compared", lambda evidence: made)
    monkeypatch.setattr(poses, "permutation", lambda made, plain: np.array([1, 0, 2]) if swapped else None)
    monkeypatch.setattr(poses, "_exchanged", lambda *given: (at < swapped, at < 9))
    monkeypatch.setattr(poses, "_cause", lambda evidence, made, flags: f"cause of {flags.sum()}")
    said = []
    monkeypatch.setattr(poses, "_parts", lambda evidence, made, flags, known, code, more: said.append(
        (code, np.flatnonzero(flags).tolist(), int(known.sum()), more)) or [code])  # fmt: skip
    side = SimpleNamespace(posed=1)
    facts = facts_of(truth=side, found=side, schema=False)
    order = [("keypoints_permuted", [*range(swapped)], 9, "of the points 1 is 2, 2 is 1")] if swapped else []
    wanted = [*range(swapped, swapped + away)]
    cause = f"cause of {away}" if asked else ""
    assert list(poses.check(facts)) == ["contradictions", *[one[0] for one in order], "keypoints_misplaced"]
    assert said == [*order, ("keypoints_misplaced", wanted, count - swapped, cause)]
    for truth, found, told in ((None, 1, []), (1, None, ["contradictions"])):
        facts = facts_of(truth=SimpleNamespace(posed=truth), found=SimpleNamespace(posed=found), schema=False)
        assert list(poses.check(facts)) == told
    facts = facts_of(truth=side, found=None, schema=False)
    assert list(poses.check(facts)) == ["contradictions"]
    facts = facts_of(truth=side, found=side, schema=True)
    assert "contradictions" not in list(poses.check(facts))
    monkeypatch.setattr(poses, "_contradictions", lambda side: [])
    assert nothing(poses, facts_of(truth=side, found=side, schema=False))
    monkeypatch.setattr(poses, "compared", lambda evidence: None)
    assert list(poses.check(facts_of(truth=side, found=side, schema=False))) == []


# -------------------------------------------------------------------------------------------------------------- repeats


def repeats_flow(monkeypatch, found=10, within_unit=False, agreement=1, left=(), constant=0, aside=0):
    called = []
    rows = np.arange(found)
    columns = {"table": SimpleNamespace(within_unit=within_unit), "constant": np.zeros(found, bool), "unit": "detection",
               "aside": rows < aside, "image": rows, "boxes": np.tile([1.0, 2, 3, 4], (found, 1)),
               "records": lambda self, rows: {}}  # fmt: skip
    side = type("Side", (), {**columns, "__len__": lambda self: found})()
    facts = SimpleNamespace(sides=[side], found=side, agreement=agreement)

    def stub(name, value):
        monkeypatch.setattr(repeats, name, lambda *given: called.append(name) or value)

    stub("constant", rows < constant)
    stub("_best", rows)
    stub("_left_over", list(left))
    stub("_stale", ["stale"])
    stub("_in_place", ["in place"])
    stub("_pairs", np.zeros((2, 0), int))
    stub("_of_aliases", np.zeros(0, bool))
    for name in ("_of_boxes", "_twice"):
        monkeypatch.setattr(
            repeats, name, lambda facts, side, best, pairs, name=name: called.append(name) or [(name, best.tolist())]
        )
    return list(repeats.check(facts)), called


def test_which_comparisons_of_repeated_records_follow(monkeypatch):
    rows = list(range(10))
    made, called = repeats_flow(monkeypatch)
    assert called == [
        "constant",
        "_best",
        "_left_over",
        "_stale",
        "_in_place",
        "_pairs",
        "_of_aliases",
        "_of_boxes",
        "_twice",
    ]
    assert made == ["stale", "in place", ("_of_boxes", rows), ("_twice", rows)]
    made, called = repeats_flow(monkeypatch, left=["left over"])
    assert "_stale" not in called
    assert made[0] == "left over"
    assert "_in_place" not in repeats_flow(monkeypatch, agreement=None)[1]
    assert {"constant", "_in_place"}.isdisjoint(repeats_flow(monkeypatch, within_unit=True)[1])
    assert repeats_flow(monkeypatch, found=0) == ([], [])
    made, _ = repeats_flow(monkeypatch, aside=2)
    assert made[-1] == ("_twice", rows[2:])
    for aside, told in ((2, True), (3, False)):  # half of four boxes may be copies
        made, _ = repeats_flow(monkeypatch, constant=4, aside=aside)
        assert (getattr(made[0], "code", None) == "constant_boxes") is told
        assert not told or (made[0].count, made[0].says.partition(": ")[2]) == (
            4, "x, y, width, height 1, 2, 3, 4, on 4 images"
        )  # fmt: skip
