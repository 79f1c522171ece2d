"""What is read is recognised once, and options of reading are declared once."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
from support import assert_same

import detmap
from detmap import batch
from detmap.cli import main
from detmap.decisions import Flag
from detmap.errors import InputError, OptionError
from detmap.formats import Format, registry
from detmap.formats.inputs import Input, check_taken
from detmap.reading import options
from detmap.reading.options import FormatOptions, Options, Reading, SidesOptions, flags, option, options_of

TRUTH = {
    "images": [{"id": i, "width": 64, "height": 48, "file_name": f"{i}.jpg"} for i in (1, 2)],
    "categories": [{"id": 1, "name": "cat"}],
    "annotations": [
        {"id": i, "image_id": i, "category_id": 1, "bbox": [4, 4, 9, 9], "area": 81, "iscrowd": 0} for i in (1, 2)
    ],
}


@pytest.fixture
def files(tmp_path):
    """Ground truth, and detections as COCO's results, as CSV, and as a folder of YOLO's predictions."""
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    found = [{"image_id": i, "category_id": 1, "bbox": [4, 4, 9, 8], "score": i / 4} for i in (1, 2)]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/a.json").write_text(json.dumps(found))
    rows = "".join(f"{one['image_id']},1,{one['score']},4,4,13,12\n" for one in found)
    (tmp_path / "runs/b.csv").write_text("image_id,category_id,score,x1,y1,x2,y2\n" + rows)
    (tmp_path / "runs/c").mkdir()
    for i in (1, 2):
        (tmp_path / f"runs/c/{i}.txt").write_text(f"0 {8.5 / 64} {8 / 48} {9 / 64} {8 / 48} 0.{i}\n")
    return tmp_path


@pytest.fixture
def asked(monkeypatch):
    """How often each input was recognised."""
    found: Counter[str] = Counter()
    original = registry.recognise

    def count(source, role):
        found[str(source)] += 1
        return original(source, role)

    monkeypatch.setattr(registry, "recognise", count)
    return found


@pytest.mark.parametrize("name", ["a.json", "b.csv", "c"])
def test_an_evaluation_recognises_each_file_once(files, asked, name, capsys):
    words = [str(files / "truth.json"), str(files / "runs" / name), "--card", str(files / "card.json")]
    assert main(["eval", *words, "--bootstrap", "200"]) == 0, capsys.readouterr().err
    assert asked == {str(files / "truth.json"): 1, str(files / "runs" / name): 1}
    asked.clear()
    assert main(["verify", str(files / "card.json"), *words[:2]]) == 0
    assert set(asked.values()) == {1}


@pytest.mark.parametrize("command", ["diagnose", "compare", "check", "explain"])
def test_other_commands_recognise_each_file_once(files, asked, command, capsys):
    more = {"compare": [str(files / "runs/b.csv"), "--bootstrap", "200"], "explain": ["--from", "voc2012"]}
    more["diagnose"] = ["--parts", "tide"]
    words = [command, str(files / "truth.json"), str(files / "runs/a.json"), *more.get(command, [])]
    assert main(words) == 0, capsys.readouterr().err
    assert set(asked.values()) == {1}
    assert len(asked) == 2 + (command == "compare")


@pytest.mark.parametrize("given", [["runs"], ["runs/a.json", "runs/b.csv", "runs/c"]])
def test_a_batch_recognises_each_file_once(files, asked, given, capsys):
    """Also where it finds them in a folder, reads its results again, and tests every pair."""
    words = ["batch", str(files / "truth.json"), *(str(files / one) for one in given), "--out", str(files / "out")]
    words += ["--bootstrap", "200", "--permutations", "200", "--card", str(files / "card.json")]
    assert main(words) == 0, capsys.readouterr().err
    names = {"truth.json", "runs/a.json", "runs/b.csv", "runs/c"}
    counts = {**asked}
    assert counts.pop(str(files / "runs"), 1) == 1  # is the folder itself the detections of one model?
    assert counts == {str(files / name): 1 for name in names}
    asked.clear()
    assert main([*words, "--resume"]) == 0
    assert set(asked.values()) == {1}


def test_the_api_recognises_each_file_once(files, asked):
    paths = [files / "runs" / name for name in ("a.json", "b.csv", "c")]
    done = list(batch.score(files / "truth.json", paths, out=files / "out"))
    batch.compare_files(detmap.read(files / "truth.json", "ground_truth"), done, permutations=200)
    asked.pop(str(files / "truth.json"))
    assert asked == {str(path): 1 for path in paths}
    asked.clear()
    detmap.evaluate(files / "truth.json", files / "runs/a.json")
    assert set(asked.values()) == {1}


@pytest.mark.parametrize(
    ("role", "words", "option", "value"),
    [
        ("detections", ["--invalid-boxes", "drop"], "invalid_boxes", "drop"),
        ("detections", ["--unknown-images", "ignore"], "unknown_images", "ignore"),
        ("detections", ["--iou-type", "segm", "--image-sizes", "64x48"], "image_sizes", "64x48"),
        ("detections", ["--iou-type", "segm"], "iou_type", "segm"),
        ("ground_truth", ["--iou-type", "segm", "--image-sizes", "64x48"], "image_sizes", "64x48"),
        ("ground_truth", ["--iou-type", "segm"], "iou_type", "segm"),
    ],
)
def test_the_options_of_a_file_pass_three_functions_between_flag_and_reader(
    files, monkeypatch, role, words, option, value
):
    """The command makes `Reading` of the flags, and `Input` gives it to the reader; of files of masks too."""
    for path in (files / "truth.json", files / "runs/a.json"):
        document = json.loads(path.read_text())
        for one in document if isinstance(document, list) else document["annotations"]:
            one["segmentation"] = [[4, 4, 13, 4, 13, 12]]
        path.write_text(json.dumps(document))
    seen: list[str] = []
    reader = getattr(registry.FORMATS["coco"], f"read_{role}")

    def read(*given):
        frame = sys._getframe(1)
        while frame is not None and not frame.f_code.co_filename.endswith("cli/detection.py"):
            seen.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)
            frame = frame.f_back
        assert getattr(given[-1], option) == value
        return reader(*given)

    made: list[str] = []
    original = options.of_role

    def of_role(given, of, **more):
        if of == role:
            made.append(sys._getframe(1).f_code.co_name)
        return original(given, of, **more)

    monkeypatch.setattr(options, "of_role", of_role)
    object.__setattr__(registry.FORMATS["coco"], f"read_{role}", read)
    try:
        assert main(["eval", str(files / "truth.json"), str(files / "runs/a.json"), *words]) == 0
    finally:
        object.__setattr__(registry.FORMATS["coco"], f"read_{role}", reader)
    between = [*dict.fromkeys(made), "of_role", *(name.rpartition(".")[2] for name in seen)]
    assert between == ["reading_of", "of_role", role]


@dataclass(frozen=True, kw_only=True)
class Shifted(Reading):
    """`Reading` with one more option."""

    shift: int = option(
        0,
        "By how many pixels boxes are moved.",
        "formats",
        Flag(name="--shift", help="move the boxes of detections", read=int),
        allowed=(0, 1, 2),
        some="moves the boxes of dots",
        concerns=("detections",),
        since="0.2",
    )


def test_a_new_option_is_one_field_and_the_line_that_uses_it(files, monkeypatch, capsys):
    monkeypatch.setattr(options, "Reading", Shifted)

    def read(source, ground_truth, reading):
        boxes = [[4 + int(reading.shift), 4, 9, 9]]  # the line that uses it
        return detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=boxes, scores=[0.5])

    dots = Format(
        name="dots", suffixes=(".dots",), sniff=lambda given: given.name.endswith(".dots"), takes=("shift",),
        read_detections=read,
    )  # fmt: skip
    monkeypatch.setitem(registry.FORMATS, "dots", dots)
    monkeypatch.setitem(registry.FORMATS._modules, "dots", "elsewhere")
    (files / "one.dots").touch()
    words = [str(files / "truth.json"), str(files / "one.dots")]
    with pytest.raises(SystemExit):
        main(["eval", "--help-all"])
    assert "--shift {0,1,2}" in capsys.readouterr().out
    values = []
    for shift in ("0", "2"):
        monkeypatch.setattr(options, "Reading", Shifted)
        card = files / f"card{shift}.json"
        assert main(["eval", *words, "--shift", shift, "--format", "json", "--card", str(card)]) == 0, (
            capsys.readouterr().err
        )
        values.append(json.loads(capsys.readouterr().out)["metrics"]["AP75"])
        assert json.loads(card.read_text())["options"]["shift"] == int(shift)
        assert main(["verify", str(card), *words]) == 0
        capsys.readouterr()
    assert values[0] > values[1]
    with pytest.raises(OptionError, match="shift must be one of 0, 1, 2, not 3"):
        Shifted(shift=3)
    with pytest.raises(
        OptionError, match=r"shift \(--shift\) moves the boxes of dots: it does not go with the format coco"
    ):
        Input(files / "runs/a.json", "detections", Shifted(shift=1)).check_taken()
    with pytest.raises(OptionError, match="--shift moves the boxes of dots"):
        check_taken([Input(files / "runs/a.json", "detections", Shifted(shift=1))])
    assert Shifted(shift=1).recorded() == ["shift=1"]
    (found,) = batch.score(files / "truth.json", words[1:], reading={"shift": 2}, out=files / "out")
    assert found["AP75"] == values[1]
    assert "By how many pixels" in (options.takes_options("shift")(_doubled).__doc__ or "")


@pytest.mark.parametrize("given", [inspect.cleandoc, str], ids=["as Python 3.13 keeps it", "as it is written"])
def test_a_docstring_holds_the_entries_of_options_in_every_python(given):
    def one(**options: object) -> None:
        pass

    one.__doc__ = given("""Do nothing.

    Parameters
    ----------
    **options

    Returns
    -------
    None
    """)
    text = inspect.getdoc(options.takes_options("classes")(one))
    assert "\nclasses : " in text
    assert "\nReturns\n-------\nNone" in text


def _doubled(**given: object) -> None:
    """Do nothing.

    Parameters
    ----------
    **options
    """


def test_keywords_are_those_that_are_declared():
    """`Options` for type checkers, signatures and docstrings: the fields of `Reading`, in one order or another."""
    declared = [one.name for one in fields(Reading)]
    assert set(Options.__annotations__) == set(declared) == set(options_of())
    assert set(FormatOptions.__annotations__) < set(declared)
    assert set(SidesOptions.__annotations__) == {
        dest for dest, one in flags().items() if one.option.group in ("images", "formats")
    }
    for function, own in ((detmap.read, 3), (detmap.convert, 6), (detmap.check, 5)):
        names = list(inspect.signature(function).parameters)[own:]
        entries = [line.partition(" : ")[0] for line in inspect.getdoc(function).splitlines() if " : " in line]
        listed = {name for entry in entries for name in entry.split(", ")}
        assert set(names) < listed, function
    assert list(inspect.signature(detmap.read).parameters)[3:] == declared
    assert inspect.signature(detmap.read).parameters["image_facts"].default is True


@pytest.mark.parametrize(
    "call", [detmap.read, detmap.check, lambda path, **more: detmap.convert(path, "x.csv", **more)]
)
def test_what_is_no_option_is_refused(call, files):
    with pytest.raises(OptionError, match=r"unknown option of detmap\.\w+ 'colums'; did you mean 'columns'\? one of: "):
        call(files / "truth.json", colums=1)
    with pytest.raises(OptionError, match="box_format must be one of None, xywh, xyxy, cxcywh, not 'zz'"):
        call(files / "truth.json", box_format="zz")


def test_one_kind_of_error_for_what_an_option_cannot_be():
    """Whoever checks it: the evaluator, tables from arrays, readers, and `Reading`."""
    boxes = {"image_ids": [1], "category_ids": [1], "boxes": np.ones((1, 4)), "scores": [1.0]}
    tries = [
        lambda **given: detmap.Evaluator(**given),
        lambda **given: detmap.Detections.from_arrays(**boxes, **given),
        lambda **given: Reading(**given),
    ]
    for make in tries:
        for name in ("box_format", "invalid_boxes"):
            with pytest.raises(OptionError, match=rf"^{name} must be one of .*, not 'zz'$"):
                make(**{name: "zz"})


def test_an_input_that_is_valid_in_any_folder(tmp_path, monkeypatch):
    """Paths become absolute, and keep their role, their options and what was found out; streams and documents stay."""
    (tmp_path / "found.json").write_text("[]")
    monkeypatch.chdir(tmp_path)
    reading = Reading(format="coco")
    for path in ("found.json", Path("found.json"), "./found.json", str(tmp_path / "found.json")):
        given = Input(path, "detections", reading)
        assert given.source is given.path
        made = given.from_anywhere()
        assert made.source == made.path
        assert str(made.path) == str(tmp_path / "found.json")
        assert (made.role, made.reading) == ("detections", reading)
        assert os.fspath(given.path) == os.fspath(path)
    for given in (Input("-", "detections"), Input([], "detections"), Input({"images": []}, "ground_truth")):
        assert given.from_anywhere() is given


CVAT = b'<annotations><image id="0" name="a"><box label="x" xtl="1" ytl="2" xbr="3" ybr="5"/></image></annotations>'
ROWS = b"image,class,x1,y1,x2,y2,score\na,x,1,2,3,5,0.5\n"


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("data", "format", "role"),
    [(CVAT, "cvat", "ground_truth"), (ROWS, "csv", "detections"), (json.dumps(TRUTH).encode(), "coco", "ground_truth")],
)
def test_bytes_are_the_content_of_a_file(data, format, role, named, packed, tmp_path):
    (tmp_path / "file").write_bytes(data)
    expected = detmap.read(tmp_path / "file", role, format=format)
    assert len(expected) > 0
    given = {"format": format} if named else {}
    assert_same(detmap.read(packed(data), **given), expected, apart=["source"])
    assert_same(detmap.read(packed(data), role, **given), expected, apart=["source"])


@pytest.mark.parametrize(
    ("data", "role", "says"),
    [
        (b"", "detections", "detections: is empty"),
        (b"", None, "is 'input' ground truth, or detections?"),
        (b"\x89PNG\r\n\x1a\n", "ground_truth", "ground truth: is an image"),
        (b"<a/>", "ground_truth", "ground truth: is XML whose root is a;"),
        (b"<annotation/>", "ground_truth", "ground truth: is one file of VOC's XML;"),
        (
            b"one\ntwo\n",
            "detections",
            "detections: is text of no format that is known by its lines, the first of which is 'one'",
        ),
    ],
)
def test_bytes_that_cannot_be_read_are_named_by_their_role(data, role, says):
    with pytest.raises((InputError, OptionError)) as caught:
        detmap.read(data, role)
    assert says in str(caught.value)
