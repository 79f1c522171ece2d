"""Tallies of some images or categories, or among more categories: the evaluator cuts and joins them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import readonly
from detmap.tally import Tally


def with_file_order(tally: Tally) -> Tally:
    """Return the tally with the image's place ahead of the place within the image in what breaks ties."""
    if not tally.order.size:
        return tally
    order = (tally.image.astype(np.int64) << 32) | (tally.order & (2**32 - 1))
    return replace(tally, order=readonly(order, np.int64), ranked=False)


def among(tally: Tally, categories: tuple[tuple[Any, str], ...]) -> Tally:
    """Return the tally as one of more categories."""
    if tally.categories == categories:
        return tally
    place = {pair: k for k, pair in enumerate(categories)}
    to = np.array([place[pair] for pair in tally.categories], np.int32)
    return replace(
        tally,
        categories=categories,
        category=readonly(to[tally.category], np.int32),
        positive_category=readonly(to[tally.positive_category], np.int32),
    )


def _rows(tally: Tally, kept: NDArray[np.bool_], kept_pairs: NDArray[np.bool_], **changes: Any) -> Tally:
    """Return the tally with some of its detections and of its pairs only; `changes` replace whole columns before."""
    tally = replace(tally, **changes)
    columns: dict[str, Any] = {}
    for name in ("category", "image", "rank", "order", "scores", "hit", "ignored"):
        column = getattr(tally, name)
        columns[name] = readonly(column[kept] if len(column) else column, column.dtype)
    for name in ("positive_category", "positive_image", "positive_counts"):
        column = getattr(tally, name)
        columns[name] = readonly(column[kept_pairs], column.dtype)
    return replace(tally, **columns)


def of_categories(tally: Tally, wanted: NDArray[np.bool_]) -> Tally:
    """Return the tally of some of its categories."""
    place = (np.cumsum(wanted) - 1).astype(np.int32)
    return _rows(
        tally,
        wanted[tally.category],
        wanted[tally.positive_category],
        categories=tuple(pair for pair, kept in zip(tally.categories, wanted, strict=True) if kept),
        category=place[tally.category],
        positive_category=place[tally.positive_category],
    )


def on_images(tally: Tally, wanted: NDArray[np.bool_]) -> Tally:
    """Return the tally of some of its images."""
    place = (np.cumsum(wanted) - 1).astype(np.int32)
    return _rows(
        tally,
        wanted[tally.image],
        wanted[tally.positive_image],
        image_ids=readonly(tally.image_ids[wanted], tally.image_ids.dtype),
        image=place[tally.image],
        positive_image=place[tally.positive_image],
    )
