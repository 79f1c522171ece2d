"""Declared decisions: what is checked, said, offered on the command line and read from older states follows from them."""

from __future__ import annotations

import argparse
import dataclasses
import json

import numpy as np
import pytest
from test_states import tally_of

import detmap
from detmap import choices, decisions
from detmap.cli.options import add_decisions, decided
from detmap.decisions import YES_OR_NO, decision
from detmap.detection.protocols import COCO, PRESETS, UNLIMITED, VOC2007, Protocol, resolve
from detmap.detection.tally import Tally
from detmap.errors import OptionError, StateError
from detmap.retrieval import CONVENTIONS, Convention
from detmap.system.saved_states import seal, unseal


@pytest.mark.parametrize("of", [Protocol, Convention])
def test_every_field_is_declared_and_documented(of):
    declared = decisions.decisions_of(of)
    assert list(declared) == [field.name for field in dataclasses.fields(of)]
    for name, made in declared.items():
        assert f"\n{name} : " in of.__doc__
        assert made.says.endswith(".")
        assert set(made.affects) <= {"matching", "ranking", "curve", "mean", "names"}


def test_what_presets_say_of_themselves():
    assert COCO.describe() == (
        "coco: IoU 0.5:0.95:0.05, detections per image and category 1/10/100, matching best-free, grid AP, ties by image, "
        "areas all/small/medium/large"
    )
    assert VOC2007.describe() == (
        "voc2007: IoU 0.5, detections per image and category no cap, matching best, 11-point AP, ties by file, "
        "recall 0:1:0.1, inclusive pixels, ignored difficult/crowd, crowds overlap as objects do, epsilon 0, an AP per class"
    )
    changed = dataclasses.replace(COCO, name="mine", strict=True, ignore=(), use_categories=False)
    assert changed.describe().endswith("overlap above the threshold, ignored none, one class of all")
    trec = CONVENTIONS["trec"]
    assert trec.describe() == "trec: step AP / all relevant, ties docid, empty queries zero, scores in single precision"


def test_no_two_presets_say_the_same():
    for registry in (PRESETS, CONVENTIONS):
        rows = [str(decisions.rows(one)) for one in registry.values()]
        differ = {name for name, one in registry.items() if rows.count(str(decisions.rows(one))) == 1}
        assert differ >= set(PRESETS if registry is PRESETS else ("trec", "layumi", "kaggle"))


def test_rows_are_the_decisions_in_words():
    rows = {row["decision"]: row for row in decisions.rows(VOC2007)}
    assert "name" not in rows
    assert rows["max_dets"]["value"] == "no cap"
    assert rows["area_ranges"]["value"] == "all:0:1e+301"
    assert rows["use_categories"]["affects"] == "matching, ranking"
    assert rows["interpolation"]["value"] == "11-point"


@pytest.mark.parametrize("value", ["yes", 2, None, 1.0, np.array([True, False])])
def test_yes_or_no_is_nothing_else(value):
    with pytest.raises(OptionError, match="strict must be one of False, True, not"):
        dataclasses.replace(COCO, strict=value)
    with pytest.raises(OptionError, match="single must be one of False, True, not"):
        Convention("mine", single=value)


@pytest.mark.parametrize("value", [np.True_, 1])
def test_yes_or_no_is_kept_as_pythons_own(value):
    assert dataclasses.replace(COCO, strict=value).strict is True


def test_a_choice_that_is_no_name():
    for value in (np.array(["best"]), ["best"], object()):
        with pytest.raises(OptionError, match="matching must be one of best-free, first-free, best, by-object"):
            dataclasses.replace(COCO, matching=value)
    with pytest.raises(OptionError, match="ignore must be one of crowd, difficult, not 'c'"):
        dataclasses.replace(COCO, ignore="crowd")
    with pytest.raises(OptionError, match="ignore cannot be 5"):
        dataclasses.replace(COCO, ignore=5)
    with pytest.raises(OptionError, match="digits must be an integer or None, not 'two'"):
        Convention("mine", digits="two")


def test_resolve_takes_every_decision():
    changed = resolve("coco", matching="best", ties="file", strict=True, epsilon=None)
    assert (changed.matching, changed.ties, changed.strict, changed.epsilon) == ("best", "file", True, COCO.epsilon)
    with pytest.raises(OptionError, match="a protocol has no decision called 'tie'"):
        resolve("coco", tie="file")


#: What stands on the command line, and what it decides.
GIVEN = {
    "iou_thresholds": (["--iou-thresholds", "0.5:0.7:0.1"], (0.5, 0.6, 0.7)),
    "recall_thresholds": (["--recall-thresholds", "0,1"], (0.0, 1.0)),
    "area_ranges": (["--area-range", "tiny:0:9"], (("all", 0.0, 1e10), ("tiny", 0.0, 9.0))),
    "levels": (["--level", "tall:height>=9,iscrowd=0"], (("tall", "height>=9,iscrowd=0"),)),
    "max_dets": (["--max-dets", "5,1"], (1, 5)),
    "matching": (["--matching", "best"], "best"),
    "strict": (["--strict-thresholds"], True),
    "inclusive_pixels": (["--inclusive-pixels"], True),
    "interpolation": (["--interpolation", "step"], "step"),
    "ignore": (["--ignore-flags", "crowd, difficult"], ("crowd", "difficult")),
    "crowd_overlap": (["--no-crowd-overlap"], False),
    "ties": (["--ties", "file"], "file"),
    "use_categories": (["--ignore-categories"], False),
    "iou_type": (["--iou-type", "segm"], "segm"),
    "result_areas": (["--result-areas", "shape"], "shape"),
    "dilation": (["--dilation", "0.5"], 0.5),
    "oks_area": (["--oks-area", "bbox*0.53"], "bbox*0.53"),
    "id_zero": (["--id-zero", "missed"], "missed"),
    "sigmas": (["--sigmas", "sigmas.json"], (0.25, 0.5)),
    "object_areas": (["--object-areas", "shape"], "shape"),
    "far_corner": (["--far-corner", "x+w"], "x+w"),
    "min_score": (["--min-score", "0.25"], 0.25),
    "max_per_image": (["--max-per-image", "300"], 300),
    "left_out": (["--leave-out", "crowd"], ("crowd",)),
    "scored_images": (["--scored-images", "detected"], "detected"),
    "numbers": (["--numbers", "float32"], "float32"),
    "box_decimals": (["--box-decimals", "0"], 0),
    "score_decimals": (["--score-decimals", "3"], 3),
    "box_offset": (["--box-offset", "-1"], -1.0),
    "max_per_category": (["--max-per-category", "10000"], 10_000),
    "judged": (["--judged", "verified"], "verified"),
    "not_exhaustive": (["--not-exhaustive", "ignored"], "ignored"),
    "without_area": (["--without-area", "dropped"], "dropped"),
    "groups": (["--groups", "r,c"], ("r", "c")),
    "pooled": (["--pooled"], True),
    "points": (["--points", "17:23"], (17, 23)),
    "labelled": (["--labelled", "points"], "points"),
    "unseen": (["--unseen", "dropped"], "dropped"),
    "score_field": (["--score-field", "foot_score"], "foot_score"),
    "valid_flag": (["--valid-flag", "foot_valid"], "foot_valid"),
    "crowd_groups": (["--crowd-groups", "few:0.5,many:10"], (("few", 0.5), ("many", 10.0))),
    "crowd_means": (["--crowd-means", "published"], "published"),
    "group_of": (["--group-of", "found"], "found"),
    "without_shape": (["--without-shape", "boxed"], "boxed"),
    "class_thresholds": (["--class-thresholds", "car:0.7, cyclist:0.5"], (("car", 0.7), ("cyclist", 0.5))),
    "neighbours": (["--neighbours", "car:van"], (("car", "van"),)),
    "absorbing": (["--absorbing"], True),
    "class_ranges": (["--class-ranges", "car=50,traffic_cone=30"], (("car", 50.0), ("traffic_cone", 30.0))),
    "empty_classes": (["--empty-classes", "zero"], "zero"),
    "error_threshold": (["--error-threshold", "2"], 2.0),
}


def parsed(of, words):
    parser = argparse.ArgumentParser()
    add_decisions(parser, of, (), others=True)
    return decided(parser.parse_args(words), of)


def test_every_flag_decides_what_it_is_for_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sigmas.json").write_text("[0.25, 0.5]")
    flags = {name for name, made in decisions.decisions_of(Protocol).items() if made.flag is not None}
    assert flags == set(GIVEN)
    assert parsed(Protocol, []) == {}
    for name, (words, value) in GIVEN.items():
        made = resolve("coco", **parsed(Protocol, words))
        assert getattr(made, name) == (
            pytest.approx(value) if name in ("iou_thresholds", "recall_thresholds") else value
        )
        assert dataclasses.replace(made, **{name: getattr(COCO, name)}) == COCO
    assert parsed(Protocol, ["--ignore-flags", "none"]) == {"ignore": ()}
    assert parsed(Convention, ["--ties", "docid", "--normalizer", "smaller"]) == {
        "ties": "docid",
        "normalizer": "smaller",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[0.25", "sigmas.json: field '--sigmas': is not valid JSON"),
        ("5", "--sigmas must be a list of numbers, or an object of them by category"),
        ('"12"', "--sigmas must be a list of numbers, or an object of them by category"),
    ],
)
def test_a_file_that_decides_nothing(tmp_path, text, says):
    (tmp_path / "sigmas.json").write_text(text)
    with pytest.raises(detmap.DetmapError) as caught:
        parsed(Protocol, ["--sigmas", str(tmp_path / "sigmas.json")])
    assert says in str(caught.value)


def test_a_number_that_is_none():
    with pytest.raises(OptionError, match="--dilation must be a number, not 'wide'"):
        parsed(Protocol, ["--dilation", "wide"])


@dataclasses.dataclass(frozen=True)
class Later:
    """A protocol that has learnt something since its first version."""

    name: str = dataclasses.field(metadata=decision("For files."))
    old: bool = dataclasses.field(default=False, metadata=decision("There was.", "curve", allowed=YES_OR_NO))
    new: tuple[str, ...] = dataclasses.field(default=("a",), metadata=decision("There is.", "curve", since="0.2"))


def test_a_later_decision_is_written_where_it_is_not_the_default():
    assert decisions.written(Later("x")) == {"name": "x", "old": False}
    assert decisions.written(Later("x", new=("a", "b"))) == {"name": "x", "old": False, "new": ("a", "b")}


def edited(tally, change):
    """The state of a tally with another header."""
    header, columns = unseal("tally", tally.to_bytes())
    header.pop("kind", None)
    change(header["protocol"])
    return seal("tally", header, bytes(columns))


def test_a_state_without_a_decision_has_its_default():
    """An earlier version did not know it; what a later one decides is not guessed at."""
    tally = tally_of()
    assert "iou_type" not in json.loads(json.dumps(tally.protocol.decisions()))
    assert Tally.from_bytes(edited(tally, lambda protocol: None)).protocol == COCO
    assert Tally.from_bytes(edited(tally, lambda protocol: protocol.pop("crowd_overlap"))).protocol == COCO
    with pytest.raises(StateError, match="its protocol decides 'colour', which this version does not know"):
        Tally.from_bytes(edited(tally, lambda protocol: protocol.update(colour="red")))
    with pytest.raises(StateError, match=r"not a tally: .*iou_thresholds"):
        Tally.from_bytes(edited(tally, lambda protocol: protocol.pop("iou_thresholds")))
    with pytest.raises(StateError, match="not a tally: unknown iou_type 'pentagon'; one of: bbox, segm"):
        Tally.from_bytes(edited(tally, lambda protocol: protocol.update(iou_type="pentagon")))
    with pytest.raises(StateError, match="not a tally: "):
        Tally.from_bytes(edited(tally, lambda protocol: protocol.update(strict="yes")))


def test_no_cap_is_none_in_files():
    assert resolve("coco", max_dets=[10, None]).to_dict()["max_dets"] == [10, None]
    assert resolve("coco", max_dets=[np.int64(10), None]).max_dets == (10, UNLIMITED)
    assert detmap.Protocol.to_dict(COCO)["strict"] is False


def test_pairs_by_name_are_read_from_text():
    assert choices.parse_pairs(choices.decimal, ":", "", " a : 0.5,b:c:1") == (("a", 0.5), ("b:c", 1.0))
    assert choices.parse_pairs(choices.decimal, ":", "", "none") == ()


@pytest.mark.parametrize("text", ["", "0.5", ":0.5", "car:", "car:x", "car:0_1", "car:0.5,"])
def test_text_that_does_not_hold_pairs_is_refused(text):
    with pytest.raises(ValueError, match=f"must be CLASS:IOU, not {text!r}"):
        choices.parse_pairs(choices.decimal, ":", "CLASS:IOU", text)


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, True), (np.float32(1), True), (np.int8(1), True), (True, False), ("1", False), (1j, False)],
)
def test_numbers_are_told_from_booleans(value, number):
    assert choices.is_number(value) == number
    assert choices.plain_number(value) == (float(value) if number else value)
