"""Names of captured files and folders."""

from pathlib import PurePosixPath

import pytest

from headrace.capture.places import (
    complete_name,
    empty_name,
    folder_of,
    hour_of,
    next_offset,
    temporary_name,
)

NINE_OCLOCK_MS = 1_794_906_000_000


def test_a_folder_names_topic_partition_date_and_hour() -> None:
    folder = folder_of("orders", 3, hour_of(NINE_OCLOCK_MS + 59 * 60_000))
    assert folder == PurePosixPath("orders/3/2026-11-17/09")


@pytest.mark.parametrize(
    ("timestamp_ms", "date"), [(-1, "1970-01-01"), (1 << 62, "9999-12-31"), (0, "1970-01-01")]
)
def test_a_time_that_no_calendar_has_is_the_nearest(timestamp_ms: int, date: str) -> None:
    assert folder_of("t", 0, hour_of(timestamp_ms)).parts[2] == date


def test_the_next_offset_follows_from_the_names_of_complete_files() -> None:
    names = [
        complete_name(0, 11, "avro"),
        complete_name(12, 99, "parquet"),
        temporary_name(100, "avro"),
        empty_name(500, NINE_OCLOCK_MS, "avro"),
        "notes.txt",
    ]
    assert next_offset(names) == 100


def test_there_is_no_next_offset_without_complete_files() -> None:
    assert next_offset([temporary_name(0, "avro"), empty_name(7, 0, "avro")]) is None


def test_names_sort_as_their_offsets_do() -> None:
    names = [complete_name(first, first, "avro") for first in (9, 10, 11_000_000_000)]
    assert names == sorted(names)
