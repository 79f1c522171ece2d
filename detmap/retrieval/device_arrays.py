"""Evaluation of features and distances that are on another device, such as a GPU. They are multiplied, sorted and
ranked there.

This module only calls functions of the array API that PyTorch and CuPy share, with the same names and arguments, so it
imports no device library. Features are copied to the host once, in parts, to check them and to find equal rows. For
every block of distances, the positions of relevant items and of junk are copied to the host.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.errors import InputError
from detmap.kernels import ranking
from detmap.retrieval.scoring import numeric_table

#: DLPack's device types of host memory: ordinary memory, and memory pinned by CUDA or ROCm.
_HOST = frozenset({1, 3, 11})

#: Number of distances per block, and number of features that are converted at a time. Sorting takes 16 to 40 bytes per
#: distance.
_BLOCK_DISTANCES, _TILE_FEATURES = 1 << 24, 1 << 24

#: The float types that are multiplied on a device, mapped to the types of their copies on the host.
_FLOATS = {"float16": "float16", "bfloat16": "float32", "float32": "float32", "float64": "float64"}


def array_table(values: Any, source: str, *, booleans: bool = False) -> NDArray[Any] | DeviceTable:
    """Return a matrix of unchanged dtype. A dense float matrix stays on its device; any other matrix is copied to the
    host.
    """
    namespace, name = _namespace(values), str(getattr(values, "dtype", None)).rpartition(".")[2]
    is_dense = str(getattr(values, "layout", "strided")).endswith("strided")  # PyTorch has sparse tensors
    if namespace is None or name not in _FLOATS or values.ndim != 2 or not is_dense:
        is_foreign = namespace is not None and not hasattr(values, "detach")
        return numeric_table(_fetched(values) if is_foreign else values, source, booleans=booleans)
    values = values.detach() if hasattr(values, "detach") else values
    return DeviceTable(namespace, values, np.dtype(_FLOATS[name]))


def _namespace(values: Any) -> Any:
    """Return the array library of an array on a device, such as the module torch; None for any other value."""
    try:
        if values.__dlpack_device__()[0] in _HOST:
            return None
    except Exception:  # not an array, or an array without memory, such as on PyTorch's device "meta"
        return None
    if hasattr(values, "__array_namespace__"):
        return values.__array_namespace__()
    torch, cupy = map(sys.modules.get, ("torch", "cupy"))
    if isinstance(values, getattr(cupy, "ndarray", ())):
        return _of_cupy(cupy)
    return torch if isinstance(values, getattr(torch, "Tensor", ())) else None


def _of_cupy(cupy: Any) -> Any:
    """Return CuPy's functions, with `asarray` and `argsort` adapted to the array API. CuPy's sort is always stable."""

    def asarray(values: Any, *, dtype: Any = None, device: Any = None) -> Any:
        with device or nullcontext():
            return cupy.asarray(values, dtype)

    return SimpleNamespace(**{**vars(cupy), "asarray": asarray, "argsort": lambda values, stable: cupy.argsort(values)})


def _fetched(values: Any) -> NDArray[Any]:
    """Copy an array to the host."""
    if hasattr(values, "detach") or hasattr(values, "get"):  # an array of PyTorch or CuPy
        return columns.array(values)
    try:
        return np.from_dlpack(values, device="cpu", copy=True)
    except (BufferError, TypeError):  # numpy before 2.1, or a library that does not copy between devices
        return columns.array(values)


class DeviceTable:
    """A matrix on a device; indexing returns rows as an array of `dtype` on the host."""

    def __init__(self, namespace: Any, values: Any, dtype: np.dtype[Any]) -> None:
        self.xp, self.values, self.dtype = namespace, values, dtype
        self.shape: tuple[int, int] = (int(values.shape[0]), int(values.shape[1]))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> NDArray[Any]:
        if isinstance(rows, slice):  # the array API defines no slices beyond the end
            part = self.values[slice(*rows.indices(len(self))), :]
        else:
            part = _take(self.xp, self.values, self.put(rows), 0)
        return _fetched(part).astype(self.dtype, copy=False)

    def put(self, values: NDArray[Any]) -> Any:
        """Copy an array to the device."""
        return self.xp.asarray(values.copy(), device=self.values.device)

    def floats(self, begin: int, end: int, kind: type) -> Any:
        """Return rows as floats of `kind` on the device."""
        return self.xp.asarray(self.values[begin:end, :], dtype=getattr(self.xp, np.dtype(kind).name))


def check_device(query: NDArray[Any] | DeviceTable, gallery: NDArray[Any] | DeviceTable, source: str) -> None:
    """Raise `InputError` unless queries and gallery are on one device. The error names the argument `source`."""
    ours, theirs = (side.values.device if isinstance(side, DeviceTable) else None for side in (query, gallery))
    if ours is None and theirs is None:
        return
    if ours is None or theirs is None:
        raise InputError(
            f"of queries and gallery only one is an array of floats on {theirs if ours is None else ours}",
            source=source,
            remedy="give both as floats on one device",
        )
    if ours != theirs:
        raise InputError(
            f"queries are on {ours} and the gallery on {theirs}", source=source, remedy="move both to one device"
        )


def _take(xp: Any, values: Any, indices: Any, axis: int) -> Any:
    """Take rows or columns; PyTorch's `take` has no axis argument."""
    return (
        xp.index_select(values, axis, indices) if hasattr(xp, "index_select") else xp.take(values, indices, axis=axis)
    )


class DeviceRows:
    """A block of distances on a device; the first row belongs to query `first`."""

    def __init__(self, table: DeviceTable, values: Any, first: int) -> None:
        self.table, self.values, self.first = table, values, first

    def __call__(self, begin: int, end: int) -> NDArray[Any]:
        """Copy the distances of queries ``[begin, end)`` to the host."""
        return _fetched(self.values[begin - self.first : end - self.first, :]).astype(self.table.dtype, copy=False)

    def take(self, items: NDArray[np.int64]) -> DeviceRows:
        """Return the distances to the given items only."""
        return DeviceRows(self.table, _take(self.table.xp, self.values, self.table.put(items), 1), self.first)

    def rank(self, relevant: ranking.Lists, junk: ranking.Lists, begin: int, end: int, out: ranking.Places) -> int:
        """Rank the relevant items of queries ``[begin, end)`` as `ranking.rank_relevant` does. Row 0 of `relevant` and
        of `junk` belongs to query `begin`.
        """
        xp, values = self.table.xp, self.values[begin - self.first : end - self.first, :]
        bad = _fetched(xp.any(xp.isnan(values), axis=1))
        if bad.any():
            return int(np.argmax(bad))
        width, count = int(values.shape[1]), relevant.items.size
        own, other = (np.repeat(np.arange(end - begin), np.diff(side.starts)) for side in (relevant, junk))
        places = self._places(values, np.concatenate((own, other)), np.concatenate((relevant.items, junk.items)))
        left_out = np.sort(other * width + places[2, count:])
        edges = own * width + places[:, :count]
        ahead, upto, place = places[:, :count] - (np.searchsorted(left_out, edges) - junk.starts[own])
        order = np.argsort(edges[2])
        out.ranks[:], out.ahead[:], out.tied[:], out.which[:] = (
            place[order] + 1,
            ahead[order],
            (upto - ahead)[order],
            order,
        )
        out.items[:] = width - np.diff(junk.starts)
        return -1

    def _places(self, values: Any, rows: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return three counts for each element (row, item), shape (3, n): smaller elements, smaller or equal elements,
        and preceding elements in a stable sort, all in the same row.
        """
        xp, width = self.table.xp, int(values.shape[1])
        # Some libraries sort -0 before 0. Adding 0 turns -0 into 0.
        order = xp.reshape(xp.argsort(values + 0.0, stable=True), (-1,))
        values = xp.reshape(values, (-1,))
        start, item = self.table.put(rows * width), self.table.put(items)
        mine = xp.take(values, start + item)

        def search(low: Any, high: Any, is_before: Any) -> Any:
            for _ in range(width.bit_length()):
                middle = (low + high) // 2
                found = xp.take(order, start + middle % width)
                before = (low < high) & is_before(found)
                low, high = xp.where(before, middle + 1, low), xp.where(before, high, middle)
            return low

        none = start * 0
        ahead = search(none, none + width, lambda found: xp.take(values, start + found) < mine)
        upto = search(ahead, none + width, lambda found: xp.take(values, start + found) <= mine)
        place = search(ahead, upto, lambda found: found < item)
        return np.stack([_fetched(one) for one in (ahead, upto, place)])


Blocks = tuple[list[tuple[int, int]], Callable[[int, int], DeviceRows]]


def _blocks(queries: int, items: int, rows_of: Callable[[int, int], DeviceRows]) -> Blocks:
    """Split queries into blocks whose distances fit into memory."""
    height = max(1, _BLOCK_DISTANCES // max(1, items))
    return [(begin, min(begin + height, queries)) for begin in range(0, queries, height)], rows_of


def distance_blocks(table: DeviceTable) -> Blocks:
    """Return the bounds of blocks of queries, and a function that returns the distances of a block."""
    return _blocks(*table.shape, lambda begin, end: DeviceRows(table, table.values[begin:end, :], begin))


def feature_blocks(
    ours: DeviceTable,
    theirs: DeviceTable,
    squares: tuple[NDArray[Any], NDArray[Any]],
    first: NDArray[np.int64],
    metric: str,
) -> Blocks:
    """Return the bounds of blocks of queries, and a function that computes the distances of a block on the device.

    `squares` are the squared lengths of all queries and of all gallery items. Distances are computed in their dtype.
    ``first[i]`` is the first gallery item that equals item *i*.
    """
    kind, xp = squares[0].dtype.type, theirs.xp
    own, inside = (theirs.put(np.sqrt(np.where(side > 0, side, 1)) if metric == "cosine" else side) for side in squares)
    copies = theirs.put(first) if (first != np.arange(first.size)).any() else None
    height = max(1, _TILE_FEATURES // max(1, theirs.shape[1]))

    def rows_of(begin: int, end: int) -> DeviceRows:
        query = ours.floats(begin, end, kind)
        query = query / -own[begin:end, None] if metric == "cosine" else query * (-1.0 if metric == "dot" else -2.0)
        parts = []
        for low in range(0, len(theirs), height):
            high = min(low + height, len(theirs))
            part = xp.matmul(query, theirs.floats(low, high, kind).T)
            if metric == "cosine":
                part = part / inside[None, low:high] + 1.0
            elif metric != "dot":
                part = part + own[begin:end, None] + inside[None, low:high]
            parts.append(part)
        values = parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)
        if copies is not None:
            values = _take(xp, values, copies, 1)
        return DeviceRows(theirs, values, begin)

    return _blocks(len(ours), len(theirs), rows_of)
