"""The records of the token topic: the tokens of tasks and the decisions of writers.

Both are kept by compaction, in one partition per writer, and written inside the transactions of the
rows, so that they are committed together:

- a *token* per task, in the task's transaction;
- a *decision* per batch, which the driver adds to the transaction of task 0 before it commits that
  one. From then on the whole batch will be committed.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from zlib import crc32

import msgspec

from headrace.protocol.batches import BatchHeader, headers, records_of
from headrace.protocol.control_records import ControlType, control_type

PARTITIONS = 8
"""The number can never change, because writers find their tokens by it."""

_DECISION = b"epoch"


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A task's open transaction with all of its rows."""

    task: int
    producer_id: int
    producer_epoch: int
    sequence: int
    """The sequence number of the next batch in the token partition."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A batch to be committed, with its transactions."""

    epoch: int
    tasks: int
    transactions: tuple[Prepared, ...]
    """The transactions of the tasks with rows."""
    topic: str | None = None


class Token(msgspec.Struct, frozen=True):
    """The last committed batch of a task, for readers of the topic."""

    epoch: int


def partition_of(writer: str) -> int:
    return crc32(writer.encode()) % PARTITIONS


def token_key(writer: str, task: int) -> bytes:
    return f"{writer}/{task}".encode()


def decision_key(writer: str) -> bytes:
    """Return the key of decisions; keys of tokens end in a number, so they never collide."""
    return writer.encode() + b"/" + _DECISION


def transactional_id(writer: str, task: int) -> str:
    """Return the id that all attempts of a task claim, so that each fences the one before."""
    return f"{writer}-{task}"


@dataclass(slots=True)
class WriterHistory:
    """Folds batches of the topic into the committed state of a writer.

    It depends on the markers of the writer's transactions, and does not wait for those of other
    writers, as a reader of committed records would. Transactions without a marker are not
    committed: only the owner of the transactional id can still commit them.
    """

    writer: str
    decision: Decision | None = None
    committed: set[tuple[int, int, int]] = field(default_factory=set)
    """Task, producer id and producer epoch of each token."""
    _open: defaultdict[int, list[tuple[int, int, int] | Decision]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def has(self, prepared: Prepared) -> bool:
        """Return whether this transaction was committed."""
        return (prepared.task, prepared.producer_id, prepared.producer_epoch) in self.committed

    def fold(self, data: bytes) -> None:
        for position, header in headers(data):
            for record in records_of(data, position):
                if header.is_control:
                    self._end(header.producer_id, control_type(record.key))
                elif record.key is not None and record.value is not None:
                    self._note(header, record.key, record.value)

    def _note(self, header: BatchHeader, key: bytes, value: bytes) -> None:
        name, _, last = key.rpartition(b"/")
        if name != self.writer.encode():
            return
        if last == _DECISION:
            self._open[header.producer_id].append(msgspec.json.decode(value, type=Decision))
        else:
            token = (int(last), header.producer_id, header.producer_epoch)
            self._open[header.producer_id].append(token)

    def _end(self, producer_id: int, kind: int) -> None:
        for written in self._open.pop(producer_id, ()):
            if kind != ControlType.COMMIT:
                continue
            if isinstance(written, Decision):
                self.decision = written
            else:
                self.committed.add(written)
