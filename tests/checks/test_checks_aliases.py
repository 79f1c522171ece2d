"""Several categories written again, each under another one: numbers counted again, and either side of each limit."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from test_checks_limits_repeats import facts_of
from test_checks_parts import planted, scene

from detmap.checks import check, repeats


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_three_classes_written_twice_are_counted_again(share):
    data, every = planted("three_classes_written_twice", "crowded", share)
    assert "scores_of_boxes" not in every
    number = {c["name"]: c["id"] for c in data.truth["categories"]}
    made = [one for one in check(data.truth, data.found).findings if one.code == "detections_of_two_classes"]
    said = {}
    for one in made:
        kept, other = (number[name] for name in re.search(r"of category (\w+), under (\w+)", one.says).groups())
        said[kept] = other
        own = {(d["image_id"], *d["bbox"], d["score"]) for d in data.found if d["category_id"] == kept}
        again = [d for d in data.found if d["category_id"] == other]
        assert one.count == sum((d["image_id"], *d["bbox"], d["score"]) in own for d in again)
    usual = [kind for kind, _ in Counter(d["category_id"] for d in scene(0, "crowded").data().found).most_common(6)]
    assert said == dict(zip(usual[:3], usual[3:], strict=True))


def named(under, several=2, elsewhere=0, left=0, unequal=0):
    """The pairs of categories that are named if `several` detections of the first on each of 60 images are written again
    under others. On `elsewhere` of the images none is, on `left` others all but one are, and `unequal` of those written
    again have another score.
    """
    rows, truth = [], []
    for one, others in under.items():
        for at in range(60 * several):
            image, place = divmod(at, several)
            score = 0.9 - at / 2000
            row = [image, one, 30 * one + at / 1000, 100 * place, 30 + at / 900, 20, score]
            truth.append(row[:2] + row[2:6])
            rows.append(row)
            if image >= elsewhere and (place or image >= elsewhere + left):
                again = score / 2 if at >= 60 * several - unequal else score
                rows += [[image, other, *row[2:6], again] for other in others]
    for image in range(60):  # other detections of the other categories, of low scores
        others = [kind for kind in range(1, 9) if kind not in under]
        rows += [[image, kind, 300, 30 * kind + image / 99, 30, 20, 0.1 + image / 600] for kind in others]
    made = [one for one in repeats.check(facts_of(truth, rows, images=60)) if one.code == "detections_of_two_classes"]
    return sorted(tuple(map(int, re.search(r"of category (\d), under (\d)", one.says).groups())) for one in made)


THREE = {1: [2], 3: [4], 5: [6]}


def test_either_side_of_several_categories_that_are_written_again():
    pairs = [(1, 2), (3, 4), (5, 6)]
    assert named(THREE) == named(THREE, several=1) == pairs
    assert named(THREE, unequal=12) == pairs  # of 120 pairs of each kind
    assert named(THREE, unequal=13) == []
    assert named(THREE, several=1, elsewhere=6) == pairs
    assert named(THREE, several=1, elsewhere=7) == []
    assert named(THREE, elsewhere=50) == pairs  # twice 10 of 20 detections
    assert named(THREE, elsewhere=56) == []
    assert named(THREE, elsewhere=40, left=4) == pairs  # 36 of 40
    assert named(THREE, elsewhere=40, left=5) == []


def test_one_score_for_all_categories_of_a_box_is_no_alias():
    """Three and four of the eight categories may be linked, and five have the score of their box."""
    assert named({1: [2, 3]}) == [(1, 2), (1, 3)]
    assert named({3: [1, 2]}) == [(3, 1), (3, 2)]
    assert named({1: [2, 3, 4]}) == [(1, 2), (1, 3), (1, 4)]
    assert named({1: [2, 3, 4, 5]}) == []
