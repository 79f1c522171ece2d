"""The streaming evaluator of rankings, over batches and processes."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import columns
from detmap.data.notices import added
from detmap.errors import InputError, OptionError, StateError, check_choice, shorten
from detmap.kernels import readonly
from detmap.retrieval import document_ids
from detmap.retrieval.conventions import Convention, RunChoices, convention_of
from detmap.retrieval.device_arrays import array_table, check_device
from detmap.retrieval.evaluator_state import Header, Seen, digest
from detmap.retrieval.features import DistanceMetric, Side, blocks, survey
from detmap.retrieval.flat_samples import FlatSamples
from detmap.retrieval.galleries import (
    REID_METRICS,
    SHOTS,
    Blocks,
    RowsOf,
    blocks_of,
    matchless,
    ranked_rows,
    relate,
    shot_ranks,
)
from detmap.retrieval.metrics import able, listed, parse_all, parse_rate
from detmap.retrieval.neighbors import of_search, places, ranked_neighbors
from detmap.retrieval.ranked import stored_level
from detmap.retrieval.runs import RUN_METRICS, Rules, Table, check_depth, check_judged, paired, rank_run, read_table
from detmap.retrieval.scoring import RankingResult, check_level, labels, score, stored
from detmap.system.saved_states import Accumulator, seal, state_of, unseal

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


@dataclass
class _Counts:
    """The unjudged queries of all batches, and the number of occurrences of each notice."""

    extra: set[str] = field(default_factory=set)
    notices: dict[str, int] = field(default_factory=dict)


class Evaluator(Accumulator):
    """A streaming evaluator. The input is batches of queries to one gallery, parts of runs with one set of judgements,
    or samples with scores.

    `update` ranks a batch immediately. It keeps the ranks of the relevant items (for runs, of the judged documents),
    but neither distances nor features. `compute` may be called at any time and repeatedly. Without gallery and
    judgements, `update` takes samples, like the retrieval metrics of torchmetrics. All samples are kept, because the
    samples of one query may come in several batches.

    The split of the queries into batches does not change any bit of the results, and `merge` is associative. If queries
    have names, the order of batches and merges does not matter either. If runs were evaluated, the queries of a result
    are in the order of the judgements; otherwise they are sorted by name. Queries without names are numbered in the
    order of updates; `merge` numbers the queries of the other evaluator after the queries of this one. A saved and
    restored evaluator returns the same results.

    Results from features may depend on the batches, because BLAS may round the same distance differently in another
    batch. Equal features always tie, but the order of two distances that differ only in the last bit may depend on the
    split into batches. Distances of integer features are exact.

    Parameters
    ----------
    convention : str or Convention, optional
        See ``detmap conventions``; by default ``trec`` with `qrels`, ``reid`` with `gallery_ids`, else
        ``torchmetrics``. Single decisions can be given as keywords.
    metrics : sequence of str, optional
        Names from the metric table; by default the metrics of `evaluate_run` or of `evaluate_distances`.
    qrels : optional
        The judgements for runs, in any form that `evaluate_run` takes.
    level, depth, judged_only
        See `evaluate_run`.
    gallery_ids, gallery_cameras, junk_id
        The gallery, for batches of distances, features or neighbours. See `evaluate_distances`.
    gallery : array_like of float, shape (g, d), optional
        The features of the gallery, needed for `update` with ``features``. The features of queries and gallery must be
        on one device; see `evaluate_features`.
    metric : {"euclidean", "sqeuclidean", "cosine", "dot"}
        How features are compared.
    duplicates : {"error", "first"}
        Treatment of a query with a name that was seen before, for example because a sampler pads the last batch:
        ``"error"`` raises an error, ``"first"`` ignores the query.

    Raises
    ------
    OptionError
        For unknown conventions and metrics; for TPR@FPR, which needs all pairs at once; and for ``cmc="cuhk03"``, whose
        draws depend on the order of the queries (``cuhk03_exact`` is the mean over all draws).

    Examples
    --------
    >>> evaluator = Evaluator(metrics=["mAP", "CMC@1"], gallery_ids=[7, 8, 7])
    >>> evaluator.update(query_ids=[7], distances=[[0.1, 0.3, 0.2]])
    >>> evaluator.update(query_ids=[8], distances=[[0.2, 0.1, 0.3]])
    >>> dict(evaluator.compute())
    {'mAP': 1.0, 'CMC@1': 1.0}
    """

    def __init__(
        self,
        convention: str | Convention | None = None,
        metrics: Sequence[str] | str | None = None,
        *,
        qrels: Any = None,
        level: float | None = None,
        depth: int | None = None,
        judged_only: bool = False,
        gallery_ids: ArrayLike | None = None,
        gallery_cameras: ArrayLike | None = None,
        gallery: ArrayLike | None = None,
        metric: DistanceMetric = "euclidean",
        junk_id: int | str | None = -1,
        duplicates: Literal["error", "first"] = "error",
        **choices: Unpack[RunChoices],
    ) -> None:
        check_choice("duplicates", duplicates, ("error", "first"))
        check_choice("metric", metric, ("euclidean", "sqeuclidean", "cosine", "dot"))
        if qrels is not None and gallery_ids is not None:
            raise OptionError(
                "give qrels, for runs, or gallery_ids, for distances, features and neighbours, or neither"
            )
        of_runs = gallery_ids is None
        usual = "reid" if not of_runs else "torchmetrics" if qrels is None else "trec"
        self.convention = convention_of(usual if convention is None else convention, choices, run=of_runs)
        if self.convention.cmc == "cuhk03":
            raise OptionError(
                "cmc='cuhk03' draws by the number of a query among all; 'cuhk03_exact' is the mean of all draws"
            )
        names = listed(able(RUN_METRICS if of_runs else REID_METRICS, self.convention) if metrics is None else metrics)
        rates = [name for name in names if parse_rate(name) is not None]
        if rates:
            raise OptionError(f"{shorten(rates[0])} is of all pairs at once, which evaluate_distances takes")
        self._requests = parse_all(names, self.convention)
        self.duplicates = duplicates
        self._junk_id, self._metric = junk_id, metric
        self._depth, self._judged_only = depth, judged_only
        self._level = 1
        self._scale: NDArray[np.float64] | None = None
        self._judged: Table | None = None
        self._queries = 0
        self._gallery: tuple[NDArray[Any], NDArray[Any] | None] | None = None
        self._features: Side | None = None
        self._flat: Rules | None = None
        if of_runs and qrels is None:
            if gallery is not None or gallery_cameras is not None:
                raise OptionError("gallery and gallery_cameras need gallery_ids")
            if level is not None or depth is not None or judged_only:
                raise OptionError("level, depth and judged_only need qrels: metrics have their own, as mAP(rel=2)@10")
            self._flat = Rules(self.convention, all_empty=True)
            self._source = digest("samples")
        elif of_runs:
            self._take_qrels(qrels, level)
        else:
            self._take_gallery(gallery_ids, gallery_cameras, gallery)
        self._lock = threading.RLock()
        self._forget()

    def _take_qrels(self, qrels: Any, level: float | None) -> None:
        check_depth(self._depth)
        judged = read_table(qrels, "qrels")
        check_judged(judged)
        grades, self._scale = stored(judged.values, "qrels")
        self._level = 1 if level is None else stored_level(check_level(level), self._scale)
        self._judged = Table(judged.queries, judged.starts, judged.documents, grades, judged.notices)
        self._queries = len(judged.queries)
        self._source = digest(
            judged.starts, grades, self._scale, *map(str, judged.queries), *document_ids.texts(judged.documents).tolist(),
            self._level, self._depth, self._judged_only,
        )  # fmt: skip

    def _take_gallery(self, gallery_ids: Any, gallery_cameras: Any, gallery: Any) -> None:
        theirs = labels(gallery_ids, None, "gallery_ids")
        cameras = None if gallery_cameras is None else labels(gallery_cameras, theirs.size, "gallery_cameras")
        self._gallery = theirs, cameras
        if gallery is not None:
            rows = array_table(gallery, "gallery")
            if len(rows) != theirs.size:
                raise InputError(f"{len(rows)} rows for {theirs.size} ids", source="gallery")
            single = rows.dtype.kind == "f" and rows.dtype.itemsize <= 4
            self._features = survey(rows, np.float32 if single else np.float64, "gallery")
        hashes = None if self._features is None else self._features.hashes
        self._source = digest(theirs, cameras, hashes, self._junk_id, self._metric)

    def _forget(self) -> None:
        self._parts: list[Seen] = []
        self._samples: list[FlatSamples] = []
        self._names: set[Any] = set()
        self._numbered: bool | None = None
        self._kind: str | None = None
        self._counts = _Counts()

    def __len__(self) -> int:
        """Return the number of queries seen."""
        return len(self._names) + len({query for part in self._samples for query in np.unique(part.queries).tolist()})

    @property
    def metrics(self) -> list[str]:
        """The metrics that `compute` reports."""
        return [request.name for request in self._requests]

    # -------------------------------------------------------------------------------------------------------- updates

    def update(
        self,
        preds: ArrayLike | None = None,
        target: ArrayLike | None = None,
        indexes: ArrayLike | None = None,
        *,
        query_ids: ArrayLike | None = None,
        distances: ArrayLike | None = None,
        features: ArrayLike | None = None,
        indices: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
        run: Any = None,
        query_cameras: ArrayLike | None = None,
        ignore: Sequence[ArrayLike] | None = None,
        self_match: ArrayLike | None = None,
        names: ArrayLike | None = None,
    ) -> None:
        """Add a batch of queries (as distances, features, neighbours or a part of a run), or a batch of samples.

        Parameters
        ----------
        preds, target, indexes : array_like of one shape
            Samples, for an evaluator with neither gallery nor judgements: the score of each sample, its relevance (0 or
            1, a boolean, or a grade) and the number of its query. Samples of one query may come in several batches; equal
            scores keep the order of arrival. No other argument may be given with samples.
        query_ids : array_like of int or str, shape (q,)
            The identities of the batch's queries.
        distances : array_like of float, shape (q, g), or (q, k) with `indices`
            Distances from each query to each item of the gallery, or to the neighbours in `indices`.
        features : array_like of float, shape (q, d)
            The features of the queries.
        indices : array_like of int, shape (q, k)
            The neighbours returned by an index; see `evaluate_neighbors`.
        run : optional
            Scores by query and document, in any form that `evaluate_run` takes. One batch must hold all lines of a query.
        query_cameras, ignore, self_match
            See `evaluate_distances`.
        names : array_like of int or str, shape (q,), optional
            Distinct names of the queries; by default queries are numbered. Either all batches have names, or none has.

        Raises
        ------
        InputError
            For input that the corresponding function, such as `evaluate_run`, refuses; for a repeated name, unless
            ``duplicates="first"``; and for a batch of another kind than earlier batches. A refused batch changes nothing.
        """
        samples = preds, target, indexes
        if any(one is not None for one in samples):
            others = query_ids, distances, features, indices, run, query_cameras, ignore, self_match, names
            if self._flat is None:
                raise OptionError("samples are for an evaluator with neither qrels nor gallery_ids")
            if any(one is None for one in samples) or any(one is not None for one in others):
                raise OptionError("give preds, target and indexes, and nothing else")
            part = FlatSamples.read(*samples)
            with self._lock:
                self._samples += [part] if part.queries.size else []
            return
        if self._flat is not None:
            raise OptionError("give preds, target and indexes; all else needs qrels or gallery_ids")
        indices, distances = of_search(indices, distances)
        given = {"distances": distances, "features": features, "indices": indices, "run": run}
        kinds = [name for name, value in given.items() if value is not None]
        if kinds not in (["distances"], ["features"], ["indices"], ["distances", "indices"], ["run"]):
            raise OptionError("give one of distances, features, indices (with or without their distances) and run")
        if self._judged is None and self._gallery is None:
            raise OptionError("a restored evaluator has neither gallery nor judgements: merge it into one that has")
        if (run is None) != (self._judged is None):
            raise OptionError("an evaluator with qrels takes runs, one with gallery_ids all else")
        if run is not None:
            if any(one is not None for one in (query_ids, query_cameras, ignore, self_match, names)):
                raise OptionError("a run names its queries itself: give nothing else")
            self._update_run(run)
            return
        if query_ids is None:
            raise OptionError("query_ids are missing")
        people = labels(query_ids, None, "query_ids")
        if not people.size:
            return
        batch = self._ranked(people, given, query_cameras, ignore, self_match)
        kind = "ranks" if kinds == ["indices"] else "distances"
        self._add(batch, kind, self._named(names, len(batch)), names is None)

    def _ranked(self, people: NDArray[Any], given: dict[str, Any], cameras: Any, ignore: Any, self_match: Any) -> Seen:
        """Rank the gallery for a batch of queries."""
        assert self._gallery is not None
        theirs, places_seen = self._gallery
        count = people.size
        if not isinstance(self_match, bool | None):
            self_match = columns.array(self_match)
        elif self_match:
            raise OptionError("self_match=True numbers all queries: give the item of each query of the batch")
        neighbors = rows_of = None
        cuts: Blocks = []
        if given["indices"] is not None:
            neighbors = places(given["indices"], given["distances"], theirs.size)
            _check_rows(len(neighbors[0]), count, "indices")
            if self.convention.cmc in SHOTS:
                raise OptionError(f"CMC {self.convention.cmc} needs distances to the whole gallery")
        elif given["distances"] is not None:
            matrix = array_table(given["distances"], "distances", booleans=True)
            _check_rows(len(matrix), count, "distances")
            if matrix.shape[1] != theirs.size:
                problem = f"{matrix.shape[1]} columns where the gallery has {theirs.size} items"
                raise InputError(problem, source="distances", remedy="give indices too where these are of neighbours")
            cuts, rows_of = blocks_of(matrix)
        else:
            cuts, rows_of = self._distances(given["features"], count)
        relation = relate(
            count, theirs.size, people, theirs, cameras, places_seen, self._junk_id, ignore, self_match, self.convention
        )
        if not relation.items:
            raise InputError(f"no query has a relevant item: {matchless(relation)}", source="queries")
        parts = []
        if neighbors is not None:
            made = ranked_neighbors(*neighbors, relation, self._requests, self.convention, theirs.size)
            parts = [Seen.of([None] * len(block.raw), block, junk=junk, short=few) for block, junk, few in made]
        elif rows_of is not None:
            width = shot_ranks(self._requests, relation, self.convention)
            ranked = ranked_rows(cuts, rows_of, relation, self.convention, width, 0)
            for block, junk in map(itemgetter(3, 4), ranked):  # `itemgetter` drops the distances to free memory
                junk = junk + relation.dropped
                parts.append(Seen.of([None] * junk.size, block, junk=junk, short=np.zeros(junk.size)))
        return Seen.join(parts)

    def _distances(self, features: Any, count: int) -> tuple[Blocks, RowsOf]:
        """Return the bounds of blocks of queries, and a function that returns a block's distances to the gallery."""
        if self._features is None:
            raise OptionError("features need those of the gallery: Evaluator(gallery=...)")
        rows = array_table(features, "features")
        _check_rows(len(rows), count, "features")
        check_device(rows, self._features.rows, "features")
        width = self._features.rows.shape[1]
        if rows.shape[1] != width:
            raise InputError(f"{rows.shape[1]} columns where the gallery has {width}", source="features")
        if self._features.kind is np.float32 and not (rows.dtype.kind == "f" and rows.dtype.itemsize <= 4):
            raise InputError("a batch is of other precision than the gallery", source="features", value=rows.dtype.name)
        return blocks(survey(rows, self._features.kind, "features"), self._features, self._metric)

    def _update_run(self, run: Any) -> None:
        assert self._judged is not None
        table = read_table(run, "run", lenient=True)
        judged, ranked, theirs = paired(self._judged, table)
        kept = [i for i, at in enumerate(theirs) if at >= 0]
        known = {theirs[i] for i in kept}
        extra = {str(document_ids.printable(query)) for at, query in enumerate(ranked.queries) if at not in known}
        made = self._of_run(judged, ranked, kept, [theirs[i] for i in kept])
        self._add(made, "run", made.names, False, _Counts(extra, dict(ranked.notices)))

    def _of_run(self, judged: Table, ranked: Table, kept: list[int], theirs: list[int]) -> Seen:
        """Rank some queries of a run. `kept` holds the index of each query in the judgements. `theirs` holds the index of
        each query in the run, or -1 if the run lacks the query.
        """
        assert self._judged is not None
        block, _, _ = rank_run(
            judged.take(kept),
            ranked.take(theirs),
            self.convention,
            self._level,
            self._depth,
            self._judged_only,
            self._scale,
        )
        names = [document_ids.printable(self._judged.queries[i]) for i in kept]
        none = np.zeros(len(kept))
        return Seen.of(names, block, junk=none, short=none, place=np.array(kept, np.int64))

    def _named(self, names: ArrayLike | None, count: int) -> list[Any]:
        """Return the names of a batch's queries; a list of None if queries are numbered."""
        if names is None:
            return [None] * count
        found: list[Any] = columns.identifiers(names, source="names").tolist()
        if len(found) != count:
            raise InputError(f"{len(found)} names for {count} queries", source="names")
        return found

    def _add(self, part: Seen, kind: str, names: list[Any], numbered: bool, counts: _Counts | None = None) -> None:
        """Add the rankings of a batch; a refused batch changes nothing."""
        with self._lock:
            if not len(part):
                self._count(counts)
                return
            if self._kind not in (None, kind):
                raise InputError(f"a batch of {kind} after batches of {self._kind}", source="queries")
            if self._numbered not in (None, numbered):
                raise InputError("some batches have names and others have not", source="names")
            if numbered:
                names = list(range(len(self), len(self) + len(part)))
            elif self._names and type(names[0]) is not type(next(iter(self._names))):
                raise InputError("names are integers in some batches and strings in others", source="names")
            fresh, seen = [], set(self._names)
            for at, name in enumerate(names):
                if name not in seen:
                    fresh.append(at)
                    seen.add(name)
                elif self.duplicates == "error":
                    remedy = "duplicates='first' takes such a query once"
                    raise InputError("a query was seen before", source="names", value=name, remedy=remedy)
            part = Seen(names, part.columns)
            self._parts.append(part if len(fresh) == len(part) else part.take(np.array(fresh, np.int64)))
            self._names, self._kind, self._numbered = seen, kind, numbered
            self._count(counts)

    def _count(self, counts: _Counts | None) -> None:
        if counts is not None:
            self._counts = _Counts(self._counts.extra | counts.extra, added(self._counts.notices, counts.notices))

    def _joined(self) -> Seen | None:
        """Return all rankings seen, in the order of the results; None if there are none."""
        with self._lock:
            if not self._parts:
                return None
            whole = Seen.join(self._parts)
            if "place" in whole.columns:
                order = np.argsort(whole.columns["place"], kind="stable")
            elif self._numbered:
                order = np.arange(len(whole))
            else:
                order = np.array(sorted(range(len(whole)), key=whole.names.__getitem__), np.int64)
            self._parts = [whole if bool((order[1:] > order[:-1]).all()) else whole.take(order)]
            return self._parts[0]

    def _gathered(self) -> FlatSamples | None:
        """Return all samples seen; None if there are none."""
        with self._lock:
            if self._samples:
                self._samples = [FlatSamples.join(self._samples)]
            return self._samples[0] if self._samples else None

    # --------------------------------------------------------------------------------------------------------- output

    def compute(self) -> RankingResult:
        """Return the result of all batches seen so far; further batches may follow.

        Raises
        ------
        InputError
            If no query has a relevant item.
        StateError
            If missing queries count as 0, but their names are unknown because this evaluator was restored without
            judgements.
        """
        with self._lock:
            seen, counts, samples = self._joined(), self._counts, self._gathered()
        if samples is not None:
            assert self._flat is not None
            return samples.score(self._flat, self._requests)
        missing, notices = 0, added(counts.notices, self._judged.notices if self._judged is not None else {})
        if self._judged is not None:
            absent = sorted(
                set(range(len(self._judged.queries))) - set([] if seen is None else seen.columns["place"].tolist())
            )
            missing = len(absent)
            if absent and self.convention.missing == "zero":
                none = Table([], np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0))
                rest = self._of_run(self._judged, none, absent, [-1] * missing)
                seen = rest if seen is None else Seen.join([seen, rest])
                seen = seen.take(np.argsort(seen.columns["place"], kind="stable"))
        elif self._queries:
            missing = self._queries - (0 if seen is None else len(seen))
            if missing and self.convention.missing == "zero":
                raise StateError(
                    "missing queries count, and the evaluator has no judgements: merge it into one that has"
                )
        if seen is None:
            raise InputError("no query was seen", source="queries", remedy="call update first")
        ranked = seen.ranked(self.convention, self._level, self._scale)
        result = score(
            [ranked],
            np.array(seen.names),
            self._requests,
            self.convention,
            missing=missing,
            extra=len(counts.extra),
            junk=int(seen.columns["junk"].sum()),
            reason="judgements and runs, or identities of queries and gallery, have nothing relevant in common",
        )
        if ranked.pool is not None and not ranked.pool.ranks.size:
            notices["no_judged_document"] = int(seen.columns["items"].sum())
        result.add_notices({**notices, "short_rankings": int(seen.columns["short"].sum())})
        return result

    # ---------------------------------------------------------------------------------------------------------- merge

    def merge(self, other: Evaluator) -> Self:
        """Add the batches that another evaluator has seen, and return this evaluator; `other` stays unchanged.

        Raises
        ------
        StateError
            If the conventions, metrics, galleries or judgements differ, if only one evaluator's queries have names, or if
            both have seen the same query and duplicates are errors.
        """
        if not isinstance(other, Evaluator):
            raise StateError(f"only an Evaluator can be merged, not {type(other).__name__}")
        if other.convention != self.convention or other.metrics != self.metrics:
            raise StateError("evaluators of different conventions or metrics cannot be merged")
        if other._source != self._source:
            raise StateError("evaluators of different galleries or judgements cannot be merged")
        with other._lock:
            theirs, kind, numbered, counts = other._joined(), other._kind, other._numbered, other._counts
            samples = other._gathered()
        if samples is not None:
            with self._lock:
                self._samples.append(samples)
        try:
            if theirs is None or kind is None:
                self._count(counts)
            else:
                self._add(theirs, kind, theirs.names, bool(numbered), counts)
        except InputError as error:
            raise StateError(str(error)) from None
        return self

    # ---------------------------------------------------------------------------------------------------------- state

    def to_bytes(self) -> bytes:
        """Return all batches seen, without gallery or judgements, as bytes that `from_bytes` reads on any machine."""
        with self._lock:
            seen, kind, numbered, counts = self._joined(), self._kind, self._numbered, self._counts
            samples = self._gathered()
        held = seen if samples is None else samples
        header = {
            "convention": {one.name: getattr(self.convention, one.name) for one in fields(self.convention)},
            "metrics": self.metrics,
            "source": self._source,
            "duplicates": self.duplicates,
            "queries": self._queries,
            "level": self._level,
            "scale": None if self._scale is None else self._scale.tolist(),
            "seen": kind if samples is None else "samples",
            "numbered": numbered,
            "names": [] if seen is None else seen.names,
            "layout": [] if held is None else held.layout(),
            "extra": sorted(counts.extra),
            "notices": counts.notices,
        }
        given = (
            [] if held is None else [column.astype(column.dtype.newbyteorder("<")) for column in held.columns.values()]
        )
        return seal("retrieval evaluator", header, *(column.ravel() for column in given))

    @classmethod
    def from_bytes(cls, data: bytes) -> Evaluator:
        """Return the evaluator that `to_bytes` saved.

        The evaluator has neither gallery nor judgements: it can compute, merge and be saved, but not update. To continue,
        merge it into an evaluator with the gallery or judgements, or call `load_state_dict` of such an evaluator.

        Raises
        ------
        StateError
            If the data are damaged, cut short, or of another version.
        """
        content, payload = unseal("retrieval evaluator", data)
        try:
            header = msgspec.convert(content, Header, strict=True)
            convention = Convention(**header.convention)
            requests = parse_all(header.metrics, convention)
        except (msgspec.ValidationError, OptionError, TypeError) as error:
            raise StateError(f"not an evaluator: {error}") from None
        made = object.__new__(cls)
        made.convention, made._requests, made.duplicates = convention, requests, header.duplicates
        made._source, made._level, made._queries = header.source, header.level, header.queries
        made._scale = None if header.scale is None else readonly(header.scale, np.float64)
        if made._scale is not None and not ((made._scale > 0).all() and (np.diff(made._scale) > 0).all()):
            raise StateError("not an evaluator: its grades do not ascend")
        made._judged, made._gallery, made._features, made._flat = None, None, None, None
        made._lock = threading.RLock()
        made._forget()
        made._counts = _Counts(set(header.extra), {"text_after_name": header.longer, **header.notices})
        names = header.names
        if header.seen == "samples":
            if names or header.numbered is not None:
                raise StateError("not an evaluator: samples have no names")
            made._samples, made._flat = [FlatSamples.restore(header.layout, payload)], Rules(convention, all_empty=True)
            return made
        if len(set(names)) < len(names) or len(set(map(type, names))) > 1:
            raise StateError("not an evaluator: a query is there twice, or names are of two types")
        if (header.numbered is None) != (not names) or (header.seen is None) != (not names):
            raise StateError("not an evaluator: its queries are not those that it says")
        if header.numbered and names != list(range(len(names))):
            raise StateError("not an evaluator: its queries are not those that it says")
        if min([header.queries, *made._counts.notices.values()]) < 0 or (
            header.queries and header.queries < len(names)
        ):
            raise StateError("not an evaluator: a number is wrong")
        if names:
            most = 1 << 31 if made._scale is None else made._scale.size
            seen = Seen.restore(names, header.layout, payload, header.level, most)
            if ("grades" in seen.columns) != (header.seen == "run"):
                raise StateError("not an evaluator: its columns are not of the kind that it says")
            made._parts, made._names, made._kind, made._numbered = [seen], set(names), header.seen, header.numbered
        return made

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace all batches seen by the state that `state_dict` returned.

        Raises
        ------
        StateError
            If the state is damaged, or has another convention, other metrics, another gallery or other judgements.
        """
        saved = self._fresh().merge(Evaluator.from_bytes(state_of(state)))
        with self._lock:
            self._parts, self._names, self._kind = saved._parts, saved._names, saved._kind
            self._numbered, self._counts, self._samples = saved._numbered, saved._counts, saved._samples

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle, with gallery and judgements but without the lock."""
        self._joined()
        self._gathered()
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()


def _check_rows(rows: int, count: int, source: str) -> None:
    if rows != count:
        raise InputError(f"{rows} rows for {count} query_ids", source=source)
