"""The clean offset of each compacted log: `cleaner-offset-checkpoint` of each log directory."""

import logging
from collections.abc import Iterable

import msgspec

from headrace.protocol.uuids import Uuid
from headrace.storage.checkpoints import CLEANER_OFFSETS, CorruptCheckpoint, read_offsets
from headrace.storage.log import Log
from headrace.storage.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


class _CleanUpTo(msgspec.Struct):
    offset: int
    topic_id: Uuid | None = None
    """The topic id of an offset. The file has none, so the first log of the name claims it."""


class CleanerOffsets:
    """The checkpoints of all directories, each read with its first log."""

    def __init__(self) -> None:
        self._directories: dict[str, dict[TopicPartition, _CleanUpTo]] = {}

    def known(self, log: Log) -> int | None:
        """Return the clean offset of a log after its last round; None before the first."""
        known = self._entries(log).get(log.topic_partition)
        if known is None:
            return None
        if known.topic_id is None:
            known.topic_id = log.topic_id
        return known.offset if known.topic_id == log.topic_id else None

    def advance(self, log: Log, offset: int) -> None:
        self._entries(log)[log.topic_partition] = _CleanUpTo(offset, log.topic_id)

    def forget_all_but(self, logs: Iterable[Log]) -> None:
        """Drop logs that were deleted; other unknown logs may not be loaded yet."""
        there = {log.topic_partition for log in logs}
        for entries in self._directories.values():
            for partition in entries.keys() - there:
                if entries[partition].topic_id is not None:
                    del entries[partition]

    def checkpoint(self, log: Log) -> tuple[str, dict[TopicPartition, int]]:
        """Return the path and the new content of the file with a log's entry."""
        offsets = {partition: known.offset for partition, known in self._entries(log).items()}
        return f"{directory_of(log)}/{CLEANER_OFFSETS}", offsets

    def _entries(self, log: Log) -> dict[TopicPartition, _CleanUpTo]:
        directory = directory_of(log)
        entries = self._directories.get(directory)
        if entries is None:
            entries = self._directories[directory] = _load(directory)
        return entries


def directory_of(log: Log) -> str:
    return log.directory.rpartition("/")[0]


def _load(directory: str) -> dict[TopicPartition, _CleanUpTo]:
    try:
        offsets = read_offsets(f"{directory}/{CLEANER_OFFSETS}")
    except CorruptCheckpoint as error:
        _log.warning(
            "cleaner checkpoint not readable", extra={"path": directory, "error": str(error)}
        )
        return {}
    return {partition: _CleanUpTo(offset) for partition, offset in offsets.items()}
