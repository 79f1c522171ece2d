"""pytorch-metric-learning's calculator beside its subclass, on the same tensors: ties, lone labels, every k."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("pytorch_metric_learning")
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.utils.inference import CustomKNN

from detmap.errors import InputError
from detmap.integrations.pytorch_metric_learning import AccuracyCalculator as Ours

(Theirs,) = Ours.__bases__
NAMES = (
    "mean_average_precision",
    "mean_average_precision_at_r",
    "mean_reciprocal_rank",
    "precision_at_1",
    "r_precision",
)


def calculators(**options):
    given = {"include": NAMES, "device": torch.device("cpu"), "kmeans_func": object(), **options}
    return [one(knn_func=CustomKNN(LpDistance(normalize_embeddings=False)), **given) for one in (Ours, Theirs)]


def close(found, wanted):
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        # Theirs sums reciprocal ranks in single precision.
        assert found[name] == pytest.approx(value, rel=1e-6 if "reciprocal" in name else 1e-13, nan_ok=True), name


@pytest.mark.parametrize("options", [{}, {"avg_of_avgs": True}, {"return_per_class": True}])
@pytest.mark.parametrize("k", [None, "max_bin_count", 1, 3, 7])
@pytest.mark.parametrize("seed", range(6))
def test_the_same_numbers(seed, k, options):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(9, 40))
    points = torch.from_numpy(rng.integers(0, 4, (count, 2)).astype(np.float32))  # many are equally far
    labels = torch.from_numpy(rng.integers(0, 6, count))
    ours, theirs = calculators(k=k, **options)
    close(ours.get_accuracy(points, labels), theirs.get_accuracy(points, labels))
    given = points[:8], labels[:8], points[8:], labels[8:]
    if k != 7 or count > 16:
        close(ours.get_accuracy(*given), theirs.get_accuracy(*given))
    close(ours.get_accuracy(*given, include=NAMES[:1]), theirs.get_accuracy(*given, include=NAMES[:1]))


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_neighbors_of_an_index(seed, same):
    rng = np.random.default_rng(seed)
    points, labels = rng.integers(0, 4, (30, 2)).astype(np.float32), rng.integers(0, 5, 30)
    queries = points if same else rng.integers(0, 4, (9, 2)).astype(np.float32)
    theirs_labels = labels if same else rng.integers(0, 5, 9)
    distances = ((queries[:, None] - points) ** 2).sum(-1)
    I = np.argsort(distances, axis=1, kind="stable")  # noqa: E741 - as faiss calls it
    D = np.take_along_axis(distances, I, 1)

    def knn(query, k, reference, ref_includes_query):
        kept = [[place for place in row if not (same and place == at)] for at, row in enumerate(I.tolist())]
        return None, torch.tensor(kept)

    ours, theirs = calculators()
    theirs.knn_func = knn
    wanted = theirs.get_accuracy(
        *map(torch.from_numpy, (queries, theirs_labels, points, labels)), ref_includes_query=same
    )
    for given in ((D, I), (torch.from_numpy(D), torch.from_numpy(I))):
        close(ours.get_accuracy_of_neighbors(*given, theirs_labels, labels, same), wanted)
    faiss = pytest.importorskip("faiss") if seed == 0 else None
    if faiss is not None:
        index = faiss.IndexFlatL2(2)
        index.add(points)
        found = ours.get_accuracy_of_neighbors(*index.search(queries, 30), theirs_labels, labels, same)
        assert set(found) == set(NAMES)


def test_lone_labels_missing_neighbors_and_bad_input():
    ours, theirs = calculators()
    alone = torch.arange(4.0)[:, None], torch.arange(4)
    close(ours.get_accuracy(*alone), theirs.get_accuracy(*alone))
    found = ours.get_accuracy_of_neighbors([[0.0, 0.0]], [[1, -1]], [7], [7, 7, 8])
    assert found["mean_average_precision"] == 0.5
    with pytest.raises(InputError, match="places must be from -1 to 2"):
        ours.get_accuracy_of_neighbors([[0.0]], [[3]], [7], [7, 7, 8])
    with pytest.raises(InputError, match="expected a row for each of 2 queries"):
        ours.get_accuracy_of_neighbors([[0.0]], [[0]], [7, 7], [7, 7, 8])
    for one in (Ours, Theirs):
        with pytest.raises(ValueError, match="Primary metrics must be one or more of"):
            one(include=("foo",), knn_func=object(), kmeans_func=object())
