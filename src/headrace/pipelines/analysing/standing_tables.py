"""Tables that are there already, beside what their declaration says now: may they be kept?"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.lake.catalog import Lake
    from headrace.lake.tables import Table

_FEATURES = ("delta.columnmapping", "delta.enable", "delta.feature", "delta.min")
"""Properties by which a table takes another protocol, so that it is made with them or never."""
_REPLAY = "build it anew with headrace pipelines replay FOLDER, or declare what it was made with"


def standing(lake: "Lake", name: str, generation: int | None = None) -> "Table | None":
    """A table if it is there, and was not lost."""
    from headrace.lake.errors import TableLost

    if not lake.has(name, generation):
        return None
    try:
        return lake.table(name, generation)
    except TableLost:
        return None  # Whoever needs it says so.


def complaints(
    table: "Table", partition_by: Sequence[str], properties: Mapping[str, str]
) -> list[str]:
    """All that keeps a table from becoming what is declared, short of building it anew."""
    found = (
        partitioning_complaint(table.name, table.partition_by, partition_by),
        property_complaint(table.name, table.properties, properties),
    )
    return [text for text in found if text]


def partitioning_complaint(name: str, standing: Sequence[str], wanted: Sequence[str]) -> str | None:
    """What is wrong if a table is to be partitioned otherwise than it is; files are not moved."""
    if tuple(standing) == tuple(wanted):
        return None
    return (
        f"{name} is there, partitioned by {', '.join(standing) or 'nothing'} and not by"
        f" {', '.join(wanted) or 'nothing'}; {_REPLAY}"
    )


def property_complaint(
    name: str, standing: Mapping[str, str], wanted: Mapping[str, str]
) -> str | None:
    """What is wrong if a table is to have properties that only a new one can have."""
    changed = [
        key
        for key, value in wanted.items()
        if standing.get(key) != value and is_for_new_tables(key)
    ]
    if not changed:
        return None
    return f"{name} is there without {', '.join(changed)} as it is declared now; {_REPLAY}"


def is_for_new_tables(key: str) -> bool:
    """Whether a table has a property from the start or never."""
    return key.lower().startswith(_FEATURES)
