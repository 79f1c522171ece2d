"""The command that writes a page about one detector or several: report."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from detmap.cli.cards import files_of, input_of
from detmap.cli.detection import single, truth, warn_of_compiling
from detmap.cli.options import (
    Command,
    add_bootstrap_options,
    add_detection_options,
    add_ground_truth,
    add_input_options,
    protocol_of,
)
from detmap.cli.output import say, stages
from detmap.writing import write

if TYPE_CHECKING:
    from detmap.protocols import Protocol
    from detmap.report.diagnosis import Model

_EPILOG = """\
examples:
  detmap report instances_val.json detections.json --out report.html
  detmap report instances_val.json before.json after.json --out report.html
  detmap report instances_val.json detections.json --out report.html --images val2017 --attributes weather.csv
"""


def _fill(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a report as one HTML file that asks for nothing: what was evaluated, AP with its interval, what goes wrong, "
        "and where to look; of several models side by side."
    )
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run=_report)
    add_ground_truth(parser)
    parser.add_argument(
        "predictions", metavar="DETECTIONS", nargs="+", help="one file or more, given as for detmap batch"
    )
    page = parser.add_argument_group("report")
    page.add_argument("--out", metavar="FILE", required=True, help="where the page goes, as report.html")
    page.add_argument("--iou", type=float, default=0.5, metavar="IOU", help="errors are told at it; default: 0.5")
    page.add_argument(
        "--score", type=float, metavar="SCORE", help="what users would see; default: where F1 of all classes is best"
    )
    page.add_argument(
        "--images", metavar="DIR", help="show the worst images, which lie there, with boxes (extra: images)"
    )
    page.add_argument("--attributes", metavar="FILE", help="slices by a CSV file of attributes of images or objects")
    page.add_argument("--quiet", action="store_true", help="no notes or progress on stderr")
    add_input_options(parser)
    add_detection_options(parser)
    add_bootstrap_options(parser, 1000, tests=True)
    parser.add_argument_group("confidence of parts").add_argument(
        "--all-intervals",
        action="store_true",
        help="intervals also of scores to cut at and of slices; this takes longer",
    )
    parser.set_defaults(bootstrap_needed=False)


def _report(options: argparse.Namespace) -> None:
    protocol = protocol_of(options)
    from detmap.report.page import check_installed
    from detmap.report.pictures import Pictures

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
        from detmap.report import diagnosis

        stage("writing the page")
        made = diagnosis.html(
            models,
            inputs,
            datetime.now(timezone.utc),
            comparison=comparison,
            pictures=pictures,
            level=options.confidence,
        )
    write(options.out, made.encode("utf-8", "backslashreplace"))
    if not options.quiet:
        say(f"note: wrote {options.out}, {len(made) / 1e6:.1f} MB")


def _models(
    options: argparse.Namespace, protocol: Protocol, stage: Callable[[str], None]
) -> tuple[list[Model], list[dict[str, str]]]:
    """Read, score and diagnose; also return the inputs as cards name them."""
    from detmap.batch import find
    from detmap.checks import check
    from detmap.detection import evaluate
    from detmap.diagnostics import diagnose
    from detmap.formats.files import held, once, read_detections, read_ground_truth
    from detmap.report.diagnosis import Model

    entries = find(options.predictions)
    paths = [entry.path for entry in entries]
    once([options.ground_truth, options.image_set, *paths])
    stage("reading the ground truth")
    how = {**truth(options, protocol, paths), "image_facts": True}
    source = held(options.ground_truth)
    ground_truth = read_ground_truth(source, options.image_set, **how)
    warn_of_compiling(options)
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
        models.append(Model(entry.name, made, result, None, checked, of_slices))
    inputs += files_of(options)
    if options.attributes is not None:
        inputs.append(input_of("attributes", options.attributes, options.attributes))
    return models, inputs


COMMANDS = {"report": Command("write a page that shows what goes wrong", _fill)}
