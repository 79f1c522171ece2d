"""Files of annotation tools and data sets: each holds the same objects and detections, and gives the same tables."""

import csv
import io
import json

import numpy as np
import pytest

import detmap
from detmap.errors import InputError, OptionError


def write(path, text):
    """Write a file, with the folders around it, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


#: Images with width and height, the last without objects; objects; detections with scores. Corners in pixels.
IMAGES = {"a.jpg": (640, 480), "b.jpg": (500, 375), "c.jpg": (100, 50)}
OBJECTS = [
    ("a.jpg", "car", 64, 96, 320, 384),
    ("a.jpg", "dog", 10, 20, 110, 220),
    ("b.jpg", "car", 250, 75, 375.5, 300),
]
FOUND = [("a.jpg", "car", 0.875, 60, 100, 330, 380), ("b.jpg", "car", 0.5, 240, 75, 375, 299.5)]


def dumped(value):
    return json.dumps(value, indent=1)


def by_image(rows):
    return {image: [row for row in rows if row[0] == image] for image in IMAGES}


def bdd(rows, scored):
    def label(number, row):
        x1, y1, x2, y2 = row[-4:]
        box = {"x1": x1, "y1": y1, "x2": x2 - 1, "y2": y2 - 1}
        return {"id": str(number), "category": row[1], "box2d": box, **({"score": row[2]} if scored else {})}

    return [
        {
            "name": image,
            "attributes": {"weather": "clear"},
            "labels": [label(k, row) for k, row in enumerate(own)] or None,
        }
        for image, own in by_image(rows).items()
    ]


def createml(rows):
    def thing(_, label, x1, y1, x2, y2):
        sides = {"x": (x1 + x2) / 2, "y": (y1 + y2) / 2, "width": x2 - x1, "height": y2 - y1}
        return {"label": label, "coordinates": sides}

    return [{"image": image, "annotations": [thing(*row) for row in own]} for image, own in by_image(rows).items()]


def darknet(rows):
    def thing(image, label, score, x1, y1, x2, y2):
        width, height = IMAGES[image]
        sides = {"center_x": (x1 + x2) / 2 / width, "center_y": (y1 + y2) / 2 / height}
        sides |= {"width": (x2 - x1) / width, "height": (y2 - y1) / height}
        return {"class_id": 0, "name": label, "relative_coordinates": sides, "confidence": score}

    return [
        {"frame_id": k, "filename": f"C:\\data\\{image}", "objects": [thing(*row) for row in own]}
        for k, (image, own) in enumerate(by_image(rows).items(), 1)
    ]


def labelme(image, rows):
    width, height = IMAGES[image]
    shapes = [
        {"label": row[1], "points": [[row[4], row[5]], [row[2], row[3]]], "shape_type": "rectangle", "flags": {}}
        for row in rows
    ]
    shapes.append({"label": "path", "points": [[0, 0], [5, 5]], "shape_type": "line"})
    return {
        "version": "5.4.1",
        "flags": {},
        "shapes": shapes,
        "imagePath": f"..\\images\\{image}",
        "imageData": None,
        "imageHeight": height,
        "imageWidth": width,
    }


def cvat(rows):
    def box(_, label, x1, y1, x2, y2):
        return f'<box label="{label}" occluded="0" xtl="{x1}" ytl="{y1}" xbr="{x2}" ybr="{y2}" z_order="0"></box>'

    images = "".join(
        f'<image id="{k}" name="{image}" width="{IMAGES[image][0]}" height="{IMAGES[image][1]}">'
        f"{''.join(box(*row) for row in own)}</image>"
        for k, (image, own) in enumerate(by_image(rows).items())
    )
    return f'<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version>{images}</annotations>'


def regions(rows):
    return [
        {
            "shape_attributes": {"name": "rect", "x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1},
            "region_attributes": {"label": label},
        }
        for _, label, x1, y1, x2, y2 in rows
    ]


def via(rows, version):
    def listed(own):
        return {str(k): one for k, one in enumerate(regions(own))} if version == 1 else regions(own)

    files = {
        f"{image}99": {"filename": image, "size": 99, "regions": listed(own), "file_attributes": {}}
        for image, own in by_image(rows).items()
    }
    return {"_via_settings": {}, "_via_img_metadata": files} if version == 0 else files


SHAPES = ["region_shape_attributes", "region_attributes"]


def via_csv(rows):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["filename", "file_size", "file_attributes", "region_count", "region_id", *SHAPES])
    for image, own in by_image(rows).items():
        for k, one in enumerate(regions(own)):
            cells = json.dumps(one["shape_attributes"]), json.dumps(one["region_attributes"])
            writer.writerow([image, 9, "{}", len(own), k, *cells])
        if not own:
            writer.writerow([image, 9, "{}", 0, 0, "{}", "{}"])
    return out.getvalue()


def tf_csv(rows, shares):
    lines = ["filename,width,height,class,xmin,ymin,xmax,ymax"]
    for image, label, *corners in rows:
        width, height = IMAGES[image]
        sides = (width, height, width, height) if shares else (1, 1, 1, 1)
        lines.append(
            ",".join(map(str, [image, width, height, label, *(c / s for c, s in zip(corners, sides, strict=True))]))
        )
    return "\n".join(lines)


def truth_files(folder):
    """Write the objects in every format that holds them, and return a path by name."""
    made = {
        "bdd.json": dumped(bdd(OBJECTS, scored=False)),
        "frames.json": dumped({"frames": bdd(OBJECTS, scored=False), "config": {}}),
        "createml.json": dumped(createml(OBJECTS)),
        "cvat.xml": cvat(OBJECTS),
        "via1.json": dumped(via(OBJECTS, 1)),
        "via2.json": dumped(via(OBJECTS, 2)),
        "project.json": dumped(via(OBJECTS, 0)),
        "via.csv": via_csv(OBJECTS),
        "tf.csv": tf_csv(OBJECTS, shares=False),
    }
    for image, own in by_image(OBJECTS).items():
        made[f"labelme/{image[:-4]}.json"] = dumped(labelme(image, own))
    for name, text in made.items():
        write(folder / name, text)
    return {name.partition("/")[0]: folder / name.partition("/")[0] for name in made}


def rows_of(table):
    """Return image, class, and corners of each record, sorted."""
    boxes = table.boxes.copy()
    if table.box_sizes:
        boxes[:, 2:] += boxes[:, :2]
    names = getattr(table, "category_names", None) or [str(one) for one in table.categories.ids.tolist()]
    images = table.images.values[table.images.codes].tolist()
    labels = [names[code] for code in table.categories.codes.tolist()]
    return sorted(zip((str(one).partition(".")[0] for one in images), labels, map(tuple, boxes.tolist()), strict=True))


def test_objects_are_the_same_in_every_format(tmp_path):
    expected = sorted((image[:-4], label, tuple(map(float, corners))) for image, label, *corners in OBJECTS)
    found = {}
    for name, path in truth_files(tmp_path).items():
        table = detmap.read(path, "ground_truth")
        assert rows_of(table) == expected, name
        assert len(table.images.values) == (2 if name == "tf.csv" else 3), name
        found[name] = detmap.evaluate(path, write(tmp_path / "bdd_found.json", dumped(bdd(FOUND, scored=True))))["AP"]
    assert found.pop("tf.csv") == found["cvat.xml"]
    assert len(set(found.values())) == 1


def test_shares_in_a_table_become_pixels_by_its_sizes_and_are_noticed(tmp_path):
    table = detmap.read(write(tmp_path / "tf.csv", tf_csv(OBJECTS, shares=True)), "ground_truth")
    assert table.notices["shares_made_pixels"] == 3
    plain = detmap.read(write(tmp_path / "pixels.csv", tf_csv(OBJECTS, shares=False)), "ground_truth")
    np.testing.assert_allclose(table.boxes, plain.boxes, rtol=1e-15)
    assert table.images.sizes.tolist() == [[480, 640], [375, 500]]


def test_sizes_of_boxes_are_not_taken_for_those_of_images(tmp_path):
    text = "image,class,x1,y1,x2,y2,width,height\na,cat,10,20,30,60,20,40\nb,cat,5,5,9,9,4,4\n"
    table = detmap.read(write(tmp_path / "own.csv", text), "ground_truth")
    assert table.images.sizes is None
    assert rows_of(table) == [("a", "cat", (10, 20, 30, 60)), ("b", "cat", (5, 5, 9, 9))]


def test_detections_are_the_same_in_every_format(tmp_path):
    truth = detmap.read(write(tmp_path / "truth.xml", cvat(OBJECTS)), "ground_truth")
    strings = {image: [] for image in IMAGES}
    for image, label, score, *corners in FOUND:
        strings[image].append(f"{label} {score} {' '.join(map(str, corners))}")
    text = "image_id,PredictionString\n" + "".join(f"{image},{' '.join(own)}\n" for image, own in strings.items())
    files = {
        "bdd.json": dumped(bdd(FOUND, scored=True)),
        "result.json": dumped(darknet(FOUND)).replace("\\\\", "\\"),
        "kaggle.csv": text,
    }
    expected = sorted((image[:-4], label, tuple(map(float, corners))) for image, label, _, *corners in FOUND)
    for name, text in files.items():
        found = detmap.read(write(tmp_path / name, text), "detections", ground_truth=truth)
        if name == "result.json":
            assert [row[:2] for row in rows_of(found)] == [row[:2] for row in expected]
            np.testing.assert_allclose([row[2] for row in rows_of(found)], [row[2] for row in expected], rtol=1e-14)
        else:
            assert rows_of(found) == expected, name
        assert sorted(found.scores.tolist()) == [0.5, 0.875]


def test_outlines_are_masks_and_turned_boxes_are_turned(tmp_path):
    turned = '<box label="dog" xtl="200" ytl="100" xbr="300" ybr="150" rotation="90.0"/>'
    polygon = '<polygon label="cat" points="10,20;110,20;60,220"/><polyline label="cat" points="1,2;3,4"/>'
    path = write(
        tmp_path / "cvat.xml",
        f'<annotations><image id="0" name="s/a.jpg" width="640" height="480">{turned}{polygon}</image></annotations>',
    )
    boxes = detmap.read(path, "ground_truth")
    assert rows_of(boxes) == [("s/a", "cat", (10, 20, 110, 220)), ("s/a", "dog", (225, 75, 275, 175))]
    assert boxes.notices["unread_records"] == 1
    assert boxes.notices["turned_boxes"] == 1
    masks = detmap.read(path, "ground_truth", iou_type="segm")
    assert masks.shapes["segm"].areas().tolist() == [5000, 10000]
    with pytest.raises(InputError, match="has 3 points where a rotated box has 4"):
        detmap.read(path, "ground_truth", iou_type="rotated")
    circle = {"label": "x", "points": [[50, 50], [53, 54]], "shape_type": "circle"}
    document = {"version": "5", "shapes": [circle], "imagePath": "a.png", "imageHeight": 99, "imageWidth": 99}
    path = write(tmp_path / "a.json", dumped(document))
    assert rows_of(detmap.read(path, "ground_truth")) == [("a", "x", (45, 45, 55, 55))]
    area = detmap.read(path, "ground_truth", iou_type="segm").shapes["segm"].areas()[0]
    assert abs(area - np.pi * 25) < 5


def test_masks_need_the_sizes_of_images(tmp_path):
    path = write(tmp_path / "via.json", dumped(via(OBJECTS, 2)))
    with pytest.raises(InputError, match=r"masks need the size of their image.*--image-sizes"):
        detmap.read(path, "ground_truth", iou_type="segm")
    assert len(detmap.read(path, "ground_truth", iou_type="segm", image_sizes="640x480").shapes["segm"]) == 3


def mot(folder, side, text, info="seqLength=3\nimWidth=1920\nimHeight=1080\n"):
    write(folder / "seqinfo.ini", f"[Sequence]\nname=x\n{info}")
    write(folder / side / f"{side}.txt", text)


TRACKS = "1,1,900,500,100,240,1,1,0.75\n2, 1,899,499,100,240,1,1,0.7\n1,2,300,400,80,200,0,8,1\n1,3,1,1,9,9,0,3,1\n"


def test_sequences_count_from_one_and_keep_frames_without_lines(tmp_path):
    mot(tmp_path / "S1", "gt", TRACKS)
    for path in (tmp_path, tmp_path / "S1", tmp_path / "S1/gt", tmp_path / "S1/gt/gt.txt"):
        table = detmap.read(path, "ground_truth")
        assert table.images.values.tolist() == ["S1/000001", "S1/000002", "S1/000003"]
        assert table.images.sizes.tolist() == [[1080, 1920]] * 3
        assert table.boxes.tolist() == [[899, 499, 100, 240], [898, 498, 100, 240], [299, 399, 80, 200]]
        assert (table.crowd.tolist(), table.category_names) == ([False, False, True], ("pedestrian",))
        assert table.notices["unread_records"] == 1
    other = write(tmp_path / "mine.txt", "1,-1,900,500,100,240,-0.5,-1,-1,-1\n3,-1,1,1,50,50,2.25,-1,-1,-1\n")
    found = detmap.read(other, "detections", ground_truth=table)
    assert (found.images.values.tolist(), found.scores.tolist()) == (["S1/000001", "S1/000003"], [-0.5, 2.25])
    assert detmap.evaluate(tmp_path / "S1", other)["AP50"] == pytest.approx(0.25247524752475)


def test_tables_without_titles_are_no_tracks(tmp_path):
    text = "1,1,0.5,10,20,30,40\n2,1,0.25,1,2,3,4\n"
    found = detmap.read(write(tmp_path / "f.csv", text), "detections", columns="image,category,score,x1,y1,x2,y2")
    assert found.boxes.tolist() == [[10, 20, 30, 40], [1, 2, 3, 4]]
    with pytest.raises(InputError, match="is text of no format"):
        detmap.read(write(tmp_path / "f.txt", "inf,1,0.5,10,20,30,40\n"), "detections")


def wider(folder):
    faces = (
        "0--P/0_P_1.jpg\n2\n300 200 40 50 2 0 0 0 2 0 \n50 60 8 9 0 0 0 1 0 0 \n"
        "0--P/0_P_2.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \n1--Q/1_Q_1.jpg\n1\n1 2 3 4 0 0 0 0 0 0\n"
    )
    write(folder / "wider_face_val_bbx_gt.txt", faces)
    write(folder / "found/0--P/0_P_1.txt", "0_P_1\n2\n301.5 199.5 41 49.5 0.998\n10 20 30 40 0.05\n")
    write(folder / "found/0--P/0_P_2.txt", "0_P_2.jpg\n0\n")
    write(folder / "found/1--Q/1_Q_1.txt", "1_Q_1\n1\n1 2 3 4 0.5\n")
    return folder / "wider_face_val_bbx_gt.txt", folder / "found"


def test_faces_stand_in_blocks(tmp_path):
    faces, found = wider(tmp_path)
    truth = detmap.read(faces, "ground_truth")
    assert truth.images.values.tolist() == ["0--P/0_P_1.jpg", "0--P/0_P_2.jpg", "1--Q/1_Q_1.jpg"]
    assert (truth.boxes.tolist()[1], truth.crowd.tolist()) == ([50, 60, 8, 9], [False, True, False])
    table = detmap.read(found, "detections", ground_truth=truth)
    assert table.images.values[table.images.codes].tolist() == ["0--P/0_P_1.jpg"] * 2 + ["1--Q/1_Q_1.jpg"]
    assert detmap.evaluate(faces, found)["AP50"] == 1
    alone = detmap.read(found / "1--Q", "detections", ground_truth=truth)
    assert alone.images.values.tolist() == ["1--Q/1_Q_1.jpg"]


def test_prediction_strings_are_read_by_their_groups(tmp_path):
    wheat = write(tmp_path / "wheat.csv", "image_id,PredictionString\nimg1,1.0 0 0 50 50 0.5 801 240 60 30\nimg2,\n")
    found = detmap.read(wheat, "detections")
    assert (found.boxes.tolist(), found.scores.tolist()) == ([[0, 0, 50, 50], [801, 240, 60, 30]], [1, 0.5])
    assert found.notices["read_as_score_box"] == 1
    chest = write(
        tmp_path / "chest.csv", "image_id,PredictionString\nimg1,3 0.9 700 1400 1600 1800\nimg2,14 1 0 0 1 1\n"
    )
    found = detmap.read(chest, "detections")
    assert rows_of(found) == [("img1", "3", (700, 1400, 1600, 1800)), ("img2", "14", (0, 0, 1, 1))]
    group = "0 0.5 0 0 9 9"
    both = write(tmp_path / "both.csv", f"image_id,PredictionString\na,{' '.join([group.replace('9', '1')] * 5)}\n")
    with pytest.raises(InputError, match=r"can be read in two ways.*--columns"):
        detmap.read(both, "detections")
    assert len(detmap.read(both, "detections", columns="category,score,x1,y1,x2,y2")) == 5
    named = write(tmp_path / "named.csv", f"image_id,PredictionString\na,{' '.join(['cat 0.5 0 0 1 1'] * 5)}\n")
    assert rows_of(detmap.read(named, "detections")) == [("a", "cat", (0, 0, 1, 1))] * 5
    truth = 'image_id,width,height,bbox,source\nimg1,1024,1024,"[801.0, 240.0, 60.0, 30.0]",s\n'
    table = detmap.read(write(tmp_path / "train.csv", truth), "ground_truth")
    assert rows_of(table) == [("img1", "object", (801, 240, 861, 270))]
    assert (table.images.sizes.tolist(), table.notices["unnamed_class"]) == ([[1024, 1024]], 1)
    assert detmap.read(tmp_path / "train.csv", "ground_truth", classes=["wheat"]).category_names == ("wheat",)
    result = detmap.evaluate(table, detmap.read(wheat, "detections", ground_truth=table, unknown_images="ignore"))
    assert result["AP50"] == 0.5


def test_rows_without_a_box_are_images_without_objects(tmp_path):
    text = (
        "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max\n"
        "img1,Cardiomegaly,3,R10,700.0,1400.0,1600.0,1800.0\nimg2,No finding,14,R11,,,,\n"
    )
    table = detmap.read(write(tmp_path / "train.csv", text), "ground_truth")
    assert (table.images.values.tolist(), len(table), table.category_names) == (["img1", "img2"], 1, ("Cardiomegaly",))
    assert table.notices["rows_without_box"] == 1


def test_names_of_files_stand_for_ids_in_results(tmp_path):
    images = [{"id": 7, "file_name": "train/cat_1.jpg"}, {"id": 9, "file_name": "train/dog.jpg"}]
    truth = {"images": images, "categories": [{"id": 1, "name": "cat"}]}
    truth["annotations"] = [
        {"id": 1, "image_id": 7, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0},
    ]
    path = write(tmp_path / "gt.json", dumped(truth))
    result = {"category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5}
    found = write(
        tmp_path / "predictions.json", dumped([{"image_id": "cat_1", **result}, {"image_id": "dog", **result}])
    )
    assert detmap.evaluate(path, found)["AP"] == pytest.approx(1.0)
    write(tmp_path / "predictions.json", dumped([{"image_id": "cat_1", **result}, {"image_id": "cow", **result}]))
    with pytest.raises(InputError, match="image ids such as"):
        detmap.evaluate(path, found)


def test_darknet_lists_images_in_obj_data(tmp_path):
    write(tmp_path / "obj.data", "classes= 2\nvalid  = data/test.txt\nnames = data/obj.names\nbackup = b/\n")
    write(tmp_path / "data/obj.names", "car\ndog\n")
    write(tmp_path / "data/test.txt", "data/obj/a.jpg\ndata/obj/c.jpg\n")
    write(tmp_path / "data/obj/a.txt", "1 0.5 0.5 0.25 0.5\n")
    table = detmap.read(tmp_path / "obj.data", "ground_truth", image_sizes="64x32")
    assert (table.boxes.tolist(), table.category_names) == ([[24, 8, 16, 16]], ("car", "dog"))
    assert table.images.values.tolist() == ["a", "c"]
    write(tmp_path / "obj.data", "classes 2\n")
    with pytest.raises(InputError, match=r"line 1: is not key = value \(got 'classes 2'\)"):
        detmap.read(tmp_path / "obj.data", "ground_truth", image_sizes="64x32")


BOX = {"x1": 0, "y1": 0, "x2": 9, "y2": 9}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "bdd.json",
            dumped([{"name": "a", "labels": [{"category": "x", "box2d": {**BOX, "x1": "1"}}]}]),
            r"\[0\].labels",
        ),
        ("bdd.json", dumped([{"name": "", "labels": []}]), "frame 0: the name of the image is missing"),
        (
            "bdd.json",
            dumped([{"name": "a", "labels": [{"category": "", "box2d": BOX}]}]),
            "label 0: the class is missing",
        ),
        (
            "bdd.json",
            dumped([{"name": "a", "labels": [{"category": "x", "box2d": {**BOX, "x2": -9}}]}]),
            "label 0.*negative",
        ),
        ("bdd.json", '[{"name": "a", "labels": [', "is not valid JSON.*complete"),
        ("bdd.json", '[{"name": "a", "labels": ' + "[" * 5000, "expected `object`, got `array`"),
        ("cvat.xml", "<annotations><image", "is not valid XML"),
        ("cvat.xml", '<!DOCTYPE x [<!ENTITY a "b">]><annotations></annotations>', "declares a document type"),
        ("cvat.xml", "<annotations><track id='0'/></annotations>", "holds tracks of a video.*export"),
        ("cvat.xml", cvat(OBJECTS).replace("320", "wide"), r"field 'xbr': must be a finite number \(got 'wide'\)"),
        ("via.json", dumped(via(OBJECTS, 2)).replace('"width"', '"w"'), "field 'width': is missing"),
        ("via.json", dumped(via(OBJECTS, 2)).replace('"label"', '"kind": "x", "sort"'), "which attribute is the class"),
        ("create.json", dumped(createml(OBJECTS)).replace('"x"', '"left"', 1), "missing required field `x`"),
        ("faces.txt", "0--P/a.jpg\n2\n1 2 3 4 0 0 0 0 0 0\n", "says that 2 lines follow, and there are 1"),
        ("faces.txt", "0--P/a.jpg\n1\n1 2 3 4\n", "has 4 fields where 10 are expected"),
        ("faces.txt", "0--P/a.jpg\n1\n1 2 3 4 0 0 0 0 0 0\nb.jpg\nmany\n", "line 5: must be the number of lines"),
        (
            "labelme.json",
            '{"version": "5", "shapes": [{"label": "x", "points": [[1, 2]]}]}',
            "a polygon has 1 points where 3",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(name, text, problem, tmp_path):
    with pytest.raises(InputError, match=problem) as error:
        detmap.read(write(tmp_path / name, text), "ground_truth")
    assert "\n" not in str(error.value)
    assert name in str(error.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0,1,2,3,4,5,1,1,1\n", "the frame must be a whole number of 1 or more"),
        ("9,1,2,3,4,5,1,1,1\n", "the frame is beyond the 3 that seqinfo.ini says"),
        ("1,1,2,3,4,5,1,1.5,1\n", "the class must be a whole number"),
        ("1,1,2,3,4\n", "has 5 fields where 7 to 10 are expected"),
        ("1,1,2,wide,4,5,1,1,1\n", r"must be a finite number \(got 'wide'\)"),
    ],
)
def test_what_is_wrong_with_a_track_is_said_with_its_line(text, problem, tmp_path):
    mot(tmp_path / "S1", "gt", text)
    with pytest.raises(InputError, match=f"gt.txt: line 1.*{problem}"):
        detmap.read(tmp_path / "S1", "ground_truth", format="mot")
    mot(tmp_path / "S1", "gt", TRACKS, "seqLength=99999999999\n")
    with pytest.raises(InputError, match="is no number of frames"):
        detmap.read(tmp_path / "S1", "ground_truth")


def test_one_name_is_needed_for_files_without_classes(tmp_path):
    path = write(tmp_path / "x.csv", "image,x,y,width,height\na,1,2,3,4\n")
    assert detmap.read(path, "ground_truth").category_names == ("object",)
    with pytest.raises(OptionError, match="names no classes, and 2 are given"):
        detmap.read(path, "ground_truth", classes=["a", "b"])


TRACKED = """0 -1 DontCare -1 -1 -10 220.00 180.00 250.50 210.00 -1000 -1000 -1000 -10 -1 -1 -1
0 0 Van 0 0 -1.80 300.00 160.00 450.00 290.00 2.00 1.80 4.40 -4.50 1.80 13.40 -2.10
2 0 Van 0 1 -1.80 310.00 160.00 450.00 290.00 2.00 1.80 4.40 -4.50 1.80 13.40 -2.10
2 1 Car 0.5 2 -1.80 10 20 30.5 40 2.00 1.80 4.40 -4.50 1.80 13.40 -2.10
"""


def test_labels_of_kittis_tracking(tmp_path):
    """Frames are images, those without lines too; a region of all classes is a crowd of each."""
    (tmp_path / "label_02").mkdir()
    (tmp_path / "label_02" / "0000.txt").write_text(TRACKED)
    (tmp_path / "label_02" / "0001.txt").write_text("")
    (tmp_path / "found").mkdir()
    lines = [line + " 0.75" for line in TRACKED.splitlines()[1:]]
    (tmp_path / "found" / "0000.txt").write_bytes("\r\n".join(lines).encode())
    truth = detmap.read(tmp_path / "label_02", "ground_truth")
    assert truth.images.ids.tolist() == ["0000/000000", "0000/000001", "0000/000002"]
    assert truth.categories.ids.tolist() == ["car", "van"]
    rows = zip(truth.images.codes.tolist(), truth.categories.codes.tolist(), truth.crowd.tolist(), strict=True)
    assert list(rows) == [(0, 1, False), (2, 1, False), (2, 0, False), (0, 1, True), (0, 0, True)]
    assert truth.boxes[2].tolist() == [10, 20, 30.5, 40]
    assert truth.fields["truncation"].tolist() == [0, 0, 0.5, -1, -1]
    assert truth.fields["occlusion"].tolist() == [0, 1, 2, -1, -1]
    found = detmap.read(tmp_path / "found", ground_truth=truth)
    assert found.scores.tolist() == [0.75] * 3
    assert detmap.evaluate(truth, found)["AP"] == 1.0
    assert len(detmap.read(tmp_path / "label_02" / "0000.txt", "ground_truth")) == 5
    made = detmap.convert(tmp_path / "label_02", tmp_path / "truth.json", role="ground_truth")
    assert made.lost == {"corners": 5}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("0 0 Van 0 0 -1.8 1 1 2 2 1 1 1 1 1 1", "line 1.*has 16 fields where 17"),
        ("0.5 0 Van 0 0 -1.8 1 1 2 2 1 1 1 1 1 1 1", "frame must be a whole number"),
        ("0 0 Van 0 0 x 1 1 2 2 1 1 1 1 1 1 1", "must be a finite number"),
        ("9999999 0 Van 0 0 1 1 1 2 2 1 1 1 1 1 1 1", "beyond any number of frames"),
    ],
)
def test_what_is_wrong_with_kittis_tracking(line, problem, tmp_path):
    (tmp_path / "0000.txt").write_text(line + "\n")
    with pytest.raises(InputError, match=problem):
        detmap.read(tmp_path, "ground_truth", format="kitti_tracking")


@pytest.mark.parametrize("kind", ["rotation", "oriented_rectangle", "rectangle"])
def test_four_corners_in_labelme(kind, tmp_path):
    shape = {"label": "x", "points": [[3, 1], [5, 3], [3, 5], [1, 3]], "shape_type": kind, "flags": {}}
    document = {
        "version": "5",
        "flags": {},
        "shapes": [shape],
        "imagePath": "a.jpg",
        "imageHeight": 8.0,
        "imageWidth": 9.0,
    }
    (tmp_path / "a.json").write_text(json.dumps(document))
    table = detmap.read(tmp_path / "a.json", "ground_truth")
    assert (table.boxes.tolist(), table.images.sizes.tolist()) == ([[1, 1, 4, 4]], [[8, 9]])


def test_ellipses_and_masks_in_cvat(tmp_path):
    (tmp_path / "a.xml").write_text(
        '<annotations><image id="0" name="a b.png" width="60" height="50">'
        '<ellipse label="x" cx="10" cy="10" rx="3" ry="4"/><ellipse label="x" cx="9" cy="9" rx="3" ry="4" rotation="30"/>'
        '<mask label="y" rle="2, 4, 2" left="3" top="4" width="4" height="2"/></image></annotations>'
    )
    table = detmap.read(tmp_path / "a.xml", "ground_truth")
    assert table.boxes.tolist() == [[7, 6, 13, 14], [3, 4, 7, 6]]
    assert table.notices["unread_records"] == 1
    masks = detmap.read(tmp_path / "a.xml", "ground_truth", iou_type="segm")
    assert (len(masks), masks.notices["unread_records"]) == (1, 2)


def test_the_last_image_of_wider_face_may_have_no_line_after_its_zero(tmp_path):
    path = tmp_path / "wider_face_train_bbx_gt.txt"
    path.write_text("0--Parade/a.jpg\n1\n1 2 3 4 0 0 0 0 0 0\n0--Parade/b.jpg\n0\n")
    table = detmap.read(path, "ground_truth", format="wider_face")
    assert table.images.ids.tolist() == ["0--Parade/a.jpg", "0--Parade/b.jpg"]
    assert table.boxes.tolist() == [[1, 2, 3, 4]]
