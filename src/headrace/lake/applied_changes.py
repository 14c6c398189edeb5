"""Change events applied to a table exactly once, deletes, late and repeated events included.

Two tables take part: the target, which users read, and a history of what the target does not show
(`trusted.customers` and `trusted.customers__changes`).

A batch makes two commits with its token: the history first, the target last. So a target with the
token has the whole batch. After a crash between the two, the repeated batch skips the history and
decides as before, because an event never beats itself (see `change_events`). Readers of the target
see a batch whole or not at all.

The order of the commits matters where several flows, or a redrive, write to one table, because
another batch may come before the crashed one is repeated. A row that only the target has would
lose to older events for ever; a row that only the history has is merely late. If the query changes
before the repetition, the history keeps the events of the old query and the target shows those of
the new one.

Only the batch's keys are read and rewritten. With type 2, only versions that did not end before the
batch's smallest sequence are read, so events in order never read closed versions.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake import slowly_changing
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
from headrace.lake.commit_log import Token
from headrace.lake.errors import LakeError
from headrace.lake.key_hashes import KeyHashes
from headrace.lake.lineage import Lineage

_DISTINCT_KEYS_MAX = 10_000
"""With more keys in a batch, the filter is the range between the least and the greatest key."""
READ_BYTES_MAX = 256 << 20
"""Existing rows that the driver reads for a batch; larger batches are merged by tasks."""
_READ_AHEAD = {"batch_size": 64 * 1024, "batch_readahead": 2, "fragment_readahead": 1}
"""Arrow's defaults read ahead more than a driver has memory for."""


class TooManyRows(LakeError):
    """The existing rows of a batch's keys exceed the driver's memory."""


class KeyedTable(Protocol):
    """A table that is read by a filter and merged by key in one commit."""

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
        """Replace, insert and delete by key; commit the token even if nothing changes."""


def history_name(name: str) -> str:
    """Return the name of a target's history table."""
    return f"{name}__changes"


def target_schema(
    events: pa.Schema,
    *,
    sequence_by: str,
    scd_type: int,
    deletes: str | None = None,
    except_columns: Collection[str] = (),
) -> pa.Schema:
    """Return the schema of a target for these events."""
    fields = [field for field in events if field.name not in (deletes, *except_columns)]
    if scd_type == 2:
        of_type = events.field(sequence_by).type
        fields += [pa.field(START_AT, of_type), pa.field(END_AT, of_type)]
    return pa.schema(fields)


def history_schema(events: pa.Schema, *, keys: Sequence[str], sequence_by: str) -> pa.Schema:
    """Return the schema of a history table, for both types."""
    return pa.schema(
        [
            *(events.field(key) for key in keys),
            pa.field(SEQUENCE, events.field(sequence_by).type),
            pa.field(IS_DELETE, pa.bool_()),
        ]
    )


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """Rules by which events change a table; plain data that tasks unpickle."""

    keys: tuple[str, ...]
    sequence_by: str
    deletes: str | None
    """A boolean column of events: true deletes the key from this sequence on."""
    scd_type: int

    def __post_init__(self) -> None:
        if self.scd_type not in (1, 2):
            raise InvalidChange(
                f"type {self.scd_type} is not a supported slowly changing dimension; use 1 or 2"
            )

    @property
    def reads_target(self) -> bool:
        """Return whether decisions need rows of the target, or those of the history alone."""
        return self.scd_type == 2

    @property
    def row_keys(self) -> tuple[str, ...]:
        """The key of the target's rows."""
        return (*self.keys, START_AT) if self.scd_type == 2 else self.keys

    @property
    def history_keys(self) -> tuple[str, ...]:
        return (*self.keys, SEQUENCE) if self.scd_type == 2 else self.keys

    def events(self, events: pa.Table, target: pa.Schema, history: pa.Schema) -> ChangeEvents:
        """Check events and cast them to the types of the tables."""
        return change_events(
            events,
            _stored(target),
            keys=self.keys,
            sequence_by=self.sequence_by,
            sequence_type=history.field(SEQUENCE).type,
            deletes=self.deletes,
        )

    def decide(self, events: pa.Table, versions: pa.Table, known: pa.Table) -> Decided:
        """Decide the changes, given the rows of both tables that have the events' keys."""
        batch = self.events(events, versions.schema, known.schema)
        if self.scd_type == 1:
            return slowly_changing.decide_type_1(batch, known)
        return slowly_changing.decide_type_2(batch, versions, known)


def apply_changes(
    table: KeyedTable,
    history: KeyedTable,
    events: pa.Table,
    rules: ChangeRules,
    token: Token,
    lineage: Lineage,
) -> int:
    """Apply the events of one batch if its token is new; return the target's version.

    The caller creates both tables and evolves their schemas before.
    """
    if is_applied(table, history, token):
        return table.version
    decided = _decide(table, history, events, rules)
    if not history.has(token):
        history.upsert(decided.history, rules.history_keys, token, lineage)
    if not table.has(token):
        table.upsert(decided.rows, rules.row_keys, token, lineage, delete=IS_DELETE)
    return table.version


def is_applied(table: KeyedTable, history: KeyedTable, token: Token) -> bool:
    """Return whether both tables have the batch.

    Either may be behind: earlier releases wrote the target first and may have crashed there.
    """
    return table.has(token) and history.has(token)


def _decide(
    table: KeyedTable, history: KeyedTable, events: pa.Table, rules: ChangeRules
) -> Decided:
    batch = rules.events(events, table.schema, history.schema)
    of_keys = _of_keys(batch)
    if not rules.reads_target:
        return rules.decide(events, table.schema.empty_table(), _read(history, of_keys, batch))
    return rules.decide(
        events,
        _read(table, of_keys & _from_least(batch, END_AT), batch),
        _read(history, of_keys & _from_least(batch, SEQUENCE), batch),
    )


def _read(table: KeyedTable, where: Any, batch: ChangeEvents) -> pa.Table:
    """Read the rows of the batch's keys.

    With type 2 a few keys may have many rows, so their size is bounded here.
    """
    hashes = KeyHashes.of([batch.rows], batch.keys)
    found: list[Any] = []
    size_bytes = 0
    read = table.dataset().to_batches(filter=where, **_READ_AHEAD)
    for rows, mask in hashes.looked_up((rows, [rows]) for rows in read if rows.num_rows):
        chosen = rows.filter(mask)
        size_bytes += chosen.nbytes
        if size_bytes > READ_BYTES_MAX:
            raise TooManyRows(
                f"the keys of a batch have more than {READ_BYTES_MAX >> 20} MB of existing rows;"
                " make batches smaller"
            )
        found.append(chosen)
    return pa.Table.from_batches(found, table.schema)


def _of_keys(batch: ChangeEvents) -> Any:
    """Return a filter that passes all rows of the batch's keys, and perhaps a few others."""
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
    """Return a filter that passes nulls and values from the batch's smallest sequence on.

    Arrow cannot compare structs, so all rows pass where the sequence is one.
    """
    if pa.types.is_nested(batch.sequence.type) or not len(batch):
        return pc.scalar(True)
    field = _field(column, batch.sequence.type)
    return field.is_null() | (field >= pc.min(batch.sequence))


def _field(name: str, of_type: pa.DataType) -> Any:
    """Return a column for a filter.

    The cast only matters for files that deltalake has merged: they hold strings as views, which
    Arrow cannot compare with the bounds of a file.
    """
    is_text = pa.types.is_string(of_type) or pa.types.is_binary(of_type)
    return pc.field(name).cast(of_type) if is_text else pc.field(name)


def _stored(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in (START_AT, END_AT)])
