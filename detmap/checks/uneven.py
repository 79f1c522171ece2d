"""Checks of scores, boxes and numbers of detections that differ between parts of the data although the objects do not.

Each statistic has one value per image. A part of the images differs if most of its values are among the lowest (or
highest) half or tenth of all values. To compare categories, only detections that find objects are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.evidence import Evidence
from detmap.checks.findings import AT_LEAST, Finding, found, names
from detmap.checks.rates import Part
from detmap.checks.resized import resized_sides
from detmap.errors import many

Array = NDArray[Any]

#: Shares of the images that count as lowest (or highest) in a test: a half detects large parts, a tenth small parts.
SPLITS = (0.5, 0.1)

#: Minimum share of a part's images that must be among the lowest (or highest), for each of `SPLITS`.
INSIDE = (0.85, 0.5)

#: Minimum number of images of a part, and minimum number of detections of a category that find objects.
FEWEST, FEWEST_OF_CATEGORY = 8, 20

#: For a part with low (high) scores: maximum share of the other images' scores that lie below (above) the part's
#: median.
LOW = 0.25

#: If objects of a part are harder to detect, its true positives have lower scores, but its false positives do not.
#: `ALSO` is the maximum share, as in `LOW`, for false positives, unless the share for true positives is at most `FAR`.
#: In 520 scenes of ``tests/planting/natural.py``, 5 harder parts pass `LOW`. In these parts the share for true
#: positives is at least 0.21; in 4 of the 5 parts the share for false positives is 0.46 to 0.53. If scores are scaled,
#: squared or halved in a part of ``tests/planting/scenes.py``, the share for false positives is at most 0.39. The share
#: for true positives is at most 0.08 if scores are halved.
ALSO, FAR = 0.42, 0.15

#: The score at which a part was cut is estimated from the lowest score of each image. The quantile `AT_THE_ENDS` of these
#: scores is used, because images at the ends of a part may belong to the rest. The cut may be lower than the quantile
#: by at most the share `AT_THE_CUT` of the distance between the quantile and the median.
AT_THE_ENDS, AT_THE_CUT = 0.2, 0.25

#: Minimum share of the scores outside of a part that are below the cut. For scores above the cut, maximum difference of
#: the medians inside and outside of the part, relative to the interquartile range outside.
BELOW, ALIKE = 0.3, 0.5

#: Once the cut is known, the ends of the part are determined again. An image counts as cut if its lowest score is
#: nearer to the cut than to the median lowest score of other images. `ANOTHER` is the assumed share of the part's
#: images with lower scores. A small value makes the part end at an image with lower scores. The part may change by at
#: most the share `MOVED` of its images, because a larger change means another part.
ANOTHER, MOVED = 0.01, 0.2

#: A part counts as cut if the ratio of its number of detections per image and object to the number in the rest is at
#: most q ** `FEWER`. The ratio expected from the cut is q.
FEWER = 0.5

#: Minimum share of a part's images that have the same number of detections, 2 or more, for this number to be a limit. In
#: 28 clean scenes of ``tests/planting`` (seeds 0 to 3 of each kind) the share is at most 0.15.
CAPPED = 0.4

#: Maximum number of detections whose scores are compared.
SAMPLE = 100_000

#: Words of a finding about detections that find objects, and about detections that find no object.
FINDING, FINDING_NONE = "{many} that find objects,", "{many} that find no object,"

#: Minimum ratio of the numbers of detections per object in a part and in the rest, where the larger number is divided
#: by the smaller.
FACTOR = 2.0

#: A category is reported if the range of its scores does not overlap the range of the other categories' scores. Each
#: range reaches from the quantile `APART` to the quantile 1 - `APART`.
APART = 0.05

#: A category is also reported if at least the share `ABOVE` of the other categories' scores exceed its maximum. If the
#: category's scores are halved, half of the other scores exceed this maximum. `OF_THOSE` is the share of the category's
#: scores that count as independent draws in the test. The share is below 1, because difficult categories have few high
#: scores even without a defect.
ABOVE, OF_THOSE = 0.5, 0.3

#: Minimum share of the variance of score ranks that lies between images: with two scales, each on half of the images,
#: the share is 0.75.
BETWEEN = 0.5

#: Minimum number of images with several scores, for the variance between images to be computed.
FEWEST_IMAGES = 40

#: Minimum lead of true positives for scores to be informative. The lead of an image is the mean rank of true positives
#: minus the mean rank of false positives; the median over images counts. The lead is 0.25 or more for detectors, and 0
#: by chance.
AHEAD = 0.06

#: If true positives lead by less in a part than elsewhere: maximum ratio of the median lead inside the part to the
#: median lead outside. The second maximum applies if the file lists each image's detections by score in this part only,
#: for example because scores were sorted separately from boxes. For night images in ``tests/planting/natural.py``, on
#: which half of the objects are missed, the ratio is above 0.6. If scores are sorted but boxes are listed by category,
#: the ratio is 0.3 for VOC2007, because the best boxes of each category still come first.
LESS_AHEAD, LESS_IF_LISTED = 0.25, 0.5

#: The scores of a part are reversed, and not merely uninformative, if false positives lead true positives by a margin.
#: `BEHIND` is the minimum ratio of the margin to the median lead of true positives elsewhere. If scores are reversed
#: the ratio is about 1, and if they are shuffled about 0.
BEHIND = 0.5

#: To report that only in a part the file lists detections by descending score: minimum share of the part's images with
#: this order, and maximum share of other images with this order. Images with fewer than `FEWEST_LISTED` detections are
#: ignored. Six detections have this order by chance once in 720.
LISTED, LISTED_ELSEWHERE, FEWEST_LISTED = 0.9, 0.5, 6

#: Minimum ratio of false to true positives, for their mean ranks to be compared.
MINORITY = 0.5

#: Minimum median deviation of boxes for a finding, as a share of the object's side; trained detectors stay below this
#: share.
BIAS = 0.08

#: Share of images that count as having the largest (or smallest) detections, and assumed share of a resized part's
#: images that do not count. With sides times 0.83, 6 of 10 images of the part are among the 3 of 10 images with the
#: smallest detections.
RESIZED, LEFT_RESIZED = 0.3, 0.4

#: Minimum median deviation of width and height for a finding, in pixels, if small and large objects have the same
#: deviation.
PIXELS = 0.75

#: Limits for images on which all objects are drawn larger, or smaller, than elsewhere. The width and height of an
#: object are divided by the width and height of the detection that finds it. In a category with at least
#: `FEWEST_OF_CATEGORY` objects, these ratios are divided by their median. Only the best share `BETTER` of a category's
#: confident detections is used, because other detections may lie on an object by chance. The smaller of an object's two
#: ratios is the factor by which the object is drawn larger. Ratios above `MOST_DRAWN` count as `MOST_DRAWN`.
BETTER, MOST_DRAWN = 0.5, 1.22

#: `CORRELATED` is the minimum correlation between the ratios of two objects on one image. The correlation must exceed
#: `NATURAL`, the correlation without a defect, by at least `SURE` standard errors. Without a defect the correlation is
#: 0.04 to 0.12 for two detectors on VOC2007, with a standard error of 0.03 to 0.06. If a fifth of the images of VOC2007
#: have a margin of 12% at each edge, the correlation is 0.17 to 0.23.
CORRELATED, NATURAL, SURE = 0.15, 0.06, 3.1

#: An image is reported if it has two or more objects and all of them are larger by at least the factor `DRAWN`. There
#: must be at least `FEWEST_DRAWN` such images, and `DRAWN_TIMES` as many as expected if objects were independent. For
#: VOC2007 the ratio to the expected number is at most 1.6. With the margin of `CORRELATED`, the ratio is 2.6 to 2.8.
DRAWN, FEWEST_DRAWN, DRAWN_TIMES = 1.08, 10, 2.0


@dataclass(frozen=True)
class Statistic:
    """One value for each image."""

    code: str
    unit: str
    #: Indices of the images with a value, the values, and the number of records of each value, all of shape (n,).
    image: NDArray[np.int64]
    value: NDArray[np.float64]
    records: NDArray[np.int64]


def check(facts: Facts) -> Iterator[Finding]:
    """Check for parts and categories with other scores, other boxes, or more or fewer detections than the rest."""
    evidence = facts.evidence
    if evidence is None or facts.parts or not evidence.objects.size or not evidence.detections.size:
        return
    rows, objects = evidence.finders
    if facts.caused("detections", "copied_boxes"):  # confident detections are copied, so their scores are biased
        rows, objects = (column[~evidence.copies.same] for column in (rows, objects))
    if rows.size >= FEWEST_OF_CATEGORY:
        yield from _scores(evidence, rows, objects, evidence.finders[0])
        # boxes around points are smaller than their objects
        if evidence.found.posed is None and not (
            facts.caused("detections", "cut_boxes", "square_boxes") or facts.caused("ground_truth", "square_boxes")
        ):
            yield from _boxes(facts, evidence, rows, objects)
    if not facts.caused("detections", "sizes_cut"):
        yield from _counts(evidence)


# ------------------------------------------------------------------------------------------------------------------- parts


def _by_image(image: Array, values: Array, count: int) -> tuple[Array, Array, Array]:
    """Return the images that have values, the mean of the values of each image, and the number of these values."""
    held = np.bincount(image, minlength=count)
    at = np.flatnonzero(held)
    return at, np.bincount(image, values, count)[at] / held[at], held[at]


def ranks(values: Array, codes: Array, order: Array | None = None) -> NDArray[np.float64]:
    """Return the rank of each value within its code, from 0 to 1; ties get their mean rank. `order` sorts the values."""
    order = np.argsort(values) if order is None else order
    held = np.bincount(codes)
    if held.size > 1:
        small = np.min_scalar_type(held.size)  # numpy sorts integers of at most 16 bits by radix
        order = order[np.argsort(codes[order].astype(small), kind="stable")]
    ascending = values[order]
    new = np.ones(values.size, np.bool_)
    new[1:] = ascending[1:] != ascending[:-1]
    start, total = np.zeros(1, np.int64), held[:1]
    if held.size > 1:
        of = codes[order]
        new[1:] |= of[1:] != of[:-1]
        start, total = (np.cumsum(held) - held)[of], held[of]
    first = np.flatnonzero(new)
    many = np.diff(np.append(first, values.size))
    place = np.repeat(first + many / 2, many)
    out = np.empty(values.size)
    out[order] = (place - start) / total
    return out


def _about(part: Part) -> str:
    """Return the description of a part, with "about" before a range, because its ends are uncertain."""
    return f"about {part.says}" if part.says.startswith("images ") else part.says


def _flags(value: Array, bins: Array, split: float, high: bool) -> NDArray[np.bool_]:
    """Mask of the values among the lowest (or highest) share `split` of their bin, which holds similar numbers of
    records.
    """
    rank = ranks(-value if high else value, bins)
    return np.asarray(rank < split)


def _part(evidence: Evidence, one: Statistic, looks: int) -> Iterator[tuple[Part, bool]]:
    """Yield the part with low or high values of a statistic, if there is one, and whether the values are high."""
    if one.image.size < 4 * FEWEST:
        return
    bins = np.searchsorted([2, 3, 6, 12], one.records, "right")
    for split, inside in zip(SPLITS, INSIDE, strict=True):
        for high in (False, True):
            bad = _flags(one.value, bins, split, high)
            part = evidence.division.unlike(one.image, bad, np.full(bad.size, split), looks, evidence.frames)
            if part is None or np.count_nonzero(part.units) < FEWEST or part.units.all():
                continue
            if bad[part.units].mean() >= inside:
                yield part, high
                return


def _scores(evidence: Evidence, rows: Array, objects: Array, finders: Array) -> Iterator[Finding]:
    """Compare the scores of the detections at `rows`, which find `objects`, between parts of the images, between
    categories, and between images. Also compare the scores of all detections but `finders` between parts.
    """
    scores, label, image = evidence.scores[rows], evidence.object_label[objects], evidence.object_image[objects]
    if not np.isfinite(scores).all() or scores.min() == scores.max():
        return
    apart = list(_of_categories(evidence, scores, label, image))
    yield from apart
    rank = ranks(scores, label)
    finding, none = Scores(scores, label, image, FINDING), _of_others(evidence, finders)
    for own, other in ((finding, none), (none, finding)):
        made = None if own is None else _of_part(evidence, own, other)
        if made is not None:
            yield made
            return
    if not apart:
        yield from _between(evidence, rank, image, scores)


class Scores(NamedTuple):
    """The scores of some detections, with the category and the image of each, and the words of a finding about them."""

    scores: Array
    label: Array
    image: Array
    words: str


def _of_part(evidence: Evidence, own: Scores, other: Scores | None) -> Finding | None:
    """Return the finding of a part of the images with low or high scores; None if there is none. If the scores of
    `other` detections do not differ, the images of the part are merely easier or harder, and there is no finding.
    """
    made = _part_of_scores(evidence, own.scores, own.label, own.image)
    if made is None:
        return None
    part, inside, high, place = made
    if place > FAR and other is not None:
        there = part.images[other.image]
        rank = ranks(other.scores, other.label)
        if min(np.count_nonzero(there), np.count_nonzero(~there)) < FEWEST or (
            place_of(rank[there], rank[~there], high) > ALSO
        ):
            return None
    return _other_scores(evidence, part, inside, own.scores, own.image, own.words)


def _other_scores(evidence: Evidence, part: Part, inside: Array, scores: Array, image: Array, words: str) -> Finding:
    """Return the finding of a part with low or high scores; the mask `inside` marks the scores of the part."""
    own, rest = (number(float(np.median(scores[which]))) for which in (inside, ~inside))
    more = f"{_about(part)}: median {own}; elsewhere {rest}"
    return _said("uneven_scores", evidence, image[inside], more, words)


def _part_of_scores(
    evidence: Evidence, scores: Array, label: Array, image: Array, alike: bool = True
) -> tuple[Part, Array, bool, float] | None:
    """Return a part of the images with low or high scores; None if there is none. Also return a mask of the part's
    scores, whether the scores are high, and the share that `LOW` limits.

    With `alike`, each image is compared only with images that have about as many scores.
    """
    rank = ranks(scores, label)
    where, mean, held = _by_image(image, rank, evidence.images)
    if not alike:  # images whose scores were cut off have few scores left
        held = np.ones_like(held)
    for part, high in _part(evidence, Statistic("uneven_scores", "detection", where, mean, held), 8):
        inside = part.images[image]
        place = 1.0 if inside.all() else place_of(rank[inside], rank[~inside], high)
        if place <= LOW:
            return part, inside, high, place
    return None


def place_of(own: Array, rest: Array, high: bool) -> float:
    """Return the share of `rest` below the median of `own` or, with `high`, above it; ties count as one half."""
    middle = float(np.median(own))
    beyond, equal = np.mean(rest > middle if high else rest < middle), np.mean(rest == middle)
    return float(beyond + equal / 2)


def _of_others(evidence: Evidence, rows: Array) -> Scores | None:
    """Return the scores of all detections except those at `rows`, which find objects; None if there are few. If mainly
    low scores are changed, the scores at `rows` hardly differ, but the other scores do.
    """
    finds = np.zeros(len(evidence.found), np.bool_)
    finds[rows] = True
    others = evidence.detections[~finds[evidence.detections]]
    if others.size < FEWEST_OF_CATEGORY:
        return None
    words = FINDING_NONE
    if others.size > SAMPLE:
        others = np.random.default_rng(0).permutation(others)[:SAMPLE]
        words = AT_LEAST.format(many=words)
    return Scores(evidence.scores[others], evidence.label[others], evidence.found.image[others], words)


def _of_categories(evidence: Evidence, scores: Array, label: Array, image: Array) -> Iterator[Finding]:
    """Yield findings of categories with nearly all scores below or above nearly all scores of the other categories."""
    held = np.bincount(label, minlength=evidence.classes)
    ascending = np.sort(scores)
    for one in np.flatnonzero(held >= FEWEST_OF_CATEGORY).tolist():
        own = scores[label == one]
        if scores.size - own.size < FEWEST_OF_CATEGORY:
            continue
        low, high = np.quantile(own, [APART, 1 - APART])
        # For most categories these counts rule out a finding, so that the slower quantiles of the other scores are not
        # needed.
        below, above_low, above_own = (
            np.searchsorted(ascending, high) - np.count_nonzero(own < high),
            np.count_nonzero(own <= low) - np.searchsorted(ascending, low, "right") + scores.size - own.size,
            scores.size - np.searchsorted(ascending, own.max(), "right"),
        )
        most_beyond = APART * (scores.size - own.size) + 1
        if min(below, above_low) > most_beyond and above_own < ABOVE * (scores.size - own.size):
            continue
        others = scores[label != one]
        least, most = np.quantile(others, [APART, 1 - APART])
        above = float(np.mean(others > own.max()))
        name = names([str(evidence.truth.on.categories.names[one])])
        if high >= least and above >= ABOVE and (1 - above) ** (OF_THOSE * own.size) < 1e-6:
            more = f"category {name}: none above {number(float(own.max()))}, as {above:.0%} of the others are"
            yield _said("uneven_scores", evidence, image[label == one], more, FINDING)
        if high < least or low > most:
            middle, rest = (number(float(np.median(values))) for values in (own, others))
            more = f"category {name}: median {middle}; of the others {rest}"
            yield _said("uneven_scores", evidence, image[label == one], more, FINDING)


def _between(evidence: Evidence, rank: Array, image: Array, scores: Array) -> Iterator[Finding]:
    """Yield a finding if most variance of scores lies between images, as with two scales on interleaved images."""
    held = np.bincount(image, minlength=evidence.images)
    several = held[image] >= 2
    images = int(np.count_nonzero(held >= 2))
    if images < FEWEST_IMAGES:
        return
    mean = (np.bincount(image, rank, evidence.images) / np.maximum(held, 1))[image]
    within = float(((rank - mean)[several] ** 2).sum()) / (np.count_nonzero(several) - images)
    share = 1 - within / float(rank[several].var())
    if share >= BETWEEN:
        more = f"{share:.0%} of the variance of their ranks lies between the {images:,} images that have several"
        yield _said("uneven_scores", evidence, image[several], more, FINDING)


def _said(code: str, evidence: Evidence, image: Array, more: str, words: str = "{many}") -> Finding:
    shown = evidence.truth.on.images.ids[np.unique(image)].tolist()
    return found(code, image.size, "detection", records=shown, named="image", more=more, words=words)


def differing(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Check for a part of the images with other scores than the rest, or without scores below a cut.

    Such a part has fewer detections, or its true and false positives have other ranks. Other checks would mistake the
    part for lost detections or missing labels.
    """
    rows, words = evidence.detections, "{many}"
    if facts.caused("detections", "cap_reached", "uneven_scores"):
        return  # a limit of the number of detections, or constant scores, explain that low scores are missing
    if rows.size > SAMPLE:
        rows, words = np.random.default_rng(0).permutation(rows)[:SAMPLE], AT_LEAST
    scores, label, image = evidence.scores[rows], evidence.label[rows], evidence.found.image[rows]
    if not np.isfinite(scores).all() or scores.min() == scores.max():
        return
    made = _part_of_scores(evidence, scores, label, image, alike=False)
    if made is None:
        return
    part, inside = made[:2]
    held = np.bincount(evidence.found.image[evidence.detections], minlength=evidence.images)
    for which in (part.images, ~part.images):
        times = np.bincount(held[which & (held > 1)], minlength=1)
        if times.max() >= CAPPED * np.count_nonzero(held[which]):
            return  # a limit of the number of detections leaves only high scores
    facts.causes.add(("detections", "uneven_scores"))
    size = 1 + np.bincount(evidence.object_image, minlength=evidence.images)
    for which, of_part, where in ((inside, part.images, "images"), (~inside, ~part.images, "all but images")):
        cut = _cut(scores, which, image)
        own, rest = (float(held[one].sum() / size[one].sum()) for one in (of_part, ~of_part))
        if cut is not None and own <= rest * float(np.mean(scores[~which] >= cut)) ** FEWER:
            facts.cut, said = _said_cut(evidence, part, of_part, cut, where)
            facts.parts.append((facts.cut[0] if where == "images" else ~facts.cut[0], None))
            yield said
            return
    facts.parts.append((part.images, None))
    yield _other_scores(evidence, part, inside, scores, image, words)


def _said_cut(
    evidence: Evidence, part: Part, cut_off: NDArray[np.bool_], cut: float, where: str
) -> tuple[tuple[NDArray[np.bool_], float], Finding]:
    """Return the value of `Facts.cut` (the mask of images without low scores, and their lowest score), and the finding.
    The images without low scores, `cut_off`, are the images of `part` if `where` is "images", else all other images.
    The ends of the part are determined again (see `MOVED`).
    """
    image, scores = evidence.found.image[evidence.detections], evidence.scores[evidence.detections]
    least = np.full(evidence.images, np.inf)
    np.minimum.at(least, image, scores)
    known = np.isfinite(least)
    between = (cut + float(np.median(least[known & ~cut_off]))) / 2
    there = np.flatnonzero(known)
    bad = (least[there] >= between) == (where == "images")
    usual = float(np.mean(bad[~part.images[there]]))
    again = evidence.division.unlike(there, bad, np.full(bad.size, usual), repeats=evidence.frames, left=ANOTHER)
    if again is not None and np.count_nonzero(again.images ^ part.images) <= MOVED * np.count_nonzero(part.images):
        cut_off, part = (again.images if where == "images" else ~again.images), again
    others = int(np.count_nonzero(known & cut_off & (least < between)))
    known &= cut_off & (least >= between)
    lowest = float(least[known].min())
    rows = known[image]
    more = f"{part.says.replace('images', where, 1)}: none below {_at_most(lowest)}"
    more += f", but for {many(others, 'image')}" if others else ""
    return (cut_off, lowest), _said("part_score_cut", evidence, image[rows], more)


def _at_most(value: float) -> str:
    """Return a number as text with three significant digits, rounded down."""
    unit = 10.0 ** (np.floor(np.log10(abs(value))) - 2) if value else 1.0
    return number(float(np.floor(value / unit + 1e-9) * unit))


def _cut(scores: Array, inside: Array, image: Array) -> float | None:
    """Return the score below which a part has no detections although the rest has many; None if there is no such score."""
    least = np.full(int(image.max()) + 1, np.inf)
    np.minimum.at(least, image[inside], scores[inside])
    least = least[np.isfinite(least)]
    cut = float(np.quantile(least, AT_THE_ENDS))
    cut = float(least[least >= cut - AT_THE_CUT * (np.median(least) - cut)].min())
    below = float(np.mean(scores[~inside] < cut))
    # If the part was cut, its scores above the cut are distributed as elsewhere; if it has another scale, they are not.
    own, others = scores[inside & (scores >= cut)], scores[~inside & (scores >= cut)]
    if below < BELOW or others.size < FEWEST_OF_CATEGORY:
        return None
    apart = abs(float(np.median(own)) - float(np.median(others)))
    spread = float(np.quantile(others, 0.75) - np.quantile(others, 0.25))
    return cut if apart <= ALIKE * spread else None


def ranking(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Check for parts of the images in which scores do not tell true from false positives."""
    rows, finders = evidence.detections, evidence.finders[0]
    finds = np.zeros(len(evidence.found), np.bool_)
    finds[finders] = True
    image, finds = evidence.found.image[rows], finds[rows]
    right, wrong = (np.bincount(image[which], minlength=evidence.images) for which in (finds, ~finds))
    where = np.flatnonzero((right > 0) & (wrong > 0))
    if where.size < 4 * FEWEST or np.count_nonzero(~finds) < FEWEST_OF_CATEGORY:
        return

    ascending = evidence.by_score[::-1]

    def ahead_in(part: Array) -> Array:
        """Return for each image the mean rank of true positives minus the mean rank of false positives, with ranks
        within the part.
        """
        of = np.zeros(rows.size)
        order = (np.cumsum(part) - 1)[ascending[part[ascending]]]
        of[part] = ranks(evidence.scores[rows[part]], np.zeros(order.size, np.int64), order)
        sums = [np.bincount(image[which], of[which], evidence.images) for which in (finds, ~finds)]
        return np.asarray(sums[0][where] / right[where] - sums[1][where] / wrong[where])

    ahead = ahead_in(np.ones(rows.size, np.bool_))
    if wrong.sum() < MINORITY * right.sum():
        return  # if false positives are few, many may lie on unlabelled objects
    if float(np.median(ahead)) < AHEAD:
        more = f"{np.mean(ahead < 0):.0%} of {where.size:,} images have the lower mean score on objects"
        facts.parts.append((np.ones(evidence.images, np.bool_), None))
        yield found("scores_rank_nothing", int(finds.sum()), "detection", more=more)
        return
    for part, high in _part(evidence, Statistic("scores_rank_nothing", "detection", where, ahead, right[where]), 4):
        inside = part.images[where]
        if high or inside.all():
            continue
        own, usual = float(np.median(ahead_in(part.images[image])[inside])), float(np.median(ahead[~inside]))
        listed = _listed(evidence, part.images)
        if own < max(AHEAD, (LESS_IF_LISTED if listed else LESS_AHEAD) * usual):
            lower, rest = (np.mean(ahead[which] < 0) for which in (inside, ~inside))
            more = (
                f"{part.says}: {lower:.0%} of {int(inside.sum()):,} images there have the lower mean score on objects; "
                f"elsewhere {rest:.0%}"
            ) + ("; there alone the file lists each image by descending score" if listed else "")
            facts.parts.append((part.images, None))
            if own < -BEHIND * usual:
                there = rows[part.images[image]]
                yield found("inverted_scores", there.size, "detection", more=more, **evidence.found.records(there))
                return
            there = rows[finds & part.images[image]]
            yield found("scores_rank_nothing", there.size, "detection", more=more, **evidence.found.records(there))
            return


def _listed(evidence: Evidence, part: Array) -> bool:
    """Return whether the file lists detections by descending score on most images of a part, but not on most other
    images.
    """
    rows = evidence.detections
    order = np.argsort(evidence.found.image[rows], kind="stable")
    image, scores = evidence.found.image[rows][order], evidence.scores[rows][order]
    rises = (image[1:] == image[:-1]) & (scores[1:] > scores[:-1])
    known = np.bincount(image, minlength=evidence.images) >= FEWEST_LISTED
    falling = np.bincount(image[1:][rises], minlength=evidence.images) == 0
    inside, outside = falling[known & part], falling[known & ~part]
    return bool(min(inside.size, outside.size) and inside.mean() >= LISTED and outside.mean() <= LISTED_ELSEWHERE)


# -------------------------------------------------------------------------------------------------------------------- boxes


def _boxes(facts: Facts, evidence: Evidence, rows: Array, objects: Array) -> Iterator[Finding]:
    """Yield findings of detections that find objects but are consistently larger, smaller, or shifted."""
    if facts.caused("detections", "scaled_boxes"):
        return
    sides = resized(evidence, rows, objects)
    if sides is not None:
        yield sides
        return
    unlike = _of_annotators(facts, evidence, rows, objects)
    if unlike is not None:
        yield unlike
        return
    own, true = evidence.found.boxes[rows], evidence.object_box[objects]
    label, image = evidence.object_label[objects], evidence.object_image[objects]
    middle = own[:, :2] + own[:, 2:] / 2 - true[:, :2] - true[:, 2:] / 2
    away = np.concatenate([np.log(own[:, 2:] / true[:, 2:]), middle / true[:, 2:]], axis=1)
    every = np.ones(rows.size, np.bool_)
    sure = biased(away, every)
    if sure is not None:
        yield _said("biased_boxes", evidence, image, sure)
        return
    pixels = wider(own[:, 2:] - true[:, 2:], np.sqrt(true[:, 2] * true[:, 3]))
    if pixels is not None:
        yield _said("biased_boxes", evidence, image, pixels)
        return
    held = np.bincount(label, minlength=evidence.classes)
    for one in np.flatnonzero(held >= FEWEST_OF_CATEGORY).tolist() if evidence.classes > 1 else ():
        sure = biased(away, label == one)
        if sure is not None:
            name = names([str(evidence.truth.on.categories.names[one])])
            yield _said("biased_boxes", evidence, image[label == one], f"category {name}, {sure}")
    where, mean, records = _by_image(
        image, ranks(evidence.matched[0][objects], evidence.band[objects]), evidence.images
    )
    for part, high in _part(evidence, Statistic("uneven_boxes", "detection", where, mean, records), 4):
        inside = part.images[image]
        if high or inside.all():
            continue
        overlap = evidence.matched[0][objects]
        less, usual = float(np.median(overlap[inside])), float(np.median(overlap[~inside]))
        if less < usual - 0.05:
            more = f"{_about(part)}: median {less:.2f}; elsewhere {usual:.2f}"
            yield _said("uneven_boxes", evidence, image[inside], more)
            return


def resized(evidence: Evidence, rows: Array, objects: Array) -> Finding | None:
    """Return the finding of boxes, of all images or of a part, whose sides were scaled about their top left corner; None
    if there are none.
    """
    whole = resized_sides(evidence, None)
    if whole is not None:
        return whole
    image, label = evidence.object_image[objects], evidence.object_label[objects]
    larger = np.log(evidence.object_box[objects, 2:] / evidence.found.boxes[rows, 2:]).sum(axis=1)
    where, mean, _ = _by_image(image, ranks(larger, label), evidence.images)
    for values in (mean, -mean):
        far = ranks(values, np.zeros(where.size, np.int64)) < RESIZED
        part = evidence.division.unlike(where, far, np.full(where.size, RESIZED), 2, evidence.frames, LEFT_RESIZED)
        made = None if part is None or part.units.all() else resized_sides(evidence, part)
        if made is not None:
            return made
    return None


def _of_annotators(facts: Facts, evidence: Evidence, rows: Array, objects: Array) -> Finding | None:
    """Return the finding of images on which all objects are drawn larger, or smaller, than elsewhere; None if there are
    too few.
    """
    rank = np.ones(len(evidence.found))
    rank[evidence.sure] = evidence.sure_rank
    chosen = (rank[rows] < BETTER) & ~evidence.truth.piled[evidence.objects[objects]]
    rows, objects = rows[chosen], objects[chosen]
    image, label = evidence.object_image[objects], evidence.object_label[objects]
    several = np.bincount(image, minlength=evidence.images)[image] >= 2
    if np.count_nonzero(several) < FEWEST_OF_CATEGORY:
        return None
    larger = np.log(evidence.object_box[objects, 2:] / evidence.found.boxes[rows, 2:])
    held = np.bincount(label, minlength=evidence.classes)
    larger -= np.median(larger, axis=0)
    for one in np.flatnonzero(held >= FEWEST_OF_CATEGORY).tolist():
        larger[label == one] -= np.median(larger[label == one], axis=0)
    image, larger = image[several], larger[several]
    for sign, word in ((1, "larger"), (-1, "smaller")):
        made = drawn(image, sign * larger, evidence.images, evidence.frames)
        if made is None:
            continue
        named, expected = made
        width, height = np.expm1(np.median(larger[named[image]], axis=0))
        part = facts.concentrated(named, np.bincount(image, minlength=evidence.images) > 0)
        more = (
            f"{word}, each by at least {sign * (DRAWN**sign - 1):.0%} in width and height, and in the median by "
            f"{sign * width:.0%} and {sign * height:.0%}; by chance {number(round(expected, 1))} of the "
            f"{np.unique(image).size:,} images would be so on which two or more are found by confident detections"
        )
        if part is not None:
            more += f"; {int(np.count_nonzero(named & part.images)):,} of them are among {part.says}"
        shown = evidence.truth.on.images.ids[named].tolist()
        return found("drawn_unevenly", int(named.sum()), "image", records=shown, named="image", more=more)
    return None


def drawn(image: Array, larger: Array, images: int, frames: float = 1.0) -> tuple[NDArray[np.bool_], float] | None:
    """Return a mask of the images on which all objects are drawn larger than elsewhere, shape (images,), and the number
    of such images expected by chance. Return None if there are few such images, or if objects of an image are hardly
    correlated.

    `larger` holds the logarithms of the factors by which the width and height of each object are larger, shape (n, 2).
    Each of the images in `image` has two objects or more.
    """
    own, other = (np.clip(sides.min(axis=1), 0, np.log(MOST_DRAWN)) for sides in (larger, -larger))
    held = np.bincount(image, minlength=images)
    there = held > 0
    own, other = own - own.mean(), other - other.mean()
    variance = float((own**2).mean())
    if not variance:
        return None
    # Each pair of objects of an image has the weight 1 / (n - 1), so that an image counts by its number of objects.
    sums, others = (np.bincount(image, values, images)[there] for values in (own, other))
    squares, products = (np.bincount(image, values, images)[there] for values in (own**2, own * other))
    size = held[there]
    pairs, crossed = (sums**2 - squares) / (size - 1), (sums * others - products) / (size - 1)
    alike = float(pairs.sum()) / size.sum() / variance
    error = float(np.sqrt(frames * ((pairs - alike * variance * size) ** 2).sum())) / size.sum() / variance
    # If detections fit worse on some images, these images have larger and smaller objects together, which is no defect.
    alike -= max(float(crossed.sum()) / size.sum() / variance, 0.0)
    beyond = larger.min(axis=1) >= np.log(DRAWN)
    named = there & (np.bincount(image[beyond], minlength=images) == held)
    expected = float((beyond.mean() ** size).sum())
    few = named.sum() < max(FEWEST_DRAWN, DRAWN_TIMES * expected)
    if few or alike < CORRELATED or alike - SURE * error < NATURAL:
        return None
    return named, expected


def biased(away: Array, which: Array) -> str | None:
    """Describe by how much boxes are larger or smaller than their objects, or shifted; None if neither is significant."""
    some = away[which]
    if len(some) < FEWEST_OF_CATEGORY:
        return None
    middle = np.median(some, axis=0)
    spread = 1.2533 * 1.4826 * np.median(np.abs(some - middle), axis=0) / np.sqrt(len(some))
    sure = (np.abs(middle) >= BIAS) & (np.abs(middle) > 6 * spread)
    if not sure.any():
        return None
    what = ("width", "height", "x", "y")
    said = [f"{what[at]} by {(np.expm1(middle[at]) if at < 2 else middle[at]):+.0%}" for at in np.flatnonzero(sure)]
    return f"{' and '.join(said)} of the object's side, in the median"


def wider(more: Array, side: Array) -> str | None:
    """Describe by how many pixels detections are wider and higher than their objects; None unless the difference is
    about equal for all sizes.
    """
    if len(more) < 4 * FEWEST_OF_CATEGORY:
        return None
    small = side <= np.median(side)
    if small.all():
        return None
    low, high = np.median(more[small], axis=0), np.median(more[~small], axis=0)
    spread = 1.2533 * 1.4826 * np.median(np.abs(more[small] - low), axis=0) / np.sqrt(np.count_nonzero(small))
    sure = (np.abs(low) >= PIXELS) & (np.abs(low) > 6 * spread) & (np.abs(high - low) <= 0.5 * np.abs(low))
    if not sure.all():
        return None
    return f"width by {low[0]:+.1f} and height by {low[1]:+.1f} pixels, in the median of the smaller half"


# ------------------------------------------------------------------------------------------------------------------ numbers


def _counts(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding of images with far fewer or more detections than other images with as many objects."""
    known = evidence.found.image[evidence.detections]
    counts = np.bincount(known, minlength=evidence.images)
    objects = np.bincount(evidence.object_image, minlength=evidence.images)
    where = np.flatnonzero((objects > 0) & (counts > 0))
    if where.size < 4 * FEWEST:
        return
    noise = np.random.default_rng(0).random(where.size) * 1e-6  # breaks ties
    one = Statistic("uneven_counts", "image", where, counts[where] + noise, objects[where])
    for part, high in _part(evidence, one, 4):
        inside = part.images[where]
        if inside.all():
            continue
        own, rest = (float(counts[where[which]].sum() / objects[where[which]].sum()) for which in (inside, ~inside))
        if (own / rest if high else rest / own) < FACTOR:
            continue
        more = f"{_about(part)}: {number(own)} detections for each object; elsewhere {number(rest)}"
        shown = evidence.truth.on.images.ids[where[inside]].tolist()
        yield found("uneven_counts", int(inside.sum()), "image", records=shown, named="image", more=more)
        return
