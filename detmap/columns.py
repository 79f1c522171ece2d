"""Convert user input to columns of numbers, flags or ids.

Lists, arrays, pandas and pyarrow columns, tensors on any device, and all other types that numpy can read are accepted.
A masked array is accepted if no element is masked. Strings, dates, complex numbers, missing values and masked elements,
which numpy would cast to numbers, raise an error that names the record.
"""

from __future__ import annotations

import numbers as abstract
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from detmap.errors import InputError
from detmap.system import limits

#: Minimum magnitude at which float64 cannot represent every integer.
_EXACT = 2**53

_KINDS = {
    "b": "booleans",
    "c": "complex numbers",
    "m": "time spans",
    "M": "dates",
    "S": "strings",
    "T": "strings",
    "U": "strings",
    "V": "records",
}


class _Place:
    """The origin of a column, for messages. If `record` is None, messages name the row number as the record."""

    def __init__(self, source: str | None, field: str | None, record: int | str | None) -> None:
        self.source, self.field, self.record = source, field, record

    def error(self, problem: str, remedy: str | None = None) -> InputError:
        """Return an error about the whole column."""
        return InputError(problem, source=self.source, field=self.field, record=self.record, remedy=remedy)

    def unlike(self, problem: str, given: NDArray[Any], remedy: str) -> InputError:
        """Return an error about a column of a wrong type, with its first value."""
        kind = _KINDS.get(given.dtype.kind, "objects")
        return self.error_at(0, f"{problem}, not {kind}", given.ravel()[0], remedy)

    def error_at(self, index: int, problem: str, value: Any, remedy: str | None = None) -> InputError:
        """Return an error about row `index`, counted from 0."""
        value = value.item() if isinstance(value, np.generic) else value
        record, field = self.record, self.field
        record, field = (index, field) if record is None else (record, f"{field or ''}[{index}]")
        return InputError(problem, source=self.source, field=field, record=record, value=value, remedy=remedy)


def array(values: Any) -> NDArray[Any]:
    """Return array-like values as a numpy array, which may share their memory; raise `TypeError` if that is
    impossible.
    """
    if isinstance(values, np.ndarray):
        return values
    try:
        if isinstance(values, list | tuple):
            return np.asarray(values)
        given = _handed(values)
        listed = given.dtype.kind == "O" and given.ndim == 1 and given.size
        if listed and all(isinstance(one, list | np.ndarray) for one in given):  # each cell of the column holds a list
            return np.array(given.tolist())
        return given
    except MemoryError:
        raise
    except Exception as error:  # other libraries may raise anything
        raise TypeError(str(error)) from None


def regular(values: Any, source: str) -> NDArray[Any]:
    """Convert anything array-like to a plain numpy array, and keep the dtype."""
    return _numpy(values, _Place(source, None, None), "is no array: are its rows of one length?")


def _handed(values: Any) -> NDArray[Any]:
    """Convert an object of another library, such as a tensor, to an array."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # numpy has no bfloat16
            values = values.float()
    elif hasattr(values, "__cuda_array_interface__") and hasattr(
        values, "get"
    ):  # CuPy's arrays convert only on request
        values = values.get()
    elif not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
        return np.from_dlpack(values)
    return np.asarray(values)


def plain(values: Any, dtype: type[np.float64 | np.int64 | np.bool_]) -> NDArray[Any] | None:
    """Return a new array if `values` is an array of exactly this `dtype`, or a list of Python numbers or booleans that
    numpy converts to this `dtype`. Return None for other values.

    A returned array needs no further check. If None is returned, call `numbers`, `flags` or `identifiers`, which
    convert the values or raise an error with the reason. Used for small columns, for which these checks would take
    longer than the copy.
    """
    if type(values) is np.ndarray:
        return values.copy() if values.dtype.type is dtype and values.dtype.isnative else None
    if type(values) is not list or not values or not _OWN[dtype].issuperset(map(type, values)):
        return None
    try:
        given = np.array(values)
    except (ValueError, Warning):  # ragged rows, masked elements
        return None
    return given if given.dtype == dtype else None


def numbers(
    values: Any,
    *,
    source: str | None = None,
    field: str | None = None,
    record: int | str | None = None,
    dtype: DTypeLike = np.float64,
    booleans: bool = False,
) -> NDArray[Any]:
    """Return real numbers of any shape as an array of `dtype`; NaN and infinities pass.

    Parameters
    ----------
    values : array_like
        Integers or floats. For dtype object every element must be a real number.
    source, field : str, optional
        Names of the file or argument, and of the column, in messages.
    record : int or str, optional
        The record that the whole column belongs to, for messages. By default every row is a record.
    dtype : dtype
        A float type.
    booleans : bool
        Take booleans as 0 and 1; by default booleans are an error.

    Returns
    -------
    ndarray of `dtype`, in the shape of `values`
        May share memory with `values`.

    Raises
    ------
    InputError
        For anything else. The error names the record and the value, if a single value is at fault.
    """
    place = _Place(source, field, record)
    given = _numpy(values, place, "expected numbers in a regular array")
    kind = given.dtype.kind
    if kind == "O":
        given = _objects(given, _as_number, "is not a number", place)
    elif kind not in ("biuf" if booleans else "iuf") and given.size:
        raise place.unlike("expected numbers", given, "give integers or floats")
    elif given.dtype.itemsize == 8 and kind in "iu" and given.size:
        _check_exact(given, place)
    try:
        return given.astype(dtype, copy=False)
    except (TypeError, ValueError, OverflowError):  # only an empty array can have a type that does not convert
        return np.empty(given.shape, dtype)


def flags(
    values: Any, *, source: str | None = None, field: str | None = None, record: int | str | None = None
) -> NDArray[np.bool_]:
    """Return flags of any shape as booleans.

    Parameters
    ----------
    values : array_like
        Booleans, or numbers that are exactly 0 or 1.
    source, field, record
        As in `numbers`.

    Returns
    -------
    ndarray of bool, in the shape of `values`
        May share memory with `values`.

    Raises
    ------
    InputError
        For any other number, NaN, missing values, and anything that is not a number. The error names the record.
    """
    place = _Place(source, field, record)
    given = _numpy(values, place, "expected flags in a regular array")
    kind = given.dtype.kind
    if kind == "b":
        return given
    if kind == "O":
        given = _objects(given, _as_flag, "is neither 0 nor 1", place)
    elif kind not in "iuf" and given.size:
        raise place.unlike("expected booleans", given, _ZERO_OR_ONE)
    column = given.astype(np.bool_)
    if not given.size:
        return column
    bad = column != given
    if bad.any():
        index = _first(bad)
        value = given[index] if given.ndim else given[()]
        raise place.error_at(index[0], "is neither 0 nor 1", value, _ZERO_OR_ONE)
    return column


def identifiers(
    values: Any, *, source: str | None = None, field: str | None = None, record: int | str | None = None
) -> NDArray[Any]:
    """Return ids as integers or strings from any kind of column.

    Parameters
    ----------
    values : array_like of int, str, bytes or float, of one dimension
        All of one type. Floats are accepted if they are integral and below 2**53, because pandas converts integers to
        floats if a column had missing values. Bytes are UTF-8. Columns of dtype object, of categories, and of pandas'
        own types are read value by value.
    source, field, record
        As in `numbers`.

    Returns
    -------
    ndarray of int64, or of a string dtype ("U"), shape (n,)
        May share memory with `values`.

    Raises
    ------
    InputError
        For ids of mixed types, missing ids, and any other type. The error names the record.
    """
    place = _Place(source, field, record)
    plain = isinstance(values, list | tuple)
    kinds = set(map(type, values)) if plain else set()
    if len(kinds) > 1 and any(issubclass(kind, _NEVER_MIXED) for kind in kinds):
        given = np.empty(len(values), object)  # numpy would convert mixed ids to strings, and booleans to numbers
        given[:] = values
    else:
        given = _numpy(values, place, _NO_IDS)
    if given.ndim != 1:
        raise place.error(_NO_IDS, _ONE_TYPE)
    if not given.size:
        return np.empty(0, np.int64)
    kind = given.dtype.kind
    if kind in "iu":
        if kind == "u" and given.max() > np.iinfo(np.int64).max:
            index = int(np.argmax(given))
            raise place.error_at(index, "an id is beyond 64 bits", given[index])
        return given.astype(np.int64, copy=False)
    if kind == "f":
        return _whole(given, place)
    if kind == "U":
        if plain:  # numpy strips trailing null characters
            _check_null(values, place)
        return given
    if kind in "OST":
        return _one_type(given.tolist(), place)
    raise place.unlike("ids must be integers or strings", given, _ONE_TYPE)


_OWN = {np.float64: frozenset((float, int, list, tuple)), np.int64: frozenset((int,)), np.bool_: frozenset((bool,))}
_PLAIN = frozenset((int, float, bool, str, list, tuple))
_NEVER_MIXED = (str, bytes, bool, np.bool_, type(None))
_ZERO_OR_ONE = "write False and True, or 0 and 1"
_NO_IDS = "ids must be a flat sequence, all integers or all strings"
_ONE_TYPE = "write all of them as integers, or all as strings"
_PADDING = 32  # maximum number of bytes per character of text in a large array of strings
_NEEDED = "leave out the record or give it an id"


def _numpy(values: Any, place: _Place, problem: str) -> NDArray[Any]:
    """Return a plain numpy array of anything that `array` accepts, refusing masked elements."""
    try:
        if (
            isinstance(values, list | tuple)
            and not _PLAIN.issuperset(kinds := set(map(type, values)))
            and any(issubclass(kind, np.ma.MaskedArray) for kind in kinds)
        ):
            values = np.ma.stack([np.ma.asarray(value) for value in values])  # otherwise numpy would ignore the masks
        given = array(values)
        if (
            given.dtype.kind == "O"
            and given.ndim == 1
            and given.size
            and isinstance(given[0], list | tuple | np.ndarray)
        ):
            given = np.array(given.tolist())  # the cells of the column hold lists
    except (TypeError, ValueError):
        raise place.error(problem) from None
    # Check the type first, because numpy imports masked arrays lazily.
    if type(given) is not np.ndarray and isinstance(given, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(given)
        if hidden.any():
            remedy = "leave out what is masked, or fill it in: numpy.ma.filled"
            if not hidden.ndim:
                raise place.error("is masked", remedy)
            count = int(np.count_nonzero(hidden))
            raise place.error_at(_first(hidden)[0], f"is masked, one of {count} such values", np.ma.masked, remedy)
        given = given.data
    return given if type(given) is np.ndarray else np.asarray(given)


def _first(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first True; 0 for an array without dimensions."""
    return tuple(map(int, np.unravel_index(int(np.argmax(bad)), bad.shape))) or (0,)


def _objects(
    given: NDArray[Any], convert: Callable[[Any], float | None], problem: str, place: _Place
) -> NDArray[np.float64]:
    """Return objects as floats; `convert` returns None for an object that is refused."""
    out = np.empty(given.size)
    row = given.size // len(given) if given.ndim and given.size else 1
    for i, value in enumerate(given.ravel().tolist()):
        number = convert(value)
        if number is None:
            if not given.ndim:  # numpy turns None, sets and dicts into arrays without dimensions
                raise place.error(f"expected a column, not {type(value).__name__}")
            what = "is missing" if _missing(value) else problem
            raise place.error_at(i // row, what, value, "leave out the record or repair it")
        out[i] = number
    return out.reshape(given.shape)


def _real(value: Any) -> bool:
    """Return whether a value is a real number. Time spans, which numpy counts as integers, and signalling NaN are not."""
    from decimal import Decimal

    if isinstance(value, Decimal):
        return not value.is_snan()
    return isinstance(value, abstract.Real) and not isinstance(value, np.timedelta64)


def _as_number(value: Any) -> float | None:
    if isinstance(value, bool | np.bool_) or not _real(value):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    return None if isinstance(value, int | np.integer) and abs(int(value)) > _EXACT else number


def _as_flag(value: Any) -> float | None:
    if isinstance(value, bool | np.bool_):
        return float(value)
    return float(value) if _real(value) and value in (0, 1) else None


def _check_exact(given: NDArray[Any], place: _Place) -> None:
    if int(given.max()) > _EXACT or int(given.min()) < -_EXACT:
        index = _first((given > _EXACT) | (given < (-_EXACT if given.dtype.kind == "i" else 0)))
        problem = "an integer beyond 2**53 is not told from its neighbours"
        raise place.error_at(index[0], problem, given[index] if given.ndim else given[()], "scale them, or give floats")


def _whole(given: NDArray[Any], place: _Place) -> NDArray[np.int64]:
    """Return integral floats as integers."""
    if given.dtype.itemsize < 8:  # float16 cannot represent this bound
        given = given.astype(np.float64)
    good = (np.abs(given) < _EXACT) & (given == np.floor(given))
    if not good.all():
        index = int(np.argmin(good))
        value = given[index]
        raise _no_integer(index, float(value), place)
    return given.astype(np.int64)


def _no_integer(index: int, value: float, place: _Place) -> InputError:
    if np.isnan(value):
        return place.error_at(index, "is missing", value, _NEEDED)
    if value != np.floor(value) or np.isinf(value):
        return place.error_at(index, "is not an integer", value, _ONE_TYPE)
    return place.error_at(index, "an id from 2**53 on must not be a float", value, "floats do not tell such ids apart")


def _one_type(values: list[Any], place: _Place) -> NDArray[Any]:
    """Return ids from an array of objects."""
    kinds = {t: _kind(t) for t in set(map(type, values))}
    found = set(kinds.values())
    if found == {str}:
        _check_null(values, place)
        return texts(values, source=place.source, field=place.field)
    if found == {bytes}:
        return _decoded(values, place)
    if found <= {int, float}:
        return _integers(values, place)
    first = kinds[type(values[0])]
    for i, value in enumerate(values):
        kind = kinds[type(value)]
        if _missing(value):
            raise place.error_at(i, "is missing", value, _NEEDED)
        if kind is None:
            raise place.error_at(i, "is neither an integer nor a string", value, _ONE_TYPE)
        if kind is not first and {kind, first} != {int, float}:
            break
    raise place.error_at(i, "ids must be all integers or all strings", value, _ONE_TYPE)


def _kind(kind: type) -> type | None:
    """Return the Python type (int, float, str or bytes) that corresponds to the type of an id; None for other types."""
    if issubclass(kind, bool | np.bool_):
        return None
    for own, others in ((str, str), (bytes, bytes), (int, int | np.integer), (float, float | np.floating)):
        if issubclass(kind, others):
            return own
    return None


def _integers(values: list[Any], place: _Place) -> NDArray[np.int64]:
    """Return integers, some of which may be given as floats."""
    for i, value in enumerate(values):
        if isinstance(value, float | np.floating):
            if not (abs(value) < _EXACT and value == int(value)):
                raise _no_integer(i, float(value), place)
        elif not -(2**63) <= value < 2**63:
            raise place.error_at(i, "an id is beyond 64 bits", value)
    return np.array([int(value) for value in values], np.int64)


def _decoded(values: list[bytes], place: _Place) -> NDArray[np.str_]:
    decoded = []
    for i, value in enumerate(values):
        try:
            decoded.append(value.decode())
        except UnicodeDecodeError:
            raise place.error_at(i, "an id is not UTF-8", value, "decode the ids first") from None
    _check_null(decoded, place)
    return texts(decoded, source=place.source, field=place.field)


def _check_null(values: Iterable[str], place: _Place) -> None:
    for i, value in enumerate(values):
        if "\0" in value:
            raise place.error_at(i, "an id holds a null character", value)


def check_null(values: Iterable[str], *, source: str | None = None, field: str | None = None) -> None:
    """Refuse strings with a null character, because numpy strips null characters at the end of a string."""
    _check_null(values, _Place(source, field, None))


def texts(strings: Sequence[str], *, source: str | None = None, field: str | None = None) -> NDArray[np.str_]:
    """Return strings as a fixed-width array; raise `InputError` if one long string makes a large array mostly padding."""
    longest, total = max(map(len, strings), default=0), sum(map(len, strings))
    taken = 4 * longest * len(strings)
    if taken > limits.IDS.value() and taken > _PADDING * total:
        raise InputError(
            f"an id has {longest:,} characters, where {len(strings):,} have {total // len(strings)} on average: their table "
            f"would take {taken >> 20:,} MiB",
            source=source,
            field=field,
            value=next(text for text in strings if len(text) == longest),
            remedy=f"shorten it, or {limits.IDS.advice()}",
        )
    return np.array(strings, np.str_)


def _missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, pandas' NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
