"""Made-up data sets: seeded generators, hypothesis strategies, what really occurs in one, and pycocotools run on it.

A workload is `(dataset, results, params)`: COCO's dicts, a list of result records, and the settings by the names of
`naive.coco_evaluate`, with None for the default. Nothing here imports the library under test.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import tarfile
from collections import Counter, defaultdict
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import strategies as st

REAL_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"

NO_PARAMS = {
    "iou_thresholds": None,
    "recall_thresholds": None,
    "area_ranges": None,
    "max_dets": None,
    "use_categories": True,
    "image_ids": None,
    "category_ids": None,
}

# ------------------------------------------------------------------------------------------------- small COCO workloads

SCORES = {
    "continuous": lambda rng, n: rng.random(n),
    "float32": lambda rng, n: rng.random(n).astype(np.float32),
    "three decimals": lambda rng, n: np.round(rng.random(n), 3),
    "tenths": lambda rng, n: rng.integers(0, 11, n) / 10,
    "all equal": lambda rng, n: np.full(n, 0.5),
    "zero or one": lambda rng, n: rng.integers(0, 2, n),
    "logits": lambda rng, n: np.round(rng.normal(0, 4, n), 1),  # negative ones, and zeros of both signs
}


def make_coco(
    seed,
    *,
    images=5,
    categories=3,
    scores="tenths",
    coordinates="mixed",
    crowds=0.15,
    objects_per_image=6.0,
    false_per_image=4.0,
    crowded_cell=False,
    over_100=False,
    unsorted_ids=True,
    large_ids=False,
    edges=(1024, 9216),
    zero_sized=True,
    negative=True,
    unknown_categories=False,
    zero_ids=False,
    duplicate_ids=False,
    stray_images=False,
):
    """A small data set and its results, every peculiarity of which is a switch.

    `scores` is a key of `SCORES`; `coordinates` is "integer" (Python ints), "float" or "mixed"; `edges` are areas that
    many boxes are given exactly; `crowded_cell` puts at least five more objects of one class into one image, and pairs
    of objects with a detection halfway; `over_100` puts more than 100 detections into one. `unknown_categories` adds
    annotations and results of a category that is not listed.

    What only a drop-in for pycocotools repeats: `zero_ids` gives one annotation, one image and one category the id 0;
    `duplicate_ids` gives two annotations one id; `stray_images` adds an annotation of an image that is not listed.
    """
    rng = np.random.default_rng(seed)
    factor = 10**9 if large_ids else 7
    image_ids = [int(i) * factor + 3 for i in rng.permutation(images)]
    category_ids = [int(i) * factor + 1 for i in rng.permutation(categories)]
    if not unsorted_ids:
        image_ids.sort()
        category_ids.sort()
    if zero_ids:
        image_ids[rng.integers(images)] = category_ids[rng.integers(categories)] = 0
    # classes missing on one side or both
    role = rng.choice(["both", "no ground truth", "no detections", "neither"], categories, p=[0.7, 0.12, 0.12, 0.06])
    role[rng.integers(categories)] = "both"
    with_objects = [c for c, what in zip(category_ids, role, strict=True) if what in ("both", "no detections")]
    with_detections = [c for c, what in zip(category_ids, role, strict=True) if what in ("both", "no ground truth")]
    both = [c for c in with_objects if c in with_detections]

    def number(value):
        if coordinates == "integer" or (coordinates == "mixed" and rng.random() < 0.5):
            return int(value)
        return float(value) + int(rng.integers(8)) / 8 if rng.random() < 0.5 else round(float(value) + rng.random(), 2)

    def size():
        """Width and height; often of an area that lies exactly on an edge."""
        if zero_sized and rng.random() < 0.05:
            return [(0, 12), (12, 0), (0, 0)][rng.integers(3)]
        if rng.random() < 0.4:
            area = edges[rng.integers(len(edges))]
            root = round(area**0.5)
            if rng.random() < 0.3 and area % 4 == 0:
                return area // 4, 4
            if root * root == area:
                return root, root
            return area, 1
        side = [8, 20, 40, 120][rng.integers(4)]
        return number(rng.integers(1, side)), number(rng.integers(1, side))

    def box():
        low = -30 if negative else 0
        return [number(rng.integers(low, 120)), number(rng.integers(low, 120)), *size()]

    def near(x, y, w, h):
        """A detection of the box: the box itself, one cut so that the IoU is a multiple of 1/20, or a jittered one."""
        what = rng.random()
        if what < 0.25:
            return [x, y, w, h]
        if what < 0.45:
            return [x, y, w * int(rng.integers(8, 20)) / 20, h]
        shift = rng.normal(0, 0.12, 4)
        if coordinates == "integer":
            return [
                int(x + shift[0] * w),
                int(y + shift[1] * h),
                max(int(w * (1 + shift[2])), 0),
                max(int(h * (1 + shift[3])), 0),
            ]
        moved = [x + shift[0] * w, y + shift[1] * h, w * np.exp(shift[2]), h * np.exp(shift[3])]
        return [float(v) for v in (moved if rng.random() < 0.5 else np.float32(moved))]

    annotations, records = [], []

    def add_object(image, category, bbox):
        area = bbox[2] * bbox[3]
        if rng.random() < 0.1:
            area = area / 2  # a segmentation's area is smaller than its box's
        elif rng.random() < 0.1:
            area = edges[rng.integers(len(edges))]
        crowd = int(rng.random() < crowds)
        annotations.append({"image_id": image, "category_id": category, "bbox": bbox, "area": area, "iscrowd": crowd})

    cells = []
    for image in image_ids:
        if rng.random() < 0.15:
            continue  # an image with nothing at all
        listed = []
        if with_objects and rng.random() > 0.15:
            for _ in range(rng.poisson(objects_per_image)):
                listed.append((with_objects[min(rng.geometric(0.5), len(with_objects)) - 1], box()))
                if rng.random() < 0.1:
                    listed.append(listed[-1])  # the same box again
        cells.append((image, listed))
    if crowded_cell and both:
        place = rng.integers(-15, 40, (int(rng.integers(5, 9)), 2))
        cells.append((image_ids[rng.integers(images)], [(both[0], [int(x), int(y), 32, 32]) for x, y in place]))
    for image, listed in cells:
        for category, bbox in listed:
            add_object(image, category, bbox)
        if rng.random() < 0.12:
            continue  # no detections in this image
        for category, bbox in listed:
            if category in with_detections:
                for _ in range(rng.choice(4, p=[0.15, 0.5, 0.25, 0.1])):
                    records.append({"image_id": image, "category_id": category, "bbox": near(*bbox)})
        for _ in range(rng.poisson(false_per_image)):
            category = with_detections[rng.integers(len(with_detections))] if with_detections else None
            if category is not None:
                records.append({"image_id": image, "category_id": category, "bbox": box()})
                if rng.random() < 0.1:
                    records.append({**records[-1], "bbox": list(records[-1]["bbox"])})
    if crowded_cell and both:
        # Two objects that one detection touches equally, and a detection of only one of them: which was taken shows.
        for x, y in rng.integers(0, 100, (4, 2)).tolist():
            image = image_ids[rng.integers(images)]
            for left in (x, x + 8):
                add_object(image, both[0], [left, y, 32, 32])
            for left in (x + 4, x + 8 * int(rng.integers(2))):
                records.append({"image_id": image, "category_id": both[0], "bbox": [left, y, 32, 32]})
    if over_100 and with_detections:
        image, category = cells[-1][0] if cells else image_ids[0], (both or with_detections)[0]
        own = [a["bbox"] for a in annotations if a["image_id"] == image and a["category_id"] == category]
        for _ in range(int(rng.integers(101, 125))):
            bbox = near(*own[rng.integers(len(own))]) if own and rng.random() < 0.3 else box()
            records.append({"image_id": image, "category_id": category, "bbox": bbox})
    if unknown_categories:
        for image in image_ids[:2]:
            add_object(image, 99_999, box())
            records.append({"image_id": image, "category_id": 99_999, "bbox": box()})
    if stray_images:
        add_object(88_888, category_ids[0], box())
    for record, score in zip(records, SCORES[scores](rng, len(records)).tolist(), strict=True):
        record["score"] = score
    ids = [int(i) + 1 for i in rng.permutation(3 * len(annotations))[: len(annotations)]]
    if not unsorted_ids:
        ids.sort()
    for annotation, identity in zip(annotations, ids, strict=True):
        annotation["id"] = identity
    if zero_ids and annotations:
        annotations[rng.integers(len(annotations))]["id"] = 0
    if duplicate_ids and len(annotations) > 1:
        first, second = rng.permutation(len(annotations))[:2]
        annotations[second]["id"] = annotations[first]["id"]
    if unsorted_ids:
        annotations = [annotations[i] for i in rng.permutation(len(annotations))]
        records = [records[i] for i in rng.permutation(len(records))]
    dataset = {
        "images": [{"id": i, "width": 150, "height": 150, "file_name": f"{i}.jpg"} for i in image_ids],
        "annotations": annotations,
        "categories": [{"id": c, "name": f"class {c}"} for c in category_ids],
    }
    return dataset, records


IOU_THRESHOLD_CHOICES = [[0.5], [0.3, 0.5, 0.7], [0.75, 0.8], [0.05, 1.0], [0.55, 0.6, 0.65, 0.7, 0.85, 0.9, 0.95]]
RECALL_THRESHOLD_CHOICES = [
    [0.0],
    [0.5],
    np.linspace(0, 1, 11).tolist(),
    np.arange(0, 1.1, 0.1).tolist(),  # 1.0 and beyond
    np.linspace(0, 1, 7).tolist(),
    np.linspace(0.1, 0.9, 33).tolist(),
]
AREA_RANGE_CHOICES = [
    [[0, 1e10]],
    [[0, 1e10], [0, 100], [100, 400], [400, 1e10]],
    [[0, 1e10], [0, 1024], [1024, 9216], [9216, 1e10], [0, 9216], [1024, 1024]],
    [[100, 9216], [0, 1e10]],
]
MAX_DETS_CHOICES = [[1, 2, 3], [5], [1, 10, 500], [100, 1, 10], [1, 3, 5, 100], [2, 120]]
EDGES = {1: (100, 400), 2: (1024, 9216), 3: (100, 9216)}


@st.composite
def coco_params(draw, dataset, unsorted_thresholds=False, nonpositive_thresholds=True):
    """Settings for a data set: each is the default (None) in half of the cases or more.

    The switches say whether thresholds may come in any order, and whether an IoU threshold may be 0 (every pair is a
    candidate).
    """

    def choice(options):
        return draw(st.none() | st.sampled_from(options))

    ious = IOU_THRESHOLD_CHOICES + ([[0.0, 0.5]] if nonpositive_thresholds else [])
    recalls = RECALL_THRESHOLD_CHOICES
    if unsorted_thresholds:
        ious, recalls = [*ious, [0.9, 0.5, 0.7]], [*recalls, [0.5, 1.1, 0.0, 0.25]]
    params = {
        **NO_PARAMS,
        "iou_thresholds": choice(ious),
        "recall_thresholds": choice(recalls),
        "area_ranges": choice(AREA_RANGE_CHOICES),
        "max_dets": choice(MAX_DETS_CHOICES),
        "use_categories": draw(st.sampled_from([True, True, True, True, False])),
    }
    for name, listed in (("image_ids", dataset["images"]), ("category_ids", dataset["categories"])):
        every = sorted(item["id"] for item in listed)
        if len(every) > 1 and draw(st.sampled_from([False, False, False, True])):
            left_out = draw(st.sampled_from(every))
            params[name] = [identity for identity in every if identity != left_out]
    return params


@st.composite
def coco_workloads(draw, *, zero_ids=False, duplicate_ids=False, stray_images=False, **settings):
    """`(dataset, results, params)` made by `make_coco` from drawn switches and a drawn seed.

    The keywords switch on what only a drop-in for pycocotools repeats; `settings` go to `coco_params`.
    """
    area_choice = draw(st.sampled_from([2, 2, 2, 2, 1, 3]))
    dataset, results = make_coco(
        draw(st.integers(0, 2**32 - 1)),
        images=draw(st.integers(1, 6)),
        categories=draw(st.integers(1, 4)),
        scores=draw(st.sampled_from(sorted(SCORES))),
        coordinates=draw(st.sampled_from(["integer", "float", "mixed"])),
        crowds=draw(st.sampled_from([0.15, 0.4, 0.0])),
        crowded_cell=draw(st.booleans()),
        over_100=draw(st.sampled_from([False, False, True])),
        unsorted_ids=draw(st.sampled_from([True, True, True, False])),
        large_ids=draw(st.booleans()),
        edges=EDGES[area_choice],
        zero_sized=draw(st.booleans()),
        negative=draw(st.booleans()),
        unknown_categories=draw(st.sampled_from([False] * 5 + [True])),
        zero_ids=zero_ids,
        duplicate_ids=duplicate_ids,
        stray_images=stray_images,
    )
    params = draw(coco_params(dataset, **settings))
    if area_choice != 2:
        params["area_ranges"] = AREA_RANGE_CHOICES[area_choice]
    return dataset, results, params


@st.composite
def tiny_coco_workloads(draw, **settings):
    """`(dataset, results, params)` drawn number by number, so that a failure shrinks to a few small boxes."""
    image_ids = draw(st.sampled_from([[1], [1, 2], [2, 1]]))
    category_ids = draw(st.sampled_from([[1], [1, 2], [2, 1]]))
    image, category = st.sampled_from(image_ids), st.sampled_from(category_ids)
    place, size = st.sampled_from([0, 1, -1]), st.sampled_from([4, 3, 5, 2, 0])
    fewest = draw(st.sampled_from([0, 3, 5]))
    bbox = st.tuples(place, place, size, size).map(list)
    objects = draw(
        st.lists(
            st.tuples(image, category, bbox, st.integers(0, 25), st.sampled_from([0, 0, 1])),
            min_size=fewest,
            max_size=8,
        )
    )
    found = draw(st.lists(st.tuples(image, category, bbox, st.integers(0, 4)), min_size=fewest, max_size=12))
    keys = draw(st.permutations(range(1, len(objects) + 1)))
    dataset = {
        "images": [{"id": i, "width": 8, "height": 8} for i in image_ids],
        "annotations": [
            {"id": k, "image_id": i, "category_id": c, "bbox": b, "area": a, "iscrowd": crowd}
            for k, (i, c, b, a, crowd) in zip(keys, objects, strict=True)
        ],
        "categories": [{"id": c, "name": f"class {c}"} for c in category_ids],
    }
    results = [{"image_id": i, "category_id": c, "bbox": b, "score": s / 4} for i, c, b, s in found]
    params = draw(coco_params(dataset, **settings))
    if draw(st.booleans()):
        params["area_ranges"] = [[0, 1e10], [0, 4], [4, 9], [9, 1e10]]
    return dataset, results, params


# ------------------------------------------------------------------------------------------------- what really occurs


def features(dataset, results, params=None):
    """Which peculiarities really occur among what is evaluated: dict of name -> bool.

    A cell is an image and a class (all classes at once with `use_categories=False`), of the images and categories that
    `params` leaves in.
    """
    params = {**NO_PARAMS, **(params or {})}
    thresholds = naive.IOU_THRESHOLDS if params["iou_thresholds"] is None else params["iou_thresholds"]
    ranges = naive.AREA_RANGES if params["area_ranges"] is None else params["area_ranges"]
    caps = naive.MAX_DETS if params["max_dets"] is None else params["max_dets"]
    listed_images = [item["id"] for item in dataset["images"]]
    listed_categories = [item["id"] for item in dataset["categories"]]
    images = set(listed_images if params["image_ids"] is None else params["image_ids"])
    categories = set(listed_categories if params["category_ids"] is None else params["category_ids"])

    def evaluated(records):
        return [r for r in records if r["image_id"] in images and r["category_id"] in categories]

    def cells(records):
        result = defaultdict(list)
        for record in records:
            result[record["image_id"], record["category_id"] if params["use_categories"] else -1].append(record)
        return result

    gts, dts = evaluated(dataset["annotations"]), evaluated(results)
    gt_cells, dt_cells = cells(gts), cells(dts)
    shared = sorted(set(gt_cells) & set(dt_cells))
    score_images = defaultdict(set)  # (class, score) -> images
    tied_within = False
    for (image, category), records in dt_cells.items():
        values = [record["score"] for record in records]
        tied_within |= len(set(values)) < len(values)
        for value in values:
            score_images[category, value].add(image)
    edges = {float(edge) for pair in ranges for edge in pair if 0 < edge < 1e10}
    gt_classes, dt_classes = {r["category_id"] for r in gts}, {r["category_id"] for r in dts}
    on_threshold = crowd_matched = contested = equal_best = switched = False
    for cell in shared:
        crowd = np.array([bool(r.get("iscrowd", 0)) for r in gt_cells[cell]])
        ious = naive.box_iou([r["bbox"] for r in dt_cells[cell]], [r["bbox"] for r in gt_cells[cell]], crowd)
        enough = (ious >= min(thresholds)) & (ious > 0)
        on_threshold |= bool(np.isin(ious[ious > 0], thresholds).any())
        crowd_matched |= bool(enough[:, crowd].any())
        contested |= bool((enough[:, ~crowd].sum(axis=0) > 1).any())
        best = np.where(enough, ious, -1).max(axis=1, keepdims=True)
        equal_best |= bool((((ious == best) & enough).sum(axis=1) > 1).any())
        switched |= bool((enough[:, ~crowd].sum(axis=1) > 1).any())

    def repeated(groups):
        return any(max(Counter(tuple(r["bbox"]) for r in records).values()) > 1 for records in groups.values())

    def unsorted(values):
        return any(b < a for a, b in itertools.pairwise(values))

    annotation_ids = [r["id"] for r in dataset["annotations"]]
    biggest = max(map(len, dt_cells.values()), default=0)
    every = gts + dts
    return {
        "ties within an image": tied_within,
        "ties across images": any(len(of) > 1 for of in score_images.values()),
        "crowds": any(r.get("iscrowd", 0) for r in gts),
        "crowd matched": crowd_matched,
        "empty image": bool(images - {r["image_id"] for r in every}),
        "image without ground truth": bool({r["image_id"] for r in dts} - {r["image_id"] for r in gts}),
        "image without detections": bool({r["image_id"] for r in gts} - {r["image_id"] for r in dts}),
        "area on an edge": any(r["area"] in edges for r in gts),
        "detection's area on an edge": any(r["bbox"][2] * r["bbox"][3] in edges for r in dts),
        "class without ground truth": bool(dt_classes - gt_classes),
        "class without detections": bool(gt_classes - dt_classes),
        "no detections": not dts,
        "no ground truth": not gts,
        "smallest cap exceeded": biggest > min(caps),
        "largest cap exceeded": biggest > max(caps),
        "more than 100 detections": biggest > 100,
        "unsorted image ids": unsorted(listed_images),
        "unsorted category ids": unsorted(listed_categories),
        "unsorted annotation ids": unsorted(annotation_ids),
        "unsorted images of results": unsorted([r["image_id"] for r in dts]),
        "integer boxes": any(all(isinstance(v, int) for v in r["bbox"]) for r in every),
        "fractional boxes": any(any(v != int(v) for v in r["bbox"]) for r in every),
        "zero-sized ground truth": any(0 in r["bbox"][2:] for r in gts),
        "zero-sized detection": any(0 in r["bbox"][2:] for r in dts),
        "five ground truths in a cell": any(len(gt_cells[cell]) >= 5 for cell in shared),
        "duplicated ground-truth box": repeated(gt_cells),
        "duplicated detection box": repeated(dt_cells),
        "IoU on a threshold": on_threshold,
        "ground truth wanted twice": contested,
        "choice of ground truths": switched,
        "two best ground truths": equal_best,
        "negative coordinates": any(min(r["bbox"][:2]) < 0 for r in every),
        "negative scores": any(r["score"] < 0 for r in dts),
        "unknown category": any(r["category_id"] not in listed_categories for r in [*dataset["annotations"], *results]),
        "id 0": 0 in annotation_ids,
        "duplicate annotation ids": len(set(annotation_ids)) < len(annotation_ids),
        "own IoU thresholds": params["iou_thresholds"] is not None,
        "own recall thresholds": params["recall_thresholds"] is not None,
        "own area ranges": params["area_ranges"] is not None,
        "own caps": params["max_dets"] is not None,
        "without categories": not params["use_categories"],
        "subset of images": images < set(listed_images),
        "subset of categories": categories < set(listed_categories),
    }


# ------------------------------------------------------------------------------------------------------ the reference


def naive_evaluate(dataset, results, params=None):
    """`naive.coco_evaluate` of a workload."""
    params = {**NO_PARAMS, **(params or {})}
    images, categories = params.pop("image_ids"), params.pop("category_ids")
    return naive.coco_evaluate(
        [item["id"] for item in dataset["images"]] if images is None else images,
        sorted(item["id"] for item in dataset["categories"]) if categories is None else categories,
        dataset["annotations"],
        results,
        **params,
    )


def pycocotools_evaluate(
    dataset,
    results,
    *,
    iou_thresholds=None,
    recall_thresholds=None,
    area_ranges=None,
    max_dets=None,
    use_categories=True,
    image_ids=None,
    category_ids=None,
    iou_type="bbox",
):
    """Run the real pycocotools, silently and on copies: dict of `precision`, `recall`, `scores`, `stats`, `eval_imgs`.

    `stats` are the twelve numbers, or None where its `summarize` cannot be asked (fewer than three caps). Results may
    be empty, which its `loadRes` would refuse.
    """
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {**dataset, "annotations": [dict(record) for record in dataset["annotations"]]}
        truth.createIndex()
        if results:
            found = truth.loadRes([dict(record) for record in results])
        else:
            found = COCO()
            found.dataset = {**dataset, "annotations": []}
            found.createIndex()
        evaluation = COCOeval(truth, found, iou_type)
        p = evaluation.params
        if iou_thresholds is not None:
            p.iouThrs = np.array(iou_thresholds, float)
        if recall_thresholds is not None:
            p.recThrs = np.array(recall_thresholds, float)
        if area_ranges is not None:
            p.areaRng = [list(pair) for pair in area_ranges]
            p.areaRngLbl = [*p.areaRngLbl, *map(str, range(4, len(area_ranges)))][: len(area_ranges)]
        if max_dets is not None:
            p.maxDets = list(max_dets)
        if image_ids is not None:
            p.imgIds = list(image_ids)
        if category_ids is not None:
            p.catIds = list(category_ids)
        p.useCats = int(use_categories)
        evaluation.evaluate()
        evaluation.accumulate()
        stats = None
        if len(p.maxDets) >= 3:
            evaluation.summarize()
            stats = evaluation.stats
    arrays = {name: evaluation.eval[name] for name in ("precision", "recall", "scores")}
    return {**arrays, "stats": stats, "eval_imgs": evaluation.evalImgs}


# -------------------------------------------------------------------------------------------------------- real data


def needs_real_data(test):
    """Mark a test as `real_data`, skipped where the data is absent."""
    absent = pytest.mark.skipif(not REAL_DATA.is_dir(), reason="../shared/data is absent: real data is not committed")
    return pytest.mark.real_data(absent(test))


@functools.cache
def real_voc_ground_truth():
    """VOC2007 test: image -> objects as `naive.read_voc_xml` returns them."""
    with tarfile.open(REAL_DATA / "voc2007" / "Annotations.tar.gz") as archive:
        members = [member for member in archive if member.isfile()]
        return {Path(m.name).stem: naive.read_voc_xml(archive.extractfile(m).read()) for m in members}


def real_voc_detections(which, *classes):
    """A real detector ("a" or "b"): class -> `(images, scores, boxes)` as `naive.read_voc_results` returns them.

    Of all classes, or of some.
    """
    with tarfile.open(REAL_DATA / "voc2007" / f"detections_{which}.tar.gz") as archive:
        members = {Path(member.name).stem.split("_")[-1]: member for member in archive if member.isfile()}
        return {
            name: naive.read_voc_results(archive.extractfile(member).read().decode())
            for name, member in members.items()
            if name in (classes or members)
        }
