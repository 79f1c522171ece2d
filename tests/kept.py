"""Texts that users see and results written as lines, kept in ``fixtures/kept``, and compared with what is made now.

A long line is kept as its beginning and a checksum. Of a text of many lines the first are kept as they are; the others make
blocks, each kept as its first line, its number of lines and a checksum. A change that is meant is written by
``DETMAP_KEEP=1 pytest FILES``, and is seen in the difference of these files. Parts that are not detmap's are cut by `plain`.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np

import detmap

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "kept"

#: Maximum length of a line that is kept as it is. A longer line is cut to this length, which includes its checksum.
MOST = 76

#: Number of lines at the beginning of a text, and of a cell, that are kept one by one. Later lines form blocks. A block ends
#: at a line whose checksum is a multiple of `ENDS`, or after `BLOCK` lines: an added line changes only the blocks around it.
FIRST, FIRST_OF_CELL, ENDS, BLOCK = 24, 8, 12, 32

#: What Python, msgspec, numpy, argparse and the system say, where it is not the cause of an error that `told` knows.
_OTHERS = re.compile(
    r"Expected `[^`\n]*`(?:, got `[^`\n]*`)?(?: - at `[^`\n]*`)?"
    r"|\w+\.__init__\(\) [^|;\n]*"
    r"|'[\w-]+' codec can't (?:en|de)code [^|;\n]*"
    r"|'\w+' object has no attribute '\w+'"
    r"|could not convert string to \w+: '[^'\n]*'"
    r"|invalid literal for int\(\) with base 10: '[^'\n]*'"
    r"|\[Errno \d+\] [^|;\n]*"
    r"|(?<=cannot be read: )[A-Z][a-z ]+"
    r"|(?<=error: )(?:unrecognized arguments|the following arguments are required|ambiguous option|invalid choice)(?=: )"
    r"|(?<=: )expected (?:one|at least one) argument|(?<=: )(?:ignored explicit argument|invalid \w+ value:|invalid choice:)"
)

#: Reasons that the parsers of other packages give after words of detmap.
_REASON = re.compile(
    r"(is not valid (?:JSON|XML|CSV|YAML):|is not CSV in UTF-8:|is not base64 of zlib's data:|cannot be read as an array:"
    r"|is of another type:|file that can be read:) [^|\n]*?(?=;| \| |\n|$)"
)

#: What differs between versions, days and machines, and what takes its place.
_VARYING = (
    (re.compile(r"\bnp\.(True|False)_"), r"\1"),
    (re.compile(r"np\.\w+\(([^()]*)\)"), r"\1"),  # what numpy 2 writes around its scalars
    (re.compile(r'"(python|numpy|numba)": "[^"]+"'), r'"\1": "VERSION"'),
    (
        re.compile(r"\b[0-9a-f]{64}\b|(?<=[`d] )[0-9a-f]{16}\b|(?<=Card: `)[0-9a-f]{16}|(?<=detmap-)[0-9a-f]{8}\b"),
        "HASH",
    ),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "DATE"),
    (re.compile(re.escape(detmap.__version__) + r"\b"), "VERSION"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x…"),
    (re.compile(r"(?<![\w/])/(?:tmp|var|private)/[^\s'\":;,)]*/"), ""),
)

#: Floats whose last digits may differ between processors and versions of numpy.
_FLOAT = re.compile(r"(?<![\w.])\d+\.\d{8,}(?:e[-+]?\d+)?(?!\w)")

#: What no difference of pages is: styles, scripts, pictures, and what readers of screens are told of the layout.
_LEFT_OUT = re.compile(
    r"<style>.*?</style>|<script>.*?</script>|<meta [^>]*>|<!doctype html>"
    r"| (?:id|scope|tabindex|role|aria-[a-z]+|decoding|loading|autocomplete|preserveAspectRatio|dy|text-anchor)=\"[^\"]*\"",
    re.DOTALL,
)


def told(error):
    """Return what an error says; of the error of another package that it quotes, the type."""
    if not isinstance(error, detmap.DetmapError):
        return type(error).__name__
    text, cause = str(error), error.__cause__ or error.__context__
    while cause is not None:
        if not isinstance(cause, detmap.DetmapError) and len(str(cause)) > 3:
            text = text.replace(str(cause), type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    return text


def plain(text, digits=12):
    """Return a text without what is not detmap's: others' messages, versions, dates, paths, and digits beyond these."""
    for pattern, other in _VARYING:
        text = pattern.sub(other, text)
    text = _REASON.sub(r"\1 …", _OTHERS.sub("…", text))
    if digits < 17:
        text = _FLOAT.sub(lambda found: f"{float(found[0]):.{digits}g}", text)
    return text.replace(os.sep, "/") if os.sep != "/" else text


def outlined(page):
    """Return the elements of a page, one in a line, with their texts and with what is drawn."""
    text = _LEFT_OUT.sub("", page)
    text = re.sub(r"data:image/[^\"]*", "data", text)
    text = re.sub(r"</[a-z0-9]+>", "", text)
    text = re.sub(r"\s*\n\s*", " ", text).replace("<", "\n<")
    text = re.sub(r"\n(<t[dh]|<strong|<br|<span)", r" \1", text)  # a row of a table is a line
    return re.sub(r" +\n", "\n", text).strip() + "\n"


#: Maximum number of values of an array that are written out. Of a larger array the hash is written.
LONG = 24


def said(value, digits=17):
    """Return a value as one line of text, floats with `digits` significant digits; 17 tell all floats apart."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{said(key, digits)}: {said(one, digits)}" for key, one in value.items()) + "}"
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        names = value._fields if hasattr(value, "_fields") else [one.name for one in dataclasses.fields(value)]
        return type(value).__name__ + said({name: getattr(value, name) for name in names}, digits)
    if isinstance(value, np.ndarray):
        if value.size > LONG and (digits >= 17 or value.dtype.kind != "f"):
            own = np.where(np.isnan(value), np.nan, value) if value.dtype.kind == "f" else value
            return f"{value.dtype}{list(value.shape)}(#{hashlib.sha256(own.tobytes()).hexdigest()[:16]})"
        flat = [said(one, digits) for one in value.ravel().tolist()]
        return f"{value.dtype}{list(value.shape)}({' '.join(flat)})"
    if isinstance(value, list | tuple | set | frozenset):
        values = sorted(value) if isinstance(value, set | frozenset) else value
        return "[" + ", ".join(said(one, digits) for one in values) + "]"
    if isinstance(value, Fraction):
        return said(float(value), digits)
    if isinstance(value, np.generic):
        return said(value.item(), digits)
    if isinstance(value, float):
        return repr(value) if digits >= 17 else repr(float(f"{value:.{digits}g}"))
    return repr(value)


def lines(value, digits=17, name=""):
    """Return a line for each value of nested mappings and lists of rows, with the names that lead to it."""
    if isinstance(value, Mapping) and value:
        return [
            line for key, one in value.items() for line in lines(one, digits, f"{name}.{key}" if name else str(key))
        ]
    if isinstance(value, str) and "\n" in value:
        return [f"{name}| {one}" for one in value.splitlines()]
    if isinstance(value, list) and value and all(isinstance(one, str | Mapping) for one in value):
        return [f"{name}[{at}]: {one if isinstance(one, str) else said(one, digits)}" for at, one in enumerate(value)]
    whole = value if isinstance(value, str) else said(value, digits)
    return [f"{name}: {whole}" if name else whole]


def blocks(text, first=FIRST):
    """Return each line that is kept of a text, with the lines that it stands for."""
    made, of = [], []
    for at, line in enumerate(text.splitlines()):
        of.append(line)
        if at < first or len(of) == BLOCK or zlib.crc32(line.encode("utf-8", "replace")) % ENDS == 0:
            made.append((_shown(of), of))
            of = []
    return [*made, (_shown(of), of)] if of else made


def _shown(of):
    """Return the line that is kept of some lines."""
    line = of[0].rstrip()
    if len(of) == 1 and len(line) <= MOST:
        return line
    checksum = hashlib.sha256("\n".join(of).encode("utf-8", "replace")).hexdigest()[:8]
    if len(of) == 1:
        return f"{line[: MOST - 16]} … {checksum}"
    return f"{line[: MOST - 16]} … {len(of)} lines {checksum}"


def _write(path, text):
    """Write a file; refuse to in a run of several processes, which would write the same file."""
    assert "PYTEST_XDIST_WORKER" not in os.environ, "kept texts are written by one process: leave out -n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="\n")


def _compare(name, made, wanted):
    """Fail where what is made differs from what is kept, with all lines of the blocks that do."""
    shown = [one for one, _ in made]
    if shown == wanted:
        return
    told = []
    for what, at, end, where, until in difflib.SequenceMatcher(None, wanted, shown, autojunk=False).get_opcodes():
        if what != "equal":
            told += [f"- {one}" for one in wanted[at:end]]
            told += [f"+ {line}" for _, of in made[where:until] for line in of]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="kept-", delete=False, encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for _, of in made for line in of))
    raise AssertionError("\n".join([f"{name}: all of it is in {file.name}; what differs:", *told[:60]]))


def same(name, text, digits=12):
    """Compare a text, or a list of lines, with the file that is kept by this name."""
    path = FOLDER / f"{name}.txt"
    made = blocks(plain(text if isinstance(text, str) else "\n".join(text), digits))
    if os.environ.get("DETMAP_KEEP"):
        _write(path, "".join(f"{one}\n" for one, _ in made))
    _compare(name, made, path.read_text("utf-8").splitlines())


class Kept:
    """Cells, each a function whose value is kept, by name, in one file of `FOLDER`."""

    def __init__(self, name, digits=17):
        self.path, self.digits = FOLDER / f"{name}.txt", digits
        self.cells = {}

    def add(self, name, function, *args, **options):
        name = plain(" ".join(name.split()))
        assert name not in self.cells
        self.cells[name] = lambda: function(*args, **options)

    def blocks(self, name):
        """Return the blocks of a cell, one line for an error of detmap."""
        try:
            value = self.cells[name]()
        except detmap.DetmapError as error:
            value = {type(error).__name__: told(error)}
        text = value if isinstance(value, str) else "\n".join(lines(value, self.digits))
        return blocks(plain(text, self.digits), FIRST_OF_CELL)

    def holds(self, name):
        """Compare the value of a cell with the one that is kept."""
        made = self.blocks(name)
        if os.environ.get("DETMAP_KEEP"):
            held = self._sections() if self.path.exists() else {}
            held[name] = [one for one, _ in made]
            told = {one: held[one] for one in self.cells if one in held}
            _write(self.path, "".join(f"{one}\n" + "".join(f"  {row}\n" for row in of) for one, of in told.items()))
            self.__dict__.pop("_kept", None)
        else:
            assert list(self.kept) == list(self.cells)
        _compare(f"{self.path.stem}: {name}", made, self.kept[name])

    @property
    def kept(self):
        if "_kept" not in self.__dict__:
            self._kept = self._sections()
        return self._kept

    def _sections(self):
        """Return by name of a cell the lines that the file has of it."""
        found, of = {}, []
        for line in self.path.read_text("utf-8").splitlines():
            if line.startswith("  "):
                of.append(line[2:])
            else:
                of = found[line] = []
        return found
