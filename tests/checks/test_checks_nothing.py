"""Each check of data in which there is nothing to compare: no objects, no detections, or none that could be compared."""

from __future__ import annotations

import numpy as np
import pytest

from detmap import checks
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.data.tables import Detections, GroundTruth

THEMES = {theme.__name__.rpartition(".")[2]: theme for theme in checks._THEMES}


def facts_of(scene, images=60):
    """Objects and detections on them on each image, but for what the scene lacks."""
    rng = np.random.default_rng(0)
    image = np.repeat(np.arange(images), rng.integers(1, 7, images))
    label = np.arange(image.size) % 2
    boxes = np.c_[rng.uniform(0, 300, (image.size, 2)), rng.uniform(20, 90, (image.size, 2))]
    crowd = np.full(image.size, scene == "crowds")
    kept = slice(0 if scene in ("no objects", "neither") else None)
    truth = GroundTruth.from_arrays(
        image_ids=image[kept], category_ids=label[kept], boxes=boxes[kept], crowd=crowd[kept],
        image_sizes=np.full((images, 2), 400), images=np.arange(images), categories=[0, 1],
    )  # fmt: skip
    if scene == "truth alone":
        return Facts(side_of(truth))
    kept = slice(0 if scene in ("no detections", "neither") else None)
    near = boxes + rng.normal(0, 1, boxes.shape)
    found = Detections.from_arrays(
        image_ids=(image + 1000 * (scene == "other images"))[kept],
        category_ids=(label + 10 * (scene == "other categories"))[kept], boxes=near[kept],
        scores=rng.random(image.size)[kept],
    )  # fmt: skip
    own = side_of(truth.take(np.zeros(0, int))) if scene == "schema" else side_of(truth)
    made = Facts(own, side_of(found, own.table), schema=scene == "schema")
    if scene == "aside":
        made.found.aside[:] = True
    if scene == "objects aside":
        made.truth.aside[:] = True
    if scene == "caused":
        made.causes.add(("detections", "scaled_boxes"))
    return made


#: By scene what checks say, each alone, of data in which they cannot compare objects with detections.
SAID = {
    "fine": {},
    "no objects": {"coverage": ["no_objects"]},
    "no detections": {"coverage": ["no_detections"]},
    "neither": {"coverage": ["no_objects", "no_detections"]},
    "crowds": {"boxes": ["crowds_misplaced"], "labels": ["categories_without_objects"]},
    "truth alone": {},
    "other images": {"image_ids": ["image_ids_shifted"]},
    "other categories": {"labels": ["classes_renamed"]},
    "schema": {},
    "aside": {},
    "objects aside": {},
    "caused": {},
}


@pytest.mark.parametrize("scene", SAID)
def test_each_check_of_data_with_nothing_to_compare(scene):
    made = {}
    for name, theme in THEMES.items():
        facts = facts_of(scene)
        codes = [one.code for one in theme.check(facts)]
        if codes:
            made[name] = codes
    assert made == SAID[scene]


def test_a_table_is_checked_for_its_images_and_categories():
    facts = facts_of("fine")
    report = checks.check(facts.truth.table, facts.found.table, schema=True)
    assert report.subject == f"{len(facts.found)} detections, 60 images, 2 categories"
    assert report.codes == ()
    other = facts_of("other categories").found.table
    assert checks.check(facts.truth.table, other, schema=True).codes == ("unknown_categories",)
