"""Checks of scores: whether they rank detections, use one scale, and are not cut off where detections still find objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.boxes import marks
from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence
from detmap.checks.findings import AT_LEAST, Finding, found
from detmap.checks.inputs import Side
from detmap.checks.rates import CHANCE, FEWEST, tail
from detmap.checks.reversal import Reversal
from detmap.errors import many

#: Number of lowest scores that are tested for a cut-off.
_LOWEST = 60

#: A score that is ten times as frequent as any other is reported, if its share and number of detections reach these
#: minima. Among 100,000 scores with six digits the most frequent one has a share of 0.0001.
_PILED, _FEWEST_PILED = 0.005, 20

#: A score is reported if it is the highest on ten times as many images as any other score, and at least on the share
#: `TOPS` of all images. On average, these images may have at most `ONCE` detections with this score. In a detector's
#: results for 4,952 images of VOC2007, no score is the highest on more than two images. Clipped scores, however, occur
#: several times on an image. If random results for 500 images of CrowdPose are clipped to 1, the score 1 occurs 252
#: times on 185 images.
TOPS, ONCE = 0.01, 1.1

#: To report that scores of a part are normalised per image: the highest score of all detections must occur on at least
#: the share `NORMALISED` of the part's images. On other images, the share may be up to `ROUNDED_UP`, because scores of
#: a confident model are rounded to 1. The score must occur about once per image (see `ONCE`). At least `FEWEST_OF_PART`
#: images must have this score. In a video this minimum is multiplied by the number of images on which an object stays,
#: up to `_FEWEST_PILED`.
NORMALISED, ROUNDED_UP, FEWEST_OF_PART = 0.9, 0.1, 8

#: Minimum number of detections on an image for its scores to count as constant. Without a defect, scores differ on all
#: images of VOC2007 with two or more detections.
TWO = 2

#: The density of scores is estimated from `_BESIDE` distinct scores on each side of a gap. In the gap, the lower of both
#: densities times `_THINNER` is assumed. The gap is reported if at least `_EXPECTED` scores are expected in it. By chance
#: the gap is empty in one of a million files.
_BESIDE, _THINNER, _EXPECTED = 50, 0.3, 14.0

#: Maximum share of detections whose score equals that of another detection of their category.
_TIED = 0.1

#: Minimum number of distinct scores with few digits, and minimum share of the detections with such scores. Of the
#: values between 0 and 1 with 2 to 4 decimal digits, 3 to 15 are exact in half precision; of random float32 scores, one
#: in 8,192 is exact in half precision.
COARSE, COARSE_SHARE = 20, 0.01


#: For images whose scores all have few digits. `SAMPLE` is the number of scores that are sampled first, and
#: `FEWEST_DIGITS` the minimum number of scores of an image. `BY_CHANCE` is the maximum ratio of the number of such
#: images expected by chance to the observed number. Of scores with six digits, one in 10,000 has at most two digits. If
#: scores have three digits, all four scores of an image have at most two digits with a probability of one in 10,000.
SAMPLE, FEWEST_DIGITS, BY_CHANCE = 20_000, 4, 0.05

#: Rescaled scores are compared with other scores at their quartiles. The share of other scores below each quartile may
#: differ from 0.25, 0.5 and 0.75 by at most `AS_OTHERS`. For 25 images with eight scores each, the difference is at most
#: 0.1 by chance. After a wrong rescaling it is 0.5 or more, because most scores of a detector are far below the middle of
#: their range.
QUARTILES, AS_OTHERS = np.array([0.25, 0.5, 0.75]), 0.15

#: Minimum number of detections on an image to determine the scale of its scores.
SEVERAL = 8

#: Functions of probabilities whose values lie in a band within 0 to 1: the ends of the band, the inverse function, and
#: the inverse in words. The sigmoid of 1 is 0.73106, or 0.7311 with four digits. Functions that fit low or cut scores
#: by chance, such as doubling, are not listed.
SQUEEZED: tuple[tuple[float, float, Callable[[NDArray[Any]], NDArray[Any]], str], ...] = (
    (
        0.5,
        0.7311,
        lambda own: np.log(own / (1 - own)),
        "as logits, log(x / (1 - x)), as where the sigmoid is applied twice,",
    ),
    (0.0, 0.01, lambda own: 100 * own, "multiplied by 100, as where they are divided twice,"),
)

#: Minimum share of a part's images whose scores all lie in a band of `SQUEEZED`.
IN_BAND = 0.9


def check(facts: Facts) -> Iterator[Finding]:
    """Check for scores that do not rank, mix two scales, are coarse, or were cut off."""
    side = facts.found
    if side is None or len(side) < 2:
        return
    scores = facts.detections.scores
    low, high = float(scores.min()), float(scores.max())
    if low == high:
        facts.causes.add(("detections", "constant_scores"))
        yield found("constant_scores", len(side), "detection", more=f"{low:g}")
        return
    turned = facts.reversal
    if turned is not None:
        yield _reversed(side, turned)
        scores = turned.scores
        low, high = float(scores.min()), float(scores.max())
    if facts.agreement is not None and not facts.causes and facts.agreement.upside_down:
        more = f"one on an object stands above one on none in {facts.agreement.ranked[0]:.0%} of the pairs looked at"
        yield found("inverted_scores", len(side), "detection", more=more)
    scales = list(_scales(facts, side, scores, low, high))
    normalised = [] if scales else list(_normalised(facts, side, scores))
    scales = scales or normalised or list(_squeezed(facts, side, scores))
    yield from scales
    mixed = any(one.code == "mixed_scores" for one in scales)
    given = facts.detections.scores
    tied = _tied(facts.detections.categories.codes, given, max(_TIED * len(given), 2))
    if tied is not None:
        more = f"{np.unique(given).size:,} different scores in all"
        yield found("quantised_scores", int(tied.sum()), "detection", more=more, **side.records(tied))
    flat = list(_flat(facts, side, scores))
    yield from flat
    piled = [] if normalised else list(_of_tops(side, scores))
    if not (piled or normalised or flat) and tied is None:
        piled = list(_piled(side, scores))
    for one in piled:
        facts.causes.add(("detections", one.code))
        yield one
    short = list(_coarse_part(facts, side, scores))
    yield from short or _coarse(side, scores, tied is None)
    if low >= 0 and not facts.causes:
        yield from _cut(facts, scores)
    between = None if scales else gap(scores)
    if between is not None:
        less, more_than, expected = between
        more = f"{less:.3g} to {more_than:.3g}, where {expected:,.0f} would be expected by those beside it"
        facts.causes.add(("detections", "score_gap"))
        yield found("score_gap", len(side), "detection", more=more)
    if mixed:
        facts.causes.add(("detections", "mixed_scores"))


def _reversed(side: Side, turned: Reversal) -> Finding:
    """Return the finding of images with reversed scores."""
    rows = np.flatnonzero((side.image >= 0) & turned.images[side.image])
    more = (
        f"{turned.says}; one on an object stands above one on none in {turned.own:.0%} of the pairs looked at there, "
        f"elsewhere in {turned.rest:.0%}"
    )
    return found("inverted_scores", rows.size, "detection", more=more, **side.records(rows))


def _scales(facts: Facts, side: Side, scores: NDArray[np.float64], low: float, high: float) -> Iterator[Finding]:
    """Yield findings of scores that are not probabilities."""
    if low >= 0 and high <= 1:
        return
    beyond = (scores > 1) | (scores < 0)
    within = _images_within(side, beyond) if low < 0 else 0
    if within or (low >= 0 and _two_scales(scores)):
        yield _mixed(facts, side, scores, beyond, within)
        return
    code = "percentage_scores" if low >= 0 and high <= 100 and np.quantile(scores, 0.99) > 5 else "logit_scores"
    count = len(scores) if code == "percentage_scores" else int(beyond.sum())
    shown = {} if code == "percentage_scores" else side.records(beyond)
    yield found(code, count, "detection", more=f"from {low:.3g} to {high:.3g}", **shown)


def _mixed(facts: Facts, side: Side, scores: NDArray[np.float64], beyond: NDArray[np.bool_], within: int) -> Finding:
    """Return the finding of scores on two scales."""
    known = side.image >= 0
    count = side.on.images.ids.size
    held, some = (np.bincount(side.image[which], minlength=count) > 0 for which in (known, known & beyond))
    part = facts.gathered(some, held)
    there = (some if part is None else part.images)[side.image] & known
    how = _rescaled(scores[there], scores[~there])
    rows = there if how else there & beyond
    low, high = float(scores[there].min()), float(scores[there].max())
    span = f"from {low:.3g} to {high:.4g}" if low < 0 else f"up to {high:.4g}"
    said = [f"{np.count_nonzero(there & beyond):,} are below 0 or above 1, {span}"]
    if part is not None:
        said.insert(0, facts.says_part(part))
        others = int(np.count_nonzero(beyond & ~there))
        said.append("elsewhere " + (f"{others:,} are" if others else "all lie within"))
    elif within:
        said.append(f"on {many(within, 'image')} all lie within")
    words = AT_LEAST if how and part is None else "{many}"  # images with only low scores cannot be told apart
    more = "; ".join([*said, *how])
    return found("mixed_scores", int(rows.sum()), "detection", more=more, words=words, **side.records(rows))


def _rescaled(own: NDArray[np.float64], others: NDArray[np.float64]) -> list[str]:
    """Return in words how to rescale scores to resemble `others`: as logits, or divided by 100. The list has at most one
    item.
    """
    if not others.size or others.min() < 0 or others.max() > 1:
        return []
    for says, made in (
        ("divided by 100 they are as those of others", own / 100),
        ("as logits of scores, 1 / (1 + exp(-x)), they are as those of others", 1 / (1 + np.exp(-own.clip(-500, 500)))),
    ):
        if made.min() >= 0 and made.max() <= 1 and _as_others(made, others):
            return [says]
    return []


def _as_others(own: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Return whether the quartiles of scores are close to the quartiles of other scores."""
    places = np.searchsorted(np.sort(others), np.quantile(own, QUARTILES)) / others.size
    return bool((np.abs(places - QUARTILES) <= AS_OTHERS).all())


def _squeezed(facts: Facts, side: Side, scores: NDArray[np.float64]) -> Iterator[Finding]:
    """Yield a finding of a part of the images whose scores are a function of probabilities with values within 0 to 1."""
    known = side.image >= 0
    for low, high, undone, says in SQUEEZED:
        band = known & (scores >= low) & (scores <= high)
        held, some = (np.bincount(side.image[which], minlength=side.on.images.ids.size) for which in (known, band))
        whole = (held > 0) & (held == some)
        if facts.schema or np.count_nonzero(whole) < FEWEST:
            continue
        part = facts.gathered(whole, held > 0)
        if part is None or whole[part.images & (held > 0)].mean() < IN_BAND:
            continue
        inside = part.images[side.image] & known
        rows = inside & band
        own, others = scores[rows], scores[known & ~inside]
        if others.size and _as_others(undone(own).clip(0, 1), others):
            span = f"from {own.min():.3g} to {own.max():.3g}"
            more = f"{facts.says_part(part)}; {span}; {says} they are as those of others"
            yield found("mixed_scores", int(rows.sum()), "detection", more=more, **side.records(rows))
            return


def _normalised(facts: Facts, side: Side, scores: NDArray[np.float64]) -> Iterator[Finding]:
    """Yield a finding of a part whose images all have the same highest score, as if scores were divided by it."""
    known = (side.image >= 0) & side.sized & ~side.aside
    value = float(scores[known].max(initial=-np.inf))
    best = known & (scores == value)
    if facts.schema or np.count_nonzero(best) < FEWEST_OF_PART:
        return
    fewest = min(int(FEWEST_OF_PART * Evidence(facts.truth, facts.truth, np.empty(0)).frames), _FEWEST_PILED)
    count = side.on.images.ids.size
    held, some = (np.bincount(side.image[which], minlength=count) > 0 for which in (known, best))
    part = facts.gathered(some, held)
    if part is None:
        return
    inside, outside = held & part.images, held & ~part.images
    rows = known & part.images[side.image]
    images = int(np.count_nonzero(some & inside))
    if (
        images < max(fewest, NORMALISED * np.count_nonzero(inside))
        or np.count_nonzero(some & outside) > ROUNDED_UP * np.count_nonzero(outside)
        or np.count_nonzero(best & rows) > ONCE * images
        or np.count_nonzero(rows) < TWO * images
    ):
        return
    more = (
        f"{facts.says_part(part)}; the highest score of {images:,} of them is {value:.4g}, as where scores are divided by "
        f"the highest of their image; elsewhere that of {int(np.count_nonzero(some & outside)):,}"
    )
    yield found("mixed_scores", int(rows.sum()), "detection", more=more, **side.records(rows))


def _images_within(side: Side, outside: NDArray[np.bool_]) -> int:
    """Return the number of images with all scores from 0 to 1; 0 if chance explains them, given the other images' scores."""
    held = np.bincount(side.image[side.image >= 0], minlength=1)
    beyond = np.bincount(side.image[(side.image >= 0) & outside], minlength=held.size)
    full = held >= SEVERAL
    some = full & (beyond > 0)
    if not some.any():
        return 0
    share = 1 - beyond[some].sum() / held[some].sum()
    count = int(np.count_nonzero(full & (beyond == 0)))
    if tail(count, 2 * float((share ** held[full]).sum()) + 5) >= CHANCE:
        return 0
    return int(np.count_nonzero((held > 0) & (beyond == 0)))


def _two_scales(scores: NDArray[np.float64]) -> bool:
    """Return whether scores up to 1 and scores above 1 come from different populations."""
    # In one population, the densities just below and just above 1 are similar. If probabilities are mixed with scores
    # on a wider scale, the density falls steeply at 1.
    inside = scores[scores <= 1]
    if inside.size == scores.size or (scores == np.floor(scores)).all():
        return False
    below, above = np.count_nonzero(inside > 0.5), np.count_nonzero((scores > 1) & (scores <= 1.5))
    if tail(int(below), 3.0 * (above + 1)) < 1e-4 and float(np.quantile(scores[scores > 1], 0.5)) > 2:
        return True
    # A minority of scores far above all others is another scale too, as when one of many merged files is in percent.
    return bool(
        (scores > 1).mean() < 0.5
        and float(np.quantile(scores[scores > 1], 0.5)) > 5
        and tail(int(below), 2.0 * (above + 1)) < 1e-3
    )


def _tied(codes: NDArray[Any], scores: NDArray[np.float64], most: float) -> NDArray[np.bool_] | None:
    """Mask of the detections with the same score as another detection of their category; None if there are at most
    `most`.
    """
    mixed = marks(codes, scores)
    if np.count_nonzero(_with_a_twin(np.sort(mixed))) <= most:
        return None
    order = np.argsort(mixed)
    out = np.zeros(mixed.size, np.bool_)
    out[order] = _with_a_twin(mixed[order])
    return out


def _coarse(side: Side, scores: NDArray[np.float64], untied: bool) -> Iterator[Finding]:
    """Yield a finding of scores in half precision or else, if `untied`, of scores with two decimal digits."""
    for says, few in (
        ("as half precision (float16) has", halves),
        ("two after the point, where others have more", hundredths),
    ):
        some = few(scores) if untied or few is halves else None
        if some is not None:
            yield found("coarse_scores", int(some.sum()), "detection", more=says, **side.records(some))
            return


def _coarse_part(facts: Facts, side: Side, scores: NDArray[np.float64]) -> Iterator[Finding]:
    """Yield a finding of a part of the images whose scores have fewer decimals than elsewhere."""
    sample = scores[np.random.default_rng(0).integers(len(scores), size=min(SAMPLE, len(scores)))]
    if facts.schema or sample.min() < 0 or sample.max() > 1:
        return
    for digits in (1, 2, 3, 4):
        share = float(np.mean(_digits(sample, digits)))
        if share <= COARSE_SHARE or share >= 1 - COARSE_SHARE:
            continue
        known = side.image >= 0
        few = _digits(scores, digits) & known
        count = side.on.images.ids.size
        held, some = (np.bincount(side.image[which], minlength=count) for which in (known, few))
        whole = (held == some) & (held >= FEWEST_DIGITS)
        # If scores with few digits are frequent everywhere, some images have only such scores by chance.
        rate = float(some[~whole].sum() + 1) / (held[~whole].sum() + 1)
        expected = float((rate ** np.minimum(held[held >= FEWEST_DIGITS], 100)).sum())
        images = int(np.count_nonzero(whole))
        if tail(images, 2 * expected + 1) >= CHANCE or expected > BY_CHANCE * images:
            continue
        part = facts.concentrated(whole, held >= FEWEST_DIGITS)
        there = whole if part is None else part.images
        rows = few & there[side.image]
        if np.unique(scores[rows]).size < COARSE / 2:
            continue
        where = f"on {many(images, 'image')}" if part is None else facts.says_part(part)
        more = f"{('one', 'two', 'three', 'four')[digits - 1]} after the point, where others have more; {where}"
        yield found("coarse_scores", int(rows.sum()), "detection", more=more, **side.records(rows))
        return


def _digits(scores: NDArray[np.float64], digits: int) -> NDArray[np.bool_]:
    """Mask of the scores, from 0 to 1, with at most `digits` digits after the point."""
    scaled = scores.clip(-1, 2) * 10.0**digits
    return np.asarray(np.abs(scaled - np.round(scaled)) < 1e-9 * 10.0**digits)


def halves(scores: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Mask of the non-integer scores that are exact in half precision; None if there are few or chance explains them."""
    with np.errstate(over="ignore"):
        exact = (scores.astype(np.float16) == scores) & (scores != np.floor(scores))
    return _enough(scores, exact, 0.0)


def hundredths(scores: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Mask of the scores between 0 and 1 with at most two decimal digits; None if there are few or chance explains
    them.

    Of scores with three digits, one in ten ends in a zero; of scores with four digits, one in a hundred ends in two
    zeros.
    """
    inner = (scores > 0) & (scores < 1)
    held = np.where(inner, scores, 0.5)
    by_digits = [inner & (np.abs(held * ten - np.round(held * ten)) < 1e-9 * ten) for ten in (100.0, 1000.0, 10_000.0)]
    two, three, four = map(np.count_nonzero, by_digits)
    return _enough(scores, by_digits[0], (three - two) / 9 + (four - three) / 90)


def _enough(scores: NDArray[np.float64], some: NDArray[np.bool_], by_chance: float) -> NDArray[np.bool_] | None:
    count = int(np.count_nonzero(some))
    if count < max(COARSE, COARSE_SHARE * scores.size) or tail(count, 2 * by_chance + 1) >= CHANCE:
        return None
    return some if np.unique(scores[some]).size >= COARSE else None


def _piled(side: Side, scores: NDArray[np.float64]) -> Iterator[Finding]:
    """Yield a finding of one score that is far more frequent than any other."""
    ascending = np.sort(scores[side.sized & ~side.aside])
    edges = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1], [True]]))
    held = np.diff(edges)
    most = int(held.argmax())
    others = int(np.partition(held, -2)[-2]) if held.size > 1 else 0
    if held[most] >= max(_PILED * len(scores), _FEWEST_PILED, 10 * others):
        value = float(ascending[edges[most]])
        same = scores == value
        yield found("piled_scores", int(same.sum()), "detection", more=f"{value:.4g}", **side.records(same))


def _flat(facts: Facts, side: Side, scores: NDArray[np.float64]) -> Iterator[Finding]:
    """Yield a finding of images whose detections all have the same score, such as 1 for labels written as detections."""
    known = (side.image >= 0) & ~side.aside
    image, own = side.image[known], scores[known]
    held = np.bincount(image, minlength=side.on.images.ids.size)
    least, most = np.full((2, held.size), np.inf)
    np.minimum.at(least, image, own)
    np.minimum.at(most, image, -own)
    same = least == -most
    if np.count_nonzero(same & (held >= TWO)) < FEWEST:
        return
    values, times = np.unique(least[same & (held >= TWO)], return_counts=True)
    value = float(values[times.argmax()])
    for fewest in (1, TWO):  # images with a single detection count only if the score is rare elsewhere
        whole = same & (least == value) & (held >= fewest)
        others = ~whole[image]
        rate = float(np.count_nonzero(own[others] == value) + 1) / (np.count_nonzero(others) + 1)
        expected = float((rate ** np.minimum(held[held >= fewest], 100)).sum())
        images = int(np.count_nonzero(whole))
        if times.max() < FEWEST or tail(images, 2 * expected + 1) >= CHANCE or expected > BY_CHANCE * images:
            continue
        part = facts.gathered(whole, held >= fewest)
        there = whole if part is None else part.images & whole
        rows = known & there[side.image]
        facts.cut = _cut_elsewhere(own, image, there | (held == 0) if part is None else part.images)
        facts.causes.add(("detections", "uneven_scores"))
        facts.parts.append((there, None))
        where = f"on {many(images, 'image')}" if part is None else facts.says_part(part)
        yield found("constant_scores", int(rows.sum()), "detection", more=f"{value:.4g}; {where}", **side.records(rows))
        return


def _cut_elsewhere(
    scores: NDArray[np.float64], image: NDArray[np.int64], part: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], float] | None:
    """Return the value of `Facts.cut` (the mask `part` and a score) if a part has fewer detections than the rest, else
    None. If detections below the score were removed elsewhere, other images would have as few detections as the part.
    """
    inside = part[image]
    lost = 1 - float(inside.sum() / part.sum() * (~part).sum() / max((~inside).sum(), 1))
    return (part, float(np.quantile(scores[~inside], lost))) if lost > 0 and not inside.all() else None


def _of_tops(side: Side, scores: NDArray[np.float64]) -> Iterator[Finding]:
    """Yield a finding of one score that is the highest on far more images than any other score."""
    known = (side.image >= 0) & side.sized & ~side.aside
    top = np.full(side.on.images.ids.size, -np.inf)
    np.maximum.at(top, side.image[known], scores[known])
    values, held = np.unique(top[np.isfinite(top)], return_counts=True)
    if not values.size:
        return
    most = int(held.argmax())
    others = int(np.partition(held, -2)[-2]) if held.size > 1 else 0
    same = known & (scores == values[most])
    once = np.count_nonzero(same) <= ONCE * held[most]
    if once and held[most] >= max(TOPS * held.sum(), _FEWEST_PILED, 10 * others):
        more = f"{values[most]:.4g}, the highest of {held[most]:,} images, where no other is of more than {others:,}"
        yield found("piled_scores", int(same.sum()), "detection", more=more, **side.records(same))


def gap(scores: NDArray[np.float64]) -> tuple[float, float, float] | None:
    """Return the ends of the gap with the largest expected number of scores, and this number; None if the expected
    number is small.

    The expected number follows from the density of scores on the sparser side of the gap.
    """
    values = np.unique(scores)  # without ties, rounded scores are evenly spaced
    if values.size < 2 * _BESIDE + 2:
        return None
    at = np.arange(_BESIDE, values.size - _BESIDE - 1)
    wide = values[at + 1] - values[at]
    sides = np.maximum(values[at] - values[at - _BESIDE], values[at + 1 + _BESIDE] - values[at + 1])
    expected = _THINNER * _BESIDE * wide / sides
    best = int(np.argmax(expected))
    if expected[best] < _EXPECTED:
        return None
    return float(values[at[best]]), float(values[at[best] + 1]), float(expected[best] / _THINNER)


def _with_a_twin(ascending: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Mask of the numbers that equal their predecessor or successor, shape (n,)."""
    same = ascending[1:] == ascending[:-1]
    out = np.zeros(ascending.size, np.bool_)
    out[1:] = same
    out[:-1] |= same
    return out


def _ends_at_once(scores: NDArray[np.float64]) -> bool:
    """Return whether the lowest scores are uniformly distributed instead of thinning out towards the minimum."""
    # The mean relative position of uniform scores is a half; the margin is two standard errors.
    if scores.size < 4 * _LOWEST:
        return False
    lowest = np.sort(np.partition(scores, _LOWEST)[:_LOWEST])
    span = float(lowest[-1] - lowest[0])
    return not span or float((lowest[1:-1] - lowest[0]).mean()) / span < 0.5 + 2 / np.sqrt(12 * (_LOWEST - 2))


def _cut(facts: Facts, scores: NDArray[np.float64]) -> Iterator[Finding]:
    """Yield a finding if scores end abruptly at a minimum at which detections still find objects."""
    # A detector's scores thin out towards 0 or pile up there, but do not end abruptly. `expected` is the number of
    # scores that would lie below the minimum at the density just above it. The probability that no score lies below the
    # minimum by chance is exp(-expected).
    agreement = facts.agreement
    if agreement is None or float(scores.max()) <= 0:
        return
    low, top = float(scores.min()), float(scores.max())
    scale = 100.0 if top > 1.5 else 1.0
    width = min(low, 0.1 * scale)
    if low <= 0.01 * scale:
        return
    above = scores < low + width
    expected = float(np.count_nonzero(above)) * low / width
    if expected < 12:
        return
    if not _ends_at_once(scores):
        return
    lowest = np.flatnonzero(scores <= np.quantile(scores, 0.1))
    rate, missed = agreement.rate(lowest[:5000])
    if rate >= 0.1 and missed >= 0.03:
        more = (
            f"{low:.3g}; of the lowest tenth {rate:.0%} lie on an object, and {missed:.0%} of the objects are not found"
        )
        yield found("score_cut", len(scores), "detection", more=more)
