"""CSV on the scanner: what it understands is what the library parser reads, bit for bit; it refuses nothing by itself."""

from __future__ import annotations

import numpy as np
import pytest
from legs import examples
from support import assert_same

import detmap
from detmap.errors import InputError
from detmap.formats.delimited import read as delimited
from detmap.reading import cells, documents
from detmap.reading.opening import Held

HEADER = "image_id,category_id,score,x,y,width,height"


def outcome(path, **more):
    """The table, or what is said instead. A file that is new would be waited for."""
    try:
        return detmap.read(Held.of(path.read_bytes(), "found.csv"), "detections", format="csv", **more)
    except InputError as error:
        return str(error)


def both(path, monkeypatch, **more):
    """What comes of a file on the scanner and without it; and whether the scanner understood it."""
    understood = []
    real = cells.scan

    def scan(*words):
        understood.append(real(*words))
        return understood[-1]

    monkeypatch.setattr(cells, "scan", scan)
    monkeypatch.setattr(delimited, "_WORTH_SCANNING", 0)
    first = outcome(path, **more)
    monkeypatch.setattr(delimited, "_WORTH_SCANNING", 1 << 60)
    second = outcome(path, **more)
    monkeypatch.setattr(cells, "scan", real)
    return first, second, bool(understood) and understood[-1] is not None


NUMBERS = ["0", "1", "0.5", "12.25", "-0.0", "1e-3", "0.1234567890123456789", "5e-324", "600.125", "3E2", "123456789.5"]
ODD_NUMBERS = [
    "",
    " 1",
    ".5",
    "5.",
    "+1",
    "007",
    "1e999",
    "nan",
    "inf",
    "0x1",
    "1_0",
    "1 2",
    "--1",
    "1e",
    "e5",
    "１",
    '"1"',
]
IDS = ["1", "2", "30", "123456789", "9223372036854775807", "-5", "0"]
ODD_IDS = [
    "",
    "-0",
    "01",
    "a",
    "é",
    " a",
    "a ",
    "9223372036854775808",
    "1.0",
    '"b"',
    "x" * 300,
    "\u00a0z",
    "a\tb",
    "\x01",
]


def test_what_the_scanner_reads_is_what_the_parser_reads(tmp_path, monkeypatch):
    """Plain cells are understood; one odd cell, line end or line may not be, and never makes a difference."""
    rng = np.random.default_rng(0)
    plain = 0
    for case in range(examples(400)):
        odd = rng.random() < 0.6
        rows = []
        for _ in range(int(rng.integers(0, 30))):
            ids = [str(rng.choice(IDS)) for _ in range(2)]
            rows.append([*ids, *(str(rng.choice(NUMBERS)) for _ in range(5))])
        if odd and rows:
            row = rows[int(rng.integers(len(rows)))]
            place = int(rng.integers(7))
            row[place] = str(rng.choice(ODD_IDS if place < 2 else ODD_NUMBERS))
        mark, delimiter = str(rng.choice(["", "\ufeff"])), str(rng.choice([",", ";", "\t"]))
        end = str(rng.choice(["\n", "\r\n"]))
        lines = [delimiter.join(HEADER.split(",")), *(delimiter.join(row) for row in rows)]
        if odd and rng.random() < 0.2:
            lines.insert(int(rng.integers(len(lines) + 1)), str(rng.choice(["", ",", "1,2,3", "\r", "x" * 99])))
        text = mark + end.join(lines) + (end if rng.random() < 0.7 else "")
        (tmp_path / "found.csv").write_bytes(text.encode())
        first, second, understood = both(tmp_path / "found.csv", monkeypatch, invalid_boxes="miss")
        assert_same(first, second)
        assert understood or odd or not rows, (case, text)
        plain += understood
    assert plain > examples(400) // 4


@pytest.mark.compiled
@pytest.mark.parametrize("block", [64, 4096])
def test_blocks_are_joined(block, tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "BLOCK", block)
    long = "0.12345678901234567891234"  # which the kernel leaves to float()
    rows = [f"{i // 7},{i % 3},0.{i % 97},{i}.5,{long},1{i}.25,{long}" for i in range(600)]
    (tmp_path / "found.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    first, second, understood = both(tmp_path / "found.csv", monkeypatch)
    assert understood
    assert len(first) == 600
    assert_same(first, second)
    for cell in ("a", "1.5", ""):  # in the last block alone
        (tmp_path / "found.csv").write_text("\n".join([HEADER, *rows, f"{cell},1,0.5,0,0,1,1"]))
        assert_same(*both(tmp_path / "found.csv", monkeypatch)[:2])


def test_columns_that_the_caller_names_and_columns_that_are_not_read(tmp_path, monkeypatch):
    (tmp_path / "found.csv").write_text("a.jpg,note,cat,0.5,0,0,1,1\nb.jpg,,cat,0.25,0,0,2,2\n")
    more = {"columns": "image,-,category,score,x1,y1,x2,y2"}
    first, second, understood = both(tmp_path / "found.csv", monkeypatch, **more)
    assert understood
    assert first.images.ids.tolist() == ["a.jpg", "b.jpg"]
    assert_same(first, second)
    truth = detmap.GroundTruth.from_arrays(image_ids=["a"], category_ids=["cat"], boxes=[[0, 0, 1, 1]])
    for unknown in ("error", "ignore"):
        given = {**more, "ground_truth": truth, "unknown_images": unknown}
        assert_same(*both(tmp_path / "found.csv", monkeypatch, **given)[:2])


def test_a_cell_that_is_too_long_and_too_many_cells_are_left_to_the_parser(tmp_path, monkeypatch):
    (tmp_path / "found.csv").write_text(f"{HEADER},note\n1,1,0.5,0,0,1,1,{'x' * 70_000}\n1,1,0.5,0,0,1,1,y\n")
    first, second, understood = both(tmp_path / "found.csv", monkeypatch)
    assert not understood
    assert_same(first, second)
    wide = ",".join([HEADER, *(f"n{i}" for i in range(300))])
    (tmp_path / "found.csv").write_text(f"{wide}\n1,1,0.5,0,0,1,1{',' * 300}\n")
    first, second, understood = both(tmp_path / "found.csv", monkeypatch)
    assert not understood
    assert len(first) == 1
    assert_same(first, second)
