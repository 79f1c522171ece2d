"""Read and score runs, galleries and hash codes, for commands that compare scoring conventions."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from detmap.cli.help import add_option
from detmap.errors import InputError, OptionError

if TYPE_CHECKING:
    from detmap.explanations import Variant
    from detmap.explanations.ranking_shares import Evaluate
    from detmap.retrieval.conventions import Convention
    from detmap.retrieval.scoring import RankingResult

#: Default convention of each kind of ranking, as in the command with the same name.
DEFAULTS = {"trec": "trec", "reid": "reid", "hashing": "hits_topk"}

#: Options that apply to rankings: the options of `add_rankings`, and the output options of a command.
CONCERNING = frozenset(["trec", "reid", "hashing", "relevance_level", "depth", "distance", "format", "quiet", "out"])

#: Further depths of a run to try, and further minimum grades of relevant documents.
_DEPTHS, _LEVELS = (10, 100, 1000), (1, 2, 3)


def add_rankings(parser: argparse.ArgumentParser, runs: str) -> None:
    """Add the options for files of rankings; `runs` is the name of the run files in the help."""
    group = parser.add_argument_group("rankings")
    add_option(group, "--trec", f"GT are judgements and {runs}, as for detmap trec; the rules are conventions")
    add_option(group, "--reid", "the files are arrays (.npz) as for detmap reid; the rules are conventions")
    add_option(group, "--hashing", "the files are arrays (.npz) as for detmap hashing; likewise")
    add_option(group, "--relevance-level N", "with --trec: as --level of detmap trec", type=float)
    add_option(group, "--depth N", "with --trec: as for detmap trec; with --hashing its --k")
    add_option(
        group,
        "--distance",
        "with --reid: how features are compared, as --metric of detmap reid; default: euclidean",
        choices=("euclidean", "sqeuclidean", "cosine", "dot"),
        default="euclidean",
    )


def kind_of(options: argparse.Namespace) -> str | None:
    """Return the kind of rankings: "trec", "reid" or "hashing"; None for detections."""
    kinds = [name for name in DEFAULTS if getattr(options, name)]
    if len(kinds) > 1:
        raise OptionError(f"give one of --{' and --'.join(kinds)}")
    kind = kinds[0] if kinds else None
    for name, of, default in (
        ("relevance_level", ("trec",), None),
        ("depth", ("trec", "hashing"), None),
        ("distance", ("reid",), "euclidean"),
    ):
        if getattr(options, name) != default and kind not in of:
            raise OptionError(f"--{name.replace('_', '-')} goes with --{' or --'.join(of)}")
    return kind


def check_concerns(
    options: argparse.Namespace, fill: Callable[[argparse.ArgumentParser], None], concerning: Collection[str], what: str
) -> None:
    """Raise `OptionError` for a given option whose name is not in `concerning`. `fill` adds the command's options, with
    their defaults, to a parser.
    """
    parser = argparse.ArgumentParser(add_help=False)
    fill(parser)
    for action in parser._actions:
        if action.dest not in concerning and getattr(options, action.dest) != action.default:
            raise OptionError(f"{what} does not go with {action.option_strings[0]}, which does not concern it")


def metric_of(options: argparse.Namespace) -> str:
    """Return the requested metric; AP, the default for detections, becomes mAP for rankings."""
    return "mAP" if options.metric in (None, "AP") else str(options.metric)


def _metrics(options: argparse.Namespace) -> list[str]:
    """Return all requested metrics; ``--value`` may name several metrics."""
    from detmap.explanations.quotes import read_values

    return list(read_values(getattr(options, "value", None) or [], metric_of(options))) or [metric_of(options)]


def evaluators(kind: str, options: argparse.Namespace, paths: Sequence[str]) -> dict[str, Evaluate]:
    """Map the name of each system to a function that scores the system. If `kind` is "trec", the first path names the
    judgements.
    """
    from detmap.formats.files import once

    once(list(paths))
    if kind == "trec":
        return _runs(options, paths[0], paths[1:], options.relevance_level, options.depth)
    return {name: _arrays(kind, options, path) for name, path in named(paths).items()}


def variants_of(kind: str, options: argparse.Namespace, paths: Sequence[str]) -> list[Variant]:
    """Return evaluations of the runs with other depths, or with another minimum grade of relevant documents."""
    from detmap.explanations import Variant

    if kind != "trec":
        return []
    depths = [depth for depth in _DEPTHS if options.depth is None or depth < options.depth]
    made = [
        Variant("caps", f"depth {depth}", _runs(options, paths[0], paths[1:], options.relevance_level, depth))
        for depth in depths
    ]
    for level in _LEVELS:
        if level != (options.relevance_level or 1):
            systems = _runs(options, paths[0], paths[1:], level, options.depth)
            made.append(Variant("relevance levels", f"relevant from grade {level}", systems))
    return made


def named(paths: Sequence[str]) -> dict[str, str]:
    """Map short distinct names to paths. A name is the shortest end of a path, without extension, that no other path
    shares.
    """
    from detmap.formats.model_names import distinct

    if twice := next((path for at, path in enumerate(paths) if path in paths[:at]), None):
        raise OptionError(f"{twice} is given twice")
    return dict(zip(distinct(paths, stem=lambda name: os.path.splitext(name)[0]), paths, strict=True))


def _runs(
    options: argparse.Namespace, judged: str, paths: Sequence[str], level: float | None, depth: int | None
) -> dict[str, Evaluate]:
    from detmap.reading.sources import held
    from detmap.retrieval import evaluate_run
    from detmap.retrieval.runs import read_tables

    metrics, qrels = _metrics(options), held(judged)

    def evaluator(path: str) -> Evaluate:
        run = held(path)
        tables = read_tables(qrels, run)

        def evaluate(convention: Convention) -> RankingResult:
            try:
                return evaluate_run(*tables, metrics, convention, level=level, depth=depth)
            except InputError:
                evaluate_run(qrels, run, metrics, convention, level=level, depth=depth)  # this error names the file
                raise

        return evaluate

    return {name: evaluator(path) for name, path in named(paths).items()}


def _arrays(kind: str, options: argparse.Namespace, path: str) -> Evaluate:
    from detmap.cli.retrieval import codes_of, gallery_of

    metrics = _metrics(options)
    given = argparse.Namespace(file=path, gallery=None, metric=options.distance, k=options.depth)
    evaluate: Callable[..., Any] = (gallery_of if kind == "reid" else codes_of)(given, path)
    return lambda convention: evaluate(metrics=metrics, convention=convention)
