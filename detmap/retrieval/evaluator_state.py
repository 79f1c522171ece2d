"""State of the retrieval evaluator: rankings as columns that can be joined, selected, saved and restored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.errors import StateError
from detmap.hits import Hits
from detmap.kernels import Frozen, readonly
from detmap.retrieval import document_ids
from detmap.retrieval.conventions import Convention
from detmap.retrieval.pools import Pool
from detmap.retrieval.ranked import Ranked

#: All columns of a state, mapped to what an element describes: a query, an item, a gain in a query's ideal ranking, or
#: a rank. ``counts`` is the number of stored items of each query, and ``gains`` the number of gains in its ideal
#: ranking. ``place`` is the index of a run's query in the judgements. ``short`` flags queries with fewer neighbours
#: than a metric reads. Items are all judged items if there is a column ``grades``, else only the relevant items. Other
#: names are as in `Hits`, `Pool` and `Ranked`.
COLUMNS = {
    "counts": "query",
    "positives": "query",
    "items": "query",
    "junk": "query",
    "short": "query",
    "place": "query",
    "negatives": "query",
    "gains": "query",
    "ranks": "item",
    "ahead": "item",
    "tied": "item",
    "grades": "item",
    "ideal": "gain",
    "shots": "rank",
}


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """The header of a saved evaluator: everything but the columns."""

    convention: dict[str, Any]
    metrics: list[str]
    source: str
    duplicates: Literal["error", "first"]
    queries: int
    level: int
    scale: list[float] | None
    seen: Literal["distances", "ranks", "run", "samples"] | None
    numbered: bool | None
    names: list[int | str]
    layout: list[tuple[str, int]]
    extra: list[str]
    notices: dict[str, int] = {}
    longer: int = 0  # occurrences of the notice "text_after_name"; only in states of earlier versions


@dataclass(frozen=True, eq=False)
class Seen(Frozen):
    """Rankings of named queries, as read-only columns named in `COLUMNS`. All are int64, but ``shots`` is float64 of
    shape (q, k).
    """

    names: list[Any]
    columns: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.names)

    @classmethod
    def of(cls, names: list[Any], ranked: Ranked, **more: NDArray[Any]) -> Seen:
        """Return rankings as columns; `more` holds columns that `Ranked` does not have."""
        stored: Any = ranked.raw if ranked.pool is None else ranked.pool
        columns: dict[str, Any] = {
            "counts": np.diff(stored.starts),
            "positives": ranked.raw.positives,
            "items": stored.items,
            "ranks": stored.ranks,
            **more,
        }
        if stored.tied.size or not stored.ranks.size:
            columns.update(ahead=stored.ahead, tied=stored.tied)
        if ranked.pool is not None and ranked.ideal is not None and ranked.ideal_starts is not None:
            gains = np.diff(ranked.ideal_starts)
            columns.update(grades=stored.grades, negatives=ranked.negatives, ideal=ranked.ideal, gains=gains)
        if ranked.shots is not None:
            columns["shots"] = ranked.shots
        return cls(names, {name: readonly(columns[name], _dtype(name)) for name in COLUMNS if name in columns})

    @classmethod
    def join(cls, parts: Sequence[Seen]) -> Seen:
        """Return the rankings of all `parts`, concatenated."""
        if len(parts) == 1:
            return parts[0]
        # Parts without hits are skipped, because they have the columns ``ahead`` and ``tied`` even if ties are unknown.
        telling = [part for part in parts if part.columns["ranks"].size] or list(parts[:1])
        names = set.intersection(*(set(part.columns) for part in telling))
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in COLUMNS if name in names}
        return cls(
            [name for part in parts for name in part.names],
            {name: readonly(column, _dtype(name)) for name, column in columns.items()},
        )

    def take(self, which: NDArray[np.int64]) -> Seen:
        """Return the queries with the indices `which`, in that order."""
        rows = {"query": which, "rank": which}
        for per, sizes in (("item", "counts"), ("gain", "gains")):
            if sizes in self.columns:
                rows[per] = _rows(self.columns[sizes], which)
        columns = {name: readonly(column[rows[COLUMNS[name]]], _dtype(name)) for name, column in self.columns.items()}
        return Seen([self.names[i] for i in which.tolist()], columns)

    def ranked(self, convention: Convention, level: int, scale: NDArray[np.float64] | None) -> Ranked:
        """Return the rankings; `level` and `scale` are as in `Ranked`."""
        c = self.columns
        starts = _starts(c["counts"])
        ties = {name: c[name] for name in ("ahead", "tied") if name in c}
        if "grades" not in c:
            hits = Hits(starts, c["ranks"], c["positives"], c["items"], **ties)
            return Ranked(hits, convention, shots=c.get("shots"))
        pool = Pool(starts, c["ranks"], c["grades"], c["items"], **ties)
        most = int(c["ideal"].max(initial=0))
        return Ranked(
            pool.hits(level, c["positives"]),
            convention,
            pool=pool,
            negatives=c["negatives"],
            ideal_starts=_starts(c["gains"]),
            ideal=c["ideal"],
            level=level,
            highest=most if scale is None or not most else float(scale[most - 1]),
            scale=scale,
        )

    def layout(self) -> list[tuple[str, int]]:
        """Return the columns' names and sizes as in a saved state."""
        return [(name, column.size) for name, column in self.columns.items()]

    @classmethod
    def restore(
        cls, names: list[Any], layout: Sequence[tuple[str, int]], payload: memoryview, level: int, grades: int
    ) -> Seen:
        """Check and return the rankings of a saved state. `grades` is the highest valid grade."""
        if sum(8 * size for _, size in layout) != len(payload) or min((size for _, size in layout), default=0) < 0:
            raise StateError("not an evaluator: its columns are not of the size that it says")
        columns: dict[str, NDArray[Any]] = {}
        at = 0
        for name, size in layout:
            if name not in COLUMNS:
                raise StateError("not an evaluator: a column is unknown")
            kind = _dtype(name)
            columns[name] = readonly(
                np.frombuffer(payload, np.dtype(kind).newbyteorder("<"), size, at).astype(kind), kind
            )
            at += 8 * size
        if "shots" in columns:
            if not names or columns["shots"].size % len(names):
                raise StateError("not an evaluator: a column is of another size than its queries")
            columns["shots"] = columns["shots"].reshape(len(names), -1)
        made = cls(names, columns)
        for problem, found in _problems(made, level, grades):
            if found:
                raise StateError(f"not an evaluator: {problem}")
        return made


def _dtype(name: str) -> Any:
    return np.float64 if name == "shots" else np.int64


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def _rows(counts: NDArray[np.int64], which: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row indices of the groups numbered `which`, group by group; group *i* has ``counts[i]`` rows."""
    sizes = counts[which]
    shift = _starts(counts)[which] - (np.cumsum(sizes) - sizes)
    return np.asarray(np.arange(int(sizes.sum())) + np.repeat(shift, sizes))


def _problems(seen: Seen, level: int, grades: int) -> Iterator[tuple[str, Any]]:
    """Check the restored columns: yield pairs of an error message and whether the error occurs. Each check relies on
    the earlier checks.
    """
    c, queries = seen.columns, len(seen)
    needed = {"counts", "positives", "items", "junk", "short", "ranks"}
    graded = {"grades", "negatives", "ideal", "gains", "place"}
    have = set(c)
    yield "columns are missing", not needed <= have or bool(graded & have) != (graded <= have)
    yield "columns are missing", ("ahead" in have) != ("tied" in have) or ("grades" in have and "shots" in have)
    per_query = [name for name in c if COLUMNS[name] == "query"]
    yield "a column is of another size than its queries", any(c[name].size != queries for name in per_query)
    yield "a number is negative", any((c[name] < 0).any() for name in per_query)
    totals = {"item": _total(c["counts"]), "gain": _total(c["gains"]) if "gains" in c else 0}
    sized = [name for name in c if COLUMNS[name] in totals]
    yield "a column is of another size than its queries", any(c[name].size != totals[COLUMNS[name]] for name in sized)
    owner = np.repeat(np.arange(queries), c["counts"])
    same = owner[1:] == owner[:-1]
    ranks = c["ranks"]
    yield "ranks that do not ascend", (ranks < 1).any() or (ranks[1:] <= ranks[:-1])[same].any()
    yield "a rank beyond the last item", (ranks > c["items"][owner]).any()
    hit = c["grades"] >= level if "grades" in c else np.ones(ranks.size, np.bool_)
    yield "more hits than positives", (np.bincount(owner[hit], minlength=queries) > c["positives"]).any()
    if "tied" in c:
        ahead, tied = c["ahead"], c["tied"]
        end = ahead + tied
        yield "a rank outside of its tied group", ((ahead < 0) | (ahead >= ranks) | (ranks > end)).any()
        yield "a tied group beyond the last item", (end > c["items"][owner]).any() or (tied > c["items"][owner]).any()
        joined = same & (ahead[1:] == ahead[:-1])
        yield (
            "tied groups that overlap",
            (tied[1:] != tied[:-1])[joined].any() or (ahead[1:] < end[:-1])[same & ~joined].any(),
        )
    if "ideal" in c:
        whose = np.repeat(np.arange(queries), c["gains"])
        yield (
            "gains that do not descend",
            (c["ideal"] < 1).any() or ((c["ideal"][1:] > c["ideal"][:-1])[whose[1:] == whose[:-1]].any()),
        )
        most = max(int(np.abs(c["grades"]).max(initial=0)), int(c["ideal"].max(initial=0)))
        yield "a grade that there is not", most > grades
        yield "a query that is there twice", np.unique(c["place"]).size < queries
    if "shots" in c:
        yield "a chance that is none", not ((c["shots"] >= 0) & (c["shots"] <= 1 + 1e-9)).all()


def _total(counts: NDArray[np.int64]) -> int:
    """Return a sum in Python integers, because untrusted numbers may overflow."""
    return sum(counts.tolist())


def digest(*parts: Any) -> str:
    """Return a fingerprint of arrays, strings, bytes and numbers; equal arguments have equal fingerprints."""
    whole = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            part = part.tobytes() if part.dtype.kind != "U" else "\0".join(part.tolist()).encode(*document_ids.UTF8)
        elif not isinstance(part, bytes):
            part = repr(part).encode(*document_ids.UTF8)
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.hexdigest()
