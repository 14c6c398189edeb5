"""Options of declarations: one definition each, for SQL, Python and the reference page.

An option is an entry of a `TypedDict`. Its key is the Python keyword and its type is the keyword's
type. The `Option` beside the type has the SQL clauses, the field of the model that it fills, the
checks and the description. A new option is one entry here and one field in `model`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict

from headrace.lake.merge_functions import MERGES
from headrace.pipelines.declaring.intervals import schedule_complaint, seconds_of
from headrace.pipelines.declaring.option_names import sink_option_complaint
from headrace.pipelines.declaring.rules import expectation
from headrace.pipelines.declaring.sql_parts import Parts
from headrace.pipelines.model import Expectation, Rule
from headrace.pipelines.problems import PipelineError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

GUARANTEES = ("exactly-once", "idempotent", "at-least-once")
SINK_FORMATS = ("json", "kafka")
"""json: the row as a JSON object. kafka: the flow's columns are `key`, `value` and so on."""

Rules = Mapping[str, str | Rule]
Read = Callable[[Parts], Any]


@dataclass(frozen=True, slots=True)
class Option:
    """The definition of one option."""

    doc: str
    clauses: Mapping[str, Read] = field(default_factory=dict)
    """The SQL clauses that set the option, each with the reader of its value."""
    field: str = ""
    """The field of the model that the option fills; the keyword's name by default."""
    take: Callable[[Any], Any] = lambda value: value
    """Converts a value of Python to that of the model."""
    complaints: Callable[[Any], Iterable[str]] = lambda value: ()
    """The problems of a value."""
    is_added: bool = False
    """True if several options fill one field together."""


def _columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns; a single text is one name."""
    listed = [names] if isinstance(names, str) else list(names)
    return tuple(map(_text, listed))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise PipelineError(
        f"a column or condition is given as {type(value).__name__}; Spark does not run yet while"
        " files are read, so write it as text"
    )


def _ddl(schema: "str | StructType") -> str:
    """Return a schema as text: `id BIGINT, name STRING`."""
    if isinstance(schema, str):
        return schema
    return ", ".join(
        f"`{field.name}` {field.dataType.simpleString()}" + ("" if field.nullable else " NOT NULL")
        for field in schema.fields
    )


def _interval_complaints(text: str) -> Iterator[str]:
    try:
        seconds_of(text)
    except ValueError as error:
        yield str(error)


def _schedule_complaints(text: str) -> Iterator[str]:
    if wrong := schedule_complaint(text):
        yield wrong


def _merge_complaints(merge: Mapping[str, str]) -> Iterator[str]:
    for column, way in merge.items():
        if way not in MERGES:
            yield (
                f"{column} cannot be merged by {way!r}, only by {', '.join(MERGES)}; an average is"
                " a sum and a count"
            )


def _one_of(choices: Sequence[str]) -> Callable[[str], Iterator[str]]:
    def complaints(value: str) -> Iterator[str]:
        if value not in choices:
            *some, last = choices
            yield f"{value!r} is unknown; it can be {', '.join(some)} or {last}"

    return complaints


def _scd_complaints(scd_type: str) -> Iterator[str]:
    if scd_type not in ("1", "2"):
        yield (
            f"there is no SCD type {scd_type}; 1 keeps the newest row of each key, 2 its history"
            " too"
        )


def _sink_option_complaints(options: Mapping[str, str]) -> Iterator[str]:
    yield from filter(None, map(sink_option_complaint, options))


def _expression(parts: Parts) -> str:
    return parts.until([clause.split() for clause in clauses_of(ChangesOptions)]).strip()


def _rules(violation: str, doc: str) -> Option:
    """Return the option for rules by name, all with one consequence."""

    def take(rules: Rules) -> tuple[Expectation, ...]:
        return tuple(expectation(name, rule, violation) for name, rule in rules.items())

    return Option(doc, field="expectations", take=take, is_added=True)


class Described(TypedDict, total=False):
    """The option of every dataset and flow."""

    comment: Annotated[str, Option("A description, kept with the table.", {"COMMENT": Parts.text})]


class Timed(TypedDict, total=False):
    """Options of a flow."""

    trigger: Annotated[
        str | None,
        Option(
            "The interval between two batches of a continuous run; pipeline.toml has the default.",
            {"TRIGGER EVERY": Parts.interval},
            complaints=_interval_complaints,
        ),
    ]
    realtime: Annotated[
        str | None,
        Option(
            "Run in Spark's real-time mode with this checkpoint interval. For sinks only, with"
            " the connector `kafka`.",
            {"REALTIME EVERY": Parts.interval},
            complaints=_interval_complaints,
        ),
    ]


class Stored(Described, total=False):
    """Options of every stored table."""

    partition_cols: Annotated[
        Sequence[str] | None,
        Option(
            "The partition columns. A raw table with the record's topic and timestamp is"
            " partitioned by topic and day by default; an empty list turns that off.",
            {"PARTITIONED BY": Parts.possibly_no_names},
            field="partition_by",
            take=_columns,
        ),
    ]
    table_properties: Annotated[
        Mapping[str, str] | None,
        Option(
            "Properties of the Delta table.",
            {"TBLPROPERTIES": Parts.properties},
            field="properties",
            take=dict,
        ),
    ]


class TableOptions(Stored, total=False):
    """Options of a streaming table."""

    schema: Annotated[
        "str | StructType | None",
        Option(
            "Columns and types. In SQL they follow the table's name, in parentheses.", take=_ddl
        ),
    ]
    keys: Annotated[
        Sequence[str],
        Option(
            "The key columns: a row replaces the row with the same key. Without keys, rows are"
            " appended.",
            {"KEYS": Parts.names},
            take=_columns,
        ),
    ]
    sequence_by: Annotated[
        str | None,
        Option(
            "A column that orders the rows of a key: a late row does not replace a newer one.",
            {"SEQUENCE BY": Parts.column},
            take=_text,
        ),
    ]
    dead_letter_topic: Annotated[
        str | None,
        Option(
            "A topic that also gets the rejected rows of the table.",
            {"DEAD LETTER TOPIC": Parts.text},
        ),
    ]


class FedTableOptions(TableOptions, Timed, total=False):
    """Options of a streaming table that is declared with its flow."""


class RuledTableOptions(TableOptions, total=False):
    """Options of a streaming table that is declared without a function to decorate."""

    expect_all: Annotated[
        Rules | None, _rules("warn", "Rules by name; rows that break one are kept.")
    ]
    expect_all_or_drop: Annotated[
        Rules | None, _rules("drop", "Rules by name; rows that break one are dropped.")
    ]
    expect_all_or_quarantine: Annotated[
        Rules | None,
        _rules("quarantine", "Rules by name; rows that break one go to quarantine."),
    ]
    expect_all_or_fail: Annotated[
        Rules | None, _rules("fail", "Rules by name; a row that breaks one stops the flow.")
    ]


class Refreshed(TypedDict, total=False):
    """The option of datasets that are computed on a schedule."""

    refresh: Annotated[
        str | None,
        Option(
            "The schedule: an interval such as `5 minutes`, or a cron line in UTC; pipeline.toml"
            " has the default.",
            {"REFRESH EVERY": Parts.interval, "REFRESH CRON": Parts.text},
            complaints=_schedule_complaints,
        ),
    ]


class ViewOptions(Stored, Refreshed, total=False):
    """Options of a materialized view."""


class MergedViewOptions(Described, Refreshed, total=False):
    """Options of a merged view."""

    merge: Required[
        Annotated[
            Mapping[str, str],
            Option(
                "For each column outside of the key, how two parts become one: sum, min or max.",
                {"MERGE": Parts.merges},
                take=dict,
                complaints=_merge_complaints,
            ),
        ]
    ]
    deduplicate_by: Annotated[
        Sequence[str],
        Option(
            "Columns of the input that identify a record; a repeated record counts once.",
            {"DEDUPLICATE BY": Parts.names},
            take=_columns,
        ),
    ]


class FlowOptions(Described, Timed, total=False):
    """Options of a flow into a table or a sink."""

    once: Annotated[
        bool,
        Option(
            "Read the rows that exist when the pipeline starts, then end. In SQL: `INSERT INTO"
            " ONCE`.",
            field="is_once",
        ),
    ]


class ChangesOptions(TypedDict, total=False):
    """Options of a flow of change events."""

    keys: Annotated[Sequence[str], Option("The key columns.", {"KEYS": Parts.names}, take=_columns)]
    sequence_by: Annotated[
        str,
        Option(
            "A column or expression that orders the events of a key.",
            {"SEQUENCE BY": _expression},
            take=_text,
        ),
    ]
    apply_as_deletes: Annotated[
        str | None,
        Option(
            "A condition: events that meet it delete the row of their key.",
            {"APPLY AS DELETE WHEN": _expression},
            take=_text,
        ),
    ]
    except_column_list: Annotated[
        Sequence[str],
        Option(
            "Columns that the table does not store.",
            {"COLUMNS * EXCEPT": Parts.names},
            field="except_columns",
            take=_columns,
        ),
    ]
    stored_as_scd_type: Annotated[
        int | str,
        Option(
            "1 keeps the newest row of each key, 2 its history too.",
            {"STORED AS SCD TYPE": lambda parts: parts.take().text},
            field="scd_type",
            take=str,
            complaints=_scd_complaints,
        ),
    ]


class SinkOptions(TypedDict, total=False):
    """Options of a sink."""

    topic: Annotated[str | None, Option("The topic to write to.", {"TOPIC": Parts.text})]
    format: Annotated[
        str,
        Option(
            "`json` writes a row as a JSON object; `kafka` takes the columns `key`, `value`,"
            " `headers`.",
            {"FORMAT": Parts.text},
            take=str.lower,
            complaints=_one_of(SINK_FORMATS),
        ),
    ]
    guarantee: Annotated[
        str,
        Option(
            "`exactly-once`, `idempotent` or `at-least-once`.",
            {"GUARANTEE": Parts.text},
            take=str.lower,
            complaints=_one_of(GUARANTEES),
        ),
    ]
    options: Annotated[
        Mapping[str, str] | None,
        Option(
            "Further options of the writer.",
            {"OPTIONS": Parts.properties},
            take=dict,
            complaints=_sink_option_complaints,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Given:
    """The options that a declaration sets: values by field of the model, and their problems."""

    fields: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def put(self, option: Option, keyword: str, label: str, value: Any) -> None:
        """Set an option; `label` is its name in the language of the declaration."""
        taken = option.take(value)
        self.problems.extend(f"{label}: {wrong}" for wrong in option.complaints(taken))
        name = option.field or keyword
        self.fields[name] = (*self.fields.get(name, ()), *taken) if option.is_added else taken


def options_of(kind: type) -> Mapping[str, Option]:
    """Return the options of a kind of declaration by their Python keywords."""
    found: dict[str, Option] = {}
    for keyword, annotation in kind.__annotations__.items():
        inner = annotation
        while not hasattr(inner, "__metadata__"):
            (inner,) = inner.__args__  # `Required[Annotated[...]]`
        (found[keyword],) = inner.__metadata__
    return found


def clauses_of(kind: type) -> Mapping[str, tuple[str, Option]]:
    """Return the options of a kind of declaration by their SQL clauses, with the keyword."""
    return {
        clause: (keyword, option)
        for keyword, option in options_of(kind).items()
        for clause in option.clauses
    }


def given_in_python(kind: type, given: Mapping[str, Any]) -> Given:
    """Return the options of a call; None leaves the default."""
    found, known = Given(), options_of(kind)
    for keyword, value in given.items():
        if keyword in known and value is not None:
            found.put(known[keyword], keyword, keyword, value)
    return found


def given_in_sql(kind: type, parts: Parts, *, more: str = "") -> Given:
    """Read the clauses of a statement in any order, up to its end or to AS.

    `more` names other words that may follow, for the error at an unknown one.
    """
    found, known = Given(), clauses_of(kind)
    while not parts.is_at_end and not parts.is_next("AS"):
        clause = next((clause for clause in known if parts.accept(*clause.split())), None)
        if clause is None:
            raise parts.no_clause(known, more)
        keyword, option = known[clause]
        found.put(option, keyword, clause, option.clauses[clause](parts))
    return found
