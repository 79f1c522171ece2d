"""The interface and registry of kinds of geometry, such as boxes and masks. A new kind is one file: a column class, and a
`Kind` passed to `detmap.register`. A kernel, if needed, is another file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import Frozen
from detmap.plugins import PluginName, Registry

if TYPE_CHECKING:
    from detmap.shapes.boxes import Boxes


class Column(Protocol):
    """The geometries of a table, such as boxes or masks, one per row; immutable. Derive the class from
    `detmap.kernels.Frozen`, so that arrays stay read-only after unpickling.
    """

    def __len__(self) -> int:
        """Return the number of rows."""

    def take(self, rows: NDArray[Any]) -> Column:
        """Return some of the rows, without checking them again; `rows` are indices or a boolean mask."""

    def bounds(self) -> Boxes:
        """Return an axis-aligned box around each geometry, which must contain the whole geometry."""

    def areas(self) -> NDArray[np.float64]:
        """Return the areas in square pixels, shape (n,)."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays of the column by name."""


class Pairs(NamedTuple):
    """Pairs of a detection and an object whose overlap is to be computed.

    Attributes
    ----------
    detections, ground_truth : ndarray of int64, shape (p,)
        Rows in the two columns; pairs of one detection follow each other.
    crowd : ndarray of bool, shape (p,)
        Whether the overlap is relative to the detection's own area, because the object is a crowd.
    lowest : float
        Overlaps below this value need not be exact: they may be replaced by any smaller number.
    """

    detections: NDArray[np.int64]
    ground_truth: NDArray[np.int64]
    crowd: NDArray[np.bool_]
    lowest: float


class Place(NamedTuple):
    """The source of records, for messages and for drawing on images.

    Attributes
    ----------
    source : str
        Name of the file or data.
    kind : str
        The word before a record's number in messages: "annotation ", or "".
    sizes : ndarray of int64, shape (n, 2), or None
        Height and width of each record's image, 0 if unknown; None if all are unknown.
    boxes : ndarray of float64, shape (n, 4), or None
        Box x, y, width, height of each record, NaN if missing; None if no record has a box.
    fields : mapping of str to ndarray or None
        Other requested fields of the records, by name; the value is None if a record lacks the field.
    """

    source: str
    kind: str
    sizes: NDArray[np.int64] | None
    boxes: NDArray[np.float64] | None
    fields: Mapping[str, NDArray[Any] | None]

    def record(self, row: int) -> int | str:
        """Return `row` preceded by `kind`, which is the name of the record in messages."""
        return f"{self.kind}{row}" if self.kind else row


class Reader(Protocol):
    """Reader of the geometries of COCO's records. `read` turns bytes into a part of the column, on several threads, and
    `column` combines the parts. A part may be an object of any type.
    """

    def __init__(self, size: int) -> None:
        """Prepare to read a document of `size` bytes."""

    def read(self, data: NDArray[np.uint8], base: int, spans: NDArray[np.int64]) -> Any:
        """Read JSON values. The content between the brackets or braces of a value has not been checked. Return a part,
        or None if a value is invalid.

        Parameters
        ----------
        data : ndarray of uint8, shape (k,)
            Bytes of the document, at least eight.
        base : int
            Position of `data` in the document.
        spans : ndarray of int64, shape (n, 2)
            Begin and end of each record's value in `data`; -1 if the record has no value.
        """

    def column(self, parts: Sequence[Any], place: Place) -> tuple[Column, dict[str, int]]:
        """Combine the parts in the order of the records; return the column, and counts of notices by code.

        Raises
        ------
        InputError
            If the geometry of a record cannot be scored.
        """


class Drawing(NamedTuple):
    """The lines and points that draw a geometry on its image. Coordinates have the unit of the geometry, such as pixels.

    Attributes
    ----------
    outlines : list of ndarray of float64, shape (n, 2)
        The corners of closed lines.
    points : ndarray of float64, shape (p, 2)
        x and y of each point.
    """

    outlines: list[NDArray[np.float64]]
    points: NDArray[np.float64]


class Points(NamedTuple):
    """The points of poses, or of other geometries made of points; p in total.

    Attributes
    ----------
    counts : ndarray of int64, shape (n,)
        Number of points of each pose; the points of a pose are consecutive.
    places : ndarray of float64, shape (p, 2)
        x and y of each point.
    flags : ndarray of float64, shape (p,)
        Visibility of each point; a point is labelled if the visibility is above 0.
    labelled : ndarray of int64, shape (n,)
        Number of labelled points according to each record.
    """

    counts: NDArray[np.int64]
    places: NDArray[np.float64]
    flags: NDArray[np.float64]
    labelled: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Surroundings(Frozen):
    """Position of the ego vehicle in each image, and the bicycle racks around the vehicle.

    Attributes
    ----------
    places : ndarray of float64, shape (i, 2)
        x and y of the ego vehicle in metres for each image, in ascending order of image ids; NaN if unknown.
    rack_images : ndarray of int64, shape (r,)
        The index of each rack's image.
    rack_centres, rack_sizes, rack_rotations : ndarray of float64, shapes (r, 3), (r, 3), (r, 4)
        Centres x, y, z and sizes (width, length, height) in metres, and rotations as quaternions w, x, y, z.
    """

    places: NDArray[np.float64]
    rack_images: NDArray[np.int64]
    rack_centres: NDArray[np.float64]
    rack_sizes: NDArray[np.float64]
    rack_rotations: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of geometry, such as boxes or masks, and its measure of overlap.

    Attributes
    ----------
    name : str
        The kind's name as an ``iou_type``, such as "bbox".
    column : type
        The class of the kind's columns, a `Column`.
    field : str
        The field of COCO's records that holds the geometry.
    propose : {"threshold", "touch", "all"}
        The pairs of a detection and an object, of one image and category, that are compared: pairs with an overlap of
        their boxes of at least the lowest threshold, pairs with touching boxes, or all pairs. With a threshold of 0 or
        less all pairs are proposed.
    covered : callable or None
        With ``propose="threshold"``: ``covered(column)`` returns the area of each geometry within its box, shape (n,),
        NaN if unreliable. The smaller area bounds the shared area of a pair. If `covered` is None, geometries are
        assumed to fill their boxes.
    refine : callable, or None
        ``refine(detections, ground_truth, pairs, out)`` writes the overlaps of `Pairs`, given by rows of the two
        columns, into the float64 array ``out``; an overlap is never NaN. The function is called in several threads at a
        time. If None, the overlap of two geometries is the overlap of their bounds.
    prepare : callable, or None
        ``prepare(detections, ground_truth, protocol)`` is called before `refine`, with two tables. It returns two
        objects, which `refine` gets in place of the two columns, and counts of notices by code. If None, `refine` gets
        the columns, and there are no notices.
    reach : callable, or None
        ``reach(detections, ground_truth, lowest)`` is called with the arguments of `refine`. It returns two `Boxes`,
        for detections and for objects. Pairs whose boxes do not touch are not proposed, so every such pair must overlap
        by less than `lowest`. If the function returns None, `propose` alone decides which pairs are proposed.
    ignored : callable, or None
        ``ignored(column)`` returns a boolean array (n,) of the objects that are ignored regardless of their flags, such
        as poses without a visible keypoint. If None, only flags decide which objects are ignored.
    absent : callable, or None
        ``absent(column)`` is called for `Protocol.without_shape`. It returns a boolean array (n,) of the objects
        without a geometry, and an array (n, 4) with the normalised corners of their boxes (None if the file has no
        normalised boxes). If `absent` is None, every object has a geometry.
    measure : callable, or None
        ``measure(column, order, pixel, begin, end)`` returns the areas of the detections ``order[begin:end]``, which are
        compared with area ranges. By default these are ``column.take(order[begin:end]).areas()``.
    areas : callable, or None
        ``areas(ground_truth, protocol)`` returns the areas of a table's objects, which are compared with area ranges. If
        it returns None, the areas in the table are used.
    stored : str
        The name of the column in tables, if two kinds share a column; the kind's own name by default.
    reader : type, or None
        The `Reader` of `field` in COCO's records. None for boxes, and for geometries that are not in COCO's records.
    sized : bool
        Whether `reader` needs the image size of each record.
    counts : tuple of str
        Integer fields that `reader` takes from `Place.fields`.
    lists : mapping of str to int
        For poses whose points are in several fields of COCO's records: number of points by field, in order, beginning
        with `field`. If no record has any of the other fields, `field` holds all points.
    scores : tuple of str
        Fields of COCO's results that hold scores of parts of a pose, for `Protocol.score_field`.
    flags : tuple of str
        Fields of COCO's annotations that say whether a part of a pose is valid, for `Protocol.valid_flag`.
    extended : callable, or None
        ``extended(columns)`` returns a column that combines the points of each row of several columns.
    part : callable, or None
        ``part(column, points, counted, source)`` returns the column restricted to a range of points (all if `points` is
        None); with `counted`, points with v above 0 are counted as labelled. If None, geometries have no parts.
    refused : mapping of str to str
        Codes of `detmap.checks.CODES` for records that `reader` refuses, by the problem that its error names; the key ""
        stands for any other problem.
    argument, given : str, callable or None
        The keyword argument of tables and the evaluator, such as "masks". ``given(value, source)`` makes a column from
        the argument's value.
    join : callable, or None
        Concatenates several columns.
    records : callable, or None
        ``records(column)`` returns the fields of a COCO record for the geometry of each row, in the form that `reader`
        reads.
    sample : callable, or None
        ``sample()`` returns the fields of COCO records of a few geometries on an image of height 6 and width 7, for
        ``detmap warm``. If None, nothing is compiled in advance for this kind.
    draw : callable, or None
        ``draw(column)`` returns a `Drawing` for each row of a short column. If None, the bounds are drawn.
    image_sizes : callable, or None
        For geometries made of pixels, such as masks: ``image_sizes(column)`` returns an array (n, 2) with the height
        and width of each mask's image. ``detmap check`` then compares masks with their boxes, areas and images. None
        for other kinds.
    points : callable, or None
        For geometries made of points: ``points(column)`` returns the `Points`, for ``detmap check``. The command then
        does not report detections whose boxes exceed the image. None for other kinds.
    falls : bool
        Whether the measure is a distance, which falls as a detection comes nearer to an object. Then `refine` writes the
        distance negated, and thresholds are maximum distances of a match. `propose` is then "all", and `reach` decides
        which pairs are near enough.
    errors : tuple of str
        The names of the error metrics of true positives, for `Protocol.error_threshold`.
    deviations : callable, or None
        ``deviations(detections, ground_truth, rows, others, half_turns)`` returns an array with a row per pair and a
        column per name in `errors`, NaN if unknown. Pair *i* is row ``rows[i]`` of the detections and row ``others[i]``
        of the objects; if ``half_turns[i]`` is true, front and back of the object are not distinguished.
    left_out : callable, or None
        ``left_out(column, images, classes, surroundings, protocol)`` returns a boolean array (n,) of the rows that the
        protocol does not score because of their surroundings, such as boxes too far from the ego vehicle. `images` and
        `classes`, shape (n,), are the index of each row's image and the name of its class; `surroundings` are the
        `Surroundings` of the images, or None.
    same_bits : bool
        Whether overlaps have the same bits on every machine. Cards hold hashes of arrays only in this case.
    decisions : mapping
        Decisions of named protocols with other values for this kind: area ranges, maximum numbers of detections.
    recalls : tuple of float
        IoU thresholds at which recall is a separate metric, such as AR50.
    scene : str
        The word for an image in titles and on pages: image, video, or sample (of a recording).
    unit : {"pixels", "metres", "seconds"}
        The unit of bounds and drawings. Metres are measured on the ground; seconds are measured along x.
    """

    name: str
    column: type[Any]
    field: str
    propose: Literal["threshold", "touch", "all"] = "touch"
    covered: Callable[[Any], NDArray[np.float64]] | None = None
    refine: Callable[[Any, Any, Pairs, NDArray[np.float64]], None] | None = None
    prepare: Callable[[Any, Any, Any], tuple[Any, Any, dict[str, int]]] | None = None
    reach: Callable[[Any, Any, float], tuple[Boxes, Boxes] | None] | None = None
    ignored: Callable[[Any], NDArray[np.bool_]] | None = None
    absent: Callable[[Any], tuple[NDArray[np.bool_], NDArray[np.float64] | None]] | None = None
    measure: Callable[[Any, NDArray[np.int32], float, int, int], NDArray[np.float64]] | None = None
    areas: Callable[[Any, Any], NDArray[np.float64] | None] | None = None
    stored: str = ""
    reader: type[Any] | None = None
    sized: bool = True
    counts: tuple[str, ...] = ()
    lists: Mapping[str, int] = _field(default_factory=dict)
    scores: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    extended: Callable[[Sequence[Any]], Any] | None = None
    part: Callable[[Any, tuple[int, int] | None, bool, str], Any] | None = None
    refused: Mapping[str, str] = _field(default_factory=lambda: {"": "bad_values"})
    argument: str = ""
    given: Callable[[Any, str], Any] | None = None
    join: Callable[[Sequence[Any]], Any] | None = None
    records: Callable[[Any], list[dict[str, Any]]] | None = None
    sample: Callable[[], Sequence[Mapping[str, Any]]] | None = None
    draw: Callable[[Any], list[Drawing]] | None = None
    image_sizes: Callable[[Any], NDArray[np.int64]] | None = None
    points: Callable[[Any], Points] | None = None
    falls: bool = False
    errors: tuple[str, ...] = ()
    deviations: Callable[..., NDArray[np.float64]] | None = None
    left_out: Callable[..., NDArray[np.bool_]] | None = None
    same_bits: bool = True
    decisions: Mapping[str, Any] = _field(default_factory=dict)
    recalls: tuple[float, ...] = ()
    scene: str = "image"
    unit: Literal["pixels", "metres", "seconds"] = "pixels"

    @property
    def a_scene(self) -> str:
        """`scene` with its article."""
        return f"{'an' if self.scene[:1] in 'aeiou' else 'a'} {self.scene}"

    def worded(self, sentence: str) -> str:
        """Return a sentence in which `scene` replaces the noun "image"."""
        if self.scene == "image":
            return sentence

        def noun(match: re.Match[str]) -> str:
            article, word = match.groups()
            said = self.a_scene if article else self.scene
            return said.capitalize() if (article or word)[0].isupper() else said

        return _IMAGE.sub(noun, sentence)

    def at(self, first: float, last: float | None = None) -> str:
        """Return a threshold, or the first and last of several, in words: "IoU 0.5 to 0.95", "centre-distance 2 m"."""
        said = f"{self.name if self.falls else 'IoU'} {first:g}" + ("" if last is None else f" to {last:g}")
        return f"{said} m" if self.falls and self.unit == "metres" else said

    @property
    def column_name(self) -> str:
        """The name of the column in tables."""
        return self.stored or self.name


#: Matches the noun "image", also in the plural and with the article "an", but not within a flag, a path or another
#: word.
_IMAGE = re.compile(r"(?<![\w/.-])(?:(an) )?(image)(?=s?(?![\w/-]|\.\w))", re.IGNORECASE)

#: Every kind by name.
KINDS = Registry(
    Kind,
    "iou_type",
    {"mask": "segm", "masks": "segm", "box": "bbox", "boxes": "bbox", "pose": "keypoints", "poses": "keypoints"},
)

#: Name of the kind of the boxes that every table has. It is the default of ``iou_type``.
BOXES: Final = "bbox"

#: Names of the other built-in kinds, for formats that hold such geometries.
MASKS, BOUNDARIES, PROBIOU = "segm", "boundary", "probiou"
KEYPOINTS: Final = "keypoints"
WHOLE_BODIES: Final = "keypoints_wholebody"
ROTATED: Final = "rotated"
BEV: Final = "bev"
BOX3D: Final = "box3d"
TEMPORAL: Final = "temporal"
TEMPORAL_SPAN: Final = "temporal_span"
TRACKS: Final = "tracks"
DISTANCE: Final = "centre-distance"

#: Names of kinds, so that type checkers find typos.
IouType = (
    Literal[
        "bbox",
        "segm",
        "keypoints",
        "boundary",
        "rotated",
        "probiou",
        "keypoints_wholebody",
        "bev",
        "box3d",
        "temporal",
        "temporal_span",
        "tracks",
        "centre-distance",
    ]
    | PluginName
)

#: The field of COCO's records that holds the box x, y, width, height.
BOX_FIELD = "bbox"

#: Fields of built-in kinds in COCO's records. Listed here so that files can be searched for these fields before a kind
#: is imported.
SHIPPED_FIELDS = {MASKS: "segmentation", KEYPOINTS: "keypoints"}

#: More fields of COCO's records with points, by built-in kind; see `Kind.lists`.
SHIPPED_LISTS = {WHOLE_BODIES: ("foot_kpts", "face_kpts", "lefthand_kpts", "righthand_kpts")}

#: Integer fields of COCO's records that readers of built-in kinds need; see `Kind.counts`.
SHIPPED_COUNTS = ("num_keypoints",)


def fields() -> dict[str, str]:
    """Return the kinds other than boxes that COCO's records may hold, by the name of the field."""
    named = {k: SHIPPED_FIELDS.get(k, "") if KINDS.is_shipped(k) else _field_of(KINDS[k]) for k in KINDS}
    return {name: kind for kind, name in named.items() if name}


def _field_of(kind: Kind) -> str:
    return kind.field if kind.reader is not None and not kind.stored else ""


def find(name: str) -> Kind:
    """Return the kind called `name`.

    Raises
    ------
    OptionError
        If the name is unknown; the message lists the known names.
    """
    return KINDS.find(name)
