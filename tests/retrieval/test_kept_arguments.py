"""What comes of every odd value of every argument of rankings, numbers and messages, kept word for word."""

from __future__ import annotations

import inspect
import math
import re
import warnings

import kept
import numpy as np
import pytest

from detmap import retrieval
from detmap.errors import DetmapError
from detmap.retrieval.metrics import parse_rate, split

NAN, INF = math.nan, math.inf


def odd_arrays(*shape):
    """Return by name arrays and lists of about this shape, of every kind of values."""
    size = math.prod(shape)
    whole = np.arange(size, dtype=np.int64).reshape(shape)
    floats = whole / 2
    last = (-1,) * len(shape)
    made = {
        "whole numbers": whole,
        "from 1": whole + 1,
        "reversed": whole[::-1],
        "negative": whole - 2,
        "bytes": whole.astype(np.uint8),
        "single": floats.astype(np.float32),
        "beyond 63 bits": whole.astype(np.uint64) + np.uint64(2**63),
        "flags": whole % 2 == 1,
        "zeros": whole * 0,
        "ones": whole * 0 + 1,
        "whole floats": whole.astype(np.float64),
        "fractions": floats,
        "texts": whole.astype(np.str_),
        "bytes of letters": whole.astype("S3"),
        "objects": whole.astype(object),
        "masked": np.ma.masked_equal(whole, size - 1),
        "complex": whole.astype(np.complex128),
        "dates": whole.astype("M8[s]"),
        "list": whole.tolist(),
        "ragged": [[1], [1, 2], *[[1]] * (shape[0] - 2)],
        "mixed": [1, "a", *[2.5] * (shape[0] - 2)],
        "nested deeper": whole[..., None],
        "flat": whole.ravel(),
        "one fewer": whole[:-1],
        "one more": np.concatenate([whole, whole[-1:]]),
        "all equal": np.full(shape, 3),
        "none": [None] * shape[0],
        "beyond 64 bits": [2**70] * shape[0],
    }
    for name, value in (("a NaN", NAN), ("infinite", INF), ("minus infinity", -INF)):
        made[name] = floats.copy()
        made[name][last] = value
    return made


#: Values of any argument.
PLAIN = {
    "None": None, "True": True, "False": False, "0": 0, "1": 1, "2": 2, "-1": -1, "a billion": 10**9, "2 ** 70": 2**70,
    "0.5": 0.5, "1.0": 1.0, "nan": NAN, "inf": INF, "numpy's 1": np.int64(1), "numpy's 0.5": np.float64(0.5),
    "'a'": "a", "''": "", "'1'": "1", "b'a'": b"a", "[]": [], "()": (), "{}": {}, "[[]]": [[]], "{1: 2}": {1: 2},
    "a set": {1}, "a type": int,
}  # fmt: skip


def outcome(call, given):
    """Return what a call returns, in short, its warnings, and what is wrong with what it was given."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            made = shown(call(**given))
        except DetmapError as error:
            made = f"{type(error).__name__}: {kept.told(error)}"
        except (
            TypeError,
            ValueError,
            AttributeError,
        ) as error:  # where a mistake of the program is raised as Python does
            made = type(error).__name__
    said = "".join(f" ! {one.message}" for one in told if one.category is UserWarning)
    return re.sub("0x[0-9a-f]+", "0x", made + said)


def defaults(call):
    """Return the values that arguments have by default."""
    given = {one.name: one.default for one in inspect.signature(call).parameters.values()}
    return {name: value for name, value in given.items() if not callable(value)}


def shown(made):
    if isinstance(made, retrieval.RankingResult):
        columns = {name: column.tolist() for name, column in made.per_query.items()}
        facts = [made.queries, made.junk, dict(made.notices), made.query_ids.tolist(), made.convention.name]
        facts += [None if made.cmc is None else made.cmc.tolist()]
        return f"{dict(made)} {columns} {facts}".replace("array", "")
    if isinstance(made, dict):
        return " ".join(f"{name} {shown(one)}" for name, one in made.items())
    if isinstance(made, tuple):
        return " ".join(map(shown, made))
    return f"{made.dtype} {made.tolist()}" if isinstance(made, np.ndarray) else repr(made)


CALLS = {
    "distances": (
        retrieval.evaluate_distances,
        {
            "distances": np.array([[0.5, 0.25, 1.0, 0.25], [0.0, 2.0, 1.5, 0.75], [0.5, 0.5, 0.5, 0.25]]),
            "query_ids": np.array([0, 1, 2]),
            "gallery_ids": np.array([0, 1, 0, 2]),
            "query_cameras": np.array([0, 1, 0]),
            "gallery_cameras": np.array([1, 0, 0, 1]),
        },
        {"distances": (3, 4), "query_ids": (3,), "gallery_ids": (4,), "query_cameras": (3,), "gallery_cameras": (4,)},
        {"self_match": (3,), "ignore": (3, 1), "metrics": (), "convention": (), "junk_id": (), "seed": (), "ties": ()},
    ),
    "features": (
        retrieval.evaluate_features,
        {
            "query": np.array([[0.5, 0.25], [0.0, 2.0], [1.0, 0.5]]),
            "gallery": np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.5], [0.25, 0.75]]),
            "query_ids": np.array([0, 1, 2]),
            "gallery_ids": np.array([0, 1, 0, 2]),
            "metric": "sqeuclidean",
        },
        {"query": (3, 2), "gallery": (4, 2), "query_ids": (3,), "metric": ()},
        {"keep_curve": ()},
    ),
    "codes": (
        retrieval.evaluate_codes,
        {
            "query_codes": np.array([[0, 1, 1, 0], [1, 1, 1, 0]]),
            "gallery_codes": np.array([[0, 1, 1, 1], [0, 0, 1, 0], [1, 1, 0, 0]]),
            "query_labels": np.array([0, 1]),
            "gallery_labels": np.array([1, 0, 1]),
        },
        {"query_codes": (2, 4), "gallery_codes": (3, 4), "query_labels": (2,), "gallery_labels": (3,)},
        {"k": (), "packed": (), "self_match": (2,), "metrics": (), "empty": ()},
    ),
    "codes with rows of labels": (
        retrieval.evaluate_codes,
        {
            "query_codes": np.array([[3], [5]], np.uint64),
            "gallery_codes": np.array([[1], [7], [4]], np.uint64),
            "query_labels": np.array([[0, 1], [1, 1]]),
            "gallery_labels": np.array([[1, 0], [0, 1], [1, 1]]),
        },
        {"query_codes": (2, 1), "query_labels": (2, 2), "gallery_labels": (3, 2)},
        {"packed": ()},
    ),
    "neighbors": (
        retrieval.evaluate_neighbors,
        {
            "indices": np.array([[0, 1, 2], [3, 1, 0]]),
            "query_ids": np.array([0, 1]),
            "gallery_ids": np.array([1, 0, 0, 1]),
            "distances": np.array([[0.0, 0.5, 1.0], [0.25, 0.25, 2.0]]),
        },
        {"indices": (2, 3), "query_ids": (2,), "gallery_ids": (4,), "distances": (2, 3)},
        {"self_match": (2,), "ignore": (2, 1), "junk_id": (), "metrics": (), "convention": ()},
    ),
    "neighbor_recall": (
        retrieval.neighbor_recall,
        {"found": np.array([[0, 1, 2], [3, 1, 0]]), "exact": np.array([[0, 2, 3], [1, 3, 2]])},
        {"found": (2, 3), "exact": (2, 3)},
        {"k": ()},
    ),
    "landmarks": (
        retrieval.evaluate_landmarks,
        {
            "ranks": np.array([[0, 3], [1, 2], [2, 1], [3, 0]]),
            "ground_truth": [{"easy": [0], "hard": [2], "junk": [1]}, {"easy": [1, 3], "hard": [], "junk": []}],
        },
        {"ranks": (4, 2), "ground_truth": ()},
        {"metrics": (), "convention": ()},
    ),
    "rankings": (
        retrieval.evaluate_rankings,
        {"rankings": [[1, 0, 1], [0, 1, 0]], "positives": [2, 2]},
        {"rankings": (2, 3), "positives": (2,)},
        {"query_ids": (2,), "relevant": (2, 2), "metrics": (), "level": (), "convention": (), "normalizer": ()},
    ),
    "run": (
        retrieval.evaluate_run,
        {
            "qrels": {"a": {"x": 1, "y": 0, "z": 2}, "b": {"x": 1}},
            "run": {"a": {"x": 0.5, "y": 1.0, "w": 0.5}, "b": {"y": 1.0, "x": 0.25}},
            "metrics": ["mAP", "nDCG@2", "P@1"],
        },
        {"qrels": (), "run": (), "metrics": ()},
        {"level": (), "depth": (), "judged_only": (), "empty_input": (), "missing": (), "order": (), "single": (),
         "positive_scores": (), "drop_same_id": (), "interpolation": (), "cmc": ()},
    ),
    "average_precision_score": (
        retrieval.average_precision_score,
        {"y_true": np.array([0, 1, 1, 0]), "y_score": np.array([0.1, 0.5, 0.25, 0.5])},
        {"y_true": (4,), "y_score": (4,)},
        {"sample_weight": (4,), "average": (), "pos_label": (), "interpolation": (), "thresholds": (3,)},
    ),
    "average_precision_score of columns": (
        retrieval.average_precision_score,
        {"y_true": np.array([[0, 1], [1, 0], [1, 1]]), "y_score": np.array([[0.1, 0.5], [0.25, 0.5], [0.75, 0.0]])},
        {"y_true": (3, 2), "y_score": (3, 2)},
        {"sample_weight": (3,), "average": (), "pos_label": ()},
    ),
    "average_precision_score of classes": (
        retrieval.average_precision_score,
        {"y_true": np.array([0, 2, 1, 0]), "y_score": np.array([[0.1, 0.5, 0], [0, 0.25, 1], [0.5, 0.75, 0], [1, 0, 0.5]])},
        {"y_true": (4,)},
        {"average": ()},
    ),
    "global_average_precision": (
        lambda queries, classes, scores, truth: retrieval.global_average_precision((queries, classes, scores), truth),
        {
            "queries": np.array([0, 1, 2]),
            "classes": np.array([5, 6, 7]),
            "scores": np.array([0.5, 0.25, 0.75]),
            "truth": {0: 5, 1: [6, 8], 2: None, 3: 1},
        },
        {"queries": (3,), "classes": (3,), "scores": (3,), "truth": ()},
        {},
    ),
    "abstention_area": (
        retrieval.abstention_area,
        {"confidence": np.array([0.5, 0.25, 1.0]), "values": np.array([0.0, 0.5, 1.0])},
        {"confidence": (3,), "values": (3,)},
        {},
    ),
    "multi_query": (
        retrieval.multi_query,
        {
            "features": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]),
            "ids": np.array([1, 1, 2]),
            "cameras": np.array([0, 0, 1]),
        },
        {"features": (3, 2), "ids": (3,), "cameras": (3,)},
        {},
    ),
    "rank_biased_overlap": (
        retrieval.rank_biased_overlap,
        {"first": [1, 2, 3], "second": [2, 1, 4, 5]},
        {"first": (3,)},
        {"p": (), "extrapolate": ()},
    ),
    "confidences": (
        retrieval.confidences,
        {"run": {"a": {"x": 1.0, "y": 0.5}, "b": {"z": 2.0}, "c": {}}},
        {"run": (), "kind": ()},
        {},
    ),
    "p_mrr": (
        retrieval.p_mrr,
        {
            "before": {"a": {"x": 1.0, "y": 0.5}},
            "after": {"a": {"x": 0.25, "y": 0.5, "z": 0.75}},
            "changed": {"a": ["x"]},
        },
        {"before": (), "after": (), "changed": ()},
        {},
    ),
    "Convention": (retrieval.Convention, {"name": "mine"}, {}, dict.fromkeys(
        ("interpolation", "normalizer", "depth", "ties", "empty", "missing", "order", "single", "cmc", "names", "digits"), ()
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_odd_values_of_arguments(name):
    call, usual, needed, further = CALLS[name]
    lines = [f"by default: {defaults(call)}", f"as usual: {outcome(call, usual)}"]
    for argument, shape in {**needed, **further}.items():
        for said, value in {**PLAIN, **(odd_arrays(*shape) if shape else {})}.items():
            lines.append(f"{argument}, {said}: {outcome(call, {**usual, argument: value})}")
    kept.same(f"arguments/{name.replace(' ', '-')}", "\n".join(lines) + "\n")


#: Names of metrics, those of other tools, with every kind of depth and option, and none.
TAILS = ("", "@1", "@0", "_5", ".2", "@0.3", "(rel=2)", "(rel=0)@3", "(p=0.5)", "(exp)", "(1=3)", "(0.5)", "@R", "-l2")
NAMES = [one.name + tail for one in retrieval.METRICS for tail in TAILS]
NAMES += [alias for one in retrieval.METRICS for alias in one.aliases]


@pytest.mark.parametrize("convention", ["trec", "ranx", "ir_measures"])
def test_names_of_metrics(convention):
    """What each name is read as, by its values, or what is wrong with it."""
    qrels = {"a": {"x": 1, "y": 0, "z": 2, "u": 1}, "b": {"x": 1, "v": 2}}
    run = {"a": {"x": 0.5, "y": 1.0, "w": 0.25, "z": 0.125}, "b": {"y": 1.0, "x": 0.5, "v": 0.5 + 2**-40}}
    lines = []
    for name in NAMES:
        try:
            result = retrieval.evaluate_run(qrels, run, [name], convention)
            ((_, column),) = result.per_query.items()
            made = f"{dict(result)} {column.tolist()}"
        except DetmapError as error:
            made = str(error).partition("; one of")[0]
        lines.append(f"{name}: {made}")
    kept.same(f"arguments/names-{convention}", "\n".join(lines) + "\n")


def test_rates_and_lists():
    """Rates of TPR@FPR, and lists of names."""
    assert [parse_rate(f"TPR@FPR={rate}") for rate in ("0", "1", "0.5", "1e-3")] == [0, 1, 0.5, 0.001]
    assert parse_rate(" tpr@fpr = 0.25") == 0.25
    assert [parse_rate(name) for name in (3, None, "TPR", "AP@3", "TPR@FPR")] == [None] * 5
    for rate in ("", "-0.1", "1.1", "x", "nan", "0.5.5"):
        with pytest.raises(DetmapError, match="the rate must be from 0 to 1"):
            parse_rate(f"TPR@FPR={rate}")
    assert split("a,b(c,d)@3, e ,,f") == ["a", "b(c,d)@3", "e", "f"]
