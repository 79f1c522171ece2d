"""The fixtures of videos: segments of time as ActivityNet and THUMOS14 have them, and tracks of masks as YouTube-VIS has."""

from __future__ import annotations

import json

LABELS = ("Archery", "Diving", "Long jump", "Surfing")
CLASSES = {7: "BaseballPitch", 26: "Diving", 97: "Shotput"}
SIZE = WIDTH, HEIGHT = 128, 72


def near(dice, start, end):
    """A segment near another one."""
    spread = (end - start) * dice.pick([(0.02, 3), (0.08, 5), (0.3, 2)], 1)[0]
    return sorted((start + dice.bell(spread), end + dice.bell(spread)))


def make_activitynet(dice):
    """Ground truth and results; some scores are tied, and one video is in no subset that is scored."""
    database, results = {}, {}
    for number in range(24):
        video, duration = f"v_{number:04d}", dice.between(40, 200)
        annotations, found = [], []
        for _ in range(dice.whole(1, 4)):
            start = dice.between(0, duration * 0.8)
            end = min(duration, start + dice.between(3, duration * 0.4))
            label = LABELS[dice.whole(0, 3)]
            annotations.append({"segment": [round(start, 2), round(end, 2)], "label": label})
            for _ in range(dice.whole(0, 3)):
                segment = [round(one, 3) for one in near(dice, start, end)]
                of = label if dice.chance(0.9) else LABELS[dice.whole(0, 3)]
                found.append({"label": of, "segment": segment, "score": round(0.2 + 0.8 * dice.random(), 2)})
        for _ in range(dice.whole(0, 3)):
            start = dice.between(0, duration)
            segment = [round(start, 3), round(start + dice.between(1, 30), 3)]
            found.append({"label": LABELS[dice.whole(0, 3)], "segment": segment, "score": round(dice.random() / 2, 2)})
        subset = "training" if number == 20 else "validation"
        database[video] = {"subset": subset, "duration": round(duration, 2), "annotations": annotations}
        results[video] = found
    return {"version": "made up", "taxonomy": [], "database": database}, {
        "version": "made up",
        "results": results,
        "external_data": {},
    }


def make_thumos(dice):
    """The files by their names: a file per class, the ambiguous segments, the list of classes, and detections."""
    files = {name: [] for name in (*CLASSES.values(), "Ambiguous")}
    found = []
    for number in range(14):
        video = f"video_test_{number:07d}"
        for name, lines in files.items():
            for _ in range(dice.whole(0, 3 if name != "Ambiguous" else 1)):
                start = dice.between(0, 180)
                end = start + dice.between(2, 12)
                lines.append(f"{video}  {start:.1f} {end:.1f}")
                of = next((one for one, known in CLASSES.items() if known == name), 26)
                for _ in range(dice.whole(0, 3)):
                    segment = " ".join(f"{one:.2f}" for one in near(dice, start, end))
                    found.append(f"{video} {segment} {of} {0.1 + 0.9 * dice.random():.4f}")
    out = {f"annotation/{name}_test.txt": "\n".join([*lines, ""]) for name, lines in files.items()}
    out["annotation/detclasslist.txt"] = "".join(f"{number} {name}\n" for number, name in CLASSES.items())
    return {**out, "detections.txt": "\n".join([*found, ""])}


def make_tracks(dice, encode):
    """Ground truth and results; `encode` makes the run-length code of a box of whole pixels."""
    videos, annotations, results = [], [], []
    names = ("person", "dog", "kite")
    for number in range(1, 13):
        length = dice.whole(3, 6)
        files = [f"{number:02d}/{frame:05d}.jpg" for frame in range(length)]
        size = {"width": WIDTH, "height": HEIGHT, "length": length}
        videos.append({"id": number, **size, "file_names": files})
        for _ in range(dice.whole(1, 4)):
            category, crowd = dice.whole(1, 3), int(dice.chance(0.08))
            boxes = walk(dice, length)
            track = {"video_id": number, "category_id": category}
            own = {"id": len(annotations) + 1, **track, "iscrowd": crowd}
            areas = [None if box is None else box[2] * box[3] for box in boxes]
            annotations.append({**own, "areas": areas, "segmentations": [box and encode(box) for box in boxes]})
            for _ in range(dice.whole(0, 3)):
                shift = dice.whole(-6, 6), dice.whole(-4, 4)
                moved = [box if box is None else clipped(box, *shift) for box in boxes]
                moved = [None if dice.chance(0.08) else box for box in moved]
                score = round(0.1 + 0.9 * dice.random(), 3)
                results.append({**track, "score": score, "segmentations": [box and encode(box) for box in moved]})
    categories = [{"id": at, "name": name} for at, name in enumerate(names, 1)]
    return {"videos": videos, "categories": categories, "annotations": annotations}, results


def walk(dice, length):
    """The box of an object in each frame, None where it is absent."""
    w, h = dice.whole(10, 60), dice.whole(10, 40)
    x, y, step = dice.whole(0, WIDTH - w), dice.whole(0, HEIGHT - h), dice.whole(-3, 3)
    return [None if dice.chance(0.1) else clipped((x, y, w, h), frame * step, 0) for frame in range(length)]


def clipped(box, right, down):
    """A box that is shifted, but not beyond the frame."""
    x, y, w, h = box
    return min(max(x + right, 0), WIDTH - w), min(max(y + down, 0), HEIGHT - h), w, h


def make(dice, encode):
    """Every fixture of videos: its path below the fixtures' directory -> its text."""
    truth, results = make_activitynet(dice)
    document, tracks = make_tracks(dice, encode)
    thumos = {f"temporal/thumos14/{name}": text for name, text in make_thumos(dice).items()}
    return {
        "temporal/activitynet.json": json.dumps(truth, indent=1) + "\n",
        "temporal/activitynet_results.json": json.dumps(results, indent=1) + "\n",
        **thumos,
        "ytvis/ground_truth.json": json.dumps(document) + "\n",
        "ytvis/results.json": json.dumps(tracks) + "\n",
    }
