"""What detmap puts between other packages and itself, with stand-ins for the packages; see tests/torch for themselves."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import get_args

import fake_packages
import numpy as np
import pytest
from fake_packages import tensor
from test_map_states import drawn, settings

import detmap
from detmap.errors import InputError, OptionError
from detmap.integrations.map_states import scores_of
from detmap.pycocotools import mask
from detmap.pycocotools.coco import COCO
from detmap.pycocotools.cocoeval import COCOeval


@pytest.fixture
def translation(monkeypatch):
    def loaded(name):
        fake_packages.stand_in(name, monkeypatch)
        return import_module(f"detmap.integrations.{name}")

    yield loaded
    for one in fake_packages.OF:
        sys.modules.pop(f"detmap.integrations.{one}", None)


def plain(made):
    return {name: (value.dtype.name, value.tolist()) for name, value in made.items()}


def single(values):
    return "float32", np.float32(values).tolist()


STATS = ["map", "map_50", "map_75", "map_small", "map_medium", "map_large"]


def expected(state, given):
    """The results under torchmetrics' names."""
    found, classes = scores_of(state, given)
    most, made = given.max_detection_thresholds[-1], {"classes": ("int32", classes)}
    for kind, scores in found.items():
        prefix = f"{kind}_" if len(found) > 1 else ""
        names = STATS + [f"mar_{cap}" for cap in given.max_detection_thresholds]
        names += ["mar_small", "mar_medium", "mar_large"]
        stats = [-1.0] * 12 if scores is None else scores.stats
        made |= {f"{prefix}{name}": single(value) for name, value in zip(names, stats, strict=True)}
        if scores is not None:
            made[f"{prefix}map_per_class"] = single([-1.0] if scores.ap is None else scores.ap)
            made[f"{prefix}mar_{most}_per_class"] = single([-1.0] if scores.ar is None else scores.ar)
    return made


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("kinds", [("bbox",), ("bbox", "segm")])
def test_results_under_the_names_of_torchmetrics(kinds, by_class, translation):
    module = translation("torchmetrics")
    state, given = drawn(1, masks=True), settings(kinds, caps=(1, 5, 20), by_class=by_class)
    values = {**state._asdict(), **given._asdict()}
    made = module.own_results(module.CocoBackend("detmap"), values.__getitem__)
    assert plain(made[0]) == expected(state, given)
    assert list(made[1]) == list(kinds)
    assert made[2] == scores_of(state, given)[1]
    metric = module.MeanAveragePrecision(**values, extended_summary=False)
    assert plain(metric.compute()) == expected(state, given)
    metric.extended_summary = True
    assert metric.compute() == ("theirs", "detmap", True)


def test_no_scores_under_the_names_of_torchmetrics(translation):
    module = translation("torchmetrics")
    empty = type(drawn(0))(*([] for _ in drawn(0)))
    values = {**empty._asdict(), **settings(("bbox", "segm"))._asdict()}
    made = plain(module.own_results(module.CocoBackend("detmap"), values.__getitem__)[0])
    assert made == expected(empty, settings(("bbox", "segm")))
    assert not [name for name in made if name.endswith("_per_class")]


def test_the_backend_of_torchmetrics(translation):
    module = translation("torchmetrics")
    own, theirs = module.CocoBackend("detmap"), module.CocoBackend("pycocotools")
    assert (own.backend, own.coco, own.cocoeval, own.mask_utils) == ("detmap", COCO, COCOeval, mask)
    assert (theirs.backend, theirs.coco, theirs.cocoeval, theirs.mask_utils) == (
        "pycocotools", "their COCO", "their COCOeval", "their mask"
    )  # fmt: skip
    values = {**drawn(0)._asdict(), **settings()._asdict()}
    assert module._calculate_map(theirs, **values, extended_summary=False) == ("theirs", "pycocotools", False)
    helpers = sys.modules["torchmetrics.detection.helpers"]
    before = helpers.CocoBackend
    with detmap.patch_torchmetrics() as patch:
        assert helpers.CocoBackend is module.CocoBackend
        assert "torchmetrics.detection.helpers.CocoBackend" in patch.replaced
        assert "torchmetrics.detection.helpers._calculate_map_with_coco" in patch.replaced
        made = helpers._calculate_map_with_coco(own, **values, extended_summary=False)
    assert plain(made) == expected(drawn(0), settings())
    assert helpers.CocoBackend is before
    assert helpers._calculate_map_with_coco is fake_packages._calculate_map_with_coco


@pytest.mark.parametrize("name", ["torchmetrics", "rfdetr"])
def test_packages_that_are_not_there(name, monkeypatch):
    monkeypatch.setitem(sys.modules, f"detmap.integrations.{name}", None)
    named = {"torchmetrics": ("torchmetrics", "1.8"), "rfdetr": ("rfdetr[train]", "1.11")}[name]
    with pytest.raises(OptionError) as caught:
        getattr(detmap, f"patch_{name}")()
    says = f"this needs {named[0]} {named[1]} or later: pip install '{named[0]}>={named[1]}' ("
    assert str(caught.value).startswith(says)


def test_the_backend_of_rfdetr(translation):
    translation("rfdetr")
    coco_map, config = sys.modules["rfdetr.training.coco_map"], sys.modules["rfdetr.config"]
    kinds, theirs = (config.TrainConfig, config.Below), coco_map.OnePassCocoMeanAveragePrecision
    with detmap.patch_rfdetr() as patch:
        backend = coco_map._BACKENDS["detmap"]()
        assert backend.mask_utils is mask
        assert patch.replaced[-1] == "rfdetr.training.coco_map._BACKENDS['detmap']"
        for one in kinds:
            assert get_args(one.model_fields["eval_backend"].annotation) == ("faster_coco_eval", "ufcoco", "detmap")
        metric = coco_map.OnePassCocoMeanAveragePrecision(**drawn(0)._asdict(), **settings()._asdict())
        assert metric.compute() == "computed by the parent"
        metric._coco_backend = backend
        assert plain(metric.compute()) == expected(drawn(0), settings())
        empty = {name: [] for name in drawn(0)._asdict()}
        for wanted, prefixes in ((("bbox",), [""]), (("bbox", "segm"), ["bbox_", "segm_"])):
            metric = coco_map.OnePassCocoMeanAveragePrecision(**empty, **settings(wanted)._asdict())
            metric._coco_backend = backend
            made = metric.compute()
            assert [made[f"{prefix}classes"] for prefix in prefixes if prefix] == [[] for prefix in prefixes if prefix]
            assert [name for name in made if name.endswith("classes")] == (
                ["classes"] if prefixes == [""] else ["classes", "bbox_classes", "segm_classes"]
            )
    assert coco_map.OnePassCocoMeanAveragePrecision is theirs
    assert list(coco_map._BACKENDS) == ["faster_coco_eval"]
    for one in kinds:
        assert get_args(one.model_fields["eval_backend"].annotation) == ("faster_coco_eval", "ufcoco")
    assert config.TrainConfig.rebuilt == [("TrainConfig", True), ("Below", True)] * 2


class Validator:
    """As much of a validator as the callback asks for."""

    def __init__(self, task="detect"):
        self.args = type("Arguments", (), {"task": task})
        self.data = {"names": {0: "cat", 1: "dog"}}
        self.seen = []

    def update_metrics(self, found, batch):
        self.seen.append(len(found))

    def _prepare_batch(self, i, batch):
        return {**batch[i], "imgsz": (10, 10), "ori_shape": (20, 20), "ratio_pad": "pad"}

    def _prepare_pred(self, image):
        return image


def side(labels, boxes, **more):
    return {"bboxes": tensor(boxes, np.float64), "cls": tensor(labels, np.float32), **more}


def test_the_callbacks_of_ultralytics(translation):
    module, calls = translation("ultralytics"), {}

    class Model:
        add_callback = staticmethod(calls.__setitem__)

    made = module.Validation(Model, iou_thresholds=[0.5])
    assert made.result is None
    validator = Validator()
    calls["on_val_start"](validator)
    batch = [side([0, 1], [[0, 0, 5, 5], [5, 5, 9, 9]], im_file="a.jpg"), side([1], [1.0, 1, 4, 4], im_file="b.jpg")]
    found = [
        side([0], [[0, 0, 5, 4]], conf=tensor([0.9])),
        side([1, 1], [[1, 1, 4, 4], [6, 6, 9, 9]], conf=tensor([0.8, 0.95])),
    ]
    validator.update_metrics(found, batch)
    assert validator.seen == [2]
    assert made.result is None
    calls["on_val_end"](validator)
    table = detmap.GroundTruth.from_arrays(
        image_ids=["a.jpg", "a.jpg", "b.jpg"], category_ids=[0, 1, 1], categories=[0, 1],
        boxes=[[0, 0, 10, 10], [10, 10, 18, 18], [2, 2, 8, 8]], box_format="xyxy",
    )  # fmt: skip
    detections = detmap.Detections.from_arrays(
        image_ids=["a.jpg", "b.jpg", "b.jpg"], category_ids=[0, 1, 1], scores=[0.9, 0.8, 0.95],
        boxes=[[0, 0, 10, 8], [2, 2, 8, 8], [12, 12, 18, 18]], box_format="xyxy",
    )  # fmt: skip
    wanted = detmap.evaluate(table, detections, iou_thresholds=[0.5])
    assert str(dict(made.result)) == str(dict(wanted))
    assert 0 < made.result["AP"] < 1
    assert validator.update_metrics.__func__ is Validator.update_metrics
    with pytest.raises(OptionError, match=r"^oriented boxes are not scored by this callback"):
        calls["on_val_start"](Validator("obb"))
    with pytest.raises(OptionError):
        module.Validation(Model, "no protocol")


def measured(corpus, relevant, ranked, depth):
    """Six measures of a query at a depth, by their definitions; `ranked` are the documents found, best first."""
    gains = [one in relevant for one in ranked[:depth]]
    precisions = [sum(gains[: i + 1]) / (i + 1) for i, gain in enumerate(gains) if gain]
    ideal = sum(1 / np.log2(i + 2) for i in range(min(len(relevant), depth)))
    return (
        float(any(gains)),
        sum(gains) / depth,
        sum(gains) / len(relevant),
        sum(gain / np.log2(i + 2) for i, gain in enumerate(gains)) / ideal,
        1 / (gains.index(True) + 1) if any(gains) else 0.0,
        sum(precisions) / min(len(relevant), depth),
    )


NAMES = ("accuracy@k", "precision@k", "recall@k", "ndcg@k", "mrr@k", "map@k")


@pytest.mark.parametrize("seed", range(3))
def test_the_measures_of_sentence_transformers(seed, translation):
    rng, module = np.random.default_rng(seed), translation("sentence_transformers")
    corpus = [f"d{i}" for i in rng.permutation(12)]
    relevant = {f"q{i}": {str(one) for one in rng.choice(corpus, 1 + i % 4, replace=False)} for i in range(5)}
    relevant["q1"].add("elsewhere")
    cuts = {f"{name}_at_k": [1, 3, 12] for name in ("accuracy", "precision_recall", "ndcg", "mrr", "map")}
    ours = module.InformationRetrievalEvaluator(
        queries_ids=list(relevant), corpus_ids=corpus, relevant_docs=relevant, **cuts
    )
    scores = rng.integers(0, 4, (5, 12)) / 4  # many are tied
    lists = [[{"corpus_id": corpus[i], "score": row[i]} for i in rng.permutation(12)] for row in scores]
    wanted = {name: {} for name in NAMES}
    for depth in (1, 3, 12):
        values = []
        for row, own in zip(scores, relevant.values(), strict=True):
            order = sorted(range(12), key=lambda i: (-row[i], corpus[i]))
            values.append(measured(corpus, own, [corpus[i] for i in order], depth))
        for name, column in zip(NAMES, zip(*values, strict=True), strict=True):
            wanted[name][depth] = np.mean(column)

    def assert_wanted(found):
        assert list(found) == list(NAMES)
        for name, values in wanted.items():
            assert found[name] == pytest.approx(values, rel=1e-14, abs=1e-15), name

    assert_wanted(ours.compute_metrics(lists))
    places = np.array([rng.permutation(12) for _ in scores])
    sorted_scores = np.take_along_axis(scores, places, 1)
    assert_wanted(ours.compute_metrics_of_top_k(sorted_scores, places))
    padded = np.concatenate([np.full((5, 2), -1), places], 1)
    assert_wanted(ours.compute_metrics_of_top_k(np.concatenate([np.ones((5, 2)), sorted_scores], 1), padded))


def test_what_the_evaluator_of_sentence_transformers_refuses(translation):
    module = translation("sentence_transformers")
    cuts = {f"{name}_at_k": [1] for name in ("accuracy", "precision_recall", "ndcg", "mrr", "map")}
    ours = module.InformationRetrievalEvaluator(
        queries_ids=["q", "r"], corpus_ids=["b", "a"], relevant_docs={"q": {"a"}, "r": {"b"}}, **cuts
    )
    two = np.zeros((2, 1))
    shaped = r"^scores: expected a row for each of 2 queries, not \(.*\) and \(.*\)$"
    for scores, places in (
        (np.zeros(2), np.zeros(2, int)),
        (two, np.zeros((2, 2), int)),
        (np.zeros((1, 1)), np.zeros((1, 1), int)),
    ):
        with pytest.raises(InputError, match=shaped):
            ours.compute_metrics_of_top_k(scores, places)
    for places in (two, two + 2, two - 2, np.full((2, 1), 2), np.full((2, 1), -2)):
        with pytest.raises(InputError, match=r"^indices: places must be from -1 to 1$"):
            ours.compute_metrics_of_top_k(two, places)
    assert ours.compute_metrics_of_top_k(two, np.array([[1], [0]]))["mrr@k"] == {1: 1.0}
    assert ours.compute_metrics_of_top_k(two, np.array([[1], [-1]], np.int8))["mrr@k"] == {1: 0.5}


MEASURES = ("mean_average_precision", "mean_average_precision_at_r", "mean_reciprocal_rank", "precision_at_1",
            "r_precision")  # fmt: skip


def accuracy(hits, positives):
    """The five measures of a query by their definitions."""
    precisions = [sum(hits[: i + 1]) / (i + 1) if hit else 0.0 for i, hit in enumerate(hits)]
    most = min(positives, len(hits))
    return (
        sum(precisions) / positives,
        sum(precisions[:positives]) / positives,
        1 / (hits.index(True) + 1) if True in hits else 0.0,
        float(hits[0]),
        sum(hits[:most]) / most,
    )


@pytest.mark.parametrize("options", [{}, {"avg_of_avgs": True}, {"return_per_class": True}])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_the_measures_of_pytorch_metric_learning(seed, same, options, translation):
    rng, module = np.random.default_rng(seed), translation("pytorch_metric_learning")
    labels = rng.integers(0, 4, 14)
    labels[0] = 9  # alone
    queries = labels if same else rng.integers(0, 5, 6)
    count = len(queries)
    places = np.array([rng.permutation(14) for _ in range(count)])[:, :9]
    for row in range(count if same else 0):
        if row in places[row] and rng.random() < 0.5:  # the search has missed the query itself
            places[row, places[row] == row] = next(one for one in range(14) if one not in places[row])
    if not same:
        places[:, 7:] = -1
    groups, per_query = {}, []
    for row, label in enumerate(queries.tolist()):
        kept = places[row].tolist()
        if same:
            kept.remove(row if row in kept else kept[-1]) if row in kept else kept.pop()
        hits = [one >= 0 and bool(labels[one] == label) for one in kept]
        positives = int((labels == label).sum()) - same
        if positives:
            values = accuracy(hits, positives)
            per_query.append(values)
            groups.setdefault(label, []).append(values)
    means = [np.mean(groups[label], axis=0) for label in sorted(groups)]
    if options.get("return_per_class"):
        wanted = np.transpose(means).tolist()
    else:
        wanted = np.mean(means if options else per_query, axis=0).tolist()
    calculator = module.AccuracyCalculator(knn_func="their search", **options)
    distances = np.zeros(places.shape)
    for given in ((distances, places), (distances.tolist(), places.tolist())):
        found = calculator.get_accuracy_of_neighbors(*given, queries, labels, same)
        assert list(found) == sorted(MEASURES)
        assert calculator.knn_func == "their search"
        assert calculator._none is None
        for name, value in zip(MEASURES, wanted, strict=True):
            assert found[name] == pytest.approx(value, rel=1e-13), name
    some = {"include": ["r_precision", "NMI", "precision_at_1"], "exclude": ["precision_at_1"]}
    found = calculator.get_accuracy_of_neighbors(distances, places, queries, labels, same, **some)
    assert list(found) == ["r_precision"]


def test_labels_that_are_alone_and_what_is_refused(translation):
    module = translation("pytorch_metric_learning")
    ours, by_class = (module.AccuracyCalculator(return_per_class=one) for one in (False, True))
    given = np.zeros((2, 1)), np.array([[1], [0]]), np.array([5, 6]), np.array([5, 6])
    found = ours.get_accuracy_of_neighbors(*given, True)
    assert all(np.isnan(value) for value in found.values())
    assert all(
        np.isnan(value).tolist() == [True, True] for value in by_class.get_accuracy_of_neighbors(*given, True).values()
    )
    for places in (np.zeros((1, 1), int), np.zeros((3, 1), int)):
        with pytest.raises(InputError, match=r"^I: expected a row for each of 2 queries \(got \(., 1\)\)$"):
            ours.get_accuracy_of_neighbors(np.zeros(places.shape), places, *given[2:])
    with pytest.raises(InputError):
        ours.get_accuracy_of_neighbors(np.zeros(2), np.zeros(2, int), *given[2:])
    for wrong in (-2, 2):
        with pytest.raises(InputError, match=r"^I: places must be from -1 to 1$"):
            ours.get_accuracy_of_neighbors(np.zeros((2, 1)), np.full((2, 1), wrong), *given[2:])
    for right, value in ((-1, 0.0), (1, 0.5), (0, 0.5)):
        made = ours.get_accuracy_of_neighbors(np.zeros((2, 1)), np.full((2, 1), right), *given[2:])
        assert made["precision_at_1"] == value


def test_a_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", fake_packages.torch()["torch"])
    monkeypatch.setitem(sys.modules, "pytorch_metric_learning", None)
    monkeypatch.delitem(sys.modules, "detmap.integrations.pytorch_metric_learning", raising=False)
    with pytest.raises(detmap.MissingDependencyError) as caught:
        import_module("detmap.integrations.pytorch_metric_learning")
    assert str(caught.value) == "AccuracyCalculator needs pytorch-metric-learning: pip install pytorch-metric-learning"
