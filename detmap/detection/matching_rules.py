"""Decisions about which detection takes which object, and in which order."""

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
    "COCO's rule (a detection takes the best ground truth still free, of equals the last), nuScenes' (likewise, of "
    "equals the first) or VOC's (it looks at the best one only). Or objects choose in the order of their file: under "
    "THUMOS14's rule (by-object) the best detection still free, once; detections that are left over and touch ignored "
    "ground truth are ignored. Under KITTI's (by-object-twice) first the surest detection, to find the scores at which "
    "precision is read, and again at each of these the one that overlaps most.",
    "matching",
    allowed=("best-free", "first-free", "best", "by-object", "by-object-twice"),
    phrase=lambda protocol: f"matching {protocol.matching}",
    always=True,
    flag=Flag(
        name="--matching",
        help="best-free: a detection takes the best object that is still free (COCO); first-free: of equals the "
        "first one (nuScenes); best: it looks at the best object only (VOC); by-object: each object takes the best "
        "detection that is still free (THUMOS14); by-object-twice: the surest one, and anew at each score (KITTI)",
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
    "Whether overlap with a crowd that is ignored is taken over the detection's own area, and such a crowd matches "
    "any number of detections.",
    "matching",
    allowed=YES_OR_NO,
    group="crowds",
    phrase=lambda protocol: "crowds overlap as objects do",
    flag=Flag(name="--no-crowd-overlap", value=False, help="measure the overlap with a crowd as with a single object"),
)

TIES = decision(
    "The order of equal scores: by image id and then input order within it (COCO), or input order alone (VOC); or "
    "by image id descending and then input order, and matched in reversed input order (TensorFlow's Object "
    "Detection API); or by input order backwards (nuScenes; ActivityNet, if sorted stably); or those that are hits at "
    "more of the IoU thresholds first, and then as COCO (the first kit of THUMOS14: where objects choose, hits then stand "
    "ahead of misses at every threshold).",
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
    'For "keypoints": the area of an object is the annotation\'s, or 0.53 times that of its box; or '
    "the latter in similarity and the former in area ranges.",
    "matching",
    allowed=("area", "bbox*0.53", "bbox*0.53, ranges by area"),
    phrase=lambda protocol: f"area of objects {protocol.oks_area}",
    flag=Flag(
        name="--oks-area",
        help="keypoints: area of an object: the annotation's (default), or 0.53 times that of its box; "
        "or the latter in similarity alone",
    ),
    since="0.2",
)

ID_ZERO = decision(
    "Whether an object whose annotation has the id 0 is found like any other, or missed: pycocotools writes the id "
    "down that a detection takes, and reads 0 as none. Only COCO's JSON has ids of annotations.",
    "matching",
    allowed=("found", "missed"),
    phrase=lambda protocol: f"annotations of id 0 {protocol.id_zero}",
    flag=Flag(
        name="--id-zero",
        help="annotations with the id 0: found like any other (default), or missed, as pycocotools has it",
    ),
    since="0.2",
)

IGNORE = decision(
    "Flags that make ground truth neither required nor wrong to find.",
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
