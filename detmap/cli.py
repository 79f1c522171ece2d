"""The command line: options in, tables and files out. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detmap import __version__
from detmap.errors import DetmapError, OptionError, shorten

if TYPE_CHECKING:
    from detmap.detection import DetectionResult
    from detmap.protocols import Protocol
    from detmap.retrieval import RankingResult
    from detmap.statistics import Bootstrap

_EPILOG = """\
examples:
  detmap eval instances_val.json detections.json
  detmap eval instances_val.json detections.json --per-class --format markdown
  detmap eval Annotations/ results/ --protocol voc2007 --image-set ImageSets/Main/test.txt
  detmap eval gt.json dt.json --iou-thresholds 0.5 --max-dets 1,10,500 --out result.json
  detmap eval gt.json dt.json --bootstrap 1000
  detmap eval gt.json 'shards/*.json' --sharded
"""

_BATCH_EPILOG = """\
examples:
  detmap batch gt.json runs/*.json --out board
  detmap batch gt.json runs/ --rank-by AP50 --bootstrap 1000 --out board --resume
  detmap batch gt.json models.csv --scheduler tcp://head:8786

exit code: 0; 3 where a file could not be scored; 2 where nothing can
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 for input or options that cannot be used, 3 for a part of it."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character gets its name
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int | None = options.run(options)
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
    return code or 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="detmap",
        description="Score ranked predictions: mean average precision, equal to the reference to the last bit.",
    )
    parser.add_argument("--version", action="version", version=f"detmap {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    _add_eval(commands)
    _add_rankings(commands)
    _add_batch(commands)
    _add_compare(commands)
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
    parser.add_argument(
        "--sharded", action="store_true", help="DETECTIONS is a folder or pattern of files with some of the images each"
    )
    add_detection_options(parser)
    add_bootstrap_options(parser)
    add_cluster_options(parser)
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


def _add_batch(commands: Any) -> None:
    parser = commands.add_parser(
        "batch",
        help="score many files against one ground truth: a leaderboard",
        description="Score many files against one ground truth and rank them. A file that cannot be scored gets its row.",
        epilog=_BATCH_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_batch)
    parser.add_argument("ground_truth", metavar="GT", help="as in detmap eval")
    parser.add_argument(
        "predictions",
        metavar="PREDICTIONS",
        nargs="+",
        help="files, patterns, folders, or a manifest .csv with the columns path, name, and any tags",
    )
    parser.add_argument("--image-set", metavar="FILE", help="with VOC's XML: the images to score, one id per line")
    parser.add_argument("--rank-by", metavar="METRIC", help="sort by this metric; default: AP, or mAP")
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first file that cannot be scored")
    parser.add_argument("--resume", action="store_true", help="score only what has changed since the results in --out")
    add_detection_options(parser)
    add_bootstrap_options(parser)
    add_cluster_options(parser)
    output = _add_format(parser)
    output.add_argument("--out", metavar="DIR", help="write leaderboard.* and results/NAME.json")


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="say which of some models differ by more than chance",
        description="Compare models on the same images: differences with intervals and p-values, corrected by Holm.",
    )
    parser.set_defaults(run=_compare)
    parser.add_argument("ground_truth", metavar="GT", help="as in detmap eval")
    parser.add_argument("predictions", metavar="PREDICTIONS", nargs="+", help="two or more, as in detmap batch")
    parser.add_argument("--image-set", metavar="FILE", help="with VOC's XML: the images to score, one id per line")
    parser.add_argument("--metric", metavar="NAME", help="compare by AP (default), AP50 or AP75")
    add_detection_options(parser)
    add_bootstrap_options(parser, replicates=1000)
    output = _add_format(parser)
    output.add_argument("--out", metavar="FILE", help="write everything as JSON")


def add_bootstrap_options(parser: argparse.ArgumentParser, replicates: int = 0) -> None:
    """Add the options that ask for confidence intervals; `replicates` is how many draws there are unless they say."""
    group = parser.add_argument_group("confidence")
    default = f"default: {replicates}" if replicates else "1000 are plenty; none by default"
    group.add_argument(
        "--bootstrap", type=int, metavar="N", default=replicates, help=f"draw the images anew N times; {default}"
    )
    group.add_argument("--bca", action="store_true", help="BCa intervals: slower by a draw per image, more accurate")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="what the draws follow from; default: 0")
    group.add_argument("--confidence", type=float, default=0.95, metavar="LEVEL", help="default: 0.95")


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add the option that runs a command elsewhere."""
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on a Dask cluster: tcp://host:8786 (extra dask)")


def _add_format(parser: argparse.ArgumentParser) -> Any:
    output = parser.add_argument_group("output")
    output.add_argument(
        "--format", choices=("table", "json", "csv", "markdown"), default="table", help="default: table"
    )
    output.add_argument("--quiet", action="store_true", help="no notes or progress on stderr")
    return output


def add_output_options(parser: argparse.ArgumentParser, *, rows: str, what: str) -> None:
    """Add the options that decide what is shown and written; `rows` is the flag that asks for `what`."""
    output = _add_format(parser)
    output.add_argument(rows, dest="rows", action="store_true", help=f"show {what} too")
    output.add_argument("--out", metavar="FILE", help="write everything as JSON")
    output.add_argument("--plot", metavar="FILE", help="draw the curves, as .svg or .png (extra: plots)")


def _protocol(options: argparse.Namespace) -> Protocol:
    """Return what the options decide, before any file is read: a typo should not wait for a large one."""
    from detmap.protocols import resolve

    if options.threads is not None and options.threads < 1:
        raise OptionError(f"--threads must be at least 1, not {options.threads}")
    if options.bootstrap < 0 or options.seed < 0 or not 0 < options.confidence < 1:
        raise OptionError("--bootstrap and --seed must be 0 or more, --confidence between 0 and 1")
    if options.bca and not options.bootstrap:
        raise OptionError("--bca goes with --bootstrap N")
    return resolve(
        options.protocol,
        iou_thresholds=options.iou_thresholds,
        area_ranges=_area_ranges(options.area_range),
        max_dets=_caps(options.max_dets),
        use_categories=not options.ignore_categories,
    )


def _warn_of_compiling(options: argparse.Namespace) -> None:
    from detmap.kernels import compiled_before, matching

    if not compiled_before(matching.match) and not options.quiet:
        _say("compiling the kernels for this machine: once, about ten seconds")


def _eval(options: argparse.Namespace) -> None:
    protocol = _protocol(options)
    if options.scheduler and not options.sharded:
        raise OptionError("--scheduler goes with --sharded")
    with _stages(options) as stage, _executor(options) as executor:
        stage("reading the ground truth")
        from detmap.formats.files import read_detections, read_ground_truth

        ground_truth = read_ground_truth(options.ground_truth, options.image_set)
        if options.sharded:
            from detmap.batch import evaluate_shards

            _warn_of_compiling(options)
            stage("reading and matching the shards")
            result = evaluate_shards(
                ground_truth,
                [options.detections],
                protocol,
                unknown_images=options.unknown_images,
                executor=executor,
                threads=options.threads,
            )
            found = len(result.tally)
        else:
            stage("reading the detections")
            read = [read_detections(options.detections, ground_truth, options.unknown_images)]
            from detmap import evaluate

            _warn_of_compiling(options)
            stage("matching")
            found = len(read[0])
            # Popped, so that `evaluate` is alone to hold them and can let them go.
            result = evaluate(ground_truth, read.pop(), protocol, threads=options.threads)
        made = None
        if options.bootstrap:
            from detmap.statistics import bootstrap

            stage("drawing images anew")
            made = bootstrap(result, options.bootstrap, options.seed, bca=options.bca, threads=options.threads)
    if not options.quiet:
        from detmap.tables import describe

        for sentence in describe(result.notices):
            _say(f"note: {sentence}")
    if options.out:
        _write(options.out, (_result_json(result, made, options) + "\n").encode())
    if options.arrays:
        _write_arrays(options.arrays, result)
    if options.plot:
        result.plot(options.plot)
    title = (
        f"{protocol.name}: {found:,} detections, {len(ground_truth):,} objects, "
        f"{ground_truth.images.values.size:,} images, {len(ground_truth.category_names):,} categories"
    )
    show(result, options, title, made)


@contextlib.contextmanager
def _executor(options: argparse.Namespace) -> Iterator[Any]:
    if not options.scheduler:
        yield None
        return
    from detmap.batch import cluster

    with cluster(options.scheduler) as executor:
        yield executor


def _batch(options: argparse.Namespace) -> int:
    protocol = _protocol(options)
    if options.resume and not options.out:
        raise OptionError("--resume goes with --out DIR")
    from detmap import batch
    from detmap.formats.files import read_ground_truth
    from detmap.results import printable

    entries = batch.find(options.predictions)
    ground_truth = read_ground_truth(options.ground_truth, options.image_set)
    _warn_of_compiling(options)
    known = batch.metric_names(ground_truth, protocol)
    if options.rank_by is not None and options.rank_by not in known:
        raise OptionError(f"cannot rank by {shorten(options.rank_by)}; one of: {', '.join(known[:30])}")
    done: list[batch.FileResult] = []
    try:
        with _executor(options) as executor, _progress(options, len(entries)) as advance:
            outcomes = batch.score(
                ground_truth,
                entries,
                protocol,
                unknown_images=options.unknown_images,
                replicates=options.bootstrap,
                seed=options.seed,
                bca=options.bca,
                level=options.confidence,
                out=options.out,
                resume=options.resume,
                executor=executor,
                threads=options.threads,
            )
            with contextlib.closing(outcomes):
                for outcome in outcomes:
                    done.append(outcome)
                    advance()
                    if outcome.error:
                        _say(f"error: {printable(outcome.entry.name)}: {outcome.error}")
                        if options.fail_fast:
                            break
    finally:  # what is done is shown and kept, also where the rest was interrupted
        board = batch.Leaderboard(done, options.rank_by)
        missing = board.write(options.out) if options.out and done else []
    if not options.quiet:
        for sentence in missing:
            _say(f"note: {sentence}")
    failed = sum(outcome.error is not None for outcome in done)
    title = f"{protocol.name}: {len(done)} files by {board.rank_by}" + (f", {failed} with errors" if failed else "")
    _print([board.table(), board.errors()], options, title, board.to_dict(), board.rows())
    return 3 if failed else 0


@contextlib.contextmanager
def _progress(options: argparse.Namespace, total: int) -> Iterator[Callable[[], None]]:
    """Give a function to call after each file; on a terminal there is a bar with the rate and the time left."""
    if options.quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, rate="")

        def advance() -> None:
            bar.advance(task)
            bar.update(task, rate=f"{bar.tasks[0].completed / max(bar.tasks[0].elapsed or 0, 1e-9):.2f} files/s")

        yield advance


def _compare(options: argparse.Namespace) -> None:
    protocol = _protocol(options)
    from detmap import match
    from detmap.batch import find
    from detmap.formats.files import read_detections, read_ground_truth
    from detmap.statistics import compare

    entries = find(options.predictions)
    ground_truth = read_ground_truth(options.ground_truth, options.image_set)
    _warn_of_compiling(options)
    tallies = {}
    with _progress(options, len(entries)) as advance:
        for entry in entries:
            detections = read_detections(entry.path, ground_truth, options.unknown_images)
            tallies[entry.name] = match(ground_truth, detections, protocol, threads=options.threads)
            advance()
        made = compare(
            tallies,
            options.bootstrap,
            options.seed,
            metric=options.metric,
            level=options.confidence,
            bca=options.bca,
            threads=options.threads,
        )
    document = made.to_dict()
    if options.out:
        from detmap.results import without_nan

        _write(options.out, (json.dumps(without_nan(document), indent=2) + "\n").encode())
    alpha = 1 - made.level
    rows = [one._asdict() for one in (*made.differences, *made.categories)]
    shown = [
        {
            "from": one.first,
            "to": one.second,
            **({} if one.category is None else {"category": one.category}),
            "difference": one.difference,
            "low": one.low,
            "high": one.high,
            "p": one.p if one.p >= 0.0001 else "<0.0001",
            "p (Holm)": one.adjusted if one.adjusted >= 0.0001 else "<0.0001",
            "": "*" if one.adjusted <= alpha else "",
        }
        for one in (*made.differences, *made.changed)
    ]
    pairs = len(made.differences)
    models = sorted(document["models"], key=lambda row: (-row[made.metric], row["model"]))
    title = f"{protocol.name}: {made.metric}, {options.bootstrap} draws of {len(ground_truth.images.values):,} images"
    _print([models, shown[:pairs], shown[pairs:]], options, title, document, rows)
    if not made.changed and options.format == "table":
        print(f"\nno category changed significantly (at {alpha:.2g}, after Holm's correction)")


def _add_rankings(commands: Any) -> None:
    trec = commands.add_parser(
        "trec",
        help="score runs against judgements",
        description="Score TREC runs against judgements, as trec_eval does.",
    )
    trec.set_defaults(run=_trec)
    trec.add_argument("qrels", metavar="QRELS", help="lines of query, 0, document, grade (.gz too)")
    trec.add_argument(
        "runs", metavar="RUN", nargs="+", help="lines of query, Q0, document, rank, score, name (.gz too)"
    )
    _add_convention(trec, "trec")
    trec.add_argument("--level", type=int, default=1, metavar="N", help="lowest grade that is relevant (default: 1)")
    trec.add_argument("--depth", type=int, metavar="N", help="ranks that are looked at")
    trec.add_argument("--complete", action="store_true", help="count judged queries that the run lacks as zero")
    trec.add_argument(
        "--judged-only", action="store_true", help="take documents without a judgement out of the ranking"
    )
    trec.add_argument(
        "--compare",
        nargs="?",
        const="",
        metavar="METRIC",
        help="test every pair of runs query by query, by AP or this metric: t, Wilcoxon, randomisation, bootstrap",
    )
    trec.add_argument(
        "--seed", type=int, default=0, metavar="N", help="what the draws of --compare follow from; default: 0"
    )
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
    rules.add_argument(
        "--convention", default=default, metavar="NAME", help=f"see detmap conventions; default: {default}"
    )
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
    if len(results) == 1 and options.compare is None:
        _finish(next(iter(results.values())), options, options.runs[0])
        return
    _finish_several(results, options, None if options.compare is None else _compared(results, options))


def _compared(results: dict[str, RankingResult], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row per pair of runs: the difference, its interval over queries, and p-values after Holm's correction."""
    import numpy as np

    from detmap.statistics import compare_queries
    from detmap.tables import locate

    first = next(iter(results.values())).per_query
    metric = options.compare or ("AP" if "AP" in first else next(iter(first)))
    if any(metric not in result.per_query for result in results.values()):
        raise OptionError(f"--compare {shorten(metric)}: no value per query; ask for it with --metrics")
    queries = np.unique(np.concatenate([result.query_ids for result in results.values()]))
    columns = {}
    for path, result in results.items():
        columns[path] = np.full(queries.size, np.nan)  # a query that only one of two has is no pair
        columns[path][locate(result.query_ids, queries)] = result.per_query[metric]
    return [
        {
            "from": row.first,
            "to": row.second,
            "metric": metric,
            "queries": row.queries,
            "difference": row.difference,
            "low": row.low,
            "high": row.high,
            **{f"p {name}": p for name, p in row.p.items()},
            **{f"{name} (Holm)": p for name, p in row.adjusted.items()},
        }
        for row in compare_queries(columns, seed=options.seed)
    ]


def _finish_several(
    results: dict[str, Any], options: argparse.Namespace, compared: list[dict[str, Any]] | None = None
) -> None:
    """Show several runs side by side, each by itself where a row per query is asked for, and how they compare."""
    from detmap import results as tables

    first = next(iter(results.values()))
    document = {path: tables.without_nan(result.to_dict()) for path, result in results.items()}
    if compared is not None:
        document = {"runs": document, "comparisons": tables.without_nan(compared)}
    everything = json.dumps(document, indent=2, ensure_ascii=False)
    if options.out:
        _write(options.out, (everything + "\n").encode())
    if options.plot:
        from detmap import plots

        plots.precision_recall([result.line(path) for path, result in results.items()], path=options.plot)
    if options.format == "json":
        print(everything)
        return
    rows = [{"metric": name, **{path: result[name] for path, result in results.items()}} for name in first]
    rows += [
        {"metric": f"queries {kind}", **{path: result.queries[kind] for path, result in results.items()}}
        for kind in ("scored", "empty", "missing", "extra")
    ]
    if options.rows:
        rows = [{"run": path, **row} for path, result in results.items() for row in result.rows()]
    printer = {"csv": tables.to_csv, "markdown": tables.to_markdown, "table": tables.to_text}[options.format]
    if options.format == "table":
        print(first.convention.describe() + "\n")
    print(printer(rows).rstrip("\n"))
    if compared:
        print("\n" + printer(compared).rstrip("\n"))


def _finish(result: Any, options: argparse.Namespace, name: str) -> None:
    if options.out:
        _write(options.out, (result.to_json() + "\n").encode())
    if options.plot:
        result.plot(options.plot)
    show(result, options, f"{name}: {result.describe()}")


#: Bytes that compression may have saved in an .npz file.
_INFLATED = 1 << 32


def _arrays(path: str, *names: tuple[str, ...]) -> dict[str, Any]:
    """Read arrays of an .npz file: of each tuple of names the first that is there, under its first name."""
    import lzma
    import zipfile
    import zlib

    import numpy as np

    from detmap.errors import InputError

    try:
        with open(path, "rb") as raw:
            if raw.read(2) != b"PK":
                raise InputError("is no .npz file", source=path, remedy="save with numpy.savez")
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > os.path.getsize(path) + _INFLATED:
                raise InputError("inflates beyond all measure", source=path, remedy="save it with numpy.savez")
        with np.load(path, allow_pickle=False) as file:
            found = {}
            for spellings in names:
                name = next((n for n in spellings if n in file.files), None)
                if name is not None:
                    found[spellings[0]] = file[name]
            return found
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=path) from None
    except (ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, KeyError) as error:
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
            print(
                f"{row['convention']}\n  AP       {row['AP']}\n  decides  {row['decides']}\n  used by  {row['used by']}"
            )
        return
    if options.format == "json":
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


def show(result: Any, options: argparse.Namespace, title: str, made: Bootstrap | None = None) -> None:
    """Print a result, and the intervals of its bootstrap, in the format that was asked for."""
    summary, per_class = result.summary(), _details(result) if options.rows else []
    rows = result.rows() if options.rows else [{"metric": name, "value": value} for name, value in result.items()]
    if made is not None:
        ends = made.interval(options.confidence).tolist()
        of_metric = dict(zip(made.metrics, ends, strict=False))
        of_class = ends[len(made.metrics) :]
        if "mAP" in of_metric:
            of_metric |= {f"AP_{name}": pair for (_, name), pair in zip(made.categories, of_class, strict=True)}
        of_name = [of_metric.get(name, [math.nan] * 2) for name in result]
        summary = _with_intervals(summary, of_name, "value")
        per_class = _with_intervals(per_class, of_class, "AP") if per_class else []
        rows = _with_intervals(rows, of_class if options.rows else of_name, "AP" if options.rows else "value")
    tables = [summary, per_class] if options.rows else [summary]
    _print(tables, options, title, None, rows, lambda: _result_json(result, made, options))


def _result_json(result: Any, made: Bootstrap | None, options: argparse.Namespace) -> str:
    from detmap.results import without_nan

    if made is None:
        return str(result.to_json())
    document = {**result.to_dict(), "bootstrap": made.to_dict(options.confidence)}
    return json.dumps(without_nan(document), indent=2, allow_nan=False)


def _with_intervals(rows: list[dict[str, Any]], ends: Sequence[Sequence[float]], after: str) -> list[dict[str, Any]]:
    """Return rows with the columns ``low`` and ``high`` after the one that they are the interval of."""
    wide: list[dict[str, Any]] = []
    for row, (low, high) in zip(rows, ends, strict=True):
        wide.append({})
        for name, value in row.items():
            wide[-1][name] = value
            if name == after:
                wide[-1].update(low=low, high=high)
    return wide


def _print(
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


def _details(result: Any) -> list[dict[str, Any]]:
    """Return the rows of the second table: categories, or queries."""
    rows: list[dict[str, Any]] = getattr(result, "class_summary", result.rows)()
    return rows


def _print_rich(tables: list[list[dict[str, Any]]], title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from detmap.results import cell, is_words, printable

    console = Console()
    console.print(Text(title, style="bold"))
    for rows in tables:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for name in rows[0] if rows else ():
            words = is_words(rows, name)
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
