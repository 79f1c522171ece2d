"""Parquet, and Feather (Arrow's file format): a row per object or detection, with the columns of `detmap.frames`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from detmap.errors import InputError, shorten
from detmap.formats._names import match_categories, match_images, shapes_lost
from detmap.formats._source import Source, most_inflated, read_bytes
from detmap.formats.registry import Format, Given, Path, Reading, Role, Writing
from detmap.frames import Coded, columns_of, pyarrow
from detmap.ids import Ids
from detmap.plugins import register
from detmap.tables import Detections, GroundTruth
from detmap.writing import write

_MAGIC = {"parquet": b"PAR1", "feather": b"ARROW1"}
_ZSTD = b"\x28\xb5\x2f\xfd"
_ENDINGS = {"parquet": (".parquet",), "feather": (".feather", ".arrow")}


def _table(form: str, source: Source, what: str) -> tuple[Any, str]:
    """Return the table of a file, and what messages call it.

    Raises
    ------
    InputError
        Where it is damaged, or is a bomb.
    """
    pa = pyarrow()
    data, name = read_bytes(source, what)
    buffer = pa.py_buffer(data)
    try:
        if form == "feather":
            _refuse_bomb(_unpacked(data), len(data), name)
            with pa.ipc.open_file(buffer) as reader:
                return _valid(reader.read_all()), name
        import pyarrow.parquet as parquet

        file = parquet.ParquetFile(pa.BufferReader(buffer))
        groups = range(file.metadata.num_row_groups)
        grown = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        _refuse_bomb(max(grown, 8 * file.metadata.num_rows), len(data), name)
        return _valid(file.read()), name
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, NotImplementedError) as error:
        reason = shorten(" ".join(str(error).split()), 100)[1:-1]
        raise InputError(f"is not a {form} file that can be read: {reason}", source=name) from None


def _valid(table: Any) -> Any:
    """Return a table whose every offset, index and string is known to be good: a damaged file may hold others."""
    table.validate(full=True)
    names = table.column_names  # which decodes them
    assert len(names) == table.num_columns
    return table


def _unpacked(data: Any) -> int:
    """Return how many bytes the buffers of Arrow's file format have that are compressed by zstd, which has no bound itself.

    Each begins at a multiple of 8 with its length unpacked, ahead of the frame. (LZ4 grows 255 times at most.)
    """
    whole, total, place = bytes(data), 0, -1
    while (place := whole.find(_ZSTD, place + 1)) >= 0:
        if place % 8 == 0:
            length = int.from_bytes(whole[place - 8 : place], "little")
            total += length if length < 1 << 48 else 0  # nobody has room for more: that fails by itself
    return total


def _refuse_bomb(grown: int, size: int, name: str) -> None:
    if grown > most_inflated(size):
        raise InputError(f"grows beyond {most_inflated(size) >> 20} MiB when decompressed", source=name)


def _columns(form: str, source: Source, role: Role, reading: Reading) -> dict[str, Any]:
    """Return what ``from_arrays`` takes."""
    table, name = _table(form, source, role.replace("_", " "))
    given = reading.columns
    if isinstance(given, str):
        given = dict(part.strip().partition("=")[::2] for part in given.split(","))
    if given is not None and not isinstance(given, Mapping):
        raise InputError("columns of such a file have names: give columns={what: name}", source=name)
    found = columns_of(table, role == "detections", given, reading.box_format, name)
    for key, value in found.items():
        if isinstance(value, Coded):
            found[key] = Ids(*value)
    return {**found, "source": name, "invalid_boxes": reading.invalid_boxes}


def _read_ground_truth(form: str, source: Source, reading: Reading) -> GroundTruth:
    return GroundTruth.from_arrays(**_columns(form, source, "ground_truth", reading))


def _read_detections(form: str, source: Source, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    found = _columns(form, source, "detections", reading)
    if ground_truth is None:
        return Detections.from_arrays(**found)
    images, categories = found["image_ids"], found["category_ids"]
    if isinstance(categories, Ids) or ground_truth.categories.values.dtype.kind != "i":
        known, codes = _distinct(categories)
        found["category_ids"] = np.array(match_categories(known, ground_truth))[codes] if known else categories
    if not isinstance(images, Ids) and ground_truth.images.values.dtype.kind == "i":
        return Detections.from_arrays(**found).on_images_of(ground_truth, reading.unknown_images)
    known, codes = _distinct(images)
    lines = list(range(len(known)))
    matched = match_images(known, ground_truth, "ignore", found["source"], lines)
    missing = np.array([one is None for one in matched], np.bool_)[codes]
    if missing.any() and reading.unknown_images == "error":
        row = int(np.argmax(missing))
        raise InputError(
            "is not an image of the ground truth",
            source=found["source"],
            record=row,
            value=known[codes[row]],
            remedy="are both of one data set? Such detections are dropped with unknown_images='ignore' "
            "(--unknown-images ignore)",
        )
    rows = np.flatnonzero(~missing)
    filler: Any = 0 if ground_truth.images.values.dtype.kind == "i" else ""
    found["image_ids"] = np.array([filler if one is None else one for one in matched] or [0])[codes][rows]
    if rows.size < codes.size:
        for name in ("boxes", "scores"):
            found[name] = found[name][rows]
        ids = found["category_ids"]
        found["category_ids"] = (ids.values[ids.codes] if isinstance(ids, Ids) else ids)[rows]
        found["notices"] = {"unknown_image": int(missing.sum())}
    return Detections.from_arrays(**found)


def _distinct(ids: Any) -> tuple[list[Any], np.ndarray[Any, Any]]:
    if isinstance(ids, Ids):
        return ids.values.tolist(), ids.codes
    values, codes = np.unique(ids, return_inverse=True)
    return values.tolist(), codes.reshape(-1)


def _write(form: str, table: GroundTruth | Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a table; see `to_arrow`."""
    pa = pyarrow()
    made = table.to_arrow()
    out = pa.BufferOutputStream()
    if form == "parquet":
        import pyarrow.parquet as parquet

        parquet.write_table(made, out)
    else:
        with pa.ipc.new_file(out, made.schema) as writer:
            writer.write_table(made)
    write(os.fspath(path), out.getvalue().to_pybytes())
    lost = {"shapes": shapes_lost(table, ())}
    if isinstance(table, GroundTruth):
        used = np.bincount(table.categories.codes, minlength=table.categories.values.size)
        lost["empty_categories"] = int(np.count_nonzero(used == 0))
        lost["image_names"] = 0 if table.images.names is None else table.images.values.size
        if table.categories.values.dtype.kind != "i":
            names = table.categories.values.tolist()
            lost["category_names"] = sum(one != name for one, name in zip(names, table.category_names, strict=True))
    return lost


def _sniff(form: str, given: Given) -> bool:
    """By the first bytes, or, of what cannot be looked at, by the name."""
    named = not given.is_folder and given.name.endswith(_ENDINGS[form])
    return given.head.startswith(_MAGIC[form]) or (named and not given.head)


for _form in _MAGIC:
    register(
        Format(
            name=_form,
            suffixes=_ENDINGS[_form],
            sniff=partial(_sniff, _form),
            read_ground_truth=partial(_read_ground_truth, _form),
            read_detections=partial(_read_detections, _form),
            write_ground_truth=partial(_write, _form),
            write_detections=partial(_write, _form),
            written=_ENDINGS[_form],
            words=(f"{_form.capitalize()} files", f"{_form.capitalize()} files"),
            needs_images=True,
        )
    )
