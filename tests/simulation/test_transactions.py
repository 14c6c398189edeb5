"""Transactions under faults: producers are replaced, send twice, dawdle; the coordinator crashes.

Real coordinators and real logs on a clock that is set by hand. Every record names its
transaction, so that the end shows whether each was read as a whole or not at all.
"""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.produce.admission import admit
from headrace.errors import KafkaError
from headrace.protocol.batches import Record, build_batch, headers, records_of
from headrace.protocol.hot_produce import ProduceView
from headrace.storage.log import Log
from headrace.storage.producer_replay import marker_of
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import ProducerIdAndEpoch
from tests.builders.seeds import seeds
from tests.unit.broker.api.transactions.coordinated import PARTITIONS, TOPIC, TransactionBroker

REPLACED_BY_AN_OLDER_CLIENT = 256  # Its end was once taken for that of its predecessor.
SEEDS = [*seeds(16), REPLACED_BY_AN_OLDER_CLIENT]
STEPS = 150
NAMES = ("a", "b", "c")
EVERYTHING = 1 << 30


class Crash(BaseException):
    """The process ends here: nothing in it may catch this and go on."""


class Client:
    """A producer as it sees itself: it may have been replaced without knowing."""

    def __init__(self, world: "World", name: str, version: int) -> None:
        self.world = world
        self.name = name
        self.version = version
        self.producer = ProducerIdAndEpoch(-1, -1)
        self.sequences: dict[int, int] = {}
        self.label = ""
        self.is_replaced = False
        self.last: memoryview | None = None
        self.last_index = 0

    async def claim(self) -> None:
        """Take the id over; the producer that had it is fenced from now on."""
        self._become(await self.world.broker.transactions.claim(self.name, 60_000, None))
        for other in self.world.clients:
            other.is_replaced |= other is not self and other.name == self.name

    async def write(self) -> None:
        """One more record, in a partition that may be new to the transaction."""
        index = self.world.dice.randrange(PARTITIONS)
        if not self.label:
            self.label = f"{self.name}-{next(self.world.numbers)}"
            self.world.records[self.label] = []
        sequence = self.sequences.get(index, 0)
        value = f"{self.label} {next(self.world.numbers)}"
        batch = build_batch(
            [Record(0, self.world.broker.clock.now_ms(), None, value.encode())],
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        self.last, self.last_index = memoryview(bytes(batch)), index
        await self._send(index, bytearray(batch))
        self.sequences[index] = sequence + 1
        self.world.records[self.label].append(value)

    async def write_again(self) -> None:
        """The network has delivered the last batch a second time, at any later moment."""
        if self.last is not None:
            await self._send(self.last_index, bytearray(self.last))

    async def _send(self, index: int, batch: bytearray) -> None:
        broker = self.world.broker
        place = {TopicPartition(TOPIC, index)}
        if self.version == 0:
            await broker.transactions.add(self.name, self.producer, place, 0)
        request = ProduceView(self.name, -1, 1000, [(TOPIC.encode(), [(index, memoryview(batch))])])
        verdict = await admit(cast(Any, broker), request, 12 if self.version == 2 else 11)
        for error in verdict.refused.values():
            raise error
        partition = broker.partitions.led(TOPIC, index)
        partition.append(memoryview(batch), broker.clock.now_ms(), verdict.transaction_version)
        assert not self.is_replaced, "a producer that was replaced has written"

    async def end(self, *, is_commit: bool) -> None:
        label, self.label = self.label, ""
        producer = await self.world.broker.transactions.end(
            self.name, self.producer, self.version, is_commit=is_commit
        )
        if label:
            self.world.outcomes[label] = is_commit
        if self.version == 2:
            self._become(producer)

    def _become(self, producer: ProducerIdAndEpoch) -> None:
        if producer != self.producer:
            self.sequences.clear()
        self.producer = producer
        self.label = ""


class World:
    """One broker, some clients, and bad luck."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.broker = TransactionBroker(directory)
        self.numbers = iter(range(EVERYTHING))
        self.clients: list[Client] = []
        self.records: dict[str, list[str]] = {}
        self.outcomes: dict[str, bool] = {}
        self._markers_until_crash: int | None = None
        markers = self.broker.transactions._markers
        self._append_marker = markers._append
        cast(Any, markers)._append = self._append_marker_or_crash

    async def run(self) -> None:
        await self.broker.coordinate()
        for _ in range(STEPS):
            try:
                await self._step()
            except Crash:
                self._markers_until_crash = None
                await self._restart()
        self._markers_until_crash = None
        await self._restart()
        for name in NAMES:
            await Client(self, name, 0).claim()  # Aborts whatever is still open.

    async def _step(self) -> None:
        luck = self.dice.random()
        if luck < 0.05 or not self.clients:
            client = Client(self, self.dice.choice(NAMES), self.dice.choice((0, 2)))
            await client.claim()
            self.clients.append(client)
        elif luck < 0.08:
            self._markers_until_crash = self.dice.randrange(PARTITIONS)
        elif luck < 0.11:
            await self._restart()
        elif luck < 0.14:
            self.broker.clock.time_ms += self.dice.choice((1000, 70_000))
            self.broker.timers._run()
        else:
            await self._act(self.dice.choice(self.clients), luck)

    async def _act(self, client: Client, luck: float) -> None:
        """A client that is refused does what is left to it: it forgets, or claims its id again."""
        try:
            if luck < 0.2:
                await client.write_again()
            elif luck < 0.75:
                await client.write()
            else:
                await client.end(is_commit=luck < 0.9)
        except KafkaError:
            client.label = ""
            client.last = None
            if not client.is_replaced and self.dice.random() < 0.7:
                await client.claim()
            else:
                self.clients.remove(client)

    async def _restart(self) -> None:
        await self.broker.lose_memory()
        for _ in range(4):
            self.broker.timers._run()
            await asyncio.sleep(0)

    def _append_marker_or_crash(self, *arguments: Any) -> Any:
        if self._markers_until_crash is not None:
            self._markers_until_crash -= 1
            if self._markers_until_crash < 0:
                raise Crash
        return self._append_marker(*arguments)

    def seen(self) -> Counter[str]:
        """Every record that a read_committed consumer gets."""
        found: Counter[str] = Counter()
        for index in range(PARTITIONS):
            found.update(committed(self.broker.log(TOPIC, index)))
        return found


def committed(log: Log) -> list[str]:
    """Return the records of a log without aborted ones, as a client reads them."""
    end_offset = log.last_stable_offset
    aborted = sorted(
        (one.first_offset, one.producer_id) for one in log.aborted_transactions(0, end_offset)
    )
    skipped: set[int] = set()
    found = []
    data = log.read(0, EVERYTHING, end_offset).read()
    for position, header in headers(data):
        while aborted and aborted[0][0] <= header.last_offset:
            skipped.add(aborted.pop(0)[1])
        if header.is_control:
            marker = marker_of(memoryview(data)[position : position + header.size])
            if marker is not None and not marker.is_commit:
                skipped.discard(header.producer_id)
        elif header.producer_id not in skipped:
            found += [(one.value or b"").decode() for one in records_of(data, position)]
    return found


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_transaction_is_seen_as_a_whole_or_not_at_all(
    tmp_path: Path, seed: int
) -> None:
    """PRD-16, DEL-4, DEL-5: whatever happens, and no producer writes after it was replaced."""
    world = World(tmp_path, seed)
    await world.run()
    for index in range(PARTITIONS):
        log = world.broker.log(TOPIC, index)
        assert log.last_stable_offset == log.log_end_offset, "a transaction hangs"
    seen = world.seen()
    assert set(seen.values()) <= {1}, "a record was written twice"
    for label, records in world.records.items():
        visible = {record for record in records if record in seen}
        assert len(visible) in (0, len(records)), f"{label} is seen in part"
        if label in world.outcomes and records:
            assert bool(visible) == world.outcomes[label], label
