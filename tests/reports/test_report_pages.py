"""Reports on detectors and on rankings, opened in a real browser: how they look, that all can use them, what they never do.

Pictures of the pages, and what axe finds, are kept in build/pages.
"""

from __future__ import annotations

import browser
import pytest
from pages import HOSTILE, hostile_files, hostile_runs

from detmap import cli

#: The files of each kind of page, and the words of the command that come first.
KINDS = {"report": (hostile_files, []), "report-rankings": (hostile_runs, ["--trec"])}


@pytest.fixture(scope="module", params=list(KINDS))
def written(request, tmp_path_factory):
    """A page about two models, as the command writes it."""
    folder = tmp_path_factory.mktemp("page")
    files, flags = KINDS[request.param]
    out = folder / f"{request.param}.html"
    tests = [] if flags else ["--permutations", 200]
    words = ["report", *flags, *files(folder), "--out", out, "--bootstrap", 200, *tests, "--quiet"]
    assert cli.main(list(map(str, words))) == 0
    return out


@pytest.fixture(scope="module")
def page(written, tmp_path_factory):
    if not browser.CHROMIUM:
        pytest.skip("no Chromium is installed")
    page = browser.Page(written.as_uri(), tmp_path_factory.mktemp("profile"))
    yield page
    page.close()


# -------------------------------------------------------------------------------------------------------------- in a browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", browser.WIDTHS)
def test_nothing_sticks_out_at_any_width(page, written, width, scheme):
    page.look(width, scheme)
    page.keep(f"{written.stem}-{width}-{scheme}")
    assert page.evaluate(browser.OVERFLOW) == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")


def test_the_check_of_overflow_finds_a_planted_one(page):
    page.look(390, "light")
    page.evaluate(
        "{ const p = document.createElement('p'); p.id = 'planted'; p.style.width = '500px'; document.body.append(p); }"
    )
    assert page.evaluate(browser.OVERFLOW)
    page.evaluate("document.getElementById('planted').remove()")
    assert page.evaluate(browser.OVERFLOW) == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_no_barrier(page, written, width, scheme):
    """Nothing serious or critical, such as text that is hard to read against what is behind it."""
    pytest.importorskip("axe_core_python")
    page.look(width, scheme)
    assert page.barriers(f"{written.stem}-{width}-{scheme}") == []


def test_axe_finds_a_planted_barrier(page):
    pytest.importorskip("axe_core_python")
    plant = (
        "const p = document.createElement('p'); p.id = 'planted'; p.style.color = '#ddd'; p.textContent = 'pale words';"
    )
    page.look(1280, "light")
    page.evaluate(f"{{ {plant} document.querySelector('main').prepend(p); }}")
    found = page.barriers("planted", "'#planted'")
    page.evaluate("document.getElementById('planted').remove()")
    assert [one.partition(":")[0] for one in found] == ["color-contrast (serious)"]


def test_what_is_printed_fits_a_page_and_is_light(page, written):
    page.look(794, "dark")
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.call("Emulation.setEmulatedMedia", media="print", features=features)
    assert page.evaluate(browser.OVERFLOW) == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.keep(f"{written.stem}-print")
    assert page.evaluate(
        "[...document.querySelectorAll('.wide')].every((one) => one.scrollHeight <= one.clientHeight + 1)"
    )
    page.call("Emulation.setEmulatedMedia", media="")


def test_no_request_but_for_itself_and_no_complaint(page, written):
    assert [url for url in page.requests if url != written.as_uri()] == []
    assert page.logged == []
    assert "http" not in written.read_text("utf-8").replace("http-equiv", "")


def test_names_are_text(page, written):
    assert page.evaluate("document.title") == "Report on <i>before&, after" + (
        " (bbox)" if written.stem == "report" else ""
    )
    assert page.evaluate("document.querySelectorAll('img, i, b').length") == 0
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    assert HOSTILE not in written.read_text("utf-8")
    name = HOSTILE.replace("\u2028", "\\u2028") + "person" if written.stem == "report" else HOSTILE.replace(" ", "/")
    assert name.replace("\u2028", "") in page.evaluate("document.body.textContent")


def test_tables_sort(page, written):
    table = "document.querySelector('#ap table')"
    if written.stem != "report":
        table = "document.querySelectorAll('#queries table')[1]"
    column = f"[...{table}.tBodies[0].rows].map((row) => row.cells[1].firstChild.textContent)"
    click = f"{table}.tHead.rows[0].cells[1].querySelector('button').click()"
    page.evaluate(click)
    found = list(map(int, page.evaluate(column)))
    assert found == sorted(found, reverse=True)
    page.evaluate(click)
    assert list(map(int, page.evaluate(column))) == sorted(found)
    assert page.evaluate(f"{table}.querySelector('th[aria-sort]').textContent") in ("objects", "queries")


def test_a_curve_is_chosen_from_a_list_and_by_pointing(page, written):
    if written.stem != "report":
        assert page.evaluate("document.querySelectorAll('#curves path.band title').length") == 0
        return
    figure = "document.querySelector('#curves figure')"
    assert page.evaluate(f"{figure}.querySelectorAll('path.chosen').length") == 0
    page.evaluate(
        f"{{ const s = {figure}.querySelector('select'); s.selectedIndex = 1; s.dispatchEvent(new Event('change')); }}"
    )
    label = page.evaluate(f"{figure}.querySelector('path.chosen title').textContent")
    assert ": AP 0." in label
    assert page.evaluate(f"{figure}.querySelector('output').textContent") == label
    page.evaluate(f"{figure}.querySelector('path.thin:not(.chosen)').dispatchEvent(new Event('pointerenter'))")
    assert page.evaluate(f"{figure}.querySelector('output').textContent") not in ("", label)


def test_what_readers_of_screens_and_keyboards_need(page):
    every = {
        "headers say what they head": "[...document.querySelectorAll('th')].every((one) => one.scope)",
        "charts have words": "[...document.querySelectorAll('svg')].every((one) => one.ariaHidden || one.ariaLabel || "
        "one.getAttribute('aria-labelledby').split(' ').every((id) => document.getElementById(id).textContent.trim()))",
        "what scrolls can be reached": "[...document.querySelectorAll('.wide')].every((one) => one.tabIndex === 0 && "
        "one.getAttribute('role') === 'region')",
        "lists have labels": "[...document.querySelectorAll('select')].every((one) => one.labels.length)",
        "links lead somewhere": "[...document.querySelectorAll('nav a')].every((one) => document.querySelector(one.hash))",
        "no id twice": "new Set([...document.querySelectorAll('[id]')].map((one) => one.id)).size === "
        "document.querySelectorAll('[id]').length",
        "headings go down by one": "[...document.querySelectorAll('h1, h2, h3, h4')].map((one) => +one.tagName[1])"
        ".every((level, i, all) => !i || level <= all[i - 1] + 1)",
    }
    assert [name for name, script in every.items() if not page.evaluate(script)] == []
