"""Reading options. Each option is declared once, as a field of `Reading` with metadata.

The declarations determine the checks of values, the command-line flags and the documentation. They also determine which
formats take an option, and which options are recorded with a result. A new option is one field here, and the line that
uses it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import Parameter, cleandoc, signature
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar

from detmap.data.tables import MissingClasses
from detmap.decisions import YES_OR_NO, Declared, Flag, declared_of, default_of, documented, entry, settle
from detmap.errors import check_choice
from detmap.reading import sources
from detmap.shapes.boxes import BOX_FORMATS, INVALID_BOXES, InvalidBoxes
from detmap.shapes.kinds import BOXES

Path = str | os.PathLike[str]
F = TypeVar("F", bound=Callable[..., Any])

#: The role of an input.
Role = Literal["ground_truth", "detections"]
ROLES: tuple[Role, Role] = ("ground_truth", "detections")

#: What to do with detections on images that the ground truth lacks.
UnknownImages = Literal["error", "ignore"]


@dataclass(frozen=True, kw_only=True)
class Option(Declared):
    """A reading option."""

    #: The roles of inputs that the option can concern.
    concerns: tuple[Role, ...] = ROLES
    #: The roles of inputs for which the command-line flag sets the option; other roles have no flag.
    flag_roles: tuple[Role, ...] = ROLES
    #: The flag for ground truth, if each role has a flag of its own; `flag` is then the flag for detections.
    truth_flag: Flag | None = None
    #: What the option does, as a phrase for help, if only some formats have the option; else empty.
    some: str = ""
    #: Whether the option's value can be the path of a file, which is then an input too.
    is_path: bool = False
    #: Group in help: "images", "subsets", "formats", "records" or "clusters"; empty if the option has no flag.
    group: str = ""

    def flag_of(self, role: Role) -> Flag | None:
        """Return the flag for inputs of a role; None if there is none."""
        if role not in self.concerns or role not in self.flag_roles:
            return None
        return self.truth_flag if self.truth_flag is not None and role == "ground_truth" else self.flag


def option(default: Any, says: str, group: str = "", flag: Flag | None = None, **more: Any) -> Any:
    """Return a field for a reading option; `more` are further attributes of `Option`."""
    return field(default=default, metadata={"declared": Option(says=says, group=group, flag=flag, **more)})


def _flag(name: str, metavar: str, help: str) -> Flag:
    return Flag(name=name, metavar=metavar, help=help)


_TRUTH: tuple[Role, ...] = ("ground_truth",)
_FOUND: tuple[Role, ...] = ("detections",)
_NAMED = "its name; by default content and name of the file say it"
_COLUMNS = "as image=NAME,score=NAME,… or, without a header, in order: image,category,score,x1,y1,x2,y2 (- is not read)"


@documented
@dataclass(frozen=True, kw_only=True)
class Reading:
    """Reading options; a format ignores options that do not concern it.

    Raises
    ------
    OptionError
        For an invalid value.
    """

    format: str | None = option(
        None,
        "The name of the format, one of `detmap.formats.FORMATS`; by default content and name of the file say it.",
        "formats",
        flag=_flag("--dt-format", "FORMAT", "of the detections, likewise"),
        truth_flag=_flag("--gt-format", "FORMAT", f"of the ground truth: {_NAMED}"),
    )
    iou_type: str = option(BOXES, 'Which shapes to read, with the boxes: "bbox", "segm", "keypoints", …')
    image_set: Path | None = option(
        None,
        "With ground truth in VOC's XML, KITTI's or nuScenes': a file that lists the images to read. With YOLO's "
        "``data.yaml``: the split. With ActivityNet's JSON: the subset.",
        "images",
        concerns=_TRUTH,
        some="lists images of VOC's XML, KITTI's or nuScenes', or is a split of data.yaml, or a subset of ActivityNet's",
        is_path=True,
        flag=_flag(
            "--image-set",
            "FILE",
            "with VOC's XML, KITTI's or nuScenes': the images to score, one id per line; with YOLO's data.yaml: the split; "
            "with ActivityNet's JSON: the subset",
        ),
    )
    image_facts: bool = option(
        False,
        "Whether to read the names and sizes of the images of ground truth too, where the format has them. Scoring boxes "
        "in pixels does not need them.",
        concerns=_TRUTH,
        allowed=YES_OR_NO,
    )
    fields: Sequence[str] = option(
        (),
        "With ground truth: further fields of its annotations, or columns, to read, for use in levels of difficulty. "
        "`detmap.evaluate` reads the fields of its levels without being asked.",
        concerns=_TRUTH,
        plain=lambda names: (names,) if isinstance(names, str) else tuple(map(str, names)),
        some="reads fields of COCO's annotations and columns of tables (CSV, Parquet, Feather)",
    )
    classes: Path | Sequence[str] | None = option(
        None,
        "Names of classes, for formats that hold class numbers: a list, a file with one name per line, or ``data.yaml``.",
        "formats",
        some="names the classes of YOLO's files",
        is_path=True,
        flag=_flag(
            "--classes",
            "FILE",
            "names of classes, for files that hold class numbers, as YOLO's do: data.yaml, or a file with one name per "
            "line",
        ),
    )
    class_map: Path | Mapping[Any, Any] | None = option(
        None,
        'Maps classes, by name or id, to new classes. Several may map to one, "" leaves a class out, and classes that '
        "are not listed stay as they are. A file has lines ``from,to``, or is a JSON object. If detections are read with "
        "ground truth, their new classes are those of the ground truth, by name or id.",
        "formats",
        flag_roles=_FOUND,
        is_path=True,
        flag=_flag(
            "--class-map",
            "FILE",
            "a file of lines from,to that maps classes, by name or id: those of detections to those of the ground truth; "
            "nothing after the comma leaves a class out",
        ),
    )
    columns: str | Sequence[str | None] | Mapping[str, str] | None = option(
        None,
        "With CSV: the column of each field (`detmap.formats.delimited.read.COLUMNS`), as a mapping or as "
        '"image=file,score=p"; fields that are not listed are found by their usual names. For a file without a header: '
        'the field of each column in order, None or "-" for a column that is not read, as a sequence or as '
        '"image,category,score,x1,y1,x2,y2".',
        "formats",
        some="names the columns of a table (CSV, Parquet, Feather)",
        flag=_flag("--columns", "LIST", f"with CSV: what the columns are, {_COLUMNS}"),
        truth_flag=_flag("--gt-columns", "LIST", "of the ground truth, as --columns"),
    )
    box_format: Literal["xywh", "xyxy", "cxcywh"] | None = option(
        None,
        "How boxes are written, for formats that leave it open: near corner and size, two corners, or (tables) centre "
        "and size. By default the names of columns decide and, for text files, the numbers, which a notice says.",
        "formats",
        allowed=(None, *BOX_FORMATS),
        some="says how boxes are written in text files and tables (Parquet, Feather)",
        flag=_flag("--box-format", "", "with lines of text, and tables: how boxes are written"),
        truth_flag=_flag("--gt-box-format", "", "of the ground truth, as --box-format"),
    )
    image_sizes: Path | Mapping[str, Any] | None = option(
        None,
        "Sizes of images, for formats in which boxes are shares of the image: a table of lines ``name,width,height``, "
        'one size for all as "640x480" (width first), or a mapping of name to (height, width).',
        "formats",
        is_path=True,
        flag=_flag(
            "--image-sizes",
            "FILE",
            "sizes of images, where boxes are shares of the image: lines of name,width,height, or 640x480 for all",
        ),
    )
    image_labels: Path | None = option(
        None,
        "With ground truth: verified labels of its images, Open Images' CSV with the columns ``ImageID``, ``LabelName`` and "
        "``Confidence``, 1 where a label is there and 0 where it is not. Its images and labels are added.",
        "images",
        concerns=_TRUTH,
        is_path=True,
        flag=_flag(
            "--image-labels",
            "FILE",
            "verified labels of images, Open Images' CSV: ImageID, LabelName, Confidence (1: there, 0: not there)",
        ),
    )
    hierarchy: Path | None = option(
        None,
        "A hierarchy of labels, Open Images' JSON: each box is repeated for all ancestors of its label. In ground truth, "
        "verified labels that are present are repeated for all ancestors, and those that are absent for all descendants.",
        "formats",
        is_path=True,
        flag=_flag(
            "--hierarchy", "FILE", "of the detections: repeat each for all ancestors of its label, by Open Images' JSON"
        ),
        truth_flag=_flag(
            "--gt-hierarchy",
            "FILE",
            "of the ground truth: repeat each box and verified label for all ancestors of its label, by Open Images' "
            "JSON",
        ),
    )
    images: Path | Sequence[Any] | None = option(
        None,
        "With ground truth: the images to score, by ids or file names: a sequence, a file with one per line, or text "
        "with commas between. Detections on other images are left out.",
        "subsets",
        concerns=_TRUTH,
        is_path=True,
        flag=_flag(
            "--images",
            "LIST|FILE",
            "score only these images: ids or file names with commas between, or a file with one per line",
        ),
    )
    categories: Path | Sequence[Any] | None = option(
        None,
        "With ground truth: the categories to score, by ids or names: a sequence, a file with one per line, or text with "
        "commas between.",
        "subsets",
        concerns=_TRUTH,
        is_path=True,
        flag=_flag(
            "--categories",
            "LIST|FILE",
            "score only these categories: ids or names with commas between, or a file with one per line",
        ),
    )
    clusters: Path | Mapping[Any, Any] | None = option(
        None,
        "With ground truth: the cluster of each image, where images depend on each other, as the frames of a video do: a "
        "CSV file with the columns ``image`` (an id or file name) and ``cluster``; the name of a field of the images, "
        'such as "video_id"; or a mapping of image id to cluster. Bootstrap draws and permutations then keep clusters '
        "together.",
        "clusters",
        concerns=_TRUTH,
        is_path=True,
        flag=_flag(
            "--clusters",
            "FILE|FIELD",
            "clusters of images that depend on each other, as frames of a video: a CSV file with the columns image and "
            "cluster, or a field of the images in the ground truth, as video_id; draws and permutations keep clusters "
            "together",
        ),
    )
    unknown_images: UnknownImages = option(
        "error",
        "How detections on images that are not in the ground truth are treated: an error, or dropped and counted "
        "(``ignore``).",
        "records",
        concerns=_FOUND,
        allowed=("error", "ignore"),
        flag=_flag(
            "--unknown-images",
            "",
            "detections on images that are not in the ground truth: refuse (default), or drop and count",
        ),
    )
    invalid_boxes: InvalidBoxes = option(
        "error",
        "How boxes of negative width or height are treated; see `GroundTruth.from_arrays`.",
        "records",
        allowed=INVALID_BOXES,
        flag=_flag(
            "--invalid-boxes",
            "",
            "boxes of negative width or height: refuse (default), keep as boxes that overlap nothing, or drop; counted",
        ),
    )
    missing_classes: MissingClasses = option(
        "zero",
        "How classes without a file among VOC's results are treated: their AP is 0, they are an error, or they are left "
        "out; a notice names them.",
        "records",
        concerns=_FOUND,
        some="is about VOC's and DOTA's files of results, one for each class",
        allowed=("zero", "error", "skip"),
        flag=_flag(
            "--missing-classes",
            "",
            "classes without a file among VOC's results: AP 0 (default), refuse, or leave out; a notice names them",
        ),
    )

    def __post_init__(self) -> None:
        settle(self)

    def given(self) -> dict[str, Any]:
        """Return by name the options that differ from their defaults."""
        pairs = ((one, getattr(self, one.name)) for one in fields(self))
        return {one.name: value for one, value in pairs if value is not default_of(one) and value != default_of(one)}

    def recorded(self) -> list[str]:
        """Return the options that differ from their defaults as ``name=value``. The value of a file is its hash, so that
        changes are detected.
        """
        out = []
        for name, value in sorted(self.given().items()):
            is_file = isinstance(value, str | os.PathLike) and os.path.isfile(value)
            out.append(f"{name}={sources.fingerprint(value, '') if is_file else repr(value)}")
        return out


class FormatOptions(TypedDict, total=False):
    """The fields of `Reading` that describe the layout of files, as keywords, for type checkers."""

    format: str | None
    image_set: Path | None
    classes: Path | Sequence[str] | None
    class_map: Path | Mapping[Any, Any] | None
    columns: str | Sequence[str | None] | Mapping[str, str] | None
    box_format: Literal["xywh", "xyxy", "cxcywh"] | None
    image_sizes: Path | Mapping[str, Any] | None
    image_labels: Path | None
    hierarchy: Path | None


class Options(FormatOptions, total=False):
    """All fields of `Reading` as keywords, for type checkers."""

    iou_type: str
    image_facts: bool
    fields: Sequence[str]
    images: Path | Sequence[Any] | None
    categories: Path | Sequence[Any] | None
    clusters: Path | Mapping[Any, Any] | None
    unknown_images: UnknownImages
    invalid_boxes: InvalidBoxes
    missing_classes: MissingClasses


class SidesOptions(TypedDict, total=False):
    """Options for the layout of ground truth and detections, named as on the command line, for type checkers."""

    gt_format: str | None
    dt_format: str | None
    image_set: Path | None
    classes: Path | Sequence[str] | None
    class_map: Path | Mapping[Any, Any] | None
    gt_columns: str | Sequence[str | None] | Mapping[str, str] | None
    columns: str | Sequence[str | None] | Mapping[str, str] | None
    gt_box_format: Literal["xywh", "xyxy", "cxcywh"] | None
    box_format: Literal["xywh", "xyxy", "cxcywh"] | None
    image_sizes: Path | Mapping[str, Any] | None
    image_labels: Path | None
    gt_hierarchy: Path | None
    hierarchy: Path | None


class Flagged(NamedTuple):
    """A command-line flag: the option that it sets, and the roles of inputs for which it sets the option."""

    name: str
    option: Option
    flag: Flag
    roles: tuple[Role, ...]


def options_of() -> Mapping[str, Option]:
    """Return the reading options by name, in order of the fields."""
    return declared_of(Reading)


def flags(group: str | None = None) -> dict[str, Flagged]:
    """Return the flags of one group of options, or of all groups, by the flags' names on the command line."""
    found = {}
    for name, made in options_of().items():
        if group is not None and made.group != group:
            continue
        if made.truth_flag is not None and made.flag is not None:
            found[_dest(made.truth_flag)] = Flagged(name, made, made.truth_flag, ("ground_truth",))
            found[_dest(made.flag)] = Flagged(name, made, made.flag, ("detections",))
        elif made.flag is not None:
            roles = tuple(role for role in made.concerns if role in made.flag_roles)
            found[_dest(made.flag)] = Flagged(name, made, made.flag, roles)
    return found


def _dest(flag: Flag) -> str:
    return flag.name.lstrip("-").replace("-", "_")


def check_names(given: Iterable[str], known: Iterable[str], caller: str) -> None:
    """Raise `OptionError` for a keyword that is not an option of the function `caller`."""
    names = list(known)
    for name in given:
        check_choice(f"option of {caller}", name, names)


def of_role(given: Mapping[str, Any], role: Role, **more: Any) -> Reading:
    """Return the options for inputs of a role. In `given`, options of both roles are named as on the command line."""
    made = {one.name: given[dest] for dest, one in flags().items() if role in one.roles and given.get(dest) is not None}
    return Reading(**{**made, **more})


def made_of(given: Mapping[str, Any], caller: str, **more: Any) -> Reading:
    """Return the options of a call; raise `OptionError` for an unknown option or invalid value."""
    check_names(given, options_of(), caller)
    return Reading(**{name: value for name, value in {**given, **more}.items() if value is not None})


def takes_options(*names: str, **defaults: Any) -> Callable[[F], F]:
    """Decorate a function that takes ``**options``: put the options into its signature and docstring. `names` are
    options, by default all fields of `Reading`. The options may also be named as on the command line, such as
    ``gt_format``. `defaults` are defaults of the function that differ from those of `Reading`.
    """

    def give(function: F) -> F:
        plain = {one.name: one for one in fields(Reading)}
        shown, entries = signature(function), list(_entries(names or tuple(plain)))
        found = flags()
        own = [one for one in shown.parameters.values() if one.kind is not one.VAR_KEYWORD]
        for name in names or plain:
            of = plain[name if name in plain else found[name].name]
            default = defaults.get(name, default_of(of))
            own.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=of.type))
        function.__signature__ = shown.replace(parameters=own)  # type: ignore[attr-defined]
        if function.__doc__ is not None:
            # Python 3.13 and later remove the indentation themselves.
            before, mark, after = cleandoc(function.__doc__).partition("**options")
            assert mark, function
            function.__doc__ = before + "\n".join(entries) + after
        return function

    return give


def _entries(names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a docstring's "Parameters". Names of the same option, such as ``gt_format``, share an entry."""
    plain, found = {one.name: one for one in fields(Reading)}, flags()
    together: dict[str, list[str]] = {}
    for name in names:
        together.setdefault(name if name in plain and name not in found else found[name].name, []).append(name)
    for field_name, called in together.items():
        yield from entry(plain[field_name], ", ".join(called))
