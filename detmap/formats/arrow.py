"""Parquet, and Feather (Arrow's file format): a row per object or detection, with the columns of `detmap.data.frames`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from detmap.data.arrow_columns import LONGEST, Coded, pyarrow
from detmap.data.benchmarks import is_group
from detmap.data.column_names import role_of_title
from detmap.data.frames import LISTS, columns_of, image_names, with_image_names
from detmap.data.ids import Ids
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, MissingDependencyError, OptionError, shorten
from detmap.formats.file_names import lost_names, matched, shapes_lost
from detmap.formats.registry import Format, Given, Writing
from detmap.plugins import register
from detmap.reading.arrow_files import FORMS, MAGIC, STREAM, table_of
from detmap.reading.options import Path, Reading, Role
from detmap.reading.sources import Source
from detmap.system.whole_files import write

_ENDINGS = {"parquet": (".parquet",), "feather": (".feather", ".arrow")}


def _named(reading: Reading) -> Mapping[str, str] | None:
    """Return the option `columns` as a mapping from the role of a column, such as "score", to the column's title."""
    given: Any = reading.columns
    if isinstance(given, str):
        given = dict(part.strip().partition("=")[::2] for part in given.split(","))
    if given is not None and not (isinstance(given, Mapping) and all(given.values())):
        raise OptionError("columns of Parquet and Arrow have names: give columns={what: name} (--columns what=name,…)")
    return given


def _columns(form: str, source: Source, role: Role, reading: Reading) -> tuple[dict[str, Any], Mapping[Any, str]]:
    """Return the columns of a file as arguments of `GroundTruth.from_arrays` or `Detections.from_arrays`. Also return
    the file names of the images by image id. For detections, this mapping is empty.
    """
    given = _named(reading)
    titles = {*LISTS, *({} if given is None else given.values()), *reading.fields}

    def wanted(title: str) -> bool:
        return title in titles or is_group(title) or role_of_title(title) is not None

    table, every, name = table_of(form, source, role.replace("_", " "), wanted)
    absent = next((title for title in reading.fields if title not in every), None)
    if absent is not None:
        raise InputError(f"has no column {shorten(absent)}", source=name, remedy=f"it has: {', '.join(every[:20])}")
    found = columns_of(table, role == "detections", given, reading.box_format, name, every)
    for key, value in found.items():
        if isinstance(value, Coded):
            found[key] = Ids(*value)
    names = {} if role == "detections" else image_names(table, given, name)
    return {**found, "source": name, "invalid_boxes": reading.invalid_boxes}, names


def _read_ground_truth(form: str, source: Source, reading: Reading) -> GroundTruth:
    found, names = _columns(form, source, "ground_truth", reading)
    made: GroundTruth = with_image_names(GroundTruth.from_arrays(**found), names)
    return made


def _read_detections(form: str, source: Source, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    found, _ = _columns(form, source, "detections", reading)
    return Detections.from_arrays(**matched(found, ground_truth, reading.unknown_images))


def _write(form: str, table: GroundTruth | Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a table; see `to_arrow`."""
    pa = pyarrow()
    for field, ids in (("image", table.images.ids), ("category", table.categories.ids)):
        wrong = next((one for one in ids.tolist() if isinstance(one, str) and not 1 <= len(one) <= LONGEST), None)
        if wrong is not None:
            problem = f"cannot be written as an id, of 1 to {LONGEST} characters"
            raise InputError(problem, source=table.source, field=field, value=wrong)
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
        lost["image_names"] = 0 if table.images.ids.dtype.kind == "i" else lost_names(table)
        if table.categories.values.dtype.kind != "i":
            names = table.categories.values.tolist()
            lost["category_names"] = sum(one != name for one, name in zip(names, table.category_names, strict=True))
    return lost


def _sniff(form: str, given: Given) -> bool:
    """Recognise a file by its first bytes, or by its name if the content is not available."""
    named = not given.is_folder and given.name.lower().endswith(_ENDINGS[form])
    streamed = form == "feather" and named and given.head.startswith(STREAM)
    return given.head.startswith(MAGIC[form]) or streamed or (named and not given.head)


def _tell(form: str, given: Given) -> Role | None:
    """Return "detections" for a table with scores, else "ground_truth"; None if the file cannot be read."""
    try:
        pa = pyarrow()
    except MissingDependencyError:  # the reader raises the error again
        return None
    try:
        with given.open() as file:
            if form == "parquet":
                import pyarrow.parquet as parquet

                names = parquet.read_schema(file).names
            else:
                streamed = given.head.startswith(STREAM)
                names = (pa.ipc.open_stream(file) if streamed else pa.ipc.open_file(file)).schema.names
    except (OSError, ValueError, pa.ArrowException):
        return None
    return "detections" if "score" in map(role_of_title, names) else "ground_truth"


for _form in FORMS:
    register(
        Format(
            name=_form,
            takes=("columns", "box_format", "fields"),
            suffixes=_ENDINGS[_form],
            sniff=partial(_sniff, _form),
            read_ground_truth=partial(_read_ground_truth, _form),
            read_detections=partial(_read_detections, _form),
            write_ground_truth=partial(_write, _form),
            write_detections=partial(_write, _form),
            written=_ENDINGS[_form],
            grouped=True,
            fields=None,
            tell=partial(_tell, _form),
            words=(f"{_form.capitalize()} files", f"{_form.capitalize()} files"),
            needs_images=True,
        )
    )
