"""Either side of each limit of the checks of scores, boxes and counts that differ between parts, in numbers written out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import codes, side

from detmap.checks import scores, uneven
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.checks.rates import Division, Grouping, Order, Part
from detmap.data.tables import Detections, GroundTruth


def of_categories(own, others):
    """What is said of the scores of a category beside those of three others."""
    label = np.concatenate([np.zeros(len(own), int), np.tile([1, 2, 3], len(others))])
    values = np.concatenate([own, np.repeat(others, 3)])
    rows = np.arange(label.size)
    evidence = SimpleNamespace(classes=4, truth=side())
    return codes(uneven._of_categories(evidence, values, label, rows))[:1]


def test_either_side_of_scores_that_are_below_those_of_others():
    others = np.linspace(0.2, 1, 1000)
    low = np.linspace(0.3, 0.599, 100)
    assert of_categories(low, others) == ["uneven_scores"]  # half of the others are higher
    assert of_categories(low + 0.003, others) == []
    few = 0.5 * low  # 0.3 of the scores count: of 67 that 0.5 ^ 20.1 is one in a million
    assert of_categories(np.linspace(0.3, 0.599, 67), others) == ["uneven_scores"]
    assert of_categories(np.linspace(0.3, 0.599, 64), others) == []
    assert of_categories(np.linspace(0, 0.1, 20), others) == ["uneven_scores"]
    assert of_categories(np.linspace(0, 0.1, 19), others) == []
    assert few.max() < 0.3


def test_either_side_of_scores_that_do_not_overlap():
    """All but five in a hundred of a category are below all but five in a hundred of the others."""
    others = np.linspace(0.5, 1, 1000)  # 0.525 is the quantile
    for beyond, said in ((5, ["uneven_scores"]), (6, [])):
        own = np.concatenate([np.linspace(0.1, 0.4, 100 - beyond), np.full(beyond, 0.99)])
        assert of_categories(own, others) == said


def test_either_side_of_the_variance_between_images():
    rng = np.random.default_rng(0)
    for images, spread, said in ((40, 0.1, True), (39, 0.1, False), (4000, 0.98, True), (4000, 1.02, False)):
        image = np.repeat(np.arange(images), 20)
        rank = rng.normal(0, 1, images)[image] + spread * rng.normal(0, 1, image.size)
        rank -= rank.mean()
        evidence = SimpleNamespace(images=images, truth=side(count=images))
        made = list(uneven._between(evidence, rank, image, rank))
        share = 1 - ((rank - (np.bincount(image, rank) / 20)[image]) ** 2).sum() / (image.size - images) / rank.var()
        assert bool(share >= 0.5) is (spread < 1)
        assert bool(made) is said


def test_of_many_detections_that_find_nothing_some_are_compared(monkeypatch):
    """What is said of a sample is said to be at least that."""
    images, each = 400, 20
    image = np.repeat(np.arange(images), each)
    scores_of = np.random.default_rng(0).uniform(0.1, 0.4, image.size) ** np.where(image < 100, 3, 1)
    evidence = SimpleNamespace(
        images=images, classes=1, scores=scores_of, frames=1.0, truth=side(count=images), label=np.zeros(image.size, int),
        division=Division(np.arange(images), [Order("ids", np.arange(images))], []), detections=np.arange(image.size),
        found=type("Found", (), {"image": image, "__len__": lambda self: image.size})(),
    )  # fmt: skip
    made = uneven._of_part(evidence, uneven._of_others(evidence, np.zeros(0, int)), None)
    assert "detections that find no object, with other scores than those elsewhere: about images 0 to 1" in made.says
    assert 2000 <= made.count < 2200
    monkeypatch.setattr(uneven, "SAMPLE", 4000)
    made = uneven._of_part(evidence, uneven._of_others(evidence, np.zeros(0, int)), None)
    assert made.says.startswith("at least ")
    assert 800 < made.count < 1200


def of_scores(middle, count=400, part=100):
    """What is said of a part of the images where the scores of detections that find objects have a middle rank."""
    place = np.arange(count)
    rank = (place + 0.5) / count
    inside = np.abs(rank - middle) <= part / count / 2 + 1e-9
    rest = place[~inside][place[: count - inside.sum()] * 131 % (count - inside.sum())]  # low and high in turn
    scores_of = rank[np.concatenate([place[inside], rest])]
    evidence = SimpleNamespace(
        images=count, classes=1, scores=scores_of, object_label=np.zeros(count, int), object_image=place, frames=1.0,
        truth=side(count=count), division=Division(place, [Order("ids", place)], []), found=range(count),
        detections=place,
    )  # fmt: skip
    return [one.says for one in uneven._scores(evidence, place, place, place)]


@pytest.mark.parametrize(("caused", "compared"), [(False, 60), (True, 40)])
def test_scores_of_copied_boxes_are_not_compared(monkeypatch, caused, compared):
    """20 of 60 detections have the box of their object; all 60 find one."""
    rows = np.arange(60)
    evidence = SimpleNamespace(
        finders=(rows, rows),
        copies=SimpleNamespace(same=rows < 20),
        objects=rows,
        detections=rows,
        found=SimpleNamespace(posed=True),
    )
    facts = SimpleNamespace(
        evidence=evidence,
        parts=[],
        caused=lambda role, code: code == "sizes_cut" or (caused and code == "copied_boxes"),
    )
    given = []
    monkeypatch.setattr(uneven, "_scores", lambda *them: given.extend(len(one) for one in them[1:]) or [])
    assert not list(uneven.check(facts))
    assert given == [compared, compared, 60]


def test_either_side_of_a_part_with_low_scores():
    """A quarter of the 300 scores elsewhere are below the median of 100, which those around it leave out."""
    assert of_scores(0.3125)
    assert not of_scores(0.315)
    assert of_scores(0.6875)
    assert not of_scores(0.685)


@pytest.mark.parametrize("high", [False, True])
def test_either_side_of_low_scores_of_a_part_that_is_difficult(monkeypatch, high):
    """42 of 100 scores elsewhere of detections that find no object are below those of the part, or 15 of the others."""

    def said(place, below, inside=100, outside=100):
        there = np.arange(300) < 150
        image = np.concatenate([np.arange(inside) % 150, 150 + np.arange(outside) % 150])
        scores_of = np.concatenate([np.full(inside, below / 100), (np.arange(outside) + 0.5) / outside])
        other = uneven.Scores(1 - scores_of if high else scores_of, 0 * image, image, "")
        part = Part(there, "images 0 to 149", there)
        own = uneven.Scores(np.where(there, 0.2, 0.6), 0 * there, np.arange(300), uneven.FINDING)
        monkeypatch.setattr(uneven, "_part_of_scores", lambda *given: (part, there, high, place))
        evidence = SimpleNamespace(truth=side(count=300))
        made = uneven._of_part(evidence, own, other)
        assert uneven._of_part(evidence, own, None) is not None
        return made is not None

    assert said(0.2, 42)
    assert not said(0.2, 43)
    assert said(0.15, 43)
    assert not said(0.151, 43)
    assert said(0.2, 10, inside=8)
    assert not said(0.2, 10, inside=7)
    assert said(0.2, 10, outside=8)
    assert not said(0.2, 10, outside=7)
    assert said(0.15, 10, inside=7)


def ranked(ahead, wrong=1.0, images=400):
    """What is said of scores that are higher on objects by a difference of ranks."""
    rng = np.random.default_rng(0)
    count = int(images * wrong)
    right, other = rng.random(images), rng.random(count)
    image = np.concatenate([np.arange(images), np.arange(count) % images])
    held = np.concatenate([0.5 + ahead + 0.001 * right, np.full(count, 0.5) + 0.001 * other])
    label = Facts(None)
    evidence = SimpleNamespace(
        detections=np.arange(image.size), finders=(np.arange(images), None), scores=held, images=images, frames=1.0,
        found=SimpleNamespace(image=image, __len__=None), truth=side(count=images),
        division=Division(np.arange(images), [Order("ids", np.arange(images))], []),
    )  # fmt: skip
    evidence.found = type("Found", (), {"image": image, "__len__": lambda self: image.size})()
    evidence.by_score = np.argsort(-evidence.scores, kind="stable")
    return codes(uneven.ranking(label, evidence))


def test_either_side_of_false_detections_that_scores_are_compared_with():
    assert ranked(-1, wrong=0.5) == ["scores_rank_nothing"]
    assert ranked(-1, wrong=0.49) == []
    assert ranked(1) == []


@pytest.mark.parametrize(("shift", "said"), [(0.05, ["scores_rank_nothing"]), (0.07, [])])
def test_either_side_of_scores_that_say_nothing(shift, said):
    """The ranks of detections on objects are higher by so much, in the median of the images."""
    images = 400
    ranks = np.arange(2 * images)
    gap = round(shift * 2 * images)
    low = ranks[(ranks // gap) % 2 == 0][:images]
    high = low + gap
    place = np.concatenate([high, low])  # of detections on objects, and of others
    assert np.unique(place).size == 2 * images
    image = np.tile(np.arange(images), 2)
    found = type("Found", (), {"image": image, "__len__": lambda self: image.size})()
    evidence = SimpleNamespace(
        detections=np.arange(image.size), finders=(np.arange(images), None), scores=place / place.max(), images=images,
        frames=1.0, found=found, truth=side(count=images), division=Division(np.arange(images), [], []),
    )  # fmt: skip
    evidence.by_score = np.argsort(-evidence.scores, kind="stable")
    assert codes(uneven.ranking(SimpleNamespace(parts=[]), evidence)) == said


def of_numbers(objects, detections):
    """Evidence with these numbers of objects and detections on each of 400 images."""
    image = np.repeat(np.arange(400), detections)
    return SimpleNamespace(
        detections=np.arange(image.size), found=SimpleNamespace(image=image), images=400, frames=1.0,
        object_image=np.repeat(np.arange(400), objects), truth=side(count=400),
        division=Division(np.arange(400), [Order("ids", np.arange(400))], []),
    )  # fmt: skip


@pytest.mark.parametrize(("times", "said"), [(1.99, []), (2, ["uneven_counts"])])
def test_either_side_of_a_part_with_more_detections(times, said):
    detections = np.where(np.arange(400) < 100, round(100 * times), 100)
    assert codes(uneven._counts(of_numbers(np.ones(400, int), detections))) == said


def of_counts(same, part=True):
    """What is said of 100 images of 400 with higher scores: on so many of them, or of the others, stand 7 detections."""
    held = 2 + np.arange(400) % 19
    held[held == 7] = 21
    there = np.flatnonzero((np.arange(400) < 100) == part)
    held[there[:same]] = 7
    image = np.repeat(np.arange(400), held)
    values = np.random.default_rng(0).random(image.size) + (image < 100)
    evidence = SimpleNamespace(
        detections=np.arange(image.size), scores=values, label=np.zeros(image.size, int), images=400, frames=1.0,
        found=SimpleNamespace(image=image), truth=side(count=400), object_image=np.arange(0),
        division=Division(np.arange(400), [Order("ids", np.arange(400))], []),
    )  # fmt: skip
    facts = SimpleNamespace(parts=[], causes=set(), caused=lambda *codes: False)
    made = codes(uneven.differing(facts, evidence))
    assert len(facts.parts) == len(facts.causes) == len(made)
    return made


def test_either_side_of_a_number_of_detections_that_is_a_limit_of_a_part():
    """40 of 100 images have one number: the limit leaves high scores, and the part is not said to have others."""
    assert of_counts(38) == ["uneven_scores"]
    assert of_counts(42) == []
    assert of_counts(116, part=False) == ["uneven_scores"]
    assert of_counts(124, part=False) == []


def part_of(values, inside):
    """The part of 400 images of which so many of the first 100 have the least values."""
    place = np.arange(400)
    value = np.where(place < inside, place / 1000, 1 + values[place] / 1000)
    evidence = SimpleNamespace(division=Division(place, [Order("ids", place)], []), frames=1.0)
    one = uneven.Statistic("", "", place, value, np.ones(400, int))
    return [int(part.units.sum()) for part, high in uneven._part(evidence, one, 1) if not high]


def folder_of(split, below, beyond, images=1000, part=100):
    """Whether a folder has low values, of which so many are just below the quantile `split`, so many just beyond."""
    place = np.arange(images)
    value = (place + 0.5) / images
    cut = round(split * images)
    rest = images - 1 - np.arange(part - below - beyond)  # the highest
    codes_of = np.full(images, -1)
    codes_of[np.concatenate([np.arange(cut - below, cut), np.arange(cut, cut + beyond), rest])] = 0
    division = Division(place, [], [Grouping("{}", codes_of, ["one"])])
    one = uneven.Statistic("", "", place, value, np.ones(images, int))
    made = uneven._part(SimpleNamespace(division=division, frames=1.0), one, 1)
    return [high for _, high in made] == [False]


@pytest.mark.parametrize(("split", "least"), [(0.5, 85), (0.1, 50)])
def test_either_side_of_a_part_of_the_lowest_values(split, least):
    """85 of 100 images are in the lower half, or 50 in the lowest tenth, and none far below."""
    assert folder_of(split, least, 0)
    assert not folder_of(split, least - 1, 0)
    assert not folder_of(split, least - 1, 10)


def test_either_side_of_a_part_of_eight_images():
    rng = np.random.default_rng(0)
    values = rng.permutation(np.arange(400.0))
    assert part_of(values, 8) == [8]
    assert part_of(values, 7) == []
    assert part_of(values, 100) == [100]


def shown(rows, **given):
    """Detections that no other finding explains."""
    found = side(**given)
    found.sized, found.aside = np.ones(rows, bool), np.zeros(rows, bool)
    return found


@pytest.mark.parametrize(("share", "said"), [(0.0049, []), (0.0051, ["piled_scores"])])
def test_either_side_of_one_score_that_many_have(share, said):
    values = np.random.default_rng(0).random(10_000)
    values[: round(share * 10_000)] = 0.5
    assert codes(scores._piled(shown(10_000), values)) == said
    few = np.random.default_rng(0).random(1000)
    few[: 19 if not said else 20] = 0.5
    assert codes(scores._piled(shown(1000), few)) == said
    few[:20] = 0.5
    for column in ("sized", "aside"):  # copies, and rows of padding, have findings of their own
        found = shown(1000)
        getattr(found, column)[0] ^= True
        assert codes(scores._piled(found, few)) == []


def of_tops(images, count, others=2, again=0):
    """What is said of two detections on each image, of which so many have one highest score, some twice, some another."""
    top = np.random.default_rng(0).random(images) + 1
    top[:count], top[count : count + others] = 3.0, 2.5
    found = shown(2 * images, image=np.tile(np.arange(images), 2), count=images)
    second = np.where(np.arange(images) < again, top, top / 2)
    return [one.count for one in scores._of_tops(found, np.concatenate([top, second]))]


def test_either_side_of_a_score_that_is_the_highest_of_many_images():
    assert of_tops(1000, 20) == [20]
    assert of_tops(1000, 19) == []
    assert of_tops(3000, 30) == [30]
    assert of_tops(3000, 29) == []
    assert of_tops(3000, 100, others=10) == [100]
    assert of_tops(3000, 100, others=11) == []
    assert of_tops(20, 20, others=0) == [20]
    assert of_tops(1000, 100, again=10) == [110]
    assert of_tops(1000, 100, again=11) == []  # clipped


@pytest.mark.parametrize(("tied", "said"), [(100, False), (102, True)])
def test_either_side_of_ties(tied, said):
    values = np.random.default_rng(0).random(1000)
    values[:tied:2] = values[1 : tied + 1 : 2]
    truth = GroundTruth.from_arrays(
        image_ids=[0], category_ids=[1], boxes=[[0, 0, 9, 9]], images=np.arange(1000), categories=[1]
    )
    found = Detections.from_arrays(
        image_ids=np.arange(1000),
        category_ids=np.ones(1000, int),
        boxes=np.tile([0, 0, 9, 9], (1000, 1)),
        scores=values,
    )
    own = side_of(truth)
    assert ("quantised_scores" in codes(scores.check(Facts(own, side_of(found, truth))))) is said


@pytest.mark.parametrize(("count", "said"), [(240, True), (239, False)])
def test_either_side_of_the_scores_among_which_the_lowest_are_even(count, said):
    """Four times the 60 lowest."""
    assert bool(scores._ends_at_once(np.arange(count) / count)) is said


@pytest.mark.parametrize(("whole", "said"), [(79, [316]), (78, [])])
def test_either_side_of_images_of_few_digits_by_chance(whole, said):
    """Of 1,000 images of four scores, of which elsewhere one has two digits, 3.9 have four by chance: a twentieth."""
    rng = np.random.default_rng(0)
    values = rng.random((1000, 4))
    few = np.arange(1000)[:, None] < np.array([1000, whole, whole, whole])
    values[few] = rng.integers(0, 9, np.count_nonzero(few)) / 10 + rng.integers(1, 9, np.count_nonzero(few)) / 100
    found = side(image=np.repeat(np.arange(1000), 4))
    facts = SimpleNamespace(schema=False, concentrated=lambda *given: None)
    assert [one.count for one in scores._coarse_part(facts, found, values.ravel())] == said


@pytest.mark.parametrize("few", [scores.halves, scores.hundredths])
def test_either_side_of_scores_of_few_digits(few):
    values = np.random.default_rng(0).random(2500)
    for count, distinct, said in ((25, 25, True), (24, 24, False), (60, 20, True), (60, 19, False)):
        some = values.copy()
        some[:count] = (11 + 2 * (np.arange(count) % distinct)) / (1024 if few is scores.halves else 100)
        made = few(some)
        assert (made is not None) is said
        assert made is None or made.sum() == count
    assert few(np.round(values, 3 + (few is scores.halves))) is None  # every tenth has no more than two
    assert few(values.astype(np.float32).astype(float)) is None
    assert few(np.floor(255 * values)) is None


def cut_of(below=0.3, apart=0.0, strangers=0):
    """The cut of a part of 100 images of ten scores each, a fifth of which are images of the rest."""
    rng = np.random.default_rng(0)
    rest = np.concatenate([np.full(round(1000 * below), 0.1), np.linspace(0.5, 0.9, 1000 - round(1000 * below))])
    own = np.linspace(0.5 + apart, 0.9 + apart, 1000)[rng.permutation(1000)]
    own[: 10 * strangers : 10] = 0.1
    values = np.concatenate([own, rest])
    made = uneven._cut(values, np.arange(2000) < 1000, np.arange(2000) // 10)
    return None if made is None else round(made, 2)


def test_either_side_of_a_part_without_low_scores():
    assert cut_of() == 0.5
    assert cut_of(below=0.29) is None
    assert cut_of(strangers=19) == 0.5
    assert cut_of(strangers=22) is None
    assert cut_of(apart=0.06) == 0.56
    assert cut_of(apart=0.13) == 0.63
    assert cut_of(apart=0.14) is None  # half of the range between the quartiles


@pytest.mark.parametrize(("least", "cut"), [(0.4951, 0.4951), (0.4949, 0.5)])
def test_either_side_of_the_lowest_score_of_a_part_without_low_scores(least, cut):
    """A fifth of the images may be of the rest; a quarter of the way to the median 0.52 is as near to the cut."""
    lowest = np.repeat([0.1, least, 0.5, 0.54], [18, 1, 31, 50])
    rest = np.concatenate([np.full(300, 0.1), np.linspace(0.5, 0.9, 700)])
    values = np.concatenate([lowest, np.linspace(0.75, 0.9, 100), rest])
    image = np.concatenate([np.tile(np.arange(100), 2), 100 + np.arange(1000)])
    assert uneven._cut(values, np.arange(1200) < 200, image) == cut


def of_high_scores(each, objects=1, part=True):
    """What is said of 100 images of 400 (or of the others) with high scores alone, `each` in the mean; other images have 20
    scores, three of five of them low.
    """
    there = (np.arange(400) < 100) == part
    held = np.where(there, each, 20) + np.arange(400) % 5 - 2
    image = np.repeat(np.arange(400), held)
    low = ~there[image] & (np.arange(image.size) % 5 < 3)
    rng = np.random.default_rng(0)
    values = np.where(low, rng.uniform(0, 0.3, image.size), rng.uniform(0.5, 0.9, image.size))
    evidence = SimpleNamespace(
        detections=np.arange(image.size), scores=values, label=np.zeros(image.size, int), images=400, frames=1.0,
        found=SimpleNamespace(image=image), truth=side(count=400),
        object_image=np.repeat(np.arange(400), np.where(there, objects, 1)),
        division=Division(np.arange(400), [Order("ids", np.arange(400))], []),
    )  # fmt: skip
    facts = SimpleNamespace(parts=[], causes=set(), caused=lambda *codes: False, cut=None)
    made = codes(uneven.differing(facts, evidence))
    assert (facts.cut is None) == (made == ["uneven_scores"])
    assert facts.cut is None or np.mean(facts.cut[0] == there) > 0.98
    assert all(abs(images.sum() - 100) < 8 and of is None for images, of in facts.parts)
    assert len(facts.parts) == len(made)
    return made


def test_either_side_of_a_number_of_detections_that_a_cut_leaves():
    """A cut leaves 8 of 20; as many as the square root of this share, 12.6, are few enough, with as many objects."""
    for part in (True, False):
        assert of_high_scores(8, part=part) == ["part_score_cut"]
        assert of_high_scores(12, part=part) == ["part_score_cut"]
        assert of_high_scores(13, part=part) == ["uneven_scores"]
    assert of_high_scores(20) == ["uneven_scores"]  # none is missing: the scores have another scale
    assert of_high_scores(20, objects=3) == ["part_score_cut"]


def cut_again(low=(), far=0):
    """What is said of the part of 100 images of 400 without scores below 0.5, taken for images 2 to 94 and `far` more that
    are none of it: on images in `low` of the part a detection has a low score.
    """
    rng = np.random.default_rng(0)
    image = np.repeat(np.arange(400), 20)
    values = np.where(image < 100, rng.uniform(0.5004, 0.9, image.size), rng.uniform(0.01, 0.9, image.size))
    values[7] = 0.5003
    values[20 * np.array(low, int)] = 0.02
    evidence = SimpleNamespace(
        detections=np.arange(image.size), scores=values, images=400, frames=1.0, found=SimpleNamespace(image=image),
        division=Division(np.arange(400), [Order("ids", np.arange(400))], []), truth=side(count=400),
    )  # fmt: skip
    there = (np.arange(400) >= 2) & (np.arange(400) < 95 + far)
    part = Part(there, "images 2 to 94, in the order of ids", there)
    (of, lowest), made = uneven._said_cut(evidence, part, there, 0.55, "images")
    return int(of.sum()), round(lowest, 4), made.count, made.says.partition("many: ")[2]


def test_a_part_without_low_scores_is_found_again_by_its_lowest_scores():
    says = "images 0 to 99, in the order of ids: none below 0.5"
    assert cut_again() == (100, 0.5003, 2000, says)
    assert cut_again(low=[50]) == (100, 0.5003, 1980, says + ", but for 1 image")
    assert cut_again(low=[99])[3] == says.replace("99", "98")


@pytest.mark.parametrize(("far", "again"), [(27, True), (28, False)])
def test_either_side_of_a_part_without_low_scores_that_is_another(far, again):
    """Images 2 to 94 and `far` more, of which a fifth may be others: images 0 and 1, and all but 95 to 99."""
    assert (2 + far - 5 <= 0.2 * (93 + far)) is again
    assert cut_again(far=far)[3].startswith("images 0 to 99" if again else "images 2 to 94")


def test_numbers_are_rounded_down():
    values = 0.53069, 0.5, 0.0123999, 12.39, -0.5306, 0.0
    assert [uneven._at_most(value) for value in values] == ["0.53", "0.5", "0.0123", "12.3", "-0.531", "0"]


def test_ranges_of_images_are_about_where_values_change():
    none = np.zeros(0, bool)
    assert uneven._about(Part(none, "images 2 to 94, in the order of ids", none)).startswith("about images 2 to 94")
    assert uneven._about(Part(none, "every other image by id", none)) == "every other image by id"


def test_either_side_of_images_whose_scores_all_lie_within():
    """Of images of eight scores, half of which lie beyond 0 to 1 on each of 50 images."""
    for count, held, said in ((15, 8, 15), (14, 8, 0), (15, 7, 0)):
        image = np.repeat(np.arange(50 + count), np.r_[np.full(50, 8), np.full(count, held)])
        outside = (np.arange(image.size) % 2 == 0) & (image < 50)
        assert scores._images_within(SimpleNamespace(image=image), outside) == said
        more = np.r_[image, [100, 100, 101]]  # images of fewer scores are counted, too
        assert scores._images_within(SimpleNamespace(image=more), np.r_[outside, [False] * 3]) == (said and said + 2)
