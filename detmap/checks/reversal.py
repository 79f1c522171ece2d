"""Scores that are reversed on some of the images, such as 1 - p for a probability p, and the corrected scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.agreement import Agreement, reversed_by
from detmap.checks.rates import FEWEST, Part
from detmap.errors import many

#: Minimum AUC of the scores on the other images. If the scores there are uninformative, with an AUC of 0.5, a low AUC on
#: some images does not show that scores are reversed. On the images of ``tests/planting``, detectors reach 0.75 or more.
UPRIGHT = 0.6


class Reversal(NamedTuple):
    """Images with reversed scores."""

    #: Mask of these images, shape (images,), and their description.
    images: NDArray[np.bool_]
    says: str
    #: The AUC of the scores (`Agreement.ranked_of`) on these images and on other images.
    own: float
    rest: float
    #: The scores of all detections, corrected on these images.
    scores: NDArray[np.float64]


def reversal_of(
    agreement: Agreement,
    gathered: Callable[[NDArray[np.bool_], NDArray[np.bool_]], Part | None],
    says_part: Callable[[Part], str],
) -> Reversal | None:
    """Return the images whose scores are reversed; None if no image or every image has reversed scores.

    Reversed scores are c - s instead of s, where c is 0 (negated scores), 1, or 100 (percent). The mean of reversed
    scores and the mean of other scores lie on opposite sides of c / 2. If the mean scores of all images are near c / 2,
    reversed scores are reported by `uneven.ranking`.
    """
    scores, image = agreement.scores, agreement.found.image
    count = agreement.truth.on.images.ids.size
    known = image >= 0
    if not np.isfinite(scores).all() or not known.any():
        return None
    low, high = float(scores.min()), float(scores.max())
    whole = 0.0 if low < 0 else 1.0 if high <= 1 else 100.0
    held = np.bincount(image[known], minlength=count)
    beyond = np.bincount(image[known], scores[known], count) > whole / 2 * held
    there = held > 0
    for flags in (beyond, there & ~beyond):
        if np.count_nonzero(flags) < FEWEST or flags[there].all():
            continue
        part = gathered(flags, there)
        for images, says in ([] if part is None else [(part.images, says_part(part))]) + [
            (flags, f"on {many(int(flags.sum()), 'image')}")
        ]:
            inside = known & images[image]
            own, spread = agreement.ranked_of(np.flatnonzero(inside))
            if reversed_by(own, spread):
                rest, _ = agreement.ranked_of(np.flatnonzero(known & ~images[image]))
                if rest >= UPRIGHT:
                    return Reversal(images, says, own, rest, np.where(inside, whole - scores, scores))
    return None
