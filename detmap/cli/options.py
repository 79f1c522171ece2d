"""Options that commands share, and what they decide."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from detmap.errors import InputError, OptionError, shorten

if TYPE_CHECKING:
    from detmap.protocols import Protocol


def add_ground_truth(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where the ground truth is."""
    parser.add_argument(
        "ground_truth",
        metavar="GT",
        help="COCO JSON, or a folder or tar archive of VOC's XML (.gz too); - is standard input",
    )
    parser.add_argument("--image-set", metavar="FILE", help="with VOC's XML: the images to score, one id per line")


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
    rules.add_argument(
        "--invalid-boxes",
        choices=("error", "miss", "drop"),
        default="error",
        help="boxes of negative width or height: refuse (default), keep as what overlaps nothing, or leave out; counted",
    )
    rules.add_argument(
        "--missing-classes",
        choices=("zero", "error", "skip"),
        default="zero",
        help="classes that VOC's results have no file for: AP 0 (default), refuse, or leave out; named",
    )
    rules.add_argument(
        "--iou-type",
        metavar="KIND",
        help="what overlaps: bbox (default), segm (masks), keypoints, boundary (masks and their contours); COCO's JSON",
    )
    rules.add_argument(
        "--result-areas",
        choices=("own", "shape"),
        help="the area of a detected mask or pose: its own box's where it has one (default), or its shape's",
    )
    rules.add_argument(
        "--dilation", type=float, metavar="SHARE", help="boundary: how far it reaches, of the diagonal; default: 0.02"
    )
    rules.add_argument(
        "--sigmas", metavar="FILE", help="keypoints: JSON with a sigma per point, or an object of them by category"
    )
    rules.add_argument(
        "--oks-area",
        choices=("area", "bbox*0.53"),
        help="keypoints: the area of an object is the annotation's (default), or this share of its box's",
    )
    rules.add_argument("--threads", type=int, metavar="N", help="default: one per processor; changes no result")


def protocol_of(options: argparse.Namespace) -> Protocol:
    """Return what the options decide, before any file is read: a typo should not wait for a large one."""
    from detmap.protocols import resolve

    if options.threads is not None and options.threads < 1:
        raise OptionError(f"--threads must be at least 1, not {options.threads}")
    from detmap.statistics.draws import check_integer, check_replicates, check_seed

    if options.bootstrap or options.bootstrap_needed:
        check_replicates(options.bootstrap)
    check_seed(options.seed)
    if getattr(options, "permutations", None) is not None:
        check_integer("--permutations", options.permutations, 1)
    if not 0 < options.confidence < 1:
        raise OptionError("--confidence must lie between 0 and 1")
    return resolve(
        options.protocol,
        iou_thresholds=options.iou_thresholds,
        area_ranges=_area_ranges(options.area_range),
        max_dets=_caps(options.max_dets),
        use_categories=not options.ignore_categories,
        iou_type=options.iou_type,
        result_areas=options.result_areas,
        dilation=options.dilation,
        sigmas=None if options.sigmas is None else _sigmas(options.sigmas),
        oks_area=options.oks_area,
    )


def _sigmas(path: str) -> Any:
    """Return what a file of sigmas holds."""
    import json

    from detmap.formats.files import read_small

    try:
        found = json.loads(read_small(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"is not valid JSON: {error}", source=path, field="--sigmas") from None
    if not isinstance(found, list | dict):
        raise InputError("must be a list of numbers, or an object of them by category", source=path, field="--sigmas")
    return found


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


def add_bootstrap_options(parser: argparse.ArgumentParser, replicates: int = 0, *, tests: bool = False) -> None:
    """Add the options that ask for confidence intervals, and those of `tests` of models against each other.

    `replicates` is how many draws there are unless they say.
    """
    group = parser.add_argument_group("confidence")
    parser.set_defaults(bootstrap_needed=bool(replicates))
    default = f"default: {replicates}" if replicates else "200 or more, 1000 are plenty; none by default"
    group.add_argument(
        "--bootstrap",
        type=int,
        metavar="N",
        default=replicates,
        help=f"give intervals and the estimated bias; draws the images anew N times: {default}",
    )
    group.add_argument(
        "--interval",
        choices=("t", "bca", "percentile"),
        default="t",
        help="Student's t with the jackknife's standard error (default), or quantiles of the draws",
    )
    group.add_argument(
        "--seed", type=int, default=0, metavar="N", help="what chance follows from, 0 to 2**64 - 1; default: 0"
    )
    group.add_argument(
        "--confidence", type=float, default=0.95, metavar="LEVEL", help="of intervals and tests; default: 0.95"
    )
    if tests:
        group.add_argument(
            "--permutations",
            type=int,
            metavar="N",
            help="of each pair of models; default: 5000, or more where the number of hypotheses asks for it",
        )
        group.add_argument(
            "--correction",
            choices=("holm", "bh"),
            default="holm",
            help="for many hypotheses: Holm's (default) limits the chance of any false claim, "
            "Benjamini and Hochberg's the share of false ones among the claims",
        )


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add the option that runs a command elsewhere."""
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on a Dask cluster: tcp://host:8786 (extra dask)")


def add_format(parser: argparse.ArgumentParser) -> Any:
    """Add the options that every command has that shows a table, and return their group."""
    output = parser.add_argument_group("output")
    output.add_argument(
        "--format", choices=("table", "json", "csv", "markdown"), default="table", help="default: table"
    )
    output.add_argument("--quiet", action="store_true", help="no notes or progress on stderr")
    return output


def add_output_options(parser: argparse.ArgumentParser, *, rows: str, what: str) -> None:
    """Add the options that decide what is shown and written; `rows` is the flag that asks for `what`."""
    output = add_format(parser)
    output.add_argument(rows, dest="rows", action="store_true", help=f"show {what} too")
    output.add_argument("--out", metavar="FILE", help="write everything as JSON")
    output.add_argument("--plot", metavar="FILE", help="draw the curves, as .svg or .png (extra: plots)")
