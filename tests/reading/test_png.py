"""Label maps of PNG files: what is read, and which byte of a file is refused by which message."""

from __future__ import annotations

import io
import struct
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from detmap.errors import InputError, MissingDependencyError
from detmap.reading import png
from detmap.reading.png import label_maps
from detmap.system import limits

MAGIC = b"\x89PNG\r\n\x1a\n"
DAMAGED = "; write the file again"


def chunk(kind, data, wrong=0):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data) ^ wrong)


def header(width=3, height=2, depth=8, kind=2, interlaced=0, wrong=0):
    return MAGIC + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced), wrong)


IDS = np.array([[1, 258, 70000], [0, 16777215, 258]], np.uint32)
ROWS = b"".join(b"\0" + b"".join(int(one).to_bytes(3, "little") for one in row) for row in IDS)
DATA = zlib.compress(ROWS)
GOOD = header() + chunk(b"IDAT", DATA) + chunk(b"IEND", b"")


def pixels(data):
    (made,) = label_maps([(data, "f")])
    return made.pixels().tolist()


def test_ids_of_colours():
    assert pixels(GOOD) == IDS.tolist()
    parts = (
        header() + chunk(b"tEXt", b"any") + chunk(b"IDAT", DATA[:5]) + chunk(b"IDAT", b"") + chunk(b"IDAT", DATA[5:])
    )
    assert pixels(parts + chunk(b"tIME", b"odd", wrong=1) + chunk(b"IEND", b"") + b"behind") == IDS.tolist()
    clear = b"".join(b"\0" + b"".join(int(one).to_bytes(3, "little") + b"\x07" for one in row) for row in IDS)
    assert pixels(header(kind=6) + chunk(b"IDAT", zlib.compress(clear)) + chunk(b"IEND", b"")) == IDS.tolist()
    assert label_maps([]) == []
    several = label_maps([(GOOD, "a"), (GOOD, "b")])
    assert [one.pixels().tolist() for one in several] == [IDS.tolist()] * 2


def interlaced():
    """Two passes of Adam7 hold the pixels of a file of 2 x 1: the first pixel, and the second one."""
    return header(2, 1, interlaced=1) + chunk(b"IDAT", zlib.compress(b"\0\1\0\0\0\2\1\0")) + chunk(b"IEND", b"")


def test_interlaced_files_among_others(monkeypatch):
    made = label_maps([(interlaced(), "a"), (GOOD, "b"), (interlaced(), "c")])
    assert [one.pixels().tolist() for one in made] == [[[1, 258]], IDS.tolist(), [[1, 258]]]
    broken = header(2, 1, interlaced=1) + chunk(b"IDAT", b"nothing") + chunk(b"IEND", b"")
    with pytest.raises(InputError, match=r"^f: is damaged: .*; write the file again$"):
        pixels(broken)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingDependencyError, match=r"^reading interlaced PNG files needs pillow: "):
        pixels(interlaced())


NO_PNG = "is not a PNG file; label maps are PNG files"
NO_MAP = "is no label map (got {}); write ids of segments as 8-bit RGB: id = R + 256 G + 65536 B"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", NO_PNG),
        (b"\x88" + GOOD[1:], NO_PNG),
        (GOOD[:12] + b"IDAT" + GOOD[16:], NO_PNG),
        (GOOD[:32], NO_PNG),
        (header(depth=16), NO_MAP.format("'RGB, 16 bits'")),
        (header(kind=0), NO_MAP.format("'gray, 8 bits'")),
        (header(kind=3, depth=4), NO_MAP.format("'a palette, 4 bits'")),
        (header(kind=4), NO_MAP.format("'gray with transparency, 8 bits'")),
        (header(kind=5), NO_MAP.format("'colours of kind 5, 8 bits'")),
        (header(width=0), "has a size that cannot be (got '0 x 2')"),
        (header(height=0), "has a size that cannot be (got '3 x 0')"),
        (header(width=2**31), f"has a size that cannot be (got '{2**31} x 2')"),
        (header(height=2**31), f"has a size that cannot be (got '3 x {2**31}')"),
        (header(2**16, 2**15), "has a size that cannot be (got '65536 x 32768')"),
        (header() + chunk(b"IDAT", DATA), f"is damaged: it ends too early{DAMAGED}"),
        (GOOD[:-1], f"is damaged: it ends too early{DAMAGED}"),
        (header(wrong=1) + GOOD[33:], f"is damaged: a check sum does not hold{DAMAGED}"),
        (header() + chunk(b"IDAT", DATA, 1) + chunk(b"IEND", b""), f"is damaged: a check sum does not hold{DAMAGED}"),
        (header() + chunk(b"IEND", b""), f"is damaged: its pixels are not compressed as zlib does{DAMAGED}"),
        (header() + chunk(b"IDAT", DATA[:9]) + chunk(b"IEND", b""),
         f"is damaged: its pixels are not compressed as zlib does{DAMAGED}"),
        (header() + chunk(b"IDAT", b"\x77" + DATA[1:]) + chunk(b"IEND", b""),
         f"is damaged: its pixels are not compressed as zlib does{DAMAGED}"),
        (header() + chunk(b"IDAT", DATA[:1] + b"\x9d" + DATA[2:]) + chunk(b"IEND", b""),
         f"is damaged: its pixels are not compressed as zlib does{DAMAGED}"),
        (header() + chunk(b"IDAT", b"\x78\xbb" + DATA[2:]) + chunk(b"IEND", b""),
         f"is damaged: its pixels are not compressed as zlib does{DAMAGED}"),
        (header() + chunk(b"IDAT", DATA[:2] + b"\xff" * 20) + chunk(b"IEND", b""),
         f"is damaged: its compressed pixels are no valid code{DAMAGED}"),
        (header() + chunk(b"IDAT", zlib.compress(ROWS + b"\0")) + chunk(b"IEND", b""),
         f"is damaged: there are more pixels than the header says{DAMAGED}"),
        (header() + chunk(b"IDAT", zlib.compress(ROWS[:-1])) + chunk(b"IEND", b""),
         f"is damaged: pixels are missing{DAMAGED}"),
        (header() + chunk(b"IDAT", zlib.compress(b"\5" + ROWS[1:])) + chunk(b"IEND", b""),
         f"is damaged: a row has no known filter{DAMAGED}"),
    ],
    ids=map(str, range(27)),
)  # fmt: skip
def test_every_way_to_be_no_label_map(data, says):
    with pytest.raises(InputError) as caught:
        label_maps([(GOOD, "good"), (data, "f")])
    assert str(caught.value) == f"f: {says}"


def test_the_limit_of_pixels(monkeypatch):
    wide = zlib.compress(b"\0" * 8 * 301)
    data = header(100, 8) + chunk(b"IDAT", wide) + chunk(b"IEND", b"")
    monkeypatch.setattr(png, "most_inflated", lambda size: 8 * 301)
    assert pixels(data) == [[0] * 100] * 8
    monkeypatch.setattr(png, "most_inflated", lambda size: 8 * 301 - 1)
    with pytest.raises(InputError) as caught:
        pixels(data)
    assert (
        str(caught.value) == f"f: has 100 x 8 pixels, which take more memory than the limit; {limits.INFLATED.advice()}"
    )
    assert pixels(GOOD) == IDS.tolist()


def test_memory_that_a_thread_keeps(monkeypatch):
    memory = png._Memory()
    first = memory.runs(100)
    assert first.ends.size == first.values.size == 100
    assert memory.runs(100) is first
    assert memory.runs(50) is first
    second = memory.runs(101)
    assert second.ends.size == 101
    rows = memory.scratch(10)
    assert memory.scratch(10) is rows
    assert memory.scratch(5) is rows
    monkeypatch.setattr(png, "_KEPT", 8 * 200)
    assert memory.runs(200) is memory.runs(200)
    large = memory.runs(201)
    assert large is not memory.runs(201)
    assert memory.runs(200).ends.size == 200
    far = memory.scratch(1 << 20)
    assert far is not memory.scratch(1 << 20)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_files_of_another_library(seed, channels):
    rng = np.random.default_rng(seed)
    files, wanted = [], []
    for n in range(6):
        height, width = rng.integers(1, 40, 2).tolist()
        image = rng.integers(0, 3 if n % 2 else 256, (height, width, channels)).astype(np.uint8)
        out = io.BytesIO()
        Image.fromarray(image).save(out, "PNG", compress_level=n)
        files.append((out.getvalue(), str(n)))
        wanted.append((image[..., 0] + (image[..., 1].astype(int) << 8) + (image[..., 2].astype(int) << 16)).tolist())
    assert [one.pixels().tolist() for one in label_maps(files)] == wanted
