"""`average_precision_score` on every shape, average, label type and weight: scikit-learn's value, or both refuse."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from detmap.errors import InputError, OptionError
from detmap.retrieval import average_precision_score, global_average_precision

AVERAGES = (None, "micro", "macro", "weighted", "samples")
#: Name of the labels: the dtype, how numbers become labels, and the positive labels to ask for.
LABELS = {
    "bool": (lambda y: y.astype(bool), (1, True, 0, 5, "1")),
    "int": (lambda y: y.astype(np.int64), (1, True, 0, 5, 1.0, "1", np.int64(1))),
    "uint8": (lambda y: y.astype(np.uint8), (1, 0)),
    "float": (lambda y: y.astype(np.float64), (1, 0.0, 7)),
    "shifted": (lambda y: 2 * y.astype(np.int64) - 1, (1, -1, 0)),
    "str": (lambda y: np.array(["n", "yes", "zz", "q"])[y], (1, "yes", "n", "no")),
    "digits": (lambda y: y.astype(str), (1, "1", "0")),
    "object": (lambda y: np.array(["n", "yes", "zz", "q"], object)[y], (1, "yes", "n", "no")),
    "object numbers": (lambda y: y.astype(object), (1, 0)),
    "bytes": (lambda y: y.astype("S"), (1, b"1")),
}
#: Shapes of `y_true` and of `y_score`, and how many classes there are at most.
SHAPES = [
    *(((9,), (9,), k) for k in (1, 2, 3)),
    *(((9, 1), (9,), k) for k in (1, 2, 3)),
    *(((9,), (9, 1), k) for k in (1, 2, 3)),
    *(((9, 1), (9, 1), k) for k in (1, 2, 3)),
    *(((9,), (9, 2), k) for k in (1, 2)),
    *(((9,), (9, 3), k) for k in (2, 3)),
    *(((9, 1), (9, 3), k) for k in (2, 3)),
    *(((9,), (9, 4), k) for k in (3, 4)),
    ((9, 2), (9, 2), 2),
    ((9, 2), (9,), 2),
    ((9, 3), (9, 3), 2),
    ((9, 3), (9, 3), 3),
    ((1, 3), (1, 3), 2),
    ((9, 2), (8, 2), 2),
    ((9,), (8,), 2),
]


def outcome(function, *args, **options):
    """The value, or the kind of error; warnings are no part of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **options)
        except (ValueError, TypeError):  # what is refused by scikit-learn; ours are subclasses of the former
            return None


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_value_of_scikit_learn_or_both_refuse(labels, weighted):
    sklearn = pytest.importorskip("sklearn.metrics")
    convert, positives = LABELS[labels]
    rng = np.random.default_rng([*map(ord, labels), weighted])
    refused = compared = 0
    asked = [(average, positives[0]) for average in AVERAGES] + [("macro", positive) for positive in positives[1:]]
    for place, ((shape, score_shape, classes), alone) in enumerate(itertools.product(SHAPES, (False, True))):
        matrix = len(shape) == 2 and shape[1] > 1
        if classes > 2 and labels in ("shifted", "bool"):
            continue
        if matrix and labels == "shifted":
            continue  # rows of other numbers than 0 and 1 have a meaning in scikit-learn; here they are refused
        if len(shape) == 2 and labels == "bytes":
            continue  # scikit-learn sees that they are bytes in flat columns alone
        y = np.full(shape, classes - 1) if alone and not matrix else rng.integers(0, classes, shape)
        truth, scores = convert(y), rng.integers(0, 5, score_shape) / 4
        weights = None
        if weighted:
            weights = rng.integers(0, 4, shape[0]) / 4
            weights[0] = 1
            weights = weights[:, None] if alone else weights
        # Each other one has weights where this one has none, and the other way round.
        for average, positive in asked[(place // 2 + alone + weighted) % 2 :: 2]:
            options = {"average": average, "pos_label": positive, "sample_weight": weights}
            wanted = outcome(sklearn.average_precision_score, truth, scores, **options)
            got = outcome(average_precision_score, truth, scores, **options)
            case = f"{shape} {score_shape} {classes} {options} {truth.tolist()} {scores.tolist()}: {got}, not {wanted}"
            assert (got is None) == (wanted is None), case
            if wanted is None:
                refused += 1
            else:
                compared += 1
                assert np.shape(got) == np.shape(wanted), case
                assert np.allclose(got, wanted, rtol=0, atol=1e-14), case
    assert refused
    assert compared or labels in ("object numbers", "bytes")


def test_column_of_labels_is_binary_whatever_the_average():
    truth, scores = np.array([[1], [0], [1], [1], [0]]), np.array([[0.5], [0.9], [0.8], [0.4], [0.1]])
    for average in AVERAGES:
        assert average_precision_score(truth, scores, average=average) == (1 / 2 + 2 / 3 + 3 / 4) / 3


@pytest.mark.parametrize(
    ("truth", "scores", "options", "message"),
    [
        ([1, np.nan, np.nan], [0.1, 0.2, 0.3], {}, r"y_true: record 1: labels must be whole numbers.* \(got nan\)"),
        ([0, 0.5, 1], [0.1, 0.2, 0.3], {}, r"y_true: record 1: labels must be whole numbers.* \(got 0.5\)"),
        ([0, 1, np.inf], [0.1, 0.2, 0.3], {}, "y_true: record 2: labels must be whole numbers"),
        ([[0, 1], [0.5, 1]], [[0, 1], [1, 0]], {}, "y_true: record 1: labels must be whole numbers"),
        (np.ma.array([0, 1, 1], mask=[0, 0, 1]), [0.1, 0.2, 0.3], {}, "y_true: record 2.* is masked"),
        (np.ma.array(["a", "b"], mask=[0, 1]), [0.1, 0.2], {"pos_label": "b"}, "y_true: record 1.* is masked"),
        ([np.ma.array([0, 1], mask=[0, 1]), [0, 1]], [[0, 1], [1, 0]], {}, "y_true: record 0.* is masked"),
        ([0, np.ma.masked], [0.1, 0.2], {}, "y_true: record 1.* is masked"),
        ([0, 1], np.ma.array([0.1, 0.2], mask=[0, 1]), {}, "y_score: record 1.* is masked"),
        (
            [0, 1],
            [0.1, 0.2],
            {"sample_weight": np.ma.array([1, 2], mask=[1, 0])},
            "sample_weight: record 0.* is masked",
        ),
        ([0, 1], [0.1, 0.2], {"sample_weight": ["1", "2"]}, "sample_weight: .*not strings"),
        ([0, 1], [0.1, 0.2], {"thresholds": ["1", "2"]}, "thresholds: .*not strings"),
        ([0, 1], ["1", "2"], {}, "y_score: .*not strings"),
        ([0, 1], [0.1, None], {}, "y_score: record 1.* is missing"),
        (np.array(["a", None], object), [0.1, 0.2], {"pos_label": "a"}, "y_true: record 1.* is missing"),
        (np.array([0, 1], object), [0.1, 0.2], {}, "y_true: expected labels, not objects"),
        (np.array([0, 1], "M8[s]"), [0.1, 0.2], {}, "y_true: expected a column or a matrix of labels"),
        (1, [0.1, 0.2], {}, "y_true: expected a column"),
        ([[0, 1], [1]], [0.1, 0.2], {}, "y_true: .*one length"),
        ([[], []], [0.1, 0.2], {}, "y_true"),
        ([0, 1, 0], [[0.1, 0.9]] * 3, {}, "2 columns for 2 classes; give the scores of the positive class alone"),
        ([0, 1], [0.1, 0.2], {"pos_label": None}, "pos_label must be a number or a string"),
    ],
)
def test_refused_in_one_line(truth, scores, options, message):
    with pytest.raises((InputError, OptionError), match=message) as caught:
        average_precision_score(truth, scores, **options)
    assert "\n" not in str(caught.value)


def test_masked_arrays_without_a_masked_element_are_arrays():
    truth, scores = np.array([0, 1, 1, 0]), np.array([0.3, 0.2, 0.9, 0.1])
    plain = average_precision_score(truth, scores, sample_weight=scores)
    masked = [np.ma.array(column) for column in (truth, scores)]
    assert average_precision_score(*masked, sample_weight=masked[1]) == plain


def test_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    scores = [0.3, 0.2, 0.9, 0.1]
    wanted = average_precision_score([0, 1, 1, 0], scores)
    for dtype in ("Int64", "boolean", "float64", "category"):
        truth = pandas.Series([0, 1, 1, 0]).astype(dtype)
        assert average_precision_score(truth, pandas.Series(scores, dtype="Float64")) == wanted
    for dtype in ("object", "string", "category"):
        truth = pandas.Series(["n", "y", "y", "n"], dtype=dtype)
        assert average_precision_score(truth, scores, pos_label="y") == wanted
    with pytest.raises(InputError, match=r"y_true: record 1.*got nan"):
        average_precision_score(pandas.Series([0, None, 1, 1], dtype="Int64"), scores)


def test_global_average_precision_compares_ids_as_text():
    truth = {1: 7, 2: [8, 9], 3: None, 4: ()}
    scores = [0.9, 0.8, 0.7]
    wanted = global_average_precision(([1, 2, 3], [7, 9, 8], scores), truth)
    assert wanted == 1.0
    as_text = {str(query): classes for query, classes in truth.items()}
    for queries, classes in (
        (["1", "2", "3"], [7, 9, 8]),
        ([b"1", b"2", b"3"], ["7", "9", "8"]),
        ([1.0, 2, 3], [7, 9.0, 8]),
    ):
        for given in (truth, as_text):
            assert global_average_precision((queries, classes, scores), given) == wanted
    classes = np.array(["7", "9"], object)
    assert global_average_precision((["1", "2"], classes, scores[:2]), {1: 7, 2: np.array([9, 8])}) == 1.0


@pytest.mark.parametrize(
    ("predictions", "truth", "message"),
    [
        (([1, 2], [7, 8], [0.5, 0.4]), {1: 7, "1": 8}, "truth: .*there are 1 and '1'"),
        (([1, 2], [7, 8], [0.5, 0.4]), {1: 7, 2: float("nan")}, "truth: .*is missing"),
        (([1, None], [7, 8], [0.5, 0.4]), {1: 7}, "predictions: record 1, field 'queries': is missing"),
        (
            ([1, 2], np.ma.array([7, 8], mask=[0, 1]), [0.5, 0.4]),
            {1: 7},
            "record 1, field 'classes': is masked",
        ),
        (
            ([1, 2], [7, 8], np.ma.array([0.5, 0.4], mask=[0, 1])),
            {1: 7},
            "record 1, field 'scores': is masked",
        ),
        (([1, 2], [7, 8], [0.5, np.nan]), {1: 7}, "predictions: record 1: a score is NaN"),
        (([1, 2], [7, 8]), {1: 7}, "expected three columns"),
        (([1, 2], [7], [0.5, 0.4]), {1: 7}, "three columns of one length"),
    ],
)
def test_global_average_precision_refuses(predictions, truth, message):
    with pytest.raises(InputError, match=message):
        global_average_precision(predictions, truth)


def test_weighted_labels_without_a_positive_are_0_without_a_warning_as_in_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    given = [[0, 0], [0, 0]], [[0.0, 1.25], [0.5, 0.25]]
    for weights in (None, [1.0, 4.0]):
        expected = sklearn.average_precision_score(*given, average="weighted", sample_weight=weights)
        assert average_precision_score(*given, average="weighted", sample_weight=weights) == expected == 0
