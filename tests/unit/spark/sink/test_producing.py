"""The one of several failures that a producer reports."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from headrace.errors import HeadraceError
from headrace.spark.sink.errors import SinkError
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.producing import SinkProducer


class Message:
    """A record of one topic, as a delivery report has it."""

    def topic(self) -> str:
        return "orders"


class Outcomes:
    """Takes librdkafka's place: each poll reports the next record."""

    def __init__(self, tell: Callable[[KafkaError, Any], None], *codes: int) -> None:
        self._tell = tell
        self._codes = list(codes)

    def __len__(self) -> int:
        return len(self._codes)

    def poll(self, timeout_s: float) -> None:
        if self._codes:
            self._tell(KafkaError(self._codes.pop(0)), Message())


def producer_with(*codes: int) -> SinkProducer:
    """A producer whose records have these outcomes."""
    made = SinkProducer(SinkOptions({"bootstrap.servers": "127.0.0.1:1"}, "orders"))
    made._producer = cast(Any, Outcomes(made._on_delivery, *codes))
    return made


def test_the_cause_is_reported_instead_of_purged_records() -> None:
    """Also if librdkafka reports a purged record first."""
    with pytest.raises(SinkError, match=r"max\.message\.bytes"):
        producer_with(KafkaError._PURGE_QUEUE, KafkaError.MSG_SIZE_TOO_LARGE).flush()


def test_purged_records_are_reported_without_another_cause() -> None:
    with pytest.raises(HeadraceError, match="PURGE_QUEUE"):
        producer_with(KafkaError._PURGE_QUEUE, KafkaError._PURGE_QUEUE).flush()
