"""Distances between features of queries and a gallery, in blocks. Equal features have equal distances.

BLAS may round equal elements of a product differently, because it uses other code at the edges of a block. On some
processors (single precision on Haswell and Zen), BLAS even uses other code for neighbouring rows within a block. The
split of a long sum depends on the number of threads. Padding prevents none of this. Therefore equal features are found
first, and their distances are computed once and copied, so that they always tie. Products are padded to fixed
multiples, so that distances of different features hardly depend on the number of queries and items. Rows are copied to
one memory layout, so that results do not depend on the layout of the given arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import InputError, check_choice
from detmap.kernels import hashing, readonly
from detmap.retrieval.conventions import Choices, Convention, convention_of
from detmap.retrieval.device_arrays import DeviceTable, array_table, check_device, feature_blocks
from detmap.retrieval.galleries import Rows, RowsOf, evaluate_rows, relate
from detmap.retrieval.scoring import RankingResult
from detmap.system import parallel

if TYPE_CHECKING:
    from typing_extensions import Unpack

DistanceMetric = Literal["euclidean", "sqeuclidean", "cosine", "dot"]

#: Number of distances computed per block of queries, and number of gallery rows multiplied at a time.
_BLOCK_DISTANCES, _TILE = 1 << 25, 16384

#: The number of queries in a block is a multiple of this number. OpenBLAS copies the gallery for every block, which
#: would take a third of the time with blocks of only 48 queries.
_TOGETHER = 96

#: Products are padded to multiples of these numbers of queries, items and features. The inner loops of every tested
#: BLAS then have no remainder, and the split of long sums does not depend on the number of threads.
_QUERIES, _ITEMS, _FEATURES = 48, 64, 64


def evaluate_features(
    query: ArrayLike,
    gallery: ArrayLike,
    query_ids: ArrayLike,
    gallery_ids: ArrayLike,
    query_cameras: ArrayLike | None = None,
    gallery_cameras: ArrayLike | None = None,
    *,
    metric: DistanceMetric = "euclidean",
    metrics: Sequence[str] | str | None = None,
    convention: str | Convention = "reid",
    junk_id: int | None = -1,
    ignore: Sequence[ArrayLike] | None = None,
    self_match: ArrayLike | bool | None = None,
    seed: int = 0,
    keep_curve: bool = False,
    **choices: Unpack[Choices],
) -> RankingResult:
    """Evaluate the rankings of a gallery by the distance of features, without storing all distances.

    Parameters
    ----------
    query, gallery : array_like of float, shapes (q, d), (g, d)
        Features of any float type (float16 and bfloat16 are multiplied in single precision); may be a `numpy.memmap`.
        Float arrays of PyTorch, or of a library with the array API, may be on another device. They are multiplied and
        ranked on that device, so both arrays must be on the same device. Distances computed on a device may differ in
        the last bits from distances computed on the processor. Distances of whole numbers are exact if all products are
        exact and the library does not multiply in lower precision (TF32).
    metric : {"euclidean", "sqeuclidean", "cosine", "dot"}
        ``euclidean`` ranks by the squared distance, as ``sqeuclidean`` does; ``dot`` ranks larger products first.
    query_ids, gallery_ids, query_cameras, gallery_cameras, metrics, convention, junk_id, ignore, self_match, seed
        See `evaluate_distances`.
    keep_curve, choices
        See `evaluate_distances`.

    Returns
    -------
    RankingResult

    Raises
    ------
    InputError
        If features are NaN or infinite, shapes do not match, the arrays are on two devices, or no query has a match.
    """
    check_choice("metric", metric, get_args(DistanceMetric))
    pair = array_table(query, "query"), array_table(gallery, "gallery")
    check_device(*pair, "gallery")
    if pair[0].shape[1] != pair[1].shape[1]:
        raise InputError(f"{pair[1].shape[1]} columns where the queries have {pair[0].shape[1]}", source="gallery")
    decided = convention_of(convention, choices)
    queries, items = map(len, pair)
    relation = relate(
        queries, items, query_ids, gallery_ids, query_cameras, gallery_cameras, junk_id, ignore, self_match, decided
    )
    single = all(side.dtype.kind == "f" and side.dtype.itemsize <= 4 for side in pair)
    theirs = survey(pair[1], np.float32 if single else np.float64, "gallery")
    ours = survey(pair[0], theirs.kind, "query")
    return evaluate_rows(*blocks(ours, theirs, metric), relation, metrics, decided, seed, keep_curve)


def blocks(ours: Side, theirs: Side, metric: DistanceMetric) -> tuple[list[tuple[int, int]], RowsOf]:
    """Return the bounds of blocks of queries, and a function that returns the distances of a block."""
    queries, items = len(ours.rows), len(theirs.rows)
    if isinstance(ours.rows, DeviceTable) and isinstance(theirs.rows, DeviceTable):
        return feature_blocks(ours.rows, theirs.rows, (ours.squares, theirs.squares), theirs.first, metric)
    height = max(1, _BLOCK_DISTANCES // max(1, items) // _TOGETHER) * _TOGETHER

    def block(begin: int, end: int) -> Rows:
        made = _distances_of(ours, begin, end, height, theirs, metric)
        return lambda a, b: made[a - begin : b - begin]

    return [(begin, min(begin + height, queries)) for begin in range(0, queries, height)], block


@dataclass(frozen=True)
class Side:
    """The features of the queries or of the gallery."""

    #: The features as given, shape (n, d).
    rows: NDArray[Any] | DeviceTable
    #: The float type in which features are multiplied.
    kind: type
    #: The squared norm of each row, shape (n,).
    squares: NDArray[Any]
    #: For each row, the index of the first row with equal features, shape (n,).
    first: NDArray[np.int64]
    #: A hash of every row, shape (n,).
    hashes: NDArray[np.uint64]


def _padded(rows: NDArray[Any], kind: type, step: int) -> NDArray[Any]:
    """Return rows as a C-contiguous array of `kind`, zero-padded to a multiple of `step` rows and `_FEATURES` columns."""
    height, width = (-(-n // by) * by for n, by in zip(rows.shape, (step, _FEATURES), strict=True))
    if (height, width) == rows.shape:
        return np.require(rows, kind, ["C", "A"])
    out: NDArray[Any] = np.zeros((height, width), kind)
    out[: rows.shape[0], : rows.shape[1]] = rows
    return out


def survey(features: NDArray[Any] | DeviceTable, kind: type, source: str) -> Side:
    """Compute the squared norm of every row, and find equal rows; raise `InputError` for a row that is not finite."""
    squares: NDArray[Any] = np.empty(len(features), kind)
    hashes = np.empty(len(features), np.uint64)

    def task(begin: int, end: int) -> None:
        tile = _padded(features[begin:end], kind, 1)
        squares[begin:end] = np.einsum("ij,ij->i", tile, tile)
        words = readonly(tile.view(np.uint64), np.uint64)
        hashing.hash_rows(words, kind is np.float32, 0, len(tile), hashes[begin:end])

    blocks = [(low, min(low + _SURVEYED, len(features))) for low in range(0, len(features), _SURVEYED)]
    parallel.run(task, blocks, None if features.shape[0] * features.shape[1] > _MANY else 1)
    bad = ~np.isfinite(squares)
    if bad.any():
        raise InputError("NaN, or a number too large to square", source=source, record=int(np.argmax(bad)))
    return Side(features, kind, squares, _first_equal(features, hashes, kind), hashes)


#: Number of rows that a thread copies, squares and hashes at a time. Minimum number of elements for several threads.
_SURVEYED, _MANY = 2048, 1 << 18


def _first_equal(features: NDArray[Any] | DeviceTable, hashes: NDArray[np.uint64], kind: type) -> NDArray[np.int64]:
    """Return for each row the index of the first equal row; only rows with equal hashes are compared."""
    first = np.arange(hashes.size)
    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():  # the usual case
        return first
    order = np.argsort(hashes, kind="stable")
    repeated = hashes[order[1:]] == hashes[order[:-1]]
    rest = order[np.append(False, repeated) | np.append(repeated, False)]
    step = max(1, _BLOCK_DISTANCES // max(1, 4 * features.shape[1]))
    while rest.size:  # one pass, unless different rows share a hash
        starts = np.append(True, hashes[rest[1:]] != hashes[rest[:-1]])
        heads = rest[starts][np.cumsum(starts) - 1]
        equal = np.empty(rest.size, np.bool_)
        for low in range(0, rest.size, step):
            part = slice(low, low + step)
            equal[part] = (features[rest[part]].astype(kind) == features[heads[part]].astype(kind)).all(axis=1)
        first[rest[equal]] = heads[equal]
        rest = rest[~equal]
    return first


def _distances_of(ours: Side, begin: int, end: int, height: int, theirs: Side, metric: DistanceMetric) -> NDArray[Any]:
    """Return the distances of queries ``[begin, end)`` to the gallery. All blocks but the last have `height` queries."""
    made = _distances(ours, np.arange(begin, end), theirs, metric)
    source = ours.first[begin:end]
    again = np.flatnonzero((source >= begin) & (source != np.arange(begin, end)))
    made[again] = made[source[again] - begin]
    wanted = np.unique(source[source < begin])
    # A query that equals a query of an earlier block must get the same distances. BLAS may round distances differently
    # in another row of a block, so they are computed again in the row of the earlier query.
    while wanted.size:
        places, some = np.unique(wanted % height, return_index=True)
        members = np.zeros(height, np.int64)
        members[places] = wanted[some]
        here = np.flatnonzero(np.isin(source, wanted[some]))
        made[here] = _distances(ours, members, theirs, metric)[source[here] % height]
        wanted = np.delete(wanted, some)
    return made


def _distances(ours: Side, members: NDArray[np.int64], theirs: Side, metric: DistanceMetric) -> NDArray[Any]:
    """Return the distances of the queries `members` to the whole gallery, computed tile by tile."""
    query = _padded(ours.rows[members], ours.kind, _QUERIES)
    items, count = len(theirs.rows), members.size
    out: NDArray[Any] = np.empty((len(query), items), ours.kind)
    own = ours.squares[members]
    if metric == "cosine":
        query[:count] /= -np.sqrt(np.where(own > 0, own, 1))[:, None]
    else:  # scaling by a power of two is exact
        query *= -1 if metric == "dot" else -2
    for low, high in _tiles(items):
        tile = _padded(theirs.rows[low:high], ours.kind, _ITEMS)
        part = out[:, low:high]
        if len(tile) == high - low:
            np.matmul(query, tile.T, out=part)
        else:
            part[:] = np.matmul(query, tile.T)[:, : high - low]
        part, inside = part[:count], theirs.squares[low:high]
        if metric == "cosine":
            part /= np.sqrt(np.where(inside > 0, inside, 1))
            part += 1
        elif metric != "dot":
            part += own[:, None]
            part += inside
    copies = np.flatnonzero(theirs.first != np.arange(items))
    if copies.size:
        out[:, copies] = out[:, theirs.first[copies]]
    return out[:count]


def _tiles(items: int) -> list[tuple[int, int]]:
    """Return ranges of gallery rows: full tiles, then a tile whose size is a multiple of `_ITEMS`, then the remaining
    rows, which will be padded.
    """
    whole = items // _ITEMS * _ITEMS
    edges = sorted({*range(0, whole, _TILE), whole, items})
    return list(pairwise(edges))
