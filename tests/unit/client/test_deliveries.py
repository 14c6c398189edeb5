"""The future of a record."""

import pytest
from confluent_kafka import KafkaError, Message

from headrace.client.deliveries import Delivery, DeliveryFailed
from headrace.client.librdkafka import TimedOut
from headrace.errors import MessageTooLarge


class Owner:
    """A producer that brings an outcome after some polls."""

    def __init__(self) -> None:
        self.coming: list[tuple[Delivery, KafkaError | None, Message | None]] = []
        self.failed: list[Delivery] = []

    def poll(self, timeout_s: float = 0.0) -> int:
        if not self.coming:
            return 0
        delivery, error, message = self.coming.pop()
        delivery(error, message)
        return 1

    def note_failure(self, delivery: Delivery) -> None:
        self.failed.append(delivery)


def sent(owner: Owner, error: KafkaError | None = None) -> Delivery:
    delivery = Delivery(owner, None, "t", b"v", b"k", None, 0, None)
    message = Message(topic="t", partition=3, offset=9, timestamp=(1, 77))
    owner.coming.append((delivery, error, None if error else message))
    return delivery


def test_waiting_polls_until_the_outcome_comes() -> None:
    """PRD-11"""
    assert sent(Owner()).result(5) == ("t", 3, 9, 77)


def test_a_failure_returns_the_record() -> None:
    """PRD-12"""
    owner = Owner()
    delivery = sent(owner, KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
    with pytest.raises(DeliveryFailed) as failed:
        delivery.result(5)
    assert (failed.value.record.topic, failed.value.record.key) == ("t", b"k")
    assert isinstance(failed.value.__cause__, MessageTooLarge)
    assert owner.failed == [delivery]


def test_a_failure_is_seen_once_it_is_read() -> None:
    """PRD-12"""
    delivery = sent(Owner(), KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
    delivery.done()
    assert not delivery.is_seen
    assert delivery.exception() is not None
    assert delivery.is_seen


def test_waiting_is_bounded() -> None:
    delivery = Delivery(Owner(), None, "t", None, None, None, 0, None)
    with pytest.raises(TimedOut):
        delivery.result(0)
    assert not delivery.done()


def test_a_callback_gets_the_delivery() -> None:
    """PRD-12"""
    reported: list[Delivery] = []
    delivery = Delivery(Owner(), reported.append, "t", None, None, None, 0, None)
    delivery(None, Message(topic="t", partition=0, offset=4))
    assert reported == [delivery]
    assert reported[0].metadata.offset == 4
