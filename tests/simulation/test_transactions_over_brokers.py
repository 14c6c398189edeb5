"""Transactions over three brokers while leaders move and channels are cut.

Real coordinators, logs and requests between the brokers, on a loop whose time jumps. Followers copy
the logs of their leaders at random moments, so that a new leader may lack the newest records; it
never lacks committed ones. Every record names its transaction, so that the end shows whether each
was read as a whole or not at all.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from headrace.broker.commit_waits import committed as commit_of
from headrace.broker.produce.admission import admit
from headrace.broker.topics.internal_topics import TRANSACTION_STATE
from headrace.errors import KafkaError
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.hot_produce import ProduceView
from headrace.storage.appending import append_as_is
from headrace.transactions.coordinator import ProducerIdAndEpoch
from tests.builders.jumping_loops import JumpingLoop, run_jumping
from tests.builders.seeds import seeds
from tests.simulation.test_transactions import committed
from tests.unit.broker.api.builders import a_topic
from tests.unit.broker.api.networks import Cluster, NetworkBroker

T = TypeVar("T")

BROKERS = (1, 2, 3)
TOPIC, PARTITIONS = "orders", 3
PLACES = [(TRANSACTION_STATE, 0), *((TOPIC, index) for index in range(PARTITIONS))]
REPLICATED: dict[str, Any] = {"replicas": BROKERS, "isr": BROKERS, "leader": 1, "directories": ()}
STORM_S, CALM_S = 60.0, 90.0
PATIENCE_S = 5.0
EVERYTHING = 1 << 30


class Client:
    """A producer that runs one transaction after the other."""

    def __init__(self, world: "World", name: str, seed: int) -> None:
        self.world = world
        self.name = name
        self.dice = random.Random(seed)
        self.producer: ProducerIdAndEpoch | None = None

    async def run(self) -> None:
        while not self.world.is_calm:
            await asyncio.sleep(self.dice.random())
            label = f"{self.name}-{next(self.world.numbers)}"
            self.world.records[label] = []
            try:
                await self._transaction(label)
            except (KafkaError, TimeoutError):
                self.producer = None  # It starts again, and claims its id.

    async def _transaction(self, label: str) -> None:
        if self.producer is None:
            self.producer = await self._patiently(
                self._coordinator.transactions.claim(self.name, 60_000, None)
            )
        producer, world = self.producer, self.world
        for index in self.dice.sample(range(PARTITIONS), self.dice.randint(1, PARTITIONS)):
            await self._patiently(self._write(producer, label, index))
        is_commit = self.dice.random() < 0.7
        world.outcomes[label] = None  # Unknown until the answer.
        self.producer = await self._end(producer, is_commit=is_commit)
        world.outcomes[label] = is_commit

    async def _write(self, producer: ProducerIdAndEpoch, label: str, index: int) -> None:
        """A record as Produce appends it: admitted, written, and replicated."""
        broker = self.world.leader_of(TOPIC, index)
        value = f"{label} {next(self.world.numbers)}"
        batch = build_batch(
            [Record(0, broker.clock.now_ms(), None, value.encode())],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )
        self.world.records[label].append(value)
        sets: list[tuple[int, memoryview | None]] = [(index, memoryview(batch))]
        request = ProduceView(self.name, -1, 1000, [(TOPIC.encode(), sets)])
        verdict = await admit(cast(Any, broker), request, 12)
        for error in verdict.refused.values():
            raise error
        partition = broker.partitions.led(TOPIC, index)
        info = partition.append(
            memoryview(batch), broker.clock.now_ms(), verdict.transaction_version
        )
        await commit_of(partition, info.last_offset + 1, PATIENCE_S)

    async def _end(self, producer: ProducerIdAndEpoch, *, is_commit: bool) -> ProducerIdAndEpoch:
        """Send EndTxn until it is answered; its result must not change by a retry."""
        for _ in range(20):
            try:
                ending = self._coordinator.transactions.end(
                    self.name, producer, 2, is_commit=is_commit
                )
                return await self._patiently(ending)
            except (KafkaError, TimeoutError) as error:
                if isinstance(error, KafkaError) and not error.retriable:
                    raise
                await asyncio.sleep(0.2)
        raise TimeoutError

    @property
    def _coordinator(self) -> NetworkBroker:
        return self.world.leader_of(TRANSACTION_STATE, 0)

    async def _patiently(self, work: Awaitable[T]) -> T:
        return await asyncio.wait_for(work, PATIENCE_S)


class World:
    """Three brokers, some clients, and bad luck."""

    def __init__(self, directory: Path, seed: int, loop: JumpingLoop) -> None:
        self.dice = random.Random(seed)
        self.numbers = iter(range(EVERYTHING))
        self.records: dict[str, list[str]] = {}
        self.outcomes: dict[str, bool | None] = {}
        self.is_calm = False
        self.cluster = Cluster(
            directory,
            a_topic(TRANSACTION_STATE, **REPLICATED),
            a_topic(TOPIC, PARTITIONS, **REPLICATED),
            brokers=len(BROKERS),
        )
        loop.on_jump(self._set_clocks)

    def leader_of(self, topic: str, index: int) -> NetworkBroker:
        partition = self.cluster.published.image.topics[topic].partitions[index]
        return self.cluster[partition.leader]

    async def run(self) -> None:
        clients = [Client(self, name, self.dice.randrange(1 << 30)) for name in "abc"]
        running = [asyncio.ensure_future(one.run()) for one in clients]
        following = asyncio.ensure_future(self._follow())
        loop = asyncio.get_running_loop()
        storm_ends = loop.time() + STORM_S
        while loop.time() < storm_ends:
            await asyncio.sleep(self.dice.random() * 2)
            self._strike()
        self.cluster.network.away.clear()
        self.is_calm = True
        await asyncio.gather(*running)
        for client in clients:
            await self._claim(client)
        await asyncio.sleep(CALM_S)
        following.cancel()

    async def _claim(self, client: Client) -> None:
        """Abort whatever is open; the last transaction may still be ending."""
        for _ in range(100):
            try:
                await client._coordinator.transactions.claim(client.name, 60_000, None)
            except KafkaError:
                await asyncio.sleep(0.5)
            else:
                return
        raise AssertionError(f"{client.name} stays busy")

    def _strike(self) -> None:
        luck = self.dice.random()
        if luck < 0.4:
            self._move(*self.dice.choice(PLACES))
        elif luck < 0.5:
            self._move(TRANSACTION_STATE, 0)
        elif luck < 0.7:
            self.cluster.network.away = {self.dice.choice(BROKERS)}
        else:
            self.cluster.network.away.clear()

    def _move(self, topic: str, index: int) -> None:
        """Let another in-sync replica lead; the others drop what was not committed."""
        old = self.leader_of(topic, index)
        committed_to = old.log(topic, index).high_watermark
        leader = self.dice.choice(BROKERS)
        self.cluster.move(topic, leader, index)
        for number in BROKERS:
            if number != leader:
                log = self.cluster[number].partitions.hosted(topic, index).online_log()
                log.truncate_to(committed_to)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self.dice.random() * 0.02)
            for topic, index in PLACES:
                for number in BROKERS:
                    if self.is_calm or self.dice.random() < 0.6:
                        self._fetch(topic, index, number)

    def _fetch(self, topic: str, index: int, number: int) -> None:
        """Copy the leader's new records to one follower, and acknowledge them."""
        leader = self.leader_of(topic, index)
        if leader.node_id == number:
            return
        partition = leader.partitions.led(topic, index)
        source = partition.online_log()
        copy = self.cluster[number].partitions.hosted(topic, index).online_log()
        if copy.log_end_offset < source.log_end_offset:
            data = source.read(copy.log_end_offset, 1 << 20, source.log_end_offset).read()
            append_as_is(copy, memoryview(bytearray(data)))
        partition.acknowledge(number, copy.log_end_offset, leader.clock.monotonic_ms())
        copy.advance_high_watermark(min(source.high_watermark, copy.log_end_offset))

    def _set_clocks(self, now_s: float) -> None:
        for broker in self.cluster.network.brokers.values():
            broker.clock.time_ms = 1_700_000_000_000 + int(now_s * 1000)


async def simulate(directory: Path, seed: int, loop: JumpingLoop) -> World:
    world = World(directory, seed, loop)
    try:
        await world.run()
    finally:
        for number in BROKERS:
            broker = world.cluster[number]
            for coordinator in broker.coordinators:
                coordinator.stop()
            await broker.tasks.stop()
    return world


@pytest.mark.parametrize("seed", seeds(8))
def test_every_transaction_is_seen_as_a_whole_or_not_at_all(tmp_path: Path, seed: int) -> None:
    """PRD-16, DEL-4, DEL-5: over failovers of coordinators and partitions."""
    world = run_jumping(lambda loop: simulate(tmp_path, seed, loop))
    seen: Counter[str] = Counter()
    for index in range(PARTITIONS):
        log = world.leader_of(TOPIC, index).log(TOPIC, index)
        assert log.last_stable_offset == log.log_end_offset, f"{TOPIC}-{index} hangs"
        seen.update(committed(log))
    assert set(seen.values()) <= {1}, "a record was written twice"
    for label, records in world.records.items():
        outcome = world.outcomes.get(label, False)
        visible = {record for record in records if record in seen}
        assert len(visible) in (0, len(records)), f"{label} is seen in part"
        if outcome is not None and records:
            assert bool(visible) == outcome, label
    decided = Counter(world.outcomes.values())
    assert decided[True] > 5, f"too few transactions were committed: {decided}"
