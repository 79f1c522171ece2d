"""Many files of panoptic segmentation against one ground truth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detmap.batch import saving
from detmap.batch.finding import Entry, PathLike, file_names, find
from detmap.batch.scoring import FileResult, make_folder
from detmap.batch.workers import one_line
from detmap.data.segments import SegmentedImages
from detmap.errors import OptionError
from detmap.formats.coco.panoptic import read_panoptic
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
    """Files of predictions against one ground truth.

    Parameters
    ----------
    ground_truth : SegmentedImages
        What there is to find, see `detmap.panoptic.read_panoptic`.
    predictions : iterable of path or Entry
        JSON files, patterns, folders or manifests, see `detmap.batch.find`.
    folders : sequence of path, optional
        The folder of label maps of each file; by default those that are named like the files.
    rules : Rules
        How they are scored.
    threads : int, optional
        One per processor by default.

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
    ) -> None:
        self.entries = find(predictions)
        self._truth, self._rules, self._threads = ground_truth, rules or Rules(), threads
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
            Where it cannot be scored.
        """
        found = read_panoptic(entry.path, self._folders.get(entry.name), predictions=True)
        made = PanopticResult(match(self._truth, found, self._rules, self._threads))
        self._tallies[entry.name] = made.tally
        return made

    def score(
        self,
        replicates: int = 0,
        seed: int = 0,
        level: float = 0.95,
        *,
        method: Method = "t",
        out: PathLike | None = None,
    ) -> Iterator[FileResult]:
        """Score every file.

        Parameters
        ----------
        replicates, seed, level, method
            See `detmap.statistics.bootstrap`; 0 replicates make no intervals.
        out : path, optional
            A folder, into which ``results/NAME.json`` of each file is written.

        Yields
        ------
        FileResult
            One per file, in their order. A file that cannot be scored has an `error`; it stops nothing.
        """
        folder = None if out is None else make_folder(Path(out) / "results")
        for entry, name in zip(self.entries, file_names([one.name for one in self.entries]), strict=True):
            document: dict[str, Any] = {"name": entry.name, "source": entry.path}
            try:
                result = self.result(entry)
            except Exception as error:
                document |= {"error": one_line(error)}
            else:
                document |= {**result.to_dict(), "rules": self._rules.describe()}
                if replicates:
                    document["bootstrap"] = bootstrap(result, replicates, seed, method=method).to_dict(level)
            plain = without_nan(document)
            if folder is not None:
                write_atomically(folder / f"{name}.json", saving.sealed(plain))
            yield FileResult(entry, plain)

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
        """Test every pair of files that were scored; None where there are fewer than two.

        See `detmap.batch.compare_files` for the parameters.
        """
        name = metric or "PQ"
        scored = [one for one in results if not one.error and not math.isnan(one.get(name, math.nan))]
        scored.sort(key=lambda one: (-one[name], one.entry.name))
        names = [one.entry.name for one in scored]
        if len(names) < 2:
            return None
        made = pair_tests(self._tallies[names[0]], names, name, permutations, level, correction)
        for first, second in itertools.combinations(names, 2) if made.could_tell else ():
            pair: Mapping[str, PanopticTally] = self._tallies
            test = permute(pair[first], pair[second], made.permutations, seed, name)
            made.p[first, second] = test.p_value(name)
        return made
