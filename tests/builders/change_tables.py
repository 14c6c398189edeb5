"""A keyed table in memory with the manners of a lake table, and change events as short tuples."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.dataset as ds

from headrace.lake.applied_changes import ChangeRules, apply_changes, history_schema, target_schema
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage

LINEAGE = Lineage(pipeline="p", pipeline_version="1", flow="f", offsets={}, inputs={})


class Change(NamedTuple):
    """At `sequence` the row of `key` became `value`, or was deleted."""

    key: Any
    sequence: Any
    value: str | None = None
    is_delete: bool | None = False


def delete(key: Any, sequence: Any) -> Change:
    return Change(key, sequence, None, True)


def events_of(changes: Iterable[Change], sequence_type: pa.DataType | None = None) -> pa.Table:
    schema = pa.schema(
        [
            ("key", pa.string()),
            ("sequence", sequence_type or pa.int64()),
            ("value", pa.string()),
            ("is_delete", pa.bool_()),
        ]
    )
    return pa.Table.from_pylist([change._asdict() for change in changes], schema=schema)


class Crash(Exception):
    """The process is gone before this commit."""


@dataclass
class MemoryTable:
    """Merges by key in one commit, as a lake table does."""

    schema: pa.Schema
    content: list[dict[str, Any]] = field(default_factory=list)
    tokens: set[Token] = field(default_factory=set)
    crashes: bool = False
    read: list[int] = field(default_factory=list)

    @property
    def version(self) -> int:
        return len(self.tokens)

    def has(self, token: Token) -> bool:
        return token in self.tokens

    def dataset(self) -> Self:
        return self

    def to_batches(self, filter: ds.Expression, **_: object) -> list[pa.RecordBatch]:
        """Answer as an Arrow dataset does, and count the rows."""
        table = pa.Table.from_pylist(self.content, schema=self.schema)
        found = ds.dataset(table).to_table(filter=filter)
        self.read.append(found.num_rows)
        return list(found.to_batches())

    def upsert(
        self,
        rows: pa.Table,
        keys: Sequence[str],
        token: Token,
        lineage: Lineage,
        *,
        delete: str | None = None,
    ) -> None:
        if self.crashes:
            raise Crash
        source = rows.to_pylist()
        replaced = {str([row[key] for key in keys]) for row in source}
        assert len(replaced) == len(source), "Delta refuses two rows for one"
        kept = [row for row in self.content if str([row[key] for key in keys]) not in replaced]
        added = [row for row in source if delete is None or not row.pop(delete)]
        self.content = kept + added
        self.tokens.add(token)


@dataclass
class ChangedTable:
    """A target and its history, fed by batches of changes."""

    scd_type: int
    sequence_type: pa.DataType = field(default_factory=pa.int64)
    batch: int = 0

    def __post_init__(self) -> None:
        schema = events_of([], self.sequence_type).schema
        self.target = MemoryTable(
            target_schema(
                schema,
                sequence_by="sequence",
                deletes="is_delete",
                scd_type=self.scd_type,
                except_columns=["sequence"],
            )
        )
        self.history = MemoryTable(history_schema(schema, keys=["key"], sequence_by="sequence"))

    def apply(self, *changes: Change) -> None:
        self.batch += 1
        self.repeat(*changes)

    def repeat(self, *changes: Change) -> None:
        """The batch again, under the same token."""
        self.write(changes, Token("writer", self.batch))

    def write(self, changes: Iterable[Change], token: Token) -> None:
        """A batch of whichever flow."""
        apply_changes(
            self.target,
            self.history,
            events_of(changes, self.sequence_type),
            ChangeRules(("key",), "sequence", "is_delete", self.scd_type),
            token,
            LINEAGE,
        )

    def rows(self) -> set[tuple[Any, ...]]:
        found = [tuple(row.values()) for row in self.target.content]
        assert len(set(found)) == len(found), "a row is there twice"
        return set(found)
