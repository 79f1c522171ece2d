"""The distribution's name, the command that adds an extra, and another project's package that is imported as detmap too."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import detmap
from detmap import installation
from detmap.cli import main, versions

ROOT = Path(detmap.__file__).parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text()

#: What the other project's wheel lists: it shares two files with ours.
FOREIGN = ("detmap/__init__.py", "detmap/base.py", "detmap/maps/__init__.py", "detmap-0.1.5.dist-info/METADATA")
OWN = ("detmap/__init__.py", "detmap/kernels/_numba.py", "detmap-0.1.0.dist-info/METADATA")
EDITABLE = ("__editable__.detmap-0.1.0.pth", "detmap-0.1.0.dist-info/METADATA")


def install(folder, files, version, name="detmap"):
    """Leave what pip leaves of a distribution."""
    metadata = folder / f"{name}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (metadata / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    for path in files:  # later versions of importlib.metadata leave out what is not there
        if path.startswith(name + "-"):
            continue  # of this distribution it is there; others would be distributions of their own
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    return folder


@pytest.fixture
def only(monkeypatch, tmp_path):
    """Nothing is installed but what a test leaves here."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def test_the_name_stands_once_in_the_metadata_and_once_in_the_code():
    assert re.search(r'^name = "(.*?)"', PROJECT, re.M)[1] == installation.DISTRIBUTION != installation.FORMER
    text = "".join(path.read_text() for path in (ROOT / "detmap").rglob("*.py"))
    assert text.count(installation.DISTRIBUTION) == 1
    assert "pip install 'detmap" not in text


def test_no_page_or_script_installs_the_other_project():
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / ".github").rglob("*.*"),
        *(ROOT / "scripts").iterdir(),
    ]
    for path in pages:
        if path.is_file() and path.suffix in (".md", ".yml", ".sh", ".py", ""):
            for line in path.read_text().splitlines():
                told = re.search(r"pip install [^`#]*\bdetmap\b(?!-)", line)
                assert told is None or "another" in line, (path, line)


def test_an_extra_comes_from_the_checkout_or_by_the_distributions_name(monkeypatch, tmp_path):
    assert installation.install_command("plots") == f"pip install -e '{ROOT}[plots]'"
    monkeypatch.setattr(installation, "_FOLDER", tmp_path / "detmap")
    assert installation.install_command("plots") == "pip install 'detmap-eval[plots]'"


@pytest.mark.parametrize(
    ("files", "former", "foreign"),
    [(FOREIGN, False, True), (OWN, True, False), (EDITABLE, True, False), ((), True, False)],
)
def test_another_projects_detmap_is_told_by_its_files(only, files, former, foreign):
    install(only, files, "0.1.5")
    install(only, ("detmap/__init__.py",), "0.1.0", "detmap_eval")
    assert installation.has_former() is former
    told = installation.find_foreign()
    assert (told is not None) is foreign
    if foreign:
        assert "0.1.5" in told
        assert str(only) in told
        assert "pip uninstall detmap" in told
        assert "\n" not in told


def test_no_package_named_detmap(only):
    assert installation.find_foreign() is None
    assert not installation.has_former()


def said(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("arguments", [("--version", "--verbose"), ("--verbose", "--version")])
def test_version_verbose(capsys, monkeypatch, tmp_path, arguments):
    out = said(capsys, *arguments)
    assert out.startswith(f"detmap {detmap.__version__} in {ROOT}")
    for name in ("detmap-eval", "Python", "numpy ", "numba ", "compiled kernels: "):
        assert re.search(rf"^(distribution: )?{name}", out, re.M), name
    assert "note:" not in out
    monkeypatch.syspath_prepend(str(install(tmp_path, FOREIGN, "0.1.5")))
    assert re.search(r"^note: another project's package named detmap \(0\.1\.5", said(capsys, *arguments), re.M)


def test_version_alone_is_one_line_and_looks_for_nothing(capsys, monkeypatch):
    monkeypatch.setattr(versions, "find_foreign", pytest.fail)
    assert said(capsys, "--version") == f"detmap {detmap.__version__}\n"


def test_the_packages_are_those_of_the_metadata():
    needed = re.search(r"^dependencies = \[(.*?)^\]", PROJECT, re.S | re.M)[1]
    extras = re.search(r"^\[project.optional-dependencies\]\n(.*?)^test = ", PROJECT, re.S | re.M)[1]
    assert {*re.findall(r'"([\w-]+)>=', needed), "llvmlite"} == set(versions.REQUIRED)
    assert set(re.findall(r'"([\w-]+)>=', extras)) == set(versions.OPTIONAL)


def test_a_replaced_init_ends_the_command_in_one_line(tmp_path):
    """The other project, installed later, replaces one file of detmap-eval."""
    folder = install(tmp_path, FOREIGN, "0.1.5")
    shutil.copytree(
        ROOT / "detmap", folder / "detmap", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
    )
    (folder / "detmap" / "__init__.py").write_text('"""Manifold embedding."""\n')
    command = [sys.executable, "-m", "detmap", "--version"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"detmap: error: another project's package named detmap \(0\.1\.5.*\n", done.stderr)
