"""Output of commands: tables, notes, progress, files."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from detmap.cli import terminal
from detmap.system.interrupts import before_end, ending
from detmap.system.whole_files import write

T = TypeVar("T")


def show(result: Any, options: argparse.Namespace, title: str) -> None:
    """Print a result, with its intervals if any, in the requested format."""
    summary = result.summary()
    if options.format == "table":  # the title of the table begins with the convention
        summary = [{name: row[name] for name in row if name != "convention"} for row in summary]
    tables = [summary, *([getattr(result, "class_summary", result.rows)()] if options.rows else [])]
    rows = result.rows() if options.rows else result.metric_rows()
    if not options.rows:
        rows += [{"metric": f"notices {code}", "value": count} for code, count in result.notices.items()]
    notices = [{"notice": text} for text in result.described_notices()]
    print_tables([*tables, notices], options, title, None, rows, result.to_json)
    print_notes(result.about_intervals(categories=options.rows, more="--format json says why"), options)


def print_notes(sentences: Sequence[str], options: argparse.Namespace) -> None:
    """Print sentences below a table, in text and Markdown only; other formats contain only tables."""
    if options.format in ("table", "markdown") and sentences:
        print("\n" + "\n".join(sentences))


def note(
    options: argparse.Namespace,
    notices: Mapping[str, Mapping[str, int]],
    iou_type: str | None = None,
    *,
    in_table: bool = False,
) -> None:
    """Print the notices of models or runs on stderr, unless ``--quiet`` is set. A single model or run has the name "".

    If `in_table` is true, nothing is printed for the formats table and markdown, because they have a table of notices.
    `iou_type` decides the noun for an image, such as video.
    """
    if options.quiet or not any(notices.values()) or (in_table and options.format in ("table", "markdown")):
        return
    from detmap.results import printable, sentences

    for row in sentences(notices, iou_type):
        say(f"note: {printable(row['model'])}{': ' if row['model'] else ''}{row['notice']}")


def print_tables(
    tables: list[list[dict[str, Any]]],
    options: argparse.Namespace,
    title: str,
    document: Any,
    rows: list[dict[str, Any]],
    as_json: Callable[[], str] | None = None,
    keep: Sequence[str] = (),
) -> None:
    """Print tables as text, or `rows` as CSV, or `document` as JSON; columns in `keep` are always shown."""
    from detmap import results

    tables = [table for table in tables if table]
    if options.format == "json":
        print(as_json() if as_json else json.dumps(results.without_nan(document), indent=2))
    elif options.format == "csv":
        print(results.to_csv(rows), end="")
    elif options.format == "markdown":
        print("\n\n".join(map(results.to_markdown, tables)))
    elif options.format == "latex":
        print("\n\n".join(results.to_latex(one) for one in tables if "notice" not in one[0]))
    else:
        styled = sys.stdout is not None and sys.stdout.isatty()
        room = None if getattr(options, "wide", False) else terminal.WIDTH
        # The terminal wraps the lines of a table with a single column of sentences.
        shown = [terminal.table(one, room if len(one[0]) > 1 else None, keep, styled=styled) for one in tables]
        print("\n\n".join([terminal.title(title) if styled else title, *shown]))


def is_narrow(options: argparse.Namespace) -> bool:
    """Return whether tables are made to fit a terminal."""
    return options.format == "table" and not getattr(options, "wide", False)


def finish(
    tables: list[list[dict[str, Any]]],
    options: argparse.Namespace,
    title: str,
    document: Any,
    rows: list[dict[str, Any]],
    sentences: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> None:
    """Write a document as JSON if ``--out`` names a file, and print tables with sentences below them."""
    write_json(options.out, document)
    print_tables(tables, options, title, document, rows, keep=keep)
    print_notes(sentences, options)


def write_json(path: str | None, document: Any) -> None:
    """Write a document as JSON, if there is a path."""
    if path:
        from detmap.results import without_nan

        write(path, (json.dumps(without_nan(document), indent=2) + "\n").encode())


def write_result(result: Any, options: argparse.Namespace) -> None:
    """Write a result as JSON to the file of ``--out``, and its plot to the file of ``--plot``, if they are given."""
    if options.out:
        write(options.out, (result.to_json() + "\n").encode())
    if getattr(options, "plot", None):
        result.plot(options.plot)


def write_page(page: str, options: argparse.Namespace) -> None:
    """Write a report, and print its path and size."""
    from detmap.reports.page import encoded

    write(options.out, encoded(page))
    if not options.quiet:
        say(f"note: wrote {options.out}, {len(page) / 1e6:.1f} MB")


def print_list(rows: list[dict[str, str]], options: argparse.Namespace) -> None:
    """Print a list of rows. The text format has a paragraph per row, because columns of prose do not fit a terminal."""
    from detmap import results

    if options.format == "table":
        for row in rows:
            (_, name), *rest = row.items()
            width = max(len(key) for key, _ in rest)
            print("\n".join([name, *(f"  {key:<{width}}  {value}" for key, value in rest)]))
    elif options.format == "json":
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif options.format == "latex":
        print(results.to_latex(rows))
    else:
        print((results.to_csv if options.format == "csv" else results.to_markdown)(rows).rstrip("\n"))


def say(text: str) -> None:
    """Print a line on stderr, after the name of the program."""
    if sys.stderr is None or ending():  # stderr may be closed, or the last line may already be printed
        return
    with terminal.aside():
        print(f"detmap: {text}", file=sys.stderr, flush=True)


#: Function that announces compilation once per command; None outside of commands.
_tell: Callable[[], None] | None = None


def tell_of_workers() -> None:
    """Announce that worker processes compile kernels, because this process cannot detect compilation in workers."""
    from detmap.kernels import compiled_before, matching

    if _tell is not None and not compiled_before(matching.match):
        _tell()


@contextlib.contextmanager
def compiling_told(quiet: bool) -> Iterator[None]:
    """Announce the first compilation of a kernel during a command, in any thread."""
    global _tell
    from detmap.kernels import _ahead

    said, before = [quiet], _tell

    def tell() -> None:
        if not said[0]:
            said[0] = True
            say("compiling the kernels that this needs: once on this machine, about 5 to 20 seconds")

    _tell = tell
    try:
        with contextlib.ExitStack() as stack:
            listen = partial(_listen, tell, stack)
            if _ahead.chosen().object is None and _ahead.has_numba():
                listen()
            else:
                _ahead.WHEN_NUMBA_COMES.append(listen)
                stack.callback(_ahead.WHEN_NUMBA_COMES.clear)
            yield
    finally:
        _tell = before


def _listen(tell: Callable[[], None], stack: contextlib.ExitStack) -> None:
    """Call `tell` whenever numba begins to compile, until `stack` is closed."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, _: Any) -> None:
            tell()

        def on_end(self, _: Any) -> None:
            pass

    stack.enter_context(event.install_listener("numba:compile", Listener()))


@contextlib.contextmanager
def stages(options: argparse.Namespace) -> Iterator[Callable[[str], None]]:
    """Yield a function that sets the current stage, which a terminal shows after a second."""
    if not _is_shown(options):
        yield lambda text: None
        return
    from detmap.results import printable

    now, counted = [""], [""]
    line = terminal.Line(lambda: counted[0] or now[0], after=1.0)

    def stage(text: str) -> None:
        now[0] = printable(text)  # the text may contain a file name
        line.show()

    with _counting(counted), line.shown(), before_end(line.end):
        yield stage


def _counting(text: list[str]) -> contextlib.AbstractContextManager[None]:
    """Context manager that keeps the current progress in ``text[0]``."""
    from detmap.system.progress import listening

    return listening(partial(text.__setitem__, 0))


def _is_shown(options: argparse.Namespace) -> bool:
    """Return whether to show progress, which is only done on a terminal."""
    return not options.quiet and sys.stderr is not None and sys.stderr.isatty()


def say_error(options: argparse.Namespace, name: str, error: str) -> None:
    """Print at once why a file of a batch cannot be scored, unless the same terminal shows a table of errors later."""
    from detmap.results import printable

    # If stdout or stderr is redirected, a reader of stderr may not see the table.
    together = all(one is not None and one.isatty() for one in (sys.stdout, sys.stderr))
    if not together or options.format not in ("table", "markdown"):
        say(f"error: {printable(name)}: {error}")


def during(options: argparse.Namespace, text: str, task: Callable[..., T], *arguments: Any, **more: Any) -> T:
    """Run a task and return its result; a terminal shows `text` if the task takes more than a second."""
    with stages(options) as stage:
        stage(text)
        return task(*arguments, **more)


@contextlib.contextmanager
def progress(options: argparse.Namespace, total: int, unit: str = "files") -> Iterator[Callable[[], None]]:
    """Yield a function to call after each file or other `unit`; a terminal shows a bar with the remaining time."""
    if not _is_shown(options):
        yield lambda: None
        return
    done = terminal.Progress(total, unit)
    counted = [""]
    line = terminal.Line(lambda: counted[0] or done.text(), after=0.2)

    def advance() -> None:
        done.advance()
        line.show()

    with _counting(counted), line.shown(), before_end(line.end):
        yield advance
