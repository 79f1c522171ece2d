"""Makes the pictures of the site and of README: reports and leaderboards on real data, as a browser shows them, and a plot.

scripts/docs_pictures.py ../shared/data            # all of them, into docs/pictures
scripts/docs_pictures.py ../shared/data voc2007    # those whose names begin so
"""

from __future__ import annotations

import base64
import contextlib
import io
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import browser  # noqa: E402

from detmap import cli  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"

#: Pixels around an element that is shown, and the largest number of bytes of a picture.
MARGIN, LARGEST = 12, 150_000


class Picture(NamedTuple):
    """A picture of a page: its name, the page, an element or the top of the page, and how the browser shows it."""

    name: str
    page: str
    selector: str | None = None
    width: int = 1100
    height: int = 760
    scheme: str = "light"


SHOWN = (
    Picture("voc2007-first", "report", "section.first"),
    Picture("voc2007-reliability", "report", "#calibration figure"),
    Picture("voc2007-conventions", "report", "#conventions .block"),
    Picture("gallery-report", "coco", width=1280, height=860),
    Picture("gallery-report-dark", "coco", width=1280, height=860, scheme="dark"),
    Picture("gallery-report-phone", "coco", width=390, height=800),
    Picture("gallery-confusion", "report", "#confusion", width=1280, height=900),
    Picture("gallery-comparison", "comparison", width=1280, height=860),
    Picture("gallery-leaderboard", "leaderboard", width=1280, height=640),
    Picture("gallery-leaderboard-dark", "leaderboard", width=1280, height=640, scheme="dark"),
    Picture("gallery-rankings", "rankings", width=1280, height=860),
)
PLOT = "gallery-plot"

_BOX = "(one) => one && ({x: one.x, y: one.y + scrollY, w: one.width, h: one.height})"


def commands(data: Path, out: Path) -> dict[str, tuple[Path, list[str]]]:
    """Return for each page the file that it becomes, and the command that makes it."""
    truth, *found = (
        str(data / "voc2007" / f"{name}.tar.gz") for name in ("Annotations", "detections_a", "detections_b")
    )
    voc = ["--protocol", "voc2007", "--quiet"]
    models = str(out / "models.csv")
    lines = [f"{path},{name}" for name, path in zip(("detector A", "detector B"), found, strict=True)]
    lines += [f"{path},{name} without scores below 0.25" for path, name in _cut(found, out)]
    Path(models).write_text("\n".join(["path,name", *lines]))
    runs = [str(data / "trec" / name) for name in ("qrels.test", "results.test")]
    pages = {name: out / f"{name}.html" for name in ("report", "coco", "comparison", "rankings")}
    return {
        "report": (pages["report"], ["report", truth, found[0], *voc, "--out", str(pages["report"])]),
        "coco": (pages["coco"], ["report", truth, found[0], "--quiet", "--out", str(pages["coco"])]),
        "comparison": (pages["comparison"], ["report", truth, *found, *voc, "--out", str(pages["comparison"])]),
        "leaderboard": (
            out / "board" / "leaderboard.html",
            ["batch", truth, models, *voc, "--bootstrap", "200", "--permutations", "500", "--out", str(out / "board")],
        ),
        "rankings": (pages["rankings"], ["report", "--trec", *runs, "--quiet", "--out", str(pages["rankings"])]),
        PLOT: (out / "plot.png", ["eval", truth, found[0], *voc, "--plot", str(out / "plot.png")]),
    }


def _cut(found: list[str], out: Path) -> list[tuple[Path, str]]:
    """Write each file of detections without those of low scores, as demos show them; return paths and names."""
    import tarfile

    made = []
    for path, name in zip(found, ("detector A", "detector B"), strict=True):
        folder = out / name.replace(" ", "-")
        folder.mkdir()
        with tarfile.open(path) as archive:
            for member in archive:
                if (opened := archive.extractfile(member)) is not None:
                    kept = [line for line in opened.read().decode().splitlines(True) if float(line.split()[1]) >= 0.25]
                    (folder / Path(member.name).name).write_text("".join(kept))
        made.append((folder, name))
    return made


def shoot(page: browser.Page, picture: Picture) -> bytes:
    """Return a picture of a page that is open."""
    page.call("Emulation.setScrollbarsHidden", hidden=True)
    page.look(picture.width, picture.scheme)
    page.evaluate(browser.WHOLE)
    clip = {"x": 0, "y": 0, "width": picture.width, "height": picture.height, "scale": 1}
    if picture.selector:
        element = f"document.querySelector({picture.selector!r})?.getBoundingClientRect()"
        box = page.evaluate(f"({_BOX})({element})")
        if box is None:
            raise SystemExit(
                f"{picture.name}: the page {picture.page} has no {picture.selector}; name another in SHOWN"
            )
        clip |= {"x": max(box["x"] - MARGIN, 0), "y": max(box["y"] - MARGIN, 0), "width": box["w"] + 2 * MARGIN}
        clip["height"] = min(box["h"] + 2 * MARGIN, 1200)
    for quality in (80, 60, 40, 20):
        shot = page.call(
            "Page.captureScreenshot", format="webp", quality=quality, captureBeyondViewport=True, clip=clip
        )
        taken = base64.b64decode(shot["data"])
        if len(taken) <= LARGEST:
            break
    return taken


def main(data: Path, prefix: str = "") -> None:
    """Write the pages, open them, and keep the pictures."""
    wanted = [one for one in SHOWN if one.name.startswith(prefix)]
    needed = {one.page for one in wanted} | ({PLOT} if PLOT.startswith(prefix) else set())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        for name, (path, command) in commands(data, out).items():
            if name not in needed:
                continue
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                code = cli.main(command)
            assert code == 0, said.getvalue()
            if name == PLOT:
                _save_plot(path)
                continue
            page = browser.Page(path.as_uri(), out / f"profile-{name}")
            for picture in wanted:
                if picture.page == name:
                    taken = shoot(page, picture)
                    (PICTURES / f"{picture.name}.webp").write_bytes(taken)
                    print(f"{picture.name}: {len(taken):,} bytes", flush=True)
            page.close()


def _save_plot(path: Path) -> None:
    """Keep a plot, made smaller."""
    from PIL import Image

    with Image.open(path) as image:
        image.thumbnail((1280, 1280))
        image.save(PICTURES / f"{PLOT}.webp", quality=80)
    print(f"{PLOT}: {(PICTURES / f'{PLOT}.webp').stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
