"""What Spark calls: `write` in each task, `commit` or `abort` on the driver.

The driver builds a writer anew for a streaming commit, so everything that one side must tell the
other is in the messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from headrace.spark.carrying import Carrier
from headrace.spark.sink.epochs import Epochs
from headrace.spark.sink.errors import SinkError, WrongOption
from headrace.spark.sink.options import SinkOptions, sink_options
from headrace.spark.sink.task_writer import TIMEOUT_S, Epoch, TaskWriter, TaskWritten, not_single
from headrace.spark.sink.token_log import TokenLog, token_admin

if TYPE_CHECKING:
    from pyarrow import RecordBatch

Messages = Sequence[WriterCommitMessage | None]

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> "BatchWriter":
    """For `df.write`; `token.writer` and `token.batch` let a repeated write change nothing."""
    if overwrite:
        raise WrongOption('a topic cannot be overwritten: use mode("append")')
    return BatchWriter(sink_options(options), schema)


def stream_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool
) -> "StreamWriter":
    """For `df.writeStream`; batches are told apart by the query's id and their number."""
    if overwrite:
        raise WrongOption("a topic cannot be overwritten: use output mode append or update")
    return StreamWriter(sink_options(options), schema)


class BatchWriter(Carrier, DataSourceArrowWriter):
    """Writes a DataFrame."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        if (options.writer is None) != (options.batch is None):
            raise WrongOption("token.writer and token.batch belong together: give both or none")
        self._tasks = TaskWriter(options, schema)
        if options.writer is None or options.batch is None:
            self._epoch = Epoch(f"headrace-{uuid4()}", 0, is_kept=False)
        else:
            self._epoch = Epoch(options.writer, options.batch)

    def write(self, iterator: Iterator["RecordBatch"]) -> WriterCommitMessage:
        return self._tasks.write(iterator, self._epoch, _context().partitionId())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit(self._tasks.options, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        abort(self._tasks.options, messages, self._epoch.writer)


class StreamWriter(Carrier, DataSourceStreamArrowWriter):
    """Writes the batches of a streaming query."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        if options.batch is not None:
            raise WrongOption("token.batch is for df.write; a stream numbers its batches itself")
        self._tasks = TaskWriter(options, schema)

    def write(self, iterator: Iterator["RecordBatch"]) -> WriterCommitMessage:
        context = _context()
        query, number = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if query is None or number is None:
            raise SinkError("Spark does not say which batch of which query this task belongs to")
        epoch = Epoch(self._tasks.options.writer or query, int(number))
        return self._tasks.write(iterator, epoch, context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        commit(self._tasks.options, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        abort(self._tasks.options, messages, self._tasks.options.writer)


def commit(options: SinkOptions, messages: Messages) -> None:
    """All tasks are done: let the batch be seen, if transactions hold it back."""
    tasks = _written(messages)
    prepared = [one.prepared for one in tasks if one.prepared is not None]
    if not prepared and not any(one.is_skipped for one in tasks):
        return
    epoch = tasks[0].epoch
    with closing(token_admin(options.properties, TIMEOUT_S)) as admin:
        log = TokenLog(admin, options.token_topic)
        epochs = Epochs(admin, log, epoch.writer, options.topic)
        if options.is_single_transaction and len(tasks) > 1:
            epochs.abort(prepared)
            raise not_single(str(len(tasks)))
        if epoch.is_kept:
            epochs.commit(epoch.number, len(tasks), prepared)
        else:
            epochs.commit_prepared(prepared)


def abort(options: SinkOptions, messages: Messages, writer: str | None) -> None:
    """A task has failed: take back what the others have prepared, or were about to.

    The writer is not known if no task of a stream came to an end; whoever repeats the batch then
    takes over the names of its transactions.
    """
    tasks = _written(messages)
    prepared = [one.prepared for one in tasks if one.prepared is not None]
    known = tasks[0].epoch.writer if tasks else writer
    if known is not None and options.is_transactional:
        with closing(token_admin(options.properties, TIMEOUT_S)) as admin:
            log = TokenLog(admin, options.token_topic)
            Epochs(admin, log, known, options.topic).abort(prepared, len(messages))


def _written(messages: Messages) -> list[TaskWritten]:
    """The messages of the tasks that ended well."""
    return [message for message in messages if isinstance(message, TaskWritten)]


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written in tasks"
    return context
