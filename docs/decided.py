"""The parts of pages that follow from declarations (protocols, conventions, metrics, notices, checks), and notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from detmap.checks import CODES
from detmap.data.notices import NOTICES
from detmap.decisions import YES_OR_NO, Decision, apart, decisions_of, rows
from detmap.detection.protocols import COCO, PRESETS, USERS, Protocol
from detmap.results import to_markdown
from detmap.retrieval import CONVENTIONS, METRICS, Convention

NOTEBOOKS = Path(__file__).resolve().parent / "notebooks"


def protocols() -> str:
    """What every protocol decides."""
    return "\n\n".join([*_lines(PRESETS), _compared(PRESETS), "## Each decision", _decisions(Protocol)])


def conventions() -> str:
    """What every convention decides, and who uses it."""
    parts = []
    for name, one in CONVENTIONS.items():
        said = one.describe().partition(": ")[2]
        parts.append(f"`{name}`\n: {_text(one.users)}.\n\n  AP: {_text(one.formula)}. Decides: {_text(said)}.")
    return "\n\n".join([*parts, "## Each decision", _decisions(Convention)])


def metrics() -> str:
    """The metrics of rankings."""
    return to_markdown(
        [
            {"metric": f"`{one.name}`", "also": ", ".join(f"`{name}`" for name in one.aliases), "is": one.formula}
            for one in METRICS
        ],
        markup=True,
    )


def notices() -> str:
    """Every notice there is, in words."""
    return to_markdown(
        [
            {"code": f"`{code}`", "means": says.format(n="n", names="names", advice="")}
            for code, says in NOTICES.items()
        ],
        markup=True,
    )


def checks() -> str:
    """Everything that a check can find."""
    return to_markdown(
        [
            {"": row.severity, "code": f"`{code}`", "finding": row.says.format(many="…"), "remedy": row.remedy}
            for code, row in CODES.items()
        ],
        markup=True,
    )


def notebook(path: Path) -> str:
    """A notebook with its outputs, its headings a level lower."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"^#", "##", text, flags=re.M))
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            shown = output.get("data", {"text/plain": output.get("text", [])})
            html = "".join(shown.get("text/html", []))
            plain = "".join(shown["text/plain"]).rstrip("\n")
            parts.append(f"```{{raw}} html\n{html}\n```" if html else f"```text\n{plain}\n```")
    return "\n\n".join(parts)


def write(folder: Path) -> None:
    """Write each part into a file of its own; one that stays the same is not touched."""
    folder.mkdir(exist_ok=True)
    parts = {make.__name__: make() for make in (protocols, conventions, metrics, notices, checks)}
    parts |= {f"notebook-{path.stem}": notebook(path) for path in NOTEBOOKS.glob("*.ipynb")}
    for name, part in parts.items():
        path, text = folder / f"{name}.md", part + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _lines(presets: Mapping[str, Protocol]) -> Iterable[str]:
    """What each preset says of itself in one line."""
    for name, one in presets.items():
        user = f"{_text(USERS[name])}. " if name in USERS else ""
        unlike = f"\n\n  Unlike `coco`: {_text(apart(one, COCO))}." if name in USERS else ""
        yield f"`{name}`\n: {user}Decides: {_text(one.describe().partition(': ')[2])}.{unlike}"


def _compared(presets: Mapping[str, Protocol]) -> str:
    """A row per decision, a column per preset."""
    columns = {name: {row["decision"]: row["value"] for row in rows(one)} for name, one in presets.items()}
    first = next(iter(columns.values()))
    return to_markdown(
        [
            {"decision": f"`{key}`", **{name: made[key].replace("/", " / ") for name, made in columns.items()}}
            for key in first
        ],
        markup=True,
    )


def _decisions(of: type) -> str:
    """What each decision means, what it affects, what it can be, and its flag."""
    return "\n\n".join(_decision(name, made) for name, made in decisions_of(of).items() if made.affects)


def _decision(name: str, made: Decision) -> str:
    more = [f"Affects the {_and(made.affects)}."]
    if made.allowed and made.allowed is not YES_OR_NO:
        more.append(f"Can be {_and([f'`{one}`' for one in made.allowed], 'or')}.")
    if made.flag is not None:
        more.append(f"On the command line: `{made.flag.name}`.")
    return f"`{name}`\n: {_text(made.says)}\n\n  {' '.join(more)}"


def _and(words: Sequence[str] | Any, last: str = "and") -> str:
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else str(end)


def _text(words: str) -> str:
    """Words as Markdown shows them: nothing in them is markup but code in backticks."""
    parts = words.replace("``", "`").split("`")
    parts[::2] = (re.sub(r"([\\*_\[\]<>])", r"\\\1", part) for part in parts[::2])
    return "`".join(parts)
