"""Free space of a log directory: log once when it is full, and once when it has space again.

Every rejected producer detects a full disk, many times a second. The operator needs two log lines:
the start and the end. The end shows in a log that was rejected and has grown since, without a
rejection meanwhile: a disk with a few bytes left accepts small batches and rejects large ones.
"""

import logging
from collections.abc import Mapping
from typing import Protocol

from headrace.errors import KafkaStorageError
from headrace.storage.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

_NOT_MADE = -1
_CHECKPOINTS = TopicPartition("", 0)
"""Represents the checkpoints among the rejected writers; no partition has this name."""


class DiskFull(KafkaStorageError):
    """The disk is full; a retry may succeed."""


class Growing(Protocol):
    """A log whose growth is visible."""

    log_end_offset: int


class FreeSpace:
    """The free space of one directory, as its writers find it."""

    __slots__ = ("_path", "_refused", "_was_refused_lately")

    def __init__(self, path: str) -> None:
        self._path = path
        self._refused: dict[TopicPartition, int] = {}
        """The rejected writers, with the end offset of their log at the time."""
        self._was_refused_lately = False

    def refuse(
        self, topic_partition: TopicPartition, error: OSError, end_offset: int = _NOT_MADE
    ) -> None:
        """Record that a partition could not be written or created."""
        if not self._refused:
            _log.warning(
                "log directory full, producers are rejected until it has space",
                extra={"path": self._path, "error": str(error)},
            )
        self._refused.setdefault(topic_partition, end_offset)
        self._was_refused_lately = True

    def refuse_checkpoints(self, error: OSError) -> None:
        self.refuse(_CHECKPOINTS, error)

    def accept_checkpoints(self) -> None:
        """Record that the checkpoints were written."""
        if self._refused.pop(_CHECKPOINTS, None) is not None and not self._refused:
            self._log_space_again()

    def check(self, logs: Mapping[TopicPartition, Growing]) -> None:
        """Check periodically whether the disk has space again, by the current logs.

        A pending creation of a log is rejected again before each check; a name without a log and
        without a recent rejection is therefore a deleted topic.
        """
        if not self._refused:
            return
        was_refused_lately, self._was_refused_lately = self._was_refused_lately, False
        if was_refused_lately:
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
            self._log_space_again()

    def _log_space_again(self) -> None:
        _log.info("log directory has space again", extra={"path": self._path})
