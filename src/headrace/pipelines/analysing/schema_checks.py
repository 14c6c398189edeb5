"""What is declared of tables and flows, held against the columns that Spark has found for them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.pipelines.analysing import mergeable, standing_tables
from headrace.pipelines.analysing.analysis import Analysis
from headrace.pipelines.analysing.plans import plan_of
from headrace.pipelines.model import (
    RESERVED,
    Expectation,
    Flow,
    Freshness,
    MaterializedView,
    MergedView,
    Place,
    RowRule,
    StreamingTable,
    TableRule,
    TemporaryView,
    UniqueKey,
    output_mode,
)
from headrace.pipelines.problems import PipelineError, Problem, nearest
from headrace.pipelines.sequences import sequenced

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


_SQL = "org.apache.spark.sql"
_CONDITION_TYPES = ("boolean", "void")


def check_declared(analysis: Analysis) -> None:
    """Add to the analysis what is wrong between declarations and columns."""
    operators = Operators(analysis.spark)
    for flow in analysis.pipeline.flows:
        if (frame := analysis.frames.get(flow.name)) is not None:
            with analysis.complaining(flow.place, f"{flow.name}: "):
                _check_stream(analysis, flow, frame, operators)
            _check_changes(analysis, flow, frame)
    for dataset in analysis.pipeline.datasets.values():
        match dataset:
            case StreamingTable():
                _check_table(analysis, dataset)
            case MaterializedView():
                _check_view(analysis, dataset)
            case MergedView():
                _check_merged(analysis, dataset)
            case _:
                continue


def check_lake(analysis: Analysis) -> None:
    """Compare with the tables that are there: may they become what the pipeline wants?"""
    from headrace.lake.catalog import Lake
    from headrace.lake.errors import LakeError, TableLost
    from headrace.lake.schemas import evolution
    from headrace.spark.tables.schemas import arrow_schema_of

    lake = Lake(analysis.pipeline.settings.lake)
    present = set(lake.names())
    for name, schema in analysis.schemas.items():
        dataset = analysis.pipeline.datasets.get(name)
        if dataset is None or name not in present:
            continue
        try:
            table = lake.table(name)
            if isinstance(dataset, StreamingTable | MaterializedView):
                analysis.problems += [
                    Problem(text, dataset.place)
                    for text in standing_tables.complaints(
                        table, analysis.partition_by(dataset), dataset.properties
                    )
                ]
            evolution(table.schema, arrow_schema_of(schema))
        except TableLost as error:
            if not isinstance(dataset, MaterializedView):
                analysis.problems.append(Problem(str(error), dataset.place))
        except LakeError as error:
            analysis.problems.append(
                Problem(f"{name} does not fit its table: {error}", dataset.place)
            )


def _check_stream(
    analysis: Analysis, flow: Flow, frame: "DataFrame", operators: "Operators"
) -> None:
    """A flow's rows come as a stream, by operators that streams have."""
    if not frame.isStreaming:
        raise PipelineError(
            "nothing in it is read as rows come; write STREAM(name) in SQL, read_stream(name) in"
            " Python, or make it a materialized view"
        )
    operators.check(frame, output_mode(flow, analysis.pipeline.datasets[flow.target]))


class Operators:
    """Asks Spark whether a stream can do what a query wants, as Spark asks when a query starts.

    A session over Connect has no JVM at hand, and says so only then.
    """

    def __init__(self, spark: Any) -> None:
        jvm = getattr(spark, "_jvm", None)
        self._checker = None
        if jvm is not None:
            # By whole names: each step of a path would look for a class in all jars.
            modes = getattr(jvm, f"{_SQL}.streaming.OutputMode")
            self._checker = getattr(jvm, f"{_SQL}.catalyst.analysis.UnsupportedOperationChecker")
            self._modes = {
                "append": modes.Append(),
                "update": modes.Update(),
                "complete": modes.Complete(),
            }

    def check(self, frame: Any, output_mode: str) -> None:
        if self._checker is not None:
            plan = frame._jdf.queryExecution().analyzed()
            self._checker.checkForStreaming(plan, self._modes[output_mode.lower()])


def _check_changes(analysis: Analysis, flow: Flow, frame: "DataFrame") -> None:
    changes = flow.changes
    if changes is None:
        return
    wanted = [*changes.keys, *changes.except_columns]
    if changes.sequence_by.isidentifier():
        wanted.append(changes.sequence_by)
    else:
        with analysis.complaining(flow.place, f"{flow.name}, sequence: "):
            _ = sequenced(frame, changes).schema  # A session over Connect looks only when asked.
    _check_columns(analysis, wanted, frame.columns, flow.place, flow.name)
    _check_kept(analysis, flow, (*changes.keys, changes.sequence_by))
    if changes.apply_as_deletes is not None:
        _check_condition(
            analysis, changes.apply_as_deletes, frame, flow.place, f"{flow.name}, deletes: "
        )


def _check_kept(analysis: Analysis, flow: Flow, wanted: Iterable[str]) -> None:
    """Keys and sequences are remembered; columns that are about the row are not stored."""
    for column in dict.fromkeys(wanted):
        if column in RESERVED:
            analysis.problems.append(
                Problem(
                    f"{flow.name}: {column} is about the row and no table keeps it, so changes"
                    " have neither a key nor a sequence by it; select it under another name",
                    flow.place,
                )
            )


def _check_table(analysis: Analysis, table: StreamingTable) -> None:
    schema = analysis.schemas.get(table.name)
    if schema is None:
        return
    names = schema.fieldNames()
    ordered = () if table.sequence_by is None else (table.sequence_by,)
    wanted = (*analysis.partition_by(table), *table.keys, *ordered)
    _check_columns(analysis, wanted, names, table.place, table.name)
    for flow in analysis.pipeline.flows_into(table.name):
        rows = analysis.stand_ins.table(analysis.frames[flow.name].schema)
        _check_expectations(analysis, table.expectations, rows, table.place, table.name)


def _check_view(analysis: Analysis, view: MaterializedView) -> None:
    frame = analysis.frames.get(view.name)
    if frame is None:
        return
    if frame.isStreaming:
        analysis.problems.append(
            Problem(
                f"{view.name} is computed whole, and its query reads a stream; leave out STREAM in"
                " SQL, use read in Python, or make it a streaming table",
                view.place,
            )
        )
        return
    _check_columns(analysis, view.partition_by, frame.columns, view.place, view.name)
    _check_expectations(analysis, view.expectations, frame, view.place, view.name)


def _check_merged(analysis: Analysis, view: MergedView) -> None:
    frame = analysis.frames.get(view.name)
    if frame is None:
        return
    _check_columns(analysis, view.merge, frame.columns, view.place, view.name)
    if set(view.merge) <= set(frame.columns) and (plan := plan_of(frame)) is not None:
        analysis.problems += [
            Problem(f"{view.name} cannot be kept by parts: {why}", view.place)
            for why in mergeable.complaints(plan, view.merge)
        ]
    reads = analysis.reads.get(view.name, [])
    if len(reads) != 1 or not reads[0].is_stream:
        analysis.problems.append(
            Problem(
                f"{view.name} reads {len(reads)} datasets; a merged view is kept from one, read as"
                " rows come. Join others in a streaming table before",
                view.place,
            )
        )
    elif view.deduplicate_by and (table := _table_behind(analysis, reads[0].name)) is not None:
        names = analysis.columns_of(table).fieldNames()
        what = f"{view.name} counts rows of {table} once, which"
        _check_columns(analysis, view.deduplicate_by, names, view.place, what)


def _table_behind(analysis: Analysis, name: str) -> str | None:
    """What a temporary view reads, whose rows are told apart; None if that is not one table."""
    while isinstance(analysis.pipeline.datasets.get(name), TemporaryView):
        reads = {read.name for read in analysis.reads.get(name, ())}
        if len(reads) != 1:
            return None  # That such a view is kept from one table is said when it is made.
        (name,) = reads
    return name


def _check_columns(
    analysis: Analysis, wanted: Iterable[str], names: Sequence[str], place: Place, what: str
) -> None:
    for column in dict.fromkeys(wanted):
        if column not in names:
            analysis.problems.append(
                Problem(
                    f"{what} has no column {column}; it has {', '.join(names)}"
                    f"{nearest(column, names)}",
                    place,
                )
            )


def _check_expectations(
    analysis: Analysis,
    expectations: Sequence[Expectation],
    rows: "DataFrame",
    place: Place,
    table: str,
) -> None:
    rules = [one.rule.condition for one in expectations if isinstance(one.rule, RowRule)]
    are_fine = _are_conditions(rules, rows)
    for expectation in expectations:
        what = f"the expectation {expectation.name!r} of {table}: "
        match expectation.rule:
            case RowRule(condition) if not are_fine:
                _check_condition(analysis, condition, rows, place, what)
            case TableRule(condition):
                with analysis.complaining(place, what):
                    _check_boolean(rows.agg(_expression(condition)).schema)
            case UniqueKey(columns):
                _check_columns(analysis, columns, rows.columns, place, f"{table} (unique)")
            case Freshness(column):
                with analysis.complaining(place, what):
                    _check_time(rows.select(_expression(column)).schema, column)
            case _:
                continue


def _are_conditions(conditions: Sequence[str], rows: "DataFrame") -> bool:
    """Whether all are conditions about the rows; asked at once, as that is mostly all it takes."""
    from pyspark.errors import PySparkException

    try:
        schema = rows.select(*map(_expression, conditions)).schema
    except PySparkException:
        return False
    return all(field.dataType.simpleString() in _CONDITION_TYPES for field in schema.fields)


def _check_condition(
    analysis: Analysis, condition: str, rows: "DataFrame", place: Place, what: str
) -> None:
    with analysis.complaining(place, what):
        _check_boolean(rows.select(_expression(condition)).schema)


def _check_boolean(schema: "StructType") -> None:
    found = schema.fields[0].dataType.simpleString()
    if found not in _CONDITION_TYPES:
        raise PipelineError(f"it is a {found}, and must be true or false; compare it to something")


def _check_time(schema: "StructType", column: str) -> None:
    found = schema.fields[0].dataType.simpleString()
    if found not in ("timestamp", "timestamp_ntz", "date"):
        raise PipelineError(f"{column} is a {found}, and only times are fresh")


def _expression(text: str) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return F.expr(text)
