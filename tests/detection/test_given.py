"""What is scored may be tables, paths, or COCO's JSON; results answer to the names of other tools, and save themselves."""

import json
import pickle
from pathlib import Path

import pytest

import detmap
from detmap.errors import InputError, OptionError, UnknownMetricError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TRUTH, FOUND = FIXTURES / "coco" / "ground_truth.json", FIXTURES / "coco" / "detections.json"
PEOPLE, MASKS = FIXTURES / "people" / "ground_truth.json", FIXTURES / "people" / "masks.json"


@pytest.fixture(scope="module")
def tables():
    truth = detmap.read_coco(TRUTH)
    return truth, detmap.read_coco_results(FOUND, truth)


@pytest.fixture(scope="module")
def result(tables):
    return detmap.evaluate(*tables)


def _parsed(path):
    return json.loads(path.read_text())


@pytest.mark.parametrize("make", [lambda path: path, str, _parsed], ids=["path", "text", "json"])
def test_paths_and_json_are_scored_as_their_tables(make, tables, result):
    truth, found = make(TRUTH), make(FOUND)
    assert dict(detmap.evaluate(truth, found)) == dict(result)
    assert dict(detmap.evaluate(tables[0], found)) == dict(result)
    assert dict(detmap.evaluate(truth, tables[1])) == dict(result)
    assert dict(detmap.DetectionResult(detmap.match(truth, found))) == dict(result)
    assert detmap.diagnose(truth, found).ap == detmap.diagnose(*tables).ap
    assert (detmap.match_pairs(truth, found).outcome == detmap.match_pairs(*tables).outcome).all()
    made = detmap.explain(truth, found, "coco", "voc2012")
    assert made.source_value == result["AP"]


@pytest.mark.parametrize("make", [lambda path: path, _parsed], ids=["path", "json"])
def test_they_are_read_for_the_kind_of_shape_that_is_scored(make):
    truth = detmap.read_coco(PEOPLE, iou_type="segm")
    wanted = dict(detmap.evaluate(truth, detmap.read_coco_results(MASKS, truth, iou_type="segm")))
    assert dict(detmap.evaluate(make(PEOPLE), make(MASKS), iou_type="segm")) == wanted
    assert dict(detmap.evaluate(truth, make(MASKS))) == wanted
    assert detmap.evaluate(make(PEOPLE), make(MASKS)).protocol.iou_type == "bbox"


def test_what_is_none_of_these_is_refused(tables):
    with pytest.raises(InputError, match="the arguments are swapped"):
        detmap.evaluate(tables[1], tables[0])
    for given in (None, 3, iter(())):
        with pytest.raises(InputError, match="expected GroundTruth, not"):
            detmap.evaluate(given, tables[1])
        with pytest.raises(InputError, match="expected Detections, not"):
            detmap.evaluate(tables[0], given)
    with pytest.raises(InputError, match="no_such"):
        detmap.evaluate("no_such.json", tables[1])


def test_the_role_of_a_file_is_that_of_its_content(tables):
    assert isinstance(detmap.read(TRUTH), detmap.GroundTruth)
    assert isinstance(detmap.read(FOUND), detmap.Detections)
    assert dict(detmap.evaluate(detmap.read(TRUTH), detmap.read(FOUND, ground_truth=tables[0]))) == dict(
        detmap.evaluate(*tables)
    )


def test_explain_without_protocols_lists_them(tables):
    with pytest.raises(OptionError, match=r"explain needs two protocols.*voc2007.*ultralytics"):
        detmap.explain(*tables)


#: Other tools' names of metrics, by ours.
SPELLINGS = {
    "AP": ("mAP", "map", "ap", "AP@[0.5:0.95]", "AP@0.5:0.95", "mAP50-95", "AP@[.5:.95]", "AP@[.5:.05:.95]", "mean AP"),
    "AP50": ("mAP50", "map_50", "AP@0.5", "AP@.5", "AP@[0.5]", "mAP@0.50", "AP_50", "ap50"),
    "AP75": ("map_75", "AP@0.75", "AP@75"),
    "AP_small": ("APs", "map_small", "AP-small"),
    "AP_large": ("APl", "mAP_large"),
    "AR_100": ("AR@100", "mar_100", "AR", "mAR"),
    "AR_1": ("AR@1", "mar_1"),
    "AR_10": ("AR@10", "mar_10", "mAR10"),
    "AR_medium": ("ARm", "mar_medium"),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_metrics_go_by_the_names_of_other_tools(name, result):
    for spelling in SPELLINGS[name]:
        assert result[spelling] == result[name], spelling
        assert spelling in result
    assert result.map50 == result.AP50
    assert result.ap == result["AP"]


@pytest.mark.parametrize(
    "name", ["AP@0.33", "AP95", "AP50_small", "AR@7", "foo", "", "AP@", "AP_tiny", "APx", "AP@0.5:0.9", "AP50-75", 3]
)
def test_a_name_that_means_no_metric_is_refused_with_those_that_there_are(name, result):
    assert name not in result
    with pytest.raises(KeyError) as caught:
        result[name]
    assert isinstance(caught.value, UnknownMetricError)
    assert "there are: AP, AP50, AP75, AP_small" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert result.get(name, -1.0) == -1.0


def test_names_follow_the_protocol(tables):
    voc = detmap.evaluate(*tables, "voc2007")
    assert voc["AP"] == voc["AP50"] == voc["mAP@0.5"] == voc["mAP"]
    assert "AP@0.5:0.95" not in voc
    assert "AP75" not in voc
    lenient = detmap.evaluate(*tables, iou_thresholds="0.3:0.7:0.1")
    assert "mAP50-95" not in lenient
    assert lenient["AP@0.3:0.7"] == lenient["AP"]


def test_a_result_prints_its_table_and_saves_itself(result, tmp_path):
    shown = str(result)
    assert repr(result) in shown
    assert "AP_small   0.2596  precision" in shown
    wanted = {
        ".json": result.to_json(),
        ".csv": result.to_csv(),
        ".md": result.to_markdown(),
        ".tex": result.to_latex(),
        ".txt": shown,
    }
    for suffix, text in wanted.items():
        result.save(tmp_path / f"x{suffix}")
        assert (tmp_path / f"x{suffix}").read_text() == text.rstrip("\n") + "\n"
    assert json.loads((tmp_path / "x.json").read_text())["metrics"]["AP"] == result["AP"]
    with pytest.raises(OptionError, match=r"name a file that ends in \.json, \.csv"):
        result.save(tmp_path / "x.xlsx")


def test_latex_holds_no_command_of_a_name():
    from detmap.results import to_latex

    made = to_latex([{"name": r"50% \input{x} & $a_b$ ~^#<>|", "value": 0.5}])
    assert made.splitlines()[4] == (
        r"50\% \textbackslash{}input\{x\} \& \$a\_b\$ \textasciitilde{}\textasciicircum{}\#"
        r"\textless{}\textgreater{}\textbar{} & 0.5000 \\"
    )
    assert to_latex([]) == ""


def test_the_face_of_the_package_holds_public_names_alone():
    import detmap.formats.files

    assert set(detmap.__all__) < set(dir(detmap))
    assert not {"system", "kernels", "columns", "import_module", "TYPE_CHECKING"} & set(dir(detmap))
    assert all(getattr(detmap, name) is not None for name in dir(detmap))
