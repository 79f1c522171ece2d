"""The command convert, which converts files."""

from __future__ import annotations

import argparse

from detmap.cli.help import add_option
from detmap.cli.options import Command, add_format, add_reading
from detmap.cli.output import note, print_tables, stages

_EPILOG = """\
examples:
  detmap convert instances_val.json labels/ --to yolo
  detmap convert runs/predict/labels found.json --ground-truth data.yaml
  detmap convert Annotations/ truth.json
  detmap convert found.json found.csv
  detmap convert found.json results/ --to voc --ground-truth Annotations/

A folder that is written must be empty or not there yet. What the new format has no place for is listed.
"""


def _fill(parser: argparse.ArgumentParser) -> None:
    from detmap.formats import files  # noqa: F401 - formats register themselves
    from detmap.formats.registry import FORMATS

    writable = [name for name, one in FORMATS.items() if one.write_ground_truth or one.write_detections]
    add_option(parser, "source IN", "a file or folder of any format; - is standard input")
    add_option(parser, "target OUT", "a file, or a folder that is empty or not there yet")
    add_option(parser, "--to FORMAT", f"by default as OUT is called; {', '.join(writable)}", choices=writable)
    add_option(parser, "--from FORMAT", "the format of IN; default: as its content says", dest="format_in")
    add_option(
        parser, "--role", "content of IN; default: found out by reading it", choices=("ground_truth", "detections")
    )
    add_option(
        parser,
        "--ground-truth GT",
        "with detections: says names of categories, and names and sizes of images, where a format needs them",
    )
    add_option(
        parser, "--iou-type KIND", "which shapes to carry over besides boxes; default: all that every record has"
    )
    add_reading(parser, "images")
    add_reading(parser, "formats", "detections", apart=("format",))
    add_format(parser)


def _convert(options: argparse.Namespace) -> None:
    with stages(options) as stage:
        stage("converting")
        from detmap.formats.conversion import convert
        from detmap.formats.files import once
        from detmap.reading.options import FormatOptions, options_of

        given = {name: getattr(options, name) for name in FormatOptions.__annotations__ if name != "format"}
        once([options.source, options.ground_truth, *(given[name] for name in given if options_of()[name].is_path)])
        made = convert(
            options.source,
            options.target,
            to=options.to,
            role=options.role,
            iou_type=options.iou_type,
            ground_truth=options.ground_truth,
            format=options.format_in,
            **given,
        )
    note(options, {"": made.notices})
    what = {"ground_truth": "objects", "detections": "detections"}[made.role]
    title = f"{made.format}: {made.written:,} {what} on {made.images:,} images written to {options.target}"
    document = {
        "role": made.role,
        "format": made.format,
        "written": made.written,
        "images": made.images,
        "lost": dict(made.lost),
        "notices": dict(made.notices),
    }
    rows = [{"lost": code, "records": count} for code, count in made.lost.items()]
    print_tables([[{"not carried over": text} for text in made.sentences()]], options, title, document, rows)


COMMANDS = {
    "convert": Command(
        "convert files from one format to another",
        _fill,
        _convert,
        "Convert ground truth or detections from one format to another.",
        _EPILOG,
        first="--role --from --to --ground-truth --classes --image-sizes --box-format",
    ),
}
