"""Fused multiply-adds of arrays, which round ``a * b + c`` only once. Linear algebra libraries use them in dot products.

Distances computed by such a library may differ in the last bit from distances with rounded products. numpy has no fused
multiply-add, so the exact result is composed of error-free sums and products, and rounded to odd before the last sum
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). Products must not overflow or underflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Veltkamp's constant: it splits a float64 into two halves of at most 26 bits.
_SPLIT = float(2**27 + 1)


def _halves(values: Floats) -> tuple[Floats, Floats]:
    scaled = _SPLIT * values
    high = scaled - (scaled - values)
    return high, values - high


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rounded products and their errors."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sums and their errors."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _sum_to_odd(a: Floats, b: Floats) -> Floats:
    """Return sums rounded to odd: an inexact sum becomes the neighbouring float64 whose last bit is 1."""
    total, error = _sum(a, b)
    even = (total.view(np.int64) & 1) == 0
    towards = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & even, towards, total)


def multiply_add(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return ``a * b + c`` rounded once, shape (n,); NaN if any operand is NaN."""
    high, low = _product(a, b)
    total, error = _sum(c, low)
    most, rest = _sum(high, total)
    return np.asarray(most + _sum_to_odd(error, rest))


def dot(a: Any, b: Any) -> Floats:
    """Return the row-wise dot products of two tables, which are given as columns."""
    total = np.asarray(a[0] * b[0], np.float64)
    for left, right in zip(a[1:], b[1:], strict=True):
        total = multiply_add(np.asarray(left), np.asarray(right), total)
    return total


def length(a: Any) -> Floats:
    """Return the lengths of vectors given by their columns."""
    return np.asarray(np.sqrt(dot(a, a)))
