"""Runs the notebooks of docs/notebooks cell by cell, and puts what they show into them, and into Markdown for the site.

scripts/run_notebooks.py    # writes the outputs into the notebooks; tests/project/test_notebook_examples.py compares them

Cells are run in this process, as a kernel would: the value of a cell's last expression is its output, as text and as HTML.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "docs" / "notebooks"


def cell_outputs(code: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run a cell, and return its outputs in the form of nbformat 4."""
    body = ast.parse(code).body
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    out, outputs = io.StringIO(), []
    with contextlib.redirect_stdout(out):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(last, "cell", "eval"), names) if last else None
    if out.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": out.getvalue().splitlines(keepends=True)})
    if value is not None:
        shown = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            shown = {"text/html": value._repr_html_().splitlines(keepends=True), **shown}
        outputs.append({"data": shown, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs


def run(path: Path) -> dict[str, Any]:
    """Return a notebook with the outputs of its cells; run it in a folder that holds the fixtures."""
    notebook = json.loads(path.read_text("utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
            cell["outputs"] = cell_outputs("".join(cell["source"]), names, count)
    return notebook


def main() -> None:
    """Run all notebooks, and write them with their outputs."""
    sys.path.insert(0, str(ROOT))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "fixtures", Path(folder, "fixtures"))
            os.chdir(folder)
            text = json.dumps(run(path), indent=1, ensure_ascii=False) + "\n"
            os.chdir(ROOT)
        path.write_text(text, "utf-8")
        print(f"{path.relative_to(ROOT)}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
