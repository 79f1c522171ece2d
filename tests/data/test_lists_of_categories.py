"""Lists of categories by image, as in LVIS: against dicts of sets, with images and categories of both types of ids."""

from __future__ import annotations

import numpy as np
import pytest

import detmap
from detmap.data import federated
from detmap.data.federated import CategoryLists, frequency_column
from detmap.errors import InputError


def drawn(seed, *, strings=False, images=6, categories=5):
    """Ids of images and categories, and lists of categories by image, some of which no image has a list of."""
    rng = np.random.default_rng(seed)

    def ids(count, word):
        return [f"{word}{n}" for n in range(count)] if strings else (np.arange(count) * 3 + 2).tolist()

    images, categories = ids(images, "i"), ids(categories, "c")
    others = [*categories, "elsewhere" if strings else 999]
    lists = {
        image: [others[k] for k in rng.integers(0, len(others), rng.integers(0, 6))]
        for image in rng.permutation(images).tolist()
        if rng.random() < 0.7
    }
    return np.array(images), np.array(categories), lists


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, np.array])
@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_lists_are_sets_of_known_categories(seed, strings, kind, monkeypatch):
    images, categories, lists = drawn(seed, strings=strings)
    given = {image: kind(own) for image, own in lists.items()}
    made = CategoryLists.of(given, images, categories, "s", "f")
    wanted = {
        image: sorted(set(lists[image]) & set(categories.tolist())) for image in images.tolist() if image in lists
    }
    assert made.by_image(images, categories) == wanted
    assert made.listed.tolist() == [image in lists for image in images.tolist()]
    assert (made.images.dtype, made.categories.dtype, made.listed.dtype) == (np.int32, np.int32, np.bool_)
    pairs = list(zip(made.images.tolist(), made.categories.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    asked = [(i, k) for i in range(len(images)) for k in range(-1, len(categories))]
    holds = [k >= 0 and categories[k].item() in wanted.get(images[i].item(), ()) for i, k in asked]
    of_image, of_category = np.array(asked, np.int32).T
    for most in (1 << 28, len(images) * len(categories), len(images) * len(categories) - 1):
        monkeypatch.setattr(federated, "_TABLE", most)
        assert made.holds(of_image, of_category, len(categories)).tolist() == holds
    at = np.random.default_rng(seed).permutation(9)[: len(images)]
    larger = np.array([f"j{n}" for n in range(9)])
    moved = {larger[at[i]].item(): wanted[image] for i, image in enumerate(images.tolist()) if image in wanted}
    spread = made.spread(at, 9)
    assert spread.by_image(larger, categories) == dict(sorted(moved.items()))
    assert spread.listed.size == 9
    again = CategoryLists.of_pairs(made.images[::-1], made.categories[::-1], len(categories), made.listed)
    assert again.by_image(images, categories) == wanted


@pytest.mark.parametrize(("images", "categories"), [(0, 0), (0, 2), (2, 0), (1, 1)])
def test_no_images_and_no_categories(images, categories):
    made = CategoryLists.of({}, np.arange(images), np.arange(categories), "s", "f")
    assert made.by_image(np.arange(images), np.arange(categories)) == {}
    assert made.holds(np.zeros(images, int), np.full(images, -1), categories).tolist() == [False] * images
    full = CategoryLists.of({n: [7, 0] for n in range(images)}, np.arange(images), np.arange(categories), "s", "f")
    assert full.by_image(np.arange(images), np.arange(categories)) == {n: [0][:categories] for n in range(images)}


@pytest.mark.parametrize(
    ("lists", "says"),
    [
        ([1], "must be a mapping of image id to category ids, not list"),
        ({9: [1]}, "image 9, field 'f': the image is not among the images"),
        ({1: 5}, "image 1, field 'f': must be a list of category ids (got 5)"),
        ({1: "ab"}, "image 1, field 'f': must be a list of category ids (got 'ab')"),
        ({1: [1], 2: [None]}, "image 2, field 'f': must hold ids, integers or strings (got None)"),
        ({1: [1.5]}, "image 1, field 'f': must hold ids, integers or strings (got 1.5)"),
        ({1: [True]}, "image 1, field 'f': must hold ids, integers or strings (got True)"),
        ({1: [1], 2: ["a"]}, "field 'f': ids must be all integers or all strings"),
        ({1: [1, "a"]}, "field 'f': ids must be all integers or all strings"),
    ],
)
def test_lists_that_are_refused(lists, says):
    with pytest.raises(InputError) as caught:
        CategoryLists.of(lists, np.array([1, 2]), np.array([1, 2]), "s", "f")
    assert str(caught.value).startswith("s: ")
    assert says in str(caught.value)


def test_ids_of_several_types_are_integers():
    given = {1: [np.int64(1), 2.0], 2: {2, np.uint8(1)}}
    made = CategoryLists.of(given, np.array([1, 2]), np.array([1, 2]), "s", "f")
    assert made.by_image(np.array([1, 2]), np.array([1, 2])) == {1: [1, 2], 2: [1, 2]}


def test_frequencies():
    categories = np.array([3, 5, 7])
    assert frequency_column(None, categories, "s") is None
    assert frequency_column({}, categories, "s") is None
    assert frequency_column({9: "r"}, categories, "s") is None
    assert frequency_column({5: "c", 9: "r"}, categories, "s") == ("", "c", "")
    assert frequency_column({7: "f", 3: "r", 5: "c"}, categories, "s") == ("r", "c", "f")
    for bad in ("x", "", 1, None, ["r"]):
        with pytest.raises(InputError) as caught:
            frequency_column({3: "r", 5: bad}, categories, "s")
        says = f"s: category 5, field 'frequency': must be r, c or f: rare, common, frequent (got {bad!r})"
        assert str(caught.value) == says


def test_tables_have_the_lists_that_they_are_given():
    truth = detmap.GroundTruth.from_arrays(
        image_ids=["b", "a"], category_ids=[4, 2], boxes=[[0, 0, 9, 9]] * 2, images=["b", "a", "c"],
        categories=[2, 4, 6], neg_category_ids={"a": [6, 6, 8]}, not_exhaustive_category_ids={"c": [], "b": [2, 4]},
    )  # fmt: skip
    ids = truth.images.ids, truth.categories.ids
    assert truth.negatives.by_image(*ids) == {"a": [6]}
    assert truth.not_exhaustive.by_image(*ids) == {"b": [2, 4], "c": []}
