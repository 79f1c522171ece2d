"""The leaderboard's page, opened in a real browser: it sorts, shows differences, asks for nothing, and names are text."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
import time
from dataclasses import replace

import browser
import numpy as np
import pytest

from detmap.errors import MissingDependencyError
from detmap.installation import install_command
from detmap.reports import charts
from detmap.reports import leaderboard as report

HOSTILE = "<img src=x onerror=document.title='owned'></script><script>document.title='owned'</script>{{7*7}}\u2028\"'&`"
ROWS = [
    {"rank": 1, "model": "b", "group": "a", "AP": 0.75, "AP50": 0.25},
    {"rank": 2, "model": HOSTILE, "group": "ab", "AP": 0.5, "AP50": 0.875},
    {"rank": 3, "model": "10", "group": "b", "AP": 0.0625, "AP50": 0.5},
    {"rank": "", "model": "c", "group": "", "AP": math.nan, "AP50": math.nan},
]
RECALL = np.linspace(0, 1, 101).tolist()
BOARD = report.Board(
    rank_by="AP",
    rows=ROWS,
    metrics=["AP", "AP50"],
    intervals=[{"AP": [0.7, 0.8]}, {"AP": [0.4, 0.55], "AP50": [0.8, 0.9]}, {"AP": [None, None]}, {}],
    errors=[{"model": "c", "error": "c.json: is not valid JSON " + HOSTILE}],
    notices=[{"model": HOSTILE, "notice": "1 detection " + HOSTILE}],
    models=["b", HOSTILE, "10"],
    categories=["cat", HOSTILE, "dog", "rare"],
    values=[[0.5, 0.25, 0.75, math.nan], [0.75, 0.25, 0.125, math.nan], [0.0, 0.5, 0.25, 0.5]],
    objects=[1200, 3, 40, 1],
    curves=[{"iou": 0.5, "recall": RECALL, "precision": [height] * 101} for height in (1.0, 0.9, 0.8)],
    facts=[("Protocol", "coco " + HOSTILE), ("Images", "60")],
    files=[{"model": "b", "file": HOSTILE, "content": "sha256:0"}],
    sentences=["group: " + HOSTILE],
    links={"b": "reports/b.html"},
    brief=["coco " + HOSTILE, "4 models · 2026-01-02 03:04 UTC"],
    doubts=[
        {
            "order": f"b above {HOSTILE}",
            "holds under": "30 of 31",
            "smallest change that ends it": "max_dets 1",
        }
    ],
)


@pytest.fixture(scope="module")
def html():
    return report.html(BOARD)


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
    text = f"r.cells[{index}].firstChild?.textContent ?? ''"
    return page.evaluate(f"[...document.querySelector('#{table}').tBodies[0].rows].map(r => {text})")


def click(page, table, index):
    page.evaluate(f"document.querySelector('#{table}').tHead.rows[0].cells[{index}].querySelector('button').click()")


def shown(name):
    return name.replace("\u2028", "\\u2028")


def test_sorts_by_any_column_and_leaves_the_undefined_last(page):
    assert column(page, "models", 3) == ["0.7500", "0.5000", "0.0625", "–"]
    click(page, "models", 5)
    assert column(page, "models", 5) == ["0.8750", "0.5000", "0.2500", "–"]
    click(page, "models", 5)
    assert column(page, "models", 5) == ["0.2500", "0.5000", "0.8750", "–"]
    assert page.evaluate("document.querySelector('#models th[aria-sort]').textContent") == "AP50"
    click(page, "models", 1)
    assert column(page, "models", 1) == ["10", shown(HOSTILE), "b", "c"]
    click(page, "models", 4)  # bars of intervals, by their values
    assert column(page, "models", 1) == ["b", shown(HOSTILE), "10", "c"]
    click(page, "models", 0)
    assert column(page, "models", 0) == ["1", "2", "3", ""]


def test_values_have_their_intervals_and_the_best_of_a_column_is_marked(page):
    best = "[...document.querySelectorAll('#models td strong')].map(one => one.parentNode.textContent)"
    assert sorted(page.evaluate(best)) == ["0.7500", "0.8750"]
    titles = "[...document.querySelectorAll('#models td strong')].map(one => one.parentNode.title)"
    assert sorted(page.evaluate(titles)) == ["0.7000 – 0.8000", "0.8000 – 0.9000"]
    bars = page.evaluate("[...document.querySelectorAll('#models .range .fill')].map(b => b.getAttribute('x'))")
    assert len(bars) == 2  # one model has no interval, one no value


def test_rows_are_one_line_and_all_models_are_in_sight(page):
    page.look(1440, "light")
    heights = page.evaluate("[...document.querySelectorAll('#models tbody tr')].map(row => row.offsetHeight)")
    assert max(heights) < 40
    table = "document.querySelector('#models').parentNode"
    assert page.evaluate(f"{table}.scrollHeight <= {table}.clientHeight + 20")


def test_rules_date_and_reports_of_models(page):
    assert page.evaluate("[...document.querySelectorAll('.brief')].map(one => one.textContent)")[1].endswith(
        "03:04 UTC"
    )
    links = "[...document.querySelectorAll('#models tbody a')].map(a => [a.textContent, a.getAttribute('href')])"
    assert page.evaluate(links) == [["b", "reports/b.html"]]


def test_rows_are_filtered_columns_chosen_and_what_is_shown_saved(page):
    """A Blob is made of what is shown, instead of a file; names are quoted in CSV."""
    page.evaluate("URL.createObjectURL = (blob) => { window.saved = blob; return '#'; }")
    rows = "[...document.querySelectorAll('#models tbody tr:not([hidden])')].length"
    save = "(document.querySelector('button[data-as=FORM]').click(), window.saved.text())"
    records = json.loads(page.evaluate(save.replace("FORM", "json")))
    assert {one["model"]: one["AP"] for one in records} == {"b": 0.75, shown(HOSTILE): 0.5, "10": 0.0625, "c": None}
    found = list(csv.DictReader(io.StringIO(page.evaluate(save.replace("FORM", "csv")))))
    assert {one["model"]: one["AP50"] for one in found} == {"b": "0.25", shown(HOSTILE): "0.875", "10": "0.5", "c": ""}
    page.evaluate("filter.value = 'onerror'; filter.dispatchEvent(new Event('input'))")
    assert (page.evaluate(rows), page.evaluate("document.querySelector('#count').textContent")) == (1, "1 of 4")
    columns = "[...document.querySelectorAll('.columns label')].find(l => l.textContent.trim() === 'AP50').control"
    page.evaluate(f"{columns}.click()")
    assert json.loads(page.evaluate(save.replace("FORM", "json"))) == [
        {"rank": 2, "model": shown(HOSTILE), "group": "ab", "AP": 0.5}
    ]
    assert page.evaluate("document.querySelector('#models thead th:nth-child(6)').hidden")
    page.evaluate(f"{columns}.click(); filter.value = ''; filter.dispatchEvent(new Event('input'))")
    assert page.evaluate(rows) == 4


def test_groups_are_letters_that_stand_below_each_other(page):
    places = page.evaluate(
        "[...document.querySelectorAll('#models .slots')].flatMap(s => [...s.querySelectorAll('.on')]"
        ".map(o => [o.textContent, Math.round(o.getBoundingClientRect().left)]))"
    )
    assert sorted({letter for letter, _ in places}) == ["a", "b"]
    assert len({tuple(one) for one in places}) == 2
    assert len(places) == 4


def test_all_letters_of_groups_are_in_sight(page):
    """Of 27 models there were 15 letters, of which the column cut off five."""
    page.look(1440, "light")
    page.evaluate(
        "{ const slots = document.querySelector('#models .slots');"
        "for (let i = 0; i < 14; i++) { const one = slots.lastChild.cloneNode(); one.className = 'on planted';"
        "one.textContent = 'x'; slots.append(one); } }"
    )
    right = "document.querySelector('{}').getBoundingClientRect().right".format
    assert page.evaluate(f"{right('#models td.group')} >= {right('.planted:last-child')}")
    page.evaluate("document.querySelectorAll('.planted').forEach((one) => one.remove())")


def test_names_of_models_stay_in_sight(page):
    page.look(390, "light")
    page.evaluate("document.querySelector('#models').parentNode.scrollLeft = 1000")
    head = "document.querySelector('#models tbody th').getBoundingClientRect()"
    assert page.evaluate(f"{head}.left >= 0 && {head}.right < innerWidth / 2")
    page.evaluate("document.querySelector('#models').parentNode.scrollLeft = 0")


def test_shows_the_differences_of_two_models(page):
    assert column(page, "categories", 0) == ["dog", shown(HOSTILE), "cat", "rare"]
    assert column(page, "categories", 1) == ["40", "3", "1,200", "1"]
    assert column(page, "categories", 4) == ["+0.6250", "0.0000", "-0.2500", "–"]
    assert page.evaluate("said.textContent").startswith("b has a higher AP in 1 of 4 categories, and a lower one in 1")
    widths = page.evaluate("[...document.querySelectorAll('.delta rect:last-child')].map(r => r.getAttribute('width'))")
    assert list(map(float, widths)) == [50, 20]
    page.evaluate("first.value = 2; first.dispatchEvent(new Event('change'))")
    assert column(page, "categories", 0) == ["cat", "dog", shown(HOSTILE), "rare"]
    assert column(page, "categories", 4) == ["+0.5000", "+0.5000", "-0.2500", "–"]
    assert column(page, "categories", 2)[3] == "0.5000"
    click(page, "categories", 4)
    assert column(page, "categories", 4) == ["-0.2500", "+0.5000", "+0.5000", "–"]


def test_curves_are_chosen_and_put_back(page):
    chosen = "[...document.querySelectorAll('path.chosen title')].map(t => t.textContent)"
    chips = "[...document.querySelectorAll('.chips button')].map(b => b.textContent)"
    every = ["b: AP 0.7500", f"{shown(HOSTILE)}: AP 0.5000", "10: AP 0.0625"]
    assert page.evaluate(chosen) == every
    assert page.evaluate(chips) == [f"{one} ×" for one in every]
    page.evaluate("document.querySelector('.chips button').click()")
    assert page.evaluate(chosen) == every[1:]
    page.evaluate(
        "{ const s = document.querySelector('figure select'); s.value = 0; s.dispatchEvent(new Event('change')); }"
    )
    assert page.evaluate(chosen) == [*every[1:], every[0]]
    page.evaluate("document.querySelector('path.thin').dispatchEvent(new Event('pointerenter'))")
    assert page.evaluate("document.querySelector('figure output').textContent") == every[1]
    colours = "new Set([...document.querySelectorAll('path.chosen')].map(p => getComputedStyle(p).stroke)).size"
    assert page.evaluate(colours) == 3


@pytest.mark.parametrize(("width", "scheme"), browser.LOOKS)
def test_nothing_sticks_out_at_any_width(page, width, scheme):
    page.look(width, scheme)
    page.keep(f"leaderboard-{width}-{scheme}")
    assert page.evaluate(browser.OVERFLOW) == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_no_barrier(page, width, scheme):
    """Nothing at all, such as text that is hard to read against what is behind it."""
    pytest.importorskip("axe_core_python")
    page.look(width, scheme)
    assert page.barriers(f"leaderboard-{width}-{scheme}") == []


def test_what_is_printed_is_light_and_whole(page):
    page.look(1120, "dark")
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.call("Emulation.setEmulatedMedia", media="print", features=features)
    assert page.evaluate(browser.OVERFLOW) == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.call("Emulation.setEmulatedMedia", media="")


def test_names_are_text(page):
    assert shown(HOSTILE) in column(page, "models", 1)
    assert shown(HOSTILE) in page.evaluate("[...first.options].map(o => o.textContent)")
    for place in ("dd.error", "dd.notice", "#evaluated dd", "#files ~ .wide td.text:nth-child(2)", "#survival td"):
        assert shown(HOSTILE) in page.evaluate(f"document.querySelector('{place}').textContent")
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.evaluate("document.title") == "Leaderboard by AP"


def test_what_readers_of_screens_and_keyboards_need(page):
    every = {
        "headers say what they head": "[...document.querySelectorAll('th')].every((one) => one.scope)",
        "charts have words": "[...document.querySelectorAll('svg')].every((one) => one.ariaHidden || one.ariaLabel || "
        "one.getAttribute('aria-labelledby').split(' ').every((id) => document.getElementById(id).textContent.trim()))",
        "what scrolls can be reached": "[...document.querySelectorAll('.wide')].every((one) => one.tabIndex === 0)",
        "lists have labels": "[...document.querySelectorAll('select')].every((one) => one.labels.length)",
        "links lead somewhere": "[...document.querySelectorAll('nav a')].every((one) => document.querySelector(one.hash))",
        "no id twice": "new Set([...document.querySelectorAll('[id]')].map((one) => one.id)).size === "
        "document.querySelectorAll('[id]').length",
    }
    assert [name for name, script in every.items() if not page.evaluate(script)] == []


def test_no_request_but_for_itself_and_no_complaint(page):
    assert [url for url in page.requests if not url.endswith("/leaderboard.html")] == []
    assert page.logged == []


def test_no_other_script_may_run(page):
    made = "document.createElement('script')"
    page.evaluate(f"{{ const s = {made}; s.textContent = \"document.title='owned'\"; document.body.append(s); }}")
    assert page.evaluate("document.title") == "Leaderboard by AP"
    page.logged.clear()
    page.evaluate("document.querySelectorAll('script')[2].remove()")


def test_curves_are_drawn_to_their_ends():
    for one in report._curves(BOARD).lines:
        ends = [float(point.split()[0]) for point in re.split("[ML]", one["path"])[1:]]
        assert ends[0] == charts.LEFT
        assert ends[-1] == charts.LEFT + charts.WIDTH


def test_refers_to_nothing_outside(html):
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert HOSTILE not in html


# ---------------------------------------------------------------------------------------------------------- what it says


@pytest.mark.parametrize("rows", [[], ROWS[:1]])
def test_few_models(rows):
    made = report.html(report.Board("AP", rows, models=["b"][: len(rows)], categories=["cat"], values=[[0.5]]))
    assert "Differences" not in made
    assert "Not scored" not in made
    assert ("No model has a value." in made) == (not rows)


@pytest.mark.parametrize(("letters", "title"), [(24, ""), (25, "x" * 25)])
def test_names_that_a_column_cuts_off_are_titles(letters, title):
    assert report._cell("x" * letters, True, False)["title"] == title
    assert report._cell("x" * letters, False, False)["title"] == ""


def test_what_is_said_first(html):
    assert "b has the highest AP of 3: 0.7500 (95 % interval 0.7000 to 0.8000)." in html
    assert "It cannot be told apart from &lt;img" in html
    assert "Of 2 orders of neighbours 1 does not survive other rules." in html
    alone = [{**ROWS[0], "group": "c"}, *ROWS[1:]]
    assert "It is above every other model by more than chance." in report.html(replace(BOARD, rows=alone))
    equal = [ROWS[0], {**ROWS[1], "AP": 0.75}, *ROWS[2:]]
    assert "2 models share the highest AP of 3: 0.7500" in report.html(replace(BOARD, rows=equal))
    assert "Every order of neighbours survives" in report.html(replace(BOARD, doubts=[]))
    assert "neighbours" not in report.html(replace(BOARD, doubts=None))


def test_so_many_groups_that_letters_take_two_characters():
    letters = [chr(97 + k) for k in range(26)] + ["aa", "zab"]
    rows = [{"rank": k + 1, "model": f"m{k}", "group": one, "AP": 0.5 - k / 100} for k, one in enumerate(letters)]
    made = report.html(replace(BOARD, rows=rows))
    assert 'class="slots"' not in made
    assert ">zab</td>" in made


@pytest.mark.parametrize(
    ("ends", "axis"),
    [([], None), ([0.31, 0.49], (0.3, 0.5)), ([0.0, 1.0], (0, 1)), ([0.4, 0.4], (0.4, 0.4)), ([0.41, 0.44], (0.41, 0.44))],
)  # fmt: skip
def test_the_axis_of_intervals_ends_at_round_numbers(ends, axis):
    found = report._axis(ends)
    assert found == (axis and pytest.approx(axis, abs=0.001))
    assert not ends or found[0] <= min(ends) <= max(ends) <= found[1]


def test_hundreds_of_models_and_many_classes_stay_small():
    """500 models and 80 classes with curves in two megabytes; of 1,203 classes those of the best models."""
    count, classes = 500, 80
    rng = np.random.default_rng(0)
    values = -np.sort(-rng.random(count))
    made = replace(
        BOARD,
        rows=[{"rank": k + 1, "model": f"model {k}", "AP": v, "AP50": v} for k, v in enumerate(values.tolist())],
        intervals=[{"AP": [v * 0.9, v]} for v in values.tolist()],
        models=[f"model {k}" for k in range(count)],
        categories=[f"class {k}" for k in range(classes)],
        objects=[7] * classes,
        values=rng.random((count, classes)).tolist(),
        curves=[{"iou": 0.5, "recall": RECALL, "precision": np.sort(rng.random(101))[::-1].tolist()}] * count,
    )
    begin = time.process_time()
    text = report.html(made)
    assert time.process_time() - begin < 20
    assert len(text.encode()) < 2_000_000
    assert "The 200 best models with a curve are here." in text
    many = replace(made, categories=["c"] * 1203, objects=[1] * 1203, values=rng.random((count, 1203)).tolist())
    text = report.html(many)
    assert len(text.encode()) < 3_000_000
    assert "376 models further down have no row here" in text


def test_markdown():
    text = report.markdown(ROWS[:2], BOARD.errors, "AP", doubts=BOARD.doubts)
    assert "<img" not in text
    assert "## Not scored" in text
    assert "## Orders that do not survive" in text
    lines = text.splitlines()
    assert lines[0] == "# Leaderboard by AP"
    assert len([line for line in lines if line.startswith("| ")]) == 10


def test_without_jinja2(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingDependencyError, match=re.escape(install_command("report"))):
        report.html(BOARD)


def test_long_names_are_cut_in_the_middle():
    """Runs of one model differ at the end of their names."""
    page = report.html(report.Board("AP", [{"model": "resnet50_fpn_3x_run_01"}, {"model": "a"}]))
    assert '<span class="cut"><span>resnet50_fpn_3</span><span>x_run_01</span></span>' in page
    assert ">a</th>" in page


@pytest.mark.slow
def test_the_least_error_is_the_best():
    """Of nuScenes' errors the smallest is marked, and those of single classes are columns to choose."""
    rows = [
        {"model": "a", "mAP": 0.5, "mATE": 0.25, "ATE_car": 0.75},
        {"model": "b", "mAP": 0.4, "mATE": 0.375, "ATE_car": 1},
    ]
    curve = {"iou": 0.5, "recall": [0, 1], "precision": [1, 0.5]}
    board = report.Board(
        "mAP", rows, ["mAP", "mATE"], models=["a", "b"], curves=[curve, curve], iou_type="centre-distance"
    )
    page = report.html(board)
    assert re.findall(r'<strong title="the best of its column">([\d.]+)<', page) == ["0.5000", "0.2500"]
    assert re.findall(r"data-aside><button>(\w+)<", page) == ["ATE_car"]
    assert "Precision and recall at centre-distance 0.5 m" in page
