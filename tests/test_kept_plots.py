"""What is drawn of curves: every line, its style and its name, the legend and the size of the page, kept."""

from __future__ import annotations

import kept
import numpy as np
import pytest

from detmap import plots

pytest.importorskip("matplotlib")


def drawn(figure):
    """Return a line for whatever a figure shows."""
    made = [f"{figure.get_size_inches().round(3).tolist()}"]
    for axes in figure.axes:
        made.append(f"{axes.get_title()!r} {axes.get_xlabel()} {axes.get_ylabel()} {axes.get_xlim()} {axes.get_ylim()}")
        for one in axes.get_lines():
            style = one.get_color(), one.get_linestyle(), one.get_linewidth(), one.get_alpha(), one.get_zorder()
            points = np.round(one.get_xydata(), 6).tolist()
            made.append(
                f"{one.get_label()!r} {style} {one.get_marker()!r} {one.get_markersize()} {one.get_drawstyle()} {points}"
            )
        for one in axes.collections:
            corners = np.round(one.get_paths()[0].vertices, 6).tolist()
            made.append(f"{np.round(one.get_facecolor(), 3).tolist()} {one.get_linewidth()} {corners}")
    for legend in figure.legends:
        made += [f"{one.get_text()!r} {one.get_parse_math()}" for one in legend.get_texts()]
    return "\n".join(made) + "\n"


RECALL = np.array([0.25, 0.5, 1.0])


def lines(count, raw=True, envelope=True, front=False):
    return [
        plots.Line(
            f"_line {at} $x$ {'of a long name ' * (at % 3) * 4}\n",
            RECALL,
            1 - RECALL / (at + 2) if raw else None,
            1 - RECALL / (at + 3) if envelope else None,
            f"AP 0.{at}\nAP50 0.{at + 1}" if at % 2 else "",
            front and not at,
        )
        for at in range(count)
    ]


FIGURES = {
    **{f"{count} lines": lambda count=count: plots.precision_recall(lines(count)) for count in (1, 2, 4, 5, 16, 30)},
    "raw": lambda: plots.precision_recall(lines(3, envelope=False), title="A title " * 20),
    "many raw": lambda: plots.precision_recall(lines(6, envelope=False)),
    "envelopes": lambda: plots.precision_recall(lines(1, raw=False)),
    "a mean": lambda: plots.precision_recall(lines(9, front=True)),
    "a mean of few": lambda: plots.precision_recall(lines(3, front=True)),
    "many beside a mean": lambda: plots.precision_recall(lines(17, front=True)),
    "cmc": lambda: plots.cmc({"a": np.linspace(0.2, 1, 20), "b": np.linspace(0.1, 0.9, 21)}, numbers=["mAP 0.5", ""]),
    "cmc of one rank": lambda: plots.cmc({"a": [0.5]}, title="One"),
    "cmc to a rank": lambda: plots.cmc({f"m{at}": np.linspace(0, 1, 60) for at in range(16)}, ranks=3),
    "cmc by default": lambda: plots.cmc({"a": np.linspace(0, 1, 60)}),
    "both": lambda: plots.cmc_and_precision({"a": [0.5, 1.0]}, lines(15)),
    "no cmc": lambda: plots.cmc_and_precision({}, lines(2)),
    "no curve": lambda: plots.cmc_and_precision({"a": [0.5, 1.0, 1.0]}, [], ranks=2),
}


def test_what_is_drawn():
    assert {call.__kwdefaults__["ranks"] for call in (plots.cmc, plots.cmc_and_precision)} == {50}
    kept.same("plots", "".join(f"# {name}\n{drawn(make())}" for name, make in FIGURES.items()))


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_equal_curves_are_equal_files(tmp_path, suffix):
    paths = [tmp_path / f"{at}.{suffix.upper()}" for at in range(2)]
    for path in paths:
        plots.cmc({"a": [0.5, 1.0]}, path=path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if suffix == "svg":
        assert "<text" in paths[0].read_text()
        assert "dc:date" not in paths[0].read_text()
    if suffix == "png":
        width, height = (int.from_bytes(paths[0].read_bytes()[at : at + 4], "big") for at in (16, 20))
        size = plots.cmc({"a": [0.5, 1.0]}).get_size_inches() * 160
        assert (width, height) == tuple(size.astype(int))
