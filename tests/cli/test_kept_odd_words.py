"""What commands say of odd values of every option, of too few and of too many words, kept word for word."""

from __future__ import annotations

import argparse
import re
import shutil

import kept
import pytest
import tiny

from detmap import cli

#: The words of each command that is right.
RIGHT = {
    "eval": "truth.json one.json",
    "batch": "truth.json one.json",
    "compare": "truth.json one.json two.json --bootstrap 200",
    "diagnose": "truth.json one.json --parts tide",
    "explain": "truth.json one.json --from coco --to voc2007",
    "report": "truth.json none.json",
    "check": "truth.json one.json",
    "convert": "one.json out.csv --ground-truth truth.json",
    "verify": "card.json truth.json one.json",
    "pq": "truth.json one.json",
    "trec": "qrels.txt first.run --metrics map",
    "reid": "reid.npz --metrics mAP",
    "hashing": "codes.npz --metrics mAP",
    "protocols": "",
    "conventions": "",
}
#: Options that start something, or load something.
LEFT = ("--help", "--help-all", "--scheduler", "--plugin", "--plot", "--workers", "--threads", "--seed", "--verbose")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("odd")
    for write in (tiny.detectors, tiny.runs, tiny.galleries):
        write(made)
    return made


def said(folder, capsys, words):
    """Return the exit code of a command and its lines on stderr; choices are listed differently by versions of Python."""
    try:
        code = cli.main(words)
    except SystemExit as stop:
        code = stop.code
    errors = re.sub(r" \(choose from [^)]*\)", " (choose …)", capsys.readouterr().err).replace(str(folder), "FOLDER")
    if (folder / "x").is_dir():
        shutil.rmtree(folder / "x")
    (folder / "x").unlink(missing_ok=True)
    return f"{' '.join(map(repr, words))}: {code} {' / '.join(errors.splitlines())}"


def options_of(command):
    parser = cli._parser([command])
    (below,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    made = {one.option_strings[0]: one for one in below.choices[command]._actions if one.option_strings}
    return {name: one for name, one in made.items() if name not in LEFT}


@pytest.mark.parametrize("command", RIGHT)
def test_odd_words(folder, monkeypatch, capsys, command):
    monkeypatch.chdir(folder)
    right = RIGHT[command].split()
    lines = [said(folder, capsys, [command, *right[:count]]) for count in range(min(len(right), 3))]
    lines.append(said(folder, capsys, [command, *right, "more.json", "and.json"]))
    lines += [said(folder, capsys, [command, *right, word]) for word in ("--unheard\tof", "--fomat", "-z", "")]
    shared = set() if command == "eval" else options_of("eval").keys()
    for name, option in options_of(command).items():
        if name in shared:
            continue
        for value in [[]] if option.nargs == 0 else [["x"], ["-1"]] if option.type in (int, float) else [["x"]]:
            lines.append(said(folder, capsys, [command, *right, name, *value]))
    kept.same(f"odd-words/{command}", "\n".join(lines) + "\n")
