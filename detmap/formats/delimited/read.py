"""CSV and TSV: a row per object or detection, with columns by name or by order.

A column called ``image_id`` or ``category_id`` holds integers if all of its cells are integers, else strings; ``image``,
``file_name``, ``category``, ``class`` and ``label`` always hold names. A row of ground truth that has only an
image stands for an image without objects.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.choices import decimal
from detmap.data.benchmarks import NO_FLAG, is_flag, is_group, is_no_flag, noted_of_titles
from detmap.data.column_names import BOXES, COLUMNS, role_of_title
from detmap.data.frames import with_image_names
from detmap.data.ids import Ids, coded
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError, relocated, shorten
from detmap.formats.file_names import matched
from detmap.formats.image_sizes import scales
from detmap.formats.registry import Format, Given, packed, unpacked_name
from detmap.formats.yolo.folders import names_given
from detmap.plugins import later, register
from detmap.reading.opening import Held
from detmap.reading.options import Reading
from detmap.reading.sources import Source, read_bytes
from detmap.shapes.boxes import seem_shares
from detmap.shapes.kinds import BOX_FIELD

ENDINGS = packed(".csv", ".tsv")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
#: Integers that a data frame writes as floats, such as 3.0, because the column has missing values.
_WIDENED = re.compile(r"(0|-?[1-9][0-9]{0,15})\.0")
#: Spellings of flags, as written by data frames or by hand.
_FLAGS = {"true": "1", "false": "0"}
_LONGEST = 256

#: Minimum number of cells for the scanner.
_MANY = 1 << 12

#: Class of objects in files without classes.
UNNAMED = "object"


class Table(NamedTuple):
    """The cells of a CSV file. `columns` has known columns by role, and `others` has further columns by title. `lines`
    are the line numbers of the rows, `source` is the file's name for messages, and `called` maps roles to titles.
    """

    columns: dict[str, list[str]]
    lines: list[int]
    source: str
    titles: Sequence[str] = ()
    notices: Mapping[str, int] = {}
    others: Mapping[str, list[str]] = {}
    called: Mapping[str, str] = {}

    def error(self, row: int, field: str, problem: str, remedy: str | None = None) -> InputError:
        """Return the error about a cell."""
        value = self.columns[field][row] if field in self.columns else ""
        title = self.called.get(field, field)
        return InputError(
            problem, source=self.source, record=f"line {self.lines[row]}", field=title, value=value, remedy=remedy
        )

    def named(self) -> AbstractContextManager[None]:
        """Add the line number to errors about a row that are raised within this context."""
        return relocated(lambda row: (self.source, f"line {self.lines[row]}"))

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of finite numbers; raise `InputError` for an invalid cell."""
        cells = self.columns[name]
        try:
            values = _converted(cells, decimal)
            good = bool(np.isfinite(values).all())
        except ValueError:
            good = False
        if good:
            return values
        for row, cell in enumerate(cells):
            try:
                fine = bool(np.isfinite(decimal(cell)))
            except ValueError:
                fine = False
            if not fine:
                raise self.error(row, name, "must be a finite number" if cell else "is missing")
        raise AssertionError  # unreachable, because one cell is invalid

    def ids(self, names: Sequence[str], what: str) -> tuple[str, list[Any]]:
        """Return the first existing column among `names`, and its cells as ids. Ids are strings, or integers if the
        column is ``names[0]`` and all cells are integers. Raises `InputError` without such a column, and for empty or
        too long cells.
        """
        name = next((one for one in names if one in self.columns), None)
        if name is None:
            raise self.missing(names[0], what)
        cells = self.columns[name]
        good = all(cells) and max(map(len, cells), default=0) <= _LONGEST and "\0" not in "".join(cells)
        for row, cell in enumerate(() if good else cells):
            if not cell or len(cell) > _LONGEST or "\0" in cell:
                raise self.error(row, name, "has more than 256 characters, or a null" if cell else "is missing")
        return name, integers(cells) if name == names[0] else cells

    def names(self, ids: list[Any], column: str) -> dict[Any, str]:
        """Map ids to the names in a column. Empty cells are skipped. Without this column, the result is empty."""
        names: dict[Any, str] = {}
        for row, (key, name) in enumerate(zip(ids, self.columns.get(column, [""] * len(ids)), strict=True)):
            if name and names.setdefault(key, name) != name:
                raise self.error(row, column, f"is another name of the {column} {shorten(key)} than before")
        return names

    def groups(self) -> NDArray[np.bool_] | None:
        """Return a mask of the rows that stand for a group of objects; None if there is no such column. The flag -1,
        which means unknown, counts as no group.
        """
        cells = self.columns.get("group_of")
        if cells is None:
            return None
        flags = {cell: is_flag(cell) for cell in dict.fromkeys(cells)}
        wrong = next(filter(is_no_flag, flags), None)
        if wrong is not None:
            raise self.error(cells.index(wrong), "group_of", NO_FLAG)
        return np.fromiter(map(flags.__getitem__, cells), np.bool_, len(cells))

    def missing(self, name: str, what: str) -> InputError:
        """Return the error about a missing column."""
        have = ", ".join(shorten(one)[1:-1] for one in self.titles[:20])
        if not self.columns:
            order = "image,category,score,x1,y1,x2,y2"
            remedy = (
                f"its first line is: {have}. Say what the columns are, in their order, as {order} (columns, --columns)"
            )
            return InputError("the first line names no column that is known", source=self.source, remedy=remedy)
        return InputError(
            f"there is no column for {what}",
            source=self.source,
            field=name,
            remedy=f"it has: {have}. Name what they hold: columns={{{name!r}: '…'}} (--columns {name}=…)",
        )

    def take(self, rows: list[int]) -> Table:
        """Return some of the rows."""
        columns = {name: [cells[row] for row in rows] for name, cells in self.columns.items()}
        return Table(columns, [self.lines[row] for row in rows], self.source, self.titles, called=self.called)


def integers(cells: list[str]) -> list[Any]:
    """Return ids as integers if all are integers, else unchanged."""
    if cells and all(map(_WIDENED.fullmatch, cells)):
        cells = [cell[:-2] for cell in cells]
    if not all(map(_INTEGER.fullmatch, cells)):
        return cells
    numbers = list(map(int, cells))
    return numbers if all(-(2**63) <= number < 2**63 for number in numbers) else cells


def read_table(
    source: Source, columns: Any, what: str, fields: Sequence[str] = (), others: Collection[str] = ()
) -> Table:
    """Read the cells of a file: the columns with known titles (`COLUMNS`), the columns `fields`, and the columns
    `others`, which may be missing. Raises `InputError` for an invalid file.
    """
    data, name = read_bytes(source, what)
    try:
        text = bytes(data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = bytes(data[: error.start]).count(b"\n") + 1
        problem = f"is not a text file in UTF-8: byte {error.start:,}"
        raise InputError(problem, source=name, record=f"line {line}", remedy="write it again in UTF-8") from None
    first = text[:_HEAD].partition("\n")[0]
    delimiter = _delimiter_of(first)
    plain = _plain_cells(text, delimiter)
    rows, lines = _rows(text, delimiter, name) if plain is None else ([], [])
    given, renamed = _given(columns)
    every: Sequence[Sequence[str]]
    if plain is not None and (given is None or len(given) == plain[1]):
        cells_by_row, width = plain
        header = given if given is not None else [cell.strip() for cell in cells_by_row[:width]]
        begin = 0 if given is not None else width
        every = [cells_by_row[begin + place :: width] for place in range(width)]
        lines = list(range(begin // width + 1, len(cells_by_row) // width + 1))
    else:
        rows, lines = (rows, lines) if rows else _rows(text, delimiter, name)
        header = given if given is not None else [cell.strip() for cell in rows[0]]
        rows, lines = (rows, lines) if given is not None else (rows[1:], lines[1:])
        if {*map(len, rows)} - {len(header)}:
            at = next(at for at, row in enumerate(rows) if len(row) != len(header))
            problem = f"has {len(rows[at])} fields where {len(header)} are expected"
            raise InputError(problem, source=name, record=f"line {lines[at]}")
        every = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    places = _places(header, renamed, name)
    cells = {role: list(map(str.strip, every[place])) for role, place in places.items()}
    listed = next((place for place, title in enumerate(header) if title.lower() == _LISTED), None)
    if cells.keys() >= _SIDES and (_are_sizes(cells) if listed is None else not _ways(cells.keys() - _SIDES)):
        cells |= {f"image_{side}": cells.pop(side) for side in sorted(_SIDES)}
    if listed is not None and not _ways(cells):
        cells |= _split_boxes(list(map(str.strip, every[listed])), lines, name)
    own = {title: place for place, title in enumerate(header) if title not in renamed}
    groups = [place for title, place in own.items() if is_group(title)]
    alike = Counter(zip(*(every[place] for place in groups), strict=True))
    notices = noted_of_titles(own, sum(count for cells, count in alike.items() if any(map(is_flag, cells))))
    for title in fields:
        if title not in header:
            have = ", ".join(shorten(one)[1:-1] for one in header[:20])
            raise InputError(f"has no column {shorten(title)}", source=name, remedy=f"it has: {have}")
        cells[_FIELD + title] = list(map(str.strip, every[header.index(title)]))
    rest = {title: list(map(str.strip, every[header.index(title)])) for title in others if title in header}
    called = {role: header[place] for role, place in places.items()}
    return Table(cells, lines, name, header, notices, rest, called)


def _plain_cells(text: str, delimiter: str) -> tuple[list[str], int] | None:
    """Return all cells row by row, and the number of cells of a row; None for text with quotes, with empty rows, or with
    unequal rows.
    """
    if '"' in text or "\0" in text:
        return None
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    rows = text.removesuffix("\n").split("\n")
    gaps = rows[0].count(delimiter)
    alike = gaps > 0 and {*map(str.count, rows, repeat(delimiter))} == {gaps}
    if not alike or "\r" in text or delimiter * gaps in rows or max(map(len, rows)) > csv.field_size_limit():
        return None
    return delimiter.join(rows).split(delimiter), gaps + 1


def _rows(text: str, delimiter: str, name: str) -> tuple[list[list[str]], list[int]]:
    """Return the rows that are not empty, and their line numbers. Raises `InputError` for invalid CSV."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, lines = [], []
    try:
        rows = list(reader)
    except csv.Error as error:
        reason = str(error).replace("\t", "\\t")  # the message quotes the delimiter, which may be a tab
        raise InputError(f"is not valid CSV: {reason}", source=name, record=f"line {reader.line_num}") from None
    lines = list(range(1, len(rows) + 1))
    if reader.line_num != len(rows):  # a cell spans several lines
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        lines = [reader.line_num for _ in reader]
    if not all(map(any, rows)):
        rows, lines = (
            [row for row in rows if any(row)],
            [line for line, row in zip(lines, rows, strict=True) if any(row)],
        )
    if not rows:
        raise InputError("is empty", source=name)
    return rows, lines


#: Title of the column that holds boxes as lists. Titles of the columns that hold the sizes of boxes or of images.
_LISTED, _SIDES = BOX_FIELD, {"width", "height"}


def _are_sizes(cells: Mapping[str, list[str]]) -> bool:
    """Return whether ``width`` and ``height`` are sizes of images. The columns are image sizes if boxes are given by
    corners, and no corner exceeds the sizes.
    """
    if len(_ways(cells.keys() - _SIDES)) != 1 or not {"x2", "y2"} <= cells.keys() or len(_ways(cells)) > 1:
        return False
    try:
        far = [_converted(cells[name], lambda cell: float(cell or "nan")) for name in ("x2", "y2")]
        size = [_converted(cells[name], float) for name in ("width", "height")]
    except ValueError:
        return False
    return not any((corner > side).any() for corner, side in zip(far, size, strict=True))


def _converted(cells: Sequence[str], number: Callable[[str], float]) -> NDArray[np.float64]:
    """Return each cell as a number. `number` is called only for cells that are not plain decimal numbers, unless there
    are few cells.
    """
    text = "\n".join(cells)
    if len(cells) < _MANY or not text.isascii() or max(map(len, cells)) > _LONGEST:
        return np.fromiter(map(number, cells), np.float64, len(cells))
    from detmap.reading.scanned_columns import located, plain_numbers  # imports the scanner

    lengths = np.fromiter(map(len, cells), np.int64, len(cells))
    begins = np.cumsum(lengths + 1) - lengths - 1
    values, others = plain_numbers(np.frombuffer(text.encode() + bytes(8), np.uint8), located(begins, begins + lengths))
    for row in others.tolist():
        values[row] = number(cells[row])
    return values


def _split_boxes(cells: list[str], lines: list[int], source: str) -> dict[str, list[str]]:
    """Split cells with boxes ``[x, y, width, height]`` into four columns; empty cells stay empty."""
    out = [cell.strip("[]() ").split(",") if cell else [""] * 4 for cell in cells]
    if {*map(len, out)} - {4}:
        at = next(at for at, numbers in enumerate(out) if len(numbers) != 4)
        problem = "is not a list of four numbers: [x, y, width, height]"
        raise InputError(problem, source=source, record=f"line {lines[at]}", field=_LISTED, value=cells[at])
    columns = zip(*out, strict=True)
    return {name: list(map(str.strip, column)) for name, column in zip(BOXES["xywh"][0], columns, strict=True)}


def _delimiter_of(line: str) -> str:
    """Return the delimiter: the most frequent of comma, semicolon and tab in the line."""
    return max(",;\t", key=line.count)


def _places(header: Sequence[str], renamed: Mapping[str, str], name: str) -> dict[str, int]:
    """Return the index of each known column."""
    found: dict[str, int] = {}
    for place, title in enumerate(header):
        role = renamed.get(title) or (None if title in renamed.values() else role_of_title(title))
        if role is None:
            continue
        if role in found:
            raise InputError(
                f"has two columns for {role}",
                source=name,
                value=title,
                remedy=f"say which: columns={{{role!r}: '…'}} (--columns {role}=…)",
            )
        found[role] = place
    unknown = [title for title in renamed if title not in header]
    if unknown:
        have = ", ".join(shorten(one)[1:-1] for one in header[:20])
        raise InputError(f"has no column {shorten(unknown[0])}", source=name, remedy=f"it has: {have}")
    return found


_HEAD = 1 << 16


def _given(columns: Any) -> tuple[list[str] | None, dict[str, str]]:
    """Parse the option `columns`. Return the roles of the columns in order, or None if the file has a header. Also
    return the roles by title; this mapping is empty unless the option gives titles.
    """
    if columns is None:
        return None, {}
    if isinstance(columns, str):
        parts = [part.strip() for part in columns.split(",")]
        columns = dict(part.split("=", 1) for part in parts) if all("=" in part for part in parts) else parts
    if isinstance(columns, Mapping):
        roles = [(_checked(role), str(title)) for role, title in columns.items()]
        return None, {title: role for role, title in roles}
    return [_checked(one) if one not in ("", "-", None) else "" for one in columns], {}


def given_columns(columns: Any) -> list[str]:
    """Return the role of each column in order; raise `OptionError` if the option `columns` gives titles instead."""
    order, _ = _given(columns)
    if order is None:
        raise OptionError("columns must be given in their order, without names: score,x,y,width,height")
    return order


def _checked(role: str) -> str:
    found = role_of_title(str(role))
    if found is None:
        raise OptionError(
            f"a column cannot be {shorten(role)}; one of: {', '.join(COLUMNS)} (or - for what is not read)"
        )
    return found


def _ways(columns: Collection[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the box formats that the columns allow, with the columns of each format. Less usual titles are considered
    only if the usual titles are absent.
    """
    fits: list[tuple[str, tuple[str, ...]]] = [
        (form, names) for form, choices in BOXES.items() for names in choices if all(one in columns for one in names)
    ]
    return [(form, names) for form, names in fits if names in [choices[0] for choices in BOXES.values()]] or fits


def _boxes(table: Table) -> tuple[str, NDArray[np.float64]]:
    """Return the format of boxes, and the boxes."""
    exact = _ways(table.columns)
    if not exact:
        raise table.missing("x1", "boxes: x1, y1, x2, y2, or x, y, width, height, or cx, cy, width, height")
    if len(exact) > 1:
        raise InputError(
            f"has columns of boxes in {len(exact)} ways: {' and '.join(', '.join(names) for _, names in exact)}",
            source=table.source,
            remedy="name those that count: columns={...} (--columns)",
        )
    form, names = exact[0]
    return form, np.stack([table.numbers(name) for name in names], axis=1)


def read_csv_ground_truth(source: Source, reading: Reading) -> GroundTruth:
    """Read ground truth of CSV; see the module's docstring."""
    everything = read_table(source, reading.columns, "ground truth", reading.fields)
    id_column, images = everything.ids(("image_id", "image"), "images")
    rows, without = _with_boxes(everything, reading)
    everything = everything._replace(notices={**everything.notices, **without})
    table = everything if len(rows) == len(everything.lines) else everything.take(rows)
    by_name = "category_id" not in table.columns
    _, categories = table.ids(("category_id", "category"), "categories")
    form, boxes = _boxes(table)
    for name in ("crowd", "difficult"):
        if name in table.columns:
            table.columns[name] = [_FLAGS.get(cell.lower(), cell) for cell in table.columns[name]]
    flags = {name: table.numbers(name) for name in ("crowd", "difficult", "area") if name in table.columns}
    names = {} if by_name else table.names(categories, "category")
    fields = {name: _field(table, _FIELD + name) for name in reading.fields}
    distinct = list(dict.fromkeys(images))
    sizes = _sizes(everything, images, distinct)
    scaled, boxes = _in_pixels(boxes, [images[row] for row in rows], distinct, sizes, reading, table.source)
    with table.named():
        made = GroundTruth.from_arrays(
            image_ids=_ids([images[row] for row in rows], table.source, "image_id"),
            category_ids=_ids(categories, table.source, "category_id"),
            boxes=boxes,
            box_format=form,  # type: ignore[arg-type]
            areas=flags.get("area"),
            crowd=flags.get("crowd"),
            difficult=flags.get("difficult"),
            group_of=table.groups(),
            images=_ids(distinct, table.source, "image_id"),
            category_names=names,
            image_sizes=sizes,
            fields=fields,
            invalid_boxes=reading.invalid_boxes,
            notices={**everything.notices, **scaled},
            source=everything.source,
        )
    files = {} if id_column == "image" else everything.names(images, "image")
    return with_image_names(made, files)  # type: ignore[no-any-return]


def _with_boxes(table: Table, reading: Reading) -> tuple[list[int], dict[str, int]]:
    """Return the indices of the rows that have a box, and notices. A notice counts rows that have a class, such as
    "no finding", but no box. A file without classes gets a column with the same class for all rows.
    """
    if not {"category_id", "category"} & table.columns.keys() and _ways(table.columns):
        table.columns["category"] = [_only_class(reading, table)] * len(table.lines)
        notice = {"unnamed_class": len(table.lines)}
    else:
        notice = {}
    sides = [table.columns[name] for _, names in _ways(table.columns) for name in names]
    rows = list(range(len(table.lines))) if sides else []
    if not any(map(all, sides)):  # if a column has no empty cell, every row has a box
        rows = [row for row in rows if any(cells[row] for cells in sides)]
    rest = [cells for name, cells in table.columns.items() if name not in _OF_IMAGES]
    if not sides:
        rows = [row for row in range(len(table.lines)) if any(cells[row] for cells in rest)]
    classes = [table.columns[name] for name in ("category_id", "category") if name in table.columns]
    without = sorted({*range(len(table.lines))} - {*rows}) if len(rows) < len(table.lines) else []
    named = [row for row in without if any(cells[row] for cells in classes)]
    return rows, {**notice, **({"rows_without_box": len(named)} if named and not notice else {})}


def _only_class(reading: Reading, table: Table) -> str:
    """Return the class of a file without a column of classes: the only class in the option `classes`, else "object"."""
    if reading.classes is None:
        return UNNAMED
    names = list(names_given(reading.classes).values())
    if len(names) != 1:
        raise OptionError(f"{table.source} names no classes, and {len(names)} are given (--classes): give one")
    return names[0]


#: Prefix of the keys of further columns, which distinguishes them from the keys of `COLUMNS`.
_FIELD = "field:"


def _field(table: Table, name: str) -> NDArray[np.float64]:
    """Return a column of numbers or flags, NaN for empty cells."""
    cells = [_FLAGS.get(cell.lower(), cell) for cell in table.columns[name]]
    given = [row for row, cell in enumerate(cells) if cell]
    out = np.full(len(cells), np.nan)
    out[given] = Table({name: cells}, table.lines, table.source).take(given).numbers(name)
    return out


_OF_IMAGES = ("image_id", "image", "image_width", "image_height")


def _sizes(table: Table, images: list[Any], distinct: list[Any]) -> NDArray[np.int64] | None:
    """Return height and width of each image; None if there are no columns of sizes."""
    if not {"image_width", "image_height"} <= set(table.columns):
        return None
    sizes: dict[Any, tuple[int, int]] = {}
    cells = list(zip(images, table.columns["image_height"], table.columns["image_width"], strict=True))
    for said in dict.fromkeys(cells):
        image, height, width = said
        good = [_INTEGER.fullmatch(side) and len(side) < 8 and int(side) >= 0 for side in (height, width)]
        if height == width == "":
            size = 0, 0
        elif not all(good):
            problem = f"height {height!r} and width must be whole numbers"
            raise table.error(cells.index(said), "image_width", problem)
        else:
            size = int(height), int(width)
        if sizes.setdefault(image, size) != size:
            raise table.error(cells.index(said), "image_width", "is another size of this image than before")
    return np.array([sizes[one] for one in distinct], np.int64).reshape(-1, 2)


def _in_pixels(
    boxes: NDArray[np.float64],
    images: list[Any],
    distinct: list[Any],
    sizes: NDArray[np.int64] | None,
    reading: Reading,
    source: str,
) -> tuple[dict[str, int], NDArray[np.float64]]:
    """Convert normalised boxes to pixels, with image sizes from columns or options; return a notice and the boxes."""
    if (sizes is None and reading.image_sizes is None) or not len(boxes) or not seem_shares(boxes):
        return {}, boxes
    given: Any = reading.image_sizes
    if given is None and sizes is not None:
        given = {str(one): size for one, size in zip(distinct, sizes.tolist(), strict=True)}
    return {"shares_made_pixels": len(boxes)}, boxes * scales([str(one) for one in images], given, source)


def read_csv_detections(source: Source, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read detections of CSV; see the module's docstring."""
    data, name = read_bytes(source, "detections")
    if len(data) >= _WORTH_SCANNING and reading.image_sizes is None:
        with suppress(InputError):  # reading cell by cell raises the error, with the line
            found = _scanned(data, reading)
            if found is not None:
                found |= {"invalid_boxes": reading.invalid_boxes, "source": name}
                return Detections.from_arrays(**matched(found, ground_truth, reading.unknown_images))
    table = read_table(Held.of(bytes(data), name), reading.columns, "detections")
    if "score" not in table.columns:
        raise table.missing("score", "scores")
    rows, notices = _with_boxes(table, reading)
    table = table.take(rows) if len(rows) < len(table.lines) else table
    _, images = table.ids(("image_id", "image"), "images")
    _, categories = table.ids(("category_id", "category"), "categories")
    form, boxes = _boxes(table)
    scores = table.numbers("score")
    scaled, boxes = _in_pixels(boxes, images, [], None, reading, table.source)
    notices |= scaled
    taken: dict[str, Any] = {
        "image_ids": _ids(images, table.source, "image_id"),
        "category_ids": _ids(categories, table.source, "category_id"),
        "boxes": boxes,
        "scores": scores,
    }
    taken |= {"box_format": form, "invalid_boxes": reading.invalid_boxes, "source": table.source, "notices": notices}
    lines = table.lines
    with table.named():
        return Detections.from_arrays(
            **matched(taken, ground_truth, reading.unknown_images, lambda row: f"line {lines[row]}")
        )


_WORTH_SCANNING = 1 << 20  # bytes; for a smaller file, loading the scanner takes longer than reading without it


def _scanned(data: Any, reading: Reading) -> dict[str, Any] | None:
    """Return the arguments of `Detections.from_arrays` for a plain file; None if the file must be read cell by cell."""
    from detmap.reading import cells  # imports the scanner

    start = bytes(data[:_HEAD])
    mark = 3 if start.startswith(b"\xef\xbb\xbf") else 0
    first, feed, _ = start[mark:].partition(b"\n")
    try:
        line = first.decode()
        delimiter = _delimiter_of(line)
        titles = next(csv.reader([line], delimiter=delimiter, strict=True))
    except (UnicodeDecodeError, csv.Error, StopIteration):
        return None
    given, renamed = _given(reading.columns)
    header = given if given is not None else [title.strip() for title in titles]
    places = _places(header, renamed, "")
    image, category = (next((n for n in names if n in places), None) for names in (_IMAGE, _CATEGORY))
    ways = _ways(places)
    if not feed or image is None or category is None or "score" not in places or len(ways) != 1:
        return None
    form, sides = ways[0]
    roles: list[str | None] = [None] * len(header)
    for role in (image, category, "score", *sides):
        roles[places[role]] = role
    begin = mark if given is not None else mark + len(first) + 1
    whole = [names[0] for names in (_IMAGE, _CATEGORY) if names[0] in roles]
    found = cells.scan(data, begin, delimiter, roles, (image, category), whole)
    if found is None:
        return None
    ids: list[Any] = []
    for role, names in ((image, _IMAGE), (category, _CATEGORY)):
        if isinstance(found[role], np.ndarray):
            ids.append(found[role])
            continue
        distinct, codes = found[role]
        if not distinct or not all(0 < len(one) <= _LONGEST and "\0" not in one for one in distinct):
            return None
        values = integers(distinct) if role == names[0] else distinct
        ids.append(Ids(np.array(values), codes))
    boxes = np.stack([found[side] for side in sides], axis=1)
    return {"image_ids": ids[0], "category_ids": ids[1], "boxes": boxes, "scores": found["score"], "box_format": form}


_IMAGE, _CATEGORY = ("image_id", "image"), ("category_id", "category")


def _ids(values: list[Any], source: str, field: str) -> Any:
    return coded(values, source, field) if values and isinstance(values[0], str) else np.array(values, np.int64)


def of_other_format(titles: Sequence[str]) -> bool:
    """Return whether titles belong to another format in CSV: Open Images, prediction strings, or VIA."""
    there = {title.strip(' "\r') for title in titles}
    return (
        {"ImageID", "LabelName", "XMin", "YMax"} <= there
        or {"ImageID", "LabelName", "Mask"} <= there
        or bool({"PredictionString", "region_shape_attributes"} & there)
    )


def _roles(given: Given) -> set[str | None]:
    """Return the roles of the titles in the first line."""
    first = given.head.partition(b"\n")[0].decode("utf-8", "replace")
    return {role_of_title(title.strip(' "\r')) for title in re.split("[,;\t]", first)}


def _sniff(given: Given) -> bool:
    """Recognise a file by its name, or by a first line with columns of images and boxes."""
    if given.is_folder or of_other_format(
        re.split("[,;\t]", given.head.partition(b"\n")[0].decode("utf-8", "replace"))
    ):
        return False
    if given.name.lower().endswith(ENDINGS):
        return True
    if os.path.splitext(unpacked_name(given.name))[1] not in ("", ".txt"):
        return False
    roles = _roles(given)
    return bool({"image_id", "image"} & roles) and bool({"x", "x1", "cx"} & roles)


FORMAT = register(
    Format(
        name="csv",
        takes=("columns", "fields", "classes"),
        suffixes=ENDINGS,
        sniff=_sniff,
        read_ground_truth=read_csv_ground_truth,
        read_detections=read_csv_detections,
        write_ground_truth=later("detmap.formats.delimited.write", "write_ground_truth"),
        write_detections=later("detmap.formats.delimited.write", "write_detections"),
        written=ENDINGS,
        grouped=True,
        fields=None,
        tell=lambda given: "detections" if "score" in _roles(given) else "ground_truth",
        words=("CSV or TSV", "CSV or TSV"),
        needs_images=True,
    )
)
