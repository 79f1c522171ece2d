"""How objects are drawn: numbers counted again from the files, limits on both sides."""

from __future__ import annotations

import copy
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_parts import by_image, confident, iou, planted, scene, within

from detmap.checks import check, image_ids, parts, policies, strays
from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence
from detmap.checks.inputs import side_of
from detmap.checks.rates import Division, Order
from detmap.data.tables import Detections, GroundTruth


def by_cell(records):
    held = {}
    for one in records:
        held.setdefault((one["image_id"], one["category_id"]), []).append(one["bbox"])
    return held


def unfound(data):
    """The objects that no detection of their category overlaps by half."""
    found = by_cell(data.found)
    return [
        o for o in data.truth["annotations"]
        if all(iou(o["bbox"], d) < 0.5 for d in found.get((o["image_id"], o["category_id"]), ()))
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------- numbers, counted again


def spanned(box, held):
    """Whether two or more boxes lie within a box, side by side, and span it."""
    x, y, w, h = box
    inside = []
    for a, b, c, d in held:
        both = max(min(x + w, a + c) - max(x, a), 0) * max(min(y + h, b + d) - max(y, b), 0)
        if both >= 0.8 * c * d:
            inside.append((a, b, a + c, b + d))
    apart = any(
        max(p[0], q[0]) - min(p[2], q[2]) >= -0.1 * w or max(p[1], q[1]) - min(p[3], q[3]) >= -0.1 * h
        for p, q in itertools.combinations(inside, 2)
    )
    if not apart:
        return False
    (near_x, near_y), (far_x, far_y) = np.min(inside, axis=0)[:2], np.max(inside, axis=0)[2:]
    return iou(box, [near_x, near_y, far_x - near_x, far_y - near_y]) >= 0.7


def best_scores(data):
    """The best score of the detections that find each object by half, and overlap no other one of its category more."""
    out, objects = {}, {}
    for o in data.truth["annotations"]:
        objects.setdefault((o["image_id"], o["category_id"]), []).append(o)
    for d in data.found:
        own = objects.get((d["image_id"], d["category_id"]), ())
        best = max(own, key=lambda o: iou(o["bbox"], d["bbox"]), default=None)
        if best is not None and iou(best["bbox"], d["bbox"]) >= 0.5:
            out[best["id"]] = max(out.get(best["id"], 0), d["score"])
    return out


@pytest.mark.parametrize("kind", ["crowded", "one class"])
@pytest.mark.parametrize("name", ["groups_in_one_box", "groups_in_one_box_on_a_shard"])
def test_groups_in_one_box_are_counted_again(name, kind):
    data, made = planted(name, kind, 0.5)
    one = made["grouped_objects"]
    there = within(one.says) if name.endswith("shard") else lambda image: True
    held, best, missed = {}, best_scores(data), {o["id"] for o in unfound(data)}
    for d in confident(data):
        held.setdefault((d["image_id"], d["category_id"]), []).append(d)
    groups = []
    for o in data.truth["annotations"] if there else ():
        better = [
            d["bbox"] for d in held.get((o["image_id"], o["category_id"]), ()) if d["score"] > best.get(o["id"], 0)
        ]
        if there(o["image_id"]) and spanned(o["bbox"], better):
            groups.append(o["id"])
    assert one.count == len(groups) > 50
    assert f": {len(missed & set(groups)):,} of them are not found" in one.says
    assert (", in the order of " in one.says) == name.endswith("shard")


def test_objects_that_are_the_whole_image_are_counted_again():
    data, made = planted("labels_of_images_as_boxes", "crowded")
    sizes = {one["id"]: (one["width"], one["height"]) for one in data.truth["images"]}
    missed = {o["id"] for o in unfound(data)}
    whole, large = [], []
    for o in data.truth["annotations"]:
        x, y, w, h = o["bbox"]
        width, height = sizes[o["image_id"]]
        if max(x, y, width - x - w, height - y - h) <= 2:
            whole.append(o["id"] in missed)
        elif w * h >= 0.5 * width * height:
            large.append(o["id"] in missed)
    one = made["whole_image_objects"]
    assert one.count == len(whole)
    assert (
        f": {sum(whole):,} of them are not found, and of others of at least half of their image {sum(large):,} of "
        in one.says
    )
    assert one.says.endswith(f" of {len(large):,}")
    assert "misplaced" not in made  # which says the same


@pytest.mark.parametrize("kind", ["sparse", "one class"])
def test_objects_that_are_drawn_otherwise_are_counted_again(kind):
    data, made = planted("upper_parts_on_a_shard", kind, 0.5)
    one = made["drawn_otherwise"]
    there, missed = within(one.says), unfound(data)
    found = by_cell(data.found)
    objects = [
        o for o in data.truth["annotations"] if there(o["image_id"]) and (o["image_id"], o["category_id"]) in found
    ]
    ids = {o["id"] for o in objects}
    assert one.count == sum(o["id"] in ids for o in missed)
    assert f"of {len(objects):,} there" in one.says
    assert one.says.endswith(
        "they share the left, top and right edges with the best overlapping one, and have 0.40 of its height"
    )
    assert "misplaced" not in made


def test_clicks_by_accident_are_counted_again():
    data, made = planted("clicks_by_accident", "crowded")
    one = made["stray_objects"]
    limit, beyond, others = map(
        int, re.search(r"at most (\d+) pixels, and of up to (\d+) pixels only (\d+) obj", one.says).groups()
    )
    shorter = np.array([min(o["bbox"][2:]) for o in data.truth["annotations"]])
    assert one.count == np.count_nonzero((shorter > 0) & (shorter <= limit))
    assert others == np.count_nonzero((shorter > limit) & (shorter <= beyond))
    assert one.says.endswith("; 0% of them are found")
    assert not {"tiny_objects", "sizes_cut", "zero_sized_boxes", "misplaced"} & set(made)


@pytest.mark.parametrize(("name", "which"), [("small", "below"), ("large", "above")])
def test_labels_without_objects_of_a_size_are_counted_again(name, which):
    """Those of the better half of each category's confident detections of this size that lie on nothing."""
    data, made = planted(f"{name}_objects_unlabelled_on_a_shard", "sparse", 0.5)
    says = made["unlabelled"].says
    area = float(re.search(rf"detections of an area {which} ([\d,]+), ", says)[1].replace(",", ""))
    there = within(says)

    def of_kind(one):
        return (one["bbox"][2] * one["bbox"][3] < area) == (which == "below")

    own, inside = zip(*((of_kind(o), there(o["image_id"])) for o in data.truth["annotations"]), strict=True)
    own, inside = np.array(own), np.array(inside)
    assert says.endswith(
        f"; of the objects there {parts.share(own[inside].sum(), inside.sum())} are such, elsewhere "
        f"{parts.share(own[~inside].sum(), (~inside).sum())}"
    )
    looked_at, sure = [], confident(data)
    for number in {one["category_id"] for one in sure}:
        some = [one for one in sure if one["category_id"] == number and of_kind(one)]
        looked_at += some[: len(some) // 2]
    looked_at = [d for d in looked_at if there(d["image_id"])]
    objects = by_image(data.truth["annotations"])
    alone = [d for d in looked_at if all(iou(d["bbox"], o["bbox"]) < 0.2 for o in objects.get(d["image_id"], ()))]
    assert (made["unlabelled"].count, f"of {len(looked_at):,} there" in says) == (len(alone), True)


# ---------------------------------------------------------------------------------------------------------------- limits


def evidence_of(objects, detections, images=1, labels=None):
    """Evidence of objects and detections, rows of image, x, y, width, height; the first detections are the surest."""
    objects, detections = np.array(objects, float), np.array(detections, float)
    sizes = np.full((images, 2), 100)
    truth = GroundTruth.from_arrays(
        image_ids=objects[:, 0].astype(int), category_ids=np.ones(len(objects), int), boxes=objects[:, 1:],
        image_sizes=sizes, images=np.arange(images), categories=[1],
    )  # fmt: skip
    found = Detections.from_arrays(
        image_ids=detections[:, 0].astype(int), category_ids=np.ones(len(detections), int), boxes=detections[:, 1:],
        scores=np.linspace(0.9, 0.1, len(detections)),
    )  # fmt: skip
    return Evidence(side_of(truth), side_of(found, truth), found.scores)


@pytest.mark.parametrize(
    ("boxes", "said"),
    [
        ([(0, 0, 40, 40), (40, 0, 40, 40)], True),
        ([(0, 0, 40, 40), (32, 0, 48, 40)], True),  # side by side but for 8 of 80 pixels
        ([(0, 0, 40, 40), (31, 0, 49, 40)], False),  # by more than a tenth
        ([(0, 0, 40, 40), (52, 0, 28, 28)], True),
        ([(0, 0, 28, 40), (28, 0, 28, 40)], True),  # the box around both is 0.7 of the object
        ([(0, 0, 28, 40), (28, 0, 27, 40)], False),
        ([(0, -10, 40, 50), (40, 0, 40, 40)], True),  # four fifths of the first lie within
        ([(0, -11, 40, 50), (40, 0, 40, 40)], False),
        ([(0, 0, 39, 40)], False),
    ],
)
def test_either_side_of_an_object_around_several(boxes, said):
    more = [(0, 80, 80, 9, 9), (0, 90, 90, 5, 5)]  # as many objects as detections, so that all are confident
    evidence = evidence_of([(0, 0, 0, 80, 40), *more], [(0, *one) for one in boxes])
    evidence.matched = np.zeros(3), np.full(3, -np.inf)  # some of them overlap the object by half
    assert policies.around_several(evidence, np.arange(1)).tolist() == ([0] if said else [])


@pytest.mark.parametrize(("score", "said"), [(0.84, True), (0.86, False)])
def test_an_object_around_several_is_not_found_by_a_better_one(score, said):
    """The second of the two that fill it has a score of 0.85."""
    boxes = [(0, 0, 38, 40), (42, 0, 38, 40), (0, 0, 80, 40)]
    evidence = evidence_of([(0, 0, 0, 80, 40), (0, 80, 80, 9, 9), (0, 90, 90, 5, 5)], [(0, *one) for one in boxes])
    scores = np.array([0.9, 0.85, score])
    evidence = Evidence(evidence.truth, evidence.found, scores)
    assert policies.around_several(evidence, np.arange(1)).tolist() == ([0] if said else [])


def groups_on_a_part(groups, images=200, elsewhere=0):
    """The part that is named where some of the first half of the images hold a group of two objects, which are detected."""
    rng = np.random.default_rng(0)
    known = np.ones(images, bool)
    flags = np.zeros(images, bool)
    flags[np.sort(rng.permutation(images // 2)[:groups])] = True
    flags[images // 2 + 10 : images // 2 + 10 + elsewhere] = True
    facts = Facts(None)
    facts.division = Division(np.arange(images), [Order("ids", np.arange(images))], [])
    return facts.concentrated(flags, known, policies.LEAST, policies.LEFT)


def test_either_side_of_the_share_of_groups_in_a_part():
    assert groups_on_a_part(60, 1000) is not None
    assert groups_on_a_part(24, 1000) is None  # less than one in twenty


def of_groups(count, missed, frames=1.0):
    """Whether groups are named where so many of the missed objects are groups."""
    evidence = SimpleNamespace(
        seen=np.ones(missed, bool), hit=np.zeros(missed, bool), aside=np.zeros(missed, bool), looked_at=np.ones(1, bool),
        objects=np.arange(missed), frames=frames, object_image=np.zeros(missed, int), object_label=np.zeros(missed, int),
        truth=SimpleNamespace(records=lambda rows: {}),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policies, "around_several", lambda *given: np.arange(count))
        patch.setattr(policies, "_on_images", lambda *given: (None, None))
        patch.setattr(Facts, "concentrated", lambda *given: None)
        return [one.count for one in policies._groups(Facts(None), evidence)] == [count]


def test_either_side_of_the_number_of_groups():
    assert of_groups(10, 2500)
    assert not of_groups(9, 100)
    assert not of_groups(10, 2501)
    assert not of_groups(10, 100, frames=1.1)


def of_groups_on(images, causes=(), parts=()):
    """How many groups are named of images with one object around two detections, and two objects without a detection."""
    at = np.arange(images)
    boxes = (0, 0, 80, 40), (0, 80, 9, 9), (0, 90, 5, 5)
    objects = [(image, x + 100 * image, *box) for image in at for x, *box in boxes]  # elsewhere on each image
    detections = [(image, x + 100 * image, 0, 39, 40) for image in at for x in (0, 41)]
    facts = Facts(None, causes=set(causes), parts=[(at < count, label) for count, label in parts])
    facts.evidence = evidence_of(objects, detections, images)
    facts.division = facts.evidence.division
    return [one.count for one in policies.check(facts)]


@pytest.mark.parametrize(
    ("code", "said"), [("cut_boxes", []), ("sizes_cut", []), ("score_gap", []), ("copied_boxes", [11])]
)
def test_groups_are_not_named_where_a_cause_explains_that_large_objects_are_missed(code, said):
    assert of_groups_on(11, [("detections", code)]) == said
    assert of_groups_on(11, [("ground_truth", code)]) == [11]


def test_groups_of_a_reported_part_are_left_out():
    assert of_groups_on(11, parts=[(1, None)]) == [10]
    assert of_groups_on(11, parts=[(1, 0)]) == [10]
    assert of_groups_on(11, parts=[(1, 1)]) == [11]  # of another category
    assert of_groups_on(11, parts=[(2, None)]) == []


def of_whole(missed, total, others=(0, 98), frames=1.0, height=72):
    """Whether objects that are the whole image are named where so many of them, and of other large ones, are missed."""
    size = total + others[1]
    whole = np.arange(size) < total
    evidence = SimpleNamespace(
        objects=np.arange(size), seen=np.ones(size, bool), looked_at=np.ones(1, bool), frames=frames,
        hit=np.concatenate([np.arange(total) >= missed, np.arange(others[1]) >= others[0]]),
        object_box=np.tile([0.0, 0, 70, height], (size, 1)),
        truth=SimpleNamespace(sizes=np.full((size, 2), 100.0), whole=whole, records=lambda rows: {}),
    )  # fmt: skip
    made = [one.count for one in policies.whole_images(evidence)]
    assert getattr(evidence, "whole_known", False) is bool(made)
    return made == [total]


def test_either_side_of_whole_images():
    assert of_whole(10, 33)
    assert not of_whole(9, 9)
    assert not of_whole(10, 34)  # less than three in ten
    assert of_whole(45, 60, others=(23, 94))  # three times the share of others
    assert not of_whole(44, 60, others=(23, 94))
    assert not of_whole(10, 33, frames=3.0)
    assert not of_whole(10, 33, height=71)  # others of less than half of their image say nothing


def test_either_side_of_edges_that_differ_in_one_way():
    """Two edges are shared at least, and the others moved."""
    base = np.array([0, 0, 0, -0.6])
    for edges, said in (
        (base, True),
        (np.array([0.1, 0, 0, -0.6]), True),
        (np.array([0.11, 0, 0, -0.6]), False),  # neither shared nor moved
        (np.array([0.15, 0, 0, -0.6]), True),
        (np.array([0.15, 0.15, 0, -0.6]), False),  # one shared edge
        (np.array([0, 0, 0, 0.15]), True),
        (np.array([0, 0, 0, 0.14]), False),
        (0 * base, False),
    ):
        assert bool(policies.differs(edges, edges[2:] - edges[:2])) is said
    assert policies.differs(np.array([0, 0, -0.3, -0.6]), np.array([-0.3, -0.6])) == (
        "share the left and top edges with the best overlapping one, and have 0.70 of its width and 0.40 of its height"
    )


def of_policy(monkeypatch, count=10, missed=33, spread=0.2, posed=None):
    """Whether a policy is named by so many offsets, of which one edge's quartiles are so far apart."""
    edges = np.tile([0, 0, 0, -0.6], (count, 1))
    edges[:, 0] = np.linspace(-spread, spread, count)  # the quartiles are half as far apart as the ends
    every = np.ones(missed, bool)
    evidence = SimpleNamespace(found=SimpleNamespace(posed=posed), hit=~every, seen=every)
    monkeypatch.setattr(policies, "offsets", lambda given: policies.Offsets(np.arange(count), edges))
    return policies.policy(evidence, every) != ""


def test_either_side_of_a_policy(monkeypatch):
    assert of_policy(monkeypatch)
    assert not of_policy(monkeypatch, count=9)
    assert not of_policy(monkeypatch, missed=34)  # of less than three in ten the edges are known
    assert of_policy(monkeypatch, spread=0.299)
    assert not of_policy(monkeypatch, spread=0.301)
    assert not of_policy(monkeypatch, posed=True)  # boxes around points are smaller


def test_objects_that_were_not_compared_say_nothing_of_a_policy(monkeypatch):
    """Of the chosen, missed and compared objects three in ten are enough."""
    edges = np.tile([0, 0, 0.0, -0.6], (12, 1))
    made = policies.Offsets(np.arange(12), edges)
    monkeypatch.setattr(policies, "offsets", lambda given: made)
    at = np.arange(100)
    evidence = SimpleNamespace(found=SimpleNamespace(posed=None), hit=at >= 60, seen=at < 40)
    says = "in the median of 12 that a confident detection overlaps, they share the left, top and right edges with the best "
    assert policies.policy(evidence, at >= 0) == says + "overlapping one, and have 0.40 of its height"
    evidence.seen = at < 41
    assert policies.policy(evidence, at >= 0) == ""
    assert policies.policy(evidence, at < 40) != ""
    assert policies.policy(evidence, (at >= 1) & (at < 37)) == says.replace("12", "11") + (
        "overlapping one, and have 0.40 of its height"
    )
    edges[6:, 3] = 0.4  # half of them are drawn otherwise
    assert policies.policy(evidence, at < 40) == ""


@pytest.mark.parametrize(
    ("alike", "others", "off", "said"),
    [(20, 180, 0.12, True), (19, 171, 0.12, False), (20, 181, 0.12, False), (20, 180, 0.121, False)],
)
def test_either_side_of_objects_drawn_alike_anywhere(monkeypatch, alike, others, off, said):
    edges = np.zeros((alike + others, 4))
    edges[:alike, 3] = -0.6
    edges[1:alike, 3] -= off
    edges[0, 3] = -0.6
    edges[alike:] = np.arange(others)[:, None] + 3
    made = policies.Offsets(np.arange(alike + others), edges)
    monkeypatch.setattr(policies, "offsets", lambda given: made)
    monkeypatch.setattr(policies.uneven, "resized", lambda *given: None)
    evidence = SimpleNamespace(
        finders=(),
        object_label=np.zeros(alike + others, int), object_image=np.zeros(alike + others, int), classes=1, frames=1.0,
        objects=np.arange(alike + others),
        looked_at=np.array([True, False]),
        truth=SimpleNamespace(on=SimpleNamespace(categories=SimpleNamespace(names=["a"])), records=lambda rows: {}),
    )  # fmt: skip
    if not said and off > 0.12:
        edges[: alike // 2, 3] = -0.6  # halves that are too far from each other
    findings = list(policies._anywhere(Facts(None), evidence))
    assert [one.count for one in findings] == ([alike] if said else [])
    assert all(f"at least {alike} objects" in one.says for one in findings)
    evidence.looked_at[1] = True
    assert all("at least" not in one.says for one in policies._anywhere(Facts(None), evidence))
    known = Facts(None, causes={("ground_truth", "drawn_otherwise")})
    assert list(policies._anywhere(known, evidence)) == []


@pytest.mark.parametrize(("count", "label", "said"), [(1, None, [20]), (2, None, []), (2, 0, []), (2, 1, [21])])
def test_objects_drawn_alike_in_a_reported_part_are_left_out(monkeypatch, count, label, said):
    made = policies.Offsets(np.arange(21), np.tile([0, 0, 0, -0.6], (21, 1)))
    monkeypatch.setattr(policies, "offsets", lambda given: made)
    every = np.arange(21)
    on = SimpleNamespace(categories=SimpleNamespace(names=["a", "b"]))
    evidence = SimpleNamespace(
        object_label=0 * every, object_image=every, classes=2, frames=1.0, objects=every, looked_at=every >= 0,
        truth=SimpleNamespace(on=on, records=lambda rows: {}),
    )  # fmt: skip
    facts = Facts(None, parts=[(every < count, label)])
    assert [one.count for one in policies._anywhere(facts, evidence)] == said


@pytest.mark.parametrize(
    ("width", "height", "least", "said"),
    [
        (40, 30, (9, 9), True),
        (40, 40, (9, 9), False),  # a square
        (40, 40.019, (9, 9), False),
        (40, 40.021, (9, 9), True),
        (40, 30, (40, 9), False),  # no other is less wide
        (40, 30, (39, 9), True),
        (40, 30, (9, 30), False),
        (40, 30, (9, 29), True),
        (40, 10.1, (9, 9), True),  # a tenth of the object
        (40, 9.9, (9, 9), False),
    ],
)
def test_either_side_of_boxes_whose_edges_are_compared(width, height, least, said):
    evidence = evidence_of([(0, 0, 0, 40, 100), (1, 0, 0, *least)], [(0, 0, 0, width, height), (1, 0, 0, *least)], 2)
    made = policies.offsets(evidence)
    assert made.objects.tolist() == [0] * said
    assert np.allclose(made.edges, [[0, 0, 0, 100 / height - 1]])


def test_either_side_of_strays():
    """Twelve of up to 5 pixels, few of 6 to 8, and the others larger."""

    def limit(strays_of=12, near=6, larger=12, rest=1000, side=5.0):
        sides = [side] * strays_of + [side + 2] * near + [2 * side] * larger + [100.0] * rest
        return strays.limit_of(np.array(sides))

    assert limit(near=1) == 5
    assert limit(strays_of=10, near=0) == 5
    assert limit(strays_of=9, near=0) is None
    assert limit(strays_of=30, near=8, larger=16) == 5
    assert limit(strays_of=30, near=8, larger=15) is None  # numbers do not rise again
    assert limit(strays_of=15, near=8, larger=50) is None  # less than twice as many as beyond
    assert limit(strays_of=15, near=0, larger=30, rest=15) == 5  # a quarter of all
    assert limit(strays_of=16, near=0, larger=30, rest=15) is None
    assert limit(near=0, side=32.0) == 32
    assert limit(near=0, side=33.0) is None
    assert limit(strays_of=12, near=5) is None  # by chance


@pytest.mark.parametrize(("balls", "large", "said"), [(7, 10, True), (8, 10, False), (8, 54, False), (8, 55, True)])
def test_a_category_of_small_objects_is_no_accident(balls, large, said):
    """Balls are half of fifteen small objects, or more, which is 1.5 times their share of all 175 objects."""
    boxes = np.array([(10.0, 10, 3, 3)] * 15 + [(10, 10, 11, 11)] * 60 + [(0, 0, 80, 80)] * 100)
    label = np.concatenate([np.arange(15) >= balls, np.arange(160) >= large]).astype(int) + 1
    label[balls:15] = np.arange(15 - balls) % 5 + 2
    truth = GroundTruth.from_arrays(
        image_ids=np.arange(175), category_ids=label, boxes=boxes, images=np.arange(175), categories=np.arange(1, 8)
    )
    assert (strays.strays(side_of(truth)) is not None) is said


# ----------------------------------------------------------------------------------------------- parts, images, the border


def border(share, images=200):
    """A scene in which every object has a detection, and a part whose labels leave out a share of those at the border."""
    rng = np.random.default_rng(0)
    truth, found = [], []
    for image in range(images):
        for n in range(4):
            box = [0 if n < 2 else 300 * (n - 2) + int(rng.integers(100, 200)), *rng.integers(20, 90, 3).tolist()]
            box[1] += 200 * (n % 2)
            found.append({"image_id": image, "category_id": 1, "bbox": box, "score": float(rng.random())})
            if not (50 <= image < 100 and n < 2 and rng.random() < share):
                truth.append(
                    {"id": len(truth) + 1, "image_id": image, "category_id": 1, "bbox": box, "area": 1, "iscrowd": 0}
                )
    document = {
        "images": [{"id": image, "width": 640, "height": 480} for image in range(images)],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{**one, "area": one["bbox"][2] * one["bbox"][3]} for one in truth],
    }
    return document, found


def test_labels_without_objects_at_the_border():
    made = {one.code: one for one in check(*border(1.0)).findings}
    says = made["unlabelled"].says
    assert (
        "detections at most 2 pixels from the border of their image, images 51 to 99, in the order of ids: 100% of"
        in says
    )
    assert says.endswith("; of the objects there 0% are such, elsewhere 50%")
    assert "unlabelled" not in {one.code for one in check(*border(0.0)).findings}


def test_kinds_of_boxes_have_limits():
    boxes, sizes = (
        np.array([[2.0, 50, 9, 22], [2.01, 50, 9, 22.3], [50, 50, 48, 8.4], [50, 50, 47.9, 8.3]]),
        np.full((4, 2), 100.0),
    )
    edge, small, large = parts.of_kinds(boxes, sizes, np.array([100.0, 200, 300, 400, 500])).values()
    assert edge.tolist() == [True, False, True, False]
    assert not parts.of_kinds(boxes, np.full((4, 2), np.inf), np.ones(4))[
        "at most 2 pixels from the border of their image"
    ].any()
    assert small.tolist() == [True, False, False, False]  # below 200
    assert large.tolist() == [False, False, True, False]  # above 400


def test_a_part_is_named_once():
    """Two responses name overlapping ranges of one category: the wider one is said, and a cause stays."""

    def of(code, label, start, stop, said):
        part = parts.Part((np.arange(100) >= start) & (np.arange(100) < stop), "", np.zeros(0))
        return parts._PartFindings(code, label, part, [SimpleNamespace(code=said)])

    first = of("misplaced", 1, 10, 30, "misplaced")
    for other, wanted in (
        (of("misplaced", 1, 5, 35, "misplaced"), [1]),  # wider
        (of("misplaced", 1, 12, 20, "misplaced"), [0]),
        (of("misplaced", 1, 20, 50, "misplaced"), [1]),  # half of the first
        (of("misplaced", 1, 21, 50, "misplaced"), [0, 1]),
        (of("misplaced", 2, 5, 35, "misplaced"), [0, 1]),
        (of("unlabelled", 1, 5, 35, "unlabelled"), [0, 1]),
    ):
        said = [first]
        parts._add(said, other)
        assert [id(one) for one in said] == [id((first, other)[at]) for at in wanted]
    known = of("misplaced", 1, 10, 30, "scaled_boxes")
    said = [known]
    parts._add(said, of("misplaced", 1, 5, 35, "misplaced"))
    assert said == [known]


def test_whole_images_are_not_one_image():
    """Three objects of different classes that are the whole image, on images of one size."""
    data = copy.deepcopy(scene(0, "crowded")).data()
    for image in data.truth["images"][:9]:
        data.truth["annotations"] = [one for one in data.truth["annotations"] if one["image_id"] != image["id"]]
        image["width"], image["height"] = 640, 480
        data.truth["annotations"] += [
            {"id": 10**6 + 10 * image["id"] + n, "image_id": image["id"], "category_id": n, "bbox": [0, 0, 640, 480],
             "area": 640 * 480, "iscrowd": 0} for n in (1, 2, 3)
        ]  # fmt: skip
    assert "same_image_twice" not in check(data.truth, data.found).codes
    far = 10**7
    train = {
        "categories": data.truth["categories"],
        "images": [{**one, "id": one["id"] + far, "file_name": f"{one['id']}.png"} for one in data.truth["images"][:9]],
        "annotations": [{**one, "image_id": one["image_id"] + far} for one in data.truth["annotations"][-27:]],
    }
    assert "leakage" not in check(data.truth, train=train).codes


@pytest.mark.parametrize(("count", "said"), [(19, True), (20, False)])
def test_boxes_that_many_images_share_do_not_tell_them(count, said):
    boxes = np.array([(10.0, 10, 20, 20), (40, 40, 9, 9), (60, 10, 7, 30)] * count)
    truth = GroundTruth.from_arrays(
        image_ids=np.repeat(np.arange(count), 3), category_ids=np.ones(3 * count, int), boxes=boxes,
        images=np.arange(count), categories=[1], image_sizes=np.full((count, 2), 100),
    )  # fmt: skip
    assert image_ids.tells(side_of(truth)).all() == said


def test_pixels_count_as_the_format_counts_them(tmp_path):
    """In VOC's files equal corners are a box of one pixel: it is tiny, and not empty."""
    (tmp_path / "truth").mkdir()
    for at in range(40):
        corners = (7, 7, 7, 9) if at < 12 else (7, 7, 8, 30) if at < 20 else (5, 5, 60, 50)
        box = "".join(f"<{k}>{v}</{k}>" for k, v in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True))
        (tmp_path / "truth" / f"{at:06d}.xml").write_text(
            f"<annotation><filename>{at:06d}.jpg</filename><size><width>100</width><height>100</height><depth>3</depth></size>"
            f"<object><name>cat</name><difficult>0</difficult><bndbox>{box}</bndbox></object></annotation>"
        )
    made = {one.code: one for one in check(tmp_path / "truth").findings}
    assert "zero_sized_boxes" not in made
    assert made["tiny_objects"].count == 12
    assert made["tiny_objects"].says.endswith("with a side of less than 2 pixels: where both end pixels count")


@pytest.mark.parametrize(("objects", "off", "said"), [(2, 0, True), (1, 0, False), (2, 1, False)])
def test_images_that_are_there_mirrored_are_counted_again(objects, off, said):
    data = copy.deepcopy(scene(0, "sparse")).data()
    held = by_image(data.truth["annotations"])
    some = [one for one in data.truth["images"] if len(held.get(one["id"], ())) >= 2][:30]
    for image in some:
        copied = {**image, "id": image["id"] + 10**7, "file_name": f"flipped_{image['id']}.jpg"}
        data.truth["images"].append(copied)
        data.truth["annotations"] += [
            {**o, "id": o["id"] + 10**7, "image_id": copied["id"],
             "bbox": [round(image["width"] - o["bbox"][0] - o["bbox"][2] + off, 2), *o["bbox"][1:]]}
            for o in held[image["id"]][:objects]
        ]  # fmt: skip
        for one in held[image["id"]][objects:]:
            data.truth["annotations"].remove(one)
    made = {one.code: one for one in check(data.truth).findings}.get("same_image_twice")
    assert (made is not None) is said
    if said:
        assert made.count == len(some)
        assert made.says.endswith(": 30 by their objects, which are mirrored")
        assert set(made.records) <= {one["id"] + 10**7 for one in some}
