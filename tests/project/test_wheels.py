"""The distributions of a release: their metadata, their licences, and that the same files give the same bytes."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import io
import os
import re
import stat
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parents[2]
EPOCH = 1_700_000_000
NUMBA = [
    importlib.metadata.distribution("numba").read_text(f"licenses/{name}")
    for name in ("LICENSE", "LICENSES.third-party")
]

#: What environment markers say on platforms without a wheel of their own.
OTHERS = [("darwin", "arm64"), ("darwin", "x86_64"), ("win32", "AMD64"), ("linux", "riscv64"), ("linux", "i686")]


def script(name):
    """A script as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


wheels = script("wheels.py")
FILES = {
    "b/__init__.py": b"",
    "a/__init__.py": b"x = 1\n",
    "a-1.0.dist-info/METADATA": b"Name: a\nVersion: 1.0\n",
    "a-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n\n",
}


@pytest.mark.parametrize(
    ("tags", "pure"), [("any", "true"), *((one.tags, "false") for one in wheels.PLATFORMS.values())]
)
def test_a_wheel_lists_its_files_and_its_tags(tmp_path, tags, pure):
    path = wheels.write_wheel(tmp_path, FILES, tags, EPOCH)
    assert {str(tag) for tag in parse_wheel_filename(path.name)[3]} == {f"py3-none-{tag}" for tag in tags.split(".")}
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        recorded = list(csv.reader(io.StringIO(wheel.read("a-1.0.dist-info/RECORD").decode())))
        assert [row[0] for row in recorded] == wheel.namelist()
        for name, digest, size in recorded[:-1]:
            data = wheel.read(name)
            assert size == str(len(data))
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        assert recorded[-1] == ["a-1.0.dist-info/RECORD", "", ""]
        assert {stat.S_IMODE(one.external_attr >> 16) for one in wheel.infolist()} == {0o644}
        about = wheel.read("a-1.0.dist-info/WHEEL").decode()
    assert about.count("Tag: ") == len(tags.split("."))
    assert f"Root-Is-Purelib: {pure}\n" in about
    assert wheels.read_wheel(path).keys() == FILES.keys()
    first = path.read_bytes()
    assert wheels.write_wheel(tmp_path, dict(reversed(FILES.items())), tags, EPOCH).read_bytes() == first


def test_a_source_distribution_holds_nothing_of_its_making(tmp_path):
    made = []
    for number, names in enumerate((["a-1/x.py", "a-1/PKG-INFO"], ["a-1/PKG-INFO", "a-1/x.py"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        with tarfile.open(folder / "a-1.tar.gz", "w:gz") as archive:
            for name in names:
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime, entry.uname, entry.mode = len(name), number, f"user{number}", 0o600 + number
                archive.addfile(entry, io.BytesIO(name.encode()))
        made.append(wheels.write_sdist(tmp_path, folder / "a-1.tar.gz", EPOCH).read_bytes())
    assert made[0] == made[1]
    assert wheels.metadata(tmp_path / "a-1.tar.gz") == b"a-1/PKG-INFO"


def test_other_metadata_and_a_large_wheel_are_faults(tmp_path, monkeypatch):
    other = FILES | {"a-1.0.dist-info/METADATA": b"Name: a\nVersion: 1.0\nRequires-Dist: numba\n"}
    (tmp_path / "sub").mkdir()
    same = [wheels.write_wheel(tmp_path, FILES, tags, EPOCH) for tags in ("any", "linux_x86_64")]
    assert wheels.faults(same) == []
    (found,) = wheels.faults([*same, wheels.write_wheel(tmp_path / "sub", other, "any", EPOCH)])
    assert "other metadata" in found
    monkeypatch.setattr(wheels, "LARGEST", 100)
    assert len(wheels.faults(same)) == 2


@pytest.mark.parametrize(("symbols", "count"), [(b"\0GLIBC_2.2.5\0GLIBC_2.17\0", 0), (b"\0GLIBC_2.29\0GLIBC_2.2.5", 1)])
def test_an_object_for_a_newer_glibc_is_a_fault(tmp_path, symbols, count):
    path = wheels.write_wheel(tmp_path, FILES | {"a/x.so": symbols}, wheels.PLATFORMS["linux-x86_64"].tags, EPOCH)
    assert len(wheels.faults([path])) == count


@pytest.mark.slow
def test_all_distributions_have_the_same_metadata_and_the_same_bytes_again(tmp_path, monkeypatch):
    monkeypatch.setattr(wheels, "AHEAD", tmp_path)
    for platform in wheels.PLATFORMS:
        for ending in ("so", "txt", "tmp"):
            (tmp_path / f"{platform}-v2.{ending}").write_bytes(platform.encode())
    (tmp_path / "plan9-mips-v1.so").touch()  # of a platform that gets no wheel
    written = wheels.make(tmp_path / "first", EPOCH)
    before = os.umask(0o077)
    try:
        again = wheels.make(tmp_path / "second", EPOCH)
    finally:
        os.umask(before)
    assert [one.name for one in written] == [one.name for one in again]
    assert [one.read_bytes() for one in written] == [one.read_bytes() for one in again]
    assert len({wheels.metadata(one) for one in written}) == 1
    assert len(written) == 2 + len(wheels.PLATFORMS)
    sdist, pure, *compiled = written
    with tarfile.open(sdist) as archive:
        assert not any("kernels/ahead" in name for name in archive.getnames())
    files = wheels.read_wheel(pure)
    assert not any("kernels/ahead" in name for name in files)
    for path, platform in zip(compiled, wheels.PLATFORMS, strict=True):
        more = wheels.read_wheel(path)
        added = {f"detmap/kernels/ahead/{platform}-v2.{ending}" for ending in ("so", "txt")}
        assert more.keys() - files.keys() == added
        assert {name for name in files if files[name] != more[name]} == {
            name for name in files if name.endswith("dist-info/WHEEL")
        }
    kernels = {name for name in files if name.startswith("detmap/kernels/")}
    sources = {str(path.relative_to(ROOT)): path.read_bytes() for path in ROOT.glob("detmap/kernels/*.py")}
    assert {name: files[name] for name in kernels} == sources  # compiled kernels go by the digest of these
    assert sum(name.rpartition("licenses/scripts/ahead/licences/")[1] != "" for name in files) == len(NUMBA)


@pytest.mark.skipif(None in NUMBA, reason="this numba keeps its licences elsewhere")
def test_the_licences_of_numba_are_those_of_numba():
    ours = [
        (ROOT / "scripts/ahead/licences" / f"{name}.txt").read_text("utf-8") for name in ("numba", "numba-third-party")
    ]
    assert ours == NUMBA


def needs():
    """The unconditional dependencies of pyproject.toml."""
    text = re.search(r"^dependencies = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text("utf-8"), re.S | re.M)[1]
    return [Requirement(one) for one in re.findall(r'^\s*"(.*?)"', text, re.M)]


def test_numba_is_needed_where_no_wheel_has_compiled_kernels():
    (numba,) = [one for one in needs() if one.name == "numba"]
    kinds = [(one.sys_platform, one.platform_machine) for one in wheels.PLATFORMS.values()]
    asked = {
        kind: numba.marker.evaluate({"sys_platform": kind[0], "platform_machine": kind[1]}) for kind in kinds + OTHERS
    }
    assert asked == dict.fromkeys(kinds, False) | dict.fromkeys(OTHERS, True)


@pytest.mark.parametrize(
    ("tag", "heading", "fault"),
    [
        ("v1.2.3", "[1.2.3] - 2026-01-31", None),
        ("1.2.3", "[1.2.3] - 2026-01-31", "push the tag v1.2.3"),
        ("v1.2.4", "[1.2.4] - 2026-01-31", "push the tag v1.2.3"),
        ("v1.2.3", "[Unreleased]", "must be called [1.2.3]"),
        ("v1.2.3", "[1.2.3]", "must be called [1.2.3]"),
        ("v1.2.3", "[1x2.3] - 2026-01-31", "must be called [1.2.3]"),
    ],
)
def test_what_may_be_published(tag, heading, fault):
    found = script("check-release").fault(tag, '__version__ = "1.2.3"\n', f"# Changelog\n\n## {heading}\n\n## [1.0]\n")
    assert found is None if fault is None else fault in found


def test_scripts_that_workflows_and_pages_run_can_be_run():
    pages = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".ci" / "run", *ROOT.glob("*.md")]
    run = {
        (path.name, name)
        for path in pages
        for name in re.findall(r"(?:^|run: |\$ )(scripts/[\w.-]+)", path.read_text("utf-8"), re.M)
    }
    assert {name for page, name in run if page == "release.yml"} >= {"scripts/build", "scripts/test-wheel"}
    assert {(page, name) for page, name in run if not os.access(ROOT / name, os.X_OK)} == set()
