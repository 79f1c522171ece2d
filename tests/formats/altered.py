"""What is read of small files of every format, and of the same files with one thing altered: whole tables and messages.

`fixtures/kept/formats` has a file for each sample. It begins with the table that is read of the sample. What follows is a
line for each alteration, with the message, or with what differs in the table.
"""

from __future__ import annotations

import re
import tempfile
import zlib
from pathlib import Path

import kept
import numpy as np
from at_limits import AT_LIMITS
from more_samples import ALL as LISTED
from packed_samples import PACKED
from samples import TRUTHS
from support import facts

import detmap
from detmap.errors import DetmapError
from detmap.formats import registry
from detmap.formats.files import asked_protocol
from detmap.formats.inputs import Input
from detmap.reading import opening
from detmap.reading.options import FormatOptions, Reading

ALL = {**LISTED, **PACKED}

#: Numbers and words that take the place of others, in turn.
_NUMBERS = {
    "json": [
        "null",
        '"5"',
        "-1",
        "0",
        "1e999",
        "true",
        "1.5",
        "[]",
        "99999999999999999999",
        "{}",
        "NaN",
        "3",
        "9223372036854775807",
    ],
    "text": ["", "x", "-1", "0", "1e999", "nan", "1.5", "99999999999", "1_0", "007", "3", "１"],
}
_WORDS = ["", "x", "0", "a b", "é", "x" * 257, "X", "1.0", "x" * 256]

#: The most alterations of words of a sample; of more, every second, third, … is tried.
MOST = 19

#: What is tried besides if a message says this.
_BESIDES = (
    ("must not be negative", "invalid_boxes", "miss"),
    ("must not be negative", "invalid_boxes", "drop"),
    ("finite number", "invalid_boxes", "drop"),
    ("not an image of the ground truth", "unknown_images", "ignore"),
    ("no results", "missing_classes", "skip"),
)

#: One character many times.
_RUN = re.compile(r"(.)\1{39,}")

_TOKEN = re.compile(r"[^\s,;<>\"'{}\[\]:=/|]+")
_NUMBER = re.compile(r"-?[0-9.]+(e[+-]?[0-9]+)?")


def alterations(files, at_limits=()):
    """Yield the name of each alteration, and the altered files by name; None is a file that is not there."""
    for *where, old, new in at_limits:
        name = where[0] if where else next(iter(files))
        assert old in files[name], (name, old)
        yield f"{name}: {old[:60]!r} -> {_RUN.sub(_cut, new)[:60]!r}", {**files, name: files[name].replace(old, new, 1)}
    yield from _words(files)
    for name, text in files.items():
        if not isinstance(text, str):
            for what, data in (("cut", text[: len(text) // 2]), ("nothing", b""), ("one byte more", text + b"x")):
                yield f"{name}: {what}", {**files, name: data}
            continue
        lines = text.splitlines(keepends=True)
        for at in range(len(lines)):
            if len(lines) <= 8 or at % (len(lines) // 4) == 0:
                yield f"{name}:{at + 1}: left out", {**files, name: "".join(lines[:at] + lines[at + 1 :])}
                yield f"{name}:{at + 1}: twice", {**files, name: "".join(lines[: at + 1] + lines[at:])}
        middle = len(lines) // 2
        for what, other in (
            ("nothing", ""),
            ("blank lines", "\n\n" + text + "\n \n"),
            ("ends of Windows", text.replace("\n", "\r\n")),
            ("no end of the last line", text.rstrip("\n")),
            ("a mark", "\ufeff" + text),
            ("Latin 1", text.replace("a", "ä").encode("latin-1")),
            ("a null", text.replace("a", "\0", 1)),
            ("cut in the middle", text[: len(text) // 2]),
            ("a line of text in the middle", "".join([*lines[:middle], "some text\n", *lines[middle:]])),
            ("in upper case", text.upper()),
            ("once more", text + text),
            ("in reverse order", "".join(line.rstrip("\n") + "\n" for line in reversed(lines))),
        ):
            yield f"{name}: {what}", {**files, name: other}
        if len(files) > 1:
            yield f"{name}: not there", {**files, name: None}
            yield (
                f"{name}: under another name",
                {**{one: held for one, held in files.items() if one != name}, f"{name}.bak": text},
            )


def _words(files):
    every = [
        (name, match)
        for name, text in files.items()
        if isinstance(text, str)
        for match in _TOKEN.finditer(text)
        if "<?xml" not in text[max(match.start() - 40, 0) : match.start()]
    ]
    step = -(-len(every) // MOST)
    for turn, (name, match) in enumerate(every):
        if turn % step:
            continue
        text, old = files[name], match[0]
        within = text[match.start() - 1 : match.end() + 1] if match.start() else ""
        is_number = _NUMBER.fullmatch(old) is not None
        choices = (
            _NUMBERS["json" if text.lstrip()[:1] in "{[" and within[:1] != '"' else "text"] if is_number else _WORDS
        )
        for k in (turn // step, turn // step + len(choices) // 2) if is_number else (turn // step,):
            new = choices[k % len(choices)]
            if new == old:
                continue
            line = text.count("\n", 0, match.start()) + 1
            shown = f"{name}:{line}: {_short(old)!r} -> {_short(new)!r}"
            yield shown, {**files, name: text[: match.start()] + new + text[match.end() :]}


def _cut(run):
    return f"{run[1]}…{len(run[0])}"


def _short(text):
    return text if len(text) <= 20 else f"{text[:8]}…{len(text)}"


def shown(table):
    """Everything that a table holds, a line for each row, and a line for each other column."""
    held = facts(table)
    if not isinstance(table, detmap.GroundTruth | detmap.Detections):
        return [f"{name}: {_brief(text)}" for name, text in held.items() if text != "None"]
    count, rows = len(table), []
    images, categories = (one.ids.tolist() for one in (table.images, table.categories))
    columns = {
        "": [repr(images[code]) for code in table.images.codes.tolist()],
        " ": [repr(categories[code]) for code in table.categories.codes.tolist()],
        "box": [" ".join(map(_number, box)) for box in table.boxes.tolist()],
    }
    arrays = {
        name: getattr(table, name, None) for name in ("scores", "areas", "crowd", "difficult", "zero_ids", "group_of")
    }
    for group in ("fields", "part_flags", "more_scores"):
        arrays |= {f"{group}.{name}": array for name, array in getattr(table, group, {}).items()}
    for kind, column in table.shapes.items():
        parts = {f"shapes.{kind}.{name}": array for name, array in column.arrays().items() if kind != "bbox"}
        arrays |= {name: array for name, array in parts.items() if len(array) == count}
    for name in ("images.codes", "categories.codes", "shapes.bbox.table", *arrays):
        if name in held and (name not in arrays or arrays[name] is not None):
            del held[name]
    for name, array in arrays.items():
        if array is None:
            continue
        if array.dtype == bool:
            columns[name] = ["yes" if one else None for one in array.tolist()]
        else:
            columns[name] = [" ".join(map(_number, np.ravel(one).tolist())) for one in array]
    for row in range(count):
        parts = [f"{name} {values[row]}".strip() for name, values in columns.items() if values[row] is not None]
        rows.append("; ".join(parts))
    said = [
        f"{name}: {_brief(text)}"
        for name, text in held.items()
        if text not in ("None", "False", "{}", "()") and (name[:8], text) != ("notices.", "0") and name[:6] != "whole."
    ]
    return [*said, *map(_brief, rows)]


def _brief(text):
    """Cut long lists of numbers; the sum of the rest tells whether they differ."""
    return text if len(text) <= 400 else f"{text[:200]}…{len(text)} {zlib.crc32(text.encode()):08x}"


def _number(value):
    return repr(value).removesuffix(".0")


def write(files, folder):
    """Write files into a folder, which then holds no others."""
    there = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    for name, text in files.items():
        data = text.encode() if isinstance(text, str) else text
        if data is None or (name in there and there[name].read_bytes() == data):
            continue
        if name not in there:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    for name in there.keys() - {name for name, text in files.items() if text is not None}:
        there[name].unlink()


def outcome(sample, folder, **more):
    """Return the lines of the table that is read, or the message."""
    path = folder / sample.path
    options = {**sample.options, **more}
    try:
        if sample.call is not None:
            return shown(sample.call(folder))
        return shown(detmap.read(path, sample.role, format=sample.format, ground_truth=TRUTHS[sample.truth], **options))
    except DetmapError as error:
        return f"{type(error).__name__}: {kept.told(error)}"


def salvaged(sample, folder):
    """Return what is read of a file that is refused."""
    found = Input(str(folder / sample.path), sample.role, Reading(format=sample.format, **sample.options))
    made = found.salvage([sample.options.get("iou_type", "bbox")], TRUTHS[sample.truth])
    if made is None:
        return "nothing"
    table, places, refused = made
    rows = "" if places is None else f" {places.tolist()}"
    return f"{len(table)} rows{rows}; " + "; ".join(" ".join(map(str, one)).strip() for one in refused)


def recognised(sample, folder):
    """Return the format in either role, and the role that is told of it."""
    if sample.call is not None:
        return ""
    said = []
    for role in ("ground_truth", "detections"):
        try:
            found = registry.recognise(str(folder / sample.path), role)
            told = (
                None
                if found is None or found.tell is None
                else found.tell(registry.Given(str(folder / sample.path), role))
            )
            said.append(f"{found.name if found else None}{f' ({told})' if told else ''}")
        except DetmapError as error:
            said.append(kept.told(error))
    return ", ".join(said)


def lines_of(name):
    """Return what is kept of a sample."""
    sample, at_limits = ALL[name], AT_LIMITS.get(name, ())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve() / "own"
        folder.mkdir()

        def plain(text):
            text = (
                text.replace(f"{folder}/", "")
                .replace(f"{folder.parent}/", "")
                .replace(str(folder), ".")
                .replace("\n", "\\n")
            )
            return _RUN.sub(_cut, text)

        write(sample.files, folder)
        expected = outcome(sample, folder)
        assert isinstance(expected, list), expected
        expected = list(map(plain, expected))
        usual = recognised(sample, folder)
        made = [usual, *expected]
        made += map(plain, () if sample.call is not None else _about(sample, folder))
        for option, value in sample.tried:
            made.append(
                f"{option}={value!r}: {plain(_difference(expected, outcome(sample, folder, **{option: value}), plain))}"
            )
        for turn, (what, files) in enumerate(alterations(sample.files, at_limits)):
            write(files, folder)
            found = outcome(sample, folder)
            parts = [f"{what}: {_difference(expected, found, plain)}"]
            for said, option, value in _BESIDES if isinstance(found, str) else ():
                if said in found and (other := outcome(sample, folder, **{option: value})) != found:
                    parts.append(f"{value}: {_difference(expected, other, plain)}")
            if isinstance(found, str) and sample.salvages:
                parts.append(f"salvaged: {salvaged(sample, folder)}")
            seen = recognised(sample, folder) if turn % 4 == 0 else usual
            parts += [] if seen == usual else [f"recognised: {seen}"]
            made.append(plain(" | ".join(parts)))
        return made


def _about(sample, folder):
    """Yield what else is said of a file, and what comes of it in other formats."""
    source = str(folder / sample.path)
    kind = sample.options.get("iou_type", "bbox")
    given = Input(source, sample.role, Reading(format=sample.format, **sample.options))
    yield f"{given!r}, needs_images: {given.needs_images}, beside: {given.beside()}, kinds: {given.kinds()}"
    if sample.role == "ground_truth":
        yield from (f"{name}: {_brief(text)}" for name, text in facts(given.facts() or {}, "facts").items())
        yield f"clusters: {given.suggested_clusters(given.ground_truth())}"
        yield f"protocol: {asked_protocol(source, sample.format)}"
    if not any(one[0] != "iou_type" for one in sample.tried):
        return
    reading = {name: value for name, value in sample.options.items() if name in FormatOptions.__annotations__}
    for to, target in (("coco", "out.json"), ("csv", "out.csv"), ("yolo", "out"), ("activitynet", "out.an")):
        path = folder.parent / f"{len(list(folder.parent.iterdir()))}-{target}"
        try:
            truth = TRUTHS[sample.truth]
            more = {"format": sample.format, "role": sample.role, "ground_truth": truth, "iou_type": None, **reading}
            found = detmap.convert(source, path, to=to, **more)
        except DetmapError as error:
            yield f"to {to}: {kept.told(error).replace(path.name, target)}"
            continue
        yield f"to {to}: {found.written} on {found.images}; {' | '.join(found.sentences())}; {dict(found.notices)}"
    if kind == "bbox":
        yield f"salvaged: {salvaged(sample, folder)}"


def _difference(expected, found, plain):
    if isinstance(found, str):
        return found
    found = list(map(plain, found))
    if found == expected:
        return "the same"
    before, behind = set(expected), set(found)
    differ = [f"- {line[:14]}" for line in expected if line not in behind]
    differ += [f"+ {line}" for line in found if line not in before]
    return " ".join(differ) or f"the same lines as {[expected.index(line) for line in found]}"


#: The files of tests, with the names of their samples.
GROUPS = {
    "coco": ("coco",),
    "text": ("voc", "yolo", "text", "kitti", "dota"),
    "tables": ("csv", "openimages", "kaggle"),
    "videos": ("activitynet", "thumos14", "ytvis", "nuscenes"),
    "tools": ("bdd100k", "createml", "darknet", "labelme", "cvat", "via", "mot", "kitti_tracking", "wider_face"),
    "packed": ("wholebody", "parquet", "feather"),
    "objects": ("torchvision", "ultralytics", "supervision"),
}


def names_of(group):
    """Return the names of a group's samples, or of those that are in no group."""
    own = {name: key for key, starts in GROUPS.items() for name in ALL if name.partition("-")[0] in starts}
    own |= dict.fromkeys(PACKED, "packed")
    return [name for name in ALL if own.get(name, "options") == group]


def check(name, monkeypatch):
    """What is read of a sample, and of the sample altered, is what is kept."""
    monkeypatch.setattr(opening, "_TICK", 0)  # no file changes here while it is read
    kept.same(f"formats/{name}", lines_of(name))
