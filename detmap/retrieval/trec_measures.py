"""Measures specific to trec_eval: variants of nDCG, measures of sets, counts and residuals.

Values equal trec_eval's to the last bit. If trec_eval does not set a value, for example without relevant documents, the
value is 0 in trec_eval and detmap. The functions have the same arguments as the functions of
`detmap.retrieval.measures`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from detmap.errors import OptionError
from detmap.kernels import gains, readonly
from detmap.retrieval.measures import best_ranking, bpref, logarithms, persistence, ratio, within
from detmap.retrieval.ranked import Ranked, Request, Values


def hits_within(ranked: Ranked, request: Request) -> Values:
    """hits: the number of hits up to k."""
    return within(ranked, request.cut)


def normalized_gain(ranked: Ranked, request: Request) -> Values:
    """G: sum of gain / log2(2 + cumulative gain of the ideal ranking - cumulative gain), normalised by the total gain."""
    starts, _, ideal = best_ranking(ranked)
    hits, out = ranked.gained, np.empty(len(ranked.raw))
    gains.gain_over_cost(hits.starts, hits.ranks, readonly(ranked.gains, np.float64), starts, ideal, out)
    return out


def binary_gain(ranked: Ranked, request: Request) -> Values:
    """binG: 1 / log2(2 + wrong items before a hit), averaged over the relevant items."""
    hits, out = ranked.hits, np.empty(len(ranked.raw))
    gains.wrong_before(hits.starts, hits.ranks, hits.positives, out)
    return out


def ndcg_at_gains(ranked: Ranked, request: Request) -> Values:
    """ndcg_rel: the mean of nDCG at the ranks of the items with a gain."""
    starts, _, ideal = best_ranking(ranked)
    hits, out = ranked.gained, np.empty(len(ranked.raw))
    gains.ndcg_at_gains(hits.starts, hits.ranks, readonly(ranked.gains, np.float64), starts, ideal, out)
    return out


def ndcg_at_levels(ranked: Ranked, request: Request) -> Values:
    """Rndcg: the mean of nDCG at the last rank of each grade in the ideal ranking."""
    starts, _, ideal = best_ranking(ranked)
    hits, out = ranked.gained, np.empty(len(ranked.raw))
    given = readonly(ranked.gains, np.float64)
    gains.ndcg_at_levels(hits.starts, hits.ranks, given, starts, ideal, hits.items, out)
    return np.where(ranked.raw.positives > 0, out, 0.0)


def precision_to_multiple(ranked: Ranked, request: Request) -> Values:
    """Rprec_mult: precision at a multiple of the number of relevant items, rounded up to a rank."""
    depth = np.trunc((request.depth or 0.0) * ranked.raw.positives + 0.9).astype(np.int64)
    return ratio(ranked.hits.within(depth), depth)


def set_f(ranked: Ranked, request: Request) -> Values:
    """set_F: the weighted harmonic mean of precision and recall of all ranked items."""
    weight = request.number("beta", 1.0)
    p, r = ratio(ranked.raw.counts, ranked.raw.items), ratio(ranked.raw.counts, ranked.raw.positives)
    return ratio((weight + 1.0) * p * r, weight * p + r)


def set_map(ranked: Ranked, request: Request) -> Values:
    """set_map: precision times recall of all ranked items."""
    found = ranked.raw.counts.astype(np.float64)
    return ratio(found * found, ranked.raw.items.astype(np.float64) * ranked.raw.positives)


def set_relative_precision(ranked: Ranked, request: Request) -> Values:
    """set_relative_P: number of hits / min(ranked items, relevant items)."""
    return ratio(ranked.raw.counts, np.minimum(ranked.raw.items, ranked.raw.positives))


def utility(ranked: Ranked, request: Request) -> Values:
    """utility: the weighted sum of the numbers of hits, wrong items, unranked relevant items and other items."""
    hit, wrong, lost, left, size = request.numbers(hit=1.0, wrong=-1.0, lost=0.0, left=0.0, items=0.0)
    found, items, positives = ranked.raw.counts, ranked.raw.items, ranked.raw.positives
    worth = hit * found + wrong * (items - found) + lost * (positives - found)
    return np.asarray(worth + left * (size + found - items - positives) if left else worth)


def geometric_bpref(ranked: Ranked, request: Request) -> Values:
    """gm_bpref: the logarithm of max(bpref, 0.00001)."""
    return logarithms(bpref(ranked, request))


def wrong_and_judged(ranked: Ranked, request: Request) -> Values:
    """num_nonrel_judged_ret: the number of ranked documents that are judged not relevant."""
    pool = ranked.judged("num_nonrel_judged_ret")
    return (pool.hits(0).counts - pool.hits(max(ranked.level, 0)).counts).astype(np.float64)


def unjudged(ranked: Ranked, request: Request) -> Values:
    """unj: the number of documents among the first k without a judgement, divided by k."""
    judged = ranked.judged("unj").hits(0)
    seen = np.minimum(judged.items, request.cut)
    return ratio(seen - judged.within(request.cut), request.depth)


def residual(ranked: Ranked, request: Request) -> Values:
    """rbp_resid: the amount by which RBP would rise if all documents without a judgement were relevant."""
    p = persistence(request)
    judged = ranked.judged("rbp_resid").hits(0)
    out = np.empty(len(judged))
    gains.residual(judged.starts, judged.ranks, judged.items, p, out)
    return out


def retrieved(ranked: Ranked, request: Request) -> Values:
    """num_ret: the number of ranked items; with ``rel``, the number of ranked items with this grade or a higher
    grade.
    """
    return (ranked.raw.items if request.level is None else ranked.raw.counts).astype(np.float64)


def relevance_strings(ranked: Ranked, depth: int) -> list[str]:
    """Return trec_eval's relstring per query: a character for each of the first `depth` documents.

    The character is the grade of the document, ``>`` for grades above 9, ``.`` for an unjudged document in the pool, or
    ``-`` for a document outside of the pool.
    """
    pool = ranked.judged("relstring").cut(depth)
    if ranked.scale is not None:
        raise OptionError("relstring is for grades that are integers")
    letters = np.where(pool.grades > 9, ord(">"), np.where(pool.grades < 0, ord("."), pool.grades + ord("0")))
    sizes = np.concatenate(([0], np.cumsum(pool.items)))
    every = np.full(int(sizes[-1]), ord("-"), np.uint8)
    every[np.repeat(sizes[:-1], np.diff(pool.starts)) + pool.ranks - 1] = letters
    text = every.tobytes().decode()
    return [text[begin:end] for begin, end in pairwise(sizes.tolist())]
