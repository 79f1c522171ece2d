"""Splits of the images, such as public and private: which image is in which, and what each of them scores."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.batch.finding import PathLike
from detmap.errors import InputError, OptionError, shorten
from detmap.formats._source import read_bytes
from detmap.ids import locate
from detmap.kernels import readonly
from detmap.tables import GroundTruth
from detmap.tally import Tally

#: No metric of the whole is called as one of a split: those begin so.
_NAME = re.compile(r"(?!m?A[PR])[\w.+ -]{1,40}")

#: An integer as JSON and CSV have it, zeros ahead included: int() reads "0_1", "+1" and digits of every script too.
_WHOLE = re.compile(r"-?[0-9]{1,19}")

_MOST = 100
_REMEDY = 'a CSV file has the columns image and split; JSON is {"image": "split", …}'


@dataclass(frozen=True, eq=False)
class Splits:
    """Which image of the ground truth is in which split.

    Attributes
    ----------
    names : tuple of str
        In the order of the file.
    codes : ndarray of uint8, shape (i,)
        Each image's split, in the order of the ground truth's images.
    """

    names: tuple[str, ...]
    codes: NDArray[np.uint8]

    @classmethod
    def read(cls, source: PathLike | Mapping[Any, str], ground_truth: GroundTruth) -> Splits:
        """Read a file of splits.

        Parameters
        ----------
        source : path or mapping
            A CSV file with the columns ``image`` (an id) and ``split`` (a name); a JSON object, or a mapping, of id to name.
        ground_truth : GroundTruth
            Each of whose images must be in one split.

        Raises
        ------
        InputError
            Where it cannot be read, an image is unknown, given twice or in no split.
        """
        given, name = _read(source)
        ids = ground_truth.images.ids
        rows = [(place, _key(image, ids), split) for place, image, split in given]
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
        """Return which of the ground truth's images are in a split, shape (i,)."""
        return np.asarray(self.codes == self.names.index(split))

    def parts(self, tally: Tally) -> Iterator[tuple[str, Tally]]:
        """Yield every split and its part of a tally of all images."""
        for name in self.names:
            yield name, tally.on_images(self.images(name))

    def to_list(self) -> list[Any]:
        """Return plain values that tell these splits from others of the same images."""
        return [list(self.names), self.codes.tobytes().hex()]


def _read(source: PathLike | Mapping[Any, str]) -> tuple[list[tuple[str, Any, Any]], str]:
    """Return place, image and split of every line, and a name for messages."""
    if isinstance(source, Mapping):
        return [(f"image {shorten(image)}", image, split) for image, split in source.items()], "splits"
    data, name = read_bytes(source, "splits")
    try:
        text = bytes(data).decode("utf-8-sig")
        if text.lstrip()[:1] == "{":
            pairs: list[tuple[str, Any]] = json.loads(text, object_pairs_hook=list)
            return [(f"image {shorten(image)}", image, split) for image, split in pairs], name
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        fields = reader.fieldnames or ()
        column = next((field for field in ("image", "image_id") if field in fields), None)
        if column is None or "split" not in fields:
            raise InputError("has no columns image and split", source=name, remedy=_REMEDY)
        return [(f"line {reader.line_num}", row[column], row["split"]) for row in reader], name
    except (csv.Error, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("is neither a CSV file nor JSON of splits", source=name, remedy=_REMEDY) from None


def _key(image: Any, ids: NDArray[Any]) -> Any:
    """Return an id as the ground truth writes it, None where it has no such id."""
    if ids.dtype.kind == "i":
        if isinstance(image, str) and _WHOLE.fullmatch(image):
            image = int(image)
        if isinstance(image, bool) or not isinstance(image, int | np.integer):
            return None
        found = -(2**63) <= image < 2**63 and locate(np.array([image]), ids)[0] >= 0
    else:
        image = str(image)
        found = locate(np.array([image]), ids)[0] >= 0
    return image if found else None


def split_of(metric: str, splits: Collection[str]) -> str | None:
    """Return the split that a metric is of, as ``public:AP`` is of public; None for a metric of all images."""
    name = metric.partition(":")[0]
    return name if name in splits and name != metric else None


def of_splits(metrics: Iterable[str], splits: Iterable[str], hidden: Collection[str] = ()) -> list[str]:
    """Return the names of metrics of all images and of each split, but for what would tell of a `hidden` one."""
    known = list(metrics)
    whole = [] if hidden else known
    return whole + [f"{split}:{metric}" for split in splits if split not in hidden for metric in known]


def check_hidden(hidden: Collection[str], splits: Collection[str]) -> None:
    """Refuse to hide what is no split, or all splits.

    Raises
    ------
    OptionError
        Names those that there are.
    """
    for name in hidden:
        if name not in splits:
            there = f"one of: {', '.join(splits)}" if splits else "there are none without --splits FILE"
            raise OptionError(f"no split {shorten(name)} to hide; {there}")
    if splits and set(splits) <= set(hidden):
        raise OptionError("all splits are hidden: nothing would be left to rank by")
