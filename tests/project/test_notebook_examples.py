"""The notebooks of docs/notebooks show what their cells give."""

from __future__ import annotations

import importlib
import json
import re
import shutil

import pytest
from executed import ROOT

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


@pytest.fixture
def run_notebooks(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("run_notebooks")


@pytest.mark.compiled
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_its_cells_give(path, run_notebooks, monkeypatch, tmp_path):
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)
    shown = json.loads(path.read_text("utf-8"))
    assert any(cell.get("outputs") for cell in shown["cells"])
    made = json.loads(json.dumps(run_notebooks.run(path)))
    for cell, expected in zip(made["cells"], shown["cells"], strict=True):
        assert cell == expected, "scripts/run_notebooks.py writes the outputs anew"


def test_a_cell_that_shows_something_else_differs(run_notebooks):
    shown = run_notebooks.cell_outputs("print('a')\n2 + 2", {}, 1)
    assert [one["output_type"] for one in shown] == ["stream", "execute_result"]
    assert shown[1]["data"] == {"text/plain": ["4"]}
    assert run_notebooks.cell_outputs("x = 1", {}, 1) == []


def test_the_site_shows_every_cell(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "docs")
    importlib.import_module("decided").write(tmp_path)
    page = (ROOT / "docs/notebooks.md").read_text("utf-8")
    for path in NOTEBOOKS:
        assert f"_made/notebook-{path.stem}.md" in page
        made = (tmp_path / f"notebook-{path.stem}.md").read_text("utf-8")
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            text = "".join(cell["source"])
            assert (re.sub(r"^#", "##", text, flags=re.M) if cell["cell_type"] == "markdown" else text) in made
