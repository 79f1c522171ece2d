"""The command diagnose, which shows the errors of a detector, and the gain in AP from fixing each kind of error."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from detmap.cli.detection import suggest_clusters
from detmap.cli.help import add_option
from detmap.cli.inputs import found_of, truth_of
from detmap.cli.options import (
    Command,
    add_detection_options,
    add_detections,
    add_format,
    add_ground_truth,
    add_input_options,
    add_reading,
    add_score,
    protocol_of,
)
from detmap.cli.output import note, print_notes, print_tables, say, stages, write_json
from detmap.errors import OptionError, one_of, shorten

if TYPE_CHECKING:
    from detmap.diagnostics import Diagnosis, Finding

_EPILOG = """\
examples:
  detmap diagnose instances_val.json detections.json
  detmap diagnose instances_val.json masks.json --iou-type segm --out diagnosis.json
  detmap diagnose gt.json dt.json --parts slices --attributes weather.csv --bootstrap 1000
"""

#: Maximum number of values listed below the tables of a part; none is listed if a part has more.
_MOST_NUMBERS = 9


def _fill_diagnose(parser: argparse.ArgumentParser) -> None:
    from detmap.diagnostics import PARTS

    parts = "\n".join(f"  {name:<17} {part.says}" for name, part in PARTS.items())
    parser.epilog = f"parts:\n{parts}\n\n{_EPILOG}"
    add_ground_truth(parser)
    add_detections(parser)
    group = parser.add_argument_group("diagnosis")
    add_option(group, "--parts LIST", "these parts, as tide,confusion; default: all")
    add_option(group, "--iou IOU", "the threshold; default: 0.5", default=0.5)
    add_score(group)
    add_option(group, "--attributes FILE", "with slices: a CSV file of attributes of images or objects")
    add_option(
        group,
        "--slice BY:NAME:LO:HI",
        "with slices: objects whose BY (area, relative_area, aspect, crowding, position, truncation) is LO or more and "
        "below HI, instead of the usual ones; may be repeated",
        action="append",
    )
    add_input_options(parser)
    add_detection_options(parser)
    parser.set_defaults(bootstrap_needed=False, confidence=0.95)
    confidence = parser.add_argument_group("confidence")
    add_option(
        confidence,
        "--bootstrap N",
        "show 95 %% intervals of operating points and slices, from N resamplings of the images: at least 200",
        default=0,
    )
    add_reading(confidence, "clusters")
    add_option(confidence, "--seed N", "seed of the random draws; default: 0", default=0)
    output = add_format(parser)
    add_option(
        output, "--all", "every part with all rows; default: the errors, the cut, the worst classes, what to do first"
    )
    add_option(output, "--rows N", "maximum rows of a table; default: 20, 0 is all")
    add_option(output, "--out/-o FILE", "write everything as JSON")


def _diagnose(options: argparse.Namespace) -> None:
    protocol = protocol_of(options)
    from detmap.diagnostics import PARTS, diagnose

    names = list(PARTS) if options.parts is None else [name.strip() for name in options.parts.split(",")]
    for name in names:
        if name not in PARTS:
            raise OptionError(f"unknown part {shorten(name)}{one_of(name, PARTS)}")
    if options.rows is not None and options.rows < 0:
        raise OptionError(f"--rows must be at least 0, not {options.rows}")
    if options.all and (options.parts is not None or options.rows is not None):
        raise OptionError("--all shows every part with all rows: it goes with neither --parts nor --rows")
    brief = _is_brief(options)
    for flag in ("attributes", "slice"):
        if getattr(options, flag) and "slices" not in names:
            raise OptionError(f"--{flag} needs the part slices")
    if options.bootstrap and not {"operating_points", "slices"} & set(names):
        raise OptionError("--bootstrap needs the part operating_points or slices: no other has intervals")
    of_slices = {"attributes": options.attributes, "ranges": _ranges(options.slice)}
    of_slices = {name: value for name, value in of_slices.items() if value}
    names = [name for name in names if name in _BRIEF] if brief and not options.out else names
    findings: dict[str, Finding] = {}
    left_out: list[str] = []
    with stages(options) as stage:
        stage("reading the ground truth")
        found = found_of(options, protocol.iou_type)
        truth = truth_of(options, protocol.iou_type, [found], protocol)
        ground_truth = truth.ground_truth([found], image_facts=True)
        suggest_clusters(options, ground_truth, truth)
        truth.release()
        stage("reading the detections")
        detections = found.detections(ground_truth)
        found.release()
        stage("matching")
        made = diagnose(
            ground_truth,
            detections,
            protocol,
            iou=options.iou,
            score=options.score,
            replicates=options.bootstrap,
            seed=options.seed,
            threads=options.threads,
        )
        made.progress = stage
        for name in dict.fromkeys(names):
            more = of_slices if name == "slices" else {}
            try:
                findings[name] = made.part(name, **more)
            except OptionError as error:  # skip a part that cannot be computed, unless it was requested by name
                if options.parts is not None or more:
                    raise
                left_out.append(f"{name} is left out: {error}")
    for sentence in left_out:
        if not options.quiet:
            say(f"note: {sentence}")
    note(options, {"": made.notices}, made.protocol.iou_type)
    document = made.to_dict([]) | {"parts": {name: one.to_dict() for name, one in findings.items()}}
    write_json(options.out, document)
    if brief:
        _show_brief(made, findings, options)
    else:
        _show(made, findings, options, document)


#: Parts of the diagnosis that the summary shows.
_BRIEF = ("tide", "operating_points")

#: Maximum number of classes in the summary.
_WORST = 5


def _is_brief(options: argparse.Namespace) -> bool:
    """Return whether to show only a summary, which is the default for formats with tables."""
    asked = options.all or options.parts is not None or options.rows is not None
    return not (asked or options.attributes or options.slice or options.bootstrap) and options.format in (
        *("table", "markdown", "latex"),
    )


#: The meaning of each kind of error, and the parts of the diagnosis to read if this kind costs most AP.
_ADVICE = {
    "Cls": ("objects are found as another class", "confusion"),
    "Loc": ("boxes lie beside their objects", "lrp"),
    "Both": ("boxes lie beside objects of another class", "confusion"),
    "Dupe": ("objects are found more than once", "cuts"),
    "Bkg": ("detections lie where no object is, or where a label is missing", "images,suspects"),
    "Miss": ("nothing comes close to these objects", "slices"),
}


def _show_brief(made: Diagnosis, findings: dict[str, Finding], options: argparse.Namespace) -> None:
    """Print the errors, the score threshold, the worst classes, and the recommended next step."""
    from math import isnan

    from detmap.results import cell

    print(("% " if options.format == "latex" else "") + _heading(made))
    print()
    errors = findings["tide"].rows("errors")
    tables = [[{name: row[name] for name in ("error", "count", "dAP", "meaning")} for row in errors]]
    # leave out classes without AP, such as KITTI's vans, because they are not scored
    classes = [row for row in findings["tide"].tables.get("categories", ()) if row["objects"] and not isnan(row["AP"])]
    if len(classes) > 1:
        worst = sorted(classes, key=lambda row: (row["AP"], -row["objects"]))[:_WORST]
        first = f"worst of {len(classes)}" if len(classes) > _WORST else "category"
        tables.append([{first: row["category"], **_without(row)} for row in worst])
    points = findings["operating_points"].rows("points") if "operating_points" in findings else []
    at = [row for row in points[:1] if not isnan(row["score"])]
    print_tables(tables, options, "dAP: what AP gains if all errors of a kind are mended", None, [])
    said = [
        f"cut: scores of {cell(row['score'])} or more give the best F1, {cell(row['f1'])}: "
        f"precision {cell(row['precision'])}, recall {cell(row['recall'])}"
        for row in at
    ]
    costs = [row for row in errors if row["dAP"] > 0]
    if costs:
        most = max(costs, key=lambda row: float(row["dAP"]))
        problem, parts = _ADVICE[most["error"]]
        said.append(f"first: {most['error']} costs most, {cell(most['dAP'])} of AP: {problem}; see --parts {parts}")
    print_notes([*said, "all parts and classes: --all"], options)


def _without(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "category"}


def _heading(made: Diagnosis) -> str:
    """Return a heading with AP and the numbers of records."""
    from detmap.errors import many
    from detmap.results import cell

    counts = (
        f"{len(made.matches):,} detections, {int(made.positives.sum()):,} objects, "
        f"{many(made.matches.image_ids.size, made.scene)}"
    )
    title = made.protocol.title
    if made.at.startswith(f"{made.protocol.iou_type} "):  # `at` already begins with the IoU type
        title = made.protocol.name
    levels = f" of {'/'.join(name for name, _ in made.protocol.levels)} together" if made.protocol.levels else ""
    share = " as a share, not per cent" if made.protocol.class_levels else ""
    return f"{title} at {made.at}: AP{levels} {cell(made.ap)}{share}, {counts}"


def _ranges(given: Sequence[str]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the ranges of slices from ``"BY:NAME:LO:HI"``."""
    from detmap.choices import decimal

    ranges: dict[str, dict[str, tuple[float, float]]] = {}
    for text in given:
        try:
            by, rest = text.split(":", 1)
            name, low, high = rest.rsplit(":", 2)
            ranges.setdefault(by, {})[name] = (decimal(low), decimal(high))
        except ValueError:
            raise OptionError(f"--slice must be BY:NAME:LO:HI, as area:tiny:0:256, not {shorten(text)}") from None
    return ranges


def _show(made: Diagnosis, findings: dict[str, Finding], options: argparse.Namespace, document: dict[str, Any]) -> None:
    """Print the findings as tables, as one JSON document, or as CSV with a row per number."""
    if options.format == "json":
        print_tables([], options, "", document, [])
        return
    if options.format == "csv":
        alone = next(iter(findings.values())) if len(findings) == 1 else None
        rows = [
            {"part": name, "metric": metric, "value": value}
            for name, one in findings.items()
            for metric, value in one.items()
        ]
        print_tables([], options, "", None, alone.rows() if alone is not None else rows)
        return
    most = 0 if options.all else 20 if options.rows is None else options.rows
    comment = "% " if options.format == "latex" else ""
    print(comment + _heading(made))
    for name, finding in findings.items():
        for title in finding.tables:
            rows = finding.rows(title)
            cut = len(rows) > most > 0
            print()
            heading = name if title == name else f"{name}: {title}"
            if options.format == "markdown":
                print(f"## {heading}\n")
            elif comment:
                print(comment + heading)
            print_tables([rows[:most] if cut else rows], options, heading, None, [])
            if cut:
                print_notes([f"{len(rows) - most:,} more rows: --rows 0 shows all"], options)
            elif not rows:
                print_notes(["nothing"], options)
        numbers = [_numbers(finding)] if len(finding) <= _MOST_NUMBERS else []
        print_notes([*numbers, *finding.notes], options)


def _numbers(finding: Finding) -> str:
    """Return the numbers of a part as a line."""
    from detmap.results import cell, printable

    return printable(", ".join(f"{name} {cell(value)}" for name, value in finding.items()))


COMMANDS = {
    "diagnose": Command(
        "say what goes wrong, and what mending it would gain",
        _fill_diagnose,
        _diagnose,
        "Say what goes wrong at one IoU threshold, and what mending it would gain.",
        _EPILOG,
        first="--iou --protocol --iou-type --parts --all --format --out",
    ),
}
