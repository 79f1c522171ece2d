"""What fits two formats, or the other side: a line that says so and the flag that decides, and no silent choice."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest
from support import assert_same_result

import detmap
from detmap import batch
from detmap.errors import InputError
from detmap.formats import registry
from detmap.formats.coco.inspection import kinds_in
from detmap.formats.coco.salvage import salvage
from detmap.formats.inputs import Input
from detmap.reading.opening import Held

RECORD = '{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}'


def put(folder, **files):
    """Write files, whose names end in .txt, and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("line", "role", "problem"),
    [
        ("0 .5 .5 .2 .2", "detections", r"looks like ground truth \(format yolo\) where detections was expected"),
        ("cat 10 20 100 200", "detections", r"looks like ground truth \(format text\) where detections was expected"),
        (
            "cat .9 10 20 100 200",
            "ground_truth",
            r"looks like detections \(format text\) where ground truth was expected",
        ),
        ("0 .5 .5 .2 .2 .9", "ground_truth", r"is the sixth a score\? Then these are detections"),
        ("what else 1 2", "detections", r"are not known to be those of any format; say which it is: .*--dt-format"),
    ],
)
def test_folders_of_text_for_the_other_side_are_said_to_be_so(line, role, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        detmap.read(put(tmp_path / "given", a=line + "\n"), role, image_sizes="64x48")


def test_a_file_of_text_is_no_broken_json(tmp_path):
    put(tmp_path, list="000001\n000002\n", label="0 .5 .5 .2 .2\n", images="images/a.jpg\nimages/b.jpg\n")
    for role, flag in (("ground_truth", "--gt-format"), ("detections", "--dt-format")):
        for name in ("list", "label"):
            with pytest.raises(InputError, match=rf"is text of no format that is known by its lines.*{flag}"):
                detmap.read(tmp_path / f"{name}.txt", role)
    with pytest.raises(InputError, match=r"looks like ground truth \(format yolo\)"):
        detmap.read(tmp_path / "images.txt", "detections")


def test_records_a_line_are_read_whatever_the_file_is_called(tmp_path):
    """One record is no list of them, and an object that holds a list is none of lines."""
    expected = detmap.read_coco_results(f"[{RECORD}, {RECORD}]".encode())
    for name in ("found.json", "found.txt", "found"):
        (tmp_path / name).write_text(f"{RECORD}\n{RECORD}\n")
        table = detmap.read(tmp_path / name, "detections", format="coco")
        assert table.boxes.tolist() == expected.boxes.tolist()
    (tmp_path / "one.json").write_text(RECORD)
    with pytest.raises(InputError, match="is not a list of detections but an object"):
        detmap.read(tmp_path / "one.json", "detections")
    (tmp_path / "within.json").write_text(json.dumps({"annotations": [json.loads(RECORD)]}) + "\n")
    assert len(detmap.read(tmp_path / "within.json", "detections")) == 1


@pytest.mark.parametrize("length", [4_000, 4_096, 5_000, 1_000_000])
def test_the_first_of_records_a_line_may_be_long(length, tmp_path):
    """It is read up to its line feed, by every reader of such files."""
    long = json.dumps({"note": "x" * length, **json.loads(RECORD)})
    for name in ("found.json", "found.json.gz"):
        text = f"{long}\n{RECORD}\n".encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        assert len(detmap.read(tmp_path / name, "detections")) == 2
    assert Input(tmp_path / "found.json").role == "detections"
    assert salvage(tmp_path / "found.json", "detections", ["bbox"], None) is not None
    shape = RECORD.replace("}", ', "keypoints": [1, 2, 2]}')
    (tmp_path / "found.json").write_text(f"{long}\n{shape}\n")
    assert kinds_in(tmp_path / "found.json") == {"": 2, "keypoints": 1}


def test_a_byte_order_mark_changes_no_format(tmp_path):
    mark = "\N{BYTE ORDER MARK}"
    for name in ("found.txt", "found"):
        (tmp_path / name).write_text(f"{mark}[{RECORD}]", encoding="utf-8")
        assert len(detmap.read(tmp_path / name, "detections")) == 1
    folder = put(tmp_path / "labels", a="")
    (folder / "a.txt").write_text(f"{mark}0 .5 .5 .2 .2 .9\n", encoding="utf-8")
    assert len(detmap.read(folder, "detections", image_sizes="64x48")) == 1


def test_predictions_of_nothing_are_not_called_ground_truth(tmp_path):
    """Files without a line fit either side."""
    folder = put(tmp_path / "run/labels", a="", b="\n")
    with pytest.raises(InputError, match=r"whose lines, if any, are not known .*--dt-format"):
        detmap.read(folder, "detections", image_sizes="64x48")
    assert len(detmap.read(folder, "detections", image_sizes="64x48", format="yolo")) == 0
    put(folder, b="0 .5 .5 .2 .2\n")
    with pytest.raises(InputError, match="are the arguments swapped"):
        detmap.read(folder, "detections", image_sizes="64x48")


def test_judgements_of_several_splits_are_not_chosen_among(tmp_path):
    """BEIR scores the split test; of others none is meant more."""
    from detmap.retrieval import evaluate_run

    (tmp_path / "qrels").mkdir()
    for split in ("dev", "train"):
        (tmp_path / f"qrels/{split}.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    run = {"query_id": ["q"], "doc_id": ["d"], "score": [1.0]}
    with pytest.raises(InputError, match=r"holds 2 files of judgements: dev\.tsv, train\.tsv; give the path"):
        evaluate_run(tmp_path, run)
    (tmp_path / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    assert evaluate_run(tmp_path, run)["mAP"] == 1


#: A file of detections of every format that archives hold, and of ground truth for it.
ARCHIVED = {
    "kitti": ("img.txt", "Car 0 0 0 1 2 30 40 1 1 1 0 0 0 0 0.5\n", "img.txt", "Car 0 0 0 1 2 30 40 1 1 1 0 0 0 0\n"),
    "text": ("img.txt", "cat 0.5 1 2 30 40\n", "img.txt", "cat 1 2 30 40\n"),
    "dota": ("Task1_cat.txt", "img 0.5 1 2 30 2 30 40 1 40\n", "img.txt", "1 2 30 2 30 40 1 40 cat 0\n"),
    "voc": ("comp4_det_test_cat.txt", "img 0.5 1 2 30 40\n", "img.xml", "<annotation><object/></annotation>"),
    "yolo": ("img.txt", "0 0.5 0.5 0.25 0.25 0.5\n", "", ""),
    "thumos14": ("", "", "Diving_test.txt", "video 1 2\n"),
}


@pytest.mark.parametrize("name", ARCHIVED)
@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_an_archive_is_recognised_by_the_files_in_it(name, ending, tmp_path):
    """As a path and as a stream, with files in a folder beside others."""
    for file, content, role in zip(
        ARCHIVED[name][::2], ARCHIVED[name][1::2], ("detections", "ground_truth"), strict=True
    ):
        if not file:
            continue
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as archive:
            for inside, text in (("folder/readme", "\x00\x01"), (f"folder/{file}", content)):
                member = tarfile.TarInfo(inside)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        data = whole.getvalue()
        pack = {"tar": bytes, "tar.gz": gzip.compress}[ending]
        path = tmp_path / f"{role}.{ending}"
        path.write_bytes(pack(data))
        found = registry.recognise(path, role)
        assert found is not None
        assert found.name == name
        assert registry.recognise(Held.of(data, "standard input"), role).name == name
        (tmp_path / f"{role}-cut.{ending}").write_bytes(pack(data[:1200]))
        with pytest.raises(InputError):  # and nothing else
            detmap.read(tmp_path / f"{role}-cut.{ending}", role, image_sizes="64x48")


def test_archives_of_kitti_are_shards(tmp_path):
    fixtures = Path(__file__).parents[2] / "fixtures" / "kitti"
    files = sorted((fixtures / "results" / "data").iterdir())
    for n in range(2):
        with tarfile.open(tmp_path / f"part-{n}.tar", "w") as archive:
            for file in files[n::2]:
                archive.add(file, file.name)
    made = batch.evaluate_shards(fixtures / "label_2", [tmp_path / "part-*.tar"], "kitti")
    assert_same_result(made, detmap.evaluate(fixtures / "label_2", fixtures / "results", "kitti"))
