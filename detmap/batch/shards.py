"""Score one model whose detections are split by image into several files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.batch.clusters import Kept
from detmap.batch.finding import Entry, PathLike, find
from detmap.batch.scoring import nothing, options_of, read_truth, rules_of
from detmap.batch.workers import dispatch, one_line, whence
from detmap.data.ids import locate
from detmap.data.notices import ABSENT, NOTICES
from detmap.data.tables import GroundTruth, MissingClasses
from detmap.detection.evaluate import match, tally_of
from detmap.detection.given import Owned
from detmap.detection.packed import PackedTally, ShardedTally
from detmap.detection.protocols import AnyProtocol, EveryDecision, Protocol
from detmap.detection.result import DetectionResult
from detmap.errors import DetmapError, InputError, OptionError, shorten
from detmap.formats.inputs import Input
from detmap.reading.options import Reading, UnknownImages
from detmap.shapes.boxes import InvalidBoxes

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, eq=False)
class _Shard:
    records: int
    tally: PackedTally

    def without_columns(self) -> _Shard:
        """Return the shard without the columns of its detections."""
        return replace(self, tally=replace(self.tally, columns={}))

    def columns_of(self, begin: int, end: int) -> dict[str, NDArray[Any]]:
        """Return the columns of the detections of categories ``[begin, end)``."""
        return self.tally.columns_of(begin, end)


def _match_shard(ground_truth: GroundTruth, protocol: Protocol, found: Input) -> _Shard:
    """Return the tally of the images on which a shard has detections."""
    with found.unchanged():
        detections = found.detections(ground_truth, once=True)
    found.release()
    records, images, given = len(detections), detections.images.ids, Owned(detections)
    del detections
    tally = tally_of(ground_truth, given, protocol, protocol.iou_type, images)
    # Notices of the ground truth are dropped, because the tally of the images without detections contains them. The
    # notice zero_id is kept, because it counts objects on the shard's images.
    truth = {code: count for code, count in ground_truth.notices.items() if code != "zero_id"}
    notices = {code: count - truth.get(code, 0) for code, count in tally.notices.items()}
    return _Shard(records, PackedTally.of(replace(tally, notices=notices)))


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
    """Score one model whose detections are split by image into several files. The result is bit-identical to that of a
    single file.

    Parameters
    ----------
    shards : iterable of path or Entry
        Files, patterns and folders, see `find`. All detections of an image must be in one file.
    missing_classes : {"zero", "error"}
        As in `detmap.read_voc_results`, for every shard. "skip" is not allowed, because all shards must be scored on
        the same classes.
    ground_truth, protocol, unknown_images, invalid_boxes, reading, executor, threads, **decisions
        See `score`.

    Raises
    ------
    OptionError
        If `missing_classes` is "skip".
    InputError
        If a shard cannot be read, is given twice, or shares an image with another shard; the error names both shards.
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
    counts: Counter[str] = Counter()
    lacking: Counter[str] = Counter()  # for each class without a file, the number of shards reporting it
    packed: list[Any] = [None] * len(paths)
    kept: list[Any] = [None] * len(paths)  # handles of the shards whose columns stay on a cluster's workers
    records = np.zeros(len(paths), np.int64)
    arguments = [(whence(one, executor),) for one in inputs]
    ended = dispatch(executor, threads, truth, _match_shard, decided, arguments, _Shard.without_columns)
    with closing(ended) as outcomes:
        for i, outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome if isinstance(outcome, DetmapError) else InputError(one_line(outcome), source=paths[i])
            if isinstance(outcome, Kept):
                kept[i], outcome = outcome, outcome.summary
            frame = outcome.tally.frame
            counts.update(frame.notices)
            lacking.update(code for code in frame.notices if code.startswith("missing_classes:"))
            if outcome.records:
                place = locate(frame.image_ids, images)
                taken = owner[place]
                if (taken >= 0).any():
                    at = int(np.argmax(taken >= 0))
                    first, second = sorted((int(taken[at]), i))
                    if _same(inputs[first], inputs[second]):
                        raise InputError(f"is the same shard as {shorten(paths[first], 200)}", source=paths[second])
                    raise InputError(
                        f"shares an image with {shorten(paths[first], 200)}",
                        source=paths[second],
                        field="image_id",
                        value=frame.image_ids[at].item(),
                        remedy="put all detections of an image into one shard",
                    )
                owner[place] = i
            packed[i], records[i] = outcome.tally, outcome.records
    rest = match(truth, nothing(truth), decided, iou_type=decided.iou_type, image_ids=images[owner < 0])
    counts.update(rest.notices)
    counts["no_detections"] = int(not records.any())
    for code, times in lacking.items():
        counts[code] = int(times == len(paths))
    for code in ABSENT:  # each shard reports the images of the other shards as absent
        counts[code] = max(counts[code] - (len(paths) - 1) * images.size, 0)
    notices = {code: counts[code] for code in {**NOTICES, **counts} if counts[code]}
    # Ties may be broken by position in the file: here, the position in the concatenation of all shards.
    packed_rest = PackedTally.of(rest)

    def columns_of(begin: int, end: int) -> list[dict[str, NDArray[Any]]]:
        found = Kept.apply(_Shard.columns_of, kept, begin, end)
        return [*found, packed_rest.columns_of(begin, end)]

    before = [*(np.cumsum(records) - records), records.sum()]
    sharded = ShardedTally([*packed, packed_rest], before, notices, columns_of if all(kept) else None)
    return DetectionResult(sharded, threads=threads)


def _same(first: Input, second: Input) -> bool:
    """Return whether two shards have the same content; False if this process cannot read them."""
    try:
        return first.fingerprint() == second.fingerprint()
    except InputError:  # only workers can read the files
        return False
