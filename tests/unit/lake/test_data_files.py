"""Files under a table's place: partitions, sizes, and their description in a commit."""

import datetime as dt
import pickle
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.data_files import DataFile, FileWriter, label_of
from headrace.lake.errors import IncompatibleSchema, WriteFailed
from headrace.lake.partitions import (
    check_partition_columns,
    folder_of,
    partition_array,
    partition_texts,
)
from tests.builders.lakes import files_up_to

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("topic", pa.string())])
DAY = dt.date(2026, 3, 1)


def batch(*rows: tuple[int, dt.date | None, str | None]) -> Any:
    columns = list(zip(*rows, strict=True))
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def test_rows_of_each_partition_go_to_a_folder_of_their_own(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path, SCHEMA, ["day", "topic"])
    writer.write(batch((1, DAY, "a"), (2, None, "b c/d"), (3, DAY, "a"), (4, DAY, None)))
    writer.write(batch((5, DAY, "a")))
    files = {Path(file.path).parent.as_posix(): file for file in writer.close()}
    assert files.keys() == {
        "day=2026-03-01/topic=a",
        "day=__HIVE_DEFAULT_PARTITION__/topic=b c%2Fd",
        "day=2026-03-01/topic=__HIVE_DEFAULT_PARTITION__",
    }
    one = files["day=2026-03-01/topic=a"]
    assert one.partition_values == {"day": "2026-03-01", "topic": "a"}
    assert pq.read_table(tmp_path / one.path, partitioning=None).to_pydict() == {"id": [1, 3, 5]}
    assert one.rows == 3
    assert one.size_bytes == (tmp_path / one.path).stat().st_size


def test_a_file_that_is_large_enough_is_followed_by_another(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path, pa.schema([("x", pa.binary())]), file_bytes_max=1)
    for _ in range(2):
        writer.write(pa.table({"x": [bytes(17 << 20)]}))
    assert [file.rows for file in writer.close()] == [1, 1]


def test_partitions_that_come_in_any_order_have_a_file_each(tmp_path: Path) -> None:
    """A producer's times may lie anywhere in a year, and raw tables are partitioned by day."""
    writer, chance = FileWriter(tmp_path, SCHEMA, ["day"]), Random(29)
    days = [DAY + dt.timedelta(days=chance.randrange(100)) for _ in range(1000)]
    for start in range(0, 1000, 100):
        writer.write(batch(*((n, days[n], "t") for n in range(start, start + 100))))
    files = {file.partition_values["day"]: file for file in writer.close()}
    assert {day: file.rows for day, file in files.items()} == Counter(map(str, days))
    for day, file in files.items():
        found = pq.read_table(tmp_path / file.path, partitioning=None)["id"].to_pylist()
        assert found == [n for n in range(1000) if str(days[n]) == day], "in the order of arrival"


def test_more_partitions_than_open_files_lose_no_row(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path, SCHEMA, ["topic"], round_bytes=1)
    for _ in range(2):
        writer.write(batch(*((n, DAY, f"t{n}") for n in range(200))))
    files = writer.close()
    assert (sum(file.rows for file in files), len(files)) == (400, 400)


def test_an_open_file_takes_the_rows_of_its_partition_in_later_rounds(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path, SCHEMA, ["topic"], round_bytes=1)
    for start in (0, 70):
        writer.write(batch(*((start + n, DAY, f"t{n}") for n in range(70))))
    assert [file.rows for file in writer.close()] == [2] * 70


def test_an_aborted_write_leaves_no_files(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path, SCHEMA, ["topic"])
    writer.write(batch((1, DAY, "a"), (2, DAY, "b")))
    writer.abort()
    assert list(tmp_path.rglob("*.parquet")) == []


def test_an_error_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with FileWriter(tmp_path, SCHEMA) as writer:
            writer.write(batch((1, DAY, "a")))
            writer.write(pa.table({"colour": ["red"]}))

    with pytest.raises(IncompatibleSchema):
        write()
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path, pa.schema([("x", pa.binary())]))
    writer.write(pa.table({"x": [Random(7).randbytes(1_000_000)]}))
    with files_up_to(100_000), pytest.raises(WriteFailed, match="Nothing was committed"):
        writer.close()
    assert list(tmp_path.rglob("*.parquet")) == []


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path, SCHEMA)
    writer.write(SCHEMA.empty_table())
    assert writer.close() == []


def test_a_description_travels_as_json_and_pickle() -> None:
    file = DataFile("day=x/é.parquet", 12, 3, {"day": None}, '{"numRecords":3}', 7)
    assert DataFile.from_json(file.to_json()) == file
    assert pickle.loads(pickle.dumps(file)) == file


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [
        (DAY, pa.date32(), "2026-03-01"),
        (True, pa.bool_(), "true"),
        (-7, pa.int32(), "-7"),
        ("a b", pa.string(), "a b"),
        (None, pa.string(), None),
        (
            dt.datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=dt.UTC),
            pa.timestamp("us", tz="UTC"),
            "2026-03-01 12:00:00.000005",
        ),
    ],
)
def test_values_of_partitions_round_trip_through_their_text(
    value: object, of: pa.DataType, text: str | None
) -> None:
    assert partition_texts(pa.array([value], of)) == [text]
    assert partition_array(text, of, 2).to_pylist() == [value, value]


@pytest.mark.parametrize(
    ("number", "of", "text"),
    [
        (20_513_500, pa.date32(), "+58134-01-21"),
        (-719_529, pa.date32(), "-0001-12-31"),
        (20_513_500 * 86_400_000_000, pa.timestamp("us", "UTC"), "+58134-01-21 00:00:00.000000"),
    ],
)
def test_days_and_times_beyond_python_s_years_partition_as_in_spark(
    tmp_path: Path, number: int, of: pa.DataType, text: str
) -> None:
    """ARC-4: a record whose time is in the wrong unit must not stop the raw zone."""
    table = Lake(tmp_path).create(
        "refined.t", pa.schema([("at", of), ("n", pa.int64())]), partition_by=["at"]
    )
    at = pa.array([number, None, 0], pa.int64()).cast(pa.int32() if of == pa.date32() else of)
    rows = pa.table({"at": at.cast(of), "n": [1, 2, 3]})
    with table.writer() as writer:
        writer.write(rows)
        table.append(writer.close())
    (far,) = [file for file in table.files() if file.partition_values["at"] == text]
    assert far.path.startswith(f"{folder_of('at', text)}/")
    assert table.rows().sort_by("n").equals(rows)
    files = table.table_files(table.version)
    read = [batch for number in range(3) for batch in files.batches(number)]
    assert pa.Table.from_batches(read).sort_by("n").equals(rows)


def test_a_day_that_readers_of_delta_cannot_read_is_rejected(
    tmp_path: Path,
) -> None:
    schema = pa.schema([("day", pa.date32()), ("n", pa.int64())])
    far = pa.table({"day": pa.array([95_026_237], pa.int32()).cast(pa.date32()), "n": [1]})
    writer = FileWriter(tmp_path, schema, ["day"])
    writer.write(far)
    with pytest.raises(IncompatibleSchema, match=r"column day has the value \+262143-01-01"):
        writer.close()
    assert not list(tmp_path.rglob("*.parquet"))


def test_names_of_folders_are_escaped_and_stay_short() -> None:
    assert folder_of("a=b", "x/y%{1}") == "a%3Db=x%2Fy%25%7B1%7D"
    assert folder_of("city", "Köln") == "city=Köln"
    assert len(folder_of("c" * 200, "v" * 200)) < 255
    assert folder_of("c", "v" * 300) != folder_of("c", "v" * 301)


def test_rewritten_files_have_their_commits_in_their_names(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path, SCHEMA, ["topic"], versions=(3, 12))
    writer.write(batch((1, DAY, "a")))
    (file,) = writer.close()
    assert label_of(file.path) == (3, 12)
    assert label_of("topic=a/part-0123.zstd.parquet") is None


@pytest.mark.parametrize(
    ("schema", "by", "message"),
    [
        (SCHEMA, ["dya"], "no column dya"),
        (pa.schema([("x", pa.binary()), ("y", pa.int64())]), ["x"], "cannot be partitioned"),
        (pa.schema([("x", pa.int64())]), ["x"], "needs a column"),
    ],
)
def test_invalid_partition_columns_are_rejected(
    schema: pa.Schema, by: list[str], message: str
) -> None:
    with pytest.raises(IncompatibleSchema, match=message):
        check_partition_columns(schema, by)
