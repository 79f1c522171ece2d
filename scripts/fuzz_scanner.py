"""Fuzz the scanner against the naive twins: every disagreement is a bug, to be kept as a test.

``python scripts/fuzz_scanner.py --minutes 10``. With atheris installed (``pip install atheris``) the coverage of the twins
and of the interpreted kernels guides the mutations; without, or with ``--random``, compiled kernels meet random ones.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

KINDS = ("results", "lines", "truth", "run", "qrels")
TOKENS = (
    b'"image_id":|"category_id":|"bbox":|"score":|"segmentation":|"keypoints":|"id":|"name":|"images":|"annotations":|"area":|'
    b'"categories":|"iscrowd":|"ignore":|"num_keypoints":|[1,2,3,4]|[]|{}|null|true|false|NaN|Infinity|-|0|-0.0|1e308|1e-320|'
    b'9223372036854775808|0.1234567890123456789|1111111111111111111111111|0.00000000000000000000000001|""|"\\u00e9"|"\\ud800"|'
    b'"\\ud83d\\ude00"|"\\n"|\\|"|{|}|[|]|,|:| |\n|\r\n|\t|\xc3\xa9|\xed\xa0\x80|\xf0\x9f\x98\x80|\xff|\x00|\xef\xbb\xbf|'
    b"# c\n| Q0 | 0 |.5|5.|+1|nan|" + b"[" * 65 + b"|" + b"]" * 65
).split(b"|")


def mutated(data: bytes, generator: random.Random) -> bytes:
    """Spoil a document in a few places."""
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        place, length = generator.randrange(len(data) + 1), generator.choice((0, 0, 1, 1, 2, 5, 20))
        other = generator.randrange(len(data) + 1)
        pieces = (b"", bytes([generator.randrange(256)]), data[other : other + generator.choice((1, 5, 20, 80))])
        piece = generator.choice((*pieces, *generator.choices(TOKENS, k=3)))
        data = data[:place] + piece + data[place + length :]
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument("--kind", choices=KINDS, action="append", help="what to fuzz; everything by default")
    parser.add_argument("--random", action="store_true", help="do not use atheris")
    options = parser.parse_args()
    kinds = options.kind or KINDS
    print(f"seed {options.seed}")
    guided = not options.random
    if guided:
        try:
            import atheris
        except ImportError:
            guided = False
    if guided:
        os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiled code has no coverage to be guided by
        with atheris.instrument_imports(include=["naive_scanning", "detmap.kernels", "detmap.formats"]):
            import scanner
            import scanner_documents as documents
    else:
        import scanner
        import scanner_documents as documents
    seeds: dict[str, list[bytes]] = {
        "results": [*documents.PLAIN, *documents.NOT_PLAIN, *documents.ESCAPED],
        "lines": [data[1:-1].replace(b"}, {", b"}\n{").replace(b"},{", b"}\n{") for data in documents.PLAIN],
        "truth": documents.PLAIN_TRUTHS,
        "run": [documents.RUN],
        "qrels": [documents.QRELS],
    }
    checks = {
        "results": scanner.check_results,
        "lines": lambda data, threads: scanner.check_results(data, True, threads),
        "truth": scanner.check_ground_truth,
        "run": scanner.check_run,
        "qrels": scanner.check_qrels,
    }

    def check(kind: str, data: bytes, block: int, threads: int) -> None:
        scanner._documents.BLOCK = block
        try:
            checks[kind](data, threads=threads)
        except AssertionError:
            print(f"{kind}, block {block}, threads {threads}: {data!r}")
            raise

    if guided:

        def test_one_input(data: bytes) -> None:
            if len(data) > 1:
                check(kinds[data[0] % len(kinds)], data[1:], (1 << 22, 16, 100)[data[0] % 3], 1)

        corpus = ROOT / "build" / "fuzz_scanner"
        corpus.mkdir(parents=True, exist_ok=True)
        for number, kind in enumerate(kinds):
            for k, document in enumerate(seeds[kind]):
                (corpus / f"{kind}-{k}").write_bytes(bytes([number]) + document)
        limits = [f"-max_total_time={int(60 * options.minutes)}", f"-seed={options.seed}", "-max_len=4096"]
        atheris.Setup([sys.argv[0], str(corpus), *limits], test_one_input)
        atheris.Fuzz()
        return
    generator, count, end = random.Random(options.seed), 0, time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        kind = generator.choice(kinds)
        data = mutated(generator.choice(seeds[kind]), generator)
        check(kind, data, generator.choice((8, 16, 50, 100, 1 << 22)), generator.choice((1, 1, 2)))
        count += 1
    print(f"{count} documents, no disagreement")


if __name__ == "__main__":
    main()
