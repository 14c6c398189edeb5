"""Checks of declarations against the columns that Spark has found."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.pipelines import model
from headrace.pipelines.analysing import existing_tables, mergeable
from headrace.pipelines.analysing.analysis import Analysis
from headrace.pipelines.analysing.plans import plan_of
from headrace.pipelines.problems import PipelineError, Problem, nearest
from headrace.pipelines.queries.sequences import sequenced

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


_SQL = "org.apache.spark.sql"
_CONDITION_TYPES = ("boolean", "void")


def check_declared(analysis: Analysis) -> None:
    """Add the problems between declarations and columns to the analysis."""
    operators = Operators(analysis.spark)
    for flow in analysis.pipeline.flows:
        if (frame := analysis.frames.get(flow.name)) is not None:
            with analysis.complaining(flow.location, f"{flow.name}: "):
                _check_stream(analysis, flow, frame, operators)
            _check_changes(analysis, flow, frame)
    for dataset in analysis.pipeline.datasets.values():
        match dataset:
            case model.StreamingTable():
                _check_table(analysis, dataset)
            case model.MaterializedView():
                _check_view(analysis, dataset)
            case model.MergedView():
                _check_merged(analysis, dataset)
            case _:
                continue


def check_lake(analysis: Analysis) -> None:
    """Check that the existing tables can take the declared columns and properties."""
    from headrace.lake.catalog import Lake
    from headrace.lake.errors import LakeError, TableLost
    from headrace.lake.schemas import evolution
    from headrace.spark.tables.schemas import arrow_schema_of

    lake = Lake(analysis.pipeline.settings.lake)
    present = set(lake.names())
    for name, schema in analysis.columns.items():
        dataset = analysis.pipeline.datasets.get(name)
        if dataset is None or name not in present:
            continue
        try:
            table = lake.table(name)
            if isinstance(dataset, model.StreamingTable | model.MaterializedView):
                analysis.problems += [
                    Problem(text, dataset.location)
                    for text in existing_tables.complaints(
                        table, analysis.partition_by(dataset), dataset.properties
                    )
                ]
            evolution(table.schema, arrow_schema_of(schema))
        except TableLost as error:
            if not isinstance(dataset, model.MaterializedView):
                analysis.complain(str(error), dataset.location)
        except LakeError as error:
            analysis.complain(f"{name} does not fit its table: {error}", dataset.location)


def _check_stream(
    analysis: Analysis, flow: model.Flow, frame: "DataFrame", operators: "Operators"
) -> None:
    """Check that a flow reads a stream, by operators that Spark supports for streams."""
    if not frame.isStreaming:
        raise PipelineError(
            "it reads no stream; write STREAM(name) in SQL, read_stream(name) in"
            " Python, or make it a materialized view"
        )
    operators.check(frame, model.output_mode(flow, analysis.pipeline.datasets[flow.target]))


class Operators:
    """Checks streaming operators with Spark, as Spark does when a query starts.

    A session over Connect has no JVM at hand, and reports problems at the start only.
    """

    def __init__(self, spark: Any) -> None:
        jvm = getattr(spark, "_jvm", None)
        self._checker = None
        if jvm is not None:
            # By full name: each step of a path would search all jars for a class.
            modes = getattr(jvm, f"{_SQL}.streaming.OutputMode")
            self._checker = getattr(jvm, f"{_SQL}.catalyst.analysis.UnsupportedOperationChecker")
            self._modes = {
                "append": modes.Append(),
                "update": modes.Update(),
                "complete": modes.Complete(),
            }

    def check(self, frame: Any, mode: str) -> None:
        if self._checker is not None:
            plan = frame._jdf.queryExecution().analyzed()
            self._checker.checkForStreaming(plan, self._modes[mode.lower()])


def _check_changes(analysis: Analysis, flow: model.Flow, frame: "DataFrame") -> None:
    changes = flow.changes
    if changes is None:
        return
    wanted = [*changes.keys, *changes.except_columns]
    if changes.sequence_by.isidentifier():
        wanted.append(changes.sequence_by)
    else:
        with analysis.complaining(flow.location, f"{flow.name}, sequence: "):
            _ = sequenced(frame, changes).schema  # A session over Connect analyses only on access.
    _check_columns(analysis, wanted, frame.columns, flow.location, flow.name)
    _check_kept(analysis, flow, (*changes.keys, changes.sequence_by))
    if changes.apply_as_deletes is not None:
        _check_condition(
            analysis, changes.apply_as_deletes, frame, flow.location, f"{flow.name}, deletes: "
        )


def _check_kept(analysis: Analysis, flow: model.Flow, wanted: Iterable[str]) -> None:
    """Reject keys and sequences by columns about the row, which are not stored."""
    for column in dict.fromkeys(wanted):
        if column in model.RESERVED:
            analysis.complain(
                f"{flow.name}: {column} is about the row and not stored in a table, so changes"
                " cannot have it as key or sequence; select it under another name",
                flow.location,
            )


def _check_table(analysis: Analysis, table: model.StreamingTable) -> None:
    schema = analysis.columns.get(table.name)
    if schema is None:
        return
    names = schema.fieldNames()
    ordered = () if table.sequence_by is None else (table.sequence_by,)
    wanted = (*analysis.partition_by(table), *table.keys, *ordered)
    _check_columns(analysis, wanted, names, table.location, table.name)
    for flow in analysis.pipeline.flows_into(table.name):
        rows = analysis.stand_ins.table(analysis.frames[flow.name].schema)
        _check_expectations(analysis, table.expectations, rows, table.location, table.name)


def _check_view(analysis: Analysis, view: model.MaterializedView) -> None:
    frame = analysis.frames.get(view.name)
    if frame is None:
        return
    if frame.isStreaming:
        analysis.complain(
            f"{view.name} is computed whole, and its query reads a stream; remove STREAM in"
            " SQL, use read in Python, or make it a streaming table",
            view.location,
        )
        return
    _check_columns(analysis, view.partition_by, frame.columns, view.location, view.name)
    _check_expectations(analysis, view.expectations, frame, view.location, view.name)


def _check_merged(analysis: Analysis, view: model.MergedView) -> None:
    frame = analysis.frames.get(view.name)
    if frame is None:
        return
    _check_columns(analysis, view.merge, frame.columns, view.location, view.name)
    if set(view.merge) <= set(frame.columns) and (plan := plan_of(frame)) is not None:
        analysis.problems += [
            Problem(f"{view.name} cannot be merged from batches: {why}", view.location)
            for why in mergeable.complaints(plan, view.merge)
        ]
    reads = analysis.reads.get(view.name, [])
    if len(reads) != 1 or not reads[0].is_stream:
        analysis.complain(
            f"{view.name} reads {len(reads)} datasets; a merged view reads one, as a stream."
            " Join others in a streaming table before",
            view.location,
        )
    elif view.deduplicate_by and (table := _table_behind(analysis, reads[0].name)) is not None:
        names = analysis.columns_of(table).fieldNames()
        what = f"{view.name} counts rows of {table} once, which"
        _check_columns(analysis, view.deduplicate_by, names, view.location, what)


def _table_behind(analysis: Analysis, name: str) -> str | None:
    """Return the table behind a temporary view; None if it reads more than one dataset."""
    while isinstance(analysis.pipeline.datasets.get(name), model.TemporaryView):
        reads = {read.name for read in analysis.reads.get(name, ())}
        if len(reads) != 1:
            return None  # The making of the view reports several inputs.
        (name,) = reads
    return name


def _check_columns(
    analysis: Analysis,
    wanted: Iterable[str],
    names: Sequence[str],
    location: model.Location,
    what: str,
) -> None:
    for column in dict.fromkeys(wanted):
        if column not in names:
            analysis.complain(
                f"{what} has no column {column}; it has {', '.join(names)}{nearest(column, names)}",
                location,
            )


def _check_expectations(
    analysis: Analysis,
    expectations: Sequence[model.Expectation],
    rows: "DataFrame",
    location: model.Location,
    table: str,
) -> None:
    rules = [one.rule.condition for one in expectations if isinstance(one.rule, model.RowRule)]
    are_fine = _are_conditions(rules, rows)
    for expectation in expectations:
        what = f"the expectation {expectation.name!r} of {table}: "
        match expectation.rule:
            case model.RowRule(condition) if not are_fine:
                _check_condition(analysis, condition, rows, location, what)
            case model.TableRule(condition):
                with analysis.complaining(location, what):
                    _check_boolean(rows.agg(_expression(condition)).schema)
            case model.UniqueKey(columns):
                _check_columns(analysis, columns, rows.columns, location, f"{table} (unique)")
            case model.Freshness(column):
                with analysis.complaining(location, what):
                    _check_time(rows.select(_expression(column)).schema, column)
            case _:
                continue


def _are_conditions(conditions: Sequence[str], rows: "DataFrame") -> bool:
    """Return whether all are conditions over the rows, checked in one call to save time."""
    from pyspark.errors import PySparkException

    try:
        schema = rows.select(*map(_expression, conditions)).schema
    except PySparkException:
        return False
    return all(field.dataType.simpleString() in _CONDITION_TYPES for field in schema.fields)


def _check_condition(
    analysis: Analysis, condition: str, rows: "DataFrame", location: model.Location, what: str
) -> None:
    with analysis.complaining(location, what):
        _check_boolean(rows.select(_expression(condition)).schema)


def _check_boolean(schema: "StructType") -> None:
    found = schema.fields[0].dataType.simpleString()
    if found not in _CONDITION_TYPES:
        raise PipelineError(f"it is a {found}, and must be true or false; compare it to something")


def _check_time(schema: "StructType", column: str) -> None:
    found = schema.fields[0].dataType.simpleString()
    if found not in ("timestamp", "timestamp_ntz", "date"):
        raise PipelineError(f"{column} is a {found}; freshness needs a time")


def _expression(text: str) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return F.expr(text)
