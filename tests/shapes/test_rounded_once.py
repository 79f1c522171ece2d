"""Fused sums of products against exact fractions, and angles of rotated boxes by quadrant."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from detmap.errors import InputError
from detmap.shapes import fused
from detmap.shapes.rotated import Rotated, _direction


def drawn(rng, count):
    """Numbers whose products and sums often lie halfway between two floats, cancel, or differ by many powers of 2."""
    whole = rng.integers(-(2**27), 2**27, count) * 2.0 ** rng.integers(-40, 40, count)
    plain = rng.normal(0, 1, count) * 2.0 ** rng.integers(-30, 30, count)
    return np.where(rng.random(count) < 0.5, whole, plain)


@pytest.mark.parametrize("seed", range(4))
def test_a_product_and_a_sum_are_rounded_once(seed):
    rng = np.random.default_rng(seed)
    a, b, c = (drawn(rng, 500) for _ in range(3))
    near = rng.random(500) < 0.6
    c[near] = -(a * b)[near] * (1 + rng.choice([0.0, 2.0**-52, -(2.0**-53), 2.0**-30, 1.0], 500)[near])
    c[rng.random(500) < 0.05] = 0.0
    wanted = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c, strict=True)]
    assert (fused.multiply_add(a, b, c) == wanted).all()


def test_halfway_between_two_floats():
    """1 + 2**-53 lies halfway, and what is added beyond decides; the last bit of an even number stays."""
    one, bit = 1.0, 2.0**-53
    cases = [
        (bit, one, one, 1.0), (bit, 1 + 2.0**-52, one, 1 + 2.0**-52), (bit, 1 - bit, one, 1.0),
        (bit, one, 1 + 2.0**-52, 1 + 2.0**-51), (-bit, one, 2.0, 2.0), (-bit, one, 1 + 2.0**-52, 1.0),
        (2.0**27 + 1, 2.0**27 + 1, -(2.0**54), 2.0**28 + 1), (3.0, 5.0, -15.0, 0.0), (0.0, 5.0, 2.5, 2.5),
    ]  # fmt: skip
    a, b, c, wanted = np.array(cases).T
    assert fused.multiply_add(a, b, c).tolist() == wanted.tolist()
    assert np.isnan(fused.multiply_add(np.array([np.nan]), np.ones(1), np.ones(1))).all()


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_dot_products_and_lengths(width):
    rng = np.random.default_rng(width)
    a, b = drawn(rng, 50 * width).reshape(width, -1), drawn(rng, 50 * width).reshape(width, -1)

    def dot(left, right):
        total = float(Fraction(left[0]) * Fraction(right[0]))
        for x, y in zip(left[1:], right[1:], strict=True):
            total = float(Fraction(x) * Fraction(y) + Fraction(total))
        return total

    assert fused.dot(a, b).tolist() == [dot(*pair) for pair in zip(a.T.tolist(), b.T.tolist(), strict=True)]
    assert fused.length(a).tolist() == [math.sqrt(dot(row, row)) for row in a.T.tolist()]


@pytest.mark.parametrize("turns", [-2, -1, 0, 1, 3])
@pytest.mark.parametrize("rest", [0.0, 1.0, 30.0, 44.0, -30.0, -44.5])
def test_degrees_are_turned_by_quarters(rest, turns):
    cosine, sine = math.cos(math.radians(rest)), math.sin(math.radians(rest))
    wanted = {0: (cosine, sine), 90: (-sine, cosine), 180: (-cosine, -sine), 270: (sine, -cosine)}
    for quarter, direction in wanted.items():
        assert _direction(360 * turns + quarter + rest, True) == direction
    assert _direction(rest, False) == (math.cos(rest), math.sin(rest))


def test_rectangles_by_hand():
    """A rectangle of 8 x 4 around (10, 20), turned by nothing, a quarter, and an angle of 3 : 4 : 5."""
    whole = [[6, 18, 14, 18, 14, 22, 6, 22]]
    quarter = [[12, 16, 12, 24, 8, 24, 8, 16]]
    for degrees, clockwise, wanted in (
        (0, True, whole),
        (90, True, quarter),
        (-90, False, quarter),
        (360, True, whole),
    ):
        made = Rotated.from_angles([[10, 20, 8, 4, degrees]], degrees=True, clockwise=clockwise)
        assert made.corners.tolist() == wanted
    back = Rotated.from_angles([[10, 20, 8, 4, 90]], degrees=True, clockwise=False)
    assert back.corners.tolist() == [[8, 24, 8, 16, 12, 16, 12, 24]]
    assert back.boxes.tolist() == [[8, 16, 12, 24]]
    assert back.areas().tolist() == [32]
    turned = Rotated.from_angles([[0, 0, 10, 5, math.atan2(3, 4)]])
    assert turned.corners[0] == pytest.approx([-2.5, -5, 5.5, 1, 2.5, 5, -5.5, -1], abs=1e-14)
    assert len(Rotated.from_angles([])) == len(Rotated.from_corners(np.empty((0, 4, 2)))) == 0


@pytest.mark.parametrize(
    ("make", "given", "says"),
    [
        ("from_angles", [[0, 0, -1, 1, 0]], "record 0, field 'rotated': width and height must not be negative (got "),
        ("from_angles", [[0, 0, 1, 1, 0], [0, 0, 1, -1, 0]], "record 1, field 'rotated': width and height must not "),
        (
            "from_angles",
            [[0, 0, -1, 1, np.nan]],
            "record 0, field 'rotated': a rotated box must be finite numbers of at ",
        ),
        (
            "from_angles",
            [[0, 0, 1, 1, 1e151]],
            "record 0, field 'rotated': a rotated box must be finite numbers of at ",
        ),
        (
            "from_corners",
            [[0] * 7 + [np.inf]],
            "record 0, field 'rotated': a rotated box must be finite numbers of at ",
        ),
        ("from_angles", [[0, 0, 1, 1]], "shape (1, 4) where n x 5 (centre x, y, width, height, angle) was expected"),
        ("from_corners", [[0] * 5], "shape (1, 5) where n x 8 or n x 4 x 2 (corners) was expected"),
        ("from_corners", 5, "shape () where n x 8 or n x 4 x 2 (corners) was expected"),
    ],
)
def test_what_is_no_rotated_box(make, given, says):
    with pytest.raises(InputError) as caught:
        getattr(Rotated, make)(given, source="s")
    assert str(caught.value).startswith("s: ")
    assert says in str(caught.value)
