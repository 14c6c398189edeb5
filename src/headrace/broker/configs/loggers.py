"""The loggers of the broker as configs, which a restart resets.

Kafka uses the level names of log4j. TRACE is finer than every level of Python, FATAL is
Python's CRITICAL.
"""

import logging
from collections.abc import Sequence

from headrace.errors import InvalidConfig, InvalidRequest

ROOT = "root"
_PACKAGE = "headrace"
_TRACE = 5

LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": _TRACE,
    "WARN": logging.WARNING,
}
_NAMES = {level: name for name, level in LEVELS.items()}


def levels() -> dict[str, str]:
    """The effective level of every logger of the broker."""
    names = (name for name in logging.root.manager.loggerDict if _is_ours(name))
    return {ROOT: _level_name(logging.root)} | {
        name: _level_name(logging.getLogger(name)) for name in sorted(names)
    }


def check(name: str, level: str | None) -> None:
    """Raise unless a logger may have this level; None means the level of its parent."""
    if name != ROOT and name not in logging.root.manager.loggerDict:
        raise InvalidConfig(f"there is no logger {name}")
    if level is None and name == ROOT:
        raise InvalidRequest("the root logger must have a level")
    if level is not None and level.upper() not in LEVELS:
        raise InvalidConfig(f"{level} is no log level; there are {', '.join(LEVELS)}")


def change(changes: Sequence[tuple[str, str | None]]) -> None:
    """Set levels that `check` accepted."""
    for name, level in changes:
        logger = logging.root if name == ROOT else logging.getLogger(name)
        logger.setLevel(logging.NOTSET if level is None else LEVELS[level.upper()])


def _is_ours(name: str) -> bool:
    return name == _PACKAGE or name.startswith(f"{_PACKAGE}.")


def _level_name(logger: logging.Logger) -> str:
    level = logger.getEffectiveLevel()
    return _NAMES.get(level) or _NAMES[min(LEVELS.values(), key=lambda known: abs(known - level))]
