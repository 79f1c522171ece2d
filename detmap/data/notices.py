"""Notices: counts of unusual input that was accepted, and a sentence for each kind."""

from __future__ import annotations

import re
from collections.abc import Mapping

from detmap.data.benchmarks import advice
from detmap.errors import shorten
from detmap.shapes.kinds import KINDS

#: Phrases for notices on boxes that seem to be normalised by the image size instead of in pixels.
_SHARES = "as shares of an image do"
_SCALE = (
    "multiply x and width by the image's width, y and height by its height (--image-sizes does so for Open Images' files "
    "and tables)"
)

#: Codes of unusual but accepted input, with the sentence for `n` records. A code may be followed by a colon and a name,
#: as in ``missing_classes:dog``. The sentence lists all names that follow the code in place of ``{names}``.
NOTICES = {
    "missing_iscrowd": "{n} annotations without iscrowd: taken as 0",
    "duplicate_annotation_ids": "{n} annotations repeat an id: each counts as an object of its own",
    "zero_id": "{n} annotations with id 0, which pycocotools takes for no match: found by default, or --id-zero missed",
    "zero_id_effect": "with annotations of id 0 found, or missed as in pycocotools (--id-zero): {names}",
    "foreign_fields": "{n} fields of another benchmark, which this protocol does not read, so that the number is not that "
    "benchmark's: {names}{advice}",
    "converted_fields": "{n} fields of another benchmark, carried over as far as tables have them: lists of categories, "
    "groups, crowd indices and flags: {names}",
    "missing_neg_category_ids": "{n} images without neg_category_ids or verified labels: there only detections of "
    "categories with objects are scored",
    "missing_not_exhaustive_category_ids": "{n} images without not_exhaustive_category_ids: taken as exhaustive",
    "missing_frequency": "{n} categories with ground truth, but without frequency: in no AP of a group by frequency",
    "missing_level_fields": "{n} objects lack a field that a level of difficulty reads: ignored there",
    "few_positives": "{n} metrics are of 40 objects or fewer, and cannot reach 100 by KITTI's rule (10 of 10 found give "
    "22.5): {names}",
    "unnamed_classes": "no category is called as the protocol's classes, {names}: all of its numbers are undefined",
    "missing_crowdIndex": "{n} images without crowdIndex: in none of the groups of images",
    "missing_ego": "{n} samples do not say where the car was: there boxes at any distance are scored (class_ranges)",
    "missing_samples": "{n} samples of the ground truth without results, which the development kit refuses: nothing is "
    "found there",
    "images_without_file": "{n} images of the ground truth without a file of results: their objects count as missed, and "
    "the benchmark's program leaves such images out (--image-set FILE lists the images to score)",
    "labels_outside_hierarchy": "{n} labels without a place in the hierarchy: no label is added for them",
    "missing_part_scores": "{n} detections without a score of the part (score_field): ranked by their score",
    "missing_valid_flag": "{n} objects without the flag that the protocol reads (valid_flag): each counts as valid",
    "group_boxes": "{n} boxes stand for groups of objects, by a column that this protocol does not read: each is scored as "
    "one object",
    "zero_sized_boxes": "{n} boxes of no width or height",
    "missed_boxes": "{n} boxes of negative width or height: they overlap nothing",
    "dropped_boxes": "{n} boxes of negative width or height, or not of finite numbers: dropped",
    "unknown_image": "{n} detections on images that the ground truth does not have: dropped",
    "unknown_category": "{n} detections of categories that the ground truth does not have: not scored",
    "counted_positives": "positives of {n} queries were counted in their rankings, too few if those are cut: give positives",
    "short_rankings": "{n} queries have fewer neighbours (padding and junk left out) than a metric reads: search for more",
    "missing_classes": "{n} classes without a result file, with AP 0: {names}",
    "skipped_classes": "{n} classes without a result file, left out: {names}",
    "boxes_read_as_shares": "{n} boxes are taken for centre x, centre y, width, height as shares of their image",
    "shares_made_pixels": "{n} boxes are shares of their image, and are read as pixels by its width and height",
    "unread_files": "{n} files whose names do not say a class, as comp4_det_test_dog.txt does: not read",
    "boxes_read_as_xyxy": "{n} boxes are taken for left, top, right, bottom, which none of them contradicts",
    "boxes_read_as_xywh": "{n} boxes are taken for left, top, width, height: as corners some would be inverted",
    "turned_boxes": "{n} boxes are turned: the boxes around them are scored; --iou-type rotated scores them as they are",
    "unread_records": "{n} records without an area (lines, points), or not to be considered: left out",
    "rows_without_box": '{n} rows with a class and without a box, as "no finding": no objects',
    "unnamed_class": "{n} rows without a class: all are of one, called object unless classes (--classes) names it",
    "read_as_score_box": "{n} strings are read as groups of score, x, y, width, height",
    "read_as_class_score_box": "{n} strings are read as groups of class, score, x1, y1, x2, y2",
    "unread_shapes": "{n} records have other shapes than boxes: the boxes alone are read",
    "unscored_shapes": "{n} images have masks or keypoints as well as boxes: the boxes are scored "
    "(Evaluator(iou_type='segm' or 'keypoints') scores the others)",
    "score_before_box": "{n} boxes leave their images, and far fewer would if the score came before the box: if it does, "
    "say so: --dt-format text --box-format cxcywh",
    "stray_labels": "{n} files of labels without an image in the folder of images: not read",
    "outside_paths": "{n} folders that data.yaml names lie outside of its own, and are read from there: {names}",
    "other_split": "data.yaml has no split val: its split {names} is read (another one: --image-set)",
    "dropped_classes": "{n} records of classes that the class map leaves out: dropped",
    "unused_class_map": "no class of the class map ({n} in all) is among those of the detections: nothing is mapped",
    "classes_by_order": "{n} classes have numbers alone: taken for places among the ground truth's categories, from 0 "
    "(names are surer: --classes)",
    "normalised_detections": f"{{n}} detections lie within about 0 to 1, {_SHARES}, and the ground truth is in pixels: "
    f"{_SCALE}",
    "normalised_ground_truth": f"the ground truth lies within about 0 to 1, {_SHARES}, and the {{n}} detections are in "
    f"pixels: {_SCALE}",
    "shares_of_images": f"{{n}} objects and the detections lie within about 0 to 1, {_SHARES}, which area ranges and "
    f"inclusive pixels take for pixels: {_SCALE}",
    "normalised_polygons": f"{{n}} records have polygons within about 0 to 1, {_SHARES}: drawn as pixels, these masks are "
    "nearly empty (multiply x by the image's width and y by its height)",
    "missing_area": "{n} annotations without area: that of their box",
    "missing_bbox": "{n} annotations without bbox: the box around the points",
    "missing_num_keypoints": "{n} annotations without num_keypoints: counted, those whose third number is above 0",
    "odd_polygons": "{n} polygons of fewer than three points, or with half a point at the end: drawn as pycocotools does",
    "box_masks": "{n} records without a mask: their boxes are filled, as pycocotools does",
    "absent_masks": "{n} objects have a box and no mask: no detection finds them (protocol openimages ignores those that "
    "match their boxes)",
    "boxed_objects": "{n} objects have a box and no mask: they are to be found, and detections that match nothing but their "
    "boxes are ignored",
    "track_lengths": "{n} records for another number of frames than objects of their video: frames behind the end of the "
    "shorter list do not count; write null where nothing is",
    "mask_sizes": "{n} masks of another height and width than their image: they overlap only others of theirs",
    "boxless_results": "{n} results without a box of their own, unlike others: the areas of their shapes count",
    "unused_boxes": "{n} results with a box of their own, unlike the first: as in pycocotools the areas of shapes count",
    "boxes_of_shapes": "{n} results without boxes: the boxes around their masks or poses are scored, as in pycocotools "
    "(iou_type, --iou-type, scores the shapes)",
    "clusters_by_field": "the images have a field {names}: intervals and tests take images as independent of each other, "
    "which frames of a video are not (whole videos are drawn with --clusters {names})",
    "clusters_by_name": "{n} images have names that count up behind a prefix, as parts of a recording do: intervals and "
    "tests take images as independent of each other (--clusters FILE says which are not)",
    "repeated_images": "{n} predictions for an image that has another one: the last one counts, as in panopticapi",
    "repeated_segments": "{n} segments repeat an id of the image: the last one counts, as in panopticapi",
    "unread_predictions": "{n} predictions for images that the ground truth does not have: not read",
    "unlisted_categories": "{n} segments of the ground truth with a category that it does not list: not counted",
    "wrong_areas": "{n} segments of the ground truth whose area in the JSON is not the number of pixels: the JSON's counts, "
    "as in panopticapi",
    "unlisted_pixels": "{n} images of the ground truth with pixels of a segment that the JSON does not list: these pixels "
    "belong to no segment, and are not VOID",
    "no_detections": "no detections to score: every recall is 0",
    "empty_categories": "{n} categories without ground truth: left out of the means",
    "zero_categories": "{n} categories without ground truth: by the protocol's rule their AP is 0 in all means",
    "missing_queries": "{n} judged queries that the run does not have: left out, or 0 where the convention says so",
    "extra_queries": "{n} queries of the run without judgements: left out",
    "empty_queries": "{n} queries without relevant items: they count as the convention says",
    "paired_by_id": "{n} queries are paired by their ids, where ranx pairs dicts by place: {names}",
    "order_of_ranx": "{n} queries have a relevant document that is tied with another: equal scores are in the order in "
    "which they came, and ranx's sort has them in another one",
    "bpref_of_ranx": "{n} queries have no relevant document: there ranx's bpref fails, and is 0 for some other queries too",
    "comment_lines": "{n} lines begin with # and lack fields of a record: taken for comments",
    "marked_records": "{n} lines begin with # and have all fields: read as records, of queries with such ids (trec_eval 10 "
    "leaves them out)",
    "highest_grade": "ERR stops with chance (2 ** grade - 1) / 2 ** max, and max is {names}, the highest grade judged "
    "(gdeval's is 4: ERR(max=4))",
    "text_after_name": "{n} lines of the run with text after its name: that text is not read",
    "no_judged_document": "none of the {n} ranked documents is judged: are ids of run and judgements written alike?",
}


def describe(notices: Mapping[str, int], iou_type: str | None = None) -> list[str]:
    """Return the sentences for `notices`, in the order of `NOTICES`. `iou_type` decides if they speak of images, videos
    or samples.
    """
    counts: dict[str, int] = {}
    named: dict[str, list[str]] = {}
    for key, count in notices.items():
        code, _, name = key.partition(":")
        if name:
            named.setdefault(code, []).append(shorten(name)[1:-1])
        counts[code] = counts.get(code, 0) + (1 if name else count)
    if "zero_id_effect" in counts:  # the sentence of zero_id_effect covers zero_id
        counts.pop("zero_id", None)
    sentences = []
    for code, text in NOTICES.items():
        if counts.get(code):
            names = named.get(code, [])
            shown = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
            said = text.format(n=counts[code], names=shown, advice=advice(names))
            sentences.append(_of_one(said) if counts[code] == 1 else said)
    if iou_type is None or iou_type not in KINDS:
        return sentences
    return [KINDS[iou_type].worded(said) for said in sentences]


#: Notices on images that are missing in a file or folder of detections.
ABSENT = ("missing_samples", "images_without_file")

#: Nouns and verbs of the sentences, in the plural, with their singular.
_OF_ONE = {
    "annotations": "annotation",
    "boxes": "box",
    "categories": "category",
    "classes": "class",
    "fields": "field",
    "files": "file",
    "detections": "detection",
    "folders": "folder",
    "labels": "label",
    "lines": "line",
    "masks": "mask",
    "polygons": "polygon",
    "queries": "query",
    "samples": "sample",
    "metrics": "metric",
    "objects": "object",
    "predictions": "prediction",
    "records": "record",
    "results": "result",
    "rows": "row",
    "segments": "segment",
    "strings": "string",
    "images": "image",
    "do": "does",
    "have": "has",
    "lack": "lacks",
    "leave": "leaves",
    "are": "is",
    "repeat": "repeats",
    "lie": "lies",
    "begin": "begins",
    "stand": "stands",
}
_COUNTED = r"(?<![\w:])1 ((?:judged )?)(\w+)(.*?)(?=: |$)"


def _of_one(sentence: str) -> str:
    """Return a plural sentence about 1 record in the singular: "1 boxes have" becomes "1 box has"."""

    def single(match: re.Match[str]) -> str:
        kind, noun, rest = match.groups()
        if noun not in _OF_ONE:
            return match[0]
        verb = re.match(r" (have|are|repeat|lie|begin|stand|do|lack|leave)\b", rest)
        rest = rest if verb is None else f" {_OF_ONE[verb[1]]}{rest[verb.end() :]}"
        return f"1 {kind}{_OF_ONE[noun]}{rest}"

    return re.sub(_COUNTED, single, sentence, count=1)


#: Maximum number of names in a sentence.
_NAMES = 20


def added(notices: Mapping[str, int] | None, more: Mapping[str, int]) -> dict[str, int]:
    """Add up the counts of the notices of two sources."""
    counted = dict(notices or {})
    for code, count in more.items():
        counted[code] = counted.get(code, 0) + count
    return counted
