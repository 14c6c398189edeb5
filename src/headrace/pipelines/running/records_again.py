"""The very records that refused rows came from, read once more for the flow that made them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.pipelines.model import Source, TemporaryView
from headrace.pipelines.running.exact_records import records_between
from headrace.pipelines.running.reading import SnapshotReader, TableReads
from headrace.pipelines.sources import admitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACE = ("topic", "partition", "offset")
Place = tuple[str, int, int]


class RecordsAgain(SnapshotReader):
    """Reads as a batch run does, except that of a stream there are only the wanted records.

    What the flow looks up in other tables is there whole: no row of quarantine came from it.
    """

    def __init__(self, reads: TableReads, wanted: "DataFrame") -> None:
        super().__init__(reads)
        self._wanted = wanted
        self._read: dict[str, DataFrame | None] = {}
        self._kept: dict[str, tuple[DataFrame, tuple[str, ...]]] = {}

    @property
    def is_exact(self) -> bool:
        """Whether each row of the flow can be told to come from a wanted record.

        Not where an input does not say from which record its rows are, nor where several streams
        are put together, of which a row names only one.
        """
        return len(self._read) == 1 == len(self._kept)

    def read_stream(self, name: str) -> "DataFrame":
        if isinstance(self._reads.pipeline.datasets.get(name), TemporaryView):
            return self.read(name)
        if name not in self._read:
            self._read[name] = self._only_wanted(name)
        found = self._read[name]
        return self.read(name) if found is None else found

    def places(self) -> set[Place]:
        """The records that are really there, of those that are wanted."""
        found: set[Place] = set()
        for rows, names in self._kept.values():
            for row in rows.select(*names).distinct().collect():
                found.add((row[0], row[1], row[2]))
        return found

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep what is read, so that what is looked at first is what the flow gets then."""
        frames = [rows.persist() for rows, _ in self._kept.values()]
        try:
            yield
        finally:
            for rows in frames:
                rows.unpersist()

    def _only_wanted(self, name: str) -> "DataFrame | None":
        """The wanted rows of an input; None if it does not say from which record a row is."""
        source = self._reads.source(name)
        names = place_columns(source)
        if source is None:
            rows = self.read(name)
        else:
            rows = records_between(self._reads, going_on(source), self._spans())
        if not set(names) <= set(rows.columns):
            return None
        rows = rows.join(self._wanted.toDF(*names), list(names), "left_semi")
        self._kept[name] = rows, names
        # What a source no longer admits was read all the same: it is not lost.
        return rows if source is None else admitted(rows, source)

    def _spans(self) -> dict[str, dict[str, tuple[int, int]]]:
        """The offsets of topics to read for the records: from the first to the last."""
        from pyspark.sql import functions as F  # noqa: N812

        ends = self._wanted.groupBy("topic", "partition").agg(
            F.min("offset").alias("first"), F.max("offset").alias("last")
        )
        spans: dict[str, dict[str, tuple[int, int]]] = {}
        for row in ends.collect():
            partitions = spans.setdefault(row["topic"], {})
            partitions[str(row["partition"])] = (row["first"], row["last"] + 1)
        return spans


def place_columns(source: Source | None) -> tuple[str, ...]:
    """How an input calls the columns that say where a record is; a topic's may have a prefix."""
    if source is None or source.connector != "headrace" or source.format == "bytes":
        return PLACE
    prefix = _option(source, "metadataPrefix") or ""
    return tuple(prefix + name for name in PLACE)


def going_on(source: Source) -> Source:
    """The source without its stop at lost records: whoever asks finds out which are missing."""
    others = {n: v for n, v in source.options.items() if n.lower() != "failondataloss"}
    return replace(source, options={**others, "failOnDataLoss": "false"})


def _option(source: Source, name: str) -> str | None:
    """An option of a source, whose names Spark takes in any case."""
    return next((v for n, v in source.options.items() if n.lower() == name.lower()), None)
