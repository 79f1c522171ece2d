"""One score for all categories of a box on a part of the images: what is said, and either side of each limit."""

from __future__ import annotations

import re
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import side
from test_checks_scores_of_parts import findings, images_said, scene

from detmap.checks import repeats
from detmap.checks.rates import Part


def planted(seed, share, again=True):
    """A scene whose boxes are under two or three categories, with one score on a run of images and with several elsewhere
    (or, without `again`, under one category), and the ids of these images.
    """
    truth, found = scene(seed, "crowded", 120)
    ids, rng = [one["id"] for one in truth["images"]], np.random.default_rng(seed)
    numbers = [one["id"] for one in truth["categories"]]
    part = set(ids[30 : 30 + round(share * len(ids))])
    made = []
    for one in found:
        others = [number for number in numbers if number != one["category_id"]]
        there = one["image_id"] in part
        made.append(one)
        for number in rng.permutation(others)[: int(rng.integers(1, 3))] if again or there else ():
            score = one["score"] * (1 if there else rng.uniform(0.5, 0.9))
            made.append(dict(one, category_id=int(number), score=score))
    return truth, made, part


@pytest.mark.parametrize(("seed", "share", "again"), [(0, 0.1, True), (1, 0.4, True), (2, 0.2, False)])
def test_scores_of_boxes_are_counted_as_the_sentence_says(seed, share, again):
    truth, found, part = planted(seed, share, again)
    made = findings(truth, found)
    one = made["scores_of_boxes"]
    there = images_said(one.says, found)
    assert there == part & {d["image_id"] for d in found}
    under, pairs = defaultdict(set), defaultdict(list)
    for d in found:
        under[(d["image_id"], *d["bbox"], d["score"])].add(d["category_id"])
        pairs[(d["image_id"], *d["bbox"])].append(d["score"])
    twins = [d for d in found if d["image_id"] in there and len(under[(d["image_id"], *d["bbox"], d["score"])]) > 1]
    assert one.count == len(twins)
    assert len(found) <= 20_000  # all are looked at
    several = [len(own) * (len(own) - 1) // 2 for key, own in pairs.items() if key[0] in there]
    told = re.search(
        r"of ([\d,]+) pairs of categories of one box looked at there 100% have one score, elsewhere 0%", one.says
    )
    assert int(told[1].replace(",", "")) == sum(several)


def test_scores_of_boxes_that_objects_have_under_several_categories_are_meant():
    truth, found, part = planted(1, 0.4)
    number = truth["categories"][0]["id"]
    again = [
        dict(one, category_id=number, id=10**6 + at)
        for at, one in enumerate(truth["annotations"])
        if one["category_id"] != number
    ]
    assert "scores_of_boxes" not in findings(dict(truth, annotations=truth["annotations"] + again), found)
    assert "scores_of_boxes" not in findings(truth, [one for one in found if one["image_id"] not in part])


def of_boxes(equal=100, elsewhere=0, kinds=3, meant=0, distinct=100):
    """Whether scores are said to be those of boxes if so many of 100 pairs of categories of a box have one score on a part,
    and so many elsewhere, of so many pairs of categories; of 100 objects so many are under two categories. There are
    `distinct` scores of boxes.
    """
    image = np.repeat(np.arange(200), 2)
    place, second = image % 100, np.arange(image.size) % 2
    label = np.where(second, 1 + place % kinds, 0)
    same = place < np.where(image < 100, equal, elsewhere)
    columns = np.tile(np.array([[5.0], [5.0], [9.0], [9.0]]), image.size)
    table = SimpleNamespace(
        scores=0.5 + place % distinct / 1024 - 0.125 * second * ~same, categories=SimpleNamespace(codes=label)
    )
    found = SimpleNamespace(
        image=image, columns=columns, table=table, on=side(count=200).on, records=lambda rows: {},
        sized=np.ones(image.size, bool), aside=np.zeros(image.size, bool),
    )  # fmt: skip
    objects = type("Objects", (), {"__len__": lambda self: 100})()
    objects.image = np.where(np.arange(100) < meant, np.arange(100) // 2, np.arange(100))
    objects.columns, codes = columns[:, :100], np.where(np.arange(100) < meant, np.arange(100) % 2, 0)
    objects.table = SimpleNamespace(categories=SimpleNamespace(codes=codes))
    part = Part(np.arange(200) < 100, "images 0 to 99", np.arange(200) < 100)
    facts = SimpleNamespace(
        schema=False, truth=objects, gathered=lambda *given: part, says_part=lambda part: part.says, parts=[]
    )
    rows = np.arange(image.size)
    made = list(repeats._of_boxes(facts, found, rows, repeats._pairs(found, rows)))
    assert len(facts.parts) == len(made)
    return [one.count for one in made]


def test_either_side_of_scores_of_boxes():
    assert of_boxes() == [200]
    assert of_boxes(90) == [180]
    assert of_boxes(89) == []
    assert of_boxes(elsewhere=50) == [200]
    assert of_boxes(elsewhere=51) == []
    assert of_boxes(kinds=2) == []
    assert of_boxes(meant=8) == [200]
    assert of_boxes(meant=10) == []  # a tenth, as in a hierarchy
    assert of_boxes(distinct=10) == [200]
    assert of_boxes(distinct=9) == []


def test_constant_scores_are_not_those_of_boxes():
    truth, found, part = planted(1, 0.4)
    made = findings(truth, [dict(one, score=1.0) if one["image_id"] in part else one for one in found])
    assert {"constant_scores", "mixed_scores"} & set(made)
    assert "scores_of_boxes" not in made
