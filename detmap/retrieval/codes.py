"""Hash codes: rankings by Hamming distance, relevance by shared labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import InputError, OptionError, is_integer
from detmap.hits import TIE_RULES, Hits
from detmap.kernels import packing, ranking, readonly, sorting
from detmap.retrieval.conventions import Choices, Convention, convention_of
from detmap.retrieval.galleries import self_matches
from detmap.retrieval.metrics import parse_all
from detmap.retrieval.ranked import Ranked
from detmap.retrieval.scoring import KEPT_HITS, RankingResult, int64, labels, score, table
from detmap.system import parallel

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Maximum number of relevant items per block of queries.
_BLOCK_ITEMS = 1 << 21
#: Maximum number of relevant items per block if the result keeps no ranks of hits. All blocks then reuse one buffer of
#: this size, which keeps all threads busy.
_PASSING_ITEMS = 1 << 22
#: Maximum number of comparisons of codes between two checks for cancellation.
_STEP = 1 << 24

#: Number of elements of a matrix that are checked and packed at a time.
_PART = 1 << 18

#: Integer labels are grouped by a counting sort if their range is smaller than this multiple of the number of items.
_SPREAD = 4

#: Metrics whose value at depth k does not depend on hits beyond rank k.
_SHALLOW = ("AP", "P", "R", "R_cap", "F1", "RR", "success", "hits", "CMC", "nDCG", "DCG", "ERR", "RBP")

#: Maximum number of bits of a code, because distances are 16-bit integers and one value is reserved for the query's own
#: item.
_MOST_BITS = 65534


def _given(values: ArrayLike, source: str) -> NDArray[Any]:
    array = table(values, source)
    if array.dtype == np.object_ and not array.ndim:  # numpy wraps a sparse matrix or a set as one object
        remedy = "give a dense array: x.toarray()" if hasattr(values, "toarray") else None
        raise InputError(f"expected an array, not {type(values).__name__}", source=source, remedy=remedy)
    return array


def _matrix(codes: ArrayLike, source: str) -> NDArray[Any]:
    array = _given(codes, source)
    if array.ndim != 2 or array.dtype.kind not in "fiub" or 0 in array.shape:
        raise InputError(
            "expected a matrix of codes, a row per item", source=source, value=f"{array.ndim}-d {array.dtype}"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _words(array: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return rows of bytes as rows of 64-bit words, padded with zeros."""
    whole = np.zeros((len(array), -(-array.shape[1] // 8) * 8), np.uint8)
    whole[:, : array.shape[1]] = array
    return readonly(whole.view(np.uint64), np.uint64)


def _pack(
    array: NDArray[Any], source: str, packed: bool | None, either: bool = False
) -> tuple[NDArray[np.uint64], int, str]:
    """Return codes as rows of 64-bit words, the bits per code, and the form of the input: "packed", "signs" (-1 and 1)
    or "bits" (0 and 1).
    """
    # If `packed` is None, uint64 codes are taken as packed. If `either` is true, uint8 codes are taken as packed unless
    # all elements are 0 or 1.
    if packed or (packed is None and array.dtype == np.uint64):
        if array.dtype not in (np.uint8, np.uint64):
            raise InputError("packed codes are uint8 or uint64", source=source, value=array.dtype.name)
        words = readonly(array, np.uint64) if array.dtype == np.uint64 else _words(array)
        return words, 8 * array.itemsize * array.shape[1], "packed"
    count, bits = array.shape
    whole = np.zeros((count, -(-bits // 64) * 8), np.uint8)
    rows = max(1, _PART // bits)  # the rows of a part stay in the cache while they are checked and packed
    plain = readonly(array.view(np.uint8), np.uint8).ravel() if array.dtype.itemsize == 1 else None

    def pack(begin: int, end: int) -> tuple[bool, bool]:
        if plain is not None:
            found = packing.pack_bytes(plain, bits, begin, end, whole)
            return bool(found & packing.ZEROS_AND_ONES), bool(found & packing.SIGNS) and array.dtype == np.int8
        zeros = ones = True  # whether all elements are 0 or 1; whether all elements are -1 or 1
        for low in range(begin, end, rows):
            part = array[low : min(low + rows, end)]
            positive = part > 0
            whole[low : low + len(part), : -(-bits // 8)] = np.packbits(positive, axis=1)
            if zeros:
                zeros = bool((part == positive.view(np.int8)).all())
            if ones:
                ones = bool(
                    positive.all() if zeros else (part == positive.view(np.int8) * np.int8(2) - np.int8(1)).all()
                )
            if not zeros and not ones:
                break
        return zeros, ones

    found = parallel.run(pack, parallel.even(count, None if array.size > _PART else 1))
    if all(zeros for zeros, _ in found):
        form = "bits"
    elif all(ones for _, ones in found):
        form = "signs"
    elif either:
        return _pack(array, source, True)
    else:
        raise InputError(
            "codes must be all of -1 and 1, all of 0 and 1, or packed as uint8 or uint64",
            source=source,
            record=int(np.argmax(np.any((array != 1) & (array != -1), axis=1))),
            remedy="binarise them first: where(x >= 0, 1, -1)",
        )
    return readonly(whole.view(np.uint64), np.uint64), bits, form


def _both(
    query: ArrayLike, gallery: ArrayLike, packed: bool | None
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], int]:
    query, gallery = _matrix(query, "query_codes"), _matrix(gallery, "gallery_codes")
    either = packed is None and query.dtype == gallery.dtype == np.uint8
    ours, bits, form = _pack(query, "query_codes", packed, either)
    theirs, other, form2 = _pack(gallery, "gallery_codes", True if either and form == "packed" else packed, either)
    if either and form2 == "packed" != form:  # the gallery has bytes above 1, so both sides are packed
        ours, bits, form = _pack(query, "query_codes", True)
    if bits != other:
        raise InputError(f"{other} bits where the queries have {bits}", source="gallery_codes")
    both = {form, form2}
    if both == {"bits", "signs"}:  # a matrix of only ones may be bits or signs
        for name, values, found in (("query_codes", query, form), ("gallery_codes", gallery, form2)):
            if found == "bits" and not bool(np.all(values)):
                raise InputError("0 and 1 where the other side has -1 and 1", source=name)
    elif "packed" in both and len(both) > 1:
        raise InputError("one side is packed and the other is not", source="gallery_codes")
    if bits > _MOST_BITS:
        raise InputError(f"codes of at most {_MOST_BITS} bits can be ranked", source="query_codes", value=bits)
    return ours, theirs, bits


def _label_array(values: ArrayLike, source: str) -> NDArray[Any]:
    array = _given(values, source)
    if array.ndim == 2 and array.shape[1] == 1:
        return labels(array[:, 0], None, source)
    return labels(values, None, source) if array.ndim == 1 else array


def _labels(
    query: ArrayLike, gallery: ArrayLike, queries: int, items: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], bool]:
    """Return the labels of queries and gallery as rows of 64-bit words, and whether an item may have several labels. If
    an item may have several labels, a row has a bit for each label. Otherwise it holds the number of the item's label.
    """
    ours, theirs = _label_array(query, "query_labels"), _label_array(gallery, "gallery_labels")
    for name, array, count in (("query_labels", ours, queries), ("gallery_labels", theirs, items)):
        if array.ndim not in (1, 2) or len(array) != count:
            raise InputError(f"expected labels of {count} items", source=name, value=array.shape)
        if array.dtype.kind not in ("iubUS" if array.ndim == 1 else "iubf"):
            raise InputError("expected integers or strings, or rows of 0 and 1", source=name, value=array.dtype.name)
        if array.ndim == 2 and not bool(np.all((array == 0) | (array == 1))):
            raise InputError("rows of labels must be 0 and 1", source=name)
    if ours.ndim != theirs.ndim or ours.shape[1:] != theirs.shape[1:]:
        raise InputError("labels of another shape than the queries'", source="gallery_labels", value=theirs.shape)
    if ours.ndim == 2:
        return _words(np.packbits(ours != 0, axis=1)), _words(np.packbits(theirs != 0, axis=1)), True
    if (ours.dtype.kind in "US") != (theirs.dtype.kind in "US"):
        raise InputError("strings on one side and integers on the other", source="gallery_labels")
    if ours.dtype.kind in "US":
        _, numbers = np.unique(np.concatenate((ours, theirs)), return_inverse=True)
        ours, theirs = numbers[:queries], numbers[queries:]
    pair = (int64(ours, "query_labels"), int64(theirs, "gallery_labels"))
    words = [readonly(array.view(np.uint64)[:, None], np.uint64) for array in pair]
    return words[0], words[1], False


def evaluate_codes(
    query_codes: ArrayLike,
    gallery_codes: ArrayLike,
    query_labels: ArrayLike,
    gallery_labels: ArrayLike,
    k: int | None = None,
    *,
    metrics: Sequence[str] | str | None = None,
    convention: str | Convention = "hits_topk",
    packed: bool | None = None,
    self_match: ArrayLike | bool | None = None,
    keep_curve: bool = False,
    **choices: Unpack[Choices],
) -> RankingResult:
    """Evaluate the rankings of a gallery by the Hamming distance of binary codes.

    Parameters
    ----------
    query_codes, gallery_codes : array_like, shapes (q, bits), (g, bits)
        Binary codes, with one element per bit (-1 and 1, 0 and 1, or bool) or packed. Codes of dtype uint64 are packed,
        64 bits to a word. Codes of dtype uint8 are packed if `packed` is true or an element is neither 0 nor 1: 8 bits
        to a byte, as in faiss and numpy.packbits.
    query_labels, gallery_labels : array_like, shapes (q,), (g,) or (q, l), (g, l)
        One label per item, or a row of 0 and 1 per item. An item is relevant to a query if they share a label.
    k : int, optional
        The depth of the default metrics.
    metrics : sequence of str, optional
        By default mAP, P and R at `k`; without `k`, mAP and mINP. P and R within Hamming radius 2 are added unless
        ties="expected".
    convention : str or Convention
        By default ``hits_topk``, whose AP at k is divided by the number of hits up to k. See ``detmap conventions``.
    packed : bool, optional
        Whether codes of dtype uint8 or uint64 are packed. By default uint64 codes are packed; for uint8 codes the
        values decide.
    self_match : True or array_like of int, shape (q,), optional
        The gallery index of each query's own item, which is removed from the ranking; negative if the gallery lacks the
        query. If True, item *i* is query *i*.
    keep_curve : bool
        Keep the mean curve for `RankingResult.plot` even if there are more than 2**21 hits.

    Returns
    -------
    RankingResult
        `radius_precision` and `radius_recall` hold the mean precision and recall within every Hamming radius.

    Raises
    ------
    InputError
        If values, shapes or labels are invalid, or no query has a relevant item.
    """
    if k is not None and (not is_integer(k) or k < 1):
        raise OptionError(f"k must be a positive integer, not {k!r}")
    decided = convention_of(convention, choices)
    if metrics is None:
        metrics = ["mAP", "mINP"] if k is None else [f"mAP@{k}", f"P@{k}", f"R@{k}"]
        if decided.ties != "expected":
            metrics = [*metrics, "P(radius=2)", "R(radius=2)"]
    requests = parse_all(metrics, decided)
    read = [r for r in requests if not any(o.startswith("radius") for o in r.options)]
    depth = max((r.cut for r in read), default=1)
    ours, theirs, bits = _both(query_codes, gallery_codes, packed)
    wanted, labels, several = _labels(query_labels, gallery_labels, len(ours), len(theirs))
    codes = readonly(theirs.ravel(), np.uint64)
    relevant, positives = _relevant(labels, wanted, several)
    own = _own(self_match, len(ours), len(theirs))
    if (own < len(theirs)).any():
        positives -= _shared(labels, wanted, own, several)
    # If neither the result nor a metric needs all hits, only the hits up to the largest depth of the metrics are
    # written.
    shallow = decided.cmc in (None, "market") and all(r.metric.name in _SHALLOW for r in read)
    complete = keep_curve or not shallow or int(positives.sum()) <= KEPT_HITS
    if complete:
        depth = np.iinfo(np.int64).max
    cuts, room = parallel.split(positives + bits + 1, _BLOCK_ITEMS), None
    if int(positives.sum()) > KEPT_HITS:  # the result keeps no hits, so the blocks reuse the same memory
        width = 1 if TIE_RULES[decided.ties] == TIE_RULES["index"] and decided.ties != "expected" else 3
        cuts = parallel.split(positives + bits + 1, _PASSING_ITEMS // width)
        room = np.empty((width, max(int(positives[b:e].sum()) for b, e in cuts)), np.int64)
    blocks = (
        _rank(
            codes,
            ours[b:e],
            relevant._replace(spans=relevant.spans[b:e], wanted=relevant.wanted[b:e]),
            own[b:e],
            positives[b:e],
            depth,
            bits,
            len(theirs),
            decided,
            room,
        )
        for b, e in cuts
    )
    reason = "the labels of queries and gallery have nothing in common"
    result = score(
        blocks,
        np.arange(len(ours)),
        requests,
        decided,
        junk=int(np.count_nonzero(own < len(theirs))),
        reason=reason,
        complete=complete,
        keep_curve=keep_curve,
    )
    if not complete and result.cmc is not None:
        result.cmc = result.cmc[:depth]
    return result


def _relevant(
    labels: NDArray[np.uint64], wanted: NDArray[np.uint64], several: bool
) -> tuple[ranking.Relevant, NDArray[np.int64]]:
    """Return the relevant items of each query, and the number of relevant items per query, shape (q,)."""
    flat, queries = readonly(labels.ravel(), np.uint64), len(wanted)
    positives, spans = np.zeros(queries, np.int64), np.zeros((queries, 2), np.int64)
    items = np.empty(0, np.int32)
    if several:

        def count(begin: int, end: int) -> None:
            for b, e in parallel.steps(begin, end, len(labels), _STEP):
                ranking.count_shared(flat, wanted, several, b, e, positives)

        parallel.run(count, parallel.even(queries, None))
    else:
        theirs, asked = flat.view(np.int64), wanted[:, 0].view(np.int64)
        low, high = int(theirs.min()), int(theirs.max())
        if high - low < min(_SPREAD * theirs.size, 2**31 - 1) and theirs.size < 2**31:
            items, edges = np.empty(theirs.size, np.int32), np.empty(high - low + 2, np.int64)
            sorting.group_by(readonly(theirs - low, np.int32), readonly((), np.int32), items, edges)
            at = np.clip(asked, low, high) - low
            spans = np.where((asked == at + low)[:, None], np.stack((edges[at], edges[at + 1]), axis=1), 0)
            positives = spans[:, 1] - spans[:, 0]
        else:
            known, sizes = np.unique(theirs, return_counts=True)
            at = np.minimum(np.searchsorted(known, asked), known.size - 1)
            positives = np.where(known[at] == asked, sizes[at], 0)
    return ranking.Relevant(readonly(items, np.int32), readonly(spans, np.int64), flat, wanted, several), positives


def _own(self_match: ArrayLike | bool | None, queries: int, items: int) -> NDArray[np.int64]:
    """Return for each query the gallery index of the query's own item, or `items` if there is none."""
    own = self_matches(self_match, queries, items)
    return np.full(queries, items) if own is None else np.where(own < 0, items, own)


def _shared(
    labels: NDArray[np.uint64], wanted: NDArray[np.uint64], own: NDArray[np.int64], several: bool
) -> NDArray[np.int64]:
    """Return for each query 1 if the query's own item is relevant, else 0."""
    mine = labels[np.minimum(own, len(labels) - 1)]
    same = ((mine & wanted) != 0).any(axis=1) if several else mine[:, 0] == wanted[:, 0]
    return np.asarray(same & (own < len(labels)), dtype=np.int64)


def _rank(
    codes: NDArray[Any],
    queries: NDArray[Any],
    relevant: ranking.Relevant,
    own: NDArray[np.int64],
    positives: NDArray[np.int64],
    depth: int,
    bits: int,
    items: int,
    convention: Convention,
    room: NDArray[np.int64] | None,
) -> Ranked:
    """Rank a block of queries. If `room` is given, the results are written into this buffer."""
    count = len(queries)
    queries, own = readonly(queries, np.uint64), readonly(own, np.int64)
    spans, wanted = readonly(relevant.spans, np.int64), readonly(relevant.wanted, np.uint64)
    relevant = relevant._replace(spans=spans, wanted=wanted)
    starts = readonly(np.concatenate(([0], np.cumsum(positives))), np.int64)
    size = int(starts[-1])
    rows = np.empty((3, size), np.int64) if room is None else room[:, :size]
    ranks, (ahead, tied) = rows[0], rows[1:] if len(rows) == 3 else np.empty((2, 0), np.int64)
    counts, radius = np.empty(count, np.int64), np.empty((count, bits + 1, 2), np.int64)
    coded, out = ranking.Coded(codes, queries, own), ranking.RankedCodes(ranks, ahead, tied, counts, radius)

    def rank(begin: int, end: int) -> None:
        for b, e in parallel.steps(begin, end, items, _STEP):
            ranking.rank_codes(coded, relevant, starts, depth, b, e, out)

    parallel.run(rank, parallel.together(count, ranking.GROUP))
    if counts.sum() < ranks.size:  # only the hits that metrics need were written
        kept = np.arange(int(counts.sum())) + np.repeat(starts[:-1] - (np.cumsum(counts) - counts), counts)
        ranks = ranks[kept]
        ahead, tied = (ahead[kept], tied[kept]) if ahead.size else (ahead, tied)
        starts = np.concatenate(([0], np.cumsum(counts)))
    each = items - (own < items)
    return Ranked(Hits(starts, ranks, positives, each, ahead=ahead, tied=tied), convention, radius=radius)
