"""Checks of scores one by one: what each says, either side of each of its limits."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from detmap.checks import scores
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.checks.rates import Part
from detmap.data.tables import Detections, GroundTruth

# ------------------------------------------------------------------------------------------------------------- numbers


def gaps(values):
    """The widest gap for the density of 50 scores on either side of it, where 50 more lie on each side."""
    every, best = sorted(set(values)), (0.0,)
    for at in range(50, len(every) - 51):
        low, high = every[at], every[at + 1]
        expected = 50 * (high - low) / max(low - every[at - 50], every[at + 51] - high)
        if expected > best[0]:
            best = expected, low, high
    return (*best[1:], best[0]) if 0.3 * best[0] >= 14 else None


@pytest.mark.parametrize("seed", range(6))
def test_the_gap_where_most_scores_are_expected(seed):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.random(300))
    values[rng.integers(60, 240) :] += rng.uniform(0.5, 2)
    values[290:] += 1000  # no gap, as too few lie beyond
    values = np.append(values, values[:40])
    made, wanted = scores.gap(values), gaps(values.tolist())
    assert wanted is not None
    assert made == pytest.approx(wanted)


@pytest.mark.parametrize(("width", "said"), [(46, None), (47, (50.0, 97.0, 47.0))])
def test_either_side_of_a_gap(width, said):
    values = np.concatenate([np.arange(51.0), 50 + width + np.arange(51)])
    made = scores.gap(values)
    assert made == (None if said is None else pytest.approx(said))
    assert scores.gap(values[1:]) is None
    assert scores.gap(values[:-1]) is None


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_digits_after_the_point(digits):
    texts = ["0", "1", "0.5", "0.30", "0.12", "0.123", "0.1230", "0.9999", "0.00001"]
    wanted = [len(text.partition(".")[2].rstrip("0")) <= digits for text in texts]
    assert scores._digits(np.array(texts, float), digits).tolist() == wanted
    assert scores._digits(0.1 + np.array([9e-10, 1.1e-9, -9e-10, -1.1e-9]), digits).tolist() == [True, False] * 2


def test_scores_in_half_precision():
    values = np.array([0.5, 0.25, 1.5, 0.1, 1.0, 0.0, -2.0, 70_000.5, 1 / 3, float(np.float16(1 / 3))])
    exact = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 1], bool)
    for given in (values, np.tile(values, 30)):
        assert scores.halves(given) is None  # of few values
    more = np.append(values, (1 + 2 * np.arange(20)) / 64)
    assert scores.halves(more).tolist() == [*exact, *[True] * 20]


def test_scores_of_two_digits_that_chance_explains(monkeypatch):
    """A tenth of those of three digits, and a hundredth of those of four, have two."""
    given = []
    monkeypatch.setattr(scores, "_enough", lambda *them: given.append(them))
    texts = ["0", "1", "1.25", "-0.5", "0.5", "0.25", "0.125", "0.375", "0.625", "0.0625", "0.1875", "0.3125", "0.4375"]
    values = np.array([*map(float, texts), 1 / 3])
    scores.hundredths(values)
    ((same, some, by_chance),) = given
    assert same is values
    assert np.flatnonzero(some).tolist() == [4, 5]
    assert by_chance == pytest.approx(3 / 9 + 4 / 90)
    scores.hundredths(0.25 + np.array([9e-10, 1.1e-9]))
    assert given[1][1].tolist() == [True, False]
    scores.hundredths(0.125 + np.array([9e-10, 1.1e-9]))
    assert given[2][2] == pytest.approx(1 / 9)


def test_scores_that_occur_again_in_their_category():
    rng = np.random.default_rng(0)
    for most in (0, 1, 7, 20):
        codes, values = rng.integers(0, 3, 40), rng.integers(0, 30, 40) / 8
        seen = Counter(zip(codes.tolist(), values.tolist(), strict=True))
        wanted = [seen[one] > 1 for one in zip(codes.tolist(), values.tolist(), strict=True)]
        made = scores._tied(codes, values, most)
        assert (None if made is None else made.tolist()) == (wanted if sum(wanted) > most else None)
        assert scores._tied(codes, values, sum(wanted)) is None
        assert scores._tied(codes, values, sum(wanted) - 1).tolist() == wanted


@pytest.mark.parametrize(("middle", "said"), [(0.575, True), (0.577, False)])
def test_either_side_of_lowest_scores_that_thin_out(middle, said):
    """In the mean 58 of the 60 lowest lie in the middle of both ends, or two standard errors of it above."""
    values = np.concatenate([[0, 1], np.full(58, middle), np.full(180, 2.0)])
    assert scores._ends_at_once(values) == said
    assert scores._ends_at_once(3 + values[::-1]) == said
    for others, one, is_said in (
        (0.575, 0.7, False),
        (0.577, 0.45, True),
    ):  # the outermost of the 58 count as others do
        values[2:60] = others
        values[30] = one
        assert scores._ends_at_once(values) == is_said
    assert scores._ends_at_once(np.ones(240))
    assert not scores._ends_at_once(np.ones(239))


def first(least, mean):
    """The smallest number of events that is as improbable."""
    return next(count for count in range(99) if stats.poisson.sf(count - 1, mean) < least)


@pytest.mark.parametrize("above", [0, 1, 3])
@pytest.mark.parametrize(
    ("middle", "probability", "times"), [(2.1, 1e-4, 3), (5.0, 1e-4, 3), (5.1, 1e-3, 2), (90, 1e-3, 2)]
)
def test_either_side_of_two_scales(above, middle, probability, times):
    """More scores lie from 0.5 to 1 than from 1 to 1.5; those above 1 are 2 in the median, or those of a minority 5."""
    count = first(probability, times * (above + 1))

    def told(own, high, just=1.25):
        return scores._two_scales(
            np.concatenate([np.full(own, 0.75), [0.5] * 60, np.full(above, just), np.full(2 * above + 3, high)])
        )

    assert told(count, middle)
    assert not told(count - 1, middle)
    assert not told(60, 2.0)
    assert not told(60, 1.9)
    if above:
        assert told(count, middle, 1.5)
        assert told(count - 1, middle, 1.51)
    low = np.r_[np.full(count, 1.0), [0.5] * 60]
    assert scores._two_scales(np.r_[low, np.full(above, 1.25), np.full(2 * above + 3, middle)])


def test_scores_above_1_that_are_no_minority():
    """Of ten scores from 0.5 to 1 and others far above, fewer than half are above 1; of twelve they may be most."""
    for own, far, said in ((10, 9, True), (10, 10, False), (12, 12, True), (12, 40, True), (8, 3, False), (9, 3, True)):
        assert scores._two_scales(np.r_[np.full(own, 0.75), np.full(far, 40.5)]) is said
    assert not scores._two_scales(np.full(20, 0.75))
    assert not scores._two_scales(np.full(20, 40.5))
    assert not scores._two_scales(np.r_[np.ones(20), np.full(9, 40.0)])  # whole numbers


@pytest.mark.parametrize("at", [0, 1, 2])
def test_either_side_of_quartiles_that_are_those_of_others(at):
    others = (np.arange(1000)[::-1] + 0.5) / 1000
    for away, said in ((0.149, True), (-0.149, True), (0.151, False), (-0.151, False)):
        own = np.array([0, 0.25, 0.5, 0.75, 1])
        own[1 + at] += away
        if (np.diff(own) >= 0).all():
            assert scores._as_others(own[::-1], others) is said


def test_how_scores_are_rescaled():
    others = np.linspace(0.01, 0.99, 99)
    hundred = ["divided by 100 they are as those of others"]
    logits = ["as logits of scores, 1 / (1 + exp(-x)), they are as those of others"]
    for own, beside, said in (
        (100 * others, others, hundred),
        (np.append(100 * others, [0, 100]), others, hundred),
        (np.append(100 * others, 101), others, []),
        (np.log(others / (1 - others)), others, logits),
        (np.append(np.log(others / (1 - others)), -0.01), others, logits),
        (9 * others, others, []),
        (100 * others, np.append(others, [0, 1]), hundred),
        (100 * others, np.append(others, 1.01), []),
        (100 * others, np.append(others, -0.01), []),
        (100 * others, others[:0], []),
    ):
        assert scores._rescaled(own, beside) == said


# ------------------------------------------------------------------------------------------------------- what is said


def facts_of(image, values, images=40, strangers=(), part=None):
    """Facts about detections beside the objects of some images; `strangers` are of none of the images. Their part of the
    images is `part`, whatever is asked.
    """
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 300, (images, 2))
    truth = GroundTruth.from_arrays(
        image_ids=np.arange(images), category_ids=np.ones(images, int), boxes=np.c_[corner, np.full((images, 2), 40)],
        image_sizes=np.full((images, 2), 400), images=np.arange(images), categories=[1],
    )  # fmt: skip
    ids = np.array(image, int)
    ids[list(strangers)] = 10_000
    found = Detections.from_arrays(
        image_ids=ids, category_ids=np.ones(ids.size, int), boxes=np.tile([300.0, 300, 50, 60], (ids.size, 1)),
        scores=np.array(values, float),
    )  # fmt: skip
    facts = Facts(side_of(truth), side_of(found, truth))
    facts.asked = []

    def told(flags, known):
        facts.asked.append((np.flatnonzero(flags).tolist(), np.flatnonzero(known).tolist()))
        return None if part is None else Part(np.isin(np.arange(images), part), "the part", np.zeros(0, bool))

    facts.gathered = facts.concentrated = told
    return facts


def said(made):
    return [(one.code, one.count, one.says, one.records) for one in made]


PERCENT = "The scores are percentages, not probabilities: from "


def scales(values):
    facts = facts_of(np.arange(len(values)) % 40, values)
    own = facts.detections.scores
    return [
        (one.code, one.count, one.says.rpartition(": ")[2], one.records)
        for one in scores._scales(facts, facts.found, own, own.min(), own.max())
    ]


def test_scores_that_are_no_probabilities():
    high = np.linspace(6, 99, 30)
    assert scales([0, 1, 0.5]) == scales([0.2, 0.3]) == []
    assert scales([*high]) == [("percentage_scores", 30, "from 6 to 99", ())]
    assert scales([*high, 100]) == [("percentage_scores", 31, "from 6 to 100", ())]
    assert scales([0, *high, 100]) == [("percentage_scores", 32, "from 0 to 100", ())]
    assert scales([*high, 101]) == [("logit_scores", 31, "from 6 to 101", ())]
    assert scales([*np.zeros(20), 1, 5, 5]) == [("logit_scores", 2, "from 0 to 5", (21, 22))]
    assert scales([*np.zeros(20), 1, 5, 5.5])[0][0] == "percentage_scores"
    assert scales([0.5, -0.5, 1, 2, 0]) == [("logit_scores", 2, "from -0.5 to 2", (1, 3))]
    assert scales([-1, 0.5]) == [("logit_scores", 1, "from -1 to 0.5", (0,))]
    assert scales([0, *[0.75] * 10, 50.5])[0][0] == "mixed_scores"
    assert scales([0.1, *[0.75] * 10, 50.5])[0][0] == "mixed_scores"


def mixed(image, values, within=0, **given):
    facts = facts_of(image, values, **given)
    own = facts.detections.scores
    made = scores._mixed(facts, facts.found, own, (own > 1) | (own < 0), within)
    assert made.code == "mixed_scores"
    return (
        made.count,
        made.says.partition("lie on another scale than the others: ")[2] or made.says,
        made.records,
        facts,
    )


def test_scores_on_two_scales():
    image = np.repeat(np.arange(8), 4)
    few = np.tile([0.2, 0.4, 0.6, 0.8], 8)
    beyond = np.where(image < 3, 10 * few + np.arange(32) / 10, few)
    count, says, records, facts = mixed(image, beyond)
    assert facts.asked == [([0, 1, 2], list(range(8)))]
    assert count == 12
    assert says.endswith(": 12 are below 0 or above 1, up to 9.1")
    assert records == tuple(range(10))
    beyond[0], beyond[20] = -3, 7
    count, says, _, _ = mixed(image, beyond, 5, part=[0, 1, 2])
    assert count == 12
    assert says.endswith(
        ": the part, 3 images with 12 detections; 12 are below 0 or above 1, from -3 to 9.1; elsewhere 1 are"
    )
    beyond[0], beyond[20] = 0.5, 0.5
    count, says, records, _ = mixed(image, beyond, 5, part=[0, 1, 2])
    assert (count, records) == (11, tuple(range(1, 11)))
    assert says.endswith(
        ": the part, 3 images with 12 detections; 11 are below 0 or above 1, up to 9.1; elsewhere all lie within"
    )
    count, says, _, _ = mixed(image, beyond, 5)
    assert says.endswith(": 11 are below 0 or above 1, up to 9.1; on 5 images all lie within")
    strange = np.r_[99, np.where(image < 3, 100 * few, few)]
    assert mixed(np.r_[0, image], strange, strangers=[0])[1].endswith(
        "; 12 are below 0 or above 1, up to 80".strip("; ")
    )
    strange[0] = 0.5
    for part, least in ((None, "at least "), ([0, 1, 2], "")):
        count, says, records, facts = mixed(np.r_[0, image], strange, strangers=[0], part=part)
        assert facts.asked == [([0, 1, 2], list(range(8)))]
        assert count == 12
        assert records == tuple(range(1, 11))
        assert says.endswith("; divided by 100 they are as those of others")
        assert says.startswith(f"{least}12 detections")


def squeezed(place=0, share=1.0, images=20, band=0, strangers=(), schema=False, whole=True, empty=0):
    """What is said of 20 of 40 images whose scores of ten are squeezed, but for a score of some images."""
    rng = np.random.default_rng(place)
    values = rng.uniform(0, 1, (40, 10))
    there = np.arange(40) < images
    undone = [1 / (1 + np.exp(-values)), values / 100][band]
    values[there] = np.round(undone, 4)[there]
    others = round(images * (1 - share))
    values[:others, 3] = 0.9
    if not whole:
        values[there] = values[there] ** 6
    part = [*np.flatnonzero(there), *range(40, 40 + empty)]
    facts = facts_of(np.repeat(np.arange(40), 10), values.ravel(), 40 + empty, strangers, part)
    facts.schema = schema
    made = list(scores._squeezed(facts, facts.found, facts.detections.scores))
    return made, facts


def test_scores_that_a_function_squeezes():
    for band, span, says in (
        (
            0,
            "from 0.5",
            "as logits, log(x / (1 - x)), as where the sigmoid is applied twice, they are as those of others",
        ),
        (1, "from 0", "multiplied by 100, as where they are divided twice, they are as those of others"),
    ):
        (made,), facts = squeezed(band=band)
        assert made.count == 200
        assert f": the part, 20 images with 200 detections; {span}" in made.says
        assert made.says.endswith(f"; {says}")
        assert made.records == tuple(range(10))
        assert facts.asked[-1] == (list(range(20)), list(range(40)))
        (made,), facts = squeezed(band=band, share=0.9)
        assert made.count == 198
        assert facts.asked[-1] == (list(range(2, 20)), list(range(40)))
        assert squeezed(band=band, share=0.85)[0] == squeezed(band=band, share=0.85, empty=20)[0] == []
        (made,), facts = squeezed(band=band, empty=20)  # of images without detections
        assert made.count == 200
        assert facts.asked[-1] == (list(range(20)), list(range(40)))
        assert squeezed(band=band, schema=True)[0] == []
        assert len(squeezed(band=band, images=5)[0]) == 1
        assert squeezed(band=band, images=4)[0] == []
        assert squeezed(band=band, images=40)[0] == []
        (made,), facts = squeezed(band=band, strangers=range(5))
        assert made.count == 195
    assert squeezed(whole=False)[0] == []  # squeezed by another function


def test_either_side_of_the_band_of_a_sigmoid():
    for value, images in ((0.5, 20), (0.7311, 20), (0.4999, 19), (0.7312, 19)):
        values = np.full((40, 4), 0.55)
        values[:, 1] = 0.6
        values[20:] = [0.1, 0.3, 0.5, 0.9]
        values[0, 0] = value
        facts = facts_of(np.repeat(np.arange(40), 4), values.ravel())
        assert list(scores._squeezed(facts, facts.found, facts.detections.scores)) == []
        assert len(facts.asked[0][0]) == images
    for value, images in ((0.01, 20), (0.0, 20), (0.0101, 19)):
        values = np.full((40, 4), 0.005)
        values[20:] = [0.1, 0.3, 0.5, 0.9]
        values[0, 0] = value
        facts = facts_of(np.repeat(np.arange(40), 4), values.ravel())
        assert list(scores._squeezed(facts, facts.found, facts.detections.scores)) == []
        assert len(facts.asked[0][0]) == images


def normalised(images=20, part=20, beyond=0, again=0, each=3, strange=False, aside=0, schema=False, count=60):
    """What is said of images with the highest score 2, the first ones and some of the others, where the part is that of
    the first `part` images; some of them have the score again.
    """
    rng = np.random.default_rng(1)
    values = rng.uniform(0, 1, (count, each))
    values[:images, 0] = values[part : part + beyond, 0] = 2
    if again:
        values[:again, 1] = 2
    image = np.repeat(np.arange(count), each)
    more = [9.0] * strange
    facts = facts_of(
        np.r_[image, [0] * strange], np.r_[values.ravel(), more], count, [image.size] * strange, range(part)
    )
    facts.found.aside[: each * aside] = True
    facts.schema = schema
    return list(scores._normalised(facts, facts.found, facts.detections.scores)), facts


def test_scores_that_are_divided_by_the_highest_of_their_image():
    (made,), facts = normalised(beyond=4, strange=True)
    assert facts.asked == [(list(range(24)), list(range(60)))]
    assert made.count == 60
    assert made.says.endswith(
        ": the part, 20 images with 60 detections; the highest score of 20 of them is 2, as where scores are divided by the "
        "highest of their image; elsewhere that of 4"
    )
    assert made.records == tuple(range(10))
    for given, told in (
        ({"images": 18}, True),
        ({"images": 17}, False),
        ({"images": 8, "part": 8}, True),
        ({"images": 7, "part": 7}, False),
        ({"images": 8, "part": 7, "beyond": 1}, False),
        ({"beyond": 5}, False),
        ({"again": 2}, True),
        ({"again": 3}, False),
        ({"each": 2}, True),
        ({"each": 1}, False),
        ({"schema": True}, False),
        ({"aside": 2}, True),
        ({"images": 9, "part": 9, "aside": 1}, True),
        ({"images": 8, "part": 8, "aside": 1}, False),
    ):
        assert bool(normalised(**given)[0]) is told, given
    (made,), facts = normalised(aside=2)
    assert made.count == 54
    assert facts.asked == [(list(range(2, 20)), list(range(2, 60)))]
    whole = facts_of(np.arange(40), np.full(40, 0.5))  # no part
    assert list(scores._normalised(whole, whole.found, whole.detections.scores)) == []


def flat(single=0, several=6, held=2, other=0, part=None, images=40, rest=(0.3, 0.6), strange=False, empty=0):
    """What is said of images with the score 1 alone, once or several times, and of some with another score alone."""
    image, values = [], []
    for at in range(images):
        of = (
            [1.0] * held if at < several else [1.0] if at < several + single
            else [0.5, 0.5] if at < several + single + other else [rest[0] + at / 1000, rest[1]]
        )  # fmt: skip
        image += [at] * len(of)
        values += of
    facts = facts_of(
        image + [0] * strange, values + [0.1] * strange, images + empty, [len(values)] * strange, part=part
    )
    return list(scores._flat(facts, facts.found, facts.detections.scores)), facts


def test_images_with_one_score():
    (made,), facts = flat(single=2, strange=True)
    assert said([made]) == [("constant_scores", 14, made.says.partition(":")[0] + ": 1; on 8 images", tuple(range(10)))]
    assert facts.asked == [(list(range(8)), list(range(40)))]
    assert facts.causes == {("detections", "uneven_scores")}
    (images, of), *others = facts.parts
    assert (np.flatnonzero(images).tolist(), of, others) == (list(range(8)), None, [])
    (made,), facts = flat(single=2, empty=3)
    assert facts.asked == [(list(range(8)), list(range(40)))]
    assert np.flatnonzero(facts.cut[0]).tolist() == [*range(8), 40, 41, 42]
    (made,), facts = flat(single=2, part=range(2, 20))
    assert made.count == 10
    assert made.says.endswith(": 1; the part, 18 images with 34 detections")
    assert np.flatnonzero(facts.parts[0][0]).tolist() == list(range(2, 8))
    assert np.flatnonzero(facts.cut[0]).tolist() == list(range(2, 20))
    assert [bool(flat(several=count, single=3)[0]) for count in (4, 5)] == [False, True]
    assert [bool(flat(several=count, single=3, other=3)[0]) for count in (4, 5)] == [False, True]
    (made,), facts = flat(several=6, other=4)
    assert made.count == 12
    assert not flat(several=6, single=3, rest=(0.3, 1.0), images=80)[0]  # the score is frequent elsewhere


def test_detections_that_are_missing_beside_one_score():
    """Of 10 images 4 have 8 detections, the others 18 of 30."""
    image = np.r_[np.repeat(np.arange(4), 2), np.repeat(np.arange(4, 10), 5)]
    values = np.arange(38.0)
    part = np.arange(10) < 4
    there, cut = scores._cut_elsewhere(values, image, part)
    assert there is part
    assert cut == pytest.approx(np.quantile(values[8:], 1 - 8 / 4 * 6 / 30))
    assert scores._cut_elsewhere(values, image, ~part) is None
    assert scores._cut_elsewhere(values[:8], image[:8], part) is None
    same = np.repeat(np.arange(10), 3)
    assert scores._cut_elsewhere(values[:30], same, part) is None


def tops(values, image, count, aside=(), strangers=()):
    facts = facts_of(image, values, count, strangers)
    facts.found.aside[list(aside)] = True
    return said(scores._of_tops(facts.found, facts.detections.scores))


def test_a_score_that_is_the_highest_of_many_images():
    """The score may also be lower than the highest of an image, or of an image that is unknown."""
    image = np.repeat(np.arange(60), 2)
    values = np.c_[np.where(np.arange(60) < 30, 0.75, 0.8 + np.arange(60) / 1000), np.full(60, 0.1)]
    values[40:42] = [0.9, 0.75]
    values[42] = [0.95, 0.1]
    values[43] = 0.95
    (made,) = tops(values.ravel(), image, 60)
    assert made[:2] == ("piled_scores", 32)
    assert made[2].endswith(": 0.75, the highest of 30 images, where no other is of more than 2")
    assert made[3] == tuple(range(0, 20, 2))
    assert tops(values.ravel(), image, 60, strangers=range(20))[0][1] == 22
    assert tops(values.ravel(), image, 60, strangers=range(22)) == []
    assert tops(values.ravel(), image, 60, aside=range(20))[0][1] == 22
    values[44] = 0.95
    assert tops(values.ravel(), image, 60)[0][2].endswith("more than 3")
    values[45] = 0.95
    assert tops(values.ravel(), image, 60) == []
    assert tops([0.5] * 4, [0] * 4, 1, strangers=range(4)) == []
    assert tops([0.5] * 30, range(30), 30)[0][2].endswith(
        ": 0.5, the highest of 30 images, where no other is of more than 0"
    )


def coarse(values, untied=True):
    facts = facts_of(np.arange(len(values)) % 40, values)
    return [
        (count, says.rpartition(": ")[2], records)
        for _, count, says, records in said(scores._coarse(facts.found, np.array(values), untied))
    ]


def test_scores_of_few_digits():
    rng = np.random.default_rng(0)
    values = rng.random(500)
    half, two = values.copy(), values.copy()
    half[:30], two[5:40] = (3 + 2 * np.arange(30)) / 128, (1 + np.arange(35)) / 100
    first = tuple(range(10))
    two[[at for at in range(5, 40) if two[at] * 4 % 1 == 0]] = 0.99
    assert coarse(values) == []
    assert coarse(half) == coarse(half, False) == [(30, "as half precision (float16) has", first)]
    assert coarse(two) == [(35, "two after the point, where others have more", tuple(range(5, 15)))]
    assert coarse(two, False) == []


def coarse_part(digits, part=None, count=6, distinct=12, each=4, schema=False, strange=0, high=1.0):
    rng = np.random.default_rng(digits)
    values = rng.uniform(0, 1, (60, each)) * high
    few = (1 + 2 * np.arange(distinct)) / 10.0**digits if digits > 1 else (np.arange(distinct) % 10) / 10
    values[:count] = np.resize(few, (count, each))
    image = np.repeat(np.arange(60), each)
    facts = facts_of(np.r_[image, [0] * strange], np.r_[values.ravel(), [0.123456789] * strange], 60,
                     range(image.size, image.size + strange), part)  # fmt: skip
    facts.schema = schema
    return said(scores._coarse_part(facts, facts.found, facts.detections.scores)), facts


def test_images_whose_scores_have_few_digits():
    for digits, word in ((2, "two"), (3, "three"), (4, "four"), (1, "one")):
        (made,), facts = coarse_part(digits, strange=3)
        assert facts.asked[0] == (list(range(6)), list(range(60)))
        assert made[1] == 24
        assert made[2].endswith(f": {word} after the point, where others have more; on 6 images")
        assert made[3] == tuple(range(10))
    (made,), facts = coarse_part(2, part=range(2, 30))
    assert made[1] == 16
    assert made[2].endswith("others have more; the part, 28 images with 112 detections")
    assert len(coarse_part(2, distinct=10)[0]) == 1
    assert coarse_part(2, distinct=9)[0] == []
    assert coarse_part(2, each=3, distinct=12)[0] == []
    assert coarse_part(2, schema=True)[0] == []
    assert coarse_part(2, high=1.2)[0] == []
    assert coarse_part(2, count=5)[0] == []
    assert coarse_part(2, count=60)[0] == []  # all have


def cut(values, rate=0.1, missed=0.03):
    facts = SimpleNamespace(agreement=SimpleNamespace(asked=[]))

    def told(rows):
        facts.agreement.asked.append(rows.tolist())
        return rate, missed

    facts.agreement.rate = told
    return [
        (one.code, one.count, one.says.partition(": ")[2]) for one in scores._cut(facts, values)
    ], facts.agreement.asked


def test_scores_that_end_at_once():
    values = np.linspace(0.2, 0.9, 701)[::-1]
    says = "0.2; of the lowest tenth 10% lie on an object, and 3% of the objects are not found"
    assert cut(values) == ([("score_cut", 701, says)], [list(range(630, 701))])
    assert cut(values, rate=0.099)[0] == []
    assert cut(values, missed=0.029)[0] == []
    assert (
        cut(values, 0.256, 0.311)[0][0][2]
        == "0.2; of the lowest tenth 26% lie on an object, and 31% of the objects are not found"
    )
    assert cut(100 * values)[0][0][2].startswith("20; of")
    assert list(scores._cut(SimpleNamespace(agreement=None), values)) == []
    assert cut(-values)[0] == []
    assert cut(values[values >= 0.2] ** 0.3 - 0.2**0.3 + 0.005)[0] == []  # scores reach the lowest hundredth


@pytest.mark.parametrize(("low", "told"), [(0.01, False), (0.0101, True)])
@pytest.mark.parametrize("scale", [1, 100])
def test_either_side_of_scores_that_reach_down(low, told, scale):
    values = scale * np.linspace(low, 0.0301, 400)
    values[-1] = 1.5 if scale == 1 else 1.51
    assert bool(cut(values)[0]) is told


@pytest.mark.parametrize(
    ("low", "wide", "near", "told"),
    [(0.05, 0.05, 12, True), (0.05, 0.05, 11, False), (0.2, 0.1, 6, True), (0.2, 0.1, 5, False)],
)
def test_either_side_of_scores_below_a_cut(monkeypatch, low, wide, near, told):
    """At least 12 would lie below the lowest score, by those in as wide a range above it, or in a tenth."""
    monkeypatch.setattr(scores, "_ends_at_once", lambda values: True)
    values = np.r_[low + wide * np.arange(near) / near, low + wide + (0.99 - low - wide) * np.arange(400) / 400]
    assert bool(cut(values)[0]) is told


# --------------------------------------------------------------------------------------------------- which check follows


class Flow:
    """Facts about scores, and which checks are called, of which some find what they are told to."""

    def __init__(
        self, monkeypatch, values=(0.0, 0.2, 0.4, 0.3, 0.9), causes=(), agreement=None, reversal=None, **found
    ):
        self.called = []
        own = np.array(values)
        image = np.arange(own.size)
        columns = {"image": image, "records": lambda self, rows: {"records": rows.tolist()}}
        side = type("Side", (), {**columns, "__len__": lambda self: own.size})()
        self.facts = SimpleNamespace(
            found=side, detections=SimpleNamespace(scores=own, categories=SimpleNamespace(codes=0 * image)),
            causes=set(causes), agreement=agreement, reversal=reversal,
        )  # fmt: skip

        def stub(name):
            def called(*given):
                self.called.append((name, given))
                return found.get(name, None if name in ("_tied", "gap") else [])

            return called

        for name in ("_scales", "_normalised", "_squeezed", "_tied", "_flat", "_of_tops", "_piled", "_coarse_part",
                     "_coarse", "_cut", "gap"):  # fmt: skip
            monkeypatch.setattr(scores, name, stub(name))
        self.made = list(scores.check(self.facts))

    @property
    def names(self):
        return " ".join(name.strip("_") for name, _ in self.called)


EVERY = "scales normalised squeezed tied flat of_tops piled coarse_part coarse cut gap"


def one(code):
    return SimpleNamespace(code=code)


def test_all_checks_of_scores_follow(monkeypatch):
    flow = Flow(monkeypatch)
    assert (flow.names, flow.made, flow.facts.causes) == (EVERY, [], set())
    given = dict(flow.called)
    assert given["_scales"][3:] == (0.0, 0.9)
    assert given["_tied"][2] == 2
    assert given["_coarse"][2] is True
    assert dict(Flow(monkeypatch, np.arange(60) / 100).called)["_tied"][2] == 6
    assert Flow(monkeypatch, (-0.1, 0.2)).names == EVERY.replace(" cut", "")
    assert Flow(monkeypatch, causes=[("ground_truth", "x")]).names == EVERY.replace(" cut", "")


@pytest.mark.parametrize(
    ("found", "left_out", "causes"),
    [
        ({"_scales": [one("logit_scores")]}, " normalised squeezed gap", ()),
        ({"_scales": [one("mixed_scores")]}, " normalised squeezed gap", ("mixed_scores",)),
        ({"_normalised": [one("mixed_scores")]}, " squeezed of_tops piled gap", ("mixed_scores",)),
        ({"_squeezed": [one("mixed_scores")]}, " gap", ("mixed_scores",)),
        ({"_flat": [one("constant_scores")]}, " piled", ()),
        ({"_of_tops": [one("piled_scores")]}, " piled cut", ("piled_scores",)),
        ({"_piled": [one("piled_scores")]}, " cut", ("piled_scores",)),
        ({"_coarse_part": [one("coarse_scores")]}, " coarse", ()),
        ({"_coarse": [one("coarse_scores")]}, "", ()),
        ({"_cut": [one("score_cut")]}, "", ()),
    ],
)
def test_checks_of_scores_that_a_finding_replaces(monkeypatch, found, left_out, causes):
    flow = Flow(monkeypatch, **found)
    assert flow.names.split() == [name for name in EVERY.split() if name not in left_out.split()]
    assert flow.made == next(iter(found.values()))
    assert flow.facts.causes == {("detections", cause) for cause in causes}


def test_tied_scores_and_gaps_are_said(monkeypatch):
    flow = Flow(monkeypatch, _tied=np.array([1, 0, 1, 0, 0], bool))
    assert flow.names == EVERY.replace(" piled", "")
    assert dict(flow.called)["_coarse"][2] is False
    (made,) = flow.made
    assert (made.code, made.count) == ("quantised_scores", 2)
    assert made.says.endswith(": 5 different scores in all")
    flow = Flow(monkeypatch, gap=(0.12345, 0.6789, 1234.5))
    (made,) = flow.made
    assert (made.code, made.count) == ("score_gap", 5)
    assert made.says.endswith(": 0.123 to 0.679, where 1,234 would be expected by those beside it")
    assert flow.facts.causes == {("detections", "score_gap")}


def test_scores_that_cannot_be_checked_further(monkeypatch):
    flow = Flow(monkeypatch, (0.25, 0.25))
    (made,) = flow.made
    assert (made.code, made.count, flow.names) == ("constant_scores", 2, "")
    assert made.says.endswith(": 0.25")
    assert flow.facts.causes == {("detections", "constant_scores")}
    for values in ((0.25,), ()):
        flow = Flow(monkeypatch, values)
        assert (flow.made, flow.names) == ([], "")
    assert list(scores.check(SimpleNamespace(found=None))) == []


def test_scores_that_are_upside_down(monkeypatch):
    agreement = SimpleNamespace(upside_down=True, ranked=(0.123, None))
    flow = Flow(monkeypatch, agreement=agreement)
    assert said(flow.made)[0][:2] == ("inverted_scores", 5)
    assert flow.made[0].says.endswith(": one on an object stands above one on none in 12% of the pairs looked at")
    assert flow.names == EVERY
    assert Flow(monkeypatch, agreement=agreement, causes=[("detections", "x")]).made == []
    agreement.upside_down = False
    assert Flow(monkeypatch, agreement=agreement).made == []


def test_scores_that_are_reversed_on_some_images(monkeypatch):
    turned = SimpleNamespace(
        images=np.array([0, 1, 1, 0, 0], bool), says="so", own=0.2, rest=0.8, scores=np.array([0.1, 0.8, 0.6, 0.3, 0.7])
    )
    flow = Flow(monkeypatch, reversal=turned)
    (made,) = flow.made
    assert (made.code, made.count, made.records) == ("inverted_scores", 2, (1, 2))
    assert made.says.endswith(
        ": so; one on an object stands above one on none in 20% of the pairs looked at there, elsewhere in 80%"
    )
    given = dict(flow.called)
    assert given["_scales"][2:] == (turned.scores, 0.1, 0.8)
    for name in ("_normalised", "_squeezed", "_flat", "_of_tops", "_piled", "_coarse_part", "_coarse", "_cut", "gap"):
        assert any(value is turned.scores for value in given[name])
    assert given["_tied"][1] is flow.facts.detections.scores
    flow.facts.found.image[:] = [-1, 1, 2, 0, 4]
    assert scores._reversed(flow.facts.found, turned).count == 2
