"""Tasks on any executor, to whose workers the ground truth is sent once."""

from __future__ import annotations

import hashlib
import json
import pickle
import threading
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from detmap import parallel, plugins
from detmap.errors import DetmapError, MissingDependencyError, OptionError, shorten
from detmap.tables import GroundTruth

T = TypeVar("T")

_KEPT = 2  # ground truths that a worker keeps
_kept: OrderedDict[str, GroundTruth] = OrderedDict()
_lock = threading.Lock()


def _on_worker(
    task: Callable[..., T],
    key: str,
    ground_truth: bytes | None,
    threads: int,
    arguments: tuple[Any, ...],
    submission: str,
    modules: tuple[str, ...] = (),
) -> tuple[T] | None:
    """Run a task in so many threads; None where the ground truth of that key did not come along and is not kept here.

    The ground truth comes pickled, so that nobody takes it up before the plug-ins of `modules`, which may have made it.

    Any executor can do this, whether or not it knows how to send something to each of its workers once. `submission` is
    another one each time: Dask takes calls with equal arguments for one, and gives the second what came of the first, even
    if its file has been rewritten since, or it was cancelled.
    """
    plugins.load(modules)
    sent = None if ground_truth is None or key in _kept else pickle.loads(ground_truth)
    with _lock:
        if sent is not None and key not in _kept:
            _kept[key] = sent
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


def dispatch(
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
    key = "" if local else fingerprint(ground_truth)
    parcel = None if local else pickle.dumps(ground_truth, pickle.HIGHEST_PROTOCOL)
    modules = plugins.loaded()
    waiting = deque((i, i < width) for i in range(len(arguments)))
    pending: dict[Future[Any], int] = {}
    try:
        while waiting or pending:
            while waiting and len(pending) < 2 * width:
                i, carries = waiting.popleft()
                if local:
                    future: Future[Any] = executor.submit(_in_thread, task, threads, ground_truth, arguments[i])
                else:
                    sent = parcel if carries else None
                    submission = uuid.uuid4().hex
                    future = executor.submit(
                        _on_worker, task, key, sent, threads or 1, arguments[i], submission, modules
                    )
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
        The address of the scheduler, as ``tcp://host:8786``.
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


def fingerprint(ground_truth: GroundTruth) -> str:
    """Return a hash of everything in it that scoring reads."""
    whole = hashlib.sha256()
    for table in (ground_truth.images, ground_truth.categories):
        whole.update(json.dumps(table.ids.tolist()).encode())
        whole.update(table.codes.tobytes())
    whole.update(json.dumps([ground_truth.categories.names, ground_truth.box_sizes, ground_truth.notices]).encode())
    for column in (ground_truth.boxes, ground_truth.areas, ground_truth.crowd, ground_truth.difficult):
        whole.update(column.tobytes())
    for kind, shapes in ground_truth.shapes.items():
        for name, column in shapes.arrays().items() if kind != "bbox" else ():
            whole.update(f"{kind}.{name}".encode())
            whole.update(column.tobytes())
    return whole.hexdigest()
