"""Runs against judgements (TREC), given as dicts, columns, data frames or files."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from struct import error as PackError
from struct import pack_into
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.data.frames import check_computed
from detmap.data.notices import added
from detmap.errors import InputError, OptionError, check_choice, is_integer, shorten
from detmap.formats.ranking_tables import DOCUMENT, QUERY, VALUE, from_frame, other_layout
from detmap.formats.trec import Texts, read_qrels, read_run
from detmap.kernels import ranking, readonly
from detmap.kernels.sorting import group_by
from detmap.kernels.texts import Grouped, find_strings, rank_rows
from detmap.retrieval import document_ids
from detmap.retrieval.conventions import Convention, RunChoices, convention_of
from detmap.retrieval.document_ids import Keys, Located
from detmap.retrieval.locating import RepeatedError, located
from detmap.retrieval.lookups import TOGETHER, Found, Order, Scores, found_in, groups_of, look_up
from detmap.retrieval.metrics import DEEPEST, able, parse_all
from detmap.retrieval.pools import Pool
from detmap.retrieval.ranked import Ranked, Request, stored_level
from detmap.retrieval.scoring import RankingResult, check_level, graded, score, stored
from detmap.system import parallel

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Default metrics: trec_eval's usual measures.
RUN_METRICS = (
    "num_ret", "num_rel", "num_rel_ret", "mAP", "GMAP", "R-prec", "bpref", "MRR", "11pt",
    "P@5", "P@10", "P@20", "P@100", "R@10", "R@100", "R@1000", "nDCG", "nDCG@10", "success@1", "success@10",
)  # fmt: skip

_QUERY = (*QUERY, "query-id")
_DOCUMENT = (*DOCUMENT, "corpus-id")
_VALUE = VALUE


@dataclass(frozen=True)
class Table:
    """Lines of judgements or of a run, grouped by query."""

    #: The distinct queries in order of appearance: all integers, or all strings (bytes that are not UTF-8 stay bytes).
    queries: list[Any]
    #: Bounds of the queries, shape (q + 1,): the lines of query *i* are ``starts[i]:starts[i + 1]``.
    starts: NDArray[np.int64]
    #: The document of each line.
    documents: Located | Keys
    #: The score or grade of each line; grades are floats if a grade has a fraction.
    values: NDArray[Any]
    #: Number of occurrences of each notice, by code.
    notices: Mapping[str, int] = field(default_factory=dict)
    #: The ranked judged documents, if they were looked up while the dicts of a run were read.
    found: Found | None = None

    def take(self, which: list[int]) -> Table:
        """Return the queries with the indices `which`, in that order; -1 stands for a query without lines."""
        if which == list(range(len(self.queries))):
            return self
        starts, lines = groups_of(self.starts, np.array(which, dtype=np.int64))
        queries = [self.queries[i] if i >= 0 else None for i in which]
        documents = self.documents.take(which) if isinstance(self.documents, Keys) else self.documents[lines]
        return Table(queries, starts, documents, self.values[lines])

    def without(self, out: NDArray[np.bool_]) -> Table:
        """Return the table without the lines in the mask `out`."""
        stay = np.flatnonzero(~out)
        starts = np.searchsorted(stay, self.starts).astype(np.int64)
        return Table(self.queries, starts, self.documents[stay], self.values[stay])


def _is_source(data: Any) -> bool:
    return isinstance(data, str | os.PathLike | bytes) or hasattr(data, "read")


def _columns(data: Any, kind: str) -> tuple[Any, Any, Any]:
    """Return the three columns of data that are neither a dict of dicts nor a file."""
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "iloc"):  # reading pandas by Arrow needs pyarrow
        return from_frame(data, kind, kind)
    check_computed(data, kind)
    if isinstance(data, Mapping) or hasattr(data, "columns"):
        names = list(data.columns) if hasattr(data, "columns") else list(data)
        found = []
        for wanted in (_QUERY, _DOCUMENT, _VALUE[kind]):
            name = next((n for n in wanted if n in names), None)
            if name is None:
                raise InputError(f"no column named {', '.join(wanted[:-1])}", source=kind, value=names)
            found.append(data[name])
        return found[0], found[1], found[2]
    if isinstance(data, Sequence) and len(data) == 3:
        return data[0], data[1], data[2]
    raise InputError(
        f"cannot read a {type(data).__name__}",
        source=kind,
        remedy="give a dict of dicts, three columns (query, document, value), a data frame or a file",
    )


def _values(values: Any, kind: str, count: int, place: Callable[[int], str] | None = None) -> NDArray[Any]:
    """Return scores as float64. Return grades as int64 if all are whole numbers, else as float64."""
    # In messages, ``place(row)`` names the record of an element; by default, the record is the row number.
    field = "grades" if kind == "qrels" else "scores"

    def at(row: int) -> int | str:
        return row if place is None else place(row)

    try:
        given = columns.numbers(values, source=kind, field=field, booleans=True)
    except InputError:
        if place is not None:
            _refuse_first(values, kind, field, place)
        raise
    if given.shape != (count,):
        raise InputError(f"expected {count} numbers", source=kind, field=field)
    bad = np.isnan(given) if kind == "run" else ~(np.abs(given) <= 2.0**31)
    if bad.any():
        row = int(np.argmax(bad))
        value = float(given[row])
        if np.isnan(value):
            problem = "a score is NaN" if kind == "run" else "a grade is NaN"
            raise InputError(problem, source=kind, record=at(row), field=field)
        problem = "a grade must be from -2 ** 31 to 2 ** 31"
        raise InputError(problem, source=kind, record=at(row), field=field, value=value)
    if kind == "qrels" and bool(np.all(given == np.trunc(given))):
        return given.astype(np.int64)
    return given


def _plain_floats(values: list[Any]) -> NDArray[np.float64] | None:
    """Return a list of numbers as floats; None if an element is not a number, or is not exact as a float."""
    try:
        with np.errstate(all="ignore"):
            sum(values, 0.0)  # raises for time spans, which the next line would take as floats
        given = np.frombuffer(array("d", values), np.float64)
    except (TypeError, ValueError, OverflowError, Warning):
        return None
    return given if bool((np.abs(given) < 2.0**53).all()) else None


def _refuse_first(values: list[Any], kind: str, field: str, place: Callable[[int], str]) -> None:
    """Refuse the first value that is not a number; `place` returns the name of its record."""
    for row, value in enumerate(values):
        problem = "is no single number"
        try:
            if columns.numbers([value], booleans=True).shape == (1,):
                continue
        except InputError as error:
            problem = error.problem
        raise InputError(problem, source=kind, record=place(row), field=field, value=value)


def read_table(data: Any, kind: str, lenient: bool = False) -> Table:
    """Return the lines of a run or of judgements of any type; an empty dict is an error unless `lenient`."""
    if isinstance(data, Table):
        return data
    if _is_source(data):
        other = other_layout(data, kind)
        data = data if other is None else other
    if isinstance(data, Mapping) and not data:
        if not lenient:
            remedy = 'empty_input="skip" takes it for one without queries'
            raise InputError("is empty", source=kind, remedy=remedy)
        return Table([], np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0))
    if isinstance(data, Mapping) and all(isinstance(v, Mapping) for v in data.values()):
        return _table_of_mappings(data, kind)
    items: Located
    if _is_source(data):
        lines = read_qrels(data) if kind == "qrels" else read_run(data)
        found, items, numbers = lines.codes, lines.documents, lines.values
        if kind == "qrels":
            numbers = graded(numbers, kind)
    else:
        queries, documents, values = _columns(data, kind)
        found = document_ids.column(queries, kind, "queries")
        items = document_ids.located(document_ids.column(documents, kind, "documents"), kind, "documents")
        if found.size == 0:
            raise InputError("is empty", source=kind)
        count = items.words.size if isinstance(items, Texts) else items.size
        if count != found.size:
            raise InputError(f"{count} documents for {found.size} queries", source=kind)
        numbers = _values(values, kind, found.size)
    starts = np.concatenate(([0], np.flatnonzero(found[1:] != found[:-1]) + 1, [found.size])).astype(np.int64)
    first = found[starts[:-1]].tolist()
    if _is_source(data):
        first = [lines.queries[code] for code in first]
    listed = document_ids.names(first, kind, "queries")
    if len(set(listed)) < len(listed):  # the lines of a query are not contiguous
        place = {name: i for i, name in enumerate(dict.fromkeys(listed))}
        codes = readonly(np.repeat([place[name] for name in listed], np.diff(starts)), np.int32)
        order, starts = np.empty(found.size, np.int32), np.empty(len(place) + 1, np.int64)
        group_by(codes, readonly((), np.int32), order, starts)
        listed, items, numbers = list(place), items[order], numbers[order]
    return Table(listed, starts, items, numbers, lines.notices if _is_source(data) else {})


def _table_of_mappings(data: Mapping[Any, Mapping[Any, Any]], kind: str) -> Table:
    queries = document_ids.names(document_ids.keys(list(data), kind, "queries").tolist(), kind, "queries")
    mappings = list(data.values())
    listed = Keys(mappings, queries, kind, "documents")
    # To save memory, the keys of a run are read later, block by block, if all mappings are dicts with strings as keys.
    # Mappings of other types are read now, because their next iteration may return other keys.
    late = kind == "run" and all(type(one) is dict and isinstance(next(iter(one), ""), str) for one in mappings)
    documents = listed if late else listed.whole()
    return Table(queries, listed.starts, documents, _values_of_mappings(mappings, kind, listed))


def order_of(convention: Convention) -> Order:
    """Return the convention's order for documents that are looked up in dicts."""
    return Order(convention.single, convention.ties == "docid")


def table_of_dicts(
    data: Mapping[str, dict[str, Any]],
    kind: str,
    sought: Mapping[str, Mapping[str, Any]] | None = None,
    order: Order | None = None,
    keep: bool = False,
) -> Table:
    """Return a table of dicts that map strings to floats or integers, without copying the strings. The documents in
    `sought` are looked up in a query's dict directly after the dict is read, while it is in the processor's cache, and
    are ranked by `order`. If `keep` is true, a copy of the ids is kept for later lookups. Raises `TypeError` for other
    types, and `OverflowError` for a score beyond the range of floats.
    """
    mappings = list(data.values())
    listed = Keys(mappings, list(data), kind, "documents", checked=True)
    values, bounds = np.empty(int(listed.starts[-1])), listed.starts.tolist()
    found: Found | None = None
    if sought is not None and order is not None:
        found = Found.empty(order, sum(len(sought[query]) for query in data))

    def read(begin: int, end: int, done: int) -> int:
        """Read the dicts of queries ``[begin, end)``. `done` is the number of documents looked up before; return this
        number after the block.
        """
        scores, ends = [], [0]
        names: list[str] = []
        packed = None if keep else bytearray()
        for place in range(begin, end):  # read each query's dict while it is in the cache
            packed = listed.pack(place, packed)
            if found is not None and sought is not None:
                wanted = sought[listed.queries[place]]
                names += wanted
                scores += found_in(mappings[place], wanted)
                ends.append(len(names))
        part = Scores(values, listed.starts).part(begin, end)
        texts = listed.unpack(begin, end, packed, part.values)
        if texts is None:
            for place in range(begin, end):
                _write_numbers(list(mappings[place].values()), values[bounds[place] : bounds[place + 1]])
                listed.join(place)
            listed.check(begin, end)
        if found is not None:
            own = Scores(np.array(scores, np.float64), np.array(ends, np.int64))
            ids = partial(listed.lines, begin, end) if texts is None else texts.__getitem__
            found.place(done, part, own, ids, names)
        if not keep:
            listed.joined[begin:end] = [None] * (end - begin)
        return done + len(names)

    done = 0
    for begin, end in parallel.split(np.diff(listed.starts) + 1, TOGETHER):
        done = read(begin, end, done)
    read_values = _values(values, kind, values.size, listed.name)
    return Table(list(data), listed.starts, listed, read_values, found=found)


def _write_numbers(numbers: list[Any], out: NDArray[np.float64]) -> None:
    """Write floats and integers to `out`; raise TypeError for other types."""
    try:
        # Checking the type of the sum is faster than checking the type of each number.
        if type(sum(numbers, 0.0)) is float:
            pack_into(f"{out.size}d", out.data, 0, *numbers)
            return
    except (TypeError, OverflowError, PackError):
        pass
    if not all(issubclass(each, float | int) for each in set(map(type, numbers))):
        raise TypeError("a value is neither float nor integer")
    out[:] = np.fromiter(numbers, np.float64, out.size)


def _values_of_mappings(mappings: list[Mapping[Any, Any]], kind: str, listed: Keys) -> NDArray[Any]:
    """Return the scores or grades of mappings; `listed` holds the keys of the mappings."""
    count = int(listed.starts[-1])
    values: Any = np.empty(count)
    for begin, end in listed.blocks():
        given = _plain_floats(list(chain.from_iterable(one.values() for one in mappings[begin:end])))
        if given is None or given.size != listed.starts[end] - listed.starts[begin]:
            values = list(chain.from_iterable(one.values() for one in mappings))
            break
        values[listed.starts[begin] : listed.starts[end]] = given
    return _values(values, kind, count, listed.name)


@located
def read_tables(qrels: Any, run: Any) -> tuple[Table, Table]:
    """Read judgements and a run once, for several calls of `evaluate_run`."""
    return read_table(qrels, "qrels"), read_table(run, "run")


def check_depth(depth: int | None) -> None:
    """Raise `OptionError` for a depth that is not a rank."""
    if depth is not None and (not is_integer(depth) or depth < 1):
        raise OptionError(f"depth must be a positive integer, not {shorten(depth)}")
    if depth is not None and depth > DEEPEST:
        raise OptionError("depth must be at most 2 ** 53")


def evaluate_run(
    qrels: Any,
    run: Any,
    metrics: Sequence[str] | str | None = None,
    convention: str | Convention = "trec",
    *,
    level: float | None = None,
    depth: int | None = None,
    judged_only: bool = False,
    empty_input: Literal["error", "skip"] = "error",
    keep_curve: bool = False,
    **choices: Unpack[RunChoices],
) -> RankingResult:
    """Evaluate a run against judgements.

    Parameters
    ----------
    qrels, run : dict of dict, three columns, mapping or frame of columns, or file
        Grades (integers or fractions) and scores by query and document. In memory, they are a dict
        ``{query: {document: value}}``, a tuple of arrays (query, document, value), or a mapping or data frame with these
        columns. A TREC file, also compressed, is given as its path, its bytes or an open file. A table (CSV, TSV, Parquet,
        Feather), a JSON object of objects, or BEIR's folder with ``qrels/test.tsv`` is given as its path. Queries are
        paired by id. The ids of an argument are all integers or all strings, and are compared as text: ``7``, ``"7"`` and
        ``b"7"`` are the same id, ``"07"`` is not. Integral floats are taken as integers. Nothing is stripped, case-folded
        or normalised.
    metrics : sequence of str, optional
        Names from the metric table, or trec_eval's names.
    convention : str or Convention
        ``trec`` orders documents by score in single precision, then by descending id (integer ids as decimal strings).
        Single decisions (``ties=``, ``missing=`` …) can be given as well.
    level : float, optional
        The lowest grade that counts as relevant (trec_eval's ``-l``); by default every grade above 0 does. A metric's name
        may override the level: ``AP(rel=2)``.
    depth : int, optional
        Number of ranks that are scored (trec_eval's ``-M``); by default all.
    judged_only : bool
        Whether unjudged documents are removed from the ranking (trec_eval's ``-J``). The ranking is first cut at
        `depth`, if given.
    empty_input : {"error", "skip"}
        ``skip`` behaves like pytrec_eval: a query with an empty dict of judgements counts as not judged. A result is
        returned even if there are no queries or no relevant documents; a mean over no queries is NaN.
    keep_curve : bool
        Keep the mean curve for `RankingResult.plot` even if there are more than 2**21 hits.

    Returns
    -------
    RankingResult
        The queries of the result are the judged queries that were evaluated, in the order of `qrels`. Notices report
        ignored text in a file, and a run without judged documents.

    Raises
    ------
    InputError
        If scores or grades are not numbers, or are NaN, masked or missing; if ids are neither integers nor strings, or
        mixed; if a document is ranked or judged twice, a line is unreadable, or no query of the run is judged.
    """
    decided = convention_of(convention, choices, run=True)
    requests = parse_all(able(RUN_METRICS, decided) if metrics is None else metrics, decided)
    check_choice("empty_input", empty_input, ("error", "skip"))
    rules = Rules(decided, level, depth, judged_only, empty_input == "skip")
    return ranked_run(qrels, run, rules, requests).score(requests, keep_curve)


@dataclass(frozen=True)
class Rules:
    """Rules for ranking a run. If `lenient` is true, judgements and run may be empty. If `all_empty` is true,
    judgements without any relevant document are no error.
    """

    convention: Convention
    level: float | None = None
    depth: int | None = None
    judged_only: bool = False
    lenient: bool = False
    all_empty: bool = False

    def __post_init__(self) -> None:
        if self.level is not None:
            check_level(self.level)
        check_depth(self.depth)


@dataclass(frozen=True)
class RankedRun:
    """A run that was ranked against judgements."""

    #: The judged queries that are evaluated.
    queries: list[Any]
    #: Whether each query is in the run, shape (q,).
    answered: NDArray[np.bool_]
    #: The rankings of the queries; None if there are no queries.
    block: Ranked | None
    #: The rules of the ranking.
    rules: Rules
    #: Number of judged queries that the run lacks, and number of queries in the run that are not judged.
    missing: int
    extra: int
    #: Number of lines of the run that the convention removes.
    removed: int
    #: Number of occurrences of each notice about the input, by code.
    notices: Mapping[str, int]

    def score(self, requests: Sequence[Request], keep_curve: bool = False) -> RankingResult:
        """Evaluate metrics; see `evaluate_run`."""
        level = self.rules.level
        result = score(
            [] if self.block is None else [self.block],
            np.array([document_ids.printable(query) for query in self.queries]),
            requests,
            self.rules.convention,
            missing=self.missing,
            extra=self.extra,
            junk=self.removed,
            reason="no document is judged relevant" + (f" at level {level:g}" if level not in (None, 1) else ""),
            lenient=self.rules.lenient or self.rules.all_empty,
            keep_curve=keep_curve,
        )
        result.add_notices(self.notices)
        return result


@located
def ranked_run(qrels: Any, run: Any, rules: Rules, requests: Sequence[Request]) -> RankedRun:
    """Read judgements and a run, and rank the run in every order that `requests` need; see `evaluate_run`."""
    decided, lenient = rules.convention, rules.lenient
    judged, ranked = read_table(qrels, "qrels", lenient), read_table(run, "run", lenient)
    if lenient:
        judged = judged.take(np.flatnonzero(np.diff(judged.starts)).tolist())
    judged, ranked, theirs = paired(judged, ranked)
    missing = theirs.count(-1)
    extra = len(ranked.queries) - (len(theirs) - missing)
    if missing == len(theirs) and not lenient:
        raise InputError(
            "no query of the run is judged",
            source="run",
            value=ranked.queries[0],
            remedy=f"the judgements' queries are like {shorten(judged.queries[0])}",
        )
    kept = [i for i, at in enumerate(theirs) if at >= 0 or decided.missing == "zero"]
    check_judged(judged)
    notices = added(judged.notices, ranked.notices)
    every = judged.documents
    judged, ranked = judged.take(kept), ranked.take([theirs[i] for i in kept])
    grades, scale = stored(judged.values, "qrels")
    level = 1 if rules.level is None else stored_level(check_level(rules.level), scale)
    block: Ranked | None = None
    removed = known = 0
    if kept:
        judged = replace(judged, values=grades)
        block, removed, known = rank_run(judged, ranked, decided, level, rules.depth, rules.judged_only, scale)
        others = {
            (ties, single): rank_run(
                judged,
                ranked,
                replace(decided, ties=ties, single=single),
                level,
                rules.depth,
                rules.judged_only,
                scale,
            )[0]
            for ties, single in {request.order for request in requests if request.order is not None}
        }
        block = replace(block, others=others)
        if any(request.metric.name == "hole" for request in requests):
            block = replace(block, anywhere=_judged_anywhere(every, ranked, rules))
    strangers = ranked.values.size if known == 0 else 0
    notices = {**notices, "no_judged_document": strangers}
    answered = np.array([theirs[i] >= 0 for i in kept], np.bool_)
    return RankedRun(judged.queries, answered, block, rules, missing, extra, removed, notices)


def _judged_anywhere(every: Located | Keys, ranked: Table, rules: Rules) -> Pool | None:
    """Rank the documents of a run that are judged for at least one query. `every` holds the documents of all judgements."""
    distinct = Texts.of(list(dict.fromkeys(document_ids.texts(every).tolist())))
    own = document_ids.texts(ranked.documents)
    ends = np.array([0, distinct.words.size], np.int64), np.array([0, own.words.size], np.int64)
    known = np.flatnonzero(_find(distinct, ends[0], own, ends[1])[0] >= 0)
    starts = np.searchsorted(known, ranked.starts).astype(np.int64)
    table = Table(ranked.queries, starts, own[known], np.zeros(known.size, np.int64))
    pool = rank_run(table, ranked, rules.convention, 1, rules.depth, False, None)[0].pool
    if pool is not None and rules.judged_only:  # remove documents that are judged for no query
        return pool.judged()
    return pool


def paired(judged: Table, ranked: Table) -> tuple[Table, Table, list[int]]:
    """Return judgements and a run with comparable ids, and each judged query's index in the run (-1: none)."""
    both = document_ids.alike(judged.queries, ranked.queries)
    judged, ranked = (replace(table, queries=found) for table, found in zip((judged, ranked), both, strict=True))
    place = {query: i for i, query in enumerate(ranked.queries)}
    return judged, ranked, [place.get(query, -1) for query in judged.queries]


def check_judged(judged: Table) -> None:
    """Refuse a document judged twice for a query."""
    if isinstance(judged.documents, Keys) and judged.documents.checked:
        return
    none = judged.documents[np.empty(0, np.int64)]
    _check(judged, _find(judged.documents, judged.starts, none, np.zeros_like(judged.starts))[1], "qrels", "judged")


def _find(
    documents: Located | Keys, starts: NDArray[np.int64], wanted: Located | Keys, wanted_starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Return each wanted document's index among the query's documents, and the line of a repeated document (-1: none)."""
    # The indices are incomplete if a document is repeated.
    own: Texts | Keys
    if isinstance(documents, np.ndarray) and isinstance(wanted, np.ndarray):
        own, others = Texts.of(documents), Texts.of(wanted)
    else:
        own, others = (
            documents if isinstance(documents, Keys) else document_ids.texts(documents),
            document_ids.texts(wanted),
        )
    found = np.empty(others.words.size, np.int64)
    seed = np.uint64(int.from_bytes(os.urandom(8), "little"))

    def find(begin: int, end: int) -> int:
        first = int(starts[begin]) if isinstance(own, Keys) else 0
        searched = own.located(begin, end) if isinstance(own, Keys) else own
        groups = Grouped(searched.data, searched.words, readonly(starts[begin : end + 1] - first, np.int64))
        theirs = Grouped(others.data, others.words, readonly(wanted_starts[begin : end + 1], np.int64))
        with np.errstate(over="ignore"):  # uncompiled kernels warn of integer overflow
            row = find_strings(groups, theirs, 0, end - begin, seed, found)
        return int(row) + first if row >= 0 else -1

    repeated = parallel.run(find, own.blocks() if isinstance(own, Keys) else parallel.even(starts.size - 1, None))
    return found, next((row for row in repeated if row >= 0), -1)


def _check(table: Table, repeated: int, source: str, what: str) -> None:
    """Raise `InputError` if line `repeated` repeats a document (-1: no such line)."""
    if repeated >= 0:
        text = table.documents[np.array([repeated])].tolist()[0]
        query = table.queries[int(np.searchsorted(table.starts, repeated, side="right")) - 1]
        problem = f"document {shorten(text)} is {what} twice"
        raise RepeatedError(problem, (query, text), source=source, record=f"query {query}")


def rank_run(
    judged: Table,
    ranked: Table,
    convention: Convention,
    level: int,
    depth: int | None,
    judged_only: bool,
    scale: NDArray[np.float64] | None,
) -> tuple[Ranked, int, int]:
    """Rank the judged documents of a run; both tables have the same queries. Also return the number of lines that the
    convention removes, and the number of lines with a judged document. If grades are fractions, `level` and the grades
    are stored grades, see `Ranked.scale`.
    """
    count = len(judged.queries)
    starts, grades = judged.starts, judged.values
    owner = np.repeat(np.arange(count), np.diff(starts))
    rank = _looked_up if _can_look_up(judged, ranked, convention) else _searched
    pool, removed, known = rank(judged, ranked, convention)
    positives = np.bincount(owner[grades >= level], minlength=count)
    if depth is not None:
        pool = pool.cut(depth)
    if judged_only:  # after the cut at `depth`, as in trec_eval
        pool = pool.judged()
    ideal = np.flatnonzero(grades > 0)
    ideal = ideal[np.lexsort((-grades[ideal], owner[ideal]))]
    return (
        Ranked(
            pool.hits(level, positives),
            convention,
            pool=pool,
            negatives=np.bincount(owner[(grades >= 0) & (grades < level)], minlength=count),
            ideal_starts=np.concatenate(([0], np.cumsum(np.bincount(owner[ideal], minlength=count)))),
            ideal=grades[ideal],
            level=level,
            highest=int(grades.max(initial=0)) if scale is None else float(scale.max(initial=0)),
            scale=scale,
        ),
        removed,
        known,
    )


def _searched(judged: Table, ranked: Table, convention: Convention) -> tuple[Pool, int, int]:
    """Search all lines of a run for the judged documents, and rank them. Also return the same counts as `rank_run`."""
    count, grades = len(judged.queries), judged.values
    found, repeated = _find(ranked.documents, ranked.starts, judged.documents, judged.starts)
    _check(ranked, repeated, "run", "there")
    owner = np.repeat(np.arange(count), np.diff(judged.starts))
    # The kernel needs the judged documents sorted by query and line.
    got = np.flatnonzero(found >= 0)
    known = got.size
    lines = ranked.starts[owner[got]] + found[got]
    order = np.argsort(lines, kind="stable")
    lines, whose, gains = lines[order], owner[got][order], grades[got][order]
    out = np.zeros(ranked.values.size, np.bool_)
    if convention.positive_scores:
        out |= ranked.values <= 0
    if convention.drop_same_id:
        out |= _named_as_query(ranked)
    removed = int(out.sum())
    if removed:  # remove these lines, even of judged documents
        stay = ~out[lines]
        ranked, lines, whose, gains = ranked.without(out), lines[stay], whose[stay], gains[stay]
        lines -= np.cumsum(out)[lines]
    hit_starts = _starts_of(whose, count)
    ranks, ahead, tied, which, items = _places(ranked, lines - ranked.starts[whose], hit_starts, convention)
    return Pool(hit_starts, ranks, gains[which], items, ahead, tied), removed, known


def _starts_of(owner: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the bounds of `count` groups of elements, given the group number of each element, ascending."""
    return np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=count)))).astype(np.int64)


def _can_look_up(judged: Table, ranked: Table, convention: Convention) -> bool:
    """Return whether judged documents can be looked up in the dicts of a run. Documents must be ordered by score, and
    the convention must not remove documents.
    """
    return (
        isinstance(judged.documents, Keys)
        and isinstance(ranked.documents, Keys)
        and ranked.documents.checked
        and convention.order == "score"
        and convention.ties != "docid-ascending"
        and not convention.positive_scores
        and not convention.drop_same_id
    )


def _looked_up(judged: Table, ranked: Table, convention: Convention) -> tuple[Pool, int, int]:
    """Look up the judged documents in the dicts of a run, and rank them. Also return the same counts as `rank_run`."""
    assert isinstance(judged.documents, Keys)
    assert isinstance(ranked.documents, Keys)
    count = len(judged.queries)
    order = order_of(convention)
    found = ranked.found
    if found is None or found.order != order:
        found = look_up(Scores(ranked.values, ranked.starts), ranked.documents, judged.documents.mappings, order)
    got = np.flatnonzero(~np.isnan(found.scores))
    owner = np.repeat(np.arange(count), np.diff(judged.starts))[got]
    ahead, tied = found.ahead[got], found.tied[got]
    ranks = ahead + found.before[got] + 1
    which = np.lexsort((ranks, owner))
    gains = judged.values[got][which]
    pool = Pool(_starts_of(owner, count), ranks[which], gains, np.diff(ranked.starts), ahead[which], tied[which])
    return pool, 0, got.size


def _places(
    ranked: Table, relevant: NDArray[np.int64], hit_starts: NDArray[np.int64], convention: Convention
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rank the `relevant` lines of a run, given as ascending indices among the lines of their query."""
    # Return four arrays of shape (h,), sorted by query and rank: the rank of a line, the numbers of lines of the same
    # query with a better score and with the same score, and the index in `relevant`. The fifth array, shape (q,), is
    # the number of lines of each query.
    queries = hit_starts.size - 1
    ranks, ahead, tied, which = (np.empty(relevant.size, np.int64) for _ in range(4))
    items = np.empty(queries, np.int64)
    hit_starts, relevant = readonly(hit_starts, np.int64), readonly(relevant, np.int64)
    none = ranking.Lists(readonly(np.zeros(queries + 1), np.int64), readonly((), np.int64))
    lists, places = ranking.Lists(hit_starts, relevant), ranking.Places(ranks, ahead, tied, which, items)

    def rank(begin: int, end: int) -> None:
        first = ranked.starts[begin]
        rows = readonly(ranked.starts[begin : end + 1] - first, np.int64)
        scores = ranked.values[first : ranked.starts[end]]
        if convention.order == "given":
            scores = np.repeat(rows[:-1], np.diff(rows)) - np.arange(scores.size)
        elif convention.single:
            with np.errstate(over="ignore"):  # overflow to infinity in single precision, as in C
                scores = scores.astype(np.float32)
        values = readonly(-scores, np.float64)
        ranking.rank_relevant(ranking.Distances(values, rows, begin), lists, none, begin, end, places)
        hits = slice(hit_starts[begin], hit_starts[end])
        if not convention.ties.startswith("docid") or not np.any(tied[hits] > 1):
            return
        # For each query with a tied hit, sort all lines by score, then by document.
        owner = np.repeat(np.arange(end - begin), np.diff(hit_starts[begin : end + 1]))
        some = np.unique(owner[tied[hits] > 1])
        starts, lines = groups_of(rows, some)
        names = document_ids.texts(ranked.documents[first + lines])
        order = np.arange(lines.size, dtype=np.int32)
        with np.errstate(over="ignore"):
            tied_scores = readonly(-values[lines], np.float64)
            starts = readonly(starts, np.int64)
            rank_rows(names.data, names.words, tied_scores, starts, 0, some.size, order)
        place = np.empty(lines.size, np.int64)
        place[order] = np.arange(lines.size)
        mine = np.flatnonzero(np.isin(owner, some))
        group = np.searchsorted(some, owner[mine])
        mine += hits.start
        ranks[mine] = place[starts[group] + relevant[which[mine]]] - starts[group] + 1
        if convention.ties == "docid-ascending":  # reverse the tied group
            ranks[mine] = 2 * ahead[mine] + tied[mine] + 1 - ranks[mine]
        by_rank = np.lexsort((ranks[hits], owner))
        for column in (ranks, ahead, tied, which):
            column[hits] = column[hits][by_rank]

    parallel.run(rank, parallel.even(queries, None))
    return ranks, ahead, tied, which, items


def _named_as_query(ranked: Table) -> NDArray[np.bool_]:
    """Mask of the lines whose document id equals the query id, shape (lines,)."""
    out = np.zeros(ranked.values.size, np.bool_)
    names = [query if isinstance(query, bytes) else str(query) for query in ranked.queries]
    sought = Texts.of([name if isinstance(name, bytes) else name.encode(*document_ids.UTF8) for name in names])
    found, _ = _find(ranked.documents, ranked.starts, sought, np.arange(len(names) + 1))
    out[(ranked.starts[:-1] + found)[found >= 0]] = True
    return out
