"""Whether a log directory has room: told once when it has none, and once when it has again.

A full disk is found out by every producer that is refused, many times a second. The operator
needs two lines of it: when it began, and when it was over. That it is over shows in a log that
was refused and has grown since, with nobody refused meanwhile: a disk with a few bytes left
takes small batches and refuses large ones, which is not over.
"""

import logging
from collections.abc import Mapping
from typing import Protocol

from headrace.errors import KafkaStorageError
from headrace.storage.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

_NOT_MADE = -1
_CHECKPOINTS = TopicPartition("", 0)
"""Stands for the checkpoints among those who were refused; no partition has this name."""


class NoRoom(KafkaStorageError):
    """There is no room for it at the moment; it can be tried again."""


class Growing(Protocol):
    """A log, as far as one can see that it grows."""

    log_end_offset: int


class Room:
    """The room in one directory, as those find it who write there."""

    __slots__ = ("_path", "_refused", "_refused_lately")

    def __init__(self, path: str) -> None:
        self._path = path
        self._refused: dict[TopicPartition, int] = {}
        """Who was refused, with the end offset of its log at the time."""
        self._refused_lately = False

    def refuse(
        self, topic_partition: TopicPartition, error: OSError, end_offset: int = _NOT_MADE
    ) -> None:
        """Note that a partition could not be written to, or not be made."""
        if not self._refused:
            _log.warning(
                "the log directory %s takes no writes: %s; producers are refused until there is "
                "room, readers are served",
                self._path,
                error,
            )
        self._refused.setdefault(topic_partition, end_offset)
        self._refused_lately = True

    def refuse_checkpoints(self, error: OSError) -> None:
        self.refuse(_CHECKPOINTS, error)

    def take_checkpoints(self) -> None:
        """Note that the checkpoints could be written."""
        if self._refused.pop(_CHECKPOINTS, None) is not None and not self._refused:
            self._tell()

    def look(self, logs: Mapping[TopicPartition, Growing]) -> None:
        """See from time to time whether it is over, by the logs that are there now.

        Whoever still wants its log made is refused again before each look; so a name without a
        log, and with nobody refused lately, is that of a topic that was deleted.
        """
        if not self._refused:
            return
        refused_lately, self._refused_lately = self._refused_lately, False
        if refused_lately:
            return
        still = {
            name: end_offset
            for name, end_offset in self._refused.items()
            if name in logs or name == _CHECKPOINTS
        }
        if any(name in logs and logs[name].log_end_offset > end for name, end in still.items()):
            still = {}
        self._refused = still
        if not still:
            self._tell()

    def _tell(self) -> None:
        _log.info("the log directory %s takes writes again", self._path)
