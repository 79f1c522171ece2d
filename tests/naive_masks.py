"""Naive twins of the mask kernels: sets of pixels, one at a time. Imports nothing of detmap."""

from __future__ import annotations

import itertools
import math

import numpy as np


def runs_of(mask):
    """The run lengths of a bitmap (rows of 0 and 1), column by column, background first."""
    lengths, inside = [0], 0
    for column in zip(*mask, strict=True):
        for value in column:
            if bool(value) != inside:
                lengths.append(0)
                inside = bool(value)
            lengths[-1] += 1
    return lengths


def string_of(lengths):
    text = ""
    for i, length in enumerate(lengths):
        value = length - lengths[i - 2] if i > 2 else length
        while not -16 <= value < 16:
            text += chr(48 + 32 + value % 32)
            value //= 32
        text += chr(48 + value % 32)
    return text


def lengths_of(text):
    lengths, value, bits = [], 0, 0
    for character in text:
        group = ord(character) - 48
        value += group % 32 << bits
        bits += 5
        if group < 32:
            value -= (group >= 16) << bits
            lengths.append(value + (lengths[-2] if len(lengths) > 2 else 0))
            value = bits = 0
    return lengths


def pixels_of(lengths, height):
    """The foreground as a set of (row, column)."""
    out, at = set(), 0
    for i, length in enumerate(lengths):
        if i % 2:
            out |= {(p % height, p // height) for p in range(at, at + length)}
        at += length
    return out


def box_of(pixels):
    if not pixels:
        return [0, 0, 0, 0]
    rows, columns = zip(*pixels, strict=True)
    left, top = min(columns), min(rows)
    return [left, top, max(columns) - left + 1, max(rows) - top + 1]


def coded_box(lengths, height):
    """As `box_of`, but a run that goes on in the next column makes the box as high as the image; of runs, not of pixels."""
    box, at = box_of(pixels_of(lengths, height)), 0
    for i, length in enumerate(lengths):
        if i % 2 and length and at // height < (at + length - 1) // height:
            box[1], box[3] = 0, height
        at += length
    return box


def iou(one, other, crowd=False):
    shared = len(one & other)
    return shared / (len(one) if crowd else len(one | other)) if shared else 0.0


def polygon(points, height, width):
    """The pixels of a polygon: the outline is walked point by point on a grid five times as fine."""
    fine = [(int(5 * x + 0.5), int(5 * y + 0.5)) for x, y in points]
    walk = []
    for (x, y), (to_x, to_y) in zip(fine, [*fine[1:], *fine[:1]], strict=True):
        across = abs(to_x - x) >= abs(to_y - y)
        back = x > to_x if across else y > to_y
        if back:
            x, y, to_x, to_y = to_x, to_y, x, y
        steps = max(abs(to_x - x), abs(to_y - y))
        slope = ((to_y - y) if across else (to_x - x)) / max(steps, 1)
        edge = [
            (x + t, int(y + slope * t + 0.5)) if across else (int(x + slope * t + 0.5), y + t) for t in range(steps + 1)
        ]
        walk += edge[::-1] if back else edge
    turns = []
    for (x, y), (to_x, to_y) in itertools.pairwise(walk):
        column = ((to_x if to_x < x else to_x - 1) + 0.5) / 5 - 0.5
        if x == to_x or column != int(column) or not 0 <= column < width:
            continue
        row = math.ceil(min(max((min(y, to_y) + 0.5) / 5 - 0.5, 0), height))
        turns.append(int(column) * height + row)
    return {(p % height, p // height) for p in range(height * width) if sum(turn <= p for turn in turns) % 2}


def boundary(pixels, height, width, dilation):
    distance = max(round(dilation * math.sqrt(height * height + width * width)), 1)
    near = range(-distance, distance + 1)
    return {(r, c) for r, c in pixels if any((r + i, c + j) not in pixels for i in near for j in near)}


def regions(pixels):
    """The parts of a set of pixels that are connected by sides."""
    left, found = set(pixels), []
    while left:
        part, ahead = set(), [left.pop()]
        while ahead:
            r, c = ahead.pop()
            part.add((r, c))
            near = {(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)} & left
            left -= near
            ahead += near
        found.append(part)
    return found


def united(polygons, height, width):
    """The pixels of a mask of several polygons."""
    pixels = set()
    for outline in polygons:
        pixels |= polygon(list(zip(outline[::2], outline[1::2], strict=False)), height, width)
    return pixels


def segmentation(value, height, width):
    """The pixels of a record's segmentation, its area and its box; height and width are those of its image."""
    if isinstance(value, list):
        pixels = united(value, height, width)
        lengths = runs_of([[(r, c) in pixels for c in range(width)] for r in range(height)])
    else:
        height = value["size"][0]
        counts = value["counts"]
        lengths = lengths_of(counts) if isinstance(counts, str) else counts
        pixels = pixels_of(lengths, height)
    return pixels, len(pixels), coded_box(lengths, height)


def likeness(found, truth, box, area, sigmas):
    """OKS of two poses x, y, v."""
    x, y = np.array(found[0::3], float), np.array(found[1::3], float)
    to_x, to_y, v = (np.array(truth[k::3], float) for k in range(3))
    if (v > 0).any():
        dx, dy = x - to_x, y - to_y
    else:
        left, top, width, height = box
        dx = np.maximum(0, left - width - x) + np.maximum(0, x - (left + width * 2))
        dy = np.maximum(0, top - height - y) + np.maximum(0, y - (top + height * 2))
    e = (dx**2 + dy**2) / (np.array(sigmas) * 2) ** 2 / (area + np.spacing(1)) / 2
    kept = e[v > 0] if (v > 0).any() else e
    return np.sum(np.exp(-kept)) / len(kept)
