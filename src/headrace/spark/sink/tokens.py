"""What the token topic says: which batch of a writer is decided, and which tasks have committed.

Two kinds of records, both kept by compaction, both of one writer in one partition:

- a *token* per task, written inside of the task's transaction: it is committed with the rows;
- a *decision* per writer, written by the driver when all tasks of a batch have prepared theirs and
  before the first transaction is committed: from then on the batch will be committed as a whole.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from zlib import crc32

import msgspec

from headrace.protocol.batches import headers, records_of
from headrace.protocol.control_records import ControlType, control_type

PARTITIONS = 8
"""Fixed for good: another number would let writers look for their tokens elsewhere."""

_DECISION = "epoch"


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A task's transaction: everything is written, nothing is committed."""

    task: int
    producer_id: int
    producer_epoch: int


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is to be committed, and by which transactions."""

    epoch: int
    tasks: int
    transactions: tuple[Prepared, ...]
    """Those of the tasks that had rows."""
    topic: str | None = None


class Token(msgspec.Struct, frozen=True):
    """The last batch that a task has committed."""

    epoch: int


def partition_of(writer: str) -> int:
    """Where a writer's tokens and decisions are."""
    return crc32(writer.encode()) % PARTITIONS


def token_key(writer: str, task: int) -> bytes:
    return f"{writer}/{task}".encode()


def decision_key(writer: str) -> bytes:
    """Tokens end in a number and this does not, so no two writers' keys can meet."""
    return f"{writer}/{_DECISION}".encode()


def transactional_id(writer: str, task: int) -> str:
    """Each attempt of a task claims the same id, and so locks the attempt before it out."""
    return f"{writer}-{task}"


def last_decision(data: bytes, writer: str) -> Decision | None:
    """The newest decision of a writer in a run of batches."""
    wanted = decision_key(writer)
    found = None
    for record in _records(data):
        if record.key == wanted and record.value is not None:
            found = record.value
    return None if found is None else msgspec.json.decode(found, type=Decision)


@dataclass(slots=True)
class CommittedTasks:
    """Folds a token partition into the tasks of one batch that have committed.

    Decides by the transactions' markers and so need not wait for those of other writers to end,
    as a reader of committed records would. A token without a marker is not committed: whoever
    could still commit it holds the transactional id.
    """

    writer: str
    epoch: int
    tasks: set[int] = field(default_factory=set)
    _open: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def fold(self, data: bytes) -> None:
        prefix = f"{self.writer}/".encode()
        for record in _records(data):
            if record.marker is not None:
                ended = self._open.pop(record.producer_id, set())
                if record.marker == ControlType.COMMIT:
                    self.tasks |= ended
            elif record.key is not None and record.key.startswith(prefix):
                task = record.key.removeprefix(prefix)
                if task.isdigit() and self._is_of_epoch(record.value):
                    self._open[record.producer_id].add(int(task))

    def _is_of_epoch(self, value: bytes | None) -> bool:
        return value is not None and msgspec.json.decode(value, type=Token).epoch == self.epoch


class _Seen(msgspec.Struct, frozen=True):
    key: bytes | None
    value: bytes | None
    producer_id: int
    marker: int | None = None


def _records(data: bytes) -> Iterator[_Seen]:
    for position, header in headers(data):
        found: Iterable[_Seen]
        if header.is_control:
            found = [
                _Seen(None, None, header.producer_id, control_type(record.key))
                for record in records_of(data, position)
            ]
        else:
            found = [
                _Seen(record.key, record.value, header.producer_id)
                for record in records_of(data, position)
            ]
        yield from found
