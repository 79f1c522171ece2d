"""Defects of a range of images: numbers are counted again from the records, limits are tested on both sides."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_checks_annotators import photos, said
from test_checks_parts import iou, within


def renumbered(truth, found, ids):
    """Give the images other ids, in the same order."""
    new = dict(zip(sorted(one["id"] for one in truth["images"]), ids, strict=True))
    for one in truth["images"]:
        one["id"] = new[one["id"]]
    for one in [*truth["annotations"], *found]:
        one["image_id"] = new[one["image_id"]]


def by_image(records):
    held = {}
    for one in records:
        held.setdefault(one["image_id"], []).append(one["bbox"])
    return held


# ------------------------------------------------------------------------------------------------------ ids of neighbours


@pytest.mark.parametrize(("seed", "step", "of_list"), [(0, 1, False), (1, -1, False), (2, 1, True)])
def test_ids_of_neighbours_are_counted_again(seed, step, of_list):
    """Half of the ids of neighbours differ by one, so that a constant explains half of the detections."""
    truth, found, rng = photos(seed, images=600)
    renumbered(truth, found, np.cumsum(rng.integers(1, 3, 600)).tolist())
    for one in found[::7]:  # these lie on nothing
        one["bbox"] = [*rng.uniform(0, 300, 2), *rng.uniform(20, 90, 2)]
    if of_list:
        truth["images"] = [truth["images"][at] for at in rng.permutation(600)]
    ids = [one["id"] for one in truth["images"]]
    block = ids[100:280] if of_list else ids[100:200]
    meant = {ids[ids.index(one) + step]: one for one in block}
    moved = {one: other for other, one in meant.items()}
    for one in found:
        one["image_id"] = moved.get(one["image_id"], one["image_id"])
    (made,) = said("image_ids_rotated", truth, found)
    assert not said("image_ids_shifted", truth, found)
    way, order = {1: "previous", -1: "next"}[step], "list of images" if of_list else "order of ids"
    assert f": each is meant to be the {way} image in the {order}" in made.says
    assert " at least " in made.says
    objects, there = by_image(truth["annotations"]), within(made.says)
    gained = []
    for at, one in enumerate(found):
        place = ids.index(one["image_id"]) - step
        other = objects[ids[place]] if 0 <= place < 600 else []
        own = max(iou(one["bbox"], box) for box in objects[one["image_id"]])
        if own < 0.3 and max((iou(one["bbox"], box) for box in other), default=0) >= 0.6:
            gained.append(at)
    kept = gained if of_list else [at for at in gained if there(found[at]["image_id"])]
    assert made.count == len(kept)
    assert list(made.records) == kept[:10]
    assert np.mean([found[at]["image_id"] in meant for at in kept]) > 0.9
    if not of_list:
        (first, last), ends = re.findall(r"(\d+) to (\d+)", made.says)[0], sorted(meant)
        assert abs(ids.index(int(first)) - ids.index(ends[0])) < 9
        assert abs(ids.index(int(last)) - ids.index(ends[-1])) < 9
