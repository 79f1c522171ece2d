"""The mergeable outcome of matching segments: the IoU of every matched pair, and counts by image and category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.segments import Classes
from detmap.errors import OptionError, shorten
from detmap.panoptic.rules import Rules

#: Groups of categories that metrics average: all, things, stuff.
GROUPS = ("", "_things", "_stuff")

#: Panoptic, segmentation and recognition quality.
QUALITIES = ("PQ", "SQ", "RQ")

#: The metrics averaged over categories, in the order in which a result lists them.
METRICS = tuple(f"{quality}{group}" for group in GROUPS for quality in QUALITIES)


class Sums(NamedTuple):
    """The summed ``iou`` of matched pairs, and the numbers ``tp``, ``fp`` and ``fn``, by category; shapes (..., K)."""

    iou: NDArray[np.float64]
    tp: NDArray[np.float64]
    fp: NDArray[np.float64]
    fn: NDArray[np.float64]

    def qualities(self) -> NDArray[np.float64]:
        """Return PQ, SQ and RQ of each category, shape (3, ..., K); NaN for a category without segments.

        Kirillov, A., K. He, R. Girshick, C. Rother and P. Dollár, Panoptic segmentation (2019). The operations are in the
        order of panopticapi's `PQStat.pq_average`, so PQ equals SQ times RQ only up to rounding.
        """
        total = self.tp + 0.5 * self.fp + 0.5 * self.fn
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.iou / total, np.where(self.tp > 0, self.iou / self.tp, 0.0), self.tp / total
        return np.stack([np.where(total > 0, one, np.nan) for one in found])

    def means(self, things: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the means of PQ, SQ and RQ over all categories, things and stuff, shape (..., 9), ordered as `METRICS`.

        Values are summed in the order of the categories, as in panopticapi. A mean is NaN if no category of its group has
        segments.
        """
        qualities = self.qualities()
        columns = []
        for group in (np.ones(things.size, np.bool_), things, ~things):
            some = qualities[..., group]
            known = ~np.isnan(some[0])
            number = known.sum(axis=-1)
            for one in some:
                total = np.add.accumulate(np.where(known, one, 0.0), axis=-1)[..., -1:].sum(axis=-1)
                columns.append(np.where(number > 0, total / np.maximum(number, 1), np.nan))
        return np.stack(columns, axis=-1)


@dataclass(frozen=True, eq=False)
class PanopticTally:
    """The outcome of matching.

    Attributes
    ----------
    classes : Classes
        The K categories.
    image_ids : ndarray of int64 or str, shape (i,)
        The images, in the order in which their IoUs are summed.
    match_image, match_category : ndarray of int32, shape (m,)
        Image index and category index of each matched pair, in the order in which IoUs are summed.
    match_iou : ndarray of float64, shape (m,)
        IoU of each matched pair.
    cell_image, cell_category : ndarray of int32, shape (c,)
        Image index and category index of each cell, in ascending order. A cell is an image and a category that has
        segments on the image.
    cell_counts : ndarray of int64, shape (c, 4)
        For each cell, the numbers of matched pairs, false segments, missed segments, and ground-truth segments that are
        not crowd regions.
    rules : Rules
        The rules of the evaluation, such as the number of parts in which IoUs are summed.
    notices : dict of str to int
        Counts of unusual features of the input.
    clusters : ndarray of int64 or str, shape (i,), or None
        The cluster of each image; None if images are independent.
    """

    classes: Classes
    image_ids: NDArray[Any]
    match_image: NDArray[np.int32]
    match_category: NDArray[np.int32]
    match_iou: NDArray[np.float64]
    cell_image: NDArray[np.int32]
    cell_category: NDArray[np.int32]
    cell_counts: NDArray[np.int64]
    rules: Rules = field(default_factory=Rules)
    notices: dict[str, int] = field(default_factory=dict)
    clusters: NDArray[Any] | None = None

    @property
    def categories(self) -> tuple[tuple[Any, str], ...]:
        """The K categories as (id, name)."""
        return tuple(zip(self.classes.ids, self.classes.names, strict=True))

    def __repr__(self) -> str:
        return f"<PanopticTally: {len(self.image_ids):,} images, {self.match_iou.size:,} matched segments>"

    def counts(self) -> NDArray[np.int64]:
        """Return the numbers of matched pairs, false segments, missed segments and ground-truth segments of each category,
        shape (K, 4).
        """
        out = np.zeros((len(self.classes.ids), 4), np.int64)
        np.add.at(out, self.cell_category, self.cell_counts)
        return out

    def sums(self) -> Sums:
        """Return the sums over all images. The images are divided into `Rules.parts` parts. IoUs are summed within each
        part first, and then over the parts.
        """
        number, images, parts = len(self.classes.ids), len(self.image_ids), min(self.rules.parts, len(self.image_ids))
        iou = np.zeros(number)
        if parts:
            larger, least = images % parts, images // parts
            ends = np.cumsum([least + (part < larger) for part in range(parts)])
            starts = np.searchsorted(self.match_image, [0, *ends.tolist()])
            for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                # bincount adds in order, starting from 0.0
                iou = iou + np.bincount(self.match_category[begin:end], self.match_iou[begin:end], number)
        counts = self.counts().astype(np.float64)
        return Sums(iou, counts[:, 0], counts[:, 1], counts[:, 2])

    def weighted(self, weights: NDArray[Any]) -> Sums:
        """Return the sums if image *i* counts ``weights[i]`` times. Weights of 1 give `sums`, up to rounding."""
        number, own = len(self.classes.ids), weights[self.cell_image]

        def total(categories: NDArray[np.int32], values: NDArray[Any]) -> NDArray[np.float64]:
            return np.bincount(categories, values, number).astype(np.float64, copy=False)

        iou = total(self.match_category, self.match_iou * weights[self.match_image])
        return Sums(iou, *(total(self.cell_category, self.cell_counts[:, at] * own) for at in range(3)))

    def merge(self, *others: PanopticTally) -> PanopticTally:
        """Return the tally of all images: first the images of this tally, then the images of `others`.

        Raises
        ------
        OptionError
            If the tallies have different categories or rules, if an image is in two tallies, or if only some tallies
            have clusters.
        """
        parts = (self, *others)
        for one in others:
            same = one.classes.ids == self.classes.ids and np.array_equal(one.classes.things, self.classes.things)
            if not same or one.rules != self.rules:
                raise OptionError("only tallies of the same categories and rules can be merged")
        ids = np.concatenate([one.image_ids for one in parts])
        known, times = np.unique(ids, return_counts=True)
        if known.size < ids.size:
            raise OptionError(f"image {shorten(known[times > 1][0].item())} is in two of the tallies")
        if any((one.clusters is None) != (self.clusters is None) for one in parts):
            raise OptionError("only some of the tallies have clusters")
        first = np.cumsum([0, *(len(one.image_ids) for one in parts)])
        notices: dict[str, int] = {}
        for one in parts:
            for code, count in one.notices.items():
                notices[code] = notices.get(code, 0) + count

        def joined(name: str, moved: bool = False) -> Any:
            columns = [getattr(one, name) + (first[at] if moved else 0) for at, one in enumerate(parts)]
            return np.concatenate(columns).astype(getattr(self, name).dtype)

        return replace(
            self,
            image_ids=ids,
            match_image=joined("match_image", True),
            match_category=joined("match_category"),
            match_iou=joined("match_iou"),
            cell_image=joined("cell_image", True),
            cell_category=joined("cell_category"),
            cell_counts=joined("cell_counts"),
            notices=notices,
            clusters=None if self.clusters is None else np.concatenate([one.clusters for one in parts]),
        )

    def in_ranking_order(self, threads: int | None = None) -> PanopticTally:
        """Return the tally unchanged, because segments have no ranking."""
        return self

    def objects(self) -> NDArray[np.int64]:
        """Return rows of category, image and number of ground-truth segments, without rows of 0 segments."""
        held = self.cell_counts[:, 3] > 0
        return np.column_stack((self.cell_category, self.cell_image, self.cell_counts[:, 3]))[held].astype(np.int64)

    @classmethod
    def of_segments(
        cls,
        classes: Classes,
        image_ids: Sequence[Any],
        outcomes: Sequence[tuple[NDArray[Any], NDArray[Any]]],
        iou: NDArray[np.float64],
        rules: Rules,
        notices: dict[str, int],
    ) -> PanopticTally:
        """Return the tally of all images. `outcomes` has four items: matched pairs, false segments, missed segments and
        all ground-truth segments. Each item is an array of image indices and an array of category indices. `iou` holds
        the IoU of each matched pair.
        """
        number = max(len(classes.ids), 1)
        keys = [image.astype(np.int64) * number + category for image, category in outcomes]
        cells, place = np.unique(np.concatenate(keys), return_inverse=True)
        column = np.repeat(np.arange(4), [key.size for key in keys])
        counts = np.bincount(4 * place.reshape(-1) + column, minlength=4 * cells.size).reshape(-1, 4)
        image, category = np.divmod(cells, number)
        return cls(
            classes,
            np.array(image_ids, np.int64 if not len(image_ids) else None),
            outcomes[0][0].astype(np.int32),
            outcomes[0][1].astype(np.int32),
            iou,
            image.astype(np.int32),
            category.astype(np.int32),
            counts,
            rules,
            notices,
        )
