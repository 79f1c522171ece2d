"""The mergeable outcome of matching. A cap is a maximum number of detections per image and category (`max_dets`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import cluster_column, locate
from detmap.data.notices import added
from detmap.detection import zero_ids
from detmap.detection.matching_rules import BY_FILE, HITS_FIRST
from detmap.detection.protocols import Protocol
from detmap.detection.rematching import BY_OBJECTS
from detmap.detection.true_positives import names_of
from detmap.errors import DetmapError, StateError, shorten
from detmap.kernels import Frozen, allocate, matching, readonly, sorting
from detmap.system import parallel
from detmap.system.saved_states import seal, unseal

if TYPE_CHECKING:
    from detmap.detection.tally_header import Header


class Column(NamedTuple):
    """The specification of a column of a tally. Code that handles columns iterates over `COLUMNS`."""

    #: The attribute of `Tally`.
    name: str
    #: The saved dtype, little-endian.
    dtype: str
    #: What a row stands for: a detection, or a pair of category and image with ground truth.
    per: Literal["detection", "pair"]
    #: The attribute of `Tally` that the values index; "" if they are not indices.
    index_of: Literal["", "categories", "image_ids"] = ""
    #: What the column's second axis stands for. A bit is a pair of area range and threshold, and a word has 64 bits.
    width: Literal["", "words", "areas", "bits", "errors"] = ""
    #: ``where(protocol)`` returns whether the column is used; an unused column is empty. None if the column is always
    #: used.
    where: Callable[[Protocol], bool] | None = None

    def shape(self, protocol: Protocol, rows: int) -> tuple[int, ...]:
        """Return the column's shape in a tally with `rows` detections or pairs."""
        rows = rows if self.where is None or self.where(protocol) else 0
        areas = len(protocol.range_names)
        width = {
            "": (),
            "words": (word_count(protocol),),
            "areas": (areas,),
            "bits": (areas * len(protocol.iou_thresholds),),
            "errors": (len(names_of(protocol)),),
        }[self.width]
        return (rows, *width)

    def native(self) -> np.dtype[Any]:
        """Return the dtype in memory."""
        native: np.dtype[Any] = np.dtype(self.dtype).newbyteorder("=")
        return native


def in_file_order(protocol: Protocol) -> bool:
    """Return whether detections need their positions in the file, to break ties in rankings or at a cap."""
    return protocol.ties in BY_FILE or protocol.max_per_category is not None


def rematched(protocol: Protocol) -> bool:
    """Return whether matching is repeated at each score. Repeated matching can change the outcomes of detections with
    higher scores.
    """
    return protocol.matching == BY_OBJECTS


#: The columns of a tally, in the order in which they are saved. A new column of detections must also be added to the
#: code that sorts tallies, see `detmap.kernels.sorting.Rows`.
COLUMNS = (
    Column("category", "<i4", "detection", index_of="categories"),
    Column("image", "<i4", "detection", index_of="image_ids"),
    Column("rank", "<i4", "detection"),
    Column("order", "<i8", "detection", where=in_file_order),
    Column("scores", "<f8", "detection"),
    Column("hit", "<u8", "detection", width="words"),
    Column("ignored", "<u8", "detection", width="words"),
    Column("found", "<i4", "detection", width="bits", where=rematched),
    Column("missed", "<i4", "detection", width="bits", where=rematched),
    Column("alike", "<f8", "detection", width="bits", where=rematched),
    Column("errors", "<f8", "detection", width="errors", where=lambda protocol: bool(names_of(protocol))),
    Column("positive_category", "<i4", "pair", index_of="categories"),
    Column("positive_image", "<i4", "pair", index_of="image_ids"),
    Column("positive_counts", "<i4", "pair", width="areas"),
)

#: Names of the columns used if matching is repeated at each score.
STEPS = ("found", "missed", "alike")

#: Maximum size of the array of hit counts while a saved tally is checked.
_COUNTED = 2**20

#: Maximum number of precision values in the result of a saved tally: 8 GB of float64.
_MOST_PRECISIONS = 2**30


@dataclass(frozen=True, eq=False, kw_only=True)
class Tally(Frozen):
    """The outcome of every detection, and the numbers of positives. Frozen.

    Laws, where ``==`` means equal bits in every derived array, and ``e`` is a tally without images (`empty`):

    * ``e.merge(a) == a == a.merge(e)`` and ``a.merge(b).merge(c) == a.merge(b.merge(c))``;
    * ``a.merge(b) == b.merge(a)``;
    * however the images are split, the merged tallies of the parts equal the tally of the whole.

    The laws hold because ties are broken by stored columns, never by the order of merging. Ties are broken by image and
    rank, and under some protocols first by the position in the file or by the number of hits. Under ``ties="file"`` or
    ``"file-reversed"`` the third law requires parts of one file or table.

    Attributes
    ----------
    protocol : Protocol
        The protocol used for matching.
    categories : tuple of (id, name)
        The K evaluated categories, ascending by id; the single pair ``(None, "all")`` if categories are not used.
    image_ids : ndarray, shape (i,)
        The evaluated images, ascending.
    category, image, rank : ndarray of int32, shape (n,)
        For each detection within the largest cap: the indices of its category and image, and its 0-based rank within
        this category and image.
    order : ndarray of int64, shape (n,) or (0,)
        Position in the file, if the protocol breaks ties by it in rankings or at `Protocol.max_per_category`; else empty.
    scores : ndarray of float64, shape (n,)
        The scores, as given.
    hit, ignored : ndarray of uint64, shape (n, w)
        Bit ``a * T + t`` says whether the detection is a hit, or is ignored, in area range *a* at IoU threshold *t*; the
        levels of the protocol follow its area ranges.
    found, missed : ndarray of int32, shape (n, A * T) or (0, A * T)
        For each bit of `hit`, the changes of the image's number of hits and number of misses when detections of this
        score are added. Empty unless matching is repeated at each score.
    alike : ndarray of float64, shape (n, A * T) or (0, A * T)
        The sum of similarities of orientation over the image at this score; NaN if angles are unknown. Empty unless
        matching is repeated at each score.
    errors : ndarray of float64, shape (n, E) or (0, 0)
        The errors of each detection that matches at `Protocol.error_threshold`; NaN for other detections and for unknown
        errors.
    positive_category, positive_image : ndarray of int32, shape (p,)
        The pairs of category and image that hold ground truth.
    positive_counts : ndarray of int32, shape (p, A)
        Number of positives in each pair and area range.
    ranked : bool
        Whether the detections are in ranking order: by category, descending score, then the tie key.
    notices : mapping of str to int
        Number of occurrences of each notice, by code.
    otherwise : Otherwise or None
        The effect of annotations with the id 0, for a notice; it is not saved.
    clusters : ndarray of int64 or str, shape (i,), or None
        The cluster of each image; intervals and tests resample whole clusters. None if images are independent.
    crowd_index : ndarray of float64, shape (i,), or None
        The crowd index of each image, if the protocol groups images by crowd index; NaN if unknown. None if all are unknown.
    frequencies : mapping of category id to {"r", "c", "f"}
        The frequency group of each category, if the protocol has such groups and the group is known.
    """

    protocol: Protocol
    categories: tuple[tuple[Any, str], ...]
    image_ids: NDArray[Any]
    category: NDArray[np.int32]
    image: NDArray[np.int32]
    rank: NDArray[np.int32]
    order: NDArray[np.int64]
    scores: NDArray[np.float64]
    hit: NDArray[np.uint64]
    ignored: NDArray[np.uint64]
    errors: NDArray[np.float64]
    positive_category: NDArray[np.int32]
    positive_image: NDArray[np.int32]
    positive_counts: NDArray[np.int32]
    ranked: bool = False
    notices: Mapping[str, int] = field(default_factory=dict)
    otherwise: zero_ids.Otherwise | None = None
    clusters: NDArray[Any] | None = None
    crowd_index: NDArray[np.float64] | None = None
    frequencies: Mapping[Any, str] = field(default_factory=dict)
    found: NDArray[np.int32] = field(default_factory=lambda: readonly(np.empty((0, 0)), np.int32))
    missed: NDArray[np.int32] = field(default_factory=lambda: readonly(np.empty((0, 0)), np.int32))
    alike: NDArray[np.float64] = field(default_factory=lambda: readonly(np.empty((0, 0)), np.float64))

    @classmethod
    def empty(cls, protocol: Protocol, categories: tuple[tuple[Any, str], ...]) -> Tally:
        """Return the tally without images, which is the identity element of `merge`."""
        columns: dict[str, Any] = {
            column.name: readonly(np.empty(column.shape(protocol, 0)), column.native()) for column in COLUMNS
        }
        ids = readonly((), np.int64)
        return cls(protocol=protocol, categories=categories, image_ids=ids, ranked=True, **columns)

    def __len__(self) -> int:
        """Return the number of detections."""
        return int(self.scores.size)

    def __repr__(self) -> str:
        counts = f"{len(self)} detections, {self.image_ids.size} images, {len(self.categories)} categories"
        return f"<Tally ({self.protocol.iou_type}): {counts}>"

    def merge(self, *others: Tally) -> Tally:
        """Return the tally of the images of this tally and of all `others`.

        Raises
        ------
        StateError
            If protocols, categories or frequencies of categories differ, if an image is in two tallies, or if only some
            tallies have clusters.
        """
        for part in others:
            if not isinstance(part, Tally):
                raise StateError(f"only a Tally can be merged, not {type(part).__name__}")
        parts = [part for part in (self, *others) if part.image_ids.size]
        for part in others:
            if part.protocol != self.protocol:
                raise StateError("tallies of different protocols cannot be merged")
            if part.categories != self.categories:
                raise StateError("tallies of different categories cannot be merged")
        if not parts:
            return self
        if len({part.image_ids.dtype.kind for part in parts}) > 1:
            raise StateError("image ids are integers in one tally and strings in another")
        images, seen = np.unique(np.concatenate([part.image_ids for part in parts]), return_counts=True)
        if (seen > 1).any():
            raise StateError(f"image {images[np.argmax(seen > 1)].item()!r} is in two tallies")
        if len(parts) == 1:
            return parts[0]
        notices: dict[str, int] = {}
        for part in parts:
            notices = added(notices, part.notices)
        place = [locate(part.image_ids, images).astype(np.int32) for part in parts]
        merged = parts[0].beside(parts[1:], place)
        clusters = _merged_clusters(parts, place)
        merged = replace(
            merged,
            image_ids=readonly(images, images.dtype),
            notices=notices,
            clusters=clusters,
            crowd_index=_merged_crowding(parts, place),
            frequencies=_merged_frequencies(parts),
            otherwise=zero_ids.joined(parts),
        )
        return merged.capped()

    def capped(self) -> Tally:
        """Return the tally without detections beyond `max_per_category`; the remaining detections keep their ranks."""
        most = self.protocol.max_per_category
        if most is None or np.bincount(self.category).max(initial=0) <= most:
            return self
        order = np.lexsort((self.rank, self.image, self.order, -self.scores, self.category))
        place = np.empty(len(self), np.int64)
        place[order] = np.arange(len(self)) - np.searchsorted(self.category[order], self.category[order])
        return self.take(place < most, slice(None))

    def beside(self, others: Sequence[Tally], images: Sequence[NDArray[np.integer]]) -> Tally:
        """Return the rows of this tally followed by the rows of other tallies.

        Parameters
        ----------
        others : sequence of Tally
            Tallies of the same protocol and categories.
        images : sequence of ndarray of int
            For this tally and each other tally, the new index of each image. The caller must replace `image_ids`.
        """
        parts = (self, *others)
        columns: dict[str, Any] = {}
        for column in COLUMNS:
            values = [getattr(part, column.name) for part in parts]
            if column.index_of == "image_ids":
                values = [to[index] for to, index in zip(images, values, strict=True)]
            columns[column.name] = readonly(np.concatenate(values), column.native())
        return replace(self, ranked=False, otherwise=None, **columns)

    def take(self, detections: Any, pairs: Any) -> Tally:
        """Return the tally of some detections and of some pairs of category and image, each selected by a numpy
        index.
        """
        columns: dict[str, Any] = {}
        for column in COLUMNS:
            values = getattr(self, column.name)
            rows = detections if column.per == "detection" else pairs
            columns[column.name] = readonly(values[rows] if len(values) else values, values.dtype)
        return replace(self, **columns)

    def of_categories(self, wanted: NDArray[np.bool_]) -> Tally:
        """Return the tally of the `wanted` categories, a mask of shape (K,)."""
        kept = tuple(pair for pair, keep in zip(self.categories, wanted, strict=True) if keep)
        some = self.take(wanted[self.category], wanted[self.positive_category])
        return some._with_indices("categories", np.cumsum(wanted, dtype=np.int32) - 1, kept)

    def on_images(self, wanted: NDArray[np.bool_]) -> Tally:
        """Return the tally of the `wanted` images, a mask of shape (i,)."""
        kept = readonly(self.image_ids[wanted], self.image_ids.dtype)
        some = self.take(wanted[self.image], wanted[self.positive_image])
        if self.clusters is not None:
            some = replace(some, clusters=readonly(self.clusters[wanted], self.clusters.dtype))
        if self.crowd_index is not None:
            some = replace(some, crowd_index=readonly(self.crowd_index[wanted], np.float64))
        return some._with_indices("image_ids", np.cumsum(wanted, dtype=np.int32) - 1, kept)

    def of_crowd_group(self, name: str) -> NDArray[np.bool_]:
        """Return a mask of the images in a crowd group of the protocol, shape (i,)."""
        if self.crowd_index is None:
            return np.zeros(self.image_ids.size, np.bool_)
        names, stops = zip(*self.protocol.crowd_groups, strict=True)
        known = ~np.isnan(self.crowd_index)
        return np.asarray(known & (np.searchsorted(stops, self.crowd_index, side="right") == names.index(name)))

    def crowd_group(self, name: str) -> Tally:
        """Return the tally of the images in a crowd group of the protocol."""
        return replace(self.on_images(self.of_crowd_group(name)), otherwise=None)

    def pools(self, threads: int | None = None) -> Tally:
        """Return a tally in ranking order whose first category has the detections of all categories. The detections of
        each frequency group form a further category.

        Ties of scores are broken by image, category and rank. Caps apply to the rank of a detection within its original
        category.
        """
        groups = self.protocol.groups
        chosen = [np.ones(len(self.categories), np.bool_), *(self.in_group(group) for group in groups)]
        by_image = np.lexsort((self.rank, self.category, self.image))
        rows = {
            "detection": [by_image[inside[self.category[by_image]]] for inside in chosen],
            "pair": [np.flatnonzero(inside[self.positive_category]) for inside in chosen],
        }
        taken = self.take(*(np.concatenate(rows[per]) for per in ("detection", "pair")))
        columns: dict[str, Any] = {
            name: readonly(np.repeat(np.arange(len(chosen)), [len(own) for own in rows[per]]), np.int32)
            for name, per in (("category", "detection"), ("positive_category", "pair"))
        }
        pools = tuple((name, name) for name in ("all", *groups))
        made = replace(taken, categories=pools, frequencies={}, otherwise=None, ranked=False, **columns)
        return made.in_ranking_order(threads, grouped=True)

    def among(self, categories: tuple[tuple[Any, str], ...]) -> Tally:
        """Return the tally over a larger list of categories, which must include all categories of the tally."""
        if self.categories == categories:
            return self
        place = {pair: k for k, pair in enumerate(categories)}
        to = np.array([place[pair] for pair in self.categories], np.int32)
        return self._with_indices("categories", to, categories)

    def by_image_and_order(self) -> Tally:
        """Return a tally that breaks ties of scores by image first, then by position in the file. If the protocol does
        not use positions, return the tally unchanged.
        """
        if not self.order.size:
            return self
        order = (self.image.astype(np.int64) << 32) | (self.order & (2**32 - 1))
        return replace(self, order=readonly(order, np.int64), ranked=False)

    def _with_indices(self, of: str, to: NDArray[np.integer], things: Any) -> Tally:
        """Replace the attribute `of` (the image ids or the categories) by `things`, and map all indices into it by `to`."""
        columns: dict[str, Any] = {
            column.name: readonly(to[getattr(self, column.name)], column.native())
            for column in COLUMNS
            if column.index_of == of
        }
        return replace(self, **{of: things}, **columns)

    def in_ranking_order(self, threads: int | None = None, *, grouped: bool = False) -> Tally:
        """Return the same tally with its detections in ranking order.

        If `grouped` is true, the rows of each category must be sorted by image and rank.
        """
        if self.ranked:
            return self
        places, starts = self._places(grouped)
        rows = sorting.Rows(*(getattr(self, name) for name in sorting.Rows._fields))
        moved = [*(STEPS if rematched(self.protocol) else ()), *(["errors"] if self.errors.size else ())]
        if moved:  # the kernels do not move these columns, so they are permuted afterwards
            rows = rows._replace(order=readonly(np.arange(len(self)), np.int64))
        category, *made = allocate((len(self), np.int32), *((column.shape, column.dtype) for column in rows))
        ranked = sorting.Rows(*made)
        parallel.run(
            lambda begin, end: sorting.scatter_rows(places, begin, end, rows, ranked),
            parallel.even(len(self), threads),
            threads,
        )
        by_bits = ranked._replace(scores=ranked.scores.view(np.uint64))
        # The rows of a category are contiguous here, so that most categories fit the processor's cache while they are
        # sorted.
        parallel.run(
            lambda begin, end: sorting.sort_rows(starts, begin, end, by_bits, category),
            parallel.cut(starts, threads),
            threads,
        )
        columns: dict[str, Any] = {name: readonly(column, column.dtype) for name, column in ranked._asdict().items()}
        if moved:
            came = columns["order"]
            columns |= {name: readonly(getattr(self, name)[came], getattr(self, name).dtype) for name in moved}
            columns["order"] = readonly(self.order[came] if self.order.size else (), np.int64)
        return replace(self, category=readonly(category, np.int32), ranked=True, **columns)

    def _places(self, grouped: bool) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the new index of each row after grouping by category, and the start of each category."""
        places, starts = np.empty(len(self), np.int32), np.empty(len(self.categories) + 1, np.int64)
        sorting.place_by(self.category, self.tie_order(grouped), places, starts)
        return readonly(places, np.int32), readonly(starts, np.int64)

    def tie_order(self, grouped: bool = False) -> NDArray[np.int32]:
        """Return the rows in the order that breaks ties of scores. The result is empty if the rows are already in this
        order.

        If `grouped` is true, the rows of each category must be sorted by image and rank.
        """
        order = readonly((), np.int32)  # an empty array stands for the rows in their present order
        if not grouped:
            # Within an image, the rows of a category are ordered by rank in every tally.
            by_image, starts = np.empty(len(self), np.int32), np.empty(self.image_ids.size + 1, np.int64)
            sorting.group_by(self.image, order, by_image, starts)
            order = readonly(by_image, np.int32)
        if self.protocol.ties in BY_FILE:
            # Detections of merged files can have equal positions. Images then break the tie, as under ``ties="image"``.
            given = order if order.size else np.arange(len(self))
            key = self.order[given] if self.protocol.ties == "file" else -self.order[given]
            order = readonly(given[np.argsort(key, kind="stable")], np.int32)
        elif self.protocol.ties == "reversed":
            given = order if order.size else np.arange(len(self))
            order = readonly(given[np.argsort(-self.image[given], kind="stable")], np.int32)
        elif self.protocol.ties == HITS_FIRST:
            given = order if order.size else np.arange(len(self))
            order = readonly(given[np.argsort(-self.times_hit()[given], kind="stable")], np.int32)
        return order

    def times_hit(self) -> NDArray[np.int64]:
        """Return the number of IoU thresholds at which each detection is a hit, in the first area range, shape (n,).

        If objects choose detections, a hit at one threshold is a hit at all lower thresholds. So if detections of equal
        score are sorted by descending number, hits precede misses at every threshold.
        """
        out = np.zeros(len(self), np.int64)
        for threshold in range(len(self.protocol.iou_thresholds)):
            out += self.bit(self.hit, 0, threshold)
        return out

    @cached_property
    def class_starts(self) -> NDArray[np.int64]:
        """The start of each category's detections in ranking order, shape (K + 1,)."""
        if self.ranked:
            return readonly(
                np.searchsorted(self.category, np.arange(len(self.categories) + 1, dtype=np.int32)), np.int64
            )
        counts = np.bincount(self.category, minlength=len(self.categories))
        return readonly(np.concatenate(([0], np.cumsum(counts))), np.int64)

    @cached_property
    def positives(self) -> NDArray[np.int64]:
        """The numbers of positives, shape (K, A)."""
        columns = [
            np.bincount(self.positive_category, weights=column, minlength=len(self.categories))
            for column in self.positive_counts.T
        ]
        return readonly(np.stack(columns, axis=1), np.int64)

    @cached_property
    def hits_within(self) -> NDArray[np.int64]:
        """The numbers of hits within each cap, shape (K, M, A, T), of a tally in ranking order."""
        protocol = self.protocol
        shape = (len(protocol.max_dets), len(protocol.range_names), len(protocol.iou_thresholds))
        counts = np.zeros((len(self.categories), shape[0], 64 * self.hit.shape[1]), np.int64)
        matching.count_hits(self.columns(), readonly(protocol.max_dets, np.int64), counts)
        return counts[:, :, : shape[1] * shape[2]].reshape(-1, *shape)

    @property
    def hit_counts(self) -> NDArray[np.int64]:
        """The numbers of hits within the largest cap, shape (K, A, T), of a tally in ranking order."""
        return self.hits_within[:, -1]

    def columns(self) -> matching.Ranked:
        """Return the columns of detections that kernels read, in ranking order."""
        return matching.Ranked(self.class_starts, self.rank, self.scores, self.hit, self.ignored)

    def parts(self, threads: int | None = None) -> Iterator[Tally]:
        """Yield the whole tally as a single part."""
        yield self

    def every_notice(self, detections: int | None = None) -> dict[str, int]:
        """Return `notices`, and notices that follow from the tally: no detections, categories without ground truth.

        `detections` is the number of detections; it is needed only if the tally does not store them.
        """
        found = self.positives[:, 0] > 0
        own = {
            "no_detections": int(not (len(self) if detections is None else detections)),
            self._empty(): int((~found).sum()),
        }
        if self.protocol.groups and self.protocol.use_categories:
            known = np.array([key in self.frequencies for key, _ in self.categories], np.bool_)
            own["missing_frequency"] = int((found & ~known).sum())
        return {**self.notices, **{code: count for code, count in own.items() if count}}

    def _empty(self) -> str:
        """Return the code of the notice that counts categories without ground truth."""
        return "empty_categories" if self.protocol.empty_classes == "undefined" else "zero_categories"

    def ignored_counts(self, area: int) -> NDArray[np.int64]:
        """Return the number of detections ignored in an area range within the largest cap, shape (K, T)."""
        thresholds = len(self.protocol.iou_thresholds)
        bits = np.zeros(64 * self.ignored.shape[1], np.uint8)
        bits[area * thresholds : (area + 1) * thresholds] = 1
        mask = np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)
        return self._count(readonly(self.ignored & mask, np.uint64))[:, area]

    def _count(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        shape = (len(self.categories), len(self.protocol.range_names), len(self.protocol.iou_thresholds))
        counts = np.zeros((shape[0], 64 * words.shape[1]), np.int64)
        matching.count_bits(self.class_starts, words, counts)
        return counts[:, : shape[1] * shape[2]].reshape(shape)

    def in_group(self, group: str) -> NDArray[np.bool_]:
        """Return a mask of the categories in a frequency group, shape (K,)."""
        return np.array([self.frequencies.get(key) == group for key, _ in self.categories], np.bool_)

    def bit(self, words: NDArray[np.uint64], area: int, threshold: int) -> NDArray[np.bool_]:
        """Return the flags in `words` (`hit` or `ignored`) for one area range and threshold, shape (n,)."""
        bit = area * len(self.protocol.iou_thresholds) + threshold
        return np.asarray(words[:, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1), np.bool_)

    def to_bytes(self) -> bytes:
        """Return the tally in a form that `from_bytes` reads on any machine; equal tallies give equal bytes."""
        tally = self.in_ranking_order()
        order = np.lexsort((tally.positive_category, tally.positive_image))
        tally = tally.take(slice(None), order)
        strings = tally.image_ids.dtype.kind == "U"
        header = {
            "protocol": self.protocol.decisions(),
            "categories": self.categories,
            "image_ids": tally.image_ids.tolist() if strings else None,
            "rows": [tally.image_ids.size, len(tally), tally.positive_image.size],
            "notices": dict(sorted(self.notices.items())),
            **({} if self.clusters is None else {"clusters": self.clusters.tolist()}),
            **({} if self.crowd_index is None else {"crowd_index": _or_none(self.crowd_index)}),
            **(
                {"frequencies": [self.frequencies.get(key, "") for key, _ in self.categories]}
                if self.frequencies
                else {}
            ),
        }
        return seal(
            "tally",
            header,
            *([] if strings else [tally.image_ids.astype("<i8")]),
            *(getattr(tally, column.name).astype(column.dtype) for column in COLUMNS),
        )

    @classmethod
    def from_bytes(cls, data: bytes, protocol: Protocol | None = None) -> Tally:
        """Return the tally that `to_bytes` saved.

        Parameters
        ----------
        data : bytes
            May come from an untrusted source: every value is checked, and no more memory is used than the data takes up.
        protocol : Protocol, optional
            The only protocol that is accepted; by default any.

        Raises
        ------
        StateError
            If the data is damaged, cut short, of another version or protocol, or holds values that no tally has.
        """
        import msgspec

        from detmap.detection.tally_header import Header

        content, payload = unseal("tally", data)
        try:
            header = msgspec.convert(content, Header, strict=True)
            unknown = set(header.protocol) - set(Protocol.__dataclass_fields__)
            if unknown:  # the saved protocol has decisions of a later version
                raise StateError(f"its protocol decides {shorten(min(unknown))}, which this version does not know")
            saved = msgspec.convert(header.protocol, Protocol)
        except (msgspec.ValidationError, DetmapError, RecursionError) as error:
            raise StateError(f"not a tally: {error}") from None
        if protocol is not None and saved != protocol:
            raise StateError(f"a tally under the protocol {saved.name!r}, which is not the one expected here")
        return _restore(header, saved, payload)


def _or_none(values: NDArray[np.float64]) -> list[float | None]:
    """Return values with NaN replaced by None."""
    return [None if value != value else value for value in values.tolist()]


def _merged_clusters(parts: Sequence[Tally], place: Sequence[NDArray[np.integer]]) -> NDArray[Any] | None:
    """Return the clusters of merged tallies in the new order of images; None if no tally has clusters."""
    known = [part.clusters for part in parts if part.clusters is not None]
    if not known:
        return None
    if len(known) < len(parts):
        raise StateError("the clusters of images are known in one tally and not in another")
    if len({one.dtype.kind for one in known}) > 1:
        raise StateError("clusters are integers in one tally and strings in another")
    joined = np.concatenate(known)
    joined[np.concatenate(place)] = joined.copy()
    return readonly(joined, joined.dtype)


def _merged_crowding(parts: Sequence[Tally], place: Sequence[NDArray[np.integer]]) -> NDArray[np.float64] | None:
    """Return the crowd indices of merged tallies in the new order of images; None if no tally has any."""
    if all(part.crowd_index is None for part in parts):
        return None
    joined = np.full(sum(part.image_ids.size for part in parts), np.nan)
    for part, to in zip(parts, place, strict=True):
        if part.crowd_index is not None:
            joined[to] = part.crowd_index
    return readonly(joined, np.float64)


def _merged_frequencies(parts: Sequence[Tally]) -> dict[Any, str]:
    """Return the union of the category frequencies of merged tallies."""
    made: dict[Any, str] = {}
    for part in parts:
        for category, group in part.frequencies.items():
            if made.setdefault(category, group) != group:
                raise StateError(f"the frequency of category {category!r} is {made[category]!r} and {group!r}")
    return made


def _restore(header: Header, protocol: Protocol, payload: memoryview) -> Tally:
    """Return the tally of a header and its columns, checking every value."""
    images, areas = header.rows[0], len(protocol.range_names)
    columns = _columns(header, protocol, payload)
    columns.update(_of_images(header, protocol, columns["image_ids"]))
    frequencies = _frequencies(header, protocol)
    categories = len(header.categories)
    shape = (categories, areas, len(protocol.max_dets), len(protocol.iou_thresholds), len(protocol.recall_thresholds))
    category, scores = columns["category"], columns["scores"]
    place = columns["image"].astype(np.int64)
    key = {
        "file": columns["order"],
        "file-reversed": -columns["order"],
        "image": (place << 32) | columns["rank"],
        "reversed": ((images - 1 - place) << 32) | columns["rank"],
        HITS_FIRST: (place << 32) | columns["rank"],
    }[protocol.ties]
    tied = (category[1:] == category[:-1]) & (scores[1:] == scores[:-1])
    identities = [identity for identity, _ in header.categories]
    sizes_of = {"categories": categories, "image_ids": images}
    wrong = {
        "categories that repeat": len(set(identities)) < categories,
        "categories that are neither all integers nor all strings": not _of_one_kind(identities, protocol),
        "too many rankings": _product(shape) > _MOST_PRECISIONS,
        "image ids that do not ascend": columns["image_ids"].size != images
        or (columns["image_ids"][1:] <= columns["image_ids"][:-1]).any(),
        "an index out of range": _outside(columns["rank"], protocol.max_dets[-1])
        or any(_outside(columns[one.name], sizes_of[one.index_of]) for one in COLUMNS if one.index_of),
        "a negative count": (columns["positive_counts"] < 0).any() or min(header.notices.values(), default=0) < 0,
        "a score that is no number": np.isnan(scores).any(),
        "a negative place in the file": columns["order"].min(initial=0) < 0,
        "an error that is negative": (columns["errors"] < 0).any(),
        "detections that are not in ranking order": (category[1:] < category[:-1]).any()
        or ((category[1:] == category[:-1]) & (scores[1:] > scores[:-1])).any()
        or (protocol.ties != HITS_FIRST and (key[1:] <= key[:-1])[tied].any()),
    }
    for problem, found in wrong.items():
        if found:
            raise StateError(f"not a tally: {problem}")
    listed = tuple((identity, name) for identity, name in header.categories)
    tally = Tally(
        protocol=protocol, categories=listed, ranked=True, notices=header.notices, frequencies=frequencies, **columns
    )
    for problem, found in (
        ("pairs with ground truth that do not ascend", (np.diff(_cells(tally, "positive_")) <= 0).any()),
        ("a bit of no threshold", _beyond_thresholds(tally)),
        ("a detection that is a hit and ignored at once", (tally.hit & tally.ignored).any()),
        ("ranks that are not those of the scores", _misranked(tally)),
        ("more hits than positives", _too_many_hits(tally)),
        ("misses ahead of hits", protocol.ties == HITS_FIRST and _misses_first(tally, key, tied)),
    ):
        if found:
            raise StateError(f"not a tally: {problem}")
    return zero_ids.unknown(tally)


def _columns(header: Header, protocol: Protocol, payload: memoryview) -> dict[str, Any]:
    """Return the columns of the payload, and the image ids, which are in the payload or the header."""
    images, detections, pairs = header.rows
    if min(header.rows) < 0:
        raise StateError("not a tally: a number of rows is negative")
    rows = {"detection": detections, "pair": pairs}
    layout = {column.name: (column.dtype, column.shape(protocol, rows[column.per])) for column in COLUMNS}
    if header.image_ids is None:
        layout = {"image_ids": ("<i8", (images,)), **layout}
    sizes = [8 * _product(shape) if dtype[2] == "8" else 4 * _product(shape) for dtype, shape in layout.values()]
    if sum(sizes) != len(payload):
        raise StateError(f"not a tally: {len(payload)} bytes of columns where {sum(sizes)} were announced")
    columns: dict[str, Any] = {}
    at = 0
    for (name, (dtype, shape)), size in zip(layout.items(), sizes, strict=True):
        column = np.frombuffer(payload[at : at + size], dtype).reshape(shape)
        native = column.dtype.newbyteorder("=")
        columns[name] = readonly(column.astype(native), native)  # an aligned copy
        at += size
    if header.image_ids is not None:
        ids = np.array(header.image_ids) if header.image_ids else np.empty(0, "U1")
        columns["image_ids"] = readonly(ids, ids.dtype)
    return columns


def _of_images(header: Header, protocol: Protocol, image_ids: NDArray[Any]) -> dict[str, Any]:
    """Return the columns of the header that have one value per image."""
    images = header.rows[0]
    columns = {}
    if header.clusters is not None:
        if len(header.clusters) != images or len({type(one) for one in header.clusters}) > 1:
            raise StateError("not a tally: clusters that are not one of each image, all integers or all strings")
        columns["clusters"] = cluster_column(header.clusters, image_ids, "tally")
    if header.crowd_index is not None:
        if len(header.crowd_index) != images or not protocol.crowd_groups:
            raise StateError("not a tally: crowd indices that are not one of each image")
        if any(one is not None and not abs(one) < np.inf for one in header.crowd_index):
            raise StateError("not a tally: a crowd index that is no number")
        columns["crowd_index"] = readonly([np.nan if one is None else one for one in header.crowd_index], np.float64)
    return columns


def _frequencies(header: Header, protocol: Protocol) -> dict[Any, str]:
    """Return the known frequencies of categories."""
    if header.frequencies is None:
        return {}
    if len(header.frequencies) != len(header.categories) or not protocol.groups:
        raise StateError("not a tally: frequencies that are not one of each category")
    return {key: group for (key, _), group in zip(header.categories, header.frequencies, strict=True) if group}


def _misses_first(tally: Tally, key: NDArray[np.int64], tied: NDArray[np.bool_]) -> bool:
    """Return whether detections of equal score are not sorted by descending `times_hit`, then by `key`.

    `tied` flags successive detections of the same category and score.
    """
    hits = tally.times_hit()
    more, same = hits[1:] > hits[:-1], hits[1:] == hits[:-1]
    return bool((tied & (more | (same & (key[1:] <= key[:-1])))).any())


def _of_one_kind(ids: Sequence[Any], protocol: Protocol) -> bool:
    """Return whether category ids are all integers or all strings, or a single None if categories are not used."""
    if not protocol.use_categories:
        return list(ids) == [None]
    kinds = {type(identity) for identity in ids}
    return kinds <= {int} or kinds <= {str}


def _cells(tally: Tally, prefix: str = "", rows: Any = slice(None)) -> NDArray[np.int64]:
    """Return for each detection a number that identifies its image and category. With the prefix ``positive_``, return
    the numbers of the pairs of image and category with objects.
    """
    image, category = (getattr(tally, prefix + name)[rows].astype(np.int64) for name in ("image", "category"))
    return np.asarray(image * len(tally.categories) + category)


def _beyond_thresholds(tally: Tally) -> bool:
    """Return whether a bit is set that belongs to no area range and threshold."""
    used = len(tally.protocol.range_names) * len(tally.protocol.iou_thresholds)
    rest = np.uint64(0) if used % 64 == 0 else ~np.uint64((1 << used % 64) - 1)
    return any(bool((words[:, -1] & rest).any()) for words in (tally.hit, tally.ignored))


def _misranked(tally: Tally) -> bool:
    """Return whether an image and category has ranks other than 0, 1, 2, … by descending score."""
    rows, starts = np.empty(len(tally), np.int32), np.empty(tally.image_ids.size + 1, np.int64)
    sorting.group_by(tally.image, readonly((), np.int32), rows, starts)
    cells, places = _cells(tally, rows=rows), np.arange(rows.size)
    first = np.append(True, cells[1:] != cells[:-1])[: rows.size]
    by_rank = np.maximum.accumulate(np.where(first, places, 0)) + tally.rank[rows]  # destination of each row
    if by_rank.max(initial=-1) >= rows.size or (cells[by_rank] != cells).any():
        return True
    filled, scores = np.zeros(rows.size, np.bool_), np.empty(rows.size)
    filled[by_rank], scores[by_rank] = True, tally.scores[rows]
    return not filled.all() or bool((scores[1:] > scores[:-1])[~first[1:]].any())


def _too_many_hits(tally: Tally) -> bool:
    """Return whether an image has more hits than positives; such a tally would overflow the bootstrap's buffers."""
    rows = np.flatnonzero(tally.hit.any(axis=1))
    place = locate(_cells(tally, rows=rows), _cells(tally, "positive_"))
    order = np.argsort(place, kind="stable")
    pairs, first = np.unique(place[order], return_index=True)
    if pairs.size and pairs[0] < 0:  # a hit where the image has no ground truth of the category
        return True
    words, starts = readonly(tally.hit[rows[order]], np.uint64), np.append(first, rows.size)
    areas, thresholds = len(tally.protocol.range_names), len(tally.protocol.iou_thresholds)
    step = 1 + _COUNTED // (64 * words.shape[1])
    for begin in range(0, pairs.size, step):
        some = pairs[begin : begin + step]
        counts = np.zeros((some.size, 64 * words.shape[1]), np.int64)
        matching.count_bits(readonly(starts[begin : begin + some.size + 1], np.int64), words, counts)
        most = counts[:, : areas * thresholds].reshape(-1, areas, thresholds).max(axis=2)
        if (most > tally.positive_counts[some]).any():
            return True
    return False


def _outside(column: NDArray[Any], size: int) -> bool:
    return bool(column.size) and not (column.min() >= 0 and column.max() < size)


def _product(shape: Sequence[int]) -> int:
    """Return the product in Python integers, because untrusted factors may overflow."""
    total = 1
    for length in shape:
        total *= length
    return total


def word_count(protocol: Protocol) -> int:
    """Return the number of 64-bit words for a detection's flags, one bit for each area range and threshold."""
    return -(-len(protocol.range_names) * len(protocol.iou_thresholds) // 64)
