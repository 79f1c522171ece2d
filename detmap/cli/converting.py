"""The command that converts files: convert."""

from __future__ import annotations

import argparse

from detmap.cli.options import Command, add_format
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
    parser.description = "Convert ground truth or detections from one format to another."
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run=_convert)
    parser.add_argument("source", metavar="IN", help="a file or folder of any format; - is standard input")
    parser.add_argument("target", metavar="OUT", help="a file, or a folder that is empty or not there yet")
    parser.add_argument(
        "--to", metavar="FORMAT", choices=writable, help=f"by default as OUT is called; {', '.join(writable)}"
    )
    parser.add_argument("--from", dest="form", metavar="FORMAT", help="the format of IN; default: as its content says")
    parser.add_argument(
        "--role", choices=("ground_truth", "detections"), help="what IN is; default: as its content says"
    )
    parser.add_argument(
        "--ground-truth",
        metavar="GT",
        help="with detections: says names of categories, and names and sizes of images, where a format needs them",
    )
    parser.add_argument(
        "--iou-type",
        metavar="KIND",
        help="which shapes to carry over besides boxes; default: all that every record has",
    )
    parser.add_argument("--image-set", metavar="FILE", help="as in detmap eval, for IN")
    parser.add_argument(
        "--image-sizes", metavar="FILE", help="as in detmap eval: lines of name,width,height, or 640x480"
    )
    parser.add_argument("--classes", metavar="FILE", help="as in detmap eval: names of classes that have numbers")
    parser.add_argument(
        "--class-map",
        metavar="FILE",
        help="lines from,to: which classes become which, by name or id; nothing behind the comma leaves one out",
    )
    parser.add_argument("--columns", metavar="LIST", help="as in detmap eval: what the columns of CSV are")
    parser.add_argument("--box-format", choices=("xyxy", "xywh"), help="as in detmap eval: boxes in lines of text")
    add_format(parser)


def _convert(options: argparse.Namespace) -> None:
    with stages(options) as stage:
        stage("converting")
        from detmap.formats.conversion import convert
        from detmap.formats.files import once

        once([options.source, options.ground_truth, options.classes, options.class_map, options.image_set])
        made = convert(
            options.source,
            options.target,
            to=options.to,
            role=options.role,
            format=options.form,
            iou_type=options.iou_type,
            ground_truth=options.ground_truth,
            image_set=options.image_set,
            image_sizes=options.image_sizes,
            classes=options.classes,
            class_map=options.class_map,
            columns=options.columns,
            box_format=options.box_format,
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


COMMANDS = {"convert": Command("convert files from one format to another", _fill)}
