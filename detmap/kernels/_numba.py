"""Uses of numba's private interface: the cache of compiled kernels, and undocumented options.

numba's own cache only checks the file that defines a function. After a change of a named tuple in another file, numba
would load a stale kernel that reads the wrong column. The cache of this module keeps one file per kernel and signature.
The file's name holds a digest of everything that the machine code depends on, so that a stale file is never found. A
checksum detects truncated and damaged files, whose kernels are compiled again.

Private names of numba are only used with versions in `TESTED`, and only if all these names exist. If not, or if
``DETMAP_PLAIN_NUMBA=1`` is set, kernels are cached by ``numba.njit(cache=True)``, under a name that holds the digest of
the sources.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import re
import sys
import time
import uuid
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
import numpy.ma  # otherwise numba imports it in a kernel's first call, and the process may fork during that import

from detmap.installation import DISTRIBUTION, is_checkout
from detmap.kernels import elsewhere

_config: Any = numba.config

#: Options for compiling every kernel and helper.
njit: Any = partial(numba.njit, nogil=True, error_model="numpy")

#: The oldest and the newest version of numba whose private names are known.
TESTED = ((0, 60), (0, 68))

#: The folder of kernel sources.
_HOME = Path(__file__).resolve().parent

#: Settings of numba that change the machine code.
_SETTINGS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE", "USING_SVML")

#: Magic number of cache files, followed by the digest of the key and the checksum of the content.
_MAGIC = b"detmap kernel 2\n"
_DIGEST = 32

#: Maximum number of cached files per kernel, for different processors, versions and settings.
_MOST = 32

#: Patterns of file names in this module's cache, and in numba's own. A file has the suffix ``.tmp`` while it is written.
_OURS = re.compile(r"(?P<label>[\w.]+)-[0-9a-f]{16}-[0-9a-f]{24}\.nbc")
_NUMBAS = re.compile(r"\.nb[ic](\.tmp\.\w+)?$")

#: Modules whose versions, rather than sources, are part of a kernel's key.
_KNOWN = frozenset({"numpy", "numba", "llvmlite", *sys.stdlib_module_names})


class CacheWarning(RuntimeWarning):
    """Compiled kernels cannot be cached; every process compiles them again, with the same results."""


@cache
def is_plain() -> bool:
    """Return whether kernels are cached by numba itself."""
    if os.environ.get("DETMAP_PLAIN_NUMBA", "0") not in ("", "0"):
        return True
    if not TESTED[0] <= numba.version_info.short <= TESTED[1] or getattr(_config, "CACHE_LOCATOR_CLASSES", False):
        return True
    try:
        from llvmlite import binding
        from numba.core import codegen, compiler, serialize
        from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

        library: Any = codegen.JITCodeLibrary
        needed: list[Any] = [
            binding.add_symbol,
            _nrt_python.c_helpers,
            serialize.dumps,
            codegen.JITCPUCodegen.magic_tuple,
        ]
        needed += [compiler.CompileResult._reduce, compiler.CompileResult._rebuild]
        needed += [codegen.CPUCodeLibrary._get_module_for_linking, compiler.Compiler.define_pipelines]
        needed += [library._finalize_dynamic_globals, library._finalize_final_module, library.get_pointer_to_function]
    except (AttributeError, ImportError):
        return True
    return not (all(needed) and _HOME.is_dir())


@cache
def known_options(**options: bool) -> dict[str, bool]:
    """Return the undocumented `options` if numba has all of them; otherwise an empty dictionary."""
    try:
        from numba.core.cpu import CPUTargetOptions
    except ImportError:
        return {}
    known = not is_plain() and all(hasattr(CPUTargetOptions, name) for name in options)
    return options if known else {}


@cache
def without_garbage_collection() -> dict[str, Any]:
    """Return the option of `njit` that disables garbage collection, which would run some hundred times per compilation."""
    if is_plain():
        return {}
    from numba.core import compiler

    class Compiler(compiler.Compiler):
        def compile_extra(self, function: Any) -> Any:
            parent: Any = super()
            collects = gc.isenabled()
            gc.disable()
            try:
                return parent.compile_extra(function)
            finally:
                if collects:
                    gc.enable()

    return {"pipeline_class": Compiler}


def cached(function: Callable[..., Any], compile: Callable[..., Any]) -> Any:
    """Return ``compile(function)`` with a `SourceCache`, or ``compile(function, cache=True)`` with numba's own cache."""
    if _config.DISABLE_JIT:
        return compile(function)
    if not is_plain():
        compiled = compile(function)
        if hasattr(compiled, "_cache"):
            compiled._cache = SourceCache(function)
            return compiled
    name = function.__qualname__
    folder = _home_of(function)
    try:  # numba's cache files are named after the function
        function.__qualname__ = f"{name}_{_stamp(folder)}_{_digest(_circumstances())[:8]}"
        compiled = compile(function, cache=True)
    except (OSError, RuntimeError) as error:
        compiled = compile(function)
        _say(f"compiled kernels cannot be kept: {error}")
    finally:
        function.__qualname__ = name
    compiled.__qualname__ = name
    if hasattr(compiled, "_cache"):
        compiled._cache = _Forgiving(compiled._cache)
    if folder == _HOME and compiled.stats.cache_path:
        _prune_once(Path(compiled.stats.cache_path), _stamp(folder))
    return compiled


def is_kept(compiled: Any) -> bool:
    """Return whether the cache holds a compiled kernel for any signature."""
    kept = getattr(compiled, "_cache", None)
    if isinstance(kept, SourceCache):
        return kept.is_kept()
    function, path = compiled.py_func, compiled.stats.cache_path
    stamp = _stamp(_home_of(function))
    return bool(path) and any(Path(path).glob(f"*.{function.__qualname__}_{stamp}_*.nbi"))


def writable_folder() -> Path:
    """Return the folder that kernels are written to.

    Raises
    ------
    OSError
        If no folder is writable; its ``filename`` is the first folder that was tried.
    """
    failure: OSError | None = None
    for folder in _folders(_HOME):
        probe = folder / "probe"
        try:
            _write(probe, bytes(1 << 16))
            probe.unlink()
            return folder
        except OSError as error:
            failure = failure or OSError(error.errno, error.strerror, str(folder))
    raise failure or OSError("there is no folder for a cache")


class SourceCache:
    """The cache of a kernel, with the interface that numba's dispatchers use.

    Parameters
    ----------
    function : callable
        The kernel as a Python function. The key of a kernel outside of `detmap.kernels` also covers the sources in the
        kernel's folder, and the sources of everything that the kernel uses.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._home = _home_of(function)
        label = re.sub(r"[^\w.]", "", f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}")
        self.label = label[-100:]
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The folder that is read first, and written to if possible."""
        return str(_folders(self._home)[0])

    def enable(self) -> None:
        """Read and write files."""
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write files."""
        self._enabled = False

    def flush(self) -> None:
        """Remove the cached files of this kernel."""
        for folder in _folders(self._home):
            for path in folder.glob(f"{self.label}-*.nbc"):
                with suppress(OSError):
                    path.unlink()

    def is_kept(self) -> bool:
        """Return whether there is a cache file for the current sources."""
        pattern = f"{self.label}-{self._stamp()}-*.nbc"
        return any(any(folder.glob(pattern)) for folder in _folders(self._home))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code compiled for `sig` by an earlier process, or None. Unlike numba's cache, this method does not
        set up the compiler, which takes longer than a small evaluation.
        """
        if not self._enabled:
            return None
        found = self._find(sig, target_context)
        if found is None and any(asked(self.label) for asked in elsewhere.ASKED):
            found = self._find(sig, target_context)
        return found

    def _find(self, sig: Any, target_context: Any) -> Any:
        from numba.core import compiler

        # If loading fails for any reason, even with an intact file, the kernel can still be compiled.
        with suppress(Exception):
            name, key = self._name(sig, target_context.codegen())
            for folder in _folders(self._home):
                payload = _read(folder / name, key)
                if payload is not None:
                    _name_runtime()
                    result: Any = compiler.CompileResult
                    kept, source = pickle.loads(payload)
                    found = result._rebuild(target_context, *kept)
                    found.library._get_module_for_linking = partial(_source_module, source)
                    if tuple(found.signature.args) == _arguments(sig):
                        return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache `data`, compiled for `sig`; a failure gives one `CacheWarning`."""
        from numba.core import serialize

        if not self._enabled:
            return
        if data.library.has_dynamic_globals or any(not lifted.can_cache for lifted in data.lifted):
            _say(f"compiled kernels cannot be kept: {self.label} holds addresses of this process")
            return
        failure: Exception | None = None
        try:
            name, key = self._name(sig, data.codegen)
            if self._stamp() != self._stamp(anew=True):  # the sources have changed since this process read them
                return
            library, *kept, environments = data._reduce()
            library, source = _without_source(library, data.library._get_module_for_linking())
            # An environment holds a function's constant objects. Empty environments of numba's own functions are left
            # out, because loading an environment imports the function's module. The module of array functions, which
            # `np.empty` refers to, takes longer to import than all kernels take to load.
            kept.append([e for e in environments if e.consts or not e.globals["__name__"].startswith("numba.")])
            dumps: Any = serialize.dumps
            payload = dumps(((library, *kept), source))
        except Exception as error:  # an error in numba's private functions must not stop an evaluation
            _say(f"compiled kernels cannot be kept: {type(error).__name__}: {error}")
            return
        for folder in _folders(self._home):
            try:
                _write(folder / name, _MAGIC + key + _checksum(payload) + payload)
            except OSError as error:
                failure = failure or error
                continue
            _prune(folder, self._stamp(), None if self._home == _HOME else self.label)
            return
        where = f" in {_folders(self._home)[0]}"
        _say(f"compiled kernels cannot be kept{where}: {getattr(failure, 'strerror', None) or failure}")

    def _stamp(self, anew: bool = False) -> str:
        """Return the digest of the kernel's sources; files are read again if `anew`."""
        stamp = _stamp.__wrapped__(self._home) if anew else _stamp(self._home)
        return stamp if self._home == _HOME else _digest((stamp, list(_uses(self._function, (), set()))))[:16]

    def _name(self, sig: Any, codegen: Any) -> tuple[str, bytes]:
        """Return the name of the file for `sig`, and the digest that the file must hold."""
        function, stamp = self._function, self._stamp()
        types = [_type_words(of) for of in (*_arguments(sig), getattr(sig, "return_type", None))]
        code = function.__code__
        what = (function.__module__, function.__qualname__, code.co_firstlineno, code.co_code, stamp)
        digest = _digest((_circumstances(), codegen.magic_tuple(), what, types))
        return f"{self.label}-{stamp}-{digest[:24]}.nbc", bytes.fromhex(digest)


class _Forgiving:
    """numba's own cache, made tolerant of damaged or unwritable files."""

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept, name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code compiled for `sig` by an earlier process, or None."""
        try:
            return self._kept.load_overload(sig, target_context)
        except Exception:
            with suppress(Exception):  # numba cannot add to an unreadable index either
                self._kept.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache `data` for `sig`."""
        try:
            self._kept.save_overload(sig, data)
        except Exception as error:
            _say(f"compiled kernels cannot be kept in {self._kept.cache_path}: {getattr(error, 'strerror', error)}")


def _without_source(library: Any, module: Any) -> tuple[Any, bytes]:
    """Replace the LLVM code in numba's cached form of a kernel by a stand-in. Return the cached form and the compressed
    LLVM code.

    The LLVM code is only needed to compile another kernel that calls this kernel. Reading the LLVM code takes half of
    the time of loading a kernel, and more memory than the machine code. The stand-in defines all names of the LLVM code
    as empty functions, because numba's linker looks the names up. `module` is the LLVM code as a module of llvmlite.
    """
    from llvmlite import binding

    name, kind, (machine_code, source) = library
    names = [
        one.name for group in (module.functions, module.global_variables) for one in group if not one.is_declaration
    ]
    written = ("".join(chr(c) if chr(c).isalnum() and c < 128 else f"\\{c:02X}" for c in one.encode()) for one in names)
    empty = binding.parse_assembly("".join(f'define void @"{one}"() {{ ret void }}\n' for one in written))
    return (name, kind, (machine_code, empty.as_bitcode())), zlib.compress(source)


def _source_module(source: bytes) -> Any:
    """Return the LLVM code that `_without_source` removed, ready to be linked."""
    from llvmlite import binding

    return binding.parse_bitcode(zlib.decompress(source))


@cache
def _name_runtime() -> None:
    """Tell the linker the addresses of numba's runtime functions for allocation."""
    from llvmlite import binding
    from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


_said: list[str] = []


def _say(text: str) -> None:
    """Warn that the cache does not work, once per process."""
    if not _said:
        _said.append(text)
        remedy = "every process compiles them anew; NUMBA_CACHE_DIR=FOLDER names another place"
        warnings.warn(f"{text}; {remedy}", CacheWarning, stacklevel=2)


def _digest(of: object) -> str:
    return hashlib.blake2b(repr(of).encode(), digest_size=_DIGEST).hexdigest()


def _checksum(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_DIGEST).digest()


@cache
def _circumstances() -> tuple[object, ...]:
    """Return versions and settings that machine code depends on, besides sources, types and processor."""
    versions = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__)
    return (*versions, *(str(getattr(_config, name, None)) for name in _SETTINGS))


def _home_of(function: Callable[..., Any]) -> Path:
    return _resolved(os.path.dirname(function.__code__.co_filename))


@cache
def _resolved(folder: str) -> Path:
    return Path(folder).resolve()


def _arguments(sig: Any) -> tuple[Any, ...]:
    return tuple(getattr(sig, "args", sig))


def _type_words(of: Any) -> object:
    """Return the text of a numba type, including the fields of named tuples, which ``str`` leaves out."""
    if not hasattr(of, "types"):
        named = getattr(of, "instance_class", None)
        return str(of) if named is None else (str(of), named.__module__, named.__qualname__, of.fields)
    named = getattr(of, "instance_class", None)
    name = None if named is None else (named.__module__, named.__qualname__, of.fields)
    return (type(of).__name__, name, [_type_words(part) for part in of.types])


@cache
def _stamp(folder: Path) -> str:
    """Return the digest of the sources of all kernels of detmap, and of all sources in `folder`."""
    files = [path for home in dict.fromkeys((_HOME, folder)) for path in sorted(home.glob("*.py*"))]
    files = [path for path in files if path != _HOME / "_ahead.py"]  # this file changes no machine code
    sources = [path for path in files if path.suffix in (".py", ".pyc") and path.is_file()]
    return _digest([(path.name, _checksum(path.read_bytes())) for path in sources])[:16]


def _uses(value: Any, names: tuple[str, ...], seen: set[int]) -> Iterator[object]:
    """Yield text that identifies the version of `value` and of everything that it uses.

    Parameters
    ----------
    value : object
        A function, or the value of a global name that a function uses.
    names : tuple of str
        The names that the function uses, which are looked up in `value` if it is a module.
    seen : set of int
        The identities of functions and modules that were visited.
    """
    value = getattr(value, "py_func", value)
    if isinstance(value, FunctionType | ModuleType | type):
        if id(value) in seen or _module_name(value).partition(".")[0] in _KNOWN:
            return
        seen.add(id(value))
        yield _source(_module_name(value))
    if isinstance(value, FunctionType):
        names = tuple(_names(value.__code__))
        yield (value.__qualname__, value.__code__.co_code, value.__defaults__)
        for cell in value.__closure__ or ():
            yield from _uses(cell.cell_contents, names, seen)
        for name in names:
            if name in value.__globals__:
                yield name
                yield from _uses(value.__globals__[name], names, seen)
    elif isinstance(value, ModuleType):
        for name in names:
            if name in vars(value):
                yield name
                yield from _uses(vars(value)[name], names, seen)
    elif isinstance(value, type):
        yield (value.__qualname__, getattr(value, "_fields", ()))
    elif isinstance(value, np.ndarray):
        yield (value.dtype.str, value.shape, _checksum(np.ascontiguousarray(value).tobytes()))
    elif isinstance(value, tuple):
        for part in value:
            yield from _uses(part, names, seen)
    elif isinstance(value, bool | int | float | complex | str | bytes | np.generic | None):
        yield repr(value)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that `code` looks up, including names in nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _module_name(value: Any) -> str:
    return str(value.__name__ if isinstance(value, ModuleType) else value.__module__)


def _source(module: str) -> object:
    path = getattr(sys.modules.get(module), "__file__", None)
    try:
        return (module, _checksum(Path(path).read_bytes()) if path else None)
    except OSError:
        return module


def _folder_name(home: Path) -> str:
    return f"{home.name}_{hashlib.sha1(str(home).encode()).hexdigest()}"


@cache
def _folders(home: Path) -> tuple[Path, ...]:
    """Return the folders that may hold compiled kernels of the sources in `home`. Kernels are written to the first
    writable folder; read-only folders, as in container images, are read too.
    """
    name = _folder_name(home)
    if _config.CACHE_DIR:
        return (Path(_config.CACHE_DIR) / name,)
    folders = [home / "__pycache__"]
    if home == _HOME and not is_checkout():
        # When pip removes a package it leaves files that it did not install. A folder of compiled kernels inside the
        # package would then remain importable as an empty package. Therefore the folder is beside the package, under a
        # name that cannot be imported.
        folders = [home.parents[1] / f"{DISTRIBUTION}.cache"]
    with suppress(RuntimeError):  # there may be no home folder
        own = {"win32": Path.home() / "AppData" / "Local", "darwin": Path.home() / "Library" / "Caches"}
        given = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
        folders.append(Path(given or own.get(sys.platform, Path.home() / ".cache")) / "detmap" / name)
    return tuple(folders)


def _read(path: Path, key: bytes) -> bytes | None:
    """Return the data that `_write` stored after the header, or None if the file is missing or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    begin = len(_MAGIC) + len(key)
    payload = data[begin + _DIGEST :]
    whole = data[: begin + _DIGEST] == _MAGIC + key + _checksum(payload)
    return payload if whole else None


def _write(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    passing = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
    try:
        passing.write_bytes(data)
        os.replace(passing, path)
    except BaseException as error:
        with suppress(OSError):
            passing.unlink()
        # Windows cannot replace a file that another process is reading. A file that is being read is already complete.
        if not (os.name == "nt" and isinstance(error, PermissionError) and path.exists()):
            raise


@cache
def _prune_once(folder: Path, stamp: str) -> None:
    _prune(folder, stamp, None)


def _prune(folder: Path, stamp: str, label: str | None) -> None:
    """Remove files compiled from other versions of the sources, unfinished files of killed processes, and, for each kernel,
    all but the newest `_MOST` files. With a `label`, only files of this kernel are removed. A process that misses a
    removed file compiles the kernel again.
    """
    kept: dict[str, list[tuple[float, Path]]] = {}
    with suppress(OSError):
        for path in folder.iterdir():
            match = _OURS.match(path.name)
            if not (match and label in (None, match["label"])) and (label or not _NUMBAS.search(path.name)):
                continue
            with suppress(OSError):
                written = path.stat().st_mtime
                if ".tmp" in path.name:
                    if written < time.time() - 3600:
                        path.unlink()
                elif stamp not in path.name:
                    path.unlink()
                else:
                    kept.setdefault(match["label"] if match else path.name, []).append((written, path))
    for files in kept.values():
        for _, path in sorted(files)[:-_MOST]:
            with suppress(OSError):
                path.unlink()
