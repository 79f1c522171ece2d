"""One model whose detections are cut into files by image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import (
    Executor,
)
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from detmap.batch.finding import Entry, PathLike, find
from detmap.batch.scoring import (
    nothing,
    options_of,
    read_truth,
    rules_of,
)
from detmap.batch.workers import dispatch, one_line, whence
from detmap.data.ids import locate
from detmap.data.notices import ABSENT, NOTICES
from detmap.data.tables import GroundTruth, MissingClasses
from detmap.detection.evaluate import match
from detmap.detection.protocols import AnyProtocol, EveryDecision, Protocol
from detmap.detection.result import DetectionResult
from detmap.detection.tally import Tally
from detmap.errors import DetmapError, InputError, OptionError, shorten
from detmap.formats.inputs import Input
from detmap.kernels import readonly
from detmap.reading.options import Reading, UnknownImages
from detmap.shapes.boxes import InvalidBoxes

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, eq=False)
class _Shard:
    content: str
    records: int
    tally: Tally


def _match_shard(ground_truth: GroundTruth, found: Input, protocol: Protocol) -> _Shard:
    """Return the tally of the images that a shard has detections on."""
    with found.unchanged():
        content = found.fingerprint()
        detections = found.detections(ground_truth)
    found.release()
    images = detections.images.ids
    tally = match(ground_truth, detections, protocol, iou_type=protocol.iou_type, image_ids=images)
    # Notices of the ground truth are counted once, with the images of no shard; zero_id is one of the images matched.
    truth = {code: count for code, count in ground_truth.notices.items() if code != "zero_id"}
    notices = {code: count - truth.get(code, 0) for code, count in tally.notices.items()}
    return _Shard(content, len(detections), replace(tally, notices=notices))


def evaluate_shards(
    ground_truth: GroundTruth | PathLike,
    shards: Iterable[PathLike | Entry],
    protocol: AnyProtocol = "coco",
    *,
    unknown_images: UnknownImages = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
    reading: Reading | Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    threads: int | None = None,
    **decisions: Unpack[EveryDecision],
) -> DetectionResult:
    """Score one model whose detections are cut into files by image; the bits are those of the whole.

    Parameters
    ----------
    shards : iterable of path or Entry
        Files, patterns and folders, see `find`. All detections of an image are in one of them.
    missing_classes : {"zero", "error"}
        As in `detmap.read_voc_results`, for every shard. Classes cannot be skipped: all shards are scored on the same
        classes.
    ground_truth, protocol, unknown_images, invalid_boxes, reading, executor, threads, **decisions
        See `score`.

    Raises
    ------
    OptionError
        Where classes are to be skipped.
    InputError
        Where a shard cannot be read, is given twice, or shares an image with another: names both.
    """
    if missing_classes == "skip":
        raise OptionError(
            "missing_classes='skip' cannot be combined with shards: all of them are scored on the same classes"
        )
    entries = find(shards)
    paths = [entry.path for entry in entries]
    decided = rules_of(protocol, ground_truth, decisions, evaluate_shards)
    rules: Any = {"unknown_images": unknown_images, "invalid_boxes": invalid_boxes, "missing_classes": missing_classes}
    options = options_of(decided, reading, rules)
    inputs = [entry.input(options.reading) for entry in entries]
    truth = read_truth(ground_truth, options, inputs)
    images = truth.images.ids
    owner = np.full(images.size, -1, np.int32)
    contents: dict[str, int] = {}
    counts: Counter[str] = Counter()
    lacking: Counter[str] = Counter()  # how many shards have no file of a class
    tree = _Tree(len(paths))
    arguments = [(whence(one, executor), decided) for one in inputs]
    with closing(dispatch(executor, threads, truth, _match_shard, arguments)) as outcomes:
        for i, outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome if isinstance(outcome, DetmapError) else InputError(one_line(outcome), source=paths[i])
            counts.update(outcome.tally.notices)
            lacking.update(code for code in outcome.tally.notices if code.startswith("missing_classes:"))
            if outcome.records:
                twin = contents.setdefault(outcome.content, i)
                if twin != i:
                    first, second = sorted((twin, i))
                    raise InputError(f"is the same shard as {shorten(paths[first], 200)}", source=paths[second])
                place = locate(outcome.tally.image_ids, images)
                taken = owner[place]
                if (taken >= 0).any():
                    at = int(np.argmax(taken >= 0))
                    first, second = sorted((int(taken[at]), i))
                    raise InputError(
                        f"shares an image with {shorten(paths[first], 200)}",
                        source=paths[second],
                        field="image_id",
                        value=outcome.tally.image_ids[at].item(),
                        remedy="put all detections of an image into one shard",
                    )
                owner[place] = i
            tree.add(i, outcome.records, outcome.tally)
    rest = match(truth, nothing(truth), decided, iou_type=decided.iou_type, image_ids=images[owner < 0])
    counts.update(rest.notices)
    counts["no_detections"] = int(not contents)
    for code, times in lacking.items():
        counts[code] = int(times == len(paths))
    for code in ABSENT:  # each image that a shard has is absent from all others
        counts[code] = max(counts[code] - (len(paths) - 1) * images.size, 0)
    notices = {code: counts[code] for code in {**NOTICES, **counts} if counts[code]}
    return DetectionResult(replace(rest.merge(*tree.merged()), notices=notices), threads=threads)


class _Tree:
    """Merges the tallies of shards, neighbours first, while others are still to come.

    Where ties go by the place in the file, the file is the shards one after the other.
    """

    def __init__(self, leaves: int) -> None:
        self._leaves = leaves
        # By level and place in it: how many detections, and their tally.
        self._there: dict[tuple[int, int], tuple[int, Tally]] = {}

    def add(self, i: int, records: int, tally: Tally) -> None:
        """Add the tally of shard `i`, which has `records` detections, and merge it with the neighbours that have arrived."""
        level, place, width = 0, i, self._leaves
        while width > 1:
            neighbour = place ^ 1
            if neighbour < width:
                if (level, neighbour) not in self._there:
                    break
                pair = (records, tally), self._there.pop((level, neighbour))
                (records, tally), (others, other) = pair if place < neighbour else pair[::-1]
                tally = tally.merge(replace(other, order=readonly(other.order + records, np.int64)))
                records += others
            level, place, width = level + 1, place >> 1, (width + 1) >> 1
        self._there[level, place] = (records, tally)

    def merged(self) -> list[Tally]:
        """Return the tally of all shards, where there are any."""
        return [tally for _, tally in self._there.values()]
