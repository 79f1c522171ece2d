"""Hash codes: rankings by Hamming distance, relevance by shared labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import parallel
from detmap.errors import InputError, OptionError
from detmap.hits import Hits
from detmap.kernels import ranking, readonly
from detmap.retrieval.conventions import Convention, convention_of
from detmap.retrieval.metrics import Ranked, parse_all
from detmap.retrieval.scoring import RankingResult, score

#: Relevant items that a block of queries may bring.
_BLOCK_ITEMS = 1 << 21


def _pack(codes: ArrayLike, source: str) -> tuple[NDArray[np.uint64], int, str]:
    """Return codes as rows of words, the number of bits, and what they were: packed, signs or bits."""
    array = np.asarray(codes)
    if array.ndim != 2 or array.dtype.kind not in "fiub" or 0 in array.shape:
        raise InputError(
            "expected a matrix of codes, a row per item", source=source, value=f"{array.ndim}-d {array.dtype}"
        )
    if array.dtype == np.uint64:
        return readonly(array, np.uint64), 64 * array.shape[1], "packed"
    bits = array > 0
    if array.dtype.kind == "b" or bool(np.all((array == 0) | (array == 1))):
        form = "bits"
    elif bool(np.all((array == -1) | (array == 1))):
        form = "signs"
    else:
        raise InputError(
            "codes must be all of -1 and 1, all of 0 and 1, or packed as uint64",
            source=source,
            record=int(np.argmax(np.any((array != 1) & (array != -1), axis=1))),
            remedy="binarise them first: where(x >= 0, 1, -1)",
        )
    packed = np.zeros((len(bits), -(-bits.shape[1] // 64) * 8), np.uint8)
    packed[:, : -(-bits.shape[1] // 8)] = np.packbits(bits, axis=1)
    return readonly(packed.view(np.uint64), np.uint64), bits.shape[1], form


def _both(query: ArrayLike, gallery: ArrayLike) -> tuple[NDArray[np.uint64], NDArray[np.uint64], int]:
    ours, bits, form = _pack(query, "query_codes")
    theirs, other, form2 = _pack(gallery, "gallery_codes")
    if bits != other:
        raise InputError(f"{other} bits where the queries have {bits}", source="gallery_codes")
    both = {form, form2}
    if both == {"bits", "signs"}:  # a matrix of ones alone is of either kind
        for name, values, found in (("query_codes", query, form), ("gallery_codes", gallery, form2)):
            if found == "bits" and not bool(np.all(np.asarray(values))):
                raise InputError("0 and 1 where the other side has -1 and 1", source=name)
    elif "packed" in both and len(both) > 1:
        raise InputError("one side is packed and the other is not", source="gallery_codes")
    return ours, theirs, bits


def _relevant(
    query: ArrayLike, gallery: ArrayLike, queries: int, items: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]:
    """Return first, last and members of the relevant items by label, or the labels as words where there are several."""
    ours, theirs = np.asarray(query), np.asarray(gallery)
    for name, array, count in (("query_labels", ours, queries), ("gallery_labels", theirs, items)):
        if array.ndim not in (1, 2) or len(array) != count:
            raise InputError(f"expected labels of {count} items", source=name, value=array.shape)
        if array.dtype.kind not in ("iubUS" if array.ndim == 1 else "iubf"):
            raise InputError("expected integers or strings, or rows of 0 and 1", source=name, value=array.dtype.name)
        if array.ndim == 2 and not bool(np.all((array == 0) | (array == 1))):
            raise InputError("rows of labels must be 0 and 1", source=name)
    if ours.ndim != theirs.ndim or ours.shape[1:] != theirs.shape[1:]:
        raise InputError("labels of another shape than the queries'", source="gallery_labels", value=theirs.shape)
    if ours.ndim == 1:
        order = np.argsort(theirs, kind="stable")
        ordered = theirs[order]
        first, last = np.searchsorted(ordered, ours, side="left"), np.searchsorted(ordered, ours, side="right")
        return readonly(first, np.int64), readonly(last, np.int64), readonly(order, np.int64), None, None
    none = readonly((), np.int64)
    return none, none, none, _pack(theirs != 0, "gallery_labels")[0], _pack(ours != 0, "query_labels")[0]


def evaluate_codes(
    query_codes: ArrayLike,
    gallery_codes: ArrayLike,
    query_labels: ArrayLike,
    gallery_labels: ArrayLike,
    k: int | None = None,
    *,
    metrics: Sequence[str] | str | None = None,
    convention: str | Convention = "hits_topk",
    **choices: Any,
) -> RankingResult:
    """Evaluate the rankings of a gallery by the Hamming distance of binary codes.

    Parameters
    ----------
    query_codes, gallery_codes : array_like, shapes (q, bits), (g, bits)
        All of -1 and 1, all of 0 and 1, or bool; of dtype uint64 they are packed, 64 bits to a word.
    query_labels, gallery_labels : array_like, shapes (q,), (g,) or (q, l), (g, l)
        A label each, or rows of 0 and 1: items are relevant to each other when they share a label.
    k : int, optional
        The depth of the metrics that are evaluated where none are named.
    metrics : sequence of str, optional
        By default mAP and P (at `k`, if given), and precision and recall within radius 2.
    convention : str or Convention
        By default ``hits_topk``: AP at k over the hits up to k. See ``detmap conventions``.

    Returns
    -------
    RankingResult
        `radius_precision` and `radius_recall` have the means within every Hamming radius.

    Raises
    ------
    InputError
        For other values, shapes or labels, or no query with a match.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise OptionError(f"k must be a positive integer, not {k!r}")
    decided = convention_of(convention, choices)
    if metrics is None:
        metrics = ["mAP", "mINP"] if k is None else [f"mAP@{k}", f"P@{k}", f"R@{k}"]
        if decided.ties != "expected":
            metrics = [*metrics, "P(radius=2)", "R(radius=2)"]
    requests = parse_all(metrics, decided)
    depth = max((r.cut for r in requests if not any("radius" in o for o in r.options)), default=1)
    ours, theirs, bits = _both(query_codes, gallery_codes)
    first, last, members, labels, wanted = _relevant(query_labels, gallery_labels, len(ours), len(theirs))
    flat = readonly(theirs.ravel(), np.uint64)

    def blocks() -> Iterator[Ranked]:
        if labels is None:
            cuts = parallel.split(last - first + 1, _BLOCK_ITEMS)
        else:
            height = max(1, _BLOCK_ITEMS // len(theirs))
            cuts = [(b, min(b + height, len(ours))) for b in range(0, len(ours), height)]
        for begin, end in cuts:
            if labels is None or wanted is None:
                low, high, items = first[begin:end], last[begin:end], members
            else:
                low, high, items = _sharing(labels, wanted, begin, end)
            yield _rank(flat, ours[begin:end], low, high, items, bits, depth, decided)

    reason = "the labels of queries and gallery have nothing in common"
    return score(blocks(), np.arange(len(ours)), requests, decided, reason=reason)


def _sharing(
    labels: NDArray[Any], wanted: NDArray[Any], begin: int, end: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return first, last and members of the items that share a label with queries ``[begin, end)``."""
    rows = readonly(wanted[begin:end], np.uint64)
    starts = np.zeros(end - begin + 1, np.int64)
    cuts = parallel.even(end - begin, None)
    nothing = np.empty(0, np.int64)
    parallel.run(lambda b, e: ranking.shared_labels(labels, rows, b, e, starts, nothing), cuts)
    np.cumsum(starts, out=starts)
    members = np.empty(int(starts[-1]), np.int64)
    if members.size:
        parallel.run(lambda b, e: ranking.shared_labels(labels, rows, b, e, starts, members), cuts)
    return readonly(starts[:-1], np.int64), readonly(starts[1:], np.int64), readonly(members, np.int64)


def _rank(
    codes: NDArray[Any],
    queries: NDArray[Any],
    first: NDArray[Any],
    last: NDArray[Any],
    members: NDArray[Any],
    bits: int,
    depth: int,
    convention: Convention,
) -> Ranked:
    """Rank a block of queries."""
    count = len(queries)
    queries, first, last = readonly(queries, np.uint64), readonly(first, np.int64), readonly(last, np.int64)
    positives = last - first
    starts = readonly(np.concatenate(([0], np.cumsum(positives))), np.int64)
    ranks, ahead, tied = (np.empty(int(starts[-1]), np.int64) for _ in range(3))
    counts, radius = np.empty(count, np.int64), np.empty((count, bits + 1, 2), np.int64)
    parallel.run(
        lambda b, e: ranking.rank_codes(
            codes, queries, first, last, members, depth, starts, b, e, ranks, ahead, tied, counts, radius
        ),
        parallel.even(count, None),
    )
    if counts.sum() < ranks.size:  # only what the metrics read was written
        kept = np.arange(int(counts.sum())) + np.repeat(starts[:-1] - (np.cumsum(counts) - counts), counts)
        ranks, ahead, tied = ranks[kept], ahead[kept], tied[kept]
        starts = np.concatenate(([0], np.cumsum(counts)))
    items = np.full(count, codes.size // queries.shape[1])
    return Ranked(Hits(starts, ranks, positives, items, ahead=ahead, tied=tied), convention, radius=radius)
