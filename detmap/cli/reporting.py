"""The command that writes a page about detectors, or systems that rank: report."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from detmap.cli.cards import files_of, input_of
from detmap.cli.detection import single, suggest_clusters, truth
from detmap.cli.options import (
    Command,
    add_bootstrap_options,
    add_detection_options,
    add_ground_truth,
    add_input_options,
    check_confidence,
    protocol_of,
)
from detmap.cli.output import say, stages
from detmap.cli.retrieval import add_hashing, add_reid, add_runs, evaluate_hashing, evaluate_reid, trec_rules
from detmap.errors import DetmapError, InputError, OptionError, shorten
from detmap.system.whole_files import write

if TYPE_CHECKING:
    from detmap.checks.report import Report
    from detmap.detection.protocols import Protocol
    from detmap.explanations.survival import Survival
    from detmap.reports.diagnosis import Model
    from detmap.reports.rankings import Model as Ranked
    from detmap.retrieval import RankingResult

#: Of so many detections at most it is told which rule moves AP, and whether the order of models survives.
_REASONS, _SURVIVAL = 100_000, 200_000

#: Of so many ranked items at most a run is scored under every convention.
_ITEMS = 1_000_000

_EPILOG = """\
examples:
  detmap report instances_val.json detections.json --out report.html
  detmap report instances_val.json before.json after.json --out report.html
  detmap report instances_val.json detections.json --out report.html --images val2017 --attributes weather.csv
  detmap report --trec qrels.txt bm25.run dense.run --out report.html
  detmap report --reid market.npz --out report.html

Every way has options of its own, which its help lists: detmap report --trec --help
"""

_USAGE = """detmap report GT DETECTIONS... --out FILE [options]
       detmap report --trec QRELS RUN... --out FILE [options]
       detmap report --reid FILE.npz... --out FILE [options]
       detmap report --hashing FILE.npz... --out FILE [options]"""


def _fill(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a report as one HTML file that asks for nothing: what was evaluated, AP with its interval, what goes wrong, "
        "and where to look; of several models side by side."
    )
    _describe(parser)
    parser.set_defaults(run=_report)
    add_ground_truth(parser)
    parser.add_argument(
        "predictions", metavar="DETECTIONS", nargs="+", help="one file or more, given as for detmap batch"
    )
    page = _add_page(parser)
    page.add_argument("--iou", type=float, default=0.5, metavar="IOU", help="errors are told at it; default: 0.5")
    page.add_argument(
        "--score", type=float, metavar="SCORE", help="what users would see; default: where F1 of all classes is best"
    )
    page.add_argument(
        "--images",
        metavar="DIR",
        help="show the worst images and the most suspicious labels in pictures, which lie there (extra: images)",
    )
    page.add_argument("--attributes", metavar="FILE", help="slices by a CSV file of attributes of images or objects")
    add_input_options(parser)
    add_detection_options(parser)
    add_bootstrap_options(parser, 1000, tests=True)
    parser.add_argument_group("confidence of parts").add_argument(
        "--all-intervals",
        action="store_true",
        help="intervals also of scores to cut at and of slices; this takes longer",
    )
    parser.set_defaults(bootstrap_needed=False)


def _describe(parser: argparse.ArgumentParser) -> None:
    parser.usage = _USAGE
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def _add_page(parser: argparse.ArgumentParser) -> Any:
    """Add the options that every report has, and return their group."""
    page = parser.add_argument_group("report")
    page.add_argument("--out", metavar="FILE", required=True, help="where the page goes, as report.html")
    page.add_argument("--quiet", action="store_true", help="no notes or progress on stderr")
    return page


def _fill_rankings(kind: str, parser: argparse.ArgumentParser) -> None:
    """Add the options of a report on rankings; `kind` is the command that scores them."""
    parser.description = (
        "Write a report on rankings as one HTML file that asks for nothing: metrics with their intervals, how much is found "
        "by which rank, the worst queries, and what ties could change; of several systems side by side."
    )
    _describe(parser)
    parser.set_defaults(run=_report_rankings, kind=kind, plot=True)
    parser.add_argument(f"--{kind}", action="store_true", required=True, help=f"the files are those of detmap {kind}")
    if kind == "trec":
        add_runs(parser)
    else:
        parser.add_argument("paths", metavar="FILE.npz", nargs="+", help=f"one file or more, as for detmap {kind}")
        {"reid": add_reid, "hashing": add_hashing}[kind](parser)
    _add_page(parser)
    add_bootstrap_options(parser, 1000, unit="queries")
    parser.set_defaults(bootstrap_needed=False)


def _report(options: argparse.Namespace) -> None:
    protocol = protocol_of(options)
    from detmap.reports.page import check_installed
    from detmap.reports.pictures import Pictures

    check_installed("detmap report")
    pictures = None if options.images is None else Pictures(options.images)
    with stages(options) as stage:
        models, inputs = _models(options, protocol, stage)
        comparison = None
        if options.bootstrap:
            from detmap.statistics import bootstrap, compare

            stage("drawing images anew")
            how = {"method": options.interval, "threads": options.threads}
            if len(models) > 1:
                comparison = compare(
                    {model.name: model.result for model in models},
                    options.bootstrap,
                    options.seed,
                    level=options.confidence,
                    permutations=options.permutations,
                    correction=options.correction,
                    **how,
                )
                for model in models:
                    model.bootstrap = comparison.bootstraps[model.name]
            else:
                models[0].bootstrap = bootstrap(models[0].result, options.bootstrap, options.seed, **how)
        survives = None
        if len(models) > 1:
            survives = _survives(models, options, stage)
        from detmap.reports import diagnosis

        stage("writing the page")
        made = diagnosis.html(
            models,
            inputs,
            datetime.now(timezone.utc),
            comparison=comparison,
            survives=survives,
            pictures=pictures,
            level=options.confidence,
        )
    _write(made, options)


def _survives(models: list[Model], options: argparse.Namespace, stage: Callable[[str], None]) -> Survival | str | None:
    """Say whether the order of models survives, or why that is left out; None where nothing can be said."""
    from detmap.explanations import survives

    count = sum(len(model.diagnosis.detections) for model in models)
    if not options.bootstrap or count > _SURVIVAL:
        why = "Without --bootstrap" if not options.bootstrap else f"For {count:,} detections"
        return f"{why} this is left out: detmap compare --under all tells it."
    stage("trying other rules")
    first = models[0].diagnosis
    try:
        return survives(
            first.ground_truth,
            {model.name: model.diagnosis.detections for model in models},
            first.protocol,
            replicates=options.bootstrap,
            seed=options.seed,
            level=options.confidence,
            threads=options.threads,
        )
    except DetmapError as error:
        return f"This cannot be told: {error}."


def _write(made: str, options: argparse.Namespace) -> None:
    write(options.out, made.encode("utf-8", "backslashreplace"))
    if not options.quiet:
        say(f"note: wrote {options.out}, {len(made) / 1e6:.1f} MB")


def _report_rankings(options: argparse.Namespace) -> None:
    from detmap.reports.page import check_installed

    check_confidence(options)
    check_installed("detmap report")
    with stages(options) as stage:
        models, inputs = (_runs if options.kind == "trec" else _galleries)(options, stage)
        from detmap.reports import rankings

        if options.bootstrap:
            stage("drawing queries anew")
            for model in models:
                model.bootstrap = rankings.intervals(model.result, options.bootstrap, options.seed, options.interval)
        stage("writing the page")
        made = rankings.html(
            models,
            inputs,
            datetime.now(timezone.utc),
            replicates=options.bootstrap,
            seed=options.seed,
            level=options.confidence,
        )
    _write(made, options)


def _runs(options: argparse.Namespace, stage: Callable[[str], None]) -> tuple[list[Ranked], list[dict[str, str]]]:
    """Score and check runs; also return the inputs as cards name them."""
    from detmap.checks import check_run
    from detmap.formats.files import held
    from detmap.reports.rankings import Model
    from detmap.retrieval import evaluate_run

    rules = trec_rules(options)
    qrels = held(options.qrels)
    models, inputs = [], [input_of("qrels", options.qrels, qrels)]
    for name, path in zip(_names(options.runs), options.runs, strict=True):
        stage(f"scoring {name}")
        run = held(path)
        result = evaluate_run(qrels, run, **rules)
        inputs.append(input_of("run", path, run))
        stage(f"checking {name}")
        try:
            checked: Report | str = check_run(qrels, run)
        except InputError:  # what could be scored is a table or JSON
            checked = "Judgements and runs are checked where they are TREC's lines."
        stage(f"scoring {name} under other conventions")
        models.append(Model(name, result, None, checked, _under_conventions(qrels, run, result, rules)))
    return models, inputs


def _under_conventions(qrels: Any, run: Any, result: RankingResult, rules: dict[str, Any]) -> dict[str, float]:
    """Return mean AP of a run under every named convention that applies; of nothing where there are too many items."""
    from detmap.retrieval import CONVENTIONS, evaluate_run
    from detmap.retrieval.runs import read_tables

    if result.hits is None or int(result.hits.items.sum()) > _ITEMS:
        return {}
    tables, found = read_tables(qrels, run), {}
    given = {name: rules[name] for name in ("level", "depth", "judged_only")}
    for name, convention in CONVENTIONS.items():
        try:
            found[name] = evaluate_run(*tables, ["mAP"], convention, **given)["mAP"]
        except DetmapError:  # it asks for what a run does not have
            continue
    return found


def _galleries(options: argparse.Namespace, stage: Callable[[str], None]) -> tuple[list[Ranked], list[dict[str, str]]]:
    """Score files of arrays; also return the inputs as cards name them."""
    from detmap.formats.files import held
    from detmap.reports.rankings import Model

    evaluate = {"reid": evaluate_reid, "hashing": evaluate_hashing}[options.kind]
    models, inputs = [], []
    for name, path in zip(_names(options.paths), options.paths, strict=True):
        stage(f"scoring {name}")
        source = held(path)
        models.append(Model(name, evaluate(argparse.Namespace(**{**vars(options), "file": path}), source)))
        inputs.append(input_of("file", path, source))
    if getattr(options, "gallery", None) is not None:
        inputs.append(input_of("gallery", options.gallery, options.gallery))
    return models, inputs


def _names(paths: list[str]) -> list[str]:
    """Return what files are called: the shortest ends of their paths that tell them apart, without endings."""
    from detmap.batch.finding import distinct

    twice = next((path for path, times in Counter(paths).items() if times > 1), None)
    if twice is not None:
        raise OptionError(f"{shorten(twice)} is given twice: give each system once")
    return distinct(paths, stem=lambda name: name.partition(".")[0] or name)


def _models(
    options: argparse.Namespace, protocol: Protocol, stage: Callable[[str], None]
) -> tuple[list[Model], list[dict[str, str]]]:
    """Read, score and diagnose; also return the inputs as cards name them."""
    from detmap.batch import find
    from detmap.checks import check
    from detmap.detection.evaluate import evaluate
    from detmap.detection.protocols import PRESETS
    from detmap.diagnostics import diagnose
    from detmap.explanations import under_presets
    from detmap.formats.files import held, once, read_detections, read_ground_truth
    from detmap.reports.diagnosis import Model

    entries = find(options.predictions)
    paths = [entry.path for entry in entries]
    once([options.ground_truth, options.image_set, *paths])
    stage("reading the ground truth")
    how = {**truth(options, protocol, paths), "image_facts": True}
    source = held(options.ground_truth)
    ground_truth = read_ground_truth(source, options.image_set, **how)
    suggest_clusters(options, ground_truth, source)
    inputs = [input_of("ground_truth", options.ground_truth, source)]
    of_slices = {} if options.attributes is None else {"slices": {"attributes": options.attributes}}
    models = []
    for entry in entries:
        stage(f"reading {entry.name}")
        source = held(entry.path)
        detections = read_detections(source, ground_truth, **single(options, protocol))
        inputs.append(input_of("detections", entry.path, source))
        stage(f"matching {entry.name}")
        made = diagnose(
            ground_truth,
            detections,
            protocol,
            iou=options.iou,
            score=options.score,
            replicates=options.bootstrap if options.all_intervals else 0,
            seed=options.seed,
            threads=options.threads,
        )
        made.progress = stage
        result = evaluate(ground_truth, detections, protocol, threads=options.threads)
        stage(f"checking {entry.name}")
        checked = check(ground_truth, detections, iou_type=protocol.iou_type)
        if protocol.max_dets[-1] != PRESETS["coco"].max_dets[-1]:  # the check looks at coco's cap
            kept = tuple(one for one in checked.findings if one.code != "beyond_cap")
            checked = replace(checked, findings=kept)
        stage(f"scoring {entry.name} under other conventions")
        reasons = len(detections) <= _REASONS
        under = under_presets(ground_truth, detections, protocol, reasons=reasons, threads=options.threads)
        models.append(Model(entry.name, made, result, None, checked, of_slices, under))
    inputs += files_of(options, "report")
    if options.attributes is not None:
        inputs.append(input_of("attributes", options.attributes, options.attributes))
    return models, inputs


COMMANDS = {
    "report": Command(
        "write a page that shows what goes wrong",
        _fill,
        instead={f"--{kind}": partial(_fill_rankings, kind) for kind in ("trec", "reid", "hashing")},
    )
}
