"""What the writing of results does wrong: numbers are counted again from the file, limits are tested on both sides."""

from __future__ import annotations

import copy
import re
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_parts import by_image, iou, planted, scene, within

from detmap.checks import check, parts
from detmap.checks import scores as of_scores
from detmap.checks.context import Facts
from detmap.checks.rates import Division, Order


def few(kind, images):
    """The first images of a clean scene."""
    data = copy.deepcopy(scene(0, kind)).data()
    data.truth["images"] = sorted(data.truth["images"], key=lambda one: one["id"])[:images]
    kept = {one["id"] for one in data.truth["images"]}
    data.truth["annotations"] = [one for one in data.truth["annotations"] if one["image_id"] in kept]
    data.found = [one for one in data.found if one["image_id"] in kept]
    return data


def record(one):
    return one["category_id"], *one["bbox"], one["score"]


def findings(data):
    return {one.code: one for one in reversed(check(data.truth, data.found).findings)}


# ------------------------------------------------------------------------------------------------------------ left over


def test_detections_of_the_image_before_are_counted_again():
    data, made = planted("list_of_the_image_before_not_cleared", "crowded")
    one = made["detections_left_over"]
    held = defaultdict(set)
    for at, d in enumerate(data.found):
        held[record(d)].add((d["image_id"], at))
    copies = [sorted(own)[1:] for own in held.values() if len({image for image, _ in own}) > 1]
    rows = sorted(at for own in copies for _, at in own)
    images = {data.found[at]["image_id"] for at in rows}
    assert one.count == len(rows)
    assert list(one.records) == rows[:10]
    assert f"on {len(images)} images, of the image before, by id; images {min(images)} to {max(images)}" in one.says
    there = [d for d in data.found if within(one.says)(d["image_id"])]
    assert f"{len(images)} images with {len(there):,} detections" in one.says
    assert "image_ids_shifted" not in made


def left_over(images, records=2, step=1, own=True):
    """Findings where a number of images hold some detections of an image further on or back."""
    data = few("one class", 160)
    held = by_image(data.found)
    ids = [one for one in sorted(held) if len(held[one]) >= 3]
    known = sorted(one["id"] for one in data.truth["images"])
    for at in range(images):
        source = ids[10 * at + 5]
        other = known[known.index(source) + step]
        if not own:
            data.found = [d for d in data.found if d["image_id"] != other]
        best = sorted(held[source], key=lambda d: -d["score"])[: records if own else None]
        data.found += [{**d, "image_id": other} for d in best]
    return findings(data)


def test_either_side_of_images_that_hold_those_of_another():
    made = left_over(3)
    assert made["detections_left_over"].count == 6
    assert "of the image before, by id" in made["detections_left_over"].says
    assert "detections_left_over" not in left_over(2)
    assert "detections_left_over" not in left_over(3, records=1)


def test_copies_are_those_that_lie_on_nothing():
    """An image holds detections of a later one, which are copies though they come first in the order of ids."""
    made = left_over(12, records=3, step=-1)
    assert "of the image after, by id" in made["detections_left_over"].says


def test_images_with_those_of_another_alone_have_the_finding_of_their_own():
    made = left_over(6, own=False)
    assert "same_detections" in made
    assert "detections_left_over" not in made


# ------------------------------------------------------------------------------------------------------------- one place


def test_detections_in_one_place_are_counted_again():
    data, made = planted("logo_on_some_images", "crowded")
    one = made["detections_in_place"]
    name = re.search(r": category (\w+)", one.says)[1]
    number = {c["name"]: c["id"] for c in data.truth["categories"]}[name]
    x, y, w, h = map(float, re.search(r"pixels of ([\d., ]+), on", one.says)[1].split(", "))
    here = [
        d for d in data.found if d["category_id"] == number and np.abs(np.array(d["bbox"]) - [x, y, w, h]).max() <= 3.0
    ]
    assert one.count == len(here)
    assert f"on {len({d['image_id'] for d in here})} images" in one.says
    assert np.allclose([x, y, w, h], [24, 18, 92, 44], atol=0.5)
    assert not {"rarely_labelled", "unlabelled", "missing_labels"} & set(made)


def in_place(images, step=2, jitter=0.0, box=(24.0, 18, 92, 44), on=0):
    """Findings where some images have a detection in one place; on the first `on` of these lies an object, too."""
    data = few("one class", 120)
    rng = np.random.default_rng(0)
    known = sorted(one["id"] for one in data.truth["images"])[::step][:images]
    for at, image in enumerate(known):
        own = np.round(np.array(box) + rng.uniform(-jitter, jitter, 4), 2).tolist()
        data.found.append({"image_id": image, "category_id": 1, "bbox": own, "score": 0.99 - at * 1e-6})
        data.truth["annotations"] = [
            o for o in data.truth["annotations"] if o["image_id"] != image or iou(o["bbox"], box) < 0.5
        ]
        if at < on:
            data.truth["annotations"].append(
                {"id": 10**6 + at, "image_id": image, "category_id": 1, "bbox": list(box), "area": 4048.0, "iscrowd": 0}
            )
    return "detections_in_place" in findings(data)


@pytest.mark.slow
def test_either_side_of_one_place():
    assert in_place(12)
    assert not in_place(11)
    assert in_place(60, jitter=2.5)
    assert not in_place(60, jitter=15.0)
    assert not in_place(60, step=1)  # a camera that stands still
    assert in_place(60, on=6)
    assert not in_place(60, on=7)  # more than a tenth find an object
    assert not in_place(60, box=(0.0, 0, 92, 44))  # boxes at two edges of their image are equal by clipping


# ----------------------------------------------------------------------------------------------------------- two classes


def test_detections_of_two_classes_are_counted_again():
    data, made = planted("class_written_twice", "crowded", 0.5)
    one = made["detections_of_two_classes"]
    number = {c["name"]: c["id"] for c in data.truth["categories"]}
    kept, other = (number[name] for name in re.search(r"of category (\w+), under (\w+)", one.says).groups())
    own = {(d["image_id"], *record(d)[1:]) for d in data.found if d["category_id"] == kept}
    again = [d for d in data.found if d["category_id"] == other and (d["image_id"], *record(d)[1:]) in own]
    assert one.count == len(again)
    assert f"of {sum(d['category_id'] == kept for d in data.found):,} of category" in one.says
    assert {f"{d['category_id']}" for d in (data.found[at] for at in one.records)} == {f"{other}"}


def twice(count, meant=False):
    """Whether it is said where the best detections of a class are written again; `meant` objects are of both, too."""
    data = few("crowded", 60)
    best = sorted((d for d in data.found if d["category_id"] == 1), key=lambda d: -d["score"])[:count]
    data.found += [{**d, "category_id": 3} for d in best]
    if meant:
        data.truth["annotations"] += [
            {**o, "id": 10**6 + o["id"], "category_id": 3} for o in data.truth["annotations"] if o["category_id"] == 1
        ]
    return "detections_of_two_classes" in findings(data)


def test_either_side_of_detections_of_two_classes():
    assert twice(10)
    assert not twice(9)
    assert not twice(200, meant=True)


# -------------------------------------------------------------------------------------------------------------- exchanged


def test_exchanged_parts_are_counted_again():
    data, made = planted("shards_exchanged", "one class", 0.5, seed=1)
    one = made["parts_exchanged"]
    ranges = re.findall(r"images (\d+) to (\d+) hold those of (\d+) to (\d+)", one.says)
    assert len(ranges) == 2
    assert one.count == sum(any(int(a) <= d["image_id"] <= int(b) for a, b, *_ in ranges) for d in data.found)
    known = np.array(sorted(one["id"] for one in data.truth["images"]))
    steps = [np.searchsorted(known, int(c)) - np.searchsorted(known, int(a)) for a, _, c, _ in ranges]
    assert steps[0] == -steps[1] != 0
    inside = sum(any(int(a) <= image <= int(b) for a, b, *_ in ranges) for image in known)
    assert f"{inside} images" in one.says
    assert "misplaced" not in made


# ----------------------------------------------------------------------------------------------------------------- scores


def test_scores_that_were_sorted_apart_are_counted_again():
    data, made = planted("scores_sorted_apart", "crowded", 0.1)
    one = made["scores_rank_nothing"]
    there, finds = within(one.says), set()
    of = defaultdict(list)
    for o in data.truth["annotations"]:
        of[o["image_id"], o["category_id"]].append(o)
    for d in data.found:
        near = of[d["image_id"], d["category_id"]] if there(d["image_id"]) else []
        on = max(near, key=lambda o: iou(o["bbox"], d["bbox"]), default=None)
        if on is not None and iou(on["bbox"], d["bbox"]) >= 0.5:
            finds.add(on["id"])
    assert one.count == len(finds)
    listed = [
        [d["score"] for d in own] for image, own in by_image(data.found).items() if there(image) and len(own) >= 6
    ]
    assert np.mean([own == sorted(own, reverse=True) for own in listed]) >= 0.9
    assert one.says.endswith("; there alone the file lists each image by descending score")


@pytest.mark.parametrize(("digits", "word"), [(1, "one"), (2, "two"), (3, "three"), (4, "four")])
def test_scores_of_few_digits_in_a_part_are_counted_again(digits, word):
    data = few("one class", 160)
    ids = sorted(one["id"] for one in data.truth["images"])[40:80]
    for one in data.found:
        one["score"] = round(one["score"], digits if one["image_id"] in ids else 7)
    one = findings(data)["coarse_scores"]
    rows = [d for d in data.found if within(one.says)(d["image_id"]) and d["score"] == round(d["score"], digits)]
    assert one.count == len(rows)
    assert f": {word} after the point, where others have more; images" in one.says
    first, last = map(int, re.search(r"images (\d+) to (\d+)", one.says).groups())
    assert ids[0] <= first <= ids[2]
    assert ids[-3] <= last <= ids[-1]


def short(images, records=4, digits=7):
    """Findings of scores where some images have two digits and others have more."""
    rng = np.random.default_rng(0)
    image = np.repeat(np.arange(100), records)
    scores = np.round(rng.random(image.size), digits)
    scores[image < images] = np.round(0.01 + 0.9 * rng.random(np.count_nonzero(image < images)), 2)
    side = SimpleNamespace(
        image=image, on=SimpleNamespace(images=SimpleNamespace(ids=np.arange(100))), records=lambda rows: {}
    )
    facts = SimpleNamespace(schema=False, concentrated=lambda *given: None)
    return [one.count for one in of_scores._coarse_part(facts, side, scores)]


def test_either_side_of_images_of_few_digits():
    """Six images of four scores are there by chance once in 1,700 files that have one by chance."""
    assert short(6) == [24]
    assert short(5) == []
    assert short(20, records=3) == []
    assert short(100) == []
    assert short(0, digits=3) == []


# ------------------------------------------------------------------------------------------------------------------ parts


def of_part(flags, known=None):
    """The part that holds most of the flagged images."""
    facts = Facts(None)
    count = len(flags)
    facts.division = Division(np.arange(count), [Order("ids", np.arange(count))], [])
    return facts.concentrated(np.array(flags, bool), np.ones(count, bool) if known is None else known)


def test_either_side_of_a_part_that_holds_the_flagged_images():
    rng = np.random.default_rng(0)
    flags = np.zeros(400, bool)
    flags[100:200] = rng.random(100) < 0.4
    part = of_part(flags)
    assert re.fullmatch(r"images 1\d\d to 1\d\d, in the order of ids", part.says)
    assert part.images[110:160].all()
    assert of_part(rng.random(400) < 0.1) is None  # anywhere
    assert of_part(np.ones(400, bool)) is None
    for others, said in ((55, True), (65, False)):  # less than two fifths of the flagged images lie in the part
        flags = np.zeros(1000, bool)
        flags[100:140] = True
        flags[np.linspace(150, 999, others).astype(int)] = True
        assert (of_part(flags) is not None) is said


def test_mirrored_detections_are_those_of_the_part():
    data, made = planted("shard_mirrored", "one class", 0.1)
    one = made["turned_boxes"]
    there = within(one.says)
    rows = [d for d in data.found if there(d["image_id"])]
    images = [i for i in data.truth["images"] if there(i["id"])]
    assert one.says.endswith(f", {len(images)} images with {len(rows):,} detections")
    assert all(there(data.found[at]["image_id"]) for at in one.records)
    assert one.count <= len(rows)


def test_categories_taken_for_others_in_a_part_are_counted_again():
    data, made = planted("older_list_of_classes_on_a_shard", "crowded", 0.5)
    says = made["relabelled"].says
    names = {c["name"]: c["id"] for c in data.truth["categories"]}
    pairs = re.findall(r"(\w+) on (\w+) \((\d+) of (\d+)\)", says.partition("confident detections lie there")[2])
    half = len(names) // 2
    moved = {(names[one] - 2) % half + 1 if names[one] > 1 else half: names[one] for one, *_ in pairs}
    assert {names[one]: names[of] for one, of, *_ in pairs} == {b: a for a, b in moved.items()}
    assert all(int(some) >= 0.6 * int(of) for *_, some, of in pairs)


def test_either_side_of_a_category_written_on_another():
    def of(on_other, on_own, classes=3):
        written = np.zeros(on_other + on_own, int)
        return parts.mapping(written, np.repeat([1, 0], [on_other, on_own]), classes)

    assert of(6, 4) == {0: (1, 6, 10)}
    assert of(59, 41) == {}
    assert of(5, 0) == {0: (1, 5, 5)}
    assert of(4, 0) == {}


def test_a_score_of_the_image_that_is_a_limit_is_one_of_the_part():
    data = few("crowded", 250)
    ids = sorted(one["id"] for one in data.truth["images"])[100:200]
    held = by_image(data.found)
    data.found = [
        d for image, own in held.items() for d in (sorted(own, key=lambda d: -d["score"])[:12] if image in ids else own)
    ]
    one = findings(data)["cap_reached"]
    counts = Counter(d["image_id"] for d in data.found)
    assert one.count == sum(counts[image] == 12 and within(one.says)(image) for image in counts)
    assert all(ids[0] <= image <= ids[-1] for image in one.records)
