"""Score many prediction files against one ground truth."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from detmap.batch import limited_process, saving, seen, stamps
from detmap.batch.discretion import WithheldError, withheld
from detmap.batch.finding import Entry, PathLike, file_names, find
from detmap.batch.limited_process import Limits
from detmap.batch.seen import Seen
from detmap.batch.splits import Splits, split_of
from detmap.batch.workers import dispatch, fingerprint, one_line, whence
from detmap.data.tables import Detections, GroundTruth, MissingClasses
from detmap.detection.evaluate import match
from detmap.detection.given import Owned
from detmap.detection.protocols import AUTO, COCO, AnyProtocol, EveryDecision, Protocol, resolve
from detmap.detection.ranges import needs
from detmap.detection.result import DetectionResult
from detmap.detection.scored_kinds import asked_protocol, scored_kind
from detmap.detection.tally import Tally
from detmap.errors import OptionError, shorten
from detmap.formats import files
from detmap.formats.class_maps import class_map_of
from detmap.formats.inputs import Input
from detmap.reading.options import Reading, UnknownImages, made_of
from detmap.results import Result
from detmap.shapes.boxes import InvalidBoxes
from detmap.shapes.kinds import BOXES
from detmap.statistics import bootstrap
from detmap.statistics.intervals import FEWEST, Method
from detmap.system.whole_files import remove_unfinished, write_atomically

if TYPE_CHECKING:
    from typing_extensions import Unpack


class FileResult(Result):
    """The result of scoring one prediction file: metrics by name, or the reason why the file has no metrics.

    Attributes
    ----------
    entry : Entry
        Name, path and tags of the file.
    error : str or None
        One line that says why the file has no metrics.
    splits : list of str
        Names of the splits of the images; the metric *m* on a split is called ``split:m``.
    iou_type : str or None
        The kind of geometry that was compared, or "panoptic"; None for a file that could not be scored.
    of_category : str
        Name of the metric given for each category: ``PQ`` for panoptic segmentation, else ``AP``.
    identity : dict of str to str
        ``key``, a hash of everything that determines the result, and ``content``, the hash of the file. Empty unless
        results are saved.
    under : dict
        Values of a metric under other rules; empty unless requested.
    """

    def __init__(self, entry: Entry, document: dict[str, Any], _packed: bytes | None = None) -> None:
        self.entry = entry
        self.error: str | None = document.get("error")
        parts = document.get("splits", {})
        self.splits = list(parts)
        metrics = dict(document.get("metrics", {}))
        metrics |= {
            f"{split}:{name}": value for split, part in parts.items() for name, value in part["metrics"].items()
        }
        super().__init__({k: float("nan") if v is None else v for k, v in metrics.items()}, document.get("notices"))
        self.iou_type = None if self.error else str(document.get("task") or _kind_in(document))
        self.of_category = "PQ" if "task" in document else "AP"
        self.identity = {name: str(document[name]) for name in ("key", "content") if name in document}
        self.under: dict[str, Any] = document.get("under", {})
        self._bootstraps = {split: _of_metrics(part) for split, part in ((None, document), *parts.items())}
        self._packed = _packed or saving.packed(document)

    @property
    def document(self) -> dict[str, Any]:
        """Everything about the file, as in ``results/NAME.json``; undefined values are None. Each access makes a copy."""
        return saving.unpacked(self._packed)

    @property
    def bootstrap(self) -> dict[str, Any]:
        """Bootstrap results of the metrics on all images, except metrics of single categories; empty without a bootstrap."""
        return self._bootstraps[None]

    def part(self, split: str | None) -> dict[str, Any]:
        """Return metrics, per_category and bootstrap of a split, or of all images if `split` is None."""
        document = self.document
        found: dict[str, Any] = document if split is None else document.get("splits", {}).get(split, {})
        return found

    def rows(self, split: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of `per_category`, of a split or of all images."""
        return list(self.part(split).get("per_category", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return `document`."""
        return self.document

    def interval(self, metric: str) -> tuple[float, float]:
        """Return the confidence interval of a metric; NaN if there is none."""
        low, high = self.intervals([metric]).get(metric, (None, None))
        return (float("nan") if low is None else low, float("nan") if high is None else high)

    def intervals(self, metrics: Iterable[str]) -> dict[str, list[float | None]]:
        """Return the confidence intervals of the metrics for which they are defined."""
        found = {metric: self._of_bootstrap("intervals", metric) for metric in metrics}
        return {metric: ends for metric, ends in found.items() if ends is not None}

    def bias(self, metric: str) -> float:
        """Return the estimated bias of a metric; NaN if there is none."""
        found = self._of_bootstrap("bias", metric)
        return float("nan") if found is None else float(found)

    @property
    def unit(self) -> str:
        """Unit that the bootstrap resamples: "images", "videos" or "samples", or "clusters" of these."""
        return next((one for one in FEWEST if one in self.bootstrap), "images")

    def images(self, metric: str) -> int | None:
        """Return the number of images or clusters with objects on which an interval is based; None without a bootstrap."""
        found: int | None = self._of_bootstrap(self.unit, metric)
        return found

    def no_interval(self, metric: str) -> str:
        """Return the reason why a metric has no interval; "" if it has an interval."""
        return str(self._of_bootstrap("no_interval", metric) or "")

    def _of_bootstrap(self, what: str, metric: str) -> Any:
        """Return the entry `what` of the bootstrap for a metric; None if there is none."""
        if not any(self._bootstraps.values()):
            return None
        split = split_of(metric, self.splits)
        name = metric if split is None else metric.partition(":")[2]
        return self._bootstraps.get(split, {}).get(what, {}).get(name)

    def __repr__(self) -> str:
        if self.error:
            return f"<FileResult: {self.entry.name}: {self.error}>"
        metric = next(iter(self))
        return f"<FileResult: {self.entry.name}: {metric} {self[metric]:.4f} ({self.iou_type})>"


def _kind_in(document: dict[str, Any]) -> str:
    """Return the kind of geometry that a document's protocol compares."""
    return str(document.get("protocol", {}).get("iou_type", COCO.iou_type))


def _of_metrics(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bootstrap of a file or split, without the results of single categories."""
    return {name: told for name, told in part.get("bootstrap", {}).items() if name != "per_category"}


@dataclass(frozen=True)
class Options:
    """Options of scoring a file. A saved result is found by a key, which depends only on options that can change a
    metric. `recorded` is the part of the key that depends on `reading`: values of options, and a hash of each file
    named by an option.
    """

    protocol: Protocol
    reading: Reading
    recorded: tuple[str, ...]
    replicates: int = 0
    seed: int = 0
    method: Method = "t"
    level: float = 0.95
    splits: Splits | None = None
    limits: Limits | None = None
    discreet: bool = False
    under: str | None = None

    def key(self, ground_truth: str, content: str, form: str) -> str:
        """Return the key of a result, given the fingerprints of ground truth and file, and the name of the file's format."""
        own = json.dumps([stamps.code(confidence=bool(self.replicates)), ground_truth, content, form])
        return hashlib.sha256(f"{own[:-1]}, {self._shared[1:]}".encode()).hexdigest()

    @cached_property
    def rules(self) -> str:
        """The protocol's decisions in one line."""
        return self.protocol.describe()

    @cached_property
    def _shared(self) -> str:
        """The part of the key that is the same for all files, as JSON."""
        made = [self.replicates, self.seed, self.method, self.level] if self.replicates else []
        parts: list[Any] = [self.protocol.to_dict(), list(self.recorded), made]
        parts += [] if self.splits is None else [self.splits.to_list()]
        parts += [] if self.under is None else [["under", self.under, stamps.code(confidence=False, explanations=True)]]
        return json.dumps(parts)


class _Common(NamedTuple):
    """Input shared by the scoring of all files."""

    options: Options
    #: Fingerprint of the ground truth; None if results are not saved.
    truth: str | None
    #: Keys of saved results; results with these keys are not computed again.
    known: frozenset[str]


def _score(
    ground_truth: GroundTruth, common: _Common, found: Input, before: Seen | None
) -> tuple[Seen, dict[str, Any] | None]:
    """Score a file. Return the file's state and key as a `Seen`, and its result as a document. The document is None if
    a saved result has this key. State and key are empty unless results are saved. If the file's state is unchanged
    since the earlier run (`before`), the file is not read.
    """
    options, truth, known = common
    identity, now = {}, Seen("", "")
    begun = time.time_ns()  # read the clock before the file's stamps, so that no later change is missed
    with found.unchanged() as stamps:
        if truth is not None:
            state = seen.state(found.path, stamps, begun, options.key(truth, "", ""))
            if before is not None and state and before.state == state and before.key in known:
                return before, None
            content = found.fingerprint()
            now = Seen(state, options.key(truth, content, found.format.name))
            if now.key in known:
                return now, None
            identity = {"key": now.key, "content": f"sha256:{content}", "ground_truth": f"sha256:{truth}"}
        given = Owned(found.detections(ground_truth, once=options.under is None))
    found.release()
    under = {}
    if options.under is not None:
        from detmap.explanations.orders import values_under

        under = {"under": values_under(ground_truth, given.held, options.protocol, options.under)}
    tally = match(ground_truth, given, options.protocol, iou_type=options.protocol.iou_type)
    document = {**identity, **_scored(tally, options), **under}
    if options.splits is not None:
        parts = {split: _scored(part, options) for split, part in options.splits.parts(tally)}
        told = ("metrics", "per_category", "bootstrap", "images", "curve")
        document["splits"] = {
            split: {name: part[name] for name in told if name in part} for split, part in parts.items()
        }
    return now, saving.plain(document)


def _scored(tally: Tally, options: Options) -> dict[str, Any]:
    """Return the document of a tally, with its bootstrap if requested."""
    result = DetectionResult(tally)
    document = {
        **result.to_dict(),
        "rules": options.rules,
        "images": int(tally.image_ids.size),
        "curve": _curve(result),
    }
    if options.replicates:
        made = bootstrap(result, options.replicates, options.seed, method=options.method)
        document["bootstrap"] = made.to_dict(options.level)
    return document


def _curve(result: DetectionResult) -> dict[str, Any] | None:
    """Return the mean precision over the classes with ground truth at each recall; None if it is undefined."""
    iou = result.protocol.iou_thresholds[result.protocol.find_threshold(0.5) or 0]
    precision = result.mean_precision(iou)
    if not precision.size or np.isnan(precision[0]):
        return None
    return {
        "iou": round(iou, 9),
        "recall": np.round(result.protocol.recall_thresholds, 9).tolist(),
        "precision": precision.round(6).tolist(),
    }


def _task(
    ground_truth: GroundTruth, common: _Common, found: Input, before: Seen | None
) -> tuple[Seen, dict[str, Any] | None]:
    """Call `_score` within the limits of the options, and withhold details of errors if the options are `discreet`."""
    if not common.options.discreet:
        return _within_limits(ground_truth, common, found, before)
    try:
        return _within_limits(ground_truth, common, found, before)
    except Exception as error:
        raise withheld(error, one_line(error), str(found.path), found.detections) from None


def _within_limits(
    ground_truth: GroundTruth, common: _Common, found: Input, before: Seen | None
) -> tuple[Seen, dict[str, Any] | None]:
    if common.options.limits is None:
        return _score(ground_truth, common, found, before)
    return limited_process.run(common.options.limits, _prepare, _score, (ground_truth, common), (found, before))


def _prepare(ground_truth: GroundTruth, common: _Common) -> None:
    """Load libraries and compiled kernels before the first file is scored, by matching the first object with itself."""
    options = replace(common.options, replicates=0)
    first = nothing(ground_truth, 1)
    _scored(match(ground_truth, first, options.protocol, iou_type=options.protocol.iou_type), options)


def score(
    ground_truth: GroundTruth | PathLike,
    predictions: Iterable[PathLike | Entry],
    protocol: AnyProtocol = "coco",
    *,
    unknown_images: UnknownImages = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
    reading: Reading | Mapping[str, Any] | None = None,
    replicates: int = 0,
    seed: int = 0,
    method: Method = "t",
    level: float = 0.95,
    out: PathLike | None = None,
    resume: bool = False,
    splits: Splits | PathLike | Mapping[Any, str] | None = None,
    limits: Limits | None = None,
    discreet: bool = False,
    under: str | None = None,
    executor: Executor | None = None,
    threads: int | None = None,
    **decisions: Unpack[EveryDecision],
) -> Generator[FileResult, None, None]:
    """Score many files against one ground truth and yield their results as they finish.

    Parameters
    ----------
    ground_truth : GroundTruth or path
        The ground truth; a file is read once.
    predictions : iterable of path or Entry
        The prediction files, as for `find`.
    protocol : str or Protocol
        As in `detmap.evaluate`.
    unknown_images : {"error", "ignore"}
        As in `detmap.read_coco_results`.
    invalid_boxes : {"error", "miss", "drop"}
        As in `detmap.read_coco_results`; also applies to ground truth given as a path.
    missing_classes : {"zero", "error", "skip"}
        As in `detmap.read_voc_results`.
    reading : Reading or mapping, optional
        Other options of `detmap.read` for the predictions: format, classes, class_map, image_sizes, columns, box_format.
    replicates, seed, method, level
        Options of intervals, see `detmap.statistics.bootstrap`; by default there are no intervals.
    out : path, optional
        A folder in which each result is atomically written to ``results/NAME.json``.
    resume : bool
        Reuse a result in `out` if file, ground truth, options and scoring code are unchanged.
    splits : Splits, path or mapping, optional
        The split of each image, as for `Splits.read`. Metrics are then also computed for each split; AP of a split is
        called ``split:AP``.
    limits : Limits, optional
        Limits of time and memory for scoring a file; each file is then scored in a separate process.
    discreet : bool
        Whether errors reveal nothing about the ground truth; ``results/NAME.json`` has the full error as
        ``error_in_full``.
    under : str, optional
        A metric, as for `detmap.explain`, that is also computed under other rules, to test whether the order of
        neighbouring models holds. Scoring takes several times as long. Cannot be combined with `splits`.
    executor : concurrent.futures.Executor, optional
        Executor that reads and scores files: a process pool, an executor of ``dask.distributed``
        (``Client.get_executor()``) or of MPI; by default a pool of threads. Workers open the files by their absolute
        paths, which are resolved in this process. The executor is not shut down.
    threads : int, optional
        Total number of threads, by default one per processor; with an `executor`, threads per task, by default 1.
    **decisions
        Replacements of decisions of `protocol`, as for `detmap.evaluate`.

    Yields
    ------
    FileResult
        One result per file, in the order of completion. The result of a file that cannot be scored has an `error`; the
        other files are still scored.

    Raises
    ------
    DetmapError
        If the ground truth, an option or `out` cannot be used; never for a file of predictions.
    """
    entries = find(predictions)
    rules: Any = {"unknown_images": unknown_images, "invalid_boxes": invalid_boxes, "missing_classes": missing_classes}
    decided = options_of(rules_of(protocol, ground_truth, decisions, score), reading, rules)
    decided = replace(decided, replicates=replicates, seed=seed, method=method, level=level)
    decided = replace(decided, limits=limits, discreet=discreet, under=under)
    if under is not None:
        from detmap.explanations.replay import trimmed

        if splits is not None:
            raise OptionError("scoring under other rules does not go with splits")
        trimmed(decided.protocol, under)  # raises for an unknown metric
    if limits is not None and "-" in [entry.path for entry in entries]:
        raise OptionError("a file that is scored within limits cannot come from standard input (-): write it to a file")
    inputs = [entry.input(decided.reading) for entry in entries]
    truth = read_truth(ground_truth, decided, inputs)
    if splits is not None:
        made = splits if isinstance(splits, Splits) else Splits.read(splits, truth)
        decided = replace(decided, splits=made)
    if out is not None:
        names = [f"{name}.json" for name in file_names([entry.name for entry in entries])]
        read = [one for one in (ground_truth, splits) if isinstance(one, str | os.PathLike)]
        files.check_outputs(
            [Path(out) / "results" / name for name in names], [*read, *(entry.path for entry in entries)]
        )
    folder = None if out is None else make_folder(Path(out) / "results")
    done = documents(folder) if folder is not None and resume else {}
    return _score_all(truth, entries, inputs, decided, folder, done, executor, threads)


def _score_all(
    truth: GroundTruth,
    entries: list[Entry],
    inputs: list[Input],
    options: Options,
    folder: Path | None,
    done: dict[str, dict[str, bytes]],
    executor: Executor | None,
    threads: int | None,
) -> Generator[FileResult, None, None]:
    names = [f"{name}.json" for name in file_names([entry.name for entry in entries])]
    identity = None if folder is None else fingerprint(truth)
    common = _Common(options, identity, frozenset(done))
    index = seen.Index(folder, names, resume=bool(done))
    arguments = [(whence(one, executor), index.before.get(name)) for one, name in zip(inputs, names, strict=True)]
    with closing(dispatch(executor, threads, truth, _task, common, arguments)) as outcomes, closing(index):
        for i, outcome in outcomes:
            before, now = None, None
            head: dict[str, Any] = {"name": entries[i].name, "source": entries[i].path}
            if isinstance(outcome, WithheldError):
                document = {**head, "error": outcome.said, "error_in_full": outcome.full}
            elif isinstance(outcome, BaseException) and options.discreet:
                document = {**head, "error": "it could not be scored", "error_in_full": one_line(outcome)}
            elif isinstance(outcome, BaseException):
                document = {**head, "error": one_line(outcome)}
            else:
                now, fresh = outcome
                if fresh is None:
                    before = done[now.key].get(names[i])
                    fresh = saving.unpacked(before or next(iter(done[now.key].values())))
                    before = before if fresh.items() >= head.items() else None
                document = {**head, **fresh, **head}  # name and source come first
            if folder is not None and before is None:
                write_atomically(folder / names[i], saving.sealed(document))
            index.note(names[i], now)
            yield FileResult(entries[i], document, before)


def make_folder(path: Path) -> Path:
    """Create a folder if it does not exist, and return it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot write to {shorten(str(path))}: {error.strerror}") from None
    remove_unfinished(path)
    return path


def documents(folder: Path) -> dict[str, dict[str, bytes]]:
    """Return the packed documents of an earlier run, by key and then by file name. Damaged files are left out."""
    found: dict[str, dict[str, bytes]] = {}
    for path in sorted(folder.glob("*.json")):
        document = saving.unsealed(path)
        if document is not None and isinstance(document.get("key"), str):
            found.setdefault(document["key"], {})[path.name] = saving.packed(document)
    return found


def digest(parts: list[Any]) -> str:
    """Return a hash of plain values."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def options_of(protocol: Protocol, reading: Reading | Mapping[str, Any] | None, rules: Mapping[str, Any]) -> Options:
    """Return scoring options with the reading options in `rules` and `reading`; `reading` takes precedence."""
    given = reading.given() if isinstance(reading, Reading) else reading or {}
    made = made_of({**rules, **given}, "reading", iou_type=protocol.iou_type)
    if made.class_map is not None:  # read once in this process, because workers may not have the file
        made = replace(made, class_map=class_map_of(made.class_map))
    return Options(protocol, made, tuple(made.recorded()))


def rules_of(
    protocol: str | Protocol,
    ground_truth: GroundTruth | PathLike,
    decisions: EveryDecision | None = None,
    caller: Callable[..., Any] | None = None,
) -> Protocol:
    """Return the protocol with some `decisions` replaced. If the ground truth is a table, its geometries decide what
    the protocol compares.
    """
    given: dict[str, Any] = {**(decisions or {})}
    if isinstance(ground_truth, GroundTruth):
        protocol = asked_protocol(protocol, ground_truth)
        given["iou_type"] = scored_kind(protocol, given.get("iou_type"), ground_truth)
    elif protocol == AUTO:
        protocol = files.asked_protocol(ground_truth)
    return resolve(protocol, caller=caller, **given)


def read_truth(ground_truth: GroundTruth | PathLike, options: Options, found: Iterable[Input]) -> GroundTruth:
    """Read ground truth, with everything that the protocol and the detections (`found`) need. Return a table unchanged."""
    if isinstance(ground_truth, GroundTruth):
        return ground_truth
    kind, more = options.protocol.iou_type, needs(options.protocol)
    reading = Reading(invalid_boxes=options.reading.invalid_boxes, iou_type=kind, **more)
    return Input(ground_truth, "ground_truth", reading).ground_truth(found)


def nothing(ground_truth: GroundTruth, objects: int = 0) -> Detections:
    """Return detections that equal the first `objects` objects of the ground truth; by default none."""
    some = ground_truth.take(np.arange(min(objects, len(ground_truth))))
    others = {name: column for name, column in some.shapes.items() if name != BOXES}
    return Detections.from_arrays(
        image_ids=some.images.ids[some.images.codes],
        category_ids=some.categories.ids[some.categories.codes],
        boxes=some.boxes,
        box_format="xywh" if some.box_sizes else "xyxy",
        invalid_boxes="miss",
        shapes=others,
        kinds=ground_truth.kinds,
        scores=np.ones(len(some)),
    )
