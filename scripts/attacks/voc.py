"""VOC's folders and archives: links, suffixes, stray files, damage."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import naive
import numpy as np

from attacks import REFUSE, Attack, Must
from attacks.documents import ANYTHING, damage

Files = dict[str, bytes]


def scene(rng: np.random.Generator) -> tuple[Files, Files]:
    """Return the texts of annotations and of results, by file name."""
    classes = ["cat", "dog", "potted plant"][: int(rng.integers(1, 4))]
    annotations, lines = {}, {name: [] for name in classes}
    for i in range(int(rng.integers(1, 5))):
        image, objects = f"{i:06d}", []
        for _ in range(int(rng.integers(0, 4))):
            name, hard = str(rng.choice(classes)), int(rng.random() < 0.2)
            x, y, w, h = (int(v) for v in rng.integers(1, 60, 4))
            corners = (x, y, x + w, y + h)
            tags = "".join(f"<{t}>{v}</{t}>" for t, v in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True))
            objects.append(f"<object><name>{name}</name><difficult>{hard}</difficult><bndbox>{tags}</bndbox></object>")
            if rng.random() < 0.8:
                moved = [v + int(rng.integers(-1, 2)) for v in corners[:2]] + list(corners[2:])
                lines[name].append(f"{image} {int(rng.integers(1, 9)) / 8} {' '.join(map(str, moved))}")
        annotations[f"{image}.xml"] = (
            f"<annotation><filename>{image}</filename>{''.join(objects)}</annotation>".encode()
        )
    results = {f"comp4_det_test_{name}.txt": "\n".join(own).encode() for name, own in lines.items()}
    return annotations, results


def expected(annotations: Files, results: Files) -> list[float]:
    """AP under VOC2007's rule, at IoU 0.5, per class that has objects, in the order of names; then their mean."""
    truth = {name[: -len(".xml")]: naive.read_voc_xml(data.decode()) for name, data in annotations.items()}
    classes = sorted({one["name"] for listed in truth.values() for one in listed})
    found = {}
    for file, data in results.items():
        rows = [line.split() for line in data.decode().splitlines() if line.split()]
        boxes = [[float(v) for v in row[2:]] for row in rows]
        found[file[len("comp4_det_test_") : -len(".txt")]] = (
            [row[0] for row in rows],
            [float(row[1]) for row in rows],
            boxes,
        )
    values = [one["ap_11"] for one in naive.voc_evaluate(classes, truth, found).values()]
    return [v for v in values if not np.isnan(v)]


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Files as a folder, an archive or a mapping, with links for files, other suffixes, stray files, or damage."""
    import detmap

    annotations, results = scene(rng)
    must, what = Must(value=expected(annotations, results)), ""
    if not any(b"<object>" in data for data in annotations.values()) or not results:
        must = Must(value=ANYTHING, refuse=True)
    kind = rng.integers(5)
    side = int(rng.integers(2))
    files = [dict(annotations), dict(results)]
    if kind == 0:
        name = str(rng.choice(list(files[side])))
        files[side][name], what = damage(rng, files[side][name]), f"damaged {name}"
        must = Must(value=after_damage(files), refuse=True)
    elif kind == 1:
        extra = str(rng.choice(["notes.txt", "README", "._000000.xml", ".DS_Store", "results.csv"]))
        files[side][extra], what = b"not of interest", f"stray {extra}"
    sources: list[Any] = []
    for i, part in enumerate(files):
        source, how = laid_out(
            rng, part, folder / f"part{i}", upper=kind == 2 and side == i, links=kind == 3 and side == i
        )
        sources.append(source)
        what += f" {how}"
    if kind == 4 and isinstance(sources[side], Path) and sources[side].is_dir():
        ending = (".xml", ".txt")[side]
        name = f"comp4_det_test_zebra{ending}" if side else f"zebra{ending}"
        os.symlink("nowhere/at/all", sources[side] / name)
        must, what = REFUSE, what + " dangling link"

    def run() -> Any:
        truth = detmap.read_voc(sources[0])
        found = detmap.read_voc_results(sources[1], truth)
        result = detmap.evaluate(truth, found, "voc2007")
        values = [float(row["AP"]) for row in result.per_category]
        return [v for v in values if not np.isnan(v)]

    return Attack(f"voc{what}", run, must)


def after_damage(files: list[Files]) -> Any:
    """The value where the damaged files still are what they should be; else it is not this file's affair."""
    try:
        for data in files[0].values():
            root = ElementTree.fromstring(data)
            if root.tag != "annotation" or b"<!" in data or b"<?" in data:
                return ANYTHING
            for one in root.iter("object"):
                corners = [float(one.findtext(f"bndbox/{tag}") or "x") for tag in ("xmin", "ymin", "xmax", "ymax")]
                strange = (one.findtext("difficult") or "").strip() not in ("0", "1") or not (
                    one.findtext("name") or ""
                ).strip()
                if strange or corners[2] < corners[0] or corners[3] < corners[1]:
                    return ANYTHING
        images = {name[: -len(".xml")] for name in files[0]}
        for data in files[1].values():
            for row in (line.split() for line in data.decode().splitlines() if line.split()):
                values = [float(v) for v in row[1:]]
                if len(row) != 6 or row[0] not in images or "_" in "".join(row[1:]) or not np.isfinite(values).all():
                    return ANYTHING
                if values[3] < values[1] or values[4] < values[2]:
                    return ANYTHING
        return ANYTHING if b"\0" in b"".join(files[1].values()) else expected(*files)
    except (ValueError, ElementTree.ParseError, AttributeError, TypeError, LookupError):
        return ANYTHING


def laid_out(rng: np.random.Generator, files: Files, folder: Path, *, upper: bool, links: bool) -> tuple[Any, str]:
    """Lay files out as a folder, a tar archive, or a mapping."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    how = ["folder", "tar", "tar.gz"][int(rng.integers(3))]
    linked = {name for name in files if links and rng.random() < 0.5}

    def shown(name: str) -> str:
        stem, ending = os.path.splitext(name)
        return stem + ending.upper() if upper else name

    if how == "folder":
        (folder / "store").mkdir(exist_ok=True) if linked else None
        inside = folder / "inside"
        inside.mkdir()
        for name, data in files.items():
            if name in linked:
                (folder / "store" / name).write_bytes(data)
                os.symlink(f"../store/{name}", inside / shown(name))
            else:
                (inside / shown(name)).write_bytes(data)
        return inside, f"folder upper={upper} links={sorted(linked)}"
    path = folder / f"packed.{how}"
    with tarfile.open(path, "w:gz" if how.endswith("gz") else "w") as archive:
        for name, data in files.items():
            stored = f"store/{name}.data" if name in linked else f"inside/{shown(name)}"
            member = tarfile.TarInfo(stored)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
            if name in linked:
                link = tarfile.TarInfo(f"inside/{shown(name)}")
                hard = rng.random() < 0.5
                link.type, link.linkname = (tarfile.LNKTYPE, stored) if hard else (tarfile.SYMTYPE, f"../{stored}")
                archive.addfile(link)
    return path, f"{how} upper={upper} links={sorted(linked)}"
