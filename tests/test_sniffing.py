"""What fits two formats, or the other side: a line that says so and the flag that decides, and no silent choice."""

from __future__ import annotations

import json

import pytest

import detmap
from detmap.errors import InputError

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
