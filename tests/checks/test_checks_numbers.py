"""The number of a finding is what its sentence says: counted again from the records of the files."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import planting
import pytest

from detmap.checks import check, check_run
from detmap.checks.context import Facts
from detmap.checks.coverage import _empty, _lost, explained

clean = functools.lru_cache(maxsize=None)(planting.clean)


def findings(folder, truth, found=None):
    """The findings of two documents, by code."""
    paths = []
    for name, content in (("truth", truth), ("found", found)):
        paths.append(None if content is None else folder / f"{name}.json")
        if content is not None:
            paths[-1].write_text(json.dumps(content))
    return {one.code: one for one in check(*paths).findings}


def drawn(seed=3):
    data = copy.deepcopy(clean(seed, "boxes"))
    return data.truth, data.found


def grid(images, classes=("cat", "dog"), each=2):
    """Images with objects that do not overlap, and a detection on each of them."""
    truth = {
        "images": [{"id": 7 * n + 3, "file_name": f"{n:06d}.jpg", "width": 640, "height": 480} for n in range(images)],
        "categories": [{"id": n + 1, "name": name} for n, name in enumerate(classes)],
        "annotations": [],
    }
    for at, image in enumerate(truth["images"]):
        for n in range(each):
            box = [20 + 100 * n + at % 7, 30 + 90 * ((at + n) % 4), 60 + at % 11, 50 + (3 * n + at) % 13]
            truth["annotations"].append(
                {"id": len(truth["annotations"]) + 1, "image_id": image["id"], "category_id": 1 + (at + n) % len(classes),
                 "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            )  # fmt: skip
    found = [
        {"image_id": one["image_id"], "category_id": one["category_id"], "bbox": one["bbox"],
         "score": round(0.99 - n / 3 / len(truth["annotations"]), 5)}
        for n, one in enumerate(truth["annotations"])
    ]  # fmt: skip
    return truth, found


# ------------------------------------------------------------------------------------------------------------- lost parts


def without_detections(truth, found):
    """The images with objects that are no crowds, and without detections."""
    held = {one["image_id"] for one in truth["annotations"] if not one["iscrowd"]}
    return held - {one["image_id"] for one in found}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("way", ["a block", "a short block", "every third"])
def test_a_lost_part_says_no_more_than_its_numbers(tmp_path, seed, way):
    """Of a block of 158 images it said "more than chance explains: 354.3 would be expected"."""
    rng = np.random.default_rng(seed)
    truth, found = grid(400, each=4 if way == "every third" else 1)
    ids = [one["id"] for one in truth["images"]]
    part, share = {
        "a block": (ids[120:278], 0.6),
        "a short block": (ids[120:135], 0.9),
        "every third": (ids[::3], 1.0),
    }[way]
    kept = [one for one in found if one["image_id"] not in part and rng.random() < share]
    made = findings(tmp_path, truth, kept)["missing_shard"]
    assert made.count == len(without_detections(truth, kept))
    assert made.says.startswith(f"{made.count} images with objects to find without a detection, as where a part")
    expected = re.search(r"([\d.,]+) would be expected", made.says)
    run = re.search(
        r"(\d+) of them follow one another in the order of ids; ([\d.e-]+) such runs would be expected", made.says
    )
    assert (expected is None) is (run is not None)
    if expected is not None:
        assert float(expected[1].replace(",", "")) < made.count
    else:
        empty = np.isin(sorted(ids), sorted(without_detections(truth, kept)))
        longest = max(len(part) for part in "".join("x" if one else " " for one in empty).split())
        assert int(run[1]) == longest
        assert float(run[2]) < 1e-4


@pytest.mark.parametrize(("objects", "lost"), [(2, False), (3, True)])
def test_images_that_hold_as_many_objects_as_others_are_lost(objects, lost):
    """By chance those without detections hold few; where all images hold few that says nothing."""
    held = np.random.default_rng(0).poisson(4, 94).clip(1)
    detections = np.insert(held, np.arange(5, 90, 15), 0)
    there = np.ones(100, bool)
    said = _lost(Facts(None), np.full(100, objects), detections, there)
    assert (said != "") is lost
    if lost:
        assert said.endswith(f"they hold as many objects as these, in the median {objects} and {objects}")
        assert float(said.split()[0]) * 2 <= 6


@pytest.mark.parametrize(
    ("empty", "cut", "codes"),
    [
        (25, 0.5, {"images_without_detections": 25}),
        (26, 0.5, {"missing_shard": 26}),
        (23, 0.05, {"missing_shard": 23}),
        (23, None, {"missing_shard": 23}),
    ],
)
def test_either_side_of_empty_images_that_a_cut_of_scores_explains(empty, cut, codes):
    """Of 900 images 90 have no score of 0.5; in a part of 100 images without lower scores 10 would have none."""
    detections = np.where(np.arange(1000) < empty, 0, 9)
    image = np.repeat(np.arange(1000), detections)
    agreement = SimpleNamespace(confidence=np.where(image % 10 == 5, 0.1, 0.6))
    truth = SimpleNamespace(
        image=np.arange(1000), crowd=np.zeros(1000, bool),
        on=SimpleNamespace(images=SimpleNamespace(ids=np.arange(1000))),
    )  # fmt: skip
    facts = SimpleNamespace(
        renamed=None,
        cut=None,
        beyond=None,
        agreement=agreement,
        schema=False,
        truth=truth,
        found=SimpleNamespace(image=image),
        kind=None,
    )
    before = list(_empty(facts, np.ones(1000, int), detections))
    assert {one.code: one.count for one in before} == {"missing_shard": empty}
    facts.cut = None if cut is None else (np.arange(1000) < 100, cut)
    assert {one.code: one.count for one in explained(facts, before)} == codes


def test_images_without_detections_are_those_with_objects(tmp_path):
    truth, found = grid(40)
    empty, crowded, lost = (truth["images"][at]["id"] for at in (3, 11, 30))
    truth["annotations"] = [one for one in truth["annotations"] if one["image_id"] != empty]
    for one in truth["annotations"]:
        one["iscrowd"] = int(one["image_id"] == crowded)
    found = [one for one in found if one["image_id"] not in (empty, crowded, lost)]
    made = findings(tmp_path, truth, found)["images_without_detections"]
    assert (made.count, made.records) == (1, (lost,))
    assert made.says == "1 image with objects to find without a detection"


def test_an_image_with_a_crowd_alone_is_not_without_objects(tmp_path):
    truth, found = grid(40)
    for at, one in enumerate(truth["annotations"]):
        one["iscrowd"] = int(at >= 30)
    assert "images_without_objects" not in findings(tmp_path, truth, found)
    truth["annotations"] = truth["annotations"][:30]
    made = findings(tmp_path, truth, found[:30])["images_without_objects"]
    assert made.count == 40 - len({one["image_id"] for one in truth["annotations"]})


def test_categories_without_detections_are_those_with_objects(tmp_path):
    truth, found = grid(40, ("cat", "dog", "cow"))
    truth["categories"].append({"id": 9, "name": "emu"})  # neither objects nor detections
    made = findings(tmp_path, truth, [one for one in found if one["category_id"] != 2])
    assert made["categories_without_detections"].says == "1 category with objects to find without a detection: dog"
    assert made["categories_without_objects"].says == "1 category without an object to find: emu"


# ------------------------------------------------------------------------------------------------------------------ boxes


@pytest.mark.parametrize("seed", range(3))
def test_boxes_outside_are_counted_as_the_sentence_says(tmp_path, seed):
    """Detections of which less than a quarter lies outside were not counted, and the sentence did not say so."""
    truth, found = drawn(seed)
    rng = np.random.default_rng(seed)
    sizes = {one["id"]: (one["width"], one["height"]) for one in truth["images"]}
    for records, share in ((truth["annotations"], 0.02), (found, 0.05)):
        for one in records:
            if rng.random() < share:
                one["bbox"][0] = sizes[one["image_id"]][0] - one["bbox"][2] * rng.choice([0.5, 0.74, 0.9, 1])
                one["bbox"][0] += rng.choice([0, 1.5])
    inside = {one["image_id"]: sizes[one["image_id"]] for one in truth["annotations"]}

    def reach(one):
        (x, y, w, h), (width, height) = one["bbox"], inside.get(one["image_id"], sizes[one["image_id"]])
        return max(-x, -y, x + w - width, y + h - height)

    def share_outside(one):
        (x, y, w, h), (width, height) = one["bbox"], sizes[one["image_id"]]
        seen = np.maximum(np.minimum([x + w, y + h], [width, height]) - np.maximum([x, y], 0.0), 0.0)
        return 1 - seen.prod() / (w * h)

    for records, wanted, said in (
        (truth["annotations"], [one for one in truth["annotations"] if reach(one) > 1.5], "by more than 1.5 pixels"),
        (
            found,
            [one for one in found if reach(one) > 1.5 and share_outside(one) > 0.25],
            "by more than 25% of its area",
        ),
    ):
        own = [one for one in truth["annotations"] if records is truth["annotations"] or reach(one) <= 1.5]
        made = findings(tmp_path, {**truth, "annotations": own}, found if records is found else None)["outside_boxes"]
        assert made.count == len(wanted)
        assert said in made.says
        most = max(map(reach, wanted))
        assert float(re.search(r"and by ([\d.,]+) pixels at most", made.says)[1].replace(",", "")) == pytest.approx(
            most, rel=5e-3
        )
        assert "reaches too far beyond its image" in made.says


def test_either_side_of_what_is_too_far_outside(tmp_path):
    truth, found = grid(30)
    for at, (x, w) in enumerate([(610, 40), (610.5, 40), (639, 2), (636.5, 4), (637, 5), (641, 3)]):
        found[at]["bbox"] = [x, 10, w, 30]  # a quarter, more, half but a pixel, less than a quarter, more, all
    assert findings(tmp_path, truth, found)["outside_boxes"].records == (1, 4, 5)
    for at, x in enumerate([601.5, 601.6, 602]):  # as far as by counting pixels from 1, and farther
        truth["annotations"][at]["bbox"] = [x, 10, 40, 30]
    assert findings(tmp_path, truth)["outside_boxes"].records == (1, 2)


@pytest.mark.parametrize("side", ["truth", "found"])
def test_boxes_that_are_there_before(tmp_path, side):
    truth, found = grid(60)
    records = truth["annotations"] if side == "truth" else found
    records += [{**records[at], **({"id": 1000 + n} if side == "truth" else {})} for n, at in enumerate([0, 0, 5, 9])]
    made = findings(tmp_path, truth, found)["duplicate_objects" if side == "truth" else "duplicate_detections"]
    seen = Counter((one["image_id"], one["category_id"], *one["bbox"]) for one in records)
    assert made.count == sum(times - 1 for times in seen.values()) == 4
    assert "with the box of an earlier " in made.says


def test_a_crowd_in_the_box_of_an_object_is_no_duplicate(tmp_path):
    truth, found = grid(60)
    truth["annotations"] += [{**truth["annotations"][at], "id": 900 + at, "iscrowd": 1} for at in (3, 4)]
    assert "duplicate_objects" not in findings(tmp_path, truth, found)


def test_a_shift_is_of_the_detections_that_lie_on_objects(tmp_path):
    truth, found = grid(80)
    moved = [{**one, "bbox": [one["bbox"][0] + 3, *one["bbox"][1:]]} for one in found]
    alone = [{**one, "bbox": [600, 440, 20, 20], "score": 0.2} for one in found[::4]]
    made = findings(tmp_path, truth, [*moved, *alone])["shifted_boxes"]
    assert made.count <= len(moved)
    assert "by +3.0 and +0.0 pixels" in made.says


def test_either_side_of_a_shift(tmp_path):
    """Opposite edges that are off by 3 and 5 pixels are shifted, those by 3 and 6 are not."""
    truth, found = grid(80)
    for wider, said in ((2, True), (3, False)):
        boxes = [(x + 3, y, w + wider, h) for x, y, w, h in (one["bbox"] for one in found)]
        moved = [{**one, "bbox": box} for one, box in zip(found, boxes, strict=True)]
        made = findings(tmp_path, truth, moved).get("shifted_boxes")
        assert (made is not None and "by +4.0 and +0.0 pixels" in made.says) is said


def test_what_a_sample_shows_is_said_to_be_at_least_that(tmp_path):
    """ "The image ids of 37 detections are off by a constant" where all are: the others lie on no object."""
    truth, found = drawn()
    ids = sorted(one["id"] for one in truth["images"])
    truth["images"] = [{**one, "id": 10 * ids.index(one["id"]) + 10} for one in truth["images"]]
    truth["annotations"] = [{**one, "image_id": 10 * ids.index(one["image_id"]) + 10} for one in truth["annotations"]]
    moved = [{**one, "image_id": 10 * ids.index(one["image_id"])} for one in found]
    made = findings(tmp_path, truth, moved)["image_ids_shifted"]
    assert made.count < len(moved)
    assert f"The image ids of at least {made.count:,} detections are off by a constant" in made.says


# -------------------------------------------------------------------------------------------------------------------- ids


NAMES = {
    "0_1": (False, [f"0_{n}" for n in range(40)]),
    "of two numbers": (False, [f"{n // 8}_{n % 8}" for n in range(40)]),
    "of folders": (False, [f"cam{n}_1" for n in range(40)]),
    "of many kinds": (False, [f"{chr(97 + n % 26)}{chr(97 + n // 26)}_{n}" for n in range(40)]),
    "of one image each two": (False, [f"img_{'0' * (n % 2)}{n // 2}" for n in range(40)]),
    "the numbers": (True, [f"{n}" for n in range(40)]),
    "with zeros": (True, [f"{n:012d}" for n in range(40)]),
    "of COCO": (True, [f"COCO_val2014_{n:012d}" for n in range(40)]),
    "files": (True, [f"{n:06d}.jpg" for n in range(40)]),
    "paths": (True, [f"val/{n:06d}.jpg" for n in range(40)]),
    "other digits": (False, [str(n).translate({48 + d: 0x660 + d for d in range(10)}) for n in range(40)]),
    "signs": (False, [f"+{n}" for n in range(40)]),
    "underscores": (False, [f"1_{n:03d}" for n in range(40)]),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_those_of_images(tmp_path, name):
    """The ids "0_1" and "1_1" of another data set were both said to be image 000001."""
    explained, names = NAMES[name]
    truth, found = grid(40)
    called = {image["id"]: names[at] for at, image in enumerate(truth["images"])}
    renamed = [{**one, "image_id": called[one["image_id"]]} for one in found]
    made = findings(tmp_path, truth, renamed)
    assert set(made) & {"image_ids_names", "unknown_images"} == {"image_ids_names" if explained else "unknown_images"}
    assert made["image_ids_names" if explained else "unknown_images"].count == len(found)


def test_numbers_in_names_must_be_borne_out_by_boxes(tmp_path):
    """A data set of which the files are numbered in the same way is another one all the same."""
    truth, found = grid(40)
    called = {image["id"]: f"img_{at:06d}" for at, image in enumerate(truth["images"])}
    own = [{**one, "image_id": called[one["image_id"]]} for one in found]
    assert "image_ids_names" in findings(tmp_path, truth, own)
    rng = np.random.default_rng(0)
    other = [{**one, "bbox": [*(rng.random(2) * 400).tolist(), *(5 + rng.random(2) * 9).tolist()]} for one in own]
    made = findings(tmp_path, truth, other)
    assert "image_ids_names" not in made
    assert made["unknown_images"].count == len(found)


def test_images_that_are_unknown_besides(tmp_path):
    truth, found = grid(40)
    called = {image["id"]: image["file_name"] for image in truth["images"]}
    strange = {image["id"] for image in truth["images"][::5]}
    renamed = [
        {**one, "image_id": f"other{one['image_id']}.png" if one["image_id"] in strange else called[one["image_id"]]}
        for one in found
    ]
    made = findings(tmp_path, truth, renamed)
    others = sum(one["image_id"] in strange for one in found)
    assert made["image_ids_names"].count == len(found) - others
    assert made["unknown_images"].count == others


def test_classes_that_are_unknown_besides(tmp_path):
    truth, found = grid(40, ("traffic light", "dog", "cow", "emu"))
    for one in truth["categories"]:
        one["id"] = one["name"]
    names = ["Traffic-Light", "wolf", "cow", "ant"]
    for one in truth["annotations"]:
        one["category_id"] = truth["categories"][one["category_id"] - 1]["id"]
    renamed = [{**one, "category_id": names[one["category_id"] - 1], "bbox": [1, 1, 5, 5]} for one in found]
    made = findings(tmp_path, truth, renamed)
    by_name = Counter(one["category_id"] for one in renamed)
    assert made["classes_renamed"].count == by_name["Traffic-Light"]
    assert made["unknown_categories"].count == by_name["wolf"] + by_name["ant"]


def test_a_shift_of_some_classes_is_of_their_detections(tmp_path):
    """As where a class was added to the middle of the model's list."""
    truth, found = grid(120, tuple("abcdefgh"))
    moved = [{**one, "category_id": one["category_id"] + (one["category_id"] > 3)} for one in found]
    made = findings(tmp_path, truth, moved)["category_ids_shifted"]
    assert made.count == sum(one["category_id"] > 3 for one in found)


def test_ids_and_names_that_are_listed_again(tmp_path):
    truth, found = grid(40, ("cat", "dog", "cow"))
    truth["images"] += [truth["images"][4]] * 2 + [truth["images"][7]]
    truth["categories"] += [truth["categories"][0], {"id": 8, "name": "Dog"}]
    made = findings(tmp_path, truth, found)
    assert made["repeated_image_ids"].count == 2
    assert sorted(made["repeated_image_ids"].records) == [truth["images"][4]["id"], truth["images"][7]["id"]]
    assert made["repeated_categories"].count == 2
    assert sorted(made["repeated_categories"].records) == [1, 8]
    annotations = truth["annotations"]
    annotations[3]["id"] = annotations[4]["id"] = annotations[0]["id"]
    assert findings(tmp_path, truth, found)["repeated_ids"].count == 2


# ------------------------------------------------------------------------------------------------- scores, limits, shapes


def test_scores_beyond_0_and_1(tmp_path):
    truth, found = grid(60)
    for at, one in enumerate(found):
        one["score"] = [1.0, 0.0, -0.25, 1.25, 0.5 + at / 1000][at % 5]
    made = findings(tmp_path, truth, found)["logit_scores"]
    assert made.count == sum(not 0 <= one["score"] <= 1 for one in found)
    for one in found:
        one["score"] = abs(one["score"])
    assert findings(tmp_path, truth, found)["logit_scores"].count == sum(one["score"] > 1 for one in found)


def test_detections_beyond_a_cap(tmp_path):
    truth, found = grid(30)
    rng = np.random.default_rng(0)
    for at, extra in ((0, 130), (1, 99), (2, 98)):
        found += [
            {**found[2 * at], "bbox": [*rng.uniform(0, 300, 2), 9, 9], "score": rng.random()} for _ in range(extra)
        ]
    held = Counter((one["image_id"], one["category_id"]) for one in found)
    assert findings(tmp_path, truth, found)["beyond_cap"].count == sum(max(n - 100, 0) for n in held.values()) == 31


def test_polygons_of_an_odd_number_of_numbers(tmp_path):
    truth, _ = grid(30)
    for at, one in enumerate(truth["annotations"]):
        x, y, w, h = one["bbox"]
        one["segmentation"] = [[x, y, x + w, y, x + w, y + h, x, y + h]]
        if at in (3, 4):
            one["segmentation"] += [[x, y, x + w, y]] * (at - 2) + [[x, y, x + w, y, x, y + h, x]] * (at == 4)
        if at == 9:  # two pixels are an annotator's
            one["segmentation"][0][0] = -2.0
        if at == 10:
            one["segmentation"][0][0] = -2.75
    made = findings(tmp_path, truth)
    assert made["odd_polygons"].count == 4
    assert made["outside_polygons"].count == 1
    assert made["outside_polygons"].says.endswith("by more than 2 pixels, and by 2.75 at most")


def test_a_kind_of_shape_that_is_missing_is_told_by_itself(tmp_path):
    truth, _ = grid(30)
    for at, one in enumerate(truth["annotations"]):
        x, y, w, h = one["bbox"]
        if at != 5:
            one["segmentation"] = [[x, y, x + w, y, x + w, y + h, x, y + h]]
        if at not in (5, 6):
            one |= {"keypoints": [x + 1, y + 1, 2, x + 5, y + 5, 2], "num_keypoints": 2}
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(truth))
    told = {one.says.rpartition(": ")[2]: one.count for one in check(path).findings if one.code == "missing_shapes"}
    assert told == {"segm": 1, "keypoints": 2}


def test_points_of_detections_are_compared_with_their_images(tmp_path):
    truth, found = grid(30)
    for records in (truth["annotations"], found):
        for one in records:
            x, y, w, h = one["bbox"]
            one |= {"keypoints": [x + 1, y + 1, 2, x + w, y + h, 2], "num_keypoints": 2}
    found[3]["keypoints"][:2] = [640 * 1.51, 100]
    found[4]["keypoints"][:2] = [640 * 1.49, 100]
    truth["annotations"][8]["keypoints"][0] = truth["annotations"][8]["bbox"][0] - 40
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "found.json").write_text(json.dumps(found))
    report = check(tmp_path / "truth.json", tmp_path / "found.json", iou_type="keypoints")
    told = {one.unit: (one.count, one.says) for one in report.findings if one.code == "outside_keypoints"}
    assert told["object"][0] == told["detection"][0] == 1
    assert "of its box, by more than 25% of its side and 4 pixels" in told["object"][1]
    assert "of its image, by more than 50% of its side" in told["detection"][1]


# --------------------------------------------------------------------------------------------------------------- rankings


def of_run(folder, qrels, run):
    for name, lines in (("qrels.txt", qrels), ("run.txt", run)):
        (folder / name).write_text("\n".join(map(" ".join, lines)) + "\n")
    return {one.code: one for one in check_run(folder / "qrels.txt", folder / "run.txt").findings}


def rankings():
    qrels = [[f"t{q}", "0", f"d{q}{n}", str(n % 2)] for q in range(4) for n in range(10)]
    run = [[f"t{q}", "Q0", f"d{q}{n}", str(n), repr(1 - n / 100), "mine"] for q in range(4) for n in range(10)]
    return qrels, run


def test_documents_that_are_there_again_are_counted_once(tmp_path):
    qrels, run = rankings()
    run += [[*run[3][:4], str(-n), "mine"] for n in range(3)] + [[*run[14][:4], "-9", "mine"]]
    assert of_run(tmp_path, qrels, run)["same_query_document"].count == 2
    qrels += [qrels[0]] * 3 + [qrels[21]] + [[*qrels[5][:3], "7"], [*qrels[5][:3], "8"], qrels[5]]
    made = of_run(tmp_path, qrels, rankings()[1])
    assert made["repeated_judgements"].count == 2
    assert made["conflicting_judgements"].count == 1


def test_documents_that_are_judged_for_other_queries(tmp_path):
    """It said that no judged document was among them."""
    qrels, run = rankings()
    for line in run:
        line[0] = f"t{(int(line[0][1:]) + 1) % 4}"
    made = of_run(tmp_path, qrels, run)["disjoint_documents"]
    assert made.says == (
        "Not one of 40 documents of the run is judged for a query for which it is ranked: 40 of them are judged for other "
        "queries"
    )


def test_rankings_of_half_the_usual_length(tmp_path):
    qrels, run = rankings()
    run = [line for line in run if line[0] != "t1" or int(line[3]) < 5]
    assert "short_rankings" not in of_run(tmp_path, qrels, run)
    run = [line for line in run if line[0] != "t1" or int(line[3]) < 4]
    assert of_run(tmp_path, qrels, run)["short_rankings"].says.endswith("4 at least, where 10 is usual")
