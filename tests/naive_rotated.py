"""A naive twin of overlaps of rotated boxes, in exact fractions, and of DOTA's task 1; imports nothing of the library."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
from naive import voc_ap_11, voc_ap_all_point


def cross(a, b, p):
    """Twice the signed area of a triangle."""
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def area(polygon):
    """Twice the signed area."""
    return sum(a[0] * b[1] - a[1] * b[0] for a, b in zip(polygon, polygon[1:] + polygon[:1], strict=True))


def clipped(polygon, edges):
    """What lies within a convex polygon that turns to the left."""
    for a, b in zip(edges, edges[1:] + edges[:1], strict=True):
        sides, kept = [cross(a, b, p) for p in polygon], []
        for i, (p, side) in enumerate(zip(polygon, sides, strict=True)):
            q, other = polygon[(i + 1) % len(polygon)], sides[(i + 1) % len(polygon)]
            if side >= 0:
                kept.append(p)
            if (side > 0 > other) or (side < 0 < other):
                share = Fraction(side, 1) / (side - other)
                kept.append((p[0] + (q[0] - p[0]) * share, p[1] + (q[1] - p[1]) * share))
        polygon = kept
        if not polygon:
            break
    return polygon


def triangles(quad):
    """The triangles between a corner's opposite sides, by which the development kit counts; those with an area."""
    origin = quad[3]
    for a, b in ((quad[0], quad[1]), (quad[1], quad[2])):
        size = cross(origin, a, b)
        if size:
            yield ([origin, a, b] if size > 0 else [origin, b, a]), 1 if size > 0 else -1


def convex(quad):
    """Whether a quadrilateral that turns to the left is convex."""
    return all(cross(quad[i], quad[(i + 1) % 4], quad[(i + 2) % 4]) > 0 for i in range(4))


def exact_overlap(one, other, crowd=False):
    """IoU of two rows of eight floats as a fraction; 0 where an area, or the union, is none."""
    quads = [[(Fraction(row[i]), Fraction(row[i + 1])) for i in range(0, 8, 2)] for row in (one, other)]
    quads = [quad[::-1] if area(quad) < 0 else quad for quad in quads]
    sizes = [area(quad) for quad in quads]
    if min(sizes) <= Fraction(2e-280):
        return Fraction(0)
    parts = [[(quad, 1)] if convex(quad) else list(triangles(quad)) for quad in quads]
    shared = sum(p * q * area(part) for left, p in parts[0] for right, q in parts[1] if (part := clipped(left, right)))
    union = sizes[0] if crowd else sizes[0] + sizes[1] - shared
    return min(Fraction(shared) / union, Fraction(1)) if shared > 0 and union > 0 else Fraction(0)


def rectangle(x, y, width, height, angle):
    """The corners of a rectangle, angle in radians clockwise on the screen."""
    cosine, sine = math.cos(angle), math.sin(angle)
    out = []
    for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
        p, q = a * width / 2, b * height / 2
        out += [x + p * cosine - q * sine, y + p * sine + q * cosine]
    return out


def pairs(seed, count):
    """Pairs of quadrilaterals of all sorts, (count, 8) each: ordinary, far, equal, touching, thin, empty, crossing."""
    rng = np.random.default_rng(seed)
    made = [_KINDS[i % len(_KINDS)](rng) for i in range(count)]
    return np.array([one for one, _ in made]).reshape(-1, 8), np.array([other for _, other in made]).reshape(-1, 8)


def _box(rng, size=40.0, thin=0.2):
    x, y = rng.uniform(-size, size, 2)
    return rectangle(x, y, rng.uniform(size / 4, size), size * rng.uniform(thin / 4, 1), rng.uniform(-7, 7))


def _near(rng):
    return _box(rng), _box(rng)


def _far(rng):
    one, other = (np.array(_box(rng)) for _ in range(2))
    away = np.tile(rng.uniform(-1, 1, 2) * 10.0 ** rng.integers(3, 12), 4)
    return one + away, other + away


def _equal(rng):
    one = np.array(_box(rng)) + rng.choice([0.0, 1e7])
    corners = np.roll(one.reshape(4, 2), rng.integers(4), axis=0)
    return one, (corners[::-1] if rng.random() < 0.5 else corners).reshape(-1)


def _almost_equal(rng):
    one = np.array(_box(rng))
    return one, one + rng.integers(-3, 4, 8) * np.spacing(one)


def _touching(rng):
    x, y, dx, dy = rng.integers(-9, 10, 4)
    one = np.array([x, y, x + dx, y + dy, x + dx - dy, y + dy + dx, x - dy, y + dx], float)
    moved = (one.reshape(4, 2) + [[dx, dy], [-dy, dx], [dx - dy, dx + dy]][rng.integers(3)]).reshape(-1)
    return one * 0.25, moved * 0.25


def _grid(rng):
    return rng.integers(0, 6, 8).astype(float), rng.integers(0, 6, 8).astype(float)


def _tiny(rng):
    scale = 2.0 ** float(rng.integers(-450, 480))
    return np.array(_box(rng)) * scale, np.array(_box(rng)) * scale


def _thin(rng):
    size, thin = 10.0 ** rng.uniform(0, 4), 10.0 ** -rng.uniform(2, 12)
    angle = rng.uniform(-4, 4)
    x, y = rng.uniform(-1e3, 1e3, 2)
    one = rectangle(x, y, size, size * thin, angle)
    off = rng.uniform(-1, 1) * thin * size
    return one, rectangle(
        x - math.sin(angle) * off, y + math.cos(angle) * off, size, size * thin, angle + thin * rng.normal()
    )


def _inside(rng):
    one = np.array(_box(rng, 1e3))
    return one, np.array(_box(rng, 10.0 ** rng.uniform(-3, 3))) + one[:2].tolist() * 4


def _free(rng):
    return rng.normal(0, 10, 8), rng.normal(0, 10, 8)


def _empty(rng):
    one = np.array(_box(rng))
    flat = one.copy()
    flat[4:] = flat[:4] if rng.random() < 0.5 else flat[[2, 3, 0, 1]]
    return (one, flat) if rng.random() < 0.5 else (flat, one)


_KINDS = (_near, _far, _equal, _almost_equal, _touching, _grid, _tiny, _thin, _inside, _free, _empty)


# ------------------------------------------------------------------------------------------------------------------ DOTA


def dota(truth, found, eleven=True):
    """AP by class of task 1, stable sort. `truth`: (image, class, quad, difficult); `found`: (image, class, quad, score)."""
    out = {}
    for name in sorted({one[1] for one in truth}):
        objects = defaultdict(list)
        for image, own, quad, difficult in truth:
            if own == name:
                objects[image].append((quad, difficult, [False]))
        rows = sorted((one for one in found if one[1] == name), key=lambda one: -one[3])
        ranks, rank = [], 0
        for image, _, quad, _ in rows:
            overlaps = [float(exact_overlap(quad, one)) for one, _, _ in objects[image]]
            best = int(np.argmax(overlaps)) if overlaps else -1
            hit = False
            if best >= 0 and overlaps[best] > 0.5:
                _, difficult, taken = objects[image][best]
                if difficult:
                    continue
                hit, taken[0] = not taken[0], True
            rank += 1
            if hit:
                ranks.append(rank)
        positives = sum(not one[1] for own in objects.values() for one in own)
        if positives:
            out[name] = (voc_ap_11 if eleven else voc_ap_all_point)(ranks, positives)
    return out


# --------------------------------------------------------------------------------------------------------------- probIoU


def gaussian(row):
    """Centre x, y and variances a, b, c of the rectangle of a row of eight floats."""
    x, y = sum(row[::2]) / 4, sum(row[1::2]) / 4
    width, height = math.dist(row[0:2], row[2:4]), math.dist(row[2:4], row[4:6])
    angle = math.atan2(row[3] - row[1], row[2] - row[0])
    p, q, cosine, sine = width**2 / 12, height**2 / 12, math.cos(angle), math.sin(angle)
    return x, y, p * cosine**2 + q * sine**2, p * sine**2 + q * cosine**2, (p - q) * cosine * sine


def probable_overlap(one, other, eps=1e-7):
    """probIoU of two rows of rectangles, as Ultralytics defines it."""
    x1, y1, a1, b1, c1 = gaussian(one)
    x2, y2, a2, b2, c2 = gaussian(other)
    a, b, c = a1 + a2, b1 + b2, c1 + c2
    whole = a * b - c * c
    t1 = (a * (y1 - y2) ** 2 + b * (x1 - x2) ** 2) / (whole + eps) / 4
    t2 = c * (x2 - x1) * (y1 - y2) / (whole + eps) / 2
    own = math.sqrt(max(a1 * b1 - c1 * c1, 0) * max(a2 * b2 - c2 * c2, 0))
    t3 = math.log(whole / (4 * own + eps) + eps) / 2
    return 1 - math.sqrt(1 - math.exp(-min(max(t1 + t2 + t3, eps), 100)) + eps)
