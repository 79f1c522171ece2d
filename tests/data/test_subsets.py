"""Some images and categories of ground truth, the detections on them, and mismatches of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import detmap
from detmap.data import mismatches, subsets
from detmap.data.subsets import chosen_of, subset, within
from detmap.errors import InputError

NAMES = {10: "a/one.jpg", 20: "b/two.png", 30: "b/one.jpg", 40: ""}


def truth(**more):
    made = detmap.GroundTruth.from_arrays(
        image_ids=[30, 10, 10, 20], category_ids=[1, 2, 3, 3], boxes=[[n, n, 5, 5] for n in range(4)],
        images=[40, 10, 30, 20], categories=[1, 2, 3, 4], category_names={1: "cat", 2: "dog", 4: "cow"},
        image_sizes=[[4, 40], [1, 10], [3, 30], [2, 20]],
        frequencies={1: "r", 3: "f"}, neg_category_ids={10: [1, 4], 30: [], 20: [2]},
        not_exhaustive_category_ids={40: [3, 4]}, source="truth", **more,
    )  # fmt: skip
    names = tuple(NAMES[image] for image in made.images.ids.tolist())
    clusters, crowds = np.array(["y", "y", "z", "x"]), np.array([0.1, 0.2, 0.3, 0.4])
    return replace(made, images=replace(made.images, names=names, crowd_index=crowds, clusters=clusters))


def test_every_column_of_a_subset():
    whole = truth()
    part = subset(whole, ["30", "two", "40"], ["cat", 4, "3"])
    images, categories = part.images, part.categories
    assert images.ids.tolist() == [20, 30, 40]
    assert images.names == ("b/two.png", "b/one.jpg", "")
    assert images.sizes.tolist() == [[2, 20], [3, 30], [4, 40]]
    assert images.clusters.tolist() == ["y", "z", "x"]
    assert images.crowd_index.tolist() == [0.2, 0.3, 0.4]
    assert images.order.tolist() == [2, 1, 0]
    assert categories.ids.tolist() == [1, 3, 4]
    assert categories.names == ("cat", "3", "cow")
    assert categories.frequencies == ("r", "f", "")
    assert part.boxes[:, 0].tolist() == [0.0, 3.0]
    assert images.ids[images.codes].tolist() == [30, 20]
    assert categories.ids[categories.codes].tolist() == [1, 3]
    assert part.negatives.by_image(images.ids, categories.ids) == {20: [], 30: []}
    assert part.not_exhaustive.by_image(images.ids, categories.ids) == {40: [3, 4]}
    assert part.present is None
    assert part.whole is whole
    every = subset(whole)
    assert every.images.ids.tolist() == [10, 20, 30, 40]
    assert every.negatives.by_image(every.images.ids, every.categories.ids) == {10: [1, 4], 20: [2], 30: []}
    assert len(every) == 4
    none = subset(whole, [], [])
    assert (len(none), none.images.ids.size, none.categories.ids.size) == (0, 0, 0)


def test_images_by_every_name():
    whole = truth()
    for name in ("20", "b/two.png", "two.png", "two", 20):
        assert subset(whole, [name]).images.ids.tolist() == [20]
    for name in ("a/one.jpg", "b/one.jpg"):
        assert subset(whole, [name]).images.names == (name,)
    for name in ("one.jpg", "one"):
        with pytest.raises(InputError) as caught:
            subset(whole, [name])
        assert str(caught.value) == f"truth: is the name of 2 images (got {name!r}); give their ids"
    with pytest.raises(InputError) as caught:
        subset(whole, ["tow.png"])
    says = "truth: field 'images': is no image of the ground truth; did you mean 'two.png'? (got 'tow.png'); "
    says += "it has 4 images, such as "
    assert str(caught.value).startswith(says)
    assert len(str(caught.value)[len(says) :].split(", ")) == 3
    with pytest.raises(InputError) as caught:
        subset(whole, None, ["zebra"])
    says = "truth: field 'categories': is no category of the ground truth (got 'zebra'); it has 4 categories, such as "
    assert str(caught.value) == f"{says}'cat', 'dog', '3'"
    with pytest.raises(InputError, match="is no image of the ground truth"):
        subset(whole, [""])


def test_detections_on_a_subset():
    found = detmap.Detections.from_arrays(
        image_ids=[10, 20, 30, 50, 20], category_ids=[3, 3, 1, 1, 9], boxes=[[n, n, 5, 5] for n in range(5)],
        scores=[0.5, 0.4, 0.3, 0.2, 0.1],
    )  # fmt: skip
    whole = truth()
    assert within(found, whole) is found
    assert within(found, subset(whole)) is found
    assert within(found, subset(whole, [20, 30])).scores.tolist() == [0.4, 0.3, 0.2, 0.1]
    assert within(found, subset(whole, None, [1])).scores.tolist() == [0.3, 0.2, 0.1]
    assert within(found, subset(whole, [10], [1])).scores.tolist() == [0.2]
    assert within(found.take([3]), subset(whole, [10], [1])).scores.tolist() == [0.2]
    none = found.take(np.zeros(5, bool))
    assert within(none, subset(whole, [10])) is none


def test_chosen_values(tmp_path):
    assert chosen_of(["a", 5, " ", " b "], "o") == ["a", "5", "b"]
    assert chosen_of("a, b,,c", "o") == ["a", "b", "c"]
    path = tmp_path / "list.txt"
    path.write_text("a,b\n\n c \nä\n", "utf-8")
    assert chosen_of(path, "o") == ["a,b", "c", "ä"]
    assert chosen_of(str(path), "o") == ["a,b", "c", "ä"]
    for nothing in ([], "", " , ", [""]):
        with pytest.raises(InputError) as caught:
            chosen_of(nothing, "o")
        assert str(caught.value) == "o: names nothing: nothing would be scored; leave it out to score all"


def test_surroundings_of_a_subset():
    """Racks of bicycles stay with their samples."""
    from detmap.shapes.kinds import Surroundings

    whole = truth()
    around = Surroundings(
        places=np.arange(12.0).reshape(4, 3), rack_images=np.array([0, 2, 2, 3]),
        rack_centres=np.arange(12.0).reshape(4, 3), rack_sizes=np.arange(12.0).reshape(4, 3) + 1,
        rack_rotations=np.arange(16.0).reshape(4, 4),
    )  # fmt: skip
    whole = replace(whole, images=replace(whole.images, surroundings=around))
    part = subset(whole, [30, 40]).images.surroundings
    assert part.places.tolist() == around.places[2:].tolist()
    assert part.rack_images.tolist() == [0, 0, 1]
    for name in ("rack_centres", "rack_sizes", "rack_rotations"):
        assert getattr(part, name).tolist() == getattr(around, name)[1:].tolist()
    assert subsets.subset(truth(), [30]).images.surroundings is None


def boxes(shape, **more):
    return np.array([[0.1, 0.1, 0.5, 0.5]] * 3) if shape == "shares" else np.array([[10, 10, 50.0, 50]] * 3)


@pytest.mark.parametrize(
    ("true", "found", "code"),
    [("shares", "shares", "shares_of_images"), ("pixels", "shares", "normalised_detections"),
     ("shares", "pixels", "normalised_ground_truth"), ("pixels", "pixels", None)],
)  # fmt: skip
def test_units(true, found, code):
    ids = {"image_ids": [1, 2, 3], "category_ids": [1, 1, 1]}
    table = detmap.GroundTruth.from_arrays(**ids, boxes=boxes(true))
    detections = detmap.Detections.from_arrays(**ids, boxes=boxes(found), scores=[0.1, 0.2, 0.3])
    notices = mismatches.notices_of_units(table, detections)
    assert notices == ({} if code is None else {code: 3})
    none = np.zeros(3, bool)
    assert mismatches.notices_of_units(table.take(none), detections) == {}
    assert mismatches.notices_of_units(table, detections.take(none)) == {}
    few = mismatches.notices_of_units(table.take([0, 1]), detections)
    assert few == ({} if code in (None, "shares_of_images") else {code: 3})
    one = mismatches.notices_of_units(table, detections.take([0]))
    assert one == ({} if code is None else {code: 3 if code == "shares_of_images" else 1})


def test_boxes_of_one_pixel_are_no_pixels():
    """The other table has boxes of 1 x 1 beside one that shows that they are in pixels."""
    ids = {"image_ids": [1, 2, 3], "category_ids": [1, 1, 1]}
    for side, code in ((1.0, None), (1.5, "normalised_detections")):
        sides = [[0, 0, side, side], [0, 0, side, side], [0, 0, 90, 90]]
        table = detmap.GroundTruth.from_arrays(**ids, boxes=sides)
        detections = detmap.Detections.from_arrays(**ids, boxes=boxes("shares"), scores=[0.1, 0.2, 0.3])
        assert mismatches.notices_of_units(table, detections) == ({} if code is None else {code: 3})


def test_classes_without_a_file_of_results():
    count = 14
    table = detmap.GroundTruth.from_arrays(
        image_ids=[1] * count, category_ids=list(range(count)), boxes=[[0, 0, 5, 5]] * count,
        categories=list(range(count + 1)), category_names={n: f"c{n}" for n in range(count + 1)},
    )  # fmt: skip
    found = detmap.Detections.from_arrays(
        image_ids=[1], category_ids=[0], boxes=[[0, 0, 5, 5]], scores=[0.5], source="found"
    )
    assert mismatches.classes_without_results(table, found) == {}

    def lacking(there, rule, selected=None):
        detections = replace(found, classes=there, missing_classes=rule)
        return mismatches.classes_without_results(table, detections, selected), detections

    assert lacking(("c0", "3", "other"), "zero")[0] == {n: f"c{n}" for n in range(count) if n not in (0, 3)}
    some = np.array([n in (3, 5, count) for n in range(count + 1)])
    missing, detections = lacking(("c3",), "skip", some)
    assert missing == {5: "c5"}
    assert mismatches.notices_of_classes(missing, detections) == {"skipped_classes:c5": 1}
    assert mismatches.notices_of_classes(missing, replace(detections, missing_classes="zero")) == {
        "missing_classes:c5": 1
    }
    assert lacking(("c5",), "error", some & (np.arange(count + 1) == 5))[0] == {}
    advice = (
        "; write one for each, empty if nothing was found; missing_classes='zero' (--missing-classes zero) scores them as 0"
        ", 'skip' leaves them out"
    )
    for there, which, names in (
        ([f"c{n}" for n in range(13)], "1 class of the ground truth has", "c13"),
        ([f"c{n}" for n in range(12)], "2 classes of the ground truth have", "c12, c13"),
        ([f"c{n}" for n in range(4)], "10 classes of the ground truth have", ", ".join(f"c{n}" for n in range(4, 14))),
        ([], "14 classes of the ground truth have", ", ".join(f"c{n}" for n in range(10)) + " and 4 more"),
        (["c0", "c1", "c2"], "11 classes of the ground truth have",
         ", ".join(f"c{n}" for n in range(3, 13)) + " and 1 more"),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            lacking(tuple(there), "error")
        assert str(caught.value) == f"found: {which} no result file: {names}{advice}"


class Coco:
    """A data set of pycocotools, by its methods."""

    def getAnnIds(self):
        return []


def frame(*names):
    return type("Frame", (), dict.fromkeys(names))()


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (Coco(), "give the dictionary of a pycocotools.COCO: coco.dataset, and of results coco.dataset['annotations']"),
        (frame("columns", "dtypes"), "build one of a data frame: detmap.{}.from_frame(frame)"),
        (frame("__arrow_c_stream__"), "build one of a data frame: detmap.{}.from_frame(frame)"),
        (frame("columns"), "read or build one first: detmap.read(path), detmap.{}.from_arrays(...)"),
        (frame("dtypes"), "read or build one first: detmap.read(path), detmap.{}.from_arrays(...)"),
        (None, "read or build one first: detmap.read(path), detmap.{}.from_arrays(...)"),
    ],
)
def test_what_is_no_table(given, advice):
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 5, 5]], scores=[0.5])
    mismatches.check_pair(truth(), found)
    for pair, kind in (((given, found), "GroundTruth"), ((truth(), given), "Detections")):
        with pytest.raises(InputError) as caught:
            mismatches.check_pair(*pair)
        assert str(caught.value) == f"expected {kind}, not {type(given).__name__}; {advice.format(kind)}"


def test_swapped_tables():
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 5, 5]], scores=[0.5])
    for pair in ((found, truth()), ([], truth()), ((), {}), (found, {})):
        with pytest.raises(InputError) as caught:
            mismatches.check_pair(*pair)
        says = "the arguments are swapped; give the ground truth first, then the detections"
        assert str(caught.value) == says
    with pytest.raises(InputError, match=r"^expected GroundTruth, not Detections"):
        mismatches.check_pair(found, found)
    with pytest.raises(InputError, match=r"^expected Detections, not GroundTruth"):
        mismatches.check_pair(truth(), truth())
