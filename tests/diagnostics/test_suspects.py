"""Which labels are suspected at the edges: crowds, difficult objects, and the score and the overlap of the diagnosis."""

from __future__ import annotations

import numpy as np
import pytest
from diagnosed import made

import detmap

SCORE = 0.5
BELOW = np.nextafter(SCORE, 0)


def pair(objects, detections, *, flag=""):
    """Tables of (image, class, box, flagged) and (image, class, box, score); box and image are of 100 pixels."""
    kinds = {"crowd": [one[3] for one in objects]} if flag == "crowd" else {}
    kinds |= {"difficult": [one[3] for one in objects]} if flag == "difficult" else {}
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[one[0] for one in objects], category_ids=[one[1] for one in objects],
        boxes=[one[2] for one in objects], **kinds,
    )  # fmt: skip
    found = detmap.Detections.from_arrays(
        image_ids=[one[0] for one in detections], category_ids=[one[1] for one in detections],
        boxes=[one[2] for one in detections], scores=[float(one[3]) for one in detections],
    )  # fmt: skip
    return truth, found


def counts(objects, detections, *, flag="", **options):
    protocol = "voc2012" if flag == "difficult" else "coco"
    truth, found = pair(objects, detections, flag=flag)
    return dict(made(truth, found, protocol=protocol, score=SCORE, iou=0.5).suspects(**options))


def kinds(**given):
    return {
        name: given.get(name.replace(" ", "_"), 0)
        for name in ("no label", "other class", "never found", "labelled twice")
    }


#: An object of each class that is found, so that both classes have precision and recall above 0.
FOUND = [(1, 1, [0, 0, 10, 10], False), (1, 2, [20, 0, 10, 10], False)]
HITS = [(1, 1, [0, 0, 10, 10], 0.9), (1, 2, [20, 0, 10, 10], 0.9)]


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize(
    ("flag", "x", "alone"),
    [
        *[("crowd", 170, False), ("crowd", 190, False), ("crowd", 190.5, True)],
        *[("difficult", 140, False), ("difficult", 180, False), ("difficult", 182, True)],
    ],
)
def test_a_detection_on_an_object_that_does_not_count_has_a_label(flag, kind, x, alone):
    """Of its class or of another; one that overlaps it by less than a tenth lies on nothing."""
    objects = [*FOUND, (1, 1, [100, 100, 100, 10], True)]
    assert counts(objects, [*HITS, (1, kind, [x, 100, 100, 10], 0.8)], flag=flag) == kinds(no_label=int(alone))


@pytest.mark.parametrize("flag", ["crowd", "difficult"])
def test_an_object_that_does_not_count_is_never_found_and_never_of_another_class(flag):
    objects = [*FOUND, (1, 1, [100, 100, 10, 10], True), (1, 1, [200, 100, 10, 10], True)]
    assert counts(objects, [*HITS, (1, 2, [100, 100, 10, 10], 0.8)], flag=flag) == kinds()
    counted = [(*one[:3], False) for one in objects]
    detections = [*HITS, (1, 2, [100, 100, 10, 10], 0.8)]
    assert counts(counted, detections, flag=flag) == kinds(other_class=1, never_found=1)


def test_a_crowd_is_no_second_label():
    objects = [*FOUND, (1, 1, [0, 0, 10, 10], True)]
    assert counts(objects, HITS, flag="crowd") == kinds()
    assert counts(objects, HITS, flag="difficult") == kinds(labelled_twice=1)


@pytest.mark.parametrize(("score", "shown"), [(SCORE, 1), (BELOW, 0), (np.nextafter(SCORE, 1), 1)])
def test_either_side_of_the_score(score, shown):
    assert counts(FOUND, [*HITS, (1, 1, [100, 100, 10, 10], score)]) == kinds(no_label=shown)
    objects = [*FOUND, (1, 1, [200, 100, 10, 10], False)]
    assert counts(objects, [*HITS, (1, 2, [200, 100, 10, 10], score)]) == kinds(other_class=shown)


@pytest.mark.parametrize(("score", "own"), [(0.01, 0), (None, 1)])
def test_an_object_that_its_own_class_covers_is_of_no_other(score, own):
    """Whatever the score of that detection."""
    objects = [*FOUND, (1, 1, [200, 100, 10, 10], False)]
    more = [] if score is None else [(1, 1, [200, 100, 10, 10], score)]
    assert counts(objects, [*HITS, (1, 2, [200, 100, 10, 10], 0.8), *more]) == kinds(other_class=own)


def test_two_other_classes_are_no_evidence():
    objects = [*FOUND, (1, 3, [0, 20, 10, 10], False), (1, 1, [200, 100, 10, 10], False)]
    hits = [*HITS, (1, 3, [0, 20, 10, 10], 0.9)]
    others = [(1, 2, [200, 100, 10, 10], 0.8), (1, 3, [200, 100, 10, 10], 0.7)]
    assert counts(objects, [*hits, others[0]]) == kinds(other_class=1)
    assert counts(objects, [*hits, *others]) == kinds()
    assert counts(objects, [*hits, others[0], (*others[1][:3], 0.4)]) == kinds(other_class=1)


@pytest.mark.parametrize(("height", "covered"), [(5, 1), (4.999, 0)])
def test_either_side_of_the_threshold(height, covered):
    objects = [*FOUND, (1, 1, [200, 100, 10, 10], False)]
    assert counts(objects, [*HITS, (1, 2, [200, 100, 10, height], 0.8)]) == kinds(other_class=covered)


@pytest.mark.parametrize(("height", "touched"), [(1, True), (0.999, False)])
def test_either_side_of_a_touch(height, touched):
    """Below an overlap of a tenth there is neither a found object nor a labelled detection."""
    objects = [*FOUND, (1, 1, [200, 100, 10, 10], False)]
    made_of = counts(objects, [*HITS, (1, 1, [200, 100, 10, height], 0.8)])
    assert made_of == (kinds() if touched else kinds(no_label=1, never_found=1))


@pytest.mark.parametrize(("height", "twice"), [(9, 1), (8.999, 0)])
def test_either_side_of_a_duplicate(height, twice):
    objects = [*FOUND, (1, 2, [0, 0, 10, height], False)]
    detections = [*HITS, (1, 2, [0, 0, 10, height], 0.9)]
    assert counts(objects, detections) == kinds(labelled_twice=twice)
    assert counts(objects, detections, duplicate=1) == kinds()
    assert counts([*objects[:2], (2, 2, [0, 0, 10, 10], False)], [*HITS, (2, 2, [0, 0, 10, 10], 0.9)]) == kinds()


def test_how_suspicious_they_are():
    """By precision at the score of a class's detection, by recall of its class, or by the overlap."""
    objects = [
        *FOUND,
        (1, 1, [200, 100, 10, 10], False),
        (1, 1, [300, 100, 10, 10], False),
        (1, 2, [20, 0, 10, 9.5], False),
    ]
    detections = [
        *HITS,
        (1, 1, [100, 100, 10, 10], 0.95),  # no label: none of 1 is a hit
        (1, 1, [100, 200, 10, 10], 0.8),  # no label: 1 of 3
        (1, 2, [200, 100, 10, 10], 0.8),  # other class: 1 of 2
    ]
    truth, found = pair(objects, detections)
    rows = made(truth, found, score=SCORE).suspects().rows()
    told = [(row["kind"], row["suspicion"], row["object"], row["other object"], row["detection"]) for row in rows]
    assert told == [
        ("labelled twice", 0.95, 1, 4, -1),
        ("other class", 0.5, 2, -1, 4),
        ("no label", pytest.approx(1 / 3), -1, -1, 3),
        ("never found", pytest.approx(1 / 3), 3, -1, -1),
        ("no label", 0.0, -1, -1, 2),
    ]
    assert len(made(truth, found, score=SCORE).suspects(most=2).rows()) == 2


@pytest.mark.parametrize("labels", [(1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 1), (2, 1, 2)])
def test_equal_suspicions_are_in_the_order_of_the_tables(labels):
    """Three objects in one place, of any classes."""
    truth, found = pair([(1, label, [0, 0, 10, 10], False) for label in labels], HITS)
    rows = made(truth, found, score=SCORE).suspects().rows()
    told = [(row["object"], row["other object"]) for row in rows if row["kind"] == "labelled twice"]
    assert told == [(0, 1), (0, 2), (1, 2)]
