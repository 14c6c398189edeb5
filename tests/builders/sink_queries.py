"""Batches of the sink without Spark: tasks and driver are called directly and crash on demand."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from headrace.client.admin import Admin
from headrace.spark.sink.epochs import Epochs
from headrace.spark.sink.options import SinkOptions, sink_options
from headrace.spark.sink.task_writer import Epoch, TaskWriter, TaskWritten
from headrace.spark.sink.token_log import TokenLog, token_admin
from headrace.spark.sink.tokens import Decision, transactional_id
from headrace.spark.sink.writer import commit
from tests.clients.committed_records import committed_values

VALUE = StructType([StructField("value", StringType())])


@dataclass(frozen=True)
class Query:
    """A query that writes batches; each attempt of a batch is a list of tasks with their rows."""

    options: SinkOptions
    writer: str

    def run(self, number: int, *tasks: Sequence[str]) -> list[TaskWritten]:
        """Let all tasks of a batch write, in one go."""
        epoch = Epoch(self.writer, number)
        return [
            TaskWriter(self.options, VALUE).write(batches_of(rows), epoch, index)
            for index, rows in enumerate(tasks)
        ]

    def commit(self, written: Sequence[TaskWritten]) -> None:
        commit(self.options, written)

    def decide(self, number: int, written: Sequence[TaskWritten], *, committed: int) -> None:
        """Let the driver crash after its decision and so many committed transactions."""
        prepared = tuple(one.prepared for one in written if one.prepared is not None)
        decision = Decision(
            epoch=number, tasks=len(written), transactions=prepared, topic=self.options.topic
        )
        with closing(token_admin(self.options.properties, 10)) as admin:
            log = TokenLog(admin, self.options.token_topic)
            log.append(self.writer, prepared[0], decision)
            epochs = Epochs(admin, log, self.writer, self.options.topic)
            epochs.commit_prepared(prepared[:committed])

    def lose(self, task: int) -> None:
        """Let a task's transaction time out, as its coordinator does it."""
        with Admin(self.options.properties["bootstrap.servers"]) as admin:
            admin.transactions.terminate(transactional_id(self.writer, task))

    def values(self) -> list[bytes | None]:
        assert self.options.topic is not None
        return committed_values(self.options.properties["bootstrap.servers"], self.options.topic)


def batches_of(rows: Sequence[str]) -> Iterator[pa.RecordBatch]:
    yield from [
        pa.record_batch({"value": [row]}, schema=pa.schema({"value": pa.string()})) for row in rows
    ]


def options_for(servers: str, topic: str, **given: str) -> SinkOptions:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return sink_options({"kafka.bootstrap.servers": servers, "topic": topic, **named})
