"""Where installed plug-ins are searched for, and which files those are that come from outside."""

from __future__ import annotations

import importlib.machinery
import sys
import warnings
from types import SimpleNamespace

import pytest

from detmap import plugins
from detmap.errors import OptionError
from detmap.plugins import Registry


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A function that fills folders with files, and makes them all that modules are searched in."""
    monkeypatch.setattr(sys, "meta_path", [object(), importlib.machinery.PathFinder])
    # the package importlib_metadata, which other tests may load, takes the method from the finder
    monkeypatch.setattr(importlib.machinery.PathFinder, "find_distributions", lambda *_: (), raising=False)

    def fill(*folders):
        paths = []
        for at, files in enumerate(folders):
            for name, text in files.items():
                path = tmp_path / str(at) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            paths.append(str(tmp_path / str(at)))
        monkeypatch.setattr(sys, "path", paths)
        return paths

    return fill


MINE = {"mine-1.dist-info/entry_points.txt": "[detmap.plugins]\nmine = mine"}
OTHER = {
    "other-1.dist-info/entry_points.txt": "[console_scripts]\nother = other:main",
    "other-1.dist-info/METADATA": "Name: other",
}
NO_POINTS = {"bare-1.dist-info/METADATA": "Name: bare", "package/entry_points.txt": "[detmap.plugins]"}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ([], False),
        ([OTHER, NO_POINTS], False),
        ([MINE], True),
        ([NO_POINTS, OTHER, MINE], True),
        ([{"mine.egg-info/entry_points.txt": "[detmap.plugins]"}], True),
        ([{"old.egg/EGG-INFO/PKG-INFO": "Name: old"}], True),
        ([{"mine.other/entry_points.txt": "[detmap.plugins]"}], False),
    ],
)
def test_metadata_say_whether_a_plugin_may_be_installed(folders, files, found):
    folders(*files)
    assert plugins._may_be_installed() is found


def test_what_is_no_folder_may_hold_a_plugin_unless_it_is_absent(folders, tmp_path, monkeypatch):
    paths = folders(OTHER)
    sys.path.append(str(tmp_path / "absent"))
    assert not plugins._may_be_installed()
    (tmp_path / "archive.zip").write_bytes(b"")
    monkeypatch.setattr(sys, "path", [*paths, str(tmp_path / "archive.zip")])
    assert plugins._may_be_installed()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "an.egg")])
    (tmp_path / "an.egg").mkdir()
    assert plugins._may_be_installed()
    monkeypatch.chdir(tmp_path / "0")
    monkeypatch.setattr(sys, "path", [""])
    assert not plugins._may_be_installed()


def test_another_finder_may_know_a_plugin(folders, monkeypatch):
    folders(OTHER)
    finder = SimpleNamespace(find_distributions=lambda *_: ())
    monkeypatch.setattr(sys, "meta_path", [importlib.machinery.PathFinder, finder])
    assert plugins._may_be_installed()


def test_points_are_loaded_once_and_a_broken_one_is_a_warning(monkeypatch):
    def broken():
        raise ValueError("x" * 300)

    points = [
        SimpleNamespace(name="good", value="a.module : part", load=lambda: None),
        SimpleNamespace(name="bad", value="b", load=broken),
    ]
    monkeypatch.setattr(plugins, "_entry_points", lambda: points)
    monkeypatch.setattr(plugins, "_installed", [])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert [plugins.load_installed(), plugins.load_installed()] == [True, False]
    (one,) = told
    assert one.category is plugins.PluginWarning
    assert str(one.message).startswith("the installed plug-in 'bad' cannot be loaded: ValueError: xxx")
    assert len(str(one.message)) < 280
    assert plugins.loaded() == ("a.module",)


class Thing:
    def __init__(self, name, value=0):
        self.name, self.value = name, value

    def __eq__(self, other):
        return self.value == other.value

    __hash__ = None


def test_names_of_a_registry(monkeypatch):
    monkeypatch.setattr(plugins, "_REGISTRIES", [])
    registry = Registry(Thing, "thing", {"box": "late"})
    one, alike, other = Thing("a", 1), Thing("a", 1), Thing("a", 2)
    assert registry.add(one, "detmap.things") is one
    assert registry.is_shipped("a")
    assert registry.add(alike, "theirs") is alike  # an equal object may come from another module
    assert registry["a"] is alike
    assert registry.is_shipped("a")
    with pytest.raises(OptionError, match="the thing 'a' is registered by detmap"):
        registry.add(other, "theirs")
    registry.add(other, "detmap.things")
    assert registry["a"] is other
    registry.add(Thing("mine"), "theirs")
    assert not registry.is_shipped("mine")
    for bad in (Thing(""), Thing(3), object()):
        with pytest.raises(OptionError, match="the name of a thing must be a string of at least one character"):
            registry.add(bad, "theirs")
    registry.add_later("late", "math", "pi")
    registry.add_later("a", "math", "e")
    assert [thing.name for thing in registry.loaded()] == ["a", "mine"]
    assert registry["late"] == pytest.approx(3.14159265)
    assert len(registry.loaded()) == 3
    assert [name for name, _ in registry.items()] == ["a", "mine", "late"]
    assert registry.values()[0] is other
    monkeypatch.setattr(plugins, "_installed", [True])
    for name, said in (("b", "thing 'b'"), ("Box", "did you mean 'late'"), (3, "unknown thing 3"), (["a"], "unknown")):
        with pytest.raises(OptionError, match=said):
            registry.find(name)


def test_files_of_plugins(tmp_path, monkeypatch):
    """No file is loaded whose name another module has, or is none that can be imported."""
    (tmp_path / "json.py").write_text("")
    (tmp_path / "not-a-name.py").write_text("")
    (tmp_path / "plug_in_of_a_test.py").write_text("import os\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    for given, said in (
        (str(tmp_path / "json.py"), "another module is called json: rename the file"),
        (str(tmp_path / "not-a-name.py"), "its name is none that can be imported: rename the file"),
        (str(tmp_path / "absent.py"), "no such file"),
        ("no.such.module", "ModuleNotFoundError: No module named 'no'"),
    ):
        with pytest.raises(OptionError, match=said):
            plugins.load([given])
    before = plugins.loaded()
    path = str(tmp_path / "plug_in_of_a_test.py")
    plugins.load([path, "fractions"])
    assert plugins.loaded() == (*before, path, "fractions")
    assert str(tmp_path) == sys.path[-1]
    assert path in plugins.sources()
