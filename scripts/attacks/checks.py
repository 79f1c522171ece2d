"""`detmap check` on hostile files of every kind: a well-formed report in each of its forms, or one line of error."""

from __future__ import annotations

import copy
import html.parser
import json
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.commands import called
from attacks.documents import damage, strange_fields
from attacks.scenes import scene as coco
from attacks.texts import lay_out, lines, scene, table, yolo

HOSTILE: list[Any] = [
    "<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "&amp;</dd></section>", "\x1b[31m\u202e\0", "a\nb\r",
    "", "é" * 3000, "|`*[x](javascript:y)", None, True, [], {}, [[[1]]], -1, 0, -0.0, 0.5, 1e-320, 1e150, -1e308, 2**53 + 1,
    10**30, float("nan"), float("inf"), "1", "0_1", "+1", "\u0661",
    "NaN", [1e308] * 4, [0, 0, 0, 0], [5, 5, -1, -1], [1, 2, 3], ["1", 2, 3, 4],
    {"size": [5, 5], "counts": "0"}, {"size": [10**9, 10**9], "counts": [10**18]}, [[0, 0, 1e300, 0, 0, 1]], [[1, 2]], [[]],
]  # fmt: skip

#: The tags of a report, and those of them that are not closed.
TAGS = {"section", "h2", "dl", "dt", "dd", "strong", "code", "div", "table", "thead", "tbody", "tr", "th", "td", "svg"}
VOID = {"br", "rect"}


class Page(html.parser.HTMLParser):
    """What is wrong with a fragment of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += [f"{tag} is open" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS | VOID or any(
            name.startswith("on") or name in ("src", "href", "style") for name, _ in attrs
        ):
            self.wrong.append(f"a live <{tag} {attrs}>")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(f"</{tag}> closes nothing")


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Two files and how they are checked."""
    kind = str(rng.choice(["coco", "coco", "coco", "schema", "trec", "yolo", "csv", "text"]))
    make = {"coco": documents, "schema": documents, "trec": rankings}.get(kind, other_formats)
    files, names, words = make(rng, kind)
    if rng.random() < 0.6:
        name = str(rng.choice(list(files)))
        files[name] = damage(rng, files[name])
    paths = [str(path) for path in (lay_out(folder / "files", files) / name for name in names)]
    form = str(rng.choice(["table", "json", "csv", "markdown", "html"]))
    words = ["check", *words, *paths, "--format", form, *(["--strict"] if rng.random() < 0.3 else [])]
    size = sum(map(len, files.values()))
    return Attack(" ".join(words[:-1]), lambda: wrong(words, form), Must(value=""), size)


def wrong(words: list[str], form: str) -> str:
    """What is wrong with how a check ended, and with what it says; nothing, one hopes."""
    code, out, err = called(words)
    complaints = [line for line in err.splitlines() if not line.startswith("detmap: note: ")]
    if code == 2:
        fine = len(complaints) == 1 and complaints[0].startswith("detmap: error: ") and complaints[0].isprintable()
        return "" if fine and not out else f"exit code 2: {out[-400:]}{err[-800:]}"
    if code not in (0, 1) or complaints:
        return f"exit code {code}: {err[-800:]}"
    if any(not letter.isprintable() and letter != "\n" for letter in out):
        return f"what is not printable: {out!r}"[:800]
    if form == "html":
        return "; ".join(Page(out).wrong)
    if form != "json":
        return "" if out.strip() else "nothing is said"
    report = json.loads(out, parse_constant=lambda text: [][0])  # neither NaN nor infinity is JSON
    severities = {one["severity"] for one in report["findings"]}
    expected = "error" in severities or ("--strict" in words and "warning" in severities)
    if code != expected:
        return f"exit code {code} with {severities}"
    odd = [
        one
        for one in report["findings"]
        if one["count"] < 0 or not one["says"].isprintable() or len(one["records"]) > 10
    ]
    return f"{odd[0]}"[:800] if odd else ""


def documents(rng: np.random.Generator, kind: str) -> tuple[dict[str, bytes], list[str], list[str]]:
    """COCO's files, values of which are replaced by hostile ones; or nothing at all in a list."""
    truth, results = coco(rng)
    truth, results = copy.deepcopy(truth), copy.deepcopy(results)
    records = [*truth["images"], *truth["categories"], *truth["annotations"], *results]
    for _ in range(int(rng.integers(0, 5)) if records else 0):
        record = records[int(rng.integers(len(records)))]
        keys = [*record, "segmentation", "keypoints", "file_name", "name", "width", "num_keypoints", "iscrowd"]
        record[str(rng.choice(keys))] = HOSTILE[int(rng.integers(len(HOSTILE)))]
    for record in records[: int(rng.integers(0, 3))]:
        record.update(strange_fields(rng, record))
    if rng.random() < 0.15:
        truth[str(rng.choice(["images", "categories", "annotations"]))] = []
    if rng.random() < 0.1:
        results = []
    if rng.random() < 0.2:
        for one in results:  # everything in another form at once
            one["bbox"] = one["bbox"][::-1] if isinstance(one.get("bbox"), list) else one.get("bbox")
    files = {"truth.json": json.dumps(truth).encode(), "found.json": json.dumps(results).encode()}
    if kind == "schema":
        return files, ["truth.json", "found.json"], ["--schema"]
    alone = rng.random() < 0.2
    words = ["--train", "truth.json"] if rng.random() < 0.05 else []  # a path that is not there
    return files, ["truth.json"] if alone else ["truth.json", "found.json"], words


def rankings(rng: np.random.Generator, kind: str) -> tuple[dict[str, bytes], list[str], list[str]]:
    """Judgements and a run, with ids that repeat, scores that are no numbers, and fields that are not there."""
    ids = ["1", "01", "q-7", "é", "<b>q</b>", "=1+1", "\\x", "1" * 300]
    sides: list[list[str]] = [[], []]
    for side, most in enumerate((20, 40)):
        for _ in range(int(rng.integers(0, most))):
            query, document = str(rng.choice(ids)), str(rng.choice(["a", "b.txt", "b", *ids]))
            value = str(
                rng.choice(
                    ["0", "1", "2", "-1", "0.5", "1e308", "nan", "inf", "x"], p=[0.3, 0.3, 0.1, 0.1, 0.12, *[0.02] * 4]
                )
            )
            sides[side].append(f"{query} Q0 {document} 1 {value} me" if side else f"{query} 0 {document} {value}")
    blank = str(rng.choice(["\n", "\r\n", "\n\n"]))
    files = {name: blank.join(side).encode() for name, side in zip(("qrels.txt", "run.txt"), sides, strict=True)}
    return files, list(files), ["--trec"]


def other_formats(rng: np.random.Generator, kind: str) -> tuple[dict[str, bytes], list[str], list[str]]:
    """YOLO's folders, CSV, and a file of lines per image."""
    images, classes, rows = scene(rng)
    files: dict[str, bytes] = {}
    for side, scored in (("truth", False), ("found", True)):
        if kind == "yolo":
            made = yolo(images, classes, rows, scored)
        elif kind == "csv":
            made = {"table.csv": table(rows, rng, scored)}
        else:
            made = lines(images, rows, scored)
        files |= {f"{side}/{name}": data for name, data in made.items()}
    names = ["truth/table.csv", "found/table.csv"] if kind == "csv" else ["truth", "found"]
    more = ["--gt-box-format", "xyxy", "--box-format", "xyxy"] if kind == "text" else []
    return files, names, [*more, "--gt-format", kind, "--dt-format", kind]
