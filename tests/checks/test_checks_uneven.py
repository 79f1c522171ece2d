"""Statistics of parts, categories and boxes, computed again, and what is said of them, word for word."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import side
from test_checks_limits_scores import of_numbers

from detmap.checks import uneven
from detmap.checks.rates import Division, Order, Part


def told(made):
    """The end of each sentence, after what its code says."""
    return [(one.code, one.count, one.says.partition(": ")[2], one.records) for one in made]


# ------------------------------------------------------------------------------------------------------------- figures


def test_ranks_within_codes():
    rng = np.random.default_rng(0)
    for codes in (1, 2, 5, 300):
        for _ in range(5):
            of, values = rng.integers(0, codes, 60), rng.integers(0, 12, 60) / 4
            wanted = [
                (np.sum(values[of == code] < value) + np.sum(values[of == code] == value) / 2) / np.sum(of == code)
                for code, value in zip(of, values, strict=True)
            ]
            assert uneven.ranks(values, of).tolist() == wanted
            assert uneven.ranks(values, of, np.argsort(values, kind="stable")).tolist() == wanted


def test_the_place_of_a_median():
    own, rest = np.array([1.0, 2, 3, 9]), np.array([2.5, 2.5, 1, 2, 3, 4, 5, 0, 0, 2.6])
    assert uneven.place_of(own, rest, False) == pytest.approx(4 / 10 + 1 / 10)
    assert uneven.place_of(own, rest, True) == pytest.approx(4 / 10 + 1 / 10)
    assert uneven.place_of(np.array([0.5]), rest, False) == 0.2
    assert uneven.place_of(np.array([0.5]), rest, True) == 0.8
    assert uneven.place_of(np.array([2.0]), rest, True) == pytest.approx(6 / 10 + 1 / 20)


def test_few_or_equal_scores_are_not_compared(monkeypatch):
    """Of detections that find nothing at least 20, and of all at least two scores that are finite."""
    found = type("Found", (), {"image": np.arange(25), "__len__": lambda self: 25})()
    evidence = SimpleNamespace(
        found=found, detections=np.arange(25), scores=np.arange(25) / 10, label=np.arange(25) % 3, images=25,
        object_label=np.zeros(25, int), object_image=np.arange(25),
    )  # fmt: skip
    made = uneven._of_others(evidence, np.arange(5))
    assert (made.scores * 10).round().tolist() == made.image.tolist() == list(range(5, 25))
    assert made.label.tolist() == [at % 3 for at in range(5, 25)]
    assert made.words == "{many} that find no object,"
    assert uneven._of_others(evidence, np.arange(6)) is None
    monkeypatch.setattr(uneven, "SAMPLE", 20)
    assert uneven._of_others(evidence, np.arange(5)).image.tolist() == list(range(5, 25))
    monkeypatch.setattr(uneven, "SAMPLE", 19)
    some = uneven._of_others(evidence, np.arange(5))
    assert (len(set(some.image.tolist())), some.words) == (19, "at least {many} that find no object,")
    for name in ("_of_categories", "_part_of_scores", "_of_part", "_between"):
        monkeypatch.setattr(uneven, name, lambda *given, **more: pytest.fail("compared"))
    rows = np.arange(25)
    for odd in (np.full(25, 0.5), np.r_[np.inf, np.arange(24.0)]):
        evidence.scores = odd
        assert list(uneven._scores(evidence, rows, rows, rows)) == []
        assert list(uneven.differing(SimpleNamespace(caused=lambda *given: False), evidence)) == []
    evidence.scores = np.arange(25.0)
    assert list(uneven.differing(SimpleNamespace(caused=lambda *given: True), evidence)) == []


def test_means_of_images():
    where, mean, held = uneven._by_image(np.array([3, 1, 3, 3]), np.array([1.0, 5, 2, 6]), 6)
    assert (where.tolist(), mean.tolist(), held.tolist()) == ([1, 3], [5, 3], [1, 3])


def test_values_among_the_lowest_or_highest_of_their_bin():
    value, bins = np.array([1.0, 2, 3, 4, 5, 6, 7, 8]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    assert np.flatnonzero(uneven._flags(value, bins, 0.5, False)).tolist() == [0, 1, 4, 5]
    assert np.flatnonzero(uneven._flags(value, bins, 0.5, True)).tolist() == [2, 3, 6, 7]
    assert np.flatnonzero(uneven._flags(value, 0 * bins, 0.1, True)).tolist() == [7]


@pytest.mark.parametrize(("few", "many"), [(2, 3), (5, 6), (11, 12), (1, 2)])
def test_images_are_compared_with_those_of_as_many_records(monkeypatch, few, many):
    """Bins of 1, 2, 3 to 5, 6 to 11, and 12 or more records."""
    given = []
    monkeypatch.setattr(uneven, "_flags", lambda value, bins, split, high: given.append(bins) or value > 9)
    evidence = SimpleNamespace(division=Division(np.arange(32), [], []), frames=1.0)
    records = np.repeat([few, many], 16)
    one = uneven.Statistic("", "", np.arange(32), np.zeros(32), records)
    assert list(uneven._part(evidence, one, 1)) == []
    assert [np.unique(bins, return_counts=True)[1].tolist() for bins in given] == [[16, 16]] * 4
    given.clear()
    less = uneven.Statistic("", "", np.arange(31), np.zeros(31), records[1:])
    assert list(uneven._part(evidence, less, 1)) == given == []


# ----------------------------------------------------------------------------------------------------------- categories


def of_categories(scores, label, names):
    """What is said of categories, by quantiles of the scores of each and of all others."""
    out = []
    for one, name in enumerate(names):
        own, others = scores[label == one], scores[label != one]
        if own.size < 20 or others.size < 20:
            continue
        low, high = np.quantile(own, [0.05, 0.95])
        least, most = np.quantile(others, [0.05, 0.95])
        above = np.mean(others > own.max())
        if high >= least and above >= 0.5 and (1 - above) ** (0.3 * own.size) < 1e-6:
            out.append((own.size, f"category {name}: none above {own.max():.3g}, as {above:.0%} of the others are"))
        if high < least or low > most:
            out.append(
                (own.size, f"category {name}: median {np.median(own):.3g}; of the others {np.median(others):.3g}")
            )
    return out


def test_scores_of_categories_beside_those_of_others():
    names = ("cat", "dog", "cow", "emu")
    some = 0
    rng = np.random.default_rng(0)
    for at in range(200):
        held = rng.choice([5, 19, 20, 25, 60, 100], 4)
        label = np.repeat(np.arange(4), held)
        low = rng.choice([0.0, 0.0, 0.3, 0.45, 0.5, 0.55], 4)[label]
        scores = np.round(low + rng.random(label.size) * rng.choice([0.3, 0.45, 0.5], 4)[label], 2 + at % 2)
        evidence = SimpleNamespace(classes=4, truth=side())
        made = list(uneven._of_categories(evidence, scores, label, np.arange(label.size)))
        assert [(one.count, one.says.partition(": ")[2]) for one in made] == of_categories(scores, label, names)
        assert {one.code for one in made} <= {"uneven_scores"}
        for one in made:
            of = names.index(one.says.partition("category ")[2].partition(":")[0])
            assert one.records == tuple(np.flatnonzero(label == of)[:10].tolist())
            assert f"{one.count} detections that find objects, with" in one.says
        some += len(made)
    assert some > 30


def of_two(own, others):
    """What is said of a category beside another one."""
    scores, label = np.r_[own, others], np.r_[np.zeros(len(own), int), np.ones(len(others), int)]
    evidence = SimpleNamespace(classes=2, truth=side())
    made = uneven._of_categories(evidence, scores, label, np.arange(label.size))
    return [one.says.partition("cat: ")[2] for one in made if "category cat" in one.says]


def test_scores_of_categories_that_touch_those_of_others():
    same = np.full(30, 0.5)
    assert of_two(same, np.r_[same, np.full(20, 0.9)]) == of_two(same, np.r_[same, np.full(20, 0.1)]) == []
    assert of_two(same - 0.01, np.r_[same, np.full(20, 0.9)]) == ["median 0.49; of the others 0.5"]
    assert of_two(same + 0.01, np.r_[same, np.full(20, 0.1)]) == ["median 0.51; of the others 0.5"]
    many = np.full(67, 0.5)
    half = np.r_[np.full(40, 0.5), np.full(40, 0.9)]
    assert of_two(many, half) == ["none above 0.5, as 50% of the others are"]
    assert of_two(many, half[:-1]) == of_two(many[:66], half) == []
    assert of_two(same[:20], np.full(20, 0.9)) == ["median 0.5; of the others 0.9"]
    assert of_two(same[:19], np.full(20, 0.9)) == of_two(same[:20], np.full(19, 0.9)) == []


def test_the_variance_that_lies_between_images():
    rng = np.random.default_rng(1)
    image = np.r_[np.repeat(np.arange(50), 3), np.arange(50, 70)]
    rank = rng.normal(0, 1, 70)[image] + 0.5 * rng.normal(0, 1, image.size)
    evidence = SimpleNamespace(images=80, truth=side(count=80))
    (made,) = uneven._between(evidence, rank, image, rank)
    several = rank[:150].reshape(50, 3)
    share = 1 - several.var(axis=1, ddof=1).mean() / several.var()
    assert made.count == 150
    assert made.says.endswith(
        f": {share:.0%} of the variance of their ranks lies between the 50 images that have several"
    )
    assert made.records == tuple(range(10))


# ---------------------------------------------------------------------------------------------------------------- ranks


def listed(falling, others, held=6, more=0):
    """Whether 20 images of a part list detections by score, of 40 images of which some do."""
    rng = np.random.default_rng(0)
    image, scores = [], []
    for at in range(40):
        falls = at < falling or 20 <= at < 20 + others
        values = -np.arange(held) / 10 if falls else np.roll(-np.arange(held) / 10, 1)
        image += [at] * held
        scores += values.tolist()
    image += [39 + 1 + n for n in range(more) for _ in range(held - 1)]
    scores += [0.0] * (len(image) - len(scores))
    order = rng.permutation(40)[image] if not more else np.array(image)
    part = np.zeros(60, bool)
    part[np.unique(order[: 20 * held])] = True
    part[40 : 40 + more] = True
    evidence = SimpleNamespace(
        detections=np.arange(len(image)), found=SimpleNamespace(image=order), scores=np.array(scores), images=60
    )
    return uneven._listed(evidence, part)


def test_either_side_of_images_that_list_detections_by_score():
    assert listed(18, 10)
    assert not listed(17, 10)
    assert not listed(18, 11)
    assert listed(18, 10, more=5)  # of images with fewer detections nothing is known
    assert not listed(20, 0, held=5)


def ranking(part, ahead, own, images=400, seed=0, right=1, wrong=3):
    """What is said of scores that are higher on objects by a difference, and on the part by another one."""
    rng = np.random.default_rng(seed)
    image = np.concatenate([np.repeat(np.arange(images), right), np.repeat(np.arange(images), wrong)])
    finds = np.arange(image.size) < right * images
    by = np.where(image < part, own, ahead)
    scores = rng.random(image.size) + by * finds
    found = type("Found", (), {"image": image, "__len__": lambda self: image.size, "records": lambda *rows: {}})()
    evidence = SimpleNamespace(
        detections=np.arange(image.size), finders=(np.flatnonzero(finds), None), scores=scores, images=images, frames=1.0,
        found=found, division=Division(np.arange(images), [Order("ids", np.arange(images))], []),
        by_score=np.argsort(-scores, kind="stable"),
    )  # fmt: skip
    facts = SimpleNamespace(parts=[])
    made = told(uneven.ranking(facts, evidence))
    rank = scores.argsort().argsort()
    sums = [np.bincount(image[which], rank[which]) / np.bincount(image[which]) for which in (finds, ~finds)]
    return made, sums[0] < sums[1], facts.parts


@pytest.mark.parametrize("part", [100, 60])
def test_a_part_in_which_scores_say_nothing(part):
    ((code, count, says, _),), lower, parts = ranking(part, 0.6, 0.0)
    assert code == "scores_rank_nothing"
    ((images, of),) = parts
    inside = np.flatnonzero(images)
    assert of is None
    assert abs(inside.size - part) < 20
    assert count == inside.size
    rest = np.setdiff1d(np.arange(400), inside)
    assert says == (
        f"images {inside[0]} to {inside[-1]}, in the order of ids: {lower[inside].mean():.0%} of {inside.size} images there "
        f"have the lower mean score on objects; elsewhere {lower[rest].mean():.0%}"
    )


def test_a_part_in_which_scores_are_reversed():
    ((code, count, says, _),), _, parts = ranking(100, 0.6, -0.6)
    assert code == "inverted_scores"
    assert count == 4 * parts[0][0].sum()
    assert says.startswith("images 0 to ")


def exact(own, usual, listed=False):
    """What is said of a part of 16 of 48 images: the mean rank of a detection that finds an object, minus that of others, in
    the part and elsewhere.
    """
    images = 48
    image = np.tile(np.arange(images), 2)
    finds = np.arange(2 * images) < images
    there = np.arange(images) < 16
    found = type("Found", (), {"image": image, "__len__": lambda self: image.size, "records": lambda *rows: {}})()
    evidence = SimpleNamespace(
        detections=np.arange(image.size), finders=(np.flatnonzero(finds), None), scores=np.zeros(image.size), images=images,
        frames=1.0, found=found, by_score=np.arange(image.size),
    )  # fmt: skip
    calls = []

    def ranks(values, codes, order=None):
        """Ranks whose difference is as given: of all detections first, then of the part."""
        calls.append(values.size)
        if values.size == 2 * images:
            return np.where(finds, usual, 0.0)
        return np.where(np.arange(32) < 16, own, 0.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uneven, "ranks", ranks)
        patch.setattr(uneven, "_listed", lambda evidence, part: listed)
        patch.setattr(uneven, "_part", lambda *given: [(Part(there, "the part", there), False)])
        made = told(uneven.ranking(SimpleNamespace(parts=[]), evidence))
    return [(code, count) for code, count, _, _ in made], [one[2] for one in made]


def test_either_side_of_the_lead_of_detections_that_find_objects():
    """0.06 of all ranks; of a part a quarter of that elsewhere, or a half if it alone is listed by score."""
    nothing, reversed_ = [("scores_rank_nothing", 16)], [("inverted_scores", 32)]
    assert exact(0.0, 0.0625)[0] == nothing
    assert exact(0.0, 0.06)[0] == nothing
    assert exact(0.0, 0.0599) == (
        [("scores_rank_nothing", 48)],
        ["0% of 48 images have the lower mean score on objects"],
    )
    assert exact(0.0, -0.5)[1] == ["100% of 48 images have the lower mean score on objects"]
    assert exact(0.0624, 0.25)[0] == nothing
    assert exact(0.0625, 0.25)[0] == []
    assert exact(0.1249, 0.25, listed=True)[0] == nothing
    assert exact(0.125, 0.25, listed=True)[0] == []
    assert exact(0.0599, 0.1)[0] == nothing
    assert exact(0.06, 0.1)[0] == []
    assert exact(-0.25, 0.5)[0] == nothing
    assert exact(-0.2501, 0.5)[0] == reversed_
    says = "the part: 0% of 16 images there have the lower mean score on objects; elsewhere 0%"
    assert exact(0.0, 0.25)[1] == [says]
    assert exact(0.0, 0.25, listed=True)[1] == [f"{says}; there alone the file lists each image by descending score"]


def test_scores_that_say_nothing_on_any_image():
    ((code, count, says, _),), lower, parts = ranking(0, 0.0, 0.0)
    assert (code, count) == ("scores_rank_nothing", 400)
    assert says == f"{lower.mean():.0%} of 400 images have the lower mean score on objects"
    assert parts[0][0].all()
    assert ranking(0, 0.0, 0.0, images=31)[0] == ranking(400, 0.0, 0.9)[0] == []
    assert len(ranking(0, -0.1, 0.0, images=32)[0]) == 1
    assert len(ranking(0, -0.1, 0.0, images=40, right=2, wrong=1)[0]) == 1
    assert ranking(0, -0.1, 0.0, images=40, right=3, wrong=1)[0] == []


# ---------------------------------------------------------------------------------------------------------------- boxes


def drawn(image, larger, frames):
    """As in `uneven.drawn`, pair by pair."""
    images = sorted(set(image.tolist()))
    own = np.clip(larger.min(axis=1), 0, np.log(1.22))
    other = np.clip((-larger).min(axis=1), 0, np.log(1.22))
    own, other = own - own.mean(), other - other.mean()
    variance = (own**2).mean()
    if variance == 0:
        return None
    at = [np.flatnonzero(image == one) for one in images]

    def pairs(left, right):
        return np.array([sum(left[a] * right[b] for a in of for b in of if a != b) / (of.size - 1) for of in at])

    size = np.array([of.size for of in at])
    alike = pairs(own, own).sum() / size.sum() / variance
    error = np.sqrt(frames * ((pairs(own, own) - alike * variance * size) ** 2).sum()) / size.sum() / variance
    alike -= max(pairs(own, other).sum() / size.sum() / variance, 0)
    beyond = larger.min(axis=1) >= np.log(1.08)
    named = [one for one, of in zip(images, at, strict=True) if beyond[of].all()]
    expected = sum(beyond.mean() ** of.size for of in at)
    if len(named) < max(10, 2 * expected) or alike < 0.15 or alike - 3.1 * error < 0.06:
        return None
    return named, expected


def test_images_on_which_objects_are_drawn_larger_pair_by_pair():
    rng = np.random.default_rng(0)
    outcomes = []
    for _ in range(60):
        image = np.sort(
            np.concatenate([np.tile(np.arange(0, 240, 2), 2), 2 * rng.integers(0, 120, rng.integers(0, 200))])
        )
        spread, noise = rng.choice([0.04, 0.06, 0.08]), rng.choice([0.03, 0.05, 0.07])
        larger = (rng.random(240) < rng.choice([0.05, 0.1, 0.2]))[image, None] * 0.12 + rng.normal(
            0, noise, (image.size, 2)
        )
        larger += rng.normal(0, spread, (240, 2))[image] * rng.choice([0, 0.5])
        frames = float(rng.choice([1.0, 1.5]))
        made, wanted = uneven.drawn(image, larger, 250, frames), drawn(image, larger, frames)
        assert (made is None) is (wanted is None)
        if made is not None:
            assert np.flatnonzero(made[0]).tolist() == wanted[0]
            assert made[1] == pytest.approx(wanted[1])
        outcomes.append(made is None)
    assert 8 < sum(outcomes) < 52
    assert uneven.drawn(np.repeat(np.arange(20), 2), np.zeros((40, 2)), 20) is None


@pytest.mark.parametrize("beyond", [9, 10])
def test_either_side_of_images_on_which_all_objects_are_drawn_larger(beyond):
    """Ten images, of objects of 8% or more in both directions."""
    image = np.repeat(np.arange(200), 2)
    larger = np.zeros((400, 2))
    larger[: 2 * beyond] = np.log(1.08) + 1e-12
    larger[60] = 1.0  # of a single object
    larger[70:72] = [1.0, 0.05]
    made = uneven.drawn(image, larger, 200)
    assert (made is not None) is (beyond == 10)
    if made:
        assert np.flatnonzero(made[0]).tolist() == list(range(10))


def test_boxes_that_are_larger_or_moved():
    away = np.tile([np.log(1.1), 0.0, 0.2, -0.3], (20, 1))
    every = np.ones(20, bool)
    assert uneven.biased(away, every) == "width by +10% and x by +20% and y by -30% of the object's side, in the median"
    assert uneven.biased(away, np.arange(20) < 19) is None
    more = np.concatenate([away, np.full((5, 4), 9.0)])
    assert uneven.biased(more, np.arange(25) < 20) == uneven.biased(away, every)
    away[:, [0, 2, 3]] = 0
    assert uneven.biased(away, every) is None
    for least, is_said in ((0.08, True), (0.0799, False)):
        for sign in (1, -1):
            for axis, name in enumerate(("width", "height", "x", "y")):
                moved = np.zeros((20, 4))
                moved[:, axis] = sign * least
                percent = np.expm1(sign * least) if axis < 2 else sign * least
                wanted = f"{name} by {percent:+.0%} of the object's side, in the median" if is_said else None
                assert uneven.biased(moved, every) == wanted


@pytest.mark.parametrize(("spread", "sure"), [(0.0896, True), (0.0898, False)])
def test_either_side_of_a_deviation_that_is_sure(spread, sure):
    """0.2 is 6 times the standard error of the median of 25, 1.2533 times 1.4826 times the median deviation over 5."""
    away = np.zeros((25, 4))
    away[:, 1] = 0.2 + np.repeat([-spread, 0, spread], [12, 1, 12])
    assert (uneven.biased(away, np.ones(25, bool)) is not None) is sure


def wider(low=(2.0, -1.0), high=(2.0, -1.0), count=80):
    side_of = np.arange(count)
    return uneven.wider(np.where(side_of[:, None] <= np.median(side_of), low, high).astype(float), side_of)


def test_boxes_that_are_wider_by_as_many_pixels():
    says = "width by +2.0 and height by -1.0 pixels, in the median of the smaller half"
    assert wider() == says
    assert wider(count=79) is None
    assert wider(high=(3.0, -1.5)) == wider(high=(1.0, -0.5)) == says
    assert wider(high=(3.1, -1.0)) is None
    assert wider(high=(2.0, -1.6)) is None
    assert wider(high=(0.9, -1.0)) is None
    assert wider((0.75, -0.75), (0.75, -0.75)).startswith("width by +0.8 and height by -0.8")
    assert wider((0.74, -0.75), (0.74, -0.75)) is None
    assert wider((0.75, 0.74), (0.75, 0.74)) is None
    assert uneven.wider(np.ones((80, 2)), np.ones(80)) is None


@pytest.mark.parametrize(("spread", "sure"), [(1.255, True), (1.257, False)])
def test_either_side_of_pixels_that_are_sure(spread, sure):
    """2 is 6 times the standard error of the median of the 49 smaller ones."""
    more = np.full((98, 2), 2.0)
    more[:49, 1] += np.repeat([-spread, 0, spread], [24, 1, 24])
    assert (uneven.wider(more, np.arange(98)) is not None) is sure


def box_evidence(own, true, label=None, image=None, names=("cat", "dog", "cow", "emu"), division=None):
    count = len(own)
    image = np.arange(count) if image is None else image
    label = np.zeros(count, int) if label is None else label
    truth = side(count=count)
    truth.piled = np.zeros(count, bool)
    overlap = np.minimum(own[:, 2:], true[:, 2:]).prod(axis=1) / np.maximum(own[:, 2:], true[:, 2:]).prod(axis=1)
    return SimpleNamespace(
        found=type("Found", (), {"boxes": own, "__len__": lambda self: count})(), object_box=true, object_label=label,
        object_image=image, classes=len(names), truth=truth, matched=(overlap, None), band=np.zeros(count, int),
        images=count, frames=1.0, division=division or Division(np.arange(count), [Order("ids", np.arange(count))], []),
        objects=np.arange(count), sure=np.arange(count), sure_rank=np.zeros(count),
    )  # fmt: skip


def of_boxes(monkeypatch, evidence, caused=False):
    monkeypatch.setattr(uneven, "resized", lambda *given: None)
    monkeypatch.setattr(uneven, "_of_annotators", lambda *given: None)
    facts = SimpleNamespace(caused=lambda *given: caused)
    every = np.arange(len(evidence.found))
    return told(uneven._boxes(facts, evidence, every, every))


def true_boxes(count, seed=0):
    rng = np.random.default_rng(seed)
    return np.c_[rng.uniform(50, 200, (count, 2)), rng.uniform(20, 90, (count, 2))]


def test_what_is_said_of_boxes_of_all_categories(monkeypatch):
    true = true_boxes(100)
    own = true.copy()
    own[:, 0] -= 0.1 * own[:, 2]
    own[:, 2] *= 1.2  # about the middle
    says = "width by +20% of the object's side, in the median"
    assert of_boxes(monkeypatch, box_evidence(own, true)) == [("biased_boxes", 100, says, tuple(range(10)))]
    assert of_boxes(monkeypatch, box_evidence(own, true), caused=True) == []
    own = true.copy()
    own[:, :2] += 0.25 * own[:, 2:]
    says = "x by +25% and y by +25% of the object's side, in the median"
    assert of_boxes(monkeypatch, box_evidence(own, true)) == [("biased_boxes", 100, says, tuple(range(10)))]
    own = true + np.array([-0.5, -1, 1, 2])
    says = "width by +1.0 and height by +2.0 pixels, in the median of the smaller half"
    assert of_boxes(monkeypatch, box_evidence(own, true)) == [("biased_boxes", 100, says, tuple(range(10)))]


def test_what_is_said_of_boxes_of_one_category(monkeypatch):
    true = true_boxes(100)
    label = np.repeat([0, 1, 2], [60, 20, 20])
    own = true.copy()
    own[label == 2, 3] *= 0.8
    wanted = [("biased_boxes", 20, "category cow, height by -20% and y by -10% of the object's side, in the median")]
    assert [one[:3] for one in of_boxes(monkeypatch, box_evidence(own, true, label))] == wanted
    label[99] = 0
    assert of_boxes(monkeypatch, box_evidence(own, true, label)) == []
    label[:] = 0
    assert of_boxes(monkeypatch, box_evidence(own, true, label, names=("cat",))) == []


@pytest.mark.parametrize(("less", "is_said"), [(0.06, True), (0.04, False)])
def test_what_is_said_of_boxes_of_a_part(monkeypatch, less, is_said):
    """The median IoU is 1, and lower by more than 0.05 in a part; larger and smaller boxes have none of their own."""
    true = true_boxes(400)
    own = true.copy()
    there = (np.arange(400) >= 100) & (np.arange(400) < 200)
    sign = np.where(np.arange(400) % 2, 1 - less, 1 / (1 - less))
    own[there, 2] *= sign[there]
    own[~there, 2] *= np.where(np.arange(400) % 2, 1 - 1e-4, 1 + 1e-4)[~there] ** (np.arange(400)[~there] % 7)
    made = of_boxes(monkeypatch, box_evidence(own, true))
    says = f"about images 100 to 199, in the order of ids: median {1 - less:.2f}; elsewhere 1.00"
    assert made == ([("uneven_boxes", 100, says, tuple(range(100, 110)))] if is_said else [])


def annotators(monkeypatch, signs=(1,), part=None, count=60):
    """The factors by which objects are larger, as they are compared, and what is said of the images 2 and 3."""
    rng = np.random.default_rng(0)
    true = true_boxes(count)
    own = true / 1.0
    factors = np.exp(rng.normal(0, 0.1, (count, 2)))
    own[:, 2:] /= factors
    image = np.arange(count) // 2
    image[-1] = 200
    label = np.repeat([0, 1], [count - 20, 20])
    evidence = box_evidence(own, true, label, image)
    evidence.images = 250
    evidence.truth = side(count=250)
    evidence.truth.piled = np.zeros(count, bool)
    evidence.truth.piled[8] = True
    evidence.sure_rank[20] = 0.5
    evidence.sure_rank[22] = 0.4999
    given = []

    def named(of, larger, images, frames):
        given.append((of, larger))
        return (np.isin(np.arange(images), [2, 3]), 1.25) if len(given) == len(signs) else None

    monkeypatch.setattr(uneven, "drawn", named)
    whole = None if part is None else Part(np.isin(np.arange(250), part), "images 3 to 9", np.zeros(0, bool))
    asked = []
    facts = SimpleNamespace(concentrated=lambda *them: asked.append(them) or whole)
    every = np.arange(count)
    made = uneven._of_annotators(facts, evidence, every, every)
    return made, given, asked, np.log(factors), label, image


def test_objects_are_compared_with_those_of_their_category(monkeypatch):
    made, given, asked, factors, label, image = annotators(monkeypatch)
    chosen = ~np.isin(np.arange(60), [8, 20])
    wanted = factors - np.median(factors[chosen], axis=0)
    for one in range(2):
        own = chosen & (label == one)
        if own.sum() >= 20:
            wanted[own] -= np.median(wanted[own], axis=0)
    kept = chosen & ~np.isin(np.arange(60), [9, 21, 58, 59])  # the only one of their image that is left
    ((of, larger),) = given
    assert of.tolist() == image[kept].tolist()
    assert larger == pytest.approx(wanted[kept])
    width, height = np.expm1(np.median(wanted[4:8], axis=0))
    assert made.says.endswith(
        f": larger, each by at least 8% in width and height, and in the median by {width:.0%} and {height:.0%}; by chance "
        "1.2 of the 27 images would be so on which two or more are found by confident detections"
    )
    assert (made.code, made.count, made.records) == ("drawn_unevenly", 2, (2, 3))
    ((flags, known),) = asked
    assert np.flatnonzero(flags).tolist() == [2, 3]
    assert np.flatnonzero(known).tolist() == np.unique(image[kept]).tolist()


def test_objects_that_are_drawn_smaller(monkeypatch):
    made, given, _, _, _, _ = annotators(monkeypatch, (1, -1), part=range(3, 10))
    assert (given[0][1] == -given[1][1]).all()
    width, height = -np.expm1(np.median(given[0][1][4:8], axis=0))
    assert (
        f": smaller, each by at least 7% in width and height, and in the median by {width:.0%} and {height:.0%};"
        in made.says
    )
    assert made.says.endswith("; 1 of them are among images 3 to 9")
    assert annotators(monkeypatch, (1, -1, 1))[0] is None
    assert annotators(monkeypatch, count=24)[0] is None


# -------------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(("own", "rest", "is_said"), [(8, 4, True), (7, 4, False), (2, 4, True), (3, 4, False)])
def test_what_is_said_of_numbers_of_detections(own, rest, is_said):
    detections = np.where(np.arange(400) < 100, own, rest)
    detections[399] = 0
    objects = np.ones(400, int)
    objects[398] = 0
    evidence = of_numbers(objects, detections)
    says = f"about images 0 to 99, in the order of ids: {own} detections for each object; elsewhere {rest}"
    wanted = [("uneven_counts", 100, says, tuple(range(10)))] if is_said else []
    assert told(uneven._counts(evidence)) == wanted
