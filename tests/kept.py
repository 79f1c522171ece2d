"""Texts that users see, kept word for word in ``fixtures/kept``.

A change that is meant is written by ``DETMAP_KEEP=1 pytest FILE``, and is seen in the difference of those files.
"""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path

import detmap

KEPT = Path(__file__).resolve().parent.parent / "fixtures" / "kept"

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
    path = KEPT / f"{name}.txt"
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
