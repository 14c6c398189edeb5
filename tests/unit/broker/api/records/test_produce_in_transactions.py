"""Produce in a transaction while the coordinator's record is written but not committed yet."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.api.records.produce import produce
from headrace.broker.direct_call import DirectCall
from headrace.errors import NotEnoughReplicas
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode, encode
from headrace.protocol.schemas.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.storage.log import Log
from headrace.transactions.coordinator import ProducerIdAndEpoch
from tests.unit.broker.api.transactions.coordinated import NAME, TOPIC, TransactionBroker, record_of

VERSION = 12
HEADER_SIZE = 5  # A correlation id, and no tagged fields.


class Tasks:
    """The tasks that continue after the handler has returned."""

    def __init__(self) -> None:
        self.started: list[asyncio.Task[None]] = []

    def start(self, work: Any, name: str) -> None:
        self.started.append(asyncio.get_running_loop().create_task(work, name=name))


class Wire:
    """The connection as Produce uses it."""

    def __init__(self) -> None:
        self._waits = False
        self.listener = "PLAINTEXT"
        self.has_failed = False
        self.sent: list[bytes] = []

    @property
    def is_waiting(self) -> bool:
        return self._waits

    def wait(self, on_abandoned: object = None) -> None:
        self._waits = True

    def finish(self, parts: list[bytes]) -> None:
        self._waits = False
        self.sent += parts

    def fail(self) -> None:
        self.has_failed = True

    def told(self) -> PartitionProduceResponse:
        (answer,) = self.sent
        response = decode(ProduceResponse, VERSION, bytes(answer[4 + HEADER_SIZE :]))
        return response.responses[0].partition_responses[0]


def waits(wire: Wire) -> bool:
    """Return whether the connection waits; the type checker does not see that this changes."""
    return wire.is_waiting


class Held:
    """High watermarks that stay where they are until the test lets them go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._advance = Log.advance_high_watermark
        monkeypatch.setattr(Log, "advance_high_watermark", lambda log, offset: None)

    def let_go(self, broker: TransactionBroker) -> None:
        shard = broker.transactions.coordinator.shard_for(NAME)
        log = shard.partition.online_log()
        self._advance(log, log.log_end_offset)
        shard.on_committed()


def send(broker: TransactionBroker, wire: Wire, producer: ProducerIdAndEpoch, acks: int) -> None:
    data = PartitionProduceData(index=0, records=bytes(record_of(producer)))
    request = ProduceRequest(
        transactional_id=NAME,
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )
    frame = bytearray(b"eight by" + encode(request, VERSION))
    call = DirectCall(cast(Any, broker), cast(Any, wire), ApiKey.PRODUCE, VERSION, 7)
    produce(memoryview(frame), 8, call)
    frame[:] = bytes(len(frame))  # The next request arrives in the same buffer.


@pytest.fixture
async def broker(tmp_path: Path) -> TransactionBroker:
    broker = TransactionBroker(tmp_path)
    cast(Any, broker).tasks = Tasks()
    await broker.coordinate()
    return broker


def tasks(broker: TransactionBroker) -> list[asyncio.Task[None]]:
    started: list[asyncio.Task[None]] = cast(Any, broker).tasks.started
    return started


async def test_records_are_appended_when_the_coordinator_has_committed(
    broker: TransactionBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DEL-5: otherwise a crash could leave records without a coordinator."""
    producer = await broker.producer()
    held, wire = Held(monkeypatch), Wire()
    send(broker, wire, producer, acks=-1)
    await asyncio.sleep(0)
    assert waits(wire)
    assert broker.log(TOPIC, 0).log_end_offset == 0
    held.let_go(broker)
    await asyncio.gather(*tasks(broker))
    assert not waits(wire)
    assert (wire.told().error_code, wire.told().base_offset) == (0, 0)
    assert broker.log(TOPIC, 0).log_end_offset == 1


async def test_nothing_is_appended_when_the_coordinator_moves_away(
    broker: TransactionBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DEL-5: producers expect no error of a coordinator here, so they get one that they retry."""
    producer = await broker.producer()
    Held(monkeypatch)
    wire = Wire()
    send(broker, wire, producer, acks=-1)
    broker.transactions.coordinator.stop()
    await asyncio.gather(*tasks(broker))
    assert wire.told().error_code == NotEnoughReplicas.code
    assert broker.log(TOPIC, 0).log_end_offset == 0


async def test_a_connection_without_acknowledgements_is_read_again(
    broker: TransactionBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = await broker.producer()
    held, wire = Held(monkeypatch), Wire()
    send(broker, wire, producer, acks=0)
    assert waits(wire)
    held.let_go(broker)
    await asyncio.gather(*tasks(broker))
    assert not waits(wire)
    assert wire.sent == []
    assert broker.log(TOPIC, 0).log_end_offset == 1


async def test_an_internal_error_keeps_no_producer_waiting(
    broker: TransactionBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = await broker.producer()
    held, wire = Held(monkeypatch), Wire()
    send(broker, wire, producer, acks=-1)
    held.let_go(broker)
    monkeypatch.setattr(broker.clock, "now_ms", lambda: 1 // 0)
    await asyncio.gather(*tasks(broker))
    assert wire.has_failed
