"""`Qrels` and `Run`: grades and scores by query and document, with the interface of ranx."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError, MissingDependencyError, OptionError, shorten
from detmap.formats.trec import Texts, run_name
from detmap.retrieval.conventions import Convention
from detmap.retrieval.document_ids import decoded, texts
from detmap.retrieval.runs import RankedRun, Table, read_table, table_of_dicts
from detmap.system.whole_files import write

if TYPE_CHECKING:
    from typing_extensions import Self

Kind = Literal["qrels", "run"]

#: Kind of file for each suffix that ranx knows.
_KINDS = {"json": "json", "trec": "trec", "txt": "trec", "gz": "gz", "parq": "parquet", "parquet": "parquet"}


def file_kind(path: str | os.PathLike[str], kind: str | None) -> str:
    """Return the kind of a file; if `kind` is None, the suffix decides. Raises `OptionError` for an unsupported kind,
    such as ranx's own lz4.
    """
    found = os.path.splitext(os.fspath(path))[1][1:] if kind is None else kind
    if found not in _KINDS:
        raise OptionError(
            f"kind must be json, trec, gz or parquet, not {shorten(found)}: save the file as one of these"
        )
    return _KINDS[found]


class Rows:
    """Numbers by query and document: the base of `Qrels` and `Run`.

    Data from a file or frame stay in columns until a document is looked up by name. Columns made from dicts are cached
    until a dict changes. Once a caller has a reference to the dicts, every evaluation reads the dicts again.
    """

    kind: ClassVar[Kind]
    number: ClassVar[type]

    def __init__(self, given: Mapping[Any, Mapping[str, Any]] | None = None, name: str | None = None) -> None:
        self.name = name
        self.sorted = False
        self._columns: Table | None = None
        self._by_query: dict[Any, dict[Any, Any]] = {}
        self._kept: Table | None = None
        self._is_shared = False
        if given is not None:
            if not isinstance(given, Mapping):
                raise InputError("must be a dict of dicts", source=self.kind, value=type(given).__name__)
            self._by_query = {query: self._numbers(query, row) for query, row in given.items()}
            if not any(self._by_query.values()):
                raise InputError("is empty", source=self.kind)
            self._keep()

    @classmethod
    def from_dict(cls, d: Mapping[Any, Mapping[str, Any]], name: str | None = None) -> Self:
        """Return judgements, or a run, from a dict of dicts."""
        return cls(d, name)

    @classmethod
    def from_df(
        cls,
        df: Any,
        q_id_col: str = "q_id",
        doc_id_col: str = "doc_id",
        score_col: str = "score",
        name: str | None = None,
    ) -> Self:
        """Return judgements, or a run, from the columns of a data frame."""
        return cls()._read(_of_frame(df, (q_id_col, doc_id_col, score_col)), name)

    @classmethod
    def from_parquet(
        cls,
        path: str | os.PathLike[str],
        q_id_col: str = "q_id",
        doc_id_col: str = "doc_id",
        score_col: str = "score",
        pd_kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """Read the columns of a Parquet file; `pd_kwargs` go to `pandas.read_parquet`."""
        return cls.from_df(_pandas().read_parquet(path, **(pd_kwargs or {})), q_id_col, doc_id_col, score_col, name)

    def _keep(self) -> None:
        """Read the dicts as columns, if the keys are strings and the values are valid numbers."""
        with suppress(TypeError, OverflowError, InputError):
            if all(type(query) is str for query in self._by_query):
                self._kept = table_of_dicts(self._by_query, self.kind, keep=self.kind == "run")

    def _numbers(self, query: Any, row: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return a copy of a query's documents, with numbers converted to the type `number`."""
        if not isinstance(row, Mapping):
            problem = "must be a dict of documents and numbers"
            raise InputError(problem, source=self.kind, record=f"query {shorten(query)}", value=row)
        if set(map(type, row.values())) <= {self.number}:
            return dict(row)
        made = {}
        for document, value in row.items():
            try:
                made[document] = self.number(value)
            except (TypeError, ValueError, OverflowError):
                record = f"query {shorten(query)}, document {shorten(document)}"
                raise InputError("must be a number", source=self.kind, record=record, value=value) from None
        return made

    @property
    def _rows(self) -> dict[Any, dict[Any, Any]]:
        """The documents of each query. At the first access, columns are converted to dicts."""
        if self._columns is not None:
            self._by_query, self._columns = _dicts(self._columns, self.number), None
        return self._by_query

    @property
    def table(self) -> Table | dict[Any, dict[Any, Any]]:
        """The input for `detmap.retrieval`: the cached columns, or the dicts if there are no columns."""
        if self._columns is not None:
            return self._columns
        if self._kept is None and not self._is_shared:
            self._keep()
        return self._by_query if self._kept is None else self._kept

    def _changed(self) -> None:
        """Drop the cached columns, after a change of the dicts."""
        self.sorted, self._kept = False, None

    def _shared(self) -> dict[Any, dict[Any, Any]]:
        """Return the dicts without a copy, and stop caching, because the caller may change them later."""
        self._is_shared, self._kept = True, None
        return self._in_order

    @property
    def _in_order(self) -> dict[Any, dict[Any, Any]]:
        """The queries in ascending order, each with its documents by descending number; ties keep their order."""
        if not self.sorted:
            self.sort()
        return self._rows

    def sort(self) -> None:
        """Sort queries in ascending order, and documents by descending number."""
        ascending = {query: self._rows[query] for query in sorted(self._rows)}
        by_number = itemgetter(1)
        self._by_query = {q: dict(sorted(row.items(), key=by_number, reverse=True)) for q, row in ascending.items()}
        self._changed()
        self.sorted = True

    def add_score(self, q_id: Any, doc_id: str, score: Any) -> None:
        """Add a document to a query, or change the number of the document."""
        self._rows.setdefault(q_id, {})[doc_id] = self.number(score)
        self._changed()

    def add(self, q_id: Any, doc_ids: Iterable[str], scores: Iterable[Any]) -> None:
        """Add or replace a query with its documents and their numbers."""
        self.add_multi([q_id], [doc_ids], [scores])

    def add_multi(
        self, q_ids: Iterable[Any], doc_ids: Iterable[Iterable[str]], scores: Iterable[Iterable[Any]]
    ) -> None:
        """Add or replace queries with their documents and numbers."""
        for query, documents, numbers in zip(q_ids, doc_ids, scores, strict=True):
            self._rows[query] = dict(zip(documents, map(self.number, numbers), strict=True))
        self._changed()

    def keys(self) -> Any:
        """Return the queries, ascending."""
        return self._in_order.keys()

    def get_query_ids(self) -> list[Any]:
        """Return the queries as a list, ascending."""
        return list(self._in_order)

    def get_doc_ids_and_scores(self) -> list[dict[Any, Any]]:
        """Return the documents of each query, by descending number."""
        return [dict(row) for row in self._in_order.values()]

    def to_dict(self) -> dict[Any, dict[Any, Any]]:
        """Return a copy as a dict of dicts."""
        return {query: dict(row) for query, row in self._in_order.items()}

    def to_dataframe(self) -> Any:
        """Return a pandas data frame with the columns ``q_id``, ``doc_id`` and ``score`` (extra ``frames``)."""
        lines = [(query, document, value) for query, row in self._in_order.items() for document, value in row.items()]
        columns = [list(column) for column in zip(*lines, strict=True)] or [[], [], []]
        return _pandas().DataFrame(dict(zip(("q_id", "doc_id", "score"), columns, strict=True)))

    def save(self, path: str | None = None, kind: str | None = None) -> None:
        """Write a file atomically.

        Parameters
        ----------
        path : path
            By default ``qrels.json`` or ``run.json``.
        kind : {"json", "trec", "parquet"}, optional
            By default the suffix decides: .json, .trec or .txt, .parquet or .parq.

        Raises
        ------
        OptionError
            For an unsupported kind.
        """
        path = f"{self.kind}.json" if path is None else path
        found = file_kind(path, kind)
        if found == "gz":
            raise OptionError("compressed files are read, but not written: save as json, trec or parquet")
        if found == "parquet":
            self.to_dataframe().to_parquet(path, index=False)
            return
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False) if found == "json" else "\n".join(self._lines())
        write(os.fspath(path), text.encode())

    def _lines(self) -> list[str]:
        """Return the lines of a TREC file."""
        raise NotImplementedError

    def _read(self, source: Any, name: str | None = None) -> Self:
        """Read a file or columns, which must not be empty, into this object, and return it."""
        self._columns = read_table(source, self.kind)
        self.name = name
        return self

    @property
    def size(self) -> int:
        """The number of queries."""
        return len(self)

    def __getitem__(self, q_id: Any) -> dict[Any, Any]:
        return dict(self._in_order[q_id])

    def __len__(self) -> int:
        return len(self._by_query) if self._columns is None else len(self._columns.queries)

    def __repr__(self) -> str:
        return repr(self._in_order)


def _dicts(table: Table, number: type) -> dict[Any, dict[Any, Any]]:
    """Return a table as dicts, with document ids as text."""
    if isinstance(table.documents, Texts | np.ndarray):
        found: list[Any] = [decoded(one) for one in texts(table.documents).tolist()]
    else:
        found = [document for one in table.documents.mappings for document in one]
    values = list(map(number, table.values.tolist()))
    bounds = table.starts.tolist()
    return {
        query: dict(zip(found[begin:end], values[begin:end], strict=True))
        for query, begin, end in zip(table.queries, bounds, bounds[1:], strict=False)
    }


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingDependencyError("pandas", "frames", "a data frame") from None
    return pandas


def _of_frame(frame: Any, names: Sequence[str]) -> tuple[Any, Any, Any]:
    """Return the named columns of a data frame."""
    known = list(frame.columns)
    for name in names:
        if name not in known:
            raise InputError(f"no column {shorten(name)}", source="frame", value=known)
    return tuple(frame[name] for name in names)


class Qrels(Rows):
    """Judgements: grades by query and document.

    Parameters
    ----------
    qrels : mapping of mapping, optional
        Grades, truncated to integers, by query and document; a dict or numba's typed dict. The data are copied.
    name : str, optional
        Name of the judgements.
    """

    kind = "qrels"
    number = int

    def __init__(self, qrels: Mapping[Any, Mapping[str, int]] | None = None, name: str | None = None) -> None:
        super().__init__(qrels, name)

    @property
    def qrels(self) -> dict[Any, dict[Any, int]]:
        """The grades by query and document, sorted."""
        return self._shared()

    def set_relevance_level(self, rel_lvl: int = 1) -> None:
        """Lower all grades by ``rel_lvl - 1``."""
        for row in self._rows.values():
            for document in row:
                row[document] -= rel_lvl - 1
        self._changed()

    def _lines(self) -> list[str]:
        return [
            f"{query} 0 {document} {grade}" for query, row in self._in_order.items() for document, grade in row.items()
        ]

    @staticmethod
    def from_file(path: str | os.PathLike[str], kind: str | None = None) -> Qrels:
        """Read a file.

        Parameters
        ----------
        path : path
            A TREC file (also compressed), JSON, or a table with columns ``q_id``, ``doc_id`` and ``score``.
        kind : {"json", "trec", "gz", "parquet"}, optional
            By default the suffix decides.
        """
        file_kind(path, kind)
        return Qrels()._read(path)


class Run(Rows):
    """A run: scores by query and document.

    Parameters
    ----------
    run : mapping of mapping, optional
        Scores by query and document; a dict or numba's typed dict. The data are copied.
    name : str, optional
        Name of the run in a `Report`.

    Attributes
    ----------
    scores : dict of dict
        The values by metric and query.
    mean_scores, std_scores : dict
        Mean and standard deviation over the queries, by metric.
    metadata : dict
        Arbitrary metadata.
    """

    kind = "run"
    number = float

    def __init__(self, run: Mapping[Any, Mapping[str, float]] | None = None, name: str | None = None) -> None:
        super().__init__(run, name)
        self.metadata: dict[str, Any] = {}
        self.scores: dict[str, dict[Any, float]] = defaultdict(dict)
        self.mean_scores: dict[str, float] = {}
        self.std_scores: dict[str, float] = {}
        #: The tables, the convention and the result of the last ranking.
        self._ranked: tuple[Any, Any, Convention, RankedRun] | None = None

    @property
    def run(self) -> dict[Any, dict[Any, float]]:
        """The scores by query and document, sorted."""
        return self._shared()

    def ranked(self, qrels: Any, convention: Convention, rank: Callable[[], RankedRun]) -> RankedRun:
        """Return the ranking of this run against a table of judgements, cached until the run or the table changes."""
        own = self.table
        if not isinstance(qrels, Table) or not isinstance(own, Table):
            return rank()
        last = self._ranked
        if last is None or last[0] is not qrels or last[1] is not own or last[2] != convention:
            self._ranked = last = (qrels, own, convention, rank())
        return last[3]

    def _changed(self) -> None:
        self._ranked = None
        super()._changed()

    def _shared(self) -> dict[Any, dict[Any, Any]]:
        self._ranked = None
        return super()._shared()

    def make_comparable(self, qrels: Qrels) -> Run:
        """Add an empty ranking for each missing judged query, and remove queries without judgements."""
        queries = qrels.keys()
        if queries != self._rows.keys():
            self._by_query = {query: self._rows.get(query, {}) for query in queries}
            self._changed()
        return self

    def _lines(self) -> list[str]:
        return [
            f"{query} Q0 {document} {rank} {score} {self.name}"
            for query, row in self._in_order.items()
            for rank, (document, score) in enumerate(row.items(), 1)
        ]

    @staticmethod
    def from_file(path: str | os.PathLike[str], kind: str | None = None, name: str | None = None) -> Run:
        """Read a file; see `Qrels.from_file`. By default the name of the run is taken from the TREC file."""
        if file_kind(path, kind) in ("trec", "gz") and name is None:
            name = run_name(path)
        return Run()._read(path, name)


def lists_as_rows(lists: Iterable[Any], source: str) -> dict[int, dict[str, float]]:
    """Convert arrays of (document, number) pairs, one array per query, to dicts. Queries are numbered by position.
    Raises `InputError` for an array of another shape, and for a repeated document.
    """
    rows = {}
    for place, one in enumerate(lists):
        try:
            pairs: NDArray[np.float64] = np.asarray(one, np.float64)
        except (TypeError, ValueError):
            raise InputError("expected pairs of numbers, document and score", source=source, record=place) from None
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InputError("expected pairs of document and number", source=source, record=place, value=pairs.shape)
        documents, numbers = pairs.T.tolist() if pairs.size else ([], [])
        rows[place] = dict(zip(map(repr, documents), numbers, strict=True))
        if len(rows[place]) < len(documents):
            raise InputError("a document is there twice", source=source, record=place)
    return rows
