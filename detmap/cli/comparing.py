"""Output of detmap compare with --under and --why: whether the order of models holds under other rules, and causes of
the difference between two models.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from detmap.cli.help import add_option
from detmap.cli.options import draws_of
from detmap.cli.output import during, finish, is_narrow
from detmap.errors import OptionError

#: Maximum number of rows in tables of images and of rules, and in tables of classes.
_SHOWN, _CLASSES = 8, 20


def add_explanations(parser: argparse.ArgumentParser) -> None:
    """Add the options --under and --why."""
    add_option(parser, "--why", "which classes, sizes, errors and images make the difference of two models?")
    add_option(parser, "--convention NAME", "of rankings: the convention under which their order is looked at")
    add_option(
        parser,
        "--under",
        "all: test whether the order of the models holds under other conventions, caps, thresholds, orders of equal scores, "
        "draws of images, and labels",
        choices=("all",),
    )


def comparison_tables(
    made: Any, corrected: str, options: argparse.Namespace
) -> tuple[list[Any], dict[str, Any], list[dict[str, Any]], list[str]]:
    """Return tables for display, a JSON document, CSV rows, and the sentences of a comparison.

    `corrected` is the name of the correction of p-values. In plain-text tables long names of models are abbreviated.
    """
    from detmap.formats.model_names import brief
    from detmap.results import p_value, sentences

    document = made.to_dict()
    rows = [*document["differences"], *document["categories"]]
    names = [row["model"] for row in document["models"]]
    called = brief(names) if is_narrow(options) else dict(zip(names, names, strict=True))
    shown = [
        {
            "from": called[one.first],
            "to": called[one.second],
            **({} if one.category is None else {"category": one.category}),
            "difference": one.difference,
            "low": one.low,
            "high": one.high,
            made.unit: one.images,
            "p": p_value(one.p),
            f"p ({corrected})": p_value(one.adjusted),
            "": ("*" if one.adjusted <= made.alpha else "") + ("~" if made.disagrees(one) else ""),
        }
        for one in (*made.differences, *made.changed)
    ]
    pairs = len(made.differences)
    models = sorted(document["models"], key=lambda row: (-row[made.metric], row["model"]))
    none = f"no category changed significantly (at {made.alpha:.2g}, corrected)"
    notes = [none] if not made.changed and made.could_tell(made.families[1]) else []
    tables = [models, shown[:pairs], shown[pairs:], sentences(made.notices, made.iou_type)]
    return tables, document, rows, [*notes, *made.sentences()]


#: Options that can be combined with --why and --under: the models, the metric, and the options of the bootstrap.
_ASKED = {"ground_truth", "predictions", "metric", "why", "under", "bootstrap", "seed", "confidence"}


def check_tests(options: argparse.Namespace) -> None:
    """Refuse the options of significance tests, because --under and --why run no tests."""
    what = "--under" if options.under else "--why"
    if options.card:
        raise OptionError("--card is of the tests: it goes with neither --under nor --why")
    for name, default in (("permutations", None), ("correction", "holm"), ("interval", "t")):
        if getattr(options, name) != default:
            raise OptionError(f"--{name} is of the tests: it does not go with {what}")


def compare_rankings(options: argparse.Namespace, kind: str, fill: Callable[[argparse.ArgumentParser], None]) -> None:
    """Show whether the order of ranked systems holds under other rules. Refuse options that do not apply to rankings;
    `fill` adds all options of the command to a parser.
    """
    if options.why or not options.under:
        raise OptionError(
            f"detmap compare --{kind} needs --under all"
            + ("" if kind != "trec" else "; detmap trec --compare tests runs")
        )
    from detmap.cli.ranking_files import CONCERNING, DEFAULTS, check_concerns, evaluators, metric_of, variants_of

    check_concerns(options, fill, {*CONCERNING, *_ASKED, "convention"}, f"detmap compare --{kind}")
    from detmap.explanations import rankings_survive

    paths = [options.ground_truth, *options.predictions]
    if len(paths) < 2 + (kind == "trec"):
        raise OptionError("whether an order survives needs two systems or more")
    made = rankings_survive(
        evaluators(kind, options, paths),
        options.convention or DEFAULTS[kind],
        metric_of(options),
        run=kind == "trec",
        variants=variants_of(kind, options, paths),
        **draws_of(options),
    )
    _show_survival(options, made)


def show_survival(options: argparse.Namespace, protocol: Any, ground_truth: Any, models: Mapping[str, Any]) -> None:
    """Show whether the order of the models holds under other rules."""
    from detmap.explanations import survives

    made = during(
        options,
        "scoring under other rules",
        survives,
        ground_truth,
        models,
        protocol,
        metric=options.metric or "AP",
        **draws_of(options),
        threads=options.threads,
    )
    _show_survival(options, made)


def _show_survival(options: argparse.Namespace, made: Any) -> None:
    tables: list[list[dict[str, Any]]] = []
    for claim in made.claims:
        tables.append(made.table(claim))
        tables.append(
            [
                {
                    "not so with": one.name,
                    "changes": one.changes,
                    claim.first: one.shown(claim.first),
                    claim.second: one.shown(claim.second),
                }
                for one in claim.against[:_SHOWN]
            ]
        )
    values = ", ".join(f"{name} {value:.4f}" for name, value in made.values.items())
    document = made.to_dict()
    title = f"{made.metric} under {made.protocol.title}: {values}"
    rows = [
        {"kind": one.kind, "name": one.name, "changes": one.changes, **{name: one.shown(name) for name in made.values}}
        for one in made.situations
    ]
    finish(tables, options, title, document, rows, made.sentences())


def show_contrast(options: argparse.Namespace, protocol: Any, ground_truth: Any, models: Mapping[str, Any]) -> None:
    """Show what explains the difference between two models."""
    from detmap.explanations import contrast

    if len(models) != 2:
        raise OptionError(f"--why takes two models, not {len(models)}")
    (first, one), (second, other) = models.items()
    made = during(
        options,
        "splitting the difference",
        contrast,
        ground_truth,
        one,
        other,
        protocol,
        metric=options.metric or "AP",
        names=(first, second),
        **draws_of(options),
        threads=options.threads,
    )
    tables = [made.table(name, {"classes": _CLASSES, "images": _SHOWN}.get(name)) for name in made.splits]
    document = made.to_dict()
    rows = [{"split": split["name"], **effect} for split in document["splits"] for effect in split["effects"]]
    title = (
        f"{made.metric} under {made.protocol.title}: {first} {made.first_value:.4f}, {second} {made.second_value:.4f}"
    )
    finish(tables, options, title, document, rows, made.sentences())
