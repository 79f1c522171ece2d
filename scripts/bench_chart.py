"""Draws the benchmark's chart from its table: docs/pictures/benchmark.svg from docs/benchmarks.md.

scripts/bench_chart.py    # scripts/bench.py --write calls it

Bars are times on a logarithmic axis; the picture follows the reader's choice of light or dark.
"""

from __future__ import annotations

import math
import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE, PICTURE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "pictures" / "benchmark.svg"

#: Rows of the table that are drawn, by the beginning of their titles, and what stands over their bars.
ROWS = {
    "5,000 images": "500,000 boxes in memory",
    "40 crowded images": "40 crowded images, 200,000 boxes in memory",
    "500,000 detections": "500,000 boxes from files",
    "2,000,000 detections": "2,000,000 boxes from files",
    "495,000 masks": "495,000 masks from files",
    "135,000 poses": "135,000 poses from files",
}
SECONDS = {"ms": 1e-3, "s": 1.0}
WIDTH, LEFT, RIGHT, BAR, GAP, HEAD = 760, 150, 120, 14, 34, 56

_STYLE = """
.page { fill: #ffffff } text { fill: #24292f; font: 13px system-ui, sans-serif }
.title { font-weight: 600 } .small { font-size: 12px } .ours { fill: #0b6fcb } .other { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117 } text { fill: #e6edf3 } .ours { fill: #58a6ff } .other { fill: #6e7681 }
}
"""


def times(page: str) -> dict[str, dict[str, tuple[float, str]]]:
    """Return for each row that is drawn the seconds and the words of each program."""
    table = page.partition("<!-- bench -->\n")[2].partition("<!-- /bench -->")[0]
    programs, _, *lines = [
        [cell.strip() for cell in line.strip("| ").split(" |")] for line in table.splitlines() if line.startswith("|")
    ]
    found = {}
    for line in lines:
        for begin, title in ROWS.items():
            if line[0].startswith(begin):
                cells = dict(zip(programs, line[1:], strict=False))
                read = {name: re.match(r"([\d.,]+) (ms|s)\b", text) for name, text in cells.items()}
                found[title] = {
                    name: (float(one[1].replace(",", "")) * SECONDS[one[2]], cells[name].replace("`", ""))
                    for name, one in read.items()
                    if one
                }
    return found


def chart(found: dict[str, dict[str, tuple[float, str]]]) -> str:
    """Return the drawing of times by row and program."""
    every = [seconds for row in found.values() for seconds, _ in row.values()]
    low, high = math.log10(min(every)) - 0.3, math.log10(max(every))
    room, y, parts = WIDTH - LEFT - RIGHT, HEAD, []
    for title, row in found.items():
        parts.append(f'<text class="title" x="16" y="{y}">{escape(title)}</text>')
        y += 8
        for place, (name, (seconds, words)) in enumerate(row.items()):
            length = room * (math.log10(seconds) - low) / (high - low)
            kind = "other" if place else "ours"
            parts.append(f'<text class="small" x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(name)}</text>')
            parts.append(f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" rx="2"/>')
            parts.append(f'<text class="small" x="{LEFT + length + 6:.1f}" y="{y + 11}">{escape(words)}</text>')
            y += BAR + 2
        y += GAP - 8
    height = y - GAP + 16
    head = "Time to the twelve numbers of COCO: less is better, logarithmic axis, in brackets times detmap's"
    said = "; ".join(f"{title}: " + ", ".join(f"{n} {w}" for n, (_, w) in row.items()) for title, row in found.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(said)}">'
        f"<style>{_STYLE}</style>"
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="8"/><text x="16" y="26">{escape(head)}</text>'
        f"{''.join(parts)}</svg>\n"
    )


def draw() -> None:
    """Write the picture."""
    PICTURE.write_text(chart(times(PAGE.read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    draw()
