"""The command line: options in, tables and files out. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detmap import __version__
from detmap.errors import DetmapError, OptionError, shorten

if TYPE_CHECKING:
    from detmap.detection import DetectionResult

_SLOW = 20_000_000  # bytes of input from which on a command takes long enough to say what it does

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
    try:
        options.run(options)
        sys.stdout.flush()
    except DetmapError as error:
        _say(f"error: {error}")
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
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
    with _stages(options, options.ground_truth, options.detections) as stage:
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
    title = (
        f"{protocol.name}: {len(detections):,} detections, {len(ground_truth):,} objects, "
        f"{ground_truth.images.values.size:,} images, {len(ground_truth.category_names):,} categories"
    )
    show(result, options, title)


def _area_ranges(given: list[str] | None) -> dict[str, tuple[float, float]] | None:
    if given is None:
        return None
    ranges = {}
    for text in given:
        try:
            name, low, high = text.rsplit(":", 2)
            ranges[name] = (float(low), float(high))
        except ValueError:
            raise OptionError(f"--area-range must be NAME:LO:HI, not {shorten(text)}") from None
        if not name:
            raise OptionError(f"--area-range {shorten(text)} has no name")
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


@contextmanager
def _stages(options: argparse.Namespace, *paths: str) -> Iterator[Any]:
    """Give a function that says on a terminal what is being done, where the input is large enough to wait for."""
    size = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
    if options.quiet or size < _SLOW or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(f"{text} ({size / 1e6:.0f} MB in all)")


def show(result: DetectionResult, options: argparse.Namespace, title: str) -> None:
    """Print a result in the format that was asked for."""
    from detmap import results

    if options.format == "json":
        print(result.to_json())
    elif options.format == "csv":
        rows = result.rows() if options.rows else [{"metric": name, "value": value} for name, value in result.items()]
        print(results.to_csv(rows), end="")
    else:
        tables = [result.summary()] + ([result.class_summary()] if options.rows else [])
        if options.format == "markdown":
            print("\n\n".join(map(results.to_markdown, tables)))
        elif sys.stdout.isatty():
            _print_rich(tables, title)
        else:
            print("\n\n".join([title, *map(results.to_text, tables)]))


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
    import io

    import numpy as np

    file = io.BytesIO()
    np.savez(file, precision=result.precision, recall=result.recall, scores=result.scores)
    _write(path, file.getvalue())


def _say(text: str) -> None:
    print(f"detmap: {text}", file=sys.stderr, flush=True)
