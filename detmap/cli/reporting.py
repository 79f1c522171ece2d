"""The command report, which writes a page about detectors or rankings."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from detmap.cli.cards import files_of, input_of
from detmap.cli.detection import suggest_clusters
from detmap.cli.help import add_option, add_page
from detmap.cli.inputs import reading_of, truth_of
from detmap.cli.options import (
    Command,
    add_bootstrap_options,
    add_detection_options,
    add_ground_truth,
    add_input_options,
    add_score,
    check_confidence,
    draws_of,
    protocol_of,
    tests_of,
)
from detmap.cli.output import stages, write_page
from detmap.cli.panoptic import fill_report
from detmap.cli.retrieval import add_hashing, add_reid, add_runs, evaluate_hashing, evaluate_reid, trec_rules
from detmap.errors import InputError, OptionError, shorten

if TYPE_CHECKING:
    from detmap.checks.report import Report
    from detmap.data.tables import Detections, GroundTruth
    from detmap.detection.protocols import Protocol
    from detmap.reports.rankings import Model as Ranked

_EPILOG = """\
examples:
  detmap report instances_val.json detections.json --out report.html
  detmap report instances_val.json before.json after.json --out report.html
  detmap report instances_val.json detections.json --out report.html --images val2017 --attributes weather.csv
  detmap report --trec qrels.txt bm25.run dense.run --out report.html
  detmap report --reid market.npz --out report.html

Every way has options of its own, which its help lists: detmap report --trec --help
"""

_USAGE = """detmap report GT DETECTIONS... [options]
       detmap report --trec QRELS RUN... [options]
       detmap report --reid FILE.npz... [options]
       detmap report --hashing FILE.npz... [options]
       detmap report --pq GT.json PRED.json... [options]"""


def _fill(parser: argparse.ArgumentParser) -> None:
    parser.usage = _USAGE
    add_ground_truth(parser, apart=("images",))  # here --images names the folder of pictures
    add_option(parser, "predictions DETECTIONS", "one file or more, given as for detmap batch", nargs="+")
    page = add_page(parser)
    add_option(page, "--iou IOU", "IoU threshold of the errors; default: 0.5", default=0.5)
    add_score(page)
    add_option(
        page,
        "--images DIR",
        "folder of the images, of which the worst and the most suspicious labels are shown (extra: images)",
        dest="pictures",
    )
    add_option(page, "--attributes FILE", "slices by a CSV file of attributes of images or objects")
    add_input_options(parser)
    add_detection_options(parser)
    add_bootstrap_options(parser, 1000, tests=True)
    add_option(
        parser.add_argument_group("confidence of parts"),
        "--all-intervals",
        "intervals also of scores to cut at and of slices; this takes longer",
    )
    parser.set_defaults(bootstrap_needed=False)


def _fill_rankings(kind: str, parser: argparse.ArgumentParser) -> None:
    """Add the options of a report on rankings; `kind` is the command that scores the rankings."""
    parser.usage = _USAGE
    parser.description = (
        "Write a report on rankings as one HTML file that asks for nothing: metrics with their intervals, how much is found "
        "by which rank, the worst queries, and what ties could change; of several systems side by side."
    )
    parser.set_defaults(run=_report_rankings, kind=kind, plot=True)
    parser.add_argument(f"--{kind}", action="store_true", required=True, help=f"the files are those of detmap {kind}")
    if kind == "trec":
        add_runs(parser)
    else:
        add_option(parser, "paths FILE.npz", f"one file or more, as for detmap {kind}", nargs="+")
        {"reid": add_reid, "hashing": add_hashing}[kind](parser)
    add_page(parser)
    add_bootstrap_options(parser, 1000, unit="queries")
    parser.set_defaults(bootstrap_needed=False)


def _report(options: argparse.Namespace) -> None:
    protocol = protocol_of(options)
    from detmap.reports.page import check_installed

    check_installed("detmap report")
    from detmap.reports.detectors import Settings, page_of
    from detmap.reports.pictures import Pictures

    settings = Settings(
        iou=options.iou,
        score=options.score,
        pictures=None if options.pictures is None else Pictures(options.pictures),
        attributes=options.attributes,
        **draws_of(options),
        method=options.interval,
        **tests_of(options),
        all_intervals=options.all_intervals,
        threads=options.threads,
    )
    with stages(options) as stage:
        ground_truth, entries, inputs = _tables(options, protocol, stage)
        made = page_of(ground_truth, entries, protocol, inputs, settings, stage)
    write_page(made, options)


def _tables(
    options: argparse.Namespace, protocol: Protocol, stage: Callable[[str], None]
) -> tuple[GroundTruth, Iterator[tuple[str, Detections]], list[dict[str, str]]]:
    """Return the ground truth, an iterator over the names and detections of models, and a list with names and hashes of
    the inputs. The iterator appends to this list.
    """
    from detmap.batch import find
    from detmap.formats.files import once

    entries = find(options.predictions)
    once([options.ground_truth, options.image_set, *(entry.path for entry in entries)])
    stage("reading the ground truth")
    reading = reading_of(options, "detections", protocol.iou_type)
    found = [entry.input(reading) for entry in entries]
    truth = truth_of(options, protocol.iou_type, found, protocol)
    ground_truth = truth.ground_truth(found, image_facts=True)
    suggest_clusters(options, ground_truth, truth)
    inputs = [input_of("ground_truth", options.ground_truth, truth.source)]

    def read() -> Iterator[tuple[str, Detections]]:
        for entry, one in zip(entries, found, strict=True):
            stage(f"reading {entry.name}")
            detections = one.detections(ground_truth)
            inputs.append(input_of("detections", entry.path, one.source))
            yield entry.name, detections
        inputs.extend(files_of(options, "report"))
        if options.attributes is not None:
            inputs.append(input_of("attributes", options.attributes, options.attributes))

    return ground_truth, read(), inputs


def _report_rankings(options: argparse.Namespace) -> None:
    from detmap.reports.page import check_installed

    check_confidence(options)
    check_installed("detmap report")
    from datetime import datetime, timezone

    with stages(options) as stage:
        models, inputs = (_runs if options.kind == "trec" else _galleries)(options, stage)
        from detmap.reports import rankings

        if options.bootstrap:
            stage("drawing queries anew")
            for model in models:
                model.bootstrap = rankings.intervals(model.result, options.bootstrap, options.seed, options.interval)
        stage("writing the page")
        made = rankings.html(models, inputs, datetime.now(timezone.utc), **draws_of(options))
    write_page(made, options)


def _runs(options: argparse.Namespace, stage: Callable[[str], None]) -> tuple[list[Ranked], list[dict[str, str]]]:
    """Score and check runs. Also return names and hashes of the inputs."""
    from detmap.checks import check_run
    from detmap.reading.sources import held
    from detmap.reports.documents import documents
    from detmap.reports.rankings import Model, under_conventions
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
        except InputError:  # the checks cannot read tables or JSON
            checked = "Judgements and runs are checked where they are TREC's lines."
        stage(f"scoring {name} under other conventions")
        listed = partial(documents, qrels, run, result.convention, rules)
        models.append(Model(name, result, None, checked, under_conventions(qrels, run, result, rules), listed))
    return models, inputs


def _galleries(options: argparse.Namespace, stage: Callable[[str], None]) -> tuple[list[Ranked], list[dict[str, str]]]:
    """Score files of arrays. Also return names and hashes of the inputs."""
    from detmap.reading.sources import held
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
    """Return short distinct names of files. A name is the shortest end of a path, without extension, that no other path
    shares.
    """
    from detmap.formats.model_names import distinct

    twice = next((path for path, times in Counter(paths).items() if times > 1), None)
    if twice is not None:
        raise OptionError(f"{shorten(twice)} is given twice: give each system once")
    return distinct(paths, stem=lambda name: name.partition(".")[0] or name)


COMMANDS = {
    "report": Command(
        "write a page that shows what goes wrong",
        _fill,
        _report,
        "Write a report as one HTML file that asks for nothing: what was evaluated, AP with its interval, what goes wrong, "
        "and where to look; of several models side by side.",
        _EPILOG,
        instead={
            "--pq": fill_report,
            **{f"--{kind}": partial(_fill_rankings, kind) for kind in ("trec", "reid", "hashing")},
        },
        first="--out --protocol --iou-type --iou --score --images --attributes --bootstrap",
    )
}
