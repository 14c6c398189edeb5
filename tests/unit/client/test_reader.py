"""Errors of a record reader if no broker answers."""

from collections.abc import Callable, Iterator

import pytest

from headrace.client.addresses import BrokerUnreachable
from headrace.client.reader import RecordReader


@pytest.fixture
def reader() -> Iterator[RecordReader]:
    reader = RecordReader("127.0.0.1:1", "orders", {}, timeout_s=0.1)
    yield reader
    reader.close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda reader: reader.partitions(),
        lambda reader: reader.bounds(0),
        lambda reader: reader.offset_at(0, 1_000),
    ],
    ids=["partitions", "bounds", "offset_at"],
)
def test_calls_without_a_broker_fail_with_one_line(
    ask: Callable[[RecordReader], object], reader: RecordReader
) -> None:
    with pytest.raises(BrokerUnreachable, match=r"^no broker of 127\.0\.0\.1:1 answers"):
        ask(reader)
