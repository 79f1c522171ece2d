"""Parquet, Feather, data frames, files of runs in tables, and zstd: columns of every type, and damage at any byte."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.documents import ANYTHING, damage

Rows = list[tuple[Any, Any, float, list[float]]]  # image, category, score, box


def scene(rng: np.random.Generator) -> Rows:
    """Return detections whose numbers have few digits, with ids of integers or strings."""
    images: list[Any] = [[1, 2, 2**40], ["a", 'é,"b', "7"]][int(rng.integers(2))]
    categories: list[Any] = [[1, 90], ["cat", "dog"]][int(rng.integers(2))]
    rows = []
    for _ in range(int(rng.integers(1, 20))):
        box = [int(v) / 8 for v in rng.integers(0, 900, 4)]
        ids = images[int(rng.integers(3))], categories[int(rng.integers(2))]
        rows.append((*ids, int(rng.integers(0, 9)) / 8, box))
    return rows


def columns(rng: np.random.Generator, rows: Rows) -> dict[str, Any]:
    """Write rows as columns: of types, in an order, and under names that all mean the same."""
    import pyarrow as pa

    image, category, score, box = (list(column) for column in zip(*rows, strict=True))
    names = {int: ("image_id", "category_id"), str: ("file_name", "label")}
    out: dict[str, Any] = {}
    for values, place in ((image, 0), (category, 1)):
        kinds = [pa.int64(), pa.float64()] if isinstance(values[0], int) else [pa.string(), pa.large_string()]
        column = pa.array(values, kinds[int(rng.integers(2))])
        out[names[type(values[0])][place]] = column.dictionary_encode() if rng.random() < 0.3 else column
    out["confidence" if rng.random() < 0.5 else "score"] = pa.array(score, pa.float32() if rng.random() < 0.3 else None)
    if rng.random() < 0.5:
        kinds = [pa.list_(pa.float64(), 4), pa.list_(pa.float64()), pa.large_list(pa.float32())]
        out["bbox"] = pa.array(box, kinds[int(rng.integers(3))])
    else:
        out |= {name: pa.array(one) for name, one in zip("xywh", map(list, zip(*box, strict=True)), strict=True)}
    keys = list(out)
    return {keys[i]: out[keys[i]] for i in rng.permutation(len(keys)).tolist()}


def said(table: Any) -> list[float]:
    """Every score and box, row by row."""
    return [
        value for score, box in zip(table.scores.tolist(), table.boxes.tolist(), strict=True) for value in (score, *box)
    ]


def value_of(rows: Rows) -> list[float]:
    return [value for _, _, score, box in rows for value in (score, *box)]


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """A table as a file or a frame, as it is, of odd types, or damaged; a run in a table; text that is compressed."""
    kind = str(rng.choice(["file", "file", "frame", "run", "zstd", "csv"]))
    return {"file": files, "frame": frames, "run": runs, "zstd": packed, "csv": scanned}[kind](rng, folder)


def files(rng: np.random.Generator, folder: Path) -> Attack:
    """Parquet and Feather, of every compression and several row groups; damage may change values, for nothing tells."""
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    import detmap

    rows = scene(rng)
    table = pa.table(columns(rng, rows))
    path = folder / ("found.parquet" if rng.random() < 0.5 else "found.feather")
    if path.suffix == ".parquet":
        compression = str(rng.choice(["none", "snappy", "gzip", "zstd", "lz4"]))
        parquet.write_table(table, path, compression=compression, row_group_size=int(rng.integers(1, 30)))
    else:
        feather.write_feather(table, str(path), compression=str(rng.choice(["uncompressed", "lz4", "zstd"])))
    must, what = Must(value=value_of(rows)), f"{path.suffix} {rows}"
    if rng.random() < 0.7:
        path.write_bytes(damage(rng, path.read_bytes()))
        must, what = Must(value=ANYTHING, refuse=True), f"{path.suffix} damaged"
    return Attack(what, lambda: said(detmap.read(path, "detections")), must, path.stat().st_size)


def frames(rng: np.random.Generator, folder: Path) -> Attack:
    """Frames of ground truth or detections in which one column is of another type, length, or missing."""
    import pandas
    import pyarrow as pa

    import detmap

    rows = scene(rng)
    made = columns(rng, rows)
    count = len(rows)
    odd: list[Any] = [
        pa.nulls(count),
        pa.array([None, *[1] * (count - 1)], pa.int64()),
        pa.array([True] * count),
        pa.array([b"\xff"] * count),
        pa.array([[1]] * count),
        pa.array([{"a": 1}] * count),
        pa.array(["1e5"] * count),
        pa.array([1e300] * count),
        pa.array([float("nan")] * count),
        pa.array([2**63] * count, pa.uint64()),
        pa.array([0] * count, pa.timestamp("s")),
        pa.array([[1.0, 2.0, 3.0]] * count),
        pa.array([[1.0, None, 3.0, 4.0]] * count),
    ]
    must, what = Must(value=value_of(rows)), f"frame {rows}"
    truth = rng.random() < 0.4
    if truth:
        made |= {"image_width": pa.array([9] * count), "image_height": pa.array([9] * count)}
        made |= {"iscrowd": pa.array([0] * count), "area": pa.array([1.0] * count)}
        must = Must(value=ANYTHING)
    if rng.random() < 0.8:
        name = str(rng.choice(list(made)))
        which = int(rng.integers(len(odd) + 1))
        if which == len(odd):
            del made[name]
        else:
            made[name] = odd[which]
        must, what = Must(value=ANYTHING, refuse=True), f"frame of {'truth' if truth else 'found'} {name} {which}"
    table: Any = pa.table(made)
    if rng.random() < 0.4:
        table = table.to_pandas()
        assert isinstance(table, pandas.DataFrame)

    def run() -> Any:
        if truth:
            return detmap.GroundTruth.from_frame(table).boxes.ravel().tolist()
        return said(detmap.Detections.from_frame(table))

    return Attack(what, run, must)


def runs(rng: np.random.Generator, folder: Path) -> Attack:
    """Judgements and a run as CSV, TSV, JSON, Parquet or Feather."""
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    from attacks.lines import evaluated, mean_average_precision
    from attacks.lines import scene as judged_scene

    sides = judged_scene(rng)
    hopeless = not any(grade for query in set(sides[0]) & set(sides[1]) for grade in sides[0][query].values())
    must, what = Must(value=mean_average_precision(*sides), refuse=hopeless), f"run {sides}"
    paths, spoilt = [], int(rng.integers(4))
    for i, (side, names) in enumerate(zip(sides, ("query-id corpus-id score", "qid docno score"), strict=True)):
        kind = str(rng.choice(["csv", "tsv", "json", "parquet", "feather"]))
        path = folder / f"side{i}.{kind}"
        listed = [[q, d, v] for q, of in side.items() for d, v in of.items()]
        titles = names.split()
        table = dict(zip(titles, map(list, zip(*listed, strict=True)), strict=True))
        if kind == "json":
            path.write_text(json.dumps(side))
        elif kind == "parquet":
            parquet.write_table(pa.table(table), path)
        elif kind == "feather":
            feather.write_feather(pa.table(table), str(path))
        else:
            out = io.StringIO(newline="")
            writer = csv.writer(out, delimiter="," if kind == "csv" else "\t")
            writer.writerows([titles, *listed])
            path.write_bytes(out.getvalue().encode())
        if spoilt == i:
            path.write_bytes(damage(rng, path.read_bytes()))
            must, what = Must(value=ANYTHING, refuse=True), f"run, {path.name} damaged"
        paths.append(path)
    size = sum(path.stat().st_size for path in paths)
    return Attack(what, lambda: evaluated(*paths), must, size)


def packed(rng: np.random.Generator, folder: Path) -> Attack:
    """JSON compressed by zstd, in frames, and damaged: a checksum tells."""
    import zstandard

    import detmap

    rows = scene(rng)
    records = [{"image_id": i, "category_id": c, "score": s, "bbox": box} for i, c, s, box in rows]
    data = json.dumps(records).encode()
    cut = int(rng.integers(0, len(data) + 1))
    pack = zstandard.ZstdCompressor(level=int(rng.integers(1, 10)), write_checksum=True)
    made = pack.compress(data[:cut]) + pack.compress(data[cut:])
    must, what = Must(value=value_of(rows)), f"zstd {rows}"
    if rng.random() < 0.7:
        spoilt = damage(rng, made)
        # Without its first bytes it is no longer known to be compressed, and an empty frame may vanish.
        must = Must(value=value_of(rows), refuse=True) if spoilt else Must(refuse=True)
        made, what = spoilt, "zstd damaged"
    path = folder / "found.json"
    path.write_bytes(made)
    return Attack(what, lambda: said(detmap.read(path, "detections")), must, len(made))


def scanned(rng: np.random.Generator, folder: Path) -> Attack:
    """CSV on the scanner, which small files are not read by; as it is or damaged: with the parser it is the same."""
    import detmap
    from detmap.errors import InputError
    from detmap.formats.delimited import read as delimited

    rows = scene(rng)
    names = ["image_id", "category_id"] if isinstance(rows[0][0], int) else ["image", "category"]
    lines = [",".join([*names, "score", *"xywh"])]
    lines += [",".join(map(str, [str(i).replace(",", "").replace('"', ""), c, s, *box])) for i, c, s, box in rows]
    data = "\n".join(lines).encode()
    must = Must(value=value_of(rows))
    if rng.random() < 0.7:
        data, must = damage(rng, data), Must(value=ANYTHING, refuse=True)
    path = folder / "found.csv"
    path.write_bytes(data)

    def read(worth: int) -> Any:
        delimited._WORTH_SCANNING = worth
        try:
            table = detmap.read(path, "detections")
        except InputError as error:
            return str(error)
        ids = [one.ids[one.codes].tolist() for one in (table.images, table.categories)]
        return [*said(table), *map(str, ids)]

    def run() -> Any:
        first, second = read(0), read(1 << 60)
        if first != second:
            raise AssertionError(f"the scanner says {first}, the parser {second}")
        if isinstance(first, str):
            raise InputError(first)
        return first[: 5 * len(rows)]

    return Attack(f"csv scanned {data[:300]!r}", run, must, len(data))
