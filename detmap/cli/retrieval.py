"""The commands that score rankings: trec, reid, hashing; and conventions, which lists the conventions."""

from __future__ import annotations

import argparse
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from detmap.cli.cards import Scored, Scorer, add_card, files_of, input_of, write_card
from detmap.cli.gates import Gates, add_gates
from detmap.cli.help import add_option
from detmap.cli.options import (
    CORRECTED,
    Command,
    add_correction,
    add_decisions,
    add_list_format,
    add_output_options,
    decided,
)
from detmap.cli.output import during, is_narrow, note, print_list, print_notes, print_tables, show, write_result
from detmap.errors import OptionError, many, shorten
from detmap.system.whole_files import write

if TYPE_CHECKING:
    from detmap.retrieval import RankingResult
    from detmap.retrieval.conventions import Convention


def _fill_trec(trec: argparse.ArgumentParser) -> None:
    add_runs(trec)
    add_option(
        trec,
        "-m MEASURE",
        "instead of --metrics, as for trec_eval: a measure, with cutoffs as in P.5,10, or official, set, all_trec; may "
        "be repeated",
        dest="measures",
        action="append",
        default=None,
    )
    add_option(
        trec,
        "--compare METRIC",
        "test every pair of runs by AP, or by this metric: would they differ as much if it were chance which run the "
        "value of a query came from?",
        nargs="?",
        const="",
    )
    add_option(trec, "--seed N", "seed of the random draws of --compare; default: 0", default=0)
    add_option(
        trec, "--tests LIST", "tests of --compare: randomisation (default), t, wilcoxon", default="randomisation"
    )
    add_correction(trec)
    add_output_options(trec, "trec_eval", rows=("--per-query", "-q"), what="a row per query")
    add_card(trec)
    add_gates(trec, "trec")


def add_runs(trec: argparse.ArgumentParser) -> None:
    """Add the arguments for judgements and runs, and options of scoring."""
    add_option(
        trec,
        "qrels QRELS",
        "lines of query, 0, document, grade (.gz, .zst too); a table (CSV, Parquet), JSON, or BEIR's folder",
    )
    add_option(
        trec,
        "runs RUN",
        "lines of query, Q0, document, rank, score, name; a table with named columns (CSV, Parquet), or JSON",
        nargs="+",
    )
    _add_convention(trec, "trec")
    add_option(trec, "--level/-l N", "lowest grade that is relevant (default: any above 0)", type=float)
    add_option(trec, "--depth/-M N", "score the first N ranks only")
    add_option(trec, "--complete/-c", "count judged queries that the run lacks as zero")
    add_option(trec, "--judged-only/-J", "take documents without a judgement out of the ranking")


def _fill_arrays(add: Callable[[argparse.ArgumentParser], None], parser: argparse.ArgumentParser) -> None:
    add_option(parser, "file FILE.npz", "the arrays, as numpy.savez writes them; - is standard input")
    add(parser)
    add_output_options(parser, rows="--per-query", what="a row per query")
    add_card(parser)


def add_reid(reid: argparse.ArgumentParser) -> None:
    """Add the options for scoring rankings of a gallery."""
    add_option(
        reid,
        "--gallery FILE",
        "ids (and cameras) of the gallery, where FILE is Parquet: a row per query with query_id and lists of indices "
        "and distances",
    )
    add_option(
        reid,
        "--metric",
        "how features are compared; default: euclidean",
        choices=("euclidean", "sqeuclidean", "cosine", "dot"),
        default="euclidean",
    )
    _add_convention(reid, "reid")


def add_hashing(hashing: argparse.ArgumentParser) -> None:
    """Add the options for scoring rankings by Hamming distance."""
    add_option(hashing, "--k N", "depth of the metrics; default: all ranks")
    _add_convention(hashing, "hits_topk")


def _add_convention(parser: argparse.ArgumentParser, default: str) -> None:
    from detmap.retrieval.conventions import Convention

    rules = parser.add_argument_group("rules")
    add_option(rules, "--metrics LIST", "metrics by detmap's or trec_eval's names, as map,ndcg@10,recall@100")
    add_option(
        rules,
        "--convention NAME",
        f"rules of a project, as `detmap conventions` lists them; default: {default}",
        default=default,
    )
    add_decisions(rules, Convention, (), others=True)


def _rules(options: argparse.Namespace) -> dict[str, Any]:
    from detmap.retrieval.conventions import Convention
    from detmap.retrieval.metrics import split

    metrics = None if options.metrics is None else split(options.metrics)
    return {"metrics": metrics, "convention": options.convention, **decided(options, Convention)}


def _settle_trec(words: list[str]) -> list[str]:
    """Move ``--compare`` if a file follows it. Otherwise argparse would read the file as the metric of ``--compare``."""
    from detmap.retrieval.metrics import parse

    at = words.index("--compare") if "--compare" in words[:-1] else -1
    if at < 0 or words[at + 1].startswith("--"):
        return words
    try:
        parse(words[at + 1])
    except OptionError:
        if words[at + 1] == "-" or os.path.exists(words[at + 1]):  # move --compare ahead of the operands
            return ["trec", "--compare=", *(word for i, word in enumerate(words) if i not in (at, words.index("trec")))]
    return words


def trec_rules(options: argparse.Namespace) -> dict[str, Any]:
    """Return the scoring rules as `detmap.retrieval.evaluate_run` takes them."""
    given = {**_rules(options), "level": options.level, "depth": options.depth, "judged_only": options.judged_only}
    given["keep_curve"] = bool(options.plot)
    if options.complete:
        given["missing"] = "zero"
    if getattr(options, "measures", None):
        from detmap.cli.trec_eval import metrics_of

        if options.metrics is not None or options.card:
            raise OptionError(f"-m does not go with {'--card' if options.metrics is None else '--metrics'}")
        given["metrics"] = metrics_of(options, _decided(options))
    return given


def _decided(options: argparse.Namespace) -> Convention:
    """Return the requested convention."""
    from detmap.retrieval.conventions import Convention, convention_of

    missing = {"missing": "zero"} if options.complete else {}
    return convention_of(options.convention, {**decided(options, Convention), **missing}, run=True)


def _as_trec_eval(options: argparse.Namespace) -> None:
    """Print a run in trec_eval's format."""
    from detmap.cli.trec_eval import print_run

    if len(options.runs) != 1:
        raise OptionError("--format trec_eval is of one run")
    for flag in ("metrics", "compare", "card", "out", "plot"):
        if getattr(options, flag) is not None:
            raise OptionError(f"--format trec_eval does not go with --{flag}; measures are named by -m")
    rules = {"level": options.level, "depth": options.depth, "judged_only": options.judged_only}
    note(options, {"": print_run(options, _decided(options), rules).notices})


def _scored_run(options: argparse.Namespace) -> Scored:
    """Score one run. For an evaluation card, the outcome has names and hashes of judgements and run."""
    from detmap.reading.sources import held
    from detmap.retrieval import evaluate_run

    paths = [options.qrels, *options.runs]
    if len(paths) != 2 or options.compare is not None:
        raise OptionError("a card is of one run: give one, and no --compare")
    qrels, run = map(held, paths)
    inputs = [input_of("qrels", paths[0], qrels), input_of("run", paths[1], run)]
    result = evaluate_run(qrels, run, **trec_rules(options))
    return Scored(result, inputs, dict(result.queries))


def _trec(options: argparse.Namespace) -> int:
    from detmap.reading.sources import held
    from detmap.retrieval import evaluate_run

    gates = Gates(options, "trec")
    if options.format == "trec_eval":
        if gates:
            raise OptionError("--format trec_eval goes with no gates")
        _as_trec_eval(options)
        return 0
    given = trec_rules(options)
    if gates:
        _check_names(gates, given["metrics"], _decided(options))
    results: dict[str, Any]
    if options.card:
        scored = _scored_run(options)
        results = {options.runs[0]: scored.result}
        note(options, {"": scored.result.notices}, in_table=True)
        write_card("trec", scored, options)
        qrels = options.qrels
    else:
        qrels = held(options.qrels)  # every run is scored against these judgements
        results = {
            path: during(options, f"evaluating {path}", evaluate_run, qrels, path, **given) for path in options.runs
        }
        _note_runs(options, results)
    if len(results) == 1 and options.compare is None:
        _finish(next(iter(results.values())), options, options.runs[0])
    else:
        _finish_several(results, options, None if options.compare is None else _compared(results, options))
    return _judge_runs(options, gates, qrels, results, given)


def _note_runs(options: argparse.Namespace, results: Mapping[str, RankingResult]) -> None:
    note(
        options,
        {path if len(results) > 1 else "": result.notices for path, result in results.items()},
        in_table=True,
    )


def _check_names(gates: Gates, metrics: Sequence[str] | None, convention: Convention) -> None:
    """Refuse gates on metrics that were not requested."""
    from contextlib import suppress

    from detmap.retrieval.metrics import able, parse, parse_all
    from detmap.retrieval.runs import RUN_METRICS

    asked = parse_all(able(RUN_METRICS, convention) if metrics is None else metrics, convention)
    known = [request.name for request in asked]

    def meant(name: str) -> bool:
        with suppress(OptionError):
            return parse(name, convention).name in known
        return False

    gates.check_names(known, meant)


def _judge_runs(
    options: argparse.Namespace,
    gates: Gates,
    qrels: Any,
    results: Mapping[str, RankingResult],
    rules: Mapping[str, Any],
) -> int:
    """Evaluate the gates for runs."""
    from detmap.retrieval import evaluate_run
    from detmap.retrieval.scoring import by_query
    from detmap.statistics import compare_queries

    first = next(iter(results.values()))
    if options.against:
        gates.check_same(first.convention, [input_of("qrels", options.qrels, qrels)])

    def p_value(name: str, metric: str) -> float | str:
        try:
            path = gates.find_input("run")
        except LookupError as error:
            return str(error)
        before = evaluate_run(qrels, path, **rules)
        if not gates.holds(metric, before[metric]):
            return f"{path} does not give the card's {metric} with the options of this run"
        if metric not in before.per_query:
            return f"{metric} has no value per query"
        _, columns = by_query({"before": before, "now": results[name]}, metric)
        return compare_queries(columns, seed=options.seed)[0].p["randomisation"]

    return gates.judge(results, p_value, first.name_of)


def _compared(results: dict[str, RankingResult], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row per pair of runs: the difference, its interval over queries, and raw and corrected p-values."""
    from detmap.retrieval.scoring import by_query
    from detmap.statistics import compare_queries

    first = next(iter(results.values())).per_query
    metric = options.compare or ("AP" if "AP" in first else next(iter(first)))
    if any(metric not in result.per_query for result in results.values()):
        raise OptionError(f"--compare {shorten(metric)}: was not evaluated query by query; ask for it with --metrics")
    _, columns = by_query(results, metric)  # the value of a query that a run lacks is NaN
    return [
        {
            "from": row.first,
            "to": row.second,
            "metric": metric,
            "queries": row.queries,
            "difference": row.difference,
            "low": row.low,
            "high": row.high,
            **{f"p {name}": p for name, p in row.p.items()},
            **{f"{name} ({CORRECTED[options.correction]})": p for name, p in row.adjusted.items()},
            "disagrees": row.disagrees(),
        }
        for row in compare_queries(columns, options.tests.split(","), seed=options.seed, correction=options.correction)
    ]


def _shown(compared: list[dict[str, Any]], called: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the rows of a comparison for display. `called` maps each run to its displayed name. A row is marked if its
    interval and its test disagree.
    """
    from detmap.results import p_value

    ends = tuple(f" ({name})" for name in CORRECTED.values())
    tested = {name for name in compared[0] if name.startswith("p ") or name.endswith(ends)}
    marked = any(row["disagrees"] for row in compared)
    return [
        {
            **{k: p_value(v) if k in tested else v for k, v in row.items() if k != "disagrees"},
            "from": called[row["from"]],
            "to": called[row["to"]],
            **({"": "~" if row["disagrees"] else ""} if marked else {}),
        }
        for row in compared
    ]


def _about(
    options: argparse.Namespace, compared: list[dict[str, Any]], results: Mapping[str, RankingResult]
) -> list[str]:
    """Return sentences on the tests and estimates."""
    from detmap.statistics.queries import too_few_queries
    from detmap.statistics.tests import promise

    tests, corrected = options.tests.split(","), CORRECTED[options.correction]
    drawn = "would the means differ as much if it were chance which run the value of a query came from? "
    lines = [
        f"p: two-sided, of values paired by query; {'randomisation: ' + drawn if 'randomisation' in tests else ''}"
        f"{corrected}: corrected over {many(len(compared), 'pair')} of runs, "
        "the family of each test",
        promise(options.correction, 0.05),
        "low, high: 95 % confidence interval of the mean difference over all queries that might be asked like these, "
        "not corrected; Student's t; none where queries are too few, or runs too much alike, to tell; queries are taken as "
        "independent of each other",
    ]
    if any(row["queries"] < len(result.query_ids) for row in compared for result in results.values()):
        lines.append(
            "a difference is that of the queries which both runs have, so that it may differ from that of the means above"
        )
    few = too_few_queries((row["queries"] for row in compared), options.correction)
    lines += [few] if few else []
    if any(row["disagrees"] for row in compared):
        lines.append(
            "where interval and p disagree (~), trust the randomisation test: the interval is an approximation"
        )
    return lines


def _finish_several(
    results: dict[str, Any], options: argparse.Namespace, compared: list[dict[str, Any]] | None = None
) -> None:
    """Show several runs and their comparison. Runs are shown side by side, or below each other if rows per query are
    requested.
    """
    from detmap import results as tables
    from detmap.formats.model_names import brief, distinct

    first = next(iter(results.values()))
    document = {path: tables.without_nan(result.to_dict()) for path, result in results.items()}
    if compared is not None:
        document = {"runs": document, "comparisons": tables.without_nan(compared)}
    everything = json.dumps(document, indent=2, ensure_ascii=False)
    if options.out:
        write(options.out, (everything + "\n").encode())
    if options.plot:
        from detmap.retrieval.scoring import plot_rankings

        short = distinct(list(results), stem=str)
        plot_rankings(dict(zip(short, results.values(), strict=True)), options.plot)
    if options.format == "json":
        print(everything)
        return
    paths = list(results)
    called = dict(zip(paths, paths if options.format == "csv" else distinct(paths, stem=str), strict=True))
    values = {
        called[path]: {row["metric"]: row["value"] for row in result.summary()} for path, result in results.items()
    }
    rows = [{"metric": name, **{run: own[name] for run, own in values.items()}} for name in first]
    rows += [
        {"metric": f"queries {kind}", **{called[path]: result.queries[kind] for path, result in results.items()}}
        for kind in ("scored", "empty", "missing", "extra")
    ]
    codes = dict.fromkeys(code for result in results.values() for code in result.notices)
    counted = [
        {"metric": f"notices {code}", **{path: result.notices.get(code, 0) for path, result in results.items()}}
        for code in codes
        if not code.endswith("_queries")  # the table already has the counts of queries
    ]
    if options.rows:
        rows = [{"run": called[path], **row} for path, result in results.items() for row in result.rows()]
    if options.format == "csv":
        rows += [] if options.rows else counted
        print("\n".join(filter(None, (tables.to_csv(rows), tables.to_csv(compared or [])))), end="")
        return
    said = tables.sentences({called[path]: result.notices for path, result in results.items()})
    if is_narrow(options):
        called = dict(zip(paths, brief(list(called.values())).values(), strict=True))
    keep = ["difference", *(f"{test} ({CORRECTED[options.correction]})" for test in options.tests.split(","))]
    shown = [rows, _shown(compared, called) if compared else [], said]
    print_tables(shown, options, first.convention.describe(), None, [], keep=keep)
    print_notes(_about(options, compared, results) if compared else [], options)


def _finish(result: Any, options: argparse.Namespace, name: str) -> None:
    write_result(result, options)
    from detmap.formats.model_names import distinct

    show(result, options, f"{distinct([name], stem=str)[0]}: {result.describe()}")


def _scored_arrays(options: argparse.Namespace, evaluate: Callable[[argparse.Namespace, Any], Any]) -> Scored:
    """Score a file of arrays. If an evaluation card is requested, the outcome has names and hashes of the inputs."""
    from detmap.reading.sources import held

    source = held(options.file) if options.card else options.file
    inputs = [input_of("file", options.file, source), *files_of(options, "")] if options.card else []
    result = during(options, f"evaluating {options.file}", evaluate, options, source)
    return Scored(result, inputs, dict(result.queries))


def _show_arrays(command: str, evaluate: Callable[[argparse.Namespace, Any], Any], options: argparse.Namespace) -> None:
    scored = _scored_arrays(options, evaluate)
    note(options, {"": scored.result.notices}, in_table=True)
    if options.card:
        write_card(command, scored, options)
    _finish(scored.result, options, options.file)


def evaluate_reid(options: argparse.Namespace, source: Any) -> Any:
    """Score the rankings of a gallery from a file of arrays; `source` is the file's path or content."""
    return gallery_of(options, source)(**_rules(options), keep_curve=bool(options.plot))


def gallery_of(options: argparse.Namespace, source: Any) -> Callable[..., Any]:
    """Read the arrays of a gallery. Return a function that scores the gallery by the given metrics and rules."""
    from detmap.retrieval import evaluate_distances, evaluate_features, evaluate_neighbors

    arrays = _neighbors(options) or _arrays(
        options.file,
        source,
        ("indices", "neighbors", "neighbours", "I"),
        ("distances", "distmat", "D"),
        ("query_features",),
        ("gallery_features",),
        ("query_ids", "q_pids"),
        ("gallery_ids", "g_pids"),
        ("query_cameras", "q_camids"),
        ("gallery_cameras", "g_camids"),
    )
    labels = [*_need(arrays, options.file, "query_ids", "gallery_ids")]
    labels += [arrays.get("query_cameras"), arrays.get("gallery_cameras")]
    if "indices" in arrays:
        ours, theirs, *cameras = labels

        def score(keep_curve: bool = False, **rules: Any) -> Any:  # neighbours have no curve
            return evaluate_neighbors(arrays["indices"], ours, theirs, arrays.get("distances"), *cameras, **rules)

        return score
    if "query_features" in arrays:
        both = _need(arrays, options.file, "query_features", "gallery_features")
        return partial(evaluate_features, *both, *labels, metric=options.metric)
    if "distances" not in arrays:
        _need(arrays, options.file, "distances, query_features and gallery_features, or indices")
    return partial(evaluate_distances, arrays["distances"], *labels)


def _neighbors(options: argparse.Namespace) -> dict[str, Any] | None:
    """Return arrays of neighbours if the inputs are tables, else None."""
    if options.gallery is None:
        return None
    from detmap.formats.ranking_tables import read_neighbors

    return read_neighbors(options.file, options.gallery)


def evaluate_hashing(options: argparse.Namespace, source: Any) -> Any:
    """Score rankings by Hamming distance from a file of arrays; `source` is the file's path or content."""
    return codes_of(options, source)(keep_curve=bool(options.plot), **_rules(options))


def codes_of(options: argparse.Namespace, source: Any) -> Callable[..., Any]:
    """Read codes and labels. Return a function that scores the codes by the given metrics and rules."""
    from detmap.retrieval import evaluate_codes

    names = ("query_codes", "gallery_codes", "query_labels", "gallery_labels")
    query, gallery, ours, theirs = _need(_arrays(options.file, source, *((n,) for n in names)), options.file, *names)
    return partial(evaluate_codes, query, gallery, ours, theirs, options.k)


def _conventions(options: argparse.Namespace) -> None:
    from detmap.retrieval import CONVENTIONS

    rows = [
        {"convention": c.name, "AP": c.formula, "decides": c.describe().partition(": ")[2], "used by": c.users}
        for c in CONVENTIONS.values()
    ]
    print_list(rows, options)


def _described(start: bytes) -> str:
    """Describe the type of a file by its first bytes."""
    from detmap.reading.unlike import described

    known = described(start, "")
    if start[:4] == b"PAR1":
        return "is Parquet"
    if known is not None:
        return known[0]
    if not start:
        return "is empty"
    return "is JSON" if start.lstrip()[:1] in (b"{", b"[") else "is text"


class _Arrays(dict[str, Any]):
    """The arrays that a command reads, by name; `there` holds the names of all arrays in the file."""

    def __init__(self, there: Sequence[str]) -> None:
        super().__init__()
        self.there = there


def _arrays(path: str, source: Any, *names: tuple[str, ...]) -> _Arrays:
    """Read arrays of an .npz file. Each tuple in `names` holds the aliases of one array, which is returned under the
    first alias.
    """
    # `source` is the path or, for a stream, which can be read only once, its bytes
    import zipfile

    import numpy as np

    from detmap.errors import DetmapError, InputError
    from detmap.reading import sources
    from detmap.system.limits import INFLATED

    try:
        source = sources.held(source)
        held = isinstance(source, bytes)
        watched = sources.unchanged(lambda: None if held else sources.stamp(source, ""), str(path))
        with watched, io.BytesIO(source) if held else open(source, "rb") as raw:
            start = raw.read(sources.HEAD)
            if start[:2] != b"PK":
                raise InputError(f"{_described(start)}, not an .npz file", source=path, remedy="save with numpy.savez")
            size = raw.seek(0, os.SEEK_END)
            with zipfile.ZipFile(raw) as archive:
                most = sources.most_inflated(size)
                if sum(member.file_size for member in archive.infolist()) > most:
                    raise InputError(
                        f"decompresses to far more than its size, beyond {most >> 20:,} MiB",
                        source=path,
                        remedy=f"save it with numpy.savez, or {INFLATED.advice()}",
                    )
                if len({name.removesuffix(".npy") for name in archive.namelist()}) < len(archive.namelist()):
                    raise InputError("holds two arrays of one name", source=path, remedy="save it with numpy.savez")
            raw.seek(0)
            file = np.load(raw, allow_pickle=False)
            found = _Arrays(file.files)
            for spellings in names:
                name = next((n for n in spellings if n in file.files), None)
                if name is not None:
                    found[spellings[0]] = file[name]
            return found
    except IsADirectoryError:
        raise InputError("is a folder", source=path, remedy="give a file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=path) from None
    except (DetmapError, MemoryError):
        raise
    except Exception as error:  # numpy, zipfile, decompressors and parsers raise almost any exception
        what = "holds pickled objects, which are not loaded" if "Object arrays" in str(error) else "is damaged"
        raise InputError(what, source=path, remedy="save arrays of numbers or strings with numpy.savez") from None


#: Maximum number of arrays that an error names.
_NAMED = 12


def _need(arrays: dict[str, Any], path: str, *names: str) -> list[Any]:
    from detmap.errors import InputError

    missing = [name for name in names if name not in arrays]
    if missing:
        there = [shorten(name)[1:-1] for name in getattr(arrays, "there", arrays)]
        more = f" and {len(there) - _NAMED} more" if len(there) > _NAMED else ""
        remedy = f"there is {', '.join(there[:_NAMED]) or 'no array'}{more}"
        raise InputError(f"has no array {' or '.join(missing)}", source=path, remedy=remedy)
    return [arrays[name] for name in names]


#: Commands that `detmap verify` can repeat.
SCORERS = {
    "trec": Scorer(("qrels", "run"), _scored_run),
    "reid": Scorer(("file",), lambda options: _scored_arrays(options, evaluate_reid)),
    "hashing": Scorer(("file",), lambda options: _scored_arrays(options, evaluate_hashing)),
}

COMMANDS = {
    "trec": Command(
        "score runs against judgements",
        _fill_trec,
        _trec,
        "Score TREC runs against judgements, as trec_eval does.",
        settle=_settle_trec,
        first="--metrics --convention --level --depth --per-query --compare --format --out --fail-under",
    ),
    "reid": Command(
        "score re-identification",
        partial(_fill_arrays, add_reid),
        partial(_show_arrays, "reid", evaluate_reid),
        "Score the rankings of a gallery. The file holds the arrays distances, or query_features and gallery_features, or "
        "indices (the nearest neighbours, as places in the gallery) with or without their distances, or as faiss calls them "
        "I and D; query_ids and gallery_ids; and, if cameras count, query_cameras and gallery_cameras.",
        multiplies=True,
        first="--metrics --convention --metric --gallery --per-query --format --out",
    ),
    "hashing": Command(
        "score binary codes",
        partial(_fill_arrays, add_hashing),
        partial(_show_arrays, "hashing", evaluate_hashing),
        "Score rankings by Hamming distance. The file holds the arrays query_codes, gallery_codes, query_labels and "
        "gallery_labels.",
        first="--metrics --convention --k --per-query --format --out",
    ),
    "conventions": Command(
        "list the conventions of rankings, their formulas and users",
        add_list_format,
        _conventions,
        "List the conventions of rankings: what each decides, its formula of AP, and who uses it.",
        computes=False,
    ),
}
