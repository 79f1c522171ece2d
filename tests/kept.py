"""Texts that users see and results written as lines, kept word for word in ``fixtures/kept``.

A change that is meant is written by ``DETMAP_KEEP=1 pytest FILE`` for those of `same`, by ``scripts/keep.py`` for those of
`Kept`, and is seen in the difference of these files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import zlib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np

import detmap

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "kept"

#: Longer values of attributes, such as curves, are kept as their first characters and a checksum of all.
_LONG = 72

#: What no difference of results is: styles, scripts, pictures, and what readers of screens are told of the layout.
_LEFT_OUT = re.compile(
    r"<style>.*?</style>|<script>.*?</script>|<meta [^>]*>|<!doctype html>"
    r"| (?:id|scope|tabindex|role|aria-[a-z]+|decoding|loading|autocomplete|preserveAspectRatio|dy|text-anchor)=\"[^\"]*\"",
    re.DOTALL,
)

#: Numbers whose last digits depend on the version of numpy and on the processor.
_MANY_DIGITS = re.compile(r"\b\d+\.\d{13,}(?:e-?\d+)?")


def same(name, text):
    """Compare a text with the kept one."""
    path = FOLDER / f"{name}.txt"
    text = _MANY_DIGITS.sub(lambda found: f"{float(found[0]):.12g}", text)
    text = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", text)  # what numpy 2 writes around its scalars
    text = re.sub(r'"(python|numpy|numba)": "[^"]+"', r'"\1": "VERSION"', text)
    text = re.sub(
        r"[0-9a-f]{64}|(?<=[`d] )[0-9a-f]{16}\b|(?<=Card: `)[0-9a-f]{16}|(?<=detmap-)[0-9a-f]{8}\b", "HASH", text
    )
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "DATE", text.replace(detmap.__version__, "VERSION"))
    if os.environ.get("DETMAP_KEEP"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    wanted = path.read_text("utf-8")
    if os.sep != "/":  # paths on Windows
        text, wanted = (one.replace(os.sep, "/") for one in (text, wanted))
    assert text.splitlines() == wanted.splitlines()


def outlined(page):
    """Return the elements of a page, one in a line, with their texts and with what is drawn."""
    text = _LEFT_OUT.sub("", page)
    text = re.sub(r"data:image/[^\"]*", "data", text)
    text = re.sub(r"</[a-z0-9]+>", "", text)
    text = re.sub(r"\s*\n\s*", " ", text).replace("<", "\n<")
    text = re.sub(r"\n(<t[dh]|<strong|<br|<span)", r" \1", text)  # a row of a table is a line
    text = re.sub(rf'="([^"]{{{_LONG},}})"', _shortened, text)
    return re.sub(r" +\n", "\n", text).strip() + "\n"


def _shortened(found):
    return f'="{found[1][:40]}… {len(found[1])} characters, {zlib.crc32(found[1].encode()):08x}"'


#: Most characters of a line that are written out; the hash of all follows.
MOST = 120


#: Most values of an array that are written out; of a longer one the hash of all is.
LONG = 24


def said(value, digits=17):
    """Return a value as one line of text, floats with `digits` significant digits, by which 17 tell all floats apart."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{said(key, digits)}: {said(one, digits)}" for key, one in value.items()) + "}"
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        names = value._fields if hasattr(value, "_fields") else [one.name for one in dataclasses.fields(value)]
        return type(value).__name__ + said({name: getattr(value, name) for name in names}, digits)
    if isinstance(value, np.ndarray):
        if value.size > LONG and (digits >= 17 or value.dtype.kind != "f"):
            plain = np.where(np.isnan(value), np.nan, value) if value.dtype.kind == "f" else value
            return f"{value.dtype}{list(value.shape)}(#{hashlib.sha256(plain.tobytes()).hexdigest()[:16]})"
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


def short(line):
    """Return a line, or its beginning and the hash of all of it."""
    return line if len(line) <= MOST else f"{line[:MOST]} … {hashlib.sha256(line.encode()).hexdigest()[:12]}"


def sections(path):
    """Return by name of a cell the lines that a file of `FOLDER` has of it."""
    found, of = {}, []
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("  "):
            of.append(line[2:])
        else:
            of = found[line] = []
    return found


class Kept:
    """Cells, each a function whose value is kept, by name, in a file of `FOLDER`."""

    def __init__(self, name, digits=17):
        self.path, self.digits = FOLDER / f"{name}.txt", digits
        self.cells = {}

    def add(self, name, function, *args, **options):
        name = " ".join(name.split())
        assert name not in self.cells
        self.cells[name] = lambda: function(*args, **options)

    def lines(self, name):
        """Return the lines of a cell, one for an error of detmap."""
        try:
            value = self.cells[name]()
        except detmap.DetmapError as error:
            value = {type(error).__name__: str(error)}
        return [short(line) for line in lines(value, self.digits)]

    def holds(self, name):
        """Whether the value of a cell is the one that is kept, which `pytest` compares line by line."""
        assert self.lines(name) == self.kept[name]

    @property
    def kept(self):
        if "_kept" not in self.__dict__:
            self._kept = sections(self.path)
        return self._kept

    def write(self):
        text = "".join(f"{name}\n" + "".join(f"  {line}\n" for line in self.lines(name)) for name in self.cells)
        self.path.write_text(text, "utf-8")
