"""The command line: options in, tables and files out. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detmap import __version__
from detmap.errors import DetmapError, OptionError, shorten

if TYPE_CHECKING:
    from detmap.detection import DetectionResult
    from detmap.retrieval import RankingResult

_EPILOG = """\
examples:
  detmap eval instances_val.json detections.json
  detmap eval instances_val.json detections.json --per-class --format markdown
  detmap eval Annotations/ results/ --protocol voc2007 --image-set ImageSets/Main/test.txt
  detmap eval gt.json dt.json --iou-thresholds 0.5 --max-dets 1,10,500 --out result.json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 for input or options that cannot be used."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character gets its name
            stream.reconfigure(errors="backslashreplace")
    try:
        options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except DetmapError as error:
        _say(f"error: {error}")
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        _say(f"error: cannot write the output: {error.strerror or error}")
        return 2
    except MemoryError:
        _say("error: out of memory")
        return 2
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="detmap",
        description="Score ranked predictions: mean average precision, equal to the reference to the last bit.",
    )
    parser.add_argument("--version", action="version", version=f"detmap {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    _add_eval(commands)
    _add_rankings(commands)
    return parser


def _add_eval(commands: Any) -> None:
    parser = commands.add_parser(
        "eval",
        help="score detections against ground truth",
        description="Score detections against ground truth under the rules of COCO or PASCAL VOC.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_eval)
    parser.add_argument(
        "ground_truth", metavar="GT", help="COCO JSON, or a folder or tar archive of VOC's XML (.gz too)"
    )
    parser.add_argument("detections", metavar="DETECTIONS", help="COCO result JSON, or VOC's comp4_det_*_{class}.txt")
    parser.add_argument("--image-set", metavar="FILE", help="with VOC's XML: the images to score, one id per line")
    add_detection_options(parser)
    add_output_options(parser, rows="--per-class", what="a row per category")
    parser.add_argument("--arrays", metavar="FILE.npz", help="write the arrays precision, recall and scores")


def add_detection_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that decide how detections are scored."""
    rules = parser.add_argument_group("rules")
    rules.add_argument("--protocol", choices=("coco", "voc2007", "voc2012"), default="coco", help="default: coco")
    rules.add_argument("--iou-thresholds", metavar="LIST", help="0.5:0.95:0.05, or 0.5,0.75")
    rules.add_argument(
        "--area-range",
        metavar="NAME:LO:HI",
        action="append",
        help="an area range in square pixels, reported as AP_NAME; may be repeated, replaces small, medium and large",
    )
    rules.add_argument("--max-dets", metavar="LIST", help="caps per image and category: 1,10,100; AP is at the largest")
    rules.add_argument("--ignore-categories", action="store_true", help="one class of all: boxes are all that counts")
    rules.add_argument(
        "--unknown-images",
        choices=("error", "ignore"),
        default="error",
        help="detections on images that the ground truth does not have: refuse (default), or drop and count",
    )
    rules.add_argument("--threads", type=int, metavar="N", help="default: one per processor; changes no result")


def add_output_options(parser: argparse.ArgumentParser, *, rows: str, what: str) -> None:
    """Add the options that decide what is shown and written; `rows` is the flag that asks for `what`."""
    output = parser.add_argument_group("output")
    output.add_argument(rows, dest="rows", action="store_true", help=f"show {what} too")
    output.add_argument(
        "--format", choices=("table", "json", "csv", "markdown"), default="table", help="default: table"
    )
    output.add_argument("--out", metavar="FILE", help="write everything as JSON")
    output.add_argument("--plot", metavar="FILE", help="draw the curves, as .svg or .png (extra: plots)")
    output.add_argument("--quiet", action="store_true", help="no notes or progress on stderr")


def _eval(options: argparse.Namespace) -> None:
    from detmap.protocols import resolve

    # Options before files: a typo should not wait for a large file.
    protocol = resolve(
        options.protocol,
        iou_thresholds=options.iou_thresholds,
        area_ranges=_area_ranges(options.area_range),
        max_dets=_caps(options.max_dets),
        use_categories=not options.ignore_categories,
    )
    if options.threads is not None and options.threads < 1:
        raise OptionError(f"--threads must be at least 1, not {options.threads}")
    with _stages(options) as stage:
        stage("reading the ground truth")
        ground_truth = _read_ground_truth(options)
        stage("reading the detections")
        detections = _read_detections(options, ground_truth)
        from detmap import evaluate
        from detmap.kernels import compiled_before, matching

        if not compiled_before(matching.match) and not options.quiet:
            _say("compiling the kernels for this machine: once, about ten seconds")
        stage("matching")
        result = evaluate(ground_truth, detections, protocol, threads=options.threads)
    if not options.quiet:
        from detmap.tables import describe

        for sentence in describe(result.notices):
            _say(f"note: {sentence}")
    if options.out:
        _write(options.out, (result.to_json() + "\n").encode())
    if options.arrays:
        _write_arrays(options.arrays, result)
    if options.plot:
        result.plot(options.plot)
    title = (
        f"{protocol.name}: {len(detections):,} detections, {len(ground_truth):,} objects, "
        f"{ground_truth.images.values.size:,} images, {len(ground_truth.category_names):,} categories"
    )
    show(result, options, title)


def _add_rankings(commands: Any) -> None:
    trec = commands.add_parser(
        "trec",
        help="score runs against judgements",
        description="Score TREC runs against judgements, as trec_eval does.",
    )
    trec.set_defaults(run=_trec)
    trec.add_argument("qrels", metavar="QRELS", help="lines of query, 0, document, grade (.gz too)")
    trec.add_argument("runs", metavar="RUN", nargs="+", help="lines of query, Q0, document, rank, score, name (.gz too)")
    _add_convention(trec, "trec")
    trec.add_argument("--level", type=int, default=1, metavar="N", help="lowest grade that is relevant (default: 1)")
    trec.add_argument("--depth", type=int, metavar="N", help="ranks that are looked at")
    trec.add_argument("--complete", action="store_true", help="count judged queries that the run lacks as zero")
    trec.add_argument("--judged-only", action="store_true", help="take documents without a judgement out of the ranking")
    reid = commands.add_parser(
        "reid",
        help="score re-identification",
        description="Score the rankings of a gallery. The file holds distances, or query_features and gallery_features; "
        "query_ids and gallery_ids; and query_cameras and gallery_cameras, if the cameras count.",
    )
    reid.set_defaults(run=_reid)
    reid.add_argument("file", metavar="FILE.npz")
    reid.add_argument("--metric", choices=("euclidean", "sqeuclidean", "cosine", "dot"), default="euclidean")
    _add_convention(reid, "reid")
    hashing = commands.add_parser(
        "hashing",
        help="score binary codes",
        description="Score rankings by Hamming distance. The file holds query_codes, gallery_codes, query_labels and "
        "gallery_labels.",
    )
    hashing.set_defaults(run=_hashing)
    hashing.add_argument("file", metavar="FILE.npz")
    hashing.add_argument("--k", type=int, metavar="N", help="depth of the metrics")
    _add_convention(hashing, "hits_topk")
    for parser in (trec, reid, hashing):
        add_output_options(parser, rows="--per-query", what="a row per query")
    listing = commands.add_parser("conventions", help="list the conventions of rankings, their formulas and users")
    listing.set_defaults(run=_conventions)
    listing.add_argument("--format", choices=("table", "json", "csv", "markdown"), default="table")


def _add_convention(parser: argparse.ArgumentParser, default: str) -> None:
    rules = parser.add_argument_group("rules")
    rules.add_argument("--metrics", metavar="LIST", help="map,ndcg@10,recall@100: detmap's or trec_eval's names")
    rules.add_argument("--convention", default=default, metavar="NAME", help=f"see detmap conventions; default: {default}")
    rules.add_argument("--ties", metavar="RULE", help="index, reversed, docid, collapsed, expected, best or worst")
    rules.add_argument("--empty", metavar="RULE", help="queries without relevant items: skip, zero, one, nan or error")


def _rules(options: argparse.Namespace) -> dict[str, Any]:
    metrics = None if options.metrics is None else [m.strip() for m in options.metrics.split(",") if m.strip()]
    return {"metrics": metrics, "convention": options.convention, "ties": options.ties, "empty": options.empty}


def _trec(options: argparse.Namespace) -> None:
    from detmap.retrieval import evaluate_run

    given = {**_rules(options), "level": options.level, "depth": options.depth, "judged_only": options.judged_only}
    if options.complete:
        given["missing"] = "zero"
    results = {path: evaluate_run(options.qrels, path, **given) for path in options.runs}
    if len(results) == 1:
        _finish(next(iter(results.values())), options, options.runs[0])
        return
    _finish_several(results, options)


def _finish_several(results: dict[str, Any], options: argparse.Namespace) -> None:
    """Show several runs side by side, and each by itself where a row per query is asked for."""
    import json

    from detmap import results as tables

    first = next(iter(results.values()))
    everything = json.dumps(
        {path: tables.without_nan(result.to_dict()) for path, result in results.items()}, indent=2, ensure_ascii=False
    )
    if options.out:
        _write(options.out, (everything + "\n").encode())
    if options.plot:
        from detmap import plots

        plots.precision_recall([result.line(path) for path, result in results.items()], path=options.plot)
    if options.format == "json":
        print(everything)
        return
    rows = [{"metric": name, **{path: result[name] for path, result in results.items()}} for name in first]
    if options.rows:
        rows = [{"run": path, **row} for path, result in results.items() for row in result.rows()]
    printer = {"csv": tables.to_csv, "markdown": tables.to_markdown, "table": tables.to_text}[options.format]
    if options.format == "table":
        print(first.convention.describe() + "\n")
    print(printer(rows).rstrip("\n"))


def _finish(result: Any, options: argparse.Namespace, name: str) -> None:
    if options.out:
        _write(options.out, (result.to_json() + "\n").encode())
    if options.plot:
        result.plot(options.plot)
    show(result, options, f"{name}: {result.describe()}")


def _arrays(path: str, *names: tuple[str, ...]) -> dict[str, Any]:
    """Read arrays of an .npz file: of each tuple of names the first that is there, under its first name."""
    import zipfile
    import zlib

    import numpy as np

    from detmap.errors import InputError

    try:
        with open(path, "rb") as raw:
            if raw.read(2) != b"PK":
                raise InputError("is no .npz file", source=path, remedy="save with numpy.savez")
        with np.load(path, allow_pickle=False) as file:
            found = {}
            for spellings in names:
                name = next((n for n in spellings if n in file.files), None)
                if name is not None:
                    found[spellings[0]] = file[name]
            return found
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=path) from None
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        what = "holds pickled objects, which are not loaded" if "Object arrays" in str(error) else "is damaged"
        raise InputError(what, source=path, remedy="save arrays of numbers or strings with numpy.savez") from None


def _need(arrays: dict[str, Any], path: str, *names: str) -> list[Any]:
    from detmap.errors import InputError

    for name in names:
        if name not in arrays:
            there = ", ".join(arrays) or "none of the arrays that this command reads"
            raise InputError(f"has no array {name}", source=path, remedy=f"there is {there}")
    return [arrays[name] for name in names]


def _reid(options: argparse.Namespace) -> None:
    from detmap.retrieval import evaluate_distances, evaluate_features

    arrays = _arrays(
        options.file,
        ("distances", "distmat"),
        ("query_features",),
        ("gallery_features",),
        ("query_ids", "q_pids"),
        ("gallery_ids", "g_pids"),
        ("query_cameras", "q_camids"),
        ("gallery_cameras", "g_camids"),
    )
    labels = [*_need(arrays, options.file, "query_ids", "gallery_ids")]
    labels += [arrays.get("query_cameras"), arrays.get("gallery_cameras")]
    if "query_features" in arrays:
        both = _need(arrays, options.file, "query_features", "gallery_features")
        result = evaluate_features(*both, *labels, metric=options.metric, **_rules(options))
    else:
        result = evaluate_distances(*_need(arrays, options.file, "distances"), *labels, **_rules(options))
    _finish(result, options, options.file)


def _hashing(options: argparse.Namespace) -> None:
    from detmap.retrieval import evaluate_codes

    names = ("query_codes", "gallery_codes", "query_labels", "gallery_labels")
    query, gallery, ours, theirs = _need(_arrays(options.file, *((n,) for n in names)), options.file, *names)
    _finish(evaluate_codes(query, gallery, ours, theirs, options.k, **_rules(options)), options, options.file)


def _conventions(options: argparse.Namespace) -> None:
    from detmap import results
    from detmap.retrieval import CONVENTIONS

    rows = [
        {"convention": c.name, "AP": c.formula, "decides": c.describe().partition(": ")[2], "used by": c.users}
        for c in CONVENTIONS.values()
    ]
    if options.format == "table":  # a paragraph each: four columns of prose fit no terminal
        for row in rows:
            print(f"{row['convention']}\n  AP       {row['AP']}\n  decides  {row['decides']}\n  used by  {row['used by']}")
        return
    if options.format == "json":
        import json

        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    print({"csv": results.to_csv, "markdown": results.to_markdown}[options.format](rows).rstrip("\n"))


def _area_ranges(given: list[str] | None) -> dict[str, tuple[float, float]] | None:
    if given is None:
        return None
    ranges: dict[str, tuple[float, float]] = {}
    for text in given:
        try:
            name, low, high = text.rsplit(":", 2)
            limits = (float(low), float(high))
        except ValueError:
            raise OptionError(f"--area-range must be NAME:LO:HI, not {shorten(text)}") from None
        if not name or name in ranges:
            raise OptionError(f"--area-range {shorten(text)} has {'a name given before' if name else 'no name'}")
        ranges[name] = limits
    # The first range is the whole: what a user adds should not change AP.
    return ranges if next(iter(ranges)) == "all" else {"all": (0.0, 1e10), **ranges}


def _caps(given: str | None) -> list[int] | None:
    try:
        return None if given is None else [int(part) for part in given.split(",")]
    except ValueError:
        raise OptionError(f"--max-dets must be integers with commas between, not {shorten(given)}") from None


def _is_voc(path: str) -> bool:
    return os.path.isdir(path) or path.endswith((".tar", ".tar.gz", ".tgz"))


def _read_ground_truth(options: argparse.Namespace) -> Any:
    from detmap import read_coco, read_voc

    if _is_voc(options.ground_truth):
        return read_voc(options.ground_truth, options.image_set)
    if options.image_set:
        raise OptionError("--image-set goes with VOC's XML")
    return read_coco(options.ground_truth)


def _read_detections(options: argparse.Namespace, ground_truth: Any) -> Any:
    from detmap import read_coco_results, read_voc_results

    if _is_voc(options.detections):
        return read_voc_results(options.detections, ground_truth, unknown_images=options.unknown_images)
    return read_coco_results(options.detections, ground_truth, unknown_images=options.unknown_images)


@contextlib.contextmanager
def _stages(options: argparse.Namespace) -> Iterator[Any]:
    """Give a function that says on a terminal what is being done, once a second has passed."""
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    if options.quiet or not on_terminal or not hasattr(signal, "setitimer"):
        yield lambda text: None
        return
    now, shown = [""], contextlib.ExitStack()
    statuses: list[Any] = []

    def show_from_now_on(*_: object) -> None:
        from rich.console import Console

        statuses.append(shown.enter_context(Console(stderr=True).status(now[0])))

    def stage(text: str) -> None:
        now[0] = text
        for status in statuses:
            status.update(text)

    before = signal.signal(signal.SIGALRM, show_from_now_on)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with shown:
            yield stage
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def show(result: DetectionResult | RankingResult, options: argparse.Namespace, title: str) -> None:
    """Print a result in the format that was asked for."""
    from detmap import results

    if options.format == "json":
        print(result.to_json())
    elif options.format == "csv":
        rows = result.rows() if options.rows else [{"metric": name, "value": value} for name, value in result.items()]
        print(results.to_csv(rows), end="")
    else:
        tables = [result.summary()] + ([_details(result)] if options.rows else [])
        if options.format == "markdown":
            print("\n\n".join(map(results.to_markdown, tables)))
        elif sys.stdout is not None and sys.stdout.isatty():
            _print_rich(tables, title)
        else:
            print("\n\n".join([title, *map(results.to_text, tables)]))


def _details(result: Any) -> list[dict[str, Any]]:
    """Return the rows of the second table: categories, or queries."""
    rows: list[dict[str, Any]] = getattr(result, "class_summary", result.rows)()
    return rows


def _print_rich(tables: list[list[dict[str, Any]]], title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from detmap.results import cell, printable

    console = Console()
    console.print(Text(title, style="bold"))
    for rows in tables:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for name in rows[0] if rows else ():
            words = any(isinstance(row[name], str) for row in rows)
            style = "bold cyan" if name in ("value", "AP") else ""
            table.add_column(Text(name), justify="left" if words else "right", style=style, no_wrap=True)
        for row in rows:
            table.add_row(*(Text(printable(cell(value))) for value in row.values()))
        # As wide as it is: a number that is cut short on a narrow terminal would be a wrong number.
        wide = Console(width=1000).measure(table).maximum
        Console(width=max(console.width, wide)).print(table)


def _write(path: str, data: bytes) -> None:
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise OptionError(f"cannot write {shorten(path)}: {error.strerror}") from None


def _write_arrays(path: str, result: DetectionResult) -> None:
    import numpy as np

    file = io.BytesIO()
    np.savez(file, precision=result.precision, recall=result.recall, scores=result.scores)
    _write(path, file.getvalue())


def _say(text: str) -> None:
    if sys.stderr is None:  # closed by whoever started us
        return
    print(f"detmap: {text}", file=sys.stderr, flush=True)
