"""What a pipeline consists of, as values: the words that its files declare and its runner reads.

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
"""A flow's column that says why a row could not be read; such rows go to quarantine."""
PAYLOAD = "_payload"
"""A flow's column with the original bytes of a row; quarantine keeps it, the table does not."""
RESERVED = (ERROR, PAYLOAD)

SOURCES = "sources"
"""The namespace of a pipeline's topics: `sources.orders`."""
RAW = "raw"
"""The zone of what came, as it came: its tables only grow."""
ZONES = (RAW, "staging", "trusted", "refined")
DRIVER_ROWS_MAX = 100_000
"""Batches by key or of changes with more rows are merged by tasks, unless pipeline.toml differs.

Measured, a million events of 95 bytes took up to 1.9 GB in the driver, this many 0.4 GB.
"""
QUARANTINE = "quarantine"
"""The namespace of what was refused: `quarantine.staging__orders` for `staging.orders`."""


class Architecture(enum.Enum):
    """How aggregates are kept."""

    KAPPA = "kappa"
    LAMBDA = "lambda"


class Violation(enum.Enum):
    """What becomes of rows that do not meet an expectation."""

    WARN = "warn"
    DROP = "drop"
    QUARANTINE = "quarantine"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a pipeline's files something is declared."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class RowRule:
    """Each row must make this SQL condition true."""

    condition: str


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """No two rows of the table, in this batch or before, may have the same key."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Freshness:
    """The newest value of a time column may be so old when a batch was written."""

    column: str
    age_s_max: float


@dataclass(frozen=True, slots=True)
class RowCount:
    """So many rows a batch may have."""

    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class TableRule:
    """This SQL condition over aggregates must be true of each batch, such as `avg(price) < 100`."""

    condition: str


Rule = RowRule | UniqueKey | Freshness | RowCount | TableRule


@dataclass(frozen=True, slots=True)
class Expectation:
    """A named rule about a table's rows, and what becomes of those that break it."""

    name: str
    rule: Rule
    on_violation: Violation


Query = str | Callable[[], "DataFrame"]
"""SQL text, or a function that makes a DataFrame by `read` and `read_stream`."""


@dataclass(frozen=True, slots=True)
class Changes:
    """A flow whose rows are change events, to be applied to the target by key and sequence."""

    keys: tuple[str, ...]
    sequence_by: str
    """A column, or an SQL expression over the columns: `struct(day, number)`."""
    apply_as_deletes: str | None = None
    scd_type: int = 1
    except_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flow:
    """One way of rows into a streaming table or a sink."""

    name: str
    target: str
    query: Query
    place: Place
    changes: Changes | None = None
    is_once: bool = False
    trigger: str | None = None
    """A processing-time interval such as `10 seconds`; None takes the pipeline's."""
    realtime: str | None = None
    """The checkpoint interval of Spark's real-time mode, which only the stock connector has."""
    keeps_payloads: bool = False
    """Whether rows bring the bytes that they were made of, for quarantine; analysis decides."""


@dataclass(frozen=True, slots=True)
class Source:
    """A topic, or several, and how its payloads are read."""

    name: str
    place: Place
    topic: str | None = None
    topic_pattern: str | None = None
    format: str = "bytes"
    """bytes, json, csv, avro or protobuf; all but bytes need `schema` or a registry."""
    schema: str | None = None
    connector: str = "headrace"
    """`headrace`, or `kafka` for Spark's stock connector and its jars."""
    where: str | None = None
    """An entry rule: records that do not meet it are passed over (ARC-7)."""
    category: str | None = None
    """An SQL expression that names a record's category, added as the column `_category`."""
    priority: int = 0
    """Flows of sources with a higher priority get a larger share of the executors."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further options of the reader; a registry's login may be among them."""


@dataclass(frozen=True, slots=True)
class StreamingTable:
    """A table that flows append to, or keep by key."""

    name: str
    place: Place
    comment: str = ""
    schema: str | None = None
    partition_by: tuple[str, ...] | None = None
    """None where nothing is said, which leaves tables of raw to `analysing.raw_days`."""
    keys: tuple[str, ...] = ()
    """With keys, a flow's row replaces the row of the same key (output mode update)."""
    sequence_by: str | None = None
    """A column that orders the rows of a key: one that comes late does not replace a newer one."""
    expectations: tuple[Expectation, ...] = ()
    dead_letter_topic: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MaterializedView:
    """A table that is computed whole from others, when they have changed."""

    name: str
    query: Query
    place: Place
    comment: str = ""
    partition_by: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    refresh: str | None = None
    """How often at most, as `5 minutes`, or a cron line; None takes the pipeline's."""
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """A named query that others may use; it is not stored."""

    name: str
    query: Query
    place: Place


@dataclass(frozen=True, slots=True)
class MergedView:
    """An aggregate over one table whose parts can be merged: sums, counts, least, most.

    The query reads its one input by `read_stream`; its columns are the keys and the merged ones.
    """

    name: str
    query: Query
    place: Place
    merge: Mapping[str, str]
    """For each column that is no key, how two parts become one: sum, min or max."""
    deduplicate_by: tuple[str, ...] = ()
    """Columns of the input that make a record one; its second coming is not counted.

    They are the table's, also where a temporary view stands between it and the query.
    """
    comment: str = ""
    refresh: str | None = None
    """How often the batch layer runs; None takes the pipeline's."""


@dataclass(frozen=True, slots=True)
class Sink:
    """A topic that flows write to."""

    name: str
    place: Place
    topic: str
    format: str = "json"
    guarantee: str = "exactly-once"
    """exactly-once, idempotent or at-least-once."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further options of the writer; a registry's login may be among them."""


Dataset = StreamingTable | MaterializedView | TemporaryView | MergedView | Sink

_KINDS: Mapping[type[Dataset], str] = {
    StreamingTable: "streaming table",
    MaterializedView: "materialized view",
    TemporaryView: "temporary view",
    MergedView: "merged view",
    Sink: "sink",
}


def kind_of(dataset: Dataset) -> str:
    """`streaming table`, `sink` and so on, for people."""
    return _KINDS[type(dataset)]


def takes_late_rows(table: StreamingTable, flow: Flow) -> bool:
    """Whether a row that is older than others finds its place, and does not take theirs."""
    return not table.keys or table.sequence_by is not None or flow.changes is not None


def output_mode(flow: Flow, target: Dataset) -> str:
    """How Spark hands out a flow's rows: as updates where they may replace others, else once."""
    if isinstance(target, Sink) and "outputMode" in target.options:
        return target.options["outputMode"]
    is_keyed = isinstance(target, StreamingTable) and bool(target.keys)
    return "update" if is_keyed or flow.realtime is not None else "append"


class Requirement(enum.Enum):
    """What a zone may ask of each of its tables."""

    CHECKS = "checks"
    """An expectation or a key."""
    EXPECTATIONS = "expectations"
    KEY = "key"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Gate:
    """Above which share of refused rows nothing of a batch is promoted into a zone."""

    quarantined_max: float
    """1 is all rows of a batch."""
    rows_min: int = 100
    """Smaller batches are not judged: one bad row of three says little."""

    def is_shut(self, rows: int, quarantined: int) -> bool:
        return rows >= self.rows_min and quarantined > self.quarantined_max * rows


@dataclass(frozen=True, slots=True)
class Promotion:
    """What a zone asks for before rows are promoted into it (ARC-4)."""

    reads: tuple[str, ...] | None = None
    """The zones that its tables may read, `sources` and `quarantine`; None takes the usual way."""
    requires: tuple[Requirement, ...] = ()
    gate: Gate | None = None


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """What pipeline.toml says of the pipeline as a whole."""

    name: str
    version: str = ""
    """A label of the user's; which files count is told by the pipeline's fingerprint."""
    architecture: Architecture = Architecture.KAPPA
    bootstrap: str = "127.0.0.1:9092"
    names_brokers: bool = False
    """Whether these brokers were chosen, and are not only the usual ones."""
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further client properties, such as a login; never logged."""
    lake: str = "lake"
    master: str = "local[*]"
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of Spark; keys of stores may be among them."""
    trigger: str = "1 second"
    refresh: str = "1 minute"
    libraries: tuple[str, ...] = ("**/*.sql", "**/*.py")
    group: str | None = None
    """The consumer group under which progress is visible; None makes `pipeline.flow`."""
    zones: tuple[str, ...] = ZONES
    promotions: Mapping[str, Promotion] = field(default_factory=dict)
    """By zone, of those that pipeline.toml declares rules for."""
    driver_rows_max: int = DRIVER_ROWS_MAX


def trigger_of(flow: Flow, settings: PipelineSettings) -> str:
    """How long a flow's query waits between two looks for rows, in a continuous run."""
    return flow.trigger or settings.trigger


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All that a folder declares. Names are unique over all kinds of datasets."""

    settings: PipelineSettings
    directory: str
    sources: Mapping[str, Source]
    """By the name behind `sources.`, so `orders` for `sources.orders`."""
    datasets: Mapping[str, Dataset]
    flows: tuple[Flow, ...]
    fingerprint: str = ""
    """Tells one state of the folder's files from another, see `loaded_files`."""

    def flows_into(self, table: str) -> tuple[Flow, ...]:
        """The flows that write to a table, a view or a sink."""
        return tuple(flow for flow in self.flows if flow.target == table)
