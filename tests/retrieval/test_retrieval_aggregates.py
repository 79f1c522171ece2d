"""Numbers of many queries that are not means: the convention's rule for queries without relevant items holds for all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from detmap.errors import InputError
from detmap.retrieval import evaluate_rankings, evaluate_run, measures, metrics
from detmap.retrieval.ranked import GEOMETRIC, MEAN, TOTAL, Aggregate, Metric

RANKINGS = [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0], [0, 0, 1]]
AP = [(1 + 2 / 3) / 2, None, 1 / 2, None, 1 / 3]

#: Aggregates that no shipped metric has, with what makes the same of a list.
OTHERS = {
    "median": (Aggregate(lambda values: float(np.median(values))), np.median),
    "least": (Aggregate(lambda values: float(values.min())), min),
    "squares": (Aggregate(lambda values: float(np.sqrt(np.mean(values))), lambda one: one * one), None),
}


@pytest.fixture(params=OTHERS)
def other(request, monkeypatch):
    """A metric with another aggregate, under the name that a plug-in would give it."""
    aggregate, combine = OTHERS[request.param]
    of = (lambda ranked, asked: measures.average_precision(ranked, asked) ** 2) if combine is None else None
    metric = Metric("other", of or measures.average_precision, "", options=True, aggregate=aggregate)
    monkeypatch.setitem(metrics._BY_ALIAS, "other", metric)
    return combine, combine is None


@pytest.mark.parametrize("empty", ["skip", "zero", "one", "nan"])
def test_the_rule_for_empty_queries_holds_for_every_aggregate(other, empty):
    combine, squared = other
    result = evaluate_rankings(RANKINGS, metrics=["other", "AP"], empty=empty)
    instead = {"skip": math.nan, "zero": 0.0, "one": 1.0, "nan": math.nan}[empty]
    values = [instead if ap is None else ap for ap in AP]
    assert np.array_equal(result.per_query["AP"], values, equal_nan=True)
    assert np.array_equal(result.per_query["other"], np.array(values) ** (2 if squared else 1), equal_nan=True)
    kept = [value for value in values if not math.isnan(value)]
    if empty == "nan":
        assert math.isnan(result["other"])
    else:
        expected = np.sqrt(np.mean(np.array(kept) ** 2)) if combine is None else combine(kept)
        assert result["other"] == expected


def test_an_aggregate_of_no_value_is_nan_and_an_error_stays_one(other):
    with pytest.raises(InputError, match="empty='error'"):
        evaluate_rankings(RANKINGS, metrics=["other"], empty="error")
    none = evaluate_run({}, {"q": {"a": 1.0}}, ["other"], empty_input="skip", empty="skip")
    assert math.isnan(none["other"])


@pytest.mark.parametrize("empty", ["skip", "zero", "one", "nan"])
def test_geometric_means_follow_the_rule_on_their_scale_and_counts_count_all(empty):
    result = evaluate_rankings(RANKINGS, metrics=["GMAP", "num_q", "num_ret"], empty=empty)
    instead = {"skip": math.nan, "zero": math.log(1e-5), "one": 0.0, "nan": math.nan}[empty]
    logs = np.array([instead if ap is None else math.log(ap) for ap in AP])
    assert np.array_equal(result.per_query["GMAP"], logs, equal_nan=True)
    kept = logs if empty == "nan" else logs[~np.isnan(logs)]
    assert np.array_equal(result["GMAP"], np.exp(np.sum(kept) / kept.size), equal_nan=True)
    assert dict(result)["num_q"] == 5
    assert dict(result)["num_ret"] == 14


def test_the_table_has_no_aggregate_beside_those_tested():
    assert {metric.aggregate for metric in metrics.METRICS} == {MEAN, GEOMETRIC, TOTAL}
