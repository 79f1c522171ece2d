"""Makes the pictures of docs/voc2007.md: parts of the report on a real detector, as a browser shows them.

scripts/docs_pictures.py ../shared/data/voc2007
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import browser  # noqa: E402

from detmap import cli  # noqa: E402

#: What is shown of the page, by the name of the picture.
PARTS = {
    "first": "section.first",
    "reliability": "#calibration figure",
    "conventions": "#conventions .block",
}
WIDTH, MARGIN = 1100, 12

_BOX = "(one) => ({x: one.x, y: one.y + scrollY, w: one.width, h: one.height})"


def main(folder: Path) -> None:
    """Write the report, open it, and keep its parts."""
    with tempfile.TemporaryDirectory() as made:
        out = Path(made, "report.html")
        paths = [str(folder / name) for name in ("Annotations.tar.gz", "detections_a.tar.gz")]
        assert cli.main(["report", *paths, "--protocol", "voc2007", "--out", str(out), "--quiet"]) == 0
        page = browser.Page(out.as_uri(), Path(made, "profile"))
        page.call("Emulation.setScrollbarsHidden", hidden=True)
        page.look(WIDTH, "light")
        for name, selector in PARTS.items():
            box = page.evaluate(f"({_BOX})(document.querySelector('{selector}').getBoundingClientRect())")
            clip = {"x": box["x"] - MARGIN, "y": box["y"] - MARGIN, "width": box["w"] + 2 * MARGIN}
            clip |= {"height": box["h"] + 2 * MARGIN, "scale": 1}
            shot = page.call("Page.captureScreenshot", format="webp", quality=80, captureBeyondViewport=True, clip=clip)
            (ROOT / "docs" / "pictures" / f"voc2007-{name}.webp").write_bytes(base64.b64decode(shot["data"]))
        page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
