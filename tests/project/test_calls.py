"""The rows of docs/calls.md: the call of detmap gives what the call of the other library gives, where that is installed."""

from __future__ import annotations

import contextlib
import io
import re
from importlib import import_module
from importlib.util import find_spec

import executed
import numpy as np
import pytest

import detmap
from detmap import retrieval
from detmap.masks import Masks

PAGE = executed.ROOT / "docs/calls.md"
TRUTH, FOUND = (str(executed.ROOT / "fixtures/coco" / f"{name}.json") for name in ("ground_truth", "detections"))
QRELS = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"b": 1, "d": 1, "e": 0}}
RUN = {"q1": {"a": 0.9, "b": 0.8, "c": 0.7}, "q2": {"a": 0.9, "b": 0.8, "d": 0.1, "e": 0.3}}


def rows_of(text):
    """Yield the library, its call and detmap's for each row of the tables."""
    for section in text.split("\n## ")[1:]:
        library = section.partition("\n")[0]
        for left, right in re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", section, re.M):
            yield library, left, right


def coco_like(module, evaluator, **more):
    """Return the ground truth, the detections and the evaluation of a library that is called as pycocotools is."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = import_module(f"{module}.coco" if module == "pycocotools" else module).COCO(TRUTH)
        found = truth.loadRes(FOUND)
        made = getattr(import_module("pycocotools.cocoeval" if module == "pycocotools" else module), evaluator)(
            truth, found, "bbox", **more
        )
        for step in ("evaluate", "accumulate", "summarize"):
            getattr(made, step)()
    return truth, found, made


def names_of_pycocotools():
    from pycocotools import mask
    from pycocotools.cocoeval import COCOeval

    truth, found, evaluation = coco_like("pycocotools", "COCOeval")

    def scored(truth, found, **params):
        with contextlib.redirect_stdout(io.StringIO()):
            made = COCOeval(truth, found, "bbox")
            for name, value in params.items():
                setattr(made.params, name, value)
            made.evaluate()
            made.accumulate()
        return made.eval["precision"]

    return {"truth": truth, "found": found, "evaluation": evaluation, "scored": scored, "mask": mask}


def names_of_faster_coco_eval():
    return {"faster": coco_like("faster_coco_eval", "COCOeval_faster", extra_calc=True)[2]}


def names_of_hotcoco():
    return {"hot": coco_like("hotcoco", "COCOeval")[2]}


def names_of_pytrec_eval():
    import pytrec_eval

    made = pytrec_eval.RelevanceEvaluator(QRELS, pytrec_eval.supported_measures).evaluate(RUN)
    return {"trec_mean": lambda name: np.mean([values[name] for values in made.values()])}


def names_of_ranx():
    import ranx

    return {"ranx": ranx}


def names_of_scikit_learn():
    from sklearn import metrics

    return {"metrics": metrics}


def names_of_torchmetrics():
    import torch
    from torchmetrics import retrieval as other
    from torchmetrics.detection import MeanAveragePrecision

    metric = MeanAveragePrecision(class_metrics=True)
    tensors = [
        [{name: torch.tensor(value) for name, value in one.items()} for one in side] for side in (PREDICTED, TARGETS)
    ]
    metric.update(*tensors)
    return {"metric": metric, **vars(other), **{name: torch.tensor(value) for name, value in RANKED.items()}}


#: What is called on the left: the module of a library, and what makes the names that its rows use.
LIBRARIES = {
    "pycocotools": ("pycocotools", names_of_pycocotools),
    "faster-coco-eval": ("faster_coco_eval", names_of_faster_coco_eval),
    "hotcoco": ("hotcoco", names_of_hotcoco),
    "torchmetrics": ("torchmetrics", names_of_torchmetrics),
    "pytrec_eval": ("pytrec_eval", names_of_pytrec_eval),
    "ranx": ("ranx", names_of_ranx),
    "scikit-learn": ("sklearn", names_of_scikit_learn),
}

PREDICTED = [{"boxes": [[10.0, 10, 50, 50], [0, 0, 9, 9]], "scores": [0.9, 0.3], "labels": [1, 2]}]
TARGETS = [{"boxes": [[10.0, 10, 50, 45], [0, 0, 9, 10]], "labels": [1, 2]}]
RANKED = {"scores": [0.2, 0.3, 0.5, 0.1, 0.4, 0.6], "relevant": [0, 0, 1, 0, 1, 1], "queries": [0, 0, 0, 1, 1, 1]}


@pytest.fixture(scope="module")
def ours():
    """The names that detmap's calls use."""
    evaluator = detmap.Evaluator()
    evaluator.update(PREDICTED, TARGETS, image_ids=[1])

    def ranked(name):
        made = retrieval.Evaluator(metrics=[name])
        made.update(*RANKED.values())
        return made.compute()[name]

    bitmaps = np.zeros((60, 80, 2), np.uint8, order="F")
    bitmaps[10:40, 10:30, 0] = bitmaps[12:40, 10:30, 1] = 1
    table = np.array([[0, 1], [1, 0], [1, 1], [0, 1]])
    return {
        "detmap": detmap,
        "retrieval": retrieval,
        "Masks": Masks,
        "evaluator": evaluator,
        "ranked": ranked,
        "gt": TRUTH,
        "dt": FOUND,
        "result": detmap.evaluate(TRUTH, FOUND),
        "qrels": QRELS,
        "run": RUN,
        "bitmaps": bitmaps,
        "rows": np.moveaxis(bitmaps, -1, 0).astype(bool),
        "labels": [0, 0, 1, 1],
        "values": [0.1, 0.4, 0.35, 0.8],
        "table": table,
        "table_values": np.array([[0.1, 0.9], [0.4, 0.3], [0.35, 0.6], [0.8, 0.2]]),
    }


@pytest.fixture(scope="module")
def theirs(ours):
    """The names that a library's calls use; None where it is not installed."""
    made = {}

    def names(library):
        if library not in made:
            module, make = LIBRARIES[library]
            made[library] = {**ours, **make()} if find_spec(module) else None
        return made[library]

    return names


def test_every_library_has_rows():
    assert {library for library, _, _ in rows_of(PAGE.read_text("utf-8"))} == set(LIBRARIES)
    cells = re.findall(r"^\| `.*\|$", PAGE.read_text("utf-8"), re.M)
    assert len(cells) == len(list(rows_of(PAGE.read_text("utf-8"))))


@pytest.mark.parametrize(("library", "left", "right"), list(rows_of(PAGE.read_text("utf-8"))))
def test_both_calls_give_the_same(library, left, right, ours, theirs):
    value = np.asarray(eval(right, dict(ours)), float)
    assert value.size
    compile(left, "docs/calls.md", "eval")
    names = theirs(library)
    if names is None:  # not installed: detmap's call was run
        return
    expected = np.asarray(eval(left, dict(names)), float)
    expected[expected == -1] = np.nan
    np.testing.assert_allclose(value, expected, rtol=2e-7 if library == "torchmetrics" else 1e-13, atol=0)
