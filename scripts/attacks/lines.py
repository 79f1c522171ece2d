"""TREC's runs and judgements: blanks, line ends, damage, and ids of every type."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from attacks import REFUSE, Attack, Must
from attacks.documents import ANYTHING, damage

Judged = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


def scene(rng: np.random.Generator) -> tuple[Judged, Run]:
    """Return judgements and a run of a few queries; scores often tie."""
    names = [["1", "2", "10", "007"], ["q1", "q2", "é", "q-3"], ["#1", "#", "##q", "q"]][int(rng.integers(3))]
    documents = [str(d) for d in rng.choice(30, 12, replace=False)] if rng.random() < 0.5 else [*"abcdefgh", "ab", "é2"]
    judged: Judged = {}
    run: Run = {}
    for name in names[: int(rng.integers(1, 5))]:
        judged[name] = {d: int(rng.integers(0, 3)) for d in pick(rng, documents, 1)}
        if rng.random() < 0.9:
            run[name] = {d: int(rng.integers(1, 9)) / 4 for d in pick(rng, documents, 1)}
    if not run:
        run[names[0]] = {documents[0]: 1.0}
    return judged, run


def pick(rng: np.random.Generator, things: list[str], least: int) -> list[str]:
    return [str(one) for one in rng.choice(things, int(rng.integers(least, len(things) + 1)), replace=False)]


def in_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def mean_average_precision(judged: Judged, run: Run) -> list[float]:
    """trec_eval's map: the queries of both; scores descend in single precision, ties by descending document id (bytes)."""
    values = []
    for query in sorted(set(judged) & set(run), key=in_bytes):
        ranked = sorted(run[query], key=lambda d: (float(np.float32(run[query][d])), in_bytes(d)), reverse=True)
        relevant = {d for d, grade in judged[query].items() if grade >= 1}
        seen, total = 0, 0.0
        for rank, document in enumerate(ranked, 1):
            if document in relevant:
                seen += 1
                total += seen / rank
        values.append(total / len(relevant) if relevant else 0.0)
    return [len(values), float(Fraction(sum(map(Fraction, values)), len(values))) if values else float("nan")]


def evaluated(judged: Any, run: Any) -> list[float]:
    """What detmap says of the same."""
    from detmap.retrieval import evaluate_run

    result = evaluate_run(judged, run, ["map"])
    values = [float(v) for v in result.per_query["AP"]]
    values = [0.0 if np.isnan(v) else v for v in values]
    return [len(values), float(Fraction(sum(map(Fraction, values)), len(values))) if values else float("nan")]


def parse_run(data: bytes) -> Run:
    """Read lines of six fields; ValueError where one is not of that form."""
    run: Run = {}
    for line in broken(data):
        if is_comment(line, 6, 4):
            continue
        query, _, document, _, score, _ = line
        value = float(score)
        if not np.isfinite(value) or "_" in score or document in run.get(query, {}):
            raise ValueError
        run.setdefault(query, {})[document] = value
    return run


def parse_judgements(data: bytes) -> Judged:
    judged: Judged = {}
    for line in broken(data):
        if is_comment(line, 4, 3):
            continue
        query, _, document, grade = line
        if document in judged.get(query, {}) or "_" in grade:
            raise ValueError
        judged.setdefault(query, {})[document] = int(grade)
    return judged


def is_comment(row: list[str], count: int, at: int) -> bool:
    """Whether a line that begins with # is no record: it lacks fields, or has no number where one belongs."""
    if not row[0].startswith("#"):
        return False
    if len(row) < count or (len(row) > count and (count == 4 or row[1].upper() not in ("Q0", "0"))):
        return True
    try:
        return np.isnan(float(row[at]) if count == 6 else int(row[at])) or "_" in row[at]
    except ValueError:
        return True


def broken(data: bytes) -> list[list[str]]:
    """The fields of every line that has some. Bytes that are no UTF-8 stay what they are."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    rows = [[field.decode("utf-8", "surrogateescape") for field in line.split()] for line in lines]
    return [row for row in rows if row]


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Judgements and run as text, dicts, columns or frames, with ids of several types."""
    judged, run = scene(rng)
    kind = int(rng.integers(4))
    if kind == 0:
        return mixed_ids(rng, judged, run)
    end = [b"\n", b"\r\n", b"\n\n", b"\r"][int(rng.choice(4, p=[0.5, 0.2, 0.2, 0.1]))]
    gap = [b" ", b"\t", b"  ", b" \t "][int(rng.integers(4))]
    qrels = end.join(
        gap.join([q.encode(), b"0", d.encode(), b"%d" % g]) for q, of in judged.items() for d, g in of.items()
    )
    text = end.join(
        gap.join([q.encode(), b"Q0", d.encode(), b"1", repr(s).encode(), b"tag"])
        for q, of in run.items()
        for d, s in of.items()
    )
    last = rng.random() < 0.7
    qrels, text = (one + (end if last else b"") for one in (qrels, text))
    # A carriage return alone ends a line or is refused; it never hides records.
    hopeless = not any(grade for query in set(judged) & set(run) for grade in judged[query].values())
    must = Must(value=mean_average_precision(judged, run), refuse=hopeless or end == b"\r")
    what = "lines"
    if kind >= 2:
        of_run = rng.random() < 0.6
        spoilt = damage(rng, text if of_run else qrels)
        qrels, text = (qrels, spoilt) if of_run else (spoilt, text)
        what += " damaged"
        try:
            value = mean_average_precision(parse_judgements(qrels), parse_run(text))
            alone = b"\r" in (qrels + text).replace(b"\r\n", b"")  # a blank, or the end of a line
            must = Must(value=ANYTHING if alone else value, refuse=True)
        except (ValueError, OverflowError):
            # Tags may hold blanks, and fields that are not read may hold anything.
            must = Must(value=ANYTHING, refuse=True) if of_run else REFUSE
            if of_run and glued(text):
                must = REFUSE
    sources: list[Any] = [qrels, text]
    if rng.random() < 0.5:
        sources = [folder / "qrels.txt", folder / "run.txt"]
        for path, data in zip(sources, (qrels, text), strict=True):
            path.write_bytes(data)
    return Attack(f"{what} {qrels[:200]!r} {text[:300]!r}", lambda: evaluated(*sources), must, len(qrels) + len(text))


def glued(data: bytes) -> bool:
    """Whether a line holds two records, the second's query written onto the first's name."""
    return any(len(row) == 11 and row[6] == "Q0" for row in broken(data))


def mixed_ids(rng: np.random.Generator, judged: Judged, run: Run) -> Attack:
    """Ids as strings on one side and as integers or bytes on the other: the same number, or a refusal, never a silent 0."""
    digits = all(text.isdigit() and str(int(text)) == text for of in (judged, run) for q in of for text in (q, *of[q]))
    kinds = ["str", "bytes", "int", "numpy", "frame"] if digits else ["str", "bytes", "frame"]
    one, other = (kinds[int(k)] for k in rng.integers(0, len(kinds), 2))
    given: list[Any] = [as_ids(judged, one), as_ids(run, other)]
    hopeless = not any(grade for query in set(judged) & set(run) for grade in judged[query].values())
    return Attack(
        f"ids {one} {other} {judged} {run}",
        lambda: evaluated(*given),
        Must(value=mean_average_precision(judged, run), refuse=hopeless or "bytes" in (one, other)),
    )


def as_ids(table: dict[str, dict[str, Any]], kind: str) -> Any:
    if kind == "frame":
        import pandas

        rows = [(q, d, v) for q, of in table.items() for d, v in of.items()]
        grades = all(isinstance(v, int) for _, _, v in rows)
        return pandas.DataFrame(rows, columns=["query_id", "doc_id", "relevance" if grades else "score"])
    change = {"str": str, "bytes": str.encode, "int": int, "numpy": lambda text: np.int32(int(text))}[kind]
    return {change(q): {change(d): v for d, v in of.items()} for q, of in table.items()}
