"""The report of a check: findings and statistics, as text, JSON, rows, or a fragment of HTML."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from detmap.checks.codes import SEVERITIES
from detmap.checks.data_statistics import Figure
from detmap.checks.findings import NAMED, Finding
from detmap.errors import many
from detmap.results import printable, to_markdown, to_text, without_nan


@dataclass(frozen=True)
class Report:
    """Findings and statistics of a check.

    Attributes
    ----------
    subject : str
        One line about the checked data.
    findings : tuple of Finding
        Findings, the most severe first.
    figures : tuple of Figure
        Distributions of quantities of the checked data.
    """

    #: Keys of a row of `rows`.
    COLUMNS: ClassVar[tuple[str, ...]] = ("severity", "code", "count", "says", "effect", "remedy", "records")

    subject: str
    findings: tuple[Finding, ...]
    figures: tuple[Figure, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings of severity "error": metrics are certainly wrong."""
        return tuple(one for one in self.findings if one.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings of severity "warning": metrics may be wrong."""
        return tuple(one for one in self.findings if one.severity == "warning")

    @property
    def codes(self) -> tuple[str, ...]:
        """The distinct codes of the findings, in order."""
        return tuple(dict.fromkeys(one.code for one in self.findings))

    def exit_code(self, strict: bool = False) -> int:
        """Return 1 if there are errors, or with `strict` warnings; else 0."""
        return int(bool(self.errors or (strict and self.warnings)))

    def title(self) -> str:
        """Return a line with the subject and the number of findings."""
        counts = [(sum(one.severity == severity for one in self.findings), severity) for severity in SEVERITIES]
        said = ", ".join(many(count, severity) for count, severity in counts if count)
        return f"{self.subject}: {said or 'nothing found'}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dicts, lists, strings and numbers."""
        return {
            "subject": self.subject,
            "findings": [one.to_dict() for one in self.findings],
            "statistics": [one.to_dict() for one in self.figures],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(without_nan(self.to_dict()), indent=indent, allow_nan=False)

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat record per finding."""
        *plain, records = self.COLUMNS
        return [
            {**{name: getattr(one, name) for name in plain}, records: " ".join(map(str, one.to_dict()[records]))}
            for one in self.findings
        ]

    def statistics(self) -> list[dict[str, Any]]:
        """Return a row per distribution, formatted for display."""
        return [one.row() for one in self.figures]

    def to_text(self) -> str:
        """Return a paragraph per finding, and a table of statistics."""
        parts = [printable(self.title())]
        for one in self.findings:
            parts.append(printable(f"{one.severity}: {one.says} ({one.code})"))
            parts[-1] += "".join(f"\n  {word:<7} {printable(text)}" for word, text in _lines(one))
        if self.figures:
            parts.append(to_text(self.statistics()))
        return "\n\n".join(parts)

    def to_markdown(self) -> str:
        """Return the title, and tables of findings and statistics."""
        rows = [
            {"": one.severity, "code": one.code, "finding": one.says, "effect": one.effect, "remedy": one.remedy}
            for one in self.findings
        ]
        return "\n\n".join(filter(None, [self.title(), to_markdown(rows), to_markdown(self.statistics())]))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Report on {printable(self.title())}>"

    def _repr_html_(self) -> str:
        return self.to_html(level=3)

    def to_html(self, level: int = 2, of: str = "") -> str:
        """Return a fragment of HTML without scripts or external styles, with all text from files escaped.

        Parameters
        ----------
        level : int
            Level of the fragment's heading.
        of : str
            Name of the checked data, such as a model's name, to tell several fragments on a page apart.
        """
        out = ['<section class="detmap-check">', f"<h{level}>{_safe(self.title())}</h{level}>"]
        if self.findings:
            out.append("<dl>")
            for one in self.findings:
                out.append(f'<dt class="{one.severity}"><strong>{one.severity}</strong> {_safe(one.says)}')
                out.append(f" <code>{_safe(one.code)}</code></dt>")
                texts = "<br>".join(f"{_safe(word)}: {_safe(text)}" for word, text in _lines(one))
                out.append(f"<dd>{texts}</dd>")
            out.append("</dl>")
        if self.figures:
            header = ["of", "least", "quarter", "median", "three quarters", "most"]
            cells = "".join(f'<th scope="col">{_safe(name)}</th>' for name in [*header, "distribution"])
            label = _safe(f"Distributions of {of}" if of else "Distributions")
            out.append(f'<div class="wide" role="region" aria-label="{label}" tabindex="0">')
            out.append(f"<table><thead><tr>{cells}</tr></thead><tbody>")
            for figure in self.figures:
                row = figure.row()
                cells = "".join(f"<td>{_safe(row[name])}</td>" for name in header[1:])
                out.append(
                    f'<tr><th scope="row" class="text">{_safe(row[""])}</th>{cells}<td>{_plot(figure)}</td></tr>'
                )
            out.append("</tbody></table></div>")
        out.append("</section>")
        return "\n".join(out) + "\n"


def _lines(one: Finding) -> list[tuple[str, str]]:
    lines = [("effect", one.effect), ("remedy", one.remedy)]
    shown = one.to_dict()["records"]
    if shown:
        counted = one.named in ("record", one.unit)
        left = one.count - len(shown) if counted else 0
        more = f" and {left:,} more" if left > 0 else " and others" if not counted and len(shown) == NAMED else ""
        lines.append(("where", f"{many(len(shown), one.named).partition(' ')[2]} {', '.join(map(str, shown))}{more}"))
    return lines


def _safe(text: str) -> str:
    return html.escape(printable(text), quote=True)


def _plot(figure: Figure, width: int = 160, height: int = 28) -> str:
    """Return the bars as SVG."""
    most = max(figure.bars, default=0) or 1
    step = width / max(len(figure.bars), 1)
    bars = "".join(
        f'<rect x="{place * step:.1f}" y="{height * (1 - n / most):.1f}" width="{step * 0.9:.1f}" '
        f'height="{height * n / most:.1f}"/>'
        for place, n in enumerate(figure.bars)
        if n
    )
    label = html.escape(f"{figure.name}: from {figure.low:.4g} to {figure.high:.4g}", quote=True)
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'fill="currentColor">{bars}</svg>'
    )


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings sorted by severity (stable), the most severe first."""
    return tuple(sorted(findings, key=lambda one: SEVERITIES.index(one.severity)))
