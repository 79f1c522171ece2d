"""Metrics per query, each as a function of rankings and a request."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError, OptionError, shorten
from detmap.hits import INTERPOLATIONS, Hits, blocks
from detmap.kernels import curves, readonly, ties
from detmap.retrieval.conventions import Convention, Normalizer
from detmap.retrieval.ranked import BY_PLACE, LEAST, Ranked, Request, Values
from detmap.system import parallel


def ratio(part: Any, whole: Any) -> Values:
    """Return part / whole, 0 if whole is 0."""
    whole = np.asarray(whole, dtype=np.float64)
    out = np.zeros(np.broadcast_shapes(np.shape(part), whole.shape))
    np.divide(part, whole, out=out, where=whole != 0)
    return out


def average_precision(ranked: Ranked, request: Request) -> Values:
    """AP by the interpolation and normalizer of the convention, which the request's options override."""
    convention = ranked.convention
    rule, divisor = str(convention.interpolation), str(convention.normalizer)
    for option in request.options:
        if option in INTERPOLATIONS:
            rule = option
        elif option in get_args(Normalizer):
            divisor = option
        else:
            names = ", ".join((*INTERPOLATIONS, *get_args(Normalizer)))
            raise OptionError(f"AP takes the options {names}, not {shorten(option)}")
    hits = ranked.hits
    depth: NDArray[np.int64] | None = None
    if request.depth is not None:
        depth = np.full(len(hits), request.cut, np.int64)
    elif convention.depth == "positives":
        depth = hits.positives
    return _precision_at_hits(ranked, rule, divisor, depth)


def precision_to_r(ranked: Ranked, request: Request) -> Values:
    """AP@R: AP over the hits up to rank R, divided by R, the number of relevant items."""
    return _precision_at_hits(ranked, "step", "positives", ranked.hits.positives)


def _precision_at_hits(ranked: Ranked, rule: str, divisor: str, cut: NDArray[np.int64] | None) -> Values:
    """Return AP by an interpolation rule and a divisor, up to rank `cut` of each query (None: to the end)."""
    convention, hits = ranked.convention, ranked.hits
    depth = np.full(len(hits), np.iinfo(np.int64).max, np.int64) if cut is None else cut
    positives = np.minimum(hits.positives, depth) if divisor == "smaller" else hits.positives
    known = ("step", "trapezoid") if ranked.expected else tuple(r for r in INTERPOLATIONS if r != "trapezoid-hits")
    if convention.ties in ("expected", "collapsed") and rule not in known:
        raise OptionError(f"ties={convention.ties!r} is defined for AP by {', '.join(known)}, not by {rule!r}")
    # Rules other than step and trapezoid read the maximum precision at a hit or any later hit. Within tied hits, the
    # maximum is the precision at the last hit, so ties need no special case.
    if convention.ties in ("expected", "collapsed") and rule in ("step", "trapezoid") and hits.tied.size:
        out = np.empty(len(hits))
        trapezoid = rule == "trapezoid"
        if convention.ties == "expected":
            groups = _ties(hits, positives, depth)
            parallel.run(
                lambda b, e: ties.expected_average_precision(groups, trapezoid, divisor == "hits", b, e, out),
                blocks(hits, None),
            )
            return out
        hits = hits.cut(depth, hits.within(depth) if divisor == "hits" else positives)
        ties.collapsed_average_precision(
            hits.starts, hits.ahead, hits.tied, hits.positives, trapezoid, 0, len(hits), out
        )
        return out
    if cut is not None:
        hits = hits.cut(depth, hits.within(depth) if divisor == "hits" else positives)
    elif divisor == "hits":
        hits = replace(hits, positives=hits.counts)
    return hits.average_precision(rule)  # type: ignore[arg-type]  # `rule` is one of INTERPOLATIONS


def _ties(hits: Hits, positives: NDArray[np.int64], depth: NDArray[np.int64]) -> ties.Ties:
    """Return the tied groups of rankings for the kernels, up to rank ``depth[q]`` of query *q*."""
    return ties.Ties(hits.starts, hits.ahead, hits.tied, readonly(positives, np.int64), readonly(depth, np.int64))


def band(hits: Hits, convention: Convention, depth: int | None) -> NDArray[np.float64]:
    """Return the minimum and maximum AP at `depth` over all orders of the tied items, shape (q, 2)."""
    end = np.full(len(hits), np.iinfo(np.int64).max if depth is None else depth, np.int64)
    if depth is None and convention.depth == "positives":
        end = hits.positives
    found = np.minimum(hits.positives, end) if convention.normalizer == "smaller" else hits.positives
    out = np.empty((len(hits), 2))
    trapezoid, by_hits = convention.interpolation == "trapezoid", convention.normalizer == "hits"
    ties.tie_band(_ties(hits, found, end), trapezoid, by_hits, 0, len(hits), out)
    return out


def within(ranked: Ranked, depth: Any) -> Values:
    """Return the number of hits up to `depth`, which is a rank or one rank per query; under ties="expected", return the
    expected number over all orders of tied items.
    """
    hits = ranked.hits
    if not ranked.expected:
        return hits.within(depth).astype(np.float64)
    out = np.empty(len(hits))
    each = np.broadcast_to(np.asarray(depth, dtype=np.int64), (len(hits),))
    ties.expected_within(hits.starts, hits.ahead, hits.tied, readonly(each, np.int64), out)
    return out


def _radius(ranked: Ranked, request: Request, whole: str) -> Values | None:
    """Return precision or recall within a Hamming radius; None if ``radius=r`` is not given."""
    radius = request.number("radius", math.nan)
    if math.isnan(radius):
        return None
    if radius < 0:
        raise OptionError(f"{request.key}: a radius is not negative")
    if ranked.radius is None or request.depth is not None:
        raise OptionError(f"{request.key}: a radius is for hash codes, without a depth")
    counts = ranked.radius[:, min(int(radius), ranked.radius.shape[1] - 1)]
    return ratio(counts[:, 1], counts[:, 0] if whole == "items" else ranked.raw.positives)


def precision(ranked: Ranked, request: Request) -> Values:
    """P: the share of hits among the first k items, or among the items within a Hamming radius."""
    near = _radius(ranked, request, "items")
    if near is not None:
        return near
    return ratio(within(ranked, request.cut), request.depth if request.depth else ranked.hits.items)


def recall(ranked: Ranked, request: Request) -> Values:
    """R: the share of the relevant items that are among the first k items, or within a Hamming radius."""
    near = _radius(ranked, request, "positives")
    if near is not None:
        return near
    return ratio(within(ranked, request.cut), ranked.hits.positives)


def capped_recall(ranked: Ranked, request: Request) -> Values:
    """R_cap: hits up to k / min(number of relevant items, k)."""
    return ratio(within(ranked, request.cut), np.minimum(ranked.hits.positives, request.cut))


def precision_to_last(ranked: Ranked, request: Request) -> Values:
    """mP: precision at k or at the rank of the last hit, whichever is smaller."""
    depth = np.minimum(ranked.hits.last(), request.cut)
    return ratio(ranked.hits.within(depth), depth)


def f1(ranked: Ranked, request: Request) -> Values:
    """F1: the harmonic mean of precision and recall."""
    p, r = precision(ranked, request), recall(ranked, request)
    return ratio(2 * p * r, p + r)


def r_precision(ranked: Ranked, request: Request) -> Values:
    """R-prec: precision at the number of relevant items."""
    return ratio(within(ranked, ranked.hits.positives), ranked.hits.positives)


def _first(ranked: Ranked, request: Request, reciprocal: bool) -> Values:
    if ranked.expected:
        out = np.empty(len(ranked.hits))
        hits = ranked.hits
        ties.expected_first(hits.starts, hits.ahead, hits.tied, request.cut, reciprocal, out)
        return out
    first = ranked.hits.first()
    found = (first > 0) & (first <= request.cut)
    return ratio(found, first) if reciprocal else found.astype(np.float64)


def reciprocal_rank(ranked: Ranked, request: Request) -> Values:
    """RR: 1 / rank of the first hit; 0 if there is no hit up to k."""
    return _first(ranked, request, True)


def success(ranked: Ranked, request: Request) -> Values:
    """success: 1 if there is a hit up to k, else 0."""
    return _first(ranked, request, False)


def cmc(ranked: Ranked, request: Request) -> Values:
    """CMC: the probability of a match up to rank k, as the convention counts matches."""
    if ranked.convention.cmc in (None, "market"):
        return _first(ranked, request, False)
    if ranked.convention.cmc == "allshots":
        if ranked.expected:
            raise OptionError("CMC allshots has no closed form for ties='expected'")
        hits = ranked.hits
        place = hits.ranks - (np.arange(hits.ranks.size) - np.repeat(hits.starts[:-1], hits.counts))
        inside = np.concatenate(([0], np.cumsum(place <= request.cut)))
        return ratio(inside[hits.starts[1:]] - inside[hits.starts[:-1]], hits.counts)
    if ranked.shots is None:
        raise OptionError(f"CMC {ranked.convention.cmc} needs distances to galleries with identities")
    if ranked.convention.ties not in BY_PLACE:
        allowed = " or ".join(map(repr, BY_PLACE))
        raise OptionError(f"CMC {ranked.convention.cmc} is defined for ties={allowed}, not {ranked.convention.ties!r}")
    return np.asarray(ranked.shots[:, min(request.cut, ranked.shots.shape[1]) - 1])


def inverse_negative_penalty(ranked: Ranked, request: Request) -> Values:
    """INP: number of relevant items / rank of the last relevant item; 0 if not all relevant items are ranked."""
    hits = ranked.hits
    complete = (hits.counts == hits.positives) & (hits.positives > 0)
    if ranked.expected:
        inverse = np.empty(len(hits))
        ties.expected_inverse_last(hits.starts, hits.ahead, hits.tied, inverse)
        return np.where(complete, hits.positives * inverse, 0.0)
    return ratio(np.where(complete, hits.positives, 0), hits.last())


def best_ranking(ranked: Ranked) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the bounds of each query's ideal ranking, and the ranks and grades of its items. An ideal ranking contains
    every item with a gain, ranked by the system or not.
    """
    if ranked.ideal_starts is not None and ranked.ideal is not None:
        starts, grades = ranked.ideal_starts, ranked.graded(ranked.ideal)
    else:
        starts = np.concatenate(([0], np.cumsum(ranked.raw.positives)))
        grades = np.ones(int(starts[-1]))
    ranks = np.arange(1, grades.size + 1) - np.repeat(starts[:-1], np.diff(starts))
    return readonly(starts, np.int64), readonly(ranks, np.int64), readonly(grades, np.float64)


#: Maximum grade whose exponential gains can be summed without overflow.
_HIGHEST_POWER = 1000


def _gains(grades: NDArray[Any], request: Request) -> NDArray[Any]:
    """Return the gains of grades: the grades themselves, 2 ** grade - 1, or the gains named in the request."""
    # Grades below the request's level (``rel=``) have no gain.
    if request.level is not None:
        grades = np.where(grades >= request.level, grades, 0.0)
    if "exp" in request.options:
        request.flag("exp")  # raises for further options
        if grades.size and grades.max() > _HIGHEST_POWER:
            raise InputError(
                f"exponential gains are for grades up to {_HIGHEST_POWER}", source="grades", value=grades.max()
            )
        return readonly(np.exp2(grades) - 1, np.float64)
    gains = np.array(grades, np.float64)
    for option in request.options:
        grade, gain = _named_gain(option, request)
        gains[grades == grade] = gain
    return readonly(gains, np.float64)


def _named_gain(option: str, request: Request) -> tuple[float, float]:
    """Return a grade and its gain from text such as ``2=9``."""
    grade, _, gain = option.partition("=")
    try:
        found = float(grade), float(gain)
    except ValueError:
        found = 0.0, 0.0
    if not (found[0] > 0 and 0 <= found[1] < math.inf):
        wanted = "the option exp, or gains of grades above 0, as in (1=3,2=9)"
        raise OptionError(f"{request.metric.name} takes {wanted}, not {shorten(option)}")
    return found


def dcg(ranked: Ranked, request: Request) -> Values:
    """DCG: discounted cumulative gain; the gain is the grade, 2 ** grade - 1, or a number named in the request."""
    hits = ranked.gained
    out = np.empty(len(hits))
    gains = _gains(ranked.gains, request)
    ahead, tied = (hits.ahead, hits.tied) if ranked.expected else (hits.ranks, hits.ranks)
    curves.dcg(hits.starts, hits.ranks, gains, ahead, tied, request.cut, ranked.expected, out)
    return out


def ndcg(ranked: Ranked, request: Request) -> Values:
    """nDCG: DCG / DCG of the ideal ranking."""
    starts, ranks, grades = best_ranking(ranked)
    best, gains = np.empty(len(ranked.raw)), _gains(grades, request)
    if request.options and not request.options[0].startswith("exp"):  # sort by gain, not by grade
        gains = readonly(gains[np.lexsort((-gains, np.repeat(np.arange(best.size), np.diff(starts))))], np.float64)
    curves.dcg(starts, ranks, gains, ranks, ranks, request.cut, False, best)
    return ratio(dcg(ranked, request), best)


def expected_reciprocal_rank(ranked: Ranked, request: Request) -> Values:
    """ERR: expected reciprocal rank of the item at which a reader stops."""
    hits = ranked.gained
    least = max(ranked.highest, 1)
    highest = request.number("max", float(least))
    if not least <= highest <= _HIGHEST_POWER:
        raise OptionError(f"ERR: max must be from {least:g}, the highest grade, to {_HIGHEST_POWER}, not {highest:g}")
    stops = readonly((np.exp2(ranked.gains) - 1) / np.exp2(highest), np.float64)
    out = np.empty(len(hits))
    curves.err(hits.starts, hits.ranks, stops, request.cut, out)
    return out


def rank_biased(ranked: Ranked, request: Request) -> Values:
    """RBP: rank-biased precision. With ``rel=g``, items of grade g or higher have gain 1 (in ranx, their grade), and
    all other items have gain 0.
    """
    p = persistence(request)
    hits, grades = ranked.gained, ranked.gains
    if request.level is not None and ranked.convention.names == "ranx":
        grades = np.where(grades >= request.level, grades, 0.0)
    elif request.level is not None:
        hits, grades = ranked.hits, np.ones(ranked.hits.ranks.size)
    relative = ranked.convention.relative_rbp and request.level is None
    if relative and ranked.ideal is not None and ranked.ideal_starts is not None:
        highest = np.ones(len(hits))
        some = np.diff(ranked.ideal_starts) > 0
        highest[some] = ranked.graded(ranked.ideal[ranked.ideal_starts[:-1][some]])
        grades = grades / np.repeat(highest, hits.counts)
    out = np.empty(len(hits))
    curves.rbp(hits.starts, hits.ranks, readonly(grades, np.float64), p, request.cut, out)
    return out


def persistence(request: Request) -> float:
    """Return the option ``p``, the probability that a reader continues to the next item."""
    p = request.number("p", 0.9)
    if not 0 < p < 1:
        raise OptionError(f"{request.metric.name}: p must be above 0 and below 1, not {p:g}")
    return p


def bpref(ranked: Ranked, request: Request) -> Values:
    """bpref: binary preference, over judged documents only."""
    pool = ranked.judged("bpref")
    out = np.empty(len(pool))
    negatives = readonly(ranked.negatives, np.int64)
    curves.bpref(pool.starts, pool.grades, ranked.level, ranked.raw.positives, negatives, out)
    return out


def inferred(ranked: Ranked, request: Request) -> Values:
    """infAP: inferred average precision."""
    pool = ranked.judged("infAP")
    out = np.empty(len(pool))
    curves.inf_ap(pool.starts, pool.ranks, pool.grades, ranked.level, ranked.raw.positives, out)
    return out


def judged(ranked: Ranked, request: Request) -> Values:
    """judged: the share of judged documents among the first k documents."""
    pool = ranked.judged("judged")
    return ratio(pool.within(request.cut), np.minimum(pool.items, request.cut))


def fallout(ranked: Ranked, request: Request) -> Values:
    """fallout: the share of the non-relevant items that are among the first k items."""
    size = request.number("items", math.nan)
    hits = ranked.hits
    whole = hits.items - hits.counts if math.isnan(size) else size - hits.positives
    return ratio(np.minimum(hits.items, request.cut) - within(ranked, request.cut), np.maximum(whole, 0))


def hole(ranked: Ranked, request: Request) -> Values:
    """hole: the number of documents among the first k that are judged for no query, divided by k."""
    if ranked.anywhere is None:
        raise OptionError("hole needs the judgements of all queries, which evaluate_run has")
    seen = np.minimum(ranked.anywhere.items, request.cut)
    return ratio(seen - ranked.anywhere.within(request.cut), request.depth)


def geometric(ranked: Ranked, request: Request) -> Values:
    """GMAP: the logarithm of max(AP, 0.00001)."""
    return logarithms(average_precision(ranked, request))


def logarithms(values: Values) -> Values:
    """Return the natural logarithms of max(value, `LEAST`), with NaN as 0. The C library computes them, because numpy's
    logarithms may differ in the last bit between processors.
    """
    return np.array([math.log(max(value, LEAST)) for value in np.nan_to_num(values).tolist()])


def _at_recalls(ranked: Ranked, recalls: Any) -> Values:
    product = np.multiply.outer(ranked.hits.positives, np.asarray(recalls, dtype=np.float64))
    if ranked.convention.recall_cutoffs == "ceiling":
        wanted = np.trunc(product + 0.9)
    else:
        wanted = np.floor(product) + (product - np.floor(product) >= 0.5)
    out = np.empty(wanted.shape)
    curves.interpolate_counts(ranked.hits.starts, ranked.hits.ranks, readonly(wanted, np.int64), out)
    return out


def interpolated(ranked: Ranked, request: Request) -> Values:
    """iprec: the maximum precision at recall r or above."""
    return _at_recalls(ranked, [request.depth])[:, 0]


def eleven_points(ranked: Ranked, request: Request) -> Values:
    """11pt: the mean of iprec at recalls 0, 0.1 .. 1, or at the recalls in the options."""
    try:
        recalls = sorted(float(option) for option in request.options)
    except ValueError:
        recalls = [-1.0]
    if not all(0 <= recall <= 1 for recall in recalls):
        raise OptionError(f"11pt takes recalls from 0 to 1, as in 11pt(0.25,0.5), not {shorten(request.key)}")
    columns = _at_recalls(ranked, recalls or [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    total = np.zeros(len(ranked.raw))
    for column in columns.T[::-1]:  # summed from recall 1 downwards, so that the last bit equals trec_eval's
        total += column
    return np.asarray(total / columns.shape[1])
