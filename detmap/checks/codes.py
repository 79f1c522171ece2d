"""The codes of findings, each with its severity, sentence, effect on metrics, and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]

#: Severities in descending order.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Code:
    """A kind of finding.

    Attributes
    ----------
    code : str
        Name of the code.
    severity : {"error", "warning", "note"}
        Whether metrics are certainly wrong, may be wrong, or are right but need interpretation.
    says : str
        Sentence of the finding; ``{many}`` is replaced by a count with its unit, as "3 detections".
    effect, remedy : str
        Effect of the defect on metrics, and how to fix the defect.
    """

    code: str
    severity: Severity
    says: str
    effect: str
    remedy: str


#: Effects shared by several findings.
_EFFECTS = {
    "@not found": "Such detections are refused or dropped, and the objects that they found count as missed.",
    "@wrong class": "Detections count as false in one category, and the objects that they found as missed in another.",
    "@nowhere": "Such boxes overlap no object as they should: detections become false, objects missed.",
}

#: Four lines per code: severity and name, sentence, effect, remedy.
_TABLE = """
error unreadable_detections
    The detections cannot be read
    Nothing can be scored.
    Repair the file as the message says, and check again.
error no_images
    The ground truth has no image
    There is nothing to score.
    Is it the right file, and does it list its images?
error no_objects
    There is no object on any of {many}
    Nothing can be found: every metric is undefined.
    Is it the file with the annotations, and not the list of images alone?
error no_detections
    There is no detection on any of {many}
    AP is 0 in every category, whatever the detector can do.
    Did the detector run to its end, and is the threshold on scores too high?
error no_shapes
    None of {many} has the shape that is looked for
    Nothing can be scored by such shapes.
    Give the file that has them, or score boxes (another --iou-type).
error bad_values
    {many} left out, as a field is missing or wrong
    detmap refuses the file; other tools stop, or score NaN.
    Repair the records, or leave them out.
error image_ids_shifted
    The image ids of {many} are off by a constant
    Detections are compared with the objects of other images.
    Write the ids that stand in the ground truth, not a counter of your own.
error image_ids_positions
    The image ids of {many} are places in the list of images
    Detections are compared with the objects of other images.
    Write the id of each image, not its index in the data loader.
error image_ids_rotated
    The image ids of {many} are those of neighbours in the list of images
    Detections are compared with the objects of other images.
    Pair images and results by id: two lists of images are out of step there.
error image_ids_type
    The image ids of {many} are text where others are numbers, or the other way round
    @not found
    Write ids as the ground truth has them: 42 and "42" are two ids.
error image_ids_names
    The image ids of {many} are names of files, or the numbers in these
    @not found
    Write the id of each image in place of its file's name.
error image_ids_rewritten
    The image ids of {many} are changed ids of images without detections
    @not found
    Write the id of each image as the ground truth has it, and take it from the list of images, not from a file's name.
error unknown_images
    {many} on images that the ground truth does not have
    detmap refuses them, or drops them with --unknown-images ignore.
    Use the ground truth of the split on which the detector ran.
error unlisted_images
    {many} on images that are not in the list of images
    detmap refuses the file; other tools leave the objects out or stop.
    List these images, or leave out the objects.
error unlisted_categories
    {many} of categories that are not in the list of categories
    detmap refuses the file; other tools leave the objects out.
    List these categories, or leave out the objects.
error category_ids_shifted
    The category ids of {many} are off by a constant
    @wrong class
    Add the constant: many models count classes from 0, or have a background class.
error category_ids_positions
    The category ids of {many} are places in the list of categories
    @wrong class
    Map each class of the model to its category's id: COCO's 80 ids go from 1 to 90.
error category_ids_type
    The category ids of {many} are text where others are numbers, or the other way round
    Such detections are not scored.
    Write ids as the ground truth has them: 1 and "1" are two ids.
error category_ids_names
    The category ids of {many} are names of categories
    Such detections are not scored.
    Write the id of each category in place of its name.
error classes_renamed
    {many} with a category that the ground truth calls otherwise
    Such detections are not scored, and the objects of these categories count as missed.
    Write the categories as the ground truth does.
error classes_permuted
    {many} with the category of another class
    @wrong class
    Sort the model's list of classes as it was in training, and map each to its category's id.
error single_category
    All of {many} have one category, though they lie on objects of several
    @wrong class
    Write each detection's category, not its image's: was the model, or suppression (NMS), run as if there were one class?
error no_agreement
    Hardly any of {many} lies on an object
    AP is near 0 whatever the detector can do.
    Are both files of the same images, at the same size, with boxes written in the same way?
error inverted_boxes
    {many} with a box of negative width or height
    Such boxes overlap nothing; detmap refuses them unless --invalid-boxes says otherwise.
    Is it x1, y1, x2, y2 in place of x, y, width, height, are two corners swapped, or columns read in another order?
error corners_as_sizes
    The boxes of {many} are two corners where x, y, width, height is expected
    @nowhere
    Write width and height: x2 - x1 and y2 - y1.
error sizes_as_corners
    The boxes of {many} are x, y, width, height where two corners are expected
    @nowhere
    Write the far corner: x + width and y + height, or say what the columns are.
error centres_as_corners
    The boxes of {many} begin at their centres
    @nowhere
    Subtract half of width and height from the centre.
error sides_swapped
    Width and height of the boxes of {many} are swapped
    @nowhere
    Write x, y, width, height in this order.
error axes_swapped
    x and y of the boxes of {many} are swapped
    @nowhere
    Write x, the column, ahead of y, the row.
error image_sizes_swapped
    Width and height of {many} are swapped
    Shapes are drawn on, or scaled to, an image of another form.
    Write height and width as the image has them: arrays say (height, width).
error normalised_boxes
    The boxes of {many} are shares of the image, where others are in pixels
    @nowhere
    Multiply x and width by the image's width, y and height by its height (--image-sizes: of Open Images and tables).
error scaled_boxes
    The boxes of {many} and those of the other side are for images of different sizes
    @nowhere
    Look at some: scale boxes back from the size of the model's input, or objects from the size they were drawn at.
error byte_boxes
    {many} with coordinates of one byte, whole numbers up to 255, where larger ones are expected
    @nowhere
    Write coordinates as numbers of 32 bits: a byte (uint8) begins again at 0 beyond 255, or ends there.
error turned_boxes
    The boxes of {many} and those of the other side are for images that are mirrored or turned differently
    @nowhere
    Look at some: undo the flip or turn of the model's input, or turn images as EXIF says where they are labelled.
error broken_runs
    {many} with a mask whose run lengths are damaged
    detmap refuses the file; pycocotools reads such a mask as another one, or crashes.
    Write the run lengths anew; do not cut, escape or change the string.
error mismatched_runs
    {many} with a mask whose runs do not add up to the pixels of its size
    detmap refuses the file; pycocotools hangs, or reads beyond the mask.
    Write counts and size of the same image, and height ahead of width.
error mask_sizes
    {many} with a mask of another height and width than its image
    Such a mask overlaps nothing, and says nothing.
    Scale masks back to the size of the image, and write height ahead of width.
error bad_polygons
    {many} with a segmentation that is no list of polygons
    detmap refuses the file; other tools stop.
    Give each polygon as x, y, x, y and so on, of at least three points.
error normalised_polygons
    The polygons of {many} are shares of the image
    Each mask is a pixel or nothing.
    Multiply x by the image's width and y by its height.
error bad_keypoints
    {many} with keypoints that cannot be read
    detmap refuses the file; other tools stop.
    Give x, y and visibility of each point, for all objects equally many.
error keypoints_permuted
    {many} with points in another order than those of the object that it finds
    Each point is compared with another one, as a left with a right hand: its similarity is about 0.
    Write the points in the order of the ground truth, and exchange left and right where the input was mirrored.
error keypoints_misplaced
    {many} that find an object by their boxes, with points elsewhere than those of the object
    Similarity is about 0: detections become false, objects missed.
    Scale and shift points as boxes are, to pixels of the whole image.
error constant_scores
    All of {many} have one score
    There is no ranking: AP depends on the order in the file.
    Write the confidence of each detection.
error inverted_scores
    The scores of {many} are higher where boxes lie on nothing
    The ranking is upside down: false detections come first, and AP is far below that of the reverse order.
    Write the confidence, which is high where the model is sure: not a distance, a loss or a rank.
error mixed_scores
    {many} with a score on another scale than those of others
    The ranking mixes two scales: one part stands above the other whatever it is worth.
    Bring all scores to one scale: were files of two models, or two versions, joined?
error missing_shard
    {many} without a detection, as where a part of the file was lost
    Whatever is on them counts as missed.
    Did every worker write its part, and were all parts joined?
error crowded_images_lost
    {many} without a detection, which hold far more objects than others
    Whatever is on them counts as missed: recall is too low where there is most to find.
    Run the detector on them again: did it, or its suppression (NMS), run out of time or memory where there are many boxes?
error undetected
    {many} on images without any detection of their category, though on others it is detected
    Whatever is of this category there counts as missed.
    Run the detector again on these images for this category, or join the part that was lost.
error misplaced
    {many} not found by the detections of their category on their image, in a part where hardly any is
    Detections there count as false, and the objects as missed.
    Look at some of these images: are image, size, orientation and labels the same on both sides?
error detections_left_over
    {many} that are those of another image, box by box and with their scores, beside detections of this image
    They count as false, wherever they lie.
    Empty the list of results ahead of each image, and leave out the copies.
error objects_left_over
    {many} with the category and the box of an object of another image
    They count as missed.
    Empty the list of boxes ahead of each image, and leave out the copies.
error parts_exchanged
    {many} that lie on the objects of another part of the images
    Detections there count as false, and the objects as missed.
    Write each result with the id of its own image: were outputs of two workers exchanged, or joined in another order?
error batches_reversed
    {many} on images that hold those of others, in reverse order
    Detections there count as false, and the objects as missed.
    Write each result with the id of its own image, not by its place: does a worker or a queue reverse its batches?
error drawn_otherwise
    {many} not found by the detections of their category, and drawn by another rule than these
    Detections there count as false, and the objects as missed.
    Look at some: are they drawn as labels are elsewhere, whole or in part, and hidden parts with or without?
error leakage
    {many} of both ground truths
    A model is tested on what it was trained on: the numbers are too good.
    Take them out of one of the two.
error same_query_document
    {many} ranked more than once for a query
    detmap refuses the run; elsewhere a relevant document counts twice.
    Keep the best score of each document.
error conflicting_judgements
    {many} judged twice, with two grades
    Which grade counts depends on the tool.
    Keep one judgement of each document.
error disjoint_queries
    No query that is judged is among {many} of the run
    Nothing can be scored.
    Write the ids of queries as the judgements do, and use those of the same topics.
error disjoint_documents
    Not one of {many} of the run is judged for a query for which it is ranked
    Every metric is 0.
    Write the ids of documents as the judgements do, and use those of the same corpus.
warning shares_of_images
    The boxes of {many} are shares of the image, as it seems
    Overlaps of such boxes are right, but area ranges and inclusive pixels take them for pixels.
    Multiply x and width by the image's width, y and height by its height (--image-sizes: of Open Images and tables).
warning foreign_fields
    The ground truth has {many} of another benchmark
    COCO's and VOC's protocols do not read such fields: their numbers are not that benchmark's.
    Score by the benchmark's own rules: --protocol auto takes them, where detmap has them (LVIS: lvis).
warning unknown_categories
    {many} of categories that the ground truth does not have
    They are not scored.
    Leave them out, or map them to the categories that are meant.
warning unknown_videos
    {many} on videos that the ground truth does not have
    They count as false, as ActivityNet's and THUMOS14's own programs count them.
    Use the ground truth of the split on which the detector ran, or leave them out: --unknown-images ignore.
warning categories_without_detections
    {many} without a detection
    Where there are objects of them, AP is 0, which pulls the mean down.
    Was the model trained on them, and are their ids or names the same?
warning classes_disagree
    {many} on an object of another category than theirs
    They are false, however well they lie.
    Look at some: are labels of one side wrong?
warning unlabelled
    {many} of high score on nothing, in a part where most lie so
    They count as false, though what they show may be there.
    Look at some: label what is missing, or leave these images out, for one category if one is named.
warning row_lost
    {many} with an object that no detection finds, in a part where this is more regular than by chance
    These objects count as missed.
    Is a detection of each image lost there, as where the first row is taken for a header or rows are counted from 1?
warning relabelled
    {many} taken for another category, in a part where far more are than elsewhere
    They count as missed, and the detections on them as false.
    Look at some: are the labels of one side wrong there, or of another version of the list of categories?
warning default_category
    {many} of one category on which confident detections of many others lie, on images without any other category
    They count as missed, and the detections on them as false.
    Look at some: was the default category of a tool left? Give them their own category, or leave these images out.
warning rarely_detected
    {many} on images without any detection of their category, far more than in other categories
    They count as missed.
    Was a part of the detections of this category lost? Otherwise the model does not know it.
warning detections_in_place
    {many} of one category in one and the same place of many images, nearly all of which find no object
    They count as false.
    Look at some: what is drawn there, such as a logo or the text of a camera, is no object; cover it, or leave them out.
warning detections_of_two_classes
    {many} of one category written again under another, with the same box and score
    Under the category to which they do not belong they count as false.
    Write each detection under its own category, unless the labels are of both, too.
warning scores_of_boxes
    {many} with the score of another category of their box
    All but one category of a box are false, and rank as high as the right one.
    Write the score of each class: was the best of them, or that of the box alone (objectness), written for all?
warning rarely_labelled
    {many} of the highest scores of their category that lie on nothing, far more than in other categories
    They count as false, though what they show may be there.
    Look at some: label what is missing, or leave these images out, for one category if one is named.
warning class_of_two_names
    {many} without a detection, whose objects are taken for those of another category
    They count as missed, and the detections on them as false; AP of these categories is 0.
    Do both names mean one class? Then give their objects one id. If not: does the detector's list of classes lack one?
warning labels_mixed
    {many} of one category that are taken for another at high scores
    They count as missed, and the detections on them as false.
    Look at some: are labels of one category under the name of the other, or do both look alike?
warning rarely_found
    {many} not found by the detections of their category on their image, as most of this category
    Detections of this category count as false, and its objects as missed.
    Look at some: are boxes and labels of this category made in the same way on both sides?
warning missing_labels
    {many} of the highest scores of their category that lie on nothing
    They count as false, though what they show may be there.
    Look at some: label what is missing, or leave these images out.
warning objects_capped
    {many} with one and the same number of objects, a limit as it seems, and more detections on nothing
    Labels were cut off there: detections of what is left out count as false.
    Export all objects of each image, or leave these images out.
warning wrong_labels
    {many} taken for other categories at high scores
    They count as missed, and the detections on them as false.
    Look at some: are the labels of one side wrong?
warning scores_rank_nothing
    {many} that find objects, with scores hardly higher than those of others
    The ranking says nothing: AP is that of a random order.
    Write each detection's own score: were scores and boxes sorted apart?
warning piled_scores
    {many} with one and the same score
    Their order depends on the file and on the tool, and AP with it.
    Write scores as they are: were they clipped, filled in where there was none, or divided by the highest of the image?
warning strict_suppression
    {many} that no detection overlaps best and by half, beside another of their category, overlapping more than detections do
    One of the two is seldom found.
    Raise the threshold of overlap of the suppression (NMS), or suppress less.
warning suppressed_across
    {many} overlapping one of another category by more than any two confident detections do
    One of the two is seldom found.
    Suppress overlaps (NMS) within a category alone, as the protocols match within one.
warning uneven_suppression
    {many} without such overlaps of detections as others have
    Where suppression (NMS) is stricter, or goes across categories, only one of two objects that overlap can be found.
    Suppress overlaps on all images alike, and within a category alone.
warning uneven_scores
    {many} with other scores than those elsewhere
    The ranking mixes two scales: one part stands above the other whatever it is worth.
    Bring all scores to one scale: are results of two models, or of two versions, in the file?
warning uneven_boxes
    {many} that find objects, with a smaller overlap than elsewhere
    They are no hits at high thresholds.
    Look at some: is the size of these images, or the rounding of boxes, another one there?
warning uneven_counts
    {many} with far more or fewer detections for each object than others
    Where detections are cut off recall ends; where there are more, some may be there twice.
    Was another threshold on scores, another limit or another suppression of overlaps used there?
warning biased_boxes
    The boxes of {many} that find objects are larger or smaller than these, or lie to one side
    Overlaps are smaller than they could be, most of all at high thresholds.
    Are boxes scaled and clipped as the labels are, and does each side count the last pixel?
warning drawn_unevenly
    {many} on which all objects are larger, or all smaller, beside the detections that find them than is usual
    Overlaps there are smaller than they could be, most of all at high thresholds.
    Look at some: does one annotator leave a margin or cut objects off, or were some detections scaled? Draw all by one rule.
warning sizes_cut
    {many} of a size or at a place that no detection has, a limit as it seems
    They cannot be found.
    Remove the filter of detections, or leave such objects out of both sides.
warning sizes_missed
    {many} of a range of sizes not found, where smaller and larger ones are
    They count as missed, and detections on them, if there are some, as false.
    Is a level of the detector's feature pyramid lost, or decoded otherwise than the others?
warning objects_of_many
    {many} around several others of their category, and found far less often than others as large
    They count as missed, if they stand for many objects.
    Look at some: flag regions of many objects as iscrowd.
warning parts_as_objects
    {many} not found, within far larger ones of their category, unlike others as small
    They count as missed, if they are parts of objects.
    Look at some: were parts, as heads, hands or wheels, read as objects? Leave them out, or give them their own category.
warning grouped_objects
    {many} filled by two or more confident detections of their category, of higher scores than any that finds the object
    They count as missed, or as found at a low score, and the detections of what they hold as false.
    Look at some: give each object its own box, or flag regions of many objects as iscrowd.
warning stray_objects
    {many} far smaller than all others, as accidental clicks are
    No detector finds them: they count as missed.
    Look at some, and delete what is no object.
warning whole_image_objects
    {many} with the whole image as their box, missed far more often than others nearly as large
    They count as missed, and detections of what is there as false.
    Look at some: were labels of images written as boxes? Draw the objects, or leave these images out.
warning category_cap
    {many} more than the largest number of detections of an image and category, a limit as it seems
    They cannot be found.
    Keep all detections of an image and category, not only the best.
warning category_score_cut
    {many} of categories without scores below a cut, where others have many
    Recall of these categories ends there, and AP is smaller than it could be.
    Use one threshold on scores, a low one, for all categories.
warning part_score_cut
    {many} of a part without scores below a cut, where others have many
    Recall of this part ends there, and AP is smaller than it could be.
    Use one threshold on scores, a low one, for all images.
warning categories_of_labels
    Not one of {many} is of a category without an object on its image
    A detector that is told the categories of an image makes fewer errors than one that is not: AP is too good.
    Keep the detections of all categories on all images.
warning detections_of_labels
    Nearly all of {many} lie on objects
    A detector also finds what is not there: precision is too good if what matches no object was left out.
    Write all detections, not only those that a tool matched to an object.
warning empty_images_skipped
    {many} without an object has no detection either, though on others some lie on nothing
    What is detected there is false, and is not counted: precision is too good.
    Run the detector on all images, not on those alone that annotations name.
warning square_boxes
    {many} of equal width and height
    Overlaps of objects that are longer than wide, or wider than long, are smaller than they could be.
    Write both sides of each box: was one of them used twice, or did a tool make boxes square?
warning constant_boxes
    {many} with one and the same box on many images
    Objects of a tool's default cannot be found, and detections that fill an array up are false.
    Look at some: were boxes of a default kept, or rows of padding written?
warning piled_sides
    {many} with one and the same width or height, far more than with any near it
    Overlaps are smaller than they could be, most of all of small boxes.
    Look at some: does a tool enforce a least side, or keep a default? Make boxes as large as what they hold.
warning same_detections
    {many} with exactly the detections of an earlier one
    Those of one of the two are false, unless both show the same.
    Look at some: was a buffer written again before it was filled, or an image read twice?
warning cut_boxes
    {many} with an edge at a coordinate inside the image that many share
    An object that is cut there is found in pieces, or in part.
    Merge boxes across the borders of tiles, show the model whole images, not crops, and clip boxes to the image's own size.
warning anchor_boxes
    {many} of a few sizes of box, as anchors or proposals have
    Overlaps are far smaller than they could be, and below the threshold for many.
    Apply the model's regression: decode its offsets to each anchor (box deltas), and write the decoded boxes.
warning coarse_boxes
    {many} with corners on a grid
    Overlaps of small objects are smaller than they could be.
    Write boxes with all their digits, not the cells of a feature map.
warning copied_boxes
    {many} with the box of the object that they find
    Numbers are too good, whichever of the two was made from the other.
    Was the ground truth written in place of detections, or were the labels made from these detections?
warning unsuppressed
    {many} of high score that overlap a better one of their category
    All but one of the detections of an object are false.
    Suppress overlaps (NMS) there as elsewhere, or were results of two models joined?
warning unsuppressed_across
    {many} of high score that overlap one of another category, of about as high a score
    One of the two is false at least, and counts against its category.
    Look at some: was each box written under two categories, or were results of two models joined?
warning repeated_categories
    {many} with the name of an earlier one, or listed twice
    Objects of one class are split among two, each with an AP of its own.
    Give each class one id.
warning repeated_image_ids
    {many} listed more than once under the same id
    Which size and file name counts depends on the tool.
    List each image once.
warning same_image_twice
    {many} there already under an earlier id
    An image counts twice, and its detections may all stand on one of the two.
    Keep one of the two.
warning repeated_ids
    {many} repeating the id of an earlier annotation
    Each is scored here; pycocotools keeps the last of them in its index.
    Number annotations anew: were files joined?
warning duplicate_objects
    {many} with the box of an earlier object of its category
    A detector finds one of them and misses the other.
    Keep one: were annotations joined, or saved twice?
warning duplicate_detections
    {many} with the box of an earlier detection of its category
    All but one of them are false.
    Keep one: was a part joined twice, or is there no suppression of overlaps?
warning outside_boxes
    {many} with a box that reaches too far beyond its image
    An overlap counts what cannot be seen, so that it comes out too small.
    Is the image's size right, and are no boxes shifted? Then clip them to the image, unless the benchmark wants them whole.
warning shifted_boxes
    The boxes of {many} lie to one side of their objects
    Overlaps are smaller than they could be, most of all of small objects and at high thresholds.
    Do both sides count pixels from 0, and is nothing left of a crop, a tile, a border or a padding?
warning zero_sized_boxes
    {many} with a box of no width or height
    No box overlaps it: an object is missed, and a detection false.
    Leave them out, or repair the rounding that made them.
warning area_misfits
    {many} with an area that is neither that of its box nor that of its mask
    The object counts in the wrong range: small, medium or large.
    Give areas in square pixels, of the mask where there is one, else of the box.
warning crowds_misplaced
    {many} flagged as a crowd that seem to be single objects
    Crowds count neither as missed nor, where they are detected, as found.
    Flag regions of many objects alone as iscrowd.
warning crowds_unflagged
    {many} with a list of run lengths, as COCO draws crowds alone, and without the flag of a crowd
    They count as missed, and detections within them as false, if they stand for many objects.
    Look at some: flag regions of many objects as iscrowd.
warning missing_shapes
    {many} without the mask or the pose that others have
    It is refused, or its box is filled in place of it.
    Give every record its shape, or leave the field out of all.
warning empty_masks
    {many} with a mask without a pixel
    Nothing overlaps it.
    Leave them out, or write the mask anew.
warning masks_off_boxes
    {many} with a mask that lies elsewhere than its box
    Boxes and masks are scored as if they were of two objects.
    Make the box of the mask, or find which of the two is of another object.
warning coarse_masks
    {many} with a mask of a lower resolution than its image, whose outline moves by steps of several pixels
    Overlaps of small masks and of boundaries are smaller than they could be.
    Scale the model's values up to the size of the image ahead of the threshold, not the mask after it.
warning outside_polygons
    {many} with a polygon that reaches too far beyond its image
    It is cut off at the edge, so that the mask is smaller than meant.
    Is the image's size right, and is x ahead of y?
warning odd_polygons
    {many} of fewer than three points, or with half a point
    It is drawn as a line or not at all.
    Leave it out, or give it its points.
warning outside_keypoints
    {many} with a labelled point too far outside
    Such a point is similar to none, or similarity is measured by the box or area of another object.
    Are points x, y, v of the whole image, and boxes of the same object?
warning keypoint_counts
    {many} with another num_keypoints than it has labelled points
    Objects of 0 labelled points need not be found: some count that should not, or the other way round.
    Count the points whose third number is above 0.
warning keypoint_visibility
    {many} with a visibility that contradicts the places of points
    Points that are nowhere count as labelled, or those that are there do not.
    Write 0 with x = y = 0 for a point that is not labelled, and 1 or 2 for any other.
warning keypoint_flags
    {many} with a visibility other than 0, 1 and 2
    Points count as labelled that are not, if a confidence was written there.
    Write 0 (not labelled), 1 (hidden) or 2 (visible).
warning logit_scores
    {many} with scores that are no probabilities, below 0 or above 1
    AP is right; whatever has a threshold on scores, or measures calibration, is not.
    Apply the sigmoid or softmax to logits, or bring scores into 0 to 1 otherwise.
warning percentage_scores
    {many} with scores in percent
    AP is right; whatever has a threshold on scores, or measures calibration, is not.
    Divide by 100.
warning coarse_scores
    {many} with a score of few digits
    Scores that are close become equal: their order depends on the file and on the tool, and AP with it.
    Write scores with all their digits, and convert logits to float32 ahead of the sigmoid or softmax.
warning quantised_scores
    {many} with the score of another detection of its category
    The order of equal scores depends on the file and on the tool, and AP with it.
    Write scores with all their digits.
warning score_cut
    No score of {many} lies below a cut, and what lies just above it still finds objects
    Recall ends there, and AP is smaller than it could be.
    Lower the threshold on scores: AP wants the whole ranking (0.001 or so).
warning score_gap
    No score of {many} lies within a range of which both sides hold many
    Objects that detections of such scores find count as missed.
    Was the file made of parts by score, and one of them lost?
warning cap_reached
    {many} with one and the same number of detections, a limit as it seems
    Detections were cut off there, and recall with them.
    Raise the limit of detections per image to that of the protocol, or above.
warning objects_beyond_cap
    {many} beyond the first 100 of their image and category
    The protocol coco looks at 100 detections of an image and category: such objects count as missed whatever is found.
    Raise the limit, of the detector as well as of the protocol (--max-dets).
warning unjudged
    {many} with unjudged documents among its first ten
    They count as not relevant, which they may not be: runs from outside of the pool look worse.
    Judge them, or use metrics for incomplete judgements (bpref, --judged-only).
warning missing_queries
    {many} judged, and not in the run
    They are left out of the means, unless --complete counts them as 0.
    Did the run end early, or does it find nothing there?
warning tied_scores
    {many} with the score of another document of its query
    Their order depends on the tool, and with it every metric.
    Write scores with all their digits, or one that decreases with the rank.
warning short_rankings
    {many} with far fewer documents than others
    Recall is bounded there, and metrics at a depth read a ranking that has ended.
    Search as deep for every query: was the run cut off?
warning repeated_judgements
    {many} judged twice, with the same grade
    Some tools count it twice.
    Keep one judgement of each document.
note trained_on
    {many} with several objects, nearly all of which are found within a pixel or so and with high scores, unlike others
    The detector was trained on these images, as it seems: the numbers are too good.
    Compare with the training set (--train), and leave out what is in both.
note areas_of_boxes
    {many} with the area of its box, where that of its mask is another
    By their areas such objects count in another range (small, medium, large) than by their masks.
    Nothing, if that is meant: COCO's own areas are those of masks.
note categories_without_objects
    {many} without an object to find
    They have no AP, and are left out of the means.
    Nothing, if that is how the data is: otherwise, are their objects under another id?
note images_without_objects
    More than half of the images have no object: {many}
    All that is detected there is false.
    Nothing, if that is how the data is: otherwise, are annotations missing?
note images_without_detections
    {many} without a detection
    Whatever is on them counts as missed.
    Look at some of them.
note tiny_objects
    {many} with a side of less than 2 pixels
    No detector finds such objects well, and rounding alone changes their overlaps.
    Nothing, if they are meant: otherwise, were they drawn by accident?
note unknown_sizes
    {many} without height and width
    Boxes and polygons there cannot be compared with the edge of the image.
    Give sizes: --image-sizes.
note beyond_cap
    {many} beyond the first 100 of their image and category
    The protocol coco leaves them out.
    Nothing, unless more than 100 such objects can be on an image: --max-dets.
note extra_queries
    {many} of the run without judgements
    They are left out.
    Nothing, if the run holds more topics than the judgements.
note queries_without_relevant
    {many} without a relevant document
    They count as the convention says: left out, or 0.
    Nothing, if that is how the judgements are.
"""


def _codes() -> Iterator[Code]:
    lines = iter(_TABLE.strip().splitlines())
    for head, says, effect, remedy in zip(lines, lines, lines, lines, strict=True):
        severity, code = head.split()
        effect = _EFFECTS.get(effect.strip(), effect.strip())
        yield Code(code=code, severity=severity, says=says.strip(), effect=effect, remedy=remedy.strip())  # type: ignore[arg-type]


#: All codes by name.
CODES: dict[str, Code] = {row.code: row for row in _codes()}
