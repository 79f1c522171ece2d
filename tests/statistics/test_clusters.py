"""Images in clusters, as the frames of videos: clusters are drawn, exchanged and left out as a whole."""

import json
import math
from pathlib import Path

import large_workloads
import naive_statistics
import numpy as np
import pytest
from support import evaluate, same_bits, tables_of_arrays
from test_intervals_by_the_page import PARAMS, THRESHOLDS, rules, scene

import detmap
from detmap import cli, statistics
from detmap.errors import InputError, OptionError, StateError
from detmap.statistics import clusters as units
from detmap.statistics.bootstrap import replicated


@pytest.fixture(scope="module")
def models():
    """A detector and a worse one on 60 images, six to a video of ten."""
    arrays = large_workloads.detector_like(60, 12, 3, 3)
    low = np.random.default_rng(0).random(720)
    scores = {"a": arrays["dt_scores"], "b": np.where(low < 0.6, 0.001, arrays["dt_scores"])}
    return {name: detmap.evaluate(*tables_of_arrays({**arrays, "dt_scores": own})) for name, own in scores.items()}


def of_six(result):
    """Six neighbours each."""
    return np.arange(result.tally.image_ids.size) // 6


def test_images_that_are_clusters_of_their_own_change_no_bit(models):
    alone = [f"c{image}" for image in range(60)]
    plain, own = (statistics.bootstrap(models["a"], 200, clusters=given) for given in (None, alone))
    for name in ("estimate", "replicates", "jackknife", "support"):
        assert same_bits(getattr(plain, name), getattr(own, name))
    assert (plain.unit, own.unit) == ("images", "clusters")
    plain, own = (
        statistics.permute(models["a"].tally, models["b"].tally, 99, categories=True, clusters=given)
        for given in (None, alone)
    )
    assert same_bits(plain.differences, own.differences)
    assert same_bits(plain.p_values(), own.p_values())
    assert same_bits(plain.interval(), own.interval())


def test_names_of_clusters_do_not_matter(models):
    numbers = of_six(models["a"])
    names = [f"video {9 - number}" for number in numbers]
    by_id = dict(zip(models["a"].tally.image_ids.tolist(), names, strict=True))
    first, *others = (replicated(units.clustered(models["a"].tally, given), 20, 3) for given in (numbers, names, by_id))
    for other in others:
        assert same_bits(first.replicates, other.replicates)
        assert same_bits(first.jackknife, other.jackknife)


def test_ground_truth_hands_its_clusters_on():
    truth, found = tables_of_arrays(large_workloads.detector_like(20, 6, 2, 1))
    of = np.arange(20) // 4
    given = statistics.bootstrap(detmap.evaluate(truth, found), 200, clusters=of)
    made = statistics.bootstrap(detmap.evaluate(truth.with_clusters(of), found), 200)
    assert made.unit == "clusters"
    assert same_bits(made.replicates, given.replicates)
    some = detmap.match(truth.with_clusters(of), found, image_ids=truth.images.ids[4:12])
    assert some.clusters.tolist() == [1] * 4 + [2] * 4
    assert detmap.match(truth.with_clusters(of).with_clusters(None), found).clusters is None


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("unequal", [False, True])
def test_from_the_data_set_to_the_ends(unequal, monkeypatch):
    """Clusters are really duplicated and left out, scored by the naive twin, and the interval is by the page's formulas."""
    monkeypatch.setattr("detmap.statistics.draws.FEWEST_REPLICATES", 50)
    dataset, results = scene(5, 24, 1.0)
    sizes = [1, 2, 2, 3, 5, 11] if unequal else [4] * 6
    cluster = np.repeat(np.arange(6), sizes)
    images = sorted(item["id"] for item in dataset["images"])
    made = statistics.bootstrap(evaluate(dataset, results, PARAMS), 50, 7, clusters=cluster)
    drawn = [naive_statistics.copies(6, 7, r) for r in range(50)]
    without = [[int(place != out) for place in range(6)] for out in range(6)]
    rows = [
        naive_statistics.coco_metrics(
            *naive_statistics.duplicated(dataset, results, [counts[c] for c in cluster]), PARAMS
        )
        for counts in ([1] * 6, *drawn, *without)
    ]
    assert made.estimate.tolist() == pytest.approx(rows[0], rel=1e-12, nan_ok=True)
    replicates, jackknife = rows[1:51], rows[51:]
    ends, shown = made.interval(), 0
    limits = {"small": (0, 1024), "medium": (1024, 9216), "large": (9216, 1e10)}
    for name, column in made.columns.items():
        low, high = limits.get(name.partition("_")[2], (0, 1e10))
        objects = [0] * 6
        for one in dataset["annotations"]:
            objects[cluster[images.index(one["image_id"])]] += low <= one["area"] <= high
        assert made.support[column] == np.count_nonzero(objects)
        if not any(objects):
            continue
        least, last = rules(made, len(THRESHOLDS), 2)[column]
        expected = naive_statistics.interval(
            rows[0][column],
            [row[column] for row in replicates],
            [row[column] for row in jackknife],
            np.count_nonzero(objects),
            least=least,
            last=last,
            fewest=5,
            freedom=naive_statistics.freedom_of_clusters(objects, 6),
        )
        if expected is None:
            assert np.isnan(ends[column]).all()
        else:
            assert ends[column] == pytest.approx(expected, rel=1e-9, abs=0)
            shown += 1
    assert shown >= 4


@pytest.mark.slow
def test_clusters_change_sides_as_a_whole():
    """Every permutation is a real exchange of all images of some clusters."""
    dataset, first = scene(6, 18, 1.0)
    rng = np.random.default_rng(1)
    second = [{**row, "score": float(rng.random())} for row in first]
    cluster, images = np.arange(18) % 6, sorted(item["id"] for item in dataset["images"])
    tallies = [evaluate(dataset, one, PARAMS).tally for one in (first, second)]
    made = statistics.permute(*tallies, 40, categories=True, clusters=cluster)
    assert made.exact.all()  # 2 ** 5, of two that are mirror images one
    assert made.drawn == 32
    columns = [0, *(made.estimate.size - len(made.categories) + k for k in range(len(made.categories)))]
    names = ("AP", "AP of a category")
    expected = []
    for number in range(32):
        swap = [0, *((number >> place) & 1 for place in range(5))]
        one, other = (
            naive_statistics.coco_metrics(dataset, side, PARAMS)
            for side in naive_statistics.exchanged(first, second, images, [swap[c] for c in cluster])
        )
        classes = len(statistics.metric_names(tallies[0].protocol))
        expected.append([other[at] - one[at] for at in (0, *range(classes, classes + len(made.categories)))])
    assert len(columns) == len(expected[0]) == len(names) + len(made.categories) - 1
    assert np.array(expected) == pytest.approx(made.differences, abs=1e-12)
    p = naive_statistics.permutation_p([row[0] for row in expected], expected[0][0], 0)
    assert made.p_value("AP") == p


def test_five_clusters_cannot_tell_and_say_so(models):
    of = np.arange(60) // 12
    made = detmap.compare(models, 200, clusters=of)
    (only,) = made.differences
    assert math.isnan(only.p)
    assert math.isnan(only.low)
    assert made.groups == {}
    assert not made.changed
    assert not made.could_tell(made.families[1])
    said = made.sentences()
    assert "AP: too few clusters to tell (it takes 6 with objects)" in said
    assert "no groups: these tests could not have told any two models apart by AP" in said
    assert any(one.endswith("clusters of images are taken as independent of each other") for one in said)
    assert not math.isnan(made.bootstraps["a"].interval()[0, 0])  # of a model there is one
    assert detmap.compare(models, 200, clusters=np.arange(60) // 10).differences[0].p == 1 / 32


def test_few_clusters_have_no_interval(models):
    made = statistics.bootstrap(models["a"], 200, clusters=np.arange(60) // 20)
    assert made.reasons()[0] == "3 clusters with something to find: an interval takes 5"
    assert made.to_dict()["clusters"]["AP"] == 3


def test_unequal_clusters_are_worth_fewer():
    assert units.balanced(np.array([3, 3, 3, 0])) == 3
    assert units.balanced(np.array([1, 1, 98])) == pytest.approx((3 + 1e4 / 9606) / 2)
    assert units.balanced(np.zeros(2)) == 0


def test_tallies_keep_their_clusters(models):
    whole = units.clustered(models["a"].tally, [f"v{c}" for c in of_six(models["a"])])
    some = np.arange(60) % 3 == 0
    parts = [whole.on_images(some), whole.on_images(~some)]
    for merged in (parts[0].merge(parts[1]), parts[1].merge(parts[0])):
        assert merged.clusters.tolist() == whole.clusters.tolist()
    again = detmap.Tally.from_bytes(whole.to_bytes())
    assert again.clusters.tolist() == whole.clusters.tolist()
    assert again.to_bytes() == whole.to_bytes() != models["a"].tally.to_bytes()
    assert detmap.Tally.from_bytes(models["a"].tally.to_bytes()).clusters is None
    assert (
        whole.merge(detmap.Tally.empty(whole.protocol, whole.categories)).clusters.tolist() == whole.clusters.tolist()
    )
    with pytest.raises(StateError, match="known in one tally and not in another"):
        parts[0].merge(models["a"].tally.on_images(~some))
    with pytest.raises(StateError, match="integers in one tally and strings in another"):
        parts[0].merge(units.clustered(models["a"].tally.on_images(~some), np.zeros(40, int)))
    with pytest.raises(OptionError, match="scored on different clusters of images"):
        statistics.permute(whole, models["b"].tally, 9)


def test_what_are_no_clusters(models):
    tally = models["a"].tally
    with pytest.raises(InputError, match="59 clusters for 60 images"):
        units.clustered(tally, range(59))
    with pytest.raises(InputError, match="60 of 60 images are in no cluster, the first of them"):
        units.clustered(tally, {"x": 1})
    with pytest.raises(InputError):
        units.clustered(tally, [1, "a"] * 30)


# ------------------------------------------------------------------------------------------------------ files and commands


@pytest.fixture
def files(tmp_path):
    """Ground truth of 60 images with a field video, two models, and a file of the same clusters."""
    dataset, results = scene(3, 60, 1.0)
    for place, image in enumerate(dataset["images"]):
        image.update(video=f"v{place // 6}", file_name=f"{place * 7919 % 1000:04}.jpg")
    rng = np.random.default_rng(1)
    worse = [{**row, "score": float(rng.random())} for row in results]
    for name, content in (("gt", dataset), ("one", results), ("two", worse)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    rows = [f"{image['id']},{image['video']}" for image in dataset["images"]]
    (tmp_path / "clusters.csv").write_text("\n".join(["image,cluster", *rows]))
    rows = [f"{image['file_name']},{image['video']}" for image in dataset["images"]]
    (tmp_path / "by_name.csv").write_text("\n".join(["image,cluster", *rows]))
    return {path.stem: str(path) for path in tmp_path.iterdir()}


def test_a_file_and_a_field_say_the_same(files, capsys):
    said = []
    for given in (files["clusters"], files["by_name"], "video"):
        assert cli.main(["eval", files["gt"], files["one"], "--bootstrap", "200", "--clusters", given]) == 0
        captured = capsys.readouterr()
        said.append(captured.out)
        assert captured.err == ""
    assert said[0] == said[1] == said[2]
    assert "clusters  mean of" in said[0]
    truth = detmap.read(files["gt"], "ground_truth", clusters="video")
    assert truth.images.clusters.tolist() == [f"v{place // 6}" for place in range(60)]
    given = {image: place // 6 for place, image in enumerate(truth.images.ids.tolist())}
    assert detmap.read(files["gt"], "ground_truth", clusters=given).images.clusters.tolist() == list(given.values())


def test_compare_by_clusters_has_a_card(files, tmp_path, capsys):
    card = str(tmp_path / "card.json")
    asked = ["compare", files["gt"], files["one"], files["two"], "--bootstrap", "200"]
    assert cli.main([*asked, "--clusters", files["clusters"], "--card", card]) == 0
    said = capsys.readouterr().out
    assert "made the detections of a cluster of images?" in said
    assert "512 permutations" in said
    roles = [one["role"] for one in json.loads((tmp_path / "card.json").read_text())["inputs"]]
    assert "clusters" in roles
    inputs = [files["gt"], files["one"], files["two"]]
    assert cli.main(["verify", card, *inputs]) == 0
    assert cli.main(["verify", card, *inputs, "--clusters", files["by_name"]]) == 1
    assert "clusters" in capsys.readouterr().out
    assert (
        cli.main(["eval", files["gt"], files["one"], "--bootstrap", "200", "--clusters", "video", "--card", card]) == 0
    )
    assert "clusters" not in json.loads((tmp_path / "card.json").read_text())["options"]  # decides no metric
    assert cli.main(["verify", card, *inputs[:2]]) == 0


def test_a_leaderboard_by_clusters(files, tmp_path, capsys):
    out = tmp_path / "board"
    asked = ["batch", files["gt"], files["one"], files["two"], "--bootstrap", "200", "--out", str(out), "--quiet"]
    assert cli.main(asked) == 0
    plain = json.loads((out / "leaderboard.json").read_text())
    assert cli.main([*asked, "--resume", "--clusters", "video"]) == 0  # not what was made of images
    said = capsys.readouterr().out
    made = json.loads((out / "leaderboard.json").read_text())
    assert "10 clusters with something to find" in said
    assert made["tests"]["clusters"] == 10
    assert made["models"][0]["clusters"]["AP"] == 10
    assert made["models"][0]["intervals"]["AP"] != plain["models"][0]["intervals"]["AP"]
    assert made["models"][0]["metrics"] == plain["models"][0]["metrics"]
    assert cli.main([*asked, "--clusters", files["clusters"], "--splits", _halves(files, tmp_path)]) == 0
    assert "5 clusters with something to find" in capsys.readouterr().out


def _halves(files, tmp_path):
    rows = [f"{image['id']},{'one' if k < 30 else 'two'}" for k, image in enumerate(_images(files))]
    path = tmp_path / "splits.csv"
    path.write_text("\n".join(["image,split", *rows]))
    return str(path)


def _images(files):
    return json.loads(Path(files["gt"]).read_text())["images"]


def _change(files, images):
    """Write the ground truth anew with other records of images."""
    path = Path(files["gt"])
    path.write_text(json.dumps({**json.loads(path.read_text()), "images": images}))


def test_diagnoses_draw_clusters(files, capsys):
    truth = detmap.read(files["gt"], "ground_truth", clusters="video")
    found = detmap.read(files["one"], "detections", ground_truth=truth)
    made, plain = (detmap.diagnose(one, found, replicates=200) for one in (truth, truth.with_clusters(None)))
    for part, column in (("slices", "low"), ("operating_points", "recall low")):
        rows, others = (getattr(one, part)() for one in (made, plain))
        assert "clusters of images are taken as independent of each other" in " ".join(rows.notes)
        assert "; images are taken as independent of each other" in " ".join(others.notes)
        assert any(row[column] != other[column] for row, other in zip(rows.rows(), others.rows(), strict=True))
    own = statistics.bootstrap(detmap.evaluate(truth, found, iou_thresholds=0.5), 200)
    large = next(row for row in made.slices(by="area", ranges={"area": {"any": (0, math.inf)}}).rows())
    assert [large["low"], large["high"]] == own.interval()[0].tolist()
    assert (
        cli.main(["diagnose", files["gt"], files["one"], "--bootstrap", "200", "--clusters", "video", "--quiet"]) == 0
    )
    assert "clusters of images are taken as independent" in capsys.readouterr().out


def test_explanations_draw_clusters(files, capsys):
    asked = ["compare", files["gt"], files["one"], files["two"], "--bootstrap", "200", "--clusters", "video"]
    assert cli.main([*asked, "--why"]) == 0
    assert "from 200 draws of clusters." in capsys.readouterr().out
    assert cli.main([*asked, "--under", "all"]) == 0
    assert "draws of clusters" in capsys.readouterr().out


def test_costs_of_errors_are_drawn_by_clusters(files):
    """AP and its errors of the same draws: the first column is the bootstrap of AP."""
    from detmap.diagnostics._redrawn import redrawn

    truth = detmap.read(files["gt"], "ground_truth", clusters="video")
    found = detmap.read(files["one"], "detections", ground_truth=truth)
    made = redrawn(detmap.diagnose(truth, found, replicates=200))
    own = statistics.bootstrap(detmap.evaluate(truth, found, iou_thresholds=0.5, area_ranges={"all": (0, 1e10)}), 200)
    assert made.unit == "clusters"
    # The mean over classes is taken in another order.
    assert made.replicates[:, 0] == pytest.approx(own.replicates[:, 0], rel=1e-14)
    assert made.interval()[0] == pytest.approx(own.interval()[0], rel=1e-12)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("image,cluster\n1,a\n1,b\n", "line 3, field 'image': is given twice"),
        ("image,cluster\n1,a\n", "59 of 60 images are in no cluster, the first of them 2"),
        ("image,cluster\n99,a\n", "line 2, field 'image': is not an image of the ground truth"),
        ("image,cluster\n1,\n", "line 2, field 'cluster': is empty"),
        ("image,cluster\n1\n", "line 2, field 'cluster': is empty"),
        ("image,video\n1,a\n", "has no columns image and cluster"),
        ('{"1": ["a"]}', "59 of 60 images are in no cluster"),
        ("\xff", "59 of 60"),
    ],
)
def test_files_that_say_no_clusters(files, tmp_path, capsys, content, said):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    if content == "\xff":
        path.write_bytes(b"image,cluster\n\xff\xfe,1")
        said = "is neither a CSV file nor JSON of clusters"
    assert cli.main(["eval", files["gt"], files["one"], "--bootstrap", "200", "--clusters", str(path)]) == 2
    assert said in capsys.readouterr().err


def test_fields_that_are_no_clusters(files, capsys):
    def said(*more):
        assert cli.main(["eval", files["gt"], files["one"], *more]) == 2
        return capsys.readouterr().err

    assert "'clip' is neither a file that is there nor a field of the images" in said(
        "--bootstrap", "200", "--clusters", "clip"
    )
    assert "--clusters needs --bootstrap N" in said("--clusters", "video")
    _change(files, [{**image, "video": None if place == 3 else 1} for place, image in enumerate(_images(files))])
    assert "must be an integer or a string, to say the cluster of an image" in said(
        "--bootstrap", "200", "--clusters", "video"
    )
    with pytest.raises(OptionError, match="clusters is an option of reading ground truth"):
        detmap.read(files["one"], "detections", clusters="video")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["seq{}/{:06}.jpg", 6], "60 images have names that count up behind a prefix"),
        (["clip_{}_frame{}.png", 20], "60 images have names that count up"),
        (["img_{1:04}.jpg", 60], ""),  # one prefix: images that are numbered
        (["{}_{}.jpg", 2], ""),  # pairs
    ],
)
def test_frames_are_noticed_where_nothing_says_so(files, capsys, names, said):
    form, many = names
    _change(files, [{**one, "file_name": form.format(k // many, k % many)} for k, one in enumerate(_images(files))])
    assert cli.main(["eval", files["gt"], files["one"], "--bootstrap", "200"]) == 0
    noted = capsys.readouterr().err
    assert said in noted
    assert bool(noted) == bool(said)
    assert cli.main(["eval", files["gt"], files["one"]]) == 0  # no interval, no notice
    assert capsys.readouterr().err == ""
    assert cli.main(["eval", files["gt"], files["one"], "--bootstrap", "200", "--clusters", "video"]) == 0
    assert capsys.readouterr().err == ""


def test_names_of_videos_that_count_up_are_said_to_be_of_videos(tmp_path, capsys):
    row = {"segment": [1.0, 5.0], "label": "jump"}
    names = [f"{side}_{number}" for side in ("left", "right") for number in range(6)]
    truth = {name: {"subset": "validation", "annotations": [row]} for name in names}
    paths = tmp_path / "truth.json", tmp_path / "found.json"
    paths[0].write_text(json.dumps({"version": "1", "database": truth}))
    paths[1].write_text(json.dumps({"version": "1", "results": {name: [{**row, "score": 0.5}] for name in names}}))
    assert cli.main(["eval", *map(str, paths), "--protocol", "activitynet", "--bootstrap", "200"]) == 0
    noted = capsys.readouterr().err
    assert "12 videos have names that count up behind a prefix" in noted
    assert "take videos as independent" in noted


@pytest.mark.parametrize("command", ["eval", "compare", "batch", "diagnose"])
def test_a_field_of_videos_is_noticed(files, capsys, command):
    _change(files, [{**image, "video_id": image["video"]} for image in _images(files)])
    models = [files["one"], files["two"]][: 1 + (command in ("compare", "batch"))]
    assert cli.main([command, files["gt"], *models, "--bootstrap", "200"]) == 0
    captured = capsys.readouterr()
    assert "note: the images have a field video_id: intervals and tests take images as independent" in captured.err
    assert captured.err.count("video_id: ") == 1


def test_a_report_notices_a_field_of_videos(files, capsys, tmp_path):
    pytest.importorskip("jinja2")
    _change(files, [{**image, "video_id": image["video"]} for image in _images(files)])
    arguments = ["report", files["gt"], files["one"], "--out", str(tmp_path / "page.html"), "--bootstrap"]
    assert cli.main([*arguments, "200"]) == 0
    assert capsys.readouterr().err.count("note: the images have a field video_id: ") == 1
    for more in (["0"], ["200", "--quiet"], ["200", "--clusters", "video"]):
        assert cli.main([*arguments, *more]) == 0
        assert "video_id: " not in capsys.readouterr().err
