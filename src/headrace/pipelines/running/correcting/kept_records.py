"""Records of rejected rows, rebuilt from bytes in quarantine or from the table that a flow streams.

A redrive runs today's flow over these records. Quarantine keeps the payload of a record, with key,
headers and timestamp if the flow's query uses them. Neither a topic nor its offsets are needed, so
retention, compaction and a recreated topic make no difference.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.lake.arrow_times import micros_of
from headrace.lake.commit_log import AddedFile
from headrace.lake.key_bounds import KeyBounds
from headrace.lake.quarantine import QUARANTINED_AT, SOURCE_NAME, UNREADABLE
from headrace.lake.tables import Table
from headrace.pipelines import model
from headrace.pipelines.analysing.stand_ins import CONNECTORS, source_schema
from headrace.pipelines.queries import sources
from headrace.pipelines.running.flows.inputs import SnapshotReader, TableReads
from headrace.pipelines.running.flows.unreadable_records import without_unreadable
from headrace.spark.source.record_columns import HEADERS_TYPE
from headrace.spark.tables.frames import table_frame
from headrace.spark.tables.schemas import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACE = ("topic", "partition", "offset")
Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """One record in quarantine."""

    place: Place
    payload: bytes
    beside: Mapping[str, Any]
    """Key, headers and times by name, as in JSON; a missing one was not kept."""


class KeptRecordsReader(SnapshotReader):
    """A reader for a redrive: tables are batches, streams have the rejected records only."""

    def __init__(self, reads: TableReads, rows: pa.Table, stored: Set[Place]) -> None:
        super().__init__(reads)
        self._rows = rows
        self._stored = stored
        """The records of which the flow's table has rows."""
        self._streams: dict[str, DataFrame | None] = {}
        self._rebuilt = [False] * rows.num_rows

    @property
    def is_exact(self) -> bool:
        """Return whether each row of the flow comes from one of these records.

        False for joined streams, since a row names one record only, and for an input without
        columns for the place of a record.
        """
        return len(self._streams) == 1 and None not in self._streams.values()

    def rebuilt(self) -> list[bool]:
        """Return whether each row is rebuilt from its record; valid after the flow was read."""
        return self._rebuilt if self.is_exact else [False] * len(self._rebuilt)

    def read_stream(self, name: str) -> "DataFrame":
        if isinstance(self._reads.pipeline.datasets.get(name), model.TemporaryView):
            return self.read(name)
        if name not in self._streams:
            source = self._reads.source(name)
            self._streams[name] = self._of_topic(source) if source else self._of_table(name)
        found = self._streams[name]
        return self.read(name) if found is None else found

    def _of_topic(self, source: model.Source) -> "DataFrame | None":
        """Return the records as the source would, decoded from the bytes in quarantine."""
        if source.connector not in CONNECTORS:
            return None
        self._rebuilt = rebuildable(self._rows, self._stored, source.name)
        settings = self._reads.pipeline.settings
        records = records_of(self._rows.filter(pa.array(self._rebuilt, pa.bool_())))
        schema = source_schema(source, settings)
        made = decoded(records, source, settings, arrow_schema_of(schema))
        rows = self.spark.createDataFrame(made, schema)
        if (side_output := self._reads.side_output_of(source)) is not None:
            rows = without_unreadable(rows, source, side_output)
        return sources.admitted(rows, source)

    def _of_table(self, name: str) -> "DataFrame | None":
        """Return the rows of a streamed table, of records with exactly one row there.

        For a record with several rows, or two records with one place after a topic was recreated,
        the row behind a rejected row is unknown.
        """
        table, version = self._at(name)
        if not set(PLACE) <= set(table.schema_at(version).names):
            return None
        places = places_of(self._rows)
        found = rows_at(self.spark, table, version, set(places) - self._stored)
        counts = found.groupBy(*PLACE).count().where("count = 1").collect()
        single = {(row[0], row[1], row[2]) for row in counts}
        self._rebuilt = [place in single for place in places]
        return rows_at(self.spark, table, version, single)


def places_of(rows: pa.Table) -> list[Place | None]:
    """Return the record of each rejected row; None if the row has none."""
    columns = (rows[name].to_pylist() for name in PLACE)
    return [None if None in place else place for place in zip(*columns, strict=True)]


def rows_at(
    spark: "SparkSession", table: Table, version: int, places: Iterable[Place | None]
) -> "DataFrame":
    """Return the rows of some records in a version of a table."""
    wanted = sorted({place for place in places if place})
    kinds = (pa.string(), pa.int32(), pa.int64())
    columns = list(zip(*wanted, strict=True)) or [()] * len(PLACE)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    keys = spark.createDataFrame(pa.Table.from_arrays(arrays, names=list(PLACE)))
    rows = table_frame(spark, table, version, files_near(table, version, wanted))
    return rows.join(keys, list(PLACE), "left_semi")


def files_near(table: Table, version: int, places: Iterable[Place]) -> list[AddedFile]:
    """Return the files that may have rows of some records, by the log's bounds.

    The log has no usable bounds of topics, but a table may be partitioned by them.
    """
    ends: dict[tuple[str, int], tuple[int, int]] = {}
    for topic, partition, offset in places:
        first, last = ends.get((topic, partition), (offset, offset))
        ends[topic, partition] = (min(first, offset), max(last, offset))
    bounds = table.file_bounds(version, list(PLACE[1:]))
    files = table.files(version)
    near: set[int] = set()
    for (topic, partition), span in ends.items():
        within = KeyBounds({PLACE[1]: (partition, partition), PLACE[2]: span})
        near.update(
            number
            for number in within.numbers_of(bounds)
            if files[number].partition_values.get(PLACE[0], topic) == topic
        )
    return [files[number] for number in sorted(near)]


def rebuildable(rows: pa.Table, stored: Set[Place], source: str) -> list[bool]:
    """Return whether each row may be rebuilt from its bytes.

    A row is not rebuilt if the table has other rows of its record: the flow would add those a
    second time. An unreadable record has rows only if another source of the flow, with another
    schema, decoded it; or if the topic was recreated.
    """
    has_bytes = rows["payload"].is_valid().to_pylist()
    is_unreadable = [rule == UNREADABLE for rule in rows["rule"].to_pylist()]
    facts = list(zip(places_of(rows), is_unreadable, has_bytes, strict=True))
    unread = {
        fact[0]
        for fact, row in zip(facts, rows["row"].to_pylist(), strict=True)
        if fact[1] and _content(row).get(SOURCE_NAME) in (None, source)
    }
    return [
        has and place is not None and (place not in stored or (is_one and place in unread))
        for place, is_one, has in facts
    ]


def records_of(rows: pa.Table) -> list[KeptRecord]:
    """Return the records behind rows of quarantine, each as often as it was read.

    Rows of one record have one place and the same bytes. After a topic was recreated two records
    may be equal in both. A rule rejects all rows of a record at one moment, and a source reports an
    unreadable record once; so each distinct moment or report is one record.
    """
    found: dict[tuple[Place, bytes], dict[str | None, dict[Hashable, KeptRecord]]] = {}
    for number, row in enumerate(rows.to_pylist()):
        content = _content(row["row"])
        is_unreadable = row["rule"] == UNREADABLE
        reporter = f"{content.get(SOURCE_NAME, '')}" if is_unreadable else None
        which = number if is_unreadable else row[QUARANTINED_AT]
        place = (row["topic"], row["partition"], row["offset"])
        beside = {"timestamp": content.get("timestamp"), **(content.get(model.KEPT_RECORD) or {})}
        known = found.setdefault((place, row["payload"]), {}).setdefault(reporter, {})
        known.setdefault(which, KeptRecord(place, row["payload"], beside))
    most = (max(reporters.values(), key=len) for reporters in found.values())
    return [record for records in most for record in records.values()]


def decoded(
    records: Sequence[KeptRecord],
    source: model.Source,
    settings: model.PipelineSettings,
    schema: pa.Schema,
) -> pa.Table:
    """Return records as the source would: decoded, with the columns of the schema."""
    payloads = pa.array([one.payload for one in records], pa.binary())
    prefix = sources.metadata_prefix(source)
    columns: dict[str, Any] = {
        prefix + name: pa.array([one.place[number] for one in records])
        for number, name in enumerate(PLACE)
    }
    for name, (kind, read) in _BESIDE.items():
        values = [one.beside.get(name) for one in records]
        columns[prefix + name] = pa.array(
            [None if value is None else read(value) for value in values], kind
        )
    columns |= _of_payloads(payloads, source, settings)
    arrays = [
        columns[one.name].cast(one.type)
        if one.name in columns
        else pa.nulls(len(records), one.type)
        for one in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _of_payloads(
    payloads: Any, source: model.Source, settings: model.PipelineSettings
) -> dict[str, Any]:
    if source.format == "bytes":
        return {"value": payloads}
    from headrace.spark.decoding.formats import decoder_of

    decoder = decoder_of(
        sources.source_options(source, settings), sources.source_properties(source, settings)
    )
    assert decoder is not None, "the source has a format"
    found = decoder.decode(payloads)
    names = found.columns.schema.names
    columns = {name: found.columns.column(number) for number, name in enumerate(names)}
    return {**columns, model.ERROR: found.errors, model.PAYLOAD: payloads}


def _micros(value: str) -> int | None:
    """Return the time of a record; None for an unrelated column of that name."""
    try:
        return micros_of(value)
    except (TypeError, ValueError):
        return None


def _headers(headers: Iterable[Mapping[str, str | None]]) -> list[dict[str, Any]]:
    return [
        {"key": one["key"], "value": None if one["value"] is None else b64decode(one["value"])}
        for one in headers
    ]


_BESIDE: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "key": (pa.binary(), b64decode),
    "headers": (HEADERS_TYPE, _headers),
    "timestamp": (pa.timestamp("us", "UTC"), _micros),
    "timestampType": (pa.int32(), int),
}
"""The other columns of a record: their types, and the readers of their JSON."""


def _content(row: str | None) -> dict[str, Any]:
    """Return the JSON of a rejected row."""
    content = json.loads(row) if row else None
    return content if isinstance(content, dict) else {}
