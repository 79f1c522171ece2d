"""Open Images' hierarchy of labels: what lies above and below, what a table gets by it, limits and errors."""

from __future__ import annotations

import numpy as np
import pytest

import detmap
from detmap.data import hierarchy
from detmap.data.hierarchy import Hierarchy, expanded, with_image_labels
from detmap.data.ids import index_ids
from detmap.errors import InputError


def node(name, *children):
    return {"LabelName": name, **({"Subcategory": list(children)} if children else {})}


#: A label `d` that two paths reach, and one without anything below it.
TREE = node("root", node("a", node("b", node("d")), node("c", node("d", node("e")))), node("f"))
ABOVE = {"d": ("b", "c", "a"), "b": ("a",), "e": ("d", "c", "a"), "c": ("a",), "a": (), "f": ()}
BELOW = {"d": ("e",), "b": ("d",), "e": (), "c": ("d", "e"), "a": ("b", "d", "c", "d", "e"), "f": ()}


def test_what_lies_above_and_below():
    made = Hierarchy.of(TREE)
    assert dict(made.above) == ABOVE
    assert {name: set(below) for name, below in made.below.items()} == {k: set(v) for k, v in BELOW.items()}
    assert made.below["a"] == BELOW["a"]
    assert made.below["c"] == BELOW["c"]
    unnamed = Hierarchy.of({"Subcategory": [node("a", node("b"))]})
    assert dict(unnamed.above) == {"a": (), "b": ("a",)}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (5, "h: must be an object with a LabelName (got 5)"),
        ([], "h: must be an object with a LabelName (got [])"),
        ({"LabelName": 5}, "h: must be an object with a LabelName (got {'LabelName': 5})"),
        (node("root", 7), "h: must be an object with a LabelName (got 7)"),
        (node("root", {"Subcategory": []}), "h: must be an object with a LabelName (got {'Subcategory': []})"),
        (node("root"), "h: field 'Subcategory': has no labels below its root"),
        ({"LabelName": "root", "Subcategory": {}}, "h: root, field 'Subcategory': must be a list"),
        (node("root", {"LabelName": "a", "Subcategory": "b"}), "h: a, field 'Subcategory': must be a list"),
    ],
)
def test_what_is_no_hierarchy(document, says):
    with pytest.raises(InputError) as caught:
        Hierarchy.of(document, "h")
    assert str(caught.value) == says


def test_limits(monkeypatch):
    def deep(levels):
        made = node(f"l{levels}")
        for n in range(levels - 1, -1, -1):
            made = node(f"l{n}", made)
        return made

    assert len(Hierarchy.of(deep(100)).above["l100"]) == 99
    with pytest.raises(InputError) as caught:
        Hierarchy.of(deep(101), "h")
    assert str(caught.value) == "h: l101, field 'Subcategory': goes deeper than 100 levels"
    monkeypatch.setattr(hierarchy, "_MOST", 3)
    assert len(Hierarchy.of(deep(4)).above["l4"]) == 3
    with pytest.raises(InputError) as caught:
        Hierarchy.of(deep(5), "h")
    assert str(caught.value) == "h: has more than 3 labels above 'l5'"
    wide = [node(f"w{n}") for n in range(31)]
    assert len(Hierarchy.of(node("root", *wide[:30])).above) == 30
    with pytest.raises(InputError) as caught:
        Hierarchy.of(node("root", *wide), "h")
    assert str(caught.value) == "h: repeats labels more than 30 times"


LABELS = ["d", "f", "x", "d", "b", "a"]


def truth(**more):
    return detmap.GroundTruth.from_arrays(
        image_ids=[1, 1, 2, 3, 3, 3], category_ids=LABELS, boxes=[[n, n, 5, 5] for n in range(6)],
        images=[1, 2, 3, 4], areas=np.arange(6.0), crowd=[0, 1, 0, 1, 0, 0], **more,
    )  # fmt: skip


def rows(table):
    """Image, label, box and the other columns of each row."""
    images, labels = table.images, table.categories
    columns = [table.scores] if hasattr(table, "scores") else [table.areas, table.crowd]
    return list(
        zip(
            images.ids[images.codes].tolist(), labels.ids[labels.codes].tolist(), table.boxes[:, 0].tolist(),
            *(column.tolist() for column in columns), strict=True,
        )
    )  # fmt: skip


def test_every_row_is_followed_by_those_above():
    tree, table = Hierarchy.of(TREE), truth()
    wanted = [(image, label, *rest) for image, own, *rest in rows(table) for label in (own, *ABOVE.get(own, ()))]
    made = expanded(table, tree)
    assert rows(made) == wanted
    assert made.categories.ids.tolist() == ["a", "b", "c", "d", "f", "x"]
    assert made.categories.names == ("a", "b", "c", "d", "f", "x")
    assert dict(made.notices)["labels_outside_hierarchy"] == 1
    found = detmap.Detections.from_arrays(
        image_ids=[1, 2, 2],
        category_ids=["e", "x", "f"],
        boxes=[[n, n, 5, 5] for n in range(3)],
        scores=[0.5, 0.4, 0.3],
    )
    made = expanded(found, tree)
    assert rows(made) == [(1, "e", 0.0, 0.5), (1, "d", 0.0, 0.5), (1, "c", 0.0, 0.5), (1, "a", 0.0, 0.5),
                          (2, "x", 1.0, 0.4), (2, "f", 2.0, 0.3)]  # fmt: skip
    assert made.categories.ids.tolist() == ["a", "c", "d", "e", "f", "x"]
    assert "labels_outside_hierarchy" not in expanded(found.take([0]), tree).notices


def test_lists_of_labels_are_extended_and_names_stay():
    tree = Hierarchy.of(TREE)
    table = truth(
        neg_category_ids={1: ["a"], 2: ["f", "x"], 3: ["d"]}, not_exhaustive_category_ids={1: ["b"], 4: []},
        category_names={"a": "Animal", "x": "Unknown"},
    )  # fmt: skip
    made = expanded(table, tree)
    ids = made.images.ids, made.categories.ids
    assert made.negatives.by_image(*ids) == {1: ["a", "b", "c", "d"], 2: ["f", "x"], 3: ["d"]}
    assert made.not_exhaustive.by_image(*ids) == {1: ["b"], 4: []}
    assert made.present is None
    names = dict(zip(made.categories.ids.tolist(), made.categories.names, strict=True))
    assert (names["a"], names["x"], names["c"]) == ("Animal", "Unknown", "c")
    images, labels = (index_ids(ids, source="s", field="f") for ids in ([1, 1, 5, 2], ["b", "f", "d", "a"]))
    present = np.array([True, False, True, False])
    verified = with_image_labels(truth(), images, labels, present, "labels")
    ids = verified.images.ids, verified.categories.ids
    assert ids[0].tolist() == [1, 2, 3, 4, 5]
    assert ids[1].tolist() == ["a", "b", "d", "f", "x"]
    assert rows(verified) == rows(truth())
    assert verified.present.by_image(*ids) == {1: ["b"], 2: [], 5: ["d"]}
    assert verified.negatives.by_image(*ids) == {1: ["f"], 2: ["a"], 5: []}
    made = expanded(verified, tree)
    ids = made.images.ids, made.categories.ids
    assert made.present.by_image(*ids) == {1: ["a", "b"], 2: [], 5: ["a", "b", "c", "d"]}
    assert made.negatives.by_image(*ids) == {1: ["f"], 2: ["a", "b", "c", "d"], 5: []}


def test_tables_without_rows_and_ids_that_are_numbers():
    tree = Hierarchy.of(TREE)
    empty = detmap.GroundTruth.from_arrays(image_ids=[], category_ids=[], boxes=np.empty((0, 4)), images=[1])
    assert len(expanded(empty, tree)) == 0
    numbers = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[7], boxes=[[0, 0, 1, 1]], source="t")
    with pytest.raises(InputError) as caught:
        expanded(numbers, tree)
    says = "t: field 'hierarchy': categories have numbers, such as 7, and a hierarchy has names of labels"
    assert str(caught.value) == says
    labels = index_ids(["a"], source="s", field="f")
    for own, other, what in (([1], ["a"], "category"), (["i"], ["a"], "image")):
        with pytest.raises(InputError) as caught:
            with_image_labels(numbers, index_ids(own, source="s", field="f"), labels, np.array([True]), "labels")
        wrong, right = {"category": ("'a'", 7), "image": ("'i'", 1)}[what]
        says = f"labels: {what} ids such as {wrong} are never those of t, such as {right}"
        assert str(caught.value) == says
        assert other == ["a"]
    only = with_image_labels(empty, index_ids([3, 1], source="s", field="f"), index_ids(["b", "a"], source="s", field="f"),
                             np.array([True, False]), "labels")  # fmt: skip
    assert (only.images.ids.tolist(), only.categories.ids.tolist()) == ([1, 3], ["a", "b"])
    assert only.categories.names == ("a", "b")
    assert only.present.by_image(only.images.ids, only.categories.ids) == {1: [], 3: ["b"]}
