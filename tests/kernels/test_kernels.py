"""All kernels: one compiled signature each, no lock, and nothing compiled or loaded that nobody calls."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import large_workloads
import numpy as np
import pytest
import workloads
from support import BOX_PROTOCOLS, evaluate, tables_of_arrays

import detmap
import detmap.kernels
from detmap.kernels import passing, readonly

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "coco"


def kernels():
    """Every compiled function of every kernel file, by its full name."""
    found = {}
    for module in pkgutil.iter_modules(detmap.kernels.__path__):
        names = vars(importlib.import_module(f"detmap.kernels.{module.name}"))
        for name, value in names.items():
            if hasattr(value, "signatures") and value.py_func.__module__ == names["__name__"]:
                found[f"{module.name}.{name}"] = value
    return found


@pytest.mark.compiled
@pytest.mark.jit
def test_one_signature_each():
    """After a varied session every kernel that others call has been compiled once, for one combination of types."""
    for name in BOX_PROTOCOLS:
        if detmap.PRESETS[name].class_levels:  # whose levels read fields that these files lack
            continue
        for number in range(3):
            dataset, results = workloads.make_coco(number, images=4, coordinates=["integer", "float", "mixed"][number])
            assert evaluate(dataset, results, protocol=name, threads=number + 1).per_category
            evaluate(dataset, [], {"use_categories": False, "max_per_category": None}, protocol=name)
            evaluate({**dataset, "annotations": []}, results, {"max_dets": [1]}, protocol=name)
    truth, found = tables_of_arrays(large_workloads.dense_scene(2, 30, 40, 1, canvas=200.0))
    one = detmap.match(truth, found, image_ids=[1])
    other = detmap.match(truth, found, image_ids=[2])
    result = detmap.DetectionResult(one.merge(other), threads=3)
    result.counts(iou=0.5, score=0.1)
    result.curve(1)
    corners = {
        "image_ids": ["a", "b"],
        "category_ids": ["x", "y"],
        "boxes": np.float32([[0, 0, 5, 5]] * 2),
        "box_format": "xyxy",
    }
    detmap.evaluate(
        detmap.GroundTruth.from_arrays(**corners), detmap.Detections.from_arrays(**corners, scores=np.float32([0.5, 1]))
    )
    for interpolation in ("step", "all-point", "trapezoid", "11-point", "101-point"):
        detmap.average_precision([1, 0, 1], [3, 2, 1], interpolation=interpolation)
        detmap.Hits.from_ranks([[1, 3], []], [2, 1]).average_precision(interpolation)
    every = kernels()
    assert len(every) >= 12
    detection = {name for name in every if name.split(".")[0] in ("overlap", "matching", "curves", "sorting", "ties")}
    called = {name: len(every[name].signatures) for name in detection if not name.split(".")[1].startswith("_")}
    called = {name: count for name, count in called.items() if count}  # rankings have kernels of their own
    assert called == dict.fromkeys(called, 1)
    assert len(called) >= 12
    assert {"overlap.box_candidates", "matching.match", "matching.collect_hits", "sorting.join"} <= set(called)


@pytest.mark.compiled
@pytest.mark.jit
def test_kernels_release_the_gil_and_keep_to_ieee_division():
    for name, function in kernels().items():
        options = function.targetoptions
        assert options.get("nogil"), name
        assert options.get("error_model") == "numpy", name
        assert not options.get("parallel"), name
        assert not options.get("fastmath"), name


_LATER = """
import sys, threading
import numba.core.cpu
import numpy as np
from detmap.kernels import allocate, matching, readonly

refreshed = []
refresh = numba.core.cpu.CPUContext.refresh
numba.core.cpu.CPUContext.refresh = lambda context: (refreshed.append(1), refresh(context))[1]
out = np.zeros((2, 64), np.int64)
matching.count_bits(readonly([0, 1, 3], np.int64), readonly([[3], [1], [5]], np.uint64), out)
assert out[:, :3].tolist() == [[1, 1, 0], [2, 0, 1]], out
hit, ignored = np.ones((2, 1), np.uint64), np.zeros((2, 1), np.uint64)  # a kernel that allocates
ranges = matching.Ranges(readonly([[0, 9], [0, 3]], np.float64), readonly([0, 0], np.int64))
matching.mark_misses(readonly([[1], [5]], np.float64), ranges, 1, 0, 2, hit, ignored)
assert (hit.tolist(), ignored.tolist()) == ([[0], [0]], [[0], [2]]), (hit, ignored)
print(len(matching.count_bits.stats.cache_hits), len(refreshed), int("numba.np.arrayobj" in sys.modules))
other = threading.Thread(target=lambda: matching.count_bits(np.array([0, 1]), np.ones((1, 1), np.uint64), out[:1]))
other.start()  # the same on writable arrays: to be compiled
other.join()
print(out[0, 0], len(matching.count_bits.signatures))
"""


@pytest.mark.compiled
@pytest.mark.jit
def test_a_kernel_loads_without_setting_up_the_compiler_and_another_compiles_after_it(tmp_path):
    """In one process after the other: nothing is there, then all of it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    said = []
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-c", _LATER], env=environment, capture_output=True, text=True, check=True
        )
        said.append([line.split() for line in run.stdout.splitlines()])
    first, second, third = said
    assert first[0][0] == "0"
    assert int(first[0][1]) > 0
    assert first[0][2] == "1"
    assert second == third == [["1", "0", "0"], ["2", "2"]]


def test_readonly():
    array = np.arange(6, dtype=np.float32)[::2]
    view = readonly(array, np.float64)
    assert (view.dtype, view.flags.c_contiguous, view.flags.writeable) == (np.float64, True, False)
    own = np.arange(3.0)
    assert np.shares_memory(readonly(own, np.float64), own)
    assert own.flags.writeable


@pytest.mark.compiled
@pytest.mark.jit
def test_kernels_are_compiled_without_what_nobody_calls(tmp_path):
    """From an empty cache: no wrapper for C, one version of each helper; and garbage is collected."""
    program = (
        "import gc; from detmap import read_coco, read_coco_results, evaluate; from detmap.kernels import _numba, overlap;"
        f"truth = read_coco({str(FIXTURE / 'ground_truth.json')!r});"
        f"evaluate(truth, read_coco_results({str(FIXTURE / 'detections.json')!r}, truth));"
        "(placed,) = overlap._place.overloads.values();"
        "assert gc.isenabled();"
        "wanted = _numba.known_options(no_cfunc_wrapper=True);"
        "assert wanted.items() <= overlap.box_candidates.targetoptions.items()"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=300)


@pytest.mark.parametrize("shape", [0, 5, (3, 2), (1 << 20, 2), ((1 << 22) + 1, 2)])
def test_memory_that_is_soon_given_back_is_a_part_of_much(shape) -> None:
    """From a few megabytes on it is a part of so much that it comes from the system by itself; small arrays are not."""
    made = passing(shape, np.int64)
    plain = np.empty(shape, np.int64)
    assert (made.shape, made.dtype) == (plain.shape, plain.dtype)
    assert made.flags.c_contiguous
    assert made.flags.writeable
    whole = made
    while whole.base is not None:
        whole = whole.base
    assert whole.nbytes == plain.nbytes if plain.nbytes < 1 << 22 else whole.nbytes > 1 << 25
