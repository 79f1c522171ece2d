"""Between made-up data and the library: records and arrays to tables, a workload to a result, and equality of bits."""

from __future__ import annotations

import dataclasses
import functools
import tarfile
from collections.abc import Mapping

import numpy as np
from legs import examples as examples
from workloads import NO_PARAMS, REAL_DATA

import detmap

#: The named protocols that score boxes.
BOX_PROTOCOLS = tuple(name for name, one in detmap.PRESETS.items() if one.iou_type == "bbox")
AREA_NAMES = ("all", "small", "medium", "large", *(f"area{n}" for n in range(4, 16)))
METRICS = (
    *("AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large"),
    *("AR_1", "AR_10", "AR_100", "AR_small", "AR_medium", "AR_large"),
)


def ground_truth_of(dataset):
    """COCO's dicts as a table; annotations of unlisted categories are left out, as pycocotools never visits them."""
    categories = [item["id"] for item in dataset["categories"]]
    rows = [row for row in dataset["annotations"] if row["category_id"] in set(categories)]
    return detmap.GroundTruth.from_arrays(
        image_ids=[row["image_id"] for row in rows],
        category_ids=[row["category_id"] for row in rows],
        boxes=np.array([row["bbox"] for row in rows], float).reshape(-1, 4),
        areas=[row["area"] for row in rows],
        crowd=[bool(row["iscrowd"]) for row in rows],
        images=[item["id"] for item in dataset["images"]],
        categories=categories,
    )


def detections_of(results):
    """Result records as a table."""
    return detmap.Detections.from_arrays(
        image_ids=[row["image_id"] for row in results],
        category_ids=[row["category_id"] for row in results],
        boxes=np.array([row["bbox"] for row in results], float).reshape(-1, 4),
        scores=[row["score"] for row in results],
    )


def options_of(params):
    """The settings of a workload under the names of `detmap.evaluate`; None is the protocol's own."""
    options = {**NO_PARAMS, **(params or {})}
    if options["area_ranges"] is not None:
        options["area_ranges"] = dict(zip(AREA_NAMES, options["area_ranges"], strict=False))
    return options


def evaluate(dataset, results, params=None, **more):
    """`detmap.evaluate` of a workload."""
    return detmap.evaluate(ground_truth_of(dataset), detections_of(results), **options_of(params), **more)


def tables_of_arrays(arrays):
    """Both tables of what `detector_like` and `dense_scene` return."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=arrays["gt_image_ids"],
        category_ids=arrays["gt_category_ids"],
        boxes=arrays["gt_boxes"],
        areas=arrays["gt_areas"],
        crowd=arrays["gt_crowd"].astype(bool),
        images=arrays["image_ids"],
        categories=arrays["category_ids"],
    )
    found = detmap.Detections.from_arrays(
        image_ids=arrays["dt_image_ids"],
        category_ids=arrays["dt_category_ids"],
        boxes=arrays["dt_boxes"],
        scores=arrays["dt_scores"],
    )
    return truth, found


def bits(array):
    """The 64 bits of every float, all NaN made one: 0.0 and -0.0 differ."""
    array = np.array(array, float)
    array[np.isnan(array)] = np.nan
    return array.view(np.int64)


def same_bits(one, other):
    """Whether two arrays of floats have one shape and the same bits."""
    return np.shape(one) == np.shape(other) and np.array_equal(bits(one), bits(other))


def facts(thing, name=""):
    """Everything that a table holds, as text by the name of the column: dtypes, shapes, and every digit of every number."""
    if isinstance(thing, np.ndarray):
        return {name: f"{thing.dtype if thing.dtype.kind != 'U' else 'text'} {thing.shape} {thing.tolist()!r}"}
    if callable(arrays := getattr(thing, "arrays", None)):
        flags = {key: value for key, value in vars(thing).items() if isinstance(value, bool)}
        parts = {"kind": type(thing).__name__, **flags, **arrays()}
    elif dataclasses.is_dataclass(thing):
        parts = {one.name: getattr(thing, one.name) for one in dataclasses.fields(thing)}
    elif callable(as_dict := getattr(thing, "_asdict", None)):
        parts = as_dict()
    elif isinstance(thing, Mapping):
        parts = thing
    else:
        return {name: repr(thing)}
    return {path: text for key, part in parts.items() for path, text in facts(part, f"{name}.{key}".strip(".")).items()}


def assert_same(one, other, apart=()):
    """Two tables hold the same in every column, bit for bit, or two texts are equal.

    Columns with a name in `apart`, or within what it names, are not compared.
    """
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    assert type(one) is type(other)
    mine, theirs = facts(one), facts(other)
    differ = {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}
    differ = {name for name in differ if name not in apart and name.partition(".")[0] not in apart}
    assert not differ, "\n".join(f"{name}: {mine.get(name)}, and {theirs.get(name)}" for name in sorted(differ))


def expected_arrays(reference):
    """The arrays of pycocotools, or of its twin, with NaN where -1 means undefined (a score may well be -1)."""
    undefined = reference["precision"] == -1
    return {
        "precision": np.where(undefined, np.nan, reference["precision"]),
        "recall": np.where(reference["recall"] == -1, np.nan, reference["recall"]),
        "scores": np.where(undefined, np.nan, reference["scores"]),
    }


def assert_equal_arrays(result, reference):
    """Every bit of `precision`, `recall` and `scores`."""
    for name, expected in expected_arrays(reference).items():
        got = getattr(result, name)
        assert got.shape == expected.shape, f"{name}: {got.shape}, expected {expected.shape}"
        if not np.array_equal(bits(got), bits(expected)):
            where = tuple(np.argwhere(bits(got) != bits(expected))[0])
            raise AssertionError(f"{name}{list(map(int, where))} is {got[where]!r}, expected {expected[where]!r}")


def assert_same_result(one, other):
    """Every bit of two results, and every metric."""
    for name in ("precision", "recall", "scores", "average_precision"):
        assert same_bits(getattr(one, name), getattr(other, name)), name
    assert list(one) == list(other)
    assert same_bits(list(one.values()), list(other.values()))


@functools.cache
def _archive(name):
    with tarfile.open(REAL_DATA / "voc2007" / name) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        return {path: file.read().decode() for path, file in files.items()}


def voc2007_annotations():
    """The texts of VOC2007's test annotations by image."""
    return {path.split("/")[-1].removesuffix(".xml"): text for path, text in _archive("Annotations.tar.gz").items()}


def voc2007_detections(which):
    """The texts of a detector's result files, "a" or "b", by class."""
    files = _archive(f"detections_{which}.tar.gz")
    return {path.split("_test_")[-1].removesuffix(".txt"): text for path, text in files.items()}
