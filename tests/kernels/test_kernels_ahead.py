"""Kernels compiled ahead of time: every call is checked, a failed allocation is an exception, and numba is not imported."""

from __future__ import annotations

import copy
import ctypes
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import threading
import timeit
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import detmap.kernels
from detmap.cli import workload
from detmap.kernels import _ahead

ROOT = Path(__file__).resolve().parents[2]
COCO = [str(ROOT / "fixtures/coco" / name) for name in ("ground_truth.json", "detections.json")]
OBJECT = _ahead.chosen().object
PATH = Path(OBJECT.path if OBJECT else "")

pytestmark = pytest.mark.skipif(OBJECT is None, reason="kernels are not compiled ahead of time")

#: What an object may ask of the system's libraries: memory, its text, and the functions of kernels.
LIBRARIES = {
    "malloc",
    "calloc",
    "free",
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "strcmp",
    "strlen",
    "strchr",
    "snprintf",
}
LIBRARIES |= {"cos", "exp", "log", "log2", "pow", "sqrt", "floor", "ceil"}

ARRAY, SCALAR, TUPLE = range(3)


class Type(ctypes.Structure):
    """`type` of ``scripts/ahead/runtime.h``."""

    _fields_ = [(name, ctypes.c_uint8) for name in ("shape", "kind", "size", "dimensions", "writable", "count")]


def types_of(label):
    """The types of a kernel's arguments as nested lists, and its classes."""
    library = OBJECT.library
    library.detmap_types.restype = ctypes.POINTER(Type)
    number = library.detmap_find(label.encode())
    rows, classes, at = library.detmap_types(number), library.detmap_classes(number).decode().split(), [0]

    def one():
        found = rows[at[0]]
        at[0] += 1
        if found.shape == TUPLE:
            module, name = classes.pop(0).split(":")
            return getattr(importlib.import_module(module), name), [one() for _ in range(found.count)]
        return found

    return [one() for _ in range(library.detmap_arguments(number))]


def dtype_of(one):
    return np.dtype(f"{chr(one.kind)}{one.size}")


def fitting(one):
    """An argument of that type."""
    if isinstance(one, tuple):
        return one[0](*map(fitting, one[1]))
    if one.shape == SCALAR:
        return {"i": 0, "u": 0, "f": 0.0, "b": False}[chr(one.kind)]
    return np.zeros((2,) * one.dimensions, dtype_of(one))


def misaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    return np.frombuffer(raw.data[1:], array.dtype).reshape(array.shape)


def wrong(one):
    """Yield, with a word, arguments that are no such type in one way each."""
    right = fitting(one)
    yield "nothing", None
    yield "text", "text"
    yield "object", object()
    if isinstance(one, tuple):
        yield "plain tuple", tuple(right)
        yield "array", np.zeros(2)
        for place, field in enumerate(one[1]):
            for word, value in wrong(field):
                yield f"{right._fields[place]}: {word}", right._replace(**{right._fields[place]: value})
    elif one.shape == SCALAR:
        numbers = {"i": [1.0, True, 1 << 63, -(1 << 63) - 1, np.uint64(1 << 63), np.float64(1), np.True_]}
        numbers["u"] = [1.0, True, -1, 1 << 64, np.int64(-1), np.float32(1)]
        numbers["f"] = [1, True, np.float32(1), np.int64(1), 1j]
        numbers["b"] = [1, 0.0, np.int64(1), np.uint8(1)]
        for value in numbers[chr(one.kind)]:
            yield f"{value!r}", value
        yield "array of a number", np.zeros(1, dtype_of(one))
        yield "array without dimensions", np.zeros((), dtype_of(one))
    else:
        for dtype in {
            "?",
            "i1",
            "u1",
            "i2",
            "i4",
            "u4",
            "i8",
            "u8",
            "f4",
            "f8",
            ">i8",
            ">f8",
            "c16",
            "M8[s]",
            "O",
            "S8",
        } - {dtype_of(one).str.strip("|<").replace("b1", "?")}:
            if np.dtype(dtype) != dtype_of(one):
                yield f"dtype {dtype}", np.zeros(right.shape, dtype)
        yield "structured", np.zeros(right.shape, [("a", dtype_of(one))])
        yield "fewer dimensions", np.zeros((2,) * (one.dimensions - 1), dtype_of(one))
        yield "more dimensions", np.zeros((2,) * (one.dimensions + 1), dtype_of(one))
        spread = np.zeros((2,) * (one.dimensions - 1) + (4,), dtype_of(one))[..., ::2]
        yield "not contiguous", spread
        yield "reversed", right[..., ::-1]
        if one.dimensions > 1:
            yield "column by column", np.asfortranarray(np.zeros((2, 3, *right.shape[2:]), dtype_of(one)))
        if one.size > 1:
            yield "not aligned", misaligned(right)
        if one.writable:
            frozen = right.copy()
            frozen.setflags(write=False)
            yield "read-only", frozen
        yield "list", right.tolist()
        yield "number", right.flat[0]


def stand_ins():
    for module in pkgutil.iter_modules(detmap.kernels.__path__):
        importlib.import_module(f"detmap.kernels.{module.name}")
    return {function._label(): function for function in detmap.kernels.KERNELS if getattr(function, "_object", None)}


def test_the_object_holds_every_kernel_that_python_calls():
    named = {label for label in stand_ins() if not label.split(".")[1].startswith("_")}
    assert named == set(OBJECT.labels())
    assert len(named) > 85


@pytest.mark.parametrize("label", OBJECT.labels() if OBJECT else [])
def test_every_argument_is_checked(label):
    """What is wrong in one way is refused by name before machine code sees it, whatever else is right."""
    types = types_of(label)
    call, given = OBJECT.call(label), [fitting(one) for one in types]
    tried = 0
    for place, one in enumerate(types):
        for word, value in wrong(one):
            with pytest.raises(_ahead.Mismatch, match=rf"^{place + 1} ") as refused:
                call(*given[:place], value, *given[place + 1 :])
            assert "needed" in str(refused.value), word
            tried += 1
    assert tried >= 8 * len(types)
    for count in (0, len(types) - 1, len(types) + 1):
        with pytest.raises(_ahead.Mismatch, match="number of arguments"):
            call(*(given * 2)[:count])
    with pytest.raises(TypeError):
        call(*given, extra=1)


def test_a_mismatch_is_a_type_error_that_names_the_kernel(monkeypatch):
    from detmap.kernels import matching

    monkeypatch.setenv("DETMAP_KERNELS", "ahead")
    for name in _ahead._OTHER_CODE:
        monkeypatch.delenv(name, raising=False)
    starts, out = np.array([0, 1]), np.zeros((1, 64), np.int64)
    wanted = (
        r"kernel matching\.count_bits: argument 2 has another dtype; a C-contiguous array of uint64 with 2 dimensions"
    )
    with pytest.raises(TypeError, match=wanted):
        matching.count_bits(starts, np.ones((1, 1)), out)


def test_without_being_told_to_numba_takes_what_does_not_fit(monkeypatch):
    from detmap.kernels import matching

    monkeypatch.delenv("DETMAP_KERNELS", raising=False)
    out = np.zeros((1, 64), np.int64)
    matching.count_bits(np.array([0, 1]), np.asfortranarray(np.array([[3], [5]], np.uint64))[::2], out)
    assert out[0, :4].tolist() == [1, 1, 0, 0]


@pytest.mark.slow
def test_a_call_costs_at_most_5_us_more_than_numbas():
    """Of kernels that are called per image or file, with arrays, and numbers."""
    from detmap.kernels import matching, words

    text, bits = np.full(64, 48, np.uint8), np.ones((1, 1), np.uint64)
    text.flags.writeable = bits.flags.writeable = False
    starts = detmap.kernels.readonly([0, 1], np.int64)
    for kernel, given in (
        (matching.count_bits, (starts, bits, np.zeros((1, 64), np.int64))),
        (words.survey, (text, 0, 64, 0, False)),
    ):
        ours, numbas = kernel._object.call(kernel._label()), kernel.compiled()
        assert ours(*given) == numbas(*given)
        ahead, jit = (min(timeit.repeat(partial(call, *given), number=500, repeat=15)) / 500 for call in (ours, numbas))
        through = min(timeit.repeat(partial(kernel, *given), number=500, repeat=15)) / 500
        assert max(ahead, through) < jit + 5e-6


class Failing:
    """Stands before every kernel: when one is called first, its allocations fail one after the other."""

    def __init__(self, failures):
        self.failures, self._lock, self._first = failures, threading.RLock(), StandInCall

    def __call__(self, stand_in, *given):
        if stand_in._object is None:
            return self._first(stand_in, *given)
        label = stand_in._label()
        with self._lock:
            if label not in self.failures:
                self.failures[label] = self._fail(stand_in, label, given)
            return self._first(stand_in, *given)

    def _fail(self, stand_in, label, given):
        call, library = OBJECT.call(label), OBJECT.library
        for count in range(10_000):
            arguments = copy.deepcopy(given)
            library.detmap_fail_after(count)
            said = ""
            try:
                call(*arguments)
            except MemoryError as error:
                said = str(error)
            finally:
                library.detmap_fail_after(-1)
            if not said:
                return count
            assert said == f"kernel {label}: an allocation failed"
        raise AssertionError(label)


StandInCall = _ahead.StandIn.__call__


def test_an_allocation_that_fails_is_a_memory_error_that_names_the_kernel(monkeypatch):
    """Whichever it is, in every kernel that allocates."""
    OBJECT.library.detmap_fail_after.argtypes = [ctypes.c_long]
    failures = {}
    failing = Failing(failures)
    monkeypatch.setattr(_ahead.StandIn, "__call__", lambda stand_in, *given: failing(stand_in, *given))
    workload.run()
    assert failures.keys() == set(OBJECT.labels())
    assert sum(count > 0 for count in failures.values()) > 30
    assert sum(failures.values()) > 60


_LIMITED = """
import resource
import numpy as np
from detmap.kernels import bitmaps
pixels = np.zeros((1, 1, 1 << 24), np.uint8)
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
try:
    bitmaps.runs_of_bitmaps(pixels, 0, 1, np.zeros(1, np.uint32), np.zeros((1, 4), np.int64))
except MemoryError as error:
    print(error)
"""


def run(*words, **environment):
    given = {"DETMAP_KERNELS": "ahead", "PYTHONPATH": str(ROOT), **environment}
    kept = {name: value for name, value in os.environ.items() if name not in _ahead._OTHER_CODE}
    done = subprocess.run([sys.executable, *words], env={**kept, **given}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no such limit")
def test_memory_that_the_system_refuses():
    assert run("-c", _LIMITED)[:2] == (0, "kernel bitmaps.runs_of_bitmaps: an allocation failed\n")


@pytest.mark.slow
def test_an_evaluation_imports_no_numba():
    program = "import sys; from detmap.__main__ import run; sys.argv[1:] = {!r}; run(); print(*sys.modules)"
    for words in (["eval", *COCO], ["diagnose", *COCO], ["check", *COCO], ["--version"]):
        code, out, err = run("-c", program.format([*words, "--quiet"] if words[0] != "--version" else words))
        assert code == 0, err
        loaded = {name.partition(".")[0] for name in out.split()}
        assert not {"numba", "llvmlite"} & loaded, words
        if words[0] == "eval":  # what other files and other commands need
            assert not {"csv", "decimal", "gzip", "msgspec", "pathlib", "shutil", "urllib", "xml"} & loaded


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no such names")
def test_the_object_needs_little_and_shows_little():
    shown = subprocess.run(["nm", "--dynamic", "--format=posix", str(PATH)], capture_output=True, text=True, check=True)
    rows = [line.split()[:2] for line in shown.stdout.splitlines()]
    needed = {name.partition("@")[0] for name, kind in rows if kind == "U"}
    weak = {name.partition("@")[0] for name, kind in rows if kind in "wW"}
    assert needed <= LIBRARIES
    assert weak <= {"__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}
    defined = {name.partition("@")[0] for name, kind in rows if kind not in "UwW"}
    assert {name for name in defined if not name.startswith("detmap_")} <= {"_init", "_fini"}
    headers = subprocess.run(["readelf", "-lWd", str(PATH)], capture_output=True, text=True, check=True).stdout
    assert "TEXTREL" not in headers
    assert re.search(r"GNU_STACK .* RW ", headers)
    assert "NOW" in headers
