"""A pipeline whose records are the numbers from 0 on, so its tables follow by arithmetic."""

from tests.spark.pipeline_folders import PipelineFolder

SCHEMA = "id LONG"
TABLES = """
CREATE STREAMING TABLE raw.numbers AS
SELECT id, id div 400 * 200 + id % 200 AS pair, partition, offset FROM STREAM(sources.events);

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
"""The largest number of each residue, and the history of each residue; some events are deletes."""

REMEMBERED = """
from headrace import pipelines as dp
from pyspark.sql import functions as F


def numbers():
    at = F.timestamp_seconds(F.col("id") + 1_000)
    rows = dp.read_stream("raw.numbers").withColumn("at", at)
    return rows.withWatermark("at", "400 seconds")


@dp.table(name="refined.hundreds")
def hundreds():
    sums = [F.count("*").alias("n"), F.sum("id").alias("total")]
    windows = numbers().groupBy(F.window("at", "100 seconds")).agg(*sums)
    return windows.select((F.unix_seconds("window.start") - 1_000).alias("first"), "n", "total")


@dp.table(name="refined.followed")
def followed():
    is_followed = F.expr(
        "b.id = a.id + 250 AND b.id % 3 > 0 AND b.at BETWEEN a.at AND a.at + INTERVAL 300 SECONDS"
    )
    joined = numbers().alias("a").join(numbers().alias("b"), is_followed, "left_outer")
    return joined.select("a.id", F.col("b.id").alias("by"))


@dp.table(name="trusted.once")
def once():
    return numbers().dropDuplicatesWithinWatermark(["pair"]).select("pair")


@dp.merged_view(name="refined.pairs", merge={"n": "sum", "total": "sum"}, deduplicate_by=["pair"])
def pairs():
    rows = dp.read_stream("raw.numbers").groupBy((F.col("pair") % 2).alias("odd"))
    return rows.agg(F.count("*").alias("n"), F.sum("pair").alias("total"))
"""
"""Stateful flows. A number is also its time, in seconds after 1,000: the watermark is 0 before the
first row, and a row of that time would be late.

Numbers with a difference of 200 are a pair. Numbers with a difference of 250 meet in the join,
mostly in different batches. A number arrives less than 400 after a larger one, so no row is late.
"""


def numbers(first: int, last: int) -> list[dict[str, object]]:
    return [{"id": number} for number in range(first, last)]


def has_all(folder: PipelineFolder, count: int) -> bool:
    if "raw.numbers" not in folder.lake.names() or "refined.parity" not in folder.lake.names():
        return False
    found: int = sum(row[0] for row in folder.rows("refined.parity", "n", "odd"))
    return found >= count


def assert_exact(folder: PipelineFolder, count: int) -> None:
    """Check that the table has every number once, and the view their exact counts and sums."""
    assert folder.rows("raw.numbers", "id") == list(range(count))
    expected = [(odd, len(range(odd, count, 2)), sum(range(odd, count, 2))) for odd in (0, 1)]
    assert folder.rows("refined.parity", "odd", "n", "total") == expected


def has_all_by_key(folder: PipelineFolder, count: int) -> bool:
    """Return whether both tables have at least as many rows as this count of numbers produces."""
    if not {"trusted.newest", "trusted.past"} <= set(folder.lake.names()):
        return False
    newest, past = folder.rows("trusted.newest", "id"), folder.rows("trusted.past", "id")
    return max(newest, default=-1) >= count - 1 and len(past) >= count * 4 // 5


def assert_exact_by_key(folder: PipelineFolder, count: int) -> None:
    """Check each residue: its newest number, and a history without gaps or extra versions."""
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


def has_all_remembered(folder: PipelineFolder, count: int) -> bool:
    """Return whether each table has at least the rows that this count of numbers guarantees."""
    least = {
        ("refined.hundreds", "first"): (count - 500) // 100,
        ("refined.followed", "id"): (count - 250) // 3 * 2,
        ("trusted.once", "pair"): count // 2,
    }
    names = {"refined.pairs", *(table for table, _ in least)}
    return names <= set(folder.lake.names()) and all(
        len(folder.rows(*column)) >= rows for column, rows in least.items()
    )


def assert_exact_remembered(folder: PipelineFolder, count: int) -> None:
    """Check the windows that the watermark has passed, the joined numbers, and each pair once.

    A number without a follower is emitted when the watermark has passed its interval.
    """
    watermark = count - 1 - 400
    closed = [range(first, first + 100) for first in range(0, watermark - 99, 100)]
    assert folder.rows("refined.hundreds", "first", "n", "total") == [
        (window.start, 100, sum(window)) for window in closed
    ]
    followed = [(number, number + 250) for number in range(count - 250) if (number + 250) % 3]
    alone = [(number, None) for number in range(watermark - 300) if not (number + 250) % 3]
    assert folder.rows("refined.followed", "id", "by") == sorted([*followed, *alone])
    pairs = sorted({number // 400 * 200 + number % 200 for number in range(count)})
    assert folder.rows("trusted.once", "pair") == pairs
    assert folder.rows("refined.pairs", "odd", "n", "total") == [
        (odd, len(pairs[odd::2]), sum(pairs[odd::2])) for odd in (0, 1)
    ]
