"""The command check, which checks files before scoring."""

from __future__ import annotations

import argparse
from typing import Any

from detmap.cli.help import add_option
from detmap.cli.options import Command, add_format, add_input_options, add_reading, said_of_formats
from detmap.cli.output import print_list, stages
from detmap.errors import OptionError

_USAGE = """detmap check [options] GT [DETECTIONS]
       detmap check [options] --schema IMAGES DETECTIONS
       detmap check [options] --trec QRELS RUN
       detmap check --codes"""

_EPILOG = """\
examples:
  detmap check instances_val.json detections.json
  detmap check instances_val.json --train instances_train.json
  detmap check data.yaml runs/predict/labels --strict
  detmap check --schema images.json submission.json
  detmap check --trec judgements.txt run.txt
  detmap check --codes

exit code: 0 if there is no error, 1 if there are errors (with --strict: or warnings), 2 if nothing can be read
"""


def _fill(parser: argparse.ArgumentParser) -> None:
    parser.usage = _USAGE
    add_option(
        parser,
        "paths GT DETECTIONS",
        lambda: said_of_formats("ground truth: {ground_truth}; and detections: {detections}; - is standard input"),
        nargs="*",
    )
    add_option(parser, "--strict", "exit with 1 where there are warnings, too")
    add_option(parser, "--codes", "list all that can be found, and do nothing else")
    other = parser.add_argument_group("what is checked instead")
    add_option(
        other,
        "--schema IMAGES",
        "check DETECTIONS against the images and categories of a file alone: nothing is said of what is on them",
    )
    add_option(other, "--trec", "check QRELS RUN: judgements, and a run of rankings")
    add_option(parser, "--train GT", "another ground truth, which should share no image with the first")
    add_option(parser, "--iou-type KIND", "shapes to check besides boxes; default: all that every record has")
    add_reading(parser, "images")
    add_input_options(parser)
    output = add_format(parser, "html")
    add_option(output, "--out/-o FILE", "write everything as JSON")


#: For each kind of check, the minimum and maximum number of paths, and the names of the paths in messages.
_PATHS = {"trec": ((2, 2), "QRELS RUN"), "schema": ((1, 1), "DETECTIONS"), "": ((1, 2), "GT, or GT DETECTIONS")}


def _check(options: argparse.Namespace) -> int:
    if options.codes:
        _list_codes(options)
        return 0
    if options.trec and options.schema:
        raise OptionError("--trec and --schema check different things: choose one")
    what = "trec" if options.trec else "schema" if options.schema else ""
    (fewest, most), called = _PATHS[what]
    if not fewest <= len(options.paths) <= most:
        flag = f"--{what} takes" if what else "detmap check takes"
        raise OptionError(f"{flag} {called}, not {len(options.paths)} paths")
    if not what:
        _refuse_panoptic(options.paths)
    if options.train is not None and what:
        raise OptionError(f"--train does not go with --{what}")
    with stages(options) as stage:
        stage("checking")
        report = _made(options)
    if options.out:
        from detmap.system.whole_files import write

        write(options.out, (report.to_json() + "\n").encode())
    _show(report, options)
    return int(report.exit_code(options.strict))


def _refuse_panoptic(paths: list[str]) -> None:
    """Refuse panoptic segmentation, because the checks do not support it and would report every record as wrong."""
    import os

    from detmap.formats.coco.panoptic import is_panoptic

    for path in paths:
        if os.path.isfile(path) and is_panoptic(path):
            raise OptionError(f"{path} holds panoptic segmentation, which detmap pq scores: there are no checks of it")


def _made(options: argparse.Namespace) -> Any:
    from detmap.checks import check, check_run

    if options.trec:
        return check_run(*options.paths)
    from detmap.reading.options import SidesOptions

    paths = [options.schema, *options.paths] if options.schema else options.paths
    more = {name: getattr(options, name) for name in ("iou_type", *SidesOptions.__annotations__)}
    return check(*paths, schema=bool(options.schema), train=options.train, **more)


def _show(report: Any, options: argparse.Namespace) -> None:
    from detmap import results

    if options.format == "json":
        print(report.to_json())
    elif options.format == "csv":
        print(results.to_csv(report.rows()) or ",".join(report.COLUMNS) + "\n", end="")
    elif options.format == "latex":
        print(results.to_latex(report.rows()))
    else:
        made = {"markdown": report.to_markdown, "html": report.to_html, "table": report.to_text}[options.format]
        print(made().rstrip("\n"))


def _list_codes(options: argparse.Namespace) -> None:
    from detmap.checks import CODES

    if options.format == "html":
        raise OptionError("--codes is shown as table, json, csv, markdown or latex")
    rows = [
        {
            "code": row.code,
            "severity": row.severity,
            "finding": row.says.format(many="…"),
            "effect": row.effect,
            "remedy": row.remedy,
        }
        for row in CODES.values()
    ]
    print_list(rows, options)


COMMANDS = {
    "check": Command(
        "say what to know before believing a number",
        _fill,
        _check,
        "Say what to know before believing a number: ids that do not match, boxes in other units, classes in another "
        "order, duplicates, scores that were cut off, and more. Nothing is scored.",
        _EPILOG,
        first="--protocol --iou-type --train --schema --trec --format --out",
    ),
}
