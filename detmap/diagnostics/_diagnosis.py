"""A diagnosis holds ground truth, detections and matches, from which its parts are computed on request."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.notices import describe
from detmap.detection.arrangement import Arrangement, least_near
from detmap.detection.given import Found, Truth, tables_of
from detmap.detection.matches import Matches, matches_of
from detmap.detection.measures import outside_of
from detmap.detection.metric_names import distinct_names
from detmap.detection.protocols import AnyProtocol, Decisions, resolve
from detmap.detection.scored_kinds import asked_protocol, scored_kind
from detmap.detection.temporal import listing
from detmap.detection.zero_ids import OTHER, effect
from detmap.diagnostics._pairs import BACKGROUND, Overlaps, overlaps
from detmap.diagnostics._ranking import Cuts, Ranking, mean
from detmap.diagnostics._registry import PARTS, Finding, Part, number
from detmap.errors import OptionError
from detmap.results import fragment, to_frame, without_nan
from detmap.shapes import IouType, find

if TYPE_CHECKING:
    from typing_extensions import Unpack


def diagnose(
    ground_truth: Truth,
    detections: Found,
    protocol: AnyProtocol = "coco",
    *,
    iou: float = 0.5,
    score: float | None = None,
    replicates: int = 0,
    seed: int = 0,
    iou_type: IouType | None = None,
    threads: int | None = None,
    **decisions: Unpack[Decisions],
) -> Diagnosis:
    """Find the errors of a detector, and the gain in AP from fixing each kind of error, at one IoU threshold.

    Parameters
    ----------
    ground_truth, detections
        Tables, paths, or COCO's JSON, as for `detmap.evaluate`.
    protocol : {"coco", "voc2007", "voc2012"} or Protocol
        The rules of matching, except the IoU threshold, as for `detmap.match_pairs`.
    iou : float
        The IoU threshold, above 0.1 and at most 1. Every AP of a diagnosis is AP at this threshold.
    score : float, optional
        Minimum score of the detections that a user of the detector would see, used by `confusion` and `suspects`. By
        default the score with the best F1 of all classes together.
    replicates : int
        Number of bootstrap draws of images for confidence intervals; 200 or more, 0 for none.
    seed : int
        The seed of these draws.
    iou_type : {"bbox", "segm", "keypoints", "boundary", "rotated", "probiou"}, optional
        The kind of geometry that is matched, as for `detmap.evaluate`.
    threads : int, optional
        Number of threads, by default one per processor. The result does not depend on this number.
    **decisions
        Any other decision of `Protocol`, as for `detmap.evaluate`.

    Returns
    -------
    Diagnosis
        Each part is computed on request by a method, such as ``diagnosis.tide()``.

    Raises
    ------
    InputError
        For swapped arguments, or detections on unknown images.
    OptionError
        For invalid options, or decisions that cannot be combined.
    """
    return Diagnosis(
        ground_truth,
        detections,
        protocol,
        iou=iou,
        score=score,
        replicates=replicates,
        seed=seed,
        iou_type=iou_type,
        threads=threads,
        **decisions,
    )


class Diagnosis:
    """A diagnosis with its parts; see `diagnose` for the parameters.

    Each part is a method: ``tide``, ``confusion``, ``calibration``, ``lrp``, ``operating_points``, ``slices``,
    ``images``, ``suspects``, ``cuts``, and the parts of plug-ins. Each method returns a `detmap.diagnostics.Finding`,
    which is computed once per set of options.

    Attributes
    ----------
    ground_truth, detections, protocol, iou, replicates, seed, threads
        As given.
    progress : callable, or None
        Called with a sentence before each long step of a part.
    """

    def __init__(
        self,
        ground_truth: Truth,
        detections: Found,
        protocol: AnyProtocol = "coco",
        *,
        iou: float = 0.5,
        score: float | None = None,
        replicates: int = 0,
        seed: int = 0,
        iou_type: IouType | None = None,
        threads: int | None = None,
        **decisions: Unpack[Decisions],
    ) -> None:
        truth, found = tables_of(ground_truth, detections, protocol, iou_type, decisions.get("levels"))
        protocol = asked_protocol(protocol, truth)
        kind = scored_kind(protocol, iou_type, truth, found)
        self.protocol = resolve(protocol, iou_type=kind, caller=Diagnosis, **decisions)
        self.ground_truth = listing(truth, found, self.protocol)
        self.detections = found.on_images_of(self.ground_truth)
        self.iou = number("iou", iou)
        if not BACKGROUND < self.iou <= (math.inf if find(self.protocol.iou_type).falls else 1):
            raise OptionError(f"iou must be above {BACKGROUND} and at most 1, not {iou!r}")
        self._score = None if score is None else number("score", score)
        if replicates:
            from detmap.statistics.draws import check_replicates, check_seed

            check_replicates(replicates)
            check_seed(seed)
        self.replicates, self.seed, self.threads = int(replicates), seed, threads
        self.progress: Callable[[str], None] | None = None
        self._findings: dict[Any, Finding] = {}

    # -------------------------------------------------------------------------------------------------- inputs of parts
    # A position is an index in the arranged tables, whose detections and objects are sorted by image and category.

    @cached_property
    def arranged(self) -> Arrangement:
        """Both tables arranged for matching."""
        return Arrangement.of(self.ground_truth, self.detections, self.protocol, threads=self.threads)

    @cached_property
    def matches(self) -> Matches:
        """The matches at the threshold. They include the object that each detection overlaps most, in the detection's
        category and in other categories.
        """
        return matches_of(self.arranged, self.iou, self.protocol.area_ranges[0][0], BACKGROUND, self.threads)

    def matched_at(self, iou: float, area: str | None = None) -> Matches:
        """Return the matches at another threshold or in another area range."""
        whole = self.protocol.area_ranges[0][0]
        if iou == self.iou and area in (None, whole):
            return self.matches
        return matches_of(self.arranged, iou, whole if area is None else area, threads=self.threads)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Mask of the positives, by position: the objects in the area range that are not ignored."""
        objects = self.arranged.objects
        return np.asarray(~(objects.ignored | outside_of(objects.measures, self.arranged.ranges)[:, 0]))

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """For each row of the ground-truth table, the object's position in `arranged`; -1 if the object is not evaluated."""
        places = np.full(len(self.ground_truth), -1)
        places[self.arranged.truth.order] = np.arange(self.arranged.truth.order.size)
        return places

    @cached_property
    def found(self) -> NDArray[np.int64]:
        """The position of the detection that matches each object, by position of the object; -1 if the object is not
        found.
        """
        matches, found = self.matches, np.full(self.counted.size, -1)
        hits = np.flatnonzero(matches.outcome == 1)
        found[self.places[matches.ground_truth[hits]]] = hits
        return found

    @cached_property
    def positives(self) -> NDArray[np.int64]:
        """The number of positives of each category, shape (K,)."""
        codes = self.arranged.truth.category[self.counted]
        return np.bincount(codes, minlength=len(self.matches.categories))

    @cached_property
    def ranking(self) -> Ranking:
        """The matches in ranking order."""
        return Ranking.of(self.matches, self.positives)

    @cached_property
    def cuts_of_all(self) -> Cuts:
        """Precision and recall of all categories together at every score."""
        return Cuts.of(self.matches.score, self.matches.outcome, int(self.positives.sum()))

    @cached_property
    def overlaps(self) -> Overlaps:
        """All pairs of a detection and an object on one image with an overlap of at least 0.1 or, for kinds matched by
        distance, with a distance of at most ten times the threshold. The categories of a pair may differ.
        """
        return overlaps(self.arranged, self.floor, self.threads)

    @property
    def floor(self) -> float:
        """Minimum overlap of a pair in `overlaps`."""
        return least_near(self.protocol, self.iou, BACKGROUND)

    @cached_property
    def categories(self) -> list[str]:
        """Distinct names of the categories."""
        return distinct_names(self.matches.categories)

    @cached_property
    def notices(self) -> dict[str, int]:
        """Notices about the input. If an annotation has the id 0, a notice states AP twice: with the object matched
        like other objects, and with the object always missed, as in pycocotools.
        """
        noted = dict(self.matches.notices)
        if self.arranged.zero is not None:
            here = self.protocol.id_zero
            protocol = replace(self.protocol, id_zero=OTHER[here])
            other = Diagnosis(self.ground_truth, self.detections, protocol, iou=self.iou, threads=self.threads)
            noted |= effect(f"AP{100 * self.iou:.3g}", here, self.ap, other.ap)
        return noted

    @property
    def ap(self) -> float:
        """AP at the threshold: the mean over categories that have objects."""
        return mean(self.ranking.ap)

    @property
    def at(self) -> str:
        """The threshold in words, such as "IoU 0.5", or for a distance "centre-distance 2 m"."""
        return self.named(self.iou)

    def named(self, threshold: float) -> str:
        """Return a threshold in words, in the form of `at`."""
        return find(self.protocol.iou_type).at(threshold)

    @property
    def score_is_given(self) -> bool:
        """Whether `score` was given."""
        return self._score is not None

    @property
    def score(self) -> float:
        """The given score, or the score at which F1 of all classes together is best; NaN without positives or detections."""
        return self._score if self._score is not None else self.cuts_of_all.row(self.cuts_of_all.best())["score"]

    @property
    def scene(self) -> str:
        """The noun for the items that image ids identify: "image", "video" or "sample"."""
        return find(self.protocol.iou_type).scene

    def image_name(self, image: int) -> Any:
        """Return the file name of the image at an index of ``matches.image_ids``, or its id if the file is unknown."""
        names, identity = self.ground_truth.images.names, self.matches.image_ids[image].item()
        return (names[image] if names else "") or identity

    def corners(self, side: str) -> NDArray[np.float64]:
        """Return x1, y1, x2, y2 of the box around each object or detection; `side` is the table, "ground_truth" or
        "detections".
        """
        bounds = getattr(self, side).shape(self.protocol.iou_type).bounds()
        table = np.array(bounds.table)
        if bounds.sizes:
            table[:, 2:] += table[:, :2]
        return table

    def say(self, text: str) -> None:
        """Report the current step to `progress`."""
        if self.progress is not None:
            self.progress(text)

    # ------------------------------------------------------------------------------------------------------------- parts

    def part(self, name: str, **options: Any) -> Finding:
        """Return the finding of a part. It is cached unless an option names a file, because the file can change.

        Raises
        ------
        OptionError
            For an unknown part, or an invalid option of the part.
        """
        found = PARTS.find(name)
        if any(options.get(one) is not None for one in found.files):
            return self._make(found, options)
        key: Any = (name, tuple(sorted(options.items())))
        try:
            known = self._findings.get(key)
        except TypeError:  # an option is not hashable, such as an array
            return self._make(found, options)
        if known is None:
            known = self._findings[key] = self._make(found, options)
        return known

    def _make(self, part: Part, options: dict[str, Any]) -> Finding:
        self.say(part.says)
        return part.make(self, **options)

    def __getattr__(self, name: str) -> Any:
        """Return the method that computes the part `name`."""
        if not name.startswith("_"):
            found = PARTS.get(name)
            if found is not None:
                made = partial(self.part, name)
                made.__doc__ = found.make.__doc__
                return made
        raise AttributeError(f"no attribute or part {name!r}; parts: {', '.join(PARTS)}")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *PARTS])

    # ----------------------------------------------------------------------------------------------------------- showing

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each metric of every part: ``part``, ``metric`` and ``value``."""
        return [
            {"part": name, "metric": metric, "value": value}
            for name in PARTS
            for metric, value in self.part(name).items()
        ]

    def to_frame(self) -> Any:
        """Return `rows` as a pandas data frame (extra ``frames``)."""
        return to_frame(self.rows())

    def to_dict(self, parts: Iterable[str] | None = None) -> dict[str, Any]:
        """Return the protocol and the findings of `parts`, by default all, as plain values (NaN where undefined)."""
        names = tuple(PARTS) if parts is None else tuple(parts)
        return {
            "protocol": self.protocol.to_dict(),
            "iou": self.iou,
            "score": self.score,
            "AP": self.ap,
            "images": int(self.matches.image_ids.size),
            "categories": len(self.matches.categories),
            "objects": int(self.positives.sum()),
            "detections": len(self.matches),
            "notices": dict(self.notices),
            "parts": {name: self.part(name).to_dict() for name in names},
        }

    def to_json(self, parts: Iterable[str] | None = None, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON; undefined values become ``null``."""
        return json.dumps(without_nan(self.to_dict(parts)), indent=indent, allow_nan=False)

    def _repr_html_(self) -> str:
        rows = [{"part": f".{name}()", "what it finds": part.says} for name, part in PARTS.items()]
        said = describe(self.notices, self.protocol.iou_type)
        return fragment(repr(self).partition(", parts")[0].lstrip("<"), {"": rows}, said)

    def __repr__(self) -> str:
        return f"<Diagnosis: AP {self.ap:.4f} at {self.at} under {self.protocol.title}, parts: {', '.join(PARTS)}>"
