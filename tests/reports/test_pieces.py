"""The pieces that pages are made of, at both sides of every limit: tables, charts, verdicts, boards and pictures."""

from __future__ import annotations

import json
import math
from itertools import product
from types import SimpleNamespace

import kept
import numpy as np
import pytest

from detmap.reports import blocks, charts, galleries, leaderboard, pictures, tables
from detmap.results import to_csv, to_latex, to_markdown, to_text

NAN = math.nan


def lined(*made):
    return "".join(f"{one}\n" for one in made)


VALUES = [0, 1, -3, 12345, 0.0, -0.0, -0.00001, 0.5, 1.0, 1.25, 1e-9, 123456.789, NAN, "", "word", "w" * 23, "w" * 24,
          "w" * 60, "w" * 61, "two words\n", None, True]  # fmt: skip


def test_tables_have_every_kind_of_value():
    made = []
    for value, other in product(VALUES, (0.5, "text", NAN, None)):
        rows = [{"name": value, "p": other, "p corrected": 0.00001}]
        made.append(tables.table("a title", rows, bars={"p corrected": 2.0}, note="dAP: is this"))
        made += [
            tables._cell(value, isinstance(value, str), full, chance) for full in (None, 0.0, 1.0) for chance in (0, 1)
        ]
    kept.same("pieces/cells", lined(*made))


@pytest.mark.parametrize("length", range(60, 80))
def test_a_table_is_broad_from_66_characters_on_and_vast_from_76(length):
    """A column takes its widest text, at most 24 characters, and three more."""
    names = ["a" * 20, "b" * 20, "c" * 6, "d" * (length - 58)]
    made = tables.table("t", [dict.fromkeys(names, 1)])
    assert (made.broad, made.vast) == (length > 66, length > 76)


def test_tables_are_cut_sorted_linked_and_barred():
    rows = [{"name": f"n{at}", "of": -at if at % 3 else NAN, "count": at} for at in range(7)]
    links = {"name": {"n1": "class=1", "n9": "class=9"}, "no": {}}
    made = [
        tables.table("t", rows, most=most, worst=worst, bars=bars, queries=links, note=note)
        for most, worst, bars, note in (
            (3, "", None, ""),
            (7, "of", {"of": None, "count": 4.0}, "what this is"),
            (8, "count", {"of": 1.0, "count": None, "absent": 1.0}, "Is it?"),
        )
    ]
    made += [
        tables.table("none", [], bars={"a": None}, note="nothing"),
        tables.table("t", rows[:1], bars={"count": None}),
    ]
    made += [
        tables.sentence(text) for text in ("", "a", "dAP: x", "low, high: y.", "is it?", "x1 y", "Überall", "done!")
    ]
    kept.same("pieces/tables", lined(*made))


def test_curves_areas_bars_and_axes():
    x = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    ys = [x, 1 - x, np.where(x == 0.5, NAN, x), np.full(5, NAN), np.array([NAN, 0.5, NAN, 0.25, NAN]), x * 2 - 0.5]
    made = [charts.line(f"l\n{at}", x, y, "main") for at, y in enumerate(ys)]
    made += [charts.area(x, low, high, "c1") for low, high in product(ys, ys[:3])]
    made += [charts.area(x[:count], x[:count], x[:count] + 0.1, "thin") for count in range(3)]
    made += [list(map(ord, charts.heights(y[~np.isnan(y)]))) for y in ys]
    made += [
        charts.bar("b\n", *ends, value) for ends in ((0.0, 0.1), (0.5, 0.5), (0.2, 0.2065)) for value in (0.0, 0.3, 1.0)
    ]
    made += [charts.styles(count) for count in range(9)]
    made += [charts.across([0, 0.5, 1], "abc"), charts.up([0, 0.5, 1], "abc"), charts.Plot("t", "x", "y", "says")]
    kept.same("pieces/charts", lined(*made))


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6])
def test_confusion_as_a_heat_table(count):
    rng = np.random.default_rng(count)
    matrix = rng.integers(0, 4, (count + 1, count + 1)) * rng.integers(0, 600, (count + 1, count + 1))
    names = [f"class {at}\t" for at in range(count)]
    made = [charts.heat("t", names, matrix, most, {"0-1", "1-0"}, {"1-0": "img"}) for most in (2, 5, 24)]
    made.append(charts.heat("t", names, matrix * 0))
    kept.same(f"pieces/heat-{count}", lined(*made))


def test_confusion_of_more_than_12_columns_is_broad():
    broad = [charts.heat("t", ["a"] * count, np.eye(count + 1, dtype=int)).broad for count in (10, 11, 12, 13)]
    assert broad == [False, False, True, True]


def test_summaries_rows_and_verdicts_of_models():
    made = [
        blocks.summary("n", "AP", "0.5", ends, "why", level, about="x")
        for ends in ((0.1, 0.2), (NAN, NAN))
        for level in (0.9, 0.955)
    ]
    for values, ends, rises, top in product(
        ([0.5], [0.5, 0.25], [NAN, 0.5, 0.5], [NAN], [-0.5, 1.5], [0.0, 1.0], [40.0, 100.0]),
        ((0.1, 0.35), (NAN, NAN)),
        (True, False),
        (1, 100),
    ):
        made.append(blocks.metric_row("m\n", "of", values, [ends] * len(values), rises=rises, top=top))
    for difference, p, common, ends in product(
        (0.0, 0.25, -0.125, NAN), (0.05, 0.0500001, NAN), ("", " on both"), ((-0.25, 0.5), (NAN, NAN))
    ):
        one = blocks.Apart("a\n", "b", difference, *ends, p, common, (0.25, 0.5))
        made.append(blocks._verdict(one, "AP", 0.95, 0.05, "images"))
    rows = [{"a": 1}, {"a": 2}]
    blocks.mark_doubts(rows, [False, False])
    made.append(list(rows[0]))
    blocks.mark_doubts(rows, [False, True])
    made.append(rows)
    apart = [blocks.Apart("a", "b", 0.5, 0.25, 0.75, 0.01 * at) for at in range(8)]
    found = blocks.differences("AP", 0.9, 0.1, "images", apart, rows)
    made += found
    sections = [
        blocks.Section("differences", "D", "L", [("", [*found, blocks.Text("t")])]),
        blocks.Section("x", "X", "", []),
    ]
    made += blocks._verdicts(sections)
    made += blocks.side_by_side([[blocks.Section("s", "S", "L", [("m", [1])], {"e": [1, 2]})]])
    two = [
        [blocks.Section("s", "S", "L", [(name, [name])], filters)]
        for name, filters in (("a", {"e": [1, 2]}), ("b", {"e": [2, 3], "f": [4]}))
    ]
    made += [*blocks.side_by_side(two), blocks._all_filters([blocks.Section("s", "S", "L", [])])]
    made += [blocks.picked([{"a": 1, "b": 2}, {"a": 3}], ("b", "a"), a="first")]
    kept.same("pieces/blocks", lined(*made))


ROWS = [
    {"rank": at + 1, "model": f"model {at}", "group": "abcdefghijklmnopqrs"[at : at + 1 + at % 3], "AP": 0.9 - at / 20,
     "AP50": [0.5, NAN][at % 2], "mATE": at / 4, "AP bias": 0.01 * at, "notices": at % 2,
     "survives": ("yes", "no: x", "equal")[at % 3]}
    for at in range(19)
]  # fmt: skip


def board(count=3, **more):
    rows = ROWS[:count]
    names = [row["model"] for row in rows]
    curve = {"iou": 0.5, "recall": [0, 0.5, 1], "precision": [1, None, 0.25]}
    usual = {
        "rank_by": "AP", "rows": rows, "metrics": ["AP", "AP50", "mATE"], "models": names, "categories": ["cat", "dog\n"],
        "intervals": [{"AP": [row["AP"] - 0.03, row["AP"] + 0.02], "AP50": [None, NAN]} for row in rows[:-1]],
        "values": [[at / 7, NAN] for at in range(count)], "objects": [3, 1], "curves": [curve, None, curve][:count],
        "files": [{"model": name, "file": f"{name}.json", "content": "sha256:0"} for name in names], "title": "title",
        "facts": [("Protocol", "coco")], "sentences": ["One."], "links": {"model 1": "one.html"}, "brief": ["brief"],
    }  # fmt: skip
    return leaderboard.Board(**{**usual, **more})


BOARDS = {
    "usual": board(),
    "empty": leaderboard.Board("AP"),
    "one": board(1, doubts=[], intervals=[{"AP": [0.1, 0.9]}], title=""),
    "many": board(19, doubts=[{"order": "a above b"}], level=0.9),
    "sixteen letters": board(14, doubts=[{"order": "a above b"}, {"order": "b above c"}]),
    "equal": board(2, rows=[{**ROWS[0], "AP": 0.5, "group": "a"}, {**ROWS[1], "AP": 0.5, "group": "b"}], doubts=[]),
    "apart": board(
        2, rows=[{**ROWS[0], "group": "a"}, {**ROWS[1], "group": "b"}], iou_type="centre-distance", doubts=[]
    ),
    "alike": board(6, rows=[{**row, "group": "a"} for row in ROWS[:6]], objects=[]),
    "undefined": board(
        2, rows=[{**row, "AP": NAN} for row in ROWS[:2]], intervals=[], errors=[{"model": "x", "error": "y\n"}]
    ),
    "other kind": board(iou_type="unheard", notices=[{"model": "m", "notice": "n"}], of_category="F1"),
}


@pytest.mark.parametrize("name", BOARDS)
def test_a_leaderboard(name):
    pytest.importorskip("jinja2")
    one = BOARDS[name]
    text = leaderboard.html(one)
    data = text.partition('id="data">')[2].partition("</script>")[0]
    page = kept.outlined(text.partition('<script type="application/json"')[0])
    written = leaderboard.markdown(one.rows, one.errors, one.title or "AP", one.notices, one.doubts or ())
    kept.same(f"pieces/board-{name.replace(' ', '-')}", f"{page}\n{json.loads(data)}\n{written}")


def test_axes_of_leaderboards():
    ends = [0.0, 0.0005, 0.1, 0.124, 0.126, 0.3, 0.35, 0.625, 0.9, 0.999, 1.0]
    made = [f"{low} {high} {leaderboard._axis([low, high])}" for low, high in product(ends, ends) if low <= high]
    made += [
        leaderboard._bar(value, pair, (0.2, 0.8))
        for value in (0.1, 0.5, 0.9, NAN)
        for pair in ((0.3, 0.6), (0.0, 1.0), None)
    ]
    made += [
        leaderboard._bar(0.5, (0.5, 0.5), (0.5, 0.5)),
        leaderboard._axis([]),
        leaderboard.compared(0),
        leaderboard.compared(10**6),
    ]
    made += [leaderboard._letters(["abc" * 2, "defghijklmnop"[:count]]) for count in (0, 12, 13)]
    made += [leaderboard._letters(["abcdefghijklmnop"]), leaderboard._letters(["abcdefghijklmnopq"])]
    kept.same("pieces/axes", lined(*made))


TABLES = {
    "numbers": [{"name": "a", "value": 0.5, "count": 3}, {"name": "b|c_d", "value": NAN, "count": 1234}],
    "texts": [{"text": "x" * 40, "&": "100 % $x$ #1 {y} ~^\\"}, {"text": "two\nlines\t<b>", "&": ""}],
    "one": [{"only": -0.25}],
    "odd": [{"a": True, "b": None, "c": "=1+1", "d": 1e-12}, {"a": False, "b": 2, "c": 'say "so", ok', "d": -1e12}],
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables_as_text(name):
    rows = TABLES[name]
    made = [to_csv(rows), to_latex(rows), to_markdown(rows), to_markdown(rows, markup=True), to_text(rows)]
    kept.same(f"pieces/text-{name}", "\n".join(made))


# ------------------------------------------------------------------------------------------------------------- pictures


def naive_simpler(corners, tolerance):
    """The algorithm of Douglas and Peucker, by recursion over the two halves between the first corner and the farthest."""

    def between(line):
        if len(line) < 3:
            return line[1:-1]
        (x, y), (u, v) = line[0], line[-1]
        away = [
            abs((a - x) * (v - y) - (b - y) * (u - x)) / math.hypot(u - x, v - y)
            if (u, v) != (x, y)
            else math.hypot(a - x, b - y)
            for a, b in line[1:-1]
        ]
        at = away.index(max(away)) + 1
        if away[at - 1] <= tolerance:
            return []
        return [*between(line[: at + 1]), line[at], *between(line[at:])]

    ring = [tuple(one) for one in corners.tolist()]
    if len(ring) < 5:
        return ring
    far = max(range(len(ring)), key=lambda at: (ring[at][0] - ring[0][0]) ** 2 + (ring[at][1] - ring[0][1]) ** 2)
    return [ring[0], *between(ring[: far + 1]), *([ring[far]] if far else []), *between([*ring[far:], ring[0]])]


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 6, 9, 30, 80])
@pytest.mark.parametrize("tolerance", [0.0, 1.0, 2.5, 20.0])
def test_outlines_are_simplified_as_by_recursion(size, tolerance):
    rng = np.random.default_rng(size)
    turn = np.sort(rng.random(size)) * 2 * math.pi
    round_ = np.stack([np.cos(turn), np.sin(turn)], axis=1) * 25 + rng.integers(-2, 3, (size, 2))
    for corners in (round_.round(), rng.integers(0, 6, (size, 2)).astype(float), np.repeat(round_[:1], size, axis=0)):
        assert [tuple(one) for one in pictures._simpler(corners, tolerance).tolist()] == naive_simpler(
            corners, tolerance
        )


@pytest.mark.parametrize(
    ("box", "size", "part"),
    [
        ((50, 60, 70, 90), (200, 300), (10, 20, 100, 110)),
        ((50, 60, 130, 90), (200, 300), (0, 0, 200, 170)),
        ((50.5, 60.25, 70.5, 90.75), (500, 500), (10, 20, 101, 111)),
        ((0, 0, 5, 5), (10, 10), (0, 0, 10, 10)),
        ((-90, 500, -80, 520), (100, 100), (0, 99, 1, 1)),
        ((150, 150, 160, 160), (100, 100), (99, 99, 1, 1)),
        ((150, 110, 190, 150), (151, 111), (110, 70, 41, 41)),
        ((0, 0, 0, 0), (1, 0), (0, 0, 1, 1)),
    ],
)
def test_the_surroundings_of_a_box(box, size, part):
    assert pictures._around(box, *size) == part


def test_pixels_of_an_image_for_each_of_its_thumbnail():
    grains = [
        pictures.Thumbnail("", size, (0, 0, width, 9)).grain
        for size, width in (((440, 1), 880), ((440, 1), 100), ((0, 0), 3))
    ]
    assert grains == [2.0, 1.0, 3.0]


def test_thumbnails_are_as_large_as_allowed(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name, size in (("wide", (880, 100)), ("high", (30, 880)), ("small", (20, 10))):
        image.new("RGBA", size, (1, 2, 3, 255)).save(tmp_path / f"{name}.png")
    found = pictures.Pictures(tmp_path)
    made = {name: pictures.thumbnail(found.find(name)) for name in ("wide", "high", "small")}
    assert {name: (one.size, one.view) for name, one in made.items()} == {
        "wide": ((440, 50), (0, 0, 880, 100)), "high": ((15, 440), (0, 0, 30, 880)), "small": ((20, 10), (0, 0, 20, 10)),
    }  # fmt: skip
    part = pictures.thumbnail(found.find("wide"), (400, 20, 410, 30))
    assert (part.size, part.view) == ((90, 70), (360, 0, 90, 70))
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    notes = pictures.Notes()
    assert notes.said() == []
    assert [notes.counted(found.find(name)) is None for name in ("wide", "none", "broken", "../wide.png", "a/wide.png")] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert notes.bytes == 3 * len(made["wide"].uri)
    assert notes.said() == ["1 of these images are not in the folder of images.", "1 of these images cannot be read."]
    assert found.find("x" * 5000) is None
    assert found.find("a\0b") is None


@pytest.mark.parametrize(
    ("size", "corners", "shown", "view"),
    [
        ((100, 200), [[1, 2, 3, 4]], (440, 220), (0, 0, 200, 100)),
        ((200, 100), [], (220, 440), (0, 0, 100, 200)),
        ((10, 1000), [], (440, 73), (0, 0, 1000, 10)),
        ((1000, 10), [], (73, 440), (0, 0, 10, 1000)),
        ((0, 100), [[1.25, 2.04, 11.25, 22.04], [5, 1, 6, 2]], (209, 440), (1.2, 1.0, 10.0, 21.04)),
        ((100, 0), [[1, 2, 3, 4], [np.inf, 0, 1, 1], [0, np.nan, 1, 1]], (440, 440), (1, 2, 2, 2)),
        (None, [[0, 0, 2, 1]], (440, 220), (0, 0, 2, 1)),
        (None, [], (440, 440), (0, 0, 0.001, 0.001)),
        (None, [[3, 3, 3, 3]], (440, 440), (3, 3, 0.001, 0.001)),
        ((0.5, 0.25), [], (220, 440), (0, 0, 0.25, 0.5)),
    ],
)
def test_drawings_without_an_image_have_its_size_or_that_of_the_marks(size, corners, shown, view):
    sizes = None if size is None else np.array([[7, 7], size])
    diagnosis = SimpleNamespace(ground_truth=SimpleNamespace(images=SimpleNamespace(sizes=sizes)))
    made = galleries._bare(diagnosis, 1, np.array(corners, float).reshape(-1, 4))
    assert made == ("", shown, view)


def test_segments_of_time_as_bars():
    corners = np.array([[0.0, 0, 10, 1], [5, 0, 15, 1], [10.5, 0, 20, 1], [20, 0, 20, 1], [0, 0, 0.01, 1]])
    marks = [{"label": "x"} for _ in corners]
    shown = galleries._timeline(marks, corners)
    made = [
        *marks,
        shown,
        galleries._timeline([], np.empty((0, 4))),
        galleries._timeline([{"label": "y"}], np.array([[3.0, 0, 3, 1]])),
    ]
    kept.same("pieces/timeline", lined(*made))


def test_sizes_of_boxes_by_their_area():
    sizes = [
        galleries._size(np.array([0.0, 0.0, width, height]))
        for width, height in ((31, 33), (32, 32), (95, 97), (96, 96), (-5, 9))
    ]
    assert sizes == ["s", "m", "m", "l", "s"]


def test_examples_until_each_value_has_enough():
    """The most frequent values come first, and images that show many; those that are there already count."""
    key, images = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2]), np.array([5, 6, 7, 6, 8, 9, 9, 5, 8])
    for enough, there, wanted in (
        (1, set(), [5, 6]), (2, set(), [5, 8, 6]), (3, set(), [5, 8, 9, 6, 7]), (1, {9}, [5, 6]), (1, {5, 6}, []),
        (0, set(), []),
    ):  # fmt: skip
        assert list(galleries._examples(key, images, enough, set(there))) == wanted, (enough, there)


def test_confusion_off_the_diagonal():
    entries = np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([3, 4, 5])
    assert [one.tolist() for one in galleries.Errors(None, SimpleNamespace(entries=entries)).cells()] == [[1], [0], [4]]
