"""Metrics of clients: read as far as they are needed, and never trusted."""

import pytest

from headrace.protocol.otlp import Series, SeriesKind, series_in
from headrace.protocol.primitives import DecodeError
from tests.builders.otlp import gauge, histogram, message, metrics_data, total


def test_figures_come_with_their_names_kinds_and_attributes() -> None:
    data = metrics_data(
        gauge("latency.avg", 1.5, node_id="1"), total("requests", 7), client_rack="a"
    )
    assert series_in(data, 10) == [
        Series("latency.avg", SeriesKind.GAUGE, (("client_rack", "a"), ("node_id", "1")), 1.5),
        Series("requests", SeriesKind.COUNTER, (("client_rack", "a"),), 7.0),
    ]


def test_a_histogram_is_its_count_and_its_sum() -> None:
    found = series_in(metrics_data(histogram("wait", 3, 4.5)), 10)
    assert [(one.name, one.value) for one in found] == [("wait.count", 3.0), ("wait.sum", 4.5)]


def test_series_are_read_up_to_the_limit() -> None:
    data = metrics_data(*(gauge(f"m{number}", 1.0) for number in range(20)))
    assert [one.name for one in series_in(data, 2)] == ["m0", "m1"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x05ab",  # A message that is longer than what there is.
        b"\xff" * 11,  # A number without an end.
        b"\x0b",  # A group, which is long gone.
        metrics_data(message(1, b"m") + message(5, message(1, b"\x21\x00"))),
    ],
)
def test_nonsense_is_an_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        series_in(data, 10)


def test_a_message_of_endless_fields_is_an_error() -> None:
    with pytest.raises(DecodeError, match="more than 100000 fields"):
        series_in(message(1, b"\x18\x01" * 100_001), 10)
