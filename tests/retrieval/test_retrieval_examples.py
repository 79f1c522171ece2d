"""The worked examples of the conventions, as exact fractions; pictures of textbooks and the documents of other projects."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import detmap
from detmap.hits import Hits
from detmap.retrieval import (
    average_precision_score,
    evaluate_codes,
    evaluate_distances,
    evaluate_rankings,
    global_average_precision,
)

EXACT = 1e-15


def exactly(text):
    return pytest.approx(float(Fraction(text)), abs=EXACT, rel=0)


def all_exactly(texts):
    return [exactly(text) for text in texts]


def test_rankings():
    assert evaluate_rankings([[1, 0, 0, 1, 1]], metrics="mAP")["mAP"] == exactly("7/10")
    assert evaluate_rankings([[1, 1, 1]], 3, metrics="mAP")["mAP"] == 1
    picture = np.zeros((1, 12), bool)
    picture[0, np.array([1, 3, 6, 9, 10]) - 1] = True
    result = evaluate_rankings(picture, 9, metrics="mAP@10", normalizer="hits")
    assert result["mAP@10"] == exactly("28/45")
    voc = [[1, 0, 1, 0, 0, 1, 0]]
    metrics = ["mAP(11-point)", "mAP(all-point)"]
    assert list(evaluate_rankings(voc, metrics=metrics).values()) == all_exactly(["8/11", "13/18"])


REID = {
    "s1_red": [0, 1, 1, 1, 0],
    "s1_green": [1, 0, 0, 1, 1],
    "s2_red": [1, 0, 1, 1, 0],
    "s2_green": [0, 1, 1, 1, 0],
}
REID_VALUES = {
    ("trapezoid", "positives"): ["37/120", "59/150", "11/24", "37/120"],
    ("step", "positives"): ["23/60", "21/50", "29/60", "23/60"],
    ("step", "hits"): ["23/36", "7/10", "29/36", "23/36"],
}


@pytest.mark.parametrize(("rule", "values"), REID_VALUES.items())
def test_reid_rankings(rule, values):
    interpolation, normalizer = rule
    result = evaluate_rankings(
        list(REID.values()),
        5,
        metrics=["mAP", "CMC@1", "CMC@2", "CMC@5"],
        interpolation=interpolation,
        normalizer=normalizer,
    )
    assert result.per_query["AP"].tolist() == all_exactly(values)
    assert result.cmc.tolist() == [0.5, 1, 1, 1, 1]
    first, second = (Fraction(values[i]) + Fraction(values[i + 1]) for i in (0, 2))
    assert result["mAP"] == exactly(str((first + second) / 4))


def test_reid_means():
    for pair, step, trapezoid in (
        (("s1_red", "s1_green"), "241/600", "421/1200"),
        (("s2_red", "s2_green"), "13/30", "23/60"),
    ):
        result = evaluate_rankings([REID[name] for name in pair], 5, metrics=["mAP", "mAP(trapezoid)"])
        assert list(result.values()) == all_exactly([step, trapezoid])


def test_reid_true_counts_through_distances():
    # the galleries themselves: four red and five green people; the others of each query behind the five that are shown
    for session, wanted in (("s1", ["37/96", "59/150", "623/1600"]), ("s2", ["55/96", "37/120", "141/320"])):
        flags = [REID[f"{session}_red"], REID[f"{session}_green"]]
        result = evaluate_rankings(flags, [4, 5], metrics="mAP", convention="oxford")
        assert [*result.per_query["AP"], result["mAP"]] == all_exactly(wanted)


def test_trapezoid_reads_the_rank_before():
    flags = [[1, 0, 1]]
    assert evaluate_rankings(flags, metrics="mAP(trapezoid)")["mAP(trapezoid)"] == exactly("19/24")
    assert evaluate_rankings(flags, metrics="mAP", convention="trapezoid_hits")["mAP"] == exactly("11/12")
    assert Hits.from_ranks([[1, 3]]).average_precision("trapezoid").tolist() == [exactly("19/24")]


def test_rank_n():
    rankings = [[1], [0, 1], [0, 0, 0, 0, 1]]
    result = evaluate_rankings(rankings, metrics=["rank-1", "rank-2", "rank-5", "mINP"])
    columns = [result.per_query[name].tolist() for name in ("CMC@1", "CMC@2", "CMC@5")]
    assert [list(row) for row in zip(*columns, strict=True)] == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert result.per_query["INP"].tolist() == [1, 1 / 2, 1 / 5]


QUERY_CODES = [[1, -1, 1, 1], [-1, 1, -1, -1], [1, -1, -1, -1]]
GALLERY_CODES = [
    [1, -1, -1, -1],
    [-1, 1, 1, -1],
    [1, 1, 1, -1],
    [-1, -1, 1, 1],
    [1, 1, -1, -1],
    [1, 1, 1, -1],
    [-1, 1, -1, -1],
]
QUERY_LABELS = [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
GALLERY_LABELS = [[0, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 1, 0]]
HASHING = (QUERY_CODES, GALLERY_CODES, QUERY_LABELS, GALLERY_LABELS)


def test_hashing():
    top = evaluate_codes(*HASHING, k=5)
    assert top.per_query["AP@5"].tolist() == all_exactly(["11/30", "1", "5/12"])
    assert [top["mAP@5"], top["P@5"]] == all_exactly(["107/180", "3/5"])
    whole = evaluate_codes(*HASHING)
    assert whole.per_query["AP"].tolist() == all_exactly(["122/315", "1", "53/126"])
    assert whole["mAP"] == exactly("1139/1890")
    assert "ties index" in str(whole)
    by_positives = evaluate_codes(*HASHING, k=5, normalizer="positives")
    assert by_positives.per_query["AP@5"].tolist() == all_exactly(["11/45", "1", "5/18"])
    expected = evaluate_codes(*HASHING, ties="expected", metrics=["AP", "AP@5"])
    assert expected.per_query["AP"].tolist() == all_exactly(["1457/3780", "217/225", "379/945"])
    assert expected.per_query["AP@5"][0] == exactly("89/240")
    collapsed = evaluate_codes(*HASHING, ties="collapsed", metrics="AP")
    assert collapsed.per_query["AP"].tolist() == all_exactly(["85/252", "14/15", "43/105"])


def test_hashing_within_a_radius():
    """Of 4, 6 and 5 items within two bits 1, 5 and 2 are relevant, of 3, 5 and 3."""
    result = evaluate_codes(*HASHING, metrics=["P(radius=2)", "R(radius=2)"])
    assert result.per_query["P(radius=2)"].tolist() == all_exactly(["1/4", "5/6", "2/5"])
    assert result.per_query["R(radius=2)"].tolist() == all_exactly(["1/3", "1", "2/3"])


def test_equal_distances_rank_by_index():
    result = evaluate_distances([[1.0, 1.0, 0.0, 1.0]], [1], [1, 1, 0, 1], junk_id=None, metrics=["AP"])
    assert result.hits.ranks.tolist() == [2, 3, 4]
    assert result.per_query["AP"].tolist() == [exactly(str((Fraction(1, 2) + Fraction(2, 3) + Fraction(3, 4)) / 3))]


def test_hashing_from_distances_is_the_same():
    hamming = [[2, 3, 2, 1, 3, 2, 4], [2, 1, 2, 3, 1, 2, 0], [0, 3, 2, 3, 1, 2, 2]]
    result = evaluate_codes(*HASHING, metrics="AP")
    for q, row in enumerate(hamming):
        related = [int(np.dot(QUERY_LABELS[q], labels) > 0) for labels in GALLERY_LABELS]
        alone = evaluate_distances([row], [1], related, junk_id=None)
        assert alone["mAP"] == result.per_query["AP"][q]


def test_classification():
    truth, scores = [0, 0, 1, 1], [0.4, 0.1, 0.8, 0.35]
    assert average_precision_score is detmap.average_precision_score
    assert average_precision_score(truth, scores) == exactly("5/6")
    assert average_precision_score(truth, scores, interpolation="11-point") == exactly("28/33")
    assert average_precision_score(truth, scores, thresholds=np.linspace(0, 1, 11)) == exactly("5/6")
    truth = [[0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 1, 0]]
    scores = [[0.1, 0.8, 0.3], [0.9, 0.7, 0.5], [0.2, 0.1, 0.9], [0.1, 0.8, 0.6]]
    assert average_precision_score(truth, scores, average=None).tolist() == all_exactly(["3/4", "1", "1"])
    for average, value in {"macro": "11/12", "weighted": "13/14", "micro": "37/42", "samples": "11/12"}.items():
        assert average_precision_score(truth, scores, average=average) == exactly(value)
    weighted = average_precision_score([1, 0, 0, 1], [0.5, 0.4, 0.3, 0.1], sample_weight=[2, 0.5, 1, 1])
    assert weighted == exactly("8/9")


def test_global_average_precision():
    # DELF's docstring: right at 0.9, wrong at 0.8, a distractor at 0.7, right at 0.6; one query without a prediction
    predictions = (["a", "b", "x", "c"], [1, 2, 5, 3], [0.9, 0.8, 0.7, 0.6])
    truth = {"a": 1, "b": 7, "c": [3, 4], "d": 9, "x": None}
    assert global_average_precision(predictions, truth) == exactly(str((1 + Fraction(2, 4)) / 4))


def test_kaggle_duplicates_keep_their_rank():
    result = evaluate_rankings(
        [["b", "b", "a"], ["z"]], relevant=[{"a", "b"}, set()], convention="kaggle", metrics=["mAP@3"]
    )
    assert result.per_query["AP@3"].tolist() == [exactly(str((1 + Fraction(2, 3)) / 2)), 0]
    ones = evaluate_rankings([["b"], ["z"]], relevant=[{"b"}, set()], convention="kaggle", empty="one", metrics="mAP@3")
    assert ones["mAP@3"] == 1


def test_ranked_identities_and_grades():
    result = evaluate_rankings([[7, 1, 7], [2, 2, 1]], query_ids=[7, 1], metrics=["mAP", "map@2"])
    assert result.per_query["AP"].tolist() == [exactly("5/6"), exactly("1/3")]
    curve = result.curve(0)
    assert (curve.precision.tolist(), curve.recall.tolist()) == ([1, 0.5, 2 / 3], [0.5, 0.5, 1])
    graded = evaluate_rankings([[3, 0, -1, 2]], metrics=["nDCG(exp)", "bpref", "ERR"])
    best = 7 + 3 / np.log2(3)
    assert graded["nDCG(exp)"] == pytest.approx((7 + 3 / np.log2(5)) / best, abs=EXACT)
    assert graded["bpref"] == 0.5
    assert graded["ERR"] == exactly(str(Fraction(7, 8) + Fraction(1, 8) * Fraction(3, 8) / 4))
