"""Opens every page of the built site in Chromium, and prints what sticks out of the window and what axe finds.

scripts/look_at_site.py [docs/_build/html]
scripts/look_at_site.py --pages index gallery --keep    # these alone; pictures of them in build/pages, for people to look at

Exits with 1 where anything was found.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import browser  # noqa: E402

WIDTHS = (1440, 1024, 390)

#: Elements that reach beyond the window, except inside boxes that scroll and drawers that are closed.
OVERFLOW = """
(() => {
  const scrolls = (one) => {
    for (; one && one !== document.body; one = one.parentElement)
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(one).overflowX)) return true;
    return false;
  };
  const out = [...document.querySelectorAll("article *")].filter((one) => !scrolls(one.parentElement))
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 120));
  if (document.documentElement.scrollWidth > innerWidth) out.push("the page scrolls sideways");
  return out;
})()
"""


def look(folder: Path, keep: bool, only: list[str] | None = None) -> list[str]:
    """Return a line for each fault of the pages of a folder, or of those of some names."""
    faults = []
    pages = sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts)
    pages = [path for path in pages if not only or str(path.relative_to(folder).with_suffix("")) in only]
    with tempfile.TemporaryDirectory() as profile:
        page = browser.Page(pages[0].as_uri(), profile)
        for path in pages:
            name = str(path.relative_to(folder))
            page.call("Page.navigate", url=path.as_uri())
            while page.evaluate("document.readyState + location.href") != "complete" + path.as_uri():
                pass
            for width in WIDTHS:
                for scheme in ("light", "dark"):
                    page.look(width, scheme)
                    stem = f"site-{name.replace('/', '-')}-{width}-{scheme}"
                    faults += [f"{name} at {width} px: {one}" for one in page.evaluate(OVERFLOW)] * (scheme == "light")
                    if width == WIDTHS[-1]:
                        found = page.barriers(stem, "'article'")
                        faults += [f"{name} at {width} px, {scheme}: {one}" for one in found]
                    if keep:
                        page.keep(stem)
        page.close()
    return faults


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs/_build/html")
    asked.add_argument("--keep", action="store_true", help="keep pictures of the pages in build/pages")
    asked.add_argument("--pages", nargs="+", metavar="NAME", help="look at these alone, as index or reference/detmap")
    options = asked.parse_args()
    faults = look(options.folder.resolve(), options.keep, options.pages)
    print("\n".join(faults) or "no fault")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
