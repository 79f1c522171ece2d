"""The leaderboard: the sorted results of many files, as a table, an HTML page, JSON, CSV, Markdown and Parquet."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np

import detmap
from detmap import results
from detmap.batch.finding import PathLike, file_names
from detmap.batch.saving import encoded
from detmap.batch.scoring import FileResult, make_folder
from detmap.batch.splits import check_hidden, of_splits, split_of
from detmap.data.tables import GroundTruth
from detmap.detection.protocols import Protocol
from detmap.detection.result import DetectionResult
from detmap.detection.tally import Tally
from detmap.errors import MissingDependencyError, OptionError, one_of, shorten
from detmap.reports import leaderboard as page
from detmap.statistics import PairTests
from detmap.statistics.bootstrap import BIAS
from detmap.system.whole_files import write_together

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Results sorted by a metric, best first. Files without the metric come next, files with errors last.

    Parameters
    ----------
    results : sequence of FileResult
        The results, in any order.
    rank_by : str, optional
        The metric to sort by; by default the first metric (``AP`` or ``mAP``), on the first shown split if there are
        splits.
    tests : PairTests, optional
        The outcome of `compare_files`; without tests, models have no group letters.
    hide : sequence of str
        Splits whose metrics are neither shown nor written. Metrics and notices over all images are then hidden, too,
        because they would reveal information about the hidden splits.
    discreet : bool
        Leave out the notices and the numbers of images and objects, because they reveal information about the ground truth.
    metrics : sequence of str
        The metrics to show in addition to `rank_by`, in this order; by default all.

    Raises
    ------
    OptionError
        For an unknown or hidden metric.
    """

    results: Sequence[FileResult]
    rank_by: str | None = None
    tests: PairTests | None = None
    hide: Sequence[str] = ()
    discreet: bool = False
    metrics: Sequence[str] = ()

    def __post_init__(self) -> None:
        scored = [one for one in self.results if not one.error]
        if scored:
            check_hidden(self.hide, self.splits)
        known = self._allowed
        metric = self.rank_by or default_metric(known, self.splits)
        if scored and metric not in known:
            raise OptionError(f"cannot rank by {shorten(metric)}{one_of(metric, known[:30])}")
        order = sorted(self.results, key=lambda one: (*_place(one, metric), one.entry.name, one.entry.path))
        object.__setattr__(self, "rank_by", metric)
        object.__setattr__(self, "results", order)

    @cached_property
    def splits(self) -> list[str]:
        """The splits of the images, hidden ones included."""
        return _in_all([dict.fromkeys(one.splits) for one in self.results])

    @cached_property
    def _shown(self) -> list[str]:
        """The requested metrics (by default all), without metrics that `hide` excludes."""
        allowed, ranked = self._allowed, str(self.rank_by)
        if not self.metrics:
            return allowed
        return [one for one in dict.fromkeys((ranked, *self.metrics)) if one in allowed]

    @cached_property
    def _allowed(self) -> list[str]:
        """The metrics of the results, without metrics that `hide` excludes."""
        every = _in_all([one for one in self.results if not one.error])
        hidden = set(self.hide)
        of = {metric: split_of(metric, self.splits) for metric in every}
        return [metric for metric in every if of[metric] not in hidden and not (hidden and of[metric] is None)]

    @property
    def notices_may_be_shown(self) -> bool:
        """False if `discreet` or if splits are hidden, because notices count the images of all splits."""
        return not (self.discreet or self.hide)

    @cached_property
    def groups(self) -> dict[str, str]:
        """Letters by model; models that share a letter do not differ significantly. Empty without tests."""
        return {} if self.tests is None else self.tests.groups

    @cached_property
    def orders(self) -> list[dict[str, Any]]:
        """For each pair of neighbours on the leaderboard, whether their order is the same under other rules; empty if
        not computed. See `detmap.explanations.orders.orders`.
        """
        found = {
            one.entry.name: one.under
            for one in self.results
            if not one.error and one.under.get("metric") == self.rank_by
        }
        if len(found) < 2:
            return []
        from detmap.explanations.orders import orders

        return orders(found)

    def doubts(self) -> list[dict[str, Any]]:
        """Return a row for each pair of neighbours whose order changes under other rules. The row holds the two models,
        the number of rules that keep the order, and the smallest change of rules that reverses the order.
        """
        rows = []
        for one in self.orders:
            if not one["survives"] and not one["equal"]:
                least = one["against"][0]
                rows.append(
                    {
                        "above": one["first"],
                        "below": one["second"],
                        "holds under": f"{one['held']} of {one['tried']}",
                        "smallest change that ends it": least["name"],
                        "above then": least["values"][0],
                        "below then": least["values"][1],
                    }
                )
        return rows

    def sentences(self) -> list[str]:
        """Return sentences on tests and intervals."""
        made = next((one.bootstrap for one in self.results if one.bootstrap), None)
        said = [] if self.tests is None else self.tests.sentences(counted=not self.discreet)
        if made is not None:
            images = {one.images(str(self.rank_by)) for one in self.results} - {None}
            counted = len(images) == 1 and not self.discreet
            unit = next(one.unit for one in self.results if one.bootstrap)
            of = f"; {images.pop():,} {unit} with something to find" if counted else ""
            said += [made["sentence"] + of, BIAS]
        if self.orders:
            said.append(
                f"survives: whether a model stays above the next one by {self.rank_by} under other conventions, score cuts, "
                "caps, thresholds and orders of equal scores; equal: there is no order"
            )
        scored = [one for one in self.results if one.bootstrap]
        reasons = {one.no_interval(str(self.rank_by)) for one in scored}
        if scored and "" not in reasons:
            # The reasons contain the number of images, which `discreet` hides.
            why = "" if self.discreet else f": {', '.join(sorted(reasons))}"
            said.append(f"no interval of {self.rank_by}{why}")
        return said

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per file: rank, model, tags, metrics, interval of the ranking metric, group, notices, and error."""
        return [{**row} for row in self._rows]

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        scored = [one for one in self.results if not one.error]
        metrics = self._shown
        tags = list(dict.fromkeys(tag for one in self.results for tag in one.entry.tags))
        with_interval = any(one.bootstrap for one in scored)
        with_notices = any(one.notices for one in scored) and self.notices_may_be_shown
        survival = {
            one["first"]: "yes"
            if one["survives"]
            else "equal"
            if one["equal"]
            else f"no: {one['held']} of {one['tried']}"
            for one in self.orders
        }
        rank, before = 0, float("nan")
        rows = []
        # Results are sorted, the best first; equal values share a rank.
        for place, one in enumerate(self.results, 1):
            value = one.get(str(self.rank_by), float("nan"))
            rank, before = (rank if value == before else place), value
            row: dict[str, Any] = {"rank": "" if np.isnan(value) else rank, "model": one.entry.name}
            if self.orders:
                row["survives"] = survival.get(one.entry.name, "")
            if with_interval:
                row["group"] = self.groups.get(one.entry.name, "")
            row |= {(f"tag {tag}" if tag in (*row, *metrics) else tag): one.entry.tags.get(tag, "") for tag in tags}
            for metric in metrics:
                row[metric] = one.get(metric, float("nan"))
                if with_interval and metric == self.rank_by:
                    row[f"{metric} low"], row[f"{metric} high"] = one.interval(metric)
                    row[f"{metric} bias"] = one.bias(metric)
            if with_notices:
                row["notices"] = results.in_brief(one.notices)
            rows.append({**row, "error": one.error or ""})
        return rows

    @property
    def title(self) -> str:
        """The metric that ranks models, and the matched kind of geometry, such as "AP (bbox)"."""
        kind = next((one.iou_type for one in self.results if one.iou_type), None)
        return f"{self.rank_by} ({kind})" if kind else str(self.rank_by)

    def _repr_html_(self) -> str:
        tables = {"": self.table(), "Orders that do not survive": self.doubts(), "Not scored": self.errors()}
        return results.fragment(f"Leaderboard by {self.title}", tables, self.sentences())

    def to_frame(self) -> Any:
        """Return `rows` as a pandas data frame (extra ``frames``)."""
        return results.to_frame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the per-category values as plain values."""
        shown = self._shown
        tests: dict[str, Any] | None = None
        if self.tests is not None:
            tests = self.tests.to_dict()
            if self.discreet:
                del tests[self.tests.unit]
        return {
            "rank_by": self.rank_by,
            **({"splits": [split for split in self.splits if split not in self.hide]} if self.splits else {}),
            "tests": tests,
            **({"orders": self.orders} if self.orders else {}),
            "protocol": next((one.document["protocol"] for one in self.results if not one.error), None),
            "models": [
                {
                    "rank": row["rank"] or None,
                    "model": one.entry.name,
                    "source": one.entry.path,
                    "tags": dict(one.entry.tags),
                    "metrics": {metric: one[metric] for metric in shown if metric in one},
                    "intervals": one.intervals(shown),
                    "bias": {metric: one.bias(metric) for metric in one.intervals(shown)},
                    **({} if self.discreet else _behind(one, shown)),
                    "group": self.groups.get(one.entry.name),
                    "notices": dict(one.notices) if self.notices_may_be_shown else {},
                    "error": one.error,
                }
                for one, row in zip(self.results, self._rows, strict=True)
            ],
        }

    def table(self) -> list[dict[str, Any]]:
        """Return `rows` for display: without empty columns, without errors (see `errors`), and without metrics of
        classes if there are more than eight classes. If no file could be scored, there are no rows.
        """
        if all(one.error for one in self.results):
            return []
        rows = self._rows
        empty = {""}, {"", "–"}  # a dash marks a missing interval, for which `sentences` gives the reason
        ends = (f"{self.rank_by} low", f"{self.rank_by} high")
        shown = [
            name
            for name in (rows[0] if rows else ())
            if name != "error" and any(results.cell(row[name]) not in empty[name in ends] for row in rows)
        ]
        if self.metrics:
            return [{name: row[name] for name in shown} for row in rows]
        classes = [name for name in shown if name.startswith("AP_") and name != self.rank_by]
        hidden = set(classes) if len(classes) > 8 else set()
        if self.splits:  # show only the ranking metric, for each split and for all images
            metrics, ranked = set(self._shown), str(self.rank_by)
            plain = ranked.partition(":")[2] if split_of(ranked, self.splits) else ranked
            hidden = metrics - set(of_splits([plain], self.splits))
        return [{name: row[name] for name in shown if name not in hidden} for row in rows]

    def errors(self) -> list[dict[str, Any]]:
        """Return a row per file that could not be scored: ``model`` and ``error``."""
        return [{"model": one.entry.name, "error": one.error} for one in self.results if one.error]

    def notices(self) -> list[dict[str, Any]]:
        """Return a row per notice: ``model`` ("all" if every scored file has the notice) and the text as ``notice``."""
        if not self.notices_may_be_shown:
            return []
        scored = [one for one in self.results if not one.error]
        kind = scored[0].iou_type if scored else None
        return results.sentences({one.entry.name: one.notices for one in scored}, kind)

    def write(self, out: PathLike, *, in_haste: bool = False) -> list[str]:
        """Write ``leaderboard.csv``, ``.json``, ``.md``, ``.html`` and ``.parquet`` into a folder.

        Parameters
        ----------
        out : path
            The folder.
        in_haste : bool
            Whether the process is about to end. The HTML page and Parquet are then not written, because importing their
            packages takes time.

        Returns
        -------
        list of str
            A sentence for each file that was not written because a package is missing (jinja2 for the page, pyarrow for
            Parquet).
        """
        folder = make_folder(Path(out))
        text = page.markdown(self.table(), self.errors(), self.title, self.notices(), self.doubts())
        made = {
            "csv": _utf8(results.to_csv(self._rows)),
            "json": encoded(self.to_dict()),
            "md": _utf8(text),
        }
        missing = []
        pages = partial(self._html, self._links(folder))
        for name, make in () if in_haste else (("html", pages), ("parquet", self._parquet)):
            try:
                made[name] = make()
            except MissingDependencyError as error:
                missing.append(str(error))
        write_together({folder / f"leaderboard.{name}": data for name, data in made.items()})
        return missing

    def _links(self, folder: Path) -> dict[str, str]:
        """Return the relative path of each model's report in the folder ``reports`` beside the leaderboard, if any."""
        names = file_names([one.entry.name for one in self.results])
        there = {path.name for path in (folder / "reports").glob("*.html")}
        return {
            one.entry.name: f"reports/{quote(name)}.html"
            for one, name in zip(self.results, names, strict=True)
            if f"{name}.html" in there
        }

    def _html(self, links: Mapping[str, str] | None = None) -> bytes:
        scored = [one for one in self.results if not one.error]
        split = split_of(str(self.rank_by), self.splits)
        classes = _Classes.of(scored, split)
        of_category = next((one.of_category for one in scored), "AP")
        rows = self.table()
        ends = {f"{self.rank_by} low", f"{self.rank_by} high"}
        metrics = self._shown
        made = page.Board(
            rank_by=str(self.rank_by),
            rows=[{name: value for name, value in row.items() if name not in ends} for row in rows],
            metrics=metrics,
            intervals=[one.intervals(metrics) for one in self.results],
            level=next((one.bootstrap["level"] for one in scored if one.bootstrap), 0.95),
            errors=self.errors(),
            notices=self.notices(),
            models=[one.entry.name for one in scored],
            categories=[name for _, name in classes.keys],
            values=classes.values,
            of_category=of_category,
            objects=[] if self.discreet else classes.objects,
            curves=classes.curves,
            iou_type=scored[0].iou_type if scored else None,
            facts=self._facts(scored, split),
            files=[] if self.discreet else self._files(),
            sentences=self.sentences(),
            doubts=self.doubts() if self.orders else None,
            title=self.title,
            links=links or {},
            brief=self._brief(scored),
        )
        return _utf8(page.html(made))

    def _brief(self, scored: Sequence[FileResult]) -> list[str]:
        """Return the rules and the date for the page's header."""
        rules = str(scored[0].document.get("rules", "")) if scored else ""
        return [one for one in (rules, f"{len(self.results):,} models · {_now()} · detmap {detmap.__version__}") if one]

    def _facts(self, scored: Sequence[FileResult], split: str | None) -> list[tuple[str, str]]:
        """Return facts about the evaluation, such as protocol, split and numbers of images, as pairs of name and value."""
        if not scored:
            return []
        document = scored[0].document
        part = scored[0].part(split)
        told = [("Protocol", document.get("rules", document.get("protocol", {}).get("name", "")))]
        told += [("Split", split)] if split else []
        if not self.discreet:
            told += [("Images", f"{part['images']:,}")] if "images" in part else []
            rows = scored[0].rows(split)
            told += [("Classes", f"{len(rows):,}"), ("Objects", f"{sum(row['positives'] for row in rows):,}")]
            told += [("Ground truth", f"content {document['ground_truth']}")] if "ground_truth" in document else []
        failed = len(self.results) - len(scored)
        told += [("Models", f"{len(scored):,}" + (f"; {failed:,} could not be scored" if failed else ""))]
        return [(name, said) for name, said in [*told, ("Made", f"{_now()} with detmap {detmap.__version__}")] if said]

    def _files(self) -> list[dict[str, str]]:
        """Return the path of each model's file, and the hash of its content if known."""
        known = any("content" in one.identity for one in self.results)
        return [
            {
                "model": one.entry.name,
                "file": one.entry.path,
                **({"content": one.identity.get("content", "")} if known else {}),
            }
            for one in self.results
        ]

    def _parquet(self) -> bytes:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingDependencyError("pyarrow", "parquet", "leaderboard.parquet") from None
        rows = self._rows
        columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
        # pyarrow.array imports pandas if it is installed, which takes longer than scoring 20 files.
        made = [
            _numbers(pa, pa.int64(), [None if value == "" else value for value in values])
            if name == "rank"
            else _numbers(pa, pa.float64(), values)
            if not isinstance(values[0], str)
            else _strings(pa, [_utf8(value) for value in values])
            for name, values in columns.items()
        ]
        buffer = io.BytesIO()
        pq.write_table(pa.table(made, [_utf8(name).decode() for name in columns]), buffer)
        return buffer.getvalue()


def _numbers(pa: Any, kind: Any, values: list[Any]) -> Any:
    """Return numbers as an Arrow array of type `kind`; None becomes null."""
    valid = np.packbits([value is not None for value in values], bitorder="little")
    data = np.array([value or 0 for value in values], kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(values), [pa.py_buffer(valid), pa.py_buffer(data)])


def _strings(pa: Any, values: list[bytes]) -> Any:
    """Return UTF-8 strings as an Arrow array."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(values)))


@dataclass(frozen=True)
class _Classes:
    """Per-class values and mean curves of the best models, for the HTML page. Each document is unpacked only once."""

    #: Id and name of each class on which any model was scored.
    keys: list[tuple[Any, str]]
    #: ``values[i][k]`` is the value of model *i* on class *k*, for the best models only.
    values: list[list[float | None]]
    #: Number of objects of each class; empty unless known for all classes.
    objects: list[int]
    #: Mean curve of each of the best models, or None for a model without curve; at most `page.CURVES` curves.
    curves: list[dict[str, Any] | None]

    @classmethod
    def of(cls, scored: Sequence[FileResult], split: str | None) -> _Classes:
        """Read values and curves from the documents of models, the best first."""
        found: list[dict[tuple[Any, str], float | None]] = []
        every: dict[tuple[tuple[Any, str], ...], None] = {}
        objects: dict[tuple[Any, str], int] = {}
        curves: list[dict[str, Any] | None] = []
        drawn = 0
        for one in scored:
            part = one.part(split)
            rows = {(row["category_id"], str(row["category"])): row for row in part.get("per_category", ())}
            every[tuple(rows)] = None
            objects |= {key: int(row["positives"]) for key, row in rows.items() if "positives" in row}
            if len(found) < page.compared(len(rows)):
                found.append({key: row[one.of_category] for key, row in rows.items()})
            if drawn < page.CURVES:
                curves.append(part.get("curve"))
                drawn += curves[-1] is not None
        keys = _in_all(list(every))
        return cls(
            keys,
            [[own.get(key) for key in keys] for own in found],
            [] if len(objects) < len(keys) else [objects[key] for key in keys],
            curves,
        )


def _utf8(text: str) -> bytes:
    """Encode text as UTF-8; surrogates, which stand for undecodable bytes of file names, are escaped."""
    return text.encode("utf-8", "backslashreplace")


def metric_names(
    ground_truth: GroundTruth, protocol: Protocol, splits: Sequence[str] = (), hide: Sequence[str] = ()
) -> list[str]:
    """Return the names of the metrics of a result, in order; a leaderboard can be sorted by any of these metrics.

    Raises
    ------
    OptionError
        If a name to hide is not a split, or if all splits are hidden.
    """
    check_hidden(hide, splits)
    pairs = zip(ground_truth.categories.ids.tolist(), ground_truth.categories.names, strict=True)
    categories = tuple(pairs) if protocol.use_categories else ((None, "all"),)
    return of_splits(DetectionResult(Tally.empty(protocol, categories), threads=1), splits, hide)


def default_metric(known: Sequence[str], splits: Sequence[str]) -> str:
    """Return the default metric to rank by: the first metric or, with splits, the first metric on a split. If metrics
    have levels of difficulty, the default is the first metric of the level "moderate", as on KITTI's leaderboard.
    """
    able = [name for name in known if not splits or split_of(name, splits)]
    first = able[0] if able else "AP"
    moderate = first.removesuffix("_easy") + "_moderate"
    return moderate if first.endswith("_easy") and moderate in able else first


def _in_all(given: Sequence[Collection[T]]) -> list[T]:
    """Return the distinct keys of all collections, in the order of the longest collection, because shorter ones may
    skip classes.
    """
    return list(dict.fromkeys(key for one in sorted(given, key=len, reverse=True) for key in one))


def _place(one: FileResult, metric: str) -> tuple[int, float]:
    value = one.get(metric, float("nan"))
    return (2, 0.0) if one.error else (1, 0.0) if np.isnan(value) else (0, -value)


def _now() -> str:
    """Return the current time, or the time in the environment variable SOURCE_DATE_EPOCH, as text."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = int(given) if re.fullmatch("[0-9]{1,10}", given) else time.time()
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M} UTC"


def _behind(one: FileResult, metrics: Sequence[str]) -> dict[str, Any]:
    """Return the number of images or clusters on which each interval is based, and the reasons for missing intervals."""
    return {
        one.unit: {metric: one.images(metric) for metric in one.intervals(metrics)},
        "no_interval": {metric: one.no_interval(metric) for metric in metrics if one.no_interval(metric)},
    }
