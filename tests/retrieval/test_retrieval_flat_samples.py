"""Samples of many queries in flat columns: batches, merges and states, and that they equal a run with its judgements."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from detmap.errors import InputError, OptionError, StateError
from detmap.retrieval import Evaluator, evaluate_run

METRICS = ["mAP", "mAP@3", "MRR", "P@2", "nDCG", "success@1"]


def drawn(seed, count=80):
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 9, count) / 8, rng.integers(0, 3, count), rng.integers(0, 7, count)


def fed(batches, **options):
    evaluator = Evaluator(metrics=METRICS, **options)
    for each in batches:
        evaluator.update(*each)
    return evaluator


@pytest.mark.parametrize("seed", range(4))
def test_batches_merges_and_states_change_no_bit(seed):
    data = drawn(seed)
    queries = data[2]
    run = {f"{q}": {} for q in np.unique(queries)}
    qrels = {f"{q}": {} for q in np.unique(queries)}
    for place, (score, grade, query) in enumerate(zip(*data, strict=True)):
        run[f"{query}"][f"{place}"], qrels[f"{query}"][f"{place}"] = float(score), int(grade)
    wanted = evaluate_run(qrels, run, METRICS, "torchmetrics")
    parts = [[column[a:b] for column in data] for a, b in ((0, 30), (30, 30), (30, 80))]
    whole, first, second = fed([data]), fed(parts[:1]), fed(parts[1:])
    restored = Evaluator.from_bytes(first.to_bytes())
    loaded = fed([])
    loaded.load_state_dict(first.state_dict())
    for evaluator in (whole, fed(parts), first.merge(second), restored.merge(second), loaded.merge(second)):
        found = pickle.loads(pickle.dumps(evaluator)).compute()
        assert dict(found) == dict(wanted)
        assert found.query_ids.tolist() == list(map(int, wanted.query_ids))
        assert len(evaluator) == len(run)
        assert dict(Evaluator.from_bytes(evaluator.to_bytes()).compute()) == dict(wanted)


def test_matrices_booleans_and_no_relevant_sample():
    evaluator = fed([(np.ones((2, 2)), np.zeros((2, 2), bool), [[5, 5], [6, 6]])])
    assert dict(evaluator.compute()) == dict.fromkeys(METRICS, 0.0)
    with pytest.raises(InputError, match="relevant"):
        fed([([0.5], [0], [1])], empty="error").compute()


def test_what_is_refused():
    evaluator = fed([])
    with pytest.raises(InputError, match="no query was seen"):
        evaluator.compute()
    for given, error, message in [
        (([0.5], [1]), OptionError, "give preds, target and indexes"),
        (([0.5], [1], [1, 2]), InputError, "of one shape"),
        (([np.nan], [1], [1]), InputError, "a score is NaN"),
        (([0.5], [np.nan], [1]), InputError, "a grade must be"),
        (([0.5], [1], [1.0]), InputError, "must be integers"),
    ]:
        with pytest.raises(error, match=message):
            evaluator.update(*given)
    with pytest.raises(OptionError, match="needs qrels or gallery_ids"):
        evaluator.update(query_ids=[1], distances=[[1.0]])
    with pytest.raises(OptionError, match="and nothing else"):
        evaluator.update([0.5], [1], [1], names=["a"])
    with pytest.raises(OptionError, match="neither qrels nor gallery_ids"):
        Evaluator(gallery_ids=[1]).update([0.5], [1], [1])
    with pytest.raises(StateError, match="different conventions"):
        evaluator.merge(Evaluator(gallery_ids=[1]))
    state = fed([drawn(0)]).to_bytes()
    with pytest.raises(StateError):
        Evaluator.from_bytes(state[:-8])
