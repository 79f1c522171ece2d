"""Make formats for folders with a text file per image and a line per object, from the description of a line.

A description has the names of columns in braces, as ``"{class} {score} {x1} {y1} {x2} {y2}"``. Words without braces are
written literally; when reading, any word is accepted in their place. A last word in brackets, as ``[difficult]``, is a
flag that only some lines have.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Strings
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.file_names import (
    by_image,
    category_names,
    check_scores,
    corners,
    lost_areas,
    lost_by_names,
    lost_ids,
    lost_sizes,
    moved,
    over_classes,
    recoded,
    renamed,
    resolve_categories,
    resolve_images,
    shapes_lost,
    stems_of,
    write_folder,
)
from detmap.formats.image_sizes import scales
from detmap.formats.registry import Format, Given, Refused, Salvaged, Writing
from detmap.formats.voc.read import among_image_set
from detmap.formats.yolo import read as yolo
from detmap.formats.yolo.folders import NO_LABELS, check_names, labels_among, names_given
from detmap.reading.lines import Lines, read_lines
from detmap.reading.options import Path, Reading, Role
from detmap.reading.sources import members, name_of
from detmap.shapes.boxes import seem_shares

#: Columns of a box by box format. For "", a function of type `Formed` decides the format from the numbers.
_BOXES = {
    "xyxy": ("x1", "y1", "x2", "y2"),
    "xywh": ("x", "y", "width", "height"),
    "cxcywh": ("cx", "cy", "width", "height"),
    "": ("a", "b", "c", "d"),
}

#: Prefixes of files with the results of a class, as in VOC and DOTA.
_OF_A_CLASS = re.compile(r"comp.*_det_|Task[12]_")

#: Maximum magnitude of a box coordinate that is a share of the image.
_NEAR_SHARES = 2.0

#: Columns of flags, 0 or 1.
_FLAGS = ("difficult", "crowd")

#: Function that decides the box format. Its arguments are the lines, the four numbers of each box, and the option
#: `box_format`. The function returns the box format, and notices.
Formed = Callable[[Lines, NDArray[np.float64], "str | None"], "tuple[str, dict[str, int]]"]


class _Row:
    """The layout of a line."""

    def __init__(self, text: str, scored: bool, more: Sequence[str] = ()) -> None:
        self.words = text.split()
        self.mark = self.words.pop()[1:-1] if self.words and self.words[-1].startswith("[") else ""
        self.places = {word[1:-1]: place for place, word in enumerate(self.words) if word.startswith("{")}
        form = next((form for form, names in _BOXES.items() if set(names) <= set(self.places)), None)
        box = () if form is None else _BOXES[form]
        self.form = form or ""
        others = [name for name in (*_FLAGS, *more) if name in self.places]
        self.numbers = [*(["score"] if scored else []), *box, *others]
        if form is None or set(self.places) != {"class", *self.numbers} or self.mark not in ("", *_FLAGS):
            raise ValueError(
                f"a line needs {{class}}, a box{' and {score}' if scored else ''}, and may have flags; of a box the columns "
                f"are {'; '.join(' '.join(names) for names in _BOXES.values())} (got {text!r})"
            )
        self.at = [self.places[name] for name in self.numbers]
        plain = " ".join(word.strip("{}") for word in self.words)
        self.says = f"a line is: {plain}" + (f", or that and {self.mark}" if self.mark else "")

    def own(self, words: list[bytes]) -> list[bytes]:
        """Return the words of a line without the optional flag at the end."""
        marked = self.mark and len(words) == len(self.words) + 1 and words[-1] == self.mark.encode()
        return words[:-1] if marked else words

    def marked(self, lines: Lines) -> NDArray[np.bool_]:
        """Return a mask of the lines with the optional flag at the end."""
        marked = lines.counts == len(self.words) + bool(self.mark)
        if self.mark and marked.any():
            rows = np.flatnonzero(marked)
            codes, words = lines.take(rows).words(len(self.words))
            marked[rows] = np.array([word == self.mark.encode() for word in words])[codes]
        return np.asarray(marked & bool(self.mark))

    def fits(self, words: list[bytes]) -> bool:
        """Return whether a line can have this layout."""
        own = self.own(words)
        with suppress(ValueError):
            return len(own) == len(self.words) and bool([float(own[place]) for place in self.at])
        return False


class _Parsed(NamedTuple):
    """Columns parsed from lines. `form` is the box format, `shares` is true for normalised boxes, and `numbers` holds all
    numeric columns by name.
    """

    classes: Strings
    scores: NDArray[np.float64]
    boxes: NDArray[np.float64]
    form: str
    flags: dict[str, NDArray[np.bool_]]
    notices: dict[str, int]
    shares: bool = False
    numbers: Mapping[str, NDArray[np.float64]] = {}

    def in_pixels(
        self, files: Sequence[Any], lines: Lines, reading: Reading, source: str, truth: GroundTruth | None
    ) -> _Parsed:
        """Return these columns with boxes in pixels, converting normalised boxes. `files` has the image of each file."""
        if not self.shares:
            return self
        images = [str(files[file]) for file in lines.files.tolist()]
        return self._replace(boxes=self.boxes * scales(images, reading.image_sizes, source, truth), shares=False)


def _parse(lines: Lines, row: _Row, formed: Formed | None, given: str | None) -> _Parsed:
    """Parse lines; raise `InputError` for a line of another layout."""
    marked = row.marked(lines)
    width = len(row.words)
    lines.check_counts(width + marked, f"where {width} are expected", row.says)
    values = lines.table(row.at)
    try:
        names = lines.strings(row.places["class"])
    except InputError:
        raise InputError("is not a text file in UTF-8", source=lines.names[0]) from None
    table = dict(zip(row.numbers, values.T, strict=True))
    flags = {name: _flag(lines, table[name], name) for name in _FLAGS if name in table}
    if row.mark:
        flags[row.mark] = marked
    boxes = np.ascontiguousarray(np.transpose([table[name] for name in _BOXES[row.form]]))
    shares = seem_shares(boxes)
    if shares and formed is None:
        raise lines.error(
            int(np.argmax((boxes % 1 != 0).any(axis=1))),
            "boxes lie within about 0 to 1, as shares of an image do: pixels are expected",
            remedy="lines of class, centre x, centre y, width, height, and a score behind them, are YOLO's format",
        )
    form, notices = (row.form, {}) if formed is None else formed(lines, boxes, given)
    return _Parsed(names, table.get("score", np.empty(0)), boxes, form, flags, notices, shares, table)


def _flag(lines: Lines, values: NDArray[np.float64], name: str) -> NDArray[np.bool_]:
    lines.refuse((values != 0) & (values != 1), f"{name} must be 0 or 1")
    return np.asarray(values != 0)


@dataclass(frozen=True, kw_only=True)
class More:
    """Columns of a format besides class, score, box and flags.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns, all numeric.
    read : callable
        ``read(numbers, role)`` returns further arguments of ``from_arrays``, each with a row per line. `numbers` maps
        names of columns to arrays.
    write : callable
        ``write(table)`` returns a mapping from names to columns, and a mapping from kinds of lost content (keys of
        `LOST`) to numbers of records.
    holds : tuple of str
        The kinds of shape in these columns.
    folded : bool
        Whether classes are case-insensitive. Case-insensitive classes are read in lower case.
    inside : str
        Name of the subfolder to read instead if a folder of detections has it; empty if there is no such name.
    every_image : bool
        Whether an image without detections must have an empty file. A notice counts the images without
        a file.
    """

    columns: tuple[str, ...] = ()
    read: Callable[[Mapping[str, NDArray[np.float64]], Role], dict[str, Any]] = lambda numbers, role: {}
    write: Callable[[GroundTruth | Detections], tuple[dict[str, NDArray[np.float64]], dict[str, int]]] = lambda table: (
        {},
        {},
    )
    holds: tuple[str, ...] = ()
    folded: bool = False
    inside: str = ""
    every_image: bool = False


@dataclass(frozen=True, kw_only=True)
class _Side:
    """Reads and writes a format for one role, ground truth or detections."""

    #: Layout of a line.
    row: _Row
    #: The function that decides the box format, if the description leaves the format open.
    formed: Formed | None
    #: Classes of regions in which detections of every class are ignored, such as KITTI's DontCare.
    everywhere: tuple[str, ...] = field(default=())
    #: Further columns.
    more: More = More()

    def files(self, source: Any, what: str) -> dict[str, tuple[bytes, str]]:
        """Return the content and the path of each image's file by image name, ordered by name."""
        if self.more.inside and what == "detections" and isinstance(source, str | os.PathLike):
            inside = os.path.join(source, self.more.inside)
            source = inside if os.path.isdir(inside) else source
        return dict(sorted(labels_among(members(source, ".txt", what)).items()))

    def read_ground_truth(self, source: Any, reading: Reading) -> GroundTruth:
        """Read a folder or archive with a text file per image, optionally only the images of an image set."""
        files = self.files(source, "ground truth")
        name = name_of(source, "ground truth")
        files = among_image_set(files, reading, name)
        return self.objects(read_lines(files.values()), list(files), reading, name)

    def objects(self, lines: Lines, stems: Sequence[str], reading: Reading, source: str) -> GroundTruth:
        """Return the objects of some lines."""
        parsed = self.parsed(lines, reading)
        parsed = parsed.in_pixels(stems, lines, reading, source, None)
        rows, classes, crowd = over_classes(_called(parsed.classes, reading), self.everywhere)
        if "crowd" in parsed.flags:
            crowd |= parsed.flags["crowd"][rows]
        difficult = parsed.flags.get("difficult")
        with lines.named():
            more = _of_rows(self.more.read(parsed.numbers, "ground_truth"), rows)
        with lines.named(rows):
            return GroundTruth.from_arrays(
                image_ids=recoded(stems, lines.files[rows]),
                category_ids=classes,
                boxes=parsed.boxes[rows],
                box_format=parsed.form,  # type: ignore[arg-type]
                crowd=crowd,
                difficult=None if difficult is None else difficult[rows],
                images=np.array(stems, str),
                invalid_boxes=reading.invalid_boxes,
                notices=parsed.notices,
                source=source,
                **more,
            )

    def parsed(self, lines: Lines, reading: Reading) -> _Parsed:
        """Parse lines, with classes in lower case if they are case-insensitive."""
        parsed = _parse(lines, self.row, self.formed, reading.box_format)
        return parsed._replace(classes=renamed(parsed.classes, str.lower)) if self.more.folded else parsed

    def read_detections(self, source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
        """Read a folder or archive of text files with scores."""
        lines, ids, dropped = self.found_lines(source, ground_truth, reading)
        return self.found(lines, ids, dropped, ground_truth, reading, name_of(source, "detections"))

    def found_lines(
        self, source: Any, ground_truth: GroundTruth | None, reading: Reading
    ) -> tuple[Lines, list[Any], int]:
        """Return the lines of the files whose image is in the ground truth, and the image ids of these files. Also
        return the number of lines in other files.
        """
        files = self.files(source, "detections")
        ids: list[Any] = list(files)
        if ground_truth is not None:
            ids = resolve_images(ids, ground_truth, reading.unknown_images, name_of(source, "detections"))
        held = list(zip(files.values(), ids, strict=True))
        dropped = len(read_lines(file for file, one in held if one is None))
        return read_lines(file for file, one in held if one is not None), [x for x in ids if x is not None], dropped

    def found(
        self,
        lines: Lines,
        ids: Sequence[Any],
        dropped: int,
        ground_truth: GroundTruth | None,
        reading: Reading,
        source: str,
    ) -> Detections:
        """Return the detections of some lines."""
        parsed = self.parsed(lines, reading)
        parsed = parsed.in_pixels(ids, lines, reading, source, ground_truth)
        classes = _called(parsed.classes, reading)
        if self.more.folded and ground_truth is not None:  # class names of the ground truth may have capitals, as Car
            own = {name.lower(): name for name in ground_truth.category_names}
            own |= {name: name for name in ground_truth.category_names}
            classes = renamed(classes, lambda one: own.get(one, one))
        categories: list[Any] = classes.values
        if ground_truth is not None:
            categories = resolve_categories(categories, ground_truth)
        notices = {"unknown_image": dropped} if dropped else {}
        if self.more.every_image and ground_truth is not None:
            absent = ground_truth.images.ids.size - len({*ids})
            notices |= {"images_without_file": absent} if absent else {}
        with lines.named():
            return Detections.from_arrays(
                image_ids=recoded(ids, lines.files),
                category_ids=recoded(categories, classes.codes),
                boxes=parsed.boxes,
                box_format=parsed.form,  # type: ignore[arg-type]
                scores=parsed.scores,
                invalid_boxes=reading.invalid_boxes,
                notices={**parsed.notices, **notices},
                source=source,
                **self.more.read(parsed.numbers, "detections"),
            )

    def salvage(self, source: Any, role: Role, ground_truth: GroundTruth | None) -> Salvaged | None:
        """Read the valid lines; return None if a file is not text, or lines contradict each other."""
        name, reading = name_of(source, role.replace("_", " ")), Reading(invalid_boxes="miss", unknown_images="ignore")
        with suppress(InputError):
            if role == "ground_truth":
                files = self.files(source, "ground truth")
                good, refused = self._told_apart(read_lines(files.values()))
                return self.objects(good, list(files), reading, name), None, refused
            lines, ids, dropped = self.found_lines(source, ground_truth, reading)
            good, refused = self._told_apart(lines)
            return self.found(good, ids, dropped, ground_truth, reading, name), None, refused
        return None

    def _told_apart(self, lines: Lines) -> tuple[Lines, list[Refused]]:
        """Return the valid lines, and the refused lines with the reason for each."""
        good: list[int] = []
        refused = []
        blocks = [range(len(lines))]
        while blocks:  # blocks of valid lines are parsed at once, other blocks are halved
            rows = blocks.pop()
            error = self._error(lines.take(rows))
            if error is None:
                good += rows
            elif len(rows) > 1:
                middle = len(rows) // 2
                blocks += [rows[middle:], rows[:middle]]
            else:
                file = os.path.basename(lines.names[lines.files[rows[0]]])
                refused.append(Refused(f"{file} line {lines.numbers[rows[0]]}", "bad_values", error.problem))
        return lines.take(good), refused

    def _error(self, lines: Lines) -> InputError | None:
        """Return the error about a single line. For several lines, return an error if any line may be invalid."""
        formed: Formed | None = None if len(lines) == 1 else lambda *_: ("", {})
        try:
            boxes = _parse(lines, self.row, formed, None).boxes
        except InputError as error:
            return error
        if formed is not None and (np.abs(boxes) <= _NEAR_SHARES).all(axis=1).any():
            return InputError("may be shares of an image")
        return None

    def write_ground_truth(self, table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
        """Write a file per image."""
        stems, names = stems_of(table, None), category_names(table, None)
        labels, skipped, whole = _regions(table, names, self.everywhere)
        columns, lost = self._columns(table, names, labels)
        written = by_image(table)
        check_names(stems, written, table.source)
        marks = getattr(table, self.row.mark).tolist() if self.row.mark else []
        self._write(path, stems, [rows[~skipped[rows]] for rows in written], columns, marks)
        held = {self.row.mark, *self.row.places}
        plain = {name: 0 if name in held else int(getattr(table, name).sum()) for name in _FLAGS}
        return {
            **plain,
            "crowd": plain["crowd"] - (0 if "crowd" in held else whole),
            "areas": lost_areas(table),
            **lost,
            **lost_by_names(table, names, stems),
            "image_sizes": lost_sizes(table),
        }

    def write_detections(self, table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
        """Write a file per image."""
        truth = writing.ground_truth
        stems, names = stems_of(table, truth), category_names(table, truth)
        columns, lost = self._columns(table, names, [names[code] for code in table.categories.codes.tolist()])
        empty = stems_of(truth, None) if self.more.every_image and truth is not None else []
        files = {**dict.fromkeys(empty, np.empty(0, np.int64)), **dict(zip(stems, by_image(table), strict=True))}
        self._write(path, list(files), list(files.values()), columns, [])
        return {
            **lost,
            "category_ids": lost_ids(table.categories.values, names),
            "image_ids": lost_ids(table.images.values, stems),
            "order": moved(table.images.codes, stems),
        }

    def _columns(
        self, table: GroundTruth | Detections, names: Sequence[str], labels: list[str]
    ) -> tuple[list[str | list[str]], dict[str, int]]:
        """Return the text of each column: one string if the text is the same on all lines, else a list with one string
        per line. Also return counts of what the format cannot hold.
        """
        for name in names:
            if len(name.split()) != 1 or name != name.strip() or not name.isprintable() or len(name.encode()) > 256:
                raise InputError("a class of these lines must be one word", source=table.source, value=name)
            if (name.lower() if self.more.folded else name) in self.everywhere:
                raise InputError(
                    "is the word for regions of all classes, and no class",
                    source=table.source,
                    value=name,
                    remedy="rename the class: --class-map",
                )
        cells: dict[str, list[str]] = {"class": labels}
        if isinstance(table, Detections):
            check_scores(table)
            cells["score"] = list(map(repr, table.scores.tolist()))
        boxes, lost = _as_written(table, self.row.form)
        if seem_shares(boxes):
            raise InputError(
                "boxes lie within about 0 to 1, which are shares of the image in such lines, and would be read as these",
                source=table.source,
                remedy="give pixels, or write another format",
            )
        cells |= {n: list(map(repr, column)) for n, column in zip(_BOXES[self.row.form], boxes.T.tolist(), strict=True)}
        cells |= {n: [str(int(one)) for one in getattr(table, n).tolist()] for n in _FLAGS if n in self.row.places}
        others, lost_besides = self.more.write(table)
        cells |= {name: list(map(_short, column.tolist())) for name, column in others.items()}
        columns = [cells[word[1:-1]] if word.startswith("{") else word for word in self.row.words]
        return columns, {**lost, **lost_besides, "shapes": shapes_lost(table, self.more.holds)}

    def _write(
        self,
        path: Path,
        stems: Sequence[str],
        of_image: Sequence[NDArray[np.int64]],
        columns: Sequence[str | list[str]],
        marks: Sequence[bool],
    ) -> None:
        """Write the files of some images."""

        ends = [f" {self.row.mark}\n" if marked else "\n" for marked in marks] or repeat("\n")
        words = zip(*(repeat(one) if isinstance(one, str) else one for one in columns), strict=False)
        lines = [line + end for line, end in zip(map(" ".join, words), ends, strict=False)]

        def content(rows: list[int]) -> bytes:
            return "".join([lines[row] for row in rows]).encode()

        contents = {f"{name}.txt": partial(content, of_image[i].tolist()) for i, name in enumerate(stems)}
        write_folder(path, contents)


def _short(value: float) -> str:
    """Return a number as text, without a decimal point if it is whole."""
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def _of_rows(columns: dict[str, Any], rows: NDArray[np.int64]) -> dict[str, Any]:
    """Select rows of columns. A value of `columns` is a column, or a mapping of further columns."""
    made: dict[str, Any] = {}
    for name, value in columns.items():
        if isinstance(value, Mapping):
            made[name] = {key: one.take(rows) for key, one in value.items()}
        else:
            made[name] = value[rows]
    return made


def _called(classes: Strings, reading: Reading) -> Strings:
    """Return the names of classes; classes that are numbers are looked up in the option `classes`."""
    if reading.classes is None:
        return classes
    names = {str(number): name for number, name in names_given(reading.classes).items()}
    return renamed(classes, lambda one: names.get(one, one))


def _regions(
    table: GroundTruth, names: Sequence[str], everywhere: Sequence[str]
) -> tuple[list[str], NDArray[np.bool_], int]:
    """Merge crowds with the same box into one line if every category has a crowd with this box.

    Return the class that is written for each object, a mask of the objects without a line, and the number of merged
    objects.
    """
    codes = table.categories.codes.tolist()
    labels, skipped, whole = [names[code] for code in codes], np.zeros(len(codes), np.bool_), 0
    alike: dict[Any, list[int]] = {}
    for row in np.flatnonzero(table.crowd).tolist() if everywhere else ():
        alike.setdefault((int(table.images.codes[row]), table.boxes[row].tobytes()), []).append(row)
    for rows in alike.values():
        if sorted(codes[row] for row in rows) == list(range(len(names))):
            labels[rows[0]] = everywhere[0]
            skipped[rows[1:]] = True
            whole += len(rows)
    return labels, skipped, whole


def _as_written(table: GroundTruth | Detections, form: str) -> tuple[NDArray[np.float64], dict[str, int]]:
    """Return boxes in the format `form`, or as corners if it is "". Also count the converted and rounded boxes."""
    if form in ("xyxy", ""):
        boxes, rounded = corners(table)
        return boxes, {"rounded_boxes": rounded, "sizes": len(table) if table.box_sizes else 0}
    given, boxes = table.boxes, table.boxes.copy()
    if not table.box_sizes:
        boxes[:, 2:] -= boxes[:, :2]
    back = boxes[:, :2] + boxes[:, 2:] if not table.box_sizes else given[:, 2:]
    if form == "cxcywh":
        boxes[:, :2] += boxes[:, 2:] / 2
        back = np.where(boxes[:, :2] - boxes[:, 2:] / 2 == given[:, :2], back, np.nan)
    rounded = int(np.count_nonzero((back != given[:, 2:]).any(axis=1)))
    return boxes, {"rounded_boxes": rounded, "corners": 0 if table.box_sizes else len(table)}


def line_format(
    name: str,
    *,
    ground_truth: str = "",
    detections: str = "",
    everywhere: Sequence[str] = (),
    box_format: Formed | None = None,
    besides: More | None = None,
    **more: Any,
) -> Format:
    """Make a format whose folders or archives have a text file per image, with a line per object. Boxes are in pixels.

    An invalid line raises an error that names its file and number; ``detmap check`` skips and lists invalid lines.

    Parameters
    ----------
    name : str
        Name of the format.
    ground_truth, detections : str
        Layout of a line, as ``"{class} -1 {x1} {y1} {x2} {y2} {score}"``; empty for a role that is not read or written.
        Names in braces are columns; other words are written literally, and ignored when reading. Every line
        has ``class`` and a box: ``x1 y1 x2 y2``, ``x y width height``, ``cx cy width height`` or ``a b c d`` (see
        `box_format`). Lines of detections also have ``score``. ``difficult`` and ``crowd``, which are 0 or 1, are
        optional. The last word may be ``[difficult]`` or ``[crowd]``, a flag that only some lines have.
    everywhere : sequence of str
        Classes of regions in which no detection of any class counts, as KITTI's ``DontCare``. A region becomes one
        crowd for each class of the other lines.
    box_format : callable, or None
        With the columns ``a b c d``: ``box_format(lines, boxes, given)`` returns the format of the boxes, such as
        "xyxy", and notices; `given` is the caller's option.
    besides : More, or None
        Further columns of the lines.
    **more
        Other attributes of `Format`, such as ``sniff``.

    Returns
    -------
    Format
        To be given to `detmap.register`.

    Raises
    ------
    ValueError
        If a description lacks a required column, or has an unknown one.
    """
    made: dict[str, Any] = {}
    sides: dict[str, _Side] = {}
    for role, text in (("ground_truth", ground_truth), ("detections", detections)):
        if text:
            row = _Row(text, scored=role == "detections", more=() if besides is None else besides.columns)
            if not row.form and box_format is None:
                raise ValueError("the columns a b c d need box_format")
            side = sides[role] = _Side(row=row, formed=box_format, everywhere=tuple(everywhere), more=besides or More())
            made |= {f"{verb}_{role}": getattr(side, f"{verb}_{role}") for verb in ("read", "write")}

    def sniff(given: Given) -> bool:
        side = sides.get(given.role)
        if side is None or not (given.is_folder or given.is_archive):
            return False
        if any(one.lower().endswith(".xml") for one in given.names):
            return False
        lines = given.lines(side.more.inside if side.more.inside in given.names else "", NO_LABELS)
        count = sum(map(side.row.fits, lines))
        # a minority of lines may be invalid
        if count < len(lines) and (box_format is not None or 2 * count <= len(lines)):
            return False
        if not lines or yolo.fits(lines, given.role == "detections"):
            return False
        return not any(map(_OF_A_CLASS.match, given.names))

    def salvage(source: Any, role: Role, kinds: Sequence[str], truth: GroundTruth | None) -> Salvaged | None:
        return sides[role].salvage(source, role, truth)

    words = ["", ""]
    for place, (role, of) in enumerate((("ground_truth", "objects"), ("detections", "detections"))):
        if role in sides:
            words[place] = f"a folder of text files of {name}'s {of}"
    made |= {"takes": (), "members": ".txt", "needs_images": True, "salvage": salvage if box_format is None else None}
    return Format(**{"name": name, "suffixes": (), "sniff": sniff, "words": tuple(words), **made, **more})
