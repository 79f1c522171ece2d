"""`detmap check`: what is planted is found, what is clean has no finding, and every finding of real data is true."""

from __future__ import annotations

import ast
import functools
import html.parser
import json
import math
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import planting
import pytest
from scipy import stats
from workloads import REAL_DATA

import detmap
from detmap.checks import CODES, check, check_run
from detmap.checks.coverage import chance_of_none
from detmap.checks.data_statistics import figure_of
from detmap.checks.rates import tail
from detmap.cli import main
from detmap.errors import InputError, OptionError

ROOT = Path(__file__).resolve().parents[2]
TRUTH, FOUND = (str(ROOT / "fixtures" / "coco" / name) for name in ("ground_truth.json", "detections.json"))
#: As it is before a test puts `clean` in its place.
MADE = planting.clean


@functools.cache
def _pickled(seed, kind):
    return pickle.dumps(MADE(seed, kind))


def clean(seed, kind="boxes"):
    """Data without a defect, a copy of which a test may change."""
    return pickle.loads(_pickled(seed, kind))


def written(folder, data):
    """The paths of a data set's files: ground truth, detections, another ground truth."""
    paths = []
    for name, content in (("truth", data.truth), ("found", data.found), ("train", data.train)):
        paths.append(None if content is None else folder / f"{name}.json")
        if content is not None:
            paths[-1].write_text(json.dumps(content))
    return paths


def report_of(folder, data):
    truth, found, train = written(folder, data)
    return check(truth, found, train=train)


# ------------------------------------------------------------------------------------------------------------------ planted


@pytest.mark.parametrize("defect", planting.DEFECTS, ids=[one[1] for one in planting.DEFECTS])
def test_a_planted_defect_is_found_and_nothing_else(defect, tmp_path):
    code, name, also, kind, plant = defect
    data = clean(3, kind)
    plant(np.random.default_rng(sum(map(ord, name))), data)
    found = set(report_of(tmp_path, data).codes)
    assert code in found
    assert found - also == {code}


@pytest.mark.parametrize("kind", ["boxes", "masks", "poses"])
def test_clean_data_has_no_finding(kind, tmp_path):
    for seed in (3, 4):
        assert report_of(tmp_path, clean(seed, kind)).codes == ()


def test_at_least_forty_defects_are_planted():
    assert len(planting.DEFECTS) >= 40
    assert len({one[0] for one in planting.DEFECTS}) >= 40


def test_the_generator_shares_nothing_with_the_checks():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests" / "planting").glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    modules = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    used = {name.split(".")[0] for name in modules} - {"planting"}
    assert used <= {"__future__", "collections", "copy", "string", "dataclasses", "numpy", "typing"}


def test_every_code_is_found_somewhere_and_registered():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "detmap" / "checks").glob("*.py"))
    others = ("formats/coco/salvage.py", "shapes/masks.py", "shapes/keypoints.py")
    text += "".join((ROOT / "detmap" / name).read_text(encoding="utf-8") for name in others)
    for code in CODES:
        assert f'"{code}"' in text, f"{code} is registered, and nothing finds it"
    assert all(row.effect.endswith(".") and row.remedy[-1] in ".?)" for row in CODES.values())
    assert "{many}" in "".join(row.says for row in CODES.values())


@pytest.mark.slow
def test_the_script_measures_recall_and_precision(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import check_the_checks

    monkeypatch.setattr(planting, "DEFECTS", [one for one in planting.DEFECTS if one[0] == "constant_scores"])
    monkeypatch.setattr(
        planting, "SCENE_DEFECTS", [one for one in planting.SCENE_DEFECTS if one.name == "shard_mirrored"]
    )
    monkeypatch.setattr(planting, "KINDS", ["one class"])
    monkeypatch.setattr(planting, "SHAPED_KINDS", [])
    monkeypatch.setattr(planting, "clean", clean)
    monkeypatch.setattr(sys, "argv", ["check_the_checks.py", "1", "3"])
    check_the_checks.main()
    said = capsys.readouterr().out
    assert "scenes, 1 seed: 3 of 3 defects named, 0 of 3 findings wrong" in said
    assert "small data sets, 1 seed: 1 of 1 defects named, 0 of 1 findings wrong" in said


# --------------------------------------------------------------------------------------------------------- what is checked


def test_tables_in_memory_are_checked_like_their_files(tmp_path):
    code, name, also, kind, plant = next(one for one in planting.DEFECTS if one[0] == "classes_permuted")
    del code, name, also
    data = clean(3, kind)
    plant(np.random.default_rng(0), data)
    truth, found, _ = written(tmp_path, data)
    tables = detmap.read(truth, "ground_truth"), detmap.read(found, "detections")
    assert detmap.check(*tables).codes == detmap.check(truth, found).codes == ("classes_permuted",)
    with pytest.raises(InputError, match="swapped"):
        check(tables[1], tables[0])
    with pytest.raises(InputError, match="is not COCO ground truth but a list"):
        check([])
    with pytest.raises(InputError, match="expected GroundTruth or a path, not int"):
        check(3)


def test_records_name_the_places_in_the_file_where_others_are_refused(tmp_path):
    """A table without the refused record has other rows: the places stay those of the file."""
    data = clean(3)
    data.found[2]["score"] = float("nan")
    data.found[7]["bbox"][2] = 0
    findings = {one.code: one for one in report_of(tmp_path, data).findings}
    assert findings["bad_values"].records == (2,)
    assert findings["zero_sized_boxes"].records == (7,)
    data.found[7]["bbox"] = "none"
    lines = tmp_path / "found.jsonl"
    lines.write_text("\n".join(map(json.dumps, data.found)))
    assert check(tmp_path / "truth.json", lines).findings[0].records == (2, 7)


def test_what_cannot_be_read_is_an_error_of_one_line(tmp_path, capsys):
    truth, _, _ = written(tmp_path, clean(3))
    broken = tmp_path / "found.json"
    broken.write_text('[{"image_id": 1')
    report = check(truth, broken)
    assert report.codes == ("unreadable_detections",)
    assert "is not valid JSON" in report.findings[0].says
    assert main(["check", str(truth), str(broken)]) == 1
    assert main(["check", str(broken)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("detmap: error: ")


def test_a_file_that_is_not_there_is_no_finding(tmp_path, capsys):
    """Nothing was looked at: the exit code is 2, as of ground truth that cannot be read, and not that of errors."""
    truth, _, _ = written(tmp_path, clean(3))
    missing = tmp_path / "missing.json"
    assert main(["check", str(truth), str(missing)]) == 2
    assert capsys.readouterr() == ("", f"detmap: error: {missing}: no such file; check the path\n")
    with pytest.raises(InputError, match="no such file"):
        check(truth, missing)


def test_files_by_name_are_resolved_ahead_of_the_checks(tmp_path):
    """CSV with names of files and classes is as good as ids; a name that nobody knows is said as it stands there."""
    data = clean(3)
    names = {one["id"]: one["file_name"] for one in data.truth["images"]}
    classes = {one["id"]: one["name"] for one in data.truth["categories"]}
    rows = [
        f"{names[one['image_id']]},{classes[one['category_id']]},{one['score']!r},"
        + ",".join(repr(v) for v in planting._corners(one["bbox"]))
        for one in data.found
    ]
    truth, _, _ = written(tmp_path, data)
    csv = tmp_path / "found.csv"
    csv.write_text("image,category,score,x1,y1,x2,y2\n" + "\n".join(rows))
    assert check(truth, csv).codes == ()
    csv.write_text("image,category,score,x1,y1,x2,y2\n" + "\n".join([*rows, "other.jpg,zebra,0.123456,1,2,30,40"]))
    report = check(truth, csv)
    assert report.codes == ("unknown_images",)
    assert report.findings[0].records == ("other.jpg",)


def test_a_schema_tells_nothing_of_what_is_on_the_images(tmp_path, capsys):
    """Whether the file has objects or not, and which, the report is the same."""
    data = clean(3)
    data.found += [{**data.found[0], "image_id": 5}, {**data.found[1], "category_id": 999}]
    truth, found, _ = written(tmp_path, data)
    bare = tmp_path / "images.json"
    bare.write_text(json.dumps({key: data.truth[key] for key in ("images", "categories")}))
    words = []
    for schema in (truth, bare):
        assert main(["check", "--schema", str(schema), str(found)]) == 1
        words.append(capsys.readouterr().out)
    assert words[0] == words[1]
    assert "object" not in "".join(one.says for one in check(truth, found, schema=True).findings)
    assert {"unknown_images", "unknown_categories"} <= set(check(bare, found, schema=True).codes)
    with pytest.raises(OptionError, match="schema"):
        check(bare, schema=True)


def test_what_reading_refuses_is_never_called_clean(tmp_path):
    """Where no record is wrong by itself, what reading says of the whole is the finding, or the error."""
    truth, _, _ = written(tmp_path, clean(3))
    text = truth.read_text()
    twice = tmp_path / "twice.json"
    twice.write_text(text[:-1] + ', "images": []}')
    with pytest.raises(InputError, match="is there twice"):
        check(twice)
    found = tmp_path / "none.json"
    found.write_text('[5, {"image_id": [], "category_id": 1, "bbox": "x", "score": 1}]')
    report = check(truth, found)
    assert (report.findings[0].code, report.findings[0].count) == ("bad_values", 2)


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_all_measure_are_checked_without_a_warning(tmp_path):
    """Areas and differences of such boxes and scores are infinite."""
    truth, _, _ = written(tmp_path, clean(3))
    image = clean(3).truth["images"][0]["id"]
    found = [
        {"image_id": image, "category_id": 1, "bbox": [sign * 1e149, 2, 1e149, 1e149], "score": sign * 1e308}
        for sign in (1, -1)
    ]
    path = tmp_path / "far.json"
    path.write_text(json.dumps(found))
    report = check(truth, path)
    assert {"outside_boxes", "logit_scores"} <= set(report.codes)
    assert report.to_text()
    assert report.to_html()


# --------------------------------------------------------------------------------------------------------------- rankings


def rankings(seed=0, topics=8, depth=60):
    """Judgements and a run as lists of lines, each line a list of words."""
    rng = np.random.default_rng(seed)
    qrels, run = [], []
    for topic in range(topics):
        documents = [f"doc{n:05d}" for n in rng.choice(90_000, depth, replace=False)]
        for place, name in enumerate(documents):
            qrels.append([f"t{topic}", "0", name, str(int(place < 5 or rng.random() < 0.2))])
        scores = np.sort(rng.random(depth))[::-1]
        for rank, (name, score) in enumerate(zip(rng.permutation(documents), scores, strict=True)):
            run.append([f"t{topic}", "Q0", str(name), str(rank), repr(float(score)), "mine"])
    return qrels, run


def without_scores(qrels, run):
    for line in run[10:40]:
        line[4] = "0.5"


RUNS = {
    "same_query_document": lambda qrels, run: run.append([*run[3][:4], "-1.0", "mine"]),
    "conflicting_judgements": lambda qrels, run: qrels.append([*qrels[0][:3], "3"]),
    "repeated_judgements": lambda qrels, run: qrels.append(list(qrels[0])),
    "disjoint_queries": lambda qrels, run: [line.__setitem__(0, line[0].upper()) for line in run],
    "disjoint_documents": lambda qrels, run: [line.__setitem__(2, line[2] + ".txt") for line in run],
    "unjudged": lambda qrels, run: [line.__setitem__(2, f"new{i}") for i, line in enumerate(run[:4])],
    "missing_queries": lambda qrels, run: run.__setitem__(slice(None), [line for line in run if line[0] != "t1"]),
    "extra_queries": lambda qrels, run: qrels.__setitem__(slice(None), [line for line in qrels if line[0] != "t1"]),
    "queries_without_relevant": lambda qrels, run: [line.__setitem__(3, "0") for line in qrels if line[0] == "t2"],
    "tied_scores": without_scores,
    "short_rankings": lambda qrels, run: run.__delitem__(slice(12, 60)),
}


@pytest.mark.parametrize("code", ["", *RUNS])
def test_a_defect_of_a_run_is_found_and_nothing_else(code, tmp_path, capsys):
    qrels, run = rankings()
    if code:
        RUNS[code](qrels, run)
    paths = [tmp_path / "qrels.txt", tmp_path / "run.txt"]
    for path, lines in zip(paths, (qrels, run), strict=True):
        path.write_text("\n".join(map(" ".join, lines)) + "\n")
    report = check_run(*paths)
    assert set(report.codes) == ({code} if code else set())
    assert main(["check", "--trec", *map(str, paths)]) == report.exit_code()
    assert capsys.readouterr().out.strip() == report.to_text().strip()


def test_ids_that_would_be_the_same_are_said_to_be(tmp_path):
    qrels, run = rankings()
    for line in run:
        line[0] = f"topic-00{line[0][1:]}"
    paths = [tmp_path / "qrels.txt", tmp_path / "run.txt"]
    for path, lines in zip(paths, (qrels, run), strict=True):
        path.write_text("\n".join(map(" ".join, lines)) + "\n")
    assert "the same but for what stands ahead of the number" in check_run(*paths).findings[0].says


# ------------------------------------------------------------------------------------------------------------- the report


def test_exit_codes(capsys, tmp_path):
    """0 without errors, 1 with them or with --strict where there are warnings, 2 for what cannot be carried out."""
    data = clean(3)
    paths = [str(path) for path in written(tmp_path, data)[:2]]
    assert main(["check", *paths, "--strict"]) == 0
    data.found.append(dict(data.found[0], bbox=[1, 1, 0, 5]))
    written(tmp_path, data)
    assert main(["check", *paths]) == 0
    assert main(["check", *paths, "--strict"]) == 1
    capsys.readouterr()
    for words in ([], ["a", "b", "c"], ["--trec", "a"], ["--schema", "a"], ["--schema", "a", "--trec", "b", "c"]):
        assert main(["check", *words]) == 2
    assert main(["check", "--trec", "a", "b", "--train", "c"]) == 2
    assert main(["check", "--codes", "--format", "html"]) == 2
    assert capsys.readouterr().err.count("detmap: error: ") == 7


def test_every_format_shows_the_same_findings(capsys, tmp_path):
    out = tmp_path / "out.json"
    shown = {}
    for form in ("table", "json", "csv", "markdown", "html"):
        main(["check", TRUTH, FOUND, "--format", form, "--out", str(out)])
        shown[form] = capsys.readouterr().out
    report = check(TRUTH, FOUND)
    assert json.loads(shown["json"]) == json.loads(out.read_text()) == report.to_dict()
    assert report.codes
    for text in shown.values():
        assert all(code in text for code in report.codes)
    assert len(shown["csv"].splitlines()) == 1 + len(report.findings)
    assert len(report.statistics()) == 7


class Tags(html.parser.HTMLParser):
    """The tags of a page, and whether each is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in ("br", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "rect":
            assert self.open.pop() == tag


def test_names_of_a_hostile_file_stay_text(tmp_path, capsys):
    """Neither markup in HTML, nor control characters on a terminal, nor more than a line each."""
    data = clean(3)
    data.truth["categories"].append({"id": 999, "name": "<script>alert(1)</script>\x1b[31m\n\"'&"})
    data.truth["images"].append({**data.truth["images"][0], "id": 77})
    data.truth["images"][0]["file_name"] = data.truth["images"][-1]["file_name"] = "<img src=x onerror=alert(1)>"
    report = report_of(tmp_path, data)
    assert {"categories_without_objects", "same_image_twice"} <= set(report.codes)
    tags = Tags()
    tags.feed(report.to_html())
    assert not tags.open
    assert tags.seen <= {"section", "h2", "div", "dl", "dt", "dd", "strong", "code", "br", "table", "thead", "tbody", "tr",
                         "th", "td", "svg", "rect"}  # fmt: skip
    for text in (report.to_text(), report.to_markdown(), report.to_html()):
        assert "\x1b" not in text
    assert "<script>" not in report.to_markdown() + report.to_html()


def test_codes_are_listed(capsys):
    for form in ("table", "json", "csv", "markdown"):
        assert main(["check", "--codes", "--format", form]) == 0
        text = capsys.readouterr().out
        assert all(code in text for code in CODES)


def test_a_start_loads_no_checks():
    code = "import detmap.cli, sys; print([m for m in sys.modules if m.startswith('detmap.checks')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


# ------------------------------------------------------------------------------------------------------------- statistics


@pytest.mark.parametrize("mean", [0.1, 1.0, 7.5, 300.0])
def test_the_tail_is_that_of_poissons_distribution(mean):
    for count in (1, 2, int(mean) + 1, int(mean + 4 * math.sqrt(mean)) + 1):
        assert tail(count, mean) == pytest.approx(stats.poisson.sf(count - 1, mean), rel=1e-9)
        assert tail(count // 20, 2 * mean) == pytest.approx(stats.poisson.sf(count // 20 - 1, 2 * mean), rel=1e-9)
    assert tail(22, 1265.0) == 1.0  # the probability of 22 alone is too small for a float
    assert tail(0, mean) == 1.0
    assert tail(100_000, mean) == 0.0
    assert tail(3, 0.0) == 0.0


@pytest.mark.parametrize(("size", "share"), [(2.0, 0.4), (5.0, 0.6), (0.8, 0.3)])
def test_the_chance_of_no_detection_is_told_from_images_that_have_some(size, share):
    """Of draws from a negative binomial distribution, from which zeros were taken, about their share is told."""
    counts = np.random.default_rng(1).negative_binomial(size, share, 50_000)
    assert chance_of_none(counts[counts > 0]) == pytest.approx(np.mean(counts == 0), abs=0.08)
    assert chance_of_none(np.array([], np.int64)) == 0.0
    assert chance_of_none(np.full(50, 40)) < 0.05


def test_a_figure_holds_every_value_once():
    for values in ([3.0], [0.0, 1, 1, 2], np.random.default_rng(0).lognormal(size=500), [np.nan, 1.0, np.inf]):
        for log in (False, True):
            made = figure_of("values", np.array(values), log=log)
            assert sum(made.bars) == made.count == np.isfinite(values).sum()
            assert len(made.edges) == len(made.bars) + 1
            assert made.low <= made.quarter <= made.median <= made.three_quarters <= made.high
            assert len(made.plot()) == len(made.bars)
    assert figure_of("values", np.array([])) is None


# --------------------------------------------------------------------------------------------------------------- real data

#: What each real set has, looked at one by one: all of it is true.
REAL = {
    ("coco/instances_val2014_100.json", "coco/instances_val2014_fakebbox100_results.json"): {
        "categories_without_detections",  # pizza
        "categories_without_objects",
        "copied_boxes",  # these results were made of the ground truth
        "images_without_detections",  # image 1063
        "wrong_labels",  # of which one in ten was given another category
    },
    ("coco/instances_val2014_100.json", "coco/instances_val2014_fakesegm100_results.json"): {
        "categories_without_detections",
        "categories_without_objects",
        "images_without_detections",
        "wrong_labels",
    },
    ("coco/instances_val2017_COCO-MINI.json", "segm_mini/synthetic_segm_results.json"): {
        "area_misfits",  # a crowd of area 31,275, with a mask of 25,630 pixels and a box of 76,380
        "categories_without_objects",
        "duplicate_detections",  # 11 boxes of masks with as many pixels are there twice; of two the pixels are others
        "quantised_scores",  # three decimals
        "wrong_labels",  # these results were relabelled at random
    },
    ("keypoints_mini/person_keypoints_val2017_COCO-MINI.json", "keypoints_mini/synthetic_keypoints_results.json"): {
        "images_without_objects",  # 40 of 79 hold nobody
        "outside_keypoints",
        "quantised_scores",
    },
    ("keypoints_fce/gt_dataset.json", "keypoints_fce/dt_dataset.json"): {"beyond_cap", "quantised_scores"},
    ("crowdpose/crowdpose_val_500.json", "crowdpose/synthetic_results_500.json"): {
        "foreign_fields",
        "keypoint_counts",  # CrowdPose counts other points
        "outside_keypoints",
        "quantised_scores",
    },
    ("crowdpose/example_crowdpose_val.json", "crowdpose/example_crowdpose_preds.json"): {
        "foreign_fields",
        "keypoint_counts",
        "logit_scores",  # up to 1.79
        "outside_keypoints",
    },
    ("lvis_val_100/lvis_val_100.json", "lvis_val_100/synthetic_segm_results.json"): {
        "categories_without_detections",
        "categories_without_objects",
        "duplicate_detections",
        "foreign_fields",
        "masks_off_boxes",  # two images whose masks are turned by 90 degrees, and their boxes are not
        "missing_labels",  # detections of categories that LVIS does not label everywhere
        "quantised_scores",
        "wrong_labels",
    },
    ("voc2007/pascal_test2007.json", None): set(),
    ("voc2007/Annotations.tar.gz", "voc2007/detections_a.tar.gz"): {
        "beyond_cap",
        "outside_boxes",  # this detector does not clip
        "quantised_scores",  # six decimals, most of them small
        "rarely_labelled",  # 29 of the surest of potted plants, which stand in the background
    },
}


@pytest.mark.real_data
@pytest.mark.parametrize("paths", REAL, ids=lambda paths: Path(paths[1] or paths[0]).stem)
def test_real_sets_have_these_findings_and_no_others(paths):
    if not REAL_DATA.is_dir():
        pytest.skip(f"{REAL_DATA} is absent")
    truth, found = (None if path is None else REAL_DATA / path for path in paths)
    assert set(check(truth, found).codes) == REAL[paths]


def test_cocos_dictionary_and_list_are_checked_as_their_files():
    truth, results = (ROOT / "fixtures" / "coco" / name for name in ("ground_truth.json", "detections.json"))
    document, records = json.loads(truth.read_text()), json.loads(results.read_text())
    assert detmap.check(document, records).to_dict() == detmap.check(truth, results).to_dict()
    assert detmap.check(detmap.read(truth), records).to_dict() == detmap.check(detmap.read(truth), results).to_dict()
    schema = detmap.check(document, records, schema=True)
    assert schema.to_dict() == detmap.check(truth, results, schema=True).to_dict()
    assert {one.code for one in detmap.check(document, train=document).findings} >= {"leakage"}
    records[3]["score"] = "high"  # which reading refuses
    made = detmap.check(document, records)
    assert [one.records for one in made.findings if one.code == "bad_values"] == [(3,)]
    of_arrays = [{**one, "bbox": np.array(one["bbox"]), "category_id": np.int64(one["category_id"])} for one in records]
    assert detmap.check(document, of_arrays).to_dict() == made.to_dict()
    with pytest.raises(InputError, match="detections: cannot be written as JSON: object is no value of JSON"):
        detmap.check(document, [{"score": object()}])
