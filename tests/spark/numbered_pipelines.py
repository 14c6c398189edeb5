"""A pipeline whose records are numbers from 0 on, so that arithmetic says what its tables hold."""

from tests.spark.pipeline_folders import PipelineFolder

SCHEMA = "id LONG"
TABLES = """
CREATE STREAMING TABLE raw.numbers AS SELECT id, partition, offset FROM STREAM(sources.events);

CREATE MERGED VIEW refined.parity MERGE (n SUM, total SUM) AS
SELECT id % 2 AS odd, count(*) AS n, sum(id) AS total FROM STREAM(raw.numbers) GROUP BY id % 2;
"""

KEPT_BY_KEY = """
CREATE STREAMING TABLE trusted.newest KEYS (residue) SEQUENCE BY id AS
SELECT id % 7 AS residue, id FROM STREAM(raw.numbers);

CREATE STREAMING TABLE trusted.past;
CREATE TEMPORARY VIEW residues AS
SELECT id % 7 AS residue, id, id % 5 = 4 AS is_gone FROM STREAM(raw.numbers);
CREATE FLOW past AS AUTO CDC INTO trusted.past FROM STREAM(residues) KEYS (residue)
APPLY AS DELETE WHEN is_gone SEQUENCE BY id COLUMNS * EXCEPT (is_gone) STORED AS SCD TYPE 2;
"""
"""The largest number of each residue, and all of them, each until the next; some are deletes."""


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


def has_all_by_key(folder: PipelineFolder, count: int) -> bool:
    """Whether as many numbers as that have come to both tables, these or others."""
    if not {"trusted.newest", "trusted.past"} <= set(folder.lake.names()):
        return False
    newest, past = folder.rows("trusted.newest", "id"), folder.rows("trusted.past", "id")
    return max(newest, default=-1) >= count - 1 and len(past) >= count * 4 // 5


def assert_exact_by_key(folder: PipelineFolder, count: int) -> None:
    """Of each residue the newest number, and its past without a gap or a version too many."""
    lines = [range(residue, count, 7) for residue in range(7)]
    versions = [
        (number, line.start, None if number + 7 >= count else number + 7)
        for line in lines
        for number in line
        if number % 5 != 4
    ]
    assert folder.rows("trusted.newest", "residue", "id") == [
        (line.start, line[-1]) for line in lines
    ]
    assert folder.rows("trusted.past", "__START_AT", "residue", "__END_AT") == sorted(versions)
    assert folder.rows("trusted.past", "id") == sorted(number for number, _, _ in versions)
