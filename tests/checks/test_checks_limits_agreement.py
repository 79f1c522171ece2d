"""Either side of each limit of what detections gain by another reading, in numbers written out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import side

from detmap.checks import agreement
from detmap.checks.agreement import Agreement, Nearest


def compared(count, **columns):
    """The comparison of so many detections, of which none lies on an object."""
    made = Agreement(SimpleNamespace(on=side().on), side(image_sizes=np.full((count, 2), 100.0)))
    every, none = np.arange(count), np.zeros(count, int)
    made.__dict__ |= {"rows": every, "astray": every, "image": none, "plain": Nearest(np.zeros(count), none), **columns}
    return made


@pytest.mark.parametrize(
    ("count", "chance", "faint", "said"),
    [(20, 1e-7, 1, False), (19, 0.0, 0, False), (20, 1.1e-7, 0, False), (100, 1e-5, 0, True), (99, 1e-7, 1, False),
     (100, 1.1e-5, 0, False)],
)  # fmt: skip
def test_either_side_of_a_gain_of_few_detections(monkeypatch, count, chance, faint, said):
    """20 of 10,000 detections gain, or 100, as they do by chance with a given probability."""
    gained = Nearest(np.where(np.arange(10_000) < count, 0.9, 0.0), np.arange(10_000))
    none, made = np.zeros(10_000, int), compared(10_000)
    monkeypatch.setattr(Agreement, "nearest", lambda *given: gained)
    monkeypatch.setattr(Agreement, "_controls", lambda *given: [])
    monkeypatch.setattr(agreement, "_SCREENED", 20_000)
    made._controls = lambda *given: iter([(none, np.zeros((10_000, 4)))])
    monkeypatch.setattr(agreement, "tail", lambda *given: chance)
    assert (made.gain("turned_boxes", "detections", none, np.zeros((10_000, 4))) is not None) is said
    assert [one.gained.size for one in made.faint] == [count] * faint


@pytest.mark.parametrize(("around", "said"), [(0, True), (100, False)])
def test_boxes_moved_between_tiles_are_compared_with_nearer_and_farther_tiles(around, said):
    """100 detections gain by 100 pixels, and so many by 75 and 125."""
    every, none = np.arange(100), np.zeros(100, int)
    made = compared(100, boxes=np.ones((100, 4)))
    moved = []

    def nearest(image, boxes, truth):
        moved.append(round(float(boxes[0, 0, 0])) - 1)
        return Nearest(np.where(every < (around if len(moved) > 1 else 100), 0.9, 0.0), every)

    made._nearest, made._controls = nearest, lambda *given: iter([])
    gain = made.gain("shifted_boxes", "detections", none, np.full((1, 100, 4), 101.0), np.zeros((0, 4)))
    assert (gain is not None) is said
    assert moved == [100, 75, 125]


def test_tiles_begin_every_so_many_pixels():
    for size, steps in ((640, [205, 256, 320, 410, 512]), (641, [205, 256, 320, 410, 512, 640])):
        made = SimpleNamespace(_full=np.arange(3), _moved=Agreement._moved)
        told = [says for _, says in Agreement._tiles(made, np.zeros((1, 4)), np.full((1, 2), size))]
        assert told[1:] == [f"as if counted from the corners of tiles that begin every {step} pixels" for step in steps]


@pytest.mark.parametrize(("far", "middle"), [(0.4, 0.35), (0.41, 0.3)])
def test_either_side_of_offsets_by_the_same_share_of_the_sides(far, middle):
    """Bins of a tenth of the sides, and those beside the fullest."""
    offsets = np.repeat([0.3, far], 20)[:, None] * np.ones(2)
    every, none = np.arange(40), np.zeros((0, 2))
    pairs = iter([(none, none, offsets), *[(none, none, none)] * 3])
    made = compared(40, boxes=np.ones((40, 4)), image=every, _full=every, starts=every, stops=every + 1)
    made._alike, made.others = lambda *given: next(pairs), lambda *given: every
    pixels, share, sides = made._modes
    assert (pixels, share) == (None, None)
    assert sides == pytest.approx(middle)
