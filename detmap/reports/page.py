"""Render a template to one HTML file with embedded styles and scripts; no other script may run."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

from detmap.errors import MissingDependencyError


def check_installed(purpose: str) -> None:
    """Raise early if jinja2, which is needed at the end, is not installed."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise MissingDependencyError("jinja2", "report", purpose) from None


def render(template: str, purpose: str, *, styles: Sequence[str], scripts: Sequence[str], **context: Any) -> str:
    """Return a page; everything in the context is escaped.

    `template` is the name of a file among the package's templates, which can import others; `styles` and `scripts` are
    files of the same folder, concatenated as ``style`` and ``script``. `purpose` names what needs jinja2, for the error
    if it is missing.
    """
    check_installed(purpose)
    import jinja2
    import markupsafe

    def read(name: str) -> str:
        return (resources.files("detmap.reports") / "templates" / name).read_text("utf-8")

    script = "".join(map(read, scripts))
    # Only our script may run, whatever markup a name might inject into the page.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        loader=jinja2.FunctionLoader(read),
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template(template).render(
        style=markupsafe.Markup("".join(map(read, styles))),
        script=markupsafe.Markup(script),
        script_hash=f"sha256-{digest}",
        **context,
    )


#: Longer words, as names of models are, may be broken behind the characters that part them.
_LONG_WORD = 20


def _breakable(text: str) -> Any:
    """Return markup of text whose long words are broken where readers would break them."""
    import markupsafe

    words = text.split(" ")
    parted = [re.sub(r"([_/.-])(?=\w)", "\\1\0", word) if len(word) > _LONG_WORD else word for word in words]
    return markupsafe.Markup(str(markupsafe.escape(" ".join(parted))).replace("\0", "<wbr>"))


def encoded(page: str) -> bytes:
    """Return a page as the bytes of its file."""
    return page.encode("utf-8", "backslashreplace")
