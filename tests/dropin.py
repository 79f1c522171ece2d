"""Runs the same code against pycocotools and against the drop-in, and compares everything that either shows."""

from __future__ import annotations

import contextlib
import copy
import io
import re
from types import SimpleNamespace

import numpy as np
import pycocotools.coco
import pycocotools.cocoeval
import pycocotools.mask
import workloads

import detmap.pycocotools.coco
import detmap.pycocotools.cocoeval
import detmap.pycocotools.mask

REAL = SimpleNamespace(
    name="pycocotools",
    COCO=pycocotools.coco.COCO,
    COCOeval=pycocotools.cocoeval.COCOeval,
    Params=pycocotools.cocoeval.Params,
    mask=pycocotools.mask,
)
OURS = SimpleNamespace(
    name="detmap",
    COCO=detmap.pycocotools.coco.COCO,
    COCOeval=detmap.pycocotools.cocoeval.COCOeval,
    Params=detmap.pycocotools.cocoeval.Params,
    mask=detmap.pycocotools.mask,
)
BOTH = (REAL, OURS)


def outcome(client, api):
    """What `client(api)` returns, or the type of what it raises, and what it prints with the seconds left out."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            value = client(api)
        except Exception as error:
            value = type(error)
    return value, re.sub(r"\(t=[0-9.]+s\)", "(t)", printed.getvalue())


def compare(client, *, text=True):
    """Run `client(api)` with both and demand equality, of what is printed too; return what it returned."""
    (expected, expected_text), (value, own_text) = (outcome(client, api) for api in BOTH)
    assert_same(value, expected)
    assert not text or own_text == expected_text
    return value


def assert_same(value, expected, where=""):
    """Demand that two values are equal to the last bit, types and shapes included (params: by their fields)."""
    if type(expected).__name__ == "Params":
        assert type(value).__name__ == "Params", where
        value, expected = vars(value), vars(expected)
    assert type(value) is type(expected), f"{where}: {type(value)} is not {type(expected)}"
    if isinstance(expected, np.ndarray):
        assert value.dtype == expected.dtype, f"{where}: {value.dtype} is not {expected.dtype}"
        assert value.shape == expected.shape, f"{where}: {value.shape} is not {expected.shape}"
        assert np.array_equal(value, expected, equal_nan=expected.dtype.kind == "f"), where
    elif isinstance(expected, dict):
        assert list(value) == list(expected) or sorted(map(str, value)) == sorted(map(str, expected)), where
        for key in expected:
            if key != "date":
                assert_same(value[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, list | tuple):
        assert len(value) == len(expected), where
        for i, (one, other) in enumerate(zip(value, expected, strict=True)):
            assert_same(one, other, f"{where}[{i}]")
    else:
        assert value == expected or value != value, f"{where}: {value!r} is not {expected!r}"


def load(api, dataset, results=None):
    """Fresh copies of a data set and results as objects of `api`; `results` None makes no second one, [] an empty one."""
    truth = api.COCO()
    truth.dataset = copy.deepcopy(dataset)
    truth.createIndex()
    if results is None:
        return truth
    found = truth.loadRes(copy.deepcopy(results)) if results else api.COCO()
    return truth, found


def set_params(p, settings):
    """Set a workload's settings, those that are not None."""
    settings = {**workloads.NO_PARAMS, **(settings or {})}
    if settings["iou_thresholds"] is not None:
        p.iouThrs = np.array(settings["iou_thresholds"], float)
    if settings["recall_thresholds"] is not None:
        p.recThrs = np.array(settings["recall_thresholds"], float)
    if settings["area_ranges"] is not None:
        p.areaRng = [list(pair) for pair in settings["area_ranges"]]
        p.areaRngLbl = [*p.areaRngLbl, *map(str, range(4, len(p.areaRng)))][: len(p.areaRng)]
    for name, attribute in (("max_dets", "maxDets"), ("image_ids", "imgIds"), ("category_ids", "catIds")):
        if settings[name] is not None:
            setattr(p, attribute, list(settings[name]))
    p.useCats = int(settings["use_categories"])


def shown(evaluation, *, inside=True):
    """Everything that an evaluation shows: the inside last, because reading it makes the drop-in open up."""
    names = ("eval", "stats", "params", "_paramsEval", *(("evalImgs", "ious", "_gts", "_dts") if inside else ()))
    out = {name: getattr(evaluation, name) for name in names}
    for name in ("_gts", "_dts"):
        if name in out:
            out[name] = {key: value for key, value in out[name].items() if value}  # which empty cells were looked at
    return out
