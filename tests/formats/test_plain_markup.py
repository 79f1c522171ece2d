"""VOC's and CVAT's files as columns: tables and errors are those of the parsers that read element by element."""

from __future__ import annotations

import numpy as np
import pytest
from legs import examples
from support import assert_same

import detmap
from detmap.errors import InputError
from detmap.formats.tools import cvat
from detmap.formats.voc import read as voc
from detmap.reading.options import Reading

NUMBERS = ["1", "2.5", " 3 ", "0.125", "1e1", "\n7.75\n", "12"]
ODD_NUMBERS = ["", "+4", "1_0", "inf", "nan", "x", "0x1", "١", ".5", "1e999", "-3", "5&#48;"]
NAMES = ["car", "a b", " car ", "日本", "x" * 256, "car\n"]
ODD_NAMES = ["", "x" * 257, "a&amp;b", "<![CDATA[car]]>", " "]


def outcome(read):
    try:
        return read()
    except InputError as error:
        return str(error)


class Drawn:
    """Draws values, odd ones in a share of the cases."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.odd = 0.0

    def one(self, usual, odd=()):
        values = odd if odd and self.rng.random() < self.odd else usual
        return values[self.rng.integers(len(values))]

    def element(self, name, text):
        """An element; seldom none, two, or one with an element inside."""
        if self.rng.random() >= self.odd:
            return f"<{name}>{text}</{name}>"
        other = self.one(NUMBERS)
        return self.one(
            ["", f"<{name}>{text}</{name}><{name}>{other}</{name}>", f"<{name}>{text}<x/></{name}>", f"<{name}/>"]
        )


def annotation(drawn):
    objects = []
    for _ in range(drawn.rng.integers(0, 4)):
        sides = {"xmin": "1", "ymin": "1.5"}
        corners = [drawn.element(side, drawn.one(["1", " 0.5", "1e0"], ODD_NUMBERS)) for side in sides]
        corners += [drawn.element(side, drawn.one(NUMBERS, ODD_NUMBERS)) for side in ("xmax", "ymax")]
        drawn.rng.shuffle(corners)
        parts = [
            drawn.element("name", drawn.one(NAMES, ODD_NAMES)),
            drawn.element("bndbox", "".join(corners)),
            drawn.one(
                ["", "<difficult>0</difficult>", "<difficult> 1 </difficult>", "<difficult/>"],
                ["<difficult>2</difficult>"],
            ),
            drawn.one(
                ["", "<pose>Left</pose>"],
                ["<part><name>head</name><bndbox><xmin>9</xmin></bndbox></part>", "<!-- -->", "text"],
            ),
        ]
        drawn.rng.shuffle(parts)
        objects.append(f"{drawn.one(['', ' ', chr(10), chr(13) + chr(10)])}<object>{''.join(parts)}</object>")
    size = "".join(drawn.element(side, drawn.one(["700", "900"], ["x", "-1", "1.5"])) for side in ("height", "width"))
    facts = [drawn.element("filename", drawn.one(["a.jpg", "é.jpg"], ["", "a&amp;b.jpg"])), drawn.element("size", size)]
    head = drawn.one(
        ["", "<?xml version='1.0'?>\n"], ["<!DOCTYPE annotation>", "<?xml version='1.0' encoding='latin-1'?>", "x"]
    )
    root = drawn.one(["annotation", "annotation verified='yes'"], ["annotations"])
    return f"{head}<{root}>{''.join([*facts, *objects])}</{root.split()[0]}>".encode()


@pytest.mark.parametrize("invalid_boxes", ["error", "drop"])
def test_annotations_are_read_as_element_by_element(invalid_boxes, monkeypatch):
    drawn = Drawn(5)
    real, outcomes = voc._plain_objects, set()
    nothing = voc._Objects(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 4)), np.empty(0, np.bool_))
    for turn in range(examples(600)):
        drawn.odd = (0.0, 0.01, 0.05)[turn % 3]
        monkeypatch.setattr(voc, "_BLOCK", int(drawn.one([1, 300, 1 << 20])))
        files = {f"{k}.xml": annotation(drawn) for k in range(drawn.rng.integers(1, 6))}
        plain = []

        def seen(block, classes, plain=plain):
            plain.append(real(block, classes))
            return plain[-1]

        def left(block, classes):
            return nothing, np.zeros(len(block), np.bool_), [{} for _ in block]

        read = lambda files=files: voc.read_voc(files, invalid_boxes=invalid_boxes)  # noqa: E731
        monkeypatch.setattr(voc, "_plain_objects", seen)
        mine = outcome(read)
        monkeypatch.setattr(voc, "_plain_objects", left)
        theirs = outcome(read)
        assert_same(mine, theirs)
        if drawn.odd == 0:
            assert all(flags.all() for _, flags, _ in plain)
        outcomes.add((type(mine), any(flags.any() for _, flags, _ in plain)))
    assert {(detmap.GroundTruth, True), (str, False)} <= outcomes


def shapes(drawn):
    """A document of CVAT."""
    images = []
    for place in range(drawn.rng.integers(0, 4)):
        boxes = []
        for _ in range(drawn.rng.integers(0, 4)):
            sides = [f'{side}="{drawn.one(["1", "0.5"], ODD_NUMBERS)}"' for side in ("xtl", "ytl")]
            sides += [f'{side}="{drawn.one(["2.5", " 3 ", "1e1"], ODD_NUMBERS)}"' for side in ("xbr", "ybr")]
            sides.append(f'label="{drawn.one(["car", "a b", "日本"], ["", "x" * 257, "a&amp;b"])}"')
            sides.append(
                drawn.one(["", 'rotation="0.0"', 'occluded="0"'], ['rotation="30.0"', 'rotation="x"', 'label="twice"'])
            )
            drawn.rng.shuffle(sides)
            sides = sides[: len(sides) - (drawn.rng.random() < drawn.odd)]
            inside = drawn.one(["", '\n<attribute name="x">1</attribute>'], ['<box label="inner"/>'])
            boxes.append(drawn.one(["<box {}>{}</box>\n", "<box {}>{}</box>"]).format(" ".join(sides), inside))
        others = [
            '<polygon label="p" points="1,1;2,1;2,2"/>',
            '<points label="p" points="1,1"/>',
            '<ellipse label="e"/>',
            "<!-- -->",
        ]
        boxes.append(drawn.one(["", '<tag label="t"/>'], others))
        name = drawn.one([f"{place}.jpg", "same.jpg"], ["", "x" * 257])
        facts = drawn.one(['width="900" height="700"', ""], ['width="x" height="7"', 'width="900"'])
        images.append(f'<image id="{place}" name="{name}" {facts}>{"".join(boxes)}</image>')
    more = drawn.one(["", "<meta><task/></meta>\r\n"], ["<track/>", '<x><box label="y"/></x>', "text"])
    root = drawn.one(["annotations"], ["annotation"])
    return f'<?xml version="1.0" encoding="utf-8"?>\n<{root}><version>1.1</version>{more}{"".join(images)}</{root}>'.encode()


@pytest.mark.parametrize("kind", ["bbox", "rotated"])
def test_boxes_of_cvat_are_read_as_element_by_element(kind, monkeypatch):
    drawn = Drawn(6)
    real, outcomes = cvat._plain_boxes, set()
    for turn in range(examples(600)):
        drawn.odd = (0.0, 0.01, 0.05)[turn % 3]
        data = shapes(drawn)
        read = lambda data=data: cvat.read_ground_truth(data, Reading(iou_type=kind))  # noqa: E731
        monkeypatch.setattr(cvat, "_plain_boxes", real)
        understood = real(data, "x") is not None
        mine = outcome(read)
        monkeypatch.setattr(cvat, "_plain_boxes", lambda *_: None)
        theirs = outcome(read)
        assert_same(mine, theirs)
        assert understood or drawn.odd
        outcomes.add((type(mine), understood))
    assert {(detmap.GroundTruth, True), (str, False)} <= outcomes


def test_an_error_about_a_box_of_cvat_names_its_line():
    data = b'<annotations>\r\n<image name="a">\n<box label="x" xtl="3" ytl="1" xbr="2" ybr="2"/></image></annotations>'
    assert cvat._plain_boxes(data, "a.xml") is not None
    with pytest.raises(InputError, match="line 3"):
        cvat.read_ground_truth(data, Reading())
