"""Run tasks on any executor. Objects shared by all tasks, such as the ground truth, are sent to each worker once."""

from __future__ import annotations

import hashlib
import json
import pickle
import platform
import re
import threading
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeVar

from detmap import __version__, plugins
from detmap.batch import stamps
from detmap.batch.clusters import Cluster, Kept
from detmap.data.tables import GroundTruth
from detmap.errors import DetmapError, shorten
from detmap.formats.inputs import Input
from detmap.shapes.kinds import BOXES
from detmap.system import parallel

T = TypeVar("T")

_KEPT = 4  # maximum number of shared objects (ground truths and common arguments) that a worker keeps
_kept: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()

#: Maximum number of submissions of a task whose worker is lost each time.
_ATTEMPTS = 4

_AGAIN = "detmap batch --resume scores only the files that are missing"

_TICK = 1.0  # seconds between two checks that workers are alive
_COLOURS = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")


class Home(NamedTuple):
    """Plug-ins and scoring code of the process that sends tasks; a worker must have the same code."""

    modules: tuple[str, ...]
    version: str
    code: str

    @classmethod
    def here(cls) -> Home:
        """Return the plug-ins and scoring code of this process."""
        return cls(plugins.loaded(), __version__, stamps.code(confidence=True))

    def check(self) -> None:
        """Raise `DetmapError` if the scoring code of the sending process differs from this worker's."""
        if self.code != stamps.code(confidence=True):
            what = f"detmap {__version__}" if __version__ != self.version else f"other code of detmap {__version__}"
            raise DetmapError(
                f"the worker on {shorten(platform.node())[1:-1]} has {what}, and this process {self.version}: "
                "install the same on both"
            )


def _on_worker(
    task: Callable[..., T],
    keys: Sequence[str],
    parcel: bytes | None,
    threads: int,
    arguments: tuple[Any, ...],
    submission: str,
    home: Home,
) -> tuple[T] | None:
    """Run a task and return its result in a tuple; None if this worker lacks an object that the tasks share."""
    # The ground truth is sent pickled, because the plug-ins of `home`, which may define its classes, must be loaded
    # first. Many executors cannot send an object to each worker once, so a worker that lacks shared objects asks for
    # them by returning None. `submission` differs for each call, because Dask treats calls with equal arguments as one.
    # A second call would otherwise get the result of the first, even if the file has changed or the first call was
    # cancelled.
    plugins.load(home.modules)
    home.check()
    with _lock:
        lacking = any(key not in _kept for key in keys)
        if lacking and parcel is None:
            return None
        for key, one in zip(keys, pickle.loads(parcel) if lacking and parcel else (), strict=False):
            if key not in _kept:
                _kept[key] = pickle.loads(one)
        shared = [_kept[key] for key in keys]
        for key in keys:
            _kept.move_to_end(key)
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    with parallel.limited(threads):
        return (task(*shared, *arguments),)


def one_line(error: BaseException) -> str:
    """Return an error as one line of text. If an executor has put a traceback into the message, use its last line."""
    if isinstance(error, DetmapError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    lines = [line.strip() for line in _COLOURS.sub("", str(error)).splitlines() if line.strip()]
    traced = any(line.startswith(("Traceback (most recent", "File ")) or "--->" in line for line in lines)
    text = shorten(lines[-1] if traced else " ".join(lines), 300)
    return f"{type(error).__name__}: {text}"


def _is_local(executor: Executor | None) -> bool:
    return executor is None or isinstance(executor, ThreadPoolExecutor)


def whence(found: Input, executor: Executor | None) -> Input:
    """Return an input with absolute paths, because workers may have another current folder."""
    return found if _is_local(executor) else found.from_anywhere()


def dispatch(
    executor: Executor | None,
    threads: int | None,
    ground_truth: GroundTruth,
    task: Callable[..., T],
    common: Any,
    arguments: Sequence[tuple[Any, ...]],
    summarize: Callable[[T], Any] | None = None,
) -> Generator[tuple[int, Any], None, None]:
    """Run ``task(ground_truth, common, *arguments[i])`` for each i, and yield i and the outcome whenever a task
    finishes. Without an executor, tasks run in threads. `ground_truth` and `common` are sent to each worker once. If
    `summarize` is given and the executor is Dask's, results stay on the workers, and the outcome of a task is a `Kept`
    with the summary ``summarize(result)``.
    """
    if executor is not None:
        yield from _run(executor, threads or 1, (ground_truth, common), task, arguments, summarize)
        return
    with parallel.executor(len(arguments), threads) as own:
        yield from _run(own, None, (ground_truth, common), task, arguments, None)


def _run(
    executor: Executor,
    threads: int | None,
    shared: tuple[GroundTruth, Any],
    task: Callable[..., T],
    arguments: Sequence[tuple[Any, ...]],
    summarize: Callable[[T], Any] | None,
) -> Generator[tuple[int, Any], None, None]:
    """Run the tasks, each with `threads` threads. At most twice as many tasks are pending as the executor runs at a
    time.
    """
    # The first tasks carry the shared objects. A task that returns None, because its worker lacks the shared objects,
    # is submitted again with them.
    local, cluster = _is_local(executor), Cluster.of(executor)
    parcels = [] if local else [pickle.dumps(one, pickle.HIGHEST_PROTOCOL) for one in shared]
    keys = [] if local else [fingerprint(shared[0]), *(hashlib.sha256(one).hexdigest() for one in parcels[1:])]
    parcel = None if local else pickle.dumps(parcels, pickle.HIGHEST_PROTOCOL)
    scattered = None if cluster is None or not arguments else cluster.share(parcel)
    home: Any = None if local else Home.here()
    width = _width(executor, cluster)
    waiting = deque((i, i < width and scattered is None) for i in range(len(arguments)))
    pending: dict[Future[Any], int] = {}
    kept: dict[int, Kept] = {}
    lost = Counter[int]()
    try:
        while waiting or pending:
            width = _width(executor, cluster)
            while waiting and len(pending) < 2 * width:
                i, carries = waiting.popleft()
                if local:
                    future: Future[Any] = executor.submit(_in_thread, task, threads, shared, arguments[i])
                else:
                    assert threads is not None  # `dispatch` sets the number of threads per worker
                    sent = parcel if carries else scattered
                    submission = uuid.uuid4().hex
                    call: tuple[Any, ...] = (_on_worker, task, keys, sent, threads, arguments[i], submission, home)
                    if cluster is not None and summarize is not None:
                        kept[i] = cluster.keep(*call, needs=sent)
                        call = (_summarized, summarize, kept[i].future)
                    future = executor.submit(*call)
                pending[future] = i
            done = wait(pending, None if cluster is None else _TICK, FIRST_COMPLETED).done
            if cluster is not None:
                cluster.check(idle=not done)
            for future in sorted(done, key=pending.__getitem__):  # in the order of `arguments`
                i = pending.pop(future)
                error = CancelledError("the task was cancelled") if future.cancelled() else future.exception()
                if isinstance(error, BrokenExecutor):
                    raise error
                # Dask's error for a task that never ran is not a subclass of CancelledError.
                if any("Cancelled" in kind.__name__ for kind in type(error).__mro__):
                    # The handle may be lost, too, so from now on shared objects are sent with the tasks.
                    scattered = None
                    lost[i] += 1
                    if lost[i] < _ATTEMPTS:
                        waiting.appendleft((i, True))
                    else:
                        yield i, DetmapError(f"lost with its worker {_ATTEMPTS} times; {_AGAIN}")
                elif error is not None:
                    lost_all = type(error).__name__ == "KilledWorker"  # Dask has already retried the task
                    yield i, DetmapError(f"{one_line(error)}; {_AGAIN}") if lost_all else error
                elif future.result() is None:
                    waiting.appendleft((i, True))
                elif i in kept:
                    kept[i].summary = future.result()[0]
                    yield i, kept.pop(i)
                else:
                    yield i, future.result()[0]
    except BrokenExecutor as error:
        raise DetmapError(f"the executor's workers are gone ({error}); what is done is kept") from None
    finally:
        for future in pending:
            future.cancel()


def _summarized(summarize: Callable[[T], Any], result: tuple[T] | None) -> tuple[Any] | None:
    """Return only the summary of a result of `_on_worker`, because the result stays on the worker."""
    return None if result is None else (summarize(result[0]),)


def _width(executor: Executor, cluster: Cluster | None) -> int:
    """Return the number of tasks that an executor runs at a time; the number of cores if unknown."""
    if cluster is not None:
        return max(1, cluster.threads())
    return int(getattr(executor, "_max_workers", None) or parallel.cores())


def _in_thread(
    task: Callable[..., T], threads: int | None, shared: tuple[Any, ...], arguments: tuple[Any, ...]
) -> tuple[T]:
    with nullcontext() if threads is None else parallel.limited(threads):
        return (task(*shared, *arguments),)


def fingerprint(ground_truth: GroundTruth) -> str:
    """Return a hash of all ground truth data that scoring reads."""
    whole = hashlib.sha256()
    for table in (ground_truth.images, ground_truth.categories):
        whole.update(json.dumps(table.ids.tolist()).encode())
        whole.update(table.codes.tobytes())
    whole.update(json.dumps([ground_truth.categories.names, ground_truth.box_sizes, ground_truth.notices]).encode())
    if ground_truth.images.clusters is not None:
        whole.update(json.dumps(ground_truth.images.clusters.tolist()).encode())
    if ground_truth.categories.frequencies is not None:
        whole.update(json.dumps(ground_truth.categories.frequencies).encode())
    if ground_truth.images.crowd_index is not None:
        whole.update(ground_truth.images.crowd_index.tobytes())
    for name, flags in sorted(ground_truth.part_flags.items()):
        whole.update(name.encode() + flags.tobytes())
    for name in ("negatives", "not_exhaustive", "present"):
        lists = getattr(ground_truth, name)
        for column in () if lists is None else (lists.images, lists.categories, lists.listed):
            whole.update(name.encode() + column.tobytes())
    for column in (ground_truth.boxes, ground_truth.areas, ground_truth.crowd, ground_truth.difficult):
        whole.update(column.tobytes())
    if ground_truth.group_of is not None:
        whole.update(b"group_of" + ground_truth.group_of.tobytes())
    for name, column in sorted(ground_truth.fields.items()):
        whole.update(name.encode() + column.tobytes())
    for kind, shapes in ground_truth.shapes.items():
        for name, column in shapes.arrays().items() if kind != BOXES else ():
            whole.update(f"{kind}.{name}".encode())
            whole.update(column.tobytes())
    return whole.hexdigest()
