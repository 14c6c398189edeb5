"""What a flow's topics hold that cannot be read, brought to quarantine past the flow's query.

The source's tasks put such records aside (`spark.unreadable`); here they are gathered when the job
of a batch is done. Where Spark has not read all of a batch, since the query had no use for it, the
rest is looked through in a job of its own: what cannot be read is kept, whatever a query wants.
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
from headrace.pipelines.sources import metadata_prefix, source_options, span_options, spans_of
from headrace.spark.carrying import carried
from headrace.spark.refuge import OPTION, Refuge, Span, Spans, Unreadable
from headrace.spark.unreadable import PutAside, chosen, gaps, notes_in

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
"""Options that say where a source reads and what else it tells of a record."""


@dataclass(frozen=True, slots=True)
class TopicAside:
    """A source of a flow, and how the rest of a batch is read from it."""

    source: Source = field(repr=False)
    options: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, source: Source, settings: PipelineSettings) -> "TopicAside":
        options = source_options(source, settings) if source.connector == "headrace" else {}
        given = {n: v for n, v in options.items() if n.lower() not in ("columns", "failondataloss")}
        return cls(source, given)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def reading(self) -> tuple[object, ...]:
        """What decides which records it cannot read, wherever it reads them."""
        if self.source.connector != "headrace":
            return (self.name,)
        given = {name.lower(): value for name, value in self.options.items()}
        return tuple(sorted(item for item in given.items() if item[0] not in _NOT_OF_PAYLOADS))

    def spans_of(self, spans: Spans) -> dict[str, dict[str, tuple[int, int]]]:
        """Those of a batch that are this source's; a topic that was made anew begins at 0."""
        return {
            topic: {
                partition: (first if first <= end else 0, end)
                for partition, (first, end) in partitions.items()
            }
            for topic, partitions in spans_of(self.source, spans).items()
        }


@dataclass(frozen=True, slots=True)
class SettingAside:
    """The way of unreadable records past one flow's query; a value, so that it can travel."""

    refuge: Refuge
    topics: tuple[TopicAside, ...]

    def refuge_of(self, source: str) -> Refuge | None:
        """Where a source's tasks put what they cannot read; None if that is the query's to do.

        Sources that read alike share a folder: what they find in the same topic counts once.
        """
        for alike in self._alike():
            if source in (one.name for one in alike):
                notes = f"{self.refuge.notes}/{alike[0].name}"
                return msgspec.structs.replace(self.refuge, notes=notes, source=source)
        return None

    def begin(self) -> None:
        """Forget what earlier batches, or this one before a crash, have noted."""
        shutil.rmtree(self.refuge.notes, ignore_errors=True)

    def end(self, spark: "SparkSession", spans: Spans) -> list[DataFile]:
        """The files with what could not be read of a batch, all of which was looked at."""
        return [file for alike in self._alike() for file in self._files(spark, alike, spans)]

    def _files(
        self, spark: "SparkSession", alike: Sequence[TopicAside], spans: Spans
    ) -> list[DataFile]:
        refuge = self.refuge_of(alike[0].name)
        assert refuge is not None, "it is one of these topics"
        wanted: dict[str, Mapping[str, tuple[int, int]]] = {}
        for one in alike:
            wanted |= one.spans_of(spans)
        looked_for: list[Span] = []
        while True:
            notes = chosen(notes_in(Path(refuge.notes)), wanted or None)
            missing = gaps(wanted, notes)
            if not missing:
                return [file for note in notes for file in note.files]
            if missing == looked_for:
                raise PipelineError(f"no task has told what it read of {missing[0]}; run again")
            looked_for = missing
            _look_through(spark, alike[0], refuge, missing)

    def _alike(self) -> list[list[TopicAside]]:
        """The sources, those together that read alike."""
        found: dict[tuple[object, ...], list[TopicAside]] = {}
        for one in self.topics:
            found.setdefault(one.reading, []).append(one)
        return list(found.values())


def without_unreadable(rows: "DataFrame", source: Source, refuge: Refuge) -> "DataFrame":
    """Rows without those that have an error, for sources that cannot put these aside themselves."""
    take_out = _TakeOut(refuge, metadata_prefix(source))
    return rows.mapInArrow(carried(take_out), rows.schema)


@dataclass(frozen=True, slots=True)
class _TakeOut:
    """What a task does with rows: those with an error go aside, the others on."""

    refuge: Refuge
    prefix: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        aside = PutAside(self.refuge)
        try:
            for batch in batches:
                errors = batch.column(ERROR)
                if errors.null_count < len(errors):
                    aside.put(self._unreadable(batch.filter(errors.is_valid())))
                yield batch.filter(errors.is_null())
        except BaseException:
            aside.abort()
            raise
        aside.finish()

    def _unreadable(self, batch: pa.RecordBatch) -> Unreadable:
        return Unreadable(
            topic=_column(batch, f"{self.prefix}topic", pa.string()),
            partition=_column(batch, f"{self.prefix}partition", pa.int32()),
            offset=_column(batch, f"{self.prefix}offset", pa.int64()),
            timestamp=_column(batch, f"{self.prefix}timestamp", pa.timestamp("us", "UTC")),
            error=batch.column(ERROR),
            payload=_column(batch, PAYLOAD, pa.binary()),
        )


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """A column that tells of the record; nulls where there is none of that name and sort."""
    if name in batch.schema.names and batch.column(name).type == kind:
        return batch.column(name)
    return pa.nulls(batch.num_rows, kind)


def _look_through(
    spark: "SparkSession", topic: TopicAside, refuge: Refuge, missing: list[Span]
) -> None:
    """Have tasks read what the query did not, one stretch of each partition."""
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
    options |= {"failOnDataLoss": "false", OPTION: refuge.to_option()}
    rows = spark.read.format(topic.source.connector).options(**options).load()
    rows.write.format("noop").mode("overwrite").save()
