"""The model of a pipeline: values that its files declare and its runner reads.

A pipeline is a graph of datasets. Sources are topics. Streaming tables and sinks are fed by flows;
materialized views are computed whole; merged views are aggregates that the pipeline's
architecture decides how to keep: by one stream (kappa) or by a batch and a speed layer (lambda).
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ERROR = "_error"
"""A flow's column with the reason why a row could not be read; such rows go to quarantine."""
PAYLOAD = "_payload"
"""A flow's column with the original bytes of a row; quarantine keeps it, the table does not."""
KEPT_RECORD = "_kept_record"
"""A flow's column with key, headers and times of the record, if the flow's query uses them."""
RESERVED = (ERROR, PAYLOAD, KEPT_RECORD)

SOURCES = "sources"
"""The namespace of a pipeline's topics: `sources.orders`."""
RAW = "raw"
"""The zone of unchanged input: its tables only grow."""
ZONES = (RAW, "staging", "trusted", "refined")
DRIVER_ROWS_MAX = 100_000
"""Larger batches by key or of changes are merged by tasks, unless pipeline.toml differs.

A million events of 95 bytes took up to 1.9 GB in the driver, this many 0.4 GB (measured).
"""
QUARANTINE = "quarantine"
"""The namespace of rejected rows: `quarantine.staging__orders` for `staging.orders`."""


class Architecture(enum.Enum):
    """The two ways to keep aggregates."""

    KAPPA = "kappa"
    LAMBDA = "lambda"


class Violation(enum.Enum):
    """The consequence for rows that break an expectation."""

    WARN = "warn"
    DROP = "drop"
    QUARANTINE = "quarantine"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Location:
    """The file and line of a declaration."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class RowRule:
    """An SQL condition that each row must meet."""

    condition: str


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """No two rows of the table, in this batch or before, may have the same key."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Freshness:
    """The maximum age of the newest value of a time column when a batch is written."""

    column: str
    age_s_max: float


@dataclass(frozen=True, slots=True)
class RowCount:
    """The number of rows that a batch may have."""

    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class TableRule:
    """An SQL condition over aggregates that each batch must meet, such as `avg(price) < 100`."""

    condition: str


Rule = RowRule | UniqueKey | Freshness | RowCount | TableRule


@dataclass(frozen=True, slots=True)
class Expectation:
    """A named rule about a table's rows, and the consequence for rows that break it."""

    name: str
    rule: Rule
    on_violation: Violation


Query = str | Callable[[], "DataFrame"]
"""SQL text, or a function that builds a DataFrame with `read` and `read_stream`."""


@dataclass(frozen=True, slots=True)
class Changes:
    """A flow whose rows are change events, applied to the target by key and sequence."""

    keys: tuple[str, ...]
    sequence_by: str
    """A column, or an SQL expression over the columns: `struct(day, number)`."""
    apply_as_deletes: str | None = None
    scd_type: int = 1
    except_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flow:
    """A query that writes rows to a streaming table or a sink."""

    name: str
    target: str
    query: Query
    location: Location
    changes: Changes | None = None
    is_once: bool = False
    trigger: str | None = None
    """A processing-time interval such as `10 seconds`; None takes the pipeline's."""
    realtime: str | None = None
    """The checkpoint interval of Spark's real-time mode, which only the stock connector has."""
    keeps_payloads: bool = False
    """True if rows carry their original bytes, for quarantine; analysis decides."""


@dataclass(frozen=True, slots=True)
class Source:
    """A topic, or several, and the format of the payloads."""

    name: str
    location: Location
    topic: str | None = None
    topic_pattern: str | None = None
    format: str = "bytes"
    """bytes, json, csv, avro or protobuf; all but bytes need `schema` or a registry."""
    schema: str | None = None
    connector: str = "headrace"
    """`headrace`, or `kafka` for Spark's stock connector and its jars."""
    where: str | None = None
    """An entry rule: records that do not meet it are skipped (ARC-7)."""
    category: str | None = None
    """An SQL expression that names a record's category, added as the column `_category`."""
    priority: int = 0
    """Flows of sources with a higher priority get a larger share of the executors."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further options of the reader; may include a registry's login."""


@dataclass(frozen=True, slots=True)
class StreamingTable:
    """A table that flows append to, or keep by key."""

    name: str
    location: Location
    comment: str = ""
    schema: str | None = None
    partition_by: tuple[str, ...] | None = None
    """None if not declared: tables of raw then follow `analysing.raw_days`."""
    keys: tuple[str, ...] = ()
    """With keys, a flow's row replaces the row with the same key (output mode update)."""
    sequence_by: str | None = None
    """A column that orders the rows of a key: a late row does not replace a newer one."""
    expectations: tuple[Expectation, ...] = ()
    dead_letter_topic: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MaterializedView:
    """A table that is recomputed whole from others when they have changed."""

    name: str
    query: Query
    location: Location
    comment: str = ""
    partition_by: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    refresh: str | None = None
    """The least interval, such as `5 minutes`, or a cron line; None means the pipeline's."""
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """A named query for other queries; it is not stored."""

    name: str
    query: Query
    location: Location


@dataclass(frozen=True, slots=True)
class MergedView:
    """An aggregate over one table whose parts can be merged by sum, min or max.

    The query reads its one input with `read_stream`; its columns are the keys and the merged ones.
    """

    name: str
    query: Query
    location: Location
    merge: Mapping[str, str]
    """For each column outside of the key, how two parts become one: sum, min or max."""
    deduplicate_by: tuple[str, ...] = ()
    """Columns of the input that identify a record; a repeated record counts once.

    They are columns of the table, even if a temporary view is between it and the query.
    """
    comment: str = ""
    refresh: str | None = None
    """The interval of the batch layer; None means the pipeline's."""


@dataclass(frozen=True, slots=True)
class Sink:
    """A topic that flows write to."""

    name: str
    location: Location
    topic: str
    format: str = "json"
    guarantee: str = "exactly-once"
    """exactly-once, idempotent or at-least-once."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further options of the writer; may include a registry's login."""


Dataset = StreamingTable | MaterializedView | TemporaryView | MergedView | Sink

_KINDS: Mapping[type[Dataset], str] = {
    StreamingTable: "streaming table",
    MaterializedView: "materialized view",
    TemporaryView: "temporary view",
    MergedView: "merged view",
    Sink: "sink",
}


def kind_of(dataset: Dataset) -> str:
    """Return the kind's name for messages: `streaming table`, `sink` and so on."""
    return _KINDS[type(dataset)]


def takes_late_rows(table: StreamingTable, flow: Flow) -> bool:
    """Return whether a late row is stored without replacing newer rows."""
    return not table.keys or table.sequence_by is not None or flow.changes is not None


def output_mode(flow: Flow, target: Dataset) -> str:
    """Return Spark's output mode: update if rows may replace others, else append."""
    if isinstance(target, Sink) and "outputMode" in target.options:
        return target.options["outputMode"]
    is_keyed = isinstance(target, StreamingTable) and bool(target.keys)
    return "update" if is_keyed or flow.realtime is not None else "append"


class Requirement(enum.Enum):
    """A demand of a zone on each of its tables."""

    CHECKS = "checks"
    """An expectation or a key."""
    EXPECTATIONS = "expectations"
    KEY = "key"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Gate:
    """The share of rejected rows above which a zone rejects the whole batch."""

    quarantined_max: float
    """1 is all rows of a batch."""
    rows_min: int = 100
    """Smaller batches always pass: one bad row of three means little."""

    def is_shut(self, rows: int, quarantined: int) -> bool:
        return rows >= self.rows_min and quarantined > self.quarantined_max * rows


@dataclass(frozen=True, slots=True)
class Promotion:
    """The rules of a zone for rows that are promoted into it (ARC-4)."""

    reads: tuple[str, ...] | None = None
    """The zones that its tables may read, `sources` and `quarantine`; None means the default."""
    requires: tuple[Requirement, ...] = ()
    gate: Gate | None = None


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """The settings in pipeline.toml for the whole pipeline."""

    name: str
    version: str = ""
    """The user's label; the pipeline's fingerprint identifies the files."""
    architecture: Architecture = Architecture.KAPPA
    bootstrap: str = "127.0.0.1:9092"
    names_brokers: bool = False
    """True if the user chose these brokers."""
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further client properties, such as a login; never logged."""
    lake: str = "lake"
    master: str = "local[*]"
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of Spark; may include keys of stores."""
    trigger: str = "1 second"
    refresh: str = "1 minute"
    libraries: tuple[str, ...] = ("**/*.sql", "**/*.py")
    group: str | None = None
    """The consumer group that shows progress; None uses `pipeline.flow`."""
    zones: tuple[str, ...] = ZONES
    promotions: Mapping[str, Promotion] = field(default_factory=dict)
    """By zone, for zones that pipeline.toml declares rules for."""
    driver_rows_max: int = DRIVER_ROWS_MAX


def trigger_of(flow: Flow, settings: PipelineSettings) -> str:
    """Return the interval between two batches of a flow in a continuous run."""
    return flow.trigger or settings.trigger


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All declarations of a folder. Names are unique over all kinds of datasets."""

    settings: PipelineSettings
    directory: str
    sources: Mapping[str, Source]
    """By the name after `sources.`: `orders` for `sources.orders`."""
    datasets: Mapping[str, Dataset]
    flows: tuple[Flow, ...]
    fingerprint: str = ""
    """Identifies the state of the folder's files, see `loaded_files`."""

    def flows_into(self, table: str) -> tuple[Flow, ...]:
        """The flows that write to a table, a view or a sink."""
        return tuple(flow for flow in self.flows if flow.target == table)
