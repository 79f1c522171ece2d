"""The metric table of rankings: every number is a row here."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from detmap.errors import OptionError
from detmap.retrieval import measures
from detmap.retrieval.conventions import Convention
from detmap.retrieval.ranked import Metric, Request

METRICS = (
    Metric(
        "AP",
        measures.average_precision,
        "average precision, as the convention has it; options: an interpolation, a normalizer",
        mean_name="mAP",
        aliases=("ap", "map", "map_cut", "average_precision"),
        expected=True,
        options=True,
    ),
    Metric(
        "P",
        measures.precision,
        "hits up to k / k; (radius=r): relevant share of the items within Hamming distance r",
        aliases=("p", "precision", "set_p"),
        expected=True,
        options=True,
    ),
    Metric(
        "R",
        measures.recall,
        "hits up to k / relevant items; (radius=r): of those within Hamming distance r",
        aliases=("r", "recall", "set_recall"),
        expected=True,
        options=True,
    ),
    Metric(
        "R_cap",
        measures.capped_recall,
        "hits up to k / min(relevant items, k) (BEIR)",
        aliases=("r_cap",),
        depth="must",
    ),
    Metric(
        "mP",
        measures.precision_to_last,
        "precision at min(k, rank of the last hit) (revisitop)",
        aliases=("mp",),
        depth="must",
    ),
    Metric("F1", measures.f1, "harmonic mean of P@k and R@k", aliases=("f1", "set_f")),
    Metric(
        "R-prec",
        measures.r_precision,
        "precision at rank R, the number of relevant items",
        aliases=("rprec", "r-prec", "r-precision", "r_precision"),
        depth="never",
    ),
    Metric(
        "RR",
        measures.reciprocal_rank,
        "1 / rank of the first hit",
        mean_name="MRR",
        aliases=("rr", "mrr", "recip_rank", "reciprocal_rank"),
        expected=True,
    ),
    Metric(
        "success",
        measures.success,
        "whether there is a hit up to k",
        aliases=("success", "hit_rate", "hit"),
        depth="must",
    ),
    Metric(
        "CMC",
        measures.cmc,
        "cumulative match characteristic at rank k, as the convention has it",
        aliases=("cmc", "rank"),
        depth="must",
        expected=True,
    ),
    Metric(
        "INP",
        measures.inverse_negative_penalty,
        "relevant items / rank of the last of them; 0 if not all are ranked (Ye et al., 2021)",
        mean_name="mINP",
        aliases=("inp", "minp"),
        depth="never",
        expected=True,
    ),
    Metric(
        "nDCG",
        measures.ndcg,
        "sum of gain / log2(rank + 1) over that of the best ranking; gain = grade, (exp): 2 ** grade - 1",
        aliases=("ndcg", "ndcg_cut"),
        expected=True,
        options=True,
    ),
    Metric(
        "DCG",
        measures.dcg,
        "sum of gain / log2(rank + 1)",
        aliases=("dcg",),
        options=True,
    ),
    Metric(
        "ERR",
        measures.expected_reciprocal_rank,
        "expected reciprocal rank; chance to stop (2 ** grade - 1) / 2 ** max, max the highest grade or (max=..)",
        aliases=("err",),
        options=True,
    ),
    Metric(
        "RBP",
        measures.rank_biased,
        "(1 - p) * sum of gain * p ** (rank - 1), p = 0.9 or (p=..); gain: grade / the query's highest",
        aliases=("rbp",),
        options=True,
    ),
    Metric(
        "bpref", measures.bpref, "binary preference (Buckley and Voorhees, 2004)", aliases=("bpref",), depth="never"
    ),
    Metric("infAP", measures.inferred, "inferred AP (Yilmaz and Aslam, 2006)", aliases=("infap",), depth="never"),
    Metric("judged", measures.judged, "share of judged documents among the first k", aliases=("judged",), depth="must"),
    Metric(
        "GMAP",
        measures.geometric,
        "geometric mean of AP, at least 0.00001 each; per query its logarithm",
        aliases=("gmap", "gm_map"),
        depth="never",
        aggregate="geometric",
    ),
    Metric(
        "iprec",
        measures.interpolated,
        "largest precision at recall r or more; which hit that is: the convention's recall_cutoffs",
        aliases=("iprec", "iprec_at_recall"),
        depth="must",
    ),
    Metric(
        "11pt",
        measures.eleven_points,
        "mean of iprec at recalls 0, 0.1 .. 1",
        aliases=("11pt", "11pt_avg", "11-pt_avg"),
        depth="never",
    ),
    Metric(
        "num_ret",
        lambda ranked, request: ranked.raw.items.astype(np.float64),
        "items ranked",
        aliases=("num_ret",),
        depth="never",
        aggregate="sum",
    ),
    Metric(
        "num_rel",
        lambda ranked, request: ranked.raw.positives.astype(np.float64),
        "relevant items",
        aliases=("num_rel",),
        depth="never",
        aggregate="sum",
    ),
    Metric(
        "num_rel_ret",
        lambda ranked, request: ranked.raw.counts.astype(np.float64),
        "relevant items ranked",
        aliases=("num_rel_ret",),
        depth="never",
        aggregate="sum",
    ),
)

#: The deepest rank that a metric can be asked for: further ones are not exact in double precision.
DEEPEST = 1 << 53

_BY_ALIAS = {alias: metric for metric in METRICS for alias in metric.aliases}


def parse(name: str) -> Request:
    """Read a metric's name: ours (``nDCG@10``, ``RBP(p=0.8)``) or trec_eval's (``ndcg_cut_10``).

    Raises
    ------
    OptionError
        For an unknown name, or a depth that it does not take.
    """
    if not isinstance(name, str):
        raise OptionError(f"a metric is named by a string, not {type(name).__name__}")
    text = name.strip()
    metric, depth = _BY_ALIAS.get(text.lower()), None
    options: tuple[str, ...] = ()
    if metric is None:
        found = re.fullmatch(r"([^()@]+?)(?:\(([^()]*)\))?(?:[@._-]([0-9.]+))?(?:\(([^()]*)\))?", text)
        metric = _BY_ALIAS.get(found[1].lower()) if found else None
        if found and metric:
            given = found[2] or found[4]
            options = tuple(sorted(o.strip() for o in given.split(","))) if given else ()
            depth = found[3]
    if metric is None:
        known = ", ".join(m.mean_name or m.name for m in METRICS)
        raise OptionError(f"unknown metric {name!r}; one of: {known}, with @depth where it takes one")
    value = None
    if depth is not None:
        try:
            value = float(depth)
        except ValueError:
            value = -1.0
        whole = metric.name != "iprec"
        if (whole and (value < 1 or value != int(value))) or (not whole and not 0 <= value <= 1):
            wanted = "a positive integer" if whole else "a recall from 0 to 1"
            raise OptionError(f"{name!r}: the depth must be {wanted}")
        if value > DEEPEST:
            raise OptionError(f"{name!r}: the depth must be at most 2 ** 53")
    if metric.depth == "never" and depth is not None:
        raise OptionError(f"{metric.name} takes no depth: {name!r}")
    if metric.depth == "must" and depth is None:
        raise OptionError(f"{metric.name} needs a depth, as in {metric.name}@10")
    if options and not metric.options:
        raise OptionError(f"{metric.name} takes no options: {name!r}")
    return Request(metric, options, value)


def listed(names: Iterable[str] | str) -> list[str]:
    """Return metrics' names as a list, or say that there are none."""
    if not isinstance(names, Iterable):
        raise OptionError(f"metrics must be names, not {type(names).__name__}")
    found = [names] if isinstance(names, str) else list(names)
    if not found:
        raise OptionError("metrics holds no name")
    return found


def parse_rate(name: object) -> float | None:
    """Return the rate of ``TPR@FPR=rate``; None for other names.

    Raises
    ------
    OptionError
        For a rate that is not from 0 to 1.
    """
    if not isinstance(name, str) or not name.replace(" ", "").upper().startswith("TPR@FPR="):
        return None
    try:
        rate = float(name.partition("=")[2])
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise OptionError(f"{name!r}: the rate must be from 0 to 1, as in TPR@FPR=0.001")
    return rate


def parse_all(names: Iterable[str] | str, convention: Convention) -> list[Request]:
    """Read metrics' names, once each, and refuse what the convention has no value for."""
    requests: dict[str, Request] = {}
    for name in listed(names):
        request = parse(name)
        if convention.ties == "expected" and not request.metric.expected:
            able = ", ".join(m.name for m in METRICS if m.expected)
            raise OptionError(f"{request.key} has no closed form for ties='expected'; these have: {able}")
        requests.setdefault(request.key, request)
    return list(requests.values())
