"""Builders for tests of the lake: rows into tables in a line."""

import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from headrace.lake.commit_log import Token
from headrace.lake.data_files import DataFile
from headrace.lake.lineage import Lineage
from headrace.lake.tables import Table


def written(table: Table, rows: Sequence[Mapping[str, Any]]) -> list[DataFile]:
    """Files with these rows that no commit has listed yet."""
    with table.writer() as writer:
        writer.write(pa.Table.from_pylist(list(rows), schema=table.schema))
        return writer.close()


def appended(
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    token: Token | None = None,
    lineage: Lineage | None = None,
) -> int:
    """The version that these rows came with."""
    return table.append(written(table, rows), token, lineage)


def numbers(table: Table, *ids: int, batch: int | None = None) -> int:
    """Rows of a table with the columns `id` and `name`, in one commit."""
    token = None if batch is None else Token("writer", batch)
    return appended(table, [{"id": one, "name": f"n{one}"} for one in ids], token)


def ids_of(table: Table, version: int | None = None) -> list[int]:
    """The `id` column, sorted."""
    return sorted(table.rows(version, ["id"])["id"].to_pylist())


@contextmanager
def files_up_to(size_bytes: int) -> Iterator[None]:
    """Let no file of this process grow larger: writes fail as they do on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
