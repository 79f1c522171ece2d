"""Distinct ids, each record's index among them, and attributes of images and categories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import columns
from detmap.errors import InputError, OptionError, shorten
from detmap.kernels import Frozen, readonly
from detmap.shapes.boxes import extremes, over_rows
from detmap.shapes.kinds import Surroundings

T = TypeVar("T", bound="Ids")

#: The cluster of each image: a mapping from image ids, or one value per image in the order of the images.
Clusters: TypeAlias = Mapping[Any, Any] | ArrayLike


class Strings(NamedTuple):
    """A column of strings."""

    #: Index into `values` for each row; shape (n,).
    codes: NDArray[np.int32]
    #: The distinct strings in order of first appearance.
    values: list[str]


@dataclass(frozen=True, eq=False, repr=False)
class Ids(Frozen):
    """Distinct ids, and each record's index among them."""

    #: The distinct ids, ascending; shape (k,).
    ids: NDArray[Any]
    #: Each record's index into `ids`; shape (n,).
    codes: NDArray[np.int32]

    @property
    def values(self) -> NDArray[Any]:
        """An alias of `ids`, to be removed in version 0.2."""
        return self.ids

    def take(self: T, rows: NDArray[Any]) -> T:
        """Return the same ids for some of the records, given by indices or a boolean mask, without checking them again."""
        return replace(self, codes=readonly(self.codes[rows], np.int32))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.ids.size}, of {self.codes.size} records>"


@dataclass(frozen=True, eq=False, repr=False)
class Images(Ids):
    """Images, and each record's index among them; `ids` include images without objects."""

    #: Height and width of each image in pixels, 0 if unknown, shape (i, 2); None if all are unknown.
    sizes: NDArray[np.int64] | None = None
    #: File name of each image, "" if unknown; None if all are unknown.
    names: tuple[str, ...] | None = None
    #: The position of each image in the given list or file; None without a list, or if the list is ascending.
    order: NDArray[np.int64] | None = None
    #: The cluster of each image; None if images are independent. Images that depend on each other, such as frames of a
    #: video, share a cluster: the bootstrap draws whole clusters, and permutation tests exchange whole clusters.
    clusters: NDArray[Any] | None = None
    #: CrowdPose's ``crowdIndex`` of each image, NaN if unknown; None if all are unknown.
    crowd_index: NDArray[np.float64] | None = None
    #: The pose and the surroundings of the ego vehicle in each image; None if unknown.
    surroundings: Surroundings | None = None

    @property
    def heights(self) -> NDArray[np.int64] | None:
        """The heights, shape (i,), as in `sizes`."""
        return None if self.sizes is None else self.sizes[:, 0]

    @property
    def widths(self) -> NDArray[np.int64] | None:
        """The widths, shape (i,), as in `sizes`."""
        return None if self.sizes is None else self.sizes[:, 1]

    def among(self, ids: NDArray[Any]) -> Images:
        """Extend the images to a larger, ascending array of ids. Attributes of added images are unknown; if there are
        clusters, each added image forms a new cluster.
        """
        at = locate(self.ids, ids)

        def spread(column: NDArray[Any] | None, otherwise: Any) -> NDArray[Any] | None:
            if column is None:
                return None
            made = np.empty((ids.size, *column.shape[1:]), np.result_type(column.dtype, np.asarray(otherwise).dtype))
            made[...] = otherwise
            made[at] = column
            return readonly(made, made.dtype)

        clusters, known = self.clusters, np.zeros(ids.size, np.bool_)
        known[at] = True
        fresh: Any = ids.astype(np.str_)
        if clusters is not None and clusters.dtype.kind == "i":
            fresh = clusters.max(initial=0) + np.cumsum(~known)
        names = dict(zip(self.ids.tolist(), self.names or (), strict=False))
        return replace(
            self,
            ids=readonly(ids, ids.dtype),
            codes=readonly(at[self.codes] if at.size else (), np.int32),
            sizes=spread(self.sizes, np.int64(0)),
            names=None if self.names is None else tuple(names.get(one, "") for one in ids.tolist()),
            order=None,
            clusters=spread(clusters, fresh),
            crowd_index=spread(self.crowd_index, np.nan),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Categories(Ids):
    """Categories, and each record's index among them; `ids` include categories without objects."""

    names: tuple[str, ...]
    #: Frequency of each category in LVIS's training data: r (rare), c (common) or f (frequent), "" if unknown; None if
    #: all are unknown.
    frequencies: tuple[str, ...] | None = None
    #: The limbs of each category's poses, from COCO's ``skeleton``. A limb is a pair of points, counted from 0. A
    #: category with unknown limbs has (). None if all are unknown. Used for pictures.
    limbs: tuple[tuple[tuple[int, int], ...], ...] | None = None


def categories_given(category_ids: Any, labels: Any) -> Any:
    """Return the categories, given as `category_ids` or its synonym `labels`; None if neither is given."""
    if category_ids is not None and labels is not None:
        raise OptionError("category_ids and labels are two names for the same: give one of them")
    return labels if category_ids is None else category_ids


def index_ids(ids: ArrayLike | Ids, *, source: str, field: str) -> Ids:
    """Return the distinct ids, ascending, and each record's index. Raises `InputError` unless the ids are all integers
    or all strings. If `Ids` are given, their ids must be distinct and all in use, but may be in any order.
    """
    if isinstance(ids, Ids):
        given = ids.ids
        if ids.codes.dtype == np.int32 and bool((given[1:] > given[:-1]).all()):
            return Ids(readonly(given, given.dtype), readonly(ids.codes, np.int32))
        ascending = np.argsort(given, kind="stable")
        place = np.empty(ascending.size, np.int32)
        place[ascending] = np.arange(ascending.size)
        return Ids(readonly(given[ascending], given.dtype), readonly(place[ids.codes], np.int32))
    if isinstance(ids, list | tuple) and set(map(type, ids)) == {str}:
        columns.check_null(ids, source=source, field=field)
        return index_ids(coded(ids, source, field), source=source, field=field)
    values = columns.identifiers(ids, source=source, field=field)
    if not values.size:
        return Ids(readonly((), np.int64), readonly((), np.int32))
    if values.dtype.kind == "i":
        low, high = map(int, extremes(values))
        # For dense ids a table from the smallest to the largest id is faster than sorting; it takes up to 10 MB more.
        if high - low < min(64 * values.size, 8 * values.size + 1_000_000):
            seen, codes = np.zeros(high - low + 1, np.bool_), np.empty(values.size, np.int32)

            def see(begin: int, end: int) -> None:
                seen[values[begin:end] - low] = True

            def look_up(begin: int, end: int) -> None:
                codes[begin:end] = place[values[begin:end] - low]

            over_rows(see, values.size)
            place = np.cumsum(seen, dtype=np.int32) - np.int32(1)
            over_rows(look_up, values.size)
            return Ids(readonly(np.flatnonzero(seen) + low, np.int64), readonly(codes, np.int32))
    distinct, index = np.unique(values, return_inverse=True)
    return Ids(readonly(distinct, distinct.dtype), readonly(index.reshape(-1), np.int32))


#: Regular expression that matches every string that `float` parses as 0, and few other strings, because `float` is
#: slow. Some zeros are not ASCII, and with a large negative exponent any digits are parsed as 0.
_ZERO = r"\s*[+-]?(?:(?:[0.]|[^\x00-\x7f])[\d._]*(?:[eE][+-]?[\d_]+)?|[\d._]+[eE]-[\d_]+)\s*"


def zeros(ids: Sequence[Any]) -> NDArray[np.bool_]:
    """Return a mask of the ids that become 0 when pycocotools writes them into a float64 array. Strings are parsed, too."""
    may_be = re.compile(_ZERO).fullmatch
    rows = [row for row, one in enumerate(ids) if (may_be(one) if isinstance(one, str) else one == 0)]
    made = np.zeros(len(ids), np.bool_)
    for row in rows:
        with suppress(ValueError):
            made[row] = not isinstance(ids[row], str) or float(ids[row]) == 0
    return made


def index_among(ids: ArrayLike | Ids, listed: ArrayLike | Ids | None, source: str, field: str, plural: str) -> Ids:
    """Return the index of each of the `ids` among the `listed` ids, or among all distinct `ids` if `listed` is None."""
    own = index_ids(ids, source=source, field=field)
    if listed is None:
        return own
    known = index_ids(listed, source=source, field=plural).ids
    place = locate(own.ids, known)
    if (place < 0).any():
        missing = int(np.argmax(place < 0))
        raise InputError(
            f"is not among the {plural}",
            source=source,
            record=int(np.argmax(own.codes == missing)),
            field=field,
            value=own.ids[missing].item(),
            remedy=f"list it under {plural} or leave out the record",
        )
    return Ids(known, readonly(place.astype(np.int32)[own.codes], np.int32))


def used(table: Ids, rows: NDArray[Any]) -> Ids:
    """Return the ids of the records `rows`, without ids that no record uses."""
    codes = table.codes[rows]
    seen = np.zeros(table.ids.size, np.bool_)
    seen[codes] = True
    place = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    ids = table.ids[seen]
    if not ids.size:
        return Ids(readonly((), np.int64), readonly((), np.int32))
    return Ids(readonly(ids, ids.dtype), readonly(place[codes], np.int32))


def coded(strings: Sequence[str], source: str | None = None, field: str = "id") -> Ids:
    """Return the distinct strings and the index of each given string. An array would pad every string to the longest,
    so none is made.
    """
    distinct = list(dict.fromkeys(strings))
    places = dict(zip(distinct, range(len(distinct)), strict=True))
    codes = np.fromiter(map(places.__getitem__, strings), np.int32, len(strings))
    return Ids(columns.texts(distinct, source=source, field=field), codes)


#: Advice in errors about a detection on an image that the ground truth does not have.
OF_ONE_DATA_SET = (
    "are both of one data set? Such detections are dropped with unknown_images='ignore' (--unknown-images ignore)"
)


def unknown_image(source: str, record: int | str, image: object, field: str | None = None) -> InputError:
    """Return the error about a detection on an image that the ground truth does not have."""
    problem = "is not an image of the ground truth"
    return InputError(problem, source=source, record=record, field=field, value=image, remedy=OF_ONE_DATA_SET)


def locate(ids: NDArray[Any], within: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of each of `ids` in the ascending array `within`, -1 if absent."""
    if not within.size or not ids.size or (ids.dtype.kind == "i") != (within.dtype.kind == "i"):
        return np.full(ids.size, -1, np.int64)
    place = np.minimum(np.searchsorted(within, ids), within.size - 1)
    return np.where(within[place] == ids, place, -1)


def check_chosen(ids: Any, what: str) -> None:
    """Refuse an empty selection of ids."""
    if ids is not None and np.size(list(ids) if isinstance(ids, set | frozenset) else ids) == 0:
        raise InputError("is empty: nothing would be scored", source="evaluate", field=what, remedy="None scores all")


def select(ids: Sequence[Any] | ArrayLike, known: NDArray[Any], what: str) -> NDArray[np.bool_]:
    """Return a mask of the `known` ids that `ids` selects; raise `InputError` for an unknown id."""
    if isinstance(ids, str | bytes):
        raise InputError("is a single string", source="evaluate", field=what, remedy=f"for one write [{ids!r}]")
    if not isinstance(ids, np.ndarray | Ids | Iterable):
        raise InputError("is not a sequence of ids", source="evaluate", field=what, remedy=f"for one write [{ids!r}]")
    if not isinstance(ids, np.ndarray | Ids):
        ids = list(ids)  # accept sets and iterators
    wanted = index_ids(ids, source="evaluate", field=what).ids
    place = locate(wanted, known)
    if (place < 0).any():
        raise InputError(
            "is not in the ground truth", source="evaluate", field=what, value=wanted[int(np.argmax(place < 0))].item()
        )
    mask = np.zeros(known.size, np.bool_)
    mask[place] = True
    return mask


def sizes_of_images(sizes: Any, images: Any, known: NDArray[Any], source: str) -> NDArray[np.int64] | None:
    """Return the given sizes of `images` in the order of the `known` images."""
    if sizes is None:
        return None
    values = _listed_images(images, source)
    given = np.asarray(sizes)
    if given.shape != (len(values), 2):
        raise InputError(
            f"shape {given.shape} where {len(values)} x 2 was expected", source=source, field="image_sizes"
        )
    out = np.zeros((known.size, 2), np.int64)
    out[locate(values, known)] = given
    return readonly(out, np.int64)


def cluster_column(clusters: Clusters, images: NDArray[Any], source: str) -> NDArray[Any]:
    """Return the cluster of each of the `images`, shape (i,)."""
    if isinstance(clusters, Mapping):
        known = images.tolist()
        lacking = [image for image in known if image not in clusters]
        if lacking:
            raise InputError(
                f"{len(lacking)} of {len(known)} images are in no cluster, the first of them {shorten(lacking[0])}",
                source=source,
                field="clusters",
                remedy="give every image a cluster; one that depends on no other is a cluster of its own",
            )
        clusters = [clusters[image] for image in known]
    column = index_ids(clusters, source=source, field="clusters")
    if column.codes.size != images.size:
        raise InputError(f"{column.codes.size} clusters for {images.size} images", source=source, field="clusters")
    return readonly(column.ids[column.codes], column.ids.dtype)


def _listed_images(images: Any, source: str) -> NDArray[Any]:
    """Return the ids of images in the order of the given list."""
    if isinstance(images, Ids):
        return np.asarray(images.ids[images.codes])
    return columns.identifiers(images, source=source, field="images")


def order_of_images(images: Any, known: NDArray[Any], source: str) -> NDArray[np.int64] | None:
    """Return the index of each of the `known` images in the given list; None if the list is ascending."""
    if images is None:
        return None
    values = _listed_images(images, source)
    if values.size < 2 or bool((values[1:] > values[:-1]).all()):
        return None
    order = np.empty(known.size, np.int64)
    # reversed, so that an image listed twice keeps its first index
    order[locate(values[::-1], known)] = np.arange(values.size)[::-1]
    return readonly(order, np.int64)
