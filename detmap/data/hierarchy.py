"""Apply Open Images' label hierarchy and verified image labels to tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.data.federated import CategoryLists
from detmap.data.ids import Categories, Ids, locate, used
from detmap.data.notices import added
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, shorten
from detmap.kernels import Frozen, readonly

T = TypeVar("T", GroundTruth, Detections)

#: Maximum depth of a hierarchy.
_DEEPEST = 100

#: Maximum number of labels above a label. A label on several paths counts several times.
_MOST = 10_000


@dataclass(frozen=True, eq=False)
class Hierarchy(Frozen):
    """The labels above and below each label of a hierarchy."""

    #: The labels above a label, nearest first, and the labels below a label. As in TensorFlow's program, a label on
    #: several paths occurs several times, and an object is then copied several times. The root is not a label.
    above: Mapping[str, tuple[str, ...]]
    below: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, document: Any, source: str = "hierarchy") -> Hierarchy:
        """Parse the published JSON, in which a node has ``LabelName``, and ``Subcategory`` if there are labels
        below.
        """
        above, below, _ = _flattened(document, source, 0, root=True)
        if not above:
            raise InputError("has no labels below its root", source=source, field="Subcategory")
        most = max(above, key=lambda name: len(above[name]), default="")
        if most and len(above[most]) > _MOST:
            raise InputError(f"has more than {_MOST:,} labels above {shorten(most)}", source=source)
        return cls({name: tuple(names) for name, names in above.items()}, {k: tuple(v) for k, v in below.items()})


def _flattened(
    node: Any, source: str, depth: int, root: bool = False
) -> tuple[dict[str, list[str]], dict[str, list[str]], list[str]]:
    """Return the labels above each label, the labels below each label, and all labels in the subtree at a node. The
    root of the hierarchy is no label.
    """
    if not isinstance(node, Mapping) or not isinstance(node.get("LabelName", "" if root else None), str):
        raise InputError("must be an object with a LabelName", source=source, value=node)
    children = node.get("Subcategory", [])
    if not isinstance(children, list) or depth > _DEEPEST:
        problem = "must be a list" if depth <= _DEEPEST else f"goes deeper than {_DEEPEST} levels"
        raise InputError(problem, source=source, record=node["LabelName"], field="Subcategory")
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    inside: list[str] = []
    for child in children:
        own_above, own_below, own = _flattened(child, source, depth + 1)
        for whole, part in ((above, own_above), (below, own_below)):
            for name, names in part.items():
                whole[name] = [*whole.get(name, ()), *names]
        inside += own
        if len(inside) > 10 * _MOST:
            raise InputError(f"repeats labels more than {10 * _MOST:,} times", source=source)
    if not root:
        name = node["LabelName"]
        for names in above.values():
            names.append(name)
        above[name], below[name] = [], inside
        inside = [name, *inside]
    return above, below, inside


def expanded(table: T, hierarchy: Hierarchy) -> T:
    """Return the table with a copy of each row, directly after the row, for every label above the row's label.

    The verified labels of images are extended, too. If a label is present on an image, so is every label above it. If a
    label is absent, so is every label below it. Labels that the hierarchy lacks are unchanged, with a notice.

    Raises
    ------
    InputError
        If category ids are numbers.
    """
    categories = table.categories
    if categories.ids.dtype.kind == "i" and categories.ids.size:
        problem = f"categories have numbers, such as {categories.ids[0]}, and a hierarchy has names of labels"
        raise InputError(problem, source=table.source, field="hierarchy")
    names: list[str] = categories.ids.tolist()
    every, listed = _listed(names, hierarchy.above)
    place = {name: k for k, name in enumerate(every)}
    unknown = sum(name not in hierarchy.above for name in names)
    notices = added(table.notices, {"labels_outside_hierarchy": unknown} if unknown else {})
    counts = np.array([len(one) for one in listed], np.int64)
    times = counts[categories.codes] if names else np.zeros(0, np.int64)
    rows = np.repeat(np.arange(times.size), times)
    made = replace(table.take(rows), notices=notices)
    if not names:
        return made
    starts = np.cumsum(counts) - counts
    within = np.arange(rows.size) - np.repeat(np.cumsum(times) - times, times)
    flat = np.array([code for codes in listed for code in codes], np.int32)
    codes = readonly(flat[starts[categories.codes[rows]] + within], np.int32)
    ids = np.array(every)
    column = readonly(ids, ids.dtype)
    if isinstance(made, Detections):
        return replace(made, categories=used(Ids(column, codes), np.arange(codes.size)))
    called = dict(zip(names, table.categories.names, strict=True))
    new = Categories(column, codes, tuple(called.get(name, name) for name in every))
    below = [[place[one] for one in hierarchy.below.get(name, ()) if one in place] for name in names]
    up = [own[1:] for own in listed]
    return replace(
        made,
        categories=new,
        present=_lists(table.present, [place[name] for name in names], up, len(every)),
        negatives=_lists(table.negatives, [place[name] for name in names], below, len(every)),
        not_exhaustive=_lists(table.not_exhaustive, [place[name] for name in names], [[]] * len(names), len(every)),
    )


def _listed(names: Sequence[str], above: Mapping[str, Sequence[str]]) -> tuple[list[str], list[list[int]]]:
    """Return all given labels and the labels above them, in ascending order. Also return, for each given label, its
    index and the indices of the labels above it.
    """
    own = [[name, *above.get(name, ())] for name in names]
    every = sorted({label for labels in own for label in labels})
    place = {label: k for k, label in enumerate(every)}
    return every, [[place[label] for label in labels] for labels in own]


def _lists(
    lists: CategoryLists | None, to: Sequence[int], more: Sequence[Iterable[int]], count: int
) -> CategoryLists | None:
    """Replace each category *k* in the lists by the category ``to[k]`` and the categories ``more[k]``."""
    if lists is None:
        return None
    every = [[own, *others] for own, others in zip(to, more, strict=True)]
    times = np.array([len(one) for one in every], np.int64)[lists.categories]
    flat = [one for category in lists.categories.tolist() for one in every[category]]
    return CategoryLists.of_pairs(np.repeat(lists.images, times), np.array(flat, np.int64), count, lists.listed)


def with_image_labels(
    table: GroundTruth, images: Ids, labels: Ids, present: NDArray[np.bool_], source: str
) -> GroundTruth:
    """Add verified labels, present or absent, to ground truth. Images and categories that occur only in the labels are
    added, too.
    """
    for what, own, others in (("image", table.images, images), ("category", table.categories, labels)):
        if own.ids.size and others.ids.size and own.ids.dtype.kind != others.ids.dtype.kind:
            problem = f"{what} ids such as {shorten(others.ids[0].item())} are never those of {table.source}, such as "
            raise InputError(problem + shorten(own.ids[0].item()), source=source)
    parts = [np.union1d(own.ids, others.ids) if own.ids.size else np.unique(others.ids)
             for own, others in ((table.images, images), (table.categories, labels))]  # fmt: skip
    image_ids, category_ids = (readonly(part, part.dtype) for part in parts)
    made_images = replace(table.images.among(image_ids), clusters=None)
    called = dict(zip(table.categories.ids.tolist(), table.categories.names, strict=True))
    to = locate(table.categories.ids, category_ids)
    made_categories = Categories(
        category_ids,
        readonly(to[table.categories.codes] if to.size else (), np.int32),
        tuple(called.get(one, str(one)) for one in category_ids.tolist()),
    )
    image = locate(images.ids, image_ids)[images.codes]
    category = locate(labels.ids, category_ids)[labels.codes]
    lists = []
    for rows in (present, ~present):
        listed = np.zeros(image_ids.size, np.bool_)
        listed[image] = True  # an image with verified labels has a list in both columns, even if empty
        lists.append(CategoryLists.of_pairs(image[rows], category[rows], category_ids.size, listed))
    return replace(table, images=made_images, categories=made_categories, present=lists[0], negatives=lists[1])
