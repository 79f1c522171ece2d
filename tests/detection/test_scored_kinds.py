"""Which kind of shape is scored: tables know what they were read for, and what is shown names it."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import shape_workloads
from support import assert_equal_arrays, assert_same_result, same_bits
from test_shapes_everywhere import updates, workload

import detmap
from detmap import InputError, StateError, batch, explanations
from detmap.cli import main
from detmap.data.notices import describe
from detmap.detection.protocols import COCO

KINDS = ("segm", "keypoints", "boundary")
PEOPLE = "fixtures/people/ground_truth.json"
MASKS, POSES = "fixtures/people/masks.json", "fixtures/people/poses.json"


def people(kind):
    truth = detmap.read_coco(PEOPLE, iou_type=kind)
    return truth, detmap.read_coco_results(POSES if kind == "keypoints" else MASKS, truth, iou_type=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_that_scores_takes_the_kind_from_the_tables(kind):
    truth, found = people(kind)
    assert truth.kinds == found.kinds == (kind,)
    asked, result = detmap.evaluate(truth, found, iou_type=kind), detmap.evaluate(truth, found)
    assert_same_result(result, asked)
    assert result.protocol == asked.protocol
    assert result["AP"] != detmap.evaluate(truth, found, iou_type="bbox")["AP"]
    assert detmap.match(truth, found).to_bytes() == detmap.match(truth, found, iou_type=kind).to_bytes()
    named = [detmap.match_pairs(truth, found, **more) for more in ({}, {"iou_type": kind})]
    assert same_bits(*(one.overlap for one in named))
    assert named[0].protocol == named[1].protocol == asked.protocol
    assert detmap.diagnose(truth, found).ap == detmap.diagnose(truth, found, iou_type=kind).ap == result["AP50"]
    other = found.take(np.arange(0, len(found), 2))
    for call in (
        lambda **more: detmap.explain(truth, found, "coco", "coco+min_score=0.4", **more).to_dict(),
        lambda **more: explanations.survives(truth, {"a": found, "b": other}, replicates=200, **more).to_dict(),
        lambda **more: explanations.contrast(truth, found, other, replicates=200, **more).to_dict(),
    ):
        assert json.dumps(call()) == json.dumps(call(iou_type=kind))
    assert explanations.under_presets(truth, found) == []
    assert_same_result(
        detmap.evaluate(truth, found, "coco", max_dets=5), detmap.evaluate(truth, found, asked.protocol, max_dets=5)
    )


@pytest.mark.parametrize("kind", ["bbox", *KINDS])
def test_what_is_shown_names_the_kind(kind):
    truth, found = people(kind)
    result = detmap.evaluate(truth, found)
    for one in (
        truth,
        found,
        result,
        detmap.match(truth, found),
        detmap.match_pairs(truth, found),
        detmap.diagnose(truth, found),
        detmap.explain(truth, found, "coco", "coco+min_score=0.4"),
    ):
        assert kind in repr(one)
    assert all(f"{kind} IoU" in row for row in result.summary())
    assert kind in result._repr_html_()
    assert json.loads(result.to_json())["protocol"]["iou_type"] == kind
    assert f"at {kind} IoU 0.5" in result.plot().axes[0].get_title()


def test_contradictions_are_errors_of_one_line():
    boxes, masks, contours, poses = (people(kind) for kind in ("bbox", *KINDS))
    mine = dataclasses.replace(COCO, name="mine")
    cases = [
        ((masks[0], boxes[1]), {}, "is for the iou_type 'bbox', and .* for 'segm'; .*iou_type='segm' or 'bbox'"),
        ((boxes[0], masks[1]), {}, "is for the iou_type 'segm', and .* for 'bbox'"),
        ((masks[0], poses[1]), {}, "is for the iou_type 'boundary', and .* for 'segm'"),
        ((masks[0], contours[1]), {}, "is for the iou_type 'keypoints', and .* for 'segm'"),
        (masks, {"protocol": mine}, "is for the iou_type 'segm', and the protocol 'mine' for 'bbox'"),
        (boxes, {"protocol": dataclasses.replace(mine, iou_type="segm")}, "no shapes of the kind 'segm' here"),
        (boxes, {"iou_type": "segm"}, "no shapes of the kind 'segm' here"),
        (contours, {"iou_type": "segm"}, "no shapes of the kind 'segm' here"),
    ]
    for given, more, said in cases:
        for call in (detmap.evaluate, detmap.match, detmap.match_pairs, detmap.diagnose):
            with pytest.raises(InputError, match=said) as caught:
                getattr(call(*given, **more), "matches", None)  # of a diagnosis, when they are asked for
            assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="only rules for boxes are searched"):
        detmap.find_value(*masks, 0.4)
    with pytest.raises(InputError, match=r"is for the iou_type 'segm', and .* for 'keypoints'"):
        explanations.contrast(contours[0], contours[1], masks[1], replicates=200)


def test_what_is_asked_for_is_scored_and_named():
    truth, found = people("segm")
    of_boxes = detmap.evaluate(truth, found, iou_type="bbox")
    assert "bbox" in repr(of_boxes)
    assert_same_result(detmap.evaluate(truth, found, COCO, iou_type="bbox"), of_boxes)
    mixed = detmap.evaluate(truth, people("boundary")[1], iou_type="boundary")
    assert_same_result(mixed, detmap.evaluate(*people("boundary")))
    contours = dataclasses.replace(COCO, name="mine", iou_type="boundary")  # of the same masks
    assert "mine boundary" in repr(detmap.evaluate(truth, found, contours))
    named = explanations.explain(truth, found, "coco+iou_type=bbox", "coco+iou_type=bbox+min_score=0.4")
    assert named.source_value == of_boxes["AP"]


def test_tables_keep_their_kinds(tmp_path):
    truth, found = people("boundary")
    for one in (truth, found):
        for made in (one.take([0, 2]), pickle.loads(pickle.dumps(one)), dataclasses.replace(one, source="x")):
            assert made.kinds == ("boundary",)
    assert found.on_images_of(truth.take([0])).kinds == ("boundary",)
    few = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]])
    assert found.on_images_of(few, unknown="ignore").kinds == ("boundary",)
    for role, path, table in (("ground_truth", PEOPLE, truth), ("detections", MASKS, found)):
        more = {"ground_truth": truth} if role == "detections" else {}
        read = detmap.read(path, role, iou_type="boundary", **more)
        assert read.kinds == table.kinds
        mapped = detmap.read(path, role, iou_type="segm", class_map={"person": "human"}, **more)
        assert mapped.kinds == ("segm",)
        if role == "ground_truth":
            assert detmap.read(path, role).kinds == ("bbox",)
    assert detmap.GroundTruth.from_frame(truth.to_frame()).kinds == ("bbox",)
    assert detmap.Detections.from_arrow(found.to_arrow()).kinds == ("bbox",)


def arrays(scores=False, **more):
    one = {"image_ids": [1], "category_ids": [1], **more}
    return detmap.Detections.from_arrays(**one, scores=[0.5]) if scores else detmap.GroundTruth.from_arrays(**one)


def test_the_kinds_of_arrays_are_those_given():
    bitmap, box, pose = np.ones((1, 4, 4), bool), [[0, 0, 4, 4]], np.ones((1, 17, 3))
    assert arrays(boxes=box).kinds == ("bbox",)
    assert arrays(masks=bitmap).kinds == ("segm",)
    assert arrays(True, keypoints=pose).kinds == ("keypoints",)
    both = arrays(boxes=box, masks=bitmap)
    assert both.kinds == ("bbox", "segm")
    assert repr(both) == "<GroundTruth (bbox, segm): 1 objects, 1 images, 1 categories>"
    found = arrays(True, boxes=box, masks=bitmap)
    with pytest.raises(
        InputError, match="several kinds, bbox and segm; say which one is scored: iou_type='bbox' or 'segm'"
    ):
        detmap.evaluate(both, found)
    for kind in ("bbox", "segm", "boundary"):
        assert f"coco {kind}," in repr(detmap.evaluate(both, found, iou_type=kind))
    # What both have is scored.
    assert "coco segm," in repr(detmap.evaluate(both, arrays(True, masks=bitmap)))
    assert "coco bbox," in repr(detmap.evaluate(arrays(boxes=box), found))
    assert "coco boundary," in repr(
        detmap.evaluate(*(arrays(scored, boxes=box, masks=bitmap, kinds=["boundary"]) for scored in (False, True)))
    )
    assert "coco bbox," in repr(detmap.evaluate(both, found, COCO))
    for kinds in (["keypoints"], [], "segm"):
        with pytest.raises(InputError, match="field 'kinds': must list kinds of shape that are given"):
            arrays(boxes=box, masks=bitmap, kinds=kinds)
    with pytest.raises(detmap.OptionError, match="unknown iou_type 'hexagon'"):
        arrays(boxes=box, kinds=["hexagon"])


# --------------------------------------------------------------------------------------- results without boxes of their own


def large(dataset, results):
    """The same on many images: enough for the scanner."""
    images = [{**one, "id": one["id"] + 1000 * n} for n in range(150) for one in dataset["images"]]
    records = [
        [{**one, "image_id": one["image_id"] + 1000 * n} for n in range(150) for one in some]
        for some in (dataset["annotations"], results)
    ]
    annotations = [{**one, "id": i} for i, one in enumerate(records[0], 1)]
    return {**dataset, "images": images, "annotations": annotations}, records[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["segm", "keypoints"])
@pytest.mark.parametrize("seed", range(5))
def test_results_without_boxes_equal_pycocotools(kind, seed, tmp_path):
    dataset, results = workload(kind, 40 * seed)
    if seed == 4:
        dataset, results = large(dataset, results)
    reference = shape_workloads.pycocotools_reference(dataset, results, "bbox")
    truth = detmap.read_coco(dataset)
    text = json.dumps(results).encode()
    lines = tmp_path / "results.jsonl"
    lines.write_bytes(b"\n".join(json.dumps(one).encode() for one in results))
    for source in (results, text, gzip.compress(text), json.dumps({"predictions": results}).encode(), lines):
        found = detmap.read_coco_results(source, truth)
        assert found.kinds == ("bbox",)
        assert list(found.shapes) == ["bbox"]
        assert found.notices["boxes_of_shapes"] == len(results)
        result = detmap.evaluate(truth, found)
        assert result.notices["boxes_of_shapes"] == len(results)
        assert_equal_arrays(result, reference)  # of small, medium and large ones too: areas are those of the shapes
    assert detmap.evaluate(truth, detmap.read_coco_results(text, iou_type="bbox"))["AP"] == result["AP"]


def test_results_without_boxes_are_noted_in_words(tmp_path, capsys):
    path = tmp_path / "masks.json"
    records = [{k: v for k, v in one.items() if k != "bbox"} for one in json.loads(Path(MASKS).read_text())]
    path.write_text(json.dumps(records))
    assert main(["eval", PEOPLE, str(path)]) == 0
    shown = capsys.readouterr()
    said = "79 results without boxes: the boxes around their masks or poses are scored, as in pycocotools"
    assert shown.out.count(said) == 1
    assert shown.err == ""
    assert shown.out.startswith("coco bbox: 79 detections")
    assert main(["eval", PEOPLE, str(path), "--iou-type", "segm", "--quiet"]) == 0
    assert "boxes around" not in capsys.readouterr().out


def test_results_some_of_which_have_boxes_are_refused():
    dataset, results = workload("segm")
    truth = detmap.read_coco(dataset)
    box = [1.0, 2.0, 3.0, 4.0]
    for records, record in (
        ([results[0], {**results[1], "bbox": box}], 0),
        ([{**results[0], "bbox": box}, results[1]], 1),
    ):
        for source in (records, json.dumps(records).encode()):
            with pytest.raises(
                InputError, match=f"record {record}, field 'bbox': is missing; it has segmentation: iou_type"
            ) as e:
                detmap.read_coco_results(source, truth)
            assert type(pickle.loads(pickle.dumps(e.value))) is InputError
    nothing = {name: value for name, value in results[0].items() if name != "segmentation"}
    with pytest.raises(InputError, match="field 'bbox': is missing; a box is"):
        detmap.read_coco_results([nothing, results[1]], truth)
    objects = {
        **dataset,
        "annotations": [{k: v for k, v in one.items() if k != "bbox"} for one in dataset["annotations"]],
    }
    with pytest.raises(InputError, match="it has segmentation: iou_type='segm'"):  # pycocotools fails too
        detmap.read_coco(objects)


# ------------------------------------------------------------------------------------------------------------ the evaluator


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_an_evaluator_takes_the_kind_from_its_images(kind):
    images = list(scene(kind))
    known = detmap.Evaluator(box_format="xywh", iou_type=kind)
    empty, one, other = (detmap.Evaluator(box_format="xywh") for _ in range(3))
    assert repr(one) == "<Evaluator: 0 images under coco>"
    for n, (identity, prediction, target) in enumerate(images):
        for evaluator in (known, (one, other)[n % 2]):
            evaluator.update(prediction, target, image_ids=identity)
    assert one.protocol == other.protocol == known.protocol
    assert repr(one) == f"<Evaluator: {len(one)} images under coco {kind}>"
    expected = known.compute()
    states = [evaluator.to_bytes() for evaluator in (empty, one, empty, other)]

    def gather(out, state):
        assert state == states[0]
        out[:] = states

    assert_same_result(empty.sync(gather, 4).compute(), expected)
    resumed = detmap.Evaluator(box_format="xywh")
    resumed.load_state_dict(one.state_dict())
    assert resumed.protocol == known.protocol
    fresh = pickle.loads(pickle.dumps(empty))
    assert_same_result(fresh.merge(pickle.loads(pickle.dumps(resumed))).merge(empty).merge(other).compute(), expected)
    assert_same_result(known.compute(), detmap.Evaluator.from_bytes(empty.to_bytes()).merge(known).compute())
    fresh.reset()
    assert fresh.protocol == detmap.Evaluator().protocol
    unpickled = pickle.loads(pickle.dumps(fresh))
    for identity, prediction, target in images:
        unpickled.update(prediction, target, image_ids=identity)
    assert_same_result(unpickled.compute(), expected)
    boundary = detmap.Evaluator(box_format="xywh", iou_type="boundary")
    with pytest.raises(StateError, match="different protocols"):
        boundary.merge(one)
    with pytest.raises(StateError, match="different protocols"):
        detmap.Evaluator(box_format="xywh", max_dets=7).merge(one)
    with pytest.raises(StateError):
        detmap.Evaluator(box_format="xywh", max_dets=7).load_state_dict(one.state_dict())


def scene(kind):
    """What an evaluator is given, of one kind of shape."""
    dataset, results = workload("segm" if kind == "bbox" else kind)
    for identity, prediction, target in updates("segm" if kind == "bbox" else kind, dataset, results):
        if kind == "bbox":
            boxes = np.asarray(prediction.pop("masks")).shape[0]
            yield identity, {**prediction, "boxes": np.tile([0.0, 0, 5, 5], (boxes, 1))}, target
        else:
            yield identity, prediction, target


def test_an_evaluator_that_cannot_know_the_kind_says_so():
    region = np.ones((1, 4, 4), bool)
    target = {"masks": region, "boxes": [[0, 0, 4, 4]], "labels": [1]}
    evaluator = detmap.Evaluator()
    poses = {"keypoints": [[[1.0, 1, 2]]], "masks": region, "labels": [1]}
    with pytest.raises(
        InputError, match=r"kinds, .*segm.*; say .*Evaluator\(iou_type='(segm' or 'key|keypoints' or 's)"
    ):
        evaluator.update({**poses, "scores": [0.5]}, {**target, **poses})
    with pytest.raises(InputError, match="a score must be a number"):  # nothing of the batch is taken in
        evaluator.update({"masks": region, "labels": [1], "scores": [np.nan]}, target)
    assert (len(evaluator), evaluator.protocol) == (0, COCO)
    evaluator.update({"boxes": [[0, 0, 4, 4]], "labels": [1], "scores": [0.5]}, target)
    assert evaluator.compute().protocol.iou_type == "bbox"
    of_rules = detmap.Evaluator(COCO)  # which compare boxes
    with pytest.raises(InputError, match="there is no 'boxes'"):
        of_rules.update({"masks": region, "labels": [1], "scores": [0.5]}, target)
    given = iter([0.5, 0.75])
    evaluator = detmap.Evaluator(iou_thresholds=given, area_ranges={"all": (0, 1e10)}, max_dets=3)
    evaluator.update({"masks": region, "labels": [1], "scores": [0.5]}, target)
    wanted = detmap.Evaluator(iou_thresholds=[0.5, 0.75], area_ranges={"all": (0, 1e10)}, max_dets=3, iou_type="segm")
    assert evaluator.protocol == wanted.protocol


def image_with(*names, side=4):
    """A prediction and a target that have these shapes; boxes and masks differ, so that they score differently."""
    region = np.zeros((1, 8, 8), bool)
    region[0, :side, :side] = True
    shapes = {"boxes": [[0, 0, 8, side]], "masks": region, "keypoints": [[[1.0, 1, 2], [side, side, 2]]]}
    target = {**{name: shapes[name] for name in names}, "labels": [1]}
    prediction = {**target, "scores": [0.5]}
    return prediction, {**target, "boxes": [[0, 0, 8, 8]]} if "boxes" in names else target


@pytest.mark.parametrize("more", [["masks"], ["keypoints"], ["masks", "keypoints"]])
@pytest.mark.parametrize("batched", [False, True])
def test_boxes_are_scored_whichever_image_comes_first(more, batched):
    images = {1: image_with("boxes"), 2: image_with("boxes", *more), 3: image_with("boxes", *more, side=5)}
    images[4] = (image_with("boxes")[0], image_with("boxes", *more)[1])  # masks of targets alone cannot be scored
    explicit = detmap.Evaluator(iou_type="bbox")
    results = []
    for order in itertools.permutations(images):
        evaluator = detmap.Evaluator()
        if batched:
            evaluator.update(*zip(*(images[n] for n in order), strict=True), image_ids=list(order))
        else:
            for n in order:
                evaluator.update(*images[n], image_ids=n)
        results.append(evaluator.compute())
    for n, image in images.items():
        explicit.update(*image, image_ids=n)
    for result in results:
        assert result.protocol == explicit.protocol
        assert same_bits(*(np.array(list(one.values())) for one in (result, explicit.compute())))
        assert result.notices == {"unscored_shapes": 2}
    assert explicit.compute().notices == {}
    [said] = describe(results[0].notices)
    assert said.startswith(
        "2 images have masks or keypoints as well as boxes: the boxes are scored (Evaluator(iou_type="
    )
    assert describe({"unscored_shapes": 1})[0].startswith("1 image has masks or keypoints as well")


def test_images_with_boxes_and_images_without_are_refused_in_either_order():
    said = (
        r"some images have boxes in predictions and targets, others only masks; give the same with every image, or say "
        r"what is scored: Evaluator\(iou_type='bbox' or 'segm'\)"
    )
    for first, second in itertools.permutations([image_with("boxes", "masks"), image_with("masks")]):
        evaluator = detmap.Evaluator()
        with pytest.raises(InputError, match=f"image 1: {said}"):
            evaluator.update(*zip(first, second, strict=True))
        assert len(evaluator) == 0
        evaluator.update(*first)
        before = evaluator.compute()
        restored = [
            evaluator,
            pickle.loads(pickle.dumps(evaluator)),
            detmap.Evaluator.from_bytes(evaluator.to_bytes()),
            detmap.Evaluator().merge(evaluator),
            detmap.Evaluator(),
        ]
        restored[-1].load_state_dict(evaluator.state_dict())
        for one in restored:
            with pytest.raises(InputError, match=f"image 0: {said}"):
                one.update(*second)
            assert_same_result(one.compute(), before)
            one.update(*first)
            assert one.compute().notices == ({"unscored_shapes": 2} if "boxes" in first[0] else {})
        evaluator.reset()
        evaluator.update(*second)
        assert evaluator.protocol.iou_type == ("segm" if "boxes" in first[0] else "bbox")
        assert evaluator.compute().notices == ({} if "boxes" in first[0] else {"unscored_shapes": 1})
    with pytest.raises(
        InputError, match="some images have only keypoints in predictions and targets, others only masks"
    ):
        detmap.Evaluator().update(*zip(image_with("masks"), image_with("keypoints"), strict=True))


def test_an_image_with_masks_that_two_evaluators_saw_is_noted_once():
    evaluators = [detmap.Evaluator(duplicates="first") for _ in range(2)]
    for evaluator, ids in zip(evaluators, ([1, 2], [2, 3]), strict=True):
        for n in ids:
            evaluator.update(*image_with("boxes", "masks"), image_ids=n)
    states = [one.to_bytes() for one in evaluators]

    def gather(out, state):
        out[:] = states

    assert evaluators[0].sync(gather, 2).compute().notices == {"unscored_shapes": 3}
    assert evaluators[0].merge(evaluators[1]).compute().notices == {"unscored_shapes": 3}


# ----------------------------------------------------------------------------------------------------- files, titles, cards


def test_batch_takes_the_kind_of_ground_truth_that_was_read():
    truth, found = people("segm")
    expected = detmap.evaluate(truth, found)
    [one] = batch.score(truth, [MASKS])
    assert one["AP"] == expected["AP"]
    assert "(segm)" in repr(one)
    assert_same_result(batch.evaluate_shards(truth, [MASKS]), expected)
    board = batch.Leaderboard([one])
    assert board.title == "AP (segm)"
    assert "Leaderboard by AP (segm)" in board._repr_html_()
    mine = dataclasses.replace(COCO, name="mine")
    with pytest.raises(InputError, match="and the protocol 'mine' for 'bbox'"):
        batch.score(truth, [MASKS], mine)


def test_titles_of_commands_pages_and_cards_name_the_kind(tmp_path, capsys):
    files = ["--iou-type", "segm", "--quiet"]
    card, page = tmp_path / "card.json", tmp_path / "page.html"
    heads = {
        ("eval", PEOPLE, MASKS, "--card", card): "coco segm: 79 detections",
        ("diagnose", PEOPLE, MASKS, "--parts", "lrp"): "coco segm at IoU 0.5",
        ("explain", PEOPLE, MASKS, "--from", "coco+min_score=0.4"): "AP (segm): ",
        ("batch", PEOPLE, MASKS, "--out", tmp_path / "board"): "coco segm: 1 file by AP",
    }
    for words, head in heads.items():
        assert main([*map(str, words), *files]) == 0
        assert capsys.readouterr().out.startswith(head)
    assert main(["verify", str(card), PEOPLE, MASKS]) == 0
    capsys.readouterr()
    written = json.loads(card.read_text())
    assert written["markdown"].startswith("**coco segm**")
    assert "Protocol coco segm, AP = " in written["bibtex"]
    for name in ("html", "md"):
        assert "Leaderboard by AP (segm)" in (tmp_path / "board" / f"leaderboard.{name}").read_text()
    assert main(["report", PEOPLE, MASKS, "--out", str(page), *files]) == 0
    text = page.read_text()
    assert "<title>Report on masks (segm)</title>" in text
    assert "<h1>Report on masks (segm)</h1>" in text


def test_models_are_compared_by_one_kind():
    truth, found = people("segm")
    models = {name: detmap.match(truth, found.take(np.arange(n, len(found)))) for n, name in enumerate("ab")}
    made = detmap.compare(models, 200)
    assert "(segm)" in made._repr_html_()
    assert made.iou_type == made.to_dict()["iou_type"] == "segm"
    with pytest.raises(detmap.DetmapError, match="different protocols"):
        detmap.compare({**models, "boxes": detmap.match(truth, found, iou_type="bbox")}, 200)


def test_boxes_around_masks_go_into_formats_of_boxes(tmp_path):
    records = [{k: v for k, v in one.items() if k != "bbox"} for one in json.loads(Path(MASKS).read_text())]
    source, target = tmp_path / "masks.json", tmp_path / "boxes.csv"
    source.write_text(json.dumps(records))
    done = detmap.convert(source, target, ground_truth=PEOPLE)
    assert done.notices["boxes_of_shapes"] == done.lost["shapes"] == len(records)
    truth = detmap.read_coco(PEOPLE)
    direct = detmap.evaluate(truth, detmap.read_coco_results(source, truth))
    written = detmap.evaluate(truth, detmap.read(target, "detections", ground_truth=truth))
    assert written["AP"] == direct["AP"]
