"""SQL files of pipelines: CREATE STREAMING TABLE, FLOW, SINK and the views.

Only the frame of a statement is read here; its query stays text, which Spark parses. The text
keeps its line numbers, so that Spark's complaints point into the file.
"""

from headrace.pipelines.declaring import registrations
from headrace.pipelines.declaring.options import (
    ChangesOptions,
    Described,
    FedTableOptions,
    FlowOptions,
    Given,
    MergedViewOptions,
    SinkOptions,
    ViewOptions,
    clauses_of,
    given_in_sql,
)
from headrace.pipelines.declaring.registry import Registry
from headrace.pipelines.declaring.sql_parts import Parts
from headrace.pipelines.model import Location
from headrace.pipelines.problems import PipelineError
from headrace.serdes.sql_tokens import SqlSyntaxError, statements

KINDS = (
    "CREATE STREAMING TABLE",
    "CREATE MATERIALIZED VIEW",
    "CREATE TEMPORARY VIEW",
    "CREATE MERGED VIEW",
    "CREATE FLOW",
    "CREATE SINK",
)


def declare_file(sql: str, file: str, registry: Registry) -> None:
    """Add all declarations of a file; an invalid statement does not hide the next."""
    try:
        listed = list(statements(sql))
    except SqlSyntaxError as error:
        registry.complain(str(error), Location(file, error.line))
        return
    for statement in listed:
        location, parts = Location(file, statement[0].line), Parts(sql, statement, file)
        try:
            _declare(parts, location, registry)
        except PipelineError as error:
            registry.problems += error.located(location)
        registry.problems += parts.problems


def _declare(parts: Parts, location: Location, registry: Registry) -> None:
    parts.expect("CREATE", instead_of=f"a statement begins with one of {', '.join(KINDS)}")
    if parts.accept("OR"):
        parts.expect_one_of("REFRESH", "REPLACE")
    if parts.accept("STREAMING", "TABLE"):
        _streaming_table(parts, location, registry)
    elif parts.accept("MATERIALIZED", "VIEW"):
        _materialized_view(parts, location, registry)
    elif parts.accept("TEMPORARY", "VIEW") or parts.accept("TEMP", "VIEW"):
        _temporary_view(parts, location, registry)
    elif parts.accept("MERGED", "VIEW"):
        _merged_view(parts, location, registry)
    elif parts.accept("FLOW"):
        _flow(parts, location, registry)
    elif parts.accept("SINK"):
        _sink(parts, location, registry)
    else:
        words = [word for kind in KINDS for word in kind.split()[1:2]]
        raise parts.wrong(f"a statement begins with one of {', '.join(KINDS)}", words)


def _streaming_table(parts: Parts, location: Location, registry: Registry) -> None:
    name = _new_name(parts)
    columns, expectations = parts.definitions()
    given = given_in_sql(FedTableOptions, parts, more=" or AS")
    registrations.add_table(
        registry,
        location,
        name,
        given,
        query=parts.query() if parts.accept("AS") else None,
        schema=", ".join(columns) or None,
        expectations=expectations,
    )


def _materialized_view(parts: Parts, location: Location, registry: Registry) -> None:
    name = _new_name(parts)
    columns, expectations = parts.definitions()
    if columns:
        raise parts.wrong(
            f"the columns of {name} are those of its query; keep only CONSTRAINTs here"
        )
    given = given_in_sql(ViewOptions, parts, more=" or AS")
    registrations.add_view(
        registry, location, name, given, query=_query(parts, name), expectations=expectations
    )


def _temporary_view(parts: Parts, location: Location, registry: Registry) -> None:
    name = _new_name(parts)
    given = given_in_sql(Described, parts, more=" or AS")
    registrations.add_temporary_view(registry, location, name, given, query=_query(parts, name))


def _merged_view(parts: Parts, location: Location, registry: Registry) -> None:
    name = _new_name(parts)
    given = given_in_sql(MergedViewOptions, parts, more=" or AS")
    registrations.add_merged_view(registry, location, name, given, query=_query(parts, name))


def _query(parts: Parts, name: str) -> str:
    parts.expect("AS", instead_of=f"{name} needs a query: AS SELECT ...")
    return parts.query()


def _flow(parts: Parts, location: Location, registry: Registry) -> None:
    name = parts.name()
    given = given_in_sql(FlowOptions, parts, more=" or AS")
    parts.expect("AS", instead_of="a flow continues with AS INSERT INTO or AS AUTO CDC INTO")
    if parts.accept("AUTO", "CDC", "INTO"):
        _flow_of_changes(parts, location, registry, name, given)
        return
    if not parts.accept("INSERT", "INTO"):
        raise parts.wrong("a flow continues with AS INSERT INTO or AS AUTO CDC INTO")
    if parts.accept("ONCE"):
        given.fields["is_once"] = True
    target = parts.name()
    if not parts.accept("BY", "NAME"):
        raise parts.wrong("rows go to columns of the same name: write BY NAME before the query")
    registrations.add_flow(registry, location, name, given, target=target, query=parts.query())


def _flow_of_changes(
    parts: Parts, location: Location, registry: Registry, name: str, given: Given
) -> None:
    """Read `AUTO CDC INTO` up to the statement's end; its clauses come in any order."""
    target = parts.name()
    parts.expect("FROM", instead_of=f"name the source of the changes of {target}: FROM STREAM(x)")
    source = parts.until([clause.split() for clause in clauses_of(ChangesOptions)])
    changes = given_in_sql(ChangesOptions, parts)
    if "sequence_by" not in changes.fields:
        raise parts.wrong(
            f"give the order of the changes of {target}: SEQUENCE BY a column, or an expression"
        )
    query = f"SELECT * FROM {source}"
    registrations.add_flow(
        registry, location, name, given, target=target, query=query, changes=changes
    )


def _sink(parts: Parts, location: Location, registry: Registry) -> None:
    name = _new_name(parts)
    registrations.add_sink(registry, location, name, given_in_sql(SinkOptions, parts))


def _new_name(parts: Parts) -> str:
    parts.accept("IF", "NOT", "EXISTS")
    return parts.name()
