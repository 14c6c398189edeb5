"""The writers that Spark calls: `write` in each task, `commit` or `abort` on the driver.

The driver creates another writer for each streaming commit, so the messages carry all state.
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

from headrace.spark.launching.pickled_package import PickledWithPackage
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
    """Return a writer for `df.write`; `token.writer` and `token.batch` identify repeats."""
    if overwrite:
        raise WrongOption('a topic cannot be overwritten: use mode("append")')
    return BatchWriter(sink_options(options), schema)


def stream_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool
) -> "StreamWriter":
    """Return a writer for `df.writeStream`; the query's id and batch numbers identify batches."""
    if overwrite:
        raise WrongOption("a topic cannot be overwritten: use output mode append or update")
    return StreamWriter(sink_options(options), schema)


class BatchWriter(PickledWithPackage, DataSourceArrowWriter):
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


class StreamWriter(PickledWithPackage, DataSourceStreamArrowWriter):
    """Writes the batches of a streaming query."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        if options.batch is not None:
            raise WrongOption("token.batch is for df.write; a stream numbers its batches itself")
        self._tasks = TaskWriter(options, schema)

    def write(self, iterator: Iterator["RecordBatch"]) -> WriterCommitMessage:
        context = _context()
        query, number = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if query is None or number is None:
            raise SinkError("Spark did not pass the query and the batch of this task")
        epoch = Epoch(self._tasks.options.writer or query, int(number))
        return self._tasks.write(iterator, epoch, context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        commit(self._tasks.options, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        abort(self._tasks.options, messages, self._tasks.options.writer)


def commit(options: SinkOptions, messages: Messages) -> None:
    """Commit the transactions of all tasks."""
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
    """Abort the transactions of all tasks after a failure.

    The writer of a stream is unknown if no task has finished; then a repetition of the batch claims
    its transactional ids.
    """
    tasks = _written(messages)
    prepared = [one.prepared for one in tasks if one.prepared is not None]
    known = tasks[0].epoch.writer if tasks else writer
    if known is not None and options.is_transactional:
        with closing(token_admin(options.properties, TIMEOUT_S)) as admin:
            log = TokenLog(admin, options.token_topic)
            Epochs(admin, log, known, options.topic).abort(prepared, len(messages))


def _written(messages: Messages) -> list[TaskWritten]:
    """Return the messages of the successful tasks."""
    return [message for message in messages if isinstance(message, TaskWritten)]


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written in tasks"
    return context
