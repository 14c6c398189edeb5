"""The words of pipeline files in SQL: CREATE STREAMING TABLE, FLOW, SINK and the views.

Only the frame of a statement is read here; its query stays text, which Spark parses. The text
keeps its line numbers, so that Spark's complaints point into the file.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.pipelines.declaring.complaints import (
    declare_changes,
    declare_merged_view,
    declare_sink,
)
from headrace.pipelines.declaring.registry import Registry
from headrace.pipelines.declaring.sql_parts import Parts
from headrace.pipelines.declaring.sql_text import SqlSyntaxError, statements
from headrace.pipelines.intervals import schedule_complaint
from headrace.pipelines.model import (
    Expectation,
    Flow,
    MaterializedView,
    MergedView,
    Place,
    Sink,
    StreamingTable,
    TemporaryView,
)
from headrace.pipelines.problems import PipelineError

KINDS = (
    "CREATE STREAMING TABLE",
    "CREATE MATERIALIZED VIEW",
    "CREATE TEMPORARY VIEW",
    "CREATE MERGED VIEW",
    "CREATE FLOW",
    "CREATE SINK",
)


def declare_file(sql: str, file: str, registry: Registry) -> None:
    """Note down all that a file declares; a statement that is wrong does not hide the next."""
    try:
        listed = list(statements(sql))
    except SqlSyntaxError as error:
        registry.complain(str(error), Place(file, error.line))
        return
    for statement in listed:
        place, parts = Place(file, statement[0].line), Parts(sql, statement, file)
        try:
            _declare(parts, place, registry)
        except PipelineError as error:
            registry.problems += error.placed(place)
        registry.problems += parts.problems


def _declare(parts: Parts, place: Place, registry: Registry) -> None:
    parts.expect("CREATE", instead_of=f"a statement begins with one of {', '.join(KINDS)}")
    if parts.accept("OR"):
        parts.expect_one_of("REFRESH", "REPLACE")
    if parts.accept("STREAMING", "TABLE"):
        _streaming_table(parts, place, registry)
    elif parts.accept("MATERIALIZED", "VIEW"):
        _materialized_view(parts, place, registry)
    elif parts.accept("TEMPORARY", "VIEW") or parts.accept("TEMP", "VIEW"):
        _temporary_view(parts, place, registry)
    elif parts.accept("MERGED", "VIEW"):
        _merged_view(parts, place, registry)
    elif parts.accept("FLOW"):
        _flow(parts, place, registry)
    elif parts.accept("SINK"):
        _sink(parts, place, registry)
    else:
        words = [word for kind in KINDS for word in kind.split()[1:2]]
        raise parts.wrong(f"a statement begins with one of {', '.join(KINDS)}", words)


@dataclass(slots=True)
class _Clauses:
    """What may stand between a name and its query, in any order."""

    comment: str = ""
    columns: list[str] = field(default_factory=list)
    expectations: list[Expectation] = field(default_factory=list)
    partition_by: tuple[str, ...] | None = None
    keys: tuple[str, ...] = ()
    sequence_by: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    refresh: str | None = None
    trigger: str | None = None
    realtime: str | None = None
    dead_letter_topic: str | None = None
    merge: dict[str, str] = field(default_factory=dict)
    deduplicate_by: tuple[str, ...] = ()


_Reader = Callable[[Parts], Any]
_CLAUSES: dict[tuple[str, ...], tuple[str, _Reader]] = {
    ("COMMENT",): ("comment", Parts.text),
    ("PARTITIONED", "BY"): ("partition_by", Parts.possibly_no_names),
    ("KEYS",): ("keys", Parts.names),
    ("SEQUENCE", "BY"): ("sequence_by", Parts.column),
    ("TBLPROPERTIES",): ("properties", Parts.properties),
    ("REFRESH", "EVERY"): ("refresh", Parts.interval),
    ("REFRESH", "CRON"): ("refresh", Parts.text),
    ("TRIGGER", "EVERY"): ("trigger", Parts.interval),
    ("REALTIME", "EVERY"): ("realtime", Parts.interval),
    ("DEAD", "LETTER", "TOPIC"): ("dead_letter_topic", Parts.text),
    ("MERGE",): ("merge", Parts.merges),
    ("DEDUPLICATE", "BY"): ("deduplicate_by", Parts.names),
}
_OF_TABLES = (
    ("COMMENT",),
    ("PARTITIONED", "BY"),
    ("KEYS",),
    ("SEQUENCE", "BY"),
    ("TBLPROPERTIES",),
    ("TRIGGER", "EVERY"),
    ("REALTIME", "EVERY"),
    ("DEAD", "LETTER", "TOPIC"),
)
_OF_VIEWS = (
    ("COMMENT",),
    ("PARTITIONED", "BY"),
    ("TBLPROPERTIES",),
    ("REFRESH", "EVERY"),
    ("REFRESH", "CRON"),
)
_OF_MERGED = (
    ("COMMENT",),
    ("MERGE",),
    ("DEDUPLICATE", "BY"),
    ("REFRESH", "EVERY"),
    ("REFRESH", "CRON"),
)


def _clauses(parts: Parts, allowed: Sequence[tuple[str, ...]]) -> _Clauses:
    found = _Clauses()
    while not parts.is_at_end and not parts.is_next("AS"):
        words = next((words for words in allowed if parts.accept(*words)), None)
        if words is None:
            raise parts.no_clause(allowed, " or AS")
        attribute, read = _CLAUSES[words]
        setattr(found, attribute, read(parts))
    return found


def _streaming_table(parts: Parts, place: Place, registry: Registry) -> None:
    parts.accept("IF", "NOT", "EXISTS")
    name = parts.name()
    columns, expectations = parts.definitions()
    clauses = _clauses(parts, _OF_TABLES)
    registry.add(
        StreamingTable(
            name=name,
            place=place,
            comment=clauses.comment,
            schema=", ".join(columns) or None,
            partition_by=clauses.partition_by,
            keys=clauses.keys,
            sequence_by=clauses.sequence_by,
            expectations=expectations,
            dead_letter_topic=clauses.dead_letter_topic,
            properties=clauses.properties,
        )
    )
    if parts.accept("AS"):
        query = parts.query()
        flow = Flow(name, name, query, place, trigger=clauses.trigger, realtime=clauses.realtime)
        registry.flows.append(flow)


def _materialized_view(parts: Parts, place: Place, registry: Registry) -> None:
    parts.accept("IF", "NOT", "EXISTS")
    name = parts.name()
    columns, expectations = parts.definitions()
    if columns:
        raise parts.wrong(
            f"the columns of {name} are those of its query; keep only CONSTRAINTs here"
        )
    clauses = _clauses(parts, _OF_VIEWS)
    _check_schedule(clauses.refresh)
    parts.expect("AS", instead_of=f"{name} needs a query: AS SELECT ...")
    registry.add(
        MaterializedView(
            name=name,
            query=parts.query(),
            place=place,
            comment=clauses.comment,
            partition_by=clauses.partition_by or (),
            expectations=expectations,
            refresh=clauses.refresh,
            properties=clauses.properties,
        )
    )


def _temporary_view(parts: Parts, place: Place, registry: Registry) -> None:
    parts.accept("IF", "NOT", "EXISTS")
    name = parts.name()
    _clauses(parts, (("COMMENT",),))
    parts.expect("AS", instead_of=f"{name} needs a query: AS SELECT ...")
    registry.add(TemporaryView(name, parts.query(), place))


def _merged_view(parts: Parts, place: Place, registry: Registry) -> None:
    parts.accept("IF", "NOT", "EXISTS")
    name = parts.name()
    clauses = _clauses(parts, _OF_MERGED)
    parts.expect("AS", instead_of=f"{name} needs a query: AS SELECT ...")
    declare_merged_view(
        registry,
        MergedView(
            name=name,
            query=parts.query(),
            place=place,
            merge=clauses.merge,
            deduplicate_by=clauses.deduplicate_by,
            comment=clauses.comment,
            refresh=clauses.refresh,
        ),
    )


def _flow(parts: Parts, place: Place, registry: Registry) -> None:
    name = parts.name()
    clauses = _clauses(parts, (("COMMENT",), ("TRIGGER", "EVERY"), ("REALTIME", "EVERY")))
    parts.expect("AS", instead_of="a flow goes on with AS INSERT INTO or AS AUTO CDC INTO")
    if parts.accept("AUTO", "CDC", "INTO"):
        _changes(parts, place, registry, name, clauses.trigger)
        return
    if not parts.accept("INSERT", "INTO"):
        raise parts.wrong("a flow goes on with AS INSERT INTO or AS AUTO CDC INTO")
    is_once = parts.accept("ONCE")
    target = parts.name()
    if not parts.accept("BY", "NAME"):
        raise parts.wrong("rows go to columns of the same name: write BY NAME before the query")
    registry.flows.append(
        Flow(
            name,
            target,
            parts.query(),
            place,
            is_once=is_once,
            trigger=clauses.trigger,
            realtime=clauses.realtime,
        )
    )


_OF_CHANGES = (
    ("KEYS",),
    ("SEQUENCE", "BY"),
    ("APPLY", "AS", "DELETE", "WHEN"),
    ("COLUMNS", "*", "EXCEPT"),
    ("STORED", "AS", "SCD", "TYPE"),
)


def _changes(
    parts: Parts, place: Place, registry: Registry, name: str, trigger: str | None
) -> None:
    """`AUTO CDC INTO` up to the statement's end; its clauses come in any order."""
    target = parts.name()
    parts.expect("FROM", instead_of=f"say where the changes of {target} come from: FROM STREAM(x)")
    source = parts.until(_OF_CHANGES)
    keys: tuple[str, ...] = ()
    except_columns: tuple[str, ...] = ()
    sequence_by, deletes, scd_type = "", None, "1"
    while not parts.is_at_end:
        if parts.accept("KEYS"):
            keys = parts.names()
        elif parts.accept("SEQUENCE", "BY"):
            sequence_by = parts.until(_OF_CHANGES).strip()
        elif parts.accept("APPLY", "AS", "DELETE", "WHEN"):
            deletes = parts.until(_OF_CHANGES).strip()
        elif parts.accept("COLUMNS", "*", "EXCEPT"):
            except_columns = parts.names()
        elif parts.accept("STORED", "AS", "SCD", "TYPE"):
            scd_type = parts.take().text
        else:
            raise parts.no_clause(_OF_CHANGES)
    if not sequence_by:
        raise parts.wrong(
            f"say what orders the changes of {target}: SEQUENCE BY a column, or an expression"
        )
    declare_changes(
        registry,
        place,
        name=name,
        target=target,
        query=f"SELECT * FROM {source}",
        keys=keys,
        sequence_by=sequence_by,
        apply_as_deletes=deletes,
        scd_type=scd_type,
        except_columns=except_columns,
        trigger=trigger,
    )


def _sink(parts: Parts, place: Place, registry: Registry) -> None:
    parts.accept("IF", "NOT", "EXISTS")
    name = parts.name()
    topic, format_name, guarantee = "", "json", "exactly-once"
    options: dict[str, str] = {}
    while not parts.is_at_end:
        if parts.accept("TOPIC"):
            topic = parts.text()
        elif parts.accept("FORMAT"):
            format_name = parts.text().lower()
        elif parts.accept("GUARANTEE"):
            guarantee = parts.text().lower()
        elif parts.accept("OPTIONS"):
            options = parts.properties()
        else:
            raise parts.wrong("here may stand TOPIC, FORMAT, GUARANTEE or OPTIONS")
    declare_sink(registry, Sink(name, place, topic, format_name, guarantee, options))


def _check_schedule(refresh: str | None) -> None:
    if refresh is not None and (wrong := schedule_complaint(refresh)):
        raise PipelineError(f"REFRESH: {wrong}")
