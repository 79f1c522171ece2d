"""Label maps drawn by hypothesis: VOID, crowd regions, segments without pixels, pixels without a segment, wrong areas."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import strategies as st
from naive_panoptic import coloured, filtered, png

CATEGORIES = (
    {"id": 7, "name": "cat", "isthing": 1},
    {"id": 2, "name": "dog", "isthing": 1},
    {"id": 40, "name": "grass", "isthing": 0},
    {"id": 9, "name": "sky", "isthing": 0},
    {"id": 1, "name": "bird", "isthing": 1},
)


@st.composite
def maps(draw, most=6):
    """A label map of rectangles, and the ids in it."""
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    ids = draw(st.lists(st.integers(1, 2**24 - 1), min_size=1, max_size=most, unique=True))
    if draw(st.booleans()):  # small numbers in another order
        ids = draw(st.permutations(range(1, len(ids) + 1)))
    out = np.zeros((height, width), np.int64)
    for _ in range(draw(st.integers(1, 8))):
        y, x = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
        out[y : draw(st.integers(y, height)) + 1, x : draw(st.integers(x, width)) + 1] = draw(
            st.sampled_from([0, *ids])
        )
    return out, ids


@st.composite
def images(draw):
    """Label map and segments of the ground truth, then of predictions, which are often like it."""
    truth, ids = draw(maps())
    categories = [one["id"] for one in CATEGORIES[:4]]
    segments = []
    for one in draw(st.permutations(ids)):
        pixels = int((truth == one).sum())
        category = draw(st.sampled_from([*categories, 99] if draw(st.integers(0, 9)) == 0 else categories))
        area = pixels if draw(st.integers(0, 5)) else pixels + draw(st.sampled_from([1, 3, 0.5]))
        if draw(st.integers(0, 9)):  # else its pixels belong to no segment
            segments.append(
                {"id": one, "category_id": category, "area": area, "iscrowd": int(draw(st.integers(0, 3)) == 0)}
            )
    found = truth.copy()
    for _ in range(draw(st.integers(0, 3))):
        y, x = draw(st.integers(0, truth.shape[0] - 1)), draw(st.integers(0, truth.shape[1] - 1))
        found[y : y + draw(st.integers(1, 3)), x : x + draw(st.integers(1, 9))] = draw(st.sampled_from([0, 1, *ids]))
    own = {one["id"]: one["category_id"] for one in segments if one["category_id"] != 99}
    predicted = []
    for one in draw(st.permutations([int(value) for value in np.unique(found) if value])):
        category = own.get(one, categories[0]) if draw(st.integers(0, 4)) else draw(st.sampled_from(categories))
        predicted.append({"id": one, "category_id": category})
    return truth, segments, found, predicted


def documents(scenes):
    """The two JSON documents, and the two mappings of label maps, of some images."""
    truth = {"categories": list(CATEGORIES), "annotations": []}
    found = {"annotations": []}
    truth_maps, found_maps = {}, {}
    for at, (own, segments, theirs, predicted) in enumerate(scenes):
        image, name = 3 * at + 1, f"{at}.png"
        truth["annotations"].append({"image_id": image, "file_name": name, "segments_info": segments})
        found["annotations"].insert(0, {"image_id": image, "file_name": name, "segments_info": predicted})
        truth_maps[image], found_maps[image] = own, theirs
    return truth, found, truth_maps, found_maps


def write(folder, scenes, kind=4):
    """Write some images as files; return the paths of the JSON documents."""
    truth, found, truth_maps, found_maps = documents(scenes)
    paths = []
    for name, document, label_maps in (("gt", truth, truth_maps), ("pred", found, found_maps)):
        (folder / name).mkdir(exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(document))
        for one in document["annotations"]:
            ids = label_maps[one["image_id"]]
            pixels = coloured(ids)
            (folder / name / one["file_name"]).write_bytes(png(filtered(pixels, [kind] * len(ids)), *ids.shape))
        paths.append(folder / f"{name}.json")
    return paths
