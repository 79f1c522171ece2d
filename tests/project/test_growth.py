"""What detmap grows by from outside, through all that scores: a kind of shape, and a protocol, each in one file."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import naive
import numpy as np
import pytest
import workloads
from growth import circles, circles_kernels, clutter, lenient, records
from growth.rules import AREAS, ON_COCO, PROTOCOL
from support import assert_same_result

import detmap
from detmap import batch
from detmap.detection.protocols import PRESETS
from detmap.errors import InputError, OptionError, StateError
from detmap.shapes import find

pytestmark = pytest.mark.plugins("circles", "clutter", "lenient", "records")


def scene(seed, images=4, objects=12, detections=60, start=0):
    """Made-up circles, ground truth and detections: many touch, some are crowds."""
    rng = np.random.default_rng(seed)
    truth = np.column_stack([rng.uniform(0, 150, (images * objects, 2)), rng.uniform(4, 40, images * objects)])
    near = truth.reshape(images, objects, 3)[:, rng.integers(0, objects, detections)]
    found = (near + rng.normal(0, 4, near.shape)).reshape(-1, 3)
    found[:, 2] = np.abs(found[:, 2]) + 1
    return (
        {
            "image_ids": np.repeat(np.arange(images), objects) + start,
            "category_ids": rng.integers(1, 3, len(truth)),
            "shapes": {"circle": circles.Circles.of(truth)},
            "crowd": rng.random(len(truth)) < 0.1,
            "images": np.arange(images) + start,
            "categories": [1, 2],
        },
        {
            "image_ids": np.repeat(np.arange(images), detections) + start,
            "category_ids": rng.integers(1, 3, len(found)),
            "shapes": {"circle": circles.Circles.of(found)},
            "scores": rng.integers(0, 30, len(found)) / 30,
        },
    )


def tables(truth, found):
    return detmap.GroundTruth.from_arrays(**truth), detmap.Detections.from_arrays(**found)


def disc_ious(detections, ground_truth, crowd):
    """Overlaps of all pairs, with the kernel's own arithmetic: what is tested is which pairs it comes to."""
    out = np.empty(len(detections) * len(ground_truth))
    left, right = (axis.ravel() for axis in np.indices((len(detections), len(ground_truth))))
    circles_kernels.overlaps(
        *(circles.Circles.of(side).table for side in (detections, ground_truth)), left, right, crowd[right], out
    )
    return out.reshape(len(detections), len(ground_truth))


def expected_outcomes(truth, found, iou, low, high):
    """Outcome and ground truth of every detection within the cap, and the missed objects, in plain Python."""
    outcomes, missed = {}, set()
    own, sought = (side["shapes"]["circle"] for side in (found, truth))
    groups = defaultdict(lambda: ([], []))
    for which, side in enumerate((found, truth)):
        for row, key in enumerate(zip(side["image_ids"].tolist(), side["category_ids"].tolist(), strict=True)):
            groups[key][which].append(row)
    for dts, gts in groups.values():
        dts = [dts[i] for i in naive.by_score(found["scores"][dts])][: PROTOCOL.max_dets[-1]]
        crowd, areas = truth["crowd"][gts], sought.areas()[gts]
        skip = crowd | (areas < low) | (areas > high)
        ious = disc_ious(own.table[dts], sought.table[gts], crowd)
        matched = naive.coco_match_cell(ious, found["scores"][dts], skip, crowd, [iou])[0][0]
        for d, g, area in zip(dts, matched.tolist(), own.areas()[dts], strict=True):
            outside = detmap.MISS if low <= area <= high else detmap.IGNORED
            outcomes[d] = (outside, -1) if g < 0 else (detmap.IGNORED if skip[g] else detmap.HIT, gts[g])
        missed |= {g for i, g in enumerate(gts) if not skip[i] and i not in matched.tolist()}
    return outcomes, sorted(missed)


def test_the_toys_are_small():
    for module in (circles, circles_kernels, clutter, lenient, records):
        assert len(Path(module.__file__).read_text().splitlines()) <= 80


def test_the_toy_knows_discs():
    pairs = disc_ious(
        np.array([[0, 0, 2], [0, 0, 1]]), np.array([[0, 0, 1], [9, 0, 1], [1, 0, 1]]), np.array([False, False, True])
    )
    assert pairs[0].tolist() == [0.25, 0.0, 0.25]
    assert pairs[1, 0] == 1.0
    assert pairs[1, 2] == pytest.approx((2 * np.pi / 3 - np.sqrt(3) / 2) / np.pi)


@pytest.mark.parametrize("seed", range(4))
def test_match_pairs_of_circles_equals_the_twin_and_the_tally(seed):
    truth, found = scene(seed)
    tally = detmap.match(*tables(truth, found), PROTOCOL)
    rows = np.lexsort((tally.rank, tally.category, tally.image))
    for a, (area, low, high) in enumerate(AREAS):
        for t, iou in enumerate(PROTOCOL.iou_thresholds):
            matches = detmap.match_pairs(*tables(truth, found), PROTOCOL, iou=iou, area=area)
            outcomes, missed = expected_outcomes(truth, found, iou, low, high)
            got = zip(matches.outcome.tolist(), matches.ground_truth.tolist(), strict=True)
            assert dict(zip(matches.detection.tolist(), got, strict=True)) == outcomes
            assert matches.missed.tolist() == missed
            hit, ignored = (tally.bit(words, a, t)[rows] for words in (tally.hit, tally.ignored))
            assert matches.outcome.tolist() == np.where(hit, detmap.HIT, 2 * ignored).tolist()
    half = detmap.match_pairs(*tables(truth, found), PROTOCOL)
    assert (half.outcome == detmap.HIT).any()
    boxes = detmap.match_pairs(*tables(truth, found), PROTOCOL, iou_type="bbox")
    assert half.outcome.tolist() != boxes.outcome.tolist()


def test_across_categories_looks_at_circles():
    truth, found = scene(7)
    matches = detmap.match_pairs(*tables(truth, found), PROTOCOL, across_categories=True, floor=0.3)
    counts = ~truth["crowd"]
    ious = disc_ious(found["shapes"]["circle"].table, truth["shapes"]["circle"].table, np.zeros(counts.size, bool))
    for row, d in enumerate(matches.detection.tolist()):
        here = counts & (truth["image_ids"] == found["image_ids"][d])
        own = truth["category_ids"] == found["category_ids"][d]
        for name, wanted in (("same", here & own), ("other", here & ~own)):
            best = np.where(wanted & (ious[d] >= 0.3), ious[d], -1)
            g = int(np.argmax(best)) if best.max() >= 0 else -1
            assert getattr(matches, name)[row] == g
            assert g < 0 or getattr(matches, f"{name}_overlap")[row] == ious[d, g]


def test_evaluate_merge_and_saved_states_of_circles():
    (truth, found), (more_truth, more_found) = scene(1), scene(2, start=100)
    a, b = (detmap.match(*tables(*one), PROTOCOL) for one in ((truth, found), (more_truth, more_found)))
    joined = [
        {
            **{name: np.concatenate([one[name], other[name]]) for name in one if name not in ("shapes", "categories")},
            "shapes": {
                "circle": circles.Circles.of(np.concatenate([x["shapes"]["circle"].table for x in (one, other)]))
            },
        }
        for one, other in ((truth, more_truth), (found, more_found))
    ]
    whole = detmap.evaluate(*tables({**joined[0], "categories": [1, 2]}, joined[1]), PROTOCOL)
    assert 0 < whole["AP"] < 1
    assert_same_result(detmap.DetectionResult(a.merge(b)), whole)
    assert a.merge(b).to_bytes() == whole.tally.to_bytes()
    again = detmap.Tally.from_bytes(a.to_bytes(), PROTOCOL)
    assert again.protocol.iou_type == "circle"
    assert again.to_bytes() == a.to_bytes()
    with pytest.raises(StateError, match="different protocols"):
        a.merge(detmap.match(*tables(more_truth, more_found), PROTOCOL, iou_type="bbox"))


def test_tables_of_circles_are_scored_as_circles(files):
    truth, found = tables(*scene(1))
    assert truth.kinds == found.kinds == ("circle",)
    expected = detmap.evaluate(truth, found, iou_type="circle")
    assert expected["AP"] != detmap.evaluate(truth, found, iou_type="bbox")["AP"]
    read = detmap.read(files[0], "ground_truth", iou_type="circle")
    for one in ((truth, found), (read, detmap.read(files[1], "detections", ground_truth=read, iou_type="circle"))):
        assert_same_result(detmap.evaluate(*one), expected)
    [scored] = batch.score(truth, [files[1]])
    assert scored.document["metrics"] == metrics_of(expected)
    with pytest.raises(InputError, match="is for the iou_type 'circle', and the protocol 'mine' for 'bbox'"):
        detmap.evaluate(truth, found, dataclasses.replace(PRESETS["coco"], name="mine"))


def test_tables_keep_shapes_through_take_and_pickle():
    truth, found = tables(*scene(3))
    rows = np.arange(len(found))[::-3]
    taken = found.take(rows)
    assert np.array_equal(taken.shapes["circle"].table, found.shapes["circle"].table[rows])
    assert np.array_equal(taken.boxes, found.boxes[rows])
    assert np.array_equal(taken.images.values[taken.images.codes], found.images.values[found.images.codes][rows])
    some = truth.take(truth.crowd)
    assert some.crowd.all()
    assert len(some) == len(some.shapes["circle"]) == truth.crowd.sum() > 0
    assert some.images.values.tolist() == truth.images.values.tolist()
    again = pickle.loads(pickle.dumps(found))
    assert not again.shapes["circle"].table.flags.writeable
    assert not again.boxes.flags.writeable
    few = detmap.GroundTruth.from_arrays(image_ids=[2], category_ids=[1], boxes=[[0, 0, 9, 9]])
    kept = found.on_images_of(few, unknown="ignore")
    assert np.array_equal(kept.shapes["circle"].table, found.shapes["circle"].table[kept_rows(found, 2)])


def kept_rows(found, image):
    return found.images.values[found.images.codes] == image


def test_shapes_that_cannot_be():
    truth, found = scene(4)
    with pytest.raises(OptionError, match=r"unknown iou_type 'hexagon'; one of: bbox, .*circle"):
        dataclasses.replace(PROTOCOL, iou_type="hexagon")
    with pytest.raises(OptionError, match="unknown iou_type"):
        find("hexagon")
    short = {**found, "shapes": {"circle": found["shapes"]["circle"].take(np.arange(3))}}
    with pytest.raises(InputError, match=r"shapes\['circle'\].*3 shapes for 240 records"):
        detmap.Detections.from_arrays(**short)
    with pytest.raises(InputError, match="expected a Circles"):
        detmap.Detections.from_arrays(**{**found, "shapes": {"circle": np.zeros((240, 3))}})
    boxes = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]], scores=[1])
    with pytest.raises(InputError, match="no shapes of the kind 'circle' here, only: bbox"):
        detmap.evaluate(detmap.GroundTruth.from_arrays(**truth), boxes, PROTOCOL)


@pytest.mark.parametrize("split", [1, 3])
def test_the_evaluator_takes_circles(split):
    """Image by image, in evaluators that are saved, loaded and merged: the result is that of the tables at once."""
    truth, found = scene(6)
    expected = detmap.evaluate(*tables(truth, found), ON_COCO)
    evaluators = [detmap.Evaluator(ON_COCO, categories=[1, 2]) for _ in range(split)]
    for image in truth["images"].tolist():
        own, objects = (side["image_ids"] == image for side in (found, truth))
        evaluators[image % split].update(
            {
                "circles": found["shapes"]["circle"].table[own],
                "scores": found["scores"][own],
                "labels": found["category_ids"][own],
            },
            {
                "circles": truth["shapes"]["circle"].table[objects],
                "labels": truth["category_ids"][objects],
                "iscrowd": truth["crowd"][objects],
            },
            image_ids=image,
        )
    first, *others = (detmap.Evaluator.from_bytes(one.to_bytes(), ON_COCO) for one in evaluators)
    for other in others:
        first.merge(other)
    result = first.compute()
    assert 0 < result["AP"] < 1
    assert_same_result(result, expected)


# ------------------------------------------------------------------------------------------------------ files, commands

TESTS = Path(__file__).resolve().parents[1]


def write_scene(folder, seed, start=0):
    """Write ground truth and detections as files of the toy format; return their paths."""
    paths = []
    for name, side in zip(("truth", "found"), scene(seed, start=start), strict=True):
        found = {key: np.asarray(column).tolist() for key, column in side.items() if key != "shapes"}
        found["circles"] = side["shapes"]["circle"].table.tolist()
        paths.append(folder / f"{name}{seed}.circles")
        paths[-1].write_text(json.dumps(found))
    return paths


def command(*words):
    """Run a command in a process that knows nothing of the toys but where they are."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])}
    words = [sys.executable, "-m", "detmap", *map(str, words)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def metrics_of(result):
    """The metrics as JSON has them."""
    return json.loads(result.to_json())["metrics"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_scene(tmp_path_factory.mktemp("circles"), 1)


def test_batch_reads_and_scores_circles(files):
    expected = detmap.evaluate(*tables(*scene(1)), ON_COCO)
    [found] = batch.score(files[0], [files[1]], ON_COCO)
    assert found.error is None
    assert found.document["metrics"] == metrics_of(expected)
    assert found.entry.name == "found1"
    assert batch.find([files[1].parent])[0].name == "found1"


def test_shards_of_circles_are_the_whole(tmp_path):
    (truth, found), (more_truth, more_found) = (write_scene(tmp_path, seed, 100 * seed) for seed in (1, 2))
    both = [json.loads(path.read_text()) for path in (truth, more_truth)]
    joined = {name: both[0][name] if name == "categories" else both[0][name] + both[1][name] for name in both[0]}
    (tmp_path / "both.circles").write_text(json.dumps(joined))
    whole = batch.evaluate_shards(tmp_path / "both.circles", [found, more_found], ON_COCO)
    parts = [
        batch.evaluate_shards(one, [path], ON_COCO).tally for one, path in ((truth, found), (more_truth, more_found))
    ]
    assert 0 < whole["AP"] < 1
    assert_same_result(detmap.DetectionResult(parts[0].merge(parts[1])), whole)


def test_a_format_says_what_it_holds(files):
    [found] = batch.score(detmap.GroundTruth.from_arrays(**scene(1)[0], kinds=["bbox"]), [files[1]])
    assert "a file of the format circles holds circle, not bbox" in found.error


@pytest.mark.slow
@pytest.mark.compiled
def test_the_command_line_takes_the_toy_kind(files):
    plugin = ("--plugin", "growth.circles", "--iou-type", "circle")
    expected = detmap.evaluate(*tables(*scene(1)), ON_COCO)
    done = command("eval", *files, *plugin, "--format", "json", "--quiet")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"] == metrics_of(expected)
    done = command("eval", *files, "--quiet")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    done = command("eval", *files, "--quiet", "--iou-type", "circle")
    assert done.stderr.startswith("detmap: error: unknown iou_type 'circle'; one of: bbox, segm, keypoints, boundary")
    done = command("batch", *files, *plugin, "--format", "json", "--quiet")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["models"][0]["metrics"] == metrics_of(expected)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::DeprecationWarning")
def test_a_dask_worker_scores_circles(tmp_path, monkeypatch, files):
    """The worker has not heard of the toys before a task of theirs comes."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    monkeypatch.chdir(tmp_path)
    expected = metrics_of(detmap.evaluate(*tables(*scene(1)), ON_COCO))
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(processes=True, local_directory=str(tmp_path), **options) as cluster:
        scheduler = ("--scheduler", cluster.scheduler_address, "--format", "json", "--quiet")
        done = command("batch", *files, "--plugin", "growth.circles", "--iou-type", "circle", *scheduler)
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["models"][0]["metrics"] == expected
        sharded = ("--sharded", "--plugin", "growth.circles", "--iou-type", "circle")
        done = command("eval", *files, *sharded, *scheduler)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["metrics"] == expected


# --------------------------------------------------------------------------------------------------- the toy protocol


def test_the_toy_protocol_is_what_its_decisions_are():
    """By its name, by its decisions given one by one, through the evaluator, merged, and from a saved state."""
    dataset, results = workloads.make_coco(5, images=8)
    truth = detmap.read_coco(dataset)
    found = detmap.read_coco_results(results, truth)
    named = detmap.evaluate(truth, found, "lenient")
    assert_same_result(detmap.evaluate(truth, found, lenient.LENIENT), named)
    assert 0 < named["AP"] < 1
    assert named["AP"] != detmap.evaluate(truth, found)["AP"]
    halves = [truth.images.values[part::2] for part in (0, 1)]
    parts = [detmap.match(truth, found, "lenient", image_ids=half) for half in halves]
    assert_same_result(detmap.DetectionResult(parts[0].merge(parts[1])), named)
    assert detmap.Tally.from_bytes(named.tally.to_bytes(), lenient.LENIENT).to_bytes() == named.tally.to_bytes()


def test_the_evaluator_takes_the_toy_protocol():
    """File order is the order of images there: so it is in the table that it is compared with."""
    dataset, results = workloads.make_coco(6, images=8)
    images = sorted(image["id"] for image in dataset["images"])
    results = sorted(results, key=lambda one: one["image_id"])
    truth = detmap.read_coco(dataset)
    expected = detmap.evaluate(truth, detmap.read_coco_results(results, truth), "lenient")
    evaluators = [detmap.Evaluator("lenient", box_format="xywh") for _ in range(2)]
    for i, image in enumerate(images):
        own = [one for one in results if one["image_id"] == image]
        objects = [one for one in dataset["annotations"] if one["image_id"] == image]
        evaluators[i % 2].update(
            {
                "boxes": [one["bbox"] for one in own],
                "scores": [one["score"] for one in own],
                "labels": [one["category_id"] for one in own],
            },
            {
                "boxes": [one["bbox"] for one in objects],
                "labels": [one["category_id"] for one in objects],
                "area": [one["area"] for one in objects],
                "iscrowd": [one["iscrowd"] or 0 for one in objects],
            },
            image_ids=image,
        )
    first, second = (detmap.Evaluator.from_bytes(one.to_bytes(), lenient.LENIENT) for one in evaluators)
    assert first.merge(second).compute()["AP"] == expected["AP"]


@pytest.mark.compiled
def test_the_command_line_takes_the_toy_protocol_by_module_and_by_path(tmp_path):
    dataset, results = workloads.make_coco(5, images=8)
    paths = [tmp_path / "truth.json", tmp_path / "found.json"]
    for path, content in zip(paths, (dataset, results), strict=True):
        path.write_text(json.dumps(content))
    truth = detmap.read_coco(dataset)
    expected = metrics_of(detmap.evaluate(truth, detmap.read_coco_results(results, truth), "lenient"))
    for plugin in ("growth.lenient", TESTS / "growth" / "lenient.py"):
        done = command("eval", *paths, "--plugin", plugin, "--protocol", "lenient", "--format", "json", "--quiet")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["metrics"] == expected
    assert "lenient" in command("protocols", "--plugin", "growth.lenient").stdout


# ------------------------------------------------------------------------------------------------------- a format of files


#: The commands that read ground truth and detections, and where what they say of the metrics is.
COMMANDS = {
    "eval": lambda said: said["metrics"],
    "batch": lambda said: said["models"][0]["metrics"],
}


def test_the_toy_format_goes_through_convert_eval_and_batch(tmp_path, monkeypatch, capsys):
    """Into it and out of it again, with a line for what it cannot hold; its numbers are those of the file it came from."""
    from detmap.cli import main

    dataset, results = workloads.make_coco(4, images=6, unknown_categories=False)
    monkeypatch.chdir(tmp_path)
    for name, content in (("truth.json", dataset), ("found.json", results)):
        Path(name).write_text(json.dumps(content))
    crowds = detmap.read("truth.json", "ground_truth").crowd.sum()
    assert crowds
    words = ["--plugin", "growth.records", "--quiet", "--format", "json"]
    for name in ("truth", "found"):
        assert main(["convert", f"{name}.json", f"{name}.records", *words]) == 0
        made = json.loads(capsys.readouterr().out)
        assert made["format"] == "records"
        assert {code: made["lost"][code] for code in made["lost"] if code != "areas"} == (
            {"crowd": crowds} if name == "truth" else {}
        )
        assert main(["convert", f"{name}.records", f"{name}.csv", *words]) == 0
        assert made["written"] == len({"truth": dataset["annotations"], "found": results}[name])
        assert json.loads(capsys.readouterr().out)["written"] == made["written"]
    values = []
    for ending in ("records", "csv"):
        assert main(["eval", f"truth.{ending}", f"found.{ending}", *words]) == 0
        values.append(json.loads(capsys.readouterr().out)["metrics"])
    assert values[0] == values[1]
    assert 0 < values[0]["AP"] < 1
    for command in COMMANDS:
        assert main([command, "truth.records", "found.records", *words]) == 0
        assert COMMANDS[command](json.loads(capsys.readouterr().out)) == values[0], command


def test_the_toy_format_takes_what_others_write(tmp_path, monkeypatch, capsys):
    """Corners become sizes, ids are integers where the ground truth's are, and what is wrong is one line."""
    from detmap.cli import main

    monkeypatch.chdir(tmp_path)
    Path("corners.csv").write_text("image,category,score,x1,y1,x2,y2\n7,1,0.5,10.0,10.0,30.0,40.0\n")
    words = ["--plugin", "growth.records", "--quiet", "--format", "json"]
    assert main(["convert", "corners.csv", "found.records", *words]) == 0
    assert json.loads(capsys.readouterr().out)["lost"] == {"corners": 1}
    truth = detmap.GroundTruth.from_arrays(image_ids=[7], category_ids=[1], boxes=[[10, 10, 20, 30]])
    found = detmap.read("found.records", "detections", ground_truth=truth)
    assert found.boxes.tolist() == truth.boxes.tolist()
    for text in ("1@7 0.5 1 2 x 4", "1@7 0.5 1 2 3", "1@7 0.5 1 2 -3 4"):
        Path("wrong.records").write_text(text)
        with pytest.raises(InputError, match=r"wrong\.records"):
            detmap.read("wrong.records", "detections", ground_truth=truth)
    assert len(detmap.read("wrong.records", "detections", ground_truth=truth, invalid_boxes="drop")) == 0
    Path("empty.records").write_text("")
    assert main(["convert", "empty.records", "none.csv", *words]) == 0


@pytest.mark.parametrize("part", ["sniff", "tell", "read_detections", "write_detections"])
def test_whatever_a_format_from_outside_fails_with_is_one_line(part, tmp_path, monkeypatch, capsys):
    from detmap.cli import main
    from detmap.formats.registry import FORMATS

    def fails(*_):
        raise KeyError("of its own")

    (tmp_path / "found.records").write_text("1@7 0.5 1 2 3 4")
    broken = dataclasses.replace(records.FORMAT, **{part: fails})
    monkeypatch.setitem(FORMATS, "records", broken)
    assert main(["convert", str(tmp_path / "found.records"), str(tmp_path / "again.records")]) == 2
    said = capsys.readouterr().err
    assert "the format records, of a plug-in, fails with KeyError: \"'of its own'\"" in said
    assert said.count("\n") == 1


def test_the_toy_format_is_checked(tmp_path, capsys):
    """Through the registry: the checks name no format."""
    from detmap.cli import main

    lines = [f"cat@{image}.jpg 10 10 {30 + image} 20" for image in range(40)]
    (tmp_path / "truth.records").write_text("\n".join(lines))
    found = [f"cat@{image + 1}.jpg 0.{9 - image % 7}{image} 10 10 {30 + image} 20" for image in range(40)]
    (tmp_path / "found.records").write_text("\n".join([*found, found[0]]))
    paths = [str(tmp_path / name) for name in ("truth.records", "found.records")]
    assert main(["check", *paths, "--plugin", "growth.records", "--format", "json"]) == 1
    codes = {one["code"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert codes["unknown_images"]["records"] == ["40.jpg"]
    assert codes["duplicate_detections"]["count"] == 1


# ----------------------------------------------------------------------------------------------------------------- diagnoses


def test_a_part_from_outside_is_one_of_every_diagnosis():
    """Also of circles, a kind of shape from outside."""
    diagnosis = detmap.diagnose(*tables(*scene(1)), PROTOCOL)
    found = diagnosis.clutter(most=3)
    assert isinstance(found["worst recall"], float)
    assert sum(row["hits"] for row in found.rows()) == int((diagnosis.matches.outcome == detmap.HIT).sum())
    assert diagnosis.to_dict()["parts"]["clutter"] == diagnosis.clutter().to_dict()
    assert clutter.CLUTTER.says in str(detmap.diagnostics.PARTS["clutter"])
    assert 0 < diagnosis.tide()["AP"] < 1


@pytest.mark.slow
@pytest.mark.compiled
def test_the_command_line_takes_the_toy_part(tmp_path):
    folder = TESTS.parent / "fixtures" / "coco"
    files = (folder / "ground_truth.json", folder / "detections.json")
    done = command(
        "diagnose", *files, "--plugin", "growth.clutter", "--parts", "clutter", "--quiet", "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    truth = detmap.read_coco(files[0])
    diagnosis = detmap.diagnose(truth, detmap.read_coco_results(files[1], truth))
    expected = json.loads(diagnosis.clutter().to_json())
    assert json.loads(done.stdout)["parts"] == {"clutter": expected}
    done = command(
        "report", *files, "--plugin", "growth.clutter", "--bootstrap", 0, "--out", tmp_path / "a.html", "--quiet"
    )
    assert done.returncode == 0, done.stderr
    assert "Whether crowded images fare worse" in (tmp_path / "a.html").read_text("utf-8")
    done = command("diagnose", *files, "--parts", "clutter", "--quiet")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "unknown part 'clutter'; one of: tide, confusion" in done.stderr
