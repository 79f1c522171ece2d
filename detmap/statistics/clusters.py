"""Units of resampling: images, or clusters of dependent images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Clusters, cluster_column, index_ids
from detmap.detection.tally import Tally
from detmap.panoptic.tally import PanopticTally
from detmap.shapes import find

T = TypeVar("T", bound=Tally | PanopticTally)


class Units(NamedTuple):
    """The independent units of a data set."""

    #: Number of units.
    number: int
    #: The unit of each image, shape (i,), numbered in the order in which units first occur; None if every image is a unit.
    of: NDArray[np.int32] | None
    #: The plural noun for the units, which is "images", "videos", "samples" or "clusters".
    name: str

    def over_images(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of each image's unit, shape (..., i), given values by unit, shape (..., number)."""
        return values if self.of is None else values[..., self.of]

    def totals(self, images: NDArray[np.integer], counts: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum of `counts` in each unit, shape (number,); ``counts[j]`` belongs to image ``images[j]``."""
        unit = images if self.of is None else self.of[images]
        return np.bincount(unit, np.asarray(counts, np.float64), self.number).astype(np.float64, copy=False)

    def any_of(self, images: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for each unit, shape (..., number), whether any of its images is flagged in `images`, shape (..., i)."""
        if self.of is None:
            return images
        order = np.argsort(self.of, kind="stable")
        starts = np.searchsorted(self.of[order], np.arange(self.number))
        return np.logical_or.reduceat(images[..., order], starts, axis=-1) if self.number else images


def independent(unit: str) -> str:
    """Return the sentence that states the assumption of independence."""
    return f"{'clusters of images' if unit == 'clusters' else unit} are taken as independent of each other"


def balanced(objects: NDArray[Any]) -> float:
    """Return the effective number of clusters: the number of clusters of equal size that would estimate the standard
    error equally precisely. `objects` are the numbers of objects of the clusters.

    The effective number is the mean of two terms: the number of clusters with objects, and ``sum(objects) ** 2 /
    sum(objects ** 2)``. Simulated 95 % intervals for ten clusters of 5 to 40 images covered the AP in 91.9 % of 800
    data sets with the first term alone, and in 94.2 % with the second alone.

    Kish, L., Survey Sampling (1965); Carter, A., K. Schnepel and D. Steigerwald, Asymptotic behavior of a t-test robust to
    cluster heterogeneity, Review of Economics and Statistics 99 (2017), 698-709.
    """
    held = objects[objects > 0].astype(np.float64)
    if not held.size:
        return 0.0
    return (held.size + float(held.sum()) ** 2 / float((held**2).sum())) / 2


def units_of(tally: Tally | PanopticTally) -> Units:
    """Return the units of a tally."""
    scene = "image" if isinstance(tally, PanopticTally) else find(tally.protocol.iou_type).scene
    return units_among(tally.clusters, int(tally.image_ids.size), f"{scene}s")


def units_among(clusters: NDArray[Any] | None, images: int, name: str = "images") -> Units:
    """Return clusters as units. If there are no clusters, each image is a unit; `images` is the number of images, and
    `name` their plural noun.
    """
    if clusters is None:
        return Units(images, None, name)
    codes = index_ids(clusters, source="tally", field="clusters").codes
    _, first = np.unique(codes, return_index=True)
    number = np.empty(first.size, np.int32)
    number[np.argsort(first)] = np.arange(first.size)
    return Units(int(first.size), number[codes], "clusters")


def clustered(tally: T, clusters: Clusters | None) -> T:
    """Return the tally with `clusters`, which are given by image id or in the order of ``tally.image_ids``. If
    `clusters` is None, return the tally unchanged.
    """
    if clusters is None:
        return tally
    return replace(tally, clusters=cluster_column(clusters, tally.image_ids, "clusters"))
