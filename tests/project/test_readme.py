"""What the README and the pages of docs/ show is what the program prints."""

import importlib
import shutil
from pathlib import Path

import executed
import pytest
from executed import ROOT
from workloads import REAL_DATA

import detmap
from detmap import cli, retrieval
from detmap.checks import CODES
from detmap.data.notices import NOTICES
from detmap.decisions import decisions_of

README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
SHOWING = [path for path in (README, *PAGES) if executed.blocks_of(path.read_text(encoding="utf-8"))]

#: Files of ../shared/data that a page works with: it is run where they are.
REAL = {
    "voc2007.md": ("voc2007/Annotations.tar.gz", "voc2007/detections_a.tar.gz"),
    "panoptic.md": tuple(f"panoptic/real_{name}" for name in ("gt.json", "gt", "pred.json", "pred")),
}


@pytest.mark.compiled
@pytest.mark.parametrize(
    "page",
    [pytest.param(one, marks=pytest.mark.real_data if one.name in REAL else ()) for one in SHOWING],
    ids=lambda page: page.name,
)
def test_what_a_page_shows_is_what_is_printed(page, monkeypatch, tmp_path):
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    for name in REAL.get(page.name, ()):
        if (REAL_DATA / name).is_dir():
            shutil.copytree(REAL_DATA / name, tmp_path / Path(name).name)
        else:
            shutil.copy(REAL_DATA / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = executed.blocks_of(page.read_text(encoding="utf-8"))
    assert executed.run(page) == sum(block.run for block in blocks)


def test_every_command_is_named():
    text = "".join(page.read_text(encoding="utf-8") for page in (README, *PAGES))
    assert "`detmap warm`" in README.read_text(encoding="utf-8")
    assert [name for name in cli._HOMES if f"detmap {name}" not in text] == []


def test_pages_made_from_declarations_hold_all_of_them(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "docs")
    decided = importlib.import_module("decided")
    decided.write(tmp_path)
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    made = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    for names, page in (
        ([*detmap.PRESETS, *decisions_of(detmap.Protocol)], "protocols"),
        ([*retrieval.CONVENTIONS, *decisions_of(retrieval.Convention)], "conventions"),
        ([metric.name for metric in retrieval.METRICS], "metrics"),
        (NOTICES, "notices"),
        (CODES, "checks"),
    ):
        affecting = [name for name in names if name not in ("name", "formula", "users")]  # these decide nothing
        assert [name for name in affecting if f"`{name}`" not in made[page]] == []
        assert f"_made/{page}.md" in text


def test_the_readme_shows_boxes_masks_and_poses_first():
    shown = README.read_text(encoding="utf-8").partition("## ")[0]
    commands = [line for block in executed.blocks_of(shown) if block.run for line in block.text.splitlines()]
    kinds = [line.partition("--iou-type ")[2] for line in commands if line.startswith("$ detmap eval")]
    assert kinds == ["", "segm", "keypoints"]


@pytest.mark.parametrize(
    ("page", "what"),
    [
        ("```console\n$ detmap protocols\nnothing like this\n```", "shown:"),
        ("```python\n1 + 1  # 3\n```", "is 2, not 3"),
        ("```python\n0.5  # 0.51\n```", "is 0.5, not 0.51"),
        ("```python\nprint(1)\n```", "printed, and not shown"),
        ("```python\nprint(1)\n```\n```text\n2\n```", "shown:"),
        ("<!-- not run: no files -->\n```console\n$ detmap eval gt.json dt.json --iou-kind segm\n```", "no command"),
        ("<!-- not run: no files -->\n```console\n$ detmap evaluate gt.json dt.json\n```", "no command"),
    ],
)
def test_a_page_that_shows_something_else_fails(page, what, tmp_path):
    path = tmp_path / "page.md"
    path.write_text(page + "\n")
    with pytest.raises(AssertionError, match=what):
        executed.run(path)


def test_a_line_of_an_ellipsis_stands_for_any_lines():
    for printed in ("a\nz\n", "a\nb\nc\nz\n"):
        executed.assert_shown("a\n…\nz\n", printed, "")
    with pytest.raises(AssertionError):
        executed.assert_shown("a\n…\nz\n", "a\nz\nb\n", "")
