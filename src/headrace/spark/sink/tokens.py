"""What the token topic says: which batch of a writer is decided, and which tasks have committed.

Two kinds of records, both kept by compaction, both of one writer in one partition, and both
written inside of transactions that write the rows, so that they are committed with them:

- a *token* per task, in the task's transaction;
- a *decision* per batch, which the driver adds to the transaction of task 0 before it commits that
  one first: from then on the batch will be committed as a whole.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from zlib import crc32

import msgspec

from headrace.protocol.batches import BatchHeader, headers, records_of
from headrace.protocol.control_records import ControlType, control_type

PARTITIONS = 8
"""Fixed for good: another number would let writers look for their tokens elsewhere."""

_DECISION = b"epoch"


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A task's transaction: everything is written, nothing is committed."""

    task: int
    producer_id: int
    producer_epoch: int
    sequence: int
    """What the next batch in the token partition is numbered, if someone adds one."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is to be committed, and by which transactions."""

    epoch: int
    tasks: int
    transactions: tuple[Prepared, ...]
    """Those of the tasks that had rows."""
    topic: str | None = None


class Token(msgspec.Struct, frozen=True):
    """The last batch that a task has committed, for whoever looks into the topic."""

    epoch: int


def partition_of(writer: str) -> int:
    """Where a writer's tokens and decisions are."""
    return crc32(writer.encode()) % PARTITIONS


def token_key(writer: str, task: int) -> bytes:
    return f"{writer}/{task}".encode()


def decision_key(writer: str) -> bytes:
    """Tokens end in a number and this does not, so no two writers' keys can meet."""
    return writer.encode() + b"/" + _DECISION


def transactional_id(writer: str, task: int) -> str:
    """Each attempt of a task claims the same id, and so locks the attempt before it out."""
    return f"{writer}-{task}"


@dataclass(slots=True)
class WriterHistory:
    """Folds a run of batches into what a writer has committed.

    Decides by the transactions' markers and so need not wait for those of other writers to end,
    as a reader of committed records would. What has no marker yet is not committed: whoever
    could still commit it holds the transactional id.
    """

    writer: str
    decision: Decision | None = None
    committed: set[tuple[int, int, int]] = field(default_factory=set)
    """Task, producer id and producer epoch of each token."""
    _open: defaultdict[int, list[tuple[int, int, int] | Decision]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def has(self, prepared: Prepared) -> bool:
        """Whether this very transaction was committed."""
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
