"""Lists and descriptions of tables: columns, versions and origin."""

from typing import Any

import msgspec

from headrace.lake.lineage import Lineage
from headrace.serving.answers import Column
from headrace.serving.catalogue import zone_of
from headrace.serving.errors import TableNotFound
from headrace.serving.service import Service
from headrace.serving.units import ServedTable, Unit


class TableSummary(msgspec.Struct, frozen=True):
    """A table or merged view in the list."""

    name: str
    kind: str
    """table or view."""
    state: str
    """`loaded` in memory, `scanned` from its files, or `listed` while it is unused."""
    version: int | None
    """The visible version; null while unused, and for views."""
    rows: int | None
    """The number of rows; null if it is unknown without counting."""
    size_bytes: int
    comment: str = ""


class TableList(msgspec.Struct, frozen=True):
    tables: list[TableSummary]


class TableDescription(TableSummary, frozen=True, kw_only=True):
    """The full description of a table or view."""

    columns: list[Column]
    keys: list[str]
    """The keys of a merged view and its layers."""
    indexes: list[str]
    """Indexed columns: a large table is indexed by the columns of frequent lookups."""
    newest_version: int | None
    """The lake's newest version, which becomes visible a moment later."""
    lineage: dict[str, Any] | None
    """The origin of the version's rows, as recorded by the pipeline."""
    batch: str | None = None
    speed: str | None = None
    failure: str | None = None
    """The error of the last refresh, if it failed."""


def table_list(service: Service) -> TableList:
    zones = set(service.settings.zones)
    found = [
        summary
        for unit in service.refresher.units()
        for summary in _summaries(service, unit)
        if zone_of(summary.name) in zones
    ]
    return TableList(sorted(found, key=lambda one: one.name))


def description(service: Service, name: str) -> TableDescription:
    """Describe a table; blocks to read its log, so call it in a thread."""
    unit = service.refresher.unit(name)
    if unit is None:
        raise TableNotFound(name, ())
    summary = next(one for one in _summaries(service, unit) if one.name == name)
    types = service.refresher.column_types(name)
    served = next((one for one in unit.tables if one.name == name), None)
    lineage = served.table.history.lineage() if served else _batch(unit).table.history.lineage()
    return TableDescription(
        **msgspec.structs.asdict(summary),
        columns=[Column(column, type) for column, type in types.items()],
        keys=list(unit.view.keys if unit.view else ()),
        indexes=list(served.indexes) if served else [],
        newest_version=served.table.version if served else None,
        lineage=_document(lineage),
        batch=unit.view.batch if unit.view and served is None else None,
        speed=unit.view.speed if unit.view and served is None else None,
        failure=unit.failure or None,
    )


def _summaries(service: Service, unit: Unit) -> list[TableSummary]:
    found = [_of_table(service, one) for one in unit.tables]
    if unit.view is not None:
        states = {one.state for one in found}
        state = next(one for one in ("listed", "scanned", "loaded") if one in states)
        size_bytes = sum(one.size_bytes for one in found)
        found.append(TableSummary(unit.view.name, "view", state, None, None, size_bytes))
    return found


def _of_table(service: Service, served: ServedTable) -> TableSummary:
    shown = served.shown
    state = "loaded" if shown.is_loaded else "listed" if shown.dataset is None else "scanned"
    entry = service.refresher.catalog.tables.get(served.name)
    generation = entry.generations.get(served.table.generation) if entry else None
    return TableSummary(
        name=served.name,
        kind="table",
        state=state,
        version=shown.version if shown.version >= 0 else None,
        rows=shown.rows if shown.rows >= 0 else None,
        size_bytes=shown.size_bytes,
        comment=generation.comment if generation else "",
    )


def _batch(unit: Unit) -> ServedTable:
    assert unit.view is not None
    return next(one for one in unit.tables if one.name == unit.view.batch)


def _document(lineage: Lineage | None) -> dict[str, Any] | None:
    return None if lineage is None else lineage.document()
