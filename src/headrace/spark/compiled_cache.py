"""The cache of compiled code: in `__pycache__`, or in a directory of this user.

numba uses `__pycache__` or the user's cache, which a read-only installation, a zip, or a user
without a home directory does not have. Cached code is executed, so directories that other users can
write to are not used; then every process compiles for many seconds.

On a cluster headrace is imported from a zip, at another path for each executor. Its code is
identified by the content of the whole zip, as compiled functions contain parts of other modules.
"""

import hashlib
import logging
import os
import stat
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Self

from headrace.spark.launching.package_zip import digest_in_name

_log = logging.getLogger(__name__)

_NUMBAS_OWN = (
    "UserProvidedCacheLocator",
    "InTreeCacheLocator",
    "UserWideCacheLocator",
    "IPythonCacheLocator",
    "ZipCacheLocator",
)
"""numba's own locators, for other code."""


def prepare_cache(source: str) -> bool:
    """Configure numba's cache for a module; return False if there is no directory for it."""
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
        return False  # An older numba without this setting.
    ours = f"{__name__}.{ZippedCode.__name__}"
    config.CACHE_LOCATOR_CLASSES = ",".join((ours, *_NUMBAS_OWN))
    ZippedCode.place = place
    return True


class ZippedCode:
    """numba's locator of the cache for modules in zips."""

    place: Path | None = None
    """Set by `prepare_cache`, because numba creates the locators."""

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
    """Return the zip that contains a module, if there is one."""
    return next((path for path in source.parents if path.is_file()), None)


@cache
def _digest(archive: Path) -> str:
    """Return the digest in the name of a zip, which may have been compiled since, or compute it."""
    return digest_in_name(archive.name) or hashlib.sha256(archive.read_bytes()).hexdigest()


def _place(chosen: str) -> Path | None:
    """Return the directory for cached code: NUMBA_CACHE_DIR, or one of this user.

    Executors in pods can share a directory by the variable.
    """
    if chosen:
        if _is_writable(Path(chosen)):
            return Path(chosen)
        _log.warning(
            "compiled code not cached: NUMBA_CACHE_DIR is not writable", extra={"path": chosen}
        )
        return None
    place = Path(tempfile.gettempdir()) / f"headrace-numba-{os.getuid()}"
    return place if _is_private(place) else None


def _is_private(place: Path) -> bool:
    """Create a directory, and return whether only this user can write to it."""
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        status = place.lstat()
    except OSError as error:
        _log.warning(
            "compiled code not cached: set NUMBA_CACHE_DIR",
            extra={"path": str(place), "error": str(error)},
        )
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    if not is_ours or status.st_mode & 0o077:
        _log.warning(
            "compiled code not cached: other users can write to the directory; set NUMBA_CACHE_DIR",
            extra={"path": str(place)},
        )
        return False
    return True


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)
