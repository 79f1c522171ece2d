"""What `--resume` goes by: the code that scores, and not the version."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest
from batches import TRUTH, counting, run, variants

import detmap
from detmap.batch import stamps

HOME = Path(detmap.__file__).parent


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the package, which the digests are made of; a function that makes them anew."""
    folder = tmp_path / "copy"
    shutil.copytree(HOME, folder, ignore=shutil.ignore_patterns("__pycache__", "*.nbc", "*.nbi"))
    monkeypatch.setattr(detmap, "__file__", str(folder / "__init__.py"))

    def both():
        stamps._own.cache_clear()
        return stamps.code(confidence=False), stamps.code(confidence=True)

    yield folder, both
    stamps._own.cache_clear()


@pytest.mark.parametrize(
    ("place", "scores", "confidence"),
    [
        ("kernels/curves.py", True, True),
        ("formats/coco/read.py", True, True),
        ("batch/scoring.py", True, True),
        ("a_new_file.py", True, True),
        ("statistics/draws.py", False, True),
        ("kernels/resampling.py", False, True),
        ("cli/output.py", False, False),
        ("pycocotools/coco.py", False, False),
        ("retrieval/metrics.py", False, False),
        ("batch/leaderboard.py", False, False),
        ("reports/page.py", False, False),
    ],
)
def test_which_files_change_the_digests(copied, place, scores, confidence):
    folder, both = copied
    before = both()
    assert both() == before
    with open(folder / place, "a") as file:
        file.write("\n# another line\n")
    assert [one != other for one, other in zip(both(), before, strict=True)] == [scores, confidence]


def test_a_package_without_sources_goes_by_its_version(copied, monkeypatch):
    folder, both = copied
    shutil.rmtree(folder)
    folder.mkdir()
    before = both()
    monkeypatch.setattr(detmap, "__version__", "0.0.1")
    assert both() != before


@pytest.mark.slow
def test_what_scores_imports_nothing_that_is_apart():
    """Otherwise a change there could change a score, and nobody would score anew. (A plot is drawn of scores.)"""
    apart = [place.removesuffix(".py").strip("/").replace("/", ".") for place in stamps._APART if place != "plots.py"]
    for path in sorted(HOME.rglob("*.py")):
        place = path.relative_to(HOME).as_posix()
        if place.startswith((*stamps._APART, "batch/", "__init__.py", "__main__.py")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("detmap"):
                names = {f"{node.module}.{alias.name}".removeprefix("detmap.") for alias in node.names}
                assert not [name for name in names for part in apart if f"{name}.".startswith(f"{part}.")], (
                    place,
                    names,
                )


@pytest.mark.compiled
def test_resume_goes_by_the_code_and_not_by_the_version(tmp_path, capsys, monkeypatch):
    [path] = variants(tmp_path / "runs", 1)
    arguments = ["batch", TRUTH, path, "--out", tmp_path / "out", "--resume"]
    assert run(capsys, *arguments)[0] == 0
    read = counting(monkeypatch)
    monkeypatch.setattr(detmap, "__version__", "9.9.9")
    assert run(capsys, *arguments)[0] == 0
    assert read == []
    monkeypatch.setattr(stamps, "_own", lambda confidence: "another")
    assert run(capsys, *arguments)[0] == 0
    assert read == [path.name]
