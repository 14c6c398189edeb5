"""Side outputs of tasks: files of unreadable records, and notes of the ranges read."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.lake.quarantine import QUARANTINE_SCHEMA
from headrace.spark.side_output import SideOutput, Span, UnreadableRecords
from headrace.spark.side_output_files import Note, SideOutputWriter, chosen, gaps, notes_in

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
SPANS = (Span("orders", 0, 5, 9), Span("orders", 1, 0, 4))


@pytest.fixture
def side_output(tmp_path: Path) -> SideOutput:
    return SideOutput(str(tmp_path / "notes"), str(tmp_path / "table"), "staging.o", "f", "orders")


def unreadable(*offsets: int) -> UnreadableRecords:
    def column(value: Any, kind: pa.DataType) -> Any:
        return pa.array([value] * len(offsets), kind)

    return UnreadableRecords(
        topic=column("orders", pa.string()),
        partition=column(0, pa.int32()),
        offset=pa.array(offsets, pa.int64()),
        timestamp=column(NOON, pa.timestamp("us", "UTC")),
        error=column("no JSON", pa.string()),
        payload=column(b"{torn", pa.binary()),
    )


def test_records_put_aside_become_a_quarantine_file_and_a_note(side_output: SideOutput) -> None:
    aside = SideOutputWriter(side_output, SPANS)
    aside.put(unreadable(6))
    aside.put(unreadable(7, 8))
    aside.finish()
    (note,) = notes_in(Path(side_output.notes))
    assert (note.spans, sum(file.rows for file in note.files)) == (SPANS, 3)
    rows = pq.ParquetFile(Path(side_output.place) / note.files[0].path).read()
    assert rows.schema.equals(QUARANTINE_SCHEMA)
    first = rows.to_pylist()[0]
    assert (first["rule"], first["reason"], first["offset"]) == ("unreadable", "no JSON", 6)
    assert (first["payload"], first["row"]) == (
        b"{torn",
        '{"timestamp": "2026-03-01T12:00:00+00:00", "_source": "orders"}',
    )


def test_a_record_whose_time_is_beyond_python_s_years_is_put_aside_too(
    side_output: SideOutput,
) -> None:
    """ARC-4: nothing that a producer sends may stop those who read it."""
    far = pa.array([1_772_366_400_000 * 1_000_000], pa.timestamp("us", "UTC"))
    aside = SideOutputWriter(side_output)
    aside.put(replace(unreadable(6), timestamp=far))
    aside.finish()
    (note,) = notes_in(Path(side_output.notes))
    rows = pq.ParquetFile(Path(side_output.place) / note.files[0].path).read()
    assert '"timestamp": "+58134-01-21T00:00:00Z"' in rows["row"][0].as_py()


def test_a_task_that_is_tried_again_takes_the_place_of_the_first_try(
    side_output: SideOutput,
) -> None:
    for count in (1, 2):
        aside = SideOutputWriter(side_output, SPANS)
        aside.put(unreadable(*range(count)))
        aside.finish()
    (note,) = notes_in(Path(side_output.notes))
    assert sum(file.rows for file in note.files) == 2


def test_tasks_without_spans_are_identified_by_their_records(
    side_output: SideOutput,
) -> None:
    """One of them may be run again, by another job, as a part of a larger one."""
    for offsets in ((1,), (2, 3), (), (1,)):
        aside = SideOutputWriter(side_output)
        aside.put(unreadable(*offsets))
        aside.finish()
    notes = chosen(notes_in(Path(side_output.notes)), {"orders": {"0": (50, 60)}})
    assert sorted(sum(file.rows for file in note.files) for note in notes) == [1, 2]


def test_an_aborted_task_leaves_no_files(side_output: SideOutput) -> None:
    aside = SideOutputWriter(side_output, SPANS)
    aside.put(unreadable(1))
    aside.abort()
    assert list(notes_in(Path(side_output.notes))) == []
    assert list(Path(side_output.place).rglob("*.parquet")) == []


@pytest.mark.parametrize(
    ("seen", "missing"),
    [
        ([], [(0, 10)]),
        ([(0, 10)], []),
        ([(5, 10), (0, 5)], []),
        ([(0, 4)], [(4, 10)]),
        ([(2, 4), (6, 8)], [(0, 2), (4, 6), (8, 10)]),
        ([(0, 20)], []),
        ([(12, 20)], [(0, 10)]),
    ],
)
def test_unread_spans_are_found(
    seen: list[tuple[int, int]], missing: list[tuple[int, int]]
) -> None:
    notes = [Note((Span("orders", 3, first, end),)) for first, end in seen]
    found = gaps({"orders": {"3": (0, 10)}}, notes)
    assert found == [Span("orders", 3, first, end) for first, end in missing]


@pytest.mark.parametrize(
    ("seen", "taken"),
    [
        ([(10, 15), (15, 20)], [(10, 15), (15, 20)]),
        ([(10, 15), (10, 20)], [(10, 20)]),
        ([(10, 16), (14, 20)], [(10, 16)]),
        ([(5, 10), (20, 25), (12, 25)], []),
        ([(5, 20)], []),
        ([(0, 20)], [(0, 20)]),
        ([(0, 10)], []),
    ],
    ids=[
        "parts",
        "a job planned later",
        "readers at different offsets",
        "of other batches",
        "a reader that is behind",
        "a recreated topic that has grown beyond the old one",
        "the first batch",
    ],
)
def test_no_record_is_taken_from_two_notes_or_from_another_batch(
    seen: list[tuple[int, int]], taken: list[tuple[int, int]]
) -> None:
    notes = [Note((Span("orders", 3, first, end),)) for first, end in seen]
    found = chosen(notes, {"orders": {"3": (10, 20)}})
    assert [(one.first, one.end) for note in found for one in note.spans] == taken


def test_the_larger_of_two_reads_of_a_whole_topic_counts() -> None:
    notes = [Note((Span("orders", 3, 0, end),)) for end in (7, 9)]
    assert chosen(notes) == notes[1:]


def test_a_side_output_is_passed_as_an_option(side_output: SideOutput) -> None:
    assert SideOutput.from_option(side_output.to_option()) == side_output
