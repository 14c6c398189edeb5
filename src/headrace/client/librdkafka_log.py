"""librdkafka's log lines as Python's: those that repeat are folded.

It tells of every connection that fails, several times a second while a broker is away, and Python
writes warnings to standard error where nobody set logging up. Once a minute says as much.
"""

import logging
import re
from collections.abc import Callable
from time import monotonic

logger = logging.getLogger("headrace.client.librdkafka")

FOLD_S = 60.0
_KEYS_MAX = 1_000
_DIGITS = re.compile(r"\d+")
_PREVIEW = "SHARECONSUMER"
"""The facility of a line that calls librdkafka's share consumer a preview, at each start."""


class FoldedLog:
    """Takes the place of a logger in a client's settings; each client has its own.

    librdkafka's lines are of a facility, the client's name and a text, which names the broker.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str], tuple[float, int]] = {}

    def log(self, level: int, form: str, facility: str, name: str, text: str) -> None:
        """What confluent-kafka calls for each line, out of `poll` and the like."""
        if facility == _PREVIEW:
            level = logging.DEBUG
        if level < logging.WARNING:
            logger.log(level, form, facility, name, text)
            return
        repeated = self._repeated(facility, text)
        if repeated is None:
            return
        if repeated:
            form += f" (and {repeated} times since this was told last)"
        logger.log(level, form, facility, name, text)

    def _repeated(self, facility: str, text: str) -> int | None:
        """How often the line came since it was told; None if it is not yet due again."""
        key = (facility, _DIGITS.sub("", text))
        now = self._clock()
        due, count = self._told.get(key, (0.0, 0))
        if key in self._told and now < due:
            self._told[key] = (due, count + 1)
            return None
        if len(self._told) >= _KEYS_MAX:
            self._told.clear()
        self._told[key] = (now + FOLD_S, 0)
        return count
