"""Metrics of scored samples: average precision with scikit-learn's signature, and micro-AP over all predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import columns
from detmap.errors import InputError, OptionError, shorten
from detmap.hits import INTERPOLATIONS, Hits, Interpolation
from detmap.kernels import curves, ranking, readonly, ties
from detmap.retrieval import document_ids
from detmap.retrieval.scoring import table
from detmap.system import parallel

Average = Literal["macro", "micro", "weighted", "samples"]
Binary = Callable[[NDArray[Any], NDArray[Any], "NDArray[Any] | None"], float]


class _ParameterError(OptionError, TypeError):
    """An option of an invalid type or value. Like scikit-learn's error, it is both a ValueError and a TypeError."""


def average_precision_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    average: Average | None = "macro",
    pos_label: int | str = 1,
    sample_weight: ArrayLike | None = None,
    interpolation: Interpolation = "step",
    thresholds: ArrayLike | None = None,
) -> float | NDArray[np.float64]:
    """Return average precision from scores of samples, as ``sklearn.metrics.average_precision_score`` does.

    Equal scores form one point of the curve: AP is the sum of (R_i - R_(i-1)) P_i over distinct scores.

    Parameters
    ----------
    y_true : array_like, shape (n,), (n, 1) or (n, c)
        Binary labels, multilabel rows of 0 and 1 (at least two columns), or multiclass labels of at least three classes.
        For multiclass labels, `y_score` has a column per class, in the sorted order of classes. Labels are integers, floats
        without a fraction, booleans or strings, also of dtype object. A matrix of one column is the same as a flat array.
    y_score : array_like of float, shape (n,), (n, 1) or (n, c)
        Higher means more likely positive.
    average : {"macro", "micro", "weighted", "samples"} or None
        "macro": mean over columns; "micro": all elements pooled into one ranking; "weighted": mean over columns, weighted
        by the number of positives; "samples": mean over rows; None: one value per column. Ignored for binary labels.
    pos_label : int, float, bool or str
        The positive label of binary `y_true`: one of its two labels.
    sample_weight : array_like of float, shape (n,) or (n, 1), optional
        Weights of the samples, not negative.
    interpolation : str
        ``step`` is scikit-learn's rule; ``trapezoid`` is scikit-learn's rule before 0.19; ``11-point`` reads the envelope
        at recalls 0, 0.1 .. 1; see `Hits.average_precision`.
    thresholds : array_like of float, shape (t,), optional
        Scores at which precision and recall are read. Each score is lowered to the largest threshold that it reaches;
        samples below all thresholds are not retrieved. By default every distinct score is a threshold.

    Returns
    -------
    float, or ndarray of float64, shape (c,), with average=None
        The average precision. A column without positives has the value 0 and gives a warning, as in scikit-learn.

    Raises
    ------
    InputError
        If scores are NaN or infinite, values are masked or missing, or shapes or labels are invalid.
    OptionError
        For unknown options, or an interpolation other than ``step`` with weights.

    Examples
    --------
    >>> average_precision_score([0, 0, 1, 1], [0.4, 0.1, 0.8, 0.35])
    0.8333333333333333
    """
    if average not in ("macro", "micro", "weighted", "samples", None):
        raise _ParameterError(f"average must be macro, micro, weighted, samples or None, not {shorten(average)}")
    if interpolation not in INTERPOLATIONS or interpolation == "trapezoid-hits":
        raise OptionError(f"unknown interpolation {interpolation!r}")
    if not _is_label(pos_label):
        raise _ParameterError(f"pos_label must be a number or a string, not {shorten(pos_label)}")
    truth, scores = _labels(y_true), _column(columns.numbers(y_score, source="y_score", booleans=True))
    if scores.ndim not in (1, 2):
        raise InputError("expected numbers, a column or a matrix", source="y_score")
    if len(truth) != len(scores) or not truth.size:
        sizes = f"inconsistent numbers of samples: {[len(truth), len(scores)]}"
        few = "0 samples, while a minimum of 1 is required"
        raise InputError(
            f"{sizes} ({len(scores)} rows for {len(truth)} of y_true)" if len(truth) != len(scores) else few,
            source="y_score" if len(truth) != len(scores) else "y_true",
        )
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores)) // scores[0].size)
        which = "NaN" if np.isnan(scores).any() else "infinity"
        raise InputError(f"Input contains {which}: each score must be a finite number", source="y_score", record=row)
    weights = None
    if sample_weight is not None:
        weights = _column(columns.numbers(sample_weight, source="sample_weight", booleans=True))
        if weights.ndim == 1 and weights.shape != (len(truth),):
            found = [len(truth), len(scores), len(weights)]
            raise InputError(f"inconsistent numbers of samples: {found}", source="sample_weight")
        if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
            raise InputError(f"expected {len(truth)} numbers, none negative", source="sample_weight")
        if not weights.any():
            raise InputError("all weights are 0", source="sample_weight")
        if interpolation != "step":
            raise OptionError(f"sample_weight can be combined with interpolation='step' only, not {interpolation!r}")
    if thresholds is not None:
        steps = np.unique(columns.numbers(thresholds, source="thresholds"))
        if not steps.size or not np.isfinite(steps).all():
            raise InputError("expected finite numbers", source="thresholds")
        # samples below all thresholds have the score -inf and are not retrieved
        scores = np.concatenate(([-np.inf], steps))[np.searchsorted(steps, scores, side="right")]

    def binary(y: NDArray[Any], s: NDArray[Any], w: NDArray[Any] | None) -> float:
        return _weighted(y, s, w) if w is not None else _binary(y, s, interpolation)

    if truth.ndim == 1 and scores.ndim == 1:
        return _warned(binary, _positive(truth, pos_label), scores, weights)
    if truth.ndim == 1:
        classes = np.unique(truth)
        if classes.size != scores.shape[1] or classes.size < 3:
            remedy = "give the scores of the positive class alone, as one column" if classes.size < 3 else None
            problem = f"{scores.shape[1]} columns for {classes.size} classes"
            raise InputError(problem, source="y_score", remedy=remedy)
        if pos_label != 1:
            raise OptionError(_fixed("multiclass", pos_label))
        positive = truth[:, None] == classes
    else:
        if truth.shape != scores.shape:
            raise InputError(f"of shape {scores.shape} where y_true is {truth.shape}", source="y_score")
        if not bool(np.all((truth == 0) | (truth == 1))):
            raise InputError("rows must be 0 and 1", source="y_true")
        if pos_label != 1:
            raise OptionError(_fixed("multilabel-indicator", pos_label))
        positive = truth != 0
    return _averaged(positive, scores, weights, average, binary)


def _fixed(kind: str, pos_label: Any) -> str:
    """Return the message that `pos_label` cannot be changed; it begins like scikit-learn's message."""
    remedy = "Do not set pos_label or set pos_label to 1."
    return f"Parameter pos_label is fixed to 1 for {kind} y_true. {remedy} It is {shorten(pos_label)}."


def _is_label(value: Any) -> bool:
    return isinstance(value, Real | str | np.bool_)


def _column(array: NDArray[Any]) -> NDArray[Any]:
    """Return a matrix of one column as a flat array; other arrays unchanged."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _labels(y_true: Any) -> NDArray[Any]:
    """Return labels as booleans, whole numbers or strings. The shape is (n,), or (n, c) if there are several columns."""
    if hasattr(y_true, "toarray"):  # scipy's sparse matrices, which scikit-learn takes as rows of labels
        y_true = y_true.toarray()
    if isinstance(y_true, list | tuple):  # numpy would ignore the masks of the arrays in a list
        hidden = any(issubclass(kind, np.ma.MaskedArray) for kind in set(map(type, y_true)))
        labels = columns.numbers(y_true, source="y_true", booleans=True) if hidden else table(y_true, "y_true")
    else:
        try:
            labels = columns.array(y_true)
        except TypeError:
            raise InputError("expected labels in a regular array", source="y_true") from None
    if labels.dtype.kind in "OUT":
        strings = columns.identifiers(_column(labels), source="y_true")
        if strings.dtype.kind != "U":
            raise InputError("expected labels, not objects", source="y_true", remedy="convert them to integers")
        return strings
    if labels.dtype.kind not in "biuf" or labels.ndim not in (1, 2):
        problem = f"expected a column or a matrix of labels, not {labels.dtype.name} of {labels.ndim} dimensions"
        raise InputError(problem, source="y_true", remedy="write labels as integers, booleans or strings")
    if labels.dtype.kind == "f" or (type(labels) is not np.ndarray and isinstance(labels, np.ma.MaskedArray)):
        labels = columns.numbers(labels, source="y_true", booleans=True)
        whole = np.isfinite(labels) & (labels == np.trunc(labels))
        if not whole.all():
            place = np.unravel_index(int(np.argmin(whole)), labels.shape)
            problem = "labels must be whole numbers, booleans or strings"
            raise InputError(problem, source="y_true", record=int(place[0]), value=float(labels[place]))
    return _column(labels)


def _averaged(
    positive: NDArray[np.bool_],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    average: Average | None,
    binary: Binary,
) -> float | NDArray[np.float64]:
    columns = scores.shape[1]
    if average == "micro":
        repeated = None if weights is None else np.repeat(weights, columns)
        return _warned(binary, positive.ravel(), scores.ravel(), repeated)
    if average == "samples":
        values = np.array([_warned(binary, y, s, None) for y, s in zip(positive, scores, strict=True)])
        return float(np.average(values, weights=weights))
    mass = positive.sum(axis=0) if weights is None else weights @ positive
    if average == "weighted" and not mass.sum():
        return 0.0  # without a warning, as in scikit-learn
    values = np.array([_warned(binary, positive[:, c], scores[:, c], weights) for c in range(columns)])
    if average is None:
        return values
    return float(np.mean(values)) if average == "macro" else float(np.average(values, weights=mass))


def _positive(truth: NDArray[Any], pos_label: Any) -> NDArray[np.bool_]:
    """Mask of the positive samples, shape (n,), for binary labels. `pos_label` must be one of the labels, unless all
    labels are equal.
    """
    usual = truth.dtype.kind == "b" or (truth.dtype.kind in "iu" and truth.min() >= 0 and truth.max() <= 1)
    if not usual or pos_label not in (0, 1):  # skipped for labels 0 and 1, because the check sorts all labels
        labels = np.unique(truth)
        if labels.size > 2:
            raise InputError(
                f"`y_score` needs to be of shape `(n_samples, n_classes)`: y_true has {labels.size} classes",
                source="y_score",
                remedy="give it a column per class",
            )
        if labels.size == 2 and pos_label not in labels.tolist():
            known = " ".join(shorten(label) for label in labels.tolist())
            raise OptionError(f"pos_label={shorten(pos_label)} is not a valid label. It should be one of [{known}]")
    if isinstance(pos_label, str) != (truth.dtype.kind == "U"):
        return np.zeros(truth.size, np.bool_)
    return truth if truth.dtype.kind == "b" and pos_label == 1 else np.asarray(truth == pos_label)


def _warned(binary: Binary, positive: NDArray[Any], scores: NDArray[Any], weights: NDArray[Any] | None) -> float:
    value = binary(positive, scores, weights)
    if np.isnan(value):
        text = "No positive class found in y_true, no positive sample: average precision is set to 0"
        warnings.warn(text, UserWarning, stacklevel=4)
        return 0.0
    return value


def _binary(positive: NDArray[Any], scores: NDArray[Any], interpolation: Interpolation) -> float:
    """Return AP of unweighted samples, NaN without positives. Positive and negative scores are sorted separately, then
    merged.
    """
    sides: list[NDArray[Any]] = [np.empty(0), np.empty(0)]

    def sort(side: int, _: int) -> None:
        part = scores[positive if side == 0 else ~positive]
        part.sort()
        sides[side] = readonly(part, np.float64)

    parallel.run(sort, [(0, 1), (1, 2)], None if scores.size > 10_000 else 1)
    found = sides[0].size
    retrieved = [side[int(np.searchsorted(side, -np.inf, side="right")) :] for side in sides]
    ahead, tied = np.empty(retrieved[0].size, np.int64), np.empty(retrieved[0].size, np.int64)
    ranking.rank_samples(retrieved[0], retrieved[1], ahead, tied)
    items = sum(side.size for side in retrieved)
    starts = np.array([0, ahead.size])
    hits = Hits(starts, ahead + tied, np.array([found]), np.array([items]), ahead=ahead, tied=tied)
    if interpolation in ("step", "trapezoid"):
        out = np.empty(1)
        trapezoid = interpolation == "trapezoid"
        ties.collapsed_average_precision(hits.starts, hits.ahead, hits.tied, hits.positives, trapezoid, 0, 1, out)
        return float(out[0])
    return float(hits.average_precision(interpolation)[0])


def _weighted(positive: NDArray[Any], scores: NDArray[Any], weights: NDArray[Any] | None) -> float:
    """Return AP of weighted samples; samples of weight 0 are left out."""
    assert weights is not None
    kept = (weights > 0) & (scores > -np.inf)
    total = float(weights[positive.astype(bool)].sum())
    if not total:
        return float("nan")
    values, truth = readonly(scores[kept], np.float64), readonly(positive[kept], np.bool_)
    order = readonly(np.argsort(-values, kind="stable"), np.int32)
    recall, precision = np.empty(values.size), np.empty(values.size)
    points = curves.weighted_points(values, truth, readonly(weights[kept], np.float64), order, recall, precision)
    return float(np.sum(np.diff(recall[:points] / total, prepend=0.0) * precision[:points]))


def global_average_precision(predictions: tuple[ArrayLike, ArrayLike, ArrayLike], truth: Mapping[Any, Any]) -> float:
    """Return GAP, the micro-average precision of landmark recognition (DELF, DISC21).

    Parameters
    ----------
    predictions : (queries, classes, scores)
        Three columns with one prediction per row, and at most one prediction per query. Queries and classes are integers
        or strings, and are compared with the ids in `truth` as text (see `evaluate_run`).
    truth : mapping
        The class, or a collection of classes, by query. An empty collection, None, or no entry means no class.

    Returns
    -------
    float
        All predictions are ranked by descending score (ties: ascending query, then class). GAP is the sum of precision at
        the correct predictions, divided by the number of queries that have a class; NaN if no query has a class.

    Raises
    ------
    InputError
        If columns differ in shape, scores are NaN, values are masked or missing, ids are of mixed types, or a query has
        two predictions.
    """
    if len(predictions) != 3:
        raise InputError(f"expected three columns, not {len(predictions)}", source="predictions")
    queries = columns.identifiers(predictions[0], source="predictions", field="queries")
    classes = columns.identifiers(predictions[1], source="predictions", field="classes")
    scores = columns.numbers(predictions[2], source="predictions", field="scores")
    if not queries.shape == classes.shape == scores.shape:
        raise InputError("expected three columns of one length", source="predictions")
    if np.isnan(scores).any():
        raise InputError("a score is NaN", source="predictions", record=int(np.argmax(np.isnan(scores))))
    known, lines = np.unique(queries, return_counts=True)
    if known.size < queries.size:
        query = known[np.argmax(lines)]
        raise InputError("two predictions of one query", source="predictions", field="query", value=query.item())
    order = np.lexsort((classes, queries, -scores))
    several = (list, tuple, set, frozenset, np.ndarray)
    wanted = [list(c) if isinstance(c, several) else [] if c is None else [c] for c in truth.values()]
    asked, judged = document_ids.alike(queries[order], _keys(truth, "queries"))
    given, flat = document_ids.alike(classes[order], _keys(chain.from_iterable(wanted), "classes"))
    at = np.concatenate(([0], np.cumsum([len(classes) for classes in wanted]))).astype(int).tolist()
    sets = {query: set(flat[at[i] : at[i + 1]]) for i, query in enumerate(judged)}
    credit = [name in sets.get(query, ()) for query, name in zip(asked, given, strict=True)]
    ranks = np.flatnonzero(credit) + 1
    found = sum(bool(s) for s in sets.values())
    hits = Hits(np.array([0, ranks.size]), ranks, np.array([found]), np.array([order.size]))
    return float(hits.average_precision()[0])


def _keys(values: Iterable[Any], field: str) -> list[Any]:
    return document_ids.names(document_ids.keys(list(values), "truth", field).tolist(), "truth", field)
