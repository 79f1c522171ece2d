"""The table of ranking metrics, and the parser of metric names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from detmap.choices import decimal
from detmap.errors import OptionError, did_you_mean, shorten
from detmap.retrieval import measures, trec_measures
from detmap.retrieval.conventions import Convention
from detmap.retrieval.ranked import GEOMETRIC, TOTAL, Metric, Order, Request

#: Constructors for metrics that do not depend on the order of the ranked items, and for counts summed over queries.
_of_set = partial(Metric, depth="never", reads="set")
_total = partial(_of_set, aggregate=TOTAL, bounded=False)

METRICS = (
    Metric(
        "AP",
        measures.average_precision,
        "average precision, as the convention has it; options: an interpolation, a normalizer",
        mean_name="mAP",
        aliases=("map_cut", "average_precision"),
        expected=True,
        options=True,
    ),
    Metric(
        "AP@R",
        measures.precision_to_r,
        "sum over hits up to rank R of j / rank_j, over R, the number of relevant items (Musgrave et al., 2020)",
        mean_name="mAP@R",
        aliases=("map_at_r",),
        depth="never",
        expected=True,
        reads="relevant",
    ),
    Metric(
        "P",
        measures.precision,
        "hits up to k / k; (radius=r): relevant share of the items within Hamming distance r",
        aliases=("precision", "set_p", "setp"),
        expected=True,
        options=True,
    ),
    Metric(
        "R",
        measures.recall,
        "hits up to k / relevant items (metric learning's Recall@k is success@k); (radius=r): of those within Hamming "
        "distance r",
        aliases=("recall", "set_recall", "setr"),
        expected=True,
        options=True,
    ),
    Metric(
        "R_cap",
        measures.capped_recall,
        "hits up to k / min(relevant items, k) (BEIR; trec_eval's relative_P)",
        aliases=("relative_p",),
        depth="must",
    ),
    Metric("mP", measures.precision_to_last, "precision at min(k, rank of the last hit) (revisitop)", depth="must"),
    Metric("F1", measures.f1, "harmonic mean of P@k and R@k"),
    Metric(
        "R-prec",
        measures.r_precision,
        "precision at rank R, the number of relevant items",
        aliases=("rprec", "r-precision", "r_precision", "p@r"),
        depth="never",
        reads="relevant",
    ),
    Metric(
        "RR",
        measures.reciprocal_rank,
        "1 / rank of the first hit",
        mean_name="MRR",
        aliases=("recip_rank", "reciprocal_rank"),
        expected=True,
    ),
    Metric(
        "success",
        measures.success,
        "whether there is a hit up to k: the hit rate; Recall@k in metric learning, accuracy@k in sentence-transformers",
        aliases=("hit_rate", "hitrate", "hit-rate", "hit", "accuracy", "top_k_accuracy"),
        depth="must",
    ),
    Metric(
        "hits",
        trec_measures.hits_within,
        "how many hits there are up to k (ranx); whether there is one: success",
        expected=True,
        bounded=False,
    ),
    Metric(
        "CMC",
        measures.cmc,
        "cumulative match characteristic at rank k, as the convention has it",
        aliases=("rank",),
        depth="must",
        expected=True,
    ),
    Metric(
        "INP",
        measures.inverse_negative_penalty,
        "relevant items / rank of the last of them; 0 if not all are ranked (Ye et al., 2021)",
        mean_name="mINP",
        depth="never",
        expected=True,
    ),
    Metric(
        "nDCG",
        measures.ndcg,
        "sum of gain / log2(rank + 1) over that of the best ranking; gain = grade, (exp): 2 ** grade - 1, (1=3,2=9): those "
        "of grades 1 and 2, (rel=2): 0 below that grade",
        aliases=("ndcg_cut",),
        expected=True,
        options=True,
        graded=True,
    ),
    Metric("DCG", measures.dcg, "sum of gain / log2(rank + 1)", options=True, bounded=False),
    Metric(
        "ERR",
        measures.expected_reciprocal_rank,
        "expected reciprocal rank; chance to stop (2 ** grade - 1) / 2 ** max, max the highest grade or (max=..)",
        ambiguous="max",
        options=True,
        levels=False,
    ),
    Metric(
        "RBP",
        measures.rank_biased,
        "(1 - p) * sum of gain * p ** (rank - 1), p = 0.9 or (p=..); gain: grade / the query's highest, (rel=..): 1 from "
        "that grade on",
        default="p=0.9",
        ambiguous="p",
        options=True,
        graded=True,
    ),
    Metric(
        "rbp_resid",
        trec_measures.residual,
        "what RBP could gain if documents without a judgement were relevant, ranked or not, p = 0.9 or (p=..); 0 where all "
        "ranked ones are judged",
        default="p=0.9",
        ambiguous="p",
        depth="never",
        options=True,
        levels=False,
    ),
    Metric(
        "Rndcg",
        trec_measures.ndcg_at_levels,
        "mean of nDCG at the ranks where the gain of the best ranking falls, and at the end",
        depth="never",
        levels=False,
        graded=True,
    ),
    Metric(
        "ndcg_rel",
        trec_measures.ndcg_at_gains,
        "mean of nDCG at the ranks of the items with a gain; at the end for those that were not ranked",
        depth="never",
        levels=False,
        graded=True,
    ),
    Metric(
        "G",
        trec_measures.normalized_gain,
        "sum of gain / log2(2 + cost - gains so far) over all gains; cost: that of the best ranking, at least 1 a rank",
        depth="never",
        levels=False,
        graded=True,
    ),
    Metric(
        "binG",
        trec_measures.binary_gain,
        "sum over hits of 1 / log2(2 + wrong items before it) / relevant items",
        depth="never",
    ),
    Metric("bpref", measures.bpref, "binary preference (Buckley and Voorhees, 2004)", depth="never"),
    Metric(
        "gm_bpref",
        trec_measures.geometric_bpref,
        "geometric mean of bpref, at least 0.00001 each; per query its logarithm",
        depth="never",
        aggregate=GEOMETRIC,
        bounded=False,
    ),
    Metric("infAP", measures.inferred, "inferred AP (Yilmaz and Aslam, 2006)", depth="never"),
    Metric("judged", measures.judged, "share of judged documents among the first k", depth="must", levels=False),
    Metric(
        "unj",
        trec_measures.unjudged,
        "documents among the first k without a judgement, or with a grade below 0, / k",
        aliases=("unjudged",),
        depth="must",
        levels=False,
    ),
    Metric(
        "hole",
        measures.hole,
        "documents among the first k that are judged for no query, / k (BEIR, MTEB)",
        aliases=("hole_at",),
        depth="must",
        levels=False,
    ),
    Metric(
        "fallout",
        measures.fallout,
        "items up to k that are not relevant / all such items ranked, or those of a collection of (items=..)",
        aliases=("fall_out", "fall-out"),
        expected=True,
        options=True,
    ),
    Metric(
        "GMAP",
        measures.geometric,
        "geometric mean of AP, at least 0.00001 each; per query its logarithm",
        aliases=("gm_map",),
        depth="never",
        aggregate=GEOMETRIC,
        bounded=False,
    ),
    Metric(
        "iprec",
        measures.interpolated,
        "largest precision at recall r or more; which hit that is: the convention's recall_cutoffs",
        aliases=("iprec_at_recall",),
        depth="must",
        at="recall",
    ),
    Metric(
        "Rprec_mult",
        trec_measures.precision_to_multiple,
        "precision at that multiple of the number of relevant items, as in Rprec_mult@0.2",
        depth="must",
        at="multiple",
        reads="relevant",
    ),
    Metric(
        "11pt",
        measures.eleven_points,
        "mean of iprec at recalls 0, 0.1 .. 1, or at those in parentheses: (0.25,0.5,0.75)",
        aliases=("11pt_avg", "11-pt_avg"),
        depth="never",
        options=True,
    ),
    _of_set(
        "set_F",
        trec_measures.set_f,
        "(beta + 1) P R / (beta P + R) of all items ranked, beta = 1 or (beta=..)",
        aliases=("setf",),
        options=True,
        parameter="beta",
    ),
    _of_set("set_map", trec_measures.set_map, "precision times recall of all items ranked", aliases=("setap",)),
    _of_set(
        "set_relative_P",
        trec_measures.set_relative_precision,
        "hits / min(items ranked, relevant items)",
        aliases=("setrelp",),
    ),
    _of_set(
        "utility",
        trec_measures.utility,
        "worth of hits, wrong items and relevant items not ranked: 1, -1, 0, or (hit=..,wrong=..,lost=..); (left=..) that "
        "of the other items of a collection of (items=..)",
        options=True,
        bounded=False,
    ),
    _total("num_q", lambda ranked, request: np.ones(len(ranked.raw)), "queries", aliases=("numq",), levels=False),
    _total("num_ret", trec_measures.retrieved, "items ranked; (rel=..): of that grade or higher", aliases=("numret",)),
    _total(
        "num_rel",
        lambda ranked, request: ranked.raw.positives.astype(np.float64),
        "relevant items",
        aliases=("numrel",),
    ),
    _total(
        "num_rel_ret",
        lambda ranked, request: ranked.raw.counts.astype(np.float64),
        "relevant items ranked",
        aliases=("numrelret",),
    ),
    _total("num_nonrel_judged_ret", trec_measures.wrong_and_judged, "documents ranked that were judged not relevant"),
)

#: Maximum depth of a metric, because larger integers are not exact in double precision.
DEEPEST = 1 << 53

_BY_ALIAS = {alias: metric for metric in METRICS for alias in metric.aliases}


def parse(name: str, convention: Convention | None = None) -> Request:
    """Parse a metric's name in detmap's spelling (``nDCG@10``), trec_eval's (``ndcg_cut_10``), or the spelling of the
    tool whose names the convention uses. Raises `OptionError` for an unknown name, a depth that the metric does not
    take, and a number that can be read as a depth or as a parameter.
    """
    if not isinstance(name, str):
        raise OptionError(f"a metric is named by a string, not {type(name).__name__}")
    if convention is None or convention.names == "detmap":
        return _read(name)
    return _of_ranx(name) if convention.names == "ranx" else _of_ir_measures(name, convention)


def _read(name: str, **defaults: str) -> Request:
    """Parse a name by the metric table; `defaults` override the default options of metrics."""
    text = re.sub(r"^([^()@]+)(\([^()]*\))@[rR]$", r"\1@R\2", name.strip())  # such as AP(rel=2)@R
    text = re.sub(r"^(rank|cmc)(\d+)$", r"\1@\2", text, flags=re.IGNORECASE)  # such as Rank1
    metric, depth, given = _BY_ALIAS.get(text.lower()), None, None
    if metric is None:
        found = re.fullmatch(r"([^()@]+?)(?:\(([^()]*)\))?(?:([@._-])([0-9.]+))?(?:\(([^()]*)\))?", text)
        found = found or re.fullmatch(r"([^()@]+@[rR])\(([^()]*)\)()()()", text)
        metric = _BY_ALIAS.get(found[1].lower()) if found else None
        if found and metric:
            given, depth = found[2] or found[5], found[4] or None
            if metric.ambiguous and depth and found[3] != "@":
                share = f"0.{depth}" if metric.ambiguous == "p" and depth.isdigit() else depth
                ranks = f"{metric.name}@{depth} reads that many ranks, and " if depth.isdigit() else ""
                raise OptionError(
                    f"{shorten(name)} is not clear: {ranks}{metric.name}({metric.ambiguous}={share}) has that parameter"
                )
    if metric is None:
        known = ", ".join(m.mean_name or m.name for m in METRICS)
        near = did_you_mean(re.split(r"[@(]", text.lower()[:100])[0], _BY_ALIAS) or ";"
        raise OptionError(f"unknown metric {shorten(name)}{near} one of: {known}, with @depth where it takes one")
    options, level = _options(metric, name, given)
    default = defaults.get(metric.name, metric.default)
    if default and not any(option.startswith(default.partition("=")[0] + "=") for option in options):
        options = (*options, default)
    if depth is not None and metric.parameter:
        options, depth = (*options, f"{metric.parameter}={depth}"), None
    if metric.depth == "never" and depth is not None:
        raise OptionError(f"{metric.name} takes no depth: {shorten(name)}")
    if metric.depth == "must" and depth is None:
        raise OptionError(f"{metric.name} needs a depth, as in {metric.name}@{'10' if metric.at == 'rank' else '0.2'}")
    return Request(metric, options, None if depth is None else _depth(metric, name, depth), level)


#: For each kind of depth, a description of valid values and the minimum.
_DEPTHS = {"rank": ("a positive integer", 1.0), "recall": ("a recall from 0 to 1", 0.0), "multiple": ("a number", 0.0)}


def _depth(metric: Metric, name: str, text: str) -> float:
    """Return the depth of a name as a number; raise if invalid."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    wanted, least = _DEPTHS[metric.at]
    if value > DEEPEST:
        raise OptionError(f"{shorten(name)}: the depth must be at most 2 ** 53")
    if value < least or (metric.at == "rank" and value != int(value)) or (metric.at == "recall" and value > 1):
        raise OptionError(f"{shorten(name)}: the depth must be {wanted}")
    return value


def _of_ranx(name: str) -> Request:
    """Parse a name as ranx does: ``rbp.95`` sets p=0.95, ``_burges`` means exponential gains, ``-l2`` makes 2 the
    lowest relevant grade, and ``@0`` means no depth.
    """
    text, _, level = name.strip().partition("-l")
    found = re.fullmatch(r"(?i)rbp[.@]([0-9]+)", text)
    if found:
        text = f"RBP(p=0.{found[1]})"
    elif re.fullmatch(r"(?i)rbp", text):
        raise OptionError("ranx's rbp needs p, as in rbp.95")
    text = re.sub(r"@0+$", "", re.sub(r"^(n?dcg)_burges(@[0-9]+)?$", r"\1(exp)\2", text))
    text = re.sub(r"^(r-precision|bpref)@[0-9]+$", r"\1", text)  # ranx ignores this depth
    whole = _BY_ALIAS.get(text.lower())
    request = Request(whole) if whole is not None and whole.name == "success" else _read(text)
    if not level:
        return request
    if not re.fullmatch(r"[1-9][0-9]{0,8}", level) or not request.metric.levels or request.level is not None:
        raise OptionError(f"{shorten(name)}: -l takes a grade above 0, of a metric of ranx's, as in map-l2")
    return replace(request, level=float(level))


@dataclass(frozen=True)
class _Provider:
    """A program that ir_measures calls: its order of documents, its number of decimals (see `Request`), and its maximum
    depth.
    """

    order: Order | None = None
    digits: int | None = None
    depth: float | None = None


_TREC = _Provider()
_GDEVAL = _Provider(("docid", False), digits=5)
_MSMARCO = _Provider(("docid-ascending", False))
_CWL = _Provider(("index", False), depth=1000.0)

#: Supported measures of ir_measures, each with two programs: the first computes the measure without a depth, the second
#: with a depth. None if ir_measures lacks the measure without, or with, a depth.
IR_MEASURES: Mapping[str, tuple[_Provider | None, _Provider | None]] = {
    "AP": (_TREC, _TREC),
    "P": (_TREC, _TREC),
    "R": (_TREC, _TREC),
    "RR": (_TREC, _MSMARCO),
    "R-prec": (_TREC, None),
    "nDCG": (_TREC, _TREC),
    "nDCG(exp)": (None, _GDEVAL),
    "ERR": (None, _GDEVAL),
    "RBP": (_CWL, None),
    "success": (None, _TREC),
    "bpref": (_TREC, None),
    "infAP": (_TREC, None),
    "iprec": (None, _TREC),
    "judged": (None, _MSMARCO),
    "set_F": (_TREC, None),
    "set_map": (_TREC, None),
    "set_relative_P": (_TREC, None),
    "num_ret": (_TREC, None),
    "num_rel_ret": (_TREC, None),
}

#: Metrics of detmap that ir_measures also has. num_q and num_rel are refused, because ir_measures counts only the
#: queries in the run.
_OF_IR_MEASURES = {*(name.partition("(")[0] for name in IR_MEASURES), "num_q", "num_rel"}

#: The only option that ir_measures supports for each measure, or the first characters of that option.
_IR_OPTIONS = {"nDCG": "exp", "ERR": "max=4", "RBP": "p=", "set_F": "beta="}


def _of_ir_measures(name: str, convention: Convention) -> Request:
    """Parse a name as ir_measures does. By default, the maximum grade of ERR is 4, and the p of RBP is 0.8."""
    request = _read(name, RBP="p=0.8", ERR="max=4")
    metric = request.metric.name
    if name.strip().lower().startswith("accuracy"):
        raise OptionError(
            f"{shorten(name)}: ir_measures' Accuracy is about pairs of documents; of hits it is Success@k"
        )
    if metric not in _OF_IR_MEASURES:
        return request
    providers = IR_MEASURES.get("nDCG(exp)" if metric == "nDCG" and request.options else metric, (None, None))
    provider = providers[request.depth is not None]
    known = all(option.startswith(_IR_OPTIONS.get(metric, "-")) for option in request.options)
    known &= metric != "nDCG" or request.level is None
    if provider is None or not known:
        raise OptionError(
            f"{shorten(name)}: this is no measure of ir_measures, or detmap does not reproduce it: evaluate it under "
            "another convention"
        )
    if metric == "RBP" and request.level is None:
        raise OptionError(
            f"{shorten(name)}: ir_measures' RBP needs the grade from which documents are relevant, as RBP(rel=1)"
        )
    if metric == "iprec" and request.depth is not None and round(request.depth, 2) != request.depth:
        raise OptionError(f"{shorten(name)}: ir_measures rounds the recall to two decimals: {request.depth:.2f}?")
    own = (convention.ties, convention.single) == ("docid", True)  # whether the order of ties is the default
    depth = request.depth if provider.depth is None else provider.depth
    return replace(request, depth=depth, order=provider.order if own else None, digits=provider.digits)


#: Options of ir_measures, mapped to detmap's options; "" stands for a default.
_SPELLINGS = {"dcg=exp-log2": "exp", "dcg=log2": ""}


def _options(metric: Metric, name: str, given: str | None) -> tuple[tuple[str, ...], float | None]:
    """Return the options of a name, in order, and the grade of ``rel=``."""
    words = [word.strip().replace("'", "").replace('"', "").replace(" ", "") for word in (given or "").split(",")]
    words = [_SPELLINGS.get(word, word) if metric.graded or metric.name == "DCG" else word for word in words]
    levels = [word for word in words if word.startswith("rel=")]
    options = tuple(sorted(word for word in words if word and word not in levels))
    if options and not metric.options:
        raise OptionError(f"{metric.name} takes no options: {shorten(name)}")
    if not levels:
        return options, None
    if not metric.levels:
        raise OptionError(f"{metric.name} takes no rel, for it does not ask what is relevant: {shorten(name)}")
    try:
        level = decimal(levels[-1][4:])
    except ValueError:
        level = -1.0
    if not 0 < level <= 1 << 31:
        raise OptionError(f"{shorten(name)}: rel must be a grade above 0")
    return options, level


def split(text: str) -> list[str]:
    """Split a list of metric names at commas outside of parentheses."""
    return [name.strip() for name in re.split(r",(?![^()]*\))", text) if name.strip()]


def listed(names: Iterable[str] | str) -> list[str]:
    """Return metric names as a list; raise `OptionError` if there are none."""
    if not isinstance(names, Iterable):
        raise OptionError(f"metrics must be names, not {type(names).__name__}")
    found = [names] if isinstance(names, str) else list(names)
    if not found:
        raise OptionError("metrics holds no name")
    return found


def parse_rate(name: object) -> float | None:
    """Return the rate of ``TPR@FPR=rate``, or None for other names; raise `OptionError` unless the rate is from 0 to 1."""
    if not isinstance(name, str) or not name.replace(" ", "").upper().startswith("TPR@FPR="):
        return None
    try:
        rate = decimal(name.partition("=")[2])
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise OptionError(f"{shorten(name)}: the rate must be from 0 to 1, as in TPR@FPR=0.001")
    return rate


def able(names: Iterable[str], convention: Convention) -> list[str]:
    """Return the metrics among `names` that are defined under the convention."""
    return [name for name in names if _is_able(name, convention)]


def _is_able(name: str, convention: Convention) -> bool:
    try:
        request = parse(name, convention)
    except OptionError:
        return False
    return convention.ties != "expected" or request.metric.expected


def parse_all(names: Iterable[str] | str, convention: Convention) -> list[Request]:
    """Parse metric names and drop repeated ones; raise `OptionError` for a metric undefined under the convention."""
    requests: dict[str, Request] = {}
    for name in listed(names):
        request = parse(name, convention)
        if convention.ties == "expected" and not request.metric.expected:
            able = ", ".join(m.name for m in METRICS if m.expected)
            raise OptionError(f"{shorten(request.key)} has no closed form for ties='expected'; these have: {able}")
        requests.setdefault(request.key, request)
    return list(requests.values())
