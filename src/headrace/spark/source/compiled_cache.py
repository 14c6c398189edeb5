"""Where machine code is kept between processes: beside the source, else in a place of our own.

numba keeps it in `__pycache__`, or in the user's cache; a read-only installation, a zip, or a user
without a home has neither. What is kept is executed, so a directory that is not ours alone is not
used: then every process compiles for itself, which takes seconds and is right.
"""

import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)


def prepare_cache(source: str) -> bool:
    """Let numba find a place for the code of a module; False if there is none."""
    import numba

    config: Any = numba.config
    if config.CACHE_DIR or _is_writable(Path(source).parent / "__pycache__"):
        return True
    place = Path(tempfile.gettempdir()) / f"headrace-numba-{os.getuid()}"
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
    config.CACHE_DIR = str(place)
    return Path(source).is_file()


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)
