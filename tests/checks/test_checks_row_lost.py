"""A part of the images of each of which a detection is lost: what is said, and either side of each limit."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from test_checks_limits import codes, side
from test_checks_parts import by_image, iou, planted, within

from detmap.checks import row_lost
from detmap.checks.context import Facts
from detmap.checks.rates import Division, Order, Part


@pytest.mark.parametrize(("kind", "share"), [("one class", 0.1), ("sparse", 0.5)])
def test_images_of_which_the_best_detection_is_lost_are_counted_again(kind, share):
    data, made = planted("best_detection_of_each_image_lost_on_a_shard", kind, share)
    one = made["row_lost"]
    assert set(made) <= {"row_lost", "images_without_detections", "outside_boxes"}
    there, found, objects = within(one.says), by_image(data.found), by_image(data.truth["annotations"])
    missed, several, bare = {}, {True: 0, False: 0}, {True: 0, False: 0}
    for image, own in objects.items():
        missed[image] = sum(
            all(d["category_id"] != o["category_id"] or iou(o["bbox"], d["bbox"]) < 0.5 for d in found.get(image, []))
            for o in own
        )
        several[there(image)] += len(own) > 1
        bare[there(image)] += len(own) > 1 and not missed[image]
    assert one.count == sum(there(image) and count > 0 for image, count in missed.items())
    assert f": of {several[True]:,} with several objects all are found on {bare[True]:,}, where" in one.says
    assert f"; elsewhere on {bare[False] / several[False]:.0%}; their highest scores are lower, as" in one.says
    tops = {True: [], False: []}
    for image, own in found.items():
        tops[there(image)].append(max(d["score"] for d in own))
    low, usual = map(float, re.search(r"median ([\d.]+), elsewhere ([\d.]+)", one.says).groups())
    assert (low, usual) == pytest.approx([np.median(tops[True]), np.median(tops[False])], rel=0.01)


def of_part(none=0, more=0, lower=35, each=2, frames=1.0, known=True, behind=0):
    """What is said of 60 images of 300, each with so many objects of which one is missed, but for some images without a
    missed object and some on which two are. Elsewhere all are found on three of four images. Of the highest scores elsewhere
    the share `lower`, in percent, is below those of the part. With `behind`, ten images behind these and so many more are
    searched for the part: all objects of the former are found, and one of each of the latter is missed.
    """
    image = np.repeat(np.arange(300), each)
    place = np.tile(np.arange(each), 300)
    lost = np.where(np.arange(300) < 60, 1, np.arange(300) % 4 == 0)
    lost[:none] = 0
    lost[none : none + more] = 2
    if behind:
        lost[60:], lost[70 : 70 + behind] = lost[60:] * (np.arange(60, 300) >= 76 + behind), 1
    there = np.arange(300) < 60
    scores = np.where(there, lower / 100, (np.arange(300) - 59.5) / 240)
    evidence = SimpleNamespace(
        objects=image, detections=np.arange(300), hit=place >= lost[image], object_image=image, classes=1, images=300,
        object_label=0 * image, band=0 * image, frames=frames, looked_at=np.full(300, known), scores=scores,
        found=SimpleNamespace(posed=None, image=np.arange(300)), truth=side(count=300),
        division=Division(np.arange(300), [Order("ids", np.arange(300))], []),
    )  # fmt: skip
    if not behind:
        evidence.division.unlike = lambda *given, **more: Part(there, "images 0 to 59", there)
    facts = Facts(None)
    facts.evidence = evidence
    made = list(row_lost.check(facts))
    assert len(facts.parts) == len(made)
    assert codes(made) == ["row_lost"] * len(made)
    return made[0] if made else None


def test_either_side_of_images_that_all_have_a_missed_object():
    """Of two objects one is missed on each image: by chance none is on one of four."""
    one = of_part()
    assert one.count == 60
    assert "of 60 with several objects all are found on 0, where 15.0 would be expected by" in one.says
    assert "elsewhere on 75%; their highest scores are lower" in one.says
    # with as many images on which both are missed the rate is the same
    most = max(count for count in range(15) if stats.poisson.cdf(count, 15) < 1e-3)
    assert of_part(none=most, more=most) is not None
    assert of_part(none=most + 1, more=most + 1) is None
    assert of_part(each=1) is None
    assert of_part(frames=2) is not None  # 7.5 images: none is of them once in 1,800 times
    assert of_part(frames=2.2) is None
    assert of_part(known=False) is None


def test_either_side_of_a_part_whose_best_detections_are_lost():
    assert "highest scores" in of_part(lower=35).says
    assert "highest scores" not in of_part(lower=36).says


def test_either_side_of_fewer_images_without_a_missed_object(monkeypatch):
    """At half of those expected, however many images there are."""
    monkeypatch.setattr(row_lost, "_at_most", lambda *given: 0.0)
    assert of_part(none=7, more=7) is not None  # 15 are expected
    assert of_part(none=8, more=8) is None


@pytest.mark.parametrize("behind", [22, 23, 24, 25])
def test_either_side_of_the_end_of_a_part_of_which_rows_are_lost(behind):
    """Of the images of a part 0.15 of those without a missed object stay so, whatever their share elsewhere."""
    missed = (60 + behind + np.count_nonzero(np.arange(76 + behind, 300) % 4 == 0)) / 600
    usual = 1 - (1 - missed) ** 2
    whole = behind * (np.log(1 - (1 - usual) * 0.15) - np.log(usual)) > -10 * np.log(0.15)
    one = of_part(behind=behind)
    assert ("images 0 to 59 and" in one.says) is not bool(whole)
