"""sentence-transformers' `InformationRetrievalEvaluator`, computed by detmap from lists or from tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import columns
from detmap.errors import InputError
from detmap.retrieval.conventions import CONVENTIONS
from detmap.retrieval.runs import evaluate_run

if TYPE_CHECKING:
    _Theirs: Any = object
else:
    try:
        from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator as _Theirs
    except ModuleNotFoundError:  # the path in older versions
        from sentence_transformers.evaluation import InformationRetrievalEvaluator as _Theirs

#: AP at k is divided by min(number of relevant documents, k); documents with equal scores are ordered by ascending id.
_CONVENTION = replace(CONVENTIONS.find("min_rk"), name="sentence_transformers", missing="zero")

#: sentence-transformers' name of each measure, the attribute with its cutoffs, and detmap's metric.
_MEASURES = (
    ("accuracy@k", "accuracy_at_k", "success"),
    ("precision@k", "precision_recall_at_k", "P"),
    ("recall@k", "precision_recall_at_k", "R"),
    ("ndcg@k", "ndcg_at_k", "nDCG"),
    ("mrr@k", "mrr_at_k", "MRR"),
    ("map@k", "map_at_k", "mAP"),
)


class InformationRetrievalEvaluator(_Theirs):  # type: ignore[misc]  # the parent class has no type annotations
    """sentence-transformers' evaluator, with the same arguments; detmap computes the measures.

    Documents with equal scores are ordered by ascending id, as in sentence-transformers.
    """

    def compute_metrics(self, queries_result_list: Sequence[Sequence[dict[str, Any]]]) -> dict[str, dict[int, float]]:
        """Return the measures of rankings.

        Parameters
        ----------
        queries_result_list : list of list of dict
            The documents found for each query of ``queries_ids``, as ``{"corpus_id": id, "score": score}``.

        Returns
        -------
        dict of dict
            Values by measure (``"accuracy@k"``, ``"ndcg@k"`` …) and cutoff.
        """
        owner = np.repeat(np.arange(len(queries_result_list)), [len(row) for row in queries_result_list])
        places = self._places()
        documents = [places[hit["corpus_id"]] for row in queries_result_list for hit in row]
        scores = [hit["score"] for row in queries_result_list for hit in row]
        return self._measured(owner, np.array(documents, np.int64), np.array(scores, np.float64))

    def compute_metrics_of_top_k(self, scores: ArrayLike, indices: ArrayLike) -> dict[str, dict[int, float]]:
        """Return the measures of `compute_metrics` for rankings that are given as arrays.

        Parameters
        ----------
        scores : tensor or array of float, shape (q, k)
            Scores of the documents found for each query of ``queries_ids``, in any order, for example from `torch.topk`.
        indices : tensor or array of int, shape (q, k)
            The indices of these documents in the corpus; -1 for no document.

        Raises
        ------
        InputError
            If the array shapes do not fit, an index is outside of the corpus, or a query has a document twice.
        """
        values, found = (np.asarray(columns.array(given)) for given in (scores, indices))
        if values.ndim != 2 or values.shape != found.shape or len(found) != len(self.queries_ids):
            shapes = f"{values.shape} and {found.shape}"
            raise InputError(
                f"expected a row for each of {len(self.queries_ids)} queries, not {shapes}", source="scores"
            )
        if found.dtype.kind not in "iu" or (found.size and not -1 <= found.min() <= found.max() < len(self.corpus_ids)):
            raise InputError(f"places must be from -1 to {len(self.corpus_ids) - 1}", source="indices")
        there = found >= 0
        places = self._places()
        by_place = np.array([places[one] for one in self.corpus_ids], np.int64)
        owner = np.nonzero(there)[0]
        return self._measured(owner, by_place[found[there]], values[there].astype(np.float64))

    def _places(self) -> dict[Any, int]:
        """Return a dict from document id to the document's index in the corpus sorted by id."""
        return {one: place for place, one in enumerate(sorted(self.corpus_ids))}

    def _measured(
        self, owner: NDArray[np.int64], documents: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> dict[str, dict[int, float]]:
        """Return the measures of a run, which has a query index, a document index and a score per row. Documents are
        sorted by id, as in `_places`.
        """
        places = self._places()
        relevant = [
            (query, places.setdefault(one, len(places)))  # documents outside of the corpus are never found
            for query, name in enumerate(self.queries_ids)
            for one in self.relevant_docs[name]
        ]
        queries, judged = np.array(relevant, np.int64).reshape(-1, 2).T
        cuts = {called: (metric, list(getattr(self, cutoffs))) for called, cutoffs, metric in _MEASURES}
        names = [f"{metric}@{cut}" for metric, depths in cuts.values() for cut in depths]
        order = np.lexsort((documents, owner))
        found = evaluate_run(
            (queries, judged, np.ones(judged.size, np.int64)),
            (owner[order], documents[order], scores[order]),
            names,
            _CONVENTION,
        )
        return {called: {cut: found[f"{metric}@{cut}"] for cut in depths} for called, (metric, depths) in cuts.items()}
