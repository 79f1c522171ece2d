"""Parts, categories and limits unlike the rest: numbers are counted again from the file, limits are tested on both sides."""

from __future__ import annotations

import copy
import functools
import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import planting
import pytest

from detmap.checks import boxes, categories, check, image_ids, leakage, limits, scores, uneven
from detmap.checks.rates import CHANCE, FLOOR, LEFT, Division, Order, bad_ranges, evidence, explained, rates

scene = functools.lru_cache(maxsize=None)(planting.scene)
PLANT = {one.name: one.plant for one in planting.SCENE_DEFECTS}


def planted(name, kind="one class", share=0.1, seed=0):
    """A data set with a defect, and its findings by code, the first of each."""
    made = copy.deepcopy(scene(seed, kind))
    PLANT[name](np.random.default_rng([seed, 1]), made, share)
    data = made.data()
    findings = check(data.truth, data.found, train=data.train).findings
    return data, {one.code: one for one in reversed(findings)}


def iou(a, b):
    w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    return both / (a[2] * a[3] + b[2] * b[3] - both)


def within(says):
    """The images that a sentence names: pairs of the first and the last id of ranges."""
    ranges = [(int(a), int(b)) for a, b in re.findall(r"(\d+) to (\d+)", says)]
    return lambda image: any(a <= image <= b for a, b in ranges)


def by_image(records):
    held = {}
    for one in records:
        held.setdefault(one["image_id"], []).append(one)
    return held


# ------------------------------------------------------------------------------------------------- numbers, counted again


def test_objects_of_a_lost_class_are_counted_again():
    data, made = planted("class_lost_on_a_shard", "crowded")
    says = made["undetected"].says
    number = {one["name"]: one["id"] for one in data.truth["categories"]}[re.search(r": category (\w+)", says)[1]]
    there, detected = within(says), {(one["image_id"], one["category_id"]) for one in data.found}
    some = {one["image_id"] for one in data.found}
    objects = [one for one in data.truth["annotations"] if one["category_id"] == number and one["image_id"] in some]
    inside = [one for one in objects if there(one["image_id"])]
    lost = [one for one in inside if (one["image_id"], number) not in detected]
    assert made["undetected"].count == len(lost)
    assert f"of {len(inside):,} there" in says


def test_objects_that_detections_miss_are_counted_again():
    data, made = planted("shard_of_other_images")
    one = made["misplaced"]
    there, found = within(one.says), by_image(data.found)
    objects = [o for o in data.truth["annotations"] if there(o["image_id"]) and o["image_id"] in found]
    missed = [o for o in objects if all(iou(o["bbox"], d["bbox"]) < 0.5 for d in found[o["image_id"]])]
    assert one.count == len(missed)
    assert f"of {len(objects):,} there" in one.says


def confident(data, share=1.0):
    """The best detections of each category, as many as it has objects, or a share of these."""
    objects = Counter(one["category_id"] for one in data.truth["annotations"])
    out = []
    for number, count in objects.items():
        own = sorted((one for one in data.found if one["category_id"] == number), key=lambda one: -one["score"])
        kept = own[:count]
        out += [one for rank, one in enumerate(kept) if rank / len(kept) < share]
    return out


def alone(data, records):
    objects = by_image(data.truth["annotations"])
    return [d for d in records if all(iou(d["bbox"], o["bbox"]) < 0.2 for o in objects.get(d["image_id"], ()))]


def test_detections_without_a_label_are_counted_again():
    data, made = planted("class_unlabelled_on_a_shard")
    one = made["unlabelled"]
    there = within(one.says)
    looked_at = [d for d in confident(data, 0.5) if there(d["image_id"])]
    assert one.count == len(alone(data, looked_at))
    assert f"of {len(looked_at):,} there" in one.says


@pytest.mark.slow
def test_detections_on_missing_labels_are_counted_again():
    data, made = planted("labels_missing_anywhere", "crowded", 0.5)
    assert made["missing_labels"].count == len(alone(data, confident(data, 0.25)))
    data, made = planted("class_unlabelled_anywhere", "crowded", 0.5)
    one = made["rarely_labelled"]
    name = re.search(r": category (\w+)", one.says)[1]
    number = {c["name"]: c["id"] for c in data.truth["categories"]}[name]
    assert one.count == len([d for d in alone(data, confident(data, 0.25)) if d["category_id"] == number])


def test_images_of_one_highest_score_are_counted_again():
    data, made = planted("scores_divided_by_the_highest_of_the_image")
    tops = Counter(max(one["score"] for one in own) for own in by_image(data.found).values())
    (score, count), (_, others) = tops.most_common(2)
    one = made["piled_scores"]
    assert one.count == sum(d["score"] == score for d in data.found)
    assert one.says.endswith(f": {score:g}, the highest of {count} images, where no other is of more than {others}")


def test_detections_that_are_not_suppressed_are_counted_again():
    data, made = planted("class_without_suppression")
    held, twins = {}, 0
    for one in sorted(confident(data), key=lambda one: -one["score"]):
        better = held.setdefault((one["image_id"], one["category_id"]), [])
        twins += max((iou(one["bbox"], other) for other in better), default=0) >= 0.75
        better.append(one["bbox"])
    assert made["unsuppressed"].count == twins


def test_objects_on_images_without_their_class_are_counted_again():
    data, made = planted("class_lost_on_half_of_the_images", "crowded", 0.5)
    one = made["rarely_detected"]
    number = {c["name"]: c["id"] for c in data.truth["categories"]}[re.search(r": category (\w+)", one.says)[1]]
    some, cells = {d["image_id"] for d in data.found}, {(d["image_id"], d["category_id"]) for d in data.found}
    own = [o["image_id"] for o in data.truth["annotations"] if o["category_id"] == number and o["image_id"] in some]
    assert one.count == sum((image, number) not in cells for image in own)


def test_objects_beyond_a_limit_of_size_are_counted_again():
    for name, sign in (("small_detections_filtered", 1), ("large_detections_filtered", -1)):
        data, made = planted(name)
        says = made["sizes_cut"].says
        assert ("area below" in says) is (sign > 0)
        edge = (min if sign > 0 else max)(d["bbox"][2] * d["bbox"][3] for d in data.found)
        areas = np.array([o["bbox"][2] * o["bbox"][3] for o in data.truth["annotations"]])
        assert made["sizes_cut"].count == np.count_nonzero(sign * areas < sign * edge)


def test_objects_beyond_the_best_of_a_class_are_counted_again():
    data, made = planted("best_of_each_class", share=0.5)
    held = Counter((o["image_id"], o["category_id"]) for o in data.truth["annotations"])
    assert made["category_cap"].count == sum(n - 1 for n in held.values() if n > 1)


@pytest.mark.slow
def test_objects_beyond_the_cap_are_counted_again():
    data = copy.deepcopy(scene(0, "one class")).data()
    first = data.truth["annotations"][0]
    for at in range(1500):
        box = [at % 50 * 6, at // 50 * 6, 5, 5]
        data.truth["annotations"].append({**first, "id": 100_000 + at, "bbox": box, "area": 25})
    held = Counter((o["image_id"], o["category_id"]) for o in data.truth["annotations"])
    made = {one.code: one for one in check(data.truth, data.found).findings}
    assert made["objects_beyond_cap"].count == sum(max(n - 100, 0) for n in held.values())


@pytest.mark.parametrize("name", ["resized", "resized_and_renamed", "mirrored"])
def test_images_that_are_shared_are_counted_again(name):
    data, made = planted(f"{name}_images_of_the_training_set")
    assert made["leakage"].count == len(data.train["images"])


def test_boxes_on_a_grid_and_at_a_line_are_counted_again():
    data, made = planted("boxes_on_a_grid")
    corners = [(x, y, x + w, y + h) for x, y, w, h in (one["bbox"] for one in data.found)]
    assert made["coarse_boxes"].count == sum(all(v % 8 == 0 for v in one) for one in corners)
    data, made = planted("both_halves_of_tiles", share=0.5)
    sizes = {one["id"]: one["width"] for one in data.truth["images"]}
    middle = [
        any(
            abs(edge / sizes[one["image_id"]] - 0.5) < 5e-5
            for edge in (one["bbox"][0], one["bbox"][0] + one["bbox"][2])
        )
        for one in data.found
    ]
    assert abs(made["cut_boxes"].count - sum(middle)) <= 0.02 * sum(middle)  # lines of pixels besides


def test_images_whose_labels_were_cut_off_are_counted_again():
    data, made = planted("labels_up_to_a_limit", "crowded", 0.5)
    one = made["objects_capped"]
    sentence = r"it seems, .*: (\d+); ([\d.]+)% of the confident .* there, and ([\d.]+)% on others"
    limit, there, elsewhere = re.search(sentence, one.says).groups()
    held = Counter(o["image_id"] for o in data.truth["annotations"])
    full = {image for image, count in held.items() if count == int(limit) == max(held.values())}
    assert one.count == len(full)
    every, nothing = confident(data), alone(data, confident(data))
    for said, inside in ((there, True), (elsewhere, False)):
        of = [image for image, count in held.items() if 2 * count >= int(limit) and (image in full) is inside]
        count, total = ([d for d in some if d["image_id"] in of] for some in (nothing, every))
        assert float(said) == pytest.approx(100 * len(count) / len(total), abs=0.5)
    assert not set(made) & {"missing_labels", "unlabelled", "misplaced"}


@pytest.mark.parametrize("kind", ["sparse", "one class"])
def test_images_of_a_part_whose_labels_were_cut_off_are_counted_again(kind):
    data, made = planted("two_largest_objects_of_a_shard", kind, 0.5)
    one = made["objects_capped"]
    held = Counter(o["image_id"] for o in data.truth["annotations"])
    there = within(one.says)
    inside, outside = ([count for image, count in held.items() if there(image) is way] for way in (True, False))
    full = {image for image, count in held.items() if there(image) and count == 2}
    others = {image for image, count in held.items() if not there(image) and count == 2}
    assert one.count == len(full)
    sentence = r"nothing: 2; .*: more .* on 0% of ([\d,]+) images there, elsewhere on (\d+)%; (\d+)% of .*, and (\d+)%"
    images, more, *shares = re.search(sentence, one.says).groups()
    assert max(inside) == 2
    assert int(images.replace(",", "")) == len(inside)
    assert float(more) == pytest.approx(100 * np.mean(np.array(outside) > 2), abs=0.5)
    every, nothing = confident(data), alone(data, confident(data))
    for said, of in zip(shares, (full, others), strict=True):
        count, total = ([d for d in some if d["image_id"] in of] for some in (nothing, every))
        assert float(said) == pytest.approx(100 * len(count) / len(total), abs=0.5)
    assert not set(made) & {"missing_labels", "unlabelled", "misplaced"}


def doubled(data):
    """The confident detections with one of another category in their place, of about as high a score."""
    out = []
    for own in by_image(confident(data)).values():
        for d in own:
            others = (o for o in own if o["category_id"] != d["category_id"] and iou(o["bbox"], d["bbox"]) >= 0.75)
            out += [d] * any(0.7 <= o["score"] / d["score"] <= 1 / 0.7 for o in others)
    return out


def test_boxes_under_two_classes_are_counted_again():
    data, made = planted("boxes_under_two_classes", "crowded", 0.1)
    one = made["unsuppressed_across"]
    images = int(re.search(r": (\d+) images anywhere", one.says)[1])
    held, some = by_image(confident(data)), by_image(doubled(data))
    full = [i for i, own in held.items() if len(own) >= 2 and len(some.get(i, ())) >= 0.8 * len(own)]
    assert (images, one.count) == (len(full), sum(len(some[i]) for i in full))


def test_images_that_are_suppressed_across_categories_are_counted_again():
    data = copy.deepcopy(scene(0, "crowded")).data()
    rng, found = np.random.default_rng(0), []
    for at, own in enumerate(by_image(data.found).values()):
        share = 0.6 * (rng.random() < 0.8)
        for one in sorted(own, key=lambda one: -one["score"])[: 12 + at % 9]:
            second = {**one, "category_id": 1 + one["category_id"] % 8, "score": 0.1 * one["score"]}
            found += [one, second] if rng.random() < share else [one]
    one = {one.code: one for one in check(data.truth, found).findings}["uneven_suppression"]
    boxes = {image: Counter(tuple(d["bbox"]) for d in own) for image, own in by_image(found).items()}
    middle = np.median([len(own) for own in boxes.values()])
    full = [own for own in boxes.values() if len(own) >= middle]
    twice = Counter(sum(count == 2 for count in own.values()) for own in full)
    assert one.count == twice[0]
    assert one.says.endswith(
        f": of {len(full)} with many boxes, no box has two categories there; on {twice[1]} images one box has, and on "
        f"{twice[2]} two boxes have"
    )


def test_images_that_are_suppressed_more_strictly_are_counted_again():
    made = copy.deepcopy(scene(0, "crowded"))
    rng = np.random.default_rng(0)
    strict = rng.random(len(made.ids)) < 0.5
    at = np.arange(len(made.d_image))
    # Beside it at an IoU of 0.6 at most, or of 0.3.
    right = rng.uniform(np.where(strict[made.d_image[at]], 0.54, 0.25), 0.6) * rng.choice([-1, 1], at.size)
    moved = made.d_box[at] + made.d_box[at][:, 2:3] * right[:, None] * [1, 0, 0, 0]
    made.add(made.d_image[at], made.d_label[at], moved, 0.5 * made.d_score[at])
    data = made.data()
    one = {one.code: one for one in check(data.truth, data.found).findings}["uneven_suppression"]
    largest = []
    for own in by_image(data.found).values():
        best = sorted(own, key=lambda d: -d["score"])[:20]
        pairs = [(a, b) for at, a in enumerate(best) for b in best[:at] if a["category_id"] == b["category_id"]]
        largest.append(max((iou(a["bbox"], b["bbox"]) for a, b in pairs), default=0))
    largest = np.array(largest)
    above, beyond = np.count_nonzero((largest >= 0.3) & (largest < 0.35)), np.count_nonzero(largest >= 0.35)
    assert one.count == np.count_nonzero((largest >= 0.25) & (largest < 0.3))
    assert f"detections of one category lies just below 0.3; {above} images exceed it by less than 0.05" in one.says
    assert one.says.endswith(f"and {beyond} by more")


def test_copied_boxes_are_counted_again():
    data, made = planted("labels_among_the_detections")
    objects = {(o["image_id"], o["category_id"], *o["bbox"]) for o in data.truth["annotations"]}
    copies = sum((d["image_id"], d["category_id"], *d["bbox"]) in objects for d in data.found)
    assert made["copied_boxes"].count == copies
    assert made["copied_boxes"].remedy.endswith("or were the labels made from these detections?")


def test_square_boxes_are_counted_again():
    data, made = planted("squares_around_the_middle")
    sizes = {one["id"]: (one["width"], one["height"]) for one in data.truth["images"]}
    count = 0
    for one in data.found:
        (x, y, w, h), (width, height) = one["bbox"], sizes[one["image_id"]]
        count += abs(w - h) < 0.02 and min(x, y, width - x - w, height - y - h) > 2
    assert made["square_boxes"].count == count


def test_images_that_were_left_out_are_counted_again():
    data, made = planted("images_of_annotations_alone")
    held = {one["image_id"] for one in data.truth["annotations"]}
    bare = {one["id"] for one in data.truth["images"]} - held
    assert made["empty_images_skipped"].count == len(bare)
    assert not bare & {one["image_id"] for one in data.found}


def test_detections_that_were_matched_are_counted_again():
    data, made = planted("matched_detections_alone", share=1.0)
    objects = by_image(data.truth["annotations"])
    near = [max(iou(d["bbox"], o["bbox"]) for o in objects[d["image_id"]]) for d in data.found]
    one = made["detections_of_labels"]
    assert one.count == len(data.found)
    assert one.says.endswith(f"of {one.count:,} that were looked at {sum(value < 0.1 for value in near)} do not")


def test_boxes_of_tiles_are_at_least_as_many_as_said():
    data, made = planted("offset_of_tiles_lost")
    one = made["shifted_boxes"]
    sizes, objects = {o["id"]: o for o in data.truth["images"]}, by_image(data.truth["annotations"])
    back = 0
    for d in data.found:
        x, y, w, h = d["bbox"]
        moved = [x + sizes[d["image_id"]]["width"] / 2, y, w, h]
        near = [[iou(box, o["bbox"]) for o in objects.get(d["image_id"], ())] for box in (d["bbox"], moved)]
        back += max(near[0], default=0) < 0.3 and max(near[1], default=0) >= 0.6
    assert 0.5 * back < one.count <= 1.02 * back


@pytest.mark.parametrize("name", ["scores_multiplied_twice_on_a_shard", "scores_of_a_shard_scaled"])
def test_uneven_scores_are_counted_again_with_their_medians(name):
    data, made = planted(name, share=0.3)
    one = made["uneven_scores"]
    assert one.says.startswith(f"{one.count:,} detections with other scores than those elsewhere: ")
    there = within(one.says)
    inside, outside = ([d["score"] for d in data.found if there(d["image_id"]) is which] for which in (True, False))
    assert one.count == len(inside)
    low, usual = (float(v) for v in re.search(r"median ([\d.]+); elsewhere ([\d.]+)", one.says).groups())
    assert (low, usual) == (pytest.approx(np.median(inside), rel=0.01), pytest.approx(np.median(outside), rel=0.01))


def test_scores_that_are_one_number_are_counted_again():
    data, made = planted("scores_clipped", share=0.02)
    assert made["piled_scores"].count == max(Counter(d["score"] for d in data.found).values())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", planting.KINDS)
def test_clean_scenes_have_no_finding(kind, seed):
    data = scene(seed, kind).data()
    assert check(data.truth, data.found).codes == ()


# ------------------------------------------------------------------------------------------------- limits, on both sides


def test_ranges_of_random_units_are_rarely_bad():
    """Ville's inequality: of 2,000 sequences at most `CHANCE` have a range, with some that are planted found."""
    rng = np.random.default_rng(0)
    chance = np.full(300, 0.1)
    by_chance = sum(bool(bad_ranges(rng.random(300) < chance, chance, 1.0)) for _ in range(2000))
    assert by_chance <= 2000 * CHANCE + 4
    bad = np.zeros(300, bool)
    bad[100:110] = True
    (one,) = bad_ranges(bad, chance, 1.0)
    assert (one.start, one.stop) == (100, 110)


def test_either_side_of_the_evidence_for_a_range():
    """A run of bad units has a sum of logarithms that reaches the limit, or does not."""
    chance = np.full(200, 0.2)
    each = float(evidence(np.ones(1, bool), chance[:1])[0])
    assert each == pytest.approx(np.log((1 - 0.8 * LEFT) / 0.2))
    least = int(np.ceil(np.log(200 / CHANCE) / each))
    for length, said in ((least - 1, False), (least, True)):
        bad = np.zeros(200, bool)
        bad[50 : 50 + length] = True
        assert bool(bad_ranges(bad, chance, 1.0)) is said
    assert evidence(np.ones(1, bool), np.zeros(1))[0] == evidence(np.ones(1, bool), np.full(1, FLOOR))[0]


def test_a_part_needs_five_bad_units():
    places = np.arange(400)
    for count, said in ((4, False), (5, True)):
        bad = np.zeros(400, bool)
        bad[10 : 10 + count] = True
        division = Division(places, [Order("ids", places)], [])
        assert (division.unlike(places, bad, np.full(400, 0.0)) is not None) is said


def test_odds_multiply():
    rng = np.random.default_rng(0)
    one, other = rng.integers(2, size=40_000), rng.integers(2, size=40_000)
    true = 1 / (1 + np.exp(-(-2.0 + 1.5 * one + 1.0 * other)))
    made = explained(rng.random(40_000) < true, (one, 2), (other, 2))
    assert np.abs(made - true).max() < 0.03


def test_shares_of_a_code_are_those_of_five_more_units_of_the_overall_share():
    flags, codes = np.array([True, True, False, False, False]), np.array([0, 0, 0, 1, 1])
    shares = [(2 + 5 * 0.4) / 8, 5 * 0.4 / 7, 0.4]
    assert rates(flags, codes, 3) == pytest.approx(shares)
    assert explained(flags, (codes, 2)) == pytest.approx(np.array(shares)[codes])  # one factor explains its own shares


def edge(least, beyond, next_to=40, behind=20):
    """Detections above a least size, and objects on both sides of it."""
    found = np.concatenate([np.linspace(least, 1.14 * least, next_to), np.linspace(1.16 * least, 1.3 * least, behind)])
    found = np.concatenate([found, np.linspace(2 * least, 9 * least, 200)])
    objects = np.concatenate([np.linspace(0.5, 0.95, beyond) * least, np.linspace(1.01, 9, 60) * least])
    return limits.edge_below(found, objects)


def test_either_side_of_a_limit_of_size():
    assert edge(10.0, 30) == 10.0
    assert edge(10.0, 9) is None
    assert edge(10.0, 30, next_to=11, behind=5) is None
    assert edge(10.0, 30, next_to=20, behind=41) is None
    assert edge(10.0, 30, next_to=21, behind=41) == 10.0
    assert edge(0.0, 30) is None


def test_objects_beside_a_limit_are_those_within_two_bands():
    """A hundred objects there, as against forty detections, make the limit one of objects too."""
    found = np.concatenate([np.full(40, 10.0), np.full(960, 50.0)])
    end = 10.0 * 1.15**2
    for beside, limit in ((end, 10.0), (np.nextafter(end, 0), None)):
        assert limits.edge_below(found, np.concatenate([np.full(100, 5.0), np.full(100, beside)])) == limit


def test_frames_of_a_video_count_as_one_image_where_objects_overlap():
    """Forty objects that overlap more than detections do, as of still images, and as of videos of ten frames."""
    detections, objects = np.full(50, 0.5), np.full(40, 0.7)
    evidence = SimpleNamespace(
        between_any=(detections, objects), between_detections=detections, between_objects=objects,
        hit=np.ones(50, bool), object_image=np.arange(40), objects=np.arange(40),
        truth=SimpleNamespace(records=lambda rows: {"records": rows.tolist()}),
    )  # fmt: skip
    for frames, codes in ((1, ["suppressed_across"]), (10, [])):
        evidence.frames = frames
        assert [one.code for one in limits._neighbours(evidence)] == codes


def test_boxes_that_would_fit_as_corners_anyway_show_nothing():
    """Twenty boxes beyond their images fit as corners: of 200 boxes within, so do all, nine of ten, or none."""
    sizes, far = np.full((220, 2), 100.0), np.arange(220) < 20
    for share, said in ((1, True), (0.9, False), (0, True)):
        fits = far | (np.arange(220) < 20 + 200 * share)
        assert bool(boxes._rather(far, fits, sizes, "corners_as_sizes")) is said
    assert boxes._rather(far[:20], far[:20], sizes[:20], "corners_as_sizes")  # no box within


def test_scores_of_two_scales():
    """Scores of 1 belong to the probabilities, and most scores above 1 must be above 2."""
    below = np.linspace(0.51, 0.99, 60)
    for ones, above, said in ((30, 3.0, True), (30, 2.0, False), (0, 3.0, True)):
        assert scores._two_scales(np.concatenate([below, np.ones(ones), np.full(20, above)])) is said


def test_ids_that_are_positions():
    known = 10 * np.arange(30) + 5
    for first in (0, 1):
        code, says = image_ids.by_ids_alone(np.arange(30) + first, known, "image_ids")
        assert (code, says) == ("image_ids_positions", f"counted from {first}, in the order of the ids")
    for wrong in (-1, 2):
        assert image_ids.by_ids_alone(np.arange(30) + wrong, known, "image_ids") is None


def test_either_side_of_a_bias():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.02, (400, 4))
    noise -= np.median(noise, axis=0)
    every = np.ones(400, bool)
    for bias, said in ((0.078, False), (0.082, True)):
        assert (uneven.biased(noise + np.array([0, bias, 0, 0]), every) is not None) is said
    assert uneven.biased(noise + 0.5, every[:0]) is None
    side = np.linspace(10, 100, 400)
    for more, said in ((0.73, False), (0.77, True)):
        assert (uneven.wider(noise[:, :2] * 0 + more, side) is not None) is said
    assert uneven.wider(side[:, None] * [0.05, 0.05], side) is None  # larger with the object: a bias


def test_ranks_of_equal_values_are_equal():
    made = uneven.ranks(np.array([3.0, 1.0, 1.0, 2.0, 7.0, 7.0]), np.array([0, 0, 0, 0, 1, 1]))
    assert made.tolist() == [0.875, 0.25, 0.25, 0.625, 0.5, 0.5]


def test_either_side_of_what_is_beyond_other_categories():
    assert categories._beyond(30, 100, 0.02, 5)
    assert not categories._beyond(9, 100, 0.0, 5)  # fewer than ten
    assert not categories._beyond(29, 100, 0.1, 5)  # less than three times as many
    assert categories._beyond(40, 100, 0.1, 5)


def test_either_side_of_the_same_place():
    """Corners that differ by less than a hundredth of the image are those of one object, by more of two."""
    corners = np.array([[0.1, 0.1, 0.4, 0.5], [0.5, 0.2, 0.9, 0.6], [0.3, 0.6, 0.5, 0.9]])
    one = leakage.Layout(np.zeros(3, int), np.zeros(3, int), corners, np.array([0]), np.array([3]))
    for by, same in ((0.009, True), (0.011, False)):
        moved = corners + np.array([[by, 0, 0, 0], [0, -by, 0, 0], [0, 0, by, 0]])
        other = one._replace(corners=moved)
        assert (list(leakage._by_objects(one, other, False)) == [0]) is same
    two = leakage.Layout(one.image[:2], one.label[:2], corners[:2], np.array([0]), np.array([2]))
    assert list(leakage._by_objects(two, two, False)) == []  # fewer than three objects say nothing


def test_one_name_is_no_leak_where_objects_differ():
    """Two data sets whose files are numbered in the same way share no image."""
    truth, other = (copy.deepcopy(scene(seed, "one class")).data().truth for seed in (0, 1))
    for document in (truth, other):
        for at, image in enumerate(document["images"]):
            image["file_name"] = f"{at:06d}.jpg"
    for image in other["images"]:
        image["width"], image["height"] = image["width"] * 2, image["height"] * 2
    assert "leakage" not in check(truth, train=other).codes


@pytest.mark.parametrize(("kind", "share", "seed"), [("sparse", 0.15, 0), ("one class", 0.3, 1), ("sparse", 0.05, 2)])
def test_boxes_scaled_by_height_for_width_are_counted_as_the_sentence_says(kind, share, seed):
    """Of the best detections, as many as objects, those that lie on one only after x is scaled back, and y the other way."""
    data, made = planted("height_for_width_on_a_shard", kind, share, seed)
    said = made["scaled_boxes"]
    assert ": as if each image had its height for its width, and its width for its height; images " in said.says
    sizes = {one["id"]: (one["width"], one["height"]) for one in data.truth["images"]}
    objects, inside, count = by_image(data.truth["annotations"]), within(said.says), 0
    order = sorted(range(len(data.found)), key=lambda row: -data.found[row]["score"])
    for one in (data.found[row] for row in order[: len(data.truth["annotations"])]):
        w, h = sizes[one["image_id"]]
        undone = [value * by for value, by in zip(one["bbox"], (w / h, h / w) * 2, strict=True)]
        before, after = (
            max((iou(box, of["bbox"]) for of in objects.get(one["image_id"], [])), default=0)
            for box in (one["bbox"], undone)
        )
        count += before < 0.3 and after >= 0.6 and inside(one["image_id"])
    assert said.count == count
    assert "misplaced" not in made
