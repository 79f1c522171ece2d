"""Fuzz the scanner against the naive twins: every disagreement is a bug.

Run it as ``python scripts/fuzz_scanner.py [--minutes M] [--seed S] [--kind results|lines|truth|run|qrels]``. With atheris installed
(``pip install atheris``) its mutations are guided by the coverage of the naive twins and of the scanner's interpreted kernels; without, they are drawn at
random from the seeds, and the kernels are compiled. A disagreement is printed and ends the run: make it a test.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

KINDS = ("results", "lines", "truth", "run", "qrels")
TOKENS = [
    *(
        b'"image_id":',
        b'"category_id":',
        b'"bbox":',
        b'"score":',
        b'"segmentation":',
        b'"keypoints":',
        b'"id":',
        b'"name":',
    ),
    *(b'"images":', b'"annotations":', b'"categories":', b'"iscrowd":', b'"ignore":', b'"area":', b'"num_keypoints":'),
    *(
        b"[1,2,3,4]",
        b"[]",
        b"{}",
        b"null",
        b"true",
        b"false",
        b"NaN",
        b"Infinity",
        b"-",
        b"0",
        b"-0.0",
        b"1e308",
        b"1e-320",
    ),
    *(
        b"9223372036854775808",
        b"0.1234567890123456789",
        b"1" * 25,
        b"0." + b"0" * 25 + b"1",
        b'""',
        b'"\\u00e9"',
        b'"\\ud83d\\ude00"',
    ),
    *(
        b'"\\ud800"',
        b'"\\n"',
        b"\\",
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b" ",
        b"\n",
        b"\r\n",
        b"\t",
        b"\xc3\xa9",
        b"\xed\xa0\x80",
    ),
    *(
        b"\xf0\x9f\x98\x80",
        b"\xff",
        b"\x00",
        b"\xef\xbb\xbf",
        b"# c\n",
        b" Q0 ",
        b" 0 ",
        b".5",
        b"5.",
        b"+1",
        b"nan",
        b"[" * 65,
        b"]" * 65,
    ),
]


def mutated(data: bytes, generator: random.Random) -> bytes:
    """Spoil a document in a few places."""
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        place, length = generator.randrange(len(data) + 1), generator.choice((0, 0, 1, 1, 2, 5, 20))
        choice = generator.randrange(6)
        if choice == 0:
            piece = bytes([generator.randrange(256)])
        elif choice == 1:
            other = generator.randrange(len(data) + 1)
            piece = data[other : other + generator.choice((1, 5, 20, 80))]
        elif choice == 2:
            piece = b""
        else:
            piece = generator.choice(TOKENS)
        data = data[:place] + piece + data[place + length :]
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kind", choices=KINDS, default=None)
    parser.add_argument("--random", action="store_true", help="do not use atheris")
    options = parser.parse_args()
    try:
        if options.random:
            raise ImportError
        import atheris
    except ImportError:
        atheris = None
    if atheris is not None:
        os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiled code has no coverage to be guided by
        with atheris.instrument_imports(include=["naive_scanning", "detmap.kernels.scanning", "detmap.formats._scan"]):
            import naive_scanning
            from detmap.formats import _scan
    import test_scanning as tests
    from detmap.formats import _scan

    kinds = [options.kind] if options.kind else list(KINDS)
    seeds: dict[str, list[bytes]] = {
        "results": [*tests.PLAIN, *tests.NOT_PLAIN[:30], *tests.ESCAPED],
        "lines": [data[1:-1].replace(b", {", b"\n{") for data in tests.PLAIN],
        "truth": [tests.TRUTH % tests.ANNOTATION, *tests.PLAIN_TRUTHS],
        "run": [tests.RUN],
        "qrels": [tests.QRELS],
    }

    def check(kind: str, data: bytes, block: int, threads: int) -> None:
        _scan.BLOCK = block
        if kind == "results":
            tests.check_results(data, threads=threads)
        elif kind == "lines":
            tests.check_results(data, lines=True, threads=threads)
        elif kind == "truth":
            tests.check_ground_truth(data, threads)
        elif kind == "run":
            tests.check_run(data, threads)
        else:
            tests.check_qrels(data, threads)

    end, seed = time.monotonic() + 60 * options.minutes, options.seed
    seed = random.randrange(2**32) if seed is None else seed
    if atheris is not None:

        def test_one_input(data: bytes) -> None:
            if len(data) > 1:
                check(kinds[data[0] % len(kinds)], data[1:], (1 << 22, 16, 100)[data[0] % 3], 1)

        corpus = Path(os.environ.get("FUZZ_CORPUS", ROOT / "build" / "fuzz_scanner"))
        corpus.mkdir(parents=True, exist_ok=True)
        for number, kind in enumerate(kinds):
            for k, document in enumerate(seeds[kind]):
                (corpus / f"{kind}-{k}").write_bytes(bytes([number]) + document)
        arguments = [
            sys.argv[0],
            str(corpus),
            f"-max_total_time={int(60 * options.minutes)}",
            f"-seed={seed}",
            "-max_len=4096",
        ]
        atheris.Setup(arguments, test_one_input)
        atheris.Fuzz()
        return
    generator, count = random.Random(seed), 0
    print(f"seed {seed}")
    while time.monotonic() < end:
        kind = generator.choice(kinds)
        data = mutated(generator.choice(seeds[kind]), generator)
        block, threads = generator.choice((8, 16, 50, 100, 1 << 22)), generator.choice((1, 1, 2))
        try:
            check(kind, data, block, threads)
        except AssertionError:
            print(f"{kind}, block {block}, threads {threads}: {data!r}")
            raise
        count += 1
    print(f"{count} documents, no disagreement")


if __name__ == "__main__":
    main()
