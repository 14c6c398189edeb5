"""Change events applied to a table: deletes, late and repeated ones too, each exactly once.

Two tables take part: the target, which users read, and beside it a history that remembers what
the target does not show (`trusted.customers` and `trusted.customers__changes`).

A batch is two commits, both with the batch's token: the target first, the history last. So a
history that has the token means that all is done. After a crash between the two the batch comes
again, leaves the target alone, and decides what the history lacks as before: an event never beats
itself (see `change_events`), so it does not matter that its row is there. Readers of the target
see a batch whole or not at all.

Only the batch's keys are read and rewritten; of type 2 only versions that did not end before the
batch's smallest sequence, so events in order never read what is closed.
"""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake import changes_scd1, changes_scd2
from headrace.lake.change_events import (
    END_AT,
    IS_DELETE,
    SEQUENCE,
    START_AT,
    ChangeEvents,
    Decided,
    InvalidChange,
    change_events,
)
from headrace.lake.commits import Token
from headrace.lake.lineage import Lineage

_DISTINCT_KEYS_MAX = 10_000
"""With more keys than these in a batch, rows are looked for between the least and the greatest."""


class KeyedTable(Protocol):
    """What is needed of a table: to read by a filter, and to merge rows by key in one commit."""

    @property
    def schema(self) -> Any: ...

    @property
    def version(self) -> int: ...

    def has(self, token: Token) -> bool: ...

    def dataset(self) -> Any:
        """The newest version as a dataset of Arrow."""

    def upsert(
        self,
        rows: Any,
        keys: Sequence[str],
        token: Token,
        lineage: Lineage,
        *,
        delete: str | None = None,
    ) -> object:
        """Replace, insert and delete by key; commits the token also where nothing changes."""


def history_name(name: str) -> str:
    """The table that remembers what its target does not show."""
    return f"{name}__changes"


def target_schema(
    events: pa.Schema,
    *,
    sequence_by: str,
    scd_type: int,
    deletes: str | None = None,
    except_columns: Collection[str] = (),
) -> pa.Schema:
    """The columns that a table kept by such events has."""
    fields = [field for field in events if field.name not in (deletes, *except_columns)]
    if scd_type == 2:
        of_type = events.field(sequence_by).type
        fields += [pa.field(START_AT, of_type), pa.field(END_AT, of_type)]
    return pa.schema(fields)


def history_schema(events: pa.Schema, *, keys: Sequence[str], sequence_by: str) -> pa.Schema:
    """The columns of a history, of either type."""
    return pa.schema(
        [
            *(events.field(key) for key in keys),
            pa.field(SEQUENCE, events.field(sequence_by).type),
            pa.field(IS_DELETE, pa.bool_()),
        ]
    )


def apply_changes(
    table: KeyedTable,
    history: KeyedTable,
    events: pa.Table,
    *,
    keys: Sequence[str],
    sequence_by: str,
    deletes: str | None,
    scd_type: int,
    token: Token,
    lineage: Lineage,
) -> int:
    """Apply the change events of one batch, if the token is new; the target's version after it.

    `deletes` names a boolean column: true means that the key is gone from this sequence on. The
    schemas of both tables are the caller's to create and to evolve before.
    """
    if history.has(token):
        return table.version
    batch = change_events(
        events,
        _stored(table.schema),
        keys=keys,
        sequence_by=sequence_by,
        sequence_type=history.schema.field(SEQUENCE).type,
        deletes=deletes,
    )
    decided = _decide(table, history, batch, scd_type)
    if not table.has(token):
        table.upsert(decided.rows, decided.row_keys, token, lineage, delete=IS_DELETE)
    history.upsert(decided.history, decided.history_keys, token, lineage)
    return table.version


def _decide(table: KeyedTable, history: KeyedTable, batch: ChangeEvents, scd_type: int) -> Decided:
    of_keys = _of_keys(batch)
    if scd_type == 1:
        return changes_scd1.decide(batch, _read(history, of_keys))
    if scd_type == 2:
        return changes_scd2.decide(
            batch,
            _read(table, of_keys & _from_least(batch, END_AT)),
            _read(history, of_keys & _from_least(batch, SEQUENCE)),
        )
    raise InvalidChange(f"there are slowly changing dimensions of type 1 and 2, none of {scd_type}")


def _read(table: KeyedTable, where: Any) -> pa.Table:
    return table.dataset().to_table(filter=where)


def _of_keys(batch: ChangeEvents) -> Any:
    """Passes every row of the batch's keys, and perhaps some more; decisions join exactly."""
    passes = pc.scalar(True)
    for key in batch.keys:
        values = batch.rows[key].unique()
        if len(values) <= _DISTINCT_KEYS_MAX or pa.types.is_nested(values.type):
            passes &= _field(key, values.type).isin(values)
        else:
            bounds = pc.min_max(values)
            passes &= _field(key, values.type) >= bounds["min"]
            passes &= _field(key, values.type) <= bounds["max"]
    return passes


def _from_least(batch: ChangeEvents, column: str) -> Any:
    """Passes what is null or not below the batch's smallest sequence.

    Arrow compares no structs, so with such a sequence everything passes.
    """
    if pa.types.is_nested(batch.sequence.type) or not len(batch):
        return pc.scalar(True)
    field = _field(column, batch.sequence.type)
    return field.is_null() | (field >= pc.min(batch.sequence))


def _field(name: str, of_type: pa.DataType) -> Any:
    """A column in a filter.

    Texts and bytes are cast, to no effect but one: files that the wheel has merged hold them as
    views, and Arrow cannot compare a view with the bounds of a file.
    """
    is_text = pa.types.is_string(of_type) or pa.types.is_binary(of_type)
    return pc.field(name).cast(of_type) if is_text else pc.field(name)


def _stored(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in (START_AT, END_AT)])
