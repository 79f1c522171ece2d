"""Convert columns of Arrow to arrays, with one-line errors for unsupported types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError, MissingDependencyError, shorten

#: Maximum length of an id.
LONGEST = 256


def pyarrow() -> Any:
    """Import pyarrow; raise `MissingDependencyError` if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("pyarrow", "parquet", "data frames, Arrow and Parquet") from None
    return pyarrow


@contextmanager
def taken(field: str, source: str) -> Iterator[None]:
    """Context manager that converts pyarrow's errors to an `InputError` about the column `field`."""
    try:
        yield
    except MemoryError:
        raise
    except (pyarrow().ArrowException, NotImplementedError) as error:
        reason = shorten(" ".join(str(error).split()), 100)[1:-1]
        raise InputError(
            f"cannot be read: {reason}",
            source=source,
            field=field,
            remedy="write it as plain numbers, strings or lists",
        ) from None


def plain(column: Any) -> Any:
    """Return a column, or a chunk of a column, converted to a type that all functions of pyarrow support.

    Dictionary and run-end encodings are decoded, views become strings and lists, extension types become their storage,
    and decimals become integers or the nearest floats.
    """
    pa = pyarrow()
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        if isinstance(column, pa.ChunkedArray):
            return plain(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
        return plain(column.storage)
    if pa.types.is_dictionary(kind):
        if _is(kind.value_type, "string_view"):
            column = column.cast(pa.dictionary(kind.index_type, pa.large_string()))
        return plain(column.cast(column.type.value_type))
    if _is(kind, "run_end_encoded"):
        import pyarrow.compute as compute

        return plain(compute.run_end_decode(column))
    if _is(kind, "string_view"):
        return column.cast(pa.large_string())
    if _is(kind, "list_view") or _is(kind, "large_list_view"):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        made = pa.chunked_array([_of_views(chunk) for chunk in chunks], pa.large_list(kind.value_type))
        return made if isinstance(column, pa.ChunkedArray) else made.combine_chunks()
    if pa.types.is_decimal(kind):
        values = column.to_pylist()
        whole = all(value is None or (value == int(value) and abs(value) < 1 << 63) for value in values)
        made = pa.array(
            [None if value is None else int(value) if whole else float(value) for value in values],
            pa.int64() if whole else pa.float64(),
        )
        return pa.chunked_array([made]) if isinstance(column, pa.ChunkedArray) else made
    return column


def _of_views(views: Any) -> Any:
    """Convert list views to lists, without pyarrow's cast, because it reads wrong values from a sliced array."""
    pa = pyarrow()
    lengths = np.asarray(views.value_lengths().fill_null(0), np.int64)
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]))
    return pa.LargeListArray.from_arrays(ends, views.flatten(), mask=views.is_null())


def _is(kind: Any, name: str) -> bool:
    """Return whether `kind` is the type called `name`, which older versions of pyarrow may lack."""
    known = getattr(pyarrow().types, f"is_{name}", None)
    return known is not None and bool(known(kind))


def array_of(column: Any, field: str, source: str) -> Any:
    """Return a column as an array. A single chunk of numbers without nulls is not copied."""
    with taken(field, source):
        whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        return whole.to_numpy(zero_copy_only=False)


def listed(column: Any, field: str, source: str) -> NDArray[Any]:
    """Return a column of numbers or strings as an array; lists of equal length become an array with a row per list."""
    pa = pyarrow()
    with taken(field, source):
        column = plain(column)
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError("is missing", source=source, record=row, field=field)
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return np.asarray(array_of(column, field, source))
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    fixed = pa.types.is_fixed_size_list(kind)
    lengths = np.full(len(whole), kind.list_size) if fixed else np.asarray(whole.value_lengths())
    if lengths.size and (lengths != lengths[0]).any():
        row = int(np.argmax(lengths != lengths[0]))
        problem = f"has {lengths[row]} values where others have {lengths[0]}"
        raise InputError(problem, source=source, record=row, field=field, remedy="fill up places with -1")
    with taken(field, source):
        values = plain(whole.flatten())
    if values.null_count:
        raise InputError("a value is missing", source=source, field=field)
    table: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return table.reshape(len(whole), int(lengths[0]) if lengths.size else 0)


class Coded(NamedTuple):
    """The distinct strings of a column (`values`), and each row's index into them (`codes`)."""

    values: NDArray[Any]
    codes: NDArray[np.int32]


def ids_of(column: Any, field: str, source: str) -> Any:
    """Return ids: integers, or `Coded` strings; raise `InputError` for a missing id or a string that is too long."""
    pa = pyarrow()
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError("is missing", source=source, record=row, field=field, remedy="leave out the record")
    kind = column.type
    if pa.types.is_null(kind):  # a column without rows may have the null type
        return np.empty(0, np.int64)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise InputError("ids must be integers or strings", source=source, field=field, value=str(kind))
        return array_of(column, field, source)
    whole = column.combine_chunks().dictionary_encode()
    whole = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    values = whole.dictionary.to_pylist()
    for value in values:
        if not value or len(value) > LONGEST or "\0" in value:
            problem = "an id must have 1 to 256 characters, none of them null"
            raise InputError(problem, source=source, field=field, value=value)
    return Coded(np.array(values, str), whole.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False))
