"""The commands that score detections: eval, batch, compare; and protocols, which lists the protocols."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from detmap.cli import cards
from detmap.cli.batch_cards import batch_card, check_card, compare_card
from detmap.cli.cards import Scored, Scorer, Truth, add_card, files_of, manifests_of, paths_of, write_card
from detmap.cli.causes import is_nearly_none, tell_causes
from detmap.cli.challenges import add_challenge_options, add_resume, challenge_of, check_resume, published
from detmap.cli.comparing import (
    add_explanations,
    check_tests,
    compare_rankings,
    comparison_tables,
    show_contrast,
    show_survival,
)
from detmap.cli.gates import Gates, add_gates
from detmap.cli.help import add_option
from detmap.cli.inputs import found_of, read_by, reading_of, truth_of
from detmap.cli.options import (
    CORRECTED,
    Command,
    add_bootstrap_options,
    add_cluster_options,
    add_detection_options,
    add_detections,
    add_format,
    add_ground_truth,
    add_input_options,
    add_intervals,
    add_list_format,
    add_output_options,
    draws_of,
    protocol_of,
    tests_of,
)
from detmap.cli.output import (
    finish,
    note,
    print_list,
    print_notes,
    print_tables,
    progress,
    say,
    say_error,
    show,
    stages,
    tell_of_workers,
    write_result,
)
from detmap.cli.panoptic import fill_batch, fill_compare
from detmap.cli.ranking_files import add_rankings, kind_of
from detmap.errors import OptionError, many, one_of, shorten
from detmap.system.interrupts import before_end
from detmap.system.whole_files import write

if TYPE_CHECKING:
    from detmap.batch.finding import Entry
    from detmap.detection.protocols import Protocol
    from detmap.detection.result import DetectionResult
    from detmap.formats.inputs import Input
    from detmap.reading.options import Reading

_EPILOG = """\
examples:
  detmap eval instances_val.json detections.json
  detmap eval instances_val.json detections.json --per-class --format markdown
  detmap eval instances_val.json masks.json --iou-type segm
  detmap eval person_keypoints_val.json poses.json --iou-type keypoints
  detmap eval coco_wholebody_val.json poses.json --protocol wholebody --parts
  detmap eval Annotations/ results/ --protocol voc2007 --image-set ImageSets/Main/test.txt
  detmap eval gt.json dt.json --iou-thresholds 0.5 --max-dets 1,10,500 --out result.json
  detmap eval gt.json 'shards/*.json' --sharded
  detmap eval gt.json dt.json --fail-under AP=0.42 --max-drop AP=0.005 --against card.json

exit code: 0, 2 if nothing can be scored, 4 if a gate is not passed
"""

#: Maximum number of files for which all pairs are tested by default. The number of pairs, and of permutations for each
#: test, grows quadratically with the number of files.
_MOST_TESTED = 10

#: Minimum number of files that are scored by processes instead of threads. Threads wait for the global interpreter lock,
#: but a process takes half a second to start.
_MANY = 500

_BATCH_EPILOG = """\
examples:
  detmap batch gt.json runs/*.json --out board
  detmap batch gt.json runs/ --rank-by AP50 --bootstrap 1000 --out board --resume
  detmap batch gt.json models.csv --scheduler tcp://head:8786

exit code: 0 if all files were scored, 3 if some could not be, 2 if nothing can be scored
"""


def _fill_eval(parser: argparse.ArgumentParser) -> None:
    add_ground_truth(parser)
    add_detections(parser)
    add_option(
        parser,
        "--sharded",
        "DETECTIONS is a folder or pattern of files, each with the detections on some of the images",
    )
    add_input_options(parser)
    add_detection_options(parser)
    add_bootstrap_options(parser)
    add_cluster_options(parser)
    add_output_options(parser, rows="--per-class", what="a row per category")
    add_option(parser, "--parts", "score each part of a skeleton too (--protocol wholebody)")
    add_option(parser, "--arrays FILE.npz", "write the arrays precision, recall and scores")
    add_card(parser)
    add_gates(parser)


def _check_names(gates: Gates, protocol: Protocol) -> None:
    """Refuse gates on metrics that the protocol lacks, except metrics of single categories, which are unknown before
    the files are read.
    """
    if not gates:
        return
    from detmap.detection.metric_names import find_metric, metric_table

    table = metric_table(protocol, ())

    def meant(name: str) -> bool:
        return find_metric(name, protocol, table) is not None or (protocol.per_class_metrics and "_" in name)

    gates.check_names(list(dict(table)), meant)


def _eval(options: argparse.Namespace) -> int:
    protocol = protocol_of(options)
    gates = Gates(options, "eval")
    _check_names(gates, protocol)
    if options.scheduler and not options.sharded:
        raise OptionError("--scheduler needs --sharded: a single file is scored here")
    if options.card and options.sharded and options.detections == "-":
        raise OptionError("--sharded takes a folder or pattern of files, and not standard input (-)")
    if options.parts:
        return _eval_parts(options, protocol)
    with _executor(options) as executor:  # the cluster's workers keep the detections of shards until this context ends
        return _eval_on(executor, options, protocol, gates)


def _eval_on(executor: Any, options: argparse.Namespace, protocol: Protocol, gates: Gates) -> int:
    """Score one model, and print and write the requested output. If there is an executor, it scores the shards."""
    from detmap.cli.second_process import second_process

    with stages(options) as stage, second_process(protocol):
        scored = _scored(options, protocol, stage, executor)
        result: Any = scored.result
        add_intervals(result, options, stage)
    note(options, {"": result.notices}, protocol.iou_type, in_table=True)
    if is_nearly_none(result) and not options.sharded and options.ground_truth != "-":
        inputs = [found_of(options, protocol.iou_type)]
        truth = truth_of(options, protocol.iou_type, inputs, protocol).ground_truth(inputs)
        tell_causes(options, protocol, truth, [("", inputs[0])])
    write_result(result, options)
    if options.card:
        write_card("eval", scored, options)
    if options.arrays:
        _write_arrays(options.arrays, result)
    units = {"images": _scene(protocol), "categories": "category"}
    counts = (many(count, units.get(of, of.removesuffix("s"))) for of, count in scored.counts.items())
    title = f"{protocol.title}: {', '.join(counts)}"
    show(result, options, title)
    gates.check_same(protocol, scored.inputs)

    def p_value(_: str, metric: str) -> float | str:
        return _chance(options, protocol, gates, result.tally, metric)

    return gates.judge({"": result}, p_value, result.name_of, options.confidence)


def _chance(options: argparse.Namespace, protocol: Protocol, gates: Gates, tally: Any, metric: str) -> float | str:
    """Score the baseline's file again. Return the p-value of a paired permutation test, or the reason why there is no
    p-value.
    """
    from detmap.statistics import permute

    try:
        path = gates.find_input("detections")
    except LookupError as error:
        return str(error)
    given = argparse.Namespace(**{**vars(options), "detections": path, "card": None, "against": None, "sharded": False})
    before: Any = _scored(given, protocol, lambda text: None, None).result
    if not gates.holds(metric, before[metric]):
        return f"{path} does not give the card's {metric} with the options of this run"
    test = permute(before.tally, tally, seed=options.seed, metric=metric, threads=options.threads)
    return float(test.p_values()[test.columns[metric]])


def _eval_parts(options: argparse.Namespace, protocol: Protocol) -> int:
    """Score each part of a skeleton, and print a row per part."""
    for name in ("sharded", "bootstrap", "card", "arrays", "plot", "rows", "fail_under", "max_drop", "against"):
        if getattr(options, name):
            flag = {"rows": "per-class"}.get(name, name.replace("_", "-"))
            raise OptionError(
                f"--parts shows a row per part, without --{flag}: score one part, as --protocol NAME-PART"
            )
    from detmap.cli.options import decided
    from detmap.detection.protocols import Protocol, parts_of
    from detmap.evaluation import evaluate_parts

    parts_of(protocol.name)  # refuse a protocol without parts before files are read
    with stages(options) as stage:
        stage("reading the ground truth")
        found = found_of(options, protocol.iou_type)
        truth = read_truth(options, protocol, [found]).table
        stage("reading the detections")
        detections = found.detections(truth)
        stage("matching")
        decisions = decided(options, Protocol)
        results = evaluate_parts(truth, detections, protocol.name, threads=options.threads, **decisions)
    note(options, {part: result.notices for part, result in results.items()})
    document = {part: result.to_dict() for part, result in results.items()}
    rows = [{"part": part, **result} for part, result in results.items()]
    title = (
        f"{protocol.title}: {len(detections):,} detections, {len(truth):,} objects, {truth.images.ids.size:,} images"
    )
    finish([rows], options, title, document, rows)
    return 0


def _scene(protocol: Protocol) -> str:
    """Return the protocol's noun for an image: "image", "video" or "sample"."""
    from detmap.shapes import find

    return find(protocol.iou_type).scene


def _scored(options: argparse.Namespace, protocol: Protocol, stage: Callable[[str], None], executor: Any) -> Scored:
    """Read and score the files. If the options need an evaluation card, the outcome has names and hashes of the inputs."""
    stage("reading the ground truth")
    reading = reading_of(options, "detections", protocol.iou_type)
    if options.sharded:
        from detmap.batch import evaluate_shards, find

        entries = find([options.detections])
        inputs = [entry.input(reading) for entry in entries]
    else:
        inputs = [found_of(options, protocol.iou_type)]
    of_truth = read_truth(options, protocol, inputs)
    ground_truth = of_truth.table
    named = [] if not (options.card or options.against) else [cards.truth_of(of_truth)]
    of_truth.input.release()
    if options.sharded:
        stage("reading and matching the shards")
        result = evaluate_shards(
            ground_truth, entries, protocol, reading=reading, executor=executor, threads=options.threads
        )
        found = sum(row["detections"] for row in result.per_category)
        if options.card:
            named += [*manifests_of([options.detections]), *map(cards.found_of, inputs)]
    else:
        stage("reading the detections")
        from detmap.detection.given import Owned

        # A card has the digest of all columns, so no column may be dropped while the file is read.
        given = Owned(inputs[0].detections(ground_truth, once=not options.card))
        if options.card:
            named += [cards.found_of(inputs[0], given.held)]
        inputs[0].release()
        from detmap.detection.evaluate import scored

        stage("matching")
        found = len(given.held)
        result = scored(ground_truth, given, protocol, threads=options.threads)
    named += files_of(options, "eval") if options.card else []
    return Scored(result, named, {"detections": found, **cards.counts_of(ground_truth)})


def _write_arrays(path: str, result: DetectionResult) -> None:
    import numpy as np

    file = io.BytesIO()
    np.savez(file, precision=result.precision, recall=result.recall, scores=result.scores)
    write(path, file.getvalue())


def _fill_batch(parser: argparse.ArgumentParser) -> None:
    add_ground_truth(parser)
    add_option(
        parser,
        "predictions PREDICTIONS",
        "files, patterns, folders, or a manifest .csv with the columns path, name, and any tags",
        nargs="+",
    )
    add_option(parser, "--rank-by METRIC", "rank by this metric; default: AP, or mAP")
    add_option(parser, "--metrics LIST", "the metrics of the leaderboard, as AP,AP50,AR_100; default: all")
    add_option(parser, "--fail-fast", "stop at the first file that cannot be scored")
    add_resume(parser)
    add_input_options(parser)
    add_detection_options(parser)
    add_bootstrap_options(parser, tests=True)
    add_option(
        parser,
        "--under",
        "score each file under other rules too, and mark neighbours whose order does not survive them",
        choices=("all",),
    )
    add_challenge_options(parser)
    add_cluster_options(parser)
    output = add_format(parser)
    add_option(output, "--out/-o DIR", "write leaderboard.* and results/NAME.json")
    add_card(parser)


def _batch(options: argparse.Namespace) -> int:
    protocol = protocol_of(options)
    check_resume(options)
    check_card(options)
    from detmap import batch
    from detmap.batch import finding, publishing
    from detmap.batch.leaderboard import default_metric

    folders = [folder for folder in (options.out, options.publish) if folder]
    written = [os.path.join(folder, name) for folder in folders for name in finding.WRITTEN]
    entries, reading, of_truth = read_several(options, protocol, written)
    ground_truth = of_truth.table
    challenge = challenge_of(options, ground_truth)
    splits = challenge["splits"]
    if challenge["limits"] is None and _deserve_processes(options, entries):
        challenge["limits"] = batch.Limits()
    if challenge["limits"] is not None:
        tell_of_workers()
    names = () if splits is None else splits.names
    if options.publish:
        publishing.check(options.publish, options.out, names, options.hide)
    known = batch.metric_names(ground_truth, protocol, names, options.hide)
    if options.rank_by is not None and options.rank_by not in known:
        raise OptionError(f"cannot rank by {shorten(options.rank_by)}{one_of(options.rank_by, known[:30])}")
    metric = options.rank_by or default_metric(known, names)
    metrics = _listed(options.metrics, known)
    done: list[batch.FileResult] = []
    tests = None

    def keep(in_haste: bool = False) -> tuple[batch.Leaderboard, list[str]]:
        ranked = metric if options.rank_by or names else None
        board = batch.Leaderboard(list(done), ranked, tests, options.hide, options.discreet, metrics)
        return board, board.write(options.out, in_haste=in_haste) if options.out and done else []

    try:
        in_haste = partial(keep, in_haste=True)
        with before_end(in_haste), _executor(options) as executor, progress(options, len(entries)) as advance:
            outcomes = batch.score(
                ground_truth,
                entries,
                protocol,
                reading=reading,
                **draws_of(options),
                method=options.interval,
                out=options.out,
                resume=options.resume,
                **challenge,
                under=metric if options.under else None,
                executor=executor,
                threads=options.threads,
            )
            with contextlib.closing(outcomes):
                for outcome in outcomes:
                    done.append(outcome)
                    advance()
                    if outcome.error:
                        say_error(options, outcome.entry.name, outcome.error)
                        if options.fail_fast:
                            break
            large = len(done) > _MOST_TESTED and options.permutations is None
            if options.bootstrap and large and not options.quiet:
                say(
                    f"note: no groups: the pairs of more than {_MOST_TESTED} files are tested only with --permutations N"
                )
            if options.bootstrap and not large:
                tests = batch.compare_files(
                    ground_truth,
                    done,
                    protocol,
                    metric=metric if names else options.rank_by,
                    seed=options.seed,
                    level=options.confidence,
                    **tests_of(options),
                    reading=reading,
                    splits=splits,
                    out=options.out,
                    resume=options.resume,
                    executor=executor,
                    threads=options.threads,
                )
    finally:  # finished files are shown and saved even after an interrupt
        board, missing = keep()
    if options.publish:
        missing = list(dict.fromkeys([*missing, *published(options, board, len(entries))]))
    if not options.quiet:
        for sentence in missing:
            say(f"note: {sentence}")
    if board.notices_may_be_shown:
        scored = {one.entry.name: one.notices for one in board.results if not one.error}
        note(options, scored, protocol.iou_type, in_table=True)
    if board.notices_may_be_shown:
        empty = [one.entry for one in board.results if not one.error and is_nearly_none({"": one[str(board.rank_by)]})]
        tell_causes(options, protocol, ground_truth, [(entry.name, entry.input(reading)) for entry in empty])
    if options.card:
        write_card("batch", batch_card(options, protocol, of_truth, entries, done), options)
    failed = sum(outcome.error is not None for outcome in done)
    errors = f", {failed} with errors" if failed else ""
    title = f"{protocol.title}: {many(len(done), 'file')} by {board.rank_by}{errors}"
    told = {"notices"} if options.format in ("table", "markdown") else set()  # notices have a table of their own
    table = [{name: value for name, value in row.items() if name not in told} for row in board.table()]
    tables = [table, board.doubts(), board.notices(), board.errors()]
    kept = [str(board.rank_by), *(f"{board.rank_by} {what}" for what in ("low", "high", "bias"))]
    print_tables(tables, options, title, board.to_dict(), board.rows(), keep=kept)
    print_notes(board.sentences(), options)
    return 3 if failed else 0


def _listed(given: str | None, known: Sequence[str]) -> list[str]:
    """Return the metrics that a leaderboard shows; an empty list stands for all metrics."""
    found = [name.strip() for name in (given or "").split(",") if name.strip()]
    if given is not None and not found:
        raise OptionError("--metrics names no metric")
    for name in found:
        if name not in known:
            raise OptionError(f"--metrics: no metric {shorten(name)}{one_of(name, known[:30])}")
    return found


def _fill_compare(parser: argparse.ArgumentParser) -> None:
    add_ground_truth(parser)
    add_option(
        parser,
        "predictions PREDICTIONS",
        "two or more files, given as for detmap batch; with --trec runs; with --reid and --hashing GT is the first",
        nargs="+",
    )
    add_option(parser, "--metric NAME", "compare by this metric of the table; default: AP, or mAP")
    add_explanations(parser)
    add_rankings(parser, "PREDICTIONS runs")
    add_input_options(parser)
    add_detection_options(parser)
    add_bootstrap_options(parser, 1000, tests=True)
    output = add_format(parser)
    add_option(output, "--out/-o FILE", "write everything as JSON")
    add_card(parser)
    add_gates(parser, "compare")


def _compare(options: argparse.Namespace) -> int:
    kind = kind_of(options)
    if kind is not None:
        compare_rankings(options, kind, _fill_compare)
        return 0
    if options.convention:
        raise OptionError("--convention goes with --trec, --reid or --hashing")
    protocol = protocol_of(options)
    gates = Gates(options, "compare")
    _check_names(gates, protocol)
    check_card(options)
    if options.under and options.why:
        raise OptionError("give --under all or --why, not both")
    if options.under or options.why:
        check_tests(options)
    entries, reading, of_truth = read_several(options, protocol, [options.out], fewest=2)
    ground_truth = of_truth.table
    if options.under or options.why:
        found = {entry.name: entry.input(reading).detections(ground_truth) for entry in entries}
        (show_survival if options.under else show_contrast)(options, protocol, ground_truth, found)
        return 0
    made = compare_entries(options, protocol, ground_truth, entries, reading)
    if options.card:
        write_card("compare", compare_card(options, protocol, of_truth, entries, made), options)
    note(options, made.notices, protocol.iou_type, in_table=True)
    title = f"{protocol.title}: {made.metric}, {many(ground_truth.images.ids.size, _scene(protocol))}"
    corrected = CORRECTED[made.correction]
    tables, document, rows, notes = comparison_tables(made, corrected, options)
    finish(tables, options, title, document, rows, notes, keep=("difference", f"p ({corrected})"))
    return _judge_models(options, protocol, gates, of_truth, entries, made)


def _judge_models(
    options: argparse.Namespace, protocol: Protocol, gates: Gates, truth: Truth, entries: Sequence[Any], made: Any
) -> int:
    """Evaluate the gates for models that were compared."""
    if not gates:
        return 0
    from detmap import match
    from detmap.detection.metric_names import find_metric, metric_table
    from detmap.errors import UnknownMetricError

    gates.check_same(protocol, [cards.truth_of(truth)] if options.against else [])
    models = {
        name: {metric: float(one.estimate[at]) for metric, at in one.columns.items()}
        for name, one in made.bootstraps.items()
    }
    baseline, of_first = next(iter(models.items()))
    reading = reading_of(options, "detections", protocol.iou_type)
    categories = next(iter(made.permutations.values())).categories

    def name_of(name: str) -> str:
        found = name if name in of_first else find_metric(name, protocol, metric_table(protocol, categories))
        if found is None:
            raise UnknownMetricError(name, of_first)
        return found

    def tally_of(name: str) -> Any:
        entry = next(one for one in entries if one.name == name)
        return match(truth.table, entry.input(reading).detections(truth.table), protocol, threads=options.threads)

    def p_value(name: str, metric: str) -> float | str:
        if options.against:
            return _chance(options, protocol, gates, tally_of(name), metric)
        test = made.permutations.get((baseline, name)) or made.permutations[name, baseline]
        if metric not in test.columns:
            from detmap.statistics import permute

            test = permute(
                tally_of(baseline), tally_of(name), seed=options.seed, metric=metric, threads=options.threads
            )
        return float(test.p_values()[test.columns[metric]])

    return gates.judge(models, p_value, name_of, options.confidence)


def compare_entries(
    options: argparse.Namespace, protocol: Protocol, ground_truth: Any, entries: Any, reading: Reading
) -> Any:
    """Read and match the files of detections, and test the differences between the models."""
    from detmap import match
    from detmap.statistics import compare

    tallies = {}
    with progress(options, len(entries)) as advance:
        for entry in entries:
            detections = entry.input(reading).detections(ground_truth)
            tallies[entry.name] = match(ground_truth, detections, protocol, threads=options.threads)
            advance()
        how = {"metric": options.metric, "method": options.interval, "threads": options.threads}
        return compare(tallies, **draws_of(options), **tests_of(options), **how)


def read_several(
    options: argparse.Namespace, protocol: Protocol, written: Sequence[str | None] = (), fewest: int = 1
) -> tuple[list[Entry], Reading, Truth]:
    """Find the files of detections, and read the ground truth.

    Raise an error if there are fewer than `fewest` files, or if an output path in `written` is also an input.
    """
    from detmap.batch import find
    from detmap.formats.files import check_outputs, once

    entries = find(options.predictions)
    paths = [entry.path for entry in entries]
    given = [path for path in options.predictions if os.path.isfile(path) and options.predictions.count(path) > 1]
    if fewest > len(entries) and given:
        raise OptionError(f"{shorten(given[0], 300)} is given twice: name another file to compare it with")
    if fewest > len(entries):
        raise OptionError("a comparison needs two models or more")
    inputs = [*read_by(options, apart="predictions"), *paths]
    once(inputs)
    check_outputs(written, [*options.predictions, *inputs])
    if getattr(options, "scheduler", None) and "-" in paths:
        raise OptionError("the workers of --scheduler cannot read standard input (-): write it to a file")
    reading = reading_of(options, "detections", protocol.iou_type)
    return entries, reading, read_truth(options, protocol, [entry.input(reading) for entry in entries])


def read_truth(options: argparse.Namespace, protocol: Protocol, found: Sequence[Input]) -> Truth:
    """Read the ground truth for the given inputs of detections."""
    from detmap.formats.files import noted

    truth = truth_of(options, protocol.iou_type, found, protocol)
    with noted() as opened:
        table = truth.ground_truth(found)
    suggest_clusters(options, table, truth)
    return Truth(truth, table, opened - set(paths_of(options)))


def suggest_clusters(options: argparse.Namespace, table: Any, truth: Input) -> None:
    """Print a hint that images look like frames of videos, if intervals or tests treat images as independent."""
    told = options.quiet or getattr(options, "discreet", False)
    if options.bootstrap and options.clusters is None and not told:
        note(options, {"": truth.suggested_clusters(table)}, truth.reading.iou_type)


def _deserve_processes(options: argparse.Namespace, entries: Sequence[Entry]) -> bool:
    """Return whether worker processes would be faster than threads. Only the main process can read streams."""
    from detmap.formats.inputs import is_stream
    from detmap.system.parallel import thread_count

    local = not options.scheduler and len(entries) >= _MANY and thread_count(options.threads) > 1
    local = local and not options.resume  # with --resume, most files are already scored
    return local and not any(is_stream(entry.path) for entry in entries)


@contextlib.contextmanager
def _executor(options: argparse.Namespace) -> Iterator[Any]:
    if not options.scheduler:
        yield None
        return
    from detmap.batch import cluster

    tell_of_workers()
    with cluster(options.scheduler) as executor:
        yield executor


def _protocols(options: argparse.Namespace) -> None:
    from detmap.decisions import apart
    from detmap.detection.protocols import COCO, PRESETS, USERS

    rows = [
        {
            "protocol": name,
            "used by": USERS.get(name, "the benchmark" if PRESETS.is_shipped(name) else "a plug-in"),
            "decides": one.describe().partition(": ")[2],
            "unlike coco": apart(one, COCO),
        }
        for name, one in PRESETS.items()
    ]
    print_list(rows, options)


#: Commands that `detmap verify` can repeat.
SCORERS = {
    "eval": Scorer(
        ("ground_truth", "detections"), lambda options: _scored(options, protocol_of(options), lambda text: None, None)
    )
}

COMMANDS = {
    "eval": Command(
        "score detections against ground truth",
        _fill_eval,
        _eval,
        "Score detections against ground truth under the rules of a benchmark, by default those of COCO.",
        _EPILOG,
        first="--protocol --iou-type --bootstrap --per-class --format --out --plot --card --fail-under",
    ),
    "batch": Command(
        "score many files against one ground truth: a leaderboard",
        _fill_batch,
        _batch,
        "Score many files against one ground truth and rank them. A file that cannot be scored gets a row that says "
        "why.",
        _BATCH_EPILOG,
        instead={"--pq": fill_batch},
        first="--protocol --iou-type --rank-by --metrics --bootstrap --format --out --resume --splits --publish",
    ),
    "compare": Command(
        "test which models differ by more than chance",
        _fill_compare,
        _compare,
        "Compare models on the same images. Paired permutation tests say whether two models differ: would they differ "
        "as much if it were chance which of them made the detections of an image? The interval of a difference agrees with "
        "its test; that of a model's own value comes from resampled images. A category is tested if enough images hold it.",
        multiplies=True,
        instead={"--pq": fill_compare},
        first="--protocol --iou-type --metric --why --under --trec --format --out --max-drop",
    ),
    "protocols": Command(
        "list the protocols of detections and what they decide",
        add_list_format,
        _protocols,
        "List the protocols of detections and what they decide.",
        computes=False,
    ),
}
