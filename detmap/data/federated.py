"""Federated data sets such as LVIS: the categories that annotators looked for on each image.

Annotators did not look for every category on every image. For each image, ground truth may list the categories that
annotators looked for and did not find (``neg_category_ids``), and the categories whose objects may not all be annotated
(``not_exhaustive_category_ids``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import index_ids, locate
from detmap.errors import InputError, is_id
from detmap.kernels import Frozen, readonly

#: The category ids of each image by image id; images may be missing.
Lists: TypeAlias = Mapping[Any, Sequence[Any]]

#: Maximum size in bytes of a lookup table, which has one byte per pair of image and category.
_TABLE = 1 << 28

#: Frequency groups of categories: rare, common, frequent.
FREQUENCIES = ("r", "c", "f")


@dataclass(frozen=True, eq=False)
class CategoryLists(Frozen):
    """A list of categories for each image."""

    #: The pairs of an image and a category listed for the image, sorted by image and category, without repetitions.
    #: Both arrays are indices into the ids of the ground truth; shape (p,).
    images: NDArray[np.int32]
    categories: NDArray[np.int32]
    #: Mask of the images that have a list, even if it is empty; shape (i,).
    listed: NDArray[np.bool_]

    @classmethod
    def of(cls, lists: Lists, images: NDArray[Any], categories: NDArray[Any], source: str, field: str) -> CategoryLists:
        """Return checked lists; categories that the ground truth lacks are left out."""
        if not isinstance(lists, Mapping):
            problem = f"must be a mapping of image id to category ids, not {type(lists).__name__}"
            raise InputError(problem, source=source, field=field)
        rows = {image: row for row, image in enumerate(images.tolist())}
        codes, sizes, ids = _flat(lists, rows) or _checked(lists, rows, source, field)
        listed = np.zeros(images.size, np.bool_)
        listed[codes] = True
        found = index_ids(ids, source=source, field=field)
        known = locate(found.ids, categories)[found.codes]
        own_image = np.repeat(np.array(codes, np.int64), sizes)
        return cls.of_pairs(own_image[known >= 0], known[known >= 0], categories.size, listed)

    @classmethod
    def of_pairs(
        cls, images: NDArray[Any], categories: NDArray[Any], count: int, listed: NDArray[np.bool_]
    ) -> CategoryLists:
        """Return the lists that hold the given pairs of image and category; `count` is the number of categories."""
        cells = np.sort(images.astype(np.int64) * max(count, 1) + categories)
        cells = cells[np.diff(cells, prepend=-1) > 0]  # ten times as fast as numpy.unique
        image, category = np.divmod(cells, max(count, 1))
        return cls(readonly(image, np.int32), readonly(category, np.int32), readonly(listed, np.bool_))

    def holds(self, images: NDArray[Any], categories: NDArray[Any], count: int) -> NDArray[np.bool_]:
        """Return a mask of the pairs of image and category that are listed; `count` is the number of categories."""
        return among((self.images, self.categories), (images, categories), (self.listed.size, count))

    def spread(self, at: NDArray[Any], count: int) -> CategoryLists:
        """Return the lists for a table of `count` images, in which image *i* has the index ``at[i]``; new images have
        no list.
        """
        listed = np.zeros(count, np.bool_)
        listed[at] = self.listed
        return CategoryLists(readonly(at[self.images], np.int32), self.categories, readonly(listed, np.bool_))

    def by_image(self, images: NDArray[Any], categories: NDArray[Any]) -> dict[Any, list[Any]]:
        """Return the lists as a dict from image ids to category ids; images without a list are left out."""
        made: dict[Any, list[Any]] = {image: [] for image in images[self.listed].tolist()}
        ids = categories[self.categories].tolist()
        for image, category in zip(images[self.images].tolist(), ids, strict=True):
            made[image].append(category)
        return made


def _flat(lists: Lists, rows: Mapping[Any, int]) -> tuple[list[int], list[int], list[Any]] | None:
    """Return the row of each image that has a list, the number of ids in each list, and the concatenated ids. Return None
    unless every list is a Python list or tuple, and all ids have one type, as in files.
    """
    own = list(lists.values())
    if not {*map(type, own)} <= {list, tuple}:
        return None
    codes, ids = [rows.get(image, -1) for image in lists], list(chain.from_iterable(own))
    if -1 in codes or {*map(type, ids)} not in ({int}, {str}):
        return None
    return codes, list(map(len, own)), ids


def _checked(lists: Lists, rows: Mapping[Any, int], source: str, field: str) -> tuple[list[int], list[int], list[Any]]:
    """Return the same as `_flat` for other types of lists and ids; raise `InputError` for an invalid id or unknown image."""
    codes: list[int] = []
    sizes: list[int] = []
    ids: list[Any] = []
    types: set[type] = set()
    for image, given in lists.items():
        row = rows.get(image)
        own = given.tolist() if isinstance(given, np.ndarray) else given
        if row is None or not isinstance(own, list | tuple | set | frozenset):
            problem = "the image is not among the images" if row is None else "must be a list of category ids"
            about: dict[str, Any] = {} if row is None else {"value": given}
            raise InputError(problem, source=source, record=f"image {image!r}", field=field, **about)
        kinds = {*map(type, own)}
        if not kinds <= types:  # ids of types that were checked before
            for one in own:
                whole = isinstance(one, float) and one.is_integer()  # columns of ids may have dtype float
                if not (whole or is_id(one)):
                    problem, record = "must hold ids, integers or strings", f"image {image!r}"
                    raise InputError(problem, source=source, record=record, field=field, value=one)
            types |= kinds
        codes.append(row)
        sizes.append(len(own))
        ids += own
    if len({issubclass(one, str) for one in types}) > 1:
        raise InputError("ids must be all integers or all strings", source=source, field=field)
    return codes, sizes, ids


def among(
    pairs: tuple[NDArray[Any], NDArray[Any]], wanted: tuple[NDArray[Any], NDArray[Any]], sizes: tuple[int, int]
) -> NDArray[np.bool_]:
    """Return a mask of the `wanted` pairs of image and category that are in `pairs`; a category of -1 is in no pair."""
    images, categories = sizes
    known, asked = (image.astype(np.int64) * max(categories, 1) + category for image, category in (pairs, wanted))
    if images * categories <= _TABLE:  # a lookup table takes a twentieth of the time of a search
        table = np.zeros(max(images * categories, 1), np.bool_)
        table[known] = True
        found = table[asked]
    else:
        found = np.isin(asked, known)
    return np.asarray(found & (wanted[1] >= 0))


def frequency_column(frequencies: Mapping[Any, str] | None, categories: NDArray[Any], source: str) -> Any:
    """Return the frequency of each category, "" if unknown; None if all are unknown."""
    if frequencies is None:
        return None
    for category, value in frequencies.items():
        if not (isinstance(value, str) and value in FREQUENCIES):
            raise InputError(
                "must be r, c or f: rare, common, frequent",
                source=source,
                record=f"category {category!r}",
                field="frequency",
                value=value,
            )
    column = tuple(frequencies.get(category, "") for category in categories.tolist())
    return column if any(column) else None
