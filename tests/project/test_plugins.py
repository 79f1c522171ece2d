"""Plug-ins: what they register is found, their failures are one line, and other processes have them too."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import importlib.metadata
import json
import multiprocessing
import os
import subprocess
import sys
import types

import numpy as np
import pytest
from batches import FIXTURES, ROOT, TRUTH, run

import detmap
from detmap import batch, plugins
from detmap.detection.protocols import COCO, PRESETS
from detmap.errors import InputError, OptionError
from detmap.formats import FORMATS, Format, Given, files, registry
from detmap.retrieval import CONVENTIONS, Convention
from detmap.shapes import KINDS

LINES = '''
"""Detections as lines of image, category, score, x, y, width, height."""

import numpy as np

from detmap import Detections, register
from detmap.formats import Format, read_bytes


def read(source, ground_truth, reading):
    data, name = read_bytes(source, "lines")
    rows = np.array([line.split() for line in bytes(data).decode().splitlines()[1:]], float)
    image, category = rows[:, :2].astype(int).T
    table = Detections.from_arrays(
        image_ids=image, category_ids=category, boxes=rows[:, 3:], scores=rows[:, 2], source=name
    )
    return table.on_images_of(ground_truth, reading.unknown_images)


def sniff(given):
    return given.head.startswith(b"#lines")


register(Format(name="lines", suffixes=(".lines",), sniff=sniff, read_detections=read))
'''


@pytest.fixture(autouse=True)
def _imported_anew(monkeypatch):
    """The modules that a test writes are imported again by the next one."""
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - modules:
        if name.startswith("a_plugin"):
            del sys.modules[name]


def write(folder, text, name="a_plugin.py"):
    path = folder / name
    path.write_text(text)
    return str(path)


def as_lines(folder):
    """The fixture's detections in the format of `LINES`."""
    records = json.loads((FIXTURES / "detections.json").read_text())
    rows = [[one["image_id"], one["category_id"], repr(one["score"]), *map(repr, one["bbox"])] for one in records]
    path = folder / "model.lines"
    path.write_text("#lines\n" + "\n".join(" ".join(map(str, row)) for row in rows))
    return path


@pytest.fixture(scope="module")
def expected():
    truth = detmap.read_coco(TRUTH)
    return dict(detmap.evaluate(truth, detmap.read_coco_results(FIXTURES / "detections.json", truth)))


# ------------------------------------------------------------------------------------------------------------ registries


def test_register_takes_kinds_formats_protocols_and_conventions_and_returns_them():
    protocol = dataclasses.replace(COCO, name="mine")
    assert detmap.register(protocol) is protocol is PRESETS["mine"]
    assert detmap.register(Convention("mine", ties="docid")) is CONVENTIONS["mine"]
    assert detmap.register(Format(name="mine", suffixes=(), sniff=lambda given: False)) is FORMATS["mine"]
    assert detmap.register(KINDS["bbox"]) is KINDS["bbox"]
    for thing in ("coco", None, Convention, detmap.GroundTruth):
        with pytest.raises(
            OptionError, match=r"expected a kind of shape, a format, a protocol, .* of a diagnosis, not"
        ):
            detmap.register(thing)
    with pytest.raises(OptionError, match="the name of a protocol must be a string of at least one character, not ''"):
        detmap.register(dataclasses.replace(COCO, name=""))


def test_a_name_has_one_owner_who_may_replace_it():
    """Whoever loads a module anew replaces what it registered; nobody replaces what detmap ships."""
    detmap.register(dataclasses.replace(COCO, name="mine"))
    again = detmap.register(dataclasses.replace(COCO, name="mine", max_dets=(7,)))
    assert PRESETS["mine"] is again
    with pytest.raises(OptionError, match=r"the protocol 'coco' is registered by detmap\.detection\.protocols already"):
        detmap.register(dataclasses.replace(COCO, max_dets=(7,)))
    assert detmap.register(dataclasses.replace(COCO)) == COCO  # the same thing


# --------------------------------------------------------------------------------------------------------------- loading


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def", "SyntaxError: invalid syntax"),
        ("import detmap\ndetmap.register(7)", "expected a kind of shape"),
        ("raise ValueError('two\\nlines')", r"ValueError: two\nlines"),
    ],
)
def test_a_plugin_that_fails_is_one_line(tmp_path, capsys, text, says):
    path = write(tmp_path, text)
    with pytest.raises(OptionError) as caught:
        plugins.load([path])
    assert says in str(caught.value)
    assert path in str(caught.value)
    code, out, err = run(capsys, "eval", TRUTH, FIXTURES / "detections.json", "--plugin", path)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert says in err


def test_files_that_cannot_be_imported(tmp_path):
    with pytest.raises(OptionError, match=r"absent\.py': no such file"):
        plugins.load([str(tmp_path / "absent.py")])
    with pytest.raises(OptionError, match="its name is none that can be imported"):
        plugins.load([write(tmp_path, "", "my-plugin.py")])
    with pytest.raises(OptionError, match="another module is called json: rename the file"):
        plugins.load([write(tmp_path, "", "json.py")])
    with pytest.raises(OptionError, match="No module named 'a_plugin_that_is_not_there'"):
        plugins.load(["a_plugin_that_is_not_there"])


def point(name, module):
    return importlib.metadata.EntryPoint(name, module, plugins.GROUP)


def test_installed_plugins_are_loaded_once_when_a_name_is_unknown(tmp_path, monkeypatch):
    text = "import dataclasses, detmap\n"
    text += "detmap.register(dataclasses.replace(detmap.PRESETS['coco'], name='installed', max_dets=(3,)))"
    write(tmp_path, text, "a_plugin_installed.py")
    asked = []
    points = [point("ours", "a_plugin_installed"), point("broken", "a_plugin_broken")]
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr(plugins, "_entry_points", lambda: asked.append(1) or points)
    monkeypatch.setattr(plugins, "_installed", [])
    detmap.detection.protocols.resolve("coco")
    assert not asked
    with pytest.warns(plugins.PluginWarning, match="the installed plug-in 'broken' cannot be loaded: ModuleNotFoundE"):
        assert detmap.detection.protocols.resolve("installed").max_dets == (3,)
    with pytest.raises(OptionError, match=r"unknown protocol 'another'; one of: coco, voc2007, voc2012.*, installed"):
        detmap.detection.protocols.resolve("another")
    assert asked == [1]
    assert "a_plugin_installed" in plugins.loaded()


@pytest.mark.filterwarnings("default::detmap.plugins.PluginWarning")
def test_the_command_line_says_which_installed_plugin_is_broken_and_goes_on(capsys, monkeypatch):
    monkeypatch.setattr(plugins, "_entry_points", lambda: [point("broken", "a_plugin_broken")])
    monkeypatch.setattr(plugins, "_installed", [])
    code, out, err = run(capsys, "protocols")
    assert code == 0
    assert out.startswith("coco\n")
    assert "note: the installed plug-in 'broken' cannot be loaded" in err


def test_an_installed_plugin_is_there_without_being_named(tmp_path):
    """An installed distribution is a folder of metadata beside its modules."""
    text = "import dataclasses, detmap\nfrom detmap.retrieval import Convention\n"
    text += "detmap.register(dataclasses.replace(detmap.PRESETS['coco'], name='installed'))\n"
    text += "detmap.register(Convention('installed_too', ties='docid'))\n"
    write(tmp_path, text)
    metadata = tmp_path / "a_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: a-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[detmap.plugins]\nours = a_plugin\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    for listing, name in (("protocols", "installed"), ("conventions", "installed_too")):
        words = [sys.executable, "-m", "detmap", listing, "--format", "json"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)[-1][listing[:-1]] == name


# --------------------------------------------------------------------------------------------------------------- formats


@pytest.mark.compiled
def test_a_format_by_its_path_in_processes_that_are_new(tmp_path, expected):
    """The tasks bring the plug-in: a new process knows neither its name nor its folder."""
    plugins.load([write(tmp_path, LINES)])
    path = as_lines(tmp_path)
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        [found] = batch.score(TRUTH, [path], executor=pool)
    assert found.error is None
    assert dict(found) == expected


def test_a_worker_without_the_plugin_says_so(tmp_path, expected):
    plugins.load([write(tmp_path, LINES)])
    path = as_lines(tmp_path)
    (tmp_path / "a_plugin.py").unlink()
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        [found] = batch.score(TRUTH, [path], executor=pool)
    assert "a_plugin.py': no such file" in found.error


def test_a_format_through_the_command_line(tmp_path, capsys, expected):
    """`batch` takes its suffix from a folder, and leaves it off the name."""
    plugin = write(tmp_path, LINES)
    path = as_lines(tmp_path)
    code, out, err = run(capsys, "eval", TRUTH, path, "--plugin", plugin, "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["metrics"] == expected
    (tmp_path / "runs").mkdir()
    path.rename(tmp_path / "runs/model.lines")
    code, out, _ = run(capsys, "batch", TRUTH, tmp_path / "runs", "--plugin", plugin, "--format", "json")
    assert json.loads(out)["models"][0]["model"] == "model"
    _, out, _ = run(capsys, "eval", "--help-all", "--plugin", plugin)
    assert ", or lines; - is standard input" in " ".join(out.split())


def test_resume_knows_another_plugin(tmp_path, capsys):
    """What is scored anew: the file whose format a plug-in reads, once the plug-in has changed."""
    plugin, path = write(tmp_path, LINES), as_lines(tmp_path)
    keys = []
    for text in (LINES, LINES, LINES + "\n# another\n"):
        write(tmp_path, text)
        code, _, err = run(capsys, "batch", TRUTH, path, "--plugin", plugin, "--out", tmp_path / "out", "--resume")
        assert code == 0, err
        keys.append(json.loads((tmp_path / "out/results/model.json").read_text())["key"])
        sys.modules.pop("a_plugin")
        batch.stamps._of.cache_clear()
    assert keys[0] == keys[1] != keys[2]


def test_what_a_sniff_is_given(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("b.txt", "a.xml"):
        (folder / name).write_bytes(b"")
    given = Given(folder, "detections")
    assert (given.name, given.is_folder, given.names, given.head) == ("folder", True, ("a.xml", "b.txt"), b"")
    (tmp_path / "file").write_bytes(bytes(range(256)) * 20)
    given = Given(tmp_path / "file", "ground_truth")
    assert (given.name, given.is_folder, given.names) == ("file", False, ())
    assert given.head == (bytes(range(256)) * 20)[:4096]
    import gzip

    (tmp_path / "file.gz").write_bytes(gzip.compress(b"inside" * 2000))
    assert Given(tmp_path / "file.gz", "detections").head == (b"inside" * 2000)[:4096]
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8bno")
    assert Given(tmp_path / "bad.gz", "detections").head == b""
    assert Given(tmp_path / "absent", "detections").head == b""


def test_folders_are_told_apart_by_what_is_in_them(tmp_path):
    """VOC's results are its own, whatever else a folder of another format may hold; the rest is VOC's to refuse."""
    detmap.register(
        Format(
            name="theirs",
            suffixes=(),
            sniff=lambda given: "classes.names" in given.names,
            read_ground_truth=lambda source, reading: "theirs",
            read_detections=lambda source, truth, reading: "theirs",
        )
    )
    ours, theirs, empty = (tmp_path / name for name in ("ours", "theirs", "empty"))
    for folder in (ours, theirs, empty):
        folder.mkdir()
    (ours / "comp4_det_test_dog.txt").write_text("i1 .5 1 2 3 5\n")
    (theirs / "classes.names").write_text("dog\n")
    assert registry.recognise(ours, "detections").name == "voc"
    assert registry.recognise(ours, "ground_truth") is None
    assert files.read_detections(theirs, None) == "theirs"
    assert files.read_ground_truth(theirs) == "theirs"
    assert registry.recognise(empty, "detections") is None
    with pytest.raises(InputError, match="is an empty folder"):
        files.read_detections(empty, None)


def test_the_sources_of_plugins_are_theirs_and_their_neighbours(tmp_path, monkeypatch):
    """Not those of modules elsewhere: their versions are not the plug-in's doing."""
    write(tmp_path, "VALUE = 1\n", "a_plugin_neighbour.py")
    write(tmp_path, "import a_plugin_neighbour\nimport numpy\nfrom json import loads\n")
    monkeypatch.setattr(plugins, "_MODULES", {})
    plugins.load([str(tmp_path / "a_plugin.py")])
    assert plugins.sources() == [str(tmp_path / "a_plugin.py"), str(tmp_path / "a_plugin_neighbour.py")]
    monkeypatch.setattr(plugins, "_MODULES", {"a_plugin_without_file": None})
    monkeypatch.setitem(sys.modules, "a_plugin_without_file", types.ModuleType("a_plugin_without_file"))
    assert plugins.sources() == []


def test_an_array_of_names_is_no_name():
    with pytest.raises(OptionError, match="unknown protocol"):
        PRESETS.find(np.array(["coco", "voc"]))
