"""Which files of a table a redrive opens to find rows of its records."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.pipelines.running.record_files import files_near, spans_over
from headrace.spark.refuge import Span
from tests.lakes import written

SCHEMA = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("id", pa.int64())]
)


def row(topic: str | None, partition: int, offset: int | None) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "offset": offset, "id": 1}


def test_a_span_of_a_partition_reaches_from_its_first_record_to_its_last() -> None:
    places = [("b", 0, 7), ("a", 1, 5), ("a", 1, 3), ("a", 0, 9)]
    assert spans_over(places) == [Span("a", 0, 9, 10), Span("a", 1, 3, 6), Span("b", 0, 7, 8)]


@pytest.mark.parametrize("by", [(), ("topic",)], ids=["plain", "parted by topic"])
def test_files_without_records_of_the_spans_are_passed_over(
    by: tuple[str, ...], tmp_path: Path
) -> None:
    """The last file has rows that name no record among others, by which it is not ruled out."""
    table = Lake(tmp_path).create("raw.o", SCHEMA, partition_by=by)
    files = [
        [row("a", 0, 0), row("a", 0, 4)],
        [row("a", 0, 5), row("a", 0, 9)],
        [row("a", 1, 5)],
        [row("b", 0, 5)],
        [row("a", 0, None), row("a", 0, 6)],
    ]
    numbers: dict[str, int] = {}
    for number, rows in enumerate(files):
        table.append(written(table, rows))
        for file in table.files():
            numbers.setdefault(file.path, number)
    bounds = table.file_bounds(table.version, ["partition", "offset"])
    found = files_near(table.files(), bounds, [Span("a", 0, 5, 7), Span("c", 7, 0, 99)])
    assert sorted(numbers[file.path] for file in found) == ([1, 4] if by else [1, 3, 4])


def test_a_table_that_does_not_name_records_is_looked_through_whole(tmp_path: Path) -> None:
    table = Lake(tmp_path).create("raw.o", pa.schema([("id", pa.int64())]))
    table.append(written(table, [{"id": 1}]))
    bounds = table.file_bounds(table.version, ["partition", "offset"])
    assert len(files_near(table.files(), bounds, [Span("a", 0, 5, 7)])) == 1
