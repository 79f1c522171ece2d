"""Check for images on which a detector was trained: there it finds nearly all objects within a pixel, with high scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.findings import AT_LEAST, Finding, found
from detmap.checks.rates import CHANCE, FEWEST, reaching, tail
from detmap.checks.uneven import place_of, ranks

#: A detection is precise if each of its edges deviates from the object's edge by at most `PIXELS` pixels or the share
#: `SIDE` of the object's side. In two results for VOC2007, 0.1% and 1.5% of the objects are found this precisely.
#: Objects with a side below `LEAST` pixels are ignored, because all detectors find some of them within `PIXELS`.
PIXELS, SIDE, LEAST = 1.5, 0.015, 32.0

#: Minimum shares of precisely found objects on an image: `KNOWN` for images known to the detector, and `HALFWAY` for
#: images halfway between known and other images. Images with one object are ignored, because they cannot be halfway.
KNOWN, HALFWAY, TWO = 0.8, 0.4, 2

#: Minimum ratio of the number of known images to the number expected by chance. The expected number follows from the
#: share of objects that are found precisely on other images. If precision varies between images, more images are
#: halfway than expected. In this case the expected number of known images is multiplied by the square of the ratio of
#: observed to expected halfway images.
TIMES = 2.0

#: Maximum share of known images. If most images are known, boxes and labels may be of one origin.
MOST = 0.5

#: Among detections that find objects, maximum share of the scores on other images that exceed the median score on known
#: images. If labels were made from detections, boxes are precise too, but scores are not higher than elsewhere.
ABOVE = 0.25


def check(facts: Facts) -> Iterator[Finding]:
    """Check for images whose objects are found far more precisely than on other images."""
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or facts.caused("detections", "copied_boxes"):
        return
    large = evidence.seen & (evidence.object_box[:, 2:] >= LEAST).all(axis=1)
    rows, objects = (column[large[evidence.finders[1]]] for column in evidence.finders)
    own, true = evidence.found.boxes[rows], evidence.object_box[objects]
    near, far = own[:, :2] - true[:, :2], own[:, :2] + own[:, 2:] - true[:, :2] - true[:, 2:]
    precise = (np.maximum(np.abs(near), np.abs(far)) <= np.maximum(PIXELS, SIDE * true[:, 2:])).all(axis=1)
    image = evidence.object_image[objects]
    held = np.bincount(evidence.object_image[large], minlength=evidence.images)
    share = np.bincount(image[precise], minlength=evidence.images) / np.maximum(held, 1)
    several = held >= TWO
    known = several & (share >= KNOWN)
    count = int(np.count_nonzero(known))
    if count < FEWEST or count > MOST * np.count_nonzero(several):
        return
    inside, others = known[image], several & ~known
    rate = (np.count_nonzero(precise & ~inside) + 1) / (int(held[~known].sum()) + 2)
    by_chance, halfway = (float(reaching(least, rate, held[several]).sum()) for least in (KNOWN, HALFWAY))
    differ = max(np.count_nonzero(others & (share >= HALFWAY)) / max(halfway - by_chance, 1.0), 1.0)
    if tail(int(count / evidence.frames), TIMES * by_chance * differ**2 + 1) >= CHANCE:
        return
    rank = ranks(evidence.scores[rows], evidence.object_label[objects])
    if place_of(rank[inside], rank[~inside], True) > ABOVE:
        return
    part = facts.gathered(known, several)
    facts.parts.append((known | ((held == 1) & (share == 1)) if part is None else known | part.images, None))
    shown = evidence.truth.on.images.ids[known].tolist()
    said = [
        f"{np.count_nonzero(precise & which):,} of {np.count_nonzero(which):,} found objects{where}, with a median score of "
        f"{number(float(np.median(evidence.scores[rows[which]])))}"
        for which, where in ((inside, f" with sides of at least {LEAST:g} pixels there"), (~inside, " elsewhere"))
    ]
    more = "; ".join([*said, *([] if part is None else [f"most of them {part.says}"])])
    yield found("trained_on", count, "image", records=shown, named="image", more=more, words=AT_LEAST)
