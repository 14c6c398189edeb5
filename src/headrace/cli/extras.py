"""Libraries that only some installs have: each product that needs some is an extra of its name."""

import importlib.util

from headrace.cli.main import missing_text
from headrace.errors import HeadraceError

_NEEDED = {
    "registry": ("uvicorn", "starlette"),
    "rest": ("uvicorn", "starlette", "wsproto"),
    "serve": ("uvicorn", "starlette", "duckdb"),
}
"""The libraries without which a product cannot start."""


class MissingExtra(HeadraceError):
    """A library that a product needs is not installed."""


def require(product: str) -> None:
    """Say what to install before something fails for want of it; imports nothing."""
    for library in _NEEDED[product]:
        if importlib.util.find_spec(library) is None:
            raise MissingExtra(missing_text(library, product))
