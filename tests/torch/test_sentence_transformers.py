"""sentence-transformers' evaluator beside its subclass: the same names and numbers, ties included."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("sentence_transformers")
from detmap.errors import InputError
from detmap.integrations.sentence_transformers import InformationRetrievalEvaluator as Ours

(Theirs,) = Ours.__bases__


def arguments(rng, queries=12, corpus=40):
    names = [f"d{i}" for i in rng.permutation(corpus)]
    relevant = {
        f"q{i}": {str(one) for one in rng.choice(names, rng.integers(0, 6), replace=False)} for i in range(queries)
    }
    relevant["q1"] = {"d3", "not in the corpus"}
    options = {"mrr_at_k": [3, 10], "ndcg_at_k": [1, 10], "map_at_k": [2, 100], "write_csv": False}
    return ({f"q{i}": "" for i in range(queries)}, dict.fromkeys(names, ""), relevant), options


def close(found, wanted):
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        assert found[name] == pytest.approx(values, rel=1e-14, abs=1e-15), name


@pytest.mark.parametrize("seed", range(8))
def test_the_same_names_and_numbers(seed):
    rng = np.random.default_rng(seed)
    given, options = arguments(rng)
    theirs, ours = Theirs(*given, **options), Ours(*given, **options)
    scores = torch.from_numpy(rng.integers(0, 4 if seed % 2 else 1 << 30, (len(ours.queries_ids), 40)) / 4)
    kept, places = torch.topk(scores, 40)
    lists = [
        [{"corpus_id": ours.corpus_ids[place], "score": score} for place, score in zip(row, values, strict=True)]
        for row, values in zip(places.tolist(), kept.tolist(), strict=True)
    ]
    wanted = theirs.compute_metrics(lists)
    close(ours.compute_metrics(lists), wanted)
    close(ours.compute_metrics_of_top_k(kept, places), wanted)
    padded = torch.cat((places, torch.full((len(places), 2), -1)), 1)
    close(ours.compute_metrics_of_top_k(torch.cat((kept, torch.zeros(len(kept), 2)), 1), padded), wanted)


class Model:
    """As much of a model as the evaluator asks for."""

    similarity_fn_name = "dot"

    def __init__(self, rng):
        self.made = {}
        self.rng = rng

    def encode_query(self, texts, **options):
        return self.made.setdefault(len(texts), torch.from_numpy(self.rng.integers(0, 3, (len(texts), 4)) / 2))

    encode_document = encode_query

    def similarity(self, a, b):
        return a @ b.T


def test_a_model_is_evaluated():
    given, options = arguments(np.random.default_rng(3))
    model = Model(np.random.default_rng(4))
    functions = {"dot": model.similarity}
    theirs, ours = (kind(*given, **options, score_functions=functions) for kind in (Theirs, Ours))
    close(ours.compute_all_metrics(model)["dot"], theirs.compute_all_metrics(model)["dot"])


def test_places_outside_of_the_corpus():
    given, options = arguments(np.random.default_rng(5))
    ours = Ours(*given, **options)
    count = len(ours.queries_ids)
    with pytest.raises(InputError, match="places must be from -1 to 39"):
        ours.compute_metrics_of_top_k(np.zeros((count, 1)), np.full((count, 1), 40))
    with pytest.raises(InputError, match="expected a row for each"):
        ours.compute_metrics_of_top_k(np.zeros((1, 1)), np.zeros((1, 1), int))
    with pytest.raises(InputError, match="there twice"):
        ours.compute_metrics_of_top_k(np.zeros((count, 2)), np.zeros((count, 2), int))
