"""Every change that searches try, with its words, its weight and the number it gives, is the text that is kept."""

from __future__ import annotations

import functools

import pytest
from kept import Kept, said
from kept_scenes import boxes
from test_explain_rankings import sample
from test_kept_explanations import models

from detmap.explanations import contrast, ranking_search, search, tries
from detmap.retrieval import evaluate_run

KEPT = Kept("vocabulary", digits=12)


@functools.cache
def scene(name):
    """Small tables with ties, or with crowds and boxes of odd sizes."""
    objects, found = models(images=4) if name == "small" else (None, None)
    return boxes(7) if found is None else (objects, found["one"])


@functools.cache
def looked(name):
    return search._Looked(scene(name), [search._number(of, "AP", scene(name)[0]) for of in ("AP", "AP50", "1")], 1)


@functools.cache
def ranked():
    qrels, run = sample(3, queries=5)
    return ranking_search._Numbers(
        lambda rules: evaluate_run(qrels, run, ["mAP", "ndcg"], rules), ["mAP", "ndcg"], True
    )


def changes(made, label, bases, numbers):
    """For each change of a row its words, its weight, and its numbers under some named rules."""
    weigh = tries.Tries(made, [], [(0.0, 1.0)])
    told = []
    for at in range(len(made.grid[label])):
        change = ((label, at),)
        values = [made.value(base, change, number) for base in bases for number in range(numbers)]
        told.append(f"{made.words(bases[0], change)} {weigh.usual(change)!r} {made.place(change)} {said(values, 12)}")
    return told


for _name in ("small", "odd"):
    for _label in {**search.GRID, **search.WIDER}:
        KEPT.add(
            f"{_name} {_label}",
            lambda name, label: changes(
                looked(name), label, ("coco", "voc2012", "ultralytics"), 3 if name == "small" else 2
            ),
            _name,
            _label,
        )
for _label in ranking_search.GRID:
    KEPT.add(f"rankings {_label}", lambda label: changes(ranked(), label, ("detmap", "trec"), 2), _label)


def lopsided(protocol):
    """A contrast with a model that has detections on one image alone."""
    objects, found = models(images=6)
    second = found["three"]
    second = second.take(second.images.codes == second.images.codes[0])
    made = contrast(objects, found["two"], second, protocol, replicates=200)
    return {"sentences": made.sentences(), "tables": {name: said(made.table(name), 12) for name in made.splits}}


for _protocol in ("coco", "coco+scored_images=detected", "voc2012+scored_images=detected"):
    KEPT.add(f"lopsided {_protocol}", lopsided, _protocol)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
