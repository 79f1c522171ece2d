"""Subsets of ground truth by images and categories, with the detections on them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.federated import CategoryLists
from detmap.data.ids import Categories, Images, locate
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, did_you_mean, shorten
from detmap.kernels import readonly

#: Ids or names of the images or categories of a subset.
Chosen = Sequence[Any]


def subset(ground_truth: GroundTruth, images: Chosen | None = None, categories: Chosen | None = None) -> GroundTruth:
    """Return ground truth of some images and categories. The result keeps the whole table as its attribute `whole`,
    because detections may be on images that are left out.

    Images are given by id or by file name, with or without folder and extension. Categories are given by id or name.
    Raises `InputError` for an image or category that the ground truth does not have.
    """
    names = ground_truth.images.names or ()
    image_names = [
        dict.fromkeys(filter(None, (name, os.path.basename(name), os.path.splitext(os.path.basename(name))[0])))
        for name in names
    ]
    of_image = _mask(ground_truth, "image", ground_truth.images.ids, image_names, images)
    category_names = [{name} for name in ground_truth.categories.names]
    of_category = _mask(ground_truth, "category", ground_truth.categories.ids, category_names, categories)
    kept = of_image[ground_truth.images.codes] & of_category[ground_truth.categories.codes]
    made = ground_truth.take(kept)
    places = tuple((np.cumsum(mask) - 1).astype(np.int32) for mask in (of_image, of_category))

    def lists(given: CategoryLists | None) -> CategoryLists | None:
        if given is None:
            return None
        own = of_image[given.images] & of_category[given.categories]
        image, category = places[0][given.images[own]], places[1][given.categories[own]]
        return CategoryLists.of_pairs(image, category, int(of_category.sum()), given.listed[of_image])

    return replace(
        made,
        images=_images(made.images, of_image, places[0]),
        categories=_categories(made.categories, of_category, places[1]),
        negatives=lists(made.negatives),
        not_exhaustive=lists(made.not_exhaustive),
        present=lists(made.present),
        whole=ground_truth,
    )


def within(detections: Detections, ground_truth: GroundTruth) -> Detections:
    """Drop the detections on images, or of categories, that a subset of ground truth leaves out."""
    whole = ground_truth.whole
    if whole is None:
        return detections
    kept = np.ones(len(detections), np.bool_)
    for own, every, some in (
        (detections.images, whole.images.ids, ground_truth.images.ids),
        (detections.categories, whole.categories.ids, ground_truth.categories.ids),
    ):
        left_out = (locate(own.ids, every) >= 0) & (locate(own.ids, some) < 0)
        kept &= ~left_out[own.codes] if left_out.size else True
    return detections if kept.all() else detections.take(kept)


def _mask(
    truth: GroundTruth, what: str, ids: NDArray[Any], names: Sequence[Iterable[str]], chosen: Chosen | None
) -> NDArray[np.bool_]:
    """Return a mask of the `ids` that are chosen by id or by name."""
    if chosen is None:
        return np.ones(ids.size, np.bool_)
    mask = np.zeros(ids.size, np.bool_)
    at: dict[str, list[int]] = {}
    for place, called in enumerate(names):
        for name in called:
            at.setdefault(name, []).append(place)
    for place, one in enumerate(ids.tolist()):
        at[str(one)] = [place]
    for one in map(str, chosen):
        if one not in at:
            many = {"image": "images", "category": "categories"}[what]
            raise InputError(
                f"is no {what} of the ground truth{did_you_mean(one, at)}",
                source=truth.source,
                field=many,
                value=one,
                remedy=f"it has {ids.size:,} {many}, such as {', '.join(shorten(name) for name in list(at)[:3])}",
            )
        if len(at[one]) > 1:
            raise InputError(
                f"is the name of {len(at[one])} images", source=truth.source, value=one, remedy="give their ids"
            )
        mask[at[one]] = True
    return mask


def _codes(codes: NDArray[np.int32], place: NDArray[np.int32]) -> NDArray[np.int32]:
    return readonly(place[codes], np.int32)


def _images(images: Images, mask: NDArray[np.bool_], place: NDArray[np.int32]) -> Images:
    def some(column: NDArray[Any] | None) -> Any:
        return None if column is None else readonly(column[mask], column.dtype)

    around = images.surroundings
    if around is not None:
        racks = mask[around.rack_images]
        around = replace(
            around,
            places=readonly(around.places[mask], np.float64),
            rack_images=readonly(place[around.rack_images[racks]], np.int64),
            rack_centres=readonly(around.rack_centres[racks], np.float64),
            rack_sizes=readonly(around.rack_sizes[racks], np.float64),
            rack_rotations=readonly(around.rack_rotations[racks], np.float64),
        )
    order = None if images.order is None else np.argsort(np.argsort(images.order[mask]))
    return replace(
        images,
        ids=some(images.ids),
        codes=_codes(images.codes, place),
        sizes=some(images.sizes),
        names=None if images.names is None else tuple(np.array(images.names, object)[mask].tolist()),
        order=None if order is None else readonly(order, np.int64),
        clusters=some(images.clusters),
        crowd_index=some(images.crowd_index),
        surroundings=around,
    )


def _categories(categories: Categories, mask: NDArray[np.bool_], place: NDArray[np.int32]) -> Categories:
    def some(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return None if values is None else tuple(one for one, kept in zip(values, mask.tolist(), strict=True) if kept)

    return replace(
        categories,
        ids=readonly(categories.ids[mask], categories.ids.dtype),
        codes=_codes(categories.codes, place),
        names=tuple(np.array(categories.names, object)[mask].tolist()),
        frequencies=some(categories.frequencies),
        limbs=some(categories.limbs),
    )


def chosen_of(given: str | os.PathLike[str] | Sequence[Any], option: str) -> list[str]:
    """Return the values of an option, given as a sequence, as the path of a file with a value per line, or as
    comma-separated text.
    """
    if not isinstance(given, str | os.PathLike):
        found = list(map(str, given))
    elif os.path.isfile(given):
        try:
            with open(given, encoding="utf-8-sig") as file:
                found = file.read().splitlines()
        except UnicodeDecodeError:
            raise InputError("is not a text file in UTF-8", source=os.fspath(given)) from None
    else:
        found = os.fspath(given).split(",")
    found = [name.strip() for name in found if name.strip()]
    if not found:
        raise InputError("names nothing: nothing would be scored", source=option, remedy="leave it out to score all")
    return found
