"""Rows of the benchmark for rankings: what detmap is asked for, and what its peer is asked for."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, object]
Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes
    ----------
    title, target : str
        What is measured, and the ratio of the peer's time to detmap's that is aimed at.
    ours, peer : callable
        detmap's call, and the peer's, which does 1 / `share` of the work.
    same : bool
        Whether both must return the same.
    """

    title: str
    target: str
    ours: Callable[[], object]
    peer: Callable[[], object]
    share: int = 1
    same: bool = False


def interleaved(case: Case, rounds: int = 3) -> Row:
    """Measure both calls in turn and return the medians; the first round, which compiles and warms, does not count."""
    times: list[list[float]] = [[], []]
    for _ in range(rounds + 1):
        answers = []
        for call, own in zip((case.ours, case.peer), times, strict=True):
            begin = time.perf_counter()
            answers.append(call())
            own.append(time.perf_counter() - begin)
        if case.same and answers[0] != answers[1]:
            raise SystemExit(f"the peer disagrees: {case.title}")
    ours, peer = (float(np.median(own[1:])) for own in times)
    peer *= case.share
    return {
        "benchmark": case.title,
        "ours (s)": ours,
        "peer (s)": peer,
        "ratio": peer / ours,
        "target": case.target,
    }


def market() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Distances, identities and cameras of the size of Market-1501."""
    rng = np.random.default_rng(0)
    query_ids, gallery_ids = rng.integers(0, 750, 3368), rng.integers(0, 1100, 15913)
    cameras = rng.integers(0, 6, 3368), rng.integers(0, 6, 15913)
    return rng.random((3368, 15913), dtype=np.float32), query_ids, gallery_ids, *cameras


def torchreid_kernel():
    """A compiled twin of torchreid's eval_market1501_cy: the loops of its Cython, after the full argsort."""
    import numba

    @numba.njit
    def evaluate(indices, matches, q_pids, g_pids, q_camids, g_camids, max_rank):
        num_q, num_g = indices.shape
        all_cmc, all_ap = np.zeros((num_q, max_rank), np.float32), np.zeros(num_q, np.float32)
        raw, cmc, running = np.zeros(num_g, np.float32), np.zeros(num_g, np.float32), np.zeros(num_g, np.float32)
        order, valid = np.zeros(num_g, np.int64), 0.0
        for q in range(num_q):
            for g in range(num_g):
                order[g] = indices[q, g]
            real, meets = 0, False
            for g in range(num_g):
                if g_pids[order[g]] != q_pids[q] or g_camids[order[g]] != q_camids[q]:
                    raw[real] = matches[q, g]
                    real += 1
                    meets |= matches[q, g] > 0
            if not meets:
                continue
            cmc[0] = raw[0]
            for g in range(1, real):
                cmc[g] = cmc[g - 1] + raw[g]
            for g in range(real):
                cmc[g] = min(cmc[g], np.float32(1))
            all_cmc[q] = cmc[:max_rank]
            valid += 1
            running[0] = raw[0]
            total, relevant = 0.0, 0.0
            for g in range(real):
                if g:
                    running[g] = running[g - 1] + raw[g]
                total += (running[g] / (g + 1.0)) * raw[g]
                relevant += raw[g]
            all_ap[q] = total / relevant
        return all_cmc.sum(axis=0) / valid, all_ap.sum() / valid

    def call(distances, q_pids, g_pids, q_camids, g_camids):
        indices = np.argsort(distances, axis=1)
        matches = (g_pids[indices] == q_pids[:, None]).astype(np.int64)
        return evaluate(indices, matches, q_pids, g_pids, q_camids, g_camids, 50)

    return call


def distances() -> list[Case]:
    from detmap.retrieval import evaluate_distances

    data, peer = market(), torchreid_kernel()
    names = ["mAP", "CMC@1", "CMC@5", "CMC@10"]
    return [
        Case(
            "distances 3,368 x 15,913 / argsort and torchreid's loops",
            "at least 10",
            lambda: evaluate_distances(*data, metrics=names),
            lambda: peer(*data),
        )
    ]


def features() -> list[Case]:
    from detmap.retrieval import evaluate_features

    _, *labels = market()
    rng = np.random.default_rng(1)
    query = rng.standard_normal((3368, 2048), dtype=np.float32)
    gallery = rng.standard_normal((15913, 2048), dtype=np.float32)
    return [
        Case(
            "features 2,048 wide / the bare product",
            "at least 0.8",
            lambda: evaluate_features(query, gallery, *labels, metrics=["mAP", "CMC@1"]),
            lambda: query @ gallery.T,
        )
    ]


def million() -> list[Case]:
    """960 queries against a million items: 2 GB of features, more than a minute, so only where it is named."""
    from detmap.retrieval import evaluate_features

    rng = np.random.default_rng(7)
    query = rng.standard_normal((960, 512), dtype=np.float32)
    gallery = rng.standard_normal((1_000_000, 512), dtype=np.float32)
    labels = rng.integers(0, 1000, 960), rng.integers(0, 1000, 1_000_000)

    def product() -> None:
        for low in range(0, 1_000_000, 50_000):
            query @ gallery[low : low + 50_000].T

    return [
        Case(
            "features 960 x 1,000,000, 512 wide, 1,000 relevant items each / the bare product",
            "",
            lambda: evaluate_features(query, gallery, *labels, metrics=["mAP", "CMC@1"]),
            product,
        )
    ]


def runs() -> list[Case]:
    import pytrec_eval

    from detmap.retrieval import evaluate_run

    rng = np.random.default_rng(2)
    count, depth = 7000, 1000
    queries = np.repeat(np.arange(count), depth)
    documents = np.concatenate([rng.choice(8_800_000, depth, replace=False) for _ in range(count)])
    scores = -np.sort(-rng.random((count, depth)), axis=1).ravel()
    picked = [rng.choice(documents[q * depth : (q + 1) * depth], 10, replace=False) for q in range(count)]
    judged = np.concatenate([np.append(part, 9_000_000 + q) for q, part in enumerate(picked)])
    qrels = (np.repeat(np.arange(count), 11), judged, rng.integers(0, 3, judged.size))
    as_dicts: dict[str, dict[str, float]] = {}
    truth: dict[str, dict[str, int]] = {}
    for q in range(count):
        part = slice(q * depth, (q + 1) * depth)
        as_dicts[str(q)] = dict(zip(map(str, documents[part].tolist()), scores[part].tolist(), strict=True))
        part = slice(q * 11, (q + 1) * 11)
        truth[str(q)] = dict(zip(map(str, judged[part].tolist()), qrels[2][part].tolist(), strict=True))
    names = ["map", "ndcg_cut_10", "recip_rank", "recall_100"]
    evaluator = pytrec_eval.RelevanceEvaluator(truth, {"map", "ndcg_cut.10", "recip_rank", "recall.100"})

    def peer() -> object:
        return evaluator.evaluate(as_dicts)

    return [
        Case(
            "run of 7 million lines, arrays / pytrec_eval from dicts",
            "at least 10",
            lambda: evaluate_run(qrels, (queries, documents, scores), names),
            peer,
        ),
        Case(
            "run of 7 million lines, dicts / pytrec_eval from dicts",
            "",
            lambda: evaluate_run(truth, as_dicts, names),
            peer,
        ),
    ]


def drawn(scores: Callable[[np.random.Generator], np.ndarray]) -> tuple[Qrels, Run]:
    """Judgements and a run of 1,500 queries with 1,000 documents each, as dicts."""
    rng = np.random.default_rng(6)
    run, qrels = {}, {}
    for q in range(1500):
        documents = [f"doc{d}" for d in rng.choice(8_800_000, 1000, replace=False).tolist()]
        run[f"q{q}"] = dict(zip(documents, scores(rng).tolist(), strict=True))
        qrels[f"q{q}"] = {f"doc{9_000_000 + q}": 1, **dict.fromkeys(rng.choice(documents, 10).tolist(), 1)}
    return qrels, run


#: Scores of a query: in any order, in descending order, rounded, so that about 17 documents have one, and both.
SCORES = {
    "": lambda rng: rng.normal(size=1000),
    ", sorted": lambda rng: -np.sort(-rng.normal(size=1000)),
    ", tied": lambda rng: np.round(rng.normal(size=1000), 1),
    ", sorted and tied": lambda rng: -np.sort(-np.round(rng.normal(size=1000), 1)),
}


def evaluators() -> list[Case]:
    import pytrec_eval as theirs

    from detmap import pytrec_eval as ours

    cuts = "1,3,5,10,20,100,1000"
    measures = {f"{name}.{cuts}" for name in ("map_cut", "ndcg_cut", "recall", "P")}

    def evaluated(package: Any, qrels: Qrels, run: Run) -> object:
        return package.RelevanceEvaluator(qrels, measures).evaluate(run)

    cases = []
    for kind, scores in SCORES.items():
        given = drawn(scores)
        title = f"RelevanceEvaluator, 1,500 x 1,000 documents, 28 measures{kind} / pytrec_eval"
        calls = partial(evaluated, ours, *given), partial(evaluated, theirs, *given)
        cases.append(Case(title, "at least 4", *calls, same=True))
    return cases


def of_ranx() -> list[Case]:
    """Cases beside ranx, where it is installed."""
    try:
        import ranx as theirs
    except ImportError:
        return []
    from detmap import ranx as ours

    qrels, run = drawn(SCORES[""])
    names = ["map", "ndcg@10", "mrr"]

    def built(package: Any) -> object:
        return package.evaluate(package.Qrels(qrels), package.Run(run), names)

    held = {package: (package.Qrels(qrels), package.Run(run)) for package in (ours, theirs)}
    return [
        Case(
            "ranx: evaluate of a Qrels and a Run again, 1,500 x 1,000 documents / ranx",
            "at least 5",
            lambda: ours.evaluate(*held[ours], names),
            lambda: theirs.evaluate(*held[theirs], names),
        ),
        Case(
            "ranx: Qrels, Run and evaluate, 1,500 x 1,000 documents / ranx",
            "at least 5",
            lambda: built(ours),
            lambda: built(theirs),
        ),
        Case(
            "ranx: evaluate of dicts, 1,500 x 1,000 documents / ranx",
            "at least 5",
            lambda: ours.evaluate(qrels, run, names),
            lambda: theirs.evaluate(qrels, run, names),
        ),
    ]


def written(path: Path, *fields: bytes | tuple[np.ndarray, int]) -> None:
    """Write lines of fixed texts and of integers with so many digits."""
    count = max(len(field[0]) for field in fields if isinstance(field, tuple))
    parts = []
    for part in fields:
        if isinstance(part, bytes):
            parts.append(np.tile(np.frombuffer(part, np.uint8), (count, 1)))
        else:
            powers = 10 ** np.arange(part[1] - 1, -1, -1)
            parts.append((part[0][:, None] // powers % 10 + ord("0")).astype(np.uint8))
    np.hstack(parts).tofile(path)


def files() -> list[Case]:
    import pytrec_eval

    from detmap.retrieval import evaluate_run

    rng = np.random.default_rng(5)
    count, depth = 7000, 1000
    queries = 100_000 + np.arange(count)
    documents = rng.permuted(1_000_000 + 8000 * np.arange(depth) + rng.integers(0, 8000, (count, depth)), axis=1)
    scores = -np.sort(-rng.integers(10_000_000, 40_000_000, (count, depth)), axis=1).ravel()
    judged = np.column_stack([documents[:, ::100], 9_000_000 + np.arange(count)])
    names = ["map", "ndcg_cut_10", "P_10", "recip_rank", "recall_100"]

    folder = tempfile.TemporaryDirectory()  # goes with the calls below, which hold it
    qrels, run = Path(folder.name, "qrels.txt"), Path(folder.name, "run.txt")
    grades = rng.integers(0, 3, judged.size)
    written(qrels, (np.repeat(queries, 11), 6), b" 0 D", (judged.ravel(), 7), b" ", (grades, 1), b"\n")
    whole, rest = np.divmod(scores, 1_000_000)
    head = ((np.repeat(queries, depth), 6), b" Q0 D", (documents.ravel(), 7), b" 1 ")
    written(run, *head, (whole, 2), b".", (rest, 6), b" bm\n")

    def ours() -> dict[str, float]:
        found = evaluate_run(folder.name + "/qrels.txt", folder.name + "/run.txt", names)
        return {name: found[name] for name in names}

    def peer() -> dict[str, float]:
        with qrels.open() as truth, run.open() as ranked:
            evaluator = pytrec_eval.RelevanceEvaluator(
                pytrec_eval.parse_qrel(truth), {"map", "ndcg_cut.10", "P.10", "recip_rank", "recall.100"}
            )
            found = evaluator.evaluate(pytrec_eval.parse_run(ranked)).values()
        return {n: pytrec_eval.compute_aggregated_measure(n, [values[n] for values in found]) for n in names}

    name = "run of 7 million lines, from file to five measures / pytrec_eval with its own reading"
    return [Case(name, "at least 8", ours, peer, same=True)]


def codes() -> list[Case]:
    from detmap.retrieval import evaluate_codes

    rng = np.random.default_rng(3)
    gallery = rng.integers(0, 2**63, (1_000_000, 1)).astype(np.uint64)
    query = rng.integers(0, 2**63, (1000, 1)).astype(np.uint64)
    cases, few = [], 20  # queries that the peer sorts; its time is proportional to them

    def sorts() -> None:
        for q in range(few):
            np.argsort(np.bitwise_count(gallery[:, 0] ^ query[q, 0]).astype(np.float32), kind="stable")

    for classes in (100, 10):
        labels = rng.integers(0, classes, 1000), rng.integers(0, classes, 1_000_000)
        for kind, given in (
            ("AP at 5,000", {"k": 5000, "metrics": ["mAP@5000", "P@100"]}),
            ("AP", {"metrics": ["mAP"]}),
        ):
            ours = partial(evaluate_codes, query, gallery, *labels, **given)
            name = f"1,000 x 1,000,000 64-bit codes, {classes} classes, {kind} / stable argsort"
            cases.append(Case(name, "at least 50", ours, sorts, share=1000 // few))
    return cases


def samples() -> list[Case]:
    from sklearn.metrics import average_precision_score as peer

    from detmap.retrieval import average_precision_score

    rng = np.random.default_rng(4)
    truth, scores = rng.integers(0, 2, 10_000_000), rng.random(10_000_000)
    return [
        Case(
            "average_precision_score of 10 million / scikit-learn",
            "at least 4",
            lambda: average_precision_score(truth, scores),
            lambda: peer(truth, scores),
        )
    ]


#: Each returns the cases of one kind of ranking.
CASES = (distances, features, runs, evaluators, of_ranx, files, codes, samples)


if __name__ == "__main__":
    named = [f for f in (*CASES, million) if f.__name__ in sys.argv[1:]]
    for function in named or CASES:
        for case in function():
            line = interleaved(case)
            print(
                "  ".join(f"{k}: {v:.3f}" if isinstance(v, float) else f"{k}: {v}" for k, v in line.items()), flush=True
            )
