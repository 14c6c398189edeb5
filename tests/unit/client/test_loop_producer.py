"""Outcomes of records, without a broker."""

import asyncio

import pytest
from confluent_kafka import KafkaError, Message

from headrace.client.librdkafka import TimedOut
from headrace.client.loop_producer import (
    BufferFull,
    OutgoingRecord,
    RecordSender,
    RequestOutcomes,
    Sent,
)
from headrace.errors import InvalidTopicException


def sender(timeout_s: float = 0.3, buffer_bytes_max: int = 1000) -> RecordSender:
    """A producer whose address has no listener."""
    return RecordSender(
        {"bootstrap.servers": "127.0.0.1:1"},
        timeout_s=timeout_s,
        buffer_bytes_max=buffer_bytes_max,
        name_topic=not_named,
    )


async def not_named(topic: str) -> None:
    raise AssertionError(f"{topic} is not to be created")


async def test_a_request_waits_for_the_last_of_its_records() -> None:
    done = asyncio.get_running_loop().create_future()
    group = RequestOutcomes(2, done)
    first, second = Sent(group), Sent(group)
    second(None, Message(topic="t", partition=3, offset=8, value=b""))
    assert not done.done()
    first(KafkaError(KafkaError._MSG_TIMED_OUT), None)
    assert done.done()
    assert isinstance(first.failure, TimedOut)
    assert (second.failure, second.place) == (None, (3, 8))


async def test_the_offset_is_unknown_without_acknowledgement() -> None:
    sent = Sent(RequestOutcomes(2, asyncio.get_running_loop().create_future()))
    sent(None, Message(topic="t", partition=0, offset=-1001, value=b""))
    assert sent.place == (0, -1)


async def test_records_that_no_broker_takes_fail_in_time() -> None:
    records = [OutgoingRecord(b"a"), OutgoingRecord(b"b", headers=[("h", b"x")])]
    outcomes = await sender().send("t", records)
    assert [type(one.failure) for one in outcomes] == [TimedOut, TimedOut]


async def test_waiting_records_are_bounded() -> None:
    found = sender(timeout_s=0.2)
    first = asyncio.create_task(found.send("t", [OutgoingRecord(b"x" * 900)]))
    await asyncio.sleep(0)
    with pytest.raises(BufferFull, match="acknowledgement"):
        await found.send("t", [OutgoingRecord(b"x" * 900)])
    await first


@pytest.mark.parametrize("topic", ["", "a b", "..", "\0", "x" * 250])
async def test_an_invalid_topic_name_is_rejected_without_a_request(topic: str) -> None:
    with pytest.raises(InvalidTopicException, match="is not a topic name"):
        await sender().partitions_of(topic)


async def test_a_failed_producer_is_replaced_without_a_wait() -> None:
    found = sender(timeout_s=30)
    waiting = asyncio.create_task(found.send("t", [OutgoingRecord(b"a")]))
    await asyncio.sleep(0)
    over = found._producer
    found._renew()
    (outcome,) = await waiting
    assert outcome.failure is not None
    assert found._producer is not over


async def test_closing_fails_unacknowledged_records() -> None:
    found = sender(timeout_s=0.2)
    waiting = asyncio.create_task(found.send("t", [OutgoingRecord(b"a")]))
    await asyncio.sleep(0)
    await found.close()
    (outcome,) = await waiting
    assert outcome.failure is not None
