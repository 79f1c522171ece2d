"""`Input`: ground truth or detections with reading options; the format is recognised once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np

from detmap.data.benchmarks import LEVELS
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError, shorten
from detmap.formats import registry
from detmap.formats.class_maps import class_map_of, mapped_detections, mapped_ground_truth, without_classes
from detmap.formats.file_names import stem
from detmap.formats.image_clusters import is_file, suggested, with_clusters
from detmap.formats.image_sizes import Sizes
from detmap.formats.registry import Format, Inspection, Salvaged
from detmap.kernels import readonly
from detmap.reading import sources
from detmap.reading.opening import STANDARD_INPUT, Held
from detmap.reading.options import Path, Reading, Role, options_of
from detmap.shapes import find
from detmap.shapes.kinds import BOXES
from detmap.shapes.left_strings import left_in_files
from detmap.system import collector

if TYPE_CHECKING:
    from typing import TypeGuard

# The built-in formats by module, the best known first. A module is imported when one of its formats is needed.
for _module, _names in {
    "coco.read": ("coco",),
    "voc.read": ("voc",),
    "yolo.read": ("yolo",),
    "delimited.read": ("csv",),
    "text_lines": ("text",),
    "arrow": ("parquet", "feather"),
    "dota": ("dota",),
    "open_images": ("openimages",),
    "nuscenes": ("nuscenes",),
    "kitti": ("kitti",),
    "activitynet": ("activitynet",),
    "thumos": ("thumos14",),
    "ytvis": ("ytvis",),
    "tools.recognition": (
        "bdd100k",
        "kitti_tracking",
        "mot",
        "wider_face",
        "darknet",
        "kaggle",
        "labelme",
        "cvat",
        "via",
        "createml",
    ),
}.items():
    for _name in _names:
        registry.FORMATS.add_later(_name, f"detmap.formats.{_module}")

T = TypeVar("T")

#: A path, the content of a file or stream, or COCO's document as returned by ``json.load``.
Source = Path | bytes | Mapping[str, Any] | Sequence[Mapping[str, Any]]

#: The default reading options.
_PLAIN = Reading()


class Input:
    """Ground truth or detections to read, with reading options. The source is a path, a stream (``-`` is standard
    input), the content of a file or stream, or COCO's document as ``json.load`` returns it. By default the content
    decides the role. Files are opened lazily. The format is recognised once, and a stream is read once.
    """

    def __init__(self, path: Source, role: Role | None = None, reading: Reading = _PLAIN) -> None:
        if role is not None:
            check_role(role)
        if isinstance(path, bytes) and not isinstance(path, Held):
            path = Held.of(path, (role or "input").replace("_", " "))
        self.path: Any = path
        self.reading, self._role = reading, role
        # Cached facts, shared with the inputs that `read_as` returns: "source", "role" and "recognised".
        self._once: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs to read the same file; the content of a stream is left out."""
        form = self._once.get("recognised")
        name = form.name if form is not None and _is_path(self.path) and os.path.exists(self.path) else None
        return {"path": self.path, "reading": self.reading, "_role": self._role, "named": name}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.path, self.reading, self._role = state["path"], state["reading"], state["_role"]
        self._once = {"named": state["named"]}

    def __repr__(self) -> str:
        return f"<Input: {self.name}>"

    def read_as(self, reading: Reading) -> Input:
        """Return the same input with other reading options, sharing its cached facts."""
        made = Input(self.path, self._role, reading)
        if reading.format in (None, self.reading.format):
            made._once = self._once
        return made

    def from_anywhere(self) -> Input:
        """Return the same input with an absolute path, which is valid in any working directory."""
        if not _is_path(self.path) or self.path == STANDARD_INPUT:
            return self
        made = Input(os.path.abspath(self.path), self._role, self.reading)
        made._once = {name: value for name, value in self._once.items() if name != "source"}
        return made

    def _found(self, what: str, find_out: Callable[[], T]) -> T:
        """Return a cached fact, computing it on first use."""
        if what not in self._once:
            self._once[what] = find_out()
        found: T = self._once[what]
        return found

    @property
    def source(self) -> Any:
        """The path, the content if it can be read only once, or the document."""
        if isinstance(self.path, Held):
            return self._found("source", lambda: sources.unpacked(self.path))
        return self._found("source", lambda: sources.held(self.path) if _is_path(self.path) else self.path)

    def release(self) -> None:
        """Free the content of a stream, which is not read again."""
        self._once.pop("source", None)

    @property
    def role(self) -> Role:
        """The role; raises `OptionError` if the role is neither given nor clear from the content."""
        if self._role is not None:
            return self._role
        return self._found("role", lambda: _role_of(self.source, self.reading.format))

    @property
    def name(self) -> str:
        """Name for messages."""
        if self.path == STANDARD_INPUT:
            return "standard input"
        return sources.name_of(self.path, (self._role or "input").replace("_", " "))

    @property
    def _recognised(self) -> Format | None:
        if not isinstance(self.source, Held) and not _is_path(self.source):
            return registry.FORMATS[registry.OF_DOCUMENTS]
        named = self.reading.format
        if named is not None:
            return registry.find(self.source, self.role, named)
        before = self._once.get("named")
        if before is not None:
            return self._found("recognised", lambda: registry.FORMATS.find(before))
        return self._found("recognised", lambda: registry.recognise(self.source, self.role))

    @property
    def known(self) -> Format | None:
        """The format; None if the format is not recognised. An unread stream has a format only if the caller gives one."""
        if self.reading.format is None and "source" not in self._once and is_stream(self.path):
            return None
        return self._recognised

    @property
    def format(self) -> Format:
        """The recognised format. If none is recognised, COCO's format is assumed for a file, and VOC's for a folder or
        archive. Raises `OptionError` for an unknown format or a format without this role. Raises `InputError` if two
        formats fit, if the file is of the other role, or if its lines resemble no format.
        """
        return self._recognised or registry.unknown(self.source, self.role)

    @property
    def needs_images(self) -> bool:
        """Whether reading needs the names and sizes of images in the ground truth. True for unread streams."""
        if self.reading.format is None and is_stream(self.path):
            return True
        form = self.known
        if form is None or form.needs_images or form.by_name is None:
            return form is not None and form.needs_images
        return form.by_name(registry.Given(self.source, self.role))

    def check_taken(self) -> None:
        """Raise an error for a given option that does not concern the format, or does not concern the role."""
        for name in self.reading.given():
            if not self.format.concerns(name):
                raise not_taken(f"{name} (--{name.replace('_', '-')})", name, [self.format])
            check_concerns({name: options_of()[name].concerns}, [self])

    def _settled(self) -> Reading:
        """Return the options that concern the format; raise an error for a kind of shape that the format cannot hold.

        Other options are dropped, because they may be meant for another input that is read together with this one.
        Options that concern only ground truth raise an error instead, because no other input can be meant.
        """
        form, reading = self.format, self.reading
        registry.check_kind(form, reading.iou_type, self.source, self.role)
        apart = [name for name in reading.given() if not form.concerns(name)]
        for name in apart:
            if options_of()[name].concerns == ("ground_truth",):
                raise not_taken(f"{name} (--{name.replace('_', '-')})", name, [form])
        return replace(reading, **{name: getattr(_PLAIN, name) for name in apart}) if apart else reading

    def ground_truth(self, found: Iterable[Input] = (), *, image_facts: bool = False) -> GroundTruth:
        """Read ground truth. Names and sizes of images are also read if `image_facts` is true, or if they are needed to
        read the detections `found`.
        """
        form, reading = self.format, self._settled()
        clusters = reading.clusters
        by_name = clusters is not None and not isinstance(clusters, Mapping) and is_file(clusters)
        image_facts = image_facts or reading.images is not None  # images may be selected by file name
        if not reading.image_facts and (image_facts or by_name or any(one.needs_images for one in found)):
            reading = replace(reading, image_facts=True)
        mapping = None if reading.class_map is None else class_map_of(reading.class_map)
        assert form.read_ground_truth is not None
        with collector.paused(), registry.asked(form, self.source):
            table = _read_for(form.read_ground_truth(self.source, reading), reading.iou_type)
        if form.leveled and reading.iou_type == BOXES and not reading.fields:  # KITTI's protocols set `fields`
            table = replace(table, notices={**table.notices, LEVELS: 1})
        table = table if mapping is None else mapped_ground_truth(table, mapping)
        table = _with_labels(table, reading)
        table = table if clusters is None else with_clusters(table, clusters, self.field_of_images)
        table = table if reading.image_sizes is None else _with_sizes(table, reading.image_sizes)
        return _subset(table, reading)

    def detections(self, ground_truth: GroundTruth | None = None, *, once: bool = False) -> Detections:
        """Read detections on the images of ground truth. If `once` is true, parts of the file may be read later, when
        the detections are scored. Until then the file must not change.
        """
        if ground_truth is not None and ground_truth.whole is not None:
            from detmap.data.subsets import within

            return within(self.detections(ground_truth.whole, once=once), ground_truth)
        if self.reading.clusters is not None:
            raise OptionError("clusters are of the images of ground truth, not of detections")
        form, reading = self.format, self._settled()
        mapping = None if reading.class_map is None else class_map_of(reading.class_map)
        among = ground_truth if ground_truth is None or mapping is None else without_classes(ground_truth)
        assert form.read_detections is not None
        with collector.paused(), registry.asked(form, self.source), left_in_files(once):
            own = _read_for(form.read_detections(self.source, among, reading), reading.iou_type)
        own = own if mapping is None else mapped_detections(own, mapping, ground_truth)
        return own if reading.hierarchy is None else _expanded(own, reading.hierarchy)

    def table(self, ground_truth: GroundTruth | None = None) -> GroundTruth | Detections:
        """Read ground truth or detections, depending on the role."""
        return self.ground_truth() if self.role == "ground_truth" else self.detections(ground_truth)

    def beside(self) -> Sequence[str]:
        """Return the paths of further files that decide how detections are read, such as YOLO's ``data.yaml``. The
        result is empty if no format is recognised.
        """
        if isinstance(self.source, Held):
            return ()
        try:
            form = self.format
        except InputError:
            return ()
        return () if form.beside is None else form.beside(self.source)

    def _members(self) -> tuple[Path | Held, str]:
        """Return the folder and the suffix of the files to read. For a source that is not a folder, return the source
        and an empty suffix.
        """
        if isinstance(self.source, Held) or not os.path.isdir(self.source):
            return self.source, ""
        inside = os.path.join(self.source, self.format.inside)
        return (inside if self.format.inside and os.path.isdir(inside) else self.source), self.format.members

    def fingerprint(self) -> str:
        """Return the hash of a file, or of the names and contents of a folder's files, including the files of `beside`."""
        own = sources.fingerprint(*self._members())
        more = [sources.fingerprint(one, "") for one in self.beside()]
        if not more:
            return own
        import hashlib

        return hashlib.sha256("\n".join([own, *more]).encode()).hexdigest()

    def _stamps(self) -> list[sources.Stamp] | None:
        """Return sizes and times of the files, by which changes are detected; None for a stream."""
        source, ending = self._members()
        if isinstance(source, Held):
            return None
        return [sources.stamp(source, ending), *(sources.stamp(one, "") for one in self.beside())]

    @contextmanager
    def unchanged(self) -> Iterator[list[sources.Stamp] | None]:
        """Raise `InputError`, in place of any other `InputError`, if a file changes within this context. Yields the sizes
        and times of the files.
        """

        with sources.unchanged(self._stamps, str(self.path)) as stamps:
            yield stamps

    def kinds(self) -> dict[str, int] | None:
        """Return the number of records with each kind of shape; None if the format does not count them."""
        form = self.format
        return None if form.kinds_in is None else dict(form.kinds_in(self.source))

    def facts(self) -> Inspection | None:
        """Return facts about ground truth for ``detmap check``; None if the format does not support this."""
        return None if self.format.inspect is None else self.format.inspect(self.source)

    def salvage(self, kinds: Sequence[str], ground_truth: GroundTruth | None = None) -> Salvaged | None:
        """Read a source that strict reading refuses, see `Format.salvage`; None if the format cannot do this."""
        form = self.format
        return None if form.salvage is None else form.salvage(self.source, self.role, kinds, ground_truth)

    def field_of_images(self, name: str) -> Mapping[Any, Any] | None:
        """Return the values of a field of the images by image id; None if the format has no such fields."""
        form = self.format
        return None if form.image_field is None else form.image_field(self.source, name)

    def suggested_clusters(self, table: GroundTruth) -> dict[str, int]:
        """Return notices if the images of `table`, read from this input, look like frames of videos."""
        again = isinstance(self.source, Held) or os.path.isfile(self.source)
        return suggested(table, self.field_of_images if again and self.known is not None else lambda name: None)


def not_taken(option: str, name: str, formats: Iterable[Format]) -> OptionError:
    """Return the error about an option that concerns none of the formats."""
    names = " and ".join(dict.fromkeys(one.name for one in formats))
    return OptionError(f"{option} {options_of()[name].some}: it does not go with the format {names}")


def check_taken(inputs: Sequence[Input]) -> None:
    """Raise an error for an option that concerns none of the inputs for which it is given. An option is accepted
    if one of these inputs is an unread stream, whose format is unknown.
    """
    for name, made in options_of().items():
        groups: dict[str, list[Input]] = {}
        for one in inputs:
            flag = made.flag_of(one.role)
            if made.some and flag is not None and name in one.reading.given():
                groups.setdefault(flag.name, []).append(one)
        for flag_name, group in groups.items():
            found = [one.known for one in group]
            if None not in found and not any(form is not None and form.concerns(name) for form in found):
                raise not_taken(flag_name, name, [form for form in found if form is not None])


def check_concerns(given: Mapping[str, Iterable[Role]], inputs: Sequence[Input]) -> None:
    """Refuse an option if no input has one of the roles that the option concerns; `given` maps options to roles."""
    for name, roles in given.items():
        if not any(one.role in roles for one in inputs):
            what = " and ".join(role.replace("_", " ") for role in roles)
            found = f"{inputs[0].name} is {inputs[0].role.replace('_', ' ')}" if inputs else "no file is given"
            raise OptionError(f"{name} is an option of reading {what}: {found}")


def is_stream(path: Source) -> bool:
    """Return whether a path can be read only once: a pipe, a device, standard input."""
    return _is_path(path) and sources.stream(path) is not None


def _is_path(source: object) -> TypeGuard[Path]:
    return isinstance(source, str | os.PathLike)


def check_role(role: str) -> None:
    """Refuse an invalid role."""
    if role not in get_args(Role):
        raise OptionError(f"role must be 'ground_truth' or 'detections', not {shorten(role)}")


def _role_of(source: Path | Held, format: str | None) -> Role:
    """Return the role of a source by its content."""
    if isinstance(source, Mapping):
        return "ground_truth" if "images" in source else "detections"
    if isinstance(source, list | tuple):
        return "detections"
    if format is None:
        fits = {role: one for role in get_args(Role) if (one := registry.recognise(source, role)) is not None}
    else:
        named = registry.FORMATS.find(format)
        fits = {role: named for role in get_args(Role) if getattr(named, f"read_{role}") is not None}
    if len(fits) == 1:
        return next(iter(fits))
    if not fits:
        registry.unknown(source, "detections")  # raises an error that says what the file is, in most cases
    told: Role | None = None
    if len({one.name for one in fits.values()}) == 1:
        (found, *_) = fits.values()
        with registry.asked(found, source):
            told = None if found.tell is None else found.tell(registry.Given(source, "detections"))
    if told is None:
        shown = shorten(sources.name_of(source, ""), 200)
        raise OptionError(f"is {shown} ground truth, or detections? Say it: role=... (--role)")
    return told


def _read_for(table: T, iou_type: str) -> T:
    """Mark a table as read for the kind of shape `iou_type`, if it holds shapes of this kind."""
    kind = find(iou_type)
    if not isinstance(table, GroundTruth | Detections) or table.kinds == (kind.name,):
        return table
    return replace(table, kinds=(kind.name,)) if kind.column_name in table.shapes else table


def _subset(table: GroundTruth, reading: Reading) -> GroundTruth:
    """Return ground truth restricted to the selected images and categories."""
    if reading.images is None and reading.categories is None:
        return table
    from detmap.data.subsets import chosen_of, subset

    images = None if reading.images is None else chosen_of(reading.images, "images (--images)")
    categories = None if reading.categories is None else chosen_of(reading.categories, "categories (--categories)")
    return subset(table, images, categories)


def _with_labels(table: GroundTruth, reading: Reading) -> GroundTruth:
    """Add the given verified labels of images. Then expand the ground truth by the given hierarchy of labels."""
    if reading.image_labels is not None:
        from detmap.data.hierarchy import with_image_labels
        from detmap.formats import open_images

        table = with_image_labels(
            table, *open_images.image_labels(reading.image_labels), os.fspath(reading.image_labels)
        )
    return table if reading.hierarchy is None else _expanded(table, reading.hierarchy)


def _expanded(table: Any, path: Path) -> Any:
    from detmap.data.hierarchy import expanded
    from detmap.formats import open_images

    return expanded(table, open_images.hierarchy(path))


def _with_sizes(table: GroundTruth, image_sizes: Path | Mapping[str, Any]) -> GroundTruth:
    """Fill in unknown sizes of images from the option `image_sizes`, which gives sizes by file name or id."""
    given = Sizes(image_sizes)
    known = (
        np.zeros((table.images.values.size, 2), np.int64) if table.images.sizes is None else table.images.sizes.copy()
    )
    names = [""] * len(known) if table.images.names is None else table.images.names
    for row, (one, name) in enumerate(zip(table.images.values.tolist(), names, strict=True)):
        if not known[row].all():
            known[row] = (given.get(stem(name)) if name else None) or given.get(str(one)) or (0, 0)
    return replace(table, images=replace(table.images, sizes=readonly(known, np.int64)))
