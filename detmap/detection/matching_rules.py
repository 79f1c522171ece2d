"""Decisions about which detection is matched to which object, and about the order of matching."""

from __future__ import annotations

from typing import Literal

from detmap import choices
from detmap.decisions import YES_OR_NO, Flag, decision

Matching = Literal["best-free", "first-free", "best", "by-object", "by-object-twice"]
Ties = Literal["image", "file", "reversed", "file-reversed", "hits-first"]
#: Values of `ties` that break ties by positions in the file.
BY_FILE = ("file", "file-reversed")
#: Value of `ties` that ranks hits ahead of misses.
HITS_FIRST: Literal["hits-first"] = "hits-first"

MATCHING = decision(
    "How detections and objects are paired. With the first three rules detections choose, by descending score: best-free "
    "takes the unmatched object of highest overlap, of equals the last (COCO); first-free does the same, of equals the "
    "first (nuScenes); best considers only the object of highest overlap (VOC). With the others objects choose, in the "
    "order of their file: by-object takes the unmatched detection of highest score, and unmatched detections that "
    "overlap ignored ground truth are ignored (THUMOS14); by-object-twice takes the detection of highest score to find "
    "the scores at which precision is read, then matches again at each of these scores, by the highest overlap (KITTI).",
    "matching",
    allowed=("best-free", "first-free", "best", "by-object", "by-object-twice"),
    phrase=lambda protocol: f"matching {protocol.matching}",
    always=True,
    flag=Flag(
        name="--matching",
        help="best-free: a detection takes the unmatched object of highest overlap (COCO); first-free: likewise, of "
        "equals the first (nuScenes); best: it considers the object of highest overlap only (VOC); by-object: an object "
        "takes the unmatched detection of highest score (THUMOS14); by-object-twice: likewise, and matches again at each "
        "score (KITTI)",
    ),
)

STRICT = decision(
    "Whether the overlap must be above the threshold; otherwise it may be equal.",
    "matching",
    allowed=YES_OR_NO,
    phrase=lambda protocol: "overlap above the threshold" if protocol.strict else "overlap at the threshold",
    flag=Flag(name="--strict-thresholds", value=True, help="an overlap equal to the threshold does not match"),
)

INCLUSIVE_PIXELS = decision(
    "Whether corners are the last pixels inside a box: then a box from 3 to 5 is 3 pixels wide.",
    "matching",
    allowed=YES_OR_NO,
    group="pixels",
    phrase=lambda protocol: "inclusive pixels" if protocol.inclusive_pixels else "no inclusive pixels",
    flag=Flag(
        name="--inclusive-pixels",
        value=True,
        help="corners are the last pixels inside a box, so that 3 to 5 is 3 pixels wide",
    ),
)

CROWD_OVERLAP = decision(
    "Whether the overlap with an ignored crowd is the intersection divided by the detection's area, and the crowd can "
    "match any number of detections.",
    "matching",
    allowed=YES_OR_NO,
    group="crowds",
    phrase=lambda protocol: "crowds overlap as objects do",
    flag=Flag(name="--no-crowd-overlap", value=False, help="measure the overlap with a crowd as with a single object"),
)

TIES = decision(
    "The order of equal scores. image: by image id, then input order (COCO). file: input order (VOC). reversed: by "
    "descending image id, then input order, and matched in reversed input order (TensorFlow's Object Detection API). "
    "file-reversed: reversed input order (nuScenes; ActivityNet, if sorted stably). hits-first: detections that are hits "
    "at more of the IoU thresholds first, then as image (THUMOS14's first kit).",
    "matching",
    "ranking",
    allowed=("image", "file", "reversed", "file-reversed", HITS_FIRST),
    phrase=lambda protocol: f"ties by {protocol.ties}",
    always=True,
    flag=Flag(
        name="--ties",
        help="order of equal scores: by image and then input order, by input order alone, by image from the last "
        "on, by input order from the last on, or hits first",
    ),
)

RESULT_AREAS = decision(
    "The area of a detected mask or pose that area ranges look at: that of its own box where it has one, as in "
    "pycocotools, or always that of its shape.",
    "matching",
    allowed=("own", "shape"),
    phrase=lambda protocol: "areas of detections those of their shapes",
    flag=Flag(
        name="--result-areas",
        help="area of a detected mask or pose: that of its own box if it has one (default), or of its shape",
    ),
    since="0.2",
)

OKS_AREA = decision(
    "For \"keypoints\": the area of an object. It is the annotation's, or 0.53 times the box's; or 0.53 times the box's in "
    "the similarity, and the annotation's in area ranges.",
    "matching",
    allowed=("area", "bbox*0.53", "bbox*0.53, ranges by area"),
    phrase=lambda protocol: f"area of objects {protocol.oks_area}",
    flag=Flag(
        name="--oks-area",
        help="keypoints: area of an object: the annotation's (default), 0.53 times the box's, or this in the similarity "
        "alone",
    ),
    since="0.2",
)

ID_ZERO = decision(
    "Whether an object whose annotation has the id 0 can be found like any other, or always counts as missed, as in "
    "pycocotools, which stores the id of the matched annotation and reads 0 as no match. Only COCO's JSON has ids of "
    "annotations.",
    "matching",
    allowed=("found", "missed"),
    phrase=lambda protocol: f"annotations of id 0 {protocol.id_zero}",
    flag=Flag(
        name="--id-zero",
        help="objects whose annotation has the id 0: can be found like any other (default), or are always missed, as in "
        "pycocotools",
    ),
    since="0.2",
)

IGNORE = decision(
    "Ground truth with one of these flags is ignored: it need not be found, and detections that match it are not false "
    "positives.",
    "matching",
    allowed=("crowd", "difficult"),
    plain=tuple,
    words=choices.say_flags,
    group="crowds",
    phrase=lambda protocol: f"ignored {choices.say_flags(protocol.ignore)}",
    flag=Flag(
        name="--ignore-flags",
        metavar="LIST",
        help="ground truth with these flags need not be found: crowd,difficult, or none",
        read=choices.parse_names,
    ),
)
