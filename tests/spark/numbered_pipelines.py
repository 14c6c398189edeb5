"""A pipeline whose records are numbers from 0 on, so that arithmetic says what its tables hold."""

from tests.spark.pipeline_folders import PipelineFolder

SCHEMA = "id LONG"
TABLES = """
CREATE STREAMING TABLE raw.numbers AS SELECT id, partition, offset FROM STREAM(sources.events);

CREATE MERGED VIEW refined.parity MERGE (n SUM, total SUM) AS
SELECT id % 2 AS odd, count(*) AS n, sum(id) AS total FROM STREAM(raw.numbers) GROUP BY id % 2;
"""


def numbers(first: int, last: int) -> list[dict[str, object]]:
    return [{"id": number} for number in range(first, last)]


def has_all(folder: PipelineFolder, count: int) -> bool:
    if "raw.numbers" not in folder.lake.names() or "refined.parity" not in folder.lake.names():
        return False
    found: int = sum(row[0] for row in folder.rows("refined.parity", "n", "odd"))
    return found >= count


def assert_exact(folder: PipelineFolder, count: int) -> None:
    """Every number once in the table, and in the view as much of them as arithmetic says."""
    assert folder.rows("raw.numbers", "id") == list(range(count))
    expected = [(odd, len(range(odd, count, 2)), sum(range(odd, count, 2))) for odd in (0, 1)]
    assert folder.rows("refined.parity", "odd", "n", "total") == expected
