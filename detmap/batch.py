"""Many prediction files against one ground truth, and one model over many shards, on any executor."""

from __future__ import annotations

import csv
import glob
import hashlib
import io
import json
import os
import re
import threading
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from detmap import __version__, parallel, report, results
from detmap.boxes import InvalidBoxes
from detmap.detection import DetectionResult, match
from detmap.errors import DetmapError, InputError, MissingDependencyError, OptionError, shorten
from detmap.formats import files
from detmap.kernels import readonly
from detmap.protocols import Protocol, resolve
from detmap.results import Result, without_nan
from detmap.statistics import PairTests, bootstrap, pair_tests, permute
from detmap.statistics.intervals import Method
from detmap.statistics.tests import Correction
from detmap.tables import NOTICES, Detections, GroundTruth, MissingClasses, locate
from detmap.tally import Tally
from detmap.writing import write_atomically

T = TypeVar("T")
PathLike = str | os.PathLike[str]
Unknown = Literal["error", "ignore"]

# ------------------------------------------------------------------------------------------------------ finding files


@dataclass(frozen=True)
class Entry:
    """A file of predictions (or a folder of VOC's), its name on the leaderboard, and what a manifest says besides."""

    name: str
    path: str
    tags: Mapping[str, str] = field(default_factory=dict)


def find(predictions: Iterable[PathLike | Entry]) -> list[Entry]:
    """Return the files that are meant, each once, with distinct names.

    Parameters
    ----------
    predictions : iterable of path or Entry
        A file; a pattern (``runs/*/dt.json``, ``**`` for any depth); a folder, for what lies directly in it (JSON,
        JSON Lines, archives, and folders of VOC's ``comp4_det_*.txt``; or the folder itself, if it is one); or a manifest
        ``.csv`` with a column ``path``, relative to the manifest, optionally ``name``, and any others as tags. A path
        that is not there is left to fail where it is read.

    Returns
    -------
    list of Entry
        In the order given, those of a pattern or folder by path. The name is the file's without its ending, with as many
        folders before it as it takes to tell it from others.

    Raises
    ------
    OptionError
        Where a pattern or folder holds nothing, or a pipe or device, or a manifest gives one name twice.
    InputError
        For a manifest that cannot be read.
    """
    found: dict[str, tuple[str | None, str, Mapping[str, str]]] = {}
    for given in predictions:
        for name, path, tags in _expand(given):
            found.setdefault(os.path.abspath(path), (name, path, tags))
    named = Counter(name for name, _, _ in found.values() if name is not None)
    for name, count in named.items():
        if count > 1:
            raise OptionError(f"{count} files are called {shorten(name)}")
    automatic = iter(_distinct([path for path, (name, _, _) in found.items() if name is None], set(named)))
    return [Entry(next(automatic) if name is None else name, path, tags) for name, path, tags in found.values()]


def _expand(given: PathLike | Entry) -> Iterator[tuple[str | None, str, Mapping[str, str]]]:
    if isinstance(given, Entry):
        yield given.name, given.path, given.tags
        return
    path = os.fspath(given)
    if path.endswith(".csv"):
        yield from _manifest(path)
        return
    if os.path.isdir(path) and not files.holds_voc_results(path):
        inside = sorted(os.path.join(path, name) for name in os.listdir(path))
        paths = _without_streams(one for one in inside if _is_predictions(one))
        if not paths:
            raise OptionError(f"no files of predictions in {shorten(path)}: they end in {', '.join(files.SUFFIXES)}")
    elif glob.has_magic(path) and not os.path.lexists(path):
        paths = _without_streams(sorted(glob.glob(path, recursive=True)))
        if not paths:
            raise OptionError(f"{shorten(path)} matches no file")
    else:
        paths = [path]
    for one in paths:
        yield None, one, {}


def _utf8(value: Any) -> Any:
    """Return text with what UTF-8 has no code for, as in names of files that are not UTF-8, escaped; all else as it is."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _without_streams(paths: Iterable[str]) -> list[str]:
    """Return the paths, which were found; a pipe among them is refused: nobody may ever write to it."""
    listed = list(paths)
    for path in listed:
        if not files.readable_again(path):
            raise OptionError(f"{shorten(path)} is neither a file nor a folder: remove it, or give it by its name")
    return listed


def _is_predictions(path: str) -> bool:
    if os.path.isdir(path):
        return files.holds_voc_results(path)
    return path.endswith(files.SUFFIXES) and os.path.basename(path) != "leaderboard.json"


def _manifest(path: str) -> Iterator[tuple[str | None, str, Mapping[str, str]]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if "path" not in (reader.fieldnames or ()):
                raise InputError(
                    "has no column 'path'", source=path, remedy="a manifest's first line names its columns"
                )
            for row in reader:
                if None in row or None in row.values() or not row["path"]:
                    raise InputError("has too many or too few cells", source=path, record=f"line {reader.line_num}")
                tags = {key: value for key, value in row.items() if key not in ("path", "name")}
                yield row.get("name") or None, os.path.join(os.path.dirname(path), row["path"]), tags
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"is not a CSV file: {error}", source=path) from None


def _distinct(paths: Sequence[str], taken: set[str]) -> list[str]:
    """Return the shortest ends of the paths that tell them apart, file endings left out where that suffices."""
    parts = [tuple(path.replace(os.sep, "/").strip("/").split("/")) for path in paths]
    short = [(*folders, _stem(last)) for *folders, last in parts]
    names = [""] * len(paths)
    waiting = list(range(len(paths)))
    for depth in range(1, max(map(len, parts), default=0) + 2):
        for i in waiting:
            names[i] = "/".join(short[i][-depth:]) if depth <= len(parts[i]) else "/".join(parts[i])
        count = Counter(names)
        waiting = [i for i in waiting if count[names[i]] > 1 or names[i] in taken]
    return names


def _stem(name: str) -> str:
    for suffix in files.SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return name[: -len(suffix)]
    return name


def _file_names(names: Sequence[str]) -> list[str]:
    """Return for every name a distinct one that any file system takes, whatever the case."""
    taken: set[str] = set()
    out = []
    for name in names:
        base = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100]
        base = "_" + base if not base or base[0] in ".-" else base
        candidate, number = base, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{base}-{number}"
        taken.add(candidate.lower())
        out.append(candidate)
    return out


# --------------------------------------------------------------------------------------------------------- fingerprints


def _fingerprint(ground_truth: GroundTruth) -> str:
    """Return a hash of all that scoring reads of it."""
    whole = hashlib.sha256()
    for table in (ground_truth.images, ground_truth.categories):
        whole.update(json.dumps(table.values.tolist()).encode())
        whole.update(table.codes.tobytes())
    whole.update(json.dumps([ground_truth.category_names, ground_truth.box_sizes, ground_truth.notices]).encode())
    for column in (ground_truth.boxes, ground_truth.areas, ground_truth.crowd, ground_truth.difficult):
        whole.update(column.tobytes())
    return whole.hexdigest()


# --------------------------------------------------------------------------------------------------------- dispatching

_KEPT = 2  # ground truths that a worker keeps
_kept: OrderedDict[str, GroundTruth] = OrderedDict()
_lock = threading.Lock()


def _on_worker(
    task: Callable[..., T],
    key: str,
    ground_truth: GroundTruth | None,
    threads: int,
    arguments: tuple[Any, ...],
    submission: str,
) -> tuple[T] | None:
    """Run a task in so many threads; None where the ground truth of that key did not come along and is not kept here.

    Any executor can do this, whether or not it knows how to send something to each of its workers once. `submission` is
    another one each time: Dask takes calls with equal arguments for one, and gives the second what came of the first, even
    if its file has been rewritten since, or it was cancelled.
    """
    with _lock:
        if ground_truth is not None and key not in _kept:
            _kept[key] = ground_truth
            while len(_kept) > _KEPT:
                _kept.popitem(last=False)
        kept = _kept.get(key)
        if kept is not None:
            _kept.move_to_end(key)
    if kept is None:
        return None
    with parallel.limited(threads):
        return (task(kept, *arguments),)


def _width(executor: Executor) -> int:
    """Return how many tasks an executor runs at a time, as far as one can tell."""
    client: Any = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):  # dask.distributed
        return max(1, int(sum(client.nthreads().values())))
    return int(getattr(executor, "_max_workers", None) or parallel.cores())


def _dispatch(
    executor: Executor | None,
    threads: int | None,
    ground_truth: GroundTruth,
    task: Callable[..., T],
    arguments: Sequence[tuple[Any, ...]],
) -> Generator[tuple[int, T | BaseException], None, None]:
    """Yield index and outcome of ``task(ground_truth, *arguments[i])`` as they finish; without an executor on threads."""
    if executor is not None:
        yield from _run(executor, threads or 1, ground_truth, task, arguments)
        return
    with parallel.executor(len(arguments), threads) as own:
        yield from _run(own, None, ground_truth, task, arguments)


def _run(
    executor: Executor,
    threads: int | None,
    ground_truth: GroundTruth,
    task: Callable[..., T],
    arguments: Sequence[tuple[Any, ...]],
) -> Generator[tuple[int, T | BaseException], None, None]:
    """Keep an executor's workers busy, with a few tasks in waiting; `threads` for each task, unless it is known there.

    The first tasks carry the ground truth along; a worker that lacks it later says so and is sent it with the task again.
    """
    width, local = _width(executor), isinstance(executor, ThreadPoolExecutor)
    key = "" if local else _fingerprint(ground_truth)
    waiting = deque((i, i < width) for i in range(len(arguments)))
    pending: dict[Future[Any], int] = {}
    try:
        while waiting or pending:
            while waiting and len(pending) < 2 * width:
                i, carries = waiting.popleft()
                if local:
                    future: Future[Any] = executor.submit(_in_thread, task, threads, ground_truth, arguments[i])
                else:
                    sent = ground_truth if carries else None
                    submission = uuid.uuid4().hex
                    future = executor.submit(_on_worker, task, key, sent, threads or 1, arguments[i], submission)
                pending[future] = i
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                i = pending.pop(future)
                error = CancelledError("the task was cancelled") if future.cancelled() else future.exception()
                if isinstance(error, BrokenExecutor):
                    raise error
                if error is not None:
                    yield i, error
                elif future.result() is None:
                    waiting.appendleft((i, True))
                else:
                    yield i, future.result()[0]
    except BrokenExecutor as error:
        raise DetmapError(f"the executor's workers are gone ({error}); what is done is kept") from None
    finally:
        for future in pending:
            future.cancel()


def _in_thread(
    task: Callable[..., T], threads: int | None, ground_truth: GroundTruth, arguments: tuple[Any, ...]
) -> tuple[T]:
    with nullcontext() if threads is None else parallel.limited(threads):
        return (task(ground_truth, *arguments),)


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Connect to a Dask cluster (extra ``dask``) and give an executor that runs tasks on it.

    Parameters
    ----------
    address : str
        The scheduler's: ``tcp://host:8786``.
    """
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingDependencyError("distributed", "dask", "a Dask cluster") from None
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):  # the ground truth goes along
        try:
            client: Any = distributed.Client(address, timeout=10)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise OptionError(f"no scheduler at {shorten(address)}: {shorten(str(error), 200)}") from None
        with client:
            yield client.get_executor(pure=False)  # a file can be rewritten: no call is the same as one before


# ------------------------------------------------------------------------------------------------------------- scoring


class FileResult(Result):
    """What came of one file: metrics by name, or why there are none.

    Attributes
    ----------
    entry : Entry
        Name, path and tags.
    error : str or None
        One line that says why the file has no metrics.
    document : dict
        All that is known, as in ``results/NAME.json``; undefined values are None.
    """

    def __init__(self, entry: Entry, document: dict[str, Any]) -> None:
        self.entry, self.document = entry, document
        self.error: str | None = document.get("error")
        metrics = {k: float("nan") if v is None else v for k, v in document.get("metrics", {}).items()}
        super().__init__(metrics, document.get("notices"))

    def rows(self) -> list[dict[str, Any]]:
        """Return `per_category`."""
        return list(self.document.get("per_category", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return `document`."""
        return self.document

    def interval(self, metric: str) -> tuple[float, float]:
        """Return the confidence interval of a metric; NaN where none was made."""
        low, high = self.document.get("bootstrap", {}).get("intervals", {}).get(metric, (None, None))
        return (float("nan") if low is None else low, float("nan") if high is None else high)

    def __repr__(self) -> str:
        if self.error:
            return f"<FileResult: {self.entry.name}: {self.error}>"
        metric = next(iter(self))
        return f"<FileResult: {self.entry.name}: {metric} {self[metric]:.4f}>"


@dataclass(frozen=True)
class _Options:
    """How to score a file; what changes no number is left out of its key."""

    protocol: Protocol
    unknown_images: Unknown
    invalid_boxes: InvalidBoxes
    missing_classes: MissingClasses
    replicates: int
    seed: int
    method: Method
    level: float

    def read(self, path: files.Source, ground_truth: GroundTruth) -> Detections:
        return files.read_detections(path, ground_truth, self.unknown_images, self.invalid_boxes, self.missing_classes)

    def key(self, ground_truth: str, content: str) -> str:
        made = [self.replicates, self.seed, self.method, self.level] if self.replicates else []
        parts: list[Any] = [__version__, ground_truth, content, self.protocol.to_dict()]
        parts += [self.unknown_images, self.invalid_boxes, self.missing_classes, made]
        return _digest(parts)


def _score(
    ground_truth: GroundTruth, path: str, options: _Options, truth: str | None, known: frozenset[str]
) -> tuple[str, dict[str, Any] | None]:
    """Return the key of a file (where the fingerprint of the ground truth is given), and its document unless it is known."""
    identity, key = {}, ""
    source = files.held(path)
    with files.Unchanged(source):
        if truth is not None:
            content = files.fingerprint(source)
            key = options.key(truth, content)
            if key in known:
                return key, None
            identity = {"key": key, "content": f"sha256:{content}"}
        read = [options.read(source, ground_truth)]
    # Popped, so that `match` can let the detections go before it ranks.
    tally = match(ground_truth, read.pop(), options.protocol)
    result = DetectionResult(tally)
    document = {**identity, **result.to_dict()}
    if options.replicates:
        made = bootstrap(result, options.replicates, options.seed, method=options.method)
        document["bootstrap"] = made.to_dict(options.level)
    plain: dict[str, Any] = without_nan(document)
    return key, plain


def score(
    ground_truth: GroundTruth | PathLike,
    predictions: Iterable[PathLike | Entry],
    protocol: str | Protocol = "coco",
    *,
    unknown_images: Unknown = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
    replicates: int = 0,
    seed: int = 0,
    method: Method = "t",
    level: float = 0.95,
    out: PathLike | None = None,
    resume: bool = False,
    executor: Executor | None = None,
    threads: int | None = None,
) -> Generator[FileResult, None, None]:
    """Score many files against one ground truth and yield their results as they finish.

    Parameters
    ----------
    ground_truth : GroundTruth or path
        Read once.
    predictions : iterable of path or Entry
        See `find`.
    protocol : str or Protocol
        As in `detmap.evaluate`.
    unknown_images : {"error", "ignore"}
        As in `detmap.read_coco_results`.
    invalid_boxes : {"error", "miss", "drop"}
        As in `detmap.read_coco_results`, and for ground truth that is read here.
    missing_classes : {"zero", "error", "skip"}
        As in `detmap.read_voc_results`.
    replicates, seed, method, level
        Of the intervals, see `detmap.statistics.bootstrap`; none by default.
    out : path, optional
        A folder for ``results/NAME.json``, each written whole or not at all.
    resume : bool
        Leave files alone whose content, ground truth and options are those of a result in `out`.
    executor : concurrent.futures.Executor, optional
        Where files are read and scored: a process pool, ``dask.distributed``'s ``Client.get_executor()``, MPI's; by
        default a pool of threads. Paths are opened where the task runs. It is not shut down.
    threads : int, optional
        Threads in all, by default one per processor; with an `executor`, threads of each of its tasks, 1 by default.

    Yields
    ------
    FileResult
        One per file, in the order in which they finish. A file that cannot be scored has an `error`; it stops nothing.

    Raises
    ------
    DetmapError
        For ground truth, options or an `out` that cannot be used; never for a file of predictions.
    """
    entries = find(predictions)
    decided = _Options(
        resolve(protocol), unknown_images, invalid_boxes, missing_classes, replicates, seed, method, level
    )
    truth = _truth(ground_truth, invalid_boxes)
    folder = None if out is None else _folder(Path(out) / "results")
    done = _documents(folder) if folder is not None and resume else {}
    return _score_all(truth, entries, decided, folder, done, executor, threads)


def _score_all(
    truth: GroundTruth,
    entries: list[Entry],
    options: _Options,
    folder: Path | None,
    done: dict[str, dict[str, Any]],
    executor: Executor | None,
    threads: int | None,
) -> Generator[FileResult, None, None]:
    names = _file_names([entry.name for entry in entries])
    fingerprint = None if folder is None else _fingerprint(truth)
    arguments = [(entry.path, options, fingerprint, frozenset(done)) for entry in entries]
    with closing(_dispatch(executor, threads, truth, _score, arguments)) as outcomes:
        for i, outcome in outcomes:
            head: dict[str, Any] = {"name": entries[i].name, "source": entries[i].path}
            if isinstance(outcome, BaseException):
                document = {**head, "error": _one_line(outcome)}
            else:
                key, fresh = outcome
                document = {**(done[key] if fresh is None else fresh), **head}
                document = {**head, **document}  # the name first
            if folder is not None:
                write_atomically(folder / f"{names[i]}.json", _json(document))
            yield FileResult(entries[i], document)


def _one_line(error: BaseException) -> str:
    if isinstance(error, DetmapError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    return f"{type(error).__name__}: {shorten(str(error), 300)}"


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
        for left in path.glob(".*.tmp"):  # of a run that was killed
            left.unlink()
    except OSError as error:
        raise OptionError(f"cannot write to {shorten(str(path))}: {error.strerror}") from None
    return path


def _documents(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the results of an earlier run by key; what is damaged is made again."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(document, dict) and isinstance(document.get("key"), str):
            found[document["key"]] = document
    return found


def _json(document: Any) -> bytes:
    text = json.dumps(without_nan(document), indent=1, allow_nan=False, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "backslashreplace")


# ---------------------------------------------------------------------------------------------------------- comparing


def _test_pair(
    ground_truth: GroundTruth, paths: tuple[str, str], options: _Options, metric: str, permutations: int
) -> float:
    """Return the p-value of the difference between two files by a metric."""
    first, second = (match(ground_truth, options.read(path, ground_truth), options.protocol) for path in paths)
    return permute(first, second, permutations, options.seed, metric).p_value(metric)


def compare_files(
    ground_truth: GroundTruth,
    results: Iterable[FileResult],
    protocol: str | Protocol = "coco",
    *,
    metric: str | None = None,
    permutations: int | None = None,
    seed: int = 0,
    level: float = 0.95,
    correction: Correction = "holm",
    unknown_images: Unknown = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
    out: PathLike | None = None,
    resume: bool = False,
    executor: Executor | None = None,
    threads: int | None = None,
) -> PairTests:
    """Test every pair of files that have been scored: `detmap.compare` for a leaderboard.

    The files are read again, two for each pair, where the tests run.

    Parameters
    ----------
    ground_truth, protocol, unknown_images, invalid_boxes, missing_classes, executor, threads
        As in `score`.
    results : iterable of FileResult
        Those with errors, without the metric, or from a stream, which cannot be read again, are left out.
    metric : str, optional
        The first by default.
    permutations, seed, level, correction
        See `detmap.compare`.
    out : path, optional
        The folder of `score`, for ``tests.json``.
    resume : bool
        Take the tests of files that have not changed from there.

    Raises
    ------
    DetmapError
        Where a file can no longer be read.
    """
    scored = [one for one in results if not one.error and files.readable_again(one.entry.path)]
    name = metric or next((next(iter(one)) for one in scored), "AP")
    scored = sorted((one for one in scored if not np.isnan(one[name])), key=lambda one: (-one[name], one.entry.name))
    decided = resolve(protocol)
    images = match(ground_truth, _nothing(), decided)
    made = pair_tests(images, [one.entry.name for one in scored], name, permutations, level, correction)
    options = _Options(decided, unknown_images, invalid_boxes, missing_classes, 0, seed, "t", level)
    entries = {one.entry.name: one for one in scored}
    keys = {
        pair: _digest([*(entries[one].document.get("key") for one in pair), name, made.permutations, seed])
        for pair in made.p
    }
    saved = None if out is None else Path(out) / "tests.json"
    known = _saved_tests(saved) if saved is not None and resume else {}
    made.p.update({pair: known[key] for pair, key in keys.items() if key in known})
    pairs = [pair for pair, key in keys.items() if made.tested and key not in known]
    arguments = [((entries[a].entry.path, entries[b].entry.path), options, name, made.permutations) for a, b in pairs]
    with closing(_dispatch(executor, threads, ground_truth, _test_pair, arguments)) as outcomes:
        for i, outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome if isinstance(outcome, DetmapError) else DetmapError(_one_line(outcome))
            made.p[pairs[i]] = outcome
    if saved is not None:
        write_atomically(saved, _json({keys[pair]: p for pair, p in made.p.items() if made.tested}))
    return made


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _saved_tests(path: Path) -> dict[str, float]:
    """Return the p-values of an earlier run by key; what is damaged is made again."""
    try:
        document = json.loads(path.read_bytes())
        return {key: float(p) for key, p in document.items() if 0 <= float(p) <= 1}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


# --------------------------------------------------------------------------------------------------------- leaderboard


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Results sorted by a metric, best first; files without it, and those with errors, last.

    Parameters
    ----------
    results : sequence of FileResult
        In any order.
    rank_by : str, optional
        A metric; by default the first, ``AP`` or ``mAP``.
    tests : PairTests, optional
        What `compare_files` found; without it there are no groups.

    Raises
    ------
    OptionError
        For an unknown metric.
    """

    results: Sequence[FileResult]
    rank_by: str | None = None
    tests: PairTests | None = None

    def __post_init__(self) -> None:
        scored = [one for one in self.results if not one.error]
        metric = self.rank_by or next((next(iter(one)) for one in scored), "AP")
        if scored and metric not in scored[0]:
            raise OptionError(f"cannot rank by {shorten(metric)}; one of: {', '.join(list(scored[0])[:30])}")
        order = sorted(self.results, key=lambda one: (*_place(one, metric), one.entry.name, one.entry.path))
        object.__setattr__(self, "rank_by", metric)
        object.__setattr__(self, "results", order)

    @cached_property
    def groups(self) -> dict[str, str]:
        """Letters by name: models that share one cannot be told apart by the tests; empty without any."""
        return {} if self.tests is None else self.tests.groups

    def sentences(self) -> list[str]:
        """Return what was tested and estimated, in words."""
        made = next((one.document["bootstrap"] for one in self.results if "bootstrap" in one.document), None)
        said = [] if self.tests is None else self.tests.sentences()
        return [*said, *([] if made is None else [made["sentence"]])]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per file: rank, model, tags, metrics, interval of what is ranked by, group, notices, and error."""
        scored = [one for one in self.results if not one.error]
        metrics = list(scored[0]) if scored else []
        tags = list(dict.fromkeys(tag for one in self.results for tag in one.entry.tags))
        with_interval = any("bootstrap" in one.document for one in scored)
        with_notices = any(one.notices for one in scored)
        better: list[float] = []
        rows = []
        for one in self.results:
            value = one.get(str(self.rank_by), float("nan"))
            row: dict[str, Any] = {"rank": "" if np.isnan(value) else 1 + sum(other > value for other in better)}
            better.append(value)
            row["model"] = one.entry.name
            if with_interval:
                row["group"] = self.groups.get(one.entry.name, "")
            row |= {(f"tag {tag}" if tag in (*row, *metrics) else tag): one.entry.tags.get(tag, "") for tag in tags}
            for metric in metrics:
                row[metric] = one.get(metric, float("nan"))
                if with_interval and metric == self.rank_by:
                    row[f"{metric} low"], row[f"{metric} high"] = one.interval(metric)
            if with_notices:
                row["notices"] = results.in_brief(one.notices)
            rows.append({**row, "error": one.error or ""})
        return rows

    def to_frame(self) -> Any:
        """Return `rows` as a pandas data frame (extra ``frames``)."""
        return results.to_frame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the categories as plain values."""
        return {
            "rank_by": self.rank_by,
            "tests": None if self.tests is None else self.tests.to_dict(),
            "protocol": next((one.document["protocol"] for one in self.results if not one.error), None),
            "models": [
                {
                    "rank": row["rank"] or None,
                    "model": one.entry.name,
                    "source": one.entry.path,
                    "tags": dict(one.entry.tags),
                    "metrics": dict(one),
                    "intervals": one.document.get("bootstrap", {}).get("intervals", {}),
                    "group": self.groups.get(one.entry.name),
                    "notices": dict(one.notices),
                    "error": one.error,
                }
                for one, row in zip(self.results, self.rows(), strict=True)
            ],
        }

    def table(self) -> list[dict[str, Any]]:
        """Return `rows` for a person: without empty columns, errors (see `errors`) and more classes than a screen takes."""
        rows = self.rows()
        shown = [name for name in rows[0] if name != "error" and any(row[name] != "" for row in rows)] if rows else []
        classes = [name for name in shown if name.startswith("AP_") and name != self.rank_by]
        hidden = set(classes) if len(classes) > 8 else set()
        return [{name: row[name] for name in shown if name not in hidden} for row in rows]

    def errors(self) -> list[dict[str, Any]]:
        """Return a row per file that could not be scored: ``model`` and ``error``."""
        return [{"model": one.entry.name, "error": one.error} for one in self.results if one.error]

    def notices(self) -> list[dict[str, Any]]:
        """Return a row per notice in words: ``model`` (all, where every file that was scored has it) and ``notice``."""
        return results.sentences({one.entry.name: one.notices for one in self.results if not one.error})

    def write(self, out: PathLike) -> list[str]:
        """Write ``leaderboard.csv``, ``.json``, ``.md``, ``.html`` and ``.parquet`` into a folder.

        Returns
        -------
        list of str
            What was left out for want of a package (the page needs jinja2, Parquet pyarrow): one sentence each.
        """
        folder = _folder(Path(out))
        rows = self.rows()
        write_atomically(folder / "leaderboard.csv", results.to_csv(rows).encode("utf-8", "backslashreplace"))
        write_atomically(folder / "leaderboard.json", _json(self.to_dict()))
        text = report.markdown(self.table(), self.errors(), str(self.rank_by), self.notices())
        write_atomically(folder / "leaderboard.md", text.encode("utf-8", "backslashreplace"))
        missing = []
        for name, make in (("html", self._html), ("parquet", self._parquet)):
            try:
                write_atomically(folder / f"leaderboard.{name}", make())
            except MissingDependencyError as error:
                missing.append(str(error))
        return missing

    def _html(self) -> bytes:
        scored = [one for one in self.results if not one.error]
        categories = [str(row["category"]) for row in scored[0].rows()] if scored else []
        values = [[row["AP"] for row in one.rows()] for one in scored]
        models = [one.entry.name for one in scored]
        tables = self.table(), self.errors()
        page = report.html(*tables, str(self.rank_by), models, categories, values, self.notices())
        return page.encode("utf-8", "backslashreplace")

    def _parquet(self) -> bytes:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingDependencyError("pyarrow", "parquet", "leaderboard.parquet") from None
        buffer = io.BytesIO()
        rows = [{k: (None if k == "rank" and v == "" else v) for k, v in row.items()} for row in self.rows()]
        pq.write_table(pa.Table.from_pylist([{_utf8(k): _utf8(v) for k, v in row.items()} for row in rows]), buffer)
        return buffer.getvalue()


def metric_names(ground_truth: GroundTruth, protocol: Protocol) -> list[str]:
    """Return the metrics that a result will have, in order: what a leaderboard can be ranked by."""
    pairs = zip(ground_truth.categories.values.tolist(), ground_truth.category_names, strict=True)
    categories = tuple(pairs) if protocol.use_categories else ((None, "all"),)
    return list(DetectionResult(Tally.empty(protocol, categories), threads=1))


def _place(one: FileResult, metric: str) -> tuple[int, float]:
    value = one.get(metric, float("nan"))
    return (2, 0.0) if one.error else (1, 0.0) if np.isnan(value) else (0, -value)


# -------------------------------------------------------------------------------------------------------------- shards


@dataclass(frozen=True, eq=False)
class _Shard:
    content: str
    records: int
    tally: Tally


def _truth(ground_truth: GroundTruth | PathLike, invalid_boxes: InvalidBoxes) -> GroundTruth:
    if isinstance(ground_truth, GroundTruth):
        return ground_truth
    return files.read_ground_truth(ground_truth, invalid_boxes=invalid_boxes)


def _match_shard(
    ground_truth: GroundTruth,
    path: str,
    protocol: Protocol,
    unknown_images: Unknown,
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
) -> _Shard:
    """Return the tally of the images that a shard has detections on."""
    source = files.held(path)
    with files.Unchanged(source):
        content = files.fingerprint(source)
        detections = files.read_detections(source, ground_truth, unknown_images, invalid_boxes, missing_classes)
    images = detections.images.values
    tally = match(ground_truth, detections, protocol, image_ids=images)
    notices = {
        code: count - ground_truth.notices.get(code, 0) for code, count in tally.notices.items()
    }  # once is enough
    return _Shard(content, len(detections), replace(tally, notices=notices))


def evaluate_shards(
    ground_truth: GroundTruth | PathLike,
    shards: Iterable[PathLike],
    protocol: str | Protocol = "coco",
    *,
    unknown_images: Unknown = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
    executor: Executor | None = None,
    threads: int | None = None,
) -> DetectionResult:
    """Score one model whose detections are cut into files by image; the bits are those of the whole.

    Parameters
    ----------
    shards : iterable of path
        Files, patterns and folders, see `find`. All detections of an image are in one of them.
    missing_classes : {"zero", "error"}
        As in `detmap.read_voc_results`, of every shard. Classes cannot be skipped: shards are of the same classes.
    ground_truth, protocol, unknown_images, invalid_boxes, executor, threads
        See `score`.

    Raises
    ------
    OptionError
        Where classes are to be skipped.
    InputError
        Where a shard cannot be read, is given twice, or shares an image with another: names both.
    """
    if missing_classes == "skip":
        raise OptionError("missing_classes='skip' does not go with shards, which are of the same classes")
    paths = [entry.path for entry in find(shards)]
    decided = resolve(protocol)
    truth = _truth(ground_truth, invalid_boxes)
    images = truth.images.values
    owner = np.full(images.size, -1, np.int32)
    contents: dict[str, int] = {}
    counts: Counter[str] = Counter()
    tree = _Tree(len(paths))
    arguments = [(path, decided, unknown_images, invalid_boxes, missing_classes) for path in paths]
    with closing(_dispatch(executor, threads, truth, _match_shard, arguments)) as outcomes:
        for i, outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome if isinstance(outcome, DetmapError) else InputError(_one_line(outcome), source=paths[i])
            counts.update(outcome.tally.notices)
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
                        remedy="all detections of an image belong into one shard",
                    )
                owner[place] = i
            tree.add(i, outcome.records, outcome.tally)
    rest = match(truth, _nothing(), decided, image_ids=images[owner < 0])
    counts.update(rest.notices)
    counts["no_detections"] = int(not contents)
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
        """Take the tally of shard `i`, of so many detections, and merge it as far as its neighbours are there."""
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


def _nothing() -> Detections:
    return Detections.from_arrays(
        image_ids=np.empty(0, np.int64), category_ids=np.empty(0, np.int64), boxes=np.empty((0, 4)), scores=np.empty(0)
    )


__all__ = ["Entry", "FileResult", "Leaderboard", "cluster", "compare_files", "evaluate_shards", "find", "score"]
