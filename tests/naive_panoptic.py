"""A naive twin of panoptic quality, pixel by pixel in Python, and of PNG's filters; imports nothing of the library."""

from __future__ import annotations

import struct
import zlib
from collections import Counter

import numpy as np


def image(truth, segments, found, predicted):
    """Lists of (category, IoU) of matches, and of the categories of false and missed segments, of one image."""
    truth, found = truth.ravel().tolist(), found.ravel().tolist()
    shared = Counter(zip(truth, found, strict=True))
    pixels = Counter(found)
    own = {one["id"]: one for one in segments}
    theirs = {one["id"]: one for one in predicted}
    matches, missed, false = [], [], []
    done, used = set(), set()
    for g, p in sorted(shared):
        if g not in own or p not in theirs or own[g].get("iscrowd") == 1:
            continue
        if own[g]["category_id"] != theirs[p]["category_id"]:
            continue
        union = pixels[p] + own[g]["area"] - shared[g, p] - shared[0, p]
        if shared[g, p] / union > 0.5:
            matches.append((own[g]["category_id"], shared[g, p] / union))
            done.add(g)
            used.add(p)
    crowds = {}
    for g, one in own.items():
        if g in done:
            continue
        if one.get("iscrowd") == 1:
            crowds[one["category_id"]] = g
        else:
            missed.append(one["category_id"])
    for p, one in theirs.items():
        if p in used:
            continue
        left_out = shared[0, p]
        if one["category_id"] in crowds:
            left_out += shared[crowds[one["category_id"]], p]
        if not left_out / pixels[p] > 0.5:
            false.append(one["category_id"])
    return matches, false, missed


def cut(images, parts):
    """So many lists of images: the first ones have one more where they do not come out even."""
    least, more = divmod(len(images), parts)
    out, begin = [], 0
    for part in range(parts):
        end = begin + least + (part < more)
        out.append(images[begin:end])
        begin = end
    return out


def panoptic_quality(categories, images, parts=1):
    """What panopticapi returns, of images as `image` takes them; None for a group without categories."""
    made = [image(*one) for one in images]
    iou, counts = {}, {}
    for part in cut(made, parts):
        own = {}
        for matches, false, missed in part:
            for category, value in matches:
                own[category] = own.get(category, 0.0) + value
            for place, of in enumerate(([c for c, _ in matches], false, missed)):
                for category in of:
                    counts.setdefault(category, [0, 0, 0])[place] += 1
        for category, value in own.items():
            iou[category] = iou.get(category, 0.0) + value
    out, per_class = {}, {}
    for group, wanted in (("All", (0, 1)), ("Things", (1,)), ("Stuff", (0,))):
        pq = sq = rq = n = 0
        for one in categories:
            if one["isthing"] not in wanted:
                continue
            tp, fp, fn = counts.get(one["id"], (0, 0, 0))
            own = {"pq": 0.0, "sq": 0.0, "rq": 0.0}
            if tp + fp + fn:
                total, value = tp + 0.5 * fp + 0.5 * fn, iou.get(one["id"], 0.0)
                own = {"pq": value / total, "sq": value / tp if tp else 0.0, "rq": tp / total}
                n += 1
            pq, sq, rq = pq + own["pq"], sq + own["sq"], rq + own["rq"]
            per_class[one["id"]] = own
        out[group] = {"pq": pq / n, "sq": sq / n, "rq": rq / n, "n": n} if n else None
    return {**out, "per_class": per_class}


def paeth(a, b, c):
    """The one of left, upper and upper left that is nearest to a + b - c; of equally near ones the first."""
    three = np.stack([a, b, c])
    return np.take_along_axis(three, np.abs(a + b - c - three).argmin(axis=0)[None], 0)[0]


def filtered(pixels, kinds):
    """The rows of an image, uint8 of shape (H, W, C), behind the numbers of their filters, as PNG has them."""
    pixels = np.asarray(pixels, np.int64)
    corner, upper, left = (np.zeros_like(pixels) for _ in range(3))
    left[:, 1:], upper[1:], corner[1:, 1:] = pixels[:, :-1], pixels[:-1], pixels[:-1, :-1]
    added = [np.zeros_like(pixels), left, upper, (left + upper) // 2, paeth(left, upper, corner)]
    rows = [((pixels[y] - added[kind][y]) % 256).astype(np.uint8) for y, kind in enumerate(kinds)]
    return b"".join(bytes([kind]) + row.tobytes() for kind, row in zip(kinds, rows, strict=True))


def chunk(kind, data):
    """A chunk of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    rows, height, width, channels=3, level=6, strategy=zlib.Z_DEFAULT_STRATEGY, pieces=1, depth=8, kind=None, way=0
):
    """A PNG file of filtered rows; `pieces` is the number of chunks that hold them."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 15, 8, strategy)
    data = packer.compress(rows) + packer.flush()
    size = -(-len(data) // pieces)
    head = struct.pack(">IIBBBBB", width, height, depth, {3: 2, 4: 6}[channels] if kind is None else kind, 0, 0, way)
    parts = [chunk(b"IDAT", data[i : i + size]) for i in range(0, len(data), size)]
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(parts) + chunk(b"IEND", b"")


def coloured(ids, channels=3):
    """The colours of ids, uint8 of shape (H, W, channels); the fourth is arbitrary."""
    ids = np.asarray(ids, np.int64)
    parts = [ids & 255, ids >> 8 & 255, ids >> 16, ids * 7 & 255]
    return np.stack(parts[:channels], axis=-1).astype(np.uint8)
