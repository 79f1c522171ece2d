"""The command pq, which scores panoptic segmentation; and compare, batch and report with ``--pq``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from detmap.cli.cards import Scored, Scorer, add_card, input_of, write_card
from detmap.cli.challenges import add_limits, add_resume, check_resume, limits_of
from detmap.cli.gates import Gates, add_gates
from detmap.cli.help import add_option, add_page
from detmap.cli.options import (
    CORRECTED,
    Command,
    add_bootstrap_options,
    add_decisions,
    add_format,
    add_intervals,
    check_confidence,
    check_threads,
    decided,
    draws_of,
    tests_of,
)
from detmap.cli.output import (
    finish,
    note,
    print_notes,
    print_tables,
    progress,
    say,
    say_error,
    show,
    stages,
    write_page,
    write_result,
)
from detmap.errors import check_choice, many

if TYPE_CHECKING:
    from detmap.batch import Limits
    from detmap.batch.panoptic import PanopticFiles
    from detmap.data.segments import SegmentedImages
    from detmap.panoptic import PanopticResult, Rules

_EPILOG = """\
examples:
  detmap pq panoptic_val2017.json predictions.json
  detmap pq gt.json pred.json --gt-folder masks/gt --pred-folder masks/pred --per-class
  detmap pq gt.json pred.json --bootstrap 1000 --format markdown
  detmap pq gt.json pred.json --fail-under PQ=0.4 --max-drop PQ=0.005 --against card.json
  detmap compare --pq gt.json before.json after.json
  detmap batch --pq gt.json models/*.json --out board
  detmap report --pq gt.json before.json after.json --out report.html

exit code: 0, 2 if nothing can be scored, 4 if a gate is not passed
"""

_BATCH_EPILOG = """\
examples:
  detmap batch --pq gt.json models/*.json --out board
  detmap batch --pq gt.json models/*.json --rank-by SQ --bootstrap 1000 --out board --resume

exit code: 0 if all files were scored, 3 if some could not be, 2 if nothing can be scored
"""

_COMPARE_EPILOG = """\
examples:
  detmap compare --pq gt.json before.json after.json
  detmap compare --pq gt.json models/*.json --metric SQ --format markdown
"""

_REPORT_EPILOG = """\
examples:
  detmap report --pq gt.json pred.json --out report.html
  detmap report --pq gt.json before.json after.json --bootstrap 1000 --out report.html
  detmap report --pq gt.json pred.json --gt-folder masks/gt --pred-folder masks/pred --out report.html
"""


def _add_truth(parser: argparse.ArgumentParser) -> None:
    add_option(parser, "ground_truth GT.json", "COCO's panoptic JSON: categories, and segments by image")


def _add_rules(parser: argparse.ArgumentParser) -> None:
    from detmap.panoptic.rules import Rules

    rules = parser.add_argument_group("rules")
    add_decisions(rules, Rules, (), others=True)
    add_option(rules, "--threads N", "number of threads; default: one per processor")


def _add_folders(parser: argparse.ArgumentParser, many: bool) -> None:
    folders = parser.add_argument_group("label maps")
    add_option(folders, "--gt-folder DIR", "PNG files of the ground truth; default: GT.json without .json")
    says = "PNG files of the predictions; default: PRED.json without .json"
    more = {"action": "append"} if many else {}
    add_option(folders, "--pred-folder DIR", says + ("; once per file, in their order" if many else ""), **more)


def _fill(parser: argparse.ArgumentParser) -> None:
    _add_truth(parser)
    add_option(parser, "detections PRED.json", "the same for predictions: segments by image")
    _add_folders(parser, many=False)
    _add_rules(parser)
    add_bootstrap_options(parser, unit="images")
    output = add_format(parser)
    add_option(output, "--per-class", "show a row per category too", dest="rows")
    add_option(output, "--out/-o FILE", "write everything as JSON")
    add_card(parser)
    add_gates(parser, "pq")


def add_several(parser: argparse.ArgumentParser) -> None:
    """Add the options shared by commands on files of several models."""
    add_option(parser, "--pq", "the files are those of detmap pq", required=True)
    _add_truth(parser)
    add_option(
        parser,
        "predictions PRED.json",
        "a file per model; or patterns, or a manifest .csv with the columns path and name",
        nargs="+",
    )
    _add_folders(parser, many=True)
    _add_rules(parser)


def rules_of(options: argparse.Namespace) -> Rules:
    """Return the requested rules. Called before files are read, so that typos raise at once."""
    from detmap.panoptic.rules import Rules

    check_threads(options)
    check_confidence(options)
    return Rules(**decided(options, Rules))


def truth_of(options: argparse.Namespace) -> SegmentedImages:
    """Read the ground truth that the options name, with the clusters of its images."""
    from detmap.formats.coco.panoptic import read_panoptic, with_clusters

    truth = read_panoptic(options.ground_truth, options.gt_folder)
    clusters = getattr(options, "clusters", None)
    return truth if clusters is None else with_clusters(truth, clusters)


def score(truth: SegmentedImages, path: str, folder: str | None, rules: Rules, threads: int | None) -> PanopticResult:
    """Read and score the predictions of a model."""
    from detmap.formats.coco.panoptic import read_panoptic
    from detmap.panoptic import PanopticResult
    from detmap.panoptic.matching import match

    return PanopticResult(match(truth, read_panoptic(path, folder, predictions=True), rules, threads))


def inputs_of(options: argparse.Namespace, models: Iterable[tuple[str, str | None]]) -> list[dict[str, str]]:
    """Return names and hashes of all input files and folders, for an evaluation card."""
    from detmap.formats.coco.panoptic import folder_of

    sides = [("ground_truth", options.ground_truth, options.gt_folder)]
    sides += [("detections", path, folder) for path, folder in models]
    found = []
    for role, path, folder in sides:
        found.append(input_of(role, path, path))
        maps = folder_of(path, folder, role != "ground_truth")
        found.append(input_of(f"{role}_maps", maps, maps))
    if getattr(options, "clusters", None):
        found.append(input_of("clusters", options.clusters, options.clusters))
    return found


def _scored(options: argparse.Namespace) -> Scored:
    """Repeat the evaluation that a card describes."""
    truth = truth_of(options)
    result = score(truth, options.detections, options.pred_folder, rules_of(options), options.threads)
    inputs = inputs_of(options, [(options.detections, options.pred_folder)])
    return Scored(result, inputs, counts_of(truth))


def counts_of(truth: SegmentedImages) -> dict[str, int]:
    """Return the numbers of segments, images and categories for a card."""
    assert truth.classes is not None
    counts = {"segments": int(truth.ids.size), "images": len(truth.image_ids)}
    return {**counts, "categories": len(truth.classes.ids)}


def _pq(options: argparse.Namespace) -> int:
    rules, gates = rules_of(options), Gates(options, "pq")
    with stages(options) as stage:
        stage("reading the ground truth")
        truth = truth_of(options)
        stage("matching segments")
        result = score(truth, options.detections, options.pred_folder, rules, options.threads)
        add_intervals(result, options, stage)
    note(options, {"": result.notices}, in_table=True)
    write_result(result, options)
    inputs = []
    if options.card or options.against:
        inputs = inputs_of(options, [(options.detections, options.pred_folder)])
    if options.card:
        write_card("pq", Scored(result, inputs, counts_of(truth)), options)
    counts = ", ".join(f"{count:,} {of}" for of, count in counts_of(truth).items())
    show(result, options, f"{rules.describe()}: {counts}")
    gates.check_same(rules, inputs)

    def p_value(_: str, metric: str) -> float | str:
        return _chance(options, gates, truth, rules, result, metric)

    return gates.judge({"": result}, p_value, result.name_of, options.confidence)


def _chance(
    options: argparse.Namespace, gates: Gates, truth: SegmentedImages, rules: Rules, result: PanopticResult, metric: str
) -> float | str:
    """Score the baseline's file again; return the p-value of a paired permutation test, or the reason why there is
    none.
    """
    from detmap.statistics import permute

    try:
        path, folder = gates.find_input("detections"), gates.find_input("detections_maps")
    except LookupError as error:
        return str(error)
    before = score(truth, path, folder, rules, options.threads)
    if not gates.holds(metric, before[metric]):
        return f"{path} does not give the card's {metric} with the options of this run"
    return permute(before.tally, result.tally, seed=options.seed, metric=metric).p_value(metric)


# ------------------------------------------------------------------------------------------------------- several models


def files_of(
    options: argparse.Namespace, truth: SegmentedImages, rules: Rules, limits: Limits | None = None
) -> PanopticFiles:
    """Return the files of predictions that the options name."""
    from detmap.batch.panoptic import PanopticFiles

    return PanopticFiles(truth, options.predictions, options.pred_folder or None, rules, options.threads, limits)


def results_of(options: argparse.Namespace, files: PanopticFiles) -> dict[str, PanopticResult]:
    """Score the files of predictions."""
    found = {}
    with progress(options, len(files.entries)) as advance:
        for entry in files.entries:
            found[entry.name] = files.result(entry)
            advance()
    return found


def fill_compare(parser: argparse.ArgumentParser) -> None:
    """Add the options of detmap compare --pq."""
    add_several(parser)
    parser.epilog = _COMPARE_EPILOG
    parser.set_defaults(run=_compare)
    parser.description = (
        "Compare models of panoptic segmentation on the same images, by paired permutation tests: would they differ as much "
        "if it were chance which of them made the segments of an image?"
    )
    add_option(parser, "--metric NAME", "compare by this metric; default: PQ")
    add_bootstrap_options(parser, 1000, tests=True)
    add_option(add_format(parser), "--out/-o FILE", "write everything as JSON")


def _compare(options: argparse.Namespace) -> int:
    from detmap.cli.comparing import comparison_tables
    from detmap.statistics import compare

    rules = rules_of(options)
    truth = truth_of(options)
    results = results_of(options, files_of(options, truth, rules))
    how = {"metric": options.metric, "method": options.interval, "threads": options.threads}
    made = compare(results, **draws_of(options), **tests_of(options), **how)
    note(options, made.notices, in_table=True)
    corrected = CORRECTED[made.correction]
    tables, document, rows, notes = comparison_tables(made, corrected, options)
    title = f"{rules.describe()}: {made.metric}, {len(truth.image_ids):,} images"
    finish(tables, options, title, document, rows, notes, keep=("difference", f"p ({corrected})"))
    return 0


def fill_batch(parser: argparse.ArgumentParser) -> None:
    """Add the options of detmap batch --pq."""
    add_several(parser)
    parser.set_defaults(run=_batch)
    parser.description = (
        "Score many files of panoptic segmentation against one ground truth and rank them. A file that cannot be scored "
        "gets a row that says why."
    )
    parser.epilog = _BATCH_EPILOG
    add_option(parser, "--rank-by METRIC", "rank by this metric; default: PQ", default="PQ")
    add_bootstrap_options(parser, tests=True)
    add_limits(parser.add_argument_group("limits"))
    output = add_format(parser)
    add_option(output, "--out/-o DIR", "write leaderboard.* and results/NAME.json")
    add_resume(output)


def _batch(options: argparse.Namespace) -> int:
    from detmap.batch.leaderboard import Leaderboard
    from detmap.panoptic.tally import METRICS

    rules = rules_of(options)
    check_choice("metric", options.rank_by, METRICS)
    check_resume(options)
    limits = limits_of(options)
    files = files_of(options, truth_of(options), rules, limits)
    done = []
    with progress(options, len(files.entries)) as advance:
        for outcome in files.score(
            **draws_of(options), method=options.interval, out=options.out, resume=options.resume
        ):
            done.append(outcome)
            advance()
            if outcome.error:
                say_error(options, outcome.entry.name, outcome.error)
    tests = None
    if options.bootstrap:
        how = {"seed": options.seed, "level": options.confidence}
        tests = files.compare(done, metric=options.rank_by, **how, **tests_of(options))
    board = Leaderboard(done, options.rank_by, tests)
    for missing in board.write(options.out) if options.out else ():
        if not options.quiet:
            say(f"note: {missing}")
    note(options, {one.entry.name: one.notices for one in board.results if not one.error}, in_table=True)
    failed = sum(outcome.error is not None for outcome in done)
    errors = f", {failed} with errors" if failed else ""
    title = f"{rules.describe()}: {many(len(done), 'file')} by {board.rank_by}{errors}"
    print_tables([board.table(), board.notices(), board.errors()], options, title, board.to_dict(), board.rows())
    print_notes(board.sentences(), options)
    return 3 if failed else 0


def fill_report(parser: argparse.ArgumentParser) -> None:
    """Add the options of detmap report --pq."""
    add_several(parser)
    parser.epilog = _REPORT_EPILOG
    parser.set_defaults(run=_report)
    parser.description = (
        "Write a report on panoptic segmentation as one HTML file that asks for nothing: PQ with its interval, what is "
        "missed or false, categories, and the worst images; of several models side by side."
    )
    add_page(parser)
    add_bootstrap_options(parser, 1000, tests=True)
    parser.set_defaults(bootstrap_needed=False)


def _report(options: argparse.Namespace) -> None:
    from detmap.reports.page import check_installed

    rules = rules_of(options)
    check_installed("detmap report")
    from datetime import datetime, timezone

    from detmap.reports.panoptic import Model, html
    from detmap.statistics import bootstrap, compare

    truth = truth_of(options)
    files = files_of(options, truth, rules)
    results = results_of(options, files)
    models = [Model(name, result) for name, result in results.items()]
    how: dict[str, Any] = {"method": options.interval, "threads": options.threads}
    comparison = None
    if options.bootstrap and len(models) > 1:
        comparison = compare(results, **draws_of(options), **tests_of(options), **how)
        for model in models:
            model.bootstrap = comparison.bootstraps[model.name]
    elif options.bootstrap:
        models[0].bootstrap = bootstrap(models[0].result, options.bootstrap, options.seed, **how)
    sides = [(one.path, folder) for one, folder in zip(files.entries, _folders(options, files), strict=True)]
    made = html(
        models,
        inputs_of(options, sides),
        datetime.now(timezone.utc),
        comparison=comparison,
        level=options.confidence,
    )
    write_page(made, options)


def _folders(options: argparse.Namespace, files: PanopticFiles) -> list[str | None]:
    return list(options.pred_folder or [None] * len(files.entries))


#: Commands that `detmap verify` can repeat.
SCORERS = {"pq": Scorer(("ground_truth", "detections"), _scored)}

COMMANDS = {
    "pq": Command(
        "score panoptic segmentation: PQ, SQ and RQ",
        _fill,
        _pq,
        "Score panoptic segmentation: panoptic quality (PQ), segmentation quality (SQ) and recognition quality (RQ) of all "
        "categories, things and stuff, equal to panopticapi's to the last bit.",
        _EPILOG,
        first="--gt-folder --pred-folder --parts --bootstrap --per-class --format --out --card --fail-under",
        extensible=False,
    )
}
