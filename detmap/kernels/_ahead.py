"""Kernels compiled ahead of time: select and verify a shared object, and call it without numba.

``ahead/<platform>-<level>.so`` holds the machine code of every kernel, for processors of one level, such as x86-64-v3.
The object also holds a few C functions that check arguments and call the kernels (``scripts/ahead/runtime.c``). The
object receives pointers to Python's C API from this module, so that one object serves every version of Python.
``ahead/<platform>-<level>.txt`` says what the object was built from:

    object <size> <CRC-32>
    source <file> <size> <CRC-32>      of every file of kernels
    …                                  (versions, for people)

With ``DETMAP_KERNELS=jit`` numba compiles all kernels; with ``ahead`` it is an error if no object can be used. By
default numba compiles the kernels that the object lacks, and all kernels if no object can be used. Settings of numba
that need other machine code (`_OTHER_CODE`) imply ``jit``.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, update_wrapper
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from detmap.errors import DetmapError, OptionError
from detmap.installation import install_command

if TYPE_CHECKING:
    from pathlib import Path  # not imported at run time, because that takes longer than loading an object

_HOME = os.path.dirname(os.path.realpath(__file__))

#: The package whose functions an object holds.
_PACKAGE = __name__.rpartition(".")[0]

#: Settings that ask for interpreted kernels, bounds checks or numba's own cache, for which compiled objects cannot be
#: used.
_OTHER_CODE = ("NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK", "DETMAP_PLAIN_NUMBA")

_SUFFIXES = {"linux": ".so", "darwin": ".dylib", "win32": ".dll"}

#: Functions of Python's stable C API, in the order of `python` in ``runtime.c``.
_FUNCTIONS = (
    "PyObject_GetBuffer",
    "PyBuffer_Release",
    "PyTuple_Size",
    "PyTuple_GetItem",
    "PyObject_Type",
    "PyObject_IsInstance",
    "PyNumber_Index",
    "PyLong_AsLongLong",
    "PyLong_AsUnsignedLongLong",
    "PyFloat_AsDouble",
    "PyObject_IsTrue",
    "PyLong_FromLongLong",
    "PyLong_FromUnsignedLongLong",
    "PyFloat_FromDouble",
    "PyBool_FromLong",
    "PyCapsule_New",
    "PyCapsule_GetPointer",
    "PyCFunction_NewEx",
    "Py_IncRef",
    "Py_DecRef",
    "PyErr_Occurred",
    "PyErr_ExceptionMatches",
    "PyErr_Clear",
    "PyErr_SetString",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)


class KernelWarning(RuntimeWarning):
    """A compiled object cannot be used; numba compiles the kernels instead, with the same results."""


class KernelError(DetmapError, RuntimeError):
    """There is neither a usable object of compiled kernels nor numba to compile them."""


class Mismatch(TypeError):
    """An argument does not have the type that a kernel was compiled for."""


class Object(NamedTuple):
    """A loaded shared object."""

    path: str
    library: Any

    def level(self) -> int:
        """Return the x86-64 level of this processor; 1 on other architectures."""
        return int(self.library.detmap_level())

    def call(self, label: str) -> Callable[..., Any] | None:
        """Return the kernel with a label such as ``matching.match``; None if the object lacks it."""
        number = self.library.detmap_find(label.encode())
        if number < 0:
            return None
        words = self.library.detmap_classes(number).decode().split()
        classes = [_class(*word.split(":")) for word in words]
        found: Callable[..., Any] = self.library.detmap_function(number, _objects(*classes), len(classes))
        return found

    def built_with(self, what: str) -> str:
        """Return the version of a tool, such as numba, that the object was built with."""
        lines = _lines(_described(self.path))
        return next((line.partition(" ")[2] for line in lines if line.startswith(f"{what} ")), "unknown")

    def labels(self) -> list[str]:
        """Return the kernels that the object holds."""
        found: list[str] = []
        while (label := self.library.detmap_label(len(found))) is not None:
            found.append(label.decode())
        return found


class Choice(NamedTuple):
    """`object` is the object that this process takes kernels from; None if numba compiles them. `refused` says why an
    existing object is not used; None if no object was refused.
    """

    object: Object | None
    refused: str | None


#: Lock held while a `StandIn` compiles its function.
_COMPILING = RLock()


class StandIn:
    """A kernel or helper, taken from an object of compiled kernels, or compiled by numba when it is needed.

    Parameters
    ----------
    function : callable
        The kernel or helper as a Python function.
    compile : callable
        Returns the function compiled by numba.
    object : Object, optional
        Holds the machine code of kernels.
    """

    def __init__(self, function: Any, compile: Callable[[], Any], object: Object | None = None) -> None:
        update_wrapper(self, function)
        self.py_func, self._compile, self._object = function, compile, object
        self._entry: Callable[..., Any] = self._first_call
        self._compiled: Any = None

    def __call__(self, *given: Any) -> Any:
        """Call the object's machine code, or the function compiled by numba if the object's code is for other argument
        types.
        """
        try:
            return self._entry(*given)
        except Mismatch as error:
            mismatch = str(error)  # the exception would keep the arguments alive until garbage collection
        if self._object is not None and _choice() == "ahead":
            raise TypeError(f"kernel {self._label()}: argument {mismatch}") from None
        try:
            compiled = self.compiled()
        except KernelError:
            raise TypeError(f"kernel {self._label()}: argument {mismatch}") from None
        return compiled(*given)

    def __reduce__(self) -> str:
        return str(self.py_func.__qualname__)

    @property
    def _numba_type_(self) -> Any:
        """Return the type that numba needs to compile a kernel that calls this function."""
        return self.compiled()._numba_type_

    def compiled(self) -> Any:
        """Return the function compiled by numba."""
        with _COMPILING:
            if self._compiled is None:
                _import_numba(self._label())
                self._compiled = self._compile()
        return self._compiled

    def _label(self) -> str:
        return f"{self.py_func.__module__.rpartition('.')[2]}.{self.py_func.__qualname__}"

    def _first_call(self, *given: Any) -> Any:
        found = None if self._object is None else self._object.call(self._label())
        self._entry = found or self.compiled()
        return self._entry(*given)


#: Callbacks, each called once after numba has been imported to compile kernels that the object lacks.
WHEN_NUMBA_COMES: list[Callable[[], None]] = []


@cache
def has_numba() -> bool:
    """Return whether numba is installed."""
    if sys.modules.get("numba") is not None:
        return True
    from importlib.util import find_spec

    return find_spec("numba") is not None


@cache
def chosen() -> Choice:
    """Load the object for this processor, once per process.

    Raises
    ------
    OptionError
        If ``DETMAP_KERNELS`` is neither "jit" nor "ahead".
    KernelError
        If ``DETMAP_KERNELS`` is "ahead" and no object can be used.
    """
    choice = _choice()
    if choice == "jit":
        return Choice(None, None)
    found = _load()
    if isinstance(found, Object):
        return Choice(found, None)
    if choice == "ahead":
        raise KernelError(f"DETMAP_KERNELS=ahead: {found or f'there is no object for {_platform()} in {_folder()}'}")
    if found is not None and has_numba():
        warnings.warn(f"{found}; numba compiles the kernels instead", KernelWarning, stacklevel=2)
    return Choice(None, found)


def numba_version() -> str:
    """Return the version of numba that compiled, or compiles, the kernels of this process."""
    found = chosen().object
    if found is not None:
        return found.built_with("numba")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("numba")
    except PackageNotFoundError:
        return "none"


def interface() -> int:
    """Return a checksum of the names in `_FUNCTIONS`; an object can only be used if it was built with this checksum."""
    return zlib.crc32(" ".join(_FUNCTIONS).encode()) & 0x7FFFFFFF


def in_use() -> str:
    """Return a sentence that says where this process takes its kernels from."""
    found, refused = chosen()
    if found is not None:
        built = f"numba {found.built_with('numba')} for {found.built_with('processor')}"
        return f"{found.path}, compiled ahead of time by {built}"
    source = f"numba {numba_version()} compiles them" if has_numba() else "none; numba is not installed"
    return source if refused is None else f"{source}; {refused}"


def describe(sources: Path, size: int, checksum: int) -> list[str]:
    """Return the lines of an object's ``.txt`` file: its size and checksum, and the size and checksum of every source
    file in `sources`.
    """
    lines = [f"object {size} {checksum:08x}"]
    for path in _sources(sources):
        content = path.read_bytes()
        lines.append(f"source {path.name} {len(content)} {zlib.crc32(content):08x}")
    return lines


def _choice() -> str:
    """Return the value of ``DETMAP_KERNELS``, or "jit" if a setting of numba needs other machine code."""
    choice = os.environ.get("DETMAP_KERNELS", "")
    if choice not in ("", "ahead", "jit"):
        raise OptionError(f"DETMAP_KERNELS={choice}: it is 'ahead' or 'jit'")
    other = any(os.environ.get(name, "0") not in ("", "0") for name in _OTHER_CODE)
    config = getattr(sys.modules.get("numba"), "config", None)
    return "jit" if other or getattr(config, "DISABLE_JIT", False) or getattr(config, "BOUNDSCHECK", False) else choice


def _platform() -> str:
    machine = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")
    words = {"amd64": "x86_64", "arm64": "aarch64"}
    return f"{sys.platform}-{words.get(machine.lower(), machine)}"


def _folder() -> str:
    return os.path.join(_HOME, "ahead")


def _described(path: str) -> str:
    return f"{os.path.splitext(path)[0]}.txt"


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def _sources(folder: Path) -> list[Path]:
    """Return the source files of kernels, without this file, which does not affect machine code."""
    return [path for path in sorted(folder.glob("*.py")) if path.name != "_ahead.py"]


def _load() -> Object | str | None:
    """Return the best object for this processor, a sentence on why no existing object can be used, or None if there is
    no object.
    """
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    suffix = _SUFFIXES.get(sys.platform, ".so")
    try:
        names = [name for name in os.listdir(_folder()) if name.startswith(_platform() + "-") and name.endswith(suffix)]
    except OSError:
        return None
    refused: str | None = None
    for name in sorted(names, reverse=True):  # the name ends with the level; the highest level is tried first
        path = os.path.join(_folder(), name)
        if (wrong := _problem(path, _described(path))) is not None:
            refused = f"{path} {wrong}"
            continue
        try:
            found = Object(path, _open(path))
        except (OSError, AttributeError, ValueError) as error:
            refused = f"{path} cannot be loaded: {error}"
            continue
        level = name.removesuffix(suffix)[-1]
        if not level.isdecimal() or found.level() >= int(level):
            return found
        refused = f"{path} needs a processor of level x86-64-v{level}, this one has v{found.level()}"
    return refused


def _problem(path: str, described: str) -> str | None:
    """Return what is wrong if the object file or its sources do not match its description, else None."""
    try:
        lines = _lines(described)
        with open(path, "rb") as file:
            content = file.read()
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "object" and rest != f"{len(content)} {zlib.crc32(content):08x}":
                return "is damaged: install detmap again"
            if word == "source":
                name, _, seen = rest.partition(" ")
                if seen != _checksum(name):
                    return f"was built from another {name}: scripts/build-kernels builds it again"
    except (OSError, ValueError) as error:
        return f"cannot be checked: {error}"
    if not any(line.startswith("object ") for line in lines) or not any(line.startswith("source ") for line in lines):
        return f"cannot be checked: {os.path.basename(described)} is not whole"
    return None


@cache
def _checksum(name: str) -> str:
    """Return the size and checksum of a source file, cached because several objects may be checked."""
    with open(f"{_HOME}/{name}", "rb") as file:
        source = file.read()
    return f"{len(source)} {zlib.crc32(source):08x}"


def _open(path: str) -> Any:
    """Load a verified object and hand it pointers to Python's API."""
    library = ctypes.PyDLL(path)
    library.detmap_find.argtypes = [ctypes.c_char_p]
    library.detmap_label.restype = library.detmap_classes.restype = ctypes.c_char_p
    library.detmap_function.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    library.detmap_function.restype = ctypes.py_object
    addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _FUNCTIONS]
    objects = (None, True, False, int, float, np.bool_, np.integer, MemoryError, RuntimeError, Mismatch)
    if (library.detmap_functions(), library.detmap_objects(), library.detmap_interface()) != (
        len(addresses),
        len(objects),
        interface(),
    ):
        raise ValueError("it belongs to another version of detmap")
    library.detmap_start((ctypes.c_void_p * len(addresses))(*addresses), _objects(*objects))
    return library


def _objects(*objects: Any) -> Any:
    return (ctypes.py_object * len(objects))(*objects)


def _class(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _import_numba(label: str) -> None:
    """Import numba to compile the function `label`."""
    if not has_numba():
        found, reason = chosen()
        if found is None and reason is None and _choice() != "jit":
            reason = f"this installation has no compiled kernels for {_platform()}"
        beginning = "" if reason is None else f"{reason}, and "
        remedy = install_command("jit")
        raise KernelError(f"kernel {label}: {beginning}numba, which compiles it, is not installed: {remedy}")
    importlib.import_module("numba")
    with suppress(IndexError):  # another thread may have emptied the list
        while True:
            WHEN_NUMBA_COMES.pop()()
