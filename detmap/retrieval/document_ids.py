"""Ids of queries, documents and classes.

Ids are compared as text. An integer stands for its decimal digits, and bytes are decoded as UTF-8, so ``7``, ``"7"``
and ``b"7"`` are the same id. Nothing is normalised, so ``"07"``, ``" 7"`` and ``"+7"`` are three other ids. The ids of
one column, or the keys on one level of a mapping, must be all integers or all strings. Integral floats, as made by data
frames, are accepted; booleans, missing values and other types are errors. If two columns both hold integers, the
integers are compared without conversion to text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.errors import InputError, shorten
from detmap.formats.trec import LONGEST_ID, Texts
from detmap.kernels import readonly
from detmap.kernels.mappings import read_mappings
from detmap.kernels.texts import LENGTHS, split
from detmap.system import parallel

#: Encoding of ids and its error handler, which keeps lone surrogates.
UTF8 = ("utf-8", "surrogatepass")

#: Number of keys of mappings processed at a time.
_TOGETHER = 1 << 16

_ENCODER = msgspec.msgpack.Encoder()

#: Ids as integers, or as strings in a buffer.
Located = NDArray[np.int64] | Texts


def keys(values: list[Any], source: str, field: str) -> Located:
    """Return the keys of a mapping; if keys have different types, the error names two keys as examples."""
    try:
        return strings(values, source, field)
    except TypeError:  # not all keys are strings
        pass
    if len({_kind(kind) for kind in set(map(type, values))}) > 1:
        _refuse_mixed(values, source, field)
    return located(columns.identifiers(values, source=source, field=field), source, field)


def column(values: Any, source: str, field: str) -> NDArray[Any]:
    """Return a column of ids of one type as an array of int64, of strings, of bytes, or of str objects."""
    if isinstance(values, list | tuple):
        if set(map(type, values)) == {str}:  # numpy would strip zero bytes at the end
            objects = np.empty(len(values), object)
            objects[:] = values
            return objects
        return columns.identifiers(values, source=source, field=field)
    try:
        given = columns.array(values)
    except TypeError:
        raise InputError("expected a flat column", source=source, field=field) from None
    if given.ndim != 1:
        raise InputError("expected a flat column", source=source, field=field, value=f"{given.ndim} dimensions")
    # The type is compared first, because access to `np.ma` imports numpy.ma.
    plain = type(given) is np.ndarray or not isinstance(given, np.ma.MaskedArray)
    if plain and (given.dtype.kind == "S" or (given.dtype.kind == "O" and set(map(type, given.tolist())) == {str})):
        return given
    return columns.identifiers(given, source=source, field=field)


def located(ids: NDArray[Any], source: str, field: str) -> Located:
    """Return ids from `column` as integers or as strings in a buffer."""
    if ids.dtype.kind == "i":
        return ids
    if ids.dtype.kind != "S":
        return strings(ids.tolist(), source, field)
    found = Texts.of(ids)
    if ids.size and np.count_nonzero(found.data) < int(found.lengths().sum()):
        raise InputError("an id holds a zero byte", source=source, field=field)
    return _checked(found, source, field)


def texts(ids: Located | Keys) -> Texts:
    """Return ids as strings; integers become decimal digits."""
    if isinstance(ids, Keys):
        return ids.located(0, ids.starts.size - 1)
    return ids if isinstance(ids, Texts) else Texts.of(ids.astype("S"))


def names(ids: list[Any], source: str, field: str) -> list[Any]:
    """Return ids of queries as integers or strings; bytes that are not UTF-8 stay bytes."""
    found = [decoded(name) if isinstance(name, bytes) else name for name in ids]
    strings([name for name in found if isinstance(name, str)], source, field)  # raises for invalid ids
    return found


def decoded(name: bytes) -> str | bytes:
    """Return an id as text, or unchanged if its bytes are not UTF-8."""
    try:
        return name.decode(*UTF8)
    except UnicodeDecodeError:
        return name


def printable(name: Any) -> Any:
    """Return an id for display, even if it is not UTF-8."""
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name


def alike(*sides: Iterable[Any]) -> tuple[list[Any], ...]:
    """Return lists of ids in a common type: integers if no list has strings, else text."""
    lists = tuple(side.tolist() if isinstance(side, np.ndarray) else list(side) for side in sides)
    if len({isinstance(name, int) for side in lists for name in side}) < 2:
        return lists
    return tuple([str(name) if isinstance(name, int) else name for name in side] for side in lists)


def _kind(kind: type) -> type | None:
    """Normalise the type of an id to str, bytes or int; return None for any other type."""
    if issubclass(kind, str | bytes):
        return str if issubclass(kind, str) else bytes
    return int if issubclass(kind, int | np.integer) and kind is not bool else None


def _refuse_mixed(values: list[Any], source: str, field: str) -> None:
    """Refuse ids of several types; the message names two ids, if possible the same id in two types (7 and "7")."""
    texts: dict[str | bytes, Any] = {}
    kinds: dict[type, Any] = {}
    pair: list[Any] = []
    for value in values:
        kind = _kind(type(value))
        if kind is None:
            continue
        kinds.setdefault(kind, value)
        other = texts.setdefault(decoded(value) if isinstance(value, bytes) else str(value), value)
        if _kind(type(other)) is not kind:
            pair = [other, value]
            break
    pair = pair or list(kinds.values())[:2]
    if len(pair) == 2:
        one, other = (shorten(v.item() if isinstance(v, np.integer) else v) for v in pair)
        if one == other:  # bytes and a string with the same display
            one, other = (
                ("b" if isinstance(v, bytes) else "") + text for v, text in zip(pair, (one, other), strict=True)
            )
        raise InputError(
            f"ids must be all integers or all strings, and there are {one} and {other}",
            source=source,
            field=field,
            remedy="write them in one way: str(id)",
        )


def strings(listed: Sequence[str], source: str, field: str, longest: int = LONGEST_ID) -> Texts:
    """Return strings in a buffer; raise TypeError unless all are strings."""
    found = _separated("\0".join(listed).encode(*UTF8), len(listed), longest)
    if found is not None:
        return found
    bad = next((text for text in listed if "\0" in text), None)
    if bad is None:
        raise _too_long(next(one for text in listed if len(one := text.encode(*UTF8)) > longest), source, field)
    raise InputError("an id holds a zero byte", source=source, field=field, value=bad)


def _separated(joined: bytes, count: int, longest: int) -> Texts | None:
    """Split `joined` at zero bytes into `count` strings; return None if the count differs or a string is too long."""
    data = np.frombuffer(joined, np.uint8)
    size = data.size
    if size < 8:
        data = np.concatenate((data, np.zeros(8, np.uint8)))
    data, words = readonly(data, np.uint8), np.empty(count, np.uint64)
    if split(data, size, longest, words) != count and count:
        return None
    return Texts(data, readonly(words, np.uint64))


def _checked(found: Texts, source: str, field: str) -> Texts:
    """Return the ids; raise `InputError` if an id is too long."""
    lengths = found.lengths()
    if int(lengths.max(initial=0)) > LONGEST_ID:
        raise _too_long(found[np.array([np.argmax(lengths)])].tolist()[0], source, field)
    return found


def _too_long(name: bytes, source: str, field: str) -> InputError:
    return InputError(f"an id has more than {LONGEST_ID} bytes", source=source, field=field, value=name)


class Keys:
    """The keys of several mappings, numbered consecutively. There is one mapping per query. Keys are read a few
    mappings at a time, because copying all keys into a buffer would double the memory of a large run. If `checked` is
    true, the caller guarantees that all keys are strings without a zero byte.
    """

    def __init__(
        self,
        mappings: Sequence[Mapping[Any, Any]],
        queries: Sequence[Any],
        source: str,
        field: str,
        checked: bool = False,
    ) -> None:
        self.mappings, self.queries, self._source, self._field = mappings, queries, source, field
        self.checked = checked
        #: The keys of each mapping, joined by zero bytes; None if not kept.
        self.joined: list[bytes | None] = [None] * len(mappings)
        self.starts = np.concatenate(([0], np.cumsum([len(one) for one in mappings]))).astype(np.int64)

    def located(self, begin: int, end: int) -> Texts:
        """Return the keys of mappings ``[begin, end)``. If a key is not a valid string, all keys are read, so that the
        error always names the first invalid key.
        """
        if self.checked:
            return self._located(begin, end)
        try:
            return strings(list(chain.from_iterable(self.mappings[begin:end])), self._source, self._field)
        except (InputError, TypeError):
            return texts(self.whole())[np.arange(self.starts[begin], self.starts[end])]

    def join(self, place: int) -> None:
        """Join the keys of a mapping; raise TypeError unless all are strings."""
        self.joined[place] = "\0".join(self.mappings[place]).encode(*UTF8)

    def pack(self, place: int, packed: bytearray | None) -> bytearray | None:
        """Append a mapping's keys and values to `packed` for `unpack`; return None if they cannot be packed."""
        if packed is not None:
            try:
                "".join(self.mappings[place])  # raises for keys such as UUIDs, which MessagePack writes as strings
                _ENCODER.encode_into(self.mappings[place], packed, -1)
            except (TypeError, ValueError, OverflowError):  # a type or a character that MessagePack cannot write
                return None
        return packed

    def unpack(self, begin: int, end: int, packed: bytearray | None, values: NDArray[np.float64]) -> Texts | None:
        """Return the keys of mappings ``[begin, end)``, and write the values of these mappings to `values`.

        Return None if a key is not a string, contains a zero byte or is too long, or if a value is not a float.
        """
        if packed is None or "\0" in "".join(self.queries[begin:end]):
            return None
        packed += bytes(8)
        data, words = readonly(np.frombuffer(packed, np.uint8), np.uint8), np.empty(values.size, np.uint64)
        starts = readonly(self.starts[begin : end + 1] - self.starts[begin], np.int64)
        whole = read_mappings(data, starts, values.view(np.uint64), words) == values.size
        return Texts(data, readonly(words, np.uint64)) if whole else None

    def check(self, begin: int, end: int) -> None:
        """Raise `InputError` if a key or a query of mappings ``[begin, end)`` contains a zero byte."""
        joined = np.frombuffer(self._joined(begin, end), np.uint8)
        between = max(0, int(self.starts[end] - self.starts[begin]) - 1)
        if joined.size - np.count_nonzero(joined) == between and "\0" not in "".join(self.queries[begin:end]):
            return
        for query, one in zip(self.queries[begin:end], self.mappings[begin:end], strict=True):
            for text in (query, *one):
                if "\0" in text:
                    record = f"query {shorten(query)}"
                    raise InputError("an id holds a zero byte", source=self._source, record=record, value=text)

    def _joined(self, begin: int, end: int) -> bytes:
        """Return the keys of mappings ``[begin, end)``, joined by zero bytes."""
        for place in range(begin, end):
            if self.joined[place] is None:
                self.join(place)
        of = zip(self.mappings[begin:end], self.joined[begin:end], strict=True)
        return b"\0".join([joined for one, joined in of if one and joined is not None])

    def _located(self, begin: int, end: int) -> Texts:
        count = int(self.starts[end] - self.starts[begin])
        found = _separated(self._joined(begin, end), count, int(LENGTHS)) if count else Texts.of([])
        if found is None:
            raise InputError(f"an id has more than {int(LENGTHS)} bytes", source=self._source, field=self._field)
        return found

    def whole(self) -> Located:
        """Return all keys. The error about invalid keys, or keys of several types, names the mapping."""
        try:
            return keys(list(chain.from_iterable(self.mappings)), self._source, self._field)
        except InputError:
            for query, one in zip(self.queries, self.mappings, strict=True):
                keys(list(one), f"{self._source}: query {shorten(query)}", self._field)
            raise

    def blocks(self) -> list[tuple[int, int]]:
        """Return blocks of mappings whose keys are processed together."""
        return parallel.split(np.diff(self.starts), _TOGETHER)

    def name(self, row: int) -> str:
        """Return the query and document of key number `row`, counted over all mappings, for messages."""
        which = int(np.searchsorted(self.starts, row, side="right")) - 1
        key = list(self.mappings[which])[row - int(self.starts[which])]
        return f"query {shorten(self.queries[which])}, document {shorten(key)}"

    def take(self, which: list[int]) -> Keys:
        """Return the keys of the mappings with the indices `which`; -1 stands for an empty mapping. The remaining
        mappings are read, too, so that their invalid keys raise an error.
        """
        if not self.checked:
            others = self.some(sorted(set(range(len(self.mappings))) - set(which)))
            for block in others.blocks():
                others.located(*block)
        return self.some(which)

    def some(self, which: Sequence[int]) -> Keys:
        """Return the same keys as `take`, but read only the mappings `which`."""
        mappings = [{} if i < 0 else self.mappings[i] for i in which]
        queries = [None if i < 0 else self.queries[i] for i in which]
        some = Keys(mappings, queries, self._source, self._field, self.checked)
        some.joined = [None if i < 0 else self.joined[i] for i in which]
        return some

    def lines(self, begin: int, end: int, lines: NDArray[np.int64]) -> Texts:
        """Return the keys at the ascending positions `lines`, counted over the mappings ``[begin, end)``."""
        ends = np.searchsorted(lines, self.starts[begin : end + 1] - self.starts[begin])
        sizes = np.diff(ends)
        used = np.flatnonzero(sizes)
        some = self.some((begin + used).tolist())
        if (np.diff(some.starts) != np.diff(self.starts)[begin + used]).any():
            raise InputError("a dict was changed while it was read", source=self._source)
        moved = some.starts[:-1] - (self.starts[begin + used] - self.starts[begin])
        return some.located(0, used.size)[lines + np.repeat(moved, sizes[used])]

    def __getitem__(self, rows: NDArray[np.int64]) -> Texts:
        """Return the keys numbered `rows`, counted over all mappings."""
        which = np.searchsorted(self.starts, rows, side="right") - 1
        used, place = np.unique(which, return_inverse=True)
        some = self.some(used.tolist())
        return some.located(0, used.size)[rows - self.starts[which] + some.starts[place]]
