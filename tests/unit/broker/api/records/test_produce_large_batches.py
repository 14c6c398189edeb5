"""Produce of batches that are fitted in a thread: the connection waits, and not for ever."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.api.records.produce import produce
from headrace.broker.direct_call import DirectCall
from headrace.broker.produce.heavy import HeavyValidation
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import encode
from headrace.protocol.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.storage.config import LogConfig
from tests.builders.logs import batch_of
from tests.unit.broker.api.builders import UnitBroker, a_broker, a_topic

VERSION = 9
TOPIC = "compacted"
LARGE = bytes(batch_of(b"v" * 70_000))


class Wire:
    """The connection as Produce uses it."""

    def __init__(self) -> None:
        self.is_waiting = False
        self.has_failed = False
        self.sent: list[bytes] = []

    def wait(self, on_abandoned: object = None) -> None:
        self.is_waiting = True

    def finish(self, parts: list[bytes]) -> None:
        self.is_waiting = False
        self.sent += parts

    def fail(self) -> None:
        self.has_failed = True


async def broken(*_: object) -> Any:
    raise ZeroDivisionError


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    broker = a_broker(tmp_path)
    broker._host(a_topic(TOPIC))
    compacted = LogConfig(cleanup_policy=frozenset(("compact",)))
    broker.log(TOPIC, 0).reconfigure(compacted)
    cast(Any, broker).heavy_validation = HeavyValidation(broker.background)
    return broker


def send(broker: UnitBroker, wire: Wire) -> None:
    data = PartitionProduceData(index=0, records=LARGE)
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    frame = bytearray(b"eight by" + encode(request, VERSION))
    call = DirectCall(cast(Any, broker), cast(Any, wire), ApiKey.PRODUCE, VERSION, 7)
    produce(memoryview(frame), 8, call)
    frame[:] = bytes(len(frame))  # The next request arrives in the same buffer.


async def test_a_large_batch_is_appended_after_its_validation(broker: UnitBroker) -> None:
    wire = Wire()
    send(broker, wire)
    assert wire.is_waiting
    assert broker.log(TOPIC, 0).log_end_offset == 0
    await all_done()
    assert len(wire.sent) == 1
    assert broker.log(TOPIC, 0).log_end_offset == 1


async def test_an_internal_error_keeps_no_producer_waiting(broker: UnitBroker) -> None:
    cast(Any, broker).heavy_validation = HeavyValidation(broken)
    wire = Wire()
    send(broker, wire)
    await all_done()
    assert wire.has_failed


async def all_done() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
