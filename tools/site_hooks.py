"""Hooks of MkDocs: links that leave `docs`, and a check that the site loads nothing remote.

Files outside of `docs` are not part of the site, so links to them are shown as paths.
"""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
REMOTE = re.compile(r"<(?:script|img|iframe)[^>]+src=\W*https?:|<link[^>]+href=\W*https?:")
LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Return the page with paths of the checkout in place of links that leave the site."""
    folder = PurePosixPath(page.file.src_uri).parent

    def shown(link: re.Match[str]) -> str:
        path = normpath(PurePosixPath("docs") / folder / link[2])
        return link[0] if path.startswith("docs/") else f"{link[1]} (in a checkout: `{path}`)"

    return LINK.sub(shown, markdown)


def on_post_page(output: str, *, page: Any, **_: object) -> str:
    """Reject a page that loads a font, style, script or picture from another host."""
    if found := REMOTE.search(output):
        raise ValueError(f"{page.file.src_uri} loads from another host: {found[0]}")
    return output
