"""Tests of rates against sums, products and probabilities that are written out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from detmap.checks import rates
from detmap.checks.rates import Division, Grouping, Order, Range

# ------------------------------------------------------------------------------------------------------- probabilities


@pytest.mark.parametrize("mean", [0.01, 0.5, 1, 3.7, 20, 80, 900])
def test_the_probability_of_at_least_as_many_events(mean):
    for count in {0, 1, 2, 5, 20, int(mean), int(mean) + 1, int(2 * mean), int(mean / 2)}:
        assert rates.tail(count, mean) == pytest.approx(stats.poisson.sf(count - 1, mean), rel=1e-9)


def test_events_that_never_happen():
    assert [rates.tail(count, mean) for count, mean in ((0, 0), (-1, 3), (1, 0), (1, -1))] == [1.0, 1.0, 0.0, 0.0]
    assert rates.tail(2000, 100) == 0
    assert rates.tail(2000, 1e4) == 1.0


def test_the_probability_of_a_share():
    for share, rate in ((0.5, 0.1), (0.3, 0.3), (0.7, 0.3), (1.0, 0.5)):
        totals = np.array([1, 2, 3, 10, 7, 10, 100, 101, 1000])
        wanted = [stats.binom.sf(math.ceil(Fraction(str(share)) * n) - 1, n, rate) for n in np.minimum(totals, 100)]
        assert rates.reaching(share, rate, totals).tolist() == pytest.approx(wanted, rel=1e-9)
    assert (
        rates.reaching(0.5, 0.1, np.array([30, 40]), 20).tolist() == [rates.reaching(0.5, 0.1, np.array([20]))[0]] * 2
    )


def shares(flags, codes):
    """The share of flags of each record's code, with five records of the mean added to each code."""
    mean = sum(flags) / len(flags)
    return [
        (sum(one for one, other in zip(flags, codes, strict=True) if other == code) + 5 * mean)
        / (codes.count(code) + 5)
        for code in codes
    ]


def test_shares_of_codes_lean_to_the_mean():
    flags, codes = [True, False, True, True, False, False, True], [0, 0, 2, 2, 2, 3, 3]
    made = rates.rates(np.array(flags), np.array(codes), 5)
    assert made[codes].tolist() == pytest.approx(shares(flags, codes))
    assert made[[1, 4]].tolist() == pytest.approx([4 / 7] * 2)
    assert rates.rates(np.array(flags), np.array(codes), 4, 3.0)[0] == pytest.approx((1 + 3 * 4 / 7) / 5)
    assert rates.rates(np.zeros(0, bool), np.zeros(0, int), 2).tolist() == [0, 0]


@pytest.mark.parametrize("flagged", [0, 3, 120, 3999, 4000])
def test_odds_ratios_of_factors_are_multiplied(flagged):
    """Means and shares stay between 0.001 and 0.999."""
    rng = np.random.default_rng(flagged)
    one, other = rng.integers(0, 3, 4000), rng.integers(0, 2, 4000)
    flags = np.argsort(np.argsort(rng.random(4000) + (one == 1))) >= 4000 - flagged
    made = rates.explained(flags, (one, 3), (other, 2))
    mean = min(max(flagged / 4000, 0.001), 0.999)
    odds = np.full(4000, mean / (1 - mean))
    for codes in (one, other):
        share = [min(max((np.sum(flags & (codes == at)) + flagged / 800) / (np.sum(codes == at) + 5), 0.001), 0.999)
                 for at in range(3)]  # fmt: skip
        odds *= np.array([one / (1 - one) / (mean / (1 - mean)) for one in share])[codes]
    assert made.tolist() == pytest.approx((odds / (1 + odds)).tolist(), rel=1e-9)
    assert rates.explained(flags[:0], (one[:0], 3)).size == 0


@pytest.mark.parametrize("left", [0.2, 0.7])
def test_logs_of_likelihoods(left):
    """Of a unit a fifth of the good ones stay good; chances are between 0.02 and 0.95."""
    for chance, used in ((0.0, 0.02), (0.02, 0.02), (0.3, 0.3), (0.95, 0.95), (1.0, 0.95)):
        bad, good = rates.evidence(np.array([True, False]), np.full(2, chance), left)
        assert bad == pytest.approx(math.log((used * left + 1 - left) / used))
        assert good == pytest.approx(math.log(left))
    assert rates.evidence(np.array([False]), np.ones(1))[0] == pytest.approx(math.log(0.2))


# -------------------------------------------------------------------------------------------------------------- ranges


def test_the_range_of_the_largest_sum():
    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 8, 20):
        for _ in range(20):
            logs = rng.integers(-3, 3, count)
            every = [(int(logs[a:b].sum()), -b, a) for b in range(count + 1) for a in range(b + 1)]
            most, stop, start = max(every)  # of equal ones that which ends first, and begins last
            assert rates.worst_range(logs) == Range(start, -stop, most)
    assert rates.worst_range(np.array([-1.0, -2])) == Range(0, 0, 0)


def blocks(bad, good, count, end=0):
    """So many bad units before good ones, again and again."""
    return np.tile(np.arange(bad + good) < bad, count)[: count * (bad + good) - good + end]


def test_at_most_eight_ranges_of_five_bad_units_or_more():
    for count in (1, 2, 8, 9):
        bad = np.append(np.zeros(30, bool), blocks(6, 20, count, 7))
        made = rates.bad_ranges(bad, np.full(bad.size, 0.02), 1)
        assert (
            sorted((one.start, one.stop) for one in made) == [(30 + 26 * at, 36 + 26 * at) for at in range(count)][:8]
        )
    for few in (4, 5):
        bad = np.append(blocks(few, 20, 1), np.zeros(30, bool))
        assert len(rates.bad_ranges(bad, np.full(bad.size, 0.02), 1)) == few - 4
    assert rates.bad_ranges(np.zeros(0, bool), np.zeros(0), 1) == []


@pytest.mark.parametrize(("looks", "repeats"), [(1, None), (1, 1.0), (6, 1.0), (1, 2.0), (4, 1.5)])
def test_as_many_bad_units_as_chance_does_not_explain(looks, repeats):
    """Of chance one half each bad unit counts 1.8; a thousand times the units and looks are needed."""
    given = {} if repeats is None else {"repeats": repeats}
    least = next(count for count in range(200) if 1.8 ** (count / (repeats or 1)) >= 200 * looks * 1000)
    for count in (least, least - 1):
        bad = np.arange(200) < count
        made = rates.bad_ranges(bad, np.full(200, 0.5), looks, **given)
        assert [one[:2] for one in made] == ([(0, count)] if count == least else [])
        if made:
            assert made[0].logs == pytest.approx(count * math.log(1.8) / (repeats or 1))


def likely(bad, ranges):
    """Which ranges are joined, by the probability of what lies between under the rates inside and outside of ranges."""
    inside = np.zeros(bad.size, bool)
    for one in ranges:
        inside[one.start : one.stop] = True
    out = [sorted(ranges)[0]]
    for one in sorted(ranges)[1:]:
        between = np.zeros(bad.size, bool)
        between[out[-1].stop : one.start] = True
        own, rest = (
            Fraction(int(np.sum(bad & which)) + 1, int(np.sum(which)) + 2) for which in (inside, ~inside & ~between)
        )
        count, good = int(np.sum(bad & between)), int(np.sum(~bad & between))
        if own**count * (1 - own) ** good > rest**count * (1 - rest) ** good:
            out[-1] = Range(out[-1].start, one.stop, out[-1].logs + one.logs)
        else:
            out.append(one)
    return out if len(out) < len(ranges) else ranges


def test_ranges_are_joined_by_what_lies_between():
    rng = np.random.default_rng(0)
    joined = []
    for _ in range(400):
        edges = np.sort(rng.choice(40, 2 * rng.integers(1, 4), replace=False))
        ranges = [Range(int(a), int(b), float(rng.integers(1, 9))) for a, b in edges.reshape(-1, 2)]
        ranges = [ranges[at] for at in rng.permutation(len(ranges))]
        bad = rng.random(40) < 0.15
        for one in ranges:
            bad[one.start : one.stop] = rng.random(one.stop - one.start) < 0.6
        assert rates.joined(ranges, bad) == likely(bad, ranges)
        joined.append(len(ranges) - len(likely(bad, ranges)))
    assert 20 < np.count_nonzero(joined) < 380


# --------------------------------------------------------------------------------------------------------------- parts


def orders(count, size=200):
    """The order of ids, and others in which neighbours lie far apart."""
    return [Order(f"{step}", np.arange(size) * step % size) for step in (1, 77, 61, 93)[:count]]


def least_of(looks, tests, repeats=1.0, units=200):
    return next(count for count in range(200) if 1.8 ** (count / repeats) > 2 * units * looks * tests * 1000)


@pytest.mark.parametrize(("looks", "count", "repeats"), [(1, 1, 1), (1, 2, 1), (3, 1, 1), (3, 4, 1), (1, 1, 2.5)])
def test_as_many_bad_images_in_a_row_as_chance_does_not_explain(looks, count, repeats):
    least = least_of(looks, count, repeats)
    image = np.arange(200)
    for own in (least, least - 1):
        bad = (image >= 60) & (image < 60 + own)
        division = Division(1000 + image, orders(count), [])
        part = division.unlike(image, bad, np.full(200, 0.5), looks, repeats)
        if looks == repeats == 1:
            assert (division.unlike(image, bad, np.full(200, 0.5)) is None) is (part is None)
        if own < least:
            assert part is None
        else:
            assert part.says == f"images 1060 to {1059 + own}, in the order of 1"
            assert (part.images == bad).all()
            assert (part.units == bad).all()


@pytest.mark.parametrize(("looks", "groups", "repeats"), [(1, 1, 1), (1, 4, 1), (2, 3, 1), (1, 2, 2)])
def test_as_many_bad_images_of_a_group_as_chance_does_not_explain(looks, groups, repeats):
    """An image without a unit belongs to the part, an image of no group to none."""
    least = least_of(looks, groups + 1, repeats, units=1)
    for own in (least, least - 1):
        count = 4 * own
        codes = np.where(np.arange(count + 1) % 4 == 2, groups - 1, -1)
        codes[count] = groups - 1
        groupings = [
            Grouping("in {}", codes, [f"folder {at}" for at in range(groups)]),
            Grouping("of {}", np.full(count + 1, -1), ["none"]),
        ]
        image = np.arange(count)
        division = Division(np.arange(count + 1), [], groupings)
        part = division.unlike(image, image % 4 == 2, np.full(count, 0.5), looks, repeats)
        if own < least:
            assert part is None
        else:
            assert part.says == f"in folder {groups - 1}"
            assert part.units.tolist() == (image % 4 == 2).tolist()
            assert np.flatnonzero(part.images).tolist() == [*np.flatnonzero(part.units), count]


@pytest.mark.parametrize("few", [4, 5])
def test_a_group_and_a_range_have_five_bad_images(few):
    image = np.arange(60)
    bad = np.isin(image, np.arange(0, 4 * few, 4)) | (image == 59)
    grouping = Grouping("{}", np.where(bad & (image < 59), 0, -1), ["a"])
    part = Division(image, [], [grouping]).unlike(image, bad, np.full(60, 0.02))
    assert (part is not None) is (few == 5)
    row = image < few
    assert (Division(image, orders(1, 60), []).unlike(image, row, np.full(60, 0.02)) is not None) is (few == 5)


def test_the_strongest_part():
    """A range of another order has to be stronger by a factor of e; a group has to be stronger."""
    image = np.arange(200)
    chance = np.full(200, 0.3)
    by = np.argsort(image * 77 % 200)  # in the second order these are next to each other
    said = []
    for more in range(4):
        bad = np.isin(image, [*range(40), *by[-40 - more :]])
        logs = [rates.worst_range(rates.evidence(one, chance)).logs for one in (bad, bad[by])]
        said.append(logs[1] > logs[0] + 1)
        part = Division(image, orders(2), []).unlike(image, bad, chance)
        assert part.says.endswith(f"order of {'77' if said[-1] else '1'}")
    assert {True, False} == set(said)
    row = image < 40
    for more, says in ((0, "images 0 to 39, in the order of 1"), (1, "the group")):
        grouping = Grouping("{}", np.where(row, 1, -1) + 0, ["other", "the group"])
        bad = row.copy()
        if more:
            bad[60:64] = True
            grouping.codes[60:64] = 1
        assert Division(image, orders(1), [grouping]).unlike(image, bad, chance).says == says
    codes = np.where(row, np.where(image % 2, 1, 0), -1)
    codes[60] = 1
    bad = row | (image == 60)
    made = Division(image, [], [Grouping("{}", codes, ["a", "b"])]).unlike(image, bad, chance)
    assert made.says == "b"
    bad[60] = False
    assert Division(image, [], [Grouping("{}", codes, ["a", "b"])]).unlike(image, bad, chance).says == "a"


@pytest.mark.parametrize(("good", "says"), [(0, "77"), (2, "77"), (3, "1"), (4, "1")])
def test_each_further_range_of_an_order_counts_less(good, says):
    """Two ranges of 30 images count 5 less than one of 60, in which a good image counts log 5 less."""
    image = np.arange(400)
    first = np.r_[0:30, 200:230]
    rest = np.setdiff1d(image, first)
    second = np.empty(400, int)
    second[np.concatenate([rest[:100], first[:30], rest[100 : 100 + good], first[30:], rest[100 + good :]])] = image
    bad = np.isin(image, first)
    part = Division(image, [Order("1", image), Order("77", second)], []).unlike(image, bad, np.full(400, 0.3))
    assert part.says.endswith(f"order of {says}")
    assert (3 - 1 / 2) * math.log(5) > 4 > 2 * math.log(5)  # another order has to be stronger by 1 besides


@pytest.mark.parametrize(
    ("count", "says"),
    [(1, "images 10 to 22"), (2, "images 10 to 22 and 50 to 61"), (3, "images 10 to 22 and 2 other ranges"),
     (4, "images 10 to 22 and 3 other ranges")],
)  # fmt: skip
def test_ranges_in_words(count, says):
    image = np.arange(200)
    bad = (image % 40 >= 10) & (image % 40 < 22) & (image < 40 * count) | (image == 22)  # the first is the worst
    part = Division(image, [Order("ids", image)], []).unlike(image, bad, np.full(200, 0.1))
    assert part.says == f"{says}, in the order of ids"
    assert (part.images == bad).all()
