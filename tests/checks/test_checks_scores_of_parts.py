"""Scores that are reversed or all the same on a part of the images: what is said, and either side of each limit."""

from __future__ import annotations

import functools
import re
from types import SimpleNamespace

import numpy as np
import planting
import pytest
from planting.scenes import overlap
from test_checks_limits import codes, side

import detmap
from detmap.checks import scores, uneven
from detmap.checks.rates import Part
from detmap.checks.reversal import reversal_of

ANYWHERE = "anywhere"


@functools.cache
def scene(seed, kind="sparse", images=300):
    """The first images of a clean scene."""
    made = planting.scene(seed, kind)
    first = {one["id"] for one in made.data().truth["images"][:images]}
    data = made.data()
    truth = dict(data.truth, images=[one for one in data.truth["images"] if one["id"] in first])
    truth["annotations"] = [one for one in truth["annotations"] if one["image_id"] in first]
    return truth, [one for one in data.found if one["image_id"] in first]


def planted(seed, share, change, where="", kind="sparse"):
    """A scene with other scores on a run of images (or on images anywhere), and the ids of these images."""
    truth, found = scene(seed, kind)
    ids, rng = [one["id"] for one in truth["images"]], np.random.default_rng(seed)
    count = round(share * len(ids))
    first = int(rng.integers(len(ids) - count))
    part = rng.choice(ids, count, replace=False).tolist() if where == ANYWHERE else ids[first : first + count]
    return (
        truth,
        [dict(one, score=change(one["score"])) if one["image_id"] in part else one for one in found],
        set(part),
    )


def findings(truth, found):
    return {one.code: one for one in detmap.check(truth, found).findings}


def images_said(says, found):
    """The ids of the images with detections in the range of ids that a finding names."""
    first, last = map(int, re.search(r"images (\d+) to (\d+), in the order of ids", says).groups())
    return {one["image_id"] for one in found if first <= one["image_id"] <= last}


# ----------------------------------------------------------------------------------------------------------- reversed scores


def auc(truth, found):
    """The share of pairs of a detection on an object and one on none in which the first has the higher score."""
    boxes = {}
    for one in truth["annotations"]:
        boxes.setdefault(one["image_id"], []).append(one["bbox"])
    on, off = [], []
    for one in found:
        best = max((overlap(one["bbox"], box) for box in boxes.get(one["image_id"], [])), default=0)
        (on if best >= 0.5 else off).append(one["score"])
    above = np.sign(np.subtract.outer(on, off))
    return (above.mean() + 1) / 2


REVERSED = {"1 - p": lambda p: 1 - p, "- p": lambda p: -p}


@pytest.mark.parametrize("way", REVERSED)
@pytest.mark.parametrize(("seed", "share", "where"), [(0, 0.1, ""), (1, 0.3, ""), (2, 0.1, ANYWHERE)])
def test_reversed_scores_are_counted_as_the_sentence_says(seed, share, where, way):
    truth, found, part = planted(seed, share, REVERSED[way], where)
    made = findings(truth, found)
    says = made["inverted_scores"].says
    if where == ANYWHERE:
        images = int(re.search(r"on (\d+) images", says)[1])
        assert abs(images - len(part)) <= 3  # an image of one detection may have a score beyond 0.5
    else:
        there = images_said(says, found)
        assert len(there ^ part) <= 3
        inside = [one for one in found if one["image_id"] in there]
        assert made["inverted_scores"].count == len(inside)
        own, rest = (int(one) for one in re.findall(r"in (\d+)%", says))
        outside = [one for one in found if one["image_id"] not in there]
        assert max(len(inside), len(outside)) <= 5000  # more are sampled
        assert (own, rest) == (round(100 * auc(truth, inside)), round(100 * auc(truth, outside)))
    # nothing else is said but what is true of the scores as they are
    assert set(made) <= {"inverted_scores", "quantised_scores", "images_without_detections"}
    assert "inverted_scores" not in findings(*scene(seed))


def test_scores_of_percent_are_reversed():
    truth, found, _ = planted(3, 0.2, lambda p: 1 - p)
    made = findings(truth, [dict(one, score=100 * one["score"]) for one in found])
    assert {"inverted_scores", "percentage_scores"} <= set(made) <= {
        "inverted_scores", "percentage_scores", "images_without_detections"
    }  # fmt: skip


def turned(count, own=0.0, rest=1.0, images=200):
    """The images said to have reversed scores if so many have high scores, of which so many pairs are in order."""
    image = np.repeat(np.arange(images), 4)
    there = image < count
    scores = np.where(there, 0.9, 0.1) + np.arange(image.size) % 4 / 100
    agreement = SimpleNamespace(
        scores=scores, found=SimpleNamespace(image=image), truth=side(count=images),
        ranked_of=lambda rows: (own if there[rows].mean() > 0.5 else rest, 0.01),
    )  # fmt: skip
    agreement.truth = SimpleNamespace(on=side(count=images).on)
    made = reversal_of(agreement, lambda flags, known: None, lambda part: part.says)
    if made is not None:
        assert (made.own, made.rest, made.images.tolist()) == (own, rest, (np.arange(images) < count).tolist())
        np.testing.assert_array_equal(made.scores, np.where(there, 1 - scores, scores))
    return made is not None


def test_either_side_of_reversed_scores_of_a_part():
    """Five images; 0.35 as of a whole file; scores of others that say nothing (0.5) do not show what high ones mean."""
    assert turned(20)
    assert turned(5)
    assert not turned(4)
    assert turned(20, own=0.349)
    assert not turned(20, own=0.351)
    assert turned(20, rest=0.601)
    assert not turned(20, rest=0.599)


def pairs(count, gap):
    """So many pairs of places in `range(2 * count)` that are `gap` apart."""
    low = np.arange(2 * count)[(np.arange(2 * count) // gap) % 2 == 0]
    assert low.size == count
    return low, low + gap


@pytest.mark.parametrize(
    ("behind", "ahead", "said"), [(10, 100, "scores_rank_nothing"), (20, 150, "inverted_scores"), (-1, 150, None)]
)
def test_either_side_of_scores_that_are_reversed_and_not_merely_shuffled(monkeypatch, behind, ahead, said):
    """On 100 of 400 images the scores on objects are behind by 0.05 or 0.1 of the ranks there, if they are ahead by 0.125 or
    0.1875 elsewhere: by 0.4 or 0.53 of it. Of shuffled scores they would be neither.
    """
    place, images = np.arange(400), 400
    few, many = pairs(100, abs(behind)) if behind > 0 else pairs(100, 50)[::-1]
    low, high = pairs(300, ahead)
    evidence = SimpleNamespace(
        detections=np.arange(800), finders=(place, None), images=images, frames=1.0, truth=side(count=images),
        scores=np.concatenate([few, high - 1000.0, many, low - 1000.0]),
        found=type("Found", (), {
            "image": np.tile(place, 2), "__len__": lambda self: 800, "records": lambda self, rows: {}
        })(),
    )  # fmt: skip
    evidence.by_score = np.argsort(-evidence.scores, kind="stable")
    part = Part(place < 100, "images 0 to 99", place < 100)
    monkeypatch.setattr(uneven, "_part", lambda *given: iter([(part, False)]))
    made = list(uneven.ranking(SimpleNamespace(parts=[]), evidence))
    assert codes(made) == ([] if said is None else [said])
    assert [one.count for one in made] == [200 if said == "inverted_scores" else 100] * len(made)


# ---------------------------------------------------------------------------------------------------------------- one score


@pytest.mark.parametrize(
    ("seed", "share", "where", "least"),
    [(0, 0.1, "", 0.3), (1, 0.3, "", 0.5), (2, 0.2, ANYWHERE, 0.3), (3, 0.05, "", 0)],
)
def test_scores_that_are_all_the_same_are_counted_as_the_sentence_says(seed, share, where, least):
    """Hard labels: of the detections of a part those of a score are kept, with a score of 1. Images without detections were
    said to be lost.
    """
    truth, found, part = planted(seed, share, float, where)
    kept = [
        dict(one, score=1.0) if one["image_id"] in part else one
        for one in found
        if one["image_id"] not in part or one["score"] >= least
    ]
    made = findings(truth, kept)
    says = made["constant_scores"].says
    hard = [one for one in kept if one["image_id"] in part]
    if where == ANYWHERE:
        images, inside = int(re.search(r"1; on (\d+) images$", says)[1]), hard
        assert images == len({one["image_id"] for one in hard})
    else:
        there = images_said(says, kept)
        inside = [one for one in kept if one["image_id"] in there and one["score"] == 1.0]
        assert len(inside) >= 0.95 * len(hard)
        listed = [one["id"] for one in truth["images"] if min(there) <= one["id"] <= max(there)]
        assert f"{len(listed)} images with {sum(one['image_id'] in there for one in kept):,} detections" in says
    assert says.startswith(f"All of {len(inside):,} detections have one score: 1; ")
    assert made["constant_scores"].count == len(inside)
    assert set(made) <= {"constant_scores", "images_without_detections", "quantised_scores"}
    assert (least >= 0.3) == ("images_without_detections" in made)


def test_images_lost_beside_scores_that_are_all_the_same_are_said():
    """Twice as many images without detections as a cut explains are not explained."""
    truth, found, part = planted(0, 0.2, lambda p: 1.0)
    lost = set(sorted(part)[::2])
    made = findings(truth, [one for one in found if one["image_id"] not in lost])
    assert {"constant_scores", "missing_shard"} <= set(made)


def one_score(counts, rate=0.0, images=300):
    """The number of detections said to have one score, if images have so many with it; others have it at a rate."""
    counts = np.asarray(counts)
    held = np.where(np.arange(images) < counts.size, np.append(counts, np.zeros(images - counts.size, int)), 10)
    image = np.repeat(np.arange(images), held)
    values = 0.5 + np.arange(image.size) / 1e5
    values[image < counts.size] = 0.5
    at = np.flatnonzero(image >= counts.size)
    spread = at[np.arange(at.size) % 10 < 10 * rate]
    values[spread] = 0.5
    found = SimpleNamespace(
        image=image, aside=np.zeros(image.size, bool), on=side(count=images).on, records=lambda rows: {}
    )  # fmt: skip
    facts = SimpleNamespace(gathered=lambda *given: None, causes=set(), parts=[], cut=None)
    made = list(scores._flat(facts, found, values))
    assert len(facts.parts) == len(facts.causes) == len(made)
    return [one.count for one in made]


def test_either_side_of_scores_that_are_all_the_same():
    """Six images: where one is expected by chance, six or more are once in 1,700 times."""
    assert one_score([2] * 6) == [12]
    assert one_score([2] * 5) == []
    assert one_score([2] * 5 + [1]) == [11]  # an image of one detection counts if others have another score
    assert one_score([2] * 4 + [1] * 40) == []  # but at least five of two detections must be there
    assert one_score([1] * 50) == []
    assert one_score([3] * 50, rate=0.3) == [150]  # 50 * 0.3 ^ 3 = 1.4 are expected
    assert one_score([3] * 50, rate=0.4) == []  # 3.2, more than a twentieth
    assert one_score([3] * 50 + [1] * 50, rate=0.3) == [150]  # of single ones 15 are expected


@pytest.mark.parametrize(("inside", "cut"), [(20, None), (10, 0.5), (5, 0.75)])
def test_a_part_is_cut_as_far_as_its_detections_are_fewer(inside, cut):
    held = np.where(np.arange(100) < 20, inside, 20)
    image = np.repeat(np.arange(100), held)
    values = np.linspace(0, 1, image.size)
    values[image >= 20] = np.linspace(0, 1, 1600)
    made = scores._cut_elsewhere(values, image, np.arange(100) < 20)
    assert (made is None) is (cut is None)
    if cut is not None:
        assert abs(made[1] - cut) < 1e-3
        np.testing.assert_array_equal(made[0], np.arange(100) < 20)


# ------------------------------------------------------------------------------------------------------------- two scales


def logit(score):
    return round(float(np.log(score / (1 - score))), 5)


def percent(score):
    return 100 * score


HOW = {
    logit: "as logits of scores, 1 / (1 + exp(-x)), they are as those of others",
    percent: "divided by 100 they are as those of others",
}


@pytest.mark.parametrize("change", [logit, percent])
@pytest.mark.parametrize(("seed", "share", "where"), [(0, 0.1, ""), (1, 0.3, ""), (2, 0.2, ANYWHERE)])
def test_scores_of_another_scale_are_counted_as_the_sentence_says(seed, share, where, change):
    truth, found, part = planted(seed, share, change, where)
    one = findings(truth, found)["mixed_scores"]
    own = [d["score"] for d in found if d["image_id"] in part]
    beyond = [score for score in own if not 0 <= score <= 1]
    assert one.says.endswith(HOW[change])
    told = int(re.search(r"others: (?:.*?; )?([\d,]+) are below 0 or above 1", one.says)[1].replace(",", ""))
    assert told == len(beyond)
    assert ("elsewhere all lie within" in one.says) is (not where)
    if where:  # an image whose scores are all low is none of them in percent
        full = {d["image_id"] for d in found if not 0 <= d["score"] <= 1}
        assert one.count == sum(d["image_id"] in full for d in found)
        assert one.says.startswith(f"at least {one.count:,} ")
    else:
        assert one.count == len(own)
        assert f"{len(part)} images with {len(own):,} detections; " in one.says


def test_records_of_another_scale_on_all_images_are_counted_alone():
    truth, found = scene(0)
    rng = np.random.default_rng(0)
    found = [dict(one, score=100 * one["score"]) if rng.random() < 0.3 else one for one in found]
    one = findings(truth, found)["mixed_scores"]
    assert one.count == sum(d["score"] > 1 for d in found)
    assert "divided" not in one.says


@pytest.mark.parametrize(("least", "said"), [(0.199, 1), (0.201, 0)])
def test_either_side_of_scores_that_are_as_those_of_others(least, said):
    """The lowest quartile, of scores that are uniform from there on, has at most 0.4 of the others below it."""
    others = np.linspace(0, 1, 10_001)
    own = 100 * np.linspace(least, 1, 10_001)
    assert len(scores._rescaled(own, others)) == said
    assert not scores._rescaled(own, others + 0.01)
    assert not scores._rescaled(own[::2] + 1, others)


def sigmoid(score):
    return round(float(1 / (1 + np.exp(-score))), 6)


def hundredth(score):
    return score / 100


SQUEEZED = {
    sigmoid: (
        0.5,
        0.7311,
        "as logits, log(x / (1 - x)), as where the sigmoid is applied twice, they are as those of others",
    ),
    hundredth: (0, 0.01, "multiplied by 100, as where they are divided twice, they are as those of others"),
}


@pytest.mark.parametrize("change", SQUEEZED)
@pytest.mark.parametrize(("seed", "share"), [(0, 0.1), (1, 0.3), (2, 0.05)])
def test_scores_in_a_band_are_counted_as_the_sentence_says(seed, share, change):
    low, high, how = SQUEEZED[change]
    truth, found, part = planted(seed, share, change)
    made = findings(truth, found)
    one = made["mixed_scores"]
    there = images_said(one.says, found)
    own = [d["score"] for d in found if d["image_id"] in there]
    assert len(there ^ {d["image_id"] for d in found if d["image_id"] in part}) <= 2
    within = [score for score in own if low <= score <= high]
    assert one.count == len(within)
    assert f"with {len(own):,} detections; from {min(within):.3g} to {max(within):.3g}; " in one.says
    assert one.says.endswith(how)
    assert "uneven_scores" not in made


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (sigmoid, True),
        (lambda p: 0.5 + p / 2, False),  # above 0.7311
        (lambda p: 0.5 + p / 20, False),  # in the band, but not as those of others
        (lambda p: p / 2, False),
        (lambda p: 0.6, False),
    ],
)
def test_scores_in_a_band_are_a_function_of_those_of_others(change, said):
    truth, found, _ = planted(1, 0.3, change)
    assert ("mixed_scores" in findings(truth, found)) is said


def in_band(count, high=0.7311, images=400):
    """The number of detections said to lie in a band if, of a part of 100 images, so many have all of theirs there."""
    image = np.repeat(np.arange(images), 8)
    values = np.tile(np.linspace(0.001, 0.999, 8), images)
    values[image < 100] = np.linspace(0.5, high, 8)[np.arange(800) % 8]
    values[(image >= count) & (image < 100) & (np.arange(image.size) % 8 == 0)] = 0.9
    part = Part(np.arange(images) < 100, "images 0 to 99", np.arange(images) < 100)
    found = SimpleNamespace(image=image, on=side(count=images).on, records=lambda rows: {})
    facts = SimpleNamespace(schema=False, gathered=lambda *given: part, says_part=lambda part: part.says)
    return [one.count for one in scores._squeezed(facts, found, values)]


def test_either_side_of_images_in_a_band():
    """Nine tenths of the images; 0.7311 is the sigmoid of 1."""
    assert in_band(100) == [800]
    assert in_band(90) == [790]
    assert in_band(89) == []
    assert in_band(100, high=0.7312) == []


@pytest.mark.parametrize(("seed", "share"), [(0, 0.1), (1, 0.3), (2, 0.2)])
def test_scores_divided_by_the_highest_of_their_image_are_counted_as_the_sentence_says(seed, share):
    truth, found, part = planted(seed, share, float)
    tops = {}
    for one in found:
        tops[one["image_id"]] = max(tops.get(one["image_id"], 0), one["score"])
    found = [
        dict(one, score=round(one["score"] / tops[one["image_id"]], 6)) if one["image_id"] in part else one
        for one in found
    ]
    made = findings(truth, found)
    one = made["mixed_scores"]
    there = images_said(one.says, found)
    assert len(there ^ (part & set(tops))) <= 2
    best = {d["image_id"] for d in found if d["score"] == 1}
    assert one.count == sum(d["image_id"] in there for d in found)
    assert f"the highest score of {len(best & there)} of them is 1, as where" in one.says
    assert one.says.endswith(f"elsewhere that of {len(best - there)}")
    assert not {"uneven_scores", "piled_scores"} & set(made)


def divided(monkeypatch, best=100, elsewhere=0, again=0, each=2, part=100, images=400, frames=1.0):
    """The number of detections said to be normalised if so many images of a part, and of others, have a score of 1, and an
    object stays for some images.
    """
    image = np.repeat(np.arange(images), each)
    values = 0.5 + np.arange(image.size) / 1e5
    first = np.arange(image.size) % each == 0
    values[first & ((image < best) | ((image >= part) & (image < part + elsewhere)))] = 1.0
    values[(np.arange(image.size) % each == 1) & (image < again)] = 1.0
    there = Part(np.arange(images) < part, "images 0 on", np.arange(images) < part)
    found = SimpleNamespace(
        image=image, on=side(count=images).on, records=lambda rows: {}, sized=np.ones(image.size, bool),
        aside=np.zeros(image.size, bool),
    )  # fmt: skip
    facts = SimpleNamespace(schema=False, gathered=lambda *given: there, says_part=lambda part: part.says, truth=None)
    monkeypatch.setattr(scores, "Evidence", lambda *given: SimpleNamespace(frames=frames))
    return [one.count for one in scores._normalised(facts, found, values)]


def test_either_side_of_scores_that_are_normalised(monkeypatch):
    said = functools.partial(divided, monkeypatch)
    assert said() == [200]
    assert said(90) == [200]
    assert said(89) == []
    assert said(8, part=8) == [16]
    assert said(7, part=7) == []
    assert said(16, part=16, frames=2.0) == [32]
    assert said(15, part=15, frames=2.0) == []
    assert said(20, part=20, frames=3.0) == [40]
    assert said(19, part=19, frames=3.0) == []
    assert said(elsewhere=30) == [200]
    assert said(elsewhere=31) == []
    assert said(again=10) == [200]
    assert said(again=11) == []  # clipped
    assert said(each=1) == []  # one detection of each image, of a score of 1
