"""Area ranges in percent and of other measures, and levels of difficulty, against the naive twin."""

from __future__ import annotations

import dataclasses
import json
import re

import naive
import numpy as np
import pytest
from legs import examples
from support import assert_same_result, same_bits

import detmap
from detmap.cli import main
from detmap.detection.protocols import COCO, Protocol, resolve
from detmap.detection.ranges import needs, parse_area_ranges
from detmap.errors import InputError, OptionError
from detmap.explanations.replay import trimmed

SIZES = {1: (100, 200), 2: (50, 64), 3: (128, 96), 4: (333, 77)}  # height, width


def scene(seed, objects=26, found=40):
    """A document and results: heights on the limits, fields that some objects lack, ties, crowds."""
    rng = np.random.default_rng(seed)

    def box():
        size = [float(rng.choice([12, 24.9, 25, 25.5, 30, 40, 64])) for _ in range(2)]
        return [float(rng.integers(0, 30)), float(rng.integers(0, 30)), *size]

    document = {
        "images": [{"id": key, "height": height, "width": width} for key, (height, width) in SIZES.items()],
        "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "van"}],
        "annotations": [],
    }
    results = []
    for number in range(1, objects + 1):
        where, scale = box(), float(rng.choice([1.0, 0.7]))
        record = {
            "id": number,
            "image_id": int(rng.integers(1, 5)),
            "category_id": int(rng.integers(1, 3)),
            "bbox": where,
            "area": where[2] * where[3] * scale,
            "iscrowd": int(rng.random() < 0.1),
            "occlusion": int(rng.integers(0, 4)),
            "truncation": float(rng.integers(0, 6)) / 10,
            "attributes": {"night": bool(rng.random() < 0.5), "colour": "red"},
        }
        if rng.random() < 0.1:
            del record["occlusion"]
        document["annotations"].append(record)
        for _ in range(rng.integers(0, 3)):
            near = [side + float(rng.integers(-2, 3)) for side in where]
            results.append(record | {"bbox": near, "score": float(rng.integers(0, 8)) / 8})
    for _ in range(found):
        record = {"image_id": int(rng.integers(1, 5)), "category_id": int(rng.integers(1, 3)), "bbox": box()}
        results.append(record | {"score": float(rng.integers(0, 8)) / 8})
    fields = ("image_id", "category_id", "bbox", "score")
    return document, [{name: one[name] for name in fields} for one in results]


def area_of(record):
    return record.get("area", record["bbox"][2] * record["bbox"][3])


def has(record, field, test):
    return field in record and test(record[field])


def share(record):
    height, width = SIZES[record["image_id"]]
    return 100 * area_of(record) / (height * width)


def easy_enough(occluded, truncated, height):
    def inside(record):
        return (
            has(record, "occlusion", lambda value: value <= occluded)
            and record["truncation"] <= truncated
            and record["bbox"][3] > height
        )

    return inside, lambda record: record["bbox"][3] >= height


AREAS = {
    "all": (0, 1e10),
    "tiny": (0, "5%"),
    "low": ("height", 0, 25),
    "wide": "width:25:1000",
    "long": ("length%", 20, 40),
    "medium": (600, 1600),
}
LEVELS = {
    "hard": "occlusion>1",
    "whole": "truncation=0",
    "night": "attributes.night = true",
    "lone": "iscrowd != 1",
    "easy": "occlusion<=0,truncation<=0.15,object.height>40,detection.height>=40",
    "moderate": ["occlusion<=1", "truncation<=0.3", "object.height>25", "detection.height>=25"],
    "far": "height<=25,width<30,area>=2%",
}
BOTH = [  # of objects and of detections, in the order of the ranges
    (lambda one: 0 <= area_of(one) <= 1e10,) * 2,
    (lambda one: share(one) <= 5,) * 2,
    (lambda one: one["bbox"][3] <= 25,) * 2,
    (lambda one: one["bbox"][2] >= 25,) * 2,
    (lambda one: 20 <= 100 * max(one["bbox"][2:]) / max(SIZES[one["image_id"]]) <= 40,) * 2,
    (lambda one: 600 <= area_of(one) <= 1600,) * 2,
    (lambda one: has(one, "occlusion", lambda value: value > 1), lambda one: True),
    (lambda one: one["truncation"] == 0, lambda one: True),
    (lambda one: one["attributes"]["night"], lambda one: True),
    (lambda one: one["iscrowd"] != 1, lambda one: True),
    easy_enough(0, 0.15, 40),
    easy_enough(1, 0.3, 25),
    (lambda one: one["bbox"][3] <= 25 and one["bbox"][2] < 30 and share(one) >= 2,) * 2,
]
PROTOCOL = resolve("coco", area_ranges=AREAS, levels=LEVELS)


def read(document, results, fields=("occlusion", "truncation", "attributes.night")):
    truth = detmap.read_coco(document, fields=fields)
    sizes = np.array([SIZES[key] for key in truth.images.ids.tolist()])
    truth = dataclasses.replace(truth, images=dataclasses.replace(truth.images, sizes=sizes))
    return truth, detmap.read_coco_results(results, truth)


@pytest.mark.parametrize("seed", range(examples(40)))
def test_every_range_equals_the_twin(seed):
    document, results = scene(seed)
    result = detmap.evaluate(*read(document, results), PROTOCOL)
    expected = naive.coco_evaluate([1, 2, 3, 4], [1, 2], document["annotations"], results, area_ranges=BOTH)
    for name in ("precision", "recall"):
        assert same_bits(getattr(result, name), np.where(expected[name] == -1, np.nan, expected[name]))
    for a, name in enumerate(PROTOCOL.range_names):
        own = expected["precision"][..., a, -1]
        value = np.mean(own[own > -1]) if (own > -1).any() else np.nan
        assert same_bits(result[f"AP_{name}" if a else "AP"], value)
        assert a == 0 or f"AR_{name}" in result
    lacking = sum("occlusion" not in one for one in document["annotations"])
    assert result.notices.get("missing_level_fields", 0) == lacking


def test_objects_are_out_at_a_height_of_25_and_detections_are_not():
    """KITTI's moderate, worked out by hand: two objects below the limit, and detections of 25 and of 24.9."""
    heights = [25.0, 25.5, 26.0]
    document = {
        "images": [{"id": 1}],
        "categories": [{"id": 1, "name": "car"}],
        "annotations": [
            {"id": n, "image_id": 1, "category_id": 1, "area": 30 * height, "iscrowd": 0, "occlusion": n // 3}
            | {"bbox": [100.0 * n, 0, 30, height], "truncation": 0.3}
            for n, height in enumerate(heights, 1)
        ],
    }
    level = {"moderate": LEVELS["moderate"]}
    alone = [{"image_id": 1, "category_id": 1, "bbox": [900.0, 0, 30, height], "score": 0.5} for height in (25, 24.9)]
    right = [one | {"score": 0.4} for one in document["annotations"]]
    truth = detmap.read_coco(document, fields=["occlusion", "truncation"])
    for results, wrong in ((right, 0), ([alone[0], *right], 1), ([alone[1], *right], 0)):
        found = detmap.read_coco_results(results, truth)
        result = detmap.evaluate(truth, found, levels=level, area_ranges={"all": (0, 1e9)})
        assert result.tally.positives[0].tolist() == [3, 2]
        (at,) = np.flatnonzero(np.array(result.protocol.range_names) == "moderate")
        assert result.tally.ignored_counts(at)[0, 0] == len(results) - 2 - wrong


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels")
    document, results = scene(3)
    (folder / "truth.json").write_text(json.dumps(document))
    (folder / "results.json").write_text(json.dumps(results))
    names = ["image_id", "category_id", "x", "y", "width", "height", "area", "crowd", "image_width", "image_height"]
    rows = [[*names, "occlusion", "truncation", "night"]]
    for one in document["annotations"]:
        height, width = SIZES[one["image_id"]]
        rows.append([one["image_id"], one["category_id"], *one["bbox"], one["area"], one["iscrowd"], width, height])
        rows[-1] += [one.get("occlusion", ""), one["truncation"], one["attributes"]["night"]]
    (folder / "truth.csv").write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return folder


def test_files_are_read_for_the_levels(files, monkeypatch):
    truth, found = str(files / "truth.json"), str(files / "results.json")
    expected = detmap.evaluate(*read(*scene(3)), PROTOCOL)
    assert_same_result(detmap.evaluate(truth, found, PROTOCOL), expected)
    assert_same_result(detmap.evaluate(truth, found, area_ranges=AREAS, levels=LEVELS), expected)
    (scored,) = detmap.batch.score(truth, [found], PROTOCOL)
    assert same_bits(list(scored.values()), list(expected.values()))
    from detmap.formats.coco import read as reader

    monkeypatch.setattr(reader, "_WORTH_SCANNING", 0)
    assert_same_result(detmap.evaluate(truth, found, PROTOCOL), expected)


def test_tables_take_fields_from_columns(files):
    pytest.importorskip("pyarrow")
    levels = {**LEVELS, "night": "night=1"}
    expected = detmap.evaluate(*read(*scene(3)), PROTOCOL)
    results = str(files / "results.json")
    by_csv = detmap.evaluate(str(files / "truth.csv"), results, area_ranges=AREAS, levels=levels)
    assert same_bits(list(by_csv.values()), list(expected.values()))
    import pyarrow.csv
    import pyarrow.parquet

    table = pyarrow.csv.read_csv(files / "truth.csv")
    pyarrow.parquet.write_table(table, files / "truth.parquet")
    for truth in (
        str(files / "truth.parquet"),
        detmap.GroundTruth.from_arrow(table),
        detmap.GroundTruth.from_frame(table.to_pandas()),
    ):
        made = detmap.evaluate(truth, results, area_ranges=AREAS, levels=levels)
        assert same_bits(list(made.values()), list(expected.values()))
    with pytest.raises(InputError, match="has no column 'haze'"):
        detmap.evaluate(str(files / "truth.parquet"), results, levels={"a": "haze>1"})
    with pytest.raises(InputError, match="has no column 'haze'"):
        detmap.evaluate(str(files / "truth.csv"), results, levels={"a": "haze>1"})


def test_the_evaluator_takes_fields_and_sizes_with_targets():
    document, results = scene(5)
    expected = detmap.evaluate(*read(document, results), PROTOCOL)
    evaluators = [detmap.Evaluator(PROTOCOL, box_format="xywh", categories={1: "car", 2: "van"}) for _ in range(2)]
    for image, size in SIZES.items():
        own = [one for one in document["annotations"] if one["image_id"] == image]
        seen = [one for one in results if one["image_id"] == image]
        target = {
            "boxes": [one["bbox"] for one in own],
            "labels": [one["category_id"] for one in own],
            "area": [one["area"] for one in own],
            "iscrowd": [one["iscrowd"] for one in own],
            "occlusion": [one.get("occlusion") for one in own],
            "truncation": np.array([one["truncation"] for one in own]),
            "attributes.night": [one["attributes"]["night"] for one in own],
            "image_size": size,
        }
        prediction = {
            "boxes": [one["bbox"] for one in seen],
            "scores": [one["score"] for one in seen],
            "labels": [one["category_id"] for one in seen],
        }
        evaluators[image % 2].update(prediction, target, image_ids=image)
    made = evaluators[0].merge(evaluators[1]).compute()
    assert same_bits(list(made.values()), list(expected.values()))
    assert made.notices == expected.notices
    with pytest.raises(InputError, match="'image_size'"):
        evaluators[0].update(prediction, {**target, "image_size": (0, 5)}, image_ids=9)
    del target["occlusion"]
    with pytest.raises(InputError, match="there is no 'occlusion'"):
        evaluators[0].update(prediction, target, image_ids=9)


def test_matches_explanations_and_splits():
    document, results = scene(7)
    truth, found = read(document, results)
    tally = detmap.match(truth, found, PROTOCOL)
    for at, name in enumerate(PROTOCOL.range_names):
        matches = detmap.match_pairs(truth, found, PROTOCOL, area=name)
        rows = np.lexsort((tally.rank, tally.category, tally.image))
        hit, ignored = (tally.bit(words, at, 0)[rows] for words in (tally.hit, tally.ignored))
        assert np.array_equal(matches.outcome, hit + 2 * ignored)
    result = detmap.DetectionResult(tally)
    other = dataclasses.replace(PROTOCOL, name="other", min_score=0.3, ties="file")
    for metric in ("AP", "AP_tiny", "AP_medium", "AP_moderate"):
        made = detmap.explain(truth, found, PROTOCOL, other, metric=metric)
        assert same_bits(made.source_value, result[metric])
        assert same_bits(made.target_value, detmap.evaluate(truth, found, other)[metric])
    assert trimmed(PROTOCOL, "AP_moderate").range_names == ("all", "moderate")
    with pytest.raises(OptionError, match=r"AP_fog.* is no AP of coco that can be explained"):
        trimmed(PROTOCOL, "AP_fog")


def test_the_command_line(files, capsys, tmp_path):
    given = [str(files / "truth.json"), str(files / "results.json")]
    flags = ["--area-range", "tiny:0:5%", "--area-range", "low:height:0:25", "--level", "hard:occlusion>1"]
    flags += ["--level", "easy:occlusion<=0,height>=40"]
    card = str(tmp_path / "card.json")
    assert main(["eval", *given, *flags, "--format", "json", "--card", card]) == 0
    made = json.loads(capsys.readouterr().out)["metrics"]
    expected = detmap.evaluate(
        *given,
        area_ranges={"all": (0, 1e10), "tiny": (0, "5%"), "low": ("height", 0, 25)},
        levels={"hard": "occlusion>1", "easy": "occlusion<=0,height>=40"},
    )
    assert made == pytest.approx(dict(expected), nan_ok=True)
    assert {"AP_tiny", "AR_low", "AP_hard", "AR_easy"} <= set(made)
    assert main(["verify", card, *given]) == 0
    assert main(["diagnose", *given, *flags, "--parts", "tide", "--quiet"]) == 0
    assert main(["report", *given, *flags, "--out", str(tmp_path / "page.html"), "--quiet"]) == 0
    assert "AP_hard" in (tmp_path / "page.html").read_text("utf-8")
    capsys.readouterr()
    for wrong, said in (
        (["--level", "hard:haze>1"], "no annotation has the field 'haze'"),
        (
            ["--level", "hard:haze>1"],
            "fields with numbers or booleans are: .*occlusion, truncation, .*attributes.night",
        ),
        (["--level", "hard"], "--level must be NAME:CONDITIONS"),
        (["--level", "a:occlusion>1", "--level", "a:occlusion>2"], "has a name given before"),
        (["--level", "small:occlusion>1"], "'small' is the name of two area ranges, levels or groups"),
        (["--level", "a:occlusion>1,occlusion<=1"], "level 'a' is empty: no occlusion can be"),
        (["--area-range", "tiny:5%:1%"], "area range 'tiny' must be low:high"),
        (["--area-range", "x:depth:0:3"], "--area-range must be NAME:LO:HI"),
    ):
        assert main(["eval", *given, *wrong]) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert re.search(said, line), line


def test_what_tables_lack_is_said_in_one_line():
    document, results = scene(1)
    truth = detmap.read_coco(document)
    found = detmap.read_coco_results(results, truth)
    with pytest.raises(InputError, match=r"has no field 'occlusion' .*read it with fields=.'occlusion'."):
        detmap.evaluate(truth, found, levels={"hard": "occlusion>1"})
    with pytest.raises(InputError, match="4 of 4 images have no size, the first of them 1: a range in percent"):
        detmap.evaluate(truth, found, area_ranges={"all": (0, 1e10), "tiny": (0, "1%")})
    with pytest.raises(InputError, match=r"annotation 0.*is neither a number nor a boolean"):
        detmap.read_coco(document, fields=["attributes.colour"])
    assert "AP_lone" in detmap.evaluate(truth, found, levels={"lone": "iscrowd=0"})  # every table has it
    columns = {"image_ids": [1, 1], "category_ids": [1, 1], "boxes": [[0, 0, 9, 9], [20, 0, 9, 9]]}
    made = detmap.GroundTruth.from_arrays(**columns, fields={"night": [True, None]})
    assert made.take([1]).fields["night"].tolist() == pytest.approx([np.nan], nan_ok=True)
    with pytest.raises(InputError, match="night"):
        detmap.GroundTruth.from_arrays(**columns, fields={"night": [True]})


@pytest.mark.parametrize(
    ("decisions", "said"),
    [
        ({"levels": {"a": "occlusion"}}, "a condition is like occlusion<=1"),
        ({"levels": {"a": "occlusion>nan"}}, "a condition is like occlusion<=1"),
        ({"levels": {"a": "object.occlusion>1"}}, "object. goes with area, height, width, length"),
        ({"levels": {"a": "occlusion>1%"}}, "% goes with area"),
        ({"levels": {"7": "occlusion>1"}}, "cannot be called '7'"),
        ({"levels": {"a": "object.height>9,object.height<9"}}, "level 'a' is empty"),
        ({"levels": 5}, "levels are names with conditions"),
        ({"levels": {"pooled": "height>1"}, "pooled": True}, "AP_pooled would be two metrics"),
        ({"area_ranges": {"tiny": (0, "1%")}}, "the first area range must hold all objects, in square pixels"),
        ({"area_ranges": {"all": (0, 1e10), "a": ("depth", 0, 1)}}, "a range can be of area, .*not of 'depth'"),
        ({"area_ranges": {"all": (0, 1e10), "a": (0, 1, "depth")}}, "a range can be of area, height, width, length"),
    ],
)
def test_what_cannot_be_is_refused(decisions, said):
    with pytest.raises(OptionError, match=said):
        resolve("coco", **decisions)


def test_one_spelling_and_what_is_read():
    one = resolve("coco", levels={"a": " occlusion <=1 , truncated == no,height>=2.50% "})
    assert one.levels == (("a", "occlusion<=1,truncated=0,height>=2.5%"),)
    assert one == resolve("coco", levels=one.levels) == dataclasses.replace(COCO, levels=one.levels)
    assert needs(one) == {"fields": ("occlusion", "truncated"), "image_facts": True}
    assert needs(COCO) == {}
    assert parse_area_ranges(["all:0:9", "t:height:1%:2"]) == {"all": (0, 9), "t": (1, 2, "height%")}
    assert Protocol.__doc__ is not None
    assert "levels a" in one.describe()
    assert resolve(one, area_ranges=PROTOCOL.area_ranges).area_ranges == PROTOCOL.area_ranges


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"levels": {"h": 3}}, "level 'h': conditions are text"),
        ({"levels": {"h": None}}, "level 'h': conditions are text"),
        ({"levels": "h:a>1"}, "levels are names with conditions"),
        ({"levels": 5}, "levels are names with conditions"),
        ({"area_ranges": {"all": (0, 1e10), "x": 5}}, "area range 'x': must be least and largest area"),
    ],
)
def test_what_is_no_level_or_range_is_an_option_error(given, said):
    with pytest.raises(OptionError, match=said):
        detmap.Evaluator(**given)
