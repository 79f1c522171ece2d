"""PNG files become runs of ids: inflated, unfiltered, whatever filters and compression they have; damage is an error."""

from __future__ import annotations

import io
import zlib

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legs import examples
from naive_panoptic import chunk, coloured, filtered, png
from panoptic_scenes import maps

from detmap.data.segments import LabelMap
from detmap.errors import InputError
from detmap.kernels import inflate, kernel, readonly
from detmap.panoptic import evaluate
from detmap.reading.png import _Memory, label_maps

STRATEGIES = [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED]


#: Numba takes 9 s to compile the kernel below, which is not in the object. What is in the object inflates PNG files below.
of_its_own = pytest.mark.jit


@kernel
def inflate_some(data, codes, out, i, pause, end):
    return inflate.inflate(data, codes, out, i, pause, end)


def inflated(data, size):
    out = np.empty(size + inflate.STEP + inflate.SLACK, np.uint8)
    packed = readonly(np.frombuffer(data, np.uint8), np.uint8)
    number = inflate_some(packed, inflate.codes(), out, 0, size + 1, size)
    return number if number < 0 else out[:number].tobytes()


def label_map(data, name):
    return label_maps([(data, name)])[0]


def deflated(data, level, strategy, memory=8):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, memory, strategy)
    return (packer.compress(data) + packer.flush()).ljust(8, b"\0")


@of_its_own
@settings(max_examples=examples(300), deadline=None)
@given(
    parts=st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 60)), max_size=12),
    level=st.integers(0, 9),
    strategy=st.sampled_from(STRATEGIES),
    memory=st.integers(1, 9),
)
def test_what_zlib_has_compressed_is_inflated(parts, level, strategy, memory):
    data = b"".join(part * times for part, times in parts)
    packed = deflated(data, level, strategy, memory)
    assert inflated(packed, len(data)) == data
    if data:
        assert inflated(packed, len(data) - 1) == inflate.TOO_LONG


@of_its_own
def test_every_distance_and_length_of_copies():
    """What repeats after so many bytes is copied from there, also where it is shorter than what is copied."""
    rng = np.random.default_rng(4)
    for distance in (*range(1, 40), 255, 256, 257, 4097, 32_768):
        part = rng.bytes(distance)
        far = numba.config.DISABLE_JIT and distance > 1000  # which takes long
        for length in (3, 258) if far else (3, 4, 7, 8, 9, 15, 16, 17, 31, 257, 258, 259, 300, 600):
            data = part + (part * (length // distance + 1))[:length] + rng.bytes(5)
            assert inflated(deflated(data, 9, zlib.Z_DEFAULT_STRATEGY, 9), len(data)) == data


@of_its_own
@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), level=st.integers(0, 9), strategy=st.sampled_from(STRATEGIES))
def test_pieces_are_the_whole(seed, level, strategy):
    """Pauses at any length, after which all but the last 32 KiB may be dropped."""
    rng = np.random.default_rng(seed)
    part = rng.integers(0, 4, int(rng.integers(1, 40_000)), np.uint8).tobytes()
    most = 45_000 if numba.config.DISABLE_JIT else 100_000
    data = (part * 4)[: int(rng.integers(1, most))] + rng.bytes(300)
    packed = readonly(np.frombuffer(deflated(data, level, strategy), np.uint8), np.uint8)
    codes, out, found, kept = inflate.codes(), np.empty(1 << 18, np.uint8), b"", 0
    while codes.at[1:].tolist() != [0, 1]:
        pause = kept + int(rng.integers(1, 30_000))
        end = inflate_some(packed, codes, out, kept, pause, kept + len(data) - len(found))
        assert kept <= end < pause + inflate.STEP
        found += out[kept:end].tobytes()
        kept = min(end, inflate.HISTORY)
        out[:kept] = out[end - kept : end].copy()
    assert found == data


def by_hand(*codes):
    """A last block of fixed codes, each given by its bits as RFC 1951 writes them."""
    bits = "110" + "".join(codes)  # the last block, and its kind, the lowest bit first
    data = [int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8)]
    return bytes(data).ljust(8, b"\0")


@of_its_own
def test_a_copy_from_before_the_beginning():
    """Literal 0, then three bytes from one or two bytes before: there is only one."""
    literal, three, end = "00110000", "0000001", "0000000"
    assert inflated(by_hand(literal, three, "00000", end), 9) == bytes(4)
    assert inflated(by_hand(literal, three, "00001", end), 9) == inflate.DAMAGED
    assert inflated(by_hand(literal, three, "11110", end), 9) == inflate.DAMAGED  # a code that means nothing
    assert inflated(by_hand("11000110", end), 9) == inflate.DAMAGED  # likewise, of lengths
    assert inflated(by_hand(literal), 9) == bytes(1)  # zeros behind it are the code of the end


@of_its_own
def test_long_codes():
    """Bytes whose numbers fall by halves have codes of up to 15 bits."""
    data = b"".join(bytes([k]) * max(1, 2 ** (14 - k)) for k in range(20))
    mixed = np.random.default_rng(2).permutation(np.frombuffer(data, np.uint8)).tobytes()
    assert inflated(deflated(mixed, 9, zlib.Z_HUFFMAN_ONLY, 9), len(mixed)) == mixed


def test_ids_that_share_a_slot_of_the_table_of_recent_ids():
    ids = np.array([1, 256, 65536, 257 * 256, 1, 65536, 256, 2**23, 128 << 8, 128, 2**31, 1], np.uint32)
    segments = [{"id": int(one), "category_id": 7, "area": int((ids == one).sum())} for one in np.unique(ids)]
    found = {"annotations": [{"image_id": 1, "segments_info": segments}]}
    truth = {**found, "categories": [{"id": 7, "isthing": 1}]}
    assert evaluate(truth, found, {1: ids[None]}, {1: ids[None]}).counts.tolist() == [
        [len(segments), 0, 0, len(segments)]
    ]


@of_its_own
@settings(max_examples=examples(400), deadline=None)
@given(data=st.binary(min_size=8, max_size=200))
def test_any_bytes_are_inflated_as_zlib_does_or_refused(data):
    packer = zlib.decompressobj(-15)
    try:
        expected = packer.decompress(data, 5000)
        whole = packer.eof
    except zlib.error:
        whole = False
    found = inflated(data, 5000)
    if whole:
        assert found == expected
    else:
        assert isinstance(found, int)


@of_its_own
@settings(max_examples=examples(200), deadline=None)
@given(
    data=st.binary(min_size=50, max_size=400), level=st.integers(1, 9), at=st.integers(0, 400), byte=st.integers(1, 255),
    strategy=st.sampled_from(STRATEGIES),
)  # fmt: skip
def test_a_damaged_byte_gives_what_zlib_gives_or_is_refused(data, level, at, byte, strategy):
    packed = bytearray(deflated(data, level, strategy))
    packed[at % len(packed)] ^= byte
    packer = zlib.decompressobj(-15)
    try:
        expected = packer.decompress(bytes(packed), 40_000)
        whole = packer.eof
    except zlib.error:
        whole = False
    found = inflated(bytes(packed), 40_000)
    assert found == expected if whole else isinstance(found, int)


@settings(max_examples=examples(300), deadline=None)
@given(
    made=maps(),
    data=st.data(),
    level=st.integers(0, 9),
    strategy=st.sampled_from(STRATEGIES),
    channels=st.sampled_from([3, 4]),
    pieces=st.integers(1, 4),
)
def test_every_filter_and_compression_gives_the_same_ids(made, data, level, strategy, channels, pieces):
    ids, _ = made
    kinds = data.draw(st.lists(st.integers(0, 4), min_size=len(ids), max_size=len(ids)))
    file = png(filtered(coloured(ids, channels), kinds), *ids.shape, channels, level, strategy, pieces)
    found = label_map(file, "map.png")
    assert np.array_equal(found.pixels(), ids)
    runs = np.flatnonzero(np.diff(found.ids.astype(np.int64)) == 0)
    assert np.all(found.ends[runs] % ids.shape[1] == 0)  # runs end where the id changes, or a row does
    assert np.array_equal(LabelMap.of(ids, "map").pixels(), ids)
    assert np.array_equal(LabelMap.of(coloured(ids, channels), "map").pixels(), ids)


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), kind=st.integers(0, 4))
def test_noise_and_wide_rows(seed, kind):
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 3, (4, 300)) * int(rng.integers(1, 2**22)) if seed % 2 else rng.integers(0, 2**24, (3, 70))
    assert np.array_equal(label_map(png(filtered(coloured(ids), [kind] * len(ids)), *ids.shape), "").pixels(), ids)


@pytest.mark.compiled
@pytest.mark.parametrize("level", [0, 1, 9])
def test_maps_larger_than_the_window(monkeypatch, level):
    """Rows that repeat after almost 32 KiB, in more bytes than the window holds; several files in one call."""
    monkeypatch.setattr("detmap.kernels.png._WINDOW", 1)
    monkeypatch.setattr("detmap.reading.png._memory", _Memory())
    wide = np.tile(np.random.default_rng(level).integers(0, 2**24, (10, 1000)), (5, 1))
    flat = np.full((300, 400), 70001)
    files = [png(filtered(coloured(ids), [kind] * len(ids)), *ids.shape, 3, level) for ids, kind in
             ((wide, 0), (flat, 2), (wide, 1))]  # fmt: skip
    found = label_maps([(data, "") for data in files])
    assert all(np.array_equal(made.pixels(), ids) for made, ids in zip(found, (wide, flat, wide), strict=True))


def test_files_that_need_more_room_than_is_kept(monkeypatch):
    """The kernel stops before a map that may not fit, and goes on with it in another call."""
    monkeypatch.setattr("detmap.reading.png._ROOM", 0)
    monkeypatch.setattr("detmap.reading.png._memory", _Memory())
    ids = [np.random.default_rng(k).integers(0, 2**24, (k + 1, 2 * k + 3)) for k in range(6)]
    found = label_maps([(png(filtered(coloured(one), [1] * len(one)), *one.shape), "") for one in ids])
    assert all(np.array_equal(made.pixels(), one) for made, one in zip(found, ids, strict=True))


@pytest.mark.parametrize("kind", range(5))
def test_each_filter_of_noise(kind):
    ids = np.random.default_rng(kind).integers(0, 2**24, (8, 12))
    ids[4:] &= 0x030303  # close values, among which those of the left, upper and upper left are often as near
    assert np.array_equal(label_map(png(filtered(coloured(ids), [kind] * 8), 8, 12), "").pixels(), ids)


def test_pillow_writes_what_is_read_interlaced_too():
    image = pytest.importorskip("PIL.Image")
    ids = np.random.default_rng(1).integers(0, 5, (30, 40)).repeat(3, axis=0).repeat(4, axis=1) * 70001
    for mode in ("RGB", "RGBA"):
        out = io.BytesIO()
        image.fromarray(coloured(ids, len(mode)), mode).save(out, "PNG")
        assert np.array_equal(label_map(out.getvalue(), "").pixels(), ids)
    # One pixel is the first of seven passes, and the only one.
    rows = filtered(coloured([[70001]]), [0])
    assert label_map(png(rows, 1, 1, way=1), "").pixels().tolist() == [[70001]]


def file(**more):
    ids = np.arange(12).reshape(3, 4) % 5
    return png(filtered(coloured(ids), [1, 2, 4]), 3, 4, **more)


def broken(change):
    data = bytearray(file())
    change(data)
    return bytes(data)


def with_pixels(data, height=3, width=4):
    head = file()[16:33]
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + head[8:13]
    return file()[:8] + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


ROWS = filtered(coloured(np.arange(12).reshape(3, 4)), [0, 0, 0])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not a PNG file"),
        (b"GIF89a", "is not a PNG file"),
        (file()[:30], "is not a PNG file"),
        (file()[:60], "ends too early"),
        (file()[:-12], "ends too early"),
        (file(kind=3), "a palette, 8 bits"),
        (file(kind=0), "gray, 8 bits"),
        (file(depth=16), "RGB, 16 bits"),
        (file(kind=9), "colours of kind 9"),
        (broken(lambda data: data.__setitem__(50, data[50] ^ 1)), "check sum"),
        (broken(lambda data: data.__setitem__(18, 1)), "check sum"),
        (with_pixels(zlib.compress(ROWS[:-1])), "pixels are missing"),
        (with_pixels(zlib.compress(ROWS + b"\0")), "more pixels than the header says"),
        (with_pixels(zlib.compress(b"\5" + ROWS[1:])), "no known filter"),
        (with_pixels(b""), "not compressed as zlib does"),
        (with_pixels(b"\0" * 20), "not compressed as zlib does"),
        (with_pixels(zlib.compress(ROWS)[:2] + b"\7" * 20), "no valid code"),
        (with_pixels(zlib.compress(ROWS)[:-20]), "is damaged"),
        (with_pixels(zlib.compress(bytes(1000)), 30_000, 60_000), "more memory than the limit"),
        (with_pixels(zlib.compress(ROWS), 0), "has a size that cannot be"),
        (with_pixels(zlib.compress(ROWS), 2**31), "has a size that cannot be"),
        (with_pixels(zlib.compress(ROWS), 60_000, 60_000), "has a size that cannot be"),
    ],
)
def test_what_is_no_label_map_is_told_in_one_line(data, says):
    with pytest.raises(InputError, match=r"map\.png") as error:
        label_map(data, "map.png")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros((2, 2)), "2-d float64"),
        (np.zeros(4, int), "1-d int64"),
        (np.zeros((2, 2, 2), np.uint8), "3-d uint8"),
        (np.array([[0, -1]]), "got -1"),
        (np.array([[0, 2**32]]), "got 4294967296"),
        (np.zeros((0, 3), int), "has a size that cannot be"),
        ([[1], [1, 2]], "is no label map"),
    ],
)
def test_arrays_that_are_no_label_maps(array, says):
    with pytest.raises(InputError, match="map of") as error:
        LabelMap.of(array, "map of 3")
    assert says in str(error.value)
