"""Curves drawn from arrays: precision against recall, and CMC (matplotlib, loaded when asked)."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import MissingDependencyError, OptionError, shorten
from detmap.writing import write

#: Okabe and Ito's colours, which colour-blind readers can tell apart, and strokes that a grey print keeps apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STROKES = ("-", "--", "-.", ":")

#: Lines that a legend names; more are drawn in grey behind.
NAMED = 14


@dataclass(frozen=True)
class Line:
    """A precision-recall curve to draw.

    Attributes
    ----------
    label : str
        What the legend calls it.
    recall : ndarray, shape (n,)
        Ascending.
    precision, interpolated : ndarray, shape (n,), or None
        As measured, and the envelope; at least one of them.
    """

    label: str
    recall: NDArray[np.float64]
    precision: NDArray[np.float64] | None = None
    interpolated: NDArray[np.float64] | None = None


def _figure(title: str) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("matplotlib", "plots", "drawing a curve") from None
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")  # no pyplot: nothing process-wide is touched
    axes = figure.add_subplot()
    axes.set_title(_plain(title, 70), parse_math=False)
    axes.grid(visible=True, color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _plain(text: str, width: int) -> str:
    """Return a label on a few short lines, without control characters."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    wrapped = "\n".join(textwrap.wrap(clean, width, max_lines=3, placeholder=" …", break_on_hyphens=False))
    return f" {wrapped}" if wrapped.startswith("_") else wrapped  # matplotlib's legend leaves out names like _x


def _legend(figure: Any, axes: Any) -> None:
    """Name the lines beside the axes, on a page that is large enough for it."""
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside right upper", frameon=False, fontsize="small", handlelength=2.4
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a class may be called $x$
    longest = max((len(part) for label in labels for part in label.split("\n")), default=0)
    rows = sum(label.count("\n") + 1 for label in labels)
    figure.set_size_inches(5.6 + 0.075 * longest, max(4.8, 0.4 + 0.19 * rows))


def _save(figure: Any, path: str | os.PathLike[str] | None) -> Any:
    if path is None:
        return figure
    import matplotlib as mpl

    suffix = os.fspath(path).rpartition(".")[2].lower()
    if suffix not in ("svg", "png"):
        raise OptionError(f"a plot is written as .svg or .png, not {shorten(os.fspath(path))}")
    options: dict[str, Any] = {"metadata": {"Date": None}} if suffix == "svg" else {"dpi": 160}
    file = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "detmap", "svg.fonttype": "none"}):
        figure.savefig(file, format=suffix, **options)
    write(os.fspath(path), file.getvalue())
    return figure


def precision_recall(
    lines: Sequence[Line], *, path: str | os.PathLike[str] | None = None, title: str = "Precision and recall"
) -> Any:
    """Draw precision against recall: the raw curve thin, the interpolated one as steps, the area of a single one shaded.

    Parameters
    ----------
    lines : sequence of Line
        One or several classes, queries or models; beyond 14 they are drawn grey and without a name.
    path : path, optional
        Write the picture there, as .svg or .png.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    OptionError
        For no lines, or another kind of file.
    MissingDependencyError
        Where matplotlib is not installed.
    """
    if not lines:
        raise OptionError("there is no curve to draw")
    figure, axes = _figure(title)
    for i, line in enumerate(lines):
        named = i < NAMED
        colour = COLOURS[i % len(COLOURS)] if named else "0.75"
        stroke = STROKES[i // len(COLOURS) % len(STROKES)] if named else "-"
        label = _plain(line.label, 28) if named else None
        style = {"color": colour, "linestyle": stroke, "zorder": 3 if named else 1}
        if line.precision is not None:
            thin = line.interpolated is not None
            axes.plot(line.recall, line.precision, linewidth=0.8 if thin else 1.6, alpha=0.6 if thin else 1,
                      label=None if thin else label, **style)  # fmt: skip
        if line.interpolated is not None:
            recall = np.concatenate(([0.0], line.recall))
            envelope = np.concatenate((line.interpolated[:1], line.interpolated))
            axes.step(recall, envelope, where="pre", linewidth=1.8, label=label, **style)
            if len(lines) == 1:
                axes.fill_between(recall, envelope, step="pre", color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="Recall", ylabel="Precision", xlim=(0, 1.005), ylim=(0, 1.02))
    _legend(figure, axes)
    return _save(figure, path)


def cmc(
    curves: Mapping[str, ArrayLike],
    *,
    path: str | os.PathLike[str] | None = None,
    ranks: int = 50,
    title: str = "Cumulative match characteristic",
) -> Any:
    """Draw CMC curves up to a rank; parameters, returns and raises as in `precision_recall`."""
    if not curves:
        raise OptionError("there is no curve to draw")
    figure, axes = _figure(title)
    longest = 1
    for i, (label, values) in enumerate(curves.items()):
        part = np.asarray(values, dtype=np.float64)[:ranks]
        longest = max(longest, part.size)
        named = i < NAMED
        axes.plot(
            np.arange(1, part.size + 1),
            part,
            color=COLOURS[i % len(COLOURS)] if named else "0.75",
            linestyle=STROKES[i // len(COLOURS) % len(STROKES)] if named else "-",
            linewidth=1.6,
            marker="o" if part.size <= 20 else "",
            markersize=3.5,
            label=_plain(label, 28) if named else None,
        )
    axes.set(xlabel="Rank", ylabel="Matched by this rank", xlim=(1, max(longest, 2)), ylim=(0, 1.02))
    _legend(figure, axes)
    return _save(figure, path)
