"""Drawn judgements and runs: pytrec_eval beside the drop-in, keys, order, types and bits."""

from __future__ import annotations

import random
import struct

import pytest
from legs import examples

from detmap import pytrec_eval as ours

theirs = pytest.importorskip("pytrec_eval")

DOCUMENTS = [
    *("d1", "d10", "d2", "D3", "D", "e", "zz", "7", "07", " 7", "-1", "1.0", "", " ", "a b", "a\tb", "a\nb", "#c"),
    *("é", "e\u0301", "ß", "日本", "\U0001f600", "\ufffd", "\x7f", "\x01", "x" * 300, "x" * 1500, "A/B:C;D,E", "null"),
]
QUERIES = ["q1", "q10", "q2", "", "é", "7", "a b", "#1", "\U0001f600", "y" * 1100]
SCORES = [0.0, -0.0, 1.0, 1.0 + 1e-10, 2.5, 2.5000001, -3.0, 1e-300, 5e-324, 1e39, 3.5e38, 1e300, float("inf")]
SCORES += [-float("inf"), 0, 1, -3, 7, True, False, 2**24, 2**24 + 1, 2**53 + 1, 10**30]

FAMILIES = ["P", "recall", "ndcg_cut", "map_cut", "relative_P", "success"]
SHARES = ["iprec_at_recall", "Rprec_mult"]


def drawn_measures(rng):
    """Names of measures in all spellings that pytrec_eval has a value for."""
    kind = rng.random()
    if kind < 0.35:
        return theirs.supported_measures
    if kind < 0.5:
        return [rng.choice(["official", "all_trec", "set"])]
    names = rng.sample(sorted(theirs.supported_measures), rng.randint(0, 6))
    for _ in range(rng.randint(0, 4)):
        mark = rng.choice("._")
        cuts = rng.sample(range(1, 40), rng.randint(1, 4))
        names.append(
            rng.choice(FAMILIES) + mark + ",".join(map(str, cuts)) + rng.choice(["", "", "", ".5", "abc", ",x"])
        )
    for _ in range(rng.randint(0, 2)):
        shares = rng.sample(["0", "0.1", "0.05", "0.25", "0.33", "0.5", "0.501", "0.504", "0.9", "1", "1.0"][:10], 2)
        names.append(f"{rng.choice(SHARES)}{rng.choice('._')}{','.join(shares)}")
    others = ["set_F.0.5", "set_F_2", "11pt_avg.0.5,0.25", "11pt_avg.0", "utility.1,2,3,4", "utility_0.5,4,2,3"]
    names += rng.sample([*others, "relstring.3", "map.5", "recip_rank_10", "num_ret.7"], rng.randint(0, 3))
    if set(names) == {"runid"}:
        names.append("map")  # alone it is whatever lies in pytrec_eval's memory
    utilities = [name for name in names if name.startswith("utility")]
    for name in utilities[1:]:
        names.remove(name)  # their parameters would be merged, and there must be four
    return rng.choice([list, set, tuple])(names)


def has_repeated_cutoffs(measures):
    """Whether two spellings of a cutoff are one number, where pytrec_eval ends the process."""
    found: dict[str, set[str]] = {}
    for measure, numbers in ours.evaluator._asked(measures):
        found[measure.name] = set(numbers)
    return any(
        len({int(float(n)) if name in FAMILIES else float(n) for n in numbers}) < len(numbers)
        for name, numbers in found.items()
        if name in FAMILIES + SHARES
    )


def drawn_pair(rng, level):
    """Judgements and a run: ties, documents of one side, negative grades, queries of one side, empty ones."""
    documents = rng.sample(DOCUMENTS, rng.randint(2, len(DOCUMENTS)))
    few = rng.random() < 0.5
    scores = rng.sample(SCORES, 3) if few else None
    grades = rng.choice(
        [[0, 1], [0, 1, 2], [-1, 0, 1], [-3, -2, -1, 0, 1, 2, 3, 4], [0], [1], [True, False, 2], [0, 12]]
    )
    qrels, run = {}, {}
    for query in rng.sample(QUERIES, rng.randint(1, 5)):
        judged = {d: rng.choice(grades) for d in rng.sample(documents, rng.randint(0, len(documents)))}
        # trec_eval reads what it did not write where nothing is judged, or the level is above all grades but by one.
        if judged and max(judged.values()) < max(level - 1, 0):
            judged[next(iter(judged))] = level
        if rng.random() < 0.9:
            qrels[query] = judged
        ranked = rng.sample(documents, rng.randint(0, len(documents)))
        if rng.random() < 0.9:
            run[query] = {d: rng.choice(scores) if scores else rng.choice([rng.random(), *SCORES]) for d in ranked}
    return qrels, run


def in_defined_order(qrels, run):
    """The run with a ranking first: trec_eval gives an empty one in front of all others whatever lies in its memory."""
    full = [query for query, ranked in run.items() if ranked and qrels.get(query)]
    if not full:
        return {query: ranked for query, ranked in run.items() if ranked}
    return {full[0]: run[full[0]], **run}


def bits(value):
    assert type(value) is float
    return "nan" if value != value else struct.pack("<d", value)


def assert_alike(found, wanted):
    assert type(found) is type(wanted) is dict
    assert list(found) == list(wanted)
    for query, values in wanted.items():
        assert type(found[query]) is type(values) is dict
        assert list(found[query]) == list(values)
        assert [*map(bits, found[query].values())] == [*map(bits, values.values())], query


@pytest.mark.compiled
@pytest.mark.parametrize("part", range(10))
def test_drawn_judgements_and_runs(part):
    for number in range(examples(1200)):  # 24,000 pairs in full
        rng = random.Random(1_000_000 * part + number)
        level, judged_only = rng.choice([1, 1, 1, 2, 3]), rng.random() < 0.25
        measures = drawn_measures(rng)
        while has_repeated_cutoffs(measures):
            measures = drawn_measures(rng)
        qrels, run = drawn_pair(rng, level)
        run = in_defined_order(qrels, run)
        arguments = (qrels, measures, level, judged_only)
        wanted = theirs.RelevanceEvaluator(*arguments).evaluate(run)
        evaluator = ours.RelevanceEvaluator(*arguments)
        assert_alike(evaluator.evaluate(run), wanted)
        if number % 10 == 0:
            assert_alike(evaluator.evaluate(run), wanted)
        for name in next(iter(wanted.values()), {}):
            column = [values[name] for values in wanted.values()]
            assert bits(ours.compute_aggregated_measure(name, column)) == bits(
                theirs.compute_aggregated_measure(name, column)
            )
