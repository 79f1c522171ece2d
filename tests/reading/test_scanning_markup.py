"""Plain XML in columns: what is understood is what expat reads; what expat refuses is never understood."""

from __future__ import annotations

from xml.parsers import expat

import numpy as np
import pytest
from legs import examples

from detmap.kernels.markup import DEEPEST, MOST_ATTRIBUTES
from detmap.reading.markup import Elements

PLAIN = [
    b"<a/>",
    b"<a></a>",
    b"<a >x</a\n>",
    b"<a b='1' c=\"2\"/>",
    b"<a b='1' ><b>1.5</b><c/></a>\r\n",
    b" \n<a> x y </a> ",
    b'<?xml version="1.0"?><a/>',
    b"<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n<a/>",
    b"\xef\xbb\xbf<a/>",
    "<a b='é'>日本</a>".encode(),
    b"<a b='>'/>",
    b"<a_-.9/>",
    b"<a>x<b/>y<b>z</b></a>",
    b"<a\tb='1'\r\nc='2'/>",
    b"<a>\r\nx\r\n</a>",
    b"<a b=''><a b=''/></a>",
    b"<a>]]</a>",
    b"<a><b>\n</b></a>",
]
LEFT = [
    b"",
    b" ",
    b"x",
    b"<a>",
    b"</a>",
    b"<a></b>",
    b"<a></aa>",
    b"<aa></a>",
    b"<a/><a/>",
    b"<a/>x",
    b"x<a/>",
    b"<a b/>",
    b"<a b=1/>",
    b"<a b='1'c='2'/>",
    b"<a b='1' b='2'/>",
    b"<a b='<'/>",
    b"<a>&amp;</a>",
    b"<a b='&lt;'/>",
    b"<a>]]></a>",
    b"<a><!-- --></a>",
    b"<a><![CDATA[x]]></a>",
    b"<?x?><a/>",
    b"<!DOCTYPE a><a/>",
    b"<a b='\n'/>",
    b"<a>\0</a>",
    b"<a>\x01</a>",
    b"<a>\xff</a>",
    b"<a>\xed\xa0\x80</a>",
    b"<a>\xef\xbf\xbf</a>",
    b"<\xc3\xa9/>",
    b"<a:b/>",
    b"<1/>",
    b"< a/>",
    b"<a",
    b"<a/",
    b"<a b='1",
    b"<a b='1'",
    b"<a / >",
    b"<a>x\ry</a>",
    b"<a>\x7f</a>",
    b"<?xml version='1.1'?><a/>",
    b"<?xml version='1.0' encoding='latin-1'?><a/>",
    b"\n<?xml version='1.0'?><a/>",
    b"<a><",
    b"<a></",
    b"<a></a",
    b"<a></ a>",
    b"\xff\xfe<\0a\0/\0>\0",
    b"<a b = '1'/>",
    b"<a></a></a>",
]


def parsed(data):
    """A row for every element and attribute: name, parent, text (None around elements). None if expat refuses the file."""
    rows, path = [], []

    def start(tag, attributes):
        if path:
            rows[path[-1]][2] = None
        rows.append([tag, path[-1] if path else len(rows), ""])
        path.append(len(rows) - 1)
        pairs = zip(attributes[0::2], attributes[1::2], strict=True)
        rows.extend([name, ~path[-1], value] for name, value in pairs)

    def text(part):
        if rows[path[-1]][2] is not None:
            rows[path[-1]][2] += part

    parser = expat.ParserCreate()
    parser.ordered_attributes = True
    parser.StartElementHandler, parser.CharacterDataHandler = start, text
    parser.EndElementHandler = lambda _: path.pop()
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError):
        return None
    return [
        [name, parent, text if text is None or parent < 0 else text.strip(" \t\r\n")] for name, parent, text in rows
    ]


def understood(found, file):
    """The rows of a file in the same form; None if it is not plain."""
    begin, end = found.firsts[file : file + 2].tolist()
    texts = found.have_text(np.arange(begin, end))
    rows = []
    for row in range(begin, end):
        parent = int(found.parents[row])
        parent = ~(~parent - begin) if parent < 0 else parent - begin
        rows.append([found.name(row), parent, found.text(row) if texts[row - begin] else None])
    return rows or None


@pytest.mark.parametrize("data", PLAIN)
def test_plain_files_are_understood(data):
    assert understood(Elements([data]), 0) == parsed(data) is not None


@pytest.mark.parametrize("data", LEFT)
def test_files_that_are_not_plain_are_left(data):
    found = Elements([b"<a/>", data, b"<b/>"])
    assert [understood(found, file) for file in range(3)] == [[["a", 0, ""]], None, [["b", 0, ""]]]


def test_limits():
    deep = [b"<a>" * count + b"</a>" * count for count in (DEEPEST, DEEPEST + 1)]
    many = [
        b"<a " + b" ".join(b"a%d=''" % k for k in range(count)) + b"/>"
        for count in (MOST_ATTRIBUTES, MOST_ATTRIBUTES + 1)
    ]
    found = Elements([*deep, *many, b"<" * 1000, b"=" * 1000])
    assert np.diff(found.firsts).tolist() == [DEEPEST, 0, MOST_ATTRIBUTES + 1, 0, 0, 0]


def test_files_with_random_changes_are_left_or_understood_as_expat_reads_them():
    rng = np.random.default_rng(3)
    pieces = [
        b"<a>",
        b"</a>",
        b"<b c='1'>",
        b"</b>",
        b"<c/>",
        b" ",
        b"\n",
        b"1.5",
        b"x",
        b"<",
        b">",
        b"/",
        b"'",
        b"=",
        b"&",
        b"\r",
        b"\x00",
        b"\xc3\xa9",
        b"\xc3",
        b"]]>",
        b"<!-- -->",
        b"<?xml version='1.0'?>",
        b'"',
        b'd="2"',
        b"-",
    ]
    outcomes = {"understood": 0, "left": 0, "refused": 0}
    for _ in range(examples(2000)):
        files = []
        for _ in range(5):
            text = bytearray(PLAIN[rng.integers(len(PLAIN))])
            for _ in range(rng.integers(0, 4)):
                at = int(rng.integers(0, len(text) + 1))
                cut = int(rng.integers(0, 3))
                text[at : at + cut] = pieces[rng.integers(len(pieces))]
            files.append(bytes(text))
        found = Elements(files)
        for file, data in enumerate(files):
            mine, theirs = understood(found, file), parsed(data)
            assert mine is None or mine == theirs, data
            outcomes["understood" if mine else "refused" if theirs is None else "left"] += 1
    assert min(outcomes.values()) > 0


def test_names_lines_and_owners():
    found = Elements([b"<r>\n<x k='1'/>\r\n<x/>\r<y><x k='2'>7</x></y><x k='3'> 8 </x></r>", b"<r><x k='4'/></r>"])
    roots = found.roots("r")
    inner = found.inside("x", roots)
    assert [found.line(row) for row in inner.tolist()] == [2, 3, 4, 5]
    assert found.files(inner).tolist() == [0, 0, 0, 1]
    keys = found.attribute("k", inner)
    assert [found.text(row) if row >= 0 else None for row in keys.tolist()] == ["1", None, "3", "4"]
    assert found.strings(inner).values == ["", "8"]
    values, good = found.numbers(inner)
    assert good.tolist() == [False, False, True, False]
    assert values[2] == 8
    assert found.roots("x").size == found.inside("r", roots).size == found.named("z").size == 0
