"""Optional libraries: the extras that install them, and advice for missing ones."""

import fcntl
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import HeadraceError
from headrace.runtime.installation import pip_command

EXTRAS = {
    "deltalake": "lake",
    "duckdb": "lake",
    "fastavro": "lake",
    "pyarrow": "lake",
    "httptools": "http",
    "starlette": "http",
    "uvicorn": "http",
    "pytz": "lake",
    "jsonschema_rs": "serdes",
    "google": "serdes",
    "wsproto": "rest",
    "cel": "rules",
    "cryptography": "security",
    "llvmlite": "spark",
    "numba": "spark",
    "numpy": "spark",
    "pandas": "spark",
    "py4j": "spark",
    "pyspark": "spark",
}
"""Extra of the package that installs an optional library."""

_NEEDED = {
    "registry": ("uvicorn", "starlette"),
    "rest": ("uvicorn", "starlette", "wsproto"),
    "security": ("cryptography",),
    "serve": ("uvicorn", "starlette", "duckdb"),
}
"""Libraries that a product needs in order to start."""
_LOCK = "installing"


class MissingExtra(HeadraceError):
    """A library that a product needs is not installed."""


def require(product: str) -> None:
    """Reject a start without a product's libraries, naming the extra; imports none of them."""
    for library in _NEEDED[product]:
        if importlib.util.find_spec(library) is None:
            raise MissingExtra(missing_text(library, product))


def missing_text(library: str, extra: str) -> str:
    """Return advice for a missing optional library."""
    if is_installing():
        return (
            f"this needs {library}, which `make run` is installing now with Spark (about 1200 MB);"
            " try again when the pipeline has started"
        )
    return (
        f"this needs {library}: install it with {pip_command(extra)}"
        f" (in a checkout: make .venv/{_target(extra)})"
    )


def missing_advice(error: ImportError, command: str) -> str | None:
    """Return advice for a failed import; None if the import is a bug of Headrace.

    While libraries are being installed, any import may fail. Pipelines need the extra [spark],
    whichever library is missing first.
    """
    library = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(library)
    if extra is not None and isinstance(error, ModuleNotFoundError):
        return missing_text(library, "spark" if command == "pipelines" else extra)
    return missing_text(library or "a library", "spark") if is_installing() else None


@contextmanager
def installing() -> Iterator[int]:
    """Signal within the block that `make run` is installing libraries into this environment.

    The installation takes minutes while the node already serves. A command that needs the libraries
    then reports that they are being installed. A file lock is released with its holder, so an
    interrupted installation leaves no stale signal. A child that inherits the descriptor holds the
    lock too. It is shared, because two installations may run one after the other.
    """
    descriptor = os.open(os.path.join(sys.prefix, _LOCK), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield descriptor
    finally:
        os.close(descriptor)


def is_installing() -> bool:
    """Return whether another process holds the lock."""
    try:
        descriptor = os.open(os.path.join(sys.prefix, _LOCK), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def _target(extra: str) -> str:
    """Return the Makefile's target that installs an extra; Spark alone is some 1200 MB."""
    is_light = extra in ("http", "serdes", "registry", "rest", "rules", "security")
    return "installed" if is_light else "installed-spark"
