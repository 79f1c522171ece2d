"""Ground truth of other benchmarks, scored by COCO's rules: the notice names the benchmark, wherever its fields stand."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import detmap
from detmap.batch import score
from detmap.cli import main
from detmap.data.benchmarks import BENCHMARKS
from detmap.data.notices import describe
from detmap.detection.protocols import resolve
from detmap.formats.coco import read as coco

pytestmark = pytest.mark.usefixtures("each_parser")

FIELDS = [
    (section, field, one.name) for one in BENCHMARKS for section, fields in one.fields.items() for field in fields
]
FOUND = [
    {"image_id": i, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5, "keypoints": [1, 1, 2] * 17} for i in (1, 2)
]


@pytest.fixture(params=["decoder", "scanner"])
def each_parser(request, monkeypatch):
    """Small files are decoded, large ones scanned: either way for all of them."""
    monkeypatch.setattr(coco, "_WORTH_SCANNING", 0 if request.param == "scanner" else 1 << 40)


@pytest.fixture
def document():
    shape = {"bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0, "num_keypoints": 17, "keypoints": [1, 1, 2] * 17}
    return {
        "info": {"frequency": "r", "neg_category_ids": 1},
        "images": [{"id": i, "file_name": "neg_category_ids", "width": 20, "height": 20} for i in (1, 2, 3)],
        "annotations": [{"id": i, "image_id": i, "category_id": 1, **shape} for i in (1, 2, 3)],
        "categories": [{"id": 1, "name": '"frequency": "r"', "more": {"frequency": "r"}}, {"id": 2, "name": "b"}],
    }


def said(table):
    return {code: count for code, count in table.notices.items() if count}


def written(document, indent):
    separators = None if indent else (",", ":")
    return json.dumps(document, indent=indent, separators=separators).encode()


def marked(document, section, field, rows=(0, 1, 2), first=False, value=...):
    """The document with a field in some records of a list, at their end or at their beginning."""
    usual = {"frequency": "c", "crowdIndex": 0.5, "IsGroupOf": True, "isgroupof": True, "is_group_of": True}
    value = usual.get(field, [1, 2]) if value is ... else value
    made = copy.deepcopy(document)
    for row in rows:
        if row < len(made[section]):
            record = made[section][row]
            made[section][row] = {field: value, **record} if first else {**record, field: value}
    return made


@pytest.mark.parametrize("iou_type", ["bbox", "keypoints"])
@pytest.mark.parametrize(("section", "field", "name"), FIELDS)
def test_fields_of_benchmarks_are_noticed_in_every_record(section, field, name, iou_type, document):
    """In all records, in the last one alone, ahead of other fields or behind them, however the file is laid out."""
    expected = {f"foreign_fields:{field} ({name})": 1}
    for indent in (None, 2):
        assert said(detmap.read_coco(written(document, indent), iou_type=iou_type)) == {}
        for rows in ((0, 1, 2), (len(document[section]) - 1,)):
            for first in (False, True):
                made = marked(document, section, field, rows, first)
                for source in (written(made, indent), made):
                    truth = detmap.read_coco(source, iou_type=iou_type)
                    assert said(truth) == expected
    found = detmap.read_coco_results(FOUND, truth, iou_type=iou_type)
    result = detmap.evaluate(truth, found, iou_type=iou_type)
    assert {code: n for code, n in result.notices.items() if "foreign" in code} == expected
    protocols = {"LVIS": "lvis", "Open Images": "openimages", "CrowdPose": "crowdpose", "COCO-WholeBody": "wholebody"}
    whose = name + ("'" if name.endswith("s") and name != "LVIS" else "'s")
    advice = f"; {whose} rules: --protocol {protocols[name]}" if name in protocols else ""
    if name == "PoseTrack":
        advice = "; no protocol has PoseTrack's rules, its own code has (poseval)"
    assert describe(expected) == [
        "1 field of another benchmark, which this protocol does not read, so that the number is not that benchmark's: "
        f"{field} ({name}){advice}"
    ]


def test_a_word_that_others_use_too_needs_the_values_of_the_benchmark(document):
    for value in (7, "rare", None, ["r"], "rc"):
        made = marked(document, "categories", "frequency", value=value)
        assert said(detmap.read_coco(written(made, None))) == {}
        assert said(detmap.read_coco(made)) == {}
    array = marked(document, "categories", "frequency", value=np.array(["r", "c"]))
    assert said(detmap.read_coco(array)) == {}
    made = marked(marked(document, "categories", "frequency", value=3), "categories", "frequency", (1,), value="f")
    assert list(said(detmap.read_coco(written(made, 1)))) == ["foreign_fields:frequency (LVIS)"]


def test_a_key_with_escapes_is_the_same_key(document):
    text = written(marked(document, "images", "crowdIndex"), None).replace(b'"crowdIndex"', b'"\\u0063rowdIndex"')
    assert list(said(detmap.read_coco(text))) == ["foreign_fields:crowdIndex (CrowdPose)"]


def test_batch_and_check_say_so_too(document, tmp_path):
    made = marked(marked(document, "categories", "frequency"), "images", "neg_category_ids")
    (tmp_path / "truth.json").write_bytes(written(made, None))
    (tmp_path / "found.json").write_text(json.dumps(FOUND))
    (scored,) = score(tmp_path / "truth.json", [tmp_path / "found.json"])
    assert sum("LVIS" in code for code in scored.notices) == 2
    (finding,) = (one for one in detmap.check(tmp_path / "truth.json").findings if one.code == "foreign_fields")
    assert (finding.count, finding.severity) == (2, "warning")
    assert (
        finding.says == "The ground truth has 2 fields of another benchmark: neg_category_ids (LVIS), frequency (LVIS)"
    )


@pytest.mark.parametrize("points", [14, 133, 5])
def test_poses_of_other_points_name_the_protocol_that_has_them(points, document):
    found = [{**one, "keypoints": [1, 1, 2] * points} for one in FOUND]
    for one in document["annotations"]:
        one["keypoints"] = [1, 1, 2] * points
    known = [name for name in ("crowdpose", "wholebody") if len(resolve(name).sigmas) == points]
    advice = f"--protocol {known[0]} has those of {points}; " if known else ""
    with pytest.raises(detmap.InputError, match=f"sigmas are of 17; {advice}give as many sigmas"):
        detmap.evaluate(document, found, iou_type="keypoints")
    for name in known:
        assert detmap.evaluate(document, found, name)


def test_auto_takes_the_protocol_that_a_file_asks_for(document, tmp_path, capsys):
    made = marked(marked(document, "categories", "frequency"), "images", "neg_category_ids")
    (tmp_path / "lvis.json").write_bytes(written(made, None))
    (tmp_path / "coco.json").write_bytes(written(document, None))
    (tmp_path / "found.json").write_text(json.dumps(FOUND))
    for name in ("lvis", "coco"):
        truth = detmap.read_coco(tmp_path / f"{name}.json")
        found = detmap.read_coco_results(FOUND, truth)
        pairs = [(truth, found), (tmp_path / f"{name}.json", tmp_path / "found.json"), (truth, FOUND)]
        for pair in pairs:
            result = detmap.evaluate(*pair, "auto", min_score=0.25)
            assert (result.protocol.name, result.protocol.min_score) == (name, 0.25)
            assert detmap.match(*pair, "auto").protocol.name == name
            assert detmap.match_pairs(*pair, "auto").protocol.name == name
            assert detmap.diagnose(*pair, "auto").protocol.name == name
        (scored,) = score(pairs[1][0], [pairs[1][1]], "auto")
        assert scored.document["protocol"]["name"] == name
        (scored,) = score(truth, [pairs[1][1]], "auto")
        assert scored.document["protocol"]["name"] == name
        assert main(["eval", *map(str, pairs[1]), "--protocol", "auto", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["protocol"]["name"] == name
    assert main(["eval", "-", str(tmp_path / "found.json"), "--protocol", "auto"]) == 2
    assert "needs ground truth in a file" in capsys.readouterr().err


TABLE = "ImageID,LabelName,XMin,XMax,YMin,YMax,IsOccluded,IsGroupOf,IsInside\n"


def test_columns_of_open_images_are_noticed_and_groups_counted(tmp_path):
    rows = "".join(f"a,/m/0{k % 3},{k},{k + 9},{k},{k + 7},1,{int(k % 3 == 0)},0\n" for k in range(7))
    (tmp_path / "truth.csv").write_text(TABLE + rows)
    truth = detmap.read(tmp_path / "truth.csv", "ground_truth")
    expected = {
        "foreign_fields:IsGroupOf (Open Images)": 1,
        "foreign_fields:IsInside (Open Images)": 1,
        "group_boxes": 3,
    }
    assert said(truth) == expected
    found = detmap.Detections.from_arrays(image_ids=["a"], category_ids=["/m/00"], boxes=[[0, 0, 9, 7]], scores=[1])
    assert expected.items() <= detmap.evaluate(truth, found).notices.items()
    assert describe(expected)[1] == (
        "3 boxes stand for groups of objects, by a column that this protocol does not read: each is scored as "
        "one object"
    )
    arrow = pytest.importorskip("pyarrow.csv")
    from pyarrow import parquet

    table = arrow.read_csv(tmp_path / "truth.csv")
    assert said(detmap.GroundTruth.from_arrow(table)) == expected
    known = ["IsInside", "IsOccluded", "IsGroupOf"]
    read = detmap.GroundTruth.from_arrow(table.drop_columns(known[:2]), columns={"difficult": "IsGroupOf"})
    assert said(read) == {}
    parquet.write_table(table, tmp_path / "truth.parquet")
    assert said(detmap.read(tmp_path / "truth.parquet", "ground_truth")) == expected


def test_a_conversion_says_nothing_of_scoring(tmp_path):
    path = tmp_path / "boxes.csv"
    path.write_text("image,category,xmin,ymin,xmax,ymax,IsGroupOf,IsInside\na,cat,1,1,5,5,1,0\n")
    made = detmap.convert(path, tmp_path / "boxes.json")
    assert made.notices == {"converted_fields:IsGroupOf (Open Images)": 1, "converted_fields:IsInside (Open Images)": 1}
    (sentence,) = describe(made.notices)
    assert "carried over as far as tables have them" in sentence
    assert "scored" not in sentence
    assert '"is_group_of":1' in (tmp_path / "boxes.json").read_text()


@pytest.mark.parametrize("role", ["ground_truth", "detections"])
def test_bad_corners_in_a_table_name_the_line(role, tmp_path):
    path = tmp_path / "boxes.csv"
    score = "score," if role == "detections" else ""
    rows = [
        f"image,category,{score}x1,y1,x2,y2",
        "",
        f"a,cat,{'1,' if score else ''}1,1,5,5",
        f"b,cat,{'1,' if score else ''}9,1,5,5",
    ]
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(detmap.InputError, match=r"boxes\.csv: line 4, field 'bbox': the far corner") as raised:
        detmap.read(path, role)
    assert raised.value.record == "line 4"
