"""Reports on detectors and on rankings, opened in a real browser: how they look, that all can use them, what they never do.

Pictures of the pages, and what axe finds, are kept in build/pages.
"""

from __future__ import annotations

import browser
import pytest
from pages import HOSTILE, hostile_files, hostile_runs

import detmap
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


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), browser.LOOKS)
def test_nothing_sticks_out_at_any_width(page, written, width, scheme):
    page.look(width, scheme)
    page.keep(f"{written.stem}-{width}-{scheme}")
    assert page.evaluate(browser.OVERFLOW) == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")


@pytest.mark.slow
def test_the_check_of_overflow_finds_a_planted_one(page):
    page.look(390, "light")
    page.evaluate(
        "{ const p = document.createElement('p'); p.id = 'planted'; p.style.width = '500px'; document.body.append(p); }"
    )
    assert page.evaluate(browser.OVERFLOW)
    page.evaluate("document.getElementById('planted').remove()")
    assert page.evaluate(browser.OVERFLOW) == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_no_barrier(page, written, width, scheme):
    """Nothing at all, such as text that is hard to read against what is behind it."""
    pytest.importorskip("axe_core_python")
    page.look(width, scheme)
    assert page.barriers(f"{written.stem}-{width}-{scheme}") == []


@pytest.mark.slow
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
    breaks = "[...document.querySelectorAll(WHAT)].every((one) => getComputedStyle(one).breakAfter === 'avoid')"
    assert page.evaluate(breaks.replace("WHAT", "'h2, .lead, .of-block'"))  # no heading is the last on a sheet
    inside = "[...document.querySelectorAll(WHAT)].map((one) => getComputedStyle(one).breakInside)"
    assert set(
        page.evaluate(
            inside.replace("WHAT", "'.block:has(tbody tr:nth-child(25)):not(:has(.heat)), .block:has(.gallery)'")
        )
    ) <= {"auto"}
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
        f"{{ const s = {figure}.querySelector('select.one'); s.selectedIndex = 1; s.dispatchEvent(new Event('change')); }}"
    )
    label = page.evaluate(f"{figure}.querySelector('path.chosen title').textContent")
    assert ": AP 0." in label
    assert page.evaluate(f"{figure}.querySelector('output').textContent") == label
    page.evaluate(f"{figure}.querySelector('path.thin:not(.chosen)').dispatchEvent(new Event('pointerenter'))")
    assert page.evaluate(f"{figure}.querySelector('output').textContent") not in ("", label)


def show(page, selector):
    """Follow a link to pictures, and return how many are shown and what is drawn in front on each."""
    page.evaluate(f"document.querySelector({selector!r}).click()")
    figures = "[...document.querySelectorAll('.gallery.filtered figure:not([hidden])')]"
    marks = "[...one.querySelectorAll('path.box:not(.dim)')].map((mark) => ({...mark.dataset}))"
    return page.evaluate(f"{figures}.map((one) => ({{cells: (one.dataset.cells || '').split(' '), marks: {marks}}}))")


def test_links_lead_to_the_pictures_of_an_error_a_class_and_a_cell(page, written):
    """Each picture that is left is an example, and there are fewer than before."""
    if written.stem != "report":
        return
    page.look(1280, "light")
    every = page.evaluate("document.querySelectorAll('.gallery.filtered figure').length")
    found = show(page, "#errors a[data-show='error=Loc']")
    assert 0 < len(found) < every
    assert all(one["marks"] and {mark["e"] for mark in one["marks"]} == {"Loc"} for one in found)
    found = show(page, "#ap a[data-show='class=2']")
    assert 0 < len(found) < every
    assert all(one["marks"] and all("2" in (mark["o"], mark["f"]) for mark in one["marks"]) for one in found)
    cell = page.evaluate("document.querySelector('#confusion .heat a').dataset.show").partition("=")[2]
    found = show(page, f"#confusion a[data-show='cell={cell}']")
    assert all(cell in one["cells"] for one in found)
    assert found
    said = page.evaluate("document.querySelector('form.filters output').textContent")
    assert " of " in said
    page.evaluate("document.querySelector('form.filters [type=reset]').click()")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert page.evaluate("document.querySelector('form.filters output').textContent") == f"{every} pictures"


def test_pictures_are_filtered_by_score_and_size_and_enlarged(page, written):
    if written.stem != "report":
        return
    field = "document.querySelector('form.filters').elements"
    change = "dispatchEvent(new Event('input', {bubbles: true}))"
    page.evaluate(f"{{ const s = {field}.score; s.value = 0.5; s.{change}; }}")
    marks = "[...document.querySelectorAll('.filtered figure:not([hidden]) path.box:not(.dim)')]"
    assert page.evaluate(f"{marks}.length > 0 && {marks}.every((one) => Number(one.dataset.s) >= 0.5)")
    page.evaluate(f"{{ const s = {field}.size; s.value = 's'; s.{change}; }}")
    assert page.evaluate(f"{marks}.every((one) => one.dataset.z === 's' && Number(one.dataset.s) >= 0.5)")
    page.evaluate("document.querySelector('form.filters [type=reset]').click()")
    figure = "document.querySelector('.gallery figure')"
    page.evaluate(f"{figure}.querySelector('button').click()")
    assert page.evaluate(
        f"{figure}.querySelectorAll('.marks li').length === {figure}.querySelectorAll('path.box').length"
    )
    page.evaluate(f"{figure}.querySelector('button').click()")
    assert page.evaluate(f"{figure}.querySelector('.marks')") is None


def test_curves_at_another_threshold(page, written):
    if written.stem != "report":
        return
    figure = "document.querySelector('#curves figure')"
    before = page.evaluate(f"{figure}.querySelector('path.main').getAttribute('d')")
    choose = "s.dispatchEvent(new Event('change'))"
    page.evaluate(f"{{ const s = {figure}.querySelector('.variant'); s.value = '0.75'; {choose}; }}")
    result = detmap.evaluate(written.parent / "truth.json", written.parent / "<i>before&.json")
    label = page.evaluate(f"{figure}.querySelector('path.main title').textContent")
    assert label == f"mean: AP {result['AP75']:.3f}"
    assert page.evaluate(f"{figure}.querySelector('path.main').getAttribute('d')") != before
    page.evaluate(f"{{ const s = {figure}.querySelector('.variant'); s.value = '0.5'; {choose}; }}")


def test_tables_are_searched(page, written):
    tools = "document.querySelector('.tools:has(input[type=search])')"
    if not page.evaluate(f"{tools} !== null"):
        assert written.stem == "report"
        return
    rows = f"[...{tools}.parentNode.querySelectorAll('tbody tr')]"
    search = f"{{ const s = {tools}.querySelector('input'); s.value = WORD; s.dispatchEvent(new Event('input')); }}"
    page.evaluate(search.replace("WORD", f"{rows}[0].cells[0].textContent"))
    shown = page.evaluate(f"{rows}.filter((row) => !row.hidden).length")
    assert 0 < shown < page.evaluate(f"{rows}.length")
    page.evaluate(search.replace("WORD", "''"))
    assert page.evaluate(f"{rows}.every((row) => !row.hidden)")


def test_navigation_stays_in_sight(page):
    seen = "(({top, bottom}) => top >= 0 && bottom <= innerHeight + 1)"
    for width in (1440, 390):
        page.look(width, "light")
        page.evaluate("scrollTo(0, 3000)")
        assert page.evaluate(f"{seen}(document.querySelector('nav').getBoundingClientRect())")
    page.evaluate("scrollTo(0, 0)")


@pytest.mark.slow
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
