"""Checks of scores: whether they rank, on one scale, and were not cut off where there still was something to find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.boxes import marks
from detmap.checks.context import Facts
from detmap.checks.findings import Finding, found
from detmap.checks.inputs import Side
from detmap.checks.rates import tail

#: Number of the lowest scores that are tested for a cut.
_LOWEST = 60

#: Minimum share and number of detections with one score that occurs ten times as often as any other: among 100,000
#: scores with six digits the most frequent one has a share of 0.0001.
_PILED, _FEWEST_PILED = 0.005, 20

#: Scores on either side by which a gap is measured; share of their density that is expected in it at least, and the number
#: of scores that is expected then: by chance there is none once in a million files.
_BESIDE, _THINNER, _EXPECTED = 50, 0.3, 14.0

#: The share of detections that may be tied with another of their category.
_TIED = 0.1


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
    if facts.agreement is not None and not facts.causes and facts.agreement.upside_down:
        more = f"one on an object stands above one on none in {facts.agreement.ranked[0]:.0%} of the pairs looked at"
        yield found("inverted_scores", len(side), "detection", more=more)
    scales = list(_scales(side, scores, low, high))
    yield from scales
    mixed = any(one.code == "mixed_scores" for one in scales)
    tied = _tied(facts.detections.categories.codes, scores, max(_TIED * len(scores), 2))
    if tied is not None:
        more = f"{np.unique(scores).size:,} different scores in all"
        yield found("quantised_scores", int(tied.sum()), "detection", more=more, **side.records(tied))
    else:
        for one in _piled(side, scores):
            facts.causes.add(("detections", one.code))
            yield one
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


def _scales(side: Side, scores: NDArray[np.float64], low: float, high: float) -> Iterator[Finding]:
    """Scores that are not probabilities."""
    if low >= 0 and high <= 1:
        return
    beyond = scores > 1
    if low < 0:
        outside = beyond | (scores < 0)
        more = f"from {low:.3g} to {high:.3g}"
        yield found("logit_scores", int(outside.sum()), "detection", more=more, **side.records(outside))
        return
    if _two_scales(scores):
        more = f"up to {high:.4g}"
        yield found("mixed_scores", int(beyond.sum()), "detection", more=more, **side.records(beyond))
    elif high <= 100 and np.quantile(scores, 0.99) > 5:
        yield found("percentage_scores", len(scores), "detection", more=f"from {low:.3g} to {high:.3g}")
    else:
        more = f"from {low:.3g} to {high:.3g}"
        yield found("logit_scores", int(beyond.sum()), "detection", more=more, **side.records(beyond))


def _two_scales(scores: NDArray[np.float64]) -> bool:
    """Return whether scores within 0 to 1 are a different population from those above."""
    # In one population the density just below 1 is about that just above; in a mixture of probabilities with a wider
    # scale it falls steeply at 1.
    inside = scores[scores <= 1]
    if inside.size < 3 or inside.size == scores.size or (scores == np.floor(scores)).all():
        return False
    below, above = np.count_nonzero(inside > 0.5), np.count_nonzero((scores > 1) & (scores <= 1.5))
    if tail(int(below), 3.0 * (above + 1)) < 1e-4 and float(np.quantile(scores[scores > 1], 0.5)) > 2:
        return True
    # A few scores far above all others, as from one file in percent among many.
    return bool(
        (scores > 1).mean() < 0.5
        and float(np.quantile(scores[scores > 1], 0.5)) > 5
        and inside.max() > 0.5
        and below > 5
        and tail(int(below), 2.0 * (above + 1)) < 1e-3
    )


def _tied(codes: NDArray[Any], scores: NDArray[np.float64], most: float) -> NDArray[np.bool_] | None:
    """Return which detections share their score with another of their category; None if at most `most` do."""
    mixed = marks(codes, scores)
    if np.count_nonzero(_with_a_twin(np.sort(mixed))) <= most:
        return None
    order = np.argsort(mixed)
    out = np.zeros(mixed.size, np.bool_)
    out[order] = _with_a_twin(mixed[order])
    return out


def _piled(side: Side, scores: NDArray[np.float64]) -> Iterator[Finding]:
    """One score that far more detections have than any other."""
    ascending = np.sort(scores)
    edges = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1], [True]]))
    held = np.diff(edges)
    most = int(held.argmax())
    others = int(np.partition(held, -2)[-2]) if held.size > 1 else 0
    if held[most] >= max(_PILED * len(scores), _FEWEST_PILED, 10 * others):
        value = float(ascending[edges[most]])
        same = scores == value
        yield found("piled_scores", int(same.sum()), "detection", more=f"{value:.4g}", **side.records(same))


def gap(scores: NDArray[np.float64]) -> tuple[float, float, float] | None:
    """Return the ends of the range without a score that is the widest for the scores on both sides, and how many it would
    hold; None where there is none.
    """
    values = np.unique(scores)  # of scores of few digits all gaps are equal
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
    """Return which numbers equal their predecessor or successor."""
    same = ascending[1:] == ascending[:-1]
    out = np.zeros(ascending.size, np.bool_)
    out[1:] = same
    out[:-1] |= same
    return out


def _ends_at_once(scores: NDArray[np.float64]) -> bool:
    """Return whether the lowest scores are uniform above the minimum, without thinning out towards it."""
    # The mean of uniform places is a half; the margin is two standard errors.
    if scores.size < 4 * _LOWEST:
        return False
    lowest = np.sort(np.partition(scores, _LOWEST)[:_LOWEST])
    span = float(lowest[-1] - lowest[0])
    return not span or float((lowest[1:-1] - lowest[0]).mean()) / span < 0.5 + 2 / np.sqrt(12 * (_LOWEST - 2))


def _cut(facts: Facts, scores: NDArray[np.float64]) -> Iterator[Finding]:
    """A minimum score with many scores just above and none below, where the lowest-ranked detections still find objects."""
    # A detector's scores thin out towards 0 or pile up there, but do not end abruptly. `expected` is the number of
    # scores below the minimum if the density just above continued; there are none with probability exp(-expected).
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
