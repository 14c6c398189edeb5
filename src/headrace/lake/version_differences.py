"""Differences between two versions of a table."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.lake.errors import IncompatibleSchema
from headrace.lake.reading import dataset, quoted, run_sql
from headrace.lake.schemas import evolution, type_text
from headrace.lake.tables import Table


@dataclass(frozen=True, slots=True)
class Difference:
    """Duplicates count separately; a changed row counts as one removed and one added."""

    schema_changes: list[str]
    rows_added: int
    rows_removed: int
    added: pa.Table
    """Examples, up to the requested number."""
    removed: pa.Table


def difference(table: Table, old_version: int, new_version: int, limit: int) -> Difference:
    """Compare two versions by the columns that both have, in the wider of their types.

    Files that both versions have hold the same rows, so only the others are read.
    """
    old_files = {file.path: file for file in table.files(old_version)}
    new_files = {file.path: file for file in table.files(new_version)}
    old_schema = table.schema_at(old_version)
    new_schema = table.schema_at(new_version)
    shared = _shared(old_schema, new_schema)
    by = [name for name in table.partition_by if name in shared.names]
    relations = {}
    for name, version, files, others in (
        ("old", old_version, old_files, new_files),
        ("new", new_version, new_files, old_files),
    ):
        read = [file for path, file in files.items() if path not in others]
        table.check_files(read, version)
        relations[name] = dataset(table.place, read, shared, by)
    columns = ", ".join(map(quoted, shared.names))
    added, rows_added = _except("new", "old", columns, relations, limit)
    removed, rows_removed = _except("old", "new", columns, relations, limit)
    return Difference(
        schema_changes(old_schema, new_schema), rows_added, rows_removed, added, removed
    )


def schema_changes(old: pa.Schema, new: pa.Schema) -> list[str]:
    """Describe each change of a column."""
    changes = [
        f"column {field.name} {type_text(field.type)} was added"
        for field in new
        if field.name not in old.names
    ]
    changes += [
        f"column {field.name} {type_text(field.type)} was removed"
        for field in old
        if field.name not in new.names
    ]
    for field in new:
        if field.name in old.names and old.field(field.name).type != field.type:
            before = type_text(old.field(field.name).type)
            changes.append(f"column {field.name} was {before} and is {type_text(field.type)}")
    return changes


def _shared(old: pa.Schema, new: pa.Schema) -> pa.Schema:
    """Return the columns that both schemas have, in the wider type.

    Either may be the wider one: versions come in any order, and old ones may be restored.
    """
    return pa.schema(
        [_wider(old.field(field.name), field) for field in new if field.name in old.names]
    )


def _wider(one: pa.Field, other: pa.Field) -> pa.Field:
    first, second = (pa.schema([field.with_nullable(True)]) for field in (one, other))
    try:
        return evolution(first, second).schema.field(0)
    except IncompatibleSchema:
        return evolution(second, first).schema.field(0)


def _except(
    one: str, other: str, columns: str, relations: dict[str, Any], limit: int
) -> tuple[pa.Table, int]:
    rest = f"SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other}"
    rows = run_sql(f"{rest} LIMIT {limit}", relations)
    if rows.num_rows < limit:
        return rows, rows.num_rows
    counted = run_sql(f"SELECT count(*) AS rows FROM ({rest})", relations)
    return rows, counted["rows"][0].as_py()
