"""Annotations with the id 0: found, or missed with every bit as pycocotools has it; and what notices say of them."""

from __future__ import annotations

import dataclasses
import json
import pickle

import numpy as np
import pytest
import shape_workloads as made
import workloads
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_equal_arrays, evaluate, examples, options_of, same_bits
from test_explain_every_decision import check

import detmap
from detmap import batch, cli
from detmap.data.ids import zeros
from detmap.data.notices import describe
from detmap.detection.protocols import COCO, PRESETS
from detmap.detection.tally import Tally
from detmap.diagnostics import PARTS
from detmap.explanations import replay
from detmap.formats.files import read_ground_truth
from detmap.formats.registry import describe_lost

MISSED = {"id_zero": "missed"}


def zeroed(dataset, row):
    """A data set whose annotation `row` has the id 0, and no other one."""
    rows = [{**one, "id": one["id"] or 10**6} for one in dataset["annotations"]]
    rows[row]["id"] = 0
    return {**dataset, "annotations": rows}


def listed(dataset):
    """Without annotations that pycocotools passes over and a reader refuses."""
    known = {one["id"] for one in dataset["categories"]}
    return {**dataset, "annotations": [one for one in dataset["annotations"] if one["category_id"] in known]}


def tables(dataset, results, iou_type="bbox"):
    truth = detmap.read_coco(dataset, iou_type=iou_type)
    return truth, detmap.read_coco_results(results, truth, iou_type=iou_type)


@settings(max_examples=examples(200))
@given(workloads.coco_workloads(), st.integers(0, 2**32))
def test_boxes_have_the_bits_of_pycocotools(workload, at):
    """Any thresholds, area ranges and caps; crowds, ties, equal boxes; one class of all."""
    dataset, results, params = workload
    dataset = listed(dataset)
    if not dataset["annotations"]:
        return
    dataset = zeroed(dataset, at % len(dataset["annotations"]))
    reference = workloads.pycocotools_evaluate(dataset, results, **params)
    result = detmap.evaluate(*tables(dataset, results), **options_of(params), **MISSED)
    assert_equal_arrays(result, reference)


@pytest.mark.parametrize("seed", range(examples(8)))
def test_every_object_in_its_turn(seed):
    """Found as ever, and missed as by pycocotools; the notice has both numbers, and they differ for some object."""
    dataset, results = workloads.make_coco(
        seed, images=3, categories=2, crowds=0.2, crowded_cell=True, objects_per_image=2
    )
    plain, differ = evaluate(dataset, results), 0
    for row, annotation in enumerate(dataset["annotations"]):
        data = zeroed(dataset, row)
        reference = workloads.pycocotools_evaluate(data, results)
        found, missed = (detmap.evaluate(*tables(data, results), id_zero=how) for how in ("found", "missed"))
        assert same_bits(found.precision, plain.precision)
        assert_equal_arrays(missed, reference)
        differ += found["AP"] != missed["AP"]
        if annotation["iscrowd"]:
            assert same_bits(found.precision, missed.precision)
        assert effect(found) == effect(missed) == (pytest.approx(found["AP"]), pytest.approx(missed["AP"]))
    assert differ


def effect(result):
    """The two numbers of the notice, with the digits that the metric itself has where these are enough."""
    (code,) = (code for code in result.notices if code.startswith("zero_id_effect:AP "))
    found, missed = code.removeprefix("zero_id_effect:AP ").split(" or ")
    value = result["AP"]
    own = found if result.protocol.id_zero == "found" else missed
    assert own in (f"{value:.4f}", f"{value:.17f}")
    return tuple(value if one is own else Near(float(one)) for one in (found, missed))


class Near(float):
    """A number with four decimals."""

    def __eq__(self, other):
        return abs(float(self) - float(getattr(other, "expected", other))) <= 0.5001e-4

    __hash__ = float.__hash__


@pytest.mark.parametrize("iou_type", ["segm", "keypoints"])
@pytest.mark.parametrize("seed", range(examples(10)))
def test_masks_and_poses_have_the_bits_of_pycocotools(iou_type, seed):
    workload = made.mask_workload if iou_type == "segm" else made.pose_workload
    dataset, results = workload(seed)
    if not (dataset["annotations"] and results):
        return
    for row in range(0, len(dataset["annotations"]), 2):
        data = zeroed(dataset, row)
        reference = made.pycocotools_reference(data, results, iou_type)
        assert_equal_arrays(detmap.evaluate(*tables(data, results, iou_type), iou_type=iou_type, **MISSED), reference)


@pytest.fixture(scope="module")
def sample():
    """A data set with an object of id 0 that is found, and its results."""
    dataset, results = workloads.make_coco(3, images=4, categories=3, crowds=0.1, crowded_cell=True)
    for row in range(len(dataset["annotations"])):
        data = zeroed(dataset, row)
        pair = tables(data, results)
        if detmap.evaluate(*pair)["AP"] - detmap.evaluate(*pair, **MISSED)["AP"] > 1e-3:
            return data, results
    raise AssertionError


@pytest.mark.parametrize("preset", ["coco", "voc2007", "voc2012"])
def test_matches_agree_with_the_tally(sample, preset):
    protocol = dataclasses.replace(PRESETS[preset], **MISSED)
    pair = tables(*sample)
    tally, changed = detmap.match(*pair, protocol), 0
    for a, (area, _, _) in enumerate(protocol.area_ranges):
        for t, iou in enumerate(protocol.iou_thresholds):
            rows = detmap.match_pairs(*pair, protocol, iou=iou, area=area)
            plain = detmap.match_pairs(*pair, preset, iou=iou, area=area)
            changed += int((rows.outcome != plain.outcome).sum())
            for bits, what in ((tally.hit, 1), (tally.ignored, 2)):
                flags = tally.bit(bits, a, t)
                for k in range(len(tally.categories)):
                    assert flags[tally.category == k].sum() == (rows.outcome[rows.category == k] == what).sum()
            hits = np.bincount(rows.category[rows.outcome == 1], minlength=len(rows.categories))
            codes = pair[0].categories.codes[rows.missed]
            assert np.array_equal(tally.positives[:, a] - hits, np.bincount(codes, minlength=len(rows.categories)))
            assert ((rows.ground_truth < 0) == np.isnan(rows.overlap)).all()
            assert (rows.ground_truth[rows.outcome == 1] >= 0).all()
    assert changed


def test_tallies_of_parts_merge_and_know_both_numbers(sample):
    truth, found = tables(*sample)
    for decided in ({}, MISSED):
        whole = detmap.evaluate(truth, found, **decided)
        ids = truth.images.ids.tolist()
        parts = [detmap.match(truth, found, image_ids=[one], **decided) for one in ids]
        assert sorted(part.notices.get("zero_id", 0) for part in parts) == [0] * (len(ids) - 1) + [1]
        merged = detmap.DetectionResult(parts[0].merge(*pickle.loads(pickle.dumps(parts[1:]))))
        assert same_bits(merged.precision, whole.precision)
        assert effect(merged) == effect(whole)
        assert merged.notices["zero_id"] == whole.notices["zero_id"] == 1
        names = [code for code in merged.notices if code.startswith("zero_id_effect")]
        assert names == [code for code in whole.notices if code.startswith("zero_id_effect")]
        # What was saved gives its numbers, and nothing of what it would be otherwise: nor does what it is merged with.
        again = Tally.from_bytes(parts[0].to_bytes(), parts[0].protocol)
        mixed = detmap.DetectionResult(again.merge(*parts[1:]))
        assert same_bits(mixed.precision, whole.precision)
        assert not any(code.startswith("zero_id_effect") for code in mixed.notices)


def test_shards_count_the_annotation_once(sample, tmp_path):
    dataset, results = sample
    whole = detmap.evaluate(*tables(dataset, results))
    ids = sorted({one["image_id"] for one in results})
    for s in range(3):
        rows = [one for one in results if ids.index(one["image_id"]) % 3 == s]
        (tmp_path / f"{s}.json").write_text(json.dumps(rows))
    for chosen in (range(3), [0], [1], [2]):
        shards = [tmp_path / f"{s}.json" for s in chosen]
        result = batch.evaluate_shards(detmap.read_coco(dataset), shards)
        assert result.notices["zero_id"] == 1
    assert whole.notices["zero_id"] == 1


def test_tallies_under_different_decisions_do_not_merge(sample):
    truth, found = tables(*sample)
    one, other = detmap.match(truth, found), detmap.match(truth, found, **MISSED)
    with pytest.raises(detmap.StateError, match="different protocols"):
        one.merge(dataclasses.replace(other, image_ids=other.image_ids + 1000))
    with pytest.raises(detmap.StateError, match="not the one expected"):
        Tally.from_bytes(other.to_bytes(), COCO)
    assert Tally.from_bytes(other.to_bytes()).protocol.id_zero == "missed"
    evaluators = detmap.Evaluator(), detmap.Evaluator(**MISSED)
    with pytest.raises(detmap.StateError):
        evaluators[0].merge(evaluators[1])


@pytest.mark.parametrize("preset", ["coco", "voc2007", "ultralytics-8.3"])
def test_explanations_give_what_evaluations_give(sample, preset):
    truth, found = tables(*sample)
    looked = replay.Replay(truth, found)
    for scored in ("all", "detected"):
        for area in (PRESETS[preset].area_ranges[0], ("all", 100.0, 5000.0)):
            ranges = {"area_ranges": (area,)} if preset == "coco" else {}
            for how in ("missed", "found"):
                base = dataclasses.replace(PRESETS[preset], scored_images=scored, id_zero=how, **ranges)
                check(looked, truth, found, base)


@pytest.mark.slow
def test_pycocotools_number_is_explained_by_the_rule(sample):
    truth, found = tables(*sample)
    value = detmap.evaluate(truth, found, **MISSED)["AP"]
    first = detmap.find_value(truth, found, f"{value:.5f}").candidates[0]
    assert (first.base, first.changes, first.value) == ("coco", ("id_zero missed",), value)
    told = detmap.explain(truth, found, "coco", "coco+id_zero=missed")
    assert [share.decision for share in told.shares] == ["id_zero"]


def test_every_reader_of_coco_knows_the_annotations(sample, tmp_path, monkeypatch):
    """Records in memory, a small file, a large one, ids that are text; shapes too."""
    dataset, _ = sample
    expected = [one["id"] == 0 for one in dataset["annotations"]]
    text = json.dumps(dataset)
    worded = json.dumps(
        {**dataset, "annotations": [{**one, "id": f"{one['id']}.0e1"} for one in dataset["annotations"]]}
    )
    none = json.dumps(
        {**dataset, "annotations": [{k: v for k, v in one.items() if k != "id"} for one in dataset["annotations"]]}
    )
    for worth in (1 << 20, 1):
        monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", worth)
        for source in (dataset, text.encode(), worded.encode()):
            truth = detmap.read_coco(source)
            assert truth.zero_ids.tolist() == expected
            assert truth.notices["zero_id"] == 1
        assert detmap.read_coco(none.encode()).zero_ids is None
    people, _ = made.pose_workload(1)
    for worth in (1 << 20, 1):
        monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", worth)
        truth = detmap.read_coco(json.dumps(zeroed(people, 1)).encode(), iou_type="keypoints")
        assert np.flatnonzero(truth.zero_ids).tolist() == [1]
    row = expected.index(True)
    assert detmap.read_coco(dataset).take([row, 0 if row else 1]).zero_ids.tolist() == [True, False]


def old_zero(identity):
    """Return whether `float` reads an id as 0."""
    try:
        return float(identity) == 0
    except ValueError:
        return False


@settings(max_examples=examples(500))
@given(
    st.lists(
        st.lists(
            st.sampled_from(["0", "٠", "7", "e", "E", "-", "+", ".", "_", " ", "\t", "\x1c", "\u2003", "a", "400"]),
            max_size=6,
        ).map("".join)
    )
)
def test_strings_that_float_reads_as_zero(ids):
    ids += ["0" * 400, f"0.{'0' * 400}1", f"{'0' * 400}1", "1e-400", "inf", "nan", "0x0", "𝟘"]
    assert zeros(ids).tolist() == [old_zero(one) for one in ids]
    assert zeros([None, 0, 7, "0", -0.0, "7"]).tolist() == [False, True, False, True, True, False]


def test_words_as_ids_cost_no_exceptions(monkeypatch):
    """Numbers that identify objects in hexadecimal digits are never given to `float`."""
    tried = []
    monkeypatch.setattr("detmap.data.ids.float", lambda one: tried.append(one) or float(one), raising=False)
    assert not zeros([f"{i:08x}" for i in range(2**28, 2**32, 2**20 + 9)]).any()
    assert len(tried) < 10
    assert zeros(["00", "a"]).tolist() == [True, False]
    assert "00" in tried


def test_a_conversion_says_that_the_id_0_is_not_kept(sample, tmp_path):
    """In every format: no table holds another id of an annotation."""
    dataset = {**sample[0], "images": [{**one, "height": 4000, "width": 4000} for one in sample[0]["images"]]}
    dataset["categories"] = [{**one, "name": f"class{one['id']}"} for one in dataset["categories"]]
    (tmp_path / "truth.json").write_text(json.dumps(dataset))
    truth, found = detmap.read(tmp_path / "truth.json", "ground_truth"), tables(*sample)[1]
    for name, ending in (
        ("coco", ".json"),
        ("csv", ".csv"),
        ("parquet", ".parquet"),
        ("voc", ""),
        ("yolo", ""),
        ("text", ""),
    ):
        made = detmap.convert(tmp_path / "truth.json", tmp_path / f"{name}{ending}", to=name, role="ground_truth")
        assert made.lost["zero_ids"] == 1, name
        lost = detmap.write(truth, tmp_path / f"again-{name}{ending}", format=name)
        assert lost["zero_ids"] == 1
    assert any("the id 0, which is not kept" in text for text in describe_lost(lost))
    assert "zero_ids" not in detmap.write(found, tmp_path / "found.json")
    plain = dataclasses.replace(truth, zero_ids=None)
    assert "zero_ids" not in detmap.write(plain, tmp_path / "plain.json")


def test_nothing_else_has_such_ids(sample, tmp_path):
    """Arrays, and files whose objects have no ids of their own: the decision changes nothing."""
    truth, found = tables(*sample)
    plain = dataclasses.replace(truth, zero_ids=None, notices={})
    expected = detmap.evaluate(plain, found)
    assert same_bits(detmap.evaluate(plain, found, **MISSED).precision, expected.precision)
    prediction = {"boxes": [[0, 0, 9, 9]], "scores": [0.8], "labels": [1]}
    values = []
    for how in ("found", "missed"):  # an evaluator numbers nothing
        evaluator = detmap.Evaluator(id_zero=how)
        evaluator.update([prediction], [{"boxes": [[0, 0, 10, 10]], "labels": [1]}], image_ids=[0])
        values.append(evaluator.compute()["AP50"])
    assert values[0] == values[1] > 0.99
    for suffix in ("csv", "parquet", "json"):
        (tmp_path / "truth.json").write_text(json.dumps(sample[0]))
        detmap.convert(tmp_path / "truth.json", tmp_path / f"made.{suffix}", role="ground_truth")
        again = read_ground_truth(tmp_path / f"made.{suffix}")
        assert again.zero_ids is None
        one, other = (detmap.evaluate(again, found, id_zero=how) for how in ("found", "missed"))
        assert same_bits(one.precision, other.precision)
        assert not any(code.startswith("zero_id") for code in one.notices)


@pytest.mark.parametrize("part", [part.name for part in PARTS.values()])
def test_every_part_of_a_diagnosis(sample, part):
    """Parts run on matches in which a detection lies on an object that nobody found."""
    finding = getattr(detmap.diagnose(*tables(*sample), **MISSED), part)()
    assert finding is not None


def test_a_diagnosis_has_the_ap_of_the_evaluation(sample):
    pair = tables(*sample)
    for how in ("found", "missed"):
        result = detmap.evaluate(*pair, id_zero=how)
        assert detmap.diagnose(*pair, id_zero=how).ap == pytest.approx(result["AP50"], abs=1e-12)


def test_comparisons_diagnoses_and_explanations_give_both_numbers(sample):
    pair = tables(*sample)
    results = {how: detmap.evaluate(*pair, id_zero=how) for how in ("found", "missed")}
    says = f"AP {results['found']['AP']:.4f} or {results['missed']['AP']:.4f}"
    for how in ("found", "missed"):
        tally = detmap.match(*pair, id_zero=how)
        compared = detmap.compare({"one": tally, "other": tally})
        assert all(any(says in text for text in describe(found)) for found in compared.notices.values())
        looked = replay.Replay(*pair)
        looked.value(replay.trimmed(dataclasses.replace(COCO, id_zero=how), "AP"))
        assert any(says in text for text in describe(looked.notices))
        said = f"AP50 {results['found']['AP50']:.4f} or {results['missed']['AP50']:.4f}"
        assert any(said in text for text in describe(detmap.diagnose(*pair, id_zero=how).notices))


def test_the_command_line(sample, tmp_path, capsys):
    """Both numbers in the notes; the flag; a card that is verified; a leaderboard."""
    for name, what in zip(("truth", "found"), sample, strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(what))
    paths = [str(tmp_path / f"{name}.json") for name in ("truth", "found")]
    pair = tables(*sample)
    values = {how: detmap.evaluate(*pair, id_zero=how)["AP"] for how in ("found", "missed")}
    says = f"(--id-zero): AP {values['found']:.4f} or {values['missed']:.4f}"
    for how, value in values.items():
        assert cli.main(["eval", *paths, "--id-zero", how, "--format", "json"]) == 0
        out, err = capsys.readouterr()
        assert json.loads(out)["metrics"]["AP"] == value
        assert says in err
        card = tmp_path / f"{how}.card.json"
        assert cli.main(["eval", *paths, "--id-zero", how, "--card", str(card), "--quiet"]) == 0
        assert cli.main(["verify", str(card), *paths, "--quiet"]) == 0
        assert json.loads(card.read_text())["decisions"]["id_zero"] == how
        (scored,) = batch.score(paths[0], [paths[1]], id_zero=how)
        assert scored["AP"] == value
        assert any(says in text for text in describe(scored.notices))
        capsys.readouterr()


def test_shards_count_it_once(sample, tmp_path):
    dataset, results = sample
    for at in range(2):
        rows = [one for one in results if one["image_id"] in {i["id"] for i in dataset["images"][at::2]}]
        (tmp_path / f"{at}.json").write_text(json.dumps(rows))
    for how in ("found", "missed"):
        whole = detmap.evaluate(*tables(*sample), id_zero=how)
        made_of_parts = batch.evaluate_shards(
            detmap.read_coco(dataset), [tmp_path / "0.json", tmp_path / "1.json"], id_zero=how
        )
        assert same_bits(made_of_parts.precision, whole.precision)
        assert made_of_parts.notices["zero_id"] == 1
        assert effect(made_of_parts) == effect(whole)
