"""Areas and flags of crowds: numbers are counted again from the file, limits are tested on both sides."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
from test_checks_parts import planted, scene, within

from detmap.checks import boxes, check

NUMBER = r"[\d.,]+"


def number(text):
    return float(text.replace(",", ""))


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("kind", ["crowded", "sparse"])
def test_areas_at_another_size_are_counted_again(kind, share):
    data = copy.deepcopy(scene(0, kind)).data()
    ids = [i["id"] for i in data.truth["images"]]
    chosen = set(ids[50 : 50 + int(share * len(ids))]) if share < 1 else set(ids)
    rng = np.random.default_rng(0)
    wrong, ratios = [], []
    for at, o in enumerate(data.truth["annotations"]):
        o["area"] = o["bbox"][2] * o["bbox"][3]
        if o["image_id"] in chosen:
            ratios.append(4.0 + rng.uniform(-0.5, 0.5))
            o["area"] *= ratios[-1]
            wrong.append(at)
    (one,) = (f for f in check(data.truth, data.found).findings if f.code == "area_misfits")
    assert (one.count, list(one.records)) == (len(wrong), wrong[:10] if share < 1 else [])
    middle, low, high = re.search(
        rf": ({NUMBER}) times that of the box in the median, ({NUMBER}) to ({NUMBER}) t", one.says
    ).groups()
    assert [number(v) for v in (low, middle, high)] == [
        float(f"{v:.3g}") for v in np.quantile(ratios, [0.25, 0.5, 0.75])
    ]
    scale = f", as at {np.sqrt(np.median(ratios)):.3g} times the size of the image"
    assert (scale in one.says) is ("times the size" in one.says) is (share < 1)  # others are known to be right
    if share < 1:
        there = within(one.says)
        inside = sum(there(data.truth["annotations"][at]["image_id"]) for at in wrong)
        assert f"; {'all' if inside == len(wrong) else f'{inside:,}'} of them on images " in one.says


def test_of_areas_of_masks_no_size_is_said():
    _, made = planted("areas_at_another_size", "one class", 0.3)
    assert "times that of the box in the median" in made["area_misfits"].says
    assert "times the size of the image" not in made["area_misfits"].says


@pytest.mark.parametrize(
    ("times", "known", "scale"),
    [([4.0] * 3, True, ", as at 2 times"), ([4.0] * 2, True, None), ([4.0] * 3, False, None),
     ([3, 3, 4.79, 4.79], True, "t"), ([3, 3, 4.81, 4.81], True, None)],
)  # fmt: skip
def test_either_side_of_areas_of_one_scale(times, known, scale):
    made = boxes._factor(np.array(times, float), "box", known)
    assert (scale is not None) is ("times the size" in made)
    assert (scale or "") in made


@pytest.mark.parametrize(("count", "said"), [(9, True), (8, False)])
def test_a_size_is_said_where_other_areas_are_those_of_boxes(count, said):
    """Of ten other objects nine have the area of their box, and one has that of a mask; three are of another size."""
    data = copy.deepcopy(scene(0, "sparse")).data()
    data.truth["annotations"] = data.truth["annotations"][:13]
    for at, o in enumerate(data.truth["annotations"]):
        o["bbox"][2:] = [200, 200]
        o["area"] = 40_000 * (4 if at < 3 else 1 if at < 3 + count else 0.7)
    data.truth["images"] = [{**i, "width": 2000, "height": 2000} for i in data.truth["images"]]
    (one,) = (f for f in check(data.truth).findings if f.code == "area_misfits")
    assert ("as at 2 times the size" in one.says) is said


def test_of_a_mask_of_no_area_nothing_is_said():
    assert boxes._factor(np.zeros(0), "mask", True) == "the mask has none"


@pytest.mark.parametrize("kind", ["crowded", "sparse", "one class"])
def test_truncated_objects_are_counted_again(kind):
    data, made = planted("truncated_objects_flagged_as_crowds", kind, 0.4)
    one = made["crowds_misplaced"]
    areas = {}
    for o in data.truth["annotations"]:
        if not o["iscrowd"]:
            areas.setdefault(o["category_id"], []).append(o["bbox"][2] * o["bbox"][3])
    usual = {label: np.sort(own)[len(own) // 2] for label, own in areas.items()}
    crowds = [(at, o) for at, o in enumerate(data.truth["annotations"]) if o["iscrowd"]]
    small = [at for at, o in crowds if o["bbox"][2] * o["bbox"][3] < usual[o["category_id"]]]
    if "all objects of" not in one.says and "found as one" not in one.says:
        assert (one.count, list(one.records)) == (len(small), small[:10])
    assert f"; of {len(crowds):,} flagged, of which half would be so small if all were single objects" in one.says
    there = within(one.says)
    inside = sum(there(data.truth["annotations"][at]["image_id"]) for at in small)
    assert re.search(rf"; (all|{inside:,}) of them on images ", one.says)
