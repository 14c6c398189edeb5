"""Where machine code is kept between processes: beside the source, else in a place of our own.

numba keeps it in `__pycache__`, or in the user's cache; a read-only installation, a zip, or a user
without a home has neither. What is kept is executed, so a directory that is not ours alone is not
used: then every process compiles for itself, which takes many seconds and is right.

On a cluster headrace is imported from a zip that lies elsewhere for each executor. Code from it is
known by the content of the whole zip, as compiled functions have parts of other modules in them.
"""

import hashlib
import logging
import os
import stat
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Self

from headrace.spark.shipping import digest_named

logger = logging.getLogger(__name__)

_NUMBAS_OWN = (
    "UserProvidedCacheLocator",
    "InTreeCacheLocator",
    "UserWideCacheLocator",
    "IPythonCacheLocator",
    "ZipCacheLocator",
)
"""Where numba looks for a place by itself: left as it is for code that is not ours."""


def prepare_cache(source: str) -> bool:
    """Let numba find a place for the code of a module; False if there is none."""
    import numba

    config: Any = numba.config
    archive = archive_of(Path(source))
    if archive is None and (config.CACHE_DIR or _is_writable(Path(source).parent / "__pycache__")):
        return True
    place = _place(config.CACHE_DIR)
    if place is None:
        return False
    if archive is None:
        config.CACHE_DIR = str(place)
        return Path(source).is_file()
    if not hasattr(config, "CACHE_LOCATOR_CLASSES"):
        return False  # A numba that cannot be told.
    ours = f"{__name__}.{ZippedCode.__name__}"
    config.CACHE_LOCATOR_CLASSES = ",".join((ours, *_NUMBAS_OWN))
    ZippedCode.place = place
    return True


class ZippedCode:
    """Tells numba where it keeps the code of modules in zips; its methods are numba's."""

    place: Path | None = None
    """Set by `prepare_cache`, as numba makes the locators by itself."""

    def __init__(self, line: int, directory: Path, digest: str) -> None:
        self._line = line
        self._directory = directory
        self._digest = digest

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Self | None:
        archive = archive_of(Path(py_file))
        if archive is None or cls.place is None:
            return None
        digest = _digest(archive)
        module = Path(py_file).relative_to(archive).with_suffix("")
        directory = cls.place / digest[:16] / ".".join(module.parts)
        return cls(py_func.__code__.co_firstlineno, directory, digest)

    def ensure_cache_path(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._directory)

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return str(self._line)


def archive_of(source: Path) -> Path | None:
    """The zip that a module lies in; None if it is a file."""
    return next((path for path in source.parents if path.is_file()), None)


@cache
def _digest(archive: Path) -> str:
    """What tells the content: the name, if that was made of it, as some have compiled it since."""
    return digest_named(archive.name) or hashlib.sha256(archive.read_bytes()).hexdigest()


def _place(chosen: str) -> Path | None:
    """Where code of ours is kept: in the directory of NUMBA_CACHE_DIR, if that says one.

    Executors in pods have no directory that outlives them, and can be given one that they share.
    """
    if chosen:
        if _is_writable(Path(chosen)):
            return Path(chosen)
        logger.warning("compiled code cannot be kept in %s, which NUMBA_CACHE_DIR names", chosen)
        return None
    place = Path(tempfile.gettempdir()) / f"headrace-numba-{os.getuid()}"
    return place if _is_made_ours(place) else None


def _is_made_ours(place: Path) -> bool:
    """Make a directory that nobody else can write to; whether that is what it is now."""
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        status = place.lstat()
    except OSError as error:
        logger.warning("compiled code cannot be kept: %s; set NUMBA_CACHE_DIR", error)
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    if not is_ours or status.st_mode & 0o077:
        logger.warning("%s is not ours alone, nothing is kept there; set NUMBA_CACHE_DIR", place)
        return False
    return True


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)
