"""Unreadable records of a flow's topics, moved to quarantine around the flow's query.

The source's tasks write such records to a side output, collected here when the job of a batch is
done. If Spark has not read all of a batch, since the query did not need it, another job reads the
rest: unreadable records are kept whatever the query needs.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from headrace.lake.data_files import DataFile
from headrace.pipelines.model import ERROR, PAYLOAD, PipelineSettings, Source
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.queries.sources import (
    metadata_prefix,
    source_options,
    span_options,
    spans_of,
)
from headrace.spark.launching.pickled_package import with_package
from headrace.spark.side_output import OPTION, SideOutput, Span, Spans, UnreadableRecords
from headrace.spark.side_output_files import SideOutputWriter, chosen, gaps, notes_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_NOT_OF_PAYLOADS = frozenset(
    {
        *("subscribe", "subscribepattern", "startingoffsets", "startingtimestamp"),
        *("startingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy", "group"),
        *("maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "maxbytespertrigger"),
        *("minpartitions", "maxrecordsperpartition", "startslocation"),
        *("includeheaders", "metadataprefix", "keeppayloads"),
    }
)
"""Options about the place of reading and the columns besides the payload."""


@dataclass(frozen=True, slots=True)
class TopicSideOutput:
    """A source of a flow, and the options to read the rest of a batch from it."""

    source: Source = field(repr=False)
    options: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, source: Source, settings: PipelineSettings) -> "TopicSideOutput":
        options = source_options(source, settings) if source.connector == "headrace" else {}
        given = {n: v for n, v in options.items() if n.lower() not in ("columns", "failondataloss")}
        return cls(source, given)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def reading(self) -> tuple[object, ...]:
        """The options that decide which records are unreadable."""
        if self.source.connector != "headrace":
            return (self.name,)
        given = {name.lower(): value for name, value in self.options.items()}
        return tuple(sorted(item for item in given.items() if item[0] not in _NOT_OF_PAYLOADS))

    def spans_of(self, spans: Spans) -> dict[str, dict[str, tuple[int, int]]]:
        """Return the source's spans of a batch; a recreated topic begins at 0."""
        return {
            topic: {
                partition: (first if first <= end else 0, end)
                for partition, (first, end) in partitions.items()
            }
            for topic, partitions in spans_of(self.source, spans).items()
        }


@dataclass(frozen=True, slots=True)
class SideOutputs:
    """The side output of one flow's unreadable records; a value that can be pickled."""

    side_output: SideOutput
    topics: tuple[TopicSideOutput, ...]

    def side_output_of(self, source: str) -> SideOutput | None:
        """Return the side output of a source; None if the query gets its unreadable records.

        Sources with equal decoding share a folder: a record of a shared topic counts once.
        """
        for alike in self._alike():
            if source in (one.name for one in alike):
                notes = f"{self.side_output.notes}/{alike[0].name}"
                return msgspec.structs.replace(self.side_output, notes=notes, source=source)
        return None

    def begin(self) -> None:
        """Remove the notes of earlier batches, or of this one before a crash."""
        shutil.rmtree(self.side_output.notes, ignore_errors=True)

    def end(self, spark: "SparkSession", spans: Spans) -> list[DataFile]:
        """Return the files with a batch's unreadable records, after reading all of it."""
        return [file for alike in self._alike() for file in self._files(spark, alike, spans)]

    def _files(
        self, spark: "SparkSession", alike: Sequence[TopicSideOutput], spans: Spans
    ) -> list[DataFile]:
        side_output = self.side_output_of(alike[0].name)
        assert side_output is not None, "the source is one of these topics"
        wanted: dict[str, Mapping[str, tuple[int, int]]] = {}
        for one in alike:
            wanted |= one.spans_of(spans)
        looked_for: list[Span] = []
        while True:
            notes = chosen(notes_in(Path(side_output.notes)), wanted or None)
            missing = gaps(wanted, notes)
            if not missing:
                return [file for note in notes for file in note.files]
            if missing == looked_for:
                raise PipelineError(f"no task has reported {missing[0]} as read; run again")
            looked_for = missing
            _decode_unread(spark, alike[0], side_output, missing)

    def _alike(self) -> list[list[TopicSideOutput]]:
        """Return the sources, grouped by equal decoding."""
        found: dict[tuple[object, ...], list[TopicSideOutput]] = {}
        for one in self.topics:
            found.setdefault(one.reading, []).append(one)
        return list(found.values())


def without_unreadable(rows: "DataFrame", source: Source, side_output: SideOutput) -> "DataFrame":
    """Remove rows with an error, for sources without a side output of their own."""
    take_out = _TakeOut(side_output, metadata_prefix(source))
    return rows.mapInArrow(with_package(take_out), rows.schema)


@dataclass(frozen=True, slots=True)
class _TakeOut:
    """Splits the rows of a task: those with an error go to the side output."""

    side_output: SideOutput
    prefix: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = SideOutputWriter(self.side_output)
        try:
            for batch in batches:
                errors = batch.column(ERROR)
                if errors.null_count < len(errors):
                    writer.put(self._unreadable(batch.filter(errors.is_valid())))
                yield batch.filter(errors.is_null())
        except BaseException:
            writer.abort()
            raise
        writer.finish()

    def _unreadable(self, batch: pa.RecordBatch) -> UnreadableRecords:
        return UnreadableRecords(
            topic=_column(batch, f"{self.prefix}topic", pa.string()),
            partition=_column(batch, f"{self.prefix}partition", pa.int32()),
            offset=_column(batch, f"{self.prefix}offset", pa.int64()),
            timestamp=_column(batch, f"{self.prefix}timestamp", pa.timestamp("us", "UTC")),
            error=batch.column(ERROR),
            payload=_column(batch, PAYLOAD, pa.binary()),
        )


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """Return a column about the record; nulls if the batch lacks it."""
    if name in batch.schema.names and batch.column(name).type == kind:
        return batch.column(name)
    return pa.nulls(batch.num_rows, kind)


def _decode_unread(
    spark: "SparkSession", topic: TopicSideOutput, side_output: SideOutput, missing: list[Span]
) -> None:
    """Read the rest of a batch with tasks, one span per partition at a time."""
    stretches: dict[tuple[str, int], Span] = {}
    for one in missing:
        stretches.setdefault((one.topic, one.partition), one)
    options = span_options(
        topic.options,
        {
            name: {str(p): (s.first, s.end) for (t, p), s in stretches.items() if t == name}
            for name, _ in stretches
        },
    )
    options |= {"failOnDataLoss": "false", OPTION: side_output.to_option()}
    rows = spark.read.format(topic.source.connector).options(**options).load()
    rows.write.format("noop").mode("overwrite").save()
