"""Plots of curves from arrays: precision against recall, CMC, and both side by side (matplotlib, loaded lazily)."""

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
from detmap.system.whole_files import write

#: Okabe and Ito's colours, which colour-blind readers can distinguish, with line styles for greyscale prints.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STROKES = ("-", "--", "-.", ":")

#: Maximum number of lines in a legend; further lines are grey, behind the named lines.
NAMED = 14

#: Maximum number of lines for which raw curves are drawn in addition to envelopes.
FEW = 4


@dataclass(frozen=True)
class Line:
    """A precision-recall curve to draw."""

    #: Label in the legend.
    label: str
    #: Recall, ascending; shape (n,).
    recall: NDArray[np.float64]
    #: Raw precision and its envelope, both of shape (n,); at least one of the two is given.
    precision: NDArray[np.float64] | None = None
    interpolated: NDArray[np.float64] | None = None
    #: Additional text in the legend, such as "AP 0.4".
    numbers: str = ""
    #: Whether the line is drawn thick and in front of other lines, as for a mean.
    front: bool = False


def _figure(*titles: str) -> tuple[Any, list[Any]]:
    """Return a figure with axes side by side, one for each title."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("matplotlib", "plots", "drawing a curve") from None
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")  # not pyplot, which changes global state
    every = []
    for place, title in enumerate(titles, 1):
        axes = figure.add_subplot(1, len(titles), place)
        axes.set_title(_plain(title, 70 if len(titles) == 1 else 44), parse_math=False)
        axes.grid(visible=True, color="0.9", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        every.append(axes)
    return figure, every


def _plain(text: str, width: int) -> str:
    """Return a label on a few short lines, without control characters."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    wrapped = "\n".join(textwrap.wrap(clean, width, max_lines=3, placeholder=" …", break_on_hyphens=False))
    # matplotlib leaves out labels that begin with an underscore
    return f" {wrapped}" if wrapped.startswith("_") else wrapped


def _named(label: str, numbers: str) -> str:
    """Return the text of a line in the legend: the label, and the numbers below the label."""
    return "\n  ".join([_plain(label, 28), *numbers.splitlines()])


def _style(place: int, colours: Sequence[str] = COLOURS) -> dict[str, Any]:
    """Return the style of the line with index `place`; lines without a name are grey and behind other lines."""
    if place >= NAMED:
        return {"color": "0.75", "linestyle": "-", "zorder": 1}
    return {
        "color": colours[place % len(colours)],
        "linestyle": STROKES[place // len(colours) % len(STROKES)],
        "zorder": 3,
    }


def _legend(figure: Any, axes: Any, more: int = 0, panels: int = 1) -> None:
    """Add a legend beside the axes, and enlarge the page to make room. `more` is the number of lines without a name."""
    if more > 0:
        axes.plot([], [], **_style(NAMED), linewidth=1.6, label=f"{more:,} more")
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside right upper", frameon=False, fontsize="small", handlelength=2.4
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a class name may look like math: $x$
    longest = max((len(part) for label in labels for part in label.split("\n")), default=0)
    rows = sum(label.count("\n") + 1 for label in labels)
    figure.set_size_inches(0.8 + 4.8 * panels + 0.075 * longest, max(4.8, 0.4 + 0.19 * rows))


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the file type of a picture; raise `OptionError` for an unsupported type."""
    suffix = os.fspath(path).rpartition(".")[2].lower()
    if suffix not in ("svg", "pdf", "png"):
        raise OptionError(f"a plot is written as .svg, .pdf or .png, not {shorten(os.fspath(path))}")
    return suffix


def check_drawable(path: str | os.PathLike[str]) -> None:
    """Refuse a picture that cannot be drawn, before anything is computed."""
    from importlib.util import find_spec

    suffix_of(path)
    if find_spec("matplotlib") is None:
        raise MissingDependencyError("matplotlib", "plots", "drawing a curve")


def _save(figure: Any, path: str | os.PathLike[str] | None) -> Any:
    if path is None:
        return figure
    import matplotlib as mpl

    suffix = suffix_of(path)
    # without dates, equal curves give equal bytes
    every: dict[str, dict[str, Any]] = {
        "svg": {"metadata": {"Date": None}},
        "pdf": {"metadata": {"CreationDate": None}},
        "png": {"dpi": 160},
    }
    options = every[suffix]
    file = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "detmap", "svg.fonttype": "none"}):
        figure.savefig(file, format=suffix, **options)
    write(os.fspath(path), file.getvalue())
    return figure


def precision_recall(
    lines: Sequence[Line], *, path: str | os.PathLike[str] | None = None, title: str = "Precision and recall"
) -> Any:
    """Draw precision against recall. Raw curves are thin, and interpolated curves are steps.

    The area under a single curve is shaded. Lines after the first 14 are grey and without a name. If `path` is given,
    the picture is written to this file, as .svg, .pdf or .png. Raises `OptionError` if there are no lines, or for
    another kind of file.
    """
    if not lines:
        raise OptionError("there is no curve to draw")
    figure, (axes,) = _figure(title)
    _draw_precision(axes, lines)
    _legend(figure, axes, sum(not line.front for line in lines) - NAMED)
    return _save(figure, path)


def _draw_precision(axes: Any, lines: Sequence[Line]) -> None:
    others = [line for line in lines if not line.front]
    few = len(others) <= FEW and len(others) == len(lines)
    colours = COLOURS if len(others) == len(lines) else COLOURS[:-1]  # black is used for the line in front
    for place, line in [*((-1, line) for line in lines if line.front), *enumerate(others)]:
        label = None if place >= NAMED else _named(line.label, line.numbers)
        style = {"color": "0", "linestyle": "-", "zorder": 5} if line.front else _style(place, colours)
        raw = line.precision if few or line.interpolated is None else None
        if raw is not None:
            thin = line.interpolated is not None
            axes.plot(line.recall, raw, linewidth=0.8 if thin else 1.6, alpha=0.6 if thin else 1,
                      label=None if thin else label, **style)  # fmt: skip
        if line.interpolated is not None:
            recall = np.concatenate(([0.0], line.recall))
            envelope = np.concatenate((line.interpolated[:1], line.interpolated))
            width = 3.2 if line.front else 1.8 if few else 1.2
            axes.step(recall, envelope, where="pre", linewidth=width, label=label, **style)
            if len(lines) == 1:
                axes.fill_between(recall, envelope, step="pre", color=style["color"], alpha=0.15, linewidth=0)
    axes.set(xlabel="Recall", ylabel="Precision", xlim=(0, 1.005), ylim=(0, 1.02))


def cmc(
    curves: Mapping[str, ArrayLike],
    *,
    path: str | os.PathLike[str] | None = None,
    ranks: int = 50,
    title: str = "Cumulative match characteristic",
    numbers: Sequence[str] = (),
) -> Any:
    """Draw CMC curves up to the rank `ranks`, with `numbers` in the legend; other options as in `precision_recall`."""
    if not curves:
        raise OptionError("there is no curve to draw")
    figure, (axes,) = _figure(title)
    _draw_cmc(axes, curves, numbers, ranks)
    _legend(figure, axes, len(curves) - NAMED)
    return _save(figure, path)


def _draw_cmc(axes: Any, curves: Mapping[str, ArrayLike], numbers: Sequence[str], ranks: int) -> None:
    longest = 1
    for place, (label, values) in enumerate(curves.items()):
        part = np.asarray(values, dtype=np.float64)[:ranks]
        longest = max(longest, part.size)
        axes.plot(
            np.arange(1, part.size + 1),
            part,
            linewidth=1.6,
            marker="o" if part.size <= 20 else "",
            markersize=3.5,
            label=_named(label, numbers[place] if numbers else "") if place < NAMED else None,
            **_style(place),
        )
    axes.set(xlabel="Rank", ylabel="Matched by this rank", xlim=(1, max(longest, 2)), ylim=(0, 1.02))
    axes.locator_params(axis="x", integer=True)


def cmc_and_precision(
    curves: Mapping[str, ArrayLike],
    lines: Sequence[Line],
    *,
    path: str | os.PathLike[str] | None = None,
    ranks: int = 50,
) -> Any:
    """Draw CMC on the left, and precision against recall of the same rankings on the right.

    The legend shows the numbers of `lines`. If `curves` or `lines` is empty, the other plot is drawn alone. Parameters,
    returns and errors are as in `precision_recall` and `cmc`.
    """
    if not curves:
        return precision_recall(lines, path=path)
    if not lines:
        return cmc(curves, path=path, ranks=ranks)
    figure, (left, right) = _figure("Cumulative match characteristic", "Precision and recall, mean of the queries")
    _draw_cmc(left, curves, (), ranks)
    _draw_precision(right, lines)
    _legend(figure, right, len(lines) - NAMED, panels=2)
    return _save(figure, path)
