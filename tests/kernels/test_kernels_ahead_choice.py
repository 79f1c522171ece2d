"""Which kernels a process takes: the object's where it fits, numba's where it is refused, and what is said of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from detmap.errors import OptionError
from detmap.kernels import _ahead

ROOT = Path(__file__).resolve().parents[2]
COCO = [str(ROOT / "fixtures/coco" / name) for name in ("ground_truth.json", "detections.json")]
OBJECT = _ahead.chosen().object
PATH = Path(OBJECT.path if OBJECT else "")

pytestmark = pytest.mark.skipif(OBJECT is None, reason="kernels are not compiled ahead of time")

#: Ends in what says where kernels come from, for commands that run in this process.
_SHOW = "import detmap.kernels as k; print(k._OBJECT and 'ahead')"

#: Begins a process in which numba is not installed.
_WITHOUT = "import sys; sys.modules['numba'] = None; "

_COMMAND = "import sys; from detmap.__main__ import run; sys.argv[1:] = {!r}; raise SystemExit(run())"


@pytest.fixture
def package(tmp_path):
    """A copy of the package with the object for this processor alone, and the path of that."""
    shutil.copytree(ROOT / "detmap", tmp_path / "detmap", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "detmap" / "kernels" / "ahead" / PATH.name
    for other in path.parent.iterdir():
        if other.stem != path.stem:
            other.unlink()
    return path


def run(path, *words, **environment):
    """What a process says that imports the package of the object in `path`."""
    kept = {name: value for name, value in os.environ.items() if name not in (*_ahead._OTHER_CODE, "DETMAP_KERNELS")}
    given = {"PYTHONPATH": str(path.parents[3]), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, *words],
        env={**kept, **given},
        capture_output=True,
        text=True,
        check=False,
        cwd=path.parents[3],
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def describe_again(path):
    """Give an object that was changed the checksum that it has now."""
    described = path.with_suffix(".txt")
    content = path.read_bytes()
    lines = [line for line in described.read_text().splitlines() if not line.startswith("object ")]
    described.write_text("\n".join([f"object {len(content)} {zlib.crc32(content):08x}", *lines]))


def cut(path):
    path.write_bytes(path.read_bytes()[:-4096])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


def foreign(path):
    path.write_bytes(b"\x7fELF of another machine" * 100)
    describe_again(path)


def library_of_others(path):
    import _ctypes

    shutil.copy(_ctypes.__file__, path)
    describe_again(path)


def edit(path):
    with open(path.parents[1] / "words.py", "a") as source:
        source.write("# another line\n")


def remove_source(path):
    (path.parents[1] / "words.py").rename(path.parents[1] / "other_words.py")


def lose_description(path):
    path.with_suffix(".txt").unlink()


def halve_description(path):
    path.with_suffix(".txt").write_text("object\n")


def misread_description(path):
    path.with_suffix(".txt").write_bytes(b"\xff\xfe" * 9)


REFUSED = {
    cut: "is damaged: install detmap again",
    flip: "is damaged: install detmap again",
    empty: "is damaged: install detmap again",
    foreign: "cannot be loaded: ",
    library_of_others: "cannot be loaded: ",
    edit: "was built from another words.py: scripts/build-kernels builds it again",
    remove_source: "cannot be checked: ",
    lose_description: "cannot be checked: ",
    halve_description: "is damaged: install detmap again",
    misread_description: "cannot be checked: ",
}


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_an_object_that_does_not_fit_is_refused_in_one_line_and_numba_takes_over(change, package):
    change(package)  # without which it is taken: the settings below
    show = f"import warnings; warnings.showwarning = lambda text, *_: print(text)\n{_SHOW}"
    code, out, err = run(package, "-c", show)
    said = out.splitlines()
    assert (code, said[-1], err) == (0, "None", "")
    (line,) = said[:-1]
    assert line.startswith(f"{package} {REFUSED[change]}")
    assert line.endswith("; numba compiles the kernels instead")
    # The same where nothing else would do: an error.
    code, out, err = run(package, "-c", _COMMAND.format(["eval", *COCO]), DETMAP_KERNELS="ahead")
    assert (code, out, err.count("\n")) == (2, "", 0)
    assert err.startswith(f"detmap: error: DETMAP_KERNELS=ahead: {package} {REFUSED[change]}")
    if change is edit:
        code, out, err = run(package, "-c", _WITHOUT + _COMMAND.format(["eval", *COCO]))
        assert (code, out, err.count("\n")) == (2, "", 0)
        assert err.endswith("and numba, which compiles it, is not installed: pip install 'detmap-eval[jit]'")


def test_without_an_object_numba_compiles_and_nothing_is_said(package):
    shutil.rmtree(package.parent)
    assert run(package, "-c", _SHOW) == (0, "None", "")
    code, out, err = run(package, "-c", _WITHOUT + _COMMAND.format(["eval", *COCO]))
    assert (code, out, err.count("\n")) == (2, "", 0)
    platform = package.stem.rpartition("-")[0]
    assert (
        f": this installation has no compiled kernels for {platform}, and numba, which compiles it, is not inst" in err
    )
    code, out, err = run(package, "-c", _COMMAND.format(["eval", *COCO]), DETMAP_KERNELS="ahead")
    assert (code, out) == (2, "")
    assert err == f"detmap: error: DETMAP_KERNELS=ahead: there is no object for {platform} in {package.parent}"


def test_what_needs_numba_says_so_where_it_is_not_installed():
    """Kernels of plug-ins, arguments of other types, and all kernels where a setting asks for numba."""
    plug_in = "from detmap.kernels import kernel\n@kernel\ndef one(x):\n    return x\n"
    other = "from detmap.kernels import words\nimport numpy as np\nwords.survey(np.zeros(9), 0, 1, 0, False)"
    for program, error in (
        (f"{plug_in}one(1)", "KernelError: kernel __main__.one: numba, which compiles it, is not installed: "),
        (
            other,
            "TypeError: kernel words.survey: argument 1 has another dtype; a C-contiguous array of uint8 with 1 dim",
        ),
    ):
        code, out, err = run(PATH, "-c", f"{_WITHOUT}\n{program}")
        assert (code, out) == (1, "")
        assert error in err.splitlines()[-1]
    code, out, err = run(PATH, "-c", _WITHOUT + _COMMAND.format(["eval", *COCO]), DETMAP_KERNELS="jit")
    assert (code, out, err.count("\n")) == (2, "", 0)
    assert ": numba, which compiles it, is not installed: pip install -e " in err


@pytest.mark.parametrize(
    ("settings", "source"),
    [
        ({}, "ahead"),
        ({"DETMAP_KERNELS": "ahead"}, "ahead"),
        ({"DETMAP_KERNELS": "jit"}, "None"),
        ({"NUMBA_DISABLE_JIT": "0"}, "ahead"),
        *(({name: "1"}, "None") for name in _ahead._OTHER_CODE),
        *(({name: "1", "DETMAP_KERNELS": "ahead"}, "None") for name in _ahead._OTHER_CODE),
    ],
)
def test_settings_say_where_kernels_come_from(settings, source, package):
    assert run(package, "-c", _SHOW, **settings) == (0, source, "")


def test_numba_that_was_told_to_interpret_is_asked():
    program = f"import numba; numba.config.DISABLE_JIT = 1; {_SHOW}"
    assert run(PATH, "-c", program) == (0, "None", "")


def test_a_setting_that_is_no_choice(monkeypatch):
    code, out, err = run(PATH, "-c", _COMMAND.format(["eval", *COCO]), DETMAP_KERNELS="fast")
    assert (code, out, err) == (2, "", "detmap: error: DETMAP_KERNELS=fast: it is 'ahead' or 'jit'")
    monkeypatch.setenv("DETMAP_KERNELS", "")
    for name in _ahead._OTHER_CODE:
        monkeypatch.delenv(name, raising=False)
    assert _ahead._choice() == ""
    monkeypatch.setenv("DETMAP_KERNELS", "AHEAD")
    with pytest.raises(OptionError):
        _ahead._choice()


def test_without_numba_everything_is_scored():
    with_numba = run(PATH, "-c", _COMMAND.format(["eval", *COCO, "--format", "json"]))
    without = run(PATH, "-c", _WITHOUT + _COMMAND.format(["eval", *COCO, "--format", "json"]))
    assert with_numba[0] == 0
    assert without == with_numba


def test_the_best_object_for_the_processor_is_taken(monkeypatch, tmp_path):
    """Of several levels the highest that it has; where it has none of them that is said."""
    monkeypatch.setattr(_ahead, "_folder", lambda: tmp_path)
    assert _ahead._load() is None
    beginning = PATH.stem[:-1]
    for level in (2, 3, 4):
        shutil.copy(PATH, tmp_path / f"{beginning}{level}{PATH.suffix}")
        shutil.copy(PATH.with_suffix(".txt"), tmp_path / f"{beginning}{level}.txt")
    shutil.copy(PATH, tmp_path / f"plan9-x86_64-v2{PATH.suffix}")
    for level in (2, 3, 4):
        monkeypatch.setattr(_ahead.Object, "level", lambda found, level=level: level)
        assert Path(_ahead._load().path).stem == f"{beginning}{level}"
    monkeypatch.setattr(_ahead.Object, "level", lambda found: 1)
    assert _ahead._load().endswith("needs a processor of level x86-64-v2, this one has v1")
    monkeypatch.setattr(_ahead.Object, "level", lambda found: 4)
    for level in (3, 4):  # what is wrong with an object is no reason to refuse another one
        (tmp_path / f"{beginning}{level}.txt").write_text("object 1 00000000\n")
    assert Path(_ahead._load().path).stem == f"{beginning}2"
    (tmp_path / f"{beginning}2.txt").unlink()
    assert "cannot be checked" in _ahead._load()


def test_the_level_of_the_processor_is_that_of_the_system():
    flags = Path("/proc/cpuinfo")
    if not flags.is_file():
        pytest.skip("the system has no such names")
    words = set(next(line for line in flags.read_text().splitlines() if line.startswith("flags")).split())
    needed = {
        2: "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
        3: "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
        4: "avx512f avx512bw avx512cd avx512dq avx512vl avx512_vpopcntdq",
    }
    level = 1
    while level < 4 and set(needed[level + 1].split()) <= words:
        level += 1
    assert OBJECT.level() == level


def test_warm_has_nothing_to_do_and_the_version_says_what_is_in_use():
    code, out, err = run(PATH, "-c", _COMMAND.format(["warm"]))
    assert (code, err) == (0, "")
    assert out.startswith(f"Nothing to do: {PATH} holds all kernels")
    code, out, err = run(PATH, "-c", _COMMAND.format(["--version", "--verbose"]))
    line = f"kernels: {PATH}, compiled ahead of time by numba {OBJECT.built_with('numba')} for "
    line += OBJECT.built_with("processor")
    assert (code, err) == (0, "")
    assert line in out.splitlines()
    code, out, err = run(PATH, "-c", _COMMAND.format(["--version", "--verbose"]), DETMAP_KERNELS="jit")
    assert f"kernels: numba {_ahead.numba_version()} compiles them" in out.splitlines()
