"""Score many prediction files of panoptic segmentation against one ground truth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detmap.batch import saving, stamps
from detmap.batch.finding import Entry, PathLike, file_names, find
from detmap.batch.limited_process import Limits, close, run
from detmap.batch.scoring import FileResult, digest, documents, make_folder
from detmap.batch.workers import one_line
from detmap.data.segments import SegmentedImages
from detmap.errors import OptionError
from detmap.formats.coco.panoptic import content_of, read_panoptic
from detmap.panoptic.matching import match
from detmap.panoptic.result import PanopticResult
from detmap.panoptic.rules import Rules
from detmap.panoptic.tally import PanopticTally
from detmap.results import without_nan
from detmap.statistics import PairTests, bootstrap, pair_tests, permute
from detmap.statistics.intervals import Method
from detmap.system.whole_files import write_atomically

if TYPE_CHECKING:
    from detmap.statistics.tests import Correction


class PanopticFiles:
    """Prediction files of panoptic segmentation, to be scored against one ground truth.

    Parameters
    ----------
    ground_truth : SegmentedImages
        The ground truth, see `detmap.panoptic.read_panoptic`.
    predictions : iterable of path or Entry
        JSON files, patterns, folders or manifests, see `detmap.batch.find`.
    folders : sequence of path, optional
        The folder of label maps of each file; by default the path of the file without its suffix.
    rules : Rules
        The decisions of the evaluation.
    threads : int, optional
        Number of threads, by default one per processor.
    limits : Limits, optional
        Limits of time and memory for each file, which is then scored in a separate process.

    Attributes
    ----------
    entries : list of Entry
        The files, with their names.
    """

    def __init__(
        self,
        ground_truth: SegmentedImages,
        predictions: Sequence[PathLike | Entry],
        folders: Sequence[PathLike] | None = None,
        rules: Rules | None = None,
        threads: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.entries = find(predictions)
        self._truth, self._rules, self._threads, self._limits = ground_truth, rules or Rules(), threads, limits
        if folders is not None and len(folders) != len(self.entries):
            raise OptionError(
                f"there are {len(folders)} folders of label maps (--pred-folder) for {len(self.entries)} files: give one of "
                "each, or none"
            )
        self._folders = dict(zip((one.name for one in self.entries), folders or (), strict=False))
        self._tallies: dict[str, PanopticTally] = {}

    def result(self, entry: Entry) -> PanopticResult:
        """Score a file.

        Raises
        ------
        DetmapError
            If the file cannot be scored.
        """
        given: tuple[Any, ...] = (entry.path, self._folders.get(entry.name), self._rules, self._threads)
        if self._limits is None:
            tally = _match(self._truth, *given)
        else:
            tally = run(self._limits, _prepare, _match, (self._truth,), given)
        self._tallies[entry.name] = tally
        return PanopticResult(tally)

    def _key(self, entry: Entry, truth: str, options: Sequence[Any]) -> str:
        """Return the key by which a later run finds a file's result: a digest of everything that determines the
        result.
        """
        found = content_of(read_panoptic(entry.path, self._folders.get(entry.name), predictions=True))
        return digest([stamps.code(confidence=bool(options)), truth, found, self._rules.to_dict(), list(options)])

    def score(
        self,
        replicates: int = 0,
        seed: int = 0,
        level: float = 0.95,
        *,
        method: Method = "t",
        out: PathLike | None = None,
        resume: bool = False,
    ) -> Iterator[FileResult]:
        """Score every file.

        Parameters
        ----------
        replicates, seed, level, method
            See `detmap.statistics.bootstrap`; with 0 replicates there are no intervals.
        out : path, optional
            A folder into which ``results/NAME.json`` is written for each file.
        resume : bool
            Reuse a result in `out` if content, label maps, ground truth, options and scoring code have not changed.

        Yields
        ------
        FileResult
            One per file, in the order of `entries`. For a file that cannot be scored, the result has an `error`, and the
            other files are still scored.
        """
        folder = None if out is None else make_folder(Path(out) / "results")
        done = documents(folder) if folder is not None and resume else {}
        truth = "" if folder is None else content_of(self._truth)
        draws = (replicates, seed, level, method) if replicates else ()
        try:
            for entry, name in zip(self.entries, file_names([one.name for one in self.entries]), strict=True):
                document: dict[str, Any] = {"name": entry.name, "source": entry.path}
                try:
                    key = {} if folder is None else {"key": self._key(entry, truth, draws)}
                    if key and key["key"] in done:
                        before = saving.unpacked(next(iter(done[key["key"]].values())))
                        document = {**document, **before, **document}
                    else:
                        result = self.result(entry)
                        document |= {**key, **result.to_dict(), "rules": self._rules.describe()}
                        if replicates:
                            document["bootstrap"] = bootstrap(result, replicates, seed, method=method).to_dict(level)
                except Exception as error:
                    document |= {"error": one_line(error)}
                plain = without_nan(document)
                if folder is not None:
                    write_atomically(folder / f"{name}.json", saving.sealed(plain))
                yield FileResult(entry, plain)
        finally:
            close()

    def compare(
        self,
        results: Sequence[FileResult],
        *,
        metric: str | None = None,
        permutations: int | None = None,
        seed: int = 0,
        level: float = 0.95,
        correction: Correction = "holm",
    ) -> PairTests | None:
        """Test every pair of scored files; return None for fewer than two scored files.

        See `detmap.batch.compare_files` for the parameters.
        """
        name = metric or "PQ"
        scored = [one for one in results if not one.error and not math.isnan(one.get(name, math.nan))]
        scored.sort(key=lambda one: (-one[name], one.entry.name))
        names = [one.entry.name for one in scored]
        for one in scored if len(names) > 1 else ():
            if one.entry.name not in self._tallies:  # the result is from an earlier run, which left no tally
                self.result(one.entry)
        close()
        if len(names) < 2:
            return None
        made = pair_tests(self._tallies[names[0]], names, name, permutations, level, correction)
        for first, second in itertools.combinations(names, 2) if made.could_tell else ():
            pair: Mapping[str, PanopticTally] = self._tallies
            test = permute(pair[first], pair[second], made.permutations, seed, name)
            made.p[first, second] = test.p_value(name)
        return made


def _match(
    truth: SegmentedImages, path: PathLike, folder: PathLike | None, rules: Rules, threads: int | None
) -> PanopticTally:
    return match(truth, read_panoptic(path, folder, predictions=True), rules, threads)


def _prepare(truth: SegmentedImages) -> None:
    """Read the first label map, which loads libraries and compiled kernels before the first file is scored."""
    truth.label_maps([0])()
