"""The distribution's name, the command that adds an extra, and another project's package that is imported as detmap too."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import detmap
from detmap import installation
from detmap.cli import main, versions
from detmap.kernels import _ahead

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
                told = re.search(r"pip install [^`#]*(?<!/)\bdetmap\b(?!-)", line)
                assert told is None or "another" in line, (path, line)


def test_an_extra_comes_from_the_checkout_or_by_the_distributions_name(monkeypatch, tmp_path):
    assert installation.install_command("plots") == f"pip install -e '{ROOT}[plots]'"
    monkeypatch.setattr(installation, "_FOLDER", str(tmp_path / "detmap"))
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
    assert set(re.findall(r'"([\w-]+)>=[\d.]+"', needed)) == set(versions.REQUIRED)
    assert {*re.findall(r'"([\w-]+)>=', extras), "llvmlite"} == set(versions.OPTIONAL)


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


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    """An environment with an editable installation, and the folder that its checkout, named as the package, lies in."""
    parent = tmp_path_factory.mktemp("parent")
    package = parent / "detmap" / "detmap"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__: str = "1.0"\n')
    (package / "__main__.py").write_text('print("run")\n')
    (package / "py.typed").touch()
    (parent / "detmap" / "tests").mkdir()
    tables = re.findall(r"^\[tool\.(?:setuptools|distutils)[.\w]*\]\n(?:(?!\[)[^\n]*\n)+", PROJECT, re.M)
    head = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    project = '[project]\nname = "detmap-eval"\ndynamic = ["version"]\n'
    (parent / "detmap" / "pyproject.toml").write_text(head + project + "".join(tables))
    build = "from setuptools import build_meta; print(build_meta.build_editable('..'))"
    command = [sys.executable, "-c", build]
    done = subprocess.run(command, cwd=parent / "detmap", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", parent / "environment"], check=True)
    python = next((parent / "environment").glob("[bS][ic]*/python*"))
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    with zipfile.ZipFile(next(parent.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    return parent, python


def in_parent(edited, *words):
    parent, python = edited
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, *words], cwd=parent, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()


def test_the_package_is_found_from_the_folder_that_its_checkout_lies_in(edited):
    """There the checkout's folder is named like the package, and would be a package without a file."""
    assert in_parent(edited, "-c", "import detmap; print(detmap.__version__)") == (0, "1.0")
    assert in_parent(edited, "-m", "detmap") == (0, "run")


@pytest.mark.slow
def test_type_checkers_see_an_editable_installation(edited, tmp_path):
    (tmp_path / "user.py").write_text("import detmap\nreveal_type(detmap.__version__)\n")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--cache-dir", os.devnull, "--python-executable"]
    command += [edited[1], "user.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'Revealed type is "str"' in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_what_an_uninstalled_package_leaves_cannot_be_imported(monkeypatch, tmp_path):
    """Of the folders of compiled kernels none lies in the package's, but in a checkout."""
    from detmap.kernels import _numba

    folders = _numba._folders.__wrapped__
    home = _numba._HOME
    assert folders(home)[0] == home / "__pycache__"
    monkeypatch.setattr(installation, "_FOLDER", str(tmp_path / "detmap"))
    monkeypatch.setattr(_numba, "_HOME", tmp_path / "detmap" / "kernels")
    monkeypatch.setattr(_numba._config, "CACHE_DIR", "")
    first = folders(_numba._HOME)[0]
    assert first.parent == tmp_path
    assert not first.name.isidentifier()
    of_plug_in = tmp_path / "plug_in"
    assert folders(of_plug_in)[0] == of_plug_in / "__pycache__"


def test_warm_without_numba_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(_ahead, "chosen", lambda: _ahead.Choice(None, None))
    monkeypatch.setattr(_ahead, "has_numba", lambda: False)
    assert main(["warm"]) == 2
    assert capsys.readouterr().err == f"detmap: error: detmap warm needs numba: {installation.install_command('jit')}\n"
