"""Reports on detectors: score, diagnose, check and compare, then write the page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detmap.cards import input_of, table_digest
from detmap.checks import check
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.given import Found, Models, Truth, by_name, tables_of
from detmap.detection.protocols import PRESETS, Decisions, Protocol, resolve
from detmap.detection.scored_kinds import scored_kind
from detmap.diagnostics import diagnose
from detmap.errors import DetmapError, OptionError
from detmap.evaluation import evaluate
from detmap.explanations import survives, under_presets
from detmap.formats.files import check_outputs
from detmap.reading.opening import Held
from detmap.reading.sources import held
from detmap.reports.diagnosis import Model, html
from detmap.reports.page import check_installed, encoded
from detmap.reports.pictures import Pictures
from detmap.shapes import find
from detmap.statistics import bootstrap as resampled
from detmap.statistics.intervals import Method
from detmap.statistics.models import compare
from detmap.statistics.result_intervals import check_asked
from detmap.statistics.tests import Correction
from detmap.system.whole_files import write

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from detmap.explanations import Survival
    from detmap.statistics import Comparison

#: Maximum number of detections of a model for which the rules that change its AP are identified.
REASONS = 100_000
#: Maximum number of detections of all models together for which the order of models is tested under other rules.
SURVIVAL = 200_000


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a report: the parameters of `report` except data and rules. No intervals are computed with 0
    replicates.
    """

    iou: float
    score: float | None
    pictures: Pictures | None
    attributes: Any
    replicates: int
    seed: int
    level: float
    method: Method
    permutations: int | None
    correction: Correction
    all_intervals: bool
    threads: int | None


def report(
    ground_truth: Truth,
    detections: Found | Models,
    path: str | os.PathLike[str] = "report.html",
    protocol: str | Protocol = "coco",
    *,
    iou_type: str | None = None,
    iou: float = 0.5,
    score: float | None = None,
    images: str | os.PathLike[str] | None = None,
    attributes: Any = None,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    method: Method = "t",
    permutations: int | None = None,
    correction: Correction = "holm",
    all_intervals: bool = False,
    threads: int | None = None,
    **decisions: Unpack[Decisions],
) -> Path:
    """Write a self-contained HTML page about one detector, or several side by side: what was evaluated, AP with its
    interval, what goes wrong, and where to look. ``detmap report`` writes the same page.

    Parameters
    ----------
    ground_truth : GroundTruth, path, or mapping
        The objects, as for `detmap.evaluate`.
    detections : Detections, path, or sequence of mappings; or several of these
        The detections, as for `detmap.evaluate`. Several models are given as a mapping from names, such as ``{"before":
        one, "after": other}``, or as a sequence; in a sequence, models are named after their files.
    path : path
        Path of the page; an existing file is replaced.
    protocol, iou_type, **decisions
        As for `detmap.evaluate`.
    iou : float
        The IoU threshold for errors.
    score : float, optional
        Score threshold of the detections that users would see; by default the threshold with the best F1 over all classes.
    images : path, optional
        A folder with the images; the worst images and the most suspicious labels are then shown (extra ``images``).
    attributes : path or table, optional
        Attributes of images or objects, for slices; see the part ``slices`` of `detmap.Diagnosis`.
    bootstrap, seed, level, method
        Options of the intervals, as for `detmap.evaluate`; ``bootstrap=0`` disables intervals and tests.
    permutations, correction
        Options of the tests of several models, as for `detmap.compare`.
    all_intervals : bool
        Also compute intervals of score thresholds and of slices, which takes longer.
    threads : int, optional
        Number of threads; one per processor by default.

    Returns
    -------
    pathlib.Path
        Path of the page.

    Raises
    ------
    MissingDependencyError
        Without jinja2 (extra ``report``).
    InputError, OptionError
        As `detmap.evaluate` and `detmap.diagnose` do, and if the page would overwrite an input.
    """
    check_installed("detmap.report")
    named = by_name(detections)
    if not named:
        raise OptionError("a report needs a model: report(ground_truth, detections, 'report.html')")
    paths = [one for one in (ground_truth, *named.values(), attributes) if isinstance(one, str | os.PathLike)]
    check_outputs([path], paths)
    if bootstrap:
        check_asked(bootstrap, seed, method, level)
    settings = Settings(
        iou=iou,
        score=score,
        pictures=None if images is None else Pictures(images),
        attributes=attributes,
        replicates=bootstrap,
        seed=seed,
        level=level,
        method=method,
        permutations=permutations,
        correction=correction,
        all_intervals=all_intervals,
        threads=threads,
    )
    name, first = next(iter(named.items()))
    sources = _source_of(ground_truth), _source_of(first)
    truth, found = tables_of(*sources, protocol, iou_type, decisions.get("levels"))
    kind = scored_kind(protocol, iou_type, truth, found)
    decided = resolve(protocol, iou_type=kind, caller=report, **decisions)
    inputs = [_input_of("ground_truth", sources[0], truth), _input_of("detections", sources[1], found)]

    def entries() -> Iterator[tuple[str, Detections]]:
        yield name, found
        for other, given in list(named.items())[1:]:
            source = _source_of(given)
            _, table = tables_of(truth, source, decided, decided.iou_type)
            inputs.append(_input_of("detections", source, table))
            yield other, table
        if isinstance(attributes, str | os.PathLike):
            inputs.append(input_of("attributes", os.fspath(attributes), attributes))

    made = page_of(truth, entries(), decided, inputs, settings)
    write(os.fspath(path), encoded(made))
    return Path(path)


def _source_of(given: Any) -> Any:
    """Return a path as a source that can be read twice, and any other value unchanged."""
    return held(given) if isinstance(given, str | os.PathLike) else given


def _input_of(role: str, given: Any, table: GroundTruth | Detections) -> dict[str, str]:
    """Return role, name and SHA-256 of an input; the hash is that of the file, or of the content of a table in memory."""
    if isinstance(given, str | os.PathLike | Held):
        return input_of(role, given.name if isinstance(given, Held) else os.fspath(given), given)
    source = os.path.basename(table.source)
    return {"role": role, "name": f"in memory ({source})", "sha256": table_digest(table)}


def page_of(
    ground_truth: GroundTruth,
    entries: Iterable[tuple[str, Detections]],
    protocol: Protocol,
    inputs: Sequence[Mapping[str, str]],
    settings: Settings,
    stage: Callable[[str], None] = lambda text: None,
) -> str:
    """Return the page about the models in `entries`. `inputs` is read after all models, so `entries` may extend it."""
    unit = find(protocol.iou_type).unit
    if settings.pictures is not None and unit != "pixels":
        raise OptionError(
            f"images (--images) cannot be shown: {protocol.iou_type} is in {unit}, not in pixels of images"
        )
    models = [_model_of(name, ground_truth, found, protocol, settings, stage) for name, found in entries]
    comparison, survival = None, None
    if settings.replicates:
        stage("drawing images anew")
        comparison = _resample(models, settings)
    if len(models) > 1:
        survival = _survives(models, settings, stage)
    stage("writing the page")
    return html(
        models,
        inputs,
        datetime.now(timezone.utc),
        comparison=comparison,
        survives=survival,
        pictures=settings.pictures,
        level=settings.level,
    )


def _model_of(
    name: str,
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    settings: Settings,
    stage: Callable[[str], None],
) -> Model:
    """Score, diagnose and check a model."""
    threads = settings.threads
    stage(f"matching {name}")
    made = diagnose(
        ground_truth,
        detections,
        protocol,
        iou=settings.iou,
        score=settings.score,
        replicates=settings.replicates if settings.all_intervals else 0,
        seed=settings.seed,
        threads=threads,
    )
    made.progress = stage
    result = evaluate(ground_truth, detections, protocol, threads=threads)
    stage(f"checking {name}")
    checked = check(ground_truth, detections, iou_type=protocol.iou_type)
    if protocol.max_dets[-1] != PRESETS["coco"].max_dets[-1]:  # the check assumes COCO's limit of detections per image
        kept = tuple(one for one in checked.findings if one.code != "beyond_cap")
        checked = replace(checked, findings=kept)
    stage(f"scoring {name} under other conventions")
    reasons = len(detections) <= REASONS
    under = under_presets(ground_truth, detections, protocol, reasons=reasons, threads=threads)
    of_slices = {} if settings.attributes is None else {"slices": {"attributes": settings.attributes}}
    return Model(name, made, result, None, checked, of_slices, under)


def _resample(models: Sequence[Model], settings: Settings) -> Comparison | None:
    """Compute the intervals of each model; return a comparison if there are several models, else None."""
    draws: dict[str, Any] = {"seed": settings.seed, "method": settings.method, "threads": settings.threads}
    if len(models) == 1:
        models[0].bootstrap = resampled(models[0].result, settings.replicates, **draws)
        return None
    made = compare(
        {model.name: model.result for model in models},
        replicates=settings.replicates,
        level=settings.level,
        permutations=settings.permutations,
        correction=settings.correction,
        **draws,
    )
    for model in models:
        model.bootstrap = made.bootstraps[model.name]
    return made


def _survives(models: Sequence[Model], settings: Settings, stage: Callable[[str], None]) -> Survival | str | None:
    """Test whether the order of models holds under other rules, or return the reason why this is not tested."""
    count = sum(len(model.diagnosis.detections) for model in models)
    if not settings.replicates or count > SURVIVAL:
        why = "Without draws of images" if not settings.replicates else f"For {count:,} detections"
        return f"{why} this is left out: detmap compare --under all tells it."
    stage("trying other rules")
    first = models[0].diagnosis
    try:
        return survives(
            first.ground_truth,
            {model.name: model.diagnosis.detections for model in models},
            first.protocol,
            replicates=settings.replicates,
            seed=settings.seed,
            level=settings.level,
            threads=settings.threads,
        )
    except DetmapError as error:
        return f"This cannot be told: {error}."
