"""The legs in which the tests run, and what depends on the leg: which files, how many examples, which skips are foreseen.

A leg is chosen by the environment, before numba is imported: ``NUMBA_DISABLE_JIT=1`` interprets kernels,
``NUMBA_BOUNDSCHECK=1`` checks every index of compiled ones, ``DETMAP_PLAIN_NUMBA=1`` takes numba's own cache,
``DETMAP_KERNELS=ahead`` takes kernels from the object of ``scripts/build-kernels``, and without them numba compiles kernels,
whether there is an object or not. ``DETMAP_TESTS=full`` runs every file in every leg, with many examples;
``DETMAP_TESTS=quick`` leaves out tests that are marked as slow, and most cases of tests that have many. Those that are
marked as long run in full alone.
``DETMAP_TESTS=ci`` runs every file with kernels from the object alone. What numba compiles from the same source runs in the
leg with checked indices, for the files of kernels and those that ask numba.
"""

from __future__ import annotations

import os
import sys
import zlib

# Before anything imports kernels, here and in the processes that tests start.
os.environ.setdefault("DETMAP_KERNELS", "jit")

import numba
from workloads import REAL_DATA

from detmap.kernels import _numba

QUICK, CI, FULL = (os.environ.get("DETMAP_TESTS") == speed for speed in ("quick", "ci", "full"))
if numba.config.DISABLE_JIT:
    LEG = "interpreted"
elif numba.config.BOUNDSCHECK:
    LEG = "checked"
elif os.environ.get("DETMAP_PLAIN_NUMBA", "0") not in ("", "0"):
    LEG = "plain"
else:
    LEG = "ahead" if os.environ["DETMAP_KERNELS"] == "ahead" else "compiled"

#: How the names of a leg's files go on after ``test_``; a leg that is not named here runs all files. The lines of kernels
#: are covered by the interpreted leg, all other lines by the leg that runs all files and the compiled one.
FILES = {
    "interpreted": [
        "kernels",
        "hits",
        "scanning",
        "masks",
        "shapes",
        "matches",
        "growth",
        "statistics",
        "coco",
        "voc",
        "retrieval",
        "kitti",
        "temporal",
        "tracks",
        "panoptic",
    ],
    "checked": ["kernels", "hits", "scanning", "masks", "shapes", "matches"],
    "plain": ["kernel_cache", "hits"],
}
#: Files of which the leg with checked indices runs only the tests marked ``jit``, which ask numba what it has compiled.
JIT_ALONE: list[str] = []
if CI:
    JIT_ALONE = ["dropin", "statistics", "cli", "batch_executors", "interrupts"]
    FILES["checked"] += ["kernel_cache", "compiling_told", "second_process", *JIT_ALONE]

#: Files that a leg does not run even so: numba compiles nothing there, or they test commands and no kernel.
LEFT_OUT = {
    "ahead": ("test_kernel_cache", "test_compiling_told", "test_second_process"),
    "interpreted": ("test_retrieval_cli", "test_panoptic_cli"),
}

#: The share of a test's examples that a leg makes, quickly and in full.
SHARES = {
    "compiled": (0.1, 2.0),
    "interpreted": (0.05, 0.2),
    "checked": (0.07, 0.5),
    "plain": (0.1, 0.5),
    "ahead": (0.1, 1.0),
}


def examples(count: int) -> int:
    """How many examples hypothesis, or a loop of a test, makes in this leg, of the `count` that a test asks for.

    At least 5, or all where a test asks for fewer.
    """
    return max(int(count * SHARES[LEG][FULL]), min(count, 5))


def takes(name: str, place: int, cases: int) -> bool:
    """Whether this leg runs the case `name`, which is at `place` among the `cases` of a test.

    Quick runs take the first of more than three cases, and an eighth of the others: by a hash, because every eighth may
    have one value of a parameter in common.
    """
    return not QUICK or cases <= 3 or place == 0 or zlib.crc32(name.encode()) % 8 == 0


def runs(name: str) -> bool:
    """Whether the file `name` belongs to this leg."""
    files = FILES.get(LEG)
    if name.startswith(LEFT_OUT.get(LEG, ())):
        return False
    return FULL or files is None or not name.startswith("test_") or name.startswith(tuple(f"test_{f}" for f in files))


#: What `DETMAP_ABSENT`, a list of words, may name as known to be absent, and how skipped tests begin to say so.
ABSENT = {
    "data": ("../shared/", str(REAL_DATA.parent)),
    "browser": ("no Chromium is installed",),
    "torchmetrics": ("could not import 'torchmetrics'", "could not import 'torchvision'"),
    "ultralytics": ("could not import 'ultralytics'",),
    "supervision": ("could not import 'supervision'",),
    "sentence_transformers": ("could not import 'sentence_transformers'",),
    "rfdetr": ("could not import 'rfdetr'", "could not import 'pytorch_lightning'"),
    "pytorch_metric_learning": ("could not import 'pytorch_metric_learning'",),
    "faiss-cpu": ("could not import 'faiss'",),
    "tensorboard": ("could not import 'tensorboard'",),
    "mlflow": ("could not import 'mlflow'",),
    "wandb": ("could not import 'wandb'",),
    "array_api_strict": ("could not import 'array_api_strict'",),
}


def has_jit_alone(name: str) -> bool:
    """Whether this leg runs only those tests of the file `name` that are marked ``jit``."""
    return LEG == "checked" and name.startswith(tuple(f"test_{f}" for f in JIT_ALONE))


def foreseen() -> list[str]:
    """How the reasons of skips begin that are to be expected in this leg and on this system; see ``--require``."""
    reasons = [] if FULL else ["long (without DETMAP_TESTS=full)"]
    # Not dependencies of the tests: ranx needs older versions of others, and ir_measures brings pytrec_eval and perl.
    reasons += ["could not import 'ranx'", "could not import 'ir_measures'"]
    reasons += ["could not import 'mteb", "could not import 'beir"]  # large, and MTEB needs PyTorch
    reasons += ["could not import 'torch'", *ABSENT["array_api_strict"]]  # scripts/test-torch has them
    reasons += ["PyTorch finds no GPU", "this numpy is no namespace of the array API"]
    reasons += [
        "could not import 'hotcoco'",
        "could not import 'ultrafast_pycocotools'",
    ]  # only benchmarks depend on them
    reasons += ["could not import 'lvis'"]  # its release does not run with numpy from 1.24 on
    reasons += [
        "could not import 'polars'",
        "could not import 'duckdb'",
    ]  # large, and their types are made by pyarrow too
    if LEG == "interpreted":
        reasons += ["kernels are interpreted", "kernels are not compiled", "a large file takes too long", "takes long"]
    else:
        reasons += ["counts calls that kernels make"]
    if LEG == "ahead":
        reasons += ["numba compiles nothing here"]
    else:
        reasons += ["kernels are not compiled ahead of time"]
    if _numba.is_plain():
        reasons += ["numba's own cache is in use"]
    if sys.platform != "linux":
        reasons += ["the system has no such names"]
    if sys.platform == "win32":
        reasons += ["the system has no", "signals as POSIX has them", "no fork", "sends the signal of a terminal"]
    reasons += ["this processor cannot run that code", "numpy has no optional CPU features here"]
    reasons += ["this numba keeps its licences elsewhere"]
    reasons += ["numpy's exp is the same here with and without AVX-512"]
    for word in os.environ.get("DETMAP_ABSENT", "").split():
        reasons += ABSENT[word]
    return reasons
