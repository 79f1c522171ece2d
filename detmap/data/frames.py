"""Convert tables from and to data frames and Arrow. pyarrow reads any object with Arrow's PyCapsule interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.data.arrow_columns import Coded, array_of, ids_of, plain, pyarrow, taken
from detmap.data.benchmarks import NO_FLAG, flagged, is_flag, is_group, is_no_flag, noted_of_titles
from detmap.data.column_names import BOXES, COLUMNS, role_of_title
from detmap.data.notices import added
from detmap.errors import InputError, MissingDependencyError, OptionError, shorten
from detmap.shapes.kinds import BOX_FIELD
from detmap.shapes.kinds import BOXES as BOX_KIND

#: Columns with lists of four numbers, and their box formats.
LISTS = {BOX_FIELD: "xywh", "box": "xywh", "boxes": "xywh", "bbox_xyxy": "xyxy", "boxes_xyxy": "xyxy"}


#: Key in the metadata of an Arrow schema, or in the ``attrs`` of a data frame. The value is the number of rows whose
#: masks or other shapes were left out.
_SHAPES_LEFT_OUT = "detmap.shapes_left_out"


def arrow_of(data: Any, source: str) -> Any:
    """Return data of any kind as a `pyarrow.Table`, sharing memory where possible."""
    pa = pyarrow()
    check_computed(data, source)
    try:
        if isinstance(data, pa.Table):
            return data
        if isinstance(data, pa.RecordBatchReader):
            return data.read_all()
        if isinstance(data, pa.RecordBatch):
            return pa.Table.from_batches([data])
        if isinstance(data, Mapping):
            return pa.table(dict(data))
        if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
            return pa.table(data)
        return pa.Table.from_pandas(data, preserve_index=False)
    except MemoryError:
        raise
    except Exception as error:  # other libraries may raise anything
        reason = shorten(" ".join(str(error).split()), 100)[1:-1]
        raise InputError(
            f"cannot be read as a table: {reason}", source=source, remedy="give a data frame, or what Arrow can read"
        ) from None


def check_computed(data: Any, source: str) -> None:
    """Refuse lazy frames, such as those of polars and dask."""
    method = next((name for name in ("collect", "compute") if callable(getattr(type(data), name, None))), None)
    if method is not None and not hasattr(data, "__arrow_c_stream__"):
        problem = f"this {type(data).__name__} is a plan, and holds no rows yet"
        raise InputError(problem, source=source, remedy=f"give what its method {method}() returns")


def columns_of(
    table: Any,
    scored: bool,
    columns: Mapping[str, str] | None,
    box_format: str | None,
    source: str,
    have: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Convert a `pyarrow.Table` to the arguments of ``from_arrays``. For error messages, `have` holds the titles of all
    columns of the file, if the table has only some columns. Raises `InputError` for a missing column or invalid values.
    """
    titles = list(table.column_names if have is None else have)
    found = _by_role(table, columns, source, titles)
    if scored and "score" not in found:
        raise _missing("score", "scores", titles, source)
    image, category = (_first(found, (f"{what}_id", what), titles, source) for what in ("image", "category"))
    out: dict[str, Any] = {}
    if not scored:
        out.update(_of_images(found, image, source))
        found |= _fields(table, columns)
        if found[category].null_count:
            rest = _objects(found, category, source)
            found = {name: column.filter(rest) for name, column in found.items()}
    out["image_ids"] = ids_of(found[image], image, source)
    out["category_ids"] = ids_of(found[category], category, source)
    out["boxes"], out["box_format"] = _boxes(found, box_format, titles, source)
    if scored:
        out["scores"] = array_of(found["score"], "score", source)
        return out
    fields = [name for name in found if name.startswith(_FIELD)]
    if fields:
        out["fields"] = {
            name.removeprefix(_FIELD): np.where(
                array_of(found[name].is_null(), name, source), np.nan, array_of(found[name], name, source)
            ).astype(np.float64)
            for name in fields
        }
    for name, argument in (("area", "areas"), ("crowd", "crowd"), ("difficult", "difficult")):
        if name in found:
            out[argument] = array_of(found[name], name, source)
    if "group_of" in found:  # -1 means unknown, and is read as false
        cells = found["group_of"].to_pylist()
        for row, cell in enumerate(cells):
            if is_no_flag(cell):
                raise InputError(NO_FLAG, source=source, record=row, field="group_of", value=cell)
        out["group_of"] = np.array([is_flag(cell) for cell in cells], np.bool_)
    if category == "category_id" and "category" in found:
        out["category_names"] = _names(found["category_id"], found["category"], source)
    others = [title for title in titles if title not in (columns or {}).values()]
    groups = [title for title in others if is_group(title) and title in table.column_names]
    out["notices"] = noted_of_titles(others, flagged(table.column(title).to_pylist() for title in groups))
    return out


def image_names(table: Any, columns: Mapping[str, str] | None, source: str) -> dict[Any, str]:
    """Return the file names of images by id; empty unless the table has columns for ids and names."""
    found = _by_role(table, columns, source, table.column_names)
    if not {"image_id", "image"} <= set(found):
        return {}
    return _names(found["image_id"], found["image"], source)


#: Columns that may have a value in the row of an image without objects.
_OF_IMAGES = ("image_id", "image", "image_width", "image_height")


def _objects(found: Mapping[str, Any], category: str, source: str) -> Any:
    """Return a mask of the rows of ground truth that describe an object; other rows stand for images without
    objects.
    """
    empty = np.asarray(array_of(found[category].is_null(), category, source), np.bool_)
    for name, column in found.items():
        if name in _OF_IMAGES or name == category:
            continue
        lost = empty & np.asarray(array_of(column.is_valid(), name, source), np.bool_)
        if lost.any():
            remedy = f"give the category, or leave {name} empty too: then the row is an image without objects"
            raise InputError("is missing", source=source, record=int(np.argmax(lost)), field=category, remedy=remedy)
    return pyarrow().array(~empty)


#: Prefix of the keys of columns without a role.
_FIELD = "field:"


def _fields(table: Any, columns: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the numeric and boolean columns without a role, by which levels of difficulty may be defined."""
    types = pyarrow().types
    given = {*LISTS, *(columns or {}).values()}
    return {
        _FIELD + title: table.column(place)
        for place, title in enumerate(table.column_names)
        if title not in given
        and role_of_title(title) is None
        and any(check(table.column(place).type) for check in (types.is_integer, types.is_floating, types.is_boolean))
    }


def _by_role(table: Any, columns: Mapping[str, str] | None, source: str, titles: Sequence[str]) -> dict[str, Any]:
    """Return columns by role; the role is given by the caller (`columns`) or known from the name of the column."""
    renamed: dict[str, str] = {}
    for role, title in (columns or {}).items():
        known: str | None = role if role in LISTS else role_of_title(str(role))
        if known is None:
            raise OptionError(f"a column cannot be {shorten(role)}; one of: {', '.join([*COLUMNS, *LISTS])}")
        if title not in table.column_names:
            raise InputError(f"has no column {shorten(title)}", source=source, remedy=f"it has: {_listing(titles)}")
        renamed[title] = known
    found: dict[str, Any] = {}
    for place, title in enumerate(table.column_names):
        own: str | None = title if title in LISTS else role_of_title(title)
        meant = renamed.get(title) or (None if own in renamed.values() else own)
        if meant is None:
            continue
        if meant in found:
            raise InputError(
                f"has two columns for {meant}", source=source, value=title, remedy="name one: columns={...}"
            )
        with taken(title, source):
            found[meant] = plain(table.column(place))
    return found


def _listing(titles: Sequence[str]) -> str:
    return ", ".join(shorten(one)[1:-1] for one in titles[:20])


def _missing(name: str, what: str, titles: Sequence[str], source: str) -> InputError:
    remedy = f"it has: {_listing(titles)}. Name what they hold: columns={{{name!r}: '…'}}"
    return InputError(f"there is no column for {what}", source=source, field=name, remedy=remedy)


def _first(found: Mapping[str, Any], names: tuple[str, str], titles: Sequence[str], source: str) -> str:
    name = next((one for one in names if one in found), None)
    if name is None:
        raise _missing(names[0], {"image_id": "images", "category_id": "categories"}[names[0]], titles, source)
    return name


def _boxes(found: Mapping[str, Any], given: str | None, titles: Sequence[str], source: str) -> tuple[Any, str]:
    """Return boxes and their format, from one column of lists or from four columns."""
    lists = [name for name in LISTS if name in found]
    exact = [(form, ways[0]) for form, ways in BOXES.items() if all(one in found for one in ways[0])]
    others = [(form, names) for form, ways in BOXES.items() for names in ways[1:] if all(one in found for one in names)]
    fits = exact or others
    if len(lists) + len(fits) > 1:
        ways = [*lists, *(", ".join(names) for _, names in fits)]
        raise InputError(
            f"has boxes in {len(ways)} ways: {' and '.join(ways)}",
            source=source,
            remedy="leave out columns of the others",
        )
    if fits:
        form, names = fits[0]
        parts = [np.asarray(array_of(found[name], name, source)) for name in names]
        for name, part in zip(names, parts, strict=True):
            if part.size and part.dtype.kind not in "iuf":
                raise InputError("must be numbers", source=source, field=name)
        return np.stack([part.astype(np.float64, copy=False) for part in parts], axis=1), given or form
    if not lists:
        raise _missing(
            BOX_FIELD, "boxes: bbox (a list of x, y, width, height), or x1, y1, x2, y2, or such", titles, source
        )
    return _listed(found[lists[0]], lists[0], source), given or LISTS[lists[0]]


def _listed(column: Any, name: str, source: str) -> NDArray[Any]:
    """Return a column of lists as an array of shape (n, 4), without a copy if possible."""
    pa = pyarrow()
    kind = column.type
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise InputError("must be lists of four numbers", source=source, field=name, value=str(kind))
    if whole.null_count:
        row = whole.is_null().to_pylist().index(True)
        raise InputError("is missing", source=source, record=row, field=name)
    fixed = pa.types.is_fixed_size_list(kind)
    lengths = np.full(len(whole), kind.list_size) if fixed else np.asarray(whole.value_lengths())
    wrong = lengths != 4
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"has {lengths[row]} numbers where 4 are expected", source=source, record=row, field=name)
    with taken(name, source):
        values = plain(whole.flatten())
    if values.null_count or not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise InputError("must be lists of four numbers", source=source, field=name)
    table: NDArray[Any] = values.to_numpy(zero_copy_only=False).reshape(-1, 4)
    return table


def _of_images(found: Mapping[str, Any], image: str, source: str) -> dict[str, Any]:
    """Return the ids of the images in a table of ground truth, and their sizes if the table has sizes."""
    given = ids_of(found[image], image, source)
    values, codes = given if isinstance(given, Coded) else np.unique(given, return_inverse=True)
    out: dict[str, Any] = {"images": values}
    if {"image_width", "image_height"} <= set(found):
        sizes = np.zeros((values.size, 2), np.int64)
        for place, name in enumerate(("image_height", "image_width")):
            column = np.asarray(array_of(found[name], name, source))
            wrong = "must be one whole number for each image"
            if column.dtype.kind not in "iuf":
                if found[name].null_count == len(column):  # no row has a size
                    continue
                raise InputError(wrong, source=source, field=name)
            column = np.where(np.isnan(column.astype(np.float64)), 0, column)
            if not ((column >= 0) & (column < _MOST_PIXELS)).all():
                raise InputError(wrong, source=source, field=name)
            sizes[codes, place] = column
            if (sizes[codes, place] != column).any():
                raise InputError(wrong, source=source, field=name)
        out["image_sizes"] = sizes
    return out


#: Exclusive maximum of an image's side in pixels.
_MOST_PIXELS = 10_000_000


def _names(ids: Any, names: Any, source: str) -> dict[Any, str]:
    """Return the name of each image or category."""
    out: dict[Any, str] = {}
    pairs = dict.fromkeys(zip(ids.to_pylist(), names.to_pylist(), strict=True))
    for key, name in pairs:
        if name is not None and name == name and out.setdefault(key, str(name)) != str(name):
            raise InputError(f"has two names: {shorten(out[key])} and {shorten(name)}", source=source, value=key)
    return out


def with_image_names(table: Any, names: Mapping[Any, str]) -> Any:
    """Return ground truth with file names of images, if there are any."""
    if not names:
        return table
    listed = tuple(names.get(one, "") for one in table.images.ids.tolist())
    return replace(table, images=replace(table.images, names=listed))


T = TypeVar("T", bound="Framed")


class Framed:
    """Base class of tables, with conversions from and to data frames and Arrow."""

    make_ids: Any  # makes ids from values and codes

    @classmethod
    def from_arrow(
        cls: type[T],
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        box_format: str | None = None,
        source: str | None = None,
        **more: Any,
    ) -> T:
        """Build a table from columnar data with a row per object or detection. Needs pyarrow (extra: parquet).

        Parameters
        ----------
        data : data frame, pyarrow.Table or RecordBatch, mapping of columns, or anything with ``__arrow_c_stream__``
            The columns ``image_id`` (or ``image``) and ``category_id`` (or ``category``) hold integers or strings.
            Detections need ``score``. Boxes are in one column of lists, ``bbox`` (x, y, width, height) or ``bbox_xyxy``,
            or in four columns of numbers (x, y, width, height; x1, y1, x2, y2; or cx, cy, width, height). Ground truth
            may have area, crowd, difficult, image_width and image_height. A row of ground truth without a category stands
            for an image without objects. Other common column names are recognised, as in CSV
            (`detmap.data.column_names.COLUMNS`).
        columns : mapping of str to str, optional
            Titles of columns that are not recognised, keyed by a known name: ``{"score": "p"}`` reads scores from ``p``.
        box_format : {"xywh", "xyxy", "cxcywh"}, optional
            The format of boxes, overriding the format that the column names imply.
        source : str, optional
            Name of the data in messages.
        **more
            Further arguments of `from_arrays`, such as `categories` or `invalid_boxes`; they override the data.

        Raises
        ------
        InputError
            If a column is missing, and as for `from_arrays`.
        MissingDependencyError
            Without pyarrow.

        Notes
        -----
        Scores and lists of a fixed size are not copied if they are float64 in one chunk without nulls.
        """
        scored = hasattr(cls, "on_images_of")
        name = source or ("detections" if scored else "ground truth")
        table = arrow_of(data, name)
        found = columns_of(table, scored, columns, box_format, name)
        for key, value in found.items():
            if isinstance(value, Coded):
                found[key] = cls.make_ids(*value)
        left_out = _left_out(data, table)
        if left_out:
            found["notices"] = added(found.get("notices"), {"unread_shapes": left_out})
        if more.get("labels") is not None:  # labels override the categories of the data
            found.pop("category_ids")
        made: T = cls.from_arrays(**{**found, **more, "source": name})  # type: ignore[attr-defined]
        return made if scored else with_image_names(made, image_names(table, columns, name))

    @classmethod
    def from_frame(cls: type[T], frame: Any, **options: Any) -> T:
        """Build a table from a data frame (pandas, polars, DuckDB, …), with the options of `from_arrow`."""
        return cls.from_arrow(frame, **options)

    def to_arrow(self) -> Any:
        """Return the boxes as a `pyarrow.Table` with a row per object or detection, which `from_arrow` reads.

        Masks and other shapes are left out. The number of rows with such shapes is in the schema's metadata, so that
        `from_arrow` can give a notice.

        Integer ids are in image_id and category_id. String ids are in image and category, dictionary-encoded. Boxes are in
        ``bbox`` (x, y, width, height) or ``bbox_xyxy``. Detections also have score; ground truth has area, crowd,
        difficult, and the names and sizes of images. An image without objects has a row with values only in the columns
        of images. Categories without objects are left out.

        Raises
        ------
        MissingDependencyError
            Without pyarrow.
        """
        return _to_arrow(self)

    def to_frame(self) -> Any:
        """Return a `pandas.DataFrame` like the table of `to_arrow`, in which a box has four columns.

        Masks and other shapes are left out. The number of rows with such shapes is in the frame's ``attrs``, so that
        `from_frame` can give a notice.

        Raises
        ------
        MissingDependencyError
            Without pyarrow or pandas.
        """
        try:
            import pandas
        except ImportError:
            raise MissingDependencyError("pandas", "frames", "to_frame") from None
        pa = pyarrow()
        table = _to_arrow(self)
        for name, titles in ((BOX_FIELD, ("x", "y", "width", "height")), ("bbox_xyxy", ("x1", "y1", "x2", "y2"))):
            if name in table.column_names:
                boxes = self.boxes  # type: ignore[attr-defined]
                more = len(table) - len(boxes)
                table = table.drop_columns([name])
                for title, column in zip(titles, boxes.T, strict=True):
                    table = table.append_column(title, _filled(pa.array(np.ascontiguousarray(column)), more))
        frame = table.to_pandas()
        for name, column in zip(table.column_names, table.columns, strict=True):
            if column.null_count and pa.types.is_int64(column.type):  # floats would round large integers
                frame[name] = pandas.array(column.to_pylist(), "Int64")
        if len(set(self.shapes) - {BOX_KIND}):  # type: ignore[attr-defined]
            frame.attrs[_SHAPES_LEFT_OUT] = len(self)  # type: ignore[arg-type]
        return frame


def _left_out(data: Any, table: Any) -> int:
    """Return the number of rows whose masks or other shapes `to_arrow` or `to_frame` left out."""
    attributes = getattr(data, "attrs", None)
    value = attributes.get(_SHAPES_LEFT_OUT) if isinstance(attributes, Mapping) else None
    if value is None:
        value = (table.schema.metadata or {}).get(_SHAPES_LEFT_OUT.encode(), b"")
    digits = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
    # The number is capped, because rows may have been filtered since. Metadata may hold any text; text other than a
    # number of at most 18 digits is read as 0.
    return min(int(digits), len(table)) if digits.isascii() and digits.isdigit() and len(digits) < 19 else 0


def _filled(array: Any, more: int) -> Any:
    """Return an array padded with nulls."""
    pa = pyarrow()
    return pa.concat_arrays([array, pa.nulls(more, array.type)]) if more else array


def _to_arrow(table: Any) -> Any:
    """Return a table as a `pyarrow.Table`."""
    made = _boxes_to_arrow(table)
    if not set(table.shapes) - {BOX_KIND}:
        return made
    return made.replace_schema_metadata({_SHAPES_LEFT_OUT: str(len(table))})


def _boxes_to_arrow(table: Any) -> Any:
    pa = pyarrow()
    truth = hasattr(table, "crowd")
    images = table.images.codes
    alone = np.empty(0, np.int32)
    if truth:
        count = table.images.values.size
        alone = np.flatnonzero(np.bincount(images, minlength=count) == 0).astype(np.int32)
        images = np.concatenate([images, alone])
    more = alone.size

    def ids(values: NDArray[Any], codes: NDArray[Any]) -> Any:
        if values.dtype.kind == "i":
            return pa.array(values[codes] if values.size else np.empty(0, np.int64))
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(values.tolist(), pa.string()))

    integers = [one.values.dtype.kind == "i" for one in (table.images, table.categories)]
    columns: dict[str, Any] = {"image_id" if integers[0] else "image": ids(table.images.values, images)}
    if truth and integers[0] and table.images.names is not None:
        nameless = np.array([not name for name in table.images.names], np.bool_)
        columns["image"] = pa.DictionaryArray.from_arrays(
            pa.array(images, mask=nameless[images]), pa.array(list(table.images.names), pa.string())
        )
    codes = table.categories.codes
    columns["category_id" if integers[1] else "category"] = _filled(ids(table.categories.values, codes), more)
    boxes = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(table.boxes).reshape(-1)), 4)
    if not truth:
        columns["score"] = pa.array(table.scores)
        columns[BOX_FIELD if table.box_sizes else "bbox_xyxy"] = boxes
        return pa.table(columns)
    if integers[1]:
        names = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(table.category_names), pa.string()))
        columns["category"] = _filled(names, more)
    columns[BOX_FIELD if table.box_sizes else "bbox_xyxy"] = _filled(boxes, more)
    columns["area"] = _filled(pa.array(table.areas), more)
    for name in ("crowd", "difficult"):
        columns[name] = _filled(pa.array(getattr(table, name)), more)
    if table.group_of is not None:
        columns["IsGroupOf"] = _filled(pa.array(table.group_of), more)
    for name, values in table.fields.items():
        columns.setdefault(name, _filled(pa.array(values, mask=np.isnan(values)), more))
    if table.images.sizes is not None:
        for place, name in enumerate(("image_height", "image_width")):
            columns[name] = pa.array(np.ascontiguousarray(table.images.sizes[images, place]))
    return pa.table(columns)
