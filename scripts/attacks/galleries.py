"""Rankings of a gallery: duplicates, layouts, padding, masks, and labels of every shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from attacks import REFUSE, Attack, Must
from attacks.arrays import Stranger


def average_precisions(distances: np.ndarray, queries: np.ndarray, gallery: np.ndarray) -> list[float]:
    """Each query's AP: ascending distance, ties by position; NaN where nothing is relevant."""
    values = []
    for row, query in zip(distances.tolist(), queries.tolist(), strict=True):
        order = sorted(range(len(row)), key=lambda i: (row[i], i))
        flags = [gallery[i] == query for i in order]
        seen, total = 0, 0.0
        for rank, flag in enumerate(flags, 1):
            if flag:
                seen += 1
                total += seen / rank
        values.append(total / seen if seen else float("nan"))
    return values


def of(result: Any, count: int, metric: str = "AP") -> list[float]:
    """detmap's AP of every query."""
    values = [float("nan")] * count
    for query, value in zip(result.query_ids.tolist(), result.per_query[metric].tolist(), strict=True):
        values[int(query)] = float(value)
    return values


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    return [distances, duplicates, neighbours, labels, codes][int(rng.integers(5))](rng)


def market(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    queries, items = int(rng.integers(1, 6)), int(rng.integers(1, 40))
    return rng.integers(0, 6, (queries, items)), rng.integers(0, 4, queries), rng.integers(0, 4, items)


def distances(rng: np.random.Generator) -> Attack:
    """A matrix in any layout and type; or one with a value that says nothing."""
    from detmap.retrieval import evaluate_distances

    matrix, queries, gallery = market(rng)
    value = average_precisions(matrix, queries, gallery)
    hopeless = bool(np.isnan(value).all())
    kinds = ["float64", "float32", "float16", "int64", "int8", "fortran", "strided", "list", "huge", "masked", "nan"]
    kind = str(rng.choice([*kinds, "complex"]))
    must, given = Must(value=value, refuse=hopeless), matrix
    if kind in ("float64", "float32", "float16", "int64", "int8"):
        given = matrix.astype(kind)
    elif kind == "fortran":
        given = np.asfortranarray(matrix.astype(float))
    elif kind == "strided":
        given = np.repeat(matrix.astype(float), 2, axis=1)[:, ::2]
    elif kind == "list":
        given = matrix.tolist()
    elif kind == "huge":
        given, must = matrix + 2**60, Must(value=value, refuse=True)
    elif kind == "masked":
        mask = np.zeros(matrix.shape, bool)
        mask[0, 0] = True
        given, must = np.ma.masked_array(matrix.astype(float), mask), REFUSE
    elif kind == "nan":
        given = matrix.astype(float)
        given[0, 0] = np.nan
        must = REFUSE
    else:
        given, must = matrix.astype(complex) + 1j, REFUSE
    return Attack(
        f"distances {kind} {matrix.tolist()} {queries} {gallery}",
        lambda: of(evaluate_distances(given, queries, gallery, metrics=["mAP"], convention="reid"), len(queries)),
        must,
    )


def duplicates(rng: np.random.Generator) -> Attack:
    """Features that occur twice tie, wherever they stand, in any layout."""
    from detmap.retrieval import evaluate_features

    items, width, queries = int(rng.integers(2, 700)), int(rng.integers(1, 70)), int(rng.integers(1, 5))
    gallery = rng.standard_normal((items, width)).astype(np.float32 if rng.random() < 0.5 else np.float64)
    asked = rng.standard_normal((queries, width)).astype(gallery.dtype)
    one, other = sorted(int(i) for i in rng.choice(items, 2, replace=False))
    gallery[other] = gallery[one]
    asked[0] = gallery[one]
    # The wrong copy comes first: the right one is found second, never first.
    ids = np.arange(10, 10 + items)
    labels = np.full(queries, ids[other])
    layout = int(rng.integers(3))
    given = [gallery, np.asfortranarray(gallery), np.repeat(gallery, 2, axis=0)[::2]][layout]
    metric = str(rng.choice(["euclidean", "sqeuclidean", "cosine", "dot"]))

    def run() -> Any:
        result = evaluate_features(asked, given, labels, ids, metric=metric, metrics=["CMC@1"], convention="reid")
        return float(result["CMC@1"])

    def plain() -> float:
        value = asked.astype(float), gallery.astype(float)
        if metric in ("euclidean", "sqeuclidean"):
            away = ((value[0][:, None] - value[1][None]) ** 2).sum(axis=2)
        else:
            if metric == "cosine":
                value = tuple(v / np.linalg.norm(v, axis=1, keepdims=True) for v in value)  # type: ignore[assignment]
            away = -(value[0] @ value[1].T)
        # Where another item is nearly as near, rounding decides: such a query says nothing.
        return float(np.min(np.abs(np.delete(away, [one, other], axis=1) - away[:, [one]]))) if items > 2 else 1.0

    if width == 1 and metric == "cosine":
        metric = "euclidean"
    return Attack(
        f"duplicates {items} x {width} {gallery.dtype} {metric}, layout {layout}, rows {one} and {other}",
        run,
        Must(value=0.0) if plain() > 1e-4 else Must(value=0.0, refuse=True),
    )


def neighbours(rng: np.random.Generator) -> Attack:
    """What an index returns, with its padding: the number of relevant items is the gallery's."""
    from detmap import retrieval

    matrix, queries, gallery = market(rng)
    k = int(rng.integers(1, matrix.shape[1] + 1))
    indices = np.argsort(matrix, axis=1, kind="stable")[:, :k]
    padded = rng.random() < 0.4
    if padded:
        indices = np.concatenate([indices, np.full((len(queries), 3), -1)], axis=1)
    values = []
    for row, query in zip(indices.tolist(), queries.tolist(), strict=True):
        seen, total = 0, 0.0
        relevant = int((gallery == query).sum())
        for rank, item in enumerate((i for i in row if i >= 0), 1):
            if gallery[item] == query:
                seen += 1
                total += seen / rank
        values.append(total / relevant if relevant else float("nan"))
    must = Must(value=values, refuse=bool(np.isnan(values).all()))
    kind = str(rng.choice(["good", "beyond", "twice", "below", "float"]))
    given: Any = indices
    if kind == "beyond":
        given = indices.copy()
        given[0, 0] = len(gallery)
        must = REFUSE
    elif kind == "below":
        given = indices.copy()
        given[0, 0] = -2
        must = REFUSE
    elif kind == "twice" and k > 1:
        given = indices.copy()
        given[0, 1] = given[0, 0]
        must = REFUSE
    elif kind == "float":
        given = indices + 0.5
        must = REFUSE

    depth = "" if k == len(gallery) else f"@{indices.shape[1]}"  # a truncated ranking says so

    def run() -> Any:
        result = retrieval.evaluate_neighbors(given, queries, gallery, metrics=[f"mAP{depth}"], convention="reid")
        return of(result, len(queries), f"AP{depth}")

    return Attack(f"neighbours {kind} padded={padded} {given.tolist()} {queries} {gallery}", run, must)


def labels(rng: np.random.Generator) -> Attack:
    """`average_precision_score` against scikit-learn."""
    from sklearn.metrics import average_precision_score as peer

    from detmap import average_precision_score

    count, classes = int(rng.integers(2, 12)), int(rng.integers(1, 4))
    shape = (count,) if rng.random() < 0.5 else (count, classes)
    truth, scores = rng.integers(0, 2, shape), rng.integers(0, 6, shape) / 4
    average = [None, "macro", "micro", "weighted", "samples"][int(rng.integers(5))]
    weights = rng.integers(1, 5, count).astype(float) if rng.random() < 0.3 else None
    spoil = rng.random() < 0.3
    given: Any = truth
    if spoil:
        given = truth.astype(float)
        given.flat[int(rng.integers(given.size))] = [np.nan, 0.5, np.inf][int(rng.integers(3))]
        must = REFUSE
    else:
        try:
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("error")
                value = peer(truth, scores, average=average, sample_weight=weights)
            must = Must(value=[round(float(v), 12) for v in np.ravel(value)])
        except (ValueError, UserWarning, RuntimeWarning):
            from attacks.documents import ANYTHING

            must = Must(value=ANYTHING, refuse=True)

    def run() -> Any:
        import warnings

        with warnings.catch_warnings():
            if must.refuse and not spoil:
                warnings.simplefilter("ignore")
            value = average_precision_score(given, scores, average=average, sample_weight=weights)
        return [round(float(v), 12) for v in np.ravel(value)]

    return Attack(f"labels {given.tolist()} {scores.tolist()} {average} {weights}", run, must)


def codes(rng: np.random.Generator) -> Attack:
    """Hash codes in every form; their ranking is that of the distances between bits, ties by position."""
    from detmap.retrieval import evaluate_codes

    _, asked, given = market(rng)
    width = int(rng.choice([1, 7, 8, 63, 64, 65, 130]))
    bits = [rng.integers(0, 2, (len(ids), width)) for ids in (asked, given)]
    away = (bits[0][:, None] != bits[1][None]).sum(axis=2)
    value = average_precisions(away, asked, given)
    must = Must(value=value, refuse=bool(np.isnan(value).all()))
    kind = str(rng.choice(["bits", "signs", "bool", "packed", "float", "masked", "half", "mixed", "stranger"]))
    forms: list[Any] = list(bits)
    if kind == "signs":
        forms = [2 * one - 1 for one in bits]
    elif kind == "bool":
        forms = [one.astype(bool) for one in bits]
    elif kind == "float":
        forms = [one.astype(np.float32) for one in bits]
    elif kind == "packed":
        forms = [words(one) for one in bits]
    elif kind != "bits":
        spoilt = 2.0 * bits[0] - 1
        spoilt[0, 0] = 0.5 if kind == "half" else -1
        forms = [spoilt, 2.0 * bits[1] - 1]
        if kind == "masked":
            forms[0] = np.ma.masked_array(spoilt, mask=spoilt == spoilt)
        elif kind == "mixed":
            forms[1] = bits[1] * 0.0
        elif kind == "stranger":
            forms[0] = Stranger(rng)
        must = REFUSE
    text = bool(rng.random() < 0.3)
    names = [np.array([f"class {one}" for one in ids]) if text else ids for ids in (asked, given)]

    def run() -> Any:
        result = evaluate_codes(*forms, *names, metrics=["mAP"], convention="detmap", ties="index")
        return of(result, len(asked))

    return Attack(f"codes {kind} of {width} bits {bits[0].tolist()} {asked} {given}", run, must)


def words(bits: np.ndarray) -> np.ndarray:
    """Pack bits into words of 64; which bit stands where does not matter, if it is the same on both sides."""
    wide = np.zeros((len(bits), -(-bits.shape[1] // 64) * 64), np.uint64)
    wide[:, : bits.shape[1]] = bits
    return (wide.reshape(len(bits), -1, 64) << np.arange(64, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)
