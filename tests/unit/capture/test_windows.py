"""When a file is complete, and where a capture goes on."""

import pytest

from headrace.capture.windows import Limits, Window, fitting, resume_at

HOUR = 3_600_000
LIMITS = Limits(window_ms=60_000, size_bytes_max=100)


@pytest.mark.parametrize(
    ("now_ms", "is_over"),
    [(1_000_000, False), (1_059_999, False), (1_060_000, True), (990_000, False), (0, True)],
)
def test_a_window_is_over_when_its_time_is_up_or_the_clock_was_set_back(
    now_ms: int, is_over: bool
) -> None:
    assert Window(0, 1_000_000, 0).is_over(now_ms, LIMITS) == is_over


def test_all_records_of_an_hour_fit_into_one_file() -> None:
    assert fitting([(5, 10), (6, 10), (HOUR - 1, 10)], 0, None, 100) == 3


def test_a_record_of_a_later_hour_begins_another_file() -> None:
    stamps = [(5, 10), (HOUR, 10), (7, 10)]
    assert fitting(stamps, 0, None, 100) == 1
    assert fitting(stamps, 1, 0, 100) == 0
    assert fitting(stamps, 1, None, 100) == 2


def test_a_late_record_stays_with_the_others() -> None:
    assert fitting([(5 * HOUR, 10), (2 * HOUR, 10)], 0, 5, 100) == 2


def test_only_records_for_which_there_is_room_are_let_in() -> None:
    stamps = [(0, 60), (0, 60), (0, 60)]
    assert fitting(stamps, 0, None, 130) == 2
    assert fitting(stamps, 2, 0, 10) == 0


def test_one_record_larger_than_a_file_fits() -> None:
    assert fitting([(0, 500), (0, 1)], 0, None, 100) == 1


@pytest.mark.parametrize(
    ("by_files", "by_group", "expected"),
    [
        (None, None, None),
        (10, None, 10),
        (10, 5, 10),  # A crash came between the file and the commit.
        (10, 20, 20),  # The newest files were moved away.
        (None, 7, 7),
        (None, -1001, None),
    ],
)
def test_a_capture_resumes_at_the_later_offset_of_files_and_group(
    by_files: int | None, by_group: int | None, expected: int | None
) -> None:
    assert resume_at(by_files, by_group) == expected
