"""When a segment has had its time."""

import pytest

from headrace.storage.config import LogConfig
from headrace.storage.rolling import RollClock
from tests.builders.logs import NOW

HOUR = 3_600_000
CONFIG = LogConfig(segment_ms=HOUR)


def started(first_timestamp: int, config: LogConfig = CONFIG) -> RollClock:
    clock = RollClock()
    clock.start(first_timestamp, NOW, config)
    return clock


def test_a_segment_counts_from_its_first_timestamp() -> None:
    """LOG-5: not from when it was written."""
    clock = started(NOW - HOUR)
    assert not clock.is_over(NOW, NOW + 10 * HOUR, CONFIG)
    assert clock.is_over(NOW + 1, NOW, CONFIG)


def test_records_without_a_time_count_by_the_clock() -> None:
    clock = started(-1)
    assert not clock.is_over(-1, NOW + HOUR, CONFIG)
    assert clock.is_over(-1, NOW + HOUR + 1, CONFIG)


def test_an_empty_segment_has_all_the_time() -> None:
    clock = started(NOW)
    clock.stop()
    assert not clock.is_over(NOW + 1000 * HOUR, NOW, CONFIG)


def test_a_changed_config_counts_for_the_segment_at_hand() -> None:
    clock = started(NOW)
    clock.move(-HOUR // 2)
    assert clock.is_over(NOW + HOUR // 2 + 1, NOW, CONFIG)


@pytest.mark.parametrize("first_timestamp", [NOW, -1])
def test_a_changed_config_does_not_start_the_roll_clock(first_timestamp: int) -> None:
    clock = RollClock() if first_timestamp == NOW else started(-1)
    before = clock.deadline
    clock.move(-HOUR)
    assert clock.deadline == before


def test_jitter_only_shortens() -> None:
    config = LogConfig(segment_ms=HOUR, segment_jitter_ms=HOUR // 2)
    for _ in range(50):
        assert NOW + HOUR // 2 < started(NOW, config).deadline <= NOW + HOUR
