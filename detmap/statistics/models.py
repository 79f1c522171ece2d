"""Compare models that are given as results, tallies, tables, files, or COCO's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, TypeGuard, cast, overload

from detmap.data.ids import Clusters
from detmap.detection.evaluate import match
from detmap.detection.given import Models, Truth, by_name, tables_of
from detmap.detection.protocols import PRESETS, AnyProtocol, Decisions, Protocol
from detmap.detection.tally import Tally
from detmap.errors import OptionError
from detmap.panoptic.tally import PanopticTally
from detmap.shapes import IouType
from detmap.statistics.bootstrap import HasTally, check_draws
from detmap.statistics.comparison import Comparison, compare_tallies
from detmap.statistics.draws import REPLICATES
from detmap.statistics.intervals import Method
from detmap.statistics.resampled import AnyTally
from detmap.statistics.tests import Correction

if TYPE_CHECKING:
    from typing_extensions import Unpack


class How(TypedDict, total=False):
    """Options of a comparison as keywords, for type checkers."""

    permutations: int | None
    metric: str | None
    level: float
    correction: Correction
    method: Method
    clusters: Clusters | None
    threads: int | None


class HowScored(Decisions, How, total=False):
    """Options of a comparison of models before scoring, as keywords, for type checkers."""

    replicates: int
    seed: int
    iou_type: IouType | None


@overload
def compare(
    models: Mapping[str, AnyTally | HasTally], replicates: int = REPLICATES, seed: int = 0, **how: Unpack[How]
) -> Comparison: ...


@overload
def compare(
    models: Truth, detections: Models, protocol: AnyProtocol = "coco", **how: Unpack[HowScored]
) -> Comparison: ...


def compare(  # type: ignore[misc]  # scored models have replicates and seed in place of detections and protocol
    models: Mapping[str, AnyTally | HasTally] | Truth,
    detections: Models | int | None = None,
    protocol: AnyProtocol | int = "coco",
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    iou_type: IouType | None = None,
    permutations: int | None = None,
    metric: str | None = None,
    level: float = 0.95,
    correction: Correction = "holm",
    method: Method = "t",
    clusters: Clusters | None = None,
    threads: int | None = None,
    **decisions: Unpack[Decisions],
) -> Comparison:
    """Test which models differ significantly, and estimate their differences.

    Differences are tested by exchanging the two models' detections on random images (see `detmap.statistics.permute`).
    Intervals of differences are derived from the test (`Permutations.interval`). Intervals of each model's metrics come
    from resampling the images (see `detmap.statistics.bootstrap`).

    Parameters
    ----------
    models : mapping of str to Tally, DetectionResult, PanopticTally or PanopticResult; or ground truth
        Two or more models by name, scored under one protocol on the same images and categories. Or the ground truth, as
        for `detmap.evaluate`: a table, a path, or COCO's dictionary.
    detections : sequence, or mapping by name, of tables, paths, or COCO's lists of results, optional
        The predictions of two or more models, if `models` is the ground truth. Unnamed files are named by the shortest
        distinct suffixes of their paths.
    protocol, iou_type, **decisions
        As for `detmap.evaluate`, if `models` is the ground truth.
    replicates, seed, method, clusters, threads
        See `bootstrap`; permutations are drawn from the same seed. With ``"bca"`` or ``"percentile"``, intervals of
        differences are computed by that method instead of the test, with the same draws for all models.
    permutations : int, optional
        The number of permutations; by default 5000, or more with many hypotheses.
    metric : str, optional
        A metric of the result, such as ``AR_100`` or ``AP_small``; by default the first metric, ``AP`` under most
        protocols.
    level : float
        The level of the confidence intervals; the significance level of the tests is ``1 - level``.
    correction : {"holm", "bh"}
        With Holm's method the probability of any false claim in a family is at most ``1 - level``. With Benjamini and
        Hochberg's method the expected share of false claims among the claims is at most ``1 - level``.

    Returns
    -------
    Comparison
        Differences with intervals and p-values; categories that changed; groups of models that do not differ
        significantly.

    Raises
    ------
    OptionError
        For fewer than two models, models scored with different images, categories or protocols, an unknown metric or
        correction, or fewer than 200 replicates.
    InputError
        For unusable files or tables, as for `detmap.evaluate`.

    Examples
    --------
    Call ``compare({"before": one, "after": other})`` with two results, or pass files::

        detmap.compare("instances_val.json", ["before.json", "after.json"])
    """
    how: dict[str, Any] = {
        "permutations": permutations,
        "metric": metric,
        "level": level,
        "correction": correction,
        "method": method,
        "clusters": clusters,
        "threads": threads,
    }
    if _are_scored(models):
        if iou_type is not None or decisions:
            raise OptionError("the models are scored already: decisions are those of detmap.evaluate or detmap.match")
        if isinstance(protocol, Protocol) or (protocol in PRESETS and protocol != "coco"):
            raise OptionError("the models are scored already: the protocol is that of detmap.evaluate or detmap.match")
        for name, twice in (
            ("replicates", detections is not None and replicates != REPLICATES),
            ("seed", isinstance(protocol, int) and seed != 0),
        ):
            if twice:
                raise OptionError(f"{name} is given twice, by its place and by its name")
        given: Any = (replicates if detections is None else detections, seed if protocol == "coco" else protocol)
        return compare_tallies(models, *given, **how)
    if detections is None or isinstance(detections, int) or isinstance(protocol, int):
        raise OptionError(f"what is to be compared is not scored: {_CALLS}")
    named = by_name(detections)
    if any(hasattr(one, "tally") for one in (models, *named.values())):
        raise OptionError(f"results are given by name, without ground truth: {_CALLS}")
    if len(named) < 2:
        raise OptionError(f"a comparison needs two models or more: {_CALLS}")
    check_draws(replicates, seed, level)
    truth, tallies = cast("Truth", models), {}
    for name, one in named.items():
        truth, found = tables_of(truth, one, protocol, iou_type, decisions.get("levels"))
        tallies[name] = match(truth, found, protocol, iou_type=iou_type, threads=threads, **decisions)
        del found
    return compare_tallies(tallies, replicates, seed, **how)


#: The two ways to call `compare`, for error messages.
_CALLS = "compare(ground_truth, [detections, others]), or compare({'a': result, 'b': other})"


def _are_scored(models: object) -> TypeGuard[Mapping[str, AnyTally | HasTally]]:
    """Return whether `models` is a mapping of names to results or tallies, rather than ground truth."""
    if not isinstance(models, Mapping) or hasattr(models, "tally"):
        return False
    return all(isinstance(one, Tally | PanopticTally) or hasattr(one, "tally") for one in models.values())
