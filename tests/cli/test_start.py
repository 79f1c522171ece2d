"""What starting takes: which modules a command loads, so that none comes in unforeseen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import detmap

ROOT = Path(detmap.__file__).parent.parent

#: Stands for numba, whose modules would hide those that detmap loads itself; kernels are interpreted then.
STAND_IN = """
import importlib.machinery, sys, types
def stand_in(name, **names):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
    vars(sys.modules[name]).update(names)
class Listening:
    __init__ = __enter__ = __exit__ = lambda *_: None
stand_in("llvmlite", __version__="0")
stand_in(
    "numba",
    __version__="0",
    version_info=types.SimpleNamespace(short=(0, 0)),
    config=types.SimpleNamespace(DISABLE_JIT=1, CACHE_DIR=""),
    njit=lambda function=None, **_: function or (lambda function: function),
)
stand_in("numba.core")
stand_in("numba.core.event", Listener=object, install_listener=Listening)
"""

#: Modules that scoring boxes needs, and all that these load.
NEEDED = ("argparse", "concurrent.futures.thread", "contextlib", "dataclasses", "gettext", "json", "locale", "msgspec")
NEEDED += ("gc", "numbers", "numpy", "numpy.typing", "platform", "signal", "textwrap")

#: Modules that compiling kernels, and finding compiled ones, needs.
OF_KERNELS = ("hashlib", "importlib.util", "numpy.ma", "pathlib", "pickle", "uuid", "zlib")

#: Folders of detmap that scoring the boxes of COCO's files needs; their files may import each other.
OWN = ("cli", "data", "detection", "formats", "kernels", "reading", "shapes", "system")


def modules(code: str) -> set[str]:
    """Return the modules that are loaded once `code` has run in a process of its own."""
    code += "\nimport sys; print('loaded:', *sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("loaded:")[2].split())


@pytest.fixture
def pair(tmp_path):
    box = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 4, 4]}
    document = {
        "images": [{"id": 1}],
        "categories": [{"id": 1, "name": "one"}],
        "annotations": [{**box, "id": 1, "area": 16, "iscrowd": 0}],
    }
    (tmp_path / "truth.json").write_text(json.dumps(document))
    (tmp_path / "found.json").write_text(json.dumps([{**box, "score": 0.5}]))
    return str(tmp_path / "truth.json"), str(tmp_path / "found.json")


def test_what_scoring_boxes_loads(pair):
    """A module that is not foreseen makes every start slower: list it if it is needed, or import it where it is."""
    run = f"sys.argv[1:] = ['eval', *{pair!r}]\nfrom detmap import __main__\nassert __main__.run() == 0"
    loaded = modules(STAND_IN + run)
    foreseen = modules("".join(f"import {name}\n" for name in NEEDED + OF_KERNELS))
    foreseen |= {name for name in loaded if name.partition(".")[0] in ("numba", "llvmlite")}
    own = {name for name in loaded if name.partition(".")[0] == "detmap"}
    assert sorted({name.split(".")[1] for name in own if name.count(".") > 1} - set(OWN)) == []
    assert sorted(loaded - foreseen - own) == []


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_what_takes_no_command_loads_no_numpy(word):
    run = f"sys.argv[1:] = [{word!r}]\nfrom detmap import __main__\ntry: __main__.run()\nexcept SystemExit: pass"
    loaded = modules("import sys\n" + run)
    assert loaded.isdisjoint(("numpy", "msgspec", "importlib.metadata", "email", "dataclasses", "tarfile"))
    commands = {name for name in loaded if name.startswith("detmap.cli.")}
    assert (
        commands <= {f"detmap.cli.{name}" for name in ("help", "inputs", "options", "output", "terminal", "versions")}
        or word == "--help"
    )


def test_blas_starts_threads_only_where_matrices_are_multiplied(pair):
    """And the setting is none of child processes."""
    code = (
        "from detmap import __main__, cli\ncli.main = lambda: print('NUMPY:', 'numpy' in sys.modules, end=' ') or 0\n"
    )
    code += "__main__.run()\nimport os; print('SET:', 'OPENBLAS_NUM_THREADS' in os.environ)"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    for words, alone in ((["eval", *pair], True), (["compare", *pair], False), (["--help"], False), ([], False)):
        given = f"import sys; sys.argv[1:] = {words!r}\n" + code
        command = [sys.executable, "-c", given]
        environment["PYTHONPATH"] = str(ROOT)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["NUMPY:", str(alone), "SET:", "False"]
