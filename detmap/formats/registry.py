"""The registry of formats of ground truth and detections.

A new format is one file: its readers, and a `Format` that is given to `detmap.register`.
"""

from __future__ import annotations

import io
import os
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.errors import DetmapError, InputError, OptionError, shorten
from detmap.plugins import Registry, load_installed
from detmap.reading.opening import Held
from detmap.reading.options import Path, Reading, Role, options_of
from detmap.reading.sources import HEAD, head, name_of
from detmap.shapes.kinds import BOXES

#: Suffixes of compressed files.
PACKED = (".gz", ".zst")


def packed(*endings: str) -> tuple[str, ...]:
    """Return the suffixes of plain and compressed files, such as ``.json`` and ``.json.gz``."""
    return tuple(ending + more for ending in endings for more in ("", *PACKED))


def unpacked_name(name: str) -> str:
    """Return the name of a compressed file after decompression."""
    return next((name.removesuffix(ending) for ending in PACKED if name.endswith(ending)), name)


#: Suffixes of JSON files.
_NAMES_OF_JSON = packed(".json", ".jsonl", ".ndjson")

#: Maximum number of a folder's entries that an error message counts, and maximum number that it suggests.
_MANY, _FEW = 10_000, 3

#: Suffixes of tar archives.
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.zst")

#: Number of bytes at the start of an archive that are used for recognition.
_SAMPLE = 1 << 16

#: Maximum number of lines used for recognition.
_LINES = 100


class Given:
    """The source of an input, as passed to the functions of a `Format`.

    Parameters
    ----------
    source : path or Held
        A path, or the content of a stream.
    role : {"ground_truth", "detections"}
        The role in which the source is read.
    """

    def __init__(self, source: Path | Held, role: Role) -> None:
        self.role = role
        self._source = source

    @cached_property
    def name(self) -> str:
        """The name of the file or folder without its parents; "" for a stream."""
        return "" if isinstance(self._source, Held) else os.path.basename(os.path.abspath(self._source))

    @property
    def path(self) -> str:
        """The path; "" for a stream."""
        return "" if isinstance(self._source, Held) else os.fspath(self._source)

    @cached_property
    def is_folder(self) -> bool:
        """Whether the source is a folder."""
        return not isinstance(self._source, Held) and os.path.isdir(self._source)

    @cached_property
    def is_archive(self) -> bool:
        """Whether the source is a tar archive, compressed or not."""
        return not self.is_folder and (self.name.endswith(ARCHIVES) or self.head[257:262] == b"ustar")

    @cached_property
    def _archived(self) -> dict[str, bytes]:
        """The content of an archive's first files by name without folders; the content of the last file may be cut off."""
        import tarfile

        found: dict[str, bytes] = {}
        data = head(self._source, _SAMPLE)
        with suppress(tarfile.TarError), tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                if member.isfile():
                    content = data[member.offset_data : member.offset_data + min(member.size, HEAD)]
                    found[os.path.basename(member.name)] = content
        return found

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The sorted names of a folder's entries, or of the first files in an archive; empty for other sources."""
        if self.is_archive:
            return tuple(sorted(self._archived))
        if not self.is_folder or isinstance(self._source, Held):
            return ()
        with suppress(OSError):  # the reader of the folder raises the error again
            return tuple(sorted(map(os.fsdecode, os.listdir(self._source))))
        return ()

    @cached_property
    def head(self) -> bytes:
        """The first bytes of a file or stream, at most 4096, decompressed and without a byte order mark; empty for
        other sources.
        """
        return head(self._source, HEAD + len(BOM_UTF8)).removeprefix(BOM_UTF8)[:HEAD]

    def open(self) -> IO[bytes]:
        """Open a file, or the content of a stream, for reading.

        Raises
        ------
        OSError
            If the file cannot be opened.
        """
        return io.BytesIO(self._source) if isinstance(self._source, Held) else open(self._source, "rb")

    def lines(self, inside: str, others: Sequence[str] = ()) -> list[list[bytes]]:
        """Return the first lines, split into words. In a folder or archive, read the lines of the first ``.txt`` files.
        `inside` is the subfolder with these files, or "". `others` are names of files to skip.
        """
        if not (self.is_folder or self.is_archive):
            return _words(self.head)
        folder = os.path.join(self.path, inside) if inside else self.path
        found: list[list[bytes]] = []
        for name in Given(folder, self.role).names if inside and self.is_folder else self.names:
            if name.lower().endswith(".txt") and name.lower() not in others:
                found += _words(
                    self._archived[name] if self.is_archive else Given(os.path.join(folder, name), self.role).head
                )
                if len(found) >= _LINES:
                    break
        return found


def _words(head: bytes) -> list[list[bytes]]:
    """Return the words of the lines in the first bytes of a file, whose last line may be cut off."""
    lines = head.splitlines()
    if len(head) >= HEAD:
        lines = lines[:-1]
    return [words for words in map(bytes.split, lines[:_LINES]) if words]


@dataclass(frozen=True, kw_only=True)
class Writing:
    """Writing options; a format ignores options that do not concern it.

    Attributes
    ----------
    ground_truth : GroundTruth, or None
        For detections: the source of category names, and of names and sizes of images.
    """

    ground_truth: GroundTruth | None = None


class Refused(NamedTuple):
    """A record that strict reading refuses, and the reason."""

    #: The record's index in its list, or its file and line.
    record: int | str
    #: Code of the finding, see `detmap.checks.CODES`.
    code: str
    #: What is wrong with the record.
    problem: str
    #: Kind of record, such as "image"; "" for an object or a detection.
    unit: str = ""


class Outlines(NamedTuple):
    """Facts about the polygons of a file."""

    #: The index of each polygon's record in the file's list; shape (p,).
    records: NDArray[np.int64]
    #: Number of coordinates of each polygon, two per point; shape (p,).
    numbers: NDArray[np.int64]
    #: Minimum and maximum x and y; infinite for polygons without points; shape (p, 2).
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Inspection(NamedTuple):
    """Further facts about a file of ground truth that tables do not keep."""

    #: The ids in the lists of images and categories, including repeated ones.
    images: list[Any]
    categories: list[Any]
    #: The polygons; None if there are none.
    outlines: Outlines | None
    #: The index of each record whose mask is a list of run lengths, as COCO writes crowds; shape (r,).
    listed_runs: NDArray[np.int64]


#: A table of the valid records, their indices in the file's list (None if there is no list), and the refused records.
Salvaged = tuple[GroundTruth | Detections, NDArray[np.int64] | None, Sequence[Refused]]


#: Sentences on content that is lost because a format cannot hold it, by code.
LOST = {
    "crowd": "{n} objects are crowds, which the format has no field for: they are written as plain objects",
    "difficult": "{n} objects are difficult, which the format has no field for: they are written as plain objects",
    "groups": "{n} boxes stand for groups, which the format has no field for: they are written as plain objects",
    "zero_ids": "{n} annotations have the id 0, which is not kept: the decision id_zero no longer concerns them",
    "areas": "{n} areas are not those of the box or mask, and the format has no field for them",
    "frame_areas": "{n} tracks have an area for each frame, of which the mean alone is kept",
    "frames": "{n} videos have names of frames, or more frames than their tracks, which are not kept",
    "sizes": "{n} boxes with sizes are written by corners, which differ under rules that count the last pixel",
    "corners": "{n} boxes by corners are written with sizes, which differ under rules that count the last pixel",
    "rounded_boxes": "{n} boxes change in their last digits, as the format writes them in another way",
    "rounded_points": "{n} records have keypoints that change in their last digits, as they are written as shares",
    "boxes": "{n} boxes become those around their masks, as the format has outlines alone",
    "masks": "{n} masks change by some pixels, as the format writes outlines",
    "shapes": "{n} records have shapes that the format has no field for, or none besides others (choose: --iou-type)",
    "empty_categories": "{n} categories without objects, of which the format does not keep the names",
    "empty_images": "{n} images without objects, which the format does not list",
    "category_ids": "{n} categories are written by name or by number, and their ids are not kept",
    "category_order": "{n} categories change places, as the format orders them by name: means are added in that order",
    "order": "{n} detections stand in another order than before, by which some protocols break ties of scores",
    "fields": "{n} objects have further fields, as truncation, which the format has no place for",
    "image_ids": "{n} images are written by name, and their ids are not kept",
    "category_names": "{n} categories have names besides their ids, which the format has no field for",
    "image_names": "{n} images have files with names besides their ids, which the format has no field for",
    "image_sizes": "{n} images have a size, which the format has no field for",
    "category_lists": "{n} images list categories that were looked for, or not annotated in full, as LVIS's and Open "
    "Images' do: the format has no field for that",
    "part_flags": "{n} objects have flags of valid parts, which the format has no field for",
    "part_scores": "{n} detections have scores of parts, which the format has no field for",
    "crowd_index": "{n} images have a crowd index, which the format has no field for",
}


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of files or folders.

    Attributes
    ----------
    name : str
        Name of the format.
    suffixes : tuple of str
        Suffixes of its files of detections, which ``detmap batch`` takes from a folder.
    sniff : callable
        ``sniff(given)`` returns whether a `Given` is of this format. Plug-ins are asked first, in reverse order of
        registration.
    is_certain : callable, or None
        ``is_certain(given)`` returns whether a source is of this format and of no other built-in format. For such a
        source, other formats are not loaded. Only the most common format has this function.
    read_ground_truth : callable, or None
        ``read_ground_truth(source, reading)`` returns a `GroundTruth`. The source is a path, or the bytes of a stream.
    read_detections : callable, or None
        ``read_detections(source, ground_truth, reading)`` returns `Detections`. The ground truth may be None.
    write_ground_truth, write_detections : callable, or None
        ``write(table, path, writing)`` writes a table. It returns a mapping from kinds of lost content (keys of `LOST`)
        to numbers of records, possibly 0.
    written : tuple of str
        Suffixes of the files that the format writes, the main suffix first. If empty, the format writes folders or has
        no suffix of its own, and is written only if the caller names it.
    unkept : callable, or None
        ``unkept(source)`` counts the content of ground truth that every conversion loses, because tables cannot hold it.
        It returns a mapping with codes of `LOST` as keys. If None, there is no such content.
    holds : tuple of str, or None
        The kinds of shape that the format can hold, as values of `iou_type`. If None, the readers themselves refuse
        kinds that the format cannot hold.
    protocol : str
        The protocol of the format's benchmark, for suggestions in messages; empty if there is none.
    leveled : bool
        Whether the format's objects have KITTI's levels of difficulty, which only KITTI's protocols use.
    federated : bool
        Whether the format has fields for what LVIS, Open Images, CrowdPose and COCO-WholeBody add: category lists of
        images, frequencies of categories, the crowd index, and flags and scores of parts.
    grouped : bool
        Whether the format has a flag for boxes around groups of objects.
    fields : tuple of str, or None
        The names of further fields of objects, see `GroundTruth.fields`, that the format can hold. If None, it can hold
        any field.
    words : tuple of str
        Description of the format's ground truth, and description of its detections, for help texts.
    members : str
        Suffix of the files in a folder of detections.
    inside : str
        Name of the subfolder to read instead if a folder of detections has it; empty if there is no such name.
    beside : callable, or None
        ``beside(source)`` returns the paths of further files that decide how detections are read.
    takes : tuple of str, or None
        The supported options of `Reading`. Options that concern every format are not listed. If None, the format
        supports all options, and ignores options that do not apply.
    needs_images : bool
        Whether reading its detections needs the ground truth: names and sizes of images, or ids of named categories.
    by_name : callable, or None
        ``by_name(given)`` returns whether detections seem to refer to images by file name, in a format that normally
        uses ids; such detections are read as if `needs_images` were true.
    tell : callable, or None
        ``tell(given)`` returns the role of a source that `sniff` recognises: ground truth, detections, or None if
        unclear.
    kinds_in : callable, or None
        ``kinds_in(source)`` counts the records with each kind of shape other than boxes. It returns a mapping from
        `iou_type` to a number of records; the key ``""`` has the number of all records. If `kinds_in` is None, all
        records have boxes, or shapes of the kind `iou_type`.
    inspect : callable, or None
        ``inspect(source)`` returns an `Inspection` of ground truth, for ``detmap check``. If None, there are no further
        facts.
    salvage : callable, or None
        ``salvage(source, role, kinds, ground_truth)`` reads the valid records of a source that strict reading refuses.
        `kinds` are the kinds of shape to read. It returns a table of these records, the index of each row in the file's
        list, and the refused records; or None if this is impossible.
    image_field : callable, or None
        ``image_field(source, name)`` returns a mapping from image ids to the values of a field of the images; None for
        an image without the field. If `image_field` is None, images have no fields.
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Callable[[Given], bool]
    is_certain: Callable[[Given], bool] | None = None
    read_ground_truth: Callable[[Any, Reading], GroundTruth] | None = None
    read_detections: Callable[[Any, GroundTruth | None, Reading], Detections] | None = None
    write_ground_truth: Callable[[GroundTruth, Path, Writing], Mapping[str, int]] | None = None
    write_detections: Callable[[Detections, Path, Writing], Mapping[str, int]] | None = None
    written: tuple[str, ...] = ()
    unkept: Callable[[Any], Mapping[str, int]] | None = None
    holds: tuple[str, ...] | None = (BOXES,)
    protocol: str = ""
    leveled: bool = False
    federated: bool = False
    grouped: bool = False
    fields: tuple[str, ...] | None = ()
    words: tuple[str, str] = ("", "")
    members: str = ""
    inside: str = ""
    beside: Callable[[Path], Sequence[str]] | None = None
    takes: tuple[str, ...] | None = None
    needs_images: bool = False
    by_name: Callable[[Given], bool] | None = None
    tell: Callable[[Given], Role | None] | None = None
    kinds_in: Callable[[Any], Mapping[str, int]] | None = None
    image_field: Callable[[Any, str], Mapping[Any, Any]] | None = None
    inspect: Callable[[Any], Inspection | None] | None = None
    salvage: Callable[[Any, Role, Sequence[str], GroundTruth | None], Salvaged | None] | None = None

    def concerns(self, option: str) -> bool:
        """Return whether an option of `Reading` concerns the format."""
        return self.takes is None or option in self.takes or not options_of()[option].some


#: Every format by name.
FORMATS = Registry(Format, "format")

#: Name of the format of documents that are already parsed, as by ``json.load``.
OF_DOCUMENTS = "coco"

#: The format that is assumed for an unrecognised file (False) or folder (True); its reader then raises the error.
_OTHERWISE = {False: "coco", True: "voc"}


def able(role: Role) -> list[Format]:
    """Return the formats that can be read for a role: built-in ones first, then plug-ins in order of registration."""
    found = [one for one in FORMATS.values() if getattr(one, f"read_{role}") is not None]
    return sorted(found, key=lambda one: not FORMATS.is_shipped(one.name))


@contextmanager
def asked(found: Format, source: object) -> Iterator[None]:
    """Turn unexpected exceptions of a plug-in into an `InputError`."""
    try:
        yield
    except (DetmapError, OSError, MemoryError):
        raise
    except Exception as error:
        if FORMATS.is_shipped(found.name):
            raise
        raise InputError(
            f"the format {found.name}, of a plug-in, fails with {type(error).__name__}: {shorten(str(error), 200)}",
            source=os.fspath(source) if isinstance(source, str | os.PathLike) else getattr(source, "name", None),
            remedy="where the file is of this format, the plug-in has to be mended",
        ) from error


def _fits(found: Format, given: Given, source: Path | Held) -> bool:
    with asked(found, source):
        return found.sniff(given)


def recognise(source: Path | Held, role: Role) -> Format | None:
    """Return the format of a source; None if unrecognised. Loaded plug-ins take precedence over built-in formats."""
    given = Given(source, role)

    def of_plug_ins() -> Format | None:
        others = [one for one in FORMATS.loaded() if not FORMATS.is_shipped(one.name)]
        able_ = (one for one in reversed(others) if getattr(one, f"read_{role}") is not None)
        return next((one for one in able_ if _fits(one, given, source)), None)

    found = of_plug_ins()
    if found is not None:
        return found
    usual = FORMATS[_OTHERWISE[False]]
    if usual.is_certain is not None and usual.is_certain(given):
        return usual
    own = [one for one in able(role) if FORMATS.is_shipped(one.name) and one.sniff(given)]
    surer = [one for one in own if one.name != OF_DOCUMENTS]
    # COCO's format accepts any JSON, even files that another format recognises for the other role.
    if len(surer) < len(own):
        other = Given(source, _OTHER[role])
        known = (one for one in able(_OTHER[role]) if FORMATS.is_shipped(one.name) and one.name != OF_DOCUMENTS)
        own = surer if surer or any(one.sniff(other) for one in known) else own
    if len(own) > 1:
        names = " or ".join(sorted(one.name for one in own))
        raise InputError(
            f"can be read as {names}",
            source=name_of(source, ""),
            remedy=f"say which: {_FLAG[role]}",
        )
    if own:
        return own[0]
    return of_plug_ins() if load_installed() else None


def find(source: Path | Held, role: Role, name: str | None = None) -> Format:
    """Return the format called `name`, or by default the format of the source. If none is recognised, COCO's
    format is assumed for a file, and VOC's for a folder or archive. Raises `OptionError` for an unknown name or a format
    without this role. Raises `InputError` if two formats fit, if the source is of the other role, or if its lines
    resemble no format.
    """
    if name is not None:
        return _named(name, f"read_{role}", partial(able, role))
    return recognise(source, role) or unknown(source, role)


def unknown(source: Path | Held, role: Role) -> Format:
    """Return the format that is assumed for an unrecognised source: COCO's for a file, VOC's for a folder or archive.
    Raises `InputError` if the source is of the other role, or if its lines resemble no format.
    """
    given = Given(source, role)
    name = name_of(source, "")
    _refuse_foreign(given, name)
    _refuse_other(given, source, name)
    _refuse_unlike(given, name)
    return FORMATS[_OTHERWISE[given.is_folder or given.is_archive]]


_OTHER: dict[Role, Role] = {"ground_truth": "detections", "detections": "ground_truth"}

_FLAG = {"ground_truth": "format=... (--gt-format)", "detections": "format=... (--dt-format)"}


def _refuse_foreign(given: Given, name: str) -> None:
    """Refuse images, archives and other files that hold no boxes."""
    from detmap.reading.unlike import described

    found = None if given.is_folder or given.is_archive else described(given.head, given.name, given.open)
    if found is not None:
        raise InputError(found[0], source=name, remedy=found[1])


def _refuse_other(given: Given, source: Path | Held, name: str) -> None:
    """Refuse an unrecognised source with a clearer message than that of a format's reader, if possible."""
    other = _OTHER[given.role]
    swapped = None
    with suppress(InputError):
        swapped = recognise(source, other)
    texts = [one for one in given.names if one.lower().endswith(".txt")]
    if swapped is not None and swapped.tell is not None and texts:
        with asked(swapped, source):
            if swapped.tell(given) == given.role:  # empty files fit either role
                swapped = None
    if swapped is not None:
        remedy = "are the arguments swapped? The ground truth comes first, and detections alone have scores"
        expected, seen = given.role.replace("_", " "), other.replace("_", " ")
        raise InputError(
            f"looks like {seen} (format {swapped.name}) where {expected} was expected", source=name, remedy=remedy
        )
    if (given.is_folder or given.is_archive) and texts and given.role == "detections":
        raise InputError(
            "holds text files whose lines, if any, are not known to be those of any format",
            source=name,
            remedy=f"say which it is: {_FLAG[given.role]}, whose reader says what is wrong with a line",
        )
    text = given.head.lstrip()
    if given.is_archive:  # the reader of archives says what is wrong
        return
    if text[:1] not in (b"{", b"[", b"<", b"") and not given.name.lower().endswith(_NAMES_OF_JSON):
        line = text.partition(b"\n")[0].strip()
        raise InputError(
            f"is text of no format that is known by its lines, the first of which is {shorten(line)}",
            source=name,
            remedy=f"files of text, one for an image, are given as their folder; else say which it is: {_FLAG[given.role]}",
        )


def _refuse_unlike(given: Given, name: str) -> None:
    """Refuse a folder or XML that fits no format; the message says what is there, and what could be read."""
    formats = ", ".join(one.name for one in able(given.role))
    remedy = f"say which format it is: {_FLAG[given.role]}, one of {formats}"
    if given.is_folder:
        counts: Counter[str] = Counter()
        for entry in given.names[:_MANY]:
            ending = os.path.splitext(entry)[1].lower()
            is_folder = os.path.isdir(os.path.join(given.path, entry))
            counts["folders" if is_folder else ending or "files without ending"] += 1
        if not counts and os.access(given.path, os.R_OK):
            raise InputError("is an empty folder", source=given.path, remedy="is it the right one?")
        if not counts or ".xml" in counts:  # VOC's reader says what is wrong
            return
        parts = [f"{count:,} {what}" for what, count in counts.most_common(3)]
        held = f"holds {', '.join(parts)}{', and others' if len(counts) > 3 else ''}, which no format is known by"
        raise InputError(held, source=given.path, remedy=_inside(given) or remedy)
    root = re.match(rb"\s*(?:<\?[^>]*>\s*)?(?:<!--.*?-->\s*)*<([\w:.-]+)", given.head, re.S)
    if root is not None and given.role == "ground_truth" and root[1] == b"annotation":
        raise InputError("is one file of VOC's XML", source=name, remedy="give the folder that holds all of them")
    if root is not None:
        raise InputError(f"is XML whose root is {root[1].decode()}", source=name, remedy=remedy)


def _inside(given: Given, iou_type: str | None = None) -> str:
    """Return a hint to read an entry of the folder instead, if an entry has a known format that can hold `iou_type`."""
    known: list[str] = []
    for name in given.names[:_LINES]:
        with suppress(InputError):
            found = recognise(os.path.join(given.path, name), given.role) if len(known) < _FEW else None
            if found is not None and (iou_type is None or (found.holds is not None and iou_type in found.holds)):
                known.append(f"{name} ({found.name})")
    return f"give the path of what is meant in it: {', '.join(known)}" if known else ""


def to_write(path: Path, role: Role, name: str | None = None) -> Format:
    """Return the format called `name`, or else the format of the path's suffix; raise `OptionError` if this format
    cannot write the role.
    """
    writers = [one for one in FORMATS.values() if getattr(one, f"write_{role}") is not None]
    if name is not None:
        return _named(name, f"write_{role}", lambda: writers)
    found = next((one for one in writers if os.fspath(path).endswith(one.written)), None)
    if found is None:
        endings = ", ".join(ending for one in writers for ending in one.written)
        names = ", ".join(one.name for one in writers)
        raise OptionError(
            f"the name {shorten(os.path.basename(os.fspath(path)))} does not say a format (of these endings: {endings}): "
            f"choose one of: {names}"
        )
    return found


def _named(name: str, attribute: str, able: Callable[[], Iterable[Format]]) -> Format:
    """Return the format called `name`; refuse a format without the function `attribute`, which all of `able` have."""
    found = FORMATS.find(name)
    if getattr(found, attribute) is None:
        verb, _, role = attribute.partition("_")
        verb = {"read": "read as", "write": "written as"}[verb]
        names = ", ".join(one.name for one in able())
        raise OptionError(f"{role.replace('_', ' ')} cannot be {verb} {name}; one of: {names}")
    return found


def describe_lost(lost: Mapping[str, int]) -> list[str]:
    """Return a sentence for each kind of lost content."""
    own = {code: f"{{n}} records, of which the format cannot hold: {code}" for code in lost if code not in LOST}
    return [text.format(n=f"{lost[code]:,}") for code, text in {**LOST, **own}.items() if lost.get(code)]


def check_kind(found: Format, iou_type: str, source: Path | Held, role: Role) -> None:
    """Refuse a format that cannot hold a kind of shape."""
    if found.holds is not None and iou_type not in found.holds:
        rules = f"its benchmark's rules: --protocol {found.protocol}; otherwise " if found.protocol else ""
        raise InputError(
            f"a file of the format {found.name} holds {', '.join(found.holds)}, not {iou_type}",
            source=name_of(source, role.replace("_", " ")),
            remedy=_inside(Given(source, role), iou_type)
            or f"{rules}choose a kind of shape that it holds (iou_type, --iou-type), or another format",
        )


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of files of detections."""
    return tuple(dict.fromkeys(suffix for one in able("detections") for suffix in one.suffixes))
