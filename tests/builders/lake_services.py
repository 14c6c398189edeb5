"""A lake with a service over it in this process, for tests of serving."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.lineage import Lineage
from headrace.lake.tables import Table
from headrace.serving.answers import Answer
from headrace.serving.lookups import Lookup
from headrace.serving.queries import Query
from headrace.serving.service import Service
from headrace.serving.settings import ServingSettings
from headrace.serving.workers import Running

ORDERS = pa.schema([("id", pa.int64()), ("item", pa.string())])
COUNTS = pa.schema([("key", pa.string()), ("n", pa.int64())])
SPEED = COUNTS.append(pa.field("_commit_version", pa.int64()))
INPUT = "trusted.events"


class ServedLake:
    """Write to tables of the lake, look for new versions, ask."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.lake = Lake(root)
        self.settings = ServingSettings(lake=root, threads=2, **settings)
        self.service = Service(self.settings)

    def table(self, name: str = "refined.orders", schema: pa.Schema = ORDERS) -> Table:
        return self.lake.create(name, schema)

    def orders(self, *ids: int, name: str = "refined.orders") -> Table:
        """A table with a row for each of these ids."""
        table = self.table(name)
        append(table, orders(*ids))
        return table

    def merged_view(self, merge: Mapping[str, str] | None = None) -> tuple[Table, Table]:
        """The view `refined.counts`, and its batch and speed tables."""
        batch = self.table("refined.counts__batch", COUNTS)
        speed = self.table("refined.counts__speed", SPEED)
        view = MergedViewEntry(
            "refined.counts", ("key",), merge or {"n": "sum"}, batch.name, speed.name
        )
        self.lake.put_view(view.name, view)
        return batch, speed

    def refresh(self) -> None:
        self.service.refresher.round()

    def ask(self, sql: str, parameters: Any = None, rows_max: int = 10_000) -> Answer:
        question = Query(sql, parameters, rows_max)
        return self.service.queries.answer(question, Running(60))

    def rows(self, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        return as_tuples(self.ask(sql, parameters))

    def look_up(self, table: str, rows_max: int = 10_000, **conditions: str) -> Answer:
        values = {name: [value] for name, value in conditions.items()}
        question = Lookup(table, values, rows_max)
        return self.service.queries.look_up(question, Running(60))

    def state(self, name: str = "refined.orders") -> str:
        from headrace.serving.descriptions import table_list

        return next(one.state for one in table_list(self.service).tables if one.name == name)

    def close(self) -> None:
        self.service.close()


def orders(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "item": [f"item-{one}" for one in ids]}, schema=ORDERS)


def append(table: Table, rows: pa.Table, lineage: Lineage | None = None) -> int:
    return table.append(_written(table, rows), None, lineage)


def replace(table: Table, rows: pa.Table, lineage: Lineage | None = None) -> int:
    return table.replace(_written(table, rows), None, lineage)


def covering(version: int) -> Lineage:
    """The lineage of a batch run over the input up to a version."""
    return Lineage(inputs={INPUT: (-1, version)})


def counts(rows: Mapping[str, int]) -> pa.Table:
    return pa.table({"key": list(rows), "n": list(rows.values())}, schema=COUNTS)


def speed_rows(rows: Sequence[tuple[str, int, int]]) -> pa.Table:
    """Rows of the speed layer: key, count, version of the input."""
    columns = {name: [row[index] for row in rows] for index, name in enumerate(SPEED.names)}
    return pa.table(columns, schema=SPEED)


def as_tuples(answer: Answer) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in answer.rows.to_pylist()]


def _written(table: Table, rows: pa.Table) -> Any:
    writer = table.writer()
    for batch in rows.to_batches():
        writer.write(batch)
    return writer.close()
