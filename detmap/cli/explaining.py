"""The command explain: why two tools give different numbers, and which rules give a known number."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from detmap.cli.help import add_option
from detmap.cli.inputs import found_of, truth_of
from detmap.cli.options import Command, add_format, add_ground_truth, add_input_options, add_reading_options
from detmap.cli.output import during, finish, note
from detmap.cli.ranking_files import CONCERNING, DEFAULTS, add_rankings, check_concerns, evaluators, kind_of, metric_of
from detmap.errors import OptionError

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol

_EPILOG = """\
examples:
  detmap explain gt.json dt.json --from ultralytics --to coco
  detmap explain gt.json dt.json --from coco --to coco+min_score=0.25
  detmap explain gt.json dt.json --value 0.437
  detmap explain gt.json dt.json --value 61.2 --metric AP50
  detmap explain gt.json dt.json --value AP=0.437 --value AP50=0.612 --value person=0.51
  detmap explain --trec qrels.txt bm25.run --from torchmetrics --to trec
  detmap explain --reid market.npz --value 0.713
  detmap explain --hashing codes.npz --from hashnet

`detmap protocols` lists what --from and --to can name, and `detmap conventions` for rankings; +DECISION=VALUE changes a
decision.
"""


#: Options for both detections and rankings; "most" is the number of candidates shown.
_ASKED = {"ground_truth", "detections", "source", "target", "value", "metric", "orders", "seed", "most"}


def _fill(parser: argparse.ArgumentParser) -> None:
    add_ground_truth(parser)
    add_option(
        parser,
        "detections DETECTIONS",
        "what was found, in any format of detections; - is standard input; not with --reid and --hashing",
        nargs="?",
    )
    add_option(parser, "--from PROTOCOL", "the rules that gave the first number", dest="source")
    add_option(
        parser,
        "--to PROTOCOL",
        "the rules that gave the second number; default: coco; with --trec trec, --reid reid, --hashing hits_topk",
        dest="target",
    )
    add_option(
        parser,
        "--value [NAME=]NUMBER",
        "which rules give this number, to the digits given? may be repeated: AP50=0.61 is another metric, person=0.5 a "
        "class's AP, AP50/person=0.7 its AP50; two numbers tell nearly all rules apart",
        action="append",
        default=None,
    )
    add_option(
        parser,
        "--metric NAME",
        "AP (default), AP50, AP75, AP_small, …; of rankings mAP (default), nDCG@10, …",
        default="AP",
    )
    add_option(
        parser, "--iou-type KIND", "what is compared: bbox (default), segm, keypoints, boundary, rotated, probiou"
    )
    add_option(parser, "--orders N", "orders drawn at most where more than 7 rules differ; default: 64", default=64)
    add_option(parser, "--seed N", "seed of those draws; default: 0", default=0)
    add_option(parser, "--most N", "with --value: candidates shown; default: 10", default=10)
    add_rankings(parser, "DETECTIONS a run")
    add_input_options(parser)
    add_reading_options(parser.add_argument_group("reading"))
    output = add_format(parser)
    add_option(output, "--out/-o FILE", "write everything as JSON")


def _explain(options: argparse.Namespace) -> None:
    from detmap.shapes.kinds import BOXES

    if (options.source is None) == (options.value is None):
        raise OptionError("give --from PROTOCOL, or --value NUMBER")
    if options.value is not None and (options.target is not None or options.iou_type not in (None, BOXES)):
        raise OptionError("--value looks among all rules: it goes with neither --to nor --iou-type, other than bbox")
    goes_with = (
        (("most", 10, "--value"),) if options.value is None else (("orders", 64, "--from"), ("seed", 0, "--from"))
    )
    for name, default, flag in goes_with:
        if getattr(options, name) != default:
            raise OptionError(f"--{name} goes with {flag}")
    if options.threads is not None and options.threads < 1:
        raise OptionError(f"--threads must be a positive integer, not {options.threads}")
    kind = kind_of(options)
    if (options.detections is None) != (kind in ("reid", "hashing")):
        wanted = "takes one file, of arrays" if options.detections else "needs GT and DETECTIONS"
        raise OptionError(f"detmap explain{f' --{kind}' if kind else ''} {wanted}")
    if kind is not None:
        _explain_rankings(kind, options)
        return
    from detmap.explanations import explain, find_value, parse

    if options.value is not None:
        from detmap.explanations.quotes import read_values

        values = read_values(options.value, options.metric)  # refuse typos before files are read
        tables = _read_pair(options, BOXES)
        given = (*tables, values, options.metric)
        more = {"most": options.most, "threads": options.threads}
        search = during(options, "trying rules", find_value, *given, **more)
        _show_search(search, options, options.metric)
        return
    source, target = (parse(text, options.iou_type) for text in (options.source, options.target or "coco"))
    tables = _read_pair(options, options.iou_type or source.iou_type, source, target)
    made = during(
        options,
        "replaying rules",
        explain,
        *tables,
        source,
        target,
        options.metric,
        iou_type=options.iou_type,
        orders=options.orders,
        seed=options.seed,
        threads=options.threads,
    )
    _show_explanation(made, options)


def _read_pair(options: argparse.Namespace, iou_type: str, *protocols: Protocol) -> tuple[Any, Any]:
    """Read ground truth and detections."""
    found = found_of(options, iou_type)
    ground_truth = truth_of(options, iou_type, [found], *protocols).ground_truth([found])
    return ground_truth, found.detections(ground_truth)


def _explain_rankings(kind: str, options: argparse.Namespace) -> None:
    """Explain the difference of two values, or find the conventions that give a value."""
    if options.iou_type is not None:
        raise OptionError(f"--{kind} does not go with --iou-type: rankings have no shapes")
    check_concerns(options, _fill, {*CONCERNING, *_ASKED}, f"detmap explain --{kind}")
    from detmap.explanations import explain_rankings, find_ranking_value
    from detmap.explanations.quotes import read_values
    from detmap.explanations.ranking_shares import parse_convention

    run, metric = kind == "trec", metric_of(options)
    if options.value is not None:
        values = read_values(options.value, metric)  # refuse typos before files are read
    else:
        source, target = (parse_convention(text) for text in (options.source, options.target or DEFAULTS[kind]))
    paths = [path for path in (options.ground_truth, options.detections) if path is not None]
    (evaluate,) = evaluators(kind, options, paths).values()
    if options.value is not None:
        found = during(
            options, "trying rules", find_ranking_value, evaluate, values, metric, run=run, most=options.most
        )
        _show_search(found, options, metric)
        return
    made = during(
        options,
        "replaying rules",
        explain_rankings,
        evaluate,
        source,
        target,
        metric,
        run=run,
        orders=options.orders,
        seed=options.seed,
    )
    _show_explanation(made, options, "queries")


def _show_explanation(made: Any, options: argparse.Namespace, moved_are: str = "classes") -> None:
    from detmap.results import signed

    note(options, {"": made.notices})
    document = made.to_dict()
    steps = {step.decision: step for step in made.chain}
    columns = (made.source.name, made.target.name) if made.source.name != made.target.name else ("from", "to")
    shares = [
        {
            "rule": one.decision,
            **{
                name: says if len(says) <= 48 else says[:45] + "…"
                for name, says in zip(columns, (one.before, one.after), strict=True)
            },
            "share": signed(one.value),
            **({"error": one.error} if made.error else {}),
            {"classes": "detections"}.get(moved_are, moved_are): steps[one.decision].changed,
            f"{moved_are} moved most": _moved(steps[one.decision]),
        }
        for one in made.shares
        if one.exact
    ]
    chain = [{"one after the other": made.source.name, "value": made.source_value, "change": ""}]
    for step in made.chain:
        if step.change or _moved(step):
            chain.append({"one after the other": step.decision, "value": step.value, "change": signed(step.change)})
    if all(abs(one.value - steps[one.decision].change) < 5e-4 for one in made.shares):
        chain = []  # the table of shares already shows the same changes
    examples = [
        {
            "rule": step.decision,
            "image": str(one.image),
            "category": one.name,
            "score": one.score,
            "box": " ".join(f"{side:g}" for side in one.box),
            "overlap": one.overlap,
            "before": one.before,
            "after": one.after,
        }
        for step in made.chain
        if step.change
        for one in step.examples[:3]
    ]
    gap = signed(made.target_value - made.source_value)
    about = f"share: how much of {gap} the rule makes, on average over all orders in which rules can be changed"
    said = [about] if len(shares) > 1 else []
    finish([shares, chain, examples], options, made.heading, document, document["shares"], [*said, *made.remarks()])


def _moved(step: Any) -> str:
    """Return the classes or queries whose values change most in a step, with the changes."""
    return ", ".join(f"{name} {change:+.3f}" for name, change in step.classes[:3] if abs(change) >= 5e-4)


def _show_search(search: Any, options: argparse.Namespace, metric: str) -> None:
    document = search.to_dict()
    found = search.rows()
    for row, one in zip(found, search.candidates, strict=True):
        rest = len(one.others) - 2
        row["the same here"] = "; ".join(one.others[:2]) + (f" and {rest} more" if rest > 0 else "")
    given = " and ".join(text.replace("=", " ") if "=" in text else f"{metric} {text}" for text in options.value)
    shown = f", of which {len(found)} are shown" if search.matches > len(found) else ""
    title = f"{given}: {search.matches or 'no'} candidate{'s' * (search.matches != 1)}{shown}"
    finish([found, search.named_rows()], options, title, document, document["candidates"], search.sentences())


COMMANDS = {
    "explain": Command(
        "say why two tools give different numbers, or which rules give a number",
        _fill,
        _explain,
        "Say why two tools give different numbers for the same detections: every rule in which they differ gets its share. "
        "Or find the rules that give a number.",
        _EPILOG,
        multiplies=True,
        first="--from --to --value --metric --protocol --iou-type --format --out",
    ),
}
