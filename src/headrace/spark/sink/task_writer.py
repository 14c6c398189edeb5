"""The part of a write that runs in a task."""

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from headrace.spark.sink.columns import columns_of
from headrace.spark.sink.epochs import Epochs
from headrace.spark.sink.errors import WrongOption
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.token_log import TokenLog, token_admin
from headrace.spark.sink.tokens import Prepared, Token, partition_of, token_key, transactional_id

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from headrace.spark.sink.producing import SinkProducer

_log = logging.getLogger(__name__)

TIMEOUT_S = 60.0
"""The time for unavailable brokers while tokens are read and transactions ended."""
_SLICE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Epoch:
    """One batch of one writer; only kept ones are recognised when they are repeated."""

    writer: str
    number: int
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class TaskWritten(WriterCommitMessage):
    """A task's message to the driver: its open transaction, or that it was skipped."""

    epoch: Epoch
    prepared: Prepared | None = None
    is_skipped: bool = False


class TaskWriter:
    """Writes the rows of one task; executors unpickle it."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self.options = options
        self._columns = columns_of(schema, options)

    def write(self, batches: Iterator["RecordBatch"], epoch: Epoch, task: int) -> TaskWritten:
        """Write the rows unless they are written already.

        All batches are consumed in any case, because state stores upstream commit after that.
        """
        if self.options.is_single_transaction and task > 0:
            raise not_single(f"at least {task + 1}")
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is not None:
            batches = chain([first], batches)
        elif task > 0 or not self.options.is_transactional:
            return TaskWritten(epoch)  # Task 0 carries the decision; see `epochs`.
        if self.options.is_transactional:
            return self._write_once(batches, epoch, task)
        self._write_plainly(batches)
        return TaskWritten(epoch)

    def _write_plainly(self, batches: Iterator["RecordBatch"]) -> None:
        from headrace.spark.sink.producing import SinkProducer

        with SinkProducer(self.options) as producer:
            self._send(producer, batches)
            producer.flush()

    def _write_once(self, batches: Iterator["RecordBatch"], epoch: Epoch, task: int) -> TaskWritten:
        with closing(token_admin(self.options.properties, TIMEOUT_S)) as admin:
            log = TokenLog(admin, self.options.token_topic)
            log.ensure()
            epochs = Epochs(admin, log, epoch.writer, self.options.topic)
            if not epoch.is_kept or epochs.must_write(epoch.number, task):
                return TaskWritten(epoch, self._prepare(batches, epoch, task, log))
        _log.info("batch already written", extra={"batch": epoch.number, "writer": epoch.writer})
        for _ in batches:
            pass
        return TaskWritten(epoch, is_skipped=True)

    def _prepare(
        self, batches: Iterator["RecordBatch"], epoch: Epoch, task: int, log: TokenLog
    ) -> Prepared:
        """Write rows and token in a transaction that the driver ends."""
        from headrace.spark.sink.producing import SinkProducer

        # Compaction removes a token without a value; its batch still identifies the producer.
        token = msgspec.json.encode(Token(epoch.number)) if epoch.is_kept else None
        partition = partition_of(epoch.writer)
        with SinkProducer(self.options, transactional_id(epoch.writer, task)) as producer:
            producer.begin()
            self._send(producer, batches)
            key = token_key(epoch.writer, task)
            offset = producer.send_token(log.topic, partition, key, token)
            return log.prepared(task, partition, offset)

    def _send(self, producer: "SinkProducer", batches: Iterator["RecordBatch"]) -> None:
        """Send the rows; the topic is looked up at the first one, as brokers may create it then."""
        topic = self.options.topic
        for batch in batches:
            for piece in _pieces(batch):
                rows = self._columns.rows(piece)
                if topic is not None:
                    producer.require_topic(topic)
                    topic = None
                producer.send(rows, piece.nbytes)


def not_single(tasks: str) -> WrongOption:
    return WrongOption(
        f"singleTransaction=true needs all rows in one task, and there are {tasks}: add"
        " coalesce(1) before the write"
    )


def _pieces(batch: "RecordBatch") -> Iterator["RecordBatch"]:
    """Slice a batch to some megabytes: Arrow bounds rows only, and rows can be large."""
    count = max(1, batch.num_rows * _SLICE_BYTES // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, count):
        yield batch.slice(start, count)
