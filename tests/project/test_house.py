"""What ARCHITECTURE and CONTRIBUTING say of the sources: sizes of files and kernels, and names that are there."""

from __future__ import annotations

import ast
import functools
import re
from importlib import import_module
from pathlib import Path

import pytest

import detmap
from detmap.shapes import KINDS
from detmap.shapes.kinds import BOX_FIELD, BOXES, SHIPPED_COUNTS, SHIPPED_FIELDS

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(ROOT.glob("detmap/**/*.py"))
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
NAME = re.compile(r"(?<![\w./-])detmap((?:\.[A-Za-z_]\w*)+)(?![\w/])")
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def nodes(path):
    """Every node of a source, which several tests go over."""
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


@pytest.fixture(scope="module", autouse=True)
def without_nodes_afterwards():
    """Leave other tests no millions of objects that the collector of garbage goes over."""
    yield
    nodes.cache_clear()


def docstrings(path):
    return [ast.get_docstring(n) or "" for n in nodes(path) if isinstance(n, FUNCTIONS | ast.ClassDef | ast.Module)]


def code_lines(function):
    """How many lines a function has without its docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    own = function.end_lineno - function.lineno + 1
    return own - (first.end_lineno - first.lineno + 1) if documented else own


def test_no_file_of_the_package_the_scripts_or_the_tests_has_more_than_900_lines():
    files = [*SOURCES, *ROOT.glob("scripts/**/*.py"), *ROOT.glob("tests/**/*.py")]
    assert {str(path.relative_to(ROOT)) for path in files if len(path.read_text("utf-8").splitlines()) > 900} == set()


@pytest.mark.parametrize("path", sorted(ROOT.glob("detmap/kernels/*.py")), ids=lambda path: path.stem)
def test_kernels_have_at_most_8_arguments_and_60_lines_or_say_what_less_would_cost(path):
    """The comment or docstring of a larger one has a figure: so many percent, or times as long."""
    text = path.read_text("utf-8")
    for function in (node for node in ast.parse(text).body if isinstance(node, FUNCTIONS)):
        if function.decorator_list and (len(function.args.args) > 8 or code_lines(function) > 60):
            first = function.decorator_list[0].lineno
            above = text.split("\n")[max(first - 6, 0) : function.end_lineno]
            assert re.search(r"\d %|times as long", "\n".join(above)), f"{path.name}: {function.name}"


@functools.cache
def resolved(name):
    """What an attribute path of detmap leads to; an error where it leads nowhere."""
    found = detmap
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_names_on_pages_are_there_after_import_detmap(path):
    """Apart from lines that import something by themselves."""
    lines = [
        line for line in path.read_text("utf-8").split("\n") if not re.match(r"\s*(>>> )?(from|import) detmap", line)
    ]
    for name in sorted({match[1:] for line in lines for match in NAME.findall(line)}):
        first = name.split(".")[0]
        assert first in detmap.__all__ or first in detmap._PARTS or first.startswith("__"), name
        resolved(name)


@pytest.mark.parametrize("name", detmap._PARTS)
def test_parts_of_the_package_need_no_import_of_their_own(name):
    assert detmap.__getattr__(name) is import_module(f"detmap.{name}")


@functools.cache
def leads_somewhere(name):
    """Whether an attribute path of detmap is there after `import detmap`, or after an import of one of its modules."""
    parts = name.split(".")
    for cut in range(len(parts) + 1):
        try:
            found = import_module(".".join(["detmap", *parts[:cut]]))
            for part in parts[cut:]:
                found = getattr(found, part)
            return True
        except (ImportError, AttributeError):
            continue
    return False


def test_names_in_docstrings_are_there():
    """Those inside the package may be modules that are imported by themselves."""
    missing = set()
    for path in SOURCES:
        for name in {match[1:] for text in docstrings(path) for match in NAME.findall(text)}:
            if not leads_somewhere(name):
                missing.add((str(path.relative_to(ROOT)), name))
    assert missing == set()


def test_no_function_deletes_its_arguments():
    """A buffer that is to be free has an owner that hands it over: `detmap.detection.given.Owned`."""
    deleted = []
    for path in SOURCES:
        for function in (node for node in nodes(path) if isinstance(node, FUNCTIONS)):
            named = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
            gone = [
                target.id
                for node in ast.walk(function)
                if isinstance(node, ast.Delete)
                for target in node.targets
                if isinstance(target, ast.Name)
            ]
            deleted += [(path.name, function.name, name) for name in gone if name in named]
    assert deleted == []


#: What names a kind of shape: its `iou_type`, and the field of COCO's records that holds it.
FIELDS_OF_SHAPES = {*SHIPPED_FIELDS.values(), *SHIPPED_COUNTS}
KIND_WORDS = {*filter(KINDS.is_shipped, KINDS), BOX_FIELD, *FIELDS_OF_SHAPES}

#: Where kinds of shape are named: where they are defined, what masks are made of, and in what other libraries' callers see.
KIND_PLACES = ("shapes/", "pycocotools/", "lvis/", "integrations/", "masks.py")

#: Formats that hold some kinds, and named protocols that score one, name them by these constants.
KIND_CONSTANTS = {"MASKS", "KEYPOINTS", "BOUNDARIES", "WHOLE_BODIES", "PROBIOU"}


def kinds_named(tree):
    """The lines on which a source names a kind of shape: as a text by itself, or as an attribute."""
    for node in tree:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in KIND_WORDS:
            yield node.lineno, node.value
        elif isinstance(node, ast.Attribute) and node.attr in FIELDS_OF_SHAPES:
            yield node.lineno, f".{node.attr}"


def test_no_file_outside_of_shapes_and_the_drop_ins_names_a_kind_of_shape():
    """A new kind touches `detmap.shapes` alone: what differs between kinds is an attribute of `Kind`."""
    named = {}
    for path in SOURCES:
        place = path.relative_to(ROOT / "detmap").as_posix()
        if not place.startswith(KIND_PLACES):
            found = list(kinds_named(nodes(path)))
            named |= {place: found} if found else {}
    assert named == {}


def test_only_formats_and_named_protocols_name_kinds():
    users = {
        path.relative_to(ROOT / "detmap").parts[0] if path.name != "protocols.py" else "protocols"
        for path in SOURCES
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and KIND_CONSTANTS & {one.name for one in node.names}
    }
    assert users == {"shapes", "formats", "protocols"}


def test_a_kind_that_is_named_is_found():
    tree = ast.walk(ast.parse('if kind == "segm":\n    table.keypoints\n"""segm and more"""'))
    assert list(kinds_named(tree)) == [
        (1, "segm"),
        (2, ".keypoints"),
    ]


def test_what_the_registry_says_of_shipped_kinds_is_what_they_say():
    """It is said twice, so that a file is searched for fields before a kind is loaded."""
    readers = [
        kind for kind in KINDS.values() if kind.reader is not None and not kind.stored and KINDS.is_shipped(kind.name)
    ]
    assert {kind.name: kind.field for kind in readers} == SHIPPED_FIELDS
    assert tuple(name for kind in readers for name in kind.counts) == SHIPPED_COUNTS
    assert KINDS[BOXES].field == BOX_FIELD
