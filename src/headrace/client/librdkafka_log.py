"""librdkafka's log lines as Python's, with repeated lines suppressed for a minute.

librdkafka logs every failed connection, several times a second while a broker is down, and Python
writes warnings to standard error unless logging is configured.
"""

import logging
import re
from collections.abc import Callable
from time import monotonic

_log = logging.getLogger("headrace.client.librdkafka")

FOLD_S = 60.0
_KEYS_MAX = 1_000
_DIGITS = re.compile(r"\d+")
_PREVIEW = "SHARECONSUMER"
"""Facility of the line that announces the share consumer as a preview at each start."""


class FoldedLog:
    """The logger in a client's settings; each client has its own.

    A line has a facility, the client's name and a text, which names the broker.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, str], tuple[float, int]] = {}

    def log(self, level: int, form: str, facility: str, name: str, text: str) -> None:
        """Log a line; called by confluent-kafka within `poll` and similar calls."""
        if facility == _PREVIEW:
            level = logging.DEBUG
        if level < logging.WARNING:
            _log.log(level, form, facility, name, text)
            return
        repeated = self._repeated(facility, text)
        if repeated is None:
            return
        if repeated:
            form += f" (repeated {repeated} times)"
        _log.log(level, form, facility, name, text)

    def _repeated(self, facility: str, text: str) -> int | None:
        """Return the number of suppressed repetitions; None while the line is suppressed."""
        key = (facility, _DIGITS.sub("", text))
        now = self._clock()
        due, count = self._logged.get(key, (0.0, 0))
        if key in self._logged and now < due:
            self._logged[key] = (due, count + 1)
            return None
        if len(self._logged) >= _KEYS_MAX:
            self._logged.clear()
        self._logged[key] = (now + FOLD_S, 0)
        return count
