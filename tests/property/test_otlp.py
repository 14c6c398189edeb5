"""Hostile metrics of clients give an error or a few series, and nothing else."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.otlp import series_in
from headrace.protocol.primitives import DecodeError
from tests.builders.otlp import gauge, histogram, metrics_data, total

GENUINE = metrics_data(
    gauge("latency.avg", 1.5, node_id="1"),
    total("requests", -7, topic="orders"),
    histogram("wait", 3, 4.5),
    client_rack="a",
)


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_rejected(data: bytes) -> None:
    with suppress(DecodeError):
        assert len(series_in(data, 3)) <= 3


@given(st.integers(0, len(GENUINE) - 1), st.integers(0, 255), st.integers(0, len(GENUINE)))
def test_damaged_bytes_are_decoded_or_rejected(place: int, value: int, end: int) -> None:
    data = bytearray(GENUINE)
    data[place] = value
    with suppress(DecodeError):
        assert len(series_in(bytes(data[:end]), 10)) <= 10
