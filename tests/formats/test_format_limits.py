"""What formats do at either side of their limits, where a small file does not suffice."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from PIL import Image

import detmap
from detmap.errors import InputError
from detmap.formats import nuscenes
from detmap.formats.coco.panoptic import is_panoptic, read_panoptic
from detmap.formats.file_names import resolve_categories
from detmap.formats.image_clusters import suggested
from detmap.formats.image_sizes import size_of_image
from detmap.formats.model_names import brief, distinct
from detmap.reading.options import Reading


def _truth(names, **more):
    ids = list(range(1, len(names) + 1))
    given = {"image_ids": [1], "category_ids": [1], "boxes": [[0, 0, 1, 1]], "categories": ids}
    return detmap.GroundTruth.from_arrays(**given, category_names=dict(zip(ids, names, strict=True)), **more)


def test_a_name_of_two_categories_is_refused_where_it_is_meant():
    truth = _truth(["a", "b", "b"])
    assert resolve_categories(["a", "c", "2"], truth) == [1, 4, 2]
    with pytest.raises(InputError, match=r"field 'name': is the name of more than one category \(got 'b'\)"):
        resolve_categories(["a", "b"], truth)


@pytest.mark.parametrize("kinds", [1, 2, 3, 4])
def test_a_folder_of_other_files_is_described_by_three_kinds(kinds, tmp_path):
    endings = ["log", "toml", "md", "ini"][:kinds]
    for k, ending in enumerate(endings):
        for one in range(k, 4):
            (tmp_path / f"{one}.{ending}").write_text("")
    listed = ["4 .log", "3 .toml", "2 .md"][:kinds]
    others = ", and others" if kinds > 3 else ""
    with pytest.raises(InputError) as caught:
        detmap.read(tmp_path, "ground_truth")
    assert f": holds {', '.join(listed)}{others}, which no format is known by; say which format it is:" in str(
        caught.value
    )


@pytest.mark.parametrize(("last", "good"), [(2**24 - 1, True), (2**24, False)])
def test_ids_of_segments_in_png_have_three_bytes(last, good, tmp_path):
    segment = {"id": last, "category_id": 1}
    document = {"annotations": [{"image_id": 1, "file_name": "1.png", "segments_info": [segment]}]}
    (tmp_path / "a.json").write_text(json.dumps({**document, "categories": [{"id": 1, "isthing": 1}]}))
    (tmp_path / "a").mkdir()
    assert is_panoptic(tmp_path / "a.json")
    if good:
        assert read_panoptic(tmp_path / "a.json").ids.tolist() == [last]
    else:
        with pytest.raises(InputError, match="ids lie from 1 to 16777215"):
            read_panoptic(tmp_path / "a.json")


def test_what_is_no_panoptic_file(tmp_path):
    (tmp_path / "a.json").write_text('["segments_info"]')
    (tmp_path / "b.json").write_text('\\n {"segments": []}')
    assert not any(map(is_panoptic, [tmp_path, tmp_path / "absent", tmp_path / "a.json", tmp_path / "b.json"]))


@pytest.mark.parametrize(("count", "good"), [(500, True), (501, False)])
def test_a_sample_of_nuscenes_has_500_boxes(count, good, tmp_path):
    box = {"translation": [0, 0, 0], "size": [1, 1, 1], "rotation": [1, 0, 0, 0], "velocity": [0, 0]}
    box |= {"sample_token": "s", "detection_name": "car", "detection_score": 0.5, "attribute_name": ""}
    (tmp_path / "a.json").write_text(json.dumps({"meta": {}, "results": {"s": [box] * count}}))
    if good:
        assert len(nuscenes.read_detections(tmp_path / "a.json", None, Reading())) == count
    else:
        with pytest.raises(
            InputError, match=r"sample 's': has 501 boxes, and a submission at most 500; keep those of the"
        ):
            nuscenes.read_detections(tmp_path / "a.json", None, Reading())


@pytest.mark.parametrize("turn", [None, *range(10)])
def test_images_that_are_turned_a_quarter_have_their_sides_exchanged(turn, tmp_path):
    exif = Image.Exif()
    if turn is not None:
        exif[274] = turn
    Image.new("RGB", (3, 7)).save(tmp_path / "a.jpg", exif=exif)
    assert size_of_image(tmp_path / "a.jpg") == ((3, 7) if turn in (5, 6, 7, 8) else (7, 3))


@pytest.mark.parametrize(
    ("names", "count"),
    [
        ([f"{v}_{k}.jpg" for v in "ab" for k in range(3)], 6),
        ([f"{v}_{k}.jpg" for v in "ab" for k in range(2)], 0),
        ([f"a_{k}.jpg" for k in range(9)], 0),
        ([f"{v}_{k}.jpg" for v in "ab" for k in (1, 2, 4)], 0),
        ([f"{v}_{k}.jpg" for v in "ab" for k in (1, 3, 5)], 6),
        ([f"{v}_{k}.jpg" for v in "ab" for k in (1, 1, 2)], 0),
        ([f"{v}_{k}.jpg" for v in "ab" for k in range(12) if k != 7], 22),
        ([f"{v}_{k}.jpg" for v in "ab" for k in range(11) if k != 7], 0),
        ([*(f"{v}_{k}.jpg" for v in "ab" for k in range(3)), *"pqrst"], 6),
        ([*(f"{v}_{k}.jpg" for v in "ab" for k in range(3)), *"pqrstu"], 0),
    ],
)
def test_names_that_look_like_frames_of_videos(names, count):
    ids = list(range(len(names)))
    truth = _truth(["a"], images=ids)
    truth = replace(truth, images=replace(truth.images, names=tuple(names)))
    assert suggested(truth, lambda field: None) == ({"clusters_by_name": count} if count else {})
    videos = {"video_id": dict.fromkeys(ids, 5), "file_name": dict(zip(ids, names, strict=True))}
    assert suggested(truth, videos.get) == {"clusters_by_field:video_id": 1}
    alone = replace(truth, images=replace(truth.images, names=None))
    apart = {**videos, "video_id": {one: one for one in ids}}
    assert suggested(alone, apart.get) == ({"clusters_by_name": count} if count else {})


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        ([], []),
        (["a.json"], ["a"]),
        (["x/a.json", "y/a.json"], ["x/a", "y/a"]),
        (["x/a.json", "x/a.csv"], ["a.json", "a.csv"]),
        (["p/x/a.json", "q/x/a.json", "b.json.gz"], ["p/x/a", "q/x/a", "b"]),
        (["/a.json", "a.csv.zst"], ["a.json", "a.csv.zst"]),
        ([".json"], [".json"]),
    ],
)
def test_names_of_models_are_the_shortest_that_differ(paths, names):
    assert distinct(paths) == names


def test_a_name_that_is_taken_is_made_longer():
    assert distinct(["runs/a.json", "b.json"], taken=["a"]) == ["runs/a", "b"]


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["a" * 20, "b"], ["a" * 20, "b"]),
        (["a" * 21], ["a" * 21]),
        (["a" * 21 + "1", "a" * 21 + "2"], ["…" + "a" * 8 + "1", "…" + "a" * 8 + "2"]),
        (["model_x_" + "e" * 20, "model_y_" + "e" * 20], ["model_x_" + "e" * 8 + "…", "model_y_" + "e" * 8 + "…"]),
        (
            ["p" * 20 + "x" + "e" * 20, "p" * 20 + "yy" + "e" * 20],
            ["…" + "p" * 8 + "x" + "e" * 9 + "…", "…" + "p" * 8 + "yy" + "e" * 8 + "…"],
        ),
        (["x" * 21 + "a", "y" * 21 + "a"], ["x" * 21 + "a", "y" * 21 + "a"]),
    ],
)
def test_long_names_lose_what_all_of_them_have(names, short):
    assert brief(names) == dict(zip(names, short, strict=True))
