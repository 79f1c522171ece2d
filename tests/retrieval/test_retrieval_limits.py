"""Rankings at the edges of what can be scored: what has no value is refused by name, what is large stays exact."""

from __future__ import annotations

import copy
import pickle

import naive_retrieval as naive
import numpy as np
import pytest

from detmap.errors import InputError, OptionError
from detmap.retrieval import (
    average_precision_score,
    evaluate_codes,
    evaluate_distances,
    evaluate_features,
    evaluate_landmarks,
    evaluate_rankings,
    evaluate_run,
    global_average_precision,
)

R = [[0, 1, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("ties", ["expected", "collapsed", "best", "worst", "reversed"])
@pytest.mark.parametrize("metric", ["RR", "AP", "P@2", "CMC@1", "nDCG"])
def test_tie_rules_need_the_bounds_of_the_groups(ties, metric):
    with pytest.raises(OptionError, match="needs scores"):
        evaluate_rankings(R, ties=ties, metrics=[metric])
    with pytest.raises(OptionError, match="needs scores"):
        evaluate_landmarks([[0], [1]], [{"easy": [1]}], ties=ties, metrics=[metric])


@pytest.mark.parametrize(
    ("convention", "twin"), [("cuhk03_exact", naive.cuhk03_exact_cmc), ("sysu", naive.sysu_cmc), ("cuhk03", None)]
)
def test_cmc_of_identities_goes_as_deep_as_asked(convention, twin):
    people = np.arange(130)
    distances = np.arange(130.0)[None, :]
    data = (distances, [120], people, [0], np.ones(130, int))
    result = evaluate_distances(*data, convention=convention, metrics=["CMC@100", "CMC@120", "CMC@121", "CMC@999"])
    assert list(result.values()) == [0, 0, 1, 1]
    assert result.cmc.size == 130
    if twin is not None:
        assert np.array_equal(result.cmc, [float(v) for v in twin(*data, topk=130)])


@pytest.mark.parametrize("convention", ["cuhk03", "cuhk03_exact", "sysu"])
def test_cmc_of_identities_refuses_tie_rules_and_empty_galleries(convention):
    for ties in ("reversed", "best", "worst", "collapsed", "expected"):
        with pytest.raises(OptionError, match="ties='index'"):
            evaluate_distances([[0.0, 1]], [1], [1, 2], convention=convention, ties=ties, metrics=["CMC@1"])
    with pytest.raises(InputError, match="is empty"):
        evaluate_distances(np.zeros((2, 0)), [1, 2], np.zeros(0, int), convention=convention)


@pytest.mark.compiled  # wrap-around multiplication
def test_draws_are_counted_before_they_are_divided():
    result = evaluate_distances([[0.0, 1, 2]], [5], [5, 6, 7], convention="cuhk03", metrics=["CMC@1"])
    assert result["CMC@1"] == 1.0


def test_sysu_needs_numbered_cameras():
    with pytest.raises(InputError, match="knows its cameras by number"):
        evaluate_distances([[0.0, 1]], [1], [1, 2], ["c3"], ["c2", "c1"], convention="sysu")


def test_distractors_leave_the_numbers_and_go_once():
    rng = np.random.default_rng(8)
    distances = rng.integers(0, 9, (7, 60)).astype(np.float32)
    ids, theirs = rng.integers(0, 4, 7), rng.integers(-1, 4, 60)
    theirs[rng.random(60) < 0.5] = -1
    cameras = rng.integers(0, 2, 7), rng.integers(0, 2, 60)
    metrics = ["mAP", "mINP", "CMC@1", "TPR@FPR=0.1"]
    whole = evaluate_distances(distances, ids, theirs, *cameras, metrics=metrics)
    kept = theirs != -1
    less = evaluate_distances(distances[:, kept], ids, theirs[kept], cameras[0], cameras[1][kept], metrics=metrics)
    assert dict(whole) == dict(less)
    assert whole.junk == less.junk + 7 * int((~kept).sum())
    ignore = [rng.choice(60, 8, replace=False) for _ in range(7)]
    whole = evaluate_distances(distances, ids, theirs, *cameras, ignore=ignore)
    all_ignored = [np.union1d(row, np.flatnonzero(~kept)) for row in ignore]
    same = evaluate_distances(distances, ids, theirs, *cameras, ignore=all_ignored, junk_id=None)
    assert dict(whole) == dict(same)
    assert whole.junk == same.junk
    features = rng.integers(-3, 4, (7, 3)).astype(float), rng.integers(-3, 4, (60, 3)).astype(float)
    assert dict(evaluate_features(*features, ids, theirs)) == dict(
        evaluate_features(features[0], features[1][kept], ids, theirs[kept])
    )


def test_junk_identity_may_be_a_string_and_must_fit():
    with_junk = evaluate_distances([[0.0, 1, 2]], ["a"], ["x", "a", "b"], junk_id="x")
    assert with_junk["mAP"] == 1.0
    assert evaluate_distances([[0.0, 1, 2]], ["a"], ["x", "a", "b"])["mAP"] == 0.5
    with pytest.raises(OptionError, match="gallery_ids are not"):
        evaluate_distances([[0.0, 1]], [1], [1, 2], junk_id="x")


def test_blocks_are_bounded_by_what_the_queries_bring(monkeypatch):
    rng = np.random.default_rng(9)
    features = rng.normal(size=(40, 4)), rng.normal(size=(60, 4))
    ids, cameras = (rng.integers(0, 2, 40), rng.integers(0, 2, 60)), (rng.integers(2, 4, 40), rng.integers(1, 4, 60))
    for convention in ("reid", "sysu", "cuhk03_exact"):
        metrics = ["mAP", "CMC@1", "TPR@FPR=0.1"]
        wanted = evaluate_features(*features, *ids, *cameras, convention=convention, metrics=metrics)
        with monkeypatch.context() as patch:
            patch.setattr("detmap.retrieval.galleries._BLOCK_ITEMS", 50)
            again = evaluate_features(*features, *ids, *cameras, convention=convention, metrics=metrics)
        assert dict(again) == dict(wanted)
        assert again.junk == wanted.junk


@pytest.mark.parametrize(
    ("ranks", "truth", "message"),
    [
        ([[0], [0]], [{"easy": [0]}], "ranked twice"),
        ([[0], [-1]], [{"easy": [0]}], "negative item"),
        (np.zeros((2, 0), int), [], "no queries"),
        ([[0], [1]], [{"esay": [0]}], "none of easy, hard, junk"),
        ([[0], [1]], [{"easy": ["a"]}], "expected item numbers"),
        ([[0], [1]], [{"easy": [-1]}], "expected item numbers"),
        ([[0], [1]], [{"easy": [0], "junk": [0]}], "both relevant and junk"),
        ([[0], [1]], [{"junk": [0]}], "no query has an easy or a hard item"),
        ([[0], [1]], [5], "expected a dict"),
    ],
)
def test_landmarks_refuse(ranks, truth, message):
    with pytest.raises(InputError, match=message):
        evaluate_landmarks(ranks, truth)


def test_landmarks_without_hard_items_and_with_huge_numbers():
    results = evaluate_landmarks([[2**62], [1], [0]], [{"easy": [2**62, 0], "hard": [], "junk": [1]}])
    assert set(results) == {"easy", "medium"}
    assert results["easy"]["mAP"] == results["medium"]["mAP"] == 1.0


def test_depths_and_rates_keep_their_digits():
    result = evaluate_rankings(R, metrics=["P@1000001", "P@1000002", "nDCG@1000003"])
    assert list(result) == ["P@1000001", "P@1000002", "nDCG@1000003"]
    for name in ("mAP@9223372036854775807", "nDCG@99999999999999999999"):
        with pytest.raises(OptionError, match=r"at most 2 \*\* 53"):
            evaluate_rankings(R, metrics=[name])
    found = evaluate_distances([[0.0, 1]], [1], [1, 2], metrics=["TPR@FPR=0.001"])
    assert found["TPR@FPR=1e-3"] == found["TPR@FPR=0.001"]


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("RBP(p=5)", "p must be"),
        ("RBP(p=1)", "p must be"),
        ("RBP(p=1..2)", "holds no number"),
        ("ERR(max=2)", "from 3, the highest grade"),
        ("ERR(max=1001)", "to 1000"),
        ("P(radius=-1)", "not negative"),
        ("R(radius=-0.5)", "not negative"),
    ],
)
def test_options_of_metrics_have_bounds(metric, message):
    with pytest.raises(OptionError, match=message):
        evaluate_rankings([[0, 3, 1]], metrics=[metric])


def test_exponential_gains_do_not_overflow():
    with pytest.raises(InputError, match="grades up to 1000"):
        evaluate_rankings([[1001, 0, 1]], metrics=["nDCG(exp)"])
    assert evaluate_rankings([[1000, 0, 1]], metrics=["nDCG(exp)"])["nDCG(exp)"] == 1.0


def test_a_query_is_predicted_once():
    with pytest.raises(InputError, match="two predictions of one query"):
        global_average_precision(([1, 1], [7, 7], [0.9, 0.8]), {1: 7})


def test_samples_refuse_what_has_no_value():
    with pytest.raises(InputError, match="finite"):
        average_precision_score([0, 1], [0.1, 0.2], thresholds=[-np.inf])
    with pytest.raises(InputError, match="all weights are 0"):
        average_precision_score([0, 1], [0.1, 0.2], sample_weight=[0, 0])
    with pytest.raises(InputError, match="expected numbers"):
        average_precision_score([0, 1], [0.1, 0.2], sample_weight=["a", "b"])
    with pytest.raises(OptionError, match="multiclass"):
        average_precision_score([0, 1, 2], np.eye(3), pos_label=2)


def test_integers_beyond_int64_are_refused():
    big = np.array([2**63 + 1, 1], np.uint64)
    with pytest.raises(InputError, match="beyond 64 bits"):
        evaluate_distances([[0.0, 1]], [1], big)
    with pytest.raises(InputError, match="beyond 64 bits"):
        evaluate_distances([[0.0, 1]], [1], [1, 2], np.array([2**64 - 1], np.uint64), [-1, 0])
    with pytest.raises(InputError, match="beyond 64 bits"):
        evaluate_codes([[0, 1]], [[0, 1], [1, 1]], [1], big)


def test_wide_features_are_multiplied_in_double_precision():
    query, gallery = np.array([[1.0, 0]]), np.array([[1.0 + 1e-12, 0], [1.0, 0]])
    for kind in (">f8", np.longdouble, "<f8"):
        result = evaluate_features(query.astype(kind) * 1e6, gallery.astype(kind) * 1e6, [2], [1, 2], metric="dot")
        assert result["mAP"] == 0.5


def test_codes_have_at_most_so_many_bits():
    with pytest.raises(InputError, match="at most 65534 bits"):
        evaluate_codes(np.zeros((1, 65536), bool), np.zeros((1, 65536), bool), [1], [1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metrics": 5}, "must be names"),
        ({"metrics": []}, "holds no name"),
        ({"ignore": 5}, "a list of item numbers"),
        ({"ignore": [[[0], [0, 1]]]}, "rows of one length"),
        ({"distances": [[0, 1], [1]]}, "rows of one length"),
        ({"seed": "a"}, "seed must be"),
        ({"seed": 2**70}, "seed must be"),
        ({"digits": "x"}, "digits must be"),
    ],
)
def test_arguments_of_another_kind(change, message):
    given = {"distances": [[0.0, 1]], "query_ids": [1], "gallery_ids": [1, 2], **change}
    with pytest.raises((InputError, OptionError), match=message):
        evaluate_distances(**given)


def test_results_can_be_copied_and_sent():
    result = evaluate_rankings(R)
    for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert dict(other) == dict(result)
        assert np.array_equal(other.per_query["map"], result.per_query["AP"])
        assert other.curve(0).recall.tolist() == result.curve(0).recall.tolist()


def test_ids_as_pandas_keeps_them():
    ids = np.array(["b", "a"], dtype=object)
    assert evaluate_distances([[0.0, 1]], np.array(["a"], object), ids)["mAP"] == 0.5


def test_many_positives_are_no_memory():
    result = evaluate_rankings([[1, 0]], positives=2**62, metrics=["R@2", "AP"])
    assert result["R@2"] == 2.0**-62
    for metric in ("nDCG", "RBP"):
        with pytest.raises(InputError, match="leave out nDCG"):
            evaluate_rankings([[1, 0]], positives=2**62, metrics=[metric])


def test_ids_of_queries_as_an_array():
    assert evaluate_rankings([[1, 2], [2, 1]], query_ids=np.array([1, 1]))["mAP"] == 0.75
    with pytest.raises(InputError, match="query_ids: 1 for 2 rankings"):
        evaluate_rankings([[1, 2], [2, 1]], query_ids=np.array([1]))
    for options in ({"query_ids": 5}, {"relevant": [5]}, {"relevant": [[[1]]]}, {"positives": [[1], [1, 2]]}):
        with pytest.raises(InputError):
            evaluate_rankings([[1, 2]], **options)
    for rankings in (5, [[[1], [1, 2]]]):
        with pytest.raises(InputError):
            evaluate_rankings(rankings)


def test_grades_have_32_bits():
    for grade in (2**40, -(2**40)):
        with pytest.raises(InputError, match="a grade must be"):
            evaluate_rankings([[grade, 0, 1]])
        with pytest.raises(InputError, match="a grade must be"):
            evaluate_run({"q": {"d": grade}}, {"q": {"d": 1.0}})
        with pytest.raises(InputError, match="a grade must be"):
            evaluate_run(b"q 0 d %d\n" % grade, b"q Q0 d 1 1.0 x\n")


def test_runs_with_integers_beyond_int64_and_bounds():
    big = np.array([2**63, 2**63 + 1], np.uint64)
    with pytest.raises(InputError, match="an id is beyond 64 bits"):
        evaluate_run(([1, 1], big, [1, 0]), ([1, 1], big, [0.5, 0.7]))
    for options in ({"level": 2**70}, {"depth": 2**70}):
        with pytest.raises(OptionError, match="2 \\*\\* "):
            evaluate_run({"q": {"d": 1}}, {"q": {"d": 1.0}}, **options)


@pytest.mark.parametrize("scanned", [False, True])
def test_long_ids_are_refused_by_line_and_a_mark_is_skipped(monkeypatch, scanned):
    if scanned:
        monkeypatch.setattr("detmap.formats.trec._WORTH_SCANNING", 0)
    qrels = b"\xef\xbb\xbfq 0 d 1\nq 0 e 0\n"
    run = b"\xef\xbb\xbfq Q0 d 1 1.0 x\n"
    assert evaluate_run(qrels, run)["mAP"] == 1.0
    with pytest.raises(InputError, match="run:2: an id has more than 1024 bytes"):
        evaluate_run(qrels, run + b"q Q0 " + b"e" * 1025 + b" 2 0.5 x\n")
    with pytest.raises(InputError, match="qrels:3: an id has more than 1024 bytes"):
        evaluate_run(qrels + b"p" * 1025 + b" 0 d 1\n", run)
    with pytest.raises(InputError, match="an id has more than 1024 bytes"):
        evaluate_run(([1], ["d"], [1]), ([1, 1], ["d", "e" * 1025], [1.0, 2.0]))


def test_options_of_a_metric_come_in_any_order():
    data = ([[0.0, 1]], [1], [2, 1])
    assert evaluate_distances(*data, metrics=["AP(step,hits)"])["AP(hits,step)"] == 0.5
    with pytest.raises(OptionError, match="unknown metric"):
        evaluate_rankings(R, metrics=["set_mapp"])


def test_hostile_query_ids_are_escaped_in_errors():
    name = "\x1b[31mq\n" + "x" * 10_000
    with pytest.raises(InputError) as caught:
        evaluate_run({name: {"d": 0}}, {name: {"d": 1.0}}, empty="error")
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 300


def test_only_what_an_entry_does_stands_beside_its_numbers():
    assert "missing queries zero" not in evaluate_rankings(R, convention="kaggle").describe()
    assert "order as given" not in evaluate_rankings(R, convention="kaggle").describe()
    assert "single precision" not in evaluate_distances([[0.0, 1]], [1], [1, 2], convention="trec").describe()
    assert "missing queries zero" in evaluate_run({"q": {"d": 1}}, {"q": {"d": 1.0}}, convention="kaggle").describe()
    for choice in ({"missing": "zero"}, {"order": "given"}, {"single": True}, {"drop_same_id": True}):
        with pytest.raises(OptionError, match="is for runs"):
            evaluate_rankings(R, **choice)
