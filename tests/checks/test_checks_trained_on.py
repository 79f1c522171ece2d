"""Images on which a detector was trained: what is said of them, and either side of each limit."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from planting.scenes import overlap
from test_checks_limits import side
from test_checks_parts import by_image, planted

from detmap.checks import trained_on
from detmap.checks.rates import Part


def finders(truth, found):
    """For each image its objects (in the order of the file) with sides of 32 pixels: whether each is found, whether this is
    precise, and the score.
    """
    out = {}
    found = by_image(found)
    for image, objects in by_image(truth["annotations"]).items():
        best = [None] * len(objects)
        for one in found.get(image, []):
            values = [
                overlap(one["bbox"], of["bbox"]) if of["category_id"] == one["category_id"] else 0 for of in objects
            ]
            at = int(np.argmax(values))
            if values[at] >= 0.5 and (best[at] is None or one["score"] > best[at]["score"]):
                best[at] = one
        out[image] = []
        for of, one in zip(objects, best, strict=True):
            (x, y, w, h) = of["bbox"]
            if min(w, h) < 32:
                continue
            precise = False
            if one is not None:
                (u, v, s, t) = one["bbox"]
                edges = [(u - x, w), (v - y, h), (u + s - x - w, w), (v + t - y - h, h)]
                precise = all(abs(away) <= max(1.5, 0.015 * of_side) for away, of_side in edges)
            out[image].append((one is not None, precise, None if one is None else one["score"]))
    return out


@pytest.mark.parametrize(("kind", "share", "seed"), [("sparse", 0.1, 0), ("one class", 0.3, 1)])
def test_images_that_are_known_are_counted_as_the_sentence_says(kind, share, seed):
    data, made = planted("images_of_the_training_set_anywhere", kind, share, seed)
    says = made["trained_on"].says
    of_image = finders(data.truth, data.found)
    known = {
        one for one, them in of_image.items() if len(them) >= 2 and sum(n[1] for n in them) >= 0.8 * len(them)
    }  # fmt: skip
    assert made["trained_on"].count == len(known)
    assert set(made["trained_on"].records) <= known
    inside, others = (
        [n for one, them in of_image.items() for n in them if n[0] and (one in known) == which]
        for which in (True, False)
    )
    numbers = re.findall(r"([\d,]+) of ([\d,]+) found objects.*?median score of ([\d.]+)", says)
    assert [tuple(float(one.replace(",", "")) for one in them) for them in numbers] == [
        (sum(n[1] for n in them), len(them), float(f"{np.median([n[2] for n in them]):.3g}"))
        for them in (inside, others)
    ]
    # neither scores nor boxes are said to differ beside it
    assert set(made) <= {"trained_on", "outside_boxes", "images_without_detections", "quantised_scores"}


def findings(held, precise, *, high=True, away=1.0, length=40.0, tall=None, part=None, caused=False, images=200):
    """What is said, and the parts, if images have so many objects, so many of them found precisely (by `away` pixels).

    Scores of these images are higher than those of others.
    """
    held, precise = np.broadcast_to(held, images), np.concatenate([precise, np.zeros(images - len(precise), int)])
    image = np.repeat(np.arange(images), held)
    place = np.arange(image.size) - np.repeat(np.cumsum(held) - held, held)
    box = np.stack([0.0 * image, 0 * image, length + 0 * image, (tall or length) + 0 * image], axis=1)
    moved = np.where(place < precise[image], away, 9.0)
    rows = np.arange(image.size)
    score = (place < precise[image]) * float(high) + rows * 389 % rows.size / rows.size
    evidence = SimpleNamespace(
        objects=rows, seen=np.ones(rows.size, bool), object_box=box, finders=(rows, rows), object_image=image,
        object_label=0 * image, images=images, frames=1.0, scores=score, truth=side(count=images),
        found=SimpleNamespace(boxes=box + np.stack([moved, 0 * moved, 0 * moved, 0 * moved], axis=1)),
    )  # fmt: skip
    facts = SimpleNamespace(evidence=evidence, caused=lambda *them: caused, gathered=lambda *them: part, parts=[])
    made = list(trained_on.check(facts))
    assert len(made) == len(facts.parts)
    return made, facts.parts


def told(*given, **more):
    return [one.count for one in findings(*given, **more)[0]]


def test_either_side_of_what_is_precise():
    assert told(3, [3] * 20) == [20]
    assert told(3, [3] * 20, away=1.5) == [20]
    assert told(3, [3] * 20, away=1.6) == []
    assert told(3, [3] * 20, away=1.6, length=110.0) == [20]  # 1.5% of the side
    assert told(3, [3] * 20, away=1.7, length=110.0) == []
    assert told(3, [3] * 20, length=32.0) == [20]
    assert told(3, [3] * 20, length=31.9) == told(3, [3] * 20, length=31.9, tall=40.0) == []
    assert told(3, [3] * 20, tall=31.9) == []
    assert told(3, [3] * 20, away=1.6, length=110.0, tall=40.0) == [20]
    assert told(3, [3] * 20, away=1.6, length=40.0, tall=110.0) == []
    assert told(3, [3] * 20, caused=True) == []  # copied from the ground truth


def test_either_side_of_a_known_image():
    """Four of five objects; six images, as of those where one is expected; at most a half."""
    assert told(5, [4] * 20) == [20]
    assert told(5, [3] * 20) == []
    assert told(3, [3] * 6) == [6]
    assert told(3, [3] * 5) == []
    assert told(3, [3] * 100) == [100]
    assert told(3, [3] * 101) == []
    assert told(1, [1] * 20) == []
    assert told(2, [2] * 20) == [20]


def test_either_side_of_images_that_differ():
    """Images where two of five are found precisely show that images differ, as where some are out of focus."""
    assert told(5, [5] * 20 + [2] * 86) == [20]
    assert told(5, [5] * 20 + [2] * 92) == []
    # of two objects one is precise by chance: 200 (48 / 360)^2 = 3.6 images are expected, and 20 of 2 * 3.6 + 1 or more
    # are once in 2,000
    assert told(2, [2] * 20 + [1] * 48) == [20]
    assert told(2, [2] * 20 + [1] * 50) == []


def test_either_side_of_scores_as_others_have():
    """Labels made of detections are found precisely, at any score."""
    assert told(3, [3] * 20, high=0.3) == [20]
    assert told(3, [3] * 20, high=0.2) == []


def test_a_part_with_known_images_is_named():
    inside = np.arange(200) < 30
    assert told(3, [3] * 20, part=Part(inside, "images 0 to 29", inside)) == [20]


@pytest.mark.parametrize("part", [None, range(10, 40)])
def test_images_with_known_ones_are_explained(part):
    """Those of one object, which is precise, are known if the part is not; numbers are of objects with long sides."""
    held = np.r_[np.full(20, 3), np.ones(10, int), np.full(170, 3)]
    there = None if part is None else np.isin(np.arange(200), part)
    precise = [3] * 19 + [2] + [1] * 5 + [0] * 5
    (one,), ((images, of),) = findings(
        held, precise, part=None if part is None else Part(there, "images 10 to 39", there)
    )
    assert of is None
    known = [*range(19), *(range(20, 25) if part is None else [])]
    assert np.flatnonzero(images).tolist() == sorted({*known, *(part or ())})
    assert (one.count, one.records, one.unit, one.named) == (19, tuple(range(10)), "image", "image")
    rest = held.sum() - 57
    assert re.search(
        rf": 57 of 57 found objects with sides of at least 32 pixels there, with a median score of 1.\d+; 7 of {rest} found "
        r"objects elsewhere, with a median score of 0.\d+"
        + ("" if part is None else "; most of them images 10 to 39")
        + "$",
        one.says,
    )
