"""The very records that refused rows came from, read once more for the flow that made them."""

from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headrace.pipelines.model import ERROR, Source, TemporaryView
from headrace.pipelines.running.exact_records import records_between
from headrace.pipelines.running.kept_records import PLACE, KeptRecords, Place, decoded, table_of
from headrace.pipelines.running.reading import SnapshotReader, TableReads
from headrace.pipelines.running.record_files import frame_near, spans_over
from headrace.pipelines.running.setting_aside import without_unreadable
from headrace.pipelines.sources import admitted, metadata_prefix
from headrace.spark.tables.schemas import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RecordsAgain(SnapshotReader):
    """Reads as a batch run does, except that of a stream there are only the wanted records.

    What the flow looks up in other tables is there whole: no row of quarantine came from it. A
    record that is gone from its topic is made anew of the bytes that quarantine has of it, and so
    is one whose topic may have another record in its place.
    """

    def __init__(self, reads: TableReads, kept: KeptRecords) -> None:
        super().__init__(reads)
        self.found: set[Place] = set()
        """The records that the flow gets, of those that are wanted."""
        self._records = kept
        self._wanted = self.spark.createDataFrame(table_of(kept.records))
        self._read: dict[str, DataFrame | None] = {}
        self._persisted: list[DataFrame] = []

    @property
    def wanted(self) -> set[Place]:
        return self._records.wanted

    @property
    def is_exact(self) -> bool:
        """Whether each row of the flow can be told to come from a wanted record.

        Not where an input does not say from which record its rows are, nor where several streams
        are put together, of which a row names only one.
        """
        return len(self._read) == 1 and None not in self._read.values()

    def read_stream(self, name: str) -> "DataFrame":
        if isinstance(self._reads.pipeline.datasets.get(name), TemporaryView):
            return self.read(name)
        if name not in self._read:
            self._read[name] = self._only_wanted(name)
        found = self._read[name]
        return self.read(name) if found is None else found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for rows in self._persisted:
            rows.unpersist()

    def _only_wanted(self, name: str) -> "DataFrame | None":
        """The wanted rows of an input; None if it does not say from which record a row is."""
        source = self._reads.source(name)
        names = place_columns(source)
        refuge = None if source is None else self._reads.refuge_of(source)
        if source is None:
            rows = frame_near(self.spark, *self._at(name), self.wanted)
        else:
            rows = records_between(self._reads, going_on(source), self._spans(), sets_aside=False)
        needed = {*names, ERROR} if refuge is not None else set(names)
        if not needed <= set(rows.columns):
            return None
        rows = self._with_those_gone(rows, names, source)
        if source is not None and refuge is not None:
            # Here and not in the source, which reads records in between that nobody asked for.
            rows = without_unreadable(rows, source, refuge)
        # What a source no longer admits was read all the same: it is not lost.
        return rows if source is None else admitted(rows, source)

    def _with_those_gone(
        self, rows: "DataFrame", names: tuple[str, ...], source: Source | None
    ) -> "DataFrame":
        """The wanted rows, with those of a topic's records that are there in quarantine only.

        They are kept, so that what is looked at first is what the flow gets then.
        """
        rows = rows.join(self._wanted.toDF(*names), list(names), "left_semi").persist()
        self._persisted.append(rows)
        there = rows.select(*names).distinct().collect()
        self.found = {(row[0], row[1], row[2]) for row in there}
        of_bytes = self._records.of_bytes(self._records.records.keys() - self.found)
        if source is None or not of_bytes:
            return rows
        settings = self._reads.pipeline.settings
        made = decoded(of_bytes, names, source, settings, arrow_schema_of(rows.schema))
        self.found |= set(zip(*(made[name].to_pylist() for name in names), strict=True))
        return rows.unionByName(self.spark.createDataFrame(made, rows.schema))

    def _spans(self) -> dict[str, dict[str, tuple[int, int]]]:
        """The offsets of topics to read for the records: from the first to the last."""
        spans: dict[str, dict[str, tuple[int, int]]] = {}
        for span in spans_over(self._records.records):
            spans.setdefault(span.topic, {})[str(span.partition)] = (span.first, span.end)
        return spans


def place_columns(source: Source | None) -> tuple[str, ...]:
    """How an input calls the columns that say where a record is; a topic's may have a prefix."""
    prefix = "" if source is None else metadata_prefix(source)
    return tuple(prefix + name for name in PLACE)


def going_on(source: Source) -> Source:
    """The source without its stop at lost records: whoever asks finds out which are missing."""
    others = {n: v for n, v in source.options.items() if n.lower() != "failondataloss"}
    return replace(source, options={**others, "failOnDataLoss": "false"})
