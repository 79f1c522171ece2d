"""The command line: .npz files that are damaged or hostile, paths that are no files, and outputs that cannot be written."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.galleries import average_precisions, market

Parts = list[tuple[str, bytes]]


class Bomb:
    """What leaves a file behind where it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return os.mkdir, (os.fspath(self.place),)


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    return archive(rng, folder) if rng.random() < 0.6 else places(rng, folder)


def stored(array: Any, pickled: bool = False) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=pickled)
    return out.getvalue()


def header(shape: str, descr: str, order: str = "False", version: bytes = b"\1\0") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version == b"\1\0" else 4, "little") + text


def zipped(parts: Parts, packed: bool) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as file:
        for name, data in parts:
            with file.open(zipfile.ZipInfo(name), "w") as member:
                member.write(data)
    return out.getvalue()


def called(words: list[str]) -> tuple[int, str, str]:
    """Run a command in this process: its exit code and what it says."""
    from detmap.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as stop:  # argparse's
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def orderly(code: int, err: str) -> str:
    """What is wrong with how a command ended; nothing, one hopes. A batch says of each file what is wrong with it."""
    lines = [line for line in err.splitlines() if not line.startswith("detmap: note: ")]
    if code == 2 and len(lines) == 1 and lines[0].startswith("detmap: error: "):
        return ""
    said = [line for line in lines if code == 3 and not line.startswith("detmap: error: ")] or lines * (code != 3)
    return "" if code in (0, 3) and not said else f"exit code {code}: {err[-800:]}"


def archive(rng: np.random.Generator, folder: Path) -> Attack:
    """Features in an .npz file, one array of it replaced, or the whole damaged."""
    _, queries, gallery = market(rng)
    points = rng.integers(0, 8, (len(queries) + len(gallery), 2)).astype(float)
    asked, given = points[: len(queries)], points[len(queries) :]
    arrays = {"query_features": asked, "gallery_features": given, "query_ids": queries, "gallery_ids": gallery}
    value = average_precisions(((asked[:, None] - given[None]) ** 2).sum(axis=2), queries, gallery)
    scored = [v for v in value if not np.isnan(v)]
    mean = round(float(np.mean(scored)), 12) if scored else None
    parts = [(f"{name}.npy", stored(array)) for name, array in arrays.items()]
    mark = folder / "unpickled"
    name = str(rng.choice(list(arrays)))
    at = list(arrays).index(name)
    bad = hostile(parts[at][1], mark)
    kind = str(rng.choice(["good", "good", "cut", "flip", "flip", "twice", "nested", *bad]))
    damaged = kind != "good"
    if kind in bad:
        parts[at] = parts[at][0], bad[kind]
    elif kind == "twice":
        parts.append((parts[at][0].removesuffix(".npy" if rng.random() < 0.5 else ""), parts[at][1]))
    data = zipped(parts, bool(rng.random() < 0.5))
    if kind == "cut":
        data = data[: int(rng.integers(len(data)))]
    elif kind == "flip":
        spoilt = bytearray(data)
        spoilt[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        data = bytes(spoilt)
    elif kind == "nested":
        data = zipped([("inner.npz", data)], False)
    path = folder / "features.npz"
    path.write_bytes(data)

    def run() -> Any:
        code, out, err = called(["reid", str(path), "--metrics", "mAP", "--metric", "sqeuclidean", "--format", "json"])
        if mark.exists():
            mark.rmdir()
            return "a pickle was loaded"
        wrong = orderly(code, err)
        if wrong or code:
            return wrong or "refused"
        found = first_number(json.loads(out), "mAP")
        return "the number" if mean is not None and round(found, 12) == mean else f"says {found}, not {mean}"

    # Fields of the ZIP that nobody reads may be changed, and an array of another type may hold the same numbers.
    allowed = ["refused", "the number"] if damaged else ["the number" if scored else "refused"]
    return Attack(f"npz {kind} {name}", lambda: run_among(run, allowed), Must(value="fine"), len(data))


def run_among(run: Callable[[], Any], allowed: list[str]) -> Any:
    said = run()
    return "fine" if said in allowed else said


def first_number(document: Any, name: str) -> float:
    """The first number of this name, wherever it is."""
    if isinstance(document, dict):
        if isinstance(document.get(name), int | float):
            return float(document[name])
        document = list(document.values())
    if isinstance(document, list):
        for one in document:
            found = first_number(one, name)
            if not np.isnan(found):
                return found
    return float("nan")


def hostile(good: bytes, mark: Path) -> dict[str, bytes]:
    """Members of an .npz file that are no array, or one of objects, or another than its header says."""
    return {
        "pickle": stored(np.array([Bomb(mark)], object), pickled=True),
        "bare pickle": pickle.dumps(Bomb(mark)),
        "objects": header("(1,)", "'|O'") + pickle.dumps([Bomb(mark)]),
        "objects within": header("(1,)", "[('a', '|O')]") + pickle.dumps([Bomb(mark)]),
        "empty": b"",
        "magic": good[:6],
        "cut": good[:-1],
        "huge": header("(1000000000000, 1000000)", "'<f8'"),
        "overflow": header("(4611686018427387904, 4611686018427387904)", "'<f8'"),
        "negative": header("(-1, 2)", "'<f8'") + bytes(64),
        "no shape": header("'x'", "'<f8'"),
        "code": header("(__import__('os'),)", "'<f8'"),
        "unclosed": header("((((", "'<f8'"),
        "deep": header("(" * 9000 + ")" * 9000, "'<f8'"),
        "old": header("(1L, 2L)", "'<f8'") + bytes(16),
        "long header": b"\x93NUMPY\2\0\xff\xff\xff\x7f",
        "version": b"\x93NUMPY\x09\0" + good[8:],
        "no dtype": header("(1,)", "'zz'"),
        "records": header("(1,)", "[('a', '<f8')]") + bytes(8),
        "complex": header("(1, 2)", "'<c16'") + bytes(32),
        "dates": header("(1, 2)", "'<M8[s]'") + bytes(16),
        "words": header("(1, 2)", "'<U2'") + bytes(16),
        "void": header("(1, 2)", "'|V8'") + bytes(16),
        "flat": header("()", "'<f8'") + bytes(8),
        "none": header("(0, 2)", "'<f8'"),
        "nan": header("(1, 2)", "'<f8'") + np.full(2, np.nan).tobytes(),
    }


def places(rng: np.random.Generator, folder: Path) -> Attack:
    """A path that is no file, as input or output of a command."""
    for name, text in {
        "truth.json": '{"images":[{"id":1}],"categories":[{"id":1,"name":"a"}],"annotations":[{"id":1,"image_id":1,'
        '"category_id":1,"bbox":[0,0,9,9],"area":81,"iscrowd":0}]}',
        "found.json": '[{"image_id":1,"category_id":1,"bbox":[0,0,9,9],"score":0.5}]',
        "qrels": "1 0 a 1\n",
        "run": "1 Q0 a 1 0.5 t\n",
    }.items():
        (folder / name).write_text(text)
    odd = folder / "odd"
    if not odd.exists():
        odd.mkdir()
        (odd / "folder.json").mkdir()
        (odd / "loop.json").symlink_to("loop.json")
        (odd / "nowhere.json").symlink_to("not/there")
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(os.fspath(odd / "s"))
    strange = ["/dev/null", "/dev/full", "/proc/self/mem", "/proc/self/status", ".", "", "\udcff", "a\nb", "a\0b"]
    strange += ["a" * 300, f"{folder}/run/x", "/nonexistent/x", *map(str, sorted(odd.iterdir()))]
    path = strange[int(rng.integers(len(strange)))]
    truth, found, qrels, run_file = (str(folder / name) for name in ("truth.json", "found.json", "qrels", "run"))
    commands = [
        ["eval", truth, found],
        ["compare", truth, found, found],
        ["trec", qrels, run_file],
        ["batch", truth, found],
    ]
    words = list(commands[int(rng.integers(len(commands)))])
    if rng.random() < 0.6 or "\0" in path:  # which no system takes as an argument
        words[int(rng.integers(1, len(words)))] = path
        words += ["--out", str(folder / "out")] if words[0] == "batch" else []
    elif path in ("/dev/null", ".") and words[0] == "batch":
        return Attack("nothing", lambda: "fine", Must(value="fine"))
    else:
        words += ["--out", path]

    def run() -> Any:
        before = Path.cwd()
        os.chdir(folder)  # what is written to a strange relative path is written there
        try:
            code, _, err = called(words)
        finally:
            os.chdir(before)
        return orderly(code, err) or "fine"

    return Attack(f"detmap {words}", run, Must(value="fine"))
