"""Protocols: the decisions of a benchmark on thresholds, area ranges, caps, matching, interpolation and ties; named
presets.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, TypedDict

import numpy as np

from detmap import choices, decisions
from detmap.choices import UNBOUNDED
from detmap.choices import UNLIMITED as UNLIMITED
from detmap.choices import parse_thresholds as parse_thresholds
from detmap.decisions import YES_OR_NO, Flag, decision
from detmap.detection import federated, group_boxes, matching_rules, poses, ranges, rematching, temporal, true_positives
from detmap.detection import file_decisions as in_files
from detmap.detection.matching_rules import BY_FILE as BY_FILE
from detmap.detection.matching_rules import Matching, Ties
from detmap.errors import OptionError, did_you_mean, shorten
from detmap.hits import (
    CLIPPED,
    ELEVEN,
    GRIDS,
    INTERPOLATIONS,
    LINEAR,
    MATLAB_GRID,
    PAIRWISE,
    SAMPLED,
    Interpolation,
    Linear,
    Sampled,
)
from detmap.plugins import PluginName, Registry, register
from detmap.reading.options import options_of
from detmap.shapes import KINDS, IouType, find
from detmap.shapes.kinds import BOXES, DISTANCE, KEYPOINTS, ROTATED, TEMPORAL, TEMPORAL_SPAN, TRACKS, WHOLE_BODIES

AreaRanges = Mapping[str, Sequence[float | str] | str]
Levels = Mapping[str, str | Iterable[str]]
OksArea = Literal["area", "bbox*0.53", "bbox*0.53, ranges by area"]
Sigmas = Sequence[float] | Mapping[Any, Sequence[float]]

_INTERPOLATIONS = ("grid", *INTERPOLATIONS, PAIRWISE, ELEVEN, *LINEAR, CLIPPED, *SAMPLED)


@decisions.documented
@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Every decision of a detection benchmark. Frozen; `dataclasses.replace` makes a variant."""

    name: str = field(metadata=decision("The name that tables and files show."))
    iou_thresholds: tuple[float, ...] = field(
        metadata=decision(
            "A detection may match where its overlap is at least the threshold.",
            "matching",
            plain=choices.parse_thresholds,
            wrong=partial(choices.wrong_thresholds, "iou_thresholds"),
            words=choices.say_thresholds,
            phrase=lambda protocol: (
                f"{'distance' if find(protocol.iou_type).falls else 'IoU'} {choices.say_thresholds(protocol.iou_thresholds)}"
            ),
            always=True,
            flag=Flag(
                name="--iou-thresholds",
                metavar="LIST",
                help="IoU thresholds: a range start:stop:step, as 0.5:0.95:0.05, or a list, as 0.5,0.75",
                read=choices.parse_thresholds,
            ),
        )
    )
    recall_thresholds: tuple[float, ...] = field(
        default=tuple(GRIDS["101-point"].tolist()),
        metadata=decision(
            'Recalls at which precision is read; AP is the mean over them if `interpolation` is "grid".',
            "curve",
            plain=choices.parse_thresholds,
            wrong=partial(choices.wrong_thresholds, "recall_thresholds"),
            words=choices.say_thresholds,
            group="curve",
            phrase=lambda protocol: f"recall {choices.say_thresholds(protocol.recall_thresholds)}",
            flag=Flag(
                name="--recall-thresholds",
                metavar="LIST",
                help="recalls at which precision is read: a range, as 0:1:0.01, or a list, as 0,0.5,1",
                read=choices.parse_thresholds,
            ),
        ),
    )
    area_ranges: tuple[tuple[Any, ...], ...] = field(default=(UNBOUNDED,), metadata=ranges.AREA_RANGES)
    max_dets: tuple[int, ...] = field(
        default=(UNLIMITED,),
        metadata=decision(
            "Caps on the detections of one category in one image, ascending. AP is taken at the largest.",
            "ranking",
            plain=choices.plain_caps,
            wrong=choices.wrong_caps,
            words=choices.say_caps,
            phrase=lambda protocol: f"detections per image and category {choices.say_caps(protocol.max_dets)}",
            always=True,
            flag=Flag(
                name="--max-dets",
                metavar="LIST",
                help="caps on the detections of a category in an image, as 1,10,100; AP is taken at the largest",
                read=choices.parse_caps,
            ),
        ),
    )
    matching: Matching = field(default="best-free", metadata=matching_rules.MATCHING)
    strict: bool = field(default=False, metadata=matching_rules.STRICT)
    inclusive_pixels: bool = field(default=False, metadata=matching_rules.INCLUSIVE_PIXELS)
    interpolation: Interpolation | Linear | Sampled | Literal["grid"] = field(
        default="grid",
        metadata=decision(
            'Rule of AP. "grid" is COCO\'s: the mean over IoU thresholds, recall thresholds and categories at once. With '
            "any other rule (see `detmap.Hits.average_precision`) each class has its own AP, and metrics are means of "
            "these.",
            "curve",
            "mean",
            allowed=_INTERPOLATIONS,
            group="curve",
            phrase=lambda protocol: f"{protocol.interpolation} AP",
            always=True,
            flag=Flag(name="--interpolation", metavar="RULE", help=f"rule of AP: {', '.join(_INTERPOLATIONS)}"),
        ),
    )
    ignore: tuple[str, ...] = field(default=("crowd",), metadata=matching_rules.IGNORE)
    crowd_overlap: bool = field(default=True, metadata=matching_rules.CROWD_OVERLAP)
    ties: Ties = field(default="image", metadata=matching_rules.TIES)
    epsilon: float = field(
        default=float(np.spacing(1)),
        metadata=decision(
            "Number that is added to the denominator of precision.",
            "curve",
            wrong=choices.wrong_epsilon,
            group="curve",
            phrase=lambda protocol: f"epsilon {protocol.epsilon:g}",
        ),
    )
    use_categories: bool = field(
        default=True,
        metadata=decision(
            "Whether a detection is compared with ground truth of its own category only; otherwise all categories are "
            "treated as one.",
            "matching",
            "ranking",
            allowed=YES_OR_NO,
            phrase=lambda protocol: "one class of all",
            flag=Flag(
                name="--ignore-categories", value=False, help="treat all categories as one: only the overlap decides"
            ),
        ),
    )
    per_class_metrics: bool = field(
        default=False,
        metadata=decision(
            "Whether metrics have VOC's names: ``mAP``, and an AP per class.",
            "names",
            allowed=YES_OR_NO,
            phrase=lambda protocol: "an AP per class",
        ),
    )
    iou_type: IouType = field(
        default=BOXES,
        metadata=decision(
            'The kind of shape whose overlap counts: "bbox", "segm" (masks), "keypoints", "boundary" (contours of masks), '
            '"rotated" (boxes), "probiou" (these as Gaussians), or one given to `detmap.register`.',
            "matching",
            allowed=KINDS,
            # Built-in kinds are loaded only when needed.
            plain=lambda name: name if isinstance(name, str) and name in KINDS else KINDS.find(name).name,
            phrase=lambda protocol: f"overlap of {protocol.iou_type}",
            flag=Flag(
                name="--iou-type",
                metavar="KIND",
                help="what is compared: bbox (default), segm (masks), keypoints, boundary (contours of masks), "
                "rotated (boxes), or probiou (these as Gaussians)",
            ),
            since="0.2",
        ),
    )
    result_areas: Literal["own", "shape"] = field(default="own", metadata=matching_rules.RESULT_AREAS)
    dilation: float = field(
        default=0.02,
        metadata=decision(
            'For "boundary": the width of the boundary, measured from the contour, as a share of the image\'s diagonal.',
            "matching",
            plain=choices.plain_number,
            wrong=choices.wrong_dilation,
            phrase=lambda protocol: f"dilation {protocol.dilation:g}",
            flag=Flag(
                name="--dilation",
                metavar="SHARE",
                help="boundary: its width as a share of the image's diagonal; default: 0.02",
                read=choices.parse_number,
            ),
            since="0.2",
        ),
    )
    sigmas: tuple[Any, ...] | None = field(
        default=None,
        metadata=decision(
            'For "keypoints": how far annotators disagree on each point, as a list for all categories, or one list per '
            "category by id or name. None: COCO's 17 numbers.",
            "matching",
            plain=choices.plain_sigmas,
            phrase=lambda protocol: "sigmas of its own",
            flag=Flag(
                name="--sigmas",
                metavar="FILE",
                help="keypoints: a JSON list with a sigma per point, or an object of such lists by category",
                read=choices.parse_sigmas,
                is_file=True,
            ),
            since="0.2",
        ),
    )
    oks_area: OksArea = field(default="area", metadata=matching_rules.OKS_AREA)
    id_zero: Literal["found", "missed"] = field(default="found", metadata=matching_rules.ID_ZERO)

    object_areas: Literal["own", "shape"] = field(default="own", metadata=in_files.OBJECT_AREAS)
    far_corner: Literal["x+w-1", "x+w"] = field(default="x+w-1", metadata=in_files.FAR_CORNER)
    min_score: float | None = field(default=None, metadata=in_files.MIN_SCORE)
    max_per_image: int | None = field(default=None, metadata=in_files.MAX_PER_IMAGE)
    max_per_category: int | None = field(default=None, metadata=in_files.MAX_PER_CATEGORY)
    left_out: tuple[str, ...] = field(default=(), metadata=in_files.LEFT_OUT)
    scored_images: Literal["all", "detected"] = field(default="all", metadata=in_files.SCORED_IMAGES)
    numbers: Literal["float64", "float32"] = field(default="float64", metadata=in_files.NUMBERS)
    box_decimals: int | None = field(default=None, metadata=in_files.BOX_DECIMALS)
    score_decimals: int | None = field(default=None, metadata=in_files.SCORE_DECIMALS)
    box_offset: float = field(default=0.0, metadata=in_files.BOX_OFFSET)
    judged: Literal["all", "verified"] = field(default="all", metadata=federated.JUDGED)
    not_exhaustive: Literal["wrong", "ignored"] = field(default="wrong", metadata=federated.NOT_EXHAUSTIVE)
    without_area: Literal["scored", "dropped", "undetected"] = field(default="scored", metadata=federated.WITHOUT_AREA)
    groups: tuple[str, ...] = field(default=(), metadata=federated.GROUPS)
    pooled: bool = field(default=False, metadata=federated.POOLED)
    points: tuple[int, int] | None = field(default=None, metadata=poses.POINTS)
    labelled: Literal["field", "points"] = field(default="field", metadata=poses.LABELLED)
    unseen: Literal["scored", "dropped"] = field(default="scored", metadata=poses.UNSEEN)
    score_field: str = field(default="score", metadata=poses.SCORE_FIELD)
    valid_flag: str = field(default="", metadata=poses.VALID_FLAG)
    crowd_groups: tuple[tuple[str, float], ...] = field(default=(), metadata=poses.CROWD_GROUPS)
    crowd_means: Literal["defined", "published"] = field(default="defined", metadata=poses.CROWD_MEANS)
    group_of: Literal["object", "found", "ignored"] = field(default="object", metadata=group_boxes.GROUP_OF)
    without_shape: Literal["unmatched", "boxed"] = field(default="unmatched", metadata=group_boxes.WITHOUT_SHAPE)
    levels: tuple[tuple[str, str], ...] = field(default=(), metadata=ranges.LEVELS)
    class_thresholds: tuple[tuple[str, float], ...] = field(default=(), metadata=rematching.CLASS_THRESHOLDS)
    neighbours: tuple[tuple[str, str], ...] = field(default=(), metadata=rematching.NEIGHBOURS)
    absorbing: bool = field(default=False, metadata=rematching.ABSORBING)
    class_levels: bool = field(default=False, metadata=rematching.CLASS_LEVELS)
    class_ranges: tuple[tuple[str, float], ...] = field(default=(), metadata=true_positives.CLASS_RANGES)
    empty_classes: Literal["undefined", "zero"] = field(default="undefined", metadata=true_positives.EMPTY_CLASSES)
    error_threshold: float | None = field(default=None, metadata=true_positives.ERROR_THRESHOLD)
    error_rules: tuple[tuple[str, str], ...] = field(default=(), metadata=true_positives.ERROR_RULES)
    unlisted_images: Literal["error", "wrong"] = field(default="error", metadata=temporal.UNLISTED_IMAGES)
    mean_of: Literal["values", "thresholds", "classes"] = field(default="values", metadata=temporal.MEAN_OF)
    threshold_metrics: bool = field(default=False, metadata=temporal.THRESHOLD_METRICS)

    def __post_init__(self) -> None:
        decisions.settle(self)
        if self.max_per_category is not None and not self.use_categories:  # no categories to limit
            raise OptionError(
                "max_per_category is a cap on each category, and use_categories=False (--ignore-categories) makes them one: "
                "leave out one of the two"
            )
        names = [*self.range_names, *(name for name, _ in self.crowd_groups), *(["pooled"] if self.pooled else [])]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise OptionError(
                f"{twice!r} is the name of two area ranges, levels or groups of images: AP_{twice} would be two metrics"
            )

    def describe(self) -> str:
        """Describe the decisions in one line, for display beside a metric."""
        return decisions.describe(self)

    @property
    def title(self) -> str:
        """The protocol's name and kind of shape, for display beside a metric: "coco segm"."""
        return f"{self.name} {self.iou_type}"

    @property
    def range_names(self) -> tuple[str, ...]:
        """The names of the area ranges, then of the levels."""
        return ranges.names_of(self)

    def find_threshold(self, iou: float) -> int | None:
        """Return the index of the threshold that equals `iou`, up to rounding; None if there is none."""
        distance = np.abs(np.array(self.iou_thresholds) - iou)
        nearest = int(np.argmin(distance))
        return nearest if distance[nearest] < 1e-9 else None

    def to_dict(self) -> dict[str, Any]:
        """Return every decision as plain lists, numbers and strings; None stands for no cap."""
        out = self.decisions()
        for name, value in out.items():
            if isinstance(value, tuple):
                out[name] = _listed(value)
        out["max_dets"] = [None if m == UNLIMITED else m for m in self.max_dets]
        return out

    def decisions(self) -> dict[str, Any]:
        """Return every decision by name. Decisions that later versions added are left out if they have the default value."""
        return decisions.written(self)


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


COCO = Protocol(
    name="coco",
    iou_thresholds=tuple(np.linspace(0.5, 0.95, 10).tolist()),
    area_ranges=(("all", 0.0, 1e10), ("small", 0.0, 1024.0), ("medium", 1024.0, 9216.0), ("large", 9216.0, 1e10)),
    max_dets=(1, 10, 100),
)

VOC2007 = Protocol(
    name="voc2007",
    iou_thresholds=(0.5,),
    recall_thresholds=tuple(GRIDS["11-point"].tolist()),
    matching="best",
    inclusive_pixels=True,
    interpolation="11-point",
    ignore=("difficult", "crowd"),
    crowd_overlap=False,
    ties="file",
    epsilon=0.0,
    per_class_metrics=True,
)

VOC2012 = replace(VOC2007, name="voc2012", recall_thresholds=COCO.recall_thresholds, interpolation="all-point")

LVIS = replace(
    COCO,
    name="lvis",
    max_dets=(UNLIMITED,),
    ignore=("difficult",),
    crowd_overlap=False,
    max_per_image=300,
    judged="verified",
    not_exhaustive="ignored",
    without_area="dropped",
    groups=("r", "c", "f"),
)

#: The protocol of Dave et al., "Evaluating Large-Vocabulary Object Detectors: The Devil is in the Details" (2021).
LVIS_FIXED = replace(LVIS, name="lvis-fixed", max_per_image=None, max_per_category=10_000)

_POSES = replace(COCO, iou_type=KEYPOINTS, area_ranges=tuple(COCO.area_ranges[at] for at in (0, 2, 3)), max_dets=(20,))


def skeleton(
    name: str, parts: Mapping[str, Sequence[float]], *, whole: Sequence[float] | None = None, **decisions: Any
) -> list[Protocol]:
    """Return protocols for the parts of a skeleton and for the whole, by COCO's rules for poses.

    Parameters
    ----------
    name : str
        The name of the protocol for the whole skeleton; the protocol for a part is called ``"NAME-PART"``.
    parts : mapping of str to sequence of float
        The sigmas of the points of each part, in the order of the points in a pose.
    whole : sequence of float, optional
        The sigmas of all points; by default the sigmas of the parts.
    **decisions
        Decisions for all of the protocols, as `detmap.evaluate` takes them.

    Returns
    -------
    list of Protocol
        One protocol per part, then the protocol for the whole skeleton. They are not registered.

    Raises
    ------
    OptionError
        For invalid sigmas or decisions.
    """
    if not isinstance(parts, Mapping) or not parts:
        raise OptionError(f"parts must be a mapping of names to sigmas, not {shorten(parts)}")
    made: list[Protocol] = []
    stop = 0
    for part, sigmas in parts.items():
        first, stop = stop, stop + len(sigmas)
        own = replace(_POSES, name=f"{name}-{part}", points=(first, stop), sigmas=tuple(sigmas))
        made.append(own)
    every = tuple(one for sigmas in parts.values() for one in sigmas) if whole is None else tuple(whole)
    made.append(replace(_POSES, name=name, sigmas=every))
    return [resolve(one, **decisions) for one in made] if decisions else made


CROWDPOSE = replace(
    _POSES,
    name="crowdpose",
    area_ranges=COCO.area_ranges[:1],
    sigmas=poses.tenths(poses.CROWDPOSE),
    oks_area="bbox*0.53",
    crowd_groups=(("easy", 0.2), ("medium", 0.8), ("hard", 1e10)),
    crowd_means="published",
)

#: Protocols of COCO-WholeBody's parts; each part has its own score. The benchmark's scripts compute the sigmas of parts
#: by a division by 10, but write the sigmas of the whole body as literals, so that equal sigmas can differ in the last
#: bits.
WHOLE_BODY = [
    replace(
        one,
        iou_type=WHOLE_BODIES,
        labelled="points",
        unseen="dropped",
        score_field="score" if one.name.endswith("-body") else f"{one.name.rpartition('-')[2]}_score",
    )
    for one in skeleton(
        "wholebody",
        {part: poses.tenths(sigmas) for part, sigmas in poses.WHOLE_BODY.items()},
        whole=[sigma / 1000 for sigmas in poses.WHOLE_BODY.values() for sigma in sigmas],
    )
]

#: Open Images' challenge of 2019 as evaluated by TensorFlow's Object Detection API, which drops scores of -10 and below.
OPEN_IMAGES = replace(
    VOC2012,
    name="openimages",
    max_dets=(10_000,),
    inclusive_pixels=False,
    interpolation="all-point-pairwise",
    ignore=(),
    ties="reversed",
    min_score=float(np.nextafter(-10.0, 0.0)),
    judged="verified",
    without_area="undetected",
    group_of="found",
    without_shape="boxed",
)

#: The development kit of DOTA v1.0 ignores difficult objects; the kit of v1.5 treats no object as difficult.
DOTA = replace(VOC2007, name="dota", strict=True, inclusive_pixels=False, iou_type=ROTATED)
DOTA_AREA = replace(DOTA, name="dota-area", recall_thresholds=COCO.recall_thresholds, interpolation="all-point")

#: nuScenes' detection task, with the configuration detection_cvpr_2019 of its development kit.
NUSCENES = Protocol(
    name="nuscenes",
    iou_thresholds=(0.5, 1.0, 2.0, 4.0),
    matching="first-free",
    strict=True,
    interpolation=CLIPPED,
    ignore=(),
    crowd_overlap=False,
    ties="file-reversed",
    epsilon=0.0,
    per_class_metrics=True,
    iou_type=DISTANCE,
    left_out=("unseen", "racked"),
    class_ranges=(
        *((name, 50.0) for name in ("car", "truck", "bus", "trailer", "construction_vehicle")),
        *((name, 40.0) for name in ("pedestrian", "motorcycle", "bicycle")),
        *((name, 30.0) for name in ("traffic_cone", "barrier")),
    ),
    empty_classes="zero",
    mean_of="classes",
    error_threshold=2.0,
    error_rules=(
        ("barrier", true_positives.HALF_TURNS),
        *((name, error) for name in ("traffic_cone", "barrier") for error in ("AVE", "AAE")),
        ("traffic_cone", "AOE"),
    ),
)

#: ActivityNet's evaluation with a stable sort. In ActivityNet's code the order of equal scores depends on the processor.
ACTIVITYNET = replace(
    VOC2012,
    name="activitynet",
    iou_thresholds=COCO.iou_thresholds,
    matching="best-free",
    inclusive_pixels=False,
    interpolation="all-point-pairwise",
    ignore=(),
    ties="file-reversed",
    iou_type=TEMPORAL,
    left_out=("crowd",),  # THUMOS14's ambiguous segments, which ActivityNet's program does not have
    unlisted_images="wrong",
    mean_of="thresholds",
    threshold_metrics=True,
)

#: THUMOS14's evaluation kit as updated in 2015, which published numbers use; `THUMOS14_11` is the earlier kit.
THUMOS14 = replace(
    ACTIVITYNET,
    name="thumos14",
    iou_thresholds=tuple(tenths / 10 for tenths in range(1, 8)),
    matching="by-object",
    strict=True,
    interpolation="step",
    ignore=("crowd",),
    ties="image",
    iou_type=TEMPORAL_SPAN,
    left_out=(),
)
THUMOS14_11 = replace(
    THUMOS14,
    name="thumos14-11",
    recall_thresholds=MATLAB_GRID,
    interpolation="11-point-matlab",
    ties=matching_rules.HITS_FIRST,
)

#: YouTube-VIS since 2019: COCO's rules with other area limits; areas are means over frames.
YTVIS = replace(
    COCO,
    name="ytvis",
    iou_type=TRACKS,
    area_ranges=(
        ("all", 0.0, 1e10),
        ("small", 0.0, 128.0**2),
        ("medium", 128.0**2, 256.0**2),
        ("large", 256.0**2, 1e10),
    ),
)

#: The recalls ``torch.linspace(0, 1, 101)``. Up to 0.5 they are computed upwards from 0, and above 0.5 downwards from 1.
#: Each recall is rounded once to single precision.
_STEP = float(np.float32(0.01))
_SINGLE_RECALLS = tuple(float(np.float32(k * _STEP if k <= 50 else 1 - (100 - k) * _STEP)) for k in range(101))

KITTIS = [Protocol(**decided) for decided in rematching.KITTI]

_VOC2010 = replace(VOC2012, far_corner="x+w", ignore=())

#: Protocols of other tools, by a description of the tool. Only decisions that differ from the defaults, or from the
#: protocol given to `replace`, are listed.
_TOOLS = {
    "Ultralytics 8.4 of 2026, model.val() on boxes": Protocol(
        name="ultralytics",
        iou_thresholds=COCO.iou_thresholds,
        interpolation="101-linear",
        ignore=(),
        crowd_overlap=False,
        epsilon=0.0,
        min_score=0.001,
        max_per_image=300,
        left_out=("crowd",),
    ),
    "Ultralytics 8.0 to 8.3 and YOLOv5, val on boxes": Protocol(
        name="ultralytics-8.3",
        iou_thresholds=COCO.iou_thresholds,
        matching="best",
        interpolation="101-linear-tail",
        ignore=(),
        crowd_overlap=False,
        epsilon=0.0,
        min_score=0.001,
        max_per_image=300,
        left_out=("crowd",),
    ),
    "torchmetrics MeanAveragePrecision, on boxes whose areas are not given": replace(
        COCO,
        name="torchmetrics",
        iou_thresholds=tuple(float(np.float32(threshold)) for threshold in COCO.iou_thresholds),
        recall_thresholds=_SINGLE_RECALLS,
        object_areas="shape",
        numbers="float32",
    ),
    "supervision 0.26 and later, MeanAveragePrecision": replace(COCO, name="supervision", numbers="float32"),
    "Padilla's Object-Detection-Metrics": replace(_VOC2010, name="padilla"),
    "Cartucho's mAP": replace(_VOC2010, name="cartucho", ignore=("difficult",), ties="image"),
    "MMEval's VOCMeanAP as by default, of MMDetection's VOC and COCO data": replace(
        VOC2012, name="mmeval-voc", inclusive_pixels=False, ties="image"
    ),
    "Detectron2's PascalVOCDetectionEvaluator, 2007": replace(
        VOC2007,
        name="detectron2-voc",
        iou_thresholds=tuple(percent / 100 for percent in range(50, 100, 5)),
        strict=True,
        ignore=("difficult",),
        per_class_metrics=False,
        box_decimals=1,
        score_decimals=3,
    ),
}

#: Descriptions of the tools after which protocols are named, by protocol name.
USERS = {one.name: tool for tool, one in _TOOLS.items()}

#: The name that selects a benchmark's protocol if the ground truth has fields of this benchmark, else `coco`.
AUTO = "auto"

#: Every named protocol.
PRESETS = Registry(Protocol, "protocol")
_BENCHMARKS = (
    COCO,
    VOC2007,
    VOC2012,
    LVIS,
    LVIS_FIXED,
    OPEN_IMAGES,
    DOTA,
    DOTA_AREA,
    ACTIVITYNET,
    THUMOS14,
    THUMOS14_11,
    YTVIS,
    NUSCENES,
    CROWDPOSE,
    *WHOLE_BODY,
    *KITTIS,
)
for _preset in (*_BENCHMARKS, *_TOOLS.values()):
    register(_preset)


#: Names of the built-in protocols, so that type checkers find typos. Use ``PRESETS[name]`` or ``PluginName(name)`` for
#: a name only known at run time.
ProtocolName = Literal[
    "auto",
    "coco",
    "voc2007",
    "voc2012",
    "lvis",
    "lvis-fixed",
    "openimages",
    "dota",
    "dota-area",
    "nuscenes",
    "activitynet",
    "thumos14",
    "thumos14-11",
    "ytvis",
    "crowdpose",
    "wholebody-body",
    "wholebody-foot",
    "wholebody-face",
    "wholebody-lefthand",
    "wholebody-righthand",
    "wholebody",
    "kitti",
    "kitti-r11",
    "kitti-bev",
    "kitti-bev-r11",
    "kitti-3d",
    "kitti-3d-r11",
    "openpcdet-bev",
    "openpcdet-bev-loose",
    "openpcdet-3d",
    "openpcdet-3d-loose",
    "ultralytics",
    "ultralytics-8.3",
    "torchmetrics",
    "supervision",
    "padilla",
    "cartucho",
    "mmeval-voc",
    "detectron2-voc",
]

#: The type of protocol arguments.
AnyProtocol = ProtocolName | PluginName | Protocol


class Decisions(TypedDict, total=False):
    """Keywords that replace decisions of a protocol.

    `iou_type` is a separate keyword. See `Protocol` for the meaning of each decision, and `resolve` for the meaning of
    None.
    """

    iou_thresholds: str | float | Iterable[float] | None
    recall_thresholds: str | float | Iterable[float] | None
    area_ranges: AreaRanges | None
    max_dets: int | Iterable[int | None] | None
    matching: Matching | None
    strict: bool | None
    inclusive_pixels: bool | None
    interpolation: Interpolation | Linear | Sampled | Literal["grid"] | None
    ignore: Iterable[str] | None
    crowd_overlap: bool | None
    ties: Ties | None
    epsilon: float | None
    use_categories: bool | None
    per_class_metrics: bool | None
    result_areas: Literal["own", "shape"] | None
    dilation: float | None
    sigmas: Sigmas | None
    oks_area: OksArea | None
    id_zero: Literal["found", "missed"] | None
    object_areas: Literal["own", "shape"] | None
    far_corner: Literal["x+w-1", "x+w"] | None
    min_score: float | None
    max_per_image: int | None
    max_per_category: int | None
    left_out: Iterable[str] | None
    scored_images: Literal["all", "detected"] | None
    numbers: Literal["float64", "float32"] | None
    box_decimals: int | None
    score_decimals: int | None
    box_offset: float | None
    judged: Literal["all", "verified"] | None
    not_exhaustive: Literal["wrong", "ignored"] | None
    without_area: Literal["scored", "dropped", "undetected"] | None
    groups: Iterable[str] | None
    pooled: bool | None
    points: Iterable[int] | None
    labelled: Literal["field", "points"] | None
    unseen: Literal["scored", "dropped"] | None
    score_field: str | None
    valid_flag: str | None
    crowd_groups: Mapping[str, float] | Iterable[tuple[str, float]] | None
    crowd_means: Literal["defined", "published"] | None
    group_of: Literal["object", "found", "ignored"] | None
    without_shape: Literal["unmatched", "boxed"] | None
    levels: Levels | None
    class_thresholds: Mapping[str, float] | Iterable[tuple[str, float]] | None
    neighbours: Mapping[str, str] | Iterable[tuple[str, str]] | None
    absorbing: bool | None
    class_levels: bool | None
    class_ranges: Mapping[str, float] | Iterable[tuple[str, float]] | None
    empty_classes: Literal["undefined", "zero"] | None
    error_threshold: float | None
    error_rules: Iterable[tuple[str, str]] | None
    unlisted_images: Literal["error", "wrong"] | None
    mean_of: Literal["values", "thresholds", "classes"] | None
    threshold_metrics: bool | None


class EveryDecision(Decisions, total=False):
    """`Decisions` plus `iou_type`."""

    iou_type: IouType | None


def resolve(
    protocol: str | Protocol,
    *,
    area_ranges: AreaRanges | None = None,
    max_dets: int | Iterable[int | None] | None = None,
    use_categories: bool | None = None,
    iou_type: str | None = None,
    caller: Callable[..., Any] | None = None,
    **others: Any,
) -> Protocol:
    """Return a preset, or a protocol, with some decisions replaced.

    None leaves a decision unchanged, unless None is a valid value of the decision: for `min_score`, None means no minimum.

    Parameters
    ----------
    protocol : str or Protocol
        A name of `PRESETS`, or the protocol itself.
    area_ranges : mapping of str to (float, float), optional
        Minimum and maximum area in square pixels, by name; the first range must hold all objects. Other ranges may be
        shares of the image's area, as ``(0, "1%")``, or limit another measure, as ``("height", 0, 32)``.
    max_dets : int or iterable of int or None, optional
        Caps in any order; None stands for no cap.
    use_categories : bool, optional
        False treats all categories as one.
    iou_type : str, optional
        The kind of shape. In a preset it also sets the other decisions that COCO makes for that kind. For example,
        poses have a cap of 20 and no area range "small". If a preset is for a kind other than boxes, no other kind is
        accepted.
    caller : callable, optional
        The function called with these keywords; errors suggest its parameters in place of unknown keywords.
    **others
        Any other decision of `Protocol`; thresholds as `parse_thresholds` takes them.

    Raises
    ------
    OptionError
        For an unknown name or an invalid value.
    """
    if not isinstance(protocol, str | Protocol):
        raise OptionError(f"protocol must be a name or a Protocol, not {type(protocol).__name__}")
    named = isinstance(protocol, str)
    if isinstance(protocol, str):
        protocol = preset(protocol)
    changes: dict[str, Any] = {}
    if iou_type is not None and iou_type != protocol.iou_type:
        kind = find(iou_type)
        if named and protocol.iou_type != BOXES:
            raise OptionError(
                f"the protocol {protocol.name!r} compares {protocol.iou_type}, not {kind.name}: leave out the iou_type "
                "(--iou-type), or name another protocol"
            )
        changes = {**(kind.decisions if named else {}), "iou_type": kind.name}
    known = {one.name: decisions.default_of(one) for one in fields(Protocol)}
    changes.update((name, value) for name, value in others.items() if value is not None or known.get(name, 0) is None)
    for name in changes:
        if name not in known:
            ours = FOREIGN.get(name)
            meant = f"; did you mean {ours!r}?" if ours else ""
            if name in options_of():
                meant = f": it is an option of reading, detmap.read(path, {name}=...)"
            meant = meant or did_you_mean(name, [*EveryDecision.__annotations__, *_parameters_of(caller)])
            raise OptionError(f"a protocol has no decision called {shorten(name)}{meant}")
    try:
        for name in ("iou_thresholds", "recall_thresholds"):
            if name in changes:
                changes[name] = choices.parse_thresholds(changes[name])
        if area_ranges is not None:
            changes["area_ranges"] = ranges.plain_area_ranges(area_ranges)
        if max_dets is not None:
            caps = [max_dets] if isinstance(max_dets, int | np.integer) else list(max_dets)
            changes["max_dets"] = tuple(sorted({UNLIMITED if cap is None else cap for cap in caps}))
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"cannot read the option: {error}") from None
    if use_categories is not None:
        changes["use_categories"] = use_categories
    return replace(protocol, **changes) if changes else protocol


#: Names of options in pycocotools and torchmetrics, with the corresponding names in detmap.
FOREIGN = {
    "iouThrs": "iou_thresholds",
    "recThrs": "recall_thresholds",
    "rec_thresholds": "recall_thresholds",
    "maxDets": "max_dets",
    "max_detection_thresholds": "max_dets",
    "areaRng": "area_ranges",
    "areaRngLbl": "area_ranges",
    "useCats": "use_categories",
    "iouType": "iou_type",
    "imgIds": "image_ids",
    "catIds": "category_ids",
    "kpt_oks_sigmas": "sigmas",
}


def preset(name: str) -> Protocol:
    """Return the protocol called `name`. If `name` is a kind of shape instead, the error suggests the keyword `iou_type`."""
    if name not in PRESETS and name in KINDS:
        raise OptionError(f"{name!r} is a kind of shape, not a protocol: iou_type={name!r}")
    return PRESETS.find(name)


def parts_of(name: str) -> dict[str, Protocol]:
    """Return the protocol of each part of a skeleton by the part's name. The last item is the protocol of the whole
    skeleton, whose key is `name`.
    """
    whole, before = preset(name), f"{name}-"
    parts = {
        own[len(before) :]: one for own, one in PRESETS.items() if own.startswith(before) and one.points is not None
    }
    if not parts:
        known = dict.fromkeys(own.rpartition("-")[0] for own, one in PRESETS.items() if one.points is not None)
        raise OptionError(f"the protocol {name!r} has no parts; these have: {', '.join(known)}")
    return {**parts, name: whole}


def _parameters_of(function: Callable[..., Any] | None) -> list[str]:
    """Return the names of a function's keyword parameters; an empty list if `function` is None."""
    if function is None:
        return []
    return [one.name for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
