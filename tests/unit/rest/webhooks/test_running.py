"""How long a batch that nobody takes is tried."""

import pytest
from confluent_kafka import Message

from headrace.rest.push.entries import Entry
from headrace.rest.webhooks.running import GivenUp, Patience
from headrace.rest.webhooks.subscription import Retry

ENTRY = Entry(Message(topic="orders", partition=3, offset=15, value=b"x"))


async def test_a_batch_whose_time_is_over_is_given_up_with_its_place_and_the_reason() -> None:
    patience = Patience(ENTRY, Retry(pause_after_ms=10))
    patience.attempts = 2
    await patience.wait("the target answered 500", 60_000)
    with pytest.raises(GivenUp, match=r"orders-3 at offset 15 .* 2 attempts .* answered 500"):
        await patience.wait("the target answered 500", 60_000)


async def test_a_batch_that_has_time_left_is_tried_again() -> None:
    patience = Patience(ENTRY, Retry())
    await patience.wait("the target answered 500", 1)
