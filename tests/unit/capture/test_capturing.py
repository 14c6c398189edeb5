"""Which records of a log go on behind those that were captured, and which are of another one."""

from pathlib import Path

import pytest

from headrace.capture.capturing import Capture, Captured, LogTruncated
from headrace.capture.windows import Limits
from tests.builders.captures import Runs, record


def capture_of(reader: Runs, directory: Path, done: list[Captured]) -> Capture:
    return Capture(
        reader,  # type: ignore[arg-type]  # All of a reader that a capture uses.
        directory,
        "avro",
        Limits(3_600_000, 1_000_000),
        report=lambda _: None,
        done=done.append,
    )


def run(capture: Capture) -> None:
    capture.run(once=True, is_stopped=lambda: False)


@pytest.mark.parametrize("jump", [3, 9])
def test_offsets_that_go_back_within_one_read_are_those_of_a_log_that_was_cut(
    tmp_path: Path, jump: int
) -> None:
    """CLD-1: earlier records are whole and kept; no file's end is before its first record."""
    done: list[Captured] = []
    reader = Runs([[*map(record, range(10)), *map(record, range(jump, 20))]])
    with pytest.raises(LogTruncated, match=f"up to offset 9 but ends at {jump}"):
        run(capture_of(reader, tmp_path, done))
    assert [(one.records, one.next_offset) for one in done] == [(10, 10)]


def test_gaps_of_compaction_are_no_jumps(tmp_path: Path) -> None:
    done: list[Captured] = []
    run(capture_of(Runs([[record(0), record(5)], [record(9)]]), tmp_path, done))
    assert [(one.records, one.next_offset) for one in done] == [(3, 10)]


def test_an_open_transaction_before_the_captured_offset_is_no_truncation(tmp_path: Path) -> None:
    """As after a capture by read_uncommitted: what is committed may end before it."""
    capture = capture_of(Runs([], committed=10, committed_end=6, end=16), tmp_path, [])
    run(capture)
    assert capture.files_completed == 0


def test_a_log_that_ends_before_the_captured_offset_is_rejected(tmp_path: Path) -> None:
    reader = Runs([], committed=10, committed_end=6, end=8)
    with pytest.raises(LogTruncated, match="ends at 8"):
        run(capture_of(reader, tmp_path, []))
