"""Student's t distribution: p-values and quantiles."""

from __future__ import annotations

import math
from functools import cache


def t_test(mean: float, error: float, freedom: float) -> float:
    """Return the two-sided p-value of ``mean / error`` under Student's t distribution; 1 if both are 0."""
    if freedom < 1:
        return math.nan
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    t = mean / error
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return I_x(a, b) to about 1e-14, by the fraction of Abramowitz and Stegun 26.5.8 and Lentz' method."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges slowly here, so use I_x(a, b) = 1 - I_(1-x)(b, a)
        return 1.0 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    fraction = d
    for m in range(1, 10_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + step * d or tiny)
            c = 1 + step / c or tiny
            fraction *= c * d
        if c * d == 1:
            break
    return front * fraction


@cache
def t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t at a probability above one half, by bisection to the last bits."""
    tail = 2 * (1 - probability)
    low, high = 0.0, 1.0
    while t_test(high, 1.0, freedom) > tail:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if t_test(middle, 1.0, freedom) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2
