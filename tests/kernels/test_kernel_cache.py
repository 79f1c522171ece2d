"""The cache of compiled kernels: it knows its sources, notices damage, and never stops a score."""

from __future__ import annotations

import errno
import os
import pkgutil
import random
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from kernel_caches import ROOT, compiled, said, tricks
from kernel_caches import environment as environment

from detmap import cli
from detmap.cli import retrieval
from detmap.installation import DISTRIBUTION
from detmap.kernels import KERNELS, _numba, kernel, readonly

_SHAPES = "from typing import Any, NamedTuple\nclass Pair(NamedTuple):\n    {}: Any\n    {}: Any\n"
_KERNEL = """
import numpy as np, numba
from detmap.kernels import kernel, readonly
import shapes
@{decorator}
def first(pair):
    return pair.x[0]
pair = shapes.Pair(x=readonly([1], np.int64), y=readonly([2], np.int64))
print(first(pair), *first.stats.cache_hits.values())
"""


def _swap_fields(tmp_path, environment, decorator, **more):
    """What a kernel gives, twice and then once more after the fields of a named tuple in another file change places."""
    (tmp_path / "fits.py").write_text(_KERNEL.format(decorator=decorator))
    (tmp_path / "shapes.py").write_text(_SHAPES.format("x", "y"))
    before = [said("import fits", environment, **more) for _ in range(2)]
    (tmp_path / "shapes.py").write_text(_SHAPES.format("y", "x"))
    return [*before, said("import fits", environment, **more)]


@compiled
def test_numbas_own_cache_reads_the_wrong_column_after_a_change_in_another_file(tmp_path, environment):
    """The trap: once numba mends it, `detmap.kernels._numba` may lose its stamps."""
    assert _swap_fields(tmp_path, environment, "numba.njit(cache=True)") == [["1"], ["1", "1"], ["2", "1"]]


@compiled
@pytest.mark.parametrize("plain", ["0", "1"])
def test_a_kernel_is_compiled_anew_after_a_change_in_another_file(tmp_path, environment, plain):
    """A kernel outside the package, with our cache and with numba's."""
    seen = _swap_fields(tmp_path, environment, "kernel", DETMAP_PLAIN_NUMBA=plain)
    assert seen == [["1"], ["1", "1"], ["1"]]


@compiled
@pytest.mark.parametrize("plain", ["0", "1"])
def test_a_kernel_of_the_package_is_compiled_anew_after_a_change_in_another_file(tmp_path, environment, plain):
    """In a copy of the package, `Cells` of the file of overlaps changes; the kernel that reads it is in another file."""
    shutil.copytree(ROOT / "detmap", tmp_path / "detmap", ignore=shutil.ignore_patterns("__pycache__"))
    home = tmp_path / "detmap" / "kernels"
    (home / "shapes.py").write_text(_SHAPES.format("x", "y"))
    program = _KERNEL.format(decorator="kernel").replace("import shapes", "from detmap.kernels import shapes")
    (home / "fits.py").write_text(program)
    settings = {**environment, "PYTHONPATH": str(tmp_path), "DETMAP_PLAIN_NUMBA": plain}
    before = [said("import detmap.kernels.fits", settings) for _ in range(2)]
    (home / "shapes.py").write_text(_SHAPES.format("y", "x"))
    after = [said("import detmap.kernels.fits", settings) for _ in range(2)]
    assert before + after == [["1"], ["1", "1"]] * 2
    folder = home / "__pycache__" if plain == "1" else tmp_path / f"{DISTRIBUTION}.cache"
    kept = [path for path in folder.iterdir() if path.suffix in (".nbc", ".nbi")]
    assert len(kept) == (1 if plain == "0" else 2), "what was compiled from the sources before is gone"


_INNER = """
from detmap.kernels import kernel
@kernel
def inner(x):
    return x * 10 + 1
print(inner(1), *inner.stats.cache_hits.values())
"""
_OUTER = """
from inner import inner
from detmap.kernels import kernel
@kernel
def outer(x):
    return inner(x) * 10 + 2
print(outer(1), *outer.stats.cache_hits.values())
"""


@compiled
@pytest.mark.parametrize("plain", ["0", "1"])
def test_a_kernel_that_was_kept_is_called_by_one_that_is_compiled_later(tmp_path, environment, plain):
    """What a kept kernel was compiled from is read where another one asks for it."""
    (tmp_path / "inner.py").write_text(_INNER)
    (tmp_path / "outer.py").write_text(_OUTER)
    programs = ("import inner", "import outer", "import outer")
    seen = [said(program, environment, DETMAP_PLAIN_NUMBA=plain) for program in programs]
    assert seen == [["11"], ["11", "1", "112"], ["11", "1", "112", "1"]]


_USES = """
import numpy as np
from detmap.kernels import kernel
from elsewhere import limits
from elsewhere.limits import TABLE, helper
STEP = limits.STEP
@kernel
def total(x):
    return helper(x) + STEP + limits.OTHER + TABLE[0]
print(total(1), *total.stats.cache_hits.values())
"""
_LIMITS = """
import numba, numpy as np
{}
TABLE = np.array([1000])
@numba.njit
def helper(x):
    return x * 10000
"""


@compiled
@tricks
def test_the_stamp_of_a_plug_in_holds_what_it_uses_from_other_folders(tmp_path, environment):
    """Constants, constants of a module, arrays and functions; what it does not use may change."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "__init__.py").touch()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "uses.py").write_text(_USES)
    (tmp_path / "mine" / "__init__.py").touch()
    seen = []
    for text in ("STEP, OTHER = 1, 10", "STEP, OTHER = 1, 10", "STEP, OTHER = 2, 10", "STEP, OTHER = 2, 20"):
        (tmp_path / "elsewhere" / "limits.py").write_text(_LIMITS.format(text))
        (tmp_path / "elsewhere" / "unused.py").write_text(f"x = {len(seen)}")
        seen.append(said("import mine.uses", environment))
    assert seen == [["11011"], ["11011", "1"], ["11012"], ["11022"]]
    assert len(list((tmp_path / "mine" / "__pycache__").glob("*.nbc"))) == 1, "stale files of a plug-in are pruned"


def _double(array, out):
    for i in range(array.size):
        out[i] = 2 * array[i]


def _doubled():
    """How often a fresh kernel was found in the cache, after asserting that what it gives is right."""
    function, out = kernel(_double), np.zeros(3, np.int64)
    KERNELS.pop()
    function(readonly([1, 2, 3], np.int64), out)
    assert out.tolist() == [2, 4, 6]
    return sum(function.stats.cache_hits.values())


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The cache of kernels of this file, in a folder of its own; they are compiled where the leg interprets, too."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(_numba, "_said", [])
    monkeypatch.setattr(_numba, "_folders", lambda home: (tmp_path / "kept",))
    return tmp_path / "kept"


@tricks
def test_damage_at_any_offset_is_noticed_and_mended(own):
    """Flipped bits, cuts, zeros, garbage, foreign pickles: the number is right, and the next process finds a good file."""
    assert [_doubled(), _doubled()] == [0, 1]
    (path,) = own.iterdir()
    good, draw = path.read_bytes(), random.Random(5)
    damaged = [b"", good[:-1], good + b"x", good[:16], good[: len(good) // 2], bytes(len(good)), b"\x80\x04K\x01."]
    for _ in range(6):
        at = draw.randrange(len(good))
        damaged.append(good[:at] + bytes([good[at] ^ 1 << draw.randrange(8)]) + good[at + 1 :])
        damaged.append(good[: draw.randrange(len(good))])
    head = len(_numba._MAGIC) + _numba._DIGEST
    for payload in (b"no pickle", b"\x80\x04K\x01.", b"\x80\x04)."):  # whole, but nothing that numba has written
        damaged.append(good[:head] + _numba._checksum(payload) + payload)
    for data in damaged:
        path.write_bytes(data)
        assert [_doubled(), _doubled()] == [0, 1]
        assert [p.name for p in own.iterdir()] == [path.name]


@tricks
def test_no_single_byte_can_change_unnoticed(own):
    """Every offset, without loading what was read."""
    _doubled()
    (path,) = own.iterdir()
    good = path.read_bytes()
    key = good[len(_numba._MAGIC) :][: _numba._DIGEST]
    assert _numba._read(path, key) is not None
    other = own / "other"
    for at in range(0, len(good), 1 + len(good) // 3000):
        other.write_bytes(good[:at] + bytes([good[at] ^ 64]) + good[at + 1 :])
        assert _numba._read(other, key) is None, at
    assert _numba._read(path, bytes(_numba._DIGEST)) is None, "a file that bears another's name"


@tricks
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES, errno.EIO])
def test_a_cache_that_cannot_be_written_is_said_once_and_scoring_goes_on(own, monkeypatch, number):
    def fail(path, data):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(_numba, "_write", fail)
    with pytest.warns(_numba.CacheWarning, match=os.strerror(number)) as caught:
        assert [_doubled(), _doubled()] == [0, 0]
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)


@tricks
def test_a_disk_that_fills_while_a_file_is_written_leaves_nothing(own, monkeypatch):
    write = Path.write_bytes

    def half(path, data):
        write(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", half)
        with pytest.warns(_numba.CacheWarning):
            assert _doubled() == 0
    assert list(own.iterdir()) == []
    assert [_doubled(), _doubled()] == [0, 1]


@tricks
def test_a_folder_that_cannot_be_written_is_read_all_the_same(own, monkeypatch):
    """An image of a container is filled by its maker and then run by somebody else."""
    assert _doubled() == 0
    monkeypatch.setattr(_numba, "_write", lambda path, data: pytest.fail("nothing is to be written"))
    assert _doubled() == 1


def test_the_command_line_says_it_in_one_line_and_nothing_under_quiet(capsys, monkeypatch):
    def convention(options):
        warnings.warn("compiled kernels cannot be kept", _numba.CacheWarning, stacklevel=1)

    monkeypatch.setitem(retrieval.COMMANDS, "conventions", retrieval.COMMANDS["conventions"]._replace(run=convention))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert cli.main(["conventions"]) == 0
    assert capsys.readouterr().err == "detmap: note: compiled kernels cannot be kept\n"


@compiled
def test_processes_that_compile_at_once_agree(tmp_path, environment):
    (tmp_path / "fits.py").write_text(_KERNEL.format(decorator="kernel"))
    (tmp_path / "shapes.py").write_text(_SHAPES.format("x", "y"))
    arguments = [sys.executable, "-c", "import fits"]
    started = [subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert {process.communicate()[0].split()[0] for process in started} == {"1"}
    assert said("import fits", environment) == ["1", "1"]
    assert not [path for path in (tmp_path / "__pycache__").iterdir() if ".tmp" in path.name]


def test_what_is_stale_is_pruned_and_what_others_wrote_is_not(tmp_path):
    now, then = "0" * 16, "f" * 16
    stale = [
        f"matching.match-{then}-{'1' * 24}.nbc",
        f"gone.gone-{then}-{'1' * 24}.nbc",
        "matching.match-100.py311.nbi",
    ]
    stale += ["matching.match-100.py311.1.nbc", f"matching.match_{then}_x-100.py311.1.nbc"]
    left = [
        f"matching.match-{now}-{'1' * 24}.nbc.0123456789abcdef.tmp",
        "matching.match-100.py311.nbi.tmp.0123456789abcdef",
    ]
    good = [f"matching.match-{now}-{'1' * 24}.nbc", f"matching.match_{now}_x-100.py311.nbi", "overlap.cpython-311.pyc"]
    for name in (*stale, *left, *good):
        (tmp_path / name).touch()
    _numba._prune(tmp_path, now, "matching.other")
    assert len(list(tmp_path.iterdir())) == len(stale + left + good), "a plug-in prunes its own files alone"
    _numba._prune(tmp_path, now, None)
    assert {path.name for path in tmp_path.iterdir()} == {*left, *good}, "another process may be writing those"
    for name in left:
        os.utime(tmp_path / name, (time.time() - 7200,) * 2)
    _numba._prune(tmp_path, now, None)
    assert {path.name for path in tmp_path.iterdir()} == {*good}


def test_very_many_files_of_a_kernel_are_cut_to_the_newest(tmp_path):
    names = [f"matching.match-{'0' * 16}-{i:024x}.nbc" for i in range(_numba._MOST + 5)]
    for age, name in enumerate(names):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - 100 * age,) * 2)
    _numba._prune(tmp_path, "0" * 16, None)
    assert {path.name for path in tmp_path.iterdir()} == set(names[: _numba._MOST])


@compiled
@tricks
def test_code_with_checked_indices_is_kept_apart(tmp_path, environment):
    """Settings of numba that change the machine code are part of what a file is found by."""
    (tmp_path / "reads.py").write_text(
        "import numpy as np\nfrom detmap.kernels import kernel\n@kernel\ndef read(a, i):\n    return a[i]\n"
        "print(read(np.zeros(9)[:2], 1))\n"
        "try:\n    read(np.zeros(9)[:2], 5)\nexcept IndexError:\n    print('checked')\n"
    )
    plain, checked = {**environment, "NUMBA_BOUNDSCHECK": "0"}, {**environment, "NUMBA_BOUNDSCHECK": "1"}
    assert [said("import reads", kind) for kind in (plain, checked, plain)] == [["0.0"], ["0.0", "checked"], ["0.0"]]
    assert len(list((tmp_path / "__pycache__").glob("*.nbc"))) == 2


_COUNTS = """
import warnings, sys
warnings.simplefilter("ignore")
import numba, numpy as np
{}
from detmap.kernels import _numba, matching, readonly, KERNELS
out = np.zeros((2, 64), np.int64)
matching.count_bits(readonly([0, 1, 3], np.int64), readonly([[3], [1], [5]], np.uint64), out)
assert out[:, :3].tolist() == [[1, 1, 0], [2, 0, 1]], out
print(_numba.is_plain())
"""
_NAMES = [
    "numba.core.compiler.CompileResult._reduce",
    "numba.core.compiler.CompileResult._rebuild",
    "numba.core.serialize.dumps",
    "numba.core.codegen.CPUCodegen.magic_tuple",
    "numba.core.codegen.CPUCodeLibrary._get_module_for_linking",
    "numba.core.runtime._nrt_python.c_helpers",
    "llvmlite.binding.add_symbol",
    "numba.core.cpu.CPUTargetOptions.forceinline",
]


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("name", _NAMES)
def test_without_a_private_name_kernels_still_score(tmp_path, environment, monkeypatch, name):
    """Removed in numba itself, before anything of detmap is imported: twice, so that the cache is read as well."""
    owner, _, gone = name.rpartition(".")
    remove = f"import llvmlite.binding, numba.core.cpu, numba.core.codegen, numba.core.runtime._nrt_python\ndel {name}"
    if gone == "forceinline":  # taken up by the class's own making: what is left is that nobody finds it
        remove = remove.replace("del", "#").replace("import", f"import numba.core.cpu; {owner} = object\nimport", 1)
    if gone == "dumps":  # the compiler itself cannot do without
        remove = "import numba.core.serialize, types; numba.core.serialize = types.ModuleType('serialize')"
    if gone in ("c_helpers", "add_symbol"):  # numba itself needs these, but not where detmap looks them up
        remove = f"import numba.core.cpu, numba.core.runtime._nrt_python\nnumba.njit(lambda: np.zeros(3))()\n{remove}"
    monkeypatch.delenv("DETMAP_PLAIN_NUMBA", raising=False)
    if gone == "_get_module_for_linking":  # neither can the compiler, which finds it in a class below
        of = "numba.core.codegen.{}CodeLibrary." + gone
        remove = f"import numba.core.codegen\n{of.format('JIT')} = {of.format('CPU')}\ndel {of.format('CPU')}"
    expected = gone != "forceinline" or _numba.is_plain.__wrapped__()
    for _ in range(2):
        assert said(_COUNTS.format(remove), environment, NUMBA_CACHE_DIR=str(tmp_path)) == [str(expected)]


@pytest.mark.parametrize(("version", "plain"), [((0, 59), True), ((0, 60), False), ((0, 68), False), ((0, 69), True)])
def test_private_names_are_used_in_known_versions_alone(monkeypatch, version, plain):
    monkeypatch.delenv("DETMAP_PLAIN_NUMBA", raising=False)
    monkeypatch.setattr("numba.version_info", type("Version", (), {"short": version}))
    assert _numba.is_plain.__wrapped__() is plain
    monkeypatch.setenv("DETMAP_PLAIN_NUMBA", "1")
    assert _numba.is_plain.__wrapped__() is True


def test_numbas_own_cache_is_stamped_and_forgiving(own, monkeypatch):
    """In this process: found again, damage compiled anew, a failure to write said once, a missing folder too."""
    monkeypatch.setattr(_numba, "is_plain", lambda: True)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(own))
    assert [_doubled(), _doubled()] == [0, 1]
    function = kernel(_double)
    KERNELS.pop()
    assert _numba.is_kept(function)
    assert function.__qualname__ == "_double"
    function.recompile()
    for suffix, size in (("nbi", 20), ("nbi", 0), ("nbc", 99), ("nbc", None)):
        (path,) = own.rglob(f"*.{suffix}")
        if size is None:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:size])
        assert [_doubled(), _doubled()] == [0, 1], (suffix, size)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    for path in own.rglob("*.nbi"):
        path.unlink()
    with pytest.warns(_numba.CacheWarning, match=r"cannot be kept in .*: No space left on device") as caught:
        assert [_doubled(), _doubled()] == [0, 0]
    assert len(caught) == 1
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    monkeypatch.setattr(_numba, "_said", [])
    with pytest.warns(_numba.CacheWarning, match="no locator"):
        assert _doubled() == 0


@tricks
def test_a_cache_can_be_switched_off_emptied_and_asked(own, monkeypatch):
    """As numba's dispatchers do with theirs."""
    function, out = kernel(_double), np.zeros(1, np.int64)
    KERNELS.pop()
    assert not _numba.is_kept(function)
    function._cache.disable()
    function(readonly([1], np.int64), out)
    assert not own.exists()
    function._cache.enable()
    function.recompile()
    assert _numba.is_kept(function)
    assert function.stats.cache_path == str(own)
    function._cache.flush()
    assert list(own.iterdir()) == []
    monkeypatch.setattr(_numba.SourceCache, "_stamp", lambda self, anew=False: "0" * 16 if anew else "1" * 16)
    assert _doubled() == 0
    assert list(own.iterdir()) == [], "sources that changed under a running process are not what it compiled"


def test_where_the_cache_lies(tmp_path, monkeypatch):
    folders = _numba._folders.__wrapped__
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert [path.parent for path in folders(Path("/a/kernels"))] == [tmp_path]
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", str(tmp_path))
    assert [path.parent for path in folders(Path("/a/kernels"))] == [Path("/a/kernels"), tmp_path / "detmap"]
    monkeypatch.setattr(_numba, "_folders", lambda home: (tmp_path / "file" / "a", tmp_path / "b"))
    (tmp_path / "file").touch()
    assert _numba.writable_folder() == tmp_path / "b"
    monkeypatch.setattr(_numba, "_folders", lambda home: (tmp_path / "file" / "a",))
    with pytest.raises(OSError, match=r"Not a directory|cannot find") as raised:
        _numba.writable_folder()
    assert raised.value.filename == str(tmp_path / "file" / "a")


_STEP, _TABLE, _PARTS = 3, np.arange(3), (1, 2.5, "x")


def test_what_a_function_uses_is_what_its_code_names():
    """Numbers, arrays, tuples, functions and attributes of modules; not what numpy and the library hold."""

    def inner():
        return _double(_TABLE, _PARTS)

    def outer(x):
        return x + _STEP + pkgutil.iter_modules + inner() + cli.main + Path.cwd() + np.pi

    text = repr(list(_numba._uses(outer, (), set())))
    for found in ("'3'", "'2.5'", "'_TABLE'", "'_double'", "detmap.cli", "'main'"):
        assert found in text, found
    assert "numpy" not in text
    assert "pathlib" not in text
