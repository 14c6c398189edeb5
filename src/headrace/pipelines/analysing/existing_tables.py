"""Checks that an existing table fits its current declaration."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.lake.catalog import Lake
    from headrace.lake.tables import Table

_FEATURES = ("delta.columnmapping", "delta.enable", "delta.feature", "delta.min")
"""Properties that change a table's protocol, so that they are set at creation or never."""
_REPLAY = "rebuild it with headrace pipelines replay FOLDER, or declare what it was made with"


def existing(lake: "Lake", name: str, generation: int | None = None) -> "Table | None":
    """Return a table if it exists and was not lost."""
    from headrace.lake.errors import TableLost

    if not lake.has(name, generation):
        return None
    try:
        return lake.table(name, generation)
    except TableLost:
        return None  # The reader of the table reports the loss.


def complaints(
    table: "Table", partition_by: Sequence[str], properties: Mapping[str, str]
) -> list[str]:
    """Return the differences that only a rebuild can resolve."""
    found = (
        partitioning_complaint(table.name, table.partition_by, partition_by),
        property_complaint(table.name, table.properties, properties),
    )
    return [text for text in found if text]


def partitioning_complaint(name: str, existing: Sequence[str], wanted: Sequence[str]) -> str | None:
    """Return the problem of changed partition columns, or None; files are not moved."""
    if tuple(existing) == tuple(wanted):
        return None
    return (
        f"{name} exists, partitioned by {', '.join(existing) or 'nothing'} and not by"
        f" {', '.join(wanted) or 'nothing'}; {_REPLAY}"
    )


def property_complaint(
    name: str, existing: Mapping[str, str], wanted: Mapping[str, str]
) -> str | None:
    """Return the problem of changed properties that only a new table can have, or None."""
    changed = [
        key
        for key, value in wanted.items()
        if existing.get(key) != value and is_for_new_tables(key)
    ]
    if not changed:
        return None
    return f"{name} exists without {', '.join(changed)} as declared now; {_REPLAY}"


def is_for_new_tables(key: str) -> bool:
    """Return whether a property can only be set when a table is created."""
    return key.lower().startswith(_FEATURES)
