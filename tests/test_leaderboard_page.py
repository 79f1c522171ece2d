"""The leaderboard's page, opened in a real browser: it sorts, shows differences, asks for nothing, and names are text."""

from __future__ import annotations

import math
import sys

import browser
import pytest

from detmap.errors import MissingDependencyError
from detmap.report import leaderboard as report

HOSTILE = "<img src=x onerror=document.title='owned'></script><script>document.title='owned'</script>{{7*7}}\u2028\"'&`"
ROWS = [
    {"rank": 1, "model": "b", "group": "a", "AP": 0.75, "AP50": 0.25},
    {"rank": 2, "model": HOSTILE, "group": "ab", "AP": 0.5, "AP50": 0.875},
    {"rank": 3, "model": "10", "group": "b", "AP": 0.0625, "AP50": 0.5},
    {"rank": "", "model": "c", "group": "", "AP": math.nan, "AP50": math.nan},
]
MODELS = ["b", HOSTILE, "10"]
CATEGORIES = ["cat", HOSTILE, "dog", "rare"]
VALUES = [[0.5, 0.25, 0.75, math.nan], [0.75, 0.25, 0.125, math.nan], [0.0, 0.5, 0.25, 0.5]]
ERRORS = [{"model": "c", "error": "c.json: is not valid JSON " + HOSTILE}]


@pytest.fixture(scope="module")
def html():
    return report.html(ROWS, ERRORS, "AP", MODELS, CATEGORIES, VALUES)


@pytest.fixture(scope="module")
def page(html, tmp_path_factory):
    if not browser.CHROMIUM:
        pytest.skip("no Chromium is installed")
    folder = tmp_path_factory.mktemp("page")
    (folder / "leaderboard.html").write_text(html, "utf-8")
    page = browser.Page((folder / "leaderboard.html").as_uri(), folder / "profile")
    yield page
    page.close()


def column(page, table, index):
    return page.evaluate(
        f"[...document.querySelector('#{table}').tBodies[0].rows].map(r => r.cells[{index}].textContent)"
    )


def click(page, table, index):
    page.evaluate(f"document.querySelector('#{table}').tHead.rows[0].cells[{index}].querySelector('button').click()")


def shown(name):
    return name.replace("\u2028", "\\u2028")


def test_sorts_by_any_column_and_leaves_the_undefined_last(page):
    assert column(page, "models", 3) == ["0.7500", "0.5000", "0.0625", "–"]
    click(page, "models", 4)
    assert column(page, "models", 4) == ["0.8750", "0.5000", "0.2500", "–"]
    click(page, "models", 4)
    assert column(page, "models", 4) == ["0.2500", "0.5000", "0.8750", "–"]
    assert page.evaluate("document.querySelector('#models th[aria-sort]').textContent") == "AP50"
    click(page, "models", 1)
    assert column(page, "models", 1) == ["10", shown(HOSTILE), "b", "c"]
    click(page, "models", 0)
    assert column(page, "models", 0) == ["1", "2", "3", ""]


def test_shows_the_differences_of_two_models(page):
    assert column(page, "categories", 0) == ["dog", shown(HOSTILE), "cat", "rare"]
    assert column(page, "categories", 3) == ["+0.6250", "0.0000", "-0.2500", "–"]
    page.evaluate("first.value = 2; first.dispatchEvent(new Event('change'))")
    assert column(page, "categories", 0) == ["cat", "dog", shown(HOSTILE), "rare"]
    assert column(page, "categories", 3) == ["+0.5000", "+0.5000", "-0.2500", "–"]
    assert column(page, "categories", 1)[3] == "0.5000"
    click(page, "categories", 3)
    assert column(page, "categories", 3) == ["-0.2500", "+0.5000", "+0.5000", "–"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", browser.WIDTHS)
def test_nothing_sticks_out_at_any_width(page, width, scheme):
    page.look(width, scheme)
    assert page.evaluate(browser.OVERFLOW) == []


def test_names_are_text(page):
    assert shown(HOSTILE) in column(page, "models", 1)
    assert shown(HOSTILE) in page.evaluate("[...first.options].map(o => o.textContent)")
    assert shown(HOSTILE) in page.evaluate("document.querySelector('td.error').textContent")
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.evaluate("document.title") == "Leaderboard by AP"


def test_no_request_but_for_itself_and_no_complaint(page):
    assert [url for url in page.requests if not url.endswith("/leaderboard.html")] == []
    assert page.logged == []


def test_no_other_script_may_run(page):
    made = "document.createElement('script')"
    page.evaluate(f"{{ const s = {made}; s.textContent = \"document.title='owned'\"; document.body.append(s); }}")
    assert page.evaluate("document.title") == "Leaderboard by AP"
    page.logged.clear()
    page.evaluate("document.querySelectorAll('script')[2].remove()")


def test_refers_to_nothing_outside(html):
    assert "http" not in html.replace("http-equiv", "")
    assert HOSTILE not in html


@pytest.mark.parametrize("rows", [[], ROWS[:1]])
def test_few_models(rows):
    made = report.html(rows, [], "AP", MODELS[: len(rows)], CATEGORIES, VALUES[: len(rows)])
    assert "Differences" not in made
    assert "Not scored" not in made


def test_markdown():
    text = report.markdown(ROWS[:2], ERRORS, "AP")
    assert "<img" not in text
    assert "## Not scored" in text
    lines = text.splitlines()
    assert lines[0] == "# Leaderboard by AP"
    assert len([line for line in lines if line.startswith("| ")]) == 7


def test_without_jinja2(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingDependencyError, match=r"detmap\[report\]"):
        report.html(ROWS, [], "AP", MODELS, CATEGORIES, VALUES)
