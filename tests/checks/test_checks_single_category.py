"""Detections that all have one category on a part of the images: what is said, and either side of each limit."""

from __future__ import annotations

import re

import numpy as np
import planting
import pytest
from planting.scenes import overlap
from test_checks_parts import planted

import detmap
from detmap.checks import single_category
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.checks.rates import Part


@pytest.mark.parametrize(("kind", "share", "seed"), [("sparse", 0.1, 0), ("sparse", 0.3, 1), ("crowded", 0.05, 2)])
def test_detections_of_one_category_are_counted_as_the_sentence_says(kind, share, seed):
    data, made = planted("one_class_on_a_shard", kind, share, seed)
    says = made["single_category"].says
    name, first, last, images = re.search(
        r"several: (\S+); images (\d+) to (\d+), in the order of ids, (\d+) im", says
    ).groups()
    one = next(of["id"] for of in data.truth["categories"] if of["name"] == name)
    listed = {of["id"] for of in data.truth["images"] if int(first) <= of["id"] <= int(last)}
    of_image = {}
    for of in data.found:
        of_image.setdefault(of["image_id"], []).append(of)
    inside = [
        of for image in listed for of in of_image.get(image, []) if {n["category_id"] for n in of_image[image]} == {one}
    ]
    assert (len(listed), len(inside)) == (int(images), made["single_category"].count)
    objects = {}
    for of in data.truth["annotations"]:
        objects.setdefault(of["image_id"], []).append(of)
    on = other = 0
    for of in inside:
        best = max(
            objects.get(of["image_id"], []), key=lambda one, of=of: overlap(one["bbox"], of["bbox"]), default=None
        )
        if best is not None and overlap(best["bbox"], of["bbox"]) >= 0.5:
            on, other = on + 1, other + (best["category_id"] != one)
    assert f"; of {on:,} on an object, {other:,} are on one of another category" in says
    assert set(made) <= {"single_category", "images_without_detections", "beyond_cap"}


def told(of_objects, part=40, labels=0, each=None, gathered=True, images=200, classes=4):
    """The number of detections said to be of one category (0) on the first images of 200, which have each a detection on
    objects of the given categories. Other images have detections of `classes` categories.
    """
    each = each or len(of_objects) // part
    inside = part * each
    object_image = np.concatenate([np.repeat(np.arange(part), each), np.repeat(np.arange(part, images), 10)])
    place = np.concatenate([np.tile(np.arange(each), part), np.tile(np.arange(10), images - part)])
    category = np.concatenate([of_objects, np.arange(object_image.size - inside) % classes])
    boxes = np.stack([100.0 * place, 0 * place, 50 + 0 * place, 50 + 0 * place], axis=1)
    truth = detmap.GroundTruth.from_arrays(image_ids=object_image, category_ids=category, boxes=boxes)
    found = detmap.Detections.from_arrays(
        image_ids=object_image, category_ids=np.concatenate([np.broadcast_to(labels, inside), category[inside:]]),
        boxes=boxes, scores=0.5 + np.arange(object_image.size) / 1e5,
    )  # fmt: skip
    facts = Facts(side_of(truth), side_of(found, truth))
    if gathered is not True:
        facts.gathered = lambda flags, known: gathered
    made = list(single_category.check(facts))
    assert len(made) == len(facts.parts) == len(facts.causes) == int(facts.found.aside.any())
    return [one.count for one in made]


@pytest.mark.parametrize(("classes", "counts"), [(2, [400]), (1, [])])
def test_two_categories_are_enough(classes, counts):
    assert told(np.arange(400) % classes, classes=classes) == counts


def mixture(*counts):
    """Categories 0, 1, … so many times each, on images in turn."""
    return np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))


def test_either_side_of_detections_on_objects_of_others():
    """Three in ten lie on objects of another category; at most eight in ten on those of one."""
    assert told(mixture(140, 30, 30)) == [200]
    assert told(mixture(141, 30, 29)) == []
    assert told(mixture(10, 160, 30)) == [200]
    assert told(mixture(10, 161, 29)) == []  # another name for the category 1


def test_either_side_of_images_of_one_category():
    assert told(mixture(5, 5, 4), part=7) == [14]
    assert told(mixture(20, 30, 30), part=80, each=1) == []  # one detection each
    few = np.array([0, 1, 0, 2, 0, 1, 0, 2, 0, 3, 0, 0])
    five = Part(np.arange(200) < 6, "some", np.arange(200) < 6)
    assert told(few, part=6, gathered=five) == [12]
    few[1] = 0  # on four images are objects of others
    assert told(few, part=6, gathered=five) == []


@pytest.mark.parametrize(("size", "said"), [(80, [200]), (81, [])])
def test_either_side_of_a_part_where_half_of_the_images_have_one_category(size, said):
    inside = np.arange(200) < size
    assert told(mixture(60, 70, 70), gathered=Part(inside, "some", inside)) == said


@pytest.mark.parametrize(("count", "each", "said"), [(6, 8, [48]), (6, 7, []), (4, 8, [])])
def test_either_side_of_one_category_on_images_anywhere(count, each, said):
    """Eight detections on six of 600 images, a hundredth."""
    at = mixture(*[count * each // 3 + 1] * 3)[: count * each]
    assert told(at, part=count, gathered=None, images=600) == said
    assert told(at, part=count, gathered=None, images=601) == []


@pytest.mark.parametrize(("first", "said"), [(20, [200]), (21, [105])])
def test_either_side_of_one_category_for_each_image(first, said):
    """Of 40 images half have the most frequent category, or one more; others have three categories in turn."""
    of_images = np.where(np.arange(40) < first, 0, 1 + np.arange(40) % 3)
    assert told(mixture(70, 70, 60), labels=np.repeat(of_images, 5)) == said


def test_either_side_of_the_number_of_images_that_have_one_category_each():
    five = Part(np.arange(200) < 5, "some", np.arange(200) < 5)
    assert told(
        np.array([1, 2, 3, 0, 1, 3, 2, 0, 3, 1]), part=5, labels=np.repeat([0, 1, 2, 3, 0], 2), gathered=five
    ) == [10]
    four = Part(np.arange(200) < 4, "some", np.arange(200) < 4)
    assert told(np.array([1, 2, 3, 0, 1, 3, 2, 0]), part=4, labels=np.repeat([0, 1, 2, 3], 2), gathered=four) == []


@pytest.mark.parametrize(("share", "where"), [(0.1, "run"), (0.3, "anywhere")])
def test_one_category_for_each_image_is_counted_as_the_sentence_says(share, where):
    """On a run of images, or on images anywhere, the category of the best detection is written for all."""
    made = planting.scene(0, "crowded")
    rng = np.random.default_rng(3)
    there = np.zeros(400, bool)
    there[
        rng.permutation(400)[: round(400 * share)] if where == "anywhere" else np.arange(200, 200 + round(400 * share))
    ] = True
    best = np.lexsort((made.d_score, made.d_image))
    of_image = np.zeros(400, int)
    of_image[made.d_image[best]] = made.d_label[best]  # the last of each image stays
    made.d_label = np.where(there[made.d_image], of_image[made.d_image], made.d_label)
    data = made.data()
    findings = {one.code: one for one in detmap.check(data.truth, data.found).findings}
    says = findings["single_category"].says
    labels = {}
    for of in data.found:
        labels.setdefault(of["image_id"], []).append(of["category_id"])
    one = {image: own for image, own in labels.items() if len(set(own)) == 1 and len(own) >= 8}
    assert findings["single_category"].count == sum(map(len, one.values()))
    assert f": one for each image, {len({own[0] for own in one.values()})} in all; " in says
    assert "relabelled" not in findings
    if where == "anywhere":
        assert f"; on {len(one)} images; " in says
