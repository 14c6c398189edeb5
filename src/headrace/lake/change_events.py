"""The change events of one batch: checked, cast to the table's types, and ordered by DuckDB.

An event upserts or deletes the row of a key at a sequence. Events may come late and repeatedly, so
all decisions follow one total order, in which the event that wins has

1. the greater sequence;
2. with equal sequences, the delete;
3. with both equal, the later arrival.

The order depends on the events alone and not on the cut into batches, and an event never beats
itself. So applying a batch twice has the effect of applying it once.

DuckDB gets keys, sequences and positions only and returns positions. Payloads are taken by position
from the Arrow tables and keep their exact types.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.errors import LakeError

START_AT = "__START_AT"
END_AT = "__END_AT"
"""Columns with the validity of a version, null at the end while it holds; Databricks' names."""
SEQUENCE = "__SEQUENCE"
IS_DELETE = "__IS_DELETE"
"""Marks delete events in a history table, and rows to delete among decided rows."""


class InvalidChange(LakeError):
    """Invalid change events or change rules."""


@dataclass(frozen=True, slots=True)
class ChangeEvents:
    """Checked change events, in the order of their arrival."""

    rows: Any
    """An Arrow table with the target's columns and types."""
    keys: tuple[str, ...]
    sequence: Any
    is_delete: Any

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def ordering(self, first_position: int = 0, **more: Any) -> pa.Table:
        return ordering(self.rows, self.keys, self.sequence, self.is_delete, first_position, **more)

    def history(self, positions: Any) -> pa.Table:
        """Return the events at these positions as rows of the history table."""
        columns = {key: self.rows[key] for key in self.keys}
        known = pa.table({**columns, SEQUENCE: self.sequence, IS_DELETE: self.is_delete})
        return known.take(positions)


@dataclass(frozen=True, slots=True)
class Decided:
    """The changes of a batch of events, as an Arrow table for each merge."""

    rows: Any
    """Rows of the target with the column IS_DELETE."""
    history: Any


def change_events(
    events: pa.Table,
    stored: pa.Schema,
    *,
    keys: Sequence[str],
    sequence_by: str,
    sequence_type: pa.DataType,
    deletes: str | None,
) -> ChangeEvents:
    """Check the events of a batch and cast them to the target's columns.

    Other columns are left out; missing ones are null.
    """
    given = (*keys, sequence_by, *(() if deletes is None else (deletes,)))
    for column in given:
        if column not in events.column_names:
            raise InvalidChange(
                f"change events have no column {column}; they have {', '.join(events.column_names)}"
            )
    for column in keys:
        _refuse_nulls(events, column, "key", "let an expectation drop or quarantine them")
    _refuse_nulls(events, sequence_by, "sequence", "an event without one has no place in the order")
    if deletes is None:
        is_delete = pa.repeat(False, events.num_rows)
    else:
        is_delete = pc.fill_null(events[deletes].cast(pa.bool_()), False)
    return ChangeEvents(
        rows=_stored_rows(events, stored),
        keys=tuple(keys),
        sequence=_cast(events[sequence_by], pa.field(sequence_by, sequence_type)),
        is_delete=is_delete,
    )


def ordering(
    rows: pa.Table,
    keys: Sequence[str],
    sequence: Any,
    is_delete: Any,
    first_position: int = 0,
    **more: Any,
) -> pa.Table:
    """Return the columns by which DuckDB orders events, under names that need no quotes."""
    more = {"sequence": sequence, "is_delete": is_delete, **more}
    return numbered(rows, keys, first_position, **more)


def numbered(rows: Any, keys: Sequence[str], first_position: int = 0, **more: Any) -> pa.Table:
    """Return the keys of rows and their positions, under names that need no quotes."""
    columns = {f"key{n}": rows.column(key) for n, key in enumerate(keys)}
    positions = pa.arange(first_position, first_position + rows.num_rows)
    return pa.table({**columns, "position": positions, **more})


def key_names(keys: Sequence[str]) -> str:
    """Return the key columns of an `ordering`, for USING or PARTITION BY."""
    return ", ".join(f"key{n}" for n in range(len(keys)))


def marked(rows: pa.Table, *, is_delete: bool) -> pa.Table:
    """Add the column IS_DELETE to rows of the target."""
    return rows.append_column(IS_DELETE, pa.repeat(is_delete, rows.num_rows))


def query(text: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Run a DuckDB query over these tables only.

    A cursor sees its own tables alone, and opens ten times as fast as a database.
    """
    with duckdb.default_connection().cursor() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(text).to_arrow_table()


def _refuse_nulls(events: pa.Table, column: str, role: str, advice: str) -> None:
    if nulls := events[column].null_count:
        raise InvalidChange(
            f"{nulls} of {events.num_rows} change events have a null {role} (column {column}):"
            f" {advice}"
        )


def _stored_rows(events: pa.Table, stored: pa.Schema) -> pa.Table:
    """Return the stored columns; required ones stay so, to be concatenated with table rows."""
    columns = [
        _cast(events[field.name], field)
        if field.name in events.column_names
        else pa.nulls(events.num_rows, field.type)
        for field in stored
    ]
    return pa.table(columns, schema=stored)


def _cast(column: Any, field: pa.Field) -> Any:
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidChange(
            f"change events have {column.type} in column {field.name} where the table has"
            f" {field.type}: {error}; evolve the table, or cast the column in the flow's query"
        ) from None
