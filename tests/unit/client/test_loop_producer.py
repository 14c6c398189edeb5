"""Outcomes of records, without a broker."""

import asyncio

import pytest
from confluent_kafka import KafkaError, Message

from headrace.client.librdkafka import TimedOut
from headrace.client.loop_producer import BufferFull, Group, OutgoingRecord, RecordSender, Sent
from headrace.errors import InvalidTopicException


def sender(timeout_s: float = 0.3, buffer_bytes_max: int = 1000) -> RecordSender:
    """Where it is to send to, nobody listens."""
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
    group = Group(2, done)
    first, second = Sent(group), Sent(group)
    second(None, Message(topic="t", partition=3, offset=8, value=b""))
    assert not done.done()
    first(KafkaError(KafkaError._MSG_TIMED_OUT), None)
    assert done.done()
    assert isinstance(first.failure, TimedOut)
    assert (second.failure, second.place) == (None, (3, 8))


async def test_nobody_knows_the_offset_without_acknowledgement() -> None:
    sent = Sent(Group(2, asyncio.get_running_loop().create_future()))
    sent(None, Message(topic="t", partition=0, offset=-1001, value=b""))
    assert sent.place == (0, -1)


async def test_records_that_no_broker_takes_fail_in_time() -> None:
    records = [OutgoingRecord(b"a"), OutgoingRecord(b"b", headers=[("h", b"x")])]
    outcomes = await sender().send("t", records)
    assert [type(one.failure) for one in outcomes] == [TimedOut, TimedOut]


async def test_what_waits_is_bounded() -> None:
    found = sender(timeout_s=0.2)
    first = asyncio.create_task(found.send("t", [OutgoingRecord(b"x" * 900)]))
    await asyncio.sleep(0)
    with pytest.raises(BufferFull, match="acknowledgement"):
        await found.send("t", [OutgoingRecord(b"x" * 900)])
    await first


@pytest.mark.parametrize("topic", ["", "a b", "..", "\0", "x" * 250])
async def test_what_is_no_name_of_a_topic_is_not_asked_for(topic: str) -> None:
    with pytest.raises(InvalidTopicException, match="no name of a topic"):
        await sender().partitions_of(topic)


async def test_a_producer_that_is_over_is_replaced_and_nobody_waits_for_it() -> None:
    found = sender(timeout_s=30)
    waiting = asyncio.create_task(found.send("t", [OutgoingRecord(b"a")]))
    await asyncio.sleep(0)
    over = found._producer
    found._renew()
    (outcome,) = await waiting
    assert outcome.failure is not None
    assert found._producer is not over


async def test_closing_tells_what_is_still_on_its_way() -> None:
    found = sender(timeout_s=0.2)
    waiting = asyncio.create_task(found.send("t", [OutgoingRecord(b"a")]))
    await asyncio.sleep(0)
    await found.close()
    (outcome,) = await waiting
    assert outcome.failure is not None
