#!/usr/bin/env python3
"""Make the wheels and the source distribution of a release in a folder: ``scripts/wheels.py [FOLDER] [--pure]``.

The files come from the checkout as it stands, without what git ignores. There is a pure wheel, and one for each platform
for which detmap/kernels/ahead holds compiled kernels (scripts/build-kernels makes them). All have the same metadata, byte
for byte, because tools that write lock files read that of one wheel. The same files give the same bytes, wherever and
whenever this runs: times are SOURCE_DATE_EPOCH, by default the time of the last commit. It needs the setuptools of
scripts/build-requirements.txt; scripts/build installs it and calls this.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

#: Where scripts/build-kernels leaves objects, by ``PLATFORM-LEVEL.so`` with a description ``.txt`` beside each.
AHEAD = ROOT / "detmap" / "kernels" / "ahead"
_IN_WHEEL = "detmap/kernels/ahead/"

#: Maximum size of a wheel in bytes.
LARGEST = 5_000_000


class Platform(NamedTuple):
    """A platform that gets a wheel with compiled kernels: its tags, and what environment markers say there."""

    tags: str
    sys_platform: str
    platform_machine: str


#: By the name of an object's platform. ``dependencies`` in pyproject.toml asks for numba everywhere else.
PLATFORMS = {
    "linux-x86_64": Platform("manylinux_2_17_x86_64.manylinux2014_x86_64", "linux", "x86_64"),
}


def read_wheel(path: Path) -> dict[str, bytes]:
    """Return the files of a wheel by name, without its RECORD."""
    with zipfile.ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist() if not name.endswith((".dist-info/RECORD", "/"))}


def write_wheel(folder: Path, files: dict[str, bytes], tags: str, epoch: int) -> Path:
    """Write files as a wheel for any Python 3 with the given platform tags, and return its path."""
    pure = tags == "any"
    (about,) = (name for name in files if name.endswith(".dist-info/WHEEL"))
    home = about.rpartition("/")[0]
    lines = [line for line in files[about].decode().splitlines() if not line.startswith(("Root-Is-Purelib", "Tag"))]
    lines += [f"Root-Is-Purelib: {str(pure).lower()}", *(f"Tag: py3-none-{tag}" for tag in tags.split("."))]
    files = files | {about: ("\n".join(filter(None, lines)) + "\n").encode()}
    # What installers read stands at the end, as the specification of wheels recommends.
    names = sorted(files, key=lambda name: (name.startswith(home), name))
    record = "".join(f"{name},{_digest(files[name])},{len(files[name])}\n" for name in names)
    files[f"{home}/RECORD"] = f"{record}{home}/RECORD,,\n".encode()
    path = folder / f"{home.removesuffix('.dist-info')}-py3-none-{tags}.whl"
    stamp = time.gmtime(max(epoch, 315532800))[:6]  # a zip file knows no time before 1980
    with zipfile.ZipFile(path, "w") as wheel:
        for name in [*names, f"{home}/RECORD"]:
            entry = zipfile.ZipInfo(name, stamp)
            entry.create_system, entry.external_attr = 3, 0o100644 << 16  # a regular file of Unix, readable by all
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, files[name], compresslevel=9)
    return path


def _digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_sdist(folder: Path, made: Path, epoch: int) -> Path:
    """Write a source distribution anew, with nothing in it of the time and the user of its making."""
    with tarfile.open(made) as given:
        files = {one.name: given.extractfile(one).read() for one in given.getmembers() if one.isfile()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(files[name]), epoch, 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    path = folder / made.name
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))
    return path


def metadata(path: Path) -> bytes:
    """Return the metadata of a wheel or a source distribution."""
    if path.suffix == ".whl":
        (found,) = (data for name, data in read_wheel(path).items() if name.endswith(".dist-info/METADATA"))
        return found
    with tarfile.open(path) as archive:
        (found,) = (one for one in archive.getmembers() if re.fullmatch(r"[^/]+/PKG-INFO", one.name))
        return archive.extractfile(found).read()


def objects() -> dict[str, dict[str, bytes]]:
    """Return the files of compiled kernels by platform, under their names in a wheel."""
    found: dict[str, dict[str, bytes]] = {}
    for path in sorted(AHEAD.glob("*-*")):
        platform = path.stem.rpartition("-")[0]
        if platform in PLATFORMS and path.suffix != ".tmp":
            if path.suffix == ".txt" and (stale := changed_since(path)):
                raise SystemExit(f"{path} was built from another {stale}: scripts/build-kernels builds it again")
            found.setdefault(platform, {})[_IN_WHEEL + path.name] = path.read_bytes()
    return found


def changed_since(description: Path) -> str | None:
    """Return the first file of kernels that is another one than an object was built from; see `kernels/_ahead.py`."""
    for line in description.read_text("utf-8").splitlines():
        word, _, rest = line.partition(" ")
        name, *seen = rest.split(" ")
        if word == "source":
            content = (AHEAD.parent / name).read_bytes()
            if seen != [str(len(content)), f"{zlib.crc32(content):08x}"]:
                return name
    return None


def export(folder: Path, epoch: int) -> None:
    """Copy the files of the checkout that git does not ignore, with the same permissions and times everywhere."""
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    for name in filter(None, subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file() and not name.startswith(_IN_WHEEL):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            target.chmod(0o644)
            os.utime(target, (epoch, epoch))


def make(folder: Path, epoch: int, pure_only: bool = False) -> list[Path]:
    """Make the distributions in a folder, which is emptied before."""
    with tempfile.TemporaryDirectory() as work:
        tree, unpacked = Path(work, "tree"), Path(work, "unpacked")
        export(tree, epoch)
        sdist = _run_backend("build_sdist", tree, work)
        shutil.unpack_archive(sdist, unpacked)
        (source,) = unpacked.iterdir()
        pure = _run_backend("build_wheel", source, work)  # of the source distribution, which shows that it is whole
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        files = read_wheel(pure)
        written = [write_sdist(folder, sdist, epoch), write_wheel(folder, files, "any", epoch)]
        compiled = {} if pure_only else objects()
        if not pure_only and (absent := set(PLATFORMS) - set(compiled)):
            raise SystemExit(f"no object for {', '.join(absent)}: scripts/build-kernels makes it; or give --pure")
        written += [
            write_wheel(folder, files | found, PLATFORMS[platform].tags, epoch) for platform, found in compiled.items()
        ]
    return written


def newest_glibc(files: dict[str, bytes]) -> int:
    """Return the minor version of the newest glibc that files of a wheel name as needed, 0 where they name none."""
    named = (re.findall(rb"\0GLIBC_2\.(\d+)", data) for name, data in files.items() if name.endswith(".so"))
    return max((int(one) for found in named for one in found), default=0)


def _run_backend(hook: str, tree: Path, folder: str) -> Path:
    """Run a hook of setuptools in a tree of sources, and return the distribution that it leaves in a folder."""
    program = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
    command = [sys.executable, "-c", program, hook, folder]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}")
    return Path(folder, done.stdout.splitlines()[-1])


def faults(written: list[Path]) -> list[str]:
    """Return what is wrong with distributions: metadata that differ, wheels that are too large or need a newer glibc."""
    first, *others = written
    found = [f"{one.name} has other metadata than {first.name}" for one in others if metadata(one) != metadata(first)]
    for one in written:
        allowed = re.search(r"-manylinux_2_(\d+)", one.name)
        if allowed and (needed := newest_glibc(read_wheel(one))) > int(allowed[1]):
            found.append(f"{one.name} holds an object that needs glibc 2.{needed}: link it with ziglang")
    return found + [
        f"{one.name} has {one.stat().st_size:,} bytes, more than {LARGEST:,}"
        for one in written
        if one.stat().st_size > LARGEST
    ]


def _epoch() -> int:
    given = os.environ.get("SOURCE_DATE_EPOCH")
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(given or subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", help="default: dist")
    parser.add_argument("--pure", action="store_true", help="no wheels with compiled kernels")
    options = parser.parse_args()
    written = make(options.folder, _epoch(), options.pure)
    for one in written:
        print(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.stat().st_size:>9,} bytes  {one.name}")
    if found := faults(written):
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
