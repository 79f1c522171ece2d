"""Dask clusters: connect, send an object to each worker once, keep results on workers, and detect clusters without
workers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, TypeVar

from detmap.errors import DetmapError, MissingDependencyError, OptionError, shorten

T = TypeVar("T")

#: Seconds to wait for an answer of the scheduler, and for a worker. Workers may be slow, because some clusters start
#: machines only when there are tasks.
_CONNECTING, _PATIENCE = 10.0, 300.0


class ClusterWarning(UserWarning):
    """A cluster has no workers at the moment."""


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Connect to a Dask cluster (needs the extra ``dask``) and yield an executor that runs tasks on the cluster.

    Parameters
    ----------
    address : str
        The address of the scheduler, such as ``tcp://host:8786``.

    Raises
    ------
    OptionError
        If there is no scheduler at the address.
    """
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingDependencyError("distributed", "dask", "a Dask cluster") from None
    # The ground truth is sent with the tasks, so task graphs are large.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
        try:
            client: Any = distributed.Client(address, timeout=_CONNECTING)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise OptionError(f"no scheduler at {shorten(address)}: {shorten(str(error), 200)}") from None
        with client:
            yield client.get_executor(pure=False)  # no caching, because a file can change between equal calls


class Kept:
    """A result that stays on a worker of a Dask cluster until the last reference to this object is gone."""

    def __init__(self, client: Any, future: Any, needs: Any) -> None:
        self._client, self.future = client, future
        self._needs = needs  # Dask recomputes the result from this object if the worker dies
        #: The summary of the result, which is computed on the worker and sent to this process.
        self.summary: Any = None

    @staticmethod
    def apply(function: Callable[..., T], kept: Sequence[Kept], *arguments: Any) -> list[T]:
        """Return ``function(result, *arguments)`` for each result, computed on the worker that holds the result, in one
        task per worker.

        Raises `DetmapError` if results are lost or the connection is closed.
        """
        if not kept:
            return []
        client, futures = kept[0]._client, [one.future for one in kept]
        try:
            holders = client.who_has(futures)
            places: dict[str, list[int]] = {}
            for i, future in enumerate(futures):
                places.setdefault(min(holders.get(future.key, ()), default=""), []).append(i)
            tasks = [
                client.submit(_apply, function, [futures[i] for i in rows], arguments, pure=False)
                for rows in places.values()
            ]
            found = dict(zip(chain(*places.values()), chain(*client.gather(tasks)), strict=True))
        except Exception as error:  # any exception of the connection or of a task
            why = f"{type(error).__name__}: {shorten(str(error), 200)}"
            raise DetmapError(
                f"what the cluster's workers keep cannot be read ({why}); score the files again"
            ) from None
        return [found[i] for i in range(len(kept))]


def _apply(function: Callable[..., T], results: Sequence[tuple[Any]], arguments: tuple[Any, ...]) -> list[T]:
    return [function(result, *arguments) for (result,) in results]


def _same(data: T) -> T:
    return data


class Cluster:
    """The cluster to which a ``distributed.Client`` of Dask is connected."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._alone_since: float | None = None

    @classmethod
    def of(cls, executor: Any) -> Cluster | None:
        """Return the cluster on which an executor runs tasks; None if the executor is not Dask's."""
        client: Any = getattr(executor, "_client", None)
        return cls(client) if client is not None and hasattr(client, "nthreads") else None

    def threads(self) -> int:
        """Return the total number of threads of all workers; raise `DetmapError` if the scheduler does not answer."""
        try:
            return int(sum(self._client.nthreads().values()))
        except Exception as error:  # the connection can raise any exception
            raise _gone(error) from None

    def share(self, data: Any) -> Any:
        """Send an object once to each present worker. Return the handle to pass to tasks."""
        # The object is the result of a task, because Dask computes a task's result again if its workers die. Scattered
        # data would be lost: Dask soon keeps a single copy, even if the data was sent to all workers.
        future = self._client.submit(_same, data, pure=False)
        if self.threads():
            with suppress(Exception):  # if a worker dies now, other workers still get the object when a task needs it
                self._client.replicate([future])
        return future

    def keep(self, function: Callable[..., Any], *arguments: Any, needs: Any) -> Kept:
        """Run a function on a worker, and leave the result there. `needs` are the objects that Dask needs to compute a
        lost result again.
        """
        return Kept(self._client, self._client.submit(function, *arguments, pure=False), needs)

    def check(self, *, idle: bool) -> None:
        """Check that the scheduler answers. If no task has finished since the last check (`idle`), also check that there
        are workers.

        Raises `DetmapError` if the scheduler is gone, or if there has been no worker for `_PATIENCE` seconds.
        """
        if getattr(self._client, "status", "running") not in ("running", "connecting"):
            raise _gone(None)
        if not idle or self.threads():
            self._alone_since = None
            return
        now = time.monotonic()
        if self._alone_since is None:
            self._alone_since = now
            text = f"the cluster has no workers: waiting for one, for {_PATIENCE:g} seconds at most"
            warnings.warn(ClusterWarning(text), stacklevel=2)
        elif now - self._alone_since > _PATIENCE:
            raise DetmapError(f"the cluster had no workers for {_PATIENCE:g} seconds; what is done is kept")


def _gone(error: Exception | None) -> DetmapError:
    why = "" if error is None or not str(error) else f" ({shorten(str(error), 200)})"
    return DetmapError(f"the cluster's scheduler is gone{why}; what is done is kept")
