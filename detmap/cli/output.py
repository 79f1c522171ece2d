"""What commands show and write: tables, notes, progress, files."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from detmap.system.interrupts import before_end, ending

if TYPE_CHECKING:
    from detmap.statistics import Bootstrap

T = TypeVar("T")


def show(result: Any, options: argparse.Namespace, title: str, made: Bootstrap | None = None) -> None:
    """Print a result, and the intervals of its bootstrap, in the format that was asked for."""
    summary, per_class = result.summary(), _details(result) if options.rows else []
    rows = result.rows() if options.rows else [{"metric": name, "value": value} for name, value in result.items()]
    if made is not None:
        of_name = _columns(made, [made.columns[name] for name in result], options)
        of_class = _columns(made, made.category_columns("AP").tolist(), options)
        summary = _with_intervals(summary, of_name, "value")
        per_class = _with_intervals(per_class, of_class, "AP") if per_class else []
        rows = _with_intervals(rows, of_class if options.rows else of_name, "AP" if options.rows else "value")
    if not options.rows:
        rows += [{"metric": f"notices {code}", "value": count} for code, count in result.notices.items()]
    tables = [summary, per_class] if options.rows else [summary]
    print_tables(
        [*tables, in_words(result.notices)], options, title, None, rows, lambda: result_json(result, made, options)
    )
    if made is not None:
        from detmap.statistics.bootstrap import BIAS

        why = made.reasons()
        without = {name: why[made.columns[name]] for name in result}
        if options.rows:
            # By VOC's rules the AP of every category is among the metrics.
            told = {made.columns[name] for name in result}
            own = zip(result.rows(), made.category_columns("AP").tolist(), strict=True)
            without |= {f"{row['category']} (AP)": why[at] for row, at in own if at not in told}
        print_notes([made.sentence(level=options.confidence), BIAS, *_without_interval(without)], options)


#: So many sentences say why there is no interval, each of so many metrics: the rest stands in JSON.
_REASONS, _NAMES = 6, 8


def _without_interval(reasons: Mapping[str, str]) -> list[str]:
    """Return why metrics have no interval, a sentence per reason; `reasons` are by metric, and empty where there is one."""
    from detmap.results import printable

    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(printable(name))
    by_reason.pop("", None)
    lines = []
    for reason, names in list(by_reason.items())[:_REASONS]:
        more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
        lines.append(f"no interval of {', '.join(names[:_NAMES])}{more}: {reason}")
    rest = sum(map(len, list(by_reason.values())[_REASONS:]))
    return [*lines, f"no interval of {rest:,} more: --format json says why"] if rest else lines


def print_notes(sentences: Sequence[str], options: argparse.Namespace) -> None:
    """Print sentences below a table; formats other than text and Markdown hold tables alone."""
    if options.format in ("table", "markdown") and sentences:
        print("\n" + "\n".join(sentences))


def result_json(result: Any, made: Bootstrap | None, options: argparse.Namespace) -> str:
    """Return a result, and its bootstrap if there is one, as JSON."""
    from detmap.results import without_nan

    if made is None:
        return str(result.to_json())
    document = {**result.to_dict(), "bootstrap": made.to_dict(options.confidence)}
    return json.dumps(without_nan(document), indent=2, allow_nan=False)


def in_words(notices: Mapping[str, int]) -> list[dict[str, str]]:
    """Return the rows of a table of notices."""
    from detmap.data.notices import describe

    return [{"notice": text} for text in describe(notices)]


def note(options: argparse.Namespace, notices: Mapping[str, Mapping[str, int]]) -> None:
    """Print the notices of several models or runs (or of one, "") on stderr, unless ``--quiet`` was given."""
    if options.quiet or not any(notices.values()):
        return
    from detmap.results import printable, sentences

    for row in sentences(notices):
        say(f"note: {printable(row['model'])}{': ' if row['model'] else ''}{row['notice']}")


def _columns(made: Bootstrap, columns: list[int], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return interval, estimated bias and the number of images behind each of some columns of a bootstrap."""
    ends, bias = made.interval(options.confidence).tolist(), made.bias().tolist()
    return [
        {"low": ends[at][0], "high": ends[at][1], "bias": bias[at], made.unit: int(made.support[at])} for at in columns
    ]


def _with_intervals(rows: list[dict[str, Any]], more: list[dict[str, Any]], after: str) -> list[dict[str, Any]]:
    """Return rows with further columns after the one that they say more about."""
    wide: list[dict[str, Any]] = []
    for row, columns in zip(rows, more, strict=True):
        wide.append({})
        for name, value in row.items():
            wide[-1][name] = value
            if name == after:
                wide[-1].update(columns)
    return wide


def _details(result: Any) -> list[dict[str, Any]]:
    """Return the rows of the second table: categories, or queries."""
    rows: list[dict[str, Any]] = getattr(result, "class_summary", result.rows)()
    return rows


def print_tables(
    tables: list[list[dict[str, Any]]],
    options: argparse.Namespace,
    title: str,
    document: Any,
    rows: list[dict[str, Any]],
    as_json: Callable[[], str] | None = None,
) -> None:
    """Print tables for a person, or `rows` as CSV, or `document` (what `as_json` makes of it) as JSON."""
    from detmap import results

    tables = [table for table in tables if table]
    if options.format == "json":
        print(as_json() if as_json else json.dumps(results.without_nan(document), indent=2))
    elif options.format == "csv":
        print(results.to_csv(rows), end="")
    elif options.format == "markdown":
        print("\n\n".join(map(results.to_markdown, tables)))
    elif sys.stdout is not None and sys.stdout.isatty():
        _print_rich(tables, title)
    else:
        print("\n\n".join([title, *map(results.to_text, tables)]))


def print_list(rows: list[dict[str, str]], options: argparse.Namespace) -> None:
    """Print a list, for people with a paragraph per row: columns of prose fit no terminal."""
    from detmap import results

    if options.format == "table":
        for row in rows:
            (_, name), *rest = row.items()
            width = max(len(key) for key, _ in rest)
            print("\n".join([name, *(f"  {key:<{width}}  {value}" for key, value in rest)]))
    elif options.format == "json":
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        print((results.to_csv if options.format == "csv" else results.to_markdown)(rows).rstrip("\n"))


def _print_rich(tables: list[list[dict[str, Any]]], title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from detmap.results import cell, is_words, shown

    console = Console()
    console.print(Text(title, style="bold"))
    for rows in tables:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for name in rows[0] if rows else ():
            words = is_words(rows, name)
            style = "bold cyan" if name in ("value", "AP") else ""
            table.add_column(Text(shown(name)), justify="left" if words else "right", style=style, no_wrap=True)
        for row in rows:
            table.add_row(*(Text(shown(cell(value))) for value in row.values()))
        # As wide as it is: a number that is cut short on a narrow terminal would be a wrong number.
        wide = Console(width=1000).measure(table).maximum
        Console(width=max(console.width, wide)).print(table)


def say(text: str) -> None:
    """Print a line on stderr, after the name of the program."""
    if sys.stderr is None or ending():  # closed by whoever started us; or the last word is another's
        return
    print(f"detmap: {text}", file=sys.stderr, flush=True)


#: Announces compilation once per command; None outside of commands.
_tell: Callable[[], None] | None = None


def tell_of_workers() -> None:
    """Announce compilation in worker processes, which the listener of this process cannot see."""
    from detmap.kernels import compiled_before, matching

    if _tell is not None and not compiled_before(matching.match):
        _tell()


@contextlib.contextmanager
def compiling_told(quiet: bool) -> Iterator[None]:
    """Announce the first compilation of a kernel during a command, in any thread."""
    global _tell
    from numba.core import event

    said, before = [quiet], _tell

    def tell() -> None:
        if not said[0]:
            said[0] = True
            say("compiling the kernels that this needs: once on this machine, about 10 to 20 seconds")

    class Listener(event.Listener):
        def on_start(self, _: Any) -> None:
            tell()

        def on_end(self, _: Any) -> None:
            pass

    _tell = tell
    try:
        with event.install_listener("numba:compile", Listener()):
            yield
    finally:
        _tell = before


@contextlib.contextmanager
def stages(options: argparse.Namespace) -> Iterator[Any]:
    """Give a function that tells the current stage; a terminal shows it once a second has passed."""
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    if options.quiet or not on_terminal or not hasattr(signal, "setitimer"):
        yield lambda text: None
        return
    now, shown = [""], contextlib.ExitStack()

    def plain(text: str) -> Any:
        """Return a text that may hold a file's name, of which nothing is markup."""
        from rich.text import Text

        from detmap.results import printable

        return Text(printable(text))

    statuses: list[Any] = []

    def show_from_now_on(*_: object) -> None:
        from rich.console import Console

        statuses.append(shown.enter_context(Console(stderr=True).status(plain(now[0]))))

    def stage(text: str) -> None:
        now[0] = text
        for status in statuses:
            status.update(plain(text))

    before = signal.signal(signal.SIGALRM, show_from_now_on)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with shown, before_end(lambda: [status.stop() for status in statuses]):
            yield stage
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def during(options: argparse.Namespace, text: str, task: Callable[..., T], *arguments: Any, **more: Any) -> T:
    """Return what a task returns; a terminal shows the text once it has taken a second."""
    with stages(options) as stage:
        stage(text)
        return task(*arguments, **more)


@contextlib.contextmanager
def progress(options: argparse.Namespace, total: int, unit: str = "files") -> Iterator[Callable[[], None]]:
    """Give a function to call after each file, or other `unit`; a terminal shows a bar with the rate and the time left."""
    if options.quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar, before_end(bar.stop):
        task = bar.add_task("", total=total, rate="")

        def advance() -> None:
            bar.advance(task)
            done = bar.tasks[0].completed
            rate = f"{done / max(bar.tasks[0].elapsed or 0, 1e-9):.2f} {unit}/s"
            bar.update(task, rate=rate if done < total else "finishing")  # as comparing what was read

        yield advance
