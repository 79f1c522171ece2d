"""Recognise and read files of Parquet and Arrow, validating their tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from detmap.data.arrow_columns import pyarrow
from detmap.errors import InputError, shorten
from detmap.reading.sources import Source, most_inflated, read_bytes

#: The magic number of each format.
MAGIC = {"parquet": b"PAR1", "feather": b"ARROW1"}
_ZSTD = b"\x28\xb5\x2f\xfd"
STREAM = b"\xff\xff\xff\xff"  # first bytes of Arrow's streaming format, which may also have the suffix .arrow


#: The formats that pyarrow reads.
FORMS = tuple(MAGIC)


def form_of(head: bytes) -> str | None:
    """Return the format of a file by its first bytes; None if it is another format."""
    return next((form for form, magic in MAGIC.items() if head.startswith(magic)), None)


def table_of(form: str, source: Source, what: str, wanted: Callable[[str], bool]) -> tuple[Any, list[str], str]:
    """Return the `wanted` columns of a file, the titles of all columns, and the file's name for messages."""
    pa = pyarrow()
    data, name = read_bytes(source, what)
    buffer = pa.py_buffer(data)
    try:
        if form == "feather":
            _refuse_bomb(_unpacked(data), len(data), name)
            streamed = bytes(data[:4]) == STREAM
            with pa.ipc.open_stream(buffer) if streamed else pa.ipc.open_file(buffer) as reader:
                table = _valid(reader.read_all())
                return table, table.column_names, name
        import pyarrow.parquet as parquet

        file = parquet.ParquetFile(pa.BufferReader(buffer))
        groups = range(file.metadata.num_row_groups)
        grown = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        _refuse_bomb(max(grown, 8 * file.metadata.num_rows), len(data), name)
        every = file.schema_arrow.names
        known = list(filter(wanted, every))
        return _valid(file.read(columns=known if len(set(every)) == len(every) else None)), every, name
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, NotImplementedError) as error:
        reason = shorten(" ".join(str(error).split()), 100)[1:-1]
        raise InputError(f"is not a {form} file that can be read: {reason}", source=name) from None


def _valid(table: Any) -> Any:
    """Validate every offset, index and string of a table, which may be wrong in a damaged file; return the table."""
    table.validate(full=True)
    names = table.column_names  # decoding the names may raise an error
    assert len(names) == table.num_columns
    return table


def _unpacked(data: Any) -> int:
    """Return the size that the zstd-compressed buffers of an Arrow file will have after decompression."""
    # A compressed buffer consists of its uncompressed length and a frame that begins at a multiple of 8. LZ4 is not
    # counted, because it expands at most 255 times.
    whole, total, place = bytes(data), 0, -1
    while (place := whole.find(_ZSTD, place + 1)) >= 0:
        if place % 8 == 0:
            length = int.from_bytes(whole[place - 8 : place], "little")
            total += length if length < 1 << 48 else 0  # larger buffers fail to allocate anyway
    return total


def _refuse_bomb(grown: int, size: int, name: str) -> None:
    if grown > most_inflated(size):
        raise InputError(f"grows beyond {most_inflated(size) >> 20} MiB when decompressed", source=name)
