"""Render a template to one HTML file with embedded styles and scripts; no other script may run."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from detmap.errors import MissingDependencyError

if TYPE_CHECKING:
    import jinja2


def check_installed(purpose: str) -> None:
    """Raise an error, before other work, if jinja2 is not installed."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise MissingDependencyError("jinja2", "report", purpose) from None


def render(template: str, purpose: str, *, styles: Sequence[str], scripts: Sequence[str], **context: Any) -> str:
    """Render a template as a page; everything in the context is escaped.

    `template`, `styles` and `scripts` name files in the folder of templates. The template gets the concatenated styles
    and scripts as ``style`` and ``script``. `purpose` is the feature that the error names if jinja2 is missing.
    """
    check_installed(purpose)
    import markupsafe

    script = "".join(map(_read, scripts))
    # The page's Content-Security-Policy allows only the script with this hash, so that markup in a name cannot run scripts.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            style=markupsafe.Markup("".join(map(_read, styles))),
            script=markupsafe.Markup(script),
            script_hash=f"sha256-{digest}",
            **context,
        )
    )


def _read(name: str) -> str:
    return (resources.files("detmap.reports") / "templates" / name).read_text("utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    """Return the environment, cached because compiling its templates takes longer than rendering a page."""
    import jinja2

    made = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        loader=jinja2.FunctionLoader(_read),
    )
    made.filters["breakable"] = _breakable
    return made


#: Maximum length of a word that is not broken. Longer words, such as names, may be broken after "_", "/", "." and "-".
_LONG_WORD = 20


def _breakable(text: str) -> Any:
    """Return text as HTML in which long words have optional breaks after separators."""
    import markupsafe

    words = text.split(" ")
    parted = [re.sub(r"([_/.-])(?=\w)", "\\1\0", word) if len(word) > _LONG_WORD else word for word in words]
    return markupsafe.Markup(str(markupsafe.escape(" ".join(parted))).replace("\0", "<wbr>"))


def encoded(page: str) -> bytes:
    """Return a page as the bytes of its file."""
    return page.encode("utf-8", "backslashreplace")
