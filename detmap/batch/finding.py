"""Find and name the prediction files given by paths, patterns, folders and manifests."""

from __future__ import annotations

import csv
import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from detmap.data.column_names import role_of_title
from detmap.errors import InputError, OptionError, shorten
from detmap.formats import registry
from detmap.formats.delimited.read import of_other_format
from detmap.formats.inputs import Input, is_stream
from detmap.formats.model_names import distinct
from detmap.reading.options import Reading

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Entry:
    """A file of predictions (or a folder of VOC results), its name on the leaderboard, and its tags from a manifest."""

    name: str
    path: str
    tags: Mapping[str, str] = field(default_factory=dict)
    _found: Input | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("name", "path"):  # convert strings of numpy to plain strings
            object.__setattr__(self, name, str(getattr(self, name)))
        if self._found is None:
            object.__setattr__(self, "_found", Input(self.path, "detections"))

    def input(self, reading: Reading) -> Input:
        """Return the file as an input. The format of the file is detected only once."""
        assert self._found is not None
        return self._found.read_as(reading)


def find(predictions: Iterable[PathLike | Entry]) -> list[Entry]:
    """Return the prediction files given by paths, patterns, folders and manifests, each file once, with distinct names.

    Parameters
    ----------
    predictions : iterable of path or Entry
        Files, patterns, folders and manifests. A pattern, such as ``runs/*/dt.json``, can contain ``**`` for any depth.
        A folder of text files is one model. Any other folder stands for the files directly in it: JSON, JSON Lines,
        CSV, Parquet, archives, and folders of text files. A manifest is a ``.csv`` file with a column ``path``,
        relative to the manifest, optionally a column ``name``, and any other columns as tags. (A CSV file with columns
        of images and boxes and without ``path`` is a file of predictions.) A path that does not exist raises an error
        only when it is read.

    Returns
    -------
    list of Entry
        In the given order; the files of a pattern or folder are sorted by path. The name of an entry is the name of the
        file without its suffix, preceded by as many folders as are needed to make the name distinct.

    Raises
    ------
    OptionError
        If a pattern or folder has no file, or has a pipe or device, or if manifests give a name twice.
    InputError
        For a manifest that cannot be read.
    """
    found: dict[str, tuple[str | None, str, Mapping[str, str], Input | None]] = {}
    for given in predictions:
        for one in _expand(given):
            found.setdefault(os.path.abspath(one[1]), one)
    named = Counter(name for name, _, _, _ in found.values() if name is not None)
    for name, count in named.items():
        if count > 1:
            raise OptionError(f"{count} files are called {shorten(name)}")
    automatic = iter(distinct([path for path, (name, _, _, _) in found.items() if name is None], set(named)))
    return [
        Entry(next(automatic) if name is None else name, path, tags, known)
        for name, path, tags, known in found.values()
    ]


def _expand(given: PathLike | Entry) -> Iterator[tuple[str | None, str, Mapping[str, str], Input | None]]:
    if isinstance(given, Entry):
        yield given.name, given.path, given.tags, given._found
        return
    path = os.fspath(given)
    if is_manifest(path):
        for name, listed, tags in _manifest(path):
            yield name, listed, tags, None
        return
    known: dict[str, Input] = {}
    endings = registry.suffixes()

    def is_one(path: str) -> bool:
        """Return whether a path holds the detections of one model. For a file, only the suffix is checked."""
        if not os.path.isdir(path):
            return path.endswith(endings)
        known[path] = Input(path, "detections")
        return known[path].known is not None

    if os.path.isdir(path) and not is_one(path):
        inside = sorted(os.path.join(path, name) for name in os.listdir(path))
        if not inside:
            raise OptionError(f"{shorten(path)} is an empty folder; is it the right one?")
        paths = _without_streams(one for one in inside if is_one(one) and not _is_own(one))
        if not paths:
            raise OptionError(f"no files of predictions in {shorten(path)}: they end in {', '.join(endings)}")
    elif glob.has_magic(path) and not os.path.lexists(path):
        paths = _without_streams(sorted(glob.glob(path, recursive=True)))
        if not paths:
            raise OptionError(f"{shorten(path)} matches no file")
    else:
        paths = [path]
    for one in paths:
        yield None, one, {}, known.get(one)


def is_manifest(path: str) -> bool:
    """Return whether a path is a manifest: a CSV file that does not hold detections."""
    return path.endswith(".csv") and not _is_table(path)


def _is_table(path: str) -> bool:
    """Return whether a CSV file holds detections, rather than a list of paths."""
    first = registry.Given(path, "detections").head.partition(b"\n")[0].decode("utf-8-sig", "replace")
    titles = [title.strip(' "\r') for title in re.split("[,;\t]", first)]
    roles = set(map(role_of_title, titles))
    of_boxes = bool({"image_id", "image"} & roles) and bool({"x", "x1", "cx"} & roles)
    untitled = any(re.fullmatch(r"[-+]?\d*\.?\d+(e[-+]?\d+)?", title, re.IGNORECASE) for title in titles)
    return "path" not in titles and (of_boxes or of_other_format(titles) or untitled)


def _without_streams(paths: Iterable[str]) -> list[str]:
    """Return the paths; raise `OptionError` for a pipe or device, because reading a pipe may block for ever."""
    listed = list(paths)
    for path in listed:
        if is_stream(path):
            raise OptionError(f"{shorten(path)} is neither a file nor a folder: remove it, or give it by its name")
    return listed


#: Names of the files that `detmap batch --out` writes. A folder with the first of these files is regarded as an output
#: folder.
WRITTEN = (*(f"leaderboard.{kind}" for kind in ("json", "csv", "md", "html", "parquet")), "tests.json")


def _is_own(path: str) -> bool:
    """Return whether `detmap batch --out` seems to have written a file, by its name and the files beside it."""
    folder, name = os.path.split(path)
    return name in WRITTEN and os.path.exists(os.path.join(folder, WRITTEN[0]))


def _manifest(path: str) -> Iterator[tuple[str | None, str, Mapping[str, str]]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if "path" not in (reader.fieldnames or ()):
                raise InputError(
                    "has no column 'path'", source=path, remedy="a manifest's first line names its columns"
                )
            for row in reader:
                if None in row or None in row.values() or not row["path"]:
                    raise InputError("has too many or too few cells", source=path, record=f"line {reader.line_num}")
                tags = {key: value for key, value in row.items() if key not in ("path", "name")}
                yield row.get("name") or None, os.path.join(os.path.dirname(path), row["path"]), tags
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"is not a CSV file: {error}", source=path) from None


def file_names(names: Sequence[str]) -> list[str]:
    """Return a distinct file name for every name, valid on any file system, including case-insensitive ones."""
    taken: set[str] = set()
    tried: Counter[str] = Counter()  # for each base name in lower case, the number of suffixes tried
    out = []
    for name in names:
        base = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100]
        base = "_" + base if not base or base[0] in ".-" else base
        candidate, alike = base, base.lower()
        while candidate.lower() in taken:
            tried[alike] += 1
            candidate = f"{base}-{tried[alike] + 1}"
        taken.add(candidate.lower())
        out.append(candidate)
    return out
