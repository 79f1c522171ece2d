"""Paired permutation tests of every pair of scored files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from detmap.batch import saving, stamps
from detmap.batch.finding import PathLike
from detmap.batch.scoring import FileResult, Options, digest, nothing, options_of, rules_of
from detmap.batch.splits import Splits, split_of
from detmap.batch.workers import dispatch, one_line, whence
from detmap.data.tables import GroundTruth, MissingClasses
from detmap.detection.evaluate import match
from detmap.detection.protocols import AnyProtocol, EveryDecision
from detmap.detection.tally import Tally
from detmap.errors import DetmapError, InputError
from detmap.formats.inputs import Input, is_stream
from detmap.reading.options import Reading, UnknownImages
from detmap.shapes.boxes import InvalidBoxes
from detmap.statistics import PairTests, pair_tests
from detmap.statistics.permutation import p_value
from detmap.statistics.tests import Correction
from detmap.system.whole_files import write_atomically

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _test_pair(ground_truth: GroundTruth, common: tuple[Options, str, int], *pair: tuple[Input, str | None]) -> float:
    """Return the p-value of the difference between two files; NaN if they were scored on different classes."""
    # `pair` holds the input of each file, and the fingerprint of its scored content (None if unknown).
    options, metric, permutations = common
    first, second = (_tally_again(ground_truth, found, content, options) for found, content in pair)
    metric, first, second = _of_split(metric, options.splits, first, second)
    if first.categories != second.categories:
        return float("nan")
    return p_value(first, second, permutations, options.seed, metric)


def _of_split(metric: str, splits: Splits | None, *tallies: Tally) -> Any:
    """Return a metric's name without the prefix for its split, and the tallies of the images in this split."""
    split = None if splits is None else split_of(metric, splits.names)
    if splits is None or split is None:
        return metric, *tallies
    images = splits.images(split)
    return metric.partition(":")[2], *(tally.on_images(images) for tally in tallies)


def _tally_again(ground_truth: GroundTruth, found: Input, content: str | None, options: Options) -> Tally:
    """Read a scored file again and return its tally; raise `InputError` if its content has changed."""
    with found.unchanged():
        if content is not None and content != f"sha256:{found.fingerprint()}":
            raise InputError("has changed since it was scored", source=str(found.path), remedy="score it again")
        detections = found.detections(ground_truth)
    return match(ground_truth, detections, options.protocol, iou_type=options.protocol.iou_type)


def compare_files(
    ground_truth: GroundTruth,
    results: Iterable[FileResult],
    protocol: AnyProtocol = "coco",
    *,
    metric: str | None = None,
    permutations: int | None = None,
    seed: int = 0,
    level: float = 0.95,
    correction: Correction = "holm",
    unknown_images: UnknownImages = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
    reading: Reading | Mapping[str, Any] | None = None,
    out: PathLike | None = None,
    resume: bool = False,
    splits: Splits | None = None,
    executor: Executor | None = None,
    threads: int | None = None,
    **decisions: Unpack[EveryDecision],
) -> PairTests:
    """Test every pair of scored files by the permutation test of `detmap.compare`, for a leaderboard.

    Each task reads the two files of a pair again. Models that were scored on different classes
    (``missing_classes="skip"``) are not tested against each other.

    Parameters
    ----------
    ground_truth, protocol, unknown_images, invalid_boxes, missing_classes, reading, executor, threads, **decisions
        As in `score`.
    results : iterable of FileResult
        Results of `score`. Results with errors, without the metric, or of a stream are left out; a stream cannot be
        read again.
    metric : str, optional
        The metric to test; by default the first metric of the results.
    permutations, seed, level, correction
        See `detmap.compare`.
    out : path, optional
        The folder given to `score`, into which ``tests.json`` is written.
    resume : bool
        Reuse tests in `out` whose two files have not changed.
    splits : Splits, optional
        As in `score`. `metric` may be a metric of a split, which is then tested on the images of the split.

    Raises
    ------
    DetmapError
        If a file can no longer be read, or is known to have changed since it was scored.
    """
    scored = [one for one in results if not one.error and not is_stream(one.entry.path)]
    name = metric or next((next(iter(one)) for one in scored), "AP")
    scored = sorted(
        (one for one in scored if not np.isnan(one.get(name, np.nan))), key=lambda one: (-one[name], one.entry.name)
    )
    decided = rules_of(protocol, ground_truth, decisions, compare_files)
    plain, images = _of_split(
        name, splits, match(ground_truth, nothing(ground_truth), decided, iou_type=decided.iou_type)
    )
    made = pair_tests(images, [one.entry.name for one in scored], plain, permutations, level, correction)
    made = replace(made, metric=name)
    rules: Any = {"unknown_images": unknown_images, "invalid_boxes": invalid_boxes, "missing_classes": missing_classes}
    options = replace(options_of(decided, reading, rules), seed=seed, level=level, splits=splits)
    entries = {one.entry.name: one for one in scored}
    parts = [stamps.code(confidence=True), decided.to_dict(), *options.recorded, name, made.permutations, seed]
    parts += [] if splits is None else [splits.to_list()]
    keys = {}  # maps each pair of files with known contents to the key of its test in tests.json
    for pair in made.p:
        contents = [entries[one].identity.get("key") for one in pair]
        if None not in contents:
            keys[pair] = digest([*contents, *parts])
    saved = None if out is None else Path(out) / "tests.json"
    known: dict[str, float] = {}
    if saved is not None and resume:  # if the file is damaged, all tests are computed again
        known = (saving.unsealed(saved) or {"tests": {}})["tests"]
    made.p.update({pair: known[key] for pair, key in keys.items() if key in known})
    pairs = [pair for pair in made.p if made.could_tell and keys.get(pair) not in known]
    both = {
        one.entry.name: (whence(one.entry.input(options.reading), executor), one.identity.get("content"))
        for one in scored
    }
    common = (options, name, made.permutations)
    arguments = [(both[a], both[b]) for a, b in pairs]
    with closing(dispatch(executor, threads, ground_truth, _test_pair, common, arguments)) as outcomes:
        for i, outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome if isinstance(outcome, DetmapError) else DetmapError(one_line(outcome))
            made.p[pairs[i]] = outcome
    if saved is not None:
        tests = {key: made.p[pair] for pair, key in keys.items() if not np.isnan(made.p[pair])}
        write_atomically(saved, saving.sealed({"tests": tests}))
    return made
