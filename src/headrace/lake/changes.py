"""Change events applied to a table: deletes, late and repeated ones too, each exactly once.

Two tables take part: the target, which users read, and beside it a history that remembers what
the target does not show (`trusted.customers` and `trusted.customers__changes`).

A batch is two commits, both with the batch's token: the history first, the target last. So a
target that has the token means that all is done. After a crash between the two the batch comes
again, leaves the history alone, and decides as before: an event never beats itself (see
`change_events`), so it does not matter that it is remembered already. Readers of the target see a
batch whole or not at all.

The order matters where several flows, or a redrive, write to one table. Another batch may come
before the crashed one does again, and has to be measured against all that anyone was shown. A row
that the target has and the history lacks would lose to an older one for ever; one that the
history has and the target lacks is only late. That holds if the batch comes again as it was: where
the query is changed before, the history remembers the events of the old one, and the target shows
those of the new one.

Only the batch's keys are read and rewritten; of type 2 only versions that did not end before the
batch's smallest sequence, so events in order never read what is closed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
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
from headrace.lake.errors import LakeError
from headrace.lake.key_hashes import KeyHashes
from headrace.lake.lineage import Lineage

_DISTINCT_KEYS_MAX = 10_000
"""With more keys than these in a batch, rows are looked for between the least and the greatest."""


READ_BYTES_MAX = 256 << 20
"""So much of what its keys have already is read for a batch that is not merged by tasks."""
_UNHURRIED = {"batch_size": 64 * 1024, "batch_readahead": 2, "fragment_readahead": 1}
"""Arrow reads ahead, by default more than a driver has room for."""


class TooManyRows(LakeError):
    """More rows than may be held at once."""


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


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """How events are applied to a table; plain, so that it travels to tasks."""

    keys: tuple[str, ...]
    sequence_by: str
    deletes: str | None
    """A boolean column of events: true means that the key is gone from this sequence on."""
    scd_type: int

    def __post_init__(self) -> None:
        if self.scd_type not in (1, 2):
            raise InvalidChange(
                f"there are slowly changing dimensions of type 1 and 2, none of {self.scd_type}"
            )

    @property
    def reads_target(self) -> bool:
        """Whether rows of the target take part in the decision, or the history's alone."""
        return self.scd_type == 2

    @property
    def row_keys(self) -> tuple[str, ...]:
        """The key of the target's rows."""
        return (*self.keys, START_AT) if self.scd_type == 2 else self.keys

    @property
    def history_keys(self) -> tuple[str, ...]:
        return (*self.keys, SEQUENCE) if self.scd_type == 2 else self.keys

    def events(self, events: pa.Table, target: pa.Schema, history: pa.Schema) -> ChangeEvents:
        """The events, checked and in the types of the tables."""
        return change_events(
            events,
            _stored(target),
            keys=self.keys,
            sequence_by=self.sequence_by,
            sequence_type=history.field(SEQUENCE).type,
            deletes=self.deletes,
        )

    def decide(self, events: pa.Table, versions: pa.Table, known: pa.Table) -> Decided:
        """What events change, given the rows of both tables that have their keys."""
        batch = self.events(events, versions.schema, known.schema)
        if self.scd_type == 1:
            return changes_scd1.decide(batch, known)
        return changes_scd2.decide(batch, versions, known)


def apply_changes(
    table: KeyedTable,
    history: KeyedTable,
    events: pa.Table,
    rules: ChangeRules,
    token: Token,
    lineage: Lineage,
) -> int:
    """Apply the change events of one batch, if the token is new; the target's version after it.

    The schemas of both tables are the caller's to create and to evolve before.
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
    """Whether both tables have the batch.

    Either may be behind: earlier versions wrote the target first, and may have died there.
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
    """The rows of the batch's keys.

    A batch with few keys may still ask for many rows, of type 2: the driver gives up before they
    are too many for it.
    """
    hashes = KeyHashes.of([batch.rows], batch.keys)
    found: list[Any] = []
    size_bytes = 0
    read = table.dataset().to_batches(filter=where, **_UNHURRIED)
    for rows, mask in hashes.looked_up((rows, [rows]) for rows in read if rows.num_rows):
        chosen = rows.filter(mask)
        size_bytes += chosen.nbytes
        if size_bytes > READ_BYTES_MAX:
            raise TooManyRows(
                f"the keys of a batch have more than {READ_BYTES_MAX >> 20} MB of rows already;"
                " make batches smaller"
            )
        found.append(chosen)
    return pa.Table.from_batches(found, table.schema)


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
