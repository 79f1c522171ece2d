"""Masked, missing and huge values in what rankings are made of; and counts and means of queries that have no value."""

from __future__ import annotations

import numpy as np
import pytest

from detmap.errors import InputError
from detmap.retrieval import (
    evaluate_codes,
    evaluate_distances,
    evaluate_features,
    evaluate_landmarks,
    evaluate_rankings,
    multi_query,
)


def masked(values):
    """The values with the last one masked."""
    array = np.ma.array(values, mask=np.zeros(np.shape(values)))
    array[(-1,) * array.ndim] = np.ma.masked
    return array


DISTANCES = {
    "distances": [[0.1, 0.2], [0.2, 0.1]],
    "query_ids": [1, 2],
    "gallery_ids": [1, 2],
    "query_cameras": [0, 0],
    "gallery_cameras": [1, 1],
    "self_match": [1, 0],
}
FEATURES = {"query": [[1.0, 2], [2, 1]], "gallery": [[1.0, 2], [2, 1]], "query_ids": [1, 2], "gallery_ids": [1, 2]}
CODES = {
    "query_codes": [[0, 1], [1, 1]],
    "gallery_codes": [[0, 1], [1, 1]],
    "query_labels": [1, 2],
    "gallery_labels": [1, 2],
}
RANKINGS = {"rankings": np.array([[1, 2], [2, 1]]), "query_ids": np.array([1, 2])}


@pytest.mark.parametrize(
    ("entry", "good", "name"),
    [
        (entry, good, name)
        for entry, good in (
            (evaluate_distances, DISTANCES),
            (evaluate_features, FEATURES),
            (evaluate_codes, CODES),
            (evaluate_codes, {**CODES, "query_labels": [[0, 1], [1, 1]], "gallery_labels": [[0, 1], [1, 1]]}),
            (evaluate_rankings, RANKINGS),
            (evaluate_rankings, {"rankings": [[1, 0], [0, 1]], "positives": np.array([1, 1])}),
            (multi_query, {"features": np.eye(2), "ids": [1, 2], "cameras": [0, 1]}),
        )
        for name in good
        if name != "rankings" or isinstance(good[name], np.ndarray)
    ],
)
def test_what_is_masked_is_no_value(entry, good, name):
    """An error names the argument; where nothing is masked, a masked array is as good as another."""
    entry(**good)
    entry(**{**good, name: np.ma.array(good[name])})
    with pytest.raises(InputError, match=rf"{name}.*masked"):
        entry(**{**good, name: masked(good[name])})


def test_what_is_masked_in_a_list_is_no_value():
    row = masked([1, 0, 1])
    with pytest.raises(InputError, match=r"rankings.*masked"):
        evaluate_rankings([[1, 0], row])
    with pytest.raises(InputError, match=r"rankings.*masked"):
        evaluate_rankings([row], relevant=[[1]])
    with pytest.raises(InputError, match=r"relevant.*masked"):
        evaluate_rankings([[1, 0]], relevant=[row])
    with pytest.raises(InputError, match=r"ignore.*masked"):
        evaluate_distances(**{**DISTANCES, "ignore": [[0], masked([1])]})
    with pytest.raises(InputError, match=r"distances.*masked"):
        evaluate_distances(**{**DISTANCES, "distances": [np.ma.array([0.1, 0.2]), masked([0.2, 0.1])]})
    with pytest.raises(InputError, match=r"ground_truth.*masked"):
        evaluate_landmarks(np.array([[0], [1]]), [{"easy": masked([0, 1]), "hard": [], "junk": []}])


def test_packed_codes_may_have_any_bits():
    """Words are no numbers: those beyond 2**53 are codes like any others, also in a masked array without masked ones."""
    words = np.array([[2**64 - 1], [2**63 + 1], [5]], np.uint64)
    wanted = dict(evaluate_codes(words, words, [1, 2, 3], [1, 2, 3]))
    assert wanted["mAP"] == 1.0
    assert dict(evaluate_codes(np.ma.array(words), words, [1, 2, 3], [1, 2, 3])) == wanted
    with pytest.raises(InputError, match=r"query_codes.*masked"):
        evaluate_codes(masked(words), words, [1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_integers_that_floats_do_not_tell_apart_are_refused(kind):
    big = np.array([[2**53 + 1, 2**53]], kind)
    with pytest.raises(InputError, match=r"distances: record 0: an integer beyond 2\*\*53.*got 9007199254740993"):
        evaluate_distances(big, [1], [2, 1])
    with pytest.raises(InputError, match=r"beyond 2\*\*53"):
        evaluate_features(big, big, [1], [2])
    assert evaluate_distances(big - kind(1), [1], [2, 1], ties="worst")["mAP"] == 1.0


def test_missing_ids_are_named():
    """A missing identity is neither junk nor somebody."""
    for missing in (np.array([1, np.nan]), [1, None], np.array([1.0, None], object), ["a", None]):
        with pytest.raises(InputError, match="gallery_ids: record 1: is missing"):
            evaluate_distances([[0.1, 0.2]], [1], missing)
        with pytest.raises(InputError, match="gallery_labels: record 1: is missing"):
            evaluate_codes([[0, 1]], [[0, 1], [1, 1]], [1], missing)
    with pytest.raises(InputError, match="gallery_cameras: record 1: is missing"):
        evaluate_distances([[0.1, 0.2]], [1], [1, 2], [0], [1, np.nan])
    assert evaluate_distances([[0.2, 0.1]], [1.0], np.array([1.0, -1.0]))["mAP"] == 1.0


def test_ids_of_any_column():
    pandas = pytest.importorskip("pandas")
    for ids in (
        pandas.Series(["b", "a"]),
        pandas.Series(["b", "a"], dtype="category"),
        np.array([b"b", b"a"]),
        np.array(["b", "a"], object),
    ):
        assert evaluate_distances([[0.2, 0.1]], ["a"], ids)["mAP"] == 1.0
        assert evaluate_codes([[0, 1]], [[1, 1], [0, 1]], ["a"], ids)["mAP"] == 1.0


@pytest.mark.parametrize("several", [[0, 1, 0, 1], [3, 5, 3, 5]])
def test_a_column_of_labels_holds_a_label_each(several):
    """Class 0 is a class: a single column is no row of flags."""
    codes = np.random.default_rng(0).integers(0, 2, (4, 16))
    wanted = dict(evaluate_codes(codes[:2], codes, several[:2], several))
    column = np.array(several)[:, None]
    assert dict(evaluate_codes(codes[:2], codes, column[:2], column)) == wanted
    assert dict(evaluate_codes(codes[:2], codes, several[:2], column)) == wanted


@pytest.mark.parametrize("convention", ["cuhk03", "cuhk03_exact", "sysu", "reid", "layumi"])
def test_a_gallery_of_junk_has_no_match(convention):
    for ids, match in (([-1, -1, -1], "every item of the gallery is junk"), ([8, -1, 8], "nothing in common")):
        with pytest.raises(InputError, match=f"no query has a relevant item: .*{match}"):
            evaluate_distances([[0.1, 0.2, 0.3]], [7], ids, convention=convention)
        with pytest.raises(InputError, match=match):
            evaluate_features([[0.1]], [[0.1], [0.2], [0.3]], [7], ids, convention=convention)


def random_codes(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (9, 20)), rng.integers(0, 2, (50, 20))
    return (*codes, [*rng.integers(0, 7, 8), 9], rng.integers(0, 4, 50))  # the last query has no relevant item


@pytest.mark.parametrize("empty", ["skip", "zero", "one", "nan"])
@pytest.mark.parametrize("convention", ["hits_topk", "hashnet", "trec"])
def test_curves_by_radius_are_the_metrics_by_radius(empty, convention):
    """A query without relevant items counts in both as the convention has it."""
    for seed in range(4):
        names = [f"{name}(radius={r})" for r in (0, 2, 5, 9, 20) for name in "PR"]
        result = evaluate_codes(*random_codes(seed), metrics=names, convention=convention, empty=empty)
        assert result.queries["empty"] > 0
        apart = evaluate_codes(*random_codes(seed), metrics=["mAP"], convention=convention, empty=empty)
        for name in names:
            radius = int(name[9:-1])
            values, others = ((r.radius_precision, r.radius_recall)[name[0] == "R"][radius] for r in (result, apart))
            assert np.array_equal(values, result[name], equal_nan=True)
            assert np.allclose(others, result[name], rtol=1e-14, atol=0, equal_nan=True)  # summed in another order


def test_queries_that_are_left_out_are_not_scored():
    """hashnet leaves out the queries without a hit in the top k; they have relevant items, and are no empty ones."""
    codes = np.array([[0, 0], [1, 1]]), np.array([[0, 0], [1, 1], [1, 0]])
    result = evaluate_codes(*codes, [1, 2], [1, 3, 2], 1, convention="hashnet")
    assert result["mAP@1"] == 1.0
    assert result.queries == {"scored": 1, "empty": 0, "missing": 0, "extra": 0, "without hits": 1}
    assert "1 scored, 1 without hits" in result.describe()
    result = evaluate_codes(*codes, [1, 9], [1, 3, 2], 1, convention="hashnet")
    assert result.queries == {"scored": 1, "empty": 1, "missing": 0, "extra": 0}
    result = evaluate_codes(*codes, [1, 2], [1, 3, 2], 1, convention="hits_topk")
    assert result.queries == {"scored": 2, "empty": 0, "missing": 0, "extra": 0}
    result = evaluate_codes(*codes, [1, 2], [1, 3, 2], convention="hashnet", metrics="P@1")
    assert result.queries["scored"] == 2
