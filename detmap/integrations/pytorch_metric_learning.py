"""pytorch-metric-learning's `AccuracyCalculator`, computed by detmap from embeddings, or from the neighbours that an
index returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from detmap import columns
from detmap.errors import InputError, MissingDependencyError
from detmap.retrieval.neighbors import of_search
from detmap.retrieval.rankings import evaluate_rankings

if TYPE_CHECKING:
    _Theirs: Any = object
else:
    try:
        from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator as _Theirs
    except ModuleNotFoundError:
        raise MissingDependencyError("pytorch-metric-learning", None, "AccuracyCalculator") from None

#: detmap's metric and convention for each measure of pytorch-metric-learning.
_METRICS = {
    "mean_average_precision": ("AP", "detmap"),
    "mean_average_precision_at_r": ("AP", "map_at_r"),
    "mean_reciprocal_rank": ("MRR", "detmap"),
    "precision_at_1": ("P@1", "detmap"),
    "r_precision": ("R-prec", "detmap"),
}


class AccuracyCalculator(_Theirs):  # type: ignore[misc]  # the parent class has no type annotations
    """pytorch-metric-learning's calculator, in which detmap computes the metrics of nearest neighbours.

    The arguments are those of the parent class, which still computes the clustering measures NMI and AMI. Neighbours
    are ranked in the order in which the search returns them.
    """

    def get_accuracy_of_neighbors(
        self,
        D: ArrayLike,
        I: ArrayLike,  # noqa: E741 - as faiss calls it
        query_labels: ArrayLike,
        reference_labels: ArrayLike,
        ref_includes_query: bool = False,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Return the result of `get_accuracy` for neighbours found by an index.

        Parameters
        ----------
        D, I : tensor or array, shape (q, k)
            Distances and indices of references, as faiss' ``search`` returns them; index -1 stands for no neighbour.
        query_labels, reference_labels : tensor or array, shapes (q,), (g,)
            Labels of the queries and of the references.
        ref_includes_query : bool
            Whether the first q references are the queries. Each query is then removed from its list of neighbours; if
            the list lacks the query, the last neighbour is removed instead.
        include, exclude : sequence of str
            Measures to compute or to leave out; by default all measures except clustering measures, which need
            embeddings.

        Returns
        -------
        dict of str to float
            The value of each measure; with ``return_per_class`` a list with a value per label.

        Raises
        ------
        InputError
            If the array shapes do not fit, or an index does not belong to a reference.
        """
        places, _ = of_search((D, I), None)
        places = np.asarray(columns.array(places), np.int64)
        queries, references = (torch.as_tensor(columns.array(one)) for one in (query_labels, reference_labels))
        if places.ndim != 2 or len(places) != len(queries):
            raise InputError(f"expected a row for each of {len(queries)} queries", source="I", value=places.shape)
        if places.size and not -1 <= places.min() <= places.max() < len(references):
            raise InputError(f"places must be from -1 to {len(references) - 1}", source="I")
        if ref_includes_query:
            own = places == np.arange(len(places))[:, None]
            own[~own.any(1), -1] = True
            places = places[~own].reshape(len(places), -1)
        found = torch.as_tensor(places)

        def search(*_: Any) -> tuple[None, Any]:
            return None, found

        asked = [name for name in include or self.original_function_dict if name not in self.requires_clustering()]
        before: Any = self.knn_func
        self.knn_func = search
        try:
            self._none = found < 0
            points = torch.zeros(max(len(references), len(queries)), 1)
            given = points[: len(queries)], queries, points[: len(references)], references
            return self.get_accuracy(*given, ref_includes_query, tuple(asked), tuple(exclude))  # type: ignore[no-any-return]
        finally:
            self.knn_func, self._none = before, None

    #: The function that searches neighbours, as in the parent class.
    knn_func: Any
    #: Flags of missing neighbours (-1) while `get_accuracy_of_neighbors` runs.
    _none: Any = None

    def _of(self, measure: str, given: dict[str, Any]) -> Any:
        """Compute a measure from the neighbours and labels that the parent class has prepared."""
        labels, kept = given["query_labels"], given["not_lone_query_mask"]
        unique, counts = given["label_counts"]
        if not bool(kept.any()):
            return [float("nan")] * len(unique) if self.return_per_class else float("nan")
        same = self.label_comparison_fn(labels[kept][:, None], given["knn_labels"][kept])
        if self._none is not None:
            same = same & ~self._none[kept]
        hits = columns.array(same).astype(np.int64)
        place = torch.unique(labels, dim=0, return_inverse=True)[1][kept]
        positives = columns.array(counts[place]) - int(given["ref_includes_query"])
        if measure == "r_precision":  # R is at most the number of retrieved neighbours
            positives = np.minimum(positives, hits.shape[1])
        metric, convention = _METRICS[measure]
        result = evaluate_rankings(hits, positives, metrics=[metric], convention=convention, empty="zero")
        values: NDArray[np.float64] = result.per_query[next(iter(result))]
        if not self.avg_of_avgs and not self.return_per_class:
            return float(values.mean())
        _, group = np.unique(columns.array(place), return_inverse=True)
        means = np.bincount(group, values) / np.bincount(group)
        return means.tolist() if self.return_per_class else float(means.mean())

    def calculate_mean_average_precision(self, **given: Any) -> Any:
        """Return the mean average precision; each query's sum of precisions is divided by its number of relevant
        references.
        """
        return self._of("mean_average_precision", given)

    def calculate_mean_average_precision_at_r(self, **given: Any) -> Any:
        """Return MAP@R."""
        return self._of("mean_average_precision_at_r", given)

    def calculate_mean_reciprocal_rank(self, **given: Any) -> Any:
        """Return the mean reciprocal rank, which pytorch-metric-learning computes in single precision."""
        return self._of("mean_reciprocal_rank", given)

    def calculate_precision_at_1(self, **given: Any) -> Any:
        """Return the share of queries whose nearest neighbour has the query's label."""
        return self._of("precision_at_1", given)

    def calculate_r_precision(self, **given: Any) -> Any:
        """Return the precision among the first R neighbours, for R relevant references."""
        return self._of("r_precision", given)
