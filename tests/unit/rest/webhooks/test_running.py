"""Retries of a batch up to its time limit."""

import pytest
from confluent_kafka import Message

from headrace.rest.push.entries import Entry
from headrace.rest.webhooks.running import GivenUp, Retries
from headrace.rest.webhooks.subscription import Retry

ENTRY = Entry(Message(topic="orders", partition=3, offset=15, value=b"x"))


async def test_after_the_time_limit_a_batch_is_given_up_with_its_place_and_the_reason() -> None:
    retries = Retries(ENTRY, Retry(pause_after_ms=10))
    retries.attempts = 2
    await retries.wait("the target answered 500", 60_000)
    with pytest.raises(GivenUp, match=r"orders-3 at offset 15 .* 2 attempts .* answered 500"):
        await retries.wait("the target answered 500", 60_000)


async def test_a_batch_that_has_time_left_is_tried_again() -> None:
    retries = Retries(ENTRY, Retry())
    await retries.wait("the target answered 500", 1)
