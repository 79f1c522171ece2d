"""Splits of the images, such as public and private, and their metrics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.batch.finding import PathLike
from detmap.data.ids import locate
from detmap.data.tables import GroundTruth
from detmap.detection.tally import Tally
from detmap.errors import InputError, OptionError, shorten
from detmap.formats.image_values import image_key, image_values
from detmap.kernels import readonly

#: Valid name of a split. A name must not begin like a metric (AP, AR or mAP), so that ``split:metric`` is unambiguous.
_NAME = re.compile(r"(?!m?A[PR])[\w.+ -]{1,40}")


_MOST = 100


@dataclass(frozen=True, eq=False)
class Splits:
    """The split of each image of the ground truth.

    Attributes
    ----------
    names : tuple of str
        The names of the splits, in the order of the file.
    codes : ndarray of uint8, shape (i,)
        The split of each image, as an index in `names`, in the order of the ground truth's images.
    """

    names: tuple[str, ...]
    codes: NDArray[np.uint8]

    @classmethod
    def read(cls, source: PathLike | Mapping[Any, str], ground_truth: GroundTruth) -> Splits:
        """Read a file of splits.

        Parameters
        ----------
        source : path or mapping
            A CSV file with the columns ``image`` (an id) and ``split`` (a name); or a JSON object or mapping from image id
            to the name of the split.
        ground_truth : GroundTruth
            The ground truth; each of its images must be in one split.

        Raises
        ------
        InputError
            If the file cannot be read, or an image is unknown, given twice, or in no split.
        """
        given, name = image_values(source, "split")
        ids = ground_truth.images.ids
        rows = [(place, image_key(image, ids), split) for place, image, split in given]
        for place, _, split in rows:
            if not isinstance(split, str) or not _NAME.fullmatch(split):
                raise InputError(
                    "is no name of a split: at most 40 letters, digits, spaces and . + - _, not beginning as a metric does",
                    source=name, record=place, field="split", value=split,
                )  # fmt: skip
        names = tuple(dict.fromkeys(split for _, _, split in rows))
        if len(names) > _MOST:
            raise InputError(f"has {len(names)} splits, and {_MOST} are the most", source=name)
        for place, image, _ in rows:
            if image is None:
                raise InputError(
                    "is not an image of the ground truth", source=name, record=place, field="image",
                    remedy="leave out the line",
                )  # fmt: skip
        codes = np.full(ids.size, 255, np.uint8)
        where = locate(np.array([image for _, image, _ in rows], ids.dtype), ids) if rows else np.empty(0, np.int64)
        for (place, image, split), at in zip(rows, where.tolist(), strict=True):
            if codes[at] != 255:
                raise InputError("is given twice", source=name, record=place, field="image", value=image)
            codes[at] = names.index(split)
        left = codes == 255
        if left.any():
            raise InputError(
                f"{int(left.sum())} of {ids.size} images of the ground truth are in no split, the first of them "
                f"{shorten(ids[int(np.argmax(left))].item())}",
                source=name,
                remedy="give every image a split",
            )
        return cls(names, readonly(codes, np.uint8))

    def images(self, split: str) -> NDArray[np.bool_]:
        """Mask of the ground truth's images that are in a split, shape (i,)."""
        return np.asarray(self.codes == self.names.index(split))

    def parts(self, tally: Tally) -> Iterator[tuple[str, Tally]]:
        """Yield the name of every split, and the tally of the images of the split."""
        for name in self.names:
            yield name, tally.on_images(self.images(name))

    def to_list(self) -> list[Any]:
        """Return plain values that identify these splits among all splits of the same images."""
        return [list(self.names), self.codes.tobytes().hex()]


def split_of(metric: str, splits: Collection[str]) -> str | None:
    """Return the split of a metric ("public" for ``public:AP``); None for a metric of all images."""
    name = metric.partition(":")[0]
    return name if name in splits and name != metric else None


def of_splits(metrics: Iterable[str], splits: Iterable[str], hidden: Collection[str] = ()) -> list[str]:
    """Return the names of metrics for all images and for each split. If any split is `hidden`, its metrics and the
    metrics of all images are left out, because both reveal information about the split.
    """
    known = list(metrics)
    whole = [] if hidden else known
    return whole + [f"{split}:{metric}" for split in splits if split not in hidden for metric in known]


def check_hidden(hidden: Collection[str], splits: Collection[str]) -> None:
    """Raise `OptionError` if a split to hide does not exist, or if no split would stay visible."""
    for name in hidden:
        if name not in splits:
            there = f"one of: {', '.join(splits)}" if splits else "there are none without --splits FILE"
            raise OptionError(f"no split {shorten(name)} to hide; {there}")
    if splits and set(splits) <= set(hidden):
        raise OptionError("all splits are hidden: nothing would be left to rank by")
