"""Changed ids of images, so that they are unknown: which change is named, its numbers, and either side of limits."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
from test_checks_scores_of_parts import findings, scene

from detmap.checks.rewritten_ids import rewritten

#: Changes of the ids of some images, and what is said of them.
WAYS = {
    "zeros at the end are missing": lambda one: int(str(one).rstrip("0")),
    "'77' ahead of them is too many": lambda one: int(f"77{one:07d}"),
    "'4' at the end of them is too many": lambda one: 10 * one + 4,
    "'00' at the end of them is too many": lambda one: 100 * one,
    "they are 30 times the ids that are meant": lambda one: 30 * one,
    "each - 900,001 is the one that is meant": lambda one: one + 900_001,
    "the last character is missing": lambda one: one // 10,
}


def changed(way, every=3, seed=0):
    """A scene in which the detections of some images are under changed ids; and the ids of these images."""
    truth, found = copy.deepcopy(scene(seed))
    ids = [one["id"] for one in truth["images"]]
    if way == "zeros at the end are missing":  # ids as those of 50 or 100 frames from one to the next
        new = {one: 10 * (3 * at + 2) + 5 * (at % 2) for at, one in enumerate(ids)}
        for one in [*truth["annotations"], *found]:
            one["image_id"] = new[one["image_id"]]
        for one in truth["images"]:
            one["id"] = new[one["id"]]
        ids = [one for one in new.values() if one % 10 == 0]
        every = 1
    part = set(ids[::every])
    for one in found:
        if one["image_id"] in part:
            one["image_id"] = WAYS[way](one["image_id"])
    return truth, found, part


@pytest.mark.parametrize("way", WAYS)
def test_changed_ids_are_counted_as_the_sentence_says(way):
    truth, found, part = changed(way)
    made = findings(truth, found)
    says = made["image_ids_rewritten"].says
    known, written = {one["id"] for one in truth["images"]}, {one["image_id"] for one in found}
    empty, unknown = known - written, written - known
    meant = {WAYS[way](one) for one in empty} & unknown
    assert f": {way}: {len(meant):,} of {len(unknown):,} unknown ids are ids of images without detections then" in says
    assert made["image_ids_rewritten"].count == sum(one["image_id"] in unknown for one in found)
    one, other = map(int, re.search(r"then, as (\d+) is (\d+)", says).groups())
    assert one in unknown
    assert other in empty
    assert one == WAYS[way](other)
    others = sum(WAYS[way](one) in written for one in empty) - len(meant)
    more = f"; {others} more images without detections would have the id of another image"
    assert says.endswith(more) == (others > 0)
    # nothing else is said of images whose ids explain why they have no detections
    assert not {"missing_shard", "unknown_images"} & set(made)
    left = empty - {one for one in empty if WAYS[way](one) in written} & part
    objects = {one["image_id"] for one in truth["annotations"]}
    assert made["images_without_detections"].count == len(left & objects) if left & objects else True


def test_changed_ids_are_not_said_of_boxes_that_do_not_fit():
    """The images of another set have the ids, times ten, of some that were lost."""
    truth, found, part = changed("'00' at the end of them is too many")
    rng = np.random.default_rng(0)
    moved = [
        dict(one, bbox=[rng.uniform(0, 300), rng.uniform(0, 200), *one["bbox"][2:]])
        if one["image_id"] // 100 in part and one["image_id"] % 100 == 0
        else one
        for one in found
    ]
    made = findings(truth, moved)
    assert {"unknown_images", "missing_shard"} <= set(made)
    assert "image_ids_rewritten" not in made


def test_images_that_are_lost_beside_changed_ids_are_said():
    truth, found, part = changed("'4' at the end of them is too many")
    lost = set(sorted({one["id"] for one in truth["images"]} - part)[20:60])
    made = findings(truth, [one for one in found if one["image_id"] not in lost])
    objects = {one["image_id"] for one in truth["annotations"]}
    assert abs(made["missing_shard"].count - len(lost & objects)) <= 5


def test_text_that_was_changed_is_found():
    names = [f"a_{at:04d}" for at in range(200)]
    empty, full = names[::4], [one for one in names if int(one[2:]) % 4]
    for says, change in (
        ("zeros at the end are missing", lambda one: one.rstrip("0")),
        ("'b/' ahead of them is too many", lambda one: f"b/{one}"),
        ("'a_' ahead of them is missing", lambda one: one[2:]),
        ("'.x' at the end of them is too many", lambda one: f"{one}.x"),
        ("the last 2 characters are missing", lambda one: one[:-2]),
    ):
        strange = {change(one) for one in empty} - set(names)
        made = rewritten(sorted(strange), empty, full, [*full, *strange])
        if says == "the last 2 characters are missing":
            assert made is None  # two ids in all
            continue
        assert made.says == says
        assert made.ids == set(made.meant) == strange
        assert all(change(other) == one for one, other in made.meant.items())
        assert made.images == {one for one in empty if change(one) in strange}


@pytest.mark.parametrize("numbers", [True, False])
def test_zeros_that_are_missing_at_the_beginning_or_at_both_ends(numbers):
    empty = [f"{10 * at:05d}" for at in range(101, 160)]
    full = [f"{10 * at + 3:05d}" for at in range(101, 160)]
    for says, change in (("end", str.rstrip), ("beginning", str.lstrip), ("both ends", str.strip)):
        strange = sorted({change(one, "0") for one in empty})
        given = strange, empty, full, [*full, *strange]
        if numbers:
            given = tuple([int(one) for one in those] for those in given)
        made = rewritten(*given)
        where = "at both ends" if says == "both ends" else f"at the {says}"
        if not numbers:
            assert made.says == f"zeros {where} are missing"
        elif says == "beginning":
            assert made is None or made.ids  # numbers have none
        else:
            assert made.says == "zeros at the end are missing"


def told(count, strange=0, of_full=0):
    """Whether ids times ten are named as such: so many of images without detections, beside other unknown ids, and so many
    of images with detections.
    """
    empty, full = [1009 + 7 * at for at in range(count)], [500_009 + 7 * at for at in range(count)]
    unknown = [10 * one for one in empty + full[:of_full]] + [77_770_001 + 13 * at**2 for at in range(strange)]
    made = rewritten(unknown, empty, full, full + unknown)
    return None if made is None else made.says


def test_either_side_of_changed_ids():
    """Seven ids; more than half of the unknown ones; far more than of images that have detections."""
    said = "'0' at the end of them is too many"
    assert told(7) == said
    assert told(6) is None
    assert told(20, strange=19) == said
    assert told(20, strange=20) is None
    assert told(100, of_full=20) == said  # 40 are allowed for by chance
    assert told(100, of_full=40) is None


@pytest.mark.parametrize(("cut", "said"), [(1, True), (2, True), (4, True), (5, False)])
def test_either_side_of_the_characters_that_are_cut_off(cut, said):
    empty = [f"{(7919 * at) % 99991:05d}{at:05d}" for at in range(1, 41)]
    strange = [one[:-cut] for one in empty]
    made = rewritten(strange, empty, ["x1", "y22"], strange)
    says = "the last character is missing" if cut == 1 else f"the last {cut} characters are missing"
    if not said:
        assert made is None
        return
    assert made.says == says
    assert made.meant == dict(zip(reversed(strange), reversed(empty), strict=True))
    assert made.ids == set(strange)
    assert made.images == set(empty)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: 3 * one, "they are 3 times the ids that are meant"),
        (lambda one: 1000 * one + 0, "they are 1000 times the ids that are meant"),
        (lambda one: 1003 * one, None),
        (lambda one: one // 3, "the ids that are meant are 3 times these"),
        (lambda one: one + 12_345, "each - 12,345 is the one that is meant"),
        (lambda one: one - 4_321, "each + 4,321 is the one that is meant"),
    ],
)
def test_numbers_that_are_changed(change, says):
    """At most by a factor of 1,000."""
    empty = [3 * (20_011 + 97 * at + at**2) for at in range(60)]
    full = [9_000_001 + 101 * at for at in range(60)]
    strange = [change(one) for one in empty]
    made = rewritten(strange, empty, full, full + strange)
    if says is None or (says.startswith("they are 1000") and made.says != says):
        assert made is None or "at the end of them is too many" in made.says
        return
    assert made.says == says
    assert made.meant == dict(zip(strange, empty, strict=True))
    assert made.ids == set(strange)
    assert made.images == set(empty)


@pytest.mark.parametrize("times", [True, False])
def test_numbers_that_are_nearly_multiples_are_none(times):
    """Most ids are about three times, or a third, of most others, but a little less."""
    meant = [30_003 + 3 * at for at in range(60)]
    near = [29_000 + 3 * at for at in range(200)] if times else [31_000 + 9 * at for at in range(200)]
    strange = [one // 3 if times else 3 * one for one in meant]
    made = rewritten(strange, [*meant, *near], [9_000_001 + 101 * at for at in range(60)], strange)
    assert made.says == (
        "the ids that are meant are 3 times these" if times else "they are 3 times the ids that are meant"
    )
    assert made.meant == dict(zip(strange, meant, strict=True))
