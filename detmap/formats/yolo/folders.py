"""Locate the files of a YOLO data set: ``data.yaml``, folders of labels and of images, lists of images."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from typing import Any, NamedTuple

from detmap.choices import is_decimal
from detmap.errors import InputError, MissingDependencyError, OptionError, shorten
from detmap.formats.file_names import ENDINGS, stem
from detmap.formats.image_sizes import Sizes
from detmap.reading.options import Path
from detmap.reading.sources import members, read_bytes

#: Maximum size of a file of settings in bytes.
MOST = 1 << 20

SPLITS = ("val", "test", "train")

#: Names of text files that hold no labels although they are in folders of labels: lists of classes or images, and
#: readme files.
NO_LABELS = ("classes.txt", "obj.txt", "readme.txt", "train.txt", "val.txt", "test.txt")

_YAML = ("data.yaml", "dataset.yaml", "data.yml")
_NAMES = ("classes.txt", "obj.names")
_SIZES = "image_sizes.csv"


class Entry(NamedTuple):
    """An image: its name without suffix, its path, and the content and path of its file of labels."""

    name: str
    image: str | None
    labels: tuple[bytes, str] | None


class Settings(NamedTuple):
    """Content of ``data.yaml``, or defaults in its place."""

    #: Names of classes by number.
    names: dict[int, str]
    #: Number of keypoints, and of numbers per keypoint.
    points: tuple[int, int] | None
    #: The paths of each split, as written in the file.
    splits: Mapping[str, list[str]]
    #: The folder that paths are relative to.
    root: str
    #: The folder of ``data.yaml``.
    own: str
    #: Number of classes, if given.
    classes: int | None = None
    #: Whether there is a ``data.yaml``; if so, missing `points` mean that there are no keypoints.
    settled: bool = False


def is_settings(path: str) -> bool:
    """Return whether a path is a file of settings: ``data.yaml``, or darknet's ``obj.data``."""
    return path.lower().endswith((".yaml", ".yml", ".data"))


def read_settings(path: str) -> Settings:
    """Read ``data.yaml`` or ``obj.data``."""
    if path.lower().endswith(".data"):
        return _read_darknet(path)
    document = _yaml(path)

    def refuse(field: str, problem: str) -> InputError:
        given = document.get(field)  # printing nested values may be endless because of aliases
        return InputError(
            problem, source=path, field=field, value=given if isinstance(given, str) else type(given).__name__
        )

    names = _class_names(document.get("names", []))
    if names is None:
        raise refuse("names", "must be a list of names, or names by number")
    count = document.get("nc")
    if count in (None, "", "null", "~"):
        count = None
    elif not _is_number(count):
        raise refuse("nc", "must be the number of classes")
    elif names and int(count) != len(names):
        remedy = "give every class its name, or leave out nc: training refuses such a file as well"
        problem = f"is not the number of names, of which there are {len(names)}"
        raise InputError(problem, source=path, field="nc", value=int(count), remedy=remedy)
    points = document.get("kpt_shape")
    if points is not None:
        good = isinstance(points, list) and len(points) == 2 and all(_is_number(one) for one in points)
        points = (int(points[0]), int(points[1])) if good else None
        if points is None or not (0 < points[0] < 10_000 and points[1] in (2, 3)):
            raise refuse("kpt_shape", "must be two numbers: how many points, and 2 or 3 numbers of each")
    splits = {}
    for split in SPLITS:
        given = document.get(split)
        if given in (None, "", "null", "~", []):
            continue
        listed = given if isinstance(given, list) else [given]
        if not all(isinstance(one, str) and "\0" not in one for one in listed):
            raise refuse(split, "must be a path, or a list of paths")
        splits[split] = listed
    own = os.path.dirname(os.path.abspath(path))
    root = document.get("path", "")
    if not isinstance(root, str) or "\0" in root:
        raise refuse("path", "must be a path")
    root = os.path.normpath(os.path.join(own, root)) if root else own
    root = root if os.path.isdir(root) else own
    return Settings(names, points, splits, root, own, None if count is None else int(count), settled=True)


def _read_darknet(path: str) -> Settings:
    """Read ``obj.data``: lines ``key = value``, with paths relative to the file's folder or its parent."""
    data, name = read_bytes(path, "obj.data")
    if len(data) > MOST:
        raise InputError("is larger than 1 MiB, which no such file is", source=name)
    given: dict[str, str] = {}
    for number, line in enumerate(bytes(data).decode("utf-8", "replace").splitlines(), 1):
        key, mark, value = (part.strip() for part in line.partition("="))
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not mark or "\0" in value:
            raise InputError("is not key = value", source=name, record=f"line {number}", value=line)
        given.setdefault(key, value)
    if "names" not in given or not {"valid", "train"} & given.keys():
        remedy = "darknet's obj.data has the lines names = …, train = … and valid = …"
        raise InputError("names no classes, or no images", source=name, remedy=remedy)
    own = os.path.dirname(os.path.abspath(path))
    roots = [own, os.path.dirname(own)]
    root = next((one for one in roots if os.path.isfile(os.path.join(one, given["names"]))), own)
    splits = {split: [given[key]] for split, key in (("val", "valid"), ("train", "train")) if given.get(key)}
    count = given.get("classes", "")
    classes = int(count) if _is_number(count) else None
    return Settings(names_given(os.path.join(root, given["names"])), None, splits, root, own, classes, settled=True)


def _yaml(path: str) -> dict[str, Any]:
    """Read a YAML mapping with strings as scalars; nothing is executed, and no aliases are expanded."""
    try:
        import yaml
    except ImportError:
        raise MissingDependencyError("pyyaml", "yolo", "reading data.yaml") from None
    data, name = read_bytes(path, "data.yaml")
    if len(data) > MOST:
        raise InputError("is larger than 1 MiB, which no such file is", source=name)
    try:
        loader = yaml.BaseLoader(bytes(data).decode("utf-8-sig"))  # this loader only makes strings, lists and mappings
        try:
            root = loader.get_single_node()
            repeated = _repeated_key(root)
            document = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"is not valid YAML: {shorten(text, 120)[1:-1]}", source=name) from None
    if not isinstance(document, dict):
        raise InputError("is not a data set's settings: a mapping was expected", source=name)
    if repeated is not None:
        field, line = repeated
        raise InputError("is there twice", source=name, record=f"line {line}", field=field, remedy="keep one of them")
    return document


def _repeated_key(root: Any) -> tuple[str, int] | None:
    """Return a key that the top mapping or the mapping `names` repeats, and the line of the key, from 1."""
    import yaml

    if not isinstance(root, yaml.MappingNode):
        return None
    names = [value for key, value in root.value if key.value == "names" and isinstance(value, yaml.MappingNode)]
    for mapping in (root, *names):  # no recursion, because an alias may stand for the root
        seen: set[str] = set()
        for key, _ in mapping.value:
            text = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            if text and text in seen:
                return text, key.start_mark.line + 1
            seen.add(text)
    return None


def _class_names(given: Any) -> dict[int, str] | None:
    """Return names by number; None if a name or number is invalid."""
    if isinstance(given, str):  # an empty value is read as text
        return {} if not given else None
    pairs = list(enumerate(given)) if isinstance(given, list) else list(given.items())
    out = {}
    for number, name in pairs:
        if not (isinstance(number, int) or _is_number(number)) or not isinstance(name, str):
            return None
        out[int(number)] = name
    return out if len(out) == len(pairs) else None


def _is_number(text: Any) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 7


def names_given(classes: Any) -> dict[int, str]:
    """Return class names by number from the option `classes`: a list, or the path of a list or of ``data.yaml``."""
    if isinstance(classes, str | os.PathLike):
        path = os.fspath(classes)
        if is_settings(path):
            return read_settings(path).names
        data, name = read_bytes(path, "classes")
        if len(data) > MOST:
            raise InputError("is larger than 1 MiB, which no list of classes is", source=name)
        try:
            lines = bytes(data).decode("utf-8-sig").splitlines()
        except UnicodeDecodeError:
            raise InputError("is not a text file", source=name) from None
        while lines and not lines[-1].strip():
            lines.pop()
        return {i: line.strip() for i, line in enumerate(lines)}
    return {i: str(name) for i, name in enumerate(classes)}


def with_classes(settings: Settings, classes: Any) -> Settings:
    """Return settings with the class names of the option `classes`. If the option is the path of a ``data.yaml``, also
    take the number of keypoints from that file.
    """
    if classes is None:
        return settings
    if _are_settings(classes):
        given = read_settings(os.fspath(classes))
        return settings._replace(names=given.names, points=given.points or settings.points, settled=True)
    return settings._replace(names=names_given(classes))


def _are_settings(classes: Any) -> bool:
    return isinstance(classes, str | os.PathLike) and is_settings(os.fspath(classes))


def near(folder: str, classes: Any = None) -> Settings:
    """Return the settings for a folder of labels, from a file in this folder, its parent or its grandparent. Raises
    `InputError` if a folder has two files of settings, unless `classes` is the path of one of them.
    """
    try:
        path = settings_near(folder)
    except InputError:
        if not _are_settings(classes):
            raise
        path = None
    if path is None:
        here = os.path.abspath(folder)
        return Settings({}, None, {}, here, here)
    if is_settings(path):
        return read_settings(path)
    place = os.path.dirname(path)
    return Settings(names_given(path), None, {}, place, place)


def settings_near(folder: str) -> str | None:
    """Return the path of the file with the class names: in a folder of labels, its parent or its grandparent."""
    here = os.path.abspath(folder)
    for place in (here, os.path.dirname(here), os.path.dirname(os.path.dirname(here))):
        named = (os.path.join(place, name) for name in _NAMES)
        found = settings_in(place) or next(filter(os.path.isfile, named), None)
        if found is not None:
            return found
    return None


def results_in(path: str) -> str:
    """Return the folder with the files of predictions: the given folder, or its subfolder ``labels``."""
    inside = os.path.join(path, "labels")
    return inside if os.path.isdir(inside) else path


def beside_results(path: Path) -> list[str]:
    """Return the path of the file with the class names of a folder of predictions, if there is one."""
    found = None
    with suppress(InputError):  # if there are two files, the reader of predictions raises the error
        found = settings_near(results_in(os.fspath(path))) if os.path.isdir(path) else None
    return [] if found is None else [found]


def settings_in(folder: str) -> str | None:
    """Return the path of the settings in a folder; raise `InputError` if there are two."""
    found = [name for name in _YAML if os.path.isfile(os.path.join(folder, name))]
    if len(found) > 1:
        problem = f"holds {' and '.join(found)}, each of which says what the data set is"
        remedy = "give the path of the one that is meant, of predictions as classes (--classes)"
        raise InputError(problem, source=folder, remedy=remedy)
    return os.path.join(folder, found[0]) if found else None


def labels_of(path: str, last: str = "labels") -> str:
    """Replace the last folder ``images`` in a path by ``labels``. If `last` is "images", do the reverse."""
    first = "images" if last == "labels" else "labels"
    parts = path.replace(os.sep, "/").split("/")
    for i in range(len(parts) - 1, -1, -1):
        if parts[i] == first:
            return "/".join([*parts[:i], last, *parts[i + 1 :]])
    return path


def resolved(settings: Settings, split: str, source: str) -> tuple[list[str], list[str]]:
    """Return the paths of a split, and a list of the paths that lie outside of the folder of ``data.yaml``."""
    if split not in settings.splits:
        have = ", ".join(settings.splits) or "none"
        raise OptionError(f"{shorten(source, 200)} has no split {split}, only: {have}: choose another (--image-set)")
    found, outside = [], []
    for written in settings.splits[split]:
        path = os.path.normpath(os.path.join(settings.root, written))
        if not _there(path) and written.startswith("../"):  # some exporters write ../ but mean the folder itself
            path = os.path.normpath(os.path.join(settings.root, written[3:]))
        if not _there(path):
            remedy = f"put it at {shorten(path, 200)[1:-1]}, or correct path and {split} in the file"
            raise InputError("is not there", source=source, field=split, value=written, remedy=remedy)
        real, own = os.path.realpath(path), os.path.realpath(settings.own)
        if os.path.commonpath([real, own]) != own:
            outside.append(path)
        found.append(path)
    return found, outside


def holds_folders(folder: str) -> bool:
    """Return whether a folder holds folders."""
    return any(os.path.isdir(os.path.join(folder, one)) for one in os.listdir(folder))


def is_of_images(folder: str) -> bool:
    """Return whether a folder holds images with labels in a sibling folder, as for training."""
    labels = labels_of(os.path.abspath(folder))
    there = labels != os.path.abspath(folder) and os.path.isdir(labels)
    return there and any(name.lower().endswith(ENDINGS) for name in os.listdir(folder))


def _there(path: str) -> bool:
    return os.path.exists(path) or os.path.isdir(labels_of(path))


def in_folder(path: Path, sizes: Sizes) -> tuple[list[Entry], int]:
    """Return the images of a folder of images or of labels, and the number of label files without an image. If there is
    a folder of images, return all of its images. Otherwise, return the images with labels, and the images whose size
    the caller gives.
    """
    folder = os.fspath(path)
    labels, images = labels_of(folder), labels_of(folder, "images")
    if labels == images and os.path.isdir(folder):  # the folder may contain ``labels`` and ``images``
        inside = [os.path.join(folder, name) for name in ("labels", "images")]
        beside = os.path.join(os.path.dirname(os.path.abspath(folder)), "images")
        if os.path.isdir(inside[0]):
            labels, images = inside
        elif not _images_in(folder) and os.path.isdir(beside):
            images = beside
    pictures = _images_in(images) if os.path.isdir(images) else {}
    found = read_labels(labels) if os.path.isdir(labels) else {}
    _refuse_inner(images if pictures else labels, ENDINGS if pictures else (".txt",))
    if pictures:
        entries = [Entry(name, file, found.pop(name, None)) for name, file in pictures.items()]
        return entries, len(found)
    names = sorted({*found, *sizes.names(found)})
    return [Entry(name, None, found.get(name)) for name in names], 0


def _refuse_inner(folder: str, endings: tuple[str, ...]) -> None:
    """Refuse a folder with files in it and in subfolders. Unlike training, this reader would skip subfolders."""
    if not os.path.isdir(folder) or not any(one.lower().endswith(endings) for one in os.listdir(folder)):
        return
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(one for one in inner if not one.startswith("."))
        if place == folder:
            inner[:] = [one for one in inner if one not in ("images", "labels")]
        elif any(name.lower().endswith(endings) and not name.startswith("._") for name in names):
            problem = f"holds files, and folders of files too: {shorten(os.path.relpath(place, folder))}"
            raise InputError(problem, source=folder, remedy="move them into one folder, or list both as splits")


def lists_images(head: bytes) -> bool:
    """Return whether the first lines of a file are paths of images."""
    lines = [line.strip().lower() for line in head.removeprefix(b"\xef\xbb\xbf").splitlines()[:20]]
    lines = [line for line in (lines[:-1] if len(lines) > 1 else lines) if line]
    return bool(lines) and all(line.endswith(tuple(one.encode() for one in ENDINGS)) for line in lines)


def in_list(path: str, root: str) -> list[Entry]:
    """Return the images listed in a text file, a path per line, relative to the folder of this file or to `root`."""
    data, name = read_bytes(path, "list of images")
    try:
        lines = [line.strip() for line in bytes(data).decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise InputError("is not a text file", source=name) from None
    entries = []
    there = False
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        if "\0" in line or not line.lower().endswith(ENDINGS):
            raise InputError("is not the path of an image", source=name, record=f"line {number}", value=line)
        for folder in dict.fromkeys([os.path.dirname(path), root]):
            image = os.path.normpath(os.path.join(folder, line))
            labels = os.path.splitext(labels_of(image))[0] + ".txt"
            if os.path.exists(image) or os.path.exists(labels):
                there = True
                break
        entries.append(Entry(stem(line), image, _content(labels)))
    if entries and not there:
        raise InputError(
            f"none of the {len(entries)} images that it lists is there, and none of their labels",
            source=name,
            value=next(line for line in lines if line),
            remedy="write paths from the folder of the list, or from path in data.yaml",
        )
    return entries


def _content(path: str) -> tuple[bytes, str] | None:
    if not os.path.exists(path):
        return None
    data, name = read_bytes(path, "labels")
    return bytes(data), name


def read_labels(folder: Any) -> dict[str, tuple[bytes, str]]:
    """Return a folder's label files by name without suffix; labels in subfolders are refused."""
    is_folder = isinstance(folder, str | os.PathLike) and os.path.isdir(folder)
    if is_folder and not any(name.lower().endswith(".txt") for name in os.listdir(folder)):
        found = {}
    else:
        found = labels_among(members(folder, ".txt", "labels"))
    if is_folder and not found:
        _no_folders(os.fspath(folder))
    return found


def labels_among(files: Iterable[tuple[str, bytes, str]]) -> dict[str, tuple[bytes, str]]:
    """Return the label files among some text files, by name without suffix."""
    return {name.removesuffix(".txt"): (data, place) for name, data, place in files if not _is_stray(name, data)}


def _is_stray(name: str, data: bytes) -> bool:
    """Return whether a text file holds no labels. For names in `NO_LABELS` the content decides, because the labels of an
    image may have such a name.
    """
    if name.lower() not in NO_LABELS:
        return False
    lines = [words for words in map(bytes.split, data.splitlines()) if words]
    return not lines or not all(len(words) > 4 and all(map(is_decimal, words[1:5])) for words in lines)


def check_names(stems: Sequence[str], rows: Sequence[Sized], source: str) -> None:
    """Refuse an empty label file with a name in `NO_LABELS`, because it would not be read as labels."""
    for name, own in zip(stems, rows, strict=True):
        if not len(own) and f"{name}.txt".lower() in NO_LABELS:
            problem = "an image without objects cannot have this name: its empty file would not be taken for labels"
            raise InputError(problem, source=source, value=name, remedy="rename the image")


def _images_in(folder: str) -> dict[str, str]:
    """Return the path of each image in a folder, by the image's name without suffix."""
    found: dict[str, str] = {}
    for name in sorted(os.listdir(folder)):
        if name.lower().endswith(ENDINGS) and not name.startswith("._"):
            key = stem(name)
            if key in found:
                both = f"{shorten(os.path.basename(found[key]))} and {shorten(name)}"
                raise InputError(f"holds two images of one name: {both}", source=folder, remedy="keep one of them")
            found[key] = os.path.join(folder, name)
    if not found:
        _no_folders(folder)
    return found


def _no_folders(folder: str) -> None:
    """Refuse a folder ``images`` or ``labels`` with subfolders, because the caller should give one of the subfolders."""
    inside = sorted(one for one in os.listdir(folder) if os.path.isdir(os.path.join(folder, one)))
    if inside and os.path.basename(folder) in ("images", "labels"):
        listed = ", ".join(shorten(one) for one in inside[:8])
        raise InputError(f"holds folders: {listed}", source=folder, remedy="give the one that is meant")


def sizes_beside(folder: str) -> Sizes | None:
    """Return the image sizes that `detmap` wrote beside labels."""
    path = os.path.join(folder, _SIZES)
    return Sizes(path) if os.path.isfile(path) else None
