"""Repeated records, lost ranges of sizes and scores, images anywhere: numbers counted again, limits on both sides."""

from __future__ import annotations

import copy
import itertools
import re
from collections import Counter, defaultdict

import numpy as np
import planting
import pytest
from test_checks_parts import by_image, confident, iou, planted, scene

from detmap.checks import check, scores, sizes

# ------------------------------------------------------------------------------------------------------------- repeats


@pytest.mark.parametrize("kind", planting.KINDS)
def test_rows_of_padding_are_counted_again(kind):
    data, made = planted("rows_of_padding", kind)
    rows = [one for one in data.found if one["bbox"] == [0, 0, 1, 1] and one["score"] == 0]
    one = made["constant_boxes"]
    assert one.count == len(rows)
    assert f"x, y, width, height 0, 0, 1, 1, on {len({row['image_id'] for row in rows}):,} images" in one.says
    assert "duplicate_detections" not in made


def test_boxes_that_a_tool_put_there_are_counted_again():
    data, made = planted("a_box_that_the_tool_put_there", "crowded")
    assert made["constant_boxes"].count == sum(o["bbox"] == [10, 10, 90, 90] for o in data.truth["annotations"])
    assert made["constant_boxes"].unit == "object"


@pytest.mark.parametrize(("images", "said"), [(4, False), (5, True)])
@pytest.mark.parametrize("side", ["truth", "found"])
def test_one_box_on_five_images(images, said, side):
    data = copy.deepcopy(scene(0, "one class")).data()
    for at in range(images):
        one = {"image_id": data.truth["images"][7 * at]["id"], "category_id": 1, "bbox": [11.5, 12.25, 40.0, 30.0]}
        if side == "truth":
            data.truth["annotations"].append({**one, "id": 10**6 + at, "area": 1200.0, "iscrowd": 0})
        else:
            data.found.append({**one, "score": 0.125})
    assert ("constant_boxes" in check(data.truth, data.found).codes) is said


def test_what_stands_still_and_what_is_the_whole_image_is_no_default():
    """A parked car has one box on all frames; boxes of whole images are equal where images are."""
    for step, box in ((1, [11.5, 12.25, 40.0, 30.0]), (7, None)):
        data = copy.deepcopy(scene(0, "one class")).data()
        for at in range(20):
            image = data.truth["images"][step * at]
            own = box or [0, 0, image["width"], image["height"]]
            one = {"image_id": image["id"], "category_id": 1, "bbox": own, "area": own[2] * own[3], "iscrowd": 0}
            data.truth["annotations"].append({**one, "id": 10**6 + at})
        assert "constant_boxes" not in check(data.truth, data.found).codes


def test_detections_of_an_earlier_image_are_counted_again():
    data, made = planted("buffer_of_the_image_before", "crowded")
    held = defaultdict(list)
    for one in data.found:
        held[one["image_id"]].append((one["category_id"], *one["bbox"], one["score"]))
    seen = Counter(tuple(sorted(own)) for own in held.values() if len(own) >= 2)
    assert made["same_detections"].count == sum(times - 1 for times in seen.values())


@pytest.mark.parametrize(("many", "said"), [(1, False), (2, True)])
def test_two_detections_make_images_the_same(many, said):
    data = copy.deepcopy(scene(0, "one class")).data()
    held = by_image(data.found)
    first = next(image for image, own in held.items() if len(own) >= 2)
    other = next(image for image in held if image > first)
    data.found = [d for d in data.found if d["image_id"] not in (first, other)]
    for image in (first, other):
        data.found += [{**one, "image_id": image} for one in held[first][:many]]
    assert ("same_detections" in check(data.truth, data.found).codes) is said


def test_an_image_that_is_there_twice_has_the_same_detections_rightly():
    data = copy.deepcopy(scene(0, "one class")).data()
    ids = [one["id"] for one in data.truth["images"]]
    objects = by_image(data.truth["annotations"])
    one = next(image for image in ids if len(objects.get(image, ())) >= 3)
    new = max(ids) + 1
    data.truth["images"].append({"id": new, "file_name": "again.jpg", "width": 640, "height": 480})
    data.truth["annotations"] += [{**o, "image_id": new, "id": 10**6 + at} for at, o in enumerate(objects[one])]
    data.found += [{**d, "image_id": new} for d in data.found if d["image_id"] == one]
    made = check(data.truth, data.found).codes
    assert "same_detections" not in made
    assert "same_image_twice" in made


# ------------------------------------------------------------------------------------------------------ scores and corners


def test_a_lost_band_of_scores_is_between_two_scores_of_the_file():
    data, made = planted("a_band_of_scores_lost", "sparse", share=0.5)
    low, high = map(float, re.search(r": ([\d.]+) to ([\d.]+), where", made["score_gap"].says).groups())
    held = np.unique([d["score"] for d in data.found])
    at = int(np.argmax(np.where(held[:-1] < 0.5, np.diff(held), 0)))
    assert (f"{held[at]:.3g}", f"{held[at + 1]:.3g}") == (f"{low:.3g}", f"{high:.3g}")


def test_either_side_of_a_gap_of_scores():
    """Scores that are even: a gap of n of their distances would hold n - 1, of which a share is expected at least."""
    even = np.arange(400) / 1000
    least = 47  # 0.3 of which is 14.1
    for wide, said in ((least - 1, False), (least, True)):
        made = scores.gap(np.concatenate([even[:200], even[200:] + (wide - 1) / 1000]))
        assert (made is not None) is said
    assert made[2] == pytest.approx(least)
    few = np.concatenate([even[:50], even[:50] + 0.9])
    assert scores.gap(few) is None
    assert scores.gap(np.round(np.random.default_rng(0).beta(1, 3, 50_000), 2)) is None  # all gaps are equal


def test_whole_pixels_are_counted_again():
    data, made = planted("whole_pixels", "sparse")
    sizes_of = {one["id"]: (one["width"], one["height"]) for one in data.truth["images"]}
    count = 0
    for one in data.found:
        (x, y, w, h), (width, height) = one["bbox"], sizes_of[one["image_id"]]
        corners = (x, y, x + w, y + h)
        inner = sum(2 < v < side - 2 for v, side in zip(corners, (width, height) * 2, strict=True))
        count += all(abs(v - round(v)) < 1e-6 for v in corners) and inner >= 2
    assert made["coarse_boxes"].count == count
    assert made["coarse_boxes"].says.endswith(": 1 pixel")


def test_whole_pixels_of_both_sides_are_no_finding():
    data, _ = planted("whole_pixels", "sparse", share=1.0)
    for one in data.truth["annotations"]:
        one["bbox"] = [float(round(v)) for v in one["bbox"]]
    assert "coarse_boxes" not in check(data.truth, data.found).codes


def test_scores_of_a_byte_are_one_scale():
    _, made = planted("scores_of_a_byte", share=1.0)
    assert "logit_scores" in made
    assert "mixed_scores" not in made


# -------------------------------------------------------------------------------------------------------------------- sizes


def test_objects_of_a_lost_level_are_counted_again():
    data, made = planted("a_level_of_the_pyramid_lost", "crowded", share=1.0)
    one = made["sizes_missed"]
    low, high = (float(v) for v in re.search(r"area ([\d.]+) to ([\d.]+):", one.says).groups())
    assert (low, high) == (64, 128)
    held, missed, total = by_image(data.found), 0, 0
    for o in data.truth["annotations"]:
        if low <= (o["bbox"][2] * o["bbox"][3]) ** 0.5 < high:
            total += 1
            own = [d for d in held.get(o["image_id"], ()) if d["category_id"] == o["category_id"]]
            missed += all(iou(o["bbox"], d["bbox"]) < 0.5 for d in own)
    assert one.count == missed
    assert f"of {total:,};" in one.says


def test_either_side_of_a_dip():
    """As many are found as are expected at half of the rate beside it, or fewer."""
    total = np.full(40, 100)
    for found_of, said in ((46, False), (44, True)):
        hits = np.full(40, 90)
        hits[20:22] = found_of
        made = sizes.dip(total, hits)
        assert (made is not None) is said
    assert made == (20, 22, 0.9)
    rising = np.linspace(5, 95, 40).astype(int)
    assert sizes.dip(total, rising) is None  # small objects are found less often
    hits = np.full(40, 90)
    hits[20] = 0
    few = total.copy()
    few[20] = 19
    assert sizes.dip(few, np.minimum(hits, few)) is None


def test_regions_of_several_objects_are_counted_again():
    data, made = planted("crowds_as_objects", "crowded")
    held, found = defaultdict(list), by_image(data.found)
    for o in data.truth["annotations"]:
        held[o["image_id"], o["category_id"]].append(o["bbox"])
    missed = 0
    for (image, category), own in held.items():
        for a in own:
            inside = 0
            for b in own:
                w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
                h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
                covered = max(w, 0) * max(h, 0) >= 0.9 * b[2] * b[3]
                inside += covered and b[2] * b[3] < 0.5 * a[2] * a[3]
            hit = any(iou(a, d["bbox"]) >= 0.5 for d in found.get(image, ()) if d["category_id"] == category)
            missed += inside >= 4 and not hit
    assert made["objects_of_many"].count == missed


@pytest.mark.parametrize(("count", "said"), [(9, False), (10, True)])
def test_objects_of_hardly_a_pixel(monkeypatch, count, said):
    monkeypatch.setattr(sizes.strays, "limit_of", lambda shorter: None)
    data = copy.deepcopy(scene(0, "sparse")).data()
    data.truth["annotations"] = data.truth["annotations"][: 200 * count]
    for at, one in enumerate(data.truth["annotations"][: count + 3]):
        one["bbox"][2 + at % 2] = 1.99 if at < count else 2.0
    made = {one.code: one for one in check(data.truth).findings}
    assert ("tiny_objects" in made) is said
    if said:
        assert made["tiny_objects"].count == count


# ------------------------------------------------------------------------------------------ suppression, images anywhere


@pytest.mark.slow
def test_objects_that_suppression_across_categories_leaves_out_are_counted_again():
    data, made = planted("suppression_across_classes", "crowded", share=1.0)
    one = made["suppressed_across"]
    assert "strict_suppression" not in made
    most = max(
        iou(a["bbox"], b["bbox"])
        for own in by_image(confident(data)).values()
        for a, b in itertools.combinations(own, 2)
    )
    assert one.says.endswith(f": {most:.2f}")
    count = 0
    for own in by_image(data.truth["annotations"]).values():
        own.sort(key=lambda o: o["category_id"])
        for at, o in enumerate(own):
            best = max(own[:at], key=lambda other: iou(o["bbox"], other["bbox"]), default=None)
            if best is not None and best["category_id"] != o["category_id"]:
                count += iou(o["bbox"], best["bbox"]) > most + 0.02
    assert one.count == count


def test_objects_that_are_labelled_twice_say_nothing_of_suppression():
    """It said that one of the two cannot be found as the suppression was too strict."""
    for name in ("labels_saved_twice", "labels_of_two_annotators"):
        _, made = planted(name)
        assert "strict_suppression" not in made


def test_images_anywhere_of_which_all_is_missed_are_counted_again():
    data, made = planted("detections_of_other_images_anywhere")
    one = made["misplaced"]
    count = int(re.search(r": (\d+) images anywhere", one.says)[1])
    share = [0, 0]
    found, every = by_image(data.found), 0
    for image, own in by_image(data.truth["annotations"]).items():
        there = found.get(image, ())
        missed = sum(all(iou(o["bbox"], d["bbox"]) < 0.5 for d in there) for o in own) if there else 0
        if there and len(own) >= 2 and missed >= 0.85 * len(own):
            share[0], share[1], every = share[0] + missed, share[1] + len(own), every + 1
    assert 0 < count <= every
    assert 0 < one.count <= share[0]
    assert "missing_labels" not in made


@pytest.mark.parametrize(
    ("kind", "seed"),
    [*((kind, seed) for kind in planting.NATURAL_KINDS for seed in (1, 5)), ("cameras", 44),
     ("day and night", 107)],
)  # fmt: skip
def test_parts_that_differ_by_nature_have_no_finding(kind, seed):
    data = planting.natural(seed, kind).data()
    assert check(data.truth, data.found).codes == ()


def test_boxes_half_a_step_off_are_not_said_to_be_written_otherwise():
    """Boxes that lie off by a third of their side begin at no centres, and are not at another size."""
    _, made = planted("a_level_of_the_pyramid_displaced", "crowded", share=1.0)
    assert "sizes_missed" in made
    assert not {"centres_as_corners", "scaled_boxes"} & set(made)
