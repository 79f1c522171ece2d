"""Rows of the benchmark for rankings: each function returns medians of interleaved runs of detmap and of its peer."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

Row = dict[str, object]


def interleaved(rounds: int, **calls: Callable[[], object]) -> dict[str, float]:
    """Median seconds of each call, run in turn; the first round, which compiles and warms, does not count."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return {name: float(np.median(values[1:])) for name, values in times.items()}


def row(name: str, target: str, seconds: dict[str, float], ours: str, peer: str) -> Row:
    return {
        "benchmark": name,
        "ours (s)": seconds[ours],
        "peer (s)": seconds[peer],
        "ratio": seconds[peer] / seconds[ours],
        "target": target,
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


def distances() -> list[Row]:
    from detmap.retrieval import evaluate_distances

    data, peer = market(), torchreid_kernel()
    names = ["mAP", "CMC@1", "CMC@5", "CMC@10"]
    seconds = interleaved(3, ours=lambda: evaluate_distances(*data, metrics=names), peer=lambda: peer(*data))
    return [row("distances 3,368 x 15,913 / argsort and torchreid's loops", "at least 10", seconds, "ours", "peer")]


def features() -> list[Row]:
    from detmap.retrieval import evaluate_features

    _, *labels = market()
    rng = np.random.default_rng(1)
    query = rng.standard_normal((3368, 2048), dtype=np.float32)
    gallery = rng.standard_normal((15913, 2048), dtype=np.float32)
    seconds = interleaved(
        3,
        ours=lambda: evaluate_features(query, gallery, *labels, metrics=["mAP", "CMC@1"]),
        peer=lambda: query @ gallery.T,
    )
    return [row("features 2,048 wide / the bare product", "at least 0.8", seconds, "ours", "peer")]


def runs() -> list[Row]:
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
    seconds = interleaved(
        3,
        ours=lambda: evaluate_run(qrels, (queries, documents, scores), names),
        peer=lambda: evaluator.evaluate(as_dicts),
        dicts=lambda: evaluate_run(truth, as_dicts, names),
    )
    return [
        row("run of 7 million lines, arrays / pytrec_eval from dicts", "at least 10", seconds, "ours", "peer"),
        row("run of 7 million lines, dicts / pytrec_eval from dicts", "", seconds, "dicts", "peer"),
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


def files() -> list[Row]:
    import pytrec_eval

    from detmap.retrieval import evaluate_run

    rng = np.random.default_rng(5)
    count, depth = 7000, 1000
    queries = 100_000 + np.arange(count)
    documents = rng.permuted(1_000_000 + 8000 * np.arange(depth) + rng.integers(0, 8000, (count, depth)), axis=1)
    scores = -np.sort(-rng.integers(10_000_000, 40_000_000, (count, depth)), axis=1).ravel()
    judged = np.column_stack([documents[:, ::100], 9_000_000 + np.arange(count)])
    names = ["map", "ndcg_cut_10", "P_10", "recip_rank", "recall_100"]

    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder, "qrels.txt"), Path(folder, "run.txt")
        grades = rng.integers(0, 3, judged.size)
        written(qrels, (np.repeat(queries, 11), 6), b" 0 D", (judged.ravel(), 7), b" ", (grades, 1), b"\n")
        whole, rest = np.divmod(scores, 1_000_000)
        head = ((np.repeat(queries, depth), 6), b" Q0 D", (documents.ravel(), 7), b" 1 ")
        written(run, *head, (whole, 2), b".", (rest, 6), b" bm\n")

        def peer() -> dict[str, float]:
            with qrels.open() as truth, run.open() as ranked:
                evaluator = pytrec_eval.RelevanceEvaluator(
                    pytrec_eval.parse_qrel(truth), {"map", "ndcg_cut.10", "P.10", "recip_rank", "recall.100"}
                )
                found = evaluator.evaluate(pytrec_eval.parse_run(ranked)).values()
            return {n: pytrec_eval.compute_aggregated_measure(n, [values[n] for values in found]) for n in names}

        ours = evaluate_run(qrels, run, names)
        if peer() != {name: ours[name] for name in names}:
            raise SystemExit("pytrec_eval disagrees")
        seconds = interleaved(3, ours=lambda: evaluate_run(qrels, run, names), peer=peer)
    name = "run of 7 million lines, from file to five measures / pytrec_eval with its own reading"
    return [row(name, "at least 8", seconds, "ours", "peer")]


def codes() -> list[Row]:
    from detmap.retrieval import evaluate_codes

    rng = np.random.default_rng(3)
    gallery = rng.integers(0, 2**63, (1_000_000, 1)).astype(np.uint64)
    query = rng.integers(0, 2**63, (1000, 1)).astype(np.uint64)
    rows, few = [], 20  # queries that the peer sorts; its time is proportional to them

    def sorts() -> None:
        for q in range(few):
            np.argsort(np.bitwise_count(gallery[:, 0] ^ query[q, 0]).astype(np.float32), kind="stable")

    for classes in (100, 10):
        labels = rng.integers(0, classes, 1000), rng.integers(0, classes, 1_000_000)
        seconds = interleaved(
            3,
            top=lambda labels=labels: evaluate_codes(query, gallery, *labels, k=5000, metrics=["mAP@5000", "P@100"]),
            whole=lambda labels=labels: evaluate_codes(query, gallery, *labels, metrics=["mAP"]),
            sort=sorts,
        )
        seconds["sort"] *= 1000 / few
        for kind in ("top", "whole"):
            depth = "AP at 5,000" if kind == "top" else "AP"
            name = f"1,000 x 1,000,000 64-bit codes, {classes} classes, {depth} / stable argsort"
            rows.append(row(name, "at least 50", seconds, kind, "sort"))
    return rows


def samples() -> list[Row]:
    from sklearn.metrics import average_precision_score as peer

    from detmap.retrieval import average_precision_score

    rng = np.random.default_rng(4)
    truth, scores = rng.integers(0, 2, 10_000_000), rng.random(10_000_000)
    seconds = interleaved(3, ours=lambda: average_precision_score(truth, scores), peer=lambda: peer(truth, scores))
    return [row("average_precision_score of 10 million / scikit-learn", "at least 4", seconds, "ours", "peer")]


ROWS = (distances, features, runs, files, codes, samples)


if __name__ == "__main__":
    chosen = [f for f in ROWS if len(sys.argv) < 2 or f.__name__ in sys.argv[1:]]
    for function in chosen:
        for line in function():
            print(
                "  ".join(f"{k}: {v:.3f}" if isinstance(v, float) else f"{k}: {v}" for k, v in line.items()), flush=True
            )
